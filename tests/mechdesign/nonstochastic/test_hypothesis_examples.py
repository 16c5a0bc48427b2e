"""The scripts of examples/nonstochastic run, and their tables say what
docs/explanation/corrections.md and the papers say.
"""

from __future__ import annotations

import csv
import importlib.util
import math
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[3] / "examples" / "nonstochastic"


def load(name):
    spec = importlib.util.spec_from_file_location(
        f"example_{name}", FOLDER / f"{name}.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_figures_of_the_hypothesis_testing_paper(tmp_path, capsys, monkeypatch):
    script = load("hypothesis_testing")
    monkeypatch.setattr(script, "find_spec", lambda name: None)
    tables = script.main(["--out", str(tmp_path)])
    printed = capsys.readouterr().out
    assert "(published -0.1251)" in printed
    for rho, published, proven, most, asymptote in tables["figure_4"][1]:
        assert proven <= published <= most
        assert published == pytest.approx(asymptote, rel=0.4 if rho < 0.1 else 0.02)
    for epsilon, published, corrected, attained in tables["figure_6"][1]:
        assert (
            published
            < attained
            == pytest.approx(corrected)
            == pytest.approx(math.log1p(1 / epsilon))
        )
    for _, epsilon, published, levels, differing in tables["figure_7"][1]:
        assert published < levels
        assert differing <= 2**epsilon
    for n, _, published, tight, *leaks in tables["figure_8"][1]:
        assert leaks[1] == pytest.approx(max(0, math.log(published / n)))
        assert leaks[0] < leaks[2]
        assert published < tight
    with (tmp_path / "figure_7.csv").open(newline="", encoding="utf-8") as stream:
        assert len(list(csv.reader(stream))) == 1 + len(tables["figure_7"][1])


def test_guessing_example():
    rows = load("guessing_leakage").rounding_table()
    for _, outputs, feature, whole, worst, identifiable, _ in rows:
        assert feature <= whole <= worst <= math.log2(4000)
        assert identifiable == pytest.approx(whole)
        assert outputs <= 4000


@pytest.mark.slow
def test_guessing_example_in_words(capsys):
    load("guessing_leakage").main()
    assert "together L* = 2.5850" in capsys.readouterr().out


def test_bmi_policy_on_the_survey(data, capsys, monkeypatch, tmp_path):
    script = load("bmi_policy")
    monkeypatch.setattr(script, "find_spec", lambda name: None)
    rows = script.main(["--out", str(tmp_path)])
    assert "980 of 1010 people" in capsys.readouterr().out
    survey = (data / "young-people" / "responses.csv").read_text(encoding="utf-8")
    people = [
        (float(r["Weight"]), float(r["Height"]))
        for r in csv.DictReader(survey.splitlines())
        if r["Weight"].strip() and r["Height"].strip()
    ]
    for row in rows:
        radius = 1 / row["rho"]
        margin = [w - 30 * (h / 100) ** 2 for w, h in people]
        near = [abs(m) <= radius for m in margin]
        sides = {}
        for (_, h), m, close in zip(people, margin, near, strict=True):
            if close:
                sides.setdefault(h, set()).add(m >= 0)
        hidden = sum(
            close and len(sides[h]) == 2
            for (_, h), close in zip(people, near, strict=True)
        )
        assert row["moved"] == sum(
            close and m != 0 for m, close in zip(margin, near, strict=True)
        )
        assert row["obese"] == sum(m >= 0 for m in margin) == 14
        assert row["people_hidden"] == hidden
        assert row["largest_move_kg"] <= radius
    assert (tmp_path / "bmi_policy.csv").exists()


def test_bmi_policy_says_what_it_needs(monkeypatch):
    monkeypatch.delenv("MECHDESIGN_DATA", raising=False)
    with pytest.raises(SystemExit, match="MECHDESIGN_DATA must name the folder"):
        load("bmi_policy").main([])
