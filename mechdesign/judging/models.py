"""What models learn from a released file: trained there, and measured on true rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mechdesign.core.integers import Integers
from mechdesign.judging.figures import AREA, Figure, Part
from mechdesign.judging.own_row import (
    Halves,
    Rows,
    read_column,
    row_of_record,
)
from mechdesign.judging.together import Files, SharedColumn
from mechdesign.leaks.learners import area_under_curve

MOST_LEARNT_COLUMNS = 6
"""Columns that models predict, unless others are asked for: each is learnt twice."""


def classes_of(column: SharedColumn) -> tuple[Integers, Integers, str]:
    """The two classes of a column in original and released file, and the name of the second one:
    the most frequent value, or numbers above the median.
    """
    numbers = column.numbers
    after = column.released_numbers
    if numbers is not None and after is not None and len(column.original.values) > 2:
        middle = float(np.nanmedian(numbers[column.original.codes]))
        name = f"above {middle:g}"
        return (
            (numbers[column.original.codes] > middle).astype(np.int64),
            (after[column.released.codes] > middle).astype(np.int64),
            name,
        )
    both = read_column(column)
    frequent = int(np.argmax(np.bincount(column.original.codes)))
    is_frequent = (both.codes == frequent).astype(np.int64)
    records = len(column.original.codes)
    return is_frequent[:records], is_frequent[records:], both.values[frequent]


def models_part(
    files: Files, halves: Halves, places: Sequence[int] | None, seed: int
) -> Part:
    """How well models trained on the released file predict true rows."""
    if places is None:
        places = list(range(len(files.columns)))[:MOST_LEARNT_COLUMNS]
    title = "What models learn"
    means = (
        "A model learns to predict one released column from the others, in the released file, and "
        "is measured on true rows of people it has not seen. 'Untouched' is the same model trained "
        "on true rows."
    )
    not_meant = (
        "It is one kind of model. Others lose more or less; a model whose outcome is the secret is "
        "what the release prevents."
    )
    if len(files.columns) < 2:
        return Part("models", title, means, not_meant, (), ("One column alone.",))
    rows = np.arange(files.released_records)
    notes: tuple[str, ...] = ()
    if files.is_linked:
        of_known = row_of_record(files)[halves.known]
        rows = of_known[of_known >= 0]
    else:
        # As many rows as the model beside it has.
        rows = np.random.default_rng([seed, 3]).permutation(rows)[: len(halves.known)]
        notes = ("Rows of the people that it is measured on may be among them.",)
    figures: list[Figure] = []
    for place in places:
        column = files.columns[place]
        others = [other for other in files.columns if other is not column]
        before, after, name = classes_of(column)
        learnt = Rows(others, 2)
        read = learnt.read
        unseen = learnt.original(read, halves.targets)
        truth = before[halves.targets]
        counts = np.bincount(truth, minlength=2)
        trained = read.shares(learnt.released(read, rows), after[rows], unseen)
        known = halves.known
        reference = read.shares(learnt.original(read, known), before[known], unseen)
        figures.append(
            Figure(
                f"area_{column.name}",
                f"{column.name} ({name}): area under the ROC curve",
                area_under_curve(trained, truth, counts),
                area_under_curve(reference, truth, counts),
                0.5,
                unit=AREA,
            )
        )
    return Part("models", title, means, not_meant, tuple(figures), notes)
