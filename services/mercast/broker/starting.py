"""Signals to a broker that is not there yet: modules are read and code is compiled, which may take seconds."""

import signal
import sys
from typing import NoReturn


def expect_signals() -> None:
    """SIGHUP has nothing to do yet: all files are still to be read. SIGTERM ends it as it would later."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _leave)


def _leave(*_: object) -> NoReturn:
    sys.exit(0)
