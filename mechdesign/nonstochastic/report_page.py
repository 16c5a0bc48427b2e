"""A report on a mechanism file: its guarantee, the error that a budget leaves, and its cells.

A mechanism releases the cell of an answer, such as the mean of a group of records. A group of 30
records needs other cells than one of 12, so the file has a quantiser for each size of group. The
report lists the sizes in short, and the cells of the largest groups alone.

`save_mechanism_report` makes a `_Page` of a verified file. Its `document` puts the sections
together, in the order of the page; each method after it (`_promise`, `_budget`, ..) returns the
blocks of one section. One document serves HTML (with pictures), Markdown and JSON: `report.writing`
writes it by the ending of the path.
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
from mechdesign.report.writing import HTML, check_report, document_text, save_texts

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


def save_mechanism_reports(
    verified: VerifiedMechanism,
    source: str,
    paths: Sequence[PathLike],
    *,
    overwrite: bool = False,
) -> None:
    """Write the report as HTML, Markdown or JSON by its ending to each path, whole or not at all.

    Parameters
    ----------
    source
        The path of the mechanism file, for the commands in the report.
    """
    texts: list[tuple[PathLike, str]] = []
    for path in paths:
        check_report(path, force=overwrite)
        ending = Path(path).suffix.lower()
        page = _Page(verified, source, with_pictures=ending == HTML)
        texts.append((path, document_text(page.record(), page.document, ending)))
    save_texts(texts, overwrite=overwrite)


@dataclass(frozen=True)
class _Page:
    """The parts of the report on one mechanism file."""

    verified: VerifiedMechanism
    source: str
    with_pictures: bool

    @property
    def largest(self) -> SizedQuantizer:
        """The quantiser of the largest groups, written last, whose cells and errors are listed."""
        return self.verified.mechanism.mechanisms[-1]

    @property
    def largest_groups(self) -> str:
        """The largest groups, for headings and captions."""
        return f"groups of {self.largest.individuals:,}"

    @cached_property
    def errors(self) -> list[tuple[int, float]]:
        """The largest error of the largest groups for every number of outputs that one individual
        may have, up to twice the number that is allowed here.

        The thresholds are laid out anew for each, by the rule of the mechanism. The list is empty
        where the thresholds were given, or where their number changes nothing.
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
        title = reports.text_of("title", self.verified)
        epsilon = at_most(self.verified.mechanism.epsilon)
        return b.Document(
            title=f"Release of {title}",
            banner=BANNER,
            internal=False,
            lead=f"{title[0].upper()}{title[1:]}, in cells: {epsilon} bits an answer.",
            highlights=self._highlights(),
            sections=(
                b.Section("promise", "What is promised", self._promise()),
                b.Section("budget", "Error against budget", self._budget()),
                b.Section("cells", "Cells", self._cells()),
                b.Section("provenance", "Provenance", self._provenance()),
                b.Section("reproduce", "Do it again", self._commands()),
            ),
            footer="Written by mechdesign.",
        )

    def _highlights(self) -> tuple[tuple[str, str], ...]:
        """The figures at the top of the page, each with its heading."""
        verified = self.verified
        outputs = f"{verified.outputs:,} of {verified.allowed:,} allowed"
        answers = "not known"
        if verified.answers_each is not None:
            answers = f"{verified.answers_each:,}"
        verdict = "NO: the file is wrong"
        if verified.satisfied:
            verdict = "yes, counted exactly"
        return (
            ("Outputs of one individual", outputs),
            ("Answers of one individual", answers),
            ("Bits in all", at_most(verified.total_epsilon)),
            ("Verified", verdict),
        )

    def _promise(self) -> tuple[b.Block, ...]:
        """What one individual can bring about, and what that depends on."""
        verified = self.verified
        counted = reports.text_of("counted", verified.outputs, verified.allowed)
        promises: list[str] = []
        for promise in verified.promises:
            promises.append(reports.text_of("promise", promise))
        # What the file states wrongly comes before what holds.
        return (
            b.Text(f"Whatever the other records are, {counted}."),
            b.Bullets((*verified.disagreements, *promises)),
            b.Text("It holds if"),
            b.Bullets(ASSUMPTIONS),
        )

    def _budget(self) -> tuple[b.Block, ...]:
        """The error of every size of group, and that of the largest groups for other budgets."""
        return (
            *self._error_picture(),
            *self._sizes_table(),
            *self._budgets_table(),
        )

    def _sizes_table(self) -> list[b.Block]:
        """A row for each size of group."""
        # Bits and errors are rounded upwards, so that no promise is stated too well.
        header = ("individuals", "levels", "outputs", "bits", "worst error")
        rows: list[tuple[b.Cell, ...]] = []
        for size in reports.budget_rows(self.verified):
            rows.append(
                b.cells(
                    f"{size['individuals']:,}",
                    f"{size['levels']:,}",
                    f"{size['outputs']:,}",
                    at_most(size["epsilon"]),
                    at_most(size["worst_error"]),
                )
            )
        return b.grid("Sizes of groups", header, rows, "sizes of groups")

    def _budgets_table(self) -> list[b.Block]:
        """A row for each number of outputs that one individual could be allowed."""
        header = ("outputs", "bits", "worst error")
        rows: list[tuple[b.Cell, ...]] = []
        for outputs, error in self.errors:
            bits = at_most(epsilon_for(outputs))
            rows.append(b.cells(f"{outputs:,}", bits, at_most(error)))
        caption = f"Other budgets, {self.largest_groups}"
        return b.grid(caption, header, rows, "budgets")

    def _cells(self) -> tuple[b.Block, ...]:
        """Both ends of each cell, and what is released for the answers in it."""
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
        """What the file says of how it was made."""
        facts: list[tuple[str, str]] = []
        for key, value in self.verified.mechanism.provenance.items():
            facts.append((key, str(value)))
        return (b.Facts(tuple(facts)),)

    def _commands(self) -> tuple[b.Block, ...]:
        """Commands to check the file, and to use it."""
        # Without its folder: the report is public, and its reader has the file elsewhere.
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
        """Whether there is a picture of these points: if there are any, and not too many."""
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
        """The released number of every exact answer: a step for each cell."""
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
