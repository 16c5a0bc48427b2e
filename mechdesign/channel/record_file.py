"""The record of a channel in its file: the keys of the request and of the results.

A channel has one record, and of boxes one for each stratum (`box_file`).
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
from mechdesign.core.wording import quoted
from mechdesign.notions import from_record
from mechdesign.tables.cell_rules import NO_RULES, CellRules
from mechdesign.tables.people import PERSON, People


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
