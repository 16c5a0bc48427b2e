"""From a float design to a channel of integers that is verified exactly, or to a refusal.

`round_channel` works in these steps:

1. `float_design.read_design` makes of the solver's weights and posteriors a channel W(y|x) in
   floating point.
2. Its rows become integers over 2^53 by largest remainders (`_largest_remainders`). For example,
   over 10 in the place of 2^53 the row (.26, .37, .37) is rounded down to 2, 3, 3; the missing 2 go
   to the largest remainders .7 and .7, so the integers are 2, 4, 4.
3. The exact audit decides. Where it fails, outputs that fail because of errors or the rounding are
   repaired one by one: a failing output y gets a tiny weight a_y on every row,

       W'(y|x) = (1 - t) W(y|x) + a_y,    t = sum of the a_y,

   which moves its posterior towards P_X, hence its lifts towards 1, and leaves the posteriors of
   the others where they are. A notion that is convex in the posterior stays satisfied where it was.
   Then steps 2 and 3 are repeated, with larger weights, until the audit passes or t is too large.

`partition_channel` is for channels that publish the set of a symbol: these are integers as they
are, and only audited.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mechdesign.auditing.verdict import Audit
from mechdesign.channel.channel import DENOMINATOR, Channel
from mechdesign.channel.output_cells import output_labels
from mechdesign.core.integers import IntegerRows
from mechdesign.core.wording import quoted
from mechdesign.mechanisms.float_design import (
    FloatDesign,
    RoundingFailure,
    read_design,
)
from mechdesign.tables.joint import Joint
from solvers import Array

UNIT = 1.0 / DENOMINATOR
"""Rounding moves an entry of W by less than this."""

LARGEST_MIXING = 2e-9
"""Largest t, in units of H(X) up to one nat: mixing t loses about t log(1/t), so less than 1e-7 of
H(X)."""

MOST_MIXED = 20_000_000
"""Entries that mixing may add, one for each symbol and failing output; beyond it another design is
cheaper."""

MOST_REPAIRS = 6
"""Rounds of repair: the first adds the weights that are missing, each further one ten times
more."""


class Judge(Protocol):
    """The exact verdict on channels of a table, as rounding needs it; `rules.Rules` is one."""

    @property
    def joint(self) -> Joint:
        """The table."""
        ...

    def verdict(self, channel: Channel) -> Audit:
        """The exact audit."""
        ...

    def failing(self, channel: Channel) -> tuple[int, ...]:
        """Outputs that violate the notion, decided exactly."""
        ...

    def needed(self, rows: IntegerRows, failing: tuple[int, ...]) -> Array:
        """A weight for each failing output that brings its lifts inside, in spite of rounding."""
        ...


@dataclass(frozen=True)
class Rounded:
    """A channel with its exact verdict, and the changes that rounding made to the design.

    The verdict is yes, except for a partition with ``must_satisfy=False``. `mixing` is t of the
    module's text (0 without repairs), `merged` the number of outputs that were merged into another
    one because they had the same posterior or hardly any mass.
    """

    channel: Channel
    audit: Audit
    mixing: float = 0.0
    merged: int = 0


def round_channel(
    weights: Any,
    posteriors: Any,
    rules: Judge,
    *,
    largest_mixing: float = LARGEST_MIXING,
) -> Rounded:
    """Turn a float design into a verified channel with denominator 2**53.

    Weights (k,) and posteriors (k, n) are those of `float_design.read_design`; `largest_mixing` is
    the largest t, in units of H(X) up to one nat.

    Raises
    ------
    RoundingFailure
        If it is no design, or breaks its budget by more than a repair may mend.
    """
    joint = rules.joint
    design = read_design(weights, posteriors, joint.p_x)
    limit = largest_mixing * min(1.0, -float(joint.p_x @ np.log(joint.p_x)))
    # a_y of the repair, (k,).
    added = np.zeros(design.k)
    repairs = 0
    while True:
        rows, outputs = _integer_rows(design, added)
        channel = _channel_of(rows, joint)
        verdict = rules.verdict(channel)
        if verdict.satisfied:
            return Rounded(
                channel, verdict, mixing=float(added.sum()), merged=design.merged
            )
        if not repairs:
            # Small entries that rounding made zero may be all that keeps a lift above zero.
            with_small = _with_small_entries(design, rules)
            if with_small is not None:
                return with_small
        failing = rules.failing(channel)
        needed = rules.needed(rows, failing)
        # Outputs that rounding left are numbered anew: back to the numbers of the design. Ten times
        # more for those that the last repair did not mend, so that few rounds end it.
        places = outputs[list(failing)]
        added[places] = np.maximum(needed, 10.0 * added[places])
        repairs += 1
        too_many = np.count_nonzero(added) * design.n > MOST_MIXED
        # Written so that NaN is too much, too.
        too_heavy = not added.sum() <= limit
        if too_heavy or too_many or repairs > MOST_REPAIRS:
            worst = verdict.worst
            raise RoundingFailure(
                "the design breaks its budget by more than rounding can repair "
                f"(output {quoted(worst.output)}, sensitive symbol "
                f"{quoted(worst.sensitive)}, lift {worst.lift:.17g}); design with a "
                "larger margin"
            )


def _with_small_entries(design: FloatDesign, rules: Judge) -> Rounded | None:
    """The design with entries of one unit where rounding makes them zero, if that is private.

    None where no entry is lost, or the channel fails all the same.
    """
    values = _largest_remainders(design)
    lost = (values == 0) & (design.w > 0.0)
    if not lost.any():
        return None
    values[lost] = 1
    # Each row pays for its units with its largest entry.
    units = np.bincount(design.x[lost], minlength=design.n)
    starts = design.starts
    for row in np.flatnonzero(units).tolist():
        entries = values[starts[row] : starts[row + 1]]
        entries[int(np.argmax(entries))] -= units[row]
    rows = IntegerRows((design.n, design.k), starts, design.y, values)
    channel = _channel_of(rows, rules.joint)
    verdict = rules.verdict(channel)
    if not verdict.satisfied:
        return None
    return Rounded(channel, verdict, merged=design.merged)


def _channel_of(rows: IntegerRows, joint: Joint) -> Channel:
    """The channel of these rows, with readable labels."""
    labels = output_labels(joint.useful.names, rows)
    return Channel(joint.useful, labels, rows, DENOMINATOR, joint)


def _integer_rows(
    design: FloatDesign, added: Array
) -> tuple[IntegerRows, NDArray[np.int64]]:
    """The integers of a design after mixing, and the outputs that are left."""
    mixed = design
    if added.any():
        mixed = design.mixed(added)
    values = _largest_remainders(mixed)
    positive = values > 0
    x = mixed.x[positive]
    y = mixed.y[positive]
    values = values[positive]
    # An output may have been rounded away altogether; the others keep their order.
    outputs, y = np.unique(y, return_inverse=True)
    indptr = np.concatenate(([0], np.cumsum(np.bincount(x, minlength=mixed.n))))
    return IntegerRows((mixed.n, len(outputs)), indptr, y, values), outputs


def _largest_remainders(design: FloatDesign) -> NDArray[np.int64]:
    """Integers next to W * 2**53 whose rows sum to 2**53; zeros stay zeros."""
    scaled = design.w * float(DENOMINATOR)
    whole = np.floor(scaled)
    values = whole.astype(np.int64)
    starts = design.starts
    missing = DENOMINATOR - np.add.reduceat(values, starts[:-1])
    # The largest remainder first within each row.
    order = np.lexsort((whole - scaled, design.x))
    row_of = design.x[order]
    rank = np.arange(len(order)) - starts[row_of]
    values[order[rank < missing[row_of]]] += 1
    # The floats of a row may sum to more than 1, or to less by more than a unit for each entry: the
    # rest goes to its largest entry, which it changes least.
    missing = DENOMINATOR - np.add.reduceat(values, starts[:-1])
    for row in np.flatnonzero(missing).tolist():
        entries = values[starts[row] : starts[row + 1]]
        entries[int(np.argmax(entries))] += missing[row]
    return values


def columns_of(rows: IntegerRows, chosen: Sequence[int]) -> Array:
    """Some columns of W(y|x), (n, k)."""
    w = np.zeros((rows.shape[0], len(chosen)))
    for j, y in enumerate(chosen):
        inputs, values = rows.columns[y]
        w[list(inputs), j] = np.array(values) * UNIT
    return w


def partition_channel(
    groups: Sequence[Sequence[int]],
    rules: Judge,
    *,
    shares: Mapping[int, Sequence[int]] | None = None,
    must_satisfy: bool = True,
) -> Rounded:
    """The verified channel that publishes the group of a symbol; exact, without any rounding.

    `shares` splits the output of some groups (by their position) into several, with these integers.

    Raises
    ------
    RoundingFailure
        If the groups are no partition of the symbols, or the channel is not private.
    """
    joint = rules.joint
    n = len(joint.useful)
    # The integers of a group that is split, by the smallest of its symbols.
    randomised: dict[int, list[int]] = {}
    for k, parts in (shares or {}).items():
        randomised[min(groups[k])] = list(parts)
    # In the order of their smallest symbols, so that the channel does not depend on theirs.
    ordered = sorted(sorted(int(x) for x in group) for group in groups)
    members = sorted(chain.from_iterable(ordered))
    if members != list(range(n)) or [] in ordered:
        raise RoundingFailure(f"the groups are no partition of the {n} useful symbols")

    # Output and integer in turn, for every symbol.
    pairs: list[list[int]] = [[] for _ in range(n)]
    width = 0
    for group in ordered:
        # All members of a group have the same entries, on outputs of the group's own.
        values = randomised.get(group[0], [DENOMINATOR])
        row: list[int] = []
        for y, value in enumerate(values, width):
            row += [y, value]
        width += len(values)
        for x in group:
            pairs[x] = row

    channel = _channel_of(IntegerRows.of_pairs(pairs, width), joint)
    verdict = rules.verdict(channel)
    if must_satisfy and not verdict.satisfied:
        raise RoundingFailure(
            f"merging leaves the output {quoted(verdict.worst.output)} outside the budget"
        )
    return Rounded(channel, verdict)
