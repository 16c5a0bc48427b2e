"""A total budget divided among the answers of groups of unlike sizes.

The outputs of all answers of one individual multiply (Farokhi 2019, Theorem 6), and may be
floor(2^total) together. `divided` takes three steps:

1. The largest error of an answer with K outputs is known without laying out any thresholds. Of a
   query with range R and sensitivity S it is min(R / K, S / (K - 1)) / 2 (`worst_errors`).
2. An integer program (`least_error`) chooses a number of outputs for each size of group, of least
   total error.
3. The thresholds follow, and are certified (`sizes.sized_quantizer`).

For example, somebody is in a group of 10 records and in one of 1,000, whose means are asked for,
and 8 outputs are allowed of both answers together. Equal shares are 2 outputs each, with the errors
0.05 and 0.0005 of the range. Of 1,000 records one individual moves the mean so little that 2
outputs are plenty. So the small group gets 4 of them, and the errors are 0.017 and 0.0005.

*The integer program.* A query, such as the mean, is answered for several groups of records. The
outputs of an answer are the values that it may take: more of them mean a smaller error. Groups of
the same size have the same number of outputs. An individual may be in several groups, and the row
(2, 1) of `patterns` is the kind of individuals that are in two groups of the first size and in one
of the second.

For every individual the product of the outputs may be floor(2^total) at most. The program begins
small, and grows until its choice is proven:

1. `_first_program` has a grid of numbers for each size, and the budget of one individual as a row.
2. The program is solved. If the product of an individual is over the total, its row is added
   (`exclude`), and the program solved again. Products are compared in integers.
3. All numbers that a better choice could have are added (`add_options`). If none is new, no choice
   is better.

The prices of the relaxation say which numbers these are. Let p_i be the price of a bit of
individuals of kind i, and n_is their answers in groups of size s. Every choice k has

    error(k) >= sum_s min_k [error_s(k) + (sum_i p_i n_is) log2 k] - sum_i p_i log2 floor(2^total).

The bracket is the priced error of k outputs for size s. Outputs whose priced error exceeds the
least of their size by more than the gap, from this bound to the best choice so far, are in no
better choice.

For example, an individual has one answer of each of two sizes, whose errors with k outputs are 3/k
and 1/k. A total of 3 bits allows a product of 8. Of (8, 1), (4, 2) and (2, 4) the errors are 1.375,
1.25 and 1.75, so the program chooses 4 outputs for the first size and 2 for the second.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from flint import fmpz
from numpy.typing import NDArray

from mechdesign.nonstochastic.groups import Groups
from mechdesign.nonstochastic.mechanism_file import (
    DISCLOSED_OUTSIDE,
    MechanismFile,
    SizedQuantizer,
)
from mechdesign.nonstochastic.noiseless import LARGEST_LEVELS, epsilon_for
from mechdesign.nonstochastic.number_columns import Floats
from mechdesign.nonstochastic.queries import build_query
from mechdesign.nonstochastic.sizes import sized_quantizer
from mechdesign.nonstochastic.solver_failures import solver_failures
from solvers.programs import Program, SparseRows, solve_program

Integers = NDArray[np.int64]


def divided(
    plan: MechanismFile, groups: Groups, total: int, share: int, split: str
) -> tuple[MechanismFile, str]:
    """The mechanism with quantisers of least total error, and a notice of that error.

    Parameters
    ----------
    plan
        The mechanism without quantisers.
    groups
        The groups to answer, with their members.
    total
        Outputs of all answers of one individual together, floor(2^total_epsilon).
    share
        Outputs of each answer if all have the same number.
    split
        "error", or "lifted": then no answer has fewer outputs than by equal shares.
    """
    sizes, patterns = groups.patterns()
    error = _AnswerErrors.of(plan, groups, sizes)
    shares = [share] * len(sizes)
    # One cell, and the output that a value lies outside where it is disclosed.
    fewest = 1 + error.outside_outputs
    if split == "lifted":
        fewest = share
    outputs, bound = least_error(error, patterns, total, shares, fewest=fewest)
    sized: list[SizedQuantizer] = []
    for size, number in zip(sizes, outputs, strict=True):
        budget = replace(plan, epsilon=epsilon_for(number))
        sized.append(sized_quantizer(budget, size))
    least = error.total(outputs)
    notice = (
        f"the largest errors of all answers add up to {least:.6g}, "
        f"by equal shares to {error.total(shares):.6g}"
    )
    if least > bound:
        notice += f"; no division is proven to be below {bound:.6g}"
    mechanism = replace(
        plan,
        epsilon=epsilon_for(max(outputs)),
        provenance=plan.provenance | {"split": split},
        mechanisms=tuple(sized),
    )
    return mechanism, notice


def largest_answers(
    groups: Groups, sized: Mapping[int, SizedQuantizer]
) -> dict[int, int]:
    """The answers, by size of group, of the individual whose outputs have the largest product."""
    sizes, patterns = groups.patterns()
    outputs = [sized[size].certificate.outputs for size in sizes]
    row, _ = largest_product(patterns, outputs)
    answers = zip(sizes, patterns[row].tolist(), strict=True)
    return {size: times for size, times in answers if times}


@dataclass(frozen=True)
class _AnswerErrors:
    """The largest errors of the answers, by size of group and number of outputs.

    Parameters
    ----------
    weights : (sizes,) array
        The span of the query, times the groups of the size.
    ratios : (sizes,) integers
        Span over sensitivity of the query.
    outside_outputs
        1 where one output tells that a value lies outside, else 0.
    most
        The most cells that a quantiser may have.
    """

    weights: Floats
    ratios: Integers
    outside_outputs: int
    most: int

    @classmethod
    def of(
        cls, mechanism: MechanismFile, groups: Groups, sizes: Sequence[int]
    ) -> _AnswerErrors:
        """Those of the groups of these sizes, through a mechanism without quantisers."""
        ratios: list[int] = []
        spans: list[float] = []
        for size in sizes:
            query = build_query(mechanism.query, size, mechanism.domain)
            span = query.range[1] - query.range[0]
            spans.append(float(span))
            # A span is a whole number of sensitivities wherever all individuals are alike.
            ratios.append(span // query.sensitivity if span else 1)
        # In the order of `sizes`, which increase.
        groups_of_size = np.unique(groups.sizes, return_counts=True)[1]
        most = LARGEST_LEVELS
        if mechanism.query == "count":
            # An individual that counts as 0 or 1 has two answers (see `sizes.sized_quantizer`).
            most = 2
        return cls(
            weights=np.array(spans, dtype=np.float64) * groups_of_size,
            ratios=np.array(ratios),
            outside_outputs=int(mechanism.outside in DISCLOSED_OUTSIDE),
            most=most,
        )

    def __call__(self, size: Any, outputs: Any) -> Floats:
        """The error of all groups of a size (its place, from 0) with so many outputs each."""
        # The output of values that lie outside is no cell.
        cells = np.minimum(outputs - self.outside_outputs, self.most)
        return self.weights[size] * worst_errors(cells, self.ratios[size])

    def total(self, outputs: Sequence[int]) -> float:
        """The error of all groups, with one number of outputs for each size."""
        every_size = np.arange(len(outputs))
        return float(self(every_size, np.array(outputs)).sum())


def worst_errors(outputs: Integers, ratios: Any) -> Floats:
    """The largest error, as a share of the span, that the widest layout leaves.

    Parameters
    ----------
    outputs
        Outputs allowed on a fibre, at least 1.
    ratios
        Span over sensitivity of the queries.
    """
    cuts = np.maximum(outputs - 1, 1)
    # `noiseless.lay_out`: either K equal cells, or cells of width S / (K - 1).
    cells = np.minimum(1 / outputs, 1 / np.minimum(ratios * cuts, LARGEST_LEVELS))
    return np.where(outputs > 1, cells, 1.0) / 2


# ---------------------------------------------------------------------- integer program

TIME_LIMIT = 30.0
"""Seconds of the search, which then returns the best choice so far and its bound."""

ROUNDING = 1e-9
"""Relative error of sums of doubles: bits of a product, or prices. Products this close to the total
are multiplied out."""

SCALE = 1000.0
"""The error of equal shares in the integer program. HiGHS solves it to 1e-6, which is `ROUNDING` of
this."""

GRID = 40
"""Numbers of outputs that are tried first for each size, spaced geometrically."""

MOST_OPTIONS = 100_000
"""Most numbers of outputs, of all sizes together, in a program."""

AT_ONCE = 20
"""Individuals over their budget that are added to the program at a time."""

WIDE = LARGEST_LEVELS + 1
"""An option is ``size * WIDE + outputs``; no layout makes cells for more outputs than this."""

ErrorOf = Callable[[Integers, Integers], Floats]
"""The error of all groups of some sizes (their places, from 0) with so many outputs each."""


def least_error(
    error: ErrorOf,
    patterns: Integers,
    total: int,
    shares: Sequence[int],
    *,
    fewest: int = 1,
    time_limit: float = TIME_LIMIT,
) -> tuple[list[int], float]:
    """The outputs of least total error whose product for any individual is at most `total`.

    Parameters
    ----------
    error
        The error of all groups of some sizes with some numbers of outputs.
    patterns : (k, s) integers
        For each kind of individual, in how many groups of each size it takes part.
    total
        Outputs of all answers of one individual together.
    shares
        Outputs that keep the budget: the choice to improve on.
    fewest
        No answer has fewer outputs.

    Returns
    -------
    outputs, bound
        The outputs, and a lower bound on the error of every choice: their own error if it is
        proven to be the least.
    """
    deadline = time.monotonic() + time_limit
    model, best = _first_program(error, patterns, total, shares, fewest)
    lower = 0.0
    while True:
        seconds_left = deadline - time.monotonic()
        if seconds_left <= 0 or model.options.size > MOST_OPTIONS:
            break
        program = model.program()
        prices = model.bit_prices(program)
        lower = max(lower, prices.bound)
        start = np.isin(model.options, best).astype(np.float64)
        with solver_failures():
            solution = solve_program(program, time_limit=seconds_left, start=start)
        choice = model.options[np.flatnonzero(np.rint(solution.x))]
        heaviest, product = largest_product(patterns, (choice % WIDE).tolist())
        # Individuals without a row, or a row of doubles that lets a product pass.
        if product > total:
            model.exclude(choice, heaviest)
            continue
        if model.cost(choice).sum() <= model.cost(best).sum():
            best = choice
        # A choice better than the best one has an error between `lower` and that of the best.
        gap = model.cost(best).sum() / model.unit - lower + ROUNDING * SCALE
        has_new_options = model.add_options(prices.by_size, gap)
        if solution.optimal and not has_new_options:
            # Every option that a better choice could have was in the program, which is solved.
            lower = math.inf
            break
    least = float(model.cost(best).sum())
    return (best % WIDE).tolist(), min(max(lower, 0.0) * model.unit, least)


def largest_product(patterns: Integers, outputs: Sequence[int]) -> tuple[int, int]:
    """The individual (row of `patterns`) with the largest product of outputs, and the product."""
    # The products may have thousands of digits, so only the largest by their logarithms are
    # multiplied out.
    bits = patterns @ np.log2(np.array(outputs, dtype=np.float64))
    near = np.flatnonzero(bits >= bits.max() - ROUNDING * (1 + bits.max()))
    largest = (0, 0)
    for row in near.tolist():
        product = 1
        for number, times in zip(outputs, patterns[row].tolist(), strict=True):
            product *= number**times
        # Of equal products the last row, as a maximum of pairs has it.
        largest = max(largest, (product, row))
    product, row = largest
    return row, product


def _first_program(
    error: ErrorOf,
    patterns: Integers,
    total: int,
    shares: Sequence[int],
    fewest: int,
) -> tuple[_OutputsProgram, Integers]:
    """The program with a grid of options for each size, and the options of equal shares."""
    sizes = len(shares)
    tops: list[int] = []
    for times in patterns.max(axis=0):
        # An individual with so many answers of this size alone has no room for more.
        tops.append(min(LARGEST_LEVELS, int(fmpz(total).root(int(times)))))
    best = np.arange(sizes) * WIDE + np.minimum(shares, tops)
    grids = [best]
    for k, top in enumerate(tops):
        outputs = np.geomspace(min(fewest, top), top, GRID).astype(np.int64)
        grids.append(k * WIDE + outputs)
    heaviest, _ = largest_product(patterns, (best % WIDE).tolist())
    model = _OutputsProgram(
        error=error,
        patterns=patterns,
        bits=math.log2(total),
        fewest=fewest,
        tops=tops,
        unit=1.0,
        options=np.unique(np.concatenate(grids)),
        rows=[heaviest],
    )
    model.unit = float(model.cost(best).sum() or 1.0) / SCALE
    return model, best


@dataclass
class _OutputsProgram:
    """The integer program, which grows by options and by individuals over their budget.

    `least_error` repeats three steps until nothing is added: it solves `program`, excludes a choice
    over the total (`exclude`), or adds the options that a better choice may have (`add_options`).
    `error`, `patterns` and `fewest` are those of `least_error`.

    Parameters
    ----------
    bits
        log2 of the most outputs of one individual.
    tops
        The largest number of outputs of each size: one individual's answers have no room for more.
    unit
        The error that the program counts as one.
    options
        The options (see `WIDE`) that the program chooses from, sorted.
    rows
        Kinds of individuals whose budget is a row of the program.
    excluded
        Choices whose product is over the total by less than doubles can tell, each with a pattern
        that proves it.
    """

    error: ErrorOf
    patterns: Integers
    bits: float
    fewest: int
    tops: list[int]
    unit: float
    options: Integers
    rows: list[int]
    excluded: list[tuple[Integers, Integers]] = field(default_factory=list)

    def cost(self, options: Integers) -> Floats:
        """The error of options."""
        size, outputs = np.divmod(options, WIDE)
        return self.error(size, outputs)

    def priced(self, size: int, price: float) -> tuple[Integers, Floats]:
        """All options of a size, and their errors (in units) with `price` for every bit."""
        lowest = min(self.fewest, self.tops[size])
        outputs = np.arange(lowest, self.tops[size] + 1)
        options = size * WIDE + outputs
        return options, self.cost(options) / self.unit + price * np.log2(outputs)

    def program(self) -> Program:
        """The program: one option for each size, within the bits of all `rows`, none excluded."""
        size, outputs = np.divmod(self.options, WIDE)
        matrix = SparseRows()

        # A row has a coefficient for every option, most of them zero.
        def add_row(coefficients: NDArray[Any], lower: float, upper: float) -> None:
            used = np.flatnonzero(coefficients)
            matrix.add(used.tolist(), coefficients[used].tolist(), lower, upper)

        # Exactly one option for each size. Options are sorted, so the last one has the last size.
        for place in range(int(size[-1]) + 1):
            add_row(1.0 * (size == place), 1.0, 1.0)
        # A little more room than the budget has, so that rounding excludes no choice within it.
        room = self.bits + ROUNDING * (1 + self.bits)
        for row in self.rows:
            add_row(self.patterns[row][size] * np.log2(outputs), -math.inf, room)
        for pattern, choice in self.excluded:
            # As many outputs or more, for every size in the pattern, are over the total as well.
            as_large = (outputs >= (choice % WIDE)[size]) & (pattern[size] > 0)
            add_row(1.0 * as_large, -math.inf, np.count_nonzero(pattern) - 1.0)
        ones = np.ones(self.options.size)
        costs = self.cost(self.options) / self.unit
        return Program(costs, 0 * ones, ones, matrix, ones.astype(np.bool_))

    def bit_prices(self, program: Program) -> _BitPrices:
        """The prices of a bit of each individual of `rows` in the relaxation, and their bound."""
        with solver_failures():
            relaxed = solve_program(replace(program, integer=None))
        # The rows of the sizes come first. A price is the negative dual value of a budget's row;
        # the bound holds for every price that is not negative.
        first = len(self.tops)
        prices = np.maximum(-relaxed.prices[first : first + len(self.rows)], 0.0)
        by_size = (prices @ self.patterns[self.rows]).tolist()
        least_priced = 0.0
        for size, price in enumerate(by_size):
            least_priced += self.priced(size, price)[1].min()
        return _BitPrices(by_size, least_priced - prices.sum() * self.bits)

    def add_options(self, by_size: Sequence[float], gap: float) -> bool:
        """Add every option whose priced error is within `gap` of the least; whether any is new."""
        before = self.options.size
        for size, price in enumerate(by_size):
            options, priced = self.priced(size, price)
            within_gap = options[priced <= priced.min() + gap]
            self.options = np.union1d(self.options, within_gap)
        return self.options.size > before

    def exclude(self, choice: Integers, heaviest: int) -> None:
        """Add rows that exclude a choice over the total, as the individual `heaviest` shows."""
        spent = self.patterns @ np.log2(choice % WIDE)
        # Several at a time, for every row costs another solve.
        worst: list[int] = []
        for k in np.argsort(-spent)[:AT_ONCE].tolist():
            if spent[k] > self.bits and k not in self.rows:
                worst.append(k)
        if worst:
            self.rows += worst
        else:
            # So little over the total that a row of doubles lets it pass.
            self.excluded.append((self.patterns[heaviest], choice))


@dataclass(frozen=True)
class _BitPrices:
    """Prices from the relaxation, for a bit of an answer of each size: (s,).

    `bound` is that of the module docstring on the error of every choice, in units of the program.
    """

    by_size: list[float]
    bound: float
