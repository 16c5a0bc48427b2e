"""From a verified channel to a design: utility of the integers, the record, bounds that follow a change."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from mechdesign.auditing.verdict import audit_on_table
from mechdesign.channel.channel import DENOMINATOR, Channel
from mechdesign.mechanisms.result import Certificate, finish
from mechdesign.mechanisms.rounding import Rounded
from mechdesign.notions import LIP
from mechdesign.tables.joint import Joint
from tests.oracles.measures import entropy, mutual_information

JOINT = Joint.from_counts([[30, 10, 20], [10, 40, 15]], useful_labels=["a", "b", "c"])


@pytest.fixture
def channel():
    half = DENOMINATOR // 2
    rows = [[half + 1, half - 1], [half - 7, half + 7], [half, half]]
    return Channel(JOINT.useful, ("u", "v"), rows, DENOMINATOR, JOINT)


def finished(channel, **more):
    verdict = audit_on_table(channel, JOINT, LIP(0.5))
    return finish(Rounded(channel, verdict), JOINT, "optimal", "vertices", **more)


def test_the_utility_is_that_of_the_integers(channel):
    design = finished(channel)
    q = JOINT.p_x[:, None] * channel.matrix
    assert design.mutual_information <= max(mutual_information(q), 0.0) + 1e-15
    assert design.entropy == pytest.approx(entropy(JOINT.p_x), rel=1e-14)
    assert design.nmi == pytest.approx(
        mutual_information(q) / entropy(JOINT.p_x), abs=1e-14
    )


def test_the_channel_keeps_its_rows_and_gains_a_record(channel):
    design = finished(
        channel,
        certificate=Certificate(upper_bound_nmi=0.5, gap_nmi=0.4, scope="proven"),
    )
    assert design.channel.rows == channel.rows
    assert design.channel.record.certificate["upper_bound_nmi"] == 0.5
    assert design.channel.record.certificate["gap_nmi"] == 0.4
    assert design.channel.record.certificate["scope"] == "proven"
    assert design.channel.record.notion == {"name": "lip", "epsilon": 0.5}
    assert design.channel.record.provenance["tool"] == "mechdesign"
    assert channel.record.notion is None


def test_without_a_certificate_nothing_is_claimed(channel):
    design = finished(channel)
    assert design.certificate == Certificate()
    assert (design.certificate.upper_bound_nmi, design.certificate.scope) == (
        None,
        "none",
    )


def test_a_design_cannot_be_changed(channel):
    with pytest.raises(dataclasses.FrozenInstanceError):
        finished(channel).nmi = 1.0


def test_a_bound_follows_the_channel_that_is_emitted():
    """The same bound, the gap of another channel, rounded against itself; never negative."""
    proof = Certificate(
        upper_bound_nmi=0.9, gap_nmi=0.1, scope="proven", details={"rounds": 3}
    )
    other = proof.at(0.3)
    assert other.upper_bound_nmi == 0.9
    assert 0.6 <= other.gap_nmi <= math.nextafter(np.nextafter(0.6, 1.0), 1.0)
    assert (other.scope, other.details) == ("proven", {"rounds": 3})
    assert proof.at(0.95).gap_nmi == 0.0
    assert Certificate().at(0.5) == Certificate()
