"""The first screen of `design --release --confidence`: at most 25 lines; `--full` has the rest.

Such a design releases for each row a box, which is a set of values in every column, as "job nurse,
clerk; hours 38-42" (`channel.box_channel`). Its screen has these parts in their order::

    lead, promise_lines   Job and Hours are released together in boxes of values; ..
                          Population (95% confidence): ..       whole
    kept_sentence         Kept: 31.2% of the information ..     whole
    _columns              a table with a line for each column   cut to the lines left
    _remarks              limits of promise and search          whole
                          how the boxes came about              left out without room
    scope_items           Not covered: ..                       whole
    FULL, `last`          files written, the next command       whole

`box_first_screen` counts the lines of the whole parts first. `_columns` takes what it needs of the
others, then `_remarks`; what is cut says that `--full` has it. The order is that of
`row_first_screen`, but the population comes before the table: the promise is made for it, and what
the table shows is smaller.
"""

from __future__ import annotations

from collections.abc import Sequence

from mechdesign.analysis.box_truth import box_truth
from mechdesign.channel.box_channel import BoxChannel
from mechdesign.mechanisms.box_result import BoxDesign
from mechdesign.report import layout, wording
from mechdesign.report.box_sentences import (
    LITTLE,
    fill_lines,
    law_lines,
    lead,
    own_lines,
    part_lines,
    promise_lines,
    rare_remedy,
    rarest_values,
    scope_items,
    slice_sentence,
    truth_by_column,
)
from mechdesign.report.first_lines import (
    FULL,
    MOST_LINES,
    kept_sentence,
    lines_within,
)

MOST_COLUMNS = 6
"""Lines on the columns of people that are shown even if the screen gets longer by them."""


def box_first_screen(design: BoxDesign, *, last: Sequence[str]) -> str:
    """The text of a design for boxes, without a final newline.

    It has at most 25 lines, unless values that are promised together, or remarks on the search,
    need more.

    Parameters
    ----------
    design : BoxDesign
    last : sequence of str
        Lines on the files that were written and the next command.
    """
    channel = design.channel
    # The parts above and below the table of columns are never cut.
    kept = kept_sentence(
        design.nmi,
        design.upper_bound_nmi,
        beyond_given=bool(channel.given),
        rivals="channel for these boxes",
    )
    before = layout.all_lines([lead(channel), *promise_lines(design.audit)])
    before += ["", *layout.lines_of(kept)]
    before += layout.all_lines(own_lines(design.utility, channel))
    before += layout.all_lines(law_lines(design.utility, channel))
    limits = scope_items(channel, design.notion, design.utility)
    after = ["", "Not covered", *layout.item_lines(limits), "", FULL, *last]

    # What is left goes to the columns first, and then to the remarks.
    room = MOST_LINES - len(before) - len(after)
    columns = _columns(design, room)
    remarks = _remarks(design, room - len(columns))
    return "\n".join([*before, *columns, *remarks, *after])


def _columns(design: BoxDesign, room: int) -> list[str]:
    """A line for each released column, as many as there is room for."""
    if design.channel.people is not None:
        truth_of = truth_by_column(design.channel) or {}
        rows = [["column", "unchanged cells"]]
        for name, share in truth_of.items():
            rows.append([name, wording.percent_at_least(share)])
        return lines_within(rows, max(room, MOST_COLUMNS), "more column")
    truth = box_truth(design.channel)
    header = ["column", "kept by itself"]
    if truth is not None:
        header.append("unchanged cells")
    rows = [header]
    for place, column in enumerate(design.utility.columns):
        row = [wording.title(column.columns), wording.percent_at_least(column.share)]
        if truth is not None:
            row.append(wording.percent_at_least(truth[place]))
        rows.append(row)
    return lines_within(rows, room, "more column")


def _remarks(design: BoxDesign, room: int) -> list[str]:
    """What limits the promise and the search, whole; then how the boxes came about, if it fits."""
    channel = design.channel
    # Which values are promised only together, and that a search was stopped, is never cut.
    needed = layout.all_lines(
        [
            *part_lines(channel),
            *fill_lines(channel),
            *layout.remark_sentences(design.messages),
        ]
    )
    origin = [slice_sentence(design.utility, channel)]
    if design.nmi < LITTLE and design.limit is not None:
        origin.append(_rare_value(channel))
    optional = layout.all_lines(origin)
    if len(needed) + len(optional) <= room:
        return [*needed, *optional]
    return [*needed, "Further remarks:  --full"]


def _rare_value(channel: BoxChannel) -> str:
    """The sensitive value that costs most, and the option that helps."""
    secret = wording.title(channel.sensitive.columns)
    rarest = rarest_values(channel, 1)
    named = ""
    if rarest:
        named = f", {rarest[0]},"
    return (
        f"The value of {secret} with the fewest records{named} costs most; "
        f"{rare_remedy(channel)}."
    )
