"""Jobs with people: job files, nights, folders, and --person given to the verbs that read it."""

from __future__ import annotations

import json
import sqlite3
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import mechdesign as md
from mechdesign.auditing.independent_draws import reached_by_draws

EPSILON = 0.5


def visits(night, people=200, share=0.6, seed=0):
    """The visits of one day of a part of the people: one or two each."""
    secrets = np.random.default_rng(99).random(people) < 0.4
    chance = np.random.default_rng((seed, night))
    rows = []
    for person in range(people):
        if chance.random() >= share:
            continue
        for visit in range(int(chance.integers(1, 3))):
            ward = min(2, chance.integers(0, 3) + (secrets[person] and visit))
            ill = "yes" if secrets[person] else "no"
            day = f"2026-11-{night:02d} {8 + visit}:00"
            rows.append((f"p{person}", day, ill, f"w{ward}", f"c{chance.integers(2)}"))
    return pd.DataFrame(rows, columns=["patient", "at", "ill", "ward", "cost"])


ROLES = ("--sensitive", "ill", "--release", "ward,cost", "--promise", "relative")
PEOPLE = ("--person", "patient", "--wave", "at")
BUDGET = ("--notion", "lip", "--epsilon", str(EPSILON))


@pytest.fixture
def nights(folder, run):
    """Three nights of visits, and a channel for the people of the first."""
    for night in (1, 2, 3):
        visits(night).to_csv(f"v{night}.csv", index=False)
    run("design", "v1.csv", *ROLES, *PEOPLE, *BUDGET, "--output", "channel.json")


def apply(run, night, *more):
    """Release a night; rows that the first night lacks as their nearest ones."""
    files = (f"v{night}.csv", f"o{night}.csv")
    return run("apply", "channel.json", *files, "--unknown", "nearest", *more)


JOB = """
channel = "channel.json"
ledger = "ledger.db"

[design]
table = "{table}"
sensitive = "ill"
release = ["ward", "cost"]
person = "patient"
wave = "at"
promise = "relative"
notion = "lip"
epsilon = 0.5

[[apply]]
in = "{table}"
out = "out{ending}"
{more}
"""


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_a_job_designs_for_people_applies_and_is_done_again(folder, run, ending):
    """The second run verifies the channel on the folded table, and writes nothing."""
    frame = visits(1)
    if ending == ".csv":
        frame.to_csv("v.csv", index=False)
    else:
        frame.to_parquet("v.parquet", index=False)
    Path("job.toml").write_text(JOB.format(table=f"v{ending}", ending=ending, more=""))
    rehearsal = run("run", "job.toml", "--dry-run")
    people = frame["patient"].nunique()
    told = f"{len(frame):,} records of {people} people would be written to out{ending}"
    assert told in rehearsal.out
    assert "the columns ward, cost are released" in rehearsal.out
    first = run("run", "job.toml", "--json").record
    assert first["steps"][1]["people"] == people
    again = run("run", "job.toml", "--json").record
    assert again["steps"][0]["satisfied"] is True
    assert again["steps"][1]["already"] is True
    read = pd.read_csv if ending == ".csv" else pd.read_parquet
    assert len(read(f"out{ending}")) == len(frame)
    listed = run("releases", "--ledger", "ledger.db", "--json").record["releases"][0]
    assert listed["channels"][0]["columns"] == ["ward", "cost"]
    assert listed["records"] == len(frame)
    # A table on which the promise does not hold ends the job.
    other = visits(5).assign(
        ward=lambda f: np.where(f["ill"] == "yes", "w2", "w0"), cost="c0"
    )
    if ending == ".csv":
        other.to_csv("v.csv", index=False)
    else:
        other.to_parquet("v.parquet", index=False)
    assert run("run", "job.toml").code in (1, 2)


def test_a_person_of_an_earlier_night_is_refused_and_counted(nights, run):
    assert apply(run, 1).code == 0
    before = set(visits(1)["patient"])
    here = visits(2)["patient"].unique()
    known = sum(person in before for person in here)
    refused = apply(run, 2)
    assert refused.code == 2
    told = f"{known} of {len(here)} people were released before (last to"
    assert told in refused.err
    assert "--nights N" in refused.err
    assert not Path("o2.csv").exists()
    allowed = apply(run, 2, "--nights", "2")
    assert allowed.code == 0
    channel = md.load("channel.json")
    lowest, highest = reached_by_draws([channel], 2)
    said = " ".join(allowed.err.split())
    assert "all 2 together make a value of 'ill'" in said
    assert f"to {highest:.4g}" in said
    assert lowest < 0.6
    assert "otherwise nothing is promised of them together" in said
    refused = apply(run, 3, "--nights", "2")
    assert "released 2 times before" in refused.err
    assert apply(run, 3, "--nights", "3").code == 0
    manifest = json.loads(Path("o3.csv.manifest.json").read_text(encoding="utf-8"))
    assert any("at most 3 times" in note for note in manifest["notes"])
    # The same night again is no further release.
    assert apply(run, 2, "--nights", "3", "--json").record["already"]
    with open("v3.csv", "a", encoding="utf-8") as file:
        file.write("\r\n")
    assert apply(run, 3, "--nights", "3", "--force").code == 0


def test_the_ledger_has_nobody_in_clear(nights, run):
    apply(run, 1, "--ledger", "ledger.db")
    with sqlite3.connect("ledger.db") as db:
        rows = db.execute("SELECT records, symbols FROM known WHERE job = 'people'")
        ((persons, records),) = rows.fetchall()
    frame = visits(1)
    assert len(persons) == 8 * frame["patient"].nunique()
    assert len(records) == 8 * len(frame)
    content = Path("ledger.db").read_bytes()
    assert b"p17" not in content
    assert b"2026-11-01 8:00" not in content


def test_records_that_come_again_are_refused_however_many_nights(nights, run):
    apply(run, 1)
    frame = visits(2)
    old = visits(1)
    pd.concat([frame, old.iloc[[3]]]).to_csv("v2.csv", index=False)
    refused = apply(run, 2, "--nights", "9")
    assert refused.code == 2
    longer = "more than the 2 records" in refused.err
    assert longer or "1 of these records, by person and wave" in refused.err
    # 017 is 17, and p017 is p17: spreadsheets drop such zeros.
    renamed = old.assign(patient="p0" + old["patient"].str[1:])
    renamed.iloc[::2].to_csv("v2.csv", index=False)
    refused = apply(run, 2, "--nights", "9")
    assert "by person and wave, were released before" in refused.err
    accepted = apply(run, 2, "--fresh-draw")
    assert accepted.code == 0
    assert "what all their releases tell together is not bounded" in accepted.err


def test_the_same_sequences_on_another_day_are_new_records_with_new_draws(nights, run):
    """With one key the second night would repeat the first, and the bound would not hold."""
    apply(run, 1, "--draws", "independent")
    later = visits(1)
    later["at"] = later["at"].str.replace("2026-11-01", "2026-11-09")
    later = later[later["patient"].str[1:].astype(int) % 2 == 0]
    later.to_csv("v9.csv", index=False)
    keep = ("--keep", "patient,at")
    written = apply(run, 9, "--nights", "2", "--draws", "independent", *keep)
    assert written.code == 0, written.err
    assert "have been released" not in written.err
    # The records of the first night that the second one has, in the order of both.
    first = pd.read_csv("o1.csv")[
        visits(1)["patient"].isin(later["patient"]).to_numpy()
    ]
    second = pd.read_csv("o9.csv")
    columns = ["ward", "cost"]
    assert not (first[columns].to_numpy() == second[columns].to_numpy()).all()


def test_the_records_of_a_night_with_waves_written_otherwise_are_no_new_ones(
    nights, run
):
    """In another order, so that the columns are not those of the first night in their order."""
    assert apply(run, 1).code == 0
    again = visits(1)
    again["at"] = pd.to_datetime(again["at"]).dt.strftime("%d.%m.%Y %H:%M")
    again.sample(frac=1.0, random_state=2).to_csv("v2.csv", index=False)
    refused = apply(run, 2, "--nights", "2")
    assert refused.code == 2
    assert "same sequences of the same people, equally often, were released" in (
        refused.err
    )
    assert apply(run, 2, "--nights", "2", "--fresh-draw").code == 0
    # The same symbols of other people may well be new ones.
    other = visits(1).assign(patient=lambda table: "q" + table["patient"].str[1:])
    other.sample(frac=1.0, random_state=3).to_csv("v3.csv", index=False)
    written = apply(run, 3, "--nights", "2")
    assert written.code == 0
    assert "if they are those of the same records" in written.err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--nights", "0"), "must be at least 1"),
        (("--nights", "2", "--identity", "patient"), "leave it or --nights out"),
        (("--nights", "2", "--insecure-seed", "1"), "nights are counted by a ledger"),
    ],
)
def test_nights_that_cannot_be_counted_are_refused(nights, run, options, words):
    refused = apply(run, 1, *options)
    assert refused.code == 2
    assert words in refused.err


def test_nights_need_a_wave_and_one_secret_of_a_person(nights, run):
    design = ("design", "v1.csv", *ROLES, "--person", "patient", *BUDGET)
    run(*design, "--output", "channel.json", "--force")
    assert "told from old ones by their wave" in apply(run, 1, "--nights", "2").err
    asked = (*design, "--wave", "at", "--sensitive-of", "sequence")
    run(*asked, "--output", "channel.json", "--force")
    assert "is not defined" in apply(run, 1, "--nights", "2").err
    asked = ("design", "v1.csv", *ROLES[:4], *BUDGET, "--unit", "record")
    assert run(*asked, "--output", "channel.json", "--force").code == 0
    assert "about each record alone" in apply(run, 1, "--nights", "2").err


def test_frames_know_the_nights_of_files(nights, run):
    apply(run, 1, "--ledger", "ledger.db")
    channel = md.load("channel.json")
    nearest = md.Policy(unknown="nearest")
    with pytest.raises(md.InputError, match="were released before"):
        md.sanitise(visits(2), channel, ledger="ledger.db", policy=nearest)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        md.sanitise(visits(2), channel, ledger="ledger.db", policy=nearest, nights=2)
    assert any("all 2 together" in str(warning.message) for warning in caught)


@pytest.mark.parametrize("verb", ["apply", "check", "estimate", "inspect"])
def test_person_is_accepted_where_it_is_the_channels(nights, run, verb):
    apply(run, 1)
    line = {
        "apply": ("apply", "channel.json", "v1.csv", "again.csv"),
        "check": ("check", "o1.csv", "--channel", "channel.json"),
        "estimate": ("estimate", "o1.csv", "--channel", "channel.json"),
        "inspect": ("inspect", "v1.csv", "--channel", "channel.json"),
    }[verb]
    assert run(*line, "--person", "patient", "--wave", "at").code == 0
    refused = run(*line, "--person", "ward")
    assert refused.code == 2
    assert "the people of the channel are those of 'patient'" in refused.err
    refused = run(*line, "--person", "patient", "--wave", "cost")
    assert "orders the records of a person by 'at'" in refused.err
    assert "give --person too" in run(*line, "--wave", "at").err
    asked = ("design", "v1.csv", *ROLES[:4], *BUDGET, "--unit", "record")
    run(*asked, "--output", "channel.json", "--force")
    refused = run(*line, "--person", "patient")
    assert "the promise of the channel is about each record alone" in refused.err


def test_a_manifest_speaks_of_the_records_of_people(nights, run):
    apply(run, 1, "--keep", "at")
    manifest = json.loads(Path("o1.csv.manifest.json").read_text(encoding="utf-8"))
    assert manifest["columns"] == ["ward", "cost", "at"]
    assert manifest["columns_before"] == ["patient", "at", "ill", "ward", "cost"]
    assert manifest["records"] == len(visits(1))
    (released,) = manifest["released"]
    assert released["names"] == ["ward", "cost"]
    assert released["given"] == ["number of records"]
    assert any("'at' is kept as in the original" in text for text in manifest["voids"])
    assert any(
        "other records of the same people" in text for text in manifest["covers"]
    )


def test_a_folder_of_files_with_people_of_their_own(nights, run):
    """Half of the people in each file: released as their people, all of them or none."""
    frame = visits(1)
    first = frame["patient"].str[1:].astype(int) < 100
    Path("in").mkdir()
    frame[first].to_csv("in/a.csv", index=False)
    frame[~first].to_csv("in/b.csv", index=False)
    record = run("apply", "channel.json", "in", "out", "--json").record
    assert record["records"] == len(frame)
    assert record["people"] == frame["patient"].nunique()
    released = pd.concat(pd.read_csv(f"out/{name}.csv") for name in "ab")
    assert len(released) == len(frame)
    assert run("apply", "channel.json", "in", "out", "--json").record["already"]


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_a_person_in_two_files_of_a_folder_is_refused(nights, run, ending):
    Path("in").mkdir()
    for night in (1, 2):
        if ending == ".csv":
            visits(night).to_csv(f"in/{night}.csv", index=False)
        else:
            visits(night).to_parquet(f"in/{night}.parquet", index=False)
    release = ("apply", "channel.json", "in", "out", "--unknown", "nearest")
    refused = run(*release)
    assert refused.code == 2
    assert "Bring the records of a person together in one file" in refused.err
    assert not Path("out").exists()
    # Nothing stays of what was entered.
    assert apply(run, 1, "--format", "csv").code == 0
    allowed = run(*release, "--nights", "3")
    assert allowed.code == 0, allowed.err
    assert "all 3 together" in allowed.err


def test_compose_and_the_ledger_count_the_records_of_a_person(nights, run):
    asked = ("design", "v1.csv", *ROLES[:4], "--notion", "lip", "--epsilon", "0.2")
    run(*asked, "--unit", "record", "--output", "records.json")
    beside = ("compose", "records.json", "--table", "v1.csv", "--person", "patient")
    people = run(*beside, "--json").record["people"]
    frame = visits(1)
    assert people["people"] == frame["patient"].nunique()
    assert people["records"] == len(frame)
    assert people["exact"] is True
    # Two records of one person reach further than one.
    assert people["single"][1] < people["highest"]
    assert people["above"] > 0
    assert "each drawn by itself, reach" in " ".join(run(*beside).out.split())
    released = ("apply", "records.json", "v1.csv", "o.csv", "--ledger", "l.db")
    assert run(*released, "--keep-order").code == 0
    total = ("releases", "total", "v1.csv", "--ledger", "l.db", "--person", "patient")
    record = run(*total, "--json").record
    assert record["people"]["records"] == people
    assert record["people"]["nights"] is None
    assert "for a value of 'ill'" in " ".join(run(*total).out.split())
    text = run("compose", "channel.json", "channel.json").out
    assert text.startswith("All records of a person released once through each")
    refused = run("compose", "records.json", "--person", "patient")
    assert "give --table TABLE too" in refused.err
    refused = run("compose", "channel.json", *beside[2:])
    assert "promises for all records of a person already" in refused.err


def test_the_ledger_totals_the_nights_of_people(nights, run):
    ledger = ("--ledger", "l.db")
    for night in (1, 2):
        apply(run, night, "--nights", "2", *ledger)
        if night == 1:
            first = ("releases", "total", "v1.csv", "--person", "patient", *ledger)
            said = " ".join(run(*first).out.split())
            assert "were released once as people, which makes a value of 'ill'" in said
    total = ("releases", "total", "v3.csv", "--person", "patient", *ledger)
    nights_of = run(*total, "--json").record["people"]["nights"]
    before = set(visits(1)["patient"]) | set(visits(2)["patient"])
    assert nights_of["people"] == len(before & set(visits(3)["patient"]))
    assert nights_of["most"] == 2
    channel = md.load("channel.json")
    assert (nights_of["lowest"], nights_of["highest"]) == reached_by_draws([channel], 2)
    assert "otherwise nothing bounds them" in " ".join(run(*total).out.split())
    moved = Path("channel.json").rename("moved.json")
    assert "is not known" in run(*total).out
    assert "is not known" not in run(*total, "--channel", str(moved)).out
    visits(3).assign(patient=lambda f: "q" + f["patient"]).to_csv("q.csv", index=False)
    others = ("releases", "total", "q.csv", "--person", "patient", *ledger)
    assert "Nothing was released of these people" in run(*others).out


def panel(people=150):
    """Four waves of people, whose health tells of an illness."""
    chance = np.random.default_rng(5)
    rows = []
    for person in range(people):
        ill = chance.random() < 0.4
        for wave in range(4):
            health = min(2, chance.integers(0, 3) + (ill and wave % 2))
            rows.append((f"p{person}", wave, "yes" if ill else "no", f"h{health}"))
    return pd.DataFrame(rows, columns=["id", "wave", "ill", "health"])


@pytest.mark.parametrize(
    "line",
    [
        ("compare", "panel.csv", "--release", "health,wave", "--epsilon", "1"),
        ("compare", "panel.csv", "--useful", "health", "--epsilons", "1"),
        ("design", "panel.csv", "--useful", "health", "--epsilon", "1"),
    ],
)
def test_a_command_that_only_looks_names_the_people(folder, run, line):
    panel().to_csv("panel.csv", index=False)
    looked = run(*line, "--sensitive", "ill")
    assert looked.code == 0
    assert "the column 'id' names 150 people with up to 4 records each" in looked.err


def test_inspect_and_jobs_name_the_people_of_records(folder, run):
    panel().to_csv("panel.csv", index=False)
    asked = ("design", "panel.csv", "--sensitive", "ill", "--useful", "health")
    run(*asked, *BUDGET, "--unit", "record", "--output", "records.json")
    inspected = run("inspect", "panel.csv", "--channel", "records.json")
    assert "names 150 people" in inspected.err
    assert "all records of a person together, each drawn by itself, reach" in (
        inspected.err
    )
    job = 'channel = "new.json"\n[design]\ntable = "panel.csv"\nsensitive = "ill"\n'
    job += 'useful = "health"\nepsilon = 0.5\n'
    Path("job.toml").write_text(job)
    refused = run("run", "job.toml")
    assert refused.code == 2
    assert "nothing was written: the column 'id' names 150 people" in refused.err
    assert not Path("new.json").exists()
    released = 'channel = "records.json"\nledger = "l.db"\n[[apply]]\n'
    released += 'in = "panel.csv"\nout = "o.csv"\nkeep = "id"\n'
    Path("job.toml").write_text(released)
    refused = run("run", "job.toml")
    assert refused.code == 2
    assert "nothing was released: the column 'id' names 150 people" in refused.err
    released += 'unit = "record"\n'
    Path("job.toml").write_text(released)
    # The records of a person stand together, and their secret is alike.
    assert "stand in an order that tells of 'ill'" in run("run", "job.toml").err
    Path("job.toml").write_text(released + "keep-order = true\n")
    assert run("run", "job.toml").code == 0


def test_lazy_tables_pipelines_and_judge_say_why_not(nights, run):
    polars = pytest.importorskip("polars", reason="polars is not installed")
    channel = md.load("channel.json")
    lazy = polars.from_pandas(visits(1)).lazy()
    with pytest.raises(md.InputError, match="folded in memory"):
        md.sanitise(lazy, channel, key=md.Key.fresh())
    with pytest.raises(
        md.InputError, match="must be a pandas, polars or pyarrow table"
    ):
        channel.apply(lazy, key=md.Key.fresh())
    apply(run, 1)
    refused = run(
        *("judge", "o1.csv", "--original", "v1.csv", "--sensitive", "ill"),
        *("--channel", "channel.json"),
    )
    assert refused.code == 2
    assert "judge looks at single records" in refused.err
    for form in ("sql", "csv", "r"):
        refused = run("export", "channel.json", "--to", form, "--output", f"x.{form}")
        assert refused.code == 2


@pytest.mark.parametrize("column", ["ill", "ward"])
def test_an_order_of_people_that_tells_is_refused(nights, run, column):
    """Sorted by the secret, or by the first record; every sequence may be another one."""
    frame = visits(1)
    first = frame.groupby("patient")[column].transform("first")
    order = first.sort_values(kind="stable").index
    frame.loc[order].to_csv("v1.csv", index=False)
    refused = apply(run, 1)
    assert refused.code == 2
    assert f"an order that tells of '{column}' by their place" in refused.err
    assert apply(run, 1, "--shuffle").code == 0
    assert apply(run, 1, "--keep-order", "--force", "--insecure-seed", "1").code == 0
    with pytest.warns(UserWarning, match=f"an order that tells of '{column}'"):
        md.sanitise(frame.loc[order], md.load("channel.json"), insecure_seed=1)


@pytest.mark.parametrize("split", ["id", "wave"])
def test_a_folder_of_records_names_its_people(folder, run, split):
    """Whether the records of a person lie in one file or in several."""
    frame = panel()
    Path("in").mkdir()
    first = frame["wave"] < 2
    if split == "id":
        first = frame["id"].str[1:].astype(int) < 75
    frame[first].to_csv("in/a.csv", index=False)
    frame[~first].to_csv("in/b.csv", index=False)
    asked = ("design", "in", "--sensitive", "ill", "--useful", "health", *BUDGET)
    refused = run(*asked, "--output", "channel.json")
    assert refused.code == 2
    assert "names 150 people with up to 4 records each" in refused.err
    assert "each drawn by itself, reach" in refused.err
    assert run(*asked, "--output", "channel.json", "--unit", "record").code == 0


def test_a_channel_designed_after_another_one_is_for_the_same_records(nights, run):
    """Its promise is about both releases together, so nothing is drawn a second time; in any other
    order, or for other records, it is."""
    design = ("design", "v1.csv", "--sensitive", "ill", *PEOPLE)
    small = ("--notion", "lip", "--epsilon", "0.3")
    run(*design, "--release", "ward", *small, "--output", "first.json")
    second = (*design, "--release", "cost", *BUDGET, "--after", "first.json")
    assert run(*second, "--output", "second.json").code == 0
    ledger = ("--ledger", "l.db")
    for name in ("first", "second"):
        done = run("apply", f"{name}.json", "v1.csv", f"{name}.csv", *ledger)
        assert done.code == 0, done.err
    total = ("releases", "total", "v1.csv", "--person", "patient", *ledger)
    assert "are not independent" in " ".join(run(*total).out.split())
    turned = ("--ledger", "turned.db")
    assert run("apply", "second.json", "v1.csv", "o1.csv", *turned).code == 0
    refused = run("apply", "first.json", "v1.csv", "o2.csv", *turned)
    assert "by person and wave, were released before" in refused.err
    other = visits(1).iloc[:-1]
    other.to_csv("other.csv", index=False)
    late = ("apply", "second.json", "other.csv", "o3.csv", "--unknown", "nearest")
    once = ("--ledger", "once.db")
    assert run("apply", "first.json", "v1.csv", "o4.csv", *once).code == 0
    assert "by person and wave" in run(*late, *once).err


def test_nights_after_a_second_draw_are_not_independent(nights, run):
    apply(run, 1)
    assert apply(run, 1, "--fresh-draw", "--force").code == 0
    refused = apply(run, 2, "--nights", "5")
    assert refused.code == 2
    assert "what all of them tell together is not known" in refused.err
    assert not Path("o2.csv").exists()


def test_a_record_of_nobody_is_named_by_every_verb(nights, run):
    asked = ("design", "v1.csv", *ROLES[:4], *BUDGET, "--unit", "record")
    run(*asked, "--output", "records.json")
    apply(run, 1, "--ledger", "l.db")
    frame = visits(1)
    frame.loc[3, "patient"] = " "
    frame.to_csv("blank.csv", index=False)
    for line in (
        ("compose", "records.json", "--table", "blank.csv", "--person", "patient"),
        ("releases", "total", "blank.csv", "--ledger", "l.db", "--person", "patient"),
        ("check", "blank.csv", "--channel", "channel.json"),
        ("design", "blank.csv", *ROLES, *PEOPLE, *BUDGET),
    ):
        refused = run(*line)
        assert refused.code == 2
        assert "blank.csv" in refused.err
        assert "the column 'patient' is empty" in refused.err
    refused = run("apply", "channel.json", "blank.csv", "blank_out.csv")
    assert "blank.csv, line 5: the column 'patient' is empty" in refused.err
