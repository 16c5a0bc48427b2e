"""Applying a channel to a CSV file, batch by batch."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import TextIO

import numpy as np

from mechdesign.csv_text import MARK, CsvText, Row
from mechdesign.draws import Randomness
from mechdesign.errors import InputError
from mechdesign.frames import Codes, describe_unknown
from mechdesign.sampling import Sampler
from mechdesign.sanitise.plan import FileChannel, Plan, Wishes, make_plan
from mechdesign.variable import Variable

_TERMINATOR = "\r\n"


class _Lines:
    """Gives the lines of a `csv.writer` the line ending of the input.

    The writer quotes line breaks inside a cell only if they are part of its own line ending, so it always
    ends lines with both characters, and the ending is exchanged here.
    """

    def __init__(self, stream: TextIO, newline: str) -> None:
        self._stream = stream
        self._newline = newline

    def write(self, line: str) -> int:
        return self._stream.write(line[: -len(_TERMINATOR)] + self._newline)


def apply_csv(
    channel: FileChannel,
    source: str,
    target: Path,
    sampler: Sampler,
    stream: Randomness,
    *,
    columns: Mapping[str, str] | None,
    keep_sensitive: bool,
) -> tuple[int, Plan]:
    """Write the sanitised copy of a CSV file; the number of records and what was done.

    Raises
    ------
    InputError
        As `apply_file.sanitise_file`.
    """
    with CsvText(source) as table:
        try:
            wishes = Wishes(rename=columns or {}, keep_sensitive=keep_sensitive)
            plan = make_plan([channel], table.header, wishes)
            place = next(column.source for column in plan.columns if column.release is not None)
            removed = sorted(set(plan.inputs[0]) - {place}, reverse=True)
        except InputError as error:
            raise InputError(f"{source}: {error}") from None
        records = 0
        with open(target, "w", encoding="utf-8", newline="") as sink:
            sink.write(MARK if table.has_mark else "")
            writer = csv.writer(_Lines(sink, table.newline), lineterminator=_TERMINATOR)
            writer.writerow(plan.header)
            for rows in table.batches():
                codes = _codes(table, rows, records, plan, channel.useful)
                drawn: list[int] = sampler.draw(codes, stream).tolist()
                for row, y in zip(rows, drawn, strict=True):
                    row[place] = channel.outputs[y]
                    for position in removed:
                        del row[position]
                writer.writerows(rows)
                records += len(rows)
    return records, plan


def _codes(table: CsvText, rows: list[Row], before: int, plan: Plan, useful: Variable) -> Codes:
    """Position of the symbol of every row; `before` rows were read earlier."""
    if len(plan.inputs[0]) == 1:
        at = plan.inputs[0][0]
        symbols = [(row[at],) for row in rows]
    else:
        symbols = [tuple(row[at] for at in plan.inputs[0]) for row in rows]
    index = useful.index
    codes = np.array([index.get(symbol, -1) for symbol in symbols], dtype=np.int64)
    if codes.size and codes.min() < 0:
        position = int(np.argmax(codes < 0))
        what = describe_unknown(symbols[position], useful)
        raise InputError(f"{table.path}, line {table.line_of(before + position)}: {what}")
    return codes
