"""`quantise_table` reads a table in any way it is written, and writes the release in the same way."""

from __future__ import annotations

import gzip
import io
from dataclasses import replace

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mechdesign.core.errors import InputError
from mechdesign.formats import csv_blocks
from mechdesign.formats.parquet_sink import SPARK
from mechdesign.nonstochastic.quantize_table import QuantizeOptions, quantise_table
from tests.cases.tables import WAYS, StandardInput, csv_text, rows_of, written

METERS = [
    ("house", "kwh", "note"),
    ("hé", "1.5", "x"),
    ("b", "9.75", "a"),
    ("c", "", "z"),
    ("hé", "2.5", "w"),
]

IDENTITY = QuantizeOptions(column="kwh", epsilon=1, range_text="0,10", missing="drop")

MEAN = QuantizeOptions(
    column="kwh",
    epsilon=1,
    query="mean",
    group_by=("house",),
    range_text="0,10",
    missing="drop",
)


@pytest.mark.parametrize("way", WAYS)
def test_a_column_is_replaced(tmp_path, way):
    path, text = written(tmp_path, way, METERS)
    target = path.with_name("o" + path.name)
    assert (
        quantise_table(
            path, target, IDENTITY, text=text, records={"keep": "all"}
        ).records
        == 3
    )
    expected = [[*METERS[0]], ["hé", "2.5", "x"], ["b", "7.5", "a"], ["hé", "2.5", "w"]]
    assert rows_of(target, text) == expected
    if way == "Parquet":
        # Records may be left out, so the row groups of the source are not kept.
        assert pq.read_metadata(target).num_row_groups == 1
    elif (
        path.suffix not in (".gz", ".zst") and way != "quoted"
    ):  # written cells have quotes if they need them
        assert target.read_bytes() == WAYS[way][2](expected)


@pytest.mark.parametrize("way", WAYS)
def test_an_answer_for_each_group(tmp_path, way):
    path, text = written(tmp_path, way, METERS)
    target = path.with_name("o" + path.name)
    quantise_table(path, target, MEAN, text=text)
    header, *rows = rows_of(target, text)
    assert header == ["house", "records", "mean_kwh"]
    assert [row[:2] for row in rows] == [["hé", "2"], ["b", "1"]]
    assert all(0 <= float(row[2]) <= 10 for row in rows)


@pytest.mark.parametrize("way", WAYS)
def test_standard_input_is_read_twice_all_the_same(tmp_path, monkeypatch, way):
    path, text = written(tmp_path, way, METERS)
    target = path.with_name("o" + path.name)
    monkeypatch.setattr("sys.stdin", StandardInput(path.read_bytes()))
    quantise_table("-", target, IDENTITY, text=text, records={"keep": "all"})
    assert [row[1] for row in rows_of(target, text)[1:]] == ["2.5", "7.5", "2.5"]


def test_the_name_of_the_release_says_how_it_is_compressed(tmp_path):
    path, _ = written(tmp_path, "plain", METERS)
    quantise_table(path, tmp_path / "o.csv.gz", IDENTITY)
    quantise_table(path, tmp_path / "o.csv", IDENTITY)
    assert (
        gzip.decompress((tmp_path / "o.csv.gz").read_bytes())
        == (tmp_path / "o.csv").read_bytes()
    )
    quantise_table(path, tmp_path / "m.csv.gz", MEAN)
    assert gzip.decompress((tmp_path / "m.csv.gz").read_bytes()).startswith(
        b"house,records,mean_kwh\n"
    )


def test_a_group_that_needs_quotes_or_cannot_be_written(tmp_path):
    path, text = written(tmp_path, "plain", [("g", "kwh"), ('a,"b"\n', "1"), ("", "2")])
    quantise_table(
        path,
        tmp_path / "o.csv",
        QuantizeOptions(
            column="kwh",
            epsilon=1,
            query="sum",
            group_by=("g",),
            range_text="0,10",
            missing="symbol",
        ),
        text=text,
    )
    assert (
        (tmp_path / "o.csv").read_text().startswith('g,records,sum_kwh\n"a,""b""\n",1,')
    )
    path, text = written(tmp_path, "Latin-1", [("g", "kwh"), ("é", "1"), ("e", "2")])
    quantise_table(
        path,
        tmp_path / "p.csv",
        QuantizeOptions(
            column="kwh", epsilon=1, query="sum", group_by=("g",), range_text="0,10"
        ),
        text=text,
    )
    assert (
        (tmp_path / "p.csv")
        .read_bytes()
        .startswith("g,records,sum_kwh\né,1,".encode("latin-1"))
    )


@pytest.mark.parametrize("block", [8, 50, 1 << 20])
def test_batches_do_not_show(tmp_path, monkeypatch, block):
    rows = [("who", "day", "kwh")]
    rows += [
        (f"p{i % 40}", f"d{i // 40}", "" if i % 7 == 0 else f"{i % 10}.{i}")
        for i in range(200)
    ]
    path, _ = written(tmp_path, "plain", rows)
    monkeypatch.setattr(csv_blocks, "BLOCK", block)
    quantise_table(path, tmp_path / "o.csv", IDENTITY, records={"keep": "all"})
    released = rows_of(tmp_path / "o.csv", None)[1:]
    assert [row[:2] for row in released] == [[*row[:2]] for row in rows[1:] if row[2]]
    assert [row[2] for row in released] == [
        "2.5" if float(row[2]) < 5 else "7.5" for row in rows[1:] if row[2]
    ]
    grouped = QuantizeOptions(
        column="kwh",
        epsilon=3,
        query="sum",
        group_by=("day",),
        individual="who",
        range_text="0,10",
        missing="drop",
    )
    assert quantise_table(path, tmp_path / "s.csv", grouped).answers_each == 5
    _, *sums = rows_of(tmp_path / "s.csv", None)
    assert [row[0] for row in sums] == [f"d{k}" for k in range(5)]
    assert [int(row[1]) for row in sums] == [
        sum(bool(row[2]) for row in rows[1:] if row[1] == f"d{k}") for k in range(5)
    ]


@pytest.mark.parametrize(
    ("individual", "rows", "message"),
    [
        (
            "who",
            [("a", "1"), ("b", "2"), ("c", "3"), ("b", "4")],
            "an individual has several records in one group",
        ),
        (
            "who",
            [("", "1"), ("b", "2"), ("", "3")],
            "line 2: the column 'who' is empty there",
        ),
        (
            None,
            [("a", "1"), ("b", "many")],
            "line 3: the column 'kwh' holds no finite number",
        ),
    ],
)
@pytest.mark.parametrize("block", [4, 1 << 20])
def test_messages_count_the_records_of_the_file(
    tmp_path, monkeypatch, block, individual, rows, message
):
    monkeypatch.setattr(csv_blocks, "BLOCK", block)
    path, _ = written(tmp_path, "plain", [("who", "kwh"), *rows])
    options = QuantizeOptions(
        column="kwh", epsilon=1, query="sum", range_text="0,10", individual=individual
    )
    with pytest.raises(InputError, match=message):
        quantise_table(path, tmp_path / "o.csv", options)
    assert not (tmp_path / "o.csv").exists()


def test_notes_of_pandas_stay_true_of_a_column_that_becomes_doubles_and_those_of_spark_go(
    tmp_path,
):
    frame = pd.DataFrame({"kwh": [1, 9, 4], "job": ["a", "b", "c"]})
    table = pa.Table.from_pandas(frame)
    notes = {**table.schema.metadata, SPARK: b"{}"}
    pq.write_table(
        table.replace_schema_metadata(notes),
        tmp_path / "in.parquet",
        compression="zstd",
    )
    quantise_table(
        tmp_path / "in.parquet",
        tmp_path / "out.parquet",
        IDENTITY,
        records={"keep": "all"},
    )
    read = pd.read_parquet(io.BytesIO((tmp_path / "out.parquet").read_bytes()))
    pd.testing.assert_frame_equal(
        read, pd.DataFrame({"kwh": [2.5, 7.5, 2.5], "job": ["a", "b", "c"]})
    )
    copy = pq.read_metadata(tmp_path / "out.parquet")
    assert SPARK not in copy.metadata  # Spark then reads the types of the file
    assert copy.row_group(0).column(0).compression == "ZSTD"


def test_a_parquet_release_is_not_compressed_on_top(tmp_path):
    path, _ = written(tmp_path, "Parquet", METERS)
    with pytest.raises(InputError, match="cannot be packed with gzip on top"):
        quantise_table(path, tmp_path / "o.gz", MEAN)


def test_cells_without_quotes_cannot_hold_a_delimiter(tmp_path):
    path, text = written(tmp_path, "no quotes", [("g", "kwh"), ("a", "1"), ("b", "2")])
    quantise_table(
        path,
        tmp_path / "o.csv",
        QuantizeOptions(
            column="kwh", epsilon=1, query="sum", group_by=("g",), range_text="0,10"
        ),
        text=text,
    )
    assert (
        (tmp_path / "o.csv")
        .read_text()
        .startswith(csv_text([("g", "records", "sum_kwh")], delimiter="|"))
    )


@pytest.mark.parametrize("kind", ["halffloat", "float", "double"])
@pytest.mark.parametrize("options", [IDENTITY, MEAN])
def test_nan_of_a_parquet_file_is_an_empty_cell(tmp_path, kind, options):
    """As it is in every other command: pandas stores a missing number so."""
    path, target = tmp_path / "in.parquet", tmp_path / "out.parquet"
    kwh = pa.array([1.5, 9.75, float("nan"), 2.5]).cast(kind)
    pq.write_table(pa.table({"house": ["a", "b", "a", "a"], "kwh": kwh}), path)
    release = quantise_table(path, target, options)
    assert release.records == 3
    assert any("dropped 1 of 4 record(s)" in notice for notice in release.notices)
    for missing, refusal in (
        ("refuse", "say .*drop"),
        ("symbol", "a number is wanted"),
    ):
        with pytest.raises(InputError, match=f"row 3: the column 'kwh' is .*{refusal}"):
            quantise_table(
                path, tmp_path / "no.parquet", replace(options, missing=missing)
            )
