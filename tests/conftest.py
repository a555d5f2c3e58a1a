"""For all tests."""

import os
import signal

from hypothesis import HealthCheck, settings

from mercast import garbage
from mercast.processes import PORTS, ports

# A busy machine takes its time; that is no failure. The examples are always the same, so that a change fails for what
# it changes; EXAMPLES=1000 looks for others, by chance, and for so many where a test does not say how many.
_examples = os.environ.get("EXAMPLES")
settings.register_profile(
    "unhurried",
    deadline=None,
    max_examples=int(_examples or 60),
    derandomize=_examples is None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("unhurried")

garbage.seldom()  # as `mercast lab` does: much of what is tested here is simulated

# In the background of a script Ctrl-C is ignored, and would be by all processes that the tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Tests that run side by side, and all processes that they start, have ports of their own to choose from.
_workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
_worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
_mine = ports()[len(ports()) * _worker // _workers : len(ports()) * (_worker + 1) // _workers]
os.environ[PORTS] = f"{_mine[0]}-{_mine[-1]}"
