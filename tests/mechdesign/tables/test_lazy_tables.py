"""Tables that are counted where the data are: the same joint tables and the same sentences as from
memory.
"""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechdesign.core.errors import InputError
from mechdesign.tables.joint import Joint
from tests.profiles import scaled

duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")
dask = pytest.importorskip("dask", reason="dask is not installed")
dd = pytest.importorskip("dask.dataframe", reason="dask is not installed")

DATABASE = duckdb.connect()


def in_dask(table: pa.Table):
    with dask.config.set({"dataframe.convert-string": False}):
        return dd.from_pandas(
            table.to_pandas(types_mapper=pd.ArrowDtype), npartitions=3
        )


LAZY = {
    "duckdb": DATABASE.from_arrow,
    "polars": lambda table: pl.from_arrow(table).lazy(),
    "dask": in_dask,
}

every = pytest.mark.parametrize("lazy", LAZY.values(), ids=LAZY)


@pytest.fixture(autouse=True)
def in_one_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


texts = st.sampled_from(
    ["a", "A", "01234", "1234", "NA", "nan", "?", " b", "é", "", "x, y", None]
)
numbers = st.sampled_from([1.0, 2.5, 0.1, 1e-5, -3.0, math.inf, math.nan, None])
days = st.sampled_from([dt.date(2024, 1, 31), dt.date(1969, 2, 1), None])
weights = st.sampled_from(
    [Decimal("0.10"), Decimal("2.00"), Decimal("12.34"), Decimal("0.00")]
)


def outcome(table, **options):
    """The joint table, or the sentence that refuses it."""
    try:
        return Joint.from_table(table, **options)
    except InputError as error:
        return str(error)


@every
@pytest.mark.parametrize("missing", ["refuse", "symbol", "drop"])
@settings(max_examples=scaled(12), deadline=None)
@given(
    records=st.lists(
        st.tuples(texts, st.booleans(), texts, numbers, days, weights), max_size=30
    ),
    useful=st.sampled_from(["text", "number", "day", ("text", "number")]),
    weight=st.sampled_from([None, "weight"]),
)
def test_the_table_is_the_one_from_memory(lazy, missing, records, useful, weight):
    """Texts, truth values, floats with NaN and gaps, dates, decimal weights; crossed and not."""
    schema = pa.schema({
        "group": pa.string(), "flag": pa.bool_(), "text": pa.string(),
        "number": pa.float64(), "day": pa.date32(), "weight": pa.decimal128(9, 2),
    })  # fmt: skip
    columns = zip(*records, strict=True) if records else [[]] * len(schema)
    table = pa.table([list(column) for column in columns], schema=schema)
    options = {
        "sensitive": ["group", "flag"],
        "useful": useful,
        "weight": weight,
        "missing": missing,
    }
    expected, found = outcome(table, **options), outcome(lazy(table), **options)
    if (
        isinstance(expected, str) and "has an empty cell" in expected
    ):  # of several columns, in any order
        assert found.partition("' ")[2] == expected.partition("' ")[2]
    else:
        assert found == expected


def test_integers_are_whole_in_every_engine_and_many_weights_are_exact():
    chance = np.random.default_rng(3)
    size = 2000
    frame = pd.DataFrame(
        {
            "s": chance.integers(0, 3, size),
            "x": chance.integers(-2, 3, size).astype("int8"),
            "w": chance.integers(1, 2**62, size),
        }
    )
    table = pa.Table.from_pandas(frame)
    expected = Joint.from_table(frame, sensitive="s", useful="x", weight="w")
    assert expected.total == sum(frame["w"].tolist())
    for lazy in LAZY.values():
        assert (
            Joint.from_table(lazy(table), sensitive="s", useful="x", weight="w")
            == expected
        )


def test_counts_alone_are_fetched():
    """A million records come as eight groups."""
    relation = DATABASE.sql(
        "select i % 2 as s, i % 4 as x, repeat('long', 100) as y from range(1000000) t(i)"
    )
    joint = Joint.from_table(relation, sensitive="s", useful="x")
    assert joint.counts == ((250_000, 0, 250_000, 0), (0, 250_000, 0, 250_000))
    with pytest.raises(RuntimeError, match="of y"):
        failing().collect()
    assert Joint.from_table(failing(), sensitive="s", useful="x").records == 3


def failing() -> pl.LazyFrame:
    """A table with a column that cannot be read."""

    def refuse(_column):
        raise RuntimeError("of y")

    frame = pl.LazyFrame({"s": ["a", "b", "a"], "x": ["u", "v", "v"], "y": [1, 2, 3]})
    return frame.with_columns(pl.col("y").map_batches(refuse, return_dtype=pl.Int64))


@every
def test_both_zeros_are_one_symbol_in_memory_and_in_engines(lazy):
    table = pa.table({"s": [*"abab"], "x": [0.0, -0.0, 1.0, 0.0]})
    for zeros in (table, lazy(table)):
        joint = Joint.from_table(zeros, sensitive="s", useful="x")
        assert joint.useful.names == ("0.0", "1.0")
        assert joint.counts == ((1, 1), (2, 0))


def test_categories_and_odd_names_and_bins():
    frame = pd.DataFrame(
        {'a "q"': pd.Categorical([*"uvuv"]), "x_": [1, 2, 3, 4], "X": 0}
    )
    expected = Joint.from_table(
        frame, sensitive='a "q"', useful="x_", bins=2, missing="drop"
    )
    for table in (
        DATABASE.from_arrow(pa.Table.from_pandas(frame.drop(columns="X"))),
        dd.from_pandas(frame),
    ):
        assert (
            Joint.from_table(
                table, sensitive='a "q"', useful="x_", bins=2, missing="drop"
            )
            == expected
        )


@every
def test_a_missing_column_is_named(lazy):
    table = lazy(pa.table({"s": ["a"], "x": ["u"]}))
    with pytest.raises(
        InputError,
        match=r"there is no column 'xx'; did you mean 'x'\? \(columns: 's', 'x'\)",
    ):
        Joint.from_table(table, sensitive="s", useful="xx")


def test_parts_of_several_types_are_refused():
    """Integers in one part and, for its gaps, floats in another would count one number as two
    symbols.
    """
    parts = [
        pd.DataFrame({"s": [*"ab"], "x": values}) for values in ([1, 2], [1.0, None])
    ]
    frame = dd.from_delayed([dask.delayed(part) for part in parts], verify_meta=False)
    with pytest.raises(
        InputError,
        match="the column 'x' holds floats in one part of the table and other cells",
    ):
        Joint.from_table(frame, sensitive="s", useful="x", missing="drop")
