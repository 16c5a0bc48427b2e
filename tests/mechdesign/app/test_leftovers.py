"""The program as a user runs it leaves no cell behind: not on its outputs, not in a file."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.mechdesign.app.test_server import act, get, post, wait

MARK = "zebra"
"""The beginning of every cell, which no program text has."""

SEARCHES = (
    ("assess", {}),
    ("plan", {}),
    ("bins", {"bins-2": "10"}),
    ("design", {}),
    ("design", {"role-2": "release", "bins-2": "10", "objective": "truth"}),
    ("design", {"level": "0.9", "merge_rare": "30", "factor": "5"}),
    ("design", {"role-2": "leave out", "objective": "truth"}),
    (
        "release",
        {"role-2": "leave out", "objective": "truth", "order": "shuffled"},
    ),
    ("judge", {}),
)


def write_table(path):
    rng = random.Random(4)
    lines = ["illness,job,age"]
    for _ in range(600):
        secret = rng.choice(("ill", "well"))
        job = rng.choice(("clerk", "cook", "nurse"))
        lines.append(f"{MARK}-{secret},{MARK}-{job},{rng.randrange(18, 80)}")
    path.write_text("\n".join(lines) + "\n")
    return path


def files_with_cells(folder):
    found = []
    for path in Path(folder).rglob("*"):
        if path.is_file() and MARK.encode() in path.read_bytes():
            found.append(str(path))
    return found


@pytest.mark.slow
def test_no_cell_is_left_on_an_output_or_in_a_file(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    content = write_table(tmp_path / "people.csv").read_bytes()
    (tmp_path / "people.csv").unlink()
    environment = {
        **os.environ,
        "HOME": str(home),
        "TMPDIR": str(home),
        "XDG_CACHE_HOME": str(home),
        "XDG_DATA_HOME": str(home),
        "MPLCONFIGDIR": str(home),
    }
    with subprocess.Popen(
        [sys.executable, "-m", "mechdesign", "app"],
        cwd=home,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as program:
        try:
            # The address is on the first line of either output.
            address = address_of(program)
            assert post(address + "upload?name=people.csv", content) == "roles"
            for action, changes in SEARCHES:
                act(address, action, **changes)
                assert wait(address, 120)["place"] != "error", action
                assert MARK in get(address)
                assert files_with_cells(home) == [], action
        finally:
            program.send_signal(signal.SIGINT)
            outputs = program.communicate(timeout=60)
    assert program.returncode == 0
    assert MARK not in "".join(outputs)
    assert files_with_cells(home) == []


def address_of(program):
    """The address that the program prints."""
    for line in program.stdout:
        for word in line.split():
            if word.startswith("http://127.0.0.1:"):
                return word
    raise AssertionError("no address was printed")
