"""The extremes over a confidence set against all vertices of small ones, and the verdict on
channels.
"""

from __future__ import annotations

import math
import random
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechdesign import InputError, Joint, audit
from mechdesign.auditing import population_extremes
from mechdesign.auditing.columns import Entries
from mechdesign.auditing.measures import measure
from mechdesign.auditing.population import audit_population, failing_outputs
from mechdesign.auditing.population_extremes import (
    OutputBounds,
    Population,
    Screen,
    largest_bound,
)
from mechdesign.auditing.population_promise import population_promise
from mechdesign.channel.channel import Channel
from mechdesign.core.balls import SCALE
from mechdesign.core.integers import IntegerRows
from mechdesign.notions import ALIP, LDP, LIP, L1Lift, MaxLift, MinLift, Notion
from mechdesign.tables.confidence import ConfidenceSet, confidence_set
from tests.cases.growth import assert_linear
from tests.oracles.population_vertices import lifts
from tests.profiles import scaled


@st.composite
def boxes(draw: st.DrawFn, n: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Intervals in units of 1/2^60 around a distribution of n symbols, zeros and points among them."""
    weights = draw(st.lists(st.integers(0, 6), min_size=n, max_size=n).filter(any))
    cells = [SCALE * weight // sum(weights) for weight in weights]
    cells[-1] += SCALE - sum(cells)
    down = draw(st.lists(st.integers(0, 4), min_size=n, max_size=n))
    up = draw(st.lists(st.integers(0, 4), min_size=n, max_size=n))
    lower = tuple(
        max(0, cell - d * SCALE // 20) for cell, d in zip(cells, down, strict=True)
    )
    upper = tuple(
        min(SCALE, cell + u * SCALE // 20) for cell, u in zip(cells, up, strict=True)
    )
    return lower, upper


@settings(max_examples=scaled(40), deadline=None)
@given(st.data(), st.integers(2, 3), st.integers(2, 4))
def test_extremes_are_those_of_all_vertices(
    data: st.DataObject, size: int, n: int
) -> None:
    """max and min of l(s, y) and of P(y|s) / P(y|t) over the set, equal to those over its vertices."""
    rows = [data.draw(boxes(n)) for _ in range(size)]
    shares = data.draw(boxes(size))
    w = data.draw(st.lists(st.integers(0, 5), min_size=n, max_size=n).filter(any))
    exact = [
        tuple(tuple(Fraction(end, SCALE) for end in side) for side in row)
        for row in (*rows, shares)
    ]
    chosen = ConfidenceSet(
        0.9, tuple(r[0] for r in rows), tuple(r[1] for r in rows), *exact[-1]
    )
    at = [x for x in range(n) if w[x]]
    found = Population(chosen).extremes((at, [w[x] for x in at]))
    high = low = ratio = Fraction(0)
    infinite = [False, False]
    for given_s, mass in lifts(exact[:-1], exact[-1], [Fraction(v) for v in w]):  # type: ignore[arg-type]
        if mass == 0:
            infinite[0] |= found.high.below == 0
            continue
        high = max(high, *(value / mass for value in given_s))
        infinite[0] |= min(given_s) == 0
        if min(given_s):
            low = max(low, *(mass / value for value in given_s))
        for s, value in enumerate(given_s):
            for t, other in enumerate(given_s):
                if s != t and other:
                    ratio = max(ratio, value / other)
    if infinite[0]:
        return  # quotients by zero are covered below
    assert Fraction(found.high.above, found.high.below) == high
    assert Fraction(found.low.above, found.low.below) == low
    assert Fraction(found.ratio.above, found.ratio.below) == ratio


def _channel(joint: Joint, rows: list[list[int]]) -> Channel:
    outputs = tuple(f"y{k}" for k in range(len(rows[0])))
    return Channel(joint.useful, outputs, IntegerRows.of(rows), sum(rows[0]), joint)


JOINT = Joint.from_counts([[400, 300, 300], [200, 500, 300]])
CHANNEL = _channel(JOINT, [[6, 4], [4, 6], [5, 5]])

NOTIONS: list[Notion] = [LDP(0.3), LIP(0.2), ALIP(0.1, 0.3), MaxLift(0.2), MinLift(0.2)]


@settings(max_examples=scaled(60), deadline=None)
@given(st.data(), st.integers(1, 3), st.integers(2, 5), st.integers(1, 6))
def test_the_largest_extremes_are_among_the_contenders(
    data: st.DataObject, size: int, n: int, outputs: int
) -> None:
    """max over y of each extreme is that of all outputs, of equal ones the first; no bound in
    floating point is below the exact quotient.
    """
    rows = [data.draw(boxes(n)) for _ in range(size)]
    shares = [
        tuple(Fraction(end, SCALE) for end in side) for side in data.draw(boxes(size))
    ]
    chosen = ConfidenceSet(
        0.9, tuple(r[0] for r in rows), tuple(r[1] for r in rows), shares[0], shares[1]
    )
    entries = st.lists(st.integers(0, 2**53), min_size=n, max_size=n).filter(any)
    columns: list[Entries] = []
    for _ in range(outputs):
        w = data.draw(entries)
        at = [x for x in range(n) if w[x]]
        columns.append((at, [w[x] for x in at]))
    population = Population(chosen)
    exact = [population.extremes(column, y) for y, column in enumerate(columns)]
    for kind, largest in enumerate(population.worst(columns)):
        assert largest == largest_bound([extremes[kind] for extremes in exact])
    screen = population.screen
    for column, extremes in zip(columns, exact, strict=True):
        for bound, quotient in zip(
            screen.largest_lifts(*column), extremes, strict=True
        ):
            if not quotient.below:
                assert bound == math.inf
            elif math.isfinite(bound):
                assert Fraction(*bound.as_integer_ratio()) >= Fraction(
                    *quotient.quotient
                )


def test_a_bound_looks_at_the_symbols_of_its_output(monkeypatch) -> None:
    """However many others there are: they take what is left, and add nothing."""
    looked_at: list[int] = []
    filled = Screen._filled

    def counted(self: Screen, w: Any, order: Any) -> Any:
        looked_at.append(len(order))
        return filled(self, w, order)

    monkeypatch.setattr(Screen, "_filled", counted)
    for symbols in (20, 40, 80):
        looked_at.clear()
        counts = [[50 + (s + x) % 7 for x in range(symbols)] for s in range(3)]
        joint = Joint.from_counts(counts)
        screen = Population(confidence_set(joint)).screen
        found = screen.largest_lifts((4, 2, 7), (5, 9, 1))
        assert all(math.isfinite(bound) for bound in found)
        # The output's own symbols and one of the others.
        assert looked_at == [4]


def test_few_outputs_of_many_are_computed_in_integers(monkeypatch) -> None:
    """Of the outputs of a column with random answers, whose extremes lie apart."""
    rng = random.Random(1)
    population = Population(confidence_set(many_symbols(40)))
    columns: list[Entries] = []
    for _ in range(400):
        columns.append(((0, 1, 2), [rng.randrange(1, 2**53) for _ in range(3)]))
    calls: list[int] = []
    bounds_of = population.bounds

    def counted(column: Entries, y: int = 0) -> OutputBounds:
        calls.append(y)
        return bounds_of(column, y)

    monkeypatch.setattr(population, "bounds", counted)
    population.worst(columns)
    assert len(calls) <= 12


@pytest.mark.skipif(
    np.finfo(np.longdouble).eps > 1e-18, reason="long doubles are doubles here"
)
def test_dense_outputs_that_nearly_tie_are_told_apart(monkeypatch) -> None:
    """Each gives one symbol far more than the others, so that P(y|s) is a small part of that."""
    size = 400
    population = Population(confidence_set(Joint.from_counts([[9] * size] * 3)))
    columns: list[Entries] = []
    for x in range(size):
        values = [1 << 42] * size
        values[x] = (1 << 52) + 16 * x
        columns.append((range(size), values))
    calls: list[int] = []
    bounds_of = population.bounds

    def counted(column: Entries, y: int = 0) -> OutputBounds:
        calls.append(y)
        return bounds_of(column, y)

    monkeypatch.setattr(population, "bounds", counted)
    assert population.worst(columns).high.y == size - 1
    assert len(calls) <= 12


def many_symbols(size: int) -> Joint:
    """A table of many sensitive symbols, frequent and rare ones."""
    counts = [[1 + s * s % 7, 1 + 5 * s % 11, s % 3] for s in range(size)]
    return Joint.from_counts(counts, sensitive="s", useful="x")


def test_means_of_many_symbols_are_those_of_each_for_itself() -> None:
    """The knapsack filled anew for every symbol, with the others at the other end."""
    chosen = confidence_set(many_symbols(40))
    population = Population(chosen)
    column = ((0, 1, 2), (3, 1, 7))
    most, least = population.output(column)
    bounds = population.bounds(column)

    def mean(values: list[int]) -> Fraction:
        total = Fraction(0)
        room = Fraction(1)
        for low, value in zip(chosen.share_lower, values, strict=True):
            total += low * value
            room -= low
        for t in sorted(range(len(values)), key=values.__getitem__):
            taken = min(room, chosen.share_upper[t] - chosen.share_lower[t])
            total += taken * values[t]
            room -= taken
        return total

    for s in range(len(most)):
        lowest = mean([*least[:s], most[s], *least[s + 1 :]])
        assert Fraction(*bounds.highs[s].quotient) == most[s] / lowest
        highest = -mean([-v for v in (*most[:s], least[s], *most[s + 1 :])])
        if least[s]:
            assert Fraction(*bounds.lows[s].quotient) == highest / least[s]


def test_many_symbols_are_as_much_work_as_they_are(monkeypatch) -> None:
    works: list[int] = []
    for size in (100, 200, 400):
        elements = 0

        def counted(values, **options):
            nonlocal elements
            ordered = sorted(values, **options)
            elements += len(ordered)
            return ordered

        population = Population(confidence_set(many_symbols(size)))
        with monkeypatch.context() as patch:
            patch.setattr(population_extremes, "sorted", counted, raising=False)
            population.bounds(((0, 1, 2), (3, 1, 7)))
        works.append(elements)
    assert_linear(works)


@pytest.mark.parametrize("notion", NOTIONS, ids=lambda n: n.name)
def test_the_verdict_turns_where_the_achieved_budget_lies(notion: Notion) -> None:
    """Satisfied at the achieved budgets, not at the doubles below them; worse than on the table
    alone.
    """
    chosen = confidence_set(JOINT, 0.95)
    achieved = audit_population(CHANNEL, JOINT, notion, chosen).achieved
    here = audit(CHANNEL, JOINT, notion).achieved
    assert achieved.eps_u > here.eps_u
    assert achieved.eps_l > here.eps_l
    assert achieved.eps_ldp > here.eps_ldp

    def less(budget: float) -> float:
        return math.nextafter(budget, 0.0)

    pairs: dict[str, tuple[Notion, Notion]] = {
        "ldp": (LDP(achieved.eps_ldp), LDP(less(achieved.eps_ldp))),
        "lip": (
            LIP(max(achieved.eps_l, achieved.eps_u)),
            LIP(less(max(achieved.eps_l, achieved.eps_u))),
        ),
        "alip": (
            ALIP(achieved.eps_l, achieved.eps_u),
            ALIP(less(achieved.eps_l), achieved.eps_u),
        ),
        "max-lift": (MaxLift(achieved.eps_u), MaxLift(less(achieved.eps_u))),
        "min-lift": (MinLift(achieved.eps_l), MinLift(less(achieved.eps_l))),
    }
    kept, broken = pairs[notion.name]
    assert audit_population(CHANNEL, JOINT, kept, chosen).satisfied
    verdict = audit_population(CHANNEL, JOINT, broken, chosen)
    assert not verdict.satisfied
    assert verdict.worst.output in CHANNEL.outputs
    failing = failing_outputs(CHANNEL, JOINT, broken, chosen)
    assert verdict.worst.output in [CHANNEL.outputs[y] for y in failing]
    assert not failing_outputs(CHANNEL, JOINT, kept, chosen)


def test_a_point_set_gives_the_verdict_of_the_table() -> None:
    """Intervals of width zero and known shares: the same extremes as the audit of the table."""
    joint = Joint.from_counts([[1, 2, 5], [4, 3, 1]])
    rows = tuple(tuple(c * SCALE // 8 for c in row) for row in joint.counts)
    half = (Fraction(1, 2),) * 2
    channel = _channel(joint, [[6, 4], [4, 6], [5, 5]])
    there = audit_population(
        channel, joint, LIP(1.0), ConfidenceSet(0.5, rows, rows, half, half)
    )
    here = audit(channel, joint, LIP(1.0))
    assert there.achieved == here.achieved
    assert there.worst == here.worst


def test_a_constant_output_is_private_for_every_population() -> None:
    joint = Joint.from_counts([[1, 0], [0, 1]])
    channel = _channel(joint, [[1], [1]])
    verdict = audit_population(channel, joint, LDP(0.01), confidence_set(joint))
    assert verdict.satisfied
    assert verdict.achieved == audit(channel, joint, LDP(0.01)).achieved


def test_an_output_that_may_never_come_from_a_symbol_has_no_finite_budget() -> None:
    joint = Joint.from_counts([[9, 0], [5, 4]])
    channel = _channel(joint, [[1, 0], [0, 1]])
    achieved = audit_population(
        channel, joint, LDP(1.0), confidence_set(joint)
    ).achieved
    assert achieved.eps_ldp == math.inf
    assert achieved.eps_l == math.inf
    assert math.isfinite(achieved.eps_u)


def test_rows_may_stand_in_another_order() -> None:
    turned = Joint.from_counts(
        [row[::-1] for row in JOINT.counts], useful_labels=["x2", "x1", "x0"]
    )
    chosen = confidence_set(turned)
    one = audit_population(CHANNEL, turned, LDP(0.3), chosen)
    other = audit_population(CHANNEL, JOINT, LDP(0.3), confidence_set(JOINT))
    assert one.achieved == other.achieved


def test_budgets_of_single_symbols_are_judged_by_their_own() -> None:
    """No verdict is by the loosest budget of any symbol."""
    joint = Joint.from_counts([[60, 40], [45, 55]])
    rows = IntegerRows.of([[3, 2], [2, 3]])
    channel = Channel(joint.useful, ("y", "z"), rows, 5, joint)
    whole = confidence_set(joint, estimate_shares=True)
    used = audit_population(channel, joint, ALIP(2.0, 2.0), whole).achieved
    loose = (used.eps_l, used.eps_u)
    tight = (0.5 * used.eps_l, 0.5 * used.eps_u)

    def verdict(common, own):
        notion = ALIP(*common).with_budgets({"s0": own})
        return audit_population(channel, joint, notion, whole)

    assert verdict(loose, loose).satisfied
    of_first = verdict(loose, tight)
    assert not of_first.satisfied
    assert of_first.worst.sensitive == "s0"
    of_second = verdict(tight, loose)
    assert not of_second.satisfied
    assert of_second.worst.sensitive == "s1"
    assert of_second.achieved == used


def test_notions_on_averages_are_refused() -> None:
    with pytest.raises(
        InputError,
        match="l1 bounds averages over the sensitive symbols, for which confidence",
    ):
        audit_population(CHANNEL, JOINT, L1Lift(math.inf, 0.5), confidence_set(JOINT))


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["x0", "x1", "z"], "no useful symbol 'x2'"),
        (["x0", "x1", "x2", "x3"], "no row for the useful symbol 'x3'"),
    ],
)
def test_other_symbols_are_refused(labels: list[str], message: str) -> None:
    other = Joint.from_counts(
        [[4] * len(labels), [5] * len(labels)], useful_labels=labels
    )
    with pytest.raises(InputError, match=message):
        audit_population(CHANNEL, other, LDP(1.0), confidence_set(other))


@settings(max_examples=scaled(40), deadline=None)
@given(st.data(), st.integers(2, 4), st.integers(2, 6))
def test_the_screen_loses_no_worst_output(
    data: st.DataObject, size: int, n: int
) -> None:
    """`worst`, which looks at few outputs exactly, against the extremes of each of them."""
    rows = [data.draw(boxes(n)) for _ in range(size)]
    low, high = data.draw(boxes(size))
    chosen = ConfidenceSet(
        0.9,
        tuple(r[0] for r in rows),
        tuple(r[1] for r in rows),
        tuple(Fraction(end, SCALE) for end in low),
        tuple(Fraction(end, SCALE) for end in high),
    )
    column = st.lists(st.integers(0, 9), min_size=n, max_size=n).filter(any)
    columns = [
        ([x for x in range(n) if w[x]], [w[x] for x in range(n) if w[x]])
        for w in data.draw(st.lists(column, min_size=1, max_size=6))
    ]
    population = Population(chosen)
    one = population.worst(columns)
    every = [population.extremes(c, y) for y, c in enumerate(columns)]
    for side in range(3):
        best = every[0][side]
        for extremes in every[1:]:
            bound = extremes[side]
            best = (
                bound if bound.above * best.below > best.above * bound.below else best
            )
        assert one[side].above * best.below == best.above * one[side].below


def test_one_audit_judges_what_the_channel_was_designed_for() -> None:
    """A channel designed with confidence is judged on the set of whatever counts it is held
    against.
    """
    from mechdesign import design

    channel = design(
        JOINT, LIP(0.5), mechanism="subset-merging", confidence=0.95
    ).channel
    assert audit(channel, JOINT, LIP(0.5)).satisfied
    few = Joint.from_counts([[c // 10 for c in row] for row in JOINT.counts])
    found = audit(channel, few, LIP(0.5))
    assert found.achieved == audit(channel, JOINT, LIP(0.5)).achieved
    assert (
        found.satisfied
        is audit_population(channel, few, LIP(0.5), confidence_set(few)).satisfied
    )
    plain = design(JOINT, LIP(0.5), mechanism="subset-merging").channel
    assert audit(plain, few, LIP(0.5)).satisfied
    assert not audit(plain, few, LIP(0.5), population=confidence_set(few)).satisfied


def test_a_wider_table_has_the_populations_of_the_columns_that_are_released() -> None:
    """A table may have more useful columns than the channel: the set is that of the released ones
    alone.
    """
    whole = Joint.from_counts(
        [[40, 3, 30, 9], [5, 50, 8, 33]], useful_labels=[("p", "1"), ("q", "1"), ("q", "2"), ("p", "2")],
        useful=("a", "b"),
    )  # fmt: skip
    narrow = whole.releasing("a")
    channel = replace(_channel(narrow, [[3, 1], [1, 3]]), useful=narrow.useful)
    for notion in (LIP(0.2), LIP(0.8), LDP(1.0)):
        chosen = confidence_set(narrow)
        expected = audit_population(channel, narrow, notion, chosen)
        assert audit_population(channel, whole, notion, chosen) == expected
        assert failing_outputs(channel, whole, notion, chosen) == failing_outputs(
            channel, narrow, notion, chosen
        )
    assert population_promise(channel, whole) == population_promise(channel, narrow)
    assert measure(channel, whole) == measure(channel, narrow)
    with pytest.raises(InputError, match="that of another table"):
        audit(channel, whole, LIP(1.0), population=confidence_set(whole))


def test_an_output_is_begun_with_as_many_symbols_as_the_one_before_needed() -> None:
    """And not with the next power of two: of 60 secrets and 813 symbols half of the time."""
    screen = Population(confidence_set(Joint.from_counts([[9] * 300] * 3))).screen
    places = np.arange(300)
    w = np.linspace(2.0, 1.0, 300)
    screen._filled(w, places)
    masses = np.cumsum(screen._width, axis=1)
    needed = int((masses < screen._room[:, None]).sum(axis=1).max())
    assert population_extremes.FIRST < needed < 200
    assert screen._first == needed + population_extremes.FIRST


@given(
    st.integers(1, 2**53),
    st.one_of(st.integers(1, 9), st.integers(1, 2**53)),
    st.integers(0, 3),
    st.data(),
)
def test_bounds_of_an_output_with_one_larger_entry_hold(
    common: int, more: int, own: int, data: st.DataObject
) -> None:
    rows = [data.draw(boxes(4)) for _ in range(2)]
    lower, upper = zip(*rows, strict=True)
    shares = ((Fraction(1, 3),) * 2, (Fraction(2, 3),) * 2)
    population = Population(ConfidenceSet(0.9, lower, upper, *shares))
    values = [common] * 4
    values[own] += more
    exact = population.extremes((range(4), values))
    assert population_extremes._own_place(values) == own
    for bound, extreme in zip(
        population.screen.largest_lifts(range(4), values), exact, strict=True
    ):
        # A bound that is infinite says nothing.
        if math.isfinite(bound):
            quotient = Fraction(*extreme.quotient)
            assert quotient <= Fraction(*bound.as_integer_ratio())
            assert float(bound) <= float(quotient) * (1.0 + 1e-9)


def test_outputs_with_one_larger_entry_are_not_sorted(monkeypatch) -> None:
    """5,000 outputs of a channel that keeps or draws anew took 13 s."""
    population = Population(confidence_set(Joint.from_counts([[9, 8, 7, 9]] * 3)))
    monkeypatch.setattr(Screen, "_extremes", None)
    columns: list[Entries] = []
    for x in range(4):
        values = [10**9] * 4
        values[x] += 10**6 * (x + 1)
        columns.append((range(4), values))
    assert population.worst(columns).high.y == 3
    # An output with one smaller entry is looked at as a whole.
    assert population_extremes._own_place([5, 5, 4, 5]) is None
    assert population_extremes._own_place([5, 5, 5, 5]) is None
    assert population_extremes._own_place([5, 6, 7, 5]) is None
