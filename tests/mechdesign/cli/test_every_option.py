"""No option of `design` is dropped: with every shape of a release it changes the answer, or is refused
by name.

The options are those that the command declares, so a new one needs a line in `TRIED` here.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mechdesign.cli import design, line, main

SHAPES = {
    "column": ("--useful", "a"),
    "crossed": ("--useful", "a,b"),
    "rows": ("--release", "a,b"),
    "given": ("--release", "a,b", "--given", "k", "--promise", "relative"),
    "confident": ("--release", "a,b", "--confidence", "0.9", "--slice-seed", "1"),
    "merged": (
        *("--useful", "a", "--confidence", "0.9"),
        *("--merge-rare", "40", "--slice-seed", "1"),
    ),
}

LIKE_ANOTHER = {"crossed": "column", "given": "rows"}
"""Shapes that go the way of another one for most options: they are tried with the slow tests."""

QUICKLY = {"confident": ("--cells", "4")}
"""What is typed beside options that do not say how a design is found: the choice of a number of cells takes longer than
all the rest."""

BUDGET = ("--epsilon", "0.8")


class Tried:
    """What is typed for an option, and what is typed with and without it."""

    def __init__(
        self,
        value,
        *,
        beside=(),
        table="people.csv",
        budget=BUDGET,
        secret="secret",
        alone=(),
        of_search=False,
        **of_shapes,
    ):
        self.of_search = of_search
        self.alone = alone
        self.value = value
        self.of_shapes = of_shapes
        self.beside = tuple(beside)
        self.table = table
        self.budget = tuple(budget)
        self.secret = ("--sensitive", secret) if secret else ()


TWO = "secret,other"
BOXES = ("confident", "merged")
"""Shapes that refuse the options beside which another one is tried."""

TRIED = {
    # The table.
    "--sensitive": Tried("other", secret=None, beside=("--sensitive", "secret")),
    "--protect-each": Tried(None, secret=TWO),
    "--useful": Tried("b"),
    "--weight": Tried("w"),
    "--contingency": Tried(None, table="wide.csv"),
    "--probabilities": Tried(None, table="wide.csv"),
    "--weighted": Tried(None, beside=("--weight", "w")),
    "--missing": Tried("drop", table="holes.csv"),
    "--bin": Tried("a=0,2,inf"),
    "--delimiter": Tried(";"),
    "--quote": Tried("'", table="quoted.csv"),
    "--encoding": Tried("latin-1", table="latin.csv"),
    "--skip-lines": Tried("1", table="title.csv"),
    "--normalise": Tried("NFC", table="decomposed.csv"),
    "--trim": Tried(None, table="padded.csv"),
    "--missing-codes": Tried("1", beside=("--missing", "drop")),
    # What is promised.
    "--budget": Tried("s=0.1,0.1"),
    "--notion": Tried("ldp"),
    "--epsilon": Tried("0.4", budget=("--epsilon", "0.9")),
    "--lam": Tried("0.2"),
    "--eps-l": Tried("0.2", budget=("--eps-u", "0.5")),
    "--eps-u": Tried("0.2", budget=("--eps-l", "0.5")),
    "--alpha": Tried("3", beside=("--notion", "alpha")),
    "--at-most-times": Tried("1.2", budget=("--at-least-times", "0.5")),
    "--at-least-times": Tried("0.7", budget=("--at-most-times", "1.5")),
    "--max-posterior": Tried("0.65", budget=("--at-least-times", "0.5")),
    "--keep": Tried("0.5", budget=("--notion", "lip")),
    "--average": Tried("mi=0.001"),
    "--confidence": Tried("0.95"),
    "--known-shares": Tried("shares.csv"),
    "--symbols": Tried("symbols.csv"),
    "--secrets": Tried("secrets.csv"),
    "--after": Tried("before.json"),
    # Rows.
    "--release": Tried("a"),
    "--given": Tried("k", given="n"),
    "--leave-out": Tried("n"),
    "--promise": Tried("relative", given="total"),
    "--never": Tried("a=1,b=u", beside=("--free-frequencies",), alone=BOXES),
    "--column-weight": Tried("a=9"),
    "--smallest-group": Tried("30"),
    "--known": Tried("a", beside=("--smallest-group", "30"), alone=BOXES),
    "--cells": Tried("3", of_search=True),
    "--rare": Tried("300"),
    "--fill": Tried(None),
    "--slice-seed": Tried("2"),
    "--merge-rare": Tried("90"),
    # People with several records.
    "--person": Tried("id", table="visits.csv"),
    "--wave": Tried("time", table="visits.csv", beside=("--person", "id")),
    "--sensitive-of": Tried("sequence", table="visits.csv", beside=("--person", "id")),
    "--unit": Tried("record", table="visits.csv"),
    # What is kept.
    "--objective": Tried("frequencies"),
    "--task": Tried("other", beside=("--objective", "task"), alone=BOXES),
    "--distance": Tried(
        "squared",
        rows="absolute",
        given="absolute",
        beside=("--objective", "distance"),
        alone=BOXES,
    ),
    "--keep-frequencies": Tried(
        None, beside=("--objective", "truth"), alone=("merged",)
    ),
    "--free-frequencies": Tried(
        None, beside=("--objective", "truth"), alone=("merged",)
    ),
    "--stay": Tried("0.9", beside=("--objective", "truth"), alone=BOXES),
    "--forbid": Tried(
        "1:2", crossed="1, u:2, u", beside=("--objective", "truth"), alone=BOXES
    ),
    # How it is found.
    "--mechanism": Tried("complete-merging", of_search=True),
    "--method": Tried("columns", of_search=True),
    "--enumerate": Tried("pycddlib", of_search=True),
    "--gap": Tried("0.5", of_search=True),
    "--time-limit": Tried("1e-9", of_search=True),
    "--no-fallback": Tried(None, beside=("--time-limit", "1e-9"), of_search=True),
    "--allow-identifier": Tried(None, table="few.csv"),
    # What is written.
    "--output": Tried("other.json"),
    "--public": Tried(None),
    "--unknown": Tried("marginal", rows="nearest", given="nearest"),
    "--full": Tried(None),
    "--all-measures": Tried(None),
    "--report": Tried("report.json"),
    "--public-report": Tried("public.json"),
    "--curve": Tried("0", beside=("--report", "report.md")),
}

OF_THE_CONSOLE = {"--quiet", "--log-json", "--debug", "--json"}
"""Options that change how an answer is printed and never what it is."""

WRITTEN = {"--output", "--public", "--full", "--all-measures", "--report"} | {
    "--public-report",
    "--curve",
}
"""Options that change what is printed or written."""

SAME = {
    **dict.fromkeys(
        [
            (option, shape)
            for option in ("--gap", "--time-limit")
            for shape in ("rows", "given")
        ],
        "the optimum of a small plan is proven before either ends the search",
    ),
    ("--curve", "given"): "a report on given columns has no curve, and says so",
    ("--time-limit", "merged"): "the search of few symbols needs no time",
    ("--allow-identifier", "merged"): "merging is for such columns",
    **dict.fromkeys(
        [("--no-fallback", shape) for shape in SHAPES],
        "it decides what follows a search that fails",
    ),
    **dict.fromkeys(
        [
            ("--keep-frequencies", shape)
            for shape in ("column", "crossed", "rows", "given", "confident")
        ],
        "it is the default there",
    ),
}
"""Options and shapes for which the answer may be the same, and why."""


def declared() -> list[str]:
    """The names of all options of `design`."""
    names = []
    for group in line.groups_of(design.design).values():
        for _, _, spellings in line.declared(group):
            names += spellings[:1]
    return names


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """A folder with all files that an option may name."""
    folder = tmp_path_factory.mktemp("options")
    rng = np.random.default_rng(3)
    count = 600
    secret = rng.choice(["s", "t"], count, p=[0.4, 0.6])
    a = np.where(rng.random(count) < 0.4, np.where(secret == "s", 1, 3), 2)
    a = np.where(rng.random(count) < 0.3, rng.integers(1, 5, count), a)
    b = np.where(rng.random(count) < 0.4, np.where(a < 2, "u", "v"), "w")
    frame = pd.DataFrame(
        {
            "secret": secret,
            "other": np.where(rng.random(count) < 0.3, secret, "o"),
            "a": a,
            "b": b,
            "k": rng.choice(["m", "f"], count),
            "n": rng.integers(0, 3, count),
            "w": rng.integers(1, 4, count),
        }
    )
    frame.to_csv(folder / "people.csv", index=False)
    holes = frame.astype(object)
    holes.loc[:20, ["a", "b"]] = None
    holes.to_csv(folder / "holes.csv", index=False)
    quoted = frame.assign(**{name: frame[name].map("'{}'".format) for name in "ab"})
    quoted.to_csv(folder / "quoted.csv", index=False)
    latin = frame.assign(b=frame["b"].replace("u", "ü"), a=frame["a"].map("é{}".format))
    latin.to_csv(folder / "latin.csv", index=False, encoding="latin-1")
    text = (folder / "people.csv").read_text(encoding="utf-8")
    (folder / "title.csv").write_text(
        f"A title above the header\n{text}", encoding="utf-8"
    )
    odd = np.arange(count) % 2 == 0
    for name, marks in (("padded", ("", " ")), ("decomposed", ("\u00e9", "e\u0301"))):
        marked = frame.astype(str)
        for column in "ab":
            marked[column] += np.where(odd, *marks)
        marked.to_csv(folder / f"{name}.csv", index=False)
    few = frame.head(120).assign(a=np.arange(120), b=np.arange(120))
    few.to_csv(folder / "few.csv", index=False)
    # Two records for each of 300 people, the later one first.
    visits = frame.assign(
        id=np.arange(count) // 2,
        time=1 - np.arange(count) % 2,
        secret=secret[np.arange(count) // 2 * 2],
    )
    visits.to_csv(folder / "visits.csv", index=False)
    (folder / "wide.csv").write_text("secret,x,y,z\ns,500,300,200\nt,200,400,400\n")
    (folder / "shares.csv").write_text("symbol,share\ns,0.4\nt,0.6\n")
    (folder / "secrets.csv").write_text("secret\ns\nt\nz\n")
    (folder / "symbols.csv").write_text("a\n1\n2\n3\n4\n5\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        before = ("design", "people.csv", "--sensitive", "secret", "--useful", "n")
        assert main([*before, "--epsilon", "0.1", "--output", "before.json"]) == 0
    return folder


def asked(shape: str, tried: Tried, option: str | None) -> tuple[str, ...]:
    """The command line with an option, or without it."""
    words = ["design", tried.table, *tried.secret, *SHAPES[shape], *tried.budget]
    if shape not in tried.alone:
        words += tried.beside
    if not tried.of_search:
        words += QUICKLY.get(shape, ())
    if option is None:
        return tuple(words)
    value = tried.of_shapes.get(shape, tried.value)
    if option in words and value is not None:
        # What the shape has already is replaced, where a second one would be one more.
        words[words.index(option) + 1] = value
        return tuple(words)
    words.append(option)
    if value is not None:
        words.append(value)
    return tuple(words)


class Answer:
    """What a command answers, but for its time and the line that repeats it."""

    def __init__(self, words: tuple[str, ...], written: bool, capfd):
        own = {path.name for path in Path().iterdir()}
        extra = [] if written else ["--json", "--output", "answer.json"]
        capfd.readouterr()
        self.code = main([*words, *extra])
        out, self.error = capfd.readouterr()
        self.files = {}
        for path in sorted(Path().iterdir()):
            if path.name not in own:
                self.files[path.name] = plain(path.read_text(encoding="utf-8"))
                path.unlink()
        self.out = plain(out)

    @property
    def content(self):
        return self.code, self.out, self.files


def plain(text: str):
    """JSON without times and lines; other texts as they are."""
    try:
        record = json.loads(text)
    except ValueError:
        return text
    return without(record)


def without(value):
    if isinstance(value, dict):
        left_out = ("seconds", "provenance", "sha256", "command")
        return {k: without(v) for k, v in value.items() if k not in left_out}
    if isinstance(value, list):
        return [without(entry) for entry in value]
    return value


def names(option: str, error: str) -> bool:
    """True if a message has the option or the words of its name."""
    words = option.removeprefix("--").replace("-", "[-_ ]")
    return re.search(words, error) is not None


@pytest.fixture(scope="module")
def known_answers() -> dict[tuple[object, ...], Answer]:
    """Many options are tried beside the same words."""
    return {}


@pytest.fixture
def answer(tables, known_answers, monkeypatch, capfd):
    monkeypatch.chdir(tables)

    def answered(*asked):
        if asked not in known_answers:
            known_answers[asked] = Answer(*asked, capfd)
        return known_answers[asked]

    return answered


def test_every_option_is_tried():
    assert {*declared()} - OF_THE_CONSOLE == {*TRIED}


def all_shapes():
    for shape in SHAPES:
        marks = [pytest.mark.slow] if shape in LIKE_ANOTHER else []
        yield pytest.param(shape, marks=marks)


@pytest.mark.parametrize("shape", [*all_shapes()])
@pytest.mark.parametrize("option", TRIED)
def test_no_option_is_dropped(answer, option, shape):
    tried = TRIED[option]
    written = option in WRITTEN
    found = answer(asked(shape, tried, option), written)
    if found.code == 2:
        # An option may also be refused with the one that it needs beside it.
        needed = [word for word in tried.beside if word.startswith("--")]
        words = [option, *needed]
        assert any(names(word, found.error) for word in words), found.error
        return
    if (option, shape) in SAME:
        return
    bare = answer(asked(shape, tried, None), written)
    assert found.content != bare.content, f"{found.code} {found.error} {bare.error}"
