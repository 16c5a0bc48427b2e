"""The propositions of docs/explanation/rows-theory.md on small random tables, in fractions, by
listing.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechdesign import ALIP, LDP, LIP, MaxLift, MinLift
from mechdesign.auditing.rows import audit_rows
from mechdesign.core.errors import NotPrivate
from mechdesign.mechanisms.row_request import RowRequest
from mechdesign.mechanisms.row_search import design_records
from mechdesign.tables.records import Records
from mechdesign.tables.variable import Variable
from tests.oracles import released_rows as oracle

TINY = 1e-12

NOTIONS = st.sampled_from(
    [LIP(0.3), LIP(1.0), ALIP(0.2, 0.7), ALIP(1.0, 0.1), MaxLift(0.4), MinLift(0.3)]
)


@st.composite
def tables(draw, groups=2, full=False):
    """Distinct rows of some groups with two or three symbols each, and two or three secrets."""
    secrets = draw(st.integers(2, 3))
    sizes = [draw(st.integers(2, 3)) for _ in range(groups)]
    cells = int(np.prod(sizes)) * secrets
    least = 1 if full else 0
    counts = draw(
        st.lists(st.integers(least, 9), min_size=cells, max_size=cells).filter(any)
    )
    array = np.array(counts).reshape(secrets, *sizes)
    for axis in range(array.ndim):  # every symbol occurs
        other = tuple(a for a in range(array.ndim) if a != axis)
        empty = np.flatnonzero(array.sum(axis=other) == 0)
        for place in empty.tolist():
            index = [0] * array.ndim
            index[axis] = place
            array[tuple(index)] += 1
    return records_of(array)


def records_of(array):
    at = np.argwhere(array > 0)
    order = np.lexsort([at[:, 0], *at[:, :0:-1].T])
    at = at[order]
    letters = "abcdefg"
    groups = tuple(
        Variable((f"c{k}",), tuple((f"{letters[k]}{i}",) for i in range(size)))
        for k, size in enumerate(array.shape[1:])
    )
    return Records(
        sensitive=Variable(("s",), tuple((f"s{i}",) for i in range(len(array)))),
        groups=groups,
        secrets=at[:, 0].copy(),
        codes=at[:, 1:].copy(),
        counts=tuple(int(array[tuple(cell)]) for cell in at),
    )


def designed(records, notion, **options):
    return design_records(records, RowRequest(notion=notion, time_limit=0.4, **options))


def check_sides(found, notion):
    limits = notion.limits
    for lift in found.values():
        if math.isfinite(limits.upper):
            assert float(lift) <= math.exp(limits.upper) * (1 + TINY)
        if math.isfinite(limits.lower):
            assert float(lift) >= math.exp(-limits.lower) * (1 - TINY)


@settings(max_examples=15)
@given(tables(), NOTIONS, st.sampled_from(["truth", "information"]))
def test_leaves_keep_the_promise_and_the_audit_says_what_they_use(
    records, notion, objective
):
    """Proposition 2: lifts of leaves are within the budgets; the audit finds the extreme ones
    exactly.
    """
    made = designed(records, notion, objective=objective)
    law = oracle.joint_law(made.channel, made.channel.table)
    assert sum(law.values()) == 1
    found = oracle.lifts(law)
    check_sides(found, notion)
    logs = [math.log(lift) if lift else -math.inf for lift in found.values()]
    assert made.achieved.eps_u == pytest.approx(max(logs), abs=1e-12)
    assert made.achieved.eps_l == pytest.approx(-min(logs), abs=1e-12)


@settings(max_examples=10)
@given(tables(groups=3), NOTIONS)
def test_parts_of_a_row_tell_no_more_than_the_row(records, notion):
    """Proposition 4, total promise: lifts of every subset of columns lie between those of the
    leaves.
    """
    made = designed(records, notion)
    law = oracle.joint_law(made.channel, made.channel.table)
    whole = oracle.lifts(law).values()
    for places in oracle.views(3):
        part = oracle.lifts(law, lambda y, at=places: tuple(y[i] for i in at))
        assert min(whole) <= min(part.values())
        assert max(part.values()) <= max(whole)


@settings(max_examples=10)
@given(tables(groups=3, full=True), NOTIONS)
def test_a_relative_promise_holds_within_strata_and_is_bounded_without_them(
    records, notion
):
    """Propositions 1 and 4, relative promise: views with all given columns keep it; others times
    the given lift.
    """
    made = designed(records, notion, given=1, promise="relative")
    law = oracle.joint_law(made.channel, made.channel.table)
    check_sides(oracle.lifts(law, given=lambda y: y[:1]), notion)
    for places in ((0, 1), (0, 2)):
        found = oracle.lifts(
            law, lambda y, at=places: tuple(y[i] for i in at), given=lambda y: y[:1]
        )
        check_sides(found, notion)
    if math.isfinite(notion.limits.upper):
        own = max(oracle.lifts(law, lambda y: y[:1]).values())
        for places in ((1,), (2,), (1, 2)):
            found = oracle.lifts(law, lambda y, at=places: tuple(y[i] for i in at))
            bound = math.exp(notion.limits.upper) * float(own) * (1 + TINY)
            assert float(max(found.values())) <= bound


@settings(max_examples=10)
@given(tables(groups=2, full=True), NOTIONS)
def test_a_total_promise_with_given_columns_holds_or_is_refused(records, notion):
    """Proposition 1, total promise: it is possible if and only if the given columns keep it."""
    shares = {}
    for row in range(len(records)):
        k = int(records.codes[row, 0])
        s = int(records.secrets[row])
        shares[s, k] = shares.get((s, k), 0) + records.counts[row]
    by_s = [sum(v for (s, _), v in shares.items() if s == t) for t in range(3)]
    by_k = [sum(v for (_, k), v in shares.items() if k == j) for j in range(3)]
    logs = [
        math.log(Fraction(v * records.total, by_s[s] * by_k[k]))
        for (s, k), v in shares.items()
    ]
    slack = min(notion.limits.upper - max(logs), notion.limits.lower + min(logs))
    if slack < 0:
        with pytest.raises(NotPrivate, match="by themselves"):
            designed(records, notion, given=1)
        return
    if slack < 1e-6:
        return
    made = designed(records, notion, given=1)
    check_sides(
        oracle.lifts(oracle.joint_law(made.channel, made.channel.table)), notion
    )


@settings(max_examples=10)
@given(tables(groups=2, full=True), st.sampled_from([0.2, 0.8]), st.booleans())
def test_local_differential_privacy_of_rows(records, epsilon, truth):
    """Proposition 7: P(y|s) <= e^epsilon P(y|s') for all leaves, hence for every part of a row."""
    objective = "truth" if truth else "information"
    made = designed(records, LDP(epsilon), objective=objective)
    law = oracle.joint_law(made.channel, made.channel.table)
    for places in oracle.views(2):
        found = oracle.lifts(law, lambda y, at=places: tuple(y[i] for i in at))
        for y in {y for _, y in found}:
            own = [lift for (_, other), lift in found.items() if other == y]
            assert float(max(own)) <= math.exp(epsilon) * float(min(own)) * (1 + TINY)


@settings(max_examples=10)
@given(tables(), NOTIONS, st.sampled_from(["truth", "information"]))
def test_figures_are_those_of_the_law_and_below_the_bound(records, notion, objective):
    """Proposition 3: a tree keeps no more than the bound for the crossed columns; nmi and truth are
    the law's.
    """
    made = designed(records, notion, objective=objective)
    law = oracle.joint_law(made.channel, made.channel.table)
    h = oracle.entropy(law)
    assert made.nmi == pytest.approx(oracle.information(law) / h, abs=1e-9)
    assert made.nmi <= made.upper_bound_nmi <= 1.0
    if objective == "truth":
        for k, name in enumerate(made.channel.released_columns):
            kept = sum(
                (mass for (_, x, y), mass in law.items() if x[k] == y[k]), Fraction(0)
            )
            assert made.truth[name] == pytest.approx(float(kept), abs=1e-12)


@settings(max_examples=10)
@given(tables(groups=2), st.integers(0, 2**20))
def test_the_audit_is_that_of_the_law_on_any_table(records, seed):
    """The auditor on other counts of the same rows agrees with listing."""
    made = designed(records, LIP(0.5))
    rng = np.random.default_rng(seed)
    table = made.channel.table
    other = Records(
        sensitive=table.sensitive,
        groups=table.groups,
        secrets=table.secrets,
        codes=table.codes,
        counts=tuple(rng.integers(1, 50, len(table)).tolist()),
    )
    found = oracle.lifts(oracle.joint_law(made.channel, other)).values()
    audit = audit_rows(made.channel, other)
    assert audit.achieved.eps_u == pytest.approx(math.log(max(found)), abs=1e-12)
    least = min(found)
    expected = -math.log(least) if least else math.inf
    assert audit.achieved.eps_l == pytest.approx(expected, abs=1e-12)
    inside = float(max(found)) <= math.exp(0.5) and float(least) >= math.exp(-0.5)
    assert audit.satisfied == inside
