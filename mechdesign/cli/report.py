"""`mechdesign report CHANNEL`: what a channel promises, what it does and what it costs, as a file for people.

Also what `design` shares with it: where reports are written, and the commands that they show.
"""

from __future__ import annotations

import csv
import io
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mechdesign.cli import options as o
from mechdesign.cli.console import Interrupted, Reporter
from mechdesign.cli.line import COMMAND, recorded_line, shell_line
from mechdesign.core.errors import InputError

if TYPE_CHECKING:
    from mechdesign.channel.channel import Channel
    from mechdesign.cli.console import Reporter
    from mechdesign.mechanisms.result import Design
    from mechdesign.report.record import Command, Report
    from mechdesign.tables.joint import Joint


@dataclass(frozen=True)
class ReportPaths:
    """The reports asked for."""

    internal: str | None
    public: str | None
    force: bool

    @property
    def asked(self) -> bool:
        """Whether there is any."""
        return self.internal is not None or self.public is not None

    def check(self, sources: tuple[str, ...], others: Mapping[str, str | None]) -> None:
        """Refuse what cannot be written."""
        if not self.asked:
            return
        from mechdesign.report.writing import check_report

        targets = {"--report": self.internal, "--public-report": self.public}
        seen: dict[str, str] = {}
        for option, path in {**others, **targets}.items():
            if path is None:
                continue
            place = os.path.realpath(path)
            if place in seen:
                raise InputError(f"{seen[place]} and {option} both name {path}: give each a file of its own")
            seen[place] = option
        for option, path in targets.items():
            if path is not None:
                check_report(path, force=self.force, sources=sources, pictures=option == "--report")
                check_writable(path)

    def save(self, internal: Report | None, public: Report | None) -> None:
        """Write them."""
        from mechdesign.report.writing import save_report

        for path, report in ((self.internal, internal), (self.public, public)):
            if path is not None and report is not None:
                save_report(report, path, overwrite=self.force)

    def record(self) -> dict[str, str | None]:
        """As the JSON of a command has them."""
        return {"report": self.internal, "public_report": self.public}

    def text(self) -> str:
        """One line for people."""
        parts: list[str] = []
        if self.internal is not None:
            parts.append(f"Internal report: {self.internal}.")
        if self.public is not None:
            parts.append(f"Public report: {self.public}.")
        return " ".join(parts)


def check_writable(path: str) -> None:
    """Find out before the work, not after it, that nothing can be written there."""
    folder = os.path.dirname(path) or "."
    if not os.access(folder, os.W_OK):
        raise InputError(f"{path} cannot be written: the folder {folder!r} is not writable")


EXAMPLE = "Example:  mechdesign report channel.json --report report.html --public-report public.html"

NO = 1
"""Exit code when the channel violates its notion; the reports say so."""

NOT_AGAIN = "The bound is the one that the channel file has kept since the channel was designed."


def report(
    reporter: Reporter,
    channel: o.ChannelPath,
    reports: o.ReportOptions,
    common: o.CommonOptions,
    force: o.Force = False,
) -> int:
    """Write a report on a channel file: for those who may see the table, for the public, or both.

    The channel is audited again, exactly, where the file carries its table.
    """
    internal, public = reports.report, reports.public_report
    paths = ReportPaths(internal, public, force)
    if not paths.asked:
        raise InputError(
            "no report is asked for: give --report FILE (for those who may see the table) or --public-report FILE"
        )
    paths.check((channel,), {})
    from mechdesign.auditing.verdict import audit
    from mechdesign.channel.channel import Channel
    from mechdesign.notions import from_record
    from mechdesign.report.collect import attributed, internal_report
    from mechdesign.report.content import certificate_of, public_report

    started = time.perf_counter()
    loaded = Channel.load(channel)
    if loaded.record.notion is None:
        raise InputError(
            f"{channel} does not say which notion it was designed for, so there is no promise to report; "
            "`mechdesign audit` and `mechdesign measure` take any channel"
        )
    notion = from_record(loaded.record.notion)
    joint, full, shown = loaded.joint, None, None
    if joint is None and internal is not None:
        raise InputError(
            f"{channel} is a public channel without its table, so nothing internal can be said: give "
            "--public-report FILE"
        )
    satisfied = None if joint is None else audit(loaded, joint, notion).satisfied
    if joint is not None and internal is not None:
        certificate = certificate_of(loaded)
        made = internal_report(
            loaded,
            notion,
            joint,
            reporter.work,
            certificate=certificate,
            remarks=() if certificate.upper_bound_nmi is None else (NOT_AGAIN,),
        )
        line = design_of(loaded, "TABLE.csv", channel)
        full = attributed(made, loaded, commands(line, channel, public=False), {"Channel file": channel})
    if public is not None:
        line = design_of(loaded, "TABLE.csv", "CHANNEL.json")
        shown = attributed(
            public_report(loaded, notion, satisfied=satisfied), loaded, commands(line, None, public=True)
        )
    paths.save(full, shown)
    reporter.done("reported", paths.text(), **paths.record(), satisfied=satisfied)
    took = time.perf_counter() - started
    verdict = {True: "satisfied", False: "VIOLATED", None: "not checked, for want of the table"}[satisfied]
    common.answer(
        lambda: {**paths.record(), "satisfied": satisfied, "seconds": took},
        lambda: f"{notion.text}: {verdict}.\n{paths.text()}",
    )
    return NO if satisfied is False else 0


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


def save_reports(
    result: Design,
    joint: Joint,
    table: str,
    paths: ReportPaths,
    line: str,
    output: str | None,
    reporter: Reporter,
) -> None:
    """Write the reports that `paths` asks for; the channel file, if any, is there already."""
    try:
        _save_reports(result, joint, table, paths, line, output, reporter)
    except KeyboardInterrupt:
        kept = "nothing was written" if output is None else f"{output} is written, its reports are not"
        raise Interrupted(f"interrupted; {kept}") from None


def _save_reports(
    result: Design,
    joint: Joint,
    table: str,
    paths: ReportPaths,
    line: str,
    output: str | None,
    reporter: Reporter,
) -> None:
    from mechdesign.report.collect import attributed, internal_report, remarks_of
    from mechdesign.report.content import public_report

    files = {} if table == "-" else {"Table": table}  # standard input is gone when it has been read
    files |= {} if output is None else {"Channel file": output}
    channel, full, shown = result.channel, None, None
    if paths.internal is not None:
        full = attributed(
            internal_report(
                channel,
                result.notion,
                joint,
                reporter.work,
                certificate=result.certificate,
                remarks=(*remarks_of(result), *result.messages),
                seconds=result.seconds,
                table=os.path.basename(table),
            ),
            channel,
            commands(line, output, public=False),
            files,
        )
    if paths.public is not None:
        shown = attributed(
            public_report(channel, result.notion, satisfied=result.verified),
            channel,
            commands(design_of(channel, "TABLE.csv", "CHANNEL.json"), None, public=True),
        )
    paths.save(full, shown)
