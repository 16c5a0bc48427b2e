"""Files at URLs, which fsspec knows how to reach: read through a copy, and published whole.

``file://`` and ``local://`` are plain paths. What is read is copied, so that it can be read again and cannot change
meanwhile; what is written appears when the store commits it, all or nothing.
"""

# fsspec has no types.
# pyright: basic, reportMissingImports=false
from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeGuard

from mechdesign.core.errors import InputError
from mechdesign.core.files import EXISTS, PathLike, real_path

STANDARD, FRAME, LAZY = "-", "a data frame", "a lazy table"
"""In the place of paths: standard input among the inputs and standard output among the outputs; what is no file."""

BLOCK = 1 << 20
"""Bytes hashed or copied at a time."""

PUBLISHING = ("gcs", "gs", "memory", "s3", "s3a")
"""Stores that hold a file back until it is complete, by the schemes of their URLs: others may show half of it."""

_LOCAL = re.compile(r"(?:file|local)://(.*)", re.IGNORECASE | re.DOTALL)

_URL = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)

_PASSWORD = re.compile(r"\w+://[^/]*:[^/]*@")


def local(path: PathLike) -> PathLike:
    """A path as it is, or that of a ``file://`` URL, of which, as in fsspec, no character is encoded."""
    return (
        found[1]
        if isinstance(path, str) and (found := _LOCAL.fullmatch(path))
        else path
    )


def is_url(path: PathLike) -> TypeGuard[str]:
    """Whether a file is at a URL that is no plain path."""
    return isinstance(path, str) and bool(_URL.match(path)) and local(path) is path


def place_of(path: PathLike) -> str:
    """One text for one file, whatever links or spellings lead to it; what is no file keeps its name."""
    if os.fspath(path) in (STANDARD, FRAME, LAZY):
        return os.fspath(path)
    return Remote(path).place if is_url(path) else os.fspath(real_path(local(path)))


class Remote:
    """A file at a URL."""

    def __init__(self, url: str) -> None:
        self.url = url
        if _PASSWORD.match(url):
            raise InputError(
                "the URL holds a password, which would be kept where the URL is: give it to the client of the store "
                "(its environment or configuration)"
            )
        try:
            from fsspec.core import url_to_fs

            self._files, self._path = url_to_fs(url)
        except ImportError as error:
            raise InputError(
                f"{url}: {error}; URLs need more: pip install 'mechdesign[urls]'"
            ) from None
        except ValueError as error:
            raise InputError(
                f"{url} is not a URL that can be reached: {error}"
            ) from None
        self.place: str = self._files.unstrip_protocol(self._path)

    @contextmanager
    def _errors(self, done: str) -> Generator[None]:
        """Tell what the store refuses; every one has errors of its own."""
        try:
            yield
        except FileNotFoundError:
            what = "place to write to" if done == "written" else "file"
            more = (
                "; folders and globs at URLs are not looked into"
                if "*" in self.url
                else ""
            )
            raise InputError(f"{self.url}: there is no such {what}{more}") from None
        except FileExistsError:
            raise InputError(EXISTS.format(self.url)) from None
        except InputError:
            raise
        except Exception as error:
            why = " ".join(str(error).split()) or type(error).__name__
            raise InputError(f"{self.url} cannot be {done}: {why}") from error

    def _state(self) -> dict[str, Any]:
        """What the store says of the file now: its size, and what changes with it."""
        self._files.invalidate_cache()
        found: dict[str, Any] = self._files.info(self._path)
        if found["type"] == "directory":
            raise InputError(
                f"{self.url} is a folder; of URLs, single files are read and written: name one"
            )
        return found

    def blocks(self) -> Iterator[bytes]:
        """The content, which has been the same one from the first block to the last."""
        with self._errors("read"):
            state, size = self._state(), 0
            with self._files.open(self._path, "rb") as stream:
                while block := stream.read(BLOCK):
                    size += len(block)
                    yield block
            if self._state() != state or size != state["size"]:
                raise InputError(
                    f"{self.url} changed while it was read; start again when it is complete"
                )

    def holds(self, sha256: str | None) -> bool:
        """Whether the file is there, with these bytes."""
        digest = hashlib.sha256()
        with suppress(InputError):
            for block in self.blocks():
                digest.update(block)
            return digest.hexdigest() == sha256
        return False

    def check_free(self, *, force: bool) -> None:
        """Refuse a place to write to before any work is done."""
        if (scheme := self.url.partition(":")[0].lower()) not in PUBLISHING:
            raise InputError(
                f"{self.url}: {scheme}:// is read only, for half a file could be seen there; write to one of "
                f"{', '.join(f'{each}://' for each in PUBLISHING)}, or to a file that you copy there"
            )
        with self._errors("written"), suppress(FileNotFoundError):
            if self.url.endswith("/"):
                raise InputError(f"{self.url} is a folder; give the name of a file")
            self._state()
            if not force:
                raise InputError(EXISTS.format(self.url))

    def publish(self, content: Path, *, force: bool) -> None:
        """Write the file: what ends this early leaves what was there, or all of the new content."""
        with self._errors("written"), open(content, "rb") as source:
            # An error closes the file, too: only in a transaction that does not publish it.
            with (
                self._files.transaction,
                self._files.open(self._path, "wb" if force else "xb") as sink,
            ):
                shutil.copyfileobj(source, sink, BLOCK)
            if (size := self._state()["size"]) != source.tell():
                raise OSError(f"the store has {size:,} bytes of {source.tell():,}")
