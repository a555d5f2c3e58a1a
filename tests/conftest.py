"""For all tests."""

from hypothesis import HealthCheck, settings

# A busy machine takes its time; that is no failure.
settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")
