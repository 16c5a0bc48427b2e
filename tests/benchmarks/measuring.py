"""Clocks, peak memory and tables for the benchmarks.

Ratios are of processor time, which a busy machine distorts less than the clock on the wall; everything measured
here computes on one core. Both are printed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]

KIBI = 1024.0


@dataclass(frozen=True)
class Timing:
    """Seconds of processor and of wall clock, each the least of some repetitions, and the last result."""

    cpu: float
    wall: float
    result: Any = None

    def __add__(self, other: Timing) -> Timing:
        return Timing(self.cpu + other.cpu, self.wall + other.wall)


def timed(call: Callable[[], Any], repeats: int = 1) -> Timing:
    """Run `call` some times; the least time is the one least disturbed."""
    cpu, wall, result = float("inf"), float("inf"), None
    for _ in range(repeats):
        start, clock = time.process_time(), time.perf_counter()
        result = call()
        cpu, wall = (
            min(cpu, time.process_time() - start),
            min(wall, time.perf_counter() - clock),
        )
    return Timing(cpu, wall, result)


def alternately(calls: Sequence[Callable[[], Any]], repeats: int) -> list[Timing]:
    """Like `timed` for each, in turns, so that all of them see the same weather."""
    runs = [[timed(call) for call in calls] for _ in range(repeats)]
    return [
        Timing(
            min(r[i].cpu for r in runs),
            min(r[i].wall for r in runs),
            runs[-1][i].result,
        )
        for i in range(len(calls))
    ]


def isolated(
    job: str, timeout: float | None = None, **arguments: Any
) -> dict[str, Any] | None:
    """Run a job of `tests.benchmarks.jobs` in a process of its own; None if it does not end in time.

    Returns
    -------
    dict
        What the job returned, with `cpu` and `wall` (seconds, without the start of the interpreter) and
        `memory` (peak resident MiB of the whole process).
    """
    command = [
        sys.executable,
        "-m",
        "tests.benchmarks.jobs",
        job,
        json.dumps(arguments),
    ]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    try:
        run = subprocess.run(
            command,
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            timeout=timeout,
        )
    except subprocess.TimeoutExpired:
        return None
    return json.loads(run.stdout.splitlines()[-1])


def peak_memory() -> float:
    """Largest resident memory of this process so far, in MiB.

    Linux hands the peak of `getrusage` down from the parent process; VmHWM begins anew with the program.
    """
    status = Path("/proc/self/status")
    if status.exists():
        lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
        return float(lines["VmHWM"].split()[0]) / KIBI
    import resource

    peak = float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    return peak / (KIBI * KIBI) if sys.platform == "darwin" else peak / KIBI


def table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a Markdown table."""
    print(f"\n\n{title}\n", flush=True)
    print("| " + " | ".join(header) + " |")
    print("|" + "---|" * len(header))
    for row in rows:
        print("| " + " | ".join(row) + " |")
    sys.stdout.flush()


def seconds(value: float | None) -> str:
    """Three significant digits, or a dash."""
    return (
        "-" if value is None else (f"{value:.3g}" if value < 100.0 else f"{value:.0f}")
    )
