"""Columns of pyarrow: made from NumPy arrays and texts, read back, and cleaned for a release.

*To and from NumPy.* ``pa.array`` and ``Array.to_numpy`` import pandas, where it is installed, to
find out whether the data are pandas' own. That takes 40 MB and a third of a second, which a job on
files does not need. So arrays are made from their buffers, and read from them. An array of numbers
has a buffer of validity bits (None: all are valid) and one of values. An array of texts has a third
buffer, because the texts stand one after another in it and the second has the offsets between them:

    texts ab, c, def        offsets 0, 2, 3, 6        bytes "abcdef"

*For a release.* The dictionary of a column may hold values that no released record has.
`released_dictionary` and `without_dictionaries` leave these out.

*The columns of an output* are those of the source that are kept, and those that are written anew.
A job says once what its output consists of, as a list of these. Each sink then writes it in its own
way: a CSV by exchanging cells, Parquet by assembling columns. For example, a source has the columns
a, b and c. Its b is replaced, c is left out, and a column p is new:

    outputs     KeptColumn(0), WrittenColumn("b", replaces=1), WrittenColumn("p")
    written     [array for b, array for p]          of every batch, in the order of the outputs
    output      a, b, p
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import InputError


def integers_of(array: Any, missing: int | None = None) -> NDArray[Any]:
    """The integers, or floats, of a pyarrow array, as a view of its buffer.

    Nulls become `missing`, in a copy; without it their values are arbitrary.
    """
    _, data = array.buffers()
    kind = array.type.to_pandas_dtype()
    if data is None:
        return np.zeros(0, kind)
    # A slice shares the buffer of the whole array.
    start = array.offset
    values = np.frombuffer(data, kind)[start : start + len(array)]
    if missing is None or not array.null_count:
        return values
    # Truth values are bits in arrow, so they are cast to bytes first.
    is_null = integers_of(array.is_null().cast("uint8")) == 1
    return np.where(is_null, missing, values)


def arrow_integers(array: NDArray[np.integer[Any]]) -> Any:
    """The same integers as a pyarrow array, without nulls."""
    import pyarrow as pa

    kind = pa.type_for_alias(array.dtype.name)
    # Without a copy, unless the integers have gaps between them.
    data = pa.py_buffer(np.ascontiguousarray(array))
    return pa.Array.from_buffers(kind, len(array), [None, data])


def arrow_texts(texts: Sequence[str | None]) -> Any:
    """Texts as a pyarrow array, with nulls for None.

    `pyarrow.array` would load pandas, which takes a third of a second and 40 MB.
    """
    import pyarrow as pa

    encoded = [(text or "").encode() for text in texts]
    lengths = [len(text) for text in encoded]
    offsets = np.cumsum([0, *lengths], dtype=np.int32)
    validity = None
    if None in texts:
        present = [text is not None for text in texts]
        validity = pa.py_buffer(np.packbits(present, bitorder="little"))
    buffers = [validity, pa.py_buffer(offsets), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(pa.string(), len(encoded), buffers)


def without_nulls(texts: Any) -> Any:
    """Texts of pyarrow with the empty text in the place of nulls."""
    if not texts.null_count:
        return texts
    # An arrow scalar: for "" itself pyarrow would load pandas, which takes a third of a second.
    return texts.fill_null(arrow_texts([""])[0])


def arrow_offsets(texts: Any) -> tuple[NDArray[np.int64], Any]:
    """The (n + 1,) offsets of the n texts of a pyarrow array, and the bytes that they are into.

    The first offset is not 0 in a slice, which shares the bytes of the whole array.
    """
    _, offsets, data = texts.buffers()
    if not len(texts):
        return np.zeros(1, np.int64), data or b""
    # Large strings have offsets of 64 bits, others of 32 bits.
    width = "<i8" if str(texts.type) == "large_string" else "<i4"
    start = texts.offset
    bounds = np.frombuffer(offsets, width)[start : start + len(texts) + 1]
    return np.asarray(bounds, np.int64), data or b""


def is_arrow(column: Any) -> bool:
    """Whether a column is a pyarrow array, with or without chunks."""
    import pyarrow as pa

    return isinstance(column, (pa.Array, pa.ChunkedArray))


def combined(column: Any) -> Any:
    """A pyarrow array of all chunks, where the column has chunks."""
    import pyarrow as pa

    if isinstance(column, pa.ChunkedArray):
        return column.combine_chunks()
    return column


def as_codes(column: Any) -> Any:
    """A column as codes into its distinct values, which of narrow decimals are wider ones."""
    import pyarrow as pa

    kind = column.type
    # By name: older versions of pyarrow do not have these types.
    if str(kind).startswith(("decimal32", "decimal64")):
        # Pyarrow cannot encode them; wider ones have the same texts.
        column = column.cast(pa.decimal128(kind.precision, kind.scale))
    return column.dictionary_encode()


def taken(array: Any, places: Any) -> Any:
    """The items of an array at some places."""
    kind = array.type
    plain = _without_views(kind)
    if plain == kind:
        return array.take(places)
    # Pyarrow has no `take` for views of text and bytes, so they become plain ones for it.
    return array.cast(plain).take(places).cast(kind)


def taken_records(table: Any, places: Any) -> Any:
    """The records of a table, or record batch, at some places."""
    import pyarrow as pa

    if all(_without_views(field.type) == field.type for field in table.schema):
        return table.take(places)
    columns = [taken(column, places) for column in table.columns]
    if isinstance(table, pa.RecordBatch):
        return pa.RecordBatch.from_arrays(columns, schema=table.schema)
    return pa.Table.from_arrays(columns, schema=table.schema)


def _without_views(kind: Any) -> Any:
    """The type with text and bytes in the place of views of them."""
    import pyarrow as pa

    if pa.types.is_string_view(kind):
        return pa.large_string()
    if pa.types.is_binary_view(kind):
        return pa.large_binary()
    return kind


def released_dictionary(column: Any) -> Any:
    """The same cells, with a dictionary that discloses nothing but the records of the column.

    It has the values that these records have, each once, in the order of their first appearance.
    Of the codes 2, 0, 2 into the dictionary (a, b, c), which tells that somebody had b, come the
    codes 0, 1, 0 into (c, a).
    """
    import pyarrow as pa

    if isinstance(column, pa.ChunkedArray):
        # Each chunk may have a dictionary of its own.
        column = pa.concat_arrays(column.unify_dictionaries().chunks)
    # The distinct codes, numbered by their first appearance; nulls stay nulls.
    codes = column.indices.dictionary_encode()
    values = taken(column.dictionary, codes.dictionary)
    kind = column.type
    if values.null_count or len(as_codes(values).dictionary) < len(values):
        # Two codes of one value would distinguish records that the values do not.
        codes = as_codes(column.dictionary_decode())
        values = codes.dictionary.cast(kind.value_type)
    indices = codes.indices.cast(kind.index_type)
    return pa.DictionaryArray.from_arrays(indices, values, ordered=kind.ordered)


def without_dictionaries(column: Any) -> Any:
    """The column with plain values in the place of dictionaries inside lists and structures.

    A dictionary at the top stays: the sink renews it.
    """
    import pyarrow as pa

    kind = column.type
    if not pa.types.is_nested(kind):
        return column
    plain = _plain_type(kind)
    if plain == kind:
        return column
    return column.cast(plain)


def _plain_type(kind: Any) -> Any:
    """The type without dictionaries, however deep."""
    import pyarrow as pa

    types = pa.types
    if types.is_dictionary(kind):
        return _plain_type(kind.value_type)
    if types.is_struct(kind):
        fields = [kind.field(place) for place in range(kind.num_fields)]
        return pa.struct([field.with_type(_plain_type(field.type)) for field in fields])
    if types.is_map(kind):
        return pa.map_(_plain_type(kind.key_type), _plain_type(kind.item_type))
    if types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_plain_type(kind.value_type)))
    if types.is_large_list(kind):
        return pa.large_list(kind.value_field.with_type(_plain_type(kind.value_type)))
    return kind


# ----------------------------------------------------------------- columns of an output


@dataclass(frozen=True)
class KeptColumn:
    """An output column that is the source's column at `position`, unchanged."""

    position: int


@dataclass(frozen=True)
class WrittenColumn:
    """An output column that the job writes.

    Attributes
    ----------
    name : str
        Its name.
    replaces : int or None
        The position of the source's column that it replaces. In a Parquet file it takes over that
        column's compression and pandas' notes on it.
    kind : pyarrow.DataType or None
        Its type in a Parquet file, and that of the arrays that are written; text by default.
    """

    name: str
    replaces: int | None = None
    kind: Any = None


Output: TypeAlias = KeptColumn | WrittenColumn


def check_outputs(outputs: Sequence[Output], width: int) -> None:
    """Refuse outputs that are not columns of a source of `width` columns, in their order."""
    kept = [output.position for output in outputs if isinstance(output, KeptColumn)]
    in_order = kept == sorted(set(kept))
    in_range = not kept or 0 <= min(kept) <= max(kept) < width
    if not outputs or not in_order or not in_range:
        raise InputError(
            f"the outputs must be columns of the source in their order, not {kept} of {width}"
        )


def values_of(column: Any, kind: Any = None) -> Any:
    """A written column as an array of type `kind`; without one, as codes into text."""
    import pyarrow as pa

    column = combined(column)
    if kind is not None and pa.types.is_dictionary(kind):
        coded = column
        if not pa.types.is_dictionary(column.type):
            coded = column.dictionary_encode()
        return pa.DictionaryArray.from_arrays(
            coded.indices.cast(kind.index_type),
            coded.dictionary.cast(kind.value_type),
            ordered=kind.ordered,
        )
    if not pa.types.is_dictionary(column.type):
        if kind is not None:
            return column.cast(kind)
        return column.cast(pa.string()).dictionary_encode()
    if kind is None and column.type == pa.dictionary(pa.int32(), pa.string()):
        return column
    # Few labels are cast, however many records have them.
    indices = column.indices.cast(pa.int32())
    values = column.dictionary.cast(kind or pa.string())
    if kind is None:
        return pa.DictionaryArray.from_arrays(indices, values)
    return taken(values, indices)


def field_of(output: Output, schema: Any) -> Any:
    """The arrow field of an output column."""
    import pyarrow as pa

    if isinstance(output, KeptColumn):
        return schema.field(output.position)
    # A new column may have empty cells; one that replaces another has them where that has.
    nullable = output.replaces is None or schema.field(output.replaces).nullable
    return pa.field(output.name, output.kind or pa.string(), nullable=nullable)
