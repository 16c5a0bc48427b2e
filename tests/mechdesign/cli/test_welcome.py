"""The first minutes: the program without a command, a file behind it, and options of siblings."""

from __future__ import annotations

import re

import pytest

from mechdesign.cli import main
from mechdesign.cli.failures import OTHER_NAMES


@pytest.fixture
def people(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = [f"{k},{'clerk' if k % 3 else 'smith'},{k % 2}" for k in range(60)]
    (tmp_path / "people.csv").write_text("id,job,income\n" + "\n".join(lines) + "\n")
    return "people.csv"


@pytest.mark.parametrize("words", [[], ["help"]])
def test_the_program_alone_says_what_to_do(words, capsys):
    assert main(words) == 0
    text = capsys.readouterr().out
    assert "mechdesign people.csv" in text
    assert "mechdesign --help" in text


def test_help_of_a_command_in_words(capsys):
    assert main(["help", "judge"]) == 0
    assert "Judge a released file" in capsys.readouterr().out
    assert main(["help", "nothing"]) == 2
    assert "No such command 'nothing'" in capsys.readouterr().err


def test_a_file_is_answered_with_its_columns_and_commands(people, capsys):
    assert main([people]) == 0
    text = capsys.readouterr().out
    assert "people.csv: 60 records, 3 columns." in text
    assert re.search(r"id +60 +names records: not to be released", text)
    assert re.search(r"job +2\n", text)
    assert "mechdesign assess people.csv --sensitive COL" in text
    assert "--release all --leave-out id" in text


def test_the_first_command_of_the_answer_runs(people, capsys):
    """Whoever copies the second line and names a column gets a release."""
    main([people])
    text = capsys.readouterr().out
    line = re.search(r"^  mechdesign (design .*)$", text, re.MULTILINE).group(1)
    assert main(line.replace("COL", "income").split()) == 0
    assert "income is protected" in capsys.readouterr().out
    assert main(["channel.json"]) == 0
    assert "mechdesign apply channel.json" in capsys.readouterr().out


def test_the_first_command_fits_gaps_and_numbers_of_their_own(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    rows = [
        f"{k},{1000 + max(k, 15)},{'x' if k % 9 else ''},{k % 2}" for k in range(200)
    ]
    (tmp_path / "wages.csv").write_text("id,wage,job,ill\n" + "\n".join(rows) + "\n")
    assert main(["wages.csv"]) == 0
    text = capsys.readouterr().out
    assert re.search(r"wage +185 +all but names records: to be released in bins", text)
    line = re.search(r"^  mechdesign (design .*)$", text, re.MULTILINE).group(1)
    assert "--leave-out id --bin wage=quantiles:8 --missing symbol" in line
    assert main(line.replace("COL", "ill").split()) == 0
    assert "ill is protected" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("command", "option", "siblings"),
    [
        ("design", "--plan", "'assess' has"),
        ("apply", "--board", "'report' has"),
        ("inspect", "--keep", "'design', 'apply', 'quantize' have"),
    ],
)
def test_an_option_of_a_sibling_is_named_with_it(
    command, option, siblings, people, capsys
):
    assert main([command, people, option]) == 2
    error = capsys.readouterr().err
    assert f"{command} has no option {option}: {siblings} it" in error


def test_a_file_that_is_none_is_no_first_try(people, capsys):
    assert main(["nobody.csv"]) == 2
    assert main(["--nothing"]) == 2
    capsys.readouterr()


def test_a_broken_table_is_refused_in_a_sentence(people, capsys):
    with open("broken.csv", "w") as stream:
        stream.write("a,b\n1\n")
    assert main(["broken.csv"]) == 2
    assert "line 2: the row has 1 cell" in capsys.readouterr().err


def test_missing_columns_are_named(people, capsys):
    assert main(["design", people, "--sensitive", "income", "--epsilon", "1"]) == 2
    error = capsys.readouterr().err
    assert "Several: --release A,B or --release all" in error
    assert "Columns: id, job, income" in error
    assert main(["assess", people]) == 2
    assert "Columns: id, job, income" in capsys.readouterr().err


@pytest.fixture(scope="module")
def known_helps() -> dict[str, str]:
    """What commands say of themselves: each is asked once."""
    return {}


@pytest.mark.parametrize(
    ("command", "option"),
    [(command, option) for command, names in OTHER_NAMES.items() for option in names],
)
def test_an_option_of_another_command_is_translated(
    command, option, people, known_helps, capsys
):
    """None of them is an option of the command itself, and the options named instead are."""
    meant = OTHER_NAMES[command][option]
    assert main([command, people, option, "x"]) == 2
    error = capsys.readouterr().err
    assert f"{command} has no option {option}: it is {meant} here" in error
    if command not in known_helps:
        long = "--help" if command in ("assess", "judge", "report") else "--help-all"
        assert main([command, long]) == 0
        known_helps[command] = capsys.readouterr().out
    for name in re.findall(r"--[a-z-]+", meant):
        assert name in known_helps[command]
