"""What Parquet keeps beside the cells (dictionaries, statistics, row groups, metadata) holds what was released alone."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mechdesign.core.errors import InputError
from mechdesign.formats.arrow_arrays import KeptColumn, released_dictionary
from mechdesign.formats.parquet_sink import ParquetLayout, ParquetSink
from mechdesign.frames.sanitising import sanitise
from mechdesign.jobs.release_file import sanitise_file
from mechdesign.leaks.inspection import inspect_file
from mechdesign.nonstochastic.quantize_table import QuantizeOptions, quantise_table
from tests.cases.released_records import mixing_channel

HOUSES = 50


def sorted_table(records: int = 1000) -> pa.Table:
    """Records sorted by job, in households of neighbours."""
    jobs = sorted("abc"[i % 3] for i in range(records))
    houses = [f"h{i * HOUSES // records:03}" for i in range(records)]
    return pa.table({"job": jobs, "house": houses})


def dictionaries(path, column) -> list[list[str]]:
    """The dictionary page of every row group, as it is stored."""
    pages: list[list[str]] = []
    with pq.ParquetFile(path, read_dictionary=[column]) as file:
        for group in range(file.num_row_groups):
            coded = file.read_row_group(group)[column].chunk(0)
            pages.append(coded.dictionary.to_pylist())
    return pages


def in_order_of_records(path, column) -> None:
    """The dictionary of each row group is the values of its records by first appearance."""
    with pq.ParquetFile(path) as file:
        for group, page in enumerate(dictionaries(path, column)):
            cells = file.read_row_group(group)[column].to_pylist()
            assert page == list(
                dict.fromkeys(cell for cell in cells if cell is not None)
            )


@pytest.mark.parametrize("source", ["plain", "coded", "csv", "view"])
def test_a_shuffle_leaves_no_trace_of_the_order_in_a_dictionary(
    channel, tmp_path, source
):
    table = sorted_table()
    path = tmp_path / "in.parquet"
    if source == "csv":
        path = tmp_path / "in.csv"
        path.write_text(table.to_pandas().to_csv(index=False))
    elif source == "coded":
        coded = table["house"].combine_chunks().dictionary_encode()
        pq.write_table(table.set_column(1, "house", coded), path)
    elif source == "view":
        views = table["house"].combine_chunks().cast(pa.string_view())
        pq.write_table(table.set_column(1, "house", views), path)
    else:
        pq.write_table(table, path)
    out = tmp_path / "out.parquet"
    sanitise_file(
        channel,
        path,
        out,
        # The houses have alike jobs, as people have.
        unit="record",
        keep="house",
        shuffle=True,
        format="parquet",
        insecure_seed=1,
    )
    released = pq.read_table(out)
    assert sorted(released["house"].to_pylist()) == sorted(table["house"].to_pylist())
    in_order_of_records(out, "house")
    for page in dictionaries(out, "house"):
        assert page != sorted(page)


def test_codes_of_equal_values_become_one():
    """Two codes of one value would tell their records apart."""
    column = pa.DictionaryArray.from_arrays(
        pa.array([2, 0, 1, None, 2]), pa.array(["u", "u", "v", "of nobody"])
    )
    coded = released_dictionary(column)
    assert coded.dictionary.to_pylist() == ["v", "u"]
    assert coded.to_pylist() == column.to_pylist()


@pytest.mark.parametrize("kind", ["list", "struct", "map"])
def test_dictionaries_inside_lists_and_structures_are_no_longer_there(
    channel, tmp_path, kind
):
    values = pa.array(["x", "y", "hidden", "x"]).dictionary_encode()
    inner = values.take(pa.array([0, 1, 0, 1]))
    if kind == "list":
        column = pa.ListArray.from_arrays(pa.array([0, 2, 4], pa.int32()), inner)
    elif kind == "struct":
        column = pa.StructArray.from_arrays([inner], ["x"])
    else:
        keys = pa.array(["p", "q", "p", "q"])
        column = pa.MapArray.from_arrays(pa.array([0, 2, 4], pa.int32()), keys, inner)
    schema = pa.schema([("nested", column.type)])
    path = tmp_path / "out.parquet"
    with (
        open(path, "wb") as stream,
        ParquetSink(ParquetLayout(schema), stream, [KeptColumn(0)]) as sink,
    ):
        sink.write_packed(pa.RecordBatch.from_arrays([column], schema=schema))
    assert b"hidden" not in path.read_bytes()
    assert pq.read_table(path)["nested"].to_pylist() == column.to_pylist()


def test_dropped_individuals_are_in_no_dictionary_statistic_or_row_group(tmp_path):
    records = 400
    numbers = np.arange(records) % 40
    numbers[7::50] = 900
    people = [f"person{i // 2:03}" for i in range(records)]
    table = pa.table({"kwh": numbers.astype(float), "who": people})
    pq.write_table(table, tmp_path / "in.parquet", row_group_size=100)
    out = tmp_path / "out.parquet"
    quantise_table(
        tmp_path / "in.parquet",
        out,
        QuantizeOptions(column="kwh", epsilon=2, range_text="0,40", outside="drop"),
        records={"keep": "who"},
    )
    kept = [who for who, number in zip(people, numbers, strict=True) if number <= 40]
    assert pq.read_table(out)["who"].to_pylist() == kept
    in_order_of_records(out, "who")
    metadata = pq.read_metadata(out)
    assert metadata.num_row_groups == 1, "row groups of 98 would tell where 2 are gone"
    statistics = metadata.row_group(0).column(1).statistics
    assert (statistics.min, statistics.max) == (min(kept), max(kept))


def test_views_of_text_are_shuffled_and_dropped_as_text_is(channel, tmp_path):
    views = pa.array(["long text that is no short view", None, "b"] * 20)
    table = pa.table(
        {"job": ["a", "b", "c"] * 20, "note": views.cast(pa.string_view())}
    )
    pq.write_table(table, tmp_path / "in.parquet")
    sanitise_file(
        channel,
        tmp_path / "in.parquet",
        tmp_path / "out.parquet",
        keep="note",
        shuffle=True,
    )
    released = pq.read_table(tmp_path / "out.parquet")
    assert released["note"].type == pa.string_view()
    notes = Counter(released["note"].to_pylist())
    assert notes == Counter(views.to_pylist())


def test_notes_of_a_file_stay_only_with_all_of_its_columns(channel, tmp_path):
    """Metadata, attributes of a frame, notes on columns, and the range of its row numbers."""
    frame = pd.DataFrame({"job": ["a"] * 60, "n": range(60)}, index=range(700, 760))
    frame.attrs = {"about": "secret attribute"}
    table = pa.Table.from_pandas(frame)
    schema = table.schema.with_metadata(
        {**table.schema.metadata, b"history": b"secret history"}
    )
    noted = schema.field("n").with_metadata({b"unit": b"secret unit"})
    pq.write_table(table.cast(schema.set(1, noted)), tmp_path / "in.parquet")
    out = tmp_path / "out.parquet"
    sanitise_file(channel, tmp_path / "in.parquet", out, keep="n")
    assert b"secret" not in out.read_bytes()
    released = pq.read_table(out)
    assert b"700" not in released.schema.metadata[b"pandas"]
    assert b"secret" not in released.schema.serialize().to_pybytes()
    assert pd.read_parquet(out)["n"].tolist() == list(range(60))
    applied = sanitise_file(
        channel, tmp_path / "in.parquet", tmp_path / "all.parquet", keep="all"
    )
    assert any("notes stay" in notice for notice in applied.notices)
    assert pq.read_table(tmp_path / "all.parquet").schema.metadata[b"history"]


JOBS = sorted("abc"[i % 3] for i in range(900))


@pytest.mark.parametrize("keep", ["n", "all"])
@pytest.mark.parametrize(
    "texts", [range(900), [f"id{i}" for i in range(900)], range(900, 0, -1)]
)
def test_a_column_that_rises_in_the_refused_order_is_refused_with_a_shuffle(
    channel, tmp_path, keep, texts
):
    pd.DataFrame({"job": JOBS, "n": texts}).to_csv(tmp_path / "in.csv", index=False)
    files = (tmp_path / "in.csv", tmp_path / "out.csv")
    with pytest.raises(InputError, match=r"'n' rises or falls with the order .*'job'"):
        sanitise_file(channel, *files, keep=keep, shuffle=True)
    assert not files[1].exists()
    # An order that discloses nothing may come back.
    mixed = np.random.default_rng(3).permutation(JOBS)
    pd.DataFrame({"job": mixed, "n": texts}).to_csv(tmp_path / "in.csv", index=False)
    sanitise_file(channel, *files, keep=keep, shuffle=True)


def test_copies_of_hundreds_of_values_and_pairs_are_refused_in_a_file(tmp_path):
    chance = np.random.default_rng(4)
    codes = chance.permutation(np.arange(60_000) % 600)
    channel = mixing_channel()
    jobs = np.array([*"abc"])[codes % 3]
    pad = chance.integers(0, 3, 60_000)
    frame = pd.DataFrame(
        {"job": jobs, "code": codes, "u": pad, "v": (codes + pad) % 3, "w": pad}
    )
    for suffix in ("csv", "parquet"):
        path = tmp_path / f"in.{suffix}"
        if suffix == "csv":
            frame.to_csv(path, index=False)
        else:
            frame.to_parquet(path, index=False)
        out = tmp_path / f"out.{suffix}"
        with pytest.raises(InputError, match="the column 'code' stands for"):
            sanitise_file(channel, path, out, keep="all")
        with pytest.raises(InputError, match="columns 'u' and 'v' together stand for"):
            sanitise_file(channel, path, out, keep="all", drop=["code", "w"])
        sanitise_file(channel, path, out, keep="all", drop=["code", "v"])
        sanitise_file(channel, path, out, keep=["u", "v"], force=True)


def test_more_than_thirty_kept_columns_are_noted(channel, tmp_path):
    frame = pd.DataFrame({f"c{i}": range(40) for i in range(31)})
    frame["job"] = "a"
    frame.to_csv(tmp_path / "in.csv", index=False)
    applied = sanitise_file(
        channel, tmp_path / "in.csv", tmp_path / "out.csv", keep="all"
    )
    assert any("no two together" in notice for notice in applied.notices)
    applied = sanitise_file(
        channel, tmp_path / "in.csv", tmp_path / "o.csv", keep="all", drop="c0"
    )
    assert applied.notices == ()


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("keep", [None, ["n"], ["n", "note"]])
@pytest.mark.parametrize("shuffle", [False, True])
def test_line_breaks_tell_no_records_apart(channel, tmp_path, newline, keep, shuffle):
    """The break after a record could be another one for each symbol."""
    jobs = np.random.default_rng(1).choice([*"abc"], 900)
    lines = [f"n,job,note{newline}"]
    for n, job in enumerate(jobs):
        lines.append(f'{n % 7},{job},"a\nb"' + ("\r\n" if job == "a" else "\n"))
    (tmp_path / "in.csv").write_text("".join(lines), newline="")
    options = {"keep": keep, "shuffle": shuffle, "insecure_seed": 1}
    sanitise_file(channel, tmp_path / "in.csv", tmp_path / "out.csv", **options)
    even = "".join(lines).replace("\r\n", "\n").replace("\n", newline)
    even = even.replace(f"a{newline}b", "a\nb")
    (tmp_path / "even.csv").write_text(even, newline="")
    sanitise_file(channel, tmp_path / "even.csv", tmp_path / "2.csv", **options)
    released = (tmp_path / "out.csv").read_bytes()
    assert released.count(newline.encode()) >= 901
    if not shuffle:
        assert released == (tmp_path / "2.csv").read_bytes()
    elif newline == "\n":
        assert b"\r" not in released
    else:
        assert released.replace(b"a\nb", b"").count(b"\n") == released.count(b"\r\n")


COPIES = {
    "bytes": lambda codes: pa.array([bytes([code]) for code in codes]),
    "list": lambda codes: pa.array([[code, 1] for code in codes]),
    "struct": lambda codes: pa.array([{"k": code} for code in codes]),
    "duration": lambda codes: pa.array(codes, pa.duration("s")),
}


@pytest.mark.parametrize("kind", COPIES)
def test_copies_that_are_no_text_are_refused(channel, tmp_path, kind):
    codes = np.random.default_rng(1).integers(0, 3, 5000)
    jobs = np.array([*"abc"])[codes]
    table = pa.table({"job": jobs, "x": COPIES[kind](codes.tolist())})
    pq.write_table(table, tmp_path / "in.parquet")
    with pytest.raises(InputError, match="the column 'x' stands for the useful column"):
        sanitise_file(
            channel, tmp_path / "in.parquet", tmp_path / "out.parquet", keep="all"
        )
    with pytest.raises(InputError, match="the column 'x' stands for the useful column"):
        sanitise(table, channel, keep="all", insecure_seed=1)
    told = inspect_file(mixing_channel(), tmp_path / "in.parquet").columns[0]
    assert told.about["job"].stands_for
    unrelated = pa.table({"job": jobs, "x": COPIES[kind](codes[::-1].tolist())})
    assert sanitise(unrelated, channel, keep="all", insecure_seed=1).num_rows == 5000
