"""Columns that name people, and what the records of a person reach together."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import mechdesign as md
from mechdesign.leaks.people_notice import people_in, people_notice, reach_in
from mechdesign.leaks.person_columns import find_person_columns


def panel(people=300, seed=1):
    chance = np.random.default_rng(seed)
    ill = chance.random(people) < 0.4
    person = np.repeat(np.arange(people), 4)
    health = np.clip(chance.normal(1.0 + ill[person], 1.0), 0, 4).round().astype(int)
    return pd.DataFrame(
        {
            "id": person,
            "year": np.tile(np.arange(4), people),
            "ill": np.where(ill[person], "yes", "no"),
            "health": health,
            "weight": chance.permutation(people * 4) // 2,
        }
    )


def codes(frame):
    return {name: pd.factorize(frame[name])[0].astype(np.int64) for name in frame}


def test_the_column_of_people_is_found_and_no_other():
    table = codes(panel())
    secret = table.pop("ill")
    (found,) = find_person_columns(table, secret)
    assert found.name == "id"
    assert found.people == 300
    assert found.records == 1200
    assert found.most == 4
    assert found.alike == 1.0


def test_ages_that_tell_of_a_secret_are_no_people():
    """In a small table every age has a few records, and they agree more than by chance."""
    chance = np.random.default_rng(2)
    age = chance.integers(18, 78, 400)
    rich = chance.random(400) < np.where(age < 35, 0.05, 0.6)
    columns = {"age": age - 18}
    assert find_person_columns(columns, rich.astype(np.int64), may_change=True)
    frame = pd.DataFrame({"age": age, "rich": np.where(rich, "yes", "no")})
    assert people_in(frame, ["rich"]) is None


@pytest.mark.parametrize("first", [0, 100_000])
def test_numbered_people_whose_secret_changes_are_found(first):
    """The next number is another person, who has no more in common than any other."""
    chance = np.random.default_rng(3)
    person = np.repeat(np.arange(80), 5)
    usually = chance.random(80) < 0.5
    ill = chance.random(400) < np.where(usually[person], 0.85, 0.15)
    frame = pd.DataFrame({"id": person + first, "ill": np.where(ill, "yes", "no")})
    found = people_in(frame, ["ill"])
    assert found is not None
    assert found.column.name == "id"


@pytest.mark.parametrize("rare", [0.001, 0.4])
def test_values_whose_secrets_agree_by_chance_name_nobody(rare):
    """Repeated values with secrets in random order are no people, nor where hardly any record has
    the secret."""
    chance = np.random.default_rng(0)
    secret = (chance.random(2000) < rare).astype(np.int64)
    columns = {"twice": np.arange(2000) // 2, "many": np.arange(2000) // 200}
    assert find_person_columns(columns, secret) == []
    assert find_person_columns({"none": secret[:0]}, secret[:0]) == []


def test_records_of_one_person_add_up_exactly():
    """The extreme lifts are those of the product of the likelihoods over the records, gone through
    person by person in fractions."""
    frame = panel()
    design = md.design(
        frame, md.LIP(0.5), sensitive="ill", release="health", unit="record"
    )
    channel = design.channel
    found = people_in(frame, ["ill"])
    assert found is not None
    reach = reach_in(found, channel)
    assert reach is not None
    rows = [
        ("yes" if i == "yes" else "no", str(h))
        for i, h in zip(frame["ill"], frame["health"], strict=True)
    ]
    prior = {
        s: Fraction(sum(r[0] == s for r in rows), len(rows)) for s in ("yes", "no")
    }
    joint: dict[tuple[str, str], Fraction] = {}
    for s, h in rows:
        for (y,), share in channel.distribution(h).items():
            joint[s, y] = joint.get((s, y), Fraction(0)) + share / len(rows)
    lifts = []
    for _, records in frame.groupby("id"):
        weights = dict(prior)
        for h in records["health"]:
            law = channel.distribution(str(h))
            (y,) = max(law, key=lambda row: law[row])
            output = sum(joint.get((s, y), Fraction(0)) for s in prior)
            for s in prior:
                weights[s] *= joint.get((s, y), Fraction(0)) / output / prior[s]
        whole = sum(weights.values())
        lifts.append({s: weights[s] / whole / prior[s] for s in prior})
    largest = max(max(person.values()) for person in lifts)
    smallest = min(min(person.values()) for person in lifts)
    assert reach.highest == pytest.approx(float(largest), rel=1e-12)
    assert reach.lowest == pytest.approx(float(smallest), rel=1e-12)
    assert largest <= reach.highest
    assert smallest >= reach.lowest
    low, high = reach.single
    beyond = [
        any(
            lift > high * (1 + 1e-9) or lift < low * (1 - 1e-9)
            for lift in person.values()
        )
        for person in lifts
    ]
    assert reach.above == sum(beyond) > 0
    sure = [
        any(lift * prior[s] > 0.9 for s, lift in person.items()) for person in lifts
    ]
    assert reach.sure == sum(sure)
    assert reach.highest > math.exp(0.5)


def test_the_notice_names_people_and_what_to_do():
    frame = panel()
    found = people_in(frame, ["ill"])
    assert found is not None
    channel = md.design(
        frame, md.LIP(0.5), sensitive="ill", release="health", unit="record"
    ).channel
    text = people_notice(found, ["ill"], reach_in(found, channel))
    assert "the column 'id' names 300 people with up to 4 records each" in text
    assert "all records of a person together, each drawn by itself, reach" in text
    assert "--person, here id" in text
    assert "--unit record" in text
    bare = people_notice(found, ["ill"], None)
    assert "reach" not in bare
    assert people_in(frame.drop(columns="id"), ["ill"]) is None
    assert people_in(frame, ["ill"], but=["id"]) is None
    assert people_in(frame, ["ill"], among=["year"]) is None


def test_a_channel_of_other_columns_has_no_reach():
    frame = panel()
    found = people_in(frame, ["ill"])
    other = frame.rename(columns={"health": "state"})
    channel = md.design(
        other, md.LIP(0.5), sensitive="ill", release="state", unit="record"
    ).channel
    assert found is not None
    assert reach_in(found, channel) is None
    own = md.design(
        frame, md.LIP(0.5), sensitive="ill", release="health", unit="record"
    ).channel
    assert reach_in(found, own.public()) is None
