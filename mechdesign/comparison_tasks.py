"""One task of a comparison: neighbouring budgets of a curve, run one after the other in whatever process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

from mechdesign.comparison_file import Setting
from mechdesign.comparison_grid import Case
from mechdesign.comparison_rows import ComparisonRow
from mechdesign.joint import Joint
from mechdesign.mechanisms import OPTIMAL, design
from mechdesign.mechanisms.result import Design

WARM_METHOD = "columns"
"""Only column generation gains from the columns of a neighbouring budget; on small tables, which are solved
by their vertices, a warm start took twice as long as a cold one."""


@dataclass(frozen=True)
class Settings:
    """What changes results beside the table and the columns of a row; see `mechdesign.design`."""

    method: str = "auto"
    gap: float = 1e-4
    time_limit: float | None = None
    as_published: bool = False

    def record(self) -> dict[str, Setting]:
        """As the manifest has them."""
        return asdict(self)


@dataclass(frozen=True)
class Chunk:
    """Finished rows and what was said about them."""

    rows: tuple[ComparisonRow, ...] = ()
    notices: tuple[str, ...] = ()


def solve(joint: Joint, cases: Sequence[Case], settings: Settings) -> Chunk:
    """One chunk; runs in whatever process the executor chooses."""
    parts = list(each(joint, cases, settings))
    return Chunk(
        tuple(r for part in parts for r in part.rows), tuple(n for part in parts for n in part.notices)
    )


def each(joint: Joint, cases: Sequence[Case], settings: Settings) -> Iterator[Chunk]:
    """The cases of a chunk one by one, each from the design before where that helps."""
    neighbour: Design | None = None
    for case in cases:
        made = design(
            joint,
            case.promise(),
            mechanism=case.mechanism,
            method=settings.method,
            gap=settings.gap,
            time_limit=settings.time_limit,
            as_published=settings.as_published and case.mechanism != OPTIMAL,
            start=neighbour,
        )
        if _interrupted(made, settings):
            raise KeyboardInterrupt
        envelope = made.envelope
        neighbour = made if envelope is not None and envelope.method == WARM_METHOD else None
        worth_a_word = made.fallback_from is not None or _open(made, settings)
        notices = [f"{describe(case)}: {message}" for message in made.messages] if worth_a_word else []
        yield Chunk((_row(case, made),), tuple(notices))


def _interrupted(made: Design, settings: Settings) -> bool:
    """Whether Ctrl-C ended the search; an optimum that was stopped is no row to keep."""
    status = made.certificate.details.get("status")
    return status == "interrupted" or (status == "time_limit" and settings.time_limit is None)


def _open(made: Design, settings: Settings) -> bool:
    gap = made.certificate.gap_nmi
    return gap is not None and gap > settings.gap


def describe(case: Case) -> str:
    """``optimal, alip, epsilon 1, lam 0.5``."""
    lam = "" if case.lam is None else f", lam {case.lam:g}"
    return f"{case.mechanism}, {case.notion}, epsilon {case.epsilon:g}{lam}"


def _row(case: Case, made: Design) -> ComparisonRow:
    eps_l, eps_u = case.sides()
    return ComparisonRow(
        mechanism=case.mechanism,
        notion=case.notion,
        epsilon=case.epsilon,
        lam=case.lam,
        eps_l=eps_l,
        eps_u=eps_u,
        nmi=made.nmi,
        upper_bound_nmi=made.certificate.upper_bound_nmi,
        max_log_lift=made.achieved.eps_u,
        min_log_lift=0.0 - made.achieved.eps_l,
        satisfied=made.verified,
        repaired=made.repaired,
        seconds=made.seconds,
    )
