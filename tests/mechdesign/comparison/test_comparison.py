"""Comparisons: rows that single designs confirm, whatever the executor; bounds; resuming."""

from __future__ import annotations

import csv
import math
from concurrent.futures import (
    BrokenExecutor,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
)
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

import mechdesign as md
from mechdesign.comparison import settings as comparison_settings
from mechdesign.comparison.rows import COLUMNS, read_rows, with_bounds
from mechdesign.comparison.run import Comparison, compare, rising
from mechdesign.core.errors import InputError, SolverFailure
from mechdesign.core.limits import DistanceMean, MeanLimits
from mechdesign.mechanisms.designing import design_requested
from mechdesign.mechanisms.request import MECHANISMS
from mechdesign.notions import NOTIONS, L1Lift

EPSILONS = (0.5, 1.0, 2.0)
MERGING = ("subset-merging", "complete-merging")


@pytest.fixture(scope="module")
def small():
    return md.Joint.from_counts(
        [[8, 1, 3, 0, 5, 2], [1, 7, 2, 4, 5, 1], [2, 2, 6, 3, 1, 9]]
    )


@pytest.fixture(scope="module")
def found(small):
    return compare(small, epsilons=EPSILONS, lams=[0.35, 0.5], notions=["alip", "ldp"])


def timeless(rows):
    return [replace(row, seconds=0.0) for row in rows]


def test_one_row_for_each_mechanism_notion_lam_and_budget_in_order(found):
    expected = [
        (m, n, lam, e)
        for m in MECHANISMS
        for n, lam in (("alip", 0.35), ("alip", 0.5), ("ldp", None))
        for e in EPSILONS
    ]
    assert [(r.mechanism, r.notion, r.lam, r.epsilon) for r in found.rows] == expected
    assert found.kept == 0


def test_rows_are_what_single_designs_give(small, found):
    for row in found.rows:
        notion = (
            md.LDP(row.epsilon)
            if row.lam is None
            else md.ALIP.from_epsilon(row.epsilon, row.lam)
        )
        single = md.design(small, notion, mechanism=row.mechanism)
        # A warm start may end elsewhere within the gap.
        assert row.nmi == pytest.approx(single.nmi, abs=1e-4)
        assert row.repaired == single.repaired
        assert row.satisfied
        verdict = md.audit(single.channel, small, notion)
        assert verdict.satisfied
        if row.mechanism in MERGING:
            assert row.nmi == single.nmi
            assert (row.max_log_lift, -row.min_log_lift) == (
                verdict.achieved.eps_u,
                verdict.achieved.eps_l,
            )


def test_leakages_are_within_the_budgets(found):
    for row in found.rows:
        # LDP bounds the quotient of two lifts, one of which is at most 1 and the other at least 1.
        assert row.max_log_lift <= (row.epsilon if row.eps_u is None else row.eps_u)
        assert row.min_log_lift >= -(row.epsilon if row.eps_l is None else row.eps_l)


def test_the_proven_bound_of_the_optimum_stands_beside_every_mechanism(found):
    for row in found.rows:
        optimum = next(
            r
            for r in found.rows
            if r.mechanism == "optimal"
            and r.curve == row.curve
            and r.epsilon == row.epsilon
        )
        assert row.upper_bound_nmi == optimum.upper_bound_nmi
        assert row.nmi <= row.upper_bound_nmi


def test_without_the_optimum_there_is_no_bound(small):
    rows = compare(small, epsilons=[1.0], mechanisms=["subset-merging"]).rows
    assert [row.upper_bound_nmi for row in rows] == [None]


def test_a_row_that_violates_its_notion_gets_no_bound(found):
    optimum = found.rows[0]
    merging = replace(found.rows[9], satisfied=False, upper_bound_nmi=None)
    kept = with_bounds(
        [
            optimum,
            replace(
                merging, notion=optimum.notion, lam=optimum.lam, epsilon=optimum.epsilon
            ),
        ]
    )
    assert kept[1].upper_bound_nmi is None


def test_utility_grows_with_the_budget_at_the_optimum(found):
    for notion, lam in {row.curve for row in found.rows}:
        curve = [
            r.nmi
            for r in found.rows
            if r.mechanism == "optimal" and r.curve == (notion, lam)
        ]
        assert all(b >= a - 1e-4 for a, b in pairwise(curve))


@pytest.mark.parametrize("pool", [ThreadPoolExecutor, ProcessPoolExecutor])
def test_an_executor_gives_the_rows_of_a_serial_run(small, pool):
    epsilons = np.arange(0.5, 6.1, 0.5)
    serial = compare(small, epsilons=epsilons)
    calls = []
    with pool(2) as executor:
        parallel = compare(
            small,
            epsilons=epsilons,
            executor=executor,
            progress=lambda *at: calls.append(at),
        )
    assert timeless(parallel.rows) == timeless(serial.rows)
    wanted = 12 * len(MECHANISMS)
    assert calls[0] == (0, wanted)
    assert calls[-1] == (wanted, wanted)
    assert calls == sorted(calls)


def test_neighbouring_budgets_start_from_each_other(monkeypatch):
    """Chunks are cut alike everywhere; within one, column generation gets the design before."""
    p = np.random.default_rng(5).random((5, 40))
    joint = md.Joint.from_probabilities(p / p.sum())
    starts = []

    def spy(request):
        starts.append(request.start)
        return design_requested(request)

    monkeypatch.setattr(comparison_settings, "design_requested", spy)
    epsilons = [2.0 + k / 8 for k in range(9)]
    rows = compare(
        joint, epsilons=epsilons, mechanisms=["optimal"], method="columns"
    ).rows
    assert [start is None for start in starts] == [k % 8 == 0 for k in range(9)]
    assert all(row.upper_bound_nmi - row.nmi <= 1e-4 for row in rows)


@dataclass(frozen=True)
class CubeLift(L1Lift):
    """Distances of third powers, for whose inverse no optimum is known."""

    @property
    def limits(self):
        return MeanLimits(DistanceMean("l3", 3), self.eps_l, self.eps_u)


@pytest.fixture
def cubes(monkeypatch):
    monkeypatch.setitem(NOTIONS, "l3", CubeLift)


def test_mechanisms_that_cannot_serve_a_notion_are_left_out_with_a_word(small, cubes):
    done = compare(small, epsilons=[1.0, 2.0], lams=[0.35, 0.5], notions=["alip", "l3"])
    served = {(row.mechanism, row.notion) for row in done.rows}
    assert served == {(m, "alip") for m in MECHANISMS} | {(m, "l3") for m in MERGING}
    assert [notice.partition(":")[0] for notice in done.notices] == [
        "optimal is left out for l3",
        "subset-response is left out for l3",
    ]


@pytest.mark.parametrize("mechanism", ["optimal", "subset-response"])
def test_a_named_mechanism_that_cannot_serve_is_refused(
    small, tmp_path, mechanism, cubes
):
    with pytest.raises(InputError, match="not convex"):
        compare(
            small,
            epsilons=[1.0],
            mechanisms=[mechanism],
            notions=["l3"],
            output=tmp_path / "o.csv",
        )
    assert list(tmp_path.iterdir()) == []


def test_all_mechanisms_serve_inverses_that_are_not_convex(small):
    done = compare(small, epsilons=[0.5], notions=["l1", "chi2"], gap=1e-3)
    served = {(row.mechanism, row.notion) for row in done.rows}
    assert served == {(m, n) for m in MECHANISMS for n in ("l1", "chi2")}
    assert all(row.satisfied for row in done.rows)


def test_as_published_rows_say_when_they_violate():
    """Merging all the risky symbols of this table is not private; the repair costs utility."""
    p = np.random.default_rng(0).random((5, 17))
    joint = md.Joint.from_probabilities(p / p.sum())
    epsilons = [4.0, 5.0, 6.0]
    repaired = compare(joint, epsilons=epsilons, mechanisms=["optimal", *MERGING])
    published = compare(
        joint, epsilons=epsilons, mechanisms=["optimal", *MERGING], as_published=True
    )
    assert all(row.satisfied for row in repaired.rows)
    violating = [not row.satisfied for row in published.rows]
    assert violating == [row.repaired for row in repaired.rows]
    assert any(violating)
    for row in published.rows:
        assert row.satisfied == (
            row.max_log_lift <= row.eps_u and -row.min_log_lift <= row.eps_l
        )
        assert (row.upper_bound_nmi is not None) == row.satisfied


class _Broken(Executor):
    def submit(self, *_, **__):
        future: Future = Future()
        future.set_exception(BrokenExecutor("killed"))
        return future


def test_a_dead_worker_is_a_solver_failure(small):
    with pytest.raises(SolverFailure, match=r"a worker process died \(killed\)"):
        compare(small, epsilons=[1.0], executor=_Broken())


@pytest.mark.parametrize("error", [BrokenExecutor("killed"), InputError("refused")])
def test_what_is_not_begun_is_cancelled_unless_its_executor_ends_it(small, error):
    """A thread that ends the futures of a broken pool dies of one that is cancelled meanwhile."""
    futures = [Future(), Future()]
    futures[0].set_exception(error)
    unsubmitted = iter(futures)

    class Executing(Executor):
        def submit(self, *_, **__):
            return next(unsubmitted)

    with pytest.raises((SolverFailure, InputError)):
        compare(
            small,
            epsilons=[1.0],
            mechanisms=["optimal", "subset-merging"],
            executor=Executing(),
        )
    assert futures[1].cancelled() is isinstance(error, InputError)


def test_an_interrupted_search_is_no_row(small, monkeypatch):
    """The solver answers Ctrl-C with its best channel so far; a comparison stops instead."""

    def stopped(request):
        made = design_requested(request)
        return replace(
            made,
            certificate=replace(made.certificate, details={"status": "interrupted"}),
        )

    monkeypatch.setattr(comparison_settings, "design_requested", stopped)
    with pytest.raises(KeyboardInterrupt):
        compare(small, epsilons=[1.0])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"epsilons": []}, "no epsilon"),
        ({"epsilons": [0.0]}, "epsilon"),
        ({"lams": [2.0]}, "lam"),
        ({"mechanisms": ["magic"]}, "mechanism 'magic' is not known"),
        ({"notions": ["magic"]}, "notion 'magic' is not known"),
        ({"method": "magic"}, "method"),
        ({"gap": -1.0}, "gap"),
        ({"time_limit": -1.0}, "time_limit"),
    ],
)
def test_bad_arguments_leave_no_file(small, tmp_path, options, words):
    with pytest.raises(InputError, match=words):
        compare(small, **{"epsilons": [1.0], **options}, output=tmp_path / "o.csv")
    assert list(tmp_path.iterdir()) == []


def test_the_csv_has_the_columns_of_the_interface_and_reads_back(found, tmp_path):
    found.to_csv(tmp_path / "o.csv")
    with open(tmp_path / "o.csv", newline="", encoding="utf-8") as stream:
        header, *lines = csv.reader(stream)
    assert ",".join(header) == (
        "mechanism,notion,epsilon,lam,eps_l,eps_u,nmi,upper_bound_nmi,max_log_lift,min_log_lift,satisfied,"
        "repaired,seconds"
    )
    assert len(lines) == len(found.rows)
    assert read_rows(tmp_path / "o.csv") == found.rows
    with pytest.raises(InputError, match="exists"):
        found.to_csv(tmp_path / "o.csv")
    found.to_csv(tmp_path / "o.csv", overwrite=True)


def test_infinite_leakage_reads_back(tmp_path):
    joint = md.Joint.from_counts([[4, 0, 2], [1, 5, 3]])
    done = compare(joint, epsilons=[5.0], notions=["max-lift"], mechanisms=["optimal"])
    assert done.rows[0].min_log_lift == -math.inf
    done.to_csv(tmp_path / "o.csv")
    assert read_rows(tmp_path / "o.csv") == done.rows


def test_columns_make_a_frame(found):
    import pandas as pd

    frame = pd.DataFrame(found.columns())
    assert tuple(frame.columns) == COLUMNS
    assert frame["nmi"].tolist() == [row.nmi for row in found.rows]


def test_a_comparison_is_frozen(found):
    with pytest.raises(AttributeError):
        found.rows = ()
    assert isinstance(found, Comparison)


def test_a_response_of_a_larger_budget_never_keeps_less(small):
    """Row by row the best channel of all budgets up to that one, with its own lifts."""
    rows = compare(small, epsilons=(0.5, 1.0, 2.0), mechanisms=["subset-response"]).rows
    fallen = [replace(rows[0], nmi=0.4, max_log_lift=0.2), replace(rows[1], nmi=0.3)]
    fallen.append(replace(rows[2], nmi=0.5))
    risen = rising(fallen)
    assert [row.nmi for row in risen] == [0.4, 0.4, 0.5]
    assert [row.epsilon for row in risen] == [0.5, 1.0, 2.0]
    assert risen[1].max_log_lift == 0.2
    assert all(before.nmi <= after.nmi for before, after in pairwise(rows))


@pytest.mark.parametrize(
    "ways", [{}, {"average": "mi"}, {"task": "sec", "epsilons": [1.0]}]
)
def test_a_column_that_identifies_records_is_refused(ways):
    """`design` refuses it; curves of 6,000 symbols take minutes for each budget."""
    ids = [f"p{i:04}" for i in range(1_000)]
    frame = pd.DataFrame({"id": ids, "sec": ["y", "n"] * 500})
    with pytest.raises(
        md.InputError, match="useful column 'id' has 1,000 symbols"
    ) as caught:
        md.compare(frame, sensitive="sec", useful="id", **ways)
    # There is no way to insist.
    assert "insist" not in str(caught.value)
