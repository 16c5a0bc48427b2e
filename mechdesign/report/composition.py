"""What `compose` prints: the joint budgets of several releases beside those of each, and the worst outputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from mechdesign.auditing.joint_leakage import Composition
from mechdesign.auditing.verdict import Achieved
from mechdesign.mechanisms.result import Spending
from mechdesign.report.wording import (
    about,
    aligned,
    at_most,
    count,
    label,
    paragraph,
    percent,
    percent_at_most,
    title,
)


def composition_record(found: Composition) -> dict[str, Any]:
    """What `compose --json` prints."""
    return {
        **asdict(found.achieved),
        "worst": {**asdict(found.worst), "outputs": list(found.worst.outputs)},
        "sum": asdict(found.sum),
        "alone": [asdict(each) for each in found.alone],
        "exact": found.exact,
        "at_least": asdict(found.at_least),
    }


def composition_text(found: Composition, names: Sequence[str]) -> str:
    """Budgets alone, added up and together, and the worst outputs, without a final newline."""
    rows = [("", "eps_l", "eps_u", "eps_ldp")]
    rows += [(label(name), *_shown(each)) for name, each in zip(names, found.alone, strict=True)]
    rows += [("added up (no bound)", *_shown(found.sum)), ("together", *_shown(found.achieved))]
    lines = ["A record released once through each, drawn independently (nats, rounded up)"]
    lines += aligned(rows, left=(0,))
    if not found.exact:
        rest = ", ".join(_shown(found.at_least))
        lines.append(
            paragraph(
                f"Proven bounds: too many combinations of outputs for all; at least {rest} are attained."
            )
        )
    worst = found.worst
    outputs = " and ".join(map(label, worst.outputs))
    together = f"the outputs {outputs} make" if len(worst.outputs) > 1 else f"the output {outputs} makes"
    lines.append(
        paragraph(
            f"Worst: {together} {label(worst.sensitive)} {about(worst.lift)} times as likely as before."
        )
    )
    return "\n".join(lines)


def spending_texts(spent: Spending) -> list[str]:
    """What a channel after other releases comes to together with them."""
    before, together = spent.before.achieved, spent.together.achieved
    number = len(spent.before.alone)
    texts = [
        f"After {count(number, 'other release')} of the same records, which {'uses' if number == 1 else 'use'} eps_l "
        f"{at_most(before.eps_l)}, eps_u {at_most(before.eps_u)}, local differential privacy "
        f"{at_most(before.eps_ldp)}: together they come to {', '.join(_shown(together))}, verified exactly."
    ]
    if spent.kept is not None and spent.kept_before is not None:
        shares = [percent(part / spent.entropy) for part in (spent.kept_before, spent.kept)]
        texts.append(
            f"All outputs together keep {shares[1]} of {title(spent.columns)}; {shares[0]} without this channel."
        )
    if spent.at_once is not None:
        once = spent.at_once
        texts.append(
            f"One channel for everything at once would keep {percent(once.nmi)} (verified, and at most "
            f"{percent_at_most(once.certificate.upper_bound_nmi or 1.0)}) at the same promise."
        )
    return texts


def spending_record(spent: Spending | None) -> dict[str, Any] | None:
    """`after` of `design --json`."""
    if spent is None:
        return None
    once = spent.at_once
    return {
        "before": asdict(spent.before.achieved),
        "together": composition_record(spent.together),
        "kept_before": spent.kept_before,
        "kept": spent.kept,
        "entropy": spent.entropy,
        "at_once": None
        if once is None
        else {
            "nmi": once.nmi,
            "mutual_information": once.mutual_information,
            "upper_bound_nmi": once.certificate.upper_bound_nmi,
            "gain": None if spent.kept is None else once.mutual_information - spent.kept,
        },
    }


def _shown(achieved: Achieved) -> tuple[str, str, str]:
    return at_most(achieved.eps_l), at_most(achieved.eps_u), at_most(achieved.eps_ldp)
