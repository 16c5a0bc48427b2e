from __future__ import annotations

import json
import os

import pytest

from mechdesign.channel.channel import Channel
from mechdesign.cli import main
from mechdesign.core.errors import InputError
from mechdesign.jobs.release_file import sanitise_file
from mechdesign.jobs.target import keep_apart
from mechdesign.tables.variable import Variable

D = 2**53


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    variable = Variable(("job",), (("a",), ("b",)))
    Channel(variable, ("y", "z"), ((D // 2, D // 2), (D // 4, D - D // 4)), D).save(
        tmp_path / "channel.json"
    )
    (tmp_path / "in.csv").write_text("id,job\n1,a\n2,b\n")
    sanitise_file(
        Channel.load(tmp_path / "channel.json"),
        "in.csv",
        "before.csv",
        ledger=tmp_path / "ledger.db",
    )
    os.link(tmp_path / "channel.json", tmp_path / "other name.json")
    return tmp_path


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    "option", [None, "--manifest", "--internal-manifest", "--codebook"]
)
@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "channel.json",
            "would overwrite the channel file channel.json, which is still needed",
        ),
        (
            "other name.json",
            "would overwrite the channel file channel.json, which is still needed",
        ),
        ("ledger.db", "would overwrite the ledger"),
        ("ledger.db.key", "holds the key of a job, which is never overwritten"),
    ],
)
def test_force_does_not_destroy_channels_jobs_and_keys(
    folder, capsys, option, name, message
):
    before = contents(folder)
    sides = [] if option is None else [option, name]
    target = name if option is None else "out.csv"
    assert (
        main(
            [
                "apply",
                "channel.json",
                "in.csv",
                target,
                "--force",
                "--ledger",
                "ledger.db",
                *sides,
            ]
        )
        == 2
    )
    error = " ".join(capsys.readouterr().err.split())
    assert message in error
    assert name in error
    assert contents(folder) == before


def test_a_ledger_that_would_be_written_over_is_not_begun(folder):
    before = contents(folder)
    with pytest.raises(
        InputError,
        match=r"out\.csv would overwrite the ledger .*\.out\.csv\.part, which is",
    ):
        sanitise_file(
            Channel.load("channel.json"), "in.csv", "out.csv", ledger=".out.csv.part"
        )
    with pytest.raises(
        InputError, match=r"out\.key holds the key of a job, which is never"
    ):
        sanitise_file(Channel.load("channel.json"), "in.csv", "out.key", ledger="out")
    assert {
        path: data for path, data in contents(folder).items() if path in before
    } == before
    assert (
        json.loads((folder / "channel.json").read_text())["format"]
        == "mechdesign.channel"
    )


def test_standard_output_replaces_nothing(tmp_path, monkeypatch):
    """Not even a file of that name, which is refused by another one."""
    monkeypatch.chdir(tmp_path)
    assert keep_apart(["-"], [("the channel file", "-")]) is None
    with pytest.raises(
        InputError, match="would overwrite the channel file -, which is still needed"
    ):
        keep_apart([tmp_path / "-"], [("the channel file", "-")])
