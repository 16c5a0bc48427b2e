"""`mechdesign quantize`: what it releases, what it promises, and what it refuses."""

from __future__ import annotations

import random
from bisect import bisect_right
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mechdesign.core.errors import InputError
from mechdesign.nonstochastic.mechanism_file import MechanismFile
from mechdesign.nonstochastic.quantize_table import QuantizeOptions, quantise_table
from tests.cases.meters import BASIC
from tests.cases.tables import rows_of


def test_identity(meters, run):
    done = run("quantize", "meters.csv", "out.csv", *BASIC, "--json", "--keep", "all")
    assert done.code == 0, done.err
    record = done.record
    assert (record["outputs"], record["outputs_allowed"], record["levels"]) == (
        4,
        4,
        [4, 4],
    )
    assert (record["output"], record["mechanism"]) == (
        "out.csv",
        "out.csv.mechanism.json",
    )
    assert record["verified"] is True
    assert record["answers_each"] is None
    assert "--individual" in done.err
    before, after = rows_of(meters), rows_of("out.csv")
    assert [row[2] for row in after[1:]] == [
        "1.25",
        "8.75",
        "1.25",
        "3.75",
        "8.75",
        "1.25",
    ]
    assert [row[:2] + row[3:] for row in before] == [row[:2] + row[3:] for row in after]
    assert (
        MechanismFile.load("out.csv.mechanism.json").mechanisms[0].quantizer.levels == 4
    )


def test_the_text_report_says_what_is_promised(meters, run):
    done = run("quantize", "meters.csv", "out.csv", *BASIC, "--individual", "house")
    assert "at most 4 outputs" in done.out
    assert "One individual is in at most 2 answers: 4 bits in all." in done.out
    assert "Theorem 4, corrected" in done.out
    assert "They hold if" in done.out


def test_mean_by_group_is_exact_and_within_budget(meters, run):
    done = run(
        "quantize",
        "meters.csv",
        "o.csv",
        *BASIC,
        "--query",
        "mean",
        "--group-by",
        "day",
        "--individual",
        "house",
        "--json",
    )
    assert done.code == 0, done.err
    record = done.record
    assert record["outputs"] <= 4
    assert record["levels"] == [10, 10]  # (K - 1) n + 1
    assert (record["answers_each"], record["total_epsilon"]) == (2, 4.0)
    quantizer = MechanismFile.load("o.csv.mechanism.json").mechanisms[0].quantizer
    header, *rows = rows_of("o.csv")
    assert header == ["day", "records", "mean_kwh"]
    exact = {"1": sum(map(Fraction, (1.5, 9.75, 0.1))) / 3, "2": Fraction(25, 6)}
    for day, records, released in rows:
        assert records == "3"
        cell = bisect_right(quantizer.thresholds, exact[day])
        assert float(released) == float(quantizer.midpoints[cell])


def test_one_individual_changes_few_answers(tmp_path):
    """The released mean of a group as one value sweeps its range, by running the job itself."""
    rng = random.Random(3)
    others = [rng.uniform(0, 1) for _ in range(3)]
    seen = set()
    for k in range(0, 101, 4):
        path, out = tmp_path / "in.csv", tmp_path / "out.csv"
        path.write_text(
            "v\n" + "\n".join(map(repr, [*others, k / 100])) + "\n", encoding="utf-8"
        )
        done = quantise_table(
            path,
            out,
            QuantizeOptions(column="v", epsilon=1, query="mean", range_text="0,1"),
            force=True,
        )
        seen.add(rows_of(out)[1][1])
    assert len(seen) <= done.mechanism.guarantee["outputs"] == 2


def test_sum_and_count(meters, run):
    assert run("quantize", "meters.csv", "s.csv", *BASIC, "--query", "sum").code == 0
    assert rows_of("s.csv")[0] == ["records", "sum_kwh"]
    counted = run(
        "quantize",
        "meters.csv",
        "c.csv",
        "--column",
        "house",
        "--epsilon",
        "1",
        "--query",
        "count",
        "--equals",
        "a",
        "--group-by",
        "day,note",
        "--missing",
        "symbol",
        "--json",
    )
    assert counted.record["outputs"] == 2
    header, *rows = rows_of("c.csv")
    assert header == ["day", "note", "records", "count_house"]
    assert rows[0] == ["1", "x, y", "1", "1.0"]
    nothing = run(
        "quantize",
        "meters.csv",
        "n.csv",
        "--column",
        "house",
        "--epsilon",
        "0",
        "--query",
        "count",
        "--equals",
        "a",
    )
    assert "nothing is released" in nothing.err
    assert rows_of("n.csv")[1] == ["6", "3.0"]


def test_counts_of_zeros_and_ones(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("v\n1\n0\ntrue\n", encoding="utf-8")
    quantise_table(
        path, tmp_path / "o.csv", QuantizeOptions(column="v", epsilon=3, query="count")
    )
    assert rows_of(tmp_path / "o.csv")[1] == ["3", "2.0"]


def test_clip_and_drop(meters, run):
    done = run(
        "quantize",
        "meters.csv",
        "o.csv",
        "--column",
        "kwh",
        "--epsilon",
        "1",
        "--range",
        "1,5",
        "--clip",
        "--keep",
        "all",
    )
    assert done.code == 0
    assert {row[2] for row in rows_of("o.csv")[1:]} == {"2.0", "4.0"}
    with open("gaps.csv", "w", encoding="utf-8") as stream:
        stream.write("k,v\na,1\nb,\nc,3\n")
    assert (
        run(
            "quantize",
            "gaps.csv",
            "g.csv",
            "--column",
            "v",
            "--epsilon",
            "1",
            "--range",
            "0,4",
            "--missing",
            "drop",
            "--keep",
            "all",
        ).code
        == 0
    )
    assert rows_of("g.csv") == [["k", "v"], ["a", "1.0"], ["c", "3.0"]]


def test_line_ends_and_marks_stay(tmp_path):
    path = tmp_path / "in.csv"
    path.write_bytes('\ufeffv,w\r\n1,"a\nb"\r\n'.encode())
    quantise_table(
        path,
        tmp_path / "o.csv",
        QuantizeOptions(column="v", epsilon=1, range_text="0,4"),
        records={"keep": "all"},
    )
    assert (tmp_path / "o.csv").read_bytes() == '\ufeffv,w\r\n1.0,"a\nb"\r\n'.encode()


def test_parquet(tmp_path):
    table = pa.table(
        {"day": ["1", "1", "2"], "kwh": [1, 9, None], "keep": [[1], [], [2]]}
    )
    pq.write_table(table, tmp_path / "in.parquet")
    options = QuantizeOptions(
        column="kwh", epsilon=1, range_text="0,10", missing="drop"
    )
    quantise_table(
        tmp_path / "in.parquet",
        tmp_path / "out.parquet",
        options,
        records={"keep": "all"},
    )
    released = pq.read_table(tmp_path / "out.parquet")
    assert released.column("kwh").to_pylist() == [2.5, 7.5]
    assert released.column("keep").to_pylist() == [[1], []]
    grouped = QuantizeOptions(
        column="kwh",
        epsilon=1,
        query="mean",
        group_by=("day",),
        range_text="0,10",
        missing="drop",
    )
    quantise_table(
        tmp_path / "in.parquet",
        tmp_path / "mean.parquet",
        grouped,
    )
    assert pq.read_table(tmp_path / "mean.parquet").to_pylist() == [
        {"day": "1", "records": 2, "mean_kwh": 5.0}
    ]
    with pytest.raises(InputError, match="the output is a Parquet file"):
        quantise_table(
            tmp_path / "in.parquet",
            tmp_path / "o.csv",
            options,
            records={"keep": "all"},
        )


def test_data_on_a_threshold_are_not_rounded(tmp_path):
    """Ten times 0.1 is more than 1 in exact doubles; a rounded sum would call it 1 or less."""
    path = tmp_path / "t.csv"
    path.write_text("v\n" + "0.1\n" * 10, encoding="utf-8")
    quantise_table(
        path,
        tmp_path / "o.csv",
        QuantizeOptions(
            column="v", epsilon=1, query="sum", range_text="0,2", layout="uniform"
        ),
    )
    mechanism = MechanismFile.load(tmp_path / "o.csv.mechanism.json").mechanisms[0]
    cell = bisect_right(mechanism.quantizer.thresholds, 10 * Fraction(0.1))
    assert float(rows_of(tmp_path / "o.csv")[1][1]) == float(
        mechanism.quantizer.midpoints[cell]
    )


def test_overwriting(meters, run):
    assert run("quantize", "meters.csv", "o.csv", *BASIC).code == 0
    written = Path("o.csv").read_bytes()
    # The same job again writes the same bytes, and nothing is lost.
    assert run("quantize", "meters.csv", "o.csv", *BASIC).code == 0
    assert Path("o.csv").read_bytes() == written
    for name in ("o.csv", "o.csv.mechanism.json"):
        kept = Path(name).read_bytes()
        Path(name).write_bytes(kept + b"\n")
        again = run("quantize", "meters.csv", "o.csv", *BASIC, "--ledger", "l.db")
        assert (again.code, again.out) == (2, "")
        assert f"{name} exists" in again.err
        assert "--force" in again.err
        assert Path(name).read_bytes() == kept + b"\n"
        Path(name).write_bytes(kept)
    # Nothing was entered of what was refused.
    assert "No release is known" in run("releases", "--ledger", "l.db").out
    Path("o.csv.mechanism.json").unlink()
    assert run("quantize", "meters.csv", "o.csv", *BASIC).code == 2
    assert run("quantize", "meters.csv", "o.csv", *BASIC, "--force").code == 0
    other = run(
        "quantize", "meters.csv", "p.csv", *BASIC, "--mechanism", "o.csv.mechanism.json"
    )
    assert "exists" in other.err
    assert (
        run("quantize", "meters.csv", "p.csv", *BASIC, "--mechanism", "m.json").code
        == 0
    )


def test_notes_on_fractional_budgets(meters, run):
    done = run(
        "quantize",
        "meters.csv",
        "o.csv",
        "--column",
        "kwh",
        "--epsilon",
        "1.5849625007211561",
        "--range",
        "0,10",
    )
    assert "just below 3" in done.err
    done = run(
        "quantize",
        "meters.csv",
        "q.csv",
        "--column",
        "kwh",
        "--epsilon",
        "2.5",
        "--range",
        "0,10",
    )
    assert "rounded down: 5 outputs" in done.err


def test_release_and_mechanism_are_two_files(meters, run):
    done = run("quantize", "meters.csv", "o.csv", *BASIC, "--mechanism", "o.csv")
    assert "at once" in done.err


def test_a_group_with_the_name_of_an_output_column(tmp_path):
    (tmp_path / "t.csv").write_text("records,v\na,1\n", encoding="utf-8")
    with pytest.raises(InputError, match="rename it"):
        quantise_table(
            tmp_path / "t.csv",
            tmp_path / "o.csv",
            QuantizeOptions(
                column="v",
                epsilon=1,
                query="mean",
                group_by=("records",),
                range_text="0,4",
            ),
        )


def test_help_has_an_example(run):
    done = run("quantize", "--help")
    assert done.code == 0
    assert "mechdesign quantize meters.csv" in " ".join(done.out.split())


def test_a_total_is_divided_by_size_of_group(folder, run):
    """Groups of 3 and 2 of the same people: the smaller one, whose error is larger, has more outputs."""
    (folder / "areas.csv").write_text(
        "who,area,v\na,x,1\nb,x,2\nc,x,3\na,y,1\nb,y,2\n", encoding="utf-8"
    )
    asked = "quantize areas.csv o.csv --column v --query mean --group-by area --range 0,10 --individual who --force"
    done = run(
        *asked.split(), "--total-epsilon", "6", "--split", "error", "--json"
    ).record
    assert done["total_epsilon"] <= 6
    assert "add up to" in done["notices"][0]
    told = run("measure", "o.csv.mechanism.json")
    outputs = {
        int(row[0]): int(row[2])
        for row in map(str.split, told.out.splitlines())
        if row[:1] in (["2"], ["3"])
    }
    assert outputs[2] > outputs[3]
    assert outputs[2] * outputs[3] <= 64
    assert "would cost nothing" not in told.out
    refused = run(*asked.split(), "--epsilon", "2", "--split", "error")
    assert refused.code == 2
    assert (
        "--split says how --total-epsilon is shared by the answers: give it too"
        in refused.err
    )


@pytest.mark.parametrize("query", ["identity", "mean"])
def test_points_that_separate_thousands_are_noted(tmp_path, query, run):
    pay = ["850", "1.200", "2.350", "920"] * 5
    source = tmp_path / "pay.csv"
    source.write_text("\n".join(["pay", *pay]) + "\n")
    words = ["--column", "pay", "--range", "0,1000", "--epsilon", "2", "--query", query]
    done = run("quantize", str(source), str(tmp_path / "out.csv"), *words)
    assert done.code == 0, done.err
    noted = "points that look like separators of thousands"
    assert noted in " ".join(done.err.split())
    source.write_text(source.read_text().replace("1.200", "1.2"))
    done = run("quantize", str(source), str(tmp_path / "right.csv"), *words)
    assert noted not in " ".join(done.err.split())
