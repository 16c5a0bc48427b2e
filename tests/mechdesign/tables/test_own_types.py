"""Own symbols have the type of their column, whatever holds it and on whatever path it is released."""

from __future__ import annotations

import subprocess
import sys
from datetime import date, datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mechdesign as md

SIZE = 120
PLACES = [(i * i + i // 7) % 3 for i in range(SIZE)]
SECRETS = [
    "hi" if (place == 2) != (i % 3 == 0) else "lo" for i, place in enumerate(PLACES)
]

DATES = [date(2020, 1, 1), date(2020, 2, 29), date(2021, 1, 3)]
MOMENTS = [datetime(2020, 1, day, 8, 30 * (day % 2)) for day in (1, 2, 3)]
TIMES = [moment.time() for moment in MOMENTS]
DECIMALS = [Decimal("1.50"), Decimal("2.25"), Decimal("10.00")]


def repeated(values, kind=None):
    return pa.array([values[place] for place in PLACES], kind)


ARROW = {
    "int8": repeated([0, 1, 2], pa.int8()),
    "uint16": repeated([0, 1, 2], pa.uint16()),
    "int64": repeated([0, 1, 2**60]),
    "bool": repeated([True, False, True]),
    "double": repeated([0.5, 1.0, 2.25]),
    "float": repeated([0.5, 1.0, 0.1], pa.float32()),
    "date": repeated(DATES),
    "date64": repeated(DATES, pa.date64()),
    "moment": repeated(MOMENTS, pa.timestamp("us")),
    "zoned": repeated(MOMENTS, pa.timestamp("ms", "Europe/Vienna")),
    "time": repeated(TIMES, pa.time64("us")),
    "decimal": repeated(DECIMALS, pa.decimal128(6, 2)),
    "narrow decimal": repeated(DECIMALS, pa.decimal32(6, 2)),
    "decimal of 64 bits": repeated(DECIMALS, pa.decimal64(12, 2)),
    "text": repeated(["a", "b", "c"], pa.large_string()),
    "view": repeated(["a", "b", "c"], pa.string_view()),
    "dictionary": repeated(["a", "b", "c"]).dictionary_encode(),
    "numbered": repeated([3, 1, 2], pa.int16()).dictionary_encode(),
}

STORED = {
    "date64": pa.date32(),
    # Dictionaries of numbers are numbers in Parquet, in the original as well.
    "numbered": pa.int16(),
}
"""Types that Parquet has for those that it lacks."""


def truth_channel(table, **options):
    joint = md.Joint.from_table(table, sensitive="s", useful="x", **options)
    return md.design(joint, md.LIP(0.7), objective="truth").channel


@pytest.mark.parametrize("name", ARROW)
def test_arrow_and_parquet(tmp_path, name):
    table = pa.table({"x": ARROW[name], "s": SECRETS})
    channel = truth_channel(table)
    kind = table.schema.field("x").type
    assert channel.apply(table["x"], insecure_seed=1).type == kind
    frame = md.sanitise(table, channel, insecure_seed=1)
    assert frame.schema.field("x").type == kind
    assert set(frame["x"].to_pylist()) <= set(table["x"].to_pylist())
    path = tmp_path / "in.parquet"
    pq.write_table(table, path)
    md.sanitise_file(channel, path, tmp_path / "out.parquet", insecure_seed=1)
    released = pq.read_table(tmp_path / "out.parquet")
    assert released.schema.field("x").type == STORED.get(name, kind)
    assert released["x"].to_pylist() == frame["x"].to_pylist()
    assert md.check(
        channel, tmp_path / "out.parquet", original=path, ignored=["s"]
    ).plausible


PANDAS = {
    "bool": pd.Series([place == 1 for place in PLACES]),
    "boolean": pd.Series([place == 1 for place in PLACES], dtype="boolean"),
    "Int8": pd.Series(PLACES, dtype="Int8"),
    "float32": pd.Series(PLACES, dtype="float32"),
    "category": pd.Series(["abc"[place] for place in PLACES], dtype="category"),
    "numbers as categories": pd.Series(PLACES, dtype="int16").astype("category"),
    "moments": pd.Series([MOMENTS[place] for place in PLACES]),
}


@pytest.mark.parametrize("name", PANDAS)
def test_pandas(name):
    frame = pd.DataFrame({"x": PANDAS[name], "s": SECRETS})
    channel = truth_channel(frame)
    for released in (
        channel.apply(frame["x"], insecure_seed=1),
        md.sanitise(frame, channel, insecure_seed=1)["x"],
    ):
        if released.dtype == "category":
            assert released.cat.categories.dtype == frame["x"].cat.categories.dtype
        else:
            assert released.dtype == frame["x"].dtype
        assert set(released) <= set(frame["x"])


@pytest.mark.parametrize(
    "values",
    [
        [True, False, True],
        [0, 1, 2**70],
        [0.5, 1.0, 2.0],
        DATES,
        MOMENTS,
        TIMES,
        DECIMALS,
        ["a", "b", "c"],
    ],
)
def test_python_values_keep_their_type(values):
    cells = [values[place] for place in PLACES]
    frame = pd.DataFrame({"x": pd.Series(cells, dtype=object), "s": SECRETS})
    channel = truth_channel(frame)
    for column in (frame["x"], cells, tuple(cells), np.array(cells, dtype=object)):
        released = list(channel.apply(column, insecure_seed=1))
        assert {type(value) for value in released} == {type(values[0])}
        assert set(released) <= set(values)


@pytest.mark.parametrize("dtype", ["int8", "float64", "bool"])
def test_numpy(dtype):
    array = np.array(PLACES, dtype=dtype)
    channel = truth_channel(pd.DataFrame({"x": array, "s": SECRETS}))
    assert channel.apply(array, insecure_seed=1).dtype == array.dtype


def test_an_order_of_categories_stays():
    kind = pd.CategoricalDtype(["low", "mid", "high"], ordered=True)
    series = pd.Series(
        pd.Categorical.from_codes(PLACES, dtype=kind), name="x"
    ).reset_index(drop=True)
    channel = truth_channel(pd.DataFrame({"x": series, "s": SECRETS}))
    assert channel.apply(series, insecure_seed=1).dtype == kind


MISSING = [None if place == 1 else place for place in PLACES]
"""Numbers of the records; a third of them are missing."""


@pytest.mark.parametrize("order", [None, [2, 0]])
def test_missing_categories_of_numbers_are_no_category(tmp_path, order):
    series = pd.Series(pd.Categorical(MISSING, order, ordered=order is not None))
    frame = pd.DataFrame({"x": series, "s": SECRETS})
    channel = truth_channel(frame, missing="symbol")
    assert "" in channel.outputs
    released = md.sanitise(frame, channel, insecure_seed=1)["x"]
    assert released.dtype == series.dtype
    assert released.isna().sum() == (channel.apply(MISSING, insecure_seed=1)).count(
        None
    )
    released.to_frame().to_parquet(tmp_path / "released.parquet")


def test_missing_values_of_an_arrow_dictionary_are_missing_codes(tmp_path):
    cells = pa.array(MISSING, pa.int16()).dictionary_encode()
    table = pa.table({"x": cells, "s": SECRETS})
    channel = truth_channel(table, missing="symbol")
    released = md.sanitise(table, channel, insecure_seed=1)
    column = released["x"]
    assert column.type.value_type == pa.int16()
    assert column.null_count == column.to_pylist().count(None) > 0
    # Parquet cannot hold a null inside a dictionary.
    pq.write_table(released, tmp_path / "released.parquet")


def test_missing_cells_leave_the_order_of_an_enumeration():
    kind = pl.Enum(["low", "mid", "high"])
    names = ["low", None, "high"]
    series = pl.Series("x", [names[place] for place in PLACES], dtype=kind)
    frame = pl.DataFrame([series, pl.Series("s", SECRETS)])
    channel = truth_channel(frame, missing="symbol")
    with pytest.warns(UserWarning, match="are empty texts"):
        released = md.sanitise(frame, channel, insecure_seed=1)["x"]
    assert released.dtype == pl.Enum(["low", "high", ""])


@pytest.mark.parametrize(
    "kind", [pl.Categorical, pl.Enum(["c", "a", "b"]), pl.Boolean, pl.Int8, pl.Time]
)
def test_polars(kind):
    values = {pl.Boolean: [True, False, True], pl.Int8: [0, 1, 2], pl.Time: TIMES}.get(
        kind, list("abc")
    )
    series = pl.Series("x", [values[place] for place in PLACES], dtype=kind)
    frame = pl.DataFrame([series, pl.Series("s", SECRETS)])
    channel = truth_channel(frame)
    assert channel.apply(frame["x"], insecure_seed=1).dtype == kind
    assert md.sanitise(frame, channel, insecure_seed=1)["x"].dtype == kind


def test_labels_of_several_symbols_are_text():
    table = pa.table({"x": ARROW["int8"], "s": SECRETS})
    joint = md.Joint.from_table(table, sensitive="s", useful="x")
    channel = md.design(joint, md.LIP(0.3)).channel
    assert channel.apply(table["x"], insecure_seed=1).type == pa.string()


def test_a_view_of_text_is_released_as_one():
    table = pa.table({"x": repeated(["a", "b", "c"], pa.string_view()), "s": SECRETS})
    channel = truth_channel(table)
    released = md.sanitise(table, channel, insecure_seed=1)
    assert released.schema.field("x").type == pa.string_view()
    assert set(released["x"].to_pylist()) <= set("abc")


def test_parsed_values_are_the_same_symbols():
    """07:00 is a spelling of 07:00:00, so a column of texts stays one of texts."""
    cells = ["07:00" if place else "08:00" for place in PLACES]
    frame = pd.DataFrame({"x": pd.Series(cells, dtype=object), "s": SECRETS})
    released = truth_channel(frame).apply(frame["x"], insecure_seed=1)
    assert {type(value) for value in released} == {str}


def test_own_numbers_load_no_pandas():
    """It takes a quarter of a second and 40 MB of every release of rows from Parquet."""
    pytest.importorskip("pandas")
    code = (
        "import sys, pyarrow as pa; from mechdesign.tables.rebuilding import own_values;"
        "print(own_values(['1', '', '30'], pa.int64()).to_pylist(), 'pandas' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    )
    assert done.stdout == "[1, None, 30] False\n"
