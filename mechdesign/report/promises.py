"""What a notion promises, what follows from it and what it is about, in plain words."""

from __future__ import annotations

import math
from dataclasses import dataclass

from mechdesign.auditing.guarantees import guarantees
from mechdesign.mechanisms.result import Design
from mechdesign.report.shortening import isolated
from mechdesign.report.wording import count, label
from mechdesign.tables.joint import Joint

COVERS = (
    "It covers the released column alone, against an observer who knows this table and the channel and nothing "
    "else about the record."
)
VOIDS = "Other columns left in the file, or other knowledge of {useful}, void it."
ONE_DRAW = (
    "Each record gets one draw: releasing the same record twice, independently, can leak more than the two "
    "budgets together."
)
OTHER_PRIOR = (
    "Whoever starts from other probabilities of {sensitive}, with {useful} given {sensitive} as in the table, finds "
    "them multiplied or divided by at most exp({eps_ldp})."
)


@dataclass(frozen=True)
class Consequence:
    """A bound on a measure of leakage; `key` is its name in `channel_measures`, None where there is none."""

    measure: str
    bound: float
    unit: str
    key: str | None


def title(columns: tuple[str, ...]) -> str:
    """The columns of a variable as one name."""
    return " x ".join(isolated(label(c)) for c in columns)


def consequences(eps_l: float, eps_u: float, eps_ldp: float, sensitive: str) -> list[Consequence]:
    """Every finite bound that follows from bounds on the lifts (nats), achieved or promised.

    Parameters
    ----------
    eps_l, eps_u, eps_ldp : float
        ``exp(-eps_l) <= l(s, y) <= exp(eps_u)`` and ``l(s, y) <= exp(eps_ldp) l(s', y)``; inf where free.
    sensitive : str
        Name of the sensitive columns.
    """
    g = guarantees(eps_l, eps_u)
    rows = [
        (
            "mutual information with {s} (Shannon; Sibson and Arimoto of every order)",
            g.information,
            " nats",
            "mutual_information",
        ),
        (
            "local differential privacy with respect to {s}",
            min(g.ldp, eps_ldp),
            " nats",
            "max_log_lift_ratio",
        ),
        ("total variation T({s};released)", g.total_variation, "", "total_variation"),
        ("l1-lift", g.l1_lift, "", "l1_lift"),
        ("chi2-lift, and chi2({s};released)", g.chi2_lift, "", "chi2_lift"),
        ("alpha-lift, every alpha > 1", g.alpha_lift, "", None),
        ("l1-lift-inverse", g.l1_lift_inverse, "", "l1_lift_inverse"),
        ("chi2-lift-inverse", g.chi2_lift_inverse, "", "chi2_lift_inverse"),
        ("alpha-lift-inverse, every alpha > 1", g.alpha_lift_inverse, "", None),
    ]
    return [
        Consequence(name.format(s=sensitive), bound, unit, key)
        for name, bound, unit, key in rows
        if bound < math.inf
    ]


def sample(joint: Joint) -> str:
    """What the promise is about: N, zero cells, and no population."""
    empty = sum(cell == 0 for row in joint.counts for cell in row)
    cells = f"{empty:,} of {count(len(joint.sensitive) * len(joint.useful), 'cell')} zero"
    if joint.records is None:
        return f"The promise is about the table of probabilities or weights as given ({cells})."
    return (
        f"The promise is about the table given ({count(joint.records, 'record')}, {cells}), not about the population "
        "that the records come from: there the leakage is usually larger, and the more so the fewer records there are."
    )


def remarks(design: Design) -> list[str]:
    """How the channel came about where that was not the straight way."""
    texts: list[str] = []
    if design.repaired:
        names = ", ".join(label(name) for name in design.borrowed) or "none"
        texts.append(
            "Repaired: merging the risky symbols among themselves was not private, so harmless ones were merged "
            f"with them: {names}."
        )
    if design.fallback_from is not None:
        texts.append(f"Fallback: {design.fallback_from} gave no better verified channel.")
    return texts
