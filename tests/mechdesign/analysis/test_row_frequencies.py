"""Frequencies from released rows: scores against the exact law of the channel, coverage, refusals."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest

import mechdesign as md
from mechdesign.analysis.row_frequencies import _factor, estimate_rows
from mechdesign.analysis.row_paths import paths_of
from mechdesign.core.errors import InputError
from mechdesign.formats.cells import Encoded, encode

COLUMNS = ("a", "b")


def people(records=900, seed=3):
    """Two useful columns that both depend on the sensitive one."""
    chance = np.random.default_rng(seed)
    secret = chance.choice(["s", "t"], records, p=[0.4, 0.6])
    a = np.where(
        chance.random(records) < 0.6, secret, chance.choice(["x", "y"], records)
    )
    b = np.where(
        chance.random(records) < 0.5, a, chance.choice(["u", "v", "w"], records)
    )
    return pd.DataFrame(
        {"secret": secret, "a": a, "b": b, "k": chance.choice(["m", "n"], records)}
    )


@pytest.fixture(scope="module", params=["truth", "information"])
def channel(request):
    return md.design_rows(
        people(),
        sensitive="secret",
        release=COLUMNS,
        notion=md.LIP(0.4),
        objective=request.param,
    ).channel


def encoded(rows, names):
    return {
        name: encode([row[k] for row in rows], name) for k, name in enumerate(names)
    }


def law_of(channel, row):
    """Released rows and their exact probabilities."""
    law = channel.distribution(row)
    return list(law), np.array([float(share) for share in law.values()])


def test_scores_enclose_the_indicator_in_expectation(channel):
    """E[l(y) | x] <= 1{x_j = t} <= E[h(y) | x] for every row that the channel knows; equal where a
    symbol is identified.
    """
    frame = people()
    identified = 0
    for row in {tuple(row) for row in frame[["a", "b"]].itertuples(index=False)}:
        outputs, shares = law_of(channel, row)
        columns = encoded(outputs, channel.output_columns)
        paths = paths_of(channel, columns)
        for k, name in enumerate(COLUMNS):
            factor = _factor(paths, columns, name)
            low = shares @ factor.lower[factor.keys]
            high = shares @ factor.upper[factor.keys]
            indicator = np.array([symbol == row[k] for symbol in factor.symbols])
            assert (low <= indicator + 1e-9).all()
            assert (high >= indicator - 1e-9).all()
            exact = np.isclose(low, high)
            identified += int(exact.sum())
            assert np.allclose(low[exact], indicator[exact])
    assert identified > 0


def test_products_enclose_pairs_in_expectation(channel):
    frame = people()
    for row in {tuple(row) for row in frame[["a", "b"]].itertuples(index=False)}:
        outputs, shares = law_of(channel, row)
        columns = encoded(outputs, channel.output_columns)
        paths = paths_of(channel, columns)
        first, second = (_factor(paths, columns, name) for name in COLUMNS)
        for s, t in product(range(len(first.symbols)), range(len(second.symbols))):
            bounds = np.array(
                [
                    one[first.keys, s] * other[second.keys, t]
                    for one in (first.lower, first.upper)
                    for other in (second.lower, second.upper)
                ]
            )
            truth = float((first.symbols[s], second.symbols[t]) == row)
            assert shares @ bounds.min(axis=0) <= truth + 1e-9
            assert shares @ bounds.max(axis=0) >= truth - 1e-9


def test_intervals_hold_the_truth_and_stay_within_zero_and_one(channel):
    frame = people(20_000, seed=8)
    held = tried = 0
    for seed in range(20):
        sample = frame.sample(1500, random_state=seed, replace=True).reset_index(
            drop=True
        )
        released = channel.apply(sample[["a", "b"]], insecure_seed=seed)
        columns = {name: encode(released[name], name) for name in released.columns}
        columns["k"] = encode(sample["k"], "k")
        for names in (["a"], ["b"], ["a", "b"], ["b", "k"]):
            estimate = estimate_rows(channel, columns, names)
            assert (estimate.lower >= 0.0).all()
            assert (estimate.upper <= 1.0).all()
            assert (estimate.lower <= estimate.estimates).all()
            assert (estimate.estimates <= estimate.upper).all()
            for k, texts in enumerate(estimate.symbols):
                truth = (frame[names] == list(texts)).all(axis=1).mean()
                held += estimate.lower[k] <= truth <= estimate.upper[k]
                tried += 1
    assert held / tried > 0.94


def test_refusals(channel):
    released = channel.apply(people(50)[["a", "b"]], insecure_seed=1)
    columns = {name: encode(released[name], name) for name in released.columns}
    with pytest.raises(InputError, match=r"level \(2\) must be a number in \(0, 1\)"):
        estimate_rows(channel, columns, ["a"], level=2)
    with pytest.raises(InputError, match="name at least one column"):
        estimate_rows(channel, columns, [])
    first = channel.output_columns[0]
    with pytest.raises(InputError, match="is named twice"):
        estimate_rows(channel, columns, [first, first])
    with pytest.raises(InputError, match="there is no column 'zz'"):
        estimate_rows(channel, columns, ["zz"])
    strange = dict(columns)
    strange[first] = Encoded(np.zeros(50, np.int32), ("never",))
    with pytest.raises(InputError, match=r"record 1 .* cannot come from this channel"):
        estimate_rows(channel, strange, [first])
    del strange[first]
    with pytest.raises(InputError, match="there is no column"):
        estimate_rows(channel, strange, ["b"])
