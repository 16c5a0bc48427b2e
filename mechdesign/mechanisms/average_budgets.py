"""What an average leakage may be: budgets and measures as a caller gives them, and their units.

`averages_of` reads budgets, and `kept_measure` the measure whose least average is looked for:

    {"mi": 0.05}     I(S;Y) of at most 0.05 nats
    {"mi": "25%"}    at most a quarter of I(S;X), what X itself leaks (`own_leakage`)
    {"mi": None}     the least I(S;Y) of a channel that keeps a share of the information

    {"guess": "42%"} the best guess of S from a released value is right for 42 % at most
    {"gains.csv": 0.4}  it gains 0.4 at most on average, by the gains of a file
    {"gain": (G, 0.4)}  the same with an array or a mapping of gains

A budget is in the unit of its measure: nats for "mi" and "maximal-leakage", no unit for "tv" and
"chi2", the share of right guesses for "guess". The solver wants every average as a sum over the
outputs that is 0 for a constant (`in_solver_unit`): of the maximal leakage L that is e^L - 1, of
guesses the share that is right because of the release.

*Gains.* A matrix of gains comes from a file, an array or a mapping. A guess g gains G(g, s) where
the sensitive value is s. Whoever sees y makes the guess that gains most on average, so the expected
gain of a release is sum_y max_g sum_s G(g, s) P(s, y), the g-vulnerability of S after the release
(Alvim et al. 2012). The file

    guess,low,middle,high
    low,1,0.5,0
    high,0,0.5,1

has two guesses, each of which gains half for `middle`. With a gain of 1 for the right guess and of
0 for the others the expected gain is the share of right guesses.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from mechdesign.auditing.averages import (
    Gains,
    average_leakage,
    gain_without,
)
from mechdesign.auditing.measures import guess_without
from mechdesign.channel.channel import Channel
from mechdesign.channel.record import (
    AVERAGE_MEASURES,
    AverageBudget,
    AverageMeasure,
)
from mechdesign.core.arguments import non_negative, number, repeated
from mechdesign.core.balls import quotient_above
from mechdesign.core.errors import InputError, errors_naming
from mechdesign.core.files import PathLike
from mechdesign.core.integers import IntegerRows
from mechdesign.core.wording import at_most, listed, quoted
from mechdesign.formats.opening import all_rows, open_beside
from mechdesign.notions import LARGEST_BUDGET, MaxLift, check_least
from mechdesign.tables.joint import Joint
from solvers import Array

NO_PROMISE = MaxLift(LARGEST_BUDGET)
"""The notion of the rules while an average alone is searched for: no promise on single lifts, and
never emitted."""

NOTHING_TO_LIMIT = (
    "the useful column says nothing about the sensitive one: there is nothing to limit"
)


GUESSES = ("guess", "gain")
"""Measures that change where two secrets of proportional records are taken for one."""


def averages_of(asked: Any, joint: Joint) -> tuple[AverageBudget, ...]:
    """The budgets from a mapping of measures to numbers, or to texts such as ``25%``.

    Raises
    ------
    InputError
        If a measure is not known, or a budget is out of range.
    """
    if not isinstance(asked, Mapping) or not asked:
        raise InputError(
            'average must be a mapping from a measure to its budget, as in {"mi": 0.05}'
        )
    budgets: list[AverageBudget] = []
    for measure, value in asked.items():
        if measure == "gain" or is_file_of_gains(measure):
            budgets.append(_budget_of_gains(measure, value, joint))
        else:
            budgets.append(_budget_of(measure, value, joint))
    if [budget.measure for budget in budgets].count("gain") > 1:
        raise InputError("average has gains twice: leave one of them out")
    return tuple(budgets)


def kept_measure(asked: Any, joint: Joint) -> tuple[AverageMeasure, Gains]:
    """The measure whose average is to be least, from a mapping of it to None, and its gains.

    Raises
    ------
    InputError
        If it is no such mapping, or has a budget, which is what is looked for.
    """
    if not isinstance(asked, Mapping) or len(asked) != 1:
        raise InputError(
            'with keep, average must name one measure, as in average={"mi": None}'
        )
    ((measure, budget),) = asked.items()
    gains: Gains = ()
    if is_file_of_gains(measure):
        gains = read_gains(measure, joint)
        measure = "gain"
    elif measure == "gain":
        given, budget = _gains_with_budget(budget)
        gains = exact_gains(given, joint)
    _check_known(measure)
    if budget is not None:
        raise InputError(
            f"keep looks for the least average: leave the budget of {measure} out"
        )
    return measure, gains


def _check_known(measure: Any) -> None:
    """Raise InputError unless there is such a measure."""
    if measure not in AVERAGE_MEASURES:
        # Gains come from a file, and need more than their name.
        named = [name for name in AVERAGE_MEASURES if name != "gain"]
        raise InputError(
            f"the average {measure!r} is not known; use one of {', '.join(named)}, or a CSV file "
            "of gains"
        )


def _budget_of(measure: Any, value: Any, joint: Joint) -> AverageBudget:
    """One budget, in the unit of its measure or as a share of what X itself leaks."""
    _check_known(measure)
    name = f"the average {measure}"
    if measure == "guess":
        return _budget_of_guesses(value, joint)
    # Texts come from the command line, where every budget is one.
    if isinstance(value, str) and value.endswith("%"):
        budget = _share_of_own_leakage(measure, name, value, joint)
    else:
        if isinstance(value, str):
            value = _float(name, value)
        budget = number(name, value, "above 0")
    if not 0.0 < budget <= LARGEST_BUDGET:
        raise InputError(
            f"{name} ({value}) must be above 0 and at most {LARGEST_BUDGET:g}"
        )
    check_least(name, budget)
    return AverageBudget(measure=measure, budget=budget)


def _budget_of_guesses(value: Any, joint: Joint) -> AverageBudget:
    """The largest share of right guesses: a number, or a per cent of all records."""
    name = "the average guess"
    if isinstance(value, str) and value.endswith("%"):
        share = number(name, _float(name, value[:-1]), "of per cent") / 100.0
    elif isinstance(value, str):
        share = _float(name, value)
    else:
        share = number(name, value, "between 0 and 1")
    if not 0.0 < share <= 1.0:
        raise InputError(f"{name} ({value}) must be above 0 and at most 100 %")
    without = guess_without(joint)
    if share <= without:
        raise InputError(
            f"{name} ({value}) must be above {at_most(100 * float(without))} %, the share that is "
            "guessed right without any release"
        )
    return AverageBudget(measure="guess", budget=share)


def _budget_of_gains(measure: str, value: Any, joint: Joint) -> AverageBudget:
    """The largest expected gain, with the gains themselves."""
    name = f"the average {measure}"
    if measure == "gain":
        given, value = _gains_with_budget(value)
        gains = exact_gains(given, joint)
    else:
        gains = read_gains(measure, joint)
    if isinstance(value, str):
        value = _float(name, value)
    budget = number(name, value, "above 0")
    without = gain_without(joint, gains)
    if not without < budget <= LARGEST_BUDGET:
        raise InputError(
            f"{name} ({value}) must be above {at_most(float(without))}, which is gained without "
            f"any release, and at most {LARGEST_BUDGET:g}"
        )
    return AverageBudget(measure="gain", budget=budget, gains=texts_of_gains(gains))


def texts_of_gains(gains: Gains) -> tuple[tuple[str, ...], ...] | None:
    """Gains as files have them; None where there are none."""
    return tuple(tuple(str(gain) for gain in row) for row in gains) or None


def _gains_with_budget(value: Any) -> tuple[Any, Any]:
    """Both parts of the value of the measure gain."""
    if not isinstance(value, tuple) or len(value) != 2:
        raise InputError(
            "the average gain needs its gains and its budget (None with keep): "
            'average={"gain": (gains, 0.4)}'
        )
    return value


def _share_of_own_leakage(measure: str, name: str, text: str, joint: Joint) -> float:
    """The budget that a text such as ``25%`` stands for."""
    share = number(name, _float(name, text[:-1]), "of per cent") / 100.0
    if not 0.0 < share <= 1.0:
        raise InputError(f"{name} ({text}) must be above 0 and at most 100 %")
    budget = share * own_leakage(joint, measure)
    if not budget > 0.0:
        # Where X leaks nothing, every channel keeps every budget, and a share of 0 is no budget.
        raise InputError(NOTHING_TO_LIMIT)
    return budget


def _float(name: str, text: str) -> float:
    """The number that a text spells; InputError, which begins with the name, if it spells none."""
    try:
        return float(text)
    except ValueError:
        raise InputError(
            f"{name} ({text!r}) must be a number, or a per cent such as 25%"
        ) from None


def in_solver_unit(
    measure: str, leakage: float, joint: Joint, gains: Gains = ()
) -> float:
    """A leakage as `solvers.average.channels` has it: e^leakage - 1 for the maximal leakage, and
    for guesses the share that is right because of the release, or what is gained because of it.

    These are sums over the outputs that are 0 for a constant, as the other measures are.
    """
    if measure == "maximal-leakage":
        return math.expm1(leakage)
    if measure == "guess":
        # Rounded once: the difference of two doubles would lose the digits of a small one.
        return float(Fraction(leakage) - guess_without(joint))
    if measure == "gain":
        return float(Fraction(leakage) - gain_without(joint, gains))
    return leakage


def float_gains(gains: Gains) -> Array | None:
    """Gains as the solver takes them; None where there are none."""
    if not gains:
        return None
    return np.array([[float(gain) for gain in row] for row in gains])


def has_leakage(measure: str, leakage: float, joint: Joint, gains: Gains = ()) -> bool:
    """Whether the leakage, rounded up to a double, is more than that of a constant."""
    if measure == "guess":
        without = guess_without(joint)
        return leakage > quotient_above(without.numerator, without.denominator)
    if measure == "gain":
        without = gain_without(joint, gains)
        return leakage > quotient_above(without.numerator, without.denominator)
    return leakage > 0.0


def own_leakage(joint: Joint, measure: str, gains: Gains = ()) -> float:
    """What X itself leaks about S on average, which no channel exceeds (data processing)."""
    # The identity as a channel, so that the exact audit computes it like any other leakage.
    n = len(joint.useful)
    rows = IntegerRows.of_pairs([[x, 1] for x in range(n)], n)
    channel = Channel(joint.useful, joint.useful.names, rows, 1, joint)
    return average_leakage(channel, joint, measure, gains)


ENDINGS = (".csv", ".parquet")
"""Ends of names of files with gains, where a measure is asked for."""

GAIN = "the gain of the guess {} for {}"
"""Name of a cell in messages about gains."""


def is_file_of_gains(name: Any) -> bool:
    """Whether an average is named by a file of gains."""
    return isinstance(name, str) and name.endswith(ENDINGS)


def read_gains(path: PathLike, joint: Joint) -> tuple[tuple[Fraction, ...], ...]:
    """Gains from a CSV or Parquet file: guesses down the first column, sensitive symbols in the
    header.

    Raises
    ------
    InputError
        If the file cannot be read, does not have the sensitive symbols of the table, or has a gain
        that is negative or no number.
    """
    with open_beside(path) as source:
        header = list(source.header[1:])
        rows = all_rows(source)
    with errors_naming(source.name):
        twice = repeated(header)
        if twice is not None:
            raise InputError(f"the sensitive symbol {quoted(twice)} has two columns")
        gains = {row[0]: dict(zip(header, row[1:], strict=True)) for row in rows}
        return exact_gains(gains, joint)


def exact_gains(gains: Any, joint: Joint) -> tuple[tuple[Fraction, ...], ...]:
    """Gains of guesses (rows) for the sensitive symbols of a table, in its order.

    Parameters
    ----------
    gains : mapping of guess to mapping of symbol to number, or (g, |S|) array

    Raises
    ------
    InputError
        If a symbol is missing or unknown, or a gain is negative or no number.
    """
    names = joint.sensitive.names
    if isinstance(gains, Mapping):
        labels = [str(guess) for guess in gains]
        rows = [_row_of(row, names) for row in gains.values()]
    else:
        rows = np.asarray(gains, dtype=object).tolist()
        labels = [str(k) for k in range(len(rows) if isinstance(rows, list) else 0)]
    if not labels or not all(_is_row(row, len(names)) for row in rows):
        raise InputError(
            f"gains must be a row for each guess with a number for each of the {len(names)} "
            "sensitive symbols"
        )
    exact: list[tuple[Fraction, ...]] = []
    for guess, row in zip(labels, rows, strict=True):
        cells = zip(names, row, strict=True)
        exact.append(tuple(non_negative(cell, GAIN, guess, s) for s, cell in cells))
    return tuple(exact)


def _row_of(row: Mapping[str, Any], names: Sequence[str]) -> list[Any]:
    """The gains of one guess in the order of the symbols."""
    missing = [name for name in names if name not in row]
    if missing:
        raise InputError(
            f"gains have no column for the sensitive symbol {listed(missing)}"
        )
    unknown = [name for name in row if name not in names]
    if unknown:
        raise InputError(
            f"gains have a column {listed(unknown)}, which is no sensitive symbol of the table"
        )
    return [row[name] for name in names]


def _is_row(row: Any, count: int) -> bool:
    """Whether this is a list of so many cells."""
    return isinstance(row, list) and len(row) == count
