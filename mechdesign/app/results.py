"""What the buttons of the page lead to, as plain texts and numbers, which the page shows.

Each button has its result: an `Assessed`, the points of a curve (`CurvePoint`), a `Designed`,
which the three searches fill alike, a `Released` or a `Judged`. All figures but those of the curve
and widths of bars are texts, rounded already, and bounds outwards: ::

    BeliefRow(symbol="flu", before="10.0 %", lowest="5.0 %", highest="19.8 %")
    Meaning(group="", released="clerk", share="33.3 %", behind="clerk 80.0 %; nurse 20.0 %")
    Move(released="clerk", symbol="flu", before="10.0 %", after="17.2 %")

These classes travel from the process of a search to the session (`work`), and from there into the
template. They hold no objects of the mathematics, so the page can neither change nor recompute a
figure, and the pipe carries no arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

Say = Callable[[str], None]
"""Takes a line on the progress."""

HTML = "text/html; charset=utf-8"
TEXT = "text/plain; charset=utf-8"
JSON = "application/json"
CSV = "text/csv; charset=utf-8"


@dataclass(frozen=True)
class ColumnSays:
    """What a column says about the protected one, in a sentence and in two words."""

    column: str
    text: str
    brief: str


@dataclass(frozen=True)
class Assessed:
    """The assessment: a line for each column, the whole text, and the plan, if one was made."""

    columns: tuple[ColumnSays, ...]
    text: str
    plan: Planned | None = None


@dataclass(frozen=True)
class Planned:
    """Trials of releases on a sample, and what they advise.

    Attributes
    ----------
    sentences : tuple of str
        What the trials are, and their advice.
    header : tuple of str
        Of the table of trials.
    rows : tuple of tuple of str
    released : tuple of str
        The columns that are advised to be released; all others are left out.
    given : tuple of str
        Those of them that are advised to be given as they are.
    bins : dict of str to str
        Their bins, as ``--bin`` takes them.
    factor : str
        The advised budget.
    has_gaps : bool
        Whether cells are empty, and become a value of their own.
    command : str
    """

    sentences: tuple[str, ...]
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    released: tuple[str, ...]
    given: tuple[str, ...]
    bins: Mapping[str, str]
    factor: str
    has_gaps: bool
    command: str


@dataclass(frozen=True)
class ShareBar:
    """The shares of a value before and after, in words and as widths in per cent of the longest."""

    label: str
    before: str
    after: str
    before_width: float
    after_width: float


@dataclass(frozen=True)
class Reading:
    """What an analyst reads of a column, or of a pair of columns, before and after.

    `distance` is the total variation, in words; `others` values are not drawn.
    """

    columns: tuple[str, ...]
    distance: str
    bars: tuple[ShareBar, ...]
    others: int


@dataclass(frozen=True)
class CurvePoint:
    """A budget, as the factor K of lifts from 1/K to K, and what the best channel keeps.

    `kept` and `bound` are shares of the information, from 0 to 1; no channel keeps more than
    `bound`, and it is None where none was proven.
    """

    factor: float
    kept: float
    bound: float | None


@dataclass(frozen=True)
class BeliefRow:
    """The probability of a protected value before, and its bounds after a released value."""

    symbol: str
    before: str
    lowest: str
    highest: str


@dataclass(frozen=True)
class Meaning:
    """A released value, its share of the records, and the true values behind it.

    `group` is its column where there are several, or the given values of its records, or empty.
    """

    group: str
    released: str
    share: str
    behind: str


@dataclass(frozen=True)
class Move:
    """A released value or row, and the protected value whose probability it changes most.

    `before` is P(s), or P(s|given) in a stratum, and `after` is P(s|y).
    """

    released: str
    symbol: str
    before: str
    after: str


@dataclass(frozen=True)
class OutputFactors:
    """A released label of boxes, and how many times as probable it makes a protected value.

    `group` is the given values of its records, or empty. `table` is the range of factors in this
    table, and `population` the wider one that the promise bounds.
    """

    group: str
    released: str
    table: str
    population: str


@dataclass(frozen=True)
class Download:
    """A file that the user may take away; it is in memory until then.

    `is_public` tells what may be given to everybody from what stays with those who may see the
    data.
    """

    name: str
    about: str
    media_type: str
    text: str
    is_public: bool = False


@dataclass(frozen=True, kw_only=True)
class Designed:
    """A verified design, in words and as files.

    Attributes
    ----------
    unit : str
        What is released: a value, a row or a box.
    facts : tuple of (title, text)
        The promises, what is kept, and what limits it.
    unchanged : tuple of (column, share)
        The expected share of the cells of a column that stay as they are.
    worst, factors
        What changes a probability most; for boxes `factors`, for others `worst`.
    boxes : tuple of str
        The rows of every box.
    together : tuple of str
        The protected values that are promised as one.
    readings : tuple of Reading
        What an analyst reads before and after, in expectation; empty for labels and boxes.
    useless : str
        Why the channel is of little use; empty otherwise.
    text : str
        The design as `mechdesign design` prints it.
    """

    title: str
    unit: str
    facts: tuple[tuple[str, str], ...]
    unchanged: tuple[tuple[str, str], ...]
    beliefs: tuple[BeliefRow, ...]
    beliefs_note: str
    meanings: tuple[Meaning, ...]
    worst: tuple[Move, ...] = ()
    factors: tuple[OutputFactors, ...] = ()
    boxes: tuple[str, ...] = ()
    together: tuple[str, ...] = ()
    readings: tuple[Reading, ...] = ()
    useless: str = ""
    text: str
    messages: tuple[str, ...]
    files: tuple[Download, ...]
    command: str
    script: str

    @property
    def channel_text(self) -> str | None:
        """The text of the channel file; None if there is none."""
        for file in self.files:
            if file.name == "channel.json":
                return file.text
        return None


@dataclass(frozen=True, kw_only=True)
class Released:
    """A released file, in words and as files.

    Attributes
    ----------
    facts : tuple of (title, text)
    check : str
        What `mechdesign check` says of the file.
    is_plausible : bool
        Whether the file passed the check.
    readings : tuple of Reading
        What an analyst reads before and after.
    messages : tuple of str
    files : tuple of Download
    """

    facts: tuple[tuple[str, str], ...]
    check: str
    is_plausible: bool
    readings: tuple[Reading, ...]
    messages: tuple[str, ...]
    files: tuple[Download, ...]

    def file(self, name: str) -> Download:
        """The file of this name."""
        for file in self.files:
            if file.name == name:
                return file
        raise KeyError(name)


@dataclass(frozen=True)
class Judged:
    """What attacks on the released file found: the strongest ones, the text of `mechdesign judge`,
    and the page with all figures.
    """

    facts: tuple[tuple[str, str], ...]
    text: str
    file: Download
