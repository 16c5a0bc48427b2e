"""The smallest budget whose row channel keeps a share: what is found, and what is refused."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import mechdesign as md
from mechdesign.core.wording import at_least
from mechdesign.mechanisms import row_keeping
from mechdesign.mechanisms.budget_scale import BudgetScale, epsilon_of, step_of
from mechdesign.mechanisms.row_keeping import GRAIN, at_epsilon


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(11)
    job = rng.integers(0, 3, 900)
    age = (job + rng.integers(0, 2, 900)) % 3
    sick = rng.random(900) < 0.15 + 0.15 * job + 0.1 * (age == 2)
    return pd.DataFrame(
        {
            "job": np.array(list("abc"))[job],
            "age": np.array(["20", "40", "60"])[age],
            "k": rng.choice(["u", "v"], 900),
            "sick": np.where(sick, "yes", "no"),
        }
    )


def kept(frame, keep, notion, **options):
    # Searches of this size end by themselves long before: no answer depends on the machine.
    return md.design_rows(
        frame,
        sensitive="sick",
        release=["job", "age"],
        notion=notion,
        keep=keep,
        **{"time_limit": 600.0, **options},
    )


@pytest.mark.parametrize(
    ("notion", "options"),
    [
        (md.LIP(1.0), {}),
        (md.ALIP.from_epsilon(1.0, 0.4), {}),
        (md.LDP(1.0), {"objective": "information"}),
        (md.MaxLift(1.0), {"given": "k", "promise": "relative"}),
    ],
    ids=lambda value: str(value),
)
def test_the_answer_keeps_the_share_and_the_budget_below_was_tried(
    frame, monkeypatch, notion, options
):
    tried = {}
    designs = row_keeping.design_records

    def remembered(records, request):
        made = designs(records, request)
        tried[request.notion] = made.nmi
        return made

    monkeypatch.setattr(row_keeping, "design_records", remembered)
    made = kept(frame, 0.85, notion, **options)
    assert made.nmi >= 0.85
    assert made.audit.satisfied
    assert md.audit(made.channel, frame).satisfied
    found = made.channel.record.certificate["kept_at"]
    at = at_epsilon(notion)
    assert made.channel.notion == at(found)
    assert step_of(found) % GRAIN == 0
    below = at(epsilon_of(step_of(found) - GRAIN))
    assert tried[below] < 0.85
    assert any(
        message.startswith(f"epsilon {found:g} keeps {at_least(85.0)} %")
        for message in made.messages
    )


def test_what_no_channel_keeps_is_proven_by_the_bound(frame):
    made = kept(frame, 0.97, md.LIP(1.0))
    certificate = made.channel.record.certificate
    assert 0.0 < certificate["kept_less_at"] < certificate["kept_at"]
    less = md.design_rows(
        frame,
        sensitive="sick",
        release=[("job", "age")],
        notion=md.LIP(certificate["kept_less_at"]),
        objective="information",
    )
    assert less.nmi < 0.97
    assert "(proven)" in made.messages[-1]


def test_the_ratio_of_the_sides_is_kept():
    at = at_epsilon(md.ALIP(eps_l=0.3, eps_u=0.9))
    assert at(2.0).eps_l == pytest.approx(0.5)
    assert at(2.0).eps_u == pytest.approx(1.5)
    own = md.LIP(1.0).with_budgets({"yes": (0.1, 0.2)})
    assert at_epsilon(own)(0.5) == md.LIP(0.5).with_budgets({"yes": (0.1, 0.2)})


def test_a_free_side_is_refused(frame):
    with pytest.raises(md.InputError, match=r"leaves a side free, and keep looks for"):
        kept(frame, 0.8, md.ALIP(eps_l=math.inf, eps_u=0.5))


def test_a_confidence_level_is_refused(frame):
    with pytest.raises(md.InputError, match=r"keep is not built for a release of rows"):
        kept(frame, 0.8, md.LIP(0.5), confidence=0.95)


def test_a_share_that_no_budget_keeps_is_refused_with_the_bound(frame, monkeypatch):
    """On a scale that ends at 0.01 nats the bound of the crossed columns proves it."""
    for module in ("row_keeping", "budget_scale"):
        monkeypatch.setattr(
            f"mechdesign.mechanisms.{module}.LARGEST_STEP", step_of(0.01)
        )
    with pytest.raises(
        md.NotPrivate,
        match=r"no budget keeps 99% .*no channel keeps above .*\(proven\)",
    ):
        kept(frame, "99%", md.LIP(1.0))


def test_without_time_nothing_is_found(frame):
    with pytest.raises(md.NotPrivate, match=r"keeps 0\.6 .*allow more seconds"):
        kept(frame, 0.6, md.LIP(1.0), time_limit=1e-6)


def test_the_time_ends_the_search_for_smaller_budgets():
    """What keeps the share is still found; the budgets below it are not tried any more."""

    class Design:
        nmi = 1.0

    scale = BudgetScale(lambda epsilon: Design(), Fraction(1, 2), end=-math.inf)
    assert scale.smallest_step() == step_of(1.0)
    assert not scale.in_time
    assert list(scale.designs) == [step_of(1.0)]
