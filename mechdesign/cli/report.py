"""`mechdesign report CHANNEL`: the promise, the working and the cost of a channel, as a
file for people.

`report` loads the channel, audits it again where the file has its table, and lets `ReportOptions`
write the files. --report is an internal report, computed from the table, --public-report one for
everybody, computed from the channel alone (`report.collect`). A mechanism file of `quantize` has a
page of its own. A report on a channel of columns has the shell lines that design, audit, apply and
show it (`commands`). `design` shares `ReportOptions`.
"""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import mechdesign as md
from mechdesign.cli import options
from mechdesign.cli.console import NO, PROGRAM, Reporter
from mechdesign.cli.line import COMMAND, flag, option, recorded_line
from mechdesign.cli.mechanism import is_mechanism, report_mechanism
from mechdesign.cli.parsing import number
from mechdesign.core.errors import InputError, errors_noting

if TYPE_CHECKING:
    from mechdesign.report.record import Command


NO_CERTIFICATE = (
    "--certificate is for the file of a channel that has its table, or counts of boxes"
)


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
        "A report for everybody: without the table and whatever is computed from it, "
        "except the channel.",
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
        """The paths of both by the names of their fields, as the JSON record has them."""
        return {"report": self.report, "public_report": self.public_report}

    @property
    def asked(self) -> bool:
        """Whether any report is asked for."""
        return self.report is not None or self.public_report is not None

    def check(
        self, sources: tuple[str, ...], others: Mapping[str, str | None], *, force: bool
    ) -> None:
        """Refuse reports that cannot be written."""
        number("--curve", self.curve, zero=True)
        if not self.asked:
            return
        from mechdesign.report.writing import check_report

        targets = {"--report": self.report, "--public-report": self.public_report}
        seen: dict[str, str] = {}
        for name, path in {**others, **targets}.items():
            if path is None:
                continue
            # Of two outputs in one file the second would replace the first. By its real path:
            # ./a.html and a.html are one file.
            other = seen.setdefault(os.path.realpath(path), name)
            if other != name:
                raise InputError(
                    f"{other} and {name} both name {path}: give each a file of its own"
                )
            if name in targets:
                pictures = name == "--report"
                check_report(path, force=force, sources=sources, pictures=pictures)

    def save(
        self,
        channel: md.Channel,
        behind: Any,
        reporter: Reporter,
        *,
        line: str | None,
        table: str | None = None,
        output: str | None = None,
        force: bool,
    ) -> None:
        """Write the reports.

        `line` is the command that designs the channel, `output` its file. `behind` is the design
        of the channel, or what else its reports need; there is no internal report without it.
        """
        from mechdesign.report.collect import Wanted, save_reports

        files: dict[str, str] = {}
        table_name = None
        if table is not None:
            table_name = os.path.basename(table)
            # Standard input is gone once it has been read, so only a file has a hash.
            if table != "-":
                files["Table"] = table
        if output is not None:
            files["Channel file"] = output
        # The line of the file and not the one that was typed, which may name files of the user.
        public_line = design_line(channel, options.PUBLIC_CHANNEL)
        wanted = Wanted(
            internal=self.report,
            public=self.public_report,
            overwrite=force,
            seconds=number("--curve", self.curve, zero=True),
            watch=reporter.work,
            table=table_name,
            files=files,
            commands=commands(line, output, public=False),
            public_commands=commands(
                public_line, None, public=True, takes_table=not channel.judged_alone
            ),
        )
        save_reports(channel, behind, wanted)

    def text(self) -> str:
        """One line for people."""
        sentences: list[str] = []
        if self.report is not None:
            sentences.append(f"Internal report: {self.report}.")
        if self.public_report is not None:
            sentences.append(f"Public report: {self.public_report}.")
        return " ".join(sentences)


@dataclass(frozen=True, kw_only=True)
class ProofOptions:
    """Whether the bounds of the file are proven again."""

    certificate: bool = flag(
        "Prove the bounds on all other channels again from the proof in the file; only then the "
        "report calls them proven.",
    )

    def refuse(self) -> None:
        """Raise InputError if that is asked of a file that cannot have a proof."""
        if self.certificate:
            raise InputError(NO_CERTIFICATE)


@dataclass(frozen=True, kw_only=True)
class BoardOptions:
    """Reports"""

    board: str | None = option(
        "FILE",
        "One page for a board, in plain words: who is protected, what nobody can find out, what "
        "analysts can do, what is not covered, who checked it.",
        again=False,
    )

    def check(self, reports: ReportOptions, source: str, *, force: bool) -> None:
        """Refuse a page that cannot be written."""
        if self.board is None:
            return
        from mechdesign.report.writing import check_report

        for name, path in reports.files.items():
            if path is not None and os.path.realpath(path) == os.path.realpath(
                self.board
            ):
                raise InputError(
                    f"--{name.replace('_', '-')} and --board both name {path}: give each a file of "
                    "its own"
                )
        check_report(self.board, force=force, sources=(source,), pictures=False)

    def refuse_public(self, file: str) -> None:
        """Refuse a page on a channel without its table."""
        if self.board is not None:
            raise InputError(
                f"{file} is a public channel without its table, and the page for the board says "
                "how frequent the secret is: take the channel with its table"
            )

    def save(self, design: md.Design | None, file: str, *, force: bool) -> None:
        """Write the page."""
        if self.board is None or design is None or design.channel.joint is None:
            return
        from mechdesign.report.board import board_page
        from mechdesign.report.content import summary_report
        from mechdesign.report.writing import save_document

        # Measures of leakage are for specialists, and not on this page.
        summary = summary_report(design, design.channel.joint, attained={}, remarks=())
        page = board_page(design, summary, os.path.basename(file))
        save_document(self.board, page.record, page.document, overwrite=force)


VERDICTS = {
    True: "The promise holds",
    False: "The promise does NOT hold (VIOLATED)",
    None: "The promise was not checked, because the table is missing",
}

NO_BOARD = (
    "--board is for channels of columns and of rows: of ranges and of boxes there are --report and "
    "--public-report"
)

REPORT_EXAMPLE = (
    "Example:  mechdesign report channel.json --report report.html --public-report "
    "public.html"
)


def report(
    reporter: Reporter,
    channel: options.ChannelPath,
    reports: ReportOptions,
    proof: ProofOptions,
    board: BoardOptions,
    common: options.CommonOptions,
    force: options.Force = False,
) -> int:
    """Write a report on a channel file: for those who may see the table, for the public, or both.

    The channel is audited again, exactly, where the file carries its table. A mechanism
    file of `quantize` has one report for everybody.
    """
    if not reports.asked and board.board is None:
        raise InputError(
            "no report is asked for: give --report FILE (for those who may see the "
            "table), --public-report FILE, or --board FILE (one page in plain words)"
        )
    reports.check((channel,), {}, force=force)
    board.check(reports, channel, force=force)
    if is_mechanism(channel):
        proof.refuse()
        if board.board is not None:
            raise InputError(NO_BOARD)
        return report_mechanism(
            channel, reports.files, reports.text, reporter, common, force=force
        )
    from mechdesign.channel.file import load
    from mechdesign.report.collect import promise_of

    started = time.perf_counter()
    loaded = load(channel)
    if board.board is not None:
        loaded.on_tables(NO_BOARD)
    promise = "nothing but the given columns is released"
    if loaded.channels:
        promise = promise_of(loaded, channel).text
    satisfied = _save_reports(
        reporter, loaded, channel, reports, proof, board, force=force
    )
    files = reports.files
    written = reports.text()
    if board.board is not None:
        files["board"] = board.board
        written = f"{written} Page for the board: {board.board}.".strip()
    reporter.done("reported", written, **files, satisfied=satisfied)
    seconds = time.perf_counter() - started
    common.answer(
        lambda: {**files, "satisfied": satisfied, "seconds": seconds},
        lambda: f"{VERDICTS[satisfied]}.\n{written}\nFor specialists: {promise}.",
    )
    return NO if satisfied is False else 0


def _save_reports(
    reporter: Reporter,
    channel: md.Channel,
    name: str,
    reports: ReportOptions,
    proof: ProofOptions,
    board: BoardOptions,
    *,
    force: bool,
) -> bool | None:
    """Write the reports of a channel from the file `name`; its exact verdict, None without a table,
    where nobody can decide it.
    """
    from mechdesign.auditing.stated import has_table
    from mechdesign.report.collect import behind

    if not has_table(channel):
        proof.refuse()
        board.refuse_public(name)
        if reports.report is not None:
            raise InputError(
                f"{name} is a public channel without its table, so it has no internal report: "
                "give --public-report FILE"
            )
    with reporter.work("auditing"):
        design = behind(channel, None, name, certificate=proof.certificate)
    line = design_line(channel, os.path.basename(name))
    reports.save(channel, design, reporter, line=line, output=name, force=force)
    written = [path for path in reports.files.values() if path is not None]
    with errors_noting(*[f"{path} is written" for path in written]):
        board.save(design, name, force=force)
    return None if design is None else design.verified


def design_line(channel: md.Channel, output: str) -> str | None:
    """The command that designed the channel, from its file."""
    return recorded_line(channel.provenance.get(COMMAND), {"--output": output})


def commands(
    line: str | None, file: str | None, *, public: bool, takes_table: bool = True
) -> tuple[Command, ...]:
    """Shell lines for a channel; `line` is the one that designed it, if it is known."""
    from mechdesign.report.record import Command

    channel = options.PUBLIC_CHANNEL
    if file is not None:
        channel = os.path.basename(file)
    audit = [PROGRAM, "audit", channel]
    holder = ""
    if public:
        # A public channel file has no table to be audited on; boxes take none.
        if takes_table:
            audit += ["--table", options.PUBLIC_TABLE]
        holder = " (for the holder of the table)"
    apply = [PROGRAM, "apply", channel, "IN.csv", "OUT.csv"]
    show = [PROGRAM, "show", channel, "--csv"]
    steps: list[Command] = []
    if line is not None:
        steps.append(Command(f"Design the channel{holder}:", line))
    steps.append(
        Command(f"Check exactly that it keeps its promise{holder}:", shlex.join(audit))
    )
    steps.append(Command("Release a file, each record one draw:", shlex.join(apply)))
    steps.append(Command("The matrix with all its digits:", shlex.join(show)))
    return tuple(steps)
