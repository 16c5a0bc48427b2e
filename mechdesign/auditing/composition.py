"""What independent releases of one record come to together: limits, the worst tuple, and sums.

`joint_leakage.compose` makes one `Composition` for each table that it judges. Where promises are
relative to given columns, there is one table for each stratum. `worst_of_strata` then takes the
largest of all strata, for each side (eps_l, eps_u, eps_ldp) by itself, and the worst tuple of the
stratum whose own lies farthest from 1.

Adding up the budgets of single releases (`sum_of`) is what one might expect of the releases
together, but it is no bound: two columns that tell nothing about S by themselves may determine it
together. With S the exclusive or of two fair bits, each bit alone has all lifts 1 and budgets 0, so
the sum is 0. Both together have the lifts 2 and 0: eps_u = log 2, and eps_l is infinite.

*The common table* is the one that several releases of a record are judged on. `common_table` takes
the table that the caller gives, or else the widest of those that the channels carry: the one with
the most released columns. It is the record's table only if the channels agree:

- they sort each column into the same bins (`_check_bins`) and protect the same columns
  (`_check_sensitive`);
- every other channel releases columns of the table and was designed for the same counts, which is
  checked by adding its cells up over the other columns (`_check_on`).

Example: one channel releases town, another town and job. The table of the second has 3 records of
the secret s in (a, clerk) and 2 in (a, cook), so that of the first must have 5 of s in (a).

`parts_of` cuts a table into the tables of the strata, for promises that are relative to given
columns. With town given, the useful symbols (a, clerk), (b, clerk), (a, cook) are two parts: a with
the first and the third, at the `places` {0: 0, 2: 1}, and b with the second, at {1: 0}.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from mechdesign.auditing.lifts import Achieved, largest_of
from mechdesign.channel.channel import Channel
from mechdesign.channel.file import require_without_boxes
from mechdesign.core.arguments import list_argument
from mechdesign.core.balls import sum_above
from mechdesign.core.display import Displayed
from mechdesign.core.errors import InputError
from mechdesign.core.wording import at_most, listed, quoted
from mechdesign.tables.joint import Joint
from mechdesign.tables.variable import Symbol, Variable

# ------------------------------------------------------------------------- common table


def common_table(channels: Sequence[Channel], joint: Joint | None = None) -> Joint:
    """The table given, or the one that all channels were designed for.

    Raises
    ------
    InputError
        If there is no such table: the channels protect or release different columns, sort one into
        different bins, or were designed for different tables.
    """
    if not channels:
        raise InputError("there is no channel to compose: give at least one")
    for channel in list_argument("channels", channels, "channels"):
        require_without_boxes("each of the channels", channel)
    _check_bins(channels)
    if joint is not None:
        return joint
    _check_sensitive(channels)
    with_table = [channel for channel in channels if channel.joint is not None]
    if not with_table:
        raise InputError(
            "the channels are public ones without their table: give the table (--table)"
        )
    # If one table has the columns of all channels, the one with the most released columns does.
    owner = max(with_table, key=lambda channel: len(channel.useful.columns))
    widest = owner.joint
    assert widest is not None
    for channel in channels:
        if channel is not owner:
            _check_on(channel, widest, channels)
    for channel in channels:
        if channel.sensitive is not None and not channel.sensitive.protects_columns:
            # One promise about crossed columns makes the question one about crossed columns.
            sensitive = replace(widest.sensitive, protects_columns=False)
            return replace(widest, sensitive=sensitive)
    return widest


@dataclass(frozen=True)
class TablePart:
    """The table of one combination of given symbols, and the places of the whole table's useful
    symbols in it.
    """

    table: Joint
    places: Mapping[int, int]


def parts_of(table: Joint, given: Sequence[str]) -> list[TablePart]:
    """The table of every combination of given symbols; the whole table where no column is given."""
    if not given:
        return [TablePart(table, {x: x for x in range(len(table.useful))})]
    columns = [table.useful.columns.index(name) for name in given]
    # The useful symbols of each combination of given ones.
    members: dict[Symbol, list[int]] = {}
    for x, symbol in enumerate(table.useful.symbols):
        members.setdefault(tuple(symbol[k] for k in columns), []).append(x)
    parts: list[TablePart] = []
    for xs in members.values():
        places = {x: place for place, x in enumerate(xs)}
        parts.append(TablePart(_with_symbols(table, xs), places))
    return parts


def _check_bins(channels: Sequence[Channel]) -> None:
    """One table sorts a column into one kind of bins."""
    bins_by_column: dict[str, tuple[str, ...] | None] = {}
    for channel in channels:
        for part, column in enumerate(channel.useful.columns):
            bins = channel.useful.bins_of(part)
            # By their labels: a public file has bins without the table's values.
            labels: tuple[str, ...] | None = None
            if bins is not None:
                labels = bins.labels
            if bins_by_column.setdefault(column, labels) != labels:
                raise InputError(
                    f"the channels sort {quoted(column)} into different bins, and a table has one "
                    "kind: design both with the same --bin"
                )


def _check_sensitive(channels: Sequence[Channel]) -> None:
    """All channels protect the same columns."""
    protected: set[tuple[str, ...]] = set()
    for channel in channels:
        if channel.sensitive is not None:
            protected.add(channel.sensitive.columns)
    if len(protected) > 1:
        names = sorted(",".join(columns) for columns in protected)
        raise InputError(
            f"the channels protect different columns ({listed(names)}): give the table "
            "(--table), with the one that you ask about as sensitive"
        )


def _check_on(channel: Channel, widest: Joint, channels: Sequence[Channel]) -> None:
    """Refuse a table without the columns of the channel, or with other counts than its own."""
    if not set(channel.useful.columns) <= set(widest.useful.columns):
        names = sorted({",".join(other.useful.columns) for other in channels})
        raise InputError(
            f"the channels release different columns ({listed(names)}): give the table "
            "of all (--table)"
        )
    own = channel.joint
    if own is None or own is widest:
        return
    if _cells(own, own.useful) != _cells(widest, own.useful):
        raise InputError(
            "the channels were designed for different tables: give the one that the "
            "record comes from (--table)"
        )


def _cells(joint: Joint, useful: Variable) -> Counter[tuple[Symbol, Symbol]]:
    """Positive counts by sensitive symbol and by symbol of some of the useful columns.

    Zeros are left out: one table may have symbols that the other has only with count 0.
    """
    cells: Counter[tuple[Symbol, Symbol]] = Counter()
    positions = [joint.useful.columns.index(column) for column in useful.columns]
    for symbol, row in zip(joint.sensitive.symbols, joint.counts, strict=True):
        for whole, count in zip(joint.useful.symbols, row, strict=True):
            part = tuple(whole[i] for i in positions)
            cells[symbol, part] += count
    return +cells


def _with_symbols(table: Joint, xs: Sequence[int]) -> Joint:
    """The table of some useful symbols and the sensitive ones that occur with them."""
    useful_symbols = tuple(table.useful.symbols[x] for x in xs)
    sensitive_symbols: list[Symbol] = []
    counts: list[tuple[int, ...]] = []
    for symbol, whole_row in zip(table.sensitive.symbols, table.counts, strict=True):
        row = tuple(whole_row[x] for x in xs)
        if any(row):
            sensitive_symbols.append(symbol)
            counts.append(row)
    return replace(
        table,
        sensitive=replace(table.sensitive, symbols=tuple(sensitive_symbols)),
        useful=replace(table.useful, symbols=useful_symbols),
        counts=tuple(counts),
        notices=(),
    )


# -------------------------------------------------------------------------- composition


@dataclass(frozen=True)
class WorstTuple:
    """The sensitive symbol and the outputs, one of each channel, with the lift farthest from 1 on a
    log scale.
    """

    sensitive: str
    outputs: tuple[str, ...]
    lift: float


@dataclass(frozen=True, repr=False)
class Composition(Achieved, Displayed):
    """The joint leakage of independent releases of one record, in nats: limits as those of one
    release, for all tuples.

    `achieved` has the limits alone and `at_least` is attained by a tuple, both the smallest doubles
    of their kind; they are equal where `exact`, which two channels always are. `sum` is what adding
    the budgets of the channels alone would give: no bound. `worst` is a tuple that attains the
    larger side of `at_least`. Where all are row channels with a relative promise and the same given
    columns, everything is relative to these, and `given` has what they tell by themselves;
    `notices` says where only some of them are.
    """

    at_least: Achieved
    worst: WorstTuple
    sum: Achieved
    alone: tuple[Achieved, ...]
    relative_to: tuple[str, ...] = ()
    given: Achieved | None = None
    notices: tuple[str, ...] = ()

    def __repr__(self) -> str:
        budgets = vars(self.achieved).items()
        sides = ", ".join(f"{name} {at_most(value)}" for name, value in budgets)
        return f"Composition({len(self.alone)} releases: {sides})"

    @property
    def achieved(self) -> Achieved:
        """The limits of all tuples."""
        return Achieved(self.eps_l, self.eps_u, self.eps_ldp)

    @property
    def exact(self) -> bool:
        """Whether the limits meet."""
        return self.achieved == self.at_least


def worst_of_strata(strata: Sequence[Composition]) -> Composition:
    """What holds in every stratum, from the compositions of all strata."""
    if len(strata) == 1:
        return strata[0]
    # Channel by channel the largest budgets of all strata.
    by_channel = zip(*(stratum.alone for stratum in strata), strict=True)
    alone = tuple(largest_of(budgets) for budgets in by_channel)
    # A record is in one stratum, so what tuples tell is bounded by the largest, not by a sum.
    limits = largest_of(stratum.achieved for stratum in strata)
    at_least = largest_of(stratum.at_least for stratum in strata)
    extreme = max(strata, key=_larger_side)
    return Composition(
        eps_l=limits.eps_l,
        eps_u=limits.eps_u,
        eps_ldp=limits.eps_ldp,
        at_least=at_least,
        worst=extreme.worst,
        sum=sum_of(alone),
        alone=alone,
    )


def sum_of(alone: Sequence[Achieved]) -> Achieved:
    """What adding the budgets of single releases gives, rounded up."""
    return Achieved(
        eps_l=sum_above([achieved.eps_l for achieved in alone]),
        eps_u=sum_above([achieved.eps_u for achieved in alone]),
        eps_ldp=sum_above([achieved.eps_ldp for achieved in alone]),
    )


def _larger_side(composition: Composition) -> float:
    """How far the lift of the worst tuple lies from 1, on a log scale."""
    return max(composition.at_least.eps_l, composition.at_least.eps_u)
