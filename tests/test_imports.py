"""Imports inside functions are those that CONTRIBUTING.md allows."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

from tests.cases.sources import statements

ROOT = Path(__file__).parents[1]

OURS = ("mechdesign", "solvers")

AT_WILL = ("cli", "app")
"""Folders of mechdesign whose functions import what they use."""


def is_free(module):
    """Whether a function may import it without a word: another project's package, or a compiled kernel."""
    first, *rest = module.split(".")
    if first == "solvers" and rest and rest[0].startswith("_"):
        return True
    return first not in OURS and first not in sys.stdlib_module_names


def modules_of(statement):
    if isinstance(statement, ast.ImportFrom):
        return [statement.module]
    return [alias.name for alias in statement.names]


def unexplained(source):
    """Modules that functions import without a comment above the block of imports."""
    lines = source.splitlines()
    imports = {
        statement
        for function in statements(ast.parse(source))
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for statement in statements(function)
        if isinstance(statement, ast.Import | ast.ImportFrom)
    }
    found = []
    # The line after the last one of the import before, if that needs no comment of its own.
    explained_at = None
    for statement in sorted(imports, key=lambda one: one.lineno):
        above = lines[statement.lineno - 2].lstrip()
        explained = above.startswith("#") or statement.lineno == explained_at
        if explained:
            explained_at = statement.end_lineno + 1
        modules = modules_of(statement)
        if not explained and not all(is_free(module) for module in modules):
            found += modules
    return found


def test_imports_in_functions_say_why():
    found = {}
    for top in OURS:
        for path in sorted((ROOT / top).rglob("*.py")):
            place = path.relative_to(ROOT)
            if place.parts[0] == "mechdesign" and place.parts[1] in AT_WILL:
                continue
            modules = unexplained(path.read_text(encoding="utf-8"))
            if modules:
                found[place.as_posix()] = modules
    assert found == {}


def test_an_import_without_a_reason_is_seen():
    source = "\n".join(
        [
            "def f():",
            "    import numpy as np",
            "    from solvers._kernel import Search",
            "    from solvers import Polytope",
            "    import json",
            "    # A circle.",
            "    from mechdesign import notions",
            "    from mechdesign.core import (",
            "        limits,",
            "    )",
            "    from mechdesign.core import errors",
            "    return np",
        ]
    )
    assert unexplained(source) == ["solvers", "json"]
