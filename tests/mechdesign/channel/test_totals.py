"""Rows with sums of their own, given columns, and outputs that are written in columns."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

import mechdesign as md
from mechdesign.channel.channel import Channel
from mechdesign.channel.output_cells import OutputCells, own_rows
from mechdesign.channel.record import ChannelRecord, Objective
from mechdesign.core.errors import InputError
from mechdesign.notions import to_record
from mechdesign.release.drawing import channel_digest
from mechdesign.report.command_records import channel_record
from mechdesign.report.terminal import channel_text, matrix_csv
from mechdesign.tables.joint import Joint
from mechdesign.tables.variable import Variable
from tests.oracles import released_rows as oracle

SYMBOLS = (("F", "1", "x"), ("F", "2", "y"), ("M", "1", "y"), ("M", "2", "x"))
USEFUL = Variable(("sex", "n", "a"), SYMBOLS)
ROWS = ((5, 2, 0, 0), (1, 4, 0, 0), (0, 0, 3, 0), (0, 0, 8, 3))
TOTALS = (7, 5, 3, 11)
REJECTION = 1e-6


def joint_of(useful=USEFUL):
    counts = ((7, 2, 1, 5), (0, 3, 2, 6))
    return Joint(Variable(("s",), (("p",), ("q",))), useful, counts)


def made(**options) -> Channel:
    settings = {
        "useful": USEFUL,
        "outputs": USEFUL.names,
        "rows": ROWS,
        "totals": TOTALS,
        "given": ("sex",),
        "published": own_rows(USEFUL, range(4)),
        "joint": joint_of(),
        **options,
    }
    return Channel(**settings)


def test_a_law_is_each_row_over_its_own_total():
    channel = made()
    for symbol, row, total in zip(SYMBOLS, ROWS, TOTALS, strict=True):
        expected = {
            y: Fraction(w, total) for y, w in zip(SYMBOLS, row, strict=True) if w
        }
        assert channel.distribution(symbol) == expected
        columns = dict(zip(USEFUL.columns, symbol, strict=True))
        assert channel.distribution(columns) == expected
    assert channel.denominator == 7 * 5 * 3 * 11
    assert channel.row_totals == TOTALS
    assert channel.matrix == pytest.approx(
        np.array(ROWS) / np.array(TOTALS)[:, None], abs=0
    )


@given(
    st.lists(
        st.lists(st.integers(0, 2**40), min_size=3, max_size=3).filter(any),
        min_size=3,
        max_size=3,
    ).filter(lambda rows: all(map(any, zip(*rows, strict=True))))
)
def test_totals_are_the_same_channel_as_a_common_denominator(rows):
    """Everything that is computed of a channel, with its rows brought to one denominator."""
    useful = Variable(("x",), (("a",), ("b",), ("c",)))
    counts = ((3, 1, 2), (1, 4, 5))
    joint = Joint(Variable(("s",), (("p",), ("q",))), useful, counts)
    totals = tuple(map(sum, rows))
    own = Channel(useful, ("u", "v", "w"), rows, totals=totals, joint=joint)
    common = own.denominator
    for x, row in enumerate(rows):
        for y, value in enumerate(row):
            assert own.distribution([useful.names[x]]).get(
                (own.outputs[y],), 0
            ) == Fraction(value, totals[x])
    scaled = [
        [value * (common // total) for value in row]
        for row, total in zip(rows, totals, strict=True)
    ]
    assert own.columns == [
        (
            tuple(x for x in range(3) if scaled[x][y]),
            tuple(scaled[x][y] for x in range(3) if scaled[x][y]),
        )
        for y in range(3)
    ]


def test_equal_totals_are_one_denominator():
    """One form for one channel: the digest does not depend on how it was written."""
    rows = ((3, 1, 0, 0), (2, 2, 0, 0), (0, 0, 4, 0), (0, 0, 1, 3))
    totals = made(rows=rows, totals=(4,) * 4)
    denominator = made(rows=rows, totals=None, denominator=4)
    assert totals.totals is None
    assert totals.denominator == 4
    assert channel_digest(totals) == channel_digest(denominator)


def test_digests_know_totals_and_what_is_written():
    channel = made()
    other = made(
        rows=((5, 2, 0, 0), (1, 4, 0, 0), (0, 0, 6, 0), (0, 0, 8, 3)),
        totals=(7, 5, 6, 11),
    )
    labels = made(published=None, given=())
    renamed = made(
        published=OutputCells(
            USEFUL.columns, tuple((sex, n, "z") for sex, n, _ in SYMBOLS)
        ),
    )
    digests = {*map(channel_digest, (channel, other, labels, renamed))}
    assert len(digests) == 4
    assert channel_digest(channel.public()) == channel_digest(channel)


@pytest.mark.parametrize("public", [False, True])
def test_the_file_gives_the_channel_back(tmp_path, public):
    record = ChannelRecord(promise_kind="relative")
    channel = made(record=record)
    channel.save(tmp_path / "c.json", public=public)
    loaded = md.load(tmp_path / "c.json")
    assert loaded.totals == TOTALS
    assert loaded.given == ("sex",)
    assert loaded.published == channel.published
    assert loaded.record.promise_kind == "relative"
    assert loaded.joint == (None if public else channel.joint)
    assert channel_digest(loaded) == channel_digest(channel)
    loaded.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "c.json").read_bytes()
    document = json.loads((tmp_path / "c.json").read_text(encoding="utf-8"))
    assert document["version"] == 2
    assert document["published"] == "rows"
    assert "denominator" not in document


def test_free_outputs_beside_given_columns_have_cells_in_the_file(tmp_path):
    cells = (("F", "one"), ("F", "two"), ("M", "one"), ("M", "two"))
    channel = made(
        outputs=("F, one", "F, two", "M, one", "M, two"),
        published=OutputCells(("sex", "n,a"), cells),
    )
    channel.save(tmp_path / "c.json")
    loaded = md.load(tmp_path / "c.json")
    assert loaded.published.cells == cells
    assert not loaded.releases_symbols
    assert loaded.distribution(SYMBOLS[3]) == {
        ("M", "one"): Fraction(8, 11),
        ("M", "two"): Fraction(3, 11),
    }


def rewritten(path, change):
    """The file with a change, and the hash that belongs to it."""
    document = json.loads(path.read_text(encoding="utf-8"))
    change(document)
    del document["sha256"]
    text = json.dumps(
        document, sort_keys=True, separators=(",", ":"), ensure_ascii=False
    )
    document["sha256"] = hashlib.sha256(text.encode()).hexdigest()
    path.write_text(json.dumps(document), encoding="utf-8")


EDITS = {
    "another total": (lambda d: d["totals"].__setitem__(0, 8), "sums to 7, not to its"),
    "no total": (lambda d: d.pop("totals"), "either a denominator or the totals"),
    "both": (lambda d: d.__setitem__("denominator", 7), "either a denominator or the"),
    "too few": (lambda d: d["totals"].pop(), "3 totals for 4 rows"),
    "a total of 0": (lambda d: d["totals"].__setitem__(0, 0), "totals"),
    "text": (lambda d: d["totals"].__setitem__(0, "7"), "totals"),
    "a given column that changes": (
        lambda d: d.__setitem__("rows", [[5, 0, 2, 0], *d["rows"][1:]]),
        "changes a given column",
    ),
    "an unknown given column": (lambda d: d["given"].append("zip"), "no column 'zip'"),
    "given but not written": (
        lambda d: d.__setitem__(
            "published", {"columns": ["n"], "cells": [[str(k)] for k in range(4)]}
        ),
        "'sex' is not among the published columns",
    ),
    "labels": (lambda d: d.pop("published"), "must say what is published"),
    "an output that is no symbol": (
        lambda d: d["outputs"].__setitem__(0, "z"),
        "'z' is no symbol of the useful columns",
    ),
    "short cells": (
        lambda d: d.__setitem__(
            "published", {"columns": ["sex", "n"], "cells": [["F"]] * 4}
        ),
        "published as 1 texts for 2 columns",
    ),
    "equal cells": (
        lambda d: d.__setitem__(
            "published", {"columns": ["sex"], "cells": [["F"], ["F"], ["M"], ["M"]]}
        ),
        "two outputs are published as the same row",
    ),
    "too few cells": (
        lambda d: d.__setitem__(
            "published", {"columns": ["sex"], "cells": [["F"], ["M"]]}
        ),
        "there are 4 outputs, and published rows for 2",
    ),
    "a promise": (lambda d: d.__setitem__("promise", "some"), "promise"),
    "an old version": (lambda d: d.__setitem__("version", 1), "belongs to version 2"),
}


@pytest.mark.parametrize("edit", EDITS)
def test_edited_files_are_refused(tmp_path, edit):
    change, message = EDITS[edit]
    made().save(tmp_path / "c.json")
    rewritten(tmp_path / "c.json", change)
    with pytest.raises(InputError, match=message):
        md.load(tmp_path / "c.json")


def test_a_file_whose_hash_does_not_fit_is_refused(tmp_path):
    made().save(tmp_path / "c.json")
    text = (tmp_path / "c.json").read_text(encoding="utf-8")
    changed = text.replace("[5,2,0,0]", "[4,3,0,0]")
    assert changed != text
    (tmp_path / "c.json").write_text(changed, encoding="utf-8")
    with pytest.raises(InputError, match=r"sha256|hash"):
        md.load(tmp_path / "c.json")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"totals": (7, 5, 3)}, "3 totals for 4 rows"),
        ({"totals": (7, 5, 3, 0)}, r"must be an integer in \[1, 2\^62\]"),
        ({"totals": (7, 5, 3, True)}, r"must be an integer in \[1, 2\^62\]"),
        ({"totals": (7, 5, 3, 2**62 + 1)}, r"must be an integer in \[1, 2\^62\]"),
        ({"totals": (7, 5, 3, 12)}, "sums to 11, not to its total 12"),
        ({"totals": (4, 5, 3, 11)}, "entry 5 is larger than its total 4"),
        ({"given": ("zip",)}, "given: the channel has no column 'zip'"),
        ({"published": None}, "must say what is published for each output"),
        (
            {"published": OutputCells(("n",), tuple((c,) for c in "1234"))},
            "'sex' is not among the published columns",
        ),
        (
            {"published": OutputCells(("sex", "s"), tuple(("F", c) for c in "1234"))},
            "the published columns 'sex', 's' must be the useful ones, or the given",
        ),
        (
            {"published": OutputCells(("sex", "n", "b"), SYMBOLS), "given": ()},
            "the published columns 'sex', 'n', 'b' must be the useful ones",
        ),
        (
            {"rows": ((5, 1, 1, 0), *ROWS[1:])},
            "row 'F, 1, x': the output 'M, 1, y' changes a given column",
        ),
        (
            {"published": own_rows(USEFUL, range(3))},
            "4 outputs, and published rows for",
        ),
    ],
)
def test_what_does_not_fit_is_refused(options, message):
    with pytest.raises(InputError, match=message):
        made(**options)


@pytest.mark.parametrize(
    ("columns", "cells", "message"),
    [
        ((), (), "must be published in some column"),
        (("a", "a"), (("x", "y"),), "the published column 'a' occurs twice"),
        (("a",), (("x", "y"),), "published as 2 texts for 1 columns"),
        (("a",), (("x",), ("x",)), "two outputs are published as the same row"),
    ],
)
def test_output_cells_are_checked(columns, cells, message):
    with pytest.raises(InputError, match=message):
        OutputCells(columns, cells)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"sex": "F", "n": "1"}, "the row has no column 'a'"),
        (["F", "1"], "2 texts for the 3 columns"),
        ("F", "1 texts for the 3 columns"),
        (["F", "1", "y"], "the channel does not know this row"),
    ],
)
def test_rows_that_have_no_law(row, message):
    with pytest.raises(InputError, match=message) as caught:
        made().distribution(row)
    assert "'y'" not in str(caught.value)


RECORDS = [("F", "1", "x")] * 3 + [("M", "2", "x"), ("M", "1", "y"), ("F", "2", "y")]


def test_a_list_of_tuples_is_one_again():
    released = made().apply(RECORDS, insecure_seed=1)
    assert isinstance(released, list)
    assert all(type(row) is tuple for row in released)
    assert [row[0] for row in released] == [row[0] for row in RECORDS]
    assert {*released} <= {*SYMBOLS}


def frames():
    frame = pd.DataFrame(RECORDS, columns=["sex", "n", "a"])
    frame["n"] = frame["n"].astype("int64")
    frame["a"] = frame["a"].astype("category")
    frame.insert(0, "other", range(len(frame)))
    return {
        "pandas": frame,
        "polars": pl.from_pandas(frame),
        "pyarrow": pa.Table.from_pandas(frame, preserve_index=False),
    }


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_frames_keep_their_kind_and_types_and_lose_other_columns(kind):
    frame = frames()[kind]
    released = made().apply(frame, insecure_seed=1)
    assert type(released) is type(frame)
    table = released.to_pandas() if kind != "pandas" else released
    assert list(table.columns) == ["sex", "n", "a"]
    assert table["n"].dtype == np.int64
    if kind == "pandas":
        assert released["a"].dtype.name == "category"
    if kind == "polars":
        assert released["n"].dtype == pl.Int64
        assert released["a"].dtype == frame["a"].dtype
    if kind == "pyarrow":
        assert released.schema.field("n").type == pa.int64()
    texts = [tuple(map(str, row)) for row in table.itertuples(index=False)]
    assert texts == made().apply(RECORDS, insecure_seed=1)


def test_an_index_is_not_released():
    frame = frames()["pandas"].set_index("other")
    released = made().apply(frame, insecure_seed=1)
    assert list(released.columns) == ["sex", "n", "a"]
    assert list(released.index) == list(range(len(frame)))


def test_draws_follow_the_exact_law_of_rows_with_totals():
    channel = made()
    count = 20_000
    for symbol in SYMBOLS:
        law = channel.distribution(symbol)
        drawn = Counter(channel.apply([symbol] * count, insecure_seed=7))
        assert {*drawn} <= {*law}
        if len(law) == 1:
            continue
        expected = np.array([float(share) * count for share in law.values()])
        seen = np.array([drawn[row] for row in law])
        statistic = float(((seen - expected) ** 2 / expected).sum())
        assert chi2.sf(statistic, len(law) - 1) > REJECTION


def test_records_keep_their_draws_in_any_company():
    channel = made()
    identity = [f"p{k}" for k in range(len(RECORDS))]
    whole = channel.apply(RECORDS, identity=identity, insecure_seed=2)
    back = channel.apply(RECORDS[::-1], identity=identity[::-1], insecure_seed=2)
    assert back[::-1] == whole
    numbered = channel.apply(RECORDS, insecure_seed=2)
    rest = channel.apply(RECORDS[2:], first_row=2, insecure_seed=2)
    assert rest == numbered[2:]


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ([("F", "1", "y")], "F, 1, y|symbol"),
        ([("F", "1", None)], "row 1|missing|empty"),
    ],
)
def test_unknown_rows_are_refused(records, message):
    with pytest.raises(InputError, match=message):
        made().apply(records, insecure_seed=1)


@pytest.mark.parametrize(
    "policy",
    [
        md.Policy(unknown="marginal"),
        md.Policy(unknown="output:F, 1, x"),
        md.Policy(missing="marginal"),
    ],
)
def test_unknown_rows_get_an_output_only_where_nothing_is_given(policy):
    """A row of another stratum would change the given column of the record."""
    record = ("F", "1", "y") if policy.missing == "refuse" else ("F", "1", None)
    free = made(given=())
    drawn = Counter(free.apply([record] * 5000, insecure_seed=1, policy=policy))
    assert {*drawn} == ({*SYMBOLS} if "output" not in policy.unknown else {SYMBOLS[0]})
    with pytest.raises(InputError, match="releases 'sex' as it is, and an output for"):
        made().apply([record], insecure_seed=1, policy=policy)


@pytest.mark.parametrize(
    ("record", "publish", "without_given"),
    [
        (
            ("F", "1", None),
            "(missing='symbol'), or leave the record out of the file",
            "or say what to publish (policy=Policy(missing='marginal'))",
        ),
        (
            ("F", "1", "z"),
            "correct it, or leave the record out of the file, or release it as the nearest row",
            "correct it, or say what to publish for it",
        ),
    ],
)
def test_no_remedy_is_named_that_given_columns_forbid(record, publish, without_given):
    with pytest.raises(InputError, match=re.escape(publish)) as caught:
        made().apply([record], insecure_seed=1)
    assert "say what to publish" not in str(caught.value)
    with pytest.raises(InputError, match=re.escape(without_given)):
        made(given=()).apply([record], insecure_seed=1)


def test_public_channels_release_as_well():
    channel = made()
    public = channel.public()
    assert public.joint is None
    assert public.apply(RECORDS, insecure_seed=3) == channel.apply(
        RECORDS, insecure_seed=3
    )
    with pytest.raises(InputError, match="carries no joint table"):
        _ = public.output_masses


def test_masses_and_posteriors_are_those_of_the_exact_law():
    channel = made()
    joint = channel.joint
    for y, symbol in enumerate(SYMBOLS):
        masses = [
            Fraction(n, joint.total) * channel.distribution(x).get(symbol, 0)
            for x, n in zip(SYMBOLS, joint.useful_counts, strict=True)
        ]
        assert channel.output_masses[y] == pytest.approx(float(sum(masses)), rel=1e-15)
        expected = [float(mass / sum(masses)) for mass in masses]
        assert channel.posteriors[y] == pytest.approx(expected, rel=1e-15)
    own = [channel.distribution(x).get(x, 0) for x in SYMBOLS]
    entries = [Fraction(entry, channel.denominator) for entry in channel.own_entries]
    assert entries == own


def test_bins_are_found_for_the_texts_of_a_row():
    frame = pd.DataFrame({"s": list("pqpq") * 10, "n": list(range(8)) * 5})
    joint = md.Joint.from_table(frame, sensitive="s", useful="n", bins={"n": "0,4,inf"})
    channel = md.design(joint, md.LIP(0.5), release="n").channel
    assert channel.distribution("3") == channel.distribution(["3"])
    assert channel.distribution("3") == channel.distribution(channel.useful.symbols[0])


def test_a_changed_record_is_another_channel_and_the_same_draws():
    channel = made()
    noted = channel.with_record(replace(channel.record, promise_kind="relative"))
    assert channel_digest(noted) == channel_digest(channel)
    with pytest.raises(
        InputError, match=r"promise \('odd'\) must be total or relative"
    ):
        ChannelRecord(promise_kind="odd")


def test_text_csv_and_reports_have_shares_of_each_total(tmp_path):
    """`show` and the reports, which once divided by the common denominator."""
    channel = made()
    text = channel_text(channel)
    assert "rows with sums of their own" in text
    lines = list(csv.reader(io.StringIO(matrix_csv(channel))))
    for row, integers, total in zip(lines[1:], ROWS, TOTALS, strict=True):
        shares = [float(cell) for cell in row[1:]]
        assert shares == pytest.approx([w / total for w in integers], abs=1e-15)
    shown = channel_record(channel)
    assert shown["denominator"] is None
    assert shown["totals"] == TOTALS
    md.report(channel.with_record(noted()), tmp_path / "r.json")
    record = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
    table = record["channel"]
    assert table["totals"] == list(TOTALS)
    for entries, total in zip(table["rows"], TOTALS, strict=True):
        assert sum(entry["weight"] for entry in entries) == total
        for entry in entries:
            assert entry["share"] == entry["weight"] / total


def noted():
    return ChannelRecord(notion=to_record(md.LIP(5.0)), promise_kind="relative")


def test_the_law_is_kept_where_totals_are_those_of_the_records():
    """Row sums c_x and column sums c_x: here the plan exchanges one record of each stratum."""
    counts = joint_of().useful_counts
    assert counts == (7, 5, 3, 11)
    rows = ((5, 2, 0, 0), (2, 3, 0, 0), (0, 0, 2, 1), (0, 0, 1, 10))
    kept = made(rows=rows, totals=counts)
    assert kept.keeps_law
    # A public channel has no counts, so these sums keep the law only if the design was asked to.
    assert not kept.public().keeps_law
    for asked in (True, False):
        objective = Objective(name="truth", keep_frequencies=asked)
        public = made(
            rows=rows, totals=counts, record=ChannelRecord(objective=objective)
        ).public()
        assert public.keeps_law is asked
    law = oracle.summed(oracle.joint_law(kept), lambda entry: entry[2])
    assert law == {
        x: Fraction(n, sum(counts)) for x, n in zip(SYMBOLS, counts, strict=True)
    }
    # Other totals, other sums, labels, and a table with other counts.
    assert not made().keeps_law
    moved = ((5, 2, 0, 0), (1, 4, 0, 0), (0, 0, 2, 1), (0, 0, 1, 10))
    assert not made(rows=moved, totals=counts).keeps_law
    assert not made(rows=rows, totals=counts, published=None, given=()).keeps_law
    other = Joint(joint_of().sensitive, USEFUL, ((7, 2, 1, 5), (0, 3, 2, 7)))
    assert not made(rows=rows, totals=counts, joint=other).keeps_law
