"""Ranges in words and as plain records: what a quantised release guarantees, and the measures of a table."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from mechdesign.nonstochastic.levels import ASSUMPTIONS, outputs_allowed
from mechdesign.nonstochastic.mechanism_file import MechanismFile, guarantee_record
from mechdesign.nonstochastic.table_measures import TableMeasures
from mechdesign.report.mechanism_text import promise_text
from mechdesign.report.wording import about, at_least, at_most, count, item, label, paragraph
from mechdesign.sanitise.quantized import Quantised

SCOPE = (
    "A range is what occurs in this file. A combination that can happen but does not occur here would change "
    "these numbers, so they say nothing about people who are not in it. No probabilities are involved."
)

LISTED = 6
"""Values of the worst attribute shown before the rest is counted."""


def quantize_text(done: Quantised) -> str:
    """The report of `quantize`, without a final newline."""
    made, outputs = done.mechanism, done.mechanism.guarantee["outputs"]
    low, high, widest = _levels(made)
    levels = f"{low:,}" if low == high else f"{low:,} to {high:,}"
    answers = "every record" if made.query == "identity" else count(done.answers, "answer")
    lines = [
        paragraph(
            f"Released: {made.query} of {label(done.column)}, {answers} from {count(done.records, 'record')}, "
            f"in {levels} levels (widest cell {about(widest)}).",
            first="",
        ),
        "",
        paragraph(
            "Whatever the other records are, one individual can bring about at most "
            f"{count(outputs, 'output')} of an answer (counted exactly; {outputs_allowed(made.epsilon):,} allowed).",
            first="",
        ),
    ]
    if done.answers_each is not None:
        bits = at_most(done.total_epsilon)
        lines.append(
            f"One individual is in at most {count(done.answers_each, 'answer')}: {bits} bits in all."
        )
    promises = guarantee_record(made, done.answers_each)[2]
    lines += ["", "Guarantees for each answer", *map(promise_text, promises), "", "They hold if"]
    return "\n".join([*lines, *(item(text) for text in ASSUMPTIONS)])


def _levels(made: MechanismFile) -> tuple[int, int, float]:
    """Fewest and most levels, and the widest cell."""
    levels = [m.quantizer.levels for m in made.mechanisms]
    return min(levels), max(levels), float(max(m.quantizer.widest_cell for m in made.mechanisms))


def quantize_record(done: Quantised, output: str, mechanism: str, seconds: float) -> dict[str, Any]:
    """What `quantize --json` prints."""
    made = done.mechanism
    low, high, widest = _levels(made)
    return {
        "query": made.query,
        "column": done.column,
        "records": done.records,
        "answers": done.answers,
        "epsilon": made.epsilon,
        "outputs_allowed": outputs_allowed(made.epsilon),
        "outputs": made.guarantee["outputs"],
        "levels": [low, high],
        "widest_cell": widest,
        "answers_each": done.answers_each,
        "total_epsilon": done.total_epsilon,
        "guarantees": [asdict(g) for g in guarantee_record(made, done.answers_each)[2]],
        "assumptions": list(ASSUMPTIONS),
        "notices": list(done.notices),
        "verified": True,
        "seconds": round(seconds, 3),
        "output": output,
        "mechanism": mechanism,
    }


def ranges_text(measured: TableMeasures) -> str:
    """The report of `nonstochastic measure`, without a final newline."""
    x, y = (" x ".join(map(label, names)) for names in (measured.x, measured.y))
    info = measured.information
    rows = [
        ("H0(X)", about(info.entropy), "H0(Y)", about(info.entropy_reverse)),
        ("H0(X|Y)", about(info.conditional_entropy), "H0(Y|X)", about(info.conditional_entropy_reverse)),
        ("I0(X;Y), least gain", about(info.information), "I0(Y;X)", about(info.information_reverse)),
        ("L0(X;Y), largest gain", at_most(info.leakage), "L0(Y;X)", at_most(info.leakage_reverse)),
        ("L0s, the smaller L0", at_most(info.symmetric_leakage), "", ""),
        (f"I*, maximin ({count(info.classes, 'class', 'classes')})", at_most(info.maximin), "", ""),
    ]
    width = max(len(row[0]) for row in rows)
    lines = [
        f"X = {x} ({count(measured.x_values, 'value')}) and Y = {y} ({count(measured.y_values, 'value')}): "
        f"{count(measured.pairs, 'pair')} in {count(measured.records, 'record')}",
        "",
        "Information (bits)",
    ]
    for name, value, other, back in rows:
        lines.append(f"  {name:<{width}}  {value:>8}     {other:<7}  {back:>8}".rstrip())
    lines += ["", "Guessing X from Y (bits)", *_guessing(measured)]
    if measured.hypothesis is not None:
        lines += ["", "Testing a hypothesis (bits)", *_hypothesis(measured)]
    if measured.capacity is not None:
        lines += ["", "Communicating without error from X to Y (bits per use)", *_capacity(measured)]
    return "\n".join([*lines, "", paragraph(SCOPE)])


def _guessing(measured: TableMeasures) -> list[str]:
    worst = measured.worst
    shown = ", ".join(sorted(label(_text(v)) for v in worst.merged)[:LISTED])
    more = f" and {len(worst.merged) - LISTED:,} more" if len(worst.merged) > LISTED else ""
    lines = [
        paragraph(f"maximal leakage L* {at_most(measured.maximal_leakage)}: the worst feature merges {shown}{more}, "
                  f"the values compatible with the output {label(_text(worst.output))}, and tells all others apart."),
        paragraph(f"identifiability: the release is epsilon-identifiable from epsilon "
                  f"{at_most(measured.identifiability)} on."),
        paragraph(f"any channel with these ranges has a stochastic maximal leakage of at most "
                  f"{at_most(measured.stochastic_bound)}."),
    ]  # fmt: skip
    if measured.identifiable is not None:
        lines.append(
            f"  epsilon-identifiable at the budget given: {'yes' if measured.identifiable else 'NO'}"
        )
    if measured.feature is not None:
        told = "always right at the first guess" if measured.feature.one_shot else "not always right at once"
        lines.append(paragraph(
            f"brute-force leakage of {' x '.join(map(label, measured.feature.columns))} "
            f"({count(measured.feature.values, 'value')}): {at_most(measured.feature.leakage)}; {told}."
        ))  # fmt: skip
    return lines


def _hypothesis(measured: TableMeasures) -> list[str]:
    tested = measured.hypothesis
    if tested is None:
        return []
    name = f"{label(tested.column)} = {label(tested.value)} against the rest"
    if tested.epsilon is None:
        return [f"  {name}: none of {count(tested.outputs, 'output')} settles it"]
    private = (
        "every output tells, so it is private for no epsilon"
        if tested.epsilon == 0
        else f"epsilon-private for epsilon up to {at_least(float(tested.epsilon))}"
    )
    return [
        paragraph(f"{name}: {tested.telling:,} of {count(tested.outputs, 'output')} settle it; {private}."),
        f"  Priv {at_least(tested.privacy)}; performance of any test at most "
        f"{at_most(tested.performance_bound)}; L0(Y;H) {at_most(tested.leakage)}",
    ]


def _capacity(measured: TableMeasures) -> list[str]:
    bounds = measured.capacity
    if bounds is None:
        return []
    line = f"  zero-error capacity between {at_least(bounds.lower)} and {at_most(bounds.upper)}"
    if bounds.code is None:
        return [line, "  (too many pairs for the solver: maximin information, and leakages)"]
    sure = (
        "the largest"
        if bounds.code.is_optimal
        else f"the largest found (at most {bounds.code.upper_bound:,})"
    )
    return [line, f"  {sure} set of inputs that never share an output: {bounds.code.size:,}"]


def _text(value: object) -> str:
    return f"({', '.join(map(str, value))})" if isinstance(value, tuple) else str(value)  # type: ignore[arg-type]


def ranges_record(measured: TableMeasures) -> dict[str, Any]:
    """What `nonstochastic measure --json` prints; all logarithms in bits."""
    tested, bounds = measured.hypothesis, measured.capacity
    return {
        "unit": "bits",
        "x": list(measured.x),
        "y": list(measured.y),
        "records": measured.records,
        "pairs": measured.pairs,
        "x_values": measured.x_values,
        "y_values": measured.y_values,
        **{k: v for k, v in asdict(measured.information).items() if k != "unit"},
        "maximal_leakage": measured.maximal_leakage,
        "worst_attribute": {
            "output": _text(measured.worst.output),
            "merged": len(measured.worst.merged),
            "values": measured.worst.n_values,
        },
        "identifiability": measured.identifiability,
        "identifiable": measured.identifiable,
        "stochastic_bound": measured.stochastic_bound,
        "feature": None if measured.feature is None else asdict(measured.feature),
        "hypothesis": None
        if tested is None
        else asdict(tested) | {"epsilon": "inf" if tested.epsilon is None else float(tested.epsilon)},
        "zero_error": None
        if bounds is None
        else {
            "lower": bounds.lower,
            "upper": bounds.upper,
            "codewords": None if bounds.code is None else bounds.code.size,
            "codewords_upper_bound": None if bounds.code is None else bounds.code.upper_bound,
            "proof": None if bounds.code is None else bounds.code.proof,
        },
    }
