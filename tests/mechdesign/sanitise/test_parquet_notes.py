from __future__ import annotations

import json

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mechdesign.formats.outputs import SPARK, free_notes
from mechdesign.sanitise.apply import sanitise_file
from mechdesign.sanitise.frames import sanitise


def field(name, kind="string", **metadata):
    return {"name": name, "type": kind, "nullable": True, "metadata": metadata}


def release(channel, tmp_path, table, **options):
    pq.write_table(table, tmp_path / "in.parquet")
    done = sanitise_file(
        channel, tmp_path / "in.parquet", tmp_path / "out.parquet", insecure_seed=1, **options
    )
    return done, pq.read_schema(tmp_path / "out.parquet").metadata or {}


@pytest.mark.parametrize(
    ("into", "expected"),
    [
        (None, [field("id", "long", comment="kept"), field("job")]),
        ([["new"]], [field("id", "long", comment="kept"), field("job", "integer", vals=["a"]), field("new")]),
    ],
)
def test_the_schema_of_spark_is_that_of_the_output(channel, tmp_path, into, expected):
    fields = [field("id", "long", comment="kept"), field("job", "integer", vals=["a"])]
    notes = json.dumps({"type": "struct", "fields": fields})
    table = pa.table({"id": [1, 2], "job": ["a", "c"]}).replace_schema_metadata({SPARK: notes})
    done, metadata = release(channel, tmp_path, table, into=into)
    assert json.loads(metadata[SPARK]) == {"type": "struct", "fields": expected}
    assert not [text for text in done.notices if "notes" in text]
    released = sanitise(table, channel, insecure_seed=1, into=into)
    assert json.loads(released.schema.metadata[SPARK]) == {"type": "struct", "fields": expected}


def test_columns_that_are_crossed_are_one_for_spark(crossed, tmp_path):
    notes = json.dumps({"type": "struct", "fields": [field("job"), field("city")]})
    table = pa.table({"job": ["a"], "city": ["p"]}).replace_schema_metadata({SPARK: notes})
    assert json.loads(release(crossed, tmp_path, table)[1][SPARK])["fields"] == [field("city,job")]


@pytest.mark.parametrize(
    ("key", "text"),
    [(key, text) for key in (SPARK, b"pandas") for text in ("", "no JSON", "[]", '"x"', '{"columns": 1}')]
    + [(SPARK, "{}"), (SPARK, '{"fields": 1}'), (SPARK, '{"fields": [{"name": "other"}]}')],
)
def test_notes_that_are_not_understood_are_left_out(channel, tmp_path, key, text):
    table = pa.table({"id": [1], "job": ["a"]}).replace_schema_metadata({key: text})
    assert key not in release(channel, tmp_path, table)[1]


def test_free_notes_are_told_of(channel, tmp_path):
    frame = pd.DataFrame({"job": ["a", "c"]})
    assert free_notes(pa.Table.from_pandas(frame).schema.metadata) == []
    frame.attrs["best"] = "a"
    table = pa.Table.from_pandas(frame)
    told = free_notes(table.schema.metadata | {b"remark": b"all of them a"})
    assert told[-2:] == ["remark", "pandas: attributes"]
    done, metadata = release(channel, tmp_path, table.replace_schema_metadata({"remark": "all of them a"}))
    assert [
        text for text in done.notices if "the file's own notes stay as they are: 'remark'; see that" in text
    ]
    assert metadata[b"remark"] == b"all of them a"
    assert free_notes({b"pandas": b"no JSON"}) == []
    assert free_notes(None) == []
