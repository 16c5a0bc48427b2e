"""The form in which the texts of cells are compared: Unicode form, and blanks at their ends.

Two cells can look alike and be different symbols: ``clerk`` and ``clerk`` with a blank behind it,
or an accented letter as one character and as two. By default they stay different, because a cell is
what the file has. A `CellForm` makes them equal, in the table and in every file that is released.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast, get_args

import numpy as np

from mechdesign.core.errors import InputError
from mechdesign.core.wording import listed, quoted
from mechdesign.formats.cells import Encoded

Normalisation: TypeAlias = Literal["none", "NFC", "NFD", "NFKC", "NFKD"]

NORMALISATIONS: tuple[Normalisation, ...] = get_args(Normalisation)


@dataclass(frozen=True, kw_only=True)
class CellForm:
    """How texts of cells are changed before they are compared.

    Parameters
    ----------
    normalise : {'none', 'NFC', 'NFD', 'NFKC', 'NFKD'}
        The Unicode form.
    trim : bool
        Whether blanks at both ends are taken off.
    missing_codes : tuple of str
        Texts that stand for an empty cell, such as ``?`` or ``-9``.

    Raises
    ------
    InputError
        On a Unicode form of another name.
    """

    normalise: str = "none"
    trim: bool = False
    missing_codes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.normalise not in NORMALISATIONS:
            raise InputError(
                f"normalise ({quoted(self.normalise)}) must be one of {listed(NORMALISATIONS)}"
            )

    @property
    def changes_nothing(self) -> bool:
        """Whether texts stay as they are."""
        return self == CellForm()

    def text(self, text: str) -> str:
        """A text in this form."""
        if self.normalise != "none":
            text = unicodedata.normalize(cast("Literal['NFC']", self.normalise), text)
        # Last, because a compatibility form can make a blank of another character.
        if self.trim:
            text = text.strip()
        return "" if text in self.missing_codes else text

    def cells(self, column: Encoded) -> Encoded:
        """A column in this form; a cell of nothing but blanks, or of a missing code, is missing.

        Several codes may have the same text.
        """
        if self.changes_nothing:
            return column
        texts = tuple(map(self.text, column.texts))
        blank = [
            code for code, text in enumerate(texts) if column.texts[code] and not text
        ]
        codes = column.codes
        if blank:
            codes = np.where(np.isin(codes, blank), -1, codes)
        return Encoded(codes, texts, column.is_float)

    def __str__(self) -> str:
        parts: list[str] = []
        if self.normalise != "none":
            parts.append(self.normalise)
        if self.trim:
            parts.append("trim")
        if self.missing_codes:
            parts.append(f"the missing codes {listed(self.missing_codes)}")
        return " and ".join(parts) or "none"
