"""Extreme posteriors are those of the channel, rounded outwards."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import mechdesign as md
from mechdesign.auditing.leakages import belief_ranges
from mechdesign.channel.channel import Channel
from mechdesign.tables.joint import Joint


@given(
    st.lists(
        st.lists(st.integers(1, 10**20), min_size=3, max_size=3), min_size=2, max_size=4
    ),
    st.lists(st.integers(1, 10**6), min_size=3, max_size=3),
)
def test_no_posterior_lies_outside_and_the_next_doubles_are_inside(counts, weights):
    """low <= P(s|y) <= high for every output y, with less than one unit in the last place to spare."""
    joint = Joint.from_counts(counts)
    d = 10**6
    channel = Channel(
        joint.useful, ("u", "v"), [[w, d + 1 - w] for w in weights], d + 1
    )
    for row, (low, high) in zip(
        joint.counts, belief_ranges(channel, joint), strict=True
    ):
        posteriors = []
        for y in range(2):
            masses = [
                sum(c * channel.rows[x][y] for x, c in enumerate(line))
                for line in joint.counts
            ]
            mass = sum(c * channel.rows[x][y] for x, c in enumerate(row))
            posteriors.append(Fraction(mass, sum(masses)))
        assert Fraction(low) <= min(posteriors) <= max(posteriors) <= Fraction(high)
        assert low == pytest.approx(float(min(posteriors)), rel=3e-16)
        assert high == pytest.approx(float(max(posteriors)), rel=3e-16)


def test_what_is_ruled_out_and_what_is_certain():
    joint = Joint.from_counts([[5, 0, 3], [0, 5, 3]])
    channel = Channel(
        joint.useful, ("a", "b", "c"), [[1, 0, 0], [0, 1, 0], [0, 0, 1]], 1
    )
    assert (
        list(map(str, belief_ranges(channel, joint))) == ["(0.0, 1.0)"] * 2
    )  # no minus before a zero


def test_on_adult_beliefs_keep_to_the_promise(adult):
    design = md.design(adult, md.ALIP(0.5, 0.5))
    ranges = belief_ranges(design.channel, adult)
    for prior, (low, high) in zip(adult.p_s, ranges, strict=True):
        assert prior * 0.6065 < low < prior < high < prior * 1.6488
