"""`design --confidence`, what it writes, and what `audit` makes of it."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
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


def test_designed_audited_and_said(
    table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    channel = str(tmp_path / "c.json")
    assert (
        main(
            [
                "design",
                table,
                *BASE,
                "--confidence",
                "0.9",
                "--output",
                channel,
                "--json",
                "--gap",
                "1e-3",
            ]
        )
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
    assert main(["show", channel]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "It promises lip (eps_l 0.5, eps_u 0.5)" in shown
    assert "sample of, with 90 % confidence" in shown
    assert "(codebook, in the shares of the table, which is a sample)" in shown
    assert main(["show", channel, "--json"]) == 0
    assert _json(capsys)["confidence"] == 0.9
    report = str(tmp_path / "r.md")
    assert main(["report", channel, "--report", report, "--curve", "0"]) == 0
    assert "All figures are those of the table, which is a sample." in Path(
        report
    ).read_text(encoding="utf-8")
    capsys.readouterr()
    assert (
        main(["audit", channel, "--notion", "lip", "--epsilon", "0.49", "--json"]) == 1
    )
    assert _json(capsys)["satisfied"] is False


def test_fewer_records_break_the_promise(
    table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The audit computes the set of the table given, not that of the file."""
    channel = str(tmp_path / "c.json")
    assert (
        main(
            [
                "design",
                table,
                *BASE,
                "--confidence",
                "0.95",
                "--output",
                channel,
                "--gap",
                "1e-3",
            ]
        )
        == 0
    )
    few = tmp_path / "few.csv"
    few.write_text("s,a,b,c,d\nx,90,70,30,10\ny,50,80,20,15\nz,40,30,35,6\n")
    assert (
        main(
            [
                "audit",
                channel,
                "--table",
                str(few),
                "--contingency",
                "--useful",
                "letter",
            ]
        )
        == 1
    )
    assert "VIOLATED" in capsys.readouterr().out


def test_a_plain_design_says_two_numbers_for_the_population(
    table: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["design", table, *BASE, "--full"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "(95 % confidence): at most" in said
    assert "Largest increase: the output" in said
    assert main(["design", table, *BASE, "--json"]) == 0
    record = _json(capsys)
    assert record["confidence"] is None
    assert isinstance(record["population"], dict)
    assert record["population"]["eps_u"] > 0.5


def test_probabilities_have_no_population(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "p.csv"
    path.write_text("s,a,b\nx,0.25,0.25\ny,0.2,0.3\n")
    base = [
        "design",
        str(path),
        "--probabilities",
        "--useful",
        "letter",
        "--epsilon",
        "1",
    ]
    assert main([*base, "--json"]) == 0
    assert _json(capsys)["population"] is None
    assert main([*base, "--confidence", "0.95"]) == 2
    assert "confidence needs counts of records" in " ".join(
        capsys.readouterr().err.split()
    )


def test_survey_weights_are_refused_where_a_whole_number_looks_like_a_count(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    people = tmp_path / "people.csv"
    people.write_text(
        "s,x,w\n" + "a,u,77516\na,v,83311\nb,v,215646\nb,u,28887\nb,u,45781\n"
    )
    command = [
        "design",
        str(people),
        "--sensitive",
        "s",
        "--useful",
        "x",
        "--notion",
        "ldp",
        "--epsilon",
        "1",
    ]
    assert main([*command, "--weight", "w", "--output", str(tmp_path / "c.json")]) == 0
    assert "if it holds survey weights, say so (--weighted)" in capsys.readouterr().err
    assert main([*command, "--weight", "w", "--weighted", "--confidence", "0.95"]) == 2
    assert (
        "weighted records are not a sample of independent ones"
        in capsys.readouterr().err
    )
    assert main([*command, "--weight", "w", "--weighted", "--json"]) == 0
    assert _json(capsys)["population"] is None
    assert main([*command, "--weighted"]) == 2
    assert "give --contingency or --weight COL too" in capsys.readouterr().err


def test_known_shares_come_from_a_file(
    table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shares, channel = tmp_path / "shares.csv", str(tmp_path / "c.json")
    shares.write_text("symbol,share\nx,0.45\ny,0.35\nz,0.2\n")
    arguments = ["--confidence", "0.95", "--known-shares", str(shares), "--gap", "1e-3"]
    assert (
        main(["design", table, *BASE, *arguments, "--output", channel, "--full"]) == 0
    )
    assert "their shares as given" in " ".join(capsys.readouterr().out.split())
    assert main(["audit", channel, "--json"]) == 0


@pytest.mark.parametrize(
    ("arguments", "shares", "message"),
    [
        (["--confidence", "1"], None, "must be a number from 0.5"),
        (
            ["--confidence", "much"],
            None,
            "--confidence ('much') is not a number; it must be from 0.5",
        ),
        ([], "symbol,share\nx,1\n", "--known-shares needs --confidence"),
        (
            ["--confidence", "0.9"],
            "name,share\n",
            "must begin with the header symbol,share",
        ),
        (
            ["--confidence", "0.9"],
            "symbol,share\nx,0.5,1\n",
            "line 2: the row has 3 cell(s) where the header has 2",
        ),
        (
            ["--confidence", "0.9"],
            "symbol,share\nx,0.5\nx,0.5\n",
            "the share of 'x' is given twice",
        ),
        (
            ["--confidence", "0.9"],
            "symbol,share\nx,0.5\ny,0.2\nz,0.2\n",
            "shares sum to 0.9 and not to 1",
        ),
        (
            ["--confidence", "0.9"],
            "symbol,share\nq,1\n",
            "which the table has no records of",
        ),
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


def test_a_missing_file_of_shares_is_named(
    table: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        main(
            [
                "design",
                table,
                *BASE,
                "--confidence",
                "0.9",
                "--known-shares",
                "nowhere.csv",
            ]
        )
        == 2
    )
    assert "nowhere.csv: there is no such file" in " ".join(
        capsys.readouterr().err.split()
    )


def test_symbols_of_no_record_are_protected(
    table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """They cost utility, and `apply` takes them as the marginal or not at all, never as one output."""
    channel, symbols, data = (
        str(tmp_path / "c.json"),
        tmp_path / "symbols.csv",
        tmp_path / "data.csv",
    )
    symbols.write_text("letter\n" + "\n".join("abcdef") + "\n")
    arguments = [
        *BASE,
        "--confidence",
        "0.95",
        "--gap",
        "1e-3",
        "--symbols",
        str(symbols),
        "--json",
    ]
    assert main(["design", table, *arguments, "--output", channel]) == 0
    with_list = _json(capsys)["nmi"]
    assert (
        main(
            [
                "design",
                table,
                *[a for a in arguments if a not in ("--symbols", str(symbols))],
            ]
        )
        == 0
    )
    without = _json(capsys)["nmi"]
    assert isinstance(with_list, float)
    assert isinstance(without, float)
    assert with_list < without
    assert main(["audit", channel]) == 0
    assert "It covers 2 more symbols of the list" in " ".join(
        capsys.readouterr().out.split()
    )
    data.write_text("letter\na\nf\n")
    released, manifest = str(tmp_path / "out.csv"), tmp_path / "out.csv.manifest.json"
    key = ["--insecure-seed", "1"]
    assert (
        main(["apply", channel, str(data), released, *key, "--unknown", "output:a"])
        == 2
    )
    assert "the promise covers 2 symbols that no record" in " ".join(
        capsys.readouterr().err.split()
    )
    assert main(["apply", channel, str(data), released, *key]) == 2
    assert (
        main(["apply", channel, str(data), released, *key, "--unknown", "marginal"])
        == 0
    )
    said = " ".join(json.loads(manifest.read_text())["covers"])
    assert "It holds for the population" in said
    assert "It covers 2 more symbols" in said
    assert "It is about that table" not in said


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("symbol\na\n", "must begin with the header letter"),
        ("letter\na\nb\nc\nd\na\n", "the symbol 'a' is listed twice"),
        ("letter\na\nb\n", "does not list 'c', 'd', which the table has"),
        ("letter\na,b\n", "line 2: the row has 2 cell(s) where the header has 1"),
        (None, "--symbols needs --confidence"),
    ],
)
def test_bad_lists_of_symbols_exit_2(
    table: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    text: str | None,
    message: str,
) -> None:
    path = tmp_path / "symbols.csv"
    path.write_text(text or "")
    level = [] if text is None else ["--confidence", "0.9"]
    assert main(["design", table, *BASE, *level, "--symbols", str(path)]) == 2
    assert message in " ".join(capsys.readouterr().err.split())


def test_compare_has_the_curve_with_confidence_beside_the_one_without(
    table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = str(tmp_path / "curves.csv")
    arguments = [
        "compare",
        table,
        *BASE[:3],
        "--notions",
        "ldp,l1",
        "--epsilons",
        "0.5,1",
        "--gap",
        "1e-3",
    ]
    assert (
        main(
            [
                *arguments,
                "--confidence",
                "0.9",
                "--output",
                output,
                "--json",
                "--recommend",
            ]
        )
        == 0
    )
    printed = capsys.readouterr()
    assert "is left out for l1" in printed.err
    rows = {
        (r["mechanism"], r["epsilon"]): r
        for r in csv.DictReader(Path(output).read_text().splitlines())
        if r["notion"] == "ldp"
    }
    for name in ("optimal", "subset-response", "subset-merging", "complete-merging"):
        for epsilon in ("0.5", "1"):
            with_it, without = rows[f"{name}@0.9", epsilon], rows[name, epsilon]
            assert float(with_it["nmi"]) <= float(without["upper_bound_nmi"])
            assert float(with_it["upper_bound_nmi"]) <= float(
                without["upper_bound_nmi"]
            )
            assert with_it["satisfied"] == "true"
    again = [*arguments, "--confidence", "0.9", "--output", output]
    assert main([*again, "--json"]) == 0
    assert _json(capsys)["kept"] == len(
        list(csv.DictReader(Path(output).read_text().splitlines()))
    )
    assert main([*again, "--symbols", table]) == 2
    assert main([*arguments, "--confidence", "0.4"]) == 2
    assert (
        main(
            [
                "compare",
                table,
                *BASE[:3],
                "--notions",
                "ldp",
                "--epsilons",
                "1",
                "--symbols",
                "x",
            ]
        )
        == 2
    )


def test_any_matrix_says_what_holds_for_the_population(
    table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same two numbers as for the channel that the matrix was printed from, up to its last digits."""
    channel, matrix = str(tmp_path / "c.json"), tmp_path / "W.csv"
    assert main(["design", table, *BASE, "--output", channel, "--json"]) == 0
    designed = _json(capsys)["population"]
    assert main(["show", channel, "--csv"]) == 0
    matrix.write_text(capsys.readouterr().out)
    arguments = ["audit", "--matrix", str(matrix), "--table", table, *BASE]
    assert main([*arguments, "--json"]) in (0, 1)
    audited = _json(capsys)["population"]
    assert isinstance(designed, dict)
    assert isinstance(audited, dict)
    for side in ("eps_l", "eps_u", "eps_ldp"):
        assert audited[side] == pytest.approx(designed[side], rel=1e-9)
    assert audited["largest"]["symbols"] == designed["largest"]["symbols"]


def test_a_public_report_says_for_whom_the_promise_holds(
    table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    channel, report, full = (
        str(tmp_path / "c.json"),
        tmp_path / "p.md",
        tmp_path / "r.json",
    )
    design = [
        "design",
        table,
        *BASE,
        "--confidence",
        "0.95",
        "--mechanism",
        "subset-merging",
    ]
    assert main([*design, "--output", channel]) == 0
    assert (
        main(["report", channel, "--public-report", str(report), "--report", str(full)])
        == 0
    )
    said = report.read_text()
    assert (
        "It holds for the population that the records of its table are a sample of, with 95 %"
        in said
    )
    assert "not about the population" not in said
    rows = json.loads(full.read_text())["curve"]["rows"]
    assert {"subset-merging@0.95", "subset-merging", "optimal@0.95"} <= {
        row["mechanism"] for row in rows
    }
    capsys.readouterr()


def test_the_note_on_the_limit_names_the_limit_that_was_asked_for(folder, run):
    """Some of it is kept for proposals, and "the limit is 0.4 s" alone was a riddle."""
    generator = np.random.default_rng(3)
    rows = generator.multinomial(150, generator.dirichlet(np.ones(40)), size=4)
    lines = ["s," + ",".join(f"x{k}" for k in range(40))]
    for place, row in enumerate(rows.tolist()):
        lines.append(f"s{place}," + ",".join(map(str, row)))
    Path("t.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    wide = ("design", "t.csv", "--contingency", "--useful", "x")
    lip = ("--notion", "lip", "--epsilon", "0.5", "--confidence", "0.95")
    answer = run(*wide, *lip, "--time-limit", "0.5")
    assert "the limit is 0.4 s a search" in answer.err
    words = "of the 0.5 s of --time-limit, the search for this channel had 0.4 s; the rest is for"
    assert words in answer.err
