"""The attack of the docs on regulators: counted here, and by anonymeter in an environment of its own."""

from __future__ import annotations

import csv
import random
import re
import subprocess
import sys
import venv
from pathlib import Path

import pytest

import mechdesign as md
from mechdesign.tables.reading import read_joint
from tests.test_docs import blocks, comparable

ROOT = Path(__file__).parents[1]
TABLE = ROOT / "examples" / "adult_relationship_by_occupation.csv"
PAGE = ROOT / "docs" / "how-to" / "regulators.md"


def released(folder, epsilon):
    """31,580 records, their release and the channel, as the page makes them."""
    with TABLE.open(newline="", encoding="utf-8") as stream:
        (_, *jobs), *rows = csv.reader(stream)
    records = [
        (who, job)
        for who, *counts in rows
        for job, n in zip(jobs, counts, strict=True)
        for _ in range(int(n))
    ]
    random.Random(1).shuffle(records)
    with (folder / "adult.csv").open("w", newline="", encoding="utf-8") as stream:
        numbered = ((k, *record) for k, record in enumerate(records))
        csv.writer(stream).writerows([("id", "relationship", "occupation"), *numbered])
    joint = read_joint(TABLE, sensitive=None, useful="occupation", contingency=True)
    channel = md.design(joint, md.ALIP.from_epsilon(epsilon)).channel
    channel.save(folder / "channel.json")
    how = {"identity": ["id"], "keep_sensitive": True, "insecure_seed": 1}
    md.sanitise_file(channel, folder / "adult.csv", folder / "released.csv", **how)


def attacked(folder, python=sys.executable):
    script = str(ROOT / "examples" / "inference_risk.py")
    files = [
        str(folder / name) for name in ("adult.csv", "released.csv", "channel.json")
    ]
    run = subprocess.run(
        [python, script, *files], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    return run.stdout.splitlines()


def test_the_attack_is_that_of_the_page_and_below_what_is_promised(tmp_path):
    released(tmp_path, 1.0)
    first, *lines = attacked(tmp_path)
    assert first == "measured here, without anonymeter"
    (block,) = [text for text in blocks(PAGE, "text") if "is guessed for" in text]
    for line, shown in zip(lines, block.splitlines()[1:], strict=True):
        (words, numbers), (shown_words, shown_numbers) = (
            comparable(line),
            comparable(shown),
        )
        assert words == shown_words
        assert numbers == pytest.approx(
            shown_numbers, abs=1.0
        )  # another solver, other draws
    rate, error, best, most = (
        float(re.findall(r"([\d.]+)%", lines[k])[j])
        for k, j in ((1, 0), (1, 1), (3, 0), (4, 0))
    )
    assert abs(rate - best) < 2 * error
    assert rate + 2 * error < most


@pytest.mark.slow
def test_anonymeter_counts_the_same(tmp_path):
    venv.create(tmp_path / "own", with_pip=True)
    python = str(tmp_path / "own" / "bin" / "python")
    install = [python, "-m", "pip", "install", "--quiet", "anonymeter"]
    if subprocess.run(install, capture_output=True, check=False).returncode:
        pytest.skip("anonymeter cannot be installed here")
    for epsilon in (0.5, 2.0):
        released(tmp_path, epsilon)
        here, there = attacked(tmp_path), attacked(tmp_path, python)
        assert there[0] == "measured by anonymeter"
        assert here[1:] == there[1:]
        print(epsilon, *there, sep="\n")
        for name in ("channel.json", "released.csv"):
            (tmp_path / name).unlink()
