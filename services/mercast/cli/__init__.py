"""The command line. One module per command, imported only when that command runs."""

import sys

from cyclopts import App, Group

from mercast import __version__

app = App(name="mercast", help="Content-based publish/subscribe for Kubernetes.", version=__version__)
_BROKERS = Group("Run brokers", sort_key=1)
_CLIENTS = Group("Publish and subscribe", sort_key=2)
_MEASURE = Group("Measure", sort_key=3)
app.command("mercast.cli.local:local", name="local", group=_BROKERS)
app.command("mercast.cli.broker:broker", name="broker", group=_BROKERS)
app.command("mercast.cli.overlay:overlay", name="overlay", group=_BROKERS)
app.command("mercast.cli.pub:pub", name="pub", group=_CLIENTS)
app.command("mercast.cli.sub:sub", name="sub", group=_CLIENTS)
app.command("mercast.cli.trace:trace", name="trace", group=_CLIENTS)
app.command("mercast.cli.filter:check", name="filter", group=_CLIENTS)
app.command("mercast.cli.demo:demo", name="demo", group=_MEASURE)
app.command("mercast.cli.bench:app", name="bench", group=_MEASURE)
app.command("mercast.cli.lab:app", name="lab", group=_MEASURE)

_EXTRAS = {"networkx": "lab", "plotly": "lab"}
"""What brings a library, where it is not the broker's extra."""


def main() -> None:
    try:
        app()
    except ImportError as missing:
        # Bare `mercast` is the client; what needs more says which extra brings it.
        extra = _EXTRAS.get(missing.name or "", "broker")
        sys.exit(f"mercast: {missing.name} is not installed; try: pip install 'mercast[{extra}]'")
    except KeyboardInterrupt:
        sys.exit(130)
