"""Disks that are full or cannot be written to: one clear line, and nothing under the final name."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.job_cases import (
    APPLY,
    LEDGER,
    Nursery,
    assert_manifest,
    assert_release,
    leftovers,
    states,
    write_folder,
)

pytestmark = pytest.mark.skipif(
    sys.platform == "win32", reason="POSIX limits, and file systems of Linux"
)

ROWS = 40_000
"""A table of 400 kB."""

SMALL = "256k"
"""Size of the file system that is too small for it."""

LIMIT = 100_000
"""Bytes that a file may have, where a limit stands in for a full disk."""

MOUNTED = f"""
mount -t tmpfs -o size={SMALL} none "$0/small" && mount -t tmpfs -o size=40m none "$0/frozen" &&
cp "$0/in.csv" "$0/channel.json" "$0/frozen" && mount -o remount,ro "$0/frozen" && exec "$@"
"""
"""A small file system and one that is read-only, in a name space of their own, which ends with its processes."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = write_folder(tmp_path_factory.mktemp("disk") / "folder", ROWS)
    for name in ("small", "frozen"):
        (folder / name).mkdir()
    return folder


@pytest.fixture(scope="module")
def mounted(folder):
    """Processes that see a small disk and a frozen one."""
    for how in (["unshare", "-rm"], ["unshare", "-m"]):
        prefix = [*how, "sh", "-ec", MOUNTED, str(folder)]
        try:
            tried = subprocess.run([*prefix, "true"], capture_output=True, check=False)
        except FileNotFoundError:
            continue
        if tried.returncode == 0:
            with Nursery(folder.parent, prefix) as nursery:
                yield nursery
            return
    pytest.skip("this user may not mount file systems (unshare, mount)")


def parquet(folder: Path) -> Path:
    import pyarrow.csv
    import pyarrow.parquet

    path = folder / "in.parquet"
    if not path.exists():
        # Without dictionaries the file is as large as the CSV.
        pyarrow.parquet.write_table(
            pyarrow.csv.read_csv(folder / "in.csv"),
            path,
            compression="none",
            use_dictionary=False,
        )
    return path


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_full_disk(mounted, folder, kind):
    if kind == "parquet":
        parquet(folder)
    ended = mounted.run(
        folder, *APPLY, f"in.{kind}", f"small/out.{kind}", look=str(folder / "small")
    )
    assert ended.status == 2
    assert (
        ended.err
        == f"mechdesign: error: small/out.{kind} cannot be written: no space left on device\n"
    )
    assert (ended.out, ended.files) == ("", [])
    assert states(folder) == []


def test_a_disk_without_room_for_a_copy_of_standard_input(mounted, folder):
    ended = mounted.run(
        folder,
        *APPLY,
        "-",
        "small/out.csv",
        stdin=str(folder / "in.csv"),
        look=str(folder / "small"),
    )
    assert ended.status == 2
    assert ended.err.startswith(
        "mechdesign: error: standard input cannot be copied to "
    )
    assert ended.err.endswith("/small: no space left on device\n")
    assert ended.files == []


def test_a_folder_that_is_read_only(mounted, folder):
    ended = mounted.run(
        folder, *APPLY, "in.csv", "frozen/out.csv", look=str(folder / "frozen")
    )
    assert (ended.status, ended.err) == (
        2,
        "mechdesign: error: frozen/out.csv cannot be written: the folder 'frozen' is not writable\n",
    )
    assert ended.files == ["channel.json", "in.csv"]
    assert states(folder) == []


def test_a_place_where_no_ledger_can_be_kept(mounted, folder):
    """Another place for the ledger helps; the channel's folder need not be writable."""
    command = ("apply", "frozen/channel.json", "in.csv", "elsewhere.csv")
    kept = ("--keep", "all")
    ended = mounted.run(folder, *command, "--ledger", "frozen/ledger.db")
    assert ended.status == 2
    assert "the ledger " in ended.err
    assert (
        "frozen/ledger.db cannot be written: read-only file system; name another place"
        in ended.err
    )
    assert ended.err.count("\n") == 1
    assert not (folder / "elsewhere.csv").exists()
    ended = mounted.run(folder, *command, *kept)
    assert ended.status == 0, ended.err
    assert_release(folder / "in.csv", folder / "elsewhere.csv")
    assert_manifest(folder / "elsewhere.csv")


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_limit_on_the_size_of_files(nursery, folder, kind):
    if kind == "parquet":
        parquet(folder)
    ended = nursery.run(folder, *APPLY, f"in.{kind}", f"limited.{kind}", limit=LIMIT)
    assert ended.status == 2
    assert (
        ended.err
        == f"mechdesign: error: limited.{kind} cannot be written: file too large\n"
    )
    assert not list(folder.glob("limited*"))
    assert leftovers(folder) == []


def test_the_job_goes_on_when_there_is_room_again(nursery, tmp_path):
    """The job keeps its key and its entries through a failure."""
    folder = write_folder(tmp_path / "folder", ROWS // 3)
    assert nursery.run(folder, *APPLY, "in.csv", "ref.csv").status == 0
    ended = nursery.run(folder, *APPLY, "in.csv", "out.csv", limit=LIMIT)
    assert (ended.status, states(folder)) == (2, ["done"])
    ended = nursery.run(folder, *APPLY, "in.csv", "out.csv")
    assert (ended.status, states(folder)) == (0, ["done", "done"])
    assert (folder / "out.csv").read_bytes() == (folder / "ref.csv").read_bytes()


def test_a_ledger_that_cannot_grow(nursery, tmp_path):
    """The release is not made if the ledger cannot enter it: it would be forgotten that there was one."""
    folder = write_folder(tmp_path / "folder", 10)
    assert nursery.run(folder, *APPLY, "in.csv", "ref.csv").status == 0
    before = (folder / LEDGER).read_bytes()
    ended = nursery.run(folder, *APPLY, "in.csv", "out.csv", limit=2000)
    assert ended.status == 2
    assert "data/mechdesign/ledger.db cannot be written: " in ended.err
    assert ended.err.count("\n") == 1
    assert not (folder / "out.csv").exists()
    assert states(folder) == ["done"]
    assert (folder / LEDGER).read_bytes() == before
    assert leftovers(folder) == []
