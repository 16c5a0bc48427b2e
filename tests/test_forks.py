"""There is one channel: what a release of boxes has beside others is its coder, and few functions ask
for that, or for `judged_alone`.
"""

from __future__ import annotations

import re
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "mechdesign"
FORK = re.compile(
    r"isinstance\(\s*[a-z_.]+,\s*(md\.)?Design\b"
    r"|\.judged_alone\b|\bcoder is (not )?None\b"
)
MOST = 8
"""Forks that are left outside of the channel itself and its file. A smaller number replaces this
one; what a new fork would ask becomes a member of the channel."""


def test_no_further_forks_on_kinds():
    forks = []
    for path in sorted(PACKAGE.rglob("*.py")):
        if path.parent.name == "channel":
            continue
        text = path.read_text(encoding="utf-8")
        forks += [
            f"{path.relative_to(PACKAGE)}:{text.count(chr(10), 0, found.start()) + 1}"
            for found in FORK.finditer(text)
        ]
    assert len(forks) <= MOST, "\n".join(forks)
