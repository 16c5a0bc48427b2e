"""`mechdesign report CHANNEL`: what a channel promises, what it does and what it costs, as a file for people."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import typer

from mechdesign.cli import options as o
from mechdesign.cli.report_files import ReportPaths
from mechdesign.core.errors import InputError

if TYPE_CHECKING:
    from mechdesign.channel.channel import Channel
    from mechdesign.cli.findings import Made

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
    from mechdesign.cli.findings import design_of, findings_of, frames
    from mechdesign.cli.reporting import reporter_of
    from mechdesign.report.building import internal_report
    from mechdesign.report.public import public_report

    started = time.perf_counter()
    reporter = reporter_of(context)
    loaded = Channel.load(channel)
    made = _made(loaded, channel)
    joint = loaded.joint
    if joint is None and internal is not None:
        raise InputError(
            f"{channel} is a public channel without its table, so nothing internal can be said: give "
            "--public-report FILE"
        )
    satisfied = None if joint is None else audit(loaded, joint, made.notion).satisfied
    inside, outside = frames(
        made,
        design_line=design_of(made, "TABLE.csv", channel),
        files={"Channel file": channel},
        file=channel,
    )
    full = None
    if joint is not None and internal is not None:
        full = internal_report(findings_of(made, joint, None, reporter), inside)
    shown = None
    if public is not None:
        shown = public_report(
            loaded, made.notion, outside, mechanism=made.mechanism, method=made.method, satisfied=satisfied
        )
    paths.save(full, shown)
    reporter.done("reported", paths.text(), **paths.record(), satisfied=satisfied)
    took = time.perf_counter() - started
    verdict = {True: "satisfied", False: "VIOLATED", None: "not checked, for want of the table"}[satisfied]
    common.answer(
        lambda: {**paths.record(), "satisfied": satisfied, "seconds": took},
        lambda: f"{made.notion.text}: {verdict}.\n{paths.text()}",
    )
    return NO if satisfied is False else 0


def _made(channel: Channel, path: str) -> Made:
    """What the channel file knows of its origin."""
    from mechdesign.cli.findings import Made
    from mechdesign.mechanisms.result import Certificate
    from mechdesign.notions import from_record

    record = channel.record
    if record.notion is None:
        raise InputError(
            f"{path} does not say which notion it was designed for, so there is no promise to report; "
            "`mechdesign audit` and `mechdesign measure` take any channel"
        )
    proof: dict[str, Any] = record.certificate or {}
    bound, gap, scope = (proof.get(key) for key in ("upper_bound_nmi", "gap_nmi", "scope"))
    known = isinstance(bound, float | int) and isinstance(gap, float | int) and isinstance(scope, str)
    mechanism, method = (record.provenance.get(key) for key in ("mechanism", "method"))
    return Made(
        channel=channel,
        notion=from_record(record.notion),
        mechanism=mechanism if isinstance(mechanism, str) else None,
        method=method if isinstance(method, str) else None,
        certificate=Certificate(upper_bound_nmi=bound, gap_nmi=gap, scope=scope) if known else Certificate(),  # type: ignore[arg-type]
        remarks=(NOT_AGAIN,) if known else (),
    )
