"""Counts of the labels in a released column, alone or together with another column.

Every entry of the column becomes the position of its label (`label_codes`), or of the bin that it
lies in; the positions are then counted (`label_counts`). With the labels (a, b, c), the column b,
a, b has the codes 1, 0, 1 and the counts (1, 2, 0). Beside a kept column with the values u, v, u,
`crossed_counts` gives a row for each label and a column for each value:

         u   v
    a    0   1
    b    2   0
    c    0   0

Counts that somebody has made already are taken as a mapping, as {"b": 2, "a": 1} or {("b", "u"): 2,
("a", "v"): 1}: its keys are a column of labels, and its values say how often each occurs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import InputError
from mechdesign.core.wording import quoted
from mechdesign.formats.cells import encode
from mechdesign.tables.bins import Bins

Codes = NDArray[np.int64]

LARGEST_COUNT = 2**53
"""Counts above this would not be exact as doubles."""


def label_counts(
    labels: Sequence[str], released: Any, bins: Bins | None = None
) -> Codes:
    """The number of records with each label, from a column or from a mapping of counts."""
    if isinstance(released, Mapping):
        times = [_record_count(label, value) for label, value in released.items()]
        # The keys are labels already, not values inside of bins.
        codes = label_codes(labels, [str(label) for label in released])
    else:
        times = None
        codes = label_codes(labels, released, bins)
    return np.bincount(codes, times, len(labels)).astype(np.int64)


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
        released, kept, times = _columns_of_counts(released)
    codes = label_codes(labels, released)
    value_codes, values = _value_codes(kept)
    if len(codes) != len(value_codes):
        raise InputError(
            f"the two columns have {len(codes)} and {len(value_codes)} records; they must be of "
            "one file"
        )
    # One number for each pair of a label and a value: the table of pairs, row after row.
    pairs = codes * len(values) + value_codes
    counts = np.bincount(pairs, times, len(labels) * len(values))
    return counts.reshape(len(labels), len(values)).astype(np.int64), values


def label_codes(
    labels: Sequence[str], released: Any, bins: Bins | None = None
) -> Codes:
    """Position in `labels` of every entry of a released column, or of its bin."""
    cells = encode(released, "released")
    if bins is not None:
        cells = bins.sorted_in(cells)
    index = {label: y for y, label in enumerate(labels)}
    # Labels are looked up once for each distinct text. An empty cell has the code -1, which leads
    # to the last entry.
    positions = [index.get(text, -1) for text in cells.texts]
    codes = np.array([*positions, -1], dtype=np.int64)[cells.codes]
    wrong = np.flatnonzero(codes < 0)
    if not wrong.size:
        return codes
    entry = int(wrong[0])
    code = int(cells.codes[entry])
    # The first wrong entry is either empty or a text without a label: two different mistakes.
    if code < 0:
        raise InputError(
            f"entry {entry} of the released column is missing; a channel never releases that"
        )
    raise InputError(
        f"entry {entry} of the released column: the channel has no output "
        f"{quoted(cells.texts[code])}"
    )


def _record_count(label: object, value: Any) -> int:
    """A count as an integer that a double holds exactly; InputError on anything else."""
    # 3.0 is a count, as pandas has it; 2.5 and "3" are none.
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


def _columns_of_counts(
    counts: Mapping[Any, Any],
) -> tuple[list[str], list[str], list[int]]:
    """The labels, the values and the counts of a mapping of (label, value) to count."""
    labels: list[str] = []
    values: list[str] = []
    times: list[int] = []
    for key, count in counts.items():
        if not isinstance(key, tuple) or len(cast("tuple[Any, ...]", key)) != 2:
            raise InputError(
                "joint counts must be a mapping of (label, value) to count"
            )
        label, value = cast("tuple[Any, Any]", key)
        labels.append(str(label))
        values.append(str(value))
        times.append(_record_count(label, count))
    return labels, values, times


def _value_codes(kept: Any) -> tuple[Codes, tuple[str, ...]]:
    """The position of every entry of a column among its values, and the values in order."""
    cells = encode(kept, "kept")
    # A missing value, of code -1, is the empty text.
    texts = [*cells.texts, ""]
    occurring = {texts[code] for code in np.unique(cells.codes).tolist()}
    values = tuple(sorted(occurring))
    index = {text: z for z, text in enumerate(values)}
    # Texts that do not occur have no index, and are not looked up.
    positions = [index.get(text, 0) for text in texts]
    return np.array(positions, dtype=np.int64)[cells.codes], values
