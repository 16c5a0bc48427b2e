"""Script, command and job file design the channel of the page, column for column."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from dataclasses import replace
from functools import partial

import pytest

from mechdesign.app.choice import Choice as AnyChoice
from mechdesign.app.memory_table import read_path
from mechdesign.app.recipes import command_of, job_of, script_of
from mechdesign.app.session import design_channel
from mechdesign.cli import main
from tests.profiles import slow

Choice = partial(AnyChoice, objective="information")

COLUMN = {"illness": "protect", "job": "release"}
ROWS = {"illness": "protect", "job": "release", "town": "give", "age": "release"}
CHOICES = {
    "column": Choice(roles=COLUMN),
    "truth": Choice(roles=COLUMN, objective="truth", factor="1.5"),
    "level": Choice(roles=COLUMN, level="0.9", factor="3"),
    "bins": Choice(
        roles={"illness": "protect", "age": "release"}, bins={"age": "quantiles:4"}
    ),
    "crossed": Choice(
        roles={"illness": "protect", "town": "protect", "job": "release"}
    ),
    "missing": Choice(
        roles={"illness": "protect", "note": "release"}, missing="symbol"
    ),
    "rows": Choice(roles=ROWS, bins={"age": "20"}, objective="truth", factor="3"),
    "relative": Choice(
        roles=ROWS, bins={"age": "20"}, objective="truth", promise="relative"
    ),
    "boxes": Choice(roles=ROWS, bins={"age": "20"}, level="0.9", promise="relative"),
    "filled boxes": Choice(
        roles={"illness": "protect", "job": "release", "town": "release"},
        level="0.9",
        objective="truth",
        factor="3",
    ),
    "merged": Choice(roles=COLUMN, level="0.9", merge_rare="150", factor="5"),
    "merged bins": Choice(
        roles={"illness": "protect", "age": "release"},
        bins={"age": "10"},
        level="0.9",
        merge_rare="auto",
        factor="5",
    ),
}

CONTENT = (
    "useful",
    "sensitive",
    "outputs",
    "denominator",
    "rows",
    "joint",
    "notion",
    "levels",
    "given",
    "strata",
    "tree",
    "bins",
    "confidence",
    "objective",
    "promise",
    "columns",
    "level",
    "parts",
)
"""Keys of what a channel does; the others say when and by what it was made."""


def content_of(text):
    document = json.loads(text)
    content = {key: document[key] for key in CONTENT if key in document}
    for part in content.get("parts", ()):
        # When and by what the channel of a part was made.
        part["channel"].pop("provenance")
        part["channel"].pop("certificate")
    return content


def page_channel(choice, table):
    table = table.with_columns(choice.used)
    designed = design_channel(table, choice, lambda line: None)
    (channel,) = [file for file in designed.files if file.name == "channel.json"]
    return content_of(channel.text)


LIKE_OTHERS = ("truth", "level", "crossed", "boxes", "merged")
"""Choices whose parts are in others, too."""


@pytest.fixture(
    params=[slow(name) if name in LIKE_OTHERS else name for name in CHOICES]
)
def choice(request):
    return CHOICES[request.param]


def test_a_slice_is_new_unless_it_is_repeated(people):
    table = read_path(str(people))
    choice = CHOICES["merged"]
    texts = {design_channel(table, choice, print).command for _ in range(2)}
    assert len(texts) == 2
    assert all("--slice-seed" in text for text in texts)


def test_script_command_and_job_design_the_same_channel(
    choice, people, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    table = read_path("people.csv")
    if choice.is_boxes:
        choice = replace(choice, slice_seed=7)
    expected = page_channel(choice, table)
    assert expected
    channel = tmp_path / "channel.json"
    recipes = {"script": script_of, "command": command_of, "job": job_of}
    for name, recipe in recipes.items():
        text = recipe(choice, table)
        if name == "script":
            exec(compile(text, "design.py", "exec"), {"__name__": "__main__"})
        elif name == "command":
            assert main(shlex.split(text)[1:]) == 0
        else:
            (tmp_path / "job.toml").write_text(text)
            assert main(["run", "job.toml"]) == 0
        assert content_of(channel.read_text()) == expected, name
        os.remove(channel)
    capsys.readouterr()


def test_awkward_names_and_delimiters(tmp_path, monkeypatch, people, capsys):
    """Names with quotes, commas and spaces survive a shell, TOML and Python."""
    monkeypatch.chdir(tmp_path)
    lines = people.read_text().split("\n")
    lines[0] = "its \"secret\", 'told';what; it is;town;age;note"
    header = ['"its ""secret"", \'told\'"', "job, of all", "$(town)", "age", "note"]
    rows = [";".join(header)] + [line.replace(",", ";") for line in lines[1:]]
    (tmp_path / "a file.csv").write_text("\n".join(rows))
    table = read_path("a file.csv")
    secret, job, *_ = table.columns
    choice = Choice(roles={secret: "protect", job: "release"})
    expected = page_channel(choice, table)
    channel = tmp_path / "channel.json"
    exec(compile(script_of(choice, table), "design.py", "exec"), {})
    assert content_of(channel.read_text()) == expected
    channel.unlink()
    assert main(shlex.split(command_of(choice, table))[1:]) == 0
    assert content_of(channel.read_text()) == expected
    channel.unlink()
    (tmp_path / "job.toml").write_text(job_of(choice, table))
    assert main(["run", "job.toml"]) == 0
    assert content_of(channel.read_text()) == expected
    capsys.readouterr()


@pytest.mark.slow
def test_script_runs_by_itself(people, tmp_path):
    choice = CHOICES["column"]
    table = read_path(str(people))
    (tmp_path / "design.py").write_text(script_of(choice, table))
    subprocess.run([sys.executable, "design.py"], cwd=tmp_path, check=True)
    assert content_of((tmp_path / "channel.json").read_text()) == page_channel(
        choice, table
    )


def test_a_file_whose_name_is_an_option(tmp_path, monkeypatch):
    """The line of design.sh took --output=x.csv for an option."""
    monkeypatch.chdir(tmp_path)
    rows = [("-s", "-u")] + [
        ("ill", "a"),
        ("well", "b"),
        ("ill", "b"),
        ("well", "a"),
    ] * 9
    name = "--output=x.csv"
    (tmp_path / name).write_text("".join(f"{s},{u}\n" for s, u in rows))
    choice = Choice(roles={"-s": "protect", "-u": "release"})
    words = shlex.split(command_of(choice, read_path(name)))
    assert words[:3] == ["mechdesign", "design", f"./{name}"]
    assert main(words[1:]) == 0
    assert (tmp_path / "channel.json").exists()
    assert not (tmp_path / "x.csv").exists()
