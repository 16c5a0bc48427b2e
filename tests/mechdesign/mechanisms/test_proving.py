"""Bounds that a channel file states, proven again from its certificate."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mechdesign as md
from mechdesign.auditing.proofs import NOT_IN_TIME
from mechdesign.auditing.stated import (
    BOUNDS,
    is_bound,
    stated_figures,
    statement_of,
)
from mechdesign.channel.proof import (
    PROOF,
    CostProof,
    EntropyProof,
    proof_in,
)
from mechdesign.core.errors import InputError
from mechdesign.mechanisms.proving import (
    ALONE,
    NO_PROOF,
    Beside,
    ProvenAgain,
    boxes_with_certificate,
    least_changed,
    with_certificate,
)
from mechdesign.mechanisms.queries import Queries
from mechdesign.mechanisms.rules import Rules
from mechdesign.tables.joint import Joint
from mechdesign.tables.variable import Variable
from solvers import Polytope
from solvers.proving import proven_bound, proven_over_members
from tests.cases.documents import rewrite
from tests.oracles.proofs import least_entropy
from tests.profiles import scaled, slow

NOTIONS = {
    "alip": md.ALIP(0.1, 0.15),
    "ldp": md.LDP(0.25),
    "max-lift": md.MaxLift(0.1),
    "min-lift": md.MinLift(0.1),
}


def table(secrets, symbols, seed=0):
    counts = np.random.default_rng(seed).integers(1, 40, (secrets, symbols))
    return Joint.from_counts(
        counts.tolist(), useful_labels=[str(k) for k in range(symbols)]
    )


def proven(channel):
    return with_certificate(statement_of(channel), channel)


@pytest.mark.parametrize("notion", NOTIONS)
@pytest.mark.parametrize(("secrets", "symbols"), [(2, 9), (3, 7), (5, 11)])
def test_prices_of_every_search_prove_its_bound(notion, secrets, symbols):
    design = md.design(table(secrets, symbols), NOTIONS[notion])
    statement = proven(design.channel)
    assert statement.unproven == ()
    assert statement.only_stated == ()
    bound = statement.proven["upper_bound_nmi"]
    assert design.nmi <= bound
    assert bound == pytest.approx(design.upper_bound_nmi, abs=1e-9)


def test_the_bound_of_a_column_that_is_nearly_constant_is_proven():
    # Its entropy is .002 nats, so that rounding in nats counts five hundred times in the bound.
    weights = [
        ["0.00014928212308202028", "0.013591960402050664", "4.255089974049766"],
        ["8.253329063847984e-06", "0.007533018647084769", "933.4384708515814"],
        ["1.3935139386782237e-05", "0.022611443367452744", "969.8303682063217"],
        ["0.32247455876606135", "0.0003337643567193383", "1.5442507046089406e-05"],
        ["0.000600367820435919", "0.014941490058098828", "3.8282466657040725e-05"],
    ]
    table = Joint.from_counts(weights, weights=True)
    design = md.design(table, md.notions.AlphaLift(0.5, 0.5, alpha=2.0))
    assert proven(design.channel).unproven == ()


def test_a_bound_is_proven_beside_a_variance_that_is_infinite():
    counts = [[28, 26, 29, 42], [27, 20, 12, 42], [17, 7, 40, 35]]
    design = md.design(Joint.from_counts(counts), md.LIP(5e-7), objective="frequencies")
    utility = design.channel.record.utility
    assert utility is not None
    assert float(utility["variance"]) == math.inf
    statement = proven(design.channel)
    assert statement.unproven == ()
    assert statement.proven["variance_lower_bound"] == pytest.approx(
        utility["variance_lower_bound"], rel=1e-6
    )


def test_classes_of_symbols_have_one_price():
    # The second symbol is the first one with twice the records.
    joint = Joint.from_counts([[3, 6, 1, 8], [2, 4, 7, 5], [4, 8, 3, 3]])
    design = md.design(joint, md.LIP(0.1))
    prices = proof_in(design.channel.record.certificate).prices
    assert prices[0] == prices[1]
    assert proven(design.channel).proven.keys() == {"upper_bound_nmi"}


@pytest.mark.parametrize("seed", range(5))
def test_the_bound_is_that_of_all_vertices(seed):
    """With two secrets: prices . p + least of H(v) - prices . v over all vertices."""
    joint = table(2, 6, seed)
    budget = 0.2
    design = md.design(joint, md.LIP(budget))
    prices = np.random.default_rng(seed).uniform(0, 2, 6)
    proof = EntropyProof(prices=tuple(prices.tolist()))
    # The lift of the second secret limits that of the first.
    share = joint.p_s[0]
    low = max(math.exp(-budget), (1 - (1 - share) * math.exp(budget)) / share)
    high = min(math.exp(budget), (1 - (1 - share) * math.exp(-budget)) / share)
    least = least_entropy(joint.counts, prices, low, high)
    entropy = float(-(joint.p_x * np.log(joint.p_x)).sum())
    expected = 1.0 - (float(prices @ joint.p_x) + least) / entropy
    found = ProvenAgain(design.channel, joint, ALONE).kept_bound(proof, 0.0)
    assert found == pytest.approx(min(1.0, expected), abs=1e-9)
    assert found >= design.nmi


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "channel.json"
    md.design(table(3, 6), md.LIP(0.1)).channel.save(path)
    return path


def of_a_smaller_budget(tmp_path, **options):
    """A file that states the bound of LIP(0.05), of which its channel is the optimum, for LIP(0.1)."""
    path = tmp_path / "smaller.json"
    md.design(table(3, 6), md.LIP(0.05), **options).channel.save(path)

    def forge(document):
        document["notion"]["epsilon"] = 0.1

    rewrite(path, forge)
    return path


@pytest.mark.parametrize(
    ("options", "name"),
    [({}, "upper_bound_nmi"), ({"objective": "truth"}, "cost_lower_bound")],
)
def test_a_forged_bound_is_not_proven(tmp_path, options, name):
    channel = md.load(of_a_smaller_budget(tmp_path, **options))
    # Nothing but the bound is wrong, and no figure of the table disproves it.
    assert not statement_of(channel).disproved
    statement = proven(channel)
    assert statement.disproved
    (unproven,) = statement.unproven
    assert unproven.name == name
    assert unproven.reason == "the proof in the file does not reach it"
    if name == "upper_bound_nmi":
        assert unproven.proven > unproven.stated + 1e-3
    else:
        assert unproven.proven < unproven.stated - 1e-3


IN_TIME = {
    "information": (3, 7, md.LIP(0.1), {}),
    "information, kl": (3, 7, md.KL(0.02, 0.02), {}),
    "information, population": (2, 5, md.LIP(0.9), {"confidence": 0.9}),
    "information, average": (2, 4, None, {"average": {"mi": 0.02}}),
    "truth": (3, 7, md.LIP(0.1), {"objective": "truth"}),
    "truth, chi2": (3, 5, md.Chi2Lift(0.1, 0.1), {"objective": "truth"}),
    "truth, population": (
        *(2, 5, md.LIP(0.9)),
        {"confidence": 0.9, "objective": "truth"},
    ),
    "frequencies": (3, 6, md.LIP(0.1), {"objective": "frequencies"}),
}


@pytest.mark.parametrize("kind", IN_TIME)
def test_a_bound_is_not_proven_after_its_time(kind):
    secrets, symbols, notion, options = IN_TIME[kind]
    joint = table(secrets, symbols)
    channel = md.design(joint, notion, time_limit=10, **options).channel
    in_time = proven(channel)
    assert in_time.unproven == ()
    assert in_time.proven
    too_late = with_certificate(statement_of(channel), channel, end=time.process_time())
    assert too_late.proven == {}
    assert {one.name for one in too_late.unproven} == in_time.proven.keys()
    assert all(one.out_of_time for one in too_late.unproven)
    assert too_late.unproven[0].reason == NOT_IN_TIME


def test_a_forged_bound_is_no_matter_of_time(tmp_path):
    channel = md.load(of_a_smaller_budget(tmp_path))
    later = time.process_time() + 60.0
    (unproven,) = with_certificate(statement_of(channel), channel, end=later).unproven
    assert not unproven.out_of_time
    assert unproven.reason == "the proof in the file does not reach it"


def test_forged_prices_prove_less(file):
    def forge(document):
        prices = document["certificate"][PROOF]["prices"]
        document["certificate"][PROOF]["prices"] = [2.0 * price for price in prices]

    rewrite(file, forge)
    assert [one.name for one in proven(md.load(file)).unproven] == ["upper_bound_nmi"]


def test_the_prices_of_another_table_are_refused(file):
    other = md.design(table(3, 5), md.LIP(0.1)).channel.record.certificate[PROOF]

    def forge(document):
        document["certificate"][PROOF] = other

    rewrite(file, forge)
    (unproven,) = proven(md.load(file)).unproven
    assert "of another table: it has 5 prices for 6 symbols" in unproven.reason
    same = md.design(table(3, 6, 8), md.LIP(0.1)).channel.record.certificate[PROOF]

    def forge_again(document):
        document["certificate"][PROOF] = same

    rewrite(file, forge_again)
    (unproven,) = proven(md.load(file)).unproven
    assert unproven.proven > unproven.stated


def test_a_file_without_a_proof_proves_nothing(file):
    def strip(document):
        del document["certificate"][PROOF]

    rewrite(file, strip)
    (unproven,) = proven(md.load(file)).unproven
    assert (unproven.proven, unproven.reason) == (None, NO_PROOF)
    # Of another kind is none, either.
    costs = md.design(table(3, 6), md.LIP(0.1), objective="truth").channel
    entry = costs.record.certificate[PROOF]

    def exchange(document):
        document["certificate"][PROOF] = entry

    rewrite(file, exchange)
    (unproven,) = proven(md.load(file)).unproven
    assert unproven.reason == "the proof in the file is of another bound"


def test_a_public_file_has_no_bound_and_no_proof(file):
    channel = md.load(file).public()
    assert proof_in(channel.record.certificate) is None
    assert proven(channel).unproven == ()


def test_bounds_that_nothing_passes_need_no_proof():
    design = md.design(table(2, 5), md.LIP(50.0))
    assert design.upper_bound_nmi == 1.0
    assert proven(design.channel).proven == {"upper_bound_nmi": 1.0}
    least = md.design(table(2, 5), md.LIP(50.0), objective="truth")
    assert proven(least.channel).proven["cost_lower_bound"] <= 0.0


def test_the_cost_of_a_file_is_proven(tmp_path):
    path = tmp_path / "costs.json"
    md.design(table(3, 6), md.LIP(0.1), objective="truth").channel.save(path)
    statement = proven(md.load(path))
    stated = md.load(path).record.utility["cost_lower_bound"]
    assert statement.proven["cost_lower_bound"] == pytest.approx(stated, abs=1e-9)


def test_a_pricing_without_time_proves_less():
    rng = np.random.default_rng(0)
    lift = rng.dirichlet(np.ones(6), 40).T
    lift /= lift.mean(axis=1, keepdims=True)
    polytope = Polytope(lift, np.full(6, 0.9), np.full(6, 1.1))
    point = np.full(40, 1 / 40)
    prices = np.full(40, 1.0)
    whole = proven_bound(polytope, point, prices, least=10.0, time_limit=1.0)
    assert whole <= math.log(40)
    reached = proven_bound(polytope, point, prices, least=whole - 0.5)
    assert reached >= whole - 0.5 - 1e-9


QUERIES = Queries(np.array([[1.0, 2.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 3.0, 1.0]]))

GAINS = ([[1, 0, 0.5], [0, 1, 0], [0.25, 0, 1]], 0.53)

PRICED = {
    "frequencies": {"notion": md.LIP(0.1), "objective": "frequencies"},
    "prefix": {"notion": md.LDP(0.3), "objective": "prefix"},
    "ranges": {"notion": md.MaxLift(0.2), "objective": "ranges"},
    "queries": {"notion": md.LIP(0.1), "objective": QUERIES},
    "task": {"notion": md.LIP(0.1), "objective": "task", "task": "t"},
    "task of quotients": {"notion": md.LDP(0.3), "objective": "task", "task": "t"},
    "task within mi": {
        "notion": md.LIP(0.8),
        "objective": "task",
        "task": "t",
        "average": {"mi": 0.02},
    },
    "task within tv alone": {
        "objective": "task",
        "task": "t",
        "average": {"tv": 0.05},
    },
    "frequencies within tv alone": {
        "objective": "frequencies",
        "average": {"tv": 0.06},
    },
    "queries within tv": {
        "notion": md.LIP(0.8),
        "objective": QUERIES,
        "average": {"tv": 0.1},
    },
    "gain": {"average": {"gain": GAINS}},
    "task within most of mi alone": {
        "objective": "task",
        "task": "t",
        "average": {"mi": "80%"},
    },
    "cost within mi": {
        "notion": md.LIP(0.8),
        "objective": "truth",
        "average": {"mi": 0.02},
    },
    "cost within guesses alone": {
        "objective": "distance",
        "average": {"guess": 0.45},
    },
    "frequencies within guesses": {
        "objective": "frequencies",
        "average": {"guess": 0.45},
    },
    "two averages": {"notion": md.LIP(0.8), "average": {"mi": 0.01, "tv": 0.05}},
    "confidence": {"notion": md.LIP(0.5), "confidence": 0.9},
    "cost of populations": {
        "notion": md.LIP(0.1),
        "confidence": 0.9,
        "objective": "truth",
    },
    "distance of populations": {
        "notion": md.LDP(0.2),
        "confidence": 0.9,
        "objective": "distance",
    },
    "confidence of quotients": {"notion": md.LDP(0.5), "confidence": 0.9},
    "task of populations": {
        "notion": md.LIP(0.5),
        "confidence": 0.9,
        "objective": "task",
        "task": "t",
    },
    "frequencies of populations": {
        "notion": md.LDP(0.5),
        "confidence": 0.9,
        "objective": "frequencies",
    },
    "budgets of populations": {
        "notion": md.LIP(0.5),
        "confidence": 0.9,
        "budgets": {"s0": (0.2, 0.3)},
    },
    "l1": {"notion": md.L1Lift(0.2, 0.2)},
    "chi2 of posteriors": {"notion": md.Chi2Lift(math.inf, 0.2)},
    "inverse chi2": {"notion": md.Chi2Lift(0.2, 0.2)},
    "alpha": {"notion": md.AlphaLift(0.05, 0.05)},
    "kl": {"notion": md.KL(0.02, 0.02)},
    "ranges of a mean": {"notion": md.L1Lift(0.15, 0.15), "objective": "ranges"},
    "task of a mean": {"notion": md.KL(0.05, 0.05), "objective": "task", "task": "t"},
}
for measure, most in {
    "mi": "40%",
    "tv": "40%",
    "chi2": "40%",
    "maximal-leakage": "40%",
    "guess": 0.45,
}.items():
    PRICED[measure] = {"average": {measure: most}}
    PRICED[f"{measure} beside a promise"] = {
        "average": {measure: most},
        "notion": md.LIP(0.8),
    }
    PRICED[f"least {measure}"] = {"average": {measure: None}, "keep": "70%"}


def priced(name, after=()):
    options = dict(PRICED[name])
    joint = table(3, 5, 1)
    if "confidence" in options:
        counts = [[300 * count for count in row] for row in joint.counts]
        joint = replace(joint, counts=tuple(map(tuple, counts)))
    if "task" in options:
        sensitive = Variable(("t",), (("a",), ("b",), ("c",)))
        options["task"] = replace(table(3, 5, 7), sensitive=sensitive)
    if after:
        options["after"] = after
    return md.design(joint, **options)


@cache
def channel_priced(name):
    return priced(name).channel


LONG = ("ranges of a mean", "frequencies within tv alone", "task within mi")
"""The search takes long, and its parts are in others, too."""


def all_priced():
    return [slow(name) if name in LONG else name for name in PRICED]


@pytest.mark.parametrize("name", all_priced())
def test_prices_of_every_objective_prove_its_bound(name):
    channel = channel_priced(name)
    stated = stated_figures(channel)
    statement = proven(channel)
    assert statement.unproven == ()
    bounds = [figure for figure in stated if is_bound(figure)]
    assert set(statement.proven) == set(bounds)
    for figure in bounds:
        assert statement.proven[figure] == pytest.approx(stated[figure], rel=3e-7)


@pytest.mark.parametrize("name", all_priced())
def test_forged_bounds_and_prices_of_every_objective_prove_less(name, tmp_path):
    path = tmp_path / "channel.json"
    channel_priced(name).save(path)

    def bounds_of(document):
        places = [document["utility"], document["certificate"]]
        places += document.get("averages", [])
        for place in places:
            for figure in {*BOUNDS, "lower_bound"} & place.keys():
                if place[figure] is not None:
                    yield place, figure

    def better(document):
        for place, figure in bounds_of(document):
            sign = -1.0 if figure in ("upper_bound_nmi", "task_upper_bound") else 1.0
            place[figure] *= 1.0 + sign * 1e-3

    def other_prices(document):
        proof = document["certificate"][PROOF]
        proof["prices"] = proof["prices"][1:] + proof["prices"][:1]

    for change in (better, other_prices):
        rewrite(path, change, tmp_path / "forged.json")
        channel = md.load(tmp_path / "forged.json")
        statement = proven(channel)
        assert statement.disproved, change
        for one in statement.unproven:
            assert one.proven is None or math.isfinite(one.proven)


def forged(name, tmp_path, change):
    """The reason why a bound of a forged file is not proven."""
    path = tmp_path / "channel.json"
    channel_priced(name).save(path)
    rewrite(path, lambda document: change(document["certificate"][PROOF]))
    return proven(md.load(path)).unproven[0].reason


def test_proofs_of_other_objectives_are_refused(tmp_path):
    for name, change, reason in (
        (
            "task",
            lambda proof: proof["task"].reverse() or proof["task"][0].reverse(),
            "of another objective, by which task_kept is",
        ),
        (
            "task",
            lambda proof: proof.update(task=[[0, 1, 1, 1, 1]] * 2),
            "a task without records of a symbol",
        ),
        (
            "task",
            lambda proof: proof.update(task=[[1, 1, 1, 1, 1], [0, 0, 0, 0, 0]]),
            "say nothing about the task",
        ),
        (
            "queries",
            lambda proof: proof["queries"].pop(),
            "of another objective, by which variance is",
        ),
        (
            "queries",
            lambda proof: proof["inverse"].pop(),
            "its matrix has another size",
        ),
        (
            "mi",
            lambda proof: proof.update(leakages=[]),
            "it has 0 prices for 1 averages",
        ),
    ):
        folder = tmp_path / reason[-5:]
        folder.mkdir(exist_ok=True)
        for old in folder.iterdir():
            old.unlink()
        assert reason in forged(name, folder, change)


@pytest.mark.parametrize("objective", ["information", "frequencies", "task"])
def test_after_earlier_releases_they_are_needed(objective):
    first = md.design(table(3, 5, 1), md.LIP(0.1)).channel
    name = {"information": "guess"}.get(objective, objective)
    options = {**PRICED[name], "notion": md.LIP(0.4)}
    options.pop("average", None)
    PRICED["after"] = options
    channel = priced("after", after=[first]).channel
    del PRICED["after"]
    (reason,) = {one.reason for one in proven(channel).unproven}
    assert "which its file does not have: give them (after=)" in reason
    beside = Beside([first])
    statement = with_certificate(statement_of(channel), channel, beside)
    assert statement.unproven == ()
    assert statement.proven
    other = md.design(table(3, 5, 1), md.LIP(0.05)).channel
    statement = with_certificate(statement_of(channel), channel, Beside([other]))
    (reason,) = {one.reason for one in statement.unproven}
    assert "than those that are given (after=)" in reason


BOXES = {
    "labels": {"objective": "information"},
    "labels of strata": {"objective": "information", "given": ["region"]},
    "own": {"objective": "truth"},
    "own of strata": {"objective": "truth", "given": ["region"]},
    "filled": {"objective": "truth", "fill": True},
    "unseen": {"objective": "truth", "cells": 12, "records": 300},
}


@cache
def boxes(name):
    options = {"cells": 4, **BOXES[name]}
    size = options.pop("records", 4000)
    rng = np.random.default_rng(6)
    region, noise = rng.integers(0, 2, (2, size))
    secret = rng.integers(0, 3, size)
    job = (secret * noise + rng.integers(0, 5, size)) % 6
    columns = {"s": secret, "region": region, "job": job}
    columns["age"] = (region + rng.integers(0, 7, size)) % 7
    if "given" in options:
        options["promise"] = "relative"
    return md.design(
        pd.DataFrame(columns).astype(str),
        md.LIP(0.3),
        sensitive="s",
        release=["job", "age"],
        confidence=0.9,
        slice_seed=3,
        unit="record",
        **options,
    ).channel


@pytest.mark.parametrize("name", BOXES)
def test_bounds_of_boxes_are_proven_from_their_strata(name):
    channel = boxes(name)
    statement = boxes_with_certificate(channel)
    assert not statement.disproved
    utility = channel.boxed.claims.utility
    proven = {"upper_bound_nmi": utility.upper_bound_nmi}
    if utility.own_bound is not None:
        proven["own_bound"] = utility.own_bound
    assert statement.proven == pytest.approx(proven, abs=1e-9)
    assert utility.own_bound is None or utility.own_bound < 1.0


def forged_boxes(name, tmp_path, change):
    path = tmp_path / "boxes.json"
    boxes(name).save(path, overwrite=True)
    rewrite(path, lambda document: change(document["claims"]))
    return boxes_with_certificate(md.load(path))


@pytest.mark.parametrize("name", ["labels", "labels of strata"])
def test_forged_bounds_of_labels_are_not_proven(name, tmp_path):
    def bound(claims):
        claims["utility"]["bound"] *= 0.9999

    def prices(claims):
        proof = claims["strata"][0]["certificate"][PROOF]
        proof["prices"] = proof["prices"][1:] + proof["prices"][:1]

    for change in (bound, prices):
        (unproven,) = forged_boxes(name, tmp_path, change).unproven
        assert unproven.name == "upper_bound_nmi"
        assert unproven.proven > unproven.stated

    def kept(claims):
        claims["utility"]["information"] += 1e-6

    (wrong,) = forged_boxes(name, tmp_path, kept).wrong
    assert wrong.name == "nmi"


@pytest.mark.parametrize("name", ["own", "own of strata"])
def test_forged_bounds_of_own_boxes_are_not_proven(name, tmp_path):
    def bound(claims):
        claims["utility"]["own_bound"] -= 1e-4

    def sides(claims):
        proof = claims["strata"][0]["certificate"][PROOF]
        proof["sides"] = [row[1:] + row[:1] for row in proof["sides"]]

    for change in (bound, sides):
        (unproven,) = forged_boxes(name, tmp_path, change).unproven
        assert unproven.name == "own_bound"
        assert unproven.proven > unproven.stated

    def own(claims):
        claims["utility"]["own"] += 1e-6

    (wrong,) = forged_boxes(name, tmp_path, own).wrong
    assert wrong.name == "own"

    def without_proof(claims):
        del claims["strata"][0]["certificate"][PROOF]

    (unproven,) = forged_boxes(name, tmp_path, without_proof).unproven
    assert unproven.reason == NO_PROOF

    def without_records(claims):
        del claims["strata"][0]["utility"]["records"]

    (unproven,) = forged_boxes(name, tmp_path, without_records).unproven
    assert "lacks the numbers of records of its strata" in unproven.reason


@settings(max_examples=scaled(30), deadline=None)
@given(
    st.lists(st.floats(-0.3, 0.3), min_size=16, max_size=16),
    st.lists(st.floats(-0.3, 0.3), min_size=4, max_size=4),
)
def test_no_multipliers_refute_a_channel_of_own_boxes(sides, prices):
    """The channel is private and has its law, so none proves that it has to change more."""
    channel = boxes("own")
    proof = CostProof(
        prices=tuple(prices),
        lifts=(),
        sides=tuple(tuple(sides[4 * x : 4 * x + 4]) for x in range(4)),
    )
    (part,) = channel.parts
    forged = part.channel.with_proof(proof)
    assert len(forged.useful) == 4
    changed = 1.0 - channel.boxed.claims.utility.own
    assert least_changed(forged) <= changed + 1e-12


def test_public_boxes_have_no_bound():
    with pytest.raises(InputError, match="no table, without which no bound is proven"):
        boxes_with_certificate(boxes("own").public())


def test_a_table_of_very_many_rows_keeps_no_proof(monkeypatch):
    """To check it would take time by the square of their number."""
    few = table(2, 5)
    kept = md.design(few, md.LIP(0.5), objective="truth").channel
    assert PROOF in kept.record.certificate
    monkeypatch.setattr("mechdesign.mechanisms.proofs.MOST_SYMBOLS", 4)
    many = md.design(few, md.LIP(0.5), objective="truth").channel
    assert PROOF not in (many.record.certificate or {})
    assert many.rows == kept.rows


def mean_members(joint, budget, points):
    """Which points (k, n) chi2 allows, from both sides."""
    lifts = points @ np.array(joint.lift).T
    distances = [(lifts - 1.0) ** 2 @ joint.p_s, (1.0 / lifts - 1.0) ** 2 @ joint.p_s]
    return np.max(distances, axis=0) <= math.expm1(budget) ** 2


@pytest.mark.parametrize("seed", range(4))
def test_posteriors_of_a_mean_are_priced_as_a_grid_of_them(seed):
    joint, budget = table(3, 3, seed), 0.15
    prices = np.random.default_rng(seed).uniform(0.2, 1.2, 3)
    steps = np.arange(401) / 400
    first, second = (part.ravel() for part in np.meshgrid(steps, steps))
    inside = first + second <= 1.0
    points = np.column_stack([first, second, 1.0 - first - second])[inside]
    points = points[mean_members(joint, budget, points)]
    assert len(points) > 100
    entropies = -(points * np.log(np.maximum(points, 1e-300))).sum(axis=1)
    of_grid = prices @ joint.p_x + (entropies - points @ prices).min()
    members = Rules(joint, md.Chi2Lift(budget, budget)).members
    # The grid misses the least of all by -w log w at its width w, near the sides.
    least = of_grid - 0.02
    bound = proven_over_members(members, joint.p_x, prices, least=least)
    assert least - 1e-9 <= bound <= of_grid
    # What members refute is given up, and what is returned holds.
    bound = proven_over_members(members, joint.p_x, prices, least=of_grid + 0.01)
    assert bound <= of_grid


@settings(max_examples=scaled(8), deadline=None)
@given(
    st.integers(0, 10**6),
    st.integers(3, 12),
    st.sampled_from(["information", "task", "frequencies", "truth", "distance"]),
    st.sampled_from(["mi", "tv", "chi2", "maximal-leakage"]),
    st.integers(5, 95),
    st.sampled_from([None, md.LIP(0.6), md.LDP(1.2), md.MaxLift(0.5)]),
)
def test_what_a_design_within_an_average_states_is_proven(
    seed, symbols, objective, measure, share, notion
):
    # What is stated is proven however wide the gap is.
    options = {"average": {measure: f"{share}%"}, "time_limit": 1.0, "gap": 1e-2}
    if objective != "information":
        options["objective"] = objective
    if objective == "task":
        sensitive = Variable(("t",), (("a",), ("b",), ("c",)))
        options["task"] = replace(table(3, symbols, seed + 1), sensitive=sensitive)
    if notion is not None:
        options["notion"] = notion
    channel = md.design(table(3, symbols, seed), **options).channel
    statement = proven(channel)
    assert statement.unproven == ()
    # And no more than the channel itself reaches.
    figures = channel.record.utility
    if "cost" in figures:
        assert statement.proven["cost_lower_bound"] <= figures["cost"] + 1e-12
    if "variance" in figures:
        assert statement.proven["variance_lower_bound"] <= figures["variance"] * (
            1 + 1e-9
        )
    if "task_kept" in figures:
        assert statement.proven["task_upper_bound"] >= figures["task_kept"] - 1e-12


def test_costs_of_many_symbols_are_proven_for_a_set_of_populations():
    """The least side of an output takes more than fifty rounds of rows."""
    counts = np.random.default_rng(0).integers(1, 60, (3, 17)) * 200
    joint = Joint.from_counts(
        counts.tolist(), useful_labels=[str(k) for k in range(17)]
    )
    design = md.design(joint, md.MinLift(0.93), objective="distance", confidence=0.9)
    assert proven(design.channel).unproven == ()
