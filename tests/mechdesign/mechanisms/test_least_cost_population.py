"""Channels of least cost for every population of a confidence set."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mechdesign as md
from mechdesign.auditing.columns import is_constant
from mechdesign.core.balls import SCALE
from mechdesign.core.limits import LiftLimits
from mechdesign.tables.confidence import ConfidenceSet, confidence_set
from tests.oracles.least_cost import least_cost
from tests.oracles.population_vertices import vertices
from tests.profiles import scaled, slow

NOTIONS = (
    md.LDP(0.7),
    md.LIP(0.5),
    md.ALIP(eps_l=0.9, eps_u=0.4),
    md.MaxLift(0.5),
    md.MinLift(0.6),
)


def populations(chosen: ConfidenceSet) -> list[tuple[Any, Any]]:
    """Every vertex of the set, in doubles."""
    boxes = [
        list(
            vertices(
                [Fraction(end, SCALE) for end in lower],
                [Fraction(end, SCALE) for end in upper],
            )
        )
        for lower, upper in zip(chosen.lower, chosen.upper, strict=True)
    ]
    shares = [
        np.array(pi, dtype=float)
        for pi in vertices(chosen.share_lower, chosen.share_upper)
    ]
    rows = [np.array(row, dtype=float) for row in product(*boxes)]
    return [(given, pi) for given in rows for pi in shares]


@given(
    seed=st.integers(0, 10**6),
    notion=st.sampled_from(NOTIONS),
    keep=st.booleans(),
    known=st.booleans(),
    power=st.integers(1, 3),
)
@settings(max_examples=scaled(20), deadline=None)
def test_the_optimum_is_that_over_all_vertices(seed, notion, keep, known, power):
    """|cost - LP over every vertex of the set| <= 1e-6 of the spread, and bound <= LP <= cost but for its tolerance."""
    rng = np.random.default_rng(seed)
    counts = (
        rng.integers(0, 10**power, (2, 3))
        + np.eye(2, 3, dtype=int)
        + np.eye(2, 3, 1, dtype=int)
    )
    joint = md.Joint.from_counts(counts)
    cost = rng.integers(0, 5, (3, 3)) * (1.0 - np.eye(3))
    limits = notion.limits
    assert isinstance(limits, LiftLimits)
    shares = (
        dict(zip(joint.sensitive.symbols, (0.4, 0.6), strict=True))
        if known and limits.need_shares
        else None
    )
    found = md.design(
        joint,
        notion,
        objective=cost,
        keep_frequencies=keep,
        confidence=0.9,
        known_shares=shares,
    )
    chosen = confidence_set(
        joint, 0.9, shares=shares, estimate_shares=limits.need_shares
    )
    bounds = {"lower": limits.lower, "upper": limits.upper, "ratio": limits.ratio}
    best = least_cost(
        counts, cost, **bounds, keep=keep, populations=populations(chosen)
    )
    assert found.least is not None
    assert best is not None
    scale = float(cost.max()) + 1e-12
    assert found.least.cost == pytest.approx(best, abs=1e-6 * scale)
    assert found.least.cost_lower_bound <= best + 1e-8 * scale
    assert found.verified
    assert md.audit(found.channel, joint, notion).satisfied


def test_stay_forbid_and_their_limits(adult: md.Joint) -> None:
    wanted = {"stay": {"Sales": 0.5}, "forbid": [("Sales", "Tech-support")]}
    made = md.design(adult, md.LDP(1), objective="truth", confidence=0.95, **wanted)
    plain = md.design(adult, md.LDP(1), objective="truth", **wanted)
    rows = dict(zip(adult.useful.names, np.asarray(made.channel.matrix), strict=True))
    labels = made.channel.outputs
    assert rows["Sales"][labels.index("Sales")] >= 0.5
    if "Tech-support" in labels:
        assert rows["Sales"][labels.index("Tech-support")] == 0.0
    assert made.least is not None
    assert plain.least is not None
    assert plain.least.cost_lower_bound <= made.least.cost
    assert made.least.cost - made.least.cost_lower_bound <= 1e-6
    asked = {"objective": "truth", "confidence": 0.95, "keep_frequencies": True}
    with pytest.raises(
        md.NotPrivate,
        match=r"'Armed-Forces' as it is .* 0\.9; the largest value .* is 0\.0[0-9]",
    ):
        md.design(adult, md.LDP(1), stay={"Armed-Forces": 0.9}, **asked)


def test_unseen_symbols_are_protected(adult: md.Joint) -> None:
    """More symbols to protect, so no less cost; the file tells its set, which the audit computes again."""
    costs = []
    for unseen in (0, 3):
        made = md.design(
            adult, md.LIP(0.7), objective="truth", confidence=0.95, unseen=unseen
        )
        assert made.least is not None
        assert made.confidence is not None
        assert made.confidence.unseen == unseen
        assert md.audit(made.channel, adult, md.LIP(0.7)).satisfied
        costs.append(made.least.cost)
    assert costs[0] <= costs[1] + 1e-9


def test_distance_and_a_limit_of_time(adult: md.Joint) -> None:
    """What the search has when the time is over is private, with its proven gap."""
    rng = np.random.default_rng(0)
    table = rng.multinomial(40_000, rng.dirichlet(np.ones(4 * 40))).reshape(4, 40) + 1
    joint = md.Joint.from_counts(table, useful_labels=[str(x) for x in range(40)])
    made = md.design(
        joint, md.LDP(1), objective="distance", confidence=0.95, time_limit=0.3
    )
    assert made.least is not None
    assert 0.0 <= made.least.cost_lower_bound <= made.least.cost
    assert math.isfinite(made.least.cost)
    assert md.audit(made.channel, joint, md.LDP(1)).satisfied


@pytest.mark.parametrize(
    ("keep", "is_large"), [(True, False), slow(True, True), slow(False, True)]
)
def test_an_empty_callback_changes_nothing(
    adult: md.Joint, keep: bool, is_large: bool
) -> None:
    """The rows that cvxpy gets are those of the path without it: costs agree to 1e-6, bounds are below both."""
    small = md.Joint.from_counts([[80, 10, 5], [10, 80, 9]])
    other = adult if is_large else small
    for joint, notion in ((small, md.LIP(0.7)), (other, md.LDP(1))):
        asked = {"objective": "truth", "confidence": 0.95, "keep_frequencies": keep}
        plain = md.design(joint, notion, **asked)
        by_hand = md.design(joint, notion, constraints=lambda w, joint: [], **asked)
        assert plain.least is not None
        assert by_hand.least is not None
        assert by_hand.method == "cvxpy with HiGHS"
        assert by_hand.least.cost == pytest.approx(plain.least.cost, abs=1e-6)
        assert by_hand.least.cost_lower_bound <= min(
            plain.least.cost, by_hand.least.cost
        )
        assert by_hand.least.cost - by_hand.least.cost_lower_bound <= 1e-6
        assert by_hand.confidence == plain.confidence
        assert md.audit(by_hand.channel, joint, notion).satisfied


def test_a_constraint_that_binds_is_kept_for_every_population(adult: md.Joint) -> None:
    """The linear case is that of stay; the audit of the file is that of its confidence set."""
    index = adult.useful.names.index("Handlers-cleaners")
    asked = {"objective": "truth", "confidence": 0.95, "keep_frequencies": False}
    plain = md.design(adult, md.LDP(1), **asked)
    by_name = md.design(adult, md.LDP(1), stay={"Handlers-cleaners": 0.9}, **asked)
    made = md.design(
        adult, md.LDP(1), constraints=lambda w, _: [w[index, index] >= 0.9], **asked
    )
    assert plain.least is not None
    assert by_name.least is not None
    assert made.least is not None
    assert made.least.cost > plain.least.cost + 1e-4
    assert made.least.cost == pytest.approx(by_name.least.cost, abs=1e-6)
    assert (
        made.channel.matrix[index, made.channel.outputs.index("Handlers-cleaners")]
        >= 0.9 - 1e-7
    )
    assert md.audit(made.channel, adult, md.LDP(1)).satisfied
    assert made.channel.record.confidence is not None
    table_only = md.design(
        adult,
        md.LDP(1),
        objective="truth",
        constraints=lambda w, _: [w[index, index] >= 0.9],
    )
    assert not md.audit(
        table_only.channel.with_record(made.channel.record), adult, md.LDP(1)
    ).satisfied


def test_convex_costs_by_highs_and_clarabel(adult: md.Joint) -> None:
    """A kink in a table over all vertices of its set: 1 - the largest common stay; and squares with a norm."""
    import cvxpy as cp

    joint, notion = md.Joint.from_counts([[80, 10, 5], [10, 80, 9]]), md.LIP(0.7)
    made = md.design(
        joint, notion, objective=lambda w, _: cp.max(1.0 - cp.diag(w)), confidence=0.95
    )
    assert made.least is not None
    assert 0.0 <= made.least.cost - made.least.cost_lower_bound <= 1e-6
    stay = 1.0 - made.least.cost
    asked = {"objective": "truth", "confidence": 0.95, "keep_frequencies": False}
    md.design(joint, notion, stay=stay - 1e-6, **asked)
    with pytest.raises(md.NotPrivate):
        md.design(joint, notion, stay=stay + 1e-4, **asked)

    def cost(w: Any, joint: md.Joint) -> Any:
        bias = cp.sum_squares(joint.p_x @ w - joint.p_x)
        return 100.0 * bias + cp.sum(cp.multiply(joint.p_x, 1.0 - cp.diag(w)))

    smooth = md.design(
        adult,
        md.LDP(1),
        objective=cost,
        constraints=lambda w, _: cp.norm(w[:, 1]) <= 0.6,
        confidence=0.95,
    )
    assert smooth.method == "cvxpy with Clarabel"
    assert smooth.least is not None
    assert 0.0 <= smooth.least.cost - smooth.least.cost_lower_bound <= 1e-5
    w = smooth.channel.matrix[:, smooth.channel.outputs.index("Adm-clerical")]
    assert float(np.linalg.norm(w)) <= 0.6 + 1e-7
    assert md.audit(smooth.channel, adult, md.LDP(1)).satisfied


def test_constraints_that_no_population_allows_and_no_time(adult: md.Joint) -> None:
    asked = {"objective": "truth", "confidence": 0.95}
    rare = adult.useful.names.index("Armed-Forces")
    half = {
        "objective": "truth",
        "keep_frequencies": True,
        "constraints": lambda w, _: w[rare, rare] >= 0.4,
    }
    assert md.design(adult, md.LDP(1), **half).verified
    with pytest.raises(
        md.NotPrivate, match=r"^no private channel keeps to the constraints \(.*\)$"
    ):
        md.design(adult, md.LDP(1), confidence=0.95, **half)
    with pytest.raises(md.SolverFailure, match="could not be computed"):
        md.design(
            adult,
            md.LDP(1),
            constraints=lambda w, _: w[0, 0] >= 0.5,
            time_limit=1e-9,
            **asked,
        )


def test_the_bound_is_for_the_shares_asked_not_for_those_with_a_margin() -> None:
    """Where staying is all that costs, the least cost is the share asked, which the program exceeds by a margin."""
    joint = md.Joint.from_counts([[400, 300], [300, 400]])
    asked = {"objective": np.eye(2), "stay": "0.5", "confidence": 0.95}
    for constraints in (None, lambda w, _: []):
        made = md.design(joint, md.LDP(1), constraints=constraints, **asked)
        assert made.least is not None
        assert 0.5 - 1e-6 <= made.least.cost_lower_bound <= 0.5 <= made.least.cost


def test_the_file_is_the_contract(adult: md.Joint, tmp_path) -> None:
    made = md.design(
        adult, md.LDP(1), objective="truth", keep_frequencies=True, confidence=0.95
    )
    made.channel.save(tmp_path / "truth.json")
    channel = md.Channel.load(tmp_path / "truth.json")
    assert channel.record.confidence is not None
    assert channel.record.objective is not None
    assert channel.record.confidence["level"] == 0.95
    assert channel.record.objective.name == "truth"
    assert md.audit(channel, adult, md.LDP(1)).satisfied
    assert not md.audit(
        md.design(adult, md.LDP(1), objective="truth").channel.with_record(
            channel.record
        ),
        adult,
        md.LDP(1),
    ).satisfied


def test_a_channel_of_one_symbol_says_so():
    joint = md.Joint.from_counts([[30, 4, 2], [25, 3, 6]])
    asked = {"objective": "truth", "keep_frequencies": False}
    made = md.design(joint, md.LDP(0.2), confidence=0.95, **asked)
    assert made.nmi == 0.0
    assert made.messages == (
        "every record is released as 'x0', which tells nothing: give a larger budget, more records, or merge symbols",
    )
    assert md.design(joint, md.LDP(1.0), **asked).messages == ()


@pytest.mark.parametrize("keep", [True, False])
def test_forbidden_pairs_without_time_leave_a_draw_among_the_others(keep: bool) -> None:
    """There was a refusal, where a channel that tells next to nothing keeps the promise."""
    rng = np.random.default_rng(4)
    joint = md.Joint.from_counts(rng.integers(900, 1100, size=(3, 12)))
    made = md.design(
        joint,
        md.LIP(0.5),
        objective="truth",
        # Nor may all records become one symbol, which is forbidden for some.
        forbid=[(f"x{(y + 1) % 12}", f"x{y}") for y in range(12)],
        keep_frequencies=keep,
        confidence=0.95,
        time_limit=0.0,
    )
    assert made.verified
    assert md.audit(made.channel, joint, md.LIP(0.5)).satisfied
    w = made.channel.matrix[:, [made.channel.outputs.index(f"x{y}") for y in range(12)]]
    assert [w[(y + 1) % 12, y] for y in range(12)] == [0.0] * 12
    assert made.least is not None
    if keep:
        assert made.least.frequency_deviation <= 1e-12
    assert any("among the symbols that are not forbidden" in m for m in made.messages)


@pytest.mark.parametrize("pairs", [1, 2])
def test_few_forbidden_pairs_change_few_rows_of_a_draw(pairs: int) -> None:
    """Of 5,000 symbols no two rows were the same: 43 s to verify, measure and write."""
    rng = np.random.default_rng(4)
    joint = md.Joint.from_counts(rng.integers(900, 1100, size=(3, 100 * pairs)))
    forbid = [("x0", "x1"), ("x7", "x7")][:pairs]
    made = md.design(
        joint,
        md.LIP(0.5),
        objective="truth",
        forbid=forbid,
        confidence=0.95,
        time_limit=0.0,
    )
    channel = made.channel
    assert md.audit(channel, joint, md.LIP(0.5)).satisfied
    for x, y in forbid:
        row = channel.rows[joint.useful.names.index(x)]
        assert row[channel.outputs.index(y)] == 0
    assert len(set(channel.rows)) <= 1 + 2 * pairs
    assert sum(
        is_constant(column, len(joint.useful)) for column in channel.columns
    ) >= (len(joint.useful) - 2 * pairs)
    assert made.least is not None
    assert made.least.frequency_deviation <= 1e-15
    assert any("among the symbols that are not forbidden" in m for m in made.messages)
