"""Hashes of records: what they do not depend on, and shares estimated from samples."""

from __future__ import annotations

import io
import random

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechdesign.formats.cells import encode
from mechdesign.formats.census import SAMPLE, Census
from mechdesign.formats.csv_text import TextOptions
from mechdesign.formats.digests import RowHasher
from mechdesign.formats.opening import open_source

SECRET = bytes(range(32))
HASHER = RowHasher(SECRET)
CELLS = st.one_of(
    st.text(
        st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), max_size=40
    )
)


def of_csv(text: str, **options) -> np.ndarray:
    hashes = [np.zeros(0, np.uint64)]
    with open_source(io.BytesIO(text.encode()), TextOptions(**options)) as table:
        for batch in table.batches():
            hashes.append(HASHER.records(batch))
    return np.concatenate(hashes)


def of_arrow(**columns) -> np.ndarray:
    table = pa.table(columns)
    return HASHER.columns(table.columns, table.num_rows)


def census(hashes) -> Census:
    visited = Census()
    for part in np.array_split(np.asarray(hashes, np.uint64), 7):
        visited.add(part)
    return visited


def in_quotes(cell):
    doubled = cell.replace('"', '""')
    return f'"{doubled}"'


@given(st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=20))
def test_csv_and_arrow_have_the_same_hashes(rows):
    """Quotes, delimiters and line breaks in cells included, however they are quoted."""
    one = [a for a, _ in rows]
    two = [b for _, b in rows]
    expected = of_arrow(
        a=pa.array(one, pa.string()), b=pa.array(two, pa.large_string())
    )
    text = "a,b\n"
    for a, b in rows:
        text += f"{in_quotes(a)},{in_quotes(b)}\n"
    assert of_csv(text).tolist() == expected.tolist()
    coded = of_arrow(b=pa.array(two).dictionary_encode(), a=pa.array(one))
    assert coded.tolist() == expected.tolist()


@given(
    st.lists(
        st.one_of(
            st.floats(allow_infinity=False, allow_nan=False),
            st.integers(-(2**62), 2**62),
        ),
        max_size=20,
    )
)
def test_numbers_count_by_their_value(values):
    """As text, whole or not, and as numbers of any type that holds them."""
    texts = [repr(v) for v in values]
    as_text = of_arrow(x=pa.array(texts, pa.string()))
    hash_of = dict(zip(texts, as_text.tolist(), strict=True))
    floats = [v for v in values if isinstance(v, float)]
    whole = [v for v in values if isinstance(v, int)]
    for numbers, kind in ((floats, pa.float64()), (whole, pa.int64())):
        hashes = of_arrow(x=pa.array(numbers, kind)).tolist()
        assert hashes == [hash_of[repr(v)] for v in numbers]


@pytest.mark.parametrize(
    ("cells", "same"),
    [
        (["1", "1.0", "01", "1.00", "+1", "1e0", "10E-1"], True),
        (["0", "-0", "0.0", "-0.0", "0e9"], True),
        (["1e400", "1e401", "inf"], False),
        (["True", "true", "TRUE"], True),
        (["12345678901234567890", "12345678901234567891"], False),
        (
            [
                "1e3000000000",
                "x",
                " x",
                "1 ",
                "1,5",
                ".",
                "-",
                "e5",
                "1e",
                "2024-01-01",
                "tru",
            ],
            False,
        ),
    ],
)
def test_what_is_the_same_cell(cells, same):
    hashes = set(of_arrow(x=pa.array(cells, pa.string())).tolist())
    assert len(hashes) == (1 if same else len(cells))


@given(st.text("/0123456789:;<=>?@", min_size=1, max_size=9))
def test_digits_alone_are_numbers(text):
    """Eight bytes are read together: "08:00" is no 9000, though the bytes beside the digits differ
    in few bits.
    """
    value = 0
    for character in text:
        value = 10 * value + ord(character) - ord("0")
    as_text = of_arrow(x=pa.array([text])).tolist()
    as_number = of_arrow(x=pa.array([float(value)])).tolist()
    assert (as_text == as_number) == text.isdigit()
    assert of_csv(f"x,y\n{text},\n").tolist() == as_text
    assert of_csv(f"y,x\n,{text}").tolist() == as_text


def test_types_of_a_table_and_of_its_csv():
    n = 500
    draw = np.random.default_rng(1)
    table = pa.table(
        {
            "small": draw.integers(-100, 100, n).astype(np.int16),
            "big": draw.integers(-(2**62), 2**62, n),
            "float": draw.normal(size=n) * 10.0 ** draw.integers(-300, 300, n),
            "flag": draw.integers(0, 2, n) == 1,
            "gap": pa.array([None if i % 3 else i / 7 for i in range(n)]),
            "text": pa.array([None if i % 5 else f"ü{i}" for i in range(n)]),
            "none": pa.nulls(n),
        }
    )
    sink = io.BytesIO()
    pc.write_csv(table, sink)
    assert (
        of_csv(sink.getvalue().decode()).tolist()
        == HASHER.columns(table.columns, n).tolist()
    )
    sliced = table.slice(13, 100)
    assert (
        HASHER.columns(sliced.columns, 100).tolist()
        == HASHER.columns(table.columns, n).tolist()[13:113]
    )


@pytest.mark.parametrize("cell", ["2024-01-31T07:30Z", '"2024-01-31T07:30Z"'])
def test_moments_of_a_csv_are_those_of_arrow(cell):
    """With quotes around them and without, beside cells that are none."""
    with open_source(io.BytesIO(f"x,y\nno,1\n{cell},\n".encode())) as table:
        (batch,) = table.batches()
        as_text, by_value = HASHER.both_readings(batch)
    instant = pa.array([1_706_686_200], pa.timestamp("s", "UTC"))
    table = pa.table({"x": instant, "y": pa.array([""])})
    _, bare = HASHER.content_and_bare(table.columns, 1, ["x", "y"], ())
    assert by_value is not None
    assert by_value[0] == as_text[0]
    assert by_value[1] == bare[0] != as_text[1]


def test_lists_do_not_count():
    alone = of_arrow(x=["a", "b"])
    assert of_arrow(x=["a", "b"], more=[[1], [2]]).tolist() == alone.tolist()


def test_another_secret_has_other_hashes():
    other = RowHasher(bytes(32))
    column = [pa.array(["a", "b"])]
    assert not set(HASHER.columns(column, 2).tolist()) & set(
        other.columns(column, 2).tolist()
    )


@given(st.lists(st.tuples(CELLS, CELLS), max_size=12, unique=True))
def test_identifiers_count_byte_for_byte_and_in_their_order(pairs):
    columns = []
    for place in (0, 1):
        columns.append(encode([pair[place] for pair in pairs], "id"))
    assert len(set(HASHER.identifiers(columns).tolist())) == len(pairs)


def test_a_census_knows_order_and_multiset():
    """Equal sums mean equal multisets, but for accidents of 128 bits."""
    rows = np.random.default_rng(2).integers(0, 2**64, 1000, np.uint64)
    rows[:10] = rows[10]
    first = census(rows).content()
    again = census(rows.copy()).content()
    assert again.ordered == first.ordered
    assert again.unordered == first.unordered
    turned = census(rows[::-1]).content()
    assert turned.ordered != first.ordered
    assert turned.unordered == first.unordered
    assert census(rows[1:]).content().unordered != first.unordered
    assert first.records == first.below == 1000
    assert len(first.unique) == 989


@pytest.mark.parametrize(
    ("size", "share"),
    [(1000, 0.0), (1000, 0.3), (50_000, 0.0), (50_000, 0.3), (50_000, 1.0)],
)
def test_the_share_in_other_data_sets(size, share):
    """Within 5 standard deviations of what a sample of 4096 can tell; exact where all records are
    in it.
    """
    draw = np.random.default_rng(3)
    old = draw.integers(0, 2**64, 3 * size, np.uint64)
    known = old[: round(share * size)]
    fresh = draw.integers(0, 2**64, size - len(known), np.uint64)
    new = draw.permutation(np.concatenate([known, fresh]))
    samples = []
    for half in np.array_split(draw.permutation(old), 2):
        samples.append(census(half).content().sample())
    estimate = census(new).content().share_in(samples)
    sampled = size if size < SAMPLE else SAMPLE / 3
    deviation = (share * (1 - share) / sampled) ** 0.5
    assert estimate == pytest.approx(share, abs=5 * deviation + 1e-12)


def test_records_that_are_not_unique_tell_nothing():
    """The share of coincidences is at most 1/e, so one half is never reached by chance."""
    draw = random.Random(4)
    for kinds in (3, 300, 1000, 3000, 10_000):
        old = [draw.randrange(kinds) * 2**50 for _ in range(1000)]
        new = [draw.randrange(kinds) * 2**50 for _ in range(1000)]
        assert census(new).content().share_in([census(old).content().sample()]) < 0.45
    assert census([]).content().share_in([census([1]).content().sample()]) == 0.0
    assert census([1, 2]).content().share_in([]) == 0.0
