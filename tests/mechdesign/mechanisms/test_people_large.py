"""Panels of the sizes that people have: cells kept, and every person's lift in fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import mechdesign as md
from tests.oracles import people as oracle

EPSILON = 0.5

CELLS = 0.6
"""Least share of unchanged cells."""


def panel():
    """600 people with 4 waves, whose records alone would reach .08 to 2.5 together."""
    chance = np.random.default_rng(1)
    rows = []
    for person in range(600):
        ill = chance.random() < 0.4
        health, job = chance.integers(0, 4), chance.integers(0, 5)
        for wave in range(4):
            if chance.random() < 0.3:
                move = chance.integers(-1, 2) + (ill and chance.random() < 0.3)
                health = np.clip(health + move, 0, 4)
            if chance.random() < 0.2:
                job = chance.integers(0, 6)
            rows.append((person, wave, ill, f"h{health}", f"j{job}"))
    return pd.DataFrame(rows, columns=["id", "wave", "secret", "health", "job"])


def visits():
    """5,000 people of 1 to 8 visits, whose sequences nearly all differ."""
    chance = np.random.default_rng(5)
    rows = []
    for person in range(5000):
        ill = chance.random() < 0.3
        ward, drug = chance.integers(0, 6), chance.integers(0, 8)
        for visit in range(chance.integers(1, 9)):
            if chance.random() < 0.4:
                ward = chance.integers(0, 6)
            if chance.random() < 0.5:
                drug = min(7, chance.integers(0, 7) + (ill and chance.random() < 0.3))
            pain = int(np.clip(chance.normal(4.0 + ill, 2.0), 0, 10))
            rows.append((person, visit, ill, f"w{ward}", f"d{drug}", f"{pain}"))
    return pd.DataFrame(rows, columns=["id", "wave", "secret", "ward", "drug", "pain"])


@pytest.mark.slow
@pytest.mark.parametrize("table", [panel, visits])
def test_large_panels_keep_the_promise_and_most_cells(table):
    """Every lift of every person's sequence lies within the promise, the law of the sequences is
    kept, and at least `CELLS` of the cells are unchanged."""
    frame = table().assign(
        secret=lambda frame: frame["secret"].map({True: "y", False: "n"})
    )
    released = [name for name in frame if name not in ("id", "wave", "secret")]
    design = md.design(
        frame,
        md.LIP(EPSILON),
        sensitive="secret",
        release=released,
        person="id",
        wave="wave",
    )
    rows = frame.itertuples(index=False)
    people = oracle.sequences((row[0], row[1], row[2], tuple(row[3:])) for row in rows)
    law = design.channel.distribution
    low = Fraction(math.nextafter(math.exp(-EPSILON), 0.0))
    high = Fraction(math.nextafter(math.exp(EPSILON), 2.0))
    lifts = oracle.lifts(people, law)
    assert min(lifts.values()) >= low
    assert max(lifts.values()) <= high
    found: dict[object, int] = {}
    for _, sequence in people.values():
        found[sequence] = found.get(sequence, 0) + 1
    shares = {key: Fraction(count, len(people)) for key, count in found.items()}
    assert oracle.output_shares(people, law) == shares
    truth = oracle.unchanged_cells(people, law)
    assert truth >= CELLS
    assert design.truth is not None
    assert float(truth) == pytest.approx(
        sum(design.truth.values()) / len(released), abs=1e-9
    )
    assert len(design.channel.apply(frame)) == len(frame)
