"""Writing a CSV source with some columns exchanged, so that kept cells stay byte for byte.

The exchanges are the same in every row (`edits_of`): which cells go, and which written columns come
in their place. For every block the places of these cuts are computed, and a function in C copies
what lies between them and puts the new texts in.

For example, of the columns a, b, c the second is exchanged. In the row ``1,22,3`` the cut is from
byte 1, the end of the first cell, to byte 5, behind the second delimiter. The new text is ``,x,``
with its delimiters, so the row becomes ``1,x,3``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np

from mechdesign.formats import _csv
from mechdesign.formats.arrow_arrays import arrow_texts, integers_of, without_nulls
from mechdesign.formats.compression import Compression
from mechdesign.formats.csv_blocks import TextBlock
from mechdesign.formats.csv_rows import Positions
from mechdesign.formats.csv_text import CellWriter, TextStream
from mechdesign.formats.outputs import (
    KeptColumn,
    Output,
    WrittenColumn,
    check_outputs,
    values_of,
)
from mechdesign.formats.text_options import TextOptions


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
