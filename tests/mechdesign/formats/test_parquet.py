from __future__ import annotations

import datetime as dt
import decimal
import gc
import io
import json
import struct
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mechdesign.core.errors import InputError
from mechdesign.core.files import NamelessFile
from mechdesign.formats import parquet as parquet_stream
from mechdesign.formats import parquet_sink
from mechdesign.formats.arrow_arrays import KeptColumn, WrittenColumn
from mechdesign.formats.opening import open_source, packing_of


class Point(pa.ExtensionType):
    """An extension type that Arrow does not know by itself."""

    def __init__(self):
        super().__init__(
            pa.struct([("x", pa.float64()), ("y", pa.float64())]), "tests.point"
        )

    def __arrow_ext_serialize__(self):
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type, serialized):
        return cls()


@pytest.fixture(autouse=True)
def _point():
    pa.register_extension_type(Point())
    yield
    pa.unregister_extension_type("tests.point")


EVERYTHING = {
    "text": pa.array(["x", None, "", "é"]),
    "same": pa.array(["x", "x", None, "x"]),
    "large": pa.array(["x", None, "", "x"], pa.large_string()),
    "view": pa.array(["x", None, "", "a text longer than twelve"], pa.string_view()),
    "bytes": pa.array([b"\x00", None, b"", b"\xff"]),
    "fixed": pa.array([b"ab", None, b"cd", b"ab"], pa.binary(2)),
    "a.b": pa.array(["p", "q", "p", "q"]),
    "int": pa.array([2**63 - 1, None, -(2**63), 0], pa.int64()),
    "byte": pa.array([1, 2, None, 255], pa.uint8()),
    "unsigned": pa.array([1, 2, None, 2**64 - 1], pa.uint64()),
    "float": pa.array([0.1, float("nan"), None, -0.0]),
    "half": pa.array([0.5, None, 1.5, -0.0], pa.float32()),
    "money": pa.array(
        [
            decimal.Decimal("1.10"),
            None,
            decimal.Decimal("0.01"),
            decimal.Decimal("9.99"),
        ]
    ),
    "wide": pa.array(
        [decimal.Decimal(10**60), None, decimal.Decimal(0), decimal.Decimal(1)],
        pa.decimal256(70, 2),
    ),
    "flag": pa.array([True, None, False, True]),
    "day": pa.array(
        [dt.date(2024, 1, 31), None, dt.date(1900, 1, 1), dt.date(2100, 1, 1)]
    ),
    "second": pa.array([1, None, 3, 4], pa.timestamp("s")),
    "milli": pa.array([1, None, 3, 4], pa.timestamp("ms", "UTC")),
    "nano": pa.array([1, None, 3, 4], pa.timestamp("ns", "Europe/Berlin")),
    "time": pa.array([1, None, 3, 4], pa.time32("ms")),
    "span": pa.array([1, None, 3, 4], pa.duration("ms")),
    "kind": pa.array(["u", None, "v", "u"]).dictionary_encode(),
    "order": pa.DictionaryArray.from_arrays(
        pa.array([0, 1, None, 0], pa.int8()), ["lo", "hi"], ordered=True
    ),
    "codes": pa.array([7, None, 8, 7]).dictionary_encode(),
    "list": pa.array([[1], None, [], [2, None]]),
    "large list": pa.array([["a"], None, [], ["b", None]], pa.large_list(pa.string())),
    "pair": pa.array([[1, 2], None, [3, 4], [5, None]], pa.list_(pa.int16(), 2)),
    "record": pa.array(
        [{"k": 1, "l": ["z"]}, None, {"k": None, "l": []}, {"k": 2, "l": None}]
    ),
    "map": pa.array(
        [[("a", 1)], None, [], [("b", None)]], pa.map_(pa.string(), pa.int32())
    ),
    "point": pa.ExtensionArray.from_storage(
        Point(),
        pa.array(
            [{"x": 1.0, "y": 2.0}, None, {"x": 0.0, "y": 0.0}, None],
            Point().storage_type,
        ),
    ),
    "json": pa.ExtensionArray.from_storage(
        pa.json_(pa.string()), pa.array(["{}", None, "[]", "1"])
    ),
    "nothing": pa.nulls(4),
}


def everything():
    fields = [
        pa.field(name, column.type, metadata={"about": f"the column {name}"})
        for name, column in EVERYTHING.items()
    ]
    return pa.Table.from_arrays(
        list(EVERYTHING.values()), schema=pa.schema(fields, {"about": "people"})
    )


def stored(table, **options):
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


def copied(data, outputs, fresh=(), encode=(), read=()):
    """What the sink makes of a file, if every written column holds the same text in all rows."""
    target = io.BytesIO()
    with (
        open_source(io.BytesIO(data), name="in.parquet") as source,
        source.sink(target, outputs) as sink,
    ):
        for batch in source.batches(encode=encode, read=read):
            sink.write(
                batch,
                [pa.array([text] * batch.num_rows, pa.string()) for text in fresh],
            )
        assert sink.records == source.records == source.position == source.size
    assert not target.closed
    return target.getvalue()


def table_of(data):
    return pq.read_table(io.BytesIO(data))


def metadata_of(data):
    return pq.read_metadata(io.BytesIO(data))


def all_kept(table):
    return [KeptColumn(i) for i in range(table.num_columns)]


def assert_same(data, other):
    """Schema with all its notes, and values; as text, since NaN differs from NaN."""
    before, after = table_of(data), table_of(other)
    assert after.schema.equals(before.schema, check_metadata=True)
    assert str(after.to_pylist()) == str(before.to_pylist())
    after.validate(full=True)


@pytest.mark.parametrize("encode", [[], list(EVERYTHING)], ids=["plain", "encoded"])
@pytest.mark.parametrize("dictionary", [True, False])
@pytest.mark.parametrize("arrow", [True, False])
def test_every_type_stays(monkeypatch, encode, dictionary, arrow):
    table = everything()
    if not arrow:
        table = table.drop_columns(["half", "large", "view", "json", "point"])
    encode = [name for name in encode if name in table.column_names]
    data = stored(
        table, use_dictionary=dictionary, store_schema=arrow, row_group_size=3
    )
    copy = copied(data, all_kept(table), encode=encode)
    assert_same(data, copy)
    assert (b"ARROW:schema" in metadata_of(copy).metadata) == arrow
    monkeypatch.setattr(parquet_stream, "ROWS_PER_BATCH", 1)
    assert_same(data, copied(data, all_kept(table), encode=encode, read=encode[:3]))


@pytest.fixture
def few_at_once(monkeypatch):
    """The files in which columns wait, of which hardly any are read together."""
    monkeypatch.setattr(parquet_stream, "AT_ONCE", 600)
    made: list[NamelessFile] = []
    monkeypatch.setattr(
        parquet_stream, "NamelessFile", lambda: made.append(NamelessFile()) or made[-1]
    )
    return made


@pytest.mark.parametrize("encode", [[], list(EVERYTHING)], ids=["plain", "encoded"])
def test_every_type_stays_where_columns_are_read_in_turn(few_at_once, encode):
    table = everything()
    data = stored(table, row_group_size=3)
    assert_same(data, copied(data, all_kept(table), encode=encode))
    assert not few_at_once  # "a.b" might be a field of "a"
    table, encode = (
        table.drop_columns(["a.b"]),
        [name for name in encode if name != "a.b"],
    )
    data = stored(table, row_group_size=3)
    assert_same(data, copied(data, all_kept(table), encode=encode))
    assert len(few_at_once) >= 6
    assert not any(file.path.exists() for file in few_at_once)


def test_no_room_for_columns_that_wait(few_at_once, monkeypatch):
    monkeypatch.setattr(
        parquet_stream,
        "NamelessFile",
        lambda: SimpleNamespace(path="/dev/full", close=int),
    )
    table = everything().drop_columns(["a.b"])
    with pytest.raises(
        InputError,
        match=r"^in.parquet is so wide .* temporary files, which is full; .*\(TMPDIR\)$",
    ):
        copied(stored(table), all_kept(table))


def test_columns_to_encode_come_as_codes_where_they_can():
    table = everything()
    with open_source(io.BytesIO(stored(table)), name="in.parquet") as source:
        (batch,) = source.batches(encode=list(EVERYTHING), read=["text", "int"])
    for name, column in EVERYTHING.items():
        coded = pa.types.is_dictionary(batch.column(name).type)
        single = not (
            pa.types.is_nested(column.type)
            or isinstance(column.type, pa.BaseExtensionType)
        )
        assert coded == (single and name != "nothing"), name
        assert str(batch.column(name).to_pylist()) == str(column.to_pylist())


def test_columns_only_read_come_as_they_are():
    with open_source(io.BytesIO(stored(everything())), name="in.parquet") as source:
        (batch,) = source.batches(read=["same", "int", "large"])
    assert [batch.column(name).type for name in ("same", "int", "large")] == [
        pa.string(),
        pa.int64(),
        pa.large_string(),
    ]


def test_columns_written_added_and_left_out():
    table = pa.table({"id": [1, 2], "job": ["a", "b"], "n": [0.5, None]})
    outputs = [
        WrittenColumn("first"),
        KeptColumn(0),
        WrittenColumn("work", replaces=1),
        WrittenColumn("last"),
    ]
    copy = table_of(
        copied(stored(table), outputs, ["f", "{a, b}", None], encode=["job"])
    )
    assert copy.column_names == ["first", "id", "work", "last"]
    assert copy.to_pylist() == [
        {"first": "f", "id": i, "work": "{a, b}", "last": None} for i in (1, 2)
    ]
    assert copy.schema.field("work").type == pa.string()


@pytest.mark.parametrize("kind", ["dictionary", "large"])
def test_written_texts_of_any_type(kind):
    data = stored(pa.table({"job": ["a", "b", "c"]}), row_group_size=2)
    texts = {
        "dictionary": pa.DictionaryArray.from_arrays(
            pa.array([1, 0, None]), pa.array(["p", "q"])
        ),
        "large": pa.array(["q", "p", None], pa.large_string()),
    }[kind]
    target = io.BytesIO()
    with (
        open_source(io.BytesIO(data), name="in.parquet") as source,
        source.sink(target, [WrittenColumn("y", 0)]) as sink,
    ):
        for batch in source.batches():
            part = texts[sink.records : sink.records + batch.num_rows]
            sink.write(batch, [pa.chunked_array([part[:1], part[1:]])])
    assert table_of(target.getvalue())["y"].to_pylist() == ["q", "p", None]
    assert table_of(target.getvalue()).schema.field("y").type == pa.string()


@pytest.mark.parametrize("sizes", [[5], [2, 3, 1], [1] * 7, [4, 4, 4, 2]])
@pytest.mark.parametrize("rows", [1, 3, 1 << 16])
def test_row_groups_are_those_of_the_source(monkeypatch, sizes, rows):
    monkeypatch.setattr(parquet_stream, "ROWS_PER_BATCH", rows)
    sink = io.BytesIO()
    table = pa.table(
        {"id": range(sum(sizes)), "job": [f"j{i % 3}" for i in range(sum(sizes))]}
    )
    start = 0
    with pq.ParquetWriter(sink, table.schema) as writer:
        for size in sizes:
            writer.write_table(table.slice(start, size))
            start += size
    copy = copied(sink.getvalue(), [KeptColumn(0), WrittenColumn("job", 1)], ["x"])
    metadata = metadata_of(copy)
    assert [
        metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)
    ] == sizes
    assert table_of(copy)["id"].to_pylist() == list(range(sum(sizes)))


def test_a_row_group_that_takes_too_much_memory_is_split(monkeypatch):
    monkeypatch.setattr(parquet_stream, "ROWS_PER_BATCH", 100)
    monkeypatch.setattr(parquet_sink, "PENDING", 2500)
    table = pa.table({"id": range(1000)})
    copy = copied(stored(table), [KeptColumn(0)])
    assert metadata_of(copy).num_row_groups == 3
    assert table_of(copy).equals(table)


@pytest.mark.parametrize("groups", [0, 1, 3])
def test_files_without_records(groups):
    schema = pa.schema(
        {"id": pa.int8(), "job": pa.dictionary(pa.int8(), pa.string())},
        {"about": "nobody"},
    )
    sink = io.BytesIO()
    with pq.ParquetWriter(sink, schema) as writer:
        for _ in range(groups):
            writer.write_table(schema.empty_table())
    assert_same(
        sink.getvalue(),
        copied(sink.getvalue(), [KeptColumn(0), KeptColumn(1)], encode=["job"]),
    )


def leaf(data, i, group=0):
    return metadata_of(data).row_group(group).column(i)


def test_the_compression_of_every_column_stays():
    """Encodings and statistics are the writer's own, whatever those of the source were."""
    table = pa.table(
        {
            "a": range(3000),
            "b": [f"job {i % 5}" for i in range(3000)],
            "c": [float(i) for i in range(3000)],
            "d": [[f"{i}", "x"] for i in range(3000)],
            "e": [f"{i}" for i in range(3000)],
            "job": ["x"] * 3000,
        }
    )
    data = stored(
        table,
        compression={
            "a": "zstd",
            "b": "gzip",
            "c": "none",
            "d.list.element": "brotli",
            "e": "lz4",
            "job": "zstd",
        },
        use_dictionary=["b", "d.list.element"],
        column_encoding={
            "a": "DELTA_BINARY_PACKED",
            "c": "BYTE_STREAM_SPLIT",
            "e": "DELTA_BYTE_ARRAY",
        },
        write_statistics=["a", "e"],
    )
    outputs = [
        *(KeptColumn(i) for i in range(5)),
        WrittenColumn("work", replaces=5),
        WrittenColumn("more"),
    ]
    copy = copied(data, outputs, ["label", "extra"])
    for i in range(5):
        before, after = leaf(data, i), leaf(copy, i)
        assert after.path_in_schema == before.path_in_schema
        assert after.compression == before.compression
        assert after.is_stats_set
    assert leaf(copy, 5).compression == "ZSTD"
    assert (
        table_of(copy)
        .drop_columns(["work", "more"])
        .equals(table.drop_columns(["job"]))
    )


def test_no_order_of_rows_is_claimed():
    """A released column may be one that the rows were sorted by."""
    table = pa.table({"a": [1], "job": ["x"]})
    data = stored(
        table, sorting_columns=[pq.SortingColumn(1), pq.SortingColumn(0, True, True)]
    )
    copy = copied(data, [KeptColumn(0), WrittenColumn("job", 1)], ["y"])
    assert metadata_of(copy).row_group(0).sorting_columns == ()


@pytest.mark.parametrize("compliant", [True, False])
def test_names_within_lists_stay(compliant):
    table = pa.table(
        {"list": pa.array([[1], []], pa.list_(pa.field("thing", pa.int64())))}
    )
    data = stored(table, use_compliant_nested_type=compliant)
    assert (
        leaf(copied(data, [KeptColumn(0)]), 0).path_in_schema
        == leaf(data, 0).path_in_schema
    )
    assert_same(data, copied(data, [KeptColumn(0)]))


def test_moments_of_96_bits_keep_their_values_and_their_type():
    table = pa.table(
        {"t": pa.array([1, None, 10**18], pa.timestamp("ns")), "job": ["a", "b", "c"]}
    )
    data = stored(table, use_deprecated_int96_timestamps=True)
    copy = copied(data, [KeptColumn(0), WrittenColumn("job", 1)], ["x"])
    assert (leaf(data, 0).physical_type, leaf(copy, 0).physical_type) == (
        "INT96",
        "INT64",
    )
    assert table_of(copy)["t"].equals(table["t"])
    assert table_of(copy).schema.field("t") == table_of(data).schema.field("t")


@pytest.mark.parametrize("in_turn", [False, True])
def test_many_equal_texts_pass_as_codes_and_differing_dictionaries_are_joined(
    monkeypatch, request, in_turn
):
    """A column whose dictionary outgrows its page goes on in plain text; the copy holds the same."""
    made = request.getfixturevalue("few_at_once") if in_turn else []
    monkeypatch.setattr(
        parquet_stream, "AT_ONCE", 20_000 if in_turn else parquet_stream.AT_ONCE
    )
    monkeypatch.setattr(parquet_stream, "ROWS_PER_BATCH", 1000)
    many = [f"a rather long text, number {i}" for i in range(4000)]
    table = pa.table({"few": ["x", "y"] * 2000, "many": many})
    data = stored(
        table,
        dictionary_pagesize_limit=10_000,
        row_group_size=3000,
        data_page_size=2000,
    )
    copy = copied(data, [KeptColumn(0), KeptColumn(1)], encode=["many"])
    assert_same(data, copy)
    assert len(made) == 4 * in_turn
    assert (
        leaf(copy, 0).total_uncompressed_size
        <= 2 * leaf(data, 0).total_uncompressed_size
    )


def test_what_pandas_noted_of_columns():
    frame = pd.DataFrame(
        {"job": pd.Categorical(["a", "b"]), "id": [1, 2], "gone": [0.5, 1.5]},
        index=pd.Index([7, 9], name="key"),
    )
    sink = io.BytesIO()
    frame.to_parquet(sink)
    with open_source(io.BytesIO(sink.getvalue()), name="in.parquet") as source:
        assert source.header == ["job", "id", "gone", "key"]
    outputs = [
        WrittenColumn("job", 0),
        KeptColumn(1),
        WrittenColumn("new"),
        KeptColumn(3),
    ]
    copy = copied(sink.getvalue(), outputs, ["x", "y"])
    expected = pd.DataFrame(
        {"job": ["x", "x"], "id": [1, 2], "new": ["y", "y"]}, index=frame.index
    )
    pd.testing.assert_frame_equal(pd.read_parquet(io.BytesIO(copy)), expected)
    notes = json.loads(table_of(copy).schema.metadata[b"pandas"])
    assert [note["name"] for note in notes["columns"]] == ["job", "id", "key", "new"]
    left = copied(sink.getvalue(), [KeptColumn(1)])
    assert json.loads(table_of(left).schema.metadata[b"pandas"])["index_columns"] == []
    index = copied(sink.getvalue(), [KeptColumn(1), WrittenColumn("key", 3)], ["k"])
    assert list(pd.read_parquet(io.BytesIO(index)).index) == ["k", "k"]


def test_where_a_record_is(tmp_path):
    pq.write_table(pa.table({"a": [1, 2]}), tmp_path / "in.parquet")
    with open_source(tmp_path / "in.parquet") as source:
        assert source.where(1) == f"{tmp_path / 'in.parquet'}, row 2"
        assert source.kind == "Parquet"


def test_the_same_bytes_every_time():
    data = stored(everything())
    assert copied(data, all_kept(everything())) == copied(data, all_kept(everything()))


def test_refusals(tmp_path):
    data = stored(pa.table({"a": [1, 2]}))
    with open_source(io.BytesIO(data), name="in.parquet") as source:
        with pytest.raises(
            InputError,
            match=r"^out\.parquet: Parquet is compressed inside: it cannot be packed",
        ):
            packing_of(source, "out.parquet", None, "gzip")
        with pytest.raises(InputError, match="there is no column 'b'"):
            next(source.batches(encode=["b"]))
    twice = stored(pa.Table.from_arrays([pa.array([1])] * 2, names=["a", "a"]))
    with pytest.raises(
        InputError, match=r"in\.parquet: the column 'a' is there more than once"
    ):
        open_source(io.BytesIO(twice), name="in.parquet")
    for broken in (data[:-20], b"PAR1", data[:8] + bytes(20)):
        with pytest.raises(
            InputError, match=r"in\.parquet cannot be read as Parquet: "
        ) as caught:
            open_source(io.BytesIO(broken), name="in.parquet")
        assert "\n" not in str(caught.value)


def test_a_page_that_is_damaged():
    data = bytearray(
        stored(
            pa.table({"a": ["x", "y"] * 3000}), compression="zstd", use_dictionary=False
        )
    )
    data[60:90] = bytes(30)
    with (
        pytest.raises(InputError, match=r"in\.parquet cannot be read as Parquet: "),
        open_source(io.BytesIO(bytes(data)), name="in.parquet") as source,
    ):
        list(source.batches())


def test_a_target_that_is_full():
    class Full(io.BytesIO):
        def write(self, data):
            raise OSError(28, "No space left on device")

    data = stored(pa.table({"a": range(10)}))

    def write():
        with (
            open_source(io.BytesIO(data), name="in.parquet") as source,
            source.sink(Full(), [KeptColumn(0)]) as sink,
        ):
            for batch in source.batches():
                sink.write(batch, [])

    with pytest.raises(OSError, match="No space left on device"):
        write()


def test_a_damaged_page_is_refused(tmp_path):
    """Page checksums, where the writer left some, are compared: a flipped byte reaches no release."""
    path = tmp_path / "in.parquet"
    table = pa.table({"id": np.arange(50_000), "job": ["a", "b"] * 25_000})
    pq.write_table(
        table,
        path,
        write_page_checksum=True,
        compression="none",
        use_dictionary=["job"],
    )
    data = bytearray(path.read_bytes())
    at = data.index(np.arange(20_000, 20_004).tobytes())
    data[at] ^= 1
    path.write_bytes(data)
    assert (
        pq.read_table(path)["id"][20_000].as_py() == 20_001
    )  # nothing else notices it
    with (
        open_source(path) as source,
        pytest.raises(
            InputError, match=r"in\.parquet cannot be read as Parquet.*CRC checksum"
        ),
    ):
        list(source.batches())


class Full(io.BytesIO):
    """A disk without space."""

    def write(self, data, /):
        raise OSError(28, "No space left on device")


@pytest.mark.parametrize("rows", [1000, 300_000])
def test_a_full_disk_is_one_error(tmp_path, capfd, rows):
    """What a buffer of Arrow still holds goes nowhere, and Arrow complains of nothing on its own."""

    def copy():
        with (
            open_source(tmp_path / "in.parquet") as source,
            source.sink(Full(), [KeptColumn(0)]) as sink,
        ):
            for batch in source.batches():
                sink.write(batch, [])

    pq.write_table(
        pa.table({"n": np.random.default_rng(1).random(rows)}), tmp_path / "in.parquet"
    )
    with pytest.raises(OSError, match="No space left"):
        copy()
    gc.collect()
    assert capfd.readouterr() == ("", "")


def int96_file(path, moments):
    """A Parquet file with these moments as INT96, as older programs write them."""
    table = pa.table({"t": pa.array(moments, pa.timestamp("us"))})
    pq.write_table(
        table, path, use_deprecated_int96_timestamps=True, store_schema=False
    )
    return path


def moments_of(path):
    with open_source(path) as source:
        (batch,) = source.batches()
    return source.schema.field("t").type, [
        str(moment) for moment in batch.column("t").cast(pa.string()).to_pylist()
    ]


@pytest.mark.parametrize("year", [1000, 9999])
def test_moments_of_96_bits_that_nanoseconds_cannot_hold(tmp_path, year):
    moments = [dt.datetime(year, 12, 31, 23, 59), None, dt.datetime(2000, 1, 1)]
    path = int96_file(tmp_path / "far.parquet", moments)
    kind, texts = moments_of(path)
    assert kind == pa.timestamp("us")
    assert texts[0] == f"{year}-12-31 23:59:00.000000"
    # Where nanoseconds hold all of them, they stay the unit.
    near = int96_file(tmp_path / "near.parquet", moments[1:])
    assert moments_of(near)[0] == pa.timestamp("ns")


def test_moments_of_96_bits_are_looked_at_once(tmp_path, monkeypatch):
    """Commands open a file several times; its moments are read for their unit at the first."""
    read = []

    class Counting(pq.ParquetFile):
        def iter_batches(self, *arguments, **options):
            read.append(options["columns"])
            return super().iter_batches(*arguments, **options)

    moments = [dt.datetime(2000, 1, 1), None, dt.datetime(2001, 1, 1)]
    path = int96_file(tmp_path / "in.parquet", moments)
    monkeypatch.setattr(pq, "ParquetFile", Counting)
    for _ in range(3):
        with open_source(path):
            pass
    assert read == [["t"]]
    # A file that takes its place is looked at.
    int96_file(path, [dt.datetime(9999, 12, 31), *moments])
    with open_source(path) as source:
        assert source.schema.field("t").type == pa.timestamp("us")


def test_moments_of_96_bits_in_lists(tmp_path):
    path = tmp_path / "lists.parquet"
    for year, unit in ((2000, "ns"), (9999, "us")):
        moments = [[dt.datetime(year, 1, 1)], None, []]
        table = pa.table({"t": pa.array(moments, pa.list_(pa.timestamp("us")))})
        pq.write_table(
            table, path, use_deprecated_int96_timestamps=True, store_schema=False
        )
        with open_source(path) as source:
            assert source.schema.field("t").type.value_type == pa.timestamp(unit)


def test_moments_of_96_bits_without_a_unit_for_all_are_refused(tmp_path):
    path = tmp_path / "t.parquet"
    near = np.array(["1970-01-01T00:00:00.000000001", "1970-01-06"], "M8[ns]")
    pq.write_table(
        pa.table({"t": near}),
        path,
        use_deprecated_int96_timestamps=True,
        store_schema=False,
        use_dictionary=False,
        compression="none",
        write_statistics=False,
    )
    assert moments_of(path) == (
        pa.timestamp("ns"),
        ["1970-01-01 00:00:00.000000001", "1970-01-06 00:00:00.000000000"],
    )
    # A moment is the nanoseconds since midnight and the Julian day. Pyarrow has no type for both
    # moments, so the day is changed in the file: to the last one of the year 9999.
    epoch = 2440588
    content = path.read_bytes()
    before = struct.pack("<qi", 0, epoch + 5)
    after = struct.pack(
        "<qi", 0, epoch + (dt.date(9999, 12, 31) - dt.date(1970, 1, 1)).days
    )
    assert content.count(before) == 1
    path.write_bytes(content.replace(before, after))
    with pytest.raises(InputError, match="'t' has moments with digits below a micros"):
        open_source(path)
