"""The promise of a report: the notion, the exact verdict, the measures it bounds, where it ends.

`promise_of` is the promise alone, as everybody may see it. A notion bounds single lifts
(`promised_bounds`), and from these follow bounds on the other measures, such as the total variation
(`auditing.leakages`). `promise_on_table` adds what only the holder of the table can compute:
the budgets that the channel uses of its promise, its worst cell, the values that it attains of
every measure, and the beliefs before and after.

*Where a promise ends.* A promise holds for one table, against an observer who knows that table.
`scope_texts` says so for a report with the table, `public_scope_texts` for one without it, and
`void_texts` says what makes the promise void. A promise for the population alone, as that of boxes,
has other limits (`population_items`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, NamedTuple

from mechdesign.auditing.leakages import belief_ranges, guarantees
from mechdesign.auditing.lifts import allowed_sides
from mechdesign.auditing.measures import best_guess
from mechdesign.auditing.population_promise import PopulationPromise
from mechdesign.auditing.strata import given_away
from mechdesign.auditing.verdict import Achieved, Audit, Used, Worst
from mechdesign.channel.channel import Channel
from mechdesign.channel.record import RELATIVE
from mechdesign.core.balls import quotient_above, sum_above
from mechdesign.core.limits import MeanLimits
from mechdesign.core.wording import (
    about,
    at_most,
    factor_at_most,
    in_population,
    listed,
    percent,
    percent_at_least,
    percent_at_most,
    percent_of,
)
from mechdesign.mechanisms.result import Design
from mechdesign.notions import Notion
from mechdesign.report.record import (
    PEOPLE_UNITS,
    RECORD_UNITS,
    Belief,
    Bound,
    Promise,
    Request,
    names_of,
    optional_record,
    sequence_of,
    unit_of,
)
from mechdesign.report.wording import (
    achieved_text,
    count,
    item_lines,
    range_text,
    short,
    short_factor,
    times_text,
    title,
)
from mechdesign.tables.confidence import ConfidenceSet, scope_of
from mechdesign.tables.joint import Joint
from mechdesign.tables.people import RECORDS, SEQUENCE, People
from mechdesign.tables.uncovered_values import uncovered_sentence
from mechdesign.tables.variable import Variable


class MeasureNames(NamedTuple):
    """A measure of leakage in words, its unit, and its name in `auditing.measures`."""

    words: str
    unit: str
    name: str


MEASURES = {
    "ldp": MeasureNames("local differential privacy", "nats", "max_log_lift_ratio"),
    "information": MeasureNames(
        "mutual information (Shannon; Sibson, Arimoto of every order)",
        "nats",
        "mutual_information",
    ),
    "total_variation": MeasureNames("total variation", "", "total_variation"),
    "l1_lift": MeasureNames("l1-lift", "", "l1_lift"),
    "chi2_lift": MeasureNames("chi2-lift, and chi2-information", "", "chi2_lift"),
    "alpha_lift": MeasureNames("alpha-lift, every alpha > 1", "", "every_alpha_lift"),
    "l1_lift_inverse": MeasureNames("l1-lift-inverse", "", "l1_lift_inverse"),
    "chi2_lift_inverse": MeasureNames("chi2-lift-inverse", "", "chi2_lift_inverse"),
    "alpha_lift_inverse": MeasureNames(
        "alpha-lift-inverse, every alpha > 1", "", "every_alpha_lift_inverse"
    ),
}
"""Names for each entry of `auditing.leakages.guarantees`.

`auditing.measures` has no suprema over alpha. They are the extreme lifts, so `guarantees` of the
achieved budgets attains them.
"""

COMPARED = "compared with records of the same given columns"
"""What a relative promise is relative to."""

RELATIVE_TO = "The promise compares with somebody who knows {} of the {} already."
"""What the lifts of a relative promise are measured against."""

POPULATION_TOTAL = (
    "Figures for the population compare with somebody who knows nothing of the record."
)
"""They are no relative ones, whatever the promise for the table is."""

VERDICTS = {
    True: "Verified in exact arithmetic on the integers of the channel",
    False: "VIOLATED, decided in exact arithmetic on the integers of the channel",
    None: "Not checked here, because the table is missing; its holder can check it exactly.",
}
"""The exact verdict in words; those of a decided one are the start of a sentence."""


def promise_of(
    notion: Notion,
    request: Request,
    verdict: str,
    satisfied: bool | None,
    attained: Mapping[str, float],
) -> Promise:
    """The promise with every measure that it bounds.

    `verdict` is the exact verdict in words, `satisfied` the same as a value. `attained` are
    measures of the channel on its table by their names; without a table it is empty. A relative
    promise bounds no measure of the whole row, of which the given columns are a part.
    """
    limits = notion.limits.loosest
    # A side without a budget is free: there is no factor to name.
    low: float | None = None
    high: float | None = None
    if math.isfinite(limits.lower):
        low = math.exp(-limits.lower)
    if math.isfinite(limits.upper):
        high = math.exp(limits.upper)
    statement = notion.limits.condition(names_of(request)[0], request.unit)
    bounds = _bounds(notion, attained)
    statement = f"{statement.removesuffix('.')}{request.where}."
    if request.relative_to:
        statement = f"{statement.removesuffix('.')}, {COMPARED}."
        bounds = ()
    return Promise(
        statement=statement,
        verdict=verdict,
        satisfied=satisfied,
        low=low,
        high=high,
        bounds=bounds,
    )


def relative_sentences(channel: Channel) -> list[str]:
    """What the promise of a channel compares with, where that is more than the table."""
    if channel.record.promise_kind != RELATIVE:
        return []
    unit = "record" if channel.people is None else "person"
    return [RELATIVE_TO.format(title(channel.given), unit)]


def promise_on_table(
    design: Design,
    joint: Joint | None,
    request: Request,
    verdict: Audit | None,
    attained: Mapping[str, float],
) -> Promise:
    """The promise with the budgets that the channel uses, and the beliefs before and after.

    Of boxes these are not told: the promise is about a population, where nobody knows them.
    """
    notion = design.notion
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
    promise = promise_of(
        notion,
        request,
        " ".join(texts),
        design.verified,
        figures,
    )
    # With budgets of single symbols, the lifts allowed are those of each; else all have the same.
    allowed: list[tuple[float, float]] = []
    if joint is not None and notion.symbol_budgets:
        for lower, upper in allowed_sides(joint.sensitive, notion):
            allowed.append((math.exp(-lower), math.exp(upper)))
    worst: dict[str, Any] | None = None
    if verdict is not None:
        worst = asdict(verdict.worst)
    return replace(
        promise,
        achieved=asdict(judged.achieved),
        used=optional_record(judged.used),
        worst=worst,
        allowed=tuple(allowed),
        beliefs=() if joint is None else _beliefs(design.channel, joint, request),
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


def achieved_texts(
    achieved: Achieved, used: Used | None, on_table: Achieved | None = None
) -> list[str]:
    """The budgets that a channel keeps: those of its own notion if that is an average,
    and all lifts; where these hold for the population, also those on the table.
    """
    texts: list[str] = []
    if used is not None:
        texts.append(
            f"Of its own budgets it uses eps_l {at_most(used.eps_l)}, eps_u {at_most(used.eps_u)} "
            "(nats, rounded up)."
        )
    texts.append(f"Achieved: {achieved_text(achieved)} (nats, rounded up).")
    if on_table is not None:
        texts.append(f"Table: {achieved_text(on_table)}.")
    return texts


NOTHING_SAID = "what is released says nothing about {} beyond the given columns"
"""The effect of a channel that releases nothing."""


def effect_text(
    notion: Notion | None,
    achieved: Achieved,
    secret: str,
    subject: str,
    level: float | None = None,
) -> str:
    """What `subject`, such as "a released value", does at most to the probability of the secret; at
    a `level` of confidence in the population.

    Without a notion nothing is released.
    """
    if notion is None:
        return NOTHING_SAID.format(secret)
    effect = _effect_text(notion, achieved, secret, subject)
    return f"{effect}{in_population(level)}"


def _effect_text(notion: Notion, achieved: Achieved, secret: str, subject: str) -> str:
    """The effect alone, wherever it holds."""
    limits = notion.limits
    is_plural = subject.startswith("all ")
    make, be = ("make", "are") if is_plural else ("makes", "is")
    if isinstance(limits, MeanLimits):
        factors = range_text(achieved.eps_l, achieved.eps_u)
        return (
            f"{subject} {make} any value of {secret} {factors} as probable (the budgets are about "
            "averages)"
        )
    if limits.need_shares:
        factors = times_text(achieved, notion)
        return f"{subject} {make} any value of {secret} {factors} as probable"
    if math.isinf(achieved.eps_ldp):
        return f"{subject} can rule out a value of {secret}"
    factor = short_factor(achieved.eps_ldp, upper=True)
    than = f"for one value of {secret} as for another"
    return f"{subject} {be} at most {factor} times as probable {than}"


def subject_of(channel: Channel) -> str:
    """What a release of a record, or of a person, is called where its effect is said."""
    if channel.people is not None:
        return "all released records of a person together"
    return "a released value" if channel.published is None else "a released row"


def protected_name(sensitive: Variable, people: People | None = None) -> str:
    """The protected columns as one name; " or " between those that are protected each alone.

    Of `people` whose secret is a sequence they are not the columns at its places.
    """
    if people is not None and people.sensitive_of == SEQUENCE:
        return sequence_of(people)
    return title(sensitive.columns, " or " if sensitive.protects_columns else " x ")


def units_of(channel: Channel) -> tuple[str, str]:
    """What a channel releases one by one, in the singular and the plural."""
    return RECORD_UNITS if channel.people is None else PEOPLE_UNITS


def population_line(
    promise: PopulationPromise, confidence: ConfidenceSet | None, notion: Notion
) -> str:
    """What holds for the population, in a line; verified for a design with confidence."""
    factors = times_text(promise.achieved, notion)
    text = f"Population ({percent_of(promise.level)} confidence): {factors} as probable"
    return f"{text}." if confidence is None else f"{text} (verified)."


def counted_lines(
    audit: Audit, secret: str, subject: str, units: tuple[str, str] = RECORD_UNITS
) -> list[str]:
    """What a verdict on the population says beside it: of the records, or people, of the proof,
    and of values that are promised together. Nothing of a verdict on a table.
    """
    if audit.on_table is None or audit.notion is None:
        return []
    table = effect_text(audit.notion, audit.on_table, secret, subject)
    lines = [f"Table (the {units[1]} of the proof): {table}."]
    if len(audit.together) == 1:
        names = listed(audit.together[0])
        lines.append(f"Of {names} this holds together, as one value, and not of each.")
    elif audit.together:
        lines.append(
            f"Some values of {secret} are promised together, others in other strata: of these it "
            "holds as one value, and not of each."
        )
    return lines


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


def _bounds(notion: Notion, attained: Mapping[str, float]) -> tuple[Bound, ...]:
    """Every measure that the notion bounds, or that is attained, in the order of `MEASURES`."""
    promised = promised_bounds(notion)
    follows = guarantees(promised.eps_l, promised.eps_u)
    # A notion on ratios, such as ldp, bounds them directly, and more closely than through lifts.
    follows["ldp"] = min(follows["ldp"], promised.eps_ldp)
    if math.isinf(promised.eps_l) and math.isinf(promised.eps_u):
        # What holds of every channel whatsoever is no consequence of a promise.
        follows = dict.fromkeys(follows, math.inf)
    bounds: list[Bound] = []
    for key, names in MEASURES.items():
        bound: float | None = None
        if math.isfinite(follows[key]):
            bound = follows[key]
        if bound is not None or names.name in attained:
            value = attained.get(names.name)
            bounds.append(Bound(names.words, names.unit, bound, value))
    return tuple(bounds)


def _beliefs(channel: Channel, joint: Joint, request: Request) -> tuple[Belief, ...]:
    """The probability of each sensitive symbol before, and its extremes after a released value."""
    # Several protected columns have a prior each: they stand one after the other, like the symbols.
    shares: list[float] = []
    for secret in joint.secrets:
        shares += secret.p_s.tolist()
    ranges = belief_ranges(channel, joint)
    beliefs: list[Belief] = []
    rows = zip(request.sensitive_symbols, shares, ranges, strict=True)
    for name, before, (lowest, highest) in rows:
        beliefs.append(Belief(name, before, lowest, highest))
    return tuple(beliefs)


def guess_sentence(channel: Channel, sensitive: str) -> str | None:
    """How often the best guess of the sensitive value is right, with and without a released one.

    The former is rounded up. None without the table, or where each of several columns is protected.
    """
    joint = channel.joint
    if joint is None or joint.sensitive.protects_columns:
        return None
    what = "row" if channel.published is not None else "value"
    after, before = best_guess(channel, joint)
    shown = percent(float(before))
    if after == before:
        return (
            f"Guesses: a guess of {sensitive} from a released {what} is right no more often than "
            f"one without it, for {shown} of the {units_of(channel)[1]}."
        )
    share = quotient_above(after.numerator, after.denominator)
    most = percent_at_most(share)
    return (
        f"Guesses: no guess of {sensitive} from a released {what} is right more often than {most} "
        f"({shown} without it)."
    )


# ----------------------------------------------------------------- where a promise ends

COVERS = (
    "It covers the released {columns} alone, against an observer who knows this table and the "
    "channel and nothing else about the {unit}."
)
RELATIVE_COVERS = (
    "It covers the released columns alone, against an observer who knows this table, the channel "
    "and {given} of the {unit}, and nothing else about it."
)
PARTS = "A part of a released row without {given} can reveal what {given} {reveals}, on top."
RELATIVE_BELIEFS = (
    "The probabilities before are those of the whole table, and the promise compares with records "
    "of the same {given}. So a highest probability can exceed the one before by more than the "
    "promised factor, and a lowest one fall below it by more."
)
POPULATION = "there the leakage is usually larger, and it grows as the number of {units} shrinks."
PUBLIC_SAMPLE = (
    "The promise is about the table that the channel was designed for, not about the population "
    "behind its {units}: " + POPULATION + " The table and its size are not shown here."
)
PUBLIC_ROWS = (
    "The rows that are listed here are those of the table. Where the channel keeps their "
    "frequencies, its integers say how many records have each of them. Publish this only where "
    "the table of the released columns may be known."
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
"""What a release may do to a value where its notion leaves this side free."""

PARTS_OF_ROW = "A part of a row without its given columns: it can reveal what these reveal, on top."
WITHHELD = (
    "Not shown in this version, because it is computed from the table: the information kept of "
    "{useful}, the trade-off curve, the lifts, the codebook and the budgets actually used."
)
VOIDS = (
    "Other columns stay in the file, or the observer has other knowledge of {useful}.",
    "The same {unit} is released twice, independently. Each {unit} gets one draw: two can leak "
    "more than both budgets together.",
)


def scope_texts(
    design: Design, request: Request, achieved: Achieved
) -> tuple[str, ...]:
    """The scope in a report with the table: the sample, the observer, what the promise leaves open.

    `achieved` are the budgets that the channel uses of its promise.
    """
    sensitive, useful = names_of(request)
    texts: list[str] = []
    beyond = population_items(design.notion, request, design.channel.records_of_proof)
    if beyond:
        return _not_covered(beyond)
    # With a level of confidence the promise is about the population, in a section of its own.
    if design.confidence is None:
        texts.append(_sample_text(request))
    if request.zero_cells:
        texts.append(ZERO_CELLS.format(sensitive=sensitive, useful=useful))
    texts += _coverage_texts(design.notion, request, achieved.eps_ldp)
    if request.relative_to:
        texts.append(RELATIVE_BELIEFS.format(given=title(request.relative_to)))
    earlier = design.channel.record.after
    if earlier:
        texts.append(AFTER.format(count(len(earlier), "release")))
    return tuple(texts)


def public_scope_texts(
    notion: Notion,
    confidence: Mapping[str, Any] | None,
    request: Request,
) -> tuple[str, ...]:
    """The scope in a report without the table.

    `confidence` is the record of the confidence set, None where the table alone is covered.
    """
    withheld = WITHHELD.format(useful=names_of(request)[1])
    beyond = population_items(notion, request)
    if beyond:
        return (*_not_covered(beyond), withheld)
    texts = [PUBLIC_SAMPLE.format(units=unit_of(request)[1])]
    if confidence is not None:
        texts = list(scope_of(confidence))
    # The budget in use is computed from the table. The factor for other priors must follow from
    # the promise alone, where it is larger.
    promised = promised_bounds(notion)
    texts += _coverage_texts(notion, request, promised.eps_ldp)
    if request.of_rows:
        texts.append(PUBLIC_ROWS)
    return (*texts, withheld)


def population_items(
    notion: Notion, request: Request, records: int | None = None
) -> list[str]:
    """What a promise for the population alone does not cover; nothing where the promise is about
    the table. `records` are those that are not of the slice, which only insiders may read.
    """
    if request.level is None:
        return []
    sensitive = names_of(request)[0]
    items = ["A population that the records were not drawn from independently."]
    if request.of_people:
        items = [
            "A population that the people were not drawn from independently, each with all "
            "records."
        ]
    if request.given:
        items.append(f"What the given columns tell about {sensitive} by themselves.")
    for side in notion.limits.free_sides:
        items.append(FREE_SIDE.format(sensitive=sensitive, effect=FREE[side]))
    # How rare an unseen value must be follows from the number of records of the proof.
    sentence = uncovered_sentence(request.level, records)
    # The heading of the list has the first words already.
    start = "The promise does not cover sensitive values"
    return [*items, sentence.replace(start, "Sensitive values", 1)]


def _not_covered(items: Sequence[str]) -> tuple[str, ...]:
    """The items as sentences, where no heading says that they are not covered."""
    return tuple(f"Not covered: {item[:1].lower()}{item[1:]}" for item in items)


def void_texts(request: Request) -> tuple[str, ...]:
    """What makes the promise void."""
    parts = {"useful": names_of(request)[1], "unit": unit_of(request)[0]}
    return tuple(text.format(**parts) for text in VOIDS)


def _sample_text(request: Request) -> str:
    """The table that the promise is about: its records and zero cells."""
    size = count(request.cells or 0, "cell")
    cells = f"{request.zero_cells or 0:,} of {size} zero"
    # Probabilities and weights are no sample, so there is no population to speak of.
    if request.records is None:
        return f"The promise is about the table of probabilities or weights as given ({cells})."
    unit = unit_of(request)
    return (
        f"The promise is about the table given ({count(request.records, *unit)}, {cells}), "
        f"not about the population behind the {unit[1]}: {POPULATION.format(units=unit[1])}"
    )


def _coverage_texts(notion: Notion, request: Request, eps_ldp: float) -> list[str]:
    """Against whom the promise holds, and what it leaves open."""
    sensitive, useful = names_of(request)
    columns = "columns" if len(request.useful_columns) > 1 else "column"
    unit = unit_of(request)[0]
    texts = [COVERS.format(columns=columns, unit=unit)]
    if request.relative_to:
        given = title(request.relative_to)
        reveals = "reveals" if len(request.relative_to) == 1 else "reveal"
        texts = [
            RELATIVE_COVERS.format(given=given, unit=unit),
            PARTS.format(given=given, reveals=reveals),
        ]
    for side in notion.limits.free_sides:
        texts.append(FREE_SIDE.format(sensitive=sensitive, effect=FREE[side]))
    # For a prior q the lift of s is P(y|s) / sum_s' q(s') P(y|s'). The denominator is a mean of
    # numbers P(y|s') within a factor exp(eps_ldp) of the numerator, whatever q is.
    # Relative lifts have a prior for each combination of given cells, so they bound no such factor.
    if math.isfinite(eps_ldp) and not request.relative_to:
        factor = factor_at_most(eps_ldp)
        texts.append(
            OTHER_PRIOR.format(sensitive=sensitive, useful=useful, factor=factor)
        )
    return texts


def uncovered_lines(design: Design, asked: Request) -> list[str]:
    """What the promise leaves open, in a line each."""
    sensitive, useful = names_of(asked)
    if design.channel.useful.people is not None:
        items = [
            "Any other column released beside these, and other knowledge of them.",
            "Other records of these people, in another file or of another time: a release of them "
            "is a second one.",
            f"Who somebody is: {sensitive} is hidden, yet a sequence may still be unusual.",
        ]
    elif design.channel.published is None:
        items = [
            f"Other columns in the file, and other knowledge of {useful}.",
            "A second, independent release of the same record.",
        ]
    else:
        items = [
            "Any other column released beside these, and other knowledge of them.",
            "A second, independent release of the same record.",
            f"Who somebody is: {sensitive} is hidden, yet a released row may still be unusual.",
        ]
    if design.channel.record.promise_kind == RELATIVE:
        items.append(PARTS_OF_ROW)
        items += _given_texts(design, sensitive)
    for side in design.notion.limits.free_sides:
        items.append(FREE_SIDE.format(sensitive=sensitive, effect=FREE[side]))
    # P(y|s) / P(y) is at most the quotient of P(y|s) for two values of s, whatever their shares.
    ratio = design.achieved.eps_ldp
    # Relative lifts have a prior for each stratum.
    if math.isfinite(ratio) and design.channel.record.promise_kind != RELATIVE:
        factor = short_factor(ratio, upper=True)
        items.append(
            f"Other probabilities of {sensitive} than the table's: then the factor is at most "
            f"{factor}."
        )
    if design.population is not None:
        items.append(
            f"The population figure assumes independent {units_of(design.channel)[1]} and "
            "categories fixed in advance."
        )
    return ["Not covered", *item_lines(items)]


def _given_texts(design: Design, sensitive: str) -> list[str]:
    """What the given columns tell alone, which a relative promise leaves as it is: of people with
    several records, and where they give a value away. (`--full` says it of all.)
    """
    channel = design.channel
    lift = design.given_lift
    if lift is None or channel.joint is None:
        return []
    certain = given_away(channel.joint, channel.given)
    if not certain and channel.useful.people is None:
        return []
    factors = range_text(lift.eps_l, lift.eps_u)
    text = (
        f"By {title(_given_of_records(channel))} alone a value of {sensitive} is {factors} "
        "as probable"
    )
    if certain and channel.joint.is_counts:
        unit = "record" if channel.useful.people is None else "person"
        units = "records" if channel.useful.people is None else "people"
        text += f", certain for {count(certain, unit, units)}"
    return [f"{text}."]


def _given_of_records(channel: Channel) -> tuple[str, ...]:
    """The given columns; of people those of a record, and their number."""
    people = channel.useful.people
    return channel.given if people is None else (*people.given, RECORDS)


# ------------------------------------------------------------------------------ beliefs

BELIEF_HEADER = ("before", "lowest after", "highest after")
"""The header of a table of beliefs, after that of the symbols."""


def belief_texts(belief: Belief) -> tuple[str, ...]:
    """A line of a table of beliefs: the symbol, its share before, and its extremes after."""
    return (
        short(belief.symbol),
        percent(belief.before),
        percent_at_least(belief.lowest),
        percent_at_most(belief.highest),
    )
