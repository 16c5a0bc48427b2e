"""The report of `design` in plain words: what is promised, what it costs, and what it is about."""

from __future__ import annotations

from mechdesign.auditing.guarantees import consequences
from mechdesign.mechanisms.result import Design
from mechdesign.report.promises import (
    COVERS,
    ONE_DRAW,
    OTHER_PRIOR,
    VOIDS,
    remarks,
    sample,
    title,
)
from mechdesign.report.wording import (
    about,
    at_most,
    count,
    item,
    paragraph,
    percent,
    percent_at_most,
)
from mechdesign.tables.joint import Joint

SCOPE = " ".join((COVERS, VOIDS, ONE_DRAW, OTHER_PRIOR))


def design_text(design: Design, joint: Joint) -> str:
    """The whole report, one string of several lines without a final newline."""
    sensitive, useful = title(joint.sensitive.columns), title(joint.useful.columns)
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
        paragraph(sample(joint)),
        paragraph(SCOPE.format(useful=useful, sensitive=sensitive, eps_ldp=at_most(design.achieved.eps_ldp))),
    ]
    return "\n".join(parts)


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
        f"{design.notion.text}: {design.notion.limits.condition(sensitive)}",
        f"{verdict} {own}Achieved: eps_l {at_most(achieved.eps_l)}, "
        f"eps_u {at_most(achieved.eps_u)}, local differential privacy {at_most(achieved.eps_ldp)} "
        "(nats, rounded up).",
    ]


def _consequences(design: Design, sensitive: str) -> list[str]:
    achieved = design.achieved
    return [
        f"{found.measure}: at most {at_most(found.bound)}{found.unit}"
        for found in consequences(achieved.eps_l, achieved.eps_u, achieved.eps_ldp, sensitive)
    ]


def _costs(design: Design, useful: str) -> list[str]:
    certificate = design.certificate
    kept = (
        f"{percent(design.nmi)} of the information in {useful} is kept: I(X;Y) = "
        f"{about(design.mutual_information)} of H(X) = {about(design.entropy)} nats ({_maker(design)})."
    )
    texts = [kept, *remarks(design)]
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
