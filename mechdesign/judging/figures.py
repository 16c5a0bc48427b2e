"""What `judge` finds: figures, the parts that explain them, and the whole judgement.

Every figure stands beside two others of the same kind: that of the untouched file, and what is
found without any file. An attack that is right for 30 % of the people means nothing until one
knows that it is right for 95 % in the untouched file, and for 24 % without any.
"""

from __future__ import annotations

from dataclasses import dataclass

from mechdesign.core.display import Displayed

SHARE = "share"
"""A share of one."""

AREA = "area"
"""An area under the ROC curve: 1/2 is blind, 1 is never wrong."""

NUMBER = "number"
"""A number with three digits."""

WHOLE = "whole"
"""A whole number."""


@dataclass(frozen=True)
class Figure:
    """One measured figure.

    Attributes
    ----------
    key : str
        Its name for programs, unique in its part.
    text : str
        Its name for people.
    released : float or None
        Of the released file; None where it could not be measured.
    untouched : float or None
        The same for the original file, had it been released as it is.
    without : float or None
        The same without any file: by chance, or from what the attacker knows beforehand.
    promised : float or None
        The bound on `released` that the channel proves, where there is one.
    unit : {"share", "area", "number", "whole"}
    """

    key: str
    text: str
    released: float | None
    untouched: float | None = None
    without: float | None = None
    promised: float | None = None
    unit: str = SHARE


@dataclass(frozen=True)
class Part:
    """Figures of one kind.

    Attributes
    ----------
    key, title : str
    means : str
        What the figures mean.
    not_meant : str
        What they do not mean.
    figures : tuple of Figure
        Empty where nothing could be measured; `notes` say why.
    notes : tuple of str
        Sentences on this file.
    """

    key: str
    title: str
    means: str
    not_meant: str
    figures: tuple[Figure, ...]
    notes: tuple[str, ...] = ()

    def figure(self, key: str) -> Figure:
        """The figure of this name."""
        for figure in self.figures:
            if figure.key == key:
                return figure
        raise KeyError(key)


@dataclass(frozen=True, repr=False)
class Judgement(Displayed):
    """A released file, judged.

    Attributes
    ----------
    records, released_records : int
        Of the original, and of the released file.
    sensitive : tuple of str
    shares : dict of str to float
        The share of every sensitive value in the original.
    columns : tuple of str
        The released columns that the original has, without sensitive ones.
    unjudged : tuple of str
        Released columns that the original lacks.
    strange : tuple of str
        Columns of names of which none is one of the original's.
    alike : tuple of str
        Notices about columns with names that look alike and are compared as different ones.
    linked : {"position", "identity", "no"}
        How a released row is known to be that of a record.
    agreement : float
        The share of cells that are as in the original, of linked rows; 0 where none are.
    secret_released : bool
        Whether the released file has the sensitive columns.
    learner : str
        The model that attackers and analysts use.
    instruments : str
        Which instruments measured, in a sentence.
    promise : tuple of str
        What is known of the channel's promise; empty without a channel.
    bounds : dict of str to (float, float)
        For each secret the least and the largest share of it among the people whom any rule picks
        by their released rows; empty where nothing is proven for this table.
    parts : tuple of Part
    seed : int
    """

    records: int
    released_records: int
    sensitive: tuple[str, ...]
    shares: dict[str, float]
    columns: tuple[str, ...]
    unjudged: tuple[str, ...]
    strange: tuple[str, ...]
    alike: tuple[str, ...]
    linked: str
    agreement: float
    secret_released: bool
    learner: str
    instruments: str
    promise: tuple[str, ...]
    bounds: dict[str, tuple[float, float]]
    parts: tuple[Part, ...]
    seed: int

    def __repr__(self) -> str:
        return (
            f"Judgement({self.released_records:,} released records about "
            f"{','.join(self.sensitive)}, {len(self.parts)} parts)"
        )

    def part(self, key: str) -> Part:
        """The part of this name."""
        for part in self.parts:
            if part.key == key:
                return part
        raise KeyError(key)

    def figure(self, part: str, key: str) -> Figure:
        """One figure by the names of its part and its own."""
        return self.part(part).figure(key)
