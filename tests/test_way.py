"""The way of the README's example: `design` passes few files, so that a reader can follow it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]

MOST = 70
"""Files with functions that run in `design` on the README's example. A smaller number replaces this
one; what a new file would do on the way is asked for where it is needed."""

TRACE = """
import sys
from pathlib import Path

root = Path(sys.argv[1])
passed = set()


def note(frame, event, argument):
    code = frame.f_code
    # Bodies of modules and classes run when they are imported; they have no local variables of
    # their own, which the flag of a function says (inspect.CO_OPTIMIZED).
    if event == "call" and code.co_flags & 1:
        passed.add(code.co_filename)


sys.setprofile(note)
from mechdesign.cli import main

code = main(sys.argv[2:])
sys.setprofile(None)
for name in sorted(passed):
    path = Path(name)
    if path.is_relative_to(root):
        place = path.relative_to(root)
        if place.parts[0] in ("mechdesign", "solvers"):
            print("passed", place.as_posix())
raise SystemExit(code)
"""


def test_a_design_passes_few_files(tmp_path):
    table = ROOT / "examples" / "adult_relationship_by_occupation.csv"
    options = ["--contingency", "--useful", "occupation", "--epsilon", "1", "--output"]
    words = ["design", str(table), *options, str(tmp_path / "channel.json")]
    done = subprocess.run(
        [sys.executable, "-c", TRACE, str(ROOT), *words],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    passed = [
        line.removeprefix("passed ")
        for line in done.stdout.splitlines()
        if line.startswith("passed ")
    ]
    # The places by which CONTRIBUTING.md draws this way.
    for place in (
        "cli/design",
        "mechanisms/optimal",
        "auditing/verdict",
        "channel/file",
    ):
        assert f"mechdesign/{place}.py" in passed
    assert len(passed) <= MOST, "\n".join(passed)
