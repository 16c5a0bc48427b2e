"""The figures of a channel file in `audit`: which were computed again, and which are only stated.

For example, a file whose share of information was raised by hand gives ::

    The file states nmi 0.9, but its integers and its table give 0.42: the file was edited ..
    Computed again and right: eps_l, eps_u, eps_ldp, entropy.
    Stated by the file, not proven again here: upper_bound_nmi.

With --certificate the last line is instead one of ::

    Proven again from the certificate in the file: upper_bound_nmi 0.42.
    The bound upper_bound_nmi 0.3 is not proven, for the proof gives 0.42: the proof in the file ..

With --breach `breach_sentences` says for each direction whether there is a privacy breach
(`auditing.breaches`), and how far the worst posterior is from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mechdesign.auditing.breaches import BreachVerdict, Direction
from mechdesign.auditing.stated import Statement, unproven_text, wrong_text
from mechdesign.core.wording import at_least, at_most, joined_name
from mechdesign.report.wording import label

MOST_NAMED = 4
"""Values of a property that a sentence names."""


def figures_texts(statement: Statement) -> list[str]:
    """Sentences on the figures of a file, the wrong ones first."""
    texts: list[str] = []
    for wrong in statement.wrong:
        sentence = wrong_text(wrong)
        texts.append(f"{sentence[0].upper()}{sentence[1:]}.")
    if statement.right:
        texts.append(f"Computed again and right: {', '.join(statement.right)}.")
    for name, value in statement.proven.items():
        texts.append(
            f"Proven again from the certificate in the file: {name} {value:.12g}."
        )
    for unproven in statement.unproven:
        sentence = unproven_text(unproven)
        texts.append(f"{sentence[0].upper()}{sentence[1:]}.")
    if statement.only_stated:
        names = ", ".join(statement.only_stated)
        texts.append(f"Stated by the file, not proven again here: {names}.")
    return texts


def figures_record(statement: Statement) -> dict[str, Any]:
    """The same for `audit --json`."""
    return {
        "right": list(statement.right),
        "wrong": [wrong._asdict() for wrong in statement.wrong],
        "stated": list(statement.only_stated),
        "proven": dict(statement.proven),
        "unproven": [unproven._asdict() for unproven in statement.unproven],
    }


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
