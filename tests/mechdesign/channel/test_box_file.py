"""Files of channels of boxes that were edited, with a hash that fits: what contradicts itself is refused."""

from __future__ import annotations

import json

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


def forget_symbol(document):
    document["claims"]["strata"][0]["together"] = [[0]]


def unequal_counts(document):
    document["claims"]["strata"][0]["joint"].pop()


def drop_count(document):
    document["fill"]["counts"][0][0][0].pop()


def drop_box(document):
    document["fill"]["counts"][0][0] = []


def one_record_more(document):
    document["fill"]["counts"][0][0][0][0] += 1


def less_than_none(document):
    counts = document["fill"]["counts"][0][0][0]
    counts[0] -= 1000
    counts[1] += 1000


def unknown_code(document):
    document["coder"]["strata"][0]["splits"][0]["inside"] = [7]


def huge_fill(document):
    document["fill"]["rows"][0][0][0][-1] = 2**70


def empty_fill_of_column(document):
    document["fill"]["rows"][0][0][0].pop()


def drop_stratum(document):
    document["fill"]["rows"] = []


def another_box(document):
    document["useful"]["symbols"][-1] = ["box 4"]
    document["outputs"][-1] = "box 4"


def no_claim(document):
    document["claims"]["strata"][0] = {}


def two_claims(document):
    document["claims"]["strata"] *= 2


def no_promise(document):
    del document["claims"]["strata"][0]["notion"]


def no_set(document):
    del document["claims"]["strata"][0]["confidence"]


def no_coder(document):
    del document["coder"]


def circle(document):
    document["coder"]["strata"][0]["splits"][0]["second"] = 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (forget_symbol, "every sensitive symbol must be promised once"),
        (unequal_counts, r"claims\.strata\[0\]\.joint: the table must have 2 rows"),
        (another_box, "has a box that is not there"),
        (drop_stratum, "rows and counts of every stratum"),
        (no_claim, "a stratum without a promise releases its boxes"),
        (two_claims, "a claim for every stratum"),
        (no_promise, "promises nothing"),
        (no_set, "has no confidence set"),
        (no_coder, "must have a coder, claims and sensitive symbols"),
        (circle, "a child must be a later split or a box"),
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
    rewrite(path, change, tmp_path / "forged.json")
    with pytest.raises(InputError, match=message):
        md.load(tmp_path / "forged.json")


@pytest.mark.parametrize("records", [-1, 2**80])
def test_a_slice_has_a_number_of_records(path, tmp_path, records):
    def forge(document):
        document["claims"]["slice_records"] = records

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
        document["claims"]["utility"][figure] = value

    rewrite(path, forge, tmp_path / "forged.json")
    with pytest.raises(InputError, match=message):
        md.load(tmp_path / "forged.json")


def test_a_public_file_has_no_values_inside_of_bins(tmp_path):
    """They are cells of the table, in columns of boxes and in given ones."""
    rng = np.random.default_rng(5)
    table = pd.DataFrame(
        {
            "s": rng.choice(["yes", "no"], 2000),
            "age": rng.integers(18, 90, 2000),
            "pay": rng.integers(100, 900, 2000),
        }
    )
    channel = md.design(
        table,
        sensitive="s",
        release=["age"],
        given=["pay"],
        promise="relative",
        notion=md.LIP(0.7),
        confidence=0.9,
        bins={"age": "18,40,60,90", "pay": "100,500,900"},
        cells=3,
    ).channel
    channel.save(tmp_path / "own.json")
    channel.save(tmp_path / "public.json", public=True)
    for name, has_values in (("own", True), ("public", False)):
        coder = json.loads((tmp_path / f"{name}.json").read_text())["coder"]
        for labels in (*coder["given"], *coder["columns"]):
            for bins in labels["bins"].values():
                assert ("values" in bins) is has_values
    public = md.load(tmp_path / "public.json")
    assert public.digest == channel.digest
    drawn = [one.apply(table, insecure_seed=2) for one in (channel, public)]
    assert drawn[0].equals(drawn[1])


def test_boxes_without_records_must_be_covered(path, tmp_path):
    def forge(document):
        """Box 3 loses its row, and nothing says that it was unseen."""
        document["useful"]["symbols"].pop()
        document["rows"] = [[1, 1], [1, 1]]
        document["denominator"] = 2
        document.pop("totals", None)
        document["outputs"] = document["outputs"][:2]
        claim = document["claims"]["strata"][0]
        claim["joint"] = [row[:2] for row in claim["joint"]]
        intervals = claim["confidence"]["intervals"]
        intervals["cells"] = [[*row[:1], ["0", "1"]] for row in intervals["cells"]]
        document["claims"]["utility"] = None
        del document["fill"]

    rewrite(path, forge, tmp_path / "forged.json")
    with pytest.raises(InputError, match="does not cover its empty boxes"):
        md.load(tmp_path / "forged.json")
