"""The channel made for a purpose beside the others: none of these is better for it."""

import math

import numpy as np
import pytest

import mechdesign as md
from mechdesign.comparison.rows import read_rows
from mechdesign.comparison.ways import MADE_FOR_IT, compare_purpose

ROUNDING = 1e-9
"""Relative error of the figures, which are computed in doubles."""

WAYS = [MADE_FOR_IT, "optimal", "subset-response", "subset-merging", "merging"]


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


@pytest.mark.parametrize("objective", ["frequencies", "prefix", "ranges"])
@pytest.mark.parametrize("seed", [0, 1])
def test_no_other_channel_estimates_better(objective, seed):
    joint = table(seed)
    found = compare_purpose(joint, md.LIP(0.5), objective)
    assert len(found.ways) == len(WAYS)
    first, *others = found.ways
    assert first.name == MADE_FOR_IT
    assert first.figure == found.design.purpose.variance
    bound = found.design.purpose.variance_lower_bound
    for way in others:
        assert way.figure >= bound * (1.0 - ROUNDING)
        assert max(way.achieved.eps_l, way.achieved.eps_u) <= 0.5
    assert not found.is_task


def test_the_variance_is_that_of_the_estimator():
    """The inverse of the information matrix, in NumPy alone, for a channel that tells all."""
    joint = table(2, 4)
    found = compare_purpose(joint, md.LIP(2.0), "frequencies")
    for way in found.ways[:2]:
        objective = "frequencies" if way.name == MADE_FOR_IT else "information"
        w = md.design(joint, md.LIP(2.0), objective=objective).channel.matrix
        p = joint.p_x
        information = (w / (p @ w)) @ w.T
        if np.linalg.matrix_rank(information) < len(p):
            assert math.isinf(way.figure)
            continue
        spread = np.trace(np.linalg.inv(information)) - p @ p
        assert way.figure == pytest.approx(spread, rel=1e-6)


def test_no_other_channel_tells_more_of_a_task(tmp_path):
    (tmp_path / "t.csv").write_text(records())
    import pandas as pd

    frame = pd.read_csv(tmp_path / "t.csv")
    joint = md.Joint.from_table(frame, sensitive="s", useful="x")
    task = md.Joint.from_table(frame, sensitive="t", useful="x")
    found = compare_purpose(joint, md.LIP(0.3), "task", task=task)
    assert found.is_task
    purpose = found.design.purpose
    assert found.ways[0].figure == pytest.approx(purpose.task_kept, rel=ROUNDING)
    for way in found.ways:
        assert way.figure <= purpose.task_upper_bound + ROUNDING
    assert repr(found).startswith(f"PurposeComparison({MADE_FOR_IT}: 0.")


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
    ways = compare_purpose(joint, md.ALIP.at(0.5, 0.4), "prefix").ways
    for row, way in zip(found.rows, ways, strict=False):
        assert row.mechanism == ("prefix" if way.name == MADE_FOR_IT else way.name)
        assert (row.epsilon, row.lam) == (0.5, 0.4)
        assert (row.nmi, row.figure) == (way.kept, way.figure)
    assert len(found.rows) == 2 * len(ways)
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
