"""Joint leakage where releases of whole rows take part, against full enumeration in fractions."""

from __future__ import annotations

import math

import numpy as np
import pytest

import mechdesign as md
from mechdesign.auditing import joint_size, row_columns
from mechdesign.auditing.extremes import log_upper
from mechdesign.auditing.verdict import Achieved
from mechdesign.mechanisms.row_request import RowRequest
from mechdesign.mechanisms.row_search import design_records
from mechdesign.tables.records import Records
from tests.oracles import joint_rows as oracle
from tests.properties.test_rows import records_of

FEW = 40
MANY = 400


def random_records(rng, groups=3):
    """Rows of three columns with two or three symbols, every symbol and secret occurring."""
    shape = (int(rng.integers(2, 4)), *rng.integers(2, 4, groups).tolist())
    array = rng.integers(0, 3, shape)
    for axis in range(array.ndim):
        other = tuple(a for a in range(array.ndim) if a != axis)
        for place in np.flatnonzero(array.sum(axis=other) == 0).tolist():
            index = [0] * array.ndim
            index[axis] = place
            array[tuple(index)] += 1
    return records_of(array)


def designed(rng, joint, names, **options):
    """A row channel on some of the columns, with budgets that leave zeros now and then."""
    records = Records.from_joint(joint, [(name,) for name in names])
    notion = md.ALIP(float(rng.choice([0.3, 2.0])), float(rng.choice([0.2, 1.0])))
    objective = str(rng.choice(["truth", "information"]))
    request = RowRequest(
        notion=notion, objective=objective, time_limit=600.0, **options
    )
    return design_records(records, request).channel


def rounded_up(value):
    return math.inf if value is None else log_upper(value.numerator, value.denominator)


def expected(masses, key=lambda released: ()):
    high, low, ratio = oracle.extremes(masses, key)
    return Achieved(
        rounded_up(1 / low if low else None), rounded_up(high), rounded_up(ratio)
    )


@pytest.mark.parametrize("cases", [FEW, pytest.param(MANY, marks=pytest.mark.slow)])
def test_equals_full_enumeration(cases):
    """Two and three releases, of different columns, with a channel of one column among them."""
    rng = np.random.default_rng([27, cases])
    for _ in range(cases):
        joint = random_records(rng).crossed_joint
        channels = [
            designed(rng, joint, ["c0", "c1"]),
            designed(rng, joint, [["c1", "c2"], ["c0", "c1"], ["c2"]][rng.integers(3)]),
        ]
        laws = [oracle.row_law(channel) for channel in channels]
        if rng.integers(2):
            part = joint.releasing("c2")
            single = md.design(part, md.LIP(0.4)).channel
            channels.append(single)
            laws.append(oracle.single_law(single))
        found = md.compose(channels, joint)
        masses = oracle.law(joint, laws)
        assert found.exact
        assert found.achieved == expected(masses)
        assert found.sum.eps_u >= max(alone.eps_u for alone in found.alone)
        assert_worst(found, joint, masses)


def assert_worst(found, joint, masses):
    """The worst tuple attains the larger side."""
    secret = joint.sensitive.names.index(found.worst.sensitive)
    texts = {
        tuple(", ".join(one) for one in released): released for _, released in masses
    }
    released = texts[found.worst.outputs]
    share = sum(mass for (_, seen), mass in masses.items() if seen == released)
    prior = sum(mass for (s, _), mass in masses.items() if s == secret)
    lift = masses[secret, released] / share / prior
    assert found.worst.lift == float(lift)
    side = max(found.eps_l, found.eps_u)
    assert side in (rounded_up(lift), rounded_up(1 / lift if lift else None))


@pytest.mark.parametrize("cases", [FEW // 2])
def test_relative_promises_are_judged_within_the_strata(cases):
    rng = np.random.default_rng(28)
    for _ in range(cases):
        joint = random_records(rng).crossed_joint
        options = {"given": 1, "promise": "relative"}
        one = designed(rng, joint, ["c0", "c1"], **options)
        two = designed(rng, joint, ["c0", "c2"], **options)
        masses = oracle.law(joint, [oracle.row_law(one), oracle.row_law(two)])
        # Who releases c0 twice as it is never contradicts himself.
        masses = {key: mass for key, mass in masses.items() if mass}
        found = md.compose([one, two], joint)
        assert found.achieved == expected(masses, lambda released: released[0][0])
        assert found.relative_to == ("c0",)
        given = md.audit(one).given
        assert given is not None
        assert found.given == given
        other = designed(rng, joint, ["c1", "c2"])
        mixed = md.compose([one, other], joint)
        masses = oracle.law(joint, [oracle.row_law(one), oracle.row_law(other)])
        assert mixed.achieved == expected(masses)
        assert mixed.relative_to == ()
        assert "against the whole table" in mixed.notices[0]


def test_one_release_is_what_the_audit_says():
    rng = np.random.default_rng(3)
    joint = random_records(rng).crossed_joint
    channel = designed(rng, joint, ["c0", "c1"])
    assert md.compose([channel]).achieved == md.audit(channel).achieved
    # A public channel takes the table of the other one.
    public = channel.public()
    assert md.compose([channel, public]).achieved == md.compose([channel] * 2).achieved


def test_refusals():
    rng = np.random.default_rng(4)
    joint = random_records(rng).crossed_joint
    one = designed(rng, joint, ["c0", "c1"])
    other = designed(rng, joint, ["c1", "c2"])
    with pytest.raises(
        md.InputError, match=r"different columns .* give the table of all"
    ):
        md.compose([one, other])
    with pytest.raises(md.InputError, match="no useful column 'c2'"):
        md.compose([one, other], joint.releasing(["c0", "c1"]))
    strange = random_records(np.random.default_rng(9)).crossed_joint
    with pytest.raises(md.InputError, match="different tables"):
        md.compose([one, designed(rng, strange, ["c0", "c1"])])


@pytest.mark.parametrize(
    ("module", "limit", "message"),
    [
        (row_columns, "MOST_ENTRIES", "pairs of a row and what may be released of it"),
        (joint_size, "MOST_ENTRIES", "pairs of a row and two released rows"),
        (joint_size, "MOST_PRODUCTS", "tuples of released rows"),
        (joint_size, "MOST_DENSE", "released rows for"),
    ],
)
def test_too_many_released_rows_have_a_proven_bound(
    monkeypatch, module, limit, message
):
    rng = np.random.default_rng(5)
    joint = random_records(rng).crossed_joint
    channel = designed(rng, joint, ["c0", "c1"])
    true = md.compose([channel]).achieved
    exact = md.compose([channel] * 3).achieved
    assert exact.eps_u >= true.eps_u
    monkeypatch.setattr(module, limit, 1)
    with pytest.raises(md.InputError, match=message) as caught:
        md.compose([channel] * 3)
    whole = joint.releasing(["c0", "c1"])
    lifts = whole.lift
    bound = math.log(lifts.max())
    assert exact.eps_u <= bound + 1e-9
    assert f"eps_u {joint_size.at_most(bound)}" in str(caught.value)
    assert "the true row" in str(caught.value)
