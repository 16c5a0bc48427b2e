"""What a table is looked at for before a search: columns that do not suit, and classes of symbols.

*Unsuited columns.* `refuse_identifier` looks at the ratio of symbols to records. 950 different
names in 1,000 records are an identifier: a channel has a row for each symbol, so its file would
list the people. As a sensitive column it is refused by `refuse_secret_identifier`. `many_numbers`
looks at the texts of the symbols. 60 different ages are 60 symbols, which bins would make fewer;
that is advice and no refusal.

*Classes* are symbols that no notion tells apart: an exact reduction of the table. Useful symbols
with proportional columns (the same P(s|x) for every s) form a class T, and so do sensitive symbols
with proportional rows (the same P(x|s) for every x).

1. `classes` decides in integers which symbols these are, and adds up the counts of each class: the
   columns (2, 4) and (3, 6) are one class with (5, 10).
2. The optimum is searched for in that table, which has fewer symbols.
3. `Classes.split` gives its outputs back to the symbols, each cut into pieces by the proof below.

For example, let a and b of mass 0.1 and 0.2 be one class, and let two outputs have 0.15 of it each.
On the line [0, 0.3] a is [0, 0.1] and b is [0.1, 0.3], and the first output has [0, 0.15]. It is
cut at 0.1, into a piece with two thirds of its weight that has a, and one with a third that has b.
The second output has [0.15, 0.3], which is b alone.

*Theorem.* For every notion that depends on a posterior v through A v alone, min H(X|Y) = min
H(T|Y), hence the largest I(X;Y) is H(X) - min H(T|Y). Proportional rows may be replaced by one
that is their sum.

*Proof.* Proportional rows s have equal lifts P(y|s)/P(y) on every output: minima, maxima and
quotients over s stay, and means weighted by P(s) add up. For columns: H(X|Y) >= H(T|Y), as T is a
function of X, and the lifts of y depend on P(T|y) only, so every channel of X is one of T that
costs no more. Conversely take class posteriors q_y with weights beta_y and mean P_T. Lay the
members of a class t side by side on [0, P(t)], and beside them the shares beta_y q_y(t) of the
outputs; cut each output at the ends of the members that lie inside its share of one of its classes,
at the same fraction of all its classes. On a piece every class has one member, so its posterior has
the entries of q_y on one symbol each: the same entropy, the same lifts; and the pieces of a member
sum to P(x). QED A class of |t| members has |t| - 1 inner ends, so k outputs become at most k + |X|
- |T|: a basic optimum needs no more than |X| outputs.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechdesign.core.errors import InputError
from mechdesign.core.wording import quoted
from mechdesign.tables.cell_values import kind_of
from mechdesign.tables.exact_table import LARGEST_ENTRY
from mechdesign.tables.joint import Joint
from mechdesign.tables.variable import Variable, added_columns, added_rows
from solvers import Array, Points

# --------------------------------------------------------------------- unsuited columns

FEWEST_RECORDS = 100
"""Records from which a column can be refused as an identifier."""

IDENTIFYING = 0.9
"""Ratio of symbols to records above which a column identifies the records."""

MANY_NUMBERS = 40
"""Different numbers of a column from which bins are advised."""


def all_but_identifies(symbols: int, records: int) -> bool:
    """Whether a column of so many symbols is refused as one that identifies the records."""
    # In a small table nearly every record may be different whatever the column means.
    return records >= FEWEST_RECORDS and symbols > IDENTIFYING * records


def refuse_identifier(
    columns: Sequence[str],
    symbols: int,
    records: int | None,
    *,
    insist: str = ", or insist (--allow-identifier)",
) -> None:
    """Raise InputError for useful columns with nearly as many symbols as records.

    `records` is None for tables without records, of weights or probabilities. `insist` says how to
    use such a column nevertheless.
    """
    if records is None or not all_but_identifies(symbols, records):
        return
    name = quoted(",".join(columns))
    raise InputError(
        f"the useful column {name} has {symbols:,} symbols in {records:,} records, so "
        "it all but identifies them and the channel would list them; group its values "
        "(--bin for numbers, dates and times), choose another column "
        f"(--leave-out, where all are released){insist}"
    )


def refuse_secret_identifier(sensitive: Variable, records: int | None) -> None:
    """Raise InputError for a sensitive column with nearly as many symbols as records.

    A promise about such a column bounds what is told about each single record, so that nearly
    nothing can be kept, and its table has a row for every record. `records` is None for tables
    without records.
    """
    if records is None:
        return
    for secret in sensitive.secrets:
        if not all_but_identifies(len(secret), records):
            continue
        name = quoted(",".join(secret.columns))
        raise InputError(
            f"the sensitive column {name} has {len(secret):,} symbols in {records:,} records, so "
            "it names them and is no category to protect; name the column whose values are to be "
            "protected, or put its numbers into classes first"
        )


def many_numbers(joint: Joint) -> tuple[str, ...]:
    """The advice to use bins, where a column of many numbers is released number by number."""
    columns = joint.useful.columns
    symbols = joint.useful.symbols
    if len(columns) > 1 or any(joint.useful.bins) or len(symbols) <= MANY_NUMBERS:
        return ()
    # Numbers, dates or times; an empty text is a missing value among them.
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


# ------------------------------------------------------------------------------ classes

MOST_ENTRIES = 20_000_000
"""Entries of all pieces together, some 300 MB, from which outputs are not cut: the search for so
large a table has ended early, with outputs of all classes, and every cut would repeat them."""

FIRST_ROWS = 64
"""Rows of a table by which most columns differ: after an earlier release there are thousands."""

LEAST_PIECE = 1e-13
"""Pieces of an output below this share of it are rounding errors of the ends and go to their
neighbour."""


@dataclass(frozen=True, eq=False)
class Classes:
    """The table of classes, with translations of outputs between classes and symbols.

    Attributes
    ----------
    whole, joint : Joint
        The table of the symbols, and that of the classes.
    group : (|X|,) array
        The class of each symbol.
    """

    whole: Joint
    joint: Joint
    group: NDArray[np.intp]

    @classmethod
    def of_symbols(cls, joint: Joint) -> Classes:
        """Every symbol as a class of its own."""
        return cls(joint, joint, np.arange(len(joint.useful)))

    @property
    def is_reduced(self) -> bool:
        """Whether there are fewer useful classes than symbols."""
        return len(self.joint.useful) < len(self.whole.useful)

    def merged(self, points: Points) -> Points:
        """Posteriors of the classes from those of the symbols."""
        if not self.is_reduced:
            return points
        n = len(self.joint.useful)
        # One number for each pair of an output and a class; entries of the same pair add up.
        pairs = points.owner * n + self.group[points.indices]
        flat, inverse = np.unique(pairs, return_inverse=True)
        sums = np.bincount(inverse, weights=points.data, minlength=len(flat))
        data = sums.astype(np.float64)
        y, t = np.divmod(flat, n)
        return Points.of_sizes(np.bincount(y, minlength=len(points)), t, data, n)

    def split(self, weights: ArrayLike, points: Points) -> tuple[Array, Points]:
        """Weights and posteriors of the symbols, from those of the classes: the proof above.

        `weights` are the beta_y, `points` the q_y.
        """
        beta = np.asarray(weights, dtype=np.float64)
        if not self.is_reduced:
            return beta, points
        # Members of every class side by side on [0, P(t)].
        by_class = np.argsort(self.group, kind="stable")
        sizes = np.bincount(self.group)
        members_of = np.split(by_class, np.cumsum(sizes)[:-1])
        ends = [np.cumsum(self.whole.p_x[members]) for members in members_of]
        mass = self._class_masses(beta, points)
        # The part of every class that earlier outputs have taken; the next output begins there.
        taken = np.zeros(points.shape[1])
        piece_weights: list[float] = []
        supports: list[NDArray[np.intp]] = []
        data: list[Array] = []
        size = 0
        for y in range(len(points)):
            entries = slice(int(points.indptr[y]), int(points.indptr[y + 1]))
            classes_of_output = points.indices[entries]
            widths = mass[entries]
            spans: list[_Span] = []
            for t, width in zip(
                classes_of_output.tolist(), widths.tolist(), strict=True
            ):
                spans.append(_Span(members_of[t], ends[t], float(taken[t]), width))
            cuts, pieces = _cut(spans)
            size += len(pieces) * len(spans)
            if size > MOST_ENTRIES:
                return beta, self._in_proportion(points)
            # Every piece keeps the entries of q_y, each on one member of its class.
            for length, support in zip(np.diff(cuts).tolist(), pieces, strict=True):
                piece_weights.append(float(beta[y]) * length)
                supports.append(support)
                data.append(points.data[entries])
            taken[classes_of_output] += widths
        posteriors = Points.of_sizes(
            [len(support) for support in supports],
            np.concatenate(supports),
            np.concatenate(data),
            len(self.whole.useful),
        )
        return np.array(piece_weights), posteriors

    def _in_proportion(self, points: Points) -> Points:
        """Posteriors of the symbols where every class is divided among its members by their mass.

        Their lifts are those of the classes; the entropy within a class is lost.
        """
        order = np.argsort(self.group, kind="stable")
        sizes = np.bincount(self.group)
        starts = np.cumsum(sizes) - sizes
        share = self.whole.p_x / self.joint.p_x[self.group]
        # Each entry becomes one for every member of its class, at the places start, start + 1, ..
        repeats = sizes[points.indices]
        first = np.cumsum(repeats) - repeats
        offsets = np.arange(repeats.sum()) - np.repeat(first, repeats)
        members = order[np.repeat(starts[points.indices], repeats) + offsets]
        data = np.repeat(points.data, repeats) * share[members]
        per_output = np.bincount(points.owner, weights=repeats, minlength=len(points))
        return Points.of_sizes(
            per_output.astype(np.int64), members, data, len(self.whole.useful)
        )

    def _class_masses(self, beta: Array, points: Points) -> Array:
        """Masses beta_y q_y(t) of the entries of all outputs, corrected so that those of a class
        sum to P(t): else the last output would end beside the end of the class.
        """
        mass = beta[points.owner] * points.data
        covered = np.bincount(points.indices, weights=mass, minlength=points.shape[1])
        correction = self.joint.p_x / np.where(covered > 0.0, covered, 1.0)
        return mass * correction[points.indices]


def classes(joint: Joint, stacked: Sequence[Sequence[int]] = ()) -> Classes:
    """Classes of symbols with proportional rows and proportional columns, decided in integers.

    Columns are compared in all of the `stacked` rows, if there are any: those of several tables
    that the promise is about. Their sensitive symbols then stay as they are.
    """
    rows = list(range(len(joint.counts)))
    if not stacked:
        rows = proportional(joint.counts)
    counts = added_rows(joint.counts, rows)
    columns = proportional_columns(stacked or counts)
    counts = added_columns(counts, columns)
    n = len(joint.useful)
    is_the_same = len(counts) == len(joint.counts) and len(counts[0]) == n
    # A table of a single sensitive class would have nothing to protect.
    if is_the_same or len(counts) == 1:
        return Classes.of_symbols(joint)
    # Sums may exceed the largest entry of a table.
    if max(max(row) for row in counts) >= LARGEST_ENTRY:
        return Classes.of_symbols(joint)
    reduced = Joint(
        _representatives(joint.sensitive, rows),
        _representatives(joint.useful, columns),
        counts,
        is_counts=joint.is_counts,
    )
    return Classes(joint, reduced, np.array(columns))


def proportional(vectors: Iterable[Sequence[int]]) -> list[int]:
    """Class of every vector of integers, classes numbered in order of appearance.

    Vectors are proportional where they are equal after division by their greatest common divisor:
    (2, 4) and (3, 6) both become (1, 2).
    """
    seen: dict[tuple[int, ...], int] = {}
    return [seen.setdefault(_direction(vector), len(seen)) for vector in vectors]


def proportional_columns(rows: Sequence[Sequence[int]]) -> list[int]:
    """Class of every column of a table, as of `proportional`.

    Most columns differ in the first rows; the others are compared as a whole.
    """
    first = proportional(zip(*rows[:FIRST_ROWS], strict=True))
    members = Counter(first)
    seen: dict[tuple[int, ...], int] = {}
    group: list[int] = []
    for x, number in enumerate(first):
        key = (number,)
        if members[number] > 1:
            key = (number, *_direction([row[x] for row in rows]))
        group.append(seen.setdefault(key, len(seen)))
    return group


def _direction(vector: Sequence[int]) -> tuple[int, ...]:
    """A vector of integers divided by their greatest common divisor."""
    # Of a part of a column all entries may be zero.
    divisor = math.gcd(*vector) or 1
    return tuple(entry // divisor for entry in vector)


def _representatives(variable: Variable, group: Sequence[int]) -> Variable:
    """The first symbol of every class."""
    first: dict[int, int] = {}
    for symbol, number in enumerate(group):
        first.setdefault(number, symbol)
    return variable.select([first[number] for number in sorted(first)])


class _Span(NamedTuple):
    """The part [start, start + width] of a class that an output has.

    `members` are the symbols of the class, which end at `ends` on [0, P(t)].
    """

    members: NDArray[np.intp]
    ends: Array
    start: float
    width: float


def _cut(spans: Sequence[_Span]) -> tuple[Array, list[NDArray[np.intp]]]:
    """Ends of the pieces of one output, as fractions from 0 to 1, and the symbols on each piece.

    The output is cut where a member of one of its classes ends.
    """
    fractions = [np.array([0.0, 1.0])]
    for span in spans:
        # The last end is that of the class, not one inside it.
        inner = span.ends[:-1]
        first, last = np.searchsorted(inner, [span.start, span.start + span.width])
        fractions.append((inner[first:last] - span.start) / span.width)
    cuts = np.unique(np.concatenate(fractions))
    # Two ends that differ by rounding make no piece; the ends 0 and 1 stay.
    cuts = cuts[np.concatenate(([True], np.diff(cuts[:-1]) > LEAST_PIECE, [True]))]
    if len(cuts) > 2 and cuts[-1] - cuts[-2] <= LEAST_PIECE:
        cuts = np.delete(cuts, -2)
    # The middle of a piece is in one member of every class, whatever rounding did to its ends.
    middle = 0.5 * (cuts[1:] + cuts[:-1])
    columns: list[NDArray[np.intp]] = []
    for span in spans:
        places = np.searchsorted(span.ends, span.start + middle * span.width)
        columns.append(span.members[np.minimum(places, len(span.members) - 1)])
    return cuts, list(np.stack(columns, axis=1))
