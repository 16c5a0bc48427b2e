"""Plans of the Adult table: unchanged cells, the most that are proven possible, processor seconds.

    MECHDESIGN_DATA=data python -m tests.benchmarks.plans [secret:columns:seconds ...]

Limits are lifts within exp(-1/2) and exp(1/2), costs shares of changed cells. The columns come in the
order education, occupation, hours (7 bins), workclass, age (7 bins), sex, marital status, country.
"""

from __future__ import annotations

import csv
import math
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

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


def main(cases: list[str]) -> None:
    """Print one line for each case."""
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
