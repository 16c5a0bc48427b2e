"""Whatever way a table is written, it is the same table to every reader."""

from __future__ import annotations

import os
import threading

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mechdesign.auditing.matrix import audit_file
from mechdesign.core.errors import InputError, Notice
from mechdesign.formats.csv_text import TextOptions
from mechdesign.nonstochastic.table_measures import read_text_columns
from mechdesign.notions import ALIP
from mechdesign.tables.joint import Joint
from mechdesign.tables.reading import read_joint
from tests.cases.tables import WAYS, StandardInput, written

RECORDS = [
    ("s", "x", "n"),
    ("hé", "u", "1.5"),
    ("b", "v", "2"),
    ("hé", "v", "0.25"),
    ("b", "u", "3"),
    ("b", "v", "1"),
]

COUNTS = [("rel", "ü", "v"), ("hé", "1", "2"), ("b", "3", "40")]


@pytest.mark.parametrize("way", WAYS)
def test_microdata(tmp_path, way):
    path, text = written(tmp_path, way, RECORDS)
    joint = read_joint(path, sensitive="s", useful="x", text=text)
    assert joint.sensitive.names == ("b", "hé")
    assert joint.counts == ((1, 2), (1, 1))
    weighted = read_joint(path, sensitive="s", useful="x", weight="n", text=text)
    assert weighted.counts == ((12, 12), (6, 1))


@pytest.mark.parametrize("way", WAYS)
def test_wide_counts(tmp_path, way):
    path, text = written(tmp_path, way, COUNTS)
    joint = read_joint(path, contingency=True, text=text)
    assert joint == Joint.from_counts(
        [[1, 2], [3, 40]],
        sensitive_labels=["hé", "b"],
        useful_labels=["ü", "v"],
        sensitive="rel",
        useful="useful",
    )


@pytest.mark.parametrize("way", WAYS)
def test_columns_of_text(tmp_path, way):
    path, text = written(tmp_path, way, [*RECORDS, ("", "u", "")])
    cells, roles = read_text_columns(
        path, {"both": "s,x", "one": ("s",)}, "symbol", text=text
    )
    assert roles == {"both": ("s", "x"), "one": ("s",)}
    assert cells == {
        "s": ["hé", "b", "hé", "b", "b", ""],
        "x": ["u", "v", "v", "u", "v", "u"],
    }
    with pytest.warns(Notice, match=r"dropped 1 of 6 record\(s\) with an empty cell"):
        dropped, _ = read_text_columns(path, {"s": "s"}, "drop", text=text)
    assert dropped == {"s": ["hé", "b", "hé", "b", "b"]}
    with pytest.raises(InputError, match="the column 's' is empty there"):
        read_text_columns(path, {"s": "s"}, text=text)


@pytest.mark.parametrize("way", WAYS)
def test_a_matrix_to_audit(tmp_path, way):
    joint = Joint.from_counts([[1, 2], [3, 4]], useful_labels=["u", "é"])
    path, text = written(
        tmp_path, way, [("x", "y0", "y1"), ("é", "0.5", "0.5"), ("u", "0.5", "0.5")]
    )
    assert audit_file(path, joint, ALIP(0.1, 0.1), text=text).audit.satisfied
    path, text = written(
        tmp_path, way, [("x", "y0", "y1"), ("é", "1", "0"), ("u", "0", "1")]
    )
    assert not audit_file(path, joint, ALIP(0.1, 0.1), text=text).audit.satisfied


@pytest.mark.parametrize("way", WAYS)
def test_standard_input(tmp_path, monkeypatch, way):
    path, text = written(tmp_path, way, RECORDS)
    monkeypatch.setattr("sys.stdin", StandardInput(path.read_bytes()))
    assert read_joint("-", sensitive="s", useful="x", text=text).counts == (
        (1, 2),
        (1, 1),
    )


def test_standard_input_in_messages(monkeypatch):
    monkeypatch.setattr("sys.stdin", StandardInput(b"s,x\na,u\nb\n"))
    with pytest.raises(
        InputError, match=r"^standard input, line 3: the row has 1 cell\(s\)"
    ):
        read_joint("-", sensitive="s", useful="x")
    monkeypatch.setattr("sys.stdin", StandardInput(b""))
    with pytest.raises(InputError, match=r"^standard input is empty"):
        read_joint("-", sensitive="s", useful="x")
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(
        InputError, match=r"^standard input is closed; open it, or name a file to read"
    ):
        read_joint("-", sensitive="s", useful="x")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_a_pipe_is_read_once(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(b"s,x\na,u\nb,v\n",))
    writer.start()
    joint = read_joint(pipe, sensitive="s", useful="x")
    writer.join()
    assert joint.counts == ((1, 0), (0, 1))


def test_no_room_for_a_copy_of_standard_input(monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("sys.stdin", StandardInput(b"s,x\na,u\n"))
    monkeypatch.setattr("mechdesign.formats.inputs.write_all", full)
    with pytest.raises(
        InputError,
        match=r"standard input cannot be copied to .* files: no space left on device",
    ):
        read_joint("-", sensitive="s", useful="x")


@pytest.mark.parametrize(
    ("delimiter", "hint"),
    [(";", "';'"), ("\t", "'tab'"), ("|", r"'\|'")],
    ids=["semicolons", "tabs", "bars"],
)
def test_another_delimiter_is_named(tmp_path, delimiter, hint):
    path, _ = written(
        tmp_path, "plain", [(delimiter.join("sx"),), (delimiter.join("au"),)]
    )
    with pytest.raises(
        InputError, match=rf"there is no column 's' .*: say so \(delimiter={hint}\)"
    ):
        read_joint(path, sensitive="s", useful="x")


def test_commas_where_tabs_were_promised(tmp_path):
    path, _ = written(tmp_path, "plain", RECORDS)
    with pytest.raises(
        InputError, match=r"separated by commas: say so \(delimiter=','\)"
    ):
        read_joint(path, sensitive="s", useful="x", text=TextOptions(delimiter="\t"))


def test_the_wrong_encoding_is_named_with_its_line(tmp_path):
    path, _ = written(tmp_path, "Latin-1", RECORDS)
    with pytest.raises(
        InputError,
        match=r"t\.csv, line 2: not UTF-8 text; .* name its encoding \(encoding=\)",
    ):
        read_joint(path, sensitive="s", useful="x")


PARTS = [RECORDS[:3], RECORDS[:1] + RECORDS[3:], RECORDS[:1]]


@pytest.mark.parametrize("source", ["in", "in/part=*/*"])
def test_files_of_a_folder_or_glob_are_one_table(tmp_path, monkeypatch, source):
    """CSV and Parquet side by side, one of them without records; names that begin with _ or . are
    no data.
    """
    monkeypatch.chdir(tmp_path)
    for k, part in enumerate(PARTS):
        folder = tmp_path / "in" / f"part={k}"
        folder.mkdir(parents=True)
        if k == 1:
            columns = dict(zip(part[0], zip(*part[1:], strict=True), strict=True))
            pq.write_table(
                pa.table({name: list(cells) for name, cells in columns.items()}),
                folder / "a",
            )
        else:
            (folder / "a.csv").write_text(
                "\n".join(map(",".join, part)), encoding="utf-8"
            )
            (folder / "_SUCCESS").write_text("")
    whole = tmp_path / "whole.csv"
    whole.write_text("\n".join(map(",".join, RECORDS)), encoding="utf-8")
    for weight in (None, "n"):
        options = {"sensitive": "s", "useful": "x", "weight": weight}
        assert read_joint(source, **options) == read_joint(whole, **options)


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ("s,y\na,u\n", r"in/b\.csv: there is no column 'x'"),
        ("x,s\nu,a\n,b\n", r"in/b\.csv, line 3: the column 'x' has an empty cell"),
        ("", r"in/b\.csv is empty"),
        ("s,x\nc,u\n", r"^in: the useful column 'x' has a single symbol \('u'\)"),
    ],
)
def test_a_bad_file_of_a_folder_is_named(tmp_path, monkeypatch, second, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("s,x\na,u\nb,u\n")
    (tmp_path / "in" / "b.csv").write_text(second)
    with pytest.raises(InputError, match=message):
        read_joint("in", sensitive="s", useful="x")
    (tmp_path / "in" / "a.csv").write_text("s,x\n")
    (tmp_path / "in" / "b.csv").write_text("s,x\n")
    with pytest.raises(InputError, match=r"^in: the files have headers but no records"):
        read_joint("in", sensitive="s", useful="x")
    with pytest.raises(
        InputError, match="a wide table is one file; leave the others out"
    ):
        read_joint("in", contingency=True)


def test_parquet_files_of_a_folder_agree_on_floats(tmp_path):
    """pandas writes integers with gaps as floats: 1 in one file and 1.0 in the other are one
    number.
    """
    for name, values in (("a", [1, 2]), ("b", [1.0, None])):
        pq.write_table(pa.table({"s": ["a", "b"], "x": values}), tmp_path / name)
    with pytest.raises(
        InputError, match="the column 'x' holds floats in one part of the table"
    ):
        read_joint(tmp_path, sensitive="s", useful="x", missing="drop")


def test_a_missing_column_is_named_beside_nested_ones(tmp_path):
    path = tmp_path / "t.parquet"
    nested = pa.array([["x"], ["y"]])
    pq.write_table(pa.table({"tags": nested, "s": ["a", "b"], "x": ["u", "v"]}), path)
    with pytest.raises(InputError, match="there is no column 'nope'"):
        read_joint(path, sensitive="nope", useful="x")
