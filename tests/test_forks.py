"""Tests for the kind of a channel or a design become fewer: what all kinds have, they answer
themselves (`channel.Channel`, `channel.BoxChannel`). What is asked of `judged_alone` counts, too.
"""

from __future__ import annotations

import re
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "mechdesign"
FORK = re.compile(
    r"isinstance\(\s*[a-z_.]+,\s*(md\.)?(BoxChannel|Channel|BoxDesign|Design)\b"
    r"|\.judged_alone\b"
)
MOST = 3
"""Forks that are left. A smaller number replaces this one; a new fork is a member of both kinds."""


def test_no_further_forks_on_kinds():
    forks = []
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        forks += [
            f"{path.relative_to(PACKAGE)}:{text.count(chr(10), 0, found.start()) + 1}"
            for found in FORK.finditer(text)
        ]
    assert len(forks) <= MOST, "\n".join(forks)
