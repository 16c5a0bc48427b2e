"""What all designs of a comparison share: settings, and processes that share the work.

A case names the mechanism, notion and budget; the settings add the rest of the request, such as gap
and time limit. `ComparisonSettings.design` takes one of two ways:

- `_request` makes a `DesignRequest`, as `mechdesign.design` does. The mechanism `truth@0.95` of a
  case becomes mechanism optimal, objective truth, confidence 0.95. An option that does not apply
  to the case is left at its default: `unseen` without confidence, `distance` for other objectives.
- `_heuristic` runs a heuristic directly where `design` would do more than is wanted here: repair
  it, or try parts of the budget.

The settings that change rows are recorded in the manifest of a run (`recorded`), as in
{"method": "auto", "gap": 0.0001, "time_limit": null, "as_published": false}.

*Rows* are released in ways (`row_ways`), each with the name of a mechanism:

- `truth` and `distance` are the objectives of a design: rows of the table, with its law;
- `truth-free` and `distance-free` are the same with free frequencies, which keep more cells and
  move the law of the table;
- `randomised-response` keeps a row with a probability, else another record's row is drawn from the
  law of the table. The largest probability is found by halves, exactly verified;
- `optimal` releases free labels of rows with most information.

Each way is a channel over the same rows, audited in the same way. With a confidence level `truth`,
`truth-free` and `optimal` are designed again in boxes of rows, whose promise holds for the
population.

*Processes* die with the command whose work they share. `with pool(4, prepare) as executor` gives an
executor whose four processes have all been started. Three things make them die with the command:
Ctrl-C ends each worker at once (`_begin`), an error terminates those that are still busy
(`_terminate_children`), and the thread of a broken pool prints nothing of its own (`_undisturbed`).
Ctrl-C is blocked while they start (`_start`), because a worker that is interrupted during its
imports prints a traceback.
"""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import Executor, InvalidStateError
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mechdesign.auditing.lifts import Achieved
from mechdesign.auditing.measures import beyond_given, utility
from mechdesign.auditing.strata import strata_of
from mechdesign.auditing.unchanged import unchanged_cells
from mechdesign.auditing.verdict import Audit, audit_on_table
from mechdesign.channel.channel import DENOMINATOR, Channel
from mechdesign.channel.output_cells import own_rows
from mechdesign.channel.record import TOTAL, ChannelRecord
from mechdesign.comparison.rows import AT, Case, Setting, check_names
from mechdesign.core.documents import canonical
from mechdesign.core.errors import InputError
from mechdesign.core.integers import IntegerRows
from mechdesign.core.limits import LiftLimits
from mechdesign.mechanisms import OBJECTIVES
from mechdesign.mechanisms.designing import design_requested
from mechdesign.mechanisms.heuristics import HEURISTICS, heuristic
from mechdesign.mechanisms.least_cost_objective import DISTANCE, INFORMATION, TRUTH
from mechdesign.mechanisms.merged_sets import Risk
from mechdesign.mechanisms.optimal import OPTIMAL
from mechdesign.mechanisms.request import DesignRequest
from mechdesign.mechanisms.result import Design, finish
from mechdesign.mechanisms.rounding import Rounded
from mechdesign.mechanisms.search_options import (
    COMPLETE,
    RESPONSE,
    HeuristicOptions,
    Search,
)
from mechdesign.notions import Notion
from mechdesign.tables.joint import Joint

# --------------------------------------------------------------------------------- rows

FREE = "-free"
"""Ends the name of an objective whose frequencies are free."""

RANDOMISED = "randomised-response"

ROW_WAYS = (
    *OBJECTIVES,
    *(f"{name}{FREE}" for name in OBJECTIVES),
    RANDOMISED,
    OPTIMAL,
)

BOX_WAYS = (TRUTH, f"{TRUTH}{FREE}", OPTIMAL)
"""Ways that there are in boxes of rows, too."""

NARROW = 2.0**-20
"""How far the probability of staying may be below the largest private one: a millionth."""

MOST_RESPONSE_ROWS = 2_000
"""Rows up to which randomised response is compared: its channel has an entry for every pair."""


def row_ways(
    mechanisms: Sequence[str] | None, objectives: Sequence[str] | None, joint: Joint
) -> tuple[tuple[str, ...], list[str]]:
    """The ways that are compared, and a notice of one that is left out.

    Objectives come with the same of free frequencies, and with randomised response; by default
    that is `truth`.
    """
    if mechanisms is not None and objectives is not None:
        raise InputError(
            "objectives name ways to release rows, and so do mechanisms: give one of them"
        )
    too_many = len(joint.useful) > MOST_RESPONSE_ROWS
    notice = (
        f"{RANDOMISED} is compared up to {MOST_RESPONSE_ROWS:,} rows, and there are "
        f"{len(joint.useful):,}"
    )
    if mechanisms is not None:
        names = check_names("mechanism", mechanisms, ROW_WAYS)
        if too_many and RANDOMISED in names:
            raise InputError(notice)
        return names, []
    ways: list[str] = []
    for objective in check_names(
        "objective", objectives or (TRUTH,), (INFORMATION, *OBJECTIVES)
    ):
        if objective == INFORMATION:
            ways.append(OPTIMAL)
        else:
            ways += [objective, f"{objective}{FREE}"]
    if too_many:
        return tuple(ways), [notice]
    return (*ways, RANDOMISED), []


def box_ways(names: Sequence[str]) -> tuple[tuple[str, ...], list[str]]:
    """Those of the ways that there are with a promise for the population, where rows are released
    in boxes, and a notice of the others.
    """
    ways = tuple(name for name in names if name in BOX_WAYS)
    others = [name for name in names if name not in ways]
    if not ways:
        raise InputError(
            f"with a confidence level (--confidence) rows are released in boxes: the ways are "
            f"{', '.join(BOX_WAYS)}"
        )
    if not others:
        return ways, []
    return ways, [f"not in boxes, with a confidence level: {', '.join(others)}"]


def randomised_response(request: DesignRequest) -> Design:
    """Randomised response of whole rows with the largest private probability of staying."""
    started = time.process_time()
    joint = request.joint
    notion = request.notion
    if request.budgets:
        notion = notion.with_budgets(request.budgets)
    low = 0.0
    high = 1.0
    best = _staying(joint, 0.0, request)
    verdict = audit_on_table(best, joint, notion)
    expected: list[float] = []
    middle = 0.5
    while high - low > NARROW:
        channel = _staying(joint, middle, request)
        tried = audit_on_table(channel, joint, notion)
        if high - low == 1.0:
            expected = _expected(tried.achieved, middle, notion)
        if tried.satisfied:
            low = middle
            best, verdict = channel, tried
        else:
            high = middle
        # What is expected may be wrong: halvings go on from what was tried, whatever it was.
        middle = (low + high) / 2
        while expected:
            share = expected.pop()
            if low < share < high:
                middle = share
                break
    return _design(best, verdict, request, started)


def _expected(achieved: Achieved, share: float, notion: Notion) -> list[float]:
    """Shares on both sides of the largest private one, by what one share achieves.

    Rows that stay with probability a have the lifts 1 + a (L - 1), with the lifts L of the table.
    So the extreme lifts of one share give those of all; but not beside given columns, of quotients
    of two lifts, or with budgets of single symbols.
    """
    limits = notion.limits
    if not isinstance(limits, LiftLimits) or math.isinf(achieved.eps_l):
        return []
    highest = math.expm1(achieved.eps_u) / share
    lowest = -math.expm1(-achieved.eps_l) / share
    largest = 1.0
    if highest > 0.0:
        largest = min(largest, math.expm1(limits.upper) / highest)
    if lowest > 0.0:
        largest = min(largest, -math.expm1(-limits.lower) / lowest)
    return [largest + NARROW / 4.0, largest - NARROW / 4.0]


def _design(
    channel: Channel, verdict: Audit, request: DesignRequest, started: float
) -> Design:
    """The design of a channel of rows with its figures; it may break the promise."""
    joint = request.joint
    design = finish(
        Rounded(channel, verdict),
        joint,
        RANDOMISED,
        "halving",
        started,
        worth=beyond_given(utility(channel, joint), joint, channel.given),
    )
    # The record of `finish` does not know of given columns.
    record = replace(design.channel.record, promise_kind=request.promise)
    return replace(
        design,
        channel=channel.with_record(record),
        truth=unchanged_cells(channel, joint),
        verified=verdict.satisfied,
    )


def _staying(joint: Joint, share: float, request: DesignRequest) -> Channel:
    """Rows that stay with a probability, else become the row of another record (of the same given
    cells).
    """
    n = len(joint.useful)
    stratum = np.zeros(n, dtype=np.int64)
    if request.given:
        stratum = np.array(strata_of(tuple(request.given), joint))
    w: Any = np.zeros((n, n))
    for number in np.unique(stratum):
        members = np.flatnonzero(stratum == number)
        masses = joint.p_x[members] / joint.p_x[members].sum()
        w[np.ix_(members, members)] = (1.0 - share) * masses[None, :]
    w[np.arange(n), np.arange(n)] += share
    integers = np.rint(w * float(DENOMINATOR)).astype(np.int64)
    top = np.argmax(integers, axis=1)
    integers[np.arange(n), top] += DENOMINATOR - integers.sum(axis=1)
    return Channel(
        useful=joint.useful,
        outputs=joint.useful.names,
        rows=IntegerRows.from_array(integers),
        denominator=DENOMINATOR,
        joint=joint,
        given=tuple(request.given),
        published=own_rows(joint.useful, range(n)),
        record=ChannelRecord(promise_kind=request.promise),
    )


# ----------------------------------------------------------------------------- settings


@dataclass(frozen=True, kw_only=True)
class ComparisonSettings:
    """Everything that changes results besides the table and the columns of a row.

    The fields are those of `DesignRequest`; a design takes those that apply to its mechanism.
    `as_published` leaves out the repair of heuristics about the table, and `risk` is the order in
    which they merge sets (`HeuristicOptions`).
    """

    method: str = "auto"
    gap: float = 1e-4
    time_limit: float | None = None
    enumerate: str = "auto"
    as_published: bool = False
    risk: Risk = "auto"
    known_shares: Mapping[Any, Any] | None = None
    unseen: int = 0
    budgets: Mapping[str, tuple[float, float]] | None = None
    keep_frequencies: bool | None = None
    distance: str | None = None
    release: tuple[str, ...] | None = None
    given: tuple[str, ...] = ()
    promise: str = TOTAL

    @property
    def search(self) -> Search:
        """The options of the search for optima; InputError if one is out of range."""
        return Search(
            method=self.method,
            enumeration=self.enumerate,
            gap=self.gap,
            time_limit=self.time_limit,
        )

    @property
    def recorded(self) -> dict[str, Setting]:
        """The settings in a manifest, without the enumeration back end, which changes no row."""
        record: dict[str, Setting] = {
            "method": self.method,
            "gap": self.gap,
            "time_limit": self.time_limit,
            "as_published": self.as_published,
        }
        # The others are named only where they differ from their defaults: manifests of before they
        # existed stay valid.
        if self.risk != "auto":
            record["risk"] = self.risk
        if self.unseen:
            record["unseen"] = self.unseen
        if self.known_shares:
            record["known_shares"] = str(dict(self.known_shares))
        if self.budgets:
            record["budgets"] = str(dict(self.budgets))
        # Kept is the default of these objectives, whether it was said or not.
        if self.keep_frequencies is False:
            record["keep_frequencies"] = False
        if self.distance:
            record["distance"] = self.distance
        if self.release is not None:
            record["release"] = canonical([self.release, self.given, self.promise])
        return record

    def design(self, joint: Joint, case: Case, start: Design | None) -> Design:
        """The design of a case, from the columns of a neighbouring budget where there is one."""
        mechanism = case.mechanism.partition(AT)[0]
        # A heuristic without its repair is no design that `design` would return. And the smaller
        # budgets of a curve are at hand: the best response need not try parts of each budget.
        is_special = self.as_published or self.risk != "auto" or mechanism == RESPONSE
        if is_special and mechanism in HEURISTICS and case.confidence is None:
            return self._heuristic(joint, case)
        request = self._request(joint, case, start)
        if mechanism == RANDOMISED:
            return randomised_response(request)
        return design_requested(request)

    def _heuristic(self, joint: Joint, case: Case) -> Design:
        """A heuristic at the budget of the case alone, and as published if that is asked for."""
        notion = case.promise()
        if self.budgets:
            notion = notion.with_budgets(self.budgets)
        options = HeuristicOptions(
            # Complete merging makes one set, so that no order is left.
            risk="auto" if case.mechanism == COMPLETE else self.risk,
            as_published=self.as_published,
            smaller_budgets=False,
        )
        return heuristic(joint, notion, case.mechanism, options, self.search)

    def _request(self, joint: Joint, case: Case, start: Design | None) -> DesignRequest:
        """The request for a case.

        Options that do not apply to it are left at their defaults: the request would refuse them.
        """
        mechanism = case.mechanism.partition(AT)[0]
        objective = INFORMATION
        keep_frequencies = self.keep_frequencies
        if mechanism.endswith(FREE):
            mechanism = mechanism.removesuffix(FREE)
            keep_frequencies = False
        if mechanism == RANDOMISED:
            # Rows of the table, as those of least cost are.
            mechanism = TRUTH
        if mechanism in OBJECTIVES:
            objective = mechanism
            mechanism = OPTIMAL
        own_rows = (
            self.release is not None
            and objective != INFORMATION
            and case.confidence is None
        )
        known_shares: Mapping[Any, Any] | None = None
        unseen = 0
        if case.confidence is not None:
            known_shares = self.known_shares
            unseen = self.unseen
        distance: str | None = None
        if objective == DISTANCE:
            distance = self.distance
        return DesignRequest(
            joint,
            case.promise(),
            mechanism=mechanism,
            method=self.method,
            enumerate=self.enumerate,
            gap=self.gap,
            time_limit=self.time_limit,
            start=start,
            confidence=case.confidence,
            known_shares=known_shares,
            unseen=unseen,
            # A column that names its records says nothing of others, with or without their rows.
            allow_identifier=self.release is None,
            budgets=self.budgets,
            objective=objective,
            distance=distance,
            keep_frequencies=None if objective == INFORMATION else keep_frequencies,
            release=self.release,
            given=self.given,
            promise=self.promise,
            # A smallest group is a further promise, which other ways do not have.
            smallest_group=1 if own_rows else None,
        )


# ------------------------------------------------------------------------------ workers


@contextmanager
def pool(processes: int, prepare: Callable[[], object]) -> Generator[Executor | None]:
    """An executor of so many processes, in each of which `prepare` is called.

    For one process it is None: the work is done in this one.
    """
    if processes == 1:
        yield None
        return
    # Not at the top: work in one process needs neither.
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    # Spawned, for a fork of a process with threads can hang.
    with (
        _undisturbed(),
        ProcessPoolExecutor(
            processes,
            multiprocessing.get_context("spawn"),
            initializer=_begin,
            initargs=(prepare,),
        ) as executor,
        ExitStack() as failed,
    ):
        _start(executor, processes)
        # After an error the work of the processes is in vain, but leaving the executor would wait
        # for it.
        failed.callback(_terminate_children)
        yield executor
        # No error: the callback is dropped.
        failed.pop_all()


def _terminate_children() -> None:
    """Terminate all processes that this one has started."""
    # Loaded by then: see `pool`.
    import multiprocessing

    for worker in multiprocessing.active_children():
        worker.terminate()


def _start(executor: Executor, processes: int) -> None:
    """Start the workers with Ctrl-C blocked until `_begin`: it would print their tracebacks."""
    # Windows has no such mask.
    if not hasattr(signal, "pthread_sigmask"):
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        # An executor starts a process when it gets work, and each inherits the blocked signal.
        for _ in range(processes):
            executor.submit(int)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin(prepare: Callable[[], object]) -> None:
    """Prepare a worker: Ctrl-C ends it, instead of ending one search with its best channel."""
    prepare()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


@contextmanager
def _undisturbed() -> Generator[None]:
    """Print no traceback of the pool's own thread.

    A future that is cancelled while its pool breaks ends that thread with an InvalidStateError.
    """
    before = threading.excepthook

    def hook(arguments: threading.ExceptHookArgs) -> None:
        if not issubclass(arguments.exc_type, InvalidStateError):
            before(arguments)

    threading.excepthook = hook
    try:
        yield
    finally:
        threading.excepthook = before
