"""What a report is built from: the exact audit, the measures, the curve, and where everything comes from."""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any, TypeAlias

from mechdesign.auditing.beliefs import belief_ranges
from mechdesign.auditing.channel_measures import measure
from mechdesign.auditing.population import set_behind
from mechdesign.auditing.population_promise import population_promise
from mechdesign.auditing.verdict import audit
from mechdesign.channel.channel import Channel
from mechdesign.comparison.curve import axis_of, chosen_row, curve_through
from mechdesign.mechanisms import MECHANISMS, OBJECTIVES, OPTIMAL
from mechdesign.mechanisms.result import Certificate, Design
from mechdesign.notions import Notion
from mechdesign.release.drawing import channel_digest
from mechdesign.report.content import full_report, origin_of, summary_report
from mechdesign.report.record import Command, Fact, Report
from mechdesign.report.wording import label
from mechdesign.tables.joint import Joint

Watch: TypeAlias = Callable[..., AbstractContextManager[Any]]
"""``watch(text, unit=..)`` shows work for as long as it is entered; its `at` is a `core.progress.Progress`."""

LIBRARIES = ("numpy", "highspy", "python-flint")
"""Those that numbers of a report come from."""

NO_AXIS = (
    "No curve: with these budgets (a side free, or beyond what a curve can reach) there is no axis to follow."
)


def design_report(design: Design, joint: Joint, *, all_measures: bool = False) -> Report:
    """The summary of a design; the measures that no budget tells are computed only if asked for."""
    channel = design.channel
    return summary_report(
        channel,
        design.notion,
        joint,
        satisfied=design.verified,
        achieved=design.achieved,
        used=design.used,
        beliefs=belief_ranges(channel, joint),
        utility={
            "nmi": design.nmi,
            "mutual_information": design.mutual_information,
            "entropy": design.entropy,
        },
        certificate=design.certificate,
        population=design.population,
        chosen=design.confidence,
        attained=measure(channel, joint).leakage if all_measures else None,
        remarks=remarks_of(design),
        seconds=design.seconds,
    )


def internal_report(
    channel: Channel,
    notion: Notion,
    joint: Joint,
    watch: Watch,
    *,
    certificate: Certificate,
    remarks: Sequence[str] = (),
    seconds: float = 0.0,
    table: str | None = None,
) -> Report:
    """Audit, measure, and compute the curve: everything that those may know who see the table."""
    with watch("measuring the channel"):
        verdict = audit(channel, joint, notion)
        measures = measure(channel, joint)
        chosen = set_behind(channel, joint)
        summary = summary_report(
            channel,
            notion,
            joint,
            satisfied=verdict.satisfied,
            achieved=verdict.achieved,
            used=verdict.used,
            beliefs=belief_ranges(channel, joint),
            utility=measures.utility,
            certificate=certificate,
            worst=verdict.worst,
            population=population_promise(channel, joint, notion, chosen=chosen) if joint.is_counts else None,
            chosen=chosen,
            attained=measures.leakage,
            remarks=remarks,
            table=table,
        )
    curve, why = None, NO_AXIS
    axis = axis_of(notion)
    if axis is not None:
        made_by = origin_of(channel, "mechanism") or OPTIMAL
        objective = channel.record.objective
        own: dict[str, Any] | None = {}
        if objective is not None:
            alone = objective.stay or objective.forbid or objective.constraints or made_by not in OBJECTIVES
            own = {"keep_frequencies": objective.keep_frequencies, "distance": objective.distance}
            own = None if alone else own
        chosen = chosen_row(
            axis,
            notion,
            verdict.achieved,
            mechanism=made_by if objective is not None or made_by in MECHANISMS else OPTIMAL,
            nmi=measures.utility["nmi"],
            upper_bound_nmi=certificate.upper_bound_nmi,
            satisfied=verdict.satisfied,
        )
        with watch("computing the curve", unit="budgets") as work:
            curve, why = curve_through(joint, notion, axis, chosen, seconds, work.at, own)
    return full_report(summary, channel, joint, measures, curve, {} if curve is not None else {"curve": why})


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
    if design.fallback_from is not None:
        texts.append(f"Fallback: {design.fallback_from} gave no better verified channel.")
    return texts


def attributed(
    report: Report, channel: Channel, commands: Sequence[Command], files: Mapping[str, str] | None = None
) -> Report:
    """The report with its date, its provenance and how to do it again."""
    from mechdesign import __version__

    written = _date(datetime.now(UTC))
    facts = [*_origin(channel), Fact("Report written", f"{written}, by mechdesign {__version__}")]
    if report.audience == "internal":
        libraries = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
        facts.append(Fact("Computed with", f"Python {platform.python_version()}, {libraries}"))
        for name, path in (files or {}).items():
            base = os.path.basename(path)
            changed = _date(datetime.fromtimestamp(os.path.getmtime(path), UTC))
            facts += [Fact(name, f"{base}, last changed {changed}"), Fact(f"SHA-256 of {base}", _hash(path))]
    return replace(report, written=written, provenance=tuple(facts), commands=tuple(commands))


def _origin(channel: Channel) -> list[Fact]:
    """What a public channel file says of where it comes from, and the digest of what it does."""
    tool, made_by = origin_of(channel, "tool"), origin_of(channel, "version")
    made = [Fact("Channel made by", f"{tool} {made_by}")] if tool is not None and made_by is not None else []
    return [*made, Fact("SHA-256 of what the channel does", channel_digest(channel))]


def _date(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"


def _hash(path: str) -> str:
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
