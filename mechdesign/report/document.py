"""From the record of a report (`record.Report`) to the document that renderers write.

`document_of` puts the sections in order, what matters most first. Each section has a function that
turns its part of the record into blocks (`blocks`: texts, lists, tables, pictures); a section
without blocks is left out. Figures are rounded here, and always so that they claim less.
`terminal` prints `summary_sections` alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mechdesign.comparison.curve import Curve
from mechdesign.core.wording import percent_of
from mechdesign.report import blocks as b
from mechdesign.report import wording as w
from mechdesign.report.channel_section import channel_blocks, codebook_blocks
from mechdesign.report.content import names_of, protected
from mechdesign.report.least_section import least_blocks, number_blocks
from mechdesign.report.lift_maps import lift_blocks
from mechdesign.report.record import Kept, Population, Promise, Report, Request

BANNERS = {
    "internal": "Internal report: the table can be computed from it. Do not publish.",
    "public": "Public version: nothing but the channel itself depends on the table.",
}
"""The line at the top of a page by its audience."""

VERIFIED = {True: "yes, exactly", False: "VIOLATED", None: "not checked here"}
"""The exact verdict in a card; None where there was no table to decide by."""

CURVE_HEADER = (
    "budget",
    "mechanism",
    "kept",
    "no channel keeps more than",
    "largest log-lift",
    "smallest log-lift",
)

BOUND_COLUMN = 3
"""Place in `CURVE_HEADER` of the column that is left out where no row has a bound."""


def document_of(report: Report) -> b.Document:
    """The document that every renderer writes: what matters most comes first."""
    request = report.asked
    useful = names_of(request)[1]
    facts = [(fact.name, w.label(fact.text)) for fact in report.provenance]
    commands = [(command.purpose, command.line) for command in report.commands]
    # The order is that of the questions of readers: what is promised, what it costs, how it works,
    # and last how to check it. A public report has neither curve nor lifts nor codebook, so these
    # sections have no blocks.
    sections: list[b.Section] = [
        *summary_sections(report),
        *_section_of("curve", "Privacy against utility", _curve_blocks(report)),
        *_section_of("lifts", "Before and after", lift_blocks(report)),
        *_section_of("channel", "The channel", channel_blocks(report)),
        *_section_of("codebook", "Codebook", codebook_blocks(report)),
        *_section_of(
            "measures", "Other measures of leakage", measure_blocks(report.promise)
        ),
        *_section_of("asked", "What was asked", _request_blocks(request)),
        *_section_of("provenance", "Provenance", [b.Facts(tuple(facts))]),
    ]
    if commands:
        sections += _section_of("reproduce", "Do it again", [b.Lines(tuple(commands))])
    return b.Document(
        title=f"Release of {useful}, protecting {protected(request)}",
        banner=BANNERS[report.audience],
        internal=report.audience == "internal",
        lead=lead_of(request),
        highlights=_cards(report, useful),
        sections=tuple(sections),
        footer=f"Written {report.written} by mechdesign.",
    )


def summary_sections(report: Report) -> list[b.Section]:
    """How far a belief can move, what is kept, and where the promise ends."""
    sensitive, useful = names_of(report.asked)
    kept: list[b.Block] = [*b.paragraphs(report.purpose)]
    if report.least is not None:
        kept += least_blocks(report.least, useful)
    if report.kept is not None:
        kept += _utility_blocks(report.kept, useful, needs_bound=report.least is None)

    scope: list[b.Block] = []
    if report.population is not None:
        scope += b.paragraphs(report.population.sentences)
    scope.append(b.Bullets(report.holds_for))

    promise = _promise_blocks(report.promise, report.asked.notion_text, sensitive)
    if report.population is not None:
        # Beside the figure of the table, which comes first.
        level = percent_of(report.population.level)
        changes = _population_range(report.population)
        likely = (
            f"For the population behind the records ({level} confidence): {changes} times as "
            "likely."
        )
        promise.insert(1, b.Text(likely))

    return [
        *_section_of("promise", "What is promised", promise),
        *_section_of("kept", "What is kept", kept),
        *_section_of("numbers", "How far numbers move", number_blocks(report.numbers)),
        *_section_of("scope", "Sample and population", scope),
        *_section_of(
            "voids", "When the promise does not hold", [b.Bullets(report.voided_by)]
        ),
    ]


def measure_blocks(promise: Promise) -> list[b.Block]:
    """Bounds on other measures: from the promise, for every channel; and what this
    channel attains.
    """
    if not promise.bounds:
        return []
    attained = any(bound.attained is not None for bound in promise.bounds)
    header = ["measure", "with this promise, at most"]
    caption = "What the promise bounds, whatever the channel"
    if attained:
        header.append("this channel")
        caption += ", and what this one attains"
    rows: list[tuple[b.Cell, ...]] = []
    for bound in promise.bounds:
        texts = [bound.measure, _optional_amount(bound.promised, bound.unit)]
        if attained:
            texts.append(_optional_amount(bound.attained, bound.unit))
        rows.append(b.cells(*texts))
    return [b.Grid(caption, tuple(header), tuple(rows))]


def lead_of(request: Request) -> str:
    """The protected column, the released column and their sizes."""
    symbols = ""
    if request.sensitive_symbols:
        symbols = f" ({w.count(len(request.sensitive_symbols), 'symbol')})"
    return (
        f"{names_of(request)[1]} ({w.count(len(request.useful_symbols), 'symbol')}) is released as "
        f"{w.count(request.outputs, 'output')}; {protected(request)}{symbols} is protected."
    )


def amount(bound: float, unit: str) -> str:
    """An upper bound, rounded up, with its unit: ``0.5 nats``, ``1 nat``."""
    text = w.at_most(bound)
    if text == "1":
        unit = unit.removesuffix("s")
    return f"{text} {unit}".strip()


def _section_of(anchor: str, title: str, blocks: Sequence[b.Block]) -> list[b.Section]:
    """The section in a list, which is empty where the section has no content."""
    if not blocks:
        return []
    return [b.Section(anchor, title, tuple(blocks))]


def _cards(report: Report, useful: str) -> tuple[tuple[str, str], ...]:
    """The cards at the top of a page."""
    promise = report.promise
    cards: list[tuple[str, str]] = []
    if promise.low is not None or promise.high is not None:
        low = "0" if promise.low is None else w.at_least(promise.low)
        high = "any" if promise.high is None else w.at_most(promise.high)
        cards.append(("Times as likely as before", f"{low} to {high}"))
    if report.population is not None:
        level = percent_of(report.population.level)
        title = f"The same for the population ({level} confidence)"
        cards.append((title, _population_range(report.population)))
    cards.append(("Privacy notion", report.asked.notion_text))
    cards.append(("Verified", VERIFIED[promise.satisfied]))
    if report.least is not None and report.least.truth is not None:
        truth = w.percent_at_least(report.least.truth)
        cards.append(("Records that stay true", truth))
    kept = report.kept
    if kept is not None:
        share = w.percent_at_least(kept.nmi)
        cards.append((f"Information in {useful} kept", share))
        if kept.upper_bound_nmi is not None:
            bound = w.percent_at_most(kept.upper_bound_nmi)
            cards.append(("No channel keeps more than", bound))
    if report.asked.records is not None:
        cards.append(("Records in the table", f"{report.asked.records:,}"))
    return tuple(cards)


def _population_range(population: Population) -> str:
    """The extreme lifts that hold for the population."""
    low = w.factor_text(population.eps_l, upper=False)
    high = w.factor_text(population.eps_u, upper=True)
    return f"{low} to {high}"


def _promise_blocks(promise: Promise, notion: str, sensitive: str) -> list[b.Block]:
    """The promise in a sentence, the beliefs that it leaves possible, and the verdict on it."""
    rows: list[tuple[b.Cell, ...]] = []
    for belief in promise.beliefs:
        rows.append(
            b.cells(
                b.short(belief.symbol),
                w.percent(belief.before),
                w.percent_at_least(belief.lowest),
                w.percent_at_most(belief.highest),
            )
        )
    caption = (
        f"Probability of every value of {sensitive}, before and after a released "
        "value is seen"
    )
    header = (sensitive, "before", "lowest after", "highest after")
    statement = f"{promise.statement[:1].upper()}{promise.statement[1:]}"
    return [
        b.Text(statement),
        *b.grid(caption, header, rows, sensitive),
        b.Text(f"This is {notion}. {promise.verdict}"),
    ]


def _utility_blocks(kept: Kept, useful: str, *, needs_bound: bool) -> list[b.Block]:
    """The utility and its proven bound.

    With `needs_bound` a sentence says that a bound is missing. It is False for channels of least
    cost, which were not designed to keep information.
    """
    # The share is rounded down and the bound up, so the distance between them may look larger than
    # it is, and never smaller.
    texts = [
        f"{w.percent_at_least(kept.nmi)} of the information in {useful} is kept: "
        f"I(X;Y) = {w.about(kept.mutual_information)} of H(X) = {w.about(kept.entropy)} nats."
    ]
    if kept.upper_bound_nmi is not None and kept.gap_nmi is not None:
        gap = w.percent_at_most(max(kept.gap_nmi, 0.0))
        bound = w.percent_at_most(kept.upper_bound_nmi)
        texts.append(
            f"This is within {gap} of the best possible ({kept.scope}): no channel with this "
            f"promise keeps more than {bound}."
        )
    elif needs_bound:
        texts.append("How much the best possible channel would keep was not computed.")
    texts += [w.label(remark) for remark in kept.remarks]
    return [*b.paragraphs(texts)]


def _optional_amount(bound: float | None, unit: str) -> str:
    """The bound with its unit, or a dash where there is none."""
    return "-" if bound is None else amount(bound, unit)


def _request_blocks(request: Request) -> list[b.Block]:
    """The columns, the notion, the mechanism and the table of the request."""
    facts = [
        (
            "Protected",
            f"{protected(request)}: {_symbols_text(request.sensitive_symbols)}",
        ),
        (
            "Released",
            f"{names_of(request)[1]}: {_symbols_text(request.useful_symbols)}",
        ),
        ("Notion and budgets", f"{request.notion_text}, in nats"),
    ]
    if request.mechanism is not None:
        method = "" if request.method is None else f", by {w.label(request.method)}"
        facts.append(("Mechanism", f"{w.label(request.mechanism)}{method}"))
    if request.table is not None:
        facts.append(("Table", w.label(request.table)))
    if request.cells is not None:
        size = "probabilities or weights"
        if request.records is not None:
            size = w.count(request.records, "record")
        zero = f"{request.zero_cells or 0:,} of {w.count(request.cells, 'cell')} zero"
        facts.append(("Size of the table", f"{size}; {zero}"))
    names = [*request.sensitive_symbols, *request.useful_symbols]
    return [b.Facts(tuple(facts)), *b.label_remarks(names)]


def _symbols_text(names: Sequence[str]) -> str:
    """The number of symbols, and the first of them."""
    if not names:
        return "symbols not recorded"
    most = 2 * b.MOST_SHARES
    shown = ", ".join(b.short(name) for name in names[:most])
    if len(names) > most:
        shown += f", and {len(names) - most:,} more"
    return f"{w.count(len(names), 'symbol')} ({shown})"


def _curve_blocks(report: Report) -> list[b.Block]:
    """The trade-off curve as pictures and as a table, or why there is none."""
    curve = report.curve
    if curve is None:
        return _missing_curve_blocks(report.absent)
    chosen = curve.chosen
    bounded = any(row.upper_bound_nmi is not None for row in curve.rows)
    text = (
        f"The chosen budget, {chosen.epsilon:g}, keeps {w.percent_at_least(chosen.nmi)} of the "
        "information; smaller budgets leak less and keep less."
    )
    if bounded:
        text += " No channel with the promise lies above the proven bound."
    mechanisms = dict.fromkeys(row.mechanism for row in curve.rows)
    description = (
        f"Pictures over the budget ({curve.axis}), with the chosen point marked: utility of "
        f"{' and '.join(mechanisms)}, largest gain and largest loss of belief. "
        "The numbers are in the table below."
    )
    remarks = [b.Remark(remark) for remark in curve.remarks]
    return [
        b.Text(text),
        b.CurveChart(description, curve),
        _curve_table(curve, bounded=bounded),
        *remarks,
    ]


def _curve_table(curve: Curve, *, bounded: bool) -> b.Grid:
    """The numbers of the pictures; `bounded` if some row has a proven bound."""
    rows: list[tuple[b.Cell, ...]] = []
    for row in curve.rows:
        mark = "*" if row == curve.chosen else ""
        texts = [f"{row.epsilon:g}{mark}", row.mechanism, w.percent_at_least(row.nmi)]
        if bounded:
            bound = ""
            if row.upper_bound_nmi is not None:
                bound = w.percent_at_most(row.upper_bound_nmi)
            texts.append(bound)
        texts.append(w.at_most(row.max_log_lift))
        # A log-lift below 0 is rounded down: away from 0 as well.
        smallest = "0"
        if row.min_log_lift < 0.0:
            smallest = f"-{w.at_most(-row.min_log_lift)}"
        texts.append(smallest)
        rows.append(b.cells(*texts))
    header = list(CURVE_HEADER)
    if not bounded:
        del header[BOUND_COLUMN]
    caption = f"Trade-off over {curve.axis} (* is the chosen budget)"
    return b.Grid(caption, tuple(header), tuple(rows), left=(1,), folded=True)


def _missing_curve_blocks(reasons: Mapping[str, str]) -> list[b.Block]:
    """Why the report has no curve, if it gives a reason."""
    if "curve" not in reasons:
        return []
    return [b.Remark(reasons["curve"])]
