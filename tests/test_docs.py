"""README and docs tell the truth: their commands are run and their output compared, number by number.

``python tests/test_docs.py [PAGE ..]`` writes today's output into the pages. A page's commands run in order in one
folder of its own that holds ``examples/``; blocks of Python likewise, one script a page. Blocks marked ``text`` or
``sh`` are not run. The README's commands start as its reader starts them in the slow tests, its script always; all
other ones are forked from one process that has imported the package (tests/ready_commands.py).
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

from mechdesign import nonstochastic

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PAGES = [README, *sorted((ROOT / "docs").rglob("*.md"))]

NUMBER = re.compile(r"-?\d[\d,]*\.?\d*(?:[eE][-+]?\d+)?")

CLOSE = 2e-3
"""Relative difference allowed between a printed number and today's: another release of the LP solver may
end in another optimal channel of the same value, within the gap of 1e-4."""


def text_of(page):
    return page.read_text(encoding="utf-8")


def blocks(page, language):
    return re.findall(
        rf"^```{language}\n(.*?)^```$", text_of(page), flags=re.MULTILINE | re.DOTALL
    )


def console(page):
    """Pairs of a command and the output that the page shows for it, in order."""
    pairs = []
    for block in blocks(page, "console"):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.replace("\\\n", " ").partition("\n")
            pairs.append((command.strip(), output.rstrip("\n")))
    return pairs


def comparable(text):
    """Words with every number replaced, and the numbers; times are left out."""
    text = re.sub(r"\d+\.\d\d s\b", "TIME", " ".join(text.split()))
    return NUMBER.sub("#", text), [
        float(number.replace(",", "")) for number in NUMBER.findall(text)
    ]


def named(page):
    return page.stem


@pytest.fixture
def workplace(tmp_path):
    """A folder as a reader has it after cloning, as far as the commands look."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    return tmp_path


STARTED = f"{shlex.quote(sys.executable)} -m mechdesign"
"""`mechdesign`, in a new process."""


def in_shell(command, folder, launcher=STARTED):
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "XDG_DATA_HOME": str(folder / ".data"),
    }
    script = re.sub(r"(?:\.venv/bin/)?mechdesign(?= )", launcher, command)
    return subprocess.run(
        ["bash", "-c", script],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


SLOW = (
    "five-jobs",
    "judge",
    "ledger",
    "many-releases",
    "measuring-ranges",
    "nightly",
    "panel",
    "people-nights",
    "purposes",
    "ranges",
    "ranges-again",
    "rows",
    "survey",
    "training",
    "what-else-tells",
)
"""Pages whose commands take several seconds."""


def with_commands():
    """The pages; the commands of those that take long are tests for the slow ones."""
    for page in PAGES:
        if console(page):
            marks = [pytest.mark.slow] if page.stem in SLOW else []
            yield pytest.param(page, id=named(page), marks=marks)


@pytest.mark.parametrize("page", [*with_commands()])
def test_the_commands_print_what_the_page_shows(page, workplace, ready):
    assert_as_shown(page, workplace, ready.launcher)


@pytest.mark.slow
def test_the_commands_of_the_readme_start_in_new_processes(workplace):
    assert_as_shown(README, workplace, STARTED)


def assert_as_shown(page, workplace, launcher):
    """In order, in one folder: later commands use the files of earlier ones."""
    for command, shown in console(page):
        run = in_shell(command, workplace, launcher)
        assert run.returncode == 0, (command, run.stderr)
        words, numbers = comparable(run.stdout)
        shown_words, shown_numbers = comparable(shown)
        assert words == shown_words, command
        assert numbers == pytest.approx(shown_numbers, rel=CLOSE, abs=CLOSE / 10), (
            command
        )


@pytest.mark.parametrize(
    "page", [page for page in PAGES if blocks(page, "python")], ids=named
)
def test_the_python_of_the_page_runs(page, workplace, ready):
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "XDG_DATA_HOME": str(workplace / ".data"),
    }
    code = "\n".join(blocks(page, "python"))
    if page == README:
        run = subprocess.run(
            [sys.executable, "-W", "error", "-c", code],
            cwd=workplace,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
    else:
        run = ready.run(code, folder=workplace, environment=environment)
    assert run.returncode == 0, run.stderr


def test_the_readme_is_short_and_shows_commands_and_python():
    assert len(text_of(README).splitlines()) <= 200
    assert len(console(README)) >= 5
    assert "md.design" in "".join(blocks(README, "python"))


def test_each_common_job_takes_at_most_three_commands():
    page = ROOT / "docs" / "how-to" / "five-jobs.md"
    assert "docs/how-to/five-jobs.md" in text_of(README)
    sections = re.split(r"^## \d\. ", text_of(page), flags=re.MULTILINE)[1:]
    assert len(sections) == 5
    for section in sections:
        commands = re.findall(r"^\$ mechdesign ", section, flags=re.MULTILINE)
        assert 1 <= len(commands) <= 3, section


def test_what_the_page_of_the_papers_names_exists():
    """Files of tests, scripts of examples and public names."""
    text = (ROOT / "docs" / "reference" / "papers.md").read_text("utf-8")
    tests = set(re.findall(r"`([\w/]+\.py)`", text))
    assert len(tests) >= 15
    for name in tests:
        assert (ROOT / "tests" / name).exists(), name
    scripts = set(re.findall(r"python (examples/[\w/]+\.py)", text))
    assert len(scripts) >= 5
    for name in scripts:
        assert (ROOT / name).exists(), name
    names = set(re.findall(r"`ns\.(\w+)", text))
    assert len(names) >= 15
    for name in names:
        assert hasattr(nonstochastic, name), name


def test_every_page_is_in_the_navigation():
    """A page that the site does not list is never found, and one that is listed must be there."""
    listed = re.findall(
        r"[a-z-]+\.md", (ROOT / ".mkdocs.yml").read_text(encoding="utf-8")
    )
    assert sorted(listed) == sorted(page.name for page in PAGES[1:])


def test_links_between_pages_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text_of(page)):
            assert "://" in target or (page.parent / target).exists(), (
                page.name,
                target,
            )


def test_one_command_sets_up_and_runs_and_one_sets_up_and_tests():
    """`.ci/run` executes both as they stand; here: that there is one of each."""
    commands = [
        line
        for block in blocks(README, "sh")
        for line in block.splitlines()
        if line.startswith("python3 -m venv")
    ]
    assert len([c for c in commands if "mechdesign design" in c]) == 1
    assert len([c for c in commands if c.endswith("pytest")]) == 1


@pytest.fixture(scope="module")
def helps(ready):
    """What every command says of itself."""
    code = (
        "import mechdesign.cli as c\nfrom mechdesign.cli.application import application\n"
        "def walk(g, path):\n"
        "    c.main([*path, '--help' if hasattr(g, 'commands') or path[:1] in (['nonstochastic'], ['run'], ['app'], ['export'], ['judge'], ['assess'], ['report']) else '--help-all'])\n"
        "    for name, sub in getattr(g, 'commands', {}).items(): walk(sub, [*path, name])\n"
        "walk(application(), [])"
    )
    environment = {**os.environ, "COLUMNS": "200", "TERMINAL_WIDTH": "200"}
    run = ready.run(code, folder=ROOT, environment=environment)
    assert run.returncode == 0, run.stderr
    return run.stdout


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_option_that_the_page_names_exists(page, helps):
    # pip's and pytest's options are not ours
    text = re.sub(
        r"^```sh\n.*?^```$|`[^`\n]*(?:pytest|pip|mkdocs) [^`\n]*`",
        "",
        text_of(page),
        flags=re.M | re.S,
    )
    mentioned = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", text))
    assert {option for option in mentioned if option not in helps} == set()


def write_todays_output(page, folder):
    """Run the commands of every console block in order and put what they print below them."""

    def renewed(match):
        parts = re.split(r"^\$ ", match.group(1), flags=re.MULTILINE)[1:]
        lines = []
        for part in parts:
            command = re.match(r"(?:.*\\\n)*.*\n", part).group(0)
            run = in_shell(command.replace("\\\n", " ").strip(), folder)
            if run.returncode:
                sys.exit(f"{page.name}: {command}: {run.stderr}")
            lines.append(f"$ {command}{run.stdout}")
        return "```console\n" + "".join(lines) + "```"

    text = re.sub(
        r"^```console\n(.*?)^```$",
        renewed,
        text_of(page),
        flags=re.MULTILINE | re.DOTALL,
    )
    page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    import tempfile

    for page in [Path(name).resolve() for name in sys.argv[1:]] or PAGES:
        with tempfile.TemporaryDirectory() as temporary:
            shutil.copytree(ROOT / "examples", Path(temporary) / "examples")
            write_todays_output(page, Path(temporary))
