"""Verdicts on averaged lifts, against enclosures made from the definitions: on, and one double
beside, every edge.
"""

from __future__ import annotations

import math
import threading
from fractions import Fraction

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mechdesign.auditing.matrix import audit_matrix
from mechdesign.auditing.measures import measure
from mechdesign.auditing.verdict import audit_on_table, failing_outputs
from mechdesign.channel.channel import Channel
from mechdesign.core.wording import order_of
from mechdesign.mechanisms.design_call import design
from mechdesign.notions import AlphaLift, Chi2Lift, L1Lift
from mechdesign.tables.joint import Joint
from mechdesign.tables.variable import Variable
from tests.oracles.intervals import Judge
from tests.profiles import scaled

NEXT_TO_ONE = math.nextafter(1.0, 2.0)
LARGEST = 1.7976931348623157e308
ORDERS = [
    NEXT_TO_ONE,
    1.0 + 1e-9,
    1.5,
    2.0,
    2.5,
    10.0,
    123.456,
    1e4,
    1e9,
    2.0**53,
    1e38,
    1e40,
    1e300,
    LARGEST,
]
KINDS = ["l1", "chi2", *ORDERS]
DENOMINATORS = [2**53, 1, 2, 3, 7, 10, 1000, 10**9 + 7, 2**53 - 111, 2**62]


def notion_of(kind, eps_l, eps_u):
    if kind == "l1":
        return L1Lift(eps_l, eps_u)
    return Chi2Lift(eps_l, eps_u) if kind == "chi2" else AlphaLift(eps_l, eps_u, kind)


def judge_of(counts, rows, kind):
    name, order = ("alpha", kind) if isinstance(kind, float) else (kind, math.nan)
    return Judge(
        counts, [[Fraction(value) for value in row] for row in rows], name, order
    )


@st.composite
def tables(draw):
    m = draw(st.integers(2, 4))
    n = draw(st.integers(2, 5))
    cell = st.integers(0, draw(st.sampled_from([2, 5, 1000, 10**9, 10**30])))
    counts = draw(
        st.lists(st.lists(cell, min_size=n, max_size=n), min_size=m, max_size=m)
    )
    for s in range(m):
        counts[s][s % n] += 1
    for x in range(n):
        counts[x % m][x] += 1
    return counts


@st.composite
def channels(draw, n):
    """Rows of one denominator: any, with tiny entries, or nearly all alike."""
    d = draw(st.sampled_from(DENOMINATORS))
    k = draw(st.integers(1, 4))
    style = draw(st.sampled_from(["any", "tiny", "alike"]))
    cut = st.integers(0, d)
    base = sorted(draw(st.lists(cut, min_size=k - 1, max_size=k - 1)))
    rows = []
    for _ in range(n):
        if style == "any":
            cuts = sorted(draw(st.lists(cut, min_size=k - 1, max_size=k - 1)))
        elif style == "tiny":
            steps = draw(st.lists(st.integers(0, 2), min_size=k - 1, max_size=k - 1))
            cuts = [min(d, sum(steps[: i + 1])) for i in range(k - 1)]
        else:
            moves = draw(st.lists(st.integers(-1, 1), min_size=k - 1, max_size=k - 1))
            cuts = sorted(
                min(d, max(0, c + move)) for c, move in zip(base, moves, strict=True)
            )
        rows.append([b - a for a, b in zip([0, *cuts], [*cuts, d], strict=True)])
    kept = [y for y in range(k) if any(row[y] for row in rows)]
    return [[row[y] for y in kept] for row in rows]


@st.composite
def cases(draw):
    counts = draw(tables())
    rows = draw(channels(len(counts[0])))
    return (
        counts,
        rows,
        draw(st.permutations(range(len(rows)))),
        draw(st.sampled_from(KINDS)),
    )


def channel_of(joint, rows, order):
    """The channel with its rows in another order than the symbols of the table."""
    useful = Variable(
        joint.useful.columns, tuple(joint.useful.symbols[x] for x in order)
    )
    outputs = tuple(f"y{k}" for k in range(len(rows[0])))
    return Channel(useful, outputs, [rows[x] for x in order], denominator=sum(rows[0]))


def edges(used):
    """Budgets at which a verdict may turn, and some far away."""
    near = (
        (used, math.nextafter(used, 0.0), math.nextafter(used, math.inf))
        if math.isfinite(used)
        else ()
    )
    return [*(eps for eps in near if 0.0 < eps <= 700.0), 5e-324, 0.3, 700.0, math.inf]


@settings(max_examples=scaled(150))
@given(cases(), st.data())
@example(([[2, 0], [0, 2]], [[8, 2], [5, 5]], [1, 0], 1e38), None)
@example(([[358, 0], [667, 171], [959, 777]], [[5, 5], [2, 8]], [0, 1], LARGEST), None)
def test_no_verdict_is_wrong_at_or_beside_the_edge(case, data):
    counts, rows, order, kind = case
    joint = Joint.from_counts(counts)
    channel = channel_of(joint, rows, order)
    judge = judge_of(counts, rows, kind)
    used = audit_on_table(channel, joint, notion_of(kind, 1.0, 1.0)).used
    assert judge.is_used(used.eps_l, inverse=True)
    assert judge.is_used(used.eps_u, inverse=False)
    for _ in range(4):
        if data is None:
            eps_l = max(5e-324, used.eps_l if math.isfinite(used.eps_l) else 1.0)
            eps_u = 0.3
        else:
            eps_l, eps_u = (
                data.draw(st.sampled_from(edges(each)))
                for each in (used.eps_l, used.eps_u)
            )
        if math.isinf(eps_l) and math.isinf(eps_u):
            continue
        notion = notion_of(kind, eps_l, eps_u)
        verdict = audit_on_table(channel, joint, notion)
        failing = judge.failing(eps_l, eps_u)
        assert verdict.satisfied == (failing == ())
        assert failing_outputs(channel, joint, notion) == failing
        assert not failing or int(verdict.worst.output[1:]) in failing
        matrix = [[Fraction(value, sum(row)) for value in row] for row in rows]
        outside = audit_matrix(matrix, joint, notion)
        assert (outside.satisfied, outside.used) == (verdict.satisfied, verdict.used)


@settings(max_examples=scaled(60))
@given(
    tables(),
    st.sampled_from(KINDS),
    st.sampled_from(["subset-merging", "complete-merging"]),
    st.data(),
)
def test_no_design_fails_its_budget_even_one_double_below_what_it_used(
    counts, kind, mechanism, data
):
    joint = Joint.from_counts(counts)
    eps_l = data.draw(st.sampled_from([0.01, 0.3, 2.0, math.inf]))
    eps_u = data.draw(st.sampled_from([1e-9, 0.05, 0.5]))
    for _ in range(2):
        found = design(joint, notion_of(kind, eps_l, eps_u), mechanism=mechanism)
        assert judge_of(counts, found.channel.rows, kind).failing(eps_l, eps_u) == ()
        eps_u = math.nextafter(
            audit_on_table(
                found.channel, joint, notion_of(kind, eps_l, eps_u)
            ).used.eps_u,
            0.0,
        )
        if eps_u <= 0.0:
            break


@pytest.mark.parametrize("order", [3.0, 1e4, 1e40, 1e80, 1e300, LARGEST])
def test_measures_of_a_huge_order_tend_to_those_of_an_infinite_one(order):
    """Norms grow with their order; a power that overflows must never read as no leakage at all."""
    joint = Joint.from_counts([[3, 1, 5], [2, 7, 1], [4, 4, 4]])
    rows = [[5, 2, 3], [1, 8, 1], [4, 0, 6]]
    channel = Channel(joint.useful, ("a", "b", "c"), rows, 10, joint)
    measured = measure(channel, joint, (2.0, order, math.inf), (2.0, order, math.inf))
    for output in measured.outputs:
        for by_order in (output.alpha_lift, output.alpha_lift_inverse):
            if math.isfinite(by_order[math.inf]):
                # Weighted by P(s), a norm of order a lies within a factor of P(s)^(1/a) below the largest value.
                assert (
                    by_order[math.inf] * 0.2 ** (1.0 / order)
                    <= by_order[order]
                    <= by_order[math.inf]
                )
                assert by_order[2.0] <= by_order[order]
    sibson, arimoto = (
        [
            measured.leakage[f"{name}_information[{order_of(each)}]"]
            for each in (2.0, order, math.inf)
        ]
        for name in ("sibson", "arimoto")
    )
    assert 0.0 < sibson[0] <= sibson[1] <= sibson[2] * (1.0 + 1e-15)
    # Arimoto's does not grow with the order, but both of its norms are within a factor of 3^(1/order) of a maximum.
    assert arimoto[1] == pytest.approx(
        arimoto[2], abs=3.0 * math.log(3.0) / order + 1e-15
    )


def test_measures_of_an_order_next_to_nought():
    """The Sibson information of order a is below a / (1 - a) times a constant as a goes to 0, and
    never negative.
    """
    joint = Joint.from_counts([[3, 1, 5], [2, 7, 1], [4, 4, 4]])
    channel = Channel(
        joint.useful, ("a", "b", "c"), [[5, 2, 3], [1, 8, 1], [4, 0, 6]], 10, joint
    )
    leakage = measure(channel, joint, (), (1e-300, 1e-3, 0.5)).leakage
    values = [
        leakage[f"sibson_information[{order_of(order)}]"]
        for order in (1e-300, 1e-3, 0.5)
    ]
    assert 0.0 < values[0] < 1e-298
    assert values == sorted(values)


def test_audits_in_many_threads_are_those_of_one():
    """The precision of the balls belongs to the process."""
    joint = Joint.from_counts([[3, 1, 5], [2, 7, 1], [4, 4, 4]])
    channel = Channel(
        joint.useful, ("a", "b", "c"), [[5, 2, 3], [1, 8, 1], [4, 0, 6]], 10
    )
    notions = [notion_of(kind, 0.4, 0.2) for kind in KINDS]
    alone = [audit_on_table(channel, joint, notion) for notion in notions]
    together = {}

    def work(number):
        together[number] = [
            audit_on_table(channel, joint, notion) for notion in notions
        ]

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [together[number] for number in range(4)] == [alone] * 4
