"""Fixed counts where records at hand are those of the table of the design."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mechdesign.core.errors import InputError
from mechdesign.formats.cells import Encoded
from mechdesign.release.drawing import NOT_FIXED, Release, fixed_records
from mechdesign.release.draws import Records, RowNumbers


def fix_where_whole(
    release: Release, cells: Sequence[Encoded], records: Records, *, is_asked: bool
) -> None:
    """Fix the counts of the draws where the records are those of the table of the design."""
    is_whole = isinstance(records, RowNumbers) and records.first == 0
    counts = fixed_records(release.channel)
    if is_asked and counts is None:
        raise InputError(NOT_FIXED)
    if is_whole and counts is not None:
        codes = release.symbols_of(cells)
        found = np.bincount(codes, minlength=len(counts) + 2)
        if np.array_equal(found[: len(counts)], counts) and len(codes) == counts.sum():
            release.fix(codes)
            return
    if is_asked:
        raise InputError(
            "the entries are not the whole table of the design, so their counts cannot be fixed: "
            "leave draws out"
        )
