"""What only the second version of the channel file has, and every way in which that can be wrong."""

from __future__ import annotations

import json

import pytest

from mechdesign.channel.channel import Channel
from tests.cases.channel_documents import GOOD, D, assert_refused, changed, hashed

THIRDS = [["1/3", "2/3"], ["1/3", "2/3"]]

SECOND = {
    **{key: value for key, value in GOOD.items() if key not in ("rows", "joint")},
    "version": 2,
    "sparse_rows": [[0, D], [0, D // 4, 1, 3 * D // 4]],
    "sparse_joint": [[0, 1, 1, 2], [0, 3, 1, 4]],
    "confidence": {
        "level": 0.95,
        "set": "clopper-pearson",
        "shares": "estimated",
        "intervals": {"cells": [THIRDS, THIRDS], "shares": THIRDS},
    },
    "objective": {
        "name": "distance",
        "distance": "squared",
        "keep_frequencies": True,
        "stay": {"Sales": "1/2"},
    },
    "budgets": [{"symbol": ["f"], "eps_l": 1.0, "eps_u": "inf"}],
    "after": ["0" * 64],
}


def test_the_second_version_is_read_and_written(tmp_path):
    (tmp_path / "good.json").write_text(json.dumps(hashed(SECOND)))
    channel = Channel.load(tmp_path / "good.json")
    assert channel.rows == ((D, 0), (D // 4, 3 * D // 4))
    assert channel.joint.counts == ((1, 2), (3, 4))
    assert channel.record.confidence["intervals"]["shares"][1] == ["1/3", "2/3"]
    assert channel.record.objective.stay == {"Sales": "1/2"}
    assert channel.record.budgets[0].eps_u == "inf"
    channel.save(tmp_path / "again.json")
    written = json.loads((tmp_path / "again.json").read_text())
    assert written["version"] == 2
    assert written["rows"] == GOOD["rows"]  # small tables are written in full
    assert {key: written[key] for key in ("confidence", "budgets", "after")} == {
        key: SECOND[key] for key in ("confidence", "budgets", "after")
    }
    assert Channel.load(tmp_path / "again.json") == channel


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("sparse_rows", None, r"the channel file has no 'rows'"),
        ("rows", GOOD["rows"], r"the channel file has both 'rows' and 'sparse_rows'"),
        (
            "joint",
            GOOD["joint"],
            r"the channel file has both 'joint' and 'sparse_joint'",
        ),
        (
            "sparse_rows",
            {},
            r"sparse rows must be a list of lists of integers, not dict",
        ),
        (
            "sparse_rows.1",
            7,
            r"row 'Tech' is not a list of index, value, \.\. in whole numbers",
        ),
        ("sparse_rows.1", [0, D, 1], r"row 'Tech' is not a list of index, value"),
        ("sparse_rows.1.1", float(D), r"row 'Tech' is not a list of index, value"),
        ("sparse_rows.1.1", True, r"row 'Tech' is not a list of index, value"),
        ("sparse_rows.1.1", "1", r"row 'Tech' is not a list of index, value"),
        ("sparse_rows.1.1", -1, r"row 'Tech': '-1' is not a non-negative integer"),
        (
            "sparse_rows.1.1",
            10**4000,
            r"row 'Tech': an integer of 13288 bits is not a non-negative integer",
        ),
        (
            "sparse_rows.1.1",
            0,
            r"row 'Tech': the indices must ascend and be below 2, and the values positive",
        ),
        ("sparse_rows.1.2", 0, r"row 'Tech': the indices must ascend"),
        ("sparse_rows.1.2", 2, r"row 'Tech': the indices must ascend and be below 2"),
        (
            "sparse_rows.1.1",
            D,
            r"row 'Tech' sums to 15762598695796736, not to the denominator",
        ),
        ("sparse_joint", [7], r"sparse_joint must be a list of lists of integers"),
        ("sparse_joint.0", [0], r"sparse_joint: row 1 is no list of index, value"),
        (
            "sparse_joint.0.0",
            1,
            r"sparse_joint: row 1 is no list of index, value, \.\. with ascending indices below 2",
        ),
        ("sparse_joint.0.2", 2, r"sparse_joint: row 1 is no list of index, value"),
        (
            "sparse_joint.0.1",
            True,
            r"sparse_joint: the entry at .*'f'.* must be an integer in \[0, 2\^256\)",
        ),
        (
            "confidence.level",
            0.3,
            r"confidence\.level \('0\.3'\) must be at least 0\.5",
        ),
        ("confidence.level", "0.95", r"confidence\.level \('0\.95'\) must be a number"),
        (
            "confidence.set",
            "wald",
            r"confidence\.set \('wald'\) must be 'clopper-pearson'",
        ),
        (
            "confidence.intervals.shares.0.0",
            "0.5",
            r"shares\[0\]\[0\] \('0\.5'\) must be an exact fraction as text",
        ),
        (
            "confidence.intervals.shares.0.0",
            "1/0",
            r"shares\[0\]\[0\] \('1/0'\) must be an exact fraction",
        ),
        (
            "confidence.intervals.shares.0",
            ["1", "1/2"],
            r"shares\[0\] \('1', '1/2'\) is no interval in \[0, 1\]",
        ),
        (
            "confidence.intervals.shares",
            [["0", "1/3"]] * 2,
            r"shares: the intervals hold no probabilities that sum",
        ),
        (
            "confidence.intervals.cells",
            [THIRDS],
            r"confidence: there must be intervals for 2 shares, and for 2 rows",
        ),
        (
            "objective.distance",
            None,
            r"objective: distance \(absolute, squared or ranks\) belongs to the objective",
        ),
        (
            "objective.name",
            "profit",
            r"objective\.name \('profit'\) must be 'truth', 'distance', 'costs' or 'convex'",
        ),
        (
            "objective.stay",
            {"Sales": 0.5},
            r"objective\.stay\.Sales \('0\.5'\) must be text",
        ),
        (
            "bins",
            {"age": {"edges": ["0", "1"]}},
            r"bins: there is no useful column 'age'",
        ),
        ("budgets.0.eps_l", -1.0, r"budgets\[0\]: eps_l \(-1\) must be positive"),
        ("budgets.0.eps_u", "1", r"budgets\[0\]\.eps_u"),
        ("budgets.0.symbol", ["d"], r"budgets: there is no sensitive symbol 'd'"),
        ("budgets", SECOND["budgets"] * 2, r"budgets: a sensitive symbol occurs twice"),
        ("after.0", "x", r"after\[0\] \('x'\) must be a hash in hexadecimal digits"),
    ],
)
def test_a_wrong_value_of_version_2_is_named(tmp_path, path, value, message):
    assert_refused(tmp_path, json.dumps(changed(path, value, SECOND)), message)


BINS = {
    "kind": "number",
    "edges": ["-inf", "0.5", "7"],
    "values": [["-1", "0"], ["0.5"]],
    "counts": [[1, 2], [3]],
}

BINNED = {
    **GOOD,
    "version": 2,
    "useful": {"columns": ["job"], "symbols": [["(-inf, 0.5)"], ["[0.5, 7]"]]},
    "outputs": ["(-inf, 0.5)", "mix-1"],
    "bins": {"job": BINS},
}


def test_bins_are_read_and_written_and_lose_the_table_in_a_public_file(tmp_path):
    (tmp_path / "good.json").write_text(json.dumps(hashed(BINNED)))
    channel = Channel.load(tmp_path / "good.json")
    assert channel.useful.bins[0].representatives == ("0", "0.5")
    channel.save(tmp_path / "again.json")
    written = json.loads((tmp_path / "again.json").read_text())
    assert (written["version"], written["bins"]) == (2, {"job": BINS})
    assert Channel.load(tmp_path / "again.json") == channel
    channel.save(tmp_path / "public.json", public=True)
    public = json.loads((tmp_path / "public.json").read_text())
    assert public["bins"] == {"job": {key: BINS[key] for key in ("kind", "edges")}}
    assert Channel.load(tmp_path / "public.json").useful.bins[0].representatives is None


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (
            "bins.job.edges",
            ["1", "1"],
            r"the edges must ascend, but '1' stands before '1'",
        ),
        ("bins.job.edges", ["1"], r"bins\.job\.edges .* must have at least 2 entries"),
        ("bins.job.edges", ["0", "x"], r"the edge 'x' is no number"),
        (
            "bins.job.edges",
            ["0", "inf", "7"],
            r"the edges must ascend, but 'inf' stands before '7'",
        ),
        ("bins.job.kind", "money", r"bins\.job\.kind \('money'\) must be "),
        ("bins.job.kind", "date", r"the edge '0.5' is no date"),
        ("bins.job.values", None, r"values and counts must both have every bin"),
        (
            "bins.job.values",
            [["0"], ["0.5"]],
            r"values and counts must both have every bin, equally many",
        ),
        (
            "bins.job.values",
            [["0", "-1"], ["0.5"]],
            r"the values of the bin 1 must ascend and lie in it",
        ),
        (
            "bins.job.values",
            [["-1", "0"], ["8"]],
            r"the values of the bin 2 must ascend and lie in it",
        ),
        ("bins.job.counts.1.0", 0, r"counts.* must be at least 1"),
        (
            "bins.job.edges",
            ["-inf", "0.4", "0.5", "7"],
            r"values and counts must both have every bin",
        ),
        (
            "bins.job",
            {"edges": ["0", "1"]},
            r"useful: the symbol '\(-inf, 0.5\)' of 'job' is none of its bins",
        ),
        ("version", 1, r"unknown key 'bins', which belongs to version 2"),
    ],
)
def test_wrong_bins_are_named(tmp_path, path, value, message):
    assert_refused(tmp_path, json.dumps(changed(path, value, BINNED)), message)
