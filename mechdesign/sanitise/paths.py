"""Where files lie, and what is in them."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from mechdesign.files import PathLike

LONGEST_NAME = 255
"""Bytes of a file name on the usual file systems."""


def part_of(path: Path) -> Path:
    """The temporary file of a target: a function of its name alone, so that it can be found again."""
    name = f".{path.name}.part"
    if len(os.fsencode(name)) > LONGEST_NAME:
        name = f".{hashlib.sha256(os.fsencode(path.name)).hexdigest()}.part"
    return path.with_name(name)


def real_path(path: PathLike) -> Path:
    """Where `path` leads: one file has one temporary file and one entry in a job, whatever links lead to it."""
    return Path(os.path.realpath(path))


def sha256_of(path: PathLike) -> str:
    """SHA-256 of a file's bytes, in hexadecimal digits."""
    with open(path, "rb", buffering=0) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def holds(path: PathLike, sha256: str | None) -> bool:
    """Whether the file is there, with these bytes."""
    try:
        return sha256_of(path) == sha256
    except OSError:
        return False
