"""Where a command may write, decided before it works for minutes."""

from __future__ import annotations

import os
from pathlib import Path

from mechdesign.errors import InputError


def check_target(path: str, *, force: bool, inputs: tuple[str, ...] = ()) -> None:
    """Refuse a path that could not be written later.

    Raises
    ------
    InputError
        If it is a folder, exists without `force`, is one of the `inputs`, or lies in a folder that does
        not exist or cannot be written to.
    """
    target = Path(path)
    if target.is_dir():
        raise InputError(f"the output {path!r} is a folder; give the name of a file")
    for source in inputs:
        if target.exists() and os.path.exists(source) and os.path.samefile(target, source):
            raise InputError(f"the output {path!r} is the input file; give another name")
    if target.exists() and not force:
        raise InputError(f"the output {path!r} exists; --force overwrites it")
    folder = target.parent
    if not folder.is_dir():
        raise InputError(f"the output {path!r} lies in {str(folder)!r}, which is not a folder; make it first")
    if not os.access(folder, os.W_OK):
        raise InputError(f"the folder {str(folder)!r} of the output {path!r} is not writable")
