"""Discrete uncertain variables: their ranges, and entropy, information and leakage of them (bits).

An uncertain variable is a mapping without any probability (Farokhi and Ding 2020, section II, after
Nair 2013). A discrete pair (X, Y) is described by its joint range [[X, Y]]: the pairs (x, y) that
can occur together. The marginal range [[X]] is the set of the x in them, and the conditional range
[[X|y]] the set of the x that occur together with y.

For example, of the pairs (a, 1), (a, 2) and (b, 2) the conditional range [[Y|a]] is {1, 2}, and
[[X|2]] is {a, b}. `JointRange` keeps pairs as places in the marginal ranges: the rows are 0, 0, 1
and the columns 0, 1, 1, as in a sparse matrix (`from_pairs` numbers the symbols, `from_codes` sorts
the pairs and drops repetitions). The sizes |[[X|y]]|, here 1 and 2, are counts of columns
(`x_sizes`); the measures count places alone.

*Information.* |X| is the number of values of X, and |X|y| the number of those that are possible
together with the output y. Every measure is a binary logarithm of such numbers:

- H0(X) = log |X|, and H0(X|Y) = max over y of log |X|y| (Farokhi 2019, eq. (1) and (3));
- I0(X;Y) = H0(X) - H0(X|Y) = min over y of log(|X| / |X|y|) (eq. (5));
- L0(X;Y) = max over y of log(|X| / |X|y|), and L0s = min(L0(X;Y), L0(Y;X)) (eq. (6) and (8));
- I*(X;Y) = log of the number of overlap classes (eq. (9), after Nair 2013; `overlap_partition`);
- L*(X -> Y) = log(|X| - min over y of |X|y| + 1), the largest L0 of any feature of X (Farokhi and
  Ding 2020, Definition 2 and Proposition 4).

For example, output 1 occurs with a, b and c, and output 2 with d and e. H0(X) is log 5 = 2.32 and
H0(X|Y) is log 3 = 1.58, so I0(X;Y) = 0.74. L0(X;Y) = log(5 / 2) = 1.32, and L0(Y;X) = L0s = 1. The
outputs share no value, so there are two classes and I* = 1. L* = log(5 - 2 + 1) = 2: of the four
values a, b, c and 'd or e' of a feature, output 2 leaves one.

Every function counts symbols and measures X unless its docstring names another variable;
``joint.reverse`` swaps X and Y. Theorems in the docstrings about guessing are those of Farokhi and
Ding 2020. Its Proposition 3(e) is false: L* of unrelated pairs is superadditive
(docs/explanation/ranges-theory.md, 'Guessing').
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechdesign.core.balls import log2_above
from mechdesign.core.errors import InputError
from mechdesign.core.wording import quoted
from mechdesign.nonstochastic.noiseless import smallest_cell

# ------------------------------------------------------------------------------- ranges

LARGEST_ENUMERATION = 5_000_000
"""Most pairs of a product that are enumerated, which takes some 10 s and 1 GB."""

Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class JointRange:
    """The joint range [[X, Y]] of two discrete uncertain variables (finite).

    Build it with `from_pairs` or `from_columns`.

    Parameters
    ----------
    x_symbols, y_symbols
        The marginal ranges [[X]] and [[Y]], each without repetition.
    rows, columns
        The pairs, as indices into the two ranges: int64, shape (pairs,), sorted by row and then by
        column, without repetition. Every symbol occurs in at least one pair.
    """

    x_symbols: tuple[Hashable, ...]
    y_symbols: tuple[Hashable, ...]
    rows: Indices = field(repr=False)
    columns: Indices = field(repr=False)

    @classmethod
    def from_codes(
        cls,
        x_symbols: Sequence[Hashable],
        y_symbols: Sequence[Hashable],
        rows: ArrayLike,
        columns: ArrayLike,
    ) -> JointRange:
        """From pairs of indices into given ranges; repeated pairs count once.

        Raises
        ------
        InputError
            If there is no pair, an index is outside its range, or a symbol has no partner.
        """
        i = np.asarray(rows, dtype=np.int64).reshape(-1)
        j = np.asarray(columns, dtype=np.int64).reshape(-1)
        if i.size != j.size:
            raise InputError(
                f"rows and columns must have the same length, not {i.size} and {j.size}"
            )
        if i.size == 0:
            raise InputError("the joint range is empty: give at least one pair")
        x_outside = i.min() < 0 or i.max() >= len(x_symbols)
        y_outside = j.min() < 0 or j.max() >= len(y_symbols)
        if x_outside or y_outside:
            raise InputError("a pair has an index outside its range of symbols")
        # Sorting beats numpy.unique, which hashes integers, several times over on a million pairs.
        keys = np.sort(i * np.int64(len(y_symbols)) + j)
        is_new = np.concatenate(([True], keys[1:] != keys[:-1]))
        i, j = np.divmod(keys[is_new], np.int64(len(y_symbols)))
        # An empty conditional range would make the leakage of the pair infinite.
        for name, symbols, codes in (("x", x_symbols, i), ("y", y_symbols, j)):
            absent = np.flatnonzero(np.bincount(codes, minlength=len(symbols)) == 0)
            if absent.size:
                raise InputError(
                    f"{name} symbol {quoted(symbols[int(absent[0])])} has an empty conditional "
                    "range (it occurs in no pair); drop it"
                )
        i.setflags(write=False)
        j.setflags(write=False)
        return cls(tuple(x_symbols), tuple(y_symbols), i, j)

    @classmethod
    def from_pairs(cls, pairs: Iterable[tuple[Hashable, Hashable]]) -> JointRange:
        """From the pairs (x, y) that can occur together; repeated pairs count once."""
        members = list(pairs)
        for pair in members:
            # Callers without a type checker may pass anything.
            values: object = pair
            if not isinstance(values, (tuple, list)) or len(pair) != 2:
                raise InputError(f"pairs must hold (x, y) tuples, not {quoted(pair)}")
        return cls.from_columns([x for x, _ in members], [y for _, y in members])

    @classmethod
    def from_columns(
        cls, x: ArrayLike | Sequence[Hashable], y: ArrayLike | Sequence[Hashable]
    ) -> JointRange:
        """From two columns of equal length: entry k of both is a pair that occurs together."""
        x_symbols, rows = numbered("x", x)
        y_symbols, columns = numbered("y", y)
        if rows.size != columns.size:
            raise InputError(
                f"x and y must have the same length, not {rows.size} and {columns.size}"
            )
        return cls.from_codes(x_symbols, y_symbols, rows, columns)

    @property
    def shape(self) -> tuple[int, int]:
        """(|X|, |Y|), the sizes of the marginal ranges."""
        return len(self.x_symbols), len(self.y_symbols)

    @property
    def n_pairs(self) -> int:
        """Number of pairs in the joint range."""
        return int(self.rows.size)

    @cached_property
    def x_index(self) -> dict[Hashable, int]:
        """Place of every x in `x_symbols`."""
        return dict(zip(self.x_symbols, range(self.x_total), strict=True))

    @cached_property
    def x_sizes(self) -> Indices:
        """|[[X|y]]| for every y, int64, shape (|Y|,), in the order of `y_symbols`."""
        return np.bincount(self.columns, minlength=self.shape[1]).astype(np.int64)

    @property
    def unit(self) -> str:
        """Unit of entropies and leakages."""
        return "bits"

    def log(self, ratio: Fraction) -> float:
        """Base-2 logarithm of an exact positive number of any size."""
        return log_ratio(ratio, self.unit)

    @property
    def x_total(self) -> int:
        """|[[X]]|."""
        return len(self.x_symbols)

    @cached_property
    def smallest_x(self) -> int:
        """The smallest |[[X|y]]| over all y."""
        return int(self.x_sizes.min())

    @cached_property
    def largest_x(self) -> int:
        """The largest |[[X|y]]| over all y."""
        return int(self.x_sizes.max())

    @cached_property
    def incidence(self) -> Any:
        """The pairs as a boolean scipy.sparse.csr_array, shape (|X|, |Y|)."""
        from scipy.sparse import csr_array

        ones = np.ones(self.n_pairs, dtype=np.bool_)
        return csr_array((ones, (self.rows, self.columns)), shape=self.shape)

    @cached_property
    def reverse(self) -> JointRange:
        """The same joint range seen from Y: [[Y, X]]."""
        return JointRange.from_codes(
            self.y_symbols, self.x_symbols, self.columns, self.rows
        )

    def pairs(self) -> list[tuple[Hashable, Hashable]]:
        """All pairs (x, y)."""
        x_symbols = [self.x_symbols[i] for i in self.rows.tolist()]
        y_symbols = [self.y_symbols[j] for j in self.columns.tolist()]
        return list(zip(x_symbols, y_symbols, strict=True))

    def y_given(self, *x: Hashable) -> frozenset[Hashable]:
        """The conditional range of Y when X is one of the given values.

        Raises
        ------
        InputError
            If no value is given or one is outside the range of X.
        """
        if not x:
            raise InputError("give at least one value to condition on")
        for value in x:
            if value not in self.x_index:
                raise InputError(
                    f"value {quoted(value)} is not in the range of the variable conditioned on"
                )
        condition = [self.x_index[value] for value in x]
        # [[Y|x1, x2, ..]] is the union of the conditional ranges.
        compatible = self.columns[np.isin(self.rows, condition)]
        return frozenset(self.y_symbols[j] for j in compatible.tolist())

    def x_given(self, *y: Hashable) -> frozenset[Hashable]:
        """The conditional range of X when Y is one of the given values (see `y_given`)."""
        return self.reverse.y_given(*y)

    def map_x(self, feature: Callable[[Any], Hashable]) -> JointRange:
        """The joint range of U = feature(X) and Y, for the Markov chain U - X - Y."""
        u_symbols, codes = numbered("feature", [feature(x) for x in self.x_symbols])
        return JointRange.from_codes(
            u_symbols, self.y_symbols, codes[self.rows], self.columns
        )


def product(joint: JointRange, other: JointRange) -> JointRange:
    """The joint range of ((X, X'), (Y, Y')) for unrelated pairs (X, Y) and (X', Y')."""
    n_pairs = joint.n_pairs * other.n_pairs
    if n_pairs > LARGEST_ENUMERATION:
        raise InputError(
            f"the product has {n_pairs:,} pairs, over {LARGEST_ENUMERATION:,}; leakages of a "
            "product need no enumeration: L* is log2(prod |X_i| - prod m_i + 1), m_i the "
            "smallest conditional range of part i"
        )
    # The pair (a, b) of symbols has the index a * |second range| + b, the order of
    # itertools.product.
    rows = joint.rows[:, None] * other.shape[0] + other.rows[None, :]
    columns = joint.columns[:, None] * other.shape[1] + other.columns[None, :]
    return JointRange.from_codes(
        list(itertools.product(joint.x_symbols, other.x_symbols)),
        list(itertools.product(joint.y_symbols, other.y_symbols)),
        rows.reshape(-1),
        columns.reshape(-1),
    )


def numbered(name: str, values: Any) -> tuple[tuple[Hashable, ...], Indices]:
    """The distinct hashable values in order of first appearance, and the index of each value."""
    if isinstance(values, np.ndarray):
        array = cast("NDArray[Any]", values)
        if array.ndim != 1:
            raise InputError(f"{name} must have one dimension, not {array.ndim}")
        # Python's own values: NumPy's would print as np.int64(1) and the like.
        values = array.tolist()
    members: list[Any] = list(values)
    if not members:
        raise InputError(f"{name} is empty; a range needs at least one value")
    place: dict[Hashable, int] = {}
    codes = np.empty(len(members), dtype=np.int64)
    for k, value in enumerate(members):
        try:
            codes[k] = place.setdefault(value, len(place))
        except TypeError:
            raise InputError(
                f"{name} holds {quoted(value)}, which cannot be hashed; use a tuple"
            ) from None
    for symbol in place:
        # NaN equals nothing, so no range can contain it.
        if isinstance(symbol, float | np.floating) and math.isnan(symbol):
            raise InputError(
                f"{name} contains NaN, which is no value of a range; drop it or give it a symbol"
            )
    return tuple(place), codes


def log_ratio(ratio: Fraction, unit: str) -> float:
    """Log of a ratio of integers of any size: base 2 for "bits", base e for "nats"; -inf at zero.

    Between 1/2 and 2 the difference of two logarithms would lose digits, so the excess over one is
    used.
    """
    if ratio == 0:
        return -math.inf
    # Python divides integers of any size and rounds once.
    if Fraction(1, 2) < ratio < 2:
        nats = math.log1p((ratio.numerator - ratio.denominator) / ratio.denominator)
        if unit == "bits":
            return nats / math.log(2)
        return nats
    if unit == "bits":
        return math.log2(ratio.numerator) - math.log2(ratio.denominator)
    return math.log(ratio.numerator) - math.log(ratio.denominator)


# -------------------------------------------------------------------------- information


def range_leakage(joint: JointRange) -> float:
    """L0(X;Y) = max over y of log(|X| / |X|y|) (Farokhi 2019, eq. (6), bits)."""
    return joint.log(Fraction(joint.x_total) / joint.smallest_x)


def symmetric_leakage(joint: JointRange) -> float:
    """L0s(X;Y) = min(L0(X;Y), L0(Y;X)) (Farokhi 2019, eq. (8), bits)."""
    return min(range_leakage(joint), range_leakage(joint.reverse))


def overlap_partition(joint: JointRange) -> tuple[int, NDArray[np.int64]]:
    """The finest partition [[X|Y]]_* of [[X]] whose classes no [[X|y]] crosses.

    The classes are the connected components of the bipartite graph of the pairs; the log of their
    number is I*(X;Y).

    Returns
    -------
    The number of classes, and the class of each x: (|X|,) integers.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    n_x, n_y = joint.shape
    ones = np.ones(joint.n_pairs, dtype=np.int8)
    # The nodes are all x, followed by all y. Two x with a common output are joined through it, so
    # chains of overlapping conditional ranges are paths.
    nodes = n_x + n_y
    graph = csr_array((ones, (joint.rows, joint.columns + n_x)), shape=(nodes, nodes))
    n_classes, labels = connected_components(graph, directed=False)
    return int(n_classes), np.asarray(labels[:n_x], dtype=np.int64)


@dataclass(frozen=True)
class RangeReport:
    """The measures of a joint range in bits: of X given Y, and `_reverse` of Y given X.

    They are H0(X) (`entropy`), H0(X|Y), I0(X;Y), L0(X;Y) (`leakage`), L0s, and the number of
    overlap classes with its log, I*. The chain ``maximin <= symmetric_leakage <= leakage_reverse``
    holds (docs/explanation/ranges-theory.md, 'Measures of ranges').
    """

    unit: str
    entropy: float
    entropy_reverse: float
    conditional_entropy: float
    conditional_entropy_reverse: float
    information: float
    information_reverse: float
    leakage: float
    leakage_reverse: float
    symmetric_leakage: float
    classes: int
    maximin: float


def range_report(joint: JointRange) -> RangeReport:
    """Every measure of this module for X given Y, and `_reverse` for Y given X."""
    reverse = joint.reverse
    x_total = Fraction(joint.x_total)
    y_total = Fraction(reverse.x_total)
    x_largest = Fraction(joint.largest_x)
    y_largest = Fraction(reverse.largest_x)
    classes, _ = overlap_partition(joint)
    return RangeReport(
        unit=joint.unit,
        entropy=joint.log(x_total),
        entropy_reverse=joint.log(y_total),
        conditional_entropy=joint.log(x_largest),
        conditional_entropy_reverse=joint.log(y_largest),
        information=joint.log(x_total / x_largest),
        information_reverse=joint.log(y_total / y_largest),
        leakage=range_leakage(joint),
        leakage_reverse=range_leakage(reverse),
        symmetric_leakage=symmetric_leakage(joint),
        classes=classes,
        maximin=joint.log(Fraction(classes)),
    )


def brute_force_leakage(
    joint: JointRange, feature: Callable[[Any], Hashable] | None = None
) -> float:
    """L(U -> Y) = log2(|U| / min_y |U|y|) for U = feature(X), or for X itself (bits).

    Its power of two is the factor by which the output saves guesses in the worst case
    (Definition 1).
    """
    if feature is not None:
        joint = joint.map_x(feature)
    return range_leakage(joint)


@dataclass(frozen=True)
class WorstAttribute:
    """The feature of X that `output` helps most to guess (Remark 1).

    It merges all values of X that are possible at the output, `merged`, and has `n_values` values.
    """

    output: Hashable
    merged: frozenset[Hashable]
    n_values: int


def worst_attribute(joint: JointRange) -> WorstAttribute:
    """The attribute that attains the maximal leakage (eq. (8))."""
    output = joint.y_symbols[int(joint.x_sizes.argmin())]
    # One value for all that are possible at the output, and the others each on their own.
    n_values = joint.x_total - joint.smallest_x + 1
    return WorstAttribute(output, joint.x_given(output), n_values)


def maximal_leakage(joint: JointRange) -> float:
    """L*(X -> Y) = log2(|X| - min_y |X|y| + 1), over all features of X (Proposition 4, bits)."""
    return math.log2(joint.x_total - joint.smallest_x + 1)


def is_identifiable(joint: JointRange, epsilon: object) -> bool:
    """Whether |X|y| >= |X| 2^-epsilon for every output y, decided exactly (Definition 3)."""
    return joint.smallest_x >= smallest_cell(joint.x_total, epsilon)


def identifiable_epsilon(joint: JointRange) -> float:
    """The smallest double epsilon (bits) at which the mapping is epsilon-identifiable.

    It is L0(X;Y) rounded upwards, so `is_identifiable` is true at this very number.
    """
    return log2_above(Fraction(joint.x_total, joint.smallest_x))


def largest_stochastic_leakage(joint: JointRange) -> float:
    """The supremum of the stochastic maximal leakage over all channels with this range (bits).

    It is log2 of the largest matching between inputs and outputs, hence at most H0(Y) and at most
    H0(X): an optimal channel gives as many inputs as possible an output of their own. With
    H0(X|Y) added it bounds the maximal leakage (Proposition 8): an input whose output is not
    covered by its own vertex lies in a covered [[X|y]], so |X| <= matching * max |X|y| (Koenig).
    """
    from scipy.sparse.csgraph import maximum_bipartite_matching

    # Unmatched inputs have -1.
    matching = maximum_bipartite_matching(joint.incidence, perm_type="column")
    return math.log2(int((np.asarray(matching) >= 0).sum()))
