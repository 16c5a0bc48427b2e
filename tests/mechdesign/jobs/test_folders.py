"""Folders and globs: each file a data set of its own, and all of them together or nothing."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

from mechdesign.core.documents import read_document
from mechdesign.core.errors import InputError
from mechdesign.formats.opening import files_of, is_folder
from mechdesign.jobs import folder_stage, release_file
from mechdesign.jobs.folder_stage import MARKER, ReleasedFolder
from mechdesign.jobs.ledger import Ledger
from mechdesign.jobs.release_file import sanitise_file
from mechdesign.jobs.release_path import sanitise_path
from tests.cases.released_records import mixing_channel, people

CHANNEL = mixing_channel()
FILES = {"dt=1/a.csv": (0, 40), "dt=1/b.csv": (40, 80), "dt=2/c.csv": (80, 100)}


def write(path: Path, begin: int, end: int) -> None:
    """People from a number to another, told apart by an id."""
    path.parent.mkdir(parents=True, exist_ok=True)
    frame = people(end)[begin:][["id", "job", "pay"]]
    if path.suffix == ".parquet":
        frame.to_parquet(path, index=False)
    else:
        frame.to_csv(path, index=False)


@pytest.fixture
def place(tmp_path, monkeypatch):
    """The working folder, with the files in `in`."""
    monkeypatch.chdir(tmp_path)
    for name, rows in FILES.items():
        write(tmp_path / "in" / name, *rows)
    return tmp_path


def release(source="in", target="out", **how):
    return sanitise_path(
        [CHANNEL],
        source,
        target,
        **{"keep": "all"} | {"ledger": "ledger.db", "force": False, **how},
    )


def contents(folder) -> dict[str, bytes]:
    folder = Path(folder)
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def entries():
    ledger = Ledger("ledger.db")
    with ledger.reading() as db:
        return ledger.releases(db)


def test_every_file_is_released_as_if_it_were_alone(place):
    done = release()
    assert (done.records, done.columns, done.already) == (100, ("job",), False)
    marker = read_document("out/_SUCCESS", ReleasedFolder)
    assert set(marker.files) == set(FILES)
    assert (
        set(contents("out"))
        == marker.names
        == {*FILES, MARKER, *(f"_manifests/{name}.json" for name in FILES)}
    )
    for name in FILES:
        alone = sanitise_file(
            [CHANNEL],
            f"in/{name}",
            "alone.csv",
            ledger="ledger.db",
            force=True,
            keep="all",
        )
        assert Path("alone.csv").read_bytes() == Path("out", name).read_bytes()
        assert marker.files[name] == alone.sha256
    assert [entry.target for entry in entries()[:3]] == [
        os.path.realpath(f"out/{name}") for name in FILES
    ]
    assert not [path for path in os.listdir(place) if path.startswith(".")]


def test_rows_of_different_files_have_different_random_numbers(place):
    """By row number each file has a key of its own: 400 like records give two different sequences."""
    for name in ("1", "2"):
        Path("in", f"{name}.csv").write_text("pay,job\n" + f"{name},a\n" * 400)
    release("in/*.csv")
    first, second = (
        pyarrow.csv.read_csv(f"out/{name}.csv")["job"].to_pylist() for name in "12"
    )
    assert 100 < sum(a != b for a, b in zip(first, second, strict=True)) < 350


def test_an_identifier_has_one_draw_in_whatever_file_it_comes(place):
    write(place / "in" / "dt=3" / "again.csv", 30, 60)
    release(identity="id")
    drawn = {}
    for name in files_of("out")[1]:
        for record in pyarrow.csv.read_csv(f"out/{name}").to_pylist():
            assert drawn.setdefault(record["id"], record["job"]) == record["job"]
    assert len(drawn) == 100


def test_an_identifier_with_another_symbol_in_another_file_refuses_all(place):
    Path("in/dt=2/d.csv").write_text(
        "id,job,pay\nperson 0000,a,1\n" + "person 0001,b,1\nperson 0002,c,1\n"
    )
    with pytest.raises(
        InputError,
        match=r"line \d+: the symbol of 'job' is another one than when the record was released",
    ):
        release(identity="id")
    assert not Path("out").exists()
    assert entries() == []


@pytest.mark.parametrize("dry_run", [True, False])
def test_the_same_rows_in_two_files_are_refused_by_row_number(place, dry_run):
    """They would share their random numbers, be they copies or others that their folders tell apart."""
    write(place / "in" / "dt=3" / "a.csv", *FILES["dt=1/a.csv"])
    copies = r"dt=3/a.csv and dt=1/a.csv hold the same records in the same order"
    with pytest.raises(InputError, match=copies):
        release(dry_run=dry_run)
    assert not Path("out").exists()
    assert entries() == []
    assert release(identity="id").records == 140


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_copy_of_a_file_that_was_released_is_refused(place, dry_run):
    release()
    write(place / "in" / "dt=3" / "a.csv", *FILES["dt=1/a.csv"])
    copies = r"dt=3/a.csv and dt=1/a.csv hold the same records in the same order"
    with pytest.raises(InputError, match=copies):
        release(force=True, dry_run=dry_run)
    assert len(entries()) == len(FILES)


def test_files_without_records_are_no_twins(place):
    for name in ("x", "y"):
        Path("in", f"{name}.csv").write_text("id,job,pay\n")
    assert release().records == 100


def test_a_second_run_does_nothing_and_a_growing_folder_keeps_its_draws(place):
    release()
    before, marks = (
        contents("out"),
        {path: path.stat().st_mtime_ns for path in Path("out").rglob("*")},
    )
    assert release().already
    assert marks == {path: path.stat().st_mtime_ns for path in Path("out").rglob("*")}
    write(place / "in" / "dt=3" / "d.csv", 100, 130)
    with pytest.raises(
        InputError,
        match=r"^out exists; choose another name, or overwrite it with force",
    ):
        release()
    assert contents("out") == before
    done = release(force=True)
    assert (done.records, done.already) == (130, False)
    after = contents("out")
    assert {name: after[name] for name in FILES} == {
        name: before[name] for name in FILES
    }
    assert len(entries()) == 4  # the first three files were not released a second time
    Path("in/dt=1/a.csv").unlink()
    assert release(force=True).records == 90
    assert "dt=1/a.csv" not in contents("out")
    assert not [path for path in os.listdir(place) if path.startswith(".")]


def test_a_changed_file_is_not_released_over_the_old_one(place):
    release()
    before = contents("out")
    write(place / "in" / "dt=2" / "c.csv", 80, 101)
    with pytest.raises(InputError, match=r"out/dt=2/c.csv exists; choose another name"):
        release()
    assert contents("out") == before
    assert release(force=True).records == 101


def test_where_files_have_no_links_the_same_bytes_are_written_again(place, monkeypatch):
    def refuse(*_):
        raise OSError("no links")

    release()
    before = contents("out")
    monkeypatch.setattr(os, "link", refuse)
    with pytest.raises(InputError, match=r"^out exists"):
        release()
    assert not release(force=True).already
    assert contents("out") == before


def test_parquet_and_csv_stay_what_they_are(place):
    write(place / "in" / "dt=4" / "e.parquet", 100, 120)
    Path("in/_SUCCESS").write_text("")
    Path("in/.crc").write_text("no table")
    Path("in/_temporary").mkdir()
    Path("in/_temporary/part.csv").write_text("no table")
    assert release().records == 120
    assert pq.read_table("out/dt=4/e.parquet")["pay"].equals(
        pq.read_table("in/dt=4/e.parquet")["pay"]
    )
    hive = pa.dataset.dataset("out/dt=4", partitioning="hive", format="parquet")
    assert hive.count_rows() == 20
    assert files_of("out")[1] == sorted([*FILES, "dt=4/e.parquet"])


def test_a_glob_keeps_the_folders_below_its_fixed_part(place):
    assert is_folder("in/dt=*/?.csv")
    assert files_of("in/dt=1/*.csv") == (Path("in/dt=1"), ["a.csv", "b.csv"])
    assert files_of("in/dt=*/[ac].csv") == (Path("in"), ["dt=1/a.csv", "dt=2/c.csv"])
    assert files_of("*/**/c.csv") == (Path(), ["in/dt=2/c.csv"])
    assert release("in/dt=*/[ac].csv").records == 60
    odd = place / "odd[1].csv"
    odd.write_text((place / "in/dt=1/a.csv").read_text())
    assert not is_folder(odd)


@pytest.mark.parametrize(
    ("name", "like"),
    [
        ("rel=w", "rel"),
        ("JOB=a", "job"),
        ("R%65l=w", "rel"),
        ("town=N", "town"),
        ("re_l=w", "rel"),
    ],
)
def test_partitions_by_what_is_protected_are_refused(place, name, like):
    """The names of folders stay, and a record is found in one of them."""
    (place / "in" / "dt=1").rename(place / "in" / name)
    with pytest.raises(
        InputError, match=rf"which looks like the column '{like}', and would stay"
    ):
        release(correlated=("town",))
    assert not Path("out").exists()


def test_the_names_that_stay_are_told(place):
    told = "names of folders and files stay, with 'dt': see that they, and who shares one, tell nothing"
    assert release().notices[0] == told
    assert read_document("out/_SUCCESS", ReleasedFolder).voids == (told,)


def test_files_that_were_split_by_what_is_protected_are_refused(place):
    """The names of files are an order, too: each file alone has nothing but one symbol, in no order."""
    for symbol in "ab":
        Path("in", f"of {symbol}.csv").write_text("job\n" + f"{symbol}\n" * 200)
    with pytest.raises(
        InputError,
        match=r"the names of the files tell of 'job': what was released differs",
    ):
        release("in/of*")
    assert not Path("out").exists()
    assert entries() == []
    assert release("in/of*", keep_order=True).records == 400
    assert release("in/of*").already


BAD = {
    "no table": (b"\0\1\2 neither", "neither a CSV nor a Parquet file"),
    "another table": (b"id,town\n1,N\n", "there is no column 'job'"),
    "an unknown symbol": (
        b"id,job\n1,zzz\n",
        "the channel does not know the symbol of",
    ),
    "a sensitive column": (
        b"id,job,rel\n1,a,w\n",
        "the sensitive column 'rel' would stay",
    ),
    "empty": (b"", "is empty"),
    "cut Parquet": (b"PAR1 and no more", "cannot be read as Parquet"),
}


@pytest.mark.parametrize("kind", BAD)
def test_one_file_that_cannot_be_released_refuses_the_whole(place, kind):
    data, message = BAD[kind]
    Path("in/dt=2/z.csv" if kind != "cut Parquet" else "in/dt=2/z.parquet").write_bytes(
        data
    )
    with pytest.raises(InputError, match=rf"in/dt=2/z\.(csv|parquet).*{message}"):
        release()
    assert not Path("out").exists()
    assert entries() == []
    assert not [path for path in os.listdir(place) if path.startswith(".")]


@pytest.mark.skipif(
    sys.platform == "win32" or os.geteuid() == 0,
    reason="nothing is closed to this user",
)
def test_what_cannot_be_read_refuses_the_whole(place):
    Path("in/dt=2").chmod(0)
    try:
        with pytest.raises(
            InputError, match="in/dt=2 is neither a file nor a folder that can be read"
        ):
            release()
    finally:
        Path("in/dt=2").chmod(0o700)


def test_links_that_lead_nowhere_are_told(place):
    Path("in/dt=2/z.csv").symlink_to("nowhere")
    with pytest.raises(
        InputError,
        match=r"in/dt=2/z.csv is neither a file nor a folder that can be read",
    ):
        release()


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"source": "in/none*"}, "in/none\\* has no data files"),
        ({"target": "in/out"}, "in/out and in lie in each other"),
        ({"target": "."}, "lie in each other"),
        (
            {"target": "none/out"},
            "none/out cannot be written: no such file or directory",
        ),
        ({"target": "file"}, "file is a file; give the name of a folder"),
        (
            {"target": "full"},
            "full holds mine.txt, which no release to it wrote; name another folder",
        ),
        ({"ledger": None}, "the files of a folder are kept apart by their ledger"),
        ({"fresh_draw": True}, "the files of a folder are kept apart by their ledger"),
        (
            {"strict": True},
            "a note, which (--)?strict makes an error: names of folders and files stay, with 'dt'",
        ),
        ({"manifest": "m.json"}, "each has its manifest in OUT/_manifests"),
        ({"codebook": "c.csv"}, "each has its manifest in OUT/_manifests"),
    ],
)
def test_refusals(place, how, message):
    Path("file").write_text("mine")
    Path("full").mkdir()
    Path("full/mine.txt").write_text("mine")
    before = contents(".")
    with pytest.raises(InputError, match=message):
        release(**how)
    with pytest.raises(InputError, match=message):
        release(**{"force": True, **how})
    assert contents(".") == before


def test_a_file_that_somebody_put_into_the_target_is_never_removed(place):
    release()
    Path("out/dt=1/notes.txt").write_text("mine")
    with pytest.raises(
        InputError, match=r"out holds notes.txt, which no release to it wrote"
    ):
        release(force=True)
    assert Path("out/dt=1/notes.txt").exists()


def test_a_folder_that_cannot_get_its_name_leaves_the_old_one_and_no_release(
    place, monkeypatch
):
    release(identity="id")
    before, known = contents("out"), len(entries())
    write(place / "in" / "new.csv", 100, 120)
    rename = Path.rename

    def fails(self, target):
        if self.name != "out" and not self.name.endswith(".old"):
            raise OSError(5, "Input/output error")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fails)
    with pytest.raises(
        InputError, match="out cannot be given its name: input/output error"
    ):
        release(identity="id", force=True)
    assert (contents("out"), len(entries())) == (before, known)


def test_two_jobs_never_write_one_folder(place, monkeypatch):
    real = release_file.release_file

    def twice(*what, **how):
        monkeypatch.setattr(release_file, "release_file", real)
        with pytest.raises(
            InputError, match="another job is writing out; wait until it finishes"
        ):
            release()
        return real(*what, **how)

    monkeypatch.setattr(release_file, "release_file", twice)
    assert release().records == 100


def test_what_others_have_relied_on_is_not_withdrawn(place, monkeypatch):
    """Another job that released since may have taken a record for known: then the ledger keeps what it has."""
    Path("in/dt=2/z.csv").write_bytes(b"id,job\n1,zzz\n")
    write(place / "other.csv", 200, 210)
    real, calls = release_file.release_file, []

    def interleaved(*what, **how):
        calls.append(what)
        if len(calls) == 3:
            sanitise_file(
                [CHANNEL], "other.csv", "other.out", ledger="ledger.db", keep="all"
            )
        return real(*what, **how)

    monkeypatch.setattr(release_file, "release_file", interleaved)
    with pytest.raises(InputError, match="does not know the symbol"):
        release()
    assert [Path(entry.target).name for entry in entries()] == [
        "a.csv",
        "b.csv",
        "other.out",
        "c.csv",
    ]


def test_an_earlier_release_that_may_have_been_seen_is_not_forgotten(place):
    """A run to one file of the folder was killed after the file had its name; then the file was taken away."""
    Path("out/dt=1").mkdir(parents=True)
    sanitise_file([CHANNEL], "in/dt=1/a.csv", "out/dt=1/a.csv", ledger="ledger.db")
    ledger = Ledger("ledger.db")
    with ledger.changing() as db:
        (entry,) = ledger.releases(db)
        ledger.enter(db, entry.model_copy(update={"state": "finishing"}))
    shutil.rmtree("out")
    Path("in/dt=2/z.csv").write_bytes(b"id,job\n1,zzz\n")
    with pytest.raises(InputError, match="does not know the symbol"):
        release()
    assert [Path(entry.target).name for entry in entries()] == ["a.csv"]


def test_a_rehearsal_checks_all_and_writes_nothing(place):
    before = contents(".")
    done = release(dry_run=True)
    assert (done.records, done.columns, done.already) == (100, ("job",), False)
    assert contents(".") == before
    alone = release("in/dt=1/a.csv", "a.csv", dry_run=True)
    assert (alone.records, alone.already) == (40, False)
    assert contents(".") == before
    release()
    before = contents(".")
    assert release(dry_run=True).already
    write(place / "sorted.csv", 0, 40)
    lines = Path("sorted.csv").read_text().splitlines()
    Path("sorted.csv").write_text("\n".join([lines[0], *lines[:0:-1]]) + "\n")
    before["sorted.csv"] = Path("sorted.csv").read_bytes()
    with pytest.raises(InputError, match="would be drawn a second time"):
        release("sorted.csv", "s.csv", dry_run=True)
    with pytest.raises(InputError, match="exists; choose another name"):
        release(form="posterior-draw", dry_run=True)
    with pytest.raises(InputError, match=r"dry.run asks the ledger"):
        release("sorted.csv", "s.csv", dry_run=True, ledger=None)
    assert contents(".") == before


def killed_at(points, point: int) -> bool:
    """Run the release in a process of its own, which ends without a word at a point; whether it came to it."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    try:
        left = iter(range(point + 1))

        def counted(function):
            def run(*what, **how):
                if next(left, None) == point:
                    os._exit(9)
                return function(*what, **how)

            return run

        for owner, name in points:
            setattr(owner, name, counted(getattr(owner, name)))
        release(force=True)
        os._exit(0)
    except BaseException:
        os._exit(1)


@pytest.mark.skipif(sys.platform == "win32", reason="processes are forked and killed")
def test_a_release_that_is_killed_anywhere_is_completed_by_the_next_run(place):
    """At every rename, link and write of the marker: OUT is the old one, the new one, or not there, and never half."""
    points = [
        (os, "replace"),
        (os, "rename"),
        (Path, "rename"),
        (folder_stage, "write_document"),
        (os, "link"),
    ]
    points.append((folder_stage.shutil, "rmtree"))
    shutil.rmtree("in/dt=2")
    Path("in/dt=1/b.csv").unlink()
    release()
    old = contents("out")
    write(place / "in" / "dt=3" / "d.csv", 100, 130)
    kills, seen, point, new = 0, set(), 0, None
    while killed_at(points, point):
        kills += 1
        held = contents("out") if Path("out").exists() else None
        new_names = ["dt=1/a.csv", "dt=3/d.csv"]
        assert (
            held is None
            or held == old
            or (len(held) == 5 and files_of("out")[1] == new_names)
        )
        if held is None:  # the old one comes back, whatever becomes of the next run
            Path("in/x.csv").write_text("id,job\n1,zzz\n")
            with pytest.raises(InputError, match="does not know the symbol"):
                release(force=True)
            assert contents("out") == old
            Path("in/x.csv").unlink()
        seen.add("none" if held is None else "old" if held == old else "new")
        assert release(force=True).records == 70
        new = new or contents("out")
        assert contents("out") == new
        assert not [path for path in os.listdir(place) if path.startswith(".")]
        # Back to the beginning, but for the ledger.
        Path("in/dt=3/d.csv").rename("kept.csv")
        assert release(force=True).records == 40
        assert contents("out") == old
        Path("kept.csv").rename("in/dt=3/d.csv")
        point += 1
    assert seen == {"old", "none", "new"}
    assert kills > 10


GROUPS = {0: "aab", 1: "abb", 2: "acc", 3: "bcc", 4: "abc"}


@pytest.mark.parametrize("shuffle", [False, True])
def test_files_are_tested_as_one_table(place, shuffle):
    """Grouped by what the useful column depends on: each file by itself is in random order."""
    rng = np.random.default_rng(1)
    for group, likely in GROUPS.items():
        folder = Path("groups", f"g={group}")
        folder.mkdir(parents=True)
        jobs = rng.choice([*likely], 200)
        pd.DataFrame({"n": 200 * group + rng.permutation(200), "job": jobs}).to_csv(
            folder / "a.csv", index=False
        )
    for dry_run in (True, False):
        with pytest.raises(InputError, match=r"the names of the files tell of 'job'"):
            release("groups", shuffle=shuffle, dry_run=dry_run)
    assert not Path("out").exists()
    assert not entries()
    if not shuffle:
        assert release("groups", keep_order=True).records == 1000


def test_an_order_that_goes_on_from_file_to_file_is_refused(place):
    """Every file has the same shares, and too few records for a test of its own."""
    for day in range(40):
        folder = Path("days", f"day={day:02}")
        folder.mkdir(parents=True)
        pd.DataFrame({"n": range(6), "job": [*"aabbcc"]}).to_csv(
            folder / "a.csv", index=False
        )
    with pytest.raises(InputError, match=r"as one table: .* order that tells of 'job'"):
        release("days", identity="n", keep=(), changed="keep")


def test_a_copy_of_which_each_file_has_too_few_records(place):
    rng = np.random.default_rng(2)
    for day in range(40):
        folder = Path("days", f"day={day:02}")
        folder.mkdir(parents=True)
        jobs = rng.integers(0, 3, 20)
        codes = [f"{job}{i % 8}" for i, job in enumerate(jobs)]
        pd.DataFrame(
            {
                "n": day + 40 * np.arange(20),
                "code": codes,
                "job": np.array([*"abc"])[jobs],
            }
        ).to_csv(folder / "a.csv", index=False)
    with pytest.raises(InputError, match=r"as one table: the column 'code' stands for"):
        release("days")


def test_files_that_leave_the_target_are_noted_before_and_after(place):
    release()
    shutil.rmtree("in/dt=1")
    note = "2 of 3 files {} out, since the input has them no more: dt=1/a.csv to dt=1/b.csv"
    rehearsed = release(force=True, dry_run=True)
    assert note.format("would leave") in rehearsed.notices
    with pytest.raises(
        InputError, match=r"which strict makes an error: .* files leave out"
    ):
        release("in/dt=2/*.csv", force=True, strict=True, keep=["id", "pay"])
    assert Path("out/dt=1/a.csv").exists()
    told = []

    def warn(text):
        told.append(text)
        assert Path("out/dt=1/a.csv").exists()

    assert note.format("leave") in release(force=True, warn=warn).notices
    assert told == [note.format("leave")]
    assert not Path("out/dt=1/a.csv").exists()


@pytest.mark.parametrize("link", ["in/z.csv", "in/dt=2/copy"])
def test_two_names_of_one_file_are_refused(place, link):
    # The second case is a folder that leads to another one.
    is_folder_link = not link.endswith(".csv")
    target = Path("in/dt=1") if is_folder_link else Path("in/dt=1/a.csv")
    Path(link).symlink_to(target.resolve())
    with pytest.raises(
        InputError, match=r"is a link to the same file as in/dt=1/a\.csv"
    ):
        files_of("in")
    Path(link).unlink()
    os.link("in/dt=1/b.csv", "in/dt=2/hard.csv")
    with pytest.raises(InputError, match="records would count twice"):
        release()
