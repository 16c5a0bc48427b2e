"""The script, the command and the job file that design the same channel as the page.

They say the same choice in three languages. With health protected, job released and the factor 3:

- `command_of`: ``mechdesign design staff.csv --sensitive health --useful job --at-most-times 3
  --at-least-times 0.3334 ..``
- `job_of`: the same options as keys of ``[design]`` in TOML, ``at-most-times = "3"``
- `script_of`: lines that read the table, make the joint and the notion, and call `md.design`.

A command and a job file have the same options (`_options`); a script has the arguments of the
page's own search (`Choice.design_arguments`). Texts of the user are quoted by the rules of their
language: `shlex.join`, `_toml`, `repr`. Tests run all three and compare the channels.
"""

from __future__ import annotations

import json
import shlex

from mechdesign.app.choice import Choice
from mechdesign.app.memory_table import MemoryTable
from mechdesign.formats.column_names import names_text
from mechdesign.formats.csv_text import TextOptions

CHANNEL = "channel.json"
"""The channel file, as a download of the page and as the output of every recipe."""


def command_of(choice: Choice, table: MemoryTable) -> str:
    """One line for a shell."""
    # A name such as --output=x.csv would be an option.
    path = table.path
    if path.startswith("-"):
        path = f"./{path}"
    words = ["mechdesign", "design", path]
    for name, value in _options(choice, table).items():
        if value is True:
            words.append(f"--{name}")
            continue
        for text in value if isinstance(value, list) else [str(value)]:
            words += _option(f"--{name}", text)
    words += ["--output", CHANNEL]
    # Quoted: names of files and columns may hold signs that a shell would obey.
    return shlex.join(words)


def _option(name: str, value: str) -> list[str]:
    """An option with its value; in one word where the value looks like an option."""
    if value.startswith("-"):
        return [f"{name}={value}"]
    return [name, value]


def _options(choice: Choice, table: MemoryTable) -> dict[str, str | bool | list[str]]:
    """The options of `mechdesign design` by their names, which are the keys of a job file, too."""
    asked: dict[str, str | bool | list[str]] = {
        **text_options(table),
        "sensitive": names_text(choice.sensitive),
    }
    # Rows are other options than a column; `Choice.check` has refused commas in their names.
    if choice.is_rows:
        asked["release"] = ",".join(choice.released)
        if choice.given:
            asked["given"] = ",".join(choice.given)
            asked["promise"] = choice.promise
        if choice.person:
            asked["person"] = names_text(choice.person)
    else:
        asked["useful"] = names_text(choice.released)
    # Numbers stay texts: the job file takes them as the command line does, with the same digits.
    asked["at-most-times"] = choice.at_most_times
    asked["at-least-times"] = choice.at_least_times
    asked["missing"] = choice.missing
    if choice.level:
        asked["confidence"] = choice.level
    # What boxes keep is not chosen by an objective, but by whether they are filled.
    if not choice.is_boxes:
        asked["objective"] = choice.objective
    if choice.merge_rare:
        asked["merge-rare"] = choice.merge_rare
    if choice.fills:
        asked["fill"] = True
    if choice.slice_seed is not None:
        asked["slice-seed"] = str(choice.slice_seed)
    if choice.used_bins:
        asked["bin"] = [f"{name}={bins}" for name, bins in choice.used_bins.items()]
    if choice.unit:
        asked["unit"] = choice.unit
    asked["time-limit"] = choice.time_limit
    return asked


def job_of(choice: Choice, table: MemoryTable) -> str:
    """A file for `mechdesign run`."""
    keys = {"table": table.path, **_options(choice, table)}
    lines = [
        "# The nightly job of this release: mechdesign run job.toml",
        f"channel = {_toml(CHANNEL)}",
        "",
        "[design]",
    ]
    lines += [f"{key} = {_toml(value)}" for key, value in keys.items()]
    lines += [
        "",
        "# A release, once there is a file to release:",
        "# [[apply]]",
        '# in = "people.csv"',
        '# out = "released.csv"',
        "",
    ]
    return "\n".join(lines)


def script_of(choice: Choice, table: MemoryTable) -> str:
    """A Python script."""
    arguments = choice.design_arguments
    data = "joint"
    # Whole rows are designed from their table, and a column from its counts.
    if choice.is_rows:
        data = "table"
        arguments["sensitive"] = list(choice.sensitive)
        arguments["missing"] = choice.missing
        if choice.person:
            arguments["person"] = list(choice.person)
    lines = [
        '"""Design the release channel that was chosen on the page of mechdesign app."""',
        "",
        "import mechdesign as md",
        # Not by a library's own reader: a code 01234 that is read as a number would be another
        # symbol.
        "from mechdesign.app.memory_table import read_path",
        "",
        f"table = read_path({table.path!r}).with_columns({choice.used!r}).frame",
        "joint = md.Joint.from_table(",
        "    table,",
        f"    sensitive={list(choice.sensitive)!r},",
        f"    useful={list(choice.released)!r},",
        f"    missing={choice.missing!r},",
        ")",
        "notion = md.budget_for(",
        f"    joint, at_most_times={choice.at_most_times!r}, "
        f"at_least_times={choice.at_least_times!r}",
        ")",
        "design = md.design(",
        f"    {data},",
        "    notion,",
        *[f"    {name}={value!r}," for name, value in arguments.items()],
        ")",
        "print(design.summary())",
        f"design.channel.save({CHANNEL!r})",
        "",
    ]
    return "\n".join(lines)


def text_options(table: MemoryTable) -> dict[str, str]:
    """How the text of a CSV is read, by the names of the options; nothing where it is usual."""
    usual = TextOptions()
    text = table.text or usual
    options: dict[str, str] = {}
    if text.delimiter != usual.delimiter:
        options["delimiter"] = "tab" if text.delimiter == "\t" else text.delimiter
    if text.encoding != usual.encoding:
        options["encoding"] = text.encoding
    if text.skip_lines:
        options["skip-lines"] = str(text.skip_lines)
    return options


def _toml(value: str | bool | list[str]) -> str:
    """A value as TOML writes it."""
    # A JSON string with ASCII alone is a basic string of TOML, once DEL is escaped too. JSON writes
    # characters beyond the first plane as two surrogates, which TOML refuses: they stay themselves.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
