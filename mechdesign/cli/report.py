"""`mechdesign report CHANNEL`: what a channel promises, what it does and what it costs, as a file for people."""

from __future__ import annotations

import time

import typer

from mechdesign.cli import options as o
from mechdesign.cli.report_files import ReportPaths
from mechdesign.core.errors import InputError

EXAMPLE = "Example:  mechdesign report channel.json --report report.html --public-report public.html"

NO = 1
"""Exit code when the channel violates its notion; the reports say so."""

NOT_AGAIN = "The bound is the one that the channel file has kept since the channel was designed."


def report(
    context: typer.Context,
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
    from mechdesign.cli.commands import commands, design_of
    from mechdesign.cli.reporting import reporter_of
    from mechdesign.report.collect import attributed, internal_report
    from mechdesign.report.content import certificate_of, public_report

    started = time.perf_counter()
    reporter = reporter_of(context)
    loaded = Channel.load(channel)
    notion = loaded.record.promise(loaded.sensitive)
    if notion is None:
        raise InputError(
            f"{channel} does not say which notion it was designed for, so there is no promise to report; "
            "`mechdesign audit` and `mechdesign measure` take any channel"
        )
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
