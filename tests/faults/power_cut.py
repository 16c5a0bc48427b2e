"""What of a database survives a power cut: a layer below SQLite that records what reaches the disk, and when.

A `Recorder` stands between SQLite and its usual layer for files (its VFS). Everything is written as
ever, and noted. From the notes `states_after` makes the files as a power cut at any moment could
leave them: of writes that were not synced each sector is there or not, and the name of a file, and
its removal, may be lost until the folder was synced.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import os
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SECTOR = 512
"""Bytes that a disk writes whole or not at all."""

POINTER = ctypes.c_void_p
# The name stays a pointer: SQLite keeps it, and reads more behind it.
OPEN = ctypes.CFUNCTYPE(ctypes.c_int, POINTER, POINTER, POINTER, ctypes.c_int, POINTER)
DELETE = ctypes.CFUNCTYPE(ctypes.c_int, POINTER, ctypes.c_char_p, ctypes.c_int)
WRITE = ctypes.CFUNCTYPE(
    ctypes.c_int, POINTER, POINTER, ctypes.c_int, ctypes.c_longlong
)
TRUNCATE = ctypes.CFUNCTYPE(ctypes.c_int, POINTER, ctypes.c_longlong)
SYNC = ctypes.CFUNCTYPE(ctypes.c_int, POINTER, ctypes.c_int)


class Vfs(ctypes.Structure):
    """``sqlite3_vfs``, version 3."""

    _fields_ = [
        ("version", ctypes.c_int),
        ("file_size", ctypes.c_int),
        ("longest_path", ctypes.c_int),
        ("next", POINTER),
        ("name", ctypes.c_char_p),
        ("data", POINTER),
        ("open", OPEN),
        ("delete", DELETE),
        ("others", POINTER * 14),
    ]


class Methods(ctypes.Structure):
    """``sqlite3_io_methods``, version 3."""

    _fields_ = [
        ("version", ctypes.c_int),
        ("close", POINTER),
        ("read", POINTER),
        ("write", WRITE),
        ("truncate", TRUNCATE),
        ("sync", SYNC),
        ("others", POINTER * 13),
    ]


@dataclass(frozen=True)
class Step:
    """One thing that happened: write, truncate, sync, delete (`where` is 1 if the folder is synced
    then), or a mark of the test.
    """

    kind: str
    path: str
    where: int = 0
    data: bytes = b""


def sqlite_library() -> Any | None:
    """The library that Python's own module uses, where it is a library of its own."""
    try:
        return ctypes.CDLL("libsqlite3.so.0")
    except OSError:
        return None


class Recorder:
    """Records the steps of all databases that are opened within its block."""

    def __init__(self, library: Any) -> None:
        self.steps: list[Step] = []
        self._library = library
        library.sqlite3_vfs_find.restype = POINTER
        library.sqlite3_vfs_find.argtypes = [ctypes.c_char_p]
        library.sqlite3_vfs_register.argtypes = [POINTER, ctypes.c_int]
        library.sqlite3_vfs_unregister.argtypes = [POINTER]
        self._usual = library.sqlite3_vfs_find(None)
        usual = Vfs.from_address(self._usual)
        self._open = usual.open
        self._delete = usual.delete
        self._vfs = Vfs()
        ctypes.memmove(ctypes.byref(self._vfs), ctypes.byref(usual), ctypes.sizeof(Vfs))
        self._vfs.name = b"recorder"
        # Everything that SQLite points to has to stay.
        self._callbacks = (OPEN(self._opened), DELETE(self._deleted))
        self._vfs.open, self._vfs.delete = self._callbacks
        self._methods: list[Any] = []
        self._paths: dict[int, str] = {}

    def __enter__(self) -> Recorder:
        self._library.sqlite3_vfs_register(ctypes.byref(self._vfs), 1)
        return self

    def __exit__(self, *raised: object) -> None:
        self._library.sqlite3_vfs_unregister(ctypes.byref(self._vfs))
        self._library.sqlite3_vfs_register(self._usual, 1)

    def mark(self, text: str) -> None:
        """Note that the program has got so far."""
        self.steps.append(Step("mark", text))

    def _opened(self, vfs, name, file, flags, out) -> int:
        code = self._open(self._usual, name, file, flags, out)
        methods_at = ctypes.cast(file, ctypes.POINTER(POINTER))
        if code or name is None or not methods_at[0]:
            return code
        usual = Methods.from_address(methods_at[0])
        methods = Methods()
        ctypes.memmove(
            ctypes.byref(methods), ctypes.byref(usual), ctypes.sizeof(Methods)
        )
        self._paths[file] = os.fsdecode(ctypes.string_at(name))
        callbacks = (
            WRITE(self._writing(usual.write)),
            TRUNCATE(self._truncating(usual.truncate)),
            SYNC(self._syncing(usual.sync)),
        )
        methods.write, methods.truncate, methods.sync = callbacks
        self._methods.append((methods, callbacks))
        methods_at[0] = ctypes.addressof(methods)
        return code

    def _writing(self, usual):
        def write(file, data, size, offset) -> int:
            self.steps.append(
                Step("write", self._paths[file], offset, ctypes.string_at(data, size))
            )
            return usual(file, data, size, offset)

        return write

    def _truncating(self, usual):
        def truncate(file, size) -> int:
            self.steps.append(Step("truncate", self._paths[file], size))
            return usual(file, size)

        return truncate

    def _syncing(self, usual):
        def sync(file, flags) -> int:
            code = usual(file, flags)
            self.steps.append(Step("sync", self._paths[file]))
            return code

        return sync

    def _deleted(self, vfs, name, sync_folder) -> int:
        path = os.fsdecode(name)
        there = Path(path).exists()
        code = self._delete(self._usual, name, sync_folder)
        if there:
            self.steps.append(Step("delete", path, int(bool(sync_folder))))
        return code


Files = dict[str, bytes]


def states_after(
    before: Files, steps: Sequence[Step], rng: random.Random
) -> Iterator[Files]:
    """The files as a power cut after these steps could leave them: with nothing that was not synced,
    with all of it, and with some.
    """
    for keep in (lambda: False, lambda: True, lambda: rng.random() < 0.5):
        yield _state(before, steps, keep)


def _state(before: Files, steps: Sequence[Step], keep) -> Files:
    disk = dict(before)
    waiting: dict[str, list[Step]] = {}
    written: dict[str, bytearray] = {
        name: bytearray(data) for name, data in before.items()
    }
    for step in steps:
        if step.kind in ("write", "truncate"):
            waiting.setdefault(step.path, []).append(step)
            _apply(written.setdefault(step.path, bytearray()), step)
        elif step.kind == "sync":
            waiting.pop(step.path, None)
            disk[step.path] = bytes(written.setdefault(step.path, bytearray()))
        elif step.kind == "delete":
            waiting.pop(step.path, None)
            written.pop(step.path, None)
            if step.where or keep():
                disk.pop(step.path, None)
    for path, changes in waiting.items():
        if path not in disk and not keep():
            # The name of a new file is lost with it.
            continue
        data = bytearray(disk.get(path, b""))
        for step in changes:
            for part in _sectors(step):
                if keep():
                    _apply(data, part)
        disk[path] = bytes(data)
    return disk


def _sectors(step: Step) -> Iterator[Step]:
    """A write in the pieces that a disk writes whole."""
    if step.kind == "truncate":
        yield step
        return
    for start in range(0, len(step.data), SECTOR):
        data = step.data[start : start + SECTOR]
        yield Step("write", step.path, step.where + start, data)


def _apply(data: bytearray, step: Step) -> None:
    if step.kind == "truncate":
        del data[step.where :]
        return
    end = step.where + len(step.data)
    if len(data) < end:
        data.extend(bytes(end - len(data)))
    data[step.where : end] = step.data
