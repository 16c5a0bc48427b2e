"""Files of channels of boxes that were edited, with a hash that fits: what contradicts itself is refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import mechdesign as md
from mechdesign.core.errors import InputError
from tests.cases.documents import rewrite


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    rng = np.random.default_rng(3)
    a = rng.integers(0, 4, 1200)
    s = rng.random(1200) < 0.3 + 0.1 * a
    table = pd.DataFrame(
        {
            "s": np.where(s, "yes", "no"),
            "a": np.array(list("wxyz"))[a],
            "b": rng.integers(0, 3, 1200).astype(str),
        }
    )
    channel = md.design(
        table,
        sensitive="s",
        release=["a", "b"],
        notion=md.LIP(0.7),
        confidence=0.9,
        cells=3,
        fill=True,
    ).channel
    file = tmp_path_factory.mktemp("boxes") / "boxes.json"
    channel.save(file)
    return file


def change_part(change):
    def forge(document):
        change(document["parts"][0])

    return forge


def swap_symbols(part):
    part["channel"]["sensitive"]["symbols"] = [["no"], ["maybe"]]


def protect_another(part):
    part["channel"]["sensitive"]["columns"] = ["t"]


def drop_count(part):
    part["inside"][0][0].pop()


def drop_box(part):
    part["inside"][0] = []


def one_record_more(part):
    part["inside"][0][0][0] += 1


def less_than_none(part):
    counts = part["inside"][0][0]
    counts[0] -= 1000
    counts[1] += 1000


def unknown_code(part):
    part["splits"][0]["inside"] = [7]


def huge_fill(part):
    part["fill"][0][0][-1] = 2**70


def empty_fill_of_column(part):
    part["fill"][0][0].pop()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (swap_symbols, "protects another symbol"),
        (protect_another, "protects another column"),
        (drop_count, "every symbol of every column needs a count in a box"),
        (drop_box, "every symbol of every column needs a count in a box"),
        (one_record_more, "are not those of its records"),
        (less_than_none, "are not those of its records"),
        (unknown_code, "a split has no symbol of its column"),
        (huge_fill, "a row that fills a box has no number of records"),
        (empty_fill_of_column, "must have a code for every column, and its records"),
    ],
)
def test_parts_that_contradict_themselves_are_refused(path, tmp_path, change, message):
    md.load(path)
    rewrite(path, change_part(change), tmp_path / "forged.json")
    with pytest.raises(InputError, match=message):
        md.load(tmp_path / "forged.json")


@pytest.mark.parametrize("records", [-1, 2**80])
def test_a_slice_has_a_number_of_records(path, tmp_path, records):
    def forge(document):
        document["slice_records"] = records

    rewrite(path, forge, tmp_path / "forged.json")
    with pytest.raises(InputError, match="slice_records must be a number of records"):
        md.load(tmp_path / "forged.json")


@pytest.mark.parametrize(
    ("figure", "value", "message"),
    [
        ("records", 5000, "its records are not those of the counts"),
        ("information", -0.5, "must be numbers that are not negative"),
        ("bound", 0.0, "must be numbers that are not negative"),
        ("own", 1.5, "shares must lie in"),
        ("columns", [], "figures of every released column"),
    ],
)
def test_figures_that_cannot_be_are_refused(path, tmp_path, figure, value, message):
    def forge(document):
        document["utility"][figure] = value

    rewrite(path, forge, tmp_path / "forged.json")
    with pytest.raises(InputError, match=message):
        md.load(tmp_path / "forged.json")
