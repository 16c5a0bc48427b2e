"""Every command that reads the records of people costs what they cost: twice as many are twice the
work and the memory, whatever the lengths of the sequences.

Calls, elements of arrays and bytes are counted, and no time is measured.
"""

from __future__ import annotations

import os

import numpy as np
import pandas as pd
import pytest

from mechdesign.cli import main
from tests.cases.growth import assert_linear, cost_of

pytestmark = pytest.mark.slow

SIZES = (3_000, 6_000, 12_000)
"""Numbers of people, with 1 to 3 records each."""

BYTES_OF_A_PERSON = 2_500
"""What a person may add to the memory of a command: the whole table is folded in it."""


def write_panel(path, people, night=1):
    """People of few different sequences: the same ones whatever the size."""
    chance = np.random.default_rng((5, night))
    ill = np.random.default_rng(1).random(people) < 0.4
    lengths = chance.integers(1, 4, people)
    person = np.repeat(np.arange(people), lengths)
    wave = np.arange(len(person)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    job = chance.integers(0, 2, people) + (ill & (chance.random(people) < 0.5))
    frame = pd.DataFrame(
        {
            "id": np.char.add("p", person.astype(str)),
            "at": night * 10 + wave,
            "ill": np.where(ill, "yes", "no")[person],
            "job": np.char.add("j", job[person].astype(str)),
        }
    )
    frame.to_csv(path, index=False)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A channel for people, and one for their records."""
    folder = tmp_path_factory.mktemp("people_growth")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        write_panel("t.csv", 2_000)
        design = ["design", "t.csv", "--sensitive", "ill", "--release", "job"]
        people = ["--person", "id", "--wave", "at", "--promise", "relative"]
        assert main([*design, *people, "--epsilon", "1", "-o", "people.json"]) == 0
        record = ["--unit", "record", "--epsilon", "1", "-o", "records.json"]
        assert main([*design, *record]) == 0
    return folder


@pytest.fixture(autouse=True)
def inside(place, monkeypatch, capsys):
    monkeypatch.chdir(place)


def apply_anew(night=1, *options):
    """A release of one night, under a ledger without releases of other nights than those before."""
    ledger = f"{night}.db"
    if night == 1 and os.path.exists(ledger):
        for path in (ledger, f"{ledger}.key"):
            os.remove(path)
    line = ["apply", "people.json", f"in{night}.csv", f"new{night}.csv", "--force"]
    return main([*line, "--ledger", ledger, "--draws", "independent", *options])


def second_night():
    """A release of people whom the ledger knows from the night before."""
    assert apply_anew() == 0
    for ending in ("", ".key"):
        os.replace(f"1.db{ending}", f"2.db{ending}")
    return apply_anew(2, "--nights", "2")


VERBS = {
    "apply": apply_anew,
    "apply, known people": second_night,
    "check": lambda: main(["check", "out.csv", "--channel", "people.json"]),
    "check --original": lambda: main(
        ["check", "out.csv", "--channel", "people.json", "--original", "in1.csv"]
    ),
    "estimate": lambda: main(["estimate", "out.csv", "--channel", "people.json"]),
    "inspect": lambda: main(["inspect", "in1.csv", "--channel", "people.json"]),
    "audit": lambda: main(["audit", "people.json", "--table", "in1.csv"]),
    "assess": lambda: main(
        ["assess", "in1.csv", "--sensitive", "ill", "--person", "id", "--wave", "at"]
    ),
    "compose": lambda: main(
        ["compose", "records.json", "--table", "in1.csv", "--person", "id"]
    ),
    "releases": lambda: main(
        ["releases", "total", "in1.csv", "--person", "id", "--ledger", "known.db"]
    ),
}


@pytest.mark.parametrize("verb", VERBS)
def test_twice_the_people_are_twice_the_work(verb):
    found = []
    for size in SIZES:
        for night in (1, 2):
            write_panel(f"in{night}.csv", size, night)
        for name in ("known.db", "known.db.key"):
            if os.path.exists(name):
                os.remove(name)
        apply = ["apply", "people.json", "in1.csv", "out.csv", "--force"]
        assert main([*apply, "--ledger", "known.db"]) == 0
        # The first run loads what it needs, and compiles templates.
        assert VERBS[verb]() in (0, 1)
        found.append(cost_of(VERBS[verb]))
    assert_linear([cost.calls for cost in found])
    assert_linear([cost.elements for cost in found])
    added = (found[2].peak - found[1].peak) / (SIZES[2] - SIZES[1])
    assert added < BYTES_OF_A_PERSON
