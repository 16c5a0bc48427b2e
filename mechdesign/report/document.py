"""From the record of a report (`record.Report`) to the document that renderers write.

`document_of` puts cards with the main facts (`_cards`) and the sections in order, what matters
most first. Each section has a function that turns its part of the record into blocks (`blocks`:
texts, lists, tables, pictures), here or in a module of its name (`channel_section`, ..). A
section without blocks is left out, as those on the table are in a public report.

Figures are rounded here, and always so that they claim less: a kept share of 0.8508123 becomes
"85.081 %" and its bound of 0.8508123 "85.082 %". `terminal` prints `summary_sections` alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from mechdesign.core.wording import STATED, about, at_least, at_most, percent_of
from mechdesign.report import blocks, law_section, wording
from mechdesign.report.boxes import box_belief_blocks, box_blocks, column_blocks
from mechdesign.report.channel_section import (
    channel_blocks,
    codebook_blocks,
    lift_blocks,
    measure_blocks,
    notion_blocks,
    promise_blocks,
)
from mechdesign.report.curve_section import curve_blocks
from mechdesign.report.law_section import least_blocks, number_blocks
from mechdesign.report.record import (
    Kept,
    Population,
    Report,
    Request,
    lead_of,
    names_of,
    protected,
    unit_of,
)

BANNERS = {
    "internal": "Internal report: the table can be computed from it. Do not publish.",
    "public": "Public version: nothing but the channel itself depends on the table.",
}
"""The line at the top of a page by its audience."""

VERIFIED = {True: "yes, exactly", False: "VIOLATED", None: "not checked here"}
"""The exact verdict in a card; None where there was no table to decide by."""


def document_of(report: Report) -> blocks.Document:
    """The document that every renderer writes: what matters most comes first."""
    request = report.asked
    useful = names_of(request)[1]
    boxed = " in boxes" if report.boxes.rows else ""
    facts = [(fact.name, wording.label(fact.text)) for fact in report.provenance]
    commands = [(command.purpose, command.line) for command in report.commands]
    # The order is that of the questions of readers: what is promised, what it costs, how it works,
    # and last how to check it. A public report has neither curve nor lifts nor codebook, so these
    # sections have no blocks.
    sections: list[blocks.Section] = [
        *summary_sections(report),
        *_section_of("curve", "Privacy against utility", curve_blocks(report)),
        *_section_of("lifts", "Before and after", lift_blocks(report)),
        *_section_of("boxes", "The boxes", box_blocks(report)),
        *_section_of("channel", "The channel", channel_blocks(report)),
        *_section_of("codebook", "Codebook", codebook_blocks(report)),
        *_section_of("measures", "Other measures of leakage", _measure_blocks(report)),
        *_section_of("asked", "What was asked", _request_blocks(request)),
        *_section_of("provenance", "Provenance", [blocks.Facts(tuple(facts))]),
    ]
    if commands:
        sections += _section_of(
            "reproduce", "Do it again", [blocks.Lines(tuple(commands))]
        )
    return blocks.Document(
        title=f"Release of {useful}{boxed}, protecting {protected(request)}",
        banner=BANNERS[report.audience],
        internal=report.audience == "internal",
        lead=lead_of(request),
        highlights=_cards(report, useful),
        sections=tuple(sections),
        footer=f"Written {report.written} by mechdesign.",
    )


def summary_sections(report: Report) -> list[blocks.Section]:
    """How far a belief can move, what is kept, and where the promise ends."""
    sensitive, useful = names_of(report.asked)
    kept: list[blocks.Block] = [*blocks.paragraphs(report.purpose)]
    if report.least is not None:
        kept += least_blocks(report.least, useful)
    if report.kept is not None:
        kept += _utility_blocks(
            report.kept, report.asked, needs_bound=report.least is None
        )
    kept += column_blocks(report.boxes, fills=report.asked.fills)

    scope: list[blocks.Block] = []
    beside: list[blocks.Block] = []
    if report.population is not None:
        # Where the promise is about the population alone, they say what it is not about.
        told = beside if report.population.is_promised else scope
        told += blocks.paragraphs(report.population.sentences)
    scope.append(blocks.Bullets(report.holds_for))

    promise = promise_blocks(report.promise, report.asked, sensitive)
    promise += box_belief_blocks(report)
    if report.population is not None:
        # Beside the figure of the table, which comes first.
        level = percent_of(report.population.level)
        changes = _population_range(report.population)
        likely = (
            f"For the population behind the {unit_of(report.asked)[1]} ({level} confidence): "
            f"{changes} times as likely."
        )
        promise[1:1] = [blocks.Text(likely), *beside]

    return [
        *_section_of("promise", "What is promised", promise),
        *_section_of("kept", "What is kept", kept),
        *_section_of("numbers", "How far numbers move", number_blocks(report.numbers)),
        *_section_of(
            "law",
            law_section.TITLE,
            # The first words of the sentences are the title here.
            blocks.paragraphs(law_section.untitled(report.law)),
        ),
        *_section_of("scope", "Sample and population", scope),
        *_section_of(
            "voids",
            "When the promise does not hold",
            [blocks.Bullets(report.voided_by)],
        ),
        *_section_of(
            "notion", "For specialists", notion_blocks(report.promise, report.asked)
        ),
    ]


def _measure_blocks(report: Report) -> list[blocks.Block]:
    """The measures, and why those of this channel are not there."""
    table = measure_blocks(report.promise)
    if table and "measures" in report.absent:
        table.append(blocks.Remark(report.absent["measures"]))
    return table


def _section_of(
    anchor: str, title: str, parts: Sequence[blocks.Block]
) -> list[blocks.Section]:
    """The section in a list, which is empty where the section has no content."""
    if not parts:
        return []
    return [blocks.Section(anchor, title, tuple(parts))]


def _cards(report: Report, useful: str) -> tuple[tuple[str, str], ...]:
    """The cards at the top of a page."""
    promise = report.promise
    cards: list[tuple[str, str]] = []
    if promise.low is not None or promise.high is not None:
        # On a free side every factor is possible.
        low, high = "0", "any"
        if promise.low is not None:
            low = at_least(promise.low)
        if promise.high is not None:
            high = at_most(promise.high)
        cards.append(
            (f"Times as likely as {report.asked.compared}", f"{low} to {high}")
        )
    if report.population is not None:
        cards.append((report.population.title, _population_range(report.population)))
    cards.append(("Verified", VERIFIED[promise.satisfied]))
    if report.least is not None and report.least.truth is not None:
        truth = wording.percent_at_least(report.least.truth)
        what = "Cells" if report.least.of_rows else "Records"
        cards.append((f"{what} that stay true", truth))
    kept = report.kept
    if kept is not None:
        share = wording.percent_at_least(kept.nmi)
        if report.asked.given:
            useful += f" beyond {wording.title(report.asked.given)}"
        cards.append((f"Information in {useful} kept", share))
        if kept.upper_bound_nmi is not None:
            bound = wording.percent_at_most(kept.upper_bound_nmi)
            how = " (stated by the file)" if kept.scope == STATED else ""
            cards.append((f"No {kept.rivals} keeps more than{how}", bound))
    if report.asked.records is not None:
        cards.append(("Records in the table", f"{report.asked.records:,}"))
    return tuple(cards)


def _population_range(population: Population) -> str:
    """The extreme lifts that hold for the population."""
    low = wording.factor_text(population.eps_l, upper=False)
    high = wording.factor_text(population.eps_u, upper=True)
    return f"{low} to {high}"


def _utility_blocks(
    kept: Kept, request: Request, *, needs_bound: bool
) -> list[blocks.Block]:
    """The utility and its proven bound.

    With `needs_bound` a sentence says that a bound is missing. It is False for channels of least
    cost, which were not designed to keep information.
    """
    # The share is rounded down and the bound up, so the distance between them may look larger than
    # it is, and never smaller.
    share = wording.percent_at_least(kept.nmi)
    information = about(kept.mutual_information)
    entropy = about(kept.entropy)
    useful = names_of(request)[1]
    condition = ""
    if request.given:
        # Given columns are released as they are, so only what the others have beyond them counts.
        useful += f" beyond {wording.title(request.given)}"
        condition = "|K"
    texts = [
        f"{share} of the information in {useful} is kept: "
        f"I(X;Y{condition}) = {information} of H(X{condition}) = {entropy} nats."
    ]
    if kept.upper_bound_nmi is not None and kept.gap_nmi is not None:
        gap = wording.percent_at_most(max(kept.gap_nmi, 0.0), step=wording.FINE)
        bound = wording.percent_at_most(kept.upper_bound_nmi)
        proof = wording.proof_text(kept.scope)
        near = f"This is within {gap} of the {kept.best} ({proof}): no"
        if kept.gap_nmi > wording.LARGE_GAP:
            near = (
                f"How near this is to the {kept.best} is not known, but for a bound that is "
                f"{proof}: no"
            )
        texts.append(f"{near} {kept.rivals} keeps more than {bound}.")
    elif needs_bound:
        texts.append("How much the best possible channel would keep was not computed.")
    if kept.unchanged is not None:
        texts.append(f"{wording.unchanged_text(kept.unchanged, names_of(request)[1])}.")
    texts += [wording.label(remark) for remark in kept.remarks]
    return [*blocks.paragraphs(texts)]


def _request_blocks(request: Request) -> list[blocks.Block]:
    """The columns, the notion, the mechanism and the table of the request."""
    facts = [
        (
            "Protected",
            f"{protected(request)}: {_symbols_text(request.sensitive_symbols)}",
        ),
        (
            "Released",
            f"{wording.title(request.useful_columns)}: {_symbols_text(request.useful_symbols)}",
        ),
        ("Notion and budgets", f"{request.notion_text}, in nats"),
    ]
    if request.mechanism is not None:
        mechanism = wording.label(request.mechanism)
        if request.method is not None:
            mechanism += f", by {wording.label(request.method)}"
        facts.append(("Mechanism", mechanism))
    if request.table is not None:
        facts.append(("Table", wording.label(request.table)))
    if request.cells is not None:
        size = "probabilities or weights"
        if request.records is not None:
            size = wording.count(request.records, "record")
        zero = f"{request.zero_cells or 0:,} of {wording.count(request.cells, 'cell')} zero"
        facts.append(("Size of the table", f"{size}; {zero}"))
    names = [*request.sensitive_symbols, *request.useful_symbols]
    return [blocks.Facts(tuple(facts)), *blocks.label_remarks(names)]


def _symbols_text(names: Sequence[str]) -> str:
    """The number of symbols, and the first of them."""
    if not names:
        return "symbols not recorded"
    most = 2 * blocks.MOST_SHARES
    ordered = wording.in_reading_order(names, str)
    shown = ", ".join(wording.short(name) for name in ordered[:most])
    if len(names) > most:
        shown += f", and {len(names) - most:,} more"
    return f"{wording.count(len(names), 'symbol')} ({shown})"
