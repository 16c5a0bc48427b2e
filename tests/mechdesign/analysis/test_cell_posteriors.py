"""Posteriors of true cells from released rows: Bayes' rule by enumeration, and refusals."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import mechdesign as md
from mechdesign.analysis import row_posteriors
from mechdesign.core.errors import InputError


def people(records=900, seed=3):
    """Three useful columns that depend on the sensitive one and on each other."""
    chance = np.random.default_rng(seed)
    secret = chance.choice(["s", "t"], records, p=[0.4, 0.6])
    a = np.where(
        chance.random(records) < 0.6, secret, chance.choice(["x", "y"], records)
    )
    b = np.where(
        chance.random(records) < 0.5, a, chance.choice(["u", "v", "w"], records)
    )
    c = np.where(chance.random(records) < 0.5, b, chance.choice(["p", "q"], records))
    k = chance.choice(["m", "n"], records)
    return pd.DataFrame({"secret": secret, "a": a, "b": b, "c": c, "k": k})


def designed(objective="truth", given=("k",), least_mass=None):
    return md.design_rows(
        people(),
        sensitive="secret",
        release=("a", ("b", "c")),
        given=given,
        notion=md.LIP(0.4),
        promise="relative" if given else "total",
        objective=objective,
        least_mass=least_mass,
    ).channel


def by_enumeration(channel, released, column):
    """P(cell | released row) from the exact law of every row of the table."""
    frame = people()
    names = [*(name for v in channel.given for name in v.columns), "a", "b", "c"]
    masses: dict[str, float] = {}
    for row, count in frame[names].value_counts().items():
        law = channel.distribution(dict(zip(names, row, strict=True)))
        share = float(law.get(released, 0)) * count
        symbol = row[names.index(column)]
        masses[symbol] = masses.get(symbol, 0.0) + share
    total = sum(masses.values())
    return {symbol: mass / total for symbol, mass in masses.items()}


@pytest.mark.parametrize("objective", ["truth", "information"])
@pytest.mark.parametrize("given", [(), ("k",)])
def test_the_posteriors_are_those_of_bayes_rule(objective, given):
    channel = designed(objective, given)
    released = channel.apply(people().head(40), insecure_seed=5)
    posteriors = row_posteriors(channel, released)
    assert list(posteriors) == ["a", "b", "c"]
    rows = list(released.itertuples(index=False, name=None))
    for column, (symbols, matrix) in posteriors.items():
        assert matrix.sum(axis=1) == pytest.approx(np.ones(len(rows)))
        for row, shares in zip(rows, matrix, strict=True):
            expected = by_enumeration(channel, row, column)
            found = dict(zip(symbols, shares, strict=True))
            assert found == pytest.approx(expected, abs=1e-12)


def test_a_level_that_is_released_as_a_constant_says_nothing():
    """Rare beginnings end in a constant, and the posteriors are still those of Bayes' rule."""
    channel = designed(least_mass=0.3)
    assert channel.tree.levels[1].constant.any()
    released = channel.apply(people().head(40), insecure_seed=5)
    symbols, matrix = row_posteriors(channel, released)["b"]
    rows = released.itertuples(index=False, name=None)
    for row, shares in zip(rows, matrix, strict=True):
        found = dict(zip(symbols, shares, strict=True))
        assert found == pytest.approx(by_enumeration(channel, row, "b"), abs=1e-12)


def test_portions_give_the_same_posteriors(monkeypatch):
    channel = designed()
    released = channel.apply(people(), insecure_seed=5)
    whole = row_posteriors(channel, released)
    monkeypatch.setattr("mechdesign.analysis.cell_posteriors.CELLS_AT_ONCE", 1)
    for name, (_, matrix) in row_posteriors(channel, released).items():
        assert matrix == pytest.approx(whole[name].matrix, abs=1e-14)


def test_the_mean_posterior_of_many_released_records_is_near_the_true_frequency():
    """E[P(x|Y)] = P(x): what the posteriors add up to is the table again."""
    frame = people()
    many = pd.concat([frame] * 20, ignore_index=True)
    channel = designed()
    posteriors = row_posteriors(channel, channel.apply(many, insecure_seed=5))
    for name, (symbols, matrix) in posteriors.items():
        shares = frame[name].value_counts(normalize=True)
        assert matrix.mean(axis=0) == pytest.approx(
            [shares[symbol] for symbol in symbols], abs=0.01
        )


def test_a_public_channel_has_no_prior():
    channel = designed()
    with pytest.raises(InputError, match="a public channel has no table"):
        row_posteriors(channel.public(), channel.apply(people(), insecure_seed=5))


def test_a_row_that_the_channel_cannot_release_is_refused():
    channel = designed()
    released = channel.apply(people(), insecure_seed=5)
    released.loc[2, "a"] = "z"
    with pytest.raises(InputError, match="record 3 of the released table cannot come"):
        row_posteriors(channel, released)


def test_a_missing_column_is_named():
    channel = designed()
    released = channel.apply(people(), insecure_seed=5)
    with pytest.raises(InputError, match="'c'"):
        row_posteriors(channel, released.drop(columns="c"))
