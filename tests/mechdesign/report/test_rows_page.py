"""The report on a row channel against sums over its records."""

from __future__ import annotations

import math

import numpy as np
import pytest

import mechdesign as md
from mechdesign.core.errors import InputError
from mechdesign.report.row_content import level_joints, row_report
from mechdesign.report.rows_page import report_record
from tests.mechdesign.analysis.test_row_frequencies import people


@pytest.fixture(scope="module", params=[(), ("k",)])
def channel(request):
    return md.design_rows(
        people(),
        sensitive="secret",
        release=["a", "b"],
        given=request.param,
        promise="relative",
        notion=md.LIP(0.4),
    ).channel


def test_joints_of_levels_are_sums_over_records(channel):
    """P(x_j, y_j) = mean over records of [x_j] P(y_j | row)."""
    frame = people()
    names = channel.output_columns
    for level, column in enumerate(["a", "b"]):
        symbols = channel.levels[level].names
        expected = np.zeros((len(symbols), len(symbols)))
        for row in frame.to_dict("records"):
            for released, share in channel.distribution(row).items():
                output = released[names.index(column)]
                place = symbols.index(row[column]), symbols.index(output)
                expected[place] += float(share) / len(frame)
        np.testing.assert_allclose(level_joints(channel)[level], expected, atol=1e-12)


def test_worst_rows_and_spent_factors_are_those_of_the_audit(channel):
    report = row_report(channel)
    achieved = report.audit.achieved
    assert report.worst[0].move == pytest.approx(max(achieved.eps_l, achieved.eps_u))
    moves = [row.move for row in report.worst]
    assert moves == sorted(moves, reverse=True)
    assert report.ledgers[-1].spent[1] == pytest.approx(math.exp(achieved.eps_u))
    for row in report.worst:
        assert sum(row.posterior) == pytest.approx(1.0)
    record = report_record(report)
    assert record["satisfied"] is True
    for ledger in report.ledgers:
        assert 0.0 <= ledger.kept <= ledger.entropy


def test_a_public_channel_has_no_report(channel):
    with pytest.raises(InputError, match="carries no table"):
        row_report(channel.public())
