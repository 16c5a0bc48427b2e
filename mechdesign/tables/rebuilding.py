"""Released labels in the same kind of container as the column that they replace.

`rebuild` chooses by the container: NumPy array, list, arrow array or table, and Series of pandas or
polars. The few distinct labels are converted to the type of the column first and then repeated by
their codes, so that a column of ten million records converts only its symbols. For example, the
labels 17 and 40 with the codes 1, 0, 1 take the place of a polars column of integers as the texts
40, 17, 40; or, with `own`, as the integers 40, 17, 40.
"""

# pyarrow, pandas, polars and narwhals have no complete types.
# pyright: basic
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.formats.arrow_arrays import arrow_integers, arrow_texts
from mechdesign.formats.cells import encode
from mechdesign.tables.cell_numbers import Kind, number_of


def rebuild(
    column: Any,
    codes: NDArray[np.integer[Any]],
    labels: Sequence[str],
    name: str,
    *,
    own: bool = False,
) -> Any:
    """The texts ``labels[codes]`` in the same kind of container as `column`.

    A pandas Series keeps its index and name, a polars Series its name. A column of categories
    (pandas category, polars Categorical or Enum, an arrow dictionary) stays one, with the labels as
    its categories and without an order. A column of text keeps its type of text; any other becomes
    text.

    Parameters
    ----------
    column : column, or data frame of crossed columns
        A frame yields one column of its kind, of the type of its columns if they have the same.
    codes : (n,) array of int
        The label of every record.
    labels : sequence of str
        The labels.
    name : str
        The name of the new column in place of a frame.
    own : bool
        Whether numbers, dates and truth values keep their type (`own_values`).
    """
    import pyarrow as pa

    if isinstance(column, np.ndarray):
        kind = object if column.dtype.kind == "O" else np.str_
        return np.array(labels, dtype=kind)[codes]
    if isinstance(column, (list, tuple)):
        texts = np.array(labels, dtype=object)[codes].tolist()
        return type(column)(texts)
    if isinstance(column, pa.Array):
        return _arrow_array({column.type}, codes, labels, own)
    if isinstance(column, pa.ChunkedArray):
        return pa.chunked_array([_arrow_array({column.type}, codes, labels, own)])
    if isinstance(column, pa.Table):
        kinds = {field.type for field in column.schema}
        return pa.chunked_array([_arrow_array(kinds, codes, labels, own=False)])
    return _series(column, codes, labels, name, own)


def own_values(labels: Sequence[str], kind: Any) -> Any:
    """Labels as values of the arrow type that they were the text of; the empty text is null.

    Returns None if the type is not one of integers, floats, truth values, dates or moments, or if
    a label is another spelling of its value than that of `cells`.
    """
    import pyarrow as pa

    types = pa.types
    plain = (
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_boolean(kind)
        or types.is_date32(kind)
        or types.is_timestamp(kind)
    )
    if not plain:
        return None
    try:
        values = pa.array([label or None for label in labels], pa.string()).cast(kind)
    except pa.ArrowException:
        return None
    return values if _have_texts(values, labels) else None


def arrow_type(kind: Any) -> Any:
    """The arrow type of labels that take the place of a column of type `kind`."""
    import pyarrow as pa

    types = pa.types
    if types.is_dictionary(kind):
        return pa.dictionary(pa.int32(), arrow_type(kind.value_type))
    is_text = (
        types.is_string(kind)
        or types.is_large_string(kind)
        or types.is_string_view(kind)
    )
    return kind if is_text else pa.string()


def _arrow_array(
    kinds: set[Any], codes: NDArray[np.integer[Any]], labels: Sequence[str], own: bool
) -> Any:
    """Labels in place of one arrow column, or of several of the types `kinds`."""
    import pyarrow as pa

    if own:
        # Only a single column has a type of its own; crossed ones come with own=False.
        (kind,) = kinds
        values = own_values(labels, kind)
        if values is not None:
            return values.take(arrow_integers(codes))
    # Columns of different types become text.
    replaced = next(iter(kinds)) if len(kinds) == 1 else pa.null()
    kind = arrow_type(replaced)
    # Not pa.array(..), which imports pandas.
    indices = arrow_integers(codes.astype(np.int32, copy=False))
    texts = arrow_texts(labels)
    if pa.types.is_dictionary(kind):
        return pa.DictionaryArray.from_arrays(indices, texts.cast(kind.value_type))
    array = texts.take(indices)
    return array if array.type == kind else array.cast(kind)


def _have_texts(values: Any, labels: Sequence[str]) -> bool:
    """Whether the texts of arrow values are the labels, or are equal as numbers or times."""
    import pyarrow as pa

    written = encode(values, "the symbols")
    # Integers have one text. Floats and moments have several: 1 and 1.0.
    kind: Kind | None = None
    if pa.types.is_floating(values.type):
        kind = "number"
    elif pa.types.is_timestamp(values.type):
        kind = "time"
    for code, label in zip(written.codes.tolist(), labels, strict=True):
        text = "" if code < 0 else written.texts[code]
        if text == label:
            continue
        if kind is None:
            return False
        number = number_of(label, kind)
        if number is None or number_of(text, kind) != number:
            return False
    return True


def _series(
    column: Any,
    codes: NDArray[np.integer[Any]],
    labels: Sequence[str],
    name: str,
    own: bool,
) -> Any:
    """Labels in place of a Series, or of the columns of a frame, of pandas or polars."""
    import narwhals as nw

    source = nw.from_native(column, eager_only=True, allow_series=True)
    if isinstance(source, nw.Series):
        parts = [source]
        title = source.name
        values = _series_values(source, labels) if own else None
    else:
        parts = [source[part] for part in source.columns]
        title = name
        values = None
    if source.implementation.is_polars():
        return _polars_series(title, parts, codes, labels, values)
    return _pandas_series(title, parts, codes, labels, values)


def _series_values(series: Any, labels: Sequence[str]) -> list[Any] | None:
    """The labels as values of a Series' own type; None if it has none for them."""
    import narwhals as nw

    if series.dtype in (nw.Object, nw.Unknown, nw.Categorical, nw.Enum):
        return None
    values = own_values(labels, series.head(0).to_arrow().type)
    # Not every type of pandas has a place for missing values.
    if values is None or values.null_count:
        return None
    return values.to_pylist()


def _polars_series(
    title: str,
    parts: Sequence[Any],
    codes: NDArray[np.integer[Any]],
    labels: Sequence[str],
    values: list[Any] | None,
) -> Any:
    """A polars Series of the labels, or of `values` in their place."""
    import polars as pl

    dtype = parts[0].to_native().dtype
    kind: Any = pl.String
    if _are_categories(parts):
        kind = pl.Enum(labels) if dtype == pl.Enum else pl.Categorical
    elif _are_texts(parts) or values is not None:
        kind = dtype
    # The distinct labels are converted once, then repeated by their codes.
    distinct = list(labels) if values is None else values
    return pl.Series(title, distinct, dtype=kind).gather(pl.Series(codes))


def _pandas_series(
    title: str,
    parts: Sequence[Any],
    codes: NDArray[np.integer[Any]],
    labels: Sequence[str],
    values: list[Any] | None,
) -> Any:
    """A pandas Series of the labels, or of `values` in their place, with the index of `parts`."""
    import pandas as pd

    first = parts[0].to_native()
    distinct = list(labels) if values is None else values
    released: Any
    if _are_categories(parts) and isinstance(first.dtype, pd.CategoricalDtype):
        released = pd.Categorical.from_codes(codes, categories=distinct)
    else:
        # The type alone decides: an empty part of a table must come out like the others.
        keeps_type = _are_texts(parts) or values is not None or first.dtype == object
        dtype = first.dtype if keeps_type else str
        released = pd.array(distinct, dtype=dtype).take(codes)
    # Without a type pandas would guess that objects are strings.
    kind = object if released.dtype == object else released.dtype
    return type(first)(released, index=first.index, name=title, dtype=kind)


def _are_categories(parts: Sequence[Any]) -> bool:
    """Whether all columns are of categories."""
    import narwhals as nw

    return all(part.dtype in (nw.Categorical, nw.Enum) for part in parts)


def _are_texts(parts: Sequence[Any]) -> bool:
    """Whether all columns are of text."""
    import narwhals as nw

    return all(part.dtype == nw.String for part in parts)
