from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mechdesign.core.errors import InputError
from mechdesign.core.files import replacing
from mechdesign.formats import csv_blocks
from mechdesign.jobs.release_file import sanitise_file
from mechdesign.tables.variable import Variable


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "in.csv"
    path.write_text("job,id\na,1\nb,2\nc,3\n")
    return path


def assert_refused(message, channel, source, target, **options):
    """The call must fail with the message and leave the folder as it was."""
    before = {
        p: p.read_bytes() if p.is_file() else None for p in source.parent.rglob("*")
    }
    with pytest.raises(InputError, match=message) as caught:
        sanitise_file(channel, source, target, **{"keep": "all"} | options)
    assert "\n" not in str(caught.value)
    assert {
        p: p.read_bytes() if p.is_file() else None for p in source.parent.rglob("*")
    } == before


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "id,job\n1,a\n2,Sale\n",
            r"in\.csv, line 3: the channel does not know the symbol of 'job'",
        ),
        (
            "id,job\n1,a\n2,\n",
            r"in\.csv, line 3: the column 'job' has an empty cell, which the channel has no row for",
        ),
        (
            'id,job\n"1\n1",a\n2,d\n',
            r"in\.csv, line 4: the channel does not know the symbol of",
        ),
        (
            "id,job\n1,a \n",
            r"in\.csv, line 2: .* symbol of 'job', which is none of its 3; one of them differs in nothing but blanks",
        ),
        (
            "id,work\n1,a\n",
            r"in\.csv: there is no column 'job' \(columns: 'id', 'work'\)",
        ),
        (
            "rel,job\nw,a\n",
            r"in\.csv: the sensitive column 'rel' would stay in the output; leave it out .*keep.sensitive",
        ),
        ("job,job\na,a\n", r"in\.csv: the header has the column 'job' more than once"),
        ("id,job\n1,a\n2\n", r"in\.csv, line 3: the row has 1 cell"),
        ("", r"in\.csv is empty"),
    ],
)
@pytest.mark.parametrize("block", [4, 1 << 20])
def test_what_is_wrong_with_the_input(
    channel, source, monkeypatch, text, message, block
):
    monkeypatch.setattr(csv_blocks, "BLOCK", block)
    source.write_text(text)
    assert_refused(message, channel, source, source.with_name("out.csv"))


def test_input_that_is_not_there(channel, source):
    assert_refused(
        r"nowhere\.csv: there is no such file",
        channel,
        source.with_name("nowhere.csv"),
        source.with_name("out.csv"),
    )


def test_targets_that_cannot_be_written(channel, source):
    folder = source.with_name("folder")
    folder.mkdir()
    source.with_name("old.csv").write_text("old")
    os.link(source, source.with_name("link.csv"))
    assert_refused(
        r"old\.csv exists; .*force", channel, source, source.with_name("old.csv")
    )
    assert_refused(
        r"folder is a folder; give the name of a file", channel, source, folder
    )
    assert_refused(r"folder is a folder", channel, source, folder, force=True)
    assert_refused(
        "/dev/null is no ordinary file", channel, source, Path("/dev/null"), force=True
    )
    assert_refused(
        r"in\.csv is the input file itself", channel, source, source, force=True
    )
    assert_refused(
        r"link\.csv is the input file itself",
        channel,
        source,
        source.with_name("link.csv"),
        force=True,
    )
    assert_refused(
        r"out\.csv cannot be written: there is no folder",
        channel,
        source,
        source.parent / "none" / "out.csv",
    )
    assert_refused(
        r"out\.csv cannot be written: there is no folder",
        channel,
        source,
        source / "out.csv",
    )
    assert_refused(
        r"out\.parquet: the output is a CSV file, as the input is read",
        channel,
        source,
        source.with_name("out.parquet"),
    )


def test_a_folder_that_refuses(channel, source, monkeypatch):
    def no_entry(*_args, **_options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("mechdesign.core.files.os.open", no_entry)
    assert_refused(
        r"out\.csv cannot be written: permission denied",
        channel,
        source,
        source.with_name("out.csv"),
    )


def test_a_disk_that_is_full(channel, source, monkeypatch):
    def full(_descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("mechdesign.core.files.os.fsync", full)
    assert_refused(
        r"out\.csv cannot be written: no space left on device",
        channel,
        source,
        source.with_name("out.csv"),
    )


def test_an_interrupt_leaves_nothing(channel, source, monkeypatch):
    def interrupt(*_args, **_options):
        raise KeyboardInterrupt

    monkeypatch.setattr("mechdesign.formats.csv.CsvSource.batches", interrupt)
    with pytest.raises(KeyboardInterrupt):
        sanitise_file(channel, source, source.with_name("out.csv"))
    assert [p.name for p in source.parent.iterdir()] == ["in.csv"]


@pytest.mark.parametrize("seen", [True, False])
def test_a_target_that_appears_meanwhile_is_not_replaced(tmp_path, monkeypatch, seen):
    """Not even one that appears when nobody looks any more: the new file gets its name in one step."""
    target = tmp_path / "out.csv"
    if not seen:
        monkeypatch.setattr("pathlib.Path.exists", lambda self: False)

    def write_late():
        with replacing(target, force=False) as temporary:
            temporary.write_text("new")
            target.write_text("from somebody else")

    with pytest.raises(InputError, match=r"out\.csv exists"):
        write_late()
    assert target.read_text() == "from somebody else"
    assert list(tmp_path.iterdir()) == [target]


def test_a_target_may_have_the_longest_name_that_file_systems_allow(tmp_path):
    """85 characters of three bytes each leave no room for the name of a temporary file."""
    target = tmp_path / ("表" * 85)
    with replacing(target, force=False) as temporary:
        temporary.write_text("new")
    assert target.read_text() == "new"
    assert list(tmp_path.iterdir()) == [target]


def test_the_data_are_on_disk_before_the_name_is(tmp_path, monkeypatch):
    steps = []
    fsync, rename, link = os.fsync, os.replace, os.link
    monkeypatch.setattr(
        "mechdesign.core.files.os.fsync", lambda fd: (steps.append("fsync"), fsync(fd))
    )
    monkeypatch.setattr(
        "mechdesign.core.files.os.replace",
        lambda a, b: (steps.append("rename"), rename(a, b)),
    )
    monkeypatch.setattr(
        "mechdesign.core.files.os.link", lambda a, b: (steps.append("link"), link(a, b))
    )
    with replacing(tmp_path / "out.csv", force=False) as temporary:
        assert temporary.parent == tmp_path
        temporary.write_text("new")
    with replacing(tmp_path / "out.csv", force=True) as temporary:
        temporary.write_text("new")
    # The data, the name, the folder that holds the name.
    assert steps == ["fsync", "link", "fsync", "fsync", "rename", "fsync"]
    assert list(tmp_path.iterdir()) == [tmp_path / "out.csv"]
    assert (tmp_path / "out.csv").read_text() == "new"


def test_the_file_has_the_permissions_of_any_new_file(channel, source):
    sanitise_file(channel, source, source.with_name("out.csv"))
    plain = source.with_name("plain.csv")
    plain.write_text("")
    assert source.with_name("out.csv").stat().st_mode == plain.stat().st_mode


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            {"work": "job"},
            r"the channel has no column 'work' to rename \(its columns: 'job', 'rel'\)",
        ),
        ({"job": "work"}, "there is no column 'work'"),
        ({"rel": "id"}, "the sensitive column 'id' would stay in the output"),
        ({"rel": "job"}, "the column 'job' cannot be sensitive and useful at once"),
    ],
)
def test_bad_renamings(channel, source, columns, message):
    assert_refused(
        rf"in\.csv: {message}",
        channel,
        source,
        source.with_name("out.csv"),
        columns=columns,
    )


def test_crossed_columns(crossed, source):
    source.write_text("city,job,id\np,a,1\nq,b,2\n")
    assert_refused(
        "line 3: .* the symbol of 'city,job'",
        crossed,
        source,
        source.with_name("out.csv"),
    )
    assert_refused(
        "cannot stand for two",
        crossed,
        source,
        source.with_name("out.csv"),
        columns={"city": "id", "job": "id"},
    )
    source.write_text('city,job,"city,job"\np,a,1\n')
    assert_refused(
        "the file has another column 'city,job'",
        crossed,
        source,
        source.with_name("out.csv"),
    )
    source.write_text("city,id\np,1\n")
    assert_refused(
        "there is no column 'job'", crossed, source, source.with_name("out.csv")
    )


def test_several_sensitive_columns(channel, source):
    two = replace(channel, sensitive=Variable(("rel", "sex"), (("w", "f"),)))
    source.write_text("sex,job\nf,a\n")
    assert_refused(
        "the sensitive column 'sex' would stay",
        two,
        source,
        source.with_name("out.csv"),
    )


def test_a_channel_whose_rows_are_wrong_is_none(channel):
    with pytest.raises(InputError, match="row 'a' sums to 1, not to the denominator"):
        replace(channel, rows=((0, 1), (0, 1), (1, 0)))


def test_a_relative_target(channel, source, monkeypatch):
    monkeypatch.chdir(source.parent)
    assert sanitise_file(channel, "in.csv", "out.csv", keep="all").records == 3
    assert Path("out.csv").read_text().splitlines()[0] == "job,id"


@pytest.mark.parametrize(
    "cell",
    [
        {"rel": "w"},
        [{"age": 1, "Rel": "w"}],
        {"age": 1, "more": {"home": [{"rel": None}]}},
    ],
    ids=str,
)
def test_fields_inside_of_other_columns(channel, tmp_path, cell):
    source, target = tmp_path / "in.parquet", tmp_path / "out.parquet"
    pq.write_table(pa.table({"job": ["a", "c"], "person": [cell, None]}), source)
    assert_refused(
        r"in\.parquet: the column 'person' holds the field '[Rr]el', which looks like the sensitive column 'rel' and",
        channel,
        source,
        target,
    )
    sanitise_file(channel, source, target, keep_sensitive=True, keep="all")
    assert pq.read_table(target)["person"].to_pylist() == [cell, None]


def test_lists_and_maps_have_no_names_of_their_own(channel, tmp_path):
    names = Variable(("item", "element", "key", "value"), (("w",) * 4,))
    table = pa.table(
        {
            "job": ["a"],
            "l": [[1]],
            "m": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())),
        }
    )
    pq.write_table(table, tmp_path / "in.parquet")
    sanitise_file(
        replace(channel, sensitive=names),
        tmp_path / "in.parquet",
        tmp_path / "out.parquet",
        keep="all",
    )
    assert pq.read_table(tmp_path / "out.parquet").drop_columns(
        "job"
    ) == table.drop_columns("job")
