"""From a table of any size to a checked release, with the time and the memory that it takes.

    python -m tests.mechdesign.app.sizes 100000 20 TABLE.csv

makes a table of so many records and columns, walks through the page, and prints the processor
seconds and the peak memory of the page and of its largest task.
"""

from __future__ import annotations

import json
import random
import resource
import sys
import time
from pathlib import Path

from mechdesign.app.server import rendered
from mechdesign.app.session import Session

SEARCH_SECONDS = "10"


def write_table(path, records, columns):
    """Columns of 2 to 21 values, each of which sometimes follows the first one."""
    rng = random.Random(2)
    with Path(path).open("w") as file:
        print(*(f"c{k}" for k in range(columns)), sep=",", file=file)
        for _ in range(records):
            secret = rng.randrange(3)
            row = [secret]
            for k in range(1, columns):
                size = 2 + k
                value = rng.randrange(size)
                row.append((secret + value) % size if rng.random() < 0.3 else value)
            print(*row, sep=",", file=file)


def walked(path):
    """The processor seconds of each step and the peak memory in MB."""
    session = Session()
    seconds = {}

    def step(name, action):
        began = _seconds()
        action()
        while session.running:
            time.sleep(0.05)
        assert not session.error, session.error
        rendered(session)
        seconds[name] = round(_seconds() - began, 1)

    roles = {"role-0": "protect", "time_limit": SEARCH_SECONDS}
    step("open", lambda: session.open_path(str(path)))
    step("advise", lambda: session.act("plan", roles))
    roles |= {f"role-{k}": "release" for k in range(1, len(session.table.columns))}
    step("design", lambda: session.act("design", roles))
    if not session.is_accepted:
        session.act("accept", {})
    step("release", lambda: session.act("release", {"order": "shuffled"}))
    return {"seconds": seconds, "page": _peak(resource.RUSAGE_SELF)} | {
        "task": _peak(resource.RUSAGE_CHILDREN),
        "plausible": session.released.is_plausible,
    }


def _seconds():
    """Processor seconds of the page and of the tasks that have ended."""
    used = (
        resource.getrusage(who)
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return sum(one.ru_utime + one.ru_stime for one in used)


def _peak(who):
    """The largest memory of a process so far, in MB; Linux counts in KB."""
    return round(resource.getrusage(who).ru_maxrss / 1_000)


if __name__ == "__main__":
    write_table(sys.argv[3], int(sys.argv[1]), int(sys.argv[2]))
    print(json.dumps(walked(sys.argv[3])))
