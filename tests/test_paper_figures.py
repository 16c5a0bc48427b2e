"""The scripts of `examples/paper`: each runs quickly, writes its files, and meets the numbers that the paper states."""

from __future__ import annotations

import csv
import os
import re
from pathlib import Path

import pytest

from tests.ready_commands import ReadyCommands

FOLDER = Path(__file__).parents[1] / "examples" / "paper"

QUICK = ("01", "05", "09", "12")
SLOW = ("02", "03", "04", "06", "07", "08", "10", "11", "13")

PUBLISHED = {"02": 2, "03": 2, "04": 1, "05": 1, "06": 1, "07": 1}
"""How many numbers the paper states for a figure's utilities."""

TOLERANCE = 0.01
"""What the project promises, for means over many draws; a quick run may add its sampling error."""

SAMPLING = 2.5
"""Standard errors of a quick mean that are no surprise; the draws are fixed, so this cannot fail by chance."""


def run_script(ready: ReadyCommands, number: str, folder: Path) -> str:
    script = FOLDER / f"figure_{number}.py"
    environment = {
        **os.environ,
        "PYTHONPATH": str(FOLDER.parents[1]),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    options = ("--out", "pictures", "--workers", "1")
    done = ready.run_script(script, *options, folder=folder, environment=environment)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def assert_figure(ready: ReadyCommands, number: str, folder: Path) -> str:
    out = run_script(ready, number, folder)
    assert out.startswith(f"Figure {int(number)}: ")
    pictures = {path.name for path in (folder / "pictures").glob("*.png")}
    assert f"figure_{number}.png" in pictures
    with (folder / "pictures" / f"figure_{number}.csv").open(
        newline="", encoding="utf-8"
    ) as stream:
        assert len(list(csv.DictReader(stream))) > 10
    lines = re.findall(r"^  .* ([+-]\d\.\d{4}) +(\d\.\d{4})$", out, flags=re.MULTILINE)
    assert len(lines) == PUBLISHED.get(number, 0)
    for difference, error in lines:
        assert abs(float(difference)) <= TOLERANCE + SAMPLING * float(error)
    return out


def test_there_is_a_script_for_every_figure():
    assert {path.stem for path in FOLDER.glob("figure_*.py")} == {
        f"figure_{n:02d}" for n in range(1, 14)
    }
    assert set(QUICK) | set(SLOW) == {f"{n:02d}" for n in range(1, 14)}


@pytest.mark.parametrize("number", QUICK)
def test_quick_figures(ready, number, tmp_path):
    assert_figure(ready, number, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("number", [n for n in SLOW if n != "10"])
def test_slower_figures(ready, number, tmp_path):
    assert_figure(ready, number, tmp_path)


@pytest.mark.slow
def test_the_optimum_at_200_symbols_stands_above_the_heuristics_with_a_proven_gap(
    ready,
    tmp_path,
):
    out = assert_figure(ready, "10", tmp_path)
    table = [
        [float(cell.rstrip("*")) for cell in line.split()]
        for line in out.splitlines()[2:5]
    ]
    assert [cells[0] for cells in table] == [2.0, 4.0, 8.0]
    for _, optimum, bound, response, merging, complete in table:
        assert bound >= optimum > response > merging > complete
        assert bound - optimum <= 1e-4
    assert "within its budget: yes" in out
