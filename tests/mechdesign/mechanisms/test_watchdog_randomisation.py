"""X-invariant randomisation R(y): every R leaks and keeps what complete merging does."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechdesign.channel.channel import DENOMINATOR
from mechdesign.core.errors import InputError
from mechdesign.mechanisms.search import (
    COMPLETE,
    SUBSETS,
    HeuristicOptions,
    shares_of,
)
from mechdesign.mechanisms.watchdog import heuristic
from mechdesign.notions import ALIP, LDP, L1Lift
from tests.cases.designs import complete_merging
from tests.mechdesign.mechanisms.test_watchdog import joints, violations


def randomised(joint, notion, randomisation):
    options = HeuristicOptions(randomisation=randomisation)
    return heuristic(joint, notion, COMPLETE, options)


@given(joints(), st.floats(0.1, 6.0))
def test_a_uniform_response_keeps_and_leaks_what_complete_merging_does(joint, epsilon):
    """The lifts of every output are those of the merged set, so utility and achieved budgets are the same."""
    notion = LDP(epsilon)
    merged = complete_merging(joint, notion)
    uniform = randomised(joint, notion, "uniform")
    assert violations(uniform.channel, joint, notion.limits) == []
    assert uniform.achieved == merged.achieved
    assert uniform.nmi == pytest.approx(merged.nmi, abs=1e-12)
    assert uniform.borrowed == merged.borrowed


def test_a_given_response_is_what_every_risky_symbol_draws_from(adult):
    notion = ALIP.from_epsilon(1.0)
    risky = complete_merging(adult, notion)
    members = [
        x
        for x, row in enumerate(risky.channel.matrix)
        if (risky.channel.matrix == row).all(axis=1).sum() > 1
    ]
    r = np.arange(1, len(members) + 1) / sum(range(1, len(members) + 1))
    given_r = randomised(adult, notion, r.tolist())
    matrix = given_r.channel.matrix
    assert len(given_r.channel.outputs) == 15 - len(members) + len(members)
    drawn = matrix[members[0]]
    assert np.sort(drawn[drawn > 0.0]) == pytest.approx(np.sort(r))
    for x in members:
        assert given_r.channel.rows[x] == given_r.channel.rows[members[0]]
    assert given_r.achieved == risky.achieved


def test_zeros_in_r_are_no_outputs_and_one_certain_output_is_complete_merging(adult):
    notion = ALIP.from_epsilon(1.0)
    certain = [0.0] * 12
    certain[3] = 1.0
    assert (
        randomised(adult, notion, certain).channel.rows
        == complete_merging(adult, notion).channel.rows
    )


def test_it_works_for_averages_too(adult):
    merged = complete_merging(adult, L1Lift(0.3, 0.3))
    uniform = randomised(adult, L1Lift(0.3, 0.3), "uniform")
    assert uniform.used == merged.used
    assert uniform.outputs > merged.outputs


@pytest.mark.parametrize(
    ("randomisation", "message"),
    [
        ([0.5, 0.5], r"R\(y\) has 2 probabilities, but 12 risky symbols need one each"),
        ([0.1] * 12, r"R\(y\) sums to 1.2; probabilities must sum to 1"),
        ([1.5, -0.5, *[0.0] * 10], r"R\(y\) contains 1.5, which is no probability"),
        ([float("nan"), *[0.0] * 11], "is not a finite number"),
        ("half", r"the randomisation \('half'\) must be merge, uniform or a list"),
    ],
)
def test_bad_responses_are_refused(adult, randomisation, message):
    with pytest.raises(InputError, match=message):
        randomised(adult, ALIP.from_epsilon(1.0), randomisation)


def test_a_response_belongs_to_complete_merging(adult):
    with pytest.raises(
        InputError, match=r"R\(y\) belongs to complete-merging, not to subset-merging"
    ):
        heuristic(
            adult, ALIP(1.0, 1.0), SUBSETS, HeuristicOptions(randomisation="uniform")
        )


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=30).filter(any))
def test_shares_are_the_nearest_integers_and_sum_to_the_denominator(weights):
    total = sum(weights)
    shares = shares_of(
        [w / total for w in weights], [f"x{k}" for k in range(len(weights))]
    )
    assert sum(shares) == DENOMINATOR
    expected = [w / total * DENOMINATOR for w in weights if w]
    assert len(shares) == len(expected)
    assert np.abs(np.array(shares, dtype=float) - expected).max() <= 16.0 * len(weights)
