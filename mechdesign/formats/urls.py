"""Files at URLs that fsspec can reach: they are read through a copy, and published whole.

``file://`` and ``local://`` URLs are plain paths (`core.files.local`); every other URL is a
`Remote`:

    file:///data/a.csv      the path /data/a.csv
    memory://a.csv          a `Remote`
    memory:///a.csv         the same file, so `place_of` gives one text for both

*Reading.* `Remote.blocks` asks the store for the state of the file (its size, and mostly
a time or a version), gives its bytes, and asks again: another state is a refusal. The reader copies
the blocks to disk (`inputs.OpenedFile`). The copy can be read again and cannot change meanwhile.

*Writing.* `Remote.check_free` refuses a target before any work. The output is made on disk, and
`Remote.publish` uploads it in a transaction of fsspec. The file appears when the store commits it,
all or nothing; its size is then compared with what was sent.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from mechdesign.core.errors import FileChanged, FileError, InputError
from mechdesign.core.files import (
    EXISTS,
    STANDARD,
    PathLike,
    is_url,
    local,
    real_path,
    text_of,
)

FRAME = "a data frame"
LAZY = "a lazy table"
"""Names of sources and targets that are no files, in the place of a path."""

BLOCK = 1 << 20
"""Bytes hashed or copied at a time."""

PUBLISHING = ("gcs", "gs", "memory", "s3", "s3a")
"""URL schemes of the stores that hold a file back until it is complete.

Others may show half of it.
"""

_PASSWORD = re.compile(r"\w+://[^/]*:[^/]*@")

_SIGNED = re.compile(
    r"[?&]([\w-]*(signature|token|secret|password|credential)|sig|key|api_?key|auth)=",
    re.IGNORECASE,
)
"""Parameters of addresses that let whoever has the address in."""


def place_of(path: PathLike) -> str:
    """One text for each file, whatever links or spellings lead to it.

    What is no file (standard input, a frame) keeps its name.
    """
    if os.fspath(path) in (STANDARD, FRAME, LAZY):
        return os.fspath(path)
    if is_url(path):
        return Remote(path).place
    return text_of(real_path(local(path)))


class Remote:
    """A file at a URL.

    Its `place` is one text for every spelling of the URL that fsspec takes for the same file.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        if _PASSWORD.match(url):
            raise InputError(
                "the URL holds a password, which would be kept where the URL is: give it to the "
                "client of the store (its environment or configuration)"
            )
        if _SIGNED.search(url):
            raise InputError(
                "the URL holds a signature, token or key, which would be kept where the URL is: "
                "fetch the file first (curl -o FILE URL), or give the client of the store its "
                "credentials"
            )
        try:
            from fsspec.core import url_to_fs

            self._files, self._path = url_to_fs(url)
        except ImportError as error:
            raise FileError(
                url, f"{url}: {error}; URLs need more: pip install 'mechdesign[urls]'"
            ) from None
        except ValueError as error:
            raise FileError(
                url, f"{url} is not a URL that can be reached: {error}"
            ) from None
        self.place: str = self._files.unstrip_protocol(self._path)

    @contextmanager
    def _errors(self, done: str) -> Generator[None]:
        """Raise the refusals of a store as `FileError`; `done` is 'read' or 'written'."""
        try:
            yield
        except FileNotFoundError:
            missing = "place to write to" if done == "written" else "file"
            hint = ""
            if "*" in self.url:
                hint = "; folders and globs at URLs are not looked into"
            raise FileError(
                self.url, f"{self.url}: there is no such {missing}{hint}"
            ) from None
        except FileExistsError:
            raise FileError(self.url, EXISTS.format(self.url)) from None
        except InputError:
            raise
        except Exception as error:
            # Every store has errors of its own.
            why = " ".join(str(error).split()) or type(error).__name__
            raise FileError(self.url, f"{self.url} cannot be {done}: {why}") from error

    def _state(self) -> dict[str, Any]:
        """The store's report on the file: its size, and what changes with its content."""
        # fsspec remembers listings, which may be out of date.
        self._files.invalidate_cache()
        state: dict[str, Any] = self._files.info(self._path)
        if state["type"] == "directory":
            raise FileError(
                self.url,
                f"{self.url} is a folder; of URLs, single files are read and written: name one",
            )
        return state

    def blocks(self) -> Iterator[bytes]:
        """The content in blocks; refused if it changes between the first one and the last."""
        with self._errors("read"):
            state = self._state()
            size = 0
            with self._files.open(self._path, "rb") as stream:
                while block := stream.read(BLOCK):
                    size += len(block)
                    yield block
            if self._state() != state or size != state["size"]:
                raise FileChanged(
                    self.url,
                    f"{self.url} changed while it was read; start again when it is complete",
                )

    def holds(self, sha256: str | None) -> bool:
        """Whether the file exists and has this hash."""
        digest = hashlib.sha256()
        # A file that cannot be read, or changes meanwhile, does not have the hash.
        with suppress(InputError):
            for block in self.blocks():
                digest.update(block)
            return digest.hexdigest() == sha256
        return False

    def check_free(self, *, force: bool) -> None:
        """Refuse an unusable target before any work is done."""
        scheme = self.url.partition(":")[0].lower()
        if scheme not in PUBLISHING:
            usable = ", ".join(f"{name}://" for name in PUBLISHING)
            raise FileError(
                self.url,
                f"{self.url}: {scheme}:// is read only, for half a file could be seen there; "
                f"write to one of {usable}, or to a file that you copy there",
            )
        with self._errors("written"), suppress(FileNotFoundError):
            if self.url.endswith("/"):
                raise FileError(
                    self.url, f"{self.url} is a folder; give the name of a file"
                )
            self._state()
            if not force:
                raise FileError(self.url, EXISTS.format(self.url))

    def publish(self, content: Path, *, force: bool) -> None:
        """Write the file: an early end leaves what was there, or all of the new content."""
        # The mode "x" lets the store refuse a file that has appeared since the check.
        mode = "wb" if force else "xb"
        with self._errors("written"), open(content, "rb") as source:
            # An exception closes the sink as well. Only the transaction keeps half a file from
            # being published then.
            with (
                self._files.transaction,
                self._files.open(self._path, mode) as sink,
            ):
                shutil.copyfileobj(source, sink, BLOCK)
            # Some stores report no error for an upload that was cut short.
            size = self._state()["size"]
            if size != source.tell():
                raise OSError(f"the store has {size:,} bytes of {source.tell():,}")
