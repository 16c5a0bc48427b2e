"""The form in which outputs are published: names and texts of columns, and the draws that follow.

A channel draws an output y for a record. What is published for y depends on the form
(`released_values`), and may take up to two further draws:

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
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechdesign.release import policies, released_values
from mechdesign.release.box_samplers import Filling
from mechdesign.release.draws import Key, Records
from mechdesign.release.protocol import Releasable
from mechdesign.release.released_values import (
    LABEL,
    POSTERIOR_DRAW,
    REPRESENTATIVE,
    WITHIN,
)
from mechdesign.release.sampling import Sampler

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
        texts = released_values.numbers_released(channel, form)
        size = len(channel.outputs)
    elif form == POSTERIOR_DRAW:
        texts = tuple(zip(*channel.useful.symbols, strict=True))
        symbols = (policies.posterior_sampler(channel),)
    else:
        columns = released_values.inner_samplers(channel, form)
        symbols = (released_values.symbol_sampler(channel),)
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
