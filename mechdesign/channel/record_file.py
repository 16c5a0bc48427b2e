"""The record of a channel in its file: the keys of the request and of the results.

A channel has one record, and of boxes one for each stratum (`box_file`).

*Variables* have their columns and symbols in channel files. The variable job x sex is written with
one text a column for each symbol, as ``{"columns": ["job", "sex"], "symbols": [["nurse", "F"],
..]}``. `labels_record` writes that, `binned_labels_record` writes bins of numbers with it, and
`variable_of` makes the variable again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, cast

from pydantic import Field

from mechdesign.channel.record import (
    TOTAL,
    AverageBudget,
    ChannelRecord,
    Confidence,
    Objective,
    SymbolBudgets,
)
from mechdesign.core.errors import InputError
from mechdesign.core.integers import LARGEST_INTEGER
from mechdesign.core.json_values import with_infinities, without_infinities
from mechdesign.core.records import Digest, Record
from mechdesign.core.wording import listed, quoted
from mechdesign.notions import from_record
from mechdesign.tables.bins import Bins
from mechdesign.tables.cell_rules import NO_RULES, CellRules
from mechdesign.tables.people import PERSON, People
from mechdesign.tables.variable import Variable

# ------------------------------------------------------------------ labels of variables


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


# ------------------------------------------------------------------------------- record


class PeopleOfFile(Record):
    """The columns of a long table that make people of records.

    A symbol of useful is then the sequence of a person's records: their number, and a cell of each
    of `columns` at each of `longest` places.
    """

    person: tuple[str, ...]
    wave: str | None = None
    columns: tuple[str, ...]
    given: tuple[str, ...] = ()
    longest: Annotated[int, Field(ge=1)]
    sensitive: tuple[str, ...] = ()
    sensitive_of: Literal["person", "sequence"] = PERSON


def people_of(document: PeopleOfFile) -> People:
    """The people of a document."""
    return People(**document.model_dump())


class RecordOfFile(Record):
    """The record of a design."""

    notion: dict[str, Any] | None = None
    achieved: dict[str, Any] | None = None
    utility: dict[str, Any] | None = None
    certificate: dict[str, Any] | None = None
    provenance: dict[str, Any] | None = None
    confidence: Confidence | None = None
    objective: Objective | None = None
    budgets: tuple[SymbolBudgets, ...] = ()
    after: tuple[Digest, ...] = ()
    averages: tuple[AverageBudget, ...] = ()
    promise: Literal["total", "relative"] = "total"
    rules: CellRules = NO_RULES


RECORDS = ("notion", "achieved", "utility", "certificate")


def record_values(record: ChannelRecord) -> dict[str, Any]:
    """The keys of a record, None for those that the file omits."""
    values: dict[str, Any] = {
        "promise": record.promise_kind if record.promise_kind != TOTAL else None
    }
    for key in (*RECORDS, "confidence", "provenance"):
        values[key] = without_infinities(getattr(record, key), key)
    values["objective"] = None
    if record.objective is not None:
        values["objective"] = record.objective.model_dump()
    values["budgets"] = _plain(record.budgets) or None
    values["after"] = record.after or None
    values["averages"] = _plain(record.averages) or None
    values["rules"] = None
    if record.rules != NO_RULES:
        values["rules"] = record.rules.model_dump()
    return values


def _plain(models: Sequence[Record]) -> list[dict[str, Any]]:
    """Models as JSON values, without the fields that are None."""
    return [model.model_dump(exclude_none=True) for model in models]


def record_of(document: RecordOfFile) -> ChannelRecord:
    """The record of a document, with infinities that JSON does not have."""
    notion = with_infinities(document.notion)
    if document.notion is not None:
        from_record(document.notion)  # refuses a notion that does not exist
    for place in ("achieved", "utility", "certificate"):
        _check_figures(getattr(document, place) or {}, place)
    confidence = None
    if document.confidence is not None:
        confidence = document.confidence.model_dump(mode="json", exclude_unset=True)
    return ChannelRecord(
        notion=notion,
        achieved=with_infinities(document.achieved),
        utility=with_infinities(document.utility),
        certificate=with_infinities(document.certificate),
        provenance=document.provenance or {},
        confidence=confidence,
        objective=document.objective,
        budgets=document.budgets,
        after=document.after,
        averages=document.averages,
        promise_kind=document.promise,
        rules=document.rules,
    )


INFINITE = {
    "eps_l": ("inf", "-inf"),
    "eps_u": ("inf", "-inf"),
    "eps_ldp": ("inf", "-inf"),
    "cost_lower_bound": ("-inf",),
}
"""Figures that may be infinite, and how."""

NUMBERS = (
    *INFINITE,
    "cost",
    "entropy",
    "frequency_deviation",
    "gap_nmi",
    "impossible_rows",
    "largest_deviation",
    "mutual_information",
    "nmi",
    "total_variation",
    "truth",
    "upper_bound_nmi",
)
"""Entries that are numbers, if they are there."""

NUMBERS_BY_COLUMN = ("columns", "truth_by_column")
"""Entries with a number for every column."""


def _check_figures(entries: Mapping[str, Any], place: str) -> None:
    """Refuse figures that are no numbers, which reports and pages could not print."""
    for name, value in entries.items():
        at = f"{place}.{name}"
        if name in NUMBERS:
            if value not in (None, *INFINITE.get(name, ())):
                _check_figure(value, at)
        elif isinstance(value, dict) and name in NUMBERS_BY_COLUMN:
            for column, figure in cast("dict[str, Any]", value).items():
                _check_figure(figure, f"{at}.{column}")
        elif isinstance(value, dict):
            _check_figures(cast("dict[str, Any]", value), at)
        elif type(value) in (int, float):
            _check_figure(value, at)


def _check_figure(value: Any, place: str) -> None:
    """Raise InputError unless a figure is a number that a double holds."""
    # bool is a kind of int, and no figure; 1e999 is read as an infinity.
    if type(value) is int and abs(value) <= LARGEST_INTEGER:
        return
    if type(value) is not float or not math.isfinite(value):
        raise InputError(f"{place} ({quoted(value)}) must be a number")
