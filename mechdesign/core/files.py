"""Opening files, replacing them whole or not at all, locking them, and temporary files without a name.

Nothing of a temporary file is left whatever ends the program; locks are advisory ones of the operating system, gone
when the holder dies.
"""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
import stat
import sys
import tempfile
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import cast

from mechdesign.core.errors import InputError

PathLike = str | os.PathLike[str]

EXISTS = "{} exists; choose another name, or overwrite it with force (--force)"

EXISTS_OVERWRITE = (
    "{} exists; choose another name, or replace it with overwrite=True (--force)"
)
"""The same of functions whose argument is `overwrite`."""

PARQUET_SUFFIXES = (".parquet", ".pq")


def reason(error: OSError) -> str:
    """Why the operating system refused, in lower case."""
    return (error.strerror or type(error).__name__).lower()


def text_of(path: object) -> str:
    """A path as text."""
    if not isinstance(path, str | os.PathLike):
        raise InputError(
            f"the path of a file must be a text or a path, not {type(path).__name__}"
        )
    return os.fspath(cast("PathLike", path))


@contextmanager
def reading(name: str) -> Generator[None]:
    """Tell what the operating system refuses while a file is opened or read."""
    try:
        yield
    except FileNotFoundError:
        raise InputError(f"{name}: there is no such file") from None
    except IsADirectoryError:
        raise InputError(f"{name} is a folder, not a file") from None
    except OSError as error:
        raise InputError(f"{name} cannot be read: {reason(error)}") from None


def check_target(
    target: PathLike,
    *,
    force: bool,
    sources: tuple[PathLike, ...] = (),
    exists: str = EXISTS,
) -> None:
    """Refuse a place to write to before any work is done; `exists` is the message about an existing file."""
    name = text_of(target)
    path = Path(name)
    if path.is_dir():
        raise InputError(f"{name} is a folder; give the name of a file")
    if path.exists() and not path.is_file():
        raise InputError(f"{name} is no ordinary file; give the name of a file")
    for source in sources:
        if path.exists() and Path(source).exists() and path.samefile(source):
            raise InputError(f"{name} is the input file itself; write to another file")
    if path.exists() and not force:
        raise InputError(exists.format(name))
    if not path.parent.is_dir():
        raise InputError(
            f"{name} cannot be written: there is no folder {str(path.parent)!r}"
        )
    if not os.access(path.parent, os.W_OK):
        raise InputError(
            f"{name} cannot be written: the folder {str(path.parent)!r} is not writable"
        )


@contextmanager
def replacing(
    target: PathLike, *, force: bool, exists: str = EXISTS
) -> Generator[Path]:
    """Give a temporary path in the folder of `target` to write to; rename it when all went well.

    On any exception the temporary file is removed and `target` stays as it was. The data are on disk before
    the rename, so a crash leaves the old file or the new one. A file that is replaced keeps its permissions.
    `exists` is the message if another program has written the target meanwhile.
    """
    path = Path(target)
    temporary = path.with_name(f".{path.name[:100]}.{secrets.token_hex(8)}.part")
    try:
        # Created here rather than by tempfile, so that the file gets the permissions that any new file gets.
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        yield temporary
        with open(temporary, "rb+") as stream:
            os.fsync(stream.fileno())
        if force or not _named(temporary, path, exists):
            keep_mode(temporary, path)
            os.replace(temporary, path)
        sync_folder(path.parent)
    except OSError as error:
        raise InputError(
            f"{os.fspath(target)} cannot be written: {reason(error)}"
        ) from error
    finally:
        temporary.unlink(missing_ok=True)


def _named(temporary: Path, path: Path, exists: str) -> bool:
    """Give a file a name that nothing has, in one step, for another program may want it too; False if none can."""
    try:
        os.link(temporary, path)
    except OSError as error:
        if isinstance(error, FileExistsError) or path.exists():
            raise InputError(exists.format(os.fspath(path))) from None
        return False
    return True


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


MODE = 0o600

DESCRIPTORS = Path("/proc/self/fd")
"""Where Linux lets open files be opened once more, by path and from their beginning."""


class NamelessFile:
    """A file that only this process can reach, to be written and read through `path` by anything that takes paths.

    Where the system knows no such paths (not Linux) the file has a name that nobody guesses, is for its owner only,
    and is removed by `close`; a killed program leaves it behind.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._name: str | None = None
        self._descriptor = -1
        if sys.platform == "linux" and DESCRIPTORS.is_dir():
            # Not every file system makes files without names; then a killed program may leave an empty one.
            with suppress(OSError):
                self._descriptor = os.open(
                    folder or tempfile.gettempdir(), os.O_TMPFILE | os.O_RDWR, MODE
                )
            if self._descriptor < 0:
                self._descriptor, name = tempfile.mkstemp(
                    ".part", ".mechdesign-", folder
                )
                os.unlink(name)
            self.path = DESCRIPTORS / str(self._descriptor)
        else:
            self._descriptor, self._name = tempfile.mkstemp(
                ".part", ".mechdesign-", folder
            )
            self.path = Path(self._name)

    def close(self) -> None:
        """Give the space back."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
        if self._name is not None:
            Path(self._name).unlink(missing_ok=True)
            self._name = None


HELD = frozenset({errno.EAGAIN, errno.EACCES, errno.EDEADLK})
"""What the systems say when somebody else has the lock."""

if sys.platform == "win32":
    import msvcrt

    _BEYOND = 1 << 40
    """Locks of Windows keep others from reading and writing the locked bytes, so a byte beyond every file is taken."""

    def _lock(descriptor: int) -> None:
        os.lseek(descriptor, _BEYOND, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        os.lseek(descriptor, 0, os.SEEK_SET)

else:
    import fcntl

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def open_locked(path: Path, *, busy: str) -> int:
    """Open `path` for writing, made if it is not there, and lock it until the descriptor is closed.

    The lock belongs to the file and not to its name: whoever had it before may have renamed or removed the file
    meanwhile. So the name is looked up again under the lock, and all is repeated if it is another file by now.
    What the file held stays in it.
    """
    while True:
        with ExitStack() as opened:
            descriptor = _opened(path)
            opened.callback(os.close, descriptor)
            try:
                _lock(descriptor)
            except OSError as error:
                why = f"{path} cannot be locked ({reason(error)}); choose a folder on a local disk"
                raise InputError(busy if error.errno in HELD else why) from None
            with suppress(FileNotFoundError):
                if os.path.samestat(
                    os.stat(path, follow_symlinks=False), os.fstat(descriptor)
                ):
                    opened.pop_all()
                    return descriptor


def _opened(path: Path) -> int:
    # Somebody else's link, pipe or file under this name could lead the output elsewhere.
    flags = (
        os.O_RDWR
        | os.O_CREAT
        | getattr(os, "O_NOFOLLOW", 0)
        | getattr(os, "O_NONBLOCK", 0)
    )
    try:
        descriptor = os.open(path, flags | getattr(os, "O_BINARY", 0), 0o666)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO, errno.EISDIR):
            raise InputError(f"{path} is not an ordinary file; remove it") from None
        raise
    status, wrong = os.fstat(descriptor), None
    if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
        wrong = "is not an ordinary file"
    elif sys.platform != "win32" and status.st_uid != os.geteuid():
        wrong = "belongs to another user"
    if wrong:
        os.close(descriptor)
        raise InputError(f"{path} {wrong}; remove it")
    return descriptor
