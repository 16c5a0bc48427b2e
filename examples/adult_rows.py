"""The records of the UCI Adult data as text columns, with numbers in bins: what `survey.py` and
`train.py` release. MECHDESIGN_DATA names the folder that holds adult/adult.data.
"""

from __future__ import annotations

import bisect
import os
import sys
from pathlib import Path

import pyarrow as pa

NAMES = [
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "educationnum",
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

BINS = {"age": [25, 35, 45, 55, 65], "hours": [35, 41, 50]}
"""Where the next bin starts."""


def read(name: str, records: int | None = None) -> pa.Table:
    """The first records of adult.data or adult.test, all of them by default."""
    folder = os.environ.get("MECHDESIGN_DATA")
    if not folder:
        sys.exit("MECHDESIGN_DATA must name the folder of real data (adult)")
    lines = (Path(folder) / "adult" / name).read_text(encoding="utf-8").splitlines()
    # adult.test starts with a comment, and its incomes end in a full stop.
    rows = [line.rstrip(".").split(", ") for line in lines if line.count(",") == 14]
    columns = dict(zip(NAMES, zip(*rows[:records], strict=True), strict=True))
    table = {column: list(texts) for column, texts in columns.items()}
    for column, edges in BINS.items():
        table[column] = [_bin(int(text), edges) for text in table[column]]
    table["married"] = [
        "yes"
        if text.startswith("Married-") and text != "Married-spouse-absent"
        else "no"
        for text in table["marital"]
    ]
    return pa.table(table)


def _bin(number: int, edges: list[int]) -> str:
    place = bisect.bisect_right(edges, number)
    low = edges[place - 1] if place else 0
    return f"{low}-{edges[place] - 1}" if place < len(edges) else f"{low}+"
