"""Boxes released as boxes: most records keep their own, and the law of the boxes is kept.

The outputs of this channel are the boxes themselves. Among all channels that keep the promise for
every population of the confidence set, and release every box as often as the table has it, it
leaves most records in their own box:

    minimise    sum_b F(b, b') over b' != b,   F >= 0
    subject to  sum_b' F(b, b') = sum_b' F(b', b) = c_b / N        for every box b
                the limits of every output b' for the whole set,

with the c_b of N records in the box b. The law is that of *all* records of the stratum, those of
the slice included; only the confidence set needs the others. So a box that is filled with its rows
gives every row the share that the table has (docs/explanation/population.md, 'The law of boxes').

`solvers.assignment.robust` solves the program. The shares become integers with the row
sums c_b M and the column sums c_b' M (`solvers.plans.integer_plan`), so the law is kept exactly.
The exact audit of the whole set decides; where it fails the margin grows.

For example, of two boxes with 30 and 10 records a quarter of the first and three quarters of the
second change: 30/4 = 10 * 3/4 = 7.5 records go either way, and 30 and 10 are released.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from mechdesign.auditing.population import lift_limits
from mechdesign.channel.channel import DENOMINATOR, Channel
from mechdesign.channel.proof import CostProof
from mechdesign.channel.record import Objective
from mechdesign.core.balls import quotient_above
from mechdesign.core.errors import SolverFailure
from mechdesign.core.integers import LARGEST_INTEGER, IntegerRows
from mechdesign.core.progress import Step
from mechdesign.core.wording import percent_at_least, percent_at_most
from mechdesign.mechanisms.box_request import TRUTH, BoxRequest
from mechdesign.mechanisms.least_cost_objective import (
    LARGE_MARGIN,
    MARGINS,
    REACHES,
)
from mechdesign.mechanisms.population import PopulationRules, confident
from mechdesign.mechanisms.proofs import of_sides
from mechdesign.mechanisms.result import Design, LeastCost, finish
from mechdesign.mechanisms.rounding import Rounded
from mechdesign.tables.confidence import confidence_set
from mechdesign.tables.joint import Joint
from solvers import Array, Polytope, SolverError, UncertainSet
from solvers.assignment.assignment import Assigned, Assignment
from solvers.assignment.robust import assign_uncertain
from solvers.plans import integer_plan

METHOD_NAME = "boxes"
"""The mechanism in the record of the channel."""

UNIT_BITS = 40
"""Bits of M, so that rounding moves a share by 1e-12 at most."""

TRACE = 1e-9
"""Shares of a row below this are zeros of an interior point method."""

SHOWN_GAP = 1e-5
"""Gap, as a share of the cost of boxes drawn blindly, below which nothing is said about it: margin
and rounding leave less."""

SCALINGS = 20
"""Rounds of proportional fitting after traces are left out. What is then left of the deviation of a
column, the integers settle exactly."""


def own_boxes(
    joint: Joint,
    counts: Sequence[int],
    request: BoxRequest,
    level: float,
    seconds: float,
    gap: float,
) -> Design:
    """The channel that leaves most records in their own box and keeps the law of the boxes.

    Parameters
    ----------
    joint : Joint
        Records of the proof, by group of sensitive values and box.
    counts : sequence of int
        All records of each box, in the order of the boxes of `joint`.
    request : BoxRequest
    level : float
        The confidence level.
    seconds, gap : float
        The time limit, and the gap as a share of the cost of boxes drawn blindly.

    Raises
    ------
    SolverFailure
        If no channel was verified.
    """
    started = time.process_time()
    populations = confidence_set(
        joint,
        level,
        estimate_shares=lift_limits(request.notion).need_shares,
        unseen=len(joint.empty_useful),
    )
    rules = PopulationRules(joint, request.notion, populations=populations)
    if populations.rest:
        # Boxes without a record of the proof are released with the law of the proof's records,
        # which is in the set: then that law is kept.
        counts = joint.useful_counts
    program = _OwnBoxes(rules, counts, gap, request)
    design = program.verified(started, started + seconds)
    return confident(design, rules, started, seconds)


class _OwnBoxes:
    """The program of one table of boxes."""

    def __init__(
        self,
        rules: PopulationRules,
        counts: Sequence[int],
        gap: float,
        request: BoxRequest,
    ) -> None:
        self._rules = rules
        self._joint = rules.joint
        self._counts = counts
        self._gap = gap
        self._progress = request.progress
        n = len(counts)
        total = sum(counts)
        masses = np.array([count / total for count in counts])
        no_rows = Polytope(np.zeros((0, n)), np.zeros(0), np.zeros(0))
        self._problem = Assignment(1.0 - np.eye(n), masses, no_rows, keep=True)

    def verified(self, started: float, end: float) -> Design:
        """The channel of the first margin whose integers pass the exact audit."""
        reason = ""
        bound = 0.0
        proof: CostProof | None = None
        margins = [margin for margin in MARGINS if margin >= LARGE_MARGIN]
        for reach, margin in itertools.product(REACHES, margins):
            try:
                solution = self._solution(reach, margin, end)
            except SolverError as error:
                reason = str(error)
                continue
            # Every solution bounds the budgets as they are, so the largest bound holds.
            if solution.bound > bound:
                bound = solution.bound
                if solution.sides is not None:
                    proof = of_sides(solution.sides, solution.multipliers.masses)
            # With the traces where boxes hang together by these alone.
            for trace in (TRACE, 0.0):
                try:
                    channel = self._channel(solution.shares, trace)
                except SolverError as error:
                    reason = str(error)
                    continue
                verdict = self._rules.verdict(channel)
                if verdict.satisfied:
                    rounded = Rounded(channel, verdict)
                    design = finish(
                        rounded, self._joint, METHOD_NAME, solution.method, started
                    )
                    return self._with_figures(design, bound, proof)
                reason = f"the lift {verdict.worst.lift:.17g} was left"
        raise SolverFailure(
            f"no channel for own boxes was verified ({reason}); use a larger budget or fewer boxes"
        )

    def _set(self, reach: float) -> UncertainSet:
        """The set at the law of all records: which columns are members does not depend on it."""
        uncertain = self._rules.uncertain_within(reach)
        return replace(uncertain, point=self._problem.masses)

    def _solution(self, reach: float, margin: float, end: float) -> Assigned:
        """The shares within the set by a margin, with the bound for the whole set."""
        uncertain = self._set(reach)
        seconds = None
        if end < float("inf"):
            seconds = max(end - time.process_time(), 0.0)
        return assign_uncertain(
            self._problem,
            uncertain,
            margin=margin * uncertain.room,
            gap=self._gap,
            time_limit=seconds,
            progress=self._show,
        )

    def _show(self, cost: float, bound: float, steps: int) -> None:
        """The caller's progress in the form of the solvers."""
        if self._progress is None:
            return
        text = f"own boxes {1.0 - cost:.4f}, at most {1.0 - bound:.4f} ({steps} steps)"
        figures = {"cost": cost, "cost_lower_bound": bound, "steps": steps}
        self._progress(Step(text, figures))

    def _channel(self, shares: Array, trace: float) -> Channel:
        """The integers of the shares, with sums of rows and columns in proportion to the counts."""
        masses = self._problem.masses
        flows = masses[:, None] * _fitted(shares, masses, trace)
        counts = [int(count) for count in self._counts]
        bits = LARGEST_INTEGER.bit_length() - 1 - max(counts).bit_length()
        bits = min(UNIT_BITS, bits)
        rows, columns = np.nonzero(flows)
        at, to, values = integer_plan(
            rows, columns, flows[rows, columns], counts, counts, unit=1 << bits
        )
        n = len(counts)
        integers = np.zeros((n, n), dtype=np.int64)
        integers[at, to] = values
        names = self._joint.useful.names
        return Channel(
            useful=self._joint.useful,
            outputs=names,
            rows=IntegerRows.from_array(integers),
            denominator=DENOMINATOR,
            joint=self._joint,
            totals=tuple(count << bits for count in counts),
        )

    def _with_figures(
        self, design: Design, bound: float, proof: CostProof | None
    ) -> Design:
        """The design with the exact share of own boxes, its bound, and what proves it."""
        channel = design.channel
        total = sum(self._counts)
        own = Fraction(0)
        entries = channel.own_entries
        for count, entry in zip(self._counts, entries, strict=True):
            own += Fraction(count * entry, total * channel.denominator)
        objective = Objective(name=TRUTH, keep_frequencies=True)
        cost = quotient_above(*(1 - own).as_integer_ratio())
        least = LeastCost(
            objective=objective,
            cost=cost,
            cost_lower_bound=min(max(bound, 0.0), cost),
            # Rounded down by way of the negative.
            truth=0.0 - quotient_above(*(-own).as_integer_ratio()),
            frequency_deviation=quotient_above(
                *self._deviation(channel).as_integer_ratio()
            ),
        )
        utility = {**(channel.record.utility or {}), **least.figures}
        record = replace(channel.record, objective=objective, utility=utility)
        messages = design.messages
        gap = least.cost - least.cost_lower_bound
        if gap > max(self._gap, SHOWN_GAP) * self._problem.spread():
            messages = (
                *messages,
                f"The search ended early: {percent_at_least(least.truth)} of the records keep "
                "their box, and no channel for these boxes leaves more than "
                f"{percent_at_most(1 - least.cost_lower_bound)}.",
            )
        channel = channel.with_record(record)
        # To prove it again takes a program for each box, which is left to the auditor.
        if proof is not None:
            channel = channel.with_proof(proof)
        return replace(design, channel=channel, least=least, messages=messages)

    def _deviation(self, channel: Channel) -> Fraction:
        """The largest change of a box's share among all records, exactly; 0 by construction."""
        total = sum(self._counts)
        largest = Fraction(0)
        for y, (inputs, values) in enumerate(channel.columns):
            mass = sum(self._counts[x] * w for x, w in zip(inputs, values, strict=True))
            share = Fraction(mass, total * channel.denominator)
            largest = max(largest, abs(share - Fraction(self._counts[y], total)))
        return largest


def _fitted(shares: Array, masses: NDArray[np.float64], trace: float) -> Array:
    """Shares without those below `trace`, whose columns have their masses nearly again."""
    cleaned = np.where(shares < trace, 0.0, shares)
    for _ in range(SCALINGS):
        cleaned = cleaned * (masses / (masses @ cleaned))
        cleaned = cleaned / cleaned.sum(axis=1)[:, None]
    return cleaned
