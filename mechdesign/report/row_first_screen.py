"""The first screen of a release of rows: some 25 lines; `--full` has the rest.

The order is that of the questions people ask: how far can a released row move a belief, for the
table and for the population behind it; what do analysts read; which cells change; what is not
covered; what comes next. ::

    education x hours of every record is released as a row of the table; income is protected.
    Of the people whom any rule picks by their released rows, at most 39.7 % have the income >50K
    (24.1 % of all do).                                                         (`_rule_lines`)
    Table: a released row makes any value of income 0.6 to 1.65 times as probable (verified).

    column     unchanged  if constant
    education     88.1 %       32.3 %                                          (`_column_lines`)

    What an analyst reads: ..                                                  (`law_lines`)

Numbers are short, and never more favourable than the proven ones.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mechdesign.channel.record import RELATIVE
from mechdesign.mechanisms.plan_costs import CodedCells
from mechdesign.mechanisms.result import Design
from mechdesign.report import layout, wording
from mechdesign.report.asked import names_of
from mechdesign.report.first_lines import (
    FULL,
    MOST_LINES,
    lines_within,
    promise_lines,
    uncovered_lines,
)
from mechdesign.report.groups_section import group_lines
from mechdesign.report.law_section import law_lines
from mechdesign.report.record import Belief, Report
from mechdesign.tables.joint import Joint

MOST_NAMED = 6
"""Released columns that the first sentence names; `--full` has all."""

MOST_COLUMNS = 10
"""Released columns that are shown even if the screen gets longer by them."""

LITTLE = 0.2
"""Share of unchanged cells below which a release is of little use, and says so first."""


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
    before = [*_useless(design), *layout.lines_of(_lead(design, joint, report))]
    before += layout.lines_of(rule_sentence(design, report))
    before += [*promise_lines(design, report), ""]
    law = [line for text in law_lines(design.law) for line in layout.lines_of(text)]
    sentences = group_lines(
        design.smallest_group,
        known=design.known,
        rows=len(joint.useful),
        released=design.outputs,
        single=design.single_rows,
    )
    groups = [line for text in sentences for line in layout.lines_of(text)]
    remarks = layout.all_lines(layout.remark_sentences(design.messages))
    after = ["", *uncovered_lines(design, report), "", FULL, *last]
    fixed = len(before) + len(law) + len(groups) + len(remarks) + len(after)
    columns = _column_lines(design, joint, MOST_LINES - fixed)
    return "\n".join([*before, *columns, *law, *groups, *remarks, *after])


def _useless(design: Design) -> list[str]:
    """The first lines of a release in which hardly a cell is true."""
    least = design.least
    if least is None or least.truth >= LITTLE:
        return []
    share = wording.tenths_at_least(least.truth)
    return layout.lines_of(
        f"Of little use: only {share} of the cells are released as they are. Give a larger budget, "
        "or release fewer columns."
    )


def _lead(design: Design, joint: Joint, report: Report) -> str:
    """What is released, and what is protected."""
    channel = design.channel
    released = [name for name in channel.useful.columns if name not in channel.given]
    names = wording.title(tuple(released[:MOST_NAMED]))
    left = len(released) - MOST_NAMED
    if left > 0:
        names += f" and {wording.count(left, 'other column')}"
    sensitive = names_of(report.asked)[0]
    given = ""
    if channel.given:
        given = f", beside {wording.title(channel.given)} as it is"
    rows = wording.count(len(channel.useful), "row")
    return (
        f"{names} of every record is released as a row of the table ({rows}){given}; {sensitive} "
        "is protected."
    )


def rule_sentence(design: Design, report: Report) -> str:
    """What no rule that picks people by their released rows exceeds, of the value that can change
    most (docs/explanation/rows-theory.md, proposition 6).
    """
    belief = _most_raised(report.promise.beliefs)
    sensitive = names_of(report.asked)[0]
    if belief is None or design.channel.record.promise_kind == RELATIVE:
        return ""
    most = wording.percent_at_most(belief.highest, step=wording.TENTH)
    share = wording.percent(belief.before, step=wording.TENTH)
    value = wording.label(belief.symbol)
    return (
        f"Of the people whom any rule picks by their released rows, at most {most} have "
        f"{sensitive} {value} ({share} of all do)."
    )


def _most_raised(beliefs: Sequence[Belief]) -> Belief | None:
    """The belief that a released row can raise most."""
    if not beliefs:
        return None
    return max(beliefs, key=lambda belief: belief.highest - belief.before)


def _column_lines(design: Design, joint: Joint, room: int) -> list[str]:
    """A line for each column, as many as there is room for.

    `if constant` is what the most frequent value alone would leave unchanged: without it nobody can
    judge the unchanged cells of a column of two values.
    """
    truth = design.truth or {}
    constant = constant_truth(joint)
    rows: list[Sequence[str]] = [("column", "unchanged", "if constant")]
    for name, share in truth.items():
        rows.append(
            (
                wording.label(name),
                wording.tenths_at_least(share),
                wording.percent(constant[name], step=wording.TENTH),
            )
        )
    most = max(MOST_COLUMNS + 1, room - 1)
    return [*lines_within(rows, most, "more column"), ""]


def constant_truth(joint: Joint) -> dict[str, float]:
    """For each column the share of the records that have its most frequent value."""
    cells = CodedCells.of(joint.useful)
    shares: dict[str, float] = {}
    for k, name in enumerate(cells.columns):
        masses = np.bincount(cells.codes[:, k], joint.p_x)
        shares[name] = float(masses.max())
    return shares
