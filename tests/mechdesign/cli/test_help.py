"""Help that says nothing of Python, and completion for the shells."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

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
def test_completion_is_shown_for_every_shell(shell):
    environment = {**os.environ, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "mechdesign", "--show-completion", shell],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "_MECHDESIGN_COMPLETE" in done.stdout, done.stderr
    assert done.returncode == 0


def test_options_are_completed():
    environment = {
        **os.environ,
        "_MECHDESIGN_COMPLETE": "complete_bash",
        "COMP_WORDS": "mechdesign design --at",
        "COMP_CWORD": "2",
    }
    done = subprocess.run(
        [sys.executable, "-m", "mechdesign"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == ["--at-most-times", "--at-least-times"]
