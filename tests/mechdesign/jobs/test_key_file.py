from __future__ import annotations

import hashlib
import os
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechdesign.core.errors import InputError
from mechdesign.jobs import keys
from mechdesign.jobs.keys import TAG, create_key, key_at, key_from, read_key
from mechdesign.release.draws import Key
from tests.profiles import scaled

posix = pytest.mark.skipif(
    sys.platform == "win32", reason="Windows keeps permissions in access lists"
)


def assert_refused(path, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        read_key(path)
    assert "\n" not in str(caught.value)


@pytest.fixture
def key() -> Key:
    return Key.fresh()


@pytest.fixture
def path(tmp_path, key):
    create_key(tmp_path / "job.key", key)
    return tmp_path / "job.key"


def test_what_is_written_is_read(path, key):
    assert read_key(path) == key
    assert path.read_text() == f"{TAG}{key.secret.hex()}\n"
    assert [p.name for p in path.parent.iterdir()] == ["job.key"]


@posix
@pytest.mark.parametrize("mask", [0o000, 0o022, 0o777])
def test_only_the_owner_can_read_it_whatever_the_mask(tmp_path, key, mask):
    before = os.umask(mask)
    try:
        create_key(tmp_path / "job.key", key)
    finally:
        os.umask(before)
    assert (tmp_path / "job.key").stat().st_mode & 0o7777 == 0o600


@posix
@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o660, 0o610])
def test_a_key_that_others_can_read_is_refused(path, mode):
    path.chmod(mode)
    assert_refused(
        path, rf"can be read by others \(mode {mode:04o}\), .*: chmod 600 {path}$"
    )


@posix
def test_the_owner_may_protect_it_from_himself(path, key):
    path.chmod(0o400)
    assert read_key(path) == key


def test_a_key_is_never_overwritten(path, key):
    with pytest.raises(InputError, match="a key is never overwritten"):
        create_key(path, Key.fresh())
    assert read_key(path) == key


def test_a_dangling_link_is_not_overwritten_either(tmp_path, key):
    (tmp_path / "job.key").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="never overwritten"):
        create_key(tmp_path / "job.key", key)
    assert not (tmp_path / "elsewhere").exists()


def test_a_link_to_a_key_is_followed(path, key, tmp_path):
    (tmp_path / "link.key").symlink_to(path)
    assert read_key(tmp_path / "link.key") == key


def test_what_a_killed_process_left_is_replaced(tmp_path, key):
    (tmp_path / ".job.key.part").write_text(TAG)
    create_key(tmp_path / "job.key", key)
    assert read_key(tmp_path / "job.key") == key
    assert not (tmp_path / ".job.key.part").exists()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        TAG,
        f"{TAG}{'0' * 63}\n",
        f"{TAG}{'0' * 65}\n",
        f"{TAG}{'G' * 64}\n",
        "0" * 64,
        "é" * 9,
        f"{TAG}{'A' * 64}",
    ],
)
def test_other_content_is_refused_and_not_repeated(path, text):
    path.write_text(text)
    assert_refused(path, "holds no key of this version")
    with pytest.raises(InputError) as caught:
        read_key(path)
    assert "000" not in str(caught.value)
    assert "é" not in str(caught.value)


def test_what_is_no_key_file(tmp_path):
    assert_refused(
        tmp_path / "none.key", "the key file .*none.key: there is no such file"
    )
    assert_refused(tmp_path, "is a folder|cannot be read: permission denied")


def test_a_disk_that_does_not_give_it_back(path, monkeypatch):
    def broken(*_arguments):
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr("mechdesign.jobs.keys.os.open", broken)
        assert_refused(path, "cannot be read: input/output error")


@posix
def test_a_pipe_does_not_make_it_wait(tmp_path):
    os.mkfifo(tmp_path / "pipe.key", 0o600)
    assert_refused(tmp_path / "pipe.key", "is no ordinary file")


def test_a_place_that_refuses(tmp_path, key):
    with pytest.raises(
        InputError, match="cannot be written: no such file or directory"
    ):
        create_key(tmp_path / "none" / "job.key", key)


def test_a_full_disk_leaves_nothing(tmp_path, key, monkeypatch):
    def full(_descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("mechdesign.jobs.keys.os.fsync", full)
    with pytest.raises(
        InputError, match="cannot be written: no space left on device"
    ) as caught:
        create_key(tmp_path / "job.key", key)
    assert list(tmp_path.iterdir()) == []
    assert key.secret.hex() not in str(caught.value)


@pytest.mark.parametrize(
    "written", [bytes(range(32)).hex(), "ABEiM0RVZneImaq7zN3u/w==", f"{TAG}{'ab' * 32}"]
)
def test_a_key_in_the_place_of_its_file_is_not_repeated(written):
    with pytest.raises(InputError, match="is the name of no file") as caught:
        key_at(written)
    assert written not in str(caught.value)


def test_a_file_with_a_name_like_a_key_is_read(tmp_path, monkeypatch, key):
    monkeypatch.chdir(tmp_path)
    create_key("k" * 64, key)
    assert key_at("k" * 64) == key


PATTERNS = {
    "zeros": bytes(32),
    "one byte": b"\x5f" * 32,
    "few bytes": bytes([1, 2, 3, 4] * 8),
    "counted up": bytes(range(32)),
    "counted down": bytes(range(64, 32, -1)),
    "digits counted up": bytes.fromhex("0123456789abcdef" * 4),
    "a word": (b"secret password " * 2),
}


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_key_that_can_be_guessed_is_refused(tmp_path, monkeypatch, pattern):
    digits = PATTERNS[pattern].hex()
    monkeypatch.setenv("WEAK", digits)
    with pytest.raises(InputError, match=r"env:WEAK gives a key with a pattern"):
        key_from("env:WEAK")
    create_key(tmp_path / "weak.key", Key(PATTERNS[pattern]))
    with pytest.raises(
        InputError, match=r"weak\.key gives a key with a pattern"
    ) as error:
        key_from(str(tmp_path / "weak.key"))
    assert digits not in str(error.value)


@given(st.binary(min_size=32, max_size=32))
@settings(max_examples=scaled(20))
def test_a_random_key_is_none(seed):
    digits = hashlib.sha256(seed).hexdigest()
    assert keys._random_key(digits, "the key").secret.hex() == digits
