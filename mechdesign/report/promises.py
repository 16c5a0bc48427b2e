"""What a notion promises, what follows from it and what it is about, in plain words."""

from __future__ import annotations

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


def title(columns: tuple[str, ...]) -> str:
    """The columns of a variable as one name."""
    return " x ".join(isolated(label(c)) for c in columns)


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
