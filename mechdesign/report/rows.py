"""Row channels in words and as records: what commands print of a release of whole rows.

Each command has a text for people and a record for `--json`: `row_design_..` for `design
--release`, `row_audit_..` for `audit`, and `row_channel_..` for `show`; `row_measures_text` is for
`audit --all-measures`. The texts put the sentences of `row_sentences` together. That of a design
answers three questions in the order of the reports::

    age, city are released together; income is protected.

    What is promised            the factors, and how they were verified
    What is kept                the share and its bound, and a table with a line for each level
    Where the promise ends      the population, the observer, other columns

The records have the keys of designs for boxes (`boxes`) and for one column (`command_records`)
where they mean the same, so that programs read all three alike.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from mechdesign.auditing.measures import ChannelMeasures
from mechdesign.auditing.rows import RowAudit
from mechdesign.auditing.stated import keeps_promise
from mechdesign.channel.row_channel import RowChannel
from mechdesign.core.wording import about, quoted
from mechdesign.mechanisms.row_result import RowDesign
from mechdesign.notions import to_record
from mechdesign.report import layout, wording
from mechdesign.report.plain_values import optional_record
from mechdesign.report.row_sentences import (
    factors,
    given_text,
    lead_text,
    promise_text,
    scope_texts,
    stopped_text,
    task_text,
    utility_text,
    verified_text,
)
from mechdesign.report.terminal import measures_text, promise_sentence


def row_design_text(design: RowDesign) -> str:
    """The text of `design --release`, what matters first; without a final newline."""
    channel = design.channel
    lines = [
        lead_text(channel),
        "",
        "What is promised",
        layout.paragraph(promise_text(design)),
        layout.paragraph(verified_text(design)),
    ]
    if design.given_lift is not None:
        lines.append(layout.paragraph(given_text(design.given_lift)))
    lines += ["", "What is kept", layout.paragraph(utility_text(design))]
    if design.purpose is not None:
        lines.append(layout.paragraph(task_text(design, design.purpose)))
    lines += layout.aligned(_level_rows(design), left=(0,))
    if design.stopped > 0.0:
        lines.append(layout.paragraph(stopped_text(design)))
    lines += ["", "Where the promise ends"]
    lines += layout.item_lines(scope_texts(design))
    if design.messages:
        lines += ["", "Notes", *layout.item_lines(design.messages)]
    return "\n".join(lines)


def row_design_record(design: RowDesign, output: str | None) -> dict[str, Any]:
    """The record of `design --release --json`."""
    channel = design.channel
    levels: list[dict[str, Any]] = []
    for level in design.levels:
        levels.append(
            {
                "columns": level.columns,
                "truth": level.truth,
                "constant": level.constant,
                "kept": level.kept,
                "spent": asdict(level.spent),
            }
        )
    # What a row channel cannot have is null: boxes, and a promise for the population.
    return {
        "mechanism": "rows",
        "method": "tree",
        "notion": to_record(design.audit.notion),
        "promise": design.audit.promise,
        "objective": channel.record.objective,
        **_purpose_figures(design),
        "nmi": design.nmi,
        "mutual_information": design.nmi * design.entropy,
        "entropy": design.entropy,
        "upper_bound_nmi": design.upper_bound_nmi,
        "gap_nmi": design.gap_nmi,
        "achieved": asdict(design.achieved),
        "worst": asdict(design.audit.worst),
        "given_lift": optional_record(design.given_lift),
        "truth": design.truth,
        "levels": levels,
        "leaves": design.leaves,
        "boxes": None,
        "stopped": design.stopped,
        "outputs": design.leaves,
        "records": design.records,
        "confidence": None,
        "population": None,
        "repaired": False,
        "fallback_from": None,
        "verified": design.audit.satisfied,
        "messages": design.messages,
        "seconds": design.seconds,
        "output": output,
    }


def row_audit_text(audit: RowAudit) -> str:
    """The text of `audit` on a row channel."""
    verdict = "satisfied" if audit.satisfied else "VIOLATED"
    row = ", ".join(quoted(text) for text in audit.worst.row) or "any row"
    lines = [
        f"{audit.notion.text}, {audit.promise} promise: {verdict}, decided in exact arithmetic on "
        f"{wording.count(audit.leaves, 'prefix', 'prefixes')}.",
        f"Achieved: {wording.achieved_text(audit.achieved)} (nats, rounded up).",
        f"Worst: the row {row} makes {wording.label(audit.worst.sensitive)} "
        f"{about(audit.worst.lift)} times as likely as before.",
    ]
    # What a prefix uses stays used (`audit_rows`), so the last line is that of the whole row.
    for number, spent in enumerate(audit.spent, start=1):
        low, high = factors(spent)
        lines.append(f"Up to level {number}: a factor between {low} and {high}.")
    if audit.given is not None:
        lines.append(given_text(audit.given))
    return "\n".join(lines)


def row_audit_record(audit: RowAudit) -> dict[str, Any]:
    """The record of `audit --json` on a row channel."""
    return {
        "satisfied": audit.satisfied,
        "notion": to_record(audit.notion),
        "promise": audit.promise,
        "achieved": asdict(audit.achieved),
        "worst": asdict(audit.worst),
        "given_lift": optional_record(audit.given),
        "spent": [asdict(spent) for spent in audit.spent],
        "leaves": audit.leaves,
        "population": None,
    }


def row_measures_text(
    channel: RowChannel, measures: ChannelMeasures, *, per_output: bool = False
) -> str:
    """The text of `audit --all-measures` on a row channel: its outputs are whole released rows."""
    text = "Every measure compares with the whole table; an output is a whole released row."
    if channel.given:
        text = (
            "Every measure compares with the whole table. An output is a whole released row, and "
            "its given columns are part of what it reveals; what is kept is beyond these."
        )
    return f"{layout.paragraph(text, '')}\n\n{measures_text(measures, per_output)}"


def row_channel_text(channel: RowChannel) -> str:
    """The text of `show` on a row channel: its columns, nodes and promise, level by level."""
    record = channel.record
    lines = [
        lead_text(channel),
        promise_sentence(
            f"{channel.notion.text}, {record.promise} promise", keeps_promise(channel)
        ),
        f"Objective: {record.objective}.",
        "",
    ]
    rows = [["level", "symbols", "outputs", "nodes"]]
    for variable, labels, table in zip(
        channel.levels, channel.labels, channel.tree.levels, strict=True
    ):
        rows.append(
            [
                wording.title(variable.columns),
                f"{len(variable):,}",
                f"{len(labels):,}",
                f"{table.nodes:,}",
            ]
        )
    lines += layout.aligned(rows, left=(0,))
    if channel.given:
        given = wording.titles(channel.given)
        lines.append(f"Given as they are: {given} ({len(channel.strata):,} strata).")
    if channel.table is None:
        lines.append("This public file does not carry the table.")
    return "\n".join(lines)


def row_channel_record(channel: RowChannel) -> dict[str, Any]:
    """The record of `show --json` on a row channel."""
    record = channel.record
    levels: list[dict[str, Any]] = []
    for variable, labels, table in zip(
        channel.levels, channel.labels, channel.tree.levels, strict=True
    ):
        levels.append(
            {
                "columns": variable.columns,
                "symbols": variable.symbols,
                "outputs": labels,
                "nodes": table.nodes,
            }
        )
    return {
        "sensitive": channel.sensitive.columns,
        "given": [variable.columns for variable in channel.given],
        "strata": len(channel.strata),
        "levels": levels,
        "notion": record.notion,
        "promise": record.promise,
        "objective": record.objective,
        "achieved": record.achieved,
        "utility": record.utility,
        "certificate": record.certificate,
        "provenance": record.provenance,
    }


def _level_rows(design: RowDesign) -> list[list[str]]:
    """A row for each level: unchanged cells, how many the most frequent symbol would leave
    unchanged, what the level adds to the information kept, and the budget spent up to there.

    By the chain rule I(X; Y | K) = sum over j of I(X; Y_j | K, Y_1 .. Y_{j-1}), so the shares in
    `adds` sum to the information kept in all.
    """
    rows = [["column", "unchanged cells", "if constant", "adds", "factor so far"]]
    for level in design.levels:
        low, high = factors(level.spent)
        unchanged = "-"
        if level.truth is not None:
            unchanged = _percents(level.truth)
        rows.append(
            [
                wording.title(level.columns),
                unchanged,
                _percents(level.constant),
                wording.percent_at_least(level.kept),
                f"{low} to {high}",
            ]
        )
    return rows


def _percents(shares: dict[str, float]) -> str:
    """The shares of the columns of a level, rounded down."""
    return ", ".join(wording.percent_at_least(share) for share in shares.values())


def _purpose_figures(design: RowDesign) -> dict[str, Any]:
    """What the release was made for, in the place of its objective."""
    if design.purpose is None:
        return {}
    return {"objective": "task", "task": design.purpose.column} | design.purpose.figures
