"""How hard a design is searched for, and what every mechanism returns: a verified channel with its proof."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from mechdesign.auditing.demands import own_budgets
from mechdesign.auditing.joint_leakage import Composition
from mechdesign.auditing.measures import Utility, utility
from mechdesign.auditing.population_promise import PopulationPromise, population_promise
from mechdesign.auditing.verdict import Achieved, Used
from mechdesign.channel.channel import Channel
from mechdesign.channel.record import ChannelRecord, Objective
from mechdesign.core.arguments import number
from mechdesign.core.display import Displayed
from mechdesign.core.errors import InputError
from mechdesign.core.progress import Step, Steps
from mechdesign.mechanisms.rounding import Rounded
from mechdesign.notions import Notion, to_record
from mechdesign.tables.confidence import ConfidenceSet
from mechdesign.tables.joint import Joint
from solvers import Envelope, Progress
from solvers.enumeration.cdd import exact_available

Solve: TypeAlias = Callable[..., Envelope]
"""The optimum of all symbols, or of the `members` that it is given, at their P(X | T)."""

METHODS = ("auto", "vertices", "columns")

ENUMERATIONS = {
    "auto": "auto",
    "pivot": "pivot",
    "pycddlib": "cdd",
    "pycddlib-exact": "cdd-exact",
}
"""Who lists vertices, and what `solvers.vertices` calls it."""

GAP_SHARE = 0.95
"""Share of the gap asked of the envelope; the rest is for rounding the channel to integers."""

LEAST_GAP = 1e-9
"""Gap in units of H(X) below which double precision proves nothing more."""


@dataclass(frozen=True)
class Search:
    """How the optimum is searched.

    `gap` is the difference of the proven upper bound and the NMI of the emitted integers at which the search
    stops, `time_limit` its seconds, `workers` the threads of the branch and bound. `start` is the design of
    a neighbouring budget, whose columns and prices are reused.
    """

    method: str = "auto"
    enumeration: str = "auto"
    gap: float = 1e-4
    time_limit: float | None = None
    workers: int = 1
    start: Design | None = None
    progress: Steps | None = None

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise InputError(
                f"method ({self.method!r}) must be one of {', '.join(METHODS)}"
            )
        if self.enumeration not in ENUMERATIONS:
            raise InputError(
                f"enumerate ({self.enumeration!r}) must be one of {', '.join(ENUMERATIONS)}"
            )
        if self.enumeration != "auto" and self.method != "vertices":
            raise InputError(
                f"enumerate ({self.enumeration!r}) says who lists the vertices: it needs the method vertices "
                f"(--method vertices), not {self.method}"
            )
        if self.enumeration == "pycddlib-exact" and not exact_available():
            raise InputError(
                "enumerate pycddlib-exact needs the full pycddlib with GMP, which is not installed: pip uninstall "
                "pycddlib-standalone, install libcdd-dev and libgmp-dev, pip install pycddlib; or use pycddlib or pivot"
            )
        object.__setattr__(self, "gap", number("gap", self.gap, "of at least 0"))
        if not 0.0 <= self.gap < math.inf:
            raise InputError(
                f"gap ({self.gap!r}) must be a number of at least 0, as a share of H(X)"
            )
        if self.time_limit is not None:
            object.__setattr__(
                self, "time_limit", number("time_limit", self.time_limit, "of seconds")
            )
            if not self.time_limit >= 0.0:
                raise InputError(
                    f"time_limit ({self.time_limit!r}) must be a number of seconds, at least 0"
                )
        threads = number("workers", self.workers, "of threads")
        if not (threads >= 1 and threads.is_integer()):
            raise InputError(
                f"workers ({self.workers!r}) must be at least 1, and a whole number"
            )
        object.__setattr__(self, "workers", int(threads))

    def end(self, started: float, share: float = 1.0) -> float:
        """When a share of the time is over, on the clock of `time.perf_counter`."""
        return (
            math.inf if self.time_limit is None else started + share * self.time_limit
        )

    def options(self, joint: Joint, end: float) -> dict[str, Any]:
        """What envelopes of every kind take: the gap in nats, the time that is left, threads."""
        return {
            "gap": max(GAP_SHARE * self.gap, LEAST_GAP) * utility_entropy(joint),
            "time_limit": None
            if end == math.inf
            else max(0.0, end - time.perf_counter()),
            "workers": self.workers,
        }

    def shown(self, joint: Joint) -> Callable[[Progress], None] | None:
        """The caller's progress, told in units of H(X)."""
        report = self.progress
        if report is None:
            return None
        entropy = utility_entropy(joint)

        def show(at: Progress) -> None:
            low, high = 1.0 - at.value / entropy, min(1.0, 1.0 - at.bound / entropy)
            figures = {"nmi": low, "upper_bound_nmi": high, "gap_nmi": high - low}
            said = f"utility {low:.5f}, at most {high:.5f}, gap {high - low:.2g}"
            said += f" ({at.columns} columns, {at.nodes} nodes)"
            report(Step(said, {**figures, "columns": at.columns, "nodes": at.nodes}))

        return show


def utility_entropy(joint: Joint) -> float:
    """H(X) in nats."""
    p = joint.p_x
    return -math.fsum((p * np.log(p)).tolist())


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """How far the emitted channel can be from the optimum of the stated budget.

    `upper_bound_nmi` bounds I(X;Y)/H(X) of every channel that satisfies the notion; `gap_nmi` is that
    bound minus the NMI of the emitted integers. Both are None where no optimum was computed. `scope` is
    'proven' (branch and bound, re-evaluated in outward-rounded arithmetic), or 'none'.
    """

    upper_bound_nmi: float | None = None
    gap_nmi: float | None = None
    scope: str = "none"
    details: dict[str, int | float | str] = field(
        default_factory=dict[str, int | float | str]
    )

    def at(self, nmi: float) -> Certificate:
        """The same bound, with the gap of a channel of this NMI."""
        if self.upper_bound_nmi is None:
            return self
        return replace(
            self, gap_nmi=max(0.0, math.nextafter(self.upper_bound_nmi - nmi, 2.0))
        )


@dataclass(frozen=True, kw_only=True)
class Spending:
    """What a channel and the releases before it come to for one record: exact joint budgets, information in nats.

    `before` and `together` are the joint leakage without and with this channel. `entropy` is that of all useful
    `columns` that are released, `kept_before` and `kept` what the outputs tell of them; None where there are too many
    combinations of outputs. `at_once` is the best single channel of all these columns at the same promise.
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
    """What a channel of least cost costs, exactly and rounded against it, and what no channel can cost less than.

    `truth` is the expected share of records that keep their symbol, `frequency_deviation` the largest change of an
    expected share.
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
            name: value for name, value in vars(self).items() if name != "objective"
        }


@dataclass(frozen=True, repr=False, kw_only=True)
class Design(Displayed):
    """A verified channel, its utility (nats) and what is known of the optimum.

    `mechanism` is the one that made the channel, `method` how ('vertices', 'columns', 'release',
    'partition'). `repaired` and `borrowed` speak of the watchdog's repair; `fallback_from` names the
    mechanism that was asked for when another one had to answer. `verified` is False only for the procedures
    `as_published`, without repair, where these violate the notion; their channels cannot be saved. `used` are the
    budgets of a notion on averages itself (l1, chi2, alpha) that the channel keeps to. `envelope` keeps the columns
    and prices of an optimum for a warm start at a neighbouring budget. `confidence` is the set of populations for
    which the promise was verified, None where it is one about the table. `spending` is there for a channel that was
    designed after others, `least` for channels of least cost.
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
    spending: Spending | None = field(default=None, repr=False)
    envelope: Envelope | None = field(default=None, repr=False, compare=False)
    least: LeastCost | None = None

    def __repr__(self) -> str:
        kept = f"{math.floor(10_000 * self.nmi) / 100:g} % of the information kept"
        broken = "" if self.verified else ", NOT private"
        return f"Design({self.mechanism}, {self.notion.text}, {self.outputs:,} outputs, {kept}{broken})"

    @property
    def outputs(self) -> int:
        """Number of output symbols."""
        return len(self.channel.outputs)

    @cached_property
    def population(self) -> PopulationPromise | None:
        """What holds for the population: for the set of the design, or at 95 %; None without counts of records."""
        joint = self.channel.joint
        if joint is None or not joint.is_counts or joint.sensitive.each:
            return None
        return population_promise(
            self.channel, joint, self.notion, chosen=self.confidence
        )


def finish(
    rounded: Rounded,
    joint: Joint,
    mechanism: str,
    method: str,
    started: float | None = None,
    *,
    worth: Utility | None = None,
    certificate: Certificate | None = None,
    **known: Any,
) -> Design:
    """The design of a channel that passed the exact audit, utility that of its integers; `known` are other fields."""
    from mechdesign import __version__

    channel, verdict = rounded.channel, rounded.audit
    worth = utility(channel, joint) if worth is None else worth
    proof = certificate or Certificate()
    record = ChannelRecord(
        notion=to_record(verdict.notion),
        budgets=own_budgets(joint, verdict.notion),
        achieved=asdict(verdict.achieved),
        utility=asdict(worth),
        certificate={
            name: getattr(proof, name)
            for name in ("upper_bound_nmi", "gap_nmi", "scope")
        },
        provenance={
            "tool": "mechdesign",
            "version": __version__,
            "mechanism": mechanism,
            "method": method,
        },
    )
    known |= {
        "mechanism": mechanism,
        "method": method,
        "certificate": proof,
        **asdict(worth),
    }
    known |= {name: getattr(verdict, name) for name in ("notion", "achieved", "used")}
    seconds = 0.0 if started is None else time.perf_counter() - started
    return Design(channel=channel.with_record(record), seconds=seconds, **known)
