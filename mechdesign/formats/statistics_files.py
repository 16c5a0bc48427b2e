"""Files of SPSS, Stata and SAS with the labels of their values, by pyreadstat (extra `stats`).

Such a file has a code in every cell, and often a dictionary of labels: 1 is "employed". The labels
are what people mean, so a cell becomes its label. A code without a label, or with an empty one, is
written as a number, as a whole one where it is whole; a label that reads like such a number, or
that several codes share, has its code behind it. Missing values, those that SPSS files declare too,
are missing. The table is held in memory and read like a Parquet file.
"""

# pyreadstat has no types.
# pyright: basic
from __future__ import annotations

import io
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from importlib.util import find_spec
from typing import Any

from mechdesign.core.errors import FileError
from mechdesign.core.files import NamelessFile
from mechdesign.formats.cells import as_whole
from mechdesign.formats.file_kinds import write_all
from mechdesign.formats.inputs import RawInput

READERS = {
    "SPSS": "read_sav",
    "Stata": "read_dta",
    "SAS": "read_sas7bdat",
    "SAS transport": "read_xport",
}
"""pyreadstat's functions by the kind of file."""

_BLOCK = 1 << 20


def as_parquet(raw: RawInput) -> RawInput:
    """The table of a statistics file as a Parquet file in memory, under the same name.

    Raises
    ------
    FileError
        If pyreadstat is not installed, or cannot read the file.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    kind = raw.statistics or "SPSS"
    if find_spec("pyreadstat") is None:
        raise FileError(
            raw.name,
            f"{raw.name} is a file of {kind}, which needs more: pip install 'mechdesign[stats]'; "
            "or export the table as CSV from where it was made",
        )
    import pyreadstat  # pyright: ignore[reportMissingImports]

    with closing(NamelessFile()) as copy:
        # A file object has no path, and pyreadstat reads from nothing else.
        with open(copy.path, "wb", buffering=0) as sink:
            cursor, _ = raw.from_start()
            while block := cursor.read(_BLOCK):
                write_all(sink, block)
        try:
            frame, meta = getattr(pyreadstat, READERS[kind])(str(copy.path))
        except Exception as error:
            # The library's errors have a base class of its own, and some are plain ones.
            raise FileError(
                raw.name,
                f"{raw.name} is a file of {kind} that cannot be read ({error}); export the table "
                "as CSV from where it was made",
            ) from None
    columns: dict[str, Any] = {}
    for name in frame.columns:
        labels = meta.variable_value_labels.get(name, {})
        columns[name] = _column(frame[name], labels)
    buffer = io.BytesIO()
    pq.write_table(pa.table(columns), buffer)
    return RawInput(buffer, raw.name)


def _column(series: Any, labels: Mapping[Any, str]) -> Any:
    """A column as an arrow array: labels, whole numbers, or what it was."""
    import pyarrow as pa

    values = [None if value != value else value for value in series.tolist()]
    if labels:
        texts = _texts_of_codes(labels, values)
        labelled: list[str | None] = []
        for value in values:
            if value is None:
                labelled.append(None)
            else:
                labelled.append(texts.get(value, as_whole(str(value))))
        return pa.array(labelled, pa.string())
    numbers = [value for value in values if value is not None]
    if numbers and all(
        isinstance(value, float) and value.is_integer() for value in numbers
    ):
        # All numbers of SPSS are floats; most of them are codes or counts.
        return pa.array([None if v is None else int(v) for v in values])
    return pa.Array.from_pandas(series)


def _texts_of_codes(labels: Mapping[Any, str], values: Sequence[Any]) -> dict[Any, str]:
    """The text of each code; a label has its code behind it where two codes would be one text."""
    labels = {code: label for code, label in labels.items() if label.strip()}
    times = Counter(labels.values())
    # What codes without a label are written as.
    times.update({as_whole(str(value)) for value in values if value not in labels})
    texts: dict[Any, str] = {}
    for code, label in labels.items():
        texts[code] = label
        if times[label] > 1:
            texts[code] = f"{label} ({as_whole(str(code))})"
    return texts
