"""What is said of a population and of releases together: sentences, and plain records."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from mechdesign.auditing.joint_leakage import Composition
from mechdesign.auditing.population_promise import Cause, PopulationPromise
from mechdesign.auditing.verdict import Achieved
from mechdesign.core.numbers import percent_of
from mechdesign.mechanisms.result import Spending
from mechdesign.report import wording as w
from mechdesign.tables.confidence import ConfidenceSet, scope_of

SCOPE = (
    "This takes the records for independent draws from one population, the symbols for fixed before anybody looked "
    "at them, and speaks of a fresh record of the same population."
)


def population_record(promise: PopulationPromise | None) -> dict[str, Any] | None:
    """`population` of the JSON outputs."""
    if promise is None:
        return None
    merged, ends = promise.merged, {"largest": asdict(promise.largest), "smallest": asdict(promise.smallest)}
    record = {"level": promise.level, **asdict(promise.achieved), **ends, "merged": None}
    if merged is not None:
        record["merged"] = {"outputs": merged.groups, **asdict(merged.achieved), "lost_nmi": merged.lost}
    return record


def population_sentences(promise: PopulationPromise, chosen: ConfidenceSet | None, records: int) -> list[str]:
    """Sentences for the terminal and reports; `chosen` is the set of a design with confidence."""
    level = f"{percent_of(promise.level)} confidence"
    achieved, budgets = promise.achieved, w.achieved_text(promise.achieved)
    if chosen is not None:
        return [
            f"The promise is verified exactly for every population in the Clopper-Pearson set of the counts of these "
            f"{w.count(records, 'record')}. There: {budgets} (nats, rounded up).",
            *scope_of(chosen.stated),
        ]
    sentences = [
        f"For the population that these {w.count(records, 'record')} are a sample of, with {level}: "
        f"at most {w.factor_at_most(achieved.eps_u)} times as likely, and at least {w.factor_at_least(achieved.eps_l)} "
        f"times ({budgets}). {SCOPE}",
        f"The largest comes from {_source(promise.largest)}, the smallest from {_source(promise.smallest)}.",
    ]
    merged = promise.merged
    if merged is not None:
        groups = "; ".join(" with ".join(w.label(output) for output in group) for group in merged.groups)
        most = merged.achieved.eps_u
        times = w.factor_at_most(most) if math.isfinite(most) else "infinitely many"
        sentences.append(
            f"Publishing as one output {groups} would give at most {times} and at least "
            f"{w.factor_at_least(merged.achieved.eps_l)} times, for {w.percent(merged.lost)} of H(X). A design with "
            "confidence finds the best channel whose promise holds for the population."
        )
    return sentences


def _source(cause: Cause) -> str:
    symbols = ", ".join(w.label(symbol) for symbol in cause.symbols[:3])
    more = f" and {len(cause.symbols) - 3} more" if len(cause.symbols) > 3 else ""
    return (
        f"the output {w.label(cause.output)} with {w.label(cause.sensitive)} "
        f"({w.count(sum(cause.records), 'record')} of {symbols}{more})"
    )


def composition_record(found: Composition) -> dict[str, Any]:
    """What `compose --json` prints."""
    return asdict(found) | {"exact": found.exact}


def composition_text(found: Composition, names: Sequence[str]) -> str:
    """Budgets alone, added up and together, and the worst outputs, without a final newline."""
    rows = [("", "eps_l", "eps_u", "eps_ldp")]
    rows += [(w.label(name), *_shown(each)) for name, each in zip(names, found.alone, strict=True)]
    rows += [("added up (no bound)", *_shown(found.sum)), ("together", *_shown(found.achieved))]
    lines = ["A record released once through each, drawn independently (nats, rounded up)"]
    lines += w.aligned(rows, left=(0,))
    if not found.exact:
        said = "Proven bounds: too many combinations of outputs for all; at least "
        lines.append(w.paragraph(f"{said}{', '.join(_shown(found.at_least))} are attained."))
    worst, outputs = found.worst, " and ".join(map(w.label, found.worst.outputs))
    together = f"the outputs {outputs} make" if len(worst.outputs) > 1 else f"the output {outputs} makes"
    said = f"Worst: {together} {w.label(worst.sensitive)} {w.about(worst.lift)} times as likely as before."
    return "\n".join([*lines, w.paragraph(said)])


def spending_texts(spent: Spending) -> list[str]:
    """What a channel after other releases comes to together with them."""
    before, together = spent.before.achieved, spent.together.achieved
    number = len(spent.before.alone)
    texts = [
        f"After {w.count(number, 'other release')} of the same records, which {'uses' if number == 1 else 'use'} "
        f"{w.achieved_text(before)}: together they come to {', '.join(_shown(together))}, verified exactly."
    ]
    if spent.kept is not None and spent.kept_before is not None:
        shares = [w.percent_at_least(part / spent.entropy) for part in (spent.kept_before, spent.kept)]
        texts.append(
            f"All outputs together keep {shares[1]} of {w.title(spent.columns)}; {shares[0]} without this channel."
        )
    if spent.at_once is not None:
        once = spent.at_once
        texts.append(
            f"One channel for everything at once would keep {w.percent_at_least(once.nmi)} (verified, and at most "
            f"{w.percent_at_most(once.certificate.upper_bound_nmi or 1.0)}) at the same promise."
        )
    return texts


def spending_record(spent: Spending | None) -> dict[str, Any] | None:
    """`after` of `design --json`."""
    if spent is None:
        return None
    before, together = asdict(spent.before.achieved), composition_record(spent.together)
    record: dict[str, Any] = {"before": before, "together": together}
    record |= w.picked(spent, "kept_before", "kept", "entropy") | {"at_once": None}
    if (once := spent.at_once) is not None:
        gain = None if spent.kept is None else once.mutual_information - spent.kept
        bound = once.certificate.upper_bound_nmi
        found = w.picked(once, "nmi", "mutual_information")
        record["at_once"] = found | {"upper_bound_nmi": bound, "gain": gain}
    return record


def _shown(achieved: Achieved) -> tuple[str, str, str]:
    return w.at_most(achieved.eps_l), w.at_most(achieved.eps_u), w.at_most(achieved.eps_ldp)
