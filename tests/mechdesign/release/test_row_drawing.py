"""Draws of released rows: the law, the same draws again, and records that the channel does not
know.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import mechdesign as md
from mechdesign.formats.cells import encoded_columns
from mechdesign.release.draws import NumberedRecords, RowNumbers
from mechdesign.release.row_drawing import RowRelease, row_channel_digest


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(11)
    a = rng.integers(0, 3, 2000)
    b = np.where(a == 0, 0, rng.integers(0, 3, 2000))
    s = rng.random(2000) < 0.2 + 0.15 * a + 0.05 * b
    return pd.DataFrame(
        {
            "s": np.where(s, "yes", "no"),
            "a": np.array(list("xyz"))[a],
            "b": b,
            "k": np.array(list("uv"))[(a > 0).astype(int)],
            "other": "kept nowhere",
        }
    )


@pytest.fixture(scope="module")
def channel(frame):
    return md.design_rows(
        frame, sensitive="s", release=["a", "b"], notion=md.LIP(0.15), time_limit=600.0
    ).channel


def test_released_columns_and_nothing_else(channel, frame):
    released = channel.apply(frame, key=md.Key.fresh())
    assert list(released.columns) == ["a", "b"]
    assert len(released) == len(frame)
    assert set(released["a"]) <= set("xyz")
    assert released["b"].dtype == frame["b"].dtype
    assert list(released.index) == list(frame.index)


def test_frames_of_every_kind_have_the_same_draws(channel, frame):
    one = channel.apply(frame, insecure_seed=4)
    two = channel.apply(pl.from_pandas(frame), insecure_seed=4)
    three = channel.apply(pa.Table.from_pandas(frame), insecure_seed=4)
    assert isinstance(two, pl.DataFrame)
    assert isinstance(three, pa.Table)
    assert one["a"].tolist() == two["a"].to_list() == three["a"].to_pylist()
    assert one["b"].tolist() == two["b"].to_list() == three["b"].to_pylist()


def test_parts_of_a_frame_have_the_draws_of_the_whole(channel, frame):
    key = md.Key.insecure(9)
    whole = channel.apply(frame, key=key)
    parts = [
        channel.apply(frame[:700], key=key),
        channel.apply(frame[700:], key=key, first_row=700),
    ]
    assert pd.concat(parts).equals(whole)
    release = RowRelease(channel, key)
    numbers = np.arange(len(frame))[::-1]
    cells = encoded_columns(frame[::-1], ["a", "b"])
    drawn = release.draw(cells, NumberedRecords(numbers))
    texts = np.array(release.texts[0])[drawn[0]][::-1]
    assert texts.tolist() == whole["a"].tolist()


def test_another_key_gives_other_draws(channel, frame):
    one = channel.apply(frame, insecure_seed=1)
    assert not one.equals(channel.apply(frame, insecure_seed=2))


def test_levels_have_numbers_of_their_own(channel):
    """With one number for both levels only some pairs could come; all pairs of positive probability
    do.
    """
    row = ("z", "2")
    law = channel.distribution(row)
    many = pd.DataFrame({"a": ["z"] * 200_000, "b": ["2"] * 200_000})
    released = channel.apply(many, insecure_seed=7)
    counts = released.value_counts().to_dict()
    for texts, share in law.items():
        expected = float(share) * len(many)
        found = counts.get(texts, 0)
        assert abs(found - expected) <= 6.0 * np.sqrt(expected) + 6.0
    assert set(counts) <= set(law)


def test_identifiers_give_the_same_draws_in_any_order(channel, frame):
    key = md.Key.insecure(5)
    names = [f"p{i}" for i in range(len(frame))]
    whole = channel.apply(frame, key=key, identity=names)
    turned = channel.apply(frame[::-1], key=key, identity=names[::-1])
    assert turned[::-1].equals(whole)
    with pytest.raises(
        md.InputError, match="the identifier belongs to records with different"
    ):
        channel.apply(frame, key=key, identity=["p0"] * len(frame))
    with pytest.raises(md.InputError, match="identity has 1 entries"):
        channel.apply(frame, key=key, identity=["p0"])


def test_given_columns_are_released_as_they_are(frame):
    channel = md.design_rows(
        frame,
        sensitive="s",
        release=["b"],
        given="k",
        promise="relative",
        notion=md.LIP(0.1),
        time_limit=600.0,
    ).channel
    released = channel.apply(frame, insecure_seed=1)
    assert list(released.columns) == ["k", "b"]
    assert released["k"].tolist() == frame["k"].tolist()


def test_free_outputs_have_one_column_for_a_level(frame):
    channel = md.design_rows(
        frame,
        sensitive="s",
        release=[("a", "b")],
        objective="information",
        notion=md.LIP(0.15),
        time_limit=600.0,
    ).channel
    released = channel.apply(frame, insecure_seed=1)
    assert list(released.columns) == ["a,b"]
    assert set(released["a,b"]) <= set(channel.labels[0])


def test_unknown_symbols_are_refused_or_get_the_marginal(channel, frame):
    some = frame[:50].copy()
    some.loc[3, "a"] = "new"
    with pytest.raises(md.InputError, match="entry 3"):
        channel.apply(some, insecure_seed=1)
    policy = md.Policy(unknown="marginal")
    released = channel.apply(some, insecure_seed=1, policy=policy)
    known = [i for i in range(50) if i != 3]
    plain = channel.apply(frame[:50], insecure_seed=1)
    assert released.iloc[known].equals(plain.iloc[known])
    assert released["a"][3] in set("xyz")


def test_combinations_that_no_record_had(frame):
    """x never comes with b = 1: at some node this symbol is unknown, though the column knows it."""
    channel = md.design_rows(
        frame, sensitive="s", release=["a", "b"], notion=md.LIP(5.0), time_limit=600.0
    ).channel
    some = pd.DataFrame({"a": ["x"], "b": [1]})
    with pytest.raises(md.InputError, match="no record of its table") as refused:
        channel.apply(some, insecure_seed=1)
    assert "entry 0" in str(refused.value)
    with pytest.raises(md.InputError, match="no record of its table"):
        channel.distribution(("x", "1"))
    released = channel.apply(some, policy=md.Policy(unknown="marginal"))
    assert released["b"].tolist() == [0]


def test_the_marginal_above_levels_that_are_constant(frame):
    """A node of less mass than `least_mass` is constant, here every one below the first level."""
    channel = md.design_rows(
        frame, sensitive="s", release=["a", "b"], notion=md.LIP(0.15), least_mass=0.95
    ).channel
    root, below = channel.tree.levels
    assert not root.constant.any()
    assert below.constant.all()
    some = frame.assign(a=["unheard of", *frame["a"][1:]])
    policy = md.Policy(unknown="marginal")
    released = channel.apply(some, policy=policy, insecure_seed=5)
    asked = channel.apply(frame, insecure_seed=5)
    assert released[1:].equals(asked[1:])
    assert released["a"][0] in set("xyz")


def test_the_marginal_needs_the_table(channel, frame):
    with pytest.raises(md.InputError, match="carries none"):
        channel.public().apply(frame, policy=md.Policy(unknown="marginal"))
    with pytest.raises(md.InputError, match="refuse or marginal"):
        channel.apply(frame, policy=md.Policy(unknown="output:x"))


def test_missing_cells_are_refused(channel, frame):
    some = frame[:9].copy()
    some.loc[2, "a"] = None
    with pytest.raises(md.InputError, match="empty cell"):
        channel.apply(some, insecure_seed=1)


def test_a_public_channel_draws_the_same(channel, frame):
    one = channel.apply(frame, insecure_seed=3)
    assert channel.public().apply(frame, insecure_seed=3).equals(one)
    assert row_channel_digest(channel.public()) == row_channel_digest(channel)


def test_a_missing_column_is_named(channel, frame):
    with pytest.raises(md.InputError, match="'b'"):
        channel.apply(frame.drop(columns="b"), insecure_seed=1)


def test_sparse_lookups_give_the_same(channel, frame, monkeypatch):
    dense = channel.apply(frame, insecure_seed=3)
    monkeypatch.setattr("mechdesign.release.row_drawing.MOST_PLACES", 0)
    assert channel.apply(frame, insecure_seed=3).equals(dense)


def test_the_law_of_counts_over_levels(channel, frame):
    """Codes point to the texts of their columns."""
    release = RowRelease(channel, md.Key.insecure(0))
    cells = encoded_columns(frame, ["a", "b"])
    drawn = release.draw(cells, RowNumbers(0, len(frame)))
    assert release.names == ("a", "b")
    for codes, texts in zip(drawn, release.texts, strict=True):
        assert codes.min() >= 0
        assert codes.max() < len(texts)
