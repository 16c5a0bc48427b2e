"""Released own symbols are values of the source, to the last digit, in its type."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import mechdesign as md

SIZE = 600


def frame_of(values, dtype=None):
    rng = np.random.default_rng(2)
    places = rng.integers(0, len(values), SIZE)
    column = pd.Series([values[place] for place in places], dtype=dtype)
    secret = np.where(rng.random(SIZE) < 0.3 + 0.2 * (places == 0), "y", "n")
    other = np.array(list("uv"))[rng.integers(0, 2, SIZE)]
    return pd.DataFrame({"s": secret, "a": column, "b": other, "id": range(SIZE)})


def channel_of(table):
    return md.design(
        table,
        md.LIP(0.3),
        sensitive="s",
        useful="a",
        unit="record",
        missing="symbol",
        objective="truth",
    ).channel


COLUMNS = {
    "uint64": frame_of([2**64 - 1, 2**63, 5], "uint64"),
    "UInt64": frame_of([2**64 - 1, None, 2**53 + 1], "UInt64"),
    "int64": frame_of([2**63 - 1, -(2**63), 2**53 + 1], "int64"),
    "float": frame_of([0.1, np.nan, 1e300], "float64"),
    "nanoseconds": frame_of(
        ["2021-02-02 03:04:05.123456789", None, "1970-01-01"], "datetime64[ns]"
    ),
    "boolean": frame_of([True, None], "boolean"),
    "period": frame_of(list(pd.period_range("2020-01", periods=3, freq="M"))),
}


def released_of(table):
    channel = md.design(
        table,
        md.LIP(0.3),
        sensitive="s",
        release=["a", "b"],
        smallest_group=1,
        missing="symbol",
    ).channel
    return md.sanitise(table, channel, insecure_seed=1)


@pytest.mark.parametrize("name", [name for name in COLUMNS if name != "period"])
def test_pandas_columns_keep_type_and_digits(name):
    table = COLUMNS[name]
    released = released_of(table)
    assert released["a"].dtype == table["a"].dtype
    # Counts are fixed: every row is released as often as the table has it.
    for before, after in zip(
        table.value_counts(["a", "b"], dropna=False).sort_index().items(),
        released.value_counts(["a", "b"], dropna=False).sort_index().items(),
        strict=True,
    ):
        assert repr(before) == repr(after)


@pytest.mark.parametrize("name", [name for name in COLUMNS if name != "period"])
def test_polars_columns_keep_type_and_digits(name):
    table = pl.from_pandas(COLUMNS[name])
    released = released_of(table)
    assert released["a"].dtype == table["a"].dtype
    as_texts = [pl.col("a").cast(pl.String), pl.col("b")]
    one = table.select(as_texts).rows()
    other = released.select(as_texts).rows()
    assert sorted(map(repr, one)) == sorted(map(repr, other))


@pytest.mark.parametrize("kind", [pa.string(), pa.dictionary(pa.int32(), pa.string())])
def test_texts_of_arrow_in_pandas_keep_their_type(kind):
    table = frame_of(["p", "q", None], pd.ArrowDtype(kind))
    with pytest.warns(UserWarning, match="missing cells of the released column 'a'"):
        released = released_of(table)
    assert released["a"].dtype == table["a"].dtype
    before = sorted(table["a"].fillna("").astype(str))
    assert sorted(released["a"].astype(str)) == before


def test_counts_are_fixed_where_arrow_does_not_hold_a_column():
    """What the records are is read from the cells that are drawn from."""
    table = frame_of([1, "1b", 2.5], object)
    with pytest.warns(UserWarning, match="column 'a' has the type str; its source"):
        released = released_of(table)
    texts = table["a"].astype(str).value_counts().to_dict()
    assert released["a"].value_counts().to_dict() == texts
    table = COLUMNS["period"]
    with pytest.warns(UserWarning, match="column 'a' has the type str; its source"):
        released = released_of(table)
    texts = table["a"].astype(str).value_counts().to_dict()
    assert released["a"].value_counts().to_dict() == texts


def released_alone(column, **options):
    """The column, released by itself as its own symbols."""
    table = pd.DataFrame({"s": COLUMNS["int64"]["s"], "a": column})
    design = md.design(table, md.LIP(0.3), sensitive="s", useful="a", objective="truth")
    return lambda frame: md.sanitise(frame, design.channel, insecure_seed=1, **options)


def test_a_column_that_loses_its_type_is_named():
    column = COLUMNS["period"]["a"]
    with pytest.warns(
        UserWarning,
        match=r"released column 'a' has the type str; its source has the type period\[M\]",
    ):
        released = released_alone(column)(pd.DataFrame({"a": column}))
    assert pd.api.types.is_string_dtype(released["a"])


def test_categories_that_lose_their_order_are_named(tmp_path):
    column = pd.Categorical(
        COLUMNS["int64"]["a"].astype(str), ordered=True
    )  # the order of texts
    table = pa.table({"a": pa.array(column)})
    release = released_alone(column)
    message = "categories of the released column 'a' have no order; those of its source"
    with pytest.warns(UserWarning, match=message):
        release(table)
    # pandas keeps the order, so there is nothing to say.
    assert release(table.to_pandas())["a"].dtype.ordered


def test_a_file_that_loses_the_order_of_categories_says_so(tmp_path):
    column = pd.Categorical(COLUMNS["int64"]["a"].astype(str), ordered=True)
    table = pd.DataFrame({"s": COLUMNS["int64"]["s"], "a": column})
    design = md.design(table, md.LIP(0.3), sensitive="s", useful="a", objective="truth")
    table.to_parquet(tmp_path / "in.parquet")
    result = md.sanitise_file(
        design.channel,
        tmp_path / "in.parquet",
        tmp_path / "out.parquet",
        insecure_seed=1,
    )
    assert any("have no order" in notice for notice in result.notices)


def test_missing_texts_that_come_back_empty_are_said():
    """A symbol for missing cells is the empty text, and no null."""
    rng = np.random.default_rng(3)
    cells = rng.choice(np.array(["a", "b", None], object), 400)
    people = pd.DataFrame({"s": rng.choice(["y", "n"], 400), "x": cells})
    design = md.design(
        people, md.LIP(2.0), sensitive="s", release="x", missing="symbol"
    )
    policy = md.Policy(missing="symbol")
    with pytest.warns(UserWarning, match="of the released column 'x' are empty texts"):
        released = md.sanitise(people, design.channel, insecure_seed=1, policy=policy)
    assert set(released["x"]) <= {"", "a", "b"}
    without = people.dropna()
    full = md.design(without, md.LIP(2.0), sensitive="s", release="x")
    # Warnings are errors here.
    md.sanitise(without, full.channel, insecure_seed=1)


def test_labels_say_so_of_missing_cells_too(tmp_path):
    rng = np.random.default_rng(3)
    numbers = rng.choice([1.5, 2.5, np.nan], 400)
    people = pd.DataFrame({"s": rng.choice(["y", "n"], 400), "x": numbers})
    design = md.design(people, md.LIP(2.0), sensitive="s", useful="x", missing="symbol")
    policy = md.Policy(missing="symbol")
    said = "of the released column 'x' are empty texts"
    with pytest.warns(UserWarning, match=said):
        md.sanitise(people, design.channel, insecure_seed=1, policy=policy)
    people.to_parquet(tmp_path / "in.parquet")
    people.to_csv(tmp_path / "in.csv", index=False)
    for kind, notes in (("parquet", 1), ("csv", 0)):
        result = md.sanitise_file(
            design.channel,
            tmp_path / f"in.{kind}",
            tmp_path / f"out.{kind}",
            policy=policy,
            insecure_seed=1,
        )
        # An empty cell of a CSV stays one.
        assert sum(said in notice for notice in result.notices) == notes


def test_a_column_of_several_types_is_named():
    rng = np.random.default_rng(5)
    mixed = np.array([7, "seven", None], object)[rng.integers(0, 2, 300)]
    people = pd.DataFrame({"s": rng.choice(["y", "n"], 300), "x": mixed})
    design = md.design(people, md.LIP(2.0), sensitive="s", release="x")
    with pytest.warns(
        UserWarning, match="the type str; its source has the type int and"
    ):
        released = md.sanitise(people, design.channel, insecure_seed=1)
    assert set(released["x"]) <= {"7", "seven"}


def test_names_of_columns_are_texts():
    table = pd.DataFrame({1: ["y", "n"] * 20, 2: ["a", "b"] * 20})
    with pytest.raises(md.InputError, match="'1' is no text in this table: give its"):
        md.design(table, md.LIP(2.0), sensitive="1", release="2")


@pytest.mark.parametrize("name", [0, None, ("o", "p"), 2.5])
def test_other_columns_whose_names_are_no_texts(name):
    """A frame is released with them; where each column is looked at, the remedy is named."""
    table = pd.DataFrame({"j": ["y", "n"] * 20, "s": ["a", "b"] * 20, "o": [1, 2] * 20})
    channel = md.design(
        table, md.LIP(2.0), sensitive="s", release="j", unit="record"
    ).channel
    table.columns = pd.Index(["j", "s", name], dtype=object)
    released = md.sanitise(table, channel, key=md.Key.fresh(), keep_order=True)
    assert list(released.columns) == ["j"]
    message = "is no text in this table: give its columns names that are texts"
    with pytest.raises(md.InputError, match=message):
        md.assess(table, sensitive="s")
    with pytest.raises(md.InputError, match=message):
        md.check(channel, table[["j"]], original=table)
    with pytest.raises(md.InputError, match=message):
        md.judge(table, original=table, sensitive="s")


def test_a_name_that_is_no_text_is_answered_with_the_remedy():
    table = pd.DataFrame({1: ["y", "n"] * 20, 2: ["a", "b"] * 20})
    with pytest.raises(
        md.InputError, match=r"as texts \(frame.columns = frame.columns.map"
    ):
        md.design(table, md.LIP(2.0), sensitive=1, release=2)
    table.columns = pd.MultiIndex.from_tuples([("a", "x"), ("b", "x")])
    with pytest.raises(md.InputError, match="no text in this table"):
        md.design(table, md.LIP(2.0), sensitive="('a', 'x')", release="('b', 'x')")


LAZY = {
    "polars": lambda table: pl.from_pandas(table).lazy(),
    "dask": lambda table: pytest.importorskip("dask.dataframe").from_pandas(table, 3),
    "duckdb": lambda table: pytest.importorskip("duckdb").from_df(table),
}


@pytest.mark.parametrize("engine", LAZY)
def test_lazy_tables_say_what_frames_in_memory_say(engine):
    table = frame_of(["p", "q", None], "str")
    channel = channel_of(table)
    for frame in (table, LAZY[engine](table)):
        with pytest.warns(UserWarning, match="missing cells of the released column 'a"):
            md.sanitise(frame, channel, insecure_seed=1, identity="id")


@pytest.mark.parametrize(
    ("kind", "values", "after"),
    [
        ("HUGEINT", ["-1", "9" * 30], "HUGEINT"),
        ("UHUGEINT", ["1", "9" * 30], "UHUGEINT"),
        ("UUID", ["4ac7a9e9-607c-4c8a-84f3-843f0191e3f" + c for c in "ab"], "UUID"),
        ("TIMETZ", ["10:00:00+01", "11:00:00+00"], "TIME"),
    ],
)
def test_types_of_duckdb_that_arrow_lacks_come_back_or_are_named(kind, values, after):
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")
    relation = duckdb.from_df(frame_of(values)).project(f"s, a::{kind} as a, b, id")
    channel = channel_of(relation)
    if after == kind:
        released = md.sanitise(relation, channel, insecure_seed=1, identity="id")
        assert set(released["a"].fetchall()) == set(relation["a"].fetchall())
    else:
        with pytest.warns(UserWarning, match="'a' has the type TIME; its source has"):
            released = md.sanitise(relation, channel, insecure_seed=1, identity="id")
    assert str(released.types[0]) == after


@pytest.mark.parametrize("held_by", ["column", "frame"])
def test_a_draw_that_loses_the_type_of_its_column_says_so(held_by):
    table = COLUMNS["period"][["s", "a"]]
    design = md.design(table, md.LIP(0.3), sensitive="s", release="a", smallest_group=1)
    records = table["a"] if held_by == "column" else table
    message = (
        r"released column 'a' has the type str; its source has the type period\[M\]"
    )
    with pytest.warns(UserWarning, match=message):
        design.channel.apply(records, unit="record", insecure_seed=1)
    numbers = COLUMNS["int64"][["s", "a"]]
    design = md.design(
        numbers, md.LIP(0.3), sensitive="s", release="a", smallest_group=1
    )
    records = numbers["a"] if held_by == "column" else numbers
    # Warnings are errors here.
    design.channel.apply(records, unit="record", insecure_seed=1)


@pytest.mark.parametrize("way", ["apply", "sanitise"])
def test_records_of_people_that_lose_a_type_are_named(way):
    periods = pd.period_range("2020-01", periods=3, freq="M")
    rng = np.random.default_rng(4)
    person = np.repeat(np.arange(150), 2)
    table = pd.DataFrame(
        {
            "id": person,
            "s": np.where(person % 2 == 0, "y", "n"),
            "a": pd.Series(periods[rng.integers(0, 3, 300)]),
        }
    )
    design = md.design(table, md.LIP(1.0), sensitive="s", release="a", person="id")
    message = (
        r"released column 'a' has the type str; its source has the type period\[M\]"
    )
    release = design.channel.apply
    if way == "sanitise":
        release = partial(md.sanitise, channel=design.channel, shuffle=True)
    with pytest.warns(UserWarning, match=message):
        release(table, insecure_seed=1)


@pytest.mark.parametrize("held_by", ["column", "frame"])
def test_bins_are_texts_without_a_word(held_by):
    numbers = COLUMNS["int64"][["s"]].assign(a=np.arange(SIZE) % 90)
    design = md.design(
        numbers, md.LIP(0.3), sensitive="s", release="a", smallest_group=1, bins=30
    )
    records = numbers["a"] if held_by == "column" else numbers
    # Warnings are errors here.
    released = design.channel.apply(records, unit="record", insecure_seed=1)
    cells = released if held_by == "column" else released["a"]
    assert set(cells) <= {"[0, 30)", "[30, 60)", "[60, 90)"}
