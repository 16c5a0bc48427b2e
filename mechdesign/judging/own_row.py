"""Attacks on the secret by somebody who has found the released row of a person.

He has learnt elsewhere how rows and secrets go together, and guesses the secret from the row. Two
kinds of knowledge are tried, each with half of the people, and measured on the other half:

- *other data*: true rows with their secrets, as of another survey of the same people;
- *half of the secrets*: the secrets of half of the people of this release, beside their released
  rows.

With released rows that are right in most cells, what is true of true rows is true of released ones,
so the first does about as well as the second.

*Nearest rows* to true cells of a person. Rows are compared cell by cell: equal cells, and values
that stand for the true one, are 0 apart; numbers by their difference over the range of the column;
other cells are 1 apart. Equal released rows are taken together, with their number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mechdesign.core.integers import Integers
from mechdesign.core.wording import joined_name
from mechdesign.judging.figures import AREA, Figure, Part
from mechdesign.judging.together import Files, Flags, Floats, SharedColumn
from mechdesign.leaks.coded_table import CodedColumn
from mechdesign.leaks.learners import Learner, area_under_curve, learner_for
from mechdesign.leaks.whole_file import success

Distances: TypeAlias = NDArray[np.float32]
"""(records, rows) array; single precision, because there are many."""

CLOSE = 1e-5
"""Distances that differ by less are equal: sums of a few single-precision numbers."""

CHUNK = 1 << 24
"""Distances that are in memory at a time (64 MB)."""

WORK = 1 << 31
"""Distances that are computed in all: some ten seconds."""

MOST_TARGETS = 2_000
FEWEST_TARGETS = 100
"""People that an attack is tried on."""


@dataclass(frozen=True, eq=False)
class DistinctRows:
    """The distinct released rows.

    Attributes
    ----------
    codes : (columns, rows) codes of the released values
    counts : (rows,) integers
    row_of : (released,) integers
        The distinct row of every released one.
    """

    codes: Integers
    counts: Integers
    row_of: Integers

    @classmethod
    def of(cls, columns: Sequence[SharedColumn]) -> DistinctRows:
        """The distinct rows of these columns."""
        row_of = combined([column.released.codes for column in columns])
        _, first, counts = np.unique(row_of, return_index=True, return_counts=True)
        codes = np.stack([column.released.codes[first] for column in columns])
        return cls(codes.astype(np.int64), counts, row_of)

    def __len__(self) -> int:
        return len(self.counts)


def combined(parts: Sequence[Any]) -> Integers:
    """A number below k for each of the k distinct combinations of codes."""
    codes = np.zeros(len(parts[0]), np.int64)
    for part in parts:
        # Renumbered at every step: the product of the numbers of values may exceed 2**63.
        codes = codes * (int(part.max(initial=0)) + 1) + part
        codes = np.unique(codes, return_inverse=True)[1].reshape(-1)
    return codes


def targets_of(files: Files, rows: DistinctRows, seed: int) -> Integers:
    """People that attacks are tried on: as many as take a bearable time."""
    each = max(1, 2 * len(files.columns) * len(rows))
    most = int(np.clip(WORK // each, FEWEST_TARGETS, MOST_TARGETS))
    candidates = np.arange(files.records)
    if files.is_linked:
        candidates = np.unique(files.owner)
    chance = np.random.default_rng([seed, 1])
    return np.sort(chance.permutation(candidates)[:most])


def distances(column: SharedColumn, records: Integers, codes: Integers) -> Distances:
    """(records, rows) how far the cells of rows are from the true cells of records."""
    values, place = np.unique(column.original.codes[records], return_inverse=True)
    apart = np.ones((len(column.covers), len(values)), np.float32)
    numbers = column.numbers
    after = column.released_numbers
    if numbers is not None and after is not None:
        known = numbers[~np.isnan(numbers)]
        width = float(known.max() - known.min()) or 1.0
        gaps = np.abs(after[:, None] - numbers[values][None, :]) / width
        # A missing number is far from all others.
        apart = np.where(np.isnan(gaps), 1.0, np.minimum(gaps, 1.0)).astype(np.float32)
    of_value = {value: at for at, value in enumerate(values.tolist())}
    for released, places in enumerate(column.covers):
        if len(places) == 1:
            at = of_value.get(int(places[0]))
            if at is not None:
                apart[released, at] = 0.0
        else:
            apart[released, np.isin(values, places)] = 0.0
    return apart.T[place.reshape(-1)][:, codes]


def chunks(targets: Integers, width: int) -> Iterator[Integers]:
    """The targets in parts, so that `width` distances of each fit into memory."""
    size = max(1, CHUNK // max(1, width))
    for first in range(0, len(targets), size):
        yield targets[first : first + size]


def nearest(far: Any) -> Flags:
    """(records, rows) which rows are nearest to each record."""
    return far <= far.min(axis=1, keepdims=True) + CLOSE


def votes(near: Flags, weights: Integers, codes: Integers, values: int) -> Floats:
    """(records, values) how many of the nearest released rows have each value.

    `weights` are the numbers of released rows, (rows,) or (records, rows).
    """
    record, row = np.nonzero(near)
    weight = weights[row] if weights.ndim == 1 else weights[record, row]
    found = np.bincount(record * values + codes[row], weight, len(near) * values)
    found = found.astype(np.float64)
    return found.reshape(len(near), values)


# ------------------------------------------------------------------------------ own row

MOST_LEARNT = 30_000
"""Records that a model learns from: more take longer and change little."""

SUREST = (0.05, 0.01)
"""The shares of the people about whom the attacker is surest."""

DEVIATIONS = 2.0
"""Standard deviations within which 95 % of the figures lie."""

MOST_SYMBOLS = 5
"""Secrets whose figures are given, those that the attacker finds best."""


@dataclass(frozen=True, eq=False)
class Halves:
    """People whose secrets the attacker knows, and the others, by their places in the original."""

    known: Integers
    targets: Integers

    @classmethod
    def of(cls, files: Files, seed: int) -> Halves:
        """Two halves at random, of at most `MOST_LEARNT` records each.

        Where it is known whose rows are whose, the people with a released row are halved; the
        others are known, too.
        """
        chance = np.random.default_rng(seed)
        if not files.is_linked:
            order = chance.permutation(files.records)
            others = order[:0]
        else:
            order = chance.permutation(files.owner)
            others = np.setdiff1d(np.arange(files.records), order)
        half = len(order) // 2
        known = np.concatenate([order[:half], chance.permutation(others)])
        return cls(known[:MOST_LEARNT], order[half:][:MOST_LEARNT])


class Rows:
    """Rows of both files as a learner takes them.

    General values, such as ``20-29``, are as they are in `own`, and the most frequent original
    value that they may stand for in `read`.
    """

    def __init__(self, columns: Sequence[SharedColumn], symbols: int) -> None:
        self._columns = columns
        self._symbols = symbols
        self._records = len(columns[0].original.codes)

    @cached_property
    def own(self) -> Learner:
        """With released values as they are."""
        if not any(column.general for column in self._columns):
            return self.read
        columns: list[CodedColumn] = []
        for column in self._columns:
            values, before, after = column.union
            columns.append(_stacked(column, values, before, after))
        return learner_for(columns, self._symbols)

    @cached_property
    def read(self) -> Learner:
        """With released values as readers of the original understand them."""
        columns: list[CodedColumn] = []
        for column in self._columns:
            columns.append(read_column(column))
        return learner_for(columns, self._symbols)

    def original(self, learner: Learner, records: Integers) -> Any:
        """Features of true rows."""
        return learner.features[records]

    def released(self, learner: Learner, rows: Integers) -> Any:
        """Features of released rows."""
        return learner.features[self._records + rows]


def read_column(column: SharedColumn) -> CodedColumn:
    """A column of both files, one after the other, in the values of the original."""
    frequent = np.bincount(column.original.codes, minlength=len(column.original.values))
    values = list(column.original.values)
    after = np.empty(len(column.covers), np.int64)
    for place, places in enumerate(column.covers):
        if len(places):
            after[place] = places[np.argmax(frequent[places])]
        else:
            # It stands for nothing known: a value of its own.
            after[place] = len(values)
            values.append(column.released.values[place])
    before = np.arange(len(column.original.values))
    return _stacked(column, tuple(values), before, after)


def _stacked(
    column: SharedColumn,
    values: tuple[str, ...],
    before: Integers,
    after: Integers,
) -> CodedColumn:
    """The codes of both files, original first."""
    codes = np.concatenate(
        [before[column.original.codes], after[column.released.codes]]
    )
    return CodedColumn(column.name, codes.astype(np.int32), values)


def row_of_record(files: Files) -> Integers:
    """The released row of each record; -1 where there is none, or it is not known."""
    rows = np.full(files.records, -1, np.int64)
    rows[files.owner] = np.arange(len(files.owner))
    return rows


@dataclass(frozen=True, eq=False)
class Attack:
    """The attacker's probabilities of every secret, and the truth.

    Attributes
    ----------
    shares : (targets, symbols) array
    truth : (targets,) codes
    """

    shares: Floats
    truth: Integers

    def area(self) -> float | None:
        """The area under the ROC curve."""
        counts = np.bincount(self.truth, minlength=self.shares.shape[1])
        return area_under_curve(self.shares, self.truth, counts)

    def surest(self, symbol: int, share: float) -> float:
        """How many have the secret among those of whom the attacker is surest."""
        return success(self.shares[:, symbol], self.truth == symbol, share)

    def least_sure(self, symbol: int, share: float) -> float:
        """How many have the secret among those whom he believes least to have it."""
        return 1 - success(-self.shares[:, symbol], self.truth != symbol, share)


def own_row_attacks(files: Files, rows: Rows, halves: Halves) -> tuple[Attack, Attack]:
    """The attacks with other data, and with half of the secrets."""
    secret = files.secret.codes
    row_of = row_of_record(files)
    known = halves.known
    targets = halves.targets[row_of[halves.targets] >= 0]
    truth = secret[targets]
    read = rows.read
    by_other = read.shares(
        rows.original(read, known), secret[known], rows.released(read, row_of[targets])
    )
    own = rows.own
    beside = known[row_of[known] >= 0]
    by_half = own.shares(
        rows.released(own, row_of[beside]),
        secret[beside],
        rows.released(own, row_of[targets]),
    )
    return Attack(by_other, truth), Attack(by_half, truth)


def untouched_attack(files: Files, rows: Rows, halves: Halves) -> Attack:
    """The same on the untouched file, where both kinds of knowledge are one."""
    secret = files.secret.codes
    read = rows.read
    shares = read.shares(
        rows.original(read, halves.known),
        secret[halves.known],
        rows.original(read, halves.targets),
    )
    return Attack(shares, secret[halves.targets])


def shown_symbols(attack: Attack) -> list[int]:
    """The secrets whose figures are given: of two the rarer one, of more those found best."""
    counts = np.bincount(attack.truth, minlength=attack.shares.shape[1])
    present = np.flatnonzero(counts)
    if len(present) <= 2:
        return [int(present[np.argmin(counts[present])])]
    gains: list[tuple[float, int]] = []
    for symbol in present.tolist():
        base = counts[symbol] / counts.sum()
        gains.append((-attack.surest(symbol, SUREST[0]) / base, symbol))
    return [symbol for _, symbol in sorted(gains)[:MOST_SYMBOLS]]


Bounds = dict[str, tuple[float, float]]
"""For each secret the least and the largest belief that the channel allows."""


def attack_figures(
    kind: str,
    name: str,
    symbols: Sequence[str],
    attack: Attack | None,
    untouched: Attack | None,
    shown: Sequence[int],
    shares: dict[str, float],
    bounds: Bounds,
    *,
    without: Attack | None = None,
    most: Sequence[float] = SUREST,
) -> list[Figure]:
    """The figures of one attack; `kind` starts their keys, and `name` says who attacks."""

    def of(of_attack: Attack | None, figure: str, symbol: int, share: float) -> Any:
        if of_attack is None:
            return None
        return getattr(of_attack, figure)(symbol, share)

    figures = [
        Figure(
            f"{kind}_area",
            f"{name}: area under the ROC curve",
            None if attack is None else attack.area(),
            None if untouched is None else untouched.area(),
            0.5 if without is None else without.area(),
            unit=AREA,
        )
    ]
    for symbol in shown:
        text = symbols[symbol]
        value = joined_name([text])
        low, high = bounds.get(text, (None, None))
        for share in most:
            figures.append(
                Figure(
                    f"{kind}_surest_{round(100 * share)}_{text}",
                    f"{name}: {value} among the {round(100 * share)} % that look most like it",
                    of(attack, "surest", symbol, share),
                    of(untouched, "surest", symbol, share),
                    shares[text] if without is None else without.surest(symbol, share),
                    high,
                )
            )
        share = SUREST[0]
        figures.append(
            Figure(
                f"{kind}_least_{round(100 * share)}_{text}",
                f"{name}: {value} among the {round(100 * share)} % that look least like it",
                of(attack, "least_sure", symbol, share),
                of(untouched, "least_sure", symbol, share),
                shares[text] if without is None else without.least_sure(symbol, share),
                low,
            )
        )
    return figures


def chance_note(people: int, base: float) -> str:
    """How far a share of the surest people varies by chance."""
    texts: list[str] = []
    for share in SUREST:
        picked = max(1, round(share * people))
        spread = DEVIATIONS * np.sqrt(base * (1 - base) / picked)
        texts.append(f"{100 * spread:.1f} points for {round(100 * share)} %")
    return (
        f"Of {people:,} people the shares vary by chance by about {' and '.join(texts)}; a promise "
        "is about their mean."
    )


def own_row_part(
    files: Files, rows: Rows, halves: Halves, shares: dict[str, float], bounds: Bounds
) -> Part:
    """What somebody finds out who has found a person's released row."""
    untouched = untouched_attack(files, rows, halves)
    shown = shown_symbols(untouched)
    names = files.secret.symbols
    notes: list[str] = []
    if files.is_linked:
        other, half = own_row_attacks(files, rows, halves)
        notes.append(chance_note(len(other.truth), shares[names[shown[0]]]))
    else:
        other, half = None, None
        notes.append(
            "Not measured: it is not known which released row belongs to whom. The files have "
            "other numbers of records, or do not clearly agree at the same places; --identity COL "
            "links them."
        )
    figures = [
        *attack_figures(
            "other_data",
            "learnt from other data",
            names,
            other,
            untouched,
            shown,
            shares,
            bounds,
        ),
        *attack_figures(
            "half",
            "learnt from half of the secrets",
            names,
            half,
            untouched,
            shown,
            shares,
            bounds,
        ),
    ]
    if files.is_linked and files.released_secret is not None:
        read = files.secret.codes[files.owner] == files.released_secret
        figures.append(
            Figure(
                "beside",
                "read in the released file beside the row",
                float(read.mean()),
                1.0,
                max(shares.values()),
            )
        )
    return Part(
        key="own_row",
        title="The secret of a person whose released row is known",
        means=(
            "Somebody knows which released row is a person's and guesses the secret from it, with "
            "a model of how rows and secrets go together. The figures say how often he is right "
            "about the people of whom he is surest. The area under the ROC curve is the share of "
            "pairs, of a person with the secret and one without, whom he puts in the right order: "
            "0.5 is tossing a coin."
        ),
        not_meant=(
            "A weak attack proves little: another model may do better. Only a promise bounds them "
            "all. A measured share of few people also varies by chance around what is promised."
        ),
        figures=tuple(figures),
        notes=tuple(notes),
    )
