"""What an analyst gets: are the frequencies of the table kept, and the symbols of each record?

`channel_law_lines` is for the first screen, reports and pages. Of a release that changes
frequencies: ::

    What an analyst reads: the released rows do not have the frequencies of the table.
    Largest change of a share: education Masters, 5.3 % -> 0.4 %.
    Worst pair of columns: education by occupation, total variation at most 0.21.
    At most 12.7 % of the released rows are combinations that no record has.
    Never released: education Preschool, 1st-4th.

Distances come from `auditing.law` and are rounded up again; the two shares of the largest change
are rounded to nearest.

*Cost.* Where a channel releases symbols of the column itself, `least_blocks` is the section on its
objective. It sets what was reached beside a proven bound. What
was reached is rounded to what claims less, and bounds are rounded outwards. What was asked for
comes as a dict (`LeastKept.asked`), the `Objective` of the channel file, such as: ::

    {"name": "distance", "distance": "absolute", "keep_frequencies": True,
     "stay": {}, "forbid": (("18", "64"),), "constraints": 0}

That is: move numbers least, keep the expected share of each of them (the default), and never
release 18 as 64. The name "truth" asks to change the fewest records instead. `number_blocks`
follows where the symbols are numbers: how far they move (`Moved`), and a histogram of their shares
before and after.

*Unchanged cells* of each released column stand beside what constants would leave. Without the share
that stays if every record got the most frequent value, nobody can judge the unchanged cells of a
column of two values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal

import numpy as np

from mechdesign.analysis.linear import error_factor
from mechdesign.auditing.law import Law, channel_law
from mechdesign.auditing.unchanged import constant_truth_of_records
from mechdesign.channel.channel import Channel
from mechdesign.core.balls import sum_above
from mechdesign.core.wording import about, at_least, at_most, quoted
from mechdesign.release.released_values import (
    Moved,
    distance_text,
    unit_of,
)
from mechdesign.report import blocks, wording
from mechdesign.report.record import LeastKept
from mechdesign.tables.joint import Joint
from mechdesign.tables.row_boxes import NOTHING

TITLE = "What an analyst reads"
"""The heading of the sentences, and the first words of the first one."""

NEARLY_KEPT = 1e-9
"""Total variation up to which no share changes in a digit that is printed."""

LEAST_STEP = Decimal("0.0001")
"""Last decimal of percentages that are told apart."""

DISTANCE_DIGITS = 2
"""Significant digits of a total variation in a sentence."""

WEIGHTED = (
    "The table has weights or probabilities and no numbers of records: a file of records has its "
    "values where each record counts with its weight."
)
"""What is said besides where they are kept."""

MOST_VALUES = 4
"""Most values of a column that are named as never released."""


def channel_law_lines(channel: Channel, joint: Joint | None) -> list[str]:
    """Sentences on what an analyst reads of a channel, on its table, if it has one."""
    stated = _stated_law_lines(channel)
    if stated:
        return stated
    law = None if channel.releases_labels else channel_law(channel, joint)
    if law is not None:
        has_counts = channel.has_counts if joint is None else joint.is_counts
        is_near = law.kept or law.total_variation <= NEARLY_KEPT
        weighted = [WEIGHTED] if is_near and not has_counts else []
        return [*law_lines(law), *weighted]
    text = f"{TITLE}: {channel.law_absent}."
    factor = error_factor(channel)
    if factor is not None:
        text += (
            f" Estimates of their frequencies have standard errors of up to "
            f"{wording.times_at_most(factor)} times those from true values."
        )
    return [text]


def _stated_law_lines(channel: Channel) -> list[str]:
    """What an analyst may count on where claims state it and no table: the law of boxes, and of the
    rows that fill them. Nothing of other channels.
    """
    utility = channel.box_utility
    if utility is None:
        return []
    if utility.law_deviation is None:
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
    if channel.fills and channel.silent_strata:
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
    if channel.releases_symbols:
        # The integers of released rows show it, too.
        is_kept = channel.keeps_law
    elif channel.releases_labels and not fills:
        return (
            f"{TITLE}: {channel.law_absent}. `mechdesign estimate` computes frequencies from "
            "them."
        )
    what = "row" if channel.published is not None else "value"
    if is_kept:
        return (
            f"{TITLE}: as the channel states, every released {what} has the probability that the "
            "table gives it. Frequencies, tables and means of what is released have the "
            "table's values in expectation."
            + ("" if channel.has_counts else f" {WEIGHTED}")
        )
    return (
        f"{TITLE}: released {what}s need not have the frequencies of the table, nor what is "
        "computed from them. Who holds the table reads in the internal report how far they move."
    )


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
    before, after = _different_percents(change.before, change.after)
    name = wording.label(change.column)
    value = wording.label(change.value)
    return [f"Largest change of a share: {name} {value}, {before} -> {after}."]


def _different_percents(before: float, after: float) -> tuple[str, str]:
    """Two different shares, with decimals enough to show how far they are apart."""
    # A step of more than the change would make it look larger. One in a hundred is for changes
    # that are a step but for the last bit of a double.
    change = Decimal(101 * abs(before - after))
    step = Decimal("0.1")
    while step > change and step > LEAST_STEP:
        step /= 10
    return wording.percent(before, step=step), wording.percent(after, step=step)


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


# --------------------------------------------------------------------------------- cost

# ---------------------------------------------------------------------- unchanged cells

HEADER = ("column", "unchanged", "if constant")
"""The header of the table of columns."""


def column_rows(truth: Mapping[str, float], joint: Joint) -> list[Sequence[str]]:
    """A line for each released column: its name, and both shares; `truth` is rounded down."""
    constant = constant_truth(joint)
    rows: list[Sequence[str]] = []
    for name, share in truth.items():
        rows.append(
            (
                wording.label(name),
                wording.percent_at_least(share),
                wording.percent(constant[name]),
            )
        )
    return rows


def constant_truth(joint: Joint) -> dict[str, float]:
    """For each column the share of the records that have its most frequent value."""
    if joint.useful.people is not None:
        return constant_truth_of_records(joint)
    cells = joint.useful.coded
    shares: dict[str, float] = {}
    for k, name in enumerate(cells.columns):
        masses = np.bincount(cells.codes[:, k], joint.p_x)
        shares[name] = float(masses.max())
    return shares


# --------------------------------------------------------------- cost and moved numbers

MOST_BARS = 16
"""Rows of a histogram; with more bins, neighbours are joined."""

BEST = "no channel that keeps the promise and the conditions below"

BEST_ROWS = "no release of rows with this promise and the same conditions"
BEST_FREQUENCIES = (
    "no release of rows with this promise, these frequencies of rows and the same "
    "conditions"
)
"""What the bound on rows is about: smallest groups fix how often each row is released first."""

SAME_COST = 1e-6
"""A cost that is the share of changed cells differs from it by rounding alone; moved numbers cost
more."""

COST = {
    None: "The expected cost is",
    "absolute": "On average {useful} moves by",
    "squared": "The expected squared distance that {useful} moves is",
}
"""By the distance of the objective; None for a matrix of costs."""


def least_blocks(least: LeastKept, useful: str) -> list[blocks.Block]:
    """The expected cost with its proven bound, the conditions, and which symbols stay
    as they are.
    """
    asked = least.asked
    texts: list[str] = []
    if least.of_rows:
        texts += _row_texts(least)
    else:
        texts += _cost_texts(least, useful)
        texts += _frequency_texts(least, useful)
    if asked["forbid"]:
        pairs = wording.count(len(asked["forbid"]), "pair")
        verb = "is" if len(asked["forbid"]) == 1 else "are"
        texts.append(f"{pairs} of symbols {verb} never released one for the other.")
    if asked.get("never"):
        rows_of = wording.count(len(asked["never"]), "combination")
        verb = "is" if len(asked["never"]) == 1 else "are"
        texts.append(f"{rows_of} of cells {verb} never released.")
    rows: list[tuple[blocks.Cell, ...]] = []
    stays = wording.in_reading_order(least.by_symbol, lambda stay: stay[0])
    for name, share in stays[: blocks.MOST_ROWS]:
        rows.append(blocks.cells(wording.short(name), wording.percent_at_least(share)))
    what = "row" if least.of_rows else "value"
    caption = f"Probability that each {what} of {useful} is released as it is"
    table = blocks.grid(
        caption, (useful, "stays true"), rows, useful, total=len(least.by_symbol)
    )
    columns: list[blocks.Block] = []
    if least.by_column:
        lines = [blocks.cells(*texts) for texts in least.by_column]
        caption = (
            "Expected share of unchanged cells of each column, and if all had its most frequent "
            "value"
        )
        columns = blocks.grid(caption, HEADER, lines, "columns")
    return [*blocks.paragraphs(texts), *columns, *table]


def number_blocks(numbers: Sequence[Moved]) -> list[blocks.Block]:
    """How far numbers move, and their histogram before and after."""
    parts: list[blocks.Block] = []
    for moved in numbers:
        parts.append(blocks.Text(moved_text(moved)))
        parts.append(_histogram(moved))
    return parts


def moved_text(moved: Moved) -> str:
    """How far the numbers of a column move, and their correlation."""
    column = wording.label(moved.column)
    if moved.edges:
        opening = (
            f"{column} is in {wording.count(len(moved.labels), 'bin')}. Published as medians "
            "(apply --as representative), its"
        )
    else:
        opening = f"The {column}"
    distance = distance_text(moved.distance, moved.kind)
    text = f"{opening} numbers are expected to move by {distance}"
    if moved.correlation is not None:
        correlation = about(moved.correlation)
        text += f"; original and released numbers have the correlation {correlation}"
    return f"{text}."


def _row_texts(least: LeastKept) -> list[str]:
    """The share of cells that stay true, and the expected cost with its proven bound."""
    cost = least.cost
    bound = least.cost_lower_bound
    if least.truth is None or cost is None or bound is None:
        return []
    truth = wording.percent_at_least(least.truth)
    kept = f"{truth} of the cells are released as they are (expected)"
    best = BEST_FREQUENCIES if least.asked["keep_frequencies"] else BEST_ROWS
    is_share = least.asked["name"] == "truth" and not least.asked["distance"]
    if is_share and abs(cost - (1.0 - least.truth)) <= SAME_COST:
        most = wording.percent_at_most(min(1.0, sum_above((1.0, -bound))))
        return [f"{kept}; {best} keeps more than {most}."]
    # Numbers cost by how far they move, too, so the bound says nothing of cells alone.
    return [
        f"{kept}. The expected cost of a row is {at_most(cost)}; {best} comes below "
        f"{at_least(bound)}."
    ]


def _cost_texts(least: LeastKept, useful: str) -> list[str]:
    """The expected cost and its proven bound, and the share of records that stay true."""
    cost = least.cost
    bound = least.cost_lower_bound
    if least.truth is None or cost is None or bound is None:
        return []
    kept = wording.unchanged_text(least.truth, useful)
    if least.asked["name"] == "truth":
        # The cost is the share of changed records, so 1 - bound is the most that can stay.
        most = wording.percent_at_most(min(1.0, sum_above((1.0, -bound))))
        return [f"{kept}; {BEST} keeps more than {most}."]
    distance = least.asked["distance"]
    # Only an absolute distance has the unit of the column.
    kind = "number"
    if distance == "absolute":
        kind = least.kind
    # Times are in seconds: the unit is the largest that the cost has one of, of this many seconds.
    size, unit = unit_of(cost, kind)
    opening = COST[distance].format(useful=useful)
    return [
        f"{opening} {at_most(cost / size)}{unit}; {BEST} comes below "
        f"{at_least(bound / size)}{unit}. {kept}."
    ]


def _frequency_texts(least: LeastKept, useful: str) -> list[str]:
    """What is asked of the frequencies, in a public report alone.

    Where the table may be shown, the section on what an analyst reads says what became of them.
    """
    if least.frequency_deviation is not None or not least.asked["keep_frequencies"]:
        return []
    return [
        f"The expected share of every value of {useful} is that of the table, up to the rounding "
        "to integers."
    ]


def _histogram(moved: Moved) -> blocks.Block:
    """Shares before and after; neighbouring bins are joined where there are too many."""
    # The least number of neighbours to a bar that leaves at most `MOST_BARS`.
    step = -(-len(moved.labels) // MOST_BARS)
    rows: list[tuple[blocks.Cell, ...]] = []
    for start in range(0, len(moved.labels), step):
        end = min(start + step, len(moved.labels))
        name = _span(moved.labels[start], moved.labels[end - 1], bins=bool(moved.edges))
        cells = [blocks.Cell(wording.label(name))]
        for shares in (moved.before, moved.after):
            share = sum(shares[start:end])
            cells.append(blocks.Cell(wording.percent(share), min(share, 1.0)))
        rows.append(tuple(cells))
    header = ("bin" if moved.edges else "number", "before", "after")
    caption = f"Shares of {wording.label(moved.column)} before and after"
    return blocks.Grid(caption, header, tuple(rows))


def _span(low: str, high: str, *, bins: bool) -> str:
    """The label of joined neighbours: bins ``[a, b)`` and ``[c, d)`` become ``[a, d)``."""
    if low == high:
        return low
    if bins:
        return f"{low.partition(', ')[0]}, {high.partition(', ')[2]}"
    return f"{low} to {high}"
