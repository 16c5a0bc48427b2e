"""Designs with confidence: private on the whole set, no worse than their bound, and honest about few records."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mechdesign import Channel, InputError, Joint, design
from mechdesign.auditing.lifts import allowed_sides
from mechdesign.auditing.population import audit_population
from mechdesign.auditing.population import lift_limits as limits_of
from mechdesign.core.errors import SolverFailure
from mechdesign.mechanisms import population
from mechdesign.mechanisms.population import PopulationRules, records_needed
from mechdesign.mechanisms.population_posteriors import PopulationLifts, uncertain_set
from mechdesign.mechanisms.result import Certificate, Design
from mechdesign.mechanisms.rules import Rules
from mechdesign.mechanisms.search_options import Search
from mechdesign.notions import ALIP, LDP, LIP, L1Lift, MaxLift, MinLift, Notion
from mechdesign.tables.confidence import confidence_set, set_of_record
from tests.ending import ends_by_itself

JOINT = Joint.from_counts(
    [[900, 700, 300, 100], [500, 800, 200, 150], [400, 300, 350, 60]]
)

NOTIONS: list[Notion] = [LDP(0.8), LIP(0.5), ALIP(0.6, 0.4), MaxLift(0.4), MinLift(0.5)]


@pytest.mark.parametrize("notion", NOTIONS, ids=lambda n: n.name)
@pytest.mark.parametrize("mechanism", ["optimal", "subset-merging", "complete-merging"])
def test_designs_are_private_on_the_whole_set(notion: Notion, mechanism: str) -> None:
    result = design(JOINT, notion, mechanism=mechanism, confidence=0.95, gap=1e-3)
    chosen = confidence_set(JOINT, 0.95, estimate_shares=limits_of(notion).need_shares)
    assert result.confidence == chosen
    assert audit_population(result.channel, JOINT, notion, chosen).satisfied
    assert result.verified
    assert result.population is not None
    assert result.population.level == 0.95
    limits = notion.limits
    assert result.population.achieved.eps_u <= getattr(limits, "upper", math.inf)
    if mechanism == "optimal":
        assert result.certificate.gap_nmi is not None
        assert result.certificate.gap_nmi <= 1e-3
        table = design(JOINT, notion, gap=1e-3)
        assert table.certificate.upper_bound_nmi is not None
        assert result.nmi <= table.certificate.upper_bound_nmi
        assert result.certificate.scope == "proven"


@pytest.mark.parametrize("notion", NOTIONS, ids=lambda n: n.name)
def test_the_optimum_is_never_below_merging(notion: Notion) -> None:
    best = design(JOINT, notion, confidence=0.95, gap=1e-3)
    merged = design(JOINT, notion, mechanism="subset-merging", confidence=0.95)
    assert best.nmi >= merged.nmi - 1e-9


def test_adult_keeps_what_a_prototype_kept_with_a_proof(adult: Joint) -> None:
    """LDP 1 at 95 %: at least 0.8276 of H(X), gap at most 1e-3."""
    result = design(adult, LDP(1.0), confidence=0.95, gap=1e-3)
    assert result.nmi >= 0.8276
    assert result.certificate.gap_nmi is not None
    assert result.certificate.gap_nmi <= 1e-3


def test_more_records_come_close_to_the_table() -> None:
    """NMI grows with the records and tends to the optimum of the table."""
    kept = []
    for factor in (1, 100, 10**4):
        joint = Joint.from_counts([[factor * c for c in row] for row in JOINT.counts])
        kept.append(design(joint, LDP(0.8), confidence=0.95, gap=1e-3).nmi)
    table = design(JOINT, LDP(0.8), gap=1e-3).nmi
    assert kept == sorted(kept)
    assert kept[-1] == pytest.approx(table, abs=3e-3)


def test_hardly_any_records_give_local_differential_privacy_of_x() -> None:
    """With nearly nothing known, an output's probabilities may differ by e^eps at most over all x."""
    joint = Joint.from_counts([[1, 1, 1], [1, 1, 1]])
    result = design(joint, LDP(1.0), confidence=0.999, gap=1e-3)
    w = result.channel.matrix
    assert (w.max(axis=0) <= math.exp(1.0) * 1.3 * w.min(axis=0)).all()


def test_a_set_too_wide_says_so_and_how_many_records_would_do() -> None:
    result = design(
        Joint.from_counts([[3, 5, 2], [4, 1, 6]]), LDP(0.5), confidence=0.95
    )
    said = " ".join(result.messages)
    assert "21 records say so little of their population" in said
    assert "records like these would keep half of what the table alone allows" in said


def test_known_shares_help_and_are_kept_in_the_record() -> None:
    shares = {"s0": "0.45", "s1": "0.35", "s2": "0.2"}
    known = design(JOINT, LIP(0.5), confidence=0.95, known_shares=shares, gap=1e-3)
    assert known.confidence is not None
    assert known.confidence.shares_are_known
    record = known.channel.record.confidence
    assert record is not None
    assert set_of_record(record, JOINT) == known.confidence


def test_numbers_of_numpy_count_as_they_are_written() -> None:
    shares = {"s0": "0.45", "s1": "0.35", "s2": "0.2"}
    of_numpy = {name: np.float64(share) for name, share in shares.items()}
    plain = design(JOINT, LIP(0.5), confidence=0.95, known_shares=shares, gap=1e-3)
    other = design(
        JOINT,
        LIP(0.5),
        confidence=np.float64(0.95),
        known_shares=of_numpy,
        gap=1e-3,
    )
    assert other.confidence == plain.confidence


def test_a_set_that_was_tampered_with_is_refused() -> None:
    record = design(
        JOINT, LDP(0.8), mechanism="subset-merging", confidence=0.95
    ).channel.record.confidence
    assert record is not None
    other = Joint.from_counts([[c + 1 for c in row] for row in JOINT.counts])
    bare = {key: value for key, value in record.items() if key != "intervals"}
    for found, table in ((record, other), (bare, JOINT)):
        with pytest.raises(
            InputError,
            match="intervals in the channel file are not those of its counts",
        ):
            set_of_record(found, table)
    for broken in (
        {},
        record | {"set": "wald"},
        record | {"shares": "guessed"},
        record | {"level": 2},
    ):
        with pytest.raises(InputError, match=r"not readable|confidence level"):
            set_of_record(broken, JOINT)


def test_the_channel_file_keeps_the_set(tmp_path: Any) -> None:
    channel = design(
        JOINT, LIP(0.5), mechanism="subset-merging", confidence=0.9
    ).channel
    channel.save(tmp_path / "c.json")
    again = Channel.load(tmp_path / "c.json")
    assert again.record.confidence == channel.record.confidence
    assert '"version": 2' in (tmp_path / "c.json").read_text()
    channel.save(tmp_path / "p.json", public=True)
    public = Channel.load(tmp_path / "p.json").record.confidence
    assert public == {
        "level": 0.9,
        "set": "clopper-pearson",
        "shares": "estimated",
        "unseen": 0,
    }
    design(JOINT, LIP(0.5), mechanism="subset-merging").channel.save(
        tmp_path / "plain.json"
    )
    assert '"version": 1' in (tmp_path / "plain.json").read_text()


@pytest.mark.parametrize("notion", NOTIONS, ids=lambda n: n.name)
def test_unseen_symbols_are_protected_as_rows_of_the_marginal(notion: Notion) -> None:
    """The verdict equals that of a channel with a row P(y) for the unseen symbol, on a set that lists it."""
    from fractions import Fraction

    result = design(JOINT, notion, confidence=0.95, unseen=1, gap=1e-3)
    chosen = result.confidence
    assert chosen is not None
    assert chosen.unseen == 1
    assert chosen.rest[0] > 0
    assert set_of_record(result.channel.record.confidence or {}, JOINT) == chosen
    w = [
        [Fraction(v, result.channel.denominator) for v in row]
        for row in result.channel.rows
    ]
    marginal = [
        sum(c * row[y] for c, row in zip(JOINT.useful_counts, w, strict=True))
        / JOINT.total
        for y in range(len(w[0]))
    ]
    from mechdesign.auditing.population_extremes import Population, achieved_of
    from mechdesign.tables.confidence import ConfidenceSet

    listed = ConfidenceSet(
        0.95,
        tuple((*row, 0) for row in chosen.lower),
        tuple((*row, end) for row, end in zip(chosen.upper, chosen.rest, strict=True)),
        chosen.share_lower,
        chosen.share_upper,
    )
    scale = JOINT.total * result.channel.denominator
    columns = []
    for y in range(len(marginal)):
        values = [int(row[y] * scale) for row in (*w, marginal)]
        columns.append(
            ([x for x, v in enumerate(values) if v], [v for v in values if v])
        )
    assert result.population is not None
    assert achieved_of(Population(listed).worst(columns)) == result.population.achieved
    assert result.nmi <= design(JOINT, notion, confidence=0.95, gap=1e-3).nmi + 2e-3


def test_x_itself_is_published_where_it_is_private_for_the_set() -> None:
    joint = Joint.from_counts([[10**6, 10**6], [10**6, 10**6 + 50]])
    result = design(joint, LDP(1.0), confidence=0.95)
    assert result.method == "release"
    assert result.nmi > 1.0 - 1e-12


def test_merged_sets_are_judged_as_the_audit_does() -> None:
    """`PopulationLifts` against the exact verdict on the channel that publishes a merged set."""
    from mechdesign.mechanisms.rounding import partition_channel

    rng = np.random.default_rng(0)
    for notion in (LDP(0.5), ALIP(0.3, 0.3)):
        chosen = confidence_set(
            JOINT, 0.95, estimate_shares=limits_of(notion).need_shares
        )
        sides = allowed_sides(JOINT.sensitive, notion)
        lifts = PopulationLifts(JOINT, notion.limits, chosen, sides)
        for _ in range(10):
            inside = [x for x in range(4) if rng.random() < 0.5]
            if not 0 < len(inside) < 4:
                continue
            groups = [inside, [x for x in range(4) if x not in inside]]
            channel = partition_channel(
                groups, Rules(JOINT, notion), must_satisfy=False
            ).channel
            said = all(lifts.complies(lifts.block(group)) for group in groups)
            assert said == audit_population(channel, JOINT, notion, chosen).satisfied


def test_the_estimate_of_needed_records_is_of_the_right_size() -> None:
    few = Joint.from_counts([[30, 20, 10], [10, 25, 15]])
    chosen = confidence_set(few, 0.95, estimate_shares=False)
    needed = records_needed(few, LDP(0.5), chosen)
    assert needed is not None
    factor = needed // few.total
    many = Joint.from_counts([[factor * c for c in row] for row in few.counts])
    assert (
        design(many, LDP(0.5), confidence=0.95).nmi >= 0.4 * design(few, LDP(0.5)).nmi
    )


def test_bounds_are_moved_outwards() -> None:
    chosen = confidence_set(JOINT, 0.95)
    uncertain = uncertain_set(JOINT, ALIP(0.5, 0.5), chosen)
    from fractions import Fraction

    from mechdesign.core.balls import SCALE

    for s, row in enumerate(chosen.lower):
        for x, end in enumerate(row):
            assert Fraction(float(uncertain.lower[s, x])) <= Fraction(end, SCALE)
            assert Fraction(float(uncertain.upper[s, x])) >= Fraction(
                chosen.upper[s][x], SCALE
            )


def test_a_failed_optimum_falls_back_to_verified_merging(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise SolverFailure("no luck")

    monkeypatch.setattr(population, "robust_envelope", fail)
    result = design(JOINT, LDP(0.8), confidence=0.95)
    assert result.fallback_from == "optimal"
    assert result.mechanism == "subset-merging"
    assert any("the optimum failed (no luck)" in message for message in result.messages)
    with pytest.raises(SolverFailure, match="no luck"):
        design(JOINT, LDP(0.8), confidence=0.95, fallback=False)


def test_a_solver_that_looks_at_the_table_alone_is_not_believed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The verdict is that on the set, whatever the search returns."""
    table = Rules(JOINT, LDP(0.8)).solver(1e-9, Search(), math.inf)()
    monkeypatch.setattr(population, "robust_envelope", lambda *_, **__: table)
    result = design(JOINT, LDP(0.8), confidence=0.95)
    assert result.fallback_from == "optimal"
    assert result.confidence is not None
    assert audit_population(
        result.channel, JOINT, LDP(0.8), result.confidence
    ).satisfied


@pytest.mark.parametrize(
    ("joint", "notion", "arguments", "message"),
    [
        (
            JOINT,
            L1Lift(math.inf, 0.5),
            {"confidence": 0.95},
            "l1 bounds averages over the sensitive symbols",
        ),
        (
            JOINT,
            LDP(1.0),
            {"confidence": 0.3},
            "confidence level .* must be a number from 0.5",
        ),
        (
            JOINT,
            LDP(1.0),
            {"confidence": 0.95, "mechanism": "subset-response", "unseen": 2},
            "subset-response with symbols of no record is not built",
        ),
        (
            JOINT,
            LDP(1.0),
            {"known_shares": {"s0": 1}},
            "known shares need a confidence level",
        ),
        (JOINT, LDP(1.0), {"unseen": 2}, "unseen symbols need a confidence level"),
        (
            JOINT,
            LDP(1.0),
            {"confidence": 0.9, "unseen": -1},
            "number of unseen symbols .* at least 0",
        ),
        (
            Joint.from_probabilities([[0.25, 0.25], [0.25, 0.25]]),
            LDP(1.0),
            {"confidence": 0.95},
            "confidence needs counts of records",
        ),
        (
            replace(JOINT, is_counts=False),
            LDP(1.0),
            {"confidence": 0.95},
            "weighted records are not a sample",
        ),
    ],
)
def test_bad_input_is_refused(
    joint: Joint, notion: Notion, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        design(joint, notion, **arguments)


@pytest.mark.parametrize("notion", NOTIONS, ids=lambda n: n.name)
def test_responses_within_sets_are_between_merging_and_the_optimum(
    notion: Notion,
) -> None:
    """nmi(subset merging) <= nmi(subset response) <= the optimum's bound, on the whole set."""
    made = design(JOINT, notion, mechanism="subset-response", confidence=0.95, gap=1e-3)
    merged = design(JOINT, notion, mechanism="subset-merging", confidence=0.95)
    bound = design(JOINT, notion, confidence=0.95, gap=1e-3).certificate.upper_bound_nmi
    assert bound is not None
    assert merged.nmi <= made.nmi <= bound
    assert made.mechanism == "subset-response"
    assert made.confidence is not None
    assert audit_population(made.channel, JOINT, notion, made.confidence).satisfied


@pytest.mark.slow
def test_responses_within_sets_gain_on_adult(adult: Joint) -> None:
    merged = design(adult, LDP(1.0), mechanism="subset-merging", confidence=0.95)
    made = design(
        adult, LDP(1.0), mechanism="subset-response", confidence=0.95, gap=1e-3
    )
    assert made.nmi > merged.nmi + 0.05
    assert made.method == "subsets"


def test_a_face_is_the_set_where_only_its_members_have_mass(adult: Joint) -> None:
    """h and g of a posterior on the members are those of the whole set."""
    whole = uncertain_set(adult, LDP(1.0), confidence_set(adult, estimate_shares=False))
    members = np.array([1, 4, 5, 11])
    face = whole.face(members)
    v = np.random.default_rng(0).dirichlet(np.ones(4), 20)
    padded = np.zeros((20, whole.n))
    padded[:, members] = v
    mass = whole.point[members].sum()
    for one, other in zip(face.extremes(v), whole.extremes(padded), strict=True):
        assert one == pytest.approx(other * mass, rel=1e-12)


VOTE_BY_INCOME = """
16 11 13 14 13 6 8 12 7 13 16 23 16 28 43 40 33 26 32 50 51 27 20 33
3 1 4 5 5 7 3 5 3 2 7 12 10 11 25 30 29 22 19 50 52 26 27 35
"""

ANES = Joint.from_counts([line.split() for line in VOTE_BY_INCOME.split("\n") if line])
"""Vote by income of the American National Election Study of 1996 (statsmodels' anes96), 944 records."""

EXTREME = Joint.from_counts(
    [
        [1, 0, 1, 10**9, 10**9, 1, 1],
        [1, 10**9, 10**9, 1, 30, 0, 30],
        [1, 0, 0, 0, 30, 1, 10**9],
        [1, 0, 0, 1, 0, 0, 0],
    ]
)
"""Masses of very different sizes, where rounding stops every search."""


def test_a_tree_without_end_keeps_its_limit() -> None:
    """Twenty-four wide intervals: local searches end within a second, the proof would take hours."""
    seconds = 1.0
    with ends_by_itself():
        result = design(ANES, LIP(0.5), confidence=0.95, time_limit=seconds)
    assert result.verified
    assert result.nmi > 0.0
    assert result.certificate.scope == "proven"
    assert result.certificate.gap_nmi is not None
    assert result.certificate.gap_nmi <= 1.0
    assert any(f"the limit is {seconds:g} s a search" in m for m in result.messages)


def test_no_bound_of_the_table_is_searched_after_the_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """That search had a tenth of the limit, whatever the others had used: 300 x 300 symbols took
    6.4 s with a limit of 2 s.
    """
    asked: list[Search] = []
    whole = population.optimal

    def recorded(rules: Rules, search: Search) -> Design:
        asked.append(search)
        return whole(rules, search)

    monkeypatch.setattr(population, "optimal", recorded)
    counts = confidence_set(ANES, 0.95, estimate_shares=True)
    rules = PopulationRules(ANES, LIP(0.5), populations=counts)
    proof = Certificate(upper_bound_nmi=1.0, gap_nmi=0.9, scope="proven")
    now = time.process_time()
    search = Search(time_limit=100.0, since=now)
    assert rules.tightened(proof, 0.1, search).upper_bound_nmi < 1.0
    assert len(asked) == 1
    assert asked[0].time_limit == pytest.approx(10.0)
    assert asked[0].since is None
    late = Search(time_limit=100.0, since=now - 100.0)
    assert rules.tightened(proof, 0.1, late) is proof
    assert len(asked) == 1


def test_the_estimate_of_records_keeps_the_limit_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ten seconds took 14 to 16, because advice came after the limit."""
    ends: list[float] = []

    def recorded(*_: object, end: float) -> None:
        ends.append(end)

    monkeypatch.setattr(population, "records_needed", recorded)
    few = Joint.from_counts([[3, 5, 2], [4, 1, 6]])
    limit = 2.0
    design(few, LDP(0.5), confidence=0.95, time_limit=limit)
    assert len(ends) == 1
    # The estimate may last until the limit of the design, which began before now.
    assert ends[0] <= time.process_time() + limit
    past = time.process_time() - 1.0
    chosen = confidence_set(few, 0.95, estimate_shares=False)
    assert records_needed(few, LDP(0.5), chosen, end=past) is None


def test_a_smaller_gap_answers_no_worse_where_rounding_ends_the_search(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A gap of 0.01 kept .0156, one of 1e-4 .0038."""
    # The advice would take the rest of the time, and has no part in this.
    monkeypatch.setattr(population, "records_needed", lambda *_, **__: None)
    # Responses within merged sets never end here. The search itself takes a tenth of a second.
    monkeypatch.setattr(PopulationRules, "response_share", 0.002)
    kept: list[float] = []
    for gap in (1e-2, 1e-4):
        result = design(
            EXTREME, ALIP(2.0, 0.1), confidence=0.8, gap=gap, time_limit=100.0
        )
        kept.append(result.nmi)
    assert kept[1] >= kept[0] - 1e-6
    assert min(kept) >= 0.0156
