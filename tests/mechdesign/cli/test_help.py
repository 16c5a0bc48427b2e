"""Help that says nothing of Python, and completion for the shells."""

from __future__ import annotations

import os
import re
import subprocess

import pytest

from mechdesign.cli.application import application
from mechdesign.cli.first_options import COMMANDS as GROUPED
from mechdesign.cli.first_options import FIRST_OPTIONS

COMMANDS = (
    "design",
    "audit",
    "apply",
    "check",
    "estimate",
    "compare",
    "measure",
    "show",
    "report",
    "quantize",
)


@pytest.mark.parametrize(
    "command",
    [(), *((name,) for name in COMMANDS), ("nonstochastic", "measure")],
    ids=str,
)
def test_no_help_speaks_of_types(command, run):
    done = run(*command, "--help")
    assert done.code == 0
    assert not any(
        word in done.out
        for word in ("<bool>", "<str>", "<int>", "<list", "TEXT", "INTEGER")
    )


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_shown_for_every_shell(ready, shell):
    environment = {**os.environ, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    done = subprocess.run(
        [*ready.program, "--show-completion", shell],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "_MECHDESIGN_COMPLETE" in done.stdout, done.stderr
    assert done.returncode == 0


def test_options_are_completed(ready):
    environment = {
        **os.environ,
        "_MECHDESIGN_COMPLETE": "complete_bash",
        "COMP_WORDS": "mechdesign design --at",
        "COMP_CWORD": "2",
    }
    done = subprocess.run(
        ready.program,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == ["--at-most-times", "--at-least-times"]


MOST_LINES = 60
"""Lines of a help that somebody still reads."""


def paths_of(group, path=()):
    """Every command as the words that call it."""
    for name, command in group.commands.items():
        yield (*path, name)
        if hasattr(command, "commands"):
            yield from paths_of(command, (*path, name))


PATHS = [(), *paths_of(application())]


@pytest.mark.parametrize("path", PATHS, ids=" ".join)
def test_every_help_fits_a_page(path, run):
    done = run(*path, "--help")
    assert done.code == 0
    assert len(done.out.strip("\n").split("\n")) <= MOST_LINES


@pytest.mark.parametrize("name", FIRST_OPTIONS)
def test_the_short_help_has_its_options_and_the_whole_help_has_every_one(name, run):
    command = application().commands[name]
    names = {option for param in command.params for option in param.opts}
    first = FIRST_OPTIONS[name]
    assert len(set(first)) == len(first)
    unknown = set(first) - names - {"--json", "--force", "--help", "--help-all"}
    assert unknown == set()
    short = run(name, "--help").out
    whole = run(name, "--help-all")
    assert whole.code == 0
    # In the order of the list, words before nats.
    shown = [option for option in first if option in names]
    places = [re.search(rf"│ [* ]*{option}\b", short).start() for option in shown]
    assert places == sorted(places)
    for option in names:
        if option.startswith("--"):
            assert re.search(rf"{option}\b", whole.out), option
    assert "--help-all" in short
    for option in ("--quiet", "--log-json", "--debug"):
        assert option not in short
        assert option in whole.out


def test_short_texts_are_sentences(run):
    """The first clause of a help text must be one that can stand alone."""
    for name in FIRST_OPTIONS:
        command = application().commands[name]
        for param in command.params:
            if set(param.opts) & set(FIRST_OPTIONS[name]):
                clause = re.split(r"[.:;] | \(|\.$", param.help)[0]
                assert len(clause.split()) >= 2, (name, param.opts, clause)


def test_commands_stand_in_four_groups(run):
    out = run("--help").out
    titles = re.findall(r"^╭─ (\w+)", out, re.M)
    assert titles == ["Options", "Choose", "Release", "Verify", "Study"]
    assert [out.index(f"│ {name} ") for name in GROUPED] == sorted(
        out.index(f"│ {name} ") for name in GROUPED
    )


@pytest.mark.parametrize("option", ["--quiet", "--log-json", "--debug"])
def test_options_of_messages_are_accepted_before_and_after_the_command(
    option, folder, run
):
    asked = ("design", "counts.csv", "--contingency", "--epsilon", "1", "--json")
    plain = run(*asked).record
    for words in ((option, *asked), (*asked, option)):
        done = run(*words)
        assert done.code == 0
        assert done.record["nmi"] == plain["nmi"]
        if option == "--quiet":
            assert done.err == ""
        if option == "--log-json":
            assert all(line.startswith("{") for line in done.err.splitlines())
