"""From the record of a report to its sections: in what order things are said, and what a page has room for."""

from __future__ import annotations

from collections.abc import Sequence

from mechdesign.report.blocks import Block, Bullets, Cell, Document, Facts, Grid, Lines, Section, Text
from mechdesign.report.layout_channel import channel_blocks, codebook_blocks
from mechdesign.report.layout_lifts import curve_blocks, lift_blocks
from mechdesign.report.promises import title
from mechdesign.report.record import Asked, Kept, Promise, Report
from mechdesign.report.shortening import MOST_ROWS, MOST_SHARES, label_remarks, row_remarks, short
from mechdesign.report.wording import about, at_least, at_most, count, label, percent, percent_at_most

LIFT = (
    "The lift of a {sensitive} at a released value says how many times as likely that value makes it: 1 means that "
    "nothing is learnt about it, 2 that it has become twice as likely, 0.5 half as likely."
)

BANNERS = {
    "internal": "Internal report: the table can be computed from it. Do not publish.",
    "public": "Public version: nothing but the channel itself depends on the table.",
}


def laid_out(report: Report) -> Document:
    """The document that the HTML and Markdown renderers write."""
    asked = report.asked
    sensitive, useful = sensitive_of(asked), title(asked.useful_columns)
    sections = [
        Section("asked", "What was asked", _asked(asked)),
        Section("guarantee", "What is guaranteed", _promise(report.promise, sensitive)),
    ]
    if report.kept is not None:
        sections.append(Section("kept", "What is kept", _kept(report.kept, useful)))
        sections.append(Section("curve", "Privacy against utility", curve_blocks(report)))
    if report.before is not None and report.after is not None:
        sections.append(
            Section("lifts", "Before and after", lift_blocks(report, report.before, report.after))
        )
    sections.append(Section("channel", "The channel", channel_blocks(report)))
    if report.codebook is not None:
        sections.append(Section("codebook", "Codebook", codebook_blocks(report)))
    sections += [
        Section("limits", "Limits", (Bullets(report.limits),)),
        Section(
            "provenance", "Provenance", (Facts(tuple((f.name, label(f.text)) for f in report.provenance)),)
        ),
        Section("reproduce", "Do it again", (Lines(tuple((c.purpose, c.line) for c in report.commands)),)),
    ]
    return Document(
        title=f"Release of {useful}, protecting {sensitive}",
        banner=BANNERS[report.audience],
        internal=report.audience == "internal",
        lead=(
            f"{useful} ({count(len(asked.useful_symbols), 'symbol')}) is released as "
            f"{count(asked.outputs, 'output')}, so that a released value says little about {sensitive}."
        ),
        highlights=_highlights(report, useful),
        sections=tuple(sections),
        footer=f"Written {report.written} by mechdesign.",
    )


def sensitive_of(asked: Asked) -> str:
    """The sensitive columns as one name."""
    return title(asked.sensitive_columns) or "the sensitive column"


def _highlights(report: Report, useful: str) -> tuple[tuple[str, str], ...]:
    promise, kept, asked = report.promise, report.kept, report.asked
    items = [("Promise", asked.notion_text)]
    if promise.low is not None or promise.high is not None:
        low = "0" if promise.low is None else at_least(promise.low)
        high = "any" if promise.high is None else at_most(promise.high)
        items.append(("Lifts allowed", f"{low} to {high}"))
    verdict = {True: "yes, exactly", False: "VIOLATED", None: "not checked here"}[promise.satisfied]
    items.append(("Verified", verdict))
    if kept is not None:
        items.append((f"Information in {useful} kept", percent(kept.nmi)))
        if kept.upper_bound_nmi is not None:
            items.append(("No channel keeps more than", percent_at_most(kept.upper_bound_nmi)))
    if asked.records is not None:
        items.append(("Records in the table", f"{asked.records:,}"))
    return tuple(items)


def _asked(asked: Asked) -> tuple[Block, ...]:
    facts = [
        ("Protected", f"{sensitive_of(asked)}: {_names(asked.sensitive_symbols)}"),
        ("Released", f"{title(asked.useful_columns)}: {_names(asked.useful_symbols)}"),
        ("Notion and budgets", f"{asked.notion_text}, in nats"),
    ]
    if asked.mechanism is not None:
        by = f", by {label(asked.method)}" if asked.method is not None else ""
        facts.append(("Mechanism", f"{label(asked.mechanism)}{by}"))
    if asked.table is not None:
        facts.append(("Table", label(asked.table)))
    if asked.cells is not None and asked.zero_cells is not None:
        size = "probabilities or weights" if asked.records is None else count(asked.records, "record")
        facts.append(
            ("Size of the table", f"{size}; {asked.zero_cells:,} of {count(asked.cells, 'cell')} zero")
        )
    return (Facts(tuple(facts)), *label_remarks([*asked.sensitive_symbols, *asked.useful_symbols]))


def _names(names: Sequence[str]) -> str:
    if not names:
        return "symbols not recorded"
    shown = ", ".join(short(name) for name in names[: 2 * MOST_SHARES])
    more = len(names) - 2 * MOST_SHARES
    return f"{count(len(names), 'symbol')} ({shown}{f', and {more:,} more' if more > 0 else ''})"


def _promise(promise: Promise, sensitive: str) -> tuple[Block, ...]:
    whole = f"{promise.statement[:1].upper()}{promise.statement[1:]}"
    blocks: list[Block] = [Text(whole), Text(LIFT.format(sensitive=sensitive)), Text(promise.verdict)]
    if promise.beliefs:
        shown = promise.beliefs[:MOST_ROWS]
        blocks.append(
            Grid(
                f"Probability of each {sensitive} before and after any released value is seen",
                (sensitive, "before", "lowest after", "highest after"),
                tuple(
                    (
                        Cell(short(belief.symbol)),
                        Cell(percent(belief.before)),
                        Cell(percent(belief.lowest, "ROUND_FLOOR")),
                        Cell(percent_at_most(belief.highest)),
                    )
                    for belief in shown
                ),
            )
        )
        blocks += row_remarks(len(shown), len(promise.beliefs), sensitive)
    if promise.bounds:
        attained = any(bound.attained is not None for bound in promise.bounds)
        blocks.append(
            Grid(
                "What follows for other measures of leakage",
                ("measure", "guaranteed at most", *(["this channel"] if attained else [])),
                tuple(
                    (
                        Cell(bound.measure),
                        Cell(f"{at_most(bound.bound)} {bound.unit}".strip()),
                        *(
                            [Cell("" if bound.attained is None else at_most(bound.attained))]
                            if attained
                            else []
                        ),
                    )
                    for bound in promise.bounds
                ),
            )
        )
    return tuple(blocks)


def _kept(kept: Kept, useful: str) -> tuple[Block, ...]:
    blocks: list[Block] = [
        Text(
            f"{percent(kept.nmi)} of the information in {useful} is kept: I(X;Y) = {about(kept.mutual_information)} of "
            f"H(X) = {about(kept.entropy)} nats."
        ),
    ]
    if kept.upper_bound_nmi is None or kept.gap_nmi is None:
        blocks.append(Text("How much the best possible channel would keep was not computed."))
    else:
        blocks.append(
            Text(
                f"No channel that keeps the promise keeps more than {percent_at_most(kept.upper_bound_nmi)}: the gap "
                f"is at most {at_most(max(kept.gap_nmi, 0.0))} of H(X). This bound is {kept.scope}."
            )
        )
    return (*blocks, *[Text(label(remark)) for remark in kept.remarks])
