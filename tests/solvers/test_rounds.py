"""The one loop of all searches: when it ends, why, and what it keeps; with searches made up for it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np
import pytest

from solvers.envelope.column_pool import ColumnPool, PooledRounds
from solvers.points import Points
from solvers.programs import HighsMaster
from solvers.results import (
    Ended,
    EnvelopeStatus,
    Progress,
    Rounds,
    envelope_bound,
)


class Scripted(Rounds):
    """A search whose rounds are a function that sets value and bound, and says what was found."""

    most_fruitless = 2
    most_still = 20

    def __init__(
        self,
        step: Callable[[Scripted], bool],
        *,
        aim: float = 0.1,
        end: float = math.inf,
        progress: Callable[[Progress], None] | None = None,
    ) -> None:
        super().__init__(0.0, aim, end, progress)
        self.best = 1.0
        self.solved = 0
        self._step = step

    @property
    def value(self) -> float:
        return self.best

    @property
    def columns(self) -> int:
        return 7

    @property
    def nodes(self) -> int:
        return 9

    def solve(self) -> None:
        self.solved += 1

    def price(self) -> bool:
        return self._step(self)


def closing(search: Scripted) -> bool:
    """A quarter of the gap is closed in every round."""
    search.bound += 0.25
    return True


def test_a_run_ends_once_value_and_bound_meet():
    search = Scripted(closing)
    assert search.run() is EnvelopeStatus.OPTIMAL
    # The last columns are in the master, too: it is solved once more than it is priced.
    assert (search.rounds, search.solved) == (4, 5)


def test_a_run_ends_when_its_time_is_over():
    search = Scripted(closing, end=time.process_time() - 1.0)
    assert search.run() is EnvelopeStatus.TIME_LIMIT
    assert (search.rounds, search.seconds) == (0, 0.0)


def test_a_run_stalls_where_pricing_finds_nothing_again_and_again():
    answers = iter([False, False, True, False, False, False, True])
    search = Scripted(lambda run: next(answers))
    assert search.run() is EnvelopeStatus.STALLED
    # Two in a row are allowed, and the columns of the third round begin a new count.
    assert next(answers)


def test_a_run_stalls_where_columns_move_neither_value_nor_bound():
    search = Scripted(lambda run: True)
    assert search.run() is EnvelopeStatus.STALLED
    assert search.rounds == Scripted.most_still + 1


def test_cuts_may_take_as_many_such_rounds_as_they_need():
    class Patient(Scripted):
        most_still = math.inf

    def cutting(search: Scripted) -> bool:
        search.bound = 1.0 if search.rounds == 1000 else 0.0
        return True

    assert Patient(cutting).run() is EnvelopeStatus.OPTIMAL


@pytest.mark.parametrize("side", ["value", "bound"])
def test_small_steps_count_once_they_add_up(side):
    """A tenth of a gain each: no round alone is one, and yet the search goes on to its end."""
    step = 0.1 * 0.1 * 0.1

    def creeping(search: Scripted) -> bool:
        if side == "value":
            search.best -= step
        else:
            search.bound += step
        return True

    search = Scripted(creeping)
    assert search.run() is EnvelopeStatus.OPTIMAL
    assert search.rounds > 10 * Scripted.most_still


def test_a_new_purpose_counts_its_own_rounds():
    def forgetful(search: Scripted) -> bool:
        if search.rounds == Scripted.most_still:
            search.forget_rounds()
        return True

    search = Scripted(forgetful)
    assert search.run() is EnvelopeStatus.STALLED
    assert search.rounds == 2 * Scripted.most_still + 1


@pytest.mark.parametrize(
    "status", [EnvelopeStatus.MEMORY_LIMIT, EnvelopeStatus.BACKEND_FAILED]
)
def test_what_ends_a_search_is_said_unless_the_gap_is_closed(status):
    def ended(search: Scripted) -> bool:
        raise Ended(status)

    def closed_and_ended(search: Scripted) -> bool:
        search.bound = search.value
        raise Ended(status)

    assert Scripted(ended).run() is status
    assert Scripted(closed_and_ended).run() is EnvelopeStatus.OPTIMAL


def test_ctrl_c_ends_a_run_with_what_was_found():
    def interrupted(search: Scripted) -> bool:
        search.best, search.bound = 0.75, 0.5
        raise KeyboardInterrupt

    search = Scripted(interrupted)
    assert search.run() is EnvelopeStatus.INTERRUPTED
    assert (search.value, search.bound) == (0.75, 0.5)


class Pooled(PooledRounds):
    """A search with a pool of a single column, the point itself."""

    def __init__(self, progress: Callable[[Progress], None]) -> None:
        point = np.array([0.5, 0.5])
        pool = ColumnPool(point, Points.from_dense(point), None, HighsMaster(point))
        super().__init__(pool, 0.1, math.inf, progress)

    @property
    def nodes(self) -> int:
        return 9

    def solve(self) -> None:
        raise AssertionError("no round is run")

    def price(self) -> bool:
        raise AssertionError("no round is run")


def test_the_best_bound_is_kept_with_its_prices_and_shown_at_once():
    seen: list[Progress] = []
    search = Pooled(seen.append)
    first = np.array([0.6, 0.2])
    search.prove(first, 0.1)
    assert search.bound == envelope_bound(first, search.pool.target, 0.1)
    # Less, and nothing at all, leave it as it is.
    search.prove(np.array([0.9, 0.9]), -0.8)
    search.prove(np.array([9.0, 9.0]), -math.inf)
    assert search.bound == pytest.approx(0.5)
    assert search.dual is first
    assert seen == [Progress(search.value, search.bound, 0, 1, 9)] * 3
    assert search.value == pytest.approx(math.log(2.0))
