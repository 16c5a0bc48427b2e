"""A released file for its checks: its columns, its possible labels, its records in batches.

What a file must look like follows from its channel: which columns it has, and which labels each can
hold. A `Released` states this, also where formulas were escaped. `slices` gives the records batch
by batch, without those of other columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mechdesign.core.errors import InputError, errors_naming
from mechdesign.core.files import PathLike
from mechdesign.formats.cells import Encoded, encode
from mechdesign.formats.column_names import require_column
from mechdesign.formats.formulas import as_text
from mechdesign.formats.opening import Source
from mechdesign.formats.text_options import TextOptions
from mechdesign.tables.variable import Variable

Advance = Callable[[int], object]


@dataclass(frozen=True, kw_only=True)
class Released:
    """A released file: its format, its columns, and the `labels` that they can hold."""

    path: PathLike
    labels: Variable
    useful: tuple[str, ...]
    private: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    identity: tuple[str, ...] = ()
    escaped: bool = False
    text: TextOptions | None = None
    advance: Advance | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The released columns."""
        return self.labels.columns

    def written(self, table: Source) -> Variable:
        """The labels as the file has them, escaped if it is."""
        if not self.escaped:
            return self.labels
        if table.kind != "CSV":
            raise InputError(
                f"{table.name}: a Parquet file has no escaped formulas (--escape-formulas)"
            )
        symbols = tuple(tuple(map(as_text, symbol)) for symbol in self.labels.symbols)
        return replace(self.labels, symbols=symbols)


def slices(
    table: Source, symbols: Sequence[str], read: Sequence[str] = ()
) -> Iterator[Any]:
    """All records in order, these columns of them as arrow batches; the file must have them."""
    import pyarrow as pa

    with errors_naming(table.name):
        for name in (*symbols, *read):
            require_column(name, table.header)
    names = list(dict.fromkeys((*symbols, *read)))
    others = [name for name in read if name not in symbols]
    for batch in table.batches(encode=symbols, read=others, whole=False):
        if batch.num_rows:
            columns = [batch.column(name) for name in names]
            yield pa.RecordBatch.from_arrays(columns, names)


def cells_of(batch: Any, names: Sequence[str]) -> list[Encoded]:
    """The cells of some columns as text."""
    return [encode(batch.column(name), name) for name in names]
