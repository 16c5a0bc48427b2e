"""How densely Python is written: counts per 1,000 lines of code, folder by folder.

    python tests/benchmarks/density.py [PATH ..]

Dense code packs several thoughts into one statement. The table counts the constructs that do so (assignments of
tuples, conditional expressions, comprehensions), and what helps a reader (comment lines). It informs; nothing fails
on it, for a number that must be met is met by tricks.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

FOLDERS = ("mechdesign", "solvers")
"""Packages that are measured where no path is named."""

LONG_LINE = 100
"""Columns beyond which a line counts as long."""

LONG_FUNCTION = 60
"""Lines beyond which a function counts as long."""

COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass
class Density:
    """Counts over some files. Code lines are those neither blank nor of a comment alone; docstrings are code."""

    files: int = 0
    statements: int = 0
    code_lines: int = 0
    characters: int = 0
    comment_lines: int = 0
    long_lines: int = 0
    long_functions: int = 0
    tuple_assignments: int = 0
    conditional_expressions: int = 0
    comprehensions: int = 0
    raises: int = 0

    def add(self, text: str) -> None:
        """Count one more file."""
        self.files += 1
        self._add_lines(text.splitlines())
        for node in ast.walk(ast.parse(text)):
            self._add_node(node)

    def _add_lines(self, lines: Iterable[str]) -> None:
        for line in lines:
            stripped = line.strip()
            if not stripped:
                continue
            if len(line) > LONG_LINE:
                self.long_lines += 1
            if stripped.startswith("#"):
                self.comment_lines += 1
            else:
                self.code_lines += 1
                self.characters += len(line)

    def _add_node(self, node: ast.AST) -> None:
        if isinstance(node, ast.stmt):
            self.statements += 1
        if isinstance(node, ast.Raise):
            self.raises += 1
        elif isinstance(node, ast.IfExp):
            self.conditional_expressions += 1
        elif isinstance(node, COMPREHENSIONS):
            self.comprehensions += 1
        elif isinstance(node, ast.Assign):
            if is_tuple_assignment(node):
                self.tuple_assignments += 1
        elif isinstance(node, FUNCTIONS):
            end = node.end_lineno or node.lineno
            if end - node.lineno > LONG_FUNCTION:
                self.long_functions += 1

    def per_thousand(self, count: int) -> float:
        """A count for every 1,000 lines of code."""
        return 1000.0 * count / max(self.code_lines, 1)

    def row(self) -> list[str]:
        """The cells of the table, in the order of `HEADINGS`."""
        rates = [
            self.per_thousand(count)
            for count in (
                self.tuple_assignments,
                self.conditional_expressions,
                self.comprehensions,
                self.comment_lines,
                self.raises,
            )
        ]
        width = self.characters / max(self.code_lines, 1)
        return [
            str(self.files),
            str(self.code_lines),
            str(self.statements),
            f"{width:.0f}",
            *(f"{rate:.1f}" for rate in rates),
            str(self.long_lines),
            str(self.long_functions),
        ]


HEADINGS = [
    "files",
    "code",
    "stmts",
    "width",
    "tuples",
    "conds",
    "comprs",
    "comments",
    "raises",
    f">{LONG_LINE}",
    f"fn>{LONG_FUNCTION}",
]
"""Columns of the table; `width` is characters a line, `tuples` to `raises` are per 1,000 lines of code."""


def is_tuple_assignment(node: ast.Assign) -> bool:
    """Whether several values are assigned at once, as in ``a, b = x, y``."""
    return isinstance(node.targets[0], ast.Tuple) and isinstance(node.value, ast.Tuple)


def density_of(files: Iterable[Path]) -> Density:
    """Counts over Python files."""
    density = Density()
    for file in files:
        density.add(file.read_text(encoding="utf-8"))
    return density


def groups_of(path: Path) -> dict[str, list[Path]]:
    """The Python files at a path, by the folder they lie in; a file is a group of its own."""
    if path.is_file():
        return {str(path): [path]}
    groups: dict[str, list[Path]] = {}
    for file in sorted(path.rglob("*.py")):
        groups.setdefault(str(file.parent), []).append(file)
    return groups


def print_row(name: str, cells: list[str]) -> None:
    """Print one line of the table."""
    print(f"{name:28}" + "".join(f"{cell:>9}" for cell in cells))


def main(paths: list[str]) -> None:
    """Print the table, one line for each folder and one for all of them."""
    everything: list[Path] = []
    print_row("", HEADINGS)
    for path in paths or FOLDERS:
        for name, files in groups_of(Path(path)).items():
            print_row(name, density_of(files).row())
            everything += files
    print_row("all", density_of(everything).row())


if __name__ == "__main__":
    main(sys.argv[1:])
