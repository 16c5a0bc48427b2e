"""Readable, unique names for the outputs of a channel, made of the symbols behind them.

Every output first gets a proposal by the inputs x that reach it, then `_unique` adds numbers where
two outputs would have one name. With the inputs ``a, b, c`` and the columns W(y|.)::

    (1, 0, 0)      ``a``        one symbol
    (0, .5, .5)    ``{b, c}``   several symbols with one weight
    (0, .5, .2)    ``mix-1``    several symbols with different weights
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from mechdesign.core.integers import IntegerRows

SAME_WEIGHT = 1e-9
"""Two weights W(y|x) this close, relative to the largest of the output, count as equal in its name,
and smaller ones as absent. So the name ignores what exact rounding changes (units of 2**-53); the
codebook has the exact posterior.
"""

LONGEST_LABEL = 100
"""Longest label of a merged output in characters; a longer list is cut and counts the rest."""

_NEEDS_QUOTES = frozenset(',{}"\\')


def output_labels(names: Sequence[str], rows: IntegerRows) -> tuple[str, ...]:
    """Name every output; all names are different and depend on the arguments alone.

    An output of one symbol has the name of that symbol. One that several symbols reach with the
    same weight is ``{a, b}``, with members as JSON strings where they have commas, braces or
    quotes. Any other is ``mix-1``, ``mix-2``, .., and the codebook describes it. An output that
    would bear the name of another symbol has a number instead (``{a, b} #2``).
    """
    proposals: list[str] = []
    # The only symbol of each output, or None.
    owners: list[int | None] = []
    mixes = 0
    for inputs, values in rows.columns:
        most = max(values)
        least = min(values)
        members = inputs
        if least <= SAME_WEIGHT * most:
            shown = [
                (x, value)
                for x, value in zip(inputs, values, strict=True)
                if value > SAME_WEIGHT * most
            ]
            members = [x for x, _ in shown]
            least = min(value for _, value in shown)
        is_even = most - least <= SAME_WEIGHT * most
        if not is_even:
            mixes += 1
        if len(members) == 1:
            owners.append(members[0])
            proposals.append(names[members[0]])
        else:
            owners.append(None)
            if is_even:
                proposals.append(_merged([names[x] for x in members]))
            else:
                proposals.append(f"mix-{mixes}")
    return _unique(proposals, owners, names)


def _merged(members: list[str]) -> str:
    """``{a, b, c}``, or ``{a, +2 more}`` when that is too long."""
    parts = [_quoted(name) for name in members]
    label = "{" + ", ".join(parts) + "}"
    if len(label) <= LONGEST_LABEL:
        return label
    # Room that braces and the count of the rest leave.
    room = LONGEST_LABEL - len(f"{{, +{len(parts)} more}}")
    shown: list[str] = []
    for part in parts:
        # Every name takes two more characters for ", ".
        room -= len(part) + 2
        if room < 0:
            break
        shown.append(part)
    if not shown:
        # Even the first name is too long.
        shown = [parts[0][: LONGEST_LABEL // 2] + "…"]
    rest = f"+{len(parts) - len(shown)} more"
    return "{" + ", ".join([*shown, rest]) + "}"


def _quoted(name: str) -> str:
    """The name as it is, or as a JSON string where it could be mistaken for another one."""
    is_trimmed = name == name.strip()
    if name and is_trimmed and name.isprintable() and not _NEEDS_QUOTES & set(name):
        return name
    return json.dumps(name, ensure_ascii=False)


def _unique(
    proposals: list[str], owners: list[int | None], names: Sequence[str]
) -> tuple[str, ...]:
    """The proposals, with numbers added where they are in use or name another symbol.

    `owners` has the only symbol of each output, or None.
    """
    symbols = set(names)
    used: set[str] = set()
    last_numbers: dict[str, int] = {}
    labels: list[str] = []
    for proposal, owner in zip(proposals, owners, strict=True):
        own_name: str | None = None
        if owner is not None:
            own_name = names[owner]
        label = proposal
        number = last_numbers.get(proposal, 1)
        # The name of a symbol is kept for the output that comes from this symbol alone.
        while label in used or (label in symbols and label != own_name):
            number += 1
            label = f"{proposal} #{number}"
        used.add(label)
        last_numbers[proposal] = number
        labels.append(label)
    return tuple(labels)
