"""The memory of the page grows no faster than the table."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

SIZES = (2_000, 4_000, 8_000)


@pytest.mark.slow
def test_memory_grows_with_the_records(tmp_path):
    peaks = []
    for records in SIZES:
        line = [sys.executable, "-m", "tests.mechdesign.app.sizes", str(records), "12"]
        done = subprocess.run(
            [*line, str(tmp_path / "table.csv")],
            capture_output=True,
            text=True,
            check=True,
        )
        figures = json.loads(done.stdout)
        assert figures["plausible"]
        peaks.append(max(figures["page"], figures["task"]))
    first, second, third = peaks
    # Of twice the records no more than about twice the growth; what is there anyway is 100 MB.
    assert third - second < 3 * max(second - first, 20), peaks
    assert third < 512, peaks
