"""The cells of a column as text, whatever kind of column it is.

One rule serves every kind of frame, so that a channel designed on one works on another:

- text stays as it is, to the last blank;
- integers are written as digits (``1``), truth values as ``True`` and ``False``;
- floats as the shortest decimal that names them (``1.0``, ``0.1``), 0.0 and -0.0 both as ``0.0``,
  for they are equal; NaN counts as missing;
- dates and times in ISO form with a blank (``2024-01-31 08:00:00``), with a fraction of a second
  only where there is one, in six digits, or nine if six do not hold it; moments with a time zone
  in UTC (``2024-01-31 07:00:00+00:00``), whatever zone displays them;
- a category is the text of its value;
- any other single value is its `str`; bytes, lists and records are refused.

`encode` makes codes into distinct texts of a column, so that each text is made once: the cells
2.5, None, 1.0, 2.5 are the codes 0, -1, 1, 0 into the texts "2.5" and "1.0". Columns that arrow can
hold are encoded by it, and only their distinct values become texts (`_encode_arrow`). Lists and
columns of objects are gone through value by value (`_encode_values`, `text_of`). Both have to write
the same text for the same value.

*Comparing.* Two cells can look alike and be different symbols: ``clerk`` and ``clerk`` with a blank
behind it, or an accented letter as one character and as two. By default they stay different,
because a cell is what the file has. A `CellForm` makes them equal, in the table and in every file
that is released.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias, cast, get_args

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.arguments import repeated
from mechdesign.core.errors import InputError
from mechdesign.core.wording import listed, quoted
from mechdesign.formats.arrow_arrays import (
    arrow_texts,
    as_codes,
    combined,
    integers_of,
)
from mechdesign.formats.column_names import require_columns

_FRACTION = re.compile(r"\.(\d+)(?=$|[+-])")
_ZONE_WITHOUT_COLON = re.compile(r"([+-]\d\d)(\d\d)$")

_TEXT_TYPES = ("string", "large_string", "string_view")
"""pyarrow's types of text, by name."""

UUID_TYPE = "extension<arrow.uuid>"
"""pyarrow's type of UUIDs, as DuckDB writes them into Parquet, by name."""

FEW_CELLS = 1_000
"""Cells of text up to which their codes are found in Python."""

_MISSING_TYPES = ("NAType", "NaTType")
"""Types of pandas' missing values, by name, so that pandas need not be imported."""

_CONTAINERS = (bytes, bytearray, list, tuple, dict, set, frozenset, np.ndarray)
"""Types of cells that are not a single value."""


@dataclass(frozen=True)
class Encoded:
    """A column as codes into texts, mostly distinct ones; a missing cell has a negative code."""

    codes: NDArray[np.integer[Any]]
    texts: tuple[str, ...]
    is_float: bool = False

    def __len__(self) -> int:
        return len(self.codes)

    def expanded(self) -> Any:
        """The text of every cell as a pyarrow array, null where it is missing."""
        import pyarrow as pa

        return arrow_texts(self.texts).take(pa.array(self.codes, mask=self.codes < 0))

    def recoded(self, codes: NDArray[np.integer[Any]]) -> Encoded:
        """A column of the same texts with other codes."""
        return Encoded(codes, self.texts, self.is_float)


Normalisation: TypeAlias = Literal["none", "NFC", "NFD", "NFKC", "NFKD"]

NORMALISATIONS: tuple[Normalisation, ...] = get_args(Normalisation)


@dataclass(frozen=True, kw_only=True)
class CellForm:
    """How texts of cells are changed before they are compared.

    Parameters
    ----------
    normalise : {'none', 'NFC', 'NFD', 'NFKC', 'NFKD'}
        The Unicode form.
    trim : bool
        Whether blanks at both ends are taken off.
    missing_codes : tuple of str
        Texts that stand for an empty cell, such as ``?`` or ``-9``.

    Raises
    ------
    InputError
        On a Unicode form of another name.
    """

    normalise: str = "none"
    trim: bool = False
    missing_codes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.normalise not in NORMALISATIONS:
            raise InputError(
                f"--normalise ({quoted(self.normalise)}) must be one of {listed(NORMALISATIONS)}"
            )

    @property
    def changes_nothing(self) -> bool:
        """Whether texts stay as they are."""
        return self == CellForm()

    def text(self, text: str) -> str:
        """A text in this form."""
        if self.normalise != "none":
            text = unicodedata.normalize(cast("Literal['NFC']", self.normalise), text)
        # Last, because a compatibility form can make a blank of another character.
        if self.trim:
            text = text.strip()
        return "" if text in self.missing_codes else text

    def cells(self, column: Encoded) -> Encoded:
        """A column in this form; a cell of nothing but blanks, or of a missing code, is missing.

        Several codes may have the same text.
        """
        if self.changes_nothing:
            return column
        texts = tuple(map(self.text, column.texts))
        blank = [
            code for code, text in enumerate(texts) if column.texts[code] and not text
        ]
        codes = column.codes
        if blank:
            codes = np.where(np.isin(codes, blank), -1, codes)
        return Encoded(codes, texts, column.is_float)

    def __str__(self) -> str:
        parts: list[str] = []
        if self.normalise != "none":
            parts.append(self.normalise)
        if self.trim:
            parts.append("trim")
        if self.missing_codes:
            parts.append(f"the missing codes {listed(self.missing_codes)}")
        return " and ".join(parts) or "none"


def empty_as_missing(column: Encoded) -> Encoded:
    """The column with its empty texts as missing cells."""
    if "" not in column.texts:
        return column
    # Several codes may have the empty text.
    empty = [code for code, text in enumerate(column.texts) if not text]
    return column.recoded(np.where(np.isin(column.codes, empty), -1, column.codes))


def as_whole(text: str) -> str:
    """The text of a whole float as an integer: ``1.0`` becomes ``1``; other texts stay."""
    whole = text.removesuffix(".0")
    if whole != text and whole.lstrip("-").isdigit():
        return whole
    return text


def text_of(value: Any, name: str) -> str | None:
    """The text of one cell of the column `name`; None if it is missing."""
    if value is None:
        return None
    if isinstance(value, str):
        # A plain one for every subclass, such as NumPy's; of an enumeration its value.
        return str.__str__(value)
    if isinstance(value, (float, np.floating)):
        # Adding zero turns -0.0 into 0.0.
        return None if math.isnan(value) else str(value + 0.0)
    if isinstance(value, _CONTAINERS):
        raise not_a_symbol(name, type(value).__name__)
    if type(value).__name__ in _MISSING_TYPES:
        return None
    # The text must not depend on the zone that the table happens to display.
    if isinstance(value, datetime) and value.tzinfo is not None:
        value = value.astimezone(UTC)
    return str(value)


def simple_texts(column: Any) -> Any:
    """The same as `Encoded.expanded` for a pyarrow array of text or integers, but faster.

    Returns None for any other column.
    """
    import pyarrow as pa

    array = combined(column)
    if not isinstance(array, pa.Array):
        return None
    kind: Any = array.type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if not _is_text(kind) and not pa.types.is_integer(kind):
        return None
    # Casting loads pyarrow.compute, 0.03 s; columns of small CSV files have text already.
    for wanted in (kind, pa.string()):
        if array.type != wanted:
            array = array.cast(wanted)
    return array


def encode(column: Any, name: str) -> Encoded:
    """Codes and texts of a column.

    Parameters
    ----------
    column : pyarrow array, NumPy array, list, tuple, pandas or polars Series
        The cells.
    name : str
        The name of the column for messages.

    Raises
    ------
    InputError
        If it is not a column, or its cells are not single values.
    """
    import pyarrow as pa

    if isinstance(column, (pa.Array, pa.ChunkedArray)):
        return _encode_arrow(column, name)
    if isinstance(column, np.ndarray):
        return _encode_array(column, name)
    if isinstance(column, (list, tuple)):
        return _encode_values(column, name)
    return _encode_series(column, name)


def encode_anything(column: Any, name: str) -> Encoded:
    """As `encode`; lists, structures, bytes and the like have the text that Python writes."""
    try:
        return encode(column, name)
    except InputError:
        # Not a column at all.
        if not hasattr(column, "__iter__"):
            raise
    values = column.to_pylist() if hasattr(column, "to_pylist") else column
    texts: list[str | None] = []
    for value in values:
        texts.append(None if value is None else repr(value))
    return encode(texts, name)


def encoded_columns(frame: Any, names: Sequence[str]) -> list[Encoded]:
    """The columns `names` of a pandas, polars or pyarrow table."""
    import narwhals as nw

    try:
        table = nw.from_native(frame, eager_only=True)
    except nw.exceptions.DuplicateError:
        twice = repeated([str(name) for name in _names_of(frame)])
        raise InputError(
            f"in the table two columns have the same name, {quoted(twice)}: rename one"
        ) from None
    except TypeError:
        raise InputError(
            f"the table must be a pandas, polars or pyarrow table; not {type(frame).__name__}"
        ) from None
    require_columns(names, table.columns)
    return [encode(table[name].to_native(), name) for name in names]


def _names_of(frame: Any) -> Sequence[Any]:
    """The names of the columns of a frame of pandas, or a table of arrow."""
    names = getattr(frame, "column_names", None)
    return list(frame.columns) if names is None else names


def _encode_array(array: NDArray[Any], name: str) -> Encoded:
    """Codes and texts of a NumPy array."""
    import pyarrow as pa

    if array.ndim != 1:
        raise InputError(
            f"the column {quoted(name)} must have one dimension, not {array.ndim}"
        )
    # Objects and texts.
    if array.dtype.kind in "OUT":
        return _encode_values(array.tolist(), name)
    # All but numbers, truth values and moments.
    if array.dtype.kind not in "iufbM":
        raise not_a_symbol(name, str(array.dtype))
    try:
        column: Any = pa.array(array)
    except pa.ArrowNotImplementedError:
        # Moments in hours or months, and floats of 80 bits.
        raise not_a_symbol(name, str(array.dtype)) from None
    return _encode_arrow(column, name)


def _encode_series(column: Any, name: str) -> Encoded:
    """Codes and texts of a Series of any data frame library."""
    import narwhals as nw

    try:
        series = nw.from_native(column, series_only=True)
    except TypeError:
        raise InputError(
            f"{quoted(name)} must be a column (a pandas or polars Series, a pyarrow or numpy "
            "array, a list), "
            f"not {type(column).__name__}"
        ) from None
    # Not a dictionary of arrow within pandas, which has no categories.
    if hasattr(series.to_native(), "cat") and series.implementation.is_pandas_like():
        return _encode_pandas_categories(series.to_native(), name)
    if series.dtype in (nw.Object, nw.Unknown):
        return _encode_values(series.to_list(), name)
    if series.dtype in (nw.Int128, nw.UInt128):
        # Integers of polars that arrow does not have.
        raise not_a_symbol(name, "integers of 128 bits")
    return _encode_arrow(series.to_arrow(), name)


def _encode_pandas_categories(series: Any, name: str) -> Encoded:
    """Categories of pandas, which arrow cannot hold if they are intervals, say."""
    categories = series.cat.categories
    texts = tuple(text_of(value, name) or "" for value in categories.tolist())
    is_float = categories.dtype.kind == "f"
    return Encoded(series.cat.codes.to_numpy(), texts, is_float)


def _encode_values(values: Sequence[Any], name: str) -> Encoded:
    """Python values of any types."""
    code_of: dict[str, int] = {}
    codes = np.empty(len(values), dtype=np.int64)
    only_floats = True
    for place, value in enumerate(values):
        text = text_of(value, name)
        if text is None:
            codes[place] = -1
            continue
        codes[place] = code_of.setdefault(text, len(code_of))
        if only_floats and not isinstance(value, (float, np.floating)):
            only_floats = False
    return Encoded(codes, tuple(code_of), bool(code_of) and only_floats)


def _encode_arrow(column: Any, name: str) -> Encoded:
    """Codes and texts of a pyarrow array, with or without chunks."""
    import pyarrow as pa

    types = pa.types
    if types.is_null(column.type):
        return Encoded(np.full(len(column), -1), ())
    if str(column.type) == UUID_TYPE:
        # pyarrow cannot cast it to text; Python's UUID has the form that other engines write.
        texts = [None if value is None else str(value) for value in column.to_pylist()]
        column = pa.array(texts, pa.string())
    if not types.is_dictionary(column.type):
        extension = isinstance(column.type, pa.BaseExtensionType)
        if types.is_nested(column.type) or extension:
            raise not_a_symbol(name, str(column.type))
        if len(column) <= FEW_CELLS and _is_text(column.type):
            # pyarrow would load pyarrow.compute, 0.04 s.
            return _encode_values(column.to_pylist(), name)
        column = as_codes(column)
    is_float = types.is_floating(column.type.value_type)
    if isinstance(column, pa.ChunkedArray):
        # pyarrow cannot combine no chunks at all for every type.
        if not column.num_chunks:
            return Encoded(np.zeros(0, np.int64), (), is_float)
        column = column.combine_chunks()
    if len(column.dictionary) > len(column):
        # The dictionary is that of a whole row group, and this is a part of it.
        column = as_codes(column.dictionary_decode())
    indices = column.indices
    # A missing cell becomes -1.
    if types.is_unsigned_integer(indices.type):
        indices = indices.cast(pa.int64())
    codes = integers_of(indices, -1)
    texts = _texts_of_arrow(column.dictionary, name)
    if None in texts:
        # The dictionary itself has a NaN or a null. The last entry serves the code -1.
        missing = [code for code, text in enumerate(texts) if text is None]
        new_codes = np.arange(len(texts) + 1)
        new_codes[[*missing, -1]] = -1
        codes = new_codes[codes]
    return Encoded(codes, tuple(text or "" for text in texts), is_float)


def _texts_of_arrow(values: Any, name: str) -> list[str | None]:
    """The texts of a pyarrow array, None for a missing value."""
    import pyarrow as pa

    types = pa.types
    kind = values.type
    if _is_text(kind):
        return values.to_pylist()
    if types.is_timestamp(kind) or types.is_time(kind):
        return _texts_of_times(values)
    if types.is_floating(kind):
        return _texts_of_floats(values)
    plain = (
        types.is_integer(kind)
        or types.is_boolean(kind)
        or types.is_decimal(kind)
        or types.is_date(kind)
        or types.is_null(kind)
    )
    if not plain:
        raise not_a_symbol(name, str(kind))
    return [None if value is None else str(value) for value in values.to_pylist()]


def _texts_of_times(values: Any) -> list[str | None]:
    """The texts of timestamps and times of day, None for a missing value."""
    import pyarrow as pa

    kind = values.type
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        # The text must not depend on the zone that the table happens to display.
        values = values.cast(pa.timestamp(kind.unit, "UTC"))
    texts: list[str | None] = []
    for text in values.cast(pa.string()).to_pylist():
        texts.append(None if text is None else _plain_time(text))
    return texts


def _plain_time(text: str) -> str:
    """A time as arrow writes it, with the fraction of a second that Python writes, and UTC as
    ``+00:00``.
    """
    if text.endswith("Z"):
        text = text[:-1] + "+0000"
    text = _FRACTION.sub(_plain_fraction, text)
    return _ZONE_WITHOUT_COLON.sub(r"\1:\2", text)


def _plain_fraction(fraction: re.Match[str]) -> str:
    """A fraction of a second, the same whatever unit the column counts in."""
    digits = fraction[1].rstrip("0")
    if not digits:
        return ""
    return "." + digits.ljust(6 if len(digits) <= 6 else 9, "0")


def _texts_of_floats(values: Any) -> list[str | None]:
    """The shortest texts of floats, None for a missing value."""
    # NumPy's floats keep their width, so that a 32-bit float has its own shortest decimal.
    texts: list[str | None] = []
    validity = values.is_valid().to_pylist()
    for number, valid in zip(integers_of(values), validity, strict=True):
        present = valid and not math.isnan(number)
        # Adding zero turns -0.0 into 0.0; two codes may then have one text.
        texts.append(str(number + 0.0) if present else None)
    return texts


def _is_text(kind: Any) -> bool:
    """Whether a pyarrow type is one of text."""
    return str(kind) in _TEXT_TYPES


def not_a_symbol(name: str, kind: str) -> InputError:
    """The error for cells that are no single values."""
    return InputError(
        f"the column {quoted(name)} holds {kind}, which is no symbol; turn it into text first"
    )
