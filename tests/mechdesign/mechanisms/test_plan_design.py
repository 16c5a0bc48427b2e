"""Released rows that keep the law of the table: by listing in fractions, and against an oracle."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import mechdesign as md
from mechdesign.auditing.lifts import demands_of
from mechdesign.auditing.stated import statement_of
from mechdesign.channel.file import file_digest
from mechdesign.core.errors import InputError, NotPrivate, SolverFailure
from mechdesign.mechanisms import plan_design
from mechdesign.mechanisms.least_cost_rounding import keeps_stays
from mechdesign.mechanisms.plan_request import limits_of_demands
from solvers.errors import BackendFailure
from solvers.plans import solve_plan
from tests.cases.growth import calls_of
from tests.oracles import plans
from tests.oracles import released_rows as oracle
from tests.profiles import scaled

CLOSE = 2e-5
"""Search gaps of 1e-6, and plans that stay 1e-7 or more away from their budgets."""

NOTIONS = st.sampled_from(
    [
        md.LIP(0.3),
        md.LIP(1.0),
        md.ALIP(0.2, 0.7),
        md.ALIP(math.inf, 0.4),
        md.MaxLift(0.5),
        md.MinLift(0.4),
    ]
)


@st.composite
def frames(draw, columns=("a", "b"), secrets=3, full=False):
    """Counts of a secret s and some columns of two or three values each."""
    sizes = [draw(st.integers(2, 3)) for _ in columns]
    s = draw(st.integers(2, secrets))
    cells = [*product(range(s), *map(range, sizes))]
    counts = draw(
        st.lists(
            st.integers(1 if full else 0, 9), min_size=len(cells), max_size=len(cells)
        )
    )
    rows = [
        (f"s{cell[0]}", *(f"{n}{c}" for n, c in zip(columns, cell[1:], strict=True)), k)
        for cell, k in zip(cells, counts, strict=True)
        if k
    ]
    frame = pd.DataFrame(rows, columns=["s", *columns, "count"])
    assume(not frame.empty and frame["s"].nunique() > 1)
    return frame


def designed(frame, notion, release=("a", "b"), **options):
    settings = {
        "sensitive": "s",
        "weight": "count",
        "smallest_group": 1,
        "gap": 1e-6,
        "allow_identifier": True,
        "time_limit": 60.0,
        **options,
    }
    if options.get("keep_frequencies") is False:
        settings["smallest_group"] = None
    return md.design(frame, notion, release=list(release), **settings)


def budgets_of(notion):
    limits = notion.limits
    return {"lower": limits.lower, "upper": limits.upper, "ratio": limits.ratio}


def best(joint, notion, costs=None, **options):
    if costs is None:
        costs = plans.changed_cells(joint.useful.symbols)
    return plans.least_cost(joint.counts, costs, **budgets_of(notion), **options)


def assert_law_kept(channel):
    """Every row is released exactly as often as the table has it, and no other row is."""
    released = oracle.summed(oracle.joint_law(channel), lambda entry: entry[2])
    total = channel.joint.total
    for symbol, count in zip(
        channel.useful.symbols, channel.joint.useful_counts, strict=True
    ):
        assert released.pop(symbol) == Fraction(count, total)
    assert not released


def cost_of(channel, cost):
    """The expected cost of a function of true and released texts."""
    law = oracle.joint_law(channel)
    return float(sum(mass * Fraction(cost(x, y)) for (_, x, y), mass in law.items()))


def changed_share(x, y):
    return Fraction(sum(a != b for a, b in zip(x, y, strict=True)), len(x))


@settings(max_examples=scaled(25))
@given(frames(), NOTIONS)
def test_a_plan_keeps_the_law_and_the_promise_and_costs_least(frame, notion):
    """Propositions 1 and 2 of docs/explanation/rows-theory.md, in fractions; the cost is that of a
    dense linear program.
    """
    made = designed(frame, notion)
    channel = made.channel
    assert_law_kept(channel)
    found = oracle.lifts(oracle.joint_law(channel))
    oracle.assert_within(found, notion.limits.lower, notion.limits.upper)
    logs = [math.log(lift) if lift else -math.inf for lift in found.values()]
    assert made.achieved.eps_u == pytest.approx(max(logs), abs=1e-12)
    assert made.achieved.eps_l == pytest.approx(-min(logs), abs=1e-12)
    cost = cost_of(channel, changed_share)
    assert made.least.cost_lower_bound <= cost <= made.least.cost
    assert made.least.cost == pytest.approx(cost, rel=1e-12)
    assert cost == pytest.approx(best(channel.joint, notion), abs=CLOSE)
    # Figures are rounded against the channel.
    assert cost <= made.least.cost <= cost + 1e-6
    assert made.least.cost_lower_bound <= cost + 1e-9
    assert made.least.frequency_deviation == 0.0
    assert made.law.largest_deviation == 0.0


@settings(max_examples=scaled(10))
@given(frames(), NOTIONS)
def test_truth_by_column_is_that_of_the_law(frame, notion):
    made = designed(frame, notion)
    law = oracle.joint_law(made.channel)
    for k, name in enumerate(("a", "b")):
        kept = sum(mass for (_, x, y), mass in law.items() if x[k] == y[k])
        assert float(kept) - 1e-9 <= made.truth[name] <= float(kept)


@settings(max_examples=scaled(10))
@given(frames(), NOTIONS)
def test_a_free_law_costs_no_more(frame, notion):
    made = designed(frame, notion, keep_frequencies=False)
    found = oracle.lifts(oracle.joint_law(made.channel))
    oracle.assert_within(found, notion.limits.lower, notion.limits.upper)
    # Only rows of the table are released.
    assert {y for _, y in found} <= set(made.channel.useful.symbols)
    cost = cost_of(made.channel, changed_share)
    assert cost == pytest.approx(
        best(made.channel.joint, notion, keep_law=False), abs=CLOSE
    )
    assert made.channel.record.objective.keep_frequencies is False


@settings(max_examples=scaled(15))
@given(frames(("k", "a", "b")), NOTIONS)
def test_given_columns_never_change_and_a_relative_promise_holds_in_strata(
    frame, notion
):
    """Strata may lack secrets: then nothing is promised of them there."""
    made = designed(frame, notion, given="k", promise="relative")
    channel = made.channel
    assert channel.given == ("k",)
    law = oracle.joint_law(channel)
    assert all(x[0] == y[0] for _, x, y in law)
    found = oracle.lifts(law, given=lambda y: y[:1])
    oracle.assert_within(found, notion.limits.lower, notion.limits.upper)
    assert_law_kept(channel)
    symbols = channel.useful.symbols
    costs = plans.changed_cells(symbols, [0.0, 1.0, 1.0])
    strata = [symbol[0] for symbol in symbols]
    expected = best(channel.joint, notion, costs, strata=strata, relative=True)
    cost = cost_of(channel, lambda x, y: changed_share(x[1:], y[1:]))
    assert cost == pytest.approx(expected, abs=CLOSE)


@settings(max_examples=scaled(15))
@given(frames(("k", "a"), full=True), st.sampled_from([md.LIP(0.3), md.MaxLift(0.5)]))
def test_a_total_promise_with_given_columns_holds_or_is_refused(frame, notion):
    """It is possible exactly if the given columns by themselves keep it."""
    joint = md.Joint.from_table(frame, sensitive="s", useful=["k"], weight="count")
    identity = {
        (s, x, y): Fraction(row[i], joint.total)
        for s, row in enumerate(joint.counts)
        for i, x in enumerate(joint.useful.symbols)
        for y in [x]
    }
    logs = [math.log(lift) for lift in oracle.lifts(identity).values()]
    slack = min(notion.limits.upper - max(logs), notion.limits.lower + min(logs))
    assume(abs(slack) > 1e-6)
    if slack < 0:
        with pytest.raises(NotPrivate, match="the given columns alone break the"):
            designed(frame, notion, release=["a"], given="k")
        return
    channel = designed(frame, notion, release=["a"], given="k").channel
    law = oracle.joint_law(channel)
    assert all(x[0] == y[0] for _, x, y in law)
    oracle.assert_within(oracle.lifts(law), notion.limits.lower, notion.limits.upper)
    assert_law_kept(channel)
    symbols = channel.useful.symbols
    strata = [symbol[0] for symbol in symbols]
    costs = plans.changed_cells(symbols, [0.0, 1.0])
    cost = cost_of(channel, lambda x, y: changed_share(x[1:], y[1:]))
    expected = best(channel.joint, notion, costs, strata=strata)
    assert cost == pytest.approx(expected, abs=CLOSE)


@settings(max_examples=scaled(10))
@given(frames(full=True), st.sampled_from([0.2, 0.8]), st.booleans())
def test_local_differential_privacy_of_rows(frame, epsilon, keeps):
    """P(y|s) <= e^epsilon P(y|t) for every released row."""
    made = designed(frame, md.LDP(epsilon), keep_frequencies=keeps)
    found = oracle.lifts(oracle.joint_law(made.channel))
    assert oracle.largest_ratio(found) <= oracle.power(epsilon)
    cost = cost_of(made.channel, changed_share)
    expected = best(made.channel.joint, md.LDP(epsilon), keep_law=keeps)
    assert cost == pytest.approx(expected, abs=CLOSE)


@settings(max_examples=scaled(10))
@given(frames(), st.sampled_from([0.1, 0.5, 0.65]))
def test_rows_that_must_stay_stay(frame, share):
    notion = md.LIP(0.7)
    joint = md.Joint.from_table(frame, sensitive="s", useful=["a", "b"], weight="count")
    expected = best(joint, notion, stay=share)
    if expected is None:
        with pytest.raises(NotPrivate, match="no plan keeps the promise with stay"):
            designed(frame, notion, stay=share)
        return
    channel = designed(frame, notion, stay=share).channel
    for symbol in channel.useful.symbols:
        assert channel.distribution(symbol)[symbol] >= Fraction(str(share))
    assert cost_of(channel, changed_share) == pytest.approx(expected, abs=CLOSE)


FORBIDDEN = {
    "row": [("a0, b0", "a1, b0")],
    "cell": [("a0", "a1")],
    "column and cell": [("a=a1", "a=a0"), ("b=b0", "b=b1")],
    "row to cell": [("a0, b0", "b1")],
    "row that must change": [("a0, b0", "a0, b0")],
}


def is_meant(text, symbol):
    _, has_column, cell = text.partition("=")
    if has_column:
        return cell in symbol
    return text in (", ".join(symbol), *symbol)


@pytest.mark.parametrize("kind", FORBIDDEN)
@settings(max_examples=scaled(6))
@given(frames(full=True))
def test_what_is_forbidden_never_happens(kind, frame):
    pairs = FORBIDDEN[kind]
    notion = md.LIP(1.0)
    joint = md.Joint.from_table(frame, sensitive="s", useful=["a", "b"], weight="count")
    symbols = joint.useful.symbols
    forbidden = [
        (x, y)
        for x, y in product(range(len(symbols)), repeat=2)
        if any(
            (x != y or a == b) and is_meant(a, symbols[x]) and is_meant(b, symbols[y])
            for a, b in pairs
        )
    ]
    assert forbidden
    expected = best(joint, notion, forbidden=forbidden)
    if expected is None:
        with pytest.raises(NotPrivate, match="relax them"):
            designed(frame, notion, forbid=pairs)
        return
    channel = designed(frame, notion, forbid=pairs).channel
    for x, y in forbidden:
        assert symbols[y] not in channel.distribution(symbols[x])
    assert cost_of(channel, changed_share) == pytest.approx(expected, abs=CLOSE)


@settings(max_examples=scaled(10))
@given(frames(full=True))
def test_what_is_never_released_is_never_released(frame):
    notion = md.LIP(0.5)
    never = {"a": "a0", "b": "b0"}
    with pytest.raises(NotPrivate, match="the law of the table is kept"):
        designed(frame, notion, never=[never])
    joint = md.Joint.from_table(frame, sensitive="s", useful=["a", "b"], weight="count")
    symbols = joint.useful.symbols
    banned = symbols.index(("a0", "b0"))
    forbidden = [(x, banned) for x in range(len(symbols))]
    expected = best(joint, notion, forbidden=forbidden, keep_law=False)
    if expected is None:
        return
    channel = designed(frame, notion, never=[never], keep_frequencies=False).channel
    law = oracle.joint_law(channel)
    assert all(y != ("a0", "b0") for _, _, y in law)
    assert cost_of(channel, changed_share) == pytest.approx(expected, abs=CLOSE)


@settings(max_examples=scaled(10))
@given(frames(), st.tuples(st.integers(1, 5), st.integers(1, 5)))
def test_cells_cost_the_weight_of_their_column(frame, weights):
    notion = md.LIP(0.4)
    made = designed(frame, notion, column_weights=dict(zip("ab", weights, strict=True)))
    shares = [Fraction(weight, sum(weights)) for weight in weights]

    def cost(x, y):
        return sum(w for w, a, b in zip(shares, x, y, strict=True) if a != b)

    costs = plans.changed_cells(made.channel.useful.symbols, [*map(float, weights)])
    expected = best(made.channel.joint, notion, costs)
    assert cost_of(made.channel, cost) == pytest.approx(expected, abs=CLOSE)
    # The share of unchanged cells is a plain one, whatever they weigh.
    changed = cost_of(made.channel, changed_share)
    assert made.least.truth == pytest.approx(1.0 - changed, abs=CLOSE)


@settings(max_examples=scaled(10))
@given(frames(), st.integers(0, 2**20))
def test_costs_are_any_matrix(frame, seed):
    notion = md.LIP(0.4)
    joint = md.Joint.from_table(frame, sensitive="s", useful=["a", "b"], weight="count")
    n = len(joint.useful)
    matrix = np.random.default_rng(seed).integers(0, 9, (n, n))
    np.fill_diagonal(matrix, 0)
    made = designed(frame, notion, objective=matrix)
    place = made.channel.useful.index
    expected = best(joint, notion, matrix)
    cost = cost_of(made.channel, lambda x, y: int(matrix[place[x], place[y]]))
    # Costs are up to nine times those of cells.
    assert cost == pytest.approx(expected, abs=9 * CLOSE)
    assert made.least.cost == pytest.approx(cost, abs=1e-6)
    assert_law_kept(made.channel)


def numbers_frame(seed=2):
    """A secret that grows with a number of twenty values, and a column of letters."""
    rng = np.random.default_rng(seed)
    n = rng.integers(0, 10, 400) ** 2
    s = rng.random(400) < 0.2 + 0.006 * n
    return pd.DataFrame(
        {
            "s": np.where(s, "yes", "no"),
            "n": n,
            "a": rng.choice(["x", "y"], 400),
            "count": 1,
        }
    )


def ranks_of(frame):
    """The share of the records with a smaller number, and half of those with the same."""
    values = frame["n"].to_numpy()
    return {
        str(v): float((values < v).mean() + (values == v).mean() / 2)
        for v in np.unique(values)
    }


@pytest.mark.parametrize("distance", [None, "ranks", "absolute"])
def test_numbers_are_moved_least(distance):
    """By their ranks, or by themselves; letters change or do not."""
    frame = numbers_frame()
    notion = md.LIP(0.2)
    made = designed(
        frame, notion, release=["n", "a"], objective="distance", distance=distance
    )
    place = ranks_of(frame)
    if distance == "absolute":
        place = {text: float(text) for text in place}
    span = max(place.values()) - min(place.values())

    def cost(x, y):
        return abs(place[x[0]] - place[y[0]]) / span / 2 + (x[1] != y[1]) / 2

    symbols = made.channel.useful.symbols
    costs = [[cost(x, y) for y in symbols] for x in symbols]
    expected = best(made.channel.joint, notion, costs)
    assert cost_of(made.channel, cost) == pytest.approx(expected, abs=CLOSE)
    assert made.channel.record.objective.distance == (distance or "ranks")
    assert_law_kept(made.channel)


def test_truth_counts_many_numbers_half_by_their_distance():
    rng = np.random.default_rng(4)
    n = rng.integers(0, 20, 400)
    s = rng.random(400) < 0.2 + 0.02 * n
    frame = pd.DataFrame({"s": np.where(s, "yes", "no"), "n": n, "count": 1})
    notion = md.LIP(0.1)
    made = designed(frame, notion, release=["n"])
    ranks = ranks_of(frame)
    span = max(ranks.values()) - min(ranks.values())

    def cost(x, y):
        return (x != y) / 2 + abs(ranks[x[0]] - ranks[y[0]]) / span / 2

    symbols = made.channel.useful.symbols
    expected = best(
        made.channel.joint, notion, [[cost(x, y) for y in symbols] for x in symbols]
    )
    assert cost_of(made.channel, cost) == pytest.approx(expected, abs=CLOSE)
    assert made.least.cost == pytest.approx(expected, abs=CLOSE)


@settings(max_examples=scaled(8))
@given(frames(("a", "b"), full=True))
def test_budgets_of_single_symbols(frame):
    notion = md.LIP(1.0)
    made = designed(frame, notion, budgets={"s0": (0.1, 0.2)})
    found = oracle.lifts(oracle.joint_law(made.channel))
    own = {key: lift for key, lift in found.items() if key[0] == 0}
    oracle.assert_within(own, 0.1, 0.2)
    oracle.assert_within(found, 1.0, 1.0)
    expected = best(made.channel.joint, notion, budgets={0: (0.1, 0.2)})
    assert cost_of(made.channel, changed_share) == pytest.approx(expected, abs=CLOSE)


@st.composite
def two_secrets(draw):
    counts = draw(st.lists(st.integers(1, 9), min_size=16, max_size=16))
    cells = product("pq", "uv", ("a0", "a1"), ("b0", "b1"))
    rows = [(*cell, k) for cell, k in zip(cells, counts, strict=True)]
    return pd.DataFrame(rows, columns=["s", "t", "a", "b", "count"])


@settings(max_examples=scaled(8))
@given(two_secrets())
def test_each_of_two_secrets_is_protected(frame):
    notion = md.LIP(0.3)
    made = designed(frame, notion, sensitive=["s", "t"], protect_each=True)
    tables = []
    for name in ("s", "t"):
        joint = md.Joint.from_table(
            frame, sensitive=name, useful=["a", "b"], weight="count"
        )
        assert joint.useful.symbols == made.channel.useful.symbols
        found = oracle.lifts(oracle.joint_law(made.channel, joint))
        oracle.assert_within(found, 0.3, 0.3)
        tables.append(joint.counts)
    expected = best(made.channel.joint, notion, secrets=tables)
    assert cost_of(made.channel, changed_share) == pytest.approx(expected, abs=CLOSE)
    # The crossed secret may be told more of.
    crossed = designed(frame, notion, sensitive=["s", "t"])
    assert made.least.cost <= crossed.least.cost + CLOSE


@settings(max_examples=scaled(6))
@given(frames(("a", "b"), secrets=2, full=True), st.booleans())
def test_rows_after_an_earlier_release_keep_the_promise_together(frame, keeps):
    notion = md.LIP(0.8)
    joint = md.Joint.from_table(frame, sensitive="s", useful=["a", "b"], weight="count")
    first = md.design(
        joint, md.LIP(0.3), useful="b", allow_identifier=True, time_limit=60.0
    ).channel
    made = designed(frame, notion, after=[first], keep_frequencies=keeps)
    both = {}
    for (s, x, y), mass in oracle.joint_law(made.channel, joint).items():
        for z, share in first.distribution(x[1:]).items():
            both[s, x, (*z, *y)] = both.get((s, x, (*z, *y)), 0) + mass * share
    oracle.assert_within(oracle.lifts(both), 0.8, 0.8)
    before = [
        [float(first.distribution(x[1:]).get((z,), 0)) for x in joint.useful.symbols]
        for z in first.outputs
    ]
    expected = best(joint, notion, before=[*map(np.array, before)], keep_law=keeps)
    assert cost_of(made.channel, changed_share) == pytest.approx(expected, abs=CLOSE)


def test_rows_after_rows(people):
    first = designed(people, md.LIP(0.2), release=["a"]).channel
    made = designed(people, md.LIP(0.5), after=[first])
    joint = made.channel.joint
    verdict = md.audit(made.channel, joint, md.LIP(0.5), after=[first])
    assert verdict.satisfied
    assert made.least.cost > designed(people, md.LIP(0.5)).least.cost
    # The file names what it was designed after, and its figures are those of its own table alone.
    assert made.channel.record.after == (file_digest(first),)
    assert made.achieved == md.audit(made.channel).achieved
    assert not statement_of(made.channel).wrong
    together = md.compose([first, made.channel], joint)
    assert made.spending.together.achieved == together.achieved


def test_a_relative_promise_after_earlier_releases_is_refused(people):
    first = designed(people, md.LIP(0.2), release=["a"]).channel
    with pytest.raises(InputError, match="not built after earlier releases"):
        designed(
            people,
            md.LIP(0.5),
            release=["b"],
            given=["a"],
            promise="relative",
            after=[first],
        )


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(5)
    count = 600
    sex = rng.integers(0, 2, count)
    a = (rng.integers(0, 4, count) + sex) % 4
    age = rng.integers(0, 3, count)
    sick = rng.random(count) < 0.2 + 0.1 * (a == 1) + 0.1 * sex + 0.05 * age
    return pd.DataFrame(
        {
            "k": np.where(sex, "m", "f"),
            "a": np.array(list("vwxy"))[a],
            "b": np.array(["20", "40", "60"])[age],
            "s": np.where(sick, "yes", "no"),
            "count": 1,
        }
    )


def test_independent_columns_stay_as_they_are():
    frame = pd.DataFrame(
        {"s": ["p", "q"] * 8, "a": ["x", "x", "y", "y"] * 4, "count": 1}
    )
    made = designed(frame, md.LIP(0.1), release=["a"])
    assert made.least.truth == 1.0
    assert made.least.cost == 0.0
    assert made.channel.distribution(["x"]) == {("x",): Fraction(1)}


def test_a_promise_of_nothing_changes_nothing(people):
    made = designed(people, md.LIP(50.0))
    for symbol in made.channel.useful.symbols:
        assert made.channel.distribution(symbol) == {symbol: Fraction(1)}


def test_the_design_says_what_it_is(people):
    made = designed(people, md.LIP(0.3), given="k", promise="relative")
    channel = made.channel
    assert channel.useful.columns == ("k", "a", "b")
    assert channel.output_columns == ("k", "a", "b")
    assert channel.releases_symbols
    assert channel.record.promise_kind == "relative"
    assert channel.record.objective.name == "truth"
    assert channel.record.objective.keep_frequencies is True
    assert channel.totals is not None
    assert set(made.truth) == {"a", "b"}
    assert made.smallest_group == 1
    assert md.audit(channel).achieved == made.achieved
    assert md.audit(channel, people.drop(columns="count")).achieved == made.achieved


def test_free_outputs_beside_given_columns(people):
    """With the objective information, every stratum has a channel of its own."""
    made = designed(
        people,
        md.LIP(0.3),
        given="k",
        promise="relative",
        objective="information",
        smallest_group=None,
        time_limit=600.0,
    )
    channel = made.channel
    assert channel.output_columns == ("k", "a,b")
    law = oracle.joint_law(channel)
    assert all(x[0] == y[0] for _, x, y in law)
    oracle.assert_within(oracle.lifts(law, given=lambda y: y[:1]), 0.3, 0.3)
    # I(X; Y | K) / H(X | K), by listing.
    p = {
        entry: float(mass)
        for entry, mass in oracle.summed(law, lambda e: e[1:]).items()
    }
    kept = entropy = 0.0
    for (x, y), mass in p.items():
        inside = {e: m for e, m in p.items() if e[1][0] == y[0]}
        whole = sum(inside.values())
        of_x = sum(m for e, m in inside.items() if e[0] == x)
        of_y = sum(m for e, m in inside.items() if e[1] == y)
        kept += mass * math.log(mass * whole / (of_x * of_y))
        entropy -= mass * math.log(of_x / whole)
    assert made.nmi == pytest.approx(kept / entropy, abs=1e-9)
    assert made.nmi <= made.certificate.upper_bound_nmi + 1e-12


def test_free_outputs_beside_given_columns_keep_a_total_promise(people):
    made = designed(
        people,
        md.LIP(0.6),
        given="k",
        objective="information",
        smallest_group=None,
        time_limit=600.0,
    )
    law = oracle.joint_law(made.channel)
    assert all(x[0] == y[0] for _, x, y in law)
    oracle.assert_within(oracle.lifts(law), 0.6, 0.6)


REFUSED = [
    ({"notion": md.L1Lift.from_epsilon(1.0)}, InputError, "l1 bounds averages"),
    ({"objective": "speed"}, InputError, r"objective \('speed'\) must be truth, dist"),
    (
        {"objective": "distance", "release": ["a"]},
        InputError,
        "needs a released column of numbers",
    ),
    (
        {"objective": "distance", "release": ["b"], "distance": "squared"},
        InputError,
        "squared distances are for one column",
    ),
    ({"distance": "absolute"}, InputError, "belongs to the objective distance"),
    (
        {"objective": "distance", "release": ["b"], "distance": "cubed"},
        InputError,
        r"distance \('cubed'\) must be ranks or absolute",
    ),
    ({"method": "columns"}, InputError, "leave method "),
    ({"enumerate": "pivot", "method": "vertices"}, InputError, "leave method "),
    ({"column_weights": {"z": 1}}, InputError, "'z' is no released column"),
    (
        {"column_weights": {"k": 1}, "given": "k", "promise": "relative"},
        InputError,
        "'k' is no released column",
    ),
    ({"column_weights": {"a": 0}}, InputError, "must be a positive number"),
    ({"column_weights": {"a": "much"}}, InputError, r"\('much'\) must be a positive"),
    ({"forbid": ["ab"]}, InputError, "'ab' must be a pair of symbols"),
    ({"forbid": [("v", "nowhere")]}, InputError, "no useful symbol 'nowhere'"),
    ({"forbid": [("a=v", "a=20")]}, InputError, "no useful symbol 'a=20'"),
    ({"never": [{"z": "1"}]}, InputError, "never: 'z' is not released"),
    ({"never": [{"a": "absent"}]}, InputError, "no row of the table has 'a=absent'"),
    ({"never": [{"b": 20}]}, InputError, "no row of the table has 'b=20'"),
    ({"never": [{}]}, InputError, "a combination without a cell means every row"),
    (
        {"column_weights": {"a": 2}, "objective": [[0.0]]},
        InputError,
        "column weights are for the objectives truth and distance",
    ),
    ({"stay": 1.0}, NotPrivate, "no plan keeps the promise with stay: give a larger"),
    (
        {"stay": 1.0, "forbid": [("a=v", "a=w")], "keep_frequencies": False},
        NotPrivate,
        "no plan keeps the promise with stay and forbid: give a larger budget, or ask",
    ),
    (
        {"stay": 1.0, "smallest_group": 2},
        NotPrivate,
        "promise with stay: give a larger budget, allow smaller groups .*, or ask",
    ),
    (
        {"stay": 0.1, "never": [{"a": "v"}], "keep_frequencies": False},
        InputError,
        "stay and never contradict each other for 'v, .*: say which other rows stay",
    ),
    (
        {"stay": {"v, 20": 0.1}, "forbid": [("v, 20", "v, 20")]},
        InputError,
        "stay and forbid contradict each other for 'v, 20': say which other rows stay",
    ),
    ({"stay": 1.5}, InputError, "stay"),
    ({"release": ["a", "a"]}, InputError, "'a' is released twice"),
    ({"given": "a"}, InputError, "'a' is released and given"),
    ({"useful": "a"}, InputError, "useful releases columns as one label"),
    ({"promise": "some"}, InputError, r"promise \('some'\) must be total or relative"),
    ({"promise": "relative"}, InputError, "compares with the given columns, and there"),
    ({"cells": 4}, InputError, "give a confidence level too"),
    ({"fill": True}, InputError, "give a confidence level too"),
    ({"smallest_group": 0}, InputError, r"smallest_group \('0'\) must be a whole"),
    ({"smallest_group": 2.5}, InputError, "must be a whole number of records"),
    (
        {"smallest_group": 2, "known": ["z"]},
        InputError,
        "known: 'z' is not released",
    ),
    (
        {"smallest_group": 2, "keep_frequencies": False, "pass": True},
        InputError,
        "free frequencies leave it open",
    ),
    ({"known": ["a"], "smallest_group": 1}, InputError, "known names the columns that"),
    (
        {"known": ["a"], "keep_frequencies": False},
        InputError,
        "known names the columns",
    ),
    ({"constraints": lambda w, joint: []}, InputError, "for one column"),
    ({"objective": lambda w, joint: w[0, 0]}, InputError, "for one column"),
    ({"mechanism": "subset-merging"}, InputError, "leave subset-merging out"),
    (
        {"objective": "information", "never": [{"a": "v"}]},
        InputError,
        "never is about rows that are released as rows",
    ),
    (
        {"objective": "information", "column_weights": {"a": 2}},
        InputError,
        "column weights is about rows",
    ),
    (
        {"objective": "information", "known": ["a"], "smallest_group": 2},
        InputError,
        "smallest_group is about rows",
    ),
    (
        {"objective": "information", "stay": 0.5},
        InputError,
        "are for channels on the column's own symbols",
    ),
]


@pytest.mark.parametrize(
    ("options", "error", "message"), REFUSED, ids=[str(k) for k in range(len(REFUSED))]
)
def test_refusals(people, options, error, message):
    asked = {"notion": md.LIP(0.3), "release": ["a", "b"], "sensitive": "s", **options}
    asked.pop("pass", None)
    notion = asked.pop("notion")
    with pytest.raises(error, match=message):
        md.design(people.drop(columns="count"), notion, **asked)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"given": ["k"]}, "given"),
        ({"never": [{"a": "v"}]}, "never"),
        ({"column_weights": {"a": 2}}, "column weights"),
        ({"smallest_group": 3}, "smallest_group"),
        ({"known": ["a"]}, "known"),
        ({"cells": 3}, "cells"),
        ({"fill": True}, "fill"),
        ({"rare": 3}, "rare"),
        ({"slice_seed": 1}, "slice_seed"),
    ],
)
def test_options_of_rows_are_refused_for_a_column(people, options, name):
    with pytest.raises(InputError, match=f"{name} belongs to a release of rows"):
        md.design(people, md.LIP(0.3), sensitive="s", useful="a", **options)


def test_ldp_after_earlier_releases_is_refused(people):
    first = designed(people, md.LIP(0.2), release=["a"]).channel
    with pytest.raises(InputError, match="not built for rows after earlier"):
        designed(people, md.LDP(0.5), after=[first])


def test_a_cell_of_two_columns_needs_its_column():
    frame = pd.DataFrame(
        {"s": list("pqpq") * 5, "a": list("xxyy") * 5, "b": list("xyyx") * 5}
    )
    options = {"sensitive": "s", "release": ["a", "b"], "smallest_group": 1}
    with pytest.raises(
        InputError, match="is a cell of several columns: write 'a=x', 'b=x'"
    ):
        md.design(frame, md.LIP(0.5), forbid=[("x", "y")], **options)


LIFTS_OF_TWO = {
    # Largest lifts of 2 on either side, which are least lifts of 0; and least lifts of 1/2.
    md.MaxLift: [("u", "0", 2), ("v", "1", 2), ("u", "2", 1), ("v", "2", 1)],
    md.LIP: [("u", "0", 1), ("v", "0", 3), ("u", "1", 3), ("v", "1", 1)],
}


@pytest.mark.parametrize("notion", LIFTS_OF_TWO)
def test_a_budget_that_the_lifts_of_the_table_just_break(notion):
    """The double next to log 2 is below it."""
    frame = pd.DataFrame(LIFTS_OF_TWO[notion], columns=["s", "a", "count"])
    made = designed(frame, notion(math.log(2)), release=["a"])
    assert 0.0 < made.least.cost < 1e-6


@pytest.mark.parametrize("notion", [md.LIP, md.LDP, md.MinLift])
@pytest.mark.parametrize("epsilon", [20.0, 32.0, 700.0])
def test_budgets_that_only_exclude_lifts_of_nothing(notion, epsilon):
    """Two rows must change, and the cheapest way, to swap them, leaves lifts of 0."""
    rows = [("p", "x", 4), ("q", "y", 4), ("p", "z", 1), ("q", "z", 1)]
    frame = pd.DataFrame(rows, columns=["s", "a", "count"])
    forbid = [("x", "x"), ("y", "y")]
    made = designed(frame, notion(epsilon), release=["a"], forbid=forbid)
    law = oracle.joint_law(made.channel)
    assert min(oracle.lifts(law).values()) > 0
    assert made.least.cost == pytest.approx(0.8, abs=1e-5)


def test_weights_have_no_smallest_group():
    frame = pd.DataFrame({"s": list("pq") * 4, "a": list("xxyy") * 2, "w": 0.5})
    joint = md.Joint.from_table(frame, sensitive="s", useful="a", weight="w")
    with pytest.raises(InputError, match="a smallest group counts records"):
        md.design(joint, md.LIP(0.5), release="a", smallest_group=2)
    made = md.design(joint, md.LIP(0.5), release="a", smallest_group=1)
    assert made.law.largest_deviation == 0.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"after": True}, "after is not built with given columns and free outputs"),
        ({"protect_each": True}, "protect_each is not built with given columns and"),
    ],
)
def test_what_free_outputs_with_given_columns_do_not_have(people, options, message):
    if options.get("protect_each"):
        options = {**options, "sensitive": ["s", "t"]}
        people = people.assign(t=people["b"] == "20")
    if options.get("after"):
        first = designed(people, md.LIP(0.2), release=["a"]).channel
        options = {"after": [first]}
    asked = {
        "objective": "information",
        "given": "k",
        "promise": "relative",
        "smallest_group": None,
        **options,
    }
    with pytest.raises(InputError, match=message):
        designed(people, md.LIP(0.3), **asked)


def test_given_columns_alone_that_leave_nothing_are_refused(people):
    frame = people.assign(k=np.where(people["s"] == "yes", "m", "f"))
    for objective in ("truth", "information"):
        with pytest.raises(NotPrivate, match="the given columns alone"):
            designed(
                frame,
                md.LIP(0.3),
                given="k",
                objective=objective,
                smallest_group=None,
            )


def test_all_attempts_share_the_time(people, monkeypatch):
    limits = []

    def solved(problem, *, time_limit, **options):
        limits.append(time_limit)
        return solve_plan(problem, time_limit=time_limit, **options)

    monkeypatch.setattr(plan_design, "solve_plan", solved)
    monkeypatch.setattr(plan_design, "keeps_stays", lambda channel, stays: False)
    with pytest.raises(SolverFailure, match="no plan passed the exact audit"):
        designed(people, md.LIP(0.3), time_limit=20.0)
    assert len(limits) == len(plan_design.MARGINS)
    assert limits == sorted(limits, reverse=True)
    assert limits[-1] < limits[0] < 20.0


def test_shares_that_stay_are_kept_in_integers():
    """Of 9, 7 is less than the share .78 and more than .77."""
    joint = md.Joint.from_counts([[1, 2], [2, 1]])
    channel = md.Channel(
        sensitive=joint.sensitive,
        useful=joint.useful,
        outputs=joint.useful.names,
        rows=[[7, 2], [0, 9]],
        denominator=9,
    )
    assert keeps_stays(channel, [Fraction(77, 100), Fraction(1)])
    assert not keeps_stays(channel, [Fraction(78, 100), Fraction(0)])


def test_a_back_end_that_fails_is_a_solver_that_failed(people, monkeypatch):
    from mechdesign.mechanisms import plan_design

    def failing(problem, **options):
        raise BackendFailure("HiGHS is out of order")

    monkeypatch.setattr(plan_design, "solve_plan", failing)
    with pytest.raises(SolverFailure, match="could not be computed: HiGHS is out"):
        designed(people, md.LIP(0.3))


def test_a_channel_that_fails_its_audit_is_not_emitted(people, monkeypatch):
    """Break the rounding on purpose: all mass on the diagonal breaks the promise."""
    from mechdesign.mechanisms import least_cost_rounding

    def wrong(rows, columns, flows, row_units, column_units, unit):
        n = len(row_units)
        return (
            np.arange(n),
            np.arange(n),
            [count * unit for count in row_units],
        )

    monkeypatch.setattr(least_cost_rounding, "integer_plan", wrong)
    with pytest.raises(SolverFailure, match="no plan passed the exact audit"):
        designed(people, md.LIP(0.05))


def test_a_time_limit_that_is_over_at_once():
    """Rows are drawn blindly, and still verified; what must stay stays, unless it is too much."""
    rng = np.random.default_rng(7)
    people = pd.DataFrame(
        {
            "s": rng.integers(0, 2, 1600),
            "a": rng.integers(0, 25, 1600),
            "b": rng.integers(0, 25, 1600),
        }
    )
    people["count"] = 1
    design = designed(people, md.LIP(0.3), time_limit=1e-9)
    channel = design.channel
    assert md.audit(channel, channel.joint, md.LIP(0.3)).satisfied
    assert any("the search ended early" in str(one) for one in design.messages)
    kept = designed(people, md.LIP(0.3), time_limit=1e-9, stay=0.01)
    assert kept.verified
    assert kept.least.truth >= 0.01
    with pytest.raises(SolverFailure, match="the time limit is too short to find rows"):
        designed(people, md.LIP(0.3), time_limit=1e-9, stay=0.6)


def test_the_limits_of_a_plan_do_not_visit_empty_cells():
    """Of 60,000 records with 250 secrets nearly all of the 13 million cells are empty."""
    counts = np.zeros((40, 400), dtype=int)
    counts[np.arange(400) % 40, np.arange(400)] = 3
    joint = md.Joint.from_counts(counts)
    notion = md.LIP(1.0)

    def limits():
        demands = demands_of(joint, notion)
        return limits_of_demands([demands], [0] * 400, joint.useful_counts)

    assert (np.count_nonzero(limits().values, axis=1) == 10).all()
    assert calls_of(limits) < counts.size
