"""The script, the command and the job file that design the same channel as the page.

They say the same choice in three languages. With health protected, job released and the factor 3:

- `command_of`: ``mechdesign design staff.csv --sensitive health --useful job --at-most-times 3
  --at-least-times 0.3334 ..``
- `job_of`: the same options as keys of ``[design]`` in TOML, ``at-most-times = "3"``
- `script_of`: lines that read the table (`_reading`), make the joint and the notion, and call the
  function of one of three searches (`_column_design`, `_row_design`, `_merged_design`).

So each option of the page has one place here for each language: `_option_words` for a shell,
`_option_keys` for a job file, and the calls of a script. Texts of the user are quoted by the rules
of their language: `shlex.join`, `_toml`, `repr`. Tests run all three and compare the channels.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from typing import Any

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
    for name, value in text_options(table).items():
        words += _option(f"--{name}", value)
    words += _option("--sensitive", names_text(choice.sensitive))
    # Rows are other options than a column; `Choice.check` has refused commas in their names.
    if choice.is_rows:
        words += _option("--release", ",".join(choice.released))
        if choice.given:
            words += _option("--given", ",".join(choice.given))
            words += ["--promise", choice.promise]
        if choice.person:
            words += _option("--person", names_text(choice.person))
    else:
        words += _option("--useful", names_text(choice.released))
    words += ["--at-most-times", choice.at_most_times]
    words += ["--at-least-times", choice.at_least_times]
    words += ["--missing", choice.missing]
    words += _option_words(choice)
    for name, bins in choice.used_bins.items():
        words += _option("--bin", f"{name}={bins}")
    if choice.unit:
        words += ["--unit", choice.unit]
    words += ["--time-limit", choice.time_limit, "--output", CHANNEL]
    # Quoted: names of files and columns may hold signs that a shell would obey.
    return shlex.join(words)


def _option(name: str, value: str) -> list[str]:
    """An option with its value; in one word where the value looks like an option."""
    if value.startswith("-"):
        return [f"{name}={value}"]
    return [name, value]


def _option_words(choice: Choice) -> list[str]:
    """The objective, and the options of a promise for the population."""
    # What boxes keep is not chosen by an objective, but by whether they are filled.
    if not choice.is_boxes:
        words = ["--objective", choice.objective]
        if choice.level:
            words += ["--confidence", choice.level]
        return words
    words = ["--confidence", choice.level]
    if choice.merge_rare:
        words += ["--merge-rare", choice.merge_rare]
    if choice.fills:
        words.append("--fill")
    if choice.slice_seed is not None:
        words += ["--slice-seed", str(choice.slice_seed)]
    return words


def job_of(choice: Choice, table: MemoryTable) -> str:
    """A file for `mechdesign run`."""
    keys: dict[str, Any] = {"table": table.path}
    keys |= text_options(table)
    keys["sensitive"] = names_text(choice.sensitive)
    if choice.is_rows:
        keys["release"] = ",".join(choice.released)
        if choice.given:
            keys["given"] = ",".join(choice.given)
            keys["promise"] = choice.promise
        if choice.person:
            keys["person"] = names_text(choice.person)
    else:
        keys["useful"] = names_text(choice.released)
    # Numbers stay texts: the job file takes them as the command line does, with the same digits.
    keys["at-most-times"] = choice.at_most_times
    keys["at-least-times"] = choice.at_least_times
    keys["missing"] = choice.missing
    keys |= _option_keys(choice)
    if choice.used_bins:
        keys["bin"] = [f"{name}={bins}" for name, bins in choice.used_bins.items()]
    if choice.unit:
        keys["unit"] = choice.unit
    keys["time-limit"] = choice.time_limit
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


def _option_keys(choice: Choice) -> dict[str, Any]:
    """The same as `_option_words` for a job file."""
    if not choice.is_boxes:
        keys: dict[str, Any] = {"objective": choice.objective}
        if choice.level:
            keys["confidence"] = choice.level
        return keys
    keys = {"confidence": choice.level}
    if choice.merge_rare:
        keys["merge-rare"] = choice.merge_rare
    if choice.fills:
        keys["fill"] = True
    if choice.slice_seed is not None:
        keys["slice-seed"] = str(choice.slice_seed)
    return keys


def script_of(choice: Choice, table: MemoryTable) -> str:
    """A Python script."""
    lines = [
        '"""Design the release channel that was chosen on the page of mechdesign app."""',
        "",
        "import mechdesign as md",
        *_reading(choice, table),
        "joint = md.Joint.from_table(",
        "    table,",
        f"    sensitive={_literal(choice.sensitive)},",
        f"    useful={_literal(choice.released)},",
        f"    missing={choice.missing!r},",
        ")",
        "notion = md.budget_for(",
        f"    joint, at_most_times={choice.at_most_times!r}, "
        f"at_least_times={choice.at_least_times!r}",
        ")",
    ]
    if choice.is_rows:
        lines += _row_design(choice)
    else:
        lines += _column_design(choice)
    # Both designs have a summary and a channel that is saved alike.
    lines += [
        "print(design.summary())",
        f"design.channel.save({CHANNEL!r})",
        "",
    ]
    return "\n".join(lines)


def _reading(choice: Choice, table: MemoryTable) -> list[str]:
    """Lines that read the columns as the page does."""
    # Not by a library's own reader: a code 01234 that is read as a number would be another symbol.
    return [
        "from mechdesign.app.memory_table import read_path",
        "",
        f"table = read_path({table.path!r}).with_columns({choice.used!r}).frame",
    ]


def _column_design(choice: Choice) -> list[str]:
    """Lines that design the channel of one column, or of its merged values."""
    lines = ["design = md.design(", "    joint,", "    notion,"]
    if choice.merge_rare:
        lines += [
            f"    merge_rare={choice.merge_below or choice.merge_rare!r},",
            "    # Draws the same slice of the records as the page did.",
            f"    slice_seed={choice.slice_seed!r},",
        ]
    else:
        lines.append(f"    objective={choice.objective!r},")
    if choice.used_bins:
        lines.append(f"    bins={choice.used_bins!r},")
    if choice.confidence is not None:
        lines.append(f"    confidence={choice.confidence!r},")
    lines += [f"    time_limit={choice.seconds!r},", ")"]
    return lines


def _row_design(choice: Choice) -> list[str]:
    """Lines that design the channel of whole rows, or of boxes of them."""
    lines = [
        "design = md.design(",
        "    table,",
        f"    sensitive={_literal(choice.sensitive)},",
        f"    release={_literal(choice.released)},",
        f"    given={_literal(choice.given)},",
        "    notion=notion,",
        f"    promise={choice.promise!r},",
    ]
    if choice.person:
        lines.append(f"    person={_literal(choice.person)},")
    if choice.is_boxes:
        lines += [
            f"    confidence={choice.confidence!r},",
            f"    fill={choice.fills!r},",
            "    # Draws the same slice of the records as the page did.",
            f"    slice_seed={choice.slice_seed!r},",
        ]
    else:
        lines.append(f"    objective={choice.objective!r},")
    if choice.used_bins:
        lines.append(f"    bins={choice.used_bins!r},")
    lines += [
        f"    missing={choice.missing!r},",
        f"    time_limit={choice.seconds!r},",
        ")",
    ]
    return lines


def _literal(names: Sequence[str]) -> str:
    """Names as a list in a script."""
    return repr(list(names))


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


def _toml(value: str | list[str] | bool) -> str:
    """A value as TOML writes it."""
    # A JSON string with ASCII alone is a basic string of TOML, once DEL is escaped too. JSON writes
    # characters beyond the first plane as two surrogates, which TOML refuses: they stay themselves.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
