"""Records whose symbol is another one than when they were released before."""

from __future__ import annotations

import csv
import json
import math
import random

import numpy as np
import pandas as pd
import pytest

from mechdesign import sanitise
from mechdesign.channel.channel import Channel
from mechdesign.core.errors import InputError, StartAgain
from mechdesign.core.wording import at_most
from mechdesign.jobs import file_run as run
from mechdesign.jobs.earlier_releases import RELEASED_MEANWHILE
from mechdesign.jobs.job import Job
from mechdesign.jobs.joint_budget import local_budget
from mechdesign.jobs.ledger import Ledger
from mechdesign.jobs.past_releases import history_of
from mechdesign.jobs.release_file import sanitise_file
from mechdesign.jobs.writing import write_release
from mechdesign.release.identified_draws import FirstSymbols
from mechdesign.release.samplers import Policy
from mechdesign.tables.joint import Joint
from mechdesign.tables.variable import Variable

D = 2**53
JOB = Variable(("job",), (("a",), ("b",)))
TABLE = Joint(Variable(("rel",), (("w",), ("h",))), JOB, ((3, 1), (1, 3)))
COUNT = 400


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = ((D // 4, D - D // 4), (D // 2, D // 2))
    Channel(JOB, ("y", "z"), rows, D, joint=TABLE).save("channel.json")
    write("monday.csv", dict.fromkeys(range(COUNT), "a"))
    return tmp_path


def write(path, people):
    with open(path, "w", newline="") as stream:
        csv.writer(stream).writerows([("id", "job"), *people.items()])


def release(day, **options):
    options = {"identity": "id", "ledger": "ledger.db", **options}
    done = sanitise_file(
        Channel.load("channel.json"),
        f"{day}.csv",
        f"{day}-out.csv",
        internal_manifest=f"{day}.json",
        # The identifiers stand in the order of the records, of which all have one job at first.
        **{"keep": "all", "keep_order": True} | options,
    )
    with open(f"{day}-out.csv", newline="") as stream:
        return {row["id"]: row["job"] for row in csv.DictReader(stream)}, done


def changed(day, which, extra=10):
    """Another night: some records have the other symbol, some are new, and the order is another one."""
    people = [(i, "b" if i in which else "a") for i in range(COUNT)] + [
        (COUNT + i, "a") for i in range(extra)
    ]
    random.Random(1).shuffle(people)
    write(f"{day}.csv", dict(people))


def test_a_changed_record_is_refused(folder):
    """The hole: its random number met two symbols, so the pair of outputs told more than both draws may."""
    first, _ = release("monday")
    changed("tuesday", {7})
    with pytest.raises(
        InputError,
        match=r"line \d+: the symbol of 'job' is another one than when .*[(]changed='keep'[)]",
    ):
        release("tuesday")
    assert not (folder / "tuesday-out.csv").exists()
    changed("tuesday", ())
    second, done = release("tuesday")
    assert first.items() <= second.items()
    assert done.notices == ()


def test_a_changed_record_may_keep_its_old_output(folder):
    first, _ = release("monday")
    changed("tuesday", range(100))
    second, done = release("tuesday", changed="keep")
    assert first.items() <= second.items()
    assert done.notices == (
        "100 records have another symbol than before and kept their old output",
    )
    internal = json.loads((folder / "tuesday.json").read_text())
    assert (internal["released"][0]["changed"], internal["released"][0]["changes"]) == (
        "keep",
        100,
    )
    assert any(
        "keeps the value that was released for its first one" in text
        for text in internal["voids"]
    )
    # The first symbol is the one that counts, also on the third night, and for those that were new on the second.
    changed("wednesday", range(50, COUNT + 5))
    third, done = release("wednesday", changed="keep")
    assert second.items() <= third.items()
    assert done.notices[0].startswith("350 records")


def test_a_changed_record_may_be_drawn_anew(folder):
    first, _ = release("monday")
    changed("tuesday", range(300))
    second, done = release("tuesday", changed="redraw")
    assert done.notices == (
        "300 records have another symbol than before and were drawn anew: each further symbol of a record adds at most "
        f"{at_most(math.log(2))} to what its releases tell (the local budget of the channel)",
    )
    assert all(second[str(i)] == first[str(i)] for i in range(300, COUNT))
    # The two draws are independent: P(y, z) = 1/4 * 1/2, where one number for both would allow no (y, z) at all.
    pairs = [(first[str(i)], second[str(i)]) for i in range(300)]
    for one, p in (("y", 1 / 4), ("z", 3 / 4)):
        for two in "yz":
            assert pairs.count((one, two)) / 300 == pytest.approx(
                p / 2, abs=5 * math.sqrt(p / 2 / 300)
            )
    # The same symbol has the same draw whenever it comes, and the first one its own.
    changed("wednesday", range(300))
    third, _ = release("wednesday", changed="redraw")
    assert third == second
    # The budget of the one draw is not that of two symbols.
    channels = [Channel.load("channel.json")]
    for day in ("monday", "tuesday"):
        told = history_of(Ledger("ledger.db"), f"{day}.csv", channels=channels)[3]
        assert "the one draw of a record makes any value of" in told
        assert "but for records that were drawn anew" in told
    changed("thursday", ())
    assert first.items() <= release("thursday", changed="redraw")[0].items()


def test_a_fresh_draw_begins_anew(folder):
    release("monday")
    changed("tuesday", {7})
    release(
        "tuesday", fresh_draw=True
    )  # the random numbers are others, and each has met one symbol
    with pytest.raises(InputError, match=r"line 9: the symbol of 'job' is another one"):
        release("monday", force=True)


@pytest.mark.parametrize("times", [1, 2])
def test_another_job_that_releases_the_same_records_meanwhile(
    folder, monkeypatch, times
):
    """They were said to be known under other identifiers, which was false: they are drawn again."""
    jobs = random.Random(1).choices("ab", k=COUNT)
    write("monday.csv", dict(enumerate(jobs)))
    names = iter(f"other{k}.csv" for k in range(times))

    def meanwhile(*arguments, **more):
        name = next(names, None)
        if name is not None:
            monkeypatch.setattr(run, "write_release", write_release)
            sanitise_file(
                Channel.load("channel.json"),
                "monday.csv",
                name,
                identity="id",
                ledger="ledger.db",
            )
            monkeypatch.setattr(run, "write_release", meanwhile)
        return write_release(*arguments, **more)

    monkeypatch.setattr(run, "write_release", meanwhile)
    drawn, _ = release("monday")
    other = pd.read_csv("other0.csv")["job"].tolist()
    assert [*drawn.values()] == other
    assert "the one draw" in history_of(Ledger("ledger.db"), "monday.csv").sentence


def test_records_that_are_released_again_and_again_are_no_fault_of_theirs(
    folder, monkeypatch
):
    def always(*_arguments):
        raise StartAgain(RELEASED_MEANWHILE)

    monkeypatch.setattr(Job, "renewed", always)
    with pytest.raises(StartAgain, match="released these records meanwhile") as error:
        release("monday")
    assert error.value.exit_code == 75


def test_another_job_that_releases_another_symbol_meanwhile_is_seen(
    folder, monkeypatch
):
    changed("tuesday", {7})

    def meanwhile(*arguments, **more):
        monkeypatch.setattr(run, "write_release", write_release)
        release("tuesday")
        return write_release(*arguments, **more)

    monkeypatch.setattr(run, "write_release", meanwhile)
    with pytest.raises(
        InputError,
        match="another job has released these records meanwhile; start again",
    ):
        release("monday")
    assert not (folder / "monday-out.csv").exists()
    with pytest.raises(InputError, match=r"line 9: the symbol of 'job' is another one"):
        release("monday")


def test_missing_symbols_are_symbols_here(folder):
    write("monday.csv", {1: "", 2: "a"})
    policy = Policy(missing="marginal")
    release("monday", policy=policy)
    write("tuesday.csv", {1: "a", 2: "a"})
    with pytest.raises(InputError, match=r"line 2: the symbol of 'job' is another one"):
        release("tuesday", policy=policy)


def test_frames_and_files_know_of_each_other(folder):
    frame = pd.DataFrame({"id": range(COUNT), "job": "a"})
    channel = Channel.load("channel.json")
    sanitise(frame, channel, ledger="ledger.db", identity="id", keep="all")
    changed("tuesday", {3})
    with pytest.raises(
        InputError, match=r"line \d+: the symbol of 'job' is another one"
    ):
        release("tuesday")
    frame.loc[5, "job"] = "b"
    with pytest.raises(
        InputError,
        match=r"at place 5 .* of its part: the symbol of 'job' is another one",
    ):
        sanitise(frame, channel, ledger="ledger.db", identity="id", keep="all")
    with pytest.warns(
        UserWarning,
        match="1 records have another symbol than before and kept their old output",
    ):
        kept = sanitise(
            frame,
            channel,
            ledger="ledger.db",
            identity="id",
            changed="keep",
            keep="all",
        )
    assert kept["job"].tolist() == list(release("monday")[0].values())


def test_releases_without_symbols_are_told_of(folder):
    monday, done = release("monday")
    assert done.notices == ()
    ledger = Ledger("ledger.db")
    with ledger.changing() as db:  # as a cluster, or an earlier version, leaves it
        (entry,) = ledger.releases(db)
        ledger.enter(db, entry.model_copy(update={"ordered": None, "unordered": None}))
        db.execute("DELETE FROM known")
    changed("tuesday", {7})
    second, done = release("tuesday")
    assert [
        text
        for text in done.notices
        if "whether some have another symbol now cannot be seen" in text
    ]
    assert all(second[name] == monday[name] for name in monday if name != "7")


def test_the_ledger_tells_nobody_the_symbols(folder):
    """Two ledgers of different symbols differ in no byte that means anything without the key."""
    release("monday")
    ledger = Ledger("ledger.db")
    with ledger.reading() as db:
        ((records, symbols),) = db.execute(
            "SELECT records, symbols FROM known"
        ).fetchall()
        drawn = ledger.releases(db)[0].drawn[0]
        ((hashes, codes),) = ledger.known(db, drawn, ledger.key_of(drawn))
    assert (len(records), len(symbols)) == (8 * COUNT, 4 * COUNT)
    assert (len(hashes), codes.tolist()) == (COUNT, [0] * COUNT)
    assert (
        np.count_nonzero(np.frombuffer(symbols, "<i4")) > COUNT - 5
    )  # all symbols are number 0


def test_options(folder):
    with pytest.raises(
        InputError,
        match=r"changed \('drop'\) must be one of 'refuse', 'keep', 'redraw'",
    ):
        release("monday", changed="drop")
    with pytest.raises(
        InputError, match="changed=keep is about records known by identity"
    ):
        release("monday", changed="keep", identity=None)


def test_local_budget():
    """log W(y|x) / W(y|x') at its largest, rounded up; infinite where an output is impossible under one symbol."""

    def budget(rows, **options):
        useful = Variable(("x",), (("a",), ("b",)))
        labels = ("u", "v")[: len(rows[0])]
        return local_budget(Channel(useful, labels, rows, **options))

    assert budget([[1, 3], [2, 2]], denominator=4) == pytest.approx(
        math.log(2), abs=1e-15
    )
    assert budget([[1, 3], [2, 2]], denominator=4) >= math.log(2)
    assert budget([[0, 4], [2, 2]], denominator=4) == math.inf
    assert budget([[5], [5]], denominator=5) == 0.0
    # 1/4 and 2/4 as a row over 4 and one over 8.
    assert budget([[1, 3], [4, 4]], totals=(4, 8)) == budget(
        [[1, 3], [2, 2]], denominator=4
    )


def test_memory_has_an_end():
    seen = FirstSymbols(3)
    for first, codes, full in ((0, [0, 1], False), (2, [0, 0], True)):
        seen.look(np.arange(first, first + 2, dtype=np.uint64), np.array(codes))
        assert seen.full == full
    new, found = seen.find(np.arange(4, dtype=np.uint64), np.full(4, 7))
    assert (new.tolist(), found.tolist()) == ([False, False, False, True], [0, 1, 0, 7])
