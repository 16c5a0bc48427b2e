"""The cells of a column as text, whatever kind of column it is.

One rule for every kind of frame, so that a channel designed on one works on another:

- text stays as it is, to the last blank;
- integers are written as digits (``1``), truth values as ``True`` and ``False``;
- floats as the shortest decimal that names them (``1.0``, ``0.1``), NaN counts as missing;
- dates and times in ISO form with a blank (``2024-01-31 08:00:00``), a fraction of a second only where there is one;
  moments of a time zone in UTC (``2024-01-31 07:00:00+00:00``), in whichever zone they are shown;
- a category is the text of its value;
- anything else that is a single value is its `str`; bytes, lists and records are refused.

Arrays pass between NumPy and pyarrow by `integers_of`, `arrow_integers` and `arrow_texts`, without a copy: ``pa.array``
and ``Array.to_numpy`` load pandas, where it is installed, to ask whether the data are its own, which takes 40 MB and a
third of a second that a job on files has no use for.
"""

# pyarrow tells too little of its types for the strict mode.
# pyright: basic
from __future__ import annotations

import difflib
import math
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import InputError
from mechdesign.core.numbers import listed, quoted


def integers_of(array: Any, missing: int | None = None) -> NDArray[Any]:
    """The integers, or floats, of a pyarrow array; in the place of nulls stands `missing`, or else anything."""
    data, kind = array.buffers()[1], array.type.to_pandas_dtype()
    if data is None:
        return np.zeros(0, kind)
    found = np.frombuffer(data, kind)[array.offset : array.offset + len(array)]
    if missing is None or not array.null_count:
        return found
    return np.where(integers_of(array.is_null().cast("uint8")) == 1, missing, found)


def arrow_integers(array: NDArray[np.integer[Any]]) -> Any:
    """A contiguous array as a pyarrow array of the same integers."""
    import pyarrow as pa

    kind = pa.type_for_alias(array.dtype.name)
    return pa.Array.from_buffers(
        kind, len(array), [None, pa.py_buffer(np.ascontiguousarray(array))]
    )


def arrow_texts(texts: Sequence[str]) -> Any:
    """Texts as a pyarrow array."""
    import pyarrow as pa

    encoded = [text.encode() for text in texts]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int32)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(pa.string(), len(encoded), buffers)


def arrow_offsets(texts: Any) -> tuple[NDArray[np.int64], Any]:
    """Where the texts of a pyarrow array begin and end, and the bytes that they are in."""
    _, offsets, data = texts.buffers()
    width = "<i8" if str(texts.type) == "large_string" else "<i4"
    ends = (
        np.frombuffer(offsets, width)[texts.offset : texts.offset + len(texts) + 1]
        if len(texts)
        else [0]
    )
    return np.asarray(ends, np.int64), data or b""


_ZERO_FRACTION = re.compile(r"\.0+(?=$|[+-])")
_ZONE = re.compile(r"([+-]\d\d)(\d\d)$")


@dataclass(frozen=True)
class Encoded:
    """A column as codes into distinct texts."""

    codes: NDArray[np.integer[Any]]
    texts: tuple[str, ...]
    is_float: bool = False

    def __len__(self) -> int:
        return len(self.codes)

    def expanded(self) -> Any:
        """The text of every cell as a pyarrow array, null where it is missing."""
        import pyarrow as pa

        return arrow_texts(self.texts).take(pa.array(self.codes, mask=self.codes < 0))


DENSE_LIMIT = 1 << 20
"""Up to this many possible combinations of cells they are told apart by one dense array (8 MB)."""


def distinct_records(
    columns: Sequence[Encoded],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The distinct combinations of cells in columns of equal length."""
    sizes = tuple(len(column.texts) + 1 for column in columns)
    shifted = [column.codes.astype(np.int64) + 1 for column in columns]
    possible = math.prod(sizes)
    if possible >= 2**63:
        distinct, inverse = np.unique(
            np.stack(shifted, axis=1), axis=0, return_inverse=True
        )
        return distinct - 1, inverse.reshape(-1)
    present, inverse = distinct_numbers(
        np.ravel_multi_index(tuple(shifted), sizes), possible
    )
    return np.stack(np.unravel_index(present, sizes), axis=1) - 1, inverse


def distinct_numbers(
    numbers: NDArray[np.integer[Any]], possible: int
) -> tuple[NDArray[Any], NDArray[Any]]:
    """The distinct ones of `numbers`, all from 0 and below `possible`, and which of them every one is."""
    if possible > DENSE_LIMIT:
        return np.unique(numbers, return_inverse=True)
    present = np.flatnonzero(np.bincount(numbers))
    place = np.zeros(possible, np.int64)
    place[present] = np.arange(len(present))
    return present, place[numbers]


class Numbering:
    """Numbers distinct combinations of texts, in the order in which they first appear, over many batches."""

    def __init__(self) -> None:
        self._place: dict[tuple[str, ...], int] = {}

    def __len__(self) -> int:
        return len(self._place)

    @property
    def texts(self) -> tuple[tuple[str, ...], ...]:
        """The combinations, in order."""
        return tuple(self._place)

    def number(self, columns: Sequence[Encoded]) -> NDArray[np.int64]:
        """The number of every record, given by its columns; a missing cell is the empty text."""
        distinct, inverse = distinct_records(columns)
        first = np.empty(len(distinct), np.int64)
        first[inverse[::-1]] = np.arange(len(inverse))[::-1]
        texts = [(*column.texts, "") for column in columns]
        numbers = np.empty(len(distinct), np.int64)
        for k in np.argsort(first).tolist():
            key = tuple(
                [
                    text[code]
                    for text, code in zip(texts, distinct[k].tolist(), strict=True)
                ]
            )
            numbers[k] = self._place.setdefault(key, len(self._place))
        return numbers[inverse]


def empty_as_missing(column: Encoded) -> Encoded:
    """The column with its empty texts as missing cells."""
    if "" not in column.texts:
        return column
    empty = [code for code, text in enumerate(column.texts) if not text]
    return Encoded(
        np.where(np.isin(column.codes, empty), -1, column.codes),
        column.texts,
        column.is_float,
    )


def as_whole(text: str) -> str:
    """The text of a whole float as an integer: ``1.0`` becomes ``1``, all else stays."""
    return (
        text[:-2] if text.endswith(".0") and text[:-2].lstrip("-").isdigit() else text
    )


def text_of(value: Any, name: str) -> str | None:
    """The text of one cell (None if it is missing), by the rules of this module."""
    if value is None or isinstance(value, str):
        return value if value is None else str(value)
    if isinstance(value, (float, np.floating)):
        return None if math.isnan(value) else str(value)
    if isinstance(
        value, (bytes, bytearray, list, tuple, dict, set, frozenset, np.ndarray)
    ):
        raise _not_a_symbol(name, type(value).__name__)
    if type(value).__name__ in (
        "NAType",
        "NaTType",
    ):  # pandas' missing values, without importing pandas
        return None
    if isinstance(value, datetime) and value.tzinfo is not None:
        value = value.astimezone(UTC)
    return str(value)


def simple_texts(column: Any) -> Any:
    """What `Encoded.expanded` gives of a pyarrow array of text or integers, sooner; None of another column."""
    import pyarrow as pa

    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if not isinstance(column, pa.Array):
        return None
    kind: Any = (
        column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    )
    texts = str(kind) in ("string", "large_string", "string_view")
    return (
        column.cast(kind).cast(pa.string())
        if texts or pa.types.is_integer(kind)
        else None
    )


def encode(column: Any, name: str) -> Encoded:
    """Codes and texts of a column."""
    import pyarrow as pa

    if isinstance(column, (pa.Array, pa.ChunkedArray)):
        return _encode_arrow(column, name)
    if isinstance(column, np.ndarray):
        if column.ndim != 1:
            raise InputError(
                f"the column {quoted(name)} must have one dimension, not {column.ndim}"
            )
        if column.dtype.kind in "OUT":
            return _encode_values(column.tolist(), name)
        if column.dtype.kind not in "iufbM":
            raise _not_a_symbol(name, str(column.dtype))
        return _encode_arrow(pa.array(column), name)
    if isinstance(column, (list, tuple)):
        return _encode_values(column, name)
    return _encode_series(column, name)


def encoded_columns(frame: Any, names: Sequence[str]) -> list[Encoded]:
    """The columns `names` of a pandas, polars or pyarrow table."""
    import narwhals as nw

    try:
        table = nw.from_native(frame, eager_only=True)
    except (TypeError, nw.exceptions.DuplicateError) as error:
        twice = isinstance(error, nw.exceptions.DuplicateError)
        reason = (
            "two columns have the same name" if twice else f"not {type(frame).__name__}"
        )
        raise InputError(
            f"the table must be a pandas, polars or pyarrow table; {reason}"
        ) from None
    for name in names:
        require_column(name, table.columns)
    return [encode(table[name].to_native(), name) for name in names]


ALIKE = 0.65
"""Likeness (difflib) from which a name may be meant: 'rac' is like 'race', 'nope' (0.6) is not like 'income'."""

_DELIMITERS = {
    ";": ("semicolons", "';'"),
    "\t": ("tabs", "tab"),
    "|": ("bars", "'|'"),
    ",": ("commas", "','"),
}
"""What often stands between cells: its name, and how to type it."""


def separators(header: Collection[Any]) -> str:
    """What a message says of a single column that looks like several; nothing of any other header."""
    only = str(*header) if len(header) == 1 else ""
    for name, typed in (
        said for delimiter, said in _DELIMITERS.items() if delimiter in only
    ):
        return (
            f"; its cells seem to be separated by {name}: say so (--delimiter {typed})"
        )
    return ""


def require_column(name: str, available: Collection[Any]) -> None:
    """Raise InputError, with the nearest match and the columns there are, unless `name` is one of them."""
    if name in available:
        return
    columns = [str(column) for column in available]
    near = difflib.get_close_matches(str(name), columns, n=1, cutoff=ALIKE)
    hint = f"; did you mean {quoted(near[0])}?" if near else ""
    separated = separators(available)
    raise InputError(
        f"there is no column {quoted(name)}{hint} (columns: {listed(columns, 20)}){separated}"
    )


def _encode_series(column: Any, name: str) -> Encoded:
    import narwhals as nw

    try:
        series = nw.from_native(column, series_only=True)
    except TypeError:
        raise InputError(
            f"{quoted(name)} must be a column (a pandas or polars Series, a pyarrow or numpy array, a list), "
            f"not {type(column).__name__}"
        ) from None
    native: Any = series.to_native()
    kinds = getattr(getattr(native, "cat", None), "categories", None)
    if kinds is not None:  # pandas: categories of any kind, even intervals
        texts = tuple(text_of(value, name) or "" for value in kinds.tolist())
        return Encoded(native.cat.codes.to_numpy(), texts, kinds.dtype.kind == "f")
    if series.dtype in (nw.Object, nw.Unknown):
        return _encode_values(series.to_list(), name)
    return _encode_arrow(series.to_arrow(), name)


def _encode_values(values: Sequence[Any], name: str) -> Encoded:
    index: dict[str | None, int] = {None: -1}
    codes = np.fromiter(
        (index.setdefault(text_of(value, name), len(index) - 1) for value in values),
        dtype=np.int64,
        count=len(values),
    )
    del index[None]
    present = [value for value, code in zip(values, codes, strict=True) if code >= 0]
    is_float = bool(present) and all(
        isinstance(value, (float, np.floating)) for value in present
    )
    return Encoded(codes, tuple(text for text in index if text is not None), is_float)


def _encode_arrow(column: Any, name: str) -> Encoded:
    import pyarrow as pa

    if pa.types.is_null(column.type):
        return Encoded(np.full(len(column), -1), ())
    if not pa.types.is_dictionary(column.type):
        if pa.types.is_nested(column.type) or isinstance(
            column.type, pa.BaseExtensionType
        ):
            raise _not_a_symbol(name, str(column.type))
        column = column.dictionary_encode()
    if isinstance(column, pa.ChunkedArray):
        if not column.num_chunks:  # which pyarrow cannot combine for every type
            return Encoded(
                np.zeros(0, np.int64), (), pa.types.is_floating(column.type.value_type)
            )
        column = column.combine_chunks()
    if len(column.dictionary) > len(
        column
    ):  # of a whole row group, of which this is a part
        column = column.dictionary_decode().dictionary_encode()
    unsigned = pa.types.is_unsigned_integer(column.indices.type)
    codes = integers_of(
        column.indices.cast(pa.int64()) if unsigned else column.indices, -1
    )
    texts = _arrow_texts(column.dictionary, name)
    missing = [i for i, text in enumerate(texts) if text is None]
    if missing:  # NaN, or a null inside a dictionary
        keep = np.arange(len(texts) + 1)
        keep[[*missing, -1]] = -1
        codes = keep[codes]
    kind = column.dictionary.type
    return Encoded(
        codes, tuple(text or "" for text in texts), pa.types.is_floating(kind)
    )


def _arrow_texts(values: Any, name: str) -> list[str | None]:
    import pyarrow as pa

    kind, types = values.type, pa.types
    if types.is_timestamp(kind) or types.is_time(kind):
        if getattr(
            kind, "tz", None
        ):  # whatever the zone of the table, or of who reads it
            values = values.cast(pa.timestamp(kind.unit, "UTC"))
        return [
            text and _plain_time(text) for text in values.cast(pa.string()).to_pylist()
        ]
    if types.is_floating(kind):
        valid = values.is_valid().to_pylist()
        pairs = zip(integers_of(values), valid, strict=True)
        return [
            str(number) if there and not math.isnan(number) else None
            for number, there in pairs
        ]
    texts = (types.is_string, types.is_large_string, types.is_string_view)
    simple = (
        *texts,
        types.is_integer,
        types.is_boolean,
        types.is_decimal,
        types.is_date,
        types.is_null,
    )
    if any(test(kind) for test in simple):
        return [None if value is None else str(value) for value in values.to_pylist()]
    raise _not_a_symbol(name, str(kind))


def _plain_time(text: str) -> str:
    text = _ZERO_FRACTION.sub("", text[:-1] + "+0000" if text.endswith("Z") else text)
    return _ZONE.sub(r"\1:\2", text)


def _not_a_symbol(name: str, kind: str) -> InputError:
    return InputError(
        f"the column {quoted(name)} holds {kind}, which is no symbol; turn it into text first"
    )
