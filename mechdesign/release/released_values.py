"""Numbers for the outputs of a channel of bins: the median of what an output comes from, or a value
inside of it.

Both are functions of the output, of the table's frequencies and of nothing else of the record, so
they tell no more of it than the output does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import InputError
from mechdesign.core.rationals import fraction_of
from mechdesign.core.wording import about, quoted
from mechdesign.release.policies import posterior_sampler, sampler_of, table_of
from mechdesign.release.protocol import Releasable
from mechdesign.release.sampling import Sampler
from mechdesign.tables.bins import Bins, middle_of
from mechdesign.tables.cell_numbers import DAY, Kind
from mechdesign.tables.joint import Joint
from mechdesign.tables.variable import Variable

Floats = NDArray[np.float64]

FORMS = "label", "posterior-draw", "representative", "within"
LABEL, POSTERIOR_DRAW, REPRESENTATIVE, WITHIN = FORMS
"""What is published for an output: itself; a symbol drawn from what it leaves possible;
or a number, as below.
"""


def released_variable(channel: Releasable, form: str) -> Variable:
    """The variable of the released columns of a form: its symbols are the columns of
    `by_output`.
    """
    useful = channel.useful
    if form == LABEL:
        labels = tuple((label,) for label in channel.outputs)
        return Variable((",".join(useful.columns),), labels)
    if form == REPRESENTATIVE:
        # Outputs with the same numbers are one symbol: a reader of the file cannot tell them apart.
        numbers = zip(*numbers_released(channel), strict=True)
        return Variable(useful.columns, tuple(dict.fromkeys(numbers)))
    if form == POSTERIOR_DRAW:
        return replace(useful, bins=())
    return useful


def by_output(channel: Releasable, form: str) -> Floats:
    """(outputs, symbols) chance of every symbol of `released_variable`, for a form
    other than the label.
    """
    index = released_variable(channel, form).index
    place: list[int] | None
    if form == REPRESENTATIVE:
        numbers = zip(*numbers_released(channel), strict=True)
        place = [index[symbol] for symbol in numbers]
    elif form == POSTERIOR_DRAW:
        place = None
    else:
        place = symbols_released(channel)
    if place is None:
        table_of(channel, form)
        return channel.posteriors
    matrix = np.zeros((len(channel.outputs), len(index)))
    matrix[np.arange(len(matrix)), place] = 1.0
    return matrix


def symbols_released(channel: Releasable) -> list[int] | None:
    """The symbol that each output is, where all outputs are symbols of the column; None
    otherwise.
    """
    index = {name: x for x, name in enumerate(channel.useful.names)}
    symbols: list[int] = []
    for label in channel.outputs:
        if label not in index:
            return None
        symbols.append(index[label])
    return symbols


def _bins_of(channel: Releasable, part: int, form: str) -> Bins:
    bins = channel.useful.bins_of(part)
    name = quoted(channel.useful.columns[part])
    if bins is None:
        raise InputError(
            f"{form} is for columns that are released in bins (--bin), and {name} is not"
        )
    if bins.values is None:
        raise InputError(
            f"{form} needs what the table has inside the bins of {name}, and this channel "
            f"carries nothing of it (a "
            "public one); use the channel file that `design` wrote"
        )
    return bins


def numbers_released(
    channel: Releasable, form: str = REPRESENTATIVE
) -> tuple[tuple[str, ...], ...]:
    """For every column the number that each output is published as.

    For an output that is a bin of the column, the median of the bin under the table; else the
    median of the bins' medians, each as likely as the table says that its bin is behind the output.
    The empty text for no number.
    """
    symbols = symbols_released(channel)
    parts = range(len(channel.useful.columns))
    return tuple(_numbers(channel, part, symbols, form) for part in parts)


def _numbers(
    channel: Releasable, part: int, symbols: list[int] | None, form: str
) -> tuple[str, ...]:
    """The numbers of one column; `symbols` are those of the outputs, if they are symbols."""
    bins = _bins_of(channel, part, form)
    shown = bins.shown
    labels = [symbol[part] for symbol in channel.useful.symbols]
    medians = [shown.get(label) or "" for label in labels]
    if symbols is not None:
        return tuple(medians[x] for x in symbols)
    table_of(channel, form)
    rank = {label: k for k, label in enumerate(bins.labels)}
    numbers: list[str] = []
    for inputs, masses in channel.behind:
        # (rank of the bin, its median, mass), in the order of the bins: a weighted median
        # of medians needs no arithmetic with numbers, which may be dates.
        behind: list[tuple[int, str, int]] = []
        for x, mass in zip(inputs, masses, strict=True):
            if medians[x]:
                behind.append((rank.get(labels[x], -1), medians[x], mass))
        behind.sort()
        number = ""
        if behind:
            _, number, _ = behind[middle_of([mass for _, _, mass in behind])]
        numbers.append(number)
    return tuple(numbers)


def symbol_sampler(channel: Releasable) -> Sampler:
    """A symbol for each output: the output itself where it is one, else drawn from P(x
    | y) under the table.
    """
    symbols = symbols_released(channel)
    if symbols is None:
        return posterior_sampler(channel)
    return sampler_of([((x,), (1,)) for x in symbols], len(channel.useful))


def inner_samplers(
    channel: Releasable, form: str
) -> list[tuple[tuple[str, ...], Sampler | None]]:
    """For every column the texts that are published, and a sampler that draws one of them for a
    symbol.

    In a column with bins these are values inside of the symbol's bin, as often as the table has
    them; in others, without a sampler, the symbols' own texts.
    """
    if not any(channel.useful.bins):
        _bins_of(channel, 0, form)  # refuses: there are none
    samplers: list[tuple[tuple[str, ...], Sampler | None]] = []
    for part, texts in enumerate(zip(*channel.useful.symbols, strict=True)):
        if channel.useful.bins[part] is None:
            samplers.append((texts, None))
        else:
            samplers.append(_inner_sampler(_bins_of(channel, part, form), texts))
    return samplers


def _inner_sampler(bins: Bins, texts: Sequence[str]) -> tuple[tuple[str, ...], Sampler]:
    """The values inside of the bins, and a sampler of them with a row for each text,
    the label of a bin.
    """
    values: list[str] = []
    inside: dict[str, tuple[Sequence[int], Sequence[int]]] = {}
    for label, in_bin, counts in zip(
        bins.labels, bins.values or (), bins.counts or (), strict=True
    ):
        start = len(values)
        values += in_bin
        if counts:
            inside[label] = (range(start, len(values)), counts)
    # A symbol without a bin (the empty text) and a bin without values give the empty text,
    # which comes last.
    empty = ((len(values),), (1,))
    rows = [inside.get(text, empty) for text in texts]
    sampler = sampler_of(rows, len(values) + 1)
    if all(text in inside for text in texts):
        return tuple(values), sampler
    return (*values, ""), sampler


@dataclass(frozen=True)
class Moved:
    """How far the numbers of a column are moved when each output is published as its number, under
    the table.

    Without `edges` every symbol is a number of its own, else bins are. `distance` is the expected
    absolute difference (seconds for dates and times), `correlation` that of the two numbers (None
    where one of them is constant); `before` and `after` are the shares of the bins. Of a bin with
    very many values these are the ones that the channel keeps.
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
    """Seconds of the unit that suits a distance between dates or times, and its name; 1
    and nothing for numbers.
    """
    if kind == "number":
        return 1, ""
    for seconds, name in ((DAY, " days"), (3600, " hours"), (60, " minutes")):
        if distance >= seconds:
            return seconds, name
    return 1, " s"


def distance_text(distance: float, kind: str) -> str:
    """A distance with its unit, where it has one."""
    size, unit = unit_of(distance, kind)
    return f"{about(distance / size)}{unit}"


def moved(channel: Releasable) -> tuple[Moved, ...]:
    """The moves of every column in bins, and of numbers that are moved the least; none
    for a public channel.
    """
    symbols = symbols_released(channel)
    joint = channel.joint
    if joint is None:
        return ()
    for bins in channel.useful.bins:
        if bins is not None and bins.values is None:
            return ()
    is_distance = channel.distance is not None
    if is_distance and symbols and not any(channel.useful.bins):
        return (_symbols_moved(channel, joint, symbols),)
    moves: list[Moved] = []
    for part, bins in enumerate(channel.useful.bins):
        if bins is not None:
            moves.append(_bins_moved(channel, joint, part, bins, symbols))
    return tuple(moves)


def _bins_moved(
    channel: Releasable,
    joint: Joint,
    part: int,
    bins: Bins,
    symbols: list[int] | None,
) -> Moved:
    """The moves of one column in bins.

    With q(b, z) the joint masses of bins and released numbers, the expected distance is the sum of
    q(b, z) times the mean of |v - z| over the values v in bin b, as often as the table has them.
    """
    texts = _numbers(channel, part, symbols, REPRESENTATIVE)
    shown = list(dict.fromkeys(texts))
    released = np.array([float(bins.number(text) or 0) for text in shown])
    # q(b, z), the joint masses of bins and released numbers.
    masses = _bin_masses(channel, joint, part, bins, [shown.index(t) for t in texts])
    # Records that are published without a number are left out.
    masses = masses * [bool(text) for text in shown]
    masses /= masses.sum()
    distance = np.zeros(masses.shape)
    mean = np.zeros(len(bins))
    variance = np.zeros(len(bins))
    for k, (values, counts) in enumerate(
        zip(bins.values or (), bins.counts or (), strict=True)
    ):
        if values:
            # The mean of |v - z| over the values of this bin, and the moments for the correlation.
            numbers = np.array([float(bins.number(text) or 0) for text in values])
            shares = np.array(counts, dtype=np.float64) / sum(counts)
            distance[k] = shares @ np.abs(numbers[:, None] - released)
            mean[k] = shares @ numbers
            variance[k] = shares @ (numbers - mean[k]) ** 2
    before = masses.sum(axis=1)
    by_number = masses.sum(axis=0)
    bin_of_number = bins.bins_of([text or "0" for text in shown]).clip(0)
    after = np.bincount(bin_of_number, by_number, len(bins))
    return Moved(
        column=channel.useful.columns[part],
        kind=bins.kind,
        edges=bins.edges,
        labels=bins.labels,
        distance=float((distance * masses).sum()),
        correlation=_correlation(masses, mean, released, variance),
        before=tuple(before.tolist()),
        after=tuple(after.tolist()),
    )


def _bin_masses(
    channel: Releasable, joint: Joint, part: int, bins: Bins, number_of: Sequence[int]
) -> Floats:
    """(bins, numbers) masses under the table; `number_of` has the number of each output."""
    rank = {label: k for k, label in enumerate(bins.labels)}
    bin_of = [rank.get(symbol[part], -1) for symbol in channel.useful.symbols]
    in_bin = np.equal.outer(np.arange(len(bins)), bin_of).astype(np.float64)
    numbers = np.arange(max(number_of) + 1)
    shown_as = np.equal.outer(number_of, numbers).astype(np.float64)
    # Crossed columns: several symbols share a bin of this column, several outputs a number, and the
    # two 0/1 matrices add their masses up.
    weights = joint.p_x[:, None] * channel.matrix
    return in_bin @ weights @ shown_as


def _correlation(
    masses: Floats, own: Floats, released: Floats, inner: Floats | float = 0.0
) -> float | None:
    """The correlation of numbers and released ones with these joint masses; None where one of them
    is constant.

    `own` are the numbers, or the means of bins with `inner` as the variances inside of them.
    """
    before = masses.sum(axis=1)
    after = masses.sum(axis=0)
    own = own - before @ own
    released = released - after @ released
    if np.ptp(released[after > 0]) == 0:
        return None
    if np.ptp(own[before > 0]) == 0 and not np.any(inner):
        return None
    # The law of total variance: between the bins, and inside of them.
    spread = before @ (own**2 + inner) * (after @ released**2)
    return float(own @ masses @ released / math.sqrt(spread))


def _symbols_moved(channel: Releasable, joint: Joint, symbols: list[int]) -> Moved:
    """The moves of a column of numbers that are released as such, in ascending order."""
    names = channel.useful.names
    numbers = np.array([float(fraction_of(name)) for name in names])
    masses = np.zeros((len(names),) * 2)
    masses[:, symbols] = joint.p_x[:, None] * channel.matrix
    distances = np.abs(np.subtract.outer(numbers, numbers))
    order: list[int] = np.argsort(numbers).tolist()
    before: list[float] = masses.sum(axis=1)[order].tolist()
    after: list[float] = masses.sum(axis=0)[order].tolist()
    return Moved(
        column=channel.useful.columns[0],
        kind="number",
        edges=(),
        labels=tuple(names[x] for x in order),
        distance=float((masses * distances).sum()),
        correlation=_correlation(masses, numbers, numbers),
        before=tuple(before),
        after=tuple(after),
    )
