"""Bins chosen for a budget, and tables that should be released in bins or not at all.

Few bins move numbers far, as each is released as the median of its bin. Many bins are many symbols,
which a small budget must confuse, and that moves numbers too. `binned_for` therefore designs a
channel for some numbers of bins (2, 3, 4, 6, .. 64) and takes the one whose releases are nearest to
the numbers in expectation. `refuse_identifier` and `many_numbers` look at a table before any
design.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from mechdesign.core.errors import InputError
from mechdesign.core.wording import quoted
from mechdesign.mechanisms.request import DesignRequest
from mechdesign.mechanisms.result import Design
from mechdesign.release.moved_numbers import distance_text, moved
from mechdesign.tables.bin_edges import AUTO, specs_by_column
from mechdesign.tables.cell_numbers import kind_of
from mechdesign.tables.joint import Joint
from mechdesign.tables.variable import Variable

NUMBERS_OF_BINS = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
"""Numbers tried for ``auto``; beyond them the curve is flat."""

CURVE_GAP = 1e-2
"""Gap of each trial, as a share of H(X); only the channel of the best number of bins is computed to
the gap of the request."""

CURVE_SECONDS = 5.0
"""Longest search of a trial."""

FEWEST_RECORDS = 100
"""Records from which a column can be refused as an identifier."""

IDENTIFYING = 0.9
"""Ratio of symbols to records above which a column identifies the records."""

MANY_NUMBERS = 40
"""Different numbers of a column from which bins are advised."""


def binned_for(
    request: DesignRequest, design: Callable[[DesignRequest], Design]
) -> tuple[Joint, tuple[str, ...]]:
    """The table of a request in its bins, and a message about a number of bins that was chosen.

    For ``auto`` the numbers of bins in `NUMBERS_OF_BINS` are tried: for each the edges of least
    distance to the medians (dynamic programming), and a channel for the budget, designed by
    `design`. The choice is the number whose released medians are nearest to the numbers of the
    table in expectation; of equal ones the fewest bins. Half of the time limit is left for the
    search for its channel.
    """
    joint = request.joint
    specs = specs_by_column(request.bins, joint.useful.columns)
    auto: list[str] = []
    for name, spec in specs.items():
        # Edges may come as an array, which has no single answer to `==`.
        if isinstance(spec, str) and spec == AUTO:
            auto.append(name)
    fixed = {name: spec for name, spec in specs.items() if name not in auto}
    if fixed:
        joint = joint.binned(fixed)
    if not auto:
        return joint, ()
    if len(auto) > 1:
        raise InputError(
            "--bin auto is for one column; give bins for the others, or auto:N"
        )

    column = auto[0]
    curve = _distances(replace(request, joint=joint, bins=None), column, design)
    # Of equal distances the fewest bins: a smaller channel for the same.
    best = min(curve, key=lambda trial: (trial.distance, trial.bins))
    # The kind of its values (numbers, dates or times), for the units of the message.
    kind = next(bins.kind for bins in best.table.useful.bins if bins is not None)
    distances: list[str] = []
    for trial in curve:
        distances.append(f"{trial.bins} {distance_text(trial.distance, kind)}")
    tried = ", ".join(distances)
    message = (
        f"bins of {quoted(column)}: {best.bins} of them move the released medians "
        f"least at this budget, by {distance_text(best.distance, kind)} on average "
        f"({tried}; auto:N chooses another number)"
    )
    return best.table, (message,)


class Trial(NamedTuple):
    """A number of bins, the table in so many, and the mean distance of the released medians.

    The distance is in the unit of the numbers.
    """

    distance: float
    bins: int
    table: Joint


def _distances(
    request: DesignRequest, column: str, design: Callable[[DesignRequest], Design]
) -> list[Trial]:
    """A trial for each number of bins, in ascending order."""
    joint = request.joint
    part = joint.useful.columns.index(column)
    values = {symbol[part] for symbol in joint.useful.symbols} - {""}
    seconds = CURVE_SECONDS
    if request.time_limit is not None:
        # All trials together take at most half of the time.
        seconds = min(seconds, request.time_limit / (2 * len(NUMBERS_OF_BINS)))
    # A column of few values has no more bins than these.
    most = max(len(values), 2)
    numbers = sorted({min(count, most) for count in NUMBERS_OF_BINS})
    trials: list[Trial] = []
    for count in numbers:
        table = joint.binned({column: f"{AUTO}:{count}"})
        trial = replace(
            request, joint=table, gap=CURVE_GAP, time_limit=seconds, progress=None
        )
        channel = design(trial).channel
        for move in moved(channel):
            if move.column == column:
                trials.append(Trial(move.distance, count, table))
    return trials


def refuse_identifier(useful: Variable, records: int | None) -> None:
    """Raise InputError for a useful column with nearly as many symbols as records.

    `records` is None for tables without records, of weights or probabilities.
    """
    symbols = len(useful)
    if records is None or records < FEWEST_RECORDS:
        return
    if symbols <= IDENTIFYING * records:
        return
    name = quoted(",".join(useful.columns))
    raise InputError(
        f"the useful column {name} has {symbols:,} symbols in {records:,} records, so "
        "it all but identifies them and the channel would list them; group its values "
        "(--bin for numbers, dates and times), choose another column, or insist "
        "(--allow-identifier)"
    )


def many_numbers(joint: Joint) -> tuple[str, ...]:
    """The advice to use bins, where a column of many numbers is released number by number."""
    columns = joint.useful.columns
    symbols = joint.useful.symbols
    if len(columns) > 1 or any(joint.useful.bins) or len(symbols) <= MANY_NUMBERS:
        return ()
    texts = [text for (text,) in symbols if text]
    kind = kind_of(texts)
    if kind is None:
        return ()
    advice = (
        f"the column {quoted(','.join(columns))} has {len(symbols):,} different "
        f"{kind}s, each a symbol of its own: --bin releases them in bins, --objective "
        "distance moves them as little as possible"
    )
    return (advice,)
