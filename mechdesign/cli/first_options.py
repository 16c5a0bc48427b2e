"""What a newcomer reads first: the short help of each command, and the answer to `mechdesign`
alone.

Somebody who reads `--help` for the first time needs some twenty options, those in words before
those in nats: FIRST_OPTIONS has their names, by command and in the order of the help. The others
are in `--help-all`, so an option that is added elsewhere appears there by itself. COMMANDS has the
group of each command, as ``"audit": VERIFY``. `line` writes both helps, and `application` the
groups of commands. The names are here, apart from the options, because the help of the program must
load no command.

*Welcome.* Whoever has just installed the program types its name, or drops a file behind it. The
answer is a short text with commands to copy, of a file with its columns::

    people.csv: 3,000 records, 3 columns.

      column  values
      id       3,000  names records: not to be released
      job          5
      income       2
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

CHOOSE = "Choose: what to release, and how much privacy it costs"
RELEASE = "Release"
VERIFY = "Verify"
STUDY = "Study"

COMMANDS = {
    "app": CHOOSE,
    "assess": CHOOSE,
    "compare": CHOOSE,
    "design": CHOOSE,
    "inspect": CHOOSE,
    "apply": RELEASE,
    "export": RELEASE,
    "quantize": RELEASE,
    "report": RELEASE,
    "releases": RELEASE,
    "run": RELEASE,
    "audit": VERIFY,
    "check": VERIFY,
    "compose": VERIFY,
    "judge": VERIFY,
    "show": VERIFY,
    "estimate": STUDY,
    "nonstochastic": STUDY,
}
"""Every command with its group, in the order of the help."""

EARLIER_NAMES = ("measure",)
"""Commands that are part of others now; scripts may call them, and the help does not list them."""

NAMES = (*COMMANDS, *EARLIER_NAMES)
"""The words that may come first."""

OF_THE_PROGRAM = ("--quiet", "--log-json", "--debug")
"""Options of every command that the help of the program has once."""

TABLE = ("--sensitive", "--useful", "--contingency", "--weight")
"""The columns of a table, and its two other forms."""

END = ("--json", "--force", "--help-all", "--help")
"""The last options of every command; those that a command does not have are left out."""

FIRST_OPTIONS = {
    "design": (
        *TABLE,
        "--missing",
        "--bin",
        "--at-most-times",
        "--at-least-times",
        "--max-posterior",
        "--keep",
        "--epsilon",
        "--confidence",
        "--after",
        "--release",
        "--objective",
        "--time-limit",
        "--output",
        "--public",
        "--full",
        "--report",
        "--public-report",
        *END,
    ),
    "compare": (
        *TABLE,
        "--missing",
        "--bin",
        "--recommend",
        "--epsilons",
        "--mechanisms",
        "--release",
        "--given",
        "--epsilon",
        "--confidence",
        "--time-limit",
        "--workers",
        "--output",
        "--plot",
        *END,
    ),
    "apply": (
        "--drop",
        "--keep",
        "--column",
        "--keep-sensitive",
        "--shuffle",
        "--as",
        "--unknown",
        "--ledger",
        "--key-from",
        "--identity",
        "--changed",
        "--manifest",
        "--codebook",
        "--dry-run",
        *END,
    ),
    "quantize": (
        "--column",
        "--query",
        "--group-by",
        "--epsilon",
        "--total-epsilon",
        "--individual",
        "--range",
        "--outside",
        "--drop",
        "--keep",
        "--ledger",
        "--mechanism",
        "--compare",
        *END,
    ),
    "releases": ("--ledger", "--key-from", "--channel", "--table", *TABLE, *END),
    "audit": (
        "--table",
        *TABLE,
        "--matrix",
        "--at-most-times",
        "--at-least-times",
        "--notion",
        "--epsilon",
        "--lam",
        "--after",
        "--breach",
        "--certificate",
        "--all-measures",
        *END,
    ),
    "check": (
        "--channel",
        "--original",
        "--column",
        "--released-column",
        "--keep-sensitive",
        "--as",
        "--unknown",
        "--identity",
        "--ignore",
        "--false-alarm",
        "--any-data",
        *END,
    ),
    "compose": ("--table", *TABLE, "--protect-each", *END),
    "estimate": (
        "--channel",
        "--column",
        "--released-column",
        "--as",
        "--by",
        "--of",
        "--level",
        "--method",
        "--target",
        "--identity",
        "--csv",
        *END,
    ),
    "measure": ("--table", *TABLE, "--alpha", "--order", "--per-output", *END),
}
"""For each command with a long help: the options that its short help shows, in order."""


# ------------------------------------------------------------------------------ welcome

GREETING = """\
mechdesign releases columns of a table so that a secret stays secret, with a proof, and says what
that costs. Begin with your file (CSV, Parquet, SPSS, Stata, SAS):

  mechdesign people.csv                    its columns, and the commands that fit it
  mechdesign assess people.csv --sensitive COL     what the other columns say about COL
  mechdesign design people.csv --sensitive COL --release all --at-most-times 2 --output channel.json
  mechdesign apply channel.json people.csv released.csv
  mechdesign judge released.csv --original people.csv --sensitive COL --channel channel.json

  mechdesign app people.csv                the same on a page in your browser
  mechdesign --help                        all commands"""
"""What the program answers without a word."""

MOST_COLUMNS = 40
"""Columns that are listed."""


def welcome(arguments: Sequence[str]) -> str:
    """The answer to such a line."""
    if not arguments or arguments[0] == "help":
        return GREETING
    return _of_file(arguments[0])


def _of_file(path: str) -> str:
    """What a file is, and what to do with it."""
    with open(path, "rb") as stream:
        head = stream.read(4096)
    name = shlex.quote(path)
    # The key `format` of a channel file, or the magic number of gzip with such an ending.
    if b'"mechdesign.' in head or path.endswith(".json.gz"):
        return (
            f"{path} is a file of mechdesign. Look at it and use it:\n\n"
            f"  mechdesign show {name}\n"
            f"  mechdesign audit {name}\n"
            f"  mechdesign apply {name} people.csv released.csv"
        )
    return _of_table(path, name)


def _of_table(path: str, name: str) -> str:
    """The columns of a table, and the first commands."""
    from mechdesign.comparison.planning import BINS
    from mechdesign.leaks.assessment import identifies_records
    from mechdesign.leaks.coded_table import coded_table
    from mechdesign.mechanisms.classes import all_but_identifies
    from mechdesign.report.wording import aligned, count, label
    from mechdesign.tables.cell_values import kind_of

    table = coded_table(path)
    rows: list[tuple[str, ...]] = [("column", "values", "")]
    names: list[str] = []
    options = ""
    for column in table.columns.values():
        note = ""
        if identifies_records(column):
            note = "names records: not to be released"
            names.append(column.name)
        elif all_but_identifies(len(column.values), table.records):
            # `design` refuses such a column as it is.
            if kind_of(filter(None, column.values)) is None:
                note = "all but names records: not to be released"
                names.append(column.name)
            else:
                note = "all but names records: to be released in bins"
                options += f" --bin {shlex.quote(f'{column.name}={BINS}')}"
        rows.append((label(column.name), f"{len(column.values):,}", note))
    for column in table.unreadable:
        rows.append(
            (label(column), "-", "lists, structures or bytes: not to be released")
        )
        names.append(column)
    hidden = len(rows) - 1 - MOST_COLUMNS
    lines = [
        f"{path}: {count(table.records, 'record')}, {count(len(rows) - 1, 'column')}.",
        "",
        *aligned(rows[: MOST_COLUMNS + 1], left=(0, 2)),
    ]
    if hidden > 0:
        lines.append(f"  and {count(hidden, 'more column')}")
    if names:
        options = f" --leave-out {shlex.quote(','.join(names))}{options}"
    if any("" in column.values for column in table.columns.values()):
        options += " --missing symbol"
    lines += [
        "",
        "Which column must nobody find out? Put its name in the place of COL:",
        "",
        f"  mechdesign assess {name} --sensitive COL",
        f"  mechdesign design {name} --sensitive COL --release all{options} --at-most-times 2 "
        "--output channel.json",
        "",
        f"The first says what the other columns give away, the second makes a release. On a page: "
        f"mechdesign app {name}",
    ]
    return "\n".join(lines)
