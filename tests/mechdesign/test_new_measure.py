"""One more measure of leakage: a function in a table is all that audits, files and commands need."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import pytest
from flint import arb, fmpq

import mechdesign as md
from mechdesign.auditing.measures import AVERAGE_MEASURES, measure
from mechdesign.cli import main

COUNTS = [[9, 4, 2, 1], [2, 6, 5, 1], [1, 3, 8, 5]]


def _hellinger(outputs, scale):
    """sum_y P(y) sum_s (sqrt P(s|y) - sqrt P(s))^2 / 2, the squared Hellinger distance."""
    total = arb(0)
    for output in outputs:
        affinity = arb(0)
        for mass, row in zip(output.masses, output.sums, strict=True):
            affinity += arb(fmpq(mass * row, output.output * output.total)).sqrt()
        total += output.output * (1 - affinity)
    return total / scale


@pytest.fixture(autouse=True)
def _registered(monkeypatch):
    monkeypatch.setitem(AVERAGE_MEASURES, "hellinger_information", _hellinger)


@pytest.fixture
def channel():
    joint = md.Joint.from_counts(COUNTS)
    return md.design(joint, md.ALIP.from_epsilon(0.8, lam=0.5)).channel


def test_it_is_measured_exactly(channel):
    joint = channel.joint
    expected = 0.0
    total = sum(map(sum, joint.counts))
    for y in range(len(channel.outputs)):
        masses = []
        for row in joint.counts:
            cells = zip(row, channel.rows, strict=True)
            masses.append(
                sum(Fraction(n * w[y], total * channel.denominator) for n, w in cells)
            )
        output = sum(masses)
        affinity = 0.0
        for row, mass in zip(joint.counts, masses, strict=True):
            affinity += math.sqrt(mass / output * Fraction(sum(row), total))
        expected += float(output) * (1.0 - affinity)
    found = measure(channel, joint).leakage["hellinger_information"]
    assert found == pytest.approx(expected, rel=1e-9)
    assert found > 0.0


def test_commands_and_files_show_it(channel, tmp_path, capsys):
    path = tmp_path / "channel.json"
    channel.save(path)
    assert main(["audit", str(path), "--all-measures", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    text = json.dumps(record)
    assert "hellinger_information" in text
    assert main(["audit", str(path), "--all-measures"]) == 0
    assert "hellinger_information" in capsys.readouterr().out
