"""The command `compare`: what it prints and writes, how it goes on, what it refuses."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path

import pytest

from mechdesign.mechanisms.request import MECHANISMS
from mechdesign.notions import NOTIONS
from tests.mechdesign.test_new_notion import CubeLift

MICRO = ("records.csv", "--sensitive", "group", "--useful", "job")
WIDE = ("counts.csv", "--contingency")
EXAMPLES = Path(__file__).parents[3] / "examples"
ADULT = str(EXAMPLES / "adult_relationship_by_occupation.csv")
MERGING = ("--mechanisms", "subset-merging,complete-merging")


def test_the_whole_of_it(folder, run):
    done = run(
        *(
            "compare",
            *MICRO,
            "--epsilons",
            "0.5:2:0.5",
            "--lams",
            "0.35,0.5",
            "--notions",
            "alip,ldp",
        ),
        *("--output", "o.csv", "--plot", "o.png", "--recommend"),
    )
    assert done.code == 0, done.err
    assert done.err == ""
    with open("o.csv", newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == len(MECHANISMS) * 3 * 4
    assert (folder / "o.png").read_bytes().startswith(b"\x89PNG")
    sections = done.out.split("\n\n")
    assert [
        s.splitlines()[0] for s in sections if not s.startswith("Falling curves")
    ] == [
        "How much of the information in the released column each mechanism keeps. A larger epsilon is a",
        "alip, lam 0.35: % of the information kept",
        "alip, lam 0.5: % of the information kept",
        "ldp: % of the information kept",
        "Recommended",
        "Beliefs, alip, lam 0.35: % before, lowest..highest after a release",
        "Beliefs, alip, lam 0.5: % before, lowest..highest after a release",
        "Beliefs, ldp: % before, lowest..highest after a release",
        "Written to o.csv and o.png.",
    ]
    optimum = [
        100 * float(row["nmi"])
        for row in rows
        if (row["mechanism"], row["lam"]) == ("optimal", "0.35")
    ]
    printed = [line.split() for line in sections[1].splitlines()[2:]]
    assert [float(cells[0]) for cells in printed] == [0.5, 1.0, 1.5, 2.0]
    assert [float(cells[1].rstrip("*")) for cells in printed] == [
        math.floor(10 * value) / 10 for value in optimum
    ]


def test_json_is_one_object_and_nothing_is_written(folder, run):
    before = set(folder.iterdir())
    done = run("compare", *WIDE, "--epsilons", "1:3:1", "--recommend", "--json")
    record = done.record
    assert set(record) == {
        "rows",
        "kept",
        "recommendations",
        "notices",
        "output",
        "plot",
        "seconds",
    }
    assert [row["mechanism"] for row in record["rows"]] == [
        m for m in MECHANISMS for _ in range(3)
    ]
    assert (record["output"], record["plot"], record["kept"]) == (None, None, 0)
    assert [found["notion"] for found in record["recommendations"]] == ["alip"]
    assert set(folder.iterdir()) == before


def test_infinities_are_texts_in_json_and_in_the_csv(folder, run):
    (folder / "zero.csv").write_text("g,x,y,z\na,4,0,2\nb,1,5,3\n", encoding="utf-8")
    options = (
        "zero.csv",
        "--contingency",
        "--epsilons",
        "5",
        "--notions",
        "max-lift",
        "--mechanisms",
        "optimal",
    )
    row = run("compare", *options, "--json", "--output", "o.csv").record["rows"][0]
    assert (row["eps_l"], row["min_log_lift"], row["lam"]) == ("inf", "-inf", None)
    with open("o.csv", newline="", encoding="utf-8") as stream:
        line = next(csv.DictReader(stream))
    assert (line["eps_l"], line["min_log_lift"], line["lam"], line["satisfied"]) == (
        "inf",
        "-inf",
        "",
        "true",
    )


def test_a_second_run_keeps_the_rows(folder, run):
    first = run("compare", *WIDE, *MERGING, "--epsilons", "1,2", "--output", "o.csv")
    assert first.code == 0, first.err
    again = run(
        "compare", *WIDE, *MERGING, "--epsilons", "1:3:1", "--output", "o.csv", "--json"
    ).record
    assert again["kept"] == 4
    assert len(again["rows"]) == 6
    text = run("compare", *WIDE, *MERGING, "--epsilons", "1", "--output", "o.csv").out
    assert "2 rows kept from an earlier run" in text


def test_workers_give_the_same_rows(folder, run):
    asked = ("compare", *WIDE, "--epsilons", "1,2,3", "--json")
    one = run(*asked).record["rows"]
    two = run(*asked, "--workers", "2").record["rows"]
    assert [{**row, "seconds": 0} for row in one] == [
        {**row, "seconds": 0} for row in two
    ]


def test_an_alpha_notion_needs_no_lam(folder, run):
    rows = run(
        "compare",
        *WIDE,
        *MERGING,
        "--epsilons",
        "1",
        "--notions",
        "l1,alpha:10",
        "--json",
    ).record["rows"]
    assert [(row["notion"], row["lam"]) for row in rows] == [
        ("l1", 0.5),
        ("alpha:10", 0.5),
    ] * 2


def test_rows_as_published_are_marked_where_they_violate(folder, run):
    options = (*WIDE, "--epsilons", "0.25:6:0.25", "--mechanisms", "complete-merging")
    repaired = run("compare", *options, "--json").record["rows"]
    done = run("compare", *options, "--as-published", "--json").record["rows"]
    assert [row["satisfied"] for row in done] == [
        not row["repaired"] for row in repaired
    ]


def test_sets_are_merged_by_the_risk_that_the_paper_prints(run):
    """The printed risk merges all risky symbols of Adult, as complete merging does."""
    asked = (ADULT, "--contingency", "--epsilons", "1")
    merging = ("--mechanisms", "subset-merging,complete-merging")
    kept = {}
    for risk in ("auto", "sum", "log-max"):
        rows = run("compare", *asked, *merging, "--risk", risk, "--json").record["rows"]
        kept[risk] = [round(row["nmi"], 4) for row in rows]
    assert kept["auto"] == kept["log-max"] == [0.7296, 0.2868]
    assert kept["sum"] == [0.2868, 0.2868]
    for refused, message in (
        (("--risk", "most"), "must be one of auto, log-max, log-ratio, sum"),
        (("--risk", "sum", "--confidence", "0.9"), "leave it out with a confidence"),
        (("--risk", "sum", "--average", "mi=0.1"), "--risk"),
    ):
        done = run("compare", *asked[:2], *refused)
        assert done.code == 2
        assert message in done.err


def test_what_is_left_out_is_noted(folder, run, monkeypatch):
    """A notion whose posteriors no method here can search."""
    monkeypatch.setitem(NOTIONS, "l3", CubeLift)
    (folder / "three.csv").write_text("g,x,y,z\na,5,2,1\nb,1,4,2\nc,2,2,6\n")
    table = ("three.csv", "--contingency")
    done = run("compare", *table, "--epsilons", "1", "--notions", "l3")
    assert done.code == 0
    assert "note: optimal is left out for l3" in done.err


def test_without_the_optimum_it_says_so(folder, run):
    done = run("compare", *WIDE, *MERGING, "--epsilons", "0.5:4:0.5", "--recommend")
    assert "at most" not in done.out
    assert "The optimum was not run" in " ".join(done.out.split())


def test_an_optimum_that_misses_its_gap_is_noted(folder, run):
    done = run(
        "compare", *MICRO, "--epsilons", "0.5", "--mechanisms", "optimal", "--gap", "0"
    )
    assert done.code == 0
    assert done.err.startswith(
        "mechdesign: note: optimal, alip, epsilon 0.5, lam 0.5: "
    )
    assert "gap" in done.err


def test_ctrl_c_keeps_the_rows_so_far(folder, run, monkeypatch):
    from mechdesign.comparison import run as comparison
    from mechdesign.comparison import settings as comparison_settings
    from mechdesign.mechanisms.designing import design_requested

    calls = []

    def stops(request):
        calls.append(1)
        if len(calls) > comparison.CHUNK:
            raise KeyboardInterrupt
        return design_requested(request)

    monkeypatch.setattr(comparison_settings, "design_requested", stops)
    done = run(
        "compare",
        *WIDE,
        "--mechanisms",
        "subset-merging",
        "--epsilons",
        "1:3:0.1",
        "--output",
        "o.csv",
    )
    assert done.code == 130
    assert (
        done.err
        == "mechdesign: error: interrupted; the rows so far are in o.csv; run again to go on\n"
    )
    assert len((folder / "o.csv").read_text().splitlines()) == 1 + comparison.CHUNK
    assert (
        run("compare", *WIDE, "--epsilons", "1").err
        == "mechdesign: error: interrupted; nothing was written\n"
    )


@pytest.fixture
def refused(folder, run):
    def runner(*arguments):
        before = {path: path.read_bytes() for path in folder.iterdir()}
        done = run("compare", *arguments)
        assert done.code == 2, (done.out, done.err)
        assert done.out == ""
        assert 1 <= len(done.err.splitlines()) <= 2
        assert done.err.startswith("mechdesign: error: ")
        assert {path: path.read_bytes() for path in folder.iterdir()} == before
        return done.err

    return runner


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            ("--epsilons", "1:0:0.5"),
            ["--epsilons '1:0:0.5'", "ends (0) before it begins (1)"],
        ),
        (("--epsilons", "0:1:0.1"), ["epsilon (0)", "positive"]),
        (("--epsilons", "some"), ["--epsilons 'some'", "not a number"]),
        (("--epsilons", "1:2"), ["'1:2'", "START:STOP:STEP"]),
        (("--epsilons", "1,1"), ["epsilon (1)", "twice"]),
        (("--epsilons", "1:900:100"), ["epsilon (701)", "700"]),
        (("--epsilons", ""), ["''", "not a number"]),
        (("--lams", "1"), ["lam (1)", "between 0 and 1"]),
        (("--lams", "half"), ["--lams 'half'"]),
        (("--lams", "0.4", "--notions", "ldp"), ["lam", "ldp"]),
        (("--mechanisms", "best"), ["mechanism 'best'", "subset-merging"]),
        (("--mechanisms", ""), ["mechanism ''"]),
        (("--notions", "none"), ["notion 'none'", "alip"]),
        (("--notions", "alpha:0.5"), ["alpha (0.5)", "above 1"]),
        (("--method", "guess"), ["'guess'", "vertices"]),
        (("--gap", "-1"), ["--gap"]),
        (("--time-limit", "soon"), ["--time-limit"]),
        (("--workers", "0"), ["--workers ('0')", "at least 1"]),
        (("--workers", "two"), ["--workers ('two')"]),
        (("--plot", "o.gif"), ["o.gif", ".png"]),
        (("--plot", "nowhere/o.png"), ["nowhere"]),
        (("--plot", "counts.csv"), ["counts.csv", "must end in"]),
        (("--output", "nowhere/o.csv"), ["nowhere"]),
        (("--output", "."), ["folder"]),
        (("--output", "counts.csv", "--force"), ["counts.csv", "input file itself"]),
        (("--output", "records.csv"), ["records.csv", "no comparison", "--force"]),
    ],
)
def test_bad_options(refused, options, words):
    message = refused(*WIDE, *options)
    assert all(word in message for word in words), message


def test_a_csv_of_another_table_is_refused(run, refused):
    assert (
        run("compare", *MICRO, *MERGING, "--epsilons", "1", "--output", "o.csv").code
        == 0
    )
    assert "o.csv belongs to another table" in refused(
        *WIDE, *MERGING, "--epsilons", "1", "--output", "o.csv"
    )


def test_a_plot_is_not_overwritten_without_force(folder, run, refused):
    (folder / "o.svg").write_text("mine")
    assert "o.svg exists" in refused(*WIDE, "--epsilons", "1", "--plot", "o.svg")
    assert (
        run("compare", *WIDE, "--epsilons", "1,2", "--plot", "o.svg", "--force").code
        == 0
    )
    assert "<svg" in (folder / "o.svg").read_text()


def test_a_plot_that_fails_leaves_the_curve_and_says_so(folder, run, monkeypatch):
    from mechdesign.report import plots

    def fails(*_, **__):
        raise OSError(28, "No space left on device", "o.svg")

    monkeypatch.setattr(plots, "save_plot", fails)
    files = ("--output", "o.csv", "--plot", "o.svg")
    result = run("compare", *WIDE, "--epsilons", "1", *files)
    assert result.code == 2
    assert result.err.rstrip().endswith("No space left on device; o.csv is written")
    assert (folder / "o.csv").exists()


def test_missing_matplotlib_is_said_before_the_work(refused, monkeypatch):
    from mechdesign.report import drawing

    monkeypatch.setattr(drawing, "find_spec", lambda name: None)
    assert "pip install 'mechdesign[plots]'" in refused(*WIDE, "--plot", "o.png")


def test_manifest_lies_beside_the_csv(folder, run):
    assert (
        run("compare", *WIDE, *MERGING, "--epsilons", "1", "--output", "o.csv").code
        == 0
    )
    manifest = json.loads((folder / "o.csv.json").read_text(encoding="utf-8"))
    assert manifest["format"] == "mechdesign.comparison"
    assert manifest["settings"]["gap"] == 1e-4


def test_budgets_of_single_symbols_hold_at_every_epsilon(folder, run):
    typed = ("compare", *WIDE, "--epsilons", "1,2", "--mechanisms", "optimal")
    free, own = (
        json.loads(run(*typed, *more, "--json").out)["rows"]
        for more in ((), ("--budget", "a=0.1,0.1"))
    )
    assert all(
        tight["nmi"] < loose["nmi"] for tight, loose in zip(own, free, strict=True)
    )
    refused = run(*typed, "--budget", "a=0.1,0.1", "--recommend")
    assert refused.code == 2
    assert (
        "--recommend treats all sensitive symbols alike: leave out --budget"
        in refused.err
    )
