"""What holds for the population, in plain words: the two numbers, which outputs cause them, and what it rests on."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from mechdesign.auditing.population_promise import Cause, PopulationPromise
from mechdesign.report.wording import achieved_text, count, factor_at_least, factor_at_most, label, percent
from mechdesign.tables.confidence import ConfidenceSet, scope_of

SCOPE = (
    "This takes the records for independent draws from one population, the symbols for fixed before anybody looked "
    "at them, and speaks of a fresh record of the same population."
)


def population_record(promise: PopulationPromise | None) -> dict[str, Any] | None:
    """`population` of the JSON outputs."""
    if promise is None:
        return None
    merged = promise.merged
    return {
        "level": promise.level,
        **asdict(promise.achieved),
        "largest": asdict(promise.largest),
        "smallest": asdict(promise.smallest),
        "merged": None
        if merged is None
        else {"outputs": merged.groups, **asdict(merged.achieved), "lost_nmi": merged.lost},
    }


def population_sentences(promise: PopulationPromise, chosen: ConfidenceSet | None, records: int) -> list[str]:
    """Sentences for the terminal and reports; `chosen` is the set of a design with confidence."""
    level = f"{100.0 * promise.level:g} % confidence"
    achieved, budgets = promise.achieved, achieved_text(promise.achieved)
    if chosen is not None:
        return [
            f"The promise is verified exactly for every population in the Clopper-Pearson set of the counts of these "
            f"{count(records, 'record')}. There: {budgets} (nats, rounded up).",
            *scope_of(chosen.stated),
        ]
    sentences = [
        f"For the population that these {count(records, 'record')} are a sample of, with {level}: "
        f"at most {factor_at_most(achieved.eps_u)} times as likely, and at least {factor_at_least(achieved.eps_l)} "
        f"times ({budgets}). {SCOPE}",
        f"The largest comes from {_source(promise.largest)}, the smallest from {_source(promise.smallest)}.",
    ]
    merged = promise.merged
    if merged is not None:
        groups = "; ".join(" with ".join(label(output) for output in group) for group in merged.groups)
        sentences.append(
            f"Publishing as one output {groups} would give at most {_times(merged.achieved.eps_u)} and at least "
            f"{factor_at_least(merged.achieved.eps_l)} times, for {percent(merged.lost)} of H(X). A design with "
            "confidence finds the best channel whose promise holds for the population."
        )
    return sentences


def _source(cause: Cause) -> str:
    symbols = ", ".join(label(symbol) for symbol in cause.symbols[:3])
    more = f" and {len(cause.symbols) - 3} more" if len(cause.symbols) > 3 else ""
    return (
        f"the output {label(cause.output)} with {label(cause.sensitive)} "
        f"({count(sum(cause.records), 'record')} of {symbols}{more})"
    )


def _times(budget: float) -> str:
    return factor_at_most(budget) if math.isfinite(budget) else "infinitely many"
