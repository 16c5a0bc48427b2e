"""Singling out: does a property that one released row has point to one person?

The attacker takes a released row that nobody else has in a few columns, and claims that exactly one
person of the original has these cells. As a comparison he draws the cells of such a claim one by
one from the frequencies of the columns, which are public.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mechdesign.core.integers import Integers
from mechdesign.judging.figures import Figure, Part
from mechdesign.judging.instruments import singling_out_by_anonymeter
from mechdesign.judging.nearest import combined
from mechdesign.judging.together import Files, SharedColumn

COLUMNS_OF_A_CLAIM = 4
"""Columns of a claim, or fewer where there are fewer."""

SETS = 50
CLAIMS_OF_A_SET = 40
"""Sets of columns that are tried, and claims for each."""

COMPARED = 1 << 30
"""Cells of claims and records that are compared in all."""


@dataclass(frozen=True)
class Singled:
    """How often claims single somebody out.

    Attributes
    ----------
    claims : int
    one : float
        The share of the claims that exactly one person meets.
    own : float or None
        The share of them that the person meets to whom the released row belongs, and nobody else.
    blind : float
        As `one`, with cells drawn from the columns' frequencies.
    """

    claims: int
    one: float
    own: float | None
    blind: float


def singled_out(files: Files, seed: int) -> Singled | None:
    """Claims on released rows; None where no row is alone in any of the sets of columns."""
    chance = np.random.default_rng([seed, 2])
    width = min(COLUMNS_OF_A_CLAIM, len(files.columns))
    each = CLAIMS_OF_A_SET
    claims_at_most = COMPARED // (files.records * width)
    each = int(np.clip(claims_at_most // SETS, 2, each))
    seen: set[tuple[frozenset[int], int]] = set()
    ones: list[bool] = []
    owns: list[bool] = []
    blind: list[bool] = []
    for _ in range(SETS):
        places = chance.permutation(len(files.columns))[:width]
        columns = [files.columns[place] for place in places.tolist()]
        group = combined([column.released.codes for column in columns])
        alone = np.flatnonzero(np.bincount(group)[group] == 1)
        rows = chance.permutation(alone)[:each]
        for row in rows.tolist():
            # Of few columns there are few sets, which come again.
            claim = frozenset(places.tolist()), row
            if claim in seen:
                continue
            seen.add(claim)
            values = [int(column.released.codes[row]) for column in columns]
            met = _met(columns, values)
            ones.append(len(met) == 1)
            if files.is_linked:
                owns.append(len(met) == 1 and met[0] == files.owner[row])
        for _ in range(len(rows)):
            values = []
            for column in columns:
                drawn = chance.integers(len(column.released.codes))
                values.append(int(column.released.codes[drawn]))
            blind.append(len(_met(columns, values)) == 1)
    if not ones:
        return None
    own = float(np.mean(owns)) if files.is_linked else None
    return Singled(len(ones), float(np.mean(ones)), own, float(np.mean(blind)))


def _met(columns: list[SharedColumn], values: list[int]) -> Integers:
    """The records whose cells these released values may stand for."""
    records: Integers | None = None
    for column, value in zip(columns, values, strict=True):
        codes = column.original.codes
        if records is not None:
            codes = codes[records]
        places = column.covers[value]
        fits = codes == places[0] if len(places) == 1 else np.isin(codes, places)
        found = np.flatnonzero(fits)
        records = found if records is None else records[found]
    return np.zeros(0, np.int64) if records is None else records


def singling_out_part(files: Files, untouched: Files, seed: int) -> Part:
    """Singling out by claims on released rows."""
    title = "Singling out: one person with the cells of a released row"
    means = (
        "Somebody takes a released row that is alone in a few columns and claims that exactly one "
        "person has these cells. Without the file he draws the cells from the columns' frequencies."
    )
    not_meant = (
        "That one person has such cells does not say that the row is the person's: the second "
        "figure counts the claims that are true of the row's own person. And a person who is "
        "singled out by cells has not lost a secret: the other parts say what is learnt."
    )
    found = singled_out(files, seed)
    before = singled_out(untouched, seed)
    width = min(COLUMNS_OF_A_CLAIM, len(files.columns))
    if found is None:
        # Whoever wants a row that is alone finds none, so no claim is made.
        found = Singled(0, 0.0, 0.0 if files.is_linked else None, 0.0)
        note = (
            f"No released row is alone in the sets of {width} columns that were tried."
        )
    else:
        note = f"{found.claims:,} claims on {width} columns."
    figures = [
        Figure(
            "one",
            "claims that exactly one person meets",
            found.one,
            None if before is None else before.one,
            found.blind if found.claims or before is None else before.blind,
        )
    ]
    if found.own is not None:
        figures.append(
            Figure(
                "own",
                "claims that only the row's own person meets",
                found.own,
                None if before is None else before.own,
            )
        )
    figures += singling_out_by_anonymeter(files, untouched, width, seed)
    return Part("singling_out", title, means, not_meant, tuple(figures), (note,))
