"""How often each label of a channel occurs in a released column, alone or with another column."""

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
    cells = cells if bins is None else bins.sorted_in(cells)
    index = {label: y for y, label in enumerate(labels)}
    known = np.array(
        [index.get(text, -1) for text in cells.texts] + [-1], dtype=np.int64
    )
    codes = known[cells.codes]
    if codes.size and codes.min() < 0:
        at = int(np.argmax(codes < 0))
        code = int(cells.codes[at])
        if code < 0:
            raise InputError(
                f"entry {at} of the released column is missing; a channel never releases that"
            )
        said = f"the channel has no output {quoted(cells.texts[code])}"
        raise InputError(f"entry {at} of the released column: {said}")
    return codes


def label_counts(
    labels: Sequence[str], released: Any, bins: Bins | None = None
) -> Codes:
    """How often each label occurs."""
    times: list[int] | None = None
    if isinstance(released, Mapping):
        times = [_whole(label, value) for label, value in released.items()]
        released = [str(label) for label in released]
        bins = None
    return np.bincount(label_codes(labels, released, bins), times, len(labels)).astype(
        np.int64
    )


def _whole(label: object, value: Any) -> int:
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
    """How often each label occurs together with each value of another column."""
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
    texts = [*cells.texts, ""]
    values = tuple(sorted({texts[code] for code in np.unique(cells.codes).tolist()}))
    index = {text: z for z, text in enumerate(values)}
    others = np.array([index.get(text, 0) for text in texts], dtype=np.int64)[
        cells.codes
    ]
    if len(codes) != len(others):
        raise InputError(
            f"the two columns have {len(codes)} and {len(others)} records; they must be of one file"
        )
    flat = np.bincount(codes * len(values) + others, times, len(labels) * len(values))
    return flat.reshape(len(labels), len(values)).astype(np.int64), values
