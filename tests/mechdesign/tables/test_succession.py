"""Tables whose records depend on those before them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

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
