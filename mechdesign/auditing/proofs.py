"""The bound of a channel of least cost, proven again from the multipliers in its file.

The cost of a channel on own symbols is sum over x, y of F(x, y) d(x, y), with F(x, y) = P(x)
W(y|x). With L_s(x) = P(s|x) / P(s) the promise limits every output y,

    a_s sum_x F(x, y) <= sum_x L_s(x) F(x, y) <= b_s sum_x F(x, y),

and the quotients of lifts by R. Take any numbers f_y, lam_sy and rho_sy, with end_sy = a_s for a
positive lam and b_s for a negative one, and let

    E(x, y) = d(x, y) - f_y - sum_s lam_sy (L_s(x) - end_sy) - sum_s rho_sy L_s(x).

If for every y the positive rho sum to at least R times the negative ones, sum_s rho_sy l(s, y) is
not negative, and neither is lam_sy (l(s, y) - end_sy). So every private channel costs at least

    sum_x P(x) (stay_x E(x, x) + (1 - stay_x) min_y E(x, y)) + sum_y f_y q_y,

where stay_x is the least share that stays and q_y the frequency of y (f = 0 where it is free).
`cost_bound` computes this one pass over all pairs. E is computed in doubles, less all that rounding
may have added (`ERROR`), the sums over x and y are exact.

Average budgets add slopes with a price to E (`averages`).

After earlier releases L_s(x) is P(s, x | u) / (P(s) P(x)), and the ends are multiplied by C(x) =
P(x | u) / P(x), which is 1 without them (`mechanisms.posteriors`).

For example, two symbols of mass 1/2, each of which has one of two secrets alone, cost 1 where they
change, and lifts are at most 3/2. With lam = -1/2 for the secret of y itself, E(y, y) is
1/2 (2 - 3/2) = 1/4 and E(x, y) = 1 - 1/2 3/2 = 1/4 for the other x: the bound is 1/4.

It holds for whatever multipliers a file has: forged ones prove less. The limits, the costs and the
frequencies come from the table, the promise and the objective of the file, not from the proof; but
for `costs` and `cells`, which say what the stated cost is a cost of.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mechdesign.auditing.averages import Charges, charges_of
from mechdesign.auditing.lifts import Demand, demands_of
from mechdesign.auditing.strata import members_of, strata_of, stratum_demands
from mechdesign.channel.channel import Channel
from mechdesign.channel.file import file_digest
from mechdesign.channel.proof import CellCost, CostProof
from mechdesign.channel.record import RELATIVE
from mechdesign.core.arguments import fraction_of
from mechdesign.core.balls import FIRST_BITS, lower, precision, quotient_above, upper
from mechdesign.core.errors import InputError, ProofOutOfTime
from mechdesign.core.integers import NOWHERE
from mechdesign.core.wording import quoted
from mechdesign.tables.joint import Joint
from mechdesign.tables.row_restrictions import forbidden_pairs, never_released
from mechdesign.tables.variable import numbers_of

Array = NDArray[np.float64]
Places = NDArray[np.int64]

ERROR = 2.0**-50
"""Error of a term of E, relative to its largest modulus in the column: it is a product of a few
numbers that are each rounded once (2^-53), and every addition rounds the sum once more. It is taken
for every term."""

FURTHER_TERMS = 8
"""Operations beside those of lifts and cells."""

CHUNK = 1 << 21
"""Pairs that are computed at once: 16 MB of doubles."""

GRID = 1100
"""Sums are integers in units of 2^-GRID; no double has smaller parts."""

NOT_IN_TIME = "the time was over before the proof was; allow more (--time-limit)"

NO_TABLE = "the channel has no table, without which no bound is proven"


def cost_bound(
    channel: Channel,
    proof: CostProof,
    demands: Sequence[Demand] | None = None,
    least_sides: Sequence[float] | None = None,
    end: float = math.inf,
) -> float:
    """The largest double that the proof shows to be at most the cost of every private channel.

    `demands` are the tables that earlier releases leave, where there are any. `least_sides` are
    lower bounds of the sides of the proof, one for each output, over the posteriors that are
    allowed, be it for all populations of a set. `end` is when to stop, on the clock of
    `time.process_time`.

    Raises
    ------
    InputError
        If the proof does not fit the channel, or what the channel was designed for has no such
        bound.
    ProofOutOfTime
        If the pass over all pairs has not ended by then.
    """
    joint = channel.joint
    if joint is None:
        raise InputError(NO_TABLE)
    check_provable(
        channel,
        has_earlier=demands is not None,
        has_sides=least_sides is not None,
    )
    objective = channel.record.objective
    notion = channel.record.promise(channel.sensitive)
    if objective is None or notion is None:
        raise InputError(
            "the proof is one of a least cost, and the file has no such objective"
        )
    if objective.name == "convex":
        raise InputError(
            "costs of your own are not in the file, so nothing is proven of them"
        )
    if least_sides is not None:
        # The sides take the place of limits on lifts.
        demands = []
    demands = demands if demands is not None else demands_of(joint, notion)
    strata = (
        strata_of(channel.given, joint) if channel.given else [0] * len(joint.useful)
    )
    by_stratum = [demands] * (max(strata) + 1)
    if channel.record.promise_kind == RELATIVE:
        by_stratum = stratum_demands(demands, joint, notion, strata)
    if least_sides is None:
        _check_shape(proof, len(joint.useful), sum(len(one.sums) for one in demands))
    stay = [Fraction(objective.stay.get(name, "0")) for name in joint.useful.names]
    frequencies = _frequencies(channel, joint)
    released = np.ones(len(stay), dtype=np.bool_)
    if objective.keep_frequencies:
        # What has no mass is not released, whatever it would cost.
        released = np.array([share > 0 for share in frequencies])
    elif any(proof.prices):
        raise InputError("the proof has prices of frequencies, which are free here")
    never = never_released(joint.useful, objective.never)
    released[never] = False
    costs = _costs_of(channel, joint, proof)
    charges = charges_of(channel, joint, proof)
    forbidden = _Forbidden.of(channel, joint)
    _check_restrictions(channel, joint, forbidden, never)
    total = 0
    for one, members in zip(by_stratum, members_of(strata), strict=True):
        sides: Array | None = None
        if proof.sides is not None and least_sides is not None:
            # What is left of them is not negative.
            sides = np.array(proof.sides) - np.array(least_sides)
        stratum = _Stratum(
            one, joint, proof, np.array(members), costs, sides, charges, end
        )
        least, own = stratum.least(released, forbidden)
        for x, cheapest, unchanged in zip(
            members, least.tolist(), own.tolist(), strict=True
        ):
            count = joint.useful_counts[x]
            share = stay[x]
            if share:
                part = share * _units(unchanged) + (1 - share) * _units(cheapest)
                total += count * part
            else:
                total += count * _units(cheapest)
    bound = Fraction(total, joint.total)
    if objective.keep_frequencies:
        for price, share in zip(proof.prices, frequencies, strict=True):
            bound += _units(price) * share
    bound /= 1 << GRID
    if charges is not None:
        bound -= charges.spent
    return -quotient_above(-bound.numerator, bound.denominator)


def check_earlier(channel: Channel, after: Sequence[Channel]) -> None:
    """Raise InputError unless these are the releases that a channel was designed after."""
    hashes = tuple(file_digest(earlier) for earlier in after)
    if hashes == tuple(channel.record.after):
        return
    if after:
        raise InputError(
            "the channel was designed after other releases than those that are given (--after)"
        )
    raise InputError(
        "the channel was designed after other releases, which its file does not have: give them "
        "(--after)"
    )


def check_provable(channel: Channel, *, has_earlier: bool, has_sides: bool) -> None:
    """Raise InputError where the file alone does not have what its promise is about."""
    if not has_earlier:
        check_earlier(channel, ())
    if channel.record.confidence is not None and not has_sides:
        raise InputError(
            "a bound for the population (confidence) follows from a set of tables, for which no "
            "proof is kept"
        )


def _check_shape(proof: CostProof, symbols: int, protected: int) -> None:
    """Raise InputError unless the multipliers are those of such a table."""
    for name, rows in (("lifts", proof.lifts), ("ratios", proof.ratios)):
        # None at all are zeros.
        if not rows:
            continue
        if len(rows) != protected or any(len(row) != symbols for row in rows):
            raise InputError(
                f"the proof is of another table: its {name} are not {protected} x {symbols} numbers"
            )
    if len(proof.prices) != symbols:
        raise InputError(
            f"the proof is of another table: it has {len(proof.prices)} prices for {symbols} "
            "symbols"
        )


def _units(value: float) -> int:
    """A double in units of 2^-GRID, exactly."""
    top, bottom = value.as_integer_ratio()
    return (top << GRID) // bottom


def _frequencies(channel: Channel, joint: Joint) -> list[Fraction]:
    """q_y: those of the table; of released rows those of the channel, which may be groups."""
    if channel.published is None:
        return [Fraction(count, joint.total) for count in joint.useful_counts]
    position = {name: y for y, name in enumerate(joint.useful.names)}
    integers = channel.integers
    # c_x / total_x is the same for all rows of a plan.
    ratios = [
        Fraction(count, total)
        for count, total in zip(joint.useful_counts, channel.row_totals, strict=True)
    ]
    # Of every output: what comes from the inputs of one sum is added first, in integers.
    parts: list[dict[int, int]] = [{} for _ in channel.outputs]
    for x, y, value in zip(
        map(int, integers.row_of),
        map(int, integers.indices),
        map(int, integers.values),
        strict=True,
    ):
        ratio = ratios[x]
        whole = parts[y].get(ratio.denominator, 0)
        parts[y][ratio.denominator] = whole + ratio.numerator * value
    masses = [Fraction(0)] * len(position)
    for label, of_output in zip(channel.outputs, parts, strict=True):
        mass = sum(
            (Fraction(top, bottom) for bottom, top in of_output.items()), Fraction(0)
        )
        masses[position[label]] += mass / joint.total
    if sum(masses) != 1:
        raise InputError("the rows of the channel do not sum to their totals")
    return masses


class _Forbidden(NamedTuple):
    """Which inputs are forbidden to output y: ``inputs[starts[y]:starts[y + 1]]``."""

    starts: Places
    inputs: Places

    @classmethod
    def of(cls, channel: Channel, joint: Joint) -> _Forbidden:
        """Those of the objective of a channel."""
        objective: Any = channel.record.objective
        sources, targets = forbidden_pairs(joint.useful, objective.forbid)
        order = np.argsort(targets, kind="stable")
        every = np.arange(len(joint.useful) + 1)
        return cls(np.searchsorted(targets[order], every), sources[order])

    def to(self, output: int) -> Places:
        """The inputs that are forbidden to an output."""
        return self.inputs[self.starts[output] : self.starts[output + 1]]

    @property
    def targets(self) -> Places:
        """The output of each of `inputs`."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))


def _check_restrictions(
    channel: Channel,
    joint: Joint,
    forbidden: _Forbidden,
    never: Sequence[int],
) -> None:
    """Raise InputError where the channel does what the conditions of its bound forbid."""
    if not len(forbidden.inputs) and not never:
        return
    position = {name: y for y, name in enumerate(joint.useful.names)}
    targets = np.array([position[label] for label in channel.outputs])
    integers = channel.integers
    size = len(joint.useful)
    pairs = integers.row_of * size + targets[integers.indices]
    is_wrong = np.isin(pairs, forbidden.inputs * size + forbidden.targets)
    is_wrong |= np.isin(pairs % size, np.array(never, dtype=np.int64))
    if (is_wrong & (integers.values > 0)).any():
        raise InputError(
            "the channel releases what the conditions of its file forbid (forbid, never), so the "
            "bound is one for other channels"
        )


@dataclass(frozen=True, eq=False)
class _Stratum:
    """The pairs of one stratum of the given columns."""

    demands: Sequence[Demand]
    joint: Joint
    proof: CostProof
    members: Places
    costs: _Costs
    sides: Array | None
    charges: Charges | None
    end: float

    def least(
        self, released: NDArray[np.bool_], forbidden: _Forbidden
    ) -> tuple[Array, Array]:
        """min_y E(x, y) and E(x, x) of every member, rounded down."""
        if self.sides is not None:
            return self._least_by_sides(self.sides, released, forbidden)
        lifts, low, high = self._lifts()
        left = self._left()
        outputs = self.members[released[self.members]]
        alpha = np.zeros((len(lifts), len(outputs)))
        if self.proof.lifts:
            alpha = np.array(self.proof.lifts)[:, outputs]
        ends = np.where(alpha > 0.0, low[:, None], high[:, None])
        weights = alpha
        if self.proof.ratios:
            rho = np.array(self.proof.ratios)[:, outputs]
            self._check_ratios(rho)
            weights = alpha + rho
        prices = np.array(self.proof.prices)[outputs]
        at_ends = alpha * ends
        constant = prices - (at_ends.sum(axis=0) if left is None else 0.0)
        size = self.costs.largest + np.abs(prices)
        most_left = 1.0 if left is None else left.max(axis=1, keepdims=True)
        size += (np.abs(at_ends) * most_left).sum(axis=0)
        size += lifts.max(axis=1) @ np.abs(weights)
        terms = len(lifts) + self.costs.terms + FURTHER_TERMS
        if self.charges is not None:
            functions = self.charges.functions[:, self.members]
            slopes = self.charges.slopes[:, outputs]
            constant = constant + self.charges.constants[outputs]
            # Another row of the same product: they raise the cost, where lifts lower it.
            lifts = np.vstack([lifts, functions])
            weights = np.vstack([weights, -slopes])
            size += np.abs(functions).max(axis=1) @ np.abs(slopes)
            size += np.abs(self.charges.constants[outputs])
            terms += len(functions)
        error = ERROR * terms

        def charged(part: slice) -> Array:
            block = self.costs.block(self.members, outputs[part])
            block -= lifts.T @ weights[:, part]
            if left is not None:
                block += left.T @ at_ends[:, part]
            return block - (constant[part] + error * size[part])

        return self._cheapest(outputs, forbidden, charged)

    def _least_by_sides(
        self,
        sides: Array,
        released: NDArray[np.bool_],
        forbidden: _Forbidden,
    ) -> tuple[Array, Array]:
        """The same, where every allowed output keeps its column of `sides` above 0."""
        outputs = self.members[released[self.members]]
        prices = np.array(self.proof.prices)[outputs]
        error = ERROR * (self.costs.terms + FURTHER_TERMS)
        size = self.costs.largest + np.abs(prices)

        def charged(part: slice) -> Array:
            chosen = sides[np.ix_(self.members, outputs[part])]
            block = self.costs.block(self.members, outputs[part]) - chosen
            return block - prices[part] - error * (np.abs(chosen) + size[part])

        return self._cheapest(outputs, forbidden, charged)

    def _cheapest(
        self,
        outputs: Places,
        forbidden: _Forbidden,
        charged: Callable[[slice], Array],
    ) -> tuple[Array, Array]:
        """min_y E(x, y) and E(x, x), from the E of some outputs at once."""
        least = np.full(len(self.members), np.inf)
        own = np.zeros(len(self.members))
        # A row of another stratum has no place, and is not released as these outputs anyway.
        place = np.full(len(self.joint.useful), NOWHERE)
        place[self.members] = np.arange(len(self.members))
        for part in _chunks(len(self.members), len(outputs)):
            if time.process_time() >= self.end:
                raise ProofOutOfTime(NOT_IN_TIME)
            block = charged(part)
            for k, y in enumerate(outputs[part].tolist()):
                own[place[y]] = block[place[y], k]
                places = place[forbidden.to(y)]
                block[places[places != NOWHERE], k] = np.inf
            np.minimum(least, block.min(axis=1, initial=np.inf), out=least)
        if not np.isfinite(least).all():
            raise InputError(
                "the restrictions of the file leave a symbol without an output"
            )
        return least, own

    def _lifts(self) -> tuple[Array, Array, Array]:
        """L_s(x) of the members, and the limits of every row, rounded outwards."""
        counts = self.joint.useful_counts
        rows: list[list[float]] = []
        low: list[float] = []
        high: list[float] = []
        for demand in self.demands:
            limits = _Limits.of(demand)
            for s in range(len(demand.sums)):
                quotients = self._quotients(demand, s, counts)
                # Python rounds quotients of integers correctly.
                row = [top / bottom for top, bottom in quotients]
                least, most = limits.ends(s, _extremes(quotients, row))
                rows.append(row)
                low.append(least)
                high.append(most)
        return np.array(rows), np.array(low), np.array(high)

    def _left(self) -> Array | None:
        """C(x) of every row and member, where earlier releases leave other masses; else None."""
        if not any(demand.before for demand in self.demands):
            return None
        rows: list[list[float]] = []
        for demand in self.demands:
            sums = [sum(column) for column in zip(*demand.counts, strict=True)]
            whole = sum(sums)
            row: list[float] = []
            for x in map(int, self.members):
                count = self.joint.useful_counts[x]
                # Python rounds quotients of integers correctly.
                row.append(sums[x] * self.joint.total / (whole * count))
            rows += [row] * len(demand.sums)
        return np.array(rows)

    def _quotients(
        self, demand: Demand, s: int, counts: Sequence[int]
    ) -> list[tuple[int, int]]:
        """L_s of every member, as numerators and denominators; 0 for a secret that the stratum does
        not have.
        """
        if not demand.sums[s]:
            return [(0, 1)] * len(self.members)
        row = demand.counts[s]
        top, bottom = 1, 1
        if demand.before:
            # P(s, x | u), of which P(x) is a mean over all u.
            top, bottom = self.joint.total, sum(map(sum, demand.counts))
        return [
            (row[x] * demand.total * top, counts[x] * demand.sums[s] * bottom)
            for x in map(int, self.members)
        ]

    def _check_ratios(self, rho: Array) -> None:
        """Raise InputError unless multipliers of quotients prove something, exactly."""
        first = 0
        for demand in self.demands:
            end = first + len(demand.sums)
            most = _above(demand.ratio)
            for column in rho[first:end].T.tolist():
                paid = sum(_units(value) for value in column if value > 0.0)
                gained = sum(_units(-value) for value in column if value < 0.0)
                if gained and (most is None or paid < most * gained):
                    raise InputError(
                        "the proof has multipliers of quotients that prove nothing"
                    )
            first = end


def _chunks(inputs: int, outputs: int) -> Iterator[slice]:
    """Slices of outputs, small enough to be computed at once."""
    step = max(1, CHUNK // max(inputs, 1))
    for start in range(0, outputs, step):
        yield slice(start, min(start + step, outputs))


def _extremes(
    quotients: Sequence[tuple[int, int]], nearest: Sequence[float]
) -> tuple[Fraction, Fraction]:
    """The least and the largest of some quotients, exactly.

    Rounding keeps their order, so that they are among those whose rounded quotient is extreme.
    """
    lowest, highest = min(nearest), max(nearest)
    low: set[tuple[int, int]] = set()
    high: set[tuple[int, int]] = set()
    for quotient, value in zip(quotients, nearest, strict=True):
        if value == lowest:
            low.add(quotient)
        if value == highest:
            high.add(quotient)
    least = min(Fraction(*quotient) for quotient in low)
    return least, max(Fraction(*quotient) for quotient in high)


class _Limits(NamedTuple):
    """The limits of a demand on lifts, exactly: those of its symbols, and what all of them take.

    Attributes
    ----------
    low, high : lists of Fraction
        Of every symbol; None where it has no upper limit, because Fractions have no infinity.
    shares : list of Fraction
        P(s).
    least_mass, most_mass : Fraction
        Sums over s of P(s) times low, and of P(s) times high where there is one.
    unlimited : int
        Symbols without an upper limit.
    """

    demand: Demand
    low: list[Fraction]
    high: list[Fraction | None]
    shares: list[Fraction]
    least_mass: Fraction
    most_mass: Fraction
    unlimited: int

    @classmethod
    def of(cls, demand: Demand) -> _Limits:
        """Those of a demand."""
        low = [Fraction(_exp_below(-budget)) for budget in demand.lower]
        high = [_above(budget) for budget in demand.upper]
        shares = [Fraction(count, demand.total) for count in demand.sums]
        least_mass = most_mass = Fraction(0)
        for share, at_least, at_most in zip(shares, low, high, strict=True):
            least_mass += share * at_least
            most_mass += share * (at_most or 0)
        return cls(demand, low, high, shares, least_mass, most_mass, high.count(None))

    def ends(self, s: int, lifts: tuple[Fraction, Fraction]) -> tuple[float, float]:
        """a_s and b_s of every output, rounded outwards; `lifts` are the least and the largest of
        the inputs.

        The lifts of an output are means of those of its inputs, and average to 1 over P(s): so the
        limits of the other symbols limit this one, too.
        """
        demand = self.demand
        if not demand.sums[s]:
            return 0.0, 0.0
        own = self.high[s]
        if demand.before:
            # These lifts are quotients of two sums, and no means.
            ceiling = own
            if ceiling is None:
                ceiling = demand.total / Fraction(demand.sums[s])
            return _double_below(self.low[s]), quotient_above(
                *ceiling.as_integer_ratio()
            )
        share = self.shares[s]
        least = max(self.low[s], lifts[0])
        most = lifts[1]
        if own is not None:
            most = min(most, own)
        most = min(most, (1 - (self.least_mass - share * self.low[s])) / share)
        unlimited_others = self.unlimited - (own is None)
        if not unlimited_others:
            of_others = self.most_mass - share * (own or 0)
            least = max(least, (1 - of_others) / share)
        ratio = _above(demand.ratio)
        if ratio is not None:
            # l(t) <= R l(s), and they average to 1.
            least = max(least, 1 / (share + ratio * (1 - share)))
            most = min(most, ratio / (ratio * share + 1 - share))
        return _double_below(least), quotient_above(most.numerator, most.denominator)


def _double_below(value: Fraction) -> float:
    """The largest double at or below a number."""
    return -quotient_above(-value.numerator, value.denominator)


def _above(budget: float) -> Fraction | None:
    """e^budget, rounded up; None for no limit."""
    if budget == np.inf:
        return None
    return Fraction(_exp_above(budget))


def _exp_above(value: float) -> float:
    """A double at or above e^value."""
    from flint import arb

    with precision(FIRST_BITS):
        return upper(arb(value).exp())


def _exp_below(value: float) -> float:
    """A double at or below e^value; 0 for minus infinity."""
    if value == -np.inf:
        return 0.0
    from flint import arb

    with precision(FIRST_BITS):
        return lower(arb(value).exp())


class _Costs:
    """d(x, y) in doubles: sums of `terms` terms, whose moduli sum to at most `largest`."""

    terms = 2
    largest = 1.0

    def block(self, inputs: Places, outputs: Places) -> Array:
        """New array (i, o) of the costs of these symbols."""
        raise NotImplementedError


class _Truth(_Costs):
    """1 for every change."""

    def block(self, inputs: Places, outputs: Places) -> Array:
        return (inputs[:, None] != outputs[None, :]).astype(np.float64)


class _Matrix(_Costs):
    """Numbers of a matrix, each rounded once."""

    def __init__(self, matrix: Array) -> None:
        self._matrix = matrix
        self.largest = float(np.abs(matrix).max())

    def block(self, inputs: Places, outputs: Places) -> Array:
        return self._matrix[np.ix_(inputs, outputs)]


class _Distance(_Costs):
    """Distances of exact numbers: integers over one unit, so that each is rounded once."""

    def __init__(self, numbers: Sequence[Fraction], *, squared: bool) -> None:
        self._unit = math.lcm(*(number.denominator for number in numbers))
        self._numbers = np.array(
            [int(number * self._unit) for number in numbers], dtype=object
        )
        self._squared = squared
        ends = np.array([self._numbers.argmin(), self._numbers.argmax()])
        self.largest = float(self.block(ends, ends).max())

    def block(self, inputs: Places, outputs: Places) -> Array:
        apart = np.abs(np.subtract.outer(self._numbers[inputs], self._numbers[outputs]))
        unit = self._unit
        if self._squared:
            apart, unit = apart * apart, unit * unit
        values: list[float] = [int(value) / unit for value in apart.ravel()]
        return np.array(values).reshape(apart.shape)


class _Cells(_Costs):
    """Weights of the cells that differ, and distances of places."""

    def __init__(self, cells: Sequence[CellCost], joint: Joint) -> None:
        self._weighed: list[tuple[float, NDArray[np.int32]]] = []
        self._placed: list[Array] = []
        self.terms = 2 * len(cells) + 2
        self.largest = 0.0
        for cell in cells:
            if cell.column not in joint.useful.columns:
                raise InputError(
                    f"the proof is of another table: it has a column {quoted(cell.column)}"
                )
            k = joint.useful.columns.index(cell.column)
            texts = [symbol[k] for symbol in joint.useful.symbols]
            if cell.places is None:
                code_of: dict[str, int] = {}
                codes = [code_of.setdefault(text, len(code_of)) for text in texts]
                self._weighed.append((cell.weight, np.array(codes, dtype=np.int32)))
                self.largest += cell.weight
                continue
            if set(texts) - cell.places.keys():
                raise InputError(
                    "the proof is of another table: a cell has no place in it"
                )
            places = np.array([cell.places[text] for text in texts])
            self._placed.append(places)
            self.largest += 2.0 * float(np.abs(places).max())

    def block(self, inputs: Places, outputs: Places) -> Array:
        cost = np.zeros((len(inputs), len(outputs)))
        for weight, codes in self._weighed:
            cost += weight * (codes[inputs][:, None] != codes[outputs][None, :])
        for places in self._placed:
            cost += np.abs(places[inputs][:, None] - places[outputs][None, :])
        return cost


def _costs_of(channel: Channel, joint: Joint, proof: CostProof) -> _Costs:
    """The costs of the objective; those that the file has nowhere else are in the proof."""
    objective: Any = channel.record.objective
    n = len(joint.useful)
    if objective.name == "costs":
        if proof.costs is None:
            raise InputError("the proof lacks the matrix of costs")
        if len(proof.costs) != n or any(len(row) != n for row in proof.costs):
            raise InputError(
                f"the proof is of another table: its costs are not {n} x {n}"
            )
        values = [[float(Fraction(text)) for text in row] for row in proof.costs]
        return _Matrix(np.array(values))
    if channel.published is not None:
        if proof.cells is None:
            raise InputError("the proof lacks the costs of cells")
        return _Cells(proof.cells, joint)
    if objective.name == "truth":
        return _Truth()
    return _Distance(numbers_in(joint), squared=objective.distance == "squared")


def numbers_in(joint: Joint) -> list[Fraction]:
    """The number of every useful symbol; of bins their medians.

    Raises
    ------
    InputError
        If a symbol is no number.
    """
    useful = joint.useful
    if not any(useful.bins):
        return [fraction_of(text) for (text,) in useful.symbols]
    numbers: list[Fraction] = []
    for number in numbers_of(useful):
        if number is None:
            raise InputError(
                "a channel of least distance has a symbol without a number"
            )
        numbers.append(number)
    return numbers
