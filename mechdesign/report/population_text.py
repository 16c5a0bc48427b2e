"""What holds for the population, in plain words: the two numbers, which outputs cause them, and what it rests on."""

from __future__ import annotations

import math
from typing import Any

from mechdesign.auditing.population_promise import Cause, PopulationPromise
from mechdesign.core.numbers import at_most, factor_at_least, factor_at_most
from mechdesign.report.wording import count, label, percent
from mechdesign.tables.confidence import ConfidenceSet, scope_of

SCOPE = (
    "This takes the records for independent draws from one population, the symbols for fixed before anybody looked "
    "at them, and speaks of a fresh record of the same population."
)


def population_record(promise: PopulationPromise | None) -> dict[str, Any] | None:
    """`population` of the JSON outputs."""
    if promise is None:
        return None
    achieved = promise.achieved
    return {
        "level": promise.level,
        "eps_l": achieved.eps_l,
        "eps_u": achieved.eps_u,
        "eps_ldp": achieved.eps_ldp,
        "largest": _cause_record(promise.largest),
        "smallest": _cause_record(promise.smallest),
        "merged": None
        if promise.merged is None
        else {
            "outputs": [list(group) for group in promise.merged.groups],
            "eps_l": promise.merged.achieved.eps_l,
            "eps_u": promise.merged.achieved.eps_u,
            "eps_ldp": promise.merged.achieved.eps_ldp,
            "lost_nmi": promise.merged.lost,
        },
    }


def _cause_record(cause: Cause) -> dict[str, Any]:
    return {
        "sensitive": cause.sensitive,
        "output": cause.output,
        "lift": cause.lift,
        "symbols": list(cause.symbols),
        "records": list(cause.records),
    }


def population_sentences(promise: PopulationPromise, chosen: ConfidenceSet | None, records: int) -> list[str]:
    """Sentences for the terminal and reports; `chosen` is the set of a design with confidence."""
    level = f"{100.0 * promise.level:g} % confidence"
    achieved = promise.achieved
    budgets = (
        f"eps_l {at_most(achieved.eps_l)}, eps_u {at_most(achieved.eps_u)}, local differential privacy "
        f"{at_most(achieved.eps_ldp)}"
    )
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
