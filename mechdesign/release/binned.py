"""Numbers for what a channel of bins releases: the median of what an output stands for, or a value inside of it.

Both are functions of the output, of the table's frequencies and of nothing else of the record, so they tell no more of
it than the output does.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import InputError
from mechdesign.core.rationals import fraction_of
from mechdesign.core.wording import about, quoted
from mechdesign.release.policies import posterior_sampler, sampler_of, table_of
from mechdesign.release.sampling import Releasable, Sampler
from mechdesign.tables.bins import Bins, middle_of
from mechdesign.tables.cell_numbers import DAY, Kind
from mechdesign.tables.joint import Joint
from mechdesign.tables.variable import Variable

Floats = NDArray[np.float64]

FORMS = "label", "posterior-draw", "representative", "within"
LABEL, POSTERIOR_DRAW, REPRESENTATIVE, WITHIN = FORMS
"""What is published for an output: itself; a symbol drawn from what it leaves possible; or a number, as below."""


def released_variable(channel: Releasable, form: str) -> Variable:
    """What the released columns of a form hold: the symbols are the columns of `by_output`."""
    useful = channel.useful
    if form == LABEL:
        return Variable(
            (",".join(useful.columns),), tuple((label,) for label in channel.outputs)
        )
    if form == REPRESENTATIVE:
        return Variable(
            useful.columns,
            tuple(dict.fromkeys(zip(*numbers_released(channel), strict=True))),
        )
    return replace(useful, bins=()) if form == POSTERIOR_DRAW else useful


def by_output(channel: Releasable, form: str) -> Floats:
    """The chance of every symbol of `released_variable` for every output, for a form other than the label."""
    index = released_variable(channel, form).index
    if form == REPRESENTATIVE:
        place = [
            index[numbers] for numbers in zip(*numbers_released(channel), strict=True)
        ]
    elif form == POSTERIOR_DRAW or (place := symbols_released(channel)) is None:
        table_of(channel, form)
        return channel.posteriors
    matrix = np.zeros((len(channel.outputs), len(index)))
    matrix[np.arange(len(matrix)), place] = 1.0
    return matrix


def symbols_released(channel: Releasable) -> list[int] | None:
    """The symbol that each output is, where all outputs are symbols of the column; None otherwise."""
    index = {name: x for x, name in enumerate(channel.useful.names)}
    found = [index.get(label, -1) for label in channel.outputs]
    return None if -1 in found else found


def _bins_of(channel: Releasable, part: int, form: str) -> Bins:
    bins = channel.useful.bins_of(part)
    name = quoted(channel.useful.columns[part])
    if bins is None:
        raise InputError(
            f"{form} is for columns that are released in bins (--bin), and {name} is not"
        )
    if bins.values is None:
        raise InputError(
            f"{form} needs what the table has inside the bins of {name}, and this channel carries nothing of it (a "
            "public one); use the channel file that `design` wrote"
        )
    return bins


def numbers_released(
    channel: Releasable, form: str = REPRESENTATIVE
) -> tuple[tuple[str, ...], ...]:
    """For every column the number that each output is published as.

    For an output that is a bin of the column, the median of the bin under the table; else the median of the bins'
    medians, each as likely as the table says that its bin is behind the output. The empty text for no number.
    """
    known = symbols_released(channel)
    return tuple(
        _numbers(channel, part, known, form)
        for part in range(len(channel.useful.columns))
    )


def _numbers(
    channel: Releasable, part: int, known: list[int] | None, form: str
) -> tuple[str, ...]:
    bins = _bins_of(channel, part, form)
    shown = bins.shown
    own = [shown.get(symbol[part]) or "" for symbol in channel.useful.symbols]
    if known is not None:
        return tuple(own[x] for x in known)
    table_of(channel, form)
    rank = {label: k for k, label in enumerate(bins.labels)}
    place = [rank.get(symbol[part], -1) for symbol in channel.useful.symbols]
    numbers: list[str] = []
    for at, masses in channel.behind:
        behind = sorted(
            (place[x], own[x], mass)
            for x, mass in zip(at, masses, strict=True)
            if own[x]
        )
        numbers.append(
            behind[middle_of([mass for _, _, mass in behind])][1] if behind else ""
        )
    return tuple(numbers)


def symbol_sampler(channel: Releasable) -> Sampler:
    """A symbol for each output: the output itself where it is one, else drawn from P(x | y) under the table."""
    known = symbols_released(channel)
    if known is None:
        return posterior_sampler(channel)
    return sampler_of([((x,), (1,)) for x in known], len(channel.useful))


def inner_samplers(
    channel: Releasable, form: str
) -> list[tuple[tuple[str, ...], Sampler | None]]:
    """For every column the texts that are published, and what draws one of them for a symbol.

    In a column with bins these are values inside of the symbol's bin, as often as the table has them; in others,
    without a sampler, the symbols' own texts.
    """
    found: list[tuple[tuple[str, ...], Sampler | None]] = []
    if not any(channel.useful.bins):
        _bins_of(channel, 0, form)
    for part, texts in enumerate(zip(*channel.useful.symbols, strict=True)):
        if channel.useful.bins[part] is None:
            found.append((texts, None))
            continue
        bins = _bins_of(channel, part, form)
        values: list[str] = [text for inside in bins.values or () for text in inside]
        starts = np.cumsum([0, *map(len, bins.values or ())]).tolist()
        # A symbol without a bin (the empty text) and a bin without values stand for the empty text.
        ends = zip(
            bins.labels, itertools.pairwise(starts), bins.counts or (), strict=True
        )
        inside = {
            label: (range(*pair), counts) for label, pair, counts in ends if counts
        }
        known = [inside.get(text) for text in texts]
        rows = [row or ((len(values),), (1,)) for row in known]
        found.append(
            (
                (*values, "") if None in known else tuple(values),
                sampler_of(rows, len(values) + 1),
            )
        )
    return found


@dataclass(frozen=True)
class Moved:
    """How far the numbers of a column are moved when each output is published as its number, under the table.

    Without `edges` every symbol is a number of its own, else bins are. `distance` is the expected absolute difference
    (seconds for dates and times), `correlation` that of the two numbers (None where one of them is constant); `before`
    and `after` are the shares of the bins. Of a bin with very many values these are the ones that the channel keeps.
    """

    column: str
    kind: Kind
    edges: tuple[str, ...]
    labels: tuple[str, ...]
    distance: float
    correlation: float | None
    before: tuple[float, ...]
    after: tuple[float, ...]


def unit_of(distance: float, kind: str) -> tuple[int, str]:
    """Seconds of the unit that suits a distance between dates or times, and its name; 1 and nothing for numbers."""
    units = ((DAY, " days"), (3600, " hours"), (60, " minutes"), (0, " s"))
    size, name = (
        (1, "")
        if kind == "number"
        else next(each for each in units if distance >= each[0])
    )
    return max(size, 1), name


def distance_text(distance: float, kind: str) -> str:
    """A distance with its unit, where it has one."""
    size, unit = unit_of(distance, kind)
    return f"{about(distance / size)}{unit}"


def moved(channel: Releasable) -> tuple[Moved, ...]:
    """Of every column in bins, and of numbers that are moved the least; nothing for a public channel."""
    objective, known, joint = (
        channel.record.objective,
        symbols_released(channel),
        channel.joint,
    )
    if joint is None or any(
        bins is not None and bins.values is None for bins in channel.useful.bins
    ):
        return ()
    if objective and objective.distance and known and not any(channel.useful.bins):
        return (_symbols_moved(channel, joint, known),)
    found: list[Moved] = []
    for part, (column, bins) in enumerate(
        zip(channel.useful.columns, channel.useful.bins, strict=False)
    ):
        if bins is None:
            continue
        texts = _numbers(channel, part, known, REPRESENTATIVE)
        shown = list(dict.fromkeys(texts))
        released = np.array([float(bins.number(text) or 0) for text in shown])
        rank = {label: k for k, label in enumerate(bins.labels)}
        places = [rank.get(symbol[part], -1) for symbol in channel.useful.symbols]
        in_bin = np.equal.outer(np.arange(len(bins)), places).astype(np.float64)
        shown_at = [shown.index(text) for text in texts]
        shown_as = np.equal.outer(shown_at, np.arange(len(shown))).astype(np.float64)
        weights = joint.p_x[:, None] * channel.matrix
        masses = (in_bin @ weights @ shown_as) * [bool(text) for text in shown]
        masses /= masses.sum()
        distance, mean, inner = (
            np.zeros(masses.shape),
            np.zeros(len(bins)),
            np.zeros(len(bins)),
        )
        for k, (values, counts) in enumerate(
            zip(bins.values or (), bins.counts or (), strict=True)
        ):
            if values:
                cells = np.array([float(bins.number(text) or 0) for text in values])
                shares = np.array(counts, dtype=np.float64) / sum(counts)
                distance[k] = shares @ np.abs(cells[:, None] - released)
                mean[k] = shares @ cells
                inner[k] = shares @ (cells - mean[k]) ** 2
        before, after = masses.sum(axis=1), masses.sum(axis=0)
        by_bin = np.bincount(
            bins.bins_of([text or "0" for text in shown]).clip(0), after, len(bins)
        )
        shares = tuple(before.tolist()), tuple(by_bin.tolist())
        moves = (
            float((distance * masses).sum()),
            _correlation(masses, mean, released, inner),
        )
        found.append(Moved(column, bins.kind, bins.edges, bins.labels, *moves, *shares))
    return tuple(found)


def _correlation(
    masses: Floats, own: Floats, released: Floats, inner: Floats | float = 0.0
) -> float | None:
    """Of numbers and released ones with these joint masses; `inner` are variances about `own` where it has means."""
    before, after = masses.sum(axis=1), masses.sum(axis=0)
    own, released = own - before @ own, released - after @ released
    constant = np.ptp(released[after > 0]) == 0 or (
        np.ptp(own[before > 0]) == 0 and not np.any(inner)
    )
    spread = before @ (own**2 + inner) * (after @ released**2)
    return None if constant else float(own @ masses @ released / math.sqrt(spread))


def _symbols_moved(channel: Releasable, joint: Joint, known: list[int]) -> Moved:
    """Of a column of numbers that are released as such."""
    names = channel.useful.names
    numbers = np.array([float(fraction_of(name)) for name in names])
    masses, order = np.zeros((len(names),) * 2), np.argsort(numbers)
    masses[:, known] = joint.p_x[:, None] * channel.matrix
    before, after = masses.sum(axis=1), masses.sum(axis=0)
    distance = float((masses * np.abs(np.subtract.outer(numbers, numbers))).sum())
    sorted_in: list[list[Any]] = [
        np.array(each)[order].tolist() for each in (names, before, after)
    ]
    labels, *shares = map(tuple, sorted_in)
    moves = distance, _correlation(masses, numbers, numbers)
    return Moved(channel.useful.columns[0], "number", (), labels, *moves, *shares)
