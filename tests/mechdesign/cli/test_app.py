"""`mechdesign app`: its address, its end, and what it says without its packages."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import urllib.request
from importlib import util

import pytest

from mechdesign.cli import main


def test_without_the_extra_one_sentence_names_it(monkeypatch, capsys):
    find = util.find_spec

    def without_uvicorn(name, *package):
        if name == "uvicorn":
            return None
        return find(name, *package)

    monkeypatch.setattr("mechdesign.app.server.find_spec", without_uvicorn)
    monkeypatch.setattr("mechdesign.app.server.NEEDED", ("uvicorn",))
    assert main(["app"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err == (
        "mechdesign: error: mechdesign app needs uvicorn, which is not installed: "
        "pip install 'mechdesign[app]'\n"
    )


def test_a_file_that_is_not_there(capsys):
    pytest.importorskip("uvicorn")
    pytest.importorskip("starlette")
    assert main(["app", "nowhere.csv"]) == 2
    assert "nowhere.csv cannot be read" in capsys.readouterr().err


@pytest.mark.slow
def test_ctrl_c_ends_it_without_a_word(tmp_path):
    pytest.importorskip("uvicorn")
    pytest.importorskip("starlette")
    table = tmp_path / "people.csv"
    table.write_text("illness,job\n" + "ill,cook\nwell,nurse\n" * 20)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-m", "mechdesign", "app", str(table)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(temporary), "PYTHONUNBUFFERED": "1"},
    )
    assert process.stdout is not None
    address = process.stdout.readline().removeprefix("Open ").strip()
    with urllib.request.urlopen(address) as answer:
        assert "40 records, 2 columns" in answer.read().decode()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 0
    assert out == ""
    assert err == "mechdesign: note: Ctrl-C ends the page and forgets the table.\n"
    assert list(temporary.iterdir()) == []
