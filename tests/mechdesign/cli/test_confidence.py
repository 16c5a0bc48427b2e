"""`design --confidence`, what it writes, and what `audit` makes of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mechdesign.cli import main

COUNTS = "s,a,b,c,d\nx,900,700,300,100\ny,500,800,200,150\nz,400,300,350,60\n"
BASE = ["--contingency", "--useful", "letter", "--notion", "lip", "--epsilon", "0.5"]


@pytest.fixture
def table(tmp_path: Path) -> str:
    path = tmp_path / "counts.csv"
    path.write_text(COUNTS)
    return str(path)


def _json(capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    return json.loads(capsys.readouterr().out)


def test_designed_audited_and_said(table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    channel = str(tmp_path / "c.json")
    assert (
        main(["design", table, *BASE, "--confidence", "0.9", "--output", channel, "--json", "--gap", "1e-3"])
        == 0
    )
    designed = _json(capsys)
    assert designed["confidence"] == 0.9
    population = designed["population"]
    assert isinstance(population, dict)
    assert population["level"] == 0.9
    assert population["eps_u"] <= 0.5
    assert population["eps_l"] <= 0.5
    assert main(["audit", channel, "--json"]) == 0
    audited = _json(capsys)
    assert audited["satisfied"] is True
    assert audited["population"] == population
    assert main(["audit", channel]) == 0
    assert "with 90 % confidence" in " ".join(capsys.readouterr().out.split())
    assert main(["audit", channel, "--notion", "lip", "--epsilon", "0.49", "--json"]) == 1
    assert _json(capsys)["satisfied"] is False


def test_fewer_records_break_the_promise(
    table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The audit computes the set of the table given, not that of the file."""
    channel = str(tmp_path / "c.json")
    assert main(["design", table, *BASE, "--confidence", "0.95", "--output", channel, "--gap", "1e-3"]) == 0
    few = tmp_path / "few.csv"
    few.write_text("s,a,b,c,d\nx,90,70,30,10\ny,50,80,20,15\nz,40,30,35,6\n")
    assert main(["audit", channel, "--table", str(few), "--contingency", "--useful", "letter"]) == 1
    assert "VIOLATED" in capsys.readouterr().out


def test_a_plain_design_says_two_numbers_for_the_population(
    table: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["design", table, *BASE]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "with 95 % confidence: at most" in said
    assert "The largest comes from the output" in said
    assert main(["design", table, *BASE, "--json"]) == 0
    record = _json(capsys)
    assert record["confidence"] is None
    assert isinstance(record["population"], dict)
    assert record["population"]["eps_u"] > 0.5


def test_probabilities_have_no_population(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "p.csv"
    path.write_text("s,a,b\nx,0.25,0.25\ny,0.2,0.3\n")
    base = ["design", str(path), "--probabilities", "--useful", "letter", "--epsilon", "1"]
    assert main([*base, "--json"]) == 0
    assert _json(capsys)["population"] is None
    assert main([*base, "--confidence", "0.95"]) == 2
    assert "confidence needs counts of records" in " ".join(capsys.readouterr().err.split())


def test_known_shares_come_from_a_file(
    table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shares, channel = tmp_path / "shares.csv", str(tmp_path / "c.json")
    shares.write_text("symbol,share\nx,0.45\ny,0.35\nz,0.2\n")
    arguments = ["--confidence", "0.95", "--known-shares", str(shares), "--gap", "1e-3"]
    assert main(["design", table, *BASE, *arguments, "--output", channel]) == 0
    assert "their shares as given" in " ".join(capsys.readouterr().out.split())
    assert main(["audit", channel, "--json"]) == 0


@pytest.mark.parametrize(
    ("arguments", "shares", "message"),
    [
        (["--confidence", "1"], None, "must be a number from 0.5"),
        (["--confidence", "much"], None, "--confidence ('much') must be a number from 0.5"),
        ([], "symbol,share\nx,1\n", "--known-shares needs --confidence"),
        (["--confidence", "0.9"], "symbol;share\n", "must begin with the header symbol,share"),
        (["--confidence", "0.9"], "symbol,share\nx,0.5,1\n", "row 2: 3 cells, not a symbol and its share"),
        (["--confidence", "0.9"], "symbol,share\nx,0.5\nx,0.5\n", "the share of 'x' is given twice"),
        (["--confidence", "0.9"], "symbol,share\nx,0.5\ny,0.2\nz,0.2\n", "shares sum to 0.9 and not to 1"),
        (["--confidence", "0.9"], "symbol,share\nq,1\n", "which the table has no records of"),
        (["--confidence", "0.9"], "symbol,share\nx,1\n", "shares do not name 'y', 'z'"),
    ],
)
def test_bad_input_exits_2(
    table: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    shares: str | None,
    message: str,
) -> None:
    if shares is not None:
        path = tmp_path / "shares.csv"
        path.write_text(shares)
        arguments = [*arguments, "--known-shares", str(path)]
    assert main(["design", table, *BASE, *arguments]) == 2
    assert message in " ".join(capsys.readouterr().err.split())


def test_a_missing_file_of_shares_is_named(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["design", table, *BASE, "--confidence", "0.9", "--known-shares", "nowhere.csv"]) == 2
    assert "nowhere.csv cannot be read as a CSV file of shares" in " ".join(capsys.readouterr().err.split())
