"""What the promise of any channel becomes for the population, which outputs and symbols are to blame, and the remedy.

A channel designed on few records promises something of these records. For the population that they are a sample of,
the largest and the smallest lift over a confidence set say what is left of it. Outputs made of symbols with few
records are the ones that are hardly known; publishing one together with another output is the remedy at hand.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from mechdesign.auditing.demands import Entries, columns_on, released_part
from mechdesign.auditing.population import Bound, Population, achieved_of
from mechdesign.auditing.verdict import Achieved
from mechdesign.channel.channel import Array, Channel
from mechdesign.core.binomial import SCALE
from mechdesign.notions import LIP, Notion
from mechdesign.tables.confidence import ConfidenceSet, confidence_set
from mechdesign.tables.joint import Joint

MOST_MERGERS, WORTH_SAYING = 3, 0.95
"""Outputs merged in an attempt to show what merging gives (more is a new design, which `confidence` makes), and the
share of the budget that is used up to which what it leaves is worth showing."""

HALF = 0.5
"""Symbols are named until they make up this share of what the interval adds to the lift."""


@dataclass(frozen=True)
class Cause:
    """Where an extreme lies: the cell, its lift, and the symbols whose intervals make it so, with their `records`."""

    sensitive: str
    output: str
    lift: float
    symbols: tuple[str, ...]
    records: tuple[int, ...]


@dataclass(frozen=True)
class Merged:
    """What publishing some outputs as one would give: for the population, and in shares of H(X) lost."""

    groups: tuple[tuple[str, ...], ...]
    achieved: Achieved
    lost: float


@dataclass(frozen=True)
class PopulationPromise:
    """The budgets that hold for the population with probability `level`, their causes and the remedy.

    `largest` and `smallest` are the extreme lifts; `merged` is None where merging up to three outputs gives
    little.
    """

    level: float
    achieved: Achieved
    largest: Cause
    smallest: Cause
    merged: Merged | None


class Released(NamedTuple):
    """A channel as integers: its outputs, and their columns over one denominator and the useful symbols of a table."""

    outputs: Sequence[str]
    columns: Sequence[Entries]
    denominator: int


def population_promise(
    channel: Channel,
    joint: Joint,
    notion: Notion | None = None,
    *,
    chosen: ConfidenceSet | None = None,
) -> PopulationPromise:
    """What `channel` promises of the population that the counts of `joint` are a sample of."""
    joint = released_part(channel, joint)
    released = Released(
        channel.outputs, columns_on(channel, joint), channel.denominator
    )
    return promise_of(released, joint, notion, chosen or confidence_set(joint))


def promise_of(
    released: Released, joint: Joint, notion: Notion | None, chosen: ConfidenceSet
) -> PopulationPromise:
    """`population_promise` of a channel that is given in integers."""
    population = Population(chosen, joint.useful_counts)
    worst = population.worst(released.columns)
    return PopulationPromise(
        level=chosen.level,
        achieved=achieved_of(worst),
        largest=_cause(released, joint, chosen, worst.high, rising=True),
        smallest=_cause(released, joint, chosen, worst.low, rising=False),
        merged=_remedy(released, joint, notion, population),
    )


def _cause(
    released: Released,
    joint: Joint,
    chosen: ConfidenceSet,
    bound: Bound,
    *,
    rising: bool,
) -> Cause:
    """The cell of `bound` and the symbols that the interval of its own row blames."""
    at, values = released.columns[bound.y]
    s = bound.s
    row, total = joint.counts[s], joint.sensitive_counts[s]
    excess: list[tuple[float, int]] = []
    for x, value in zip(at, values, strict=True):
        end = (chosen.upper if rising else chosen.lower)[s][x] / SCALE
        excess.append((abs(end - row[x] / total) * (value / released.denominator), x))
    excess.sort(reverse=True)
    said, half = (
        list(accumulate(part for part, _ in excess)),
        HALF * sum(part for part, _ in excess),
    )
    blamed = [x for _, x in excess[: 1 + sum(part < half for part in said)]]
    above, below = (bound.above, bound.below) if rising else (bound.below, bound.above)
    return Cause(
        joint.sensitive.names[s],
        released.outputs[bound.y],
        above / below if below else math.inf,
        tuple(joint.useful.names[x] for x in blamed),
        tuple(row[x] for x in blamed),
    )


def _remedy(
    released: Released, joint: Joint, notion: Notion | None, population: Population
) -> Merged | None:
    """Merge the worst output with the one that mends it best, a few times, and say what that gives."""
    limits = (
        LIP(1.0) if notion is None or notion.limits.mean is not None else notion
    ).limits.loosest
    columns: list[Entries] = list(released.columns)
    groups: list[tuple[str, ...]] = [(label,) for label in released.outputs]
    used = [population.extremes(column).usage(limits) for column in columns]
    before = max(used)
    for _ in range(min(MOST_MERGERS, len(columns) - 2)):
        y = used.index(max(used))
        others = [k for k in range(len(columns)) if k != y]
        joined = [_sum(columns[y], columns[k]) for k in others]
        shares = [population.extremes(column).usage(limits) for column in joined]
        best = shares.index(min(shares))
        k = others[best]
        columns[k], groups[k], used[k] = (
            joined[best],
            groups[k] + groups[y],
            shares[best],
        )
        del columns[y], groups[y], used[y]
        if max(used) <= WORTH_SAYING * before:
            weights = np.array(joint.useful_counts, dtype=np.float64)
            unit = released.denominator
            lost = _information(released.columns, weights, unit) - _information(
                columns, weights, unit
            )
            share = lost / float(joint.p_x @ -np.log(joint.p_x))
            achieved = achieved_of(population.worst(columns))
            return Merged(
                tuple(group for group in groups if len(group) > 1),
                achieved,
                max(0.0, share),
            )
    return None


def _sum(one: Entries, other: Entries) -> Entries:
    total = Counter(dict(zip(*one, strict=True))) + Counter(
        dict(zip(*other, strict=True))
    )
    at = sorted(total)
    return at, [total[x] for x in at]


def _information(columns: Sequence[Entries], weights: Array, denominator: int) -> float:
    """I(X;Y) - H(X) = sum of P(x, y) log P(x|y), in floating point."""
    value = mass = 0.0
    for at, values in columns:
        q = weights[list(at)] * np.array([v / denominator for v in values])
        value += float(q @ np.log(q / q.sum()))
        mass += float(q.sum())
    return value / mass
