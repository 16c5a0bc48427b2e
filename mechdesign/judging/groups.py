"""What reviewers compute of a released file: k-anonymity and its like, and singling out.

k-anonymity, l-diversity, t-closeness and beta-likeness are misleading where cells were changed at
random. All four look at groups of released rows that are equal in some columns. They suppose that a
row in such a group is the true row of its person. Where cells were changed, a group of one is most
often somebody else's true row, or nobody's; `own_alone` counts how often it is the person's.

*Singling out*: does a property that one released row has point to one person? The attacker takes a
released row that nobody else has in a few columns, and claims that exactly one person of the
original has these cells. As a comparison he draws the cells of such a claim one by one from the
frequencies of the columns, which are public.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mechdesign.core.integers import Integers
from mechdesign.core.wording import listed, percent
from mechdesign.judging.figures import NUMBER, WHOLE, Figure, Part
from mechdesign.judging.instruments import groups_by_pycanon, singling_out_by_anonymeter
from mechdesign.judging.own_row import combined
from mechdesign.judging.together import Files, SharedColumn

SMALL = 5
"""Groups of fewer records are called small, as most rules for published tables do."""


@dataclass(frozen=True)
class Groups:
    """Groups of equal released rows.

    Attributes
    ----------
    k : int
        Rows of the smallest group.
    diversity : int or None
        The smallest number of secrets in a group (distinct l-diversity).
    closeness : float or None
        The largest total variation distance between the secrets of a group and of all (t, with
        equal distances).
    likeness : float or None
        The largest relative gain P(s | group) / P(s) - 1 (basic beta-likeness).
    alone, small : float
        Shares of the rows in groups of one, and of fewer than `SMALL`.
    own, own_alone : float or None
        The share of the rows that have the true cells of their person, of all and of those in
        groups of one; None where it is not known whose they are, or there are no such groups.
    suppressed : int
        Rows of no group: each of their cells may stand for every value.
    """

    k: int
    diversity: int | None
    closeness: float | None
    likeness: float | None
    alone: float
    small: float
    own: float | None
    own_alone: float | None
    suppressed: int


def groups_of(files: Files, places: Sequence[int]) -> Groups:
    """The groups of the rows that are equal in these columns."""
    columns = [files.columns[place] for place in places]
    codes = [column.released.codes for column in columns]
    # A row that was suppressed fits everybody. Such rows, few or many, single nobody out.
    suppressed = np.ones(len(codes[0]), bool)
    for column in columns:
        fits_all = [
            len(found) == len(column.original.values) for found in column.covers
        ]
        suppressed &= np.array(fits_all)[column.released.codes]
    if suppressed.all():
        suppressed[:] = False
    kept = ~suppressed
    group = combined([column[kept] for column in codes])
    sizes = np.bincount(group)
    secret = files.secret_beside
    diversity = closeness = likeness = None
    if secret is not None:
        _, secrets = np.unique(secret, return_inverse=True)
        symbols = int(secrets.max()) + 1
        cells = group * symbols + secrets[kept]
        table = np.bincount(cells, minlength=len(sizes) * symbols)
        table = table.reshape(len(sizes), symbols)
        overall = np.bincount(secrets) / len(secrets)
        shares = table / sizes[:, None]
        diversity = int(np.count_nonzero(table, axis=1).min())
        closeness = float(np.abs(shares - overall).sum(axis=1).max() / 2)
        likeness = float((shares / overall).max() - 1)
    alone = np.zeros(len(kept), bool)
    alone[kept] = sizes[group] == 1
    own = own_alone = None
    if files.is_linked:
        fits = np.ones(len(kept), bool)
        for column in columns:
            truth = column.original.codes[files.owner]
            chances = column.spread[column.released.codes, truth]
            fits &= np.asarray(chances).reshape(-1) > 0
        own = float(fits.mean())
        if alone.any():
            own_alone = float(fits[alone].mean())
    return Groups(
        k=int(sizes.min()),
        diversity=diversity,
        closeness=closeness,
        likeness=likeness,
        alone=float(alone.mean()),
        small=float((sizes[group] < SMALL).sum() / len(kept)),
        own=own,
        own_alone=own_alone,
        suppressed=int(suppressed.sum()),
    )


def groups_part(files: Files, untouched: Files, places: Sequence[int]) -> Part:
    """The four figures, and how to read them."""
    here = groups_of(files, places)
    there = groups_of(untouched, places)
    figures = [
        Figure("k", "k: rows of the smallest group", here.k, there.k, unit=WHOLE),
        Figure(
            "l",
            "l: secrets in the least diverse group",
            here.diversity,
            there.diversity,
            unit=WHOLE,
        ),
        Figure(
            "t",
            "t: largest distance of a group's secrets",
            here.closeness,
            there.closeness,
            unit=NUMBER,
        ),
        Figure(
            "beta",
            "beta: largest relative gain of a secret",
            here.likeness,
            there.likeness,
            unit=NUMBER,
        ),
        Figure("alone", "rows in groups of one", here.alone, there.alone),
        Figure("small", f"rows in groups below {SMALL}", here.small, there.small),
    ]
    figures += groups_by_pycanon(files, untouched, places)
    notes = [f"Groups are equal in {listed([files.columns[p].name for p in places])}."]
    if any("" in files.columns[place].original.values for place in places):
        notes.append("An empty cell counts as a value of its own in them.")
    if here.suppressed:
        notes.append(
            "Rows suppressed in all of these columns, which belong to no group: "
            f"{here.suppressed:,}."
        )
    if here.own is not None:
        figures.append(
            Figure(
                "own", "rows with the true cells of their person", here.own, there.own
            )
        )
        if here.own_alone is not None:
            figures.append(
                Figure(
                    "own_alone",
                    "of the rows in groups of one",
                    here.own_alone,
                    there.own_alone,
                )
            )
        if here.own < 1:
            notes.append(
                f"{percent(1 - here.own)} of the rows have other cells than their person, so "
                "groups mix people who are not alike, and in a small group the share of a secret "
                "is an accident: in a group of one it is 0 or 1 whatever is promised. l, t and "
                "beta read these accidents as knowledge."
            )
    return Part(
        key="groups",
        title="k, l, t and beta: groups of equal rows",
        means=(
            "Reviewers put equal released rows into groups, and count rows and secrets in each. "
            "The figures are right for files whose cells are true or made more general."
        ),
        not_meant=(
            "Where cells were changed at random, a group is not a group of people: who looks for a "
            "person by true cells finds the row of somebody else, or none. Neither does k = 1 then "
            "say that the file is unprotected, nor would a large k protect a secret that all of a "
            "group share."
        ),
        figures=tuple(figures),
        notes=tuple(notes),
    )


# ------------------------------------------------------------------------- singling out

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
        note = f"Each claim is on {width} columns."
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
    made = 0 if before is None else before.claims
    figures.append(
        Figure("claims", "claims that were made", found.claims, made, unit=WHOLE)
    )
    figures += singling_out_by_anonymeter(files, untouched, width, seed)
    return Part("singling_out", title, means, not_meant, tuple(figures), (note,))
