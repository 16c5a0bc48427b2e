"""What an analyst reads, in sentences: does the release keep the frequencies of the table?

`channel_law_lines` is for the first screen, reports and pages. Of a release that changes
frequencies: ::

    What an analyst reads: the released rows do not have the frequencies of the table.
    Largest change of a share: education Masters, 5.3 % -> 0.4 %.
    Worst pair of columns: education by occupation, total variation at most 0.21.
    At most 12.7 % of the released rows are combinations that no record has.
    Never released: education Preschool, 1st-4th.

Distances come from `auditing.law` and are rounded up again; the two shares of the largest change
are rounded to nearest.
"""

from __future__ import annotations

from collections.abc import Sequence

from mechdesign.analysis.estimator import error_factor
from mechdesign.auditing.law import (
    Law,
    absent_channel_law,
    absent_law,
    cells_of_labels,
    channel_law,
    label_of,
)
from mechdesign.channel.channel import Channel
from mechdesign.core.wording import at_most, quoted
from mechdesign.mechanisms.result import Design
from mechdesign.report import wording
from mechdesign.tables.joint import Joint
from mechdesign.tables.row_boxes import NOTHING

TITLE = "What an analyst reads"
"""The heading of the sentences, and the first words of the first one."""

NEARLY_KEPT = 1e-9
"""Total variation up to which no share changes in a digit that is printed."""

DISTANCE_DIGITS = 2
"""Significant digits of a total variation in a sentence."""

MOST_VALUES = 4
"""Most values of a column that are named as never released."""


def channel_law_lines(channel: Channel, joint: Joint | None) -> list[str]:
    """Sentences on what an analyst reads of a channel, on its table, if it has one."""
    if channel.labels_boxes or channel.fills:
        return _box_law_lines(channel)
    law = channel_law(channel, joint)
    if law is not None:
        return law_lines(law)
    text = f"{TITLE}: {absent_channel_law(channel)}."
    factor = error_factor(channel)
    if factor is not None:
        text += (
            f" Estimates of their frequencies have standard errors of up to "
            f"{at_most(factor, DISTANCE_DIGITS)} times those from true values."
        )
    return [text]


def _box_law_lines(channel: Channel) -> list[str]:
    """What an analyst may count on: the law of the boxes, and of the rows that fill them."""
    utility = channel.boxed.claims.utility
    if utility is None or utility.law_deviation is None:
        return [
            f"{TITLE}: released values are labels of boxes, and `mechdesign estimate` "
            "computes the frequencies of boxes from them."
        ]
    if utility.law_deviation > 0.0:
        return [
            f"{TITLE}: the share of a box among the released records differs from that "
            f"in the table by at most {100 * utility.law_deviation:.2g} % of the records "
            "(expected)."
        ]
    if channel.fills and any(part.channel is None for part in channel.parts):
        return [
            f"{TITLE}: where rows are released, each comes as often as the table has "
            f"it. Strata of which nothing is released have {quoted(NOTHING)} in every cell."
        ]
    if channel.fills:
        return [
            f"{TITLE}: every row of the table is released as often as the table has "
            "it. Tables and means of the released columns have the table's values in expectation."
        ]
    return [f"{TITLE}: every box is released as often as the table has it (expected)."]


def public_law_line(channel: Channel, *, fills: bool = False) -> str:
    """The same of a channel without its table: whether it keeps the law is what its file states.

    Of boxes that are filled with rows (`fills`) no public file says it.
    """
    objective = channel.record.objective
    is_kept = objective is not None and objective.keep_frequencies
    if channel.labels_boxes and not fills:
        return (
            f"{TITLE}: {absent_channel_law(channel)}. `mechdesign estimate` computes the "
            "frequencies of boxes from them."
        )
    if channel.releases_symbols:
        # The integers of released rows show it, too.
        is_kept = channel.keeps_law
    elif not fills and cells_of_labels(channel.outputs, channel.useful) is None:
        absent = absent_law(channel.outputs, channel.useful.columns)
        return (
            f"{TITLE}: {absent}. `mechdesign estimate` computes frequencies from them."
        )
    what = "row" if channel.published is not None else "value"
    if is_kept:
        return (
            f"{TITLE}: as the channel states, every released {what} has the probability that the "
            "table gives it. Frequencies, tables and means of what is released have the "
            "table's values in expectation."
        )
    return (
        f"{TITLE}: released {what}s need not have the frequencies of the table, nor what is "
        "computed from them. Who holds the table reads in the internal report how far they move."
    )


def brief_law(design: Design) -> str:
    """What an analyst reads of a column, in one line where its name is short."""
    law = design.law
    channel = design.channel
    column = wording.title(channel.useful.columns)
    if law is None:
        label = quoted(label_of(channel.outputs))
        factor = error_factor(channel)
        if factor is None:
            return f"{TITLE}: labels such as {label}, and no values of {column}."
        times = at_most(factor, DISTANCE_DIGITS)
        shares = f"estimated shares have up to {times} times the error"
        return f"{TITLE}: labels such as {label}; {shares}."
    if law.kept:
        return f"{TITLE}: exactly the frequencies and means of {column} (expected)."
    distance = at_most(law.total_variation, DISTANCE_DIGITS)
    if law.total_variation <= NEARLY_KEPT:
        return f"{TITLE}: the frequencies and means of {column} (expected, within {distance})."
    return " ".join(law_lines(law))


def untitled(sentences: Sequence[str]) -> list[str]:
    """Sentences below a heading of their own, which the first one need not begin with."""
    texts: list[str] = []
    for text in sentences:
        sentence = text.removeprefix(f"{TITLE}: ")
        texts.append(sentence[:1].upper() + sentence[1:])
    return texts


def law_lines(law: Law) -> list[str]:
    """Sentences on a law."""
    is_row = len(law.columns) > 1
    what = "row" if is_row else "value"
    statistics = "Frequencies, tables and means of the released columns"
    if not is_row:
        statistics = f"Frequencies and means of {wording.title(tuple(law.columns))}"
    if law.kept:
        return [
            f"{TITLE}: every released {what} has exactly the probability that the table gives it. "
            f"{statistics} have the table's values in expectation."
        ]
    distance = at_most(law.total_variation, DISTANCE_DIGITS)
    if law.total_variation <= NEARLY_KEPT:
        return [
            f"{TITLE}: the frequencies of the table, up to a total variation of {distance}. "
            f"{statistics} have the table's values in expectation."
        ]
    whole = " of whole rows" if is_row else ""
    lines = [
        f"{TITLE}: the released {what}s do not have the frequencies of the table (total variation"
        f"{whole} at most {distance})."
    ]
    lines += _change(law)
    lines += _pair(law)
    if law.impossible_rows:
        share = wording.percent_at_most(law.impossible_rows)
        lines.append(
            f"At most {share} of the released rows are combinations that no record has."
        )
    lines += _vanished(law)
    return lines


def _change(law: Law) -> list[str]:
    """The value whose share changes most; nothing where single columns keep their law."""
    change = law.largest_share_change
    if change is None and len(law.columns) == 1:
        return []
    if change is None:
        return ["Every single column keeps its frequencies."]
    before = wording.percent(change.before)
    after = wording.percent(change.after)
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
