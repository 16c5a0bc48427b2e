"""Ways to draw the same records a second time, each with the hole first, and then closed by the ledger."""

from __future__ import annotations

import csv
import gzip
import random
import shutil

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from mechdesign.auditing.joint_leakage import compose
from mechdesign.channel.channel import Channel
from mechdesign.core.errors import InputError, StartAgain
from mechdesign.core.wording import at_most
from mechdesign.formats.csv_text import TextOptions
from mechdesign.jobs import file_run as run
from mechdesign.jobs.job import Job
from mechdesign.jobs.ledger import Ledger
from mechdesign.jobs.past_releases import history_of
from mechdesign.jobs.release_file import sanitise_file
from mechdesign.jobs.side_files import read_manifest
from mechdesign.jobs.target import PartFiles
from mechdesign.jobs.writing import write_release
from mechdesign.release.samplers import Policy
from mechdesign.tables.joint import Joint
from mechdesign.tables.variable import Variable

D = 2**53
JOB = Variable(("job",), (("a",), ("b",)))
REL = Variable(("rel",), (("w",), ("h",)))
TABLE = Joint(REL, JOB, ((3, 1), (1, 3)))
CHANCE = random.Random(1)
ROWS = [
    [str(i), CHANCE.choice("ab"), str(i / 8), "x, y" if i % 3 else 'q"q']
    for i in range(200)
]
HEADER = ["id", "job", "score", "note"]

AGAIN = "these records have been released through this channel before"


def write(path, rows, header=HEADER, *, delimiter=",", encoding="utf-8", **more):
    with open(path, "w", newline="", encoding=encoding) as stream:
        csv.writer(stream, delimiter=delimiter, **more).writerows([header, *rows])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    coin = ((D // 4, D - D // 4), (D // 2, D // 2))
    Channel(JOB, ("y", "z"), coin, D, joint=TABLE).save("channel.json")
    write("in.csv", ROWS)
    return tmp_path


def release(
    target, *, source="in.csv", channel="channel.json", ledger="ledger.db", **options
):
    return sanitise_file(
        Channel.load(channel),
        source,
        target,
        ledger=ledger,
        channel_files=[channel],
        **{"keep": "all"} | options,
    )


def released(path, delimiter=","):
    """The released symbol of every record, by its identifier."""
    with open(path, newline="", encoding="utf-8") as stream:
        return {
            row["id"]: row["job"] for row in csv.DictReader(stream, delimiter=delimiter)
        }


def of_parquet(path):
    table = pq.read_table(path)
    return dict(
        zip(map(str, table["id"].to_pylist()), table["job"].to_pylist(), strict=True)
    )


def entries(ledger="ledger.db"):
    book = Ledger(ledger)
    with book.reading() as db:
        return book.releases(db)


def shuffled(seed=1):
    rows = list(ROWS)
    random.Random(seed).shuffle(rows)
    return rows


def test_the_same_again(folder):
    first = release("one.csv")
    assert first.ledger == str(folder / "ledger.db")
    assert release("two.csv").sha256 == first.sha256
    assert release("one.csv").already
    assert [entry.state for entry in entries()] == ["done", "done"]


def test_other_packings_of_the_same_records_get_the_same_draws(folder):
    """CSV, other delimiters, quotes, encodings, columns in another order, gzip and Parquet: one data set."""
    write("d.csv", ROWS, delimiter=";")
    write("q.csv", ROWS, quoting=csv.QUOTE_ALL)
    write("e.csv", ROWS, encoding="utf-16")
    write("c.csv", [row[::-1] for row in ROWS], HEADER[::-1])
    (folder / "g.csv.gz").write_bytes(gzip.compress((folder / "in.csv").read_bytes()))
    pq.write_table(pa.csv.read_csv("in.csv"), "in.parquet")
    release("one.csv")
    first = released("one.csv")
    release("d-out.csv", source="d.csv", text=TextOptions(delimiter=";"))
    release("q-out.csv", source="q.csv")
    release("e-out.csv", source="e.csv", text=TextOptions(encoding="utf-16"))
    release("c-out.csv", source="c.csv")
    release("g-out.csv", source="g.csv.gz")
    release("p-out.parquet", source="in.parquet")
    assert released("d-out.csv", ";") == first
    assert released("q-out.csv") == first
    with open("e-out.csv", encoding="utf-16", newline="") as stream:
        assert {row["id"]: row["job"] for row in csv.DictReader(stream)} == first
    assert released("c-out.csv") == first
    assert released("g-out.csv") == first
    assert of_parquet("p-out.parquet") == first
    assert len({entry.drawn[0].job for entry in entries()}) == 1
    assert len({entry.unordered for entry in entries()}) == 1


@pytest.mark.parametrize("first", ["in.csv", "in.parquet"])
def test_a_sorted_or_shuffled_copy_is_refused(folder, first):
    pq.write_table(pa.csv.read_csv("in.csv"), "in.parquet")
    pq.write_table(
        pa.csv.read_csv("in.csv").take(pa.array(range(199, -1, -1))), "sorted.parquet"
    )
    write("shuffled.csv", shuffled())
    suffix = first[2:]
    release(f"one{suffix}", source=first, ledger=None)
    release("hole.csv", source="shuffled.csv", ledger=None)
    drawn = released("one.csv") if suffix == ".csv" else of_parquet("one.parquet")
    assert drawn != released("hole.csv")  # a second independent draw, and nobody knows
    release(f"two{suffix}", source=first)
    for source, target in (
        ("shuffled.csv", "no.csv"),
        ("sorted.parquet", "no.parquet"),
    ):
        with pytest.raises(
            InputError,
            match=rf"{AGAIN} \(to .*/two\..*known by their row number\), and would be",
        ):
            release(target, source=source)
        assert not (folder / target).exists()
    assert len(entries()) == 1


def test_a_copy_of_the_channel_in_another_folder(folder):
    (folder / "far").mkdir()
    shutil.copy("channel.json", "far/copy.json")
    write("shuffled.csv", shuffled())
    release("one.csv")
    release("two.csv", channel="far/copy.json")
    assert released("one.csv") == released("two.csv")
    with pytest.raises(InputError, match=AGAIN):
        release("no.csv", channel="far/copy.json", source="shuffled.csv")


def test_most_of_the_records_among_others(folder):
    """Yesterday's file and new rows, a part of it: by row numbers all would be drawn again."""
    more = [[str(i), "b", "0", "new"] for i in range(1000, 1020)]
    write("more.csv", [*more, *ROWS])
    write("part.csv", ROWS[100:180])
    write(
        "few.csv", [*ROWS[:20], *[[str(i), "b", "0", "new"] for i in range(2000, 2180)]]
    )
    release("one.csv")
    with pytest.raises(
        InputError,
        match=r"about 91 % of these records have been released .*[(]identity='COL'[)]",
    ):
        release("no.csv", source="more.csv")
    with pytest.raises(InputError, match=AGAIN):
        release("no.csv", source="part.csv")
    told = release("few-out.csv", source="few.csv").notices
    assert [
        text
        for text in told
        if text.startswith("about 10 % of these records have been released")
    ]


def test_records_that_look_alike_are_not_taken_for_the_same(folder):
    """Two months with three towns each share all their kinds of rows, and nothing says that they share a person."""
    for seed, name in ((1, "june.csv"), (2, "july.csv")):
        draw = random.Random(seed)
        write(
            name,
            [[draw.choice("ab"), draw.choice("xyz")] for _ in range(300)],
            ["job", "town"],
        )
    release("one.csv", source="june.csv")
    assert release("two.csv", source="july.csv").notices == ()


def test_with_an_identity_records_keep_their_draws(folder):
    write("shuffled.csv", shuffled())
    write("more.csv", [["1000", "b", "0", "new"], *shuffled(2)])
    release("one.csv", identity="id")
    release("two.csv", source="shuffled.csv", identity="id")
    release("three.csv", source="more.csv", identity="id")
    assert released("one.csv") == released("two.csv")
    assert released("one.csv").items() < released("three.csv").items()


@pytest.mark.parametrize(
    ("before", "now"), [(None, "id"), ("id", None), ("id", "score")]
)
def test_another_identity_is_another_draw(folder, before, now):
    write("shuffled.csv", shuffled())
    release("one.csv", identity=before)
    for source in ("in.csv", "shuffled.csv"):
        with pytest.raises(
            InputError, match=f"{AGAIN} .* known by (the column 'id'|their row number)"
        ):
            release("no.csv", source=source, identity=now)
    release("two.csv", source="shuffled.csv", identity=now, fresh_draw=True)
    release("three.csv", source="shuffled.csv", identity=now)  # nothing new is drawn
    assert released("two.csv") == released("three.csv")


def test_a_fresh_draw_says_what_budget_it_leads_to(folder):
    release("one.csv")
    for draws in (2, 3):
        told = release(
            "two.csv",
            fresh_draw=True,
            force=True,
            manifest=f"{draws}.json",
            internal_manifest="i.json",
        )
        joint = compose([Channel.load("channel.json")] * draws)
        known = entries()[-1].joint
        assert known == {
            "draws": draws,
            "eps_l": joint.eps_l,
            "eps_u": joint.eps_u,
            "eps_ldp": joint.eps_ldp,
        }
        assert [
            text
            for text in told.notices
            if f"all {draws} draws of a record together make any value of" in text
        ]
        assert [
            f"eps_l {at_most(joint.eps_l)}, eps_u {at_most(joint.eps_u)}" in text
            for text in told.notices
        ].count(True) == 1
        assert f"released before with {draws - 1} other draw" in told.notices[0]
        assert read_manifest(f"{draws}.json", "public").draw == draws - 1
        assert len(read_manifest("i.json", "internal").earlier) == draws - 1
    assert released("one.csv") != released("two.csv")
    assert [entry.drawn[0].draw for entry in entries()] == [0, 1, 2]
    again = release("three.csv")
    assert released("two.csv") == released(
        "three.csv"
    )  # the latest draw is the one that counts
    assert "released before with 2 other draws" in again.notices[0]


def test_a_fresh_draw_of_a_sorted_copy(folder):
    write("shuffled.csv", shuffled())
    release("one.csv")
    told = release("two.csv", source="shuffled.csv", fresh_draw=True).notices
    assert "released before with 1 other draw" in told[0]
    assert entries()[-1].joint["draws"] == 2
    release(
        "three.csv", source="shuffled.csv"
    )  # the second draw once more, not a third one
    assert released("two.csv") == released("three.csv")


def test_a_fresh_draw_of_what_was_never_released(folder):
    told = release("one.csv", fresh_draw=True).notices
    assert told == (
        "these records have not been released before: their first draw is a fresh one in any case",
    )
    assert entries()[0].drawn[0].draw == 0


def test_a_budget_that_cannot_be_known_is_said_to_be_unknown(folder):
    public = Channel.load("channel.json")
    public.save("public.json", public=True)
    release("one.csv", channel="public.json")
    told = release("two.csv", channel="public.json", fresh_draw=True).notices
    assert [
        text
        for text in told
        if "the joint budget of all 2 draws is not known: the channels are public"
        in text
    ]


def test_the_same_data_through_another_channel(folder):
    rows = ((D // 4, D - D // 4), (D // 8, D - D // 8))
    Channel(JOB, ("y", "z"), rows, D, joint=TABLE).save("weaker.json")
    write("shuffled.csv", shuffled())
    release("one.csv")
    told = release(
        "two.csv", source="shuffled.csv", channel="weaker.json", manifest="two.json"
    ).notices
    assert [
        text
        for text in told
        if "these data have been released through another channel, or in an" in text
    ]
    assert (
        "Several channels have been applied to the same records"
        in (folder / "two.json").read_text()
    )
    release("three.csv", channel="weaker.json", fresh_draw=True, source="shuffled.csv")
    together = [Channel.load("channel.json"), *[Channel.load("weaker.json")] * 2]
    assert entries()[-1].joint["eps_ldp"] == compose(together).eps_ldp
    write("more.csv", [["x", "a", "1", "1"]])
    release("four.csv", source="more.csv", channel="weaker.json", manifest="four.json")
    assert "Several channels" not in (folder / "four.json").read_text()


def test_another_column_through_the_same_channel(folder):
    write("in.csv", [[i, a, "b"] for i, a, *_ in ROWS], ["id", "job", "wish"])
    release("one.csv")
    with pytest.raises(
        InputError,
        match="was applied to 'job' before; on 'wish' it would use the same random",
    ):
        release("two.csv", columns={"job": "wish"})
    release("two.csv", columns={"job": "wish"}, fresh_draw=True)


@pytest.mark.parametrize(
    ("before", "now", "fits"),
    [
        ({"normalise": "none"}, {"normalise": "NFC"}, True),
        ({"normalise": "none", "unknown": "marginal"}, {"normalise": "NFC"}, False),
        ({"normalise": "NFC"}, {"normalise": "none", "unknown": "output:y"}, False),
        (
            {"normalise": "NFC", "unknown": "marginal"},
            {"normalise": "NFC", "unknown": "refuse"},
            True,
        ),
    ],
)
def test_symbols_must_not_be_read_in_another_way(folder, before, now, fits):
    release("one.csv", policy=Policy(**before))
    if fits:
        release("two.csv", policy=Policy(**now))
        assert released("one.csv") == released("two.csv")
    else:
        with pytest.raises(
            InputError,
            match=r"released with the normalisation .*, which gives some records another",
        ):
            release("two.csv", policy=Policy(**now))


def test_the_same_bytes_read_in_another_way_are_other_records(folder):
    (folder / "in.csv").write_text(
        "job,b;job\n" + "".join(f"a,{i};b\n" for i in range(50))
    )
    policy = Policy(unknown="output:y", missing="output:y")
    release("one.csv", policy=policy)
    release("two.csv", text=TextOptions(delimiter=";"), policy=policy)
    assert len({entry.drawn[0].job for entry in entries()}) == 2


@pytest.mark.parametrize("other", [{"identity": "id"}, {"source": "shuffled.csv"}])
def test_another_job_that_finishes_meanwhile_is_seen(folder, monkeypatch, other):
    write("shuffled.csv", shuffled())

    def meanwhile(*arguments, **more):
        monkeypatch.setattr(run, "write_release", write_release)
        release("two.csv", **other)
        return write_release(*arguments, **more)

    monkeypatch.setattr(run, "write_release", meanwhile)
    with pytest.raises(InputError, match=AGAIN):
        release("one.csv")
    assert not (folder / "one.csv").exists()
    assert len(entries()) == 1


@pytest.mark.parametrize("identity", [None, "id"])
@pytest.mark.parametrize("times", [1, 2])
def test_fresh_draws_at_once_are_different_ones(folder, monkeypatch, identity, times):
    """Several processes chose the same number: equal files, which the ledger counted as draws."""
    fresh = {"fresh_draw": True, "identity": identity}
    release("first.csv", identity=identity)
    names = iter(["two.csv", "three.csv"][:times])

    def meanwhile(*arguments, **more):
        name = next(names, None)
        if name is not None:
            monkeypatch.setattr(run, "write_release", write_release)
            release(name, **fresh)
            monkeypatch.setattr(run, "write_release", meanwhile)
        return write_release(*arguments, **more)

    monkeypatch.setattr(run, "write_release", meanwhile)
    release("one.csv", **fresh)
    draws = [entry.drawn[0].draw for entry in entries()]
    assert draws == list(range(times + 2))
    assert released("one.csv") != released("two.csv")


def test_a_fresh_draw_that_was_made_at_the_last_moment_is_not_made_again(
    folder, monkeypatch
):
    release("first.csv")
    enter = Job.enter

    def late(*arguments, **more):
        monkeypatch.setattr(Job, "enter", enter)
        release("two.csv", fresh_draw=True)
        return enter(*arguments, **more)

    monkeypatch.setattr(Job, "enter", late)
    with pytest.raises(StartAgain, match="released these records meanwhile"):
        release("one.csv", fresh_draw=True)
    assert not (folder / "one.csv").exists()
    assert [entry.drawn[0].draw for entry in entries()] == [0, 1]


def test_a_run_that_fails_leaves_no_entry(folder):
    write("bad.csv", [["1", "c", "1", "1"]])
    with pytest.raises(InputError, match="does not know the symbol of"):
        release("one.csv", source="bad.csv")
    (folder / "one.csv").mkdir()
    with pytest.raises(InputError, match="is a folder"):
        release("one.csv")
    assert entries() == []


def test_a_release_that_was_seen_is_not_forgotten_when_its_repetition_fails(
    folder, monkeypatch
):
    """Killed after the output had its name, which somebody read and removed; then the disk fails in the next run."""

    def killed(*_arguments):
        raise InputError("killed")

    def broken(*_arguments):
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(Job, "done", killed)
        with pytest.raises(InputError, match="is complete, but then: killed"):
            release("one.csv")
    before = entries()
    (folder / "one.csv").unlink()
    with monkeypatch.context() as patch:
        patch.setattr(PartFiles, "rename", broken)
        with pytest.raises(InputError, match="cannot be written: input/output error"):
            release("one.csv")
    assert entries() == before
    write("shuffled.csv", shuffled())
    with pytest.raises(InputError, match=AGAIN):
        release("two.csv", source="shuffled.csv")


def test_the_total_counts_releases_of_the_same_records_among_others(folder):
    """The second release has all records of the first, and more: each record of the first was drawn twice."""
    release("one.csv")
    write("more.csv", [*ROWS, *([f"new {i}", "a", "1", ""] for i in range(20))])
    release("two.csv", source="more.csv", fresh_draw=True)
    for source in ("in.csv", "more.csv"):
        _, found, budget, told, _ = history_of(Ledger("ledger.db"), source)
        assert [entry.source for entry in found] == ["in.csv", "more.csv"]
        assert budget["draws"] == 2, told


def test_links_to_a_ledger_are_that_ledger(folder):
    (folder / "far").mkdir()
    (folder / "link.db").symlink_to(folder / "far" / "ledger.db")
    release("one.csv", ledger="far/ledger.db")
    assert release("two.csv", ledger="link.db").ledger == str(
        folder / "far" / "ledger.db"
    )
    assert released("one.csv") == released("two.csv")
    assert sorted(path.name for path in (folder / "far").iterdir()) == [
        "ledger.db",
        "ledger.db.key",
    ]


@pytest.mark.parametrize("side", ["manifest", "internal_manifest", "codebook"])
@pytest.mark.parametrize("text", ["hello", "{}", "the manifest of another release"])
def test_other_files_are_no_sides_of_a_release_that_is_complete(folder, side, text):
    release("one.csv", **{side: "side"})
    right = (folder / "side").read_bytes()
    assert release("one.csv", **{side: "side"}).already
    write("more.csv", [["x", "a", "1", "1"]])
    release("two.csv", source="more.csv", manifest="other")
    wrong = (folder / "other").read_text() if text.startswith("the") else text
    (folder / "side").write_text(wrong)
    with pytest.raises(InputError, match=r"one\.csv exists"):
        release("one.csv", **{side: "side"})
    assert (folder / "side").read_text() == wrong
    assert not release("one.csv", force=True, **{side: "side"}).already
    assert (folder / "side").read_bytes() == right
