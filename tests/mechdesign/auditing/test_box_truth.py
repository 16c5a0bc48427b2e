"""Unchanged cells of channels for boxes, against laws of single rows and against draws."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import mechdesign as md
from mechdesign.auditing.unchanged import box_truth
from mechdesign.report.collect import internal_report
from tests.mechdesign.report.test_box_section import designed, proving


@pytest.mark.parametrize("given", [(), ("k",)])
def test_of_labels_own_boxes_of_one_value_count(given):
    frame, design = designed(given, cells=12, notion=md.LIP(1.5))
    channel = design.channel
    single = singles(channel)
    expected = dict.fromkeys(("a", "b"), 0.0)
    records = 0
    for row, count in proving(frame, given):
        records += count
        stratum = "".join(f"{name} {row[name]}" for name in given)
        for (*_, label), share in channel.distribution(row).items():
            for name, value in single.get((stratum, label), {}).items():
                # A box that is released in the place of another one tells nothing of the cell.
                if row[name] == value and label == own_label(channel, row):
                    expected[name] += count * float(share)
    assert max(expected.values()) > 0
    wanted = [expected[name] / records for name in ("a", "b")]
    assert box_truth(channel) == pytest.approx(wanted)


def own_label(channel, row):
    """The label of the box that a row is in."""
    codes = [
        variable.names.index(row[variable.columns[0]]) for variable in channel.groups
    ]
    given = len(channel.given)
    for part in channel.parts:
        if part.stratum == tuple(codes[:given]):
            (box,) = part.boxes.of(np.array([codes[given:]]))
            return f"box {box + 1}"
    raise AssertionError("every record has a stratum")


def singles(channel):
    """By stratum and own label, the columns of which a box has one value."""
    found = {}
    for part in channel.parts:
        stratum = channel.coder.stratum_text(part.stratum).rstrip(": ")
        for text in channel.coder.box_texts(part.boxes):
            label, _, rest = text.partition(": ")
            values = {}
            for piece in rest.split("; "):
                name, _, inside = piece.partition(" {")
                inside = inside.rstrip("}").split(", ")
                if len(inside) == 1 and inside != [""]:
                    values[name] = inside[0]
            found[stratum, label] = values
    return found


@pytest.mark.parametrize("given", [(), ("k",)])
def test_of_filled_boxes_it_is_what_draws_leave_unchanged(given):
    """In 150,000 draws, within four standard errors; the seed is fixed."""
    frame, design = designed(given, fill=True)
    rows = []
    for row, count in proving(frame, given):
        rows += [row] * int(count)
    many = pd.concat([pd.DataFrame(rows)] * 60, ignore_index=True)
    released = design.channel.apply(many, insecure_seed=5)
    for name, share in zip(("a", "b"), box_truth(design.channel), strict=True):
        drawn = (released[name].to_numpy() == many[name].to_numpy()).mean()
        error = (share * (1 - share) / len(many)) ** 0.5
        assert abs(drawn - share) < 4 * error


def test_screen_report_and_json_have_the_shares():
    _, design = designed(fill=True)
    truth = box_truth(design.channel)
    assert (
        "A cell is unchanged if its own value is drawn again (expected)."
        in " ".join(design.summary().split())
    )
    report = internal_report(design, None)
    assert [column.truth for column in report.boxes.columns] == list(truth)
    assert [level["truth"] for level in design.to_record()["levels"]] == list(truth)


def test_a_public_channel_has_no_counts_to_tell():
    _, design = designed()
    assert box_truth(design.channel.public()) is None
