"""The form in which outputs are published: names and texts of columns, and the draws that follow.

A channel draws an output y for a record. What is published for y depends on the form
(`released_values`), and may take up to two further draws:

    label            y itself
    representative   a number for y, fixed by the table
    posterior-draw   a symbol x, drawn from P(x | y)
    within           a symbol x for y, and then a value inside of the bin of x in each column

Each draw depends on the record through y alone, so it discloses no more of the record than y does
(data processing inequality). A `Publication` is made once for a channel and a form. For every batch
`choices` makes the first draw, and `codes` the second one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechdesign.release import policies, released_values
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
        The number of choices: of outputs, or of symbols where the form draws one.
    symbols : Sampler, optional
        Of a symbol for each output; None where the output itself is the choice.
    values : tuple of Sampler or None
        For each column a sampler of its texts for each choice; None where the choice is the text.
    places : tuple of arrays, optional
        For each column the place of the text of each choice, where choices share texts.
    """

    names: tuple[str, ...]
    texts: tuple[tuple[str, ...], ...]
    size: int
    symbols: Sampler | None
    values: tuple[Sampler | None, ...]
    places: tuple[Codes, ...] = ()

    def choices(self, outputs: Codes, records: Records, key: Key) -> Codes:
        """The choice of each record: its output, or a symbol that is drawn for the output."""
        if self.symbols is None:
            return outputs
        # With a key of its own: the word that drew the output would disclose more than it.
        source = records.source(key.derived(records.kind, LABEL))
        return self.symbols.draw(outputs.astype(np.int64), source)

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
    symbols: Sampler | None = None
    size = len(channel.useful)
    if form == LABEL:
        # One column of labels, or a text for each of several columns.
        return _labels_published(channel)
    if form == REPRESENTATIVE:
        texts = released_values.numbers_released(channel, form)
        size = len(channel.outputs)
    elif form == POSTERIOR_DRAW:
        texts = tuple(zip(*channel.useful.symbols, strict=True))
        symbols = policies.posterior_sampler(channel)
    else:
        columns = released_values.inner_samplers(channel, form)
        symbols = released_values.symbol_sampler(channel)
        texts, values = zip(*columns, strict=True)
        return Publication(names, texts, size, symbols, values)
    no_values: tuple[Sampler | None, ...] = (None,) * len(texts)
    return Publication(names, texts, size, symbols, no_values)


def _labels_published(channel: Releasable) -> Publication:
    """The outputs themselves, each written as the texts that it has in every released column."""
    texts: list[tuple[str, ...]] = []
    places: list[Codes] = []
    for cells in zip(*channel.output_cells, strict=True):
        # Outputs of several columns share texts: each column has every text once.
        distinct = tuple(dict.fromkeys(cells))
        place_of = dict(zip(distinct, range(len(distinct)), strict=True))
        texts.append(distinct)
        places.append(np.array([place_of[cell] for cell in cells], dtype=np.int32))
    names = channel.output_columns
    no_values: tuple[Sampler | None, ...] = (None,) * len(names)
    # The labels of a single column differ: the output is the place of its text.
    if len(names) == 1:
        places = []
    return Publication(
        names, tuple(texts), len(channel.outputs), None, no_values, tuple(places)
    )
