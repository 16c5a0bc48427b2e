"""`run` with a channel of whole rows: design, release of a file and of folders, ledger, identifiers, reports."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import mechdesign as md
from mechdesign.jobs.ledger import Ledger
from tests.mechdesign.cli.conftest import contents

JOB = """\
channel = "row.json"
ledger = "ledger.db"

[design]
table = "people.csv"
sensitive = "secret"
release = ["a", "b"]
epsilon = 1.0

[[apply]]
in = "in.csv"
out = "out.csv"
identity = "id"
keep = "id"
changed = "keep"
force = true

[[apply]]
in = "days"
out = "released"
keep = "hour"

[report]
report = "report.md"
"""


def rows(rng, count, first):
    """Records in random order, so that none tells by its place."""
    return pd.DataFrame(
        {
            "id": [f"p{first + k}" for k in range(count)],
            "a": rng.choice(list("xyz"), count),
            "b": rng.choice(list("uv"), count),
        }
    )


@pytest.fixture
def job(folder):
    rng = np.random.default_rng(4)
    people = rows(rng, 600, 0)
    chance = 0.3 + 0.2 * (people["a"] == "x") + 0.2 * (people["b"] == "u")
    people["secret"] = np.where(rng.random(600) < chance, "s", "t")
    people.drop(columns="id").to_csv("people.csv", index=False)
    rows(rng, 80, 1000).to_csv("in.csv", index=False)
    for day in (1, 2):
        (folder / "days" / f"day={day}").mkdir(parents=True)
        part = rows(rng, 40, 2000 * day).drop(columns="id")
        part.insert(0, "hour", rng.integers(0, 24, 40))
        part.to_csv(folder / "days" / f"day={day}" / "a.csv", index=False)
    path = folder / "job.toml"
    path.write_text(JOB)
    return path


def drawn(folder, source, ledger):
    """What the key of the ledger draws for an identified file."""
    book = Ledger(ledger)
    with book.reading() as db:
        entry = book.releases(db)[0]
    channel = md.Channel.load(folder / "row.json")
    key = book.key_of(entry.drawn[0])
    frame = pd.read_csv(source)
    return channel.apply(frame[["a", "b"]], key=key, identity=list(frame["id"]))


def test_the_first_run_does_all_and_the_second_nothing(job, run, folder):
    first = run("run", job)
    assert first.code == 0, first.err
    assert "80 records written to out.csv; the columns a, b are released" in first.out
    assert "80 records written to released" in first.out
    released = pd.read_csv("out.csv")
    assert list(released.columns) == ["id", "a", "b"]
    by_hand = drawn(folder, "in.csv", "ledger.db")
    assert (released[["a", "b"]].to_numpy() == by_hand[["a", "b"]].to_numpy()).all()
    part = pd.read_csv("released/day=2/a.csv")
    assert list(part.columns) == ["hour", "a", "b"]
    assert (folder / "report.md").exists()
    before = contents(folder)
    second = run("run", job, "--json")
    assert second.code == 0, second.err
    assert contents(folder) == before
    steps = second.record["steps"]
    assert steps[0]["satisfied"] is True
    assert [step["already"] for step in steps[1:3]] == [True, True]


def test_a_rehearsal_writes_nothing(job, run, folder):
    before = contents(folder)
    result = run("run", job, "--dry-run")
    assert result.code == 0, result.err
    assert "row.json would be written." in result.out
    assert "80 records would be written to out.csv; the columns a, b" in result.out
    assert contents(folder) == before


def test_a_job_looks_for_the_smallest_budget(job, run):
    job.write_text(JOB.replace("epsilon = 1.0", 'keep = 0.7\ntime-limit = "none"'))
    assert run("run", "job.toml").code == 0
    channel = md.load("row.json")
    # Of rows it is the share of unchanged cells that is kept.
    assert channel.record.utility["truth"] >= 0.7
    # The same job again verifies the channel in the place of another search.
    before = channel.record.provenance
    assert run("run", "job.toml").code == 0
    assert md.Channel.load("row.json").record.provenance == before


@pytest.mark.parametrize("changed", ["keep", "redraw", "refuse"])
def test_records_that_changed_overnight(job, run, changed):
    """A record that stays keeps its row; what becomes of one that changed is what the job says."""
    assert run("run", job).code == 0
    before = pd.read_csv("out.csv").set_index("id")
    people = pd.read_csv("in.csv")
    people.loc[3, "a"] = {"x": "y", "y": "z", "z": "x"}[people.loc[3, "a"]]
    people.loc[len(people)] = ["new", "x", "u"]
    people.sample(frac=1, random_state=3).to_csv("in.csv", index=False)
    job.write_text(JOB.replace('changed = "keep"', f'changed = "{changed}"'))
    night = run("run", job)
    if changed == "refuse":
        assert night.code == 2
        assert "job.toml, line 15: in.csv" in night.err  # that of changed
        assert "is another one than when the record was released before" in night.err
        return
    assert night.code == 0, night.err
    after = pd.read_csv("out.csv").set_index("id")
    stayed = before.index.difference(["p1003"])
    assert (after.loc[stayed] == before.loc[stayed]).all(axis=None)
    if changed == "keep":
        assert (after.loc["p1003"] == before.loc["p1003"]).all()
    assert "new" in after.index
    total = run("releases", "total", "in.csv", "--ledger", "ledger.db", "--json")
    assert total.record["draws"] == 1
    assert ("drawn anew" in total.record["told"]) == (changed == "redraw")


def test_the_promise_is_checked_on_the_table_of_today(job, run):
    assert run("run", job).code == 0
    people = pd.read_csv("people.csv")
    people.loc[people["a"] == "x", "secret"] = "s"
    people.to_csv("people.csv", index=False)
    broken = run("run", job)
    assert broken.code == 1
    assert "VIOLATED" in broken.out
    assert "is done" not in broken.out


def test_another_release_is_another_channel(job, run):
    assert run("run", job).code == 0
    job.write_text(JOB.replace('["a", "b"]', '["b", "a"]'))
    refused = run("run", job)
    assert refused.code == 2
    assert "was not designed with the options of this section" in refused.err


def test_a_public_report_is_written_beside_the_release(job, run, folder):
    job.write_text(JOB + 'public-report = "public.html"\n')
    assert run("run", job).code == 0
    assert "Verified" in (folder / "public.html").read_text(encoding="utf-8")
    assert run("run", job).code == 0


def test_boxes_have_a_public_report_too(job, run, folder):
    text = JOB.replace("[design]\n", "[design]\nconfidence = 0.9\n")
    job.write_text(text + 'public-report = "public.md"\n')
    assert run("run", job).code == 0
    text = (folder / "public.md").read_text(encoding="utf-8")
    assert "in the population (90 % confidence)" in text
    assert "Verified: **yes, exactly**" in text
    # It is known to be about this channel.
    assert run("run", job).code == 0
