"""Texts of commands: a design, a verdict, a channel, its measures.

The text of a design is made of the same record and blocks as its report (`content`, `document`),
shortened for a prompt. The others are macros of ``terminal.txt.jinja``, which get their facts here
(`sentences.text_of`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Context, Decimal

from mechdesign.auditing.measures import ChannelMeasures, measure
from mechdesign.auditing.population import set_behind
from mechdesign.auditing.population_promise import PopulationPromise, population_promise
from mechdesign.auditing.stated import has_table, keeps_promise
from mechdesign.auditing.verdict import Audit, achieved_by
from mechdesign.channel.channel import Channel
from mechdesign.core.errors import InputError
from mechdesign.core.wording import STATED
from mechdesign.mechanisms.result import OF_THESE_BOXES, Design
from mechdesign.report import blocks, plain_values, wording
from mechdesign.report.boxes import box_texts, told_lines
from mechdesign.report.channel_section import amount, measure_blocks
from mechdesign.report.content import summary_report
from mechdesign.report.document import summary_sections
from mechdesign.report.first_screen import change_of, kept_sentence, remarks_of
from mechdesign.report.law_section import channel_law_lines
from mechdesign.report.promises import (
    achieved_texts,
    counted_lines,
    effect_text,
    guess_sentence,
    promised_bounds,
    protected_name,
    relative_sentences,
    subject_of,
    units_of,
    worst_text,
)
from mechdesign.report.record import RECORD_UNITS, Report, lead_of, names_of
from mechdesign.report.sentences import average_texts, cell_sentences, outwards, text_of

DIGITS_OF_QUOTIENTS = Context(prec=62)
"""Every quotient by a power of two up to 2^62 has at most 62 digits; other denominators
round there.
"""

MOST_LINES = 16
"""Beliefs, or symbols that stay, shown at a prompt; reports have all."""

OF_OUTPUTS = (
    "probability",
    "max_lift",
    "min_lift",
    "l1_lift",
    "chi2_lift",
    "l1_lift_inverse",
    "chi2_lift_inverse",
)
"""The measures of each output that need no order."""


def design_text(
    design: Design, *, all_measures: bool = False, messages: Sequence[str] = ()
) -> str:
    """The text of `design`: what matters first, derived measures last; without a final newline.

    The command line says the messages of a design by themselves; others give them here.
    """
    if not has_table(design.channel):
        raise InputError(
            "the channel is public: the table that this takes is not in it"
        )
    # Boxes carry counts in the place of a table.
    joint = design.channel.joint
    # Measuring takes time on a large table, and only --all-measures shows it.
    attained = {}
    if all_measures and joint is not None:
        attained = measure(design.channel, joint).leakage
    report = summary_report(
        design, joint, attained=attained, remarks=(*remarks_of(design), *messages)
    )
    lines = [lead_of(report.asked)]
    for section in summary_sections(_shortened(report)):
        lines += ["", section.title]
        for block in section.blocks:
            lines += _lines(block)
        if section.anchor == "kept":
            lines.append(
                wording.paragraph(
                    f"Mechanism: {design.mechanism}, by {design.method} "
                    f"({design.seconds:.2f} s)."
                )
            )
    lines += ["", "Other measures of leakage", *_measures(report, all_measures)]
    guesses = guess_sentence(design.channel, names_of(report.asked)[0])
    if guesses is not None:
        lines.append(wording.paragraph(guesses))
    return "\n".join(lines)


def audit_text(
    audit: Audit,
    plain: Sequence[str] = (),
    details: Sequence[str] = (),
    *,
    secret: str = "the secret",
    subject: str = "a released value",
    units: tuple[str, str] = RECORD_UNITS,
) -> str:
    """The verdict and `plain` sentences; then, for specialists, the achieved budgets, the worst
    cell and `details`. Without a final newline.

    `secret` is what is protected, `subject` what a release of a record is called, and `units` are
    records or people.
    """
    effect = effect_text(audit.notion, audit.achieved, secret, subject, audit.level)
    verdict = "The promise holds" if audit.satisfied else "The promise does NOT hold"
    if audit.notion is None:
        verdict = "Nothing is promised"
    return text_of(
        "audit",
        audit,
        (
            f"{verdict}: {effect}. Decided in exact arithmetic.",
            *counted_lines(audit, secret, subject, units),
            *plain,
        ),
        achieved_texts(audit.achieved, audit.used, audit.on_table),
        worst_text(audit.worst),
        details,
    )


BEGINNINGS = {
    True: "Promised",
    None: "Stated, not checked",
    False: "Stated, and false",
}
"""How the promise of a channel file begins, by the verdict of its own table, None without one."""


def channel_text(channel: Channel) -> str:
    """Both directions without the zeros: the outputs of each symbol, and the meaning of
    each output.
    """
    published: dict[str, dict[str, float]] = {}
    rows = zip(
        channel.useful.names,
        channel.integers.entries(),
        channel.row_totals,
        strict=True,
    )
    for name, row, total in rows:
        shares: dict[str, float] = {}
        for output, weight in row:
            shares[channel.outputs[output]] = weight / total
        published[name] = shares
    promised: list[str] = []
    notion = channel.promise
    if notion is not None:
        secret = "the secret"
        if has_table(channel) and channel.sensitive is not None:
            secret = protected_name(channel.sensitive, channel.people)
        effect = effect_text(
            notion,
            promised_bounds(notion),
            secret,
            subject_of(channel),
            channel.level_of_claims,
        )
        kept = keeps_promise(channel)
        promised = [
            f"{BEGINNINGS[kept]}: {effect}.",
            promise_sentence(notion.text, kept),
            *relative_sentences(channel),
        ]
    population = _population_of(channel)
    cells = cell_sentences(channel.record.rules)
    # These say nothing of a channel without boxes.
    cells += [*_kept_lines(channel), *told_lines(channel, scope=STATED)]
    cells += box_texts(channel)
    codebook = _codebook(channel)
    published = _in_reading_order(published)
    if codebook is not None:
        codebook = _in_reading_order(codebook)
    units = units_of(channel)[1]
    text = text_of(
        "channel", channel, promised, published, population, cells, codebook, units
    )
    if not channel.record.averages or channel.joint is None:
        return text
    achieved = achieved_by(channel, channel.joint)
    secret = ",".join(channel.joint.sensitive.columns)
    averages = average_texts(channel.record.averages, achieved, secret, STATED)
    return "\n".join([text, "", *averages])


def _in_reading_order(
    rows: Mapping[str, dict[str, float]],
) -> dict[str, dict[str, float]]:
    """Rows of a matrix in the order in which people read their names."""
    return dict(wording.in_reading_order(rows.items(), lambda row: row[0]))


def _kept_lines(channel: Channel) -> list[str]:
    """What a channel of boxes keeps and what an analyst reads; nothing of a public one, nor of
    others.
    """
    utility = channel.box_utility
    if utility is None:
        return []
    kept = kept_sentence(
        utility.nmi,
        utility.upper_bound_nmi,
        beyond_given=bool(channel.given),
        rivals=OF_THESE_BOXES.name,
        scope=STATED,
    )
    return [kept, *channel_law_lines(channel, None)]


def _codebook(channel: Channel) -> dict[str, dict[str, float]] | None:
    """What each output says, of boxes stratum by stratum; None without counts."""
    if not has_table(channel):
        return None
    if channel.joint is not None:
        return channel.codebook()
    codebook: dict[str, dict[str, float]] = {}
    for part in channel.parts:
        stratum = channel.boxed.coder.stratum_text(part.stratum)
        if part.channel is not None:
            for output, shares in part.channel.codebook().items():
                codebook[f"{stratum}{output}"] = shares
    return codebook


def promise_sentence(promise: str, kept: bool | None) -> str:
    """The promise of a channel file, with what its own table says of it.

    `kept` is the exact verdict, None where the file has no table.
    """
    if kept is None:
        return f"The file states the promise {promise}; a public file has no table to check it on."
    if kept:
        return f"It promises {promise} (verified on its own table)."
    return (
        f"The file states the promise {promise}, but its own table disproves it: it was edited or "
        "damaged (`audit` shows where)."
    )


def matrix_csv(channel: Channel) -> str:
    """The matrix W(y|x) as CSV: useful symbols down, outputs along, exact decimals
    where they end.
    """
    rows = [[",".join(channel.useful.columns), *channel.outputs]]
    entries = zip(channel.useful.names, channel.rows, channel.row_totals, strict=True)
    for name, weights, total in entries:
        row = [name]
        for weight in weights:
            share = DIGITS_OF_QUOTIENTS.divide(Decimal(weight), Decimal(total))
            row.append(f"{share.normalize(DIGITS_OF_QUOTIENTS):f}")
        rows.append(row)
    return plain_values.csv_text(rows).removesuffix("\n")


def measures_text(measures: ChannelMeasures, per_output: bool = False) -> str:
    """What is kept, what the outputs say about S, and what theorems promise;
    `per_output` adds a table.
    """
    # Whoever wants all outputs of a large channel takes the JSON.
    table: list[list[str]] = []
    shown = measures.outputs[: blocks.MOST_ROWS]
    if per_output:
        table.append(["output", *OF_OUTPUTS])
        for output in shown:
            row = [wording.label(output.output)]
            for name in OF_OUTPUTS:
                row.append(outwards(getattr(output, name), name))
            table.append(row)
    text = text_of("measures", measures, table)
    if per_output and len(shown) < len(measures.outputs):
        text += (
            f"\nThe first {len(shown):,} of {len(measures.outputs):,} outputs are shown; all are "
            "in --json."
        )
    return text


def _shortened(report: Report) -> Report:
    """The report with at most `MOST_LINES` beliefs and symbols: those that move most,
    and those that stay least.
    """
    least = report.least
    if least is not None and len(least.by_symbol) > MOST_LINES:
        by_share = sorted(least.by_symbol, key=lambda stay: stay[1])
        report = replace(
            report, least=replace(least, by_symbol=tuple(by_share[:MOST_LINES]))
        )
    beliefs = report.promise.beliefs
    if len(beliefs) <= MOST_LINES:
        return report
    by_change = sorted(beliefs, key=change_of, reverse=True)
    most_changed = set(by_change[:MOST_LINES])
    # In the order of the table, which readers know.
    shown = tuple(belief for belief in beliefs if belief in most_changed)
    remark = (
        f"Shown are the {MOST_LINES} of {len(beliefs):,} values whose probability can change most; "
        "--report has all."
    )
    promise = replace(
        report.promise, beliefs=shown, verdict=f"{report.promise.verdict} {remark}"
    )
    return replace(report, promise=promise)


def _lines(block: blocks.Block) -> list[str]:
    """A block of the summary as lines of text."""
    match block:
        case blocks.Text(text) | blocks.Remark(text):
            return [wording.paragraph(text)]
        case blocks.Bullets(items):
            return [wording.item(text) for text in items]
        case blocks.Grid():
            rows: list[Sequence[str]] = [block.header]
            for row in block.rows:
                rows.append([cell.text for cell in row])
            return wording.aligned(rows, left=(*range(block.heads), *block.left))
        case _:
            raise TypeError(f"a summary holds no {type(block).__name__}")


RELATIVE_MEASURES = (
    "The promise is relative to the given columns, and bounds no measure of the whole row: its "
    "given columns are part of what it reveals. `mechdesign measure` gives what it reveals in all."
)


def _measures(report: Report, all_measures: bool) -> list[str]:
    """The derived measures: bounds that follow from the promise, then what this channel attains."""
    if not report.promise.bounds:
        return [wording.paragraph(RELATIVE_MEASURES)]
    if all_measures:
        lines: list[str] = []
        for block in measure_blocks(report.promise):
            lines += _lines(block)
        return lines
    bounds: list[tuple[str, str]] = []
    for bound in report.promise.bounds:
        # Those in nats, which people compare with other tools; the others have no unit.
        if bound.promised is not None and bound.unit:
            name = bound.measure.split(" (")[0]
            bounds.append((name, amount(bound.promised, bound.unit)))
    sensitive = names_of(report.asked)[0]
    return [text_of("follows", bounds, report.promise.achieved, sensitive)]


def _population_of(channel: Channel) -> PopulationPromise | None:
    """What holds for the population; None for a channel without the counts of its table."""
    joint = channel.joint
    if joint is None or not joint.is_sample:
        return None
    # Without a notion there is nothing that could hold for the population.
    if channel.promise is None:
        return None
    return population_promise(channel, joint, chosen=set_behind(channel, joint))
