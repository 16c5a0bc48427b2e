"""Smallest groups in sentences: how many records share a released row, and how to ask for more.

`group_lines` is for the first screen, reports and pages, for example: ::

    Every released row occurs at least 5 times where the counts are fixed (the default here;
    --smallest-group K asks for another number). 1,464 of the 8,717 rows of the table are released.
"""

from __future__ import annotations

from collections.abc import Sequence

from mechdesign.report import wording

OPTION = "--smallest-group K"
"""How to ask for another number."""


def group_lines(
    k: int,
    *,
    is_default: bool,
    known: Sequence[str] | None,
    rows: int,
    released: int,
    unique: int,
) -> list[str]:
    """Sentences on the smallest group.

    Parameters
    ----------
    k : int
        The smallest group; 1 where every row may be released.
    is_default : bool
        Whether the user asked for no number.
    known : sequence of str or None
        The columns that an outsider can know; None for all released ones.
    rows, released, unique : int
        The distinct rows of the table, those that are released, and those that are released once.
    """
    if k == 1:
        return [_open_rows(released, unique)]
    what = "row"
    if known is not None:
        what = f"combination of {', '.join(map(wording.label, known))}"
    source = f"{OPTION} asks for another number"
    if is_default:
        source = f"the default here; {source}"
    lines = [
        f"Every released {what} occurs at least {k:,} times where the counts are fixed ({source}). "
        f"{released:,} of the {wording.count(rows, 'row')} of the table are released."
    ]
    if known is not None and unique:
        times = "occurs once" if unique == 1 else "occur once"
        lines.append(
            f"{wording.count(unique, 'released row')} {times}: whoever knows other columns, too, "
            "can tell them apart."
        )
    return lines


def _open_rows(released: int, unique: int) -> str:
    """What is left open where every row may be released."""
    share = "none"
    if unique:
        share = f"{unique:,}"
    return (
        f"Rows of single records may be released: of {wording.count(released, 'released row')}, "
        f"{share} occur once. Whoever knows a person's released columns may find the person's row. "
        f"{OPTION} releases only rows that K records have."
    )
