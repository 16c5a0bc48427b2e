"""Mechanisms for single records in the engine of channels: files, folders, frames; order, twins,
ledger.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechdesign import sanitise, sanitise_file
from mechdesign.core.errors import InputError
from mechdesign.nonstochastic.mechanism_file import MechanismFile
from mechdesign.nonstochastic.mechanism_jobs import apply_mechanism
from mechdesign.nonstochastic.numbers_recipe import Sorted
from mechdesign.nonstochastic.quantize_table import QuantizeOptions, quantise_table
from mechdesign.nonstochastic.released_check import check_quantised
from mechdesign.nonstochastic.table_answers import answer_groups
from mechdesign.release.draws import Key
from mechdesign.release.samplers import Policy

KWH = [7.25, 0.5, 12.0, 3.0, 9.99, 4.5, 1.0, -3.0]
"""Two of them outside of 0 to 10."""

CELLS = {"clip": [6.25, 1.25, 8.75, 3.75, 8.75, 3.75, 1.25, 1.25]}
CELLS["mark"] = [25 / 3, 5 / 3, None, 5 / 3, 25 / 3, 5, 5 / 3, None]
CELLS["drop"] = [number for number in CELLS["mark"] if number is not None]
"""Released in four cells, or in three where one output is that a number lies outside."""


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = {"house": [1, 2, 3, 1, 2, 3, 1, 2], "kwh": KWH, "note": list("abcdefgh")}
    pd.DataFrame(rows).to_csv("in.csv", index=False)
    return pd.DataFrame(rows)


def designed(outside="clip", **changes):
    options = {
        "column": "kwh",
        "epsilon": 2,
        "range_text": "0,10",
        "outside": outside,
        **changes,
    }
    # Options of columns are for single records; groups have none.
    kept = {}
    if "query" not in changes:
        kept = {"keep": "all"}
    quantise_table(
        "in.csv",
        "o.csv",
        QuantizeOptions(**options),
        mechanism_path="m.json",
        force=True,
        records=kept,
    )
    return MechanismFile.load("m.json")


def text_of(path):
    return Path(path).read_text(encoding="utf-8")


def listed(column):
    """The numbers of a column of any kind, None for an empty cell."""
    numbers = []
    for value in column.to_pylist() if hasattr(column, "to_pylist") else column:
        empty = value is None or math.isnan(value)
        numbers.append(None if empty else value)
    return numbers


FRAMES = [
    pd.DataFrame,
    pl.DataFrame,
    lambda f: pl.DataFrame(f).lazy(),
    pa.Table.from_pandas,
]


@pytest.mark.parametrize("outside", CELLS)
@pytest.mark.parametrize("kind", FRAMES)
def test_frames_get_the_numbers_of_the_file(table, outside, kind):
    mechanism = designed(outside)
    frame = kind(table)
    released = sanitise(frame, mechanism, keep="all")
    assert type(released) is type(frame)
    if isinstance(released, pl.LazyFrame):
        released = released.collect()
    assert listed(released["kwh"]) == pytest.approx(CELLS[outside])
    assert listed(pd.read_csv("o.csv")["kwh"]) == pytest.approx(CELLS[outside])
    notes = "abcdefgh"
    if outside == "drop":
        # Without the third and the last record.
        notes = "abdefg"
    assert "".join(map(str, released["note"])) == notes


def test_whole_numbers_and_texts_become_floats(table):
    mechanism = designed()
    for kwh in ([7, 1, 10, 3, 9, 4, 1, 0], list(map(str, KWH))):
        frame = table.assign(kwh=kwh)
        assert listed(sanitise(frame, mechanism)["kwh"]) == CELLS["clip"]
        pq.write_table(pa.Table.from_pandas(frame), "in.parquet")
        apply_mechanism("m.json", "in.parquet", "o.parquet", force=True)
        assert pq.read_table("o.parquet")["kwh"].to_pylist() == CELLS["clip"]
        assert pq.read_schema("o.parquet").field("kwh").type == pa.float64()


def test_dask(table):
    dd = pytest.importorskip("dask.dataframe")
    released = sanitise(
        dd.from_pandas(table, npartitions=3), designed("mark"), drop="note", keep="all"
    ).compute()
    assert list(released) == ["house", "kwh"]
    assert listed(released["kwh"]) == pytest.approx(CELLS["mark"])


def test_duckdb(table):
    duckdb = pytest.importorskip("duckdb")
    released = sanitise(duckdb.from_df(table), designed("drop"), identity="house").df()
    assert listed(released["kwh"]) == pytest.approx(CELLS["drop"])


@pytest.mark.slow
@pytest.mark.filterwarnings(
    "ignore:PySpark does not yet fully support pandas:FutureWarning"
)
def test_spark(table, spark):
    frame = spark.createDataFrame(table.assign(kwh=[7, 1, 12, 3, 9, 4, 1, -3]))
    released = sanitise(frame, designed())
    assert dict(released.dtypes)["kwh"] == "double"
    assert [row.kwh for row in released.collect()] == CELLS["clip"]
    mechanism = designed(
        query="mean", group_by=("house",), range_text="-10,20", outside="refuse"
    )
    answers, result = answer_groups(frame, mechanism)
    assert sorted(answers["records"].to_pylist()) == [2, 3, 3]
    assert result.answers == 3


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("query", ["mean", "median", "count"])
def test_groups_of_frames_have_the_answers_of_the_file(table, kind, query):
    counts = query == "count"
    changes = {}
    bits = 2.0
    if counts:
        changes = {"equals": "3.0", "range_text": None, "outside": "refuse"}
        bits = 1.0
    mechanism = designed(query=query, group_by=("house",), individual="note", **changes)
    frame = kind(table)
    options = {"individual": "note", "ledger": "l.db"}
    equals = "3.0" if counts else None
    answers, result = answer_groups(frame, mechanism, equals=equals, **options)
    lazy = isinstance(frame, pl.LazyFrame)
    assert type(answers) is (pa.Table if lazy else type(frame))
    if not isinstance(answers, pd.DataFrame):
        answers = answers.to_pandas()
    assert answers.to_csv(index=False) == text_of("o.csv")
    assert result.answers_each == 1
    assert result.total_epsilon == bits
    assert result.releases == 1
    # Another value that is counted is another release; the same mean is not.
    equals = "1.0" if counts else None
    answers, result = answer_groups(frame, mechanism, equals=equals, **options)
    assert result.releases == (2 if counts else 1)
    assert len(answers) == 3


def test_every_option_of_files(table):
    designed()
    options = {"individual": "house", "force": True}
    apply_mechanism("m.json", "in.csv", "plain.csv", records={"keep": "all"}, **options)
    apply_mechanism(
        "m.json",
        "in.csv",
        "o.parquet",
        records={"format": "parquet", "keep": "all", "drop": ("note",)},
        **options,
    )
    assert pq.read_table("o.parquet").to_pydict().keys() == {"house", "kwh"}
    apply_mechanism(
        "m.json", "in.csv", "s.csv", records={"shuffle": True, "keep": "all"}, **options
    )
    shuffled = pd.read_csv("s.csv")
    assert not shuffled.equals(pd.read_csv("plain.csv"))
    in_order = shuffled.sort_values("note").reset_index(drop=True)
    assert in_order.equals(pd.read_csv("plain.csv"))
    for path in ("plain.csv", "s.csv", "o.parquet"):
        checked = check_quantised("m.json", path, data="in.csv")
        assert checked.satisfied
        assert checked.same
        assert checked.answers == 8
    pd.read_csv("plain.csv").assign(kwh=8.75).to_csv("wrong.csv", index=False)
    assert check_quantised("m.json", "wrong.csv", data="in.csv").same is False


def test_a_folder_is_released_whole_or_not_at_all(table, tmp_path):
    designed()
    (tmp_path / "in" / "month=1").mkdir(parents=True)
    (tmp_path / "in" / "month=2").mkdir()
    table.iloc[:4].to_csv("in/month=1/a.csv", index=False)
    table.iloc[4:].to_csv("in/month=2/a.csv", index=False)
    options = {"individual": "house", "ledger": "l.db"}
    rehearsed = apply_mechanism("m.json", "in", "out", dry_run=True, **options)
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "l.db").exists()
    result = apply_mechanism("m.json", "in", "out", **options)
    assert result.total_epsilon == 6.0
    for release in (result, rehearsed):
        assert release.records == 8
        assert release.answers_each == 3
    both = pd.concat([pd.read_csv(f"out/month={k}/a.csv") for k in (1, 2)])
    assert list(both["kwh"]) == CELLS["clip"]
    of_first_file = MechanismFile.load("out/_manifests/month=1/a.csv.json")
    assert of_first_file.guarantee["answers_each"] == 2
    table.assign(kwh=["x", *KWH[1:]]).to_csv("in/month=2/a.csv", index=False)
    with pytest.raises(
        InputError, match="line 2: the column 'kwh' holds no finite number"
    ):
        apply_mechanism("m.json", "in", "out", force=True, **options)
    assert list(pd.read_csv("out/month=2/a.csv")["kwh"]) == CELLS["clip"][4:]
    assert not (tmp_path / ".out.part").exists()


def test_files_by_month_differ_and_files_by_number_are_refused(table, tmp_path):
    designed(range_text="0,100")
    (tmp_path / "in").mkdir()
    numbers = np.random.default_rng(0).uniform(0, 50, (2, 200))
    for k, month in enumerate(numbers):
        pd.DataFrame({"kwh": month + 20 * k}).to_csv(f"in/{k}.csv", index=False)
    assert apply_mechanism("m.json", "in", "months", ledger="l.db").records == 400
    for k, month in enumerate(numbers):
        pd.DataFrame({"kwh": month + 50 * k}).to_csv(f"in/{k}.csv", index=False)
    with pytest.raises(
        InputError,
        match="names of the files tell of 'kwh': each file has numbers of its own",
    ):
        apply_mechanism("m.json", "in", "steps", ledger="l.db")
    options = {"ledger": "l.db", "records": {"keep_order": True}}
    assert apply_mechanism("m.json", "in", "steps", **options).records == 400


def test_a_folder_is_one_table_to_groups(table, tmp_path):
    mechanism = designed(query="sum", group_by=("house",))
    (tmp_path / "in").mkdir()
    table.iloc[:3].to_csv("in/a.csv", index=False)
    table.iloc[3:].to_csv("in/b.csv", index=False)
    result = apply_mechanism("m.json", "in", "g.csv")
    assert text_of("g.csv") == text_of("o.csv")
    assert result.records == mechanism.provenance["records"] == 8
    (tmp_path / "in" / "c.csv").write_text("house,kwh\n1,x\n", encoding="utf-8")
    with pytest.raises(
        InputError,
        match=r"c.csv has other columns than in.a.csv \('.*' in one of them alone",
    ):
        apply_mechanism("m.json", "in", "h.csv")
    columns = list(reversed(table.columns))
    table[columns].to_csv("in/c.csv", index=False)
    with pytest.raises(
        InputError, match=r"in.c.csv has the columns of in.a.csv in another order"
    ):
        apply_mechanism("m.json", "in", "h.csv")
    (tmp_path / "in" / "c.csv").unlink()
    table.to_parquet("in/c.parquet", index=False)
    with pytest.raises(
        InputError, match=r"in.c.parquet is a Parquet file and in.a.csv a CSV file"
    ):
        apply_mechanism("m.json", "in", "h.csv")
    (tmp_path / "in" / "c.parquet").unlink()
    table.assign(kwh="x").to_csv("in/c.csv", index=False)
    with pytest.raises(
        InputError, match=r"c.csv, line 2: the column 'kwh' holds no finite number"
    ):
        apply_mechanism("m.json", "in", "h.csv")
    assert not (tmp_path / "h.csv").exists()


def test_a_total_budget_counts_the_answers_of_a_folder(table, tmp_path):
    (tmp_path / "in").mkdir()
    table.iloc[:3].to_csv("in/a.csv", index=False)
    table.iloc[3:].to_csv("in/b.csv", index=False)
    options = QuantizeOptions(
        column="kwh", epsilon=0, range_text="-3,12", individual="house"
    )
    result = quantise_table("in", "out", options, total_epsilon="3", ledger="l.db")
    assert result.answers_each == 3
    assert result.total_epsilon == 3.0
    assert result.mechanism.guarantee["outputs"] == 2
    with pytest.raises(InputError, match="read twice: name a file, not standard input"):
        quantise_table("-", "p.csv", options, total_epsilon="3")


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_sorted_file_is_refused(table, descending, kind):
    """The place of a record tells its number to the last digit, whatever its cell is."""
    designed()
    numbers = np.sort(np.random.default_rng(0).uniform(0, 10, 400))
    if descending:
        numbers = numbers[::-1]
    frame = pd.DataFrame({"kwh": numbers})
    frame.to_csv("s.csv", index=False)
    frame.to_parquet("s.parquet", index=False)
    with pytest.raises(
        InputError, match="the records stand in an order that tells of 'kwh'"
    ):
        apply_mechanism("m.json", f"s.{kind}", f"p.{kind}")
    with pytest.warns(UserWarning, match="the records stand in an order"):
        sanitise(frame, MechanismFile.load("m.json"))
    for order in ({"keep_order": True}, {"shuffle": True}):
        result = apply_mechanism(
            "m.json", f"s.{kind}", f"p.{kind}", records=order, force=True
        )
        assert result.records == 400
    # One more number, out of order.
    pd.DataFrame({"kwh": np.append(numbers, 5.0)}).to_csv("t.csv", index=False)
    assert apply_mechanism("m.json", "t.csv", "p.csv", force=True).records == 401


@given(st.lists(st.integers(0, 3), min_size=2, max_size=6), st.integers(1, 3))
def test_evidence_of_being_sorted_is_no_more_than_that(numbers, cut):
    """A sorted arrangement counts as N! / (2 prod n_x!): the mean over all arrangements is at most
    1.
    """
    values = np.array(sorted(numbers), float)
    order = Sorted()
    order.add(values[:cut])
    order.add(values[cut:])
    arrangements = math.factorial(len(values))
    for number in set(numbers):
        arrangements //= math.factorial(numbers.count(number))
    assert math.exp(order.evidence()) == pytest.approx(arrangements / 2)


@pytest.mark.parametrize("name", ["kwh_copy", "usage"])
def test_a_copy_of_the_numbers_is_refused(table, name):
    designed()
    frame = pd.concat([table.drop(columns="note")] * 9, ignore_index=True)
    frame[name] = frame["kwh"]
    frame.to_csv("twin.csv", index=False)

    def release_file(**options):
        records = {"keep": "all", **options}
        return apply_mechanism("m.json", "twin.csv", "p.csv", records=records)

    def release_frame(**options):
        return sanitise(frame, MechanismFile.load("m.json"), keep="all", **options)

    message = f"the column '{name}' (looks like|stands for) the useful column 'kwh'"
    for release in (release_file, release_frame):
        with pytest.raises(InputError, match=message):
            release()
        assert release(drop=(name,)) is not None


def test_frames_are_charged_to_the_ledger(table):
    mechanism = designed()
    sanitise(table, mechanism, identity="house", ledger="l.db")
    sanitise(table.iloc[::-1], mechanism, identity="house", ledger="l.db")
    other = designed(layout="uniform", epsilon=1)
    with pytest.warns(
        UserWarning,
        match="all 2 releases of 'kwh' of these records together disclose at most 9 bits",
    ):
        sanitise(table, other, identity="house", ledger="l.db")
    with pytest.raises(InputError, match="a lazy table gives it none"):
        sanitise(pl.DataFrame(table).lazy(), mechanism, ledger="l.db")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"policy": Policy(unknown="marginal")},
            "a mechanism draws nothing: leave out policy",
        ),
        ({"form": "posterior-draw"}, "a mechanism draws nothing: leave out form$"),
        ({"row_numbers": "house"}, "a mechanism draws nothing"),
        ({"key": Key.fresh()}, "a mechanism draws nothing: leave out key"),
        ({"first_row": 3}, "a mechanism draws nothing: leave out first_row"),
        ({"identity": ["house", "note"]}, "one column that identifies individuals"),
        ({"columns": {"watts": "kwh"}}, "has no column 'watts' to rename"),
        ({"columns": {"kwh": "watts"}}, "there is no column 'watts'"),
        ({"drop": "kwh"}, "the column 'kwh' is released and cannot be left out"),
    ],
)
def test_options_that_are_for_channels(table, options, message):
    with pytest.raises(InputError, match=message):
        sanitise(table, designed(), **options)


def test_bad_records_and_mechanisms(table):
    mechanism = designed("refuse", range_text="-3,12")
    for value, message in (
        (99.0, "the value lies outside the range"),
        (np.nan, "the column 'kwh' is empty there"),
    ):
        bad = table.assign(kwh=[*KWH[:5], value, *KWH[6:]])
        with pytest.raises(
            InputError, match=rf"row number 5 \(counted from 0\): {message}"
        ):
            sanitise(bad, mechanism)
    grouped = designed(query="mean", group_by=("house",))
    with pytest.raises(InputError, match="this mechanism answers for groups"):
        sanitise(table, grouped)
    with pytest.raises(InputError, match="this mechanism is for single records"):
        answer_groups(table, mechanism)
    with pytest.raises(InputError, match="there is no column 'household'"):
        answer_groups(table, grouped, individual="household")
    with pytest.raises(InputError, match="leave out add, drop, keep"):
        apply_mechanism("m.json", "in.csv", "p.csv", records={"drop": ("note",)})
    with pytest.raises(InputError, match="neither codebook nor internal manifest"):
        sanitise_file(mechanism, "in.csv", "p.csv", codebook="c.csv")


def test_records_left_out_are_not_counted(table):
    table.assign(kwh=[*KWH[:2], np.nan, *KWH[3:]]).to_csv("in.csv", index=False)
    mechanism = designed("drop", missing="drop", individual="house")
    assert mechanism.provenance["records"] == 7
    released = sanitise(pd.read_csv("in.csv"), mechanism)
    assert listed(released["kwh"]) == pytest.approx(CELLS["drop"])
    assert list(released.index) == [*range(6)]
