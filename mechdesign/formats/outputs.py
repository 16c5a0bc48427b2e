"""The columns of an output: those of the source that are kept, and those that are written anew.

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

from mechdesign.core.errors import InputError
from mechdesign.formats.arrow_arrays import combined, taken


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
