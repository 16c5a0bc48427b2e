"""Properties are tried on as many examples as the profile says, and CI tries the whole number."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import settings

from tests.profiles import scaled

ROOT = Path(__file__).parents[1]


@pytest.fixture
def loaded(request):
    """A profile, for the time of the test."""
    before = settings.get_current_profile_name()
    settings.load_profile(request.param)
    yield
    settings.load_profile(before)


@pytest.mark.parametrize(
    ("loaded", "numbers"),
    [
        ("quick", (4, 5, 12, 40)),
        ("whole", (4, 15, 60, 200)),
        ("thorough", (80, 300, 1200, 4000)),
    ],
    indirect=["loaded"],
)
def test_numbers_follow_the_profile(loaded, numbers):
    assert tuple(scaled(whole) for whole in (4, 15, 60, 200)) == numbers


def test_every_test_with_a_number_of_its_own_scales_it():
    """Otherwise the fast suite would try the whole number."""
    for path in (ROOT / "tests").rglob("test_*.py"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"@settings\(.*max_examples=(?!scaled)", text), path


def test_ci_tries_the_whole_number():
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert '-m "slow or hypothesis" --hypothesis-profile whole' in script
