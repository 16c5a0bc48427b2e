"""A CSV file as a source of batches."""

# pyarrow tells too little of its types for the strict mode.
# pyright: basic
from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, BinaryIO, Literal

import numpy as np

from mechdesign.arrow_arrays import arrow_integers
from mechdesign.cells import require_column
from mechdesign.errors import InputError
from mechdesign.exact import quoted
from mechdesign.sanitise.compression import Compression
from mechdesign.sanitise.csv_blocks import Block, Blocks
from mechdesign.sanitise.csv_quotes import Positions
from mechdesign.sanitise.csv_sink import CsvSink
from mechdesign.sanitise.csv_structure import pieces_of
from mechdesign.sanitise.csv_text_input import TextInput
from mechdesign.sanitise.inputs import RawInput
from mechdesign.sanitise.streams import Output
from mechdesign.sanitise.text_options import TextOptions


class CsvSource:
    """Reads a CSV file; see `streams.Source`.

    Every cell is the text between its delimiters, without the quotes around it. Nothing is guessed.

    Raises
    ------
    InputError
        If the header is missing or repeats a name, or the beginning of the file is no table.
    """

    kind: Literal["CSV"] = "CSV"
    unit: Literal["bytes"] = "bytes"
    records: int | None = None

    def __init__(self, raw: RawInput, options: TextOptions) -> None:
        self.name = raw.name
        self.size = raw.size
        self.options = options
        self._block: Block | None = None
        self._raw = raw
        self.text = TextInput(raw, options.encoding)
        self.blocks = self._blocks(self.text)
        self.header = [_unquoted(cell.decode(), options.quote) for cell in self.blocks.header]
        twice = [name for name, times in Counter(self.header).items() if times > 1]
        if twice:
            raise InputError(f"{self.name}: the header has the column {quoted(twice[0])} more than once")

    def _blocks(self, text: TextInput) -> Blocks:
        return Blocks(text, self.name, self.options.delimiter, self.options.quote)

    def __enter__(self) -> CsvSource:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    @property
    def position(self) -> int:
        """Bytes of the file read so far."""
        return self.text.cursor.position

    def batches(self, *, encode: Sequence[str] = (), read: Sequence[str] = ()) -> Iterator[CsvBatch]:
        """All records, some at a time; once."""
        for name in (*encode, *read):
            require_column(name, self.header)
        for block in self.blocks:
            self._block = block
            yield CsvBatch(block, self.header, self.options.quote, frozenset(encode))

    def where(self, record: int) -> str:
        """The file and the line where a record begins; the file is read again unless the last batch holds it."""
        last = [] if self._block is None else [self._block]
        for block in chain(last, self._blocks(TextInput(self._raw, self.options.encoding))):
            if block.record <= record < block.record + len(block.starts):
                return f"{self.name}, line {block.line_of(record - block.record)}"
        return f"{self.name}, record {record + 1}"

    def sink(
        self, target: BinaryIO, outputs: Sequence[Output], *, compression: Compression | None = None
    ) -> CsvSink:
        """A CSV file with the same delimiter, quotes, encoding, byte-order mark and line ends."""
        return CsvSink(self, target, outputs, compression)

    def close(self) -> None:
        """Close the file, if it was opened here."""
        self._raw.close()


class CsvBatch:
    """Some records of a CSV file; see `streams.Batch`."""

    def __init__(
        self, block: Block, header: Sequence[str], quote: str | None, encode: frozenset[str]
    ) -> None:
        self.block = block
        self._header = header
        self._quote = quote
        self._encode = encode

    @property
    def num_rows(self) -> int:
        """How many records."""
        return len(self.block.starts)

    def column(self, name: str, /) -> Any:
        """The texts of a column, as codes if `Source.batches` was asked to encode it."""
        cells = self.texts(self._header.index(name))
        return cells.dictionary_encode() if name in self._encode else cells

    def texts(self, position: int) -> Any:
        """The texts of the column at `position`."""
        import pyarrow.compute

        pc: Any = pyarrow.compute
        block = self.block
        starts, ends = block.starts, block.ends[:, position]
        if position:
            starts = block.ends[:, position - 1] + 1
        if not block.quotes or self._quote is None:
            return _slices(block.text, starts, ends)
        data = np.frombuffer(block.text, np.uint8)
        around = (data[starts] == ord(self._quote)) & (ends > starts)
        cells = _slices(block.text, starts + around, ends - around)
        if self._quote.encode() not in cells.buffers()[2].to_pybytes():
            return cells
        single = pc.replace_substring(cells, self._quote * 2, self._quote)
        return pc.if_else(around, single, cells)


def _slices(text: bytes, starts: Positions, ends: Positions) -> Any:
    """The pieces of `text` from each start to each end, in order."""
    offsets = np.empty(2 * len(starts), np.int32)
    offsets[0::2], offsets[1::2] = starts, ends
    return pieces_of(text, offsets).take(arrow_integers(np.arange(0, 2 * len(starts), 2, dtype=np.int32)))


def _unquoted(cell: str, quote: str | None) -> str:
    if quote is None or not cell.startswith(quote):
        return cell
    return cell[1:-1].replace(quote * 2, quote)
