"""For all tests."""

import signal

from hypothesis import HealthCheck, settings

# A busy machine takes its time; that is no failure.
settings.register_profile("unhurried", deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")

# In the background of a script Ctrl-C is ignored, and would be by all processes that the tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)
