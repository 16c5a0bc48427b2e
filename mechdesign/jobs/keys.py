"""Keys as users hold them: in a key file, an environment variable or an open descriptor.

Without its key a ledger cannot give a record its old draw, and whoever has the key can undo
releases. So a key file is never lost and never read by others. `create_key` writes one line, `TAG`
and 64 hexadecimal digits, to ``.NAME.part``, which its owner alone can read; syncs it; renames it;
and syncs the folder. `read_key` refuses a file that others can read. No message repeats what a file
or variable holds.

From elsewhere `key_from` takes a key by its place: ``env:NAME`` is a variable, ``fd:3`` an open
descriptor, anything else a key file.

From a key follow others by names: `key_of_draw` gives those of further draws, and `check_of` a
fingerprint that discloses nothing.

*The key of a release without a job.* A draw is a function of key, channel, column and record.
`key_in_options` takes the key itself, that of a key file, the one that a seed gives, or a new one
that nobody keeps. One channel may be applied to two columns of a table with one key; they must not
get the same random numbers. So where a column has another name in the table than in the channel,
`key_for_columns` derives a key from the names. A channel for ``job``, for example, is applied to
``job`` with the key itself, and to ``old_job`` with the key that is derived from it by that name.
"""

from __future__ import annotations

import os
import re
import stat
import sys
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

from mechdesign.core.errors import InputError
from mechdesign.core.files import MODE, PathLike, read_errors, reason, sync_folder
from mechdesign.jobs.options import ReleaseOptions
from mechdesign.release.drawing import key_of
from mechdesign.release.draws import KEY_BYTES, Key

TAG = "mechdesign-key-1:"
"""The beginning of a key file; the key follows in hexadecimal digits."""

DESCRIPTOR = "fd:"
"""What a place begins with that is an open file descriptor."""

_LINE = re.compile(rf"{TAG}([0-9a-f]{{{2 * KEY_BYTES}}})\n?")

_LARGEST = 4096
"""Bytes that are read of a key file; a key has fewer."""

_HEX = re.compile(rf"(?:{TAG})?([0-9a-f]{{{2 * KEY_BYTES}}})\s*")
"""A key from elsewhere than a key file: its line, or the digits alone."""

FEWEST_BYTES = 16
"""Different bytes of a random key, at least: fewer have a probability of C(256, 15) (15/256)^32,
which is below 1e-15.
"""

FEWEST_STEPS = 4
"""Differences of neighbouring bytes that a pattern has at most. Of the 31 of a random key as few
would be different with a probability below 1e-45.
"""

_SECRET = re.compile(r"[\w+/=:\s-]{22,}")
"""A text that may be a key in place of a path: 16 bytes or more as hexadecimal digits or in base
64.
"""


def create_key(path: PathLike, key: Key) -> None:
    """Write a key file, complete or not at all, and on disk when this returns.

    Raises InputError if it exists (a key is never replaced), or cannot be written. Two processes
    that create the same file must exclude each other.
    """
    target = Path(path)
    part = target.with_name(f".{target.name}.part")
    try:
        if os.path.lexists(target):
            raise InputError(
                f"the key file {target} exists, and a key is never overwritten"
            )
        # A killed process may have left one, with a key that nobody used.
        part.unlink(missing_ok=True)
        descriptor = os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, MODE)
        try:
            with open(descriptor, "w", encoding="ascii", newline="\n") as out:
                # Whatever the user's umask: it could close the file to its owner as well.
                if sys.platform != "win32":
                    os.fchmod(out.fileno(), MODE)
                out.write(f"{TAG}{key.secret.hex()}\n")
                # First the bytes, then the name: an empty key file would be a lost key.
                out.flush()
                os.fsync(out.fileno())
            part.rename(target)
        finally:
            part.unlink(missing_ok=True)
        sync_folder(target.parent)
    except OSError as error:
        raise InputError(
            f"the key file {target} cannot be written: {reason(error)}"
        ) from None


def read_key(path: PathLike) -> Key:
    """Read a key file.

    Raises InputError if it is missing, no ordinary file, readable by others than its owner, or
    holds no key; no message repeats what it holds.
    """
    name = f"the key file {os.fspath(path)}"
    # A pipe under this name must not make the job wait for somebody to write to it.
    flags = os.O_RDONLY
    if sys.platform != "win32":
        flags |= os.O_NONBLOCK
    with (
        read_errors(name),
        open(path, "rb", opener=lambda file, _: os.open(file, flags)) as stream,
    ):
        mode = os.fstat(stream.fileno()).st_mode
        if not stat.S_ISREG(mode):
            raise InputError(f"{name} is no ordinary file")
        # Windows keeps permissions in access lists, of which the mode shows next to nothing.
        if sys.platform != "win32" and mode & 0o077:
            raise InputError(
                f"{name} can be read by others (mode {stat.S_IMODE(mode):04o}), who could undo the "
                f"release; close it: chmod 600 {os.fspath(path)}"
            )
        content = stream.read(_LARGEST)
    line = _LINE.fullmatch(content.decode("latin-1"))
    if line is None:
        raise InputError(
            f"{name} holds no key of this version ({TAG} and {2 * KEY_BYTES} hex digits)"
        )
    return _random_key(line[1], name)


def key_at(path: PathLike) -> Key:
    """Read a key file; refuses a key that is given in place of its path, without repeating it."""
    if _SECRET.fullmatch(os.fspath(path)) and not os.path.lexists(path):
        raise InputError(
            "the key is the name of no file; if it is the key itself, which no message repeats, "
            "give it as Key(bytes.fromhex(..)) or write it to a file (create_key)"
        )
    return read_key(path)


def key_from(where: str) -> Key:
    """The key at ``env:NAME``, ``fd:N`` (an open file descriptor) or in a key file; no message
    repeats it.
    """
    kind, colon, name = where.partition(":")
    if not colon or kind not in ("env", "fd"):
        return key_at(where)
    if kind == "env":
        text = _of_environment(where, name)
    else:
        text = _of_descriptor(where, name)
    return _parsed(where, text)


@contextmanager
def read_once(where: str | None) -> Generator[str | None]:
    """A place of the same key that several releases can read, within the block: a descriptor of a
    pipe gives its key only once.
    """
    if where is None or not where.startswith(DESCRIPTOR):
        yield where
        return
    text = _of_descriptor(where, where.removeprefix(DESCRIPTOR))
    with tempfile.TemporaryFile() as spool:
        spool.write(text.encode("latin-1"))
        spool.flush()
        yield f"{DESCRIPTOR}{spool.fileno()}"


def _parsed(where: str, text: str) -> Key:
    """The key in a text that came from `where`."""
    digits = _HEX.fullmatch(text)
    if digits is None:
        raise InputError(
            f"--key-from {where} gives no key ({2 * KEY_BYTES} hexadecimal digits, lower case)"
        )
    return _random_key(digits[1], f"--key-from {where}")


def _random_key(digits: str, name: str) -> Key:
    """The key of hexadecimal digits, unless they follow a pattern that somebody could guess."""
    secret = bytes.fromhex(digits)
    steps = {(second - first) % 256 for first, second in pairwise(secret)}
    # A run of letters or numbers, in the digits or in the bytes, has steps of one or two kinds.
    if len({*secret}) < FEWEST_BYTES or len(steps) <= FEWEST_STEPS:
        raise InputError(
            f"{name} gives a key with a pattern, which can be guessed, and so can be what was "
            "released with it: make a random one (openssl rand -hex 32)"
        )
    return Key(secret)


def _of_environment(where: str, name: str) -> str:
    """The text of the environment variable with this name; `where` is for the message."""
    if name not in os.environ:
        raise InputError(f"--key-from {where}: there is no environment variable {name}")
    return os.environ[name]


def _of_descriptor(where: str, number: str) -> str:
    """The text that an open descriptor gives; `where` is for the message."""
    try:
        with open(int(number), "rb", closefd=False) as stream:
            # Two releases may read one descriptor of a file, each from its beginning.
            if stream.seekable():
                stream.seek(0)
            return stream.read(_LARGEST).decode("latin-1")
    except (ValueError, OSError):
        raise InputError(
            f"--key-from {where}: there is no open file descriptor to read from"
        ) from None


def check_of(key: Key) -> str:
    """A fingerprint of a key, which discloses nothing of the key."""
    return key.derived("job file", "check").secret.hex()[:32]


def key_of_draw(key: Key, draw: int) -> Key:
    """The key of a draw: the first draw (0) has the key of the job, further ones have keys
    derived from it.
    """
    if draw == 0:
        return key
    return key.derived("draw", str(draw))


# ---------------------------------------------------------------------- keys of options


def key_in_options(options: ReleaseOptions) -> tuple[Key, bool]:
    """The key of a release without a job, and whether nothing fixes it: nobody keeps it then."""
    key = options.key
    if isinstance(key, (str, os.PathLike)):
        key = key_at(key)
    keyless = key is None and options.insecure_seed is None and options.ledger is None
    return key_of(key, options.insecure_seed), keyless


def key_for_columns(key: Key, columns: Sequence[str], options: ReleaseOptions) -> Key:
    """The key of a channel whose columns may have other names in the table."""
    named: list[Any] = [options.renamed.get(name, name) for name in columns]
    # Under the channel's own names the column is in the channel.
    if named == list(columns):
        return key
    # In a ledger a job has a key, and one column for each channel. Seeds draw for tests, where
    # names do not matter.
    if options.ledger is not None or options.insecure_seed is not None:
        return key
    labels: list[str] = []
    for name in named:
        # The number 1 and the text "1" can name two columns of a frame.
        labels += ["text" if isinstance(name, str) else "other", str(name)]
    return key.derived("columns", *labels)
