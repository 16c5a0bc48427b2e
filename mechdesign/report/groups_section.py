"""Smallest groups in sentences: how many records share a released row, and how to ask for more.

For the first screen, for example: ::

    Every released row occurs at least 5 times where the counts are fixed (--smallest-group K asks
    for another number). 1,464 of the 8,717 rows of the table are released.
"""

from __future__ import annotations

from collections.abc import Sequence

from mechdesign.report import wording

OPTION = "--smallest-group K"
"""How to ask for another number."""


def group_lines(
    k: int,
    *,
    known: Sequence[str],
    rows: int,
    released: int,
    single: int,
    of_people: bool = False,
) -> list[str]:
    """Sentences on the smallest group; none where every row is that of several records anyway.

    Parameters
    ----------
    k : int
        The smallest group; 1 where every row may be released.
    known : sequence of str
        The columns that an outsider can know; empty for all released ones.
    rows, released : int
        The distinct rows of the table, and those that are released.
    single : int
        Released rows that stand for a single record.
    of_people : bool
        Whether a row is the sequence of the records of a person.
    """
    if k == 1:
        return _open_rows(single, of_people)
    what = "row"
    if known:
        what = f"combination of {', '.join(map(wording.label, known))}"
    lines = [
        f"Every released {what} occurs at least {k:,} times where the counts are fixed ({OPTION} "
        f"asks for another number). {released:,} of the {wording.count(rows, 'row')} of the table "
        "are released."
    ]
    if known and single:
        times = "occurs once" if single == 1 else "occur once"
        lines.append(
            f"{wording.count(single, 'released row')} {times}: whoever knows other columns, too, "
            "can tell them apart."
        )
    return lines


def _open_rows(single: int, of_people: bool) -> list[str]:
    """What is left open where every row may be released."""
    if not single:
        return []
    belong = "belongs" if single == 1 else "belong"
    if of_people:
        return [
            f"{wording.count(single, 'sequence')} of the table {belong} to a single person and can "
            f"be released: whoever knows it may find it. {OPTION} releases only those of K people."
        ]
    return [
        f"{wording.count(single, 'row')} of the table {belong} to a single record and can be "
        f"released: whoever knows the released columns of a person may find the row. {OPTION} "
        "releases only rows that K records have."
    ]
