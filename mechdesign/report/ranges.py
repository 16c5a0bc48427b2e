"""What a quantised release, a mechanism file and the measures of a table say: texts, records, cells and curves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from fractions import Fraction
from functools import cache
from itertools import islice
from typing import Any

from mechdesign.nonstochastic.claims import VerifiedMechanism, guarantee_record
from mechdesign.nonstochastic.output_budgets import ASSUMPTIONS, RangePromise, outputs_allowed
from mechdesign.nonstochastic.mechanism_file import SizedQuantizer
from mechdesign.nonstochastic.mechanism_jobs import Quantised
from mechdesign.nonstochastic.sizes import released_number
from mechdesign.report import wording as w
from mechdesign.report.plots import new_figure, save_figure, settings


def text_of(report: str, *given: Any, **how: Any) -> str:
    """What a macro of ``ranges.txt.jinja`` says of these facts, without a final newline."""
    return w.text_of(_reports(), report, *given, **how)


@cache
def _reports() -> Any:
    filters: dict[str, Callable[[Any], Any]] = {
        "promises": _promises,
        "allowed": outputs_allowed,
    }
    filters |= {
        "many": "{:,}".format,
        "names": lambda columns: " x ".join(map(w.label, columns)),
    }
    known = {
        "assumptions": ASSUMPTIONS,
        "cells": cells,
        "islice": islice,
        "levels": _levels,
    }
    return w.macros_of("ranges.txt.jinja", filters, **known)


def _promises(done: Quantised) -> tuple[RangePromise, ...]:
    return guarantee_record(done.mechanism, done.answers_each)[2]


def _levels(done: Quantised) -> tuple[int, int, float]:
    """Fewest and most levels, and the widest cell."""
    made = [each.quantizer for each in done.mechanism.mechanisms]
    levels = [each.levels for each in made]
    return min(levels), max(levels), float(max(each.widest_cell for each in made))


def quantize_record(
    done: Quantised, output: str, mechanism: str, seconds: float
) -> dict[str, Any]:
    """What `quantize --json` prints."""
    made = done.mechanism
    *levels, widest = _levels(done)
    return {
        **applied_record(done, output),
        "query": made.query,
        "epsilon": made.epsilon,
        "outputs_allowed": outputs_allowed(made.epsilon),
        "outputs": made.guarantee["outputs"],
        "levels": levels,
        "widest_cell": widest,
        "guarantees": [asdict(g) for g in _promises(done)],
        "assumptions": ASSUMPTIONS,
        "verified": True,
        "seconds": round(seconds, 3),
        "mechanism": mechanism,
    }


def verdict_record(found: VerifiedMechanism) -> dict[str, Any]:
    """What `audit MECHANISM --json` prints."""
    return {
        **w.picked(found.mechanism, "query", "column", "group_by", "epsilon"),
        **w.picked(
            found,
            "satisfied",
            "outputs",
            "answers_each",
            "total_epsilon",
            "disagreements",
        ),
        "outputs_allowed": found.allowed,
        "witnesses": [
            {
                "individuals": m.individuals,
                "outputs": m.certificate.outputs,
                "witness": m.certificate.witness,
            }
            for m in found.mechanism.mechanisms
        ],
        "guarantees": [asdict(g) for g in found.promises],
        "assumptions": ASSUMPTIONS,
        "verified": True,
    }


def applied_record(done: Quantised, target: str) -> dict[str, Any]:
    """What `apply MECHANISM --json` prints."""
    record = asdict(done)
    del record["mechanism"]
    return {"output": target, **record, "guarantee": dict(done.mechanism.guarantee)}


def cells(
    found: VerifiedMechanism, sized: SizedQuantizer
) -> Iterator[tuple[Fraction, Fraction, float]]:
    """Both ends of each cell, exactly, and what is released for it."""
    edge, query = sized.quantizer.edge, found.mechanism.query
    for k in range(sized.quantizer.levels):
        yield edge(k), edge(k + 1), float(released_number(query, sized.quantizer, k))


def cells_csv(found: VerifiedMechanism) -> str:
    """All cells with exact ends (fractions), a line each."""
    lines = ["individuals,cell,lower,upper,released"]
    for sized in found.mechanism.mechanisms:
        for k, (lower, upper, value) in enumerate(cells(found, sized), start=1):
            lines.append(f"{sized.individuals},{k},{lower},{upper},{value!r}")
    return "\n".join(lines)


def budget_rows(found: VerifiedMechanism) -> list[dict[str, Any]]:
    """For each size of group: levels, outputs in use, and the largest error of an answer."""
    rows: list[dict[str, Any]] = []
    for m in found.mechanism.mechanisms:
        size = {"individuals": m.individuals, "levels": m.quantizer.levels}
        error = {"worst_error": float(m.quantizer.worst_error)}
        rows.append(size | w.picked(m.certificate, "outputs", "epsilon") | error)
    return rows


def curve_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """A line for each budget."""
    return "".join(
        ",".join(map(str, row)) + "\n"
        for row in (rows[0], *(row.values() for row in rows))
    )


def save_curve(
    rows: Sequence[Mapping[str, Any]], path: str, *, overwrite: bool
) -> None:
    """Draw error against budget."""
    with settings():
        figure = new_figure(figsize=(6.5, 4.3), layout="constrained")
        axes = figure.subplots()
        budgets = [row["epsilon"] for row in rows]
        for name, style in (
            ("possible_error", "--"),
            ("worst_error", "-"),
            ("mean_error", "-"),
        ):
            errors = [row[name] for row in rows]
            axes.plot(budgets, errors, style, marker=".", label=name.replace("_", " "))
        axes.set(xlabel="epsilon of an answer, bits", ylabel="error", ylim=(0, None))
        axes.legend()
    save_figure(figure, path, overwrite=overwrite)
