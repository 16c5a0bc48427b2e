"""Columns and symbols of a variable in channel files of every kind: models, writer and reader.

The variable job x sex is written with one text a column for each symbol, as ``{"columns": ["job",
"sex"], "symbols": [["nurse", "F"], ..]}``. `labels_record` writes that, `binned_labels_record`
writes bins of numbers with it, and `variable_of` makes the variable again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from mechdesign.core.errors import InputError
from mechdesign.core.records import Record
from mechdesign.core.wording import listed
from mechdesign.tables.bins import Bins
from mechdesign.tables.variable import Variable


class Labels(Record):
    """Columns of a variable, and its symbols as one text for each column.

    `each` is whether each column is a secret of its own.
    """

    columns: tuple[str, ...]
    symbols: tuple[tuple[str, ...], ...]
    each: bool = False


class BinnedLabels(Labels):
    """A variable with the bins of its columns, by column."""

    bins: dict[str, Bins] = Field(default_factory=dict[str, Bins])


def labels_record(variable: Variable) -> dict[str, Any]:
    """The `Labels` of a variable in a file; `each` only where it holds."""
    record: dict[str, Any] = {
        "columns": variable.columns,
        "symbols": variable.symbols,
    }
    if variable.protects_columns:
        record["each"] = True
    return record


def binned_labels_record(variable: Variable) -> dict[str, Any]:
    """The `BinnedLabels` of a variable in a file; `bins` only where there are any."""
    record = labels_record(variable)
    bins: dict[str, Any] = {}
    for place, name in enumerate(variable.columns):
        of_column = variable.bins_of(place)
        if of_column is not None:
            bins[name] = of_column.model_dump(exclude_none=True)
    if bins:
        record["bins"] = bins
    return record


def variable_of(
    labels: Labels, role: str, bins: Mapping[str, Bins] | None = None
) -> Variable:
    """The variable of these labels; whether its symbols fit is checked by `Variable`.

    Parameters
    ----------
    labels : Labels
    role : str
        The variable's key in the file, for messages: ``useful``, ``given``.
    bins : mapping of str to Bins, optional
        Where the file has them beside the labels; by default those of `BinnedLabels`.

    Raises
    ------
    InputError
        If a bin belongs to no column, or the symbols do not fit; the message begins with `role`.
    """
    by_column: Mapping[str, Bins] = {}
    if bins is not None:
        by_column = bins
    elif isinstance(labels, BinnedLabels):
        by_column = labels.bins
    # A misspelt column would leave its numbers without bins, and every record unknown.
    unknown = [name for name in by_column if name not in labels.columns]
    if unknown:
        raise InputError(f"bins: there is no {role} column {listed(unknown)}")
    # A variable without any bins has an empty tuple, not one of None.
    of_columns: tuple[Bins | None, ...] = ()
    if by_column:
        of_columns = tuple(by_column.get(column) for column in labels.columns)
    try:
        return Variable(labels.columns, labels.symbols, labels.each, of_columns)
    except InputError as error:
        raise InputError(f"{role}: {error}") from None
