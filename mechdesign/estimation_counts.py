"""Released columns, or counts of them, as arrays of counts."""

# pyarrow and narwhals tell too little of their types for the strict mode.
# pyright: basic
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.cells import encode
from mechdesign.errors import InputError
from mechdesign.exact import quoted

Codes = NDArray[np.int64]

LARGEST_COUNT = 2**53
"""Counts above this would not be exact as doubles."""


def label_codes(labels: Sequence[str], released: Any, what: str = "the channel has no output") -> Codes:
    """Position in `labels` of every entry of a released column.

    Parameters
    ----------
    labels : sequence of str
    released : pandas or polars Series, pyarrow or numpy array, or sequence

    Raises
    ------
    InputError
        At the first entry that is missing or is none of the labels.
    """
    cells = encode(released, "released")
    index = {label: y for y, label in enumerate(labels)}
    known = np.array([index.get(text, -1) for text in cells.texts] + [-1], dtype=np.int64)
    codes = known[cells.codes]
    if codes.size and codes.min() < 0:
        at = int(np.argmax(codes < 0))
        code = int(cells.codes[at])
        if code < 0:
            raise InputError(f"entry {at} of the released column is missing; a channel never releases that")
        raise InputError(f"entry {at} of the released column: {what} {quoted(cells.texts[code])}")
    return codes


def label_counts(labels: Sequence[str], released: Any) -> Codes:
    """How often each label occurs.

    Parameters
    ----------
    labels : sequence of str
    released : a released column, or a mapping of label to count
        Labels that the mapping leaves out do not occur.

    Raises
    ------
    InputError
        On a label that the channel does not have, or a count that is no whole number.
    """
    if not isinstance(released, Mapping):
        return np.bincount(label_codes(labels, released), minlength=len(labels)).astype(np.int64)
    index = {label: y for y, label in enumerate(labels)}
    counts = np.zeros(len(labels), dtype=np.int64)
    for label, value in released.items():
        if label not in index:
            raise InputError(f"the channel has no output {quoted(label)}")
        counts[index[label]] = _whole(label, value)
    return counts


def _whole(label: object, value: Any) -> int:
    try:
        number = int(value)
        whole = number == value
    except (TypeError, ValueError, OverflowError):
        number, whole = 0, False
    if not whole or not 0 <= number <= LARGEST_COUNT:
        raise InputError(f"the count of {quoted(label)} ({quoted(value)}) must be a whole number of records")
    return number


def crossed_counts(
    labels: Sequence[str], released: Any, kept: Any = None, kept_labels: Sequence[str] | None = None
) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """How often each label occurs together with each value of another column.

    Parameters
    ----------
    labels : sequence of str
    released, kept : columns of equal length, or a mapping of (label, value) to count and None
        A missing value of `kept` counts as the empty text.
    kept_labels : sequence of str, optional
        Values that `kept` may have (where it is a released column itself); those that occur, sorted, otherwise.

    Returns
    -------
    (labels, values) array of counts, and the values

    Raises
    ------
    InputError
        On unknown labels or columns of different lengths.
    """
    if isinstance(released, Mapping):
        return _crossed_mapping(labels, released, kept, kept_labels)
    codes = label_codes(labels, released)
    if kept_labels is None:
        cells = encode(kept, "kept")
        texts = [*cells.texts, ""]
        used = {texts[code] for code in np.unique(cells.codes).tolist()}
        values = tuple(sorted(used))
        index = {text: z for z, text in enumerate(values)}
        others = np.array([index.get(text, 0) for text in texts], dtype=np.int64)[cells.codes]
    else:
        values = tuple(kept_labels)
        others = label_codes(values, kept, "the other channel has no output")
    if len(codes) != len(others):
        raise InputError(
            f"the two columns have {len(codes)} and {len(others)} records; they must be of one file"
        )
    flat = np.bincount(codes * len(values) + others, minlength=len(labels) * len(values))
    return flat.reshape(len(labels), len(values)).astype(np.int64), values


def _crossed_mapping(
    labels: Sequence[str], released: Mapping[Any, Any], kept: Any, kept_labels: Sequence[str] | None
) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    if kept is not None:
        raise InputError("counts of (label, value) take no second column")
    if not all(isinstance(key, tuple) and len(key) == 2 for key in released):
        raise InputError("joint counts must be a mapping of (label, value) to count")
    values = tuple(sorted({str(z) for _, z in released})) if kept_labels is None else tuple(kept_labels)
    counts = np.zeros((len(labels), len(values)), dtype=np.int64)
    for z, value in enumerate(values):
        counts[:, z] = label_counts(
            labels, {y: n for (y, other), n in released.items() if str(other) == value}
        )
    unknown = [z for _, z in released if str(z) not in values]
    if unknown:
        raise InputError(f"the other channel has no output {quoted(unknown[0])}")
    return counts, values
