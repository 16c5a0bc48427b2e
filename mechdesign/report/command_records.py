"""The JSON outputs of `design`, `audit` and `show`, and what `audit` says of a file's own figures.

`design_record`, `audit_record` and `channel_record` pick the figures of a result by their keys, and
`plain_values.to_json` writes them. What a result lacks is null: the gap of a heuristic, the level
of a design without confidence. A design looks like this, with some thirty keys::

    {"mechanism": "optimal", "nmi": 0.801, "upper_bound_nmi": 0.802, "verified": true,
     "achieved": {"eps_l": 0.5, "eps_u": 0.5, "eps_ldp": 0.99}, "objective": "information", ..}

A design of boxes has the keys of `boxes.box_facts` besides.

*Figures of a channel file* were computed again, or they are only stated (`figures_texts`). A file
whose share of information was raised by hand gives ::

    The file states nmi 0.9, but its integers and its table give 0.42: the file was edited ..
    Computed again and right: eps_l, eps_u, eps_ldp, entropy.
    Stated by the file, not proven again here: upper_bound_nmi.

With --certificate the last line is instead one of ::

    Proven again from the certificate in the file: upper_bound_nmi 0.42.
    The bound upper_bound_nmi 0.3 is not proven, for the proof gives 0.42: the proof in the file ..

With --breach `breach_sentences` says for each direction whether there is a privacy breach
(`auditing.breaches`), and how far the worst posterior is from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from mechdesign.auditing.breaches import BreachVerdict, Direction
from mechdesign.auditing.law import Law
from mechdesign.auditing.leakages import guarantees
from mechdesign.auditing.population_promise import PopulationPromise
from mechdesign.auditing.stated import Statement, unproven_text, wrong_text
from mechdesign.auditing.verdict import Audit
from mechdesign.channel.channel import Channel
from mechdesign.channel.proof import PROOF
from mechdesign.channel.record import RELATIVE
from mechdesign.core.wording import STATED, at_least, at_most, joined_name
from mechdesign.mechanisms.result import Design
from mechdesign.notions import Notion, to_record
from mechdesign.release.released_values import moved
from mechdesign.report.boxes import box_channel_facts, box_facts
from mechdesign.report.record import optional_record
from mechdesign.report.sentences import population_record, spending_record
from mechdesign.report.wording import label

MOST_CELLS = 1 << 20
"""Inputs times outputs up to which `show --json` has all of a matrix, zeros too."""


OF_SOME_SHAPES = (
    "asked",
    "cost",
    "cost_lower_bound",
    "truth",
    "frequency_deviation",
    "variance",
    "variance_lower_bound",
    "noise_free",
    "task_kept",
    "task_upper_bound",
    "averages",
    "promise",
    "given",
    "given_lift",
    "smallest_group",
    "people",
    "law_absent",
    "table",
    "levels",
    "boxes",
    "filled",
    "own_boxes",
    "own_boxes_at_most",
    "law_deviation",
    "limit",
    "strata",
    "slice_records",
)
"""Keys of the record of a design that are null where a release of its shape has nothing to say."""


def design_record(design: Design, output: str | None) -> dict[str, Any]:
    """The record of `design --json`: one set of keys, whatever is released and kept."""
    joint = design.channel.joint
    certificate = design.certificate
    bins = [asdict(moves) for moves in moved(design.channel) if moves.edges]
    notices: Sequence[str] = ()
    if joint is not None:
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
        "records": design.channel.records,
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
        record["asked"] = least.objective.values
    if design.truth is not None:
        record |= _row_facts(design)
    record |= box_facts(design)
    record |= law_record(design.law, design.law_absent)
    if design.purpose is not None:
        record["objective"] = design.purpose.name
        record |= design.purpose.figures
    averages = design.channel.record.averages
    if averages:
        record["averages"] = [average.model_dump() for average in averages]
    for key in OF_SOME_SHAPES:
        record.setdefault(key, None)
    record["output"] = output
    return record


def _row_facts(design: Design) -> dict[str, Any]:
    """What the record of a design has of rows: their unchanged cells, and who is behind them."""
    channel = design.channel
    return {
        "truth": design.truth,
        "promise": channel.record.promise_kind,
        "given": channel.given,
        "given_lift": optional_record(design.given_lift),
        "smallest_group": design.smallest_group,
        "people": optional_record(channel.people),
    }


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
    if channel.parts:
        shown |= box_channel_facts(channel)
    return shown


def _guarantees(design: Design) -> dict[str, float] | None:
    """What follows from the achieved budgets; None for a relative promise, which bounds nothing of
    the whole row.
    """
    if design.channel.record.promise_kind == RELATIVE:
        return None
    return guarantees(design.achieved.eps_l, design.achieved.eps_u)


# -------------------------------------------------------------------- figures of a file

MOST_NAMED = 4
"""Values of a property that a sentence names."""


def figures_texts(statement: Statement) -> list[str]:
    """Sentences on the figures of a file, the wrong ones first."""
    texts: list[str] = []
    for wrong in statement.wrong:
        sentence = wrong_text(wrong)
        texts.append(f"{sentence[0].upper()}{sentence[1:]}.")
    if statement.right:
        texts.append(f"Computed again and right: {', '.join(statement.right)}.")
    for name, value in statement.proven.items():
        texts.append(
            f"Proven again from the certificate in the file: {name} {value:.12g}."
        )
    for unproven in statement.unproven:
        sentence = unproven_text(unproven)
        texts.append(f"{sentence[0].upper()}{sentence[1:]}.")
    if statement.only_stated:
        names = ", ".join(statement.only_stated)
        texts.append(f"Stated by the file, not proven again here: {names}.")
    return texts


def figures_record(statement: Statement) -> dict[str, Any]:
    """The same for `audit --json`."""
    return {
        "right": list(statement.right),
        "wrong": [wrong._asdict() for wrong in statement.wrong],
        "stated": list(statement.only_stated),
        "proven": dict(statement.proven),
        "unproven": [unproven._asdict() for unproven in statement.unproven],
    }


def breach_sentences(verdicts: Sequence[BreachVerdict]) -> list[str]:
    """Two sentences for each protected column."""
    sentences: list[str] = []
    for verdict in verdicts:
        rho1 = f"{verdict.rho1:g}"
        rho2 = f"{verdict.rho2:g}"
        up = verdict.upward
        opening = _opening(f"from {rho1} up to {rho2}", up, verdict.decided)
        limit = (
            f"a property of probability at most {rho1} gets {_worst(up)}at most "
            f"{at_most(up.bound)} by its lifts"
        )
        sentences.append(f"{opening}: {limit} (Proposition A1).")
        down = verdict.downward
        opening = _opening(f"from {rho2} down to {rho1}", down, verdict.decided)
        limit = (
            f"a property of probability at least {rho2} keeps {_worst(down)}at least "
            f"{at_least(down.bound)} by its lifts"
        )
        sentences.append(f"{opening}: {limit} (Proposition A1).")
    return sentences


def _opening(way: str, direction: Direction, decided: str) -> str:
    """Whether there is a breach."""
    if direction.excluded:
        return f"No privacy breach {way}"
    if decided == "exact":
        return f"A PRIVACY BREACH {way}"
    return f"A privacy breach {way} is not excluded"


def _worst(direction: Direction) -> str:
    """The worst posterior, before the bound; empty where it was not computed."""
    worst = direction.worst
    if worst is None:
        return ""
    values = [label(value) for value in worst.property[:MOST_NAMED]]
    if len(worst.property) > MOST_NAMED:
        values.append(f"{len(worst.property) - MOST_NAMED} more")
    return (
        f"{worst.posterior:.5g} in the worst case ({joined_name(values)}, {worst.prior:.5g} "
        f"before, by the output {label(worst.output)}), and "
    )
