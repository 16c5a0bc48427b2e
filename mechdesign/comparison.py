"""The privacy-utility trade-off of several mechanisms over budgets (Zarrabian et al. 2023, Sections 3 to 6).

A curve is a mechanism on a notion over ascending budgets. It is cut into chunks of neighbouring budgets, one task
each, so that an optimum can start from the columns of the budget before; the cuts do not depend on the
executor, so a parallel run gives the rows of a serial one.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, as_completed
from dataclasses import dataclass

from mechdesign.comparison_file import ComparisonFile, write_csv
from mechdesign.comparison_grid import Case, ascending, curves, named, notion_labels
from mechdesign.comparison_rows import COLUMNS, ComparisonRow, with_bounds
from mechdesign.comparison_tasks import Chunk, Settings, each, solve
from mechdesign.errors import InputError, SolverFailure
from mechdesign.files import PathLike
from mechdesign.joint import Joint
from mechdesign.mechanisms import MECHANISMS, OPTIMAL, Search
from mechdesign.posteriors import check_polytope
from mechdesign.progress import Progress

CHUNK = 8
"""Neighbouring budgets of one task: enough for warm starts, few enough to keep several cores busy."""

SECONDS_BETWEEN_WRITES = 1.0
"""A crash costs the rows of so many seconds; each write waits for the disk."""

NEED_POLYTOPE = (OPTIMAL, "subset-response")
"""Mechanisms that serve only notions whose posteriors form a polytope."""


@dataclass(frozen=True)
class Comparison:
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

    def to_csv(self, path: PathLike, *, overwrite: bool = False) -> None:
        """Write the rows in the columns of the interface.

        Raises
        ------
        InputError
            If the file exists (without `overwrite`) or cannot be written.
        """
        write_csv(path, self.rows, overwrite=overwrite)

    def columns(self) -> dict[str, list[object]]:
        """The rows as columns, for ``pandas.DataFrame(comparison.columns())`` and its like."""
        return {name: [getattr(row, name) for row in self.rows] for name in COLUMNS}


@dataclass
class _Run:
    """What is known so far."""

    cases: Sequence[Case]
    file: ComparisonFile | None
    progress: Progress | None
    known: dict[Case, ComparisonRow]
    notices: list[str]
    written: float = -math.inf

    def add(self, chunk: Chunk) -> None:
        self.known |= {row.case: row for row in chunk.rows}
        self.notices += chunk.notices
        self.report()
        if time.monotonic() - self.written > SECONDS_BETWEEN_WRITES:
            self.write()

    def write(self) -> None:
        if self.file is not None and self.known:
            self.file.write(self.rows())
            self.written = time.monotonic()

    def report(self) -> None:
        if self.progress is not None:
            self.progress(sum(case in self.known for case in self.cases), len(self.cases))

    def rows(self) -> tuple[ComparisonRow, ...]:
        return with_bounds([self.known[case] for case in self.cases if case in self.known])


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
    as_published: bool = False,
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
    method, gap, time_limit, as_published
        Of each single design; see `mechdesign.design`. Rows as published may violate their notion.
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
    settings = Settings(method, gap, time_limit, as_published)
    Search(method=method, gap=gap, time_limit=time_limit)  # refuses what is out of range before any work
    chosen = MECHANISMS if mechanisms is None else named("mechanism", mechanisms, MECHANISMS)
    wanted = curves(
        chosen,
        notion_labels(notions),
        ascending("epsilon", epsilons),
        None if lams is None else tuple(lams),
    )
    wanted, notices = _servable(wanted, named_by_user=mechanisms is not None)
    cases = [case for curve in wanted for case in curve]
    file = None if output is None else ComparisonFile(output, joint, settings.record(), force=force)
    known = {} if file is None else {row.case: row for row in file.kept}
    run = _Run(cases, file, progress, known, notices)
    kept = sum(case in run.known for case in cases)
    missing = [[case for case in curve if case not in run.known] for curve in wanted]
    tasks = [curve[k : k + CHUNK] for curve in missing for k in range(0, len(curve), CHUNK)]
    run.report()
    try:
        if executor is None:
            for task in tasks:
                for finished in each(joint, task, settings):
                    run.add(finished)
        else:
            _spread(executor, joint, tasks, settings, run)
    finally:
        run.write()
    return Comparison(run.rows(), kept, tuple(run.notices))


def _servable(wanted: list[list[Case]], *, named_by_user: bool) -> tuple[list[list[Case]], list[str]]:
    """The curves that can be computed, and what is said of the others unless the user named them."""
    possible: list[list[Case]] = []
    notices: list[str] = []
    for curve in wanted:
        case = curve[0]
        try:
            if case.mechanism in NEED_POLYTOPE:
                check_polytope(case.promise())
        except InputError as error:
            if named_by_user:
                raise
            notices.append(f"{case.mechanism} is left out for {case.notion}: {error}")
        else:
            possible.append(curve)
    return possible, list(dict.fromkeys(notices))


def _spread(
    executor: Executor, joint: Joint, tasks: Sequence[Sequence[Case]], settings: Settings, run: _Run
) -> None:
    futures: list[Future[Chunk]] = []
    try:
        futures = [executor.submit(solve, joint, task, settings) for task in tasks]
        for future in as_completed(futures):
            run.add(future.result())
    except BrokenExecutor as error:
        # Its own thread ends every future; one that is cancelled meanwhile would end that thread instead.
        raise SolverFailure(
            f"a worker process died ({error}); the rows so far are kept where an output was given: run again, with "
            "fewer workers if the memory was short"
        ) from error
    except BaseException:
        for future in futures:
            future.cancel()
        raise
