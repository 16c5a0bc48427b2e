"""The JSON outputs of `design`, `audit` and `show`: plain dictionaries.

`design_record`, `audit_record` and `channel_record` pick the figures of a result by their keys, and
`plain_values.to_json` writes them. What a result lacks is null: the gap of a heuristic, the level
of a design without confidence. A design looks like this, with some thirty keys::

    {"mechanism": "optimal", "nmi": 0.801, "upper_bound_nmi": 0.802, "verified": true,
     "achieved": {"eps_l": 0.5, "eps_u": 0.5, "eps_ldp": 0.99}, "objective": "information", ..}

A design of boxes has the keys of `boxes.box_facts` besides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from mechdesign.auditing.law import Law
from mechdesign.auditing.leakages import guarantees
from mechdesign.auditing.population_promise import PopulationPromise
from mechdesign.auditing.verdict import Audit
from mechdesign.channel.channel import Channel
from mechdesign.channel.proof import PROOF
from mechdesign.channel.record import RELATIVE
from mechdesign.core.wording import STATED
from mechdesign.mechanisms.result import Design
from mechdesign.notions import Notion, to_record
from mechdesign.release.released_values import moved
from mechdesign.report.boxes import box_channel_facts, box_facts
from mechdesign.report.plain_values import optional_record
from mechdesign.report.sentences import population_record, spending_record

MOST_CELLS = 1 << 20
"""Inputs times outputs up to which `show --json` has all of a matrix, zeros too."""


def design_record(design: Design, output: str | None) -> dict[str, Any]:
    """The record of `design --json`."""
    joint = design.channel.joint
    certificate = design.certificate
    bins = [asdict(moves) for moves in moved(design.channel) if moves.edges]
    records: int | None = None
    notices: Sequence[str] = ()
    if joint is not None:
        records = joint.records
        notices = joint.notices
    record: dict[str, Any] = {
        "mechanism": design.mechanism,
        "method": design.method,
        "nmi": design.nmi,
        "mutual_information": design.mutual_information,
        "entropy": design.entropy,
        "outputs": design.outputs,
        "messages": design.messages,
        "repaired": design.repaired,
        "borrowed": design.borrowed,
        "fallback_from": design.fallback_from,
        "verified": design.verified,
        "as_published": design.as_published,
        "seconds": design.seconds,
        "upper_bound_nmi": certificate.upper_bound_nmi,
        "gap_nmi": certificate.gap_nmi,
        "notion": to_record(design.notion),
        "certificate": {"scope": certificate.scope, **certificate.details},
        "achieved": asdict(design.achieved),
        "used": optional_record(design.used),
        "guarantees": _guarantees(design),
        "bins": bins,
        "records": records,
        "confidence": design.level,
        "population": population_record(design.population),
        "after": spending_record(design.spending),
        "notices": notices,
        "objective": "information",
    }
    # What a design was made for replaces the objective; a design has at most one of the two.
    least = design.least
    if least is not None:
        record["objective"] = least.objective.name
        record |= least.figures
        record["asked"] = least.objective.model_dump()
    # Of rows the unchanged cells of each column, in the place of unchanged records.
    if design.truth is not None:
        record["truth"] = design.truth
        record["promise"] = design.channel.record.promise_kind
        record["given"] = design.channel.given
        record["given_lift"] = optional_record(design.given_lift)
        record["smallest_group"] = design.smallest_group
        people = design.channel.useful.people
        record["people"] = None if people is None else asdict(people)
    if design.audit is not None:
        record |= box_facts(design)
    record |= law_record(design.law, design.law_absent)
    if design.purpose is not None:
        record["objective"] = design.purpose.name
        record |= design.purpose.figures
    averages = design.channel.record.averages
    if averages:
        record["averages"] = [average.model_dump() for average in averages]
    record["output"] = output
    return record


def law_record(law: Law | None, absent: str | None) -> dict[str, Any]:
    """What an analyst reads, for JSON: null with a reason where nothing can be compared."""
    if law is not None:
        return {"law": law.record}
    return {"law": None, "law_absent": absent}


def audit_record(
    audit: Audit, promise: PopulationPromise | None = None
) -> dict[str, Any]:
    """The record of `audit --json`; `promise` is what holds for the population, if the
    table counts records.
    """
    # `before` and `against` exist only after earlier releases and for ratios: elsewhere they are
    # left out, and not null.
    worst: dict[str, Any] = {}
    for key, value in asdict(audit.worst).items():
        if value not in (None, ()):
            worst[key] = value
    record: dict[str, Any] = {
        "satisfied": audit.satisfied,
        "notion": notion_record(audit.notion),
        "achieved": asdict(audit.achieved),
        "used": optional_record(audit.used),
        "averages": [asdict(average) for average in audit.averages],
        "worst": worst,
        "population": population_record(promise),
    }
    if audit.on_table is not None:
        record |= {
            "population": {"level": audit.level, **asdict(audit.achieved)},
            "confidence": audit.level,
            "table": asdict(audit.on_table),
            "records": audit.records,
            "together": [list(group) for group in audit.together],
            "strata": len(audit.strata),
        }
    return record


def notion_record(notion: Notion | None) -> dict[str, Any] | None:
    """A notion, or null where nothing is released and nothing promised."""
    return None if notion is None else to_record(notion)


def channel_record(channel: Channel) -> dict[str, Any]:
    """The record of `show --json`; the codebook is null for a public channel."""
    record = channel.record
    level: float | None = None
    if record.confidence is not None:
        level = record.confidence["level"]
    codebook: dict[str, dict[str, float]] | None = None
    if channel.joint is not None:
        codebook = channel.codebook()
    certificate = record.certificate
    if certificate is not None:
        # Nothing proves the bound of a file again here, so its proof says nothing.
        certificate = {**certificate, "scope": STATED}
        certificate.pop(PROOF, None)
    integers = channel.integers
    matrix: dict[str, Any] = {
        "denominator": channel.denominator if channel.totals is None else None,
        "totals": channel.totals,
    }
    if integers.shape[0] * integers.shape[1] > MOST_CELLS:
        # The rows of many symbols are nearly all zeros: index, integer, index, integer, ..
        matrix["sparse_rows"] = list(integers.pairs())
        codebook = None
    else:
        matrix["rows"] = [list(row) for row in channel.rows]
        matrix["matrix"] = channel.matrix.tolist()
    shown: dict[str, Any] = {
        "useful": {
            "columns": channel.useful.columns,
            "symbols": channel.useful.symbols,
        },
        "outputs": channel.outputs,
        "published": {
            "columns": channel.output_columns,
            "cells": channel.output_cells,
        },
        "given": channel.given,
        **matrix,
        "codebook": codebook,
        "notion": record.notion,
        "achieved": record.achieved,
        "utility": record.utility,
        "certificate": certificate,
        "provenance": record.provenance,
        "confidence": level,
        "rules": record.rules.model_dump(),
    }
    if channel.claims is not None:
        shown |= box_channel_facts(channel)
    return shown


def _guarantees(design: Design) -> dict[str, float] | None:
    """What follows from the achieved budgets; None for a relative promise, which bounds nothing of
    the whole row.
    """
    if design.channel.record.promise_kind == RELATIVE:
        return None
    return guarantees(design.achieved.eps_l, design.achieved.eps_u)
