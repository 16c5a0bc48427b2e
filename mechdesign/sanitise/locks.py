"""Files that one process at a time holds open: advisory locks of the operating system, gone when the holder dies."""

from __future__ import annotations

import errno
import os
import stat
import sys
import time
from pathlib import Path

from mechdesign.errors import InputError
from mechdesign.files import reason

POLL = 0.02
"""Seconds between two attempts at a lock; its holder keeps a job file for a few milliseconds."""

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


def open_locked(path: Path, *, busy: str, wait: float = 0.0, mode: int = 0o666) -> int:
    """Open `path` for writing, made if it is not there, and lock it until the descriptor is closed.

    The lock belongs to the file and not to its name: whoever had it before may have renamed or removed the file
    meanwhile. So the name is looked up again under the lock, and all is repeated if it is another file by now.
    What the file held stays in it.

    Parameters
    ----------
    path : Path
    busy : str
        The message if another process has the lock.
    wait : float
        Seconds to wait for it.
    mode : int
        Permissions of a new file, less the mask of the process.

    Raises
    ------
    InputError
        With `busy`; or if something that is no ordinary file of this user has the name; or if the file system
        knows no locks.
    OSError
        If the file cannot be opened.
    """
    deadline = time.monotonic() + wait
    while True:
        descriptor = _opened(path, mode)
        try:
            if _try(descriptor, path):
                if _is_still(path, descriptor):
                    return descriptor
            elif time.monotonic() >= deadline:
                raise InputError(busy)
            else:
                time.sleep(POLL)
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _opened(path: Path, mode: int) -> int:
    # Somebody else's link, pipe or file under this name could lead the output elsewhere.
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        descriptor = os.open(path, flags | getattr(os, "O_BINARY", 0), mode)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO, errno.EISDIR):
            raise InputError(f"{path} is in the way, and is no ordinary file; remove it") from None
        raise
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
        os.close(descriptor)
        raise InputError(f"{path} is in the way, and is no ordinary file; remove it")
    if sys.platform != "win32" and status.st_uid != os.geteuid():
        os.close(descriptor)
        raise InputError(f"{path} is in the way, and belongs to another user; remove it")
    return descriptor


def _try(descriptor: int, path: Path) -> bool:
    try:
        _lock(descriptor)
    except OSError as error:
        if error.errno in HELD:
            return False
        raise InputError(
            f"{path} cannot be locked ({reason(error)}); choose a folder on a local disk"
        ) from None
    return True


def _is_still(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.stat(path, follow_symlinks=False), os.fstat(descriptor))
    except FileNotFoundError:
        return False
