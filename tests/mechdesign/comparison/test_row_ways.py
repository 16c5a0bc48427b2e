"""Rows of the table beside the same with free frequencies and randomised response."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mechdesign as md
from mechdesign.comparison import settings
from mechdesign.comparison.rows import Case
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


def compared(frame, release=("a", "b"), given=(), epsilon=0.4, **options):
    options = {"notions": ["lip"], **options}
    return md.compare(
        frame,
        sensitive="secret",
        release=release,
        given=given,
        epsilons=[epsilon],
        **options,
    )


def designed(frame, release=("a", "b"), **options):
    return md.design(frame, md.LIP(0.4), sensitive="secret", release=release, **options)


@pytest.mark.parametrize(
    ("given", "promise"), [((), "total"), (("k",), "total"), (("k",), "relative")]
)
def test_all_ways_keep_the_promise_and_free_frequencies_keep_most_cells(
    frame, given, promise
):
    result = compared(frame, given=given, promise=promise, epsilon=0.9)
    names = ["truth", "truth-free", "randomised-response"]
    assert [row.mechanism for row in result.rows] == names
    plan, free, response = result.rows
    assert all(row.satisfied for row in result.rows)
    for row in result.rows:
        assert max(row.max_log_lift, -row.min_log_lift) <= 0.9
    assert free.truth >= plan.truth - 1e-4
    assert plan.truth > response.truth
    assert plan.total_variation == 0.0
    design = md.design(
        frame,
        md.LIP(0.9),
        sensitive="secret",
        release=["a", "b"],
        given=given,
        promise=promise,
        smallest_group=1,
    )
    assert plan.nmi == pytest.approx(design.nmi)
    assert plan.truth == pytest.approx(sum(design.truth.values()) / 2)


def test_figures_are_those_of_the_law(frame):
    plan, *_ = compared(frame).rows
    law = oracle.joint_law(designed(frame, smallest_group=1).channel)
    mean = sum(
        mass * Fraction(sum(a == b for a, b in zip(x, y, strict=True)), 2)
        for (_, x, y), mass in law.items()
    )
    assert plan.truth == pytest.approx(float(mean), abs=1e-9)
    pairs = oracle.summed(law, lambda entry: entry[1:])
    of_x = oracle.summed(law, lambda entry: entry[1])
    of_y = oracle.summed(law, lambda entry: entry[2])
    information = sum(
        float(mass) * math.log(mass / (of_x[x] * of_y[y]))
        for (x, y), mass in pairs.items()
    )
    entropy = -sum(float(mass) * math.log(mass) for mass in of_x.values())
    assert plan.nmi == pytest.approx(information / entropy, abs=1e-9)


def test_randomised_response_stays_as_often_as_the_promise_allows(frame):
    """P(x stays) = t + (1 - t) P(x): a little more breaks the promise."""
    request = md.DesignRequest(
        md.Joint.from_table(frame, sensitive="secret", useful=["a", "b"]),
        md.LIP(0.4),
        release=["a", "b"],
    )
    joint = request.joint
    design = settings.randomised_response(request)
    channel = design.channel
    assert design.verified
    x = joint.useful.symbols[0]
    mass = joint.p_x[0]
    share = (float(channel.distribution(x)[x]) - mass) / (1.0 - mass)
    more = settings._staying(joint, min(1.0, share + 1e-5), request)
    assert md.audit(channel, joint, md.LIP(0.4)).satisfied
    assert not md.audit(more, joint, md.LIP(0.4)).satisfied
    for symbol, row in zip(joint.useful.symbols, joint.p_x, strict=True):
        own = float(channel.distribution(symbol)[symbol])
        assert own == pytest.approx(share + (1.0 - share) * row, abs=1e-9)


@pytest.mark.parametrize("notion", [md.LIP(0.4), md.LDP(0.8), md.ALIP(0.2, 1.0)])
def test_randomised_response_is_found_in_few_audits(frame, notion, monkeypatch):
    """Lifts are linear in the probability of staying; 20 halvings of 2,000 rows took 25 s."""
    joint = md.Joint.from_table(frame, sensitive="secret", useful=["a", "b"])
    request = md.DesignRequest(joint, notion, release=["a", "b"])
    audits = []
    audit = settings.audit_on_table

    def counted(*arguments):
        audits.append(arguments)
        return audit(*arguments)

    monkeypatch.setattr(settings, "audit_on_table", counted)
    found = settings.randomised_response(request)
    assert found.verified
    # Of a quotient of two lifts no share is expected that is the right one.
    assert len(audits) <= (24 if notion == md.LDP(0.8) else 4)
    for wrong in ([], [0.9, 0.1], [-1.0, 2.0]):
        monkeypatch.setattr(settings, "_expected", lambda *_, one=wrong: list(one))
        halved = settings.randomised_response(request)
        assert halved.truth["a"] == pytest.approx(found.truth["a"], abs=3e-6)


def test_every_way_keeps_the_budgets_of_single_symbols(frame):
    """What a row says is kept was judged with them: here a way of its own lifts of s is cut."""
    tight = {"s": (0.05, 0.05)}
    result = compared(frame, epsilon=1.0, budgets=tight)
    without = compared(frame, epsilon=1.0)
    notion = md.LIP(1.0).with_budgets(tight)
    for row, plain in zip(result.rows, without.rows, strict=True):
        assert row.satisfied
        # Less is kept where the promise is smaller.
        assert row.nmi < plain.nmi - 0.01, row.mechanism
    joint = md.Joint.from_table(frame, sensitive="secret", useful=("a", "b"))
    request = settings.ComparisonSettings(release=("a", "b"), budgets=tight)._request(
        joint, Case("randomised-response", "lip", 1.0, None), None
    )
    response = settings.randomised_response(request)
    assert md.audit(response.channel, joint, notion).satisfied


@pytest.mark.parametrize("option", [{"known_shares": {"s": 0.3}}, {"unseen": 2}])
@pytest.mark.parametrize("columns", [{"useful": "a"}, {"release": ["a", "b"]}])
def test_what_belongs_to_a_confidence_level_is_refused_without_one(
    frame, columns, option
):
    with pytest.raises(InputError, match="need a confidence level"):
        md.compare(frame, sensitive="secret", epsilons=[1.0], **columns, **option)


def test_independent_columns_need_no_noise():
    frame = pd.DataFrame({"secret": ["s", "t"] * 8, "a": ["x", "x", "y", "y"] * 4})
    for row in compared(frame, release=["a"]).rows:
        assert row.satisfied
        assert row.truth == pytest.approx(1.0, abs=1e-5)


def test_randomised_response_of_many_rows_is_left_out_and_said(frame, monkeypatch):
    monkeypatch.setattr(settings, "MOST_RESPONSE_ROWS", 3)
    result = compared(frame)
    assert [row.mechanism for row in result.rows] == ["truth", "truth-free"]
    message = "randomised-response is compared up to 3 rows"
    assert message in result.notices[0]
    with pytest.raises(InputError, match=message):
        compared(frame, mechanisms=["truth", "randomised-response"])


def test_ways_are_named_and_free_labels_keep_most_information(frame):
    named = compared(frame, objectives=["truth", "information"])
    names = ["truth", "truth-free", "optimal", "randomised-response"]
    assert [row.mechanism for row in named.rows] == names
    truth, free, optimal, _ = named.rows
    assert optimal.total_variation is None
    assert max(truth.nmi, free.nmi) <= optimal.upper_bound_nmi
    # A bound on every channel is one for these ways, too.
    assert truth.upper_bound_nmi == optimal.upper_bound_nmi
    (alone,) = compared(frame, mechanisms=["truth-free"]).rows
    assert alone.truth == free.truth
    assert "total_variation" in named.to_frame().columns


def test_with_a_level_rows_are_released_in_boxes_besides(frame):
    """Each row of boxes has the figures of a design, whose promise holds for the population."""
    ways = ["truth", "randomised-response", "optimal"]
    found = compared(frame, confidence=0.9, mechanisms=ways)
    single, _, _, *boxes = found.rows
    assert single.mechanism == "truth"
    assert [row.mechanism for row in boxes] == ["truth@0.9", "optimal@0.9"]
    left_out = "not in boxes, with a confidence level: randomised-response"
    assert found.notices == (left_out,)
    for row in boxes:
        assert row.satisfied
        assert row.confidence == 0.9
        assert max(-row.min_log_lift, row.max_log_lift) <= 0.4
        assert 0.0 <= row.truth <= 1.0
        # The bound of a design of boxes says nothing of other boxes.
        assert row.upper_bound_nmi is None
    assert "truth@0.9" in found.summary()


def test_a_joint_has_the_columns_that_are_released(frame):
    joint = md.Joint.from_table(frame, sensitive="secret", useful=["b", "k", "a"])
    found = md.compare(joint, release=["a", "b"], epsilons=[0.4], notions=["lip"])
    for row, other in zip(found.rows, compared(frame).rows, strict=True):
        assert replace(row, seconds=0.0) == replace(other, seconds=0.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"useful": "a"}, "give one of them"),
        (
            {"confidence": 0.9, "mechanisms": ["randomised-response"]},
            "the ways are truth, truth-free, optimal",
        ),
        ({"as_published": True}, "are for channels of one column"),
        ({"keep_frequencies": False}, "are for channels of one column"),
        ({"notions": ["l1"]}, "bounds averages"),
        ({"distance": "ranks"}, "is for the objective distance"),
        ({"mechanisms": ["subset-merging"]}, "use one of truth, distance"),
        ({"release": None, "useful": "a", "given": "b"}, "belong to a release of rows"),
    ],
)
def test_what_rows_do_not_have_is_refused(frame, options, message):
    with pytest.raises(InputError, match=message):
        compared(frame, **options)


@given(
    st.floats(1e-3, 50.0),
    st.floats(1e-3, 50.0),
    st.sampled_from([md.ALIP, md.LIP, md.LDP, md.MaxLift, md.MinLift]),
)
def test_a_case_has_the_budgets_of_its_notion_and_no_larger_ones(first, second, kind):
    budgets = (first, second)[: len(kind.budgets())]
    notion = kind(*budgets)
    case = Case.at("truth", notion)
    made = case.promise()
    assert type(made) is kind
    for name in kind.budgets():
        assert getattr(made, name) <= getattr(notion, name)
        # Neither is smaller by more than some digits of the sum.
        assert getattr(notion, name) - getattr(made, name) <= 1e-15 * sum(budgets)


def test_a_free_side_is_left_to_the_notion_of_the_other():
    assert Case.at("truth", md.ALIP(math.inf, 0.4)).notion == "max-lift"
    order = md.AlphaLift(0.5, 0.5, 3.0)
    assert Case.at("truth", order).promise() == order
