"""Budgets of single symbols for a whole population, against every vertex of small sets."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from mechdesign import audit
from mechdesign.core.balls import SCALE
from mechdesign.mechanisms import design
from mechdesign.mechanisms.population_posteriors import (
    PopulationFunction,
    uncertain_set,
)
from mechdesign.notions import ALIP, LIP
from mechdesign.tables.confidence import confidence_set
from mechdesign.tables.joint import Joint
from tests.oracles import population_vertices as oracle
from tests.profiles import slow

COUNTS = [[60, 25, 15], [20, 30, 50]]
BUDGETS = {"s0": (0.1, 0.2)}
ENDS = {"gap": 1e-3, "time_limit": 10.0}


def joint():
    return Joint.from_counts(COUNTS)


def notion():
    return ALIP(0.6, 0.5).with_budgets(BUDGETS)


def extreme_logs(channel, populations):
    """The largest log of every lift and of every inverse, over all vertices of the set."""
    rows = [
        (
            [Fraction(end, SCALE) for end in low],
            [Fraction(end, SCALE) for end in high],
        )
        for low, high in zip(populations.lower, populations.upper, strict=True)
    ]
    shares = (populations.share_lower, populations.share_upper)
    largest = [[-math.inf, -math.inf] for _ in rows]
    for column in channel.matrix.T:
        w = [Fraction(value) for value in column.tolist()]
        for given, mass in oracle.lifts(rows, shares, w):
            for s, probability in enumerate(given):
                logs = (math.log(mass / probability), math.log(probability / mass))
                largest[s] = [max(a, b) for a, b in zip(largest[s], logs, strict=True)]
    return largest


@pytest.mark.parametrize("objective", ["information", "truth", slow("frequencies")])
def test_every_symbol_keeps_its_own_budgets(objective):
    table = joint()
    result = design(
        table,
        ALIP(0.6, 0.5),
        budgets=BUDGETS,
        confidence=0.9,
        objective=objective,
        **ENDS,
    )
    assert result.verified
    populations = confidence_set(table, 0.9, estimate_shares=True)
    first, second = extreme_logs(result.channel, populations)
    assert first[0] <= 0.1 + 1e-9
    assert first[1] <= 0.2 + 1e-9
    assert second[0] <= 0.6 + 1e-9
    assert second[1] <= 0.5 + 1e-9
    # A budget is used: that of the first symbol is small.
    assert max(first[0] / 0.1, first[1] / 0.2) >= 0.99
    assert audit(result.channel, table, result.notion).satisfied


def test_the_optimum_lies_between_those_of_common_budgets():
    table = joint()
    narrow = design(table, ALIP(0.1, 0.2), confidence=0.9, **ENDS)
    wide = design(table, ALIP(0.6, 0.5), confidence=0.9, **ENDS)
    own = design(table, ALIP(0.6, 0.5), budgets=BUDGETS, confidence=0.9, **ENDS)
    assert narrow.nmi - 1e-6 <= own.nmi <= wide.certificate.upper_bound_nmi
    assert own.nmi <= own.certificate.upper_bound_nmi


def test_equal_budgets_of_all_symbols_are_common_ones():
    table = joint()
    each = {"s0": (0.3, 0.3), "s1": (0.3, 0.3)}
    common = design(table, LIP(0.3), confidence=0.9, **ENDS)
    own = design(table, LIP(0.9), budgets=each, confidence=0.9, **ENDS)
    assert own.nmi <= common.certificate.upper_bound_nmi + 1e-9
    assert common.nmi <= own.certificate.upper_bound_nmi + 1e-9


def test_cuts_hold_for_all_members():
    table = joint()
    populations = confidence_set(table, 0.9, estimate_shares=True)
    function = PopulationFunction(uncertain_set(table, notion(), populations))
    rng = np.random.default_rng(5)
    images = rng.dirichlet(np.ones(3), 200) / table.p_x
    values = function.values(images.T)
    assert function.values(np.ones((3, 1)))[0] == pytest.approx(0.0, abs=1e-12)
    members = images[values <= 1.0]
    assert 10 < len(members) < 190
    for image in images[values > 1.0][:40]:
        cut = function.cut(image)
        assert cut.normal @ image > cut.offset
        assert (members @ cut.normal <= cut.offset).all()
