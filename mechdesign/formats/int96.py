"""The unit in which the moments of a Parquet file are read that are stored as INT96.

Older programs store a moment as a day and the nanoseconds since midnight, in 96 bits. Pyarrow reads
it in 64 bits, as nanoseconds since 1970 unless another unit is asked for. These reach from 1677 to
2262, and an earlier or later moment comes out as a wrong one, without an error. For example, the
end of the year 9999, which often stands for "never", is read as a day of 1816.

So such a file is read in nanoseconds and in microseconds first. Where both agree, it is read in
nanoseconds, as by other programs, and otherwise in microseconds.
"""

# pyarrow has no complete types.
# pyright: basic
from __future__ import annotations

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
    source : str or binary file object
        The file.
    name : str
        Its name in messages.

    Raises
    ------
    FileError
        If no unit is right for all moments: some are too far from 1970 for nanoseconds, and others
        have digits below a microsecond.
    """
    import pyarrow.parquet as pq

    with pq.ParquetFile(source) as file:
        stored = [file.schema.column(i) for i in range(len(file.schema))]
        columns = [one.path for one in stored if one.physical_type == "INT96"]
    if not columns:
        return "ns"
    fits = True
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
                fits = fits and in_ns.cast(in_us.type, safe=False).equals(in_us)
                if _has_finer(in_ns, in_us):
                    finer.add(column)
    if fits:
        return "ns"
    if finer:
        raise FileError(
            name,
            f"{name}: the column {quoted(min(finer))} has moments with digits below a microsecond, "
            "and this file has moments before 1677 or after 2262, which are too far away for "
            "these: write its INT96 columns as timestamps of microseconds",
        )
    return "us"


def _has_finer(in_ns: Any, in_us: Any) -> bool:
    """Whether a moment that nanoseconds can hold has digits below a microsecond."""
    import pyarrow as pa

    # Moments inside of lists are compared, but not looked at.
    if not pa.types.is_timestamp(in_ns.type):
        return False
    fine = integers_of(in_ns.cast(pa.int64()), 0)
    coarse = integers_of(in_us.cast(pa.int64()), 0)
    return bool(np.any((fine // 1000 == coarse) & (fine % 1000 != 0)))
