"""Writing a Parquet source as CSV text.

Every column is made text as a whole (`_cells`), by the rules by which the cells of Parquet become
symbols (`cells`). A null becomes an empty cell. If asked, formulas get an apostrophe before them.
Then the cells that need quotes get them. `write` joins the columns to lines, here of three columns
with `escape`:

    Parquet     1.0     null    =A1,A2
    CSV         1.0,,"'=A1,A2"

Columns of lists or structures have no text, and are refused before anything is written.
"""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from typing import Any, BinaryIO

from mechdesign.core.errors import FileError, InputError
from mechdesign.formats.arrow_arrays import without_nulls
from mechdesign.formats.cell_forms import NUMBER
from mechdesign.formats.cells import encode, simple_texts
from mechdesign.formats.compression import Compression
from mechdesign.formats.csv_sinks import CellWriter, TextStream
from mechdesign.formats.outputs import (
    KeptColumn,
    Output,
    check_outputs,
    field_of,
)
from mechdesign.formats.text_options import TextOptions


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
    """Formulas with an apostrophe before them: `cell_forms.as_text` for a whole column."""
    import pyarrow.compute

    pc: Any = pyarrow.compute
    formulas = pc.match_substring_regex(cells, r"^[=+\-@\t\r]")
    numbers = pc.match_substring_regex(cells, f"^{NUMBER}$")
    with_apostrophe = pc.binary_join_element_wise("'", cells, "")
    return pc.if_else(pc.and_not(formulas, numbers), with_apostrophe, cells)
