"""Checking, reading and replacing files: a file is replaced whole or not at all.

A rename within a folder is atomic, so at every moment the target is the old file or the new one.
`replacing` writes small files in these steps:

1. Make a temporary file beside the target, ``.out.csv.<random>.part`` for out.csv; the caller fills
   it.
2. Flush it to disk.
3. Rename it, or, if no file may be replaced, link it to the new name, which fails if the name is
   taken.
4. Flush the folder too, because the name is an entry of it.

Jobs, which can be resumed, take the same steps with a temporary file that the next run finds
(`part_file`). Before either, `check_target` refuses what cannot succeed.

*Locks* are advisory ones of the operating system; they vanish when their holder dies. A lock
belongs to an open descriptor, so a process that is killed cannot leave one behind. Jobs lock the
temporary file that they write, or a marker in their folder, so that of two jobs with one target the
second is refused.

`open_locked` takes four steps:

1. Open the file without following links, or create it (`_open_own_file`).
2. Refuse all but an ordinary file of this user (`_fault_of`): in a folder that others can write to,
   nothing of theirs is locked or truncated.
3. Lock the descriptor without waiting (`_lock`). If another process has the lock, that is an error.
4. Look the name up again. If it belongs to another file by now, start again: a process A may rename
   its file and end just after B opened it, and B would then hold the lock of a file whose name a
   third process could take.

*Nameless files* leave nothing behind, however the program ends. Records that are not released yet
may wait in such files, so they must not survive a killed program. A file lives as long as it has a
name or an open descriptor. On Linux a `NamelessFile` has no name: it is opened with O_TMPFILE, or
created and unlinked at once where the file system has no O_TMPFILE. Its `path` is then
``/proc/self/fd/7``, say, through which this process can open it again and again. The system frees
its space when the descriptor is closed, also by a kill.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
import sys
import tempfile
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager, suppress
from glob import glob, has_magic
from pathlib import Path
from typing import TypeGuard, cast

from mechdesign.core.errors import FileError, InputError, StartAgain

# -------------------------------------------------------------------------------- locks

HELD = frozenset({errno.EAGAIN, errno.EACCES, errno.EDEADLK})
"""Error numbers by which the systems report that another process holds the lock."""

if sys.platform == "win32":
    import msvcrt

    OPEN_FLAGS = os.O_RDWR | os.O_CREAT | os.O_BINARY

    _BEYOND = 1 << 40
    """Offset of the locked byte.

    Windows bars others from locked bytes, so it lies beyond every file.
    """

    def _lock(descriptor: int) -> None:
        # `locking` locks from the position of the descriptor on.
        os.lseek(descriptor, _BEYOND, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        os.lseek(descriptor, 0, os.SEEK_SET)

else:
    import fcntl

    # A link or a pipe of another user under this name could redirect or block the output. With
    # O_NONBLOCK a pipe without a reader is opened, or refused, at once.
    OPEN_FLAGS = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def reason(error: OSError) -> str:
    """Why the operating system refused, in lower case."""
    return (error.strerror or type(error).__name__).lower()


def open_locked(path: Path, *, busy: str) -> int:
    """Open a file for writing and lock it until its descriptor is closed.

    The file is created if it does not exist; its content stays.

    Parameters
    ----------
    path : Path
        The file.
    busy : str
        The message of the `StartAgain` if another process holds the lock.
    """
    # The lock belongs to the file, not to its name, and its previous holder may have renamed or
    # removed the file. So the name is looked up again under the lock. A turn that fails closes its
    # descriptor, and the lock with it.
    while True:
        with ExitStack() as resources:
            descriptor = _open_own_file(path)
            resources.callback(os.close, descriptor)
            try:
                _lock(descriptor)
            except OSError as error:
                if error.errno in HELD:
                    raise StartAgain(busy) from None
                raise FileError(
                    str(path),
                    f"{path} cannot be locked ({reason(error)}); choose a folder on a local disk",
                ) from None
            with suppress(FileNotFoundError):
                named = os.stat(path, follow_symlinks=False)
                if os.path.samestat(named, os.fstat(descriptor)):
                    resources.pop_all()
                    return descriptor


def _open_own_file(path: Path) -> int:
    """Open an ordinary file of this user, and nothing that another user may have put there."""
    name = str(path)
    try:
        descriptor = os.open(path, OPEN_FLAGS, 0o666)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO, errno.EISDIR):
            raise FileError(
                name, f"{name} is not an ordinary file; remove it"
            ) from None
        raise
    fault = _fault_of(os.fstat(descriptor))
    if fault:
        os.close(descriptor)
        raise FileError(name, f"{name} {fault}; remove it")
    return descriptor


def _fault_of(status: os.stat_result) -> str | None:
    """Why an open file must not be written to, if it must not."""
    # With a second name (hard link) it may be a file that somebody uses elsewhere.
    if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
        return "is not an ordinary file"
    if sys.platform != "win32" and status.st_uid != os.geteuid():
        return "belongs to another user"
    return None


# ----------------------------------------------------------------------- nameless files

MODE = 0o600
"""Permissions of private files: their owner alone may read and write them."""

DESCRIPTORS = Path("/proc/self/fd")
"""Where Linux lets a process open its open files again, by path and from their beginning."""


class NamelessFile:
    """A temporary file that only this process can reach, through `path`.

    The path works with everything that takes paths. Systems other than Linux have no such paths:
    there the file has an unpredictable name, only its owner may open it, and `close` removes it,
    but a killed program leaves it behind.

    Without a `folder` the file is in the system's folder of temporary files.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._name: Path | None = None
        self._descriptor = -1
        # Some containers do not mount /proc.
        if sys.platform == "linux" and DESCRIPTORS.is_dir():
            self._descriptor = _open_without_name(folder)
            self.path = DESCRIPTORS / str(self._descriptor)
        else:
            self._descriptor, self._name = _open_with_name(folder)
            self.path = self._name

    def close(self) -> None:
        """Free the disk space; a second call does nothing."""
        # Before the name: Windows removes no open file.
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
        if self._name is not None:
            self._name.unlink(missing_ok=True)
            self._name = None


def _open_with_name(folder: Path | None) -> tuple[int, Path]:
    # `mkstemp` chooses a name that cannot be guessed, and gives the file the same `MODE`.
    descriptor, name = tempfile.mkstemp(".part", ".mechdesign-", folder)
    return descriptor, Path(name)


if sys.platform == "linux":

    def _open_without_name(folder: Path | None) -> int:
        with suppress(OSError):
            flags = os.O_TMPFILE | os.O_RDWR
            return os.open(folder or tempfile.gettempdir(), flags, MODE)
        # The file system makes no files without names. A program that is killed between these
        # two calls leaves an empty file.
        descriptor, path = _open_with_name(folder)
        path.unlink()
        return descriptor


# ---------------------------------------------------------------------------- replacing

# ------------------------------------------------------------------------------ undoing


@contextmanager
def on_failure(undo: Callable[[], object]) -> Generator[None]:
    """Call `undo` if an exception ends the block, an interruption included."""
    with ExitStack() as stack:
        stack.callback(undo)
        yield
        # Completed: the callback is taken off the stack and never called.
        stack.pop_all()


# -------------------------------------------------------------------------------- files

PathLike = str | os.PathLike[str]

EXISTS = "{} exists; choose another name, or overwrite it with force (--force)"

EXISTS_OVERWRITE = (
    "{} exists; choose another name, or replace it with overwrite=True (--force)"
)
"""The same of functions whose argument is `overwrite`."""

PARQUET_SUFFIXES = (".parquet", ".pq")

LONGEST_NAME = 255
"""Bytes of a file name that the usual file systems allow."""


STANDARD = "-"
"""Standard input in the place of an input's path, standard output in that of an output's."""

_LOCAL = re.compile(r"(?:file|local)://(.*)", re.IGNORECASE | re.DOTALL)

_URL = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)


def text_of(path: object) -> str:
    """A path as text, which reports, manifests and ledgers can repeat."""
    if not isinstance(path, str | os.PathLike):
        raise InputError(
            f"the path of a file must be a text or a path, not {type(path).__name__}"
        )
    text = os.fspath(cast("PathLike", path))
    try:
        text.encode()
    except UnicodeEncodeError:
        # Python keeps foreign bytes of a name as lone surrogates; the message shows them as \xNN.
        shown = os.fsencode(text).decode(errors="backslashreplace")
        raise InputError(
            f"the name of the file {shown} is not UTF-8 text, so that no report or manifest can "
            "name it; rename the file"
        ) from None
    return text


@contextmanager
def read_errors(name: str) -> Generator[None]:
    """Turn refusals of the operating system to open or read the file `name` into `FileError`."""
    try:
        yield
    except FileNotFoundError:
        if has_magic(name) and glob(name, recursive=True):
            message = f"{name} is a pattern, and one file is read here: name it"
            raise FileError(name, message) from None
        raise FileError(name, f"{name}: there is no such file") from None
    except IsADirectoryError:
        raise FileError(
            name, f"{name} is a folder, not a file: name one of its files"
        ) from None
    except OSError as error:
        raise FileError(name, f"{name} cannot be read: {reason(error)}") from None


def check_target(
    target: PathLike,
    *,
    force: bool,
    sources: tuple[PathLike, ...] = (),
    exists: str = EXISTS,
) -> None:
    """Refuse an unusable target before any work is done.

    Parameters
    ----------
    target : path
        The file that will be written.
    force : bool
        Whether an existing file may be replaced.
    sources : tuple of paths
        Inputs, none of which may be the target.
    exists : str
        The message about an existing file; ``{}`` stands for its name.
    """
    # The most specific reason comes first: a folder exists, too, and is no ordinary file.
    name = text_of(target)
    path = Path(name)
    if path.is_dir():
        raise FileError(name, f"{name} is a folder; give the name of a file")
    if path.exists() and not path.is_file():
        raise FileError(name, f"{name} is no ordinary file; give the name of a file")
    for source in sources:
        if path.exists() and Path(source).exists() and path.samefile(source):
            raise InputError(f"{name} is the input file itself; write to another file")
    if path.exists() and not force:
        raise FileError(name, exists.format(name))
    if not path.parent.is_dir():
        raise FileError(
            name,
            f"{name} cannot be written: there is no folder {str(path.parent)!r}",
        )
    if not os.access(path.parent, os.W_OK):
        raise FileError(
            name,
            f"{name} cannot be written: the folder {str(path.parent)!r} is not writable",
        )


@contextmanager
def replacing(
    target: PathLike, *, force: bool, exists: str = EXISTS
) -> Generator[Path]:
    """Yield a temporary path in the folder of `target`, and rename it at the end.

    On any exception the temporary file is removed and `target` stays as it was. The data are on
    disk before the rename, so a crash leaves the old file or the new one. A file that is replaced
    keeps its permissions, and a link stays one: the file that it leads to is written. `exists` is
    the message if another program has written the target meanwhile.

    The temporary file has one name for each target, is locked, and can be read by its owner alone.
    So what a killed run leaves behind shows nothing to others, and the next run takes it over.
    """
    path = real_path(target)
    name = os.fspath(target)
    temporary = part_file(path)
    busy = f"another job is writing {name}; wait until it has finished"
    try:
        _remove_second_name(temporary, path)
        descriptor = open_locked(temporary, busy=busy)
    except OSError as error:
        raise FileError(name, f"{name} cannot be written: {reason(error)}") from error
    is_renamed = False
    try:
        if sys.platform == "win32":
            # Windows opens no file twice that is locked, so nothing is held there.
            os.close(descriptor)
        else:
            set_mode(descriptor, 0o600)
            os.ftruncate(descriptor, 0)
        yield temporary
        with open(temporary, "rb+") as stream:
            os.fsync(stream.fileno())
        set_mode(temporary, 0o666 & ~_umask())
        # Linking refuses an existing name; renaming replaces it.
        if force or not _link_new_name(temporary, path, name, exists):
            keep_mode(temporary, path)
            os.replace(temporary, path)
            is_renamed = True
        sync_folder(path.parent)
    except OSError as error:
        raise FileError(name, f"{name} cannot be written: {reason(error)}") from error
    finally:
        # After a rename the name may be that of another run's file.
        if not is_renamed:
            temporary.unlink(missing_ok=True)
        if sys.platform != "win32":
            os.close(descriptor)


def _remove_second_name(temporary: Path, path: Path) -> None:
    """Remove the temporary name of a finished file, which a run that was killed has left."""
    with suppress(FileNotFoundError):
        if temporary.samefile(path):
            temporary.unlink()


def _umask() -> int:
    """The permissions that new files do not get."""
    # It can only be read by setting it. A file that another thread makes in between gets fewer.
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _link_new_name(temporary: Path, path: Path, name: str, exists: str) -> bool:
    """Give a file a name that no other file has, in one atomic step; `name` is that in messages.

    A check followed by a rename would overwrite a file that another program creates in between.
    Returns False where the file system has no hard links.
    """
    try:
        os.link(temporary, path)
    except OSError as error:
        # Some file systems report that links are not supported before that the name is taken.
        if isinstance(error, FileExistsError) or path.exists():
            raise FileError(name, exists.format(name)) from None
        return False
    return True


def set_mode(file: int | Path, mode: int) -> None:
    """Give a file its permissions, where its file system keeps any.

    FAT and mounted disks of Windows refuse them: there one setting decides for all files.
    """
    try:
        os.chmod(file, mode)
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.ENOTSUP):
            raise


def keep_mode(new: Path, old: Path) -> None:
    """Give `new` the permissions of `old`, which it is about to replace, if `old` exists."""
    try:
        mode = stat.S_IMODE(old.stat().st_mode)
    except FileNotFoundError:
        return
    if mode != stat.S_IMODE(new.stat().st_mode):
        set_mode(new, mode)


def sync_folder(folder: Path) -> None:
    """Flush the names in `folder` to disk, where the system supports that."""
    if os.name == "nt":  # Windows does not open folders
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some network and user-space file systems do not support this.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)


def part_file(path: Path) -> Path:
    """The temporary file of a target.

    It depends on the target's name alone, so that the next run finds what this one left.
    """
    return _hidden_beside(path, ".part")


def _hidden_beside(path: Path, suffix: str) -> Path:
    """A hidden file in the same folder whose name shows the target's where that fits."""
    name = f".{path.name}{suffix}"
    # A hash is as short for every target, and as different from those of others.
    if len(os.fsencode(name)) > LONGEST_NAME:
        digest = hashlib.sha256(os.fsencode(path.name)).hexdigest()
        name = f".{digest}{suffix}"
    return path.with_name(name)


def local(path: PathLike) -> PathLike:
    """The path of a ``file://`` URL, in which, as in fsspec, no character is encoded.

    Other paths stay as they are.
    """
    if not isinstance(path, str):
        return path
    match = _LOCAL.fullmatch(path)
    return path if match is None else match[1]


def is_url(path: PathLike) -> TypeGuard[str]:
    """Whether a file is at a URL other than ``file://``."""
    if not isinstance(path, str) or _URL.match(path) is None:
        return False
    return _LOCAL.fullmatch(path) is None


def real_path(path: PathLike) -> Path:
    """The path without links, so that one file has one temporary file and one entry in a job."""
    return Path(os.path.realpath(path))


def sha256_of(path: PathLike) -> str:
    """SHA-256 of a file's bytes, in hexadecimal digits."""
    with open(path, "rb", buffering=0) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def has_sha256(path: PathLike, sha256: str | None) -> bool:
    """Whether the file exists and has this hash."""
    try:
        return sha256_of(path) == sha256
    except OSError:
        return False
