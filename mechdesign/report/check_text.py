"""The verdict of `check` in plain words, and as a record for JSON."""

from __future__ import annotations

from typing import Any

from mechdesign.analysis.checking import FrequencyTest, ReleaseCheck
from mechdesign.report.wording import at_most, count, item, label, paragraph

MOST_SHOWN = 10
"""Suspects named in the text; JSON has all."""

_AGAINST = {
    "originals": "the labels of each original symbol against its row of the channel",
    "table": "the labels against what the channel's table predicts",
    "any data": "the labels against everything that any data could give",
}

_OF = {"table": " of records like those of the table"}
"""For which data a test keeps its promise, where these are not all."""


def check_text(check: ReleaseCheck, path: str) -> str:
    """Verdict, findings, the test of frequencies and what was not checked, without a final newline."""
    verdict = "plausible" if check.plausible else "NOT PLAUSIBLE"
    # Of other records a faithful release may fail this test, and the verdict must not say more than it.
    narrow = not check.plausible and not check.findings and check.frequencies.against == "table"
    whose = ", if the records are like those of its table" if narrow else ""
    lines = [f"{label(path)}: {verdict} as a draw of the channel{whose} ({count(check.records, 'record')})."]
    if check.findings:
        lines += ["", "Impossible"]
        for found in check.findings:
            more = (
                f" ({count(found.records, 'record')} in all)"
                if found.records > 1 and found.kind != "cells"
                else ""
            )
            lines.append(item(label(found.text) + more))
    lines += ["", "Frequencies", *_test(check.frequencies)]
    if check.also is not None:
        lines += _test(check.also)
    if check.notices:
        lines += ["", "Note", *(item(label(notice)) for notice in check.notices)]
    return "\n".join(lines)


def _test(test: FrequencyTest) -> list[str]:
    if test.records == 0:
        return [paragraph("nothing to test.")]
    verdict = "plausible" if test.plausible else "not plausible"
    lines = [
        item(
            f"{_AGAINST[test.against]}: {verdict}, p-value at most {at_most(test.p_value)} "
            f"(a faithful release{_OF.get(test.against, '')} fails with a chance of at most {test.level:g})"
        )
    ]
    for suspect in test.suspects[:MOST_SHOWN]:
        lines.append(
            paragraph(
                f"{label(suspect.name)}: {count(suspect.records, 'record')}, adjusted p-value at most "
                f"{at_most(suspect.p_value)}",
                "      ",
            )
        )
    if len(test.suspects) > MOST_SHOWN:
        lines.append(paragraph(f"and {len(test.suspects) - MOST_SHOWN} more", "      "))
    return lines


def check_record(check: ReleaseCheck) -> dict[str, Any]:
    """What `check --json` prints."""
    return {
        "plausible": check.plausible,
        "records": check.records,
        "findings": [{"kind": f.kind, "text": f.text, "records": f.records} for f in check.findings],
        "frequencies": _test_record(check.frequencies),
        "also": None if check.also is None else _test_record(check.also),
        "notices": list(check.notices),
    }


def _test_record(test: FrequencyTest) -> dict[str, Any]:
    return {
        "against": test.against,
        "plausible": test.plausible,
        "p_value": test.p_value,
        "level": test.level,
        "records": test.records,
        "methods": test.methods,
        "suspects": [{"name": s.name, "records": s.records, "p_value": s.p_value} for s in test.suspects],
    }
