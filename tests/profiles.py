"""What the fast suite leaves to CI: most examples of a property, and cases that are slow."""

from __future__ import annotations

import math

import pytest
from hypothesis import HealthCheck, settings

QUICK = 10
"""Examples of a property in the fast suite."""

WHOLE = 50
"""Examples in CI, which runs all properties with the slow tests."""

MANY = 1000
"""Examples of whoever looks for faults."""

FEWEST = 5
"""No test asks for fewer, unless its whole number is smaller: the first example is the simplest one."""


def slow(*values: object):
    """A case of a parametrised test that is tried with the slow ones."""
    return pytest.param(*values, marks=pytest.mark.slow)


def register() -> None:
    """Make the profiles, and load the one of the fast suite.

    Timings depend on the machine, so no deadline. The first two are derandomised, so that a run can be repeated.
    """
    settings.register_profile(
        "quick",
        deadline=None,
        derandomize=True,
        max_examples=QUICK,
        suppress_health_check=[HealthCheck.too_slow],
    )
    quick = settings.get_profile("quick")
    settings.register_profile("whole", quick, max_examples=WHOLE)
    settings.register_profile("thorough", quick, derandomize=False, max_examples=MANY)
    settings.load_profile("quick")


def scaled(whole: int) -> int:
    """The number of examples for a test that says how many it needs in CI, in proportion to the profile."""
    share = settings().max_examples / WHOLE
    return max(min(FEWEST, whole), math.ceil(whole * share))
