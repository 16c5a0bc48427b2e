"""The frame around the commands: help, version, errors, exit codes, signs of life."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from mechdesign.core.errors import InputError, NotPrivate, SolverFailure
from tests.profiles import slow

ROOT = Path(__file__).parents[3]
COMMANDS = [
    *(
        "assess",
        "design",
        "audit",
        "compose",
        "judge",
        "export",
        "inspect",
        "apply",
        "check",
        "estimate",
        "compare",
        "releases",
    ),
    *("show", "report", "quantize", "app", "run", "nonstochastic"),
]
MICRO = ("--sensitive", "group", "--useful", "job", "--epsilon", "1")


@pytest.mark.parametrize("command", [*COMMANDS[:-1], "nonstochastic measure"])
def test_every_help_has_an_example_that_names_the_command(run, command):
    result = run(*command.split(), "--help")
    assert result.code == 0
    assert f"mechdesign {command}" in " ".join(
        result.out.partition("Example:")[2].split()
    )
    assert result.err == ""


def test_the_main_help_lists_every_command_and_no_other(run):
    listed = re.findall(r"^│ ([a-z]+) ", run("--help").out, re.MULTILINE)
    assert sorted(listed) == sorted(COMMANDS)


def test_version(run):
    import mechdesign

    assert run("--version").out == f"mechdesign {mechdesign.__version__}\n"


def raising(error):
    def run(*_, **__):
        raise error

    return run


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (NotPrivate("no private channel exists"), 1, "no private channel exists"),
        (
            SolverFailure("the time was too short; try --time-limit 60"),
            3,
            "--time-limit 60",
        ),
        (SolverFailure("two\nlines\x1b[31m"), 3, "two lines"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (MemoryError(), 3, "--method columns"),
        (
            PermissionError(13, "Permission denied", "c.json"),
            2,
            "'c.json': Permission denied",
        ),
        (OSError("disk trouble"), 2, "disk trouble"),
        (ZeroDivisionError("division by zero"), 3, "internal error (ZeroDivisionError"),
    ],
)
def test_errors_become_one_line_and_an_exit_code(
    folder, run, monkeypatch, error, code, words
):
    monkeypatch.setattr(
        "mechdesign.mechanisms.designing.design_requested", raising(error)
    )
    result = run("design", "records.csv", *MICRO, "--output", "c.json")
    assert result.code == code
    assert result.out == ""
    assert len(result.err.splitlines()) == 1
    assert words in result.err
    assert "\x1b" not in result.err
    assert not (folder / "c.json").exists()


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InputError("x"), 2),
        (SolverFailure("x"), 3),
        (ZeroDivisionError("x"), 3),
        (OSError("x"), 2),
    ],
)
def test_debug_shows_the_traceback_and_keeps_the_exit_code(
    folder, run, monkeypatch, error, code
):
    monkeypatch.setattr(
        "mechdesign.mechanisms.designing.design_requested", raising(error)
    )
    result = run("design", "records.csv", *MICRO, "--debug")
    assert result.code == code
    assert result.err.startswith("Traceback")
    assert result.err.splitlines()[-1].startswith("mechdesign: error: ")


def test_a_fallback_is_said_on_standard_error(folder, run, monkeypatch):
    import dataclasses

    from mechdesign.mechanisms.heuristics import heuristic

    def fallback(request):
        design = heuristic(request.joint, request.notion, "subset-merging")
        return dataclasses.replace(
            design,
            fallback_from="optimal",
            messages=("the time limit ended the search",),
        )

    monkeypatch.setattr("mechdesign.mechanisms.designing.design_requested", fallback)
    result = run("design", "records.csv", *MICRO, "--json")
    assert result.code == 0
    assert result.record["fallback_from"] == "optimal"
    assert result.err == "mechdesign: note: the time limit ended the search\n"


def test_options_reach_the_design(folder, run, monkeypatch):
    requests = []

    def spy(request):
        requests.append(request)
        raise SolverFailure("seen")

    monkeypatch.setattr("mechdesign.mechanisms.designing.design_requested", spy)
    run("design", "records.csv", *MICRO, "--mechanism", "subset-merging", "--method", "columns", "--gap", "0",
        "--time-limit", "2.5", "--no-fallback")  # fmt: skip
    (request,) = requests
    assert (request.mechanism, request.method) == ("subset-merging", "columns")
    assert (request.gap, request.time_limit, request.fallback) == (0.0, 2.5, False)


def test_python_m_and_a_closed_pipe():
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "mechdesign", "design", "--help"]
    assert (
        subprocess.run(
            command, env=environment, capture_output=True, check=False
        ).returncode
        == 0
    )
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        process.stdout.close()
        assert b"Traceback" not in process.stderr.read()


@pytest.mark.parametrize("verb", ["inspect", "check", "estimate"])
def test_a_channel_alone_is_sent_to_show(folder, run, verb):
    result = run(verb, "channel.json")
    assert result.code == 2
    assert (
        f"mechdesign {verb} FILE --channel CHANNEL; for a channel alone" in result.err
    )


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is full")
@pytest.mark.parametrize(
    "arguments",
    [
        (),
        slow(("--version",)),
        ("design", "--help"),
        slow(("records.csv",)),
        ("design", "records.csv", *MICRO, "--output", "c.json"),
        slow(("assess", "records.csv", "--sensitive", "group", "--json")),
    ],
)
def test_a_full_standard_output_is_named(folder, arguments):
    kept = "; c.json is written and can be used" if "c.json" in arguments else ""
    assert last_words(folder, arguments) == FULL + kept


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is full")
def test_a_release_is_whole_although_nobody_reads_of_it(folder, run):
    assert run("design", "records.csv", *MICRO, "--output", "c.json").code == 0
    apply = ("apply", "c.json", "records.csv", "out.csv", "--insecure-seed", "1")
    said = last_words(folder, apply)
    assert said == f"{FULL}; the release itself is written whole"
    assert (folder / "out.csv").read_text().startswith("job\n")


FULL = "mechdesign: error: standard output cannot be written: no space left on device"


def last_words(folder, arguments):
    """The last line of standard error, where standard output has no room."""
    with open("/dev/full", "w", encoding="utf-8") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "mechdesign", *arguments],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            cwd=folder,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert ended.returncode == 2
    return ended.stderr.splitlines()[-1]


def test_a_name_that_the_locale_cannot_hold_has_a_remedy(folder):
    (folder / "t.csv").write_text("größe,x\na,b\n", encoding="utf-8")
    words = ["design", "t.csv", "--sensitive", "größe", "--useful", "y"]
    hints = {}
    for utf8_mode in ("0", "1"):
        environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "LC_ALL": "C",
            "PYTHONUTF8": utf8_mode,
            "PYTHONCOERCECLOCALE": "0",
        }
        ended = subprocess.run(
            [sys.executable, "-m", "mechdesign", *words, "--epsilon", "1"],
            env=environment,
            capture_output=True,
            check=False,
        )
        assert ended.returncode == 2
        text = ended.stderr.decode("utf-8")
        assert "there is no column" in text
        hints[utf8_mode] = "set PYTHONUTF8=1" in text
    assert hints == {"0": True, "1": False}


def test_unicode_is_printed_in_any_locale(folder):
    (folder / "t.csv").write_text("g,x\na,é\nb,日本\na,日本\n", encoding="utf-8")
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "LC_ALL": "C",
        "PYTHONUTF8": "0",
        "PYTHONCOERCECLOCALE": "0",
    }
    command = [
        "-m",
        "mechdesign",
        "design",
        "t.csv",
        "--sensitive",
        "g",
        "--useful",
        "x",
        "--epsilon",
        "600",
    ]
    subprocess.run(
        [sys.executable, *command, "-o", "c.json"],
        env=environment,
        capture_output=True,
        check=True,
    )
    shown = subprocess.run(
        [sys.executable, "-m", "mechdesign", "show", "c.json"],
        env=environment,
        capture_output=True,
        check=True,
    )
    assert "日本" in shown.stdout.decode("utf-8")


def test_labels_cannot_move_the_cursor_of_a_terminal(folder, run):
    (folder / "t.csv").write_text("g,x\na,\x1b[2J\nb,y\na,y\n", encoding="utf-8")
    assert (
        run(
            "design",
            "t.csv",
            "--sensitive",
            "g",
            "--useful",
            "x",
            "--epsilon",
            "600",
            "-o",
            "c.json",
        ).code
        == 0
    )
    assert "\x1b" not in run("show", "c.json").out
    (folder / "in.csv").write_text("x\n\x1b[31mred\n", encoding="utf-8")
    assert "\x1b" not in run("apply", "c.json", "in.csv", "out.csv").err
