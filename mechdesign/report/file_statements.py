"""The figures of a channel file in `audit`: which were computed again, and which are only stated.

For example, a file whose share of information was raised by hand gives ::

    The file states nmi 0.9, but its integers and its table give 0.42: the file was edited ..
    Computed again and right: eps_l, eps_u, eps_ldp, entropy.
    Stated by the file, not proven again here: upper_bound_nmi.

With --certificate the last line is instead one of ::

    Proven again from the certificate in the file: upper_bound_nmi 0.42.
    The bound upper_bound_nmi 0.3 is not proven, for the proof gives 0.42: the proof in the file ..
"""

from __future__ import annotations

from typing import Any

from mechdesign.auditing.stated import Statement, unproven_text, wrong_text


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
