"""`--log-json` and `--quiet`: what every command says on standard error, for logs and for nobody."""

from __future__ import annotations

import base64
import json
import logging
import os
import re
import signal
import subprocess
import sys
import time
import warnings
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from mechdesign.cli import main
from mechdesign.core.errors import InputError, NotPrivate, SolverFailure
from mechdesign.jobs.ledger import Ledger

ROOT = Path(__file__).parents[3]
MICRO = ("--sensitive", "group", "--useful", "job")
DESIGN = ("design", "records.csv", *MICRO, "--epsilon", "1")


def log_of(err):
    """Standard error as the lines of JSON that all of it must be."""
    records = [json.loads(line) for line in err.splitlines()]
    for record in records:
        assert list(record)[:4] == ["time", "level", "event", "message"]
        assert record["time"].endswith("Z")
        age = datetime.now(UTC) - datetime.fromisoformat(record["time"])
        assert timedelta(seconds=-1) < age < timedelta(minutes=2)
        assert record["level"] in ("info", "warning", "error")
        assert record["message"]
        assert "\n" not in record["message"]
    return records


@pytest.fixture
def commands(channel, run):
    """A command line of each kind that succeeds, and the event that ends its log."""
    path = str(channel)
    options = ("--insecure-seed", "1", "--keep-sensitive")
    assert run("apply", path, "records.csv", "released.csv", *options).code == 0
    Path("numbers.csv").write_text("who,kwh\na,1.5\nb,9.75\na,0.1\n", encoding="utf-8")
    Path("ranges.csv").write_text("x,y\n1,a\n2,a\n3,b\n", encoding="utf-8")
    return {
        "design": ((*DESIGN, "--output", "other.json"), "designed"),
        "audit": (("audit", path), "audited"),
        "apply": (
            (
                "apply",
                path,
                "records.csv",
                "out.csv",
                "--insecure-seed",
                "1",
                "--keep-sensitive",
            ),
            "applied",
        ),
        "check": (
            ("check", "released.csv", "--channel", path, "--keep-sensitive"),
            "checked",
        ),
        "estimate": (("estimate", "released.csv", "--channel", path), "estimated"),
        "report": (("report", path, "--report", "r.md", "--force"), "reported"),
        "compare": (
            ("compare", "records.csv", *MICRO, "--epsilons", "1:2:1"),
            "compared",
        ),
        "measure": (("measure", path), "measured"),
        "show": (("show", path), "shown"),
        "quantize": (
            (
                "quantize",
                "numbers.csv",
                "q.csv",
                "--column",
                "kwh",
                "--epsilon",
                "1",
                "--range",
                "0,10",
            ),
            "quantised",
        ),
        "nonstochastic measure": (
            ("nonstochastic", "measure", "ranges.csv", "--x", "x", "--y", "y"),
            "measured",
        ),
    }


NAMES = [
    "design",
    "audit",
    "apply",
    "check",
    "estimate",
    "report",
    "compare",
    "measure",
    "show",
    "quantize",
    "nonstochastic measure",
]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("before", [False, True])
def test_every_command_logs_its_end_and_prints_its_result(commands, run, name, before):
    arguments, event = commands[name]
    result = run(
        *((("--log-json", *arguments)) if before else (*arguments, "--log-json")),
        "--json",
    )
    assert result.code == 0
    assert result.record
    last = log_of(result.err)[-1]
    assert (last["level"], last["event"]) == ("info", event)
    assert last["seconds"] >= 0.0


@pytest.mark.parametrize("name", NAMES)
def test_the_result_is_the_same_whatever_is_said_beside_it(commands, run, name):
    arguments, _ = commands[name]
    outputs = []
    for option in ((), ("--quiet",), ("--log-json",), ("--quiet", "--log-json")):
        for made in (
            "other.json",
            "q.csv",
            "q.csv.mechanism.json",
            "out.csv",
            "out.csv.manifest.json",
        ):
            Path(made).unlink(missing_ok=True)
        result = run(*arguments, *option)
        assert result.code == 0
        assert result.err == "" or "--quiet" not in option
        outputs.append(re.sub(r"\d[\d.e-]* (s|ms|seconds)\b", "", result.out))
    assert outputs[0]
    assert outputs.count(outputs[0]) == 4


@pytest.mark.parametrize("name", NAMES)
def test_the_program_offers_both_once_and_every_command_takes_them(run, name):
    text = run("--help").out
    assert "--quiet" in text
    assert "--log-json" in text
    assert "--quiet" not in run(*name.split(), "--help").out
    # An unknown option would be refused before the help is printed.
    assert run(*name.split(), "--quiet", "--log-json", "--help").code == 0


def test_notices_are_events(folder, run):
    (folder / "zero.csv").write_text("g,x,y,z\na,4,0,0\nb,1,5,0\n", encoding="utf-8")
    arguments = ("design", "zero.csv", "--contingency", "--epsilon", "1")
    said = run(*arguments).err
    assert said.count("mechdesign: note: ") == said.count("\n") >= 1
    *notices, last = log_of(run(*arguments, "--log-json").err)
    assert [
        f"mechdesign: note: {notice['message']}" for notice in notices
    ] == said.splitlines()
    assert {(notice["level"], notice["event"]) for notice in notices} == {
        ("info", "notice")
    }
    assert last["event"] == "designed"
    assert run(*arguments, "--quiet").err == ""


def test_notices_of_a_given_table_are_said_by_audit_and_measure(folder, run, channel):
    (folder / "more.csv").write_text(
        "group,clerk,baker,smith,weaver\na,3,1,1,1\nb,1,1,3,1\nc,0,0,0,0\n",
        encoding="utf-8",
    )
    for command in ("audit", "measure"):
        result = run(
            command, channel, "--table", "more.csv", "--contingency", "--useful", "job"
        )
        assert result.code == 0, result.err
        assert result.err.startswith("mechdesign: note: ")
        assert "'c'" in result.err or " c" in result.err


@pytest.mark.parametrize(
    ("arguments", "code", "event", "words"),
    [
        (("desing",), 2, "usage_error", "desing"),
        (("--frobnicate",), 2, "usage_error", "--frobnicate"),
        (("design",), 2, "usage_error", "TABLE"),
        (("design", "records.csv", "--sneed", "x"), 2, "usage_error", "--sneed"),
        (("design", "records.csv", "--output"), 2, "usage_error", "--output"),
        (("nonstochastic", "measure", "a", "b"), 2, "usage_error", "b"),
        (
            ("design", "missing.csv", *MICRO, "--epsilon", "1"),
            2,
            "input_error",
            "missing.csv",
        ),
        ((*DESIGN, "--gap", "x"), 2, "input_error", "--gap"),
        (("audit",), 2, "input_error", "CHANNEL"),
        (
            ("compare", "records.csv", *MICRO, "--epsilons", "x"),
            2,
            "input_error",
            "--epsilons",
        ),
        (("measure", "records.csv"), 2, "input_error", "records.csv"),
        (("show", "missing.json"), 2, "input_error", "missing.json"),
        (("quantize", "records.csv", "o.csv"), 2, "input_error", "--column"),
        (("nonstochastic", "measure", "records.csv"), 2, "input_error", "--x"),
    ],
)
@pytest.mark.parametrize("quiet", [False, True])
def test_errors_are_one_event_and_the_same_words(
    folder, run, arguments, code, event, words, quiet
):
    options = ["--quiet"] if quiet else []
    plain = run(*options, *arguments)
    logged = run("--log-json", *options, *arguments)
    assert (plain.code, logged.code) == (code, code)
    assert logged.out == ""
    (record,) = log_of(logged.err)
    assert (record["level"], record["event"], record["exit_code"]) == (
        "error",
        event,
        code,
    )
    assert words in record["message"]
    assert plain.err.splitlines()[0] == f"mechdesign: error: {record['message']}"
    assert plain.err.splitlines()[1:] == (
        [record["hint"]] if event == "usage_error" else []
    )


@pytest.mark.parametrize(
    ("error", "code", "event"),
    [
        (InputError("the file is bad"), 2, "input_error"),
        (NotPrivate("no private channel exists"), 1, "not_private"),
        (SolverFailure("two\nlines\x1b[31m"), 3, "solver_failure"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (PermissionError(13, "Permission denied", "c.json"), 2, "file_error"),
        (MemoryError(), 3, "out_of_memory"),
        (ZeroDivisionError("division by zero"), 3, "internal_error"),
    ],
)
@pytest.mark.parametrize("debug", [False, True])
def test_every_kind_of_failure_has_an_event(
    folder, run, monkeypatch, error, code, event, debug
):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr("mechdesign.mechanisms.designing.design_requested", fail)
    result = run(*DESIGN, "--log-json", *(["--debug"] if debug else []))
    assert (result.code, result.out) == (code, "")
    (record,) = log_of(result.err)
    assert (record["event"], record["exit_code"]) == (event, code)
    assert "\x1b" not in record["message"]
    assert ("traceback" in record) == (debug and event != "interrupted")
    if "traceback" in record:
        assert type(error).__name__ in record["traceback"]


def test_a_no_of_the_audit_is_no_error(channel, run):
    result = run(
        "audit", channel, "--notion", "alip", "--epsilon", "1e-9", "--log-json"
    )
    assert result.code == 1
    (record,) = log_of(result.err)
    assert (record["event"], record["satisfied"]) == ("audited", False)


def test_what_libraries_say_is_an_event_too(folder, run, monkeypatch):
    def talkative(*_, **__):
        warnings.warn("old\nstyle", UserWarning, stacklevel=1)
        logging.getLogger("library").warning("font %s not found", "X")
        logging.getLogger("library").info("nobody asked")
        raise SolverFailure("seen")

    monkeypatch.setattr("mechdesign.mechanisms.designing.design_requested", talkative)
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        logged, plain, quiet = (
            run(*DESIGN, *option) for option in (["--log-json"], [], ["--quiet"])
        )
    first, second, _ = log_of(logged.err)
    assert (first["level"], first["event"]) == ("warning", "library_warning")
    assert first["message"] == "UserWarning: old style"
    assert second["message"] == "library: font X not found"
    assert plain.err.splitlines() == [
        "mechdesign: warning: UserWarning: old style",
        "mechdesign: warning: library: font X not found",
        "mechdesign: error: seen",
    ]
    assert quiet.err == "mechdesign: error: seen\n"


def test_the_command_line_leaves_warnings_and_logs_as_it_found_them(folder):
    before = warnings.showwarning, list(logging.getLogger().handlers)
    assert main(["show", "missing.json", "--quiet"]) == 2
    assert (warnings.showwarning, list(logging.getLogger().handlers)) == before


@pytest.mark.parametrize("name", NAMES)
def test_no_cell_is_in_a_log_of_success(commands, run, name):
    arguments, _ = commands[name]
    # 9.75 may be a moment, too.
    err = re.sub(r'"(time|seconds)": [^,}]+', "", run(*arguments, "--log-json").err)
    assert not any(
        cell in err for cell in ("clerk", "baker", "smith", "weaver", "9.75")
    )


def test_no_key_is_in_any_message(channel, run):
    """The secret of a job is in its key file and nowhere else, neither as bytes nor as any text of them."""
    results = [
        run(
            "apply",
            channel,
            "records.csv",
            "out.csv",
            "--keep-sensitive",
            "--force",
            *options,
        )
        for options in (("--log-json",), ("--log-json", "--json"), ())
    ]
    key = Ledger().key_path.read_bytes()
    texts = {
        key.decode("ascii", "ignore").strip(),
        key.hex(),
        base64.b64encode(key).decode(),
    }
    for result in results:
        assert result.code == 0
        assert not any(
            text in said for text in texts if text for said in (result.out, result.err)
        )


def test_options_after_the_double_dash_are_no_options(folder, run):
    result = run("show", "--", "--log-json")
    assert result.code == 2
    assert result.err.startswith("mechdesign: error: ")


def test_symbols_from_all_over_the_world_and_hostile_ones_keep_their_line(folder, run):
    name = "日\u2028本\u0085.csv"
    result = run("design", name, *MICRO, "--epsilon", "1", "--log-json")
    (record,) = log_of(result.err)
    assert "日" in record["message"]
    assert result.err.isascii()


IMPATIENT = """
import signal, sys
import mechdesign.cli.console as work
from mechdesign.cli import main
signal.signal(signal.SIGINT, signal.default_int_handler)
work.PATIENCE, work.INTERVAL = 0.0, 0.02
sys.exit(main(sys.argv[1:]))
"""


def test_a_real_ctrl_c_in_a_log(folder):
    """Progress lines, and one line for the end; the rows so far are kept."""
    columns = [f"x{k}" for k in range(60)]
    lines = [",".join(["s", *columns])]
    lines += [
        ",".join(
            [f"s{s}", *(str(1 + (7 * s + 11 * x * (s + 1)) % 97) for x in range(60))]
        )
        for s in range(6)
    ]
    (folder / "wide.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    command = [
        "compare",
        "wide.csv",
        "--contingency",
        "--epsilons",
        "0.2:6:0.001",
        "--output",
        "rows.csv",
    ]
    with subprocess.Popen(
        [
            sys.executable,
            "-c",
            IMPATIENT,
            *command,
            "--mechanisms",
            "subset-merging",
            "--log-json",
        ],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        seen = []
        deadline = time.monotonic() + 60.0
        while not seen or '"rate": null' in seen[-1]:
            assert time.monotonic() < deadline
            seen.append(process.stderr.readline())
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out == ""
    records = log_of("".join(seen) + err)
    *progress, last = records
    assert {record["event"] for record in progress} == {"progress"}
    counted = [record for record in progress if record["rate"] is not None]
    assert counted[0]["unit"] == "rows"
    assert counted[0]["total"] == 5801
    assert 0 < counted[0]["done"] < 5801
    assert counted[0]["seconds_left"] == pytest.approx(
        (5801 - counted[0]["done"]) / counted[0]["rate"], rel=0.01, abs=0.1
    )
    assert (last["event"], last["exit_code"]) == ("interrupted", 130)
    assert "run again to go on" in last["message"]
    assert (folder / "rows.csv").exists()


@pytest.mark.parametrize("identity", [(), ("--identity", "id")])
@pytest.mark.parametrize("log", [(), ("--log-json",), ("--json",)])
def test_no_cell_is_in_a_log(channel, folder, run, identity, log):
    """An unknown symbol is somebody's cell, and errors end in logs and in the mail of cron."""
    text = (folder / "records.csv").read_text(encoding="utf-8")
    secret = text.replace("9,b,weaver", "person77,b,hiv positive")
    (folder / "in.csv").write_text(secret, encoding="utf-8")
    result = run("apply", channel, "in.csv", "out.csv", *identity, *log)
    assert result.code == 2
    assert (
        "in.csv, line 10: the channel does not know the symbol of 'job'" in result.err
    )
    for cell in ("hiv", "positive", "person77"):
        assert cell not in result.err + result.out
