"""Plans of the Adult table: unchanged cells, the most that are proven possible, processor seconds.

    MECHDESIGN_DATA=data python -m tests.benchmarks.plans [secret:columns:seconds ...]
    python -m tests.benchmarks.plans synthetic:RECORDS:SECONDS

Limits are lifts within exp(-1/2) and exp(1/2), costs shares of changed cells. The columns come in the
order education, occupation, hours (7 bins), workclass, age (7 bins), sex, marital status, country.

A synthetic case is a whole design, `md.design`, of a table of 19 columns in which nearly every record
has a row of its own. For each step it prints the processor seconds and the memory so far.
"""

from __future__ import annotations

import csv
import math
import os
import resource
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from solvers.plans import (
    CellCosts,
    Plan,
    PlanLimits,
    PlanProblem,
    integer_plan,
    solve_plan,
)

PLACES = {
    "age": 0,
    "workclass": 1,
    "education": 3,
    "marital": 5,
    "occupation": 6,
    "relationship": 7,
    "race": 8,
    "sex": 9,
    "hours": 12,
    "country": 13,
    "income": 14,
}
"""Columns of the file by name."""

RELEASED = (
    "education",
    "occupation",
    "hours",
    "workclass",
    "age",
    "sex",
    "marital",
    "country",
)

HOURS = (20, 30, 40, 41, 50, 60)
"""Where the bins of hours begin, after the first one."""

BUDGET = 0.5

CASES = (
    "income:2:10",
    "income:3:15",
    "income:4:25",
    "income:6:25",
    "income:8:30",
    "race:2:10",
    "race:3:16",
    "race:4:30",
    "race:6:60",
    "relationship:2:10",
    "relationship:3:22",
    "relationship:6:40",
    "income:4full:60",
)
"""Secret, number of columns (full: hours and age without bins), seconds."""


def read_adult(folder: Path) -> dict[str, Any]:
    """The columns of adult.data as texts."""
    with (folder / "adult" / "adult.data").open(newline="") as file:
        rows = [row for row in csv.reader(file) if len(row) == 15]
    return {
        name: np.array([row[place].strip() for row in rows])
        for name, place in PLACES.items()
    }


def counts_of(
    adult: dict[str, Any], secret: str, columns: int, *, full: bool = False
) -> tuple[Any, Any]:
    """(codes (n, columns) of the distinct rows, counts (secrets, n))."""
    chosen = dict(adult)
    # The first four of the columns with numbers in full.
    order = ("education", "occupation", "hours", "age") if full else RELEASED
    if not full:
        chosen["hours"] = np.digitize(adult["hours"].astype(float), HOURS)
        chosen["age"] = np.clip(adult["age"].astype(int) // 10, 1, 7)
    coded = [
        np.unique(chosen[name], return_inverse=True)[1] for name in order[:columns]
    ]
    codes, rows = np.unique(np.column_stack(coded), axis=0, return_inverse=True)
    symbols = np.unique(adult[secret], return_inverse=True)[1]
    counts = np.zeros((symbols.max() + 1, len(codes)), np.int64)
    np.add.at(counts, (symbols, rows.ravel()), 1)
    return codes, counts


def lift_problem(codes: Any, counts: Any, budget: float = BUDGET) -> PlanProblem:
    """Least changed cells with all lifts within the budget and the law kept."""
    shares = counts.sum(axis=1) / counts.sum()
    masses = counts.sum(axis=0) / counts.sum()
    c = codes.shape[1]
    k = len(shares)
    return PlanProblem(
        masses=masses,
        targets=masses,
        costs=CellCosts(codes, np.full(c, 1.0 / c)),
        limits=PlanLimits(
            values=counts / counts.sum(axis=0) / shares[:, None],
            lower=np.full(k, math.exp(-budget)),
            upper=np.full(k, math.exp(budget)),
            groups=np.zeros(k, np.int64),
        ),
    )


def run(adult: dict[str, Any], case: str) -> tuple[Any, Plan]:
    """Solve one case; its counts and the plan."""
    secret, columns, seconds = case.split(":")
    full = columns.endswith("full")
    codes, counts = counts_of(
        adult, secret, int(columns.removesuffix("full")), full=full
    )
    plan = solve_plan(lift_problem(codes, counts), time_limit=float(seconds))
    return counts, plan


COLUMNS = 19
"""Columns of a synthetic table, of 3 to 11 different values each."""

CLASSES = 8
"""Latent classes of a synthetic table, in each of which the columns are independent."""


def synthetic(records: int, seed: int = 0) -> Any:
    """A table of 19 columns that depend on each other, and a secret that depends on all of them."""
    rng = np.random.default_rng(seed)
    latent = rng.integers(CLASSES, size=records)
    sizes = rng.integers(3, 12, size=COLUMNS)
    score = np.zeros(records)
    columns: dict[str, Any] = {}
    for k, size in enumerate(sizes.tolist()):
        ends = rng.dirichlet(np.full(size, 0.8), size=CLASSES).cumsum(axis=1)
        cells = np.zeros(records, np.int8)
        for one in range(CLASSES):
            here = latent == one
            drawn = np.searchsorted(ends[one], rng.random(here.sum()))
            cells[here] = np.minimum(drawn, size - 1)
        score += (rng.normal(size=size) / 2)[cells]
        texts = [f"v{value}" for value in range(size)]
        columns[f"c{k}"] = pa.DictionaryArray.from_arrays(cells, texts)
    chance = 1 / (1 + np.exp(1 + np.median(score) - score))
    secret = (rng.random(records) < chance).astype(np.int8)
    columns["s"] = pa.DictionaryArray.from_arrays(secret, ["no", "yes"])
    return pa.table(columns)


def note(step: str) -> None:
    """Print the processor time and the largest memory so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    print(f"{step:40} {time.process_time():8.1f} s {peak:7.0f} MB", flush=True)


def design_synthetic(records: int, seconds: float) -> None:
    """Design a synthetic table and print what it takes."""
    import mechdesign as md

    frame = synthetic(records)
    note("made")
    names = [name for name in frame.column_names if name != "s"]
    joint = md.Joint.from_table(frame, sensitive="s", useful=names)
    del frame
    note(f"{len(joint.useful):,} distinct rows counted")
    shown: set[int] = set()

    def progress(step: Any) -> None:
        # At most once in ten seconds.
        tenth = int(time.process_time() / 10)
        if tenth not in shown:
            shown.add(tenth)
            note(str(step))

    made = md.design(
        joint,
        md.LIP(BUDGET),
        release=names,
        smallest_group=1,
        allow_identifier=True,
        time_limit=seconds,
        progress=progress,
    )
    note("designed")
    print(
        f"cells {made.least.truth:.4f}, at most {1 - made.least.cost_lower_bound:.4f}, "
        f"kept {made.nmi:.4f}"
    )


def main(cases: list[str]) -> None:
    """Print one line for each case."""
    for case in cases:
        if case.startswith("synthetic:"):
            _, records, seconds = case.split(":")
            design_synthetic(int(records), float(seconds))
    cases = [case for case in cases if not case.startswith("synthetic:")]
    if not cases and len(sys.argv) > 1:
        return
    adult = read_adult(Path(os.environ["MECHDESIGN_DATA"]))
    print("secret:columns:seconds      rows  cells  at most  blocks  pairs  seconds")
    for case in cases or CASES:
        counts, plan = run(adult, case)
        units = counts.sum(axis=0)
        _, _, values = integer_plan(plan.rows, plan.columns, plan.flows, units, units)
        print(
            f"{case:24} {len(units):7} {1 - plan.cost:.4f}  {1 - plan.lower_bound:.4f} "
            f"{plan.blocks:7} {len(values):6} {plan.seconds:7.1f}",
            flush=True,
        )


if __name__ == "__main__":
    main(sys.argv[1:])
