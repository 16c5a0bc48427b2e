"""The released files of a folder, tested against each other before the folder has its name.

Two things void the promise that no file shows by itself:

- Copies (`refuse_copies`). By row number the random numbers of a file follow from its content. Two
  files with the same records in the same order are one job in the ledger, by which they are found.
- The file of a record (`refuse_telling_files`). Everybody sees in which file a record is, so what
  was released must not differ from file to file by more than chance. For each released column its
  symbols are counted file by file, and `FileRecipe.split_warning` judges the table of counts. This
  one is refused::

               clerk   nurse
      a.csv      400       0
      b.csv        0     400

The input files are tested as one table in `folder_table`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from mechdesign.core.errors import InputError
from mechdesign.core.wording import quoted
from mechdesign.formats.cells import Encoded, encode
from mechdesign.formats.text_options import TextOptions
from mechdesign.jobs.file_recipe import FileRecipe
from mechdesign.jobs.provisional_ledger import ProvisionalLedger
from mechdesign.leaks.crossing import Crossing
from mechdesign.tables.people import at_place
from mechdesign.tables.people_source import open_people


def refuse_copies(ledger: ProvisionalLedger, names: Sequence[str]) -> None:
    """By row number, files of the same content have the same random numbers, whether they are
    copies or not.
    """
    jobs: dict[str, str] = {}
    with ledger.reading() as db:
        for name in names:
            entry = ledger.last_of(db, os.fspath(ledger.stage / name))
            if entry is None or not entry.records:
                continue
            other = jobs.setdefault(entry.drawn[0].job, name)
            if other != name:
                raise InputError(
                    f"{name} and {other} hold the same records in the same order, which would get "
                    "the same random numbers: leave one out, or name what identifies a record "
                    "(--identity)"
                )


def refuse_telling_files(
    recipe: FileRecipe,
    folder: Path,
    names: Sequence[str],
    columns: Sequence[str],
    text: TextOptions | None,
) -> None:
    """Refuse files of which the names tell of a released column.

    Parameters
    ----------
    recipe : FileRecipe
        What judges the counts.
    folder, names
        Where the released files lie, and their names there.
    columns : sequence of str
        The released columns.
    text : TextOptions, optional
        How a CSV is read.
    """
    people = recipe.people
    for column in columns:
        # Released files begin with their header, whatever stood above it in the originals.
        written = None if text is None else text.of_output
        counted = partial(open_people, people=people, text=written)
        name = column
        if people is not None:
            # The records of a person hang together: one of each is counted.
            counted = partial(counted, names=recipe.options.renamed)
            channel_name = {own: name for name, own in recipe.options.renamed.items()}
            name = at_place(channel_name.get(column, column), 0)
        crossing = _crossed(folder, names, name, counted)
        warning = recipe.split_warning(crossing, names, looks=len(columns))
        if warning is not None:
            raise InputError(
                f"the names of the files tell of {quoted(column)}: {warning}; arrange them in "
                "another way, or keep this knowingly (--keep-order)"
            )


def _crossed(
    folder: Path, names: Sequence[str], column: str, opened: Callable[[Path], Any]
) -> Crossing:
    """How often each symbol of a column was released in each file."""
    # The empty text counts, too.
    crossing = Crossing(limit=len(names) + 1)
    for name in names:
        with opened(folder / name) as table:
            for batch in table.batches(encode=[column], whole=False):
                cells = encode(batch.column(column), column)
                file = Encoded(np.zeros(len(cells), np.int64), (name,))
                crossing.add(file, cells)
    return crossing
