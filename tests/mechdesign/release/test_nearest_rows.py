"""Rows that the table does not have are released as draws of the nearest known row."""

from __future__ import annotations

import json
import re
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mechdesign as md
from mechdesign.core.errors import InputError
from mechdesign.formats.cells import encode
from mechdesign.release.coding import NearestRows
from mechdesign.release.drawing import Release
from mechdesign.release.samplers import Policy
from mechdesign.tables.columns import RecordFault
from mechdesign.tables.variable import Variable
from tests.profiles import scaled

NEAREST = Policy(unknown="nearest")


def found(variable, rows, given_=()):
    columns = [
        encode(list(cells), name)
        for name, cells in zip(variable.columns, zip(*rows, strict=True), strict=True)
    ]
    nearest = NearestRows(variable, given_)
    return nearest.find(columns, np.arange(len(rows))).tolist()


def by_hand(symbols, row, given_):
    """The place of the first row with the fewest changed cells, of those with the given cells."""
    changed = [
        sum(a != b for a, b in zip(symbol, row, strict=True))
        if all(symbol[k] == row[k] for k in given_)
        else None
        for symbol in symbols
    ]
    present = [number for number in changed if number is not None]
    if not present or min(present) == len(row) - len(given_):
        return None
    return changed.index(min(present))


@settings(max_examples=scaled(80))
@given(
    st.lists(
        st.tuples(*[st.sampled_from("pqr")] * 3), min_size=1, max_size=9, unique=True
    ),
    st.tuples(*[st.sampled_from("pqrz")] * 3),
    st.sampled_from([(), (0,), (2,), (0, 1)]),
)
def test_the_nearest_row_has_the_fewest_changed_cells(symbols, row, given_):
    variable = Variable(("a", "b", "c"), tuple(symbols))
    names = tuple("abc"[k] for k in given_)
    expected = by_hand(symbols, row, given_)
    if expected is None:
        with pytest.raises(RecordFault, match=r"that of a row|no row of the channel"):
            found(variable, [row], names)
    else:
        assert found(variable, [row], names) == [expected]


ROWS = Variable(("job", "age"), (("clerk", "30"), ("nurse", "20"), ("nurse", "50")))


@pytest.mark.parametrize(
    ("row", "place"),
    [
        (("nurse", "27"), 1),
        (("nurse", "49"), 2),
        (("nurse", "99"), 2),
        (("clerk", "31"), 0),
        (("clerk", "20"), 1),
        (("pilot", "50"), 2),
        (("nurse", "many"), 1),
    ],
)
def test_of_equally_many_changed_cells_the_nearest_number_counts(row, place):
    assert found(ROWS, [row]) == [place]


def test_integers_that_came_as_floats_are_known_cells():
    variable = Variable(("job", "age"), (("clerk", "20"), ("nurse", "30")))
    columns = [encode(["pilot"], "job"), encode(np.array([30.0]), "age")]
    assert NearestRows(variable).find(columns, np.array([0])).tolist() == [1]


@pytest.mark.parametrize(
    ("row", "given_", "message"),
    [
        (("pilot", "31"), (), "none of its cells of 'job', 'age' is that of a row"),
        (
            ("clerk", "20"),
            ("job",),
            "none of its cells of 'age' is that of a row of the channel with the same given cells",
        ),
        (("pilot", "30"), ("job",), "no row of the channel has its cells of 'job'"),
    ],
)
def test_a_record_that_is_near_to_no_row_is_refused(row, given_, message):
    with pytest.raises(RecordFault, match=message) as error:
        found(ROWS, [("clerk", "30"), row], given_)
    assert error.value.position == 1
    assert "pilot" not in str(error.value)


PEOPLE = pd.DataFrame(
    [
        (s, job, age, region)
        for k, (s, job, age, region) in enumerate(
            product(["low", "high"], ["clerk", "nurse"], ["20", "40"], ["n", "s"])
        )
        for _ in range(5 + (7 * k) % 4)
        if (job, age, region) != ("nurse", "40", "s")
    ],
    columns=["income", "job", "age", "region"],
)
COLUMNS = ["job", "age", "region"]
"""Nobody is a nurse of 40 in s; the nearest rows are first a clerk there, then nurses elsewhere."""


@pytest.fixture(scope="module")
def channel():
    return md.design(
        PEOPLE, md.LIP(0.2), sensitive="income", release=COLUMNS, unknown="nearest"
    ).channel


UNSEEN = pd.DataFrame([("nurse", "40", "s"), ("clerk", "20", "n")], columns=COLUMNS)


def test_the_channel_records_the_rule_and_applies_it(channel, tmp_path):
    channel.save(tmp_path / "c.json")
    loaded = md.load(tmp_path / "c.json")
    assert loaded.record.rules.unknown == "nearest"
    known = UNSEEN.replace({"job": {"nurse": "clerk"}})
    for one in (channel, loaded, channel.public()):
        key = md.Key.insecure(3)
        released = one.apply(UNSEEN, key=key)
        # The draw of the nearest row at the same place under the same key.
        assert released.equals(one.apply(known, key=key))


def test_unknown_rows_are_counted_as_such(channel):
    release = Release(channel, md.Key.insecure(1), policy=NEAREST)
    cells = [encode(list(UNSEEN[name]), name) for name in COLUMNS]
    from mechdesign.release.draws import RowNumbers

    release.draw(cells, RowNumbers(0, 2))
    assert release.symbol_counts[0][-1] == 1
    assert release.symbol_counts[0].sum() == 2
    assert channel.useful.symbols[release.codes[0][0]] == ("clerk", "40", "s")


def test_counts_are_not_fixed_where_a_row_is_another_than_the_table_has(channel):
    """With the nearest row in its place the counts would be those of the table."""
    others = PEOPLE[COLUMNS].copy()
    first = others.index[
        (others["job"] == "clerk") & (others["age"] == "40") & (others["region"] == "s")
    ][0]
    assert len(channel.apply(PEOPLE[COLUMNS], draws="fixed")) == len(PEOPLE)
    others.loc[first, "job"] = "nurse"
    with pytest.raises(InputError, match="counts cannot be fixed"):
        channel.apply(others, draws="fixed")


def refusing(**options):
    settings = {"sensitive": "income", "release": COLUMNS, "unknown": "nearest"}
    return md.design(PEOPLE, md.LIP(0.5), **{**settings, **options})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"release": None, "useful": "job"},
            r"unknown nearest compares rows cell by cell, .* for one column \('job'\)",
        ),
        ({"release": ["job"]}, "unknown nearest compares rows cell by cell"),
        ({"unknown": "near"}, r"unknown \('near'\) must be refuse, marginal, nearest"),
        (
            {"unknown": "marginal", "release": ["job", "age"], "given": "region"},
            "unknown marginal: the channel releases 'region' as it is",
        ),
        ({"confidence": 0.9}, "unknown nearest is not built for boxes"),
    ],
)
def test_designs_that_have_no_nearest_row(options, message):
    with pytest.raises(InputError, match=message):
        refusing(**options)


def test_missing_cells_have_no_nearest_row():
    with pytest.raises(InputError, match=r"missing \('nearest'\) must be refuse, marg"):
        Policy(missing="nearest")


def test_a_promise_about_unseen_symbols_is_about_the_marginal():
    joint = md.Joint.from_table(PEOPLE, sensitive="income", useful=["job", "age"])
    made = md.design(joint, md.LIP(2.0), confidence=0.5, unseen=1)
    with pytest.raises(InputError, match="unknown nearest: the promise covers 1 symb"):
        Release(made.channel, md.Key.insecure(1), policy=NEAREST)
    with pytest.raises(InputError, match="unknown nearest: the promise covers 1 symb"):
        md.design(joint, md.LIP(2.0), confidence=0.5, unseen=1, unknown="nearest")


def test_given_cells_stay(channel):
    made = refusing(release=["job", "age"], given="region")
    released = made.channel.apply(UNSEEN[["region", "job", "age"]])
    assert released["region"].tolist() == ["s", "n"]


@pytest.fixture
def files(tmp_path, channel):
    channel.save(tmp_path / "c.json")
    rows = pd.concat([PEOPLE[COLUMNS]] + [UNSEEN] * 40)
    rows.to_csv(tmp_path / "in.csv", index=False)
    return tmp_path


def test_commands_say_what_it_means(files, capfd, monkeypatch):
    from mechdesign.cli import main

    monkeypatch.chdir(files)
    options = ["--insecure-seed", "5", "--keep-order", "--internal-manifest", "i.json"]
    assert main(["apply", "c.json", "in.csv", "out.csv", *options]) == 0
    noted = " ".join(capfd.readouterr().err.split())
    assert "40 records have rows that the table of the design does not have" in noted
    assert "the release tells no more than their nearest row" in noted
    column = json.loads((files / "i.json").read_text(encoding="utf-8"))["released"][0]
    assert column["counts"][0]["unknown_symbols"] == 40
    public = json.loads((files / "out.csv.manifest.json").read_text(encoding="utf-8"))
    assert not any("40 records" in note for note in public["notes"])
    assert "nearest row that it knows" in json.dumps(public)
    checked = ["check", "out.csv", "--channel", "c.json", "--original", "in.csv"]
    assert main(checked) == 0
    capfd.readouterr()
    assert main(["estimate", "out.csv", "--channel", "c.json"]) == 0
    text = " ".join(capfd.readouterr().out.split())
    assert "were released as draws of the nearest row that it has" in text
    assert main(["audit", "c.json"]) == 0
    capfd.readouterr()
    assert main([*checked, "--unknown", "refuse"]) == 2
    assert "does not know the symbol" in capfd.readouterr().err
    # A record that is near to no row is named by its line.
    with (files / "in.csv").open("a", encoding="utf-8") as file:
        file.write("pilot,60,w\n")
    assert main(["apply", "c.json", "in.csv", "out2.csv", *options[:3]]) == 2
    error = capfd.readouterr().err
    assert re.search(
        r"in.csv, line \d+: none of its cells of 'job', 'age', 'reg", error
    )


def test_check_finds_a_label_that_the_nearest_row_never_gets(files):
    from mechdesign.analysis.file_checking import check

    channel = md.load(files / "c.json")
    x = channel.useful.symbols.index(("clerk", "40", "s"))
    never = np.flatnonzero(np.array(channel.rows[x]) == 0)
    assert never.size
    released = channel.apply(pd.read_csv(files / "in.csv", dtype=str))
    for place, is_wrong in ((int(np.argmax(channel.rows[x])), False), (never[0], True)):
        # The last but one is a nurse of 40 in s.
        released.iloc[-2] = channel.output_cells[place]
        released.to_csv(files / "w.csv", index=False)
        result = check(
            channel, files / "w.csv", original=files / "in.csv", policy=NEAREST
        )
        kinds = [finding.kind for finding in result.findings]
        assert kinds == (["pair"] if is_wrong else [])
