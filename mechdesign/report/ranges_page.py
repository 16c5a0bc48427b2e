"""A report on a mechanism file: what it promises, what a budget buys, and its cells, in words, numbers and pictures."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mechdesign.core.files import PathLike
from mechdesign.nonstochastic.claims import VerifiedMechanism
from mechdesign.nonstochastic.output_budgets import ASSUMPTIONS, epsilon_for
from mechdesign.nonstochastic.mechanism_file import TOLD
from mechdesign.nonstochastic.noiseless import LAYOUTS
from mechdesign.nonstochastic.sizes import sized_quantizer
from mechdesign.report import blocks as b
from mechdesign.report import ranges as r
from mechdesign.report.plots import COLOURS, PAGE, new_figure, picture_of, settings
from mechdesign.report.wording import about, at_most
from mechdesign.report.writing import HTML, check_report, document_text, save_text

BANNER = "Nothing here is computed from anybody's value; sizes of groups and numbers of answers are, which are public."

MOST_OUTPUTS = 32
"""Budgets whose errors are drawn, and numbers of cells that can be told apart in a picture, five times over."""


def save_mechanism_report(
    found: VerifiedMechanism, source: str, path: PathLike, *, overwrite: bool = False
) -> None:
    """Write the report as HTML, Markdown or JSON by its ending, whole or not at all."""
    check_report(path, force=overwrite)
    ending = Path(path).suffix.lower()
    said = {
        "format": "mechdesign.mechanism-report",
        "version": 1,
        **r.verdict_record(found),
    }
    said |= {"sizes": r.budget_rows(found), "errors": _errors(found)}
    pictures: Callable[..., Sequence[b.Block]] = (
        _picture if ending == HTML else lambda *_: ()
    )
    text = document_text(said, lambda: _document(found, source, pictures), ending)
    save_text(path, text, overwrite=overwrite)


def _document(
    found: VerifiedMechanism, source: str, draw: Callable[..., Sequence[b.Block]]
) -> b.Document:
    made, largest = found.mechanism, found.mechanism.mechanisms[-1]
    of, cells, errors = (
        f"groups of {largest.individuals:,}",
        list(r.cells(found, largest)),
        _errors(found),
    )
    sizes = [
        b.cells(
            *(at_most(v) if isinstance(v, float) else f"{v:,}" for v in row.values())
        )
        for row in r.budget_rows(found)
    ]
    curve = [
        b.cells(f"{k:,}", at_most(epsilon_for(k)), at_most(error))
        for k, error in errors
    ]
    shown = [
        b.cells(f"{k:,}", *map(about, cell)) for k, cell in enumerate(cells, start=1)
    ]
    header, name = (
        ("outputs", "bits", "worst error"),
        shlex.quote(os.path.basename(source)),
    )
    again = {
        "Count everything again that the file claims:": f"mechdesign audit {name}",
        "Release the next data through it:": f"mechdesign apply {name} IN.csv OUT.csv",
        "Check a released file:": f"mechdesign check OUT.csv --channel {name}",
    }
    counted = r.text_of("counted", found.outputs, found.allowed)
    blocks: dict[tuple[str, str], Sequence[b.Block]] = {
        ("promise", "What is promised"): [
            b.Text(f"Whatever the other records are, {counted}."),
            b.Bullets(
                (
                    *found.disagreements,
                    *(r.text_of("promise", each) for each in found.promises),
                )
            ),
            b.Text("It holds if"),
            b.Bullets(ASSUMPTIONS),
        ],
        ("budget", "Error against budget"): [
            *draw(
                "error",
                "Largest error against budget",
                errors,
                largest.certificate.outputs,
            ),
            *b.grid(
                "Sizes of groups",
                ("individuals", "levels", *header),
                sizes,
                "sizes of groups",
            ),
            *b.grid(f"Other budgets, {of}", header, curve, "budgets"),
        ],
        ("cells", "Cells"): [
            *draw("cells", f"What is released, {of}", cells, None),
            *b.grid(f"Cells, {of}", ("cell", "from", "to", "released"), shown, "cells"),
        ],
        ("provenance", "Provenance"): [
            b.Facts(tuple((k, str(v)) for k, v in made.provenance.items()))
        ],
        ("reproduce", "Do it again"): [b.Lines(tuple(again.items()))],
    }
    title = r.text_of("title", found)
    answers = "not known" if found.answers_each is None else f"{found.answers_each:,}"
    return b.Document(
        title=f"Release of {title}",
        banner=BANNER,
        internal=False,
        lead=f"{title[0].upper()}{title[1:]}, in cells: {at_most(made.epsilon)} bits an answer.",
        highlights=(
            (
                "Outputs of one individual",
                f"{found.outputs:,} of {found.allowed:,} allowed",
            ),
            ("Answers of one individual", answers),
            ("Bits in all", at_most(found.total_epsilon)),
            (
                "Verified",
                "yes, counted exactly" if found.satisfied else "NO: the file is wrong",
            ),
        ),
        sections=tuple(
            b.Section(*heading, tuple(parts)) for heading, parts in blocks.items()
        ),
        footer="Written by mechdesign.",
    )


def _errors(found: VerifiedMechanism) -> list[tuple[int, float]]:
    """Outputs and largest error of the largest groups, laid out by the same rule for other budgets."""
    made, largest = found.mechanism, found.mechanism.mechanisms[-1]
    if made.provenance.get("layout") not in LAYOUTS or made.query == "count":
        return []
    kinds = range(1 + (made.outside in TOLD), min(2 * found.allowed, MOST_OUTPUTS) + 1)
    budgets = [replace(made, epsilon=epsilon_for(k), mechanisms=()) for k in kinds]
    errors = [
        sized_quantizer(budget, largest.individuals).quantizer.worst_error
        for budget in budgets
    ]
    return [(k, float(error)) for k, error in zip(kinds, errors, strict=True)]


def _picture(
    name: str, title: str, points: Sequence[Any], chosen: int | None
) -> Sequence[b.Block]:
    if not points or len(points) > 5 * MOST_OUTPUTS:
        return ()
    with settings(**PAGE):
        figure = new_figure(figsize=(6.5, 3.2), layout="constrained")
        axes = figure.subplots()
        axes.spines[["top", "right"]].set_visible(False)
        if chosen is None:
            for lower, upper, released in points:
                axes.plot(
                    [float(lower), float(upper)],
                    [released] * 2,
                    color=COLOURS[1],
                    linewidth=2.5,
                )
            axes.set(xlabel="exact answer", ylabel="released")
        else:
            axes.plot(*zip(*points, strict=True), color=COLOURS[1], marker=".")
            axes.axvline(chosen, color=COLOURS[3], linewidth=0.9)
            axes.set(ylabel="largest error", ylim=(0, None))
            axes.set_xlabel("outputs of one individual (the line: this mechanism)")
        return (picture_of(figure, f"{title}; the table has the numbers."),)
