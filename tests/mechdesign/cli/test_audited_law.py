"""What an analyst reads stands in designs and audits of every kind of channel."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from mechdesign.cli import main

BASE = ("people.csv", "--sensitive", "secret")


@pytest.fixture
def people(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    chance = np.random.default_rng(3)
    job = chance.choice(["a", "b", "c"], 3000)
    city = chance.choice(["u", "v"], 3000)
    rich = chance.random(3000) < 0.2 + 0.3 * (job == "a") + 0.1 * (city == "u")
    frame = pd.DataFrame({"job": job, "city": city, "secret": np.where(rich, "s", "t")})
    frame.to_csv("people.csv", index=False)


@pytest.fixture
def run(capsys):
    def runner(*command):
        assert main([*command]) == 0
        return capsys.readouterr().out

    return runner


KINDS = {
    "own": (
        ("--useful", "job", "--objective", "truth"),
        "the frequencies and means of job",
    ),
    "labels": (("--useful", "job"), "labels such as"),
    "rows": (("--release", "job,city"), "every released row has exactly"),
    "row labels": (
        ("--release", "job,city", "--objective", "information"),
        "labels such as",
    ),
    "boxes": (
        ("--release", "job,city", "--confidence", "0.95", "--cells", "4"),
        "every box is released as often as the table has it",
    ),
    "filled boxes": (
        ("--release", "job,city", "--confidence", "0.95", "--cells", "4", "--fill"),
        "every row of the table is released as often as the table has it",
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_channel_says_what_an_analyst_reads(kind, people, run):
    options, words = KINDS[kind]
    design = ("design", *BASE, *options, "--epsilon", "0.4")
    out = " ".join(run(*design, "--output", "c.json").split())
    assert f"What an analyst reads: {words}" in out
    record = json.loads(run(*design, "--output", "d.json", "--json"))
    audited = json.loads(run("audit", "d.json", "--json"))
    assert audited["law"] == record["law"]
    assert audited.get("law_absent") == record.get("law_absent")
    text = " ".join(run("audit", "d.json").split())
    assert "What an analyst reads: " in text
    if "labels" in kind:
        assert record["law"] is None
        assert "in the place of values of job" in record["law_absent"]
        assert "labels, such as" in text
    elif kind == "boxes":
        assert record["law"] is None
        assert (
            record["law_absent"] == "labels of boxes are released in the place of rows"
        )
    else:
        assert record["law"]["total_variation"] < 1e-12
        assert record["law"]["vanished"] == {}
    assert record["law"] is None or record["law"]["kept"] is (kind != "own")


def test_designs_of_every_shape_have_one_set_of_keys(people, run):
    """A script that reads one design can read them all: what a shape lacks is null."""
    shapes = [options for options, _ in KINDS.values()]
    column = ("--useful", "job")
    shapes += [
        (*column, "--mechanism", "subset-merging"),
        (*column, "--objective", "frequencies"),
        (*column, "--objective", "task", "--task", "city"),
        (*column, "--average", "mi=0.01"),
        (*column, "--confidence", "0.95"),
    ]
    keys = set()
    for options in shapes:
        record = json.loads(
            run("design", *BASE, *options, "--epsilon", "0.4", "--json")
        )
        keys.add(frozenset(record))
    assert len(keys) == 1
    assert {"levels", "truth", "promise", "given_lift", "boxes", "variance"} < set(
        *keys
    )


def test_a_matrix_of_another_tool_says_what_an_analyst_reads(people, run):
    matrix = "x,a,b,c\na,0.5,0.25,0.25\nb,0.3,0.4,0.3\nc,0.3,0.3,0.4\n"
    with open("W.csv", "w", encoding="utf-8") as stream:
        stream.write(matrix)
    asked = ("--table", "people.csv", "--sensitive", "secret", "--useful", "job")
    audit = ("audit", "--matrix", "W.csv", *asked, "--notion", "ldp", "--epsilon", "1")
    text = " ".join(run(*audit).split())
    assert "the released values do not have the frequencies of the table" in text
    law = json.loads(run(*audit, "--json"))["law"]
    table = pd.read_csv("people.csv")
    before = table.job.value_counts(normalize=True).sort_index().to_numpy()
    after = before @ [[0.5, 0.25, 0.25], [0.3, 0.4, 0.3], [0.3, 0.3, 0.4]]
    variation = abs(after - before).sum() / 2
    assert law["total_variation"] == pytest.approx(variation, abs=1e-12)


@pytest.mark.parametrize(
    ("design", "draws", "words", "kept"),
    [
        ((), (), "as the table has it, so tables, means and regressions", True),
        ((), ("--draws", "independent"), "the table's in expectation", True),
        (
            ("--free-frequencies",),
            (),
            "Frequencies are not those of the channel",
            False,
        ),
        (("--objective", "information"), (), None, None),
    ],
)
def test_apply_says_what_an_analyst_reads(
    design, draws, words, kept, people, run, monkeypatch, tmp_path
):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    asked = ("--release", "job,city", "--epsilon", "0.3", *design)
    run("design", *BASE, *asked, "--output", "c.json")
    apply = ("apply", "c.json", "people.csv", "out.csv", "--shuffle", *draws)
    text = run(*apply)
    if words is None:
        assert "Frequencies" not in text
        assert "table" not in text
    else:
        assert words in text
    assert ("Largest change of a share: " in text) is (kept is False)
    record = json.loads(run(*apply, "--force", "--json"))
    assert record["law_kept"] is kept
