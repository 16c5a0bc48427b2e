"""Numbers are listed in their order wherever people read symbols; files keep that of texts."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

import mechdesign as md

TEXT_ORDER = ("10", "100", "8", "9")


@pytest.fixture
def numbers(folder, run):
    rng = np.random.default_rng(3)
    values = np.array([8, 9, 10, 100])
    x = values[rng.integers(0, 4, 800)]
    secret = np.where(rng.random(800) < 0.5, x, values[rng.integers(0, 4, 800)])
    frame = pd.DataFrame({"s": secret, "x": x})
    frame.to_csv("t.csv", index=False)
    return frame


def first_words(text, after):
    """The first words of the lines behind the one that begins with `after`."""
    _, _, rest = text.partition(f"{after}")
    words = []
    for line in rest.split("\n")[1:]:
        found = re.match(r"  (\d+)  ", line)
        if found is None:
            break
        words.append(found[1])
    return words


@pytest.mark.parametrize("column", ["--useful", "--release"])
def test_tables_list_numbers_in_their_order(numbers, run, column):
    ask = ("design", "t.csv", "--sensitive", "s", column, "x", "--epsilon", "2")
    told = run(*ask, "--output", "c.json").out
    if column == "--useful":
        assert first_words(told, "highest after") == ["8", "9", "10", "100"]
    told = run(*ask, "--full").out
    assert first_words(told, "highest after") == ["8", "9", "10", "100"]
    if column == "--release":
        assert first_words(told, "stays true") == ["8", "9", "10", "100"]
    shown = run("show", "c.json").out
    assert re.findall(r"(?m)^  (\d+):", shown)[:4] == ["8", "9", "10", "100"]
    run("apply", "c.json", "t.csv", "out.csv")
    told = run("estimate", "out.csv", "--channel", "c.json").out
    assert first_words(told, "std.error") == ["8", "9", "10", "100"]
    # The file keeps the order on which draws depend.
    assert md.Channel.load("c.json").useful.names == TEXT_ORDER
    assert re.search(
        r"s [(]8 [^,]*, 9 [^,]*, 10 [^,]*, 100 ",
        " ".join(run("assess", "t.csv", "--sensitive", "s").out.split()),
    )


def test_groups_of_a_mean_are_listed_by_their_numbers(folder, run):
    rng = np.random.default_rng(5)
    groups = np.array([8, 9, 10, 100])[rng.integers(0, 4, 400)]
    frame = pd.DataFrame(
        {"s": rng.choice(["y", "n"], 400), "g": groups, "v": rng.integers(1, 4, 400)}
    )
    frame.to_csv("t.csv", index=False)
    run(
        *("design", "t.csv", "--sensitive", "s", "--release", "g,v"),
        *("--epsilon", "3", "--output", "c.json"),
    )
    run("apply", "c.json", "t.csv", "out.csv", "--keep-order")
    ask = ("estimate", "out.csv", "--channel", "c.json", "--mean", "v", "--by", "g")
    assert first_words(run(*ask).out, "std.error") == ["8", "9", "10", "100"]
