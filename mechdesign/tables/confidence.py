"""Confidence intervals for the population behind a table of counts, as exact rationals.

Given how many records N_s a sensitive symbol s has, its row of the table is multinomial(N_s,
P(.|s)), so each cell is binomial. Clopper and Pearson (1934) bound P(x|s) whatever it is: an end is
the p at which a binomial tail equals the share of 1 - level that the cell may spend. By
Bonferroni's inequality over all ends, all bounds are true at once with probability `level` or more.
The shares P(s) are bounded alike, or known, or not needed. Rows of few records and cells of large
probability spend more of 1 - level than others, by rules fixed before the sample.

Ends are exact multiples of 2**-60 (`core.balls`), so an audit can recompute them.

For example, a table of 2 sensitive and 3 useful symbols at the level 0.95 has 0.05 to spend: 1/4 of
it on the shares P(s), as one of 3 + 1 parts, and 3/4 on the two rows, half of that equally and half
by 1 / N_s (`_row_parts`). What a row has, its 2 * 3 ends share (`_Level`).

`confidence_set` computes the set of a table, and `set_of_record` that of a channel file, which must
equal it. The rest checks what users give: the level, known shares, the kind of the table.

*Files* of known shares and of symbols are small CSV files. A list has the header of its columns and
a symbol a line; shares have the header ``symbol,share``:

    education         symbol,share
    Bachelors         Husband,0.4
    Masters           Wife,0.6
    Doctorate

A list must be made without looking at the records, because intervals hold for a set of symbols that
was fixed before the sample; so a list that lacks a symbol of the table is refused. Useful symbols
may be on the list and not in the table, and `unseen_symbols` counts them. Of a sensitive value
without records nothing is known, so `check_secrets` refuses it.
"""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

from mechdesign.core.arguments import fraction_of, repeated
from mechdesign.core.balls import SCALE, RowOfCounts, ends_of_rows, lower_end
from mechdesign.core.errors import FileError, InputError, require_type
from mechdesign.core.wording import listed, percent_of, quoted
from mechdesign.formats.opening import all_rows, open_beside, open_source
from mechdesign.tables.joint import Joint
from mechdesign.tables.records import Records
from mechdesign.tables.uncovered_values import uncovered_sentence
from mechdesign.tables.variable import Symbol, Variable

LEAST_LEVEL = 0.5
"""With less confidence a promise would fail for most samples."""

DEFAULT_LEVEL = 0.95
"""The level of the population's promise of a channel that was designed without one."""

SHARE_TOLERANCE = Fraction(1, 10**6)
"""Known shares may miss a sum of 1 by this much, as printed ones are rounded.

They are normalised.
"""

METHOD = "clopper-pearson"


@dataclass(frozen=True)
class ConfidenceSet:
    """All populations that the counts do not contradict.

    Attributes
    ----------
    level : float
        The probability that the set contains the population, before the sample is drawn.
    lower, upper : |S| tuples of |X| integers
        The ends of P(x|s), in units of 1 / `SCALE`.
    share_lower, share_upper : tuple of Fraction
        The ends of P(s).
    unseen : int
        The number of useful symbols of which the table has no record.
    rest : tuple of int
        For each s the upper end of the probability of all unseen symbols together, in units of
        1 / `SCALE`; empty if there are none.
    """

    level: float
    lower: tuple[tuple[int, ...], ...]
    upper: tuple[tuple[int, ...], ...]
    share_lower: tuple[Fraction, ...]
    share_upper: tuple[Fraction, ...]
    unseen: int = 0
    rest: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for lower, upper in zip(self.lower, self.upper, strict=True):
            for low, high in zip(lower, upper, strict=True):
                if not 0 <= low <= high <= SCALE:
                    raise InputError(
                        "an interval of the confidence set has no place in [0, 1]"
                    )
            # Some distribution must lie between the ends, or the set would promise everything.
            if not sum(lower) <= SCALE <= sum(upper):
                raise InputError(
                    "the intervals of a sensitive symbol hold no distribution at all"
                )
        if not sum(self.share_lower) <= 1 <= sum(self.share_upper):
            raise InputError("the intervals of the shares hold no distribution at all")

    @property
    def shares_are_known(self) -> bool:
        """Whether P(s) was given, and not estimated or left open."""
        return self.share_lower == self.share_upper

    @property
    def _shares_are_free(self) -> bool:
        """Whether P(s) was left open."""
        return set(self.share_lower) == {0} and set(self.share_upper) == {1}

    def to_record(self) -> dict[str, Any]:
        """The set as the channel file writes it; ends are texts "p/q"."""
        return self.stated | {"intervals": self._intervals}

    @cached_property
    def _intervals(self) -> dict[str, Any]:
        """The ends as texts, which are made once for all channels of a search."""
        cells: list[list[list[str]]] = []
        for lower, upper in zip(self.lower, self.upper, strict=True):
            row: list[list[str]] = []
            for low, high in zip(lower, upper, strict=True):
                row.append([_as_fraction(low), _as_fraction(high)])
            cells.append(row)
        shares: list[list[str]] = []
        for low, high in zip(self.share_lower, self.share_upper, strict=True):
            shares.append([str(low), str(high)])
        return {"cells": cells, "shares": shares}

    @property
    def stated(self) -> dict[str, Any]:
        """The public part of the set: everything but the intervals."""
        if self.shares_are_known:
            shares = "known"
        elif self._shares_are_free:
            shares = "free"
        else:
            shares = "estimated"
        return {
            "level": self.level,
            "set": METHOD,
            "shares": shares,
            "unseen": self.unseen,
        }


def _as_fraction(end: int) -> str:
    """An end in units of 1 / `SCALE`, which is a power of two, as the text of `Fraction`."""
    if not end:
        return "0"
    shared = min(end & -end, SCALE)
    numerator = end // shared
    if shared == SCALE:
        return str(numerator)
    return f"{numerator}/{SCALE // shared}"


@dataclass(frozen=True)
class _Level:
    """The probability with which an end may be false, ``constant + slope p`` for a cell of
    probability p.
    """

    constant: Fraction
    slope: Fraction

    @classmethod
    def of_row(cls, spent: Fraction, n: int) -> _Level:
        """The level of each of the 2 n ends of a distribution on n symbols, which spend `spent`.

        Half is spread equally, half in proportion to p, where p is that of the hypothesis under
        test and not of the sample. Over the n cells these levels sum to spent / 2 on either side,
        because the p of a distribution sum to one: a true distribution is rejected with
        probability `spent` at most.
        """
        return cls(spent / (4 * n), spent / 4)

    def upper_end(self, count: int, total: int) -> int:
        """The lower end for the complement 1 - p, whose level falls with it."""
        # With q = 1 - p the level constant + slope p is (constant + slope) - slope q.
        constant = self.constant + self.slope
        return SCALE - lower_end(total - count, total, constant, -self.slope)

    def rows_of(self, different: tuple[int, ...], total: int) -> list[RowOfCounts]:
        """What the lower ends of the different counts of a row come from, and the upper ones."""
        others = tuple(total - count for count in different)
        # As of `upper_end`.
        falling = self.constant + self.slope
        return [
            RowOfCounts(different, total, self.constant, self.slope),
            RowOfCounts(others, total, falling, -self.slope),
        ]


def _ends(
    rows: Sequence[Sequence[int]], levels: Sequence[_Level]
) -> tuple[tuple[tuple[int, ...], ...], tuple[tuple[int, ...], ...]]:
    """Lower and upper ends for all counts of some rows, each with its level."""
    # Tables have many equal counts, and an end takes part of a millisecond.
    different = [tuple(sorted(set(row))) for row in rows]
    asked: list[RowOfCounts] = []
    for counts, row, level in zip(different, rows, levels, strict=True):
        asked += level.rows_of(counts, sum(row))
    found = iter(ends_of_rows(asked))
    lower: list[tuple[int, ...]] = []
    upper: list[tuple[int, ...]] = []
    for counts, row in zip(different, rows, strict=True):
        lower_of = dict(zip(counts, next(found), strict=True))
        falling = dict(zip(counts, next(found), strict=True))
        lower.append(tuple(lower_of[count] for count in row))
        upper.append(tuple(SCALE - falling[count] for count in row))
    return tuple(lower), tuple(upper)


def confidence_set(
    joint: Joint,
    level: float = DEFAULT_LEVEL,
    *,
    shares: Mapping[Any, Any] | None = None,
    estimate_shares: bool = True,
    unseen: int = 0,
) -> ConfidenceSet:
    """The Clopper-Pearson set of a table of counts.

    All ends together fail with probability 1 - level at most. Each of the |X| cells of a row and,
    where P(s) is estimated, all shares together take the same part of it. `_row_parts` and `_Level`
    spread it over rows and cells.

    Parameters
    ----------
    joint : Joint
        The table.
    level : float
        The confidence level, from 0.5 to below 1.
    shares : mapping, optional
        Known P(s).
    estimate_shares : bool
        Whether unknown P(s) are bounded; otherwise they are left open.
    unseen : int
        The number of useful symbols of which the table has no record.
    """
    check_counts(joint)
    # The level as it is written: 0.95 is 19/20, and not the double next to it.
    spent = 1 - Fraction(repr(check_level(level)))
    known_shares = None
    if shares is not None:
        known_shares = check_shares(shares, joint)
    _check_unseen(unseen)
    return _set_of_counts(
        joint.counts, float(level), spent, known_shares, estimate_shares, unseen
    )


@lru_cache(maxsize=1)
def _set_of_counts(
    counts: tuple[tuple[int, ...], ...],
    level: float,
    spent: Fraction,
    known_shares: tuple[Fraction, ...] | None,
    estimate_shares: bool,
    unseen: int,
) -> ConfidenceSet:
    """The set of counts at a level, of which `spent` is what is left to 1.

    The last one is kept: a search for a budget asks for the same set at every budget.
    """
    n = len(counts[0]) + unseen
    # Where P(s) is estimated, its intervals take as much of the error as one cell of a row does.
    for_shares = Fraction(0)
    if known_shares is None and estimate_shares:
        for_shares = spent / (n + 1)
    totals = tuple(sum(row) for row in counts)
    row_levels: list[_Level] = []
    for part in _row_parts(totals):
        row_levels.append(_Level.of_row(part * (spent - for_shares), n))
    # A union bound over rows: given the row sums, each row is a sample of P(.|s), whatever P(s) is.
    lower, upper = _ends(counts, row_levels)
    share_lower, share_upper = _share_ends(totals, known_shares, for_shares)
    return ConfidenceSet(
        level=level,
        lower=lower,
        upper=upper,
        share_lower=share_lower,
        share_upper=share_upper,
        unseen=unseen,
        rest=_rest_ends(totals, row_levels, unseen),
    )


END_TIME = 1e-4
"""Seconds of an end: 0.05 to 0.1 ms, more where there are more records."""


def seconds_of_set(joint: Joint) -> float:
    """About the processor time of `confidence_set`, which cannot be stopped."""
    different = sum(len(set(row)) for row in joint.counts)
    return 2.0 * END_TIME * different


def _check_unseen(unseen: object) -> None:
    """Refuse a number of unseen symbols that is no integer or negative."""
    if type(unseen) is not int or unseen < 0:
        raise InputError(
            f"the number of unseen symbols ({quoted(unseen)}) must be an integer of at "
            "least 0"
        )


def _row_parts(totals: Sequence[int]) -> list[Fraction]:
    """The part of the probability of failure that each row spends.

    Half is spread equally, half in proportion to 1 / N_s: rows of few records need more. The parts
    may depend on N_s, because every row is considered given all N_s.
    """
    inverses = [Fraction(1, total) for total in totals]
    whole = sum(inverses)
    equal = Fraction(1, len(totals))
    return [(equal + inverse / whole) / 2 for inverse in inverses]


def _share_ends(
    totals: Sequence[int], known: tuple[Fraction, ...] | None, error: Fraction
) -> tuple[tuple[Fraction, ...], tuple[Fraction, ...]]:
    """Lower and upper ends of every P(s): known, estimated at this error, or open where it is 0."""
    if known is not None:
        return known, known
    size = len(totals)
    if not error:
        return (Fraction(0),) * size, (Fraction(1),) * size
    (low,), (high,) = _ends([totals], [_Level.of_row(error, size)])
    # The ends are integers over SCALE, rounded outwards, so the fractions enclose the exact ends.
    lower = [Fraction(end, SCALE) for end in low]
    upper = [Fraction(end, SCALE) for end in high]
    return tuple(lower), tuple(upper)


def _rest_ends(
    totals: Sequence[int], row_levels: Sequence[_Level], unseen: int
) -> tuple[int, ...]:
    """Upper ends of the mass of all unseen symbols in each row; empty if there is none."""
    if not unseen:
        return ()
    rest: list[int] = []
    for total, row_level in zip(totals, row_levels, strict=True):
        # A symbol without a record has the count 0 in every row, and the upper end of that count.
        # All of them together have at most the sum, because all their ends are true at once.
        one_symbol = row_level.upper_end(0, total)
        rest.append(min(unseen * one_symbol, SCALE))
    return tuple(rest)


def set_of_record(record: Mapping[str, Any], joint: Joint) -> ConfidenceSet:
    """The set of a channel file, recomputed from the counts.

    Only level, unseen symbols and known shares are taken from the file. Every interval is
    recomputed, and must equal the one in the file.

    Raises
    ------
    InputError
        If the record is not of this form, or its intervals are others.
    """
    try:
        level = record["level"]
        kind = record["shares"]
        unseen = record["unseen"]
        shares: dict[Any, Fraction] | None = None
        if kind == "known":
            texts = [pair[0] for pair in record["intervals"]["shares"]]
            symbols = joint.sensitive.symbols
            shares = dict(zip(symbols, map(Fraction, texts), strict=True))
        # Another method has other intervals, which would look like a changed file.
        if record["set"] != METHOD or kind not in ("known", "free", "estimated"):
            raise ValueError
    except (KeyError, TypeError, ValueError, IndexError, ZeroDivisionError):
        raise InputError(
            "the confidence set of the file is not readable; design the channel again"
        ) from None
    recomputed = confidence_set(
        joint, level, shares=shares, estimate_shares=kind == "estimated", unseen=unseen
    )
    # Exactly equal: ends are the same integers on every machine (`core.balls`).
    if recomputed.to_record()["intervals"] != record.get("intervals"):
        raise InputError(
            "the intervals in the channel file are not those of its counts: the file was changed, "
            "or made from another table"
        )
    return recomputed


def check_level(level: Any) -> float:
    """The confidence level as a float."""
    # A truth value is a number to Python.
    if (
        isinstance(level, bool)
        or not isinstance(level, numbers.Real)
        or not LEAST_LEVEL <= float(level) < 1
    ):
        raise InputError(
            f"the confidence level ({quoted(level)}) must be a number from {LEAST_LEVEL} up to, "
            "but not including, 1"
        )
    return float(level)


def check_counts(joint: Joint | Records) -> None:
    """Refuse a table that does not count records."""
    if not joint.is_counts:
        raise InputError(
            "--confidence needs counts of records: probabilities do not say how many records they "
            "come from, and weighted records are not a sample of independent ones"
        )


def check_shares(shares: Mapping[Any, Any], joint: Joint) -> tuple[Fraction, ...]:
    """Known P(s) in the order of the table, exactly.

    Parameters
    ----------
    shares : mapping
        The share of every sensitive symbol, by its name or symbol. Floats count as the shortest
        decimals that name them.
    joint : Joint
        The table.
    """
    require_type(
        "known_shares",
        shares,
        Mapping,
        "; write one, as in {'Husband': '0.4', 'Wife': '0.6'}",
    )
    # A symbol may be named by its text, or as the tuple of its parts.
    position_of: dict[Any, int] = {}
    for s, name in enumerate(joint.sensitive.names):
        position_of[name] = s
        position_of[joint.sensitive.symbols[s]] = s
    unknown = [str(symbol) for symbol in shares if symbol not in position_of]
    if unknown:
        raise unprotected(unknown)
    exact: dict[int, Fraction] = {}
    for symbol, share in shares.items():
        s = position_of[symbol]
        if s in exact:
            raise InputError(f"the share of {quoted(symbol)} is given twice")
        exact[s] = _exact_share(symbol, share)
    missing = [name for s, name in enumerate(joint.sensitive.names) if s not in exact]
    if missing:
        raise InputError(
            f"the shares do not name {listed(missing)}; every sensitive symbol needs its share"
        )
    # Printed shares are rounded, so they are normalised if they nearly sum to 1.
    total = sum(exact.values(), Fraction(0))
    if abs(total - 1) > SHARE_TOLERANCE:
        raise InputError(
            f"the shares sum to {float(total):.9g} and not to 1 (within {float(SHARE_TOLERANCE):g})"
        )
    return tuple(exact[s] / total for s in range(len(exact)))


def _exact_share(symbol: Any, share: Any) -> Fraction:
    """The share of a symbol as a fraction; InputError unless it is above 0 and at most 1."""
    try:
        # A float counts as it is written: 0.4 is 2/5, and not the double next to it. Of a NumPy
        # float `repr` has the name of its type, too.
        value = fraction_of(repr(float(share)) if isinstance(share, float) else share)
    except InputError as error:
        raise InputError(
            f"the share of {quoted(symbol)} is not usable: {error}"
        ) from None
    if not 0 < value <= 1:
        raise InputError(
            f"the share of {quoted(symbol)} ({quoted(share)}) must be above 0 and at most 1"
        )
    return value


def unprotected(names: Sequence[str]) -> InputError:
    """The error for listed sensitive values that have no record."""
    return InputError(
        f"the list of sensitive values names {listed(names)}, which the table has no records of: "
        "nothing is known of such a value, so that confidence cannot protect it; join it with a "
        "value that has records, or take it off the list, and the promise does not cover it"
    )


def scope_of(record: Mapping[str, Any], records: int | None = None) -> list[str]:
    """The population for which a promise with confidence holds, in sentences.

    `record` is what even a public channel file contains of its set (`ConfidenceSet.stated`);
    `records` is the number of records, which only insiders may read.
    """
    shares = "whatever the shares of the sensitive symbols are"
    if record["shares"] == "known":
        shares = "their shares as given"
    elif record["shares"] == "estimated":
        shares = "their shares estimated along"
    sentences = [
        "It holds for the population that the records of its table are a sample of, with "
        f"{percent_of(record['level'])} confidence ({shares}). It assumes independent records and "
        "a list of symbols that was made without looking at them. It applies to a new record."
    ]
    unseen = record.get("unseen", 0)
    if unseen:
        symbols = "symbol" if unseen == 1 else "symbols"
        sentences.append(
            f"It covers {unseen:,} more {symbols} of the list, of which the table has no record, "
            "where their records are released as those of which nothing is known "
            "(--unknown marginal)."
        )
    sentences.append(uncovered_sentence(record["level"], records))
    return sentences


# -------------------------------------------------------------------------------- files


def unseen_symbols(path: str, joint: Joint) -> int:
    """How many useful symbols a list has that the table has not.

    Parameters
    ----------
    path : str
        The list, a CSV file with the useful columns, made without looking at the records.
    joint : Joint
        The table.

    Raises
    ------
    InputError
        If the list repeats a symbol, or lacks one of the table.
    """
    symbols = list(map(tuple, _rows(path, joint.useful.columns)))
    twice = repeated(symbols)
    if twice is not None:
        raise FileError(
            path, f"{path}: the symbol {quoted(', '.join(twice))} is listed twice"
        )
    _require_listed(path, symbols, joint.useful)
    # No symbol is listed twice and all of the table are listed, so the others are the difference.
    listed_only = len(symbols) - len(joint.useful)
    # A column of zeros names a symbol without records, too, which the file need not have.
    names = set(map(", ".join, symbols))
    table_only = set(joint.empty_useful) - names
    return listed_only + len(table_only)


def check_secrets(path: str, joint: Joint) -> None:
    """Compare a list of all sensitive values with the table.

    Parameters
    ----------
    path : str
        The list, a CSV file with the sensitive columns, made without looking at the records.
    joint : Joint
        The table.

    Raises
    ------
    InputError
        If the list lacks a value of the table, or names a value of which the table has no record.
    """
    symbols = list(map(tuple, _rows(path, joint.sensitive.columns)))
    _require_listed(path, symbols, joint.sensitive)
    without_records: list[str] = []
    for symbol in symbols:
        if symbol not in joint.sensitive.index:
            without_records.append(", ".join(symbol))
    if without_records:
        raise FileError(path, f"{path}: {unprotected(without_records)}")


def read_shares(path: str) -> dict[str, str]:
    """Known shares by symbol, as the texts that `confidence.check_shares` checks.

    The file is a CSV with the header ``symbol,share``.
    """
    rows = _rows(path, ("symbol", "share"))
    twice = repeated(symbol for symbol, _ in rows)
    if twice is not None:
        raise FileError(path, f"{path}: the share of {quoted(twice)} is given twice")
    return dict(rows)


def _rows(path: str, header: Sequence[str]) -> list[list[str]]:
    """The rows of a file that must have this header."""
    # A list of one column has no delimiter, and a name may hold any.
    opened = open_source(path) if len(header) == 1 else open_beside(path)
    with opened as source:
        if list(source.header) != list(header):
            raise FileError(
                path, f"{path} must begin with the header {','.join(header)}"
            )
        return all_rows(source)


def _require_listed(path: str, symbols: Sequence[Symbol], variable: Variable) -> None:
    """Refuse a list that lacks a symbol of the table."""
    on_list = set(symbols)
    absent: list[str] = []
    for symbol in variable.symbols:
        if symbol not in on_list:
            absent.append(", ".join(symbol))
    if absent:
        raise FileError(
            path,
            f"{path} does not list {listed(absent)}, which the table has: confidence needs a list "
            "that was made without looking at the records",
        )
