"""Files that no output may replace, whatever the user forces: what a release needs to be repeated and understood."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from mechdesign.errors import InputError
from mechdesign.files import PathLike
from mechdesign.sanitise.key_file import TAG
from mechdesign.sanitise.paths import part_of, real_path
from mechdesign.sanitise.source_guard import STANDARD


def keep_apart(outputs: Sequence[PathLike], vital: Sequence[tuple[str, PathLike]]) -> None:
    """Refuse outputs that would replace a file that is still needed.

    Parameters
    ----------
    outputs : sequence of paths
        All that is going to be written; ``-`` is standard output.
    vital : sequence of (str, path)
        What messages call a file, and where it is; it need not be there yet.

    Raises
    ------
    InputError
        Naming both.
    """
    for output in outputs:
        if os.fspath(output) == STANDARD:
            continue
        place = real_path(output)
        if _holds_key(place):
            raise InputError(
                f"{os.fspath(output)} holds the key of a job, which is never overwritten; give another name"
            )
        for what, path in vital:
            if real_path(path) in (place, part_of(place)) or _same(place, Path(path)):
                raise InputError(
                    f"{os.fspath(output)} would overwrite {what} {os.fspath(path)}, which is still needed; give "
                    "another name"
                )


def _holds_key(path: Path) -> bool:
    """Whether it is the key file of whichever job."""
    if not path.is_file():  # a pipe would wait for somebody to write to it
        return False
    try:
        with open(path, "rb", buffering=0) as stream:
            return stream.read(len(TAG)) == TAG.encode()
    except OSError:  # what cannot be read is told where it is written
        return False


def _same(one: Path, other: Path) -> bool:
    """Whether both are names of one file."""
    try:
        return one.samefile(other)
    except OSError:  # one of them is not there
        return False
