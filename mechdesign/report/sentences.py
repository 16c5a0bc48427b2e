"""Sentences that several texts share: populations, several releases, averages, groups, cells,
rules.

Three subjects have a text for people (``.._text``, ``.._sentences``) and a record for JSON outputs
(``.._record``):

- *population*: what a promise about a table says of the population behind it.
- *composition*: what several releases disclose together, beside what each does alone.
- *spending*: what a new channel discloses together with earlier releases.

The words are in the macros of ``terminal.txt.jinja``. `text_of` calls one of them with its facts;
the filters that macros may use are named in `_macros`. So ``text_of("spending", spending)`` fills
the macro `spending`, in which ``{{ achieved | budgets }}`` becomes "eps_l 0.5, eps_u 0.7, ..".
Other modules of reports use `text_of` for macros of their own.

*Averages*: each sentence says that an average is no promise for a record. `average_texts` are for a
design, a channel or a report: the budget, what the channel uses of it (rounded up), and behind them
the worst single lifts. `audit_average_texts` are the verdicts of an audit. Example: "Average: the
mutual information (nats) is at most 0.05; it is 0.0499."

*Smallest groups*: how many records share a released row, and how to ask for more. For the first
screen, for example: ::

    Every released row occurs at least 5 times where the counts are fixed. 1,464 of the 8,717 rows
    of the table are released (--smallest-group 1 allows all, with their frequencies).

*Cells*: how those of a table were read, as the channel records it. A reader who prepares a file for
a channel has to know what counts as an empty cell there, which texts are one symbol, and what is
released for a cell without a symbol. Nothing is said of a channel that takes every cell as it is
and refuses the others.

*Rules*: what none that picks people by their released rows exceeds. A rule picks released rows by
anything but the draws. Among the people of the table whom it picks, the expected number of those
with a sensitive value is at most the highest probability of the value at a released row times the
expected number of all (docs/explanation/rows-theory.md, proposition 6). For example, of an income
that 24.1 % of all people have, and at most 39.7 % at any released row: ::

    Of the people whom any rule picks by their released rows, at most about 4 in 10 (39.7 %) are
    expected to have income >50K; about 1 in 4 of all people do (24.1 %).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from functools import cache
from typing import Any

from mechdesign.auditing.averages import AverageVerdict
from mechdesign.auditing.composition import Composition
from mechdesign.auditing.population_promise import PopulationPromise
from mechdesign.auditing.verdict import Achieved
from mechdesign.channel.channel import Channel
from mechdesign.channel.record import AverageBudget
from mechdesign.core.wording import (
    about,
    at_least,
    at_most,
    factor_at_least,
    factor_at_most,
    listed,
    percent_of,
)
from mechdesign.mechanisms.result import Spending
from mechdesign.report import wording
from mechdesign.report.record import (
    PEOPLE_UNITS,
    RECORD_UNITS,
    Belief,
    Promise,
    Request,
    names_of,
)
from mechdesign.tables.cell_values import (
    DROP,
    MARGINAL,
    NEAREST,
    OUTPUT,
    REFUSE,
    SYMBOL,
    CellRules,
)
from mechdesign.tables.confidence import ConfidenceSet, scope_of
from mechdesign.tables.joint import Joint
from mechdesign.tables.uncovered_values import uncovered_sentence
from mechdesign.tables.variable import Symbol

MOST_CHANNEL_ROWS = 100
"""Symbols, or outputs, whose probabilities a terminal shows; a file has all."""

MOST_ENTRIES = 16
"""Probabilities of one symbol or output that a terminal shows, the largest first."""


# The template is read and compiled once, when its first text is needed.
@cache
def _macros() -> Any:
    """The macros of the template, with the filters and constants that they use."""
    filters = {
        "budgets": wording.achieved_text,
        "each": _budget_texts,
        "scope": scope_of,
        "uncovered": uncovered_sentence,
        "outwards": outwards,
        "short": wording.short,
        "short_title": wording.short_title,
        "title": wording.title,
        "percent_of": percent_of,
        "factor_at_least": factor_at_least,
        "factor_at_most": factor_at_most,
    }
    return wording.macros_of(
        "terminal.txt.jinja",
        filters,
        INFINITE=math.inf,
        MOST_CHANNEL_ROWS=MOST_CHANNEL_ROWS,
        MOST_ENTRIES=MOST_ENTRIES,
    )


def text_of(report: str, *facts: Any, **options: Any) -> str:
    """The text of a macro of ``terminal.txt.jinja``, without a final newline."""
    return wording.text_of(_macros(), report, *facts, **options)


def outwards(value: float, name: str) -> str:
    """A measure of leakage, rounded to what claims less; a plain probability to the nearest.

    A smallest lift must not look larger than it is, and everything else must not look smaller.
    """
    if name in ("min_lift", "min_log_lift"):
        return at_least(value)
    if name == "probability":
        return about(value)
    return at_most(value)


def population_record(promise: PopulationPromise | None) -> dict[str, Any] | None:
    """`population` of the JSON outputs: the budgets that hold there at a confidence level, the
    extreme lifts, and what merging outputs would give.
    """
    if promise is None:
        return None
    record = {
        "level": promise.level,
        **asdict(promise.achieved),
        "largest": asdict(promise.largest),
        "smallest": asdict(promise.smallest),
        "merged": None,
    }
    merged = promise.merged
    if merged is not None:
        record["merged"] = {
            "outputs": merged.groups,
            **asdict(merged.achieved),
            "lost_nmi": merged.lost,
        }
    return record


def other_table_sentences(channel: Channel, joint: Joint, file: str) -> list[str]:
    """That a verdict is about another table than that of the design, if it is; nothing of a public
    channel, whose table is not known.
    """
    own = channel.joint
    if own is None or _cells_of(own, joint.total) == _cells_of(joint, own.total):
        return []
    return [
        f"This is the verdict on {file} ({_size_of(joint)}). The channel makes its promise for the "
        f"table that it was designed for, which is another one ({_size_of(own)})."
    ]


def _cells_of(joint: Joint, factor: int) -> dict[tuple[Symbol, Symbol], int]:
    """The counts of a table that are not zero, by their symbols and times a factor."""
    cells: dict[tuple[Symbol, Symbol], int] = {}
    for secret, row in zip(joint.sensitive.symbols, joint.counts, strict=True):
        for symbol, records in zip(joint.useful.symbols, row, strict=True):
            if records:
                cells[secret, symbol] = records * factor
    return cells


def _size_of(joint: Joint) -> str:
    """How many records, or people, a table has."""
    if joint.records is None:
        return "weights or probabilities"
    units = RECORD_UNITS if joint.useful.people is None else PEOPLE_UNITS
    return wording.count(joint.records, *units)


def population_sentences(
    promise: PopulationPromise,
    confidence: ConfidenceSet | None,
    records: int,
    units: tuple[str, str] = RECORD_UNITS,
) -> list[str]:
    """Sentences for the terminal and reports; `confidence` is the set of a design with
    confidence, and `units` what `records` counts.
    """
    # Of people a promise for the population is always relative to their numbers of records.
    remedy = "--confidence"
    if units == PEOPLE_UNITS:
        remedy = "--promise relative --confidence"
    text = text_of("population", promise, confidence, records, units, remedy)
    return text.splitlines()


def composition_record(composition: Composition) -> dict[str, Any]:
    """The record of `compose --json`."""
    return asdict(composition) | {"exact": composition.exact}


def composition_text(
    composition: Composition, names: Sequence[str], subject: str = "A record"
) -> str:
    """Budgets alone, added up and together, and the worst outputs, without a final newline.

    `subject` is what is released: a record, or the records of a person.
    """
    # The sum is shown beside the joint budgets, because people expect it to bound these.
    rows = [("", "eps_l", "eps_u", "eps_ldp")]
    for name, alone in zip(names, composition.alone, strict=True):
        rows.append((wording.label(name), *_budget_texts(alone)))
    rows.append(("added up (no bound)", *_budget_texts(composition.sum)))
    rows.append(("together", *_budget_texts(composition.achieved)))
    return text_of("composition", composition, rows, subject)


def spending_texts(spending: Spending) -> list[str]:
    """The joint budget of a channel and the releases before it, in sentences."""
    return text_of("spending", spending).splitlines()


def spending_record(spending: Spending | None) -> dict[str, Any] | None:
    """`after` of `design --json`: what leaks before, and together; what is kept before, and now."""
    if spending is None:
        return None
    return {
        "before": asdict(spending.before.achieved),
        "together": composition_record(spending.together),
        "kept_before": spending.kept_before,
        "kept": spending.kept,
        "entropy": spending.entropy,
        "at_once": _at_once_record(spending),
    }


def _at_once_record(spending: Spending) -> dict[str, Any] | None:
    """The one channel that would release everything at once, and what it would keep beyond."""
    single = spending.at_once
    if single is None:
        return None
    # In nats; unknown where that of the releases is.
    gain: float | None = None
    if spending.kept is not None:
        gain = single.mutual_information - spending.kept
    return {
        "nmi": single.nmi,
        "mutual_information": single.mutual_information,
        "upper_bound_nmi": single.certificate.upper_bound_nmi,
        "gain": gain,
    }


def _budget_texts(achieved: Achieved) -> tuple[str, str, str]:
    """eps_l, eps_u and eps_ldp in nats, rounded up."""
    return (
        at_most(achieved.eps_l),
        at_most(achieved.eps_u),
        at_most(achieved.eps_ldp),
    )


# ----------------------------------------------------------------------------- averages

NAMES = {
    "mi": "mutual information (nats)",
    "tv": "total variation",
    "chi2": "chi2 information",
    "maximal-leakage": "maximal leakage (nats)",
    "guess": "success of the best guess",
    "gain": "expected gain of the best guess",
}
"""What is averaged over released values, by the name of the measure."""

NO_PROMISE_FOR_ONE = "An average promises nothing about one record"


def average_texts(
    averages: Sequence[AverageBudget],
    achieved: Achieved,
    sensitive: str,
    scope: str = "proven",
) -> tuple[str, ...]:
    """Budget and leakage of every average; the last text has the worst lifts, too.

    `scope` is that of the certificate of the design.
    """
    texts: list[str] = []
    for average in averages:
        text = f"Average: the {NAMES[average.measure]} is at most {_budget(average.budget)}"
        if average.achieved is not None:
            text += f"; it is {at_most(average.achieved)}"
        if average.keep is not None and average.lower_bound is not None:
            kept = percent_of(average.keep)
            text += f", and no such channel that keeps {kept} has less than "
            proof = wording.proof_text(scope)
            text += f"{at_least(average.lower_bound)} ({proof})"
        texts.append(f"{text}.")
    if not texts:
        return ()
    # An average may hide single values that give a secret away, so the worst ones are named.
    low = wording.short_factor(achieved.eps_l, upper=False)
    high = wording.short_factor(achieved.eps_u, upper=True)
    texts[-1] += (
        f" {NO_PROMISE_FOR_ONE}: the worst released values make a value of {sensitive} {low} to "
        f"{high} times as probable."
    )
    return tuple(texts)


def audit_average_texts(averages: Sequence[AverageVerdict]) -> list[str]:
    """The verdict of the audit on every average."""
    texts: list[str] = []
    for average in averages:
        verdict = "kept" if average.kept else "VIOLATED"
        texts.append(
            f"Average {NAMES[average.measure]}: {at_most(average.leakage)}, budget "
            f"{_budget(average.budget)}: {verdict}. {NO_PROMISE_FOR_ONE}."
        )
    return texts


def _budget(budget: float) -> str:
    """A budget as it was typed, if six digits have it; else rounded up."""
    short = f"{budget:.6g}"
    return short if float(short) == budget else at_most(budget)


# ---------------------------------------------------------------------- smallest groups

OPTION = "--smallest-group K"
"""How to ask for another number."""


def group_lines(
    k: int,
    *,
    known: Sequence[str],
    rows: int,
    released: int,
    single: int,
    rules: CellRules,
    of_people: bool = False,
) -> list[str]:
    """Sentences on the smallest group; none where every row is that of several records anyway.

    Parameters
    ----------
    k : int
        The smallest group; 1 where every row may be released.
    known : sequence of str
        The columns that an outsider can know; empty for all released ones.
    rows, released : int
        The distinct rows of the table, and those that are released.
    single : int
        Released rows that stand for a single record.
    rules : CellRules
        Those of the channel: records with an empty or unknown cell may be drawn, too.
    of_people : bool
        Whether a row is the sequence of the records of a person.
    """
    if k == 1:
        return _open_rows(single, of_people)
    what = "row"
    if known:
        what = f"combination of {', '.join(map(wording.label, known))}"
    common = (
        f"Every released {what} occurs at least {k:,} times where the counts are fixed"
    )
    drawn: list[str] = []
    if rules.missing != REFUSE:
        drawn.append("empty")
    if rules.unknown != REFUSE:
        drawn.append("unknown")
    if drawn:
        # A file with such a cell is not the table of the design, and only its counts are fixed.
        common += f", which they are not in a file with {' or '.join(drawn)} cells"
    share = (
        f"{released:,} of the {wording.count(rows, 'row')} of the table are released"
    )
    sentence = f"{common} ({OPTION} asks for another number). {share}."
    if released < rows:
        sentence = f"{common}. {share} (--smallest-group 1 allows all, with their frequencies)."
    lines = [sentence]
    if known and single:
        times = "occurs once" if single == 1 else "occur once"
        lines.append(
            f"{wording.count(single, 'released row')} {times}: whoever knows other columns, too, "
            "can tell them apart."
        )
    return lines


def _open_rows(single: int, of_people: bool) -> list[str]:
    """What is left open where every row may be released."""
    if not single:
        return []
    belong = "belongs" if single == 1 else "belong"
    if of_people:
        return [
            f"{wording.count(single, 'sequence')} of the table {belong} to a single person and can "
            f"be released: whoever knows it may find it. {OPTION} releases only those of K people."
        ]
    return [
        f"{wording.count(single, 'row')} of the table {belong} to a single record and can be "
        f"released: whoever knows the released columns of a person may find the row. {OPTION} "
        "releases only rows that K records have."
    ]


# -------------------------------------------------------------------------------- cells

NEAREST_ROW = (
    "A row that the table does not have is released as a draw of the nearest row that it has: the "
    "promise is about the records of the table, and of another record the release tells no more "
    "than its nearest row."
)


def cell_sentences(rules: CellRules) -> list[str]:
    """What a channel says of the cells of a table and of a release."""
    sentences: list[str] = []
    form: list[str] = []
    if rules.trim:
        form.append("without blanks at their ends")
    if rules.normalise != "none":
        form.append(f"in the Unicode form {rules.normalise}")
    if form:
        sentences.append(f"Cells are compared {' and '.join(form)}.")
    if rules.missing_codes:
        sentences.append(f"{listed(rules.missing_codes)} count as empty cells.")
    if rules.counted == SYMBOL:
        sentences.append("The empty cell is a symbol like the others.")
    elif rules.counted == DROP:
        which = f"{rules.left_out:,} records" if rules.left_out > 0 else "Records"
        sentences.append(f"{which} with an empty cell were left out of the table.")
    kinds = ((rules.missing, "an empty cell"), (rules.unknown, "an unknown symbol"))
    for rule, kind in kinds:
        if rule == REFUSE:
            continue
        if rule == NEAREST:
            sentences.append(NEAREST_ROW)
            continue
        what = "a draw as for a record of which nothing is known"
        if rule != MARGINAL:
            what = f"the output {rule.removeprefix(OUTPUT)}"
        sentences.append(f"In place of {kind}, {what} is released.")
    return sentences


# -------------------------------------------------------------------------------- rules


def rule_sentences(promise: Promise, request: Request) -> list[str]:
    """The sentence for the value that can change most.

    Nothing is said of single columns, of a relative promise, where other people have other shares
    before, and where the probabilities are not known.
    """
    belief = _most_raised(promise.beliefs)
    if belief is None or not request.of_rows or request.relative_to:
        return []
    most = wording.percent_at_most(belief.highest)
    share = wording.percent(belief.before)
    value = wording.label(belief.symbol)
    column = _column_of(promise, request, belief)
    of_all = wording.people_in(belief.before)
    if belief.highest >= 1:
        return [
            f"Some rule may pick people by their released rows who all have {column} {value}; "
            f"{of_all} of all people do ({share})."
        ]
    people = wording.people_in(belief.highest)
    limit = "" if people.startswith("fewer") else "at most "
    return [
        f"Of the people whom any rule picks by their released rows, {limit}{people} ({most}) are "
        f"expected to have {column} {value}; {of_all} of all people do ({share})."
    ]


def _column_of(promise: Promise, request: Request, belief: Belief) -> str:
    """The sensitive column of a value, where each of several is protected; else all together."""
    if not request.each:
        return names_of(request)[0]
    place = promise.beliefs.index(belief)
    return wording.label(request.symbol_columns[place])


def _most_raised(beliefs: Sequence[Belief]) -> Belief | None:
    """The belief that a released row can raise most."""
    if not beliefs:
        return None
    return max(beliefs, key=lambda belief: belief.highest - belief.before)
