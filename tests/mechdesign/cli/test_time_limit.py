"""Every search of the command line has a limit unless the user wants none."""

from __future__ import annotations

import pytest

from mechdesign.cli.options import SearchOptions
from mechdesign.core.errors import InputError


def test_the_limit_is_half_a_minute_unless_typed() -> None:
    assert SearchOptions().seconds == 30.0
    assert SearchOptions(time_limit="2.5").seconds == 2.5
    assert SearchOptions(time_limit="none").seconds is None


def test_a_limit_that_is_no_number_is_refused() -> None:
    with pytest.raises(InputError, match=r"--time-limit \('soon'\) must be a positive"):
        SearchOptions(time_limit="soon").check()
