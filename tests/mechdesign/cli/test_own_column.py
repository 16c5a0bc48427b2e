"""`--sensitive A --useful A`: the released column itself is protected, from design to check."""

import csv
import secrets
from random import Random

import pytest

from mechdesign.cli import main

JOBS = ["clerk"] * 40 + ["nurse"] * 25 + ["cook"] * 20 + ["mason"] * 15
Random(5).shuffle(JOBS)


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "t.csv"
    lines = [f"{k},{job}" for k, job in enumerate(JOBS)]
    path.write_text("\n".join(["id,job", *lines, ""]))
    return str(path)


@pytest.fixture
def key(tmp_path):
    path = tmp_path / "key"
    path.write_text(f"mechdesign-key-1:{secrets.token_hex(32)}\n")
    path.chmod(0o600)
    ledger = str(tmp_path / "ledger")
    return ["--key-from", str(path), "--ledger", ledger]


@pytest.fixture
def channel(table, tmp_path):
    path = str(tmp_path / "c.json")
    line = ["--sensitive", "job", "--useful", "job", "--notion", "ldp"]
    assert main(["design", table, *line, "--epsilon", "1", "--output", path]) == 0
    return path


def test_the_release_takes_the_place_of_the_column(
    table, key, channel, tmp_path, capsys
):
    assert main(["audit", channel, "--table", table]) == 0
    out = str(tmp_path / "out.csv")
    assert main(["apply", channel, table, out, "--keep", "id", *key]) == 0
    with open(out, newline="") as stream:
        header, *rows = csv.reader(stream)
    assert header == ["id", "job"]
    assert not {cell for _, cell in rows} & set(JOBS)
    assert main(["check", out, "--channel", channel, "--original", table]) == 0
    capsys.readouterr()
    assert main(["estimate", out, "--channel", channel]) == 0
    assert "clerk" in capsys.readouterr().out


def test_the_column_does_not_stay_beside_its_release(
    table, key, channel, tmp_path, capsys
):
    out = str(tmp_path / "out.csv")
    line = ["apply", channel, table, out, "--keep", "all", "--add", "new", *key]
    assert main(line) == 2
    assert "the sensitive column 'job' would stay" in capsys.readouterr().err
    assert main([*line, "--drop", "job"]) == 0


def test_most_records_unchanged_under_the_same_promise(table, tmp_path, capsys):
    """Truth keeps what generalised randomised response keeps, or more."""
    path = str(tmp_path / "c.json")
    line = ["--sensitive", "job", "--useful", "job", "--notion", "ldp"]
    options = ["--epsilon", "1", "--objective", "truth", "--output", path]
    assert main(["design", table, *line, *options]) == 0
    assert "released with their own job" in " ".join(capsys.readouterr().out.split())
