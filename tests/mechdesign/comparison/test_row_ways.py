"""A row channel beside columns by themselves and randomised response."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

import mechdesign as md
from mechdesign.comparison import level_channels
from mechdesign.comparison.level_channels import PromisedRows
from mechdesign.comparison.row_response import response_channel, satisfies_promise
from mechdesign.comparison.row_ways import ALONE, RESPONSE, ROWS

NAMES = [ROWS, ALONE, RESPONSE]


def flowing(text: str) -> str:
    """The text without its line breaks and columns of blanks."""
    return " ".join(text.split())


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(8)
    count = 2000
    secret = rng.choice(["s", "t"], count, p=[0.3, 0.7])
    a = np.where(rng.random(count) < 0.3, secret, rng.choice(["x", "y", "z"], count))
    b = np.where(rng.random(count) < 0.3, secret, rng.choice(["u", "v"], count))
    k = np.where(rng.random(count) < 0.4 + 0.1 * (secret == "s"), "p", "q")
    return pd.DataFrame({"secret": secret, "a": a, "b": b, "k": k})


def compared(frame, **options):
    arguments = {
        "sensitive": "secret",
        "release": ["a", "b"],
        "notion": md.LIP(0.4),
        **options,
    }
    return md.compare_rows(frame, **arguments)


def test_separate_columns_break_what_the_row_channel_keeps(frame):
    result = compared(frame)
    assert [way.name for way in result.ways] == NAMES
    row, alone, response = result.ways
    assert row.satisfied is True
    assert row.kept == result.design.nmi
    assert row.achieved == result.design.achieved
    assert alone.satisfied is False
    assert max(alone.achieved.eps_l, alone.achieved.eps_u) > 0.4
    assert response.satisfied is True
    assert max(response.achieved.eps_l, response.achieved.eps_u) <= 0.4
    assert response.kept < min(row.kept, alone.kept)
    assert all(way.complete for way in result.ways)
    assert set(alone.truth) == {"a", "b"}


def test_separate_columns_have_the_cells_of_their_own_designs(frame):
    """Every column's share of unchanged cells is that of its own design."""
    alone = compared(frame).ways[1]
    for name in ("a", "b"):
        joint = md.Joint.from_table(frame, sensitive="secret", useful=name)
        design = md.design(joint, md.LIP(0.4), objective="truth")
        channel = design.channel
        same = np.array(
            [[x == y for y in channel.outputs] for x in channel.useful.names]
        )
        truth = joint.p_x @ (channel.matrix * same).sum(axis=1)
        assert alone.truth[name] == pytest.approx(float(truth), abs=1e-9)


def test_composing_the_columns_gives_the_same_leakage(frame):
    """The joint leakage is that of `compose`, which has another algorithm."""
    alone = compared(frame, objective="information").ways[1]
    whole = md.Joint.from_table(frame, sensitive="secret", useful=["a", "b"])
    channels = []
    for name in ("a", "b"):
        joint = md.Joint.from_table(frame, sensitive="secret", useful=name)
        channels.append(md.design(joint, md.LIP(0.4)).channel)
    composition = md.compose(channels, whole)
    assert alone.truth is None
    assert alone.achieved.eps_u == pytest.approx(composition.eps_u, rel=1e-3)
    assert alone.achieved.eps_l == pytest.approx(composition.eps_l, rel=1e-3)


def test_a_larger_parameter_of_randomised_response_breaks_the_promise(frame):
    response = compared(frame).ways[2]
    records = compared(frame).design.channel.table
    rows = PromisedRows(records, 0, "total", md.LIP(0.4))
    assert satisfies_promise(rows, response.epsilon * (1.0 - 1e-6))
    assert not satisfies_promise(rows, response.epsilon * (1.0 + 1e-6))


def test_randomised_response_keeps_its_cells(frame):
    """P(unchanged) = e^eps / (e^eps + n - 1)."""
    response = compared(frame).ways[2]
    power = math.exp(response.epsilon)
    assert response.truth["a"] == pytest.approx(power / (power + 4), abs=1e-9)
    assert response.truth["b"] == pytest.approx(power / (power + 3), abs=1e-9)


def test_information_is_that_of_a_simulation_free_sum(frame):
    """I(X; Y) from the whole joint law of true and released rows."""
    result = compared(frame)
    records = result.design.channel.table
    response = result.ways[2]
    matrices = [
        response_channel(variable, response.epsilon).matrix / 2.0**53
        for variable in records.groups
    ]
    codes, place = np.unique(records.codes, axis=0, return_inverse=True)
    shares = np.bincount(place.ravel(), records.masses)
    law = np.array(
        [
            share * np.outer(matrices[0][a], matrices[1][b]).ravel()
            for share, (a, b) in zip(shares, codes, strict=True)
        ]
    )
    independent = shares[:, None] * law.sum(axis=0)
    information = (law * np.log(law / independent)).sum()
    entropy = -(shares * np.log(shares)).sum()
    assert response.kept == pytest.approx(information / entropy, rel=1e-9)


@pytest.mark.parametrize("promise", ["total", "relative"])
def test_given_columns_are_released_beside_them(frame, promise):
    result = compared(frame, given="k", promise=promise, notion=md.LIP(0.9))
    _, alone, response = result.ways
    assert alone.columns == ("k", "a", "b")
    assert alone.worst.row[0] in set(frame["k"])
    assert response.satisfied is True
    assert max(response.achieved.eps_l, response.achieved.eps_u) <= 0.9


def test_crossed_columns_have_one_channel(frame):
    result = compared(frame, release=[("a", "b")])
    assert set(result.ways[1].truth) == {"a", "b"}
    assert result.ways[1].satisfied is True
    # Randomised response changes both columns at once, so a cell is unchanged at least so often.
    response = result.ways[2]
    size = len(result.design.channel.levels[0])
    whole = math.exp(response.epsilon) / (math.exp(response.epsilon) + size - 1)
    assert response.truth["a"] > whole


def test_a_law_that_is_too_large_is_said_to_be_one(frame, monkeypatch):
    """The first columns alone give a lower limit; randomised response has a safe parameter."""
    whole = compared(frame)
    monkeypatch.setattr(level_channels, "MOST_CELLS", 12)
    result = compared(frame)
    row, alone, response = result.ways
    assert row.kept == whole.ways[0].kept
    assert alone.complete is False
    assert alone.kept is None
    assert alone.columns == ("a",)
    assert alone.satisfied is None
    assert alone.achieved.eps_u <= whole.ways[1].achieved.eps_u
    assert response.kept is None
    assert response.satisfied is True
    assert response.epsilon == pytest.approx(0.2, rel=1e-9)
    assert response.achieved.eps_u <= 0.4
    summary = flowing(result.summary())
    assert "each column by itself not known" in summary
    assert "the first columns keep it" in summary
    assert "keeps the promise on every table" in summary


def test_a_safe_parameter_beside_given_columns_is_not_made_up(frame, monkeypatch):
    monkeypatch.setattr(level_channels, "MOST_CELLS", 12)
    result = compared(frame, given="k", notion=md.LIP(0.9))
    assert result.ways[2].satisfied is None
    assert result.ways[2].epsilon is None
    assert "beside the given columns" in result.summary()
    relative = compared(frame, given="k", promise="relative", notion=md.LIP(0.9))
    assert relative.ways[2].satisfied is True
    assert relative.ways[2].epsilon == pytest.approx(0.45, rel=1e-9)


def test_independent_columns_need_no_noise():
    frame = pd.DataFrame({"secret": ["s", "t"] * 8, "a": ["x", "x", "y", "y"] * 4})
    result = compared(frame, release=["a"])
    for way in result.ways:
        assert way.satisfied is True
        assert way.truth["a"] == pytest.approx(1.0, abs=1e-9)


def test_results_are_shown(frame):
    result = compared(frame)
    summary = flowing(result.summary())
    assert "each column by itself BROKEN" in summary
    assert "The released row breaks the promise" in summary
    lines = result.to_frame()
    assert list(lines["way"]) == NAMES
    assert list(lines["satisfied"]) == [True, False, True]
    assert repr(result).startswith("RowComparison(row channel: kept 0.")


def test_averages_are_refused(frame):
    with pytest.raises(md.InputError, match="bounds averages"):
        compared(frame, notion=md.L1Lift.from_epsilon(1.0))
