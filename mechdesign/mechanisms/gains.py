"""What attackers gain: a matrix of gains of guesses, from a file, an array or a mapping.

A guess g gains G(g, s) where the sensitive value is s. Whoever sees y makes the guess that gains
most on average, so the expected gain of a release is sum_y max_g sum_s G(g, s) P(s, y), the
g-vulnerability of S after the release (Alvim et al. 2012). The file

    guess,low,middle,high
    low,1,0.5,0
    high,0,0.5,1

has two guesses, each of which gains half for `middle`. With a gain of 1 for the right guess and of
0 for the others the expected gain is the share of right guesses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from mechdesign.auditing.matrix import non_negative
from mechdesign.core.arguments import repeated
from mechdesign.core.errors import InputError, errors_naming
from mechdesign.core.files import PathLike
from mechdesign.core.wording import listed, quoted
from mechdesign.formats.opening import all_rows, open_source
from mechdesign.tables.joint import Joint

ENDINGS = (".csv", ".parquet")
"""Ends of names of files with gains, where a measure is asked for."""

GAIN = "the gain of the guess {} for {}"
"""Name of a cell in messages about gains."""


def is_file_of_gains(name: Any) -> bool:
    """Whether an average is named by a file of gains."""
    return isinstance(name, str) and name.endswith(ENDINGS)


def read_gains(path: PathLike, joint: Joint) -> tuple[tuple[Fraction, ...], ...]:
    """Gains from a CSV or Parquet file: guesses down the first column, sensitive symbols in the
    header.

    Raises
    ------
    InputError
        If the file cannot be read, does not have the sensitive symbols of the table, or has a gain
        that is negative or no number.
    """
    with open_source(path, None, repeated_names=True) as source:
        header = list(source.header[1:])
        rows = all_rows(source)
    with errors_naming(source.name):
        twice = repeated(header)
        if twice is not None:
            raise InputError(f"the sensitive symbol {quoted(twice)} has two columns")
        gains = {row[0]: dict(zip(header, row[1:], strict=True)) for row in rows}
        return exact_gains(gains, joint)


def exact_gains(gains: Any, joint: Joint) -> tuple[tuple[Fraction, ...], ...]:
    """Gains of guesses (rows) for the sensitive symbols of a table, in its order.

    Parameters
    ----------
    gains : mapping of guess to mapping of symbol to number, or (g, |S|) array

    Raises
    ------
    InputError
        If a symbol is missing or unknown, or a gain is negative or no number.
    """
    names = joint.sensitive.names
    if isinstance(gains, Mapping):
        labels = [str(guess) for guess in gains]
        rows = [_row_of(row, names) for row in gains.values()]
    else:
        rows = np.asarray(gains, dtype=object).tolist()
        labels = [str(k) for k in range(len(rows) if isinstance(rows, list) else 0)]
    if not labels or not all(_is_row(row, len(names)) for row in rows):
        raise InputError(
            f"gains must be a row for each guess with a number for each of the {len(names)} "
            "sensitive symbols"
        )
    exact: list[tuple[Fraction, ...]] = []
    for guess, row in zip(labels, rows, strict=True):
        cells = zip(names, row, strict=True)
        exact.append(tuple(non_negative(cell, GAIN, guess, s) for s, cell in cells))
    return tuple(exact)


def _row_of(row: Mapping[str, Any], names: Sequence[str]) -> list[Any]:
    """The gains of one guess in the order of the symbols."""
    missing = [name for name in names if name not in row]
    if missing:
        raise InputError(
            f"gains have no column for the sensitive symbol {listed(missing)}"
        )
    unknown = [name for name in row if name not in names]
    if unknown:
        raise InputError(
            f"gains have a column {listed(unknown)}, which is no sensitive symbol of the table"
        )
    return [row[name] for name in names]


def _is_row(row: Any, count: int) -> bool:
    """Whether this is a list of so many cells."""
    return isinstance(row, list) and len(row) == count
