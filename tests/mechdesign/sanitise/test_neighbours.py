from __future__ import annotations

import os
import shutil

import pytest

from mechdesign.channel.channel import Channel
from mechdesign.core.errors import InputError
from mechdesign.formats.inputs import TextOptions
from mechdesign.release.policies import Policy
from mechdesign.sanitise import apply as run
from mechdesign.sanitise.apply import sanitise_file
from mechdesign.sanitise.writing import write_release
from mechdesign.tables.variable import Variable

D = 2**53


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    coin = ((D // 2, D // 2), (D // 2, D // 2))
    Channel(Variable(("job",), (("a",), ("b",))), ("y", "z"), coin, D).save("channel.json")
    (tmp_path / "in.csv").write_text("id,job\n" + "".join(f"{i},a\n" for i in range(60)))
    return tmp_path


def release(target, *, source="in.csv", channel="channel.json", **options):
    return sanitise_file(Channel.load(channel), source, target, job_beside=channel, **options)


def same(one, other):
    with open(one, "rb") as first, open(other, "rb") as second:
        return first.read() == second.read()


def test_a_link_to_the_channel_has_the_same_job(folder):
    (folder / "sub").mkdir()
    (folder / "sub" / "link.json").symlink_to(folder / "channel.json")
    release("one.csv")
    release("two.csv", channel="sub/link.json")
    assert same("one.csv", "two.csv")
    assert not (folder / "sub" / "link.json.jobs").exists()


def test_a_copy_of_the_channel_does_not_draw_the_same_data_again(folder):
    shutil.copy("channel.json", "copy.json")
    release("one.csv")
    with pytest.raises(
        InputError, match=r"channel\.json\.jobs/.*\.json has released these data through this"
    ):
        release("two.csv", channel="copy.json")
    assert release("two.csv", channel="copy.json", fresh_draw=True).notices
    assert not same("one.csv", "two.csv")


def test_a_job_elsewhere_is_remembered(folder):
    (folder / "far").mkdir()
    release("one.csv", job="far/night.json")
    with pytest.raises(
        InputError, match=r"far/night\.json has released these data through this channel before"
    ):
        release("two.csv")
    release("two.csv", job="far/night.json")
    assert same("one.csv", "two.csv")
    (folder / "far" / "night.json").unlink()
    release("three.csv")  # of a job that is gone nothing is known


def test_a_job_that_failed_leaves_no_note(folder):
    (folder / "far").mkdir()
    (folder / "bad.csv").write_text("id,job\n1,c\n")
    with pytest.raises(InputError, match="does not know the symbol 'c'"):
        release("one.csv", source="bad.csv", job="far/night.json")
    assert sorted(os.listdir(folder)) == ["bad.csv", "channel.json", "far", "in.csv"]


def test_a_channel_in_a_folder_that_cannot_be_written(folder):
    (folder / "channel.json.jobs").write_text("in the way")
    assert release("one.csv", job="night.json").records == 60


def test_other_files_beside_a_job_are_none_of_its_business(folder):
    (folder / "notes.json").write_text("no job")
    first = sanitise_file(Channel.load("channel.json"), "in.csv", "one.csv", job="night.json")
    again = sanitise_file(Channel.load("channel.json"), "in.csv", "two.csv", job="night.json")
    assert first.sha256 == again.sha256
    with pytest.raises(InputError, match=r"night\.json has released these data"):
        sanitise_file(Channel.load("channel.json"), "in.csv", "three.csv", job="other.json")


@pytest.mark.parametrize("before", [None, "id"])
@pytest.mark.parametrize("now", [None, "id"])
def test_other_data_with_other_draws_are_told_of(folder, before, now):
    (folder / "more.csv").write_text((folder / "in.csv").read_text() + "60,b\n")
    release("one.csv", identity=before)
    told = [
        text for text in release("two.csv", source="more.csv", identity=now).notices if "other data" in text
    ]
    assert len(told) == (not before == now == "id")  # one job keeps the draws of its identifiers
    assert ["--identity" in text for text in told] == [now is None] * len(told)


def test_a_folder_is_no_job(folder):
    for name in (".", "far"):
        (folder / "far").mkdir(exist_ok=True)
        with pytest.raises(InputError, match="is a folder; give the name of a job file"):
            release("one.csv", job=name)


def test_the_same_data_through_another_channel(folder):
    rows = ((D // 4, D - D // 4), (D // 2, D // 2))
    Channel(Variable(("job",), (("a",), ("b",))), ("y", "z"), rows, D).save("weaker.json")
    release("one.csv")
    told = release("two.csv", channel="weaker.json", manifest="two.json").notices
    assert [
        text for text in told if "these data have been released through another channel, or in an" in text
    ]
    assert "Several channels have been applied to the same records" in (folder / "two.json").read_text()
    (folder / "more.csv").write_text("id,job\n1,a\n")
    assert release("three.csv", source="more.csv", channel="weaker.json", manifest="three.json").notices
    assert "Several channels" not in (folder / "three.json").read_text()


def test_another_job_that_finishes_meanwhile_is_seen(folder, monkeypatch):
    def meanwhile(*arguments):
        monkeypatch.setattr(run, "write_release", write_release)
        release("two.csv", identity="id")
        return write_release(*arguments)

    monkeypatch.setattr(run, "write_release", meanwhile)
    with pytest.raises(InputError, match=r"id-id\.json has released these data through this channel before"):
        release("one.csv")
    assert not (folder / "one.csv").exists()
    assert [path.name for path in (folder / "channel.json.jobs").glob("*.json")] == ["id-id.json"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"quote": None},
            "with the quote '\"', not none: records could get the random numbers of others; keep it",
        ),
        ({"delimiter": ";"}, "with the delimiter ',', not ';'"),
        ({"encoding": "latin-1"}, "with the encoding 'utf-8', not 'latin-1'"),
    ],
)
def test_the_same_bytes_read_in_another_way(folder, options, message):
    (folder / "in.csv").write_text("job,b;job\na,1;b\nb,2;b\n")
    policy = Policy(unknown="output:y", null="output:y")
    other = TextOptions(**options)
    release("one.csv", policy=policy)
    with pytest.raises(InputError, match=message):
        release("two.csv", text=other, policy=policy)
    release("two.csv", text=other, policy=policy, fresh_draw=True)
    (folder / "other.csv").write_text("id,job\n1,a\n")
    release("three.csv", source="other.csv", policy=policy, text=TextOptions(encoding="latin-1"))


@pytest.mark.parametrize("side", ["manifest", "internal_manifest", "codebook"])
@pytest.mark.parametrize("text", ["hello", "{}", "the manifest of another release"])
def test_other_files_are_no_sides_of_a_release_that_is_complete(folder, side, text):
    release("one.csv", job="night.json", **{side: "side"})
    right = (folder / "side").read_bytes()
    assert release("one.csv", job="night.json", **{side: "side"}).already
    (folder / "more.csv").write_text("id,job\n1,a\n")
    release("two.csv", source="more.csv", manifest="other")
    wrong = (folder / "other").read_text() if text.startswith("the") else text
    (folder / "side").write_text(wrong)
    with pytest.raises(InputError, match=r"one\.csv exists"):
        release("one.csv", job="night.json", **{side: "side"})
    assert (folder / "side").read_text() == wrong
    assert not release("one.csv", job="night.json", force=True, **{side: "side"}).already
    assert (folder / "side").read_bytes() == right


def test_another_column_of_the_same_data_has_a_job_of_its_own(folder):
    (folder / "in.csv").write_text("id,job,wish\n" + "".join(f"{i},a,a\n" for i in range(60)))
    release("one.csv")
    with pytest.raises(InputError, match=r"has applied this channel to 'job'; on 'wish' .*; use another job"):
        release("two.csv", columns={"job": "wish"})
    told = release("two.csv", columns={"job": "wish"}, job="wish.json").notices
    assert [text for text in told if "or in another column, as well" in text]
    one, two = ((folder / name).read_text().splitlines()[1:] for name in ("one.csv", "two.csv"))
    assert [line.split(",")[1] for line in one] != [line.split(",")[2] for line in two]


@pytest.mark.parametrize("place", ["far/link.json", "link.json"])
def test_a_link_to_a_job_is_that_job(folder, place):
    (folder / "far").mkdir()
    release("one.csv", job="far/night.json")
    (folder / place).symlink_to(folder / "far" / "night.json")
    release("two.csv", job=place)
    assert same("one.csv", "two.csv")
    assert (folder / place).is_symlink()
    assert sorted(path.name for path in folder.rglob(".*.lock")) == [".night.json.lock"]


def test_what_is_no_job_gets_no_lock(folder):
    (folder / "notes.json").write_text("no job")
    with pytest.raises(InputError, match="is not a job file"):
        release("one.csv", job="notes.json")
    assert not list(folder.rglob(".*.lock"))
