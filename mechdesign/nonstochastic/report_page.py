"""A report on a mechanism file: its guarantee, the error that a budget leaves, and its cells.

One document serves HTML (with pictures), Markdown and JSON.

`save_mechanism_report` makes a `_Page` of a verified file. Each private method of the page returns
the blocks of one section, and `report.writing` writes the document by the ending of the path.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

from mechdesign.core.files import PathLike
from mechdesign.core.wording import about, at_most
from mechdesign.nonstochastic import reports
from mechdesign.nonstochastic.claims import VerifiedMechanism
from mechdesign.nonstochastic.mechanism_file import DISCLOSED_OUTSIDE, SizedQuantizer
from mechdesign.nonstochastic.noiseless import LAYOUTS
from mechdesign.nonstochastic.output_budgets import ASSUMPTIONS, epsilon_for
from mechdesign.nonstochastic.sizes import sized_quantizer
from mechdesign.report import blocks as b
from mechdesign.report.drawing import COLOURS, PAGE, new_figure, picture_of, settings
from mechdesign.report.writing import HTML, check_report, document_text, save_text

BANNER = (
    "This report contains no individual's value. It contains sizes of groups and numbers of "
    "answers, which are public."
)

MOST_OUTPUTS = 32
"""Most outputs whose errors are drawn."""

MOST_POINTS = 5 * MOST_OUTPUTS
"""Most cells or budgets that can be told apart in a picture."""

FORMAT = "mechdesign.mechanism-report"
VERSION = 1


def save_mechanism_report(
    verified: VerifiedMechanism,
    source: str,
    path: PathLike,
    *,
    overwrite: bool = False,
) -> None:
    """Write the report as HTML, Markdown or JSON by its ending, whole or not at all.

    Parameters
    ----------
    source
        The path of the mechanism file, for the commands in the report.
    """
    check_report(path, force=overwrite)
    ending = Path(path).suffix.lower()
    page = _Page(verified, source, with_pictures=ending == HTML)
    text = document_text(page.record(), page.document, ending)
    save_text(path, text, overwrite=overwrite)


@dataclass(frozen=True)
class _Page:
    """The parts of the report on one mechanism file."""

    verified: VerifiedMechanism
    source: str
    with_pictures: bool

    @property
    def largest(self) -> SizedQuantizer:
        """The quantiser of the largest groups, whose cells and errors are listed."""
        return self.verified.mechanism.mechanisms[-1]

    @property
    def largest_groups(self) -> str:
        return f"groups of {self.largest.individuals:,}"

    @cached_property
    def errors(self) -> list[tuple[int, float]]:
        """Other numbers of outputs, each with the largest error of the largest groups.

        The thresholds are laid out by the rule of the mechanism; the list is empty where they are
        not laid out, or where their number changes nothing.
        """
        mechanism = self.verified.mechanism
        if mechanism.provenance.get("layout") not in LAYOUTS:
            return []
        if mechanism.query == "count":
            # Any cells separate the two answers of an individual, or none does.
            return []
        fewest = 1
        if mechanism.outside in DISCLOSED_OUTSIDE:
            # One output is that a value lies outside.
            fewest = 2
        most = min(2 * self.verified.allowed, MOST_OUTPUTS)
        errors: list[tuple[int, float]] = []
        for outputs in range(fewest, most + 1):
            budget = replace(mechanism, epsilon=epsilon_for(outputs), mechanisms=())
            sized = sized_quantizer(budget, self.largest.individuals)
            errors.append((outputs, float(sized.quantizer.worst_error)))
        return errors

    def record(self) -> dict[str, Any]:
        """The report as JSON."""
        return {
            "format": FORMAT,
            "version": VERSION,
            **reports.verdict_record(self.verified),
            "sizes": reports.budget_rows(self.verified),
            "errors": self.errors,
        }

    def document(self) -> b.Document:
        """The report as a document."""
        verified = self.verified
        title = reports.text_of("title", verified)
        answers = "not known"
        if verified.answers_each is not None:
            answers = f"{verified.answers_each:,}"
        verdict = "NO: the file is wrong"
        if verified.satisfied:
            verdict = "yes, counted exactly"
        epsilon = at_most(verified.mechanism.epsilon)
        return b.Document(
            title=f"Release of {title}",
            banner=BANNER,
            internal=False,
            lead=f"{title[0].upper()}{title[1:]}, in cells: {epsilon} bits an answer.",
            highlights=(
                (
                    "Outputs of one individual",
                    f"{verified.outputs:,} of {verified.allowed:,} allowed",
                ),
                ("Answers of one individual", answers),
                ("Bits in all", at_most(verified.total_epsilon)),
                ("Verified", verdict),
            ),
            sections=(
                b.Section("promise", "What is promised", self._promise()),
                b.Section("budget", "Error against budget", self._budget()),
                b.Section("cells", "Cells", self._cells()),
                b.Section("provenance", "Provenance", self._provenance()),
                b.Section("reproduce", "Do it again", self._commands()),
            ),
            footer="Written by mechdesign.",
        )

    def _promise(self) -> tuple[b.Block, ...]:
        verified = self.verified
        counted = reports.text_of("counted", verified.outputs, verified.allowed)
        promises = [reports.text_of("promise", p) for p in verified.promises]
        return (
            b.Text(f"Whatever the other records are, {counted}."),
            b.Bullets((*verified.disagreements, *promises)),
            b.Text("It holds if"),
            b.Bullets(ASSUMPTIONS),
        )

    def _budget(self) -> tuple[b.Block, ...]:
        sizes: list[tuple[b.Cell, ...]] = []
        for row in reports.budget_rows(self.verified):
            sizes.append(
                b.cells(
                    f"{row['individuals']:,}",
                    f"{row['levels']:,}",
                    f"{row['outputs']:,}",
                    at_most(row["epsilon"]),
                    at_most(row["worst_error"]),
                )
            )
        budgets: list[tuple[b.Cell, ...]] = []
        for outputs, error in self.errors:
            bits = at_most(epsilon_for(outputs))
            budgets.append(b.cells(f"{outputs:,}", bits, at_most(error)))
        header = ("outputs", "bits", "worst error")
        size_header = ("individuals", "levels", *header)
        return (
            *self._error_picture(),
            *b.grid("Sizes of groups", size_header, sizes, "sizes of groups"),
            *b.grid(
                f"Other budgets, {self.largest_groups}", header, budgets, "budgets"
            ),
        )

    def _cells(self) -> tuple[b.Block, ...]:
        cells = list(reports.cells(self.verified, self.largest))
        rows: list[tuple[b.Cell, ...]] = []
        for k, (lower, upper, released) in enumerate(cells, start=1):
            rows.append(b.cells(f"{k:,}", about(lower), about(upper), about(released)))
        header = ("cell", "from", "to", "released")
        return (
            *self._cells_picture(cells),
            *b.grid(f"Cells, {self.largest_groups}", header, rows, "cells"),
        )

    def _provenance(self) -> tuple[b.Block, ...]:
        provenance = self.verified.mechanism.provenance
        return (b.Facts(tuple((key, str(value)) for key, value in provenance.items())),)

    def _commands(self) -> tuple[b.Block, ...]:
        name = shlex.quote(os.path.basename(self.source))
        lines = (
            (
                "Recount every claim of the file:",
                f"mechdesign audit {name}",
            ),
            (
                "Release the next data through it:",
                f"mechdesign apply {name} IN.csv OUT.csv",
            ),
            (
                "Check a released file:",
                f"mechdesign check OUT.csv --channel {name}",
            ),
        )
        return (b.Lines(lines),)

    def _can_be_drawn(self, points: Sequence[Any]) -> bool:
        return self.with_pictures and 0 < len(points) <= MOST_POINTS

    def _error_picture(self) -> tuple[b.Block, ...]:
        """The largest error against the outputs of one individual."""
        if not self._can_be_drawn(self.errors):
            return ()
        outputs = [k for k, _ in self.errors]
        errors = [error for _, error in self.errors]
        with settings(**PAGE):
            figure, axes = _figure()
            axes.plot(outputs, errors, color=COLOURS[1], marker=".")
            in_use = self.largest.certificate.outputs
            axes.axvline(in_use, color=COLOURS[3], linewidth=0.9)
            axes.set(ylabel="largest error", ylim=(0, None))
            axes.set_xlabel("outputs of one individual (the line: this mechanism)")
            words = "Largest error against budget; the table has the numbers."
            return (picture_of(figure, words),)

    def _cells_picture(
        self, cells: Sequence[tuple[Fraction, Fraction, float]]
    ) -> tuple[b.Block, ...]:
        """The released number of every exact answer."""
        if not self._can_be_drawn(cells):
            return ()
        with settings(**PAGE):
            figure, axes = _figure()
            for lower, upper, released in cells:
                ends = [float(lower), float(upper)]
                axes.plot(ends, [released] * 2, color=COLOURS[1], linewidth=2.5)
            axes.set(xlabel="exact answer", ylabel="released")
            words = (
                f"What is released, {self.largest_groups}; the table has the numbers."
            )
            return (picture_of(figure, words),)


def _figure() -> tuple[Any, Any]:
    """An empty figure of a page, and its axes."""
    figure = new_figure(figsize=(6.5, 3.2), layout="constrained")
    axes = figure.subplots()
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes
