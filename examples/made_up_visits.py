"""Write made-up visits of one night for the how-to pages: ``python made_up_visits.py NIGHT FILE.csv``.

Half of 300 patients come, once or twice. Whoever is ill is more often in the ward w0. The draws
have fixed seeds, so that everybody gets the same files.
"""

from __future__ import annotations

import csv
import random
import sys
from pathlib import Path

PATIENTS = 300


def visits(night: int) -> list[tuple[str, str, str, str]]:
    """The records of one night: patient, time, secret and ward."""
    secrets = random.Random(1)
    ill = [secrets.random() < 0.4 for _ in range(PATIENTS)]
    draw = random.Random(night)
    rows: list[tuple[str, str, str, str]] = []
    for patient in range(PATIENTS):
        if draw.random() < 0.5:
            continue
        for visit in range(draw.choice((1, 1, 2))):
            ward = draw.randrange(3)
            if ill[patient] and draw.random() < 0.3:
                ward = 0
            time = f"2026-11-{night:02}T{visit + 7:02}:00"
            secret = "yes" if ill[patient] else "no"
            rows.append((f"P{patient}", time, secret, f"w{ward}"))
    return rows


def main() -> None:
    """Write the file that the command line names."""
    night, target = int(sys.argv[1]), Path(sys.argv[2])
    with target.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("patient", "at", "ill", "ward"))
        writer.writerows(visits(night))


if __name__ == "__main__":
    main()
