"""`apply` on folders and globs, and its rehearsal, as they are typed."""

from __future__ import annotations

import os
import signal
import sys

import pytest

from mechdesign.cli import main
from mechdesign.jobs import folders
from mechdesign.jobs.ledger import Ledger
from tests.mechdesign.cli.conftest import contents


@pytest.fixture
def days(folder):
    for day in (1, 2, 3):
        (folder / "in" / f"dt={day}").mkdir(parents=True)
        (folder / "in" / f"dt={day}" / "a.csv").write_text(
            f"id,job\n{day}0,clerk\n{day}1,smith\n{day}2,baker\n"
        )
    return folder


def test_a_folder_and_a_glob(channel, days, run):
    result = run(
        "apply",
        channel,
        "in",
        "out",
        "--identity",
        "id",
        "--ledger",
        "l.db",
        "--keep",
        "all",
    )
    assert result.code == 0, result.err
    assert result.out.startswith("9 records written to out; the column job is released")
    assert "note: names of folders and files stay, with 'dt'" in result.err
    record = run(
        "apply",
        channel,
        "in/dt=[12]/*.csv",
        "part",
        "--identity",
        "id",
        "--ledger",
        "l.db",
        "--json",
        "--keep",
        "all",
    ).record
    assert {
        key: record[key]
        for key in ("output", "manifest", "records", "columns", "already")
    } == {
        "output": "part",
        "manifest": None,
        "records": 6,
        "columns": ["job"],
        "already": False,
    }
    for day in (1, 2):
        name = f"dt={day}/a.csv"
        assert (days / "part" / name).read_bytes() == (days / "out" / name).read_bytes()
        manifest = run(
            "check",
            f"out/{name}",
            "--channel",
            channel,
            "--original",
            f"in/{name}",
            "--identity",
            "id",
        )
        assert manifest.code == 0, manifest.err
    listed = run("releases", "--ledger", "l.db", "--json").record["releases"]
    assert [os.path.relpath(each["target"], days) for each in listed] == [
        *(f"out/dt={day}/a.csv" for day in (1, 2, 3)),
        *(f"part/dt={day}/a.csv" for day in (1, 2)),
    ]


def test_a_rehearsal(channel, days, run, refused):
    before = contents(days)
    result = run("apply", channel, "in", "out", "--dry-run")
    assert result.code == 0, result.err
    assert result.out.startswith(
        "9 records would be written to out; the column job is released"
    )
    result = run(
        "apply", channel, "records.csv", "out.csv", "--dry-run", "--drop", "group"
    )
    assert result.out.startswith(
        "12 records would be written to out.csv; the column job is released"
    )
    assert contents(days) == before
    assert "--dry-run asks the ledger" in refused(
        "apply", channel, "in/dt=1/a.csv", "o.csv", "--dry-run", "--insecure-seed", "1"
    )


@pytest.mark.skipif(
    sys.platform == "win32", reason="processes are forked and signalled"
)
@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_leaves_nothing_though_some_files_are_written(channel, days, signum):
    """The first files have been committed to the folder that is not there yet."""
    before = set(contents(days))
    child = os.fork()
    if not child:
        code = 99
        try:
            real = folders.release_or_rehearse

            def signalled(recipe, source, *rest):
                if "dt=3" in str(source):
                    os.kill(os.getpid(), signum)
                return real(recipe, source, *rest)

            folders.release_or_rehearse = signalled
            signal.signal(signal.SIGINT, signal.default_int_handler)
            code = main(
                ["apply", str(channel), "in", "out", "--ledger", "l.db", "--quiet"]
            )
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 128 + signum
    assert set(contents(days)) - before == {days / "l.db", days / "l.db.key"}
    ledger = Ledger(days / "l.db")
    with ledger.reading() as db:
        assert ledger.releases(db) == []


def test_a_file_that_is_gone_is_named_and_written_as_before(channel, days, run):
    asked = ("apply", channel, "in", "out", "--identity", "id", "--ledger", "l.db")
    run(*asked)
    gone = days / "out" / "dt=2" / "a.csv"
    before = gone.read_bytes()
    gone.unlink()
    refused = run(*asked)
    assert refused.code == 2
    assert "out: dt=2/a.csv was released there, and is gone: write the" in refused.err
    assert run(*asked, "--force").code == 0
    assert gone.read_bytes() == before


def test_a_manifest_without_its_release_is_named(channel, days, run):
    asked = ("apply", channel, "in/dt=1/a.csv", "o{0}.csv", "--manifest", "m.json")
    run(*asked)
    (days / "o{0}.csv").unlink()
    refused = run(*asked)
    assert "m.json exists, though o{0}.csv does not: choose another name" in refused.err
    assert run(*asked, "--force").code == 0
    assert (days / "o{0}.csv").exists()
