"""Bounds of what independent draws of one person reach together, against all tuples of outputs."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mechdesign as md
from mechdesign.auditing.independent_draws import (
    outwards,
    reached,
    reached_by_draws,
)
from mechdesign.leaks.people_notice import composed_for_people
from tests.profiles import scaled


def lifts_of_tuples(law, prior, times):
    """P(s | outputs) / P(s) of every tuple of outputs that can come; `law` is P(y | s)."""
    total = sum(prior)
    found = []
    for outputs in product(range(len(law[0])), repeat=times):
        weights = []
        for s, weight in enumerate(prior):
            likelihood = Fraction(weight, total)
            for y in outputs:
                likelihood *= law[s][y]
            weights.append(likelihood)
        whole = sum(weights)
        if whole:
            found += [
                w / whole * total / p for w, p in zip(weights, prior, strict=True)
            ]
    return found


def designed(secrets, seed, epsilon):
    """A channel for one column, of a table with this many secrets, and its law."""
    chance = np.random.default_rng(seed)
    secret = chance.integers(0, secrets, 300)
    value = (secret + chance.integers(0, 3, 300)) % 3
    frame = pd.DataFrame({"s": secret.astype(str), "x": value.astype(str)})
    channel = md.design(
        frame, md.LIP(epsilon), sensitive="s", release="x", time_limit=2
    ).channel
    counts = pd.crosstab(frame["s"], frame["x"])
    outputs = sorted({y for x in counts.columns for y in channel.distribution([x])})
    law = []
    for s in counts.index:
        whole = int(counts.loc[s].sum())
        law.append(
            [
                sum(
                    Fraction(int(counts.loc[s, x]), whole)
                    * channel.distribution([x]).get(y, 0)
                    for x in counts.columns
                )
                for y in outputs
            ]
        )
    prior = [int(counts.loc[s].sum()) for s in counts.index]
    return channel, law, prior


@settings(max_examples=scaled(10), deadline=None)
@given(
    st.integers(2, 4), st.integers(0, 50), st.sampled_from([0.1, 0.5, 1.0]), st.data()
)
def test_no_tuple_of_outputs_reaches_beyond_the_bounds(secrets, seed, epsilon, data):
    """lowest <= P(s | y1, .., yn) / P(s) <= highest, with equality for two secrets."""
    channel, law, prior = designed(secrets, seed, epsilon)
    times = data.draw(st.integers(1, 3))
    lifts = lifts_of_tuples(law, prior, times)
    lowest, highest = reached_by_draws([channel], times)
    assert lowest <= min(lifts)
    assert max(lifts) <= highest
    if secrets == 2:
        assert outwards((min(lifts), max(lifts))) == (lowest, highest)


def test_more_draws_reach_further_and_one_what_the_channel_does():
    channel, law, prior = designed(2, 3, 0.5)
    before = (1.0, 1.0)
    for times in (1, 2, 5):
        lowest, highest = reached_by_draws([channel], times)
        assert lowest < before[0]
        assert highest > before[1]
        before = (lowest, highest)
    assert reached_by_draws([channel], 1) == outwards(
        (min(lifts_of_tuples(law, prior, 1)), max(lifts_of_tuples(law, prior, 1)))
    )
    # Through either of two channels, as far as through the one that tells more.
    weak, _, _ = designed(2, 3, 0.1)
    assert reached_by_draws([weak, channel], 2)[1] == pytest.approx(
        reached_by_draws([channel], 2)[1]
    )


def test_an_output_that_excludes_a_secret_leaves_nothing():
    frame = pd.DataFrame({"s": ["a", "a", "b", "b"], "x": ["u", "v", "v", "w"]})
    channel = md.design(frame, md.LDP(20), sensitive="s", release="x").channel
    lowest, _ = reached_by_draws([channel], 40)
    assert lowest < 1e-100
    assert reached([1, 1], []) == (1, 1)


def test_what_is_not_known_is_refused():
    channel, _, _ = designed(2, 1, 0.5)
    with pytest.raises(md.InputError, match="comes without its table"):
        reached_by_draws([channel.public()], 2)
    other, _, _ = designed(3, 1, 0.5)
    with pytest.raises(md.InputError, match="protect other secrets"):
        reached_by_draws([channel, other], 2)


def record_channel(secrets, seed):
    """A channel about records, and the panel that it was designed on."""
    chance = np.random.default_rng(seed)
    rows = []
    for person in range(40):
        secret = chance.integers(0, secrets)
        for _ in range(int(chance.integers(1, 4))):
            rows.append(
                (f"p{person}", str(secret), str((secret + chance.integers(3)) % 3))
            )
    frame = pd.DataFrame(rows, columns=["who", "s", "x"])
    channel = md.design(
        frame, md.LIP(0.4), sensitive="s", release="x", time_limit=2, unit="record"
    ).channel
    return channel, frame


def extremes_of_people(frame, channel, draws):
    """The smallest and largest lift over all people and all outputs of their own records, each
    drawn so often, by enumeration in fractions.
    """
    secrets = sorted(frame["s"].unique())
    values = sorted(frame["x"].unique())
    rows = {x: channel.distribution([x]) for x in values}
    share = {s: Fraction(int((frame["s"] == s).sum()), len(frame)) for s in secrets}
    within = {
        (s, x): Fraction(
            int(((frame["s"] == s) & (frame["x"] == x)).sum()),
            int((frame["s"] == s).sum()),
        )
        for s in secrets
        for x in values
    }

    def likelihood(outputs, s):
        total = Fraction(0)
        for x in values:
            product_ = within[s, x]
            for y in outputs:
                product_ *= rows[x].get(y, 0)
            total += product_
        return total

    low, high = Fraction(1), Fraction(1)
    for _, records in frame.groupby("who"):
        possible = [product(list(rows[x]), repeat=draws) for x in records["x"]]
        for outputs in product(*possible):
            weights = []
            for s in secrets:
                weight = share[s]
                for of_record in outputs:
                    weight *= likelihood(of_record, s)
                weights.append(weight)
            whole = sum(weights)
            if whole:
                for s, weight in zip(secrets, weights, strict=True):
                    low = min(low, weight / whole / share[s])
                    high = max(high, weight / whole / share[s])
    return low, high


@pytest.mark.parametrize("secrets", [2, 3])
@pytest.mark.parametrize(("seed", "draws"), [(0, 1), (1, 1), (2, 2)])
def test_the_worst_person_of_a_table_is_found(tmp_path, secrets, seed, draws):
    channel, frame = record_channel(secrets, seed)
    frame.to_csv(tmp_path / "panel.csv", index=False)
    found = composed_for_people(
        tmp_path / "panel.csv", [channel] * draws, None, ["who"]
    )
    low, high = extremes_of_people(frame, channel, draws)
    assert found.lowest <= low
    assert high <= found.highest
    assert found.people == 40
    assert found.records == len(frame)
    if secrets == 2:
        assert found.exact
        assert (found.lowest, found.highest) == outwards((low, high))
    else:
        assert not found.exact


def test_people_with_one_record_reach_what_one_record_does(tmp_path):
    channel, frame = record_channel(2, 4)
    frame["who"] = [f"q{k}" for k in range(len(frame))]
    frame.to_csv(tmp_path / "panel.csv", index=False)
    found = composed_for_people(tmp_path / "panel.csv", [channel], None, ["who"])
    assert found.above == 0
    assert (found.lowest, found.highest) == found.single
