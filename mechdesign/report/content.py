"""The content of a report as a record: chosen figures, names and words; nothing is
computed here.

There are three reports. `public_report` is for everybody: it drops the table first, and has the
promise and the channel alone. `summary_report` is for those who may see the table: it adds what the
channel uses of its budgets, what it keeps, and the beliefs before and after. `full_report` adds the
lifts and the codebook to a summary. `document` lays out all three.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from mechdesign.auditing.composition import sum_above
from mechdesign.auditing.demands import allowed_sides
from mechdesign.auditing.implied_bounds import guarantees
from mechdesign.auditing.leakages import belief_ranges
from mechdesign.auditing.measures import ChannelMeasures
from mechdesign.auditing.verdict import Achieved, Audit, Used, Worst
from mechdesign.channel.channel import Channel
from mechdesign.channel.record import NO_PUBLIC_AVERAGE, ChannelRecord
from mechdesign.core.errors import InputError
from mechdesign.core.wording import about, at_most, factor_at_most
from mechdesign.mechanisms.result import Design
from mechdesign.notions import Notion, to_record
from mechdesign.release.moved_numbers import moved
from mechdesign.report import record as r
from mechdesign.report.average_section import average_texts
from mechdesign.report.blocks import short
from mechdesign.report.plain_values import picked
from mechdesign.report.purpose_section import purpose_texts
from mechdesign.report.sentences import population_sentences
from mechdesign.report.wording import achieved_text, count, title
from mechdesign.tables.confidence import scope_of
from mechdesign.tables.joint import Joint

NAMELESS = "the sensitive column"

COVERS = (
    "It covers the released column alone, against an observer who knows this table and the "
    "channel and nothing else about the record."
)
POPULATION = "there the leakage is usually larger, and it grows as the number of records shrinks."
PUBLIC_SAMPLE = (
    "The promise is about the table that the channel was designed for, not about the population "
    f"behind its records: {POPULATION} The table and its size are not shown here."
)
OTHER_PRIOR = (
    "For an observer with a different prior over {sensitive}, and {useful} given {sensitive} "
    "as in the table, the factor is at most {factor}."
)
AFTER = (
    "The channel was designed after {} of the same records, drawn independently. `mechdesign "
    "audit` with --after for each of them checks that all together keep the promise."
)
ZERO_CELLS = (
    "A zero cell means that this {sensitive} and this {useful} do not occur together in the "
    "table, not that they cannot."
)
FREE_SIDE = "One side is free: a release may make a value of {sensitive} {effect}."
FREE = {
    "lower": "much less likely, or rule it out",
    "upper": "much more likely, or give it away",
}
WITHHELD = (
    "Not shown in this version, because it is computed from the table: the information kept of "
    "{useful}, the trade-off curve, the lifts, the codebook and the budgets actually used."
)
VOIDS = (
    "Other columns stay in the file, or the observer has other knowledge of {useful}.",
    "The same record is released twice, independently. Each record gets one draw: two can leak "
    "more than both budgets together.",
)

MEASURES = {
    "ldp": ("local differential privacy", "nats", "max_log_lift_ratio"),
    "information": (
        "mutual information (Shannon; Sibson, Arimoto of every order)",
        "nats",
        "mutual_information",
    ),
    "total_variation": ("total variation", "", "total_variation"),
    "l1_lift": ("l1-lift", "", "l1_lift"),
    "chi2_lift": ("chi2-lift, and chi2-information", "", "chi2_lift"),
    "alpha_lift": ("alpha-lift, every alpha > 1", "", "every_alpha_lift"),
    "l1_lift_inverse": ("l1-lift-inverse", "", "l1_lift_inverse"),
    "chi2_lift_inverse": ("chi2-lift-inverse", "", "chi2_lift_inverse"),
    "alpha_lift_inverse": (
        "alpha-lift-inverse, every alpha > 1",
        "",
        "every_alpha_lift_inverse",
    ),
}
"""For each entry of `auditing.implied_bounds.guarantees`: its words, its unit, and its name in
`auditing.measures`.

`auditing.measures` has no suprema over alpha. They are the extreme lifts, so `guarantees` of the
achieved budgets attains them.
"""

VERDICTS = {
    True: "Verified in exact arithmetic on the integers of the channel",
    False: "VIOLATED, decided in exact arithmetic on the integers of the channel",
    None: "Not checked here, because the table is missing; its holder can check it exactly.",
}


def public_report(
    channel: Channel, notion: Notion, *, satisfied: bool | None
) -> r.Report:
    """The report without the table: the content of a public channel file, and the exact
    verdict if known.
    """
    if channel.record.averages:
        raise InputError(NO_PUBLIC_AVERAGE)
    # From here on the table is out of reach, so nothing below can disclose it by mistake.
    origin: dict[str, Any] = {}
    for key in ("mechanism", "method"):
        origin[key] = channel.record.provenance.get(key)
    record = ChannelRecord(provenance=origin, objective=channel.record.objective)
    bare = replace(channel, joint=None, record=record)
    request = _request(bare, notion)
    sensitive, useful = names_of(request)
    verdict = VERDICTS[satisfied]
    if satisfied is not None:
        verdict += ", with the table that is not shown here."
    # The level of confidence is public, so it is taken from the channel as it was. The budgets in
    # use are not: the factor for other priors follows from the promise alone.
    confidence = channel.record.confidence
    scope = [PUBLIC_SAMPLE] if confidence is None else scope_of(confidence)
    covers = _coverage_texts(notion, sensitive, useful, promised_bounds(notion).eps_ldp)
    return r.Report(
        audience="public",
        asked=request,
        promise=_promise(notion, sensitive, verdict, satisfied, {}),
        holds_for=(*scope, *covers, WITHHELD.format(useful=useful)),
        voided_by=tuple(text.format(useful=useful) for text in VOIDS),
        least=_least(bare),
        channel=_channel_table(bare),
    )


def summary_report(
    design: Design,
    joint: Joint,
    *,
    verdict: Audit | None = None,
    attained: Mapping[str, float],
    remarks: Sequence[str],
    table: str | None = None,
) -> r.Report:
    """The report with the table, most important facts first.

    `verdict` is the audit against the table alone, which knows the worst cell.
    """
    channel = design.channel
    notion = design.notion
    request = _request(channel, notion, joint, table)
    useful = names_of(request)[1]
    achieved = (verdict or design).achieved
    return r.Report(
        audience="internal",
        asked=request,
        promise=_promise_on_table(design, joint, request, verdict, attained),
        population=_population(design, joint),
        holds_for=_scope_texts(design, request, achieved),
        voided_by=tuple(text.format(useful=useful) for text in VOIDS),
        kept=r.Kept(
            **picked(design, "nmi", "mutual_information", "entropy"),
            **picked(design.certificate, "upper_bound_nmi", "gap_nmi", "scope"),
            remarks=tuple(remarks),
        ),
        least=_least(channel),
        purpose=(
            *average_texts(
                channel.record.averages, design.achieved, names_of(request)[0]
            ),
            *purpose_texts(
                channel.record.utility or {}, channel.record.provenance, useful
            ),
        ),
        numbers=moved(channel),
        channel=_channel_table(channel),
    )


def full_report(
    summary: r.Report, channel: Channel, joint: Joint, measures: ChannelMeasures
) -> r.Report:
    """The summary with the lifts and the codebook."""
    names = summary.asked.sensitive_symbols
    before: list[tuple[float, ...]] = []
    after: list[tuple[float, ...]] = []
    for secret in joint.secrets:
        before += [tuple(line) for line in secret.lift.tolist()]
        # P(s, y) = sum_x P(s, x) W(y|x), and the lift of s at y is P(s, y) / (P(s) P(y)).
        released = secret.p @ channel.matrix
        lifts = released / secret.p_s[:, None] / released.sum(axis=0)
        after += [tuple(line) for line in lifts.tolist()]
    meanings: list[r.Meaning] = []
    posteriors = channel.codebook().values()
    for output, posterior in zip(measures.outputs, posteriors, strict=True):
        largest_first = sorted(posterior.items(), key=lambda share: -share[1])
        meanings.append(
            r.Meaning(
                output=output.output,
                probability=output.probability,
                posterior=tuple(largest_first),
                lowest_lift=output.min_lift,
                highest_lift=output.max_lift,
            )
        )
    return replace(
        summary,
        before=r.Lifts(names, joint.useful.names, tuple(before)),
        after=r.Lifts(names, channel.outputs, tuple(after)),
        codebook=tuple(meanings),
    )


def names_of(request: r.Request) -> tuple[str, str]:
    """The sensitive and the useful columns, as one name each."""
    between = " or " if request.each else " x "
    sensitive = title(request.sensitive_columns, between)
    return sensitive or NAMELESS, title(request.useful_columns)


def protected(request: r.Request) -> str:
    """The protected columns: ``race``, ``race x sex``, ``each of race and sex``."""
    if request.each:
        return f"each of {title(request.sensitive_columns, ' and ')}"
    return names_of(request)[0]


def origin_of(channel: Channel, key: str) -> str | None:
    """A text about its origin that the channel's record keeps."""
    value = channel.record.provenance.get(key)
    return value if isinstance(value, str) else None


def achieved_texts(achieved: Achieved, used: Used | None) -> list[str]:
    """The budgets that a channel keeps: those of its own notion if that is an average,
    and all lifts.
    """
    texts: list[str] = []
    if used is not None:
        texts.append(
            f"Of its own budgets it uses eps_l {at_most(used.eps_l)}, eps_u {at_most(used.eps_u)} "
            "(nats, rounded up)."
        )
    texts.append(f"Achieved: {achieved_text(achieved)} (nats, rounded up).")
    return texts


def worst_text(worst: Worst) -> str:
    """The cell that uses most of its budget, in words."""
    before = ""
    if worst.before:
        before = f" after {' and '.join(map(short, worst.before))}"
    against = ""
    if worst.against is not None:
        against = f", most of all against {short(worst.against)}"
    return (
        f"Worst: the output {short(worst.output)}{before} makes {short(worst.sensitive)} "
        f"{about(worst.lift)} times as likely as before{against}."
    )


def promised_bounds(notion: Notion) -> Achieved:
    """The bounds on single lifts, and on their ratios, that follow from the notion; inf
    where it gives none.
    """
    limits = notion.limits.loosest
    # A bound on the ratio bounds both sides, because the mean of the lifts is 1: some lift is at
    # least 1 and some at most 1, so none is more than the ratio away from 1.
    lower = min(limits.lower, limits.ratio)
    upper = min(limits.upper, limits.ratio)
    ratio = min(limits.ratio, sum_above((limits.lower, limits.upper)))
    return Achieved(lower, upper, ratio)


def _request(
    channel: Channel,
    notion: Notion,
    joint: Joint | None = None,
    table: str | None = None,
) -> r.Request:
    """The request: columns, symbols, notion and mechanism, and the size of the table if known."""
    size: dict[str, int | None] = {}
    if joint is not None:
        size["records"] = joint.records
        size["cells"] = joint.p.size
        size["zero_cells"] = sum(row.count(0) for row in joint.counts)
    sensitive = channel.sensitive
    columns: tuple[str, ...] = ()
    symbols: list[str] = []
    if sensitive is not None:
        columns = sensitive.columns
        for names in sensitive.secret_names:
            symbols.extend(names)
    return r.Request(
        sensitive_columns=columns,
        each=sensitive is not None and sensitive.protects_columns,
        useful_columns=channel.useful.columns,
        sensitive_symbols=tuple(symbols),
        useful_symbols=channel.useful.names,
        outputs=len(channel.outputs),
        notion=to_record(notion),
        notion_text=notion.text,
        mechanism=origin_of(channel, "mechanism"),
        method=origin_of(channel, "method"),
        table=table,
        **size,
    )


def _promise_on_table(
    design: Design,
    joint: Joint,
    request: r.Request,
    verdict: Audit | None,
    attained: Mapping[str, float],
) -> r.Promise:
    """The promise with the budgets that the channel uses, and the beliefs before and after."""
    notion = design.notion
    sensitive = names_of(request)[0]
    # The audit on the table knows the worst cell; the design has the same budgets without it.
    judged = verdict or design
    texts = [
        f"{VERDICTS[design.verified]}.",
        *achieved_texts(judged.achieved, judged.used),
    ]
    if verdict is not None:
        texts.append(worst_text(verdict.worst))
    # A channel attains its own extreme lifts, so every bound that follows from them alone
    # is attained.
    bounds = guarantees(judged.achieved.eps_l, judged.achieved.eps_u)
    figures = {f"every_{name}": value for name, value in bounds.items()}
    figures["max_log_lift_ratio"] = judged.achieved.eps_ldp
    figures.update(attained)
    promise = _promise(notion, sensitive, " ".join(texts), design.verified, figures)
    allowed: list[tuple[float, float]] = []
    if notion.symbol_budgets:
        for lower, upper in allowed_sides(joint.sensitive, notion):
            allowed.append((math.exp(-lower), math.exp(upper)))
    return replace(
        promise,
        achieved=asdict(judged.achieved),
        used=None if judged.used is None else asdict(judged.used),
        worst=None if verdict is None else asdict(verdict.worst),
        allowed=tuple(allowed),
        beliefs=_beliefs(design.channel, joint, request),
    )


def _promise(
    notion: Notion,
    sensitive: str,
    verdict: str,
    satisfied: bool | None,
    attained: Mapping[str, float],
) -> r.Promise:
    """The promise with every measure that it bounds, or that is attained, in the order
    of `MEASURES`.
    """
    promised = promised_bounds(notion)
    follows = guarantees(promised.eps_l, promised.eps_u)
    follows["ldp"] = min(follows["ldp"], promised.eps_ldp)
    if math.isinf(promised.eps_l) and math.isinf(promised.eps_u):
        # What holds of every channel whatsoever is no consequence of a promise.
        follows = dict.fromkeys(follows, math.inf)
    bounds: list[r.Bound] = []
    for name, (words, unit, key) in MEASURES.items():
        bound: float | None = None
        if math.isfinite(follows[name]):
            bound = follows[name]
        if bound is not None or key in attained:
            bounds.append(r.Bound(words, unit, bound, attained.get(key)))
    limits = notion.limits.loosest
    # A side without a budget is free: there is no factor to name.
    low: float | None = None
    high: float | None = None
    if math.isfinite(limits.lower):
        low = math.exp(-limits.lower)
    if math.isfinite(limits.upper):
        high = math.exp(limits.upper)
    return r.Promise(
        statement=notion.limits.condition(sensitive),
        verdict=verdict,
        satisfied=satisfied,
        low=low,
        high=high,
        bounds=tuple(bounds),
    )


def _beliefs(
    channel: Channel, joint: Joint, request: r.Request
) -> tuple[r.Belief, ...]:
    """The probability of each sensitive symbol before, and its extremes after a released value."""
    # Several protected columns have a prior each: they stand one after the other, like the symbols.
    shares: list[float] = []
    for secret in joint.secrets:
        shares += secret.p_s.tolist()
    ranges = belief_ranges(channel, joint)
    beliefs: list[r.Belief] = []
    rows = zip(request.sensitive_symbols, shares, ranges, strict=True)
    for name, before, (lowest, highest) in rows:
        beliefs.append(r.Belief(name, before, lowest, highest))
    return tuple(beliefs)


def _population(design: Design, joint: Joint) -> r.Population | None:
    """What holds for the population that the records are a sample of, if it was computed."""
    promise = design.population
    if promise is None:
        return None
    sentences = population_sentences(promise, design.confidence, joint.total)
    return r.Population(
        promise.level, **asdict(promise.achieved), sentences=tuple(sentences)
    )


def _scope_texts(
    design: Design, request: r.Request, achieved: Achieved
) -> tuple[str, ...]:
    """Sentences on the sample, the observer, and what the promise leaves open."""
    sensitive, useful = names_of(request)
    texts: list[str] = []
    if design.confidence is None:
        texts.append(_sample_text(request))
    if request.zero_cells:
        texts.append(ZERO_CELLS.format(sensitive=sensitive, useful=useful))
    texts += _coverage_texts(design.notion, sensitive, useful, achieved.eps_ldp)
    earlier = design.channel.record.after
    if earlier:
        texts.append(AFTER.format(count(len(earlier), "release")))
    return tuple(texts)


def _sample_text(request: r.Request) -> str:
    """The table that the promise is about: its records and zero cells."""
    cells = f"{request.zero_cells or 0:,} of {count(request.cells or 0, 'cell')} zero"
    if request.records is None:
        return f"The promise is about the table of probabilities or weights as given ({cells})."
    return (
        f"The promise is about the table given ({count(request.records, 'record')}, {cells}), "
        f"not about the population behind the records: {POPULATION}"
    )


def _coverage_texts(
    notion: Notion, sensitive: str, useful: str, eps_ldp: float
) -> list[str]:
    """Against whom the promise holds, and what it leaves open."""
    texts = [COVERS]
    for side in notion.limits.free_sides:
        texts.append(FREE_SIDE.format(sensitive=sensitive, effect=FREE[side]))
    # For a prior q the lift of s is P(y|s) / sum_s' q(s') P(y|s'). The denominator is a mean of
    # numbers P(y|s') within a factor exp(eps_ldp) of the numerator, whatever q is.
    if math.isfinite(eps_ldp):
        factor = factor_at_most(eps_ldp)
        texts.append(
            OTHER_PRIOR.format(sensitive=sensitive, useful=useful, factor=factor)
        )
    return texts


def _least(channel: Channel) -> r.LeastKept | None:
    """Figures of a channel on the column's own symbols; None for any other."""
    objective = channel.record.objective
    if objective is None:
        return None
    # W(x|x), the probability that symbol x is released as itself.
    shares = [entry / channel.denominator for entry in channel.own_entries]
    # The file may come from anybody: what is no number is left out, as if it were not there.
    figures: dict[str, float] = {}
    for name, value in channel.record.least.items():
        if isinstance(value, float | int):
            figures[name] = value
    # Distances of dates and times are in seconds, which the section shows in larger units.
    kind = "number"
    bins = channel.useful.bins_of(0)
    if bins is not None:
        kind = bins.kind
    return r.LeastKept(
        asked=objective.model_dump(),
        by_symbol=tuple(zip(channel.useful.names, shares, strict=True)),
        kind=kind,
        **figures,
    )


def _channel_table(channel: Channel) -> r.ChannelTable:
    """The positive integers of the channel, row by row, with their shares."""
    denominator = channel.denominator
    rows: list[tuple[r.Entry, ...]] = []
    for row in channel.integers.entries():
        entries: list[r.Entry] = []
        for output, weight in row:
            entries.append(r.Entry(output, weight, weight / denominator))
        rows.append(tuple(entries))
    return r.ChannelTable(
        channel.useful.names, channel.outputs, denominator, tuple(rows)
    )
