"""Advisory locks of the operating system on files; they vanish when their holder dies.

A lock belongs to an open descriptor, so a process that is killed cannot leave one behind. Jobs lock
the temporary file that they write, or a marker in their folder, so that of two jobs with one target
the second is refused.

`open_locked` takes four steps:

1. Open the file without following links, or create it (`_open_own_file`).
2. Refuse all but an ordinary file of this user (`_fault_of`): in a folder that others can write to,
   nothing of theirs is locked or truncated.
3. Lock the descriptor without waiting (`_lock`). If another process has the lock, that is an error.
4. Look the name up again. If it belongs to another file by now, start again: a process A may rename
   its file and end just after B opened it, and B would then hold the lock of a file whose name a
   third process could take.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from contextlib import ExitStack, suppress
from pathlib import Path

from mechdesign.core.errors import FileError, StartAgain

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
