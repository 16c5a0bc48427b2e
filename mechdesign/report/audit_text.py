"""The verdict of `audit` in plain words."""

from __future__ import annotations

from collections.abc import Sequence

from mechdesign.auditing.verdict import Audit
from mechdesign.report.promises import notion_text
from mechdesign.report.wording import about, at_most, label, paragraph


def audit_text(audit: Audit, population: Sequence[str] = ()) -> str:
    """Verdict, achieved budgets, the worst cell and what holds for the population, without a final newline."""
    achieved, worst = audit.achieved, audit.worst
    verdict = "satisfied" if audit.satisfied else "VIOLATED"
    against = f", most of all against {label(worst.against)}" if worst.against is not None else ""
    used = audit.used
    own = (
        []
        if used is None
        else [
            f"Of its own budgets it uses eps_l {at_most(used.eps_l)}, "
            f"eps_u {at_most(used.eps_u)} (nats, rounded up)."
        ]
    )
    return "\n".join(
        [
            f"{notion_text(audit.notion)}: {verdict}, decided in exact arithmetic.",
            *own,
            f"Achieved: eps_l {at_most(achieved.eps_l)}, eps_u {at_most(achieved.eps_u)}, local differential privacy "
            f"{at_most(achieved.eps_ldp)} (nats, rounded up).",
            f"Worst: the output {label(worst.output)} makes {label(worst.sensitive)} {about(worst.lift)} times "
            f"as likely as before{against}.",
            *map(paragraph, population),
        ]
    )
