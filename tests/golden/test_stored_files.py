"""A ledger, its key, channel files and released files of the first version are recognised and repeated."""

from __future__ import annotations

import json
import shutil

import pytest

from tests.golden.entry import (
    Channel,
    channel_digest,
    check_of,
    main,
    read_key,
)
from tests.golden.jobs import CHANNELS, JOBS, LEDGER, OPTIONS, ROW_CHANNEL, STORED_KEY
from tests.golden.vectors import STORED


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A copy of the stored files, for opening a ledger may write to it; a key is for its owner alone."""
    shutil.copytree(STORED, tmp_path / "stored")
    copy = tmp_path / "stored"
    (copy / STORED_KEY).rename(copy / (LEDGER + ".key"))
    (copy / (LEDGER + ".key")).chmod(0o600)
    monkeypatch.chdir(copy)
    return copy


def releases(capfd, *arguments: str) -> dict:
    capfd.readouterr()
    assert main(["releases", *arguments, "--ledger", LEDGER, "--json"]) == 0
    return json.loads(capfd.readouterr().out)


@pytest.mark.parametrize("output", JOBS)
def test_a_release_is_repeated_byte_for_byte(folder, capfd, output):
    channel, source, *options = JOBS[output]
    before = releases(capfd)["releases"]
    released = (folder / output).read_bytes()
    (folder / output).unlink()
    assert main(["apply", channel, source, output, *OPTIONS, *options, "--json"]) == 0
    assert (folder / output).read_bytes() == released
    # The same draws once more: the ledger has a release more or the same, but none with another draw.
    after = releases(capfd)["releases"]
    draws = [{used["draw"] for used in entry["channels"]} for entry in after]
    assert all(numbers == {0} for numbers in draws)
    assert {entry["data"] for entry in after} == {entry["data"] for entry in before}


def test_the_ledger_knows_all_releases(folder, capfd):
    entries = releases(capfd)["releases"]
    assert len(entries) == len(JOBS)
    for entry, (channel, *_) in zip(entries, JOBS.values(), strict=True):
        assert entry["records"] == 60
        used = [each["channel"] for each in entry["channels"]]
        assert channel_digest(Channel.load(folder / channel)) in used


@pytest.mark.parametrize("output", JOBS)
def test_the_data_of_a_release_is_known_again_in_another_order(folder, capfd, output):
    channel, source, *_ = JOBS[output]
    if source != "nasty.csv":  # which has line breaks in cells
        head, *rows = (folder / source).read_text().splitlines()
        (folder / source).write_text(
            "\n".join([head, *sorted(rows, reverse=True)]) + "\n"
        )
    total = releases(
        capfd, "total", source, "--channel", channel, "--channel", "town.json"
    )
    assert len(total["releases"]) == 1


def test_other_draws_of_the_same_records_are_refused(folder, capfd):
    """With another way to name the records their draws would be independent of the first."""
    arguments = ["apply", "channel_1.json", "rows.csv", "again.csv", *OPTIONS]
    assert main([*arguments, "--identity", "id"]) == 2
    assert "--fresh-draw" in capfd.readouterr().err


def test_the_key_is_the_one_of_the_ledger(folder):
    key = read_key(folder / (LEDGER + ".key"))
    stored = (folder / LEDGER).read_bytes()
    assert check_of(key).encode() in stored


@pytest.mark.parametrize("name", CHANNELS)
def test_channel_files_are_written_back_byte_for_byte(folder, name):
    channel = Channel.load(name)
    channel.save("again.json")
    assert (folder / "again.json").read_bytes() == (folder / name).read_bytes()


def test_the_file_of_a_channel_of_rows_is_written_back_byte_for_byte(folder):
    channel = Channel.load(ROW_CHANNEL)
    channel.save("again.json")
    assert (folder / "again.json").read_bytes() == (folder / ROW_CHANNEL).read_bytes()


@pytest.mark.parametrize(("name", "version"), [*zip(CHANNELS, [1, 2, 1], strict=True)])
def test_versions_of_channel_files(folder, name, version):
    assert json.loads((folder / name).read_bytes())["version"] == version


def test_kept_cells_are_copied_byte_for_byte(folder):
    """Only the job differs, which has no comma; line ends stay as they are."""
    before = (folder / "nasty.csv").read_bytes().split(b"\n")
    after = (folder / "nasty_out.csv").read_bytes().split(b"\n")
    assert len(before) == len(after)
    for old, new in zip(before, after, strict=True):
        fields = old.split(b",")
        if len(fields) < 5 or fields[0] == b"id":
            assert new == old
            continue
        start = b",".join(fields[:3]) + b","
        end = b"," + b",".join(fields[4:])
        assert new.startswith(start)
        assert new.endswith(end)
