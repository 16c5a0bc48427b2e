"""The first screen of a release of rows: some 25 lines; `--full` has the rest.

The order is that of the questions people ask: how far can a released row move a belief, for the
table and for the population behind it; what do analysts read; which cells change; what is not
covered; what comes next. ::

    education x hours of every record is released as a row of the table; income is protected.
    Of the people whom any rule picks by their released rows, at most about 4 in 10 (39.7 %) are
    expected to have income >50K; about 1 in 4 of all people do (24.1 %).   (`rule_sentences`)
    Table: a released row makes any value of income 0.6 to 1.65 times as probable (verified).

    column     unchanged  if constant
    education     88.1 %       32.3 %                                          (`_column_lines`)

    What an analyst reads: ..                                                  (`Report.law`)

Numbers are short, and never more favourable than the proven ones.
"""

from __future__ import annotations

from collections.abc import Sequence

from mechdesign.mechanisms.result import Design
from mechdesign.report import layout, wording
from mechdesign.report.asked import protected
from mechdesign.report.column_shares import HEADER, column_rows
from mechdesign.report.first_lines import (
    FULL,
    MOST_LINES,
    lines_within,
    little_use_lines,
    promise_lines,
    uncovered_lines,
)
from mechdesign.report.groups_section import group_lines
from mechdesign.report.record import Report
from mechdesign.report.rule_sentences import rule_sentences
from mechdesign.tables.joint import Joint
from mechdesign.tables.people import RECORDS, People

MOST_NAMED = 6
"""Released columns that the first sentence names; `--full` has all."""

MOST_COLUMNS = 10
"""Released columns that are shown even if the screen gets longer by them."""


def row_first_screen(
    design: Design, report: Report, joint: Joint, *, last: Sequence[str]
) -> str:
    """The text of a design of rows, without a final newline.

    It has at most 25 lines, unless ten columns or remarks on the search need more.

    Parameters
    ----------
    design : Design
    report : Report
        The summary of the design.
    joint : Joint
        Its table.
    last : sequence of str
        Lines on the files that were written and the next command.
    """
    before = [*little_use_lines(design), *layout.lines_of(_lead(design, joint, report))]
    for rule in rule_sentences(report.promise, report.asked):
        before += layout.lines_of(rule)
    before += promise_lines(design, report)
    # Budgets on averages.
    for sentence in report.purpose:
        before += layout.lines_of(sentence)
    before.append("")
    law = layout.all_lines(report.law)
    sentences = group_lines(
        design.smallest_group,
        known=design.known,
        rows=len(joint.useful),
        released=design.outputs,
        single=design.single_rows,
        of_people=joint.useful.people is not None,
    )
    groups = [line for text in sentences for line in layout.lines_of(text)]
    remarks = layout.all_lines(layout.remark_sentences(design.messages))
    after = ["", *uncovered_lines(design, report), "", FULL, *last]
    fixed = len(before) + len(law) + len(groups) + len(remarks) + len(after)
    columns = _column_lines(design, joint, MOST_LINES - fixed)
    return "\n".join([*before, *columns, *law, *groups, *remarks, *after])


def _lead(design: Design, joint: Joint, report: Report) -> str:
    """What is released, and what is protected."""
    channel = design.channel
    people = channel.useful.people
    if people is not None:
        return _lead_of_people(people, joint, report)
    released = [name for name in channel.useful.columns if name not in channel.given]
    names = wording.title(tuple(released[:MOST_NAMED]))
    left = len(released) - MOST_NAMED
    if left > 0:
        names += f" and {wording.count(left, 'other column')}"
    sensitive = protected(report.asked)
    given = ""
    if channel.given:
        given = f", beside {wording.title(channel.given)} as it is"
    rows = wording.count(len(channel.useful), "row")
    return (
        f"{names} of every record is released as a row of the table ({rows}){given}; {sensitive} "
        "is protected."
    )


def _lead_of_people(people: People, joint: Joint, report: Report) -> str:
    """What is released of people with several records."""
    names = wording.title(people.released[:MOST_NAMED])
    left = len(people.released) - MOST_NAMED
    if left > 0:
        names += f" and {wording.count(left, 'other column')}"
    beside = wording.title((*people.given, RECORDS))
    sequences = wording.count(len(joint.useful), "sequence")
    size = wording.count(people.longest, "record")
    number = "people" if joint.records is None else f"{joint.records:,} people"
    return (
        f"{names} of all records of a person are released together as those of a person of the "
        f"table ({number} with at most {size}, {sequences}), beside {beside} as it is; "
        f"{protected(report.asked)} is protected."
    )


def _column_lines(design: Design, joint: Joint, room: int) -> list[str]:
    """A line for each column, as many as there is room for, and ten at least."""
    rows = [HEADER, *column_rows(design.truth or {}, joint)]
    most = max(MOST_COLUMNS + 1, room - 1)
    return [*lines_within(rows, most, "more column"), ""]
