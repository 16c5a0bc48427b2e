"""What the buttons of the page lead to, as plain texts and numbers, and what searches share.

Each button has its result: an `Assessed`, a `Designed`, a `Released` or a `Judged`. All figures but
widths of bars are texts, rounded already, and bounds outwards. Those of a design are in sections of
its report.

These classes travel from the process of a search to the session (`Work`), and from there into the
template. They hold no objects of the mathematics, so the page can neither change nor recompute a
figure, and the pipe carries no arrays.

*What searches share*: `joint_of` counts the protected and the released columns, `progress_to` turns
each step of a search into a line of the page, `design_files` are the downloads of the result, and
`recipe_files` those that repeat the search.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import mechdesign as md
from mechdesign.app.choice import Choice
from mechdesign.app.memory_table import MemoryTable
from mechdesign.app.recipes import CHANNEL, command_of, job_of, script_of
from mechdesign.core.errors import errors_naming
from mechdesign.core.wording import quoted

if TYPE_CHECKING:
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
    sections : str
        The sections of its report that the page shows, as HTML.
    readings : tuple of Reading
        What an analyst reads before and after, in expectation; empty for labels and boxes.
    useless : str
        Why the channel is of little use; empty otherwise.
    text : str
        The design as `mechdesign design` prints it.
    """

    title: str
    sections: str
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
    """What attacks on the released file found: in short, the text of `mechdesign judge`, and the
    page with all figures.
    """

    short: tuple[str, ...]
    text: str
    file: Download


# ---------------------------------------------------------------------------- searching

REMEDY = " Choose a larger factor, release fewer columns, or put numbers into bins."
"""What may help a channel of little use."""


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
