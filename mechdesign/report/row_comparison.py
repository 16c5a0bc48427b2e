"""The answer of `compare --release`, in words and as a record.

It sets a channel for whole rows beside the two ways of releasing the same columns without one:
every column through a channel of its own, and randomised response. The table has a line for each
way; below it each gets a sentence: the bound on the first, the row that breaks the promise of the
second, and the parameter of the third.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from mechdesign.auditing.rows import RowWorst
from mechdesign.comparison.row_ways import (
    ALONE,
    RESPONSE,
    ROWS,
    RowComparison,
    RowWay,
)
from mechdesign.core.wording import about, quoted
from mechdesign.notions import to_record
from mechdesign.report import layout, wording

MECHANISMS = {ROWS: "rows", ALONE: "alone", RESPONSE: "response"}
"""What each way is called in the JSON record."""

VERDICTS = {True: "kept", False: "BROKEN", None: "not known"}
"""Whether the promise is kept; None where the released rows are too many to compute it."""


def row_comparison_text(comparison: RowComparison) -> str:
    """The table of the ways, and a sentence on each; without a final newline."""
    channel = comparison.design.channel
    columns = wording.titles(channel.levels)
    sensitive = wording.title(channel.sensitive.columns)
    given = ""
    if channel.given:
        names = wording.titles(channel.given)
        given = f" {names} as they are, and"
    notion = comparison.design.audit.notion.text
    promise = comparison.design.audit.promise
    lines = [
        layout.paragraph(
            f"Three ways to release{given} {columns}; {sensitive} is protected by {notion} "
            f"({promise} promise).",
            first="",
        ),
        "",
        *layout.aligned(_rows(comparison), left=(0, 1)),
        "",
    ]
    lines += [layout.item(_sentence(way, comparison)) for way in comparison.ways]
    return "\n".join(lines)


def row_comparison_record(comparison: RowComparison) -> dict[str, Any]:
    """The record of `compare --release --json`."""
    channel = comparison.design.channel
    ways: list[dict[str, Any]] = []
    for way in comparison.ways:
        ways.append(asdict(way) | {"mechanism": MECHANISMS[way.name]})
    return {
        "notion": to_record(comparison.design.audit.notion),
        "promise": comparison.design.audit.promise,
        "objective": channel.record.objective,
        "sensitive": channel.sensitive.columns,
        "given": [variable.columns for variable in channel.given],
        "release": [variable.columns for variable in channel.levels],
        "upper_bound_nmi": comparison.design.upper_bound_nmi,
        "ways": ways,
        "messages": comparison.design.messages,
        "seconds": comparison.seconds,
    }


def _rows(comparison: RowComparison) -> list[list[str]]:
    """A line for each way: promise, factors of the lifts, information, mean unchanged cells."""
    rows = [["way", "promise", "factor", "kept", "unchanged cells"]]
    for way in comparison.ways:
        factor = "?"
        if way.achieved is not None:
            low = wording.factor_text(way.achieved.eps_l, upper=False)
            high = wording.factor_text(way.achieved.eps_u, upper=True)
            factor = f"{low} to {high}"
            # The first columns alone: the whole row tells at least as much.
            if not way.complete:
                factor = f"at least {factor}"
        kept = "?" if way.kept is None else wording.percent_at_least(way.kept)
        cells = "-"
        if way.truth is not None:
            # The mean over the columns, each with its own share.
            cells = wording.percent_at_least(sum(way.truth.values()) / len(way.truth))
        rows.append([way.name, VERDICTS[way.satisfied], factor, kept, cells])
    return rows


def _sentence(way: RowWay, comparison: RowComparison) -> str:
    """What is to be known of a way beside its line of the table."""
    if way.name == ROWS:
        bound = wording.percent_at_most(comparison.design.upper_bound_nmi)
        return f"No mechanism with the promise of the row channel keeps more than {bound} (proven)."
    if way.name == ALONE:
        return _alone_sentence(way)
    return _response_sentence(way)


def _alone_sentence(way: RowWay) -> str:
    """What becomes of the promise where every column has a channel of its own."""
    start = (
        "Each column by itself has a channel at the same budget, as if the others were "
        "not there."
    )
    if way.satisfied:
        return f"{start} The released row keeps the promise on this table."
    if way.satisfied is None or way.worst is None:
        return (
            f"{start} There are too many released rows to compute what becomes of the promise; "
            "the first columns keep it."
        )
    scope = "The released row breaks the promise"
    if not way.complete:
        names = ", ".join(wording.label(name) for name in way.columns)
        scope = f"{names} break the promise already, and the whole row breaks it at least as much"
    row = ", ".join(quoted(text) for text in way.worst.row)
    return f"{start} {scope}: the row {row} {_effect(way.worst)}."


def _effect(worst: RowWorst) -> str:
    """What the worst row does to the belief in a secret."""
    secret = quoted(worst.sensitive)
    if worst.against is not None:
        return f"changes the odds of {secret} against {quoted(worst.against)} too much"
    if worst.lift == 0.0:
        return f"makes {secret} impossible"
    return f"makes {secret} {about(worst.lift)} times as likely as before"


def _response_sentence(way: RowWay) -> str:
    """The parameter of randomised response."""
    if way.epsilon is None:
        return (
            "Randomised response: there are too many released rows to compute which parameter "
            "keeps the promise beside the given columns."
        )
    epsilon = about(way.epsilon)
    if way.kept is None:
        return (
            f"Randomised response with the parameter {epsilon} in every column keeps the promise "
            "on every table. There are too many released rows to compute what it keeps, or "
            "whether a larger parameter does."
        )
    return (
        "Randomised response draws each column independently. Its parameter is "
        f"{epsilon}, the largest with which the row keeps the promise on this table."
    )
