"""No module of the packages imports itself by way of others; names of modules in texts count.

The packages themselves are left out: they name the modules of all layers, and import none.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

from tests.cases.sources import statements

ROOT = Path(__file__).parents[1]

QUOTED = re.compile(r"""["']((?:mechdesign|solvers)\.[\w.]+)["']""")
"""A name of a module in a text."""


def modules() -> dict[str, Path]:
    found = {}
    for top in ("mechdesign", "solvers"):
        for path in (ROOT / top).rglob("*.py"):
            if path.name != "__init__.py":
                parts = path.relative_to(ROOT).with_suffix("").parts
                found[".".join(parts)] = path
    return found


def imported(source: str, names: dict[str, Path]) -> set[str]:
    found = {*QUOTED.findall(source)}
    for node in statements(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found & names.keys()


def on_circles(arrows: dict[str, set[str]]) -> set[str]:
    """What is left when modules without arrows to others that are left are taken away."""
    left = set(arrows)
    importers = defaultdict(set)
    for module, targets in arrows.items():
        for target in targets:
            importers[target].add(module)
    free = [module for module in left if not arrows[module]]
    open_arrows = {module: len(targets) for module, targets in arrows.items()}
    while free:
        module = free.pop()
        left.discard(module)
        for other in importers[module]:
            open_arrows[other] -= 1
            if not open_arrows[other]:
                free.append(other)
    return left


def test_no_module_is_on_a_circle_of_imports():
    names = modules()
    arrows = {
        name: imported(path.read_text(encoding="utf-8"), names) - {name}
        for name, path in names.items()
    }
    left = on_circles(arrows)
    # Modules above a circle are left, too: those below name it.
    assert not left, sorted(left)


def test_a_circle_is_seen():
    assert on_circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": set()}) == {
        *("a", "b", "c")
    }
