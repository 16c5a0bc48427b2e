"""The options of a release by quantisation, and checks of them before any work.

`QuantizeOptions` has the options as they were typed. `check_options` finds contradictions, in one
sentence each, before a file is opened. `parse_range` and `nearest_double` make numbers of texts:
the doubles nearest to them, because the guarantee is about doubles, as the values of a table are.

For example, ``--query mean --group-by town --range 0,60 --epsilon 1`` is ``QuantizeOptions(
column="kwh", query="mean", group_by=("town",), range_text="0,60", epsilon="1")``. With ``--query
count`` the range is refused: a record counts as 0 or 1.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mechdesign.core.arguments import fraction_of_text
from mechdesign.core.errors import InputError
from mechdesign.core.wording import quoted
from mechdesign.nonstochastic.mechanism_file import (
    DISCLOSED_OUTSIDE,
    DIVIDED,
    OUTSIDE,
    Outside,
)
from mechdesign.nonstochastic.noiseless import LAYOUTS
from mechdesign.nonstochastic.number_columns import NUMBER
from mechdesign.nonstochastic.queries import QUERY, IntervalDomain, interval
from mechdesign.nonstochastic.table_answers import RECORDS


@dataclass(frozen=True, kw_only=True)
class QuantizeOptions:
    """The query of a release, its range and its budget; the names are those of the command line.

    Parameters
    ----------
    column, query, group_by
        The column of numbers, a query of `QUERY`, and the columns that name the group.
    epsilon
        Bits of one answer; not used with a total budget.
    range_text
        ``lo,hi``, the smallest and largest value that a cell could have.
    domain
        All values that a cell can have, or their probabilities by value.
    equals
        The value that a count counts.
    individual
        The column that identifies individuals.
    thresholds
        "optimal" or "most", or a list; otherwise they follow from the layout.
    split
        The division of a total budget among answers.
    """

    column: str
    epsilon: object
    query: str = "identity"
    group_by: tuple[str, ...] = ()
    range_text: str | None = None
    equals: str | None = None
    individual: str | None = None
    outside: Outside = "refuse"
    layout: str = "widest"
    split: str | None = None
    domain: Sequence[float] | Mapping[float, object] | None = None
    thresholds: str | Sequence[float] | None = None
    missing: str = "refuse"


def check_options(options: QuantizeOptions) -> None:
    """Raise InputError if options are unknown or contradict each other."""
    if re.fullmatch(QUERY.pattern, options.query, re.ASCII) is None:
        raise InputError(f"query ({quoted(options.query)}) must be {QUERY.requirement}")
    _check_outside(options)
    if options.layout not in LAYOUTS:
        raise InputError(
            f"layout ({quoted(options.layout)}) must be one of {', '.join(LAYOUTS)}"
        )
    _check_split(options)
    if options.query == "identity" and options.group_by:
        raise InputError(
            "--group-by needs a --query of groups (mean, sum, count, median ..): the identity "
            "releases record by record"
        )
    # A count has its own domain, {0, 1}.
    counts = options.query == "count"
    if counts and options.domain is not None:
        raise InputError("--domain is not for --query count: a record counts as 0 or 1")
    if options.equals is not None and not counts:
        raise InputError(f"--equals is for --query count, not for {options.query}")
    if counts and options.range_text is not None:
        raise InputError("--range is not for --query count: a record counts as 0 or 1")
    _check_columns(options)


def _check_outside(options: QuantizeOptions) -> None:
    """Raise InputError if values outside the range cannot be treated so."""
    outside = options.outside
    if outside not in OUTSIDE:
        raise InputError(
            f"outside ({quoted(outside)}) must be one of {', '.join(OUTSIDE)}"
        )
    if options.query == "count" and outside in DISCLOSED_OUTSIDE:
        raise InputError(
            f"a record counts as 0 or 1: there is nothing outside to {outside}"
        )


def _check_split(options: QuantizeOptions) -> None:
    """Raise InputError if a total budget cannot be divided so."""
    split = options.split
    if split not in (None, "levels", *DIVIDED):
        raise InputError(
            f"split ({quoted(split)}) must be one of levels, {', '.join(DIVIDED)}"
        )
    if split not in DIVIDED:
        return
    # The errors that are weighed are those of the widest layout (`dividing.worst_errors`).
    if options.layout != "widest" or options.thresholds is not None:
        raise InputError(
            f"--split {split} weighs the errors of --layout widest: leave out --thresholds and "
            "other layouts"
        )
    if options.outside == "drop":
        raise InputError(
            f"--split {split} goes by the sizes of groups, which would depend on values: "
            "--outside drop is not for it"
        )


def _check_columns(options: QuantizeOptions) -> None:
    """Raise InputError if a column has two roles, or the name of a column of the output."""
    # The column of numbers would be disclosed whole as the name of a group.
    other_columns = list(options.group_by)
    if options.individual:
        other_columns.append(options.individual)
    if options.column in other_columns:
        raise InputError(
            f"the column {quoted(options.column)} cannot be released and be a group or "
            "individual too"
        )
    if options.query == "identity":
        return
    output_columns = (RECORDS, f"{options.query.replace(':', '_')}_{options.column}")
    clash = [name for name in options.group_by if name in output_columns]
    if clash:
        raise InputError(
            f"the group column {', '.join(map(quoted, clash))} has the name of a column of the "
            "output; rename it"
        )


def parse_range(text: str | None, query: str) -> IntervalDomain:
    """``lo,hi`` as the doubles nearest to what was typed.

    Values of a table are read as doubles, so both have the same rounding.
    """
    if text is None:
        raise InputError(
            f"the sensitivity of {query} cannot be bounded: --range lo,hi is missing, the "
            "smallest and largest value that anybody's cell could have (not those of this file, "
            "which would disclose them)"
        )
    parts = text.split(",")
    if len(parts) != 2:
        raise InputError(f"--range {quoted(text)} must be two numbers, lo,hi")
    ends: list[float] = []
    for part in parts:
        if not re.fullmatch(NUMBER, part, re.ASCII) or not math.isfinite(float(part)):
            raise InputError(
                f"--range {quoted(text)}: {quoted(part)} is not a finite number"
            )
        ends.append(float(part))
    if ends[0] > ends[1]:
        raise InputError(
            f"--range {quoted(text)} is reversed; give lo,hi with lo <= hi"
        )
    # Errors, which are doubles, can be as large as the range.
    if not math.isfinite(ends[1] - ends[0]):
        raise InputError(
            f"--range {quoted(text)} is wider than any double; use a larger unit"
        )
    return interval(ends[0], ends[1])


def nearest_double(epsilon: object) -> object:
    """The nearest double of a budget that was typed; anything but text stays as it is."""
    if not isinstance(epsilon, str):
        return epsilon
    try:
        return float(fraction_of_text(epsilon))
    except (InputError, OverflowError):
        raise InputError(
            f"epsilon ({quoted(epsilon)}) must be a number of bits, 0 or more"
        ) from None
