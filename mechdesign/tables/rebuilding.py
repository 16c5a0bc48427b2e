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

from collections.abc import Callable, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.wording import quoted
from mechdesign.formats.arrow_arrays import (
    arrow_integers,
    arrow_texts,
    integers_of,
    taken,
)
from mechdesign.formats.cells import as_whole, encode, text_of
from mechdesign.tables.cell_values import Kind, number_of


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
        return _numpy_array(column, codes, labels, own)
    if isinstance(column, (list, tuple)):
        distinct = (_own_objects(labels, column) if own else None) or list(labels)
        return type(column)(_objects(distinct)[codes].tolist())
    if isinstance(column, pa.Array):
        return _arrow_array({column.type}, codes, labels, own)
    if isinstance(column, pa.ChunkedArray):
        return pa.chunked_array([_arrow_array({column.type}, codes, labels, own)])
    if isinstance(column, pa.Table):
        kinds = {field.type for field in column.schema}
        return pa.chunked_array([_arrow_array(kinds, codes, labels, own=False)])
    return _series(column, codes, labels, name, own)


def rebuild_and_note(
    column: Any,
    codes: NDArray[np.integer[Any]],
    labels: Sequence[str],
    name: str,
    *,
    own: bool,
    is_binned: bool = False,
) -> tuple[Any, str | None]:
    """What `rebuild` makes, and one sentence where it has another type than `column` or other
    missing cells. With `is_binned` the labels are bins of numbers, which are texts by design.
    """
    released = rebuild(column, codes, labels, name, own=own)
    if not own:
        return released, empty_note(name, labels)
    note = change_note(name, kind_of(column), kind_of(released), labels, is_binned)
    return released, note


def change_note(
    name: str, before: Any, after: Any, labels: Sequence[str], is_binned: bool
) -> str | None:
    """`type_note`, if the labels are no bins, or else `empty_note`."""
    changed = None if is_binned else type_note(name, before, after)
    return changed or empty_note(name, labels, after)


def own_values(labels: Sequence[str], kind: Any) -> Any:
    """Labels as values of the arrow type that they were the text of; the empty text is null.

    Of a dictionary they have the type of its values. Returns None if the type is none of single
    values, or if a label is another spelling of its value than that of `cells`.
    """
    import pyarrow as pa

    types = pa.types
    if types.is_dictionary(kind):
        return own_values(labels, kind.value_type)
    if _is_text(kind):
        return arrow_texts(labels).cast(kind)
    plain = (
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_boolean(kind)
        or types.is_date(kind)
        or types.is_time(kind)
        or types.is_timestamp(kind)
        or types.is_decimal(kind)
    )
    if not plain:
        return None
    texts = arrow_texts([label or None for label in labels])
    if types.is_time(kind):
        # Arrow casts no text to a time of day.
        return _times_of_day(labels, kind)
    try:
        if types.is_date64(kind):
            # Arrow casts no text to milliseconds, of which a date has a whole number.
            texts = texts.cast(pa.date32())
        if types.is_timestamp(kind) and kind.unit == "ms":
            # Arrow casts no text with six digits of a second to milliseconds.
            texts = texts.cast(pa.timestamp("us", kind.tz))
        values = texts.cast(kind)
    except pa.ArrowException:
        return None
    return values if _have_texts(values, labels) else None


def _times_of_day(labels: Sequence[str], kind: Any) -> Any:
    """Labels as times of day of an arrow type; None if they are none, or are more exact."""
    import pyarrow as pa

    try:
        moments = [time.fromisoformat(label) if label else None for label in labels]
        values = pa.array(moments, kind)
    except (ValueError, pa.ArrowException):
        return None
    return values if _have_texts(values, labels) else None


def own_type_of(kind: Any) -> Any:
    """The arrow type of a column of own symbols in place of one of type `kind`.

    A dictionary has indices of 32 bits, because a table can have more symbols than one column, and
    no order, which the released values need not have.
    """
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        return pa.dictionary(pa.int32(), kind.value_type)
    return kind


def empty_note(name: str, labels: Sequence[str], after: Any = "str") -> str | None:
    """One sentence where missing cells come back as empty texts: a released column with these
    labels and the type `after` (see `type_note`) is one of text.
    """
    if "" not in labels or not _is_text_kind(_value_type(after)):
        return None
    return (
        f"missing cells of the released column {quoted(name)} are empty texts; its source may have "
        "nulls"
    )


def type_note(name: str, before: Any, after: Any) -> str | None:
    """One sentence where a released column of own symbols has another type than its source had.

    Types are those of `kind_of`, or of arrow; of categories those of their values are compared.
    Returns None where they are the same.
    """
    if before is None:
        return None
    if str(_value_type(before)) != str(_value_type(after)):
        return (
            f"the released column {quoted(name)} has the type {_value_type(after)}; its source has "
            f"the type {_value_type(before)}"
        )
    if getattr(before, "ordered", False) and not getattr(after, "ordered", False):
        return (
            f"the categories of the released column {quoted(name)} have no order; those of its "
            "source have one"
        )
    return None


def _value_type(kind: Any) -> Any:
    """The type of the values of categories; any other type itself."""
    import pyarrow as pa

    # Columns of pandas may have types of arrow.
    kind = getattr(kind, "pyarrow_dtype", kind)
    if isinstance(kind, pa.DataType):
        return kind.value_type if pa.types.is_dictionary(kind) else kind
    return getattr(getattr(kind, "categories", None), "dtype", kind)


def _is_text_kind(kind: Any) -> bool:
    """Whether a type of any container (`kind_of`), or of arrow, is one of text."""
    import pyarrow as pa

    if isinstance(kind, pa.DataType):
        return _is_text(kind)
    return str(kind).lower() in {"str", "string", "object"}


def kind_of(column: Any) -> Any:
    """The type of a column of any container, by the names of types for Python objects."""
    kind = getattr(column, "dtype", getattr(column, "type", None))
    code = getattr(kind, "kind", "")
    if isinstance(column, (list, tuple)) or (code == "O" and str(kind) == "object"):
        kinds = set(map(type, column)) - {type(None)}
        if len(kinds) > 1:
            # Missing cells have types of their own.
            filled = (value for value in column if text_of(value, "") is not None)
            kinds = set(map(type, filled))
        return " and ".join(sorted(one.__name__ for one in kinds)) or "str"
    # Texts of NumPy have a type for every length.
    return "str" if code == "U" else kind


def arrow_type(kind: Any) -> Any:
    """The arrow type of labels that take the place of a column of type `kind`."""
    import pyarrow as pa

    types = pa.types
    if types.is_dictionary(kind):
        return pa.dictionary(pa.int32(), arrow_type(kind.value_type))
    return kind if _is_text(kind) else pa.string()


def _is_text(kind: Any) -> bool:
    """Whether an arrow type is one of text."""
    import pyarrow as pa

    types = pa.types
    return (
        types.is_string(kind)
        or types.is_large_string(kind)
        or types.is_string_view(kind)
    )


def _numpy_array(
    column: NDArray[Any],
    codes: NDArray[np.integer[Any]],
    labels: Sequence[str],
    own: bool,
) -> NDArray[Any]:
    """Labels in place of a NumPy array."""
    import pyarrow as pa

    if own and column.dtype.kind in "iufbM":
        values = own_values(labels, pa.from_numpy_dtype(column.dtype))
        if values is not None and not values.null_count:
            # Not through Python values: a datetime has no nanoseconds.
            return values.to_numpy(zero_copy_only=False).astype(column.dtype)[codes]
    if column.dtype.kind != "O":
        return np.array(labels, dtype=np.str_)[codes]
    distinct = (_own_objects(labels, column.tolist()) if own else None) or list(labels)
    return _objects(distinct)[codes]


def _objects(values: Sequence[Any]) -> NDArray[Any]:
    """Values as an array of objects, whatever they are."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _own_objects(labels: Sequence[str], values: Sequence[Any]) -> list[Any] | None:
    """The labels as Python values of the one type that `values` have; None if they cannot be.

    Missing values have no type, and stay None.
    """
    kinds = {type(value) for value in values if text_of(value, "") is not None}
    if len(kinds) != 1:
        return None
    kind = kinds.pop()
    parse: Callable[[str], Any] | None = _PARSERS.get(kind)
    if parse is None and issubclass(kind, (np.number, datetime)):
        # NumPy's numbers and pandas' moments are made of their text.
        parse = cast("Callable[[str], Any]", kind)
    if parse is None:
        return None
    own: list[Any] = []
    for label in labels:
        try:
            value = parse(label) if label else None
        except (ValueError, ArithmeticError):
            return None
        # Another spelling of the same value would come back as another symbol; 1 and 1.0 do not.
        text = text_of(value, "") or ""
        if text != label and (not isinstance(value, float) or as_whole(text) != label):
            return None
        own.append(value)
    return own


def _truth(text: str) -> bool:
    """A truth value by its text."""
    if text not in ("True", "False"):
        raise ValueError(text)
    return text == "True"


_PARSERS: dict[type, Callable[[str], Any]] = {
    bool: _truth,
    np.bool_: lambda text: np.bool_(_truth(text)),
    int: int,
    float: float,
    Decimal: Decimal,
    date: date.fromisoformat,
    datetime: datetime.fromisoformat,
    time: time.fromisoformat,
}
"""How a text becomes a value of a type again."""


def _arrow_array(
    kinds: set[Any], codes: NDArray[np.integer[Any]], labels: Sequence[str], own: bool
) -> Any:
    """Labels in place of one arrow column, or of several of the types `kinds`."""
    import pyarrow as pa

    if own:
        # Only a single column has a type of its own; crossed ones come with own=False.
        (kind,) = kinds
        values = own_values(labels, kind)
        if values is not None and pa.types.is_dictionary(kind):
            return _dictionary_array(codes, values)
        if values is not None:
            return taken(values, arrow_integers(codes))
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


def _dictionary_array(codes: NDArray[np.integer[Any]], values: Any) -> Any:
    """An arrow dictionary of distinct values; where one of them is null, the code is missing."""
    import pyarrow as pa

    if not values.null_count:
        indices = arrow_integers(codes.astype(np.int32, copy=False))
        return pa.DictionaryArray.from_arrays(indices, values)
    # A null inside the dictionary is not counted as one, and Parquet cannot hold it.
    filled = integers_of(values.is_valid().cast("uint8")) == 1
    codes = _codes_into_filled(codes, filled).astype(np.int32)
    indices = pa.array(codes, mask=codes < 0)
    return pa.DictionaryArray.from_arrays(indices, values.drop_null())


def _codes_into_filled(
    codes: NDArray[np.integer[Any]], filled: NDArray[np.bool_]
) -> NDArray[np.integer[Any]]:
    """Codes into distinct values as codes into those alone that are `filled`; -1 for others."""
    return np.where(filled, np.cumsum(filled) - 1, -1)[codes]


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


def _series_values(series: Any, labels: Sequence[str]) -> Any:
    """The labels as values of a Series' own type, in a list for pandas and a Series for polars;
    None if it has none for them.
    """
    native = series.to_native()
    if series.implementation.is_polars():
        return _polars_values(native, labels)
    if series.implementation.is_pandas_like():
        if hasattr(native, "cat"):
            # Categories have a type of their own: numbers are categories, too. Missing cells have
            # a place whatever it is.
            categories = native.cat.categories
            return _own_list(labels, categories.to_series(), has_missing=True)
        if native.dtype == object:
            return _own_objects(labels, native.tolist())
    return _own_list(labels, native, has_missing=_has_missing(native.dtype))


def _polars_values(native: Any, labels: Sequence[str]) -> Any:
    """The labels as a polars Series of the type of another one; None if they cannot be."""
    import polars as pl

    if native.dtype in (pl.Object, pl.Unknown, pl.Categorical, pl.Enum):
        return None
    values = own_values(labels, native.head(0).to_arrow().type)
    if values is None:
        return None
    # Not through Python values: a datetime has no nanoseconds.
    return pl.Series(pl.from_arrow(values)).cast(native.dtype)


def _own_list(
    labels: Sequence[str], native: Any, *, has_missing: bool
) -> list[Any] | None:
    """The labels as Python values of a Series' type; None if they cannot be, as where the empty
    label has no missing value to become (`has_missing`).
    """
    import narwhals as nw

    series = nw.from_native(native, series_only=True)
    if series.dtype in (nw.Object, nw.Unknown):
        return _own_objects(labels, series.to_list())
    values = own_values(labels, series.head(0).to_arrow().type)
    if values is None or (values.null_count and not has_missing):
        return None
    return values.to_pylist()


def _has_missing(dtype: Any) -> bool:
    """Whether a type of pandas has a place for missing values: of those of NumPy, integers and
    truth values have none.
    """
    return not isinstance(dtype, np.dtype) or dtype.kind not in "iub"


def _polars_series(
    title: str,
    parts: Sequence[Any],
    codes: NDArray[np.integer[Any]],
    labels: Sequence[str],
    values: Any,
) -> Any:
    """A polars Series of the labels, or of the Series `values` in their place."""
    import polars as pl

    # The distinct labels are converted once, then repeated by their codes.
    at = pl.Series(codes)
    if values is not None:
        return values.gather(at).alias(title)
    dtype = parts[0].to_native().dtype
    kind: Any = pl.String
    if _are_categories(parts):
        kind = pl.Categorical
        if dtype == pl.Enum:
            kind = pl.Enum(_in_order(labels, dtype.categories.to_list()))
    elif _are_texts(parts):
        kind = dtype
    return pl.Series(title, list(labels), dtype=kind).gather(at)


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
        # A missing cell is no category: its code is -1.
        is_filled = np.array([value is not None for value in distinct], dtype=bool)
        codes = _codes_into_filled(codes, is_filled)
        filled = [value for value in distinct if value is not None]
        categories = filled
        if values is not None:
            categories = pd.Index(filled, dtype=first.cat.categories.dtype)
        released = pd.Categorical.from_codes(codes, categories=categories)
        source = first.cat.categories.tolist()
        if first.dtype.ordered and set(filled) <= set(source):
            # The order of the source, of the values that are released.
            ordered = [value for value in source if value in set(filled)]
            released = released.reorder_categories(ordered, ordered=True)
    else:
        # The type alone decides: an empty part of a table must come out like the others.
        keeps_type = _are_texts(parts) or values is not None or first.dtype == object
        dtype = first.dtype if keeps_type else str
        if isinstance(dtype, np.dtype) and dtype.kind == "u":
            # pandas makes floats of large integers in a list, and loses digits.
            distinct = np.array(distinct, dtype=dtype)
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


def _in_order(labels: Sequence[str], source: Sequence[str]) -> list[str]:
    """The labels in the order of the source; those that it does not have stand behind them."""
    place = {text: k for k, text in enumerate(source)}
    return sorted(labels, key=lambda label: place.get(label, len(place)))
