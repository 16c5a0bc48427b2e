"""The optimal channel: its value by every method, its certificate, and the tables at the edge."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest

from mechdesign.core.errors import InputError, SolverFailure
from mechdesign.mechanisms import rules
from mechdesign.mechanisms.design_call import design
from mechdesign.mechanisms.rounding import RoundingFailure
from mechdesign.mechanisms.search_options import Search
from mechdesign.notions import ALIP, LDP, LIP, MaxLift, MinLift
from mechdesign.tables.joint import Joint
from solvers import BackendFailure, TooManyVertices
from tests.cases.designs import (
    METHODS,
    independent_nmi,
    is_private,
    normalised,
    notions_of,
    uniform_table,
)
from tests.oracles.cvxpy_master import CvxpyMaster
from tests.profiles import slow

# `mechdesign.mechanisms.optimal` names the function once the package is imported.
module = import_module("mechdesign.mechanisms.optimal")

CDD_ERROR = 1e-7
"""How far the value of float cddlib and linprog may be from the truth on these tables, in units of H(X)."""


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("epsilon", "nmi"), [(1.0, 0.8508), (2.0, 0.9599)])
def test_the_published_optimum_of_adult(adult, method, epsilon, nmi):
    """Zarrabian et al. 2023, Figure 3a, and a rebuild to four digits."""
    found = design(adult, ALIP.from_epsilon(epsilon), method=method, fallback=False)
    assert found.nmi == pytest.approx(nmi, abs=1e-4)
    assert found.certificate.upper_bound_nmi == pytest.approx(nmi, abs=2e-4)
    assert found.method == ("vertices" if method == "auto" else method)
    assert is_private(found, adult)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("notion", notions_of(1.0), ids=str)
def test_every_notion_on_adult_agrees_with_an_independent_enumeration(
    adult, method, notion
):
    found = design(adult, notion, method=method, gap=1e-6, fallback=False)
    truth = independent_nmi(adult, notion)
    assert found.certificate.upper_bound_nmi >= truth - CDD_ERROR
    assert truth - 1e-6 - CDD_ERROR <= found.nmi <= truth + CDD_ERROR
    assert is_private(found, adult)


@pytest.mark.parametrize(
    "shape", [(2, 2), (2, 9), (3, 4), (4, 8), slow((5, 12)), (7, 7), (8, 3)], ids=str
)
@pytest.mark.parametrize("method", METHODS)
def test_random_tables_agree_with_an_independent_enumeration(shape, method):
    rng = np.random.default_rng([7, *shape])
    for epsilon in (0.1, 0.7, 3.0):
        joint = Joint.from_probabilities(normalised(rng, shape[1], shape[0]))
        notion = notions_of(epsilon)[rng.integers(9)]
        found = design(joint, notion, method=method, gap=1e-6, fallback=False)
        truth = independent_nmi(joint, notion)
        assert truth - 1e-6 - CDD_ERROR <= found.nmi <= truth + CDD_ERROR
        assert found.certificate.upper_bound_nmi >= truth - CDD_ERROR


@pytest.mark.parametrize("epsilon", [0.25, 1.0, 4.0])
def test_columns_agree_with_vertices_on_the_table_of_the_paper(epsilon):
    """17 x 5, no enumeration called: the same optimum to 1e-6."""
    joint = uniform_table(17)
    for lam in (0.35, 0.5, 0.65):
        notion = ALIP.from_epsilon(epsilon, lam)
        columns = design(joint, notion, method="columns", gap=1e-6, fallback=False)
        vertices = design(joint, notion, method="vertices", gap=1e-6, fallback=False)
        assert columns.nmi == pytest.approx(vertices.nmi, abs=1e-6)
        assert "enumeration" not in columns.certificate.details
        assert vertices.certificate.details["vertices"] > 0


def test_another_master_program_agrees(adult, monkeypatch):
    """HiGHS and Clarabel (through cvxpy) share no code; the certificate is ours in both cases."""
    notion = ALIP.from_epsilon(1.0)
    one = module.optimal(rules.Rules(adult, notion), Search(method="vertices"))
    monkeypatch.setattr("solvers.envelope.generation.HighsMaster", CvxpyMaster)
    other = module.optimal(rules.Rules(adult, notion), Search(method="vertices"))
    assert other.nmi == pytest.approx(one.nmi, abs=1e-6)
    assert other.certificate.upper_bound_nmi >= one.nmi
    assert is_private(other, adult)


def test_two_sensitive_values_are_solved_on_a_line():
    """|S| = 2: one lift says everything, so pairs of symbols are priced directly."""
    joint = Joint.from_counts(np.random.default_rng(1).integers(1, 500, (2, 120)))
    found = design(joint, ALIP.from_epsilon(1.0), fallback=False)
    assert found.method == "line"
    assert found.certificate.gap_nmi <= 1e-4
    assert is_private(found, joint)


def test_symbols_with_proportional_columns_are_priced_together():
    """Three symbols with equal lifts are one column for the search, and the optimum is that of all of them."""
    joint = Joint.from_counts([[10, 20, 30, 7], [30, 60, 90, 2], [5, 10, 15, 40]])
    notion = ALIP.from_epsilon(1.0)
    for method in METHODS:
        found = design(joint, notion, method=method, gap=1e-7, fallback=False)
        assert found.nmi == pytest.approx(independent_nmi(joint, notion), abs=2e-7)


def test_one_sensitive_symbol_leaves_nothing_to_protect():
    joint = Joint.from_counts([[3, 1, 2]], useful_labels=["a", "b", "c"])
    with pytest.raises(
        InputError, match=r"a single symbol \('s0'\): there is nothing to protect"
    ):
        design(joint, LIP(1.0))


@pytest.mark.parametrize(
    "notion",
    [ALIP(9.0, math.inf), ALIP(math.inf, 2.0), MaxLift(2.0), LDP(9.0)],
    ids=str,
)
def test_loose_and_one_sided_budgets_release_x_itself(notion):
    joint = Joint.from_counts([[30, 9, 30, 1], [10, 19, 20, 40]])
    found = design(joint, notion)
    assert (found.nmi, found.method, found.certificate.gap_nmi) == (1.0, "release", 0.0)
    assert np.array_equal(found.channel.matrix, np.eye(4))


def test_the_budget_at_which_x_can_be_released_is_decided_exactly():
    """The largest lift is exactly 2: X goes out at the first double whose exponential reaches 2, not before."""
    joint = Joint.from_counts([[2, 1, 1], [0, 2, 2]])
    edge = math.log(2.0)
    found = [
        design(joint, MaxLift(b)).method
        for b in (math.nextafter(edge, 0.0), math.nextafter(edge, 1.0))
    ]
    assert found[0] != "release"
    assert found[1] == "release"


def test_a_zero_cell_forbids_the_release_of_x_at_any_lower_budget():
    """Lift 0 is below every exp(-eps): the channel must hide it, though hardly."""
    joint = Joint.from_counts([[5, 0, 5], [5, 5, 5]])
    found = design(joint, MinLift(20.0), fallback=False)
    assert found.method != "release"
    assert 0.999 < found.nmi < 1.0
    assert is_private(found, joint)
    assert found.achieved.eps_l <= 20.0


@pytest.mark.parametrize("epsilon", [1e-6, 1e-12])
@pytest.mark.parametrize("kind", [LIP, LDP, MaxLift, MinLift])
def test_tight_budgets_release_almost_nothing_where_every_symbol_tells_on_s(
    kind, epsilon
):
    """|S| = |X| and independent columns: perfect privacy would release nothing at all."""
    joint = Joint.from_counts([[50, 3, 8], [4, 60, 9], [7, 11, 40]])
    found = design(joint, kind(epsilon))
    assert found.nmi <= 10.0 * epsilon
    assert is_private(found, joint)


@pytest.mark.parametrize("kind", [LIP, LDP, MaxLift, MinLift])
def test_tight_budgets_keep_what_says_nothing_of_s(kind):
    """15 symbols, 5 sensitive values: most of X can be told without a word about S."""
    joint = uniform_table(15)
    found = design(joint, kind(1e-6), fallback=False, time_limit=20.0)
    limit = design(joint, kind(1e-4), fallback=False, time_limit=20.0)
    assert 0.3 < found.nmi <= limit.certificate.upper_bound_nmi
    assert found.certificate.gap_nmi <= 1e-4
    assert is_private(found, joint)


@pytest.mark.parametrize("notion", notions_of(0.3), ids=str)
def test_two_useful_symbols(notion):
    joint = Joint.from_counts([[12, 5], [3, 30], [8, 8]])
    found = design(joint, notion, gap=1e-8, fallback=False)
    assert found.nmi == pytest.approx(independent_nmi(joint, notion), abs=2e-8)
    assert is_private(found, joint)


def test_more_budget_never_releases_less(adult):
    """The sets of posteriors grow with every budget."""
    last = 0.0
    for epsilon in (0.05, 0.2, 0.8, 1.6, 3.2, 6.4):
        found = design(adult, ALIP.from_epsilon(epsilon), gap=1e-7, fallback=False)
        assert found.nmi >= last - 1e-7
        last = found.nmi


@pytest.mark.parametrize("method", METHODS)
def test_the_gap_is_what_was_asked_for_and_belongs_to_the_integers(adult, method):
    for gap in (0.05, 1e-3, 1e-6):
        found = design(adult, LDP(1.0), method=method, gap=gap, fallback=False)
        certificate = found.certificate
        assert certificate.scope == "proven"
        assert found.nmi + certificate.gap_nmi == pytest.approx(
            certificate.upper_bound_nmi, abs=1e-15
        )
        assert certificate.gap_nmi >= certificate.upper_bound_nmi - found.nmi
        assert certificate.gap_nmi <= gap
        assert found.messages == ()


def test_gap_zero_does_what_doubles_can_and_says_so(adult):
    found = design(adult, ALIP.from_epsilon(1.0), gap=0.0, fallback=False)
    assert 0.0 < found.certificate.gap_nmi < 1e-8
    assert found.messages == (
        "the gap asked for (0) is below what double precision can prove here",
    )


def test_a_certificate_rounds_against_itself(adult):
    """upper = 1 - bound / H(X) in exact arithmetic is never above the reported one, nor far below it."""
    from fractions import Fraction

    found = design(adult, ALIP.from_epsilon(1.0))
    exact = 1 - Fraction(found.envelope.bound) / Fraction(found.entropy)
    reported = Fraction(found.certificate.upper_bound_nmi)
    assert exact <= reported <= exact + Fraction(1, 10**13)
    odd = replace(found.envelope, bound=-1e-9)
    assert module.proven(odd, found.entropy, found.nmi).upper_bound_nmi == 1.0


def test_a_certificate_allows_for_the_error_of_the_entropy(adult):
    """The bound on NMI covers an entropy, and quotients, that are wrong by the stated relative error.

    With b the bound on I's loss and H the entropy as computed, the true 1 - b / H may be as large as
    1 - b / H (1 - e) + e, in exact arithmetic.
    """
    from fractions import Fraction

    found = design(adult, ALIP.from_epsilon(1.0))
    error = Fraction(4, 10**15)
    for share in (0.01, 0.5, 0.99, 1.0):
        envelope = replace(found.envelope, bound=share * found.entropy)
        upper = module.proven(envelope, found.entropy, found.nmi).upper_bound_nmi
        quotient = Fraction(envelope.bound) / Fraction(found.entropy)
        # `copysign` and two roundings of doubles around it cost less than the last quarter of each error.
        assert Fraction(upper) >= 1 - quotient * (1 - error * 3 / 4) + error * 3 / 4


def test_the_certificate_says_what_the_search_cost(adult):
    details = design(
        adult, ALIP.from_epsilon(1.0), method="vertices"
    ).certificate.details
    assert details["status"] == "optimal"
    assert details["enumeration"] == "pivot"
    assert details["vertices"] > 500
    assert (
        min(
            details["rounds"], details["columns"], details["nodes"], details["programs"]
        )
        > 0
    )
    assert details["seconds_pricing"] >= 0.0


def test_the_bound_is_for_the_stated_budget_not_for_the_shrunk_set(adult, monkeypatch):
    """With a huge margin the channel is worse, and the bound is still above the optimum of the full budget."""
    notion = ALIP.from_epsilon(1.0)
    truth = independent_nmi(adult, notion)
    monkeypatch.setattr(rules, "MARGINS", (0.05,))
    found = module.optimal(rules.Rules(adult, notion), Search())
    assert found.nmi < truth - 1e-3
    assert found.certificate.upper_bound_nmi >= truth - CDD_ERROR
    assert found.certificate.gap_nmi >= truth - found.nmi - CDD_ERROR


def test_a_margin_that_is_too_small_is_followed_by_a_larger_one(adult, monkeypatch):
    margins, honest, rounding = [], rules.posteriors, rules.round_channel

    def watched(joint, notion, *, margin, reach):
        margins.append(margin)
        return honest(joint, notion, margin=margin, reach=reach)

    def refuses_twice(*arguments, **options):
        if margins[-1] < 1e-10:
            raise RoundingFailure("the design breaks its budget")
        return rounding(*arguments, **options)

    monkeypatch.setattr(rules, "posteriors", watched)
    monkeypatch.setattr(rules, "round_channel", refuses_twice)
    found = module.optimal(rules.Rules(adult, ALIP.from_epsilon(1.0)), Search())
    assert margins == [0.0, 1e-12, 1e-11, 1e-10]
    assert found.nmi == pytest.approx(0.8508, abs=1e-4)
    assert found.certificate.gap_nmi <= 1e-4
    assert is_private(found, adult)


def test_when_every_margin_fails_the_failure_says_what_to_try(adult, monkeypatch):
    def refuses(*_, **__):
        raise RoundingFailure("the design breaks its budget")

    monkeypatch.setattr(rules, "round_channel", refuses)
    message = r"no verified channel .+the design breaks its budget.+use mechanism subset-merging or a larger budget"
    with pytest.raises(SolverFailure, match=message):
        module.optimal(rules.Rules(adult, ALIP.from_epsilon(1.0)), Search())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"method": "simplex"},
            r"method \('simplex'\) must be one of auto, vertices, columns",
        ),
        (
            {"gap": -1e-9},
            r"gap \(-1e-09\) must be a number of at least 0, as a share of H\(X\)",
        ),
        ({"gap": math.nan}, r"gap \(nan\) must be a number of at least 0"),
        ({"gap": math.inf}, r"gap \(inf\) must be a number of at least 0"),
        ({"gap": True}, r"gap \(True\) must be a number of at least 0"),
        (
            {"time_limit": -1.0},
            r"time_limit \(-1.0\) must be a number of seconds, at least 0",
        ),
        (
            {"time_limit": math.nan},
            r"time_limit \(nan\) must be a number of seconds, at least 0",
        ),
        ({"workers": 0}, r"workers \(0\) must be at least 1"),
        ({"workers": 1.5}, r"workers \(1.5\) must be at least 1, and a whole number"),
    ],
)
def test_options_out_of_range_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        Search(**options)


def test_the_limit_counts_from_its_own_moment():
    now = time.process_time()
    limited = Search(time_limit=10.0)
    assert limited.end(now) == now + 10.0
    since = replace(limited, since=now - 4.0)
    assert since.end(now) == now + 6.0
    assert since.end(now, 0.5) == now + 1.0
    assert 0.0 < since.left() <= 6.0
    assert replace(limited, since=now - 20.0).left() == 0.0
    assert Search(since=now).left() is None


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            TooManyVertices("about 1e+09 vertices, too many"),
            "about 1e.09 vertices, too many",
        ),
        (
            BackendFailure("highs stopped"),
            "the optimum could not be computed: highs stopped",
        ),
    ],
)
def test_errors_of_the_solvers_become_a_solver_failure(
    adult, monkeypatch, error, message
):
    def fails(*_, **__):
        raise error

    monkeypatch.setattr(rules, "lower_envelope", fails)
    with pytest.raises(SolverFailure, match=message):
        module.optimal(rules.Rules(adult, LIP(1.0)), Search())


# ------------------------------------------------------------------ extreme tables and budgets


@pytest.mark.parametrize("method", ["auto", "vertices", "columns"])
@pytest.mark.parametrize("counts", [[[5, 0], [0, 4]], [[5, 0, 2], [0, 4, 1]]])
def test_budgets_beyond_the_precision_of_a_double(counts, method):
    """exp(-40) is less than the rounding of a lift, yet outputs next to the symbols keep all of X."""
    made = design(Joint.from_counts(counts), LIP(40.0), method=method)
    assert made.nmi > 1.0 - 1e-9
    assert made.fallback_from is None


@pytest.mark.parametrize("method", ["auto", "vertices", "columns"])
@pytest.mark.parametrize("epsilon", [1e-8, 1e-10, 1e-12])
def test_tiny_budgets(epsilon, method):
    """As good as perfect privacy, whose optimum has no continuous limit to miss."""
    counts = np.random.default_rng(0).integers(1, 50, (3, 6)).tolist()
    made = design(
        Joint.from_counts(counts), LIP(epsilon), method=method, time_limit=20.0
    )
    assert made.fallback_from is None
    assert made.certificate.gap_nmi is not None
    assert made.certificate.gap_nmi <= 1e-4


@pytest.mark.parametrize("method", ["auto", "vertices", "columns"])
@pytest.mark.parametrize("seed", [0, 2])
def test_probabilities_over_fifteen_orders_of_magnitude(seed, method):
    """Certified on some; on others (seed 1) double precision leaves a gap, with a valid bound."""
    rng = np.random.default_rng(seed)
    p = rng.random((4, 9)) * 10.0 ** rng.uniform(-15.0, 0.0, (4, 9))
    made = design(
        Joint.from_probabilities((p / p.sum()).tolist()),
        LIP(0.826),
        method=method,
        time_limit=20.0,
    )
    assert made.fallback_from is None
    assert made.certificate.gap_nmi is not None
    assert made.certificate.gap_nmi <= 1e-4


@pytest.mark.parametrize("level", [None, 0.95])
def test_merging_for_a_population_keeps_a_short_limit(monkeypatch, level):
    """`--keep` gives most budgets a tenth of a second, and merging took a second of each. For a
    table merging is the better channel where there is no time for a search.
    """
    ends = []
    merge = module.merge_subsets

    def noted(sets, *, end):
        ends.append(end - time.process_time())
        return merge(sets, end=end)

    monkeypatch.setattr(module, "merge_subsets", noted)
    counts = np.random.default_rng(0).integers(100, 1000, (3, 12)).tolist()
    design(Joint.from_counts(counts), LIP(0.3), confidence=level, time_limit=0.01)
    assert ends
    assert (max(ends) <= 0.01) == (level is not None)
