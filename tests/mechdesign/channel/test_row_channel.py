"""Row channels and their files: laws, labels, and files that are refused."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import mechdesign as md
from mechdesign.channel.record import SymbolBudgets
from mechdesign.core.documents import hashed_text
from mechdesign.core.row_tree import DENOMINATOR


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(3)
    a = rng.integers(0, 3, 400)
    b = rng.integers(0, 60, 400)
    s = rng.random(400) < 0.3 + 0.1 * a + 0.003 * b
    return pd.DataFrame(
        {
            "s": np.where(s, "yes", "no"),
            "k": np.where(a == 1, "u", "v"),
            "a": np.array(["x", "y, z", "{w}"])[a],
            "b": b.astype(str),
        }
    )


def designed(frame, **options):
    return md.design_rows(
        frame,
        sensitive="s",
        release=["a", "b"],
        bins={"b": "0,20,40,60"},
        time_limit=600.0,
        **{"notion": md.LIP(0.2), **options},
    ).channel


@pytest.fixture(scope="module")
def channel(frame):
    return designed(frame)


@pytest.fixture(scope="module", params=["truth", "information", "given", "budgets"])
def any_channel(frame, request):
    options = {
        "truth": {},
        "information": {"objective": "information"},
        "given": {"given": "k", "promise": "relative"},
        "budgets": {"notion": md.LIP(0.5).with_budgets({"yes": (0.1, 0.2)})},
    }
    return designed(frame, **options[request.param])


def test_a_law_of_a_row_by_mapping_and_by_texts(channel):
    law = channel.distribution({"a": "x", "b": "7", "other": "is ignored"})
    assert law == channel.distribution(("x", "7"))
    assert law == channel.distribution(("x", "[0, 20)"))
    assert sum(law.values()) == 1
    assert all(isinstance(share, Fraction) and share > 0 for share in law.values())
    assert all(len(texts) == 2 for texts in law)


def test_free_outputs_have_a_label_for_each_level(frame):
    channel = designed(frame, objective="information")
    for texts in channel.distribution(("x", "7")):
        assert texts[0] in channel.labels[0]
        assert texts[1] in channel.labels[1]
    assert channel.output_columns == ("a", "b")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"a": "x"}, "has no column 'b'"),
        (("x",), "has 1 texts"),
        (("q", "7"), "does not know the symbol of"),
        (("x", "99"), "outside the channel's bins"),
        (("x", "many"), "is no number"),
    ],
)
def test_unknown_rows_are_refused(channel, row, message):
    with pytest.raises(md.InputError, match=message):
        channel.distribution(row)


def test_files_come_back(any_channel, tmp_path):
    path = tmp_path / "row.json"
    any_channel.save(path)
    back = md.RowChannel.load(path)
    assert isinstance(md.load(path), md.RowChannel)
    again = tmp_path / "again.json"
    back.save(again)
    assert path.read_bytes() == again.read_bytes()
    assert back.notion == any_channel.notion
    assert back.table.counts == any_channel.table.counts
    assert md.audit(back) == md.audit(any_channel)
    assert repr(back) == repr(any_channel)


def test_files_hold_integers_alone(any_channel, tmp_path):
    path = tmp_path / "row.json"
    any_channel.save(path)
    document = json.loads(path.read_text())

    def numbers(value):
        if isinstance(value, list):
            return [n for item in value for n in numbers(item)]
        if isinstance(value, dict):
            return [n for item in value.values() for n in numbers(item)]
        return [value]

    for key in ("tree", "rows", "strata", "roots"):
        assert {type(n) for n in numbers(document[key])} <= {int}


def test_a_public_file_has_nothing_of_the_table(any_channel, tmp_path):
    path = tmp_path / "public.json"
    any_channel.save(path, public=True)
    document = json.loads(path.read_text())
    absent = {"rows", "counts", "achieved", "utility", "certificate"}
    assert not absent & document.keys()
    assert '"values"' not in path.read_text()
    assert md.RowChannel.load(path).table is None


def test_other_files_open_with_load(adult, tmp_path):
    made = md.design(adult, md.LIP(1.0), mechanism="subset-merging")
    path = tmp_path / "channel.json"
    made.channel.save(path)
    assert isinstance(md.load(path), md.Channel)
    with pytest.raises(md.InputError, match="not a row channel file"):
        md.RowChannel.load(path)
    with pytest.raises(md.InputError):
        md.load(tmp_path / "absent.json")


def test_an_existing_file_stays(channel, tmp_path):
    path = tmp_path / "row.json"
    channel.save(path)
    with pytest.raises(md.InputError, match="exists"):
        channel.save(path)
    channel.save(path, overwrite=True)


def tampered(path, change, *, rehash=True):
    document = json.loads(path.read_text())
    digest = document.pop("sha256")
    change(document)
    kind = document.pop("format")
    version = document.pop("version")
    text = hashed_text(kind, version, document)
    if not rehash:
        text = json.dumps({**json.loads(text), "sha256": digest})
    path.write_text(text)


def _row(document):
    """The first row of more than one entry."""
    for node in document["tree"][0]:
        for row in node["rows"]:
            if len(row) > 2:
                return row
    raise AssertionError("every row is certain")


def _move(document):
    row = _row(document)
    row[1] += 1
    row[3] -= 1


def _break_sum(document):
    _row(document)[1] += 1


def _same_child_twice(children):
    children[1] = children[0]


CHANGES = {
    "an entry that does not sum": (_break_sum, "sums to"),
    "a float": (lambda d: _row(d).__setitem__(1, 0.5), "whole numbers"),
    "a negative entry": (lambda d: _row(d).__setitem__(1, -1), "whole numbers"),
    "no root": (lambda d: d.__setitem__("roots", [9]), "root"),
    "two parents": (
        lambda d: _same_child_twice(d["tree"][0][0]["children"]),
        "lead to the same node|never reached",
    ),
    "a child that is not there": (
        lambda d: d["tree"][0][0]["children"].__setitem__(0, 99),
        "leads to no node",
    ),
    "an unknown key of a node": (
        lambda d: d["tree"][0][0].__setitem__("more", []),
        "must have inputs",
    ),
    "no tree": (lambda d: d.pop("tree"), "tree must be a list"),
    "a level less": (lambda d: d["tree"].pop(), "2 levels"),
    "a count of zero": (lambda d: d["rows"][0].__setitem__(-1, 0), "positive"),
    "a row twice": (lambda d: d["rows"].append(d["rows"][0]), "twice"),
    "a code without a symbol": (lambda d: d["rows"][0].__setitem__(0, 70), "code"),
    "another denominator": (lambda d: d.__setitem__("denominator", 8), "denominator"),
    "another promise": (lambda d: d.__setitem__("promise", "none"), "promise"),
    "an unknown key": (lambda d: d.__setitem__("pickle", 1), "unknown key 'pickle'"),
    "a released secret": (
        lambda d: d["levels"][0].__setitem__("columns", ["s"]),
        "'s' occurs twice",
    ),
    "no notion": (lambda d: d.pop("notion"), "notion"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_wrong_files_are_refused(channel, tmp_path, name):
    change, message = CHANGES[name]
    path = tmp_path / "row.json"
    channel.save(path)
    tampered(path, change)
    with pytest.raises(md.InputError, match=message) as refused:
        md.RowChannel.load(path)
    assert str(refused.value).startswith(str(path))


def test_an_edited_file_is_refused(channel, tmp_path):
    path = tmp_path / "row.json"
    channel.save(path)
    tampered(path, _move, rehash=False)
    with pytest.raises(md.InputError, match="edited or damaged"):
        md.RowChannel.load(path)


def test_a_channel_checks_its_parts(channel):
    with pytest.raises(md.InputError, match="twice"):
        replace(channel, sensitive=channel.levels[0])
    with pytest.raises(md.InputError, match="outputs"):
        replace(channel, labels=channel.labels[:1])
    with pytest.raises(md.InputError, match="strata"):
        replace(channel, strata=())
    with pytest.raises(md.InputError, match="promise"):
        replace(channel.record, promise="no")
    with pytest.raises(md.InputError, match="objective"):
        replace(channel.record, objective="distance")


@pytest.mark.parametrize(
    ("symbols", "message"),
    [
        (("maybe",), "there is no sensitive symbol 'maybe'"),
        (("yes", "yes"), "a sensitive symbol occurs twice"),
    ],
)
def test_budgets_are_for_different_sensitive_symbols(channel, symbols, message):
    """At once, and not only when the notion is asked for."""
    budgets = tuple(
        SymbolBudgets(symbol=(symbol,), eps_l=0.1, eps_u=0.1) for symbol in symbols
    )
    with pytest.raises(md.InputError, match=message):
        replace(channel, record=replace(channel.record, budgets=budgets))


def test_a_summary_names_every_level(any_channel):
    text = any_channel.summary()
    assert "level 1: a (3)" in text
    assert "level 2: b (3)" in text
    assert ("given: k (2)" in text) == bool(any_channel.given)
    assert any_channel._repr_html_().startswith("<pre>")


def test_rows_sum_to_the_denominator(any_channel):
    for table in any_channel.tree.levels:
        assert set(table.rows.row_sums()) <= {DENOMINATOR}


def test_an_unknown_given_symbol_has_no_stratum():
    """Its code -1 was the key of another combination: (b, unknown) that of (a, last)."""
    table = pd.DataFrame(
        {
            "s": ["u", "v"] * 8,
            "k": ["a", "a", "b", "b"] * 4,
            "m": ["p", "p", "p", "p", "q", "q", "q", "q"] * 2,
            "x": ["c", "d", "d", "c"] * 4,
        }
    )
    channel = md.design_rows(
        table,
        sensitive="s",
        given=["k", "m"],
        release=["x"],
        notion=md.LIP(1.0),
        time_limit=20,
    ).channel
    codes = np.array([[0, 0], [1, 1], [1, -1], [-1, 1], [-1, -1]])
    strata = channel.strata_of(codes).tolist()
    assert min(strata[:2]) >= 0
    assert strata[2:] == [-1, -1, -1]
