"""What an analyst reads, in sentences: does the release keep the frequencies of the table?

`law_lines` is for the first screen, reports and pages. Of a release that changes frequencies: ::

    What an analyst reads: the released rows do not have the frequencies of the table.
    Largest change of a share: education Masters, 5.3 % -> 0.4 %.
    Worst pair of columns: education by occupation, total variation at most 0.21.
    At most 12.7 % of the released rows are combinations that no record has.
    Never released: education Preschool, 1st-4th.

Distances come from `auditing.law` and are rounded up again; the two shares of the largest change
are rounded to nearest.
"""

from __future__ import annotations

from mechdesign.auditing.law import Law
from mechdesign.core.wording import at_most
from mechdesign.report import wording

TITLE = "What an analyst reads"
"""The heading of the sentences, and the first words of the first one."""

NEARLY_KEPT = 1e-9
"""Total variation up to which no share changes in a digit that is printed."""

DISTANCE_DIGITS = 2
"""Significant digits of a total variation in a sentence."""

MOST_VALUES = 4
"""Most values of a column that are named as never released."""

LABELS = (
    f"{TITLE}: released values are labels and no values of the columns, so frequencies of the "
    "released file cannot be compared with those of the table."
)
"""The sentence on free labels."""


def law_lines(law: Law | None) -> list[str]:
    """Sentences on a law; of a channel whose outputs are labels, the law is None."""
    if law is None:
        return [LABELS]
    if law.kept:
        return [
            f"{TITLE}: every released row has exactly the probability that the table gives it. "
            "Frequencies, tables and means of the released columns have the table's values in "
            "expectation."
        ]
    if law.total_variation <= NEARLY_KEPT:
        distance = at_most(law.total_variation, DISTANCE_DIGITS)
        return [
            f"{TITLE}: the released rows have the frequencies of the table up to a total "
            f"variation of {distance}. Tables and means of the released columns have the table's "
            "values in expectation, up to that."
        ]
    lines = [
        f"{TITLE}: the released rows do not have the frequencies of the table (total variation "
        f"of whole rows at most {at_most(law.total_variation, DISTANCE_DIGITS)})."
    ]
    lines += _change(law)
    lines += _pair(law)
    if law.impossible_rows:
        share = wording.percent_at_most(law.impossible_rows, step=wording.TENTH)
        lines.append(
            f"At most {share} of the released rows are combinations that no record has."
        )
    lines += _vanished(law)
    return lines


def _change(law: Law) -> list[str]:
    """The value whose share changes most; nothing where single columns keep their law."""
    change = law.largest_share_change
    if change is None:
        return ["Every single column keeps its frequencies."]
    before = wording.percent(change.before, step=wording.TENTH)
    after = wording.percent(change.after, step=wording.TENTH)
    name = wording.label(change.column)
    value = wording.label(change.value)
    return [f"Largest change of a share: {name} {value}, {before} -> {after}."]


def _pair(law: Law) -> list[str]:
    """The worst pair of columns; nothing of a single column."""
    if law.pairs is None:
        return []
    one, other, variation = law.pairs
    if not variation:
        return ["Every pair of columns keeps its joint frequencies."]
    names = f"{wording.label(one)} by {wording.label(other)}"
    distance = at_most(variation, DISTANCE_DIGITS)
    return [f"Worst pair of columns: {names}, total variation at most {distance}."]


def _vanished(law: Law) -> list[str]:
    """The values that are never released, by column."""
    if not law.vanished:
        return []
    parts: list[str] = []
    for name, values in law.vanished.items():
        shown = wording.first_labels(values, MOST_VALUES)
        parts.append(f"{wording.label(name)} {shown}")
    return [f"Never released: {'; '.join(parts)}."]
