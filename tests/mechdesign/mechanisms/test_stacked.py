"""Several secrets, each protected for itself, and budgets of single symbols."""

from __future__ import annotations

import math

import numpy as np
import pytest

import mechdesign as md
from mechdesign.auditing.measures import measure
from mechdesign.auditing.verdict import audit_on_table, failing_outputs
from mechdesign.channel.channel import Channel
from tests.oracles.stacked import optimum, rows_of

ERROR = 1e-6


def crossed(seed, useful=4):
    rng = np.random.default_rng(seed)
    labels = [(a, b) for a in "ab" for b in "mn"]
    return md.Joint.from_counts(
        rng.integers(1, 9, (4, useful)),
        sensitive_labels=labels,
        sensitive=("one", "two"),
    )


@pytest.mark.parametrize("seed", range(8))
def test_each_is_the_optimum_of_the_stacked_tables(seed):
    """Against exact vertices of both marginal tables' rows; each secret keeps the promise, exactly."""
    whole = crossed(seed)
    notion = [md.ALIP(0.3, 0.2), md.LDP(0.4), md.MaxLift(0.2), md.LIP(0.25)][seed % 4]
    found = md.design(whole, notion, protect_each=True)
    joint, limits = whole.protecting_each(), notion.limits
    rows = []
    for secret in joint.secrets:
        sides = [limits.lower] * 2, [limits.upper] * 2
        rows += rows_of(secret.p, secret.p_s, *sides, limits.ratio)
        assert audit_on_table(found.channel, secret, notion).satisfied
    best = optimum(joint.p_x, rows)
    assert found.nmi <= best + ERROR
    assert best <= found.certificate.upper_bound_nmi + ERROR
    assert found.certificate.gap_nmi <= 1e-4
    assert found.nmi >= md.design(whole, notion).nmi - 1e-4
    assert found.achieved == audit_on_table(found.channel, joint, notion).achieved
    parts = [
        audit_on_table(found.channel, secret, notion).achieved
        for secret in joint.secrets
    ]
    for side in ("eps_l", "eps_u", "eps_ldp"):
        assert getattr(found.achieved, side) == max(
            getattr(part, side) for part in parts
        )


def test_marginal_tables_of_the_secrets():
    joint = crossed(1).protecting_each()
    one, two = joint.secrets
    assert one.sensitive.columns == ("one",)
    assert one.counts[0] == tuple(
        a + b for a, b in zip(joint.counts[0], joint.counts[1], strict=True)
    )
    assert two.counts[1] == tuple(
        a + b for a, b in zip(joint.counts[1], joint.counts[3], strict=True)
    )
    assert joint.sensitive.secret_names == (("a", "b"), ("m", "n"))


def test_budgets_equal_to_the_common_one_give_the_plain_optimum():
    joint, notion = crossed(2, 6), md.ALIP(0.4, 0.3)
    plain = md.design(joint, notion)
    same = md.design(
        joint, notion, budgets=dict.fromkeys(joint.sensitive.names, (0.4, 0.3))
    )
    assert abs(plain.nmi - same.nmi) <= 1e-6
    assert plain.achieved.eps_u == pytest.approx(same.achieved.eps_u, abs=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_budgets_of_single_symbols(seed):
    """The optimum of rows with budgets of their own; a stricter symbol costs, a looser one gives."""
    joint = md.Joint.from_counts(np.random.default_rng(seed).integers(1, 9, (3, 5)))
    own = (
        {"s1": (0.05, 0.1)}
        if seed % 2
        else {"s0": (math.inf, 1.5), "s2": (0.4, math.inf)}
    )
    notion = md.ALIP(0.4, 0.4)
    found = md.design(joint, notion, budgets=own)
    lower = [own.get(name, (0.4, 0.4))[0] for name in joint.sensitive.names]
    upper = [own.get(name, (0.4, 0.4))[1] for name in joint.sensitive.names]
    best = optimum(joint.p_x, rows_of(joint.p, joint.p_s, lower, upper))
    assert found.nmi <= best + ERROR
    assert best <= found.certificate.upper_bound_nmi + ERROR
    lifts = (joint.p @ found.channel.matrix) / joint.p_s[:, None]
    lifts /= (joint.p @ found.channel.matrix).sum(axis=0)
    assert (np.log(lifts).max(axis=1) <= np.array(upper) + 1e-12).all()
    assert (-np.log(lifts).min(axis=1) <= np.array(lower) + 1e-12).all()
    plain = md.design(joint, notion)
    assert (
        (found.nmi <= plain.nmi + 1e-4) if seed % 2 else (found.nmi >= plain.nmi - 1e-4)
    )
    assert audit_on_table(found.channel, joint, notion.with_budgets(own)).satisfied


def test_the_file_keeps_what_was_promised(tmp_path):
    whole = crossed(3, 6)
    notion, own = md.ALIP(0.4, 0.4), {"one=a": (0.2, 0.3), "n": (0.4, math.inf)}
    made = md.design(whole, notion, protect_each=True, budgets=own)
    made.channel.save(tmp_path / "c.json")
    loaded = md.Channel.load(tmp_path / "c.json")
    assert loaded.sensitive.protects_columns
    assert loaded.joint == made.channel.joint
    promise = loaded.record.promise(loaded.sensitive)
    assert audit_on_table(loaded, loaded.joint, promise).satisfied
    assert audit_on_table(loaded, loaded.joint, promise).achieved == made.achieved
    assert {each.symbol for each in loaded.record.budgets} == {("a",), ("n",)}
    public = loaded.public()
    assert public.sensitive.protects_columns
    assert public.record.budgets == loaded.record.budgets
    stricter = notion.with_budgets({"a": (0.01, 0.01)})
    assert not audit_on_table(loaded, loaded.joint, stricter).satisfied
    assert failing_outputs(loaded, loaded.joint, stricter)
    assert audit_on_table(loaded, loaded.joint, stricter).worst.sensitive == "a"


def test_joint_leakage_is_that_of_each_secret():
    joint = crossed(4).protecting_each()
    channel = md.design(joint, md.LIP(0.3)).channel
    found = md.compose([channel, channel])
    parts = [md.compose([channel, channel], secret) for secret in joint.secrets]
    assert found.eps_l == max(part.eps_l for part in parts)
    assert found.eps_ldp == max(part.eps_ldp for part in parts)
    alone = Channel(
        channel.useful, channel.outputs, channel.rows, channel.denominator, crossed(4)
    )
    assert (
        md.compose([channel, alone]).eps_ldp
        == md.compose([channel, alone], crossed(4)).eps_ldp
    )


def test_measures_are_the_largest_of_the_secrets():
    joint = crossed(5).protecting_each()
    channel = md.design(joint, md.LIP(0.3)).channel
    parts = [measure(channel, secret).leakage for secret in joint.secrets]
    found = measure(channel, joint).leakage
    assert found["mutual_information"] == max(
        part["mutual_information"] for part in parts
    )
    assert found["min_log_lift"] == min(part["min_log_lift"] for part in parts)


def test_comparison_knows_both():
    joint, own = crossed(6).protecting_each(), {"one=a": (0.1, 0.1)}
    rows = md.compare(
        joint,
        epsilons=[0.5, 1.0],
        budgets=own,
        mechanisms=["optimal", "subset-response"],
    ).rows
    free = md.compare(joint, epsilons=[0.5, 1.0], mechanisms=["optimal"]).rows
    assert all(row.satisfied for row in rows)
    assert rows[1].nmi <= free[1].nmi + 1e-4
    assert rows[1].nmi == pytest.approx(
        md.design(joint, md.ALIP(0.5, 0.5), budgets=own).nmi, abs=1e-6
    )


def test_refusals():
    joint = crossed(7)
    with pytest.raises(md.InputError, match="several sensitive columns"):
        md.design(md.Joint.from_counts([[1, 2], [3, 4]]), md.LIP(1), protect_each=True)
    with pytest.raises(md.InputError, match="'nobody', which is no sensitive symbol"):
        md.design(joint, md.LIP(1), budgets={"nobody": (1, 1)})
    with pytest.raises(md.InputError, match="ldp has none"):
        md.design(joint, md.LDP(1), budgets={"a, m": (1, 1)})
    with pytest.raises(md.InputError, match="would not be protected"):
        md.design(joint, md.LIP(1), budgets={"a, m": (math.inf, math.inf)})
    with pytest.raises(md.InputError, match="a budget of 'a, m'"):
        md.design(joint, md.LIP(1), budgets={"a, m": (-1, 1)})
    with pytest.raises(md.InputError, match="is given twice"):
        md.design(
            joint, md.LIP(1), protect_each=True, budgets={"a": (1, 1), "one=a": (1, 1)}
        )
    same = md.Joint.from_counts(
        [[1, 2], [3, 4]],
        sensitive_labels=[("x", "y"), ("y", "x")],
        sensitive=("one", "two"),
    )
    with pytest.raises(md.InputError, match="write COLUMN=SYMBOL"):
        md.design(same, md.LIP(1), protect_each=True, budgets={"x": (1, 1)})
    with pytest.raises(md.InputError, match="bounds averages"):
        md.design(joint, md.L1Lift(math.inf, 1.0), protect_each=True)
    with pytest.raises(md.InputError, match="confidence is not built with"):
        md.design(joint, md.LIP(1), protect_each=True, confidence=0.9)
