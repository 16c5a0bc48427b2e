"""Sentences and plain records about a population, and about several releases together.

There are three subjects, each with a text for people (``.._text``, ``.._sentences``) and a record
for JSON outputs (``.._record``):

- *population*: what a promise about a table says of the population behind it.
- *composition*: what several releases disclose together, beside what each does alone.
- *spending*: what a new channel discloses together with earlier releases.

The words are in the macros of ``terminal.txt.jinja``. `text_of` calls one of them with its facts;
the filters that macros may use are named in `_macros`. So ``text_of("spending", spending)`` fills
the macro `spending`, in which ``{{ achieved | budgets }}`` becomes "eps_l 0.5, eps_u 0.7, ..".
Other modules of reports use `text_of` for macros of their own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from functools import cache
from typing import Any

from mechdesign.auditing.composition import Composition
from mechdesign.auditing.population_promise import PopulationPromise
from mechdesign.auditing.verdict import Achieved
from mechdesign.core.wording import (
    about,
    at_least,
    at_most,
    factor_at_least,
    factor_at_most,
    percent_of,
)
from mechdesign.mechanisms.result import Spending
from mechdesign.report import layout, wording
from mechdesign.tables.confidence import ConfidenceSet, scope_of
from mechdesign.tables.uncovered_values import uncovered_sentence

MOST_CHANNEL_ROWS = 100
"""Symbols, or outputs, whose probabilities a terminal shows; a file has all."""

MOST_ENTRIES = 16
"""Probabilities of one symbol or output that a terminal shows, the largest first."""


# The template is read and compiled once, when its first text is needed.
@cache
def _macros() -> Any:
    """The macros of the template, with the filters and constants that they use."""
    filters = {
        "budgets": wording.achieved_text,
        "each": _budget_texts,
        "scope": scope_of,
        "uncovered": uncovered_sentence,
        "outwards": outwards,
        "title": wording.title,
        "percent": wording.percent,
        "percent_at_least": wording.percent_at_least,
        "percent_at_most": wording.percent_at_most,
        "percent_of": percent_of,
        "factor_at_least": factor_at_least,
        "factor_at_most": factor_at_most,
    }
    return layout.macros_of(
        "terminal.txt.jinja",
        filters,
        INFINITE=math.inf,
        MOST_CHANNEL_ROWS=MOST_CHANNEL_ROWS,
        MOST_ENTRIES=MOST_ENTRIES,
    )


def text_of(report: str, *facts: Any, **options: Any) -> str:
    """The text of a macro of ``terminal.txt.jinja``, without a final newline."""
    return layout.text_of(_macros(), report, *facts, **options)


def outwards(value: float, name: str) -> str:
    """A measure of leakage, rounded to what claims less; a plain probability to the nearest.

    A smallest lift must not look larger than it is, and everything else must not look smaller.
    """
    if name in ("min_lift", "min_log_lift"):
        return at_least(value)
    if name == "probability":
        return about(value)
    return at_most(value)


def population_record(promise: PopulationPromise | None) -> dict[str, Any] | None:
    """`population` of the JSON outputs: the budgets that hold there at a confidence level, the
    extreme lifts, and what merging outputs would give.
    """
    if promise is None:
        return None
    record = {
        "level": promise.level,
        **asdict(promise.achieved),
        "largest": asdict(promise.largest),
        "smallest": asdict(promise.smallest),
        "merged": None,
    }
    merged = promise.merged
    if merged is not None:
        record["merged"] = {
            "outputs": merged.groups,
            **asdict(merged.achieved),
            "lost_nmi": merged.lost,
        }
    return record


def population_sentences(
    promise: PopulationPromise, confidence: ConfidenceSet | None, records: int
) -> list[str]:
    """Sentences for the terminal and reports; `confidence` is the set of a design with
    confidence.
    """
    return text_of("population", promise, confidence, records).splitlines()


def composition_record(composition: Composition) -> dict[str, Any]:
    """The record of `compose --json`."""
    return asdict(composition) | {"exact": composition.exact}


def composition_text(
    composition: Composition, names: Sequence[str], subject: str = "A record"
) -> str:
    """Budgets alone, added up and together, and the worst outputs, without a final newline.

    `subject` is what is released: a record, or the records of a person.
    """
    # The sum is shown beside the joint budgets, because people expect it to bound these.
    rows = [("", "eps_l", "eps_u", "eps_ldp")]
    for name, alone in zip(names, composition.alone, strict=True):
        rows.append((wording.label(name), *_budget_texts(alone)))
    rows.append(("added up (no bound)", *_budget_texts(composition.sum)))
    rows.append(("together", *_budget_texts(composition.achieved)))
    return text_of("composition", composition, rows, subject)


def spending_texts(spending: Spending) -> list[str]:
    """The joint budget of a channel and the releases before it, in sentences."""
    return text_of("spending", spending).splitlines()


def spending_record(spending: Spending | None) -> dict[str, Any] | None:
    """`after` of `design --json`: what leaks before, and together; what is kept before, and now."""
    if spending is None:
        return None
    return {
        "before": asdict(spending.before.achieved),
        "together": composition_record(spending.together),
        "kept_before": spending.kept_before,
        "kept": spending.kept,
        "entropy": spending.entropy,
        "at_once": _at_once_record(spending),
    }


def _at_once_record(spending: Spending) -> dict[str, Any] | None:
    """The one channel that would release everything at once, and what it would keep beyond."""
    single = spending.at_once
    if single is None:
        return None
    # In nats; unknown where that of the releases is.
    gain: float | None = None
    if spending.kept is not None:
        gain = single.mutual_information - spending.kept
    return {
        "nmi": single.nmi,
        "mutual_information": single.mutual_information,
        "upper_bound_nmi": single.certificate.upper_bound_nmi,
        "gain": gain,
    }


def _budget_texts(achieved: Achieved) -> tuple[str, str, str]:
    """eps_l, eps_u and eps_ldp in nats, rounded up."""
    return (
        at_most(achieved.eps_l),
        at_most(achieved.eps_u),
        at_most(achieved.eps_ldp),
    )
