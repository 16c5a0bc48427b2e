"""Channels of least cost on the column's own symbols, on the Adult table and on small ones."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import mechdesign as md
from mechdesign.mechanisms.least_cost_rounding import deviation_of, truth_of
from tests.oracles.least_cost import least_cost

KEPT = {0.5: 0.743, 1.0: 0.887, 2.0: 0.989}
FREE = {0.5: 0.772, 1.0: 0.902, 2.0: 0.993}
MIXED = {0.5: 0.286, 1.0: 0.468, 2.0: 0.749}


@pytest.mark.parametrize("epsilon", KEPT)
def test_truth_of_adult(adult: md.Joint, epsilon: float) -> None:
    """The figures of the project's mathematics: shares of records that stay true, with and without kept totals."""
    kept = md.design(adult, md.LDP(epsilon), objective="truth")
    free = md.design(adult, md.LDP(epsilon), objective="truth", keep_frequencies=False)
    assert kept.least is not None
    assert free.least is not None
    assert round(kept.least.truth, 3) == KEPT[epsilon]
    assert round(free.least.truth, 3) == FREE[epsilon]
    for made in (kept, free):
        assert made.least is not None
        assert 0.0 <= made.least.cost - made.least.cost_lower_bound <= 1e-11
        assert md.audit(made.channel, adult, md.LDP(epsilon)).satisfied
    assert kept.least.objective.keep_frequencies
    assert not free.least.objective.keep_frequencies
    assert kept.least.frequency_deviation <= 1e-12
    assert deviation_of(kept.channel, adult) <= Fraction(1, 10**12)
    assert kept.channel.outputs == adult.useful.names


@pytest.mark.parametrize("epsilon", MIXED)
def test_best_mixture_of_adult(adult: md.Joint, epsilon: float) -> None:
    """t I + (1 - t) 1 P_X, the best mixture of the identity and the marginal, keeps far less."""
    low, high = 0.0, 1.0
    size = len(adult.useful)
    for _ in range(40):
        t = 0.5 * (low + high)
        lifts = (
            adult.p
            @ (t * np.eye(size) + (1.0 - t) * adult.p_x)
            / np.outer(adult.p_s, adult.p_x)
        )
        fine = bool((lifts.max(axis=0) <= np.exp(epsilon) * lifts.min(axis=0)).all())
        low, high = (t, high) if fine else (low, t)
    assert round(low + (1.0 - low) * float(adult.p_x @ adult.p_x), 3) == MIXED[epsilon]


def test_stay_and_forbid_hold_exactly(adult: md.Joint) -> None:
    made = md.design(
        adult,
        md.ALIP(eps_l=0.5, eps_u=0.4),
        objective="truth",
        stay={"Sales": "0.8", "Armed-Forces": Fraction(1, 3)},
        forbid=[("Sales", "Tech-support"), ("?", "Sales")],
    )
    names, channel = adult.useful.names, made.channel
    column = {label: y for y, label in enumerate(channel.outputs)}
    rows = {name: channel.rows[x] for x, name in enumerate(names)}
    assert Fraction(rows["Sales"][column["Sales"]], channel.denominator) >= Fraction(
        4, 5
    )
    assert Fraction(
        rows["Armed-Forces"][column["Armed-Forces"]], channel.denominator
    ) >= Fraction(1, 3)
    assert rows["Sales"][column["Tech-support"]] == rows["?"][column["Sales"]] == 0
    assert channel.record.objective is not None
    assert channel.record.objective.stay == {"Armed-Forces": "1/3", "Sales": "4/5"}


def test_the_largest_stay_is_named_and_works(adult: md.Joint) -> None:
    asked = {"objective": "truth", "keep_frequencies": True}
    with pytest.raises(
        md.NotPrivate, match=r"'Priv-house-serv' as it is with probability 0\.9"
    ) as refused:
        md.design(adult, md.LDP(1.0), stay=0.9, **asked)
    most = float(str(refused.value).rsplit(" ", 1)[1])
    n = len(adult.useful)
    x = adult.useful.names.index("Priv-house-serv")
    cost = np.zeros((n, n))
    cost[x] = 1.0
    cost[x, x] = 0.0
    least = least_cost(adult.counts, cost, ratio=1.0, keep=True)
    assert least is not None
    assert most == pytest.approx(1.0 - least / adult.p_x[x], rel=1e-4)
    md.design(adult, md.LDP(1.0), stay={"Priv-house-serv": most}, **asked)
    with pytest.raises(md.NotPrivate, match="'Priv-house-serv'"):
        md.design(adult, md.LDP(1.0), stay={"Priv-house-serv": most + 1e-4}, **asked)


def test_shares_that_only_work_together_when_smaller() -> None:
    joint = md.Joint.from_counts([[90, 70, 30, 10], [50, 80, 20, 15], [40, 30, 35, 16]])
    free = {"objective": "truth", "keep_frequencies": False}
    for stay, message in (
        (0.999, r"the largest value that works for all of them is 0\.8664"),
        (
            {"x0": 0.9, "x1": 0.99, "x2": 0.999},
            r"all of them times 0\.\d+ work \('x2' with 0\.\d+, for instance\)",
        ),
    ):
        with pytest.raises(md.NotPrivate, match=rf"works alone.*{message}") as refused:
            md.design(joint, md.LDP(0.5), stay=stay, **free)
    md.design(joint, md.LDP(0.5), stay=0.8664, **free)
    factor = float(str(refused.value).partition("times ")[2].split(" ")[0])
    md.design(
        joint,
        md.LDP(0.5),
        stay={name: factor * share for name, share in stay.items()},
        **free,
    )  # type: ignore[union-attr]


def test_forbidden_pairs_that_leave_no_private_channel() -> None:
    joint = md.Joint.from_counts([[8, 1], [1, 8]])
    with pytest.raises(md.NotPrivate, match="without the forbidden pairs"):
        md.design(
            joint, md.LIP(0.1), objective="truth", forbid=[("x0", "x1"), ("x1", "x0")]
        )


NUMBERS = md.Joint.from_counts(
    [[30, 20, 5, 1], [3, 9, 20, 25]],
    useful_labels=["1", "2.5", "4", "1e1"],
    useful="hours",
)


@pytest.mark.parametrize(
    ("distance", "power"), [(None, 1), ("absolute", 1), ("squared", 2)]
)
def test_distance(distance: str | None, power: int) -> None:
    values = np.array([1.0, 2.5, 4.0, 10.0])
    cost = np.abs(values[:, None] - values) ** power
    made = md.design(NUMBERS, md.LIP(0.4), objective="distance", distance=distance)
    assert made.least is not None
    wanted = least_cost(NUMBERS.counts, cost, lower=0.4, upper=0.4, keep=True)
    assert made.least.cost == pytest.approx(wanted, abs=1e-9)
    place = [NUMBERS.useful.names.index(label) for label in made.channel.outputs]
    exact = float((NUMBERS.p_x[:, None] * made.channel.matrix * cost[:, place]).sum())
    assert made.least.cost == pytest.approx(exact, rel=1e-14)


def test_costs_as_array_frame_and_mapping() -> None:
    import pandas as pd

    names = NUMBERS.useful.names
    cost = np.array([[0, 1, 5, 9], [2, 0, 1, 7], [3, 1, 0, 2], [0.5, 4, 1, 0]])
    frame = pd.DataFrame(cost, index=list(names), columns=list(names)).iloc[::-1]
    mapping = {
        x: dict(zip(names, row, strict=True))
        for x, row in zip(names, cost.tolist(), strict=True)
    }
    found = [
        md.design(NUMBERS, md.MaxLift(0.3), objective=given).least
        for given in (cost, cost.tolist(), frame, mapping)
    ]
    wanted = least_cost(NUMBERS.counts, cost, upper=0.3, keep=True)
    for least in found:
        assert least is not None
        assert least.cost == pytest.approx(wanted, abs=1e-9)
        assert least.objective.name == "costs"


@pytest.mark.parametrize("objective", ["truth", "distance", "costs"])
def test_frequencies_are_kept_by_default(objective: str) -> None:
    """None and True are the same; False costs no more, and less here."""
    values = np.array([1.0, 2.5, 4.0, 10.0])
    given = np.sqrt(np.abs(values[:, None] - values)) if objective == "costs" else None
    found = []
    for keep in (None, True, False):
        made = md.design(
            NUMBERS,
            md.LIP(0.4),
            objective=objective if given is None else given,
            keep_frequencies=keep,
        )
        assert made.least is not None
        found.append(made.least)
    default, kept, free = found
    assert default.objective == kept.objective
    assert default.objective.keep_frequencies
    assert default.cost == kept.cost
    assert default.frequency_deviation <= 1e-12
    assert not free.objective.keep_frequencies
    assert free.cost < default.cost
    assert free.frequency_deviation > 1e-3


@pytest.mark.parametrize("keep", [None, True])
def test_programs_of_the_users_own_keep_frequencies_only_on_request(
    keep: bool | None,
) -> None:
    """They may contradict it; whoever wants both says so."""
    made = md.design(
        NUMBERS,
        md.LIP(0.4),
        objective="truth",
        constraints=lambda w, _: [w[0, 0] >= 0.1],
        keep_frequencies=keep,
    )
    assert made.least is not None
    assert made.least.objective.keep_frequencies is bool(keep)
    assert (made.least.frequency_deviation <= 1e-9) is bool(keep)


def test_symbols_alike_are_one_class() -> None:
    """Proportional columns: the channel over classes is as good as that over symbols, which the oracle solves."""
    joint = md.Joint.from_counts([[8, 16, 4, 3, 6], [2, 4, 1, 9, 18]])
    made = md.design(joint, md.LDP(0.7), objective="truth", keep_frequencies=True)
    assert made.least is not None
    wanted = least_cost(joint.counts, 1.0 - np.eye(5), ratio=0.7, keep=True)
    assert made.least.cost == pytest.approx(wanted, abs=1e-9)
    assert float(truth_of(made.channel, joint)) == pytest.approx(1.0 - made.least.cost)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"objective": "truthful"}, r"must be one of information, truth, .*task, or a matrix of costs"),
        ({"stay": 0.5}, "are for channels on the column's own symbols"),
        ({"objective": "truth", "distance": "squared"}, "belongs to objective distance"),
        ({"objective": "distance", "distance": "cubed"}, "must be absolute or squared"),
        ({"objective": "distance"}, "needs numbers, but the column 'useful' has the symbol 'x0'"),
        ({"objective": "truth", "stay": {"x7": 0.5}}, "no useful symbol 'x7'"),
        ({"objective": "truth", "stay": {"x0": 1.5}}, r"share of 'x0' \('1.5'\) must be in \[0, 1\]"),
        ({"objective": "truth", "stay": "much"}, "the share of 'x0' 'much' is not a number"),
        ({"objective": "truth", "forbid": ["x0:x1"]}, "must be a pair of symbols"),
        ({"objective": "truth", "forbid": [("x0", "z")]}, "no useful symbol 'z'"),
        ({"objective": "truth", "forbid": [("x0", "x0"), ("x0", "x1")]}, "nothing that could be released for 'x0'"),
        ({"objective": "truth", "forbid": [("x0", "x0")], "stay": 0.1}, "contradict each other for 'x0'"),
        (
            {"objective": "truth", "forbid": [("x0", "x0"), ("x1", "x0")], "keep_frequencies": True},
            "nothing that could become 'x0'",
        ),
        ({"objective": [[0, 1]]}, "a row and a column for each of the 2 useful symbols"),
        ({"objective": [[0, 1], [1, float("nan")]]}, "cost of releasing 'x1' for 'x1': 'nan' is not a finite number"),
        ({"objective": [[0, -1], [1, 0]]}, "cost of releasing 'x1' for 'x0' is negative"),
        ({"objective": {"x0": {"x0": 0, "x1": 1}}}, "no row for the symbol 'x1'"),
        ({"objective": {"x0": {"x0": 0}, "x1": {"x0": 1}}}, "no column for the symbol 'x1'"),
        ({"objective": "truth", "mechanism": "subset-merging"}, "a mechanism of its own"),
    ],
)  # fmt: skip
def test_refusals(options: dict[str, object], message: str) -> None:
    joint = md.Joint.from_counts([[8, 1], [1, 8]])
    with pytest.raises(md.InputError, match=message):
        md.design(joint, md.LIP(0.5), **options)  # type: ignore[arg-type]


def test_crossed_columns_have_no_distance() -> None:
    joint = md.Joint.from_counts(
        [[8, 1], [1, 8]], useful_labels=[("1", "2"), ("3", "4")], useful=("a", "b")
    )
    with pytest.raises(md.InputError, match="not several crossed ones"):
        md.design(joint, md.LIP(0.5), objective="distance")


def test_constraints_of_the_users_own(adult: md.Joint) -> None:
    """The callback sees W and the table; the linear case is that of stay, so the designs must agree."""
    by_name = md.design(
        adult,
        md.LDP(1.0),
        objective="truth",
        stay={"?": "0.99"},
        keep_frequencies=False,
    )
    by_hand = md.design(
        adult,
        md.LDP(1.0),
        objective="truth",
        constraints=lambda w, joint: w[0, 0] >= 0.99,
    )
    assert by_name.least is not None
    assert by_hand.least is not None
    assert by_hand.method == "cvxpy with HiGHS"
    assert by_hand.least.cost == pytest.approx(by_name.least.cost, abs=1e-8)
    assert by_hand.least.cost - by_hand.least.cost_lower_bound <= 1e-8
    assert by_hand.channel.matrix[0, 0] >= 0.99 - 1e-7
    assert by_hand.least.objective.constraints == 1
    assert md.audit(by_hand.channel, adult, md.LDP(1.0)).satisfied


def test_least_chance_of_staying_is_as_large_as_can_be(adult: md.Joint) -> None:
    """Minimax: max over x of 1 - W(x|x) has a kink at its optimum, and is proven all the same.

    The optimum is the largest common stay, which the refusal of a larger one names.
    """
    import cvxpy as cp

    made = md.design(
        adult, md.LDP(1.0), objective=lambda w, joint: cp.max(1.0 - cp.diag(w))
    )
    assert made.least is not None
    assert 0.0 <= made.least.cost - made.least.cost_lower_bound <= 1e-6
    assert made.least.objective.name == "convex"
    least = float(np.diagonal(made.channel.matrix).min())
    assert made.least.cost == pytest.approx(1.0 - least, abs=1e-9)
    free = {"objective": "truth", "keep_frequencies": False}
    md.design(adult, md.LDP(1.0), stay=least - 1e-6, **free)
    with pytest.raises(md.NotPrivate):
        md.design(adult, md.LDP(1.0), stay=least + 1e-4, **free)


def test_squared_costs_by_clarabel(adult: md.Joint) -> None:
    import cvxpy as cp

    def cost(w: object, joint: md.Joint) -> object:
        bias = cp.sum_squares(joint.p_x @ w - joint.p_x)
        return 100.0 * bias + cp.sum(cp.multiply(joint.p_x, 1.0 - cp.diag(w)))

    made = md.design(
        adult,
        md.LIP(0.5),
        objective=cost,
        constraints=lambda w, joint: [cp.norm(w[:, 1]) <= 0.9],
    )
    assert made.least is not None
    assert made.method == "cvxpy with Clarabel"
    assert 0.0 <= made.least.cost - made.least.cost_lower_bound <= 1e-5
    assert md.audit(made.channel, adult, md.LIP(0.5)).satisfied
    w = made.channel.matrix[:, made.channel.outputs.index("Adm-clerical")]
    assert float(np.linalg.norm(w)) <= 0.9 + 1e-7


@pytest.mark.parametrize(
    ("constraints", "error", "message"),
    [
        (
            lambda w, joint: w[0, 0] >= 2.0,
            md.NotPrivate,
            "no private channel keeps to the constraints",
        ),
        (
            lambda w, joint: 3,
            md.InputError,
            "must return cvxpy constraints on W, not a int",
        ),
        (
            [1],
            md.InputError,
            "constraints must be a function of W and the table, not a list",
        ),
        (lambda w, joint: w[0, 0] ** 2 >= 0.5, md.InputError, "must be convex in W"),
    ],
)
def test_constraints_that_cannot_be(
    constraints: object, error: type[Exception], message: str
) -> None:
    joint = md.Joint.from_counts([[8, 1], [1, 8]])
    with pytest.raises(error, match=message):
        md.design(joint, md.LIP(0.5), objective="truth", constraints=constraints)  # type: ignore[arg-type]


def test_constraints_with_variables_of_their_own() -> None:
    import cvxpy as cp

    joint = md.Joint.from_counts([[8, 1], [1, 8]])
    with pytest.raises(md.InputError, match="with W alone"):
        md.design(
            joint,
            md.LIP(0.5),
            objective="truth",
            constraints=lambda w, _: cp.Variable() >= w[0, 0],
        )


def test_a_time_limit_that_leaves_nothing_is_named_as_the_cause() -> None:
    """It said that a larger budget helps, and the refusal of a share had no remedy."""
    joint = md.Joint.from_counts([[46, 108, 56, 62], [45, 9, 46, 37]])
    made = md.design(joint, md.LIP(1.0), objective="truth", time_limit=0.0)
    told = "the time limit was over before anything else was found"
    assert any(told in message for message in made.messages)
    with pytest.raises(md.SolverFailure, match="allow more time"):
        md.design(
            joint,
            md.LIP(0.01),
            objective="truth",
            stay={"x0": 0.5},
            time_limit=0.0,
        )


def test_a_time_limit_leaves_a_verified_channel_with_its_gap() -> None:
    random = np.random.default_rng(3)
    joint = md.Joint.from_counts(random.integers(1, 60, size=(4, 70)))
    made = md.design(
        joint, md.LDP(0.4), objective="truth", keep_frequencies=True, time_limit=0.0
    )
    assert made.least is not None
    assert md.audit(made.channel, joint, md.LDP(0.4)).satisfied
    assert made.least.frequency_deviation <= 1e-12
    assert made.least.cost_lower_bound < made.least.cost
    assert any("the search ended early" in message for message in made.messages)


def test_against_the_default_matrix_of_sdcmicro(adult: md.Joint) -> None:
    """The figures of docs/how-to/from-sdcmicro.md: 91.2 % true at LDP 2.03 (medians of 200 draws); optimum 1.15, or 99.0 %.

    `pram(x)`, pd 0.8 and alpha 0.5: P has a diagonal that is uniform in [pd, 1] and equal entries beside it, Q is its
    reversal by Bayes' rule, and alpha P Q + (1 - alpha) I is used, which keeps the frequencies.
    """
    random, p, n = np.random.default_rng(0), adult.p_x, len(adult.useful)
    found = []
    for _ in range(200):
        diagonal = random.uniform(0.8, 1.0, n)
        first = np.where(
            np.eye(n) > 0.0, diagonal, ((1.0 - diagonal) / (n - 1))[:, None]
        )
        back = (first * p[:, None]).T / (p @ first)[:, None]
        matrix = 0.5 * first @ back + 0.5 * np.eye(n)
        assert np.abs(p @ matrix - p).max() <= 1e-15
        given = (adult.p / adult.p_s[:, None]) @ matrix
        found.append(
            (
                p @ np.diagonal(matrix),
                np.log(given.max(axis=0) / given.min(axis=0)).max(),
            )
        )
    truth, leakage = np.median(found, axis=0)
    assert truth == pytest.approx(0.912, abs=1e-3)
    assert leakage == pytest.approx(2.03, abs=0.01)
    optimum = [
        md.design(
            adult, md.LDP(epsilon), objective="truth", keep_frequencies=True
        ).least
        for epsilon in (1.15, 2.03)
    ]
    assert [0.0 if each is None else each.truth for each in optimum] == pytest.approx(
        [0.9126, 0.9897], abs=1e-4
    )
