"""The law of the released row against the exact law of every single record."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import mechdesign as md
from mechdesign.auditing.row_leaves import row_law


def people(seed, records=200):
    chance = np.random.default_rng(seed)
    secret = chance.choice(["s", "t"], records, p=[0.4, 0.6])
    a = np.where(chance.random(records) < 0.5, secret, chance.choice(["x", "y"]))
    b = np.where(chance.random(records) < 0.5, a, chance.choice(["u", "v"], records))
    return pd.DataFrame(
        {"secret": secret, "a": a, "b": b, "k": chance.choice(["m", "n"], records)}
    )


@pytest.mark.parametrize("objective", ["truth", "information"])
@pytest.mark.parametrize("least_mass", [None, 0.3])
@pytest.mark.parametrize("given", [(), ("k",)])
def test_masses_are_sums_of_the_laws_of_the_records(objective, least_mass, given):
    """P(s, y) = sum over records of [s_i = s] W(y | x_i) / N, as fractions."""
    frame = people(4)
    channel = md.design_rows(
        frame,
        sensitive="secret",
        release=["a", "b"],
        given=given,
        promise="relative",
        notion=md.LIP(0.4),
        objective=objective,
        least_mass=least_mass,
    ).channel
    expected = {}
    columns = [*given, "a", "b"]
    for row in frame.to_dict("records"):
        texts = [row[name] for name in columns]
        for released, share in channel.distribution(texts).items():
            key = (row["secret"], released)
            expected[key] = expected.get(key, Fraction(0)) + share / len(frame)
    law = row_law(channel)
    masses = {}
    for leaf in range(len(law)):
        for secret, mass in zip(
            channel.sensitive.names, law.masses[leaf].tolist(), strict=True
        ):
            key = (secret, law.texts(leaf))
            masses[key] = masses.get(key, Fraction(0)) + Fraction(mass, law.total)
    assert {key: mass for key, mass in masses.items() if mass} == expected
