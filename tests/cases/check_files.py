"""Files for `check`: a channel's rows, a header, and CSV files written and read."""

from __future__ import annotations

import csv

ROWS = ((8, 2, 0), (2, 7, 1), (0, 3, 7))
RECORDS = 3000
HEADER = ["id", "x", "zip", "note"]


def write_csv(path, rows, header=HEADER, **options):
    with open(path, "w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, **options)
        writer.writerow(header)
        writer.writerows(rows)
    return path


def read_csv(path):
    with open(path, newline="", encoding="utf-8") as stream:
        return [*csv.reader(stream)][1:]


def kinds(check):
    return [finding.kind for finding in check.findings]
