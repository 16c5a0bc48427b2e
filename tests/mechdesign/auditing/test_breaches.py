"""Privacy breaches against plain enumeration in fractions, and the words of the command."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mechdesign as md
from mechdesign.auditing.breaches import breaches
from mechdesign.core.errors import InputError
from mechdesign.report.command_records import breach_sentences
from tests.profiles import scaled


def plain_breaches(counts, rows, rho1, rho2):
    """Whether there is a breach up, and down, by loops over all sets and outputs."""
    total = sum(map(sum, counts))
    size = len(counts)
    up = down = False
    for count in range(1, size + 1):
        for members in combinations(range(size), count):
            prior = Fraction(sum(sum(counts[s]) for s in members), total)
            for y in range(len(rows[0])):
                masses = [
                    sum(n * row[y] for n, row in zip(line, rows, strict=True))
                    for line in counts
                ]
                if not sum(masses):
                    continue
                posterior = Fraction(sum(masses[s] for s in members), sum(masses))
                up |= prior <= rho1 and posterior >= rho2
                down |= prior >= rho2 and posterior <= rho1
    return up, down


@st.composite
def cases(draw):
    secrets = draw(st.integers(2, 4))
    symbols = draw(st.integers(2, 3))
    cell = st.integers(1, 9)
    counts = [[draw(cell) for _ in range(symbols)] for _ in range(secrets)]
    rows = []
    for _ in range(symbols):
        cut = draw(st.integers(1, 9))
        rows.append([cut, 10 - cut])
    levels = sorted(draw(st.sets(st.integers(1, 19), min_size=2, max_size=2)))
    return counts, rows, [level / 20 for level in levels]


@given(cases())
@settings(max_examples=scaled(150), deadline=None)
def test_verdicts_are_those_of_plain_enumeration(case):
    """A breach up is P(Q) <= rho1 and P(Q|y) >= rho2; down the reverse; all sets Q are tried."""
    counts, rows, (rho1, rho2) = case
    joint = md.Joint.from_counts(counts)
    channel = md.Channel(joint.useful, ("A", "B"), rows, denominator=10, joint=joint)
    (verdict,) = breaches(channel, joint, rho1, rho2)
    expected = plain_breaches(counts, rows, Fraction(str(rho1)), Fraction(str(rho2)))
    assert (not verdict.upward.excluded, not verdict.downward.excluded) == expected
    assert verdict.decided == "exact"
    # The bounds hold for what was found.
    if verdict.upward.worst is not None:
        assert verdict.upward.worst.posterior <= verdict.upward.bound + 1e-12
        assert verdict.upward.worst.prior <= rho1 + 1e-12
    if verdict.downward.worst is not None:
        assert verdict.downward.worst.posterior >= verdict.downward.bound - 1e-12
        assert verdict.downward.worst.prior >= rho2 - 1e-12


def test_a_posterior_of_exactly_rho2_is_a_breach():
    joint = md.Joint.from_counts([[4, 1], [1, 4]])
    channel = md.Channel(joint.useful, ("A", "B"), [[1, 0], [0, 1]], denominator=1)
    (at,) = breaches(channel, joint, 0.5, 0.8)
    assert not at.excluded
    assert at.upward.worst.posterior == 0.8
    (above,) = breaches(channel, joint, 0.5, 0.81)
    assert above.excluded


def test_many_values_are_decided_by_bounds():
    counts = np.random.default_rng(1).integers(5, 9, (13, 3))
    joint = md.Joint.from_counts(counts)
    channel = md.design(joint, md.LIP(0.2)).channel
    (verdict,) = breaches(channel, joint, 0.1, 0.5)
    assert verdict.decided == "bounds"
    assert verdict.excluded
    (close,) = breaches(channel, joint, 0.1, 0.11)
    assert not close.excluded
    assert (
        "A privacy breach from 0.1 up to 0.11 is not excluded"
        in (breach_sentences([close])[0])
    )


def test_columns_that_are_protected_each_have_a_verdict_each():
    pa = pytest.importorskip("pyarrow")
    frame = pa.table(
        {
            "a": [str(i % 2) for i in range(60)],
            "b": [str(i % 3) for i in range(60)],
            "x": ["uvw"[(i * i) % 3] for i in range(60)],
        }
    )
    joint = md.Joint.from_table(
        frame, sensitive=["a", "b"], useful="x", protect_each=True
    )
    channel = md.design(joint, md.LIP(0.5)).channel
    assert len(breaches(channel, joint, 0.1, 0.9)) == 2


@pytest.mark.parametrize("levels", [(0.5, 0.1), (0.0, 0.5), (0.5, 1.0), (0.3, 0.3)])
def test_levels_that_are_none(levels):
    joint = md.Joint.from_counts([[4, 1], [1, 4]])
    channel = md.design(joint, md.LIP(0.2)).channel
    with pytest.raises(InputError, match=r"a breach needs 0 < rho1 < rho2 < 1"):
        breaches(channel, joint, *levels)
