"""The README tells the truth: its commands are run and their output compared, number by number.

``python tests/test_readme.py`` writes today's output into the README.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")

NUMBER = re.compile(r"-?\d[\d,]*\.?\d*(?:[eE][-+]?\d+)?")

CLOSE = 2e-3
"""Relative difference allowed between a printed number and today's: another release of the LP solver may
end in another optimal channel of the same value, within the gap of 1e-4."""


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL)


def console():
    """Pairs of a command and the output that the README shows for it, in order."""
    pairs = []
    for block in blocks("console"):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.replace("\\\n", " ").partition("\n")
            pairs.append((command.strip(), output.rstrip("\n")))
    return pairs


def comparable(text):
    """Words with every number replaced, and the numbers; times are left out."""
    text = re.sub(r"\d+\.\d\d s\b", "TIME", " ".join(text.split()))
    return NUMBER.sub("#", text), [float(number.replace(",", "")) for number in NUMBER.findall(text)]


@pytest.fixture(scope="module")
def workplace(tmp_path_factory):
    """A folder as a reader has it after cloning, as far as the commands look."""
    folder = tmp_path_factory.mktemp("readme")
    shutil.copytree(ROOT / "examples", folder / "examples")
    return folder


def in_shell(command, folder):
    launcher = f"{shlex.quote(sys.executable)} -m mechdesign"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    script = re.sub(r"(?:\.venv/bin/)?mechdesign(?= )", launcher, command)
    return subprocess.run(
        ["bash", "-c", script], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def test_the_commands_print_what_the_readme_shows(workplace):
    """In order, in one folder: later commands use the files of earlier ones."""
    pairs = console()
    assert len(pairs) >= 5
    for command, shown in pairs:
        run = in_shell(command, workplace)
        assert run.returncode == 0, (command, run.stderr)
        words, numbers = comparable(run.stdout)
        shown_words, shown_numbers = comparable(shown)
        assert words == shown_words, command
        assert numbers == pytest.approx(shown_numbers, rel=CLOSE, abs=CLOSE / 10), command


def test_the_python_of_the_readme_runs(workplace):
    code = "\n".join(blocks("python"))
    assert "md.design" in code
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    run = subprocess.run(
        [sys.executable, "-c", code],
        cwd=workplace,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr


def test_one_command_sets_up_and_runs_and_one_sets_up_and_tests():
    """`.ci/run` executes both as they stand; here: that there is one of each."""
    commands = [
        line for block in blocks("sh") for line in block.splitlines() if line.startswith("python3 -m venv")
    ]
    assert len([c for c in commands if "mechdesign design" in c]) == 1
    assert len([c for c in commands if c.endswith("pytest")]) == 1


def test_every_option_that_the_readme_names_exists():
    text = re.sub(
        r"^```sh\n.*?^```$", "", README, flags=re.MULTILINE | re.DOTALL
    )  # pip's options are not ours
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", text))
    run = [
        "-c",
        "import mechdesign.cli as c\nfor n in ('design','audit','apply','check','estimate','compare','measure','show',"
        "'report','quantize','nonstochastic measure'): c.main([*n.split(), '--help'])",
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "200", "TERMINAL_WIDTH": "200"}
    helps = subprocess.run(
        [sys.executable, *run], env=environment, capture_output=True, text=True, check=True
    ).stdout
    assert {option for option in named if option not in helps} == set()


def write_todays_output(folder):
    """Run the commands of every console block in order and put what they print below them."""

    def renewed(match):
        parts = re.split(r"^\$ ", match.group(1), flags=re.MULTILINE)[1:]
        lines = []
        for part in parts:
            command = re.match(r"(?:.*\\\n)*.*\n", part).group(0)
            run = in_shell(command.replace("\\\n", " ").strip(), folder)
            if run.returncode:
                sys.exit(f"{command}: {run.stderr}")
            lines.append(f"$ {command}{run.stdout}")
        return "```console\n" + "".join(lines) + "```"

    text = re.sub(r"^```console\n(.*?)^```$", renewed, README, flags=re.MULTILINE | re.DOTALL)
    (ROOT / "README.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as temporary:
        shutil.copytree(ROOT / "examples", Path(temporary) / "examples")
        write_todays_output(Path(temporary))
