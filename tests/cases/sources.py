"""Reading the project's own sources."""

from __future__ import annotations

import ast
from collections.abc import Iterator

BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")


def statements(tree: ast.AST) -> Iterator[ast.AST]:
    """All statements of a module or a function, with those inside of others.

    Most nodes of a tree are expressions, which are not looked at: `ast.walk` takes several times as long.
    """
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        for block in BLOCKS:
            inner = getattr(node, block, ())
            yield from inner
            waiting += inner
