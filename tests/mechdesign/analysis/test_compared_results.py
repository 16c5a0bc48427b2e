"""Results hold arrays, which have no single truth value: results are compared as wholes."""

from __future__ import annotations

import copy

import pytest

from mechdesign.analysis import (
    corrected_regression,
    estimate_frequencies,
    estimate_joint,
    expand_records,
    posterior_table,
)
from tests.cases.releases import channel_of

ROWS = ((8, 1, 1), (1, 8, 1), (2, 2, 6))


def results():
    channel = channel_of(ROWS, [[30, 20, 10], [10, 20, 30]])
    released = ["y0"] * 40 + ["y1"] * 30 + ["y2"] * 20
    beside = ["p", "q", "r"] * 30
    amounts = [float(place % 7) for place in range(90)]
    return [
        estimate_frequencies(channel, released),
        estimate_joint(channel, released, beside),
        posterior_table(channel),
        expand_records(channel, released),
        corrected_regression(channel, released, amounts),
    ]


@pytest.mark.parametrize("place", range(5))
def test_results_can_be_compared_and_held_in_sets(place):
    result = results()[place]
    other = copy.deepcopy(result)
    assert result == result
    assert result != other
    assert len({result, other}) == 2
    assert result in [other, result]
