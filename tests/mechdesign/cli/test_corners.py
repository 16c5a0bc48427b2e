"""Inputs at the ends of what can be asked: counts that no records have, targets, signals."""

from __future__ import annotations

import json

import pytest

SIZE = 10**60


@pytest.mark.parametrize("release", ["job", "job,town"])
def test_counts_that_no_records_have_are_weights(tmp_path, monkeypatch, run, release):
    monkeypatch.chdir(tmp_path)
    rows = ["job,town,income,n"]
    for at, cells in enumerate(("a,n,low", "b,n,high", "a,s,high", "b,s,low")):
        rows.append(f"{cells},{SIZE + at * 7 * SIZE // 11}")
    (tmp_path / "t.csv").write_text("\n".join(rows) + "\n")
    option = "--release" if "," in release else "--useful"
    command = ("design", "t.csv", "--weight", "n", "--sensitive", "income")
    options = (option, release, "--epsilon", "1", "--output", "c.json")
    design = run(*command, *options)
    assert design.code == 0
    assert "the counts sum to more than 1,000,000,000,000" in design.err
    assert json.loads((tmp_path / "c.json").read_text())["counts"] is False
    for verb in (
        ("audit", "c.json", "--all-measures"),
        ("show", "c.json"),
        ("report", "c.json", "--report", "r.html", "--public-report", "p.html"),
        ("report", "c.json", "--board", "b.html"),
    ):
        result = run(*verb)
        assert result.code == 0, (verb, result.err)
    refused = run(*command, *options, "--force", "--confidence", "0.95")
    assert refused.code == 2
    assert "counts of records" in refused.err
