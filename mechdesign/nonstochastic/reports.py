"""What the commands of ranges print: texts for people, records for --json, and CSV.

All forms of an answer are made from the same object: a release (`RangeRelease`), or a mechanism
file whose claims were recomputed (`VerifiedMechanism`). Texts are macros of ``reports.txt.jinja``,
which gets the object itself (`text_of`). The functions named ``.._record`` and ``.._rows`` give
dictionaries for --json and for reports, and those named ``.._csv`` give lines:

    individuals,cell,lower,upper,released
    2,1,0,15,7.5
    2,2,15,45,30.0

The last line says that a mean of two values is released as 30 if it is at least 15 and below 45.

`save_curve` draws error against budget, with a line for each error of `CURVES`, over the rows of
`quantize_table.compare_budgets`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from fractions import Fraction
from functools import cache
from itertools import islice
from typing import Any

from mechdesign.nonstochastic.claims import VerifiedMechanism, guarantee_record
from mechdesign.nonstochastic.mechanism_file import SizedQuantizer
from mechdesign.nonstochastic.output_budgets import (
    ASSUMPTIONS,
    RangePromise,
    outputs_allowed,
)
from mechdesign.nonstochastic.release_answers import RangeRelease
from mechdesign.nonstochastic.sizes import released_number
from mechdesign.report import wording
from mechdesign.report.drawing import new_figure, save_figure, settings


def text_of(macro: str, *facts: Any, **options: Any) -> str:
    """The text of a macro of ``reports.txt.jinja`` for these facts, without a final newline."""
    return wording.text_of(_macros(), macro, *facts, **options)


@cache
def _macros() -> Any:
    """The macros of the texts, compiled once, with the filters and functions that they call."""
    filters: dict[str, Callable[[Any], Any]] = {
        "promises": _promises,
        "allowed": outputs_allowed,
        "many": "{:,}".format,
        "names": _crossed,
    }
    return wording.macros_of(
        "reports.txt.jinja",
        filters,
        package="mechdesign.nonstochastic",
        assumptions=ASSUMPTIONS,
        cells=cells,
        islice=islice,
        levels=_levels,
    )


def _crossed(columns: Sequence[str]) -> str:
    """The names of columns that are crossed."""
    return " x ".join(map(wording.label, columns))


def _promises(release: RangeRelease) -> tuple[RangePromise, ...]:
    """The promises of a release."""
    _, _, promised = guarantee_record(release.mechanism, release.answers_each)
    return promised


def _levels(release: RangeRelease) -> tuple[int, int, float]:
    """The fewest and most levels of its quantizers (one for each size of group), and the widest
    cell.
    """
    quantizers = [sized.quantizer for sized in release.mechanism.mechanisms]
    levels = [quantizer.levels for quantizer in quantizers]
    widest = max(quantizer.widest_cell for quantizer in quantizers)
    return min(levels), max(levels), float(widest)


def quantize_record(
    release: RangeRelease, output: str, mechanism_path: str, seconds: float
) -> dict[str, Any]:
    """The record of `quantize --json`."""
    mechanism = release.mechanism
    fewest, most, widest = _levels(release)
    return {
        **applied_record(release, output),
        "query": mechanism.query,
        "epsilon": mechanism.epsilon,
        "outputs_allowed": outputs_allowed(mechanism.epsilon),
        "outputs": mechanism.guarantee["outputs"],
        "levels": [fewest, most],
        "widest_cell": widest,
        "guarantees": [asdict(promise) for promise in _promises(release)],
        "assumptions": ASSUMPTIONS,
        "verified": True,
        "seconds": round(seconds, 3),
        "mechanism": mechanism_path,
    }


def verdict_record(verified: VerifiedMechanism) -> dict[str, Any]:
    """The record of `audit MECHANISM --json`."""
    mechanism = verified.mechanism
    witnesses: list[dict[str, Any]] = []
    for sized in mechanism.mechanisms:
        witnesses.append(
            {
                "individuals": sized.individuals,
                "outputs": sized.certificate.outputs,
                "witness": sized.certificate.witness,
            }
        )
    return {
        "query": mechanism.query,
        "column": mechanism.column,
        "group_by": mechanism.group_by,
        "epsilon": mechanism.epsilon,
        "satisfied": verified.satisfied,
        "outputs": verified.outputs,
        "answers_each": verified.answers_each,
        "total_epsilon": verified.total_epsilon,
        "disagreements": verified.disagreements,
        "outputs_allowed": verified.allowed,
        "witnesses": witnesses,
        "guarantees": [asdict(promise) for promise in verified.promises],
        "assumptions": ASSUMPTIONS,
        "verified": True,
    }


def applied_record(release: RangeRelease, target: str) -> dict[str, Any]:
    """The record of `apply MECHANISM --json`."""
    record = asdict(release)
    # The mechanism has a file of its own; of it, the guarantee belongs to the result.
    del record["mechanism"]
    guarantee = dict(release.mechanism.guarantee)
    return {"output": target, **record, "guarantee": guarantee}


def cells(
    verified: VerifiedMechanism, sized: SizedQuantizer
) -> Iterator[tuple[Fraction, Fraction, float]]:
    """Both ends of each cell, exactly, and its released number."""
    quantizer = sized.quantizer
    query = verified.mechanism.query
    for k in range(quantizer.levels):
        released = float(released_number(query, quantizer, k))
        yield quantizer.edge(k), quantizer.edge(k + 1), released


def cells_csv(verified: VerifiedMechanism) -> str:
    """All cells with exact ends (fractions), a line each."""
    # Fractions and the shortest texts of doubles lose nothing, so a program has the exact cells.
    lines = ["individuals,cell,lower,upper,released"]
    for sized in verified.mechanism.mechanisms:
        for k, (lower, upper, value) in enumerate(cells(verified, sized), start=1):
            lines.append(f"{sized.individuals},{k},{lower},{upper},{value!r}")
    return "\n".join(lines)


def budget_rows(verified: VerifiedMechanism) -> list[dict[str, Any]]:
    """For each size of group: levels, outputs in use, and the largest error of an answer."""
    rows: list[dict[str, Any]] = []
    for sized in verified.mechanism.mechanisms:
        rows.append(
            {
                "individuals": sized.individuals,
                "levels": sized.quantizer.levels,
                "outputs": sized.certificate.outputs,
                "epsilon": sized.certificate.epsilon,
                "worst_error": float(sized.quantizer.worst_error),
            }
        )
    return rows


def curve_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """A header, and a line for each budget."""
    lines = [",".join(rows[0])]
    for row in rows:
        lines.append(",".join(map(str, row.values())))
    return "\n".join(lines) + "\n"


# ------------------------------------------------------------------------------ picture

CURVES = (("possible_error", "--"), ("worst_error", "-"), ("mean_error", "-"))
"""The errors of a plot, and their line styles; the possible one does not depend on the data."""


def save_curve(
    rows: Sequence[Mapping[str, Any]], path: str, *, overwrite: bool
) -> None:
    """Draw error against budget."""
    budgets = [row["epsilon"] for row in rows]
    with settings():
        figure = new_figure(figsize=(6.5, 4.3), layout="constrained")
        axes = figure.subplots()
        for name, style in CURVES:
            errors = [row[name] for row in rows]
            axes.plot(budgets, errors, style, marker=".", label=name.replace("_", " "))
        # From zero, so that heights compare as errors do.
        axes.set(xlabel="epsilon of an answer, bits", ylabel="error", ylim=(0, None))
        axes.legend()
    save_figure(figure, path, overwrite=overwrite)
