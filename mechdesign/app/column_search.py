"""The channel of released columns: its search, its result in words and files, the trade-off curve.

`designed_column` does it for the page:

1. It counts the table and searches (`searched`, by `md.design`).
2. It computes the internal report, from which the page takes its lists, so that page and files
   agree: `_beliefs` (before and after for each protected value), `_meanings` (P(x|y) of each
   released value), `_moves` (the values that change a probability most).
3. `_column_facts` writes the sentences at the top, with the audit of the channel: "A released value
   makes any value of health 0.51 to 1.9 times as probable (verified exactly)."
4. `_column_files` writes the channel and its reports, each for insiders and for everybody.

With a level the promise is about the population, and so is the worst value; without one it is about
the table, and the population is only described.

*The trade-off curve* says what the best channel keeps at several budgets. A budget is a factor K of
`CURVE_FACTORS`: no lift is above K or below 1/K. Each becomes a point, as ``CurvePoint(factor=2.0,
kept=0.41, bound=0.41)``: 41 % of the information is kept, and no channel with this promise keeps
more.

- `_curve_of_column`: one `md.compare` of the optimum at all budgets, which shares its tables.
- `_curve_by_design`: rows and boxes are designed once for each budget, each with an equal share of
  the time. A budget that cannot be kept has no point; if none can, the last refusal is shown.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import mechdesign as md
from mechdesign.app.box_search import searched_boxes
from mechdesign.app.choice import Choice
from mechdesign.app.memory_table import MemoryTable
from mechdesign.app.pictures import expected_readings
from mechdesign.app.recipes import command_of, script_of
from mechdesign.app.results import (
    MOST_MEANINGS,
    REMEDY,
    BeliefRow,
    CurvePoint,
    Designed,
    Meaning,
    Move,
    Say,
    behind_text,
    design_files,
    factors,
    joint_of,
    progress_to,
    recipe_files,
    verdict_text,
)
from mechdesign.core.wording import percent_of

if TYPE_CHECKING:
    from mechdesign.report.record import Report


Array = NDArray[np.float64]

MOST_WORST = 10
"""Released values that the page lists as those that change most."""


def designed_column(table: MemoryTable, choice: Choice, say: Say) -> Designed:
    """Search for the channel of one column, and describe it."""
    from mechdesign.report import wording as w
    from mechdesign.report.collect import attributed, internal_report
    from mechdesign.report.first_screen import first_screen

    say("Reading the table")
    joint = joint_of(table, choice)
    result = searched(joint, choice, say)
    # The channel's own table is the one with bins: its symbols are those that are released.
    binned = result.channel.joint or joint
    say("Comparing what an analyst reads")
    reads = expected_readings(result.channel, binned)
    say("Writing the reports")
    report = attributed(internal_report(result, binned), result.channel, ())
    return Designed(
        title=f"A channel for {w.title(choice.released)}",
        unit="row" if choice.is_rows else "value",
        facts=_column_facts(result, binned, choice, report),
        unchanged=_unchanged(result, choice),
        beliefs=_beliefs(report),
        beliefs_note="Computed from the channel, rounded outwards.",
        meanings=_meanings(report, result.channel.output_masses),
        worst=_moves(report),
        readings=reads,
        useless=_useless(result),
        text=first_screen(result, binned, last=()),
        messages=(*joint.notices, *result.messages),
        files=(*design_files(result, report), *recipe_files(choice, table)),
        command=command_of(choice, table),
        script=script_of(choice, table),
    )


def _useless(result: md.Design) -> str:
    """Why the channel is of little use, and what may help; or nothing."""
    from mechdesign.report.first_lines import little_use

    sentence = little_use(result)
    return f"{sentence}{REMEDY}" if sentence else ""


def searched(joint: md.Joint, choice: Choice, say: Say) -> md.Design:
    """The design of the column, or of rows of several columns; a refusal speaks of what the page
    has.
    """
    rows: dict[str, Any] = {}
    if choice.is_rows:
        rows = {
            "release": list(choice.released),
            "given": list(choice.given),
            "promise": choice.promise,
        }
    try:
        return _designed(joint, choice, say, rows)
    except md.NotPrivate as error:
        # Its advice is about options, which the page does not have; the reason before it stays.
        reason, _, _ = str(error).partition(" release them (")
        raise md.InputError(
            f"{reason[:1].upper()}{reason[1:].rstrip(';:')}. Give them the role 'release', or "
            "choose in step 3 that the given columns are known."
        ) from None


def _designed(
    joint: md.Joint, choice: Choice, say: Say, rows: dict[str, Any]
) -> md.Design:
    """The design at the budget of the choice."""
    return md.design(
        joint,
        choice.notion(joint),
        **rows,
        objective=choice.objective,
        # The bins of people are in their table already.
        bins=None if choice.person else choice.used_bins or None,
        confidence=choice.confidence,
        time_limit=choice.seconds,
        progress=progress_to(say),
    )


def _unchanged(result: md.Design, choice: Choice) -> tuple[tuple[str, str], ...]:
    """The column and the expected share of its cells that stay as they are."""
    from mechdesign.report import wording as w
    from mechdesign.report.first_screen import unchanged_share

    if result.truth is not None:
        return tuple(
            (name, w.percent_at_least(share)) for name, share in result.truth.items()
        )
    share = unchanged_share(result)
    if share is None:
        return ()
    return ((choice.released[0], w.percent_at_least(float(share))),)


def _column_facts(
    result: md.Design, joint: md.Joint, choice: Choice, report: Report
) -> tuple[tuple[str, str], ...]:
    """The promise for the table and for the population, what is kept, what an analyst reads, and
    the worst cell.
    """
    from mechdesign.report import wording as w
    from mechdesign.report.law_section import TITLE, untitled
    from mechdesign.report.promises import effect_text, subject_of
    from mechdesign.report.sentences import rule_sentences

    secret = w.title(choice.sensitive)
    audit = md.audit(result.channel, joint, result.notion)
    unit = "row" if choice.is_rows else "value"
    effect = effect_text(
        result.notion, audit.achieved, secret, subject_of(result.channel)
    )
    promise = f"{effect[0].upper()}{effect[1:]} ({verdict_text(audit.satisfied)})."
    rules = rule_sentences(report.promise, report.asked)
    facts = [
        *[("The most that a rule finds", rule) for rule in rules],
        ("Promise for the table", promise),
        ("Promise for the population", _population_text(result)),
        ("Kept", _kept_text(result)),
        (TITLE, " ".join(untitled(report.law))),
    ]
    # Most cells unchanged is a search for least cost: the expected share of cells that change.
    if result.least is not None:
        changed = w.percent_at_most(result.least.cost)
        bound = w.percent_at_least(result.least.cost_lower_bound)
        text = (
            f"{changed} in expectation; no channel with this promise changes less than {bound} "
            "(proven)."
        )
        facts.append(("Changed cells", text))
    worst = audit.worst
    place = f"Worst released {unit}"
    if result.confidence is not None:
        # The audit of such a channel is about the population.
        place += " in the population"
    text = (
        f"{w.label(worst.output)} makes {secret} = {w.label(worst.sensitive)} "
        f"about {worst.lift:.3g} times as probable."
    )
    facts.append((place, text))
    return tuple(facts)


def _population_text(result: md.Design) -> str:
    """The promise for the population, or what holds for it without being promised."""
    population = result.population
    if population is None:
        if result.channel.published is not None:
            return "Not promised: the promise is about the records of this table."
        if result.has_population:
            return "Not computed within the time limit; `mechdesign audit` computes it."
        return "Unknown: the table has no numbers of records."
    achieved = population.achieved
    text = (
        f"{factors(achieved.eps_l, achieved.eps_u)} as probable, with "
        f"{percent_of(population.level)} confidence"
    )
    if result.confidence is None:
        return f"{text}. This is not promised: choose a population in step 3 to promise it."
    return f"{text} (promised)."


def _kept_text(result: md.Design) -> str:
    """What is kept, rounded down, and the proven bound, rounded up."""
    from mechdesign.report import wording as w

    kept = f"{w.percent_at_least(result.nmi)} of the information"
    bound = result.certificate.upper_bound_nmi
    if bound is None:
        return f"{kept}."
    most = w.percent_at_most(bound)
    return f"{kept}; no channel with this promise keeps more than {most} (proven)."


def _meanings(report: Report, masses: Array) -> tuple[Meaning, ...]:
    """The most frequent released values with the true values behind them; `masses` are those of
    the outputs.
    """
    from mechdesign.report import wording as w

    codebook = report.codebook
    if codebook is None:
        return ()
    rows: list[Meaning] = []
    for place in np.argsort(-masses, kind="stable")[:MOST_MEANINGS].tolist():
        entry = codebook[place]
        rows.append(
            Meaning(
                group="",
                released=w.label(entry.output),
                share=w.percent(entry.probability),
                behind=behind_text(entry.posterior),
            )
        )
    return tuple(rows)


def _moves(report: Report) -> tuple[Move, ...]:
    """The released values that change a probability most, worst first."""
    from mechdesign.report import wording as w

    after = report.after
    if after is None or not report.promise.beliefs:
        return ()
    # The lifts of the report have a row for each protected value and a column for each output.
    lifts = np.array(after.values)
    with np.errstate(divide="ignore"):
        # Halving is as far as doubling, and a value that is ruled out is the furthest of all.
        distances = np.abs(np.log(lifts))
    # In each column, the protected value whose lift is furthest from 1, up or down.
    furthest = distances.argmax(axis=0)
    # The sort is stable: of equal distances the order of the report stays.
    worst = np.argsort(-distances.max(axis=0), kind="stable")[:MOST_WORST]
    moves: list[Move] = []
    for place in worst.tolist():
        most = int(furthest[place])
        belief = report.promise.beliefs[most]
        move = Move(
            released=w.label(after.columns[place]),
            symbol=w.label(belief.symbol),
            before=w.percent(belief.before),
            # P(s|y) = P(s) times the lift; rounding may exceed 1.
            after=w.percent(min(1.0, belief.before * float(lifts[most, place]))),
        )
        moves.append(move)
    return tuple(moves)


def _beliefs(report: Report) -> tuple[BeliefRow, ...]:
    """Before and after for every protected value, from the report."""
    from mechdesign.report import wording as w

    rows: list[BeliefRow] = []
    for belief in w.in_reading_order(report.promise.beliefs, lambda one: one.symbol):
        rows.append(
            BeliefRow(
                symbol=w.label(belief.symbol),
                before=w.percent(belief.before),
                lowest=w.percent_at_least(belief.lowest),
                highest=w.percent_at_most(belief.highest),
            )
        )
    return tuple(rows)


# ---------------------------------------------------------------------------- trade off

CURVE_FACTORS = (1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0)
"""Budgets of the trade-off curve, as factors."""


def compare_budgets(
    table: MemoryTable, choice: Choice, say: Say
) -> tuple[CurvePoint, ...]:
    """What the best channel keeps at several budgets."""
    choice.check()
    joint = joint_of(table, choice)
    if choice.is_rows or choice.is_boxes:
        return _curve_by_design(table, joint, choice, say)
    return _curve_of_column(joint, choice, say)


def _curve_of_column(
    joint: md.Joint, choice: Choice, say: Say
) -> tuple[CurvePoint, ...]:
    """The curve of one column, by the comparison of the optimum at all budgets."""
    if choice.used_bins:
        joint = joint.binned(choice.used_bins)
    # LIP(ln K) is the promise of a factor between 1/K and K.
    budgets = [math.log(factor) for factor in CURVE_FACTORS]
    comparison = md.compare(
        joint,
        epsilons=budgets,
        notions=("lip",),
        mechanisms=("optimal",),
        confidence=choice.confidence,
        time_limit=choice.seconds,
        progress=lambda done, total: say(f"{done} of {total} budgets"),
    )
    # With a level every budget has two rows, of which the last one is for the population.
    # A dict keeps the last row of an equal budget.
    kept = {row.epsilon: row for row in comparison.rows}
    points: list[CurvePoint] = []
    for factor, budget in zip(CURVE_FACTORS, budgets, strict=True):
        row = kept[budget]
        points.append(CurvePoint(factor, row.nmi, row.upper_bound_nmi))
    return tuple(points)


def _curve_by_design(
    table: MemoryTable, joint: md.Joint, choice: Choice, say: Say
) -> tuple[CurvePoint, ...]:
    """The curve of rows or boxes: a design at every budget, each with its share of the time."""
    share = choice.seconds / len(CURVE_FACTORS)
    points: list[CurvePoint] = []
    refusal = ""
    for done, factor in enumerate(CURVE_FACTORS):
        say(f"{done} of {len(CURVE_FACTORS)} budgets")
        tried = replace(choice, factor=str(factor), time_limit=str(share))
        try:
            design = _designed_at(table, joint, tried)
        except (md.InputError, md.SolverFailure) as error:
            # Given columns may break a small budget alone; a larger one may still be kept.
            refusal = str(error)
            continue
        points.append(CurvePoint(factor, design.nmi, design.upper_bound_nmi))
    if not points:
        raise md.InputError(refusal)
    return tuple(points)


def _designed_at(table: MemoryTable, joint: md.Joint, choice: Choice) -> md.Design:
    """The design at the budget of `choice`, without reports: only its figures are used."""
    if choice.is_boxes:
        return searched_boxes(table, joint, choice, _silent)
    return searched(joint, choice, _silent)


def _silent(text: str) -> None:
    """Takes the progress of a single budget, which says nothing of the whole."""
