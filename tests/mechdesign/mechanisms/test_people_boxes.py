"""Boxes of people: a promise for the population that people with several records are a sample of."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import mechdesign as md
from mechdesign.tables.people import RECORDS
from tests.mechdesign.cli.test_people import panel, sequences

EPSILON = 0.8
LOW = Fraction(math.nextafter(math.exp(-EPSILON), 0.0))
HIGH = Fraction(math.nextafter(math.exp(EPSILON), 3.0))
ASKED = {
    "sensitive": "ill",
    "release": ["health", "job"],
    "person": "id",
    "wave": "year",
    "confidence": 0.9,
    "promise": "relative",
    "slice_seed": 1,
}


@pytest.fixture(scope="module")
def frame():
    return panel(people=900, longest=3)


@pytest.fixture(scope="module")
def design(frame):
    return md.design(frame, md.LIP(EPSILON), **ASKED)


def test_people_are_the_records_of_the_proof_and_its_table_keeps_the_promise(
    frame, design
):
    """Each stratum is a number of records. In it every output of the boxes keeps the promise on the
    counts of people, in fractions; the audit says so of all populations in the set."""
    channel = design.channel
    people = sequences(frame)
    assert channel.given_columns == (RECORDS,)
    proven = channel.slice_records
    for part in channel.parts:
        joint = part.channel.joint
        proven += joint.total
        length = int(channel.given[0].symbols[part.stratum[0]][0])
        of_length = [seq for _, seq in people.values() if len(seq) == length]
        assert joint.total <= len(of_length)
        for y in range(len(part.channel.outputs)):
            masses = [
                sum(n * Fraction(row[y], total) for n, row, total in rows)
                for rows in (
                    list(
                        zip(
                            counts,
                            part.channel.rows,
                            part.channel.row_totals,
                            strict=True,
                        )
                    )
                    for counts in joint.counts
                )
            ]
            for mass, of_secret in zip(masses, joint.sensitive_counts, strict=True):
                lift = mass * joint.total / (sum(masses) * of_secret)
                assert LOW <= lift <= HIGH
    assert proven == len(people)
    assert design.audit.satisfied
    assert md.audit(channel).satisfied
    assert design.audit.achieved.eps_u <= EPSILON


def test_sequences_of_the_table_come_out_in_the_long_form(frame, design, tmp_path):
    design.channel.save(tmp_path / "channel.json")
    channel = md.load(tmp_path / "channel.json")
    assert channel.people == design.channel.people
    released = channel.apply(frame, insecure_seed=3)
    assert len(released) == len(frame)
    people = sequences(frame)
    known = {sequence for _, sequence in people.values()}
    after = sequences(released.assign(ill=""))
    # New numbers, in the order in which people appear.
    for (_, before), (_, sequence) in zip(people.values(), after.values(), strict=True):
        assert len(sequence) == len(before)
        assert sequence in known
    by_number = channel.apply(frame, identity=frame["id"].tolist(), insecure_seed=3)
    turned = frame.iloc[::-1]
    again = channel.apply(turned, identity=turned["id"].tolist(), insecure_seed=3)
    health = again["health"].iloc[::-1].tolist()
    assert health == by_number["health"].tolist()


def test_the_stated_share_of_unchanged_cells_is_that_of_draws(frame, design):
    from mechdesign.report.box_sentences import truth_by_column

    stated = truth_by_column(design.channel)
    assert set(stated) == {"health", "job"}
    for name, share in stated.items():
        same = [
            np.mean(
                design.channel.apply(frame, insecure_seed=seed)[name].to_numpy()
                == frame[name].to_numpy()
            )
            for seed in range(20)
        ]
        assert np.mean(same) == pytest.approx(share, abs=0.03)


def test_what_boxes_of_people_do_not_have_is_refused(frame, design):
    asked = {**ASKED, "promise": "total"}
    with pytest.raises(md.InputError, match="the number of records of a person"):
        md.design(frame, md.LIP(EPSILON), **asked)
    parts = tuple(replace(part, fill=()) for part in design.channel.parts)
    with pytest.raises(md.InputError, match="has no records"):
        replace(design.channel, parts=parts)
    others = replace(design.channel.people, columns=("job", "health"))
    with pytest.raises(md.InputError, match="not those of the sequences"):
        replace(design.channel, people=others)
    with pytest.raises(md.InputError, match="cannot be public"):
        design.channel.save("nowhere.json", public=True)
    with pytest.raises(md.InputError, match="is neither checked nor estimated"):
        md.check(design.channel, "nowhere.csv")


def test_numbers_of_records_with_too_few_people_release_nothing_and_say_so(frame):
    """Their sequences have no cells, so the law of the table is not said to be kept there."""
    few = panel(people=1, longest=1, seed=5)
    waves = [few.assign(id="x", year=2020 + wave, health="h1") for wave in range(4)]
    table = pd.concat([frame, *waves], ignore_index=True)
    result = md.design(table, md.LIP(EPSILON), **ASKED)
    assert any(part.channel is None for part in result.channel.parts)
    said = " ".join(result.summary().split())
    assert "every row of the table is released as often" not in said
    assert "where rows are released, each comes as often as the table has it" in said
    released = result.channel.apply(table, insecure_seed=1)
    silent = released["health"].to_numpy() == "(not released)"
    assert set(table["id"][silent]) == {"x"}
