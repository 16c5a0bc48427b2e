"""Listed values without records, in a release of boxes: refused with the remedy, or covered."""

from __future__ import annotations

from pathlib import Path

import pytest

RECORDS = "s,x,n\na,p,300\na,q,200\na,r,100\nb,p,100\nb,q,300\nb,r,150\n"

BUDGET = ("--notion", "lip", "--epsilon", "0.5", "--confidence", "0.95")

RELEASES = [("--release", "x"), ("--useful", "x", "--merge-rare", "50")]


@pytest.fixture
def asked(folder):
    Path("t.csv").write_text(RECORDS, encoding="utf-8")
    Path("empty.csv").write_text(RECORDS + "c,p,0\n", encoding="utf-8")
    for name, values in (("all", "abc"), ("both", "ab"), ("one", "a")):
        text = "\n".join(["s", *values]) + "\n"
        Path(f"{name}.csv").write_text(text, encoding="utf-8")
    Path("symbols.csv").write_text("x\np\nq\nr\nt\n", encoding="utf-8")
    return ("--weight", "n", "--sensitive", "s", *BUDGET)


@pytest.mark.parametrize("release", RELEASES)
def test_values_without_records_are_refused_by_table_and_by_list(asked, run, release):
    refused = run("design", "empty.csv", *asked, *release)
    assert refused.code == 2
    assert "names 'c', which the table has no records of" in refused.err
    assert "join it with a value that has records" in refused.err
    listed = run("design", "t.csv", *asked, *release, "--secrets", "all.csv")
    assert listed.code == 2
    assert "all.csv: the list of sensitive values names 'c'" in listed.err
    short = run("design", "t.csv", *asked, *release, "--secrets", "one.csv")
    assert short.code == 2
    assert "does not list 'b'" in short.err


@pytest.mark.parametrize("release", RELEASES)
def test_a_complete_list_is_taken_and_symbols_need_none(asked, run, release):
    done = run("design", "t.csv", *asked, *release, "--secrets", "both.csv")
    assert done.code == 0
    assert "Sensitive values of which the table has no record" in done.out
    symbols = run("design", "t.csv", *asked, *release, "--symbols", "symbols.csv")
    assert symbols.code == 2
    assert "--symbols is not built for boxes" in symbols.err
    Path("shares.csv").write_text("symbol,share\na,0.5\nb,0.5\n", encoding="utf-8")
    shares = run("design", "t.csv", *asked, *release, "--known-shares", "shares.csv")
    assert shares.code == 2
    assert "--known-shares is not built for boxes" in shares.err
