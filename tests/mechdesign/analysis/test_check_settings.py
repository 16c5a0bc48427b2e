"""Released files of every kind of job: forms, policies, identifiers, crossed columns, other ways to
write a file.
"""

from __future__ import annotations

import dataclasses
import gzip

import numpy as np
import pyarrow.parquet as pq
import pytest
from pyarrow import csv as pacsv

import mechdesign as md
from mechdesign.core.errors import InputError
from mechdesign.formats.csv_text import TextOptions
from mechdesign.jobs.release_file import sanitise_file
from mechdesign.release.samplers import Policy
from tests.cases.check_files import HEADER, RECORDS, ROWS, kinds, read_csv, write_csv
from tests.cases.releases import channel_of


def test_posterior_draws_are_checked_as_such(files, channel, tmp_path):
    original, released = files
    sanitise_file(
        channel,
        original,
        tmp_path / "draws.csv",
        insecure_seed=1,
        form="posterior-draw",
    )
    assert md.check(
        channel, tmp_path / "draws.csv", original=original, form="posterior-draw"
    ).plausible
    assert md.check(channel, tmp_path / "draws.csv", form="posterior-draw").plausible
    assert not md.check(
        channel, original, original=original, form="posterior-draw"
    ).plausible
    assert kinds(md.check(channel, released, form="posterior-draw")) == ["label"]


def test_policies_of_the_job_are_known_to_the_check(tmp_path, channel, records):
    rows = [
        [r[0], ("" if i % 4 == 0 else "zz" if i % 4 == 1 else r[1]), r[2], r[3]]
        for i, r in enumerate(records)
    ]
    original = write_csv(tmp_path / "in.csv", rows)
    policy = Policy(unknown="marginal", missing="output:y1")
    sanitise_file(
        channel,
        original,
        tmp_path / "out.csv",
        insecure_seed=1,
        policy=policy,
        keep_order=True,
    )
    check = md.check(channel, tmp_path / "out.csv", original=original, policy=policy)
    assert check.plausible
    other = Policy(unknown="marginal", missing="output:y0")
    wrong = md.check(channel, tmp_path / "out.csv", original=original, policy=other)
    assert kinds(wrong) == ["pair"]
    assert "never gives 'y1' for 'an empty cell'" in wrong.findings[0].text
    with pytest.raises(
        InputError, match=r"in.csv, line 2: the column 'x' has an empty cell"
    ):
        md.check(channel, tmp_path / "out.csv", original=original)
    with pytest.raises(
        InputError, match=r"in.csv, line 3: the channel does not know the symbol of"
    ):
        md.check(
            channel,
            tmp_path / "out.csv",
            original=original,
            policy=Policy(missing="marginal"),
        )
    with pytest.raises(
        InputError, match=r"missing output:zz: 'zz' is no output of the channel"
    ):
        md.check(channel, tmp_path / "out.csv", policy=Policy(missing="output:zz"))
    alone = md.check(channel, tmp_path / "out.csv", policy=policy)
    assert alone.frequencies.against == "any data"
    assert any("fixed label" in notice for notice in alone.notices)


def test_symbols_are_compared_in_the_declared_unicode_form(tmp_path):
    composed = "caf\u00e9"
    decomposed = "cafe\u0301"
    channel = channel_of(((1, 1), (1, 3)), names=(composed, "tea"))
    original = write_csv(tmp_path / "in.csv", [[decomposed], ["tea"]] * 50, ["x"])
    policy = Policy(normalise="NFC")
    sanitise_file(
        channel,
        original,
        tmp_path / "out.csv",
        insecure_seed=1,
        policy=policy,
        keep_order=True,
    )
    assert md.check(
        channel, tmp_path / "out.csv", original=original, policy=policy
    ).plausible
    with pytest.raises(InputError, match="does not know the symbol"):
        md.check(channel, tmp_path / "out.csv", original=original)


def test_records_that_share_an_identifier_count_once(tmp_path, channel):
    """600 people with ten rows each: as 6,000 independent records their labels would be
    implausible.
    """
    rng = np.random.default_rng(4)
    people = rng.choice(["a", "b", "c"], 600).tolist()
    rows = [[str(i % 600), people[i % 600], "", ""] for i in range(6000)]
    original = write_csv(tmp_path / "in.csv", rows)
    p_values = []
    for seed in range(4):
        sanitise_file(
            channel,
            original,
            tmp_path / "out.csv",
            insecure_seed=seed,
            identity=["id"],
            force=True,
            keep="all",
        )
        once = md.check(
            channel, tmp_path / "out.csv", original=original, identity=["id"]
        )
        assert once.plausible
        assert once.frequencies.records == 600
        assert (
            md.check(channel, tmp_path / "out.csv", identity=["id"]).frequencies.records
            == 600
        )
        p_values.append(
            md.check(
                channel, tmp_path / "out.csv", original=original
            ).frequencies.p_value
        )
    assert min(p_values) < 0.01


def test_an_identifier_with_two_draws_is_found(tmp_path, channel, files):
    original, released = files
    doubled = write_csv(
        tmp_path / "in2.csv", [*read_csv(original), *read_csv(original)]
    )
    twice = read_csv(released)
    again = [*twice, *([row[0], "y1", *row[2:]] for row in twice)]
    wrong = write_csv(tmp_path / "out2.csv", again)
    check = md.check(channel, wrong, identity="id")
    assert kinds(check) == ["identity"]
    at = next(i for i, row in enumerate(twice) if row[1] != "y1")
    assert (
        f"line {RECORDS + at + 2}: its identifier had another symbol or label"
        in check.findings[0].text
    )
    assert kinds(md.check(channel, wrong, original=doubled, identity=["id"])) == [
        "identity"
    ]


def test_crossed_columns(tmp_path):
    names = (("p", "a"), ("p", "b"), ("q", "a"))
    joint = md.Joint.from_counts(
        [[30, 20, 10], [10, 20, 30]],
        useful_labels=names,
        useful=["city", "job"],
        sensitive="s",
    )
    crossed = dataclasses.replace(channel_of(ROWS), useful=joint.useful, joint=joint)
    rng = np.random.default_rng(0)
    rows = [[str(i), *names[rng.integers(3)]] for i in range(500)]
    original = write_csv(tmp_path / "in.csv", rows, ["id", "city", "job"])
    sanitise_file(crossed, original, tmp_path / "out.csv", insecure_seed=1)
    assert md.check(crossed, tmp_path / "out.csv", original=original).plausible
    sanitise_file(
        crossed,
        original,
        tmp_path / "draws.csv",
        insecure_seed=1,
        form="posterior-draw",
    )
    assert md.check(
        crossed, tmp_path / "draws.csv", original=original, form="posterior-draw"
    ).plausible
    with pytest.raises(
        InputError, match=r"the channel releases 1 column\(s\), not 'y', 'z'"
    ):
        md.check(crossed, tmp_path / "out.csv", released_columns=["y", "z"])


def test_other_ways_to_write_a_csv(tmp_path, channel, records):
    rows = "\n".join(";".join(row) for row in [HEADER, *records])
    with gzip.open(tmp_path / "in.csv.gz", "wt", encoding="cp1252") as stream:
        stream.write(rows + "\n")
    text = TextOptions(delimiter=";", encoding="cp1252")
    sanitise_file(
        channel,
        tmp_path / "in.csv.gz",
        tmp_path / "out.csv.gz",
        insecure_seed=1,
        text=text,
        keep="all",
    )
    check = md.check(
        channel, tmp_path / "out.csv.gz", original=tmp_path / "in.csv.gz", text=text
    )
    assert check.plausible
    with pytest.raises(InputError, match="there is no column 'x'"):
        md.check(channel, tmp_path / "out.csv.gz")


def test_a_csv_and_a_parquet_file_are_compared_by_their_texts(tmp_path, channel):
    """1.50 in a CSV is 1.5 in Parquet and an empty cell a null; any other value is found."""
    rows = [
        [str(i), "abc"[i % 3], "" if i % 7 == 0 else f"{i / 8:.4f}"] for i in range(60)
    ]
    original = write_csv(tmp_path / "in.csv", rows, ["id", "x", "score"])
    sanitise_file(
        channel,
        original,
        tmp_path / "out.csv",
        insecure_seed=1,
        keep_order=True,
        keep="all",
    )
    released = pacsv.read_csv(tmp_path / "out.csv")
    pq.write_table(released, tmp_path / "out.parquet")
    assert md.check(channel, tmp_path / "out.parquet", original=original).plausible
    pq.write_table(pacsv.read_csv(original), tmp_path / "in.parquet")
    assert md.check(
        channel, tmp_path / "out.csv", original=tmp_path / "in.parquet"
    ).plausible
    rows[9][2] = "9"
    changed = write_csv(tmp_path / "changed.csv", rows, ["id", "x", "score"])
    (finding,) = md.check(channel, tmp_path / "out.parquet", original=changed).findings
    assert "the column 'score' holds '1.125', but the original '9'" in finding.text


def test_files_that_cannot_be_checked_are_refused(files, channel, tmp_path):
    _, released = files
    with pytest.raises(InputError, match="no such file"):
        md.check(channel, tmp_path / "none.csv")
    write_csv(tmp_path / "other.csv", [["1"]], ["job"])
    with pytest.raises(InputError, match=r"other.csv: there is no column 'x'"):
        md.check(channel, tmp_path / "other.csv")
    with pytest.raises(InputError, match=r"other.csv: there is no column 'x'"):
        md.check(channel, released, original=tmp_path / "other.csv")
    with pytest.raises(InputError, match=r"out.csv: there is no column 'person'"):
        md.check(channel, released, identity=["person"])
    with pytest.raises(InputError, match=r"the channel has no column 'z' to rename"):
        md.check(channel, released, columns={"z": "w"})
    with pytest.raises(InputError, match=r"^form \('text'\) must be one of"):
        md.check(channel, released, form="text")
    with pytest.raises(InputError, match=r"the chance of a false alarm \(2\)"):
        md.check(channel, released, level=2)


def test_an_empty_release_is_plausible(tmp_path, channel):
    original = write_csv(tmp_path / "in.csv", [])
    released = write_csv(tmp_path / "out.csv", [])
    check = md.check(channel, released, original=original)
    assert check.plausible
    assert check.records == 0
    assert md.check(channel, released).plausible
