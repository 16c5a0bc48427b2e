from __future__ import annotations

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mechdesign import sanitise
from mechdesign.formats.parquet_sink import SPARK, free_notes
from mechdesign.jobs.release_file import sanitise_file


def release(channel, tmp_path, table, **options):
    pq.write_table(table, tmp_path / "in.parquet")
    done = sanitise_file(
        channel,
        tmp_path / "in.parquet",
        tmp_path / "out.parquet",
        insecure_seed=1,
        keep="all",
        **options,
    )
    return done, pq.read_schema(tmp_path / "out.parquet").metadata or {}


def test_the_schema_of_spark_is_left_out(channel, tmp_path):
    """Spark then reads the types of the file."""
    table = pa.table({"id": [1, 2], "job": ["a", "c"]}).replace_schema_metadata(
        {SPARK: "{}", "kept": "so"}
    )
    assert set(release(channel, tmp_path, table)[1]) == {b"kept"}
    # Frames drop all notes: nobody can tell what they hold.
    assert sanitise(table, channel, insecure_seed=1).schema.metadata is None


@pytest.mark.parametrize(
    ("key", "text"),
    [(b"pandas", text) for text in ("", "no JSON", "[]", '"x"', '{"columns": 1}')],
)
def test_notes_that_are_not_understood_are_left_out(channel, tmp_path, key, text):
    table = pa.table({"id": [1], "job": ["a"]}).replace_schema_metadata({key: text})
    assert key not in release(channel, tmp_path, table)[1]


def test_free_notes_are_told_of(channel, tmp_path):
    frame = pd.DataFrame({"job": ["a", "c"]})
    assert free_notes(pa.Table.from_pandas(frame).schema) == []
    frame.attrs["best"] = "a"
    table = pa.Table.from_pandas(frame)
    told = free_notes(
        table.schema.with_metadata(
            table.schema.metadata | {b"remark": b"all of them a"}
        )
    )
    assert told[-2:] == ["remark", "pandas: attributes"]
    done, metadata = release(
        channel, tmp_path, table.replace_schema_metadata({"remark": "all of them a"})
    )
    assert [
        text
        for text in done.notices
        if "the file's own notes stay as they are: 'remark'; see that" in text
    ]
    assert metadata[b"remark"] == b"all of them a"
    assert free_notes(pa.schema([], {b"pandas": b"no JSON"})) == []
    assert free_notes(
        pa.schema([pa.field("id", pa.int8(), metadata={"who": "all a"})])
    ) == ["id: who"]
