"""`--jobs`: threads that work ahead, and the same bytes."""

from __future__ import annotations

import threading

import pytest

from mechdesign.core.errors import InputError
from mechdesign.formats import csv_blocks, parquet
from mechdesign.jobs import writing
from mechdesign.jobs.release_file import sanitise_file
from tests.cases.released_records import mixing_channel, people

CHANNEL = mixing_channel()


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch):
    monkeypatch.setattr(csv_blocks, "BLOCK", 1 << 10)
    monkeypatch.setattr(parquet, "ROWS_PER_BATCH", 50)


@pytest.fixture(autouse=True)
def no_thread_stays():
    before = {*threading.enumerate()}
    yield
    assert not {*threading.enumerate()} - before


def release(folder, source, target, **how):
    return sanitise_file(
        CHANNEL,
        folder / source,
        folder / target,
        **how | {"insecure_seed": 1, "force": True},
    )


@pytest.mark.parametrize("how", [{}, {"identity": "id"}, {"shuffle": True}], ids=str)
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_any_number_of_jobs_writes_the_same_bytes(tmp_path, kind, how):
    frame = people(1000)
    frame.to_csv(tmp_path / "in.csv", index=False)
    frame.to_parquet(tmp_path / "in.parquet", index=False)
    for jobs in (1, 2, 3, 8):
        assert (
            release(tmp_path, f"in.{kind}", f"{jobs}.{kind}", jobs=jobs, **how).records
            == 1000
        )
        assert (tmp_path / f"{jobs}.{kind}").read_bytes() == (
            tmp_path / f"1.{kind}"
        ).read_bytes()


@pytest.mark.parametrize("jobs", [1, 2, 3])
def test_the_line_of_a_mistake_is_the_same(tmp_path, jobs):
    lines = people(1000).to_csv(index=False).splitlines()
    lines[600] = "person,1,wrong,2"
    (tmp_path / "in.csv").write_text("\n".join(lines))
    with pytest.raises(
        InputError,
        match=r"in\.csv, line 601: the channel does not know the symbol 'wrong'",
    ):
        release(tmp_path, "in.csv", "out.csv", jobs=jobs)
    lines[600] = "person"
    (tmp_path / "in.csv").write_text("\n".join(lines))
    with pytest.raises(InputError, match=r"in\.csv, line 601: the row has 1 cell"):
        release(tmp_path, "in.csv", "out.csv", jobs=jobs)
    assert [path.name for path in tmp_path.iterdir()] == ["in.csv"]


@pytest.mark.parametrize("after", [0, 3])
def test_an_interruption_leaves_no_thread_and_no_file(tmp_path, monkeypatch, after):
    people(2000).to_csv(tmp_path / "in.csv", index=False)

    def interrupted(share):
        if share > after / 10:
            raise KeyboardInterrupt

    monkeypatch.setattr(
        "mechdesign.jobs.release_file.Run._advance",
        lambda self, share: interrupted(share),
    )
    with pytest.raises(KeyboardInterrupt):
        release(tmp_path, "in.csv", "out.csv", jobs=3)
    assert [path.name for path in tmp_path.iterdir()] == ["in.csv"]


def test_few_batches_wait():
    made = []
    for taken in writing.ahead(((made.append(i), i) for i in range(100)), 5):
        assert made[-1] - taken[1] <= 5
    assert made == [*range(100)]


def test_nothing_more_is_made_once_nobody_wants_it():
    made = []
    items = writing.ahead(((made.append(i), i) for i in range(100)), 5)
    assert next(items)[1] == 0
    items.close()
    assert made == [*range(len(made))]
    assert len(made) <= 6


def test_no_jobs_are_too_few(tmp_path):
    with pytest.raises(InputError, match=r"the number of jobs \(0\) must be 1 or more"):
        release(tmp_path, "in.csv", "out.csv", jobs=0)
