from __future__ import annotations

import gzip
import io
import re
import zlib

import numpy as np
import pyarrow as pa
import pytest

from mechdesign.core.errors import InputError
from mechdesign.formats import csv_blocks
from mechdesign.formats.arrow_arrays import KeptColumn, WrittenColumn
from mechdesign.formats.compression import compression_named
from mechdesign.formats.csv_blocks import Splitter, line_breaks, pieces_of
from mechdesign.formats.csv_text import TextOptions
from mechdesign.formats.opening import open_source

PEOPLE = b'id,job,note\n1,a,"p,q"\n2,"b",\n'


def copied(data, outputs, fresh=(), options=None, compression=None, name="people.csv"):
    """What the sink makes of a file, if every written column holds the same text in all rows."""
    target = io.BytesIO()
    with (
        open_source(io.BytesIO(data), options, name=name) as source,
        source.sink(target, outputs, compression=compression) as sink,
    ):
        for batch in source.batches(encode=source.header[1:2]):
            sink.write(
                batch,
                [pa.array([text] * batch.num_rows, pa.string()) for text in fresh],
            )
    assert not target.closed
    return target.getvalue()


def unchanged(data, options=None, **others):
    with open_source(io.BytesIO(data), options, name="people.csv") as source:
        outputs = [KeptColumn(i) for i in range(len(source.header))]
    return copied(data, outputs, options=options, **others)


def columns(data, options=None, encode=()):
    with open_source(io.BytesIO(data), options, name="people.csv") as source:
        batches = list(source.batches(encode=encode))
        return {
            name: [text for batch in batches for text in batch.column(name).to_pylist()]
            for name in source.header
        }


@pytest.mark.parametrize(
    ("outputs", "fresh", "expected"),
    [
        (
            [KeptColumn(0), WrittenColumn("job", 1), KeptColumn(2)],
            ["x"],
            b'id,job,note\n1,x,"p,q"\n2,x,\n',
        ),
        (
            [WrittenColumn("id", 0), KeptColumn(1), KeptColumn(2)],
            ['a"b'],
            b'id,job,note\n"a""b",a,"p,q"\n"a""b","b",\n',
        ),
        (
            [KeptColumn(0), KeptColumn(1), WrittenColumn("note", 2)],
            ["{a, b}"],
            b'id,job,note\n1,a,"{a, b}"\n2,"b","{a, b}"\n',
        ),
        (
            [KeptColumn(0), KeptColumn(1), KeptColumn(2), WrittenColumn("y")],
            ["\r"],
            b'id,job,note,y\n1,a,"p,q","\r"\n2,"b",,"\r"\n',
        ),
        ([KeptColumn(0), KeptColumn(2)], [], b'id,note\n1,"p,q"\n2,\n'),
        ([KeptColumn(1), KeptColumn(2)], [], b'job,note\na,"p,q"\n"b",\n'),
        ([KeptColumn(2)], [], b'note\n"p,q"\n""\n'),
        ([WrittenColumn("y")], [""], b'y\n""\n""\n'),
        ([WrittenColumn("y"), KeptColumn(1)], [""], b'y,job\n,a\n,"b"\n'),
        (
            [KeptColumn(0), WrittenColumn("a"), WrittenColumn("b", 1), KeptColumn(2)],
            ["", "x"],
            b'id,a,b,note\n1,,x,"p,q"\n2,,x,\n',
        ),
        (
            [WrittenColumn("a,b"), WrittenColumn("c")],
            ["x", "y"],
            b'"a,b",c\nx,y\nx,y\n',
        ),
    ],
)
def test_columns_kept_written_added_and_left_out(outputs, fresh, expected):
    assert copied(PEOPLE, outputs, fresh) == expected


@pytest.mark.parametrize(
    "data",
    [
        PEOPLE,
        PEOPLE.replace(b"\n", b"\r\n"),
        PEOPLE.replace(b"\n", b"\r"),
        b"\xef\xbb\xbf" + PEOPLE,
        b'"a","b"\n"1","2"\r\n"","x\r\ny"\n',
        b"a,b\n5\" pipe,6'\n 1 ,\t\n",
        b"a\n1\n\xef\xbb\xbf2\n",
        "name,näme\nü,🙂\n".encode(),
        b"a,b\n",
    ],
)
def test_what_is_kept_stays_byte_for_byte(data):
    assert unchanged(data) == data


def test_the_last_line_gets_an_end_and_blank_ones_go():
    assert unchanged(b"a,b\r\n1,2") == b"a,b\r\n1,2\r\n"
    assert unchanged(b"a,b") == b"a,b\n"
    assert unchanged(b"a\n1\n\n\r\n\r") == b"a\n1\n"


def test_texts_are_without_quotes_and_codes_on_demand():
    assert columns(b'a,b\n"x ""y""",z\n"",x"\n') == {
        "a": ['x "y"', ""],
        "b": ["z", 'x"'],
    }
    with open_source(io.BytesIO(b'a,b\nx,1\n"x",2\n'), name="in") as source:
        (batch,) = source.batches(encode=["a"], read=["b"])
        assert batch.column("a").dictionary.to_pylist() == ["x"]
        assert batch.column("a").indices.to_pylist() == [0, 0]
        assert batch.column("b").type == pa.string()


def test_codes_into_few_texts_or_plain_texts_or_nulls_are_written_alike():
    target = io.BytesIO()
    with open_source(io.BytesIO(b"a\n1\n2\n3\n"), name="in") as source:
        sink = source.sink(
            target,
            [
                WrittenColumn("y"),
                WrittenColumn("z"),
                WrittenColumn("n"),
                WrittenColumn("c"),
            ],
        )
        codes = pa.DictionaryArray.from_arrays(
            pa.array([1, 0, None]), pa.array(["p", "q,r"])
        )
        for batch in source.batches():
            plain = pa.array(["s", None, "t"])
            sink.write(
                batch,
                [
                    codes,
                    plain,
                    pa.nulls(3, pa.string()),
                    pa.chunked_array([codes[:1], codes[1:]]),
                ],
            )
        sink.close()
        assert sink.records == 3
    assert target.getvalue() == b'y,z,n,c\n"q,r",s,,"q,r"\np,,,p\n,t,,\n'


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
def test_other_delimiters(delimiter):
    options = TextOptions(delimiter=delimiter)
    data = f'a{delimiter}b\n1,5{delimiter}"x{delimiter}y"\n'.encode()
    assert columns(data, options) == {"a": ["1,5"], "b": [f"x{delimiter}y"]}
    assert copied(
        data, [KeptColumn(0), WrittenColumn("b")], [f"p,{delimiter}"], options
    ) == (f'a{delimiter}b\n1,5{delimiter}"p,{delimiter}"\n'.encode())


def test_files_without_quotes():
    options = TextOptions(quote=None)
    assert columns(b'a,b\n"x,y"\n', options) == {"a": ['"x'], "b": ['y"']}
    assert (
        copied(b'a,b\n"x,y"\n', [KeptColumn(0), WrittenColumn("b")], ['"'], options)
        == b'a,b\n"x,"\n'
    )
    with pytest.raises(
        InputError,
        match=r"people\.csv: the text 'p,q' cannot be written without quotes",
    ):
        copied(b"a,b\n1,2\n", [KeptColumn(0), WrittenColumn("b")], ["p,q"], options)
    with pytest.raises(
        InputError, match=r"the text '' cannot be written without quotes"
    ):
        copied(b"a,b\n1,2\n", [WrittenColumn("b")], [""], options)


@pytest.mark.parametrize(
    ("encoding", "mark"),
    [
        ("utf-8", b""),
        ("utf-8-sig", b"\xef\xbb\xbf"),
        ("utf-16-le", b"\xff\xfe"),
        ("utf-16-be", b"\xfe\xff"),
        ("utf-16-be", b""),
        ("utf-32-le", b"\xff\xfe\0\0"),
        ("latin-1", b""),
        ("cp1252", b""),
        ("shift_jis", b""),
        ("iso2022_jp", b""),
        ("utf-7", b""),
    ],
)
@pytest.mark.parametrize("block", [1, 7, 1 << 20])
def test_encodings_stay(monkeypatch, encoding, mark, block):
    monkeypatch.setattr(csv_blocks, "BLOCK", block)
    text = 'näme,b\nü"x,"é\n"\n' if "j" not in encoding else '名,b\n日本"x,"ソ\n表"\n'
    stored = "utf-8" if encoding == "utf-8-sig" else encoding
    named = (
        encoding.rpartition("-")[0]
        if mark and encoding.startswith(("utf-16", "utf-32"))
        else encoding
    )
    data = mark + text.encode(stored)
    options = TextOptions(encoding=named)
    assert list(columns(data, options)) == text.partition("\n")[0].split(",")
    changed = copied(
        data,
        [KeptColumn(0), WrittenColumn("ß" if "j" not in encoding else "日")],
        ["+ö" if "j" not in encoding else "本"],
        options,
    )
    lines = (
        ["näme,ß\n", 'ü"x,+ö\n'] if "j" not in encoding else ["名,日\n", '日本"x,本\n']
    )
    assert changed.startswith(mark)
    assert changed[len(mark) :].decode(stored) == "".join(lines)


def test_a_label_that_the_encoding_lacks():
    options = TextOptions(encoding="cp1252")
    with pytest.raises(
        InputError,
        match=r"people\.csv: the text 'Ω' cannot be written in cp1252, the encoding of",
    ):
        copied(b"a\n1\n", [WrittenColumn("b")], ["Ω"], options)
    with pytest.raises(InputError, match="the column 'Ω' cannot be written in cp1252"):
        copied(b"a\n1\n", [WrittenColumn("Ω")], ["x"], options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"delimiter": ";;"}, r"delimiter \(';;'\) must be one ASCII character"),
        (
            {"delimiter": "\n"},
            "delimiter .* must be one ASCII character, no letter, digit, line end or NUL",
        ),
        ({"delimiter": "a"}, "delimiter .* must be one ASCII character"),
        ({"delimiter": "¦"}, "delimiter .* must be one ASCII character"),
        ({"quote": ""}, r"quote \(''\) must be one ASCII character"),
        ({"quote": ","}, r"delimiter and quote \(','\) must be different characters"),
        (
            {"encoding": "utf-9"},
            r"encoding \('utf-9'\) must be a text encoding that Python knows, such as utf-8",
        ),
        ({"encoding": "hex"}, r"encoding \('hex'\) must be a text encoding"),
        ({"encoding": "idna"}, r"encoding \('idna'\) must be a text encoding"),
        ({"encoding": "a\0b"}, "encoding .* must be a text encoding"),
    ],
)
def test_options_that_make_no_sense(options, message):
    with pytest.raises(InputError, match=message):
        TextOptions(**options)


REFUSED = [
    (
        b"a,b\n1,2\n3\n",
        r"people\.csv, line 3: the row has 1 cell\(s\) where the header has 2; write all cells of a "
        "row, empty ones too, or take the row away$",
    ),
    (
        b'a,b\n"1\n1",2\n3,4,5\n',
        r"line 4: the row has 3 cell\(s\) where the header has 2; a ',' within a cell is put in "
        "quotes$",
    ),
    (b"a,b\n1,2\n\n3,4\n", r"line 3: the row is blank within the table"),
    (
        b"a\n1\n\n\n3\n",
        r"blank within the table; in a table of one column an empty cell is",
    ),
    (b"a\r\n1\r\n\r\n3\r\n", r"line 3: the row is blank within the table"),
    (
        b'a,b\n1,"2\n3,4\n',
        r"line 2: the file ends within quotes; a quote is never closed",
    ),
    (
        b'a,b\n1,2\n3,"4" \n',
        r"line 3: not a CSV row \(',' expected after the closing quote\); take the blanks between",
    ),
    (
        b'a,b\n"3" ,"4"\n',
        r"line 2: not a CSV row .* take the blanks between delimiters and quotes out",
    ),
    (
        b'a, b\n1, "Lee, Ann"\n',
        r"line 2: the row has 3 cell\(s\) where the header has 2; a quote behind a blank opens no "
        "cell: take the blanks between delimiters and quotes out of the file",
    ),
    (
        b'a,b\n1,2\n3,4,"5"\n',
        r"line 3: the row has 3 cell\(s\) where the header has 2; a ',' within a cell is put in "
        "quotes$",
    ),
    (
        b'a,b\n"x"y,2\n',
        r"line 2: not a CSV row \(',' expected after the closing quote\); a quote within a cell is "
        "written twice$",
    ),
    (
        b'a,b\n1,"say \\"hi\\""\n',
        r"line 2: not a CSV row .* is written twice, not behind a backslash$",
    ),
    (
        b"a,b\n1,2\n1,Lee\\, Ann\n",
        r"line 3: the row has 3 cell\(s\) where the header has 2; a ',' within a cell is put in "
        "quotes, not behind a backslash",
    ),
    (
        b"a,b\n1,2\n3,\xff\n",
        r"line 3: not UTF-8 text; save the file as UTF-8, or name its encoding \(encoding=\)",
    ),
    (b"a,b\n1,2\n3,\xed\xa0\x80\n", r"line 3: not UTF-8 text"),
    (b"a\xff,b\n1,2\n", r"line 1: not UTF-8 text"),
    (
        b"a,b\n" + b"1,2\n" * 2000 + b"3,\0\n",
        r"line 2002: a NUL character, which is no text",
    ),
    (
        b"a,b\n1,\0\n",
        r"people\.csv is neither a CSV nor a Parquet file \(it has binary content\)",
    ),
    (
        b"a,b,a\nx,y,z\n",
        r"people\.csv: the header has the column 'a' more than once; give one of them another",
    ),
    (b"a,b,,\nx,y,,\n", "the column '' more than once; name these columns, or take"),
    (b"\na,b\n", r"people\.csv: the first line is blank; it must name the columns"),
    (b"\xef\xbb\xbf", r"people\.csv: the first line is blank"),
    (b"", r"people\.csv is empty"),
    (
        b"PK\x03\x04",
        r"people\.csv: its zip data are damaged",
    ),
    (
        "a,b\n".encode("utf-16"),
        r"is UTF-16 text; save it as UTF-8, or name its encoding \(encoding='utf-16'\)",
    ),
]


@pytest.mark.parametrize(("data", "message"), REFUSED)
@pytest.mark.parametrize("block", [1, 3, 1 << 20])
def test_what_is_no_table(monkeypatch, data, message, block):
    monkeypatch.setattr(csv_blocks, "BLOCK", block)
    with pytest.raises(InputError, match=message) as caught:
        unchanged(data)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("encoding", "data", "line"),
    [
        ("ascii", b"a\n1\n\xe9\n", 3),
        ("cp1252", b"a\n1\n2\n\x81\n", 4),
        (
            "utf-16-le",
            "a\n1\n".encode("utf-16-le") + b"\0\xdc" + "\n".encode("utf-16-le"),
            3,
        ),
        ("utf-16-le", "a\n1\n2".encode("utf-16-le")[:-1], 3),
        ("shift_jis", b"a\n1\n\x85\n", 3),
        ("utf-7", b"a\n1\n+2AA-\n", 3),
    ],
)
@pytest.mark.parametrize("block", [2, 1 << 20])
def test_what_is_not_in_the_named_encoding(monkeypatch, encoding, data, line, block):
    monkeypatch.setattr(csv_blocks, "BLOCK", block)
    message = rf"people\.csv, line {line}: not {re.escape(encoding)} text; name the encoding of the file"
    with pytest.raises(InputError, match=message):
        unchanged(data, TextOptions(encoding=encoding))


# Its lines look like records, which is noted.
@pytest.mark.filterwarnings("ignore::mechdesign.core.errors.Notice")
def test_a_cell_longer_than_a_block_and_one_that_never_ends(monkeypatch):
    monkeypatch.setattr(csv_blocks, "BLOCK", 1 << 16)
    monkeypatch.setattr(csv_blocks, "LONGEST", 1 << 18)
    long = b'"' + b"x,\n" * (1 << 15) + b'"'
    data = b"a,b\n1," + long + b"\n2,y\n"
    assert unchanged(data) == data
    assert [len(text) for text in columns(data)["b"]] == [len(long) - 2, 1]
    endless = b'a,b\n1,2\n3,"' + b"x,\n" * (1 << 17)
    with pytest.raises(
        InputError,
        match=r"line 3: a record of more than 262,144 bytes; is a quote never closed\?",
    ):
        unchanged(endless)


@pytest.mark.parametrize("block", [4, 1 << 20])
@pytest.mark.parametrize("compression", [None, "gzip", "zstd"])
def test_lines_of_records(monkeypatch, tmp_path, block, compression):
    monkeypatch.setattr(csv_blocks, "BLOCK", block)
    data = b'a,b\r\n1,"x\ny"\r\n2,z\r3,"p\r\nq"\n4,v\n'
    path = tmp_path / "people.csv"
    path.write_bytes(unchanged(data, compression=compression))
    with open_source(path) as source:
        assert [source.where(record) for record in range(4)] == [
            f"{path}, line {line}" for line in (2, 4, 5, 7)
        ]
        batches = iter(source.batches())
        first = next(batches).num_rows
        assert (
            source.where(3) == f"{path}, line 7"
        )  # and the reading goes on where it was
        assert first + sum(batch.num_rows for batch in batches) == 4
        assert source.position == source.size == path.stat().st_size


@pytest.mark.parametrize("compression", ["gzip", "zstd"])
def test_compressed_files(tmp_path, compression):
    data = b"a,b\n" + b"".join(b"%d,%d\n" % (i, i * i) for i in range(5000))
    packed = unchanged(data, compression=compression)
    assert len(packed) < len(data)
    assert unchanged(packed) == data
    assert unchanged(packed, compression=compression) == packed
    assert unchanged(packed + packed[:0]) == data
    body = unchanged(b"a,b\n1,2\n", compression=compression) + unchanged(
        b"3,4\n5,6\n", compression=compression
    )
    assert (
        unchanged(body) == b"a,b\n1,2\n3,4\n5,6\n"
    )  # one after the other, as parallel compressors write them
    message = rf"people\.csv is truncated within its {compression} data; it was not copied or written whole"
    for size in (len(packed) - 1, len(packed) // 2, 5):
        with pytest.raises(InputError, match=message):
            unchanged(packed[:size])
    with pytest.raises(
        InputError, match=rf"people\.csv: its {compression} data are damaged"
    ):
        unchanged(packed + b"more")
    with pytest.raises(InputError, match=r"people\.csv is empty"):
        unchanged(packed_nothing(compression))


def packed_nothing(compression):
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, compression):
        pass
    return sink.getvalue().to_pybytes()


def test_gzip_tells_neither_time_nor_name():
    packed = unchanged(PEOPLE, compression="gzip")
    assert packed[:8] == b"\x1f\x8b\x08\x00\x00\x00\x00\x00"
    assert gzip.decompress(packed) == PEOPLE


def test_a_bit_that_is_wrong_in_a_gzip(tmp_path):
    packed = bytearray(unchanged(PEOPLE * 1, compression="gzip"))
    packed[-6] ^= 1  # in the checksum
    with pytest.raises(InputError, match="its gzip data are damaged"):
        unchanged(bytes(packed))
    assert zlib.crc32(PEOPLE) != int.from_bytes(packed[-8:-4], "little")


def test_names_of_compressed_files():
    assert [
        compression_named(name) for name in ("a.csv", "a.csv.gz", "b.ZST", "c.tsv.zstd")
    ] == [
        None,
        "gzip",
        "zstd",
        "zstd",
    ]


def test_a_reader_that_fails(tmp_path):
    class Broken(io.BytesIO):
        def read(self, size=-1):
            if self.tell() > 50_000:
                raise OSError(5, "Input/output error")
            return super().read(size)

    # Numbers that compress badly, so that the compressed file is long enough as well.
    rows = "".join(f"{i},{i * 7919 % 100_003}\n" for i in range(30_000))
    data = b"a,b\n" + rows.encode()
    for content in (data, unchanged(data, compression="gzip")):
        with (
            pytest.raises(
                InputError, match=r"people\.csv cannot be read: input/output error"
            ),
            open_source(Broken(content), name="people.csv") as source,
        ):
            list(source.batches())


def test_a_target_that_is_full():
    class Full(io.BytesIO):
        def write(self, data):
            raise OSError(28, "No space left on device")

    def write(compression):
        with (
            open_source(io.BytesIO(b"a\n" + b"x\n" * 500_000), name="in") as source,
            source.sink(Full(), [KeptColumn(0)], compression=compression) as sink,
        ):
            for batch in source.batches():
                sink.write(batch, [])

    for compression in (None, "gzip", "zstd"):
        with pytest.raises(OSError, match="No space left on device"):
            write(compression)


def test_a_target_that_takes_a_little_at_a_time():
    class Slow(io.RawIOBase):
        def __init__(self):
            self.data = b""

        def writable(self):
            return True

        def write(self, data):
            self.data += bytes(data[:3])
            return min(3, len(data))

    target = Slow()
    with (
        open_source(io.BytesIO(PEOPLE), name="in") as source,
        source.sink(target, [KeptColumn(0)]) as sink,
    ):
        for batch in source.batches():
            sink.write(batch, [])
    assert target.data == b"id\n1\n2\n"


def test_files_that_cannot_be_opened(tmp_path):
    with pytest.raises(InputError, match=r"nowhere\.csv: there is no such file"):
        open_source(tmp_path / "nowhere.csv")
    with pytest.raises(
        InputError, match="is a folder, not a file: name one of its files"
    ):
        open_source(tmp_path)
    (tmp_path / "x.parquet").write_text("a,b\n")
    with pytest.raises(
        InputError, match=r"x\.parquet is not a Parquet file, though its name says so"
    ):
        open_source(tmp_path / "x.parquet")
    with pytest.raises(
        InputError, match=r"people\.csv is a compressed Parquet file; unpack it first"
    ):
        open_source(io.BytesIO(gzip.compress(b"PAR1....PAR1")), name="people.csv")


def test_columns_that_are_not_there_and_outputs_out_of_order():
    with open_source(io.BytesIO(PEOPLE), name="in") as source:
        with pytest.raises(
            InputError, match="there is no column 'jbo'; did you mean 'job'"
        ):
            next(source.batches(encode=["jbo"]))
        for outputs in (
            [],
            [KeptColumn(1), KeptColumn(0)],
            [KeptColumn(0), KeptColumn(0)],
            [KeptColumn(3)],
            [KeptColumn(-1)],
        ):
            with pytest.raises(
                InputError,
                match="the outputs must be columns of the source in their order",
            ):
                source.sink(io.BytesIO(), outputs)


def test_offsets_that_would_read_other_memory():
    for offsets in ([0, 2, 1], [0, 5], [-1, 2]):
        with pytest.raises(IndexError, match="offsets must ascend within the text"):
            pieces_of(b"text", np.array(offsets, np.int32))
    assert pieces_of(b"text", np.array([1, 1, 4], np.int32)).to_pylist() == ["", "ext"]


def test_a_record_that_is_not_there():
    with open_source(io.BytesIO(PEOPLE), name="in.csv") as source:
        assert source.where(2) == "in.csv, record 3"


def test_pieces_of_different_length_share_one_splitter():
    splitter = Splitter(ord(","), ord('"'))
    for text in (
        b"a,b\nc,d\n",
        b'"x\n,y",z\n' * 50,
        b"",
        b"rest",
        b"p,q\r\nr,s\rt,u\n",
        b"a,b\nc,d\n",
    ):
        rows = splitter.split(text)
        ends = [int(end) for end in rows.ends]
        starts = [int(start) for start in rows.starts]
        assert rows.size == (0 if text == b"rest" else len(text))
        assert (
            len(starts)
            == len(rows.last)
            == text.count(b"z") + 2 * text.count(b"c,d") + 3 * text.count(b"p")
        )
        assert all(text[end : end + 1] in b",\r\n" for end in ends)
        assert rows.lines == line_breaks(text)


def test_blocks_of_wide_tables_have_more_rows(monkeypatch):
    """A step of a release costs as much for each column of a block, however few its rows."""
    monkeypatch.setattr(csv_blocks, "BLOCK", 1 << 12)
    monkeypatch.setattr(csv_blocks, "LARGEST_BLOCK", 1 << 17)

    def rows_of_blocks(columns):
        lines = [",".join(f"{row % 10}" * columns) for row in range(400)]
        header = ",".join(f"c{place}" for place in range(columns))
        data = "\n".join([header, *lines]).encode()
        with open_source(io.BytesIO(data), name="wide.csv") as source:
            batches = list(source.batches())
        texts = [text for b in batches for text in b.column("c7").to_pylist()]
        assert texts == [f"{row % 10}" for row in range(400)]
        return [batch.num_rows for batch in batches]

    assert max(rows_of_blocks(csv_blocks.WIDE)) < 10
    # 2 * 501 bytes a row: the largest block has room for 130.
    assert max(rows_of_blocks(csv_blocks.WIDE + 1)) in (130, 131)
    monkeypatch.setattr(csv_blocks, "LARGEST_BLOCK", 1 << 20)
    assert max(rows_of_blocks(csv_blocks.WIDE + 1)) in (256, 257)
