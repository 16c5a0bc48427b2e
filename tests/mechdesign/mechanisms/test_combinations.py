"""Every combination in the list is refused with its reason, whatever the table."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import mechdesign as md
from mechdesign.mechanisms import combinations
from mechdesign.mechanisms.average_budgets import NO_PROMISE
from mechdesign.mechanisms.combinations import (
    AVERAGE,
    BOXES,
    MEANS,
    PEOPLE,
    POPULATION,
    REFUSALS,
    ROWS,
    STRATA,
    TABLE,
)
from mechdesign.mechanisms.designing import DESIGNERS
from mechdesign.mechanisms.request import DesignRequest

ONE = {"useful": "a"}
CONVEX = {"constraints": lambda w, _: [w[0, 0] >= 0.1]}
LIMITS = {"time_limit": 5.0}

BASES = {
    AVERAGE: {**ONE, "average": {"mi": 0.02}},
    BOXES: {"release": ["a", "b"], "confidence": 0.9, "slice_seed": 1},
    POPULATION: {**ONE, "confidence": 0.9},
    STRATA: {"release": ["a"], "given": ["k"], "objective": "information"},
    ROWS: {"release": ["a", "b"]},
    MEANS: {**ONE, "notion": md.Chi2Lift.from_epsilon(0.5)},
    PEOPLE: {"release": ["a"], "person": "p", "sensitive_of": "sequence"},
}

BY_NAME = {
    "confidence": {"confidence": 0.9},
    "budgets of single symbols": {"budgets": {"s": (0.2, 0.2)}},
    "constraints or a convex cost": {"objective": "truth", **CONVEX},
    "constraints": CONVEX,
    "keep and an objective": {
        "average": {"mi": None},
        "keep": 0.5,
        "objective": "truth",
    },
    "a relative promise without a notion": {
        "useful": None,
        "notion": NO_PROMISE,
        "release": ["a", "b"],
        "given": ["k"],
        "promise": "relative",
        "average": {"tv": 0.1},
    },
    "mechanism": {"mechanism": "subset-merging"},
    "bins": {"bins": {"a": "auto"}},
    "method": {"method": "columns"},
    "gap": {"gap": 0.1},
    "average": {"average": {"mi": 0.02}},
    "an average": {"average": {"mi": 0.02}},
    "stay": {"stay": 0.1},
    "forbid": {"forbid": [("1", "2")]},
    "never": {"never": [{"a": "1", "b": "u"}]},
    "distance": {"distance": "ranks"},
    "column weights": {"column_weights": {"a": 2}},
    "smallest_group": {"smallest_group": 5},
    "known": {"known": ["a"]},
    "known shares": {"known_shares": {"s": 0.4, "t": 0.6}},
    "unseen symbols": {"unseen": 2},
    "unknown": {"unknown": "nearest"},
    "missing": {"missing": "marginal"},
    "an objective of queries of one's own": {"objective": md.Queries(np.ones((1, 8)))},
    "strata: ldp": {"notion": md.LDP(1.0)},
    "rows: means": {"notion": md.Chi2Lift.from_epsilon(0.5)},
    "rows: convex": CONVEX,
    "means: confidence": {"confidence": 0.9},
    "means: several tables": {"budgets": {"s": (0.2, 0.2)}},
    "means: given": {
        "useful": None,
        "release": ["a"],
        "given": ["k"],
        "objective": "information",
    },
    "means: average": {"average": {"mi": 0.02}},
    "free outputs": {"objective": "information"},
    "weight": {"weight": "n"},
}
"""What is asked besides the shape; entries of the command line alone are tried in its tests."""

OF_THE_COMMAND_LINE = {
    (BOXES, "objective"),
    (BOXES, "task"),
    (BOXES, "keep"),
    (BOXES, "keep frequencies"),
    (BOXES, "curve"),
}
ELSEWHERE = {
    (MEANS, "means: convex"): "checked where the table shows how many secrets",
    (BOXES, "average"): "an average refuses the confidence level first",
    (BOXES, "enumerate"): "it needs the method vertices, which is refused first",
    (
        PEOPLE,
        "means",
    ): "an option of estimate, tried in tests/mechdesign/cli/test_people.py",
}


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(2)
    count = 400
    s = rng.choice(["s", "t", "u"], count)
    a = np.where(rng.random(count) < 0.5, rng.integers(1, 5, count), (s == "s") + 1)
    return pd.DataFrame(
        {
            "secret": s,
            "other": np.where(rng.random(count) < 0.5, s, "o"),
            "a": a.astype(str),
            "b": rng.choice(["u", "v"], count),
            "k": rng.choice(["m", "f"], count),
            "p": np.arange(count) // 2,
            "n": 1,
        }
    )


def options_of(entry, frame):
    asked = {**BASES[entry.shape]}
    if entry.name in ("after", "rows: relative after", "after releases of records"):
        first = md.design(frame, md.LIP(0.1), sensitive="secret", useful="a").channel
        asked["after"] = [first]
        if entry.name == "rows: relative after":
            asked |= {"release": ["a"], "given": ["k"], "promise": "relative"}
    elif entry.name == "protect_each":
        asked |= {"protect_each": True, "sensitive": ["secret", "other"]}
    elif entry.name == "start":
        asked["start"] = md.design(
            frame, md.LIP(0.1), sensitive="secret", useful="a", method="columns"
        )
    else:
        asked |= BY_NAME[entry.name]
    return {name: value for name, value in asked.items() if value is not None}


@pytest.mark.parametrize(
    "entry", REFUSALS, ids=lambda entry: f"{entry.shape}, {entry.name}"
)
def test_every_entry_is_refused_with_its_reason(entry, frame):
    if (entry.shape, entry.name) in {*OF_THE_COMMAND_LINE, *ELSEWHERE}:
        return
    asked = options_of(entry, frame)
    notion = asked.pop("notion", md.LIP(0.5))
    if entry.shape == AVERAGE:
        notion = None
    sensitive = asked.pop("sensitive", "secret")
    with pytest.raises(md.InputError) as refused:
        md.design(
            frame,
            *([] if notion is None else [notion]),
            sensitive=sensitive,
            **asked,
            **LIMITS,
        )
    assert entry.reason in str(refused.value)


@pytest.mark.parametrize("shape", combinations.SHAPES)
def test_the_shapes_themselves_are_designed(shape, frame):
    asked = {**BASES[shape]}
    notion = asked.pop("notion", md.LIP(0.5))
    positional = [] if shape == AVERAGE else [notion]
    made = md.design(frame, *positional, sensitive="secret", **asked, **LIMITS)
    assert made.verified


@pytest.mark.parametrize(
    ("asked", "shape"),
    [
        (BASES[BOXES], BOXES),
        ({**ONE, "merge_rare": 5, "confidence": 0.9}, BOXES),
        (BASES[ROWS], ROWS),
        (BASES[STRATA], STRATA),
        ({**BASES[STRATA], "confidence": 0.9}, BOXES),
        (BASES[POPULATION], POPULATION),
        (ONE, TABLE),
    ],
)
def test_a_request_has_one_shape_and_every_shape_a_designer(asked, shape, frame):
    joint = md.Joint.from_table(frame, sensitive="secret", useful=["k", "a", "b"])
    made = DesignRequest(joint, md.LIP(0.5), **asked)
    assert made.shape == shape
    assert made.shape in DESIGNERS
    assert made.may_merge is (shape == POPULATION)


def test_names_and_texts_are_used_once():
    names = [(entry.shape, entry.name) for entry in REFUSALS]
    assert len({*names}) == len(names)
    assert {shape for shape, _ in names} == {*combinations.SHAPES}
    assert {*OF_THE_COMMAND_LINE, *ELSEWHERE} <= {*names}


def test_the_table_has_every_entry_with_an_option():
    text = " ".join(combinations.table_text().split())
    for entry in REFUSALS:
        if entry.option:
            assert f"{entry.option}: {entry.reason}" in text
    assert max(len(line) for line in combinations.table_text().splitlines()) <= 100
