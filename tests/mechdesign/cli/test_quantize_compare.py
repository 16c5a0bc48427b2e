"""`mechdesign quantize --compare`: budget against error as a curve."""

from __future__ import annotations

import csv

import pytest

from mechdesign.core.errors import InputError
from mechdesign.nonstochastic.quantize_table import QuantizeOptions, compare_budgets

ASKED = (
    "quantize",
    "in.csv",
    "curve.csv",
    "--column",
    "v",
    "--range",
    "0,10",
    "--query",
    "mean",
    "--group-by",
    "g",
)


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{k},{k % 3},{k * 7 % 11 * 0.9!r}\n" for k in range(30))
    (tmp_path / "in.csv").write_text("who,g,v\n" + rows, encoding="utf-8")
    return tmp_path


def test_each_row_is_what_a_release_would_say(data, run):
    done = run(*ASKED, "--individual", "who", "--compare", "2,0:1:1", "--json")
    assert (done.code, done.record["output"], done.record["plot"]) == (
        0,
        "curve.csv",
        None,
    ), done.err
    with open("curve.csv", encoding="utf-8", newline="") as stream:
        assert [float(row["mean_error"]) for row in csv.DictReader(stream)] == [
            row["mean_error"] for row in done.record["rows"]
        ]
    for row, epsilon in zip(done.record["rows"], ("0", "1", "2"), strict=True):
        made = run(
            "quantize",
            "in.csv",
            "o.csv",
            *ASKED[3:],
            "--individual",
            "who",
            "--epsilon",
            epsilon,
            "--force",
        )
        assert made.code == 0
        one = run(
            "apply",
            "o.csv.mechanism.json",
            "in.csv",
            "p.csv",
            "--identity",
            "who",
            "--force",
            "--json",
        ).record
        assert {
            key: one[key] for key in ("mean_error", "worst_error", "relative_error")
        } == {key: row[key] for key in ("mean_error", "worst_error", "relative_error")}
        assert (row["epsilon"], row["outputs"]) == (float(epsilon), 2 ** int(epsilon))
        assert row["mean_error"] <= row["worst_error"] <= row["possible_error"]
    assert sorted(path.name for path in data.iterdir()) == sorted(
        [
            "in.csv",
            "curve.csv",
            "o.csv",
            "p.csv",
            "o.csv.mechanism.json",
            "p.csv.mechanism.json",
        ]
    )


def test_text_and_picture(data, run):
    pytest.importorskip("matplotlib")
    done = run(*ASKED, "--compare", "1:3:1", "--plot", "curve.svg")
    assert "possible error" in done.out
    assert "they are for you alone" in done.out
    assert (data / "curve.svg").read_text(encoding="utf-8").startswith("<?xml")
    again = run(*ASKED, "--compare", "1:3:1")
    assert (again.code, "--force" in again.err) == (2, True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--compare", "1:2"), "must be a number or START:STOP:STEP"),
        (("--compare", "-1"), "fewer than one output"),
        (
            ("--compare", "1", "--epsilon", "1"),
            "--compare has several: give one of them",
        ),
        (("--epsilon", "1", "--plot", "c.png"), "--plot draws what --compare computes"),
        (("--compare", "1", "--plot", "c.txt"), "a plot must end in"),
    ],
)
def test_bad_input(data, run, options, message):
    done = run(*ASKED, *options)
    assert (done.code, message in done.err) == (2, True), done.err
    assert [path.name for path in data.iterdir()] == ["in.csv"]


def test_a_curve_has_a_file(data, run):
    done = run("quantize", "in.csv", "-", *ASKED[3:], "--compare", "1")
    assert (done.code, "--compare writes a file: name it" in done.err) == (2, True)


def test_nothing_is_refused_where_nothing_is_released(data):
    """A column by which the file is sorted, beside one that stands for it."""
    rows = [f"{k},{k % 3},{k}\n" for k in range(300)]
    (data / "in.csv").write_text("who,g,v\n" + "".join(rows), encoding="utf-8")
    rows = compare_budgets(
        "in.csv", QuantizeOptions(column="v", epsilon=0, range_text="0,300"), [1, 2]
    )
    assert [row["levels"] for row in rows] == [2, 4]
    assert [row["possible_error"] for row in rows] == [75.0, 37.5]


def test_standard_input_is_read_once():
    with pytest.raises(InputError, match="name a file, not standard input"):
        compare_budgets(
            "-", QuantizeOptions(column="v", epsilon=None, range_text="0,1"), [1.0]
        )


def test_an_error_relative_to_nothing_is_left_out(data, run):
    (data / "in.csv").write_text("who,g,v\n1,a,0\n2,a,0\n3,b,0\n", encoding="utf-8")
    compared = run(*ASKED, "--individual", "who", "--compare", "0:1:1")
    lines = compared.out.splitlines()
    assert [line.split()[-1] for line in lines[1:3]] == ["-", "-"]
    with open("curve.csv", encoding="utf-8", newline="") as stream:
        assert [row["relative_error"] for row in csv.DictReader(stream)] == ["", ""]
    released = run(*ASKED, "--individual", "who", "--epsilon", "1", "--force")
    said = " ".join(released.out.split())
    assert "at worst; 2 of 2 answers changed" in said


def test_an_error_of_any_size_is_said(data, run):
    (data / "in.csv").write_text("who,g,v\n1,a,1\n2,a,2\n3,b,1\n", encoding="utf-8")
    asked = ["0,1e300" if part == "0,10" else part for part in ASKED]
    released = run(*asked, "--individual", "who", "--epsilon", "1")
    assert released.code == 0
    assert "e+301 % of all amounts together" in " ".join(released.out.split())
