from __future__ import annotations

import json
import sys
import threading
from pathlib import Path

import pytest

from mechdesign.core.documents import hashed_text
from mechdesign.core.errors import InputError
from mechdesign.core.files import open_locked, sha256_of
from mechdesign.release.draws import Key
from mechdesign.sanitise import job_store
from mechdesign.sanitise.job import Job
from mechdesign.sanitise.job_file import FORMAT, Use, read_job
from mechdesign.sanitise.job_store import default_path
from mechdesign.sanitise.keys import create_key, read_key
from mechdesign.sanitise.target import Target

DATASET, OTHER_DATASET = "a" * 64, "b" * 64
USE = Use(channel="c" * 64, columns=("job",), form="label")
OTHER = Use(channel="d" * 64, columns=("town",), form="label")
RECORDS = 3


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "channel.json.jobs" / "night.json"


def open_job(path, **options) -> Job:
    return Job(path, **{"dataset": DATASET, "uses": [USE], **options})


def released(job: Job, target: Path, *, text: str = "released", stop: str | None = None) -> None:
    """Release to `target`; `stop` names the step after which the process is, so to speak, killed."""
    with Target(target, force=True) as place, job.running(target) as run:
        place.part.write_text(text)
        digest = place.seal()
        if stop == "running":
            return
        if stop == "finishing":
            run.finishing(digest, RECORDS)
            return
        place.commit(
            before=lambda: run.finishing(digest, RECORDS), after=run.done if stop is None else lambda: None
        )


def failing(job: Job, target, *steps) -> None:
    """A run that fails after the steps."""
    with pytest.raises(ValueError, match="no"):
        _fail(job, target, steps)


def _fail(job: Job, target, steps) -> None:
    with job.running(target) as run:
        for step in steps:
            step(run)
        raise ValueError("no")


def finishing(run) -> None:
    run.finishing("e" * 64, RECORDS)


def refuse(message: str, path, **options) -> None:
    before = {p: p.read_bytes() for p in path.parent.rglob("*")}
    with pytest.raises(InputError, match=message) as caught:
        open_job(path, **options)
    assert "\n" not in str(caught.value)
    assert {p: p.read_bytes() for p in path.parent.rglob("*") if p.suffix != ".lock"} == {
        p: b for p, b in before.items() if p.suffix != ".lock"
    }


def states(path) -> list[str]:
    return [run.state for run in read_job(path).runs]


def test_default_paths():
    digest = "0123456789abcdef" * 4
    assert default_path("w.json", digest) == Path("w.json.jobs/0123456789abcdef.json")
    assert default_path("w.json", digest, ["id"]) == Path("w.json.jobs/id-id.json")
    assert default_path("w.json", digest, ["a/b", ".. x"]) == Path("w.json.jobs/id-a%2Fb+.. x.json")
    names = {default_path("w", digest, [name]).name for name in ("n" * 300, "n" * 301, "é" * 200)}
    assert len(names) == 3
    assert all(len(name) < 100 for name in names)


def test_a_new_job(path, tmp_path):
    job = open_job(path)
    assert (job.draw, job.earlier, job.notices, job.other_channels) == (0, (), (), False)
    assert read_key(path.with_suffix(".key")) == job.key
    if sys.platform != "win32":
        assert path.parent.stat().st_mode & 0o777 == 0o700
        assert path.stat().st_mode & 0o777 == 0o600
    released(job, tmp_path / "out.csv")
    (run,) = read_job(path).runs
    assert (run.state, run.records, run.dataset, run.uses) == ("done", RECORDS, DATASET, (USE,))
    assert run.output == sha256_of(tmp_path / "out.csv")
    assert (run.target, run.draw, run.fresh) == (str(tmp_path / "out.csv"), 0, False)
    assert run.versions["mechdesign"]
    assert run.started <= run.finished
    assert run.started.endswith("+00:00")


def test_the_same_job_has_the_same_key(path, tmp_path):
    keys = set()
    for name in ("out.csv", "out.csv", "elsewhere.csv"):
        job = open_job(path)
        released(job, tmp_path / name)
        keys.add(job.key)
        assert job.notices == ()
    assert len(keys) == 1
    assert states(path) == ["done", "done", "done"]


@pytest.mark.parametrize("stop", ["running", "finishing", "renamed"])
@pytest.mark.parametrize("fresh", [False, True])
def test_a_killed_job_goes_on_with_the_same_key(path, tmp_path, stop, fresh):
    out = tmp_path / "out.csv"
    if fresh:
        released(open_job(path), out, text="the draw before")
    killed = open_job(path, fresh_draw=fresh)
    released(killed, out, stop=stop)
    again = open_job(path, fresh_draw=fresh)
    assert (again.key, again.draw) == (killed.key, int(fresh))
    assert again.unfinished(out) == (stop != "running")
    run = again.finished(out)
    if stop == "renamed":
        assert (run.state, run.records) == ("done", RECORDS)
    else:
        assert run is None
        released(again, out)
    assert out.read_text() == "released"
    assert states(path) == ["done"] * (1 + fresh)
    assert not open_job(path).unfinished(out)


def test_asked_again_for_what_is_there(path, tmp_path):
    out, side = tmp_path / "out.csv", tmp_path / "out.json"
    released(open_job(path, settings={"form": ("a", 1)}), out)
    job = open_job(path, settings={"form": ("a", 1)})
    assert job.finished(out).output == sha256_of(out)
    assert job.finished(out, [side]) is None
    side.write_text("")
    assert job.finished(out, [side]) is not None
    assert job.finished(tmp_path / "other.csv") is None
    assert job.finished("-") is None
    assert open_job(path, settings={"form": "b"}).finished(out) is None
    assert open_job(path, uses=[USE.model_copy(update={"form": "posterior-draw"})]).finished(out) is None
    assert open_job(path, fresh_draw=True).finished(out) is None
    out.write_text("edited")
    assert job.finished(out) is None
    out.unlink()
    assert job.finished(out) is None


def test_a_fresh_draw(path, tmp_path):
    keys = []
    for draw in range(3):
        job = open_job(path, fresh_draw=draw > 0)
        released(job, tmp_path / "out.csv")
        keys.append(job.key)
        assert (job.draw, [run.draw for run in job.earlier]) == (draw, list(range(draw)))
        if draw:
            assert f"released before with {draw} other draw" in job.notices[0]
    assert len(set(keys)) == 3
    assert open_job(path).key == keys[-1]
    assert keys[1] == keys[0].derived("draw", "1")


def test_a_fresh_draw_of_nothing_is_no_other_draw(path, tmp_path):
    first = open_job(path)
    released(first, tmp_path / "out.csv", stop="running")
    job = open_job(path, fresh_draw=True)
    assert (job.key, job.draw) == (first.key, 0)
    assert job.notices == ("this job has released nothing before: its first draw is a fresh one in any case",)


def test_a_fresh_draw_that_fails_changes_nothing(path, tmp_path):
    first = open_job(path)
    released(first, tmp_path / "out.csv")
    with (
        pytest.raises(ValueError, match="unknown symbol"),
        open_job(path, fresh_draw=True).running(tmp_path / "o"),
    ):
        raise ValueError("unknown symbol")
    job = open_job(path)
    assert (job.key, job.draw, states(path)) == (first.key, 0, ["done"])


def test_other_data(path, tmp_path):
    refuse_other = (
        r"the job .*night\.json is that of the data set aaaaaaaaaaaa\.\., and this is bbbbbbbbbbbb\.\.: .*"
        r"\(--identity COL\).*\(--job\).*\(--fresh-draw\)"
    )
    first = open_job(path)
    open_job(path, dataset=OTHER_DATASET)  # nothing has been released
    released(first, tmp_path / "out.csv")
    refuse(refuse_other, path, dataset=OTHER_DATASET)
    job = open_job(path, dataset=OTHER_DATASET, fresh_draw=True)
    assert job.key == first.key.derived("draw", "1")
    released(job, tmp_path / "other.csv")
    assert open_job(path, dataset=OTHER_DATASET).key == job.key
    refuse(refuse_other.replace("aaaaaaaaaaaa", "X").replace("b" * 12, "a" * 12).replace("X", "b" * 12), path)


def test_identified_records_may_change(path, tmp_path):
    first = open_job(path, identity=["id"])
    released(first, tmp_path / "monday.csv")
    job = open_job(path, identity=["id"], dataset=OTHER_DATASET)
    assert job.key == first.key
    assert job.notices == (
        "the data set has changed since an earlier release: records whose symbol is another one now are released twice",
    )
    released(job, tmp_path / "tuesday.csv")
    assert [run.dataset for run in read_job(path).runs] == [DATASET, OTHER_DATASET]
    refuse(r"identifies records by the column 'id', not by their row number; use another job \(--job\)", path)
    refuse("by the column 'id', not by the column 'a', 'b'", path, identity=["a", "b"])


def test_the_same_random_numbers_for_two_columns(path, tmp_path):
    released(open_job(path), tmp_path / "out.csv")
    refuse(
        r"has applied this channel to 'job'; on 'work' it would use the same random numbers again; use another job",
        path,
        uses=[USE.model_copy(update={"columns": ("work",)})],
    )
    refuse(
        "the same channel cannot be applied to 'job' and to 'work' in one job",
        path,
        uses=[USE, USE.model_copy(update={"columns": ("work",)})],
    )
    assert open_job(path, uses=[USE.model_copy(update={"columns": ("work",)})], fresh_draw=True).draw == 1


@pytest.mark.parametrize(
    ("before", "now", "fits"),
    [
        ({"normalise": "none"}, {"normalise": "NFC"}, True),
        ({"normalise": "none", "unknown": "marginal"}, {"normalise": "NFC"}, False),
        ({"normalise": "NFC"}, {"normalise": "none", "unknown": "output:c"}, False),
        ({"normalise": "NFC", "unknown": "marginal"}, {"normalise": "NFC", "unknown": "refuse"}, True),
        ({}, {"unknown": "marginal", "null": "output:c", "form": "posterior-draw"}, True),
    ],
)
def test_symbols_must_not_be_read_in_another_way(path, tmp_path, before, now, fits):
    job = open_job(path, uses=[USE.model_copy(update=before)])
    released(job, tmp_path / "out.csv")
    if fits:
        assert open_job(path, uses=[USE.model_copy(update=now)]).key == job.key
    else:
        refuse(
            "has released 'job' with the normalisation .*, which gives some records another symbol",
            path,
            uses=[USE.model_copy(update=now)],
        )


def test_what_another_process_has_released_meanwhile_counts(path, tmp_path):
    late = open_job(path, dataset=OTHER_DATASET)
    released(open_job(path), tmp_path / "out.csv")
    with pytest.raises(InputError, match="is that of the data set aaaaaaaaaaaa"):
        released(late, tmp_path / "late.csv")
    assert not (tmp_path / "late.csv").exists()
    assert states(path) == ["done"]


def test_other_channels_are_told(path, tmp_path):
    released(open_job(path), tmp_path / "out.csv")
    job = open_job(path, uses=[OTHER])
    assert job.other_channels
    assert "other channels have been applied to these records in this job" in job.notices[0]
    assert not open_job(path).other_channels


def test_a_lost_key(path, tmp_path):
    lost = r"the key file .*night\.key of this job is gone, .*: put it back, or accept that \(--fresh-draw\)"
    first = open_job(path)
    path.with_suffix(".key").unlink()
    second = open_job(path)  # nothing has been released, so nothing is lost
    assert second.key != first.key
    released(second, tmp_path / "out.csv")
    path.with_suffix(".key").unlink()
    refuse(lost, path)
    fresh = open_job(path, fresh_draw=True)
    assert fresh.draw == 1
    assert fresh.key != second.key.derived("draw", "1")
    refuse(lost, path)  # the new key is there, but it is not the one of the draw that was released
    released(fresh, tmp_path / "out.csv")
    assert open_job(path).key == fresh.key


def test_the_key_of_another_job(path, tmp_path):
    released(open_job(path), tmp_path / "out.csv")
    path.with_suffix(".key").unlink()
    create_key(path.with_suffix(".key"), Key.fresh())
    refuse(r"night\.key is not the one of the job .*night\.json; .*put the right one back", path)
    refuse(r"is not the one of the job", path, fresh_draw=True)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows keeps permissions in access lists")
def test_a_key_that_others_can_read(path):
    open_job(path)
    path.with_suffix(".key").chmod(0o644)
    refuse(r"can be read by others \(mode 0644\).*chmod 600", path)


def test_a_key_without_its_job(path):
    open_job(path)
    path.unlink()
    refuse(
        r"there is no job file .*night\.json, but its key night\.key is there: put the job file back, or",
        path,
    )


def test_a_crash_between_job_and_key(path, monkeypatch):
    def killed(*_arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(job_store, "create_key", killed)
        with pytest.raises(KeyboardInterrupt):
            open_job(path)
    assert path.exists()
    assert not path.with_suffix(".key").exists()
    assert open_job(path).key == read_key(path.with_suffix(".key"))


def test_a_job_whose_name_ends_like_a_key(tmp_path):
    with pytest.raises(InputError, match=r"has the ending of its key; give it another one \(\.json\)"):
        open_job(tmp_path / "job.key")


def test_a_failed_first_run_leaves_nothing(path, tmp_path):
    failing(open_job(path), tmp_path / "out.csv")
    assert list(tmp_path.iterdir()) == []
    job = open_job(path)
    job.abandon()
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(InputError, match="was removed or replaced meanwhile; start again"):
        released(job, tmp_path / "out.csv")
    assert [p.name for p in tmp_path.iterdir()] == [path.parent.name]  # the lock, and nothing of the release


def test_a_failed_run_leaves_what_others_did(path, tmp_path):
    job = open_job(path)
    failing(job, tmp_path / "out.csv", lambda _run: released(open_job(path), tmp_path / "other.csv"))
    job.abandon()
    assert states(path) == ["done"]
    assert path.with_suffix(".key").exists()


def test_a_run_that_fails_before_the_name_was_not_released(path, tmp_path):
    failing(open_job(path), tmp_path / "out.csv", finishing)
    assert list(tmp_path.iterdir()) == []


def test_standard_output_may_have_been_read(path):
    failing(open_job(path), "-", finishing)
    assert states(path) == ["finishing"]
    assert not open_job(path).unfinished("-")  # there is nothing to mend
    assert open_job(path, fresh_draw=True).draw == 1


def test_runs_that_were_killed_are_forgotten(path, tmp_path):
    for _ in range(3):
        released(open_job(path), tmp_path / "out.csv", stop="running")
    released(open_job(path), tmp_path / "other.csv", stop="running")
    assert states(path) == ["running", "running"]


def test_what_killed_processes_left_of_the_job_file_is_cleared_away(tmp_path):
    path = tmp_path / "job[1].json"
    job = open_job(path)
    (tmp_path / ".job[1].json.0123456789abcdef.part").write_text("{")
    (tmp_path / ".job1.json.0123456789abcdef.part").write_text("of another job")
    released(job, tmp_path / "out.csv")
    assert [p.name for p in tmp_path.glob("*.part")] == [".job1.json.0123456789abcdef.part"]


def test_many_at_once_lose_no_entry(path, tmp_path):
    errors = []

    def work(i: int) -> None:
        try:
            for j in range(3):
                released(open_job(path), tmp_path / f"out-{i}-{j}.csv")
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert states(path) == ["done"] * 18


def test_another_process_keeps_the_job(path, monkeypatch):
    open_job(path)
    monkeypatch.setattr(job_store, "PATIENCE", 0.05)
    lock = open_locked(path.with_name(".night.json.lock"), busy="")
    try:
        refuse(r"another process keeps the job .*night\.json busy; try again", path)
    finally:
        job_store.os.close(lock)
    open_job(path)


def test_a_place_that_refuses(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"cannot be written: (not a directory|file exists)"):
        open_job(tmp_path / "file" / "job.json")
    with pytest.raises(InputError, match="cannot be written: no such file or directory"):
        open_job(tmp_path / "none" / "none" / "job.json")


def damaged(**changes):
    def change(document: dict) -> dict:
        run = document["runs"][0]
        for name, value in changes.items():
            place = run if name in run else run["uses"][0] if name in run["uses"][0] else document
            place[name] = value
        return document

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            damaged(state="lost"),
            r"runs\[0\]\.state \(\'lost\'\) must be \'running\', \'finishing\' or \'done\'",
        ),
        (damaged(draw=-1), r"runs\[0\]\.draw \(\'-1\'\) must be at least 0"),
        (damaged(draw=True), r"runs\[0\]\.draw \(\'True\'\) must be a whole number"),
        (damaged(dataset="xyz"), r"runs\[0\]\.dataset \(\'xyz\'\) must be a hash in hexadecimal digits"),
        (damaged(channel="C" * 64), r"runs\[0\]\.uses\[0\]\.channel \(\'C+\.\.\.\'\) must be a hash"),
        (damaged(columns="job"), r"runs\[0\]\.uses\[0\]\.columns \('job'\) must be a list"),
        (damaged(columns=[1]), r"runs\[0\]\.uses\[0\]\.columns\[0\] \(\'1\'\) must be text"),
        (damaged(output=None), r"runs\[0\]: output and records are missing, though the run is done"),
        (
            damaged(uses=[{}]),
            r"runs\[0\]\.uses\[0\] has no 'channel', 'columns', 'form'",
        ),
        (damaged(runs=[7]), r"runs\[0\] \(\'7\'\) must be an object"),
        (damaged(identity=None), r"identity \(\'None\'\) must be a list"),
        (
            damaged(key_file="../other.key"),
            r"key_file \('\.\./other\.key'\) must be the name of a file in the same",
        ),
        (damaged(key_check="0"), r"key_check \(\'0\'\) must be a hash"),
        (damaged(key_since="0"), r"key_since \(\'0\'\) must be a whole number"),
    ],
)
def test_a_job_file_that_nobody_wrote(path, tmp_path, change, message):
    released(open_job(path), tmp_path / "out.csv")
    document = json.loads(path.read_text())
    content = {k: v for k, v in change(document).items() if k not in ("format", "version", "sha256")}
    path.write_text(hashed_text(FORMAT, 1, content))
    refuse(rf"night\.json: {message}", path)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda text: text.replace('"done"', '"running"'), "the sha256 does not match the content"),
        (lambda text: text[: len(text) // 2], "is truncated"),
        (lambda text: "", "is empty, not a job file"),
        (lambda text: "no JSON", "is not a job file: not JSON"),
        (
            lambda text: text.replace('"version": 1', '"version": 2'),
            "version '2' of the job file is not known",
        ),
        (
            lambda text: text.replace("mechdesign.job", "mechdesign.channel"),
            "is not a job file: its format is",
        ),
        (lambda text: text.replace('"identity"', '"identities"'), "the job file has no 'identity'"),
    ],
)
def test_a_job_file_that_was_edited_or_damaged(path, tmp_path, edit, message):
    released(open_job(path), tmp_path / "out.csv")
    path.write_text(edit(path.read_text()))
    refuse(rf"night\.json.*{message}", path)


def test_no_file_but_the_key_holds_the_key(path, tmp_path):
    job = open_job(path)
    released(job, tmp_path / "out.csv")
    secret = job.key.secret
    for file in tmp_path.rglob("*"):
        if file.is_file() and file.suffix != ".key":
            assert secret not in file.read_bytes()
            assert secret.hex() not in file.read_text()
    assert secret.hex() not in repr(job.key) + str(vars(job))
