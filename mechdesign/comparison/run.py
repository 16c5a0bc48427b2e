"""The privacy-utility trade-off of several mechanisms over budgets (Zarrabian et al. 2023, Sections 3 to 6).

A curve is a mechanism on a notion over ascending budgets. It is cut into chunks of neighbouring budgets, one task
each, so that an optimum can start from the columns of the budget before; the cuts do not depend on the
executor, so a parallel run gives the rows of a serial one.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, as_completed
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from mechdesign.auditing.population import lift_limits
from mechdesign.comparison import rows as r
from mechdesign.comparison.grid import AT, Case, curves, named, notion_labels
from mechdesign.comparison.rows import ComparisonRow
from mechdesign.core.display import Displayed
from mechdesign.core.errors import InputError, SolverFailure, expected
from mechdesign.core.files import PathLike
from mechdesign.core.progress import Progress
from mechdesign.mechanisms import MECHANISMS, OBJECTIVES, design
from mechdesign.mechanisms.optimal import OPTIMAL
from mechdesign.mechanisms.posteriors import check_polytope
from mechdesign.mechanisms.result import Design, Search
from mechdesign.mechanisms.watchdog import HEURISTICS
from mechdesign.tables.confidence import check_counts, check_level
from mechdesign.tables.joint import Joint

WARM_METHOD = "columns"
"""Only column generation gains from the columns of a neighbouring budget; on small tables, which are solved
by their vertices, a warm start took twice as long as a cold one."""

CHUNK = 8
"""Neighbouring budgets of one task: enough for warm starts, few enough to keep several cores busy."""

SECONDS_BETWEEN_WRITES = 1.0
"""A crash costs the rows of so many seconds; each write waits for the disk."""

NEED_POLYTOPE = (OPTIMAL, "subset-response", *OBJECTIVES)
"""Mechanisms that serve only notions whose posteriors form a polytope."""

ALWAYS = ("method", "gap", "time_limit", "as_published")
"""Settings that every manifest names; the others only where there is something to say."""

Settings: TypeAlias = Mapping[str, Any]
"""What changes results beside the table and the columns of a row, as `mechdesign.design` takes it."""


def _recorded(settings: Settings) -> dict[str, r.Setting]:
    """As a manifest has them, mappings as text; who lists vertices makes no difference."""
    said = {
        key: value
        for key, value in settings.items()
        if (value or key in ALWAYS) and key != "enumerate"
    }
    return said | {
        key: str(dict(said[key])) for key in ("known_shares", "budgets") if key in said
    }


def _arguments(settings: Settings, case: Case) -> dict[str, Any]:
    """What `mechdesign.design` takes for such a row: the settings that are for it."""
    mechanism, confident = case.mechanism.partition(AT)[0], case.confidence is not None
    least_cost = mechanism in OBJECTIVES
    fits = {
        "as_published": mechanism in HEURISTICS and not confident,
        "known_shares": confident,
        "unseen": confident,
        "keep_frequencies": least_cost,
        "distance": mechanism == "distance",
    }
    own = {key: value for key, value in settings.items() if fits.get(key, True)}
    made_by = (
        {"mechanism": OPTIMAL, "objective": mechanism}
        if least_cost
        else {"mechanism": mechanism}
    )
    return own | made_by | {"confidence": case.confidence, "allow_identifier": True}


Done: TypeAlias = tuple[ComparisonRow, Sequence[str]]
"""A finished row and what was said about it."""


def solve(joint: Joint, cases: Sequence[Case], settings: Settings) -> list[Done]:
    """A task; runs in whatever process the executor chooses."""
    return list(each(joint, cases, settings))


def each(joint: Joint, cases: Sequence[Case], settings: Settings) -> Iterator[Done]:
    """The cases of a task one by one, each from the design before where that helps."""
    neighbour: Design | None = None
    for case in cases:
        made = design(
            joint, case.promise(), start=neighbour, **_arguments(settings, case)
        )
        status = made.certificate.details.get("status")
        if status == "interrupted" or (
            status == "time_limit" and settings["time_limit"] is None
        ):
            raise KeyboardInterrupt  # An optimum that was stopped is no row to keep.
        envelope = made.envelope
        neighbour = (
            made if envelope is not None and envelope.method == WARM_METHOD else None
        )
        gap = made.certificate.gap_nmi
        worth_a_word = made.fallback_from is not None or (
            gap is not None and gap > settings["gap"]
        )
        yield (
            row_of(case, made),
            [f"{case.text}: {text}" for text in made.messages if worth_a_word],
        )


def row_of(case: Case, made: Design) -> ComparisonRow:
    """A design as a row of a comparison."""
    known: dict[str, Any] = vars(case) | (
        {} if made.least is None else made.least.figures
    )
    known["eps_l"], known["eps_u"] = case.promise().sides
    known |= {name: getattr(made, name) for name in ("nmi", "repaired", "seconds")}
    known |= {
        "upper_bound_nmi": made.certificate.upper_bound_nmi,
        "satisfied": made.verified,
    }
    known |= {
        "max_log_lift": made.achieved.eps_u,
        "min_log_lift": 0.0 - made.achieved.eps_l,
    }
    return ComparisonRow(**known)


@dataclass(frozen=True, repr=False)
class Comparison(Displayed):
    """What `compare` found.

    Attributes
    ----------
    rows : tuple of ComparisonRow
        Mechanism by mechanism, notion by notion, lam by lam, budgets ascending.
    kept : int
        Rows that were taken from an earlier run.
    notices : tuple of str
        What the mechanisms had to say, each preceded by where.
    """

    rows: tuple[ComparisonRow, ...]
    kept: int = 0
    notices: tuple[str, ...] = ()

    def __repr__(self) -> str:
        budgets = [row.epsilon for row in self.rows] or [math.nan]
        mechanisms = ", ".join(dict.fromkeys(row.mechanism for row in self.rows))
        span = f"epsilon {min(budgets):g} to {max(budgets):g}"
        return f"Comparison({len(self.rows):,} rows: {mechanisms}; {span})"

    def to_csv(self, path: PathLike, *, overwrite: bool = False) -> None:
        """Write the rows in the columns of the interface.

        Raises
        ------
        InputError
            If the file exists (without `overwrite`) or cannot be written.
        """
        r.write_csv(path, self.rows, overwrite=overwrite)

    def columns(self) -> dict[str, list[object]]:
        """The rows as columns, for ``pandas.DataFrame(comparison.columns())`` and its like."""
        return {
            name: [getattr(row, name) for row in self.rows]
            for name in r.columns_of(self.rows)
        }


@dataclass
class _Run:
    """What is known so far."""

    joint: Joint
    curves: Sequence[Sequence[Case]]
    settings: Settings
    file: r.ComparisonFile | None
    progress: Progress | None
    notices: list[str]
    known: dict[Case, ComparisonRow] = field(default_factory=dict[Case, ComparisonRow])
    written: float = -math.inf

    def finish(self, executor: Executor | None) -> Comparison:
        """Compute what the file does not have yet."""
        if self.file is not None:
            self.known = {row.case: row for row in self.file.kept}
        kept = len(self.rows())
        missing = [
            [case for case in curve if case not in self.known] for curve in self.curves
        ]
        tasks = [
            curve[k : k + CHUNK]
            for curve in missing
            for k in range(0, len(curve), CHUNK)
        ]
        self.add([])
        try:
            if executor is None:
                for task in tasks:
                    for done in each(self.joint, task, self.settings):
                        self.add([done])
            else:
                self.gather(
                    [
                        executor.submit(solve, self.joint, task, self.settings)
                        for task in tasks
                    ]
                )
        finally:
            self.write()
        return Comparison(self.rows(), kept, tuple(self.notices))

    def gather(self, futures: list[Future[list[Done]]]) -> None:
        """Add what the executor finds, in whatever order; where one ends badly, the others are not waited for."""
        unfinished = list(futures)
        try:
            for future in as_completed(futures):
                self.add(future.result())
        except BrokenExecutor as error:
            # Its own thread ends every future; one that is cancelled meanwhile would end that thread instead.
            unfinished.clear()
            raise SolverFailure(
                f"a worker process died ({error}); the rows so far are kept where an output was given: run again, with "
                "fewer workers if the memory was short"
            ) from error
        finally:
            for future in unfinished:
                future.cancel()

    def add(self, done: Iterable[Done]) -> None:
        for row, said in done:
            self.known[row.case] = row
            self.notices += said
        if self.progress is not None:
            cases = [case for curve in self.curves for case in curve]
            self.progress(sum(case in self.known for case in cases), len(cases))
        if time.monotonic() - self.written > SECONDS_BETWEEN_WRITES:
            self.write()

    def write(self) -> None:
        if self.file is not None and self.known:
            self.file.write(self.rows())
            self.written = time.monotonic()

    def rows(self) -> tuple[ComparisonRow, ...]:
        wanted = (self.known.get(case) for curve in self.curves for case in curve)
        return r.with_bounds([row for row in wanted if row is not None])


def compare(
    joint: Joint,
    *,
    epsilons: Iterable[float],
    lams: Iterable[float] | None = None,
    mechanisms: Sequence[str] | None = None,
    notions: Sequence[str] = ("alip",),
    method: str = "auto",
    gap: float = 1e-4,
    time_limit: float | None = None,
    enumerate: str = "auto",
    as_published: bool = False,
    confidence: float | None = None,
    known_shares: Mapping[Any, Any] | None = None,
    unseen: int = 0,
    budgets: Mapping[str, tuple[float, float]] | None = None,
    objectives: Sequence[str] | None = None,
    keep_frequencies: bool = False,
    distance: str | None = None,
    executor: Executor | None = None,
    output: PathLike | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> Comparison:
    """Run mechanisms on notions over budgets; every channel behind a row was verified exactly.

    Parameters
    ----------
    joint : Joint
    epsilons : numbers
        Budgets in nats.
    lams : numbers, optional
        Shares of epsilon for the lower side (default 0.5). Notions that take their budget whole (LIP, LDP,
        max-lift, min-lift) appear once, whatever the lams.
    mechanisms : names, optional
        Default: every one that can serve the notion; a notice says which are left out.
    notions : names
        As on the command line; `alpha:A` is alpha-lift of order A.
    confidence : float, optional
        Run every mechanism also so that its promise holds for the population at this level, beside the one about the
        table; these rows name it `optimal@0.95`.
    objectives : names, optional
        'truth' and 'distance' add the channels of least cost on the column's own symbols, by these names among the
        mechanisms; 'information' is `mechanisms`, by default the optimum alone: the limit for free outputs.
    method, gap, time_limit, enumerate, as_published, known_shares, unseen, budgets, keep_frequencies, distance
        Of each design that they can be for; see `mechdesign.design`. Rows as published may violate their notion.
    executor : concurrent.futures.Executor, optional
        Where chunks of neighbouring budgets run; default: here, one after the other.
    output : path, optional
        CSV that is written as rows come. If it is there from an earlier run on the same table with the same
        settings, its rows are kept and only missing ones are computed.
    force : bool
        Start `output` over, whatever is there.
    progress : callable, optional
        Called with the number of rows known and wanted.

    Raises
    ------
    InputError
        On an argument out of range, a mechanism that was named and cannot serve a notion, or an `output` that
        belongs to something else.
    SolverFailure
        If the executor breaks down.
    """
    expected("joint", joint, Joint, "; Joint.from_table and Joint.from_counts make one")
    settings: Settings = {
        "method": method, "gap": gap, "time_limit": time_limit, "enumerate": enumerate, "unseen": unseen,
        "as_published": as_published, "known_shares": known_shares, "budgets": budgets or None,
        "keep_frequencies": keep_frequencies, "distance": distance,
    }  # fmt: skip
    chosen = _mechanisms(joint, mechanisms, objectives, confidence, settings)
    wanted = curves(chosen, notion_labels(notions), epsilons, lams)
    wanted, notices = _servable(
        wanted, named_by_user=mechanisms is not None or objectives is not None
    )
    file = (
        None
        if output is None
        else r.ComparisonFile(output, joint, _recorded(settings), force=force)
    )
    return _Run(joint, wanted, settings, file, progress, notices).finish(executor)


def _mechanisms(
    joint: Joint,
    mechanisms: Sequence[str] | None,
    objectives: Sequence[str] | None,
    confidence: float | None,
    settings: Settings,
) -> tuple[str, ...]:
    """Mechanisms, objectives by their names among them, and those with confidence, if the settings fit them."""
    # Refuses what is out of range.
    own = {key: settings[key] for key in ("method", "gap", "time_limit")}
    Search(**own, enumeration=settings["enumerate"])
    known = (*MECHANISMS, *OBJECTIVES)
    if objectives is None:
        chosen = (
            MECHANISMS if mechanisms is None else named("mechanism", mechanisms, known)
        )
    else:
        free = [OPTIMAL] if mechanisms is None else list(mechanisms)
        asked = named("objective", objectives, ("information", *OBJECTIVES))
        both = [
            name
            for each in asked
            for name in (free if each == "information" else [each])
        ]
        chosen = named("mechanism", both, known)
    if confidence is not None:
        check_counts(joint)
        chosen += tuple(f"{name}{AT}{check_level(confidence)!r}" for name in chosen)
    least_cost = set(OBJECTIVES).intersection(chosen)
    if (
        settings["keep_frequencies"] or settings["distance"] is not None
    ) and not least_cost:
        raise InputError(
            "keep_frequencies and distance need objectives truth and distance: give objectives"
        )
    return chosen


def _servable(
    wanted: list[list[Case]], *, named_by_user: bool
) -> tuple[list[list[Case]], list[str]]:
    """The curves that can be computed, and what is said of the others unless the user named them."""
    possible: list[list[Case]] = []
    notices: dict[str, None] = {}
    for curve in wanted:
        case = curve[0]
        try:
            if case.confidence is not None:
                lift_limits(case.promise())
            elif case.mechanism in NEED_POLYTOPE:
                check_polytope(case.promise())
            possible.append(curve)
        except InputError as error:
            if named_by_user and case.confidence is None:
                raise
            notices[f"{case.mechanism} is left out for {case.notion}: {error}"] = None
    return possible, list(notices)
