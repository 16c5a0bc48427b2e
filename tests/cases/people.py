"""Tables of records that several tests release rows of."""

from __future__ import annotations

import numpy as np
import pandas as pd

ADULT = [
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education-num",
    "marital",
    "occupation",
    "relationship",
    "race",
    "sex",
    "gain",
    "loss",
    "hours",
    "country",
    "income",
]
"""The columns of adult.data, in its order."""

BINS = {
    "hours": "0,20,35,40,41,50,60,inf",
    "age": "0,25,35,45,55,65,75,inf",
}
"""Edges for its numbers."""

ORDER = [
    "education",
    "occupation",
    "hours",
    "workclass",
    "age",
    "sex",
    "marital",
    "country",
]
"""Its columns that are released."""


def people(records: int = 900, seed: int = 3) -> pd.DataFrame:
    """Two useful columns that both depend on the sensitive one."""
    chance = np.random.default_rng(seed)
    secret = chance.choice(["s", "t"], records, p=[0.4, 0.6])
    a = np.where(
        chance.random(records) < 0.6, secret, chance.choice(["x", "y"], records)
    )
    b = np.where(
        chance.random(records) < 0.5, a, chance.choice(["u", "v", "w"], records)
    )
    return pd.DataFrame(
        {"secret": secret, "a": a, "b": b, "k": chance.choice(["m", "n"], records)}
    )
