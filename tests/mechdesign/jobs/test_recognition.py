"""The same records are known again, whatever wrote them and however often they stand there."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from mechdesign.core.errors import InputError
from mechdesign.formats.census import Content
from mechdesign.formats.digests import RowHasher, moments_of
from mechdesign.jobs.release_file import sanitise_file
from tests.cases.released_records import mixing_channel

CHANNEL = mixing_channel()
RECORDS = 300
JOBS = np.random.default_rng(1).choice([*"abc"], RECORDS)
SECONDS = np.random.default_rng(2).permutation(RECORDS) * 86_400 + 1_700_000_000
HASHER = RowHasher(bytes(range(32)))


def table(kind: str) -> pa.Table:
    if kind == "float32":
        column = pa.array(np.random.default_rng(3).random(RECORDS), pa.float32())
    elif kind == "midnight":
        column = pa.array(SECONDS // 86_400 * 86_400, pa.timestamp("s"))
    elif kind == "date":
        column = pa.array(SECONDS // 86_400, pa.int32()).cast(pa.date32())
    elif kind == "zoned midnight":
        column = pa.array(SECONDS // 86_400 * 86_400, pa.timestamp("s", "UTC"))
    elif kind == "zoned":
        column = pa.array(SECONDS, pa.timestamp("s", "UTC"))
    elif kind == "Berlin":
        column = pa.array(SECONDS * 1000 + 250, pa.timestamp("ms", "Europe/Berlin"))
    else:
        ticks = SECONDS * 10**9 + np.arange(RECORDS) * 1000
        column = pa.array(ticks, pa.timestamp("ns"))
    return pa.table({"job": JOBS, "x": column})


def write_csv(records: pa.Table, writer: str, path) -> None:
    if writer == "pandas":
        records.to_pandas().to_csv(path, index=False)
    elif writer == "pyarrow":
        pyarrow.csv.write_csv(records, path)
    elif writer == "polars":
        pytest.importorskip("polars").from_arrow(records).write_csv(path)
    else:
        duckdb = pytest.importorskip("duckdb")
        duckdb.from_arrow(records).to_csv(str(path), header=True)


def written():
    """Every other pair of a kind and a writer; the others are for the slow tests."""
    writers = ("pandas", "pyarrow", "polars", "duckdb")
    kinds = ("float32", "midnight", "date", "zoned midnight", "zoned", "Berlin", "ns")
    for a, kind in enumerate(kinds):
        for b, writer in enumerate(writers):
            marks = [pytest.mark.slow] if (a + b) % 2 else []
            yield pytest.param(kind, writer, marks=marks)


@pytest.mark.parametrize(("kind", "writer"), [*written()])
def test_a_table_is_known_again_as_the_csv_of_every_writer(tmp_path, kind, writer):
    if kind == "ns" and writer == "duckdb":
        pytest.skip("DuckDB has no text of nanoseconds without a cut")
    records = table(kind)
    pq.write_table(records, tmp_path / "in.parquet")
    options = {"ledger": tmp_path / "l.db"}
    sanitise_file(CHANNEL, tmp_path / "in.parquet", tmp_path / "out.parquet", **options)
    write_csv(records, writer, tmp_path / "in.csv")
    # In the same order they get the same draws.
    sanitise_file(CHANNEL, tmp_path / "in.csv", tmp_path / "out.csv", **options)
    drawn = pd.read_csv(tmp_path / "out.csv")["job"].tolist()
    assert drawn == pq.read_table(tmp_path / "out.parquet")["job"].to_pylist()
    # In another order they would be drawn again.
    write_csv(records.take(np.arange(RECORDS)[::-1]), writer, tmp_path / "back.csv")
    with pytest.raises(InputError, match="these records have been released"):
        sanitise_file(CHANNEL, tmp_path / "back.csv", tmp_path / "b.csv", **options)


def test_doubled_rows_are_the_same_records(tmp_path):
    frame = pd.DataFrame({"n": range(RECORDS), "job": JOBS})
    options = {"ledger": tmp_path / "l.db", "keep_order": True, "unit": "record"}
    frame.to_csv(tmp_path / "in.csv", index=False)
    doubled = pd.concat([frame, frame]).sort_values("n")
    doubled.to_csv(tmp_path / "twice.csv", index=False)
    sanitise_file(CHANNEL, tmp_path / "in.csv", tmp_path / "out.csv", **options)
    with pytest.raises(InputError, match="these records have been released"):
        sanitise_file(CHANNEL, tmp_path / "twice.csv", tmp_path / "2.csv", **options)


def test_single_rows_are_the_records_that_were_doubled_before(tmp_path):
    frame = pd.DataFrame({"n": range(9000), "job": np.resize(JOBS, 9000)})
    options = {"ledger": tmp_path / "l.db", "keep_order": True, "unit": "record"}
    frame.to_csv(tmp_path / "in.csv", index=False)
    tripled = pd.concat([frame, frame, frame])
    tripled.to_csv(tmp_path / "three.csv", index=False)
    sanitise_file(CHANNEL, tmp_path / "three.csv", tmp_path / "3.csv", **options)
    with pytest.raises(InputError, match="these records have been released"):
        sanitise_file(CHANNEL, tmp_path / "in.csv", tmp_path / "out.csv", **options)


@pytest.mark.parametrize("kind", ["float32", "zoned", "date"])
def test_a_release_of_an_earlier_version_is_known_by_the_reading_of_that(
    tmp_path, kind, monkeypatch
):
    """Its ledger has the hashes of texts alone."""
    records = table(kind)
    pq.write_table(records, tmp_path / "in.parquet")
    options = {"ledger": tmp_path / "l.db"}
    with monkeypatch.context() as patch:
        patch.setattr(RowHasher, "_difference", lambda self, column: None)
        sanitise_file(
            CHANNEL, tmp_path / "in.parquet", tmp_path / "1.parquet", **options
        )
    pq.write_table(records, tmp_path / "again.parquet", compression="zstd")
    sanitise_file(
        CHANNEL, tmp_path / "again.parquet", tmp_path / "2.parquet", **options
    )
    assert pq.read_table(tmp_path / "1.parquet") == pq.read_table(
        tmp_path / "2.parquet"
    )
    back = records.take(np.arange(RECORDS)[::-1])
    pq.write_table(back, tmp_path / "back.parquet")
    with pytest.raises(InputError, match="these records have been released"):
        sanitise_file(
            CHANNEL, tmp_path / "back.parquet", tmp_path / "3.parquet", **options
        )


SAME = [
    "2026-11-23T08:00:00.000000+0000",
    "2026-11-23 08:00:00+00:00",
    "2026-11-23 08:00Z",
    "2026-11-23 09:30:00.000+01:30",
    "2026-11-23 03:00:00-05",
]


def test_moments_of_texts():
    moments = moments_of(pa.array([*SAME, None, "x"]))
    assert moments.places.tolist() == [0, 1, 2, 3, 4]
    assert len(np.unique(moments.values)) == 1
    naive = moments_of(
        pa.array(["2026-11-23", "2026-11-23 00:00:00.0", "2026-11-23T00:00"])
    )
    assert len(np.unique(naive.values)) == 1
    assert naive.values[0] != moments.values[0]
    for text in ("2026-02-31", "2026-1-1", "1e5", "", "2026-11-23 08:00:00 UTC"):
        assert moments_of(pa.array([text])) is None
    assert moments_of(pa.array([], pa.string())) is None
    fraction = moments_of(pa.array(["2026-11-23 08:00:00.12"]))
    assert fraction.values["nanoseconds"].tolist() == [120_000_000]
    before = moments_of(pa.array([-1], pa.timestamp("ms")))
    assert before.values.tolist() == [(-1, 999_000_000, 0)]


def test_tables_without_such_columns_have_one_reading():
    columns = [pa.array(["a", "b", "7"]), pa.array([1.5, 2.0, 0.1])]
    assert HASHER.content(columns, 3).as_text is None
    whole = [pa.array([1, 2, 3], pa.float32())]
    assert HASHER.content(whole, 3).as_text is None
    dated = HASHER.content([pa.array(["2026-11-23", "x", "y"])], 3)
    assert dated.as_text is not None
    assert dated.unordered != dated.as_text.unordered


def test_the_content_of_a_sample_is_that_of_the_whole():
    content = HASHER.content([pa.array([str(i) for i in range(9000)])], 9000)
    again = Content.of_sample(
        content.sample(), records=9000, unordered=content.unordered
    )
    assert again.share_in([content.sample()]) == 1.0
    assert again.sample() == content.sample()
