"""The heuristics' names, and the choices that their paper leaves open (Zarrabian et al. 2023).

A symbol is *risky* if releasing it as it is would break the notion. The heuristics merge risky
symbols into sets, and four things about that can be chosen:

- `risk`: which set counts as the riskiest and is merged next (`merged_sets.Risk`).
- `randomisation`: what complete merging releases for its one set of all risky symbols. It may draw
  from any distribution R(y) that is the same for every symbol of the set (Section 3.1.1). Each
  output then has the lifts of the merged set, whatever R is; a single output is the simplest R.
- `as_published`: the procedure of the paper may end with a set that breaks the notion. The repair
  then lets harmless symbols join (`partitions`); this option leaves it out.
- `smaller_budgets`: a larger budget may merge other sets, within which less can be kept. Subset
  response therefore tries the sets of smaller budgets too.

Designs take the `STANDARD` options; others are for figures of the paper and for study. A choice
that the mechanism does not have is refused (`HeuristicOptions.check`).

`shares_of` gives R(y) as integers out of 2^53: for two risky symbols a uniform R is [2^52, 2^52],
and the probabilities 0.25 and 0.75 are [2^51, 3 * 2^51]. The choice `merge` is [2^53].
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from mechdesign.channel.channel import DENOMINATOR
from mechdesign.core.arguments import fraction_of
from mechdesign.core.errors import InputError
from mechdesign.core.wording import listed
from mechdesign.mechanisms.merged_sets import RISKS, Risk
from mechdesign.release.samplers import apportioned

COMPLETE = "complete-merging"
SUBSETS = "subset-merging"
RESPONSE = "subset-response"

Randomisation: TypeAlias = str | Sequence[float]
"""`merge`, `uniform`, or the probabilities of the outputs, one for each risky symbol in the table's
order."""

MERGE = "merge"
UNIFORM = "uniform"

SUM_TOLERANCE = Fraction(1, 10**9)
"""Probabilities may miss a sum of 1 by this much, as those of an outside matrix; they are then
normalised exactly."""


@dataclass(frozen=True, kw_only=True)
class HeuristicOptions:
    """What a user chose where the heuristics leave a choice; for figures and for study.

    Parameters
    ----------
    risk : {"auto", "log-max", "log-ratio", "sum"}
        How subset merging and subset response order sets; "sum" is what the paper prints for ALIP.
    randomisation : {"merge", "uniform"} or sequence of float
        The R(y) of complete merging.
    as_published : bool
        Leave out the repair. Where the channel violates the notion, `verified` is False; it cannot
        be saved in any case.
    smaller_budgets : bool
        Whether subset response also tries parts of the budget.
    """

    risk: Risk = "auto"
    randomisation: Randomisation = MERGE
    as_published: bool = False
    smaller_budgets: bool = True

    def __post_init__(self) -> None:
        if self.risk not in RISKS:
            raise InputError(f"risk ({self.risk!r}) must be one of {', '.join(RISKS)}")

    def check(self, mechanism: str) -> None:
        """Raise InputError if one of the choices does not belong to the mechanism.

        Only what differs from the standard is refused: a choice that is not made fits everything.
        """
        if self.risk != "auto" and mechanism not in (RESPONSE, SUBSETS):
            raise InputError(
                f"risk belongs to {SUBSETS} and {RESPONSE}, not to {mechanism}"
            )
        if self.randomisation != MERGE and mechanism != COMPLETE:
            raise InputError(
                f"a randomisation R(y) belongs to {COMPLETE}, not to {mechanism}"
            )
        if self.as_published and mechanism not in (RESPONSE, SUBSETS, COMPLETE):
            raise InputError(
                f"as_published belongs to the heuristics, not to {mechanism}, which needs no repair"
            )


STANDARD = HeuristicOptions()
"""The options of every design."""


def shares_of(randomisation: Randomisation, risky: Sequence[str]) -> list[int]:
    """R(y) as positive integers that sum to 2**53, for the names of the risky symbols.

    Raises
    ------
    InputError
        If it is no distribution with a probability for each of them.
    """
    if isinstance(randomisation, str):
        if randomisation == MERGE:
            return [DENOMINATOR]
        if randomisation != UNIFORM:
            raise InputError(
                f"the randomisation ({randomisation!r}) must be {MERGE}, {UNIFORM} or "
                "a list of probabilities"
            )
        # 2^53 need not be a multiple of their number: some get one part more.
        return apportioned([1] * len(risky), DENOMINATOR).tolist()
    values = [fraction_of(value) for value in randomisation]
    if len(values) != len(risky):
        raise InputError(
            f"R(y) has {len(values)} probabilities, but {len(risky)} risky symbols "
            f"need one each: {listed(list(risky))}"
        )
    for value in values:
        if not 0 <= value <= 1:
            raise InputError(f"R(y) contains {float(value):g}, which is no probability")
    total = sum(values)
    if abs(total - 1) > SUM_TOLERANCE:
        raise InputError(
            f"R(y) sums to {float(total):.12g}; probabilities must sum to 1"
        )
    # The common denominator makes integers of the probabilities without rounding, so that they are
    # rounded only once, to parts of 2^53. A symbol of probability zero has no output.
    unit = math.lcm(*(value.denominator for value in values))
    masses = [int(value * unit) for value in values]
    whole = apportioned(masses, DENOMINATOR)
    return whole[whole > 0].tolist()
