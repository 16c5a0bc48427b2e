"""What a quantised release guarantees, in words and as a plain record."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from mechdesign.nonstochastic.levels import ASSUMPTIONS, Guarantee
from mechdesign.nonstochastic.quantize_options import Quantized
from mechdesign.report.wording import about, at_least, at_most, count, item, label, paragraph


def quantize_text(done: Quantized) -> str:
    """The report of `quantize`, without a final newline."""
    low, high = done.levels
    levels = f"{low:,}" if low == high else f"{low:,} to {high:,}"
    answers = "every record" if done.query == "identity" else count(done.answers, "answer")
    lines = [
        paragraph(
            f"Released: {done.query} of {label(done.column)}, {answers} from {count(done.records, 'record')}, "
            f"in {levels} levels (widest cell {about(done.widest_cell)}).",
            first="",
        ),
        "",
        paragraph(
            "Whatever the other records are, one individual can bring about at most "
            f"{count(done.outputs, 'output')} of an answer (counted exactly; {done.allowance.outputs:,} allowed).",
            first="",
        ),
    ]
    if done.answers_each is not None:
        bits = at_most(done.total_epsilon)
        lines.append(
            f"One individual is in at most {count(done.answers_each, 'answer')}: {bits} bits in all."
        )
    lines += ["", "Guarantees for each answer", *map(_promise, done.guarantees), "", "They hold if"]
    return "\n".join([*lines, *(item(text) for text in ASSUMPTIONS)])


def _promise(promise: Guarantee) -> str:
    """One guarantee; an error is bounded from below, everything else from above."""
    if promise.name == "estimation error":
        bound = f"at least {at_least(promise.bound)} {promise.unit}"
    else:
        bound = f"at most {at_most(promise.bound)} {promise.unit}" if promise.bound > 0 else "nothing"
    return item(f"{promise.meaning}: {bound} ({promise.theorem})")


def quantize_record(done: Quantized, output: str, mechanism: str, seconds: float) -> dict[str, Any]:
    """What `quantize --json` prints."""
    return {
        "query": done.query,
        "column": done.column,
        "records": done.records,
        "answers": done.answers,
        "epsilon": float(done.allowance.epsilon),
        "outputs_allowed": done.allowance.outputs,
        "outputs": done.outputs,
        "levels": list(done.levels),
        "widest_cell": done.widest_cell,
        "answers_each": done.answers_each,
        "total_epsilon": done.total_epsilon,
        "guarantees": [asdict(g) for g in done.guarantees],
        "assumptions": list(ASSUMPTIONS),
        "notices": list(done.notices),
        "verified": True,
        "seconds": round(seconds, 3),
        "output": output,
        "mechanism": mechanism,
    }
