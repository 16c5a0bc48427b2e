"""Writing a CSV source with some columns exchanged, so that kept cells stay byte for byte.

The exchanges are the same in every row (`edits_of`): which cells go, and which written columns come
in their place. For every block the places of these cuts are computed, and a function in C copies
what lies between them and puts the new texts in.

For example, of the columns a, b, c the second is exchanged. In the row ``1,22,3`` the cut is from
byte 1, the end of the first cell, to byte 5, behind the second delimiter. The new text is ``,x,``
with its delimiters, so the row becomes ``1,x,3``.

*The text* has quotes where needed, an encoding and a compression. `CellWriter` gives a cell quotes
where it would be read as something else without them: if it holds the delimiter, a quote or a line
break. Quotes within are doubled:

    5" pipe, new        becomes        "5"" pipe, new"

`TextStream` is the base of the two sinks of CSV text: `CsvSink`, which copies the kept cells of a
CSV, and `TextSink`, which makes the cells of a Parquet file. They compose lines in UTF-8. The
stream recodes, compresses and writes these, so nothing else knows of encodings and compression.

*From Parquet.* Every column is made text as a whole (`_cells`), by the rules by which the cells of
Parquet become symbols (`cells`). A null becomes an empty cell. If asked, formulas get an apostrophe
before them. Then the cells that need quotes get them. `write` joins the columns to lines, here of
three columns with `escape`:

    Parquet     1.0     null    =A1,A2
    CSV         1.0,,"'=A1,A2"

Columns of lists or structures have no text, and are refused before anything is written.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, BinaryIO, Self

import numpy as np

from mechdesign.core.errors import FileError, InputError
from mechdesign.core.wording import quoted
from mechdesign.formats import _csv
from mechdesign.formats.arrow_arrays import (
    KeptColumn,
    Output,
    WrittenColumn,
    arrow_texts,
    check_outputs,
    field_of,
    integers_of,
    values_of,
    without_nulls,
)
from mechdesign.formats.cells import encode, simple_texts
from mechdesign.formats.compression import Compression, LeftOpen, compressed, write_all
from mechdesign.formats.csv_blocks import Positions, TextBlock
from mechdesign.formats.csv_text import TextOptions
from mechdesign.formats.spellings import NUMBER

# --------------------------------------------------------------------------------- text


class CellWriter:
    """Writes cells, with quotes where they need them.

    Parameters
    ----------
    name : str
        The file, for messages.
    encoding : str
        In which a cell must be possible to write.
    alone : bool
        Whether the file has one column. An empty cell then needs quotes, because a blank line is
        read as no record.

    Attributes
    ----------
    special : str
        A pattern of the characters that need quotes, for pyarrow and Python.
    """

    def __init__(
        self, name: str, options: TextOptions, encoding: str, *, alone: bool
    ) -> None:
        self.name = name
        self._quote = options.quote
        self._encoding = encoding
        # Hexadecimal escapes mean the same to pyarrow and to Python.
        characters = options.delimiter + (options.quote or "")
        escapes = "".join(f"\\x{ord(character):02x}" for character in characters)
        self.special = f"[{escapes}\\r\\n]"
        if alone:
            self.special += "|^$"

    def cell(self, text: str, what: str) -> str:
        """The text as it is written; `what` names it in messages."""
        try:
            text.encode(self._encoding)
        except UnicodeEncodeError:
            raise FileError(
                self.name,
                f"{self.name}: {what} {quoted(text)} cannot be written in {self._encoding}, "
                "the encoding of the file; save the file as UTF-8",
            ) from None
        if not re.search(self.special, text):
            return text
        if self._quote is None:
            raise FileError(
                self.name,
                f"{self.name}: {what} {quoted(text)} cannot be written without quotes; read the "
                "file with quotes, or with another delimiter",
            )
        return self._quote + text.replace(self._quote, self._quote * 2) + self._quote


class TextStream(AbstractContextManager["TextStream"]):
    """Text written to a target in an encoding, perhaps compressed; the base of the CSV sinks.

    A subclass calls `_open` when it knows that it can write, and `_put` for the header and every
    batch of lines.

    A context manager that closes the text. After an exception nothing more reaches the target,
    not even the end of the compressed data: who reads the target must not take it for whole.
    """

    def __init__(self, name: str, options: TextOptions, encoding: str) -> None:
        self.records = 0
        self._name = name
        self._delimiter = options.delimiter
        self._encoding = encoding
        self._encoder = codecs.getincrementalencoder(encoding)()

    def _open(
        self, target: BinaryIO, compression: Compression | None, mark: bytes = b""
    ) -> None:
        """Begin the text with a byte-order mark."""
        self._plain = LeftOpen(target)
        self._target = compressed(self._plain, compression)
        write_all(self._target, mark)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        if raised[0] is not None:
            self._plain.abandoned = True
        self.close()

    def write_packed(self, part: Any) -> None:
        """Write a batch of one column of lines, as `CsvBatch.packed` returns them."""
        # An arrow array has all texts one after another in a buffer, which is written as it is.
        lines = part.column(0)
        _, offsets, text = lines.buffers()
        bounds = np.frombuffer(offsets, np.int32)
        first = bounds[lines.offset]
        end = bounds[lines.offset + len(lines)]
        self._put(memoryview(text)[first:end])
        self.records += len(lines)

    def close(self) -> None:
        """End the text; the target stays open."""
        self._target.close()

    def _put(self, data: Any) -> None:
        """Write UTF-8 text in the encoding of the file."""
        if self._encoding != "utf-8":
            data = self._recoded(data)
        write_all(self._target, data)

    def _recoded(self, data: Any) -> bytes:
        """UTF-8 text in the encoding of the file.

        Kept cells were read in this encoding; a written cell can have a character that it lacks.
        """
        try:
            return self._encoder.encode(bytes(data).decode())
        except UnicodeEncodeError:
            raise FileError(
                self._name,
                f"{self._name}: a cell cannot be written in {self._encoding}; write it as UTF-8",
            ) from None


# --------------------------------------------------------------------------------- sink


@dataclass(frozen=True)
class CsvLayout:
    """How a CSV file is written.

    Attributes
    ----------
    name : str
        The name of the file, for messages.
    options : TextOptions
        Delimiter and quote.
    encoding : str
        The encoding, with its byte order.
    mark, newline : bytes
        The byte-order mark, and a line break, both as they stand in the file.
    header : sequence of str
        The names of the columns.
    header_cells : sequence of bytes
        The same as they stand in the file, with quotes.
    """

    name: str
    options: TextOptions
    encoding: str
    mark: bytes
    newline: bytes
    header: Sequence[str]
    header_cells: Sequence[bytes]


@dataclass(frozen=True)
class Edit:
    """One exchange in every row: cells that go, and columns that are written in their place.

    Attributes
    ----------
    after, before : int or None
        The kept columns on both sides; None at an end of the row.
    written : tuple of int
        The numbers of the written columns.
    """

    after: int | None
    before: int | None
    written: tuple[int, ...]

    @property
    def takes_delimiter(self) -> bool:
        """Whether the delimiter before the kept column `before` goes too.

        The written text brings its own delimiters.
        """
        if self.before is None:
            return False
        return self.after is None or bool(self.written)


def edits_of(outputs: Sequence[Output], width: int) -> list[Edit]:
    """The exchanges that turn a row of `width` cells into a row of the outputs."""
    edits: list[Edit] = []
    after: int | None = None
    written: list[int] = []
    count = 0
    for output in (*outputs, None):
        if isinstance(output, WrittenColumn):
            written.append(count)
            count += 1
            continue
        # A kept column, or the end of the row, completes an edit.
        before = None if output is None else output.position
        first_gone = 0 if after is None else after + 1
        end_gone = width if before is None else before
        if written or end_gone > first_gone:
            edits.append(Edit(after, before, tuple(written)))
        after = before
        written = []
    return edits


class CsvSink(TextStream):
    """Writes a CSV file in the format of its source, with some columns exchanged.

    Kept cells stay byte for byte, with their quotes. A written cell is quoted only if it holds a
    delimiter, a quote or a line break, or would leave its line blank.
    """

    def __init__(
        self,
        layout: CsvLayout,
        target: BinaryIO,
        outputs: Sequence[Output],
        compression: Compression | None,
    ) -> None:
        width = len(layout.header)
        check_outputs(outputs, width)
        super().__init__(layout.name, layout.options, layout.encoding)
        alone = len(outputs) == 1
        self._writer = CellWriter(
            layout.name, layout.options, layout.encoding, alone=alone
        )
        self._lone: int | None = None
        """The only column that is kept of several.

        It is written anew: its empty cells need quotes.
        """
        if alone and isinstance(outputs[0], KeptColumn) and width > 1:
            self._lone = outputs[0].position
            outputs = [WrittenColumn(layout.header[self._lone], self._lone)]
        self._edits = edits_of(outputs, width)
        self._newline = layout.newline
        self._has_even_lines = False
        self._written_texts: dict[int, tuple[Any, Any]] = {}
        """The last dictionary of each written column, and its texts as they are written."""
        # Kept names stay byte for byte, too.
        names: list[str] = []
        for output in outputs:
            if isinstance(output, KeptColumn):
                names.append(layout.header_cells[output.position].decode())
            else:
                names.append(self._writer.cell(output.name, "the column"))
        self._open(target, compression, layout.mark)
        self._put(self._delimiter.join(names).encode() + layout.newline)

    def even_lines(self) -> None:
        """End every line as the header ends: line breaks of two kinds would distinguish records."""
        self._has_even_lines = True

    def write(self, batch: Any, written: Sequence[Any]) -> None:
        """Write a batch of the source with its written columns."""
        if self._lone is not None:
            written = [batch.texts(self._lone)]
        if not self._edits:
            self._put(memoryview(batch.text)[: batch.size])
        else:
            columns = [self._coded(k, column) for k, column in enumerate(written)]
            self._put(self._exchanged(batch, columns))
        self.records += batch.num_rows

    def _exchanged(
        self, block: TextBlock, written: Sequence[tuple[Positions, Any]]
    ) -> bytes:
        """The lines of the block with the texts of the written columns.

        `written` has for each column the code of every row and the texts of the codes.
        """
        import pyarrow as pa

        rows = len(block.starts)
        cuts = np.empty((len(self._edits), 2, rows), np.int64)
        for edit, cut in zip(self._edits, cuts, strict=True):
            self._cut(block, edit, cut)
        # All texts go into one array, so the codes of each column move by those before it.
        codes = np.empty((len(written), rows), np.int32)
        all_texts = [arrow_texts([])]
        slot = 0
        base = 0
        for edit in self._edits:
            for k in edit.written:
                column_codes, texts = written[k]
                np.add(column_codes, base, out=codes[slot])
                all_texts.append(texts)
                base += len(texts)
                slot += 1
        counts = np.array([len(edit.written) for edit in self._edits])
        # An uneven line break is one more edit: the text of the header's takes its place.
        breaks = self._uneven_breaks(block)
        if breaks is not None:
            cuts = np.concatenate([cuts, breaks[None]])
            codes = np.vstack([codes, np.full(rows, base, np.int32)])
            counts = np.append(counts, 1)
            all_texts.append(arrow_texts([self._newline.decode()]))
        _, offsets, data = pa.concat_arrays(all_texts).buffers()
        return _csv.exchanged(
            block.text, block.size, cuts, codes, counts, offsets, data or b""
        )

    def _uneven_breaks(self, block: TextBlock) -> Positions | None:
        """Where the line break of each row begins and ends, if some differ and should not."""
        if not self._has_even_lines:
            return None
        if self._newline == b"\n" and b"\r" not in block.text:
            return None
        begins = block.ends[:, -1]
        breaks = np.vstack([begins, np.append(block.starts[1:], block.size)])
        # A break is CR, LF or both, so its length and first byte identify it.
        first_bytes = np.frombuffer(block.text, np.uint8)[begins]
        is_long = breaks[1] - begins != len(self._newline)
        if not is_long.any() and (first_bytes == self._newline[0]).all():
            return None
        return breaks

    def _cut(self, block: TextBlock, edit: Edit, cut: Positions) -> None:
        """Put where an edit begins and ends in each row into `cut`, a (2, n) array."""
        if edit.after is None:
            cut[0] = block.starts
        else:
            cut[0] = block.ends[:, edit.after]
        if edit.before == 0:
            cut[1] = block.starts
        else:
            last_gone = -1 if edit.before is None else edit.before - 1
            cut[1] = block.ends[:, last_gone] + edit.takes_delimiter

    def _coded(self, k: int, column: Any) -> tuple[Any, Any]:
        """Codes of the written column `k`, and its texts as they are written."""
        column = values_of(column)
        # A null is an empty cell.
        if column.indices.null_count or column.dictionary.null_count:
            column = without_nulls(column.dictionary_decode()).dictionary_encode()
        cached = self._written_texts.get(k)
        # Batches mostly share their dictionary: its texts are quoted once.
        if cached is None or not cached[0].equals(column.dictionary):
            texts = self._delimited_texts(k, column.dictionary)
            cached = (column.dictionary, texts)
            self._written_texts[k] = cached
        return integers_of(column.indices), cached[1]

    def _delimited_texts(self, k: int, dictionary: Any) -> Any:
        """The texts of the written column `k` with quotes, and with the delimiters around them."""
        edit = next(edit for edit in self._edits if k in edit.written)
        # One delimiter before every column but the first of the row, and one more before the kept
        # column that follows.
        before = ""
        if edit.after is not None or k != edit.written[0]:
            before = self._delimiter
        after = ""
        if edit.before is not None and k == edit.written[-1]:
            after = self._delimiter
        texts: list[str] = []
        for text in dictionary.to_pylist():
            texts.append(before + self._writer.cell(text, "the text") + after)
        return arrow_texts(texts)


# ------------------------------------------------------------------------- from Parquet


class TextSink(TextStream):
    """Writes a Parquet source as a CSV: cells by the rules of `cells`, nulls as empty cells.

    With `escape` a cell that a spreadsheet would take for a formula gets an apostrophe.
    """

    def __init__(
        self,
        name: str,
        schema: Any,
        target: BinaryIO,
        outputs: Sequence[Output],
        compression: Compression | None,
        text: TextOptions | None,
        escape: bool,
    ) -> None:
        check_outputs(outputs, len(schema.names))
        options = text or TextOptions()
        encoding = codecs.lookup(options.encoding).name
        super().__init__(name, options, encoding)
        self._writer = CellWriter(name, options, encoding, alone=len(outputs) == 1)
        self._quote = options.quote
        self._escape = escape
        self._outputs = outputs
        fields = [field_of(output, schema) for output in outputs]
        for field in fields:
            _require_text_type(field, name)
        self._open(target, compression)
        names = [self._writer.cell(field.name, "the column") for field in fields]
        self._put(f"{options.delimiter.join(names)}\n".encode())

    def write(self, batch: Any, written: Sequence[Any]) -> None:
        """Write a batch of the source with its written columns."""
        import pyarrow.compute

        pc: Any = pyarrow.compute
        fresh = iter(written)
        columns: list[Any] = []
        for output in self._outputs:
            if isinstance(output, KeptColumn):
                column = batch.texts(output.position)
            else:
                column = next(fresh)
            columns.append(self._cells(column))
        # The last argument is the separator, so an empty text after it ends the line.
        columns[-1] = pc.binary_join_element_wise(columns[-1], "", "\n")
        lines = pc.binary_join_element_wise(*columns, self._delimiter)
        self.write_packed(pyarrow.RecordBatch.from_arrays([lines], [""]))

    def _cells(self, column: Any) -> Any:
        """The cells of a column, with quotes where they need them."""
        import pyarrow.compute

        pc: Any = pyarrow.compute
        # Arrow writes text and integers as `cells` does, without a loop in Python.
        cells = simple_texts(column)
        if cells is None:
            cells = encode(column, "").expanded()
        cells = without_nulls(cells)
        # Before the quotes: a spreadsheet sees the cell without them.
        if self._escape:
            cells = _escaped(cells)
        if pc.any(pc.match_substring(cells, "\0")).as_py():
            raise FileError(
                self._name,
                f"{self._name}: a cell holds NUL, which no CSV can; leave its column out",
            )
        special = pc.match_substring_regex(cells, self._writer.special)
        if not pc.any(special).as_py():
            return cells
        if self._quote is None:
            raise FileError(
                self._name,
                f"{self._name}: a cell cannot be written without quotes; write it with quotes, "
                "or with another delimiter",
            )
        doubled = pc.replace_substring(cells, self._quote, self._quote * 2)
        in_quotes = pc.binary_join_element_wise(self._quote, doubled, self._quote, "")
        return pc.if_else(special, in_quotes, cells)


def _require_text_type(field: Any, name: str) -> None:
    """Refuse a column whose cells have no text, such as lists."""
    import pyarrow as pa

    # The rules of `cells` go by the type, so an empty column of it is enough.
    try:
        encode(pa.array([], field.type), field.name)
    except InputError as error:
        raise FileError(name, f"{name}: {error}, or leave it out (--drop)") from None


def _escaped(cells: Any) -> Any:
    """Formulas with an apostrophe before them: `spellings.as_text` for a whole column."""
    import pyarrow.compute

    pc: Any = pyarrow.compute
    formulas = pc.match_substring_regex(cells, r"^[=+\-@\t\r]")
    numbers = pc.match_substring_regex(cells, f"^{NUMBER}$")
    with_apostrophe = pc.binary_join_element_wise("'", cells, "")
    return pc.if_else(pc.and_not(formulas, numbers), with_apostrophe, cells)
