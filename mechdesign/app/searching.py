"""What the searches for channels of every kind share: counts, progress, words, downloads.

`column_search` and `box_search` call these in the order of a search:

1. `joint_of` counts the protected and the released columns. `progress_to` turns each step of the
   search into a line of the page.
2. `belief_rows` tells what any released value can do to the probability of a protected one. It is
   P(s) times the two ends of the lifts P(s|y) / P(s): with P(s) = 10 % and eps_l = eps_u = 0.68
   the row is "10.0 %, 5.0 %, 19.8 %". A column takes these bounds from its report instead.
3. `behind_text` tells which true values are behind a released one, by P(x|y): "nurse 61.0 %; clerk
   20.5 %; 4 others". `factors` and `verdict_text` put the audit into words.
4. `design_files` are the downloads of the result, and `recipe_files` those that repeat the search.

Every figure of a promise is rounded outwards: the page never says less than what may happen.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import mechdesign as md
from mechdesign.app.choice import Choice
from mechdesign.app.memory_table import MemoryTable
from mechdesign.app.recipes import CHANNEL, command_of, job_of, script_of
from mechdesign.app.results import HTML, JSON, TEXT, BeliefRow, Download, Say
from mechdesign.core.errors import errors_naming
from mechdesign.core.wording import quoted

if TYPE_CHECKING:
    from mechdesign.auditing.verdict import Achieved
    from mechdesign.core.progress import Step
    from mechdesign.report.record import Report

REMEDY = " Choose a larger factor, release fewer columns, or put numbers into bins."
"""What may help a channel of little use."""

BEYOND_GIVEN = " as for somebody with the same given columns"
"""Ends a promise that takes the given columns as known, after "0.5 to 2 times as probable"."""

MOST_MEANINGS = 60
"""Released values of a column that the page lists."""

MOST_BEHIND = 3
"""True values that are listed for a released one."""

OUTWARDS = 1e-12
"""Relative margin of the bounds on beliefs: far above the rounding of exp and of a product."""


def joint_of(table: MemoryTable, choice: Choice) -> md.Joint:
    """The counts N(s, x) of the protected columns crossed, and of the given and released ones."""
    if choice.missing == "refuse":
        _refuse_empty(table, choice)
    if choice.person:
        return _joint_of_people(table, choice)
    joint = md.Joint.from_table(
        table.frame,
        sensitive=list(choice.sensitive),
        useful=[*choice.given, *choice.released],
        missing=choice.missing,
    )
    for name, bins in choice.used_bins.items():
        check_bins(joint, name, bins)
    return joint


def _joint_of_people(table: MemoryTable, choice: Choice) -> md.Joint:
    """The counts of people, whose symbols are the sequences of their records in the file."""
    from mechdesign.mechanisms.people_request import bins_of_people
    from mechdesign.tables.people_tables import PeopleRoles, people_of_frame

    roles = PeopleRoles(
        person=choice.person,
        wave=None,
        sensitive=choice.sensitive,
        released=choice.released,
        given=choice.given,
        bins=bins_of_people(
            choice.used_bins or None, (*choice.given, *choice.released)
        ),
    )
    return people_of_frame(table.frame, roles, choice.missing)


def _refuse_empty(table: MemoryTable, choice: Choice) -> None:
    """Raise InputError where a used column has empty cells, and nobody said what they are."""
    for name in choice.used:
        empty = table.frame.column(name).null_count
        if empty:
            cells = "an empty cell" if empty == 1 else f"{empty:,} empty cells"
            raise md.InputError(
                f"The column {quoted(name)} has {cells}: choose in step 2 what empty cells are."
            )


def check_bins(joint: md.Joint, column: str, bins: str) -> None:
    """Refuse bins that do not fit their column, with its name as the page has it.

    Raises
    ------
    InputError
        As `Joint.binned` does.
    """
    from mechdesign.tables.bin_edges import AUTO, bins_for

    if bins == AUTO:
        # These depend on the budget, and fit every column of numbers.
        return
    place = joint.useful.columns.index(column)
    cells: Counter[str] = Counter()
    for symbol, count in zip(joint.useful.symbols, joint.useful_counts, strict=True):
        # An empty cell that is a value of its own is in no bin.
        if symbol[place]:
            cells[symbol[place]] += int(count)
    with errors_naming(f"Bins of {column}"):
        bins_for(column, bins, list(cells.items()))


def progress_to(say: Say) -> Callable[[Step], None]:
    """What a search reports its steps to."""
    return lambda step: say(str(step))


def design_files(result: md.Design, report: Report) -> tuple[Download, ...]:
    """The channel file of a design and its reports as downloads, each also for everybody."""
    from mechdesign.channel.file import text_of
    from mechdesign.report.collect import attributed
    from mechdesign.report.content import public_report
    from mechdesign.report.writing import report_text

    channel = result.channel
    public = public_report(channel, result.notion, satisfied=result.verified)
    public_html = report_text(attributed(public, channel, ()), ".html")
    html = report_text(report, ".html")
    return (
        Download(
            CHANNEL,
            "Channel file, with the counts of the table: keep it to yourself",
            JSON,
            text_of(channel),
        ),
        Download("report.html", "Report for those who may see the data", HTML, html),
        Download("public-report.html", "Report for everybody", HTML, public_html, True),
        Download(
            "public-channel.json",
            "Channel file for everybody",
            JSON,
            text_of(channel.public()),
            True,
        ),
    )


def recipe_files(choice: Choice, table: MemoryTable) -> tuple[Download, ...]:
    """The job file, the script and the command as downloads."""
    command = command_of(choice, table)
    return (
        Download(
            "job.toml", "Job file for mechdesign run", TEXT, job_of(choice, table)
        ),
        Download("design.py", "Python script", TEXT, script_of(choice, table)),
        Download("design.sh", "Shell command", TEXT, f"#!/bin/sh\n{command}\n"),
    )


def behind_text(shares: Sequence[tuple[str, float]]) -> str:
    """The most probable true values behind a released one, and the number of the others.

    `shares` are P(x|y) by the name of x. For example: "nurse 61.0 %; clerk 20.5 %; 4 others".
    """
    from mechdesign.report import wording as w

    largest_first = sorted(shares, key=lambda named: -named[1])
    parts: list[str] = []
    for name, share in largest_first[:MOST_BEHIND]:
        parts.append(f"{w.label(name)} {w.percent(share)}")
    others = len(largest_first) - MOST_BEHIND
    if others > 0:
        parts.append(w.count(others, "other"))
    return "; ".join(parts)


def belief_rows(
    names: Sequence[str], shares: Sequence[float], achieved: Achieved
) -> tuple[BeliefRow, ...]:
    """Before and after for every protected value, from the exact factors of the whole channel.

    `shares` are the prior probabilities P(s). After any released value y, P(s|y) is between
    exp(-eps_l) P(s) and exp(eps_u) P(s).
    """
    from mechdesign.report import wording as w

    # From P(s|y) = P(s) l(s, y) and exp(-eps_l) <= l(s, y) <= exp(eps_u). The bound need not be
    # reached for every s, since the budgets are those of the worst one.
    lower = math.exp(-achieved.eps_l) * (1.0 - OUTWARDS)
    upper = math.exp(achieved.eps_u) * (1.0 + OUTWARDS)
    rows: list[BeliefRow] = []
    for name, share in zip(names, shares, strict=True):
        rows.append(
            BeliefRow(
                symbol=w.label(name),
                before=w.percent(share),
                lowest=w.percent_at_least(share * lower),
                # A frequent value times the largest factor may exceed 1, which no probability does.
                highest=w.percent_at_most(min(1.0, share * upper)),
            )
        )
    return tuple(rows)


def factors(lower: float, upper: float) -> str:
    """The budgets `lower` = eps_l and `upper` = eps_u (nats) as factors, rounded outwards.

    ln 2 and ln 2 are "0.5 to 2 times".
    """
    from mechdesign.report import wording as w

    low = w.short_factor(lower, upper=False)
    high = w.short_factor(upper, upper=True)
    return f"{low} to {high} times"


def verdict_text(satisfied: bool) -> str:
    """The exact verdict in words."""
    if satisfied:
        return "verified exactly"
    return "VIOLATED"
