"""What counts say about the population they are a sample of: intervals for every cell, as exact rationals.

Given how many records N_s a sensitive symbol s has, its row of the table is multinomial(N_s, P(.|s)), so each
cell is binomial, and Clopper and Pearson (1934) bound P(x|s) whatever it is: an end is the p at which a binomial
tail is just as small as the share of 1 - level that the cell may spend. Bonferroni over all ends makes all bounds
true at once with probability `level` or more. The shares P(s) are bounded alike, or known, or not needed. Rows of
few records and cells of large probability get more of 1 - level than others, by rules fixed before the sample.

Ends are exact multiples of 2**-60 (`core.binomial`), so an audit can compute them again.
"""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from mechdesign.core.binomial import SCALE, lower_end
from mechdesign.core.errors import InputError, expected
from mechdesign.core.numbers import fraction_of, listed, percent_of, quoted, repeated
from mechdesign.formats.opening import open_source
from mechdesign.tables.joint import Joint

LEAST_LEVEL = 0.5
"""Confidence below one half is no confidence: the promise would fail for most samples."""

DEFAULT_LEVEL = 0.95
"""The level at which a channel designed without one is looked at."""

SHARE_TOLERANCE = Fraction(1, 10**6)
"""Known shares may miss a sum of 1 by this much (printed ones are rounded) and are then normalised."""

METHOD = "clopper-pearson"


@dataclass(frozen=True)
class ConfidenceSet:
    """All populations that the counts do not contradict: P(x|s) and P(s) between their ends."""

    level: float
    lower: tuple[tuple[int, ...], ...]
    upper: tuple[tuple[int, ...], ...]
    share_lower: tuple[Fraction, ...]
    share_upper: tuple[Fraction, ...]
    unseen: int = 0
    rest: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for lower, upper in zip(self.lower, self.upper, strict=True):
            if not all(0 <= a <= b <= SCALE for a, b in zip(lower, upper, strict=True)):
                raise InputError(
                    "an interval of the confidence set has no place in [0, 1]"
                )
            if not sum(lower) <= SCALE <= sum(upper):
                raise InputError(
                    "the intervals of a sensitive symbol hold no distribution at all"
                )
        if not sum(self.share_lower) <= 1 <= sum(self.share_upper):
            raise InputError("the intervals of the shares hold no distribution at all")

    @property
    def shares_are_known(self) -> bool:
        """Whether P(s) was given rather than estimated or left open."""
        return self.share_lower == self.share_upper

    def to_record(self) -> dict[str, Any]:
        """The set as the channel file writes it; ends are texts "p/q"."""
        cells = [
            [
                [str(Fraction(end, SCALE)) for end in ends]
                for ends in zip(lower, upper, strict=True)
            ]
            for lower, upper in zip(self.lower, self.upper, strict=True)
        ]
        ends = zip(self.share_lower, self.share_upper, strict=True)
        return self.stated | {
            "intervals": {"cells": cells, "shares": [[str(a), str(b)] for a, b in ends]}
        }

    @property
    def stated(self) -> dict[str, Any]:
        """What everybody may know of the set: all but the intervals."""
        free = not any(self.share_lower) and all(end == 1 for end in self.share_upper)
        shares = "known" if self.shares_are_known else "free" if free else "estimated"
        return {
            "level": self.level,
            "set": METHOD,
            "shares": shares,
            "unseen": self.unseen,
        }


def set_of_record(record: Mapping[str, Any], joint: Joint) -> ConfidenceSet:
    """The set that `to_record` describes, computed again from the counts.

    Level and known shares are what the file says; every interval is computed, and must be the one in the file.
    """
    try:
        level, kind, unseen = record["level"], record["shares"], record["unseen"]
        known = None
        if kind == "known":
            texts = (pair[0] for pair in record["intervals"]["shares"])
            known = dict(
                zip(joint.sensitive.symbols, map(Fraction, texts), strict=True)
            )
        if record["set"] != METHOD or kind not in ("known", "free", "estimated"):
            raise ValueError
    except (KeyError, TypeError, ValueError, IndexError, ZeroDivisionError):
        raise InputError(
            "the confidence set of the file is not readable; design the channel again"
        ) from None
    again = confidence_set(
        joint, level, shares=known, estimate_shares=kind == "estimated", unseen=unseen
    )
    if again.to_record()["intervals"] != record.get("intervals"):
        raise InputError(
            "the intervals in the channel file are not those of its counts: the file was changed, or made from "
            "another table"
        )
    return again


def check_level(level: Any) -> float:
    """The level as a float."""
    if (
        isinstance(level, bool)
        or not isinstance(level, numbers.Real)
        or not LEAST_LEVEL <= float(level) < 1
    ):
        raise InputError(
            f"the confidence level ({quoted(level)}) must be a number from {LEAST_LEVEL} up to, but not including, 1"
        )
    return float(level)


def check_shares(shares: Mapping[Any, Any], joint: Joint) -> tuple[Fraction, ...]:
    """Known P(s) in the order of the table, exactly."""
    expected(
        "known_shares",
        shares,
        Mapping,
        "; write one, as in {'Husband': '0.4', 'Wife': '0.6'}",
    )
    places = enumerate(zip(joint.sensitive.names, joint.sensitive.symbols, strict=True))
    names: dict[Any, int] = {text: s for s, pair in places for text in pair}
    if unknown := [str(symbol) for symbol in shares if symbol not in names]:
        raise InputError(
            f"the shares name {listed(unknown)}, which the table has no records of; leave it out"
        )
    given: dict[int, Fraction] = {}
    for symbol, share in shares.items():
        try:
            value = fraction_of(repr(share) if isinstance(share, float) else share)
        except InputError as error:
            raise InputError(
                f"the share of {quoted(symbol)} is not usable: {error}"
            ) from None
        if not 0 < value <= 1:
            raise InputError(
                f"the share of {quoted(symbol)} ({quoted(share)}) must be above 0 and at most 1"
            )
        if names[symbol] in given:
            raise InputError(f"the share of {quoted(symbol)} is given twice")
        given[names[symbol]] = value
    if missing := [
        name for s, name in enumerate(joint.sensitive.names) if s not in given
    ]:
        raise InputError(
            f"the shares do not name {listed(missing)}; every sensitive symbol needs its share"
        )
    total = sum(given.values(), Fraction(0))
    if abs(total - 1) > SHARE_TOLERANCE:
        raise InputError(
            f"the shares sum to {float(total):.9g} and not to 1 (within {float(SHARE_TOLERANCE):g})"
        )
    return tuple(given[s] / total for s in range(len(given)))


def _read(path: str, header: Sequence[str]) -> list[list[str]]:
    """The rows of a small CSV file that must have this header."""
    with open_source(path) as source:
        if list(source.header) != list(header):
            raise InputError(f"{path} must begin with the header {','.join(header)}")
        return [row for batch in source.batches() for row in batch.rows()]


def unseen_symbols(path: str, joint: Joint) -> int:
    """How many useful symbols a list that was made beforehand has and the table has not: a CSV file with the header.

    Raises InputError if the table has a symbol that the list has not.
    """
    symbols = [*map(tuple, _read(path, joint.useful.columns))]
    if (twice := repeated(symbols)) is not None:
        raise InputError(
            f"{path}: the symbol {quoted(', '.join(twice))} is listed twice"
        )
    if absent := [
        ", ".join(symbol) for symbol in joint.useful.symbols if symbol not in {*symbols}
    ]:
        raise InputError(
            f"{path} does not list {listed(absent)}, which the table has: confidence needs a list that was made "
            "without looking at the records"
        )
    return len(symbols) - len(joint.useful)


def read_shares(path: str) -> dict[str, str]:
    """Known shares from a CSV file with the header ``symbol,share``; their texts, for `check_shares` to judge."""
    rows = _read(path, ("symbol", "share"))
    if (twice := repeated(symbol for symbol, _ in rows)) is not None:
        raise InputError(f"{path}: the share of {quoted(twice)} is given twice")
    return {row[0]: row[1] for row in rows}


def scope_of(record: Mapping[str, Any]) -> list[str]:
    """For whom a promise with confidence holds, from what even a public channel file says of its set."""
    shares = {
        "known": "their shares as given",
        "estimated": "their shares estimated along",
    }.get(record["shares"], "whatever the shares of the sensitive symbols are")
    said = [
        "It holds for the population that the records of its table are a sample of, with "
        f"{percent_of(record['level'])} confidence ({shares}), if they are independent draws from it and the list of "
        "symbols was made without looking at them; it speaks of a fresh record of that population."
    ]
    if unseen := record.get("unseen", 0):
        said.append(
            f"It covers {unseen:,} more {'symbol' if unseen == 1 else 'symbols'} of the list, of which the table has "
            "no record, where their records are released as those of which nothing is known (--unknown marginal)."
        )
    return said


def check_counts(joint: Joint) -> None:
    """Raise InputError unless the table counts records."""
    if not joint.is_counts:
        raise InputError(
            "confidence needs counts of records: probabilities do not say how many records they come from, and "
            "weighted records are not a sample of independent ones"
        )


def confidence_set(
    joint: Joint,
    level: float = DEFAULT_LEVEL,
    *,
    shares: Mapping[Any, Any] | None = None,
    estimate_shares: bool = True,
    unseen: int = 0,
) -> ConfidenceSet:
    """The Clopper-Pearson set of a table of counts.

    The ends may fail with probability 1 - level together. Each of the |X| cells of a row and, where P(s) is estimated,
    all shares together take the same part of it; `_levels` says how it is spread over rows and cells.
    """
    check_counts(joint)
    spent = 1 - Fraction(repr(check_level(level)))
    known = None if shares is None else check_shares(shares, joint)
    if type(unseen) is not int or unseen < 0:
        raise InputError(
            f"the number of unseen symbols ({quoted(unseen)}) must be an integer of at least 0"
        )
    size, n = len(joint.counts), len(joint.counts[0]) + unseen
    estimated = known is None and estimate_shares
    for_shares = spent / (n + 1) if estimated else Fraction(0)
    totals = joint.sensitive_counts
    levels_of_rows = [
        _levels(part * (spent - for_shares), n) for part in _row_parts(totals)
    ]
    rows = [
        _ends_of(row, *own)
        for row, own in zip(joint.counts, levels_of_rows, strict=True)
    ]
    if known is not None:
        low = high = known
    elif estimated:
        ends = _ends_of(totals, *_levels(for_shares, size))
        low, high = (tuple(Fraction(end, SCALE) for end in side) for side in ends)
    else:
        low, high = (Fraction(0),) * size, (Fraction(1),) * size
    lower, upper = tuple(row[0] for row in rows), tuple(row[1] for row in rows)
    rest: tuple[int, ...] = ()
    if unseen:
        nothing = (
            _upper_end(0, total, *own)
            for total, own in zip(totals, levels_of_rows, strict=True)
        )
        rest = tuple(min(unseen * end, SCALE) for end in nothing)
    return ConfidenceSet(float(level), lower, upper, low, high, unseen, rest)


def _row_parts(totals: Sequence[int]) -> list[Fraction]:
    """Which part of the probability of failure each row takes: half equally, half in proportion to 1 / N_s.

    Rows are looked at given all N_s, so that parts may depend on these; the rows that few records tell of need more.
    """
    inverse = [Fraction(1, total) for total in totals]
    whole = sum(inverse)
    return [(Fraction(1, len(totals)) + part / whole) / 2 for part in inverse]


def _levels(spent: Fraction, n: int) -> tuple[Fraction, Fraction]:
    """Level of an end of a cell with probability p, as a + b p: on one side they sum to spent / 2 over n cells.

    Half is spread equally, half in proportion to the p of the hypothesis under test, not of the sample: a
    distribution P is rejected with probability spent at most whatever it is, because its own p sum to one.
    """
    return spent / (4 * n), spent / 4


def _upper_end(count: int, total: int, alpha: Fraction, slope: Fraction) -> int:
    return SCALE - lower_end(total - count, total, alpha + slope, -slope)


def _ends_of(
    counts: Sequence[int], alpha: Fraction, slope: Fraction
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    total, own = sum(counts), (alpha, slope)
    ends = {
        c: (lower_end(c, total, *own), _upper_end(c, total, *own)) for c in {*counts}
    }
    return tuple(ends[c][0] for c in counts), tuple(ends[c][1] for c in counts)
