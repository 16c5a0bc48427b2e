"""Lines that the first screens of columns, rows and boxes share.

`promise_lines` says what a released value can do to a belief, `uncovered_lines` what the promise
leaves open, `brief_law` what an analyst reads of a column, and `remarks_of` what a reader should
know of the mechanism; `lines_within` fits a table into the lines that are left.

*Merged symbols.* `proposal_lines` says what merging would buy. Every proposal
(`mechanisms.merge_proposals`) is an item of a list: its options, what it keeps, and which symbols
it merges. A paragraph below them is about the choice. Where each promise fails with probability at
most 5 %, one of 5 fails with at most 25 %, so the best of 5 is sure of 75 % only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mechdesign.analysis.linear import error_factor
from mechdesign.auditing.extremes import given_away
from mechdesign.auditing.measures import best_guess
from mechdesign.channel.channel import Channel
from mechdesign.channel.output_cells import label_of
from mechdesign.channel.record import RELATIVE
from mechdesign.core.balls import quotient_above
from mechdesign.core.limits import LiftLimits
from mechdesign.core.wording import at_most, listed, percent_of, quoted
from mechdesign.mechanisms.result import Design
from mechdesign.report import wording
from mechdesign.report.law_section import (
    DISTANCE_DIGITS,
    NEARLY_KEPT,
    TITLE,
    law_lines,
)
from mechdesign.report.promises import COMPARED, FREE, FREE_SIDE, population_line
from mechdesign.report.record import Promise, Request, names_of, protected
from mechdesign.report.sentences import spending_texts
from mechdesign.tables.people import RECORDS

if TYPE_CHECKING:
    from mechdesign.mechanisms.box_design import MergeProposal, MergeProposals

MOST_LINES = 25
"""Lines of a terminal that was never resized, with one left for the prompt."""

FULL = "All sections:  --full"

NO_POPULATION = (
    "Population: promised for the records of this table alone; "
    "--confidence 0.95 protects others."
)

NO_NUMBERS = "Population: unknown, because the table has no numbers of records."

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
    return wording.lines_of(
        f"{sentence} Give a larger budget, release fewer columns, or put values into bins."
    )


def lines_within(rows: Sequence[Sequence[str]], room: int, hidden: str) -> list[str]:
    """The lines of a table, as many as there is room for; `hidden` names the others.

    The header stays even without room, and one line is for the number of the others.
    """
    if len(rows) <= room:
        return wording.aligned(rows, left=(0,))
    shown = rows[: max(1, room - 1)]
    others = wording.count(len(rows) - len(shown), hidden)
    return [*wording.aligned(shown, left=(0,)), f"  and {others}:  --full"]


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


def lead_of(request: Request) -> str:
    """The protected column, the released column and their sizes."""
    if request.level is not None:
        return _lead_of_boxes(request)
    useful = names_of(request)[1]
    useful_size = wording.count(len(request.useful_symbols), "symbol")
    outputs = wording.count(request.outputs, "output")
    if request.of_rows:
        useful_size = wording.count(len(request.useful_symbols), "row")
        outputs = f"one of {wording.count(request.outputs, 'row')}"
    manner = "is released as"
    if request.of_people:
        useful_size = wording.count(len(request.useful_symbols), "sequence")
        outputs = f"one of {wording.count(request.outputs, 'sequence')}"
        manner = "of all records of a person is released as"
    sensitive = protected(request)
    if request.sensitive_symbols:
        sensitive_size = wording.count(len(request.sensitive_symbols), "symbol")
        sensitive += f" ({sensitive_size})"
    return f"{useful} ({useful_size}) {manner} {outputs}; {sensitive} is protected."


def _lead_of_boxes(request: Request) -> str:
    """What is released in boxes, and what is protected."""
    useful = names_of(request)[1]
    if request.of_people:
        return (
            f"{useful} of all records of a person are released together as those of a person of "
            f"the table, drawn within boxes of sequences, beside {RECORDS} as it is; "
            f"{protected(request)} is protected."
        )
    useful = wording.title(request.useful_columns, ", ")
    verb = "is released"
    if len(request.useful_columns) > 1:
        verb = "are released together"
    form = "in boxes of values"
    if request.fills:
        form = "as rows of the table that are drawn within boxes"
    given = ""
    if request.given:
        given = f", {wording.title(request.given)} as in the data"
    return f"{useful} {verb} {form}{given}; {protected(request)} is protected."


def promise_lines(design: Design, asked: Request, promise: Promise) -> list[str]:
    """What a released value can do to a belief: by the table, and in the population."""
    sensitive = names_of(asked)[0]
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
        table = f"Table: {promise.statement}"
        if design.channel.published is not None:
            table = f"{table.removesuffix('.')} ({_verdict(design)})."
    lines = [*wording.lines_of(table), *wording.lines_of(_population_text(design))]
    # Of rows the sentence about any rule says it, which comes before.
    if design.channel.published is None:
        guesses = guess_sentence(design.channel, sensitive)
        if guesses is not None:
            lines += wording.lines_of(guesses)
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
    table = design.channel.joint
    has_numbers = table is None or table.is_counts
    if population is None and design.channel.published is not None and has_numbers:
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
        return NO_NUMBERS
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
    return ["Not covered", *wording.item_lines(items)]


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


def unchanged_share(design: Design) -> float | None:
    """The expected share of records whose output is their own symbol; None without the table.

    An output has the name of a symbol only if it comes from this symbol alone, or if outputs are
    symbols of the column (`channel.output_cells`).
    """
    channel = design.channel
    # Rows have a table of unchanged cells, and a channel of least cost a sentence.
    if (
        channel.joint is None
        or channel.published is not None
        or design.least is not None
    ):
        return None
    # The sum over x of P(x) W(x|x), in whole numbers: counts times entries of the channel.
    unchanged = 0
    totals = channel.joint.useful_counts
    for total, entry in zip(totals, channel.own_entries, strict=True):
        unchanged += total * entry
    return unchanged / (channel.joint.total * channel.denominator)


def brief_law(design: Design) -> str:
    """What an analyst reads of a column, in one line where its name is short."""
    law = design.law
    channel = design.channel
    column = wording.title(channel.useful.columns)
    if law is None:
        label = quoted(label_of(channel.outputs))
        factor = error_factor(channel)
        if factor is None:
            return f"{TITLE}: labels such as {label}, and no values of {column}."
        times = at_most(factor, DISTANCE_DIGITS)
        shares = f"estimated shares have up to {times} times the error"
        return f"{TITLE}: labels such as {label}; {shares}."
    if law.kept and not channel.has_counts:
        return f"{TITLE}: frequencies and means of {column}, weighted as the table is (expected)."
    if law.kept:
        return f"{TITLE}: exactly the frequencies and means of {column} (expected)."
    distance = at_most(law.total_variation, DISTANCE_DIGITS)
    if law.total_variation <= NEARLY_KEPT:
        return f"{TITLE}: the frequencies and means of {column} (expected, within {distance})."
    return " ".join(law_lines(law))


def remarks_of(design: Design) -> list[str]:
    """Repairs, earlier releases and fallbacks that a reader should know of."""
    texts: list[str] = []
    if design.as_published:
        texts.append("This is the procedure as published, without repair.")
    if design.repaired:
        names = ", ".join(wording.label(name) for name in design.borrowed) or "none"
        texts.append(
            "Repaired: merging the risky symbols among themselves was not private, so harmless "
            f"ones were merged with them: {names}."
        )
    if design.spending is not None:
        texts += spending_texts(design.spending)
    if design.fallback_from is not None:
        texts.append(
            f"Fallback: {design.fallback_from} gave no better verified channel."
        )
    return texts


# ----------------------------------------------------------------------- merged symbols

MOST_SETS = 3
"""Sets of merged symbols that a line names."""

MOST_NAMES = 5
"""Symbols of a set that a line names."""


def proposal_lines(proposals: MergeProposals, nmi: float, level: float) -> list[str]:
    """Lines with what each proposal keeps, what it merges, and what choosing among them costs.

    Parameters
    ----------
    proposals : MergeProposals
    nmi : float
        What the design itself keeps.
    level : float
        The confidence of each promise.
    """
    # What proposes knows every search, and these lines are for audits, too.
    from mechdesign.mechanisms.box_design import level_for_all, level_of_all

    if not proposals.shown:
        return []
    lines = [f"Merging keeps more than {wording.percent_at_least(nmi)}:"]
    for proposal in proposals.shown:
        text = (
            f"{proposal.options} keeps about {wording.percent_at_least(proposal.nmi)}"
        )
        if proposal.merged:
            text += f", with {_sets(proposal)} merged"
        if proposal.together:
            names = listed(proposal.together, MOST_NAMES)
            text += f", and {names} promised together, as one value"
        lines += wording.item_lines([f"{text}."])
    count = proposals.promises
    # By the union bound over all promises that were tried.
    each = f"{100 * level_for_all(level, count):.6g}"
    together = percent_of(level_of_all(level, count))
    lines += wording.lines_of(
        "With the whole time limit it may be more. Each is a promise of its own with "
        f"{percent_of(level)} confidence, on a slice of its own. A choice among the {count} "
        f"promises that were tried has {together}, or {percent_of(level)} if each of them has "
        f"{each} %."
    )
    return lines


def _sets(proposal: MergeProposal) -> str:
    """The merged sets of a proposal: ``{a, b} and {c, d, 2 more} and 1 other set``."""
    texts: list[str] = []
    for symbols in proposal.merged[:MOST_SETS]:
        names = [wording.label(name) for name in symbols[:MOST_NAMES]]
        if len(symbols) > MOST_NAMES:
            names.append(f"{len(symbols) - MOST_NAMES} more")
        texts.append(f"{{{', '.join(names)}}}")
    left = len(proposal.merged) - MOST_SETS
    if left > 0:
        texts.append(f"{wording.count(left, 'other set')}")
    return " and ".join(texts)
