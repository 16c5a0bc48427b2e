"""Inputs at the ends of what can be asked: counts that no records have, targets, signals."""

from __future__ import annotations

import inspect
import json
import os
import shlex
import subprocess
import sys

import pandas as pd
import pytest

import mechdesign as md

SIZE = 10**60


@pytest.mark.parametrize("release", ["job", "job,town"])
def test_counts_that_no_records_have_are_weights(tmp_path, monkeypatch, run, release):
    monkeypatch.chdir(tmp_path)
    rows = ["job,town,income,n"]
    for at, cells in enumerate(("a,n,low", "b,n,high", "a,s,high", "b,s,low")):
        rows.append(f"{cells},{SIZE + at * 7 * SIZE // 11}")
    (tmp_path / "t.csv").write_text("\n".join(rows) + "\n")
    option = "--release" if "," in release else "--useful"
    command = ("design", "t.csv", "--weight", "n", "--sensitive", "income")
    options = (option, release, "--epsilon", "1", "--output", "c.json")
    design = run(*command, *options)
    assert design.code == 0
    assert "the counts sum to more than 1,000,000,000,000" in design.err
    assert json.loads((tmp_path / "c.json").read_text())["counts"] is False
    for verb in (
        ("audit", "c.json", "--all-measures"),
        ("show", "c.json"),
        ("report", "c.json", "--report", "r.html", "--public-report", "p.html"),
        ("report", "c.json", "--board", "b.html"),
    ):
        result = run(*verb)
        assert result.code == 0, (verb, result.err)
    refused = run(*command, *options, "--force", "--confidence", "0.95")
    assert refused.code == 2
    assert "counts of records" in refused.err


def test_a_first_screen_that_nobody_reads_is_no_error(ready):
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w") as stream:
        done = subprocess.run(
            ready.program,
            stdout=stream,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stderr) == (141, "")


def test_compare_takes_a_data_frame_as_design_does():
    frame = pd.DataFrame({"s": list("yynn") * 20, "x": list("abba") * 10 + ["a"] * 40})
    joint = md.Joint.from_table(frame, sensitive="s", useful="x")
    names = {"sensitive": "s", "useful": "x"}
    of_frame = md.compare(frame, epsilons=[1], mechanisms=["optimal"], **names)
    of_joint = md.compare(joint, epsilons=[1], mechanisms=["optimal"])
    assert of_frame.rows[0].nmi == of_joint.rows[0].nmi
    with pytest.raises(md.InputError, match="sensitive and useful name the columns"):
        md.compare(frame, epsilons=[1])


def test_the_signature_of_design_names_columns_and_its_result():
    signature = inspect.signature(md.design)
    assert {"sensitive", "useful", "release", "person"} <= signature.parameters.keys()
    assert signature.return_annotation is md.Design
    data, notion, *_ = signature.parameters.values()
    assert (data.name, notion.name, notion.default) == ("data", "notion", None)
    joint = md.Joint.from_counts([[5, 3, 2], [1, 4, 6]])
    design = md.design(data=joint, notion=None, average={"tv": 0.01})
    assert design.nmi == md.design(joint, average={"tv": 0.01}).nmi
    with pytest.raises(md.InputError, match="design needs a notion"):
        md.design(joint, None)


def test_files_are_taken_where_frames_are(tmp_path):
    frame = pd.DataFrame({"s": list("yynn") * 20, "x": list("abbb") * 20})
    path = tmp_path / "t.csv"
    frame.to_csv(path, index=False)
    columns = {"sensitive": "s", "release": "x"}
    design = md.design(path, md.LIP(0.5), **columns)
    assert design.channel == md.design(frame, md.LIP(0.5), **columns).channel
    assert md.audit(design.channel, str(path)) == md.audit(design.channel, frame)
    of_file = md.compare(str(path), epsilons=[0.5], **columns)
    of_frame = md.compare(frame, epsilons=[0.5], **columns)
    assert of_file.rows[0].truth == of_frame.rows[0].truth
    # Four records of each person, whose secret is one.
    secret = [s for k in range(60) for s in "yn"[k % 3 > 0] * 4]
    person = [k // 4 for k in range(240)]
    panel = pd.DataFrame({"p": person, "s": secret, "x": list("abbb") * 60})
    panel.to_csv(path, index=False)
    for table in (panel, path):
        with pytest.warns(UserWarning, match="'p' names 60 people"):
            md.design(table, md.LIP(0.5), **columns)


def test_an_audit_reads_a_frame_as_the_design_did():
    frame = pd.DataFrame({"s": list("yynn") * 20, "x": ["a", "a ", "b", ""] * 20})
    reading = {"trim": True, "missing": "drop"}
    columns = {"sensitive": "s", "useful": "x"}
    channel = md.design(frame, md.LIP(0.5), **columns, **reading).channel
    assert md.audit(channel, frame) == md.audit(channel)


def test_a_design_of_a_frame_says_how_it_was_read():
    """Notices of the table went to the joint table alone, which nobody sees."""
    frame = pd.DataFrame({"s": list("yynn") * 20, "x": [1.0, 2.0, None, 1.0] * 20})
    asked = {"sensitive": "s", "release": "x", "missing": "drop", "unit": "record"}
    messages = md.design(frame, md.LIP(1.0), **asked).messages
    assert "dropped 20 of 80 record(s) with an empty cell" in messages
    assert "the column 'x' holds integers and gaps; 1.0 is read as 1" in messages


def test_assess_ends_with_the_next_command(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    rows = ["s,x", *["y,a", "n,b", "y,b", "n,a"] * 20]
    (tmp_path / "t.csv").write_text("\n".join(rows) + "\n")
    shown = run("assess", "t.csv", "--sensitive", "s")
    next_one = "mechdesign assess t.csv --sensitive s --plan"
    assert shown.out.splitlines()[-1] == f"Next:  {next_one}"
    planned = run(*next_one.split()[1:])
    assert "Next:  mechdesign design t.csv" in planned.out.splitlines()[-1]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
@pytest.mark.parametrize("place", ["pipe", "-"])
def test_a_table_from_a_pipe_is_read_as_often_as_a_command_needs(
    tmp_path, monkeypatch, place, ready
):
    """Commands open a table several times: for its header, for people, to count."""
    monkeypatch.chdir(tmp_path)
    rows = [f"{'ab'[i % 2]},{'xyz'[i % 3]},{i % 5}" for i in range(60)]
    content = "\n".join(["s,job,n", *rows, ""]).encode()
    os.mkfifo("pipe")
    for command in (
        ("assess", place, "--sensitive", "s"),
        ("design", place, "--sensitive", "s", "--useful", "job", "--epsilon", "1"),
    ):
        program = subprocess.Popen(
            ["bash", "-c", f"{ready.launcher} {shlex.join(command)}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        assert program.stdin is not None
        if place == "pipe":
            (tmp_path / place).write_bytes(content)
            content_of_stdin = None
        else:
            content_of_stdin = content
        printed, _ = program.communicate(content_of_stdin, timeout=100)
        assert program.returncode == 0, printed


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
def test_links_stay_and_lead_to_what_is_written(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    rows = [f"{'ab'[i % 2]},{'xyz'[i % 3]}" for i in range(60)]
    (tmp_path / "t.csv").write_text("\n".join(["s,job", *rows, ""]))
    (tmp_path / "far").mkdir()
    for name in ("c.json", "r.md"):
        (tmp_path / name).symlink_to(tmp_path / "far" / name)
    design = (
        "design",
        "t.csv",
        "--sensitive",
        "s",
        "--useful",
        "job",
        "--epsilon",
        "1",
    )
    files = ("--output", "c.json", "--report", "r.md")
    assert run(*design, *files).code == 0
    again = run(*design, *files)
    assert again.code == 2
    assert "c.json exists" in again.err
    assert run(*design, *files, "--force").code == 0
    for name in ("c.json", "r.md"):
        assert (tmp_path / name).is_symlink()
        assert (tmp_path / "far" / name).stat().st_size > 100
    assert sorted(path.name for path in (tmp_path / "far").iterdir()) == [
        "c.json",
        "r.md",
    ]


def test_a_file_whose_name_is_no_text_is_refused(folder, run, refused):
    """Reports, manifests and ledgers name files, and hold UTF-8 text alone."""
    bad = os.fsdecode(b"\xff.csv")
    (folder / bad).write_bytes((folder / "records.csv").read_bytes())
    columns = ("--sensitive", "group", "--useful", "job", "--epsilon", "1")
    design = ("design", "records.csv", *columns)
    assert run(*design, "--output", "channel.json").code == 0
    for line in (
        ("assess", bad, "--sensitive", "group"),
        ("design", bad, *columns),
        (*design, "--output", bad),
        (*design, "--report", f"{bad}.html"),
        ("apply", "channel.json", bad, "out.csv"),
        ("apply", "channel.json", "records.csv", bad),
        ("apply", "channel.json", "records.csv", "out.csv", "--ledger", bad),
        ("run", bad),
    ):
        assert "\\xff.csv" in (error := refused(*line)), line
        assert "is not UTF-8 text, so that no report or manifest can" in error, line


def test_a_working_folder_that_was_removed(tmp_path, ready):
    (tmp_path / "t.csv").write_text("s,u\na,x\nb,y\na,y\nb,x\n" * 20)
    gone = tmp_path / "gone"
    gone.mkdir()
    line = (
        f"design {tmp_path}/t.csv --sensitive s --useful u --epsilon 1 --output c.json"
    )
    program = (
        "import os, sys; from mechdesign.cli import main; "
        f"os.chdir({str(gone)!r}); os.rmdir({str(gone)!r}); "
        f"sys.exit(main({line.split()!r}))"
    )
    done = ready.run(program, folder=tmp_path, environment=os.environ)
    assert done.returncode == 2
    assert done.stderr == (
        "mechdesign: error: the working folder was removed; go to another one, and start "
        "again\n"
    )


def test_a_terminal_without_a_width_has_a_help(ready):
    helps = []
    for columns in ("0", "80"):
        done = subprocess.run(
            [*ready.program, "audit", "--help"],
            env=os.environ | {"COLUMNS": columns},
            capture_output=True,
            text=True,
            check=True,
        )
        helps.append(done.stdout)
    assert helps[0] == helps[1]
    assert "--all-measures" in helps[0]
