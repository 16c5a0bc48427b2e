"""Every command that reads records costs what they cost: twice as many are twice the work, and
memory is that of a batch where nothing has to be known of every record.

Calls, elements of arrays and bytes are counted, and no time is measured. The file has the same
distinct rows whatever its size, and small batches stand for those of large files.
"""

from __future__ import annotations

from itertools import count

import numpy as np
import pandas as pd
import pytest

from mechdesign.cli import main
from mechdesign.formats import csv_blocks
from mechdesign.leaks import inspection
from tests.cases.growth import assert_bounded, assert_linear, cost_of

pytestmark = pytest.mark.slow

SIZES = (6_000, 12_000, 24_000)
BLOCK = 1 << 13

ROWS = ("design", "t.csv", "--sensitive", "ill", "--release", "job,town,age")
BINS = ("--bin", "age=quantiles:3", "--epsilon", "1")


def write_records(path, size):
    rng = np.random.default_rng(5)
    job = rng.integers(0, 4, size)
    frame = pd.DataFrame(
        {
            "id": [f"id{k:07}" for k in rng.permutation(size)],
            "job": np.array(["clerk", "baker", "smith", "weaver"])[job],
            "town": np.array(["N", "S"])[rng.integers(0, 2, size)],
            "age": rng.integers(20, 50, size),
            "ill": np.where(rng.random(size) < 0.1 + 0.2 * job, "yes", "no"),
        }
    )
    frame.to_csv(path, index=False)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A table, and channels for rows and for a column of it."""
    folder = tmp_path_factory.mktemp("growth")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        write_records("t.csv", 2_000)
        column = ("design", "t.csv", "--sensitive", "ill", "--useful", "job")
        assert main([*ROWS, *BINS, "-o", "rows.json"]) == 0
        assert main([*column, "--epsilon", "1", "-o", "column.json"]) == 0
    return folder


def costs(command, channel="rows"):
    """What a command costs on files of all sizes, each released before."""
    found = []
    for size in SIZES:
        write_records("in.csv", size)
        applied = ["apply", f"{channel}.json", "in.csv", "out.csv", "--force"]
        assert main([*applied, "--insecure-seed", "1"]) == 0
        # The first run loads what it needs, and compiles templates.
        assert main(command()) == 0
        found.append(cost_of(lambda: main(command())))
    return found


ledgers = count()


def apply_anew(channel, *options):
    """A release under a ledger of its own, so that nothing was released before."""
    ledger = ("--ledger", f"{next(ledgers)}.db", "--force")
    return ["apply", f"{channel}.json", "in.csv", "new.csv", *ledger, *options]


@pytest.fixture(autouse=True)
def small_batches(place, monkeypatch, capsys):
    monkeypatch.chdir(place)
    monkeypatch.setattr(csv_blocks, "BLOCK", BLOCK)


@pytest.mark.parametrize("channel", ["rows", "column"])
@pytest.mark.parametrize(
    "verb",
    [
        lambda channel: apply_anew(channel),
        lambda channel: [
            *("check", "out.csv", "--channel", f"{channel}.json", "--any-data"),
        ],
        lambda channel: [
            *("check", "out.csv", "--channel", f"{channel}.json"),
            *("--original", "in.csv"),
        ],
        lambda channel: ["estimate", "out.csv", "--channel", f"{channel}.json"],
        lambda channel: ["inspect", "in.csv", "--channel", f"{channel}.json"],
    ],
    ids=["apply", "check", "check --original", "estimate", "inspect"],
)
def test_a_file_is_read_in_the_memory_of_a_batch(channel, verb, monkeypatch):
    # A column of more values is not compared with others.
    monkeypatch.setattr(inspection, "VALUES", 1_000)
    found = costs(lambda: verb(channel), channel)
    assert_linear([cost.calls for cost in found])
    assert_linear([cost.elements for cost in found])
    assert_bounded([cost.peak for cost in found], SIZES)


@pytest.mark.parametrize("channel", ["rows", "column"])
def test_identifiers_take_a_few_bytes_each(channel):
    found = costs(lambda: apply_anew(channel, "--identity", "id"), channel)
    assert_linear([cost.calls for cost in found])
    assert_linear([cost.elements for cost in found])
    assert_linear([cost.peak for cost in found])


@pytest.mark.parametrize("release", [("--useful", "job"), ("--release", "job,town")])
def test_a_table_is_counted_in_the_memory_of_a_batch(release):
    found = costs(
        lambda: [
            *("design", "in.csv", "--sensitive", "ill", *release),
            *("--epsilon", "1", "-o", "new.json", "--force"),
        ]
    )
    assert_linear([cost.calls for cost in found])
    assert_bounded([cost.peak for cost in found], SIZES)


def test_the_table_of_the_design_is_released_with_a_few_bytes_a_record():
    """Its counts are fixed, for which all records are put in order."""
    found = []
    for size in SIZES:
        write_records("in.csv", size)
        made = ["design", "in.csv", "--sensitive", "ill", "--release", "job,town"]
        assert main([*made, "--epsilon", "1", "-o", "own.json", "--force"]) == 0
        assert main(apply_anew("own")) == 0
        found.append(cost_of(lambda: main(apply_anew("own"))))
    assert_linear([cost.calls for cost in found])
    assert_linear([cost.elements for cost in found])
    assert (found[2].peak - found[1].peak) / (SIZES[2] - SIZES[1]) < 100
