"""What the cells of a table mean: empty ones, unknown ones, and what looks alike.

A table is counted by these rules, and a file must be released by the same ones. So the joint table
carries them to the channel, and the channel to `apply`, whose manifest states them for `check` and
`estimate`.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from mechdesign.core.errors import InputError
from mechdesign.core.records import Matching, Record
from mechdesign.core.wording import quoted
from mechdesign.formats.cell_forms import CellForm, Normalisation

REFUSE: Literal["refuse"] = "refuse"
SYMBOL: Literal["symbol"] = "symbol"
DROP: Literal["drop"] = "drop"
MARGINAL = "marginal"
NEAREST = "nearest"
OUTPUT = "output:"

MISSING_WORDS = "refuse, symbol, drop, marginal or output:LABEL"
"""The values of ``--missing``, for messages."""

DrawnRule = Annotated[
    str, Matching(r"(?s)refuse|marginal|output:.+", "refuse, marginal or output:LABEL")
]
"""What is released for a record with an empty cell."""

UnknownRule = Annotated[
    str,
    Matching(
        r"(?s)refuse|marginal|nearest|output:.+",
        "refuse, marginal, nearest or output:LABEL",
    ),
]
"""What is released for a record whose symbol is unknown."""


Counted: TypeAlias = Literal["refuse", "symbol", "drop"]
"""What becomes of a record with an empty cell when a table is counted."""


class CellRules(Record):
    """How cells are read and released.

    `counted` says what became of records with an empty cell when the table was counted, and
    `left_out` how many of them were dropped. `missing`
    and `unknown` say what is released for a record whose cell is empty, or has a symbol
    that the channel does not know (``nearest``: a draw of the nearest known row). `normalise`,
    `trim` and `missing_codes` are those of `CellForm`.
    """

    counted: Counted = "refuse"
    left_out: int = 0
    missing: DrawnRule = REFUSE
    unknown: UnknownRule = REFUSE
    normalise: Normalisation = "none"
    trim: bool = False
    missing_codes: tuple[str, ...] = ()

    @property
    def cell_form(self) -> CellForm:
        """The form in which cells are compared."""
        return CellForm(
            normalise=self.normalise,
            trim=self.trim,
            missing_codes=self.missing_codes,
        )


NO_RULES = CellRules()


def check_missing(missing: str) -> None:
    """Refuse an unknown way to treat missing cells."""
    if missing in (REFUSE, SYMBOL, DROP, MARGINAL) or _is_output(missing):
        return
    raise InputError(f"--missing ({quoted(missing)}) must be {MISSING_WORDS}")


def counted_as(missing: str) -> Counted:
    """What becomes of a record with a missing cell in a table: refuse, symbol or drop.

    One that `apply` draws from the marginal, or gives a fixed output, tells nothing of the
    useful column, and is not counted.
    """
    if missing in (REFUSE, SYMBOL):
        return missing
    return DROP


def released_as(missing: str) -> str:
    """What `apply` releases for a missing cell, where the table was read in this way."""
    # A symbol of its own is one that the channel knows, and dropped records are not expected again.
    return REFUSE if missing in (SYMBOL, DROP) else missing


def _is_output(missing: str) -> bool:
    """Whether a fixed output takes the place of missing cells."""
    return missing.startswith(OUTPUT) and missing != OUTPUT
