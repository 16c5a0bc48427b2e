"""`mechdesign quantize`: order statistics, and what becomes of values outside the range."""

from __future__ import annotations

import itertools
import math
import statistics
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechdesign.core.errors import InputError
from mechdesign.nonstochastic.claims import verify_file
from mechdesign.nonstochastic.groups import Groups
from mechdesign.nonstochastic.quantize_table import QuantizeOptions, quantise_table
from mechdesign.nonstochastic.queries import ranks_of
from mechdesign.nonstochastic.released_check import check_quantised
from tests.cases.tables import rows_of
from tests.profiles import slow

METERS = "house,day,kwh,note\na,1,1.5,x\nb,1,9.75,x\nc,1,0.1,x\na,2,2.5,x\nb,2,10,x\nc,2,0,x\n"


@pytest.fixture
def meters(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "meters.csv").write_text(METERS, encoding="utf-8")


@pytest.mark.parametrize(
    ("query", "outside"),
    [
        ("identity", "mark"),
        ("mean", "drop"),
        ("median", "mark"),
        ("quantile:0.7", "drop"),
        # Values are put aside before a query sees them.
        slow("identity", "drop"),
        slow("mean", "mark"),
        slow("median", "drop"),
        slow("quantile:0.7", "mark"),
    ],
)
def test_outputs_of_one_individual_as_its_value_sweeps_the_range_and_beyond(
    tmp_path, query, outside
):
    """|{M(x_i, x_-i) : x_i}| <= outputs <= 2^epsilon, all that is written counted; two cells and one output outside."""
    most, sweep = 0, (0.0, 0.2, 0.35, 0.5, 0.65, 0.8, 1.0, -1.0, 2.0)
    options = QuantizeOptions(
        column="v",
        epsilon=1.6,
        query=query,
        group_by=() if query == "identity" else ("group",),
        range_text="0,1",
        outside=outside,
        individual="who",
    )
    for others in ([0.0, 1.0], [0.3, 3.0]):
        seen = set()
        for value in sweep:
            cells = "".join(f"{k},g,{v!r}\n" for k, v in enumerate([*others, value]))
            (tmp_path / "in.csv").write_text("who,group,v\n" + cells, encoding="utf-8")
            done = quantise_table(
                tmp_path / "in.csv", tmp_path / "o.csv", options, force=True
            )
            seen.add((tmp_path / "o.csv").read_bytes())
            # Another number of records has thresholds of its own, and their outputs are counted alike.
            assert done.mechanism.guarantee["outputs"] <= 3
        assert len(seen) <= 3
        most = max(most, len(seen))
    assert most == 3 or query not in ("identity", "median")
    held = verify_file(tmp_path / "o.csv.mechanism.json")
    assert (held.satisfied, held.outputs) == (True, 3)


def test_dropped_records_leave_smaller_groups_with_more_outputs(tmp_path):
    """Three in the range have 3 cells and none; with the two others outside, one alone has 4 cells and none."""
    options = QuantizeOptions(
        column="v",
        epsilon=2.4,
        query="mean",
        group_by=("group",),
        range_text="0,40",
        outside="drop",
        thresholds=(5.0, 10.0, 20.0),
        individual="who",
    )

    def released(*values):
        cells = (
            "".join(f"{k},g,{value}\n" for k, value in enumerate(values))
            + "9,h,1\n8,h,2\n7,h,3\n"
        )
        (tmp_path / "in.csv").write_text("who,group,v\n" + cells, encoding="utf-8")
        done = quantise_table(
            tmp_path / "in.csv",
            tmp_path / "o.csv",
            options,
            force=True,
        )
        return (tmp_path / "o.csv").read_bytes(), done.mechanism

    _, made = released(1, 2, 3)
    assert {m.certificate.outputs for m in made.mechanisms} == {4}
    assert len({released(99, 99, value)[0] for value in (1, 7, 15, 30, 99)}) == 5
    assert (
        made.guarantee["outputs"]
        == verify_file(tmp_path / "o.csv.mechanism.json").outputs
        == 5
    )


def answers_of(path):
    return [row[-1] for row in rows_of(path)[1:]]


def test_what_lies_outside_is_told_and_leaves_no_value(meters, run):
    """Of six values 9.75 and 10 lie outside 0 to 5; with marks and drops one cell less is left for the others."""
    asked = (
        "quantize",
        "meters.csv",
        "o.csv",
        "--column",
        "kwh",
        "--epsilon",
        "2",
        "--range",
        "0,5",
        "--force",
    )
    marked = run(*asked, "--keep", "all", "--outside", "mark", "--json").record
    assert (marked["outside"], marked["levels"], marked["outputs"]) == (2, [3, 3], 4)
    assert [row[2] for row in rows_of("o.csv")[1:]].count("") == 2
    assert (
        run(
            "check",
            "o.csv",
            "--channel",
            "o.csv.mechanism.json",
            "--original",
            "meters.csv",
        ).code
        == 0
    )
    dropped = run(*asked, "--outside", "drop", "--json").record
    assert (dropped["records"], dropped["answers"], len(rows_of("o.csv"))) == (6, 4, 5)
    by_day = (*asked, "--query", "max", "--group-by", "day", "--individual", "house")
    assert run(*by_day, "--outside", "drop").code == 0
    assert rows_of("o.csv") == [
        ["day", "records", "max_kwh"],
        ["1", "2", repr(5 / 6)],
        ["2", "2", repr(2.5)],
    ]
    said = run(*by_day, "--outside", "mark")
    assert answers_of("o.csv") == ["", ""]
    assert (
        "2 values outside the range (33.3 % of the records), marked by empty answers"
        in said.out
    )
    assert (
        run(
            "check",
            "o.csv",
            "--channel",
            "o.csv.mechanism.json",
            "--original",
            "meters.csv",
        ).code
        == 0
    )
    assert "; others marked by empty answers" in " ".join(
        run("audit", "o.csv.mechanism.json").out.split()
    )
    clipped = run(*asked, "--outside", "clip")
    assert "moved to its ends" in clipped.out
    # A mechanism without room for one more output says so, and one with room takes any treatment.
    full = run(
        "apply",
        "o.csv.mechanism.json",
        "meters.csv",
        "p.csv",
        "--outside",
        "drop",
        "--keep",
        "all",
    )
    assert (
        "one more output than this mechanism has room for; design one with --outside drop"
        in full.err
    )
    assert not Path("p.csv").exists()


@pytest.mark.parametrize("query", ["identity", slow("mean")])
def test_two_columns_of_one_individual_have_the_product_of_their_outputs(
    tmp_path, query
):
    """docs/how-to/ranges.md: as (start, end) sweeps the product of its ranges, K1 K2 pairs of outputs occur, and no more."""
    others, outputs = [(0.1, 3.9), (1.7, 2.2)] if query == "mean" else [], set()
    source, target = tmp_path / "in.csv", tmp_path / "o.csv"
    for own in itertools.product(np.linspace(0, 4, 9).tolist(), (0.0, 2.0, 4.0)):
        rows = "".join(f"{start},{end}\n" for start, end in (own, *others))
        source.write_text(f"start,end\n{rows}", encoding="utf-8")
        shown, counted = [], []
        for column, epsilon in (("start", 2), ("end", 1)):
            options = QuantizeOptions(
                column=column, epsilon=epsilon, query=query, range_text="0,4"
            )
            made = quantise_table(source, target, options, force=True).mechanism
            header, first, *_ = rows_of(target)
            shown.append(first[header.index(made.answer)])
            counted.append(made.guarantee["outputs"])
        outputs.add(tuple(shown))
    assert counted == [4, 2]
    assert len(outputs) == 8


def test_parquet_has_nulls_for_marks(tmp_path):
    table = pa.table({"g": ["a", "a", "b"], "v": [1.0, 9.0, 3.0]})
    pq.write_table(table, tmp_path / "in.parquet")
    for query, column, wanted in (
        ("identity", "v", [1.5, None, 3.5]),
        ("max", "max_v", [None, 3.5]),
    ):
        group = () if query == "identity" else ("g",)
        options = QuantizeOptions(
            column="v",
            epsilon=2.4,
            query=query,
            group_by=group,
            range_text="0,4",
            outside="mark",
        )
        out = tmp_path / f"{query}.parquet"
        quantise_table(tmp_path / "in.parquet", out, options)
        assert pq.read_table(out).column(column).to_pylist() == wanted
        found = check_quantised(
            f"{out}.mechanism.json", out, data=tmp_path / "in.parquet"
        )
        assert (found.satisfied, found.same) == (True, True)


def test_one_who_is_dropped_takes_part_all_the_same(tmp_path):
    """House a is in two groups; its value in one of them lies outside, and might not have: two answers, not one."""
    (tmp_path / "t.csv").write_text(
        "who,day,v\na,1,9\na,2,1\nb,1,1\nb,3,9\n", encoding="utf-8"
    )
    options = QuantizeOptions(
        column="v",
        epsilon=2,
        query="median",
        group_by=("day",),
        range_text="0,4",
        outside="drop",
        individual="who",
    )
    done = quantise_table(tmp_path / "t.csv", tmp_path / "o.csv", options)
    assert (done.answers, done.answers_each, done.total_epsilon, done.outside) == (
        2,
        2,
        4.0,
        2,
    )
    (tmp_path / "u.csv").write_text("who,day,v\na,1,9\n", encoding="utf-8")
    with pytest.raises(InputError, match="no value lies in the range"):
        quantise_table(tmp_path / "u.csv", tmp_path / "p.csv", options)


@given(st.lists(st.floats(0, 1, width=32), min_size=1, max_size=12), st.integers(1, 99))
def test_order_statistics_against_sorting(values, percent):
    """min, max, median and the P-quantile of rank ceil(P n), as the exact numbers of the data."""
    ordered, n = sorted(map(Fraction, values)), len(values)
    rank = math.ceil(Fraction(percent, 100) * n)
    for query, wanted in (
        ("min", ordered[0]),
        ("max", ordered[-1]),
        ("median", statistics.median(ordered)),
        (f"quantile:{percent / 100:.2f}", ordered[rank - 1]),
    ):
        groups = Groups(ordered=True)
        for part in filter(None, (values[:5], values[5:])):
            groups.add([], np.array(part))
        (many,), unit = groups.ranked(partial(ranks_of, query))
        assert many * unit == wanted


def test_values_outside_a_list_move_to_the_nearest_member_and_the_text_says_so(
    folder, run
):
    (folder / "v.csv").write_text("id,v\n1,12\n2,4\n3,25\n4,-3\n", encoding="utf-8")
    options = ("--column", "v", "--epsilon", "2", "--outside", "clip")
    options += ("--individual", "id", "--quiet")
    made = run("quantize", "v.csv", "o.csv", *options, "--domain", "0,10,20")
    assert made.code == 0
    said = " ".join(made.out.split())
    assert (
        "4 values outside the list (100 % of the records), moved to the nearest" in said
    )
    shown = " ".join(run("show", "o.csv.mechanism.json").out.split())
    assert "one of 3 from 0 to 20; others moved to the nearest of these" in shown
    assert run("quantize", "v.csv", "p.csv", *options, "--range", "0,20").code == 0
    shown = " ".join(run("show", "p.csv.mechanism.json").out.split())
    assert "in 0 to 20; others moved to its ends" in shown
