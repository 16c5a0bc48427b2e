"""Work that is measured in a process of its own: ``python -m tests.benchmarks.jobs NAME '{"n": 17, ...}'``."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from tests.benchmarks.apply_jobs import APPLY_JOBS
from tests.benchmarks.lazy_jobs import LAZY_JOBS
from tests.benchmarks.measuring import peak_memory, timed
from tests.benchmarks.reading_jobs import READING_JOBS
from tests.benchmarks.row_jobs import ROW_JOBS


def design(
    n: int,
    m: int,
    epsilon: float,
    lam: float = 0.5,
    method: str = "auto",
    gap: float = 1e-4,
    time_limit: float | None = None,
    workers: int = 1,
    concentration: float | None = None,
    marks: Sequence[float] = (),
) -> dict[str, Any]:
    """One verified channel for a random table of m x n; ``{"refused": why}`` if there is none.

    Its cells are uniform, or each row is a Dirichlet draw of the `concentration` given. `marks` are processor seconds
    of the search at which its gap is wanted.
    """
    from mechdesign.core.errors import SolverFailure
    from mechdesign.mechanisms.design_call import design as run
    from mechdesign.notions import ALIP
    from tests.cases.designs import dirichlet_table, uniform_table

    run(uniform_table(4, 3), ALIP.from_epsilon(1.0))  # imports are not part of a design
    joint = (
        uniform_table(n, m)
        if concentration is None
        else dirichlet_table(n, m, concentration)
    )
    notion = ALIP.from_epsilon(epsilon, lam)
    before = peak_memory()
    started, gaps = time.process_time(), dict.fromkeys(marks)

    def noted(step: Any) -> None:
        for mark in marks:
            if gaps[mark] is None or time.process_time() - started <= mark:
                gaps[mark] = float(step.figures["gap_nmi"])

    options = {
        "progress": noted if marks else None,
        "method": method,
        "gap": gap,
        "time_limit": time_limit,
        "workers": workers,
    }
    try:
        took = timed(lambda: run(joint, notion, fallback=False, **options))
    except SolverFailure as error:
        return {"refused": str(error)}
    found = took.result
    return {
        "cpu": took.cpu,
        "wall": took.wall,
        "before": before,
        "memory": peak_memory(),
        "nmi": found.nmi,
        "upper": found.certificate.upper_bound_nmi,
        "gap": found.certificate.gap_nmi,
        "gaps": list(gaps.values()),
        "method": found.method,
        "outputs": found.outputs,
        "messages": list(found.messages),
        **found.certificate.details,
    }


def enumeration(
    n: int, m: int, epsilon: float, lam: float = 0.5, peer: bool = False
) -> dict[str, Any]:
    """All vertices of the set of posteriors, by this package or by float cddlib."""
    from mechdesign.mechanisms.posteriors import posteriors
    from mechdesign.notions import ALIP
    from solvers.enumeration import vertices
    from tests.cases.designs import uniform_table
    from tests.oracles import float_designs

    notion = ALIP.from_epsilon(epsilon, lam)
    small = uniform_table(4, 3)
    float_designs.vertices(small, notion.limits, 0.0) if peer else vertices(
        posteriors(small, notion)
    )
    joint = uniform_table(n, m)
    before = peak_memory()
    if peer:
        took = timed(lambda: float_designs.vertices(joint, notion.limits, 0.0))
        count = None if took.result is None else len(took.result)
    else:
        took = timed(lambda: vertices(posteriors(joint, notion)))
        count = len(took.result)
    return {
        "cpu": took.cpu,
        "wall": took.wall,
        "before": before,
        "memory": peak_memory(),
        "vertices": count,
    }


JOBS: dict[str, Callable[..., dict[str, Any]]] = {
    "design": design,
    "enumeration": enumeration,
    **APPLY_JOBS,
    **LAZY_JOBS,
    **READING_JOBS,
    **ROW_JOBS,
}


if __name__ == "__main__":
    print(json.dumps(JOBS[sys.argv[1]](**json.loads(sys.argv[2]))))
