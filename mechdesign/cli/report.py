"""`mechdesign report CHANNEL`: the promise, the working and the cost of a channel, as a
file for people.

`report` loads the channel, audits it again where the file has its table, and lets
`options.ReportOptions`, which `design` shares, write the files. --report is an internal report,
computed from the table, --public-report one for everybody, computed from the channel alone
(`report.collect`). A mechanism file of `quantize` has a page of its own.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

import mechdesign as md
from mechdesign.cli import options
from mechdesign.cli.console import Reporter
from mechdesign.cli.failures import NO
from mechdesign.cli.line import flag, option
from mechdesign.cli.mechanism import is_mechanism, report_mechanism
from mechdesign.core.errors import InputError, errors_noting

NO_CERTIFICATE = (
    "--certificate is for the file of a channel that has its table, or counts of boxes"
)


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

    def check(
        self, reports: options.ReportOptions, source: str, *, force: bool
    ) -> None:
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
        check_report(self.board, force=force, sources=(source,))

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
    reports: options.ReportOptions,
    proof: ProofOptions,
    proof_time: options.ProofTime,
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
    end = proof_time.end(certificate=proof.certificate)
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
        reporter, loaded, channel, reports, proof, board, end=end, force=force
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
    reports: options.ReportOptions,
    proof: ProofOptions,
    board: BoardOptions,
    *,
    end: float,
    force: bool,
) -> bool | None:
    """Write the reports of a channel from the file `name`; its exact verdict, None without a table,
    where nobody can decide it. Proofs stop at `end`, on the clock of `time.process_time`.
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
        design = behind(channel, None, name, certificate=proof.certificate, end=end)
    line = options.design_line(channel, os.path.basename(name))
    reports.save(channel, design, reporter, line=line, output=name, force=force)
    written = [path for path in reports.files.values() if path is not None]
    with errors_noting(*[f"{path} is written" for path in written]):
        board.save(design, name, force=force)
    return None if design is None else design.verified
