"""Data in a folder, or in the files that a glob names."""

from __future__ import annotations

import os
from glob import escape, glob, has_magic
from itertools import takewhile
from pathlib import Path

from mechdesign.core.errors import InputError
from mechdesign.core.files import PathLike
from mechdesign.formats.urls import is_url, local


def is_folder(source: PathLike) -> bool:
    """Whether a source is a folder, or a glob that is not the name of a file."""
    path = local(source)
    magic = has_magic(os.fspath(path)) and not is_url(path)
    return os.path.isdir(path) or (magic and not os.path.exists(path))


def files_of(source: PathLike) -> tuple[Path, list[str]]:
    """The folder that a source is about, and the data files in it, by their names there.

    Names that begin with ``_`` or ``.`` are no data, as for Spark and pyarrow.
    """
    name = os.fspath(local(source))
    whole = os.path.isdir(name)
    base = Path(*takewhile(lambda part: whole or not has_magic(part), Path(name).parts))
    found = sorted(glob(os.path.join(escape(name), "**") if whole else name, recursive=True))
    names = {each: Path(each).relative_to(base).as_posix() for each in found}
    data = [each for each in found if not f"/{names[each]}".replace("/_", "/.").count("/.")]
    for each in data:
        if not os.path.isfile(each) and not (os.path.isdir(each) and os.access(each, os.R_OK | os.X_OK)):
            raise InputError(f"{each} is neither a file nor a folder that can be read")
    files = [names[each] for each in data if os.path.isfile(each)]
    if not files:
        raise InputError(f"{name} has no data files")
    return base, files
