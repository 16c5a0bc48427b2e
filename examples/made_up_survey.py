"""Write a made-up survey of 6,000 people for the tutorials: ``python made_up_survey.py FILE.csv``.

Everybody gets an income class, and every other answer depends on it a little. The draws have a
fixed seed, so that everybody gets the same file.
"""

from __future__ import annotations

import csv
import random
import sys
from pathlib import Path

SEED = 20_240_601
RECORDS = 6_000

INCOMES = {"low": 5, "middle": 4, "high": 3}

ANSWERS: dict[str, dict[str, tuple[int, int, int]]] = {
    "region": {"north": (4, 4, 4), "south": (5, 4, 4), "east": (3, 4, 4)},
    "age": {
        "18-29": (6, 3, 2),
        "30-44": (5, 6, 6),
        "45-64": (4, 6, 7),
        "65+": (6, 4, 3),
    },
    "education": {"school": (7, 5, 2), "trade": (5, 6, 4), "university": (2, 4, 8)},
    "job": {
        "none": (7, 2, 1),
        "clerk": (4, 5, 3),
        "craft": (4, 5, 3),
        "service": (6, 4, 2),
        "professional": (1, 3, 8),
    },
    "housing": {"rents": (8, 5, 3), "owns": (4, 7, 9)},
    "children": {"0": (6, 5, 5), "1-2": (4, 5, 5), "3+": (2, 1, 1)},
    "transport": {"car": (5, 7, 7), "train": (4, 4, 4), "cycle": (3, 2, 2)},
    "contract": {"yes": (5, 6, 7), "no": (5, 4, 3)},
}
"""Answers to each question, with their weights among the three income classes."""


def person(number: int, chance: random.Random) -> list[str]:
    """One record: the identifier, the eight answers and the income class."""
    income = chance.choices(list(INCOMES), list(INCOMES.values()))[0]
    place = list(INCOMES).index(income)
    answers = [
        chance.choices(list(weights), [each[place] for each in weights.values()])[0]
        for weights in ANSWERS.values()
    ]
    return [str(number), *answers, income]


def write(path: Path) -> None:
    chance = random.Random(SEED)
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(["id", *ANSWERS, "income"])
        writer.writerows(person(number, chance) for number in range(1, RECORDS + 1))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: made_up_survey.py FILE.csv")
    write(Path(sys.argv[1]))
