"""There is one channel: what a release of boxes has beside others is its coder, its claims and its fill.
Few places ask whether a channel has them, by whatever name.
"""

from __future__ import annotations

import re
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "mechdesign"
FORK = re.compile(
    r"isinstance\(\s*[a-z_.]+,\s*(md\.)?Design\b"
    r"|\.shape [!=]= (combinations\.)?BOXES\b|\.labels_boxes\b"
    r"|\b(coder|claims|audit|boxes) is (not )?None\b"
    r"|\b(asked|request|audit)\.level is (not )?None\b"
    r"|\b(if|elif|not|and|or) [a-z_.]*channel\.(parts|coder|takes_table)\b(?!\.)"
)
MOST = 9
"""Places outside of the channel itself and its file that ask for boxes. What stays are the verdict
(`audit`), the checks of a request, and texts that are others from the first word to the last: the
first sentence, the first screen, what the population is told, what is not covered, the promise in a
manifest, the matrix and the facts of `show`. A smaller number replaces this one; what a new place
would ask becomes a member of the channel."""


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
