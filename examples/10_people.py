"""People with several records in pandas: one promise for all of them, and what nights add up to.

Run it from any folder: ``python 10_people.py``. It writes its ledger to a temporary folder.
"""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

import mechdesign as md

PEOPLE = 200
SECRETS = np.random.default_rng(0).random(PEOPLE) < 0.4


def visits(night: int) -> pd.DataFrame:
    """The visits of one night: half of the people come, once or twice."""
    chance = np.random.default_rng(night)
    rows = []
    for person in np.flatnonzero(chance.random(PEOPLE) < 0.5):
        for visit in range(chance.integers(1, 3)):
            ward = chance.integers(0, 3) if chance.random() < 0.7 else SECRETS[person]
            when = f"2026-11-{night:02} 0{visit + 7}:00"
            secret = "yes" if SECRETS[person] else "no"
            rows.append((f"P{person}", when, secret, f"w{int(ward)}"))
    return pd.DataFrame(rows, columns=["patient", "at", "ill", "ward"])


def main() -> None:
    """Design for people, release two nights, and be refused the third."""
    first = visits(1)
    design = md.design(
        first,
        md.LIP(0.2),
        sensitive="ill",
        release="ward",
        person="patient",
        wave="at",
        # How many records a person has is seen anyway.
        promise="relative",
    )
    print(f"unchanged cells: {design.truth['ward']:.0%}")

    # The law of a person with two records, in exact fractions.
    law = design.channel.distribution([("w1",), ("w1",)])
    print(f"sums to one: {sum(law.values()) == 1}")

    nearest = md.Policy(unknown="nearest")
    with tempfile.TemporaryDirectory() as folder:
        ledger = Path(folder) / "ledger.db"
        released = md.sanitise(first, design.channel, ledger=ledger)
        print(f"as many records as before: {len(released) == len(first)}")
        try:
            md.sanitise(visits(2), design.channel, ledger=ledger, policy=nearest)
        except md.InputError as error:
            print(f"refused: {str(error).split(' (last')[0]}")
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            md.sanitise(
                visits(2), design.channel, ledger=ledger, policy=nearest, nights=5
            )
        (sentence,) = [
            str(one.message) for one in told if "each time" in str(one.message)
        ]
        print(f"both nights: {sentence}")


if __name__ == "__main__":
    main()
