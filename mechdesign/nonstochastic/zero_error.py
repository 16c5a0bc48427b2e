"""Zero-error communication through a channel that is known by its joint range alone (bits).

Two inputs are confused if they share an output. A code of k uses is a set of words of k inputs of
which no two are equal or confused in every place. The zero-error capacity is

    C0 = limit for k -> infinity of log2(size of the largest code of k uses) / k

(Farokhi 2019, eq. (13)). `capacity_bounds` encloses it; the later steps are for channels where the
first two do not meet:

1. Below: the largest code of one use, by integer program (`one_shot_code`).
2. Above: log2 of the total of a fractional cover (`fractional_cover`), weights c_y >= 0 of outputs
   whose sum over [[Y|x]], the outputs that x can have, is 1 or more for every input x (Shannon
   1956; in this form in section I of Lovász 1979).
3. Above: log2 of the theta number, the least of the largest eigenvalues of the symmetric matrices
   that are one on the diagonal and between inputs that are not confused (`theta_bound`; Lovász
   1979).
4. Below: codes of two and three uses.

Solvers propose, and every bound of C0 is proven without them: codes are checked, covers are exact
fractions, and the theta number is enclosed in balls (docs/explanation/ranges-theory.md, 'Zero-error
capacity').

The pentagon shows all of them: five inputs, each confused with its two neighbours. One use has a
code of 2 inputs, and the cover is 5/2. Two uses have a code of 5 words, and the theta number is the
root of 5; so C0 is log2(5) / 2 exactly.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from mechdesign.core.balls import log2_above, precision
from mechdesign.core.balls import upper as upper_end
from mechdesign.core.errors import InputError, SolverFailure
from mechdesign.nonstochastic.ranges import JointRange, overlap_partition, product
from mechdesign.nonstochastic.solver_failures import solver_failures
from solvers.programs import (
    INTEGRALITY,
    Program,
    SparseRows,
    solve_program,
    theta_matrix,
)

LARGEST_PROGRAM = 200_000
"""Most pairs (non-zeros) of a channel that HiGHS gets; beyond it an answer would take minutes."""

COVER_UNITS = 2**40
"""A float cover is rounded up to multiples of one over this, and then proven exactly."""

LARGEST_THETA = 64
"""Most inputs of a channel whose theta number is computed, which takes some 5 s for 64."""

BALL_BITS = 128
"""Precision of the residue that proves a largest eigenvalue: far more than that of its doubles."""

LARGEST_POWER = 4_000
"""Most pairs of several uses together whose codes are searched for: the MILP takes seconds."""

MOST_USES = 3
"""Most uses of the channel in one word. More helped no small channel that was tried, and the
program grows exponentially with them."""

ROUNDING = 1e-9
"""Relative; a power in doubles is nearer to the true one."""

POWER_TIME = 10.0
"""Seconds for the codes of several uses. The best set so far is a code all the same."""

SIMPLE_DENOMINATOR = 5040
"""Largest denominator of a simple cover. Optimal covers of small channels have small denominators
(5/2 in all for the pentagon), and 5040 = 7! is divisible by the first ten integers."""


@dataclass(frozen=True)
class OneShotCode:
    """The largest set of inputs that one use of the channel never confuses.

    `proof` is the source of `upper_bound` where the code meets it: ``"cover"`` for the fractional
    cover, ``"solver"`` for the bound of the MILP. It is ``"none"`` where the code is smaller.
    """

    codewords: tuple[Hashable, ...]
    upper_bound: int
    proof: str

    @property
    def size(self) -> int:
        """Number of codewords."""
        return len(self.codewords)

    @property
    def is_optimal(self) -> bool:
        """Whether the size meets the upper bound."""
        return self.size == self.upper_bound


@dataclass(frozen=True)
class CapacityBounds:
    """Bounds of the zero-error capacity in bits per use, `lower` <= C0 <= `upper`.

    `code` is the best code found, of words of `uses` inputs. `cover` and `theta` are upper bounds
    of 2^C0. Each is None if it was not computed.
    """

    lower: float
    upper: float
    code: OneShotCode | None
    cover: Fraction | None
    uses: int = 1
    theta: float | None = None


def capacity_bounds(joint: JointRange, *, time_limit: float = 60.0) -> CapacityBounds:
    """Lower and upper bounds of the zero-error capacity C0, in bits per use.

    A channel of at most `LARGEST_PROGRAM` pairs gets its best one-shot code and an exact fractional
    cover. Where they do not meet, codes of several uses and the theta number (for at most
    `LARGEST_THETA` inputs) are tried. A larger channel gets maximin information as lower bound, and
    the smaller of L0(Y;X) and L*(X -> Y) as upper bound.
    """
    if joint.n_pairs > LARGEST_PROGRAM:
        # One input of each class of the overlap partition is a code.
        classes, _ = overlap_partition(joint)
        lower, _ = _enclosed_log2(Fraction(classes))
        _, upper = _enclosed_log2(min(_by_outputs(joint), _by_maximal_leakage(joint)))
        return CapacityBounds(lower, upper, code=None, cover=None)

    # One use of the channel: a code from below, and a cover from above. A fractional cover of
    # several uses is no better than that of one, so it is computed once.
    code = one_shot_code(joint, time_limit=time_limit)
    cover = fractional_cover(joint)
    uses = 1
    lower, _ = _enclosed_log2(Fraction(code.size))
    _, upper = _enclosed_log2(cover)

    # Where they do not meet, a better upper bound, and longer codes.
    theta: float | None = None
    if code.size < cover and joint.shape[0] <= LARGEST_THETA:
        theta = theta_bound(joint)
        _, theta_upper = _enclosed_log2(Fraction(theta))
        upper = min(upper, theta_upper)
    for length in range(2, MOST_USES + 1):
        if lower >= upper or joint.n_pairs**length > LARGEST_POWER:
            break
        # No code of this length has more words than the upper bound allows. Often so many
        # would be no gain, and a search for them takes seconds.
        allowed = math.floor(2.0 ** (upper * length) * (1.0 + ROUNDING))
        if allowed <= code.size ** (length / uses):
            continue
        longer = one_shot_code(
            joint, uses=length, time_limit=min(time_limit, POWER_TIME)
        )
        # More bits per use than the best code so far: log2(longer) / length > log2(code) / uses.
        if longer.size > code.size ** (length / uses):
            code = longer
            uses = length
            lower, _ = _enclosed_log2(Fraction(longer.size), length)
    # The enclosures of one and the same number overlap by a rounding.
    return CapacityBounds(lower, max(upper, lower), code, cover, uses, theta)


def one_shot_code(
    joint: JointRange, *, uses: int = 1, time_limit: float = 60.0
) -> OneShotCode:
    """The independence number of the confusability graph, by MILP, with the code that attains it.

    The graph joins inputs that share an output. The MILP takes most inputs such that each output
    belongs to one of them at most. Its bound is rounded down to a whole number, with HiGHS's own
    tolerance for integers.

    Parameters
    ----------
    uses
        The channel is used so often, independently, and codewords are tuples.
    time_limit
        Seconds for the MILP.

    Raises
    ------
    InputError
        If the channel is too large, or `uses` or `time_limit` is not positive.
    SolverFailure
        If HiGHS stops without a usable code.
    """
    if uses < 1 or not time_limit > 0:
        raise InputError(
            f"uses ({uses}) and time_limit ({time_limit:g} s) must be positive"
        )
    power = joint
    for _ in range(uses - 1):
        power = product(power, joint)
    if power.n_pairs > LARGEST_PROGRAM:
        raise InputError(
            f"the channel has {power.n_pairs:,} pairs, more than the {LARGEST_PROGRAM:,} of a "
            "MILP; use capacity_bounds, which falls back on leakages"
        )
    values, bound = _largest_packing(power, time_limit)
    inputs = np.flatnonzero(values > 0.5)
    used = np.isin(power.rows, inputs)
    # Checked without the solver: no output belongs to two codewords.
    if inputs.size == 0 or int(np.bincount(power.columns[used]).max()) > 1:
        raise SolverFailure(
            "HiGHS returned inputs that share an output; give it a longer time_limit"
        )
    # The cover is exact, so it is the better proof of the two.
    by_cover = math.floor(fractional_cover(power))
    by_solver = math.floor(bound + INTEGRALITY)
    if inputs.size == by_cover:
        proof = "cover"
    elif inputs.size == by_solver:
        proof = "solver"
    else:
        proof = "none"
    codewords = tuple(power.x_symbols[i] for i in inputs.tolist())
    upper_bound = max(min(by_cover, by_solver), inputs.size)
    return OneShotCode(codewords, upper_bound, proof)


def fractional_cover(joint: JointRange) -> Fraction:
    """The exact total weight, at least 2^C0, of a fractional cover that HiGHS proposes.

    A cover gives weights to outputs, such that the outputs of every input weigh 1 together. Inputs
    of a code share no output, so there are at most as many as all outputs weigh; and weights of
    several uses multiply (Shannon 1956).

    Raises
    ------
    InputError
        If the channel has more than `LARGEST_PROGRAM` pairs.
    """
    if joint.n_pairs > LARGEST_PROGRAM:
        raise InputError(
            f"the channel has {joint.n_pairs:,} pairs, more than {LARGEST_PROGRAM:,}; use leakages"
        )
    weights = np.maximum(_smallest_cover(joint), 0.0).tolist()
    # Rounding to simple fractions recovers an optimum exactly where that has small denominators:
    # HiGHS's 0.49999999 for the pentagon becomes 1/2. Rounding up always gives a cover.
    simple = [Fraction(w).limit_denominator(SIMPLE_DENOMINATOR) for w in weights]
    fine = [Fraction(math.ceil(w * COVER_UNITS), COVER_UNITS) for w in weights]
    # Two leakages bound the cover as well, and need no solver.
    totals = [_by_outputs(joint), _by_maximal_leakage(joint)]
    for cover in (simple, fine):
        total = _covering_total(joint, cover)
        if total is not None:
            totals.append(total)
    return min(totals)


def theta_bound(joint: JointRange) -> float:
    """A proven upper bound on the theta number of the confusability graph of a channel.

    Any matrix of the kind that the module describes proves a bound by its largest eigenvalue, and
    Clarabel proposes one, M (`solvers.programs`). Its eigenvalues in doubles prove nothing.
    But whatever t and F are, M = t I - F F' - R has no eigenvalue above t + |R|, for F F' has none
    below 0. The Frobenius norm |R| is enclosed in balls.

    Raises
    ------
    InputError
        If the channel has more than `LARGEST_THETA` inputs.
    """
    import flint

    size = joint.shape[0]
    # The program has size^2 variables.
    if size > LARGEST_THETA:
        raise InputError(
            f"the channel has {size} inputs, and {LARGEST_THETA} is the most for a theta number"
        )
    # Two inputs are confused where their rows of the incidence have an output in common.
    incidence = joint.incidence.astype(np.int64)
    confused = np.argwhere(np.triu((incidence @ incidence.T).toarray() > 0, 1))
    with solver_failures():
        matrix = theta_matrix(size, confused)
    # With t the largest eigenvalue in doubles and F = V sqrt(t I - values), R is zero but for
    # rounding.
    values, vectors = np.linalg.eigh(matrix)
    top = float(values[-1])
    with precision(BALL_BITS):
        proposed = flint.arb_mat(matrix.tolist())
        factor = flint.arb_mat((vectors * np.sqrt(top - values)).tolist())
        diagonal = flint.arb_mat((np.eye(size) * top).tolist())
        residue = diagonal - proposed - factor * factor.transpose()
        squares = flint.arb(0)
        for entry in residue.entries():
            squares += abs(entry).upper() ** 2
        bound = upper_end(squares.sqrt() + top)
    # Theta is never above the number of inputs, which also holds for a ball that bounds nothing.
    return min(bound, float(size))


def _by_outputs(joint: JointRange) -> Fraction:
    """2^L0(Y;X), at least 2^C0: a cover by all outputs, each with weight 1 / min |[[Y|x]]|."""
    return Fraction(joint.reverse.x_total, joint.reverse.smallest_x)


def _by_maximal_leakage(joint: JointRange) -> Fraction:
    """2^L*(X -> Y), at least 2^C0: a cover by one output with the fewest inputs, and by one more
    for each of the other inputs.
    """
    return Fraction(joint.x_total - joint.smallest_x + 1)


def _covering_total(joint: JointRange, cover: list[Fraction]) -> Fraction | None:
    """Total weight of a cover, scaled so that the least covered input is covered once.

    It is None if an input is not covered at all.
    """
    covered = [Fraction(0)] * joint.shape[0]
    for i, j in zip(joint.rows.tolist(), joint.columns.tolist(), strict=True):
        covered[i] += cover[j]
    least = min(covered)
    if least <= 0:
        return None
    return sum(cover, Fraction(0)) / least


def _enclosed_log2(value: Fraction, uses: int = 1) -> tuple[float, float]:
    """Bounds of log2(value) / uses, equal where value is a power of two and uses is 1."""
    # 0.0 - 0.0 is 0.0, where a minus sign would print -0.0.
    low = 0.0 - log2_above(1 / value)
    high = log2_above(value)
    if uses == 1:
        return low, high
    # A quotient of doubles is off by less than the step to the next double.
    return math.nextafter(low / uses, 0.0), math.nextafter(high / uses, math.inf)


def _largest_packing(joint: JointRange, time_limit: float) -> tuple[Any, float]:
    """The largest set of inputs that share no output, by MILP: (|X|,) indicators, and its bound."""
    most_one_input = _sums_of_neighbours(joint.reverse, -math.inf, 1.0)
    ones = np.ones(joint.shape[0])
    # Every variable is an integer between 0 and 1.
    program = Program(-ones, 0.0 * ones, ones, most_one_input, ones > 0.0)
    with solver_failures():
        solution = solve_program(program, time_limit=time_limit)
    # The program minimises the negative number of inputs.
    return solution.x, -solution.bound


def _smallest_cover(joint: JointRange) -> Any:
    """The (|Y|,) weights of outputs, of least total, that give every input a weight of 1 or more.

    This is the dual of the linear relaxation of `_largest_packing` (Shannon 1956).
    """
    one_or_more = _sums_of_neighbours(joint, 1.0, math.inf)
    ones = np.ones(joint.shape[1])
    program = Program(ones, 0.0 * ones, ones, one_or_more, None)
    with solver_failures():
        return solve_program(program, time_limit=math.inf).x


def _sums_of_neighbours(joint: JointRange, lower: float, upper: float) -> SparseRows:
    """For every x, bounds on the sum of a variable over the outputs y of [[Y|x]]."""
    n_rows = joint.x_total
    return SparseRows(
        lower=[lower] * n_rows,
        upper=[upper] * n_rows,
        starts=np.searchsorted(joint.rows, np.arange(n_rows + 1)).tolist(),
        columns=joint.columns.tolist(),
        values=[1.0] * joint.n_pairs,
    )
