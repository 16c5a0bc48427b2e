"""The unit in which the moments of a Parquet file are read that are stored as INT96.

Older programs store a moment as a day and the nanoseconds since midnight, in 96 bits. Pyarrow reads
it in 64 bits, as nanoseconds since 1970 unless another unit is asked for. These reach from 1677 to
2262, and an earlier or later moment comes out as a wrong one, without an error. For example, the
end of the year 9999, which often stands for "never", is read as a day of 1816.

So the moments of such a file are read in microseconds first. Where nanoseconds can hold all of
them, the file is read in nanoseconds, as by other programs, and otherwise in microseconds. A file
is looked at once, although commands open it several times.
"""

# pyarrow has no complete types.
# pyright: basic
from __future__ import annotations

import os
from functools import lru_cache
from typing import Any, Literal, TypeAlias

import numpy as np

from mechdesign.core.errors import FileError
from mechdesign.core.wording import quoted
from mechdesign.formats.arrow_arrays import integers_of

Unit: TypeAlias = Literal["ns", "us"]

ROWS = 1 << 16
"""Records that are compared at once."""


def int96_unit(source: Any, name: str) -> Unit:
    """The unit for the INT96 moments of a Parquet file; nanoseconds where it has none.

    Parameters
    ----------
    source : path or binary file object
        The file.
    name : str
        Its name in messages.

    Raises
    ------
    FileError
        If no unit is right for all moments: some are too far from 1970 for nanoseconds, and others
        have digits below a microsecond.
    """
    if not isinstance(source, str | os.PathLike):
        return _unit_of(source, name)
    status = os.stat(source)
    # A file that is written anew has another time, and mostly another size and place.
    written = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
    return _unit_of_file(os.fspath(source), name, written)


@lru_cache(maxsize=256)
def _unit_of_file(path: str, name: str, written: tuple[int, ...]) -> Unit:
    """`int96_unit` of a file that was written at this time."""
    return _unit_of(path, name)


def _unit_of(source: Any, name: str) -> Unit:
    """`int96_unit` of a file that is read for it."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(source) as file:
        stored = [file.schema.column(i) for i in range(len(file.schema))]
        columns = [one.path for one in stored if one.physical_type == "INT96"]
        in_nanoseconds = file.schema_arrow
    if not columns or _fits(source, columns, in_nanoseconds):
        return "ns"
    finer = _columns_with_finer(source, columns)
    if finer:
        raise FileError(
            name,
            f"{name}: the column {quoted(min(finer))} has moments with digits below a microsecond, "
            "and this file has moments before 1677 or after 2262, which are too far away for "
            "these: write its INT96 columns as timestamps of microseconds",
        )
    return "us"


def _fits(source: Any, columns: list[str], in_nanoseconds: Any) -> bool:
    """Whether nanoseconds can hold every moment of some columns."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pq.ParquetFile(source, coerce_int96_timestamp_unit="us") as file:
        batches = file.iter_batches(columns=columns, batch_size=ROWS, use_threads=False)
        for batch in batches:
            for column, moments in zip(batch.schema.names, batch.columns, strict=True):
                try:
                    moments.cast(in_nanoseconds.field(column).type)
                except pa.ArrowInvalid:
                    return False
    return True


def _columns_with_finer(source: Any, columns: list[str]) -> set[str]:
    """The columns with a moment that nanoseconds can hold, and microseconds cannot."""
    import pyarrow.parquet as pq

    finer: set[str] = set()
    with (
        pq.ParquetFile(source) as in_nanoseconds,
        pq.ParquetFile(source, coerce_int96_timestamp_unit="us") as in_microseconds,
    ):
        readers = (in_nanoseconds, in_microseconds)
        batches = [
            reader.iter_batches(columns=columns, batch_size=ROWS, use_threads=False)
            for reader in readers
        ]
        for fine, coarse in zip(*batches, strict=True):
            for column, in_ns, in_us in zip(
                fine.schema.names, fine.columns, coarse.columns, strict=True
            ):
                if _has_finer(in_ns, in_us):
                    finer.add(column)
    return finer


def _has_finer(in_ns: Any, in_us: Any) -> bool:
    """Whether a moment that nanoseconds can hold has digits below a microsecond."""
    import pyarrow as pa

    # Moments inside of lists are compared, but not looked at.
    if not pa.types.is_timestamp(in_ns.type):
        return False
    fine = integers_of(in_ns.cast(pa.int64()), 0)
    coarse = integers_of(in_us.cast(pa.int64()), 0)
    return bool(np.any((fine // 1000 == coarse) & (fine % 1000 != 0)))
