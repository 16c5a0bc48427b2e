"""Columns of data frames in, the same kind of column out; symbols found by their text."""

# pyarrow and narwhals tell too little of their types for the strict mode.
# pyright: basic
from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import InputError
from mechdesign.core.numbers import quoted
from mechdesign.formats.cells import (
    Encoded,
    arrow_integers,
    arrow_texts,
    as_whole,
    distinct_records,
    encode,
    encoded_columns,
)
from mechdesign.tables.bins import NO_NUMBER, OUTSIDE, WHAT, number_of
from mechdesign.tables.variable import Variable

Codes = NDArray[np.int64]

UNKNOWN = -1
"""Code of a record whose symbol the variable does not have."""

MISSING = -2
"""Code of a record with a missing or empty cell that is no symbol of the variable."""


class UnknownSymbol(InputError):
    """A record that is no symbol of the variable: at `position` (from 0), and `what` is wrong with it."""

    def __init__(self, position: int, what: str) -> None:
        super().__init__(f"entry {position}: {what}")
        self.position = position
        self.what = what

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.position, self.what)


def values_of(column: Any, variable: Variable) -> list[Encoded]:
    """The cells of `column` as text, one `Encoded` for each column that `variable` comes from."""
    names = variable.columns
    if len(names) == 1:
        return [encode(column, names[0])]
    if not isinstance(column, (list, tuple)):
        return encoded_columns(column, names)
    for position, value in enumerate(column):
        if not isinstance(value, tuple) or len(value) != len(names):
            kind = type(value).__name__
            given = f"a tuple of {len(value)}" if kind == "tuple" else f"of type {kind}"
            wanted = (
                f"a tuple with one value for each of {', '.join(map(quoted, names))}"
            )
            raise InputError(f"entry {position} must be {wanted}, not {given}")
    parts = zip(*column, strict=True) if column else ([] for _ in names)
    return [encode(list(part), name) for part, name in zip(parts, names, strict=True)]


def positions_of(columns: Sequence[Encoded], variable: Variable) -> Codes:
    """Position in ``variable.symbols`` of every record, or `UNKNOWN`, or `MISSING`.

    A missing cell is looked up as the empty text: a variable made with missing='symbol' knows it. A float is
    looked up as it is shown (``1.0``) and then as an integer (``1``), since pandas turns integers with gaps to floats.
    """
    columns = _sorted_in(columns, variable)
    if len(columns) == 1:
        keys = [(code,) for code in range(-1, len(columns[0].texts))]
        inverse = columns[0].codes.astype(np.int64) + 1
    else:
        distinct, inverse = distinct_records(columns)
        keys = [tuple(key) for key in distinct.tolist()]
    table = np.array([_look_up(columns, key, variable) for key in keys], dtype=np.int64)
    return table[inverse]


def encode_for(column: Any, name: str, variable: Variable, part: int) -> Encoded:
    """The cells of a column as text; where the variable has bins for it, those of numbers as the labels of theirs."""
    import pyarrow as pa

    bins, found = variable.bins_of(part), None
    if bins is not None and isinstance(column, (pa.Array, pa.ChunkedArray)):
        whole = (
            column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        )
        found = bins.sorted_values(whole, name)
    return encode(column, name) if found is None else found


def _sorted_in(columns: Sequence[Encoded], variable: Variable) -> Sequence[Encoded]:
    """The columns with the labels of bins in place of numbers."""
    pairs = zip(columns, variable.bins or [None] * len(columns), strict=True)
    return [
        column if bins is None else bins.sorted_in(column) for column, bins in pairs
    ]


def unknown_at(
    position: int, columns: Sequence[Encoded], variable: Variable
) -> UnknownSymbol:
    """The error that says what is wrong with the record at `position`."""
    columns = _sorted_in(columns, variable)
    key = tuple(int(column.codes[position]) for column in columns)
    return UnknownSymbol(position, describe_unknown(_texts(columns, key), variable))


def _texts(columns: Sequence[Encoded], key: tuple[int, ...]) -> tuple[str, ...]:
    return tuple(
        "" if code < 0 else column.texts[code]
        for column, code in zip(columns, key, strict=True)
    )


def _look_up(
    columns: Sequence[Encoded], key: tuple[int, ...], variable: Variable
) -> int:
    texts = _texts(columns, key)
    found = variable.index.get(texts)
    if found is None and any(column.is_float for column in columns):
        whole = tuple(
            as_whole(t) if c.is_float else t
            for t, c in zip(texts, columns, strict=True)
        )
        found = variable.index.get(whole)
    if found is None:
        return UNKNOWN if _empty_part(texts, variable) is None else MISSING
    return found


def _empty_part(cells: Sequence[str], variable: Variable) -> int | None:
    """Which of the cells is empty where no symbol is, if any."""
    empty = (i for i, cell in enumerate(cells) if not cell)
    return next(
        (i for i in empty if all(symbol[i] for symbol in variable.symbols)), None
    )


def describe_unknown(cells: Sequence[str], variable: Variable) -> str:
    """What is wrong with a record whose `cells` are no symbol of `variable` (empty text for a missing cell)."""
    empty = _empty_part(cells, variable)
    if empty is not None:
        return (
            f"the column {quoted(variable.columns[empty])} has an empty cell, which the channel has no row for; fill "
            "it, design the channel with missing cells as a symbol (--missing symbol), or say what to publish (--null)"
        )
    for name, bins, cell in zip(variable.columns, variable.bins, cells, strict=False):
        if bins is not None and cell == NO_NUMBER:
            return (
                f"the column {quoted(name)} has a cell that is no {WHAT[bins.kind]}, and the channel sorts these into "
                "bins; correct it, or say what to publish for it (--unknown)"
            )
        if bins is not None and cell == OUTSIDE:
            return (
                f"the column {quoted(name)} has a value outside the channel's bins, {bins.edges[0]} to "
                f"{bins.edges[-1]}; say what to publish for it (--unknown), or design the channel with edges that "
                "hold it (-inf, inf)"
            )
    text, columns = ", ".join(cells), ",".join(variable.columns)
    near = difflib.get_close_matches(text, variable.names, n=1)
    hint = f"; did you mean {quoted(near[0])}?" if near else ""
    return f"the channel does not know the symbol {quoted(text)} of {quoted(columns)}{hint}"


def own_values(labels: Sequence[str], kind: Any) -> Any:
    """Texts of symbols as the values of an arrow type that they were written from, or None.

    There are none if the type is no integer, float, truth value or date, or one of the texts is another writing of
    its value (`cells`); the empty text is null.
    """
    import pyarrow as pa

    types = pa.types
    plain = (
        types.is_integer,
        types.is_floating,
        types.is_boolean,
        types.is_date32,
        types.is_timestamp,
    )
    if not any(test(kind) for test in plain):
        return None
    try:
        values = pa.array([label or None for label in labels], pa.string()).cast(kind)
    except pa.ArrowException:
        return None
    written = encode(values, "the symbols")
    texts = tuple(
        "" if code < 0 else written.texts[code] for code in written.codes.tolist()
    )
    what = (
        "number"
        if types.is_floating(kind)
        else "time"
        if types.is_timestamp(kind)
        else None
    )
    same = texts == tuple(labels) or (what is not None and all(
        one == other or number_of(one, what) == number_of(other, what) is not None
        for one, other in zip(texts, labels, strict=True)
    ))  # fmt: skip
    return values if same else None


def rebuild(
    column: Any,
    codes: NDArray[np.integer[Any]],
    labels: Sequence[str],
    name: str,
    *,
    own: bool = False,
) -> Any:
    """The texts ``labels[codes]`` in the same kind of container as `column`.

    A pandas Series keeps its index and name, a polars Series its name. A column of categories (pandas category,
    polars Categorical or Enum, an arrow dictionary) stays one, with the labels as its categories and without an
    order; a column of text keeps its type of text; any other becomes text. A frame (crossed columns) gives one
    column of its kind, called `name`, of the type of its columns where they have the same.
    """
    import pyarrow as pa

    if isinstance(column, np.ndarray):
        return np.array(labels, dtype=object if column.dtype.kind == "O" else np.str_)[
            codes
        ]
    if isinstance(column, (list, tuple)):
        return type(column)(np.array(labels, dtype=object)[codes].tolist())
    if isinstance(column, (pa.Table, pa.Array, pa.ChunkedArray)):
        array = _rebuild_array(column, codes, labels, own)
        return array if isinstance(column, pa.Array) else pa.chunked_array([array])
    return _rebuild_series(column, codes, labels, name, own)


def arrow_type(kind: Any) -> Any:
    """The arrow type of labels that take the place of a column of type `kind`."""
    import pyarrow as pa

    types = pa.types
    if types.is_dictionary(kind):
        return pa.dictionary(pa.int32(), arrow_type(kind.value_type))
    text = (
        types.is_string(kind)
        or types.is_large_string(kind)
        or types.is_string_view(kind)
    )
    return kind if text else pa.string()


def _rebuild_array(
    column: Any, codes: NDArray[np.integer[Any]], labels: Sequence[str], own: bool
) -> Any:
    import pyarrow as pa

    kinds = (
        {field.type for field in column.schema}
        if isinstance(column, pa.Table)
        else {column.type}
    )
    if (
        own
        and not isinstance(column, pa.Table)
        and (values := own_values(labels, column.type)) is not None
    ):
        return values.take(arrow_integers(codes))
    wanted = arrow_type(kinds.pop() if len(kinds) == 1 else pa.null())
    # Not pa.array(..), which loads pandas.
    indices, texts = (
        arrow_integers(codes.astype(np.int32, copy=False)),
        arrow_texts(labels),
    )
    if pa.types.is_dictionary(wanted):
        return pa.DictionaryArray.from_arrays(indices, texts.cast(wanted.value_type))
    found = texts.take(indices)
    return found if found.type == wanted else found.cast(wanted)


def _rebuild_series(
    column: Any,
    codes: NDArray[np.integer[Any]],
    labels: Sequence[str],
    name: str,
    own: bool,
) -> Any:
    """A small Series of the labels, or of the values behind them, and each record's one taken from it."""
    import narwhals as nw

    source = nw.from_native(column, eager_only=True, allow_series=True)
    single = isinstance(source, nw.Series)
    parts = [source] if single else [source[part] for part in source.columns]
    title, first = source.name if single else name, parts[0].to_native()
    categories = all(part.dtype in (nw.Categorical, nw.Enum) for part in parts)
    text = all(part.dtype == nw.String for part in parts)
    own = (
        own
        and single
        and source.dtype not in (nw.Object, nw.Unknown, nw.Categorical, nw.Enum)
    )
    kept = own_values(labels, source.head(0).to_arrow().type) if own else None
    if kept is not None and kept.null_count:
        kept = None  # Not every type of pandas has a place for the missing.
    small = list(labels) if kept is None else kept.to_pylist()
    if source.implementation.is_polars():
        import polars as pl

        kind = first.dtype if text or kept is not None else pl.String
        if categories:
            kind = pl.Enum(labels) if first.dtype == pl.Enum else pl.Categorical
        return pl.Series(title, small, dtype=kind).gather(pl.Series(codes))
    import pandas as pd

    if categories and isinstance(first.dtype, pd.CategoricalDtype):
        values: Any = pd.Categorical.from_codes(codes, categories=small)
    else:
        keeps = (
            text or kept is not None or first.dtype == object
        )  # by type alone: an empty part must not come out otherwise
        values = pd.array(small, dtype=first.dtype if keeps else str).take(codes)
    kind = (
        object if values.dtype == object else values.dtype
    )  # or pandas would guess that these are strings
    return type(first)(values, index=first.index, name=title, dtype=kind)
