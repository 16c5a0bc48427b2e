"""Pages that comments and docstrings cite are in the repository, and so are the sections and propositions that they
name.

A section is cited as ``docs/explanation/PAGE.md, 'Title'``, a proposition as ``docs/explanation/PAGE.md,
proposition 3``.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from functools import cache
from pathlib import Path

import pytest

from tests.cases.sources import statements

ROOT = Path(__file__).parents[1]

FOLDERS = ("mechdesign", "solvers", "tests", "examples")

SOURCES = sorted(
    path
    for folder in FOLDERS
    for path in (ROOT / folder).rglob("*")
    if path.suffix in {".py", ".pyi", ".c", ".h"}
    # It quotes pages that are not there.
    and path != Path(__file__)
)

PAGE = re.compile(r"[\w./-]*\w\.md\b")

SECTION = re.compile(r"(docs/[\w/-]+\.md),\s+'([^']+)'")

PROPOSITIONS = re.compile(
    r"(docs/[\w/-]+\.md),\s+propositions?\s+(\d+(?:(?:,\s+|\s+and\s+)\d+)*)",
    re.IGNORECASE,
)

CITED = re.compile(
    r"\b([A-Z]\w+)((?: et al\.| and [A-Z]\w+|, [A-Z]\w+ and [A-Z]\w+)?,? \(?(?:19|20)\d\d)\b"
)

LEADERS = re.compile(r"^\s*(?:#+|/\*+|\*+/?)?\s*", re.MULTILINE)
"""What a line of a comment begins with."""


def prose_of_python(source):
    """Comments and docstrings, in order of their kind."""
    parts = []
    # Reading tokens takes long, and the comments of most files cite nothing.
    if re.search(r"#.*\.md\b", source):
        parts = [
            token.string
            for token in tokenize.generate_tokens(io.StringIO(source).readline)
            if token.type == tokenize.COMMENT
        ]
    comments = "\n".join(parts)
    texts = []
    for node in statements(ast.parse(source)):
        # Attributes have their docstrings after them, so every expression that is a string counts.
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            texts.append(str(node.value.value))
    return "\n".join([comments, *texts])


def prose_of_c(source):
    return "\n".join(re.findall(r"/\*.*?\*/", source, flags=re.DOTALL))


def joined(prose):
    """The words in one line, without the leaders of comments."""
    return " ".join(LEADERS.sub("", prose).split())


@cache
def prose(path):
    source = path.read_text(encoding="utf-8")
    if ".md" not in source:
        return ""
    if path.suffix in {".c", ".h"}:
        return joined(prose_of_c(source))
    return joined(prose_of_python(source))


@cache
def headings(page):
    lines = re.findall(
        r"^#+ (.+)$", (ROOT / page).read_text(encoding="utf-8"), flags=re.MULTILINE
    )
    return {line.strip() for line in lines}


def missing_pages(text):
    return [name for name in PAGE.findall(text) if not (ROOT / name).is_file()]


def missing_sections(text):
    return [
        (page, title)
        for page, title in SECTION.findall(text)
        if title not in headings(page)
    ]


def missing_propositions(text):
    missing = []
    for page, numbers in PROPOSITIONS.findall(text):
        statements = (ROOT / page).read_text(encoding="utf-8")
        for number in re.findall(r"\d+", numbers):
            if not re.search(rf"\*\*(?:Proposition )?{number}[. ]", statements):
                missing.append((page, number))
    return missing


def test_the_sources_are_found_and_some_of_them_cite():
    cited = [path for path in SOURCES if SECTION.search(prose(path))]
    assert len(SOURCES) > 300
    assert len(cited) > 10


@pytest.mark.parametrize(
    "missing", [missing_pages, missing_sections, missing_propositions]
)
def test_whatever_is_cited_exists(missing):
    found = {
        path.relative_to(ROOT).as_posix(): missing(prose(path)) for path in SOURCES
    }
    assert {path: names for path, names in found.items() if names} == {}


def other_keys(text, keys):
    """Citations of the authors of these keys that are none of them."""
    names = {key.removeprefix("du ").split()[0] for key in keys}
    return {
        name + rest
        for name, rest in CITED.findall(text)
        if name in names
        and name + rest not in {key.removeprefix("du ") for key in keys}
    }


def test_a_paper_has_one_key():
    """Those of docs/reference/references.md, in bold there."""
    references = (ROOT / "docs/reference/references.md").read_text(encoding="utf-8")
    keys = re.findall(r"^- \*\*(.+?)\*\*:", references, flags=re.MULTILINE)
    assert {"Farokhi 2019", "Farokhi 2020", "Farokhi and Ding 2020"} <= set(keys)
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    for path in [*SOURCES, *pages]:
        text = joined(path.read_text(encoding="utf-8"))
        assert other_keys(text, keys) == set(), path
    assert other_keys("Farokhi 2021 and Farokhi 2020, Kelley (1960)", keys) == {
        "Farokhi 2021",
        "Kelley (1960",
    }


def test_the_glossary_names_modules_that_exist():
    glossary = (ROOT / "docs/reference/glossary.md").read_text(encoding="utf-8")
    named = re.findall(
        r"`((?:mechdesign|solvers)(?:\.\w+)+)` \|$", glossary, re.MULTILINE
    )
    assert len(named) > 40
    for module in set(named):
        place = ROOT.joinpath(*module.split("."))
        assert place.with_suffix(".py").is_file() or place.is_dir(), module


def test_a_citation_that_leads_nowhere_is_seen():
    text = joined(
        "/* Rows (docs/explanation/population.md, 'The\n * sets'), docs/no.md and notes.md;\n"
        " * docs/explanation/rows-theory.md, propositions 2\n * and 77. */"
    )
    assert missing_pages(text) == ["docs/no.md", "notes.md"]
    assert missing_sections(text) == [("docs/explanation/population.md", "The sets")]
    assert missing_propositions(text) == [("docs/explanation/rows-theory.md", "77")]


OVERVIEWS = sorted((ROOT / "mechdesign").glob("*/__init__.py")) + sorted(
    (ROOT / "solvers").rglob("__init__.py")
)

NAME = re.compile(r"`([a-z]\w*(?:\.\w+)*)`")


@pytest.mark.parametrize(
    "overview", OVERVIEWS, ids=lambda path: path.parent.relative_to(ROOT).as_posix()
)
def test_overviews_of_packages_name_what_is_there(overview):
    """A name in backticks is a module, a package, or something that a module of the package
    defines."""
    tree = ast.parse(overview.read_text(encoding="utf-8"))
    text = ast.get_docstring(tree, clean=False) or ""
    folders = [overview.parent, ROOT / "mechdesign", ROOT]
    known = {path.stem for folder in folders for path in folder.iterdir()}
    known.add(overview.parent.name)
    code = "\n".join(
        path.read_text(encoding="utf-8").replace(text, "")
        for path in overview.parent.rglob("*.py")
    )
    missing = []
    for name in NAME.findall(text):
        module, _, member = name.partition(".")
        is_defined = re.search(rf"\b{member or module}\b", code) is not None
        if member:
            is_there = module in known and is_defined
        else:
            is_there = module in known or is_defined
        if not is_there:
            missing.append(name)
    assert not missing, f"{overview} names {missing}"


NAMES_ALONE = re.compile(r"`(_[A-Za-z0-9_]+)`")
"""A private name in a docstring: one of its own module."""


def test_the_private_names_of_a_docstring_are_in_its_module():
    lost = []
    for path in SOURCES:
        room = path.relative_to(ROOT).parts[0]
        if path.suffix != ".py" or room not in ("mechdesign", "solvers"):
            continue
        text = path.read_text(encoding="utf-8")
        if NAMES_ALONE.search(text) is None:
            continue
        docstring = ast.get_docstring(ast.parse(text), clean=False) or ""
        code = text.replace(docstring, "", 1)
        for name in set(NAMES_ALONE.findall(docstring)):
            if re.search(rf"\b{name}\b", code) is None:
                lost.append(f"{path.relative_to(ROOT)}: {name}")
    assert lost == []
