from __future__ import annotations

from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechdesign.formats.cells import Encoded, as_whole
from mechdesign.tables import variable as variables
from mechdesign.tables.columns import MISSING, UNKNOWN, positions_of
from mechdesign.tables.variable import NOWHERE, SymbolLookup, Variable
from tests.profiles import scaled

CELLS = ["", "a", "b", "1", "1.0", "2", "2.0", "x.0"]


@st.composite
def lookups(draw):
    """Different symbols, and columns of cells that share the texts of some."""
    width = draw(st.integers(1, 4))
    symbol = st.tuples(*[st.sampled_from(CELLS)] * width)
    symbols = draw(st.lists(symbol, min_size=1, max_size=12, unique=True))
    records = draw(st.integers(0, 30))
    columns = []
    for _ in range(width):
        # The same text may have several codes, as dictionaries of files do.
        texts = tuple(draw(st.lists(st.sampled_from(CELLS), max_size=5)))
        code = st.integers(-2, len(texts) - 1)
        codes = draw(st.lists(code, min_size=records, max_size=records))
        is_float = draw(st.booleans())
        columns.append(Encoded(np.array(codes, np.int64), texts, is_float))
    return symbols, columns


def slow_position(symbols, columns, record):
    """The record's place in the list, first by its texts, then by those of floats as integers."""
    cells = []
    for column in columns:
        code = int(column.codes[record])
        cells.append(column.texts[code] if code >= 0 else "")
    whole = [
        as_whole(cell) if column.is_float else cell
        for cell, column in zip(cells, columns, strict=True)
    ]
    for candidate in (tuple(cells), tuple(whole)):
        if candidate in symbols:
            return symbols.index(candidate)
    for part, cell in enumerate(cells):
        if not cell and all(symbol[part] for symbol in symbols):
            return MISSING
    return UNKNOWN


@pytest.mark.parametrize("limit", [0, 4, variables.DENSE_LIMIT])
@given(case=lookups())
@settings(max_examples=scaled(50))
def test_every_record_is_found_where_a_list_has_it(limit, case):
    """With arrays, by search, and with both in turns."""
    symbols, columns = case
    variable = Variable(tuple(f"c{k}" for k in range(len(columns))), tuple(symbols))
    with mock.patch.object(variables, "DENSE_LIMIT", limit):
        found = positions_of(columns, variable)
    expected = [slow_position(symbols, columns, r) for r in range(len(columns[0]))]
    assert found.tolist() == expected


def test_symbols_of_a_hundred_columns_do_not_overflow():
    """The numbers stay below the symbols times the texts of one column, not the product of all."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 50, (400, 100))
    symbols = [tuple(map(str, row)) for row in codes.tolist()]
    texts = tuple(map(str, range(50)))
    lookup = SymbolLookup(symbols)
    columns = [Encoded(codes[::-1, k], texts) for k in range(100)]
    assert lookup.positions(columns).tolist() == list(range(400))[::-1]
    columns[99] = columns[99].recoded((columns[99].codes + 1) % 50)
    assert (lookup.positions(columns) == NOWHERE).all()


@pytest.mark.parametrize("records", [1_000, 10_000, 100_000])
def test_python_looks_at_texts_and_not_at_records(records):
    """The texts of a batch are looked up once each, however many records have them."""
    asked = 0

    class Counting(dict):
        def get(self, *arguments):
            nonlocal asked
            asked += 1
            return super().get(*arguments)

    lookup = SymbolLookup([(a, b) for a in "abcd" for b in "xyz"])
    lookup._code_of = [Counting(codes) for codes in lookup._code_of]
    rng = np.random.default_rng(1)
    first = Encoded(rng.integers(-1, 4, records), tuple("abcd"))
    second = Encoded(rng.integers(-1, 3, records), tuple("xyz"))
    lookup.positions([first, second])
    # Each text, and the missing cell.
    assert asked == 5 + 4
