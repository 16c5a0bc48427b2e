"""k-anonymity, l-diversity, t-closeness and beta-likeness of a released file, as reviewers compute
them, and what they read wrongly in a file whose cells were changed at random.

All four look at groups of released rows that are equal in some columns. They suppose that a row in
such a group is the true row of its person. Where cells were changed, a group of one is most often
somebody else's true row, or nobody's; `own_alone` counts how often it is the person's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mechdesign.core.wording import listed
from mechdesign.judging.figures import NUMBER, WHOLE, Figure, Part
from mechdesign.judging.instruments import groups_by_pycanon
from mechdesign.judging.nearest import combined
from mechdesign.judging.together import Files

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
                f"{100 * (1 - here.own):.0f} % of the rows have other cells than their person, so "
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
