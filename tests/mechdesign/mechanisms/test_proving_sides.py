"""Proofs of least costs under notions on averages, and of strata beside given columns."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest

import mechdesign as md
from mechdesign.auditing.stated import statement_of
from mechdesign.channel.proof import PROOF, proof_in
from mechdesign.mechanisms.proving import (
    OWN_FUNCTIONS,
    with_certificate,
)
from mechdesign.notions import KL, AlphaLift, Chi2Lift, L1Lift
from mechdesign.tables.joint import Joint
from tests.cases.documents import rewrite
from tests.profiles import slow

MEANS = {
    "l1": L1Lift(0.3, 0.3),
    "l1, one side": L1Lift(math.inf, 0.2),
    "chi2": Chi2Lift(0.3, 0.3),
    "alpha": AlphaLift(0.2, 0.2),
    "kl": KL(0.05, 0.05),
}

OBJECTIVES = {
    "truth": {"objective": "truth"},
    "free": {"objective": "truth", "keep_frequencies": False},
    "distance": {"objective": "distance"},
    "costs": {"objective": (1 - np.eye(5)) / 3},
    "stay": {"objective": "truth", "stay": "0.2"},
}


def table(secrets, symbols, seed=4, times=1):
    counts = np.random.default_rng(seed).integers(1, 40, (secrets, symbols)) * times
    labels = [str(k * k) for k in range(symbols)]
    return Joint.from_counts(counts.tolist(), useful_labels=labels)


@cache
def designed(notion, objective="truth", secrets=3):
    return md.design(table(secrets, 5), MEANS[notion], **OBJECTIVES[objective])


def proven(channel):
    return with_certificate(statement_of(channel), channel)


def asked_of_means():
    """Every notion of the costs of truth, and the other objectives of the notion that is searched fastest."""
    for objective in OBJECTIVES:
        for notion in MEANS:
            is_quick = objective == "truth" or notion == "kl"
            yield (notion, objective, 3) if is_quick else slow(notion, objective, 3)
            yield slow(notion, objective, 2)


@pytest.mark.parametrize(("notion", "objective", "secrets"), [*asked_of_means()])
def test_the_least_cost_of_a_notion_on_averages_is_proven(notion, objective, secrets):
    made = designed(notion, objective, secrets)
    statement = proven(made.channel)
    assert statement.unproven == ()
    bound = statement.proven["cost_lower_bound"]
    assert 0.0 < bound <= made.least.cost
    assert bound == pytest.approx(made.least.cost_lower_bound, abs=1e-6)


def test_symbols_of_a_class_have_the_sides_of_their_class():
    counts = [[3, 6, 1, 8], [2, 4, 7, 5], [4, 8, 3, 3]]
    made = md.design(Joint.from_counts(counts), KL(0.02, 0.02), objective="truth")
    sides = np.array(proof_in(made.channel.record.certificate).sides)
    assert sides[0].tolist() == sides[1].tolist()
    assert proven(made.channel).unproven == ()


@pytest.mark.parametrize("notion", ["chi2", "kl", "l1", "alpha"])
def test_forged_sides_prove_less(notion, tmp_path):
    path = tmp_path / "channel.json"
    made = designed(notion)

    def sides(document):
        proof = document["certificate"][PROOF]
        proof["sides"] = [[1.1 * side for side in row] for row in proof["sides"]]

    def other_sides(document):
        proof = document["certificate"][PROOF]
        proof["sides"] = [row[1:] + row[:1] for row in proof["sides"]]

    for change in (sides, other_sides):
        made.channel.save(path, overwrite=True)
        rewrite(path, change)
        (unproven,) = proven(md.load(path)).unproven
        assert unproven.name == "cost_lower_bound"
        assert unproven.proven < unproven.stated - 1e-5


@pytest.mark.parametrize("notion", ["chi2", "kl", "l1", "alpha"])
def test_posteriors_of_a_proof_are_not_trusted(notion, tmp_path):
    """They say where rows touch; others give other rows, which hold as well."""
    path = tmp_path / "channel.json"
    made = designed(notion)
    made.channel.save(path)

    def touched(document):
        proof = document["certificate"][PROOF]
        proof["touched"] = [[0.2] * 5, [0.6, 0.1, 0.1, 0.1, 0.1]]

    rewrite(path, touched)
    statement = proven(md.load(path))
    values = [*statement.proven.values(), *(one.proven for one in statement.unproven)]
    assert len(values) == 1
    assert values[0] <= made.least.cost + 1e-9


def test_the_sides_of_a_larger_budget_prove_less_than_is_stated(tmp_path):
    path = tmp_path / "channel.json"
    made = md.design(table(3, 5), KL(0.02, 0.02), objective="truth")
    made.channel.save(path)

    def forge(document):
        document["notion"] |= {"eps_l": 0.05, "eps_u": 0.05}

    rewrite(path, forge)
    (unproven,) = proven(md.load(path)).unproven
    wider = md.design(table(3, 5), KL(0.05, 0.05), objective="truth")
    assert unproven.proven <= wider.least.cost


def test_budgets_of_symbols_are_proven_for_a_set_of_populations():
    made = md.design(
        table(3, 5, times=300),
        md.LIP(0.3),
        confidence=0.9,
        budgets={"s0": (0.05, 0.05)},
        objective="truth",
    )
    statement = proven(made.channel)
    assert statement.unproven == ()
    assert statement.proven["cost_lower_bound"] > 0.3


def records():
    rng = np.random.default_rng(3)
    region = rng.integers(0, 3, 2000)
    job = (region + rng.integers(0, 2, 2000)) % 3
    columns = {
        "s": (region + job + rng.integers(0, 2, 2000)) % 3,
        "region": region,
        "job": job,
        "age": 20 + rng.integers(0, 5, 2000),
    }
    return pd.DataFrame(columns).astype(str)


def beside_given(notion, **options):
    options = {"objective": "information", "release": ["age", "job"], **options}
    return md.design(records(), notion, sensitive="s", given=["region"], **options)


@pytest.mark.parametrize(
    ("notion", "options"),
    [
        (md.LIP(1.5), {}),
        (md.LDP(0.4), {"promise": "relative"}),
        (md.LIP(0.3), {"promise": "relative"}),
        (md.LIP(0.1), {"promise": "relative", "budgets": {"0": (0.1, 0.2)}}),
    ],
)
def test_information_beside_given_columns_is_proven(notion, options):
    made = beside_given(notion, **options)
    assert made.upper_bound_nmi < 0.999
    statement = proven(made.channel)
    assert statement.unproven == ()
    bound = statement.proven["upper_bound_nmi"]
    assert made.nmi <= bound
    assert bound == pytest.approx(made.upper_bound_nmi, abs=1e-9)


def test_forged_bounds_and_prices_beside_given_columns_are_not_proven():
    channel = beside_given(md.LIP(0.3), promise="relative").channel
    certificate = dict(channel.record.certificate)
    certificate["upper_bound_nmi"] -= 0.5 * certificate["gap_nmi"]
    record = replace(channel.record, certificate=certificate)
    (unproven,) = proven(channel.with_record(record)).unproven
    assert unproven.proven > unproven.stated + 1e-9

    proof = proof_in(channel.record.certificate)
    half = tuple(1.5 * price for price in proof.prices)
    forged = channel.with_proof(proof.model_copy(update={"prices": half}))
    (unproven,) = proven(forged).unproven
    assert unproven.name == "upper_bound_nmi"
    assert unproven.proven > unproven.stated + 1e-4


def told_job(**options):
    """A task beside the given region: `job` says something about it in every region."""
    frame = records()
    frame["task"] = (frame["job"] == "0") & (frame["age"] > "22")
    return md.design(
        frame,
        md.LIP(0.1),
        sensitive="s",
        given=["region"],
        release=["age", "job"],
        promise="relative",
        objective="task",
        task="task",
        **options,
    )


def test_the_task_beside_given_columns_is_proven():
    made = told_job()
    purpose = made.purpose
    assert purpose.task_upper_bound < 0.999
    statement = proven(made.channel)
    assert statement.unproven == ()
    bound = statement.proven["task_upper_bound"]
    assert purpose.task_kept <= bound
    assert bound == pytest.approx(purpose.task_upper_bound, abs=1e-9)


def test_forged_tasks_beside_given_columns_are_not_proven():
    channel = told_job().channel
    proof = proof_in(channel.record.certificate)
    less = tuple(0.5 * price for price in proof.prices)
    forged = channel.with_proof(proof.model_copy(update={"prices": less}))
    (unproven,) = proven(forged).unproven
    assert unproven.proven > unproven.stated + 1e-4
    # Another task is told more, or less, of.
    other = tuple(count + 5 for count in proof.task[0]), *proof.task[1:]
    forged = channel.with_proof(proof.model_copy(update={"task": other}))
    (unproven,) = proven(forged).unproven
    assert "another objective" in unproven.reason


@pytest.mark.parametrize("notion", [md.LIP(0.05), md.LDP(0.2)])
def test_the_variance_beside_given_columns_is_proven(notion):
    made = beside_given(
        notion, promise="relative", release=["age"], objective="frequencies"
    )
    accuracy = made.purpose
    assert accuracy.variance_lower_bound > 1.01 * accuracy.noise_free
    statement = proven(made.channel)
    assert statement.unproven == ()
    bound = statement.proven["variance_lower_bound"]
    assert accuracy.variance_lower_bound - 1e-9 <= bound <= accuracy.variance


def test_forged_variances_beside_given_columns_are_not_proven():
    channel = beside_given(
        md.LIP(0.05), promise="relative", release=["age"], objective="frequencies"
    ).channel
    proof = proof_in(channel.record.certificate)
    zeros = tuple((0.0,) * len(row) for row in proof.inverse)
    nothing = {"inverse": zeros, "prices": (0.0,) * len(proof.prices)}
    forged = channel.with_proof(proof.model_copy(update=nothing))
    (unproven,) = proven(forged).unproven
    # What is left is the variance of X itself.
    assert unproven.proven < unproven.stated
    small = {"inverse": proof.inverse[:-1]}
    forged = channel.with_proof(proof.model_copy(update=small))
    (unproven,) = proven(forged).unproven
    assert "another size" in unproven.reason


def test_reasons_are_given_where_there_is_no_proof():
    joint = table(2, 4)
    made = md.design(
        joint,
        md.LIP(0.3),
        objective="truth",
        constraints=lambda w, _: w[0, 0] <= 0.9,
    )
    (unproven,) = proven(made.channel).unproven
    assert unproven.reason == OWN_FUNCTIONS
    assert any("functions of your own" in message for message in made.messages)
    made = md.design(joint, md.LIP(0.3), objective=lambda w, _: cp.sum_squares(w) / 9)
    (unproven,) = proven(made.channel).unproven
    assert unproven.reason == OWN_FUNCTIONS
