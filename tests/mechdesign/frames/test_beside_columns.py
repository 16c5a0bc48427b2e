"""What a frame holds beside the cells of its columns: index, notes, categories; one key twice."""

from __future__ import annotations

import io
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from mechdesign import sanitise
from mechdesign.core.errors import InputError
from tests.cases.released_records import KEY, drawn_by_hand, mixing_channel, people

CODES = {"a": 3, "b": 5, "c": 7}


@pytest.fixture
def channel():
    return mixing_channel()


def test_an_index_that_is_the_useful_column_is_left_out(channel):
    """It came back as it was, as the index of the release."""
    frame = people(300)
    released = sanitise(frame.set_index("job", drop=False), channel, key=KEY)
    assert released.index.equals(pd.RangeIndex(300))
    assert released["job"].tolist() == drawn_by_hand(channel, frame["job"])
    with pytest.raises(
        InputError, match="the index 'job' looks like the useful column"
    ):
        sanitise(frame.set_index("job", drop=False), channel, key=KEY, keep="all")


@pytest.mark.parametrize("name", ["k", None])
def test_an_index_of_codes_is_refused(channel, name):
    frame = people(3000)
    codes = pd.Index(frame["job"].map(CODES).to_numpy(), name=name)
    # The leak: the code tells the symbol of every record.
    assert frame["job"].groupby(codes).nunique().max() == 1
    with pytest.raises(
        InputError,
        match=r"take the index off \(reset_index\): the column 'index level 0.*' stands for the useful",
    ):
        sanitise(frame.set_index(codes), channel, key=KEY, keep_index=True)
    levels = pd.MultiIndex.from_arrays([frame["n"], codes], names=[None, None])
    with pytest.raises(
        InputError, match="'index level 1' stands for the useful column"
    ):
        sanitise(frame.set_index(levels), channel, key=KEY, keep_index=True)


def test_an_index_of_codes_of_a_sensitive_column_is_refused(channel):
    frame = people(3000)
    secret = np.random.default_rng(2).choice([*"uvw"], 3000)
    marked = frame.assign(rel=secret).set_index(np.char.add("code ", secret))
    with pytest.raises(InputError, match="'index level 0' stands for the sensitive"):
        sanitise(marked, channel, key=KEY, keep_index=True)
    named = frame.set_index(pd.Index(range(3000), name="rel code"))
    with pytest.raises(
        InputError, match="the index 'rel code' looks like the sensitive"
    ):
        sanitise(named, channel, key=KEY, keep="all")


@pytest.mark.parametrize("labels", ["secret", "identifier", "old order", "several"])
def test_rows_get_new_labels(channel, labels):
    """An index without a name held the secret, an identifier, or the order before a shuffle."""
    frame = people(300).sample(frac=1.0, random_state=1)
    foreign = {
        "secret": frame["job"].to_numpy(),
        "identifier": frame["id"].to_numpy(),
        "old order": frame.index,
        "several": pd.MultiIndex.from_arrays(
            [frame["id"], frame["n"]], names=[None] * 2
        ),
    }
    frame.index = foreign[labels]
    released = sanitise(frame, channel, key=KEY, row_numbers="n")
    assert released.index.equals(pd.RangeIndex(300))


def test_the_range_of_a_slice_stays(channel):
    """So a released slice goes back into its frame, and a partition goes on from the one before."""
    frame = people(300)[100:200]
    released = sanitise(frame, channel, key=KEY, row_numbers="n")
    assert released.index.equals(pd.RangeIndex(100, 200))


def test_labels_of_rows_stay_where_they_are_asked_for(channel):
    """By them frames are aligned, as the parts of a train-test split."""
    frame = people(300).sample(frac=0.5, random_state=1)
    options = {"key": KEY, "row_numbers": "n", "keep": "all"}
    released = sanitise(frame, channel, keep_index=True, **options)
    pd.testing.assert_index_equal(released.index, frame.index)
    assert sanitise(frame, channel, **options).index.equals(pd.RangeIndex(150))
    with pytest.raises(
        InputError, match="the index would give the old order of shuffled"
    ):
        sanitise(frame, channel, key=KEY, keep_index=True, shuffle=True)
    with pytest.raises(InputError, match=r"keep_index \('no'\) must be True or False"):
        sanitise(frame, channel, key=KEY, keep_index="no")


def test_labels_that_restore_a_telling_order_are_refused(channel):
    """Numbers in the order of the jobs, the rows shuffled later: sorted by them the jobs are back."""
    ordered = people(3000).sort_values("job", ignore_index=True)
    frame = ordered.sample(frac=1.0, random_state=1)
    with pytest.raises(
        InputError,
        match=r"take the index off \(reset_index\): sorted by the column 'index level 0'",
    ):
        sanitise(frame, channel, key=KEY, keep_index=True)
    kept = sanitise(frame, channel, key=KEY, keep_index=True, keep_order=True)
    assert kept.index.equals(frame.index)
    named = frame.rename_axis("place")
    with pytest.raises(InputError, match="sorted by the column 'index level 0, place'"):
        sanitise(named, channel, key=KEY, keep="all", drop=["n", "id"])


def test_a_shuffled_release_has_new_labels(channel):
    """The old labels restored the order: sorting by them was enough."""
    frame = people(300)
    frame.index = frame.index * 2
    released = sanitise(frame, channel, key=KEY, shuffle=True)
    assert released.index.equals(pd.RangeIndex(300))
    assert released["job"].tolist() != drawn_by_hand(channel, frame["job"])


def test_levels_of_an_index_are_those_of_the_released_records(channel):
    frame = people(300).assign(kind=["secret", "u", "v"] * 100)
    part = frame.set_index(["kind", "n"])
    part = part[part.index.get_level_values("kind") != "secret"]
    # The leak: a part of a frame keeps the levels of the whole.
    assert "secret" in part.index.levels[0]
    released = sanitise(part, channel, key=KEY, keep="all")
    assert released.index.levels[0].tolist() == ["u", "v"]
    pd.testing.assert_index_equal(released.index, part.index)


def kinds(count: int) -> pd.Series:
    """Categories of which one belongs to no record; the first records stand in another order."""
    texts = (["v", "u"] * count)[:count]
    return pd.Series(pd.Categorical(texts, categories=["secret", "v", "u"]))


def ipc_bytes(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def test_categories_without_records_are_left_out(channel):
    frame = people(300).assign(kind=kinds(300))
    released = sanitise(frame, channel, key=KEY, keep="kind")
    assert released["kind"].cat.categories.tolist() == ["v", "u"]
    assert released["kind"].tolist() == frame["kind"].tolist()
    enum = pl.from_pandas(people(300)).with_columns(
        kind=pl.Series(kinds(300).tolist(), dtype=pl.Enum(["secret", "u", "v"]))
    )
    assert b"secret" in ipc_bytes(enum.to_arrow())
    kept = sanitise(enum, channel, key=KEY, keep="kind")
    assert kept.schema["kind"] == pl.Enum(["u", "v"])
    assert kept["kind"].to_list() == frame["kind"].tolist()
    assert b"secret" not in ipc_bytes(kept.to_arrow())
    whole = pl.Series(["secret", *kinds(300).tolist()], dtype=pl.Categorical)
    loose = pl.from_pandas(people(300)).with_columns(kind=whole[1:])
    assert b"secret" not in ipc_bytes(
        sanitise(loose, channel, key=KEY, keep="kind").to_arrow()
    )


@pytest.mark.parametrize("ordered", [False, True])
def test_dictionaries_hold_the_released_records_alone(channel, ordered):
    codes = pa.array([1, 2, None] * 100, pa.int8())
    dictionary = pa.array(["secret", "v", "u"])
    coded = pa.DictionaryArray.from_arrays(codes, dictionary, ordered=ordered)
    frame = people(300)
    table = pa.table({"job": frame["job"], "n": frame["n"], "kind": coded})
    # The leak: the entry of no record travels with the table.
    assert b"secret" in ipc_bytes(table)
    released = sanitise(table, channel, key=KEY, keep="kind")
    assert b"secret" not in ipc_bytes(released)
    assert released["kind"].to_pylist() == table["kind"].to_pylist()
    assert released.schema.field("kind").type == coded.type
    batch = sanitise(table.to_batches()[0], channel, key=KEY, keep="kind")
    assert batch.column("kind").dictionary.to_pylist() == ["v", "u"]


def test_a_shuffled_dictionary_is_in_the_new_order(channel):
    """The dictionary kept the order of the first records, and undid the shuffle."""
    frame = people(400).assign(house=[f"h{i // 20}" for i in range(400)])
    table = pa.table({"job": frame["job"], "house": frame["house"]})
    at = table.schema.get_field_index("house")
    table = table.set_column(at, "house", table["house"].dictionary_encode())
    old = table["house"].chunk(0).dictionary.to_pylist()
    options = {"key": KEY, "shuffle": True, "keep": "house"}
    released = sanitise(table, channel, **options)
    houses = released["house"].to_pylist()
    new = released["house"].combine_chunks().dictionary.to_pylist()
    assert sorted(new) == sorted(old)
    assert new == list(dict.fromkeys(houses)) != old
    categories = pd.Categorical(frame["house"], categories=old)
    in_pandas = sanitise(frame.assign(house=categories), channel, **options)
    assert in_pandas["house"].cat.categories.tolist() == list(
        dict.fromkeys(in_pandas["house"])
    )
    # Categories with an order of their own keep it.
    ordered = pd.Categorical(frame["house"], categories=old, ordered=True)
    in_order = sanitise(frame.assign(house=ordered), channel, **options)
    assert in_order["house"].cat.categories.tolist() == old


def test_notes_of_the_user_are_left_out(channel):
    frame = people(30)
    frame.attrs["jobs"] = frame["job"].tolist()
    assert sanitise(frame, channel, key=KEY, keep="all").attrs == {}
    assert sanitise(frame, channel, key=KEY, keep="all", shuffle=True).attrs == {}
    table = pa.Table.from_pandas(frame)
    field = table.schema.field("n").with_metadata({"of": "secret"})
    schema = table.schema.set(table.schema.get_field_index("n"), field)
    noted = table.cast(schema.with_metadata({**schema.metadata, b"about": b"secret"}))
    assert b"attributes" in noted.schema.metadata[b"pandas"]
    released = sanitise(noted, channel, key=KEY, keep="all")
    assert list(released.schema.metadata) == [b"pandas"]
    assert b"attributes" not in released.schema.metadata[b"pandas"]
    assert b"secret" not in ipc_bytes(released)


def test_one_key_on_two_columns_draws_them_apart(channel):
    """A draw is a function of key, channel, column and record."""
    frame = people(300)
    other = frame["job"].sample(frac=1, random_state=1).tolist()
    frame = frame.assign(u1=frame["job"], u2=other, job=frame["job"])
    options = {"key": KEY, "identity": "id"}
    names = frame["id"].tolist()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        own = sanitise(frame, channel, **options)
        second = sanitise(frame, channel, columns={"job": "u2"}, **options)
    # The channel's own column has the draws of key, channel and record.
    assert own["job"].tolist() == drawn_by_hand(channel, frame["job"], names)
    key = KEY.derived("columns", "text", "u2")
    assert second["u2"].tolist() == drawn_by_hand(channel, other, names, key)
    # u1 is the same column under another name: its records are drawn a second time.
    with pytest.warns(UserWarning, match="have now been drawn a second time"):
        first = sanitise(frame, channel, columns={"job": "u1"}, **options)
    assert first["u1"].tolist() != own["job"].tolist()


def test_a_renamed_table_is_the_same_column(channel):
    """There is no other column of the old name, so it is not beside the new one."""
    frame = people(300)
    sanitise(frame, channel, key=KEY)
    renamed = frame.rename(columns={"job": "work"}).iloc[::-1]
    with pytest.warns(UserWarning, match="have now been drawn a second time"):
        sanitise(renamed, channel, columns={"job": "work"}, key=KEY)
