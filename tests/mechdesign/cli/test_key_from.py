"""`--key-from`: the ledger's key from an environment variable, a file descriptor or a key file elsewhere."""

from __future__ import annotations

import hashlib
import os

import pytest

from mechdesign import create_key
from mechdesign.release.draws import Key

SECRET, OTHER = (hashlib.sha256(name).hexdigest() for name in (b"one", b"other"))


@pytest.fixture
def people(folder):
    (folder / "in.csv").write_text(
        "id,job\n"
        + "".join(f"{i},{['clerk', 'smith'][i * i % 7 % 2]}\n" for i in range(60))
    )
    return folder


def test_the_key_stays_where_it_is(channel, people, run, refused, monkeypatch):
    monkeypatch.setenv("RELEASES", SECRET)
    asked = (
        "apply",
        channel,
        "in.csv",
        "out.csv",
        "--ledger",
        "l.db",
        "--key-from",
        "env:RELEASES",
    )
    assert "Nothing" not in run(*asked, "--dry-run").err
    assert not (people / "l.db").exists()
    assert run(*asked).code == 0
    first = (people / "out.csv").read_bytes()
    assert not (people / "l.db.key").exists()
    assert "are complete already" in run(*asked).out
    monkeypatch.delenv("RELEASES")
    create_key("elsewhere.key", Key(bytes.fromhex(SECRET)))
    elsewhere = ("--ledger", "l.db", "--key-from", "elsewhere.key")
    assert run("apply", channel, "in.csv", "again.csv", *elsewhere).code == 0
    assert (people / "again.csv").read_bytes() == first
    reading, writing = os.pipe()
    os.write(writing, f"{SECRET}\n".encode())
    os.close(writing)
    listed = run(
        "releases",
        "total",
        "in.csv",
        "--ledger",
        "l.db",
        "--key-from",
        f"fd:{reading}",
        "--json",
    )
    os.close(reading)
    assert (listed.record["draws"], listed.record["share"]) == (1, 1.0)
    assert "say where the key is (--key-from)" in refused(
        "releases", "--ledger", "l.db"
    )
    monkeypatch.setenv("RELEASES", OTHER)
    assert "the key of --key-from is not the one of the ledger" in refused(
        *asked, "--force"
    )


def test_folders_take_it_too(channel, people, run, monkeypatch):
    monkeypatch.setenv("RELEASES", SECRET)
    (people / "days").mkdir()
    (people / "in.csv").rename(people / "days" / "1.csv")
    asked = (
        "apply",
        channel,
        "days",
        "out",
        "--ledger",
        "l.db",
        "--key-from",
        "env:RELEASES",
    )
    assert run(*asked).code == 0
    assert not (people / "l.db.key").exists()
    assert "are complete already" in run(*asked).out


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("env:NONE", "--key-from env:NONE: there is no environment variable NONE"),
        (
            "env:SHORT",
            "--key-from env:SHORT gives no key (64 hexadecimal digits, lower case)",
        ),
        ("fd:x", "--key-from fd:x: there is no open file descriptor to read from"),
        ("fd:999", "--key-from fd:999: there is no open file descriptor to read from"),
        ("none.key", "the key file none.key: there is no such file"),
    ],
)
def test_bad_places(channel, people, refused, monkeypatch, where, words):
    monkeypatch.setenv("SHORT", "secret5f")
    said = refused(
        "apply", channel, "in.csv", "out.csv", "--ledger", "l.db", "--key-from", where
    )
    assert words in said
    assert "secret5f" not in said
    assert not (people / "out.csv").exists()
    assert not (people / "l.db").exists()


def test_it_needs_a_ledger(channel, people, refused, monkeypatch):
    monkeypatch.setenv("RELEASES", SECRET)
    asked = (
        "apply",
        channel,
        "in.csv",
        "out.csv",
        "--insecure-seed",
        "1",
        "--key-from",
        "env:RELEASES",
    )
    assert "--key-from is the key of a ledger: leave --insecure-seed out" in refused(
        *asked
    )
