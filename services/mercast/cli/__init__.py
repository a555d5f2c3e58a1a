"""The command line. One module per command, imported only when that command runs."""

import sys

from cyclopts import App

from mercast import __version__

app = App(name="mercast", help="Content-based publish/subscribe for Kubernetes.", version=__version__)
app.command("mercast.cli.bench:app", name="bench")
app.command("mercast.cli.broker:broker", name="broker")
app.command("mercast.cli.demo:demo", name="demo")
app.command("mercast.cli.filter:check", name="filter")
app.command("mercast.cli.lab:app", name="lab")
app.command("mercast.cli.local:local", name="local")
app.command("mercast.cli.overlay:overlay", name="overlay")

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
