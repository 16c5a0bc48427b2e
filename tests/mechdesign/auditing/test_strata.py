"""The relative promise against listing in fractions, and channels whose rows have their own totals."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import mechdesign as md
from mechdesign.auditing.measures import measure
from mechdesign.auditing.strata import strata_of
from mechdesign.channel.channel import Channel
from mechdesign.channel.output_cells import own_rows
from mechdesign.channel.record import ChannelRecord
from mechdesign.core.errors import InputError
from mechdesign.tables.joint import Joint
from mechdesign.tables.variable import Variable
from tests.oracles import released_rows as oracle
from tests.profiles import scaled

SYMBOLS = tuple((k, a) for k in ("u", "v") for a in ("x", "y", "z"))
USEFUL = Variable(("k", "a"), SYMBOLS)
STRATA = (0, 0, 0, 1, 1, 1)


@st.composite
def channels(draw, promise="relative"):
    """A channel that never changes k, and a table that may lack secrets in a stratum."""
    secrets = draw(st.integers(2, 3))
    counts = [
        draw(st.lists(st.integers(0, 6), min_size=6, max_size=6))
        for _ in range(secrets)
    ]
    assume(all(map(any, counts)) and all(map(any, zip(*counts, strict=True))))
    rows = []
    for stratum in STRATA:
        own = draw(st.lists(st.integers(0, 5), min_size=3, max_size=3).filter(any))
        rows.append([*own, 0, 0, 0] if stratum == 0 else [0, 0, 0, *own])
    used = [y for y in range(6) if any(row[y] for row in rows)]
    sensitive = Variable(("s",), tuple((f"s{s}",) for s in range(secrets)))
    return Channel(
        useful=USEFUL,
        outputs=tuple(USEFUL.names[y] for y in used),
        rows=[[row[y] for y in used] for row in rows],
        totals=tuple(map(sum, rows)),
        joint=Joint(sensitive, USEFUL, tuple(map(tuple, counts))),
        given=("k",),
        published=own_rows(USEFUL, used),
        record=ChannelRecord(promise_kind=promise),
    )


def of_stratum(released):
    return released[:1]


def logs_of(found):
    highest = math.log(max(found.values()))
    least = min(found.values())
    return highest, (-math.log(least) if least else math.inf)


@settings(max_examples=scaled(60))
@given(channels(), st.sampled_from([0.1, 0.4, 0.9]))
def test_the_relative_promise_is_that_of_every_stratum(channel, budget):
    found = oracle.lifts(oracle.joint_law(channel), of_stratum)
    verdict = md.audit(channel, channel.joint, md.LIP(budget))
    highest, lowest = logs_of(found)
    assert verdict.achieved.eps_u == pytest.approx(highest, abs=1e-12)
    assert verdict.achieved.eps_l == pytest.approx(lowest, abs=1e-12)
    power = oracle.power(budget)
    kept = all(lift <= power and lift * power >= 1 for lift in found.values())
    assert verdict.satisfied is kept
    ratio = 1
    for y in {y for _, y in found}:
        own = [lift for (_, other), lift in found.items() if other == y]
        ratio = math.inf if not min(own) else max(ratio, max(own) / min(own))
    expected = math.inf if ratio == math.inf else math.log(ratio)
    assert verdict.achieved.eps_ldp == pytest.approx(expected, abs=1e-12)


@settings(max_examples=scaled(30))
@given(channels("total"))
def test_the_total_promise_is_against_the_whole_table(channel):
    found = oracle.lifts(oracle.joint_law(channel))
    verdict = md.audit(channel, channel.joint, md.LIP(0.5))
    highest, lowest = logs_of(found)
    assert verdict.achieved.eps_u == pytest.approx(highest, abs=1e-12)
    assert verdict.achieved.eps_l == pytest.approx(lowest, abs=1e-12)


@settings(max_examples=scaled(20))
@given(channels())
def test_the_worst_output_is_one_of_the_largest_share(channel):
    found = oracle.lifts(oracle.joint_law(channel), of_stratum)
    verdict = md.audit(channel, channel.joint, md.MaxLift(0.3))
    s = channel.joint.sensitive.names.index(verdict.worst.sensitive)
    y = channel.published.cells[channel.outputs.index(verdict.worst.output)]
    assert found[s, y] == max(found.values())
    assert verdict.worst.lift == pytest.approx(float(found[s, y]), rel=1e-15)


def test_an_example_by_hand():
    """The example of the module: lifts 1.6 in the stratum and 0.67 in total."""
    useful = Variable(("k", "a"), (("u", "x"), ("u", "y"), ("v", "x")))
    joint = Joint(Variable(("s",), (("s",), ("t",))), useful, ((2, 8, 50), (3, 27, 10)))
    channel = Channel(
        useful=useful,
        outputs=useful.names,
        rows=((1, 0, 0), (0, 1, 0), (0, 0, 1)),
        denominator=1,
        joint=joint,
        given=("k",),
        published=own_rows(useful, range(3)),
        record=ChannelRecord(promise_kind="relative"),
    )
    assert strata_of(("k",), joint) == [0, 0, 1]
    relative = md.audit(channel, joint, md.MaxLift(1.0))
    assert relative.achieved.eps_u == pytest.approx(math.log(1.6))
    total = channel.with_record(replace(channel.record, promise_kind="total"))
    found = oracle.lifts(oracle.joint_law(total))
    assert found[0, ("u", "x")] == Fraction(2, 3)


def test_averages_have_no_relative_promise():
    useful = Variable(("k", "a"), (("u", "x"), ("v", "x")))
    joint = Joint(Variable(("s",), (("s",), ("t",))), useful, ((2, 1), (3, 4)))
    channel = Channel(
        useful=useful,
        outputs=useful.names,
        rows=((1, 0), (0, 1)),
        denominator=1,
        joint=joint,
        given=("k",),
        published=own_rows(useful, range(2)),
        record=ChannelRecord(promise_kind="relative"),
    )
    with pytest.raises(InputError, match="l1 bounds averages: with a relative promise"):
        md.audit(channel, joint, md.L1Lift.from_epsilon(1.0))


@st.composite
def with_totals(draw):
    """A channel with a total for each row, and the same one over a common denominator."""
    n = draw(st.integers(2, 4))
    outputs = draw(st.integers(1, 4))
    row = st.lists(st.integers(0, 9), min_size=outputs, max_size=outputs).filter(any)
    rows = [draw(row) for _ in range(n)]
    assume(all(map(any, zip(*rows, strict=True))))
    counts = [
        draw(st.lists(st.integers(1, 6), min_size=n, max_size=n)) for _ in range(2)
    ]
    useful = Variable(("x",), tuple((f"x{k}",) for k in range(n)))
    joint = Joint(Variable(("s",), (("p",), ("q",))), useful, tuple(map(tuple, counts)))
    labels = tuple(f"y{k}" for k in range(outputs))
    totals = tuple(map(sum, rows))
    common = math.lcm(*totals)
    scaled = [
        [value * (common // total) for value in row]
        for row, total in zip(rows, totals, strict=True)
    ]
    own = Channel(useful, labels, rows, totals=totals, joint=joint)
    return own, Channel(useful, labels, scaled, common, joint=joint)


@settings(max_examples=scaled(60))
@given(with_totals())
def test_totals_change_no_verdict_and_no_measure(pair):
    own, common = pair
    joint = own.joint
    assert own.columns == common.columns
    assert own.matrix.tolist() == common.matrix.tolist()
    assert own.codebook() == common.codebook()
    for notion in (
        md.LIP(0.4),
        md.ALIP(0.2, 0.7),
        md.LDP(0.5),
        md.MaxLift(0.3),
        md.L1Lift.from_epsilon(0.5),
        md.Chi2Lift.from_epsilon(0.5),
        md.KL.from_epsilon(0.5),
    ):
        assert md.audit(own, joint, notion) == md.audit(common, joint, notion)
    assert measure(own, joint) == measure(common, joint)
    assert measure(own, joint, alphas=(2.0, math.inf), orders=(0.5, 3.0)) == measure(
        common, joint, alphas=(2.0, math.inf), orders=(0.5, 3.0)
    )


@settings(max_examples=scaled(20))
@given(with_totals())
def test_totals_change_no_joint_leakage_and_no_estimate(pair):
    own, common = pair
    assert md.compose([own, own]) == md.compose([common, common])
    assert md.audit(own, own.joint, md.LIP(1.0), after=[common]) == md.audit(
        common, own.joint, md.LIP(1.0), after=[own]
    )
    labels = [own.outputs[k % len(own.outputs)] for k in range(50)]
    mine = md.estimate_frequencies(own, labels)
    other = md.estimate_frequencies(common, labels)
    assert np.allclose(
        mine.to_frame().iloc[:, 1:].astype(float),
        other.to_frame().iloc[:, 1:].astype(float),
        equal_nan=True,
    )


@settings(max_examples=scaled(20))
@given(channels(), channels())
def test_two_releases_of_rows_together(first, second):
    """Joint leakage relative to the given column, by listing every pair of released rows."""
    second = replace(second, joint=first.joint, sensitive=None)
    law = oracle.joint_law(first)
    both = {}
    for (s, x, y), mass in law.items():
        for z, share in second.distribution(x).items():
            key = (s, x, (*y, *z))
            both[key] = both.get(key, 0) + mass * share
    found = oracle.lifts(both, of_stratum)
    composed = md.compose([first, second])
    assert composed.exact
    assert composed.relative_to == ("k",)
    highest, lowest = logs_of(found)
    assert composed.achieved.eps_u == pytest.approx(highest, abs=1e-12)
    assert composed.achieved.eps_l == pytest.approx(lowest, abs=1e-12)
