"""The Adult count table of this folder: 31,580 people by relationship (sensitive) and occupation (useful)."""

from __future__ import annotations

import csv
from pathlib import Path

import mechdesign as md

TABLE = Path(__file__).parent / "adult_relationship_by_occupation.csv"


def load() -> md.Joint:
    """Read the counts; labels stay text and counts stay integers."""
    with TABLE.open(newline="", encoding="utf-8") as stream:
        header, *rows = csv.reader(stream)
    return md.Joint.from_counts(
        [row[1:] for row in rows],
        sensitive_labels=[row[0] for row in rows],
        useful_labels=header[1:],
        sensitive="relationship",
        useful="occupation",
    )
