from __future__ import annotations

import datetime as dt
from collections import Counter
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechdesign.core.errors import InputError
from mechdesign.formats.cells import Encoded, encode
from mechdesign.formats.distinct import Numbering
from mechdesign.tables.joint import Joint
from mechdesign.tables.tally import Roles, Tally, counted_columns
from tests.cases.growth import calls_of

FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}

cells = st.sampled_from(
    ["a", "A", "01234", "1234", "NA", "nan", "?", " b", "b ", "é", "", "x, y"]
)


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
@given(records=st.lists(st.tuples(cells, cells), min_size=1, max_size=40))
def test_every_frame_is_counted_as_a_counter_would(frame, records):
    table = frame({"s": [s for s, _ in records], "x": [x for _, x in records]})
    if len({x for _, x in records}) == 1:
        with pytest.raises(InputError, match="nothing to release"):
            Joint.from_table(table, sensitive="s", useful="x")
        return
    joint = Joint.from_table(table, sensitive="s", useful="x")
    expected = Counter(records)
    assert joint.sensitive.names == tuple(sorted({s for s, _ in records}))
    assert joint.useful.names == tuple(sorted({x for _, x in records}))
    for s, row in zip(joint.sensitive.names, joint.counts, strict=True):
        assert row == tuple(expected[s, x] for x in joint.useful.names)
    assert joint.records == len(records)


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_crossed_columns_give_the_combinations_that_occur(frame):
    table = frame(
        {
            "s": ["a", "b", "a"],
            "t": ["1", "1", "2"],
            "x": ["u", "v", "u"],
            "y": ["p", "p", "q"],
        }
    )
    joint = Joint.from_table(table, sensitive=["s", "t"], useful=("x", "y"))
    assert joint.sensitive.columns == ("s", "t")
    assert joint.sensitive.symbols == (("a", "1"), ("a", "2"), ("b", "1"))
    assert joint.useful.names == ("u, p", "u, q", "v, p")
    assert joint.counts == ((1, 0, 0), (0, 1, 0), (0, 0, 1))


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, 20, 3], {"1", "20", "3"}),
        ([1.0, 2.5, 1e-5], {"1.0", "2.5", "1e-05"}),
        ([True, False, True], {"True", "False"}),
        (
            [dt.date(2024, 1, 31), dt.date(2024, 2, 1), dt.date(2024, 2, 1)],
            {"2024-01-31", "2024-02-01"},
        ),
        (
            [
                dt.datetime(2024, 1, 31, 8),
                dt.datetime(2024, 1, 31, 8, 0, 0, 500000),
                dt.datetime(2024, 2, 1),
            ],
            {
                "2024-01-31 08:00:00",
                "2024-01-31 08:00:00.500000",
                "2024-02-01 00:00:00",
            },
        ),
        ([Decimal("1.50"), Decimal("2.00"), Decimal("2.00")], {"1.50", "2.00"}),
    ],
)
def test_other_cells_have_the_same_text_in_every_frame(frame, values, expected):
    joint = Joint.from_table(
        frame({"s": ["a", "b", "a"], "x": values}), sensitive="s", useful="x"
    )
    assert set(joint.useful.names) == expected


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(["u", "v", "u"], dtype="category"),
        pd.Series(["u", "v", "u"], dtype="string"),
        pd.Series(["u", "v", "u"], dtype=object),
    ],
)
def test_pandas_text_and_categories(column):
    joint = Joint.from_table(
        pd.DataFrame({"s": ["a", "b", "b"], "x": column}), sensitive="s", useful="x"
    )
    assert joint.useful.names == ("u", "v")
    assert joint.counts == ((1, 0), (1, 1))


def test_categories_of_numbers_and_intervals_and_unused_ones():
    frame = pd.DataFrame(
        {"s": ["a", "b", "b"], "x": pd.cut([1, 5, 9], [0, 4, 8, 12, 16])}
    )
    joint = Joint.from_table(frame, sensitive="s", useful="x")
    assert joint.useful.names == ("(0, 4]", "(4, 8]", "(8, 12]")


def test_integers_with_gaps_stay_integers_in_pandas():
    frame = pd.DataFrame({"s": ["a", "b", "a", "b"], "x": [1, None, 2, 1]})
    assert frame["x"].dtype == np.float64
    joint = Joint.from_table(frame, sensitive="s", useful="x", missing="symbol")
    assert joint.useful.names == ("", "1", "2")
    assert "the column 'x' holds integers and gaps; 1.0 is read as 1" in joint.notices
    frame["gone"] = np.nan
    joint = Joint.from_table(
        frame, sensitive="s", useful=["x", "gone"], missing="symbol"
    )
    assert "'gone'" not in "".join(joint.notices)
    whole = Joint.from_table(frame.dropna(subset="x"), sensitive="s", useful="x")
    assert whole.useful.names == ("1.0", "2.0")
    mixed = pd.DataFrame({"s": ["a", "b", "a"], "x": [1, None, 2.5]})
    assert Joint.from_table(
        mixed, sensitive="s", useful="x", missing="drop"
    ).useful.names == ("1.0", "2.5")
    nullable = pd.DataFrame(
        {"s": ["a", "b", "a"], "x": pd.array([1, None, 2], dtype="Int64")}
    )
    assert Joint.from_table(
        nullable, sensitive="s", useful="x", missing="drop"
    ).useful.names == ("1", "2")


GAPS = {
    "pandas": pd.DataFrame({"s": ["a", "b", "a", None], "x": ["u", None, "v", "u"]}),
    "polars": pl.DataFrame({"s": ["a", "b", "a", None], "x": ["u", None, "v", "u"]}),
    "pyarrow": pa.table({"s": ["a", "b", "a", None], "x": ["u", None, "v", "u"]}),
}


@pytest.mark.parametrize("frame", GAPS.values(), ids=GAPS)
def test_missing_cells(frame):
    with pytest.raises(
        InputError,
        match=r"column '[sx]' has an empty cell; fill it.*'symbol', 'drop' or 'marginal'",
    ):
        Joint.from_table(frame, sensitive="s", useful="x")
    symbol = Joint.from_table(frame, sensitive="s", useful="x", missing="symbol")
    assert symbol.sensitive.names == ("", "a", "b")
    assert symbol.useful.names == ("", "u", "v")
    assert symbol.records == 4
    dropped = Joint.from_table(frame, sensitive="s", useful="x", missing="drop")
    assert dropped.counts == ((1, 1),)
    assert dropped.notices == ("dropped 2 of 4 record(s) with an empty cell",)


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
@given(
    records=st.lists(
        st.tuples(
            st.sampled_from("ab"), st.sampled_from("uv"), st.decimals(0, 1000, places=3)
        ),
        min_size=1,
        max_size=30,
    )
)
def test_decimal_weights_are_summed_exactly(frame, records):
    records = [*records, ("a", "u", Decimal("0.1")), ("b", "v", Decimal("0.2"))]
    table = frame(
        {
            "s": [r[0] for r in records],
            "x": [r[1] for r in records],
            "w": [float(r[2]) for r in records],
        }
    )
    joint = Joint.from_table(table, sensitive="s", useful="x", weight="w")
    mass: dict[tuple[str, str], Fraction] = {}
    for s, x, w in records:
        mass[s, x] = mass.get((s, x), Fraction(0)) + Fraction(w)
    total = sum(mass.values())
    for s, row in zip(joint.sensitive.names, joint.counts, strict=True):
        for x, entry in zip(joint.useful.names, row, strict=True):
            assert Fraction(entry, joint.total) == mass.get((s, x), Fraction(0)) / total
    assert not joint.is_counts


@pytest.mark.parametrize("weights", [[2, 3, 5], ["2", "3", "5"], [2.0, 3.0, 5.0]])
def test_whole_weights_are_counts(weights):
    frame = pd.DataFrame({"s": ["a", "b", "a"], "x": ["u", "v", "v"], "w": weights})
    joint = Joint.from_table(frame, sensitive="s", useful="x", weight="w")
    assert joint.is_counts
    assert joint.counts == ((2, 5), (0, 3))
    assert joint.records == 10


def test_fractional_weights_are_scaled_to_the_smallest_integers():
    frame = pd.DataFrame(
        {"s": ["a", "b", "a"], "x": ["u", "v", "v"], "w": [1.5, 3.0, 4.5]}
    )
    assert Joint.from_table(frame, sensitive="s", useful="x", weight="w").counts == (
        (1, 3),
        (0, 2),
    )


def test_symbols_whose_weights_are_all_zero_are_dropped():
    frame = pd.DataFrame(
        {"s": ["a", "b", "a", "c"], "x": ["u", "v", "v", "u"], "w": [2, 3, 5, 0]}
    )
    joint = Joint.from_table(frame, sensitive="s", useful="x", weight="w")
    assert joint.sensitive.names == ("a", "b")
    assert joint.notices == ("dropped 1 sensitive symbol(s) of zero mass: 'c'",)


BASE = pd.DataFrame(
    {
        "s": ["a", "b", "a"],
        "x": ["u", "v", "v"],
        "w": [1.0, -2.0, np.nan],
        "t": ["1", "2", "x"],
    }
)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"sensitive": "S", "useful": "x"},
            r"there is no column 'S' \(columns: 's', 'x', 'w', 't'\)",
        ),
        (
            {"sensitive": "s", "useful": "xx"},
            r"there is no column 'xx'; did you mean 'x'\?",
        ),
        ({"sensitive": "s", "useful": ["s", "x"]}, "the column 's' is named 2 times"),
        (
            {"sensitive": "s", "useful": "x", "weight": "x"},
            "the column 'x' is named 2 times",
        ),
        (
            {"sensitive": [], "useful": "x"},
            "at least one sensitive and one useful column",
        ),
        (
            {"sensitive": "s", "useful": "x", "missing": "ignore"},
            "missing .'ignore'. must be refuse, symbol, drop, marginal or output:LABEL",
        ),
        (
            {"sensitive": "s", "useful": "x", "weight": "w"},
            "column 'w' has (an empty cell|the negative weight -2.0)",
        ),
        (
            {"sensitive": "s", "useful": "x", "weight": "w", "missing": "drop"},
            "'w' has the negative weight -2.0",
        ),
        (
            {"sensitive": "s", "useful": "x", "weight": "t"},
            "weight column 't' has a cell that is no finite number; write numbers as 1800.5, "
            "without a decimal comma, separators, units or value labels$",
        ),
    ],
)
def test_bad_requests_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        Joint.from_table(BASE, **options)


def weighted_codes(tmp_path, weight):
    path = tmp_path / "codes.csv"
    path.write_text(f"s,x,w\na,u,3\nb,v,9\na,v,{weight}\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("weight", ["NA", " NA ", "-9"])
def test_codes_of_missing_values_are_empty_weights(tmp_path, weight):
    table = weighted_codes(tmp_path, weight)
    options = {"sensitive": "s", "useful": "x", "weight": "w", "trim": True}
    codes = ["NA", "-9"]
    joint = Joint.from_table(table, missing="drop", missing_codes=codes, **options)
    assert [*map(list, joint.counts)] == [[3, 0], [0, 9]]
    assert any("dropped 1 of 3" in notice for notice in joint.notices)
    for missing in ("refuse", "symbol"):
        with pytest.raises(InputError, match=r"line 4: .* 'w' has an empty cell"):
            Joint.from_table(table, missing=missing, missing_codes=codes, **options)


def test_a_code_that_is_a_number_of_records_stays_one(tmp_path):
    table = weighted_codes(tmp_path, "9")
    joint = Joint.from_table(
        table,
        sensitive="s",
        useful="x",
        weight="w",
        missing="drop",
        missing_codes=["9"],
    )
    assert [*map(list, joint.counts)] == [[3, 9], [0, 9]]


@pytest.mark.parametrize("missing", ["refuse", "symbol"])
def test_a_missing_weight_cannot_be_a_symbol(missing):
    frame = pd.DataFrame({"s": ["a", "b"], "x": ["u", "v"], "w": [1.0, None]})
    with pytest.raises(
        InputError, match="weight column 'w' has an empty cell; give a number, or leave"
    ):
        Joint.from_table(frame, sensitive="s", useful="x", weight="w", missing=missing)


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_no_records_and_no_mass(frame):
    empty = frame({"s": [], "x": []})
    with pytest.raises(InputError, match="there are no records"):
        Joint.from_table(empty, sensitive="s", useful="x")
    with pytest.raises(InputError, match="the table has no mass"):
        Joint.from_table(
            frame({"s": ["a", "b"], "x": ["u", "v"], "w": [0, 0]}),
            sensitive="s",
            useful="x",
            weight="w",
        )


def test_nothing_left_after_dropping():
    frame = pd.DataFrame({"s": ["a", None], "x": [None, "v"]})
    with pytest.raises(InputError, match="there are no records left: dropped 2 of 2"):
        Joint.from_table(frame, sensitive="s", useful="x", missing="drop")


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (
            {"s": ["a"], "x": ["u"]},
            "must be a pandas, polars or pyarrow table; not dict",
        ),
        (
            pd.DataFrame([["a", "u", "v"]], columns=["s", "x", "x"]),
            "two columns have the same name",
        ),
        (
            pd.DataFrame({"s": ["a"], "x": [b"u"]}),
            "the column 'x' holds bytes, which is no symbol",
        ),
        (
            pl.DataFrame({"s": ["a"], "x": [["u"]]}),
            "the column 'x' holds .*list.*, which is no symbol",
        ),
        (
            pa.table({"s": ["a"], "x": [b"u"]}),
            "the column 'x' holds binary, which is no symbol",
        ),
    ],
)
def test_bad_frames_are_refused(frame, message):
    with pytest.raises(InputError, match=message):
        Joint.from_table(frame, sensitive="s", useful="x")


@pytest.mark.parametrize(
    ("unused", "repeated"),
    [(0, 1), (3000, 1), (3000, 6)],
    ids=["dense", "sorted", "wide"],
)
def test_every_way_of_counting_gives_the_same(unused, repeated):
    """Unused texts make the possible combinations exceed the dense array, and then 64 bits."""
    rng = np.random.default_rng(5)
    first, second = (
        rng.integers(0, 3, 500).astype(str),
        rng.integers(0, 4, 500).astype(str),
    )
    columns = [encode(values, "c") for values in (first, second)]
    padded = [
        Encoded(c.codes, c.texts + ("unused",) * unused) for c in columns
    ] * repeated
    records = list(zip(first.tolist(), second.tolist(), strict=True))
    numbering = Numbering()
    numbers = numbering.number(padded)
    assert [numbering.texts[k][:2] for k in numbers.tolist()] == records
    assert [key[:2] for key in numbering.texts] == list(dict.fromkeys(records))
    names = tuple(f"c{i}" for i in range(len(padded)))
    tally = Tally(Roles(names[:-1], names[-1:]))
    tally.add_columns([*padded[:-1], columns[1]])
    counts = Counter(
        zip(
            [key[:-1] for key in map(tuple, _symbols(padded))],
            second.tolist(),
            strict=True,
        )
    )
    joint = Joint.from_tally(tally)
    assert {
        (s, x): joint.counts[i][j]
        for s, i in joint.sensitive.index.items()
        for (x,), j in joint.useful.index.items()
    } == {
        (s, x): counts[s, x]
        for s in joint.sensitive.symbols
        for (x,) in joint.useful.symbols
    }


def _symbols(columns):
    return zip(
        *([column.texts[code] for code in column.codes.tolist()] for column in columns),
        strict=True,
    )


def test_lazy_frames_are_collected_and_cross_tables_keep_their_names():
    frame = pd.DataFrame({"s": list("aabbb"), "x": list("uvuvv"), "z": 1})
    expected = Joint.from_table(frame, sensitive="s", useful="x")
    assert (
        Joint.from_table(pl.from_pandas(frame).lazy(), sensitive="s", useful="x")
        == expected
    )
    assert Joint.from_counts(pd.crosstab(frame.s, frame.x)) == expected
    named = Joint.from_counts(pd.crosstab(frame.s, frame.x), sensitive="group")
    assert (named.sensitive.columns, named.useful.columns) == (("group",), ("x",))
    crossed = Joint.from_counts(pd.crosstab(frame.s, [frame.x, frame.z]))
    assert crossed.useful.columns == ("x", "z")


def test_a_table_of_few_records_is_made_without_a_call_for_each_empty_cell():
    """60,000 records with 250 secrets have 13 million cells, of which nearly all are empty."""
    records = range(400)
    tally = Tally(Roles(("s",), ("x",)))
    names = {"s": [f"s{k % 50}" for k in records], "x": [f"x{k}" for k in records]}
    for columns, times in counted_columns(pa.table(names), ("s", "x")):
        tally.add_columns(columns, times)
    joint = Joint.from_tally(tally)
    assert sum(map(sum, joint.counts)) == 400
    cells = len(joint.sensitive) * len(joint.useful)
    assert calls_of(lambda: Joint.from_tally(tally)) < cells
