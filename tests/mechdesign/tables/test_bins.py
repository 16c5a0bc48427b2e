"""Bins: which one a number, date or time is in, exactly; where they begin; the table that is
counted through them.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from unittest import mock

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mechdesign as md
from mechdesign.core.errors import InputError
from mechdesign.formats.cells import Encoded, encode
from mechdesign.tables.bin_edges import bins_for, least_distance, quantile_splits
from mechdesign.tables.bins import NO_NUMBER, OUTSIDE, Bins
from mechdesign.tables.cell_values import kind_of, number_of, text_of_number
from mechdesign.tables.columns import encode_for
from mechdesign.tables.variable import Variable, numbers_of

decimals = st.decimals(
    allow_nan=False, allow_infinity=False, places=3, min_value=-50, max_value=50
)
edge_lists = st.lists(decimals, min_size=2, max_size=8, unique=True).map(sorted)


def by_hand(edges: list[Decimal], value: Decimal) -> int:
    """The bin [low, high) of a value, the last one with its upper edge; -2 outside."""
    last = len(edges) - 2
    pairs = enumerate(itertools.pairwise(edges))
    hit = [
        k for k, (lo, hi) in pairs if lo <= value < hi or (k == last and value == hi)
    ]
    assert len(hit) <= 1
    return hit[0] if hit else -2


@given(edge_lists, st.lists(decimals, max_size=20))
def test_bins_partition_the_line_between_the_edges(edges, values):
    """Every number between the edges is in exactly one bin, that of the definition; so are the
    edges themselves.
    """
    bins = Bins(edges=tuple(f"{edge:f}" for edge in edges))
    cells = [f"{value:f}" for value in (*values, *edges)]
    expected = [by_hand(edges, value) for value in (*values, *edges)]
    assert [bins.bin_of(cell) for cell in cells] == expected
    assert bins.bins_of(cells).tolist() == expected


@given(st.floats(-1e6, 1e6), st.integers(0, 3), st.integers(1, 40))
def test_numbers_next_to_an_edge_are_decided_exactly(edge, digits, zeros):
    """A number less than a rounding error below an edge is below it: no double decides."""
    at = Decimal(repr(edge))
    bins = Bins(edges=("-inf", f"{at:f}", "inf"))
    little = Decimal(1).scaleb(at.as_tuple().exponent - zeros)
    near = [f"{at:f}", f"{_exact(at, -little):f}", f"{_exact(at, little):f}"]
    assert bins.bins_of(near).tolist() == [1, 0, 1]
    assert bins.bins_of([*near, "+1" + "0" * digits]).tolist()[:3] == [
        1,
        0,
        1,
    ]  # which arrow cannot read


def _exact(one: Decimal, other: Decimal) -> Decimal:
    total = Fraction(one) + Fraction(other)
    return Decimal(text_of_number(total, "number"))


@pytest.mark.parametrize("text", ["1", "01", "1.0", "+1", " 1", "10e-1", "1.", "1.000"])
def test_a_number_is_the_same_however_it_is_written(text):
    bins = Bins(edges=("0", "1", "2"))
    assert bins.bin_of(text) == bins.bins_of([text])[0] == 1


@pytest.mark.parametrize(
    "text",
    ["", "x", "nan", "inf", "-inf", "1,5", "0x1", "1_0", "1/2", "2024-01-01", "1e9999"],
)
def test_what_is_no_number_has_no_bin(text):
    bins = Bins(edges=("-inf", "1", "inf"))
    assert bins.bin_of(text) == bins.bins_of([text])[0] == -1


def texts_of(column: Encoded) -> list[str | None]:
    """The text of every cell, None for a missing one."""
    texts = (*column.texts, None)
    return [texts[code] if code >= 0 else None for code in column.codes.tolist()]


def test_columns_are_sorted_in_with_what_has_no_bin_marked():
    bins = Bins(edges=("0", "10", "20"))
    column = Encoded(
        np.array([0, 1, -1, 2, 3, 4, 5]), ("5", "20", "21", "x", "", "05.0")
    )
    labels = ["[0, 10)", "[10, 20]", None, OUTSIDE, NO_NUMBER, None, "[0, 10)"]
    assert texts_of(bins.sorted_in(column)) == labels


@given(st.integers(-5, 8), st.integers(-(10**6), 10**6))
def test_numbers_are_written_so_that_they_are_read_again(places, digits):
    value = Fraction(digits) / Fraction(10) ** places
    assert number_of(text_of_number(value, "number"), "number") == value


@given(
    st.datetimes(datetime(1, 1, 8), datetime(9999, 12, 1)),
    st.sampled_from(["time", "instant", "clock", "date"]),
)
def test_moments_are_written_so_that_they_are_read_again(moment, kind):
    if kind == "date":
        moment = datetime(moment.year, moment.month, moment.day)
    text = {
        "date": moment.date().isoformat(),
        "time": str(moment),
        "instant": str(moment.replace(tzinfo=UTC)),
        "clock": str(moment.time()),
    }[kind]
    value = number_of(text, kind)
    assert value is not None
    written = text_of_number(value, kind)
    assert number_of(written, kind) == value
    assert len(written) <= len(text)
    assert text.startswith(written.removesuffix("+00:00"))
    assert kind_of([text]) in (kind, "date")  # what is all midnights are dates
    if kind != "clock":
        since = moment - datetime(1970, 1, 5)
        assert value == Fraction(since // timedelta(microseconds=1), 10**6)


def test_moments_with_zones_are_compared_in_utc():
    assert number_of("2024-01-31 09:00+01:00", "instant") == number_of(
        "2024-01-31T08:00:00Z", "instant"
    )
    assert number_of("2024-01-31 07:30-0030", "instant") == number_of(
        "2024-01-31 08:00:00+00:00", "instant"
    )
    assert number_of("2024-01-31 08:00", "instant") is None
    assert number_of("2024-01-31 08:00Z", "time") is None


@given(
    st.lists(
        st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1)),
        min_size=1,
        max_size=20,
    )
)
def test_many_moments_are_in_the_bins_of_each(moments):
    """Arrow's microseconds decide as exact seconds do."""
    low = min(moments)
    high = max(moments) + timedelta(seconds=1)
    middle = low + (high - low) / 2
    bins = Bins(kind="time", edges=tuple(map(str, sorted({low, middle, high}))))
    cells = [str(moment) for moment in moments]
    assert bins.bins_of(cells).tolist() == [bins.bin_of(cell) for cell in cells]
    # A moment finer than microseconds makes arrow give up, and exact seconds decide.
    finer = f"{cells[0].partition('.')[0]}.0000001"
    assert bins.bins_of([*cells, finer])[:-1].tolist() == bins.bins_of(cells).tolist()


EDGES = ("-1.5", "0.1", "0.3", "7", "9007199254740993")
doubles = st.floats(-2, 8) | st.sampled_from(
    [float(e) for e in EDGES] + [math.nan, math.inf, -0.0, 1e300]
)
whole = st.integers(-3, 9) | st.integers(2**53 - 2, 2**53 + 3)


@given(
    st.lists(st.none() | doubles, max_size=20).map(lambda v: pa.array(v, pa.float64()))
    | st.lists(st.none() | whole, max_size=20).map(lambda v: pa.array(v, pa.int64())),
    st.integers(0, 3),
)
def test_typed_columns_are_in_the_bins_of_their_texts(values, start):
    """What decides without texts decides as the texts do: on edges, beyond 2**53, and for what is
    missing.
    """
    bins = Bins(edges=EDGES)
    variable = Variable(("x",), (("[0.1, 0.3)",),), bins=(bins,))
    part = values.slice(start)
    chunked = pa.chunked_array([values, part])
    for column in (values, part, chunked, part.dictionary_encode()):
        without_texts = bins.sorted_in(encode_for(column, "x", variable, 0))
        by_texts = bins.sorted_in(encode(column, "x"))
        assert texts_of(without_texts) == texts_of(by_texts)
        exact = []
        for value in column.to_pylist():
            missing = value is None or math.isnan(value)
            # The codes -1 and -2 count from the end of `marked`.
            exact.append(None if missing else bins.marked[bins.bin_of(repr(value))])
        assert texts_of(without_texts) == exact


@given(
    st.lists(
        st.none() | st.datetimes(datetime(2023, 12, 30), datetime(2024, 1, 3)),
        max_size=20,
    ),
    st.sampled_from(
        [pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.timestamp("ms"), pa.date32()]
    ),
    st.sampled_from(["date", "time", "instant"]),
)
def test_typed_moments_are_in_the_bins_of_their_texts(values, kind, cells):
    midnight = {"date": "", "time": " 00:00:00", "instant": " 00:00:00+00:00"}[cells]
    edges = (f"2024-01-01{midnight}", f"2024-01-02{midnight}", "inf")
    bins = Bins(kind=cells, edges=edges)
    variable = Variable(("x",), ((bins.labels[0],),), bins=(bins,))
    values = [*values, datetime(2024, 1, 1), datetime(2024, 1, 2)]
    column = pa.array(values, pa.timestamp("us"))
    # Arrow casts no zone and unit at once.
    column = column.cast(pa.timestamp(getattr(kind, "unit", "us")), safe=False)
    column = column.cast(kind, safe=False)
    without_texts = bins.sorted_in(encode_for(column, "x", variable, 0))
    by_texts = bins.sorted_in(encode(column, "x"))
    assert texts_of(without_texts) == texts_of(by_texts)


weighted = st.dictionaries(
    st.integers(0, 30), st.integers(1, 5), min_size=2, max_size=9
)


def cost_of(part: list[tuple[int, int]]) -> Fraction:
    """Least total distance of these numbers to one of them."""
    distances = []
    for middle, _ in part:
        distances.append(sum(mass * abs(v - middle) for v, mass in part))
    return Fraction(min(distances))


@given(weighted, st.integers(1, 6))
def test_the_dynamic_program_finds_the_least_distance(table, most):
    """``D_k = min over contiguous bins of sum over v of P(v) |v - median of its bin|``, against
    every way to split.
    """
    numbers = [(Fraction(v), mass) for v, mass in sorted(table.items())]
    size = len(numbers)

    def distance_of(splits):
        parts = itertools.pairwise([0, *splits, size])
        return sum(cost_of(numbers[a:b]) for a, b in parts) / sum(table.values())

    solutions = least_distance(numbers, most)
    assert len(solutions) == min(most, size)
    for k, (splits, distance) in enumerate(solutions, 1):
        all_splits = itertools.combinations(range(1, size), k - 1)
        least = min(map(distance_of, all_splits))
        assert distance == pytest.approx(float(least), abs=1e-9)
        assert distance_of(splits) == least


@pytest.mark.parametrize("spec", ["quantiles:2", "quantiles:4", "auto:3"])
def test_a_column_with_one_number_has_one_bin(spec):
    """Its quantiles were sought without end."""
    assert quantile_splits([(Fraction(5), 200)], 4) == []
    table = pd.DataFrame({"s": ["a", "b"] * 3, "u": list("xyxxyy"), "one": [5] * 6})
    joint = md.Joint.from_table(table, sensitive="s", useful=["u", "one"])
    binned = joint.binned({"one": spec})
    assert {symbol[1] for symbol in binned.useful.symbols} == {"(-inf, inf)"}


@given(weighted, st.integers(2, 6))
def test_quantiles_split_into_shares_that_ties_allow(table, bins):
    numbers = [(Fraction(v), mass) for v, mass in sorted(table.items())]
    splits = quantile_splits(numbers, bins)
    assert splits == sorted(set(splits))
    assert all(0 < k < len(numbers) for k in splits)
    total = sum(table.values())
    reached = [sum(mass for _, mass in numbers[:k]) for k in (0, *splits, len(numbers))]
    for share in range(1, bins):
        target = total * share / bins
        assert min(abs(r - target) for r in reached) <= max(table.values())


@given(
    st.lists(st.tuples(st.sampled_from("ab"), decimals), min_size=6, max_size=40),
    st.sampled_from(
        ["7", "0.25", "quantiles:3", "auto:3", "-60,-1,0,0.001,60", "-inf,0,inf"]
    ),
)
def test_the_binned_table_is_what_counting_by_hand_gives(records, spec):
    """counts[s][bin] is the number of records of s whose number is in the bin; representatives are
    lower medians.
    """
    extremes = [("a", Decimal(-51)), ("b", Decimal(51))]
    records = [*records, *extremes]
    frame = pd.DataFrame(records, columns=["s", "x"]).astype(str)
    joint = md.Joint.from_table(frame, sensitive="s", useful="x", bins=spec)
    (bins,) = joint.useful.bins
    cuts = [Decimal(edge) for edge in bins.edges]
    values_of_bin = defaultdict(list)
    expected = Counter()
    for s, x in records:
        k = by_hand(cuts, x)
        values_of_bin[k].append(x)
        expected[s, bins.labels[k]] += 1
    counted = Counter()
    for s, row in zip(joint.sensitive.names, joint.counts, strict=True):
        for label, count in zip(joint.useful.names, row, strict=True):
            counted[s, label] += count
    assert counted == expected
    present = sorted(values_of_bin)
    assert joint.useful.names == tuple(bins.labels[k] for k in present)
    medians = {}
    for k, values in values_of_bin.items():
        medians[k] = sorted(values)[(len(values) - 1) // 2]
    for k, shown in enumerate(bins.representatives):
        assert (shown is None) == (k not in medians)
        if shown is not None:
            assert Decimal(shown) == medians[k]
    numbers = tuple(Fraction(bins.representatives[k]) for k in present)
    assert numbers_of(joint.useful) == numbers


def frame_of(values) -> pd.DataFrame:
    return pd.DataFrame({"s": ["a", "b"] * (len(values) // 2), "x": values})


def names(values, bins) -> tuple[str, ...]:
    return md.Joint.from_table(
        frame_of(values), sensitive="s", useful="x", bins=bins
    ).useful.names


@pytest.mark.parametrize(
    ("values", "bins", "expected"),
    [
        ([17, 29, 30, 90], 10, ("[10, 20)", "[20, 30)", "[30, 40)", "[90, 100]")),
        ([17, 29, 30, 90], Decimal(40), ("[0, 40)", "[80, 120]")),
        ([17.5, 29.0, 30.25, 90.0], 0.5, ("[17.5, 18)", "[29, 29.5)", "[30, 30.5)", "[90, 90.5]")),
        ([-0.1, 0.0, 0.2, 0.3], "0.1", ("[-0.1, 0)", "[0, 0.1)", "[0.2, 0.3)", "[0.3, 0.4]")),
        ([17, 29, 30, 90], [17, 30, 90], ("[17, 30)", "[30, 90]")),
        ([17, 29, 30, 90], (float("-inf"), 30, float("inf")), ("(-inf, 30)", "[30, inf)")),
        ([0, 0, 0, 114], "quantiles:2", ("(-inf, 100)", "[100, inf)")),
        ([1999, 2000, 2001, 3111], "auto:2", ("(-inf, 3000)", "[3000, inf)")),
        (
            [date(2024, 1, 1), date(2024, 1, 7), date(2024, 1, 8), date(2024, 1, 14)],
            "7d",
            ("[2024-01-01, 2024-01-08)", "[2024-01-08, 2024-01-15]"),
        ),
        (
            [datetime(2024, 1, 1, 8, 59), datetime(2024, 1, 1, 9), datetime(2024, 1, 1, 10), datetime(2024, 1, 2)],
            timedelta(hours=1),
            (
                "[2024-01-01 08:00:00, 2024-01-01 09:00:00)",
                "[2024-01-01 09:00:00, 2024-01-01 10:00:00)",
                "[2024-01-01 10:00:00, 2024-01-01 11:00:00)",
                "[2024-01-02 00:00:00, 2024-01-02 01:00:00]",
            ),
        ),
        (["08:15", "08:20", "09:00", "23:59:59.5"], "12h", ("[00:00:00, 12:00:00)", "[12:00:00, 24:00:00]")),
        (
            ["2024-01-01T00:30+01:00", "2024-01-01T00:30Z", "2024-01-01T03:30Z", "2024-01-01T05:30+05:00"],
            "1d",
            (
                "[2023-12-31 00:00:00+00:00, 2024-01-01 00:00:00+00:00)",
                "[2024-01-01 00:00:00+00:00, 2024-01-02 00:00:00+00:00]",
            ),
        ),
        (
            ["2023-05-01", "2023-12-31", "2024-01-01", "2024-05-01"],
            "2023-01-01,2024-01-01,inf",
            ("[2023-01-01, 2024-01-01)", "[2024-01-01, inf)"),
        ),
    ],
)  # fmt: skip
def test_labels(values, bins, expected):
    assert names(values, bins) == expected


@pytest.mark.parametrize(
    "make",
    [pd.DataFrame, pl.DataFrame, pa.table, lambda d: pd.DataFrame(d).astype(str)],
)
def test_every_kind_of_frame_gives_the_same_bins(make):
    values = {"s": ["a", "b", "a", "b"], "x": [1.5, 2.0, 2.5, 7.0]}
    joint = md.Joint.from_table(make(values), sensitive="s", useful="x", bins=2)
    assert joint.useful.names == ("[0, 2)", "[2, 4)", "[6, 8]")
    assert joint.counts == ((1, 1, 0), (0, 1, 1))


def test_crossed_columns_have_bins_by_name_and_empty_bins_are_noted():
    frame = pd.DataFrame(
        {
            "s": list("abab"),
            "x": [1, 15, 35, 36],
            "y": list("uvuu"),
            "z": ["0.1", "0.2", "0.7", "0.9"],
        }
    )
    joint = md.Joint.from_table(
        frame, sensitive="s", useful=["x", "y", "z"], bins={"x": 10, "z": "0,0.5,1"}
    )
    assert joint.useful.names == (
        "[0, 10), u, [0, 0.5)",
        "[10, 20), v, [0, 0.5)",
        "[30, 40], u, [0.5, 1]",
    )
    assert [each is None for each in joint.useful.bins] == [False, True, False]
    assert "1 of the 4 bins of 'x' hold no record" in joint.notices[0]
    assert numbers_of(joint.useful, 2) == (
        Fraction("0.1"),
        Fraction("0.1"),
        Fraction("0.7"),
    )
    with pytest.raises(
        InputError, match="the column 'y' holds symbols that are no numbers"
    ):
        numbers_of(joint.useful, 1)


def test_missing_cells_stay_a_symbol_and_weights_count():
    frame = pd.DataFrame(
        {"s": list("abab"), "x": ["1", "", "12", "13"], "w": ["1", "2", "3", "0.5"]}
    )
    joint = md.Joint.from_table(
        frame.replace("", None),
        sensitive="s",
        useful="x",
        weight="w",
        missing="symbol",
        bins=10,
    )
    assert joint.useful.names == ("", "[0, 10)", "[10, 20]")
    assert joint.useful_counts == (4, 2, 7)
    assert joint.useful.bins[0].counts == ((1,), (6, 1))
    assert numbers_of(joint.useful) == (None, 1, 12)


def test_the_bins_of_one_table_are_taken_for_another():
    first = md.Joint.from_table(
        frame_of([1, 5, 12, 19]), sensitive="s", useful="x", bins="auto:2"
    )
    second = md.Joint.from_table(
        frame_of([2, 2, 300, 301]), sensitive="s", useful="x", bins=first.useful.bins
    )
    assert second.useful.symbols == first.useful.symbols
    assert second.useful.bins[0].edges == first.useful.bins[0].edges
    assert second.useful.bins[0].representatives == ("2", "300")
    # a table whose symbols are bins already stays as it is
    again = md.Joint.from_counts(
        first.counts, useful_labels=first.useful.names, useful="x"
    ).binned(first.useful.bins)
    assert again.useful == first.useful


def test_of_very_many_values_a_thousand_are_kept_with_the_same_median():
    numbers = [str(k) for k in range(5001)]
    bins = bins_for("x", "-inf,5000,inf", [(text, 3) for text in numbers])
    assert len(bins.values[0]) == sum(bins.counts[0]) == 1000
    assert abs(int(bins.representatives[0]) - 2500) <= 5
    assert bins.counts[1] == (1,)


@pytest.mark.parametrize(
    ("values", "bins", "message"),
    [
        (["1", "x", "y", "4"], 2, r"the column 'x': 2 different cell\(s\) are no number; correct them .write numbers as 1800.*, say .*missing_codes"),
        (["1,5", "2,5"], 2, "its numbers have a decimal comma: write them with a point"),
        (["31.1.2024", "1.2.2024"] * 2, "7d", r"no number, date or time in it, .*; write days as 2023-01-31"),
        (["1/31/24 10:15", "2/1/24 9:00"] * 2, "7d", "; write days as 2023-01-31"),
        (["u", "v", "w", "z"], 2, r"the column 'x' has no number, date or time in it, and bins sorts numbers .* value labels"),
        (["2024-01-01", "2", "2024-01-02", "2024-01-03"], "2d", r"are no number"),
        (["9999-11-01", "9999-12-31"] * 2, "7d", r"the bins would reach beyond the years 1 to 9999; give edges"),
        (["0001-01-01 00:10+01:00", "2024-01-01 00:10Z"] * 2, "1h", r"1 different cell\(s\) are no date and"),
        ([1, 2, 3, 4], "2,3", r"has 2 different value\(s\) outside the edges 2 to 3; add an edge below or above them"),
        ([1, 2, 3, 4], [], r"bins '' must be a width \(10, 0\.5, 7d, 1h\), quantiles:N, auto, auto:N, or edges"),
        ([1, 2, 3, 4], "ten", r"bins 'ten' must be a width"),
        ([1, 2, 3, 4], 0, r"bins '0': the width must be positive"),
        ([1, 2, 3, 4], -2, r"bins '-2': the width must be positive"),
        ([1, 2, 3, 4], "0.00001", r"bins '0\.00001' makes more than 100,000 bins of the column 'x'; give a larger"),
        ([1, 2, 3, 4], "1d", r"bins '1d': the column 'x' holds a number in each cell, so its width is a plain number"),
        (["20240131", "20240201"] * 2, "7d", r"bins '7d': the column 'x' holds numbers that look like days or months"),
        (["2024-01-01", "2024-01-02"], "7", r"holds a date \(2024-01-31\) in each cell, so its width is a time"),
        ([1, 2, 3, 4], "1,x", r"bins: the edge 'x' is no number, which the column 'x' holds; nor -inf or inf"),
        (["2024-01-01", "2024-01-02"], "1,2", r"bins: the edge '1' is no date"),
        ([1, 2, 3, 4], "3,1", r"bins: the edges must ascend, but '1' does not follow"),
        ([1, 2, 3, 4], "1,1.0", r"bins: the edges must ascend, but '1\.0' does not follow"),
        ([1, 2, 3, 4], "quantiles:1", r"bins 'quantiles:1': the number of bins must be a whole number from 2 to"),
        ([1, 2, 3, 4], "auto:x", r"bins 'auto:x': the number of bins must be a whole number"),
        ([1, 2, 3, 4], "auto", r"bins auto chooses the bins for one budget, which only `design` has; say auto:N"),
        ([1, 2, 3, 4], "-inf,inf", r"the useful column 'x' has a single symbol \('\(-inf, inf\)'\)"),
        ([1, 2, 3, 4], {"y": 2}, r"bins names the column 'y', which is not released \('x'\)"),
    ],
)  # fmt: skip
def test_what_no_bins_can_be_made_of_is_refused(values, bins, message):
    with pytest.raises(InputError, match=message):
        names(values, bins)


@pytest.mark.parametrize(
    ("values", "is_noted"),
    [
        (["20240131", "20240201", "20240229", "20240301"], True),
        (["202312", "202401", "202402", ""], True),
        (["20240131", "20240201", "202402", "20240301"], False),
        (["20240131", "20240299", "20240201", "20240301"], False),
        (["202313", "202401", "202402", "202403"], False),
    ],
)
def test_days_written_as_numbers_are_noted(values, is_noted):
    table = md.Joint.from_table(
        frame_of(values), sensitive="s", useful="x", missing="symbol"
    )
    notices = table.binned("quantiles:2").notices
    assert is_noted == any("write them as 2023-01-31" in notice for notice in notices)


def test_no_message_shows_a_cell():
    for bins in (10, "-inf,0,inf", "0,1"):
        with pytest.raises(InputError) as refused:
            names(["12", "secret-7", "13", "14"], bins)
        assert "secret" not in str(refused.value)


def test_bins_are_made_once_and_crossed_ones_named():
    joint = md.Joint.from_table(
        frame_of([1, 2, 13, 4]), sensitive="s", useful="x", bins=5
    )
    with pytest.raises(InputError, match="the column 'x' is sorted into bins already"):
        joint.binned(5)
    with pytest.raises(
        InputError,
        match=r"several columns are crossed: say which one is binned \(bins='x=WIDTH'\)",
    ):
        md.Joint.from_table(
            frame_of([1, 2, 3, 4]).assign(y=1), sensitive="s", useful=["x", "y"], bins=5
        )


def test_a_public_variable_keeps_nothing_that_was_computed_from_the_values() -> None:
    bins = bins_for("age", "10", [("21", 3), ("28", 1), ("35", 2)])
    assert bins.representatives == ("21", "35")
    assert bins.public().representatives is None


@pytest.mark.parametrize("batches", [10, 100, 1_000])
@pytest.mark.parametrize("cells", [("20", "25", "30"), ("20", "", "25", "30")])
def test_the_same_texts_are_decided_exactly_once(batches, cells):
    """Batches of a file have the same cells on edges, and the same texts that are no numbers."""
    bins = Bins(edges=("20", "30", "40"))
    with mock.patch.object(Bins, "bin_of", autospec=True) as exact:
        exact.side_effect = lambda _, text: -1 if not text else int(text >= "30")
        for _ in range(batches):
            found = bins.bins_of(cells).tolist()
            assert found == [-1 if not text else int(text >= "30") for text in cells]
    assert exact.call_count <= len(cells)


def test_few_texts_are_remembered():
    bins = Bins(edges=("0", "1"))
    with mock.patch("mechdesign.tables.bins.MOST_KNOWN", 10):
        for digits in range(100):
            assert bins.bins_of([f"1.{'0' * digits}"]).tolist() == [0]
            assert len(bins._known) <= 10


def test_bins_are_compared_by_their_edges_alone():
    """Whatever was sorted into them before."""
    one = Bins(edges=("0", "10", "20"))
    other = Bins(edges=("0", "10", "20"))
    one.bins_of(["3", "10", "x"])
    assert one == other
    assert hash(one) == hash(other)
    assert one != Bins(edges=("0", "10", "30"))
    assert one != "bins"
