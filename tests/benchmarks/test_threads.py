"""What `--jobs` saves on the clock, on as many cores as there are."""

from __future__ import annotations

import os

import pytest

from mechdesign.mechanisms import design
from mechdesign.notions import ALIP
from tests.benchmarks.measuring import isolated, seconds, table

ROWS = 5_000_000


@pytest.mark.benchmark
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_threads_against_one(tmp_path, adult, kind):
    """The least of three runs in turns; no gain is asked, for other work may keep the cores busy."""
    design(adult, ALIP.from_epsilon(2.0)).channel.save(tmp_path / "channel.json")
    source, target = str(tmp_path / f"people.{kind}"), str(tmp_path / f"out.{kind}")
    isolated("people", rows=ROWS, path=source)
    for how in ({}, {"identity": "id"}):
        best = {}
        for _ in range(3):
            for jobs in (1, 2, 3):
                options = {
                    "channel": str(tmp_path / "channel.json"),
                    "jobs": jobs,
                    **how,
                }
                run = isolated("apply", source=source, target=target, **options)
                assert run["records"] == ROWS
                best[jobs] = min(
                    best.get(jobs, run), run, key=lambda each: each["wall"]
                )
        table(
            f"{ROWS:,} rows of {kind}{' by identifier' * bool(how)}, {os.cpu_count()} cores",
            ["jobs", "wall s", "ratio", "processor s", "peak MiB"],
            [
                [
                    str(jobs),
                    seconds(run["wall"]),
                    f"{run['wall'] / best[1]['wall']:.2f}",
                    seconds(run["cpu"]),
                    f"{run['memory']:.0f}",
                ]
                for jobs, run in best.items()
            ],
        )
        assert best[3]["cpu"] <= 1.5 * best[1]["cpu"]
