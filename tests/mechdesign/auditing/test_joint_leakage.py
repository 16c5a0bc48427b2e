"""Joint leakage of several releases, against full enumeration in fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mechdesign as md
from mechdesign.auditing.columns import columns_on, directions, everything
from mechdesign.auditing.lifts import log_upper
from mechdesign.auditing.verdict import Achieved, audit_on_table
from mechdesign.channel.channel import Channel
from mechdesign.core.balls import sum_above
from tests.oracles.joint_leakage import every_tuple, extremes

FEW = 150
MANY = 3000


def random_counts(rng, sensitive, useful):
    counts = rng.integers(0, 4, (sensitive, useful))
    counts[counts.sum(1) == 0] = 1
    counts[:, counts.sum(0) == 0] = 1
    return counts


def random_channel(rng, useful, joint=None):
    """A channel with zeros, proportional columns and a denominator that is often small, so that
    ties occur.
    """
    outputs = int(rng.integers(1, 4))
    denominator = int(rng.choice([6, 12, 2**53]))
    rows = rng.integers(0, 3, (len(useful), outputs))
    rows[np.arange(len(useful)), rng.integers(0, outputs, len(useful))] += 1
    scaled = [[int(v) * denominator // int(row.sum()) for v in row] for row in rows]
    for row in scaled:
        row[int(np.argmax(row))] += denominator - sum(row)
    kept = [y for y in range(outputs) if any(row[y] for row in scaled)]
    scaled = [[row[y] for y in kept] for row in scaled]
    return Channel(useful, tuple(f"y{y}" for y in kept), scaled, denominator, joint)


def matrix_of(channel):
    return [[Fraction(v, channel.denominator) for v in row] for row in channel.rows]


def rounded_up(value):
    return math.inf if value is None else log_upper(value.numerator, value.denominator)


def expected(counts, matrices, places=None):
    high, low, ratio = extremes(counts, matrices, places)
    return Achieved(
        rounded_up(1 / low if low else None), rounded_up(high), rounded_up(ratio)
    )


@pytest.mark.parametrize("cases", [FEW, pytest.param(MANY, marks=pytest.mark.slow)])
def test_equals_full_enumeration(cases):
    """eps_l, eps_u and eps_ldp are the smallest doubles above those of all tuples, for one to three
    channels.
    """
    rng = np.random.default_rng([13, cases])
    for _ in range(cases):
        joint = md.Joint.from_counts(
            random_counts(rng, rng.integers(1, 4), rng.integers(2, 5))
        )
        channels = [
            random_channel(rng, joint.useful, joint) for _ in range(rng.integers(1, 4))
        ]
        found = md.compose(channels)
        matrices = [matrix_of(channel) for channel in channels]
        assert found.exact
        assert found.achieved == expected(joint.counts, matrices)
        side = max(found.eps_l, found.eps_u)
        at = tuple(
            channel.outputs.index(y)
            for channel, y in zip(channels, found.worst.outputs, strict=True)
        )
        lifts = dict(every_tuple(joint.counts, matrices))[at]
        lift = lifts[joint.sensitive.names.index(found.worst.sensitive)]
        assert found.worst.lift == float(lift)
        assert max(rounded_up(lift), rounded_up(1 / lift if lift else None)) == side
        assert found.alone == tuple(
            audit_on_table(channel, joint, md.LIP(1)).achieved for channel in channels
        )


def test_limits_hold_where_not_everything_is_followed():
    """at_least <= the truth <= achieved, however few directions are followed; with enough of them
    both are exact.
    """
    rng = np.random.default_rng(14)
    wider = exact = 0
    for _ in range(60):
        joint = md.Joint.from_counts(random_counts(rng, 3, 4) + 1)
        channels = [random_channel(rng, joint.useful, joint) for _ in range(4)]
        truth = md.compose(channels)
        found = md.compose(channels, most=2)
        for name in ("eps_l", "eps_u", "eps_ldp"):
            assert (
                getattr(found.at_least, name)
                <= getattr(truth, name)
                <= getattr(found, name)
            )
        wider += found.achieved != truth.achieved
        exact += found.exact
    assert wider > 0
    assert exact > 0


def test_channels_of_different_columns():
    """P(s, x1, x2) gives the joint leakage of a channel of x1 and one of x2."""
    rng = np.random.default_rng(15)
    for _ in range(60):
        counts = random_counts(rng, 2, 6)
        labels = [(a, b) for a in "pq" for b in "uvw"]
        joint = md.Joint.from_counts(
            counts, useful_labels=labels, useful=("one", "two")
        )
        one = md.Joint.from_counts(
            counts.reshape(2, 2, 3).sum(2), useful_labels=list("pq"), useful="one"
        )
        two = md.Joint.from_counts(
            counts.reshape(2, 2, 3).sum(1), useful_labels=list("uvw"), useful="two"
        )
        channels = [random_channel(rng, one.useful), random_channel(rng, two.useful)]
        places = [
            [i for i in range(2) for _ in range(3)],
            [i for _ in range(2) for i in range(3)],
        ]
        found = md.compose(channels, joint)
        assert found.achieved == expected(
            counts.tolist(), [matrix_of(c) for c in channels], places
        )


def test_directions_that_are_proportional_count_once():
    joint = md.Joint.from_counts([[1, 2], [3, 4]])
    channel = Channel(joint.useful, ("a", "b", "c"), [[1, 2, 3], [1, 2, 3]], 6, joint)
    assert len(directions(everything(joint), columns_on(channel, joint))) == 1


def test_tuples_that_never_occur_are_left_out():
    """Two outputs that no symbol gives together would rule everything out, but nobody ever sees
    them together.
    """
    joint = md.Joint.from_counts([[2, 1, 1], [1, 2, 1]])
    identity = Channel(
        joint.useful, ("a", "b", "c"), [[1, 0, 0], [0, 1, 0], [0, 0, 1]], 1, joint
    )
    assert (
        md.compose([identity, identity]).achieved
        == audit_on_table(identity, joint, md.LIP(1)).achieved
    )


def test_lifts_that_underflow_are_compared_exactly():
    """2^-256 in the table, 2^-62 in each of twelve channels: the product is no double, the answer
    is.
    """
    joint = md.Joint.from_counts([[2**255, 1], [1, 2**255]])
    d = 2**62
    channels = [
        Channel(joint.useful, ("a", "b"), [[1, d - 1], [2, d - 2]], d, joint)
    ] * 12
    found = md.compose(channels)
    high, low, ratio = extremes(joint.counts, [matrix_of(channels[0])] * 12)
    assert found.achieved == Achieved(
        rounded_up(1 / low), rounded_up(high), rounded_up(ratio)
    )


def test_adding_budgets_is_no_bound():
    """The median of the joint budget of two optimal releases of 0.5 each is far above 1."""
    rng = np.random.default_rng(7)
    together = []
    for _ in range(5):
        joint = md.Joint.from_probabilities(
            np.array(rng.dirichlet(np.ones(17 * 5)).reshape(5, 17))
        )
        channel = md.design(joint, md.ALIP(0.25, 0.25)).channel
        found = md.compose([channel, channel])
        assert found.sum.eps_ldp <= 1.0 + 1e-9
        together.append(found.eps_ldp)
    assert sorted(together)[2] > 1.5


def test_refusals():
    one = md.Joint.from_counts([[1, 2], [3, 4]], useful="one")
    two = md.Joint.from_counts([[1, 2], [3, 4]], useful="two")
    other = md.Joint.from_counts([[1, 2], [3, 5]], useful="one")
    three = md.Joint.from_counts([[1, 2, 1], [3, 5, 1]], useful="one")
    made = [
        Channel(joint.useful, ("a", "b"), [[1, 0], [0, 1]], 1, joint)
        for joint in (one, two, other)
    ]
    with pytest.raises(md.InputError, match="at least one"):
        md.compose([])
    with pytest.raises(md.InputError, match="each of the channels must be a Channel"):
        md.compose(["a.json"])
    with pytest.raises(md.InputError, match="different columns"):
        md.compose(made[:2])
    with pytest.raises(md.InputError, match="different tables"):
        md.compose([made[0], made[2]])
    with pytest.raises(md.InputError, match="public ones"):
        md.compose([made[0].public()])
    with pytest.raises(md.InputError, match="no row for the useful symbol 'x2'"):
        md.compose(made[:1], three)
    small = md.Joint.from_counts(
        [[1, 2], [3, 4]], useful_labels=["x0", "z"], useful="one"
    )
    with pytest.raises(
        md.InputError, match="no useful symbol 'x1', which the channel has"
    ):
        md.compose(made[:1], small)
    crossed = md.Joint.from_counts(
        [[1, 2], [3, 4]], useful_labels=[("x0", "p"), ("x1", "p")], useful=("one", "q")
    )
    with pytest.raises(md.InputError, match="no useful column 'two'"):
        md.compose(made[:2], crossed)
    half = md.Joint.from_counts(
        [[1, 2], [3, 4]], useful_labels=[("x0", "p"), ("x0", "q")], useful=("one", "q")
    )
    with pytest.raises(
        md.InputError, match="no useful symbol 'x1', which the channel has"
    ):
        md.compose(made[:1], half)
    assert md.compose([made[0], made[0].public()]).exact


def test_nothing_rests_on_entries_that_doubles_may_lose():
    """Of 18 releases with entries of 2^-62 those that are left out are not bounded in doubles at
    all.
    """
    joint = md.Joint.from_counts([[3, 1, 2], [1, 2, 4]])
    d = 2**62
    channel = Channel(
        joint.useful, ("a", "b"), [[1, d - 1], [d - 1, 1], [d // 2, d // 2]], d, joint
    )
    assert md.compose([channel] * 18, most=2).eps_ldp == math.inf
    assert md.compose([channel] * 8, most=2).eps_ldp < 1.26


def test_channels_of_different_secrets_have_no_table_of_their_own():
    """A public channel of another secret is not judged on the table of the one that has its own."""
    one = md.Joint.from_counts([[3, 1], [1, 4]], sensitive="sex")
    other = md.Joint.from_counts([[2, 2], [2, 3]], sensitive="race")
    first, second = (md.design(joint, md.LIP(1.0)).channel for joint in (one, other))
    for channels in ([first, second], [first.public(), second]):
        with pytest.raises(
            md.InputError,
            match=r"protect different columns \('race', 'sex'\): give the table",
        ):
            md.compose(channels)
    assert md.compose([first.public(), second], other).exact


@given(st.lists(st.floats(0.0, 1e3), min_size=1, max_size=4))
def test_budgets_are_added_to_the_smallest_double_above(values):
    exact = sum(map(Fraction, values))
    total = sum_above(values)
    assert Fraction(total) >= exact
    assert total == 0.0 or Fraction(math.nextafter(total, -1.0)) < exact
    assert sum_above((0.5, 0.5)) == 1.0
    assert sum_above((math.inf, 0.1)) == math.inf
