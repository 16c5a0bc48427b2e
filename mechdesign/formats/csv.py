"""Reading CSV files as batches of records.

`csv_blocks` cuts the file into blocks of complete rows and finds where every cell begins and ends.
A `CsvBatch` keeps the bytes and these places; `column` and `texts` make texts only of the columns
that are asked for. So a column that stays is copied as it was written, byte for byte. For example,
a batch of two rows of the columns a and b:

    text            1,x<LF>3,x<LF>
    starts          [0, 4]              where the rows start
    ends            [[1, 3], [5, 7]]    where the cells end
    texts(1)        from ends[:, 0] + 1 = [2, 6] to ends[:, 1] = [3, 7]: "x", "x"
    column("b")     the same, or the codes 0, 0 into ("x",) if `batches` was to encode b

Every call of `batches` reads the file from its beginning. `where` reads it again to name the line
of a record, unless the last block has it: a line number is needed only for an error.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from itertools import chain, islice, pairwise
from typing import Any, BinaryIO, Literal

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.arguments import repeated
from mechdesign.core.errors import FileError, Notice
from mechdesign.core.wording import quoted
from mechdesign.formats import _csv
from mechdesign.formats.arrow_arrays import Output, arrow_offsets
from mechdesign.formats.column_names import Header, require_columns, title_hint
from mechdesign.formats.compression import Compression, LeftOpen, compressed, write_all
from mechdesign.formats.csv_blocks import Blocks, Positions, TextBlock, pieces_of
from mechdesign.formats.csv_sinks import CellWriter, CsvLayout, CsvSink
from mechdesign.formats.csv_text import TextInput, TextOptions
from mechdesign.formats.inputs import RawInput
from mechdesign.formats.spellings import FORMULAS, as_text

ROWS_AT_ONCE = 10_000
"""Rows of a new table that are joined into one text."""


class CsvSource(AbstractContextManager["CsvSource"]):
    """Reads a CSV file of `size` bytes.

    A cell is the text between its delimiters, without the quotes around it. No type is guessed.
    """

    kind: Literal["CSV"] = "CSV"
    records: int | None = None
    """The number of records, where the format stores it."""

    def __init__(
        self, raw: RawInput, options: TextOptions, *, repeated_names: bool = False
    ) -> None:
        self.name = raw.name
        self.size = raw.size
        self.options = options
        self.hidden_note: str | None = None
        """What is said of a cell that holds whole records, if there is one in what was read."""
        self._block: TextBlock | None = None
        """The block that was read last."""
        self._raw = raw
        self._rewind()
        above = 0 if options.skip_lines else self.blocks.lines_above
        self.header = Header(
            [_unquoted(cell.decode(), options.quote) for cell in self.blocks.header],
            above,
        )
        twice = repeated(self.header)
        if twice is not None and not repeated_names:
            # Two columns of one name are no title; several without a name may be one.
            remedy = "; give one of them another name"
            if not twice:
                remedy = "; name these columns, or take them away"
                if above:
                    remedy = (
                        f"{title_hint(above)}, or name its columns if it is the header"
                    )
            raise FileError(
                self.name,
                f"{self.name}: the header has the column {quoted(twice)} more than once{remedy}",
            )

    def _rewind(self) -> None:
        """Begin at the start of the file again, before the header."""
        self.text = TextInput(self._raw, self.options.encoding)
        self.blocks = Blocks(self.text, self.name, self.options)

    def __exit__(self, *raised: object) -> None:
        self.close()

    @property
    def position(self) -> int:
        """Bytes of the file read so far."""
        return self.text.cursor.position

    @property
    def cut(self) -> bool:
        """Whether the last line has been read and has no line break."""
        return self.blocks.completed

    def batches(
        self,
        *,
        encode: Sequence[str] = (),
        read: Sequence[str] = (),
        whole: bool = True,
    ) -> Iterator[CsvBatch]:
        """All records in batches; every call reads the file from its beginning.

        Parameters
        ----------
        encode : sequence of str
            Columns that are wanted as codes.
        read : sequence of str
            Other columns that are wanted.
        whole : bool
            Whether all columns are wanted; a CSV is always read whole.

        Raises
        ------
        FileChanged
            After the last batch, if the file changed since it was opened.
        """
        require_columns((*encode, *read), self.header)
        self._rewind()
        for block in self.blocks:
            self._block = block
            self._note_hidden(block)
            yield CsvBatch(
                text=block.text,
                ends=block.ends,
                starts=block.starts,
                size=block.size,
                quotes=block.quotes,
                line=block.line,
                record=block.record,
                names=self.header,
                quote=self.options.quote,
                encode=encode,
            )
        self._raw.check()

    def _note_hidden(self, block: TextBlock) -> None:
        """Say that a cell of the last block holds whole records, once for the file."""
        hidden = self.blocks.hidden
        if hidden is None or self.hidden_note is not None:
            return
        name = self.header[hidden.column]
        self.hidden_note = hidden.note(self.name, block.line_of(hidden.row), name)
        # One place for all who read the file. Of several passes Python tells the first one.
        warnings.warn(self.hidden_note, Notice, stacklevel=1)

    def where(self, record: int) -> str:
        """The file and the line of a record.

        The file is read again unless the last batch holds it.
        """
        # Errors are mostly about the block that was read last.
        last = [] if self._block is None else [self._block]
        self._rewind()
        for block in chain(last, self.blocks):
            row = record - block.record
            if 0 <= row < len(block.starts):
                return f"{self.name}, line {block.line_of(row)}"
        return f"{self.name}, record {record + 1}"

    def sink(
        self,
        target: BinaryIO,
        outputs: Sequence[Output],
        *,
        compression: Compression | None = None,
    ) -> CsvSink:
        """A sink for a CSV file in the format of this one.

        Delimiter, quotes, encoding, byte-order mark and line breaks are the same.
        """
        layout = CsvLayout(
            name=self.name,
            options=self.options,
            encoding=self.text.encoding,
            mark=self.text.mark,
            newline=self.blocks.newline,
            header=self.header,
            header_cells=self.blocks.header,
        )
        return CsvSink(layout, target, outputs, compression)

    def write_table(
        self,
        target: BinaryIO,
        columns: Mapping[str, Sequence[Any]],
        *,
        compression: Compression | None = None,
    ) -> None:
        """Write a new table in the format of this file."""
        writer = CellWriter(
            self.name, self.options, self.text.encoding, alone=len(columns) == 1
        )
        # Most columns have few different texts, each of which is checked and quoted once.
        cell = lru_cache(partial(writer.cell, what="the text"))
        delimiter = self.options.delimiter
        newline = self.blocks.newline.decode()

        def lines() -> Iterator[str]:
            names = [writer.cell(name, "the column") for name in columns]
            yield delimiter.join(names) + newline
            for row in zip(*columns.values(), strict=True):
                cells = [cell(str(value)) for value in row]
                yield delimiter.join(cells) + newline

        stream = compressed(LeftOpen(target), compression)
        write_all(stream, self.text.mark)
        remaining = lines()
        text = "".join(islice(remaining, ROWS_AT_ONCE))
        while text:
            write_all(stream, text.encode(self.text.encoding))
            text = "".join(islice(remaining, ROWS_AT_ONCE))
        stream.close()

    def close(self) -> None:
        """Close the file if it was opened here."""
        self._raw.close()


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

    @cached_property
    def _positions(self) -> dict[str, int]:
        """The positions of the columns by name, the first one of equal names."""
        # In reverse, so that the first of equal names is written last.
        places = range(len(self.names) - 1, -1, -1)
        return {self.names[place]: place for place in places}

    def column(self, name: str, /) -> Any:
        """The texts of a column, as codes if `CsvSource.batches` was asked to encode it."""
        import pyarrow as pa

        position = self._positions[name]
        if name not in self.encode:
            return self.texts(position)
        if self.quote_code < 0:
            starts = np.ascontiguousarray(self.starts)
            ends = np.ascontiguousarray(self.ends)
            cells = self.text, starts, ends, len(self.names), position
        else:
            # The same text may stand with and without quotes around it.
            bounds, data = arrow_offsets(self.texts(position))
            cells = data, bounds[:-1], bounds[1:], 1, 0
        # Codes by first appearance, and the row of the first cell of each, as 32-bit integers.
        codes, first_rows = _csv.numbered(*cells)
        firsts = np.frombuffer(first_rows, np.int32).astype(np.int64)
        distinct = self.at(firsts).texts(position)
        indices = pa.Array.from_buffers(
            pa.int32(), self.num_rows, [None, pa.py_buffer(codes)]
        )
        return pa.DictionaryArray.from_arrays(indices, distinct, safe=False)

    def texts(self, position: int) -> Any:
        """The texts of the column at `position`."""
        if position == 0:
            starts = self.starts
        else:
            starts = self.ends[:, position - 1] + 1
        return self._texts(starts, self.ends[:, position])

    def cell_starts(self) -> Positions:
        """Where each cell starts, as an (n, number of columns) array."""
        return np.hstack([self.starts[:, None], self.ends[:, :-1] + 1])

    @property
    def quote_code(self) -> int:
        """The byte of the quote, -1 if the text has none."""
        # Cells need not be searched for quotes where the whole text has none.
        if self.quote is None or not self.quotes:
            return -1
        return ord(self.quote)

    def rows(self) -> list[list[str]]:
        """All cells as text, row by row."""
        texts = self._texts(self.cell_starts().ravel(), self.ends.ravel()).to_pylist()
        return np.array(texts, dtype=object).reshape(self.ends.shape).tolist()

    def some(self, step: int, /) -> CsvBatch:
        """Every `step`-th record, for an inspection."""
        return self.at(slice(None, None, step))

    def at(self, places: slice | Positions) -> CsvBatch:
        """The records at these places."""
        return replace(self, starts=self.starts[places], ends=self.ends[places])

    def escaped(self) -> CsvBatch:
        """The records with an apostrophe before every cell that spreadsheets take for a formula."""
        places = self._formula_places()
        bounds = [0, *places.tolist(), len(self.text)]
        pieces = [self.text[start:end] for start, end in pairwise(bounds)]

        def moved(positions: Positions) -> Positions:
            # Each apostrophe before a position moves it by one byte.
            return positions + np.searchsorted(places, positions)

        return replace(
            self,
            text=b"'".join(pieces),
            starts=moved(self.starts),
            ends=moved(self.ends),
            size=self.size + int(np.searchsorted(places, self.size)),
        )

    def _formula_places(self) -> Positions:
        """Where the cells start that are formulas, behind their quote."""
        starts, first_bytes = self._first_bytes()
        signs = np.isin(first_bytes, [ord(sign) for sign in FORMULAS])
        # An empty cell has no first byte.
        signs &= starts < self.ends
        # Few cells begin with a sign, and only of those the text decides.
        places: list[int] = []
        for start, end in zip(
            starts[signs].tolist(), self.ends[signs].tolist(), strict=True
        ):
            cell = self.text[start:end].decode().rstrip(self.quote or "")
            if as_text(cell) != cell:
                places.append(start)
        return np.array(places, np.int64)

    def begin_with_digit(self, length: int) -> NDArray[np.bool_]:
        """In which columns a cell of at least so many bytes begins with a digit."""
        starts, first_bytes = self._first_bytes()
        digits = (first_bytes >= ord("0")) & (first_bytes <= ord("9"))
        long = self.ends - starts >= length
        return np.any(digits & long, axis=0)

    def _first_bytes(self) -> tuple[Positions, NDArray[np.uint8]]:
        """Where the text of each cell starts, behind its quote, and its first byte; that of an
        empty cell is another one.
        """
        data = np.frombuffer(self.text, np.uint8)
        starts = self.cell_starts()
        # An empty cell at the end of the text starts beyond its last byte.
        last = len(data) - 1
        if self.quote is not None:
            starts += data[np.minimum(starts, last)] == ord(self.quote)
        return starts, data[np.minimum(starts, last)]

    def packed(self) -> Any:
        """The lines as an arrow batch of one column, for `CsvSink.write_packed`."""
        import pyarrow as pa

        bounds = np.append(self.starts, self.size).astype(np.int32)
        return pa.RecordBatch.from_arrays([pieces_of(self.text, bounds)], [""])

    def _texts(self, starts: Positions, ends: Positions) -> Any:
        """The texts of cells by their starts and ends, without the quotes around them."""
        import pyarrow as pa

        offsets, data = _csv.texts(
            self.text,
            np.ascontiguousarray(starts),
            np.ascontiguousarray(ends),
            self.quote_code,
        )
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
        return pa.Array.from_buffers(pa.string(), len(starts), buffers)


def _unquoted(cell: str, quote: str | None) -> str:
    """The text of a cell without the quotes around it."""
    if quote is None or not cell.startswith(quote):
        return cell
    return cell[1:-1].replace(quote * 2, quote)
