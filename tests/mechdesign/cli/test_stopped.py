"""A job that is asked to stop ends in order, and a killed one leaves nothing that others can read."""

from __future__ import annotations

import os
import signal
import stat
import sys

import pytest

from mechdesign.core import files
from mechdesign.core.errors import FileError, StartAgain
from mechdesign.core.files import replacing
from mechdesign.jobs.target import Target

pytestmark = pytest.mark.skipif(
    sys.platform == "win32", reason="there are no such signals"
)

JOB = """\
channel = "channel.json"
ledger = "l.db"
[design]
table = "records.csv"
sensitive = ["group"]
useful = ["job"]
epsilon = 1.0
[[apply]]
in = "records.csv"
out = "first.csv"
identity = ["id"]
[[apply]]
in = "records.csv"
out = "second.csv"
identity = ["id"]
[report]
report = "report.md"
curve = 0
"""


@pytest.fixture
def job(folder):
    (folder / "job.toml").write_text(JOB)
    return folder


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_at_the_rename_of_a_step_ends_the_job(job, run, monkeypatch, signum):
    """It was lost: all later files were released, and the exit code was 0."""
    commit = Target.commit

    def asked(self, *, before, after):
        def interrupted():
            before()
            signal.raise_signal(signum)

        commit(self, before=interrupted, after=after)

    monkeypatch.setattr(Target, "commit", asked)
    result = run("run", "job.toml")
    assert result.code == 128 + signum
    assert "nothing was written" not in result.err or signum == signal.SIGINT
    # The names are given, and nothing after them is done.
    assert (job / "first.csv").exists()
    assert not (job / "second.csv").exists()
    assert not (job / "report.md").exists()
    monkeypatch.undo()
    os.chdir(job)
    assert run("run", "job.toml").code == 0
    assert (job / "second.csv").exists()
    assert (job / "report.md").exists()


@pytest.mark.parametrize(
    "command",
    [
        (
            "design",
            "records.csv",
            "--sensitive",
            "group",
            "--useful",
            "job",
            "--epsilon",
            "1",
            "--output",
            "c.json",
            "--report",
            "r.md",
            "--curve",
            "0",
        ),
        ("run", "job.toml"),
    ],
    ids=["design", "run"],
)
def test_a_signal_while_a_design_is_written_leaves_nothing(
    job, run, monkeypatch, command
):
    before = sorted(job.iterdir())
    monkeypatch.setattr(files, "sync_folder", lambda _: None)
    fsync = os.fsync

    def asked(descriptor):
        fsync(descriptor)
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(files.os, "fsync", asked)
    result = run(*command)
    assert result.code == 128 + signal.SIGTERM
    assert "stopped by SIGTERM" in result.err
    assert sorted(job.iterdir()) == before


class Killed(BaseException):
    pass


def test_what_a_killed_run_leaves_is_private_and_taken_over(tmp_path, monkeypatch):
    """It had a random name and mode 0644, with counts of the table in it."""
    path = tmp_path / "r.html"
    monkeypatch.setattr(files.Path, "unlink", lambda *_, **__: None)

    def killed_run():
        with replacing(path, force=False) as part:
            part.write_text("counts of the table")
            raise Killed

    with pytest.raises(Killed):
        killed_run()
    monkeypatch.undo()
    (left,) = tmp_path.iterdir()
    assert left.name == ".r.html.part"
    assert stat.S_IMODE(left.stat().st_mode) == 0o600
    with replacing(path, force=False) as part:
        assert part.read_text() == ""
        part.write_text("new")
    assert [each.name for each in tmp_path.iterdir()] == ["r.html"]
    assert path.read_text() == "new"


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o002])
def test_the_permissions_are_those_of_new_files(tmp_path, umask):
    before = os.umask(umask)
    try:
        with replacing(tmp_path / "new", force=False) as part:
            part.write_text("x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o666 & ~umask
    # A file that is replaced keeps its own.
    (tmp_path / "new").chmod(0o640)
    with replacing(tmp_path / "new", force=True) as part:
        part.write_text("y")
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640


def test_two_runs_write_one_file_one_after_the_other(tmp_path):
    path = tmp_path / "r.html"
    with (
        replacing(path, force=True),
        pytest.raises(StartAgain, match="another job is writing"),
        replacing(path, force=True),
    ):
        pass


def test_a_second_name_that_a_killed_run_left(tmp_path):
    """It was killed between the link and the removal of the temporary name."""
    path = tmp_path / "r.html"
    path.write_text("done")
    os.link(path, tmp_path / ".r.html.part")
    with (
        pytest.raises(FileError, match="exists"),
        replacing(path, force=False) as part,
    ):
        part.write_text("other")
    assert path.read_text() == "done"
    assert [each.name for each in tmp_path.iterdir()] == ["r.html"]
