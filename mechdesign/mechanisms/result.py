"""The result of every mechanism: a verified channel, its utility, and its certificate.

A mechanism ends with `finish`: it takes the channel of integers that passed the exact audit, works
out what it keeps, writes notion, attained budgets, utility and certificate into the channel's
record, and returns a `Design`. What a design has besides is added to that one with `replace`:
`LeastCost`, `QueryAccuracy` or `TaskUtility` by the objective, `Spending` after earlier releases,
the confidence set of a promise about the population.

Utility is the share of information that is kept, I(X;Y) / H(X), called NMI. A certificate bounds it
from above for all channels. For example, a channel with nmi 0.612 and upper_bound_nmi 0.613 is at
most 0.001 from the best one.
"""

from __future__ import annotations

import math
import time
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

from mechdesign import __version__
from mechdesign.auditing.composition import Composition
from mechdesign.auditing.law import Law, channel_law
from mechdesign.auditing.lifts import own_budgets
from mechdesign.auditing.measures import Utility, utility
from mechdesign.auditing.population_extremes import OutOfTime
from mechdesign.auditing.population_promise import PopulationPromise, population_promise
from mechdesign.auditing.strata import given_achieved
from mechdesign.auditing.verdict import Achieved, Audit, Used
from mechdesign.channel.channel import Channel
from mechdesign.channel.record import ChannelRecord, Objective
from mechdesign.core.above import above
from mechdesign.core.display import Displayed
from mechdesign.mechanisms.rounding import Rounded
from mechdesign.notions import Notion, to_record
from mechdesign.tables.confidence import ConfidenceSet
from mechdesign.tables.joint import Joint
from solvers import Envelope, EnvelopeStatus


class Rivals(NamedTuple):
    """The channels that a bound is about, in words: no `name` keeps more, and the `best` keeps
    most.
    """

    name: str
    best: str


EVERY_CHANNEL = Rivals("channel with this promise", "best possible")

OF_THESE_BOXES = Rivals("channel for these boxes", "best possible with these boxes")
"""Other boxes may keep more."""


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """The proven distance of the emitted channel from the optimum at its budget.

    `upper_bound_nmi` bounds I(X;Y)/H(X) of every channel that satisfies the notion, or of those
    among the `rivals`; `gap_nmi` is that bound minus the NMI of the emitted integers. Both are None
    where no optimum was computed.
    `scope` is 'proven' (branch and bound, re-evaluated in outward-rounded arithmetic), 'stated' (a
    channel file says so, and nothing has proven it again), or 'none'.
    `details` are figures of the search and how it ended, `prices` those of the useful symbols, in
    nats, that prove the bound.
    """

    upper_bound_nmi: float | None = None
    gap_nmi: float | None = None
    scope: str = "none"
    rivals: Rivals = EVERY_CHANNEL
    details: dict[str, int | float | str] = field(
        default_factory=dict[str, int | float | str]
    )
    prices: tuple[float, ...] | None = field(default=None, repr=False, compare=False)

    @property
    def general_bound(self) -> float | None:
        """The bound, if it is one for every channel that satisfies the notion."""
        return self.upper_bound_nmi if self.rivals == EVERY_CHANNEL else None

    def at(self, nmi: float) -> Certificate:
        """The same bound, with the gap of a channel of this NMI."""
        if self.upper_bound_nmi is None:
            return self
        # The difference is rounded upwards: a gap must never be understated.
        gap = math.nextafter(self.upper_bound_nmi - nmi, 2.0)
        return replace(self, gap_nmi=max(0.0, gap))


@dataclass(frozen=True, kw_only=True)
class Spending:
    """The joint leakage of a channel and the releases before it; information in nats.

    `before` and `together` are the exact joint budgets without and with this channel. `entropy` is
    that of all useful `columns` that are released, `kept_before` and `kept` the information of the
    outputs about them; None where there are too many combinations of outputs. `at_once` is the best
    single channel of all these columns at the same promise.
    """

    before: Composition
    together: Composition
    entropy: float
    columns: tuple[str, ...]
    kept_before: float | None
    kept: float | None
    at_once: Design | None = None


@dataclass(frozen=True, kw_only=True)
class LeastCost:
    """The cost of a channel of least cost, rounded against it, and a lower bound for all channels.

    `truth` is the expected share of records that keep their symbol, `frequency_deviation` the
    largest change of a symbol's expected share. Both are exact up to that rounding.
    """

    objective: Objective
    cost: float
    cost_lower_bound: float
    truth: float
    frequency_deviation: float

    @property
    def figures(self) -> dict[str, float]:
        """The figures, by the names that files and rows have for them."""
        return {
            "cost": self.cost,
            "cost_lower_bound": self.cost_lower_bound,
            "truth": self.truth,
            "frequency_deviation": self.frequency_deviation,
        }


@dataclass(frozen=True, kw_only=True)
class QueryAccuracy:
    """N times the total variance of the estimates of linear queries, for N released records.

    `variance` is that of the best linear unbiased estimates from this channel; no channel that
    keeps the promise has less than `variance_lower_bound`; `noise_free` is the variance if X itself
    is released, which is that of sampling alone.
    """

    name: str
    variance: float
    variance_lower_bound: float
    noise_free: float

    @property
    def figures(self) -> dict[str, float]:
        """The figures, by the names that files and rows have for them."""
        return {
            "variance": self.variance,
            "variance_lower_bound": self.variance_lower_bound,
            "noise_free": self.noise_free,
        }


@dataclass(frozen=True, kw_only=True)
class TaskUtility:
    """I(T;Y) / I(T;X) for the task column T, rounded down, and its bound for every channel."""

    column: str
    task_kept: float
    task_upper_bound: float

    @property
    def name(self) -> str:
        """The name of the objective."""
        return "task"

    @property
    def figures(self) -> dict[str, float]:
        """The figures, by the names that files and rows have for them."""
        return {
            "task_kept": self.task_kept,
            "task_upper_bound": self.task_upper_bound,
        }


@dataclass(frozen=True, repr=False, kw_only=True)
class Design(Displayed):
    """A verified channel, its utility (nats) and the certificate of its distance from the optimum.

    Attributes
    ----------
    mechanism, method : str
        The mechanism of the channel, and its method ('vertices', 'columns', 'release',
        'partition').
    nmi : float
        The share I(X;Y) / H(X) of the information that is kept.
    achieved : Achieved
        The budgets that the channel attains, from its exact audit; of boxes those that hold for
        every population of their confidence sets.
    repaired, borrowed : bool, tuple of str
        Whether merging the symbols that violate the notion was not enough, and the harmless symbols
        that were merged with them then (`mechanisms.merged_sets`).
    fallback_from : str or None
        The mechanism of the request, where another one had to take its place.
    verified : bool
        False only for the procedures `as_published`, without repair, where these violate the
        notion; their channels cannot be saved.
    used : Used or None
        The budgets of a notion on averages (l1, chi2, alpha) that the channel keeps.
    envelope : Envelope or None
        The columns and prices of an optimum, for a warm start at a neighbouring budget.
    confidence : ConfidenceSet or None
        The set of populations for which the promise was verified; None for one about the table,
        and for boxes, whose channel carries one for each stratum.
    audit : Audit or None
        Of boxes the exact verdict on all populations of these sets, and on the table.
    on_table : Achieved or None
        The budgets on the records of the proof, where `achieved` holds for the population alone.
    spending, least, purpose
        Of a channel designed after others, of one of least cost, of one for queries or a task.
    truth : dict or None
        Column to expected share of unchanged cells, rounded down, in boxes to nearest; None where
        outputs are free labels.
    smallest_group : int
        Least number of records that share a released row, or its `known` columns.
    known : tuple of str
        The columns that count for the smallest group; empty for all released ones.
    single_rows : int
        Released rows that stand for a single record of the table.
    time_left : float or None
        Processor seconds that the time limit leaves for the figure for the population; None without
        a limit.
    """

    channel: Channel
    notion: Notion
    mechanism: str
    method: str
    nmi: float
    mutual_information: float
    entropy: float
    achieved: Achieved
    certificate: Certificate = field(default_factory=Certificate)
    repaired: bool = False
    borrowed: tuple[str, ...] = ()
    fallback_from: str | None = None
    messages: tuple[str, ...] = ()
    seconds: float = 0.0
    verified: bool = True
    as_published: bool = False
    used: Used | None = None
    confidence: ConfidenceSet | None = field(default=None, repr=False)
    audit: Audit | None = field(default=None, repr=False)
    on_table: Achieved | None = None
    spending: Spending | None = field(default=None, repr=False)
    envelope: Envelope | None = field(default=None, repr=False, compare=False)
    least: LeastCost | None = None
    purpose: QueryAccuracy | TaskUtility | None = None
    truth: dict[str, float] | None = None
    smallest_group: int = 1
    known: tuple[str, ...] = ()
    single_rows: int = 0
    time_left: float | None = field(default=None, repr=False, compare=False)

    def __repr__(self) -> str:
        # Rounded down: no share may look larger than it is.
        percent = math.floor(10_000 * self.nmi) / 100
        text = (
            f"{self.mechanism}, {self.notion.text}, {self.outputs:,} outputs, {percent:g} % of the "
            "information kept"
        )
        if not self.verified:
            text += ", NOT private"
        return f"Design({text})"

    def to_record(self) -> dict[str, Any]:
        """The record of `design --json`."""
        return above("display").record(self)

    @property
    def upper_bound_nmi(self) -> float | None:
        """The proven bound on the information that any private channel keeps, if there is one."""
        return self.certificate.upper_bound_nmi

    @property
    def gap_nmi(self) -> float | None:
        """The bound minus what is kept."""
        return self.certificate.gap_nmi

    @cached_property
    def given_lift(self) -> Achieved | None:
        """The budgets that the given columns alone attain, against the whole table; None without
        given columns.
        """
        channel = self.channel
        if not channel.given or channel.joint is None:
            return None
        return given_achieved(channel.joint, channel.given)

    @property
    def was_interrupted(self) -> bool:
        """Whether Ctrl-C ended the search, which takes it for itself: what follows ends, too."""
        return self.certificate.details.get("status") == EnvelopeStatus.INTERRUPTED

    @property
    def outputs(self) -> int:
        """Number of output symbols."""
        return len(self.channel.outputs)

    @property
    def level(self) -> float | None:
        """The confidence of a promise for the population; None for one about the table."""
        if self.confidence is not None:
            return self.confidence.level
        return self.channel.level_of_claims

    @cached_property
    def unchanged(self) -> float | None:
        """The expected share of records whose output is their own symbol; None without the table.

        An output has the name of a symbol only if it comes from this symbol alone, or if outputs
        are symbols of the column (`channel.output_cells`).
        """
        channel = self.channel
        # Rows have a table of unchanged cells, and a channel of least cost a sentence.
        if (
            channel.joint is None
            or channel.published is not None
            or self.least is not None
        ):
            return None
        # The sum over x of P(x) W(x|x), in whole numbers: counts times entries of the channel.
        unchanged = 0
        totals = channel.joint.useful_counts
        for total, entry in zip(totals, channel.own_entries, strict=True):
            unchanged += total * entry
        return unchanged / (channel.joint.total * channel.denominator)

    @cached_property
    def law(self) -> Law | None:
        """What an analyst reads: how far the law of released rows or values is from the table's.

        None where outputs are labels; `law_absent` says so in words.
        """
        if self.channel.releases_labels:
            return None
        return channel_law(self.channel, self.channel.joint)

    @property
    def law_absent(self) -> str | None:
        """Why there is no law; None where there is one."""
        return None if self.law is not None else self.channel.law_absent

    @cached_property
    def population(self) -> PopulationPromise | None:
        """The promise for the population: for the set of the design, or at 95 %.

        None without counts of records, and where it takes longer than `time_left`.
        """
        joint = self.channel.joint
        if joint is None or not self.has_population:
            return None
        try:
            return population_promise(
                self.channel,
                joint,
                self.notion,
                chosen=self.confidence,
                seconds=self.time_left,
            )
        except OutOfTime:
            return None

    @property
    def has_population(self) -> bool:
        """Whether the records are a sample of a population that something can be said of."""
        # Nearly every row of many columns is that of few records, of which nothing holds for the
        # population; a channel of rows is about the table, or one of boxes.
        joint = self.channel.joint
        if joint is None or self.channel.published is not None:
            return False
        return joint.is_sample


def finish(
    rounded: Rounded,
    joint: Joint,
    mechanism: str,
    method: str,
    started: float | None = None,
    *,
    worth: Utility | None = None,
    certificate: Certificate | None = None,
    repaired: bool = False,
    borrowed: tuple[str, ...] = (),
    messages: tuple[str, ...] = (),
    envelope: Envelope | None = None,
) -> Design:
    """The design of a channel that passed the exact audit; its utility is that of the integers.

    Parameters
    ----------
    rounded : Rounded
        The channel of integers, and its audit.
    joint : Joint
        The table that its utility is measured on.
    started : float, optional
        When the design began, on the clock of `time.process_time`.
    worth : Utility, optional
        The utility, where it has been computed already.

    The other keywords are fields of `Design`.
    """
    verdict = rounded.audit
    notion = verdict.notion
    # Only a channel that releases nothing is judged without a promise.
    assert notion is not None
    if worth is None:
        worth = utility(rounded.channel, joint)
    if certificate is None:
        certificate = Certificate()
    seconds = 0.0
    if started is not None:
        seconds = time.process_time() - started
    record = ChannelRecord(
        notion=to_record(notion),
        budgets=own_budgets(joint, notion),
        achieved=asdict(verdict.achieved),
        utility=asdict(worth),
        certificate={
            "upper_bound_nmi": certificate.upper_bound_nmi,
            "gap_nmi": certificate.gap_nmi,
            "scope": certificate.scope,
        },
        provenance=_provenance(mechanism, method),
        rules=joint.rules,
    )
    return Design(
        channel=rounded.channel.with_record(record),
        notion=notion,
        mechanism=mechanism,
        method=method,
        nmi=worth.nmi,
        mutual_information=worth.mutual_information,
        entropy=worth.entropy,
        achieved=verdict.achieved,
        used=verdict.used,
        certificate=certificate,
        repaired=repaired,
        borrowed=borrowed,
        messages=messages,
        seconds=seconds,
        envelope=envelope,
    )


def _provenance(mechanism: str, method: str) -> dict[str, Any]:
    """The origin of a channel, for its file."""
    return {
        "tool": "mechdesign",
        "version": __version__,
        "mechanism": mechanism,
        "method": method,
    }
