"""Bounds of rows under conditions: pairs that are forbidden by cells, rows that are never released,
and weights of columns. The file keeps what proves them.
"""

from __future__ import annotations

import random

import pandas as pd
import pytest

import mechdesign as md
from mechdesign.auditing.stated import statement_of
from mechdesign.mechanisms.proving import with_certificate
from tests.cases.documents import rewrite

CONDITIONS = {
    "cells": {"forbid": [("cook", "nurse"), ("town=north", "town=south")]},
    "rows": {"forbid": [("cook, north", "nurse, north")]},
    "itself": {"forbid": [("cook", "cook")], "keep_frequencies": False},
    "never": {"never": [{"job": "nurse", "town": "south"}], "keep_frequencies": False},
    "weights": {"column_weights": {"town": 4}},
    "given": {
        "release": ["job"],
        "given": ["town"],
        "promise": "relative",
        "forbid": [("cook", "nurse")],
    },
}


@pytest.fixture(scope="module")
def people():
    rng = random.Random(2)
    rows: list[tuple[str, str, str]] = []
    for _ in range(300):
        ill = rng.choice(["ill", "well"])
        job = rng.choice(["cook", "nurse", "clerk"][: 2 + (ill == "well")])
        rows.append((ill, job, rng.choice(["north", "south", "south"])))
    return pd.DataFrame(rows, columns=["illness", "job", "town"])


def proven(path):
    channel = md.load(path)
    return with_certificate(statement_of(channel), channel)


def designed(people, conditions):
    options = {"release": ["job", "town"], "smallest_group": 1, **conditions}
    if not options.get("keep_frequencies", True):
        options["smallest_group"] = None
    made = md.design(people, md.LIP(0.1), sensitive="illness", **options)
    assert made.least is not None
    assert made.least.cost_lower_bound > 0.0
    return made


@pytest.mark.parametrize("conditions", CONDITIONS.values(), ids=CONDITIONS)
def test_the_file_proves_the_bound(people, conditions, tmp_path):
    made = designed(people, conditions)
    made.channel.save(tmp_path / "channel.json")
    statement = proven(tmp_path / "channel.json")
    assert statement.unproven == ()
    assert "cost_lower_bound" in statement.proven


def test_without_the_conditions_the_proof_does_not_reach_the_bound(people, tmp_path):
    """So it is the conditions that the bound rests on."""
    channel = designed(people, CONDITIONS["itself"]).channel
    channel.save(tmp_path / "channel.json")
    rewrite(tmp_path / "channel.json", lambda file: file["objective"].update(forbid=[]))
    assert proven(tmp_path / "channel.json").unproven


@pytest.mark.parametrize(
    "claimed",
    [
        {"forbid": [["town=south", "town=south"]]},
        {"never": [{"job": "clerk"}]},
    ],
)
def test_conditions_that_the_channel_does_not_keep_prove_nothing(
    people, claimed, tmp_path
):
    channel = designed(people, {}).channel
    channel.save(tmp_path / "channel.json")
    rewrite(tmp_path / "channel.json", lambda file: file["objective"].update(claimed))
    (unproven,) = proven(tmp_path / "channel.json").unproven
    assert "releases what the conditions of its file forbid" in unproven.reason


def test_a_report_says_what_is_never_released(people, tmp_path):
    made = designed(people, CONDITIONS["never"])
    md.report(made, tmp_path / "report.md", curve=0)
    assert "1 combination of cells is never released." in (
        tmp_path / "report.md"
    ).read_text(encoding="utf-8")
