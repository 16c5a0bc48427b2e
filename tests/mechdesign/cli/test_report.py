"""`mechdesign report` and the reports of `design`: files, exit codes, and every refusal."""

from __future__ import annotations

import hashlib
import json
import os
import shlex

import pytest

import mechdesign as md
from mechdesign.channel.channel import Channel
from mechdesign.channel.record import ChannelRecord
from mechdesign.cli import failures
from mechdesign.cli import report as report_files
from mechdesign.comparison import curve
from mechdesign.notions import MaxLift
from mechdesign.report import collect
from mechdesign.tables.joint import Joint

ALL_FACTORS = curve.FACTORS
"""The budgets of a curve outside of these tests (`small_by_products`)."""

MICRO = ("--sensitive", "group", "--useful", "job", "--epsilon", "1")


def files(folder):
    return {path.name for path in folder.iterdir()}


def test_help(run):
    result = run("report", "--help")
    assert result.code == 0
    assert "mechdesign report channel.json --report report.html" in " ".join(
        result.out.split()
    )


@pytest.mark.parametrize("ending", ["html", "md", "json"])
def test_design_writes_both_reports_in_every_format(folder, run, ending):
    result = run(
        "design",
        "records.csv",
        *MICRO,
        "--output",
        "c.json",
        "--report",
        f"r.{ending}",
        "--public-report",
        f"p.{ending}",
    )
    assert result.code == 0, result.err
    assert result.err == ""
    assert f"Internal report: r.{ending}. Public report: p.{ending}." in result.out
    assert files(folder) == {
        "records.csv",
        "counts.csv",
        "c.json",
        f"r.{ending}",
        f"p.{ending}",
    }
    inside, outside = (
        (folder / f"{name}.{ending}").read_text(encoding="utf-8") for name in "rp"
    )
    if ending == "html":
        assert inside.startswith("<!DOCTYPE html>")
    assert "records.csv" in inside
    assert "records.csv" not in outside
    digest = hashlib.sha256((folder / "records.csv").read_bytes()).hexdigest()
    assert digest in inside
    assert digest not in outside
    assert hashlib.sha256((folder / "c.json").read_bytes()).hexdigest() in inside


def test_a_later_report_says_what_was_said_at_the_design(folder, run):
    """That a search ended early stood in the report of `design`, and in no later one."""
    table = ("records.csv", *MICRO[:-2], "--epsilon", "30")
    note = "X itself satisfies the notion and is published as it is."
    assert note in run("design", *table, "--output", "c.json").err
    run("report", "c.json", "--report", "r.json", "--public-report", "p.json")
    inside, outside = (
        json.loads((folder / f"{name}.json").read_text()) for name in "rp"
    )
    assert f"Said at the design: {note}" in inside["kept"]["remarks"]
    assert note not in json.dumps(outside)
    run("design", *table, "--public", "--output", "public.json")
    assert note not in (folder / "public.json").read_text()


def test_a_report_of_a_channel_file_agrees_with_that_of_its_design(folder, run):
    run(
        "design",
        "records.csv",
        *MICRO,
        "--output",
        "c.json",
        "--report",
        "a.json",
        "--public-report",
        "ap.json",
    )
    result = run("report", "c.json", "--report", "b.json", "--public-report", "bp.json")
    assert result.code == 0
    assert result.out == (
        "The promise holds.\nInternal report: b.json. Public report: bp.json.\n"
        "For specialists: alip (eps_l 0.5, eps_u 0.5).\n"
    )
    a, b, ap, bp = (
        json.loads((folder / f"{name}.json").read_text())
        for name in ("a", "b", "ap", "bp")
    )
    for key in (
        "promise",
        "before",
        "after",
        "channel",
        "codebook",
        "holds_for",
        "voided_by",
    ):
        assert a[key] == b[key]
    assert a["kept"]["scope"] == "proven"
    assert b["kept"]["scope"] == "stated"
    bare = {"remarks": [], "scope": ""}
    assert a["kept"] | bare == b["kept"] | bare
    assert "not proven again here" in b["kept"]["remarks"][0]
    drop = {"written": None, "provenance": None}
    assert ap | drop == bp | drop


def test_a_public_channel_file_gives_the_same_public_report(folder, run):
    run(
        "design",
        "records.csv",
        *MICRO,
        "--output",
        "c.json",
        "--public-report",
        "a.json",
    )
    run("design", "records.csv", *MICRO, "--output", "p.json", "--public")
    result = run("report", "p.json", "--public-report", "b.json", "--json")
    assert result.record["satisfied"] is None
    a, b = (json.loads((folder / f"{name}.json").read_text()) for name in "ab")
    assert a["promise"].pop("satisfied") is True
    assert b["promise"].pop("satisfied") is None
    assert a["promise"].pop("verdict") != b["promise"].pop("verdict")
    for key in ("written", "provenance"):
        a.pop(key)
        b.pop(key)
    assert a == b


def test_json_has_the_paths(folder, run):
    record = run("design", "records.csv", *MICRO, "--report", "r.md", "--json").record
    assert (record["report"], record["public_report"]) == ("r.md", None)
    run("design", "records.csv", *MICRO, "--output", "c.json")
    record = run("report", "c.json", "--public-report", "p.md", "--json").record
    assert record.keys() == {"report", "public_report", "satisfied", "seconds"}
    assert (record["report"], record["public_report"], record["satisfied"]) == (
        None,
        "p.md",
        True,
    )


def test_the_curve_has_as_much_time_as_is_asked(folder, run, monkeypatch):
    monkeypatch.setattr(curve, "FACTORS", ALL_FACTORS)
    micro = ("design", "records.csv", *MICRO, "--report", "r.json")
    assert run(*micro, "--curve", "0").code == 0
    found = json.loads((folder / "r.json").read_text(encoding="utf-8"))
    assert found["curve"] is None
    assert found["absent"]["curve"].startswith("No curve: it was not asked for.")
    assert run(*micro, "--curve", "60", "--force").code == 0
    assert (
        len(
            json.loads((folder / "r.json").read_text(encoding="utf-8"))["curve"]["rows"]
        )
        == 10
    )
    for wrong in ("-1", "nan", "inf", "long"):
        result = run(*micro, "--curve", wrong, "--force")
        assert (result.code, result.out) == (2, "")
        assert f"--curve ('{wrong}') must be a number of at least 0" in result.err


def test_without_output_the_channel_is_said_not_to_be_written(folder, run):
    out = run("design", "records.csv", *MICRO, "--report", "r.md").out
    assert (
        "The channel was not written; --output channel.json keeps this channel.\nInternal report: r.md."
        in out
    )


def commands(folder, name):
    record = json.loads((folder / name).read_text(encoding="utf-8"))
    return [command["line"] for command in record["commands"]]


def test_the_command_that_is_shown_makes_the_channel_again(folder, run):
    typed = (
        "design",
        "counts.csv",
        "--contingency",
        "--useful",
        "my job",
        "--notion",
        "ldp",
        "--epsilon",
        "0.7",
    )
    run(
        *typed,
        "--mechanism",
        "subset-merging",
        "--output",
        "c.json",
        "--report",
        "r.json",
    )
    line = commands(folder, "r.json")[0]
    assert line == (
        "mechdesign design counts.csv --useful 'my job' --contingency --notion ldp --epsilon 0.7 --mechanism "
        "subset-merging --output c.json"
    )
    first = json.loads((folder / "c.json").read_text())
    (folder / "c.json").unlink()
    assert run(*shlex.split(line)[1:]).code == 0
    assert json.loads((folder / "c.json").read_text()) == first


def test_commands_of_a_channel_file_run_on_its_table(folder, run):
    header = '"kind, of",job\n'
    (folder / "TABLE.csv").write_text(
        header + "a,x\na,y\nb,x\nb,y\nb,y\n", encoding="utf-8"
    )
    typed = (
        "--sensitive",
        '"kind, of"',
        "--useful",
        "job",
        "--notion",
        "alpha",
        "--alpha",
        "3",
        "--epsilon",
        "1",
    )
    assert (
        run(
            "design",
            "TABLE.csv",
            *typed,
            "--mechanism",
            "subset-merging",
            "--output",
            "c.json",
        ).code
        == 0
    )
    assert (
        run("report", "c.json", "--report", "r.json", "--public-report", "p.json").code
        == 0
    )
    first = json.loads((folder / "c.json").read_text())
    for name in ("r.json", "p.json"):
        lines = commands(folder, name)
        for line in lines[:2]:
            words = [
                word.replace("CHANNEL.json", "c.json") for word in shlex.split(line)[1:]
            ]
            assert run(*words, *(["--force"] if words[0] == "design" else [])).code == 0
        assert json.loads((folder / "c.json").read_text()) == first


def test_quiet_and_log(folder, run):
    result = run("design", "records.csv", *MICRO, "--report", "r.md", "--quiet")
    assert result.err == ""
    result = run(
        "design", "records.csv", *MICRO, "--report", "r.md", "--force", "--log-json"
    )
    assert json.loads(result.err.splitlines()[-1])["report"] == "r.md"


def violating(folder):
    """A channel file whose integers break the notion that it names."""
    joint = Joint.from_counts([[9, 1], [1, 9]])
    record = ChannelRecord(notion={"name": "max-lift", "eps_u": 0.1})
    channel = Channel(
        joint.useful, ("u", "v"), [[2, 0], [0, 2]], 2, joint=joint, record=record
    )
    channel.save(folder / "bad.json")
    return MaxLift(0.1)


def test_a_channel_that_breaks_its_promise_exits_1_and_the_reports_say_so(folder, run):
    violating(folder)
    result = run("report", "bad.json", "--report", "r.md", "--public-report", "p.md")
    assert result.code == 1
    assert "NOT hold (VIOLATED)." in result.out
    for name in ("r.md", "p.md"):
        assert "VIOLATED" in (folder / name).read_text(encoding="utf-8")


def refused(run, code, words, *arguments):
    result = run(*arguments)
    assert result.code == code
    assert result.out == ""
    assert words in result.err
    assert len(result.err.splitlines()) == 1


def test_refusals_of_places(folder, run, channel, monkeypatch):
    before = files(folder)
    design = ("design", "records.csv", *MICRO)
    (folder / "there.md").write_text("mine", encoding="utf-8")
    (folder / "sub.md").mkdir()
    for command in (design, ("report", "channel.json")):
        for option in ("--report", "--public-report"):
            for path, words in (
                ("r.pdf", "r.pdf: a report must end in .html, .md, .json, not .pdf"),
                (
                    "report",
                    "report: a report must end in .html, .md, .json, not nothing",
                ),
                (
                    "there.md",
                    "there.md exists; choose another name, or overwrite it with force (--force)",
                ),
                ("sub.md", "sub.md is a folder"),
                ("no/r.md", "no/r.md cannot be written: there is no folder 'no'"),
            ):
                refused(run, 2, words, *command, option, path)
        words = (
            "--report and --public-report both name ./a.md: give each a file of its own"
        )
        refused(
            run, 2, words, *command, "--report", "a.md", "--public-report", "./a.md"
        )
    words = "--output and --report both name c.json"
    refused(run, 2, words, *design, "--output", "c.json", "--report", "c.json")
    words = "channel.json is the input file itself"
    refused(
        run, 2, words, "report", "channel.json", "--report", "channel.json", "--force"
    )
    monkeypatch.setattr(report_files.os, "access", lambda *_: False)
    refused(
        run,
        2,
        "r.md cannot be written: the folder '.' is not writable",
        *design,
        "--report",
        "r.md",
    )
    assert files(folder) == before | {"there.md", "sub.md"}
    assert (folder / "there.md").read_text(encoding="utf-8") == "mine"


def test_force_replaces_a_report(folder, run, channel):
    (folder / "r.md").write_text("old", encoding="utf-8")
    assert run("report", "channel.json", "--report", "r.md", "--force").code == 0
    assert (
        (folder / "r.md")
        .read_text(encoding="utf-8")
        .startswith("# Release of job, protecting group")
    )


@pytest.mark.parametrize(
    ("arguments", "ending"),
    [
        (
            ("report", "channel.json", "x.html"),
            " (x.html); what is to be written is named by an option: --report FILE",
        ),
        (
            ("design", "table.csv", "x.json"),
            " (x.json); what is to be written is named by an option: --output FILE",
        ),
        # The output of `apply` is an argument.
        (("apply", "channel.json", "in.csv", "out.csv", "x.csv"), " (x.csv)"),
    ],
)
def test_an_extra_argument_is_answered_with_the_option_of_the_output(
    folder, run, arguments, ending
):
    result = run(*arguments)
    assert result.code == 2
    assert result.out == ""
    first, second = result.err.splitlines()
    assert first == "mechdesign: error: Got unexpected extra argument(s)" + ending
    assert second == f"Try: mechdesign {arguments[0]} --help"


def test_refusals_before_any_work(folder, run, channel):
    refused(
        run, 2, "no report is asked for: give --report FILE", "report", "channel.json"
    )
    words = "r.pdf: a report must end in .html, .md, .json, not .pdf"
    refused(run, 2, words, "report", "channel.json", "--report", "r.pdf")
    refused(
        run,
        2,
        words,
        "design",
        "records.csv",
        *MICRO,
        "--output",
        "c.json",
        "--report",
        "r.pdf",
    )
    assert not (folder / "c.json").exists()
    assert (
        run(
            "report", "channel.json", "--report", "r.md", "--public-report", "p.html"
        ).code
        == 0
    )


def test_refusals_of_channels(folder, run):
    run("design", "records.csv", *MICRO, "--output", "p.json", "--public")
    words = "p.json is a public channel without its table, so it has no internal report: give --public-report"
    refused(run, 2, words, "report", "p.json", "--report", "r.md")
    joint = Joint.from_counts([[9, 1], [1, 9]])
    Channel(joint.useful, ("u",), [[1], [1]], 1, joint=joint).save(folder / "n.json")
    words = "n.json does not say which notion it was designed for, so there is no promise to report"
    refused(run, 2, words, "report", "n.json", "--report", "r.md")
    (folder / "x.json").write_text("{}", encoding="utf-8")
    assert run("report", "x.json", "--report", "r.md").code == 2
    assert run("report", "absent.json", "--report", "r.md").code == 2
    assert files(folder) == {"records.csv", "counts.csv", "p.json", "n.json", "x.json"}


def test_odd_records_of_a_channel_file_are_not_believed(folder, run):
    joint = Joint.from_counts([[9, 1], [1, 9]])
    record = ChannelRecord(
        notion={"name": "lip", "epsilon": 3.0},
        certificate={"upper_bound_nmi": None, "gap_nmi": None, "scope": 7},
        provenance={"tool": 3, "mechanism": ["x"], "method": None},
    )
    Channel(
        joint.useful, ("u", "v"), [[2, 1], [1, 2]], 3, joint=joint, record=record
    ).save(folder / "c.json")
    assert run("report", "c.json", "--report", "r.json").code == 0
    report = json.loads((folder / "r.json").read_text())
    assert report["kept"]["upper_bound_nmi"] is None
    assert report["asked"]["mechanism"] is None


def test_ctrl_c_says_what_is_there(folder, run, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(collect, "measure", stop)
    result = run(
        "design", "records.csv", *MICRO, "--output", "c.json", "--report", "r.md"
    )
    assert result.code == 130
    assert "interrupted; c.json is written and can be used; `mechdesign" in result.err
    assert files(folder) == {"records.csv", "counts.csv", "c.json"}
    result = run("design", "records.csv", *MICRO, "--report", "r.md")
    assert "interrupted; nothing was written" in result.err
    assert failures.Interrupted.exit_code == 130


FULL = OSError(28, "No space left on device")


def disk_full_for(monkeypatch, *names):
    """Let files of these names fail when they are about to get them."""
    for function in ("link", "replace"):
        named = getattr(os, function)

        def refuse(source, target, named=named):
            if os.path.basename(target) in names:
                raise FULL
            named(source, target)

        monkeypatch.setattr(os, function, refuse)


@pytest.mark.parametrize(
    "released", [("--useful", "job"), ("--release", "job", "--confidence", "0.9")]
)
def test_a_report_that_fails_leaves_the_channel_and_says_so(
    folder, run, monkeypatch, released
):
    header, *rows = (folder / "records.csv").read_text().splitlines()
    many = "\n".join([header, *rows * 50]) + "\n"
    (folder / "many.csv").write_text(many)
    line = ("design", "many.csv", *MICRO[:2], *released, *MICRO[4:])
    line += ("--output", "c.json")
    disk_full_for(monkeypatch, "p.md")
    result = run(*line, "--report", "r.md", "--public-report", "p.md")
    assert result.code == 2
    assert result.err.endswith(
        "error: p.md cannot be written: no space left on device; r.md is written; c.json is "
        "written and can be used; `mechdesign report` writes its reports\n"
    )
    assert run("audit", "c.json").code == 0
    assert run("report", "c.json", "--report", "again.md").code == 0
    assert (folder / "again.md").exists()


def test_a_page_that_cannot_be_made_leaves_no_other(folder, run, monkeypatch):
    from mechdesign.report import writing

    made = []

    def fails(document):
        made.append(document)
        if len(made) == 2:
            raise RuntimeError("no page")
        return "a page"

    monkeypatch.setattr(writing, "markdown", fails)
    reports = ("--report", "r.md", "--public-report", "p.md")
    result = run("design", "records.csv", *MICRO, "--output", "c.json", *reports)
    assert result.code == 3
    assert "please report it; c.json is written and can be used" in result.err
    assert files(folder) == {"records.csv", "counts.csv", "c.json"}


def test_a_page_for_the_board_that_fails_names_the_report(run, channel, monkeypatch):
    disk_full_for(monkeypatch, "b.md")
    result = run("report", "channel.json", "--report", "r.md", "--board", "b.md")
    assert result.code == 2
    assert "b.md cannot be written" in result.err
    assert result.err.endswith("; r.md is written\n")


def test_a_page_for_the_board_is_refused_before_a_report_is_written(
    folder, run, channel
):
    md.Channel.load(folder / "channel.json").public().save(folder / "pub.json")
    before = files(folder)
    line = ("report", "pub.json", "--public-report", "p.md", "--board", "b.md")
    result = run(*line)
    assert result.code == 2
    assert "take the channel with its table" in result.err
    assert files(folder) == before


def test_a_full_disk_leaves_no_report(folder, run, channel, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    result = run("report", "channel.json", "--report", "r.md")
    assert result.code == 2
    assert "r.md cannot be written: no space left on device" in result.err
    assert files(folder) == {"records.csv", "counts.csv", "channel.json"}


def test_a_channel_that_no_command_made_shows_no_command_that_would_make_another(
    folder, run
):
    joint = Joint.from_counts([[30, 10], [10, 30]])
    md.design(joint, md.ALIP(0.4, 0.4).with_budgets({"s0": (0.2, 0.2)})).channel.save(
        folder / "python.json"
    )
    assert run("report", "python.json", "--report", "r.json").code == 0
    assert [shlex.split(line)[1] for line in commands(folder, "r.json")] == [
        "audit",
        "apply",
        "show",
    ]


def test_a_table_of_many_files_is_told_by_their_hashes(folder, run):
    """It was read as one table, and then the report wanted to hash a folder."""
    lines = (folder / "records.csv").read_text().splitlines(keepends=True)
    (folder / "parts").mkdir()
    for name, rows in (("a.csv", lines[1:6]), ("b.csv", lines[6:])):
        (folder / "parts" / name).write_text("".join([lines[0], *rows]))
    digests = [
        hashlib.sha256((folder / "parts" / name).read_bytes()).hexdigest()
        for name in ("a.csv", "b.csv")
    ]
    listed = "".join(
        f"{digest}  {name}\n"
        for digest, name in zip(digests, ("a.csv", "b.csv"), strict=True)
    )
    arguments = [
        "--sensitive",
        "group",
        "--useful",
        "job",
        "--epsilon",
        "1",
        "--output",
        "c.json",
    ]
    result = run("design", "parts", *arguments, "--report", "r.md")
    assert result.code == 0, result.err
    text = (folder / "r.md").read_text()
    assert "Table: parts, 2 files" in text
    assert hashlib.sha256(listed.encode()).hexdigest() in text
    assert "mechdesign design parts --sensitive group" in text
    whole = run("design", "records.csv", *arguments[:-2], "--json").record
    assert (
        run("design", "parts/*.csv", *arguments[:-2], "--json").record["nmi"]
        == whole["nmi"]
    )
