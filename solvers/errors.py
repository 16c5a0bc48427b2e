"""Every error that `solvers` raises, all of them `SolverError`.

Errors of the arguments (`InvalidPolytope`, `InvalidOption`) are `ValueError` too. `EmptyPolytope`
and `OutsidePolytope` say that there is no answer; the others that it was not found: too large, too
late, or a back-end failed. Where a search has found anything before a limit, it returns that with a
status instead (`solvers.results.EnvelopeStatus`).
"""

from __future__ import annotations


class SolverError(Exception):
    """Base of every error of this package."""


class InvalidPolytope(SolverError, ValueError):
    """The description of a polytope or of a cost is not usable (shape, NaN, empty interval)."""


class EmptyPolytope(SolverError):
    """No point satisfies the constraints."""


class OutsidePolytope(SolverError):
    """The point to decompose is not in the polytope; `normal` and `offset` separate it.

    Every point v of the polytope has ``normal @ v <= offset`` and the point itself more.
    """

    def __init__(
        self, message: str, normal: object = None, offset: float | None = None
    ) -> None:
        super().__init__(message)
        self.normal = normal
        self.offset = offset


class TooManyVertices(SolverError):
    """The enumeration would exceed, or has exceeded, its budget of vertices or memory."""


class OutOfTime(SolverError):
    """A time limit was reached before there was anything to return."""


class InvalidOption(SolverError, ValueError):
    """An option (method, back-end, limit) has a value outside its range."""


class BackendFailure(SolverError):
    """A back-end stopped without a usable answer; the message names its status and a way out."""


class PlanError(SolverError):
    """Base of the errors of `solvers.plans`."""


class InvalidPlanProblem(PlanError, ValueError):
    """The description of a plan is not usable (shape, NaN, sums)."""


class NoPlan(PlanError):
    """No plan keeps the limits; the message says which one, where that is known."""
