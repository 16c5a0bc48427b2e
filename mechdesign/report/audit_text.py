"""The verdict of `audit` in plain words."""

from __future__ import annotations

from mechdesign.auditing.verdict import Audit
from mechdesign.report.wording import about, at_most, label


def audit_text(audit: Audit) -> str:
    """Verdict, achieved budgets and the worst cell, without a final newline."""
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
            f"{audit.notion.text}: {verdict}, decided in exact arithmetic.",
            *own,
            f"Achieved: eps_l {at_most(achieved.eps_l)}, eps_u {at_most(achieved.eps_u)}, local differential privacy "
            f"{at_most(achieved.eps_ldp)} (nats, rounded up).",
            f"Worst: the output {label(worst.output)} makes {label(worst.sensitive)} {about(worst.lift)} times "
            f"as likely as before{against}.",
        ]
    )
