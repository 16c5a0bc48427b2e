"""Counts of the labels in a released column, alone or together with another column.

Every entry of the column becomes the position of its label (`label_codes`), or of the bin that it
lies in. Counts are then those of the positions. Counts that somebody has made already are taken as
a mapping, and must be whole numbers that a double holds exactly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import InputError
from mechdesign.core.wording import quoted
from mechdesign.formats.cells import encode
from mechdesign.tables.bins import Bins

Codes = NDArray[np.int64]

LARGEST_COUNT = 2**53
"""Counts above this would not be exact as doubles."""


def label_codes(
    labels: Sequence[str], released: Any, bins: Bins | None = None
) -> Codes:
    """Position in `labels` of every entry of a released column, or of its bin."""
    cells = encode(released, "released")
    if bins is not None:
        cells = bins.sorted_in(cells)
    index = {label: y for y, label in enumerate(labels)}
    positions = [index.get(text, -1) for text in cells.texts]
    # An empty cell has the code -1: the last entry.
    codes = np.array([*positions, -1], dtype=np.int64)[cells.codes]
    if codes.size and codes.min() < 0:
        at = int(np.argmax(codes < 0))
        code = int(cells.codes[at])
        if code < 0:
            raise InputError(
                f"entry {at} of the released column is missing; a channel never releases that"
            )
        raise InputError(
            f"entry {at} of the released column: the channel has no output "
            f"{quoted(cells.texts[code])}"
        )
    return codes


def label_counts(
    labels: Sequence[str], released: Any, bins: Bins | None = None
) -> Codes:
    """The number of records with each label, from a column or from a mapping of counts."""
    times: list[int] | None = None
    if isinstance(released, Mapping):
        times = [_whole(label, value) for label, value in released.items()]
        released = [str(label) for label in released]
        # A mapping has labels already, not values inside of bins.
        bins = None
    codes = label_codes(labels, released, bins)
    return np.bincount(codes, times, len(labels)).astype(np.int64)


def _whole(label: object, value: Any) -> int:
    """A count as an integer that a double holds exactly; InputError on anything else."""
    try:
        number = int(value)
        whole = number == value
    except (TypeError, ValueError, OverflowError):
        number = 0
        whole = False
    if not whole or not 0 <= number <= LARGEST_COUNT:
        raise InputError(
            f"the count of {quoted(label)} ({quoted(value)}) must be a whole number of records"
        )
    return number


def crossed_counts(
    labels: Sequence[str], released: Any, kept: Any = None
) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """The number of records with each label and each value of another column.

    Returns
    -------
    counts : (labels, values) array
    values : tuple of str
        Those that occur, in order.
    """
    times: list[int] | None = None
    if isinstance(released, Mapping):
        if kept is not None:
            raise InputError("counts of (label, value) take no second column")
        if not all(isinstance(key, tuple) and len(key) == 2 for key in released):
            raise InputError(
                "joint counts must be a mapping of (label, value) to count"
            )
        times = [_whole(label, number) for (label, _), number in released.items()]
        kept = [str(value) for _, value in released]
        released = [str(label) for label, _ in released]
    codes = label_codes(labels, released)
    cells = encode(kept, "kept")
    # A missing value, of code -1, is the empty text.
    texts = [*cells.texts, ""]
    occurring = {texts[code] for code in np.unique(cells.codes).tolist()}
    values = tuple(sorted(occurring))
    index = {text: z for z, text in enumerate(values)}
    # Texts that do not occur have no index, and are not looked up.
    positions = [index.get(text, 0) for text in texts]
    others = np.array(positions, dtype=np.int64)[cells.codes]
    if len(codes) != len(others):
        raise InputError(
            f"the two columns have {len(codes)} and {len(others)} records; they must be of one file"
        )
    # One number for each pair of a label and a value.
    flat = np.bincount(codes * len(values) + others, times, len(labels) * len(values))
    return flat.reshape(len(labels), len(values)).astype(np.int64), values
