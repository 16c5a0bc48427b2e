"""The report of `design` in plain words: what is promised, what it costs, and what it is about."""

from __future__ import annotations

import math

from mechdesign.guarantees import guarantees
from mechdesign.joint import Joint
from mechdesign.mechanisms.result import Design
from mechdesign.notions import AlphaLift, LiftLimits, Limits, MeanLimits, Notion
from mechdesign.report.wording import (
    about,
    at_least,
    at_most,
    count,
    item,
    label,
    paragraph,
    percent,
    percent_at_most,
)

SCOPE = (
    "It covers the released column alone, against an observer who knows this table and the channel and nothing "
    "else about the record. Other columns left in the file, or other knowledge of {useful}, void it. Each record "
    "gets one draw: releasing the same record twice, independently, can leak more than the two budgets together. "
    "Whoever starts from other probabilities of {sensitive}, with {useful} given {sensitive} as in the table, finds "
    "them multiplied or divided by at most exp({eps_ldp})."
)


def design_text(design: Design, joint: Joint) -> str:
    """The whole report, one string of several lines without a final newline."""
    sensitive, useful = _title(joint.sensitive.columns), _title(joint.useful.columns)
    parts = [
        f"{useful} ({count(len(joint.useful), 'symbol')}) is released as {count(design.outputs, 'output')}; "
        f"{sensitive} ({count(len(joint.sensitive), 'symbol')}) is protected.",
        "",
        "What is promised",
        *[paragraph(text) for text in _promises(design, sensitive)],
        "",
        "What follows from it",
        *[item(text) for text in _consequences(design, sensitive)],
        "",
        "What it costs",
        *[paragraph(text) for text in _costs(design, useful)],
        "",
        "What it is about",
        paragraph(_sample(joint)),
        paragraph(SCOPE.format(useful=useful, sensitive=sensitive, eps_ldp=at_most(design.achieved.eps_ldp))),
    ]
    return "\n".join(parts)


def notion_text(notion: Notion) -> str:
    """``alip (eps_l 0.5, eps_u 0.5)``."""
    limits = notion.limits
    if isinstance(limits, LiftLimits) and math.isfinite(limits.ratio):
        return f"{notion.name} (epsilon {limits.ratio:g})"
    parts = [f"order {notion.alpha:g}"] if isinstance(notion, AlphaLift) else []
    parts += [f"eps_l {limits.lower:g}"] * (limits.lower < math.inf)
    parts += [f"eps_u {limits.upper:g}"] * (limits.upper < math.inf)
    return f"{notion.name} ({', '.join(parts)})"


def _title(columns: tuple[str, ...]) -> str:
    return " x ".join(label(c) for c in columns)


def _promises(design: Design, sensitive: str) -> list[str]:
    achieved, used = design.achieved, design.used
    verdict = (
        "Verified in exact arithmetic on the integers of the channel."
        if design.verified
        else "VIOLATED, decided in exact arithmetic: this is the procedure as published, without repair."
    )
    own = (
        ""
        if used is None
        else f"Of its own budgets it uses eps_l {at_most(used.eps_l)}, eps_u {at_most(used.eps_u)}. "
    )
    return [
        f"{notion_text(design.notion)}: {_condition(design.notion.limits, sensitive)}",
        f"{verdict} {own}Achieved: eps_l {at_most(achieved.eps_l)}, "
        f"eps_u {at_most(achieved.eps_u)}, local differential privacy {at_most(achieved.eps_ldp)} "
        "(nats, rounded up).",
    ]


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


def _condition(limits: Limits, sensitive: str) -> str:
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


def _consequences(design: Design, sensitive: str) -> list[str]:
    g = guarantees(design.achieved.eps_l, design.achieved.eps_u)
    rows = [
        ("mutual information with {s} (Shannon; Sibson and Arimoto of every order)", g.information, " nats"),
        ("local differential privacy with respect to {s}", min(g.ldp, design.achieved.eps_ldp), " nats"),
        ("total variation T({s};released)", g.total_variation, ""),
        ("l1-lift", g.l1_lift, ""),
        ("chi2-lift, and chi2({s};released)", g.chi2_lift, ""),
        ("alpha-lift, every alpha > 1", g.alpha_lift, ""),
        ("l1-lift-inverse", g.l1_lift_inverse, ""),
        ("chi2-lift-inverse", g.chi2_lift_inverse, ""),
        ("alpha-lift-inverse, every alpha > 1", g.alpha_lift_inverse, ""),
    ]
    return [
        f"{name.format(s=sensitive)}: at most {at_most(bound)}{unit}"
        for name, bound, unit in rows
        if bound < math.inf
    ]


def _costs(design: Design, useful: str) -> list[str]:
    certificate = design.certificate
    kept = (
        f"{percent(design.nmi)} of the information in {useful} is kept: I(X;Y) = "
        f"{about(design.mutual_information)} of H(X) = {about(design.entropy)} nats ({_maker(design)})."
    )
    texts = [kept]
    if design.repaired:
        names = ", ".join(label(name) for name in design.borrowed) or "none"
        texts.append(
            "Repaired: merging the risky symbols among themselves was not private, so harmless ones were merged "
            f"with them: {names}."
        )
    if design.fallback_from is not None:
        texts.append(f"Fallback: {design.fallback_from} gave no better verified channel.")
    if certificate.upper_bound_nmi is not None and certificate.gap_nmi is not None:
        texts.append(
            f"No channel that keeps the promise keeps more than {percent_at_most(certificate.upper_bound_nmi)}: "
            f"the gap is at most {at_most(max(certificate.gap_nmi, 0.0))} of H(X). This bound is {certificate.scope}."
        )
    else:
        texts.append("How much the best possible channel would keep was not computed.")
    return texts


def _maker(design: Design) -> str:
    return f"{design.mechanism}, by {design.method}, {design.seconds:.2f} s"


def _sample(joint: Joint) -> str:
    empty = sum(cell == 0 for row in joint.counts for cell in row)
    cells = f"{empty:,} of {count(len(joint.sensitive) * len(joint.useful), 'cell')} zero"
    if joint.records is None:
        return f"The promise is about the table of probabilities or weights as given ({cells})."
    return (
        f"The promise is about the table given ({count(joint.records, 'record')}, {cells}), not about the population "
        "that the records come from: there the leakage is usually larger, and the more so the fewer records there are."
    )
