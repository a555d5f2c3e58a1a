"""For all tests."""

import signal

from hypothesis import HealthCheck, settings

# A busy machine takes its time; that is no failure.
settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")

# Whoever runs the tests in the background of a script has Ctrl-C ignored, and all processes that are started would, too.
signal.signal(signal.SIGINT, signal.default_int_handler)
