"""Every verb that reads a table notes records that a pair of lone quotes hides in one cell."""

from __future__ import annotations

import numpy as np
import pytest

NOTE = (
    "note: people.csv, line 51: the cell of 'income' holds 29 lines with as many cells as a "
    "record, as where a quote opens that is closed far below, and these records are missing; "
    "correct the file, or read it without quotes (--quote none)"
)

OF_TABLE = ("people.csv", "--sensitive", "secret")


@pytest.fixture
def released(folder, run):
    chance = np.random.default_rng(3)
    lines = ["secret,job,income"]
    for _ in range(400):
        secret = chance.choice(["s", "t"], p=[0.4, 0.6])
        job = secret if chance.random() < 0.5 else chance.choice(["s", "t", "u"])
        lines.append(f"{secret},{job},{chance.choice(['low', 'high'])}")
    # The plain table makes the channel and its release.
    (folder / "plain.csv").write_text("\n".join(lines) + "\n")
    asked = ("--sensitive", "secret", "--useful", "job", "--epsilon", "1")
    run("design", "plain.csv", *asked, "--output", "channel.json", "--force")
    applied = run("apply", "channel.json", "plain.csv", "out.csv", *SEEDED)
    assert applied.code == 0, applied.err
    assert "lines with as many cells" not in applied.err
    before, quote, after = lines[50].rpartition(",")
    lines[50] = f'{before}{quote}"{after}'
    lines[80] += '"'
    (folder / "people.csv").write_text("\n".join(lines) + "\n")
    return folder


SEEDED = ("--insecure-seed", "3", "--force")


@pytest.mark.filterwarnings("default::mechdesign.core.errors.Notice")
@pytest.mark.parametrize(
    "words",
    [
        ("design", *OF_TABLE, "--useful", "job", "--epsilon", "1"),
        ("compare", *OF_TABLE, "--useful", "job", "--epsilon", "1"),
        ("assess", *OF_TABLE),
        ("apply", "channel.json", "people.csv", "again.csv", *SEEDED),
        ("inspect", "people.csv", "--channel", "channel.json"),
        ("judge", "out.csv", "--original", "people.csv", "--sensitive", "secret"),
        ("check", "out.csv", "--channel", "channel.json", "--original", "people.csv"),
        ("audit", "channel.json", "--table", "people.csv"),
        ("nonstochastic", "measure", "people.csv", "--x", "secret", "--y", "job"),
    ],
    ids=lambda words: words[0],
)
def test_a_note_names_the_cell_once(released, run, words):
    result = run(*words)
    assert result.err.count("lines with as many cells as a record") == 1, result.err
    assert NOTE in result.err


@pytest.mark.filterwarnings("default::mechdesign.core.errors.Notice")
def test_a_strict_release_is_refused(released, run):
    asked = ("apply", "channel.json", "people.csv", "again.csv", *SEEDED, "--strict")
    result = run(*asked, "--keep", "income")
    assert result.code == 2
    assert "strict makes an error" in result.err
    assert not (released / "again.csv").exists()
