"""Tables whose records depend on those before them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import mechdesign as md
from mechdesign.tables.joint import Joint
from mechdesign.tables.reading import read_joint


def notes(joint):
    return [note for note in joint.notices if "of the record before them" in note]


def series(records=600, stay=0.95, seed=1):
    """Readings of a meter, most of which are on or off as the one before was."""
    chance = np.random.default_rng(seed)
    on = [False]
    for _ in range(records - 1):
        on.append(bool(on[-1]) == bool(chance.random() < stay))
    level = np.round(100 * np.array(on) + chance.normal(0, 5, records))
    return pd.DataFrame({"on": np.where(on, "yes", "no"), "level": level.astype(int)})


@pytest.mark.parametrize("block", [1 << 22, 64])
def test_a_time_series_is_named_with_its_shares(tmp_path, monkeypatch, block):
    monkeypatch.setattr("mechdesign.formats.csv_blocks.BLOCK", block)
    frame = series()
    frame.to_csv(tmp_path / "in.csv", index=False)
    (note,) = notes(read_joint(tmp_path / "in.csv", sensitive="on", useful="level"))
    alike = (frame["on"].to_numpy()[1:] == frame["on"].to_numpy()[:-1]).mean()
    by_chance = (frame["on"].value_counts(normalize=True) ** 2).sum()
    assert note == (
        f"{100 * alike:.1f} % of the records have the 'on' of the record before them, "
        f"{100 * by_chance:.1f} % would by chance: if this is a time series, or people have "
        "several records, they are not independent, and no promise, figure or interval for a "
        "population holds; if the table was sorted by other columns, that does no harm"
    )
    assert notes(Joint.from_table(frame, sensitive="on", useful="level")) == [note]
    # The columns of a row are one symbol; the secret may have several columns.
    frame["half"] = np.where(frame["level"] > 50, "upper", "lower")
    both = Joint.from_table(frame, sensitive=["on", "half"], useful=["level"])
    assert "have the 'on', 'half' of the record before" in notes(both)[0]


@pytest.mark.usefixtures("small_by_products")
def test_an_assessment_names_it_unless_it_names_people():
    # Levels that only one value of the secret has would be taken for people.
    frame = series().drop(columns="level")
    frame["power"] = np.random.default_rng(2).integers(0, 50, len(frame))
    (symptom,) = [
        symptom
        for symptom in md.assess(frame, sensitive="on").symptoms
        if symptom.kind == "series"
    ]
    assert "of the records have the 'on' of the record before them" in symptom.text
    assert "no promise, figure or interval for a population" in symptom.option
    shuffled = frame.sample(frac=1.0, random_state=1).reset_index(drop=True)
    kinds = {symptom.kind for symptom in md.assess(shuffled, sensitive="on").symptoms}
    assert "series" not in kinds
    # Of people with several records each they are named, and not the series.
    panel = frame.loc[frame.index.repeat(3)].reset_index(drop=True)
    panel["person"] = [f"p{number // 3}" for number in range(len(panel))]
    kinds = {symptom.kind for symptom in md.assess(panel, sensitive="on").symptoms}
    assert "people" in kinds
    assert "series" not in kinds


def test_independent_sorted_and_short_tables_are_not():
    frame = series()
    shuffled = frame.sample(frac=1.0, random_state=1)
    for other in (
        shuffled,
        frame.sort_values(["on", "level"]),
        frame.sort_values(["level", "on"]),
        frame.head(150),
        frame.assign(on="yes"),
    ):
        assert not notes(Joint.from_table(other, sensitive="on", useful="level"))
    # Counts of records have no order.
    counts = frame.value_counts(["on", "level"]).rename("count").reset_index()
    weighted = pd.concat([counts] * 3)
    joint = Joint.from_table(weighted, sensitive="on", useful="level", weight="count")
    assert not notes(joint)


def test_a_weak_dependence_is_not():
    frame = series(records=2_000, stay=0.7)
    assert not notes(Joint.from_table(frame, sensitive="on", useful="level"))
    frame = series(records=2_000, stay=0.8)
    assert notes(Joint.from_table(frame, sensitive="on", useful="level"))


@pytest.mark.slow
def test_readings_of_a_meter_are_no_sample_of_later_ones(data):
    """Figures of CHANGELOG.md: what was verified with 95 % confidence is far off a day later."""
    edges = [-np.inf, 174.669, 177.34, 236.1, 257.339, 304.61, 370.23, 510.2, np.inf]
    segments = []
    for number in (0, 1):
        frame = pd.read_csv(data / "redd" / f"redd_house1_{number}.csv")
        fridge = np.where(frame["fridge"] > 50, "on", "off")
        power = pd.cut(frame["main"], edges, right=False, labels=False).astype(str)
        segments.append(pd.DataFrame({"fridge": fridge, "power": power}))
    joints = [
        Joint.from_table(segment, sensitive="fridge", useful="power")
        for segment in segments
    ]
    assert all(notes(joint) for joint in joints)
    notion = md.ALIP(0.5, 0.5)
    channel = md.design(joints[0], notion, confidence=0.95).channel
    later = md.audit(channel, joints[1], notion)
    assert not later.satisfied
    assert np.exp(-later.achieved.eps_l) == pytest.approx(0.066, abs=0.0005)
    assert np.exp(later.achieved.eps_u) == pytest.approx(3.13, abs=0.005)
