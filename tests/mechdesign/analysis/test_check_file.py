"""Released files against their channel and their original: what is impossible is found, where it is."""

from __future__ import annotations

import csv
import dataclasses
import gzip

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv as pacsv

import mechdesign as md
from mechdesign.core.errors import InputError
from mechdesign.formats.inputs import TextOptions
from mechdesign.release.policies import Policy
from mechdesign.sanitise.apply import sanitise_file
from tests.cases.releases import channel_of

ROWS = ((8, 2, 0), (2, 7, 1), (0, 3, 7))
RECORDS = 3000


@pytest.fixture(scope="module")
def channel():
    return channel_of(ROWS, [[30, 20, 10], [10, 20, 30]])


@pytest.fixture(scope="module")
def records():
    rng = np.random.default_rng(0)
    symbols = rng.choice(["a", "b", "c"], RECORDS, p=[1 / 3, 1 / 3, 1 / 3]).tolist()
    return [[str(i), symbol, f"0{i % 7}", "x, y" if i % 3 else ""] for i, symbol in enumerate(symbols)]


HEADER = ["id", "x", "zip", "note"]


def write_csv(path, rows, header=HEADER, **options):
    with open(path, "w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, **options)
        writer.writerow(header)
        writer.writerows(rows)
    return path


def read_csv(path):
    with open(path, newline="", encoding="utf-8") as stream:
        return [*csv.reader(stream)][1:]


@pytest.fixture
def files(tmp_path, channel, records):
    """The original and a faithful release, as CSV."""
    original = write_csv(tmp_path / "in.csv", records)
    sanitise_file(channel, original, tmp_path / "out.csv", insecure_seed=1)
    return original, tmp_path / "out.csv"


@pytest.fixture
def parquet(tmp_path, channel, records):
    """The same as Parquet, with types, nulls and NaN."""
    columns = list(zip(*records, strict=True))
    table = pa.table(
        {
            "id": pa.array(map(int, columns[0]), pa.int32()),
            "x": pa.array(columns[1]).dictionary_encode(),
            "zip": pa.array(columns[2]),
            "score": pa.array(
                [float("nan") if i % 5 == 0 else None if i % 7 == 0 else i / 8 for i in range(RECORDS)]
            ),
            "parts": pa.array([[i, i + 1] for i in range(RECORDS)]),
        }
    )
    pq.write_table(table, tmp_path / "in.parquet", row_group_size=1000)
    sanitise_file(channel, tmp_path / "in.parquet", tmp_path / "out.parquet", insecure_seed=1)
    return tmp_path / "in.parquet", tmp_path / "out.parquet"


def kinds(check):
    return [finding.kind for finding in check.findings]


def test_a_faithful_release_is_plausible(files, channel):
    original, released = files
    check = md.check_release(released, channel, original=original)
    assert check.plausible
    assert check.findings == ()
    assert check.records == check.frequencies.records == RECORDS
    assert check.frequencies.against == "originals"
    alone = md.check_release(released, channel)
    assert alone.plausible
    assert alone.frequencies.against == "table"
    assert alone.also is not None
    assert alone.also.against == "any data"


def test_a_faithful_parquet_release_is_plausible(parquet, channel):
    original, released = parquet
    check = md.check_release(released, channel, original=original)
    assert check.findings == ()
    assert check.plausible
    assert md.check_release(released, channel).plausible


def test_batches_of_different_sizes_are_matched(parquet, channel, tmp_path):
    original, released = parquet
    pq.write_table(pq.read_table(released), tmp_path / "again.parquet", row_group_size=77)
    assert md.check_release(tmp_path / "again.parquet", channel, original=original).plausible


def test_the_counts_are_those_of_a_plain_count(files, channel):
    from mechdesign.analysis.counting import Columns, count_pairs, count_release
    from mechdesign.tables.variable import Variable

    original, released = files
    where = Columns(useful=("x",), released=("x",))
    labels = Variable(("x",), tuple((label,) for label in channel.outputs))
    possible = np.vstack([channel.matrix > 0, np.zeros((2, 3), dtype=bool)])
    seen = []
    counted = count_pairs(original, released, channel.useful, labels, possible, where, advance=seen.append)
    expected = np.zeros((5, 3), dtype=int)
    for old, new in zip(read_csv(original), read_csv(released), strict=True):
        expected["abc".index(old[1]), channel.outputs.index(new[1])] += 1
    np.testing.assert_array_equal(counted.pairs, expected)
    assert sum(seen) == RECORDS
    np.testing.assert_array_equal(count_release(released, labels, where).labels, expected.sum(axis=0))


def test_an_unsanitised_column_is_found(files, channel):
    original, _ = files
    check = md.check_release(original, channel, original=original)
    assert not check.plausible
    assert kinds(check) == ["label"]
    first = read_csv(original)[0][1]
    assert check.findings[0].text == f"{original}, line 2: '{first}' is nothing that the channel can give"
    assert check.findings[0].records == RECORDS
    assert not md.check_release(original, channel).plausible


def changed(path, target, edit):
    rows = read_csv(path)
    edit(rows)
    return write_csv(target, rows)


def test_an_impossible_pair_is_named(files, channel, tmp_path):
    original, released = files
    at = next(i for i, row in enumerate(read_csv(original)) if row[1] == "c" and i > 100)

    def edit(rows):
        rows[at][1] = "y0"

    wrong = changed(released, tmp_path / "wrong.csv", edit)
    check = md.check_release(wrong, channel, original=original)
    assert kinds(check) == ["pair"]
    assert check.findings[0].text == f"{wrong}, line {at + 2}: the channel never gives 'y0' for 'c'"
    assert not check.plausible
    assert md.check_release(wrong, channel).plausible  # nobody can see it without the original


def test_another_label_is_named_and_the_others_are_tested(files, channel, tmp_path):
    original, released = files

    def edit(rows):
        rows[7][1], rows[9][1] = "zz", ""

    wrong = changed(released, tmp_path / "wrong.csv", edit)
    check = md.check_release(wrong, channel, original=original)
    assert kinds(check) == ["label"]
    assert "line 9: 'zz' is nothing" in check.findings[0].text
    assert check.findings[0].records == 2
    assert check.frequencies.records == RECORDS - 2
    write_csv(tmp_path / "empty.csv", [["1", "", "2", "3"]])
    assert (
        "an empty cell, which no channel gives"
        in md.check_release(tmp_path / "empty.csv", channel).findings[0].text
    )


def test_lost_and_doubled_rows_are_found(files, channel, tmp_path):
    original, released = files
    for edit, count in ((lambda rows: rows.pop(1500), 2999), (lambda rows: rows.insert(0, rows[0]), 3001)):
        wrong = changed(released, tmp_path / "wrong.csv", edit)
        check = md.check_release(wrong, channel, original=original)
        assert kinds(check)[0] == "rows"
        assert f"has {count:,} records and the original 3,000" in check.findings[0].text
        assert "cells" in kinds(check)  # the identifiers no longer match
        assert any("not tested" in notice for notice in check.notices)
        assert not check.plausible


def test_rows_in_another_order_are_found(files, channel, tmp_path):
    original, released = files
    wrong = changed(released, tmp_path / "wrong.csv", lambda rows: rows.reverse())
    check = md.check_release(wrong, channel, original=original)
    assert "cells" in kinds(check)
    text = next(f.text for f in check.findings if f.kind == "cells")
    assert text.startswith(f"{wrong}, line 2: the column 'id' holds '2999', but the original '0'")


def test_a_changed_cell_is_named(files, channel, tmp_path):
    original, released = files

    def edit(rows):
        rows[20][2] = "9"
        rows[30][3] = "other"

    check = md.check_release(changed(released, tmp_path / "wrong.csv", edit), channel, original=original)
    assert kinds(check) == ["cells"]
    assert "line 22: the column 'zip' holds '9', but the original '06'" in check.findings[0].text
    ignored = md.check_release(tmp_path / "wrong.csv", channel, original=original, ignored=["zip", "note"])
    assert ignored.plausible


def test_a_changed_value_type_or_null_of_parquet_is_found(parquet, channel, tmp_path):
    original, released = parquet
    table = pq.read_table(released)
    scores = table["score"].to_pylist()
    scores[2500] = 4.0
    wrong = table.set_column(3, "score", pa.array(scores))
    pq.write_table(wrong, tmp_path / "wrong.parquet")
    check = md.check_release(tmp_path / "wrong.parquet", channel, original=original)
    assert "row 2501: the column 'score' holds '4.0'" in check.findings[0].text
    scores[2500] = table["score"].to_pylist()[2500]
    scores[7] = 1.0  # was null
    pq.write_table(table.set_column(3, "score", pa.array(scores)), tmp_path / "wrong.parquet")
    check = md.check_release(tmp_path / "wrong.parquet", channel, original=original)
    assert "row 8: the column 'score' holds '1.0', but the original 'None'" in check.findings[0].text
    parts = table["parts"].to_pylist()
    parts[3] = [3]
    pq.write_table(table.set_column(4, "parts", pa.array(parts)), tmp_path / "wrong.parquet")
    check = md.check_release(tmp_path / "wrong.parquet", channel, original=original)
    assert "row 4: the column 'parts'" in check.findings[0].text
    retyped = table.set_column(0, "id", table["id"].cast(pa.int64()))
    pq.write_table(retyped, tmp_path / "wrong.parquet")
    check = md.check_release(tmp_path / "wrong.parquet", channel, original=original)
    assert kinds(check) == ["columns"]
    assert "the column 'id' has the type int64, but int32 in the original" in check.findings[0].text


def test_columns_that_go_come_or_move_are_found(files, channel, tmp_path):
    original, released = files
    rows = read_csv(released)
    for header, keep, match in (
        (["id", "x", "zip"], [0, 1, 2], "the column 'note' of the original is not there"),
        (["id", "x", "zip", "note", "more"], [0, 1, 2, 3, 0], "the column 'more' is not in the original"),
        (["zip", "x", "id", "note"], [2, 1, 0, 3], "the columns are in another order"),
    ):
        wrong = write_csv(tmp_path / "wrong.csv", [[row[i] for i in keep] for row in rows], header)
        check = md.check_release(wrong, channel, original=original)
        assert kinds(check) == ["columns"]
        assert match in check.findings[0].text
        assert not check.plausible


def test_sensitive_and_correlated_columns_must_be_gone(files, channel, tmp_path):
    _, released = files
    rows = [[*row, "s0"] for row in read_csv(released)]
    wrong = write_csv(tmp_path / "wrong.csv", rows, [*HEADER, "s"])
    check = md.check_release(wrong, channel)
    assert [f.text for f in check.findings] == [f"{wrong}: the sensitive column 's' is in the released file"]
    assert md.check_release(wrong, channel, keep_sensitive=True).plausible
    renamed = write_csv(tmp_path / "renamed.csv", rows, [*HEADER, "secret"])
    assert md.check_release(renamed, channel).plausible
    assert not md.check_release(renamed, channel, columns={"s": "secret"}).plausible
    alike = md.check_release(write_csv(tmp_path / "alike.csv", rows, [*HEADER, "S "]), channel)
    assert (
        "the column 'S ', which looks like the sensitive column 's', is in the rel" in alike.findings[0].text
    )
    assert not md.check_release(released, channel, correlated=["zip"]).plausible


def test_the_useful_column_itself_must_be_gone(files, channel, tmp_path):
    original, _ = files
    sanitise_file(channel, original, tmp_path / "added.csv", insecure_seed=1, into=[["y"]])
    check = md.check_release(tmp_path / "added.csv", channel, original=original, released_columns=["y"])
    assert [f.text.partition(": ")[2] for f in check.findings] == [
        "the useful column 'x' is in the released file"
    ]
    allowed = md.check_release(
        tmp_path / "added.csv", channel, original=original, released_columns=["y"], ignored=["x"]
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
    check = md.check_release(tmp_path / "other.csv", channel, original=original)
    assert not check.plausible
    assert not check.frequencies.plausible


def test_releases_by_the_sampler_itself_fail_no_more_often_than_the_level(channel, records):
    """Real draws, 300 times: rejections within four standard deviations of the level, and most labels vary."""
    from mechdesign.analysis.checking import check_pairs

    symbols = [row[1] for row in records[:400]]
    xs = np.array(["abc".index(symbol) for symbol in symbols])
    runs, level, failed, first = 300, 0.05, 0, set()
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
    sanitise_file(channel, original, tmp_path / "out.csv", insecure_seed=2, keep_order=True)
    assert md.check_release(tmp_path / "out.csv", channel, original=original).plausible
    strict = md.check_release(tmp_path / "out.csv", channel)
    assert not strict.plausible
    assert any("another origin" in notice for notice in strict.notices)
    loose = md.check_release(tmp_path / "out.csv", channel, any_data=True)
    assert loose.plausible
    assert loose.frequencies.against == "any data"


def test_a_public_channel_is_checked_as_far_as_it_goes(files, channel):
    original, released = files
    public = dataclasses.replace(channel, joint=None, sensitive=None)
    check = md.check_release(released, public, original=original)
    assert check.plausible
    assert any("does not say which columns are sensitive" in notice for notice in check.notices)
    alone = md.check_release(released, public)
    assert alone.plausible
    assert alone.frequencies.against == "any data"
    assert any("carries no table" in notice for notice in alone.notices)
    with pytest.raises(InputError, match="posterior-draw needs the table that the channel was designed for"):
        md.check_release(released, public, form="posterior-draw")
    with pytest.raises(InputError, match="unknown=marginal needs the channel's table"):
        md.check_release(released, public, policy=Policy(unknown="marginal"))


def test_posterior_draws_are_checked_as_such(files, channel, tmp_path):
    original, released = files
    sanitise_file(channel, original, tmp_path / "draws.csv", insecure_seed=1, form="posterior-draw")
    assert md.check_release(
        tmp_path / "draws.csv", channel, original=original, form="posterior-draw"
    ).plausible
    assert md.check_release(tmp_path / "draws.csv", channel, form="posterior-draw").plausible
    assert not md.check_release(original, channel, original=original, form="posterior-draw").plausible
    assert kinds(md.check_release(released, channel, form="posterior-draw")) == ["label"]


def test_policies_of_the_job_are_known_to_the_check(tmp_path, channel, records):
    rows = [
        [r[0], ("" if i % 4 == 0 else "zz" if i % 4 == 1 else r[1]), r[2], r[3]]
        for i, r in enumerate(records)
    ]
    original = write_csv(tmp_path / "in.csv", rows)
    policy = Policy(unknown="marginal", null="output:y1")
    sanitise_file(channel, original, tmp_path / "out.csv", insecure_seed=1, policy=policy, keep_order=True)
    check = md.check_release(tmp_path / "out.csv", channel, original=original, policy=policy)
    assert check.plausible
    other = Policy(unknown="marginal", null="output:y0")
    wrong = md.check_release(tmp_path / "out.csv", channel, original=original, policy=other)
    assert kinds(wrong) == ["pair"]
    assert "never gives 'y1' for 'an empty cell'" in wrong.findings[0].text
    with pytest.raises(InputError, match=r"in.csv, line 2: the column 'x' has an empty cell"):
        md.check_release(tmp_path / "out.csv", channel, original=original)
    with pytest.raises(InputError, match=r"in.csv, line 3: the channel does not know the symbol 'zz'"):
        md.check_release(tmp_path / "out.csv", channel, original=original, policy=Policy(null="marginal"))
    with pytest.raises(InputError, match=r"null=output:zz: 'zz' is no output of the channel"):
        md.check_release(tmp_path / "out.csv", channel, policy=Policy(null="output:zz"))
    alone = md.check_release(tmp_path / "out.csv", channel, policy=policy)
    assert alone.frequencies.against == "any data"
    assert any("fixed label" in notice for notice in alone.notices)


def test_symbols_are_compared_in_the_declared_unicode_form(tmp_path):
    composed, decomposed = "caf\u00e9", "cafe\u0301"
    channel = channel_of(((1, 1), (1, 3)), names=(composed, "tea"))
    original = write_csv(tmp_path / "in.csv", [[decomposed], ["tea"]] * 50, ["x"])
    policy = Policy(normalise="NFC")
    sanitise_file(channel, original, tmp_path / "out.csv", insecure_seed=1, policy=policy, keep_order=True)
    assert md.check_release(tmp_path / "out.csv", channel, original=original, policy=policy).plausible
    with pytest.raises(InputError, match="does not know the symbol"):
        md.check_release(tmp_path / "out.csv", channel, original=original)


def test_records_that_share_an_identifier_count_once(tmp_path, channel):
    """600 people with ten rows each: as 6,000 independent records their labels would be implausible."""
    rng = np.random.default_rng(4)
    people = rng.choice(["a", "b", "c"], 600).tolist()
    rows = [[str(i % 600), people[i % 600], "", ""] for i in range(6000)]
    original = write_csv(tmp_path / "in.csv", rows)
    p_values = []
    for seed in range(4):
        sanitise_file(
            channel, original, tmp_path / "out.csv", insecure_seed=seed, identity=["id"], force=True
        )
        once = md.check_release(tmp_path / "out.csv", channel, original=original, identity=["id"])
        assert once.plausible
        assert once.frequencies.records == 600
        assert md.check_release(tmp_path / "out.csv", channel, identity=["id"]).frequencies.records == 600
        p_values.append(
            md.check_release(tmp_path / "out.csv", channel, original=original).frequencies.p_value
        )
    assert min(p_values) < 0.01


def test_an_identifier_with_two_draws_is_found(tmp_path, channel, files):
    original, released = files
    doubled = write_csv(tmp_path / "in2.csv", [*read_csv(original), *read_csv(original)])
    twice = read_csv(released)
    again = [*twice, *([row[0], "y1", *row[2:]] for row in twice)]
    wrong = write_csv(tmp_path / "out2.csv", again)
    check = md.check_release(wrong, channel, identity=["id"])
    assert kinds(check) == ["identity"]
    at = next(i for i, row in enumerate(twice) if row[1] != "y1")
    assert (
        f"line {RECORDS + at + 2}: the identifier '{at}' had another symbol or label"
        in check.findings[0].text
    )
    assert kinds(md.check_release(wrong, channel, original=doubled, identity=["id"])) == ["identity"]


def test_crossed_columns(tmp_path):
    names = (("p", "a"), ("p", "b"), ("q", "a"))
    joint = md.Joint.from_counts(
        [[30, 20, 10], [10, 20, 30]], useful_labels=names, useful=["city", "job"], sensitive="s"
    )
    crossed = dataclasses.replace(channel_of(ROWS), useful=joint.useful, joint=joint)
    rng = np.random.default_rng(0)
    rows = [[str(i), *names[rng.integers(3)]] for i in range(500)]
    original = write_csv(tmp_path / "in.csv", rows, ["id", "city", "job"])
    sanitise_file(crossed, original, tmp_path / "out.csv", insecure_seed=1)
    assert md.check_release(tmp_path / "out.csv", crossed, original=original).plausible
    sanitise_file(crossed, original, tmp_path / "draws.csv", insecure_seed=1, form="posterior-draw")
    assert md.check_release(
        tmp_path / "draws.csv", crossed, original=original, form="posterior-draw"
    ).plausible
    with pytest.raises(InputError, match=r"the channel releases 1 column\(s\), but 'y', 'z' are named"):
        md.check_release(tmp_path / "out.csv", crossed, released_columns=["y", "z"])


def test_other_ways_to_write_a_csv(tmp_path, channel, records):
    rows = "\n".join(";".join(row) for row in [HEADER, *records])
    with gzip.open(tmp_path / "in.csv.gz", "wt", encoding="cp1252") as stream:
        stream.write(rows + "\n")
    text = TextOptions(delimiter=";", encoding="cp1252")
    sanitise_file(channel, tmp_path / "in.csv.gz", tmp_path / "out.csv.gz", insecure_seed=1, text=text)
    check = md.check_release(tmp_path / "out.csv.gz", channel, original=tmp_path / "in.csv.gz", text=text)
    assert check.plausible
    with pytest.raises(InputError, match="there is no column 'x'"):
        md.check_release(tmp_path / "out.csv.gz", channel)


def test_a_csv_and_a_parquet_file_are_compared_by_their_texts(tmp_path, channel):
    """1.50 in a CSV is 1.5 in Parquet and an empty cell a null; any other value is found."""
    rows = [[str(i), "abc"[i % 3], "" if i % 7 == 0 else f"{i / 8:.4f}"] for i in range(60)]
    original = write_csv(tmp_path / "in.csv", rows, ["id", "x", "score"])
    sanitise_file(channel, original, tmp_path / "out.csv", insecure_seed=1, keep_order=True)
    released = pacsv.read_csv(tmp_path / "out.csv")
    pq.write_table(released, tmp_path / "out.parquet")
    assert md.check_release(tmp_path / "out.parquet", channel, original=original).plausible
    pq.write_table(pacsv.read_csv(original), tmp_path / "in.parquet")
    assert md.check_release(tmp_path / "out.csv", channel, original=tmp_path / "in.parquet").plausible
    rows[9][2] = "9"
    changed = write_csv(tmp_path / "changed.csv", rows, ["id", "x", "score"])
    (finding,) = md.check_release(tmp_path / "out.parquet", channel, original=changed).findings
    assert "the column 'score' holds '1.125', but the original '9'" in finding.text


def test_files_that_cannot_be_checked_are_refused(files, channel, tmp_path):
    _, released = files
    with pytest.raises(InputError, match="no such file"):
        md.check_release(tmp_path / "none.csv", channel)
    write_csv(tmp_path / "other.csv", [["1"]], ["job"])
    with pytest.raises(InputError, match=r"other.csv: there is no column 'x'"):
        md.check_release(tmp_path / "other.csv", channel)
    with pytest.raises(InputError, match=r"other.csv: there is no column 'x'"):
        md.check_release(released, channel, original=tmp_path / "other.csv")
    with pytest.raises(InputError, match=r"out.csv: there is no column 'person'"):
        md.check_release(released, channel, identity=["person"])
    with pytest.raises(InputError, match=r"the channel has no column 'z' to rename"):
        md.check_release(released, channel, columns={"z": "w"})
    with pytest.raises(InputError, match=r"the form of the release \('text'\)"):
        md.check_release(released, channel, form="text")
    with pytest.raises(InputError, match=r"the chance of a false alarm \(2\)"):
        md.check_release(released, channel, level=2)


def test_an_empty_release_is_plausible(tmp_path, channel):
    original = write_csv(tmp_path / "in.csv", [])
    released = write_csv(tmp_path / "out.csv", [])
    check = md.check_release(released, channel, original=original)
    assert check.plausible
    assert check.records == 0
    assert md.check_release(released, channel).plausible
