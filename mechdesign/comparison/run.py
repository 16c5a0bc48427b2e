"""The privacy-utility trade-off of several mechanisms over budgets (Zarrabian et al. 2023, Sections
3 to 6).

A curve is a mechanism on a notion over ascending budgets; each of its budgets gives one row. With
`epsilons=[0.5, 1]` and two mechanisms there are two curves and four rows: ::

    mechanism         notion  epsilon  lam     nmi  upper_bound_nmi
    optimal           alip        0.5  0.5  0.6441           0.6442
    optimal           alip        1    0.5  0.7687           0.7688
    complete-merging  alip        0.5  0.5  0.5991           0.6442
    complete-merging  alip        1    0.5  0.5991           0.7688

1. `compare` checks the arguments, lists the curves (`rows.curves`), and leaves out those whose
   mechanism cannot serve the notion (`_servable`).
2. `_Run.finish` takes the rows of an earlier run from the file. `_Run.tasks` cuts the missing ones
   into chunks of neighbouring budgets, so that an optimum can start from the columns of the budget
   before. The cuts do not depend on the executor: a parallel run gives the rows of a serial one.
3. `finished_rows` designs the channels of a chunk, here or on an executor, and `_Run.add` writes
   the file now and then.
4. `_Run.rows` compares the rows. A proven bound holds for all rows of its notion and budget
   (`rows.with_bounds`): in the example those of the optimum serve `complete-merging`. And the best
   response at one budget also serves every larger one (`rising`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, as_completed
from dataclasses import dataclass, field, replace
from inspect import signature
from itertools import chain
from typing import Any, TypeAlias

from mechdesign.auditing.population import lift_limits
from mechdesign.auditing.unchanged import share_of_cells
from mechdesign.channel.record import TOTAL
from mechdesign.comparison import rows as r
from mechdesign.comparison.rows import (
    AT,
    Case,
    ComparisonRow,
    check_names,
    curves,
    notion_labels,
)
from mechdesign.comparison.settings import ComparisonSettings, box_ways, row_ways
from mechdesign.comparison.ways import PurposeRequest, average_rows, purpose_of
from mechdesign.core.display import Displayed
from mechdesign.core.errors import InputError, SolverFailure, require_type
from mechdesign.core.files import PathLike
from mechdesign.core.progress import Progress
from mechdesign.mechanisms import OBJECTIVES
from mechdesign.mechanisms.classes import refuse_identifier
from mechdesign.mechanisms.least_cost_objective import DISTANCE, INFORMATION
from mechdesign.mechanisms.merged_sets import Risk
from mechdesign.mechanisms.optimal import OPTIMAL
from mechdesign.mechanisms.posteriors import check_optimum
from mechdesign.mechanisms.queries import Queries
from mechdesign.mechanisms.request import MECHANISMS
from mechdesign.mechanisms.result import Design
from mechdesign.mechanisms.search_options import RESPONSE, HeuristicOptions
from mechdesign.tables.confidence import check_counts, check_level
from mechdesign.tables.joint import Joint, names_of_columns

WARM_METHODS = ("columns", "cuts")
"""Only column generation gains from the columns of a neighbouring budget; on small tables, which
are solved by their vertices, a warm start took twice as long as a cold one.
"""

CHUNK = 8
"""Neighbouring budgets of one task: enough for warm starts, few enough to keep several cores busy.
"""

SECONDS_BETWEEN_WRITES = 1.0
"""Seconds between two writes, each of which waits for the disk; a crash loses the rows since."""

NEED_OPTIMUM = (OPTIMAL, RESPONSE)
"""Mechanisms for notions whose optimum can be computed, and no others."""

OF_AVERAGES = frozenset(
    [
        "joint",
        "average",
        "sensitive",
        "useful",
        "gap",
        "time_limit",
        "force",
        "progress",
    ]
)
"""Arguments of `compare` that a comparison at an average budget has."""

OF_PURPOSES = OF_AVERAGES - {"average"} | frozenset(
    ["epsilons", "lams", "notions", "objectives", "task", "budgets"]
)
"""Arguments of `compare` that a comparison for a purpose has."""

OTHER_NAMES = {
    "unseen": "symbols",
    "executor": "workers",
    "budgets": "budget",
}
"""Options of the command line that are not called as the argument."""

FinishedRow: TypeAlias = tuple[ComparisonRow, Sequence[str]]
"""A finished row and the messages about it."""


@dataclass(frozen=True, repr=False)
class Comparison(Displayed):
    """The result of `compare`.

    Attributes
    ----------
    rows : tuple of ComparisonRow
        Mechanism by mechanism, notion by notion, lam by lam, budgets ascending.
    kept : int
        Rows that were taken from an earlier run.
    notices : tuple of str
        Messages of the mechanisms, each preceded by its case.
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
        table: dict[str, list[object]] = {}
        for name in r.columns_of(self.rows):
            table[name] = [getattr(row, name) for row in self.rows]
        return table


def compare(
    joint: Any,
    *,
    epsilons: Iterable[float] | None = None,
    average: Mapping[str, Any] | None = None,
    sensitive: str | Sequence[str] | None = None,
    useful: str | Sequence[str] | None = None,
    release: str | Sequence[str] | None = None,
    given: str | Sequence[str] = (),
    promise: str = TOTAL,
    lams: Iterable[float] | None = None,
    mechanisms: Sequence[str] | None = None,
    notions: Sequence[str] = ("alip",),
    method: str = "auto",
    gap: float = 1e-4,
    time_limit: float | None = None,
    enumerate: str = "auto",
    as_published: bool = False,
    risk: Risk = "auto",
    confidence: float | None = None,
    known_shares: Mapping[Any, Any] | None = None,
    unseen: int = 0,
    budgets: Mapping[str, tuple[float, float]] | None = None,
    objectives: Sequence[str] | Queries | None = None,
    task: Joint | None = None,
    keep_frequencies: bool | None = None,
    distance: str | None = None,
    executor: Executor | None = None,
    output: PathLike | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> Comparison:
    """Run mechanisms on notions over budgets; every channel of a row is verified exactly.

    Parameters
    ----------
    joint : Joint, data frame or path
    epsilons : numbers
        Budgets in nats.
    average : mapping, optional
        In place of budgets one on an average, as for `mechdesign.design`: the certified optimum
        beside greedy merging and, for the mutual information, the best of restarts of the
        convex-concave procedure. The `figure` of a row is its average.
    sensitive, useful : str or sequence of str, optional
        Of a data frame: the columns to protect and to release, as in `Joint.from_table`.
    release, given : str or sequence of str, optional
        Compare ways to release rows of these columns, beside the given ones; the ways are the
        mechanisms (`comparison.settings`). By default the objective truth, the same with free
        frequencies, and randomised response.
    promise : {"total", "relative"}
        With given columns, as for `mechdesign.design`.
    lams : numbers, optional
        Shares of epsilon for the lower side (default 0.5). Notions that take their budget whole
        (LIP, LDP, max-lift, min-lift) appear once, whatever the lams.
    mechanisms : names, optional
        By default all that can serve the notion; a notice names those that are left out.
    notions : names
        As on the command line; `alpha:A` is alpha-lift of order A.
    confidence : float, optional
        Run every mechanism a second time, with a promise for the population at this level; these
        rows name it `optimal@0.95`.
    objectives : names, optional
        'truth' and 'distance' add the channels of least cost on the column's own symbols, by these
        names among the mechanisms; 'information' is `mechanisms`, by default the optimum alone: the
        limit for free outputs. Or one purpose alone, "frequencies", "prefix", "ranges", "task" or
        `Queries`: the channel made for it beside those made for information, each with its `figure`
        for the purpose.
    task : Joint, optional
        With the objective "task", as for `mechdesign.design`.
    risk : {"auto", "sum", "log-max", "log-ratio"}
        Which sets of symbols subset merging and subset response merge first, for study: "sum" is
        the risk that the paper prints for ALIP and for l1, chi2 and alpha.
    method, gap, time_limit, enumerate, as_published, known_shares, unseen, budgets,
    keep_frequencies, distance
        Of each design to which they apply; see `mechdesign.design`. Rows as published may violate
        their notion.
    executor : concurrent.futures.Executor, optional
        Runs chunks of neighbouring budgets; by default they run here, one after the other.
    output : path, optional
        CSV file that grows with the rows. If it exists from an earlier run on the same table with
        the same settings, its rows are kept and only missing ones are computed.
    force : bool
        Start `output` over, whatever it holds.
    progress : callable, optional
        Called with the number of finished rows and of all rows.

    Raises
    ------
    InputError
        On an argument out of range, a mechanism that was named and cannot serve a notion, or an
        `output` that belongs to something else.
    SolverFailure
        If the executor breaks down.
    """
    arguments = locals()
    released = None if release is None else names_of_columns(release)
    beside = names_of_columns(given)
    if released is not None:
        if useful is not None:
            raise InputError(
                "useful releases columns as one label, release as rows: give one of them"
            )
        useful = (*beside, *released)
    joint = _table_of(joint, sensitive, useful)
    if release is None:
        # Each budget would take minutes, for curves of a column that `design` refuses.
        refuse_identifier(
            joint.useful.columns, len(joint.useful), joint.records, insist=""
        )
    if average is not None:
        _refuse_others(arguments, OF_AVERAGES)
        rows, messages = average_rows(joint, average, gap=gap, time_limit=time_limit)
        return Comparison(tuple(rows), notices=messages)
    # A grid may come as an array, which has no truth value.
    grid = () if epsilons is None else epsilons
    purpose = purpose_of(objectives)
    if purpose is not None or task is not None:
        _refuse_others(arguments, OF_PURPOSES)
        cases = curves(("",), notion_labels(notions), grid, lams)
        request = PurposeRequest(joint, purpose, task, gap, time_limit, budgets)
        return _for_purpose(request, cases, progress)
    settings = ComparisonSettings(
        method=method,
        gap=gap,
        time_limit=time_limit,
        enumerate=enumerate,
        as_published=as_published,
        risk=risk,
        known_shares=known_shares,
        unseen=unseen,
        budgets=budgets or None,
        keep_frequencies=keep_frequencies,
        distance=distance,
        release=released,
        given=beside,
        promise=promise,
    )
    _check_settings(settings, confidence)
    if released is not None and joint.useful.columns != useful:
        joint = joint.releasing((*beside, *released))
    named: Any = objectives
    names, left_out = _ways(joint, settings, mechanisms, named, confidence)
    all_curves = curves(names, notion_labels(notions), grid, lams)
    named_by_user = mechanisms is not None or objectives is not None
    possible, notices = _servable(joint, all_curves, named_by_user=named_by_user)
    # The file comes last: with refused arguments none is written.
    file = None
    if output is not None:
        file = r.ComparisonFile(output, joint, settings.recorded, force=force)
    run = _Run(joint, possible, settings, file, progress, [*left_out, *notices])
    return run.finish(executor)


def _table_of(
    data: Any,
    sensitive: str | Sequence[str] | None,
    useful: str | Sequence[str] | None,
) -> Joint:
    """The joint table to compare on; that of a data frame where its columns are named."""
    if sensitive is not None and useful is not None:
        data = Joint.from_table(data, sensitive=sensitive, useful=useful)
    return require_type(
        "joint",
        data,
        Joint,
        "; Joint.from_table and Joint.from_counts make one, and of a data frame sensitive and "
        "useful name the columns",
    )


def _check_settings(settings: ComparisonSettings, confidence: float | None) -> None:
    """Raise InputError for options out of range, before anything is computed, and for options that
    do not go with what is released.
    """
    _ = settings.search
    _ = HeuristicOptions(risk=settings.risk)
    if settings.risk != "auto" and confidence is not None:
        raise InputError(
            "risk (--risk) is for the heuristics about the table: leave it out with a confidence "
            "level"
        )
    if settings.release is None:
        _check_columns(settings)
    else:
        _check_rows(settings)


def _ways(
    joint: Joint,
    settings: ComparisonSettings,
    mechanisms: Sequence[str] | None,
    objectives: Sequence[str] | None,
    confidence: float | None,
) -> tuple[tuple[str, ...], list[str]]:
    """The names of what is compared, those at the confidence level last, and notices on what is
    left out.
    """
    left_out: list[str] = []
    if settings.release is None:
        names = _mechanisms(mechanisms, objectives)
        _check_cost_settings(settings, names)
    else:
        names, left_out = row_ways(mechanisms, objectives, joint)
        _check_distance(settings, names)
    if confidence is None:
        if settings.known_shares is not None or settings.unseen:
            raise InputError(
                "known_shares (--known-shares) and unseen symbols (--symbols) need a confidence "
                "level (--confidence): without one the table itself is the population"
            )
        return names, left_out
    at_level = names
    if settings.release is not None:
        at_level, single = box_ways(names)
        left_out = [*left_out, *single]
    return (*names, *_at_level(at_level, joint, confidence)), left_out


def _check_distance(settings: ComparisonSettings, names: Sequence[str]) -> None:
    """Raise InputError for a distance if no way of these names moves numbers."""
    if settings.distance is None or any(name.startswith(DISTANCE) for name in names):
        return
    raise InputError(
        "distance (--distance) is for the objective distance: give objectives (--objectives "
        "distance)"
    )


def _refuse_others(arguments: Mapping[str, Any], known: frozenset[str]) -> None:
    """Raise InputError for the first argument of `compare` that was given and is not `known`."""
    for name, parameter in signature(compare).parameters.items():
        value = arguments[name]
        # An array, as a grid may be, has no truth value.
        is_plain = isinstance(value, str | int | float | tuple | list | dict)
        is_default = value is parameter.default or (
            is_plain and (not value or value == parameter.default)
        )
        if name not in known and not is_default:
            option = OTHER_NAMES.get(name, name.replace("_", "-"))
            raise InputError(
                f"a comparison for a purpose or at an average budget has no {name} (--{option}): "
                "leave it out"
            )


def _for_purpose(
    request: PurposeRequest, curves: Sequence[Sequence[Case]], progress: Progress | None
) -> Comparison:
    """The ways for a purpose at every budget."""
    rows: list[ComparisonRow] = []
    # A dictionary as an ordered set: every budget has the same remarks.
    notices: dict[str, None] = {}
    cases = list(chain.from_iterable(curves))
    for case in cases:
        found, messages = request.rows(case)
        rows += found
        notices.update(dict.fromkeys(messages))
        if progress is not None:
            progress(cases.index(case) + 1, len(cases))
    return Comparison(r.with_bounds(rows), notices=tuple(notices))


def _check_columns(settings: ComparisonSettings) -> None:
    """Raise InputError for what belongs to rows where none are released."""
    if settings.given or settings.promise != TOTAL:
        raise InputError(
            "given and promise belong to a release of rows: name the columns with release "
            "(--release COL,..)"
        )


def _check_rows(settings: ComparisonSettings) -> None:
    """Raise InputError for what a comparison of rows does not have."""
    is_special = settings.as_published or settings.risk != "auto"
    if settings.keep_frequencies is not None or is_special:
        raise InputError(
            "keep_frequencies (--keep-frequencies, --free-frequencies), as_published "
            "(--as-published) and risk (--risk) are for channels of one column: rows are compared "
            "with the law of the table and without it"
        )


def _mechanisms(
    mechanisms: Sequence[str] | None, objectives: Sequence[str] | None
) -> tuple[str, ...]:
    """Names of mechanisms and objectives in one list.

    Among objectives `information` is replaced by the mechanisms, by default the optimum.
    """
    names = (*MECHANISMS, *OBJECTIVES)
    if objectives is None:
        if mechanisms is None:
            return MECHANISMS
        return check_names("mechanism", mechanisms, names)
    both: list[str] = []
    for objective in check_names("objective", objectives, (INFORMATION, *OBJECTIVES)):
        if objective != INFORMATION:
            both.append(objective)
        elif mechanisms is None:
            both.append(OPTIMAL)
        else:
            both += mechanisms
    return check_names("mechanism", both, names)


def _at_level(
    names: tuple[str, ...], joint: Joint, confidence: float
) -> tuple[str, ...]:
    """The mechanisms with a promise for the population, named as in `optimal@0.95`."""
    check_counts(joint)
    level = check_level(confidence)
    return tuple(f"{name}{AT}{level!r}" for name in names)


def _check_cost_settings(settings: ComparisonSettings, names: Sequence[str]) -> None:
    """Raise InputError for settings of least cost where no mechanism is of least cost."""
    if settings.keep_frequencies is None and settings.distance is None:
        return
    if not any(name in OBJECTIVES for name in names):
        raise InputError(
            "keep_frequencies (--keep-frequencies, --free-frequencies) and distance need "
            "objectives truth and distance: give objectives"
        )


def _servable(
    joint: Joint, all_curves: list[list[Case]], *, named_by_user: bool
) -> tuple[list[list[Case]], list[str]]:
    """The curves that can be computed, and notices of the others unless the user named them."""
    possible: list[list[Case]] = []
    # A dictionary as an ordered set: many curves have the same notice.
    notices: dict[str, None] = {}
    for curve in all_curves:
        # Whether a mechanism serves a notion does not depend on the budget.
        case = curve[0]
        try:
            if case.confidence is not None:
                lift_limits(case.promise())
            elif case.mechanism in (*NEED_OPTIMUM, *OBJECTIVES):
                check_optimum(case.promise(), joint)
            possible.append(curve)
        except InputError as error:
            # Nobody names `optimal@0.95`: a level of confidence adds it for every mechanism.
            if named_by_user and case.confidence is None:
                raise
            notices[f"{case.mechanism} is left out for {case.notion}: {error}"] = None
    return possible, list(notices)


@dataclass
class _Run:
    """The rows of a comparison so far, by their cases.

    `compare` makes one and calls `finish`, which calls all the others. `notices` and `by_case` grow
    with the rows; `written` is the time of the last write (seconds of the monotonic clock).
    """

    joint: Joint
    curves: Sequence[Sequence[Case]]
    settings: ComparisonSettings
    file: r.ComparisonFile | None
    progress: Progress | None
    notices: list[str]
    by_case: dict[Case, ComparisonRow] = field(
        default_factory=dict[Case, ComparisonRow]
    )
    written: float = -math.inf

    def finish(self, executor: Executor | None) -> Comparison:
        """Compute the rows that the file does not have yet."""
        if self.file is not None:
            self.by_case = {row.case: row for row in self.file.earlier_rows}
        kept = len(self.rows())
        tasks = self.tasks()
        # No row is added, but the progress of the earlier run is reported.
        self.add([])
        try:
            if executor is None:
                self.compute_here(tasks)
            else:
                self.compute_on(executor, tasks)
        finally:
            # Also after Ctrl-C or a failure: the next run goes on from the rows so far.
            self.write()
        return Comparison(self.rows(), kept, tuple(self.notices))

    def tasks(self) -> list[list[Case]]:
        """The missing cases of every curve, cut into chunks of neighbouring budgets."""
        tasks: list[list[Case]] = []
        for curve in self.curves:
            missing = [case for case in curve if case not in self.by_case]
            for start in range(0, len(missing), CHUNK):
                tasks.append(missing[start : start + CHUNK])
        return tasks

    def compute_here(self, tasks: Iterable[Sequence[Case]]) -> None:
        """Compute one task after the other, and add every row at once."""
        for task in tasks:
            for finished in finished_rows(self.joint, task, self.settings):
                self.add([finished])

    def compute_on(self, executor: Executor, tasks: Iterable[Sequence[Case]]) -> None:
        """Add the rows of the executor, in any order; a failure cancels the other tasks."""
        futures: list[Future[list[FinishedRow]]] = []
        for task in tasks:
            future = executor.submit(_rows_of_task, self.joint, task, self.settings)
            futures.append(future)
        unfinished = list(futures)
        try:
            for future in as_completed(futures):
                self.add(future.result())
        except BrokenExecutor as error:
            # Its own thread ends every future; one that is cancelled meanwhile would end that
            # thread instead.
            unfinished.clear()
            raise SolverFailure(
                f"a worker process died ({error}); the rows so far are kept where an "
                "output was given: run again, with fewer workers if the memory was "
                "short"
            ) from error
        finally:
            for future in unfinished:
                future.cancel()

    def add(self, new_rows: Iterable[FinishedRow]) -> None:
        """Take finished rows in, report them, and write them now and then."""
        for row, messages in new_rows:
            self.by_case[row.case] = row
            self.notices += messages
        if self.progress is not None:
            # Counted anew each time, because rows of an earlier run are finished, too.
            finished = 0
            planned = 0
            for curve in self.curves:
                finished += sum(case in self.by_case for case in curve)
                planned += len(curve)
            self.progress(finished, planned)
        if time.monotonic() - self.written > SECONDS_BETWEEN_WRITES:
            self.write()

    def write(self) -> None:
        """Bring the file up to date."""
        if self.file is not None and self.by_case:
            self.file.write(self.rows())
            self.written = time.monotonic()

    def rows(self) -> tuple[ComparisonRow, ...]:
        """The finished rows in the order of the curves, with every bound proven for them."""
        rows: list[ComparisonRow] = []
        for curve in self.curves:
            finished = [self.by_case[case] for case in curve if case in self.by_case]
            if curve[0].mechanism == RESPONSE and not self.settings.as_published:
                finished = rising(finished)
            rows += finished
        return r.with_bounds(rows)


def _rows_of_task(
    joint: Joint, cases: Sequence[Case], settings: ComparisonSettings
) -> list[FinishedRow]:
    """The rows of a task in a worker process, which cannot send a generator back."""
    return list(finished_rows(joint, cases, settings))


def finished_rows(
    joint: Joint, cases: Sequence[Case], settings: ComparisonSettings
) -> Iterator[FinishedRow]:
    """The cases of a task in turn, each started from the design before where that helps.

    The messages of a design become notices only where something went wrong: another mechanism took
    its place, or the search left a larger gap than asked for.
    """
    # The first design of a chunk starts cold, wherever the chunk is computed.
    neighbour: Design | None = None
    for case in cases:
        design = settings.design(joint, case, neighbour)
        status = design.certificate.details.get("status")
        out_of_time = status == "time_limit" and settings.time_limit is None
        if design.was_interrupted or out_of_time:
            # Its row must not be kept, for a later run would take it for a finished one.
            raise KeyboardInterrupt
        neighbour = None
        if design.envelope is not None and design.envelope.method in WARM_METHODS:
            neighbour = design
        messages: list[str] = []
        gap = design.certificate.gap_nmi
        # Open: the channel may be the best one, but the search has not proven it.
        is_open = gap is not None and gap > settings.gap
        if design.fallback_from is not None or is_open:
            messages = [f"{case.text}: {message}" for message in design.messages]
        yield row_of(case, design), messages


def row_of(case: Case, design: Design) -> ComparisonRow:
    """A design as a row of a comparison."""
    eps_l, eps_u = case.promise().sides
    row = ComparisonRow(
        mechanism=case.mechanism,
        notion=case.notion,
        epsilon=case.epsilon,
        lam=case.lam,
        eps_l=eps_l,
        eps_u=eps_u,
        nmi=design.nmi,
        upper_bound_nmi=design.certificate.general_bound,
        max_log_lift=design.achieved.eps_u,
        min_log_lift=0.0 - design.achieved.eps_l,  # never -0.0
        satisfied=design.verified,
        repaired=design.repaired,
        seconds=design.seconds,
    )
    if design.truth is not None:
        row = replace(row, truth=share_of_cells(design.truth))
    if design.truth is not None and design.law is not None:
        row = replace(
            row,
            frequency_deviation=design.law.largest_deviation,
            total_variation=design.law.total_variation,
        )
    least = design.least
    if least is None:
        return row
    return replace(
        row,
        cost=least.cost,
        cost_lower_bound=least.cost_lower_bound,
        truth=least.truth,
        frequency_deviation=least.frequency_deviation,
    )


def rising(curve: Sequence[ComparisonRow]) -> list[ComparisonRow]:
    """The rows of a curve, each with the channel of a smaller budget where that one keeps more.

    Budgets ascend on both sides, so that a channel that keeps one keeps all later ones, too. A row
    keeps its budget and its seconds, and its bound, which is that of its budget. An `nmi` of 0.4,
    0.6, 0.5 over three budgets becomes 0.4, 0.6, 0.6.
    """
    risen: list[ComparisonRow] = []
    best: ComparisonRow | None = None
    for row in curve:
        if best is None or row.nmi >= best.nmi:
            best = row
        risen.append(
            replace(
                row,
                nmi=best.nmi,
                max_log_lift=best.max_log_lift,
                min_log_lift=best.min_log_lift,
                satisfied=best.satisfied,
                repaired=best.repaired,
            )
        )
    return risen
