"""The channel made for a purpose beside the others: none of these is better for it."""

import math

import numpy as np
import pytest

import mechdesign as md
from mechdesign.comparison.rows import Case, read_rows
from mechdesign.comparison.ways import PurposeRequest

ROUNDING = 1e-9
"""Relative error of the figures, which are computed in doubles."""

WAYS = ["optimal", "subset-response", "subset-merging", "complete-merging"]


def table(seed, symbols=6):
    random = np.random.default_rng(seed)
    return md.Joint.from_counts(random.integers(1, 60, (3, symbols)))


def records(seed=1, count=900):
    random = np.random.default_rng(seed)
    x = random.integers(0, 5, count)
    s = (random.random(count) < 0.2 + 0.1 * x).astype(int)
    t = (random.random(count) < 0.8 - 0.15 * x).astype(int)
    rows = [f"s{a},x{b},t{c}" for a, b, c in zip(s, x, t, strict=True)]
    return "\n".join(["s,x,t", *rows]) + "\n"


def ways(joint, notion, objective, task=None):
    request = PurposeRequest(joint, objective, task, 1e-4, None, None)
    rows, _ = request.rows(Case.at("", notion))
    return rows


@pytest.mark.parametrize("objective", ["frequencies", "prefix", "ranges"])
@pytest.mark.parametrize("seed", [0, 1])
def test_no_other_channel_estimates_better(objective, seed):
    joint = table(seed)
    first, *others = ways(joint, md.LIP(0.5), objective)
    purpose = md.design(joint, md.LIP(0.5), objective=objective).purpose
    assert first.mechanism == objective
    assert first.figure == purpose.variance
    assert first.figure_bound == purpose.variance_lower_bound
    assert [row.mechanism for row in others] == WAYS
    for row in others:
        assert row.figure >= row.figure_bound * (1.0 - ROUNDING)
        assert max(-row.min_log_lift, row.max_log_lift) <= 0.5


def test_the_variance_is_that_of_the_estimator():
    """The inverse of the information matrix, in NumPy alone, for a channel that tells all."""
    joint = table(2, 4)
    for row in ways(joint, md.LIP(2.0), "frequencies")[:2]:
        objective = "information" if row.mechanism == "optimal" else "frequencies"
        w = md.design(joint, md.LIP(2.0), objective=objective).channel.matrix
        p = joint.p_x
        information = (w / (p @ w)) @ w.T
        if np.linalg.matrix_rank(information) < len(p):
            assert math.isinf(row.figure)
            continue
        spread = np.trace(np.linalg.inv(information)) - p @ p
        assert row.figure == pytest.approx(spread, rel=1e-6)


def test_no_other_channel_tells_more_of_a_task(tmp_path):
    (tmp_path / "t.csv").write_text(records())
    import pandas as pd

    frame = pd.read_csv(tmp_path / "t.csv")
    joint = md.Joint.from_table(frame, sensitive="s", useful="x")
    task = md.Joint.from_table(frame, sensitive="t", useful="x")
    rows = ways(joint, md.LIP(0.3), "task", task)
    purpose = md.design(joint, md.LIP(0.3), objective="task", task=task).purpose
    assert rows[0].figure == pytest.approx(purpose.task_kept, rel=ROUNDING)
    for row in rows:
        assert row.figure <= purpose.task_upper_bound + ROUNDING
        assert row.figure_bound == purpose.task_upper_bound


def test_budgets_of_symbols_hold_for_every_way():
    found = md.compare(
        table(0),
        epsilons=[0.5],
        objectives=["frequencies"],
        budgets={"s0": (0.05, 0.05)},
    )
    free = md.compare(table(0), epsilons=[0.5], objectives=["frequencies"])
    assert found.rows[0].figure_bound > free.rows[0].figure_bound


def test_compare_has_the_ways_as_rows(tmp_path):
    joint = table(0)
    seen = []
    found = md.compare(
        joint,
        epsilons=[1.0, 0.5],
        lams=[0.4],
        objectives=["prefix"],
        progress=lambda done, planned: seen.append((done, planned)),
    )
    assert seen == [(1, 2), (2, 2)]
    rows = ways(joint, md.ALIP.at(0.5, 0.4), "prefix")
    for row, way in zip(found.rows, rows, strict=False):
        assert row.mechanism == way.mechanism
        assert (row.epsilon, row.lam) == (0.5, 0.4)
        assert (row.nmi, row.figure) == (way.nmi, way.figure)
    assert len(found.rows) == 2 * len(rows)
    # Infinite variances are written and read back, too.
    found.to_csv(tmp_path / "rows.csv")
    assert read_rows(tmp_path / "rows.csv") == found.rows
    assert "  prefix " in found.summary()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"objectives": ["prefix", "truth"]}, "has one objective"),
        ({"objectives": ["prefix"], "mechanisms": ["optimal"]}, "has no mechanisms"),
        ({"objectives": ["prefix"], "distance": "ranks"}, "has no distance"),
        ({"task": table(1)}, "a task is for the objective task"),
        ({"objectives": ["prefix"], "epsilons": None}, "no epsilon is given"),
    ],
)
def test_what_a_purpose_does_not_have_is_refused(options, message):
    with pytest.raises(md.InputError, match=message):
        md.compare(table(0), **{"epsilons": [1.0], **options})
