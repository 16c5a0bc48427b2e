"""A command line that runs in this process, and files to run it on."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from mechdesign.cli import main
from mechdesign.core.errors import NAMES_OPTIONS
from tests.cases.meters import METERS

RECORDS = """\
id,group,job,town
1,a,clerk,N
2,a,clerk,S
3,a,baker,N
4,a,smith,S
5,b,clerk,N
6,b,baker,S
7,b,smith,N
8,b,smith,S
9,b,weaver,N
10,a,weaver,S
11,a,clerk,N
12,b,smith,S
"""

COUNTS = "group,clerk,baker,smith,weaver\na,3,1,1,1\nb,1,1,3,1\n"


@dataclass(frozen=True)
class Run:
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def record(self) -> dict:
        """Standard output as the one JSON object that it must be."""
        assert self.out.count("\n") == 1
        return json.loads(self.out)


@pytest.fixture(autouse=True)
def _small_by_products(small_by_products):
    """In all tests of commands."""


@pytest.fixture(autouse=True)
def _options_in_messages():
    """Messages name options, as where `main` runs."""
    token = NAMES_OPTIONS.set(True)
    yield
    NAMES_OPTIONS.reset(token)


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """An empty working folder with records.csv and counts.csv."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "records.csv").write_text(RECORDS, encoding="utf-8")
    (tmp_path / "counts.csv").write_text(COUNTS, encoding="utf-8")
    return tmp_path


@pytest.fixture
def meters(tmp_path, monkeypatch) -> Path:
    """A working folder with meters.csv alone."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "meters.csv"
    path.write_bytes(METERS.encode())
    return path


@pytest.fixture
def run(capfd):
    """``run("design", "x.csv", ...)`` gives code, standard output and standard error."""

    def runner(*arguments: str) -> Run:
        capfd.readouterr()
        code = main([str(argument) for argument in arguments])
        out, err = capfd.readouterr()
        return Run(code, out, err)

    return runner


@pytest.fixture(scope="session")
def known_designs() -> dict[tuple[object, ...], bytes]:
    """The channel files that were designed for records.csv, by their options."""
    return {}


@pytest.fixture
def design_into(folder, run, known_designs):
    """``design_into(path, *options)`` writes the channel file for records.csv; it is designed once."""

    def write(path: Path, *options: object) -> None:
        if options not in known_designs:
            result = run("design", "records.csv", *options, "--output", path)
            assert result.code == 0, result.err
            known_designs[options] = path.read_bytes()
        path.write_bytes(known_designs[options])

    return write


@pytest.fixture
def channel(folder, design_into) -> Path:
    """A channel file for records.csv; it works on group and job."""
    path = folder / "channel.json"
    design_into(path, *MICRODATA, "--epsilon", "1")
    return path


@pytest.fixture
def designed(folder, design_into):
    """``designed("town", 1.0)`` is the name of a channel file for records.csv that works on group and this column."""

    def designer(useful: str, epsilon: float, sensitive: str = "group") -> str:
        name = f"{sensitive}_{useful}_{epsilon}.json"
        asked = ("--sensitive", sensitive, "--useful", useful, "--epsilon", epsilon)
        design_into(folder / name, *asked)
        return name

    return designer


MICRODATA = ("--sensitive", "group", "--useful", "job")


def contents(folder):
    return {
        path: path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


@pytest.fixture
def refused(folder, run):
    """Run a command that must be refused, and give its standard error."""

    def runner(*arguments):
        before = contents(folder)
        result = run(*arguments)
        assert result.code == 2, (result.code, result.out, result.err)
        assert result.out == ""
        lines = result.err.splitlines()
        assert 1 <= len(lines) <= 2, result.err
        assert lines[0].startswith("mechdesign: error: ")
        assert "Traceback" not in result.err
        assert contents(folder) == before
        return result.err

    return runner
