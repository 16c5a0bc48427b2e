"""audit, show, measure, apply and check on a mechanism file, as a user would call them month by month."""

from __future__ import annotations

import itertools
import json

import pytest

from mechdesign.cli.mechanism import FORMAT as SAID
from mechdesign.cli.mechanism import is_mechanism
from mechdesign.nonstochastic.mechanism_file import FORMAT
from mechdesign.report import drawing
from tests.cases.documents import rewrite

ROWS = "house,day,kwh\n" + "".join(
    f"{h},{d},{h * d / 7!r}\n" for h in range(1, 6) for d in (1, 2)
)
MADE = (
    "--column",
    "kwh",
    "--epsilon",
    "2",
    "--range",
    "0,10",
    "--query",
    "mean",
    "--group-by",
    "day",
)


@pytest.fixture
def made(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.csv").write_text(ROWS, encoding="utf-8")
    assert (
        run(
            "quantize",
            "in.csv",
            "out.csv",
            *MADE,
            "--individual",
            "house",
            "--mechanism",
            "m.json",
        ).code
        == 0
    )
    return tmp_path


def test_telling_mechanism_files(made):
    assert SAID.decode() == f'"{FORMAT}"'
    assert is_mechanism("m.json")
    assert not any(map(is_mechanism, ("in.csv", "none.json", str(made), None)))


def test_a_month_later(made, run):
    (made / "next.csv").write_text(ROWS.replace("kwh", "use"), encoding="utf-8")
    done = run(
        "apply",
        "m.json",
        "next.csv",
        "o.csv",
        "--column",
        "kwh=use",
        "--identity",
        "house",
    )
    assert (
        done.code,
        "One individual is in at most 2 answers: 4 bits in all." in done.out,
    ) == (0, True), done.err
    assert (made / "o.csv").read_bytes() == (made / "out.csv").read_bytes()
    record = run("apply", "m.json", "in.csv", "p.csv", "--json").record
    assert (record["answers"], record["outside"], record["guarantee"]["outputs"]) == (
        2,
        0,
        4,
    )
    assert (
        run(
            "check",
            "o.csv",
            "--channel",
            "o.csv.mechanism.json",
            "--original",
            "in.csv",
        ).code
        == 0
    )
    (made / "f.csv").write_text("day,records,mean_kwh\n1,5,0.123\n", encoding="utf-8")
    forged = run("check", "f.csv", "--channel", "m.json", "--json")
    assert (forged.code, forged.record["plausible"]) == (1, False)


def test_what_it_is(made, run):
    assert "keeps what its file says" in run("audit", "m.json").out
    assert run("audit", "m.json", "--json").record["satisfied"] is True
    assert "16 levels for groups of 5" in run("show", "m.json").out
    cells = run("show", "m.json", "--csv").out.splitlines()
    assert (cells[0], len(cells)) == ("individuals,cell,lower,upper,released", 17)
    assert run("show", "m.json", "--json").record["outputs"] == 4
    assert "worst error" in run("measure", "m.json").out
    assert run("measure", "m.json", "--json").record["sizes"][0]["levels"] == 16
    whole = run("audit", "m.json", "--all-measures")
    assert "keeps what its file says" in whole.out
    assert "worst error" in whole.out
    record = run("audit", "m.json", "--all-measures", "--json").record
    assert record["satisfied"] is True
    assert record["sizes"][0]["levels"] == 16


def test_an_edited_file_is_no_mechanism(made, run):
    rewrite(
        made / "m.json",
        lambda document: document["guarantee"].update(total_epsilon=0.1),
        made / "e.json",
    )
    audited = run("audit", "e.json")
    assert (audited.code, "says total_epsilon '0.1', but it is" in audited.out) == (
        1,
        True,
    )
    for verb in (
        ("show", "e.json"),
        ("measure", "e.json"),
        ("apply", "e.json", "in.csv", "o.csv"),
    ):
        refused = run(*verb)
        assert (refused.code, "the file was edited" in refused.err) == (2, True)


def test_thresholds_that_break_their_own_promise_are_a_no(made, run):
    """As of a channel whose matrix does not keep its notion: exit 1, and all that is wrong is listed."""

    def finer(document):
        document["mechanisms"][0]["thresholds"] = [str(k) for k in range(1, 10)]
        document["outputs_allowed"] = 7

    rewrite(made / "m.json", finer, made / "e.json")
    audited = run("audit", "e.json")
    assert audited.code == 1
    assert "DOES NOT keep" in audited.out
    assert "outputs_allowed ('7') is not floor(2^epsilon) = 4" in audited.out
    assert run("audit", "e.json", "--json").record["satisfied"] is False
    assert run("apply", "e.json", "in.csv", "o.csv").code == 2


def test_bad_input(made, run):
    assert (
        "must be one of refuse, clip"
        in run("apply", "m.json", "in.csv", "o.csv", "--outside", "wrap").err
    )
    two = run("apply", "m.json", "in.csv", "o.csv", "--identity", "house,day")
    assert (two.code, "one column that identifies individuals" in two.err) == (2, True)


def test_a_total_over_all_answers(made, run):
    """Two answers a house: 4 bits are 16 = 4^2 outputs."""
    asked = (
        "--column",
        "kwh",
        "--range",
        "0,10",
        "--query",
        "mean",
        "--group-by",
        "day",
    )
    done = run(
        "quantize",
        "in.csv",
        "t.csv",
        *asked,
        "--individual",
        "house",
        "--total-epsilon",
        "4",
        "--json",
    )
    assert (
        done.code,
        done.record["total_epsilon"],
        done.record["guarantee"]["outputs"],
    ) == (0, 4.0, 4), done.err
    assert "4^2 in all" in done.err
    assert (made / "t.csv").read_bytes() == (made / "out.csv").read_bytes()
    assert (
        "--individual"
        in run("quantize", "in.csv", "u.csv", *asked, "--total-epsilon", "4").err
    )
    both = run(
        "quantize", "in.csv", "u.csv", *asked, "--total-epsilon", "4", "--epsilon", "2"
    )
    assert (both.code, "give one of them" in both.err) == (2, True)
    assert "is missing" in run("quantize", "in.csv", "u.csv", *asked).err


def test_a_report_for_everybody(made, run):
    """The promises, budgets and cells of the file, in three formats; two pictures, and nothing from elsewhere."""
    pytest.importorskip("matplotlib")
    done = run(
        "report", "m.json", "--report", "r.html", "--public-report", "r.md", "--json"
    )
    assert (done.code, done.record["satisfied"]) == (0, True), done.err
    page, text = (
        (made / name).read_text(encoding="utf-8") for name in ("r.html", "r.md")
    )
    assert page.count("data:image/svg+xml") == 2
    assert "http" not in page.replace("http-equiv", "")
    assert (
        "one individual can bring about at most 4 outputs of an answer (counted exactly; 4 allowed)"
        in text
    )
    assert text.count("\n| 4 | 2 | 0.33334 |") == 1
    last = [line for line in text.splitlines() if line.startswith("| 16 |")]
    assert [line.split("|")[3].strip() for line in last] == ["10"]
    assert run("report", "m.json", "--report", "r.json").code == 0
    record = json.loads((made / "r.json").read_text(encoding="utf-8"))
    assert (record["outputs"], record["satisfied"], record["sizes"][0]["levels"]) == (
        4,
        True,
        16,
    )
    assert [k for k, _ in record["errors"]] == list(range(1, 9))
    assert all(a >= b for (_, a), (_, b) in itertools.pairwise(record["errors"]))
    again = run("report", "m.json", "--report", "r.html")
    assert (again.code, "--force" in again.err) == (2, True)


def test_a_report_on_an_edited_file_says_so(made, run):
    rewrite(
        made / "m.json",
        lambda document: document["guarantee"].update(total_epsilon=0.1),
        made / "e.json",
    )
    assert run("report", "e.json", "--report", "e.md").code == 1
    text = (made / "e.md").read_text(encoding="utf-8")
    assert "NO: the file is wrong" in text
    assert "total_epsilon '0.1', but it is" in text


def test_pictures_need_matplotlib(made, run, monkeypatch):
    monkeypatch.setattr(drawing, "find_spec", lambda name: None)
    refused = run("report", "m.json", "--report", "r.html")
    assert (refused.code, refused.out) == (2, "")
    assert "an HTML report needs matplotlib" in refused.err
    assert "'mechdesign[report]' (.md and .json reports need nothing)" in refused.err
