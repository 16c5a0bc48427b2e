"""The files of a folder tested as the one table that they are to whoever gets them all.

Each file was tested when it was released. Together they can disclose more. The files may have been
split by what is protected. An order of records may go on from file to file. A kept column may copy
a protected one, but too few records of a single file show it.

So `refuse_as_one_table` reads all input files once more:

1. Files with the same header become one `_JoinedTable`, with one drawer for all of them.
2. `_JoinedTable.add` has the drawer read a file as if it released it, and throws the draws away.
   What stays are the drawer's checks, which see the files as one, and the counts of the symbols in
   this file.
3. `_JoinedTable.refuse` asks whether the file of a record tells its symbol (`_refuse_split`; not
   with --keep-order), and then asks the checks of a single file (`DisclosureChecks.refuse`).

For example, these counts of the useful column refuse the folder, because the name of a file tells
the symbol::

                 clerk   nurse
    north.csv      900     100
    south.csv      100     900
"""

# pyarrow tells too little of its types for the strict mode.
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from mechdesign.core.errors import InputError
from mechdesign.core.integers import Integers
from mechdesign.core.wording import quoted
from mechdesign.formats.csv_text import TextOptions
from mechdesign.formats.opening import Source
from mechdesign.jobs.file_run import FileRecipe
from mechdesign.jobs.options import ALL
from mechdesign.jobs.people_run import for_people
from mechdesign.jobs.recipe import Drawer
from mechdesign.jobs.writing import schema_of
from mechdesign.leaks.evidence import decisive, log_evidence
from mechdesign.release.policies import REFUSE
from mechdesign.tables.people_source import open_people


def refuse_as_one_table(
    recipe: FileRecipe, paths: Sequence[Path], text: TextOptions | None
) -> None:
    """Raise InputError if files disclose together what a release through a recipe protects.

    Files with other columns than the others are a table of their own.
    """
    if len(paths) < 2:
        return
    recipe = _without_identity(recipe)
    names, form = recipe.options.renamed, recipe.options.rules.cell_form
    people = recipe.people
    if people is not None:
        recipe = replace(recipe, options=for_people(recipe.options))
    tables: dict[tuple[str, ...], _JoinedTable] = {}
    for path in paths:
        with open_people(path, people, text, names=names, form=form) as table:
            header = tuple(table.header)
            if header not in tables:
                tables[header] = _JoinedTable(recipe.drawer(header))
            tables[header].add(table)
    for joined in tables.values():
        joined.refuse()


def _without_identity(recipe: FileRecipe) -> FileRecipe:
    """The recipe for records that nothing identifies: nobody sees what is drawn here.

    A record may come in several files, with another symbol in each. The columns that identify it
    are left out: they name individuals, and each file was tested with them.
    """
    options = recipe.options
    names = options.identifiers
    kept = tuple(name for name in options.kept if name not in names)
    drop = tuple(dict.fromkeys((*options.drop, *names)))
    if options.keeps_all and options.into is None:
        kept = (*kept, ALL)
    changed = replace(
        options,
        identity=(),
        changed=REFUSE,
        drop=drop,
        keep=kept,
        ledger=None,
        nights=1,
        fresh_draw=False,
    )
    return replace(recipe, options=changed)


class _JoinedTable:
    """Files of the same columns, one after the other: `add` reads each, then `refuse` is called."""

    def __init__(self, drawer: Drawer) -> None:
        self._drawer = drawer
        self._records = 0
        self._symbol_counts: list[list[Integers]] = []

    def add(self, table: Source) -> None:
        """Read the next file."""
        drawer = self._drawer
        header = drawer.header
        # The drawer counts all files together; what it adds here are the symbols of this one.
        before = [counts.copy() for counts in drawer.counts]
        encoded, stored = drawer.reads(schema_of(table))
        for batch in table.batches(encode=encoded, read=stored):
            # Drawing counts the symbols, and puts them in their order.
            drawer.draw(
                lambda number, batch=batch: batch.column(header[number]),
                batch.num_rows,
                first_row=self._records,
            )
            drawer.checks.add(
                batch.num_rows, lambda step, batch=batch: batch.some(step).column
            )
            self._records += batch.num_rows
        added: list[Integers] = []
        for counts, earlier in zip(drawer.counts, before, strict=True):
            added.append(counts - earlier)
        self._symbol_counts.append(added)

    def refuse(self) -> None:
        """Raise InputError if the files as one table disclose what is protected."""
        options = self._drawer.recipe.options
        if not (options.keep_order or options.into is not None):
            self._refuse_split()
        self._drawer.checks.refuse("the files of the folder as one table: ")

    def _refuse_split(self) -> None:
        """Raise InputError if the file of a record discloses its symbol.

        Each channel has a table of counts, which `log_evidence` weighs against chance.

        Numbers may differ from file to file (months do); files that were split by them are refused
        by what is released (`FileRecipe.split_warning`).
        """
        if not self._drawer.recipe.draws:
            return
        useful = self._drawer.plan.inputs
        for k, numbers in enumerate(useful):
            # A contingency table with a row for each file and a column for each symbol.
            table = np.array([counts[k] for counts in self._symbol_counts])
            files, symbols = np.nonzero(table)
            evidence = log_evidence(files, symbols, table[files, symbols])
            if decisive(evidence, len(useful)):
                names = ",".join(str(self._drawer.header[number]) for number in numbers)
                raise InputError(
                    f"the names of the files tell of {quoted(names)}: its symbols differ from "
                    "file to file more than by chance; arrange them in another way, or keep this "
                    "knowingly (--keep-order)"
                )
