"""Whatever way a table is written, it is the same table to every reader."""

from __future__ import annotations

import os
import threading

import pytest

from mechdesign.auditing.matrix import audit_file
from mechdesign.core.errors import InputError
from mechdesign.formats.inputs import TextOptions
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
    cells, roles = read_text_columns(path, {"both": "s,x", "one": ("s",)}, "symbol", text=text)
    assert roles == {"both": ("s", "x"), "one": ("s",)}
    assert cells == {"s": ["hé", "b", "hé", "b", "b", ""], "x": ["u", "v", "v", "u", "v", "u"]}
    dropped, _ = read_text_columns(path, {"s": "s"}, "drop", text=text)
    assert dropped == {"s": ["hé", "b", "hé", "b", "b"]}
    with pytest.raises(InputError, match="the column 's' is empty there"):
        read_text_columns(path, {"s": "s"}, text=text)


@pytest.mark.parametrize("way", WAYS)
def test_a_matrix_to_audit(tmp_path, way):
    joint = Joint.from_counts([[1, 2], [3, 4]], useful_labels=["u", "é"])
    path, text = written(tmp_path, way, [("x", "y0", "y1"), ("é", "0.5", "0.5"), ("u", "0.5", "0.5")])
    assert audit_file(path, joint, ALIP(0.1, 0.1), text=text)[0].satisfied
    path, text = written(tmp_path, way, [("x", "y0", "y1"), ("é", "1", "0"), ("u", "0", "1")])
    assert not audit_file(path, joint, ALIP(0.1, 0.1), text=text)[0].satisfied


@pytest.mark.parametrize("way", WAYS)
def test_standard_input(tmp_path, monkeypatch, way):
    path, text = written(tmp_path, way, RECORDS)
    monkeypatch.setattr("sys.stdin", StandardInput(path.read_bytes()))
    assert read_joint("-", sensitive="s", useful="x", text=text).counts == ((1, 2), (1, 1))


def test_standard_input_in_messages(monkeypatch):
    monkeypatch.setattr("sys.stdin", StandardInput(b"s,x\na,u\nb\n"))
    with pytest.raises(InputError, match=r"^standard input, line 3: the row has 1 cell\(s\)"):
        read_joint("-", sensitive="s", useful="x")
    monkeypatch.setattr("sys.stdin", StandardInput(b""))
    with pytest.raises(InputError, match=r"^standard input is empty"):
        read_joint("-", sensitive="s", useful="x")
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(InputError, match=r"^standard input is closed; open it, or name a file to read"):
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
        InputError, match=r"standard input cannot be copied to .* files: no space left on device"
    ):
        read_joint("-", sensitive="s", useful="x")


@pytest.mark.parametrize(
    ("delimiter", "hint"), [(";", "';'"), ("\t", "'tab'"), ("|", r"'\|'")], ids=["semicolons", "tabs", "bars"]
)
def test_another_delimiter_is_named(tmp_path, delimiter, hint):
    path, _ = written(tmp_path, "plain", [(delimiter.join("sx"),), (delimiter.join("au"),)])
    with pytest.raises(InputError, match=rf"there is no column 's' .*: say so \(delimiter={hint}\)"):
        read_joint(path, sensitive="s", useful="x")


def test_commas_where_tabs_were_promised(tmp_path):
    path, _ = written(tmp_path, "plain", RECORDS)
    with pytest.raises(InputError, match=r"separated by commas: say so \(delimiter=','\)"):
        read_joint(path, sensitive="s", useful="x", text=TextOptions(delimiter="\t"))


def test_the_wrong_encoding_is_named_with_its_line(tmp_path):
    path, _ = written(tmp_path, "Latin-1", RECORDS)
    with pytest.raises(
        InputError, match=r"t\.csv, line 2: not UTF-8 text; .* name its encoding \(encoding=\)"
    ):
        read_joint(path, sensitive="s", useful="x")
