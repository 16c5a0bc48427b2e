"""What a channel file states, held against its own table.

A channel carries a promise and figures beside its integers. Whoever edits the integers of a file
can renew its hash, so the hash proves nothing: only the table proves the promise. `statement_of`
computes again whatever the table decides:

- the promise, by the exact audit (`either.audit`);
- the budgets that are achieved, which are exact;
- the share of the information that is kept, I(X;Y) and H(X), to `ROUNDING`;
- of a channel of least cost the share of true records, the largest change of a frequency, and the
  cost where the objective is truth or a distance of one column; they are exact. Of released rows
  the law, too, and the share of each column.

Each stated figure is then right, wrong, or only stated, as is every bound on other channels, which
would need the search again. For example, a file states nmi 0.9, but the integers keep 0.42: `wrong`
has ("nmi", 0.9, 0.42).

A public channel has no table, so that nothing of it is checked (`kept` is None). `refuse_broken` is
for releases: it raises where the table disproves the promise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from operator import mul
from typing import Any, NamedTuple, cast

from mechdesign.auditing.averages import average_verdicts
from mechdesign.auditing.either import audit
from mechdesign.auditing.law import channel_law
from mechdesign.auditing.measures import beyond_given, utility
from mechdesign.auditing.proofs import numbers_in
from mechdesign.auditing.unchanged import share_of_cells, unchanged_cells
from mechdesign.auditing.verdict import achieved_by
from mechdesign.channel.channel import Channel
from mechdesign.channel.record import Objective
from mechdesign.core.balls import quotient_above
from mechdesign.core.errors import InputError, NotPrivate, SolverFailure
from mechdesign.core.wording import listed
from mechdesign.notions import Notion
from mechdesign.tables.joint import Joint

ROUNDING = 1e-13
"""Largest difference of a stated and a computed share of information that is no fault.

Both lie below the true share by at most 5e-15 (`measures.Utility`), on any machine. In nats the
same holds in proportion to H(X). The rest is reserve.
"""

SHARES = ("entropy", "mutual_information", "nmi")
"""Figures in doubles; all others are exact."""

UPPER_BOUND = "upper_bound_nmi"
GAP = "gap_nmi"
TRUTH_BY_COLUMN = "truth_by_column"
LAW = "law"
LOWER_BOUND = "cost_lower_bound"
LOWER_BOUND_OF_AVERAGE = "lower_bound"

VARIANCE_BOUND = "variance_lower_bound"
TASK_BOUND = "task_upper_bound"

BOUNDS = (UPPER_BOUND, LOWER_BOUND, VARIANCE_BOUND, TASK_BOUND)
"""Figures of a file that bound all other channels; those of averages have the average before."""


def is_bound(name: str) -> bool:
    """Whether a figure bounds all other channels, which its table alone does not decide."""
    return name in BOUNDS or name.endswith(f" {LOWER_BOUND_OF_AVERAGE}")


class WrongFigure(NamedTuple):
    """A figure of a file that its own table disproves."""

    name: str
    stated: float
    computed: float


class Unproven(NamedTuple):
    """A bound of a file that its proof does not prove; `proven` is what it does, if anything.

    `out_of_time` says that the proof was not carried through, so that it may be right.
    """

    name: str
    stated: float
    proven: float | None
    reason: str
    out_of_time: bool = False


@dataclass(frozen=True)
class Statement:
    """What of a channel file holds.

    Attributes
    ----------
    promise : Notion or None
        What the file promises; None if it promises nothing.
    kept : bool or None
        Whether its table proves the promise; None without a table, or without a promise.
    right, only_stated : tuple of str
        The figures that were computed again and agree, and those that were not computed again.
    wrong : tuple of WrongFigure
    proven : mapping
        Bounds that were proven again from the proof in the file, as far as it proves them, and
    unproven : tuple of Unproven
        those that were not; both are empty unless that was asked (`mechanisms.proving`).
    """

    promise: Notion | None
    kept: bool | None
    right: tuple[str, ...] = ()
    wrong: tuple[WrongFigure, ...] = ()
    only_stated: tuple[str, ...] = ()
    proven: Mapping[str, float] = field(default_factory=dict[str, float])
    unproven: tuple[Unproven, ...] = ()

    @property
    def disproved(self) -> bool:
        """Whether the table disproves the promise or a figure, or a proof was asked and fails."""
        return self.kept is False or bool(self.wrong) or bool(self.unproven)


def has_table(channel: Channel) -> bool:
    """Whether a channel carries the table, or the counts, that decide its promise."""
    if not channel.channels:
        # Boxes of which no stratum releases anything have no counts; a public file has no figures.
        return channel.box_utility is not None
    return all(single.joint is not None for single in channel.channels)


def keeps_promise(channel: Channel) -> bool | None:
    """Whether a channel keeps its promise on its own table, exactly.

    None if it has no table, or promises nothing.
    """
    if not has_table(channel):
        return None
    # All parts of boxes are judged by the promise that is stated for the whole.
    kept = [_keeps(single, channel.promise) for single in channel.channels]
    if False in kept:
        return False
    return None if None in kept else True


def _keeps(channel: Channel, notion: Notion | None) -> bool | None:
    """Whether a channel keeps this promise, or without one its averages; None without either."""
    joint = channel.joint
    assert joint is not None  # the caller asked `has_table`
    if notion is not None:
        return audit(channel, joint, notion).satisfied
    averages = average_verdicts(channel, joint, channel.record.averages)
    if not averages:
        return None
    return all(average.kept for average in averages)


def refuse_broken(channel: Channel, name: str = "the channel") -> bool:
    """Refuse a channel whose own table disproves its promise; whether the table proved it.

    Raises
    ------
    NotPrivate
        If the promise does not hold.
    """
    kept = keeps_promise(channel)
    if kept is False:
        notion = channel.promise
        promised = "its promise"
        if notion is not None:
            promised = f"its promise {notion.text}"
        raise NotPrivate(
            f"{name} breaks {promised} on its own table, so the file was edited or damaged: "
            "nothing goes out through it; design it anew (`mechdesign audit` shows where)"
        )
    _refuse_wrong_budgets(channel, name)
    return kept is True


def _refuse_wrong_budgets(channel: Channel, name: str) -> None:
    """Refuse a channel whose file states other achieved budgets than those of its table, which
    manifests would repeat.
    """
    for single in channel.channels:
        record = single.record
        # With earlier releases they are those of all together, which the file cannot prove alone.
        if single.joint is None or record.achieved is None or record.after:
            continue
        computed = asdict(achieved_by(single, single.joint))
        for figure, stated in _numbers(record.achieved).items():
            if figure in computed and stated != computed[figure]:
                wrong = WrongFigure(figure, stated, computed[figure])
                raise NotPrivate(
                    f"{name}: {wrong_text(wrong)}: nothing goes out through it"
                )


def refuse_wrong_figures(statement: Statement) -> None:
    """Raise NotPrivate at the first figure of a file that its own table disproves."""
    if statement.wrong:
        raise NotPrivate(wrong_text(statement.wrong[0]))


def refuse_unproven(statement: Statement) -> None:
    """Raise an error at the first bound of a file that its certificate does not prove.

    Raises
    ------
    NotPrivate
        If one of them is not proven.
    SolverFailure
        If all that is missing is time.
    """
    # What is not proven by any time comes first.
    for unproven in sorted(statement.unproven, key=lambda one: one.out_of_time):
        text = f"{unproven_text(unproven)}; without --certificate the report calls it a statement"
        if unproven.out_of_time:
            raise SolverFailure(text)
        raise NotPrivate(text)


def unproven_text(unproven: Unproven) -> str:
    """A clause on a bound that the file does not prove."""
    text = f"the bound {unproven.name} {unproven.stated:.12g} is not proven"
    # What a proof has given when its time ends is not what it gives.
    if unproven.proven is not None and not unproven.out_of_time:
        text += f", for the proof gives {unproven.proven:.12g}"
    return f"{text}: {unproven.reason}"


def wrong_text(wrong: WrongFigure) -> str:
    """A sentence on a figure that is wrong."""
    if wrong.name in (UPPER_BOUND, LOWER_BOUND):
        reached = "keeps"
        if wrong.name == LOWER_BOUND:
            reached = "costs"
        return (
            f"the file states {wrong.name} {wrong.stated:.12g} for all channels, but its own "
            f"{reached} {wrong.computed:.12g}: the file was edited or damaged"
        )
    return (
        f"the file states {wrong.name} {wrong.stated:.12g}, but its integers and its table give "
        f"{wrong.computed:.12g}: the file was edited or damaged"
    )


def statement_of(channel: Channel) -> Statement:
    """Hold all that a channel states against its own table.

    Raises
    ------
    InputError
        If the rows are no probabilities.
    """
    promise = channel.promise
    stated = stated_figures(channel)
    if not has_table(channel):
        return Statement(promise, None, only_stated=tuple(stated))
    computed = _computed_figures(channel)
    right: list[str] = []
    wrong: list[WrongFigure] = []
    only_stated: list[str] = []
    for name, value in stated.items():
        if name not in computed:
            only_stated.append(name)
        elif _agree(name, value, computed[name], computed.get("entropy", 1.0)):
            right.append(name)
        else:
            wrong.append(WrongFigure(name, value, computed[name]))
    # A bound that the channel itself passes is disproved without a search.
    bound = stated.get(UPPER_BOUND)
    kept_share = computed.get("nmi")
    if bound is not None and kept_share is not None and bound < kept_share - ROUNDING:
        only_stated.remove(UPPER_BOUND)
        wrong.append(WrongFigure(UPPER_BOUND, bound, kept_share))
    least = stated.get(LOWER_BOUND)
    cost = computed.get("cost")
    if least is not None and cost is not None and least > cost:
        only_stated.remove(LOWER_BOUND)
        wrong.append(WrongFigure(LOWER_BOUND, least, cost))
    return Statement(
        promise,
        keeps_promise(channel),
        right=_in_groups(right, wrong),
        wrong=tuple(wrong),
        only_stated=tuple(only_stated),
    )


def _in_groups(names: Sequence[str], wrong: Sequence[WrongFigure]) -> tuple[str, ...]:
    """The names of figures that agree, where those of all columns are one, which all must."""
    disproved = {figure.name.partition(".")[0] for figure in wrong}
    groups = [name.partition(".")[0] for name in names]
    return tuple(dict.fromkeys(group for group in groups if group not in disproved))


def stated_figures(channel: Channel) -> dict[str, float]:
    """The numbers that the record of a channel states, by their names in the file."""
    record = channel.record
    figures: dict[str, float] = {}
    for part in (record.achieved, record.utility, record.certificate):
        figures |= _numbers(part or {})
    utility_stated = record.utility or {}
    for name in (TRUTH_BY_COLUMN, LAW):
        if name in utility_stated:
            figures |= _nested({name: utility_stated[name]})
    for average in record.averages:
        if average.lower_bound is not None:
            figures[f"{average.measure} {LOWER_BOUND_OF_AVERAGE}"] = average.lower_bound
    return figures


def _nested(values: Mapping[str, Any], place: str = "") -> dict[str, float]:
    """All numbers and truth values in nested entries, by their places, such as law.columns.age."""
    numbers: dict[str, float] = {}
    for name, value in values.items():
        at = f"{place}.{name}" if place else name
        if isinstance(value, Mapping):
            numbers |= _nested(cast("Mapping[str, Any]", value), at)
        elif isinstance(value, int | float):
            numbers[at] = value
    return numbers


def _numbers(values: Mapping[str, Any]) -> dict[str, float]:
    """The entries that are numbers."""
    numbers: dict[str, float] = {}
    for name, value in values.items():
        if isinstance(value, int | float) and not isinstance(value, bool):
            numbers[name] = value
    return numbers


def _computed_figures(channel: Channel) -> dict[str, float]:
    """The figures that the table of a channel decides."""
    joint = channel.joint
    assert joint is not None  # the caller asked `has_table`
    figures = asdict(beyond_given(utility(channel, joint), joint, channel.given))
    # With earlier releases the file has the budgets of all together, which it cannot prove alone.
    if not channel.record.after:
        figures |= asdict(achieved_by(channel, joint))
    bound = (channel.record.certificate or {}).get(UPPER_BOUND)
    if isinstance(bound, int | float):
        figures[GAP] = max(0.0, bound - figures["nmi"])
    if channel.record.objective is None:
        return figures
    if channel.published is None:
        return figures | _least_figures(channel, joint, channel.record.objective)
    return figures | _row_figures(channel, joint)


def _row_figures(channel: Channel, joint: Joint) -> dict[str, float]:
    """Figures of a channel of least cost that releases rows.

    What rows cost depends on weights of columns and ranks of numbers, which are only stated.
    """
    law = channel_law(channel, joint)
    if law is None:
        # Labels beside given columns: such a channel has no cells that could stay.
        return {}
    truth = unchanged_cells(channel, joint)
    figures = {
        "truth": share_of_cells(truth),
        "frequency_deviation": law.largest_deviation,
    }
    return figures | _nested({TRUTH_BY_COLUMN: truth, LAW: law.record})


def _agree(name: str, stated: float, computed: float, entropy: float) -> bool:
    """Whether a stated figure is the computed one, but for the rounding of doubles."""
    if name in SHARES or name == GAP:
        return abs(stated - computed) <= ROUNDING * max(1.0, entropy)
    return stated == computed


def _least_figures(
    channel: Channel, joint: Joint, objective: Objective
) -> dict[str, float]:
    """Figures of a channel of least cost, whose outputs are its own symbols: rounded against it."""
    own = {*channel.useful.names}
    foreign = [label for label in channel.outputs if label not in own]
    if foreign:
        raise InputError(
            "a channel of least cost releases its own symbols, and "
            f"{listed(foreign)} is none: the file was edited or damaged"
        )
    counts = joint.useful_counts
    whole = joint.total * channel.denominator
    unchanged = sum(map(mul, counts, channel.own_entries))
    figures = {
        "truth": 0.0 - quotient_above(-unchanged, whole),
        "frequency_deviation": quotient_above(_largest_change(channel, counts), whole),
    }
    if objective.name == "truth":
        figures["cost"] = quotient_above(whole - unchanged, whole)
    elif objective.name == "distance":
        cost = _expected_distance(
            channel, joint, squared=objective.distance == "squared"
        )
        figures["cost"] = quotient_above(*cost.as_integer_ratio())
    return figures


def _largest_change(channel: Channel, counts: tuple[int, ...]) -> int:
    """The largest change of a symbol's expected records, times the denominator."""
    released = dict.fromkeys(channel.useful.names, 0)
    columns = zip(channel.outputs, channel.columns, strict=True)
    for label, (symbols, entries) in columns:
        released[label] = sum(
            counts[x] * entry for x, entry in zip(symbols, entries, strict=True)
        )
    changes = [
        abs(mass - count * channel.denominator)
        for mass, count in zip(released.values(), counts, strict=True)
    ]
    return max(changes)


def _expected_distance(channel: Channel, joint: Joint, *, squared: bool) -> Fraction:
    """The expected distance between a number and the one that is released for it."""
    useful = channel.useful
    if len(useful.columns) > 1:
        raise InputError(
            "a channel of least distance releases the numbers of one column, and this one has "
            f"{listed(useful.columns)}: the file was edited or damaged"
        )
    numbers = numbers_in(joint)
    number_of = dict(zip(useful.names, numbers, strict=True))
    total = Fraction(0)
    columns = zip(channel.outputs, channel.columns, strict=True)
    for label, (symbols, entries) in columns:
        released = number_of[label]
        for x, entry in zip(symbols, entries, strict=True):
            distance = abs(numbers[x] - released)
            if squared:
                distance *= distance
            total += joint.useful_counts[x] * entry * distance
    return total / (joint.total * channel.denominator)
