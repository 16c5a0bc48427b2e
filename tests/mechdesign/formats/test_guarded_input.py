from __future__ import annotations

import hashlib
import io
import os
import re
import sys
import threading
from pathlib import Path

import pytest

from mechdesign.core import files as nameless
from mechdesign.core.errors import FileError, InputError
from mechdesign.formats import inputs
from mechdesign.formats.inputs import GuardedInput
from mechdesign.formats.urls import BLOCK
from tests.cases.growth import calls_of

posix = pytest.mark.skipif(sys.platform == "win32", reason="POSIX pipes and links")

DATA = bytes(range(256)) * (BLOCK // 256) + b"a bit more than a block"


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "in.csv"
    path.write_bytes(DATA)
    return path


@pytest.fixture
def stdin(monkeypatch):
    def feed(data: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))

    return feed


def assert_refused(message: str, *arguments, **options) -> None:
    with pytest.raises(InputError, match=message) as caught:
        GuardedInput(*arguments, **options)
    assert "\n" not in str(caught.value)


def test_the_hash_of_a_file(path):
    told = []
    with GuardedInput(
        path, progress=lambda done, total: told.append((done, total))
    ) as source:
        assert source.path.read_bytes() == DATA
        source.check()
    assert source.sha256 == hashlib.sha256(DATA).hexdigest()
    assert (source.size, source.name) == (len(DATA), os.fspath(path))
    assert told == [(BLOCK, len(DATA)), (len(DATA), len(DATA))]


def test_standard_input_is_read_as_often_as_needed(stdin, tmp_path):
    stdin(DATA)
    with GuardedInput("-", spool=tmp_path) as source:
        assert (source.name, source.size) == ("standard input", len(DATA))
        assert source.sha256 == hashlib.sha256(DATA).hexdigest()
        assert source.path.read_bytes() == source.path.read_bytes() == DATA
        source.check()
        if sys.platform == "linux":
            assert list(tmp_path.iterdir()) == []
    assert list(tmp_path.iterdir()) == []


def test_where_files_need_names(stdin, tmp_path, monkeypatch):
    monkeypatch.setattr(nameless, "DESCRIPTORS", tmp_path / "none")
    stdin(DATA)
    with GuardedInput("-", spool=tmp_path) as source:
        assert [source.path] == list(tmp_path.iterdir())
        assert source.path.read_bytes() == DATA
        if sys.platform != "win32":
            assert source.path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(
    sys.platform != "linux", reason="files without names are those of Linux"
)
def test_a_disk_that_makes_no_files_without_names(stdin, tmp_path, monkeypatch):
    real = os.open

    def none_of_these(path, flags, *rest, **options):
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(95, "Operation not supported")
        return real(path, flags, *rest, **options)

    monkeypatch.setattr(os, "open", none_of_these)
    stdin(DATA)
    with GuardedInput("-", spool=tmp_path) as source:
        assert list(tmp_path.iterdir()) == []
        assert source.path.read_bytes() == DATA


@posix
def test_a_pipe(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(DATA,))
    writer.start()
    with GuardedInput(pipe, spool=tmp_path) as source:
        assert source.path.read_bytes() == DATA
    writer.join()
    assert source.sha256 == hashlib.sha256(DATA).hexdigest()
    assert list(tmp_path.iterdir()) == [pipe]


def append(path: Path) -> None:
    with open(path, "ab") as stream:
        stream.write(b"one more")


def overwrite(path: Path) -> None:
    with open(path, "rb+") as stream:
        stream.write(b"x")


def replace(path: Path) -> None:
    stat = path.stat()
    path.with_name("new").write_bytes(DATA)
    os.utime(path.with_name("new"), ns=(stat.st_atime_ns, stat.st_mtime_ns))
    os.replace(path.with_name("new"), path)


def hide(path: Path) -> None:
    """Other content, with the old time of change put back."""
    stat = path.stat()
    overwrite(path)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


@pytest.mark.parametrize("change", [append, overwrite, replace, hide, Path.unlink])
def test_an_input_that_changes(path, change):
    if change is hide and sys.platform == "win32":
        pytest.skip("Windows keeps no time of the last change of status")
    with GuardedInput(path) as source:
        source.check()
        change(path)
        with pytest.raises(
            InputError,
            match=r"in\.csv changed while it was read, and nothing was written; start",
        ):
            source.check()


def test_an_input_that_grows_while_it_is_hashed(path):
    """Reading to the end would never end."""
    with pytest.raises(InputError, match="changed while it was read"):
        GuardedInput(path, progress=lambda _done, _total: append(path))


def failing(path: Path, error: InputError, change=None) -> None:
    with GuardedInput(path):
        if change is not None:
            change(path)
        raise error


def test_what_is_wrong_with_an_input_that_changes_is_that_it_changes(path):
    short_row = FileError(str(path), f"{path}, line 7: the row has 1 cell")
    with pytest.raises(InputError, match="line 7: the row has 1 cell"):
        failing(path, short_row)
    for other in (
        FileError("out.csv", "out.csv cannot be written"),
        InputError(f"{path} is the input file itself"),
    ):
        with pytest.raises(InputError, match=re.escape(str(other))):
            failing(path, other, append)
    with pytest.raises(InputError, match="changed while it was read"):
        failing(path, short_row, append)


def test_reading_is_no_change(path):
    with GuardedInput(path) as source:
        os.utime(
            path, ns=(0, path.stat().st_mtime_ns)
        ) if sys.platform == "win32" else path.read_bytes()
        source.check()
    assert source.sha256 == hashlib.sha256(DATA).hexdigest()


def test_what_cannot_be_read(tmp_path, stdin):
    assert_refused("none.csv: there is no such file", tmp_path / "none.csv")
    assert_refused(
        r"is a folder, not a file|cannot be read: permission denied", tmp_path
    )
    (tmp_path / "one.csv").write_text("a\n")
    pattern = tmp_path / "*.csv"
    assert_refused(r"\*\.csv is a pattern, and one file is read here: name it", pattern)
    assert_refused(r"\*\.txt: there is no such file", tmp_path / "*.txt")
    stdin(b"data")
    assert_refused(
        "standard input cannot be copied to .*none: no such file or directory",
        "-",
        spool=tmp_path / "none",
    )


def test_a_disk_that_does_not_give_it_back(path, monkeypatch):
    def broken(*_arguments, **_options):
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr("builtins.open", broken)
        with pytest.raises(
            InputError, match=r"in\.csv cannot be read: input/output error"
        ):
            GuardedInput(path)


def test_no_room_for_a_copy(stdin, tmp_path, monkeypatch):
    def full(*_arguments):
        raise OSError(28, "No space left on device")

    stdin(b"data")
    opened = open

    class Full(io.FileIO):
        write = full

    monkeypatch.setattr(
        "builtins.open",
        lambda f, mode="r", **kw: (
            Full(f, mode) if mode == "wb" else opened(f, mode, **kw)
        ),
    )
    assert_refused(
        f"standard input cannot be copied to {tmp_path}: no space left on device",
        "-",
        spool=tmp_path,
    )
    monkeypatch.undo()
    assert list(tmp_path.iterdir()) == []


def test_a_standard_input_that_is_closed(monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(
        InputError, match="standard input is closed; open it, or name a file"
    ):
        GuardedInput("-")


def test_a_file_that_was_written_costs_the_same_among_many(tmp_path):
    """A folder of many files is written file by file, and each is forgotten by its name."""
    written = tmp_path / "out.csv"
    written.write_text("a\n1\n")
    calls = []
    with inputs.inputs_held():
        for size in (100, 1_000):
            for number in range(size):
                inputs._held.states[f"/data/{number}.csv"] = (1,)
            inputs._held.states[str(written)] = (1,)
            calls.append(calls_of(lambda: inputs.forget_state(written)))
            assert str(written) not in inputs._held.states
        assert len(inputs._held.states) == 1_000
        # Of a folder all files are forgotten.
        inputs._held.states[str(written)] = (1,)
        inputs.forget_state(tmp_path)
        assert str(written) not in inputs._held.states
    assert calls[1] == calls[0]
