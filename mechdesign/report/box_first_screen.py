"""The first screen of a release of boxes: at most 25 lines; `--full` has the rest.

It has these parts in their order::

    lead, promise_lines   Job and Hours are released together in boxes of values; ..
                          Population (95% confidence): ..       whole
    kept_sentence         Kept: 31.2% of the information ..     whole
    _columns              a table with a line for each column   cut to the lines left
    _remarks              limits of promise and search          whole
                          how the boxes came about              left out without room
    population_items      Not covered: ..                       whole
    FULL, `last`          files written, the next command       whole

The lines of the whole parts are counted first. `_columns` takes what it needs of the others, then
`_remarks`; what is cut says that `--full` has it. The population comes before the table: the
promise is made for it, and what the table shows is smaller.
"""

from __future__ import annotations

from collections.abc import Sequence

from mechdesign.channel.box_claims import BoxUtility
from mechdesign.mechanisms.result import Design
from mechdesign.report import layout, wording
from mechdesign.report.asked import request_of
from mechdesign.report.boxes import (
    LITTLE,
    columns_of,
    fill_lines,
    own_lines,
    part_lines,
    promise_lines,
    proven,
    rare_lines,
    slice_sentence,
    truth_by_column,
)
from mechdesign.report.document import lead_of
from mechdesign.report.first_lines import (
    FULL,
    MOST_LINES,
    kept_sentence,
    lines_within,
)
from mechdesign.report.law_section import channel_law_lines
from mechdesign.report.scope_texts import population_items

MOST_COLUMNS = 6
"""Lines on the columns of people that are shown even if the screen gets longer by them."""

OTHERS = "Other columns in the file, and a second release of the same record."

OTHERS_OF_PEOPLE = (
    "Other columns in the file, and other records of these people, in another file or of another "
    "time."
)


def box_first_screen(design: Design, *, last: Sequence[str]) -> str:
    """The text of a design for boxes, without a final newline.

    It has at most 25 lines, unless values that are promised together, or remarks on the search,
    need more.

    Parameters
    ----------
    design : Design
    last : sequence of str
        Lines on the files that were written and the next command.
    """
    channel = design.channel
    audit, utility = proven(design)
    # The parts above and below the table of columns are never cut.
    kept = kept_sentence(
        utility.nmi,
        utility.upper_bound_nmi,
        beyond_given=bool(channel.given),
        rivals="channel for these boxes",
    )
    request = request_of(channel, design.notion)
    before = layout.all_lines([lead_of(request), *promise_lines(channel, audit)])
    before += ["", *layout.lines_of(kept)]
    before += layout.all_lines(own_lines(utility, channel))
    before += layout.all_lines(channel_law_lines(channel, None))
    unproven = utility.records - channel.boxed.claims.slice_records
    limits = [
        *population_items(design.notion, request, unproven),
        OTHERS_OF_PEOPLE if request.of_people else OTHERS,
    ]
    after = ["", "Not covered", *layout.item_lines(limits), "", FULL, *last]

    # What is left goes to the columns first, and then to the remarks.
    room = MOST_LINES - len(before) - len(after)
    columns = _columns(design, room)
    remarks = _remarks(design, utility, room - len(columns))
    return "\n".join([*before, *columns, *remarks, *after])


def _columns(design: Design, room: int) -> list[str]:
    """A line for each released column, as many as there is room for."""
    if design.channel.people is not None:
        truth_of = truth_by_column(design.channel) or {}
        rows = [["column", "unchanged cells"]]
        for name, share in truth_of.items():
            rows.append([name, wording.percent_at_least(share)])
        return lines_within(rows, max(room, MOST_COLUMNS), "more column")
    rows = [["column", "kept by itself", "unchanged cells"]]
    for column in columns_of(design.channel):
        row = [wording.title(column.columns), wording.percent_at_least(column.kept)]
        if column.truth is not None:
            row.append(wording.percent_at_least(column.truth))
        rows.append(row)
    header = rows[0][: min(map(len, rows))]
    return lines_within([header, *rows[1:]], room, "more column")


def _remarks(design: Design, utility: BoxUtility, room: int) -> list[str]:
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
    origin = [slice_sentence(utility, channel)]
    if utility.nmi < LITTLE:
        origin += rare_lines(channel, utility)
    optional = layout.all_lines(origin)
    if len(needed) + len(optional) <= room:
        return [*needed, *optional]
    return [*needed, "Further remarks:  --full"]
