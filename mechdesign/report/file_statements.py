"""The figures of a channel file in `audit`: which were computed again, and which are only stated.

For example, a file whose share of information was raised by hand gives ::

    The file states nmi 0.9, but its integers and its table give 0.42: the file was edited ..
    Computed again and right: eps_l, eps_u, eps_ldp, entropy.
    Stated by the file, not proven again here: upper_bound_nmi.
"""

from __future__ import annotations

from typing import Any

from mechdesign.auditing.stated import Statement, wrong_text


def figures_texts(statement: Statement) -> list[str]:
    """Sentences on the figures of a file, the wrong ones first."""
    texts: list[str] = []
    for wrong in statement.wrong:
        sentence = wrong_text(wrong)
        texts.append(f"{sentence[0].upper()}{sentence[1:]}.")
    if statement.right:
        texts.append(f"Computed again and right: {', '.join(statement.right)}.")
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
    }
