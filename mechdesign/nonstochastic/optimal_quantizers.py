"""Quantisers of a finite query with optimal thresholds, and the proof of each.

A program (`thresholds_by_levels`, `thresholds_by_error`) returns a `ThresholdChoice`: the gaps
between answers that get a threshold, and the bound that it proves. `ThresholdChoice.counted` places
each threshold half-way in its gap and counts the outputs on the query (`certify`), by code that
shares nothing with the programs. It returns an `OptimalQuantizer`, or raises if the budget is not
kept.

For example, the answers 0, 1, 5 and 6 have the gaps 0, 1 and 2. The choice of gap 1 alone is the
threshold (1 + 5) / 2 = 3, and two outputs are counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from mechdesign.core.errors import SolverFailure
from mechdesign.nonstochastic.answer_gaps import GapProblem
from mechdesign.nonstochastic.noiseless import FibreCertificate, certify
from mechdesign.nonstochastic.output_budgets import Allowance
from mechdesign.nonstochastic.quantizers import Quantizer, quantizer_between

PROVEN_BY_SEARCH = "the branch and bound of HiGHS"
STOPPED = "stopped by the time limit; only the bound is proven, by HiGHS"

TIME_LIMIT = 30.0
"""Seconds for an integer program by default."""


@dataclass(frozen=True, kw_only=True)
class OptimalQuantizer:
    """A quantiser with most levels, or with least distortion, and its proof.

    Parameters
    ----------
    gaps
        The gaps between answers that have a threshold.
    method, because
        The algorithm, and the reason why its result is optimal (or is not known to be).
    optimal
        Whether the result is proven to be the best.
    bound
        No quantiser has more levels, or less distortion.
    distortion, representatives
        The mean squared error of releasing these numbers, one for each cell.
    """

    quantizer: Quantizer
    gaps: tuple[int, ...]
    outputs_allowed: int
    method: str
    optimal: bool
    because: str
    bound: float
    certificate: FibreCertificate
    distortion: float | None = None
    representatives: tuple[Fraction, ...] = ()

    @property
    def levels(self) -> int:
        """Number of cells; each holds at least one answer."""
        return self.quantizer.levels


@dataclass(frozen=True)
class ThresholdChoice:
    """The gaps that have a threshold, the bound on every choice, and the reason for it.

    `bound` is the number of levels that no choice exceeds, or the mean squared error that none is
    below.
    """

    method: str
    gaps: list[int]
    bound: float
    optimal: bool
    because: str

    def counted(self, problem: GapProblem, allowed: Allowance) -> OptimalQuantizer:
        """The quantiser with these thresholds; its outputs are counted without the program."""
        quantizer, certificate = _counted(problem, self.gaps, allowed)
        return OptimalQuantizer(
            quantizer=quantizer,
            gaps=tuple(self.gaps),
            outputs_allowed=allowed.outputs,
            method=self.method,
            optimal=self.optimal,
            because=self.because,
            bound=self.bound,
            certificate=certificate,
        )


def _counted(
    problem: GapProblem, gaps: list[int], allowed: Allowance
) -> tuple[Quantizer, FibreCertificate]:
    """The quantiser with thresholds in these gaps, counted without any use of the program."""
    quantizer = quantizer_between(problem.values, gaps)
    certificate = certify(problem.query, quantizer)
    # A program may be wrong, or the solver beyond its tolerances: nothing unproven is returned.
    if certificate.outputs > allowed.outputs:
        raise SolverFailure(
            f"the thresholds found give {certificate.outputs} outputs on a fibre where "
            f"{allowed.outputs} are allowed; nothing is returned; try another method, and please "
            "report it"
        )
    return quantizer, certificate
