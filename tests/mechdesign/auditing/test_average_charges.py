"""What average budgets add to the proof of a least cost."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mechdesign as md
from mechdesign.auditing.averages import charges_of
from mechdesign.auditing.proofs import cost_bound
from mechdesign.channel.proof import AverageCharge, CostProof, proof_in
from mechdesign.channel.record import AverageBudget
from mechdesign.core.errors import InputError
from mechdesign.tables.joint import Joint
from tests.profiles import scaled

COUNTS = [[9, 2, 4, 6], [3, 8, 4, 1], [1, 2, 5, 7]]

JOINT = Joint.from_counts(COUNTS, useful_labels=list("1234"))

GAINS = (("1", "0", "1/2"), ("0", "1", "0"), ("1/4", "0", "1"))

MEASURES = ["mi", "tv", "chi2", "maximal-leakage", "guess", "gain"]

BUDGETS = {
    "mi": "30%",
    "tv": "30%",
    "chi2": "30%",
    "maximal-leakage": "30%",
    "guess": 0.45,
    "gain": ([[1, 0, 0.5], [0, 1, 0], [0.25, 0, 1]], 0.6),
}

CHANNEL = md.design(JOINT, md.LIP(0.4), objective="truth").channel


def within(measure, budget=0.5):
    """The channel with a budget in its record."""
    gains = GAINS if measure == "gain" else None
    average = AverageBudget(measure=measure, budget=budget, gains=gains)
    return CHANNEL.with_record(replace(CHANNEL.record, averages=(average,)))


def charged(price, slopes):
    """A proof with nothing but slopes, and every output at the price 0."""
    charge = AverageCharge(price=price, slopes=tuple(map(tuple, slopes)))
    return CostProof(prices=(0.0,) * 4, lifts=(), averages=(charge,))


def leakage(measure, v):
    """Of a posterior, from the definitions."""
    joint = np.array(COUNTS) / np.sum(COUNTS)
    q = joint / joint.sum(axis=0) @ v
    p = joint.sum(axis=1)
    if measure == "mi":
        return sum(a * math.log(a / b) for a, b in zip(q, p, strict=True) if a > 0.0)
    if measure == "tv":
        return np.abs(q - p).sum() / 2.0
    if measure == "chi2":
        return ((q - p) ** 2 / p).sum()
    if measure == "maximal-leakage":
        return (q / p).max() - 1.0
    gains = np.eye(3)
    if measure == "gain":
        gains = np.array([[1, 0, 0.5], [0, 1, 0], [0.25, 0, 1]])
    return (gains @ q).max() - (gains @ q)[(gains @ p).argmax()]


@settings(max_examples=scaled(150), deadline=None)
@given(
    st.sampled_from(MEASURES),
    st.lists(st.floats(-3.0, 3.0), min_size=3, max_size=3),
    st.floats(1e-3, 4.0),
    st.lists(st.floats(0.0, 1.0), min_size=4, max_size=4),
)
def test_what_is_added_is_at_most_the_leakage_at_its_price(measure, u, price, weights):
    """sum_g u_g F_g(v) - c <= beta L(v) for every posterior v."""
    if measure in ("maximal-leakage", "guess", "gain"):
        u = np.abs(u)
        # Slopes that sum to more than the price are refused.
        u = u * min(1.0, price / max(u.sum(), 1e-12)) * (1.0 - 1e-12)
    slopes = np.tile(np.array(u)[:, None], 4)
    charges = charges_of(within(measure), JOINT, charged(price, slopes))
    v = np.array(weights) + 1e-9
    v /= v.sum()
    added = float(charges.slopes[:, 0] @ charges.functions @ v) - charges.constants[0]
    assert added <= price * leakage(measure, v) + 1e-12


@pytest.mark.parametrize("measure", ["mi", "tv", "chi2"])
def test_tangents_touch_the_leakage(measure):
    """The constants are no larger than they must be: at the lifts of a symbol nothing is lost."""
    price = 0.7
    joint = np.array(COUNTS) / np.sum(COUNTS)
    lifts = joint / joint.sum(axis=0) / joint.sum(axis=1)[:, None]
    slope = {"mi": np.log(lifts), "tv": np.sign(lifts - 1) / 2, "chi2": 2 * (lifts - 1)}
    charges = charges_of(within(measure), JOINT, charged(price, price * slope[measure]))
    for y in range(4):
        added = charges.slopes[:, y] @ charges.functions[:, y] - charges.constants[y]
        assert added == pytest.approx(price * leakage(measure, np.eye(4)[y]), abs=1e-9)


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize(
    "options",
    [
        {"objective": "truth"},
        {"objective": "distance", "notion": md.LIP(0.8)},
        {"objective": "truth", "keep_frequencies": False, "stay": "0.1"},
        {"objective": [[0, 2, 3, 1], [1, 0, 1, 4], [2, 1, 0, 1], [5, 1, 3, 0]]},
    ],
)
def test_the_bound_within_an_average_is_proven(measure, options):
    design = md.design(JOINT, average={measure: BUDGETS[measure]}, **options)
    least = design.least
    proof = proof_in(design.channel.record.certificate)
    proven = cost_bound(design.channel, proof)
    assert least.cost_lower_bound > 0.0
    assert least.cost_lower_bound - 1e-9 <= proven <= least.cost
    (charge,) = proof.averages
    assert charge.price > 0.0
    # A larger budget is charged more, and proves less.
    (average,) = design.channel.record.averages
    larger = average.model_copy(update={"budget": 1.1 * average.budget})
    record = replace(design.channel.record, averages=(larger,))
    assert cost_bound(design.channel.with_record(record), proof) < proven - 1e-4


def test_two_averages_and_classes_of_secrets_and_symbols():
    """The third secret has twice the records of the first, the last symbol those of the first."""
    counts = [[9, 2, 4, 18], [3, 8, 4, 6], [18, 4, 8, 36]]
    design = md.design(
        Joint.from_counts(counts),
        objective="truth",
        average={"mi": "30%", "maximal-leakage": "40%", "tv": "35%"},
    )
    proof = proof_in(design.channel.record.certificate)
    proven = cost_bound(design.channel, proof)
    assert design.least.cost_lower_bound - 1e-9 <= proven <= design.least.cost


@pytest.mark.parametrize("measure", MEASURES)
def test_rows_within_an_average_have_a_proof(measure):
    rng = np.random.default_rng(3)
    secret = rng.integers(0, 3, 400)
    frame = pd.DataFrame(
        {
            "s": np.array(list("abc"))[secret],
            "u": np.where(rng.random(400) < 0.6, secret, rng.integers(0, 3, 400)),
            "w": rng.integers(0, 2, 400),
        }
    ).astype(str)
    budget = {"guess": 0.5, "gain": ([[1, 0, 0], [0, 1, 1]], 0.75)}.get(measure, "40%")
    design = md.design(
        frame, sensitive="s", release=["u", "w"], average={measure: budget}
    )
    proof = proof_in(design.channel.record.certificate)
    proven = cost_bound(design.channel, proof)
    assert design.least.cost_lower_bound > 0.0
    assert design.least.cost_lower_bound - 1e-9 <= proven <= design.least.cost


def test_refusals():
    flat = [[0.0] * 4] * 3
    with pytest.raises(InputError, match="charges of 0 averages for 1"):
        charges_of(within("mi"), JOINT, CostProof(prices=(0.0,) * 4, lifts=()))
    with pytest.raises(InputError, match="charges of 1 averages for 0"):
        charges_of(CHANNEL, JOINT, charged(1.0, flat))
    for slopes in (flat[:2], [[0.0] * 3] * 3):
        with pytest.raises(InputError, match="its slopes have another size"):
            charges_of(within("mi"), JOINT, charged(1.0, slopes))
    steep = [[0.6] * 4, [0.6] * 4, [0.0] * 4]
    for measure in ("maximal-leakage", "guess", "gain"):
        for slopes in (steep, [[-0.1] * 4, *flat[1:]]):
            with pytest.raises(
                InputError, match="slopes of an average that prove noth"
            ):
                charges_of(within(measure), JOINT, charged(1.0, slopes))
    for measure in ("mi", "chi2"):
        with pytest.raises(InputError, match="slopes of an average that prove nothing"):
            charges_of(within(measure), JOINT, charged(0.0, steep))
    # Of total variation they prove less: what they gain at most is taken off.
    free = charges_of(within("tv"), JOINT, charged(0.0, steep))
    assert free.constants[0] == pytest.approx(0.6)
