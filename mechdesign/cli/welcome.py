"""`mechdesign` alone, and `mechdesign FILE.csv`: what to do first.

Whoever has just installed the program types its name, or drops a file behind it. The answer is a
short text with commands to copy, of a file with its columns::

    people.csv: 3,000 records, 3 columns.

      column  values
      id       3,000  names records: not to be released
      job          5
      income       2
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence

from mechdesign.cli.first_options import COMMANDS, EARLIER_NAMES

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

COMPLETION = "_MECHDESIGN_COMPLETE"
"""The variable by which typer knows that a shell asks how a word goes on."""

MOST_COLUMNS = 40
"""Columns that are listed."""


def is_first_try(arguments: Sequence[str]) -> bool:
    """Whether the line is empty, asks for help in a word, or is nothing but the name of a file."""
    if not arguments:
        # A shell that completes words calls the program without any.
        return COMPLETION not in os.environ
    if len(arguments) > 1 or arguments[0].startswith("-"):
        return False
    word = arguments[0]
    if word in COMMANDS or word in EARLIER_NAMES:
        return False
    return word == "help" or os.path.isfile(word)


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
    from mechdesign.report.layout import aligned
    from mechdesign.report.wording import count, label
    from mechdesign.tables.cell_numbers import kind_of

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
