"""Values that are published for the outputs of a channel: labels, symbols, or numbers of bins.

The number of an output is the median of the values behind it, or a value drawn from inside of a
bin. Both depend on the record through the output alone, so they disclose no more of it than the
output does.

For example, the bin [20, 30) has the values 21, 25 and 29 with 1, 2 and 1 records. For the output
[20, 30) the form representative publishes 25, and the form within publishes 21, 25 or 29 with
probabilities 1/4, 1/2 and 1/4. An output that is not a bin has the weighted median of the medians
of the bins behind it; for the form within, a bin is drawn first, by P(x | y).

`released_variable` and `by_output` describe what a form publishes, for estimates. The others make
the texts and samplers of a release (`Publication`): `numbers_released` the medians of the form
representative, `symbol_sampler` the draw of a symbol for an output, and `inner_samplers` the draw
of a value inside of that symbol's bins.

*Publication.* A channel draws an output y for a record. What is published for y depends on the
form, and may take up to two further draws:

    label            y itself, or where boxes are filled, a box for y and then a row in it
    representative   a number for y, fixed by the table
    posterior-draw   a symbol x, drawn from P(x | y)
    within           a symbol x for y, and then a value inside of the bin of x in each column

Each draw depends on the record through y alone, so it discloses no more of the record than y does
(data processing inequality). A `Publication` is made once for a channel and a form. For every batch
`choices` makes the first draw, and `codes` the second one.

*Moved numbers.* With the joint masses q of original and published number, `moved` computes for each
column the expected distance, sum of q(v, z) |v - z|, and the correlation of v and z. For example,
half of the records have 10 and half 30, and all are published as 10: the distance is 10, and there
is no correlation, because the published number is constant.

`_bins_moved` does it for a column in bins, whose values are known bin by bin, and `_symbols_moved`
for a column of numbers that are its symbols.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.arguments import fraction_of
from mechdesign.core.errors import InputError
from mechdesign.core.wording import about, quoted
from mechdesign.release.draws import Key, Records, Sampler
from mechdesign.release.protocol import Releasable
from mechdesign.release.samplers import Filling, posterior_sampler, sampler_of, table_of
from mechdesign.tables.bins import Bins, middle_of
from mechdesign.tables.cell_values import DAY, Kind
from mechdesign.tables.joint import Joint
from mechdesign.tables.variable import Variable

Floats = NDArray[np.float64]

LABEL = "label"
"""The output itself is published."""

POSTERIOR_DRAW = "posterior-draw"
"""A symbol drawn from P(x | y) is published."""

REPRESENTATIVE = "representative"
"""The median of the values behind the output is published."""

WITHIN = "within"
"""A value inside of the output's bin is published, drawn as often as the table has it."""

FORMS = (LABEL, POSTERIOR_DRAW, REPRESENTATIVE, WITHIN)

ROW = "row"
"""What boxes publish in the place of a form: the columns of a record, drawn together."""

OF_SYMBOLS = (POSTERIOR_DRAW, WITHIN)
"""Forms for which a symbol of X is drawn first."""


def released_variable(channel: Releasable, form: str) -> Variable:
    """The variable of the released columns of a form, whose symbols `by_output` refers to."""
    useful = channel.useful
    if form == LABEL:
        return Variable(channel.output_columns, channel.output_cells)
    if form == REPRESENTATIVE:
        # Outputs with the same numbers are one symbol: a reader of the file cannot tell them apart.
        numbers = zip(*numbers_released(channel), strict=True)
        return Variable(useful.columns, tuple(dict.fromkeys(numbers)))
    if form == POSTERIOR_DRAW:
        return replace(useful, bins=())
    return useful


def by_output(channel: Releasable, form: str) -> Floats:
    """(outputs, symbols) probability of every symbol of `released_variable` given the output.

    `form` is any but the label.

    Raises
    ------
    InputError
        If the form needs the table, and the channel carries none.
    """
    index = released_variable(channel, form).index
    # The only symbol of each output; None where symbols are drawn from the posterior.
    symbols: list[int] | None = None
    if form == REPRESENTATIVE:
        numbers = zip(*numbers_released(channel), strict=True)
        symbols = [index[symbol] for symbol in numbers]
    elif form == WITHIN:
        symbols = symbols_released(channel)
    if symbols is None:
        table_of(channel, form)
        return channel.posteriors
    # Each output has one symbol, with certainty.
    matrix = np.zeros((len(channel.outputs), len(index)))
    matrix[np.arange(len(matrix)), symbols] = 1.0
    return matrix


def symbols_released(channel: Releasable) -> list[int] | None:
    """The symbol of each output, where all outputs are symbols of the column; None otherwise."""
    names = channel.useful.names
    index = dict(zip(names, range(len(names)), strict=True))
    symbols: list[int] = []
    for label in channel.outputs:
        if label not in index:
            return None
        symbols.append(index[label])
    return symbols


def numbers_released(
    channel: Releasable, form: str = REPRESENTATIVE
) -> tuple[tuple[str, ...], ...]:
    """For every column the number that is published for each output.

    For an output that is a bin of the column it is the median of the bin under the table. Else it
    is the median of the bins' medians, weighted by the probability of each bin given the output.
    The empty text means no number.
    """
    symbols = symbols_released(channel)
    parts = range(len(channel.useful.columns))
    return tuple(numbers_of_column(channel, part, symbols, form) for part in parts)


def numbers_of_column(
    channel: Releasable,
    part: int,
    symbols: list[int] | None,
    form: str = REPRESENTATIVE,
) -> tuple[str, ...]:
    """The numbers of one column; `symbols` are those of the outputs, if they are symbols."""
    bins = _bins_of(channel, part, form)
    median_of = bins.shown
    labels: list[str] = []
    medians: list[str] = []
    for symbol in channel.useful.symbols:
        label = symbol[part]
        labels.append(label)
        medians.append(median_of.get(label) or "")
    # An output that is a symbol lies in one bin.
    if symbols is not None:
        return tuple(medians[x] for x in symbols)
    table_of(channel, form)
    # Bins ascend, so their ranks are in the order of their medians: a weighted median of medians
    # needs no arithmetic with numbers, which may be dates.
    rank = dict(zip(bins.labels, range(len(bins)), strict=True))
    numbers: list[str] = []
    for inputs, masses in channel.behind:
        # Rank of the bin, its median, and the mass, of every input that has a number.
        behind: list[tuple[int, str, int]] = []
        for x, mass in zip(inputs, masses, strict=True):
            if medians[x]:
                behind.append((rank.get(labels[x], -1), medians[x], mass))
        numbers.append(_weighted_median(behind))
    return tuple(numbers)


def _weighted_median(bins: list[tuple[int, str, int]]) -> str:
    """The lower median of numbers, each with its rank and its mass; the empty text of none."""
    if not bins:
        return ""
    bins = sorted(bins)
    masses = [mass for _, _, mass in bins]
    _, number, _ = bins[middle_of(masses)]
    return number


def symbol_sampler(channel: Releasable) -> Sampler:
    """A sampler of a symbol for each output: itself where it is one, else by P(x | y)."""
    symbols = symbols_released(channel)
    if symbols is None:
        return posterior_sampler(channel)
    # One symbol for each output, with certainty.
    certain = [((x,), (1,)) for x in symbols]
    return sampler_of(certain, len(channel.useful))


def inner_samplers(
    channel: Releasable, form: str
) -> list[tuple[tuple[str, ...], Sampler | None]]:
    """For every column the texts that are published, and a sampler of one of them for a symbol.

    In a column with bins the texts are values inside of the symbol's bin, as often as the table has
    them. In others they are the symbols' own texts, without a sampler.
    """
    if not any(channel.useful.bins):
        # Raises the error about a column without bins.
        _bins_of(channel, 0, form)
    samplers: list[tuple[tuple[str, ...], Sampler | None]] = []
    for part, texts in enumerate(zip(*channel.useful.symbols, strict=True)):
        if channel.useful.bins[part] is None:
            samplers.append((texts, None))
        else:
            samplers.append(_inner_sampler(_bins_of(channel, part, form), texts))
    return samplers


def _bins_of(channel: Releasable, part: int, form: str) -> Bins:
    """The bins of a column with the values inside; InputError if it has none, or none in them."""
    bins = channel.useful.bins_of(part)
    name = quoted(channel.useful.columns[part])
    if bins is None:
        raise InputError(
            f"{form} is for columns that are released in bins (--bin), and {name} is not"
        )
    if bins.values is None:
        raise InputError(
            f"{form} needs what the table has inside the bins of {name}, and this channel "
            "carries nothing of it (a public one); use the channel file that `design` wrote"
        )
    return bins


def _inner_sampler(bins: Bins, texts: Sequence[str]) -> tuple[tuple[str, ...], Sampler]:
    """The values inside of the bins, and a sampler of them with a row for each label in `texts`."""
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


# -------------------------------------------------------------------------- publication

Codes = NDArray[np.int32]


@dataclass(frozen=True)
class Publication:
    """The released columns of a form, and the samplers of its further draws.

    Attributes
    ----------
    names : tuple of str
        Of the released columns.
    texts : for each released column a tuple of str
        The texts that it can have.
    size : int
        The number of choices: of outputs, or of symbols or rows where the form draws one.
    symbols : tuple of Sampler
        Of a symbol for each output, or of a box and then of a row; none where the output itself is
        the choice.
    values : tuple of Sampler or None
        For each column a sampler of its texts for each choice; None where the choice is the text.
    places : tuple of arrays, optional
        For each column the place of the text of each choice, where choices share texts.
    """

    names: tuple[str, ...]
    texts: tuple[tuple[str, ...], ...]
    size: int
    symbols: tuple[Sampler, ...]
    values: tuple[Sampler | None, ...]
    places: tuple[Codes, ...] = ()

    def choices(self, outputs: Codes, records: Records, key: Key) -> Codes:
        """The choice of each record: its output, or a symbol that is drawn for the output."""
        choices = outputs
        for step, sampler in enumerate(self.symbols):
            # With keys of their own: the word that drew the output would disclose more than it.
            words = (LABEL, str(step)) if step else (LABEL,)
            source = records.source(key.derived(records.kind, *words))
            choices = sampler.draw(choices.astype(np.int64), source)
        return choices

    def cells(self, columns: Sequence[int]) -> list[tuple[str, ...]]:
        """For each choice its texts in the columns at these places, where it has them."""
        cells: list[Sequence[str]] = []
        for k in columns:
            texts = self.texts[k]
            if self.places:
                texts = tuple(texts[int(place)] for place in self.places[k])
            cells.append(texts)
        return list(zip(*cells, strict=True))

    def codes(self, choices: Codes, records: Records, key: Key) -> list[Codes]:
        """For every column the place of each record's text in `texts`."""
        if self.places:
            return [places[choices] for places in self.places]
        published: list[Codes] = []
        for name, sampler in zip(self.names, self.values, strict=True):
            if sampler is None:
                published.append(choices)
            else:
                # A key for each column, or two columns in bins would share their draws.
                source = records.source(key.derived(records.kind, WITHIN, name))
                published.append(sampler.draw(choices.astype(np.int64), source))
        return published


def publication_of(
    channel: Releasable, form: str, filling: Filling | None
) -> Publication:
    """The publication of a channel's outputs in a form, or of the rows that fill them.

    Raises
    ------
    InputError
        If the form needs the table or bins, and the channel has none.
    """
    names = channel.useful.columns
    symbols: tuple[Sampler, ...] = ()
    size = len(channel.useful)
    if filling is not None:
        samplers = (filling.boxes, filling.rows)
        return _cells_published(channel.output_columns, filling.columns, samplers)
    if form == LABEL:
        # One column of labels, or a text for each of several columns.
        return _cells_published(
            channel.output_columns, [*zip(*channel.output_cells, strict=True)]
        )
    if form == REPRESENTATIVE:
        texts = numbers_released(channel, form)
        size = len(channel.outputs)
    elif form == POSTERIOR_DRAW:
        texts = tuple(zip(*channel.useful.symbols, strict=True))
        symbols = (posterior_sampler(channel),)
    else:
        columns = inner_samplers(channel, form)
        symbols = (symbol_sampler(channel),)
        texts, values = zip(*columns, strict=True)
        return Publication(names, texts, size, symbols, values)
    no_values: tuple[Sampler | None, ...] = (None,) * len(texts)
    return Publication(names, texts, size, symbols, no_values)


def _cells_published(
    names: tuple[str, ...],
    columns: Sequence[Sequence[str]],
    samplers: tuple[Sampler, ...] = (),
) -> Publication:
    """The choices themselves; `columns` are the texts of each in every released column."""
    texts: list[tuple[str, ...]] = []
    places: list[Codes] = []
    for cells in columns:
        # Choices of several columns share texts: each column has every text once.
        distinct = tuple(dict.fromkeys(cells))
        place_of = dict(zip(distinct, range(len(distinct)), strict=True))
        texts.append(distinct)
        places.append(np.array([place_of[cell] for cell in cells], dtype=np.int32))
    no_values: tuple[Sampler | None, ...] = (None,) * len(names)
    size = len(columns[0])
    # Where the texts of a single column differ, the choice is the place of its text.
    if len(names) == 1 and len(texts[0]) == size:
        places = []
    return Publication(names, tuple(texts), size, samplers, no_values, tuple(places))


# ------------------------------------------------------------------------ moved numbers


@dataclass(frozen=True)
class Moved:
    """How far the numbers of a column move when outputs are published as numbers, under the table.

    Without `edges` the labels are symbols that are numbers, else they are bins. `distance` is the
    expected absolute difference (seconds for dates and times), `correlation` that of original and
    published number (None where one of them is constant); `before` and `after` are the shares of
    the labels. Of a bin with very many values only those in the channel count.
    """

    column: str
    kind: Kind
    edges: tuple[str, ...]
    labels: tuple[str, ...]
    distance: float
    correlation: float | None
    before: tuple[float, ...]
    after: tuple[float, ...]


LARGEST = 10**150
"""Numbers from here on have squares near the largest double, 1.8e308."""


def unit_of(distance: float, kind: str) -> tuple[int, str]:
    """The largest unit within a distance between dates or times: its seconds, and its name.

    Numbers have no unit: 1 and the empty text.
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
    """The moves of every column in bins, or of numbers whose distance the design minimised.

    A public channel has none: they are functions of the table. Neither has a column with numbers
    so large that distances and variances in doubles would be infinite.
    """
    symbols = symbols_released(channel)
    joint = channel.joint
    if joint is None:
        return ()
    for bins in channel.useful.bins:
        if bins is not None and bins.values is None:
            return ()
    is_distance = channel.distance is not None
    is_single = len(channel.useful.columns) == 1
    if is_distance and is_single and symbols and not any(channel.useful.bins):
        return (_symbols_moved(channel, joint, symbols),)
    moves: list[Moved] = []
    for part, bins in enumerate(channel.useful.bins):
        if bins is not None and _squares_fit(bins):
            moves.append(_bins_moved(channel, joint, part, bins, symbols))
    return tuple(moves)


def _squares_fit(bins: Bins) -> bool:
    """Whether the squares of all numbers of the bins are far from the largest double."""
    texts = [text for values in bins.values or () for text in values]
    return all(abs(bins.number(text) or 0) < LARGEST for text in texts)


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
    texts = numbers_of_column(channel, part, symbols)
    shown = list(dict.fromkeys(texts))
    released = _floats_of(shown, bins)
    number_of_output = [shown.index(text) for text in texts]
    masses = _bin_masses(channel, joint, part, bins, number_of_output)
    # Records that are published without a number are left out.
    masses = masses * [bool(text) for text in shown]
    masses /= masses.sum()
    # Per bin b: the mean of |v - z| for each published number z, and the mean and variance of v.
    distance = np.zeros(masses.shape)
    mean = np.zeros(len(bins))
    variance = np.zeros(len(bins))
    for b, (values, counts) in enumerate(
        zip(bins.values or (), bins.counts or (), strict=True)
    ):
        if values:
            numbers = _floats_of(values, bins)
            shares = np.array(counts, dtype=np.float64) / sum(counts)
            distance[b] = shares @ np.abs(numbers[:, None] - released)
            mean[b] = shares @ numbers
            variance[b] = shares @ (numbers - mean[b]) ** 2
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


def _floats_of(texts: Sequence[str], bins: Bins) -> Floats:
    """The numbers of texts as doubles; 0 for the empty text."""
    return np.array([float(bins.number(text) or 0) for text in texts])


def _bin_masses(
    channel: Releasable, joint: Joint, part: int, bins: Bins, number_of: Sequence[int]
) -> Floats:
    """q(b, z), the joint masses of bins and numbers; `number_of` has the number of each output."""
    rank = dict(zip(bins.labels, range(len(bins)), strict=True))
    bin_of = [rank.get(symbol[part], -1) for symbol in channel.useful.symbols]
    # q(b, z) = sum over x in b, and over y published as z, of P(x) W(y|x). Of crossed columns
    # several symbols share a bin, and several outputs a number: two 0/1 matrices add them up.
    in_bin = np.equal.outer(np.arange(len(bins)), bin_of).astype(np.float64)
    numbers = np.arange(max(number_of) + 1)
    shown_as = np.equal.outer(number_of, numbers).astype(np.float64)
    weights = joint.p_x[:, None] * channel.matrix
    return in_bin @ weights @ shown_as


def _correlation(
    masses: Floats, original: Floats, released: Floats, inner: Floats | float = 0.0
) -> float | None:
    """The correlation of two numbers with these joint masses; None where one of them is constant.

    `original` are the numbers, or the means of bins with `inner` as the variances inside of them.
    """
    before = masses.sum(axis=1)
    after = masses.sum(axis=0)
    # Both centred at their means: the covariance and the variances are then plain moments.
    original = original - before @ original
    released = released - after @ released
    if np.ptp(released[after > 0]) == 0:
        return None
    if np.ptp(original[before > 0]) == 0 and not np.any(inner):
        return None
    # The law of total variance: between the bins, and inside of them.
    variance = before @ (original**2 + inner)
    released_variance = after @ released**2
    covariance = original @ masses @ released
    return float(covariance / math.sqrt(variance * released_variance))


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
