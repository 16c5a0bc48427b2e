"""The limits of a channel of least cost besides the notion (`stay`, `forbid`), and of its search.

`limits_of` translates what the user wrote, by the names of symbols, into arrays by their positions,
and refuses what contradicts itself. For example, with the symbols a, b and c, stay="0.5" and
forbid=[("a", "c")] become the shares (1/2, 1/2, 1/2) and pairs that are all allowed except row a,
column c.

*Tolerances* of the search: margins are relative distances from the limits of the notion, reaches
are budgets in nats, gaps are shares of `LeastCostProgram.spread`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.arguments import fraction_of
from mechdesign.core.errors import InputError
from mechdesign.core.wording import quoted
from mechdesign.mechanisms.least_cost_objective import LeastCostObjective
from mechdesign.tables.joint import Joint

# --------------------------------------------------------------------------- tolerances

MARGINS = (1e-12, 1e-11, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6)
"""Margins tried in turn until the integers pass the exact audit; see `rules.MARGINS`."""

LARGE_FROM = 300
"""Symbols from which the first margin is `LARGE_MARGIN`, and shares are not halved in refusals: a
second solve would take minutes."""

LARGE_MARGIN = 1e-7
"""The first margin of large tables, which an interior point solution needs."""

TANGENT_MARGIN = 1e-7
"""The first margin where averages are limited: tangents come no nearer in few rounds."""

LARGEST_DEVIATION = Fraction(1, 10**12)
"""Largest change of an expected share where frequencies are preserved: integers over a common
denominator cannot preserve them exactly."""

REACHES = (20.0, 15.0, 12.0, 10.0, 8.0, 5.0)
"""Nats to which larger budgets are reduced, to be tried in turn. exp(-20) is larger than the error
of a zero in the simplex method, but symbols of a share of 1e-7 need smaller reaches. Bounds hold
for the budgets as they are."""

SHARPEST_GAP = 1e-6
"""Gap of a search without time limit, even where the request allows a larger one."""

REFUSAL_MARGIN = 1e-9
"""Margin of the programs behind a refusal, and taken off the shares that it names, so that these
work."""

MOST_TRIED = 20
"""Symbols tried alone to explain why no channel keeps all shares."""

BISECTIONS = 20
"""Halvings of all shares for the same explanation; six digits of the largest share."""


# ------------------------------------------------------------------------------- limits


@dataclass(frozen=True, eq=False)
class ChannelLimits:
    """Limits on W(y|x) besides the notion.

    `stay` has the least shares W(x|x), exactly as written, `allowed` (n, n) the pairs (x, y) that
    may occur, and `keep` is whether expected frequencies are preserved.
    """

    stay: tuple[Fraction, ...]
    allowed: NDArray[np.bool_]
    keep: bool


def limits_of(objective: LeastCostObjective, joint: Joint) -> ChannelLimits:
    """`stay` and `forbid` on the symbols of a table.

    Raises
    ------
    InputError
        If they name an unknown symbol, are malformed, or leave a symbol without a place.
    """
    index = {name: x for x, name in enumerate(joint.useful.names)}
    stay = _stay(objective.stay, index)
    allowed = np.ones((len(index), len(index)), dtype=np.bool_)
    for pair in objective.forbid:
        # A text of two letters has a length of 2 as well.
        if isinstance(pair, str) or len(pair) != 2:
            raise InputError(
                f"forbid: {quoted(pair)} must be a pair of symbols, (from, to)"
            )
        source = _position(pair[0], index, "forbid")
        target = _position(pair[1], index, "forbid")
        allowed[source, target] = False
    for name, x in index.items():
        if not allowed[x].any():
            raise InputError(
                f"forbid leaves nothing that could be released for {quoted(name)}"
            )
        if stay[x] and not allowed[x, x]:
            raise InputError(
                f"stay and forbid contradict each other for {quoted(name)}"
            )
        if objective.keep_frequencies and not allowed[:, x].any():
            raise InputError(
                f"forbid leaves nothing that could become {quoted(name)}, whose frequency is to "
                "be kept"
            )
    return ChannelLimits(stay, allowed, objective.keep_frequencies)


def _stay(stay: Any, index: Mapping[str, int]) -> tuple[Fraction, ...]:
    """The least share W(x|x) of every symbol, from one number for all or a mapping."""
    if stay is None:
        by_symbol: Mapping[str, Any] = {}
    elif isinstance(stay, Mapping):
        by_symbol = stay
    else:
        by_symbol = dict.fromkeys(index, stay)
    # Exactly as written: 0.9 is 9/10 here, and the integers of the channel must keep it.
    shares = [Fraction(0)] * len(index)
    for symbol, text in by_symbol.items():
        x = _position(symbol, index, "stay")
        try:
            share = fraction_of(text)
        except InputError as error:
            raise InputError(f"stay: the share of {quoted(symbol)} {error}") from None
        if not 0 <= share <= 1:
            raise InputError(
                f"stay: the share of {quoted(symbol)} ({quoted(text)}) must be in [0, 1]"
            )
        shares[x] = share
    return tuple(shares)


def stays_of_symbols(stay: Any, joint: Joint) -> tuple[Fraction, ...]:
    """The least share W(x|x) of every symbol of a table, as `limits_of` reads it."""
    index = {name: x for x, name in enumerate(joint.useful.names)}
    return _stay(stay, index)


def _position(symbol: Any, index: Mapping[str, int], option: str) -> int:
    """The position of a symbol in an option; InputError if the table does not have it."""
    if symbol not in index:
        raise InputError(f"{option}: the table has no useful symbol {quoted(symbol)}")
    return index[symbol]
