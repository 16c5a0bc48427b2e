"""The commands that a report shows: how its channel is made again, checked and used."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mechdesign.cli.line import COMMAND, recorded_line, shell_line

if TYPE_CHECKING:
    from mechdesign.channel.channel import Channel
    from mechdesign.report.record import Command


def design_of(channel: Channel, table: str, output: str) -> str:
    """The command that makes the channel again: the one that made it, or what can be known of that."""
    recorded = recorded_line(channel.record.provenance.get(COMMAND), {"--output": output})
    return recorded or _reconstructed(channel, table, output)


def _reconstructed(channel: Channel, table: str, output: str) -> str:
    from mechdesign.mechanisms import MECHANISMS
    from mechdesign.notions import from_record, to_record

    options: list[tuple[str, Any]] = []
    if channel.sensitive is not None:
        options.append(("--sensitive", _columns(channel.sensitive.columns)))
    options.append(("--useful", _columns(channel.useful.columns)))
    notion = channel.record.notion
    for key, value in ({} if notion is None else to_record(from_record(notion))).items():
        options.append(("--notion" if key == "name" else f"--{key.replace('_', '-')}", value))
    mechanism = channel.record.provenance.get("mechanism")
    if mechanism in MECHANISMS:
        options.append(("--mechanism", mechanism))
    return shell_line("design", [table], [*options, ("--output", output)])


def _columns(columns: Sequence[str]) -> str:
    """Columns as `--sensitive` and `--useful` read them."""
    if not any(sign in column for column in columns for sign in ',"'):
        return ",".join(columns)
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="").writerow(columns)
    return text.getvalue()


def commands(design_line: str, file: str | None, *, public: bool) -> tuple[Command, ...]:
    """What can be done with a channel, as lines for the shell."""
    from mechdesign.report.record import Command

    channel = "CHANNEL.json" if file is None else file
    against = [("--table", "TABLE.csv")] if public else []
    who = " (for who holds the table)" if public else ""
    return (
        Command(purpose=f"Design the channel{who}:", line=design_line),
        Command(
            purpose=f"Check exactly that it keeps its promise{who}:",
            line=shell_line("audit", [channel], against),
        ),
        Command(
            purpose="Release a file, each record one draw:",
            line=shell_line("apply", [channel, "IN.csv", "OUT.csv"], []),
        ),
        Command(
            purpose="The matrix with all its digits:", line=shell_line("show", [channel], [("--csv", True)])
        ),
    )
