"""How hard a design is searched for, and how its progress is told."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from mechdesign.core.errors import InputError
from mechdesign.core.numbers import number
from mechdesign.core.progress import Step, Steps
from mechdesign.tables.joint import Joint
from solvers import Envelope, Progress
from solvers.enumeration.cdd import exact_available

if TYPE_CHECKING:
    from mechdesign.mechanisms.result import Design

Solve: TypeAlias = Callable[..., Envelope]
"""The optimum of all symbols, or of the `members` that it is given, at their P(X | T)."""

METHODS = ("auto", "vertices", "columns")

ENUMERATIONS = {"auto": "auto", "pivot": "pivot", "pycddlib": "cdd", "pycddlib-exact": "cdd-exact"}
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
            raise InputError(f"method ({self.method!r}) must be one of {', '.join(METHODS)}")
        if self.enumeration not in ENUMERATIONS:
            raise InputError(f"enumerate ({self.enumeration!r}) must be one of {', '.join(ENUMERATIONS)}")
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
            raise InputError(f"gap ({self.gap!r}) must be a number of at least 0, as a share of H(X)")
        if self.time_limit is not None:
            object.__setattr__(self, "time_limit", number("time_limit", self.time_limit, "of seconds"))
            if not self.time_limit >= 0.0:
                raise InputError(f"time_limit ({self.time_limit!r}) must be a number of seconds, at least 0")
        if number("workers", self.workers, "of threads") < 1:
            raise InputError(f"workers ({self.workers!r}) must be at least 1")

    def end(self, started: float, share: float = 1.0) -> float:
        """When a share of the time is over, on the clock of `time.perf_counter`."""
        return math.inf if self.time_limit is None else started + share * self.time_limit

    def options(self, joint: Joint, end: float) -> dict[str, Any]:
        """What envelopes of every kind take: the gap in nats, the time that is left, threads."""
        return {
            "gap": max(GAP_SHARE * self.gap, LEAST_GAP) * utility_entropy(joint),
            "time_limit": None if end == math.inf else max(0.0, end - time.perf_counter()),
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
