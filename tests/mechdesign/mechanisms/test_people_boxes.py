"""Boxes of people: a promise for the population that people with several records are a sample of."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import mechdesign as md
from mechdesign.cli import main
from mechdesign.tables.people import RECORDS
from tests.cases.boxes import with_parts
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
    proven = channel.claims.slice_records
    for part in channel.parts:
        joint = part.channel.joint
        proven += joint.total
        length = int(channel.coder.given[0].symbols[part.stratum[0]][0])
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
    stated = design.truth
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
        with_parts(design.channel, parts)
    others = replace(design.channel.people, columns=("job", "health"))
    with pytest.raises(md.InputError, match="not those of the sequences"):
        replace(design.channel.coder, people=others)
    with pytest.raises(md.InputError, match="cannot be public"):
        design.channel.save("nowhere.json", public=True)
    with pytest.raises(md.InputError, match="has no records"):
        design.channel.public().apply(frame, insecure_seed=1)
    with pytest.raises(md.InputError, match="checked by its rows alone"):
        md.check(design.channel, "nowhere.csv", original="original.csv")


def with_a_silent_number(frame):
    """The records, and one person more who has four."""
    few = panel(people=1, longest=1, seed=5)
    waves = [few.assign(id="x", year=2020 + wave, health="h1") for wave in range(4)]
    return pd.concat([frame, *waves], ignore_index=True)


def test_a_release_is_checked_by_its_sequences(frame, design, tmp_path):
    path = tmp_path / "released.csv"
    released = design.channel.apply(frame, insecure_seed=1)
    released.to_csv(path, index=False)
    for any_data in (False, True):
        found = md.check(design.channel, path, any_data=any_data)
        assert found.plausible
        assert (found.unit, found.records) == ("person", 900)
    # All people of one number of records get the sequence of one of them.
    sized = released.assign(size=released.groupby("id")["id"].transform("size"))
    one = sized[sized["id"].isin(sized.groupby("size")["id"].first())]
    constant = sized[["id", "year", "size"]].merge(
        one.drop(columns="id"), on=["size", "year"]
    )
    constant.drop(columns="size").to_csv(path, index=False)
    found = md.check(design.channel, path)
    assert not found.findings
    assert not found.plausible
    # Jobs of others beside these make sequences that nobody has.
    mixed = released.assign(job=released["job"].to_numpy()[::-1])
    mixed.to_csv(path, index=False)
    assert md.check(design.channel, path).findings


def test_shares_of_records_are_those_of_the_table_within_their_errors(frame, design):
    """Each estimate is an average over draws of the channel; its error that of one draw."""
    table = frame["health"].value_counts(normalize=True)
    estimates: dict[str, list[float]] = {value: [] for value in table.index}
    errors: dict[str, list[float]] = {value: [] for value in table.index}
    for seed in range(40):
        released = design.channel.apply(frame, insecure_seed=seed)
        (found,) = md.estimate(design.channel, released, "health", target="records")
        for row in found.rows():
            estimates[row["health"]].append(row["estimate"])
            errors[row["health"]].append(row["standard_error"])
    for value, share in table.items():
        error = np.mean(errors[value])
        assert np.mean(estimates[value]) == pytest.approx(share, abs=error / 2)
        # The slice has sequences that the counts of the proof do not have.
        assert np.std(estimates[value]) == pytest.approx(error, rel=0.35)
    with pytest.raises(md.InputError, match="a mean or a regression"):
        md.estimate(design.channel, frame, mean="health")


def test_where_nothing_is_released_the_others_are_checked_and_estimated(
    frame, tmp_path, capfd
):
    table = with_a_silent_number(frame)
    channel = md.design(table, md.LIP(EPSILON), **ASKED).channel
    assert channel.silent_strata == ["number of records 4"]
    released = channel.apply(table, insecure_seed=1)
    path = tmp_path / "released.csv"
    released.to_csv(path, index=False)
    assert md.check(channel, path).plausible
    (found,) = md.estimate(channel, released, "health")
    assert found.records == len(frame)
    assert {row["health"] for row in found.rows()} == set(frame["health"])
    channel.save(tmp_path / "channel.json")
    assert (
        main(["estimate", str(path), "--channel", str(tmp_path / "channel.json")]) == 0
    )
    out, _ = capfd.readouterr()
    assert "Of rows with 'number of records 4' nothing is released" in out


def test_numbers_of_records_with_too_few_people_release_nothing_and_say_so(frame):
    """Their sequences have no cells, so the law of the table is not said to be kept there."""
    table = with_a_silent_number(frame)
    result = md.design(table, md.LIP(EPSILON), **ASKED)
    assert any(part.channel is None for part in result.channel.parts)
    said = " ".join(result.summary().split())
    assert "every row of the table is released as often" not in said
    assert "Where rows are released, each comes as often as the table has it" in said
    released = result.channel.apply(table, insecure_seed=1)
    silent = released["health"].to_numpy() == "(not released)"
    assert set(table["id"][silent]) == {"x"}
