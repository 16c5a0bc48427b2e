"""How well S can be guessed from the columns that a release keeps as they are.

A channel bounds what the released columns disclose. Columns kept beside them are outside of its
promise, so `apply --keep all` prints what they disclose together: a cross-validated guess of S
(`row_guess`), on a sample that is spread evenly over the file.

`guess_from_kept` takes the sample in one pass (`_sample`), leaves out columns that identify
records, crosses the sensitive columns to one secret, and has it guessed. `kept_note` puts the
result in words.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mechdesign.core.errors import errors_naming
from mechdesign.core.files import PathLike
from mechdesign.core.wording import listed
from mechdesign.formats.opening import Source, open_source
from mechdesign.formats.text_options import TextOptions
from mechdesign.leaks.assessment import crossed_secret, identifies_records
from mechdesign.leaks.coded_table import CodedColumn, CodedTable, TableBuilder
from mechdesign.leaks.row_guess import MOST_RECORDS, RowGuess, guess_from_rows


def guess_from_kept(
    path: PathLike,
    *,
    sensitive: Sequence[str],
    kept: Sequence[str],
    text: TextOptions | None = None,
) -> RowGuess | None:
    """Guess the sensitive columns of a file from the kept ones.

    Parameters
    ----------
    path : path of a CSV or Parquet file
    sensitive : sequence of str
        Columns of S, crossed if several.
    kept : sequence of str
        The columns that stay as they are. Those that identify records are left out: no model learns
        anything from them.
    text : TextOptions, optional
        How a CSV file is written.

    Returns
    -------
    RowGuess or None
        None where the file lacks a sensitive column, or where nothing is left to guess from.
    """
    with open_source(path, text) as table, errors_naming(table.name):
        if not sensitive or any(name not in table.header for name in sensitive):
            return None
        coded = _sample(table, [*sensitive, *kept])
    if any(name not in coded.columns for name in sensitive):
        return None
    columns: list[CodedColumn] = []
    for name in kept:
        column = coded.columns.get(name)
        if column is not None and not identifies_records(column):
            columns.append(column)
    if not columns or not coded.records:
        return None
    secret = crossed_secret(coded, tuple(sensitive))
    return guess_from_rows(columns, secret.codes, secret.symbols)


def _sample(table: Source, names: Sequence[str]) -> CodedTable:
    """At most 2 `MOST_RECORDS` records, evenly spread over a file of unknown length, in one pass.

    The sample begins with every record. Whenever it is full, every second one is dropped, and from
    then on half as many are taken: with the step 4 it holds the records 0, 4, 8, ..
    """
    builder = TableBuilder(names)
    step = 1
    position = 0
    for batch in table.batches():
        # Every step-th record of the file, wherever its batches begin.
        first = -position % step
        rows = np.arange(first, batch.num_rows, step)
        position += batch.num_rows
        builder.records += len(rows)
        if not len(rows):
            continue
        for name in builder.readable():
            cells = batch.column(name)
            if step > 1:
                cells = cells.take(rows)
            builder.add(name, cells)
        while builder.records > 2 * MOST_RECORDS:
            builder.halve()
            step *= 2
    return builder.table()


def kept_note(guess: RowGuess, *, sensitive: Sequence[str]) -> str:
    """What the kept columns disclose together, as one sentence for the user."""
    figure = ""
    if guess.auc is not None:
        figure = f" (AUC {guess.auc:.3f}; 0.5 is chance)"
    return (
        f"the kept columns together guess {listed(list(sensitive))} right for "
        f"{guess.right:.1%} of the records{figure}, where {guess.right_without:.1%} are right "
        "without them: no budget bounds this; release these columns too (design --release)"
    )
