"""Lines that the first screens of columns, rows and boxes share.

`promise_lines` says what a released value can do to a belief, `uncovered_lines` what the promise
leaves open; `lines_within` fits a table into the lines that are left.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from mechdesign.auditing.averages import best_guess
from mechdesign.auditing.extremes import given_away
from mechdesign.channel.channel import Channel
from mechdesign.channel.record import RELATIVE
from mechdesign.core.balls import quotient_above
from mechdesign.core.limits import LiftLimits
from mechdesign.mechanisms.result import Design
from mechdesign.report import layout, wording
from mechdesign.report.asked import names_of
from mechdesign.report.promises import COMPARED, population_line
from mechdesign.report.record import Report
from mechdesign.report.scope_texts import FREE, FREE_SIDE
from mechdesign.tables.people import RECORDS

MOST_LINES = 25
"""Lines of a terminal that was never resized, with one left for the prompt."""

FULL = "All sections:  --full"

NO_POPULATION = (
    "Population: promised for the records of this table alone; "
    "--confidence 0.95 protects others."
)

NO_POPULATION_OF_PEOPLE = (
    "Population: not promised, where a person can reveal far more; "
    "--confidence 0.95 protects it."
)

PARTS = "A part of a row without its given columns: it can reveal what these reveal, on top."


LITTLE = 0.2
"""Share of unchanged cells below which a release is of little use, and says so first."""

LITTLE_INFORMATION = 0.01
"""The share of the information below which a channel to labels is called useless: its labels tell
next to nothing of the values, while a share of a few per cent still gives fair estimates.
"""

ONE_VALUE = 0.95
"""Share of the records from which on a released value that comes so often is nearly all there is,
unless the table has such a value itself.
"""


def little_information(nmi: float) -> str:
    """Why a channel to labels is of little use, in a sentence; or nothing."""
    if nmi >= LITTLE_INFORMATION:
        return ""
    kept = wording.percent(nmi)
    return f"Of little use: only {kept} of the information is kept."


def little_use(design: Design) -> str:
    """Why a design is of little use, in a sentence; or nothing."""
    # What is kept for queries or a task is another share.
    if design.purpose is not None:
        return ""
    channel = design.channel
    if channel.joint is not None:
        most = float(channel.output_masses.max())
        before = float(channel.joint.p_x.max())
        if most >= ONE_VALUE > before:
            return (
                f"Of little use: {wording.percent_at_least(most)} of the records are released with "
                "one and the same value."
            )
    if design.least is None:
        return little_information(design.nmi)
    if design.least.truth >= LITTLE:
        return ""
    stay = wording.percent_at_least(design.least.truth)
    return f"Of little use: only {stay} of the cells are released as they are."


def little_use_lines(design: Design) -> list[str]:
    """The same as the first lines of a terminal, with what may help."""
    sentence = little_use(design)
    if not sentence:
        return []
    return layout.lines_of(
        f"{sentence} Give a larger budget, release fewer columns, or put values into bins."
    )


def lines_within(rows: Sequence[Sequence[str]], room: int, hidden: str) -> list[str]:
    """The lines of a table, as many as there is room for; `hidden` names the others.

    The header stays even without room, and one line is for the number of the others.
    """
    if len(rows) <= room:
        return layout.aligned(rows, left=(0,))
    shown = rows[: max(1, room - 1)]
    others = wording.count(len(rows) - len(shown), hidden)
    return [*layout.aligned(shown, left=(0,)), f"  and {others}:  --full"]


def kept_sentence(
    nmi: float, bound: float, *, beyond_given: bool, rivals: str, scope: str = "proven"
) -> str:
    """What is kept of released rows, rounded down, and the proven bound on it, rounded up.

    `rivals` names the channels that the bound is about: ``mechanism with this promise``. `scope` is
    how it is known.
    """
    beyond = ""
    if beyond_given:
        beyond = " beyond the given ones"
    kept = wording.percent_at_least(nmi)
    most = wording.percent_at_most(bound)
    return (
        f"Kept: {kept} of the information in the released columns{beyond}; "
        f"no {rivals} keeps more than {most} ({wording.proof_text(scope)})."
    )


def promise_lines(design: Design, report: Report) -> list[str]:
    """What a released value can do to a belief: by the table, and in the population."""
    sensitive = names_of(report.asked)[0]
    limits = design.notion.limits
    if isinstance(limits, LiftLimits) and limits.need_shares:
        # "Any value" must be true of the symbol with the largest budgets, too.
        widest = limits.loosest
        factors = wording.range_text(widest.lower, widest.upper)
        if design.channel.useful.people is None:
            subject = f"a released {_unit(design)} makes"
        else:
            subject = "all released records of a person together make"
        table = f"Table: {subject} any value of {sensitive} {factors} as probable"
        if limits.symbol_budgets:
            table += ", single values by budgets of their own"
        if design.channel.record.promise_kind == RELATIVE:
            table += f", {COMPARED}"
        table += f" ({_verdict(design)})."
    else:
        # Averages of lifts, and ratios between two rows, bound no single factor directly.
        table = f"Table: {report.promise.statement}"
        if design.channel.published is not None:
            table = f"{table.removesuffix('.')} ({_verdict(design)})."
    lines = [*layout.lines_of(table), *layout.lines_of(_population_text(design))]
    # Of rows the sentence about any rule says it, which comes before.
    if design.channel.published is None:
        guesses = guess_sentence(design.channel, sensitive)
        if guesses is not None:
            lines += layout.lines_of(guesses)
    return lines


def guess_sentence(channel: Channel, sensitive: str) -> str | None:
    """How often the best guess of the sensitive value is right, with and without a released one.

    The former is rounded up. None without the table, or where each of several columns is protected.
    """
    joint = channel.joint
    if joint is None or joint.sensitive.protects_columns:
        return None
    after, before = best_guess(channel, joint)
    shown = wording.percent(float(before))
    if after == before:
        return (
            f"Guesses: a guess of {sensitive} from a released value is right no more often than "
            f"one without it, for {shown} of the records."
        )
    share = quotient_above(after.numerator, after.denominator)
    most = wording.percent_at_most(share)
    return (
        f"Guesses: no guess of {sensitive} from a released value is right more often than {most} "
        f"({shown} without it)."
    )


def _verdict(design: Design) -> str:
    """The exact verdict on a promise, in a word."""
    return "verified" if design.verified else "VIOLATED"


def _unit(design: Design) -> str:
    """What is released of a record."""
    return "value" if design.channel.published is None else "row"


def _population_text(design: Design) -> str:
    """The promise for the population that the records are a sample of, or why there is none."""
    population = design.population
    if population is None and design.channel.useful.people is not None:
        return NO_POPULATION_OF_PEOPLE
    if population is None and design.channel.published is not None:
        return NO_POPULATION
    if population is None:
        joint = design.channel.joint
        if joint is not None and joint.sensitive.protects_columns:
            return (
                "Population: not computed where each of several columns is protected."
            )
        if design.has_population:
            return (
                "Population: not computed within the time limit; `audit` computes it."
            )
        return "Population: unknown, because the table has no numbers of records."
    text = population_line(population, design.confidence, design.notion)
    if design.confidence is None and _takes_confidence(design):
        return f"{text.removesuffix('.')}; --confidence 0.95 protects it."
    return text


def _takes_confidence(design: Design) -> bool:
    """Whether a design with the same request can promise something for the population.

    It can for budgets on single lifts, those of single symbols included: not with earlier releases
    or average budgets, which `design` refuses beside a confidence level.
    """
    record = design.channel.record
    is_single = not (record.after or record.averages)
    return isinstance(design.notion.limits, LiftLimits) and is_single


def uncovered_lines(design: Design, report: Report) -> list[str]:
    """What the promise leaves open, in a line each."""
    sensitive, useful = names_of(report.asked)
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
        items.append(PARTS)
        items += _given_texts(design, sensitive)
    for side in design.notion.limits.free_sides:
        items.append(FREE_SIDE.format(sensitive=sensitive, effect=FREE[side]))
    # P(y|s) / P(y) is at most the quotient of P(y|s) for two values of s, whatever their shares.
    ratio = design.achieved.eps_ldp
    # Relative lifts have a prior for each stratum.
    if math.isfinite(ratio) and design.channel.record.promise_kind != RELATIVE:
        factor = wording.short_factor(ratio, upper=True)
        items.append(
            f"Other probabilities of {sensitive} than the table's: then the factor is at most "
            f"{factor}."
        )
    if design.population is not None:
        items.append(
            "The population figure assumes independent records and categories fixed in advance."
        )
    return ["Not covered", *layout.item_lines(items)]


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
    factors = wording.range_text(lift.eps_l, lift.eps_u)
    text = (
        f"By {wording.title(_given_of_records(channel))} alone a value of {sensitive} is {factors} "
        "as probable"
    )
    if certain and channel.joint.is_counts:
        unit = "record" if channel.useful.people is None else "person"
        units = "records" if channel.useful.people is None else "people"
        text += f", certain for {wording.count(certain, unit, units)}"
    return [f"{text}."]


def _given_of_records(channel: Channel) -> tuple[str, ...]:
    """The given columns; of people those of a record, and their number."""
    people = channel.useful.people
    return channel.given if people is None else (*people.given, RECORDS)
