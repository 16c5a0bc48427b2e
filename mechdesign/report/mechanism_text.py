"""Mechanism files in words and as plain records: the verdict, the cells, the budget against the error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from mechdesign.nonstochastic.levels import ASSUMPTIONS, RangePromise
from mechdesign.nonstochastic.mechanism_file import SizedQuantizer, VerifiedMechanism
from mechdesign.report.wording import about, at_least, at_most, count, item, label, paragraph
from mechdesign.sanitise.quantized import Quantised, released_number
from mechdesign.sanitise.quantized_check import CheckedRelease

MOST_ROWS = 12
"""Cells or sizes of groups that a terminal shows; CSV and JSON have all of them."""


def verdict_text(found: VerifiedMechanism) -> str:
    """The report of `audit MECHANISM`, without a final newline."""
    kept = "keeps" if found.satisfied else "DOES NOT keep"
    lines = [
        paragraph(
            f"The mechanism {kept} what its file says: {_what(found)}, and one individual can bring about at most "
            f"{count(found.outputs, 'output')} of an answer (counted exactly; {found.allowed:,} allowed).",
            first="",
        ),
    ]
    if found.disagreements:
        lines += ["", "The file is wrong", *map(item, found.disagreements)]
    if found.answers_each is not None:
        lines.append(
            f"One individual is in at most {count(found.answers_each, 'answer')} (as the file says, from data that "
            f"are not here): {at_most(found.total_epsilon)} bits in all."
        )
    lines += ["", "Guarantees for each answer", *map(promise_text, found.promises), "", "They hold if"]
    return "\n".join([*lines, *(item(text) for text in ASSUMPTIONS)])


def verdict_record(found: VerifiedMechanism) -> dict[str, Any]:
    """What `audit MECHANISM --json` prints."""
    return {
        "satisfied": found.satisfied,
        "query": found.mechanism.query,
        "column": found.mechanism.column,
        "group_by": list(found.mechanism.group_by),
        "epsilon": found.mechanism.epsilon,
        "outputs": found.outputs,
        "outputs_allowed": found.allowed,
        "answers_each": found.answers_each,
        "total_epsilon": found.total_epsilon,
        "disagreements": list(found.disagreements),
        "witnesses": [
            {"individuals": m.individuals, "outputs": m.certificate.outputs, "witness": m.certificate.witness}
            for m in found.mechanism.mechanisms
        ],
        "guarantees": [asdict(g) for g in found.promises],
        "assumptions": list(ASSUMPTIONS),
        "verified": True,
    }


def promise_text(promise: RangePromise) -> str:
    """One guarantee; an error is bounded from below, everything else from above."""
    if promise.name == "estimation error":
        bound = f"at least {at_least(promise.bound)} {promise.unit}"
    else:
        bound = f"at most {at_most(promise.bound)} {promise.unit}" if promise.bound > 0 else "nothing"
    return item(f"{promise.meaning}: {bound} ({promise.theorem})")


def _what(found: VerifiedMechanism) -> str:
    mechanism = found.mechanism
    groups = f" by {', '.join(map(label, mechanism.group_by))}" if mechanism.group_by else ""
    lo, hi = (about(float(end)) for end in (mechanism.domain.lo, mechanism.domain.hi))
    return f"the {mechanism.query} of {label(mechanism.column)}{groups}, each value in {lo} to {hi}"


def cells_text(found: VerifiedMechanism) -> str:
    """The report of `show MECHANISM`: the cells, and what is released for each."""
    lines = [paragraph(f"{_what(found)}; {at_most(found.mechanism.epsilon)} bits an answer.", first="")]
    for sized in found.mechanism.mechanisms[:MOST_ROWS]:
        who = "" if found.mechanism.query == "identity" else f" for groups of {sized.individuals:,}"
        lines += ["", f"{count(sized.quantizer.levels, 'level')}{who}"]
        lines += [f"  {a:>12}  to {b:>12}  ->  {m:>12}" for a, b, m in _rows(found, sized, MOST_ROWS)]
        if sized.quantizer.levels > MOST_ROWS:
            lines.append(f"  .. and {sized.quantizer.levels - MOST_ROWS:,} more; --csv lists all")
    if len(found.mechanism.mechanisms) > MOST_ROWS:
        lines.append(f"\n.. and {len(found.mechanism.mechanisms) - MOST_ROWS:,} more sizes of groups")
    return "\n".join(lines)


def _rows(found: VerifiedMechanism, sized: SizedQuantizer, most: int) -> list[tuple[str, str, str]]:
    edge = sized.quantizer.edge
    return [
        (
            about(float(edge(k))),
            about(float(edge(k + 1))),
            about(float(released_number(found.mechanism.query, sized.quantizer, k))),
        )
        for k in range(min(sized.quantizer.levels, most))
    ]


def cells_csv(found: VerifiedMechanism) -> str:
    """All cells with exact ends (fractions), a line each."""
    lines = ["individuals,cell,lower,upper,released"]
    for sized in found.mechanism.mechanisms:
        edge = sized.quantizer.edge
        for k in range(sized.quantizer.levels):
            value = float(released_number(found.mechanism.query, sized.quantizer, k))
            lines.append(f"{sized.individuals},{k + 1},{edge(k)},{edge(k + 1)},{value!r}")
    return "\n".join(lines)


def budget_rows(found: VerifiedMechanism) -> list[dict[str, Any]]:
    """For each size of group: levels, outputs in use, and the largest error of an answer."""
    return [
        {
            "individuals": m.individuals,
            "levels": m.quantizer.levels,
            "outputs": m.certificate.outputs,
            "epsilon": m.certificate.epsilon,
            "worst_error": float(m.quantizer.widest_cell) / 2,
        }
        for m in found.mechanism.mechanisms
    ]


def budget_text(found: VerifiedMechanism) -> str:
    """The report of `measure MECHANISM`: what each size of group spends, and what it gets for it."""
    rows: Sequence[dict[str, Any]] = budget_rows(found)
    lines = [
        paragraph(f"{_what(found)}: budget and error of an answer.", first=""),
        "",
        f"  {'individuals':>12} {'levels':>9} {'outputs':>9} {'bits':>8} {'worst error':>12}",
    ]
    lines += [
        f"  {r['individuals']:>12,} {r['levels']:>9,} {r['outputs']:>9,} {at_most(r['epsilon']):>8} "
        f"{at_most(r['worst_error']):>12}"
        for r in rows[:MOST_ROWS]
    ]
    if len(rows) > MOST_ROWS:
        lines.append(f"  .. and {len(rows) - MOST_ROWS:,} more sizes; --json has all")
    least = min(r["outputs"] for r in rows)
    if least < found.outputs:
        lines += [
            "",
            paragraph(
                f"Some groups use {least} of the {found.allowed:,} outputs that are allowed: finer cells for "
                "them would cost nothing.",
                first="",
            ),
        ]
    return "\n".join(lines)


def applied_text(done: Quantised, target: str) -> str:
    """The report of `apply MECHANISM`, without a final newline."""
    what = count(done.answers, "answer")
    lines = [
        paragraph(f"{what} from {count(done.records, 'record')} written to {target}.", first=""),
        "",
        "For you alone, because it depends on the data",
        item(f"errors: {about(done.mean_error)} on average, {about(done.worst_error)} at worst"),
        item(f"{count(done.outside, 'value')} outside the range"),
    ]
    if done.answers_each is not None:
        lines += [
            "",
            f"One individual is in at most {count(done.answers_each, 'answer')}: "
            f"{at_most(done.total_epsilon)} bits in all.",
        ]
    return "\n".join(lines)


def applied_record(done: Quantised, target: str) -> dict[str, Any]:
    """What `apply MECHANISM --json` prints."""
    record = asdict(done)
    del record["mechanism"]
    return {"output": target, **record, "guarantee": dict(done.mechanism.guarantee)}


def release_check_text(found: CheckedRelease, path: str) -> str:
    """The report of `check` on a mechanism's release."""
    can = "can be" if found.satisfied else "CANNOT be"
    lines = [f"{path} {can} a release of this mechanism ({count(found.answers, 'answer')})."]
    lines += [item(fault) for fault in found.wrong]
    if found.same is not None:
        lines.append(
            item(f"the data released again are {'the same bytes' if found.same else 'NOT this file'}")
        )
    return "\n".join(lines)
