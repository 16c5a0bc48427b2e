"""Attacks by somebody who knows true cells of a person, and not which released row is the person's.

He takes the released rows that are nearest to what he knows (`distances`), and reads the rest
there:

- *inference*: he knows all cells of a row but one, and guesses that one;
- *the secret*: he knows some cells, and guesses the secret from the nearest rows;
- *linkability*: he knows some cells of a person from one source and others, without a name, from
  another source. The released file shall tell him which belong together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mechdesign.core.integers import Integers
from mechdesign.core.wording import listed
from mechdesign.judging.figures import Figure, Part
from mechdesign.judging.instruments import (
    inference_by_anonymeter,
    linkability_by_anonymeter,
)
from mechdesign.judging.own_row import (
    CLOSE,
    Attack,
    Bounds,
    Distances,
    DistinctRows,
    Halves,
    Rows,
    attack_figures,
    chunks,
    distances,
    nearest,
    row_of_record,
    shown_symbols,
    votes,
)
from mechdesign.judging.together import Files, Flags, Floats, SharedColumn

RIGHT_WITHIN = 0.05
"""A guessed number is right if it differs from the true one by at most this share of it."""

HELD = 4
"""Arrays of distances of all columns together that an inference holds at a time."""

POOL = 500
"""People among whom the second source is searched."""

CELL_SUREST = (0.05,)
"""The share of the people about whom the attacker is surest; of so few targets 1 % are too few."""


@dataclass(frozen=True)
class Inference:
    """The success of guessing one column from the others.

    Attributes
    ----------
    with_row : float
    without_own : float or None
        When the person's own released row is taken out of the file.
    """

    with_row: float
    without_own: float | None


def _distances_in(
    files: Files, rows: DistinctRows, records: Integers, places: Iterable[int]
) -> Distances:
    """From each of the records to each row: the sum over the columns at some places."""
    far = np.zeros((len(records), len(rows)), np.float32)
    for place in places:
        far += distances(files.columns[place], records, rows.codes[place])
    return far


def inferences(files: Files, rows: DistinctRows, targets: Integers) -> list[Inference]:
    """For each column how often a cell is guessed from the others."""
    columns = files.columns
    right = np.zeros(len(columns))
    right_without = np.zeros(len(columns))
    own = None
    if files.is_linked:
        own = rows.row_of[row_of_record(files)[targets]]
    # Distances are measured twice, for the sum and to take them away, and not kept for all columns:
    # parts would shrink as columns grow, and the time would be quadratic in the columns.
    for part in chunks(np.arange(len(targets)), len(rows) * HELD):
        total = _distances_in(files, rows, targets[part], range(len(columns)))
        for j, column in enumerate(columns):
            rest = total - distances(column, targets[part], rows.codes[j])
            right[j] += _guessed(column, rows, j, rest, rows.counts, targets[part])
            if own is None:
                continue
            # The row of the person alone is gone; one that others have, too, has one record less.
            places = np.arange(len(part)), own[part]
            rest = np.where(
                _mask(rest.shape, places) & (rows.counts == 1), np.inf, rest
            )
            left = np.broadcast_to(rows.counts, rest.shape) - _mask(rest.shape, places)
            right_without[j] += _guessed(column, rows, j, rest, left, targets[part])
    found: list[Inference] = []
    for j in range(len(columns)):
        without = None
        if own is not None:
            without = float(right_without[j] / len(targets))
        found.append(Inference(float(right[j] / len(targets)), without))
    return found


def _mask(shape: tuple[int, ...], places: tuple[Integers, Integers]) -> Flags:
    """True at these places."""
    mask = np.zeros(shape, bool)
    mask[places] = True
    return mask


def _guessed(
    column: SharedColumn,
    rows: DistinctRows,
    place: int,
    far: Distances,
    weights: Integers,
    records: Integers,
) -> float:
    """How many cells are right when the most frequent value of the nearest rows is the guess."""
    found = votes(nearest(far), weights, rows.codes[place], len(column.released.values))
    guess = np.argmax(found, axis=1)
    return float(guess_scores(column, guess, records).sum())


def guess_scores(column: SharedColumn, guess: Integers, records: Integers) -> Floats:
    """How right guessed released values are for these records, between 0 and 1.

    Of a value that stands for several, one of them is guessed at random. A number is right if it
    is close (`RIGHT_WITHIN`).
    """
    truth = column.original.codes[records]
    scores = np.asarray(column.spread[guess, truth]).reshape(-1).astype(float)
    numbers = column.numbers
    after = column.released_numbers
    if numbers is not None and after is not None:
        gap = np.abs(after[guess] - numbers[truth])
        close = gap <= RIGHT_WITHIN * np.abs(numbers[truth])
        scores = np.maximum(scores, close.astype(float))
    return scores


def blind_score(column: SharedColumn) -> float:
    """How often the best single guess for all records is right."""
    own = replace(
        column,
        released=column.original,
        covers=[np.array([value]) for value in range(len(column.original.values))],
    )
    counts = np.bincount(column.original.codes, minlength=len(column.original.values))
    guesses = [int(np.argmax(counts))]
    if column.numbers is not None:
        order = np.argsort(column.numbers)
        middle = np.searchsorted(np.cumsum(counts[order]), counts.sum() / 2)
        guesses.append(int(order[middle]))
    records = np.arange(len(column.original.codes))
    best = 0.0
    for guess in guesses:
        scores = guess_scores(own, np.full(len(records), guess), records)
        best = max(best, float(scores.mean()))
    return best


def inference_part(
    files: Files,
    untouched: Files,
    rows: DistinctRows,
    untouched_rows: DistinctRows,
    targets: Integers,
) -> Part:
    """Inference of each released column from the others."""
    found = inferences(files, rows, targets)
    before = inferences(untouched, untouched_rows, targets)
    figures: list[Figure] = []
    for column, here, there in zip(files.columns, found, before, strict=True):
        blind = blind_score(column)
        figures.append(
            Figure(
                f"right_{column.name}",
                f"{column.name}: guessed right from the other cells",
                here.with_row,
                there.with_row,
                blind,
            )
        )
        if here.without_own is not None:
            figures.append(
                Figure(
                    f"right_without_own_{column.name}",
                    f"{column.name}: the same without the person's own row in the file",
                    here.without_own,
                    there.without_own,
                    blind,
                )
            )
    return Part(
        key="inference",
        title="Inference: a cell from the other cells of a person",
        means=(
            "Somebody knows every true cell of a person but one, and guesses that one from the "
            "released rows that are nearest. The difference to the same guess without the person's "
            "own row is what taking part in the file costs; the rest can be learnt from others."
        ),
        not_meant=(
            "These are the released columns, which the file is there to show. The secret has parts "
            "of its own."
        ),
        figures=tuple(figures),
    )


def cells_attack(
    files: Files,
    learnt: Rows,
    halves: Halves,
    rows: DistinctRows,
    targets: Integers,
    known: Sequence[int],
) -> Attack:
    """The secret from the nearest rows in the columns `known`.

    Where the file has the secret, it is read there. Otherwise a model learnt from other data
    guesses it from each of the nearest rows.
    """
    symbols = len(files.secret.symbols)
    if files.released_secret is not None:
        seen = files.released_secret >= 0
        pairs = rows.row_of[seen] * symbols + files.released_secret[seen]
        beside = np.bincount(pairs, minlength=len(rows) * symbols)
        by_row = beside.reshape(len(rows), symbols).astype(float)
    else:
        read = learnt.read
        first = np.unique(rows.row_of, return_index=True)[1]
        shares = read.shares(
            learnt.original(read, halves.known),
            files.secret.codes[halves.known],
            learnt.released(read, first),
        )
        by_row = shares * rows.counts[:, None]
    parts: list[Floats] = []
    for part in chunks(targets, len(rows) * 3):
        far = _distances_in(files, rows, part, known)
        sums = nearest(far).astype(np.float32) @ by_row
        parts.append(sums / np.maximum(sums.sum(axis=1, keepdims=True), 1e-300))
    return Attack(np.concatenate(parts), files.secret.codes[targets])


def known_alone(
    files: Files, halves: Halves, targets: Integers, known: Sequence[int]
) -> Attack:
    """The secret from the known cells, without the released file."""
    alone = Rows([files.columns[place] for place in known], len(files.secret.symbols))
    read = alone.read
    shares = read.shares(
        alone.original(read, halves.known),
        files.secret.codes[halves.known],
        alone.original(read, targets),
    )
    return Attack(shares, files.secret.codes[targets])


def known_by_default(files: Files) -> list[int]:
    """All columns where the secret can be read beside them; else every second one, so that there
    is something to look up in the file.
    """
    places = list(range(len(files.columns)))
    if files.released_secret is not None or len(places) == 1:
        return places
    return places[::2]


def cells_part(
    files: Files,
    untouched: Files,
    learnt: Rows,
    halves: Halves,
    rows: DistinctRows,
    untouched_rows: DistinctRows,
    targets: Integers,
    known: Sequence[int],
    shares: dict[str, float],
    seed: int,
) -> Part:
    """The secret of a person some of whose cells are known."""
    # Nobody whose secret the model has learnt.
    targets = targets[~np.isin(targets, halves.known)]
    attack = cells_attack(files, learnt, halves, rows, targets, known)
    before_rows = Rows(untouched.columns, len(files.secret.symbols))
    before = cells_attack(
        untouched, before_rows, halves, untouched_rows, targets, known
    )
    alone = known_alone(files, halves, targets, known)
    names = [files.columns[place].name for place in known]
    nothing: Bounds = {}
    figures = attack_figures(
        "cells",
        "from the nearest rows",
        files.secret.symbols,
        attack,
        before,
        shown_symbols(before),
        shares,
        nothing,
        without=alone,
        most=CELL_SUREST,
    )
    figures += inference_by_anonymeter(files, untouched, halves, seed)
    return Part(
        key="known_cells",
        title="The secret of a person some of whose true cells are known",
        means=(
            f"Somebody knows the true {listed(names)} of a person, takes the released rows that "
            "are nearest, and guesses the secret from them. 'Without' is the same person with "
            "other data and the known cells alone: what is above that, the file has added."
        ),
        not_meant=(
            "No promise on released rows covers what somebody infers from cells that he knows "
            "already. Smallest groups bound how closely they point to one row."
        ),
        figures=tuple(figures),
        notes=(f"Tried on {len(targets):,} people.",),
    )


def linkability(
    files: Files, rows: DistinctRows, pool: Integers, first: Sequence[int]
) -> float:
    """How often two sources on the same people are put together rightly through the file.

    Parameters
    ----------
    pool : integers
        The people of both sources.
    first : places of columns
        Those of the first source; the second one has the others.
    """
    of_first = set(first)
    second = [j for j in range(len(files.columns)) if j not in of_first]
    far_second = _distances_in(files, rows, pool, second)
    # For each row the people of the second source who are nearest to it, one of them at random.
    near_second = far_second <= far_second.min(axis=0, keepdims=True) + CLOSE
    chosen = near_second / near_second.sum(axis=0, keepdims=True)
    weight = nearest(_distances_in(files, rows, pool, first)) * rows.counts
    hits = (weight * chosen).sum(axis=1) / weight.sum(axis=1)
    return float(hits.mean())


def linkability_part(
    files: Files,
    untouched: Files,
    rows: DistinctRows,
    untouched_rows: DistinctRows,
    targets: Integers,
    known: Sequence[int] | None,
    seed: int,
) -> Part:
    """Linkability through the file."""
    title = "Linkability: two sources on the same people"
    means = (
        "Somebody has some true columns of people with their names, and the other columns of the "
        "same people without names. For each person he takes a released row nearest to the first, "
        "and whoever of the second source is nearest to that row."
    )
    not_meant = (
        "It says whether the file joins what others know. It does not say that a released row is "
        "found by name or place: the first part supposes that."
    )
    every_second = list(range(0, len(files.columns), 2))
    first = every_second if known is None else list(known)
    if len(files.columns) < 2 or len(first) == len(files.columns):
        note = "Not measured: two sources need two columns at least."
        return Part("linkability", title, means, not_meant, (), (note,))
    most = max(2, min(POOL, (1 << 25) // max(len(rows), len(untouched_rows))))
    pool = targets[:: max(1, -(-len(targets) // most))]
    figure = Figure(
        "linked",
        f"two sources put together rightly, among {len(pool):,} people",
        linkability(files, rows, pool, first),
        linkability(untouched, untouched_rows, pool, first),
        1 / len(pool),
    )
    names = [files.columns[place].name for place in first]
    return Part(
        "linkability",
        title,
        means,
        not_meant,
        (figure, *linkability_by_anonymeter(files, untouched, first, seed)),
        (f"The first source has {listed(names)}, the second one the others.",),
    )
