"""Adult, six columns released as rows: what analysts read in them, and what a model that learnt
from other people finds of the income.

    MECHDESIGN_DATA=data python -m tests.benchmarks.guesses [EPSILON:GROUP:SECONDS ...]

The columns and bins are those of `tests.benchmarks.plans`, the smallest group is GROUP. The model
is a logistic regression on the values of `adult.test`. For each case it prints the share of
unchanged cells, the worst pair's total variation, the smallest group of the released file, the area
under the model's curve, the share of its surest 5 % who have a high income, and processor seconds.
"""

from __future__ import annotations

import itertools
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import mechdesign as md
from tests.benchmarks.plans import HOURS, PLACES, RELEASED

CASES = ("0.5:1:30", "0.43:1:30", "0.5:5:40")

COLUMNS = list(RELEASED[:6])

SUREST = 0.05


def adult(name: str) -> pd.DataFrame:
    """The columns of a file of Adult, in bins."""
    path = Path(os.environ["MECHDESIGN_DATA"]) / "adult" / name
    cells = pd.read_csv(path, header=None, comment="|", skipinitialspace=True)
    frame = pd.DataFrame({column: cells[place] for column, place in PLACES.items()})
    frame["hours"] = np.digitize(frame["hours"], HOURS)
    frame["age"] = np.clip(frame["age"] // 10, 1, 7)
    frame["income"] = frame["income"].str.startswith(">")
    return frame.astype(str)


def worst_pair(original: pd.DataFrame, released: pd.DataFrame) -> float:
    """The largest total variation of two columns together."""
    moved: list[float] = []
    for pair in itertools.combinations(COLUMNS, 2):
        before = original.value_counts(list(pair), normalize=True)
        after = released.value_counts(list(pair), normalize=True)
        moved.append(float(before.sub(after, fill_value=0.0).abs().sum()) / 2.0)
    return max(moved)


def run(people: pd.DataFrame, model: Any, case: str) -> str:
    """The line of one case."""
    from sklearn.metrics import roc_auc_score

    epsilon, group, seconds = case.split(":")
    before = time.process_time()
    made = md.design(
        people,
        md.LIP(float(epsilon)),
        sensitive="income",
        release=COLUMNS,
        smallest_group=int(group),
        time_limit=float(seconds),
    )
    spent = time.process_time() - before
    released = md.sanitise(people, made.channel, insecure_seed=0).astype(str)
    kept = float((released[COLUMNS] == people[COLUMNS]).to_numpy().mean())
    smallest = int(released.groupby(COLUMNS).size().min())
    scores = model.predict_proba(released[COLUMNS])[:, 1]
    rich = people["income"].to_numpy() == "True"
    surest = np.argsort(-scores, kind="stable")[: int(SUREST * len(scores))]
    found = roc_auc_score(rich, scores)
    return (
        f"{case:14} {kept:.4f} {worst_pair(people, released):.4f} {smallest:4d} "
        f"{found:.4f} {rich[surest].mean():.4f} {spent:.1f}"
    )


def main(cases: list[str]) -> None:
    """Print a line for each case."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    people, others = adult("adult.data"), adult("adult.test")
    model = make_pipeline(
        OneHotEncoder(handle_unknown="ignore"), LogisticRegression(max_iter=2000)
    )
    model.fit(others[COLUMNS], others["income"] == "True")
    print("case  cells  worst pair  smallest group  area  true of the surest  seconds")
    for case in cases or CASES:
        print(run(people, model, case), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
