"""The promise of any channel for the population: which outputs and symbols weaken it, and a remedy.

A channel designed on few records keeps its promise on these records. What is left of it for the
population that they are a sample of are the largest and the smallest lift over a confidence set
(`population_extremes`, in integers). The fewer records a symbol has, the wider are its intervals in
proportion to its shares, and the further the lifts of outputs made of it can lie from those of the
table.

`population_promise` reports three things:

- the budgets that hold for the population;
- for the largest and the smallest lift the cell, and the symbols whose intervals move it most
  (`_cause`). The interval of x moves P(y|s) by at most |end - estimate| W(y|x): with 2 of 1,000
  records, an upper end of 0.01 and W(y|x) = 0.5 that is 0.004. The symbols with the largest parts
  are named, until they make up `HALF` of the sum;
- what up to three mergers of outputs would give (`_remedy`). The search is greedy: the output that
  uses most of its budget is merged with the partner with which it uses least, until the largest
  use is at most `WORTH_SAYING` of what it was. If it never is, there is no remedy.

Causes and remedy are searched in floating point; the budgets that are reported are exact.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mechdesign.auditing.columns import Entries, columns_on, released_part
from mechdesign.auditing.lifts import Achieved
from mechdesign.auditing.population_extremes import (
    Bound,
    OutOfTime,
    Population,
    achieved_of,
    check_time,
    population_of,
)
from mechdesign.channel.channel import Array, Channel
from mechdesign.core.balls import SCALE
from mechdesign.core.limits import LiftLimits
from mechdesign.notions import LIP, Notion
from mechdesign.tables.confidence import (
    ConfidenceSet,
    confidence_set,
    seconds_of_set,
)
from mechdesign.tables.joint import Joint

MOST_MERGERS = 3
"""Outputs merged in an attempt to show what merging gives; more is a new design, which `confidence`
makes.
"""

WORTH_SAYING = 0.95
"""Share of the budget that is used up to which what merging leaves is worth showing."""

MOST_TRIED = 1_000_000
"""Outputs times cells of the table up to which merging is tried: some seconds of integer sums. The
figures that are promised do not depend on it.
"""

HALF = 0.5
"""Symbols are named until they make up this share of what the intervals add to P(y|s)."""


@dataclass(frozen=True)
class Cause:
    """Where an extreme lies: the cell, its lift, and the symbols whose intervals make it so, with
    their `records`.
    """

    sensitive: str
    output: str
    lift: float
    symbols: tuple[str, ...]
    records: tuple[int, ...]


@dataclass(frozen=True)
class Merged:
    """What publishing some outputs as one would give: for the population, and in shares of H(X)
    lost.
    """

    groups: tuple[tuple[str, ...], ...]
    achieved: Achieved
    lost: float


@dataclass(frozen=True)
class PopulationPromise:
    """The budgets that hold for the population with probability `level`, their causes and the
    remedy.

    `largest` and `smallest` are the extreme lifts; `merged` is None where merging up to three
    outputs gives little.
    """

    level: float
    achieved: Achieved
    largest: Cause
    smallest: Cause
    merged: Merged | None


class Released(NamedTuple):
    """A channel as integers: its outputs, and their columns over one denominator and the useful
    symbols of a table.
    """

    outputs: Sequence[str]
    columns: Sequence[Entries]
    denominator: int


def population_promise(
    channel: Channel,
    joint: Joint,
    notion: Notion | None = None,
    *,
    chosen: ConfidenceSet | None = None,
    seconds: float | None = None,
) -> PopulationPromise:
    """What `channel` promises of the population that the counts of `joint` are a sample of.

    `chosen` is the confidence set that the channel was designed for, if it was: then it keeps its
    promise for the population, so no remedy is searched. After `seconds` of processor time the
    remedy is left out; if the figures are not there by then, `OutOfTime` is raised.
    """
    end = None
    if seconds is not None:
        end = time.process_time() + seconds
    joint = released_part(channel, joint)
    released = Released(
        channel.outputs, columns_on(channel, joint), channel.denominator
    )
    if chosen is None:
        if seconds is not None and seconds_of_set(joint) > seconds:
            raise OutOfTime("the confidence set takes longer than there is time for")
        return promise_of(released, joint, notion, confidence_set(joint), end=end)
    return promise_of(released, joint, notion, chosen, with_remedy=False, end=end)


def promise_of(
    released: Released,
    joint: Joint,
    notion: Notion | None,
    confidence: ConfidenceSet,
    *,
    with_remedy: bool = True,
    end: float | None = None,
) -> PopulationPromise:
    """`population_promise` of a channel that is given in integers.

    `with_remedy` tries to merge outputs, unless there are too many; `end` is a moment of
    `time.process_time`.
    """
    population = population_of(confidence, tuple(joint.useful_counts))
    worst = population.worst(released.columns, end)
    size = len(released.columns) * len(joint.sensitive) * len(joint.useful)
    merged: Merged | None = None
    if with_remedy and size <= MOST_TRIED:
        with suppress(OutOfTime):
            merged = _remedy(released, joint, notion, population, end)
    return PopulationPromise(
        level=confidence.level,
        achieved=achieved_of(worst),
        largest=_cause(released, joint, confidence, worst.high, rising=True),
        smallest=_cause(released, joint, confidence, worst.low, rising=False),
        merged=merged,
    )


def _cause(
    released: Released,
    joint: Joint,
    confidence: ConfidenceSet,
    bound: Bound,
    *,
    rising: bool,
) -> Cause:
    """The cell of `bound`, and the symbols whose intervals in its own row make up half of what the
    set adds to it.
    """
    # P(y|s) = sum over x of P(x|s) P(y|x): the interval of P(x|s) moves it by at most
    # |end - estimate| P(y|x).
    s = bound.s
    row = joint.counts[s]
    total = joint.sensitive_counts[s]
    if rising:
        ends = confidence.upper[s]
        numerator, denominator = bound.quotient
    else:
        ends = confidence.lower[s]
        numerator, denominator = bound.inverse
    # (how far the end of the interval moves P(y|s), symbol), largest first
    excess: list[tuple[float, int]] = []
    for x, value in zip(*released.columns[bound.y], strict=True):
        distance = abs(ends[x] / SCALE - row[x] / total)
        excess.append((distance * (value / released.denominator), x))
    excess.sort(reverse=True)
    half = HALF * sum(part for part, _ in excess)
    blamed: list[int] = []
    explained = 0.0
    for part, x in excess:
        blamed.append(x)
        explained += part
        if explained >= half:
            break
    lift = math.inf
    if denominator:
        lift = numerator / denominator
    return Cause(
        sensitive=joint.sensitive.names[s],
        output=released.outputs[bound.y],
        lift=lift,
        symbols=tuple(joint.useful.names[x] for x in blamed),
        records=tuple(row[x] for x in blamed),
    )


def _remedy(
    released: Released,
    joint: Joint,
    notion: Notion | None,
    population: Population,
    end: float | None,
) -> Merged | None:
    """What merging the worst output with the one that mends it best gives, a few times.

    None if it does not lower the largest usage of a budget enough to be worth showing. Raises
    `OutOfTime` from `end` on.
    """
    if notion is None or notion.limits.mean is not None:
        notion = LIP(1.0)
    # How much of these limits each output uses: the search lowers the largest usage.
    limits = notion.limits.loosest
    columns: list[Entries] = list(released.columns)
    groups: list[tuple[str, ...]] = [(label,) for label in released.outputs]
    usages: list[float] = []
    for column in columns:
        check_time(end)
        usages.append(population.extremes(column).usage(limits))
    before = max(usages)
    # At least two outputs are left: a single one would release nothing.
    for _ in range(min(MOST_MERGERS, len(columns) - 2)):
        y = usages.index(max(usages))
        merger = _best_merger(columns, y, population, limits, end)
        columns[merger.partner] = merger.column
        groups[merger.partner] += groups[y]
        usages[merger.partner] = merger.usage
        del columns[y], groups[y], usages[y]
        if max(usages) <= WORTH_SAYING * before:
            return Merged(
                groups=tuple(group for group in groups if len(group) > 1),
                achieved=achieved_of(population.worst(columns)),
                lost=_share_lost(released, columns, joint),
            )
    return None


class _Merger(NamedTuple):
    """Publishing an output as one with its `partner`: the column of both, and what it uses."""

    partner: int
    column: Entries
    usage: float


def _best_merger(
    columns: Sequence[Entries],
    y: int,
    population: Population,
    limits: LiftLimits,
    end: float | None,
) -> _Merger:
    """The merger of the output `y` that uses least of the limits, of equal ones the first."""
    mergers: list[_Merger] = []
    for k, column in enumerate(columns):
        if k != y:
            check_time(end)
            merged = _sum(columns[y], column)
            usage = population.extremes(merged).usage(limits)
            mergers.append(_Merger(k, merged, usage))
    return min(mergers, key=lambda merger: merger.usage)


def _share_lost(released: Released, columns: Sequence[Entries], joint: Joint) -> float:
    """The information about X that merged columns lose, as a share of H(X)."""
    weights = np.array(joint.useful_counts, dtype=np.float64)
    unit = released.denominator
    before = _information(released.columns, weights, unit)
    after = _information(columns, weights, unit)
    entropy = float(joint.p_x @ -np.log(joint.p_x))
    return max(0.0, (before - after) / entropy)


def _sum(one: Entries, other: Entries) -> Entries:
    """The column of two outputs published as one: W(y|x) + W(z|x)."""
    entries = dict(zip(*one, strict=True))
    for x, value in zip(*other, strict=True):
        entries[x] = entries.get(x, 0) + value
    inputs = sorted(entries)
    return inputs, [entries[x] for x in inputs]


def _information(columns: Sequence[Entries], weights: Array, denominator: int) -> float:
    """I(X;Y) - H(X) = sum of P(x, y) log P(x|y), in floating point."""
    value = 0.0
    mass = 0.0
    for inputs, entries in columns:
        # N P(x, y) of one output, N the number of records.
        entry_shares = np.array([entry / denominator for entry in entries])
        masses = weights[list(inputs)] * entry_shares
        value += float(masses @ np.log(masses / masses.sum()))
        mass += float(masses.sum())
    return value / mass
