"""Which columns of a file have values that come again, each in a few records.

Only such a column can name people with several records (`person_columns`), and most tables have
none. So the file is read once for the hashes of its columns alone, and a column is given up at the
first batch in which one of its values has too many records. Of a table with ordinary columns
nothing is kept; of one with an identifier eight bytes a record.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import InputError
from mechdesign.core.files import PathLike
from mechdesign.core.integers import Integers
from mechdesign.formats.census import Hashes
from mechdesign.formats.digests import RowHasher
from mechdesign.formats.folders import files_of, is_folder
from mechdesign.formats.opening import Batch, open_source
from mechdesign.formats.text_options import TextOptions
from mechdesign.leaks.coded_table import hashed_cells
from mechdesign.leaks.person_columns import may_name_people
from mechdesign.tables.people import MOST_RECORDS


def possible_columns(
    path: PathLike,
    text: TextOptions | None,
    among: Sequence[str] | None,
    left_out: Collection[str],
) -> list[str]:
    """The columns of a file that may name people, by how often their values occur.

    Parameters
    ----------
    path : path
        A file, or a folder or glob of files with these columns.
    text : TextOptions, optional
        How a CSV is written.
    among : sequence of str, optional
        The columns to look at; by default all.
    left_out : collection of str
        Columns that are not looked at.
    """
    # The same key always: what is found does not change from run to run.
    hasher = RowHasher(bytes(32))
    files, header = files_and_columns(path, text)
    hashes: dict[str, list[Hashes]] = {}
    for name in header:
        if name not in left_out and (among is None or name in among):
            hashes[name] = []
    for file in files:
        with open_source(file, text) as table:
            for batch in table.batches():
                if not hashes:
                    return []
                _add_hashes(hashes, hasher, batch)
    possible: list[str] = []
    for name in list(hashes):
        parts = hashes.pop(name)
        if not parts:
            continue
        whole = np.concatenate(parts)
        del parts
        if may_name_people(_repeated(whole), len(whole)):
            possible.append(name)
    return possible


def files_and_columns(
    path: PathLike, text: TextOptions | None
) -> tuple[list[PathLike], list[str]]:
    """The files of a path, and the columns that all of them have."""
    files: list[PathLike] = [path]
    if is_folder(path):
        base, names = files_of(path)
        files = [base / name for name in names]
    header: list[str] = []
    for number, file in enumerate(files):
        with open_source(file, text) as table:
            own = list(table.header)
        header = [name for name in header if name in own] if number else own
    return files, header


def _add_hashes(
    hashes: dict[str, list[Hashes]], hasher: RowHasher, batch: Batch
) -> None:
    """Add a batch to the hashes of columns; those that cannot name people are given up."""
    for name in list(hashes):
        try:
            found = hashed_cells(hasher, name, batch.column(name))
        except InputError:
            # Lists and bytes name nobody.
            del hashes[name]
            continue
        if _repeated(found.copy()).max(initial=0) > MOST_RECORDS:
            del hashes[name]
        else:
            hashes[name].append(found)


def _repeated(hashes: NDArray[np.uint64]) -> Integers:
    """How often each value occurs that occurs several times; the hashes are put in order."""
    hashes.sort()
    same = np.zeros(len(hashes) + 1, dtype=np.bool_)
    np.equal(hashes[1:], hashes[:-1], out=same[1:-1])
    # Every run of equal neighbours begins and ends at a change.
    changes = np.flatnonzero(same[1:] != same[:-1])
    return changes[1::2] - changes[::2] + 1
