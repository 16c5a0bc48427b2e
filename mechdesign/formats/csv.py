"""CSV files: read as batches of records, and written as the lines of the source with some of their cells exchanged."""

# pyarrow tells too little of its types for the strict mode.
# pyright: basic
from __future__ import annotations

import codecs
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import chain, islice, pairwise
from typing import Any, BinaryIO, Literal

import numpy as np

from mechdesign.core.errors import InputError
from mechdesign.core.numbers import quoted
from mechdesign.formats import _csv
from mechdesign.formats.cells import (
    arrow_texts,
    encode,
    integers_of,
    require_column,
    simple_texts,
)
from mechdesign.formats.compression import Compression, LeftOpen, compressed, write_all
from mechdesign.formats.csv_split import Blocks, Positions, TextBlock, pieces_of
from mechdesign.formats.inputs import RawInput, TextInput, TextOptions
from mechdesign.formats.outputs import (
    KeptColumn,
    Output,
    WrittenColumn,
    check_outputs,
    field_of,
    values_of,
)


@dataclass(frozen=True)
class Edit:
    """Cells that go and columns that are written in their place."""

    after: int | None
    before: int | None
    written: tuple[int, ...]

    @property
    def takes_delimiter(self) -> bool:
        """Whether the delimiter before the kept column after them goes too; the written text brings its own."""
        return self.before is not None and (self.after is None or bool(self.written))


def edits_of(outputs: Sequence[Output], width: int) -> list[Edit]:
    """What has to be exchanged in every row of `width` cells."""
    edits: list[Edit] = []
    after: int | None = None
    written: list[int] = []
    count = 0
    for output in (*outputs, None):
        if isinstance(output, WrittenColumn):
            written.append(count)
            count += 1
            continue
        before = None if output is None else output.position
        gap = (
            (width if before is None else before) - (-1 if after is None else after) - 1
        )
        if gap or written:
            edits.append(Edit(after, before, tuple(written)))
        after, written = before, []
    return edits


class CellWriter:
    """Writes cells with quotes where they need them."""

    def __init__(
        self, name: str, options: TextOptions, encoding: str, *, alone: bool
    ) -> None:
        self.name = name
        self._quote = options.quote
        # In hexadecimal, for pyarrow's patterns and Python's alike.
        special = "".join(
            f"\\x{ord(each):02x}" for each in options.delimiter + (options.quote or "")
        )
        self.special = f"[{special}\\r\\n]" + "|^$" * alone
        self._encoding = encoding

    def cell(self, text: str, what: str) -> str:
        """The text as it is written; messages say `what` it is."""
        try:
            text.encode(self._encoding)
        except UnicodeEncodeError:
            raise InputError(
                f"{self.name}: {what} {quoted(text)} cannot be written in {self._encoding}, the encoding of the file; "
                "save the file as UTF-8"
            ) from None
        if not re.search(self.special, text):
            return text
        if self._quote is None:
            raise InputError(
                f"{self.name}: {what} {quoted(text)} cannot be written without quotes; read the file with quotes, or "
                "with another delimiter"
            )
        return self._quote + text.replace(self._quote, self._quote * 2) + self._quote


class CsvSink(AbstractContextManager["CsvSink"]):
    """Writes a CSV file as its source is written; a context manager that closes it if all went well.

    Cells that are kept stay byte for byte, their quotes included. A written cell is quoted only if it holds a
    delimiter, a quote or a line break, or would leave its line blank.
    """

    def __init__(
        self,
        source: CsvSource,
        target: BinaryIO,
        outputs: Sequence[Output],
        compression: Compression | None,
    ) -> None:
        self._begin(source, outputs, source.options, source.text.encoding)
        alone = len(outputs) == 1
        self._lone = (
            outputs[0].position
            if alone and isinstance(outputs[0], KeptColumn)
            else None
        )
        if self._lone is not None and len(source.header) > 1:
            outputs = [WrittenColumn(source.header[self._lone], self._lone)]
        else:
            self._lone = None
        self._edits = edits_of(outputs, len(source.header))
        self._prepared: dict[int, tuple[Any, Any]] = {}
        cells = [
            source.blocks.header[output.position].decode()
            if isinstance(output, KeptColumn)
            else self._writer.cell(output.name, "the column")
            for output in outputs
        ]
        self._open(target, compression, source.text.mark)
        self._put(self._delimiter.join(cells).encode() + source.blocks.newline)

    def _begin(
        self,
        source: Any,
        outputs: Sequence[Output],
        options: TextOptions,
        encoding: str,
    ) -> None:
        check_outputs(outputs, len(source.header))
        self.records = 0
        self._delimiter, self._encoding = options.delimiter, encoding
        self._encoder = codecs.getincrementalencoder(encoding)()
        self._writer = CellWriter(
            source.name, options, encoding, alone=len(outputs) == 1
        )

    def _open(
        self, target: BinaryIO, compression: Compression | None, mark: bytes = b""
    ) -> None:
        self._plain = LeftOpen(target)
        self._target = compressed(self._plain, compression)
        write_all(self._target, mark)

    def __exit__(self, *raised: object) -> None:
        if raised[0] is not None:
            self._plain.abandoned = True
        self.close()

    def write(self, batch: Any, written: Sequence[Any]) -> None:
        """Write a batch of the source, with the columns that were written anew."""
        if self._lone is not None:
            written = [batch.texts(self._lone)]
        if not self._edits:
            self._put(memoryview(batch.text)[: batch.size])
        else:
            coded = [self._coded(k, column) for k, column in enumerate(written)]
            self._put(self._exchanged(batch, coded))
        self.records += batch.num_rows

    def write_packed(self, part: Any) -> None:
        """Write lines, as `CsvBatch.packed` gives them."""
        lines = part.column(0)
        ends = np.frombuffer(lines.buffers()[1], np.int32)[
            lines.offset : lines.offset + len(lines) + 1
        ]
        self._put(memoryview(lines.buffers()[2])[ends[0] : ends[-1]])
        self.records += len(lines)

    def close(self) -> None:
        """Write what is left; the target stays open."""
        self._target.close()

    def _exchanged(
        self, block: TextBlock, written: Sequence[tuple[Positions, Any]]
    ) -> bytes:
        """The lines of the block with the texts of the written columns."""
        import pyarrow as pa

        cuts = np.empty((len(block.starts), len(self._edits), 2), np.int64)
        for k, edit in enumerate(self._edits):
            cuts[:, k, 0] = (
                block.starts if edit.after is None else block.ends[:, edit.after]
            )
            if edit.before == 0:
                cuts[:, k, 1] = block.starts
            else:
                ends = block.ends[:, -1 if edit.before is None else edit.before - 1]
                cuts[:, k, 1] = ends + edit.takes_delimiter
        codes = np.empty((len(block.starts), len(written)), np.int64)
        used = [written[j] for edit in self._edits for j in edit.written]
        base = 0
        for slot, (of, known) in enumerate(used):
            codes[:, slot] = of
            codes[:, slot] += base
            base += len(known)
        _, offsets, data = pa.concat_arrays(
            [arrow_texts([]), *(known for _, known in used)]
        ).buffers()
        counts = np.array([len(edit.written) for edit in self._edits])
        return _csv.exchanged(
            block.text, block.size, cuts, codes, counts, offsets, data or b""
        )

    def _coded(self, k: int, column: Any) -> tuple[Any, Any]:
        """Codes of the written column number `k`, and its texts as they are to be written."""
        column = values_of(column)
        if column.indices.null_count or column.dictionary.null_count:
            column = column.dictionary_decode().fill_null("").dictionary_encode()
        known = self._prepared.get(k)
        if known is None or not known[0].equals(column.dictionary):
            self._prepared[k] = known = (
                column.dictionary,
                self._texts(k, column.dictionary),
            )
        return integers_of(column.indices), known[1]

    def _texts(self, k: int, dictionary: Any) -> Any:
        """The texts of the written column number `k` with their quotes and the delimiters about them."""
        edit = next(edit for edit in self._edits if k in edit.written)
        before = (
            self._delimiter if edit.after is not None or k != edit.written[0] else ""
        )
        after = (
            self._delimiter if edit.before is not None and k == edit.written[-1] else ""
        )
        texts = [
            before + self._writer.cell(text, "the text") + after
            for text in dictionary.to_pylist()
        ]
        return arrow_texts(texts)

    def _put(self, data: Any) -> None:
        if self._encoding != "utf-8":
            try:
                data = self._encoder.encode(bytes(data).decode())
            except UnicodeEncodeError:
                raise InputError(
                    f"{self._writer.name}: a cell cannot be written in {self._encoding}; write it as UTF-8"
                ) from None
        write_all(self._target, data)


class TextSink(CsvSink):
    """Writes columns of a Parquet file as a CSV: the texts of the cells by the rules of `cells`, nulls as empty."""

    def __init__(
        self, source: Any, target: BinaryIO, outputs: Sequence[Output], *how: Any
    ) -> None:
        import pyarrow as pa

        compression, given, escape = how
        options: TextOptions = given or TextOptions()
        self._begin(source, outputs, options, codecs.lookup(options.encoding).name)
        self._quote, self._escape, self._outputs = options.quote, escape, outputs
        fields = [field_of(output, source.schema) for output in outputs]
        for field in fields:
            try:
                encode(pa.array([], field.type), field.name)
            except InputError as error:
                raise InputError(
                    f"{source.name}: {error}, or leave it out (--drop)"
                ) from None
        self._open(target, compression)
        head = options.delimiter.join(
            self._writer.cell(field.name, "the column") for field in fields
        )
        self._put(f"{head}\n".encode())

    def write(self, batch: Any, written: Sequence[Any]) -> None:
        """Write a batch of the source, with the columns that were written anew."""
        import pyarrow.compute

        pc: Any = pyarrow.compute
        fresh = iter(written)
        columns = [
            self._written(
                batch.texts(output.position)
                if isinstance(output, KeptColumn)
                else next(fresh)
            )
            for output in self._outputs
        ]
        columns[-1] = pc.binary_join_element_wise(columns[-1], "", "\n")
        lines = pc.binary_join_element_wise(*columns, self._delimiter)
        self.write_packed(pyarrow.RecordBatch.from_arrays([lines], [""]))

    def _written(self, column: Any) -> Any:
        """The cells of a column, with quotes where they need them."""
        import pyarrow.compute

        pc: Any = pyarrow.compute
        simple = simple_texts(column)
        cells = (encode(column, "").expanded() if simple is None else simple).fill_null(
            ""
        )
        if self._escape:
            formulas = pc.match_substring_regex(cells, r"^[=+\-@\t\r]")
            formulas = pc.and_not(
                formulas, pc.match_substring_regex(cells, f"^{NUMBER}$")
            )
            cells = pc.if_else(
                formulas, pc.binary_join_element_wise("'", cells, ""), cells
            )
        if pc.any(pc.match_substring(cells, "\0")).as_py():
            raise InputError(
                f"{self._writer.name}: a cell holds NUL, which no CSV can; leave its column out"
            )
        special = pc.match_substring_regex(cells, self._writer.special)
        if not pc.any(special).as_py():
            return cells
        if self._quote is None:
            raise InputError(
                f"{self._writer.name}: a cell cannot be written without quotes; write it with quotes, or with another "
                "delimiter"
            )
        doubled = pc.replace_substring(cells, self._quote, self._quote * 2)
        return pc.if_else(
            special,
            pc.binary_join_element_wise(self._quote, doubled, self._quote, ""),
            cells,
        )


class CsvSource(AbstractContextManager["CsvSource"]):
    """Reads a CSV file, of `size` bytes.

    Every cell is the text between its delimiters, without the quotes around it. Nothing is guessed.
    """

    kind: Literal["CSV"] = "CSV"
    records: int | None = None
    """How many there are, where the format tells it beforehand."""

    def __init__(
        self, raw: RawInput, options: TextOptions, *, repeated_names: bool = False
    ) -> None:
        self.name = raw.name
        self.size = raw.size
        self.options = options
        self._block: TextBlock | None = None
        self._raw = raw
        self._begin()
        self.header = [
            _unquoted(cell.decode(), options.quote) for cell in self.blocks.header
        ]
        twice = [name for name, times in Counter(self.header).items() if times > 1]
        if twice and not repeated_names:
            raise InputError(
                f"{self.name}: the header has the column {quoted(twice[0])} more than once"
            )

    def _begin(self) -> None:
        self.text = TextInput(self._raw, self.options.encoding)
        self.blocks = Blocks(
            self.text, self.name, self.options.delimiter, self.options.quote
        )

    def __exit__(self, *raised: object) -> None:
        self.close()

    @property
    def position(self) -> int:
        """Bytes of the file read so far."""
        return self.text.cursor.position

    @property
    def cut(self) -> bool:
        """Whether the last line, if it has been read, has no end."""
        return self.blocks.completed

    def batches(
        self,
        *,
        encode: Sequence[str] = (),
        read: Sequence[str] = (),
        whole: bool = True,
    ) -> Iterator[CsvBatch]:
        """All records, some at a time; from the beginning of the file at every call."""
        for name in (*encode, *read):
            require_column(name, self.header)
        self._begin()
        for block in self.blocks:
            self._block = block
            yield CsvBatch(
                **vars(block),
                names=self.header,
                quote=self.options.quote,
                encode=encode,
            )

    def where(self, record: int) -> str:
        """The file and the line where a record begins; the file is read again unless the last batch holds it."""
        last = [] if self._block is None else [self._block]
        self._begin()
        for block in chain(last, self.blocks):
            if block.record <= record < block.record + len(block.starts):
                return f"{self.name}, line {block.line_of(record - block.record)}"
        return f"{self.name}, record {record + 1}"

    def sink(
        self,
        target: BinaryIO,
        outputs: Sequence[Output],
        *,
        compression: Compression | None = None,
    ) -> CsvSink:
        """A CSV file with the same delimiter, quotes, encoding, byte-order mark and line ends."""
        return CsvSink(self, target, outputs, compression)

    def write_table(
        self,
        target: BinaryIO,
        columns: Mapping[str, Sequence[Any]],
        *,
        compression: Compression | None = None,
    ) -> None:
        """Write a new table as this file is written."""
        writer = CellWriter(
            self.name, self.options, self.text.encoding, alone=len(columns) == 1
        )
        cell, rows = (
            lru_cache(partial(writer.cell, what="the text")),
            zip(*columns.values(), strict=True),
        )
        head = (writer.cell(name, "the column") for name in columns)
        lines = chain([head], (map(cell, map(str, row)) for row in rows))
        newline, stream = (
            self.blocks.newline.decode(),
            compressed(LeftOpen(target), compression),
        )
        write_all(stream, self.text.mark)
        delimiter = self.options.delimiter
        while text := "".join(
            delimiter.join(line) + newline for line in islice(lines, 10_000)
        ):
            write_all(stream, text.encode(self.text.encoding))
        stream.close()

    def close(self) -> None:
        """Close the file, if it was opened here."""
        self._raw.close()


FORMULAS = "=+-@\t\r"
"""What a cell begins with that a spreadsheet takes for a formula."""

NUMBER = r"[+-]?[0-9.,]+([eE][+-]?[0-9]+)?%?"


def as_text(cell: str) -> str:
    """A cell with an apostrophe before it, where a spreadsheet would take it for a formula and it is no number."""
    return (
        f"'{cell}"
        if cell and cell[0] in FORMULAS and not re.fullmatch(NUMBER, cell)
        else cell
    )


@dataclass(frozen=True, kw_only=True)
class CsvBatch(TextBlock):
    """Some records of a CSV file, in order."""

    names: Sequence[str]
    quote: str | None
    encode: Sequence[str]

    @property
    def num_rows(self) -> int:
        """How many records."""
        return len(self.starts)

    def column(self, name: str, /) -> Any:
        """The texts of a column, as codes if `Source.batches` was asked to encode it."""
        cells = self.texts(self.names.index(name))
        if name not in self.encode:
            return cells
        import pyarrow as pa

        codes, firsts = (
            pa.py_buffer(found) for found in _csv.numbered(*cells.buffers()[1:])
        )
        known = cells.take(
            pa.Array.from_buffers(pa.int32(), len(firsts) // 4, [None, firsts])
        )
        indices = pa.Array.from_buffers(pa.int32(), len(cells), [None, codes])
        return pa.DictionaryArray.from_arrays(indices, known, safe=False)

    def texts(self, position: int) -> Any:
        """The texts of the column at `position`."""
        starts = self.ends[:, position - 1] + 1 if position else self.starts
        return self._texts(starts, self.ends[:, position])

    def _cells(self) -> Positions:
        return np.hstack([self.starts[:, None], self.ends[:, :-1] + 1])

    def rows(self) -> list[list[str]]:
        """All cells as text, row by row."""
        texts = self._texts(self._cells().ravel(), self.ends.ravel()).to_pylist()
        return np.array(texts, dtype=object).reshape(self.ends.shape).tolist()

    def some(self, step: int, /) -> CsvBatch:
        """Every so manieth record, to be looked at."""
        return replace(self, starts=self.starts[::step], ends=self.ends[::step])

    def escaped(self) -> CsvBatch:
        """The records with an apostrophe before every cell that a spreadsheet would take for a formula."""
        text, data, starts = (
            self.text,
            np.frombuffer(self.text, np.uint8),
            self._cells(),
        )
        starts += data[starts] == (
            0 if self.quote is None else ord(self.quote)
        )  # there are no zeros
        signs = np.isin(data[np.minimum(starts, self.size - 1)], [*map(ord, FORMULAS)])
        signs &= starts < self.ends
        pairs = zip(starts[signs].tolist(), self.ends[signs].tolist(), strict=True)
        cells = [
            (at, text[at:end].decode().rstrip(self.quote or "")) for at, end in pairs
        ]
        at = np.array(
            [place for place, cell in cells if as_text(cell) != cell], np.int64
        )
        return replace(
            self,
            text=b"'".join(
                [text[i:j] for i, j in pairwise([0, *at.tolist(), len(text)])]
            ),
            starts=self.starts + np.searchsorted(at, self.starts),
            ends=self.ends + np.searchsorted(at, self.ends),
            size=self.size + int(np.searchsorted(at, self.size)),
        )

    def packed(self) -> Any:
        """The lines as an arrow batch of one column, for `CsvSink.write_packed`."""
        import pyarrow as pa

        bounds = np.append(self.starts, self.size).astype(np.int32)
        return pa.RecordBatch.from_arrays([pieces_of(self.text, bounds)], [""])

    def _texts(self, starts: Positions, ends: Positions) -> Any:
        """The texts of cells that begin and end there, without the quotes around them."""
        import pyarrow as pa

        quote = -1 if self.quote is None or not self.quotes else ord(self.quote)
        first, last = np.ascontiguousarray(starts), np.ascontiguousarray(ends)
        found = _csv.texts(self.text, first, last, quote)
        return pa.Array.from_buffers(
            pa.string(), len(starts), [None, *map(pa.py_buffer, found)]
        )


def _unquoted(cell: str, quote: str | None) -> str:
    if quote is None or not cell.startswith(quote):
        return cell
    return cell[1:-1].replace(quote * 2, quote)
