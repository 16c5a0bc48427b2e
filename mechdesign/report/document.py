"""From the record of a report to its sections: in what order things are said, and what a page has room for."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mechdesign.comparison.rows import ComparisonRow
from mechdesign.report.bins_text import numbers_blocks
from mechdesign.report.blocks import (
    ALL_IN_JSON,
    MOST_ROWS,
    MOST_SHARES,
    Block,
    Blocked,
    Bullets,
    Cell,
    CurveChart,
    Document,
    Facts,
    Grid,
    LiftMap,
    Lines,
    Maps,
    Remark,
    Section,
    Text,
    blocked,
    label_remarks,
    row_remarks,
    short,
)
from mechdesign.report.content import names_of
from mechdesign.report.record import Asked, Entry, Kept, Lifts, Meaning, Promise, Report
from mechdesign.report.wording import (
    about,
    at_least,
    at_most,
    count,
    label,
    percent,
    percent_at_least,
    percent_at_most,
    title,
)

LIFT = (
    "The lift of a {sensitive} at a released value says how many times as likely that value makes it: 1 means that "
    "nothing is learnt about it, 2 that it has become twice as likely, 0.5 half as likely."
)

BANNERS = {
    "internal": "Internal report: the table can be computed from it. Do not publish.",
    "public": "Public version: nothing but the channel itself depends on the table.",
}

MOST_MATRIX_OUTPUTS = 20
MOST_MATRIX_SYMBOLS = 40
"""Columns and rows of a matrix that a page can show whole."""

ROUNDING = 1e-9
"""Lifts of a map are doubles: one is marked as out of bounds only if it is so by more than their rounding."""

ENDS = (2.0, 4.0, 8.0)
"""Lifts at which the colours of a map may end: no less, so that rounding does not look like leakage."""

ABOVE, BELOW = "▲", "▼"


def document_of(report: Report) -> Document:
    """The document that every renderer writes: what matters most comes first."""
    asked = report.asked
    sensitive, useful = names_of(asked)
    sections = summary_sections(report)
    if report.curve is not None or "curve" in report.absent:
        sections.append(Section("curve", "Privacy against utility", _curve(report)))
    if report.before is not None and report.after is not None:
        sections.append(Section("lifts", "Before and after", _lifts(report, report.before, report.after)))
    sections.append(Section("channel", "The channel", _channel(report)))
    if report.codebook is not None:
        sections.append(Section("codebook", "Codebook", _codebook(report)))
    if report.promise.bounds:
        sections.append(Section("measures", "Other measures of leakage", measure_blocks(report.promise)))
    facts = Facts(tuple((fact.name, label(fact.text)) for fact in report.provenance))
    sections += [
        Section("asked", "What was asked", _asked(asked)),
        Section("provenance", "Provenance", (facts,)),
        Section("reproduce", "Do it again", (Lines(tuple((c.purpose, c.line) for c in report.commands)),)),
    ]
    return Document(
        title=f"Release of {useful}, protecting {sensitive}",
        banner=BANNERS[report.audience],
        internal=report.audience == "internal",
        lead=lead_of(asked),
        highlights=_highlights(report, useful),
        sections=tuple(sections),
        footer=f"Written {report.written} by mechdesign.",
    )


def lead_of(asked: Asked) -> str:
    """Who is protected, and what is released instead of what."""
    sensitive, useful = names_of(asked)
    symbols = f" ({count(len(asked.sensitive_symbols), 'symbol')})" if asked.sensitive_symbols else ""
    return (
        f"{useful} ({count(len(asked.useful_symbols), 'symbol')}) is released as "
        f"{count(asked.outputs, 'output')}; {sensitive}{symbols} is protected."
    )


def summary_sections(report: Report) -> list[Section]:
    """How far a belief can move, what is kept, for whom it holds and what voids it."""
    sensitive, useful = names_of(report.asked)
    kept = [] if report.kept is None else [Section("kept", "What is kept", _kept(report.kept, useful))]
    holds_for: tuple[Block, ...] = (Bullets(report.holds_for),)
    if report.population is not None:
        holds_for = (*map(Text, report.population.sentences), *holds_for)
    return [
        Section("promise", "What is promised", _promise(report.promise, report.asked.notion_text, sensitive)),
        *kept,
        *(
            [Section("numbers", "How far numbers move", numbers_blocks(report.numbers))]
            if report.numbers
            else []
        ),
        Section("scope", "For whom it holds", holds_for),
        Section("voids", "What voids it", (Bullets(report.voided_by),)),
    ]


def _highlights(report: Report, useful: str) -> tuple[tuple[str, str], ...]:
    promise, kept, asked = report.promise, report.kept, report.asked
    items: list[tuple[str, str]] = []
    if promise.low is not None or promise.high is not None:
        low = "0" if promise.low is None else at_least(promise.low)
        high = "any" if promise.high is None else at_most(promise.high)
        items.append(("Times as likely as before", f"{low} to {high}"))
    items.append(("Promise", asked.notion_text))
    verdict = {True: "yes, exactly", False: "VIOLATED", None: "not checked here"}[promise.satisfied]
    items.append(("Verified", verdict))
    if kept is not None:
        items.append((f"Information in {useful} kept", percent_at_least(kept.nmi)))
        if kept.upper_bound_nmi is not None:
            items.append(("No channel keeps more than", percent_at_most(kept.upper_bound_nmi)))
    if asked.records is not None:
        items.append(("Records in the table", f"{asked.records:,}"))
    return tuple(items)


def _promise(promise: Promise, notion: str, sensitive: str) -> tuple[Block, ...]:
    statement = Text(f"{promise.statement[:1].upper()}{promise.statement[1:]}")
    shown = promise.beliefs[:MOST_ROWS]
    beliefs = Grid(
        f"Probability of each {sensitive} before and after any released value is seen",
        (sensitive, "before", "lowest after", "highest after"),
        tuple(
            (
                Cell(short(belief.symbol)),
                Cell(percent(belief.before)),
                Cell(percent_at_least(belief.lowest)),
                Cell(percent_at_most(belief.highest)),
            )
            for belief in shown
        ),
    )
    table = [beliefs, *row_remarks(len(shown), len(promise.beliefs), sensitive)] if shown else []
    return (statement, *table, Text(f"This is {notion}. {promise.verdict}"))


def _kept(kept: Kept, useful: str) -> tuple[Block, ...]:
    amount = f"I(X;Y) = {about(kept.mutual_information)} of H(X) = {about(kept.entropy)} nats"
    blocks: list[Block] = [
        Text(f"{percent_at_least(kept.nmi)} of the information in {useful} is kept: {amount}."),
    ]
    if kept.upper_bound_nmi is None or kept.gap_nmi is None:
        blocks.append(Text("How much the best possible channel would keep was not computed."))
    else:
        gap = percent_at_most(max(kept.gap_nmi, 0.0))
        blocks.append(
            Text(
                f"No channel that keeps the promise keeps more than {percent_at_most(kept.upper_bound_nmi)}: the gap "
                f"is at most {gap}. This bound is {kept.scope}."
            )
        )
    return (*blocks, *[Text(label(remark)) for remark in kept.remarks])


def amount(bound: float, unit: str) -> str:
    """``at most`` so much of a unit: ``0.5 nats``, ``1 nat``."""
    text = at_most(bound)
    return f"{text} {unit.removesuffix('s') if text == '1' else unit}".strip()


def measure_blocks(promise: Promise) -> tuple[Block, ...]:
    """What follows for other measures: from the promise, for every channel; and what this channel attains."""
    attained = any(bound.attained is not None for bound in promise.bounds)
    header = ("measure", "every channel with this promise, at most", *(["this channel"] * attained))
    rows: list[tuple[Cell, ...]] = []
    for bound in promise.bounds:
        values = [bound.promised, *([bound.attained] * attained)]
        texts = ["-" if value is None else amount(value, bound.unit) for value in values]
        rows.append((Cell(bound.measure), *map(Cell, texts)))
    return (
        Grid(
            "What the promise bounds, and what this channel attains"
            if attained
            else "What the promise bounds",
            header,
            tuple(rows),
        ),
    )


def _asked(asked: Asked) -> tuple[Block, ...]:
    sensitive, useful = names_of(asked)
    facts = [
        ("Protected", f"{sensitive}: {_names(asked.sensitive_symbols)}"),
        ("Released", f"{useful}: {_names(asked.useful_symbols)}"),
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


def _curve(report: Report) -> tuple[Block, ...]:
    """The curve as pictures and as a table, or why there is none."""
    curve = report.curve
    if curve is None:
        return (Remark(report.absent["curve"]),)
    chosen = curve.chosen
    mechanisms = list(dict.fromkeys(row.mechanism for row in curve.rows))
    bounded = any(row.upper_bound_nmi is not None for row in curve.rows)
    said = (
        f"The chosen budget, {chosen.epsilon:g}, keeps {percent_at_least(chosen.nmi)} of the information; smaller "
        "budgets leak less and keep less."
    )
    impossible = " No channel at all that keeps the promise lies above the proven bound." if bounded else ""
    return (
        Text(said + impossible),
        CurveChart(
            "Utility and leakage against the budget",
            f"Pictures over the budget ({curve.axis}), with the chosen point marked: utility of "
            f"{' and '.join(mechanisms)}, largest gain and largest loss of belief. The numbers are in the table below.",
            curve,
        ),
        Grid(
            f"Trade-off over {curve.axis} (* is the chosen budget)",
            (
                "budget",
                "mechanism",
                "kept",
                *(["no channel keeps more than"] if bounded else []),
                "largest log-lift",
                "smallest log-lift",
            ),
            tuple(_row(row, row == chosen, bounded) for row in curve.rows),
            left=(1,),
            folded=True,
        ),
        *[Remark(text) for text in curve.remarks],
    )


def _row(row: ComparisonRow, chosen: bool, bounded: bool) -> tuple[Cell, ...]:
    bound = row.upper_bound_nmi
    return (
        Cell(f"{row.epsilon:g}{'*' if chosen else ''}"),
        Cell(row.mechanism),
        Cell(percent_at_least(row.nmi)),
        *([Cell("" if bound is None else percent_at_most(bound))] if bounded else []),
        Cell(at_most(row.max_log_lift)),
        Cell(f"-{at_most(-row.min_log_lift)}" if row.min_log_lift < 0.0 else "0"),
    )


def _lifts(report: Report, lifts_before: Lifts, lifts_after: Lifts) -> tuple[Block, ...]:
    """Heat maps of the lifts of the table and of the release, and their numbers."""
    sensitive, useful = title(report.asked.sensitive_columns), title(report.asked.useful_columns)
    promise = report.promise
    before = blocked(lifts_before, useful, sensitive)
    after = blocked(lifts_after, "outputs", sensitive)
    ends = _ends(before, after)
    marks = f" {BELOW} and {ABOVE} mark lifts below and above what is allowed." if _bounded(promise) else ""
    notes = [Remark(f"{name}: {b.note}") for name, b in (("Before", before), ("After", after)) if b.note]
    return (
        Text(LIFT.format(sensitive=sensitive)),
        Text(
            f"How many times as likely each {sensitive} becomes when {useful} itself is seen (before), and when a "
            f"released value is seen (after). Pale is less likely, dark more likely; the colours end at "
            f"{1.0 / ends:g} and {ends:g}.{marks}"
        ),
        Maps(
            (
                _map("Before", before, useful, sensitive, promise, ends),
                _map("After", after, "output", sensitive, promise, ends),
            )
        ),
        *notes,
        _numbers("Lifts before", before, useful),
        _numbers("Lifts after", after, "output"),
    )


def _bounded(promise: Promise) -> bool:
    return promise.low is not None or promise.high is not None


def _ends(*tables: Blocked) -> float:
    """The lift of the last colour: the same for both maps, so that they can be compared."""
    values = [v for table in tables for line in table.values for v in line]
    return next((end for end in ENDS if all(1.0 / end <= v <= end for v in values)), ENDS[-1])


def _marks(table: Blocked, promise: Promise) -> tuple[tuple[str, ...], ...]:
    low = -math.inf if promise.low is None else promise.low * (1.0 - ROUNDING)
    high = math.inf if promise.high is None else promise.high * (1.0 + ROUNDING)
    return tuple(
        tuple(BELOW if v < low else ABOVE if v > high else "" for v in line) for line in table.values
    )


def _map(name: str, table: Blocked, down: str, across: str, promise: Promise, ends: float) -> LiftMap:
    values = [v for line in table.values for v in line]
    marks = _marks(table, promise)
    outside = sum(mark != "" for line in marks for mark in line)
    said = (
        f" {outside:,} of {count(len(values), 'cell')} outside what is allowed." if _bounded(promise) else ""
    )
    return LiftMap(
        title=f"{name}: lift of each {across} at each {down}",
        description=f"Lifts from {min(values):.3g} to {max(values):.3g}.{said} The numbers are in a table below.",
        across=across,
        down=down,
        columns=table.columns,
        rows=table.rows,
        values=table.values,
        marks=marks,
        ends=ends,
    )


def _numbers(caption: str, table: Blocked, down: str) -> Grid:
    return Grid(
        caption,
        (down, *table.columns),
        tuple(
            (Cell(name), *(Cell(f"{v:.3g}") for v in line))
            for name, line in zip(table.rows, table.values, strict=True)
        ),
        folded=True,
    )


def _channel(report: Report) -> tuple[Block, ...]:
    """The matrix, or where it is too large what becomes of each symbol."""
    channel, useful = report.channel, title(report.asked.useful_columns)
    blocks: list[Block] = [
        Text(
            f"Each {useful} is replaced by one of {count(len(channel.outputs), 'output')}, drawn with these "
            f"probabilities. They are integers over {channel.denominator}; percentages here are rounded."
        )
    ]
    if len(channel.outputs) <= MOST_MATRIX_OUTPUTS and len(channel.symbols) <= MOST_MATRIX_SYMBOLS:
        rows = tuple(
            (Cell(short(name)), *_matrix_row(row, len(channel.outputs)))
            for name, row in zip(channel.symbols, channel.rows, strict=True)
        )
        blocks.append(
            Grid(
                f"P(output | {useful}) in %; an empty cell is exactly zero",
                (useful, *map(short, channel.outputs)),
                rows,
            )
        )
    else:
        shown = channel.rows[:MOST_ROWS]
        blocks += [
            Remark(
                f"There is no room for {len(channel.symbols):,} x {len(channel.outputs):,} probabilities: the "
                f"{MOST_SHARES} most probable outputs of each {useful} are listed, the others put together. "
                f"{ALL_IN_JSON}"
            ),
            Grid(
                f"What is released for each {useful}",
                (useful, "outputs, with their probabilities"),
                tuple(
                    (
                        Cell(short(name)),
                        Cell(_listed([(channel.outputs[e.output], e.share) for e in _sorted(row)])),
                    )
                    for name, row in zip(channel.symbols, shown, strict=False)
                ),
                left=(1,),
            ),
            *row_remarks(len(shown), len(channel.symbols), useful),
        ]
    return (*blocks, *label_remarks([*channel.symbols, *channel.outputs]))


def _sorted(row: Sequence[Entry]) -> list[Entry]:
    return sorted(row, key=lambda entry: -entry.weight)


def _matrix_row(row: Sequence[Entry], outputs: int) -> list[Cell]:
    cells = [Cell("")] * outputs
    for entry in row:
        cells[entry.output] = Cell(_tenths(entry.share), entry.share)
    return cells


def _tenths(share: float) -> str:
    """A positive share in percent with one decimal; what would round to 0 or 100 and is not says so."""
    text = f"{100 * share:.1f}"
    if text == "0.0":
        return "<0.1"
    if text == "100.0":
        return "100" if share == 1.0 else ">99.9"
    return text


def _listed(shares: Sequence[tuple[str, float]]) -> str:
    parts = [f"{short(name)} {_tenths(share)} %" for name, share in shares[:MOST_SHARES]]
    rest = shares[MOST_SHARES:]
    if rest:
        parts.append(f"{count(len(rest), 'other')} together {_tenths(sum(share for _, share in rest))} %")
    return "; ".join(parts)


def _codebook(report: Report) -> tuple[Block, ...]:
    """What each output says of X, and how much of S."""
    codebook, useful = report.codebook or (), title(report.asked.useful_columns)
    shown = codebook[:MOST_ROWS]
    clipped = any(len(meaning.posterior) > MOST_SHARES for meaning in shown)
    rest = [Remark(f"Of each output the {MOST_SHARES} most probable symbols are listed. {ALL_IN_JSON}")]
    return (
        Text(
            f"What an output says of {useful}: the probability of each symbol given that output. The last columns are "
            f"its smallest and its largest lift over {title(report.asked.sensitive_columns)}."
        ),
        Grid(
            "Posterior of each output",
            ("output", "released", f"P({useful} | output)", "smallest lift", "largest lift"),
            tuple(_meaning(meaning) for meaning in shown),
            left=(2,),
        ),
        *row_remarks(len(shown), len(codebook), "outputs"),
        *(rest if clipped else []),
    )


def _meaning(meaning: Meaning) -> tuple[Cell, ...]:
    return (
        Cell(short(meaning.output)),
        Cell(f"{_tenths(meaning.probability)} %"),
        Cell(_listed(meaning.posterior)),
        Cell(at_least(meaning.lowest_lift)),
        Cell(at_most(meaning.highest_lift)),
    )
