"""Identifiers that differ in their spelling alone: 17, 017, 17.0, "17 ".

The draw of a record follows from the text of its identifier, byte for byte. A table that came back
from a spreadsheet has lost its leading zeros, and every record would be drawn a second time. So
the identifiers of a release are compared, among themselves and with earlier releases, in a spelling
without what such ways take away or add (`plain_spelling`): two texts of one plain spelling are
refused.
"""

# pyarrow tells too little of its types for the strict mode.
# pyright: basic
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import InputError
from mechdesign.formats.census import Hashes
from mechdesign.formats.digests import RowHasher

TWO_SPELLINGS = (
    "two identifiers differ only in blanks, leading zeros, a sign or .0: nobody can tell whether "
    "they are one record, which would be drawn twice; spell all identifiers alike"
)

OTHER_SPELLING = (
    "records were released before under identifiers that differ from these only in blanks, leading "
    "zeros, a sign or .0, and would be drawn a second time: spell the identifiers as they were (a "
    "spreadsheet takes leading zeros away), or accept a second draw (--fresh-draw)"
)

UNUSUAL = (
    r"^[\s\x{A0}\x{FEFF}]|[\s\x{A0}]$|^\+[0-9]|^-?0[0-9]+(\.0*)?$|^-?[0-9]+\.0*$"
    r"|^[A-Za-z]+[-_ ]?0+[0-9]+$"
)
"""Texts that are perhaps not in their plain spelling."""

STEPS = (
    (r"^[\s\x{A0}\x{FEFF}]+|[\s\x{A0}]+$", ""),
    (r"^\+([0-9])", r"\1"),
    (r"^(-?[0-9]+)\.0*$", r"\1"),
    (r"^(-?)0+([0-9]+)$", r"\1\2"),
    (r"^([A-Za-z]+[-_ ]?)0+([0-9]+)$", r"\1\2"),
)
"""What is replaced one after the other: blanks around, a plus, .0, and zeros before a number, also
of one letter or several (P001). Identifiers of one length never become equal.
"""


def plain_spelling(texts: Any) -> Any | None:
    """A pyarrow array of texts in their plain spelling; None where they all are."""
    import pyarrow.compute

    # The stubs of pyarrow lack these functions.
    pc: Any = pyarrow.compute

    unusual = pc.match_substring_regex(texts, UNUSUAL)
    if not pc.any(unusual).as_py():
        return None
    plain = texts
    for pattern, replacement in STEPS:
        plain = pc.replace_substring_regex(plain, pattern, replacement)
    return plain


class Spellings:
    """The identifiers of a release that are not in their plain spelling.

    Attributes
    ----------
    plain, written : arrays of hashes
        For each of them the hash of its plain spelling, and of the text as it is; both ascending by
        the plain one.
    """

    def __init__(self) -> None:
        self.plain: Hashes = np.zeros(0, np.uint64)
        self.written: Hashes = np.zeros(0, np.uint64)

    def add(self, columns: Sequence[Any], hashes: Hashes, hasher: RowHasher) -> None:
        """Compare the next records.

        Parameters
        ----------
        columns : sequence of pyarrow arrays
            The columns that identify them.
        hashes : (n,) hashes
            Of these identifiers, under the hasher.
        hasher : RowHasher

        Raises
        ------
        InputError
            If two different texts have one plain spelling.
        """
        plain_columns: list[Any] = []
        unusual = False
        for column in columns:
            plain = plain_spelling(column)
            unusual = unusual or plain is not None
            plain_columns.append(column if plain is None else plain)
        if not unusual:
            return
        plain_hashes = hasher.identifiers(plain_columns)
        differs = plain_hashes != hashes
        both = np.stack(
            [
                np.append(self.plain, plain_hashes[differs]),
                np.append(self.written, hashes[differs]),
            ],
            axis=1,
        )
        both = np.unique(both, axis=0)
        self.plain = both[:, 0]
        self.written = both[:, 1]
        if len(np.unique(self.plain)) < len(self.plain):
            raise InputError(TWO_SPELLINGS)

    def differ(self, plain: Hashes, written: Hashes) -> bool:
        """Whether one of these plain spellings is written in another way here."""
        common, here, there = np.intersect1d(
            self.plain, plain, assume_unique=True, return_indices=True
        )
        return bool(len(common)) and bool((self.written[here] != written[there]).any())

    def new_pairs(self, known: NDArray[np.uint64]) -> tuple[Hashes, Hashes]:
        """The pairs whose plain spelling is not known yet."""
        new = ~np.isin(self.plain, known)
        return self.plain[new], self.written[new]
