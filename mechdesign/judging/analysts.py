"""What analysts read in a released file: frequencies, relations, a regression.

General values such as ``20-29`` are read as their readers do: spread evenly over what they may
stand for, and numbers at the middle.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from mechdesign.core.integers import Integers
from mechdesign.core.wording import listed
from mechdesign.judging.figures import NUMBER, Figure, Part
from mechdesign.judging.own_row import combined
from mechdesign.judging.together import (
    FEWEST_VALUES,
    Files,
    Floats,
    SharedColumn,
)

CLASSES = 10
"""Classes of numbers where pairs of columns are compared, with as many records each."""

MOST_PAIRED = 20
"""Columns of which all pairs are compared, the first ones: 190 pairs."""

MOST_INDICATORS = 10
"""Values of a column of names that a regression has; the others are with the most frequent one."""

DEPENDENT = 1e-8
"""A column of a regression whose part that is no combination of others is relatively smaller adds
nothing but rounding errors.
"""


@dataclass(frozen=True, eq=False)
class Read:
    """A column as an analyst reads it.

    Attributes
    ----------
    before : (records,) codes
        Classes of the original.
    after : sparse (released values, classes) array
        How much of each released value is in each class.
    classes : int
    """

    before: Integers
    after: Floats
    classes: int


def as_read(column: SharedColumn) -> Read:
    """The column in classes: values, or classes of numbers where they have many values."""
    numbers = column.numbers
    if numbers is None or len(column.original.values) <= FEWEST_VALUES:
        classes = len(column.original.values)
        return Read(
            column.original.codes.astype(np.int64), column.spread.toarray(), classes
        )
    known = np.sort(numbers[column.original.codes])
    known = known[~np.isnan(known)]
    edges = np.unique(known[np.arange(1, CLASSES) * len(known) // CLASSES])
    class_of = _classes_of(numbers, edges)
    spread = column.spread
    after = np.zeros((spread.shape[0], CLASSES + 1))
    for place in range(CLASSES + 1):
        members = spread[:, np.flatnonzero(class_of == place)]
        after[:, place] = np.asarray(members.sum(axis=1)).reshape(-1)
    # A number that the original lacks, such as a mean, is in the class around it.
    new = column.released_numbers
    if new is not None:
        lost = np.flatnonzero((after.sum(axis=1) == 0) & ~np.isnan(new))
        after[lost, _classes_of(new[lost], edges)] = 1.0
    return Read(class_of[column.original.codes], after, CLASSES + 1)


def _classes_of(numbers: Floats, edges: Floats) -> Integers:
    """The class of each number; a missing one has the last class of all."""
    classes = np.searchsorted(edges, numbers, side="right")
    classes[np.isnan(numbers)] = CLASSES
    return classes


def variation(before: Floats, after: Floats) -> float:
    """The total variation distance of two tables; what is missing from the second counts."""
    return float(max(np.abs(before - after).sum() + 1 - after.sum(), 0.0) / 2)


def column_variation(files: Files, column: SharedColumn) -> float:
    """The total variation of a column by value, or by class of numbers (`as_read`) where released
    numbers are new ones.
    """
    if column.numbers is not None and any(len(c) == 0 for c in column.covers):
        read = as_read(column)
        had = np.bincount(read.before, minlength=read.classes) / files.records
        got = np.bincount(column.released.codes, minlength=len(read.after))
        return variation(had, read.after.T @ (got / files.released_records))
    before = np.bincount(column.original.codes, minlength=len(column.original.values))
    after = np.bincount(column.released.codes, minlength=len(column.released.values))
    shares = column.spread.T @ (after / files.released_records)
    return variation(before / files.records, np.asarray(shares).reshape(-1))


@dataclass(frozen=True)
class PairFacts:
    """A pair of columns in both files."""

    names: tuple[str, str]
    variation: float
    before: float
    after: float


def table_of(left: Read, right: Read) -> Floats:
    """The table of a pair in the original, in shares."""
    cells = np.bincount(
        left.before * right.classes + right.before,
        minlength=left.classes * right.classes,
    )
    return cells.reshape(left.classes, right.classes) / len(left.before)


def released_table(left: Read, right: Read, codes: tuple[Any, Any]) -> Floats:
    """The table of a pair in the released file, in shares."""
    width = len(right.after)
    cells = np.bincount(
        codes[0].astype(np.int64) * width + codes[1], minlength=len(left.after) * width
    )
    cells = cells.reshape(len(left.after), width) / len(codes[0])
    return left.after.T @ cells @ right.after


def cramer(table: Floats) -> float:
    """Cramer's V of a table of shares."""
    total = table.sum()
    if total <= 0:
        return 0.0
    shares = table / total
    expected = shares.sum(axis=1)[:, None] * shares.sum(axis=0)[None, :]
    rows = int(np.count_nonzero(shares.sum(axis=1)))
    columns = int(np.count_nonzero(shares.sum(axis=0)))
    least = min(rows, columns) - 1
    if least <= 0:
        return 0.0
    known = expected > 0
    chi2 = ((shares - expected)[known] ** 2 / expected[known]).sum()
    return float(np.sqrt(chi2 / least))


def pearson(left: Floats, right: Floats) -> float:
    """The correlation of two columns of numbers, where both are known."""
    known = ~(np.isnan(left) | np.isnan(right))
    if np.count_nonzero(known) < 2:
        return 0.0
    first = left[known]
    second = right[known]
    if first.std() == 0 or second.std() == 0:
        return 0.0
    return float(np.corrcoef(first, second)[0, 1])


def pair_facts(files: Files) -> list[PairFacts]:
    """Every pair of the first columns."""
    columns = files.columns
    compared = columns[:MOST_PAIRED]
    reads = [as_read(column) for column in compared]
    found: list[PairFacts] = []
    for first, second in combinations(range(len(compared)), 2):
        left = columns[first]
        right = columns[second]
        before = table_of(reads[first], reads[second])
        after = released_table(
            reads[first], reads[second], (left.released.codes, right.released.codes)
        )
        relations = cramer(before), cramer(after)
        if _is_number(left) and _is_number(right):
            relations = (
                pearson(_numbers(left), _numbers(right)),
                pearson(_released_numbers(left), _released_numbers(right)),
            )
        found.append(
            PairFacts((left.name, right.name), variation(before, after), *relations)
        )
    return found


def _is_number(column: SharedColumn) -> bool:
    """Whether the column is one of quantities."""
    return column.numbers is not None and len(column.original.values) > 2


def _numbers(column: SharedColumn) -> Floats:
    """The number of every record."""
    if column.numbers is None:
        raise TypeError("the column has names")
    return column.numbers[column.original.codes]


def _released_numbers(column: SharedColumn) -> Floats:
    """The number of every released row."""
    numbers = column.released_numbers
    if numbers is None:
        raise TypeError("the column has names")
    return numbers[column.released.codes]


@dataclass(frozen=True)
class Regression:
    """Least squares of one column on the others, in both files.

    Attributes
    ----------
    outcome : str
    coefficients : int
    rms, worst : float
        Differences of the released file's coefficients, in standard errors of the original's.
    lost : int
        Coefficients that the released file cannot estimate.
    """

    outcome: str
    coefficients: int
    rms: float
    worst: float
    lost: int


def regression(files: Files) -> Regression | None:
    """A regression of the column of numbers with most values on all others; None where there is
    nothing to regress.
    """
    numbers = [column for column in files.columns if _is_number(column)]
    if not numbers or len(files.columns) < 2:
        return None
    outcome = max(numbers, key=lambda column: len(column.original.values))
    others = [column for column in files.columns if column is not outcome]
    before = [np.ones((files.records, 1))]
    after = [np.ones((files.released_records, 1))]
    for column in others:
        original, released = _predictors(column)
        before.append(original[column.original.codes])
        after.append(released[column.released.codes])
    known = ~np.isnan(_numbers(outcome))
    known_after = ~np.isnan(_released_numbers(outcome))
    if not known.any() or not known_after.any():
        # None of the released values stands for a number.
        return None
    design = np.hstack(before)[known]
    released_design = np.hstack(after)[known_after]
    possible = _independent(design)
    kept = possible[_independent(released_design[:, possible])]
    if len(kept) < 2 or len(design) <= len(kept) + 1:
        return None
    observed = _numbers(outcome)[known]
    first, errors, variance = _least_squares(design[:, kept], observed)
    if variance <= DEPENDENT * observed.var():
        # The outcome is a combination of the others: nothing has an error.
        return None
    second, _, _ = _least_squares(
        released_design[:, kept], _released_numbers(outcome)[known_after]
    )
    # The intercept moves with all others, and nobody reports it.
    off = np.abs(second - first)[1:] / errors[1:]
    return Regression(
        outcome.name,
        len(off),
        float(np.sqrt(np.mean(off**2))),
        float(off.max()),
        len(possible) - len(kept),
    )


def _predictors(column: SharedColumn) -> tuple[Floats, Floats]:
    """What a value of the column is in a regression: for original and for released values."""
    numbers = column.numbers
    after = column.released_numbers
    if _is_number(column) and numbers is not None and after is not None:
        mean = float(np.nanmean(numbers[column.original.codes]))
        return (
            np.where(np.isnan(numbers), mean, numbers)[:, None],
            np.where(np.isnan(after), mean, after)[:, None],
        )
    counts = np.bincount(column.original.codes, minlength=len(column.original.values))
    frequent = np.argsort(-counts, kind="stable")[1 : MOST_INDICATORS + 1]
    indicators = np.zeros((len(counts), len(frequent)))
    indicators[frequent, np.arange(len(frequent))] = 1.0
    return indicators, np.asarray(column.spread @ indicators)


def _independent(design: Floats) -> Integers:
    """The columns that are no combination of those before them, the first one included."""
    records, columns = design.shape
    norms = np.maximum(np.linalg.norm(design, axis=0), 1e-300)
    kept: list[int] = []
    # The products of all pairs would take memory by the square of the columns. No more columns
    # are independent than there are records, so that those of a block with them are enough.
    for first in range(0, columns, records):
        among = [*kept, *range(first, min(first + records, columns))]
        scaled = design[:, among]
        scaled /= norms[among]
        kept = [among[place] for place in _first_independent(scaled, len(kept))]
        if len(kept) >= records:
            break
    return np.array(kept, np.int64)


def _first_independent(scaled: Floats, known: int) -> list[int]:
    """The places of independent columns of length 1 (or 0); the first ``known`` are such ones."""
    gram = scaled.T @ scaled
    kept = list(range(known))
    for place in range(known, len(gram)):
        if gram[place, place] < DEPENDENT:
            continue
        if not kept:
            kept.append(place)
            continue
        among = gram[np.ix_(kept, kept)]
        beside = gram[kept, place]
        rest = gram[place, place] - beside @ np.linalg.solve(among, beside)
        if rest > DEPENDENT:
            kept.append(place)
    return kept


def _least_squares(design: Floats, outcome: Floats) -> tuple[Floats, Floats, float]:
    """Coefficients, their standard errors, and the variance of what they leave."""
    inverse = np.linalg.inv(design.T @ design)
    coefficients = inverse @ (design.T @ outcome)
    rest = outcome - design @ coefficients
    variance = float(rest @ rest / (len(design) - design.shape[1]))
    return coefficients, np.sqrt(variance * np.diag(inverse)), variance


def impossible_share(files: Files) -> float:
    """The share of the released rows that no record has; general values fit whatever they may
    stand for.
    """
    if any(column.general for column in files.columns):
        return _impossible_general(files)
    places: list[Any] = []
    for column in files.columns:
        values = np.array([cover[0] for cover in column.covers])
        places.append(
            np.concatenate([column.original.codes, values[column.released.codes]])
        )
    row = combined(places)
    known = np.zeros(int(row.max()) + 1, bool)
    known[row[: files.records]] = True
    return float((~known[row[files.records :]]).mean())


def _impossible_general(files: Files) -> float:
    """Of the distinct released rows, a sample of them where there are many."""
    row = combined([column.released.codes for column in files.columns])
    _, first, counts = np.unique(row, return_index=True, return_counts=True)
    step = max(1, -(-len(first) // 500))
    impossible = 0
    looked = 0
    for place, count in zip(
        first[::step].tolist(), counts[::step].tolist(), strict=True
    ):
        records = np.arange(files.records)
        for column in files.columns:
            cover = column.covers[column.released.codes[place]]
            records = records[np.isin(column.original.codes[records], cover)]
        impossible += count * (len(records) == 0)
        looked += count
    return impossible / looked


def analysts_part(files: Files) -> Part:
    """Frequencies, relations and a regression of the released file beside those of the original."""
    columns = files.columns
    variations = [column_variation(files, column) for column in columns]
    worst_column = int(np.argmax(variations))
    found = regression(files)
    figures = [
        Figure(
            "column_variation",
            f"worst column ({columns[worst_column].name}): total variation",
            variations[worst_column],
            0.0,
            unit=NUMBER,
        ),
        *_pair_figures(files),
        *_regression_figures(found),
        Figure(
            "impossible",
            "released rows that no record has",
            impossible_share(files),
            0.0,
        ),
    ]
    notes = _regression_notes(found)
    vanished = _vanished(columns)
    if vanished:
        notes.append(f"Values that are never released: {listed(vanished)}.")
    return Part(
        key="analysts",
        title="What analysts read",
        means=(
            "Total variation is the share of the records that would have to change for the "
            "frequencies to agree. A relation is a correlation of numbers, or Cramer's V. A "
            "coefficient that is one standard error off is as wrong as that of another sample of "
            "the same size."
        ),
        not_meant=(
            "These are the released file's own figures, read as if nothing had been done to it. "
            "Where the channel is known, `estimate` corrects them. Other statistics can be farther "
            "off than these."
        ),
        figures=tuple(figures),
        notes=tuple(notes),
    )


def _pair_figures(files: Files) -> list[Figure]:
    """The pair of columns whose frequencies changed most, and that whose relation did."""
    pairs = pair_facts(files)
    if not pairs:
        return []
    worst = max(pairs, key=lambda pair: pair.variation)
    changed = max(pairs, key=lambda pair: abs(pair.after - pair.before))
    return [
        Figure(
            "pair_variation",
            f"worst pair ({' x '.join(worst.names)}): total variation",
            worst.variation,
            0.0,
            unit=NUMBER,
        ),
        Figure(
            "relation",
            f"relation that changed most ({' x '.join(changed.names)})",
            changed.after,
            changed.before,
            unit=NUMBER,
        ),
    ]


def _regression_figures(found: Regression | None) -> list[Figure]:
    """How far the coefficients of a regression are off."""
    if found is None:
        return []
    return [
        Figure(
            "regression_rms",
            f"regression of {found.outcome}: typical error, in standard errors",
            found.rms,
            0.0,
            unit=NUMBER,
        ),
        Figure(
            "regression_worst",
            f"regression of {found.outcome}: worst of {found.coefficients} coefficients",
            found.worst,
            0.0,
            unit=NUMBER,
        ),
    ]


def _regression_notes(found: Regression | None) -> list[str]:
    """Why there is no regression, or coefficients that it lacks."""
    if found is None:
        return [
            "No regression: the files share no column of numbers, or nothing beside it that both "
            "can estimate."
        ]
    if not found.lost:
        return []
    return [
        f"{found.lost} more coefficients of this regression cannot be estimated from the "
        "released file: there a column is constant, or follows from the others."
    ]


def _vanished(columns: Sequence[SharedColumn]) -> list[str]:
    """Original values of names that no released value may stand for; a few of them."""
    lost: list[str] = []
    for column in columns:
        if column.numbers is not None:
            continue
        stood = np.zeros(len(column.original.values), bool)
        for cover in column.covers:
            stood[cover] = True
        for place in np.flatnonzero(~stood).tolist():
            lost.append(f"{column.name}={column.original.values[place]}")
    if len(lost) > 5:
        return [*lost[:5], f"{len(lost) - 5} more"]
    return lost
