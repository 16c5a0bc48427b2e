"""Reading Parquet files in batches, with errors that name the file."""

# pyarrow and narwhals tell too little of their types for the strict mode.
# pyright: basic
from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from mechdesign.core.errors import InputError
from mechdesign.core.files import reason
from mechdesign.core.numbers import quoted

CELLS_PER_BATCH = 1 << 22
"""Cells held in memory at a time."""

ROWS_PER_BATCH = 1 << 18
"""Most rows of a batch."""


@contextmanager
def named_errors(path: str) -> Generator[None]:
    """Errors of pyarrow as InputError with the name of the file."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError) as error:
        text = reason(error) if isinstance(error, OSError) and error.errno else str(error).partition("\n")[0]
        raise InputError(f"{path} cannot be read as Parquet: {text}") from None


class ParquetText:
    """A Parquet file; a context manager.

    Parameters
    ----------
    path : str

    Attributes
    ----------
    schema : pyarrow.Schema
    header : list of str

    Raises
    ------
    InputError
        If it cannot be read, or two columns have the same name.
    """

    def __init__(self, path: str) -> None:
        import pyarrow.parquet as pq

        self.path = path
        with named_errors(path):
            self._file = pq.ParquetFile(path)
        self.schema: Any = self._file.schema_arrow
        self.header: list[str] = list(self.schema.names)
        twice = [name for name, times in Counter(self.header).items() if times > 1]
        if twice:
            self._file.close()
            raise InputError(f"{path}: the column {quoted(twice[0])} is there more than once")

    def __enter__(self) -> ParquetText:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[Any]:
        """Record batches in order, of all columns or of some.

        Raises
        ------
        InputError
            If the file is damaged.
        """
        names = self.header if columns is None else list(columns)
        rows = min(ROWS_PER_BATCH, max(1, CELLS_PER_BATCH // max(1, len(names))))
        with named_errors(self.path):
            batches = self._file.iter_batches(rows, columns=names)
        while True:
            with named_errors(self.path):
                batch = next(batches, None)
            if batch is None:
                return
            yield batch
