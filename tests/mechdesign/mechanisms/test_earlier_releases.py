"""A channel after other releases of the same records."""

from __future__ import annotations

import math
from fractions import Fraction
from importlib import import_module

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import mechdesign as md
from mechdesign.auditing.lifts import log_upper
from mechdesign.auditing.verdict import audit_on_table
from mechdesign.channel.channel import Channel
from mechdesign.channel.file import file_digest
from mechdesign.mechanisms import rules as of_rules
from mechdesign.mechanisms.earlier_releases import information
from mechdesign.mechanisms.merged_sets import merge_all, merge_subsets
from mechdesign.mechanisms.posteriors import StackedRows
from mechdesign.mechanisms.rules import table_rules
from tests.cases.designs import notions_of, uniform_table
from tests.oracles.joint_leakage import extremes
from tests.oracles.stacked import optimum, rows_of

# The package has functions of these names.
of_classes = import_module("mechdesign.mechanisms.classes")
of_optimal = import_module("mechdesign.mechanisms.optimal")

ERROR = 1e-6
"""Of the oracle: its vertices are exact for rows of doubles."""


def constant(joint):
    return Channel(joint.useful, ("all",), [[1]] * len(joint.useful), 1, joint)


def matrix_of(channel):
    return [[Fraction(v, channel.denominator) for v in row] for row in channel.rows]


def keeps(joint, channels, limits):
    """All tuples keep to the limits, by full enumeration in fractions."""
    high, low, ratio = extremes(
        joint.counts, [matrix_of(channel) for channel in channels]
    )
    pairs = [
        (high, limits.upper),
        (1 / low if low else None, limits.lower),
        (ratio, limits.ratio),
    ]
    return all(
        math.isinf(limit)
        or (
            value is not None and log_upper(value.numerator, value.denominator) <= limit
        )
        for value, limit in pairs
    )


def small_table(seed, sensitive=2, useful=4):
    rng = np.random.default_rng(seed)
    return md.Joint.from_counts(rng.integers(1, 9, (sensitive, useful)))


@pytest.mark.parametrize("notion", notions_of(0.8), ids=str)
def test_after_a_constant_it_is_the_plain_optimum(notion):
    """A release that says nothing leaves everything: utility and bound are those without it."""
    joint = uniform_table(6, 3, 1)
    plain, after = (
        md.design(joint, notion),
        md.design(joint, notion, after=[constant(joint)]),
    )
    assert abs(plain.nmi - after.nmi) <= 2e-4
    assert after.certificate.gap_nmi <= 1e-4
    assert after.certificate.upper_bound_nmi >= plain.nmi


@pytest.mark.parametrize("seed", range(12))
def test_it_is_the_optimum_and_never_exceeds_the_joint_budget(seed):
    """Against all exact vertices of the stacked polytope, and full enumeration of all tuples in fractions."""
    joint = small_table(seed)
    notion = notions_of(1.0)[seed % 9]
    first = md.design(joint, _half(notion)).channel
    found = md.design(joint, notion, after=[first])
    assert keeps(joint, [first, found.channel], notion.limits)
    assert audit_on_table(found.channel, joint, notion, after=[first]).satisfied
    rows, limits = [], notion.limits
    for y in range(len(first.outputs)):
        table = joint.p * first.matrix[:, y]
        sides = [limits.lower] * len(table), [limits.upper] * len(table)
        rows += rows_of(table / table.sum(), joint.p_s, *sides, limits.ratio)
    best = optimum(joint.p_x, rows)
    assert found.nmi <= best + ERROR
    assert found.certificate.upper_bound_nmi >= best - ERROR
    assert found.certificate.gap_nmi <= 1e-4


def _half(notion):
    values = {name: value / 2.0 for name, value in notion.values().items()}
    return type(notion)(**values)


@pytest.mark.parametrize("seed", range(6))
def test_spending_in_two_steps_never_keeps_more_than_at_once(seed):
    """I(X; Y1, Y2) of two steps <= the proven bound of one channel for everything at the same promise."""
    joint = small_table(seed, 3, 5)
    notion = md.ALIP(0.6, 0.6)
    first = md.design(joint, md.ALIP(0.2, 0.2)).channel
    spent = md.design(joint, notion, after=[first]).spending
    assert spent.kept_before <= spent.kept + 1e-12
    assert (
        spent.kept / spent.entropy <= spent.at_once.certificate.upper_bound_nmi + 1e-12
    )
    assert abs(spent.at_once.nmi - md.design(joint, notion).nmi) <= 2e-3


def test_a_third_release():
    joint = small_table(3, 2, 5)
    notion = md.LIP(0.9)
    first = md.design(joint, md.LIP(0.2)).channel
    second = md.design(joint, md.LIP(0.5), after=[first]).channel
    third = md.design(joint, notion, after=[first, second])
    assert keeps(joint, [first, second, third.channel], notion.limits)
    assert third.channel.record.after == (file_digest(first), file_digest(second))
    assert (
        third.spending.together.achieved
        == md.compose([first, second, third.channel]).achieved
    )


def test_another_column():
    """The table P(s, x1, x2) joins a channel of x1 and one of x2; at once, the crossed column is designed."""
    rng = np.random.default_rng(5)
    labels = [(a, b) for a in "pq" for b in "uvw"]
    counts = rng.integers(1, 9, (3, 6))
    joint = md.Joint.from_counts(counts, useful_labels=labels, useful=("one", "two"))
    one, notion = joint.releasing("one"), md.ALIP(0.5, 0.5)
    first = md.design(one, md.ALIP(0.25, 0.25)).channel
    found = md.design(joint, notion, after=[first], useful="two")
    assert found.channel.useful.columns == ("two",)
    together = md.compose([first, found.channel], joint)
    assert (together.eps_l, together.eps_u) <= (0.5, 0.5)
    assert together.achieved == found.spending.together.achieved
    rows = []
    for y in range(len(first.outputs)):
        masses = joint.p * np.repeat(first.matrix[:, y], 3)
        table = masses.reshape(3, 2, 3).sum(axis=1)
        rows += rows_of(table / table.sum(), joint.p_s, [0.5] * 3, [0.5] * 3)
    p_two = joint.releasing("two").p_x
    best = optimum(p_two, rows)
    assert found.nmi <= best + ERROR <= found.certificate.upper_bound_nmi + 2 * ERROR
    assert found.spending.kept <= found.spending.at_once.mutual_information + 1e-3
    assert audit_on_table(found.channel, joint, notion, after=[first]).satisfied
    assert (
        found.achieved
        == audit_on_table(found.channel, joint.releasing("two"), notion).achieved
    )


@pytest.mark.parametrize(
    "mechanism", ["subset-merging", "complete-merging", "subset-response"]
)
def test_heuristics_keep_the_joint_promise(mechanism):
    joint = small_table(8, 3, 7)
    notion = md.ALIP(0.5, 0.5)
    first = md.design(joint, md.ALIP(0.3, 0.3)).channel
    found = md.design(joint, notion, mechanism=mechanism, after=[first])
    assert keeps(joint, [first, found.channel], notion.limits)
    best = md.design(joint, notion, after=[first])
    assert found.nmi <= best.certificate.upper_bound_nmi


def test_an_earlier_release_that_breaks_the_promise():
    joint = small_table(2)
    identity = Channel(
        joint.useful, joint.useful.names, np.eye(4, dtype=int).tolist(), 1, joint
    )
    with pytest.raises(md.NotPrivate, match="breaks the promise already"):
        md.design(joint, md.ALIP(0.01, 0.01), after=[identity])
    with pytest.raises(md.NotPrivate, match="together break"):
        md.design(joint, md.ALIP(0.01, 0.01), after=[identity, identity])


def test_an_earlier_release_that_uses_the_budget_up():
    joint = md.Joint.from_counts([[3, 1], [1, 3]])
    first = md.design(joint, md.ALIP(0.3, 0.3)).channel
    with pytest.raises(md.NotPrivate, match="use up the budget"):
        md.design(joint, md.ALIP(0.3, 0.3), after=[first])


def test_what_does_not_go_with_it():
    joint = small_table(1)
    with pytest.raises(md.InputError, match="confidence is not built with"):
        md.design(joint, md.LIP(1), after=[constant(joint)], confidence=0.9)
    with pytest.raises(md.InputError, match="bounds averages"):
        md.design(joint, md.L1Lift(math.inf, 1.0), after=[constant(joint)])
    with pytest.raises(md.InputError, match="no useful column 'nowhere'"):
        md.design(joint, md.LIP(1), after=[constant(joint)], release="nowhere")


def test_information_of_several_outputs_is_that_of_their_product():
    joint = small_table(4)
    channel = md.design(joint, md.LIP(0.5)).channel
    alone = information([channel], joint)
    assert alone == pytest.approx(
        md.design(joint, md.LIP(0.5)).mutual_information, rel=1e-12
    )
    assert information([channel, constant(joint)], joint) == pytest.approx(
        alone, rel=1e-12
    )


def test_another_column_keeps_its_bins():
    """A channel of bins that is designed after one of another column is applied to numbers, and audited as such."""
    records = [
        (s, one, str(n))
        for s, one, n in zip("abab" * 30, "uvwvuw" * 20, range(120), strict=True)
    ]
    frame = dict(
        zip(("s", "one", "n"), map(list, zip(*records, strict=True)), strict=True)
    )
    joint = md.Joint.from_table(
        pa.table(frame), sensitive="s", useful=("one", "n"), bins={"n": 25}
    )
    first = md.design(joint.releasing("one"), md.ALIP(0.25, 0.25)).channel
    found = md.design(joint, md.ALIP(0.5, 0.5), after=[first], useful="n").channel
    assert first.useful.bins in ((), (None,))
    assert found.useful.bins == joint.useful.bins[1:]
    assert [symbol for (symbol,) in found.useful.symbols] == list(
        found.useful.bins[0].labels
    )
    assert len(found.apply(["7", "119"], insecure_seed=1)) == 2
    assert audit_on_table(found, joint, md.ALIP(0.5, 0.5), after=[first]).satisfied


@pytest.mark.parametrize("released", [{"useful": "job"}, {"release": ["job", "edu"]}])
def test_a_task_after_another_column(released):
    """The table of the task has the released columns, and not those of the earlier release."""
    rng = np.random.default_rng(3)
    count = 400
    frame = pd.DataFrame(
        {
            "job": rng.choice(["clerk", "cook", "smith"], count),
            "edu": rng.choice(["low", "high"], count),
            "region": rng.choice(["north", "south"], count),
        }
    )
    frame["ill"] = np.where(
        rng.random(count) < 0.2 + 0.4 * (frame["job"] == "cook"), "yes", "no"
    )
    frame["income"] = np.where(
        rng.random(count) < 0.3 + 0.4 * (frame["job"] == "smith"), "high", "low"
    )
    table = md.Joint.from_table(frame, sensitive="income", useful="region")
    first = md.design(table, md.ALIP(0.1, 0.1)).channel
    found = md.design(
        frame,
        md.ALIP(0.5, 0.5),
        sensitive="income",
        objective="task",
        task="ill",
        after=[first],
        time_limit=20.0,
        **released,
    )
    (columns,) = released.values()
    names = ("job",) if columns == "job" else tuple(columns)
    assert found.channel.useful.columns == names
    assert found.purpose.task_kept > 0.5
    whole = md.Joint.from_table(
        frame, sensitive="income", useful=["job", "edu", "region"]
    )
    together = md.compose([first, found.channel], whole)
    assert max(together.eps_l, together.eps_u) <= 0.5 + 1e-12


@pytest.mark.parametrize("notion", [md.ALIP(0.8, 0.6), md.LDP(0.8)], ids=str)
def test_sets_of_symbols_are_judged_table_by_table_alike(notion, monkeypatch):
    """On 1,851 tables of 15 secrets a look at all of them at once took 17 s, most of it memory."""
    joint = small_table(3, sensitive=3, useful=6)
    first = md.design(joint, md.LIP(0.3)).channel
    sets = table_rules(joint, notion, after=[first]).sets(joint)
    # An output of no mass on one of the tables, and forbidden lifts of zero.
    given_s = np.hstack([sets.given_s, np.zeros((len(sets.given_s), 2))])
    given_s[0, 6:] = 1.0
    tables = len(first.outputs)
    assert tables > 2
    looks = []
    used_in = of_rules.StackedSets._used_in

    def counted(self, some, *args):
        looks.append(some.stop - some.start)
        return used_in(self, some, *args)

    monkeypatch.setattr(of_rules.StackedSets, "_used_in", counted)
    expected = sets._used(given_s)
    assert looks == [tables]
    looks.clear()
    monkeypatch.setattr(of_rules, "AT_ONCE", 1)
    found = sets._used(given_s)
    assert looks == [1] * tables
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_more_rows_than_a_search_takes_are_not_made(monkeypatch):
    """2,000 symbols after 1,851 outputs: 80 s with a limit of 10, most of it for 1 GB of rows."""
    joint = small_table(3, sensitive=3, useful=6)
    first = md.design(joint, md.LIP(0.3)).channel
    rules = table_rules(joint, md.LIP(0.8), after=[first])
    rows = rules.rows
    assert rows is not None
    count = rows.number_of_homogeneous()
    plain = ~rows.differing[rows.table_of]
    assert count == len(rules.relaxation.rows) - int(plain.sum()) > 1

    monkeypatch.setattr(of_rules, "MOST_ENTRIES", count + 5)
    monkeypatch.setattr(StackedRows, "polytope", None)
    # Nor are columns added up within classes, where every symbol is one.
    monkeypatch.setattr(of_rules, "added_columns", None)
    found = md.design(joint, md.LIP(0.8), after=[first], time_limit=5.0)
    assert found.mechanism == "subset-merging"
    assert found.verified
    assert any(
        f"{count} rows of the promise after the earlier releases and 6 symbols"
        in message
        for message in found.messages
    )


def test_rows_without_a_margin_are_made_once(monkeypatch):
    joint = small_table(3, sensitive=3, useful=6)
    first = md.design(joint, md.LIP(0.3)).channel
    made = []
    polytope = StackedRows.polytope

    def counted(self, margin, reach=math.inf):
        made.append(margin)
        return polytope(self, margin, reach)

    monkeypatch.setattr(StackedRows, "polytope", counted)
    assert md.design(joint, md.LIP(0.8), after=[first]).certificate.gap_nmi <= 1e-4
    assert made == [0.0]


def after_many_outputs(symbols=80):
    """The rules after a release with an output for each pair of neighbouring symbols."""
    rng = np.random.default_rng(3)
    joint = md.Joint.from_counts(rng.integers(1, 10**6, (3, symbols)))
    own = np.eye(symbols, dtype=np.int64)
    rows = own + np.roll(own, 1, axis=0)
    labels = tuple(f"y{k}" for k in range(symbols))
    earlier = Channel(joint.useful, labels, rows.tolist(), 2, joint)
    return table_rules(joint, md.LIP(3.0), after=[earlier])


def test_symbols_are_told_apart_by_the_table_before_the_outputs_of_others(monkeypatch):
    """Each output is about few symbols: 1,851 tables of 2,000 symbols were compared as a whole."""
    compared = []
    direction = of_classes._direction

    def counted(vector):
        compared.append(len(vector))
        return direction(vector)

    rules = after_many_outputs()
    assert len(rules.demands) > of_classes.FIRST_ROWS
    monkeypatch.setattr(of_classes, "_direction", counted)
    assert not rules.reduced.is_reduced
    assert max(compared) <= of_classes.FIRST_ROWS


def test_symbols_that_only_outputs_tell_apart_stay_so():
    joint = md.Joint.from_counts([[2, 4, 3], [2, 4, 9]])
    apart = Channel(joint.useful, ("a", "b"), [[1, 1], [0, 2], [1, 1]], 2, joint)
    assert table_rules(joint, md.LIP(1.0)).reduced.is_reduced
    assert not table_rules(joint, md.LIP(1.0), after=[apart]).reduced.is_reduced


def test_the_symbols_of_many_tables_are_judged_once(monkeypatch):
    """Of 1,851 earlier outputs a look at all symbols takes a second of processor time."""
    judged = []
    used = of_rules.StackedSets._used

    def counted(sets, given_s):
        judged.append(given_s.shape[1])
        return used(sets, given_s)

    rules = after_many_outputs()
    monkeypatch.setattr(of_rules.StackedSets, "_used", counted)
    assert of_optimal._unchanged(rules) is None
    assert judged == [of_optimal.FIRST_SYMBOLS]
    sets = rules.sets(rules.reduced.joint)
    for merge in (merge_all, merge_subsets):
        # Where the time is over, sets are joined without a look at each.
        merge(sets, end=0.0)
    whole = [size for size in judged if size == len(rules.joint.useful)]
    assert len(whole) <= 3
