"""What the buttons of the page lead to, as plain texts and numbers, and what searches share.

Each button has its result: an `Assessed`, the points of a curve (`CurvePoint`), a `Designed`,
which the three searches fill alike, a `Released` or a `Judged`. All figures but those of the curve
and widths of bars are texts, rounded already, and bounds outwards: ::

    BeliefRow(symbol="flu", before="10.0 %", lowest="5.0 %", highest="19.8 %")
    Meaning(group="", released="clerk", share="33.3 %", behind="clerk 80.0 %; nurse 20.0 %")
    Move(released="clerk", symbol="flu", before="10.0 %", after="17.2 %")

These classes travel from the process of a search to the session (`Work`), and from there into the
template. They hold no objects of the mathematics, so the page can neither change nor recompute a
figure, and the pipe carries no arrays.

*What searches share*: counts, progress, words, downloads. `column_search` and `box_search` call
these in the order of a search:

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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import mechdesign as md
from mechdesign.app.choice import Choice
from mechdesign.app.memory_table import MemoryTable
from mechdesign.app.recipes import CHANNEL, command_of, job_of, script_of
from mechdesign.core.errors import errors_naming
from mechdesign.core.wording import quoted

if TYPE_CHECKING:
    from mechdesign.auditing.verdict import Achieved
    from mechdesign.core.progress import Step
    from mechdesign.report.record import Report


Say = Callable[[str], None]
"""Takes a line on the progress."""

HTML = "text/html; charset=utf-8"
TEXT = "text/plain; charset=utf-8"
JSON = "application/json"
CSV = "text/csv; charset=utf-8"


@dataclass(frozen=True)
class ColumnSays:
    """What a column says about the protected one, in a sentence and in two words."""

    column: str
    text: str
    brief: str


@dataclass(frozen=True)
class Assessed:
    """The assessment: a line for each column, the whole text, and the plan, if one was made."""

    columns: tuple[ColumnSays, ...]
    text: str
    plan: Planned | None = None


@dataclass(frozen=True)
class Planned:
    """Trials of releases on a sample, and what they advise.

    Attributes
    ----------
    sentences : tuple of str
        What the trials are, and their advice.
    header : tuple of str
        Of the table of trials.
    rows : tuple of tuple of str
    released : tuple of str
        The columns that are advised to be released; all others are left out.
    given : tuple of str
        Those of them that are advised to be given as they are.
    bins : dict of str to str
        Their bins, as ``--bin`` takes them.
    factor : str
        The advised budget.
    has_gaps : bool
        Whether cells are empty, and become a value of their own.
    command : str
    """

    sentences: tuple[str, ...]
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    released: tuple[str, ...]
    given: tuple[str, ...]
    bins: Mapping[str, str]
    factor: str
    has_gaps: bool
    command: str


@dataclass(frozen=True)
class ShareBar:
    """The shares of a value before and after, in words and as widths in per cent of the longest."""

    label: str
    before: str
    after: str
    before_width: float
    after_width: float


@dataclass(frozen=True)
class Reading:
    """What an analyst reads of a column, or of a pair of columns, before and after.

    `distance` is the total variation, in words; `others` values are not drawn.
    """

    columns: tuple[str, ...]
    distance: str
    bars: tuple[ShareBar, ...]
    others: int


@dataclass(frozen=True)
class CurvePoint:
    """A budget, as the factor K of lifts from 1/K to K, and what the best channel keeps.

    `kept` and `bound` are shares of the information, from 0 to 1; no channel keeps more than
    `bound`, and it is None where none was proven.
    """

    factor: float
    kept: float
    bound: float | None


@dataclass(frozen=True)
class BeliefRow:
    """The probability of a protected value before, and its bounds after a released value."""

    symbol: str
    before: str
    lowest: str
    highest: str


@dataclass(frozen=True)
class Meaning:
    """A released value, its share of the records, and the true values behind it.

    `group` is its column where there are several, or the given values of its records, or empty.
    """

    group: str
    released: str
    share: str
    behind: str


@dataclass(frozen=True)
class Move:
    """A released value or row, and the protected value whose probability it changes most.

    `before` is P(s), or P(s|given) in a stratum, and `after` is P(s|y).
    """

    released: str
    symbol: str
    before: str
    after: str


@dataclass(frozen=True)
class OutputFactors:
    """A released label of boxes, and how many times as probable it makes a protected value.

    `group` is the given values of its records, or empty. `table` is the range of factors in this
    table, and `population` the wider one that the promise bounds.
    """

    group: str
    released: str
    table: str
    population: str


@dataclass(frozen=True)
class Download:
    """A file that the user may take away; it is in memory until then.

    `is_public` tells what may be given to everybody from what stays with those who may see the
    data.
    """

    name: str
    about: str
    media_type: str
    text: str
    is_public: bool = False


@dataclass(frozen=True, kw_only=True)
class Designed:
    """A verified design, in words and as files.

    Attributes
    ----------
    unit : str
        What is released: a value, a row or a box.
    facts : tuple of (title, text)
        The promises, what is kept, and what limits it.
    unchanged : tuple of (column, share)
        The expected share of the cells of a column that stay as they are.
    worst, factors
        What changes a probability most; for boxes `factors`, for others `worst`.
    boxes : tuple of str
        The rows of every box.
    together : tuple of str
        The protected values that are promised as one.
    readings : tuple of Reading
        What an analyst reads before and after, in expectation; empty for labels and boxes.
    useless : str
        Why the channel is of little use; empty otherwise.
    text : str
        The design as `mechdesign design` prints it.
    """

    title: str
    unit: str
    facts: tuple[tuple[str, str], ...]
    unchanged: tuple[tuple[str, str], ...]
    beliefs: tuple[BeliefRow, ...]
    beliefs_note: str
    meanings: tuple[Meaning, ...]
    worst: tuple[Move, ...] = ()
    factors: tuple[OutputFactors, ...] = ()
    boxes: tuple[str, ...] = ()
    together: tuple[str, ...] = ()
    readings: tuple[Reading, ...] = ()
    useless: str = ""
    text: str
    messages: tuple[str, ...]
    files: tuple[Download, ...]
    command: str
    script: str

    @property
    def channel_text(self) -> str | None:
        """The text of the channel file; None if there is none."""
        for file in self.files:
            if file.name == "channel.json":
                return file.text
        return None


@dataclass(frozen=True, kw_only=True)
class Released:
    """A released file, in words and as files.

    Attributes
    ----------
    facts : tuple of (title, text)
    check : str
        What `mechdesign check` says of the file.
    is_plausible : bool
        Whether the file passed the check.
    readings : tuple of Reading
        What an analyst reads before and after.
    messages : tuple of str
    files : tuple of Download
    """

    facts: tuple[tuple[str, str], ...]
    check: str
    is_plausible: bool
    readings: tuple[Reading, ...]
    messages: tuple[str, ...]
    files: tuple[Download, ...]

    def file(self, name: str) -> Download:
        """The file of this name."""
        for file in self.files:
            if file.name == name:
                return file
        raise KeyError(name)


@dataclass(frozen=True)
class Judged:
    """What attacks on the released file found: the strongest ones, the text of `mechdesign judge`,
    and the page with all figures.
    """

    facts: tuple[tuple[str, str], ...]
    text: str
    file: Download


# ---------------------------------------------------------------------------- searching

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
    from mechdesign.tables.people_tables import PeopleRoles, people_of_table

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
    return people_of_table(table.frame, roles, choice.missing)


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
    named = zip(names, shares, strict=True)
    for name, share in w.in_reading_order(named, lambda one: one[0]):
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
