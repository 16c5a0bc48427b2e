from __future__ import annotations

import datetime as dt
from decimal import Decimal
from enum import Enum

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from mechdesign.core.errors import InputError
from mechdesign.formats.cells import Encoded, encode
from mechdesign.frames.eager import adapter_of
from mechdesign.tables.bins import Bins
from mechdesign.tables.columns import positions_of, unknown_at, values_of
from mechdesign.tables.rebuilding import own_values, rebuild
from mechdesign.tables.variable import Variable

LABELS = ("{a, b}", "c", "")
CODES = np.array([1, 0, 2, 0])
EXPECTED = ["c", "{a, b}", "", "{a, b}"]


def codes_of(columns, variable):
    """Positions of records that must be symbols."""
    codes = positions_of(columns, variable)
    if codes.size and codes.min() < 0:
        raise unknown_at(int(np.argmax(codes < 0)), columns, variable)
    return codes


def texts(column) -> list[str | None]:
    encoded = encode(column, "c")
    return [
        None if code < 0 else encoded.texts[code] for code in encoded.codes.tolist()
    ]


def test_a_pandas_series_keeps_index_name_and_text_type():
    column = pd.Series(["x"] * 4, index=[7, 5, 5, 1], name="job")
    released = rebuild(column, CODES, LABELS, "unused")
    pd.testing.assert_series_equal(
        released, pd.Series(EXPECTED, index=[7, 5, 5, 1], name="job")
    )
    string = rebuild(column.astype("string"), CODES, LABELS, "unused")
    assert string.dtype == "string"
    assert string.tolist() == EXPECTED


def test_a_pandas_series_of_another_type_becomes_text():
    released = rebuild(pd.Series([1, 2, 3, 4], name="n"), CODES, LABELS, "unused")
    pd.testing.assert_series_equal(released, pd.Series(EXPECTED, name="n"))


@pytest.mark.parametrize(
    "dtype", ["str", "string", object, pd.ArrowDtype(pa.string())], ids=str
)
def test_a_pandas_series_of_text_keeps_its_type_of_text(dtype):
    released = rebuild(pd.Series([*"abcd"], dtype=dtype), CODES, LABELS, "unused")
    assert released.dtype == dtype
    assert released.tolist() == EXPECTED


@pytest.mark.parametrize(
    "column",
    [
        pd.Series([*"abcd"], dtype="category", name="n", index=[3, 3, 2, 1]),
        pd.Series(
            pd.Categorical([4, 3, 2, 1], ordered=True), name="n", index=[3, 3, 2, 1]
        ),
    ],
    ids=["texts", "ordered numbers"],
)
def test_a_pandas_category_stays_one_with_the_labels_as_categories(column):
    released = rebuild(column, CODES, LABELS, "unused")
    expected = pd.Categorical(EXPECTED, categories=list(LABELS), ordered=False)
    pd.testing.assert_series_equal(
        released, pd.Series(expected, index=[3, 3, 2, 1], name="n")
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (pl.Categorical, pl.Categorical),
        (pl.Enum([*"dcba"]), pl.Enum(["c", "{a, b}", ""])),
    ],
)
def test_polars_categories_stay_categories(before, after):
    released = rebuild(
        pl.Series("job", [*"abcd"], dtype=before), CODES, LABELS, "unused"
    )
    assert released.name == "job"
    assert released.dtype == after
    assert released.to_list() == EXPECTED


@pytest.mark.parametrize("values", [[*"abcd"], [1, 2, 3, 4]], ids=["texts", "numbers"])
def test_arrow_dictionaries_stay_dictionaries_of_all_labels(values):
    array = rebuild(pa.array(values).dictionary_encode(), CODES, LABELS, "unused")
    assert array.type == pa.dictionary(pa.int32(), pa.string())
    assert array.dictionary.to_pylist() == list(LABELS)
    assert array.to_pylist() == EXPECTED
    chunked = rebuild(pa.chunked_array([array]), CODES, LABELS, "unused")
    assert chunked.type == array.type
    assert chunked.to_pylist() == EXPECTED


@pytest.mark.parametrize(
    "kind", [pa.large_string(), pa.string_view(), pa.string()], ids=str
)
def test_arrow_texts_keep_their_type_of_text(kind):
    released = rebuild(pa.array([*"abcd"], kind), CODES, LABELS, "unused")
    assert released.type == kind
    assert released.to_pylist() == EXPECTED
    assert (
        rebuild(
            pa.array([*"abcd"], kind).dictionary_encode(), CODES, LABELS, "x"
        ).type.value_type
        == kind
    )


def test_a_frame_of_categories_gives_a_column_of_categories():
    frame = pd.DataFrame({"a": [*"pqpq"], "b": [*"rrss"]}, dtype="category")
    released = rebuild(frame, CODES, LABELS, "a,b")
    assert released.name == "a,b"
    assert released.cat.categories.tolist() == list(LABELS)
    mixed = rebuild(frame.astype({"b": str}), CODES, LABELS, "a,b")
    assert mixed.dtype == "str"
    assert rebuild(pl.from_pandas(frame), CODES, LABELS, "a,b").dtype == pl.Categorical
    assert (
        rebuild(pa.Table.from_pandas(frame), CODES, LABELS, "a,b").type.value_type
        == pa.large_string()
    )


def test_a_polars_series_keeps_its_name():
    released = rebuild(pl.Series("job", [1, 2, 3, 4]), CODES, LABELS, "unused")
    assert isinstance(released, pl.Series)
    assert released.name == "job"
    assert released.dtype == pl.String
    assert released.to_list() == EXPECTED


def test_arrow_arrays_and_chunked_arrays():
    array = rebuild(pa.array([*"abcd"]), CODES, LABELS, "unused")
    assert isinstance(array, pa.StringArray)
    assert array.to_pylist() == EXPECTED
    chunked = rebuild(pa.chunked_array([[*"ab"], [*"cd"]]), CODES, LABELS, "unused")
    assert isinstance(chunked, pa.ChunkedArray)
    assert chunked.type == pa.string()
    assert chunked.to_pylist() == EXPECTED


def test_lists_tuples_and_numpy_arrays():
    assert rebuild([*"abcd"], CODES, LABELS, "unused") == EXPECTED
    assert rebuild(tuple("abcd"), CODES, LABELS, "unused") == tuple(EXPECTED)
    for column, kind in (
        (np.array([*"abcd"]), "U"),
        (np.array([*"abcd"], dtype=object), "O"),
        (np.arange(4), "U"),
    ):
        released = rebuild(column, CODES, LABELS, "unused")
        assert released.dtype.kind == kind
        assert released.tolist() == EXPECTED


@pytest.mark.parametrize(
    "column",
    [
        [],
        (),
        np.array([], dtype=str),
        pd.Series([], dtype=str),
        pl.Series([], dtype=pl.String),
        pa.array([], pa.string()),
    ],
    ids=lambda column: type(column).__name__,
)
def test_empty_columns_stay_empty(column):
    variable = Variable(("x",), (("a",), ("b",)))
    codes = codes_of(values_of(column, variable), variable)
    released = rebuild(column, codes, LABELS, "unused")
    assert type(released) is type(column)
    assert len(released) == 0


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, pa.table])
def test_a_frame_of_crossed_columns_gives_one_column_of_its_kind(kind):
    variable = Variable(("a", "b"), (("p", "1"), ("p", "2"), ("q", "1")))
    frame = kind({"b": [1, 2, 1], "other": [0.5, 0.5, 0.5], "a": ["q", "p", "p"]})
    codes = codes_of(values_of(frame, variable), variable)
    assert codes.tolist() == [2, 1, 0]
    released = rebuild(frame, codes, LABELS, "a,b")
    assert [
        str(v)
        for v in (
            released.to_pylist()
            if isinstance(released, pa.ChunkedArray)
            else list(released)
        )
    ] == [LABELS[c] for c in codes]
    if not isinstance(released, pa.ChunkedArray):
        assert released.name == "a,b"


def test_tuples_of_crossed_columns():
    variable = Variable(("a", "b"), (("p", "1"), ("q", "1")))
    column = [("q", 1), ("p", "1")]
    assert codes_of(values_of(column, variable), variable).tolist() == [1, 0]
    assert codes_of(values_of([], variable), variable).tolist() == []
    with pytest.raises(
        InputError,
        match="entry 1 must be a tuple with one value for each of 'a', 'b', not of type str",
    ):
        values_of([("q", "1"), "p"], variable)
    with pytest.raises(
        InputError, match=r"entry 0 must be a tuple .*, not a tuple of 3$"
    ):
        values_of([("p", "q", "r")], Variable(("a", "b"), (("p", "q"),)))


def test_many_crossed_columns_whose_combinations_exceed_64_bits():
    names = tuple("abcdef")
    symbols = tuple(tuple(str((i * k) % 5) for k in range(1, 7)) for i in range(5))
    variable = Variable(names, symbols)
    unused = tuple(f"unused {i}" for i in range(3000))
    order = [4, 0, 3, 3, 1]
    columns = []
    for k in range(6):
        column = encode([symbols[i][k] for i in order], names[k])
        columns.append(Encoded(column.codes, column.texts + unused))
    assert codes_of(columns, variable).tolist() == order


VARIABLE = Variable(("x",), (("1",), ("2.5",), ("True",), ("2024-01-31",), ("a",)))


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        ([1, 2.5, True, dt.date(2024, 1, 31), "a"], [0, 1, 2, 3, 4]),
        (pd.Series([1.0, 2.5]), [0, 1]),  # a float is also looked up as an integer
        (pl.Series([1, 1]), [0, 0]),
        (pa.array([True, True]), [2, 2]),
        (pa.array([dt.date(2024, 1, 31)]), [3]),
        (pa.array(["a", "1"]).dictionary_encode(), [4, 0]),
        (pd.Series(["a", "1"], dtype="category"), [4, 0]),
        (np.array([1, 1], dtype=np.int8), [0, 0]),
    ],
)
def test_symbols_are_found_by_their_text(column, expected):
    assert codes_of(values_of(column, VARIABLE), VARIABLE).tolist() == expected


def test_a_float_is_an_integer_only_if_the_channel_does_not_know_the_float():
    variable = Variable(("x",), (("1",), ("1.0",)))
    assert codes_of(values_of([1.0, 1], variable), variable).tolist() == [1, 0]
    assert codes_of(values_of(pd.Series([1.0]), variable), variable).tolist() == [1]


def test_a_missing_cell_is_the_empty_symbol_if_there_is_one():
    variable = Variable(("x",), (("",), ("a",)))
    for column in (
        ["a", None],
        pd.Series(["a", None]),
        pl.Series(["a", None]),
        pa.array(["a", None]),
    ):
        assert codes_of(values_of(column, variable), variable).tolist() == [1, 0]


@pytest.mark.parametrize(
    "column",
    [
        ["a", "a", None],
        pd.Series(["a", "a", None]),
        pl.Series(["a", "a", None]),
        pa.array(["a", "a", None]),
    ],
)
def test_a_missing_cell_is_refused_otherwise(column):
    with pytest.raises(
        InputError,
        match="entry 2: the column 'x' has an empty cell, which the channel has no row for",
    ):
        codes_of(values_of(column, VARIABLE), VARIABLE)


@pytest.mark.parametrize(
    "column",
    [
        pd.Series([7310, 501]),
        ["7310", "000501"],
        ["7310", "501.0"],
        ["7310", "+00501"],
        ["7310", "00501 "],
        ["7310", "\uff10\uff10501"],
        ["7310", "n07"],
    ],
)
def test_a_symbol_in_another_spelling_is_recognised(column):
    variable = Variable(("x",), (("00501",), ("7310",), ("N7",)))
    with pytest.raises(
        InputError,
        match=r"entry 1: .* which is none of its 3; one of them differs in nothing but blanks, "
        r"leading zeros, a sign, \.0, capital letters or the Unicode form, .* write both alike",
    ) as error:
        codes_of(values_of(column, variable), variable)
    assert "501" not in str(error.value)


@pytest.mark.parametrize("cell", ["1.23457E+17", "1,23457E+17"])
def test_a_number_that_a_spreadsheet_has_shortened_is_recognised(cell):
    variable = Variable(("x",), (("123456789012345678",), ("7310",)))
    with pytest.raises(InputError, match=r"as spreadsheets write it \(as 1\.2E\+17\)"):
        codes_of(values_of([cell], variable), variable)


@pytest.mark.parametrize("cell", ["502", "5010", "z", "501.5"])
def test_a_symbol_of_its_own_is_no_other_spelling(cell):
    variable = Variable(("x",), (("00501",), ("7310",)))
    with pytest.raises(InputError, match="which is none of its 2; correct it"):
        codes_of(values_of([cell], variable), variable)


def test_a_header_between_records_is_named():
    variable = Variable(("x",), (("p",), ("q",)))
    with pytest.raises(
        InputError,
        match=r"entry 1: the record is the header of the file again, with the name",
    ):
        codes_of(values_of(["p", "x", "q"], variable), variable)


def test_an_unknown_symbol_is_told_by_its_place_and_not_named():
    variable = Variable(("x",), (("Sales",), ("Tech",)))
    with pytest.raises(
        InputError,
        match=r"entry 1: .* the symbol of 'x', which is none of its 2; correct",
    ) as error:
        codes_of(values_of(["Tech", "Sale", "Sale"], variable), variable)
    assert "Sale" not in str(error.value)
    crossed = Variable(("a", "b"), (("p", "1"), ("q", "2")))
    with pytest.raises(
        InputError,
        match="entry 0: the channel does not know the symbol of 'a,b'",
    ):
        codes_of(values_of([("p", "2")], crossed), crossed)
    with pytest.raises(InputError, match="entry 0: the column 'b' has an empty cell"):
        codes_of(values_of([("p", None)], crossed), crossed)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ("abc", "'x' must be a column .* not str"),
        (5, "'x' must be a column .* not int"),
        (np.zeros((2, 2)), "must have one dimension, not 2"),
        ([b"a"], "holds bytes, which is no symbol"),
        ([["a"]], "holds list, which is no symbol"),
        (np.array([b"a"]), "holds .S1, which is no symbol"),
        (pa.array([{"k": 1}]), "holds struct.*, which is no symbol"),
        (pl.Series([dt.timedelta(1)]), "holds duration.*, which is no symbol"),
    ],
)
def test_what_is_no_column_of_symbols_is_refused(column, message):
    with pytest.raises(InputError, match=message):
        values_of(column, VARIABLE)


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (
            pd.Series(["a", 1, None, True, 1.5, pd.NA, pd.NaT], dtype=object),
            ["a", "1", None, "True", "1.5", None, None],
        ),
        (
            pd.Series(pd.to_datetime(["2024-01-31", None])),
            ["2024-01-31 00:00:00", None],
        ),
        (
            pd.Series(pd.to_datetime(["2024-01-31"]).tz_localize("UTC")),
            ["2024-01-31 00:00:00+00:00"],
        ),
        (
            pd.Series(pd.period_range("2024", periods=2, freq="M")),
            ["2024-01", "2024-02"],
        ),
        (pd.Series([None, None], dtype=object), [None, None]),
        (pl.Series([1.0, float("nan"), None]), ["1.0", None, None]),
        (pl.Series([1.1], dtype=pl.Float32), ["1.1"]),
        (pl.Series(["a", None], dtype=pl.Categorical), ["a", None]),
        (pl.Series([None, None]), [None, None]),
        (pa.array(["a", None], pa.string_view()), ["a", None]),
        (pa.array([dt.time(8, 30)]), ["08:30:00"]),
        (pa.chunked_array([["a"], ["b", None, "a"]]), ["a", "b", None, "a"]),
        (pa.chunked_array([], pa.string()), []),
        (pa.chunked_array([], pa.null()), []),
        (
            pa.chunked_array(
                [
                    pa.array(["a", "b"]).dictionary_encode(),
                    pa.array(["b", None]).dictionary_encode(),
                ]
            ),
            ["a", "b", "b", None],
        ),
        (
            pa.DictionaryArray.from_arrays(
                pa.array([0, 1, None, 2]), pa.array(["a", None, "a"])
            ),
            ["a", None, None, "a"],
        ),
        (np.array(["2024-01-31"], dtype="datetime64[D]"), ["2024-01-31"]),
        (np.array([1.0, np.nan]), ["1.0", None]),
    ],
)
def test_texts_of_cells(column, expected):
    assert texts(column) == expected


@pytest.mark.parametrize(
    ("labels", "kind", "values"),
    [
        (("1", "-20", "300"), pa.int64(), [1, -20, 300]),
        (("1", "2"), pa.uint8(), [1, 2]),
        (("1.0", "0.1", ""), pa.float64(), [1.0, 0.1, None]),
        (("True", "False"), pa.bool_(), [True, False]),
        (("2024-01-31", ""), pa.date32(), [dt.date(2024, 1, 31), None]),
        (("01", "2"), pa.int64(), None),
        (("1", "x"), pa.int64(), None),
        (("1", "300"), pa.uint8(), None),
        (("1", "2.5"), pa.float64(), [1.0, 2.5]),
        (("01", "2.0"), pa.float64(), [1.0, 2.0]),
        (("1", "x"), pa.float64(), None),
        (("2024-01-31",), pa.timestamp("us"), [dt.datetime(2024, 1, 31)]),
        (("yes", "no"), pa.bool_(), None),
        (("a", ""), pa.large_string(), ["a", ""]),
        (("08:30:00", ""), pa.time32("s"), [dt.time(8, 30), None]),
        (("08:30",), pa.time32("s"), None),
        (("1.50", "2.25"), pa.decimal128(6, 2), [Decimal("1.50"), Decimal("2.25")]),
        (("1.5",), pa.decimal128(6, 2), None),
        (("a",), pa.list_(pa.string()), None),
    ],
)
def test_symbols_become_values_where_this_is_how_the_values_are_written(
    labels, kind, values
):
    found = own_values(labels, kind)
    assert (found if found is None else found.to_pylist()) == values
    assert found is None or found.type == kind


@pytest.mark.parametrize(
    "column",
    [
        pd.Series([1, 2, 3], index=[5, 6, 7], name="n"),
        pd.Series([1, None, 3], dtype="Int64", name="n"),
        pl.Series("n", [1, 2, 3], dtype=pl.Int16),
        pa.array([1, 2, 3], pa.int32()),
        pa.chunked_array([[1], [2, 3]]),
    ],
)
def test_symbols_of_a_column_of_numbers_come_back_as_numbers(column):
    codes = np.array([2, 0, 2])
    released = rebuild(column, codes, ("1", "2", "3"), "n", own=True)
    kind = "dtype" if hasattr(column, "dtype") else "type"
    assert getattr(released, kind) == getattr(column, kind)
    values = (
        released.to_pylist() if hasattr(released, "to_pylist") else released.to_list()
    )
    assert values == [3, 1, 3]
    if isinstance(column, pd.Series):
        assert released.index.equals(column.index)
        assert released.name == "n"
    texts = rebuild(column, codes, ("1", "2", "03"), "n", own=True)
    assert (texts.to_pylist() if hasattr(texts, "to_pylist") else texts.to_list()) == [
        "03",
        "1",
        "03",
    ]


@pytest.mark.parametrize(
    "column",
    [
        [1.0, 2.0, 3.0],
        [np.int64(1), np.int64(2), np.int64(3)],
        np.array([1.0, 2.0, 3.0], dtype=object),
        pd.Series([1.0, None, 3.0], dtype=object),
        np.array(["2020-01-01", "2020-01-02", "2020-01-03"], dtype="M8[ns]"),
        np.array(["2020-01-01", "2020-01-02", "2020-01-03"], dtype="M8[D]"),
        [pd.Timestamp("2020-01-01"), pd.Timestamp("2020-01-02")],
        [np.bool_(True), np.bool_(False)],
    ],
)
def test_values_that_libraries_write_come_back_as_they_were(column):
    """Lists of whole floats, of NumPy's numbers and of moments do not become texts."""
    cells = encode(column, "n")
    # Of integers beside gaps, which are floats, the symbols are those of integers.
    labels = tuple(text.removesuffix(".0") for text in cells.texts)
    released = rebuild(column, np.array([0, 1, 1]), labels, "n", own=True)
    values = list(released)
    filled = [value for value in column if value is not None]
    assert values == [filled[0], filled[1], filled[1]]
    assert {type(value) for value in values} == {type(value) for value in filled}


@pytest.mark.parametrize("kind", ["M8[h]", "M8[M]", "longdouble"])
def test_numpy_types_without_texts_are_refused_in_one_sentence(kind):
    with pytest.raises(InputError, match=r"'n' holds .*, which is no symbol; turn it"):
        encode(np.array([0, 1], dtype=kind), "n")


class Ward(str, Enum):  # noqa: UP042 - StrEnum writes its value anyway
    NORTH = "north"


def test_a_text_of_an_enumeration_is_its_value():
    assert encode([Ward.NORTH], "ward").texts == ("north",)


def test_of_crossed_bins_the_column_at_fault_is_named():
    """A value outside the edges of one column is not told as the word in another."""
    each = Bins(kind="number", edges=("0", "10"))
    variable = Variable(("age", "size"), (("[0, 10]", "[0, 10]"),), bins=(each, each))
    error = unknown_at(0, [encode(["12"], "age"), encode(["much"], "size")], variable)
    assert "the column 'age' has a value outside the channel's bins, 0 to 10" in str(
        error
    )
    error = unknown_at(0, [encode(["5"], "age"), encode(["much"], "size")], variable)
    assert "the column 'size' has a cell that is no number" in str(error)


@pytest.mark.parametrize("kind", [pl.Int128, pl.UInt128])
def test_integers_of_128_bits_are_refused_in_one_sentence(kind):
    """Also where the column is only kept: arrow has no such integers."""
    frame = pl.DataFrame({"x": ["00501", "7310"], "n": [1, 2]})
    frame = frame.with_columns(pl.col("n").cast(kind))
    refused = "the column 'n' holds integers of 128 bits, which is no symbol; turn it"
    with pytest.raises(InputError, match=refused):
        encode(frame["n"], "n")
    with pytest.raises(InputError, match=refused):
        adapter_of(frame)
