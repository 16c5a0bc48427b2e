"""Noiseless privacy (Farokhi 2019): exact certificates, and quantisers for a budget.

A mechanism is epsilon-noiselessly private if its output takes at most 2^epsilon values as the data
of any one individual vary, for all data of the others (Definitions 1 and 2). With x_-i the data of
all individuals but i:

    |[[Y | x_-i]]| <= 2^epsilon for every i and every x_-i        (eq. (16))

A certificate is the largest of these numbers: counted, attained by a witness where it is exact, and
never taken from a theorem that only bounds it. The outputs of several mechanisms on one fibre are
at most the product of their numbers (Theorem 6).

Quantisers are designed from two numbers, the query's range R and its sensitivity S: every fibre
lies in an interval of length at most S, which meets at most min(q, ceil(q S / R) + 1) of q equal
cells (Theorem 8, corrected: docs/explanation/corrections.md, 'Noiseless privacy').

For example, the sum of two values in [0, 1] has R = 2 and S = 1. Four equal cells have width 1/2,
and an interval of length 1 meets at most ceil(4 / 2) + 1 = 3 of them: log2(3) bits.
`design_quantizer` lays the cells out by such a theorem (`lay_out`), and `certify` counts them again
on the query itself (`fibres`).

*Budgets* are in bits, and each allows a number of outputs. A mechanism keeps a budget of epsilon
bits if no individual can bring about more than 2^epsilon outputs (Farokhi 2019, Definition 1). So
only K = floor(2^epsilon) matters:

- `outputs_allowed` computes K, exactly, by interval arithmetic;
- `epsilon_for` goes back: log2 K, rounded upwards;
- `share_of` divides a total equally: the largest K with K^answers <= 2^total (Theorem 6);
- `smallest_cell` is the same budget for identifiable maps: ceil(n 2^-epsilon) of n symbols (Farokhi
  and Ding 2020, Definition 3);
- `promises` states what follows from K, the most outputs on a fibre (Farokhi 2019, Theorems 1 to 5,
  corrected). Leakages, capacity and tests are at most log2 K bits, and an estimate of a value that
  is uniform on a width w errs by w / (4 K) or more. All hold for product ranges: any value of one
  individual is possible together with any values of the others. The proofs are in
  docs/explanation/ranges-theory.md, 'What a number of outputs promises'.

For example, 1.6 bits allow K = 3 outputs, since 2^1.6 is 3.03. They promise leakages of at most
log2(3) = 1.58 bits, and errors of 10 / 12 or more on a width of 10. A total of 4 bits allows 16
outputs of all answers of one individual together; equal shares of three answers are 2 outputs each,
for 2^3 <= 16 < 3^3.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, get_args

from mechdesign.core.arguments import fraction_of
from mechdesign.core.balls import (
    FIRST_BITS,
    log2_above,
    log2_of_powers_above,
    precision,
)
from mechdesign.core.errors import InputError, SolverFailure
from mechdesign.core.wording import quoted
from mechdesign.nonstochastic.fibres import most_outputs
from mechdesign.nonstochastic.quantizers import (
    EvenThresholds,
    Quantizer,
    uniform_quantizer,
)
from mechdesign.nonstochastic.queries import (
    LinearQuery,
    Query,
    check_whole,
    exact_number,
)

# ------------------------------------------------------------------------------ budgets

LARGEST_EPSILON = 10_000
"""Largest budget, in bits. 2^epsilon is kept as an integer, and the total budget of a thousand
generous releases still fits."""

WORTH_A_NOTICE = Fraction(1, 10**6)
"""2^epsilon within this (relative) below an integer is most likely meant to be that integer."""

LARGEST_NAMED = 10**5
"""Above this number of outputs no particular integer is meant, and no notice names one."""


@dataclass(frozen=True)
class Allowance:
    """At most `outputs` = floor(2^epsilon) outputs, with a notice where 2^epsilon is rounded."""

    epsilon: Fraction
    outputs: int
    notice: str


def outputs_allowed(epsilon: object) -> int:
    """floor(2^epsilon), exactly, for epsilon in bits.

    Parameters
    ----------
    epsilon
        An integer, a float (taken as what its bits say), a Fraction or decimal text.

    Raises
    ------
    InputError
        If it is not a number, negative (fewer than one output) or above `LARGEST_EPSILON`.
    """
    value = _exact_budget(epsilon)
    if value.denominator == 1:
        # 2^epsilon is an integer, which no ball could tell from the numbers just below it.
        return 1 << value.numerator
    return _floor_of_power(value)


def epsilon_for(outputs: int) -> float:
    """The smallest double epsilon (bits) that allows `outputs` outputs: log2 rounded upwards.

    Raises
    ------
    InputError
        If `outputs` is not an integer between 1 and 2^`LARGEST_EPSILON`.
    """
    if check_whole("outputs", outputs) > 1 << LARGEST_EPSILON:
        # Python refuses to write integers of thousands of digits.
        raise InputError(
            f"outputs (some 2^{outputs.bit_length() - 1}) must be at most 2^{LARGEST_EPSILON}"
        )
    return log2_above(Fraction(outputs))


def allowance(epsilon: object) -> Allowance:
    """The outputs that `epsilon` bits allow, with a notice where 2^epsilon is rounded down."""
    value = _exact_budget(epsilon)
    outputs = outputs_allowed(value)
    if value.denominator == 1:
        return Allowance(value, outputs, "")
    if outputs >= LARGEST_NAMED:
        notice = "2^epsilon is not an integer; it is rounded down"
        return Allowance(value, outputs, notice)
    # 2^epsilon in millionths tells a budget such as log2(3), rounded, from one that means no
    # integer.
    scaled = _floor_of_power(value, WORTH_A_NOTICE.denominator)
    if scaled >= (outputs + 1) * (WORTH_A_NOTICE.denominator - 1):
        notice = (
            f"2^epsilon is just below {outputs + 1}, so {outputs} outputs are allowed; "
            f"for {outputs + 1} say epsilon {epsilon_for(outputs + 1)!r}"
        )
    else:
        power = scaled / WORTH_A_NOTICE.denominator
        notice = (
            f"2^epsilon = {power:.6g} is rounded down: {outputs} outputs are allowed"
        )
    return Allowance(value, outputs, notice)


def share_of(total_epsilon: object, answers: int) -> int:
    """The outputs of each answer by equal shares: the largest K with K^answers <= 2^total_epsilon.

    The outputs of all answers that one individual takes part in multiply (Farokhi 2019, Theorem 6).
    Of all divisions of a total, equal shares have the largest smallest number of outputs.
    """
    from flint import fmpz

    return int(fmpz(outputs_allowed(total_epsilon)).root(answers))


def smallest_cell(symbols: int, epsilon: object) -> int:
    """The least size of a cell of an epsilon-identifiable map, ``ceil(symbols * 2^-epsilon)``."""
    value = _exact_budget(epsilon)
    if value.denominator == 1:
        # The negative of a floor of a negative is a ceiling, in integers of any size.
        return max(1, -(-symbols // (1 << value.numerator)))
    # symbols * 2^-epsilon is irrational, so its ceiling is its floor plus one.
    return _floor_of_power(-value, symbols) + 1


def _exact_budget(epsilon: object) -> Fraction:
    """A budget as an exact number of bits from 0 to `LARGEST_EPSILON`."""
    try:
        value = fraction_of(epsilon)
    except InputError:
        raise InputError(
            f"--epsilon ({quoted(epsilon)}) must be a number of bits from 0 to {LARGEST_EPSILON}"
        ) from None
    if value < 0:
        raise InputError(
            f"--epsilon ({float(value):g}) allows fewer than one output (2^epsilon < 1); "
            "it must be 0 (one output, nothing released) or more"
        )
    if value > LARGEST_EPSILON:
        raise InputError(
            f"--epsilon ({float(value):g} bits) must be at most {LARGEST_EPSILON}: it limits "
            "nothing"
        )
    return value


def _floor_of_power(exponent: Fraction, scale: int = 1) -> int:
    """floor(scale * 2^exponent) for an exponent that is not an integer.

    Then 2^exponent is irrational, so an interval around it that is small enough holds no integer.
    Arb's balls are such intervals: the precision is doubled until both ends have the same floor.
    """
    import flint

    # The result has as many bits as its exponent and scale say; the others decide its floor.
    bits = FIRST_BITS + abs(int(exponent)) + scale.bit_length()
    while True:
        with precision(bits):
            exact = flint.arb(flint.fmpq(exponent.numerator, exponent.denominator))
            power = (exact * flint.arb.const_log2()).exp()
            # None while the ball reaches over an integer.
            floor = (power * scale).floor().unique_fmpz()
        if floor is not None:
            return int(floor)
        bits *= 2


@dataclass(frozen=True)
class RangePromise:
    """One promise: `bound` in `unit`, with the theorem of Farokhi 2019 that it rests on."""

    name: str
    theorem: str
    bound: float
    unit: str
    meaning: str


_PAIR_TEST = "test of two values"

_IN_BITS = (
    ("leakage", "Theorem 1", "non-stochastic leakage L0(Y;X_i), and so I* and L0s"),
    (
        "capacity",
        "Theorem 2",
        "zero-error capacity of repeated releases, per release",
    ),
    (
        "hypothesis test",
        "Theorem 3",
        "performance of any test on x_i, the others known",
    ),
    (
        _PAIR_TEST,
        "sharper than Theorem 3",
        "performance of a test between two values of x_i: two outputs at most can tell",
    ),
    (
        "maximal leakage",
        "Theorem 5",
        "stochastic maximal leakage under any prior",
    ),
)
"""The promises in bits: name, theorem of Farokhi 2019, and meaning."""


def promises(outputs: int, width: object = None) -> tuple[RangePromise, ...]:
    """The promises of a mechanism with at most `outputs` outputs on every fibre.

    Parameters
    ----------
    outputs
        K, from a certificate.
    width
        Length of the interval domain of one individual; adds the bound on the estimation error.
    """
    bits = epsilon_for(outputs)
    # Two values of one individual give two outputs at most, so at most two outputs settle which it
    # is; one output settles nothing.
    pair_bits = -math.inf
    if outputs > 1:
        pair_bits = min(bits, 1.0)
    promised: list[RangePromise] = []
    for name, theorem, meaning in _IN_BITS:
        bound = bits
        if name == _PAIR_TEST:
            bound = pair_bits
        promised.append(RangePromise(name, theorem, bound, "bits", meaning))
    if width is not None:
        exact_width = exact_number("width", width)
        # A value that is known already has no error to bound.
        if exact_width > 0:
            promised.append(_estimation_error(outputs, exact_width))
    return tuple(promised)


def _estimation_error(outputs: int, width: Fraction) -> RangePromise:
    """The promise about estimates of x_i, which lies in an interval of this width.

    Theorem 4, corrected: in each of the K cells the best guess is the middle, and equal cells make
    the sum smallest, so E >= width / (4 K), which K equal cells reach.
    """
    least = float(width / (4 * outputs))
    return RangePromise(
        name="estimation error",
        theorem="Theorem 4, corrected",
        # A lower bound, so it is rounded down.
        bound=math.nextafter(least, 0.0),
        unit="units of the column",
        meaning=(
            "least mean absolute error of any estimate of x_i, "
            "if x_i is uniform given the others"
        ),
    )


ASSUMPTIONS = (
    "each individual contributes one value to each answer; with more, budgets add (composition)",
    "the range was not taken from the data, and who is in the data and in which group is public",
    "any value of one individual is possible together with any values of the others",
)
"""Without these the guarantees do not hold; files and reports repeat them."""


# ------------------------------------------------------------------------- certificates


@dataclass(frozen=True)
class FibreCertificate:
    """The most outputs that one individual can bring about.

    Parameters
    ----------
    outputs
        Proven: no fibre has more.
    attained
        A fibre has this many; equal to `outputs` if the certificate is exact.
    witness
        A fibre with `attained` outputs, in words.
    """

    outputs: int
    attained: int
    witness: str

    @property
    def exact(self) -> bool:
        """Whether `outputs` is the maximum, not only a bound on it."""
        return self.outputs == self.attained

    @property
    def epsilon(self) -> float:
        """The smallest budget (bits, a double rounded upwards) that the mechanism keeps."""
        return epsilon_for(self.outputs)


def certify(query: Query, quantizer: Quantizer) -> FibreCertificate:
    """Count the most outputs that ``quantizer`` of ``query`` gives while one individual varies.

    Exact for linear queries (sums, means, counts, the identity), order statistics and medians,
    unless there are too many sums to list: then a proven bound.

    Raises
    ------
    InputError
        If the answers can leave the range of the quantiser.
    """
    lo, hi = query.range
    if lo < quantizer.lo or hi > quantizer.hi:
        raise InputError(
            f"the answers range over {float(lo):g} to {float(hi):g}, beyond the quantiser's "
            f"{float(quantizer.lo):g} to {float(quantizer.hi):g}; widen it"
        )
    if isinstance(query, LinearQuery):
        linear = query
        position = ""
    else:
        linear, position = query.largest_fibre
    count = most_outputs(linear, quantizer.thresholds)
    weight = linear.blocks[count.block].weight
    individual = f"an individual of weight {weight}, the others contribute {count.base}"
    if isinstance(query, LinearQuery):
        witness = individual
    elif query.middle > 1:
        witness = f"{position}; {individual}"
    else:
        # The answer is the individual's own value, so the places of the others are the witness.
        witness = position
    return FibreCertificate(count.outputs, count.attained, witness)


Layout = Literal["uniform", "widest", "levels"]
LAYOUTS: tuple[Layout, ...] = get_args(Layout)

LARGEST_LEVELS = 100_000
"""Most cells of a design: no release needs more than five digits, and thresholds are kept one by
one."""


@dataclass(frozen=True)
class QuantizerDesign:
    """A quantiser for a query, with its proof."""

    quantizer: Quantizer
    allowance: Allowance
    certificate: FibreCertificate


def uniform_levels(outputs: int, sensitivity: Fraction, span: Fraction) -> int:
    """The largest q with ``min(q, ceil(q S / R) + 1) <= outputs`` (1 for a constant query)."""
    if span == 0 or sensitivity == 0:
        return 1
    # q <= K fits whatever the fibres are; else ceil(q S / R) <= K - 1, so q <= (K - 1) R / S.
    return max(outputs, math.floor((outputs - 1) * span / sensitivity))


def lay_out(
    lo: Fraction, hi: Fraction, sensitivity: Fraction, outputs: int, layout: Layout
) -> Quantizer:
    """Thresholds such that an interval of length `sensitivity` meets at most `outputs` cells.

    Parameters
    ----------
    lo, hi
        The range of the answers.
    layout
        - "uniform": the most equal cells (`uniform_levels`).
        - "levels": the most cells of any widths.
        - "widest": the smallest widest cell, so the smallest worst-case error: `outputs` equal
          cells, or cells of width S / (K - 1), of which an interval of length S meets at most K.
    """
    if layout not in LAYOUTS:
        raise InputError(f"--layout ({layout!r}) must be one of {', '.join(LAYOUTS)}")
    span = hi - lo
    if outputs == 1 or span == 0 or sensitivity == 0:
        return Quantizer(lo, hi)
    outputs = min(outputs, LARGEST_LEVELS)
    # A larger sensitivity is safe and makes fewer cells: all layouts stay within LARGEST_LEVELS of
    # them.
    sensitivity = max(sensitivity, span * (outputs - 1) / LARGEST_LEVELS)
    if layout == "uniform":
        return uniform_quantizer(lo, hi, uniform_levels(outputs, sensitivity, span))
    if layout == "levels":
        return _most(lo, hi, sensitivity, outputs)
    # Cells of width S / (K - 1) would be wider than K equal ones.
    if span / outputs < sensitivity / (outputs - 1):
        return uniform_quantizer(lo, hi, outputs)
    # As many thresholds at this spacing as fit inside (lo, hi), the end cells equal.
    spacing = sensitivity / (outputs - 1)
    count = math.ceil(span / spacing)
    first = lo + (span - (count - 1) * spacing) / 2
    return Quantizer(lo, hi, EvenThresholds(first, spacing, count))


def _most(lo: Fraction, hi: Fraction, sensitivity: Fraction, outputs: int) -> Quantizer:
    """(K - 1) ceil(R / S) thresholds: groups of K - 1, each group S above the one before.

    No quantiser has more when the fibres are all intervals of length S: the thresholds j and
    j + K - 1 cannot be closer than S, so the first of group ceil(R / S) + 1 would be above hi.
    """
    groups = math.ceil((hi - lo) / sensitivity)
    # All groups lie inside the range if the first one fits into what the others leave of it. There
    # its thresholds are in the middle of K - 1 equal parts.
    room = (hi - lo) - (groups - 1) * sensitivity
    within = [room * (2 * b + 1) / (2 * (outputs - 1)) for b in range(outputs - 1)]
    cuts: list[Fraction] = []
    for group in range(groups):
        start = lo + group * sensitivity
        cuts += [start + offset for offset in within]
    return Quantizer(lo, hi, tuple(cuts))


def design_quantizer(
    query: Query, epsilon: object, *, layout: Layout = "widest"
) -> QuantizerDesign:
    """A quantiser that makes the query epsilon-noiselessly private, counted exactly afterwards.

    Parameters
    ----------
    query
        Any query; only its range and its sensitivity are used for the design.
    epsilon
        Budget in bits; floor(2^epsilon) outputs are allowed.
    layout
        See `lay_out`.

    Raises
    ------
    InputError
        If the budget is not usable.
    SolverFailure
        If the count exceeds the budget after all.
    """
    allowed = allowance(epsilon)
    lo, hi = query.range
    # An individual cannot move the answer farther than its whole range.
    sensitivity = min(query.sensitivity, hi - lo)
    quantizer = lay_out(lo, hi, sensitivity, allowed.outputs, layout)
    certificate = certify(query, quantizer)
    # The layouts keep the budget by theorem; the exact count has the last word all the same.
    if certificate.outputs > allowed.outputs:
        raise SolverFailure(
            f"the quantiser gives up to {certificate.outputs} outputs where {allowed.outputs} are "
            "allowed; please report it"
        )
    return QuantizerDesign(quantizer, allowed, certificate)


def composed_epsilon(releases: Iterable[tuple[int, int]]) -> float:
    """Bits of several releases together, rounded upwards (Theorem 6).

    It is log2 of the product of their outputs. Post-processing adds nothing (Theorem 7).

    Parameters
    ----------
    releases
        The most outputs on a fibre of each release, and how often it was made.

    Raises
    ------
    InputError
        If one of these numbers is not an integer of at least 1.
    """
    pairs: list[tuple[int, int]] = []
    for outputs, times in releases:
        pairs.append((check_whole("outputs", outputs), check_whole("times", times)))
        # Refuses more outputs than any budget allows.
        epsilon_for(outputs)
    return log2_of_powers_above(pairs)
