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
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.errors import InputError
from mechdesign.core.wording import quoted
from mechdesign.release import policies
from mechdesign.release.box_samplers import Filling
from mechdesign.release.draws import Key, Records
from mechdesign.release.policies import posterior_sampler, sampler_of, table_of
from mechdesign.release.protocol import Releasable
from mechdesign.release.sampling import Sampler
from mechdesign.tables.bins import Bins, middle_of
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


def publication_of(channel: Releasable, form: str) -> Publication:
    """The publication of a channel's outputs in a form.

    Raises
    ------
    InputError
        If the form needs the table or bins, and the channel has none.
    """
    names = channel.useful.columns
    symbols: tuple[Sampler, ...] = ()
    size = len(channel.useful)
    if channel.coder and channel.fills:
        filling = Filling(channel.parts, channel.coder)
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
        symbols = (policies.posterior_sampler(channel),)
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
