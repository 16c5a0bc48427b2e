"""Readable, unique names for the outputs of a channel."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import accumulate

from mechdesign.core.integers import IntegerRows

SAME_WEIGHT = 1e-9
"""Two weights W(y|x) this close, relative to the largest of the output, are the same for its name, and
smaller ones than this are absent: the name ignores what exact rounding changes (units of 2**-53) and the
codebook has the exact posterior."""

LONGEST_LABEL = 100
"""Longest label of a merged output in characters; a longer list is cut and counts the rest."""

_NEEDS_QUOTES = frozenset(',{}"\\')


def output_labels(names: Sequence[str], rows: IntegerRows) -> tuple[str, ...]:
    """Name every output; the names are all different and depend on nothing but the arguments.

    An output that comes from one symbol has the name of that symbol; one that several symbols reach with
    the same weight is ``{a, b}``, members with commas, braces or quotes written as JSON strings; any other is
    ``mix-1``, ``mix-2``, .. and is described by the codebook. No output bears the name of a symbol that it
    does not stand for: a number is added instead (``{a, b} #2``).
    """
    proposals: list[str] = []
    owner: list[int | None] = []
    mixes = 0
    for at, values in rows.columns:
        most = max(values)
        present = [
            (x, value)
            for x, value in zip(at, values, strict=True)
            if value > SAME_WEIGHT * most
        ]
        alike = most - min(value for _, value in present) <= SAME_WEIGHT * most
        mixes += not alike
        owner.append(present[0][0] if len(present) == 1 else None)
        members = [names[x] for x, _ in present]
        proposals.append(
            members[0]
            if len(members) == 1
            else _merged(members)
            if alike
            else f"mix-{mixes}"
        )
    return _unique(proposals, owner, names)


def _merged(members: list[str]) -> str:
    """``{a, b, c}``, or ``{a, +2 more}`` when that is too long."""
    parts = [_quoted(name) for name in members]
    label = "{" + ", ".join(parts) + "}"
    if len(label) <= LONGEST_LABEL:
        return label
    room = LONGEST_LABEL - len(f"{{, +{len(parts)} more}}")
    ends = accumulate(len(part) + 2 for part in parts)
    fitting = [part for part, end in zip(parts, ends, strict=True) if end <= room]
    shown = fitting or [
        parts[0][: LONGEST_LABEL // 2] + "…"
    ]  # even the first name may be too long
    return "{" + ", ".join([*shown, f"+{len(parts) - len(shown)} more"]) + "}"


def _quoted(name: str) -> str:
    if (
        name
        and name == name.strip()
        and name.isprintable()
        and not _NEEDS_QUOTES & set(name)
    ):
        return name
    return json.dumps(name, ensure_ascii=False)


def _unique(
    proposals: list[str], owner: list[int | None], names: Sequence[str]
) -> tuple[str, ...]:
    symbols = set(names)
    used: set[str] = set()
    tried: dict[str, int] = {}
    labels: list[str] = []
    for label, x in zip(proposals, owner, strict=True):
        chosen, k = label, tried.get(label, 1)
        # The name of a symbol is kept for the output that stands for this symbol.
        while chosen in used or (
            chosen in symbols and (x is None or chosen != names[x])
        ):
            k += 1
            chosen = f"{label} #{k}"
        used.add(chosen)
        tried[label] = k
        labels.append(chosen)
    return tuple(labels)
