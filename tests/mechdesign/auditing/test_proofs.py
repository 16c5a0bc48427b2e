"""The least cost, proven again from the multipliers in a channel file."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mechdesign as md
from mechdesign.auditing import proofs
from mechdesign.auditing.lifts import demands_of
from mechdesign.auditing.proofs import _frequencies, cost_bound, numbers_in
from mechdesign.channel.output_cells import own_rows
from mechdesign.channel.proof import CellCost, CostProof, EntropyProof, proof_in
from mechdesign.core.errors import InputError
from mechdesign.mechanisms import least_cost_instead
from mechdesign.tables.joint import Joint
from solvers.plans import search
from tests.oracles import proofs as oracle
from tests.profiles import scaled, slow

NOTIONS = {
    "alip": md.ALIP(0.3, 0.4),
    "ldp": md.LDP(0.6),
    "max-lift": md.MaxLift(0.3),
    "min-lift": md.MinLift(0.3),
}

OBJECTIVES = {
    "truth": {"objective": "truth"},
    "free": {"objective": "truth", "keep_frequencies": False},
    "free distance": {"objective": "distance", "keep_frequencies": False},
    "distance": {"objective": "distance"},
    "squared": {"objective": "distance", "distance": "squared"},
    "stay": {"objective": "truth", "stay": "0.2"},
    "forbid": {"objective": "truth", "forbid": [("1", "3")]},
}


def table(secrets, symbols, seed=0):
    counts = np.random.default_rng(seed).integers(1, 40, (secrets, symbols))
    labels = [str(k * k + 1) for k in range(symbols)]
    labels[1] = "3"
    return Joint.from_counts(counts.tolist(), useful_labels=labels)


def proof_of(design):
    proof = proof_in(design.channel.record.certificate)
    assert isinstance(proof, CostProof)
    return proof


@pytest.mark.parametrize("notion", NOTIONS)
@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("secrets", [2, 4])
def test_the_stated_bound_is_proven(notion, objective, secrets):
    design = md.design(table(secrets, 7), NOTIONS[notion], **OBJECTIVES[objective])
    stated = design.least.cost_lower_bound
    proven = cost_bound(design.channel, proof_of(design))
    scale = max(1.0, stated)
    assert stated - 1e-9 * scale <= proven <= design.least.cost
    assert design.least.cost - proven <= 1e-5 * scale


def test_every_budget_is_taken_once(monkeypatch):
    # Each symbol is limited by all others: with 300 of them that took ten seconds.
    design = md.design(table(12, 5), md.ALIP(0.3, 0.4), objective="truth")
    taken = []

    def exponential(budget):
        taken.append(budget)
        return math.exp(budget) * (1.0 - 1e-12)

    monkeypatch.setattr(proofs, "_exp_below", exponential)
    assert cost_bound(design.channel, proof_of(design)) > 0.0
    assert len(taken) == 12


@pytest.mark.parametrize("keep", [False, True])
def test_costs_of_a_matrix_are_in_the_proof(keep):
    costs = np.random.default_rng(5).integers(1, 9, (5, 5)) / 7
    np.fill_diagonal(costs, 0.0)
    design = md.design(table(3, 5), md.LIP(0.4), objective=costs, keep_frequencies=keep)
    proof = proof_of(design)
    assert proof.costs is not None
    assert Fraction(proof.costs[0][1]) == Fraction(costs[0, 1])
    proven = cost_bound(design.channel, proof)
    assert proven == pytest.approx(design.least.cost_lower_bound, abs=1e-9)


@pytest.mark.parametrize(
    ("secrets", "notion", "all_options"),
    [
        (2, md.LIP(0.3), ({}, {"keep_frequencies": False}, {"stay": "0.3"})),
        (3, md.LDP(0.5), ({},)),
        slow(2, md.LDP(0.5), ({}, {"keep_frequencies": False}, {"stay": "0.3"})),
        slow(3, md.LIP(0.3), ({}, {"keep_frequencies": False}, {"stay": "0.3"})),
        slow(3, md.LDP(0.5), ({"keep_frequencies": False}, {"stay": "0.3"})),
    ],
)
def test_many_symbols_have_the_proof_of_their_plan(secrets, notion, all_options):
    joint = Joint.from_counts(
        np.random.default_rng(1).integers(1, 40, (secrets, 160)).tolist(),
        useful_labels=[str(k) for k in range(160)],
    )
    for options in all_options:
        design = md.design(joint, notion, objective="truth", **options)
        assert design.method == "plan"
        stated = design.least.cost_lower_bound
        assert cost_bound(design.channel, proof_of(design)) >= stated - 1e-9


@pytest.mark.parametrize("options", [{}, {"protect_each": True}])
def test_several_columns_and_budgets_of_symbols(options):
    rng = np.random.default_rng(2)
    records = {
        "a": rng.choice(["a0", "a1", "a2"], 400),
        "b": rng.choice(["b0", "b1"], 400),
        "x": rng.choice(["1", "2", "3", "5"], 400),
    }
    design = md.design(
        pd.DataFrame(records),
        md.ALIP(0.1, 0.1),
        sensitive=["a", "b"],
        useful="x",
        objective="truth",
        **options,
    )
    stated = design.least.cost_lower_bound
    assert stated > 0.0
    assert cost_bound(design.channel, proof_of(design)) >= stated - 1e-9


def test_a_plan_whose_time_is_over_has_the_proof_of_its_ceiling(monkeypatch):
    """Only blocks and sweeps, and no bound by prices."""
    monkeypatch.setattr(search, "LARGEST_PROGRAM", 0)
    monkeypatch.setattr(search, "SWEPT", 40)
    monkeypatch.setattr(search, "PROOF", 0.0)
    joint = Joint.from_counts(
        np.random.default_rng(1).integers(1, 40, (2, 200)).tolist()
    )
    design = md.design(joint, md.LIP(0.1), objective="truth", time_limit=5.0)
    assert design.method == "plan"
    stated = design.least.cost_lower_bound
    assert 0.0 < stated < 0.95 * design.least.cost
    assert cost_bound(design.channel, proof_of(design)) >= stated - 1e-9


def frame(records=300, seed=3):
    rng = np.random.default_rng(seed)
    region = rng.integers(0, 3, records)
    job = (region + rng.integers(0, 3, records)) % 4
    age = 20 + rng.integers(0, 15, records)
    secret = (region + job + rng.integers(0, 3, records)) % 3
    return pd.DataFrame({"s": secret, "region": region, "job": job, "age": age}).astype(
        str
    )


ROWS = {
    "lip": (md.LIP(0.4), {"smallest_group": 1}),
    "ldp": (md.LDP(0.6), {"smallest_group": 1}),
    "groups": (md.LIP(0.4), {"smallest_group": 4}),
    "free": (md.MaxLift(0.3), {"keep_frequencies": False}),
    "distance": (md.LIP(0.4), {"objective": "distance", "smallest_group": 1}),
    "weights": (md.LIP(0.4), {"column_weights": {"job": 3}, "smallest_group": 1}),
    "total": (md.LIP(1.5), {"given": ["region"], "smallest_group": 1}),
    "relative": (
        md.LIP(0.4),
        {"given": ["region"], "promise": "relative", "smallest_group": 1},
    ),
    "symbols": (
        md.LIP(0.4).with_budgets({"1": (0.1, 0.2)}),
        {"smallest_group": 1},
    ),
}


@pytest.mark.parametrize("kind", ROWS)
def test_rows_have_the_proof_of_their_plan(kind):
    notion, options = ROWS[kind]
    released = ["region", "job", "age"]
    if "given" in options:
        released.remove("region")
    design = md.design(frame(), notion, sensitive="s", release=released, **options)
    stated = design.least.cost_lower_bound
    assert stated > 0.0
    proven = cost_bound(design.channel, proof_of(design))
    assert stated - 1e-9 <= proven <= design.least.cost


def test_the_frequencies_of_rows_are_those_of_the_channel():
    """A row that is not released has no mass, and all masses sum to 1, exactly."""
    design = md.design(
        frame(), md.LIP(0.4), sensitive="s", release=["job", "age"], smallest_group=8
    )
    channel = design.channel
    found = _frequencies(channel, channel.joint)
    assert sum(found) == 1
    expected = [Fraction(0)] * len(found)
    for x, row in enumerate(channel.rows):
        for label, entry in zip(channel.outputs, row, strict=True):
            share = Fraction(entry, channel.row_totals[x])
            mass = share * channel.joint.useful_counts[x] / channel.joint.total
            expected[channel.useful.names.index(label)] += mass
    assert found == expected
    assert 0 in found


def test_no_proof_is_kept_for_what_the_file_does_not_have():
    joint = table(2, 5)
    design = md.design(joint, md.LIP(2.0), mechanism="subset-merging")
    assert proof_in(design.channel.record.certificate) is None


numbers = st.floats(-2.0, 2.0, allow_nan=False, width=32)


@settings(max_examples=scaled(60), deadline=None)
@given(st.data())
def test_no_multipliers_prove_more_than_the_optimum(data):
    """Whatever multipliers a file has, the bound in fractions <= bound <= least cost."""
    counts = data.draw(
        st.lists(
            st.lists(st.integers(1, 9), min_size=3, max_size=3), min_size=2, max_size=3
        )
    )
    kind = data.draw(st.sampled_from(["lip", "max-lift", "ldp"]))
    keep = data.draw(st.booleans())
    notion = {"lip": md.LIP(0.4), "max-lift": md.MaxLift(0.4), "ldp": md.LDP(0.4)}[kind]
    joint = Joint.from_counts(counts)
    design = md.design(joint, notion, objective="truth", keep_frequencies=keep)
    row = st.tuples(numbers, numbers, numbers)
    lifts = tuple(data.draw(row) for _ in counts)
    prices = data.draw(row) if keep else (0.0, 0.0, 0.0)
    ratios = ()
    if kind == "ldp":
        # Positive ones pay for e^0.4 times as much.
        ratios = tuple(tuple(map(abs, data.draw(row))) for _ in counts[1:])
        least = [sum(column) / 1.5 for column in zip(*ratios, strict=True)]
        ratios = (tuple(-value for value in least), *ratios)
    proof = CostProof(prices=prices, lifts=lifts, ratios=ratios)
    found = cost_bound(design.channel, proof)
    assert found <= design.least.cost + 1e-12
    budgets = {"lip": (0.4, 0.4), "max-lift": (math.inf, 0.4), "ldp": (math.inf,) * 2}
    exact = oracle.least_cost(
        joint.counts,
        [[0, 1, 1], [1, 0, 1], [1, 1, 0]],
        prices,
        lifts,
        ratios,
        *budgets[kind],
        [Fraction(count, joint.total) for count in joint.useful_counts],
    )
    # Limits that follow from others only sharpen it.
    assert found >= float(exact) - 1e-12


def changed(proof, **fields):
    return proof.model_copy(update=fields)


def test_a_proof_of_another_table_is_refused():
    design = md.design(table(2, 6), md.LIP(0.4), objective="truth")
    other = proof_of(md.design(table(2, 5), md.LIP(0.4), objective="truth"))
    with pytest.raises(InputError, match=r"of another table: its lifts are not 2 x 6"):
        cost_bound(design.channel, other)
    proof = proof_of(design)
    with pytest.raises(InputError, match="of another table: it has 5 prices for 6"):
        cost_bound(design.channel, changed(proof, prices=(0.0,) * 5))
    # One of the same shape proves less.
    same = proof_of(md.design(table(2, 6, seed=9), md.LIP(0.4), objective="truth"))
    assert cost_bound(design.channel, same) < design.least.cost_lower_bound - 1e-6


def test_multipliers_that_prove_nothing_are_refused():
    design = md.design(table(3, 5), md.LDP(0.4), objective="truth")
    proof = proof_of(design)
    ratios = [list(row) for row in proof.ratios]
    ratios[0] = [-9.0] * 5
    forged = changed(proof, ratios=tuple(map(tuple, ratios)))
    with pytest.raises(InputError, match="multipliers of quotients that prove nothing"):
        cost_bound(design.channel, forged)
    free = md.design(
        table(3, 5), md.LIP(0.4), objective="truth", keep_frequencies=False
    )
    forged = changed(proof_of(free), prices=(1.0,) * 5)
    with pytest.raises(InputError, match="prices of frequencies, which are free"):
        cost_bound(free.channel, forged)
    # Without a limit on quotients none can be used.
    forged = changed(proof_of(free), ratios=proof.ratios)
    with pytest.raises(InputError, match="multipliers of quotients that prove nothing"):
        cost_bound(free.channel, forged)


def test_refusals():
    design = md.design(table(2, 5), md.LIP(0.4), objective="truth")
    proof = proof_of(design)
    channel = design.channel
    with pytest.raises(InputError, match="has no table, without which no bound"):
        cost_bound(channel.public(), proof)

    def recorded(**fields):
        return channel.with_record(replace(channel.record, **fields))

    with pytest.raises(InputError, match="designed after other releases"):
        cost_bound(recorded(after=("0" * 64,)), proof)
    with pytest.raises(InputError, match="a bound for the population"):
        cost_bound(recorded(confidence={"level": 0.9}), proof)
    with pytest.raises(InputError, match="one of a least cost, and the file has no"):
        cost_bound(recorded(objective=None), proof)
    own = channel.record.objective.model_copy(update={"name": "convex"})
    with pytest.raises(InputError, match="costs of your own are not in the file"):
        cost_bound(recorded(objective=own), proof)
    costs = channel.record.objective.model_copy(update={"name": "costs"})
    with pytest.raises(InputError, match="lacks the matrix of costs"):
        cost_bound(recorded(objective=costs), proof)
    rows = recorded(objective=channel.record.objective)
    rows = replace(rows, published=own_rows(rows.useful, range(5)))
    with pytest.raises(InputError, match="lacks the costs of cells"):
        cost_bound(rows, proof)
    for cell, message in (
        (CellCost(column="z", weight=1.0), "it has a column 'z'"),
        (
            CellCost(column=rows.useful.columns[0], weight=1.0, places={"1": 0.0}),
            "a cell has no place",
        ),
    ):
        with pytest.raises(InputError, match=message):
            cost_bound(rows, changed(proof, cells=(cell,)))
    with pytest.raises(InputError, match="its costs are not 5 x 5"):
        cost_bound(recorded(objective=costs), changed(proof, costs=(("1",),)))


def test_files_with_a_faulty_proof_say_what_is_wrong():
    good = {"kind": "entropy", "prices": [0.5]}
    assert proof_in({"proof": good}) == EntropyProof(prices=(0.5,))
    assert proof_in(None) is None
    for entry, message in {
        json.dumps({"kind": "costs", "prices": []}): r"the proof in .* has no 'lifts'",
        json.dumps({"kind": "other"}): "the proof in the certificate: ",
        json.dumps(good | {"x": 1}): "unknown key 'x'",
    }.items():
        with pytest.raises(InputError, match=message):
            proof_in({"proof": json.loads(entry)})
    with pytest.raises(InputError, match="must be a finite number"):
        proof_in({"proof": good | {"prices": [math.inf]}})


def test_symbols_without_a_number_have_no_distance():
    joint = table(2, 5)
    assert numbers_in(joint)[1] == 3
    with pytest.raises(InputError, match="is not a number"):
        numbers_in(Joint.from_counts([[1, 2], [2, 1]]))


AFTER = {
    "truth": (md.LIP(0.6), {"objective": "truth"}),
    "free": (md.MaxLift(0.5), {"objective": "truth", "keep_frequencies": False}),
    "quotients": (md.LDP(1.3), {"objective": "distance"}),
    "stay": (md.MinLift(0.6), {"objective": "truth", "stay": "0.2"}),
}


def with_earlier(symbols, notion, options):
    """A design after another one of a column that it does not release, with what it rests on."""
    rng = np.random.default_rng(11)
    s = rng.integers(0, 2, 1500)
    town = (s + rng.integers(0, 2, 1500)) % 3
    code = (2 * s + town + rng.integers(0, symbols - 1, 1500)) % symbols
    records = pd.DataFrame({"s": s, "town": town, "code": code}).astype(str)
    first = md.design(records, md.LIP(0.3), sensitive="s", useful="town").channel
    design = md.design(
        records, notion, sensitive="s", useful="code", after=[first], **options
    )
    whole = Joint.from_table(records, sensitive="s", useful=["town", "code"])
    demands = demands_of(whole, notion, [first], design.channel.joint)
    return design, demands


@pytest.mark.parametrize("kind", AFTER)
def test_costs_after_earlier_releases_have_their_proof(kind):
    notion, options = AFTER[kind]
    design, demands = with_earlier(5, notion, options)
    stated = design.least.cost_lower_bound
    assert stated > 0.0
    proven = cost_bound(design.channel, proof_of(design), demands)
    assert stated - 1e-9 <= proven <= design.least.cost
    with pytest.raises(InputError, match="designed after other releases"):
        cost_bound(design.channel, proof_of(design))


def test_plans_after_earlier_releases_have_their_proof(monkeypatch):
    monkeypatch.setattr(least_cost_instead, "MANY_SYMBOLS", 40)
    design, demands = with_earlier(40, md.LIP(0.4), {"objective": "truth"})
    assert design.method == "plan"
    stated = design.least.cost_lower_bound
    assert cost_bound(design.channel, proof_of(design), demands) >= stated - 1e-9
    first = md.design(frame(), md.LIP(0.2), sensitive="s", useful="region").channel
    rows = md.design(
        frame(),
        md.LIP(0.3),
        sensitive="s",
        release=["region", "job"],
        smallest_group=1,
        after=[first],
    )
    demands = demands_of(rows.channel.joint, md.LIP(0.3), [first])
    stated = rows.least.cost_lower_bound
    assert stated > 0.0
    assert cost_bound(rows.channel, proof_of(rows), demands) >= stated - 1e-9


@settings(max_examples=scaled(20), deadline=None)
@given(st.data())
def test_no_multipliers_prove_more_after_earlier_releases(data):
    design, demands = with_earlier(3, md.LIP(0.5), {"objective": "truth"})
    rows = sum(len(demand.sums) for demand in demands)
    lifts = np.zeros((rows, 3))
    # A few at random: all at once prove nothing.
    for _ in range(data.draw(st.integers(1, 6))):
        place = data.draw(st.integers(0, rows - 1)), data.draw(st.integers(0, 2))
        lifts[place] = data.draw(numbers)
    prices = data.draw(st.tuples(numbers, numbers, numbers))
    proof = CostProof(prices=prices, lifts=tuple(map(tuple, lifts.tolist())))
    assert cost_bound(design.channel, proof, demands) <= design.least.cost + 1e-12
