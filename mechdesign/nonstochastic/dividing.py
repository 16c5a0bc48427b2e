"""A total budget divided among answers of groups of unlike sizes, so that the sum of their largest errors is least.

The outputs of all answers of one individual multiply (Farokhi 2020, Theorem 6), so for everybody their product may be
floor(2^total) at most. An integer program chooses one number of outputs for each size of group, from those that matter:
the prices of its relaxation bound every other choice from below. Products are compared in integers.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from flint import fmpz
from numpy.typing import NDArray

from mechdesign.nonstochastic.answering import Floats, Groups
from mechdesign.nonstochastic.gaps import solved
from mechdesign.nonstochastic.levels import epsilon_for
from mechdesign.nonstochastic.mechanism_file import (
    TOLD,
    MechanismFile,
    SizedQuantizer,
    build_query,
)
from mechdesign.nonstochastic.noiseless import LARGEST_LEVELS
from mechdesign.nonstochastic.sizes import sized_quantizer
from solvers.programs.highs import Program, SparseRows, solve_program

TIME_LIMIT = 60.0
"""Seconds; then the best choice found is taken, and the bound told."""

ROUNDING = 1e-9
"""Relative, of sums of doubles: bits of a product, or prices. Products this close to the total are multiplied out."""

SCALE = 1000.0
"""The error of equal shares in the integer program, which HiGHS solves to 1e-6: so to `ROUNDING` of it."""

GRID = 40
"""Numbers of outputs that are tried first for each size, spaced geometrically."""

MOST_OPTIONS = 100_000
"""Numbers of outputs, of all sizes together, that a program may have."""

AT_ONCE = 20
"""Individuals over their budget that are added to the program at a time."""

WIDE = LARGEST_LEVELS + 1
"""An option is ``size * WIDE + outputs``; no layout makes cells for more outputs than this."""

Integers = NDArray[np.int64]


def worst_errors(outputs: Integers, ratios: Any) -> Floats:
    """The largest error, as a share of the span, that the widest layout leaves; `ratios` are span over sensitivity."""
    cuts = np.maximum(outputs - 1, 1)
    cells = np.minimum(1 / outputs, 1 / np.minimum(ratios * cuts, LARGEST_LEVELS))
    return np.where(outputs > 1, cells, 1.0) / 2


def largest_product(patterns: Integers, outputs: Sequence[int]) -> tuple[int, int]:
    """The individual (row) whose answers have the most outputs together, and their number, exactly."""
    bits = patterns @ np.log2(np.array(outputs, dtype=np.float64))
    near = np.flatnonzero(bits >= bits.max() - ROUNDING * (1 + bits.max())).tolist()
    product, row = max(
        (math.prod(map(pow, outputs, patterns[row].tolist())), row) for row in near
    )
    return row, product


def largest_answers(
    groups: Groups, sized: Mapping[int, SizedQuantizer]
) -> dict[int, int]:
    """The answers, by size of group, of the individual whose outputs have the largest product."""
    sizes, patterns = groups.patterns()
    row, _ = largest_product(
        patterns, [sized[size].certificate.outputs for size in sizes]
    )
    return {
        size: times
        for size, times in zip(sizes, patterns[row].tolist(), strict=True)
        if times
    }


def divided(
    made: MechanismFile, groups: Groups, total: int, share: int, how: str
) -> tuple[MechanismFile, str]:
    """The mechanism with quantisers of least total error (`how` as in `DIVIDED`), and what is to be told of them."""
    sizes, patterns = groups.patterns()
    queries = [build_query(made.query, size, made.domain) for size in sizes]
    spans = [query.range[1] - query.range[0] for query in queries]
    # A span is a whole number of sensitivities wherever all individuals are alike.
    ratios = np.array(
        [
            span // query.sensitivity if span else 1
            for query, span in zip(queries, spans, strict=True)
        ]
    )
    weights = (
        np.array([*map(float, spans)]) * np.unique(groups.sizes, return_counts=True)[1]
    )
    told, most = made.outside in TOLD, 2 if made.query == "count" else LARGEST_LEVELS

    def error(size: Any, outputs: Any) -> Floats:
        return weights[size] * worst_errors(
            np.minimum(outputs - told, most), ratios[size]
        )

    shares = [share] * len(sizes)
    fewest = share if how == "lifted" else 1 + told
    outputs, bound = least_error(error, patterns, total, shares, fewest=fewest)
    sized = [
        sized_quantizer(replace(made, epsilon=epsilon_for(own)), size)
        for size, own in zip(sizes, outputs, strict=True)
    ]
    paid, equal = (
        float(error(np.arange(len(sizes)), np.array(own)).sum())
        for own in (outputs, shares)
    )
    sure = (
        ""
        if paid <= bound
        else f", while it is only known that none is below {bound:.6g}"
    )
    notice = f"the largest errors of all answers add up to {paid:.6g}, by equal shares to {equal:.6g}{sure}"
    made = replace(
        made,
        epsilon=epsilon_for(max(outputs)),
        provenance=made.provenance | {"split": how},
    )
    return replace(made, mechanisms=tuple(sized)), notice


def least_error(
    error: Callable[[Integers, Integers], Floats],
    patterns: Integers,
    total: int,
    shares: Sequence[int],
    *,
    fewest: int = 1,
    time_limit: float = TIME_LIMIT,
) -> tuple[list[int], float]:
    """The outputs of least total error whose product over the answers of any individual is at most `total`.

    Parameters
    ----------
    error
        The error of all groups of these sizes (their places, from 0) with these numbers of outputs, each.
    patterns : (k, s) integers
        For each kind of individual, in how many groups of each size it takes part.
    shares
        Outputs that keep the budget: the choice to improve on.
    fewest
        No answer has less than so many.

    Returns
    -------
    The outputs, and what the error of no choice is below: its own error if it is proven to be the least.
    """
    many, bits, ends = len(shares), math.log2(total), time.monotonic() + time_limit
    tops = [
        min(LARGEST_LEVELS, int(fmpz(total).root(int(times))))
        for times in patterns.max(axis=0)
    ]
    best = np.arange(many) * WIDE + np.minimum(shares, tops)

    def cost(options: Integers) -> Floats:
        return error(*np.divmod(options, WIDE))

    def priced(size: int, price: float) -> tuple[Integers, Floats]:
        every = size * WIDE + np.arange(min(fewest, tops[size]), tops[size] + 1)
        return every, cost(every) / unit + price * np.log2(every % WIDE)

    grids = [
        k * WIDE + np.geomspace(min(fewest, top), top, GRID).astype(np.int64)
        for k, top in enumerate(tops)
    ]
    chosen, unit, lower = (
        np.union1d(np.concatenate(grids), best),
        float(cost(best).sum() or 1.0) / SCALE,
        0.0,
    )
    rows, over = (
        [largest_product(patterns, (best % WIDE).tolist())[0]],
        list[tuple[int, Integers]](),
    )
    while (left := ends - time.monotonic()) > 0 and chosen.size <= MOST_OPTIONS:
        program = _program(
            chosen, cost(chosen) / unit, [patterns[row] for row in rows], bits, over
        )
        # Whatever the prices of a bit are, they bound every choice from below.
        prices = solved(solve_program, replace(program, integer=None)).prices
        prices = np.maximum(-prices[many : many + len(rows)], 0.0)
        extra = (prices @ patterns[rows]).tolist()
        lower = max(
            lower,
            sum(priced(*each)[1].min() for each in enumerate(extra))
            - prices.sum() * bits,
        )
        start = np.isin(chosen, best).astype(np.float64)
        found = solved(solve_program, program, time_limit=left, start=start)
        outputs = chosen[np.flatnonzero(np.rint(found.x))]
        row, product = largest_product(patterns, (outputs % WIDE).tolist())
        if product > total:
            spent = patterns @ np.log2(outputs % WIDE)
            worst = [
                k
                for k in np.argsort(-spent)[:AT_ONCE].tolist()
                if spent[k] > bits and k not in rows
            ]
            # What is so little over the budget that doubles do not tell is left out by itself.
            over += [] if worst else [(patterns[row], outputs)]
            rows += worst
            continue
        best = outputs if cost(outputs).sum() <= cost(best).sum() else best
        gap, known = cost(best).sum() / unit - lower + ROUNDING * SCALE, chosen.size
        for every, price in map(priced, range(many), extra):
            chosen = np.union1d(chosen, every[price <= price.min() + gap])
        if found.optimal and chosen.size == known:
            lower = math.inf
            break
    return (best % WIDE).tolist(), min(max(lower, 0.0) * unit, float(cost(best).sum()))


def _program(
    chosen: Integers,
    costs: Floats,
    patterns: Sequence[Integers],
    bits: float,
    over: Sequence[Any],
) -> Program:
    """One of `chosen` for each size; `patterns` keep their bits, and what is known to be `over` them is left out."""
    (size, outputs), made, ones = (
        np.divmod(chosen, WIDE),
        SparseRows(),
        np.ones(chosen.size),
    )

    def add(values: NDArray[Any], lower: float, upper: float) -> None:
        used = np.flatnonzero(values)
        made.add(used.tolist(), values[used].tolist(), lower, upper)

    for place in range(int(size[-1]) + 1):
        add(ones * (size == place), 1.0, 1.0)
    for pattern in patterns:
        add(pattern[size] * np.log2(outputs), -math.inf, bits + ROUNDING * (1 + bits))
    for pattern, most in over:
        beyond = (outputs >= (most % WIDE)[size]) & (pattern[size] > 0)
        add(1.0 * beyond, -math.inf, np.count_nonzero(pattern) - 1.0)
    return Program(costs, 0 * ones, ones, made, ones.astype(np.bool_))
