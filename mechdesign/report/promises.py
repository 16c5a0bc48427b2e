"""What a notion promises, what follows from it and what it is about, in plain words."""

from __future__ import annotations

import math
from dataclasses import dataclass

from mechdesign.auditing.guarantees import guarantees
from mechdesign.mechanisms.result import Design
from mechdesign.notions import AlphaLift, LiftLimits, Limits, MeanLimits, Notion
from mechdesign.report.shortening import isolated
from mechdesign.report.wording import at_least, at_most, count, label
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


def notion_text(notion: Notion) -> str:
    """``alip (eps_l 0.5, eps_u 0.5)``."""
    limits = notion.limits
    if isinstance(limits, LiftLimits) and math.isfinite(limits.ratio):
        return f"{notion.name} (epsilon {limits.ratio:g})"
    parts = [f"order {notion.alpha:g}"] if isinstance(notion, AlphaLift) else []
    parts += [f"eps_l {limits.lower:g}"] * (limits.lower < math.inf)
    parts += [f"eps_u {limits.upper:g}"] * (limits.upper < math.inf)
    return f"{notion.name} ({', '.join(parts)})"


def condition(limits: Limits, sensitive: str) -> str:
    """The notion in words; the constructor of every notion leaves at least one limit finite."""
    if isinstance(limits, MeanLimits):
        return _mean_condition(limits, sensitive)
    if math.isfinite(limits.ratio):
        return (
            f"no released value is more than {at_most(math.exp(limits.ratio))} times as likely under one "
            f"{sensitive} as under another."
        )
    bounds: list[str] = []
    if math.isfinite(limits.lower):
        bounds.append(f"at least {at_least(math.exp(-limits.lower))}")
    if math.isfinite(limits.upper):
        bounds.append(f"at most {at_most(math.exp(limits.upper))}")
    return f"whoever sees a released value finds every {sensitive} {' and '.join(bounds)} times as likely as before."


def _mean_condition(limits: MeanLimits, sensitive: str) -> str:
    """An averaged notion in words; l is how many times as likely as before a symbol is."""
    means = {
        "l1": ("the mean of |l - 1|", "the mean of |1/l - 1|"),
        "chi2": ("the mean of (l - 1)^2", "the mean of (1/l - 1)^2"),
        "alpha": (f"the mean of l^{limits.order:g}", f"the mean of (1/l)^{limits.order:g}"),
    }[limits.kind]
    bounds: list[str] = []
    for mean, budget in zip(means, (limits.upper, limits.lower), strict=True):
        if math.isinf(budget):
            continue
        if limits.kind == "alpha":
            bounds.append(f"{mean} is at most exp({limits.order:g} * {budget:g})")
        else:
            distance = math.expm1(budget)
            bounds.append(
                f"{mean} is at most {at_most(distance if limits.kind == 'l1' else distance * distance)}"
            )
    return (
        f"a released value makes a {sensitive} l times as likely as before; with {sensitive} as in the table, "
        f"{' and '.join(bounds)}. A single {sensitive} can become much more or less likely than that."
    )


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
