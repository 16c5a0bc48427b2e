"""What a report is built from: the exact audit, the measures, the curve, and where everything comes from."""

from __future__ import annotations

import hashlib
import math
import os
import platform
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any, TypeAlias

from mechdesign.auditing.measures import measure
from mechdesign.auditing.population import audit, set_behind
from mechdesign.channel.channel import Channel
from mechdesign.comparison.curve import axis_of, curve_through
from mechdesign.core.arguments import number
from mechdesign.core.errors import InputError, expected
from mechdesign.core.files import PathLike, sha256_of
from mechdesign.formats.folders import files_of, is_folder
from mechdesign.mechanisms import OPTIMAL
from mechdesign.mechanisms.result import Certificate, Design, LeastCost, finish
from mechdesign.mechanisms.rounding import Rounded
from mechdesign.notions import Notion
from mechdesign.release.drawing import channel_digest
from mechdesign.report.content import (
    full_report,
    origin_of,
    public_report,
    summary_report,
)
from mechdesign.report.record import Command, Fact, Report
from mechdesign.report.sentences import spending_texts
from mechdesign.report.wording import label
from mechdesign.tables.joint import Joint

Watch: TypeAlias = Callable[..., AbstractContextManager[Any]]
"""``watch(text, unit=..)`` shows work for as long as it is entered; its `at` is a `core.progress.Progress`."""

NOT_AGAIN = "The bound is the one that the channel file has kept since the channel was designed."

LIBRARIES = ("numpy", "highspy", "python-flint")
"""Those that numbers of a report come from."""

NO_AXIS = "No curve: with these budgets (a side free, or beyond what a curve can reach) there is no axis."
NO_EARLIER = "No curve: it would be that of channels which leave the earlier releases out of account."
NO_SAMPLE = "No curve: `mechdesign compare --confidence` draws it, given the same shares and symbols."


def promise_of(channel: Channel, name: str = "the channel") -> Notion:
    """The notion that a channel was designed for."""
    notion = channel.record.promise(channel.sensitive)
    if notion is None:
        raise InputError(
            f"{name} does not say which notion it was designed for, so there is no promise to report; "
            "`mechdesign audit` and `mechdesign measure` take any channel"
        )
    return notion


def design_behind(channel: Channel, joint: Joint, notion: Notion) -> Design:
    """The design of a channel from a file, audited again; its bound is the one that the file has kept."""
    chosen = set_behind(channel, joint)
    verdict = audit(channel, joint, notion, population=chosen)
    kept, figures = None, channel.record.certificate or {}
    match [figures.get(key) for key in ("upper_bound_nmi", "gap_nmi", "scope")]:
        case [float() | int() as bound, float() | int() as gap, str() as scope]:
            kept = Certificate(upper_bound_nmi=bound, gap_nmi=gap, scope=scope)
        case _:
            pass
    mechanism, method = (
        origin_of(channel, "mechanism") or OPTIMAL,
        origin_of(channel, "method") or "",
    )
    told = () if kept is None else (NOT_AGAIN,)
    made = finish(
        Rounded(channel, verdict),
        joint,
        mechanism,
        method,
        certificate=kept,
        messages=told,
    )
    asked, known = channel.record.objective, channel.record.least
    least = (
        None if asked is None or len(known) < 4 else LeastCost(objective=asked, **known)
    )
    return replace(
        made,
        channel=channel,
        verified=verdict.satisfied,
        confidence=chosen,
        least=least,
    )


def internal_report(
    design: Design,
    joint: Joint,
    watch: Watch = lambda *_, **__: nullcontext(),
    *,
    table: str | None = None,
    seconds: float | None = None,
) -> Report:
    """Audit, measure, and compute the curve in so many seconds: everything that those may know who see the table."""
    channel, curve, why = design.channel, None, NO_AXIS
    with watch("measuring the channel"):
        measures = measure(channel, joint)
        remarks, known = (*remarks_of(design), *design.messages), measures.leakage
        verdict = audit(channel, joint, design.notion, population=design.confidence)
        summary = summary_report(
            design, joint, attained=known, remarks=remarks, verdict=verdict, table=table
        )
    axis, sample = axis_of(design.notion), design.confidence
    if sample is not None and (sample.unseen or sample.shares_are_known):
        axis, why = None, NO_SAMPLE
    if channel.record.after:
        axis, why = None, NO_EARLIER
    if axis is not None:
        with watch("computing the curve", unit="budgets") as work:
            curve, why = curve_through(
                joint, design, axis, None if work is None else work.at, seconds
            )
    report = full_report(summary, channel, joint, measures)
    return replace(
        report, curve=curve, absent={} if curve is not None else {"curve": why}
    )


def write_report(
    design: Design | Channel,
    path: PathLike,
    *,
    public: bool,
    curve: float | None,
    overwrite: bool,
) -> None:
    """As `mechdesign.report`, which is this function."""
    from mechdesign.report.writing import check_report, save_report

    made = design if isinstance(design, Design) else None
    channel = (
        expected("design", design, Channel, "; and no Design")
        if made is None
        else made.channel
    )
    seconds = None if curve is None else number("curve", curve, "of seconds")
    if seconds is not None and not 0.0 <= seconds < math.inf:
        raise InputError(f"curve ({curve!r}) must be a number of seconds, at least 0")
    check_report(path, force=overwrite, pictures=not public)
    notion, joint = promise_of(channel), channel.joint
    if made is None and joint is not None:
        made = design_behind(channel, joint, notion)
    if made is not None and not made.verified:
        raise InputError(
            "a channel that breaks its promise has no report; mechdesign.audit says where"
        )
    if public:
        found = public_report(channel, notion, satisfied=None if made is None else True)
    elif made is None or joint is None:
        raise InputError(
            "the channel is public: nothing internal can be said of it; give public=True"
        )
    else:
        found = internal_report(made, joint, seconds=seconds)
    save_report(attributed(found, channel, ()), path, overwrite=overwrite)


def remarks_of(design: Design) -> list[str]:
    """How the channel came about where that was not the straight way."""
    texts: list[str] = []
    if design.as_published:
        texts.append("This is the procedure as published, without repair.")
    if design.repaired:
        names = ", ".join(label(name) for name in design.borrowed) or "none"
        texts.append(
            "Repaired: merging the risky symbols among themselves was not private, so harmless ones were merged "
            f"with them: {names}."
        )
    if design.spending is not None:
        texts += spending_texts(design.spending)
    if design.fallback_from is not None:
        texts.append(
            f"Fallback: {design.fallback_from} gave no better verified channel."
        )
    return texts


def attributed(
    report: Report,
    channel: Channel,
    commands: Sequence[Command],
    files: Mapping[str, str] | None = None,
) -> Report:
    """The report with its date, its provenance and how to do it again."""
    from mechdesign import __version__

    written = _date(datetime.now(UTC))
    tool, made_by = origin_of(channel, "tool"), origin_of(channel, "version")
    facts = (
        []
        if tool is None or made_by is None
        else [Fact("Channel made by", f"{tool} {made_by}")]
    )
    facts.append(Fact("SHA-256 of what the channel does", channel_digest(channel)))
    facts.append(Fact("Report written", f"{written}, by mechdesign {__version__}"))
    if report.audience == "internal":
        libraries = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
        facts.append(
            Fact("Computed with", f"Python {platform.python_version()}, {libraries}")
        )
        for name, path in (files or {}).items():
            base = os.path.basename(path)
            if is_folder(path):
                folder, names = files_of(path)
                lines = "".join(
                    f"{sha256_of(folder / each)}  {each}\n" for each in names
                )
                facts.append(Fact(name, f"{path}, {len(names)} files"))
                digest = hashlib.sha256(lines.encode()).hexdigest()
                facts.append(Fact("SHA-256 of what `sha256sum` prints of them", digest))
                continue
            changed = _date(datetime.fromtimestamp(os.path.getmtime(path), UTC))
            facts.append(Fact(name, f"{base}, last changed {changed}"))
            facts.append(Fact(f"SHA-256 of {base}", sha256_of(path)))
    return replace(
        report, written=written, provenance=tuple(facts), commands=tuple(commands)
    )


def _date(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"
