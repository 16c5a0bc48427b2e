"""The report of any design or channel: its audit, its measures, its curve and its provenance.

`write_report` calls `behind`, which audits, and `save_reports`. The steps are:

1. `promise_of` reads from the channel which notion it was designed for.
2. `design_behind` makes a design of a channel from a file. It audits the integers again with the
   table; only the bound is taken from the file, since it would need the search again.
3. `internal_report` measures and audits the design (`measure`, `audit`), words the promise and the
   beliefs (`content.summary_report`), computes the trade-off curve (`comparison.curve`), and adds
   lifts and codebook (`content.full_report`). A public report is `content.public_report` alone.
4. `attributed` adds the date, the provenance and the commands, such as the fact
   ("Report written", "2026-01-31 08:00 UTC, by mechdesign 1.0").
5. `writing.save_reports` writes the files.
"""

from __future__ import annotations

import hashlib
import math
import os
import platform
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, TypeAlias, cast

from mechdesign import __version__
from mechdesign.auditing.either import audit_boxes
from mechdesign.auditing.measures import beyond_given, measure, utility
from mechdesign.auditing.population import audit_with_confidence, set_behind
from mechdesign.auditing.stated import (
    has_table,
    is_bound,
    refuse_unproven,
    refuse_wrong_figures,
    stated_figures,
    statement_of,
)
from mechdesign.auditing.unchanged import unchanged_cells
from mechdesign.channel.box_claims import BoxUtility
from mechdesign.channel.channel import Channel
from mechdesign.channel.file import require_channel
from mechdesign.comparison.curve import curve_through
from mechdesign.core.arguments import number
from mechdesign.core.documents import package_version
from mechdesign.core.errors import InputError
from mechdesign.core.files import PathLike, sha256_of
from mechdesign.core.wording import STATED
from mechdesign.formats.opening import files_of, is_folder
from mechdesign.mechanisms.optimal import OPTIMAL
from mechdesign.mechanisms.plan_costs import groups_of
from mechdesign.mechanisms.proving import boxes_with_certificate, with_certificate
from mechdesign.mechanisms.result import (
    OF_THESE_BOXES,
    Certificate,
    Design,
    LeastCost,
    finish,
)
from mechdesign.mechanisms.rounding import Rounded
from mechdesign.notions import Notion
from mechdesign.report import writing
from mechdesign.report.content import full_report, public_report, summary_report
from mechdesign.report.first_screen import remarks_of
from mechdesign.report.record import Command, Fact, Report, origin_of
from mechdesign.tables.joint import Joint

Watch: TypeAlias = Callable[..., AbstractContextManager[Any]]
"""``watch(text, unit=..)`` is a context that shows progress; its `at` is a
`core.progress.Progress`.
"""

NOT_AGAIN = (
    "Bounds on what other channels could keep are stated by the file, not proven again "
    "here."
)

LIBRARIES = ("numpy", "highspy", "python-flint")
"""Libraries that compute the figures of a report."""

MANY_OUTPUTS = 20_000
"""Outputs up to which a report has all measures: their logarithms and powers take 0.4 ms each."""

NO_MEASURES = (
    "Other figures of this channel are not listed: it has more outputs than a report measures. "
    "`mechdesign audit CHANNEL --all-measures` computes them."
)

LEAST_FIGURES = 4
"""Figures of a least-cost design: cost, its bound, truth, and the deviation of frequencies."""


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """The reports to write, and what they have beside the channel.

    Parameters
    ----------
    internal, public : path, optional
        Where the report for those who may see the table is written, and that for everybody.
    overwrite : bool
    seconds : float, optional
        The processor time for the curve.
    watch : callable
        Shows progress (`Watch`); by default nothing does.
    table : str, optional
        The name of the table's file.
    files : mapping of str to str
        Files whose facts the internal report states, by what they are.
    commands, public_commands : tuple of Command
        The shell lines of both.
    """

    internal: PathLike | None = None
    public: PathLike | None = None
    overwrite: bool = False
    seconds: float | None = None
    watch: Watch = lambda *_, **__: nullcontext()
    table: str | None = None
    files: Mapping[str, str] = field(default_factory=dict[str, str])
    commands: tuple[Command, ...] = ()
    public_commands: tuple[Command, ...] = ()


def save_reports(channel: Channel, design: Design | None, wanted: Wanted) -> None:
    """Write the reports on a channel; there is no internal one without its `design`."""
    # Both are made before either is written, so a failure leaves no half of them.
    reports: list[tuple[PathLike, Report]] = []
    satisfied: bool | None = None
    if design is not None:
        satisfied = design.verified
        if wanted.internal is not None:
            report = internal_report(
                design,
                channel.joint,
                wanted.watch,
                table=wanted.table,
                seconds=wanted.seconds,
            )
            report = attributed(report, channel, wanted.commands, wanted.files)
            reports.append((wanted.internal, report))
    if wanted.public is not None:
        # Of the table it has the verdict alone, and without a table nobody checked it here.
        report = public_report(channel, promise_of(channel), satisfied=satisfied)
        report = attributed(report, channel, wanted.public_commands)
        reports.append((wanted.public, report))
    writing.save_reports(reports, overwrite=wanted.overwrite)


def behind(
    channel: Channel,
    design: Design | None = None,
    name: str = "the channel",
    *,
    certificate: bool = False,
    end: float = math.inf,
) -> Design | None:
    """What reports on a channel need of its design: that at hand, or the one that the file and its
    table tell (`design_behind`); None for a public channel.

    Proofs of its `certificate` stop at `end`, on the clock of `time.process_time`.
    """
    if design is not None or not has_table(channel):
        return design
    notion = promise_of(channel, name)
    utility = channel.box_utility
    if utility is not None:
        return _boxes_behind(channel, utility, notion, certificate=certificate, end=end)
    # Claims of boxes have what these keep beside the counts, and any other channel has its table.
    assert channel.joint is not None
    return design_behind(
        channel, channel.joint, notion, certificate=certificate, end=end
    )


def internal_report(
    design: Design,
    joint: Joint | None,
    watch: Watch = lambda *_, **__: nullcontext(),
    *,
    table: str | None = None,
    seconds: float | None = None,
) -> Report:
    """Audit, measure, and compute the trade-off curve: for readers who may see the table.

    Parameters
    ----------
    design, joint
        The design, and its table; None of boxes, which carry counts in its place.
    watch : callable
        Shows progress (`Watch`); by default nothing does.
    table : str, optional
        The name of the table's file.
    seconds : float, optional
        The processor time for the curve.
    """
    channel = design.channel
    absent: dict[str, str] = {}
    with watch("measuring the channel"):
        attained: Mapping[str, float] = {}
        verdict = design.audit
        if joint is not None:
            if len(channel.outputs) <= MANY_OUTPUTS:
                attained = measure(channel, joint).leakage
            else:
                absent["measures"] = NO_MEASURES
            confidence = design.confidence
            verdict = audit_with_confidence(
                channel, joint, design.notion, population=confidence
            )
        summary = summary_report(
            design,
            joint,
            attained=attained,
            remarks=(*remarks_of(design), *design.messages),
            verdict=verdict,
            table=table,
        )
    # The curve comes last: it takes the time that is left, and a report is complete without it.
    with watch("computing the curve", unit="budgets") as work:
        curve, reason = curve_through(
            design,
            joint,
            seconds=seconds,
            progress=None if work is None else work.at,
        )
    if curve is None:
        absent["curve"] = reason
    report = full_report(summary, channel, joint)
    return replace(report, curve=curve, absent=absent)


def design_behind(
    channel: Channel,
    joint: Joint,
    notion: Notion,
    *,
    certificate: bool = False,
    end: float = math.inf,
) -> Design:
    """The design of a channel from a file, audited again.

    With `certificate` its bounds are proven again from the proof in the file; else they are only
    stated by the file. Proofs stop at `end`, on the clock of `time.process_time`.

    Raises
    ------
    NotPrivate
        If a figure of the file is not that of its integers on its table, or a bound is not proven.
    SolverFailure
        If a bound is not proven in time.
    """
    statement = statement_of(channel)
    # A broken promise is reported as one, whatever its figures say.
    if statement.kept is not False:
        refuse_wrong_figures(statement)
    if certificate:
        statement = with_certificate(statement, channel, end=end)
        refuse_unproven(statement)
    # Nothing is taken from the file that can be computed from its integers and its table; only the
    # bound would need the search again, or its proof.
    confidence = set_behind(channel, joint)
    verdict = audit_with_confidence(channel, joint, notion, population=confidence)
    messages = _messages_of(channel)
    if not certificate and any(map(is_bound, stated_figures(channel))):
        messages = (NOT_AGAIN, *messages)
    design = finish(
        Rounded(channel, verdict),
        joint,
        origin_of(channel, "mechanism") or OPTIMAL,
        origin_of(channel, "method") or "",
        certificate=_certificate(channel, "proven" if certificate else STATED),
        messages=messages,
        worth=beyond_given(utility(channel, joint), joint, channel.given),
    )
    objective = channel.record.objective
    figures = channel.record.least
    least: LeastCost | None = None
    # A file without one of them says nothing that could be set beside a bound.
    if objective is not None and len(figures) >= LEAST_FIGURES:
        least = LeastCost(objective=objective, **figures)
    truth: dict[str, float] | None = None
    groups = (1, 0)
    if channel.releases_symbols and len(channel.useful.columns) > 1:
        truth = unchanged_cells(channel, joint)
        groups = groups_of(channel, joint)
    return replace(
        design,
        truth=truth,
        smallest_group=groups[0],
        single_rows=groups[1],
        channel=channel,
        verified=verdict.satisfied,
        confidence=confidence,
        least=least,
    )


def _boxes_behind(
    channel: Channel,
    utility: BoxUtility,
    notion: Notion,
    *,
    certificate: bool,
    end: float,
) -> Design:
    """The design of boxes from a file, audited again; what it keeps is only stated by the file, but
    for bounds that are proven again (`design_behind`).
    """
    messages = (NOT_AGAIN, *_messages_of(channel))
    scope = STATED
    if certificate:
        statement = boxes_with_certificate(channel, end=end)
        refuse_wrong_figures(statement)
        refuse_unproven(statement)
        messages = _messages_of(channel)
        scope = "proven"
    verdict = audit_boxes(channel, notion)
    bound = Certificate(
        upper_bound_nmi=utility.upper_bound_nmi, scope=scope, rivals=OF_THESE_BOXES
    )
    return Design(
        channel=channel,
        notion=notion,
        mechanism=origin_of(channel, "mechanism") or "rows",
        method=origin_of(channel, "method") or "boxes",
        nmi=utility.nmi,
        mutual_information=utility.information,
        entropy=utility.entropy,
        achieved=verdict.achieved,
        certificate=bound.at(utility.nmi),
        messages=messages,
        verified=verdict.satisfied,
        audit=verdict,
        on_table=verdict.on_table,
    )


def _messages_of(channel: Channel) -> tuple[str, ...]:
    """What was said when a channel was designed, such as that the search ended early."""
    messages: Any = channel.provenance.get("messages")
    if not isinstance(messages, list):
        return ()
    return tuple(
        f"Said at the design: {message}" for message in cast("list[object]", messages)
    )


def promise_of(channel: Channel, name: str = "the channel") -> Notion:
    """The notion that a channel was designed for."""
    notion = channel.promise
    if notion is None:
        raise InputError(
            f"{name} does not say which notion it was designed for, so there is no promise to "
            "report; `mechdesign audit --all-measures` takes any channel, with --notion"
        )
    return notion


def attributed(
    report: Report,
    channel: Channel,
    commands: Sequence[Command],
    files: Mapping[str, str] | None = None,
) -> Report:
    """The report with its date, its provenance and the commands that repeat it."""
    written = _date(datetime.now(UTC))
    facts: list[Fact] = []
    tool = origin_of(channel, "tool")
    tool_version = origin_of(channel, "version")
    if tool is not None and tool_version is not None:
        facts.append(Fact("Channel made by", f"{tool} {tool_version}"))
    # A digest of the integers, so that a copy of the channel with other remarks has the same one.
    facts.append(Fact("SHA-256 of what the channel does", channel.digest))
    facts.append(Fact("Report written", f"{written}, by mechdesign {__version__}"))
    if report.audience == "internal":
        libraries = ", ".join(f"{name} {package_version(name)}" for name in LIBRARIES)
        facts.append(
            Fact("Computed with", f"Python {platform.python_version()}, {libraries}")
        )
        for name, path in (files or {}).items():
            facts += _file_facts(name, path)
    return replace(
        report, written=written, provenance=tuple(facts), commands=tuple(commands)
    )


def _certificate(channel: Channel, known: str) -> Certificate:
    """The certificate in the channel file, without a bound if it lacks a part.

    `known` says how its bound is known: proven again here, or stated by the file.
    """
    figures = channel.record.certificate or {}
    bound = figures.get("upper_bound_nmi")
    gap = figures.get("gap_nmi")
    scope = figures.get("scope")
    # A bound says something only with its gap and its scope, that is, what it is a bound on.
    is_bound = isinstance(bound, float | int) and isinstance(gap, float | int)
    if not is_bound or not isinstance(scope, str):
        return Certificate(scope=known)
    return Certificate(upper_bound_nmi=bound, gap_nmi=gap, scope=known)


def _file_facts(name: str, path: str) -> list[Fact]:
    """The date and the hash of a file, or of all files of a folder."""
    if is_folder(path):
        folder, names = files_of(path)
        # The format of sha256sum, so that anybody can compute the digest without this tool.
        lines = [f"{sha256_of(folder / member)}  {member}\n" for member in names]
        digest = hashlib.sha256("".join(lines).encode()).hexdigest()
        return [
            Fact(name, f"{path}, {len(names)} files"),
            Fact("SHA-256 of what `sha256sum` prints of them", digest),
        ]
    base = os.path.basename(path)
    changed = _date(datetime.fromtimestamp(os.path.getmtime(path), UTC))
    return [
        Fact(name, f"{base}, last changed {changed}"),
        Fact(f"SHA-256 of {base}", sha256_of(path)),
    ]


def _date(moment: datetime) -> str:
    """``2026-01-31 08:00 UTC``."""
    return f"{moment:%Y-%m-%d %H:%M} UTC"


# -------------------------------------------------------------------- reports of Python


def write_report(
    design: Design | Channel,
    path: PathLike,
    *,
    public: bool,
    curve: float | None,
    overwrite: bool,
) -> None:
    """Write the report of `mechdesign.report`, which has the parameters and errors."""
    # A design has its channel; a channel stands for itself.
    channel = require_channel(
        "design", getattr(design, "channel", design), "; and no Design"
    )
    writing.check_report(path, force=overwrite)
    if curve is not None:
        channel.on_tables("a channel of boxes has no curve: leave curve out")
    # A design brings its bound and its remarks; of a channel alone they come from the file.
    result = behind(channel, None if isinstance(design, Channel) else design)
    # Before anything is written: a report of a broken promise would look like a promise.
    if result is not None and not result.verified:
        raise InputError(
            "a channel that breaks its promise has no report; mechdesign.audit says where"
        )
    if result is None and not public:
        raise InputError(
            "the channel is public and has no internal report; give public=True"
        )
    wanted = Wanted(
        internal=None if public else path,
        public=path if public else None,
        overwrite=overwrite,
        seconds=_curve_seconds(curve),
    )
    save_reports(channel, result, wanted)


def _curve_seconds(curve: float | None) -> float | None:
    """The time for the curve, as a finite number of seconds."""
    if curve is None:
        return None
    seconds = number("curve", curve, "of seconds")
    if not 0.0 <= seconds < math.inf:
        raise InputError(f"--curve ({curve!r}) must be a number of seconds, at least 0")
    return seconds
