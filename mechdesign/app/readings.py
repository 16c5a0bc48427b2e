"""What an analyst reads before and after, as pictures: a pair of bars for each value of a column.

`readings` compares the shares of values in the table with those in a release. `expected_readings`
takes the probabilities of the channel for the latter, and `released_readings` counts the released
file: ::

    job        furthest apart by 0.3 points
    clerk      60.0 % -> 60.1 %      two bars, one above the other
    nurse      40.0 % -> 39.9 %

The columns come first, in their order. Then come the pairs of columns that differ most, whose
values are combinations such as "clerk, north". Numbers in bins are compared in their bins.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.app.results import Reading, ShareBar
from mechdesign.auditing.law import Cells, cells_of_labels

if TYPE_CHECKING:
    from mechdesign.channel.channel import Channel
    from mechdesign.tables.joint import Joint

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

MOST_BARS = 8
"""Values of a column or pair that are drawn: those whose shares differ most, or are largest."""

MOST_PAIRS = 3
"""Pairs of columns that are drawn."""

PAIRED_COLUMNS = 60
"""Columns of which pairs are compared, as many as fit: their number grows with the square."""

SMALLEST_SHOWN = 5e-4
"""A share that rounds to less than 0.1 % of the records."""


ROUNDING = 1e-9
"""Distances up to this are rounding errors of sums of shares."""


@dataclass(frozen=True)
class _Shares:
    """Shares of the same codes in the table and in the release."""

    before: Floats
    after: Floats

    @property
    def distance(self) -> float:
        """The total variation: the share of the records that would have to change."""
        distance = float(np.abs(self.before - self.after).sum() / 2)
        return distance if distance > ROUNDING else 0.0


@dataclass(frozen=True)
class _Rows:
    """Rows as codes into the texts of each column, with their weights."""

    codes: list[Codes]
    weights: Floats


def expected_readings(channel: Channel, joint: Joint) -> tuple[Reading, ...]:
    """What is expected of a release of the channel's table; nothing where labels are released."""
    rows = _cells_of_outputs(channel, joint)
    # The symbols of people are sequences, whose places are no columns of the table.
    if rows is None or joint.useful.people is not None:
        return ()
    cells = zip(*rows, strict=True)
    return _compared(channel, joint, cells, channel.output_masses)


def released_readings(
    channel: Channel, joint: Joint, frame: Any
) -> tuple[Reading, ...]:
    """What is read in a released frame; nothing where labels are released."""
    if _cells_of_outputs(channel, joint) is None:
        return ()
    # One column at a time: the texts of all of them take much memory.
    cells = (frame.column(name).to_pylist() for name in channel.output_columns)
    return _compared(channel, joint, cells, np.ones(frame.num_rows))


def _cells_of_outputs(channel: Channel, joint: Joint) -> Sequence[Cells] | None:
    """What is written for each output, as cells of the useful columns; None of other labels."""
    if channel.releases_symbols:
        return channel.output_cells
    if channel.published is not None or len(joint.useful.columns) > 1:
        return None
    return cells_of_labels(channel.outputs, joint.useful)


def _compared(
    channel: Channel, joint: Joint, cells: Iterable[Sequence[Any]], weights: Floats
) -> tuple[Reading, ...]:
    """The table of a channel beside rows that are released, column by column."""
    before: list[Codes] = []
    after: list[Codes] = []
    texts: list[list[str]] = []
    coded = joint.useful.coded
    for k, new in enumerate(cells):
        places = {text: place for place, text in enumerate(coded.texts[k])}
        before.append(coded.codes[:, k])
        after.append(_coded(new, places))
        texts.append(list(places))
    counts = np.array(joint.useful_counts, dtype=np.float64)
    return readings(
        channel.useful.columns, texts, _Rows(before, counts), _Rows(after, weights)
    )


def _coded(cells: Sequence[Any], places: dict[str, int]) -> Codes:
    """Codes of texts; `places` learns the new ones."""
    codes = [places.setdefault(str(cell), len(places)) for cell in cells]
    return np.array(codes, dtype=np.int64)


def readings(
    columns: Sequence[str], texts: Sequence[Sequence[str]], before: _Rows, after: _Rows
) -> tuple[Reading, ...]:
    """A picture of every column and of the pairs that differ most.

    Parameters
    ----------
    columns : sequence of str
    texts : sequence of sequences of str
        The values of each column.
    before, after : _Rows
        Codes into `texts`.
    """
    pictures: list[Reading] = []
    for k, name in enumerate(columns):
        shares = _shares(before.codes[k], after.codes[k], len(texts[k]), before, after)
        pictures.append(_picture((name,), texts[k], shares))
    worst: list[tuple[float, int, int]] = []
    for one, other in itertools.combinations(range(len(columns))[:PAIRED_COLUMNS], 2):
        shares, _ = _pair_shares(one, other, texts, before, after)
        worst.append((shares.distance, one, other))
    worst.sort(key=lambda entry: -entry[0])
    for _, one, other in worst[:MOST_PAIRS]:
        shares, used = _pair_shares(one, other, texts, before, after)
        size = len(texts[other])
        names: list[str] = []
        for code in used.tolist():
            names.append(f"{texts[one][code // size]}, {texts[other][code % size]}")
        pictures.append(_picture((columns[one], columns[other]), names, shares))
    return tuple(pictures)


def _pair_shares(
    one: int,
    other: int,
    texts: Sequence[Sequence[str]],
    before: _Rows,
    after: _Rows,
) -> tuple[_Shares, Codes]:
    """The shares of the combinations of two columns that occur, and their codes."""
    size = len(texts[other])
    left = before.codes[one] * size + before.codes[other]
    right = after.codes[one] * size + after.codes[other]
    # Of two columns of many values few combinations occur.
    used, places = np.unique(np.concatenate([left, right]), return_inverse=True)
    places = places.reshape(-1)
    shares = _shares(places[: len(left)], places[len(left) :], len(used), before, after)
    return shares, used


def _shares(
    left: Codes, right: Codes, size: int, before: _Rows, after: _Rows
) -> _Shares:
    """The shares of codes below `size` in both."""
    first = np.bincount(left, before.weights, size)
    second = np.bincount(right, after.weights, size)
    return _Shares(first / first.sum(), second / second.sum())


def _picture(
    columns: tuple[str, ...], texts: Sequence[str], shares: _Shares
) -> Reading:
    """The values whose shares differ most; where none does, the most frequent."""
    from mechdesign.report import wording as w

    change = np.abs(shares.before - shares.after)
    # A change that is not seen in the digits shown is none.
    change[change < SMALLEST_SHOWN] = 0.0
    order = np.lexsort((-shares.before, -change))[:MOST_BARS]
    longest = max(float(shares.before[order].max()), float(shares.after[order].max()))
    bars: list[ShareBar] = []
    for place in map(int, order):
        old, new = float(shares.before[place]), float(shares.after[place])
        bars.append(
            ShareBar(
                label=w.label(texts[place]),
                before=w.percent(old),
                after=w.percent(new),
                before_width=100.0 * old / longest,
                after_width=100.0 * new / longest,
            )
        )
    return Reading(
        columns=columns,
        distance=w.percent(min(1.0, shares.distance)),
        bars=tuple(bars),
        others=len(texts) - len(bars),
    )
