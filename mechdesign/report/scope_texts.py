"""Where a promise ends, in sentences: the sample, the observer, the free side, what voids it.

A promise holds for one table, against an observer who knows that table. `scope_texts` says so for
a report with the table, `public_scope_texts` for one without it, and `void_texts` says what makes
the promise void. A promise for the population alone, as that of boxes, has other limits
(`population_items`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from mechdesign.auditing.verdict import Achieved
from mechdesign.core.wording import factor_at_most
from mechdesign.mechanisms.result import Design
from mechdesign.notions import Notion
from mechdesign.report.asked import names_of
from mechdesign.report.promises import promised_bounds
from mechdesign.report.record import Request
from mechdesign.report.wording import count, title
from mechdesign.tables.confidence import scope_of
from mechdesign.tables.uncovered_values import uncovered_sentence

COVERS = (
    "It covers the released {columns} alone, against an observer who knows this table and the "
    "channel and nothing else about the {unit}."
)
RELATIVE_COVERS = (
    "It covers the released columns alone, against an observer who knows this table, the channel "
    "and {given} of the {unit}, and nothing else about it."
)
PARTS = "A part of a released row without {given} can reveal what {given} {reveals}, on top."
RELATIVE_BELIEFS = (
    "The probabilities before are those of the whole table, and the promise compares with records "
    "of the same {given}. So a highest probability can exceed the one before by more than the "
    "promised factor, and a lowest one fall below it by more."
)
POPULATION = "there the leakage is usually larger, and it grows as the number of {units} shrinks."
PUBLIC_SAMPLE = (
    "The promise is about the table that the channel was designed for, not about the population "
    "behind its {units}: " + POPULATION + " The table and its size are not shown here."
)
PUBLIC_ROWS = (
    "The rows that are listed here are those of the table. Where the channel keeps their "
    "frequencies, its integers say how many records have each of them. Publish this only where "
    "the table of the released columns may be known."
)
OTHER_PRIOR = (
    "For an observer with a different prior over {sensitive}, and {useful} given {sensitive} "
    "as in the table, the factor is at most {factor}."
)
AFTER = (
    "The channel was designed after {} of the same records, drawn independently. `mechdesign "
    "audit` with --after for each of them checks that all together keep the promise."
)
ZERO_CELLS = (
    "A zero cell means that this {sensitive} and this {useful} do not occur together in the "
    "table, not that they cannot."
)
FREE_SIDE = "One side is free: a release may make a value of {sensitive} {effect}."
FREE = {
    "lower": "much less likely, or rule it out",
    "upper": "much more likely, or give it away",
}
"""What a release may do to a value where its notion leaves this side free."""

WITHHELD = (
    "Not shown in this version, because it is computed from the table: the information kept of "
    "{useful}, the trade-off curve, the lifts, the codebook and the budgets actually used."
)
VOIDS = (
    "Other columns stay in the file, or the observer has other knowledge of {useful}.",
    "The same {unit} is released twice, independently. Each {unit} gets one draw: two can leak "
    "more than both budgets together.",
)


def scope_texts(
    design: Design, request: Request, achieved: Achieved
) -> tuple[str, ...]:
    """The scope in a report with the table: the sample, the observer, what the promise leaves open.

    `achieved` are the budgets that the channel uses of its promise.
    """
    sensitive, useful = names_of(request)
    texts: list[str] = []
    claims = design.channel.claims
    if claims is not None and claims.utility is not None:
        records = claims.utility.records - claims.slice_records
        return _not_covered(population_items(design.notion, request, records))
    # With a level of confidence the promise is about the population, in a section of its own.
    if design.confidence is None:
        texts.append(_sample_text(request))
    if request.zero_cells:
        texts.append(ZERO_CELLS.format(sensitive=sensitive, useful=useful))
    texts += _coverage_texts(design.notion, request, achieved.eps_ldp)
    if request.relative_to:
        texts.append(RELATIVE_BELIEFS.format(given=title(request.relative_to)))
    earlier = design.channel.record.after
    if earlier:
        texts.append(AFTER.format(count(len(earlier), "release")))
    return tuple(texts)


def public_scope_texts(
    notion: Notion,
    confidence: Mapping[str, Any] | None,
    request: Request,
) -> tuple[str, ...]:
    """The scope in a report without the table.

    `confidence` is the record of the confidence set, None where the table alone is covered.
    """
    if request.level is not None:
        withheld = WITHHELD.format(useful=names_of(request)[1])
        return (*_not_covered(population_items(notion, request)), withheld)
    texts = [PUBLIC_SAMPLE.format(units=_unit(request)[1])]
    if confidence is not None:
        texts = list(scope_of(confidence))
    # The budget in use is computed from the table. The factor for other priors must follow from
    # the promise alone, where it is larger.
    promised = promised_bounds(notion)
    texts += _coverage_texts(notion, request, promised.eps_ldp)
    if request.of_rows:
        texts.append(PUBLIC_ROWS)
    texts.append(WITHHELD.format(useful=names_of(request)[1]))
    return tuple(texts)


def population_items(
    notion: Notion, request: Request, records: int | None = None
) -> list[str]:
    """What a promise for the population alone does not cover; `records` are those that are not of
    the slice, which only insiders may read.
    """
    sensitive = names_of(request)[0]
    items = ["A population that the records were not drawn from independently."]
    if request.of_people:
        items = [
            "A population that the people were not drawn from independently, each with all "
            "records."
        ]
    if request.given:
        items.append(f"What the given columns tell about {sensitive} by themselves.")
    for side in notion.limits.free_sides:
        items.append(FREE_SIDE.format(sensitive=sensitive, effect=FREE[side]))
    if request.level is not None:
        # How rare an unseen value must be follows from the number of records of the proof.
        sentence = uncovered_sentence(request.level, records)
        # The heading of the list has the first words already.
        start = "The promise does not cover sensitive values"
        items.append(sentence.replace(start, "Sensitive values", 1))
    return items


def _not_covered(items: Sequence[str]) -> tuple[str, ...]:
    """The items as sentences, where no heading says that they are not covered."""
    return tuple(f"Not covered: {item[:1].lower()}{item[1:]}" for item in items)


def void_texts(request: Request) -> tuple[str, ...]:
    """What makes the promise void."""
    parts = {"useful": names_of(request)[1], "unit": _unit(request)[0]}
    return tuple(text.format(**parts) for text in VOIDS)


def _unit(request: Request) -> tuple[str, str]:
    """What the promise is about: singular and plural."""
    return ("person", "people") if request.of_people else ("record", "records")


def _sample_text(request: Request) -> str:
    """The table that the promise is about: its records and zero cells."""
    size = count(request.cells or 0, "cell")
    cells = f"{request.zero_cells or 0:,} of {size} zero"
    # Probabilities and weights are no sample, so there is no population to speak of.
    if request.records is None:
        return f"The promise is about the table of probabilities or weights as given ({cells})."
    unit = _unit(request)
    return (
        f"The promise is about the table given ({count(request.records, *unit)}, {cells}), "
        f"not about the population behind the {unit[1]}: {POPULATION.format(units=unit[1])}"
    )


def _coverage_texts(notion: Notion, request: Request, eps_ldp: float) -> list[str]:
    """Against whom the promise holds, and what it leaves open."""
    sensitive, useful = names_of(request)
    columns = "columns" if len(request.useful_columns) > 1 else "column"
    unit = _unit(request)[0]
    texts = [COVERS.format(columns=columns, unit=unit)]
    if request.relative_to:
        given = title(request.relative_to)
        reveals = "reveals" if len(request.relative_to) == 1 else "reveal"
        texts = [
            RELATIVE_COVERS.format(given=given, unit=unit),
            PARTS.format(given=given, reveals=reveals),
        ]
    for side in notion.limits.free_sides:
        texts.append(FREE_SIDE.format(sensitive=sensitive, effect=FREE[side]))
    # For a prior q the lift of s is P(y|s) / sum_s' q(s') P(y|s'). The denominator is a mean of
    # numbers P(y|s') within a factor exp(eps_ldp) of the numerator, whatever q is.
    # Relative lifts have a prior for each combination of given cells, so they bound no such factor.
    if math.isfinite(eps_ldp) and not request.relative_to:
        factor = factor_at_most(eps_ldp)
        texts.append(
            OTHER_PRIOR.format(sensitive=sensitive, useful=useful, factor=factor)
        )
    return texts
