"""Rows of the table beside the same with free frequencies and randomised response."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import mechdesign as md
from mechdesign.comparison import row_ways
from mechdesign.comparison.row_ways import FREE, PLAN, RESPONSE, compare_rows
from mechdesign.core.errors import InputError
from tests.oracles import released_rows as oracle


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(8)
    count = 2000
    secret = rng.choice(["s", "t"], count, p=[0.3, 0.7])
    a = np.where(rng.random(count) < 0.3, secret, rng.choice(["x", "y", "z"], count))
    b = np.where(rng.random(count) < 0.3, secret, rng.choice(["u", "v"], count))
    k = np.where(rng.random(count) < 0.4 + 0.1 * (secret == "s"), "p", "q")
    return pd.DataFrame({"secret": secret, "a": a, "b": b, "k": k})


def compared(frame, release=("a", "b"), given=(), notion=None, **options):
    useful = [*given, *release]
    joint = md.Joint.from_table(frame, sensitive="secret", useful=useful)
    request = md.DesignRequest(
        joint, notion or md.LIP(0.4), release=release, given=given, **options
    )
    return compare_rows(request)


@pytest.mark.parametrize(
    ("given", "promise"), [((), "total"), (("k",), "total"), (("k",), "relative")]
)
def test_all_ways_keep_the_promise_and_free_frequencies_keep_most_cells(
    frame, given, promise
):
    result = compared(frame, given=given, promise=promise, notion=md.LIP(0.9))
    assert [way.name for way in result.ways] == [PLAN, FREE, RESPONSE]
    plan, free, response = result.ways
    assert all(way.satisfied for way in result.ways)
    for way in result.ways:
        assert max(way.achieved.eps_l, way.achieved.eps_u) <= 0.9
    assert free.unchanged >= plan.unchanged - 1e-4
    assert plan.unchanged > response.unchanged
    assert plan.total_variation == 0.0
    assert plan.nmi == pytest.approx(result.design.nmi)


def test_figures_are_those_of_the_law(frame):
    result = compared(frame)
    law = oracle.joint_law(result.design.channel)
    for k, name in enumerate(result.columns):
        kept = sum(mass for (_, x, y), mass in law.items() if x[k] == y[k])
        assert float(kept) == pytest.approx(result.design.truth[name], abs=1e-9)
    mean = sum(
        mass * Fraction(sum(a == b for a, b in zip(x, y, strict=True)), 2)
        for (_, x, y), mass in law.items()
    )
    assert result.ways[0].unchanged == pytest.approx(float(mean), abs=1e-9)
    pairs = oracle.summed(law, lambda entry: entry[1:])
    of_x = oracle.summed(law, lambda entry: entry[1])
    of_y = oracle.summed(law, lambda entry: entry[2])
    information = sum(
        float(mass) * math.log(mass / (of_x[x] * of_y[y]))
        for (x, y), mass in pairs.items()
    )
    entropy = -sum(float(mass) * math.log(mass) for mass in of_x.values())
    assert result.ways[0].nmi == pytest.approx(information / entropy, abs=1e-9)


def test_randomised_response_stays_as_often_as_the_promise_allows(frame):
    """P(x stays) = t + (1 - t) P(x): a little more breaks the promise."""
    request = md.DesignRequest(
        md.Joint.from_table(frame, sensitive="secret", useful=["a", "b"]),
        md.LIP(0.4),
        release=["a", "b"],
    )
    joint = request.joint
    channel = row_ways._response(joint, request)
    x = joint.useful.symbols[0]
    mass = joint.p_x[0]
    share = (float(channel.distribution(x)[x]) - mass) / (1.0 - mass)
    more = row_ways._staying(joint, min(1.0, share + 1e-5), request)
    assert md.audit(channel, joint, md.LIP(0.4)).satisfied
    assert not md.audit(more, joint, md.LIP(0.4)).satisfied
    for symbol, row in zip(joint.useful.symbols, joint.p_x, strict=True):
        own = float(channel.distribution(symbol)[symbol])
        assert own == pytest.approx(share + (1.0 - share) * row, abs=1e-9)


def test_independent_columns_need_no_noise():
    frame = pd.DataFrame({"secret": ["s", "t"] * 8, "a": ["x", "x", "y", "y"] * 4})
    for way in compared(frame, release=["a"]).ways:
        assert way.satisfied
        assert way.unchanged == pytest.approx(1.0, abs=1e-5)


def test_randomised_response_of_many_rows_is_left_out_and_said(frame, monkeypatch):
    monkeypatch.setattr(row_ways, "MOST_RESPONSE_ROWS", 3)
    result = compared(frame)
    assert [way.name for way in result.ways] == [PLAN, FREE]
    assert "randomised response is compared up to 3 rows" in result.messages[-1]


def test_results_are_shown(frame):
    result = compared(frame)
    assert repr(result).startswith("RowComparison(lip (eps_l 0.4, eps_u 0.4): rows of")


def test_other_requests_are_refused(frame):
    joint = md.Joint.from_table(frame, sensitive="secret", useful=["a", "b"])
    for options in ({}, {"release": ["a", "b"], "objective": "information"}):
        with pytest.raises(InputError, match="one of releases as rows of the table"):
            compare_rows(md.DesignRequest(joint, md.LIP(0.4), **options))
    with pytest.raises(InputError, match="bounds averages"):
        compared(frame, notion=md.L1Lift.from_epsilon(1.0))
