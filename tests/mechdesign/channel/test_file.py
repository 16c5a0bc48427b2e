from __future__ import annotations

import dataclasses
import gzip
import hashlib
import json
import math
import os
import stat

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechdesign.channel.channel import DENOMINATOR as D
from mechdesign.channel.channel import Channel
from mechdesign.channel.file import ChannelDocument
from mechdesign.channel.record import ChannelRecord
from mechdesign.core.errors import InputError
from mechdesign.notions import ALIP, to_record
from mechdesign.tables.joint import Joint
from mechdesign.tables.variable import Variable
from tests.cases.documents import rewrite

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)


@pytest.fixture
def channel() -> Channel:
    joint = Joint.from_counts(
        [[1, 2, 3], [3, 2, 5]],
        sensitive_labels=["Ehemann", "妻"],
        useful_labels=["01234", "?", 'say "NA"'],
        sensitive="relation",
        useful="code",
    )
    record = ChannelRecord(
        notion=to_record(ALIP(math.inf, 0.7)),
        achieved={"eps_l": math.inf, "eps_u": np.float64(0.5), "eps_ldp": math.inf},
        utility={"nmi": 0.75, "mutual_information": 0.8, "entropy": 1.0},
        certificate={
            "gap_nmi": None,
            "details": {"vertices": np.int64(12), "exact": False},
        },
        provenance={
            "tool": "mechdesign",
            "source": "adult.csv",
            "records": 16,
            "limit": -math.inf,
            "tags": ["inf"],
        },
    )
    return Channel(
        joint.useful,
        ("u", "v"),
        [[D, 0], [1, D - 1], [0, D]],
        joint=joint,
        record=record,
    )


def test_a_name_in_gz_packs_the_file(channel, tmp_path):
    """A large channel of rows is mostly zeros. The name alone packed nothing."""
    plain, packed = tmp_path / "c.json", tmp_path / "c.json.gz"
    channel.save(plain)
    channel.save(packed)
    assert gzip.decompress(packed.read_bytes()) == plain.read_bytes()
    assert Channel.load(packed) == Channel.load(plain)
    again = tmp_path / "again.json.gz"
    channel.save(again)
    assert again.read_bytes() == packed.read_bytes()


def test_damaged_and_endless_packed_files_are_refused(channel, tmp_path, monkeypatch):
    path = tmp_path / "c.json.gz"
    channel.save(path)
    whole = path.read_bytes()
    for damaged in (whole[:-9], whole[:20] + b"\0\0\0\0" + whole[24:], b"\x1f\x8b"):
        path.write_bytes(damaged)
        with pytest.raises(InputError, match=r"c\.json\.gz: its gzip data are damaged"):
            Channel.load(path)
    monkeypatch.setattr(ChannelDocument, "LARGEST", 2**12)
    path.write_bytes(gzip.compress(b" " * 2**20))
    with pytest.raises(InputError, match="too large for a channel file"):
        Channel.load(path)


def test_a_label_of_megabytes_is_refused():
    joint = Joint.from_counts([[1, 2], [3, 4]])
    with pytest.raises(InputError, match="an output label has 1,000,001 characters"):
        Channel(joint.useful, ("u", "v" * 1_000_001), [[D, 0], [0, D]], joint=joint)


def test_a_saved_channel_comes_back_whole(channel, tmp_path):
    channel.save(tmp_path / "c.json")
    loaded = Channel.load(tmp_path / "c.json")
    assert loaded == channel.with_record(loaded.record)
    assert loaded.joint == channel.joint
    assert loaded.record.notion == channel.record.notion
    assert loaded.record.achieved == channel.record.achieved
    assert loaded.record.utility == channel.record.utility
    assert loaded.record.certificate == channel.record.certificate
    assert loaded.record.provenance == {**channel.record.provenance, "limit": "-inf"}
    loaded.save(str(tmp_path / "again.json"))
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "c.json").read_bytes()


def test_the_file_is_what_the_interface_says(channel, tmp_path):
    channel.save(tmp_path / "c.json")
    document = json.loads((tmp_path / "c.json").read_text(encoding="utf-8"))
    assert document["format"] == "mechdesign.channel"
    assert document["version"] == 1
    assert document["useful"] == {
        "columns": ["code"],
        "symbols": [["01234"], ["?"], ['say "NA"']],
    }
    assert document["sensitive"] == {
        "columns": ["relation"],
        "symbols": [["Ehemann"], ["妻"]],
    }
    assert document["outputs"] == ["u", "v"]
    assert document["denominator"] == 9007199254740992
    assert document["rows"] == [[D, 0], [1, D - 1], [0, D]]
    assert document["joint"] == [[1, 2, 3], [3, 2, 5]]
    assert document["notion"] == {"name": "alip", "eps_l": "inf", "eps_u": 0.7}
    assert document["achieved"] == {"eps_l": "inf", "eps_u": 0.5, "eps_ldp": "inf"}
    assert "counts" not in document
    claimed = document.pop("sha256")
    canonical = json.dumps(
        document, sort_keys=True, separators=(",", ":"), ensure_ascii=False
    )
    assert claimed == hashlib.sha256(canonical.encode("utf-8")).hexdigest()


def test_the_public_file_says_nothing_of_the_table(channel, tmp_path):
    channel.save(tmp_path / "c.json", public=True)
    document = json.loads((tmp_path / "c.json").read_text(encoding="utf-8"))
    assert set(document) == {
        "format", "version", "useful", "sensitive", "outputs", "denominator", "rows", "notion", "provenance", "sha256",
    }  # fmt: skip
    assert document["provenance"] == {"tool": "mechdesign"}
    loaded = Channel.load(tmp_path / "c.json")
    assert loaded.joint is None
    assert loaded.sensitive == channel.sensitive
    assert loaded.rows == channel.rows
    assert loaded.record.notion == channel.record.notion
    assert loaded.apply(["01234"]) == ["u"]


def test_scaled_probabilities_are_marked(tmp_path):
    joint = Joint.from_probabilities([[0.1, 0.2], [0.3, 0.4]])
    channel = Channel(joint.useful, ("u",), [[D], [D]], joint=joint)
    channel.save(tmp_path / "c.json")
    assert json.loads((tmp_path / "c.json").read_text())["counts"] is False
    loaded = Channel.load(tmp_path / "c.json")
    assert loaded == channel
    assert not loaded.joint.is_counts
    assert loaded.joint.records is None


@given(
    st.lists(texts, min_size=2, max_size=4, unique=True),
    st.integers(0, 2**256 - 1),
    st.data(),
)
def test_any_labels_and_counts_survive(tmp_path_factory, names, count, data):
    joint = Joint.from_counts(
        [[count, 1, *[1] * (len(names) - 2)], [1] * len(names)], useful_labels=names
    )
    outputs = data.draw(st.lists(texts, min_size=2, max_size=2, unique=True))
    channel = Channel(
        joint.useful, tuple(outputs), [[0, 7]] + [[3, 4]] * (len(names) - 1), 7, joint
    )
    path = tmp_path_factory.mktemp("any") / "c.json"
    channel.save(path)
    assert Channel.load(path) == channel


def test_crossed_columns_survive(tmp_path):
    useful = Variable(("age", "area"), (("young", "rural"), ("old", "urban")))
    channel = Channel(useful, ("u",), [[1], [1]], 1)
    channel.save(tmp_path / "c.json")
    assert Channel.load(tmp_path / "c.json") == channel


def test_a_byte_order_mark_is_forgiven(channel, tmp_path):
    channel.save(tmp_path / "c.json")
    (tmp_path / "d.json").write_bytes(
        b"\xef\xbb\xbf" + (tmp_path / "c.json").read_bytes()
    )
    assert Channel.load(tmp_path / "d.json") == Channel.load(tmp_path / "c.json")


def test_the_layout_of_the_json_is_free(channel, tmp_path):
    channel.save(tmp_path / "c.json")
    document = json.loads((tmp_path / "c.json").read_text(encoding="utf-8"))
    backwards = dict(reversed(list(document.items())))
    (tmp_path / "d.json").write_text(json.dumps(backwards, indent=3), encoding="utf-8")
    assert Channel.load(tmp_path / "d.json") == Channel.load(tmp_path / "c.json")


def test_nothing_is_overwritten_unless_asked_for(channel, tmp_path):
    target = tmp_path / "c.json"
    target.write_text("precious")
    with pytest.raises(
        InputError, match=r"c\.json exists; .* or replace it with overwrite=True"
    ):
        channel.save(target)
    assert target.read_text() == "precious"
    channel.save(target, overwrite=True)
    assert Channel.load(target).rows == channel.rows
    assert os.listdir(tmp_path) == ["c.json"]


def test_a_new_file_has_the_permissions_of_any_new_file(channel, tmp_path):
    channel.save(tmp_path / "c.json")
    (tmp_path / "plain").touch()
    assert stat.S_IMODE((tmp_path / "c.json").stat().st_mode) == stat.S_IMODE(
        (tmp_path / "plain").stat().st_mode
    )


def test_a_failing_disk_leaves_the_old_file_and_no_debris(
    channel, tmp_path, monkeypatch
):
    target = tmp_path / "c.json"
    channel.save(target)
    before = target.read_bytes()

    def no_space(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(
        InputError, match=r"c\.json cannot be written: no space left on device"
    ):
        dataclasses.replace(channel, outputs=("w", *channel.outputs[1:])).save(
            target, overwrite=True
        )
    assert target.read_bytes() == before
    assert os.listdir(tmp_path) == ["c.json"]


def test_places_that_cannot_be_written_are_refused(channel, tmp_path):
    with pytest.raises(InputError, match=r"is a folder; give the name of a file"):
        channel.save(tmp_path)
    with pytest.raises(InputError, match=r"there is no folder"):
        channel.save(tmp_path / "missing" / "c.json")


@pytest.mark.parametrize(
    ("provenance", "message"),
    [
        ({"x": math.nan}, r"the record 'provenance' holds NaN"),
        (
            {"x": {"y": [object()]}},
            r"the record 'provenance' holds a object, which no file can hold",
        ),
        ({"x": {1: 2}}, r"a key of 'provenance' must be text, not int"),
        (
            {"x": "\ud800"},
            r"a text of the record 'provenance' .* is not valid Unicode text",
        ),
    ],
)
def test_records_that_json_has_no_word_for_are_refused(
    channel, tmp_path, provenance, message
):
    with pytest.raises(InputError, match=message):
        channel.with_record(ChannelRecord(provenance=provenance)).save(
            tmp_path / "c.json"
        )
    assert os.listdir(tmp_path) == []


def test_public_provenance_keeps_what_is_listed_only(channel):
    kept = {"tool": "t", "version": "1", "mechanism": "optimal", "method": "vertices"}
    record = ChannelRecord(
        provenance={**kept, "seconds": 3, "sha256": "x"}, after=("0" * 64,)
    )
    public = channel.with_record(record).public()
    assert public.record == ChannelRecord(provenance=kept)
    assert public.joint is None


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("achieved.eps_u", 10**400),
        ("achieved.eps_u", True),
        ("achieved.eps_l", "nan"),
        ("utility.nmi", "inf"),
        ("utility.cost_lower_bound", "inf"),
        ("utility.truth", [0.5]),
        ("utility.more", 10**400),
        ("utility.truth_by_column.b", "nan"),
        ("utility.law.columns.a", None),
        ("utility.law.total_variation", "x"),
        ("certificate.gap_nmi", {}),
    ],
)
def test_figures_that_are_no_numbers_are_refused(channel, tmp_path, place, value):
    record = ChannelRecord(
        achieved={"eps_l": 0.5, "eps_u": math.inf},
        utility={
            "nmi": 0.4,
            "cost_lower_bound": -math.inf,
            "truth_by_column": {"b": 0.5},
            "law": {"columns": {"a": 0.0}, "total_variation": 0.0, "pairs": None},
        },
        certificate={"gap_nmi": None},
    )
    channel.with_record(record).save(tmp_path / "c.json")
    assert Channel.load(tmp_path / "c.json").record == record

    def forge(document):
        *path, name = place.split(".")
        entries = document
        for part in path:
            entries = entries[part]
        entries[name] = value

    rewrite(tmp_path / "c.json", forge, tmp_path / "forged.json")
    message = rf"{place} .* must be a number"
    with pytest.raises(InputError, match=message):
        Channel.load(tmp_path / "forged.json")
