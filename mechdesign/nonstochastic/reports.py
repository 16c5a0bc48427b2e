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

*The page* reports on a mechanism file: its guarantee, the error that a budget leaves, its cells.
A mechanism releases the cell of an answer, such as the mean of a group of records. A group of 30
records needs other cells than one of 12, so the file has a quantiser for each size of group. The
report lists the sizes in short, and the cells of the largest groups alone.

`save_mechanism_reports` makes a `_Page` of a verified file. Its `document` puts the sections
together, in the order of the page; each method after it (`_promise`, `_budget`, ..) returns the
blocks of one section. One document serves HTML (with pictures), Markdown and JSON: `report.writing`
writes it by the ending of the path.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from functools import cache, cached_property
from itertools import islice
from pathlib import Path
from typing import Any

from mechdesign.core.files import PathLike
from mechdesign.core.wording import about, at_most
from mechdesign.nonstochastic.claims import VerifiedMechanism, guarantee_record
from mechdesign.nonstochastic.mechanism_file import DISCLOSED_OUTSIDE, SizedQuantizer
from mechdesign.nonstochastic.noiseless import (
    ASSUMPTIONS,
    LAYOUTS,
    RangePromise,
    epsilon_for,
    outputs_allowed,
)
from mechdesign.nonstochastic.release_answers import RangeRelease
from mechdesign.nonstochastic.sizes import released_number, sized_quantizer
from mechdesign.report import blocks as b
from mechdesign.report import wording
from mechdesign.report.drawing import (
    COLOURS,
    PAGE,
    check_matplotlib,
    new_figure,
    picture_of,
    save_figure,
    settings,
)
from mechdesign.report.writing import HTML, check_report, document_text, save_texts


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
    """A header, and a line for each budget; an error without a value is an empty cell."""
    lines = [",".join(rows[0])]
    for row in rows:
        cells = ["" if value is None else str(value) for value in row.values()]
        lines.append(",".join(cells))
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


# --------------------------------------------------------------------------------- page

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
        if ending == HTML:
            check_matplotlib(
                "an HTML report needs",
                "report",
                " (.md and .json reports need nothing)",
            )
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
            **verdict_record(self.verified),
            "sizes": budget_rows(self.verified),
            "errors": self.errors,
        }

    def document(self) -> b.Document:
        """The report as a document."""
        title = text_of("title", self.verified)
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
        counted = text_of("counted", verified.outputs, verified.allowed)
        promises: list[str] = []
        for promise in verified.promises:
            promises.append(text_of("promise", promise))
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
        for size in budget_rows(self.verified):
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
        listed = list(cells(self.verified, self.largest))
        rows: list[tuple[b.Cell, ...]] = []
        for k, (lower, upper, released) in enumerate(listed, start=1):
            rows.append(b.cells(f"{k:,}", about(lower), about(upper), about(released)))
        header = ("cell", "from", "to", "released")
        return (
            *self._cells_picture(listed),
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
