"""`mechdesign inspect`: what other columns tell, before a release; and `apply --strict`, which lets no note pass."""

from __future__ import annotations

import csv
import io
import json
import random

import pandas as pd
import pytest

import mechdesign as md

JOBS = random.Random(1).choices(["clerk", "baker", "smith", "weaver"], k=400)
SEED = ("--insecure-seed", "1")


@pytest.fixture
def people(folder):
    chance = random.Random(2)
    frame = pd.DataFrame({"id": range(400), "job": JOBS})
    frame["code"] = frame.job.map({job: i for i, job in enumerate(sorted(set(JOBS)))})
    frame["group"] = chance.choices("ab", k=400)
    frame["clan"] = [each if chance.random() < 0.9 else "c" for each in frame.group]
    frame["note"] = chance.choices("xyz", k=400)
    frame.to_csv("in.csv", index=False)
    frame.drop(columns=["code", "group", "clan"]).to_csv("plain.csv", index=False)
    frame.to_parquet("in.parquet", index=False)
    return frame


@pytest.mark.parametrize("source", ["in.csv", "in.parquet"])
def test_what_other_columns_tell_worst_first(people, channel, run, source):
    record = run("inspect", source, "--channel", channel, "--json").record
    assert (record["records"], record["useful"], record["sensitive"]) == (
        400,
        ["job"],
        ["group"],
    )
    named = {told["column"]: told for told in record["columns"]}
    assert [told["column"] for told in record["columns"]][:2] == ["code", "clan"]
    code = named["code"]["about"]["job"]
    assert code["stands_for"]
    assert code["pinned"] == code["guessed"] == 1.0
    assert code["lift"] == pytest.approx(
        400 / min(JOBS.count(job) for job in set(JOBS))
    )
    clan = named["clan"]["about"]["group"]
    kept = people[people.clan != "c"]
    assert clan["pinned"] == pytest.approx(len(kept) / 400)
    assert clan["lift"] == pytest.approx(400 / people.group.value_counts().min())
    assert clan["alone"] == people.group.value_counts().max() / 400
    assert not named["note"]["about"]["job"]["stands_for"]
    assert named["id"] == {"column": "id", "values": 400, "about": named["id"]["about"]}
    assert named["id"]["about"]["job"]["lift"] is None
    assert named["id"]["about"]["job"]["pinned"] == 0.0


def test_the_text_is_a_table_without_values(people, channel, run):
    result = run("inspect", "in.csv", "--channel", channel)
    assert result.code == 0, result.err
    lines = result.out.splitlines()
    assert lines[0] == "400 records; other columns, worst first:"
    assert lines[1].split() == [
        "column",
        "values",
        "about",
        "raises",
        "gives",
        "away",
        "guessed",
        "without",
    ]
    assert lines[2].split()[:3] == ["code", "4", "job"]
    assert lines[2].endswith("stands for it")
    assert "clerk" not in result.out


def test_columns_of_other_names_and_of_too_many_values(
    people, channel, run, monkeypatch
):
    monkeypatch.setattr("mechdesign.leaks.inspection.VALUES", 100)
    people.rename(columns={"job": "work", "group": "family"}).to_csv(
        "other.csv", index=False
    )
    asked = (
        "inspect",
        "other.csv",
        "--channel",
        channel,
        "--column",
        "job=work",
        "--sensitive",
        "family",
        "--json",
    )
    record = run(*asked).record
    assert (record["useful"], record["sensitive"]) == (["work"], ["family"])
    (numbers,) = (each for each in record["columns"] if each["column"] == "id")
    # Too many values to count, but somebody may sort by them.
    assert numbers["values"] is None
    assert {tells["pinned"] for tells in numbers["about"].values()} == {0.0}
    assert not any(tells["stands_for"] for tells in numbers["about"].values())
    assert "id        many" in run(*asked[:-1]).out


def test_what_is_refused(people, channel, refused):
    assert "plain.csv: there is no column 'group'" in refused(
        "inspect", "plain.csv", "--channel", channel, "--sensitive", "group"
    )
    assert "'job' cannot be sensitive and useful" in refused(
        "inspect", "in.csv", "--channel", channel, "--sensitive", "job"
    )
    assert "there is no such file" in refused(
        "inspect", "none.csv", "--channel", channel
    )


def test_apply_names_the_columns_that_stay(people, channel, run):
    out = run("apply", channel, "plain.csv", "o.csv", *SEED, "--keep", "all").out
    assert (
        out
        == "400 records written to o.csv; the column job is released. Kept as they are, and not "
        "covered by the promise (--keep): id, note.\n"
    )
    assert run(
        "apply",
        channel,
        "plain.csv",
        "o.csv",
        *SEED,
        "--force",
        "--json",
        "--keep",
        "all",
    ).record["kept"] == ["id", "note"]
    out = run(
        "apply",
        channel,
        "in.csv",
        "p.csv",
        *SEED,
        "--drop",
        "code,group",
        "--drop",
        "clan,note,id",
        "--keep",
        "all",
    ).out
    assert out == "400 records written to p.csv; the column job is released.\n"


def test_strict_makes_every_note_an_error(people, channel, run, refused, folder):
    """Before anything is written or entered in the ledger."""
    run(
        "design",
        "records.csv",
        "--sensitive",
        "group",
        "--useful",
        "town",
        "--epsilon",
        "1",
        "-o",
        "t.json",
    )
    people.assign(town=random.Random(3).choices("NS", k=400))[
        ["id", "job", "town"]
    ].to_csv("two.csv", index=False)
    both = ("apply", channel, "two.csv", "o.csv", "--also", "t.json")
    text = refused(*both, "--strict", "--drop", "id", *SEED)
    assert (
        "two.csv: a note, which --strict makes an error: several columns of a record are released"
        in text
    )
    assert run(*both, *SEED, "--quiet").err == ""
    assert (
        "several columns"
        in json.loads((folder / "o.csv.manifest.json").read_text())["notes"][0]
    )
    strict = ("--strict", "--drop", "id,note")
    assert run("apply", channel, "plain.csv", "s.csv", *strict).code == 0
    again = ("apply", channel, "plain.csv", "f.csv", "--fresh-draw")
    result = run(*again, *strict)
    assert result.code == 2
    assert "the same records have been released before" in result.err
    assert not (folder / "f.csv").exists()
    assert [line.split()[-1] for line in run("releases").out.splitlines()[1:]] == [
        "s.csv"
    ]
    assert run(*again, "--quiet", "--internal-manifest", "i.json").err == ""
    assert any(
        "released before" in note
        for note in json.loads((folder / "i.json").read_text())["notes"]
    )


def test_changes_of_records_are_noted_inside_alone(people, channel, run, folder):
    how = ("--identity", "id", "--changed", "keep", "--quiet")
    assert run("apply", channel, "plain.csv", "1.csv", *how).code == 0
    people.assign(job=[*JOBS[1:], JOBS[0]])[["id", "job"]].to_csv(
        "next.csv", index=False
    )
    assert (
        run(
            "apply", channel, "next.csv", "2.csv", *how, "--internal-manifest", "i.json"
        ).code
        == 0
    )
    public, internal = (
        json.loads((folder / name).read_text())["notes"]
        for name in ("2.csv.manifest.json", "i.json")
    )
    assert not any("another symbol" in note for note in public)
    assert any("have another symbol than before" in note for note in internal)


def test_cells_that_spreadsheets_execute(channel, run, folder, refused):
    cells = [
        "=1+1",
        '=cmd|"/c calc"',
        "-2.5",
        "+49 170",
        "@x",
        "-1e5",
        "a=b",
        "",
        "\ttab",
        "-5%",
        '"',
        "=\n2",
    ]
    with open("in.csv", "w", newline="", encoding="utf-8") as stream:
        rows = [[cell, JOBS[i], cell] for i, cell in enumerate(cells)]
        csv.writer(stream).writerows([["note", "job", "more"], *rows])
    assert (
        run("apply", channel, "in.csv", "plain.csv", *SEED, "--keep", "all").code == 0
    )
    assert (
        run(
            "apply",
            channel,
            "in.csv",
            "safe.csv",
            *SEED,
            "--escape-formulas",
            "--keep",
            "all",
        ).code
        == 0
    )
    plain, safe = (
        [*csv.reader(io.StringIO((folder / name).read_bytes().decode()))]
        for name in ("plain.csv", "safe.csv")
    )
    expected = [
        "'=1+1",
        '\'=cmd|"/c calc"',
        "-2.5",
        "'+49 170",
        "'@x",
        "-1e5",
        "a=b",
        "",
        "'\ttab",
        "-5%",
        '"',
        "'=\n2",
    ]
    assert [row[0] for row in safe[1:]] == [row[2] for row in safe[1:]] == expected
    assert [row[0] for row in plain[1:]] == cells
    assert [row[1] for row in safe] == [row[1] for row in plain]
    pd.read_csv("in.csv", dtype=str).to_parquet("in.parquet")
    assert "has no formulas" in refused(
        "apply",
        channel,
        "in.parquet",
        "o.parquet",
        "--escape-formulas",
        *SEED,
        "--keep",
        "all",
    )


def test_released_labels_are_escaped_too(folder, run):
    (folder / "t.csv").write_text("s,x\n" + "a,=1\nb,=1\na,@2\nb,@2\na,=1\n" * 20)
    assert (
        run(
            "design",
            "t.csv",
            "--sensitive",
            "s",
            "--useful",
            "x",
            "--epsilon",
            "5",
            "-o",
            "c.json",
        ).code
        == 0
    )
    (folder / "x.csv").write_text("x\n=1\n@2\n@2\n=1\n")
    assert (
        run("apply", "c.json", "x.csv", "o.csv", "--escape-formulas", *SEED).code == 0
    )
    assert all(
        line[0] not in "=@" for line in (folder / "o.csv").read_text().splitlines()
    )


def test_a_report_says_the_same(people, channel, folder, run):
    printed = run(
        "inspect",
        "in.csv",
        "--channel",
        channel,
        "--report",
        "i.md",
        "--sensitive",
        "group",
    )
    assert printed.code == 0, printed.err
    page = (folder / "i.md").read_text()
    rows = [line.split() for line in printed.out.splitlines()[2:]]
    shown = [
        line.replace("|", " ").replace("\\-", "-").split()
        for line in page.splitlines()
        if line.startswith("|")
    ]
    assert shown[2:] == rows
    assert "- Give a protected column away: **'code'**" in page
    assert (
        "What the other columns of in.csv reveal about 'job', and about 'group', before any release."
        in page
    )
    assert "mechdesign inspect in.csv --sensitive group --channel channel.json" in page
    assert (
        run("inspect", "in.csv", "--channel", channel, "--report", "i.json").code == 0
    )
    record = json.loads((folder / "i.json").read_text())
    told = run("inspect", "in.csv", "--channel", channel, "--json").record
    assert record == {"format": "mechdesign.inspection", "version": 1, **told}
    assert (
        run("inspect", "in.csv", "--channel", channel, "--report", "i.html").code == 0
    )
    assert "<h1>What else tells</h1>" in (folder / "i.html").read_text()


@pytest.mark.parametrize(
    ("report", "said"),
    [
        ("i.txt", "i.txt: a report must end in .html, .md, .json, not .txt"),
        (
            "there.md",
            "there.md exists; choose another name, or overwrite it with force (--force)",
        ),
        ("no/i.md", "no/i.md cannot be written: there is no folder 'no'"),
    ],
)
def test_a_report_that_cannot_be_written_is_refused_before_the_work(
    people, channel, folder, run, report, said
):
    (folder / "there.md").write_text("mine")
    refused = run("inspect", "in.csv", "--channel", channel, "--report", report)
    assert (refused.code, refused.out) == (2, "")
    assert said in refused.err
    assert (folder / "there.md").read_text() == "mine"
    assert (
        run(
            "inspect", "in.csv", "--channel", channel, "--report", "there.md", "--force"
        ).code
        == 0
    )


def test_a_last_line_without_an_end_is_noted(people, channel, run, refused, folder):
    """It may have been copied in part; what lacks whole cells is refused anyway."""
    whole = (folder / "plain.csv").read_bytes()
    (folder / "half.csv").write_bytes(whole[: len(whole) // 2].rsplit(b"\n", 1)[0])
    job = ("apply", channel, "half.csv", "o.csv", *SEED)
    strict = ("--strict", "--drop", "id,note")
    text = refused(*job, *strict)
    assert (
        "half.csv: a note, which --strict makes an error: the last line of the input has no end"
        in text
    )
    done = run(*job, "--quiet")
    assert (done.code, done.err) == (0, "")
    assert (
        "copied in part"
        in json.loads((folder / "o.csv.manifest.json").read_text())["notes"][0]
    )
    assert run("apply", channel, "plain.csv", "p.csv", *SEED, *strict).code == 0


def test_apply_names_the_first_of_many_columns_that_stay(folder, channel, run):
    names = [f"c{place}" for place in range(30)]
    lines = [",".join(["job", *names])]
    lines += [",".join([job, *"x" * 30]) for job in JOBS]
    (folder / "wide.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    out = run("apply", channel, "wide.csv", "o.csv", *SEED, "--keep", "all").out
    shown = ", ".join(names[:20])
    assert out.endswith(f"covered by the promise (--keep): {shown} and 10 more.\n")


@pytest.fixture
def rows(people, folder):
    chance = random.Random(5)
    people["town"] = chance.choices("nsew", k=400)
    people["region"] = [town.upper() for town in people.town]
    people.to_csv("in.csv", index=False)
    made = {
        "row.json": md.design(
            people,
            sensitive="group",
            release=["job"],
            given=["town"],
            promise="relative",
            notion=md.LIP(0.5),
        ),
        "box.json": md.design(
            people,
            sensitive="group",
            release=["job", "town"],
            notion=md.LIP(2.0),
            confidence=0.9,
            cells=2,
            slice_seed=1,
        ),
    }
    for path, design in made.items():
        design.channel.save(path)
    return people


@pytest.mark.parametrize(
    ("channel", "useful", "others"),
    [
        ("row.json", ["job"], {"id", "code", "clan", "note", "region"}),
        ("box.json", ["job", "town"], {"id", "code", "clan", "note", "region"}),
    ],
)
def test_channels_of_rows_and_boxes(rows, run, channel, useful, others):
    """Given columns are released with the row: they are neither told about nor among the others."""
    record = run("inspect", "in.csv", "--channel", channel, "--json").record
    assert record["useful"] == useful
    assert record["sensitive"] == ["group"]
    named = {told["column"]: told for told in record["columns"]}
    assert set(named) == others
    assert set(named["note"]["about"]) == {*useful, "group"}
    assert named["code"]["about"]["job"]["stands_for"]
    assert named["clan"]["about"]["group"]["lift"] > 1.5
    if "town" in useful:
        assert named["region"]["about"]["town"]["stands_for"]


def test_a_file_without_a_given_column_is_refused(rows, run):
    rows.drop(columns="town").to_csv("short.csv", index=False)
    refused = run("inspect", "short.csv", "--channel", "row.json")
    assert refused.code == 2
    assert "there is no column 'town'" in refused.err


def test_a_file_of_the_released_column_alone_is_said_in_one_sentence(
    people, channel, run
):
    people[["job"]].to_csv("alone.csv", index=False)
    found = run("inspect", "alone.csv", "--channel", channel, "--report", "alone.md")
    assert found.out.split("\n")[0] == (
        "400 records. The file has no other column, so that none of them tells anything."
    )
    assert "largest lift" not in found.out
    with open("alone.md") as file:
        page = file.read()
    assert "The file has no other column" in page
    assert "| column" not in page
