"""The command line at a real (pseudo) terminal: the bar, its silence elsewhere, Ctrl-C."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from tests.profiles import slow
from tests.ready_client import Command

pty = pytest.importorskip("pty", reason="the platform has no pseudo terminals")

ROOT = Path(__file__).parents[3]

IMPATIENT = """
import signal, sys
import mechdesign.cli.console as work
from mechdesign.cli import main
signal.signal(signal.SIGINT, signal.default_int_handler)
work.PATIENCE, work.INTERVAL = 0.02, 0.1
sys.exit(main(sys.argv[1:]))
"""

HIDDEN, SHOWN = "\x1b[?25l", "\x1b[?25h"
"""What a terminal is told to do with its cursor."""


class Session:
    """`mechdesign` with standard error on a pseudo terminal and standard output in a pipe."""

    def __init__(self, ready, folder, *arguments):
        self.ours, theirs = pty.openpty()
        environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "TERM": "xterm-256color",
            "COLUMNS": "150",
        }
        environment.pop("NO_COLOR", None)
        self._output, output = os.pipe()
        with open(os.devnull) as nothing:
            self.command = Command(
                ready.address,
                IMPATIENT,
                arguments,
                folder=str(folder),
                environment=environment,
                files=(nothing.fileno(), output, theirs),
            )
        os.close(theirs)
        os.close(output)
        self.seen = ""
        self.out = b""
        self._drain = threading.Thread(target=self._read_output)
        self._drain.start()

    def _read_output(self):
        with open(self._output, "rb") as output:
            self.out = output.read()

    def read_until(self, pattern, seconds=60.0):
        """Wait for `pattern` on the terminal; None reads to the end."""
        deadline = time.monotonic() + seconds
        while pattern is None or not re.search(pattern, self.seen):
            assert time.monotonic() < deadline, f"no {pattern!r} in {self.seen!r}"
            if not select.select([self.ours], [], [], 0.1)[0]:
                continue
            try:
                new = os.read(self.ours, 65536)
            except OSError:  # Linux says so when the other side is closed
                new = b""
            if not new:
                break
            self.seen += new.decode("utf-8", "replace")
        return self.seen

    def end(self):
        """Exit code, after everything was read."""
        self.read_until(None)
        code = self.command.wait()
        self._drain.join()
        os.close(self.ours)
        return code


def write_counts(path, secrets, symbols):
    # Few different counts: what holds for the population takes a while for each of them.
    counts = 50 * np.random.default_rng(5).integers(1, 20, (secrets, symbols))
    lines = [",".join(["s", *(f"x{k}" for k in range(symbols))])]
    lines += [",".join([f"s{k}", *map(str, row)]) for k, row in enumerate(counts)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.fixture
def large(folder):
    """A count table whose optimum takes far longer than any test."""
    write_counts(folder / "large.csv", 15, 200)
    return folder


@pytest.fixture
def small(folder):
    """A count table of which a comparison has its first row soon."""
    write_counts(folder / "small.csv", 8, 40)
    return folder


LARGE = ("large.csv", "--contingency", "--epsilon", "1")


def plain(text):
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)


def test_design_shows_utility_bound_gap_and_time_left(ready, large):
    session = Session(ready, large, "design", *LARGE, "--time-limit", "1", "--json")
    session.read_until(r"utility 0\.\d+, at most \d\.\d+, gap")
    assert session.end() == 0
    shown = plain(session.seen)
    state = r"utility 0\.\d+, at most \d\.\d+, gap \S+ \(\d+ columns, \d+ nodes\)"
    assert re.search(r"searching at most 0:0\d left, " + state, shown)
    assert session.seen.rindex(SHOWN) > session.seen.rindex(HIDDEN)
    assert json.loads(session.out)["verified"] is True
    assert session.out.count(b"\n") == 1
    assert "mechdesign: note: the search ended early (time limit reached" in shown


def test_compare_shows_rows_rate_and_time_left(ready, small):
    options = (
        "--contingency",
        "--epsilons",
        "0.5:1:0.1",
        "--mechanisms",
        "optimal",
        "--time-limit",
        "0.2",
    )
    session = Session(ready, small, "compare", "small.csv", *options, "--json")
    session.read_until(r"[1-9]\d* of 6 rows, [\d.]+ rows/s, \d+:\d\d left")
    assert session.end() == 0
    assert "comparing" in plain(session.seen)
    assert len(json.loads(session.out)["rows"]) == 6


@pytest.mark.parametrize(
    ("rows", "whole_group"),
    [("0", True), ("[1-9]", False), slow("0", False), slow("[1-9]", True)],
)
def test_ctrl_c_at_the_bar_leaves_a_terminal_in_order(ready, small, whole_group, rows):
    """A terminal sends it to every process of the command, `kill -INT` to the first alone."""
    options = (
        "--contingency",
        "--epsilons",
        "0.5:4:0.01",
        "--mechanisms",
        "optimal",
        "--time-limit",
        "0.1",
    )
    session = Session(
        ready,
        small,
        "compare",
        "small.csv",
        *options,
        "--workers",
        "2",
        "--output",
        "rows.csv",
    )
    session.read_until(rf"{rows}\d* of 351 rows")
    if whole_group:
        os.killpg(session.command.pid, signal.SIGINT)
    else:
        os.kill(session.command.pid, signal.SIGINT)
    assert session.end() == 130
    assert session.seen.rindex(SHOWN) > session.seen.rindex(HIDDEN)
    last = plain(session.seen).rstrip().splitlines()[-1]
    assert last.startswith("mechdesign: error: interrupted; ")
    assert (small / "rows.csv").exists() == ("run again to go on" in last)
    assert session.out == b""
    assert "Traceback" not in session.seen


@pytest.mark.parametrize("option", ["--quiet", "--log-json"])
def test_no_bar_when_asked_for_none(ready, large, option):
    session = Session(ready, large, "design", *LARGE, "--time-limit", "0.3", option)
    assert session.end() == 0
    assert "\x1b" not in session.seen
    lines = session.seen.splitlines()
    if option == "--quiet":
        assert lines == []
    else:
        records = [json.loads(line) for line in lines]
        assert {"progress", "notice", "designed"} == {
            record["event"] for record in records
        }


def test_without_a_terminal_there_is_no_bar(large, ready):
    environment = {**os.environ, "FORCE_COLOR": "1"}
    command = ["design", *LARGE, "--time-limit", "0.1"]
    done = ready.run(IMPATIENT, *command, folder=large, environment=environment)
    assert done.returncode == 0
    assert done.stderr.startswith(
        "mechdesign: note: the search ended early (time limit reached"
    )
    assert done.stderr.count("\n") == 1
    assert "\x1b" not in done.stderr


def test_a_closed_standard_error_takes_no_other_place(large):
    """Where descriptor 2 is closed, messages must not land on standard output, nor end the work."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = (
        f'exec "$0" -m mechdesign design {" ".join(LARGE)} --time-limit 0.1 --json 2>&-'
    )
    done = subprocess.run(
        ["sh", "-c", command, sys.executable],
        cwd=large,
        env=environment,
        stdout=subprocess.PIPE,
        check=True,
    )
    assert json.loads(done.stdout)["verified"] is True


def test_a_reader_of_the_results_that_goes_away_is_no_verdict(ready, channel):
    command = [*ready.program, "show", str(channel)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 141
