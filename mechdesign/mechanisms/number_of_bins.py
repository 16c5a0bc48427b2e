"""The number of bins that moves the released numbers least, for ``auto``.

Few bins move numbers far, as each is released as the median of its bin. Many bins are many symbols,
which a small budget must confuse, and that moves numbers too. Between the two there is a best
number, which `binned_for` finds:

1. Bins that the request names are made first.
2. For each number of bins in `NUMBERS_OF_BINS` the edges of least distance to the medians are
   found by dynamic programming (`Joint.binned`), and a channel for the binned table is designed to
   a coarse gap (`_distances`).
3. The number whose released medians are nearest to the numbers of the table in expectation wins.

For example, 2 bins of ages may move them by 9.1 years on average, 6 bins by 7.4 and 64 bins by 8.3.
Then there are 6 bins, and the channel for them is designed again, to the gap of the request.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from mechdesign.core.errors import InputError
from mechdesign.core.wording import quoted
from mechdesign.mechanisms import combinations
from mechdesign.mechanisms.request import DesignRequest
from mechdesign.mechanisms.result import Design
from mechdesign.release.released_values import distance_text, moved
from mechdesign.tables.bin_edges import AUTO, specs_by_column
from mechdesign.tables.joint import Joint

NUMBERS_OF_BINS = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
"""Numbers tried for ``auto``; beyond them the curve is flat."""

CURVE_GAP = 1e-2
"""Gap of each trial, as a share of H(X); only the channel of the best number of bins is computed to
the gap of the request."""

CURVE_SECONDS = 5.0
"""Longest search of a trial."""


def binned_for(
    request: DesignRequest, design: Callable[[DesignRequest], Design]
) -> tuple[Joint, tuple[str, ...]]:
    """The table of a request in its bins, and a message about a number of bins that was chosen.

    `design` makes the channels of the trials. They take at most half of the time limit, so that the
    other half is left for the channel itself.
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
    combinations.check(request.shape, {"bins": "--bin auto"})
    if len(auto) > 1:
        raise InputError(
            "--bin auto is for one column; give bins for the others, or auto:N"
        )

    column = auto[0]
    if len(_values_of(joint, column)) < 2:
        # A single number has one bin, and there is nothing to choose.
        return joint.binned({column: f"{AUTO}:2"}), ()
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


def _values_of(joint: Joint, column: str) -> set[str]:
    """The different values of a useful column."""
    part = joint.useful.columns.index(column)
    # A missing value, the empty text, is a symbol beside the bins.
    return {symbol[part] for symbol in joint.useful.symbols} - {""}


def _distances(
    request: DesignRequest, column: str, design: Callable[[DesignRequest], Design]
) -> list[Trial]:
    """A trial for each number of bins, in ascending order."""
    joint = request.joint
    values = _values_of(joint, column)
    seconds = CURVE_SECONDS
    if request.time_limit is not None:
        # All trials together take at most half of the time.
        seconds = min(seconds, request.time_limit / (2 * len(NUMBERS_OF_BINS)))
    # A column of few values has no more bins than these.
    most = len(values)
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
