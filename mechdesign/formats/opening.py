"""What a sanitisation job needs of a data file, whatever its format: batches in, the same batches changed out.

A job opens a `Source`, decides from its `header` what the output holds, asks it for a `Sink`, and hands every
batch on with the columns that were written anew::

    with open_source("people.csv") as source:
        outputs = [KeptColumn(0), WrittenColumn("job", replaces=1), KeptColumn(2)]
        with source.sink(stream, outputs) as sink:
            for batch in source.batches(encode=["job"]):
                sink.write(batch, [released(batch.column("job"))])

Memory does not grow with the file. What is kept never passes through Python objects: a CSV gives the bytes of its
lines back, Parquet its arrays.
"""

# pyarrow tells too little of its types for the strict mode.
# pyright: basic
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import InputError
from mechdesign.core.files import PathLike
from mechdesign.formats.compression import Compression
from mechdesign.formats.inputs import TextOptions

Kind: TypeAlias = Literal["CSV", "Parquet"]


@dataclass(frozen=True)
class KeptColumn:
    """A column of the output that is the source's column at `position`, as it is."""

    position: int


@dataclass(frozen=True)
class WrittenColumn:
    """A column of text that the job writes; `replaces` is the source's column it stands for, if there is one.

    A Parquet file takes the compression of the replaced column over, and pandas' notes on it. With a `kind`, an arrow
    type, the column is of this type there, and so are the arrays written.
    """

    name: str
    replaces: int | None = None
    kind: Any = None


Output: TypeAlias = KeptColumn | WrittenColumn


class Batch(Protocol):
    """Some records of a source, in order."""

    @property
    def num_rows(self) -> int:
        """How many records."""
        ...

    def column(self, name: Any, /) -> Any:
        """A column that `Source.batches` was asked for, as a pyarrow array."""
        ...

    def rows(self) -> list[list[str]]:
        """All cells as text, row by row; for tables that are small."""
        ...

    def select(self, rows: NDArray[np.bool_], /) -> Batch:
        """Some of the records, to be written."""
        ...


class Sink(Protocol):
    """The output of a job; a context manager that closes it if all went well."""

    records: int
    """Records written so far."""

    def __enter__(self) -> Sink: ...

    def __exit__(self, *raised: object) -> None: ...

    def write(self, batch: Any, written: Sequence[Any]) -> None:
        """Write a batch of the source."""
        ...

    def close(self) -> None:
        """Write what is left and the end of the format; the target itself stays open."""
        ...


class Source(Protocol):
    """A data file that is read; a context manager."""

    name: str
    """What messages call it."""

    header: list[str]
    size: int
    """Of the whole file, in `unit`."""

    @property
    def kind(self) -> Kind:
        """Its format."""
        ...

    @property
    def unit(self) -> Literal["bytes", "rows"]:
        """What `position` and `size` count."""
        ...

    @property
    def records(self) -> int | None:
        """How many records there are, where the format tells it beforehand."""
        ...

    @property
    def position(self) -> int:
        """How far it is read, in `unit`."""
        ...

    def __enter__(self) -> Source: ...

    def __exit__(self, *raised: object) -> None: ...

    def batches(
        self, *, encode: Sequence[str] = (), read: Sequence[str] = (), whole: bool = True
    ) -> Iterator[Batch]:
        """All records, some at a time; from the beginning of the file at every call."""
        ...

    def where(self, record: int) -> str:
        """Where record number `record` (from 0) is, for messages: ``people.csv, line 12``. May read the file again."""
        ...

    def sink(
        self, target: BinaryIO, outputs: Sequence[Output], *, compression: Compression | None = None
    ) -> Sink:
        """Where the batches of this source go, in the format of the source."""
        ...

    def write_table(
        self,
        target: BinaryIO,
        columns: Mapping[str, Sequence[Any]],
        *,
        compression: Compression | None = None,
    ) -> None:
        """Write a new table, of texts and numbers, as a file of this format is written; raises as `sink` does."""
        ...

    def close(self) -> None:
        """Close the file, if it was opened here."""
        ...


def open_source(
    source: PathLike | BinaryIO,
    options: TextOptions | None = None,
    *,
    name: str | None = None,
    repeated_names: bool = False,
) -> Source:
    """Open a CSV or Parquet file; its first bytes tell which, and whether it is compressed."""
    from mechdesign.formats.inputs import RawInput

    raw = RawInput(source, name)
    try:
        if raw.is_parquet:
            from mechdesign.formats.parquet import ParquetSource

            return ParquetSource(raw)
        from mechdesign.formats.csv import CsvSource

        return CsvSource(raw, options or TextOptions(), repeated_names=repeated_names)
    except BaseException:
        raw.close()
        raise


def check_outputs(outputs: Sequence[Output], width: int) -> None:
    """Refuse outputs that are no columns of a source with `width` columns, or kept out of order."""
    kept = [output.position for output in outputs if isinstance(output, KeptColumn)]
    if not outputs or kept != sorted(set(kept)) or (kept and not 0 <= kept[0] <= kept[-1] < width):
        raise InputError(f"the outputs must be columns of the source in their order, not {kept} of {width}")
