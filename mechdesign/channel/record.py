"""The record of a channel's design, which goes into its file: the request and the results.

`ChannelRecord` holds all of it as plain values. Its parts with rules of their own are models, which
check what a file has when it is read: `Confidence` with its `Intervals`, `Objective`,
`AverageBudget` and `SymbolBudgets`. Nothing is computed here.

`design` makes the record, and `channel.file` writes and reads it. `promise` is the notion that was
asked for, with the budgets of single symbols; audits check it. `public` leaves out the results and
whatever else is a function of the table, with which a reader could test a guess of it.

*In the file* are the keys of the request and of the results. A channel has one record, and of boxes
one for each stratum (`boxes`).

*Variables* have their columns and symbols in channel files. The variable job x sex is written with
one text a column for each symbol, as ``{"columns": ["job", "sex"], "symbols": [["nurse", "F"],
..]}``. `labels_record` writes that, `binned_labels_record` writes bins of numbers with it, and
`variable_of` makes the variable again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Annotated, Any, Literal, TypeAlias, cast, get_args

from pydantic import Field, model_validator

from mechdesign.core.arguments import repeated
from mechdesign.core.documents import (
    Digest,
    Matching,
    Record,
    with_infinities,
    without_infinities,
)
from mechdesign.core.errors import InputError
from mechdesign.core.integers import LARGEST_INTEGER
from mechdesign.core.wording import listed, quoted
from mechdesign.notions import Notion, check_budget, from_record
from mechdesign.tables.bins import Bins
from mechdesign.tables.cell_values import NO_RULES, CellRules
from mechdesign.tables.people import PERSON, People
from mechdesign.tables.variable import Variable

Ratio = Annotated[
    str,
    Matching(
        r"-?(0|[1-9][0-9]{0,999})(/[1-9][0-9]{0,999})?",
        "an exact fraction as text, such as 1 or 3/8",
    ),
]
Interval = tuple[Ratio, Ratio]

TOTAL = "total"
"""The promise that bounds P(s|k, y) against P(s); k are the given columns."""

RELATIVE = "relative"
"""The promise that bounds P(s|k, y) against P(s|k), for observers who know the given columns k."""

PUBLIC_PROVENANCE = ("command", "tool", "version", "mechanism", "method")
"""Keys of the origin in a public file. With names, sizes and hashes of the source a reader could
test a guess of the table; achieved budgets, utility and certificate are functions of its counts.
"""


class Intervals(Record):
    """Lower and upper ends of P(x|s), by sensitive and then by useful symbol, and of P(s)."""

    cells: tuple[tuple[Interval, ...], ...]
    shares: tuple[Interval, ...]

    @model_validator(mode="after")
    def _hold_distributions(self) -> Intervals:
        """Refuse intervals that hold no P(.|s) for some s, or no P(s)."""
        for s, row in enumerate(self.cells):
            _check_holds_distribution(f"cells[{s}]", row)
        _check_holds_distribution("shares", self.shares)
        return self


def _check_holds_distribution(place: str, row: tuple[Interval, ...]) -> None:
    """Raise InputError unless the intervals hold a distribution; in exact fractions."""
    # Numbers within the intervals sum to anything between the sums of their ends.
    least = Fraction(0)
    most = Fraction(0)
    for k, (low_text, high_text) in enumerate(row):
        low = Fraction(low_text)
        high = Fraction(high_text)
        if not 0 <= low <= high <= 1:
            raise InputError(
                f"{place}[{k}] ('{low_text}', '{high_text}') is no interval in [0, 1]"
            )
        least += low
        most += high
    if not least <= 1 <= most:
        raise InputError(f"{place}: the intervals hold no probabilities that sum to 1")


class Confidence(Record):
    """The confidence set of populations for which the promise holds, at `level`.

    `shares` is whether P(s) was known, estimated or left open, and `unseen` the number of symbols
    of X without a record. A public file has no intervals, for they are functions of the counts.
    """

    level: Annotated[float, Field(ge=0.5, lt=1.0)]
    set: Literal["clopper-pearson"]
    shares: Literal["known", "estimated", "free"]
    unseen: Annotated[int, Field(ge=0)] = 0
    intervals: Intervals | None = None


class Objective(Record):
    """The objective of the design; without one outputs are free and keep most information about X.

    `stay` has the least share of each symbol that keeps its value, `forbid` the pairs (from, to) of
    symbols of which the first is never released as the second. Rows are named by cells as well:
    `never` has combinations of cells, by column, that are never released, and `column_weights` what
    a changed cell of a column costs in proportion, where it is not 1. `constraints` counts
    functions, which a file cannot hold. Numbers of rows are moved least in "ranks" by default.
    """

    name: Literal["truth", "distance", "costs", "convex"]
    distance: Literal["absolute", "squared", "ranks"] | None = None
    keep_frequencies: bool = False
    stay: dict[str, Ratio] = Field(default_factory=dict)
    forbid: tuple[tuple[str, str], ...] = ()
    never: tuple[dict[str, str], ...] = ()
    column_weights: dict[str, Annotated[float, Field(gt=0.0, allow_inf_nan=False)]] = (
        Field(default_factory=dict)
    )
    constraints: Annotated[int, Field(ge=0)] = 0

    @property
    def is_special(self) -> bool:
        """Whether there is more than the name of the objective."""
        asked = (self.stay, self.forbid, self.never, self.column_weights)
        return any(asked) or self.constraints > 0

    @property
    def values(self) -> dict[str, Any]:
        """Its keys in a file, which lacks what only rows have where it was not asked."""
        values = self.model_dump()
        for name in ("never", "column_weights"):
            if not values[name]:
                del values[name]
        return values

    @model_validator(mode="after")
    def _has_a_distance_where_it_needs_one(self) -> Objective:
        """Refuse an objective of distance without a distance, or another one with it."""
        if (self.name == "distance") != (self.distance is not None):
            raise InputError(
                "distance (absolute, squared or ranks) belongs to the objective distance, no other"
            )
        return self


AverageMeasure: TypeAlias = Literal[
    "mi", "tv", "chi2", "maximal-leakage", "guess", "gain"
]

AVERAGE_MEASURES: tuple[AverageMeasure, ...] = get_args(AverageMeasure)
"""Average leakages that can have a budget."""

NO_PUBLIC_AVERAGE = (
    "a channel with an average budget has no public file or report: its budgets are functions of "
    "the table; leave --public (or --public-report) out"
)


class AverageBudget(Record):
    """A bound on the average leakage over the outputs, which promises nothing about one record.

    `mi` and `maximal-leakage` are in nats, `guess` is the share of right guesses. `achieved` is the
    leakage of the channel, rounded upwards. If the design minimised the leakage of channels that
    `keep` a share of the information, no such channel leaks less than `lower_bound`, and the budget
    is the achieved leakage.

    With the measure `gain`, `gains` has a row for each guess, with what it gains for each sensitive
    symbol of the channel.
    """

    measure: AverageMeasure
    budget: Annotated[float, Field(gt=0.0, le=700.0)]
    gains: tuple[tuple[Ratio, ...], ...] | None = None
    achieved: Annotated[float, Field(ge=0.0)] | None = None
    keep: Annotated[float, Field(gt=0.0, lt=1.0)] | None = None
    lower_bound: Annotated[float, Field(ge=0.0)] | None = None

    @model_validator(mode="after")
    def _has_gains_where_it_needs_them(self) -> AverageBudget:
        """Refuse gains that are missing, or of another measure, or of unequal lengths."""
        if (self.measure == "gain") != bool(self.gains):
            raise InputError("gains belong to an average of the measure gain, no other")
        if len({len(row) for row in self.gains or ()}) > 1:
            raise InputError("gains must have a number for each sensitive symbol")
        if any(text.startswith("-") for row in self.gains or () for text in row):
            raise InputError("gains must not be negative")
        return self

    @property
    def exact_gains(self) -> tuple[tuple[Fraction, ...], ...]:
        """The gains as numbers; empty for other measures."""
        return tuple(tuple(map(Fraction, row)) for row in self.gains or ())


class SymbolBudgets(Record):
    """Budgets (nats) of one sensitive symbol, in place of those of the notion.

    `column` is that of the symbol where each of several columns is protected for itself.
    """

    symbol: tuple[str, ...]
    column: str | None = None
    eps_l: float | Literal["inf"]
    eps_u: float | Literal["inf"]

    @model_validator(mode="after")
    def _are_budgets(self) -> SymbolBudgets:
        check_budget("eps_l", float(self.eps_l))
        check_budget("eps_u", float(self.eps_u))
        return self


def check_symbol_budgets(budgets: Sequence[SymbolBudgets], sensitive: Variable) -> None:
    """Raise InputError unless the budgets are for different symbols that are protected."""
    symbols = [(of_symbol.column, of_symbol.symbol) for of_symbol in budgets]
    protected = {(column, symbol) for column, symbol, _ in sensitive.protected}
    unknown: list[str] = []
    for column, symbol in symbols:
        if (column, symbol) not in protected:
            unknown.append(", ".join(symbol))
    if unknown:
        raise InputError(f"budgets: there is no sensitive symbol {listed(unknown)}")
    if repeated(symbols) is not None:
        raise InputError("budgets: a sensitive symbol occurs twice")


@dataclass(frozen=True)
class ChannelRecord:
    """The request and the results of a design, as plain JSON values or models of them.

    `notion` comes from `notions.to_record`, `confidence` from `ConfidenceSet.to_record`; `achieved`
    and `utility` are those of the integers. `after` has the `sha256` of the channel files
    (`channel.file.digest`) together with which this one keeps the promise. `rules` are those by
    which the cells of the table were read, and those of a release must be. `unwritable` is the
    reason why no file may hold the channel, if there is one. `promise_kind` says against what lifts
    are measured, `TOTAL` or `RELATIVE`. `is_counts` is for a public channel: whether the table that
    it lacks had numbers of records, and not weights or probabilities.
    """

    notion: dict[str, Any] | None = None
    achieved: dict[str, Any] | None = None
    utility: dict[str, Any] | None = None
    certificate: dict[str, Any] | None = None
    provenance: dict[str, Any] = field(default_factory=dict[str, Any])
    confidence: dict[str, Any] | None = None
    objective: Objective | None = None
    budgets: tuple[SymbolBudgets, ...] = ()
    after: tuple[Digest, ...] = ()
    averages: tuple[AverageBudget, ...] = ()
    rules: CellRules = NO_RULES
    unwritable: str | None = None
    promise_kind: str = TOTAL
    is_counts: bool = True

    def promise(self, sensitive: Variable | None) -> Notion | None:
        """The notion of the request with the budgets of single symbols; None without a notion."""
        if self.notion is None:
            return None
        notion = from_record(self.notion)
        if sensitive is None:
            return notion
        budgets_of: dict[tuple[str | None, tuple[str, ...]], tuple[float, float]] = {}
        for budgets in self.budgets:
            pair = (float(budgets.eps_l), float(budgets.eps_u))
            budgets_of[budgets.column, budgets.symbol] = pair
        # A notion knows symbols by their unique names.
        by_name: dict[str, tuple[float, float]] = {}
        for column, symbol, name in sensitive.protected:
            if (column, symbol) in budgets_of:
                by_name[name] = budgets_of[column, symbol]
        if not by_name:
            return notion
        return notion.with_budgets(by_name)

    @property
    def least(self) -> dict[str, Any]:
        """Cost, its proven bound, and the other results of a channel of least cost."""
        utility = self.utility or {}
        values: dict[str, Any] = {}
        for name in ("cost", "cost_lower_bound", "truth", "frequency_deviation"):
            if utility.get(name) is not None:
                values[name] = utility[name]
        return values

    def public(self) -> ChannelRecord:
        """The record without anything that is computed from the table."""
        # The intervals are functions of the counts.
        confidence = dict(self.confidence or {})
        confidence.pop("intervals", None)
        if self.averages:
            # With an average alone the notion is made of the channel's own extreme lifts, and a
            # budget in per cent is a share of the table's own information.
            raise InputError(NO_PUBLIC_AVERAGE)
        return replace(
            self,
            achieved=None,
            utility=None,
            certificate=None,
            provenance=chosen_entries(self.provenance, PUBLIC_PROVENANCE),
            confidence=confidence or None,
            rules=self.rules.model_copy(update={"left_out": 0}),
            after=(),
        )

    def __post_init__(self) -> None:
        if self.promise_kind not in (TOTAL, RELATIVE):
            raise InputError(
                f"promise ({quoted(self.promise_kind)}) must be total or relative"
            )


def chosen_entries(record: Mapping[str, Any], keys: Sequence[str]) -> dict[str, Any]:
    """The entries of a record with these keys, as far as it has them."""
    entries: dict[str, Any] = {}
    for key in keys:
        if key in record:
            entries[key] = record[key]
    return entries


# --------------------------------------------------------------------------------- file

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
        values["objective"] = record.objective.values
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
