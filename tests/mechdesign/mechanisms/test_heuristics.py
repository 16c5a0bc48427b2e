"""Watchdog mechanisms as designs: always exactly private, with the published utility on Adult."""

from __future__ import annotations

import math
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechdesign.core.errors import InputError
from mechdesign.mechanisms import heuristics
from mechdesign.mechanisms.merged_sets import Merging
from mechdesign.mechanisms.rules import Rules
from mechdesign.mechanisms.search_options import STANDARD, Search
from mechdesign.notions import ALIP, LDP, LIP, MaxLift, MinLift
from mechdesign.tables.joint import Joint
from tests.cases.designs import complete_merging, merged_by_risk, subset_merging
from tests.profiles import scaled

NOTIONS = {
    "alip": lambda e: ALIP.from_epsilon(e),
    "alip-0.65": lambda e: ALIP.from_epsilon(e, 0.65),
    "alip-upper": lambda e: ALIP(math.inf, e),
    "alip-lower": lambda e: ALIP(e, math.inf),
    "lip": LIP,
    "ldp": LDP,
    "max-lift": MaxLift,
    "min-lift": MinLift,
}

DIGITS = Context(prec=80)


def at_most_exp(ratio, budget):
    """Whether ratio <= e^budget, with 80 digits of e^budget: enough for integers of this size."""
    if math.isinf(budget):
        return True
    power = Fraction(Decimal(budget).exp(DIGITS))
    assert abs(ratio - power) > power / 10**70  # else this oracle cannot decide
    return ratio <= power


def violations(channel, joint, limits):
    """Every violated limit of the channel, from counts and rows alone, in rationals."""
    total, rows = joint.total, joint.sensitive_counts
    found = []
    for y, label in enumerate(channel.outputs):
        weights = [row[y] for row in channel.rows]
        masses = [
            sum(c * w for c, w in zip(counts, weights, strict=True))
            for counts in joint.counts
        ]
        lifts = [
            Fraction(m * total, r * sum(masses))
            for m, r in zip(masses, rows, strict=True)
        ]
        low, high = min(lifts), max(lifts)
        if high != 1 and not at_most_exp(high, limits.upper):
            found.append((label, "upper"))
        if (
            low != 1
            and limits.lower < math.inf
            and (low == 0 or not at_most_exp(1 / low, limits.lower))
        ):
            found.append((label, "lower"))
        if (
            low != high
            and limits.ratio < math.inf
            and (low == 0 or not at_most_exp(high / low, limits.ratio))
        ):
            found.append((label, "ratio"))
    return found


@st.composite
def joints(draw):
    """Tables from 2 x 2 to 6 x 14: tiny or large counts, near-tied columns, zero cells."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    m, n = int(rng.integers(2, 7)), int(rng.integers(2, 15))
    scale = draw(st.sampled_from([3, 50, 10**6]))
    counts = rng.integers(0, scale + 1, (m, n)) * (
        rng.random((m, n)) < draw(st.sampled_from([0.5, 0.8, 1.0]))
    )
    if draw(st.booleans()):  # near ties: every column almost proportional to the first
        counts = np.outer(
            rng.integers(1, 5, m), rng.integers(1, 5, n)
        ) * scale + rng.integers(0, 2, (m, n))
    counts[rng.integers(0, m, n), np.arange(n)] += 1
    counts[np.arange(m), rng.integers(0, n, m)] += 1
    return Joint.from_counts(counts)


@settings(max_examples=scaled(500))
@given(joints(), st.sampled_from(sorted(NOTIONS)), st.floats(0.1, 8.0), st.booleans())
def test_never_a_violation(joint, name, epsilon, subset):
    """Any table, notion and budget: the integers satisfy the notion, by an independent exact check."""
    notion = NOTIONS[name](epsilon)
    design = (subset_merging if subset else complete_merging)(joint, notion)
    assert design.verified
    assert violations(design.channel, joint, notion.limits) == []
    assert set(design.borrowed) <= set(joint.useful.names)
    assert design.repaired or not design.borrowed


@given(joints(), st.floats(0.1, 8.0))
def test_subset_merging_keeps_at_least_what_complete_merging_keeps(joint, epsilon):
    """Splitting the merged set cannot lose information; holds wherever neither needed its repair."""
    one, other = (
        subset_merging(joint, LDP(epsilon)),
        complete_merging(joint, LDP(epsilon)),
    )
    if not one.repaired and not other.repaired:
        assert one.nmi >= other.nmi - 1e-12


@pytest.mark.parametrize(
    ("mechanism", "epsilon", "nmi"),
    [
        (complete_merging, 1.0, 0.2868),
        (complete_merging, 2.0, 0.7346),
        (subset_merging, 1.0, 0.7296),
    ],
)
def test_published_figures_on_adult(adult, mechanism, epsilon, nmi):
    """Zarrabian et al. 2023, Figures 3a and 7a."""
    design = mechanism(adult, ALIP.from_epsilon(epsilon))
    assert design.nmi == pytest.approx(nmi, abs=5e-5)
    assert not design.repaired


def test_the_printed_risk_of_algorithm_1_merges_everything_risky_on_adult(adult):
    """Lambda + Psi, as the paper prints it, gives 0.2868 where its Figure 7a shows 0.73."""
    printed = merged_by_risk(adult, ALIP.from_epsilon(1.0), "subset-merging", "sum")
    assert printed.nmi == pytest.approx(0.2868, abs=5e-5)
    ratio = merged_by_risk(adult, ALIP.from_epsilon(1.0), "subset-merging", "log-ratio")
    assert ratio.nmi == pytest.approx(0.7344, abs=5e-5)


def test_an_unknown_risk_is_refused(adult):
    with pytest.raises(
        InputError, match=r"risk \('psi'\) must be one of auto, log-max, log-ratio, sum"
    ):
        merged_by_risk(adult, LDP(1.0), "subset-merging", "psi")


def test_a_design_says_what_it_is(adult):
    design = subset_merging(adult, LDP(1.0))
    assert (design.mechanism, design.method, design.fallback_from) == (
        "subset-merging",
        "partition",
        None,
    )
    assert design.certificate.upper_bound_nmi is None
    assert design.certificate.gap_nmi is None
    assert design.achieved.eps_ldp <= 1.0
    assert design.nmi == pytest.approx(design.mutual_information / design.entropy)
    record = design.channel.record
    assert record.notion == {"name": "ldp", "epsilon": 1.0}
    assert record.utility["nmi"] == design.nmi
    assert record.achieved["eps_ldp"] == design.achieved.eps_ldp
    assert design.channel.joint is adult


def test_a_merged_output_is_labelled_by_its_members_and_a_lone_symbol_by_its_name():
    joint = Joint.from_counts(
        [[30, 0, 30, 0, 40], [0, 20, 0, 20, 40]], useful_labels=list("abcde")
    )
    assert subset_merging(joint, LDP(1.0)).channel.outputs == ("{a, b}", "{c, d}", "e")


def test_a_repair_says_what_it_borrowed():
    """One risky symbol: nothing risky is left to merge it with, so it borrows the cheaper helper."""
    joint = Joint.from_counts(
        [[90, 80, 300, 50], [10, 120, 300, 50]], useful_labels=list("abcd")
    )
    design = subset_merging(joint, LDP(1.0))
    assert design.repaired
    assert design.borrowed == ("d",)
    assert design.channel.outputs == ("{a, d}", "b", "c")


def test_one_sensitive_symbol_publishes_everything():
    joint = Joint.from_counts([[1, 2, 3]])
    for mechanism in ("subset-merging", "complete-merging"):
        _, design = heuristics.merging(
            mechanism, Rules(joint, LIP(1e-12)), Search(), STANDARD
        )
        assert design.nmi == 1.0


def test_independent_columns_are_published_at_any_budget():
    """MergedSets are exactly 1, within floating-point error of the limit: the exact audit decides."""
    joint = Joint.from_counts(np.outer([1, 2, 7], [3, 5, 11, 13]))
    assert subset_merging(joint, ALIP(1e-300, 1e-300)).nmi == 1.0


def test_a_lift_of_exactly_two_is_decided_exactly():
    """log 2 rounded down forbids a lift of 2, and the next double allows it."""
    joint = Joint.from_counts([[2, 1, 1], [0, 2, 2]])
    allowed = math.log(2.0)
    while Fraction(Decimal(allowed).exp(DIGITS)) < 2:
        allowed = math.nextafter(allowed, math.inf)
    while Fraction(Decimal(math.nextafter(allowed, 0.0)).exp(DIGITS)) >= 2:
        allowed = math.nextafter(allowed, 0.0)
    assert max(max(row) for row in joint.lift) == 2.0
    assert subset_merging(joint, MaxLift(allowed)).nmi == 1.0
    assert subset_merging(joint, MaxLift(math.nextafter(allowed, 0.0))).nmi < 1.0


def test_a_wrong_partition_ends_in_a_constant(adult, monkeypatch):
    """Even if the partition were wrong, nothing that fails the exact audit would come out."""
    singles = Merging(tuple((x,) for x in range(15)), repaired=False, borrowed=())
    monkeypatch.setattr(
        heuristics.merged_sets, "merge_subsets", lambda *_, **__: singles
    )
    design = subset_merging(adult, LIP(0.5))
    assert len(design.channel.outputs) == 1
    assert design.nmi == 0.0
    assert design.repaired


def test_large_tables_take_no_rescans():
    """2,000 symbols of 15 sensitive values: every symbol is looked at once per merge, so this ends at once."""
    rng = np.random.default_rng(0)
    joint = Joint.from_counts(rng.integers(1, 1000, (15, 2000)))
    design = subset_merging(joint, ALIP.from_epsilon(1.0))
    assert 0.7 < design.nmi < 1.0
