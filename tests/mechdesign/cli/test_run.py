"""`run`: a nightly job from one file. What is done is not done again, and a mistake is told with its line."""

from __future__ import annotations

import hashlib
import os
import signal
import sys
import tomllib
from dataclasses import is_dataclass
from typing import get_type_hints

import pytest

from mechdesign.cli import apply as commands
from mechdesign.cli import main
from mechdesign.cli import run as r
from mechdesign.cli.job_file import job_model, line_of
from mechdesign.cli.line import declared
from mechdesign.jobs.ledger import Ledger
from tests.mechdesign.cli.conftest import contents
from tests.profiles import slow

JOB = """\
# The nightly release.
channel = "channel.json"
ledger = "ledger.db"

[design]
table = "records.csv"
sensitive = ["group"]
useful = "job"
epsilon = 1.0
time-limit = 60

[[apply]]
in = "in.csv"
out = "out.csv"
identity = "id"
unknown = "marginal"

[[apply]]
in = "days"
out = "released"
identity = "id"

[report]
report = "report.md"
public-report = "public.html"
"""

DATA = "id,job,town\n1,clerk,N\n2,smith,S\n3,baker,N\n4,weaver,S\n"


@pytest.fixture
def job(folder):
    (folder / "nightly").mkdir()
    (folder / "records.csv").rename(folder / "nightly" / "records.csv")
    (folder / "nightly" / "in.csv").write_text(DATA)
    for day in (1, 2):
        (folder / "nightly" / "days" / f"dt={day}").mkdir(parents=True)
        (folder / "nightly" / "days" / f"dt={day}" / "a.csv").write_text(
            f"id,job\n{day}0,clerk\n{day}1,smith\n"
        )
    path = folder / "nightly" / "job.toml"
    path.write_text(JOB)
    return path


MADE = {
    "channel.json",
    "ledger.db",
    "ledger.db.key",
    "out.csv",
    "out.csv.manifest.json",
    "released",
    "report.md",
}


def test_the_first_run_does_all_and_the_second_nothing(job, run):
    """Paths are those of the folder of the job file, wherever the job is run."""
    first = run("run", job)
    assert first.code == 0, first.err
    assert first.out.splitlines()[-1] == f"{job} is done."
    assert "4 records written to out.csv; the column job is released" in first.out
    assert {path.name for path in job.parent.iterdir()} >= {*MADE, "public.html"}
    assert (job.parent / "released" / "dt=2" / "a.csv").exists()
    before, marks = (
        contents(job.parent),
        {path: path.stat().st_mtime_ns for path in job.parent.rglob("*.*")},
    )
    second = run("run", job, "--json")
    assert second.code == 0, second.err
    assert contents(job.parent) == before
    assert marks == {path: path.stat().st_mtime_ns for path in job.parent.rglob("*.*")}
    record = second.record
    assert record["steps"][0]["satisfied"]
    assert [step["already"] for step in record["steps"][1:]] == [True, True]
    assert len(record["steps"]) == 3  # the reports are there


def test_a_rehearsal_writes_nothing_and_finds_what_the_job_would(job, run, refused):
    before = contents(job.parent)
    result = run("run", job, "--dry-run")
    assert result.code == 0, result.err
    assert [line.partition(";")[0] for line in result.out.splitlines()] == [
        "channel.json would be written.",
        "4 records would be written to out.csv",
        "4 records would be written to released",
        "report.md and public.html would be written.",
        "Nothing was written: this was a rehearsal.",
    ]
    assert contents(job.parent) == before
    assert run("run", job).code == 0
    before = contents(job.parent)
    result = run("run", job, "--dry-run", "--json")
    assert result.record["dry_run"]
    assert [step.get("already") for step in result.record["steps"]] == [
        None,
        True,
        True,
    ]
    (job.parent / "in.csv").write_text(DATA.replace("1,clerk", "1,smith"))
    assert "job.toml, line 14: out.csv exists" in refused(
        "run", job, "--dry-run", "--json"
    )
    (job.parent / "out.csv").unlink()
    (job.parent / "out.csv.manifest.json").unlink()
    assert "line 13: in.csv, line 2: the symbol of 'job' is another one" in refused(
        "run", job, "--dry-run", "--json"
    )
    assert "line 13: in.csv, line 2: the symbol of 'job' is another one" in refused(
        "run", job, "--json"
    )


MISTAKES = [
    ('channel = "channel.json"', "", 1, "the job has no 'channel'"),
    ('"channel.json"', "7", 2, r"channel \('7'\) must be text"),
    ('"channel.json"', '"none/channel.json"', 2, "none/channel.json cannot be written"),
    ('"ledger.db"', "true", 3, r"ledger \('True'\) must be text"),
    ('"ledger.db"', '"in.csv"', 13, "in.csv is not a ledger"),
    ("[design]", "[desing]", 5, "the job has an unknown key 'desing'"),
    ("[design]", "[[design]]", 5, r"design \(a list\) must be an object"),
    ('table = "records.csv"\n', "", 5, "design has no 'table'"),
    ('"records.csv"', '"nobody.csv"', 6, "nobody.csv: there is no such file"),
    ('["group"]', '["grupp"]', 7, "records.csv: there is no column 'grupp'"),
    ('["group"]', '[\n"group",\n1.5, true]', 7, r"design.sensitive \(a list\) must be text or a number, or a list of such"),
    ('useful = "job"\n', "", 5, "--useful COL is missing"),
    ("epsilon = 1.0", 'epsilon = "much"', 9, r"--epsilon \('much'\) is not a number"),
    ("epsilon = 1.0", "epsilon = true", 9, r"design.epsilon \('True'\) must be text or a number"),
    ("epsilon = 1.0", "epsilon = 2026-11-29", 9, r"design.epsilon \('2026-11-29'\) must be text or a number"),
    ("epsilon = 1.0", "epsilon = 1.0\neps-l = 1", 9, "give either --epsilon"),
    ("epsilon = 1.0", "epsilom = 1.0", 9, "design has an unknown key 'epsilom'"),
    ("time-limit = 60", "time-limit = -1", 10, r"--time-limit \('-1'\) must be a positive number"),
    ("time-limit = 60", "time_limit = 60", 10, "design has an unknown key 'time_limit'; write 'time-limit', as the option"),
    ("time-limit = 60", "no_such = 60", 10, "design has an unknown key 'no_such'"),
    ('ledger = "ledger.db"', 'key_from = "k"', 3, "the job has an unknown key 'key_from'; write 'key-from', as the option"),
    ('unknown = "marginal"', "keep_order = true", 16, r"apply\[0\] has an unknown key 'keep_order'; write 'keep-order'"),
    ('"report.md"', '"report.md"\npublic_report = "p.html"', 25, "report has an unknown key 'public_report'; write 'public-report'"),
    ("time-limit = 60", 'confidence = "sure"', 10, r"confidence \('sure'\) is not a number; it must be from 0.5"),
    ("time-limit = 60", 'output = "c.json"', 10, "design has an unknown key 'output'"),
    ("time-limit = 60", "public = 1", 10, r"design.public \('1'\) must be true or false"),
    ("time-limit = 60", "time-limit = = 60", 10, "is no TOML file"),
    ("time-limit = 60", "epsilon = 2", 10, "is no TOML file: Cannot overwrite a value"),
    ("[[apply]]\nin = \"in.csv\"", "[apply]\nin = 'in.csv'", 18, "is no TOML file"),
    ('in = "in.csv"\n', "", 12, r"apply\[0\] has no 'in'"),
    ('"in.csv"', '"tonight.csv"', 13, "tonight.csv: there is no such file"),
    ('"out.csv"', '"days/out.csv/x"', 14, "there is no folder 'days/out.csv'"),
    ('identity = "id"\nunknown', 'identity = "nr"\nunknown', 15, "there is no column 'nr'"),
    ('"marginal"', '"none"', 16, r"unknown \('none'\) must be refuse, marginal, nearest or output:LABEL"),
    ('unknown = "marginal"', "insecure-seed = 1", 16, r"apply\[0\] has an unknown key 'insecure-seed'"),
    ('unknown = "marginal"', "fresh-draw = true", 16, r"apply\[0\] has an unknown key 'fresh-draw'"),
    ('unknown = "marginal"', "also = true", 16, r"apply\[0\].also \('True'\) must be text or a number, or a list of such"),
    ('unknown = "marginal"', "changed = 3", 16, r"changed \('3'\) must be one of"),
    ('"days"', '"nights*"', 19, r"nights\* has no data files"),
    ('"released"', '"days/released"', 20, "lie in each other"),
    ("[report]", "[[report]]", 23, r"report \(a list\) must be an object"),
    ('"report.md"', '"report.pdf"', 24, "report.pdf: a report must end in"),
    ('"public.html"', '"report.md"', 24, "give each a file of its own"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "line", "message"), MISTAKES)
def test_a_mistake_is_told_with_its_line_before_anything_is_written(
    job, refused, old, new, line, message
):
    assert JOB.count(old) == 1
    job.write_text(JOB.replace(old, new))
    error = refused("run", job, "--dry-run", "--json")
    assert message.replace("\\", "") in error
    assert ("; write '" in error) == ("; write '" in message)
    assert f"job.toml, line {line}: " in error or f"(at line {line}, column" in error


@pytest.mark.parametrize(
    ("path", "target", "message"),
    [
        ("in.csv", "late.xlsx", "as the input is read; name it accordingly"),
        (
            "in.csv",
            "late.TSV",
            "late.TSV: the output has ',' between cells, as the input",
        ),
        ("in.csv", "nowhere/late.csv", "there is no folder 'nowhere'"),
        ("in.csv", "out.csv", "out.csv is the output of two releases"),
        ("none.csv", "late.csv", "none.csv: there is no such file"),
        ("in.csv", "in.csv", "in.csv is the input file itself"),
    ],
)
def test_a_later_release_that_cannot_be_is_refused_before_any_work(
    job, refused, path, target, message
):
    before = contents(job.parent)
    job.write_text(f'{JOB}\n[[apply]]\nin = "{path}"\nout = "{target}"\n')
    assert message in refused("run", job, "--json")
    assert contents(job.parent).keys() == before.keys()


def test_a_release_may_read_what_an_earlier_one_writes(job, run):
    more = '\n[[apply]]\nin = "out.csv"\nout = "again.csv"\n'
    job.write_text(JOB.replace('"out.csv"\n', '"out.csv"\nkeep = ["id"]\n') + more)
    assert "again.csv" not in contents(job.parent)
    result = run("run", job, "--json")
    # The first step was done, and the second read its labels, which the channel does not know.
    assert (job.parent / "out.csv").exists(), result.err
    assert result.code == 2
    assert (
        "out.csv, line 2: the channel does not know the symbol of 'job'" in result.err
    )


def test_no_job_file(folder, refused):
    (folder / "bytes.toml").write_bytes(b"channel = '\xff'")
    (folder / "deep.toml").write_text("x = " + "[" * 20_000 + "]" * 20_000)
    (folder / "keys.toml").write_text("[a" + ".a" * 20_000 + "]")
    (folder / "digits.toml").write_text("x = " + "1" * 5000)
    assert "none.toml: there is no such file" in refused("run", "none.toml")
    assert "bytes.toml is no TOML file: 'utf-8' codec" in refused("run", "bytes.toml")
    assert "is a folder, not a file" in refused("run", ".")
    for name in ("deep", "keys"):
        error = refused("run", f"{name}.toml")
        assert f"{name}.toml is no job file: it is nested too deeply" in error
    error = refused("run", "digits.toml")
    assert "digits.toml: holds an integer of thousands of digits" in error


def test_a_release_in_single_brackets(job, refused):
    job.write_text('channel = "channel.json"\n[apply]\nin = "in.csv"\nout = "o.csv"\n')
    error = refused("run", job)
    assert "job.toml, line 2: a release is a section [[apply]], with double" in error


def test_a_channel_that_another_section_made_is_not_used(job, run):
    assert run("run", job).code == 0
    before = contents(job.parent)
    job.write_text(JOB.replace("epsilon = 1.0", "epsilon = 0.5"))
    result = run("run", job)
    assert result.code == 2
    assert "job.toml, line 2: " not in result.err
    assert (
        "channel.json exists, and was not designed with the options of this section: remove it"
        in result.err
    )
    job.write_text(JOB)
    assert contents(job.parent) == before


def test_a_table_on_which_the_channel_breaks_its_promise_stops_the_job(job, run):
    """Exit code 1, as of `audit`; nothing is released."""
    job.write_text(JOB.replace("[[apply]]", "[[apply]]\nforce = true"))
    assert run("run", job).code == 0
    before = contents(job.parent / "released")
    lines = (job.parent / "records.csv").read_text().splitlines()
    (job.parent / "records.csv").write_text(
        "\n".join([*lines, *["13,b,weaver,N"] * 90]) + "\n"
    )
    (job.parent / "in.csv").write_text(DATA + "5,clerk,N\n")
    result = run("run", job)
    assert result.code == 1
    assert "violated" in result.out.lower()
    assert (job.parent / "out.csv").read_text().count("\n") == 5
    assert contents(job.parent / "released") == before
    assert not run("run", job, "--json").record["steps"][0]["satisfied"]


def test_a_job_without_a_design_releases_with_the_channel_that_is_there(
    job, run, refused
):
    assert run("run", job).code == 0
    text = JOB[: JOB.index("[design]")] + JOB[JOB.index("[[apply]]") :]
    job.write_text(text.replace('"out.csv"', '"out2.csv"'))
    assert run("run", job).code == 0
    assert (job.parent / "out2.csv").read_bytes() == (
        job.parent / "out.csv"
    ).read_bytes()
    job.write_text(text[: text.index("[report]")])
    (job.parent / "channel.json").unlink()
    assert "channel.json: there is no such file" in run("run", job).err


def test_reports_that_are_gone_are_written_again(job, run):
    assert run("run", job).code == 0
    (job.parent / "report.md").unlink()
    mark = (job.parent / "public.html").stat().st_mtime_ns
    assert run("run", job).code == 0
    assert (job.parent / "report.md").exists()
    assert (job.parent / "public.html").stat().st_mtime_ns == mark


def test_the_page_for_the_board_is_a_report_of_a_job(job, run):
    """It was an internal error. It says which channel it is about, as the others do."""
    job.write_text(f'{JOB}board = "board.html"\n')
    first = run("run", job)
    assert first.code == 0, first.err
    board = job.parent / "board.html"
    old = board.read_bytes()
    assert b"What nobody can find out" in old
    again = run("run", job)
    assert again.code == 0, again.err
    assert board.read_bytes() == old
    board.write_text("a page on something else")
    refused = run("run", job)
    assert refused.code == 2
    assert "board.html is no report on channel.json as it is now" in refused.err
    job.write_text(f'{JOB}board = "report.md"\n')
    (job.parent / "report.md").unlink()
    assert "both name report.md" in run("run", job).err


def test_reports_on_another_channel_do_not_stay(job, run):
    """Else the job would be done with a promise that the channel does not make."""
    assert run("run", job).code == 0
    weaker = JOB.replace("epsilon = 1.0", "epsilon = 2.0")
    job.write_text(weaker)
    (job.parent / "channel.json").unlink()
    reports = {name: job.parent / name for name in ("report.md", "public.html")}
    old = {name: path.read_bytes() for name, path in reports.items()}
    for path in reports.values():
        path.unlink()
    for name in ("out.csv", "released"):
        job.write_text(job.read_text().replace(f'"{name}"', f'"{name}2"'))
    again = run("run", job)
    assert again.code == 0, again.err
    new = {name: path.read_bytes() for name, path in reports.items()}
    for name, path in reports.items():
        path.write_bytes(old[name])
        refused = run("run", job)
        assert refused.code == 2
        assert (
            f"{name} is no report on channel.json as it is now: remove it"
            in refused.err
        )
        assert path.read_bytes() == old[name]
        path.write_bytes(new[name])
    assert run("run", job).code == 0
    reports["public.html"].write_bytes(old["public.html"])
    job.write_text(job.read_text() + "force = true\n")
    mark = reports["report.md"].stat().st_mtime_ns
    assert run("run", job).code == 0
    assert reports["public.html"].read_bytes() != old["public.html"]
    assert reports["report.md"].stat().st_mtime_ns == mark


def test_a_report_may_prove_the_bound_again(job, run):
    job.write_text(f"{JOB}certificate = true\n")
    assert run("run", job).code == 0
    report = (job.parent / "report.md").read_text()
    assert "not proven again" not in report
    (job.parent / "report.md").unlink()
    job.write_text(JOB)
    assert run("run", job).code == 0
    assert "not proven again" in (job.parent / "report.md").read_text()


def test_the_ledger_of_a_release_comes_before_that_of_the_job(job, run):
    job.write_text(JOB.replace('unknown = "marginal"', 'ledger = "other.db"'))
    assert run("run", job).code == 0
    counts = []
    for name in ("other.db", "ledger.db"):
        ledger = Ledger(job.parent / name)
        with ledger.reading() as db:
            counts.append(len(ledger.releases(db)))
    assert counts == [1, 2]


def test_a_bad_file_in_a_folder_stops_the_job_after_what_is_done_already(job, run):
    (job.parent / "days" / "dt=2" / "b.csv").write_text("id,job\n30,clark\n")
    result = run("run", job)
    assert result.code == 2
    assert (
        "job.toml, line 19: days/dt=2/b.csv, line 2: the channel does not know the symbol of"
        in result.err
    )
    assert (job.parent / "out.csv").exists()
    assert not (job.parent / "released").exists()
    (job.parent / "days" / "dt=2" / "b.csv").unlink()
    assert run("run", job).code == 0


def stopped(job, count: int, signum: int) -> int:
    """The exit code of a run in a process of its own, which gets a signal before so many files have their names."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    code = 99
    try:
        left = iter(range(count))

        def counted(real):
            def step(*what):
                if next(left, None) is None:
                    os.kill(os.getpid(), signum)
                return real(*what)

            return step

        os.replace, os.link = counted(os.replace), counted(os.link)
        code = main(["run", str(job), "--quiet"])
    finally:
        os._exit(code)


@pytest.mark.skipif(sys.platform == "win32", reason="processes are forked and killed")
@pytest.mark.parametrize("signum", [signal.SIGKILL, slow(signal.SIGTERM)])
def test_a_job_that_is_stopped_at_any_step_is_completed_by_the_next_run(
    job, run, signum
):
    codes = [stopped(job, count, signum) for count in range(4)]
    assert set(codes) <= {0, -signum, 128 + signum}
    # Only a signal that nobody can handle ends a job at once.
    assert codes[0] == (-signum if signum == signal.SIGKILL else 128 + signum)
    assert run("run", job).code == 0
    before = contents(job.parent)
    assert run("run", job).code == 0
    assert contents(job.parent) == before
    ledger = Ledger(job.parent / "ledger.db")
    with ledger.reading() as db:
        assert {entry.state for entry in ledger.releases(db)} == {"done"}


def test_a_signal_in_a_release_does_not_deny_the_files_before(job, run, monkeypatch):
    """The second release said that nothing was written, beside the channel and the first file."""
    release = commands._released

    def stopped_in_the_second(*given):
        if (job.parent / "out.csv").exists():
            signal.raise_signal(signal.SIGTERM)
        return release(*given)

    monkeypatch.setattr(commands, "_released", stopped_in_the_second)
    result = run("run", job)
    assert result.code == 128 + signal.SIGTERM
    assert result.err.rstrip().endswith(
        "stopped by SIGTERM; what is done stays done: run the job again"
    )


def test_every_option_of_the_commands_is_a_key():
    schema = job_model().model_json_schema(by_alias=True)["$defs"]
    for name, function, without in (
        ("Design", r.design, {"output", "report", "public-report", "curve"}),
        ("Apply", r.apply, {"dry-run", "fresh-draw", "insecure-seed"}),
        ("Report", r.report, set()),
    ):
        groups = [
            hint for hint in get_type_hints(function).values() if is_dataclass(hint)
        ]
        names = {
            (names[0].removeprefix("--") if names else said.metavar.lower())
            for group in groups
            if group is not r.options.CommonOptions
            for _, said, names in declared(group)
        }
        assert set(schema[name]["properties"]) == names - without | {"force"}


def test_the_mark_of_windows_editor_is_no_part_of_a_job(job, run):
    job.write_bytes(b"\xef\xbb\xbf" + job.read_bytes())
    assert run("run", job, "--dry-run").code == 0


def test_lines_are_found_whatever_the_toml_looks_like():
    text = 'a = """\n[b]\n"""\n\n# b.c = 1\nb.c = 1\n"b"."d e" = {f = 2,\n  g = [\n 3 ]}\n[[l]]\n[[l]]\nx = 1\n'
    assert tomllib.loads(text.replace("{f = 2,\n  g", "{f = 2, g"))
    text = text.replace("{f = 2,\n  g", "{f = 2, g")
    places = {
        ("a",): 1,
        ("b", "c"): 6,
        ("b", "d e", "g"): 7,
        ("l", 0): 9,
        ("l", 1): 10,
        ("l", 1, "x"): 11,
    }
    assert {place: line_of(text, place) for place in places} == places
    assert line_of(text, ("l", 1, "y")) == 10
    assert line_of(text, ("nothing",)) == 1


DAILY = """\
channel = "channel.json"
ledger = "ledger.db"
key-from = "{where}"

[[apply]]
in = "in/{{date}}.csv"
out = "out-{{date}}.csv"
identity = "id"
keep = "town"
strict = true

[[apply]]
in = "in/{{date}}.csv"
out = "more-{{date}}.csv"
identity = "id"
"""


@pytest.fixture
def daily(job, folder, run, monkeypatch):
    """A job of two releases with a date in their paths."""
    assert run("run", job).code == 0
    monkeypatch.setenv("THE_KEY", hashlib.sha256(b"key").hexdigest())
    place = folder / "nightly" / "daily"
    (place / "in").mkdir(parents=True)
    (folder / "nightly" / "channel.json").rename(place / "channel.json")
    (place / "in" / "2026-11-23.csv").write_text(DATA)
    file = place / "daily.toml"
    file.write_text(DAILY.format(where="env:THE_KEY"))
    return file


def test_a_date_in_paths_comes_from_the_command_line(daily, run):
    result = run("run", str(daily), "--set", "date=2026-11-23")
    assert result.code == 0, result.err
    assert (daily.parent / "out-2026-11-23.csv").exists()
    assert (daily.parent / "more-2026-11-23.csv").exists()
    assert not (daily.parent / "ledger.db.key").exists()
    for settings, message in (
        ((), r"has {date} in a path and no value for it"),
        (("--set", "date=1", "--set", "day=2"), "no path of the job has {day}"),
        (("--set", "date"), "must be NAME=VALUE"),
        (("--set", "date=1", "--set", "date=2"), "gives 'date' twice"),
    ):
        refused = run("run", str(daily), *settings)
        assert refused.code == 2
        assert message in refused.err


def test_the_key_of_a_job_is_read_once(daily, run):
    """A pipe gives its key to the first reader alone."""
    reading, writing = os.pipe()
    os.write(writing, hashlib.sha256(b"key").hexdigest().encode())
    os.close(writing)
    daily.write_text(DAILY.format(where=f"fd:{reading}"))
    result = run("run", str(daily), "--set", "date=2026-11-23")
    os.close(reading)
    assert result.code == 0, result.err


def test_a_column_that_appears_overnight_is_an_error_under_strict(daily, run):
    text = (
        DATA.replace("town", "town,remark").replace("N", "N,x").replace("S\n", "S,x\n")
    )
    (daily.parent / "in" / "2026-11-23.csv").write_text(text)
    for keep in ("town", "all"):
        daily.write_text(
            DAILY.format(where="env:THE_KEY").replace('"town"', f'"{keep}"')
        )
        refused = run("run", str(daily), "--set", "date=2026-11-23")
        assert refused.code == 2
        assert "--strict wants every column of the input named" in refused.err
    daily.write_text(
        DAILY.format(where="env:THE_KEY").replace("strict", 'drop = "remark"\nstrict')
    )
    assert run("run", str(daily), "--set", "date=2026-11-23").code == 0


def test_a_job_makes_no_folder_that_a_kill_would_leave(job, run, monkeypatch):
    def none(*arguments, **more):
        raise AssertionError("a job that writes needs no scratch folder")

    monkeypatch.setattr(r, "TemporaryDirectory", none)
    assert run("run", job).code == 0


def test_an_error_of_a_step_names_what_was_written_before(job, run):
    (job.parent / "days" / "dt=2" / "b.csv").write_text("id,job\n30,clark\n")
    result = run("run", job)
    assert result.code == 2
    assert result.err.rstrip().endswith(
        "; written before: channel.json, out.csv; what is done stays done: run the job again"
    )


def test_a_channel_that_another_run_wrote_meanwhile_is_used_by_the_next_run(
    job, run, monkeypatch
):
    design = r.design

    def twice(*arguments, **groups):
        design(*arguments, **groups)
        return design(*arguments, **groups)

    with monkeypatch.context() as patch:
        patch.setattr(r, "design", twice)
        result = run("run", job)
    assert result.code == 75
    assert (
        "channel.json was written while this run designed it, by another run or program: run the "
        "job again, which verifies it and goes on"
    ) in result.err
    assert run("run", job).code == 0


def test_what_a_design_refuses_is_no_channel_of_another_run(job, refused):
    job.write_text(JOB.replace("epsilon = 1.0", "epsilon = -1"))
    assert "epsilon" in refused("run", job)
