"""Sentences on privacy breaches (`auditing.breaches`), for the text of `audit --breach`.

A breach from 0.1 to 0.5 is a property of the sensitive column whose probability is at most 0.1, and
at least 0.5 for somebody who sees a released value; or the reverse. A sentence says for each
direction whether there is one, and how far the worst posterior is from it.
"""

from __future__ import annotations

from collections.abc import Sequence

from mechdesign.auditing.breaches import BreachVerdict, Direction
from mechdesign.core.wording import at_least, at_most, joined_name
from mechdesign.report.wording import label

MOST_NAMED = 4
"""Values of a property that a sentence names."""


def breach_sentences(verdicts: Sequence[BreachVerdict]) -> list[str]:
    """Two sentences for each protected column."""
    sentences: list[str] = []
    for verdict in verdicts:
        rho1 = f"{verdict.rho1:g}"
        rho2 = f"{verdict.rho2:g}"
        up = verdict.upward
        opening = _opening(f"from {rho1} up to {rho2}", up, verdict.decided)
        limit = (
            f"a property of probability at most {rho1} gets {_worst(up)}at most "
            f"{at_most(up.bound)} by its lifts"
        )
        sentences.append(f"{opening}: {limit} (Proposition A1).")
        down = verdict.downward
        opening = _opening(f"from {rho2} down to {rho1}", down, verdict.decided)
        limit = (
            f"a property of probability at least {rho2} keeps {_worst(down)}at least "
            f"{at_least(down.bound)} by its lifts"
        )
        sentences.append(f"{opening}: {limit} (Proposition A1).")
    return sentences


def _opening(way: str, direction: Direction, decided: str) -> str:
    """Whether there is a breach."""
    if direction.excluded:
        return f"No privacy breach {way}"
    if decided == "exact":
        return f"A PRIVACY BREACH {way}"
    return f"A privacy breach {way} is not excluded"


def _worst(direction: Direction) -> str:
    """The worst posterior, before the bound; empty where it was not computed."""
    worst = direction.worst
    if worst is None:
        return ""
    values = [label(value) for value in worst.property[:MOST_NAMED]]
    if len(worst.property) > MOST_NAMED:
        values.append(f"{len(worst.property) - MOST_NAMED} more")
    return (
        f"{worst.posterior:.5g} in the worst case ({joined_name(values)}, {worst.prior:.5g} "
        f"before, by the output {label(worst.output)}), and "
    )
