"""The record of a channel's design, which goes into its file: the request and the results.

`ChannelRecord` holds all of it as plain values. Its parts with rules of their own are models, which
check what a file has when it is read: `Confidence` with its `Intervals`, `Objective`,
`AverageBudget` and `SymbolBudgets`. Nothing is computed here.

`design` makes the record, and `channel.file` writes and reads it. `promise` is the notion that was
asked for, with the budgets of single symbols; audits check it. `public` leaves out the results and
whatever else is a function of the table, with which a reader could test a guess of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Annotated, Any, Literal, TypeAlias, get_args

from pydantic import Field, model_validator

from mechdesign.core.arguments import repeated
from mechdesign.core.errors import InputError
from mechdesign.core.records import Digest, Matching, Record
from mechdesign.core.wording import listed, quoted
from mechdesign.notions import Notion, check_budget, from_record
from mechdesign.tables.cell_rules import NO_RULES, CellRules
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
    symbols of which the first is never released as the second. `constraints` counts further ones,
    which a file cannot hold. Numbers of released rows are moved least in "ranks" by default.
    """

    name: Literal["truth", "distance", "costs", "convex"]
    distance: Literal["absolute", "squared", "ranks"] | None = None
    keep_frequencies: bool = False
    stay: dict[str, Ratio] = Field(default_factory=dict)
    forbid: tuple[tuple[str, str], ...] = ()
    constraints: Annotated[int, Field(ge=0)] = 0

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
    "the table; leave --public out"
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
    are measured, `TOTAL` or `RELATIVE`.
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
