"""From the record of a report to its sections: in what order things are said, and what a page has room for."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from mechdesign.auditing.joint_leakage import sum_above
from mechdesign.release.binned import Moved, distance_text, unit_of
from mechdesign.report import blocks as b
from mechdesign.report import wording as w
from mechdesign.report.content import names_of, protected
from mechdesign.report.record import Asked, Kept, LeastKept, Promise, Report

LIFT = (
    "The lift of a {sensitive} at a released value says how many times as likely that value makes it: 1 means that "
    "nothing is learnt about it, 2 that it has become twice as likely, 0.5 half as likely."
)

BANNERS = {
    "internal": "Internal report: the table can be computed from it. Do not publish.",
    "public": "Public version: nothing but the channel itself depends on the table.",
}

MOST_BARS = 16
"""Rows of a histogram; of more bins neighbours are put together."""

MOST_MATRIX_OUTPUTS = 20
MOST_MATRIX_SYMBOLS = 40
"""Columns and rows of a matrix that a page can show whole."""

ROUNDING = 1e-9
"""Lifts of a map are doubles: one is marked as out of bounds only if it is so by more than their rounding."""

ENDS = (2.0, 4.0, 8.0)
"""Lifts at which the colours of a map may end: no less, so that rounding does not look like leakage."""

CURVE_HEADER = (
    "budget", "mechanism", "kept", "no channel keeps more than", "largest log-lift", "smallest log-lift"
)  # fmt: skip

ABOVE, BELOW = "▲", "▼"


def document_of(report: Report) -> b.Document:
    """The document that every renderer writes: what matters most comes first."""
    asked, useful = report.asked, names_of(report.asked)[1]
    facts = b.Facts(
        tuple((fact.name, w.label(fact.text)) for fact in report.provenance)
    )
    again = b.Lines(tuple((c.purpose, c.line) for c in report.commands))
    blocks: dict[tuple[str, str], Sequence[b.Block]] = {
        ("curve", "Privacy against utility"): _curve(report),
        ("lifts", "Before and after"): _lifts(report),
        ("channel", "The channel"): _channel(report),
        ("codebook", "Codebook"): _codebook(report),
        ("measures", "Other measures of leakage"): measure_blocks(report.promise),
        ("asked", "What was asked"): _asked(asked),
        ("provenance", "Provenance"): [facts],
        ("reproduce", "Do it again"): [again] if report.commands else [],
    }
    return b.Document(
        title=f"Release of {useful}, protecting {protected(asked)}",
        banner=BANNERS[report.audience],
        internal=report.audience == "internal",
        lead=lead_of(asked),
        highlights=_highlights(report, useful),
        sections=(*summary_sections(report), *_sections(blocks)),
        footer=f"Written {report.written} by mechdesign.",
    )


def _sections(blocks: Mapping[tuple[str, str], Sequence[b.Block]]) -> list[b.Section]:
    return [b.Section(*name, tuple(shown)) for name, shown in blocks.items() if shown]


def lead_of(asked: Asked) -> str:
    """Who is protected, and what is released instead of what."""
    symbols = (
        f" ({w.count(len(asked.sensitive_symbols), 'symbol')})"
        if asked.sensitive_symbols
        else ""
    )
    return (
        f"{names_of(asked)[1]} ({w.count(len(asked.useful_symbols), 'symbol')}) is released as "
        f"{w.count(asked.outputs, 'output')}; {protected(asked)}{symbols} is protected."
    )


def summary_sections(report: Report) -> list[b.Section]:
    """How far a belief can move, what is kept, for whom it holds and what voids it."""
    sensitive, useful = names_of(report.asked)
    kept = () if report.least is None else _least(report.least, useful)
    kept += (
        ()
        if report.kept is None
        else _kept(report.kept, useful, free=report.least is None)
    )
    population = () if report.population is None else report.population.sentences
    blocks: dict[tuple[str, str], Sequence[b.Block]] = {
        ("promise", "What is promised"): _promise(
            report.promise, report.asked.notion_text, sensitive
        ),
        ("kept", "What is kept"): kept,
        ("numbers", "How far numbers move"): _numbers(report.numbers),
        ("scope", "For whom it holds"): (
            *map(b.Text, population),
            b.Bullets(report.holds_for),
        ),
        ("voids", "What voids it"): (b.Bullets(report.voided_by),),
    }
    return _sections(blocks)


def _highlights(report: Report, useful: str) -> tuple[tuple[str, str], ...]:
    promise, kept, least, records = (
        report.promise,
        report.kept,
        report.least,
        report.asked.records,
    )
    low = "0" if promise.low is None else w.at_least(promise.low)
    high = "any" if promise.high is None else w.at_most(promise.high)
    truth = None if least is None else least.truth
    bound = None if kept is None else kept.upper_bound_nmi
    items = {
        "Times as likely as before": None
        if (low, high) == ("0", "any")
        else f"{low} to {high}",
        "Promise": report.asked.notion_text,
        "Verified": {True: "yes, exactly", False: "VIOLATED", None: "not checked here"}[
            promise.satisfied
        ],
        "Records that stay true": None if truth is None else w.percent_at_least(truth),
        f"Information in {useful} kept": None
        if kept is None
        else w.percent_at_least(kept.nmi),
        "No channel keeps more than": None
        if bound is None
        else w.percent_at_most(bound),
        "Records in the table": None if records is None else f"{records:,}",
    }
    return tuple((name, text) for name, text in items.items() if text is not None)


def _promise(promise: Promise, notion: str, sensitive: str) -> tuple[b.Block, ...]:
    rows: list[tuple[b.Cell, ...]] = []
    for one in promise.beliefs:
        after = w.percent_at_least(one.lowest), w.percent_at_most(one.highest)
        rows.append(b.cells(b.short(one.symbol), w.percent(one.before), *after))
    caption = (
        f"Probability of each {sensitive} before and after any released value is seen"
    )
    table = b.grid(
        caption, (sensitive, "before", "lowest after", "highest after"), rows, sensitive
    )
    statement = b.Text(f"{promise.statement[:1].upper()}{promise.statement[1:]}")
    return statement, *table, b.Text(f"This is {notion}. {promise.verdict}")


def _kept(kept: Kept, useful: str, *, free: bool) -> tuple[b.Block, ...]:
    amount = f"I(X;Y) = {w.about(kept.mutual_information)} of H(X) = {w.about(kept.entropy)} nats"
    texts = [
        f"{w.percent_at_least(kept.nmi)} of the information in {useful} is kept: {amount}."
    ]
    if kept.upper_bound_nmi is not None and kept.gap_nmi is not None:
        texts.append(
            f"No channel that keeps the promise keeps more than {w.percent_at_most(kept.upper_bound_nmi)}: the gap is "
            f"at most {w.percent_at_most(max(kept.gap_nmi, 0.0))}. This bound is {kept.scope}."
        )
    elif free:  # On the column's own symbols, something else was asked for.
        texts.append("How much the best possible channel would keep was not computed.")
    return tuple(map(b.Text, [*texts, *map(w.label, kept.remarks)]))


def _least(least: LeastKept, useful: str) -> tuple[b.Block, ...]:
    """What a record costs on average, what no channel does better, and which symbols stay as they are."""
    asked, cost, bound, moved = (
        least.asked,
        least.cost,
        least.cost_lower_bound,
        least.frequency_deviation,
    )
    texts: list[str] = []
    if least.truth is not None and cost is not None and bound is not None:
        kept = f"{w.percent_at_least(least.truth)} of the records are released with their own {useful} (expected)"
        best = "no channel that keeps the promise and the conditions below"
        what = {
            None: "The expected cost is",
            "absolute": f"On average {useful} moves by",
        }
        what["squared"] = f"The expected squared distance that {useful} moves is"
        if asked["name"] == "truth":
            most = w.percent_at_most(min(1.0, sum_above((1.0, -bound))))
            texts.append(f"{kept}; {best} keeps more than {most}.")
        else:
            size, unit = unit_of(
                cost, least.kind if asked["distance"] == "absolute" else "number"
            )
            said = f"{what[asked['distance']]} {w.at_most(cost / size)}{unit}"
            texts.append(
                f"{said}; {best} comes below {w.at_least(bound / size)}{unit}. {kept}."
            )
    if asked["keep_frequencies"]:
        size = (
            "up to the rounding to integers"
            if moved is None
            else f"to within {w.at_most(moved)}"
        )
        texts.append(
            f"The expected share of every {useful} is that of the table, {size}."
        )
    elif moved is not None:
        texts.append(
            f"Expected shares of {useful} change by at most {w.percent_at_most(moved)} of all."
        )
    if asked["forbid"]:
        pairs = w.count(len(asked["forbid"]), "pair")
        texts.append(f"{pairs} of symbols is never released one for the other.")
    rows = [
        b.cells(b.short(name), w.percent_at_least(share))
        for name, share in least.by_symbol
    ]
    caption = f"Probability that each {useful} is released as it is"
    return (*map(b.Text, texts), *b.grid(caption, (useful, "stays true"), rows, useful))


def _numbers(numbers: Sequence[Moved]) -> tuple[b.Block, ...]:
    """How far numbers move, and their histogram before and after."""
    blocks: list[b.Block] = []
    for each in numbers:
        column, step = w.label(each.column), -(-len(each.labels) // MOST_BARS)
        told = f"{column} is in {w.count(len(each.labels), 'bin')}. Published as medians (apply --as representative),"
        said = f"{f'{told} its' if each.edges else f'The {column}'} numbers are expected to move by "
        said += distance_text(each.distance, each.kind)
        if each.correlation is not None:
            said += f"; original and released numbers have the correlation {w.about(each.correlation)}"
        blocks.append(b.Text(f"{said}."))
        rows: list[tuple[b.Cell, ...]] = []
        for k in range(0, len(each.labels), step):
            low, high = each.labels[k], each.labels[min(k + step, len(each.labels)) - 1]
            shares = sum(each.before[k : k + step]), sum(each.after[k : k + step])
            start, end = low.partition(", ")[0], high.partition(", ")[2]
            name = f"{start}, {end}" if each.edges else f"{low} to {high}"
            name = w.label(low if low == high else name)
            rows.append(
                (
                    b.Cell(name),
                    *(b.Cell(w.percent(share), min(share, 1.0)) for share in shares),
                )
            )
        header = ("bin" if each.edges else "number", "before", "after")
        blocks.append(
            b.Grid(f"Shares of {column} before and after", header, tuple(rows))
        )
    return tuple(blocks)


def amount(bound: float, unit: str) -> str:
    """``at most`` so much of a unit: ``0.5 nats``, ``1 nat``."""
    text = w.at_most(bound)
    return f"{text} {unit.removesuffix('s') if text == '1' else unit}".strip()


def measure_blocks(promise: Promise) -> tuple[b.Block, ...]:
    """What follows for other measures: from the promise, for every channel; and what this channel attains."""
    attained = any(bound.attained is not None for bound in promise.bounds)
    header = ("measure", "with this promise, at most", "this channel")[: 2 + attained]
    rows: list[tuple[b.Cell, ...]] = []
    for bound in promise.bounds:
        values = (bound.promised, bound.attained)[: 1 + attained]
        rows.append(
            b.cells(
                bound.measure,
                *("-" if v is None else amount(v, bound.unit) for v in values),
            )
        )
    caption = f"What the promise bounds, whatever the channel{', and what this one attains' * attained}"
    return (b.Grid(caption, header, tuple(rows)),) if rows else ()


def _asked(asked: Asked) -> tuple[b.Block, ...]:
    method = "" if asked.method is None else f", by {w.label(asked.method)}"
    size = (
        "probabilities or weights"
        if asked.records is None
        else w.count(asked.records, "record")
    )
    zero = (
        f"{size}; {asked.zero_cells or 0:,} of {w.count(asked.cells or 0, 'cell')} zero"
    )
    facts = {
        "Protected": f"{protected(asked)}: {_names(asked.sensitive_symbols)}",
        "Released": f"{names_of(asked)[1]}: {_names(asked.useful_symbols)}",
        "Notion and budgets": f"{asked.notion_text}, in nats",
        "Mechanism": None
        if asked.mechanism is None
        else f"{w.label(asked.mechanism)}{method}",
        "Table": None if asked.table is None else w.label(asked.table),
        "Size of the table": None if asked.cells is None else zero,
    }
    known = tuple((name, text) for name, text in facts.items() if text is not None)
    return (
        b.Facts(known),
        *b.label_remarks([*asked.sensitive_symbols, *asked.useful_symbols]),
    )


def _names(names: Sequence[str]) -> str:
    if not names:
        return "symbols not recorded"
    shown = ", ".join(b.short(name) for name in names[: 2 * b.MOST_SHARES])
    more = len(names) - 2 * b.MOST_SHARES
    return f"{w.count(len(names), 'symbol')} ({shown}{f', and {more:,} more' if more > 0 else ''})"


def _curve(report: Report) -> tuple[b.Block, ...]:
    """The curve as pictures and as a table, or why there is none."""
    curve = report.curve
    if curve is None:
        return (b.Remark(report.absent["curve"]),) if "curve" in report.absent else ()
    chosen = curve.chosen
    mechanisms = list(dict.fromkeys(row.mechanism for row in curve.rows))
    bounded = any(row.upper_bound_nmi is not None for row in curve.rows)
    said = (
        f"The chosen budget, {chosen.epsilon:g}, keeps {w.percent_at_least(chosen.nmi)} of the information; smaller "
        "budgets leak less and keep less."
    )
    impossible = (
        " No channel at all that keeps the promise lies above the proven bound."
        if bounded
        else ""
    )
    described = (
        f"Pictures over the budget ({curve.axis}), with the chosen point marked: utility of "
        f"{' and '.join(mechanisms)}, largest gain and largest loss of belief. The numbers are in the table below."
    )
    chart = b.CurveChart(described, curve)
    rows: list[tuple[b.Cell, ...]] = []
    for row in curve.rows:
        bound = (
            ""
            if row.upper_bound_nmi is None
            else w.percent_at_most(row.upper_bound_nmi)
        )
        smallest = f"-{w.at_most(-row.min_log_lift)}" if row.min_log_lift < 0.0 else "0"
        kept = (
            row.mechanism,
            w.percent_at_least(row.nmi),
            *([bound] if bounded else []),
        )
        budget = f"{row.epsilon:g}{'*' if row == chosen else ''}"
        rows.append(b.cells(budget, *kept, w.at_most(row.max_log_lift), smallest))
    caption = f"Trade-off over {curve.axis} (* is the chosen budget)"
    header = tuple(name for name in CURVE_HEADER if bounded or name != CURVE_HEADER[3])
    table = b.Grid(caption, header, tuple(rows), left=(1,), folded=True)
    return b.Text(said + impossible), chart, table, *map(b.Remark, curve.remarks)


def _lifts(report: Report) -> tuple[b.Block, ...]:
    """Heat maps of the lifts of the table and of the release."""
    if report.before is None or report.after is None:
        return ()
    promise, (sensitive, useful) = report.promise, names_of(report.asked)
    before, after = (
        b.blocked(report.before, useful, sensitive),
        b.blocked(report.after, "outputs", sensitive),
    )
    ends = _ends(before, after)
    bounded = promise.low is not None or promise.high is not None
    marks = (
        f" {BELOW} and {ABOVE} mark lifts below and above what is allowed."
        if bounded
        else ""
    )
    powers = range(-round(math.log2(ends)), round(math.log2(ends)) + 1)
    scale = [
        b.Cell(f"{2**k}" if k >= 0 else f"1/{2**-k}", tint=k / powers[-1])
        for k in powers
    ]
    parts = ("Before", before, useful), ("After", after, "output")
    maps = tuple(
        _map(name, map_, down, sensitive, promise, ends) for name, map_, down in parts
    )
    return (
        b.Text(LIFT.format(sensitive=sensitive)),
        b.Text(
            f"How many times as likely each {sensitive} becomes when {useful} itself is seen (before), and when a "
            f"released value is seen (after). Pale is less likely, dark more likely; the colours end at "
            f"{1.0 / ends:g} and {ends:g}.{marks}"
        ),
        b.Maps(maps, tuple(scale)),
        *[b.Remark(f"{name}: {map_.note}") for name, map_, _ in parts if map_.note],
    )


def _ends(*tables: b.Blocked) -> float:
    """The lift of the last colour: the same for both maps, so that they can be compared."""
    values = [v for table in tables for line in table.values for v in line]
    return next(
        (end for end in ENDS if all(1.0 / end <= v <= end for v in values)), ENDS[-1]
    )


def _map(
    name: str, table: b.Blocked, down: str, across: str, promise: Promise, ends: float
) -> b.Grid:
    low, high = promise.low or 0.0, math.inf if promise.high is None else promise.high
    own = promise.allowed or ((low, high),) * len(table.columns)
    wide = -(-len(own) // len(table.columns))
    allowed: list[tuple[float, float]] = []
    for k in range(0, len(own), wide):
        lows, highs = zip(*own[k : k + wide], strict=True)
        allowed.append((max(lows) * (1.0 - ROUNDING), min(highs) * (1.0 + ROUNDING)))
    rows: list[tuple[b.Cell, ...]] = []
    outside = 0
    for short_name, line in zip(table.rows, table.values, strict=True):
        both = zip(line, allowed, strict=True)
        marks = [
            BELOW if v < least else ABOVE if v > most else ""
            for v, (least, most) in both
        ]
        outside += len(marks) - marks.count("")
        lifts = (_lift(v, mark, ends) for v, mark in zip(line, marks, strict=True))
        rows.append((b.Cell(short_name), *lifts))
    cells = w.count(len(table.rows) * len(table.columns), "cell")
    said = (
        f"; {outside:,} of {cells} outside what is allowed"
        if low > 0.0 or high < math.inf
        else ""
    )
    return b.Grid(
        f"{name}: lift of each {across} at each {down}{said}",
        (down, *table.columns),
        tuple(rows),
    )


def _lift(value: float, mark: str, ends: float) -> b.Cell:
    if value == 0.0 or value >= 100.0:
        shown = f"{value:.0f}"
    elif value < 0.005:
        shown = "<.01"
    else:
        shown = f"{value:.2f}" if value < 10.0 else f"{value:.1f}"
    level = math.log(value, ends) if value > 0.0 else -1.0
    return b.Cell(shown + mark, tint=max(-1.0, min(1.0, level)))


def _channel(report: Report) -> tuple[b.Block, ...]:
    """The matrix, or where it is too large what becomes of each symbol."""
    channel, (_, useful) = report.channel, names_of(report.asked)
    whole = (
        len(channel.outputs) <= MOST_MATRIX_OUTPUTS
        and len(channel.symbols) <= MOST_MATRIX_SYMBOLS
    )
    rows: list[tuple[b.Cell, ...]] = []
    for name, row in zip(channel.symbols, channel.rows, strict=True):
        shares = {entry.output: entry.share for entry in row}
        if whole:
            every = (shares.get(y) for y in range(len(channel.outputs)))
            shown = [
                b.Cell("") if share is None else b.Cell(_tenths(share), share)
                for share in every
            ]
        else:
            shown = b.cells(
                _listed([(channel.outputs[y], share) for y, share in shares.items()])
            )
        rows.append((b.Cell(b.short(name)), *shown))
    said = (
        f"Each {useful} is replaced by one of {w.count(len(channel.outputs), 'output')}, drawn with these "
        f"probabilities. They are integers over {channel.denominator}; percentages here are rounded."
    )
    if whole:
        caption = f"P(output | {useful}) in %; an empty cell is exactly zero"
        table = [b.Grid(caption, (useful, *map(b.short, channel.outputs)), tuple(rows))]
    else:
        no_room = (
            f"There is no room for {len(channel.symbols):,} x {len(channel.outputs):,} probabilities: the "
            f"{b.MOST_SHARES} most probable outputs of each {useful} are listed, the others put together. "
            f"{b.ALL_IN_JSON}"
        )
        header = (useful, "outputs, with their probabilities")
        caption = f"What is released for each {useful}"
        table = [b.Remark(no_room), *b.grid(caption, header, rows, useful, left=(1,))]
    return (
        b.Text(said),
        *table,
        *b.label_remarks([*channel.symbols, *channel.outputs]),
    )


def _tenths(share: float) -> str:
    """A positive share in percent with one decimal; what would round to 0 or 100 and is not says so."""
    text = f"{100 * share:.1f}"
    if text == "0.0":
        return "<0.1"
    if text == "100.0":
        return "100" if share == 1.0 else ">99.9"
    return text


def _listed(shares: Sequence[tuple[str, float]]) -> str:
    shares = sorted(shares, key=lambda named: -named[1])
    parts = [
        f"{b.short(name)} {_tenths(share)} %" for name, share in shares[: b.MOST_SHARES]
    ]
    rest = shares[b.MOST_SHARES :]
    if rest:
        parts.append(
            f"{w.count(len(rest), 'other')} together {_tenths(sum(share for _, share in rest))} %"
        )
    return "; ".join(parts)


def _codebook(report: Report) -> tuple[b.Block, ...]:
    """What each output says of X, and how much of S."""
    if report.codebook is None:
        return ()
    sensitive, useful = names_of(report.asked)
    clipped = any(
        len(meaning.posterior) > b.MOST_SHARES
        for meaning in report.codebook[: b.MOST_ROWS]
    )
    rest = [
        b.Remark(
            f"Of each output the {b.MOST_SHARES} most probable symbols are listed. {b.ALL_IN_JSON}"
        )
    ]
    header = (
        "output",
        "released",
        f"P({useful} | output)",
        "smallest lift",
        "largest lift",
    )
    rows: list[tuple[b.Cell, ...]] = []
    for one in report.codebook:
        lifts = w.at_least(one.lowest_lift), w.at_most(one.highest_lift)
        says = f"{_tenths(one.probability)} %", _listed(one.posterior)
        rows.append(b.cells(b.short(one.output), *says, *lifts))
    sample = (
        ""
        if report.population is None
        else " All are those of the table, which is a sample."
    )
    said = (
        f"What an output says of {useful}: the probability of each symbol given that output. The last columns are "
        f"its smallest and its largest lift over {sensitive}.{sample}"
    )
    table = b.grid("Posterior of each output", header, rows, "outputs", left=(2,))
    return (b.Text(said), *table, *(rest if clipped else []))
