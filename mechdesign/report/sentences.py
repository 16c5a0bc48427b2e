"""What is said of a population and of releases together: sentences, and plain records."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from functools import cache
from typing import Any

from mechdesign.auditing.joint_leakage import Composition
from mechdesign.auditing.population_promise import PopulationPromise
from mechdesign.auditing.verdict import Achieved
from mechdesign.core import wording
from mechdesign.mechanisms.result import Spending
from mechdesign.report import wording as w
from mechdesign.tables.confidence import ConfidenceSet, scope_of


@cache
def _macros() -> Any:
    filters = {
        "budgets": w.achieved_text,
        "each": _shown,
        "scope": scope_of,
        "outwards": outwards,
    }
    filters |= w.picked(w, "title", "percent_at_least", "percent_at_most")
    filters |= w.picked(wording, "percent_of", "factor_at_least", "factor_at_most")
    return w.macros_of("terminal.txt.jinja", filters, INFINITE=math.inf)


def text_of(report: str, *given: Any, **how: Any) -> str:
    """What a macro of ``terminal.txt.jinja`` says of these facts, without a final newline."""
    return w.text_of(_macros(), report, *given, **how)


def population_record(promise: PopulationPromise | None) -> dict[str, Any] | None:
    """`population` of the JSON outputs."""
    if promise is None:
        return None
    merged, ends = (
        promise.merged,
        {"largest": asdict(promise.largest), "smallest": asdict(promise.smallest)},
    )
    record = {
        "level": promise.level,
        **asdict(promise.achieved),
        **ends,
        "merged": None,
    }
    if merged is not None:
        record["merged"] = {
            "outputs": merged.groups,
            **asdict(merged.achieved),
            "lost_nmi": merged.lost,
        }
    return record


def population_sentences(
    promise: PopulationPromise, chosen: ConfidenceSet | None, records: int
) -> list[str]:
    """Sentences for the terminal and reports; `chosen` is the set of a design with confidence."""
    return text_of("population", promise, chosen, records).splitlines()


def composition_record(found: Composition) -> dict[str, Any]:
    """What `compose --json` prints."""
    return asdict(found) | {"exact": found.exact}


def composition_text(found: Composition, names: Sequence[str]) -> str:
    """Budgets alone, added up and together, and the worst outputs, without a final newline."""
    rows = [("", "eps_l", "eps_u", "eps_ldp")]
    rows += [
        (w.label(name), *_shown(each))
        for name, each in zip(names, found.alone, strict=True)
    ]
    rows += [
        ("added up (no bound)", *_shown(found.sum)),
        ("together", *_shown(found.achieved)),
    ]
    return text_of("composition", found, rows)


def spending_texts(spent: Spending) -> list[str]:
    """What a channel after other releases comes to together with them."""
    return text_of("spending", spent).splitlines()


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
    return (
        w.at_most(achieved.eps_l),
        w.at_most(achieved.eps_u),
        w.at_most(achieved.eps_ldp),
    )


def outwards(value: float, name: str) -> str:
    """A measure of leakage, rounded to what claims less; a plain probability to the nearest."""
    if name in ("min_lift", "min_log_lift"):
        return w.at_least(value)
    return w.about(value) if name == "probability" else w.at_most(value)
