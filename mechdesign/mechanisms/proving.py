"""The bounds that a channel file states, proven again from the proof that it keeps.

    cost_lower_bound       one pass over all pairs of symbols (`auditing.proofs`)
    upper_bound_nmi        one exact pricing of the posteriors that the promise allows, or of all
                           within average budgets (`solvers.proving`), at the prices in the file
    MEASURE lower_bound    the same
    task_upper_bound       the same, of what posteriors say of the task
    variance_lower_bound   all vertices of the posteriors

Nothing of the search is needed, and nothing in the file is trusted but its table, its promise and
its objective: multipliers that were forged prove less, and a bound that was forged is not proven.

Of a channel of boxes every stratum has a table and a proof of its own, and the bounds of the whole
are means of theirs (`boxes_with_certificate`).

`with_certificate` does this for every bound that the file states. A bound that nothing can pass,
such as a share of 1, needs no proof. Bounds without a proof are `Unproven`, with the reason.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import numpy as np

from mechdesign.auditing.lifts import Demand, demands_of
from mechdesign.auditing.measures import beyond_given
from mechdesign.auditing.measures import utility as measured
from mechdesign.auditing.population import set_behind
from mechdesign.auditing.proofs import (
    NO_TABLE,
    NOT_IN_TIME,
    check_earlier,
    cost_bound,
)
from mechdesign.auditing.stated import (
    LOWER_BOUND,
    LOWER_BOUND_OF_AVERAGE,
    ROUNDING,
    TASK_BOUND,
    UPPER_BOUND,
    VARIANCE_BOUND,
    Statement,
    Unproven,
    WrongFigure,
    has_table,
    is_bound,
    keeps_promise,
    stated_figures,
)
from mechdesign.channel.box_claims import RECORDS_OF_STRATUM
from mechdesign.channel.channel import Channel
from mechdesign.channel.proof import (
    AnyProof,
    CostProof,
    EntropyProof,
    QueryProof,
    TaskProof,
    proof_in,
)
from mechdesign.channel.record import AverageBudget
from mechdesign.core.balls import quotient_above
from mechdesign.core.errors import InputError, ProofOutOfTime
from mechdesign.mechanisms.average_budgets import float_gains, in_solver_unit
from mechdesign.mechanisms.averages import share_of_bound
from mechdesign.mechanisms.cut_sets import polytope_at
from mechdesign.mechanisms.least_leakage import least_for_share
from mechdesign.mechanisms.population import PopulationRules
from mechdesign.mechanisms.proofs import MOST_SYMBOLS, SLACK
from mechdesign.mechanisms.purposes import (
    INFORMATION_ERROR,
    task_bound,
    task_figures_of,
    told_of_task,
)
from mechdesign.mechanisms.queries import NAMED_QUERIES, Queries, queries_of
from mechdesign.mechanisms.query_design import (
    noise_free_variance,
    total_variance,
    variance_of,
)
from mechdesign.mechanisms.rules import Rules, table_rules
from mechdesign.mechanisms.search_options import share_bound, utility_entropy
from mechdesign.mechanisms.strata_tables import (
    SHRINK,
    budgets_of_stratum,
    strata_tables,
)
from mechdesign.tables.joint import Joint
from solvers import Array, Polytope, SolverError
from solvers.average.assignment_convex import Total
from solvers.average.problem import AverageProblem, Leakage, measure_of
from solvers.errors import OutOfTime
from solvers.pace import seconds_until
from solvers.proving import (
    proven_bound,
    proven_on_average,
    proven_over_members,
    proven_over_tables,
    proven_task,
    proven_task_within,
    proven_variance,
    proven_variance_within,
)

NO_PROOF = "the file keeps no proof of it"

OWN_FUNCTIONS = (
    "costs or constraints of your own are Python code, which no channel file has, so the file "
    "keeps no proof of it"
)

NOT_REACHED = "the proof in the file does not reach it"

NOT_OF_THIS_KIND = "the proof in the file is of another bound"

BOXES_BOUND = "own_bound"
"""The most records that keep their box, as a share."""


@dataclass(frozen=True)
class Beside:
    """What a bound is about beside the file: earlier releases, and the table of all of them."""

    after: Sequence[Channel] = ()
    whole: Joint | None = None


ALONE = Beside()


def with_certificate(
    statement: Statement,
    channel: Channel,
    beside: Beside = ALONE,
    *,
    end: float = math.inf,
) -> Statement:
    """The statement of a channel file with its bounds proven again, or not.

    `end` is when to stop, on the clock of `time.process_time`: a bound that is not proven by then
    is not proven.
    """
    proven: dict[str, float] = {}
    unproven: list[Unproven] = []
    known_wrong = {wrong.name for wrong in statement.wrong}
    for name, stated in stated_figures(channel).items():
        if not is_bound(name) or name in known_wrong:
            continue
        try:
            value = _proven(channel, name, stated, beside, end)
        except (InputError, SolverError, ProofOutOfTime) as error:
            unproven.append(_failed(name, stated, error))
            continue
        if _reaches(name, stated, value):
            proven[name] = value
        else:
            unproven.append(_not_reached(name, stated, value, end))
    settled = {*proven, *(one.name for one in unproven)}
    return replace(
        statement,
        only_stated=tuple(
            name for name in statement.only_stated if name not in settled
        ),
        proven=proven,
        unproven=tuple(unproven),
    )


def _failed(name: str, stated: float, error: Exception) -> Unproven:
    """A bound whose proof ended in an error."""
    if isinstance(error, OutOfTime | ProofOutOfTime):
        return Unproven(name, stated, None, NOT_IN_TIME, out_of_time=True)
    return Unproven(name, stated, None, str(error))


def _not_reached(name: str, stated: float, proven: float, end: float) -> Unproven:
    """A bound that the proof in the file does not reach, or not in time."""
    if time.process_time() >= end:
        return Unproven(name, stated, proven, NOT_IN_TIME, out_of_time=True)
    return Unproven(name, stated, proven, NOT_REACHED)


def _reaches(name: str, stated: float, proven: float) -> bool:
    """Whether the bound that was proven is the stated one, up to the rounding of both."""
    slack = SLACK * max(1.0, abs(stated))
    if name in (UPPER_BOUND, TASK_BOUND, BOXES_BOUND):
        return proven <= stated + slack
    return proven >= stated - slack


def boxes_with_certificate(channel: Channel, *, end: float = math.inf) -> Statement:
    """What a file of boxes states of all channels for the same boxes, proven again or not.

    The bounds of the whole are means of those of its strata. What the entropy of the rows is, and
    how many records have nothing released, are statements of the file: no counts decide them. The
    shares that the channel itself keeps are computed with the same numbers, and must be those that
    the file states, so that none of them brings a channel nearer to its bound. `end` is as for
    `with_certificate`.

    Raises
    ------
    InputError
        If the channel has no counts.
    """
    utility = channel.box_utility
    if utility is None or not has_table(channel):
        raise InputError(NO_TABLE)
    stated = {UPPER_BOUND: utility.upper_bound_nmi}
    own_shares = {UPPER_BOUND: ("nmi", utility.nmi)}
    if utility.own is not None and utility.own_bound is not None:
        stated[BOXES_BOUND] = utility.own_bound
        own_shares[BOXES_BOUND] = ("own", utility.own)
    computed = {UPPER_BOUND: _kept_of_boxes, BOXES_BOUND: _own_of_boxes}
    proven: dict[str, float] = {}
    unproven: list[Unproven] = []
    wrong: list[WrongFigure] = []
    for name, bound in stated.items():
        try:
            share, most = computed[name](channel, end)
        except (InputError, SolverError, ProofOutOfTime) as error:
            unproven.append(_failed(name, bound, error))
            continue
        of_channel, stated_share = own_shares[name]
        if abs(share - stated_share) > SLACK:
            wrong.append(WrongFigure(of_channel, stated_share, share))
        if _reaches(name, bound, most):
            proven[name] = most
        else:
            unproven.append(_not_reached(name, bound, most, end))
    return Statement(
        channel.promise,
        keeps_promise(channel),
        wrong=tuple(wrong),
        proven=proven,
        unproven=tuple(unproven),
    )


def _kept_of_boxes(channel: Channel, end: float) -> tuple[float, float]:
    """The share of the information in the rows that a channel of boxes keeps, and the most that
    any channel for these boxes does.
    """
    claims = channel.boxed.claims
    utility = claims.utility
    assert utility is not None  # the caller has looked
    information: list[float] = []
    bounds: list[float] = []
    for single in channel.channels:
        joint = single.joint
        assert joint is not None  # the caller has looked
        share = joint.total / (utility.records - claims.slice_records)
        information.append(share * measured(single, joint).mutual_information)
        most = utility_entropy(joint)
        stated = (single.record.certificate or {}).get(UPPER_BOUND)
        # Where nothing is stated, it is all of the information in the boxes.
        if stated is not None:
            most *= _proven(single, UPPER_BOUND, stated, ALONE, end)
        bounds.append(share * most)
    if not utility.entropy > 0.0:
        return 0.0, 0.0
    kept = math.fsum(information) / utility.entropy
    most = math.fsum(bounds) / utility.entropy * (1.0 + ROUNDING)
    return min(kept, 1.0), min(most, 1.0)


def _own_of_boxes(channel: Channel, end: float) -> tuple[float, float]:
    """The share of the records that keep their box, and the most that do with these boxes and
    their law; no pricing takes any time here.
    """
    utility = channel.box_utility
    assert utility is not None  # the caller has looked
    own = bound = Fraction(0)
    for single in channel.channels:
        records = (single.record.utility or {}).get(RECORDS_OF_STRATUM)
        if not isinstance(records, int):
            raise InputError("the file lacks the numbers of records of its strata")
        entries = sum(
            total * entry
            for total, entry in zip(single.row_totals, single.own_entries, strict=True)
        )
        weight = Fraction(records, utility.records)
        own += weight * Fraction(entries, sum(single.row_totals) * single.denominator)
        bound += weight * (1 - Fraction(least_changed(single, end)))
    return float(own), quotient_above(*bound.as_integer_ratio())


def least_changed(channel: Channel, end: float = math.inf) -> float:
    """The share of the records of a stratum that leave their box through any channel with its law,
    rounded down; `end` is as for `with_certificate`.
    """
    joint = channel.joint
    notion = channel.record.promise(channel.sensitive)
    assert joint is not None  # claims have it, and
    assert notion is not None
    if (channel.record.utility or {}).get(LOWER_BOUND, 0.0) <= 0.0:
        return 0.0
    proof = proof_in(channel.record.certificate)
    populations = set_behind(channel, joint)
    if not isinstance(proof, CostProof) or populations is None:
        raise InputError(NO_PROOF)
    # The law is that of all records, and rows have integers in proportion to it; the counts are
    # those of the records outside of the slice, and decide only which outputs are allowed.
    counts = (channel.row_totals,) * len(joint.sensitive)
    law = replace(joint, counts=counts)
    rules = PopulationRules(joint, notion, populations=populations)
    least_of_sides = rules.least_sides(proof, end, law.p_x)
    return cost_bound(replace(channel, joint=law), proof, None, least_of_sides, end)


def _proven(
    channel: Channel, name: str, stated: float, beside: Beside, end: float
) -> float:
    """The bound of this name that the file proves, or what of it is proven when the time ends.

    Raises
    ------
    InputError
        With the reason, where it proves none.
    OutOfTime, ProofOutOfTime
        If nothing is proven when the time ends.
    """
    joint = channel.joint
    if joint is None:
        raise InputError(NO_TABLE)
    known = _known_of_every_channel(channel, joint, name, stated)
    if known is not None:
        return known
    proof = proof_in(channel.record.certificate)
    if name == VARIANCE_BOUND:
        noise_free = _noise_free(channel, joint, stated, proof)
        if noise_free is not None:
            return noise_free
    if proof is None:
        raise InputError(_why_without(channel))
    if name == LOWER_BOUND and isinstance(proof, CostProof):
        return _least_cost_again(channel, joint, proof, beside, end)
    if isinstance(proof, CostProof):
        raise InputError(NOT_OF_THIS_KIND)
    again = ProvenAgain(channel, joint, beside, end)
    again.check(len(proof.prices))
    if name == TASK_BOUND and isinstance(proof, TaskProof):
        return again.task_bound(proof, stated)
    if name == VARIANCE_BOUND and isinstance(proof, QueryProof):
        return again.variance_bound(proof)
    if isinstance(proof, EntropyProof):
        if name == UPPER_BOUND:
            return again.kept_bound(proof, stated)
        if name.endswith(f" {LOWER_BOUND_OF_AVERAGE}"):
            return again.leakage_bound(proof, stated)
    raise InputError(NOT_OF_THIS_KIND)


def _known_of_every_channel(
    channel: Channel, joint: Joint, name: str, stated: float
) -> float | None:
    """A bound on all channels whatsoever, where the stated one claims no more; else None."""
    if name in (UPPER_BOUND, TASK_BOUND) and stated >= 1.0:
        # No channel keeps more than all.
        return 1.0
    if name == LOWER_BOUND and stated <= 0.0:
        # No cost is negative.
        objective = channel.record.objective
        if objective is not None and objective.name != "convex":
            return 0.0
    for average in channel.record.averages:
        constant = least_for_share(0.0, average.measure, joint, average.exact_gains)
        if name == f"{average.measure} {LOWER_BOUND_OF_AVERAGE}" and stated <= constant:
            # No channel leaks less than a constant.
            return constant
    return None


def _noise_free(
    channel: Channel, joint: Joint, stated: float, proof: AnyProof | None
) -> float | None:
    """The variance of X itself, which no channel tells more than, where the stated bound claims no
    more or there is no proof of another; else None.
    """
    if channel.given:
        noise_free = _noise_free_beside_given(channel, joint)
        if noise_free is None or stated > noise_free:
            return None
        return noise_free
    queries = _queries(channel, joint, proof)
    if queries is None:
        return None
    noise_free = noise_free_variance(queries, joint.p_x)
    if stated > noise_free and proof is not None:
        return None
    return noise_free


def _least_cost_again(
    channel: Channel, joint: Joint, proof: CostProof, beside: Beside, end: float
) -> float:
    """The bound on the cost of all channels that a proof of least cost gives."""
    check_earlier(channel, beside.after)
    notion = channel.record.promise(channel.sensitive)
    if notion is None:
        return cost_bound(channel, proof, end=end)
    demands: Sequence[Demand] | None = None
    if beside.after:
        demands = demands_of(beside.whole or joint, notion, beside.after, joint)
    rules = Rules(joint, notion)
    populations = set_behind(channel, joint)
    if populations is not None:
        rules = PopulationRules(joint, notion, populations=populations)
    least_of_sides = rules.least_sides(proof, end)
    return cost_bound(channel, proof, demands, least_of_sides, end)


def _why_without(channel: Channel) -> str:
    """Why a file has no proof of a bound that needs one."""
    objective = channel.record.objective
    if objective is not None and (
        objective.name == "convex" or objective.constraints > 0
    ):
        return OWN_FUNCTIONS
    if len(channel.useful) > MOST_SYMBOLS:
        return f"{NO_PROOF}: it has more than {MOST_SYMBOLS:,} symbols"
    return NO_PROOF


def _queries(channel: Channel, joint: Joint, proof: object) -> Queries | None:
    """The queries that a channel was designed for; None where the file does not have them."""
    if isinstance(proof, QueryProof) and proof.queries is not None:
        return queries_of(Queries(np.array(proof.queries)), joint)[0]
    name = str(channel.record.provenance.get("mechanism"))
    if name in NAMED_QUERIES:
        return queries_of(name, joint)[0]
    return None


def _noise_free_beside_given(channel: Channel, joint: Joint) -> float | None:
    """The variance of X itself within the strata: the mean of theirs; None without the queries."""
    name = str(channel.record.provenance.get("mechanism"))
    if name not in NAMED_QUERIES:
        return None
    variances: list[float] = []
    for _, table in strata_tables(channel.given, joint):
        queries, _ = queries_of(name, table)
        share = table.total / joint.total
        variances.append(share * noise_free_variance(queries, table.p_x))
    return math.fsum(variances)


class _Stratum(NamedTuple):
    """The records with the same given cells: their symbols in the whole table, and their table.

    `share` is that of these records, and `rules` the promise on them; None where there is nothing
    to say or to hide.
    """

    members: list[int]
    table: Joint
    share: float
    rules: Rules | None

    def of_posteriors(self, posteriors: Array) -> Array:
        """Those of this stratum among posteriors of all symbols, (k, n), over its own."""
        own = posteriors[:, self.members]
        return own[own.any(axis=1)]


def _allowed(rules: Rules, touched: Array) -> Polytope:
    """The allowed posteriors of all symbols, or a polytope around them that has the rows which all
    of them keep at those of `touched`, (k, n).
    """
    single = replace(rules, by_symbol=True)
    if single.cuts is None:
        return single.relaxation
    return polytope_at(single.cuts, touched)


@dataclass(frozen=True)
class ProvenAgain:
    """The bounds of one channel on its own table, by the prices of its file.

    `end` is when to stop, on the clock of `time.process_time`: what is proven by then holds.

    Raises
    ------
    InputError
        From every method: if the proof does not fit the channel, or what it was designed for has no
        such bound.
    OutOfTime
        From every method: if nothing is proven when the time ends.
    """

    channel: Channel
    joint: Joint
    beside: Beside
    end: float = math.inf

    def check(self, prices: int) -> None:
        """Refuse what no proof of prices is about."""
        channel = self.channel
        check_earlier(channel, self.beside.after)
        if channel.record.objective is not None:
            raise InputError(
                "the proof is one of kept information, which was not the objective"
            )
        if prices != len(self.joint.useful):
            raise InputError(
                f"the proof is of another table: it has {prices} prices for "
                f"{len(self.joint.useful)} symbols"
            )

    @cached_property
    def rules(self) -> Rules:
        """The promise on the table, on those that earlier releases leave, or on a set of them."""
        notion = self.channel.record.promise(self.channel.sensitive)
        if notion is None:
            raise InputError("the file has no promise that a bound could be about")
        populations = set_behind(self.channel, self.joint)
        if populations is not None:
            return PopulationRules(self.joint, notion, populations=populations)
        return table_rules(
            self.joint, notion, whole=self.beside.whole, after=self.beside.after
        )

    @property
    def by_symbol(self) -> Polytope:
        """The allowed posteriors of all symbols."""
        self._check_polytope()
        return replace(self.rules, by_symbol=True).relaxation

    def _check_polytope(self) -> None:
        """Raise InputError where the allowed posteriors are no polytope."""
        rules = self.rules
        if rules.cuts is not None:
            raise InputError(
                f"the posteriors that {rules.notion.name} allows are no polytope, and no proof is "
                "kept"
            )

    @property
    def seconds(self) -> float | None:
        """Seconds that are left; None without a limit."""
        return seconds_until(self.end)

    @property
    def entropy(self) -> float:
        """H(X) in nats."""
        return utility_entropy(self.joint)

    def kept_bound(self, proof: EntropyProof, stated: float) -> float:
        """The share of H(X) that no private channel exceeds, rounded up.

        `stated` is what is to be proven: the pricing ends as soon as that is known.
        """
        if self.channel.given:
            return self._kept_beside_given(np.array(proof.prices))
        least = (1.0 - stated) * self.entropy
        if self.channel.record.averages:
            charged = self._charged(proof)
            support = self._support(proof, least + charged)
            return share_of_bound(self.entropy - (support - charged), self.joint)
        rules = self.rules
        if isinstance(rules, PopulationRules):
            if rules.uncertain.is_uniform:
                bound = proven_over_tables(
                    rules.uncertain,
                    proof.prices,
                    least=least,
                    time_limit=self.seconds,
                )
            else:
                bound = self._over_members(rules, np.array(proof.prices), least)
            proven = share_bound(bound, self.entropy)
            if _reaches(UPPER_BOUND, stated, proven) or not rules.has_table:
                return proven
            # What is private for the whole set is private for the table.
            rules = Rules(self.joint, rules.notion)
        bound = self._over_polytope(rules, np.array(proof.prices), least)
        return share_bound(bound, self.entropy)

    def _kept_beside_given(self, prices: Array) -> float:
        """The same of I(X;Y|K) with given columns K: the mean of all strata."""
        channel, joint = self.channel, self.joint
        bounds: list[float] = []
        for stratum in self._strata():
            # Where nothing is to be said or hidden, all of it may be kept.
            if stratum.rules is None:
                continue
            own = prices[stratum.members]
            # The design has made them so that no posterior costs less than nothing.
            least = float(own @ stratum.table.p_x)
            bound = self._over_polytope(stratum.rules, own, least)
            bounds.append(stratum.share * bound)
        largest = beyond_given(measured(channel, joint), joint, channel.given).entropy
        return share_bound(math.fsum(bounds), largest)

    def _strata(self) -> Iterator[_Stratum]:
        """The strata of the given columns, each of which has symbols and posteriors of its own."""
        channel, joint = self.channel, self.joint
        notion = channel.record.promise(channel.sensitive)
        if notion is None:
            raise InputError(NO_PROOF)
        promise = channel.record.promise_kind
        for members, table in strata_tables(channel.given, joint):
            rules: Rules | None = None
            if len(table.useful) > 1 and len(table.sensitive) > 1:
                widened = budgets_of_stratum(
                    joint, notion, table, promise, widened=SHRINK
                )
                rules = table_rules(table, widened)
            share = table.total / joint.total
            yield _Stratum(members, table, share, rules)

    def _over_polytope(self, rules: Rules, prices: Array, least: float) -> float:
        """The bound on H(X|Y) over the allowed posteriors, from prices of all symbols.

        Any prices prove a bound. All of the mass of a class sits on the symbol with its best price,
        because H is concave, so the best price of a class is one for all of its symbols.
        """
        best = np.full(len(rules.reduced.joint.useful), -np.inf)
        np.maximum.at(best, rules.reduced.group, prices)
        if rules.cuts is not None:
            return self._over_members(rules, best, least)
        return proven_bound(
            rules.relaxation,
            rules.reduced.joint.p_x,
            best,
            least=least,
            time_limit=self.seconds,
        )

    def _over_members(self, rules: Rules, prices: Array, least: float) -> float:
        """The bound where the allowed posteriors are no polytope."""
        return proven_over_members(
            rules.members,
            rules.reduced.joint.p_x,
            prices,
            least=least,
            time_limit=self.seconds,
        )

    def leakage_bound(self, proof: EntropyProof, stated: float) -> float:
        """What every channel that keeps the share leaks on average, rounded down."""
        average, multiplier = self._only_average(proof)
        if average.keep is None or not multiplier > 0.0:
            raise InputError(NOT_OF_THIS_KIND)
        lost = (1.0 - average.keep) * self.entropy
        gains = average.exact_gains
        wanted = in_solver_unit(average.measure, stated, self.joint, gains)
        support = self._support(proof, multiplier * wanted + lost)
        bound = float((support - lost) / multiplier)
        return least_for_share(bound, average.measure, self.joint, gains)

    def _averages(
        self, proof: EntropyProof | TaskProof | QueryProof
    ) -> tuple[AverageBudget, ...]:
        """The averages that the proof has prices of."""
        averages = self.channel.record.averages
        prices = proof.leakages or ()
        if len(prices) != len(averages) or not averages:
            raise InputError(
                f"the proof is of another file: it has {len(prices)} prices for "
                f"{len(averages)} averages"
            )
        return averages

    def _only_average(
        self, proof: EntropyProof | TaskProof | QueryProof
    ) -> tuple[AverageBudget, float]:
        """The one average of a proof that has no other, and its price."""
        first, *others = self._averages(proof)
        if others:
            raise InputError(NOT_OF_THIS_KIND)
        (price,) = proof.leakages or (0.0,)
        return first, price

    def _charged(self, proof: EntropyProof) -> float:
        """What all budgets cost at the prices of the proof."""
        charged: list[float] = []
        for average, price in zip(
            self._averages(proof), proof.leakages or (), strict=True
        ):
            most = in_solver_unit(
                average.measure, average.budget, self.joint, average.exact_gains
            )
            charged.append(price * most)
        return math.fsum(charged)

    def _support(self, proof: EntropyProof, least: float) -> float:
        """y.p + m of the proof: no channel has less H(X|Y), with its leakages charged."""
        averages = self._averages(proof)
        gains: Array | None = None
        for average in averages:
            if average.exact_gains:
                gains = float_gains(average.exact_gains)
        outer = None if proof.alone else self.by_symbol
        measures = [average.measure for average in averages]
        problem = AverageProblem.of(self.joint.p, measures, outer, outer, gains)
        return proven_on_average(
            problem,
            proof.prices,
            np.array(proof.leakages or ()),
            least=least,
            time_limit=self.seconds,
        )

    def _within(
        self, proof: TaskProof | QueryProof
    ) -> tuple[Total, Polytope | None, float]:
        """The budget of a task or of queries, the allowed posteriors, and its price."""
        average, charge = self._only_average(proof)
        if average.exact_gains:
            raise InputError(NOT_OF_THIS_KIND)
        most = in_solver_unit(average.measure, average.budget, self.joint)
        leakage = Leakage(measure_of(average.measure), self.joint.p_s)
        outer = None if proof.alone else self.by_symbol
        return Total(leakage, self.joint.lift, most), outer, charge

    def _touched(self, proof: TaskProof | QueryProof) -> Array:
        """Where tangents touch the leakage, or rows the set of allowed posteriors, (k, n)."""
        return np.array(proof.touched or ()).reshape(-1, len(self.joint.useful))

    def task_bound(self, proof: TaskProof, stated: float) -> float:
        """The share of I(T;X) that no private channel exceeds, rounded up."""
        counts = np.array(proof.task, dtype=np.float64)
        if not len(counts) or not (counts.sum(axis=0) > 0.0).all():
            raise InputError("the proof has a task without records of a symbol")
        given_x = counts / counts.sum(axis=0)
        if self.channel.given:
            return self._task_beside_given(proof, given_x)
        figures = task_figures_of(self.channel, self.joint, given_x)
        self._check_own("task_kept", figures.kept)
        least = figures.prior - stated * figures.largest
        if self.channel.record.averages:
            total, outer, charge = self._within(proof)
            bound = proven_task_within(
                total,
                outer,
                self.joint.p_x,
                given_x,
                proof.prices,
                charge,
                self._touched(proof),
                time_limit=self.seconds,
            )
            return task_bound(figures, bound)
        bound = proven_task(
            _allowed(self.rules, self._touched(proof)),
            self.joint.p_x,
            given_x,
            proof.prices,
            least=least,
            time_limit=self.seconds,
        )
        return task_bound(figures, bound)

    def _task_beside_given(self, proof: TaskProof, given_x: Array) -> float:
        """The same of I(T;Y|K) with given columns K, as a share of I(T;X|K)."""
        prices = np.array(proof.prices)
        touched = self._touched(proof)
        kept: list[float] = []
        largest: list[float] = []
        bounds: list[float] = []
        for stratum in self._strata():
            members, table = stratum.members, stratum.table
            own_x = given_x[:, members]
            own_x = own_x[own_x.any(axis=1)]
            told = told_of_task(self.channel.matrix[members], table.p_x, own_x)
            most = told.largest
            bound = most
            if stratum.rules is not None and most > INFORMATION_ERROR:
                own = prices[members]
                entropy = proven_task(
                    _allowed(stratum.rules, stratum.of_posteriors(touched)),
                    table.p_x,
                    own_x,
                    own,
                    least=float(own @ table.p_x),
                    time_limit=self.seconds,
                )
                bound = min(most, told.prior - entropy)
            kept.append(stratum.share * told.released)
            largest.append(stratum.share * most)
            bounds.append(stratum.share * bound)
        whole = math.fsum(largest)
        if not whole > INFORMATION_ERROR:
            raise InputError("beside the given columns X says nothing about the task")
        self._check_own("task_kept", math.fsum(kept) / whole)
        return min(1.0, math.fsum(bounds) / whole + INFORMATION_ERROR)

    def variance_bound(self, proof: QueryProof) -> float:
        """N times the variance that no private channel is below."""
        if self.channel.given:
            return self._variance_beside_given(proof)
        queries = _queries(self.channel, self.joint, proof)
        if queries is None:
            raise InputError("the proof lacks the queries")
        inverse = np.array(proof.inverse)
        if inverse.shape != (len(self.joint.useful),) * 2:
            raise InputError(
                "the proof is of another table: its matrix has another size"
            )
        self._check_own("variance", total_variance(self.channel, queries, self.joint))
        if self.channel.record.averages:
            total, outer, charge = self._within(proof)
            bound = proven_variance_within(
                total,
                outer,
                self.joint.p_x,
                queries.gram,
                proof.prices,
                inverse,
                charge,
                self._touched(proof),
                time_limit=self.seconds,
            )
        else:
            bound = proven_variance(
                _allowed(self.rules, self._touched(proof)),
                self.joint.p_x,
                queries.gram,
                proof.prices,
                inverse,
                time_limit=self.seconds,
            )
        return variance_of(bound, queries, self.joint.p_x)

    def _variance_beside_given(self, proof: QueryProof) -> float:
        """The same of the estimates in all strata, for their numbers of records."""
        prices = np.array(proof.prices)
        inverse = np.array(proof.inverse).reshape(-1, len(prices))
        if len(inverse) != len(prices):
            raise InputError(
                "the proof is of another table: its matrix has another size"
            )
        touched = self._touched(proof)
        name = str(self.channel.record.provenance.get("mechanism"))
        bounds: list[float] = []
        for stratum in self._strata():
            members, table = stratum.members, stratum.table
            queries, _ = queries_of(name, table)
            bound = noise_free_variance(queries, table.p_x)
            if stratum.rules is not None:
                proven = proven_variance(
                    _allowed(stratum.rules, stratum.of_posteriors(touched)),
                    table.p_x,
                    queries.gram,
                    prices[members],
                    inverse[np.ix_(members, members)],
                    time_limit=self.seconds,
                )
                bound = max(bound, variance_of(proven, queries, table.p_x))
            bounds.append(stratum.share * bound)
        return math.fsum(bounds)

    def _check_own(self, name: str, computed: float) -> None:
        """Refuse a proof of another objective, by which the channel itself has another figure."""
        stated = float((self.channel.record.utility or {}).get(name, math.nan))
        # What cannot be estimated has an infinite variance, which equals itself alone.
        is_own = stated == computed
        if math.isfinite(stated) and not is_own:
            is_own = abs(stated - computed) <= SLACK * max(1.0, abs(stated))
        if not is_own:
            raise InputError(
                f"the proof is of another objective, by which {name} is {computed:.12g}"
            )
