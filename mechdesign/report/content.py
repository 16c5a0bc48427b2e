"""What a report says, as a record: picks, names and words; it computes nothing."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace

from mechdesign.auditing.demands import allowed_sides
from mechdesign.auditing.joint_leakage import sum_above
from mechdesign.auditing.leakages import belief_ranges
from mechdesign.auditing.measures import ChannelMeasures, guarantees
from mechdesign.auditing.verdict import Achieved, Audit, Used, Worst
from mechdesign.channel.channel import Channel
from mechdesign.channel.record import ChannelRecord
from mechdesign.mechanisms.result import Design
from mechdesign.notions import Notion, to_record
from mechdesign.release.binned import moved
from mechdesign.report import record as r
from mechdesign.report.blocks import short
from mechdesign.report.sentences import population_sentences
from mechdesign.report.wording import (
    about,
    achieved_text,
    at_most,
    count,
    picked,
    title,
)
from mechdesign.tables.confidence import scope_of
from mechdesign.tables.joint import Joint

NAMELESS = "the sensitive column"

COVERS = (
    "It covers the released column alone, against an observer who knows this table and the channel and nothing "
    "else about the record."
)
POPULATION = (
    "there the leakage is usually larger, and the more so the fewer records there are."
)
PUBLIC_SAMPLE = (
    "The promise is about the table that the channel was designed for, not about the population that its records "
    f"come from: {POPULATION} The table and its size are not shown here."
)
OTHER_PRIOR = (
    "Whoever starts from other probabilities of {sensitive}, with {useful} given {sensitive} as in the table, finds "
    "them multiplied or divided by at most exp({eps_ldp})."
)
AFTER = (
    "The channel was designed after {} of the same records, drawn independently: that all together keep the promise is "
    "checked by `mechdesign audit` with --after for each of them."
)
ZERO_CELLS = (
    "A zero cell says that this {sensitive} and this {useful} do not occur together in the table; it does not "
    "say that they cannot."
)
FREE_SIDE = "One side is free: a released value may make a {sensitive} {how}."
FREE = {
    "lower": "much less likely, or rule it out",
    "upper": "much more likely, or give it away",
}
WITHHELD = (
    "Not shown in this version, because it is computed from the table: what is kept of {useful}, the trade-off curve, "
    "the lifts, the codebook and the budgets that are really used."
)
VOIDS = (
    "Other columns left in the file, or other knowledge of {useful}.",
    "Releasing the same record twice, independently: each record gets one draw, and two can leak more than both "
    "budgets together.",
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
"""Of each of `auditing.measures.guarantees`: its words, its unit, and its name in `auditing.measures`.

The suprema over alpha are not there: they are the extreme lifts, so `guarantees` of the achieved budgets attains them.
"""

VERDICTS = {
    True: "Verified in exact arithmetic on the integers of the channel",
    False: "VIOLATED, decided in exact arithmetic on the integers of the channel",
    None: "Not checked here, for want of the table; whoever holds it can check it exactly.",
}


def public_report(
    channel: Channel, notion: Notion, *, satisfied: bool | None
) -> r.Report:
    """The report without the table: it holds what a public channel file holds, and the exact verdict if known."""
    # From here on nobody can look at the table, not even by mistake.
    origin = {
        key: channel.record.provenance.get(key) for key in ("mechanism", "method")
    }
    record = ChannelRecord(provenance=origin, objective=channel.record.objective)
    bare = replace(channel, joint=None, record=record)
    asked, confidence = _asked(bare, notion), channel.record.confidence
    sensitive, useful = names_of(asked)
    verdict = VERDICTS[satisfied] + (
        "" if satisfied is None else ", with the table that is not shown here."
    )
    about_whom = [PUBLIC_SAMPLE] if confidence is None else scope_of(confidence)
    covers = _covers(notion, sensitive, useful, _promised(notion).eps_ldp)
    return r.Report(
        audience="public",
        asked=asked,
        promise=_promise(notion, sensitive, verdict, satisfied, {}),
        holds_for=(*about_whom, *covers, WITHHELD.format(useful=useful)),
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
    """The report with the table, of what matters first; `verdict`, of the table alone, knows the worst cell."""
    channel, notion, population = design.channel, design.notion, design.population
    asked = _asked(channel, notion, joint, table)
    sensitive, useful = names_of(asked)
    found, after = verdict or design, channel.record.after
    said = [
        f"{VERDICTS[design.verified]}.",
        *achieved_texts(found.achieved, found.used),
    ]
    said += [] if verdict is None else [worst_text(verdict.worst)]
    shares = [float(share) for secret in joint.secrets for share in secret.p_s]
    ranges = zip(
        asked.sensitive_symbols, shares, belief_ranges(channel, joint), strict=True
    )
    own = allowed_sides(joint.sensitive, notion) if notion.own else []
    every = guarantees(found.achieved.eps_l, found.achieved.eps_u)
    known = {f"every_{name}": value for name, value in every.items()}
    known["max_log_lift_ratio"] = found.achieved.eps_ldp
    promise = replace(
        _promise(
            notion, sensitive, " ".join(said), design.verified, known | dict(attained)
        ),
        achieved=asdict(found.achieved),
        used=None if found.used is None else asdict(found.used),
        worst=None if verdict is None else asdict(verdict.worst),
        allowed=tuple((math.exp(-lower), math.exp(upper)) for lower, upper in own),
        beliefs=tuple(
            r.Belief(name, before, low, high) for name, before, (low, high) in ranges
        ),
    )
    if population is not None:
        sentences = tuple(
            population_sentences(population, design.confidence, joint.total)
        )
        population = r.Population(
            population.level, **asdict(population.achieved), sentences=sentences
        )
    return r.Report(
        audience="internal",
        asked=asked,
        promise=promise,
        population=population,
        holds_for=(
            *([_sample(asked)] if design.confidence is None else []),
            *(
                [ZERO_CELLS.format(sensitive=sensitive, useful=useful)]
                if asked.zero_cells
                else []
            ),
            *_covers(notion, sensitive, useful, found.achieved.eps_ldp),
            *([AFTER.format(count(len(after), "release"))] if after else []),
        ),
        voided_by=tuple(text.format(useful=useful) for text in VOIDS),
        kept=r.Kept(
            **picked(design, "nmi", "mutual_information", "entropy"),
            **picked(design.certificate, "upper_bound_nmi", "gap_nmi", "scope"),
            remarks=tuple(remarks),
        ),
        least=_least(channel),
        numbers=moved(channel),
        channel=_channel_table(channel),
    )


def full_report(
    summary: r.Report, channel: Channel, joint: Joint, measures: ChannelMeasures
) -> r.Report:
    """The summary with the lifts and the codebook."""
    names = summary.asked.sensitive_symbols
    before = [tuple(line) for secret in joint.secrets for line in secret.lift.tolist()]
    released = [
        (secret.p @ channel.matrix, secret.p_s[:, None]) for secret in joint.secrets
    ]
    after = [
        tuple(line)
        for p, p_s in released
        for line in (p / p_s / p.sum(axis=0)).tolist()
    ]
    meanings: list[r.Meaning] = []
    for out, posterior in zip(
        measures.outputs, channel.codebook().values(), strict=True
    ):
        largest_first = tuple(sorted(posterior.items(), key=lambda item: -item[1]))
        meanings.append(
            r.Meaning(
                out.output, out.probability, largest_first, out.min_lift, out.max_lift
            )
        )
    return replace(
        summary,
        before=r.Lifts(names, joint.useful.names, tuple(before)),
        after=r.Lifts(names, channel.outputs, tuple(after)),
        codebook=tuple(meanings),
    )


def names_of(asked: r.Asked) -> tuple[str, str]:
    """The sensitive and the useful columns, as one name each."""
    sensitive = title(asked.sensitive_columns, " or " if asked.each else " x ")
    return sensitive or NAMELESS, title(asked.useful_columns)


def protected(asked: r.Asked) -> str:
    """What the promise protects: ``race``, ``race x sex``, ``each of race and sex``."""
    return (
        f"each of {title(asked.sensitive_columns, ' and ')}"
        if asked.each
        else names_of(asked)[0]
    )


def _least(channel: Channel) -> r.LeastKept | None:
    """What is kept by a channel on the column's own symbols; None for any other."""
    objective = channel.record.objective
    if objective is None:
        return None
    shares = [entry / channel.denominator for entry in channel.own_entries]
    own = zip(channel.useful.names, shares, strict=True)
    figures = {
        key: known
        for key, known in channel.record.least.items()
        if isinstance(known, float | int)
    }
    kind = "number" if (bins := channel.useful.bins_of(0)) is None else bins.kind
    return r.LeastKept(
        asked=objective.model_dump(), by_symbol=tuple(own), kind=kind, **figures
    )


def origin_of(channel: Channel, key: str) -> str | None:
    """A text that the channel's record keeps of its origin."""
    value = channel.record.provenance.get(key)
    return value if isinstance(value, str) else None


def achieved_texts(achieved: Achieved, used: Used | None) -> list[str]:
    """The budgets that a channel keeps to, in words: those of its own notion if that is an average, and all lifts."""
    texts = [f"Achieved: {achieved_text(achieved)} (nats, rounded up)."]
    if used is not None:
        own = f"eps_l {at_most(used.eps_l)}, eps_u {at_most(used.eps_u)}"
        texts.insert(0, f"Of its own budgets it uses {own} (nats, rounded up).")
    return texts


def worst_text(worst: Worst) -> str:
    """The cell that uses most of its budget, in words."""
    against = (
        f", most of all against {short(worst.against)}"
        if worst.against is not None
        else ""
    )
    before = f" after {' and '.join(map(short, worst.before))}" if worst.before else ""
    return (
        f"Worst: the output {short(worst.output)}{before} makes {short(worst.sensitive)} {about(worst.lift)} times as "
        f"likely as before{against}."
    )


def _asked(
    channel: Channel,
    notion: Notion,
    joint: Joint | None = None,
    table: str | None = None,
) -> r.Asked:
    hidden, columns, symbols = channel.sensitive, (), ()
    size: dict[str, int | None] = {}
    if joint is not None:
        cells = [cell for row in joint.counts for cell in row]
        size = {
            "records": joint.records,
            "cells": len(cells),
            "zero_cells": cells.count(0),
        }
    if hidden is not None:
        columns, symbols = (
            hidden.columns,
            tuple(name for each in hidden.secret_names for name in each),
        )
    return r.Asked(
        sensitive_columns=columns,
        each=hidden is not None and hidden.each,
        useful_columns=channel.useful.columns,
        sensitive_symbols=symbols,
        useful_symbols=channel.useful.names,
        outputs=len(channel.outputs),
        notion=to_record(notion),
        notion_text=notion.text,
        mechanism=origin_of(channel, "mechanism"),
        method=origin_of(channel, "method"),
        table=table,
        **size,
    )


def _promised(notion: Notion) -> Achieved:
    """The bounds on single lifts, and on their ratios, that follow from the notion; inf where it gives none."""
    limits = notion.limits.loosest
    # A ratio bounds both sides, for the mean of the lifts is 1.
    lower, upper = min(limits.lower, limits.ratio), min(limits.upper, limits.ratio)
    return Achieved(
        lower, upper, min(limits.ratio, sum_above((limits.lower, limits.upper)))
    )


def _promise(
    notion: Notion,
    sensitive: str,
    verdict: str,
    satisfied: bool | None,
    known: Mapping[str, float],
) -> r.Promise:
    """With every measure that it bounds, or whose value is known of the channel, in the order of `MEASURES`."""
    promised, limits = _promised(notion), notion.limits.loosest
    follows = guarantees(promised.eps_l, promised.eps_u)
    follows["ldp"] = min(follows["ldp"], promised.eps_ldp)
    if math.isinf(promised.eps_l) and math.isinf(promised.eps_u):
        # What holds of every channel whatsoever is no consequence of a promise.
        follows = dict.fromkeys(follows, math.inf)
    bounds: list[r.Bound] = []
    for name, (words, unit, key) in MEASURES.items():
        bound = follows[name] if math.isfinite(follows[name]) else None
        if bound is not None or key in known:
            bounds.append(r.Bound(words, unit, bound, known.get(key)))
    low = math.exp(-limits.lower) if math.isfinite(limits.lower) else None
    high = math.exp(limits.upper) if math.isfinite(limits.upper) else None
    said, shown = notion.limits.condition(sensitive), tuple(bounds)
    return r.Promise(
        statement=said,
        verdict=verdict,
        satisfied=satisfied,
        low=low,
        high=high,
        bounds=shown,
    )


def _sample(asked: r.Asked) -> str:
    """What the promise is about: N, zero cells, and no population."""
    cells = f"{asked.zero_cells or 0:,} of {count(asked.cells or 0, 'cell')} zero"
    if asked.records is None:
        return f"The promise is about the table of probabilities or weights as given ({cells})."
    return (
        f"The promise is about the table given ({count(asked.records, 'record')}, {cells}), not about the population "
        f"that the records come from: {POPULATION}"
    )


def _covers(notion: Notion, sensitive: str, useful: str, eps_ldp: float) -> list[str]:
    """Against whom the promise holds, and what it leaves open."""
    free = notion.limits.free_sides
    texts = [
        COVERS,
        *(FREE_SIDE.format(sensitive=sensitive, how=FREE[side]) for side in free),
    ]
    if math.isfinite(eps_ldp):
        texts.append(
            OTHER_PRIOR.format(
                sensitive=sensitive, useful=useful, eps_ldp=at_most(eps_ldp)
            )
        )
    return texts


def _channel_table(channel: Channel) -> r.ChannelTable:
    d, rows = channel.denominator, channel.integers.entries()
    entries = tuple(
        tuple(r.Entry(y, entry, entry / d) for y, entry in row) for row in rows
    )
    return r.ChannelTable(channel.useful.names, channel.outputs, d, entries)
