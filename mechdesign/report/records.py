"""Results as plain dictionaries that JSON can carry (infinities as the string "inf")."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from mechdesign.auditing.channel_measures import ChannelMeasures
from mechdesign.auditing.guarantees import guarantees
from mechdesign.auditing.population_promise import PopulationPromise
from mechdesign.auditing.verdict import Audit
from mechdesign.channel.channel import Channel
from mechdesign.mechanisms.result import Design
from mechdesign.notions import to_record
from mechdesign.report.bins_text import bins_record
from mechdesign.report.population_text import population_record


def plain(value: Any) -> Any:
    """`value` with infinities as "inf" and "-inf", NaN as None, and mappings and sequences rebuilt."""
    if isinstance(value, float):
        if math.isnan(value):
            return None
        return value if math.isfinite(value) else ("inf" if value > 0 else "-inf")
    if isinstance(value, Mapping):
        return {key if isinstance(key, str) else f"{key:g}": plain(item) for key, item in value.items()}  # type: ignore[misc]
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]  # type: ignore[misc]
    return value


def to_json(record: Mapping[str, Any]) -> str:
    """One JSON object on one line, Unicode as it is."""
    return json.dumps(plain(record), ensure_ascii=False, allow_nan=False)


def design_record(design: Design, output: str | None) -> dict[str, Any]:
    """What `design --json` prints."""
    achieved = design.achieved
    joint = design.channel.joint
    return {
        "mechanism": design.mechanism,
        "method": design.method,
        "notion": to_record(design.notion),
        "nmi": design.nmi,
        "mutual_information": design.mutual_information,
        "entropy": design.entropy,
        "upper_bound_nmi": design.certificate.upper_bound_nmi,
        "gap_nmi": design.certificate.gap_nmi,
        "certificate": {"scope": design.certificate.scope, **design.certificate.details},
        "achieved": asdict(achieved),
        "used": None if design.used is None else asdict(design.used),
        "guarantees": asdict(guarantees(achieved.eps_l, achieved.eps_u)),
        "outputs": design.outputs,
        "bins": bins_record(design.channel),
        "repaired": design.repaired,
        "borrowed": list(design.borrowed),
        "fallback_from": design.fallback_from,
        "verified": design.verified,
        "as_published": design.as_published,
        "records": None if joint is None else joint.records,
        "confidence": None if design.confidence is None else design.confidence.level,
        "population": population_record(design.population),
        "notices": [] if joint is None else list(joint.notices),
        "messages": list(design.messages),
        "seconds": design.seconds,
        "output": output,
    }


def audit_record(audit: Audit, promise: PopulationPromise | None = None) -> dict[str, Any]:
    """What `audit --json` prints; `promise` is what holds for the population, where the table counts records."""
    worst = audit.worst
    record: dict[str, Any] = {"sensitive": worst.sensitive, "output": worst.output, "lift": worst.lift}
    if worst.against is not None:
        record["against"] = worst.against
    return {
        "satisfied": audit.satisfied,
        "notion": to_record(audit.notion),
        "achieved": asdict(audit.achieved),
        "used": None if audit.used is None else asdict(audit.used),
        "worst": record,
        "population": population_record(promise),
    }


def channel_record(channel: Channel) -> dict[str, Any]:
    """What `show --json` prints; the codebook is null for a public channel."""
    return {
        "useful": {
            "columns": list(channel.useful.columns),
            "symbols": [list(s) for s in channel.useful.symbols],
        },
        "outputs": list(channel.outputs),
        "denominator": channel.denominator,
        "rows": [list(row) for row in channel.rows],
        "matrix": channel.matrix.tolist(),
        "codebook": channel.codebook() if channel.joint is not None else None,
        "notion": channel.record.notion,
        "achieved": channel.record.achieved,
        "utility": channel.record.utility,
        "certificate": channel.record.certificate,
        "provenance": channel.record.provenance,
    }


def measures_record(measures: ChannelMeasures) -> dict[str, Any]:
    """What `measure --json` prints."""
    return {
        "utility": measures.utility,
        "leakage": measures.leakage,
        "achieved": asdict(measures.achieved),
        "guarantees": [asdict(line) for line in measures.guarantees],
        "outputs": [asdict(out) for out in measures.outputs],
    }
