"""How a design searches: the options of the optimum and of the heuristics, as users give them.

*The optimum* (method, gap, time, threads). `Search` has the options as users give them, and checks
them. A mechanism asks it for the `end` of its time, for the keywords of a solver (`options`), and
for progress in the user's units (`shown`).

Durations are seconds, and moments those of `time.process_time`. Gaps are shares of H(X) here and
nats in `solvers`: a gap of 1e-4 for a column with H(X) = 2 nats is 1.9e-4 nats there, as
`GAP_SHARE` leaves some of it to the rounding.

*The heuristics*, and the choices that their paper leaves open (Zarrabian et al. 2023). A symbol is
*risky* if releasing it as it is would break the notion. The heuristics merge risky symbols into
sets, and three things about that can be chosen:

- `risk`: which set counts as the riskiest and is merged next (`merged_sets.Risk`).
- `as_published`: the procedure of the paper may end with a set that breaks the notion. The repair
  then lets harmless symbols join (`merged_sets`); this option leaves it out.
- `smaller_budgets`: a larger budget may merge other sets, within which less can be kept. Subset
  response therefore tries the sets of smaller budgets too.

Designs take the `STANDARD` options; others are for figures of the paper and for study. A choice
that the mechanism does not have is refused (`HeuristicOptions.check`). Complete merging may draw
from any distribution R(y) that is the same for every risky symbol (Section 3.1.1). Each output then
has the lifts of the merged set, whatever R is; a single output is the simplest R, and the one here.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from mechdesign.core.arguments import number
from mechdesign.core.errors import InputError
from mechdesign.core.progress import Step, Steps
from mechdesign.mechanisms.merged_sets import RISKS, Risk
from mechdesign.tables.joint import Joint
from solvers import Envelope, Progress
from solvers.enumeration import exact_available

# --------------------------------------------------------------- options of the optimum

Solve: TypeAlias = Callable[..., Envelope]
"""Returns the optimum of all symbols, or of some `members` at their P(X | T)."""

METHODS = ("auto", "vertices", "columns")

ENUMERATIONS = {
    "auto": "auto",
    "pivot": "pivot",
    "pycddlib": "cdd",
    "pycddlib-exact": "cdd-exact",
}
"""Vertex enumeration back ends: their names for users, and those of `solvers.vertices`."""

GAP_SHARE = 0.95
"""Share of the gap for the envelope; the rest is for rounding the channel to integers."""

LEAST_GAP = 1e-9
"""Gap in units of H(X) below which double precision proves nothing more."""


AFTERWARDS_SHARE = 0.75
"""Share of the time limit that may go into verification, figures and file after a search that has
used all of it: what cannot be written in that time has fewer outputs (`fewer_outputs`)."""

ENTROPY_ERROR = 4e-15
"""Relative error bound of H(X) and of the quotients of the certificate."""


@dataclass(frozen=True)
class Search:
    """The options of a search for the optimum.

    The search stops where the proven upper bound minus the NMI of the emitted integers is at most
    `gap`, or after `time_limit` seconds; `workers` are the threads of the branch and bound. `start`
    is the envelope of a neighbouring budget, whose columns and prices are reused. The limit counts
    from `since`, a moment of `time.process_time`; without it, from the call of a mechanism.
    """

    method: str = "auto"
    enumeration: str = "auto"
    gap: float = 1e-4
    time_limit: float | None = None
    workers: int = 1
    start: Envelope | None = None
    progress: Steps | None = None
    since: float | None = None

    def __post_init__(self) -> None:
        self._check_method()
        gap = number("gap", self.gap, "of at least 0")
        if not 0.0 <= gap < math.inf:
            raise InputError(
                f"--gap ({self.gap!r}) must be a number of at least 0, as a share of H(X)"
            )
        object.__setattr__(self, "gap", gap)
        if self.time_limit is not None:
            seconds = number("time_limit", self.time_limit, "of seconds")
            if not seconds >= 0.0:
                raise InputError(
                    f"--time-limit ({seconds!r}) must be a number of seconds, at least 0"
                )
            object.__setattr__(self, "time_limit", seconds)
        threads = number("workers", self.workers, "of threads")
        if not (threads >= 1 and threads.is_integer()):
            raise InputError(
                f"workers ({self.workers!r}) must be at least 1, and a whole number"
            )
        object.__setattr__(self, "workers", int(threads))

    def _check_method(self) -> None:
        """Raise InputError unless method and enumeration back end exist and fit together."""
        if self.method not in METHODS:
            raise InputError(
                f"--method ({self.method!r}) must be one of {', '.join(METHODS)}"
            )
        if self.enumeration not in ENUMERATIONS:
            raise InputError(
                f"--enumerate ({self.enumeration!r}) must be one of {', '.join(ENUMERATIONS)}"
            )
        if self.enumeration != "auto" and self.method != "vertices":
            raise InputError(
                f"--enumerate ({self.enumeration!r}) says who lists the vertices: it "
                f"needs the method vertices (--method vertices), not {self.method}"
            )
        if self.enumeration == "pycddlib-exact" and not exact_available():
            raise InputError(
                "enumerate pycddlib-exact needs the full pycddlib with GMP, which is "
                "not installed: pip uninstall pycddlib-standalone, install libcdd-dev "
                "and libgmp-dev, pip install pycddlib; or use pycddlib or pivot"
            )

    def end(self, started: float, share: float = 1.0) -> float:
        """The end of a share of the time, on the clock of `time.process_time`.

        `started` is when the mechanism was called.
        """
        if self.time_limit is None:
            return math.inf
        if self.since is not None:
            started = self.since
        return started + share * self.time_limit

    def left(self) -> float | None:
        """Seconds that are left; None without a limit."""
        if self.time_limit is None:
            return None
        now = time.process_time()
        return max(0.0, self.end(now) - now)

    def afterwards(self) -> float | None:
        """Seconds for what follows a search that ran out of time: verification, figures and file;
        None without a limit.
        """
        left = self.left()
        if left is None or self.time_limit is None:
            return None
        return max(left, AFTERWARDS_SHARE * self.time_limit)

    def options(self, joint: Joint, end: float) -> dict[str, Any]:
        """Keywords of envelopes of every kind: the gap in nats, the remaining time, threads."""
        seconds = None
        if end < math.inf:
            seconds = max(0.0, end - time.process_time())
        return {
            "gap": max(GAP_SHARE * self.gap, LEAST_GAP) * utility_entropy(joint),
            "time_limit": seconds,
            "workers": self.workers,
        }

    def shown(self, joint: Joint) -> Callable[[Progress], None] | None:
        """The caller's progress, in units of H(X)."""
        report = self.progress
        if report is None:
            return None
        entropy = utility_entropy(joint)

        def show(progress: Progress) -> None:
            # The solver minimises H(X|Y), so its value and its bound change places here.
            nmi = 1.0 - progress.value / entropy
            bound = min(1.0, 1.0 - progress.bound / entropy)
            gap = bound - nmi
            line = (
                f"utility {nmi:.5f}, at most {bound:.5f}, gap {gap:.2g} "
                f"({progress.columns} columns, {progress.nodes} nodes)"
            )
            figures = {
                "nmi": nmi,
                "upper_bound_nmi": bound,
                "gap_nmi": gap,
                "columns": progress.columns,
                "nodes": progress.nodes,
            }
            report(Step(line, figures))

        return show


def share_bound(bound: float, entropy: float) -> float:
    """The largest share of `entropy` H(X) that is kept where H(X|Y) >= `bound`, rounded up."""
    # I(X;Y) / H(X) = 1 - H(X|Y) / H(X).
    uncertainty = bound / entropy
    # The quotient is rounded downwards for either sign, then the difference upwards: a bound on
    # utility must never be too small.
    least = uncertainty * (1.0 - math.copysign(ENTROPY_ERROR, uncertainty))
    return min(1.0, math.nextafter(1.0 - least + ENTROPY_ERROR, 2.0))


def utility_entropy(joint: Joint) -> float:
    """H(X) in nats."""
    p = joint.p_x
    return -math.fsum((p * np.log(p)).tolist())


def cost_steps(progress: Steps | None) -> Callable[[float, float], None] | None:
    """The caller's progress in the form of the solver of plans: cost and bound so far."""
    if progress is None:
        return None

    def show(cost: float, bound: float) -> None:
        text = f"cost {cost:.5g}, at least {bound:.5g}"
        progress(Step(text, {"cost": cost, "cost_lower_bound": bound}))

    return show


# ------------------------------------------------------------ options of the heuristics

COMPLETE = "complete-merging"
SUBSETS = "subset-merging"
RESPONSE = "subset-response"


@dataclass(frozen=True, kw_only=True)
class HeuristicOptions:
    """What a user chose where the heuristics leave a choice; for figures and for study.

    Parameters
    ----------
    risk : {"auto", "log-max", "log-ratio", "sum"}
        How subset merging and subset response order sets; "sum" is what the paper prints for ALIP.
    as_published : bool
        Leave out the repair. Where the channel violates the notion, `verified` is False; it cannot
        be saved in any case.
    smaller_budgets : bool
        Whether subset response also tries parts of the budget.
    """

    risk: Risk = "auto"
    as_published: bool = False
    smaller_budgets: bool = True

    def __post_init__(self) -> None:
        if self.risk not in RISKS:
            raise InputError(f"risk ({self.risk!r}) must be one of {', '.join(RISKS)}")

    def check(self, mechanism: str) -> None:
        """Raise InputError if one of the choices does not belong to the mechanism.

        Only what differs from the standard is refused: a choice that is not made fits everything.
        """
        if self.risk != "auto" and mechanism not in (RESPONSE, SUBSETS):
            raise InputError(
                f"risk belongs to {SUBSETS} and {RESPONSE}, not to {mechanism}"
            )
        if self.as_published and mechanism not in (RESPONSE, SUBSETS, COMPLETE):
            raise InputError(
                f"as_published belongs to the heuristics, not to {mechanism}, which needs no repair"
            )


STANDARD = HeuristicOptions()
"""The options of every design."""
