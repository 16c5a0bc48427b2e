"""CSV files read and written by arrays of bytes are those that the csv module reads and writes,
cell for cell.
"""

from __future__ import annotations

import csv
import io
from unittest import mock

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from mechdesign.core.errors import InputError
from mechdesign.formats import csv_blocks
from mechdesign.formats.arrow_arrays import KeptColumn, Output, WrittenColumn
from mechdesign.formats.csv_text import TextOptions
from mechdesign.formats.opening import open_source
from tests.profiles import scaled

MANY = 200
"""Examples of a property that short adversarial texts probe."""

blocks = st.sampled_from([1, 2, 3, 5, 8, 64, 1 << 20])
dialects = st.builds(
    TextOptions,
    delimiter=st.sampled_from([",", ";", "\t", "|"]),
    quote=st.sampled_from(['"', "'", None]),
)


def pieces(options: TextOptions) -> st.SearchStrategy[str]:
    """Texts made of what a reader of CSV can trip over."""
    d = options.delimiter
    q = options.quote or '"'
    parts = [
        "a",
        "",
        " ",
        "é",
        "\ufeff",
        "🙂",
        d,
        d,
        "\n",
        "\n",
        "\r",
        "\r\n",
        q,
        q,
        q + q,
        f"{q}a{q}",
        f"{d}\n",
    ]
    return st.lists(st.sampled_from(parts), max_size=30).map("".join)


def dialect(options: TextOptions) -> dict[str, object]:
    quoting = csv.QUOTE_NONE if options.quote is None else csv.QUOTE_MINIMAL
    return {
        "delimiter": options.delimiter,
        "quotechar": options.quote or '"',
        "quoting": quoting,
    }


def by_csv(text: str, options: TextOptions) -> list[list[str]] | None:
    """The rows of a table as the csv module reads them; None if it is no table."""
    try:
        rows = list(
            csv.reader(io.StringIO(text, newline=""), strict=True, **dialect(options))
        )
    except csv.Error:
        return None
    while rows and not rows[-1]:
        rows.pop()
    regular = rows and rows[0] and all(len(row) == len(rows[0]) for row in rows)
    return rows if regular and len(set(rows[0])) == len(rows[0]) else None


def by_stream(
    data: bytes, options: TextOptions, *, encode: bool
) -> list[list[str]] | None:
    """The rows as a source gives them; None if it refuses."""
    try:
        with open_source(io.BytesIO(data), options, name="in.csv") as source:
            rows = [source.header]
            names = source.header if encode else []
            for batch in source.batches(encode=names):
                columns = [batch.column(name).to_pylist() for name in source.header]
                rows += map(list, zip(*columns, strict=True))
    except InputError:
        return None
    return rows


@settings(max_examples=scaled(MANY))
@given(st.data(), dialects, blocks, st.integers(1, 3), st.booleans())
def test_what_is_read_is_what_the_csv_module_reads(data, options, block, width, encode):
    header = options.delimiter.join("xyz"[:width]) + "\n"
    text = header + data.draw(pieces(options))
    with mock.patch.object(csv_blocks, "BLOCK", block):
        assert by_stream(text.encode(), options, encode=encode) == by_csv(text, options)


@settings(max_examples=scaled(MANY))
@given(st.data(), dialects, blocks)
def test_headers_too(data, options, block):
    text = data.draw(
        pieces(options).filter(lambda text: text and not text.startswith("\ufeff"))
    )
    with mock.patch.object(csv_blocks, "BLOCK", block):
        assert by_stream(text.encode(), options, encode=False) == by_csv(text, options)


@settings(max_examples=scaled(MANY))
@given(st.data(), dialects, blocks, st.integers(1, 3))
def test_lines_are_those_that_the_csv_module_counts(data, options, block, width):
    """Of every record of a table; of a row that is too short, too long or blank; of text after a
    quote.
    """
    text = options.delimiter.join("xyz"[:width]) + "\n" + data.draw(pieces(options))
    reader = csv.reader(io.StringIO(text, newline=""), strict=True, **dialect(options))
    lines = []
    widths = []
    misquoted = 0
    try:
        while True:
            line = reader.line_num + 1
            widths.append(len(next(reader)))
            lines.append(line)
    except StopIteration:
        pass
    except csv.Error as error:
        misquoted = reader.line_num if "expected after" in str(error) else 0
    while widths and not widths[-1]:
        widths.pop()
    wrong = [line for line, cells in zip(lines, widths, strict=False) if cells != width]
    with mock.patch.object(csv_blocks, "BLOCK", block):
        try:
            with open_source(
                io.BytesIO(text.encode()), options, name="in.csv"
            ) as source:
                records = sum(batch.num_rows for batch in source.batches())
                found = [source.where(record) for record in range(records)]
        except InputError as error:
            message = str(error)
        else:
            message = ""
            assert found == [f"in.csv, line {line}" for line in lines[1 : len(widths)]]
    if "the row" in message:
        assert message.startswith(f"in.csv, line {wrong[0]}: ")
    elif "not a CSV row" in message:
        assert message.startswith(f"in.csv, line {misquoted}: ")
    elif "never closed" not in message:
        assert not message
        assert not wrong
        assert not misquoted


cells = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0")
    | st.sampled_from('",;|\t\r\n'),
    max_size=6,
)


@st.composite
def tables(draw: st.DrawFn) -> list[list[str]]:
    width = draw(st.integers(1, 4))
    rows = draw(st.lists(st.lists(cells, min_size=width, max_size=width), max_size=9))
    return [[f"c{i}" for i in range(width)], *rows]


@st.composite
def changes(draw: st.DrawFn, width: int) -> list[Output]:
    outputs: list[Output] = []
    for i in range(width):
        outputs += draw(
            st.sampled_from(
                [
                    [KeptColumn(i)],
                    [],
                    [WrittenColumn(f"w{i}", i)],
                    [WrittenColumn(f"v{i}"), KeptColumn(i), WrittenColumn(f"u{i}")],
                ]
            )
        )
    return outputs or [WrittenColumn("only")]


@settings(max_examples=scaled(MANY))
@given(
    st.data(),
    tables(),
    blocks,
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.booleans(),
    st.booleans(),
)
def test_what_is_written_is_the_table_with_columns_exchanged(
    data, table, block, newline, all_quoted, mark
):
    """Order of rows, every kept cell and every written one; quotes of kept cells may be as they
    were.
    """
    quoting = csv.QUOTE_ALL if all_quoted else csv.QUOTE_MINIMAL
    text = "".join(line[:-2] + newline for line in _lines(table, quoting))
    given_bytes = (b"\xef\xbb\xbf" if mark else b"") + text.encode()
    outputs = data.draw(changes(len(table[0])))
    fresh = [
        data.draw(st.lists(cells, min_size=len(table) - 1, max_size=len(table) - 1))
        for output in outputs
        if isinstance(output, WrittenColumn)
    ]
    target = io.BytesIO()
    with (
        mock.patch.object(csv_blocks, "BLOCK", block),
        open_source(io.BytesIO(given_bytes), name="in.csv") as source,
        source.sink(target, outputs) as writer,
    ):
        for batch in source.batches():
            part = slice(writer.records, writer.records + batch.num_rows)
            writer.write(
                batch, [pa.array(column[part], pa.string()) for column in fresh]
            )
    written = target.getvalue()
    assert written.startswith(b"\xef\xbb\xbf") == mark
    rows = list(
        csv.reader(io.StringIO(written.decode("utf-8-sig"), newline=""), strict=True)
    )
    names = [
        table[0][o.position] if isinstance(o, KeptColumn) else o.name for o in outputs
    ]
    columns = iter(fresh)
    expected = [
        [row[o.position] for row in table[1:]]
        if isinstance(o, KeptColumn)
        else next(columns)
        for o in outputs
    ]
    assert rows == [names, *map(list, zip(*expected, strict=True))]
    assert written.decode().endswith(newline)


def _lines(table: list[list[str]], quoting: int) -> list[str]:
    """Rows as lines that end with CR LF: the writer quotes these two only if they end its lines."""
    lines: list[str] = []

    class Sink:
        def write(self, line: str) -> None:
            lines.append(line)

    csv.writer(Sink(), lineterminator="\r\n", quoting=quoting).writerows(table)
    return lines
