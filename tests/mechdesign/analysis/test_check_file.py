"""Released files against their channel and their original: what is impossible is found, where it
is.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mechdesign as md
from mechdesign.analysis.released_table import Released, common_columns, slices
from mechdesign.core.documents import hashed_text
from mechdesign.core.errors import InputError
from mechdesign.jobs.release_file import sanitise_file
from mechdesign.release.samplers import Policy
from tests.cases import released_records as records
from tests.cases.check_files import HEADER, RECORDS, kinds, read_csv, write_csv
from tests.cases.growth import assert_linear
from tests.cases.releases import channel_of


def test_a_faithful_release_is_plausible(files, channel):
    original, released = files
    check = md.check(channel, released, original=original)
    assert check.plausible
    assert check.findings == ()
    assert check.records == check.frequencies.records == RECORDS
    assert check.frequencies.against == "originals"
    alone = md.check(channel, released)
    assert alone.plausible
    assert alone.frequencies.against == "table"
    assert alone.also is not None
    assert alone.also.against == "any data"


def test_a_faithful_parquet_release_is_plausible(parquet, channel):
    original, released = parquet
    check = md.check(channel, released, original=original)
    assert check.findings == ()
    assert check.plausible
    assert md.check(channel, released).plausible


def test_batches_of_different_sizes_are_matched(parquet, channel, tmp_path):
    original, released = parquet
    pq.write_table(
        pq.read_table(released), tmp_path / "again.parquet", row_group_size=77
    )
    assert md.check(channel, tmp_path / "again.parquet", original=original).plausible


def test_the_counts_are_those_of_a_plain_count(files, channel):
    from mechdesign.analysis.counting import count_pairs, count_release
    from mechdesign.analysis.released_table import Released
    from mechdesign.tables.variable import Variable

    original, released = files
    labels = Variable(("x",), tuple((label,) for label in channel.outputs))
    possible = np.vstack([channel.matrix > 0, np.zeros((2, 3), dtype=bool)])
    seen = []
    file = Released(path=released, labels=labels, useful=("x",), advance=seen.append)
    counted = count_pairs(file, original, channel.useful, possible)
    expected = np.zeros((5, 3), dtype=int)
    for old, new in zip(read_csv(original), read_csv(released), strict=True):
        expected["abc".index(old[1]), channel.outputs.index(new[1])] += 1
    np.testing.assert_array_equal(counted.counts, expected)
    assert sum(seen) == RECORDS
    np.testing.assert_array_equal(count_release(file).counts, [expected.sum(axis=0)])


def test_an_unsanitised_column_is_found(files, channel):
    original, _ = files
    check = md.check(channel, original, original=original)
    assert not check.plausible
    assert kinds(check) == ["label"]
    assert (
        check.findings[0].text
        == f"{original}, line 2: the value is nothing that the channel can give; it is a symbol of "
        "the column itself, which was released with --as posterior-draw, or not at all"
    )
    assert check.findings[0].records == RECORDS
    assert not md.check(channel, original).plausible


def test_labels_in_another_spelling_are_told_apart_from_others(
    files, channel, tmp_path
):
    original, released = files

    def edit(rows):
        rows[7][1] = rows[7][1].upper() + " "

    wrong = changed(released, tmp_path / "wrong.csv", edit)
    finding = md.check(channel, wrong, original=original).findings[0].text
    assert "; one of them differs in nothing but blanks, leading zeros" in finding


def changed(path, target, edit):
    rows = read_csv(path)
    edit(rows)
    return write_csv(target, rows)


def test_an_impossible_pair_is_named(files, channel, tmp_path):
    original, released = files
    at = next(
        i for i, row in enumerate(read_csv(original)) if row[1] == "c" and i > 100
    )

    def edit(rows):
        rows[at][1] = "y0"

    wrong = changed(released, tmp_path / "wrong.csv", edit)
    check = md.check(channel, wrong, original=original)
    assert kinds(check) == ["pair"]
    assert (
        check.findings[0].text
        == f"{wrong}, line {at + 2}: the channel never gives 'y0' for 'c'"
    )
    assert not check.plausible
    assert md.check(channel, wrong).plausible  # nobody can see it without the original


def test_another_label_is_named_and_the_others_are_tested(files, channel, tmp_path):
    original, released = files

    def edit(rows):
        rows[7][1], rows[9][1] = "zz", ""

    wrong = changed(released, tmp_path / "wrong.csv", edit)
    check = md.check(channel, wrong, original=original)
    assert kinds(check) == ["label"]
    assert "line 9: the value is nothing" in check.findings[0].text
    assert check.findings[0].records == 2
    assert check.frequencies.records == RECORDS - 2
    write_csv(tmp_path / "empty.csv", [["1", "", "2", "3"]])
    assert (
        "an empty cell, as no channel gives"
        in md.check(channel, tmp_path / "empty.csv").findings[0].text
    )


class Name(str):
    """A column's name that counts how often it is compared with another one."""

    compared = 0
    __hash__ = str.__hash__

    def __eq__(self, other):
        Name.compared += 1
        return str.__eq__(self, other)


def test_columns_are_found_without_a_search_through_all_of_them():
    counts = []
    for columns in (200, 400, 800):
        header = [f"c{j}" for j in range(columns)]
        # Each file has texts of its own, as two files that are read have them.
        before, after = (
            SimpleNamespace(
                header=tuple(Name(name) for name in header),
                name="t.csv",
                schema=pa.schema([(name, pa.int64()) for name in header]),
                batches=lambda **options: iter(()),
            )
            for _ in range(2)
        )
        file = Released(path="t.csv", labels=SimpleNamespace(columns=()), useful=())
        Name.compared = 0
        common, findings = common_columns(before, after, file)
        assert common == header
        assert findings == []
        assert [*slices(after, before.header)] == []
        counts.append(Name.compared)
    assert_linear(counts)


def test_lost_and_doubled_rows_are_found(files, channel, tmp_path):
    original, released = files
    for edit, count in (
        (lambda rows: rows.pop(1500), 2999),
        (lambda rows: rows.insert(0, rows[0]), 3001),
    ):
        wrong = changed(released, tmp_path / "wrong.csv", edit)
        check = md.check(channel, wrong, original=original)
        assert kinds(check)[0] == "rows"
        assert f"has {count:,} records and the original 3,000" in check.findings[0].text
        assert "cells" in kinds(check)  # the identifiers no longer match
        assert any("not tested" in notice for notice in check.notices)
        assert not check.plausible


def test_a_single_record_is_counted_in_the_singular(files, channel, tmp_path):
    original, released = files
    rest = slice(1, None)
    single = changed(
        released, tmp_path / "single.csv", lambda rows: rows.__delitem__(rest)
    )
    check = md.check(channel, single, original=original)
    assert "has 1 record and the original 3,000" in check.findings[0].text
    assert repr(check) == "ReleaseCheck(NOT PLAUSIBLE, 1 record, 1 finding)"


def test_rows_in_another_order_are_found(files, channel, tmp_path):
    original, released = files
    wrong = changed(released, tmp_path / "wrong.csv", lambda rows: rows.reverse())
    check = md.check(channel, wrong, original=original)
    assert "cells" in kinds(check)
    text = next(f.text for f in check.findings if f.kind == "cells")
    assert text.startswith(
        f"{wrong}, line 2: the column 'id' holds '2999', but the original '0'"
    )


def test_a_changed_cell_is_named(files, channel, tmp_path):
    original, released = files

    def edit(rows):
        rows[20][2] = "9"
        rows[30][3] = "other"

    check = md.check(
        channel, changed(released, tmp_path / "wrong.csv", edit), original=original
    )
    assert kinds(check) == ["cells"]
    assert (
        "line 22: the column 'zip' holds '9', but the original '06'"
        in check.findings[0].text
    )
    ignored = md.check(
        channel, tmp_path / "wrong.csv", original=original, ignored=["zip", "note"]
    )
    assert ignored.plausible


def test_a_changed_value_type_or_null_of_parquet_is_found(parquet, channel, tmp_path):
    original, released = parquet
    table = pq.read_table(released)
    scores = table["score"].to_pylist()
    scores[2500] = 4.0
    wrong = table.set_column(3, "score", pa.array(scores))
    pq.write_table(wrong, tmp_path / "wrong.parquet")
    check = md.check(channel, tmp_path / "wrong.parquet", original=original)
    assert "row 2501: the column 'score' holds '4.0'" in check.findings[0].text
    scores[2500] = table["score"].to_pylist()[2500]
    scores[7] = 1.0  # was null
    pq.write_table(
        table.set_column(3, "score", pa.array(scores)), tmp_path / "wrong.parquet"
    )
    check = md.check(channel, tmp_path / "wrong.parquet", original=original)
    assert (
        "row 8: the column 'score' holds '1.0', but the original 'None'"
        in check.findings[0].text
    )
    parts = table["parts"].to_pylist()
    parts[3] = [3]
    pq.write_table(
        table.set_column(4, "parts", pa.array(parts)), tmp_path / "wrong.parquet"
    )
    check = md.check(channel, tmp_path / "wrong.parquet", original=original)
    assert "row 4: the column 'parts'" in check.findings[0].text
    retyped = table.set_column(0, "id", table["id"].cast(pa.int64()))
    pq.write_table(retyped, tmp_path / "wrong.parquet")
    check = md.check(channel, tmp_path / "wrong.parquet", original=original)
    assert kinds(check) == ["columns"]
    assert (
        "the column 'id' has the type int64, but int32 in the original"
        in check.findings[0].text
    )


def test_columns_that_were_not_kept_are_no_finding(files, channel, tmp_path):
    original, _ = files
    sanitise_file(channel, original, tmp_path / "closed.csv", insecure_seed=1)
    assert {len(row) for row in read_csv(tmp_path / "closed.csv")} == {1}
    check = md.check(channel, tmp_path / "closed.csv", original=original)
    assert check.plausible


def test_columns_that_come_or_move_are_found(files, channel, tmp_path):
    original, released = files
    rows = read_csv(released)
    for header, keep, match in (
        (
            ["id", "x", "zip", "note", "more"],
            [0, 1, 2, 3, 0],
            "the column 'more' is not in the original",
        ),
        (["zip", "x", "id", "note"], [2, 1, 0, 3], "the columns are in another order"),
    ):
        wrong = write_csv(
            tmp_path / "wrong.csv", [[row[i] for i in keep] for row in rows], header
        )
        check = md.check(channel, wrong, original=original)
        assert kinds(check) == ["columns"]
        assert match in check.findings[0].text
        assert not check.plausible


def test_sensitive_and_correlated_columns_must_be_gone(files, channel, tmp_path):
    _, released = files
    rows = [[*row, "s0"] for row in read_csv(released)]
    wrong = write_csv(tmp_path / "wrong.csv", rows, [*HEADER, "s"])
    check = md.check(channel, wrong)
    assert [f.text for f in check.findings] == [
        f"{wrong}: the sensitive column 's' is in the released file"
    ]
    assert md.check(channel, wrong, keep_sensitive=True).plausible
    renamed = write_csv(tmp_path / "renamed.csv", rows, [*HEADER, "secret"])
    assert md.check(channel, renamed).plausible
    assert not md.check(channel, renamed, columns={"s": "secret"}).plausible
    alike = md.check(channel, write_csv(tmp_path / "alike.csv", rows, [*HEADER, "S "]))
    assert (
        "the column 'S ', which looks like the sensitive column 's', is in the rel"
        in alike.findings[0].text
    )
    assert not md.check(channel, released, correlated=["zip"]).plausible


def test_the_useful_column_itself_must_be_gone(files, channel, tmp_path):
    original, _ = files
    sanitise_file(
        channel, original, tmp_path / "added.csv", insecure_seed=1, into=[["y"]]
    )
    check = md.check(
        channel, tmp_path / "added.csv", original=original, released_columns=["y"]
    )
    assert [f.text.partition(": ")[2] for f in check.findings] == [
        "the useful column 'x' is in the released file"
    ]
    allowed = md.check(
        channel,
        tmp_path / "added.csv",
        original=original,
        released_columns=["y"],
        ignored=["x"],
    )
    assert allowed.plausible


WRONG_ROWS = {
    "labels swapped": ((0, 2, 8), (1, 7, 2), (7, 3, 0)),
    "another channel": ((6, 4, 0), (2, 7, 1), (0, 3, 7)),
    "no randomness": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
}


@pytest.mark.parametrize("name", WRONG_ROWS)
def test_releases_of_other_channels_are_implausible(files, channel, tmp_path, name):
    original, _ = files
    other = channel_of(WRONG_ROWS[name], [[30, 20, 10], [10, 20, 30]])
    sanitise_file(other, original, tmp_path / "other.csv", insecure_seed=3)
    check = md.check(channel, tmp_path / "other.csv", original=original)
    assert not check.plausible
    assert not check.frequencies.plausible


def test_releases_by_the_sampler_itself_fail_no_more_often_than_the_level(
    channel, records
):
    """Real draws, 300 times: rejections within four standard deviations of the level, and most
    labels vary.
    """
    from mechdesign.analysis.checking import check_pairs

    symbols = [row[1] for row in records[:400]]
    xs = np.array(["abc".index(symbol) for symbol in symbols])
    runs = 300
    level = 0.05
    failed = 0
    first = set()
    for seed in range(runs):
        labels = channel.apply(symbols, insecure_seed=seed)
        ys = np.array([channel.outputs.index(label) for label in labels])
        counts = np.bincount(xs * 3 + ys, minlength=9).reshape(3, 3)
        failed += not check_pairs("abc", channel.matrix, counts, level).plausible
        first.add(tuple(labels[:20]))
    assert failed / runs <= level + 4 * np.sqrt(level * (1 - level) / runs)
    assert len(first) > runs - 10


def test_data_of_another_origin_are_allowed_when_asked_for(tmp_path, channel):
    rows = [[str(i), "a" if i % 10 else "c", "", ""] for i in range(RECORDS)]
    original = write_csv(tmp_path / "in.csv", rows)
    sanitise_file(
        channel, original, tmp_path / "out.csv", insecure_seed=2, keep_order=True
    )
    assert md.check(channel, tmp_path / "out.csv", original=original).plausible
    strict = md.check(channel, tmp_path / "out.csv")
    assert not strict.plausible
    assert any("another origin" in notice for notice in strict.notices)
    loose = md.check(channel, tmp_path / "out.csv", any_data=True)
    assert loose.plausible
    assert loose.frequencies.against == "any data"


def test_a_public_channel_is_checked_as_far_as_it_goes(files, channel):
    original, released = files
    public = dataclasses.replace(channel, joint=None, sensitive=None)
    check = md.check(public, released, original=original)
    assert check.plausible
    assert any(
        "does not say which columns are sensitive" in notice for notice in check.notices
    )
    alone = md.check(public, released)
    assert alone.plausible
    assert alone.frequencies.against == "any data"
    assert any("carries no table" in notice for notice in alone.notices)
    with pytest.raises(
        InputError,
        match="posterior-draw needs the table that the channel was designed for",
    ):
        md.check(public, released, form="posterior-draw")
    with pytest.raises(
        InputError,
        match="unknown marginal needs the table that the channel was designed for",
    ):
        md.check(public, released, policy=Policy(unknown="marginal"))


def test_a_shuffled_release_is_not_held_against_the_order_of_its_original(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    channel = records.mixing_channel()
    frame = records.people(400)
    frame.to_csv("in.csv", index=False)
    how = {"insecure_seed": 1, "manifest": "out.csv.manifest.json"}
    sanitise_file(channel, "in.csv", "out.csv", shuffle=True, **how)
    found = md.check(channel, "out.csv", original="in.csv")
    assert found.plausible
    assert [
        text
        for text in found.notices
        if "in random order: it is checked without the original" in text
    ]
    released = Path(
        "out.csv"
    ).read_text()  # another file, of which the manifest says nothing
    Path("out.csv").write_text(released + released.splitlines()[-1] + "\n")
    changed = md.check(channel, "out.csv", original="in.csv")
    assert not changed.plausible
    other = (
        "the manifest beside it (FILE.manifest.json) is of another file, or this one"
    )
    assert any(text.startswith(other) for text in changed.notices)
    assert not any(text.startswith(other) for text in found.notices)
    # Cut in the middle, it says nothing of its own file, either.
    Path("out.csv").write_text(released)
    whole = Path("out.csv.manifest.json").read_text()
    Path("out.csv.manifest.json").write_text(whole[:400])
    cut = md.check(channel, "out.csv")
    unread = "the manifest beside it is not used: "
    assert any(text.startswith(unread) for text in cut.notices)


@pytest.mark.parametrize(
    ("edit", "is_hashed", "told"),
    [
        ("nothing", True, None),
        ("promise", False, "the sha256 does not match the content"),
        ("promise", True, "states another promise than the channel has"),
        ("channel", True, "has no release through this channel"),
    ],
)
def test_what_a_manifest_states_is_compared_with_the_channel(
    tmp_path, monkeypatch, edit, is_hashed, told
):
    monkeypatch.chdir(tmp_path)
    channel = records.mixing_channel()
    records.people(400).to_csv("in.csv", index=False)
    beside = Path("out.csv.manifest.json")
    sanitise_file(channel, "in.csv", "out.csv", insecure_seed=1, manifest=str(beside))
    content = json.loads(beside.read_text())
    claimed = content.pop("sha256")
    release = content["released"][0]
    if edit == "promise":
        release["notion"] = {"name": "ldp", "epsilon": 1e-3}
    if edit == "channel":
        release["channel"] = "0" * 64
    kind, version = content.pop("format"), content.pop("version")
    text = hashed_text(kind, version, content)
    if not is_hashed:
        content = json.loads(text) | {"sha256": claimed}
        text = json.dumps(content)
    beside.write_text(text)
    found = md.check(channel, "out.csv", original="in.csv")
    is_false = edit == "promise" and is_hashed
    assert found.plausible is not is_false
    said = (*found.notices, *[finding.text for finding in found.findings])
    about = [text for text in said if "the manifest beside it" in text]
    if told is None:
        assert about == []
    else:
        assert len(about) == 1
        assert told in about[0]


@pytest.mark.parametrize("shuffle", [True, False])
def test_without_a_manifest_the_order_may_be_random(tmp_path, monkeypatch, shuffle):
    monkeypatch.chdir(tmp_path)
    channel = records.mixing_channel()
    records.people(400).to_csv("in.csv", index=False)
    sanitise_file(channel, "in.csv", "out.csv", shuffle=shuffle, insecure_seed=1)
    found = md.check(channel, "out.csv", original="in.csv")
    assert found.plausible is not shuffle
    told = [text for text in found.notices if "is checked without --original" in text]
    assert bool(told) is shuffle


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"objective": "information"},
        {"keep_frequencies": False},
        {"given": ["k"], "promise": "relative"},
    ],
)
def test_filled_boxes_are_checked_against_their_table_or_within_boxes(
    options, tmp_path
):
    rng = np.random.default_rng(3)
    secret = rng.choice(["p", "q"], 2000)
    skill = np.clip(rng.normal(3 + (secret == "p"), 1.5).round(), 0, 7).astype(int)
    table = pd.DataFrame(
        {
            "s": secret,
            "a": skill,
            "b": rng.integers(0, 5, 2000),
            "k": rng.choice(["u", "v"], 2000),
        }
    )
    made = md.design(
        table,
        md.LIP(0.7),
        sensitive="s",
        release=["a", "b"],
        confidence=0.9,
        fill=True,
        cells=6,
        slice_seed=1,
        time_limit=5.0,
        **options,
    )
    path = tmp_path / "released.csv"
    md.sanitise(table, made.channel, insecure_seed=1).to_csv(path, index=False)
    check = md.check(made.channel, path)
    assert check.plausible
    assert check.frequencies.against == "table"
    assert check.also is not None
    assert check.also.against == "any data"
    # The boxes of other data come more or less often; what fills them does not.
    others = table[table.a < 3]
    md.sanitise(others, made.channel, insecure_seed=2).to_csv(path, index=False)
    assert not md.check(made.channel, path).plausible
    assert md.check(made.channel, path, any_data=True).plausible


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_frames_are_checked_like_files(library):
    channel = records.mixing_channel()
    original = records.people(400)
    column = channel.useful.columns[0]
    released = original.assign(
        **{column: channel.apply(original[column], insecure_seed=1)}
    )

    def native(frame):
        if library == "pandas":
            return frame
        table = pa.Table.from_pandas(frame, preserve_index=False)
        return table if library == "pyarrow" else pl.from_arrow(table)

    found = md.check(channel, native(released), original=native(original))
    assert found.plausible
    assert found.records == 400
    released.loc[3, column] = "nothing"
    found = md.check(channel, native(released), original=native(original))
    assert [f.text for f in found.findings if f.text.startswith("released, row 4: ")]
    with pytest.raises(InputError, match=f"^released: there is no column '{column}'"):
        md.check(channel, native(released.drop(columns=column)))
    with pytest.raises(InputError, match="original must be the path of a CSV or Parq"):
        md.check(channel, native(released), original=3)
