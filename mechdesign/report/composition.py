"""What `compose` prints: the joint budgets of several releases beside those of each, and the worst outputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from mechdesign.auditing.joint_leakage import Composition
from mechdesign.auditing.verdict import Achieved
from mechdesign.report.blocks import short
from mechdesign.report.terminal import aligned
from mechdesign.report.wording import about, at_most, label, paragraph


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
    outputs = " and ".join(map(short, worst.outputs))
    together = f"the outputs {outputs} make" if len(worst.outputs) > 1 else f"the output {outputs} makes"
    lines.append(
        paragraph(
            f"Worst: {together} {short(worst.sensitive)} {about(worst.lift)} times as likely as before."
        )
    )
    return "\n".join(lines)


def _shown(achieved: Achieved) -> tuple[str, str, str]:
    return at_most(achieved.eps_l), at_most(achieved.eps_u), at_most(achieved.eps_ldp)
