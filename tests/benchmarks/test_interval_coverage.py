"""How often the intervals of `estimate` hold: ``MECHDESIGN_DRAWS=20000 python -m pytest -m benchmark -s`` this file.

Every cell (channel, target, share of the rarest symbol, number of records) draws so many samples. A channel is a test
of its own, so that a long study runs in parts (``-k skew``). Normal intervals had 0.41 to 0.84 at shares of 0.005 to
0.01 and 100 to 500 records.
"""

from __future__ import annotations

import math
import os

import numpy as np
import pytest

from mechdesign.analysis.frequencies import estimate_frequencies
from mechdesign.analysis.joint_frequencies import estimate_joint
from mechdesign.analysis.law_estimates import of_shares
from mechdesign.analysis.likelihood import score_interval, spread_of
from mechdesign.analysis.linear import Estimator
from mechdesign.analysis.model import release_model
from mechdesign.channel.channel import DENOMINATOR, Channel
from mechdesign.tables.variable import Variable

pytestmark = pytest.mark.benchmark

DRAWS = int(os.environ.get("MECHDESIGN_DRAWS", "2000"))
LEVEL = 0.95
SHARES, RECORDS = (0.002, 0.005, 0.01, 0.05), (100, 200, 500)
ROUNDING = 1e-12
CHANNELS = {
    "identity": np.eye(4),
    "response, ln 3": np.full((4, 4), 1 / 6) + np.eye(4) / 3,
    "response, 3": np.full((4, 4), 1 / (math.exp(3) + 3))
    + np.eye(4) * (math.exp(3) - 1) / (math.exp(3) + 3),
    "merged": np.array(
        [
            [0.7, 0, 0, 0, 0.3, 0],
            [0, 0.7, 0, 0, 0.3, 0],
            [0, 0, 0.7, 0, 0.25, 0.05],
            [0, 0, 0, 0.9, 0, 0.1],
        ]
    ),
    "skew": np.array(
        [
            [0.02, 0.49, 0.49, 0],
            [0, 0.9, 0.05, 0.05],
            [0, 0.05, 0.9, 0.05],
            [0, 0, 0, 1.0],
        ]
    ),
}


def channel_of(matrix):
    whole = [[int(w * DENOMINATOR) for w in row] for row in matrix]
    for row in whole:
        row[int(np.argmax(row))] += DENOMINATOR - sum(row)
    symbols = tuple((f"x{i}",) for i in range(len(whole)))
    return Channel(
        Variable(("x",), symbols), tuple(f"y{j}" for j in range(len(whole[0]))), whole
    )


def released(rng, matrix, symbols):
    return sum(rng.multinomial(n, row) for n, row in zip(symbols, matrix, strict=True))


def slack(draws):
    """One hundredth, and what so many draws cannot tell."""
    return 0.01 + 3.5 * math.sqrt(LEVEL * (1 - LEVEL) / draws)


def holds(lower, upper, truth):
    assert (lower < upper).all()
    return (lower <= truth + ROUNDING) & (truth <= upper + ROUNDING)


@pytest.mark.parametrize("name", CHANNELS)
def test_intervals_hold_at_least_as_often_as_they_say(name):
    """P(lower <= share <= upper) >= level - 0.01 in every cell, and no interval is a point.

    All draws of a cell at once, through the functions behind `estimate_frequencies`, which is asked about the first.
    Intervals of 'ml' hold whenever these do: they contain them (`test_likely_intervals_contain_the_unbiased_ones`).
    """
    matrix, rng = CHANNELS[name], np.random.default_rng(7)
    channel = channel_of(matrix)
    estimator = Estimator.of(release_model(channel))
    for target in ("population", "records"):
        least = 1.0
        print(f"\n{name}, {target}: share of x0, records, coverage of each symbol")
        for share in SHARES:
            for records in RECORDS:
                p = np.array([share, 0.2, 0.3, 0.5 - share])
                symbols = rng.multinomial(records, p, size=DRAWS)
                drawn = [
                    rng.multinomial(symbols[:, x], channel.matrix[x]) for x in range(4)
                ]
                counts = np.sum(drawn, axis=0)
                centre = counts / records @ estimator.weights
                ends = score_interval(
                    centre, *spread_of(estimator, counts, target), records, LEVEL
                )
                lower, upper = (np.clip(end, *estimator.cells.bounds) for end in ends)
                covered = holds(
                    lower, upper, p if target == "population" else symbols / records
                ).mean(axis=0)
                print(
                    f"{share:>8} {records:>6}  {'  '.join(f'{each:.3f}' for each in covered)}"
                )
                given = dict(zip(channel.outputs, counts[0].tolist(), strict=True))
                found = estimate_frequencies(channel, given, target=target, level=LEVEL)
                assert (found.lower <= lower[0] + ROUNDING).all()
                assert (found.upper >= upper[0] - ROUNDING).all()
                least = min(least, covered.min())
        print(f"least of {name}, {target}: {least:.3f}")
        assert least >= LEVEL - slack(DRAWS)


@pytest.mark.parametrize("redrawn", [None, 0.1, 0.5, 1.0])
def test_intervals_of_released_rows_hold(redrawn):
    """A row of a share of .002 to .05: every record is drawn anew from the table with a probability, which keeps its
    law; None are fixed counts.
    """
    rng = np.random.default_rng(9)
    least = {"population": 1.0, "records": 1.0}
    normal = 1.0
    share_redrawn = redrawn or 0.0
    for share in SHARES:
        for records in RECORDS:
            table = rng.binomial(records, share, DRAWS)
            true = table / records
            stay = 1.0 - share_redrawn + share_redrawn * true
            come = share_redrawn * true
            count = rng.binomial(table, stay) + rng.binomial(records - table, come)
            estimate = count / records
            drawn = true * stay * (1.0 - stay) + (1.0 - true) * come * (1.0 - come)
            sampled = estimate * (1.0 - estimate)
            truths = {"population": np.full(DRAWS, share), "records": true}
            for target, truth in truths.items():
                # A draw takes the place of a symbol.
                found = of_shares(
                    ("x",),
                    (("x0",),) * DRAWS,
                    estimate,
                    records,
                    drawn=None if redrawn is None else drawn,
                    sampled=sampled if target == "population" else None,
                    level=LEVEL,
                )
                lower, upper = found.lower - ROUNDING, found.upper + ROUNDING
                held = ((lower <= truth) & (truth <= upper)).mean()
                print(f"\n{redrawn}, {target}, {share}, {records}: {held:.3f}", end="")
                least[target] = min(least[target], held)
                if target == "population":
                    reach = 1.959964 * found.standard_errors
                    normal = min(normal, (abs(estimate - share) <= reach).mean())
    print(f"\nleast of {redrawn}: {least}, of normal intervals {normal:.3f}")
    assert min(least.values()) >= LEVEL - slack(DRAWS)


@pytest.mark.parametrize("target", ["population", "records"])
@pytest.mark.parametrize("method", ["unbiased", "ml"])
@pytest.mark.parametrize("name", ["response, 3", "merged"])
def test_intervals_of_joint_frequencies_hold(name, method, target):
    rng, draws = np.random.default_rng(8), DRAWS // 10
    channel, names = channel_of(CHANNELS[name]), tuple(f"z{k}" for k in range(4))
    joint = np.outer([0.01, 0.19, 0.3, 0.5], [0.05, 0.25, 0.3, 0.4])
    for records in (100, 500):
        hits = np.zeros((4, 4))
        for _ in range(draws):
            pairs = rng.multinomial(records, joint.ravel()).reshape(4, 4)
            labels = np.stack(
                [released(rng, channel.matrix, column) for column in pairs.T], axis=1
            )
            cells = zip(channel.outputs, labels.tolist(), strict=True)
            counts = {
                (y, z): n for y, row in cells for z, n in zip(names, row, strict=True)
            }
            found = estimate_joint(
                channel, counts, method=method, target=target, level=LEVEL
            )
            hits += holds(
                found.lower,
                found.upper,
                joint if target == "population" else pairs / records,
            )
        least, mean = hits.min() / draws, hits.mean() / draws
        print(
            f"\n{name}, {method}, {target}, {records} records: least {least:.3f}, mean {mean:.3f}"
        )
        assert least >= LEVEL - slack(draws)
