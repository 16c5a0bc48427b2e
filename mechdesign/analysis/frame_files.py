"""Data frames in the place of files, for functions that read files.

The cells of a frame have one text each, as a release gives it to them (`formats.cells.encode`). So
a frame becomes a Parquet file of these texts, in a folder that its owner alone can read and that is
gone afterwards. Messages name it as the argument that it was.
"""

# The containers are those of three libraries, and pyarrow tells too little of its types.
# pyright: basic
from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ParamSpec, cast

import numpy as np

from mechdesign.analysis.checking import ReleaseCheck
from mechdesign.core.errors import InputError
from mechdesign.formats.cells import encode_anything
from mechdesign.formats.column_names import require_text_names

P = ParamSpec("P")


def taking_frames(check: Callable[P, ReleaseCheck]) -> Callable[P, ReleaseCheck]:
    """A check of files that takes data frames for `released` and `original`, too."""

    @wraps(check)
    def of_frames(channel: Any, released: Any, **options: Any) -> ReleaseCheck:
        original = options.get("original")
        if is_path(released) and (original is None or is_path(original)):
            return check(channel, released, **options)  # pyright: ignore[reportCallIssue]
        with TemporaryDirectory(prefix="mechdesign-") as folder:
            released = _file_of("released", released, folder)
            if original is not None:
                options["original"] = _file_of("original", original, folder)
            try:
                found = check(channel, released, **options)  # pyright: ignore[reportCallIssue]
            except InputError as error:
                raise InputError(_without(folder, str(error))) from None
        findings = tuple(
            replace(finding, text=_without(folder, finding.text))
            for finding in found.findings
        )
        notices = tuple(_without(folder, notice) for notice in found.notices)
        return replace(found, findings=findings, notices=notices)

    return cast("Callable[P, ReleaseCheck]", of_frames)


def is_path(data: object) -> bool:
    """Whether data are in a file."""
    return isinstance(data, str | os.PathLike)


def _file_of(name: str, data: Any, folder: str) -> str:
    """The file of a frame; a path stays as it is."""
    import narwhals as nw
    import pyarrow as pa
    import pyarrow.parquet as pq

    if is_path(data):
        return data
    try:
        table = nw.from_native(data, eager_only=True)
    except TypeError:
        raise InputError(
            f"{name} must be the path of a CSV or Parquet file, or a pandas, polars or pyarrow "
            f"table; not {type(data).__name__}"
        ) from None
    require_text_names(table.columns)
    columns: dict[str, Any] = {}
    for column in table.columns:
        cells = encode_anything(table[column].to_native(), column)
        texts = np.array([*cells.texts, None], dtype=object)
        # Missing cells have the code -1, which is the last text.
        columns[column] = pa.array(texts[cells.codes], pa.string())
    path = str(Path(folder, name))
    pq.write_table(pa.table(columns), path)
    return path


def _without(folder: str, text: str) -> str:
    """A message that names the frame as the argument that it was."""
    return text.replace(f"{folder}{os.sep}", "")
