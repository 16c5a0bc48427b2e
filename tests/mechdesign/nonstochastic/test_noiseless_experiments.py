"""The experiments of the noiseless-privacy paper: their attacks by hand, and quick runs on the real
data.
"""

from __future__ import annotations

import csv
import importlib
import itertools
import math
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[3] / "examples" / "nonstochastic"


@pytest.fixture
def script(monkeypatch):
    """``script("taxi")`` is that example as a module."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    return importlib.import_module


@pytest.fixture
def real(data, monkeypatch):
    monkeypatch.setenv("MECHDESIGN_DATA", str(data))


def test_membership_policies_by_hand(script):
    membership = script("membership")
    house = np.array([[1.0, 3.0, 2.0, 5.0, 4.0]])
    assert membership.correlation(house, 2 * house + 7) == pytest.approx([1.0])
    assert membership.correlation(house, -house) == pytest.approx([-1.0])
    assert membership.correlation(house, np.ones((1, 5))) == [0.0]
    assert membership.square_error(house, house + 2) == [-20.0]
    assert membership.peaks(house, np.array([[0.0, 1.0, 0.0, 1.0, 1.0]])) == [1.0]


def test_an_adversary_without_information_has_no_advantage(script):
    """A constant release ties every game; a release of the household itself wins every game."""
    membership = script("membership")
    homes = np.random.default_rng(0).random((40, 49))
    houses = homes[:20], homes[20:]
    blind = membership.advantage(houses, np.ones((20, 49)))
    assert (blind["correlation"], blind["peaks"]) == (0, 0)
    assert set(membership.advantage(houses, houses[0]).values()) == {1.0}


def test_disaggregation_by_hand(script):
    attack = script("disaggregation")
    states = [
        np.array([0.0, 100.0]),
        np.array([0.0, 1000.0]),
        np.array([0.0]),
        np.array([50.0]),
    ]
    guesses = attack.disaggregate(np.array([55.0, 140.0, 1040.0, 1160.0]), states)
    assert guesses.tolist() == [[0, 0, 0], [100, 0, 0], [0, 1000, 0], [100, 1000, 0]]
    truth = np.array([[100.0], [100.0], [0.0], [0.0]])
    guess = np.array([[100.0], [0.0], [100.0], [0.0]])
    assert attack.f_scores(truth, guess) == pytest.approx([0.5])
    assert attack.f_scores(truth, truth) == [1.0]
    assert attack.clusters(np.array([1.0, 2.0, 9.0, 10.0]), 2).tolist() == [1.5, 9.5]
    learned = attack.learn_and_guess(
        np.array([1, 1, 1, 9]), np.array([[1], [1], [0], [0]]), np.array([2, 8])
    )
    assert (learned > attack.ON).tolist() == [[True], [False]]


def test_unique_trips_by_hand(script):
    taxi = script("taxi")
    assert taxi.unique_share(
        np.array([[1, 1, 1, 1], [1, 1, 1, 1], [1, 1, 1, 2]])
    ) == pytest.approx(1 / 3)
    cells, outputs = taxi.cells_of(np.array([[40.49, -74.27, 40.92, -73.68]]), 2)
    assert cells.tolist() == [[0, 0, 1, 1]]
    assert outputs == 2**4


@pytest.mark.slow
def test_frontier(script, tmp_path, capsys):
    """Uniform <= earliest <= MILP levels, and never more distortion than equal cells."""
    rows = script("frontier").main(["--out", str(tmp_path)])
    for row in rows:
        assert (
            row["uniform_levels"]
            <= row["earliest_levels"]
            <= row["most_levels"]
            <= row["at_most"]
        )
        assert row["least_rmse"] <= row["uniform_rmse"] + 1e-12
    assert any(row["earliest_levels"] < row["most_levels"] for row in rows)
    assert (tmp_path / "frontier_quantizers.csv").exists()
    assert "milp: 4 levels" in capsys.readouterr().out


@pytest.mark.slow
def test_membership_on_real_data(script, real, tmp_path, capsys):
    """Without protection small groups give their members away; at one bit a day almost not."""
    rows = script("membership").main(["--out", str(tmp_path)])
    correlation = {(row["n"], row["epsilon"]): row["correlation"] for row in rows}
    assert correlation[2, "none"] > 0.6
    assert correlation[2, "none"] > correlation[32, "none"]
    assert correlation[2, 1] < 0.15
    for row in rows:
        if row["epsilon"] != "none":
            assert row["outputs"] <= 2 ** row["epsilon"]
    with open(tmp_path / "membership.csv", encoding="utf-8", newline="") as stream:
        assert len(list(csv.reader(stream))) == len(rows) + 1 == 46
    out = capsys.readouterr().out
    assert "516 households" in out
    # As docs/explanation/ranges-theory.md says: at four times the range the paper's 'almost zero' appears.
    assert (
        "n = 4, epsilon = 2, range 0 to 500 kWh: correlation 0.33, square_error 0.18, peaks 0.21"
        in out
    )
    assert (
        "n = 4, epsilon = 2, range 0 to 2,000 kWh: correlation 0.01, square_error 0.00, peaks 0.00"
        in out
    )


def test_disaggregation_on_real_data(script, real, capsys):
    rows = script("disaggregation").main([])
    learned = [row["learned"] for row in rows]
    assert learned[0] > 0.5  # without protection
    assert learned[1] < 0.1  # one bit a reading
    combinatorial = {row["epsilon"]: row["combinatorial"] for row in rows}
    alone = {row["epsilon"]: row["alone"] for row in rows}
    # As docs/explanation/ranges-theory.md says: the rise at 5 bits is the rest of the house, and is not there without it.
    assert combinatorial[5] > combinatorial["none"] + 0.25
    assert max(alone.values()) <= alone["none"] + 0.02
    assert max(alone[epsilon] for epsilon in (1, 2, 3, 4, 5)) < alone["none"] / 2
    assert "Differences from the paper" in capsys.readouterr().out


def test_taxi_on_real_data(script, real, capsys):
    rows = script("taxi").main([])
    shares = [row["unique_19791"] for row in rows]
    assert shares[0] == 0
    assert all(a <= b for a, b in itertools.pairwise(shares))
    assert shares[-1] > 0.95
    for row in rows:
        assert row["outputs_of_a_trip"] == 2 ** (2 * row["epsilon"])
    assert math.isclose(rows[1]["cells"], 4)
    assert "19,791 of 20,000 trips" in capsys.readouterr().out


def test_months_on_real_data(script, real, tmp_path):
    """537 households, 24 days a period: the total is kept, both are audited and checked, errors
    fall with it.
    """
    rows = script("monthly").main(["--out", str(tmp_path)])
    for row in rows:
        assert row["bits"] <= row["total"]
        assert row["audit"] == "kept"
        assert row["check"] == "same"
        assert row["answers"] == 24
    for month in ("first", "next"):
        errors = [row["mean error"] for row in rows if row["month"] == month]
        assert errors == sorted(errors, reverse=True)
    assert (tmp_path / "monthly.csv").exists()


def test_without_data(script, monkeypatch):
    monkeypatch.delenv("MECHDESIGN_DATA", raising=False)
    with pytest.raises(SystemExit, match="MECHDESIGN_DATA must name"):
        script("taxi").main([])
