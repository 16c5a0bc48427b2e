"""Opening files for reading, and replacing files whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from mechdesign.errors import InputError

PathLike = str | os.PathLike[str]

PARQUET_MAGIC = b"PAR1"
"""First (and last) bytes of a Parquet file."""

SNIFFED = 4096
"""Bytes looked at to tell what a file is."""

PARQUET_SUFFIXES = (".parquet", ".pq")

BINARY = "is neither a CSV nor a Parquet file (it has binary content)"

_OTHER_KINDS = {
    b"\xff\xfe": "is UTF-16 text; save it as UTF-8",
    b"\xfe\xff": "is UTF-16 text; save it as UTF-8",
    b"\x1f\x8b": "is compressed (gzip); unpack it first",
    b"PK\x03\x04": "is a zip archive or a spreadsheet; save the table as CSV",
}


def reason(error: OSError) -> str:
    """Why the operating system refused, in lower case."""
    return (error.strerror or type(error).__name__).lower()


def opened(path: PathLike, name: str | None = None) -> BinaryIO:
    """Open a file for reading, without a buffer; messages call it `name`.

    Raises
    ------
    InputError
        If it is missing, a folder, or unreadable.
    """
    shown = name or os.fspath(path)
    try:
        return open(path, "rb", buffering=0)
    except FileNotFoundError:
        raise InputError(f"{shown}: there is no such file") from None
    except IsADirectoryError:
        raise InputError(f"{shown} is a folder, not a file") from None
    except OSError as error:
        raise InputError(f"{shown} cannot be read: {reason(error)}") from None


def other_kind(head: bytes) -> str | None:
    """What a file is that begins with `head`, if that is neither plain text nor Parquet."""
    return next((kind for magic, kind in _OTHER_KINDS.items() if head.startswith(magic)), None)


def is_parquet(path: PathLike) -> bool:
    """Whether `path` is a Parquet file by its first bytes; any other file must look like text.

    Raises
    ------
    InputError
        If the file is missing, a folder, unreadable, empty, or neither Parquet nor text.
    """
    with opened(path) as stream:
        try:
            head = stream.read(SNIFFED)
        except OSError as error:
            raise InputError(f"{os.fspath(path)} cannot be read: {reason(error)}") from None
    if head.startswith(PARQUET_MAGIC):
        return True
    if not head:
        raise InputError(f"{os.fspath(path)} is empty")
    kind = other_kind(head)
    if kind:
        raise InputError(f"{os.fspath(path)} {kind}")
    if Path(path).suffix.lower() in PARQUET_SUFFIXES:
        raise InputError(f"{os.fspath(path)} is not a Parquet file, though its name says so")
    if b"\0" in head:
        raise InputError(f"{os.fspath(path)} {BINARY}")
    return False


def check_target(target: PathLike, *, force: bool, sources: tuple[PathLike, ...] = ()) -> None:
    """Refuse a place to write to before any work is done.

    Raises
    ------
    InputError
        If `target` is a folder or a device, one of the `sources`, exists without `force`, or lies in no folder.
    """
    path, name = Path(target), os.fspath(target)
    if path.is_dir():
        raise InputError(f"{name} is a folder; give the name of a file")
    if path.exists() and not path.is_file():
        raise InputError(f"{name} is no ordinary file; give the name of a file")
    for source in sources:
        if path.exists() and Path(source).exists() and path.samefile(source):
            raise InputError(f"{name} is the input file itself; write to another file")
    if path.exists() and not force:
        raise InputError(f"{name} exists; choose another name, or overwrite it with force (--force)")
    if not path.parent.is_dir():
        raise InputError(f"{name} cannot be written: there is no folder {str(path.parent)!r}")


@contextmanager
def replacing(target: PathLike, *, force: bool, mode: int = 0o666) -> Generator[Path]:
    """Give a temporary path in the folder of `target` to write to; rename it when all went well.

    On any exception the temporary file is removed and `target` stays as it was. The data are on disk before
    the rename, so a crash leaves the old file or the new one. A file that is replaced keeps its permissions;
    those of a new one are `mode`, less the mask of the process.

    Raises
    ------
    InputError
        If the folder or the disk refuses, or `target` has appeared meanwhile (without `force`).
    """
    path = Path(target)
    temporary = path.with_name(f".{path.name[:100]}.{secrets.token_hex(8)}.part")
    try:
        # Created here rather than by tempfile, so that the file gets the permissions that any new file gets.
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))
        yield temporary
        with open(temporary, "rb+") as stream:
            os.fsync(stream.fileno())
        if not force and path.exists():
            raise InputError(
                f"{os.fspath(target)} exists; choose another name, or overwrite it with force (--force)"
            )
        keep_mode(temporary, path)
        os.replace(temporary, path)
        sync_folder(path.parent)
    except OSError as error:
        raise InputError(f"{os.fspath(target)} cannot be written: {reason(error)}") from error
    finally:
        temporary.unlink(missing_ok=True)


def keep_mode(new: Path, old: Path) -> None:
    """Give `new` the permissions of `old`, the file that it is about to replace, if there is one."""
    try:
        mode = stat.S_IMODE(old.stat().st_mode)
    except FileNotFoundError:
        return
    if mode != stat.S_IMODE(new.stat().st_mode):
        new.chmod(mode)


def sync_folder(folder: Path) -> None:
    """Have the names in `folder` on disk too, where the system can be told to."""
    if os.name == "nt":  # which opens no folders
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some network and user-space file systems know no such thing.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)
