"""How many examples a property draws."""

from hypothesis import HealthCheck, settings

SAME = 30  # of a hundred that `make test-all` draws; `make test` draws the same ones each time
settings.register_profile("same", derandomize=True, max_examples=SAME)


def examples(number):
    """Draw as many in `make test-all`, however long they take; a part of them in `make test`."""
    drawn = max(10, number * settings.default.max_examples // 100)
    return settings(max_examples=drawn, deadline=None, suppress_health_check=[HealthCheck.too_slow])
