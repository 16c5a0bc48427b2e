"""What a report is built from: the exact audit, the measures, the curve, the provenance and the commands."""

from __future__ import annotations

import csv
import hashlib
import io
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from mechdesign.cli.line import COMMAND, PROGRAM, recorded_line, shell_line

if TYPE_CHECKING:
    from mechdesign.channel.channel import Channel
    from mechdesign.cli.reporting import Reporter
    from mechdesign.mechanisms.result import Certificate
    from mechdesign.notions import Notion
    from mechdesign.report.building import Findings
    from mechdesign.report.public import Frame
    from mechdesign.report.record import Command, Fact
    from mechdesign.tables.joint import Joint

LIBRARIES = ("numpy", "highspy", "python-flint")
"""Those that numbers of a report come from."""

NO_AXIS = (
    "No curve: with these budgets (a side free, or beyond what a curve can reach) there is no axis to follow."
)


@dataclass(frozen=True, kw_only=True)
class Made:
    """A channel and what is known of how it came about."""

    channel: Channel
    notion: Notion
    mechanism: str | None
    method: str | None
    certificate: Certificate
    remarks: tuple[str, ...] = ()
    seconds: float = 0.0


def findings_of(made: Made, joint: Joint, table: str | None, reporter: Reporter) -> Findings:
    """Audit, measure, and compute the curve of an internal report."""
    from mechdesign.auditing.channel_measures import measure
    from mechdesign.auditing.verdict import audit
    from mechdesign.cli.curve import axis_of, chosen_row, curve_through
    from mechdesign.mechanisms import MECHANISMS, OPTIMAL
    from mechdesign.report.building import Findings

    with reporter.work("measuring the channel"):
        verdict = audit(made.channel, joint, made.notion)
        measures = measure(made.channel, joint)
    curve, why = None, NO_AXIS
    axis = axis_of(made.notion)
    if axis is not None:
        chosen = chosen_row(
            axis,
            made.notion,
            verdict.achieved,
            mechanism=made.mechanism if made.mechanism in MECHANISMS else OPTIMAL,
            nmi=measures.utility["nmi"],
            upper_bound_nmi=made.certificate.upper_bound_nmi,
            satisfied=verdict.satisfied,
        )
        with reporter.work("computing the curve", unit="budgets") as work:
            curve, why = curve_through(joint, made.notion, axis, chosen, made.seconds, work)
    return Findings(
        channel=made.channel,
        notion=made.notion,
        joint=joint,
        audit=verdict,
        measures=measures,
        mechanism=made.mechanism,
        method=made.method,
        certificate=made.certificate,
        remarks=made.remarks,
        table=table,
        curve=curve,
        absent={} if curve is not None else {"curve": why},
    )


def frames(
    made: Made, *, design_line: str, files: Mapping[str, str], file: str | None
) -> tuple[Frame, Frame]:
    """What surrounds an internal and a public report.

    Parameters
    ----------
    design_line : str
        The command that makes the channel, for those who may see the table.
    files : mapping
        Names and paths of the files that an internal report names with their hashes.
    file : str, optional
        The channel file that its commands name.
    """
    from mechdesign import __version__
    from mechdesign.report.public import Frame
    from mechdesign.report.record import Fact

    written = _date(datetime.now(UTC))
    facts = (*_origin(made.channel), Fact("Report written", f"{written}, by {PROGRAM} {__version__}"))
    libraries = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    inside = [*facts, Fact("Computed with", f"Python {platform.python_version()}, {libraries}")]
    for name, path in files.items():
        changed = _date(datetime.fromtimestamp(os.path.getmtime(path), UTC))
        inside.append(Fact(name, f"{os.path.basename(path)}, last changed {changed}"))
        inside.append(Fact(f"SHA-256 of {os.path.basename(path)}", _hash(path)))
    return (
        Frame(written=written, provenance=tuple(inside), commands=_commands(design_line, file, public=False)),
        Frame(
            written=written,
            provenance=facts,
            commands=_commands(design_of(made, "TABLE.csv", "CHANNEL.json"), None, public=True),
        ),
    )


def design_of(made: Made, table: str, output: str) -> str:
    """The command that makes the channel again: the one that made it, or what can be known of that."""
    recorded = recorded_line(made.channel.record.provenance.get(COMMAND), {"--output": output})
    return recorded or _reconstructed(made, table, output)


def _reconstructed(made: Made, table: str, output: str) -> str:
    from mechdesign.mechanisms import MECHANISMS
    from mechdesign.notions import to_record

    channel = made.channel
    options: list[tuple[str, Any]] = []
    if channel.sensitive is not None:
        options.append(("--sensitive", _columns(channel.sensitive.columns)))
    options.append(("--useful", _columns(channel.useful.columns)))
    for key, value in to_record(made.notion).items():
        options.append(("--notion" if key == "name" else f"--{key.replace('_', '-')}", value))
    if made.mechanism in MECHANISMS:
        options.append(("--mechanism", made.mechanism))
    return shell_line("design", [table], [*options, ("--output", output)])


def _columns(columns: Sequence[str]) -> str:
    """Columns as `--sensitive` and `--useful` read them."""
    if not any(sign in column for column in columns for sign in ',"'):
        return ",".join(columns)
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="").writerow(columns)
    return text.getvalue()


def _commands(design_line: str, file: str | None, *, public: bool) -> tuple[Command, ...]:
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


def _origin(channel: Channel) -> list[Fact]:
    """What a public channel file says of where it comes from, and the digest of what it does."""
    from mechdesign.release.drawing import channel_digest
    from mechdesign.report.record import Fact

    origin = channel.record.provenance
    tool, made_by = origin.get("tool"), origin.get("version")
    facts: list[Fact] = []
    if isinstance(tool, str) and isinstance(made_by, str):
        facts.append(Fact("Channel made by", f"{tool} {made_by}"))
    facts.append(Fact("SHA-256 of what the channel does", channel_digest(channel)))
    return facts


def _date(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"


def _hash(path: str) -> str:
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
