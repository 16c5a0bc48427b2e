"""Row channels in words and as records: what commands print of a release of whole rows.

Each command has a text for people and a record for `--json`: `row_design_..` for `design
--release`, `row_audit_..` for `audit`, and `row_channel_..` for `show`; `row_measures_text` is for
`audit --all-measures`. A text has the same order as the reports: what is promised, what is kept,
and where the promise ends.

The exact audit has budgets in nats, and people read factors: eps_l = 0.5 and eps_u = 0.7 become
"between 0.60653 and 2.0138". The first is exp(-eps_l) rounded down and the second exp(eps_u)
rounded up, so that no printed range is narrower than the proven one.

The sentences at the end, from `lead_text` on, also serve the first screen (`row_first_screen`).
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from mechdesign.auditing.measures import ChannelMeasures
from mechdesign.auditing.rows import RowAudit
from mechdesign.auditing.verdict import Achieved
from mechdesign.channel.row_channel import RELATIVE, RowChannel
from mechdesign.core.wording import quoted
from mechdesign.mechanisms.result import TaskUtility
from mechdesign.mechanisms.row_result import RowDesign
from mechdesign.notions import to_record
from mechdesign.report import layout
from mechdesign.report import wording as w
from mechdesign.report.scope_texts import FREE, FREE_SIDE
from mechdesign.report.terminal import measures_text

COVERS = (
    "It covers a released row and every part of it, against an observer who knows "
    "this table and the channel and nothing else about the record."
)
"""What the promise covers that compares with the whole table."""

PARTS_OF_RELATIVE = (
    "It covers a released row with all of its given columns. A part without them may "
    "reveal more: at most the leakage of the given columns on top."
)
"""What the promise covers that is relative to the given columns."""

POPULATION = (
    "The promise is about this table ({records}), not about the population behind it: "
    "there the leakage is larger, and it grows as the number of records shrinks."
)

IDENTITY = (
    "It hides {sensitive}, not who somebody is: a released row may still be unusual."
)

BEYOND = "Any other column released beside these ends the promise."


def row_design_text(design: RowDesign) -> str:
    """The text of `design --release`, what matters first; without a final newline."""
    channel = design.channel
    lines = [
        lead_text(channel),
        "",
        "What is promised",
        layout.paragraph(_promise_text(design)),
        layout.paragraph(_verified_text(design)),
    ]
    if design.given_lift is not None:
        lines.append(layout.paragraph(_given_text(design.given_lift)))
    lines += ["", "What is kept", layout.paragraph(_utility_text(design))]
    if design.purpose is not None:
        lines.append(layout.paragraph(task_text(design, design.purpose)))
    lines += layout.aligned(_level_rows(design), left=(0,))
    if design.stopped > 0.0:
        lines.append(layout.paragraph(stopped_text(design)))
    lines += ["", "Where the promise ends"]
    lines += layout.item_lines(_scope_texts(design))
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
    given = None if design.given_lift is None else asdict(design.given_lift)
    # The keys are those of designs for boxes (`boxes.box_design_record`) and of one column
    # (`record.design_record`), so that programs read all three alike. What a row channel cannot
    # have is null: boxes, and a promise for the population.
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
        "given_lift": given,
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
        f"{w.count(audit.leaves, 'prefix', 'prefixes')}.",
        f"Achieved: {w.achieved_text(audit.achieved)} (nats, rounded up).",
        f"Worst: the row {row} makes {w.label(audit.worst.sensitive)} "
        f"{w.about(audit.worst.lift)} times as likely as before.",
    ]
    for number, spent in enumerate(audit.spent, start=1):
        low, high = _factors(spent)
        lines.append(f"Up to level {number}: a factor between {low} and {high}.")
    if audit.given is not None:
        lines.append(_given_text(audit.given))
    return "\n".join(lines)


def row_audit_record(audit: RowAudit) -> dict[str, Any]:
    """The record of `audit --json` on a row channel."""
    return {
        "satisfied": audit.satisfied,
        "notion": to_record(audit.notion),
        "promise": audit.promise,
        "achieved": asdict(audit.achieved),
        "worst": asdict(audit.worst),
        "given_lift": None if audit.given is None else asdict(audit.given),
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
        f"It promises {channel.notion.text}, {record.promise} promise (`audit` checks it).",
        f"Objective: {record.objective}.",
        "",
    ]
    rows = [["level", "symbols", "outputs", "nodes"]]
    for variable, labels, table in zip(
        channel.levels, channel.labels, channel.tree.levels, strict=True
    ):
        rows.append(
            [
                w.title(variable.columns),
                f"{len(variable):,}",
                f"{len(labels):,}",
                f"{table.nodes:,}",
            ]
        )
    lines += layout.aligned(rows, left=(0,))
    if channel.given:
        given = w.titles(channel.given)
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


def lead_text(channel: RowChannel) -> str:
    """What is released, and what is protected."""
    verb = "is released"
    if len(channel.output_columns) > 1:
        verb = "are released together"
    return f"{_columns(channel)} {verb}; {sensitive_name(channel)} is protected."


def sensitive_name(channel: RowChannel) -> str:
    """The protected column, or several with crosses between them."""
    return w.title(channel.sensitive.columns)


def stopped_text(design: RowDesign) -> str:
    """Which records have later columns that are released as a constant."""
    return (
        f"The first columns of {w.percent(design.stopped)} of the records are so rare together "
        "that the later columns of these records are released as a constant."
    )


def task_text(design: RowDesign, task: TaskUtility) -> str:
    """What is kept of the task, rounded down, and the bound, rounded up."""
    text = (
        f"Made to tell of {w.label(task.column)}: {w.percent_at_least(task.task_kept)} of what the "
        "true rows tell of it is kept"
    )
    if design.channel.given:
        text += " (beyond the given columns)"
    bound = w.percent_at_most(task.task_upper_bound)
    return f"{text}; no mechanism with this promise keeps more than {bound} (proven)."


def _columns(channel: RowChannel) -> str:
    """The released columns, and which of them are randomised where some are not."""
    text = w.titles(channel.levels)
    if channel.given:
        text += f" (randomised) and {w.titles(channel.given)} (as they are)"
    return text


def _promise_text(design: RowDesign) -> str:
    """The promise as a factor between two numbers, or as one bound where the notion
    leaves the other side free; from the exact budgets that the channel attains.
    """
    # What a channel happens to attain on a free side is no promise, so it is not printed.
    sensitive = sensitive_name(design.channel)
    low, high = _factors(design.achieved)
    match design.audit.notion.limits.free_sides:
        case ("lower",):
            text = (
                f"Seeing a released row makes no value of {sensitive} more than {high} times "
                "as probable as before"
            )
        case ("upper",):
            text = (
                f"Seeing a released row makes no value of {sensitive} less than {low} times "
                "as probable as before"
            )
        case _:
            text = (
                f"Seeing a released row changes the probability of every value of {sensitive} "
                f"by a factor between {low} and {high}"
            )
    if design.audit.promise == RELATIVE:
        text += ", compared with somebody of whom only the given columns are known"
    return f"{text}."


def _verified_text(design: RowDesign) -> str:
    """The notion, how it was verified, and the budgets that the channel uses."""
    # A beginning of a row is a release as well, so a promise must hold at every prefix.
    prefixes = w.count(design.leaves, "prefix", "prefixes")
    return (
        f"This is {design.audit.notion.text}. It was verified in exact arithmetic on every "
        f"beginning of a released row ({prefixes}). Achieved: "
        f"{w.achieved_text(design.achieved)} (nats, rounded up)."
    )


def _given_text(given: Achieved) -> str:
    """What the given columns do to a belief by themselves."""
    low, high = _factors(given)
    return (
        "The given columns are released as they are. Alone they change these "
        f"probabilities by a factor between {low} and {high}."
    )


def _factors(achieved: Achieved) -> tuple[str, str]:
    """The smallest lift, rounded down, and the largest, rounded up."""
    low = w.factor_text(achieved.eps_l, upper=False)
    high = w.factor_text(achieved.eps_u, upper=True)
    return low, high


def _utility_text(design: RowDesign) -> str:
    """The share of the information that is kept, and the bound on it."""
    text = f"{w.percent_at_least(design.nmi)} of the information in the released columns is kept"
    if design.channel.given:
        text += " (beyond the given ones)"
    bound = w.percent_at_most(design.upper_bound_nmi)
    return f"{text}; no mechanism with this promise keeps more than {bound} (proven)."


def _level_rows(design: RowDesign) -> list[list[str]]:
    """A row for each level: unchanged cells, how many the most frequent symbol would leave
    unchanged, what the level adds to the information kept, and the budget spent up to there.

    By the chain rule I(X; Y | K) = sum over j of I(X; Y_j | K, Y_1 .. Y_{j-1}), so the shares in
    `adds` sum to the information kept in all.
    """
    rows = [["column", "unchanged cells", "if constant", "adds", "factor so far"]]
    for level in design.levels:
        low, high = _factors(level.spent)
        unchanged = "-"
        if level.truth is not None:
            unchanged = _percents(level.truth)
        rows.append(
            [
                w.title(level.columns),
                unchanged,
                _percents(level.constant),
                w.percent_at_least(level.kept),
                f"{low} to {high}",
            ]
        )
    return rows


def _percents(shares: dict[str, float]) -> str:
    """The shares of the columns of a level, rounded down."""
    return ", ".join(w.percent_at_least(share) for share in shares.values())


def _scope_texts(design: RowDesign) -> list[str]:
    """What the promise covers and what it leaves open."""
    size = "weights or probabilities"
    if design.records is not None:
        size = w.count(design.records, "record")
    # Of a part y without the given columns k,
    # P(s|y) / P(s) = sum_k P(k|y) [P(s|k,y) / P(s|k)] [P(s|k) / P(s)]:
    # the promise bounds the first bracket, and the leakage of k alone the second.
    covers = COVERS
    if design.audit.promise == RELATIVE:
        covers = PARTS_OF_RELATIVE
    sensitive = sensitive_name(design.channel)
    texts = [POPULATION.format(records=size), covers]
    for side in design.audit.notion.limits.free_sides:
        texts.append(FREE_SIDE.format(sensitive=sensitive, effect=FREE[side]))
    return [*texts, BEYOND, IDENTITY.format(sensitive=sensitive)]


def _purpose_figures(design: RowDesign) -> dict[str, Any]:
    """What the release was made for, in the place of its objective."""
    if design.purpose is None:
        return {}
    return {"objective": "task", "task": design.purpose.column} | design.purpose.figures
