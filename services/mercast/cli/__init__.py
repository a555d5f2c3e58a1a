"""The command line. One module per command, imported only when that command runs."""

import sys

from cyclopts import App, Group

from mercast import __version__

app = App(name="mercast", help="Content-based publish/subscribe for Kubernetes.", version=__version__)

_COMMANDS = {
    Group("Run brokers", sort_key=1): [
        ("local", "local:local", "Run brokers on this machine, linked to each other."),
        (
            "broker",
            "broker:broker",
            "Run one broker. Flags can also be given in a file or in the environment (docs/configuration.md).",
        ),
        ("token", "token:token", "Make a token for clients, and write its hash into a file."),
        ("cert", "cert:cert", "Make certificates for brokers and clients, and a CA for them."),
        (
            "secrets",
            "secrets:secrets",
            "Make the Secrets that brokers in Kubernetes need, as a plan says.",
        ),
        ("taps", "taps:app", "Make the topics that brokers write rows to."),
        ("kafka", "kafka:kafka", "Run a Kafka of one node on this machine, for taps."),
        ("overlay", "overlay:overlay", "Show brokers, links and tables, as a broker sees them."),
        ("doctor", "doctor.command:doctor", "Look at brokers, say what is wrong, and make a bundle for support."),
    ],
    Group("Publish and subscribe", sort_key=2): [
        ("pub", "pub:pub", "Publish events."),
        ("sub", "sub:sub", "Subscribe, and print what comes."),
        ("trace", "trace:trace", "Publish one event, and show the way that it takes."),
        ("filter", "filter:check", "Check a filter, and try it on attributes."),
    ],
    Group("Measure", sort_key=3): [
        ("demo", "demo.command:demo", "Brokers, publishers and subscribers at work, for a short while."),
        ("load", "load:load", "Publish and subscribe by Locust, and compare what has come with what was due."),
        (
            "compare",
            "compare:compare",
            "Run the same load over several strategies, and compare them by Spark's metrics.",
        ),
        ("bench", "bench:app", "Measure speed, beside a yardstick in the same run."),
        ("metrics", "metrics:metrics", "Show live metrics of brokers, from their taps in Kafka, by Spark."),
        ("dashboard", "dashboard:dashboard", "Serve a live page of brokers, links, rates and figures."),
        ("audit", "audit:audit", "Check every delivery of brokers, from their taps, by Spark."),
        ("lab", "lab:app", "Run the papers' experiments; replay a recorded broker."),
    ],
}
"""Where each is, and what it is for: said here, so that help need not import them."""

for _group, _commands in _COMMANDS.items():
    for _name, _place, _help in _commands:
        app.command(f"mercast.cli.{_place}", name=_name, help=_help, group=_group)

_EXTRAS = {
    "networkx": "lab", "plotly": "lab", "pyarrow": "dashboard", "aiokafka": "kafka", "pyspark": "streaming",
    "locust": "loadtest", "kubernetes": "kubernetes",
}  # fmt: skip
"""What brings a library, where it is not the broker's extra."""


def main() -> None:
    try:
        app()
    except ImportError as missing:
        # Bare `mercast` is the client; what needs more says which extra brings it.
        # cyclopts puts an error of its own, without a name, on top.
        name: str = missing.name or getattr(missing.__cause__, "name", None) or "a library"
        extra = _EXTRAS.get(name, "broker")
        sys.exit(f"mercast: {name} is not installed; try: pip install 'mercast[{extra}]'")
    except KeyboardInterrupt:
        sys.exit(130)
