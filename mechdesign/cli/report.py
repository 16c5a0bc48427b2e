"""`mechdesign report CHANNEL`: what a channel promises, what it does and what it costs, as a file for people.

Also what `design` shares with it: where reports are written, and the commands that they show.
"""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import mechdesign as md
from mechdesign.cli import options as o
from mechdesign.cli.console import NO, PROGRAM, Reporter
from mechdesign.cli.line import COMMAND, option, recorded_line
from mechdesign.cli.mechanism import is_mechanism
from mechdesign.cli.parsing import number
from mechdesign.core.errors import InputError

if TYPE_CHECKING:
    from mechdesign.report.record import Command, Report


@dataclass(frozen=True, kw_only=True)
class ReportOptions:
    """Reports"""

    report: str | None = option(
        "FILE",
        "A report for those who may see the table: .html (one file, works offline), .md or .json.",
        again=False,
    )
    public_report: str | None = option(
        "FILE",
        "A report for everybody: without the table and whatever is computed from it, except the channel.",
        again=False,
    )
    curve: str = option(
        "SECONDS",
        "Time for the trade-off curve of the first; 0 leaves it out.",
        "6",
        again=False,
    )

    @property
    def files(self) -> dict[str, str | None]:
        """The places of both, by the names of their options."""
        return {"report": self.report, "public_report": self.public_report}

    @property
    def asked(self) -> bool:
        """Whether there is any."""
        return self.report is not None or self.public_report is not None

    def check(
        self, sources: tuple[str, ...], others: Mapping[str, str | None], *, force: bool
    ) -> None:
        """Refuse what cannot be written."""
        number("--curve", self.curve, zero=True)
        if not self.asked:
            return
        from mechdesign.report.writing import check_report

        targets = {"--report": self.report, "--public-report": self.public_report}
        seen: dict[str, str] = {}
        for name, path in {**others, **targets}.items():
            if path is None:
                continue
            if (other := seen.setdefault(os.path.realpath(path), name)) != name:
                raise InputError(
                    f"{other} and {name} both name {path}: give each a file of its own"
                )
            if name in targets:
                check_report(
                    path, force=force, sources=sources, pictures=name == "--report"
                )

    def save(
        self,
        channel: md.Channel,
        design: md.Design | None,
        reporter: Reporter,
        *,
        line: str | None,
        table: str | None = None,
        output: str | None = None,
        force: bool,
    ) -> None:
        """Write them; `line` makes the channel again, `output` is its file; nothing internal without `design`."""
        from mechdesign.report.collect import attributed, internal_report, promise_of
        from mechdesign.report.content import public_report
        from mechdesign.report.writing import save_report

        made: dict[str, Report] = {}
        if self.report is not None and design is not None and channel.joint is not None:
            # Standard input is gone when it has been read.
            places = {"Table": None if table == "-" else table, "Channel file": output}
            files = {name: path for name, path in places.items() if path is not None}
            base = None if table is None else os.path.basename(table)
            seconds = number("--curve", self.curve, zero=True)
            found = internal_report(
                design, channel.joint, reporter.work, table=base, seconds=seconds
            )
            made[self.report] = attributed(
                found, channel, commands(line, output, public=False), files
            )
        if self.public_report is not None:
            satisfied = None if design is None else design.verified
            found = public_report(channel, promise_of(channel), satisfied=satisfied)
            again = commands(design_line(channel, o.PUBLIC_CHANNEL), None, public=True)
            made[self.public_report] = attributed(found, channel, again)
        for path, report in made.items():
            save_report(report, path, overwrite=force)

    def text(self) -> str:
        """One line for people."""
        named = {"Internal report": self.report, "Public report": self.public_report}
        return " ".join(
            f"{name}: {path}." for name, path in named.items() if path is not None
        )


EXAMPLE = "Example:  mechdesign report channel.json --report report.html --public-report public.html"


def report(
    reporter: Reporter,
    channel: o.ChannelPath,
    reports: ReportOptions,
    common: o.CommonOptions,
    force: o.Force = False,
) -> int:
    """Write a report on a channel file: for those who may see the table, for the public, or both.

    The channel is audited again, exactly, where the file carries its table. A mechanism file of `quantize` has one
    report for everybody.
    """
    if not reports.asked:
        raise InputError(
            "no report is asked for: give --report FILE (for those who may see the table) or --public-report FILE"
        )
    reports.check((channel,), {}, force=force)
    if is_mechanism(channel):
        from mechdesign.nonstochastic.claims import verify_file
        from mechdesign.report.ranges_page import save_mechanism_report

        found = verify_file(channel)
        for path in filter(None, (reports.report, reports.public_report)):
            save_mechanism_report(found, channel, path, overwrite=force)
        reporter.done(
            "reported", reports.text(), **reports.files, satisfied=found.satisfied
        )
        record = {**reports.files, "satisfied": found.satisfied}
        common.answer(lambda: record, reports.text)
        return 0 if found.satisfied else NO
    from mechdesign.report.collect import design_behind, promise_of

    started = time.perf_counter()
    loaded = md.Channel.load(channel)
    notion = promise_of(loaded, channel)
    if loaded.joint is None and reports.report is not None:
        raise InputError(
            f"{channel} is a public channel without its table, so nothing internal can be said: give "
            "--public-report FILE"
        )
    design = (
        None if loaded.joint is None else design_behind(loaded, loaded.joint, notion)
    )
    satisfied = None if design is None else design.verified
    line = design_line(loaded, os.path.basename(channel))
    reports.save(loaded, design, reporter, line=line, output=channel, force=force)
    reporter.done("reported", reports.text(), **reports.files, satisfied=satisfied)
    took = time.perf_counter() - started
    verdict = {
        True: "satisfied",
        False: "VIOLATED",
        None: "not checked, for want of the table",
    }[satisfied]
    common.answer(
        lambda: {**reports.files, "satisfied": satisfied, "seconds": took},
        lambda: f"{notion.text}: {verdict}.\n{reports.text()}",
    )
    return NO if satisfied is False else 0


def design_line(channel: md.Channel, output: str) -> str | None:
    """The command that made the channel, as its file has kept it."""
    return recorded_line(channel.record.provenance.get(COMMAND), {"--output": output})


def commands(
    line: str | None, file: str | None, *, public: bool
) -> tuple[Command, ...]:
    """What can be done with a channel, as lines for the shell; `line` is the one that made it, where that is known."""
    from mechdesign.report.record import Command

    channel = o.PUBLIC_CHANNEL if file is None else os.path.basename(file)
    against = ["--table", o.PUBLIC_TABLE] if public else []
    who = " (for who holds the table)" if public else ""
    lines = {
        f"Design the channel{who}:": line,
        f"Check exactly that it keeps its promise{who}:": shlex.join(
            [PROGRAM, "audit", channel, *against]
        ),
        "Release a file, each record one draw:": shlex.join(
            [PROGRAM, "apply", channel, "IN.csv", "OUT.csv"]
        ),
        "The matrix with all its digits:": shlex.join(
            [PROGRAM, "show", channel, "--csv"]
        ),
    }
    return tuple(
        Command(purpose, line) for purpose, line in lines.items() if line is not None
    )
