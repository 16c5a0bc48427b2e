"""The page for a board: what it says, that it says it in plain words, and its refusals."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest

import mechdesign as md
from mechdesign.cli import main
from mechdesign.report.board import board_page, people
from mechdesign.report.content import summary_report

JARGON = (
    *("alip", "lift", "eps", "posterior", "prior", "nats", "channel", "entropy"),
    *("total variation", "marginal", "stochastic", "stratum", "symbol", "tuple"),
)
"""Words that people who decide do not know."""


def table(records=1_200):
    chance = np.random.default_rng(3)
    job = chance.choice(list("abcd"), records)
    ill = chance.random(records) < np.where(job < "c", 0.5, 0.1)
    return pd.DataFrame(
        {
            "job": job,
            "sex": chance.choice(["f", "m"], records),
            "ill": np.where(ill, "yes", "no"),
        }
    )


def page_of(design):
    joint = design.channel.joint
    report = summary_report(design, joint, attained={}, remarks=())
    return board_page(design, report, "channel.json")


def sentences(page):
    texts = [page.title, page.lead]
    for title, parts in page.parts:
        texts += [title, *parts]
    return texts


@pytest.fixture(scope="module")
def design():
    return md.design(table(), md.LIP(0.4), sensitive="ill", release=["job", "sex"])


def test_the_figures_are_those_of_the_promise_rounded_up(design):
    """What nobody can find out is the exact bound, never less."""
    page = page_of(design)
    texts = dict(page.parts)["What nobody can find out"]
    joint = design.channel.joint
    ranges = md.audit(design.channel).achieved
    for name, share in zip(joint.sensitive.names, joint.p_s, strict=True):
        (text,) = [text for text in texts if f"ill {name}" in text]
        most, of_all = (float(found) for found in re.findall(r"\((\d+\.\d) %\)", text))
        assert share < most / 100 <= share * np.exp(ranges.eps_u) + 0.001
        assert of_all == pytest.approx(100 * share, abs=0.06)
    assert "about 1,200 people" not in " ".join(sentences(page))
    assert "1,200 people" in " ".join(sentences(page))


@pytest.mark.parametrize(
    "release", [{"release": ["job", "sex"]}, {"useful": "job"}, {"release": "job"}]
)
def test_words_and_numbers_are_plain(release):
    page = page_of(md.design(table(), md.LIP(0.4), sensitive="ill", **release))
    for text in sentences(page):
        # People who decide type no commands.
        assert "`" not in text
        assert "mechdesign audit" not in text
        words = text.replace("channel.json", "")
        for word in JARGON:
            assert not re.search(rf"\b{word}", words.lower()), (word, text)
        for number in re.findall(r"\d[\d,.]*", words):
            digits = number.replace(",", "").replace(".", "").strip("0")
            assert len(digits) <= 3, text


def test_a_value_that_can_be_shown_is_not_called_hidden():
    data = pd.DataFrame({"job": list("ab") * 50, "ill": ["yes", "no"] * 50})
    design = md.design(
        data, md.ALIP(eps_l=float("inf"), eps_u=1.0), sensitive="ill", useful="job"
    )
    texts = dict(page_of(design).parts)["What nobody can find out"]
    assert any("is not hidden" in text for text in texts)
    assert any("does NOT have a value of ill" in text for text in texts)


@pytest.mark.parametrize(
    ("number", "text"),
    [(1, "1 person"), (980, "980 people"), (32_561, "about 32,600 people")],
)
def test_numbers_of_people_have_three_digits(number, text):
    assert people(number) == text
    assert people(None) == "the people"


@pytest.fixture
def folder(tmp_path, monkeypatch, design):
    monkeypatch.chdir(tmp_path)
    design.channel.save("channel.json")
    return tmp_path


@pytest.mark.parametrize("ending", ["html", "md", "json"])
def test_the_command_writes_the_page(folder, ending, capsys):
    assert main(["report", "channel.json", "--board", f"board.{ending}"]) == 0
    assert f"Page for the board: board.{ending}" in capsys.readouterr().out
    text = (folder / f"board.{ending}").read_text()
    assert "What nobody can find out" in text
    if ending == "json":
        assert json.loads(text)["format"] == "mechdesign.board"
    if ending == "html":
        assert "For the board" in text


def test_what_has_no_page_is_refused(folder, design, capsys):
    design.channel.public().save("public.json")
    assert main(["report", "public.json", "--board", "b.md"]) == 2
    assert "how frequent the secret is" in capsys.readouterr().err
    line = ["report", "channel.json", "--board", "b.md", "--report", "./b.md"]
    assert main(line) == 2
    assert "--report and --board both name" in capsys.readouterr().err
    assert main(["report", "channel.json"]) == 2
    assert "--board FILE (one page in plain words)" in capsys.readouterr().err
    assert main(["report", "channel.json", "--board", "b.pdf"]) == 2
    assert not (folder / "b.md").exists()


def test_boxes_and_ranges_have_no_page(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    table().to_csv("people.csv", index=False)
    line = ["design", "people.csv", "--sensitive", "ill", "--release", "job,sex"]
    options = ["--at-most-times", "2", "--confidence", "0.9", "--slice-seed", "1"]
    assert main([*line, *options, "--output", "boxes.json"]) == 0
    capsys.readouterr()
    assert main(["report", "boxes.json", "--board", "b.md"]) == 2
    assert "--board is for channels of columns and of rows" in capsys.readouterr().err


def test_given_columns_are_named_as_true_ones_and_the_columns_are_the_tables_own(
    design,
):
    """What somebody knows anyhow is told with columns that there are."""
    texts = dict(page_of(design).parts)
    assert "a person's true job, sex he can guess" in texts["What is not covered"][0]
    assert not any("Rely on" in text for text in texts["What analysts can do"])
    given = md.design(
        table(), md.LIP(0.4), sensitive="ill", release=["job"], given=["sex"]
    )
    possible = dict(page_of(given).parts)["What analysts can do"]
    assert "Rely on sex in every row, as in the true data." in possible
