"""An assessment of a table (`leaks.assessment`) in words, and as a page.

Text and page say the same: sentences on the whole row, a table of the columns and one of pairs of
columns, the worst first. `assessment_text` and `assessment_page` lay them out, and share the
functions that make the sentences (`_opening_texts`, `_note_texts`) and the cells of a line
(`_figures`). They differ in how names are shown: a page shortens them (`short`), a terminal
does not (`wording.label`).

*A plan* of a release (`comparison.planning`) has trials, advice, and a command.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeAlias

from mechdesign.comparison.planning import (
    BINS,
    NOT_TRIED,
    PLAN_SECONDS,
    Plan,
    Trial,
    least_factor,
)
from mechdesign.core.wording import listed, seen
from mechdesign.formats.column_names import names_text
from mechdesign.leaks.assessment import Assessment, ColumnAssessment, Disclosure
from mechdesign.report import blocks
from mechdesign.report.wording import (
    aligned,
    count,
    in_reading_order,
    item,
    label,
    paragraph,
    people_in,
    percent,
    short,
)

_Shown: TypeAlias = Callable[[str], str]
"""How the name of a column is shown."""

SHOWN_SYMPTOMS = 3
"""Symptoms of one kind that are shown."""

SHOWN_SHARES = 8
"""Sensitive symbols whose shares are shown."""

HEADER = (
    "column",
    "values",
    "tells",
    "raises",
    "lowers",
    "gives away",
    "note",
)

PAIR_HEADER = ("columns", "values", "tells", "raises", "lowers", "gives away")

LEFT = (0, 6)
"""Columns of words, which are aligned to the left."""

LEGEND = (
    "'tells' is the share of the information in the sensitive column that a value gives about "
    "a record, read from the other records with that value. 'raises' and 'lowers' say how many "
    "times as likely as before some value makes a sensitive one, at most and at least: exact for "
    "this table, over values of two records or more. 'gives away' is the share of the records "
    "whose value comes again, always with one sensitive value."
)


def assessment_text(assessment: Assessment) -> str:
    """The text of ``mechdesign assess``."""
    rows: list[tuple[str, ...]] = [HEADER]
    for column in assessment.columns:
        rows.append(_column_row(column, label))
    lines: list[str] = []
    symptoms = _symptom_texts(assessment)
    if symptoms:
        lines += ["To settle first:", *(item(text) for text in symptoms), ""]
    lines += [paragraph(line, "") for line in _opening_texts(assessment)]
    lines += ["", "Columns, worst first:"]
    # The last column is often empty.
    lines += [line.rstrip() for line in aligned(rows, left=LEFT)]
    if assessment.pairs:
        pairs: list[tuple[str, ...]] = [PAIR_HEADER]
        for pair in assessment.pairs:
            pairs.append(_figures(pair, label))
        lines += ["", "Pairs, worst first:", *aligned(pairs, left=(0,))]
    lines.append("")
    lines += [paragraph(note, "") for note in (*_note_texts(assessment), LEGEND)]
    return "\n".join(lines)


def assessment_page(
    assessment: Assessment,
    source: str,
    again: str,
    plan: tuple[blocks.Section, ...] = (),
) -> blocks.Document:
    """The same as a page for those who may see the data; `again` is the command that repeats it,
    and `plan` the section on what to release, if it was asked for.
    """
    columns = [_shaded_row(column) for column in assessment.columns]
    pairs = [blocks.cells(*_figures(pair, short)) for pair in assessment.pairs]
    opening = blocks.paragraphs(_opening_texts(assessment))
    notes = blocks.paragraphs(_note_texts(assessment))
    return blocks.Document(
        title="What the table says about the sensitive column",
        banner="Internal report: it is computed from the data. Do not publish.",
        internal=True,
        lead=(
            f"What the columns of {label(source)} say about {listed(assessment.sensitive)}, "
            f"before any release."
        ),
        highlights=_cards(assessment),
        sections=(
            *_symptom_section(assessment),
            *plan,
            blocks.Section("row", "The whole row", (*opening, *notes)),
            blocks.Section(
                "columns",
                "Columns",
                (
                    *blocks.grid(
                        "Columns, worst first", HEADER, columns, "columns", LEFT
                    ),
                    blocks.Text(LEGEND),
                ),
            ),
            blocks.Section(
                "pairs",
                "Pairs of columns",
                (
                    *blocks.grid(
                        "Pairs, worst first", PAIR_HEADER, pairs, "pairs", (0,)
                    ),
                    blocks.Lines((("Assess again:", again),)),
                ),
            ),
        ),
        footer="Written by mechdesign.",
    )


def joint_figure(assessment: Assessment) -> str:
    """One sentence: how well the whole row guesses S, against guessing without it."""
    guess = assessment.guess
    sensitive = ", ".join(label(name) for name in assessment.sensitive)
    number = len(assessment.row.columns)
    subject, without = f"All {number:,} columns together guess", "them"
    if number == 1:
        subject = f"The column {label(assessment.row.columns[0])} alone guesses"
        without = "it"
    sentence = (
        f"{subject} {sensitive} right for {percent(guess.right)} of the {assessment.units}, "
        f"against {percent(guess.right_without)} without {without}"
    )
    text = (
        f"{sentence}; of the 5 % that the guess is surest of, "
        f"{percent(guess.surest_right)} are right."
    )
    if guess.right <= guess.right_without:
        text += f" So this guess is no better than one without {without}; another one may be."
    return text


def _worst_column(assessment: Assessment, sensitive: str) -> list[str]:
    """A sentence on the column that tells most by itself; none where a single one was read."""
    others = [column for column in assessment.columns if not column.identifier]
    if len(others) < 2 or others[0].disclosure.largest_lift is None:
        return []
    worst = others[0].disclosure
    return [
        f"{label(worst.columns[0])} says most by itself: it tells "
        f"{percent(worst.information)} of what there is to know about {sensitive}, and its worst "
        f"value makes one of {sensitive} {_lift(worst.largest_lift)} times as likely."
    ]


def _symptom_texts(assessment: Assessment) -> list[str]:
    """A sentence for each thing to settle, with the option that does; few of one kind."""
    texts: list[str] = []
    times: Counter[str] = Counter()
    for symptom in assessment.symptoms:
        times[symptom.kind] += 1
        if times[symptom.kind] <= SHOWN_SYMPTOMS:
            remedy = f": {symptom.option}" if symptom.option else ""
            texts.append(f"{symptom.text}{remedy}")
    hidden = sum(max(0, number - SHOWN_SYMPTOMS) for number in times.values())
    if hidden:
        texts.append(f"and {hidden:,} more of these kinds; all are in --json")
    return texts


def _symptom_section(assessment: Assessment) -> list[blocks.Section]:
    """The same as the first section of a page; none where there is nothing to settle."""
    texts = _symptom_texts(assessment)
    if not texts:
        return []
    return [blocks.Section("doctor", "To settle first", blocks.paragraphs(texts))]


def _cards(assessment: Assessment) -> tuple[tuple[str, str], ...]:
    """The cards at the top of the page: (title, text) pairs."""
    guess = assessment.guess
    return (
        (assessment.units.capitalize(), f"{assessment.records:,}"),
        ("Guessed right from the whole row", percent(guess.right)),
        ("Guessed right without it", percent(guess.right_without)),
        ("Rows that occur once", percent(assessment.unique_rows)),
    )


def _opening_texts(assessment: Assessment) -> list[str]:
    """Sentences on the records, the shares of the sensitive symbols, and the whole row."""
    # A symbol may be long, and its share must be seen.
    shares: list[str] = []
    for name, share in in_reading_order(assessment.shares.items(), lambda one: one[0]):
        shares.append(f"{short(name)} {percent(share)}")
    first = ", ".join(shares[:SHOWN_SHARES])
    if len(shares) > SHOWN_SHARES:
        first += f" and {len(shares) - SHOWN_SHARES:,} more"
    sensitive = ", ".join(label(name) for name in assessment.sensitive)
    size = count(assessment.records, assessment.unit, assessment.units)
    lines = [
        f"{size}. Sensitive: {sensitive} ({first}).",
        joint_figure(assessment),
        *_worst_column(assessment, sensitive),
    ]
    if assessment.guess.model != "none":
        auc = ""
        if assessment.guess.auc is not None:
            auc = f" (AUC {assessment.guess.auc:.3f})"
        lines.append(
            f"The guess is {assessment.guess.model}, cross-validated on "
            f"{count(assessment.guess.records, assessment.unit, assessment.units)}{auc}."
        )
    lines.append(
        f"{percent(assessment.unique_rows)} of the {assessment.units} have a row that no other "
        f"{assessment.unit} has."
    )
    return lines


def _note_texts(assessment: Assessment) -> Sequence[str]:
    """Sentences on identifiers, rare sensitive symbols and columns that were not read."""
    notes: list[str] = []
    identifiers: list[str] = []
    for column in assessment.columns:
        if column.identifier:
            identifiers.append(column.name)
    if identifiers:
        notes.append(
            f"Left out of pairs and rows, because almost every record has a value of its own: "
            f"{listed(identifiers, quote=seen)}."
        )
    if assessment.rare_secrets:
        names = listed(assessment.rare_secrets, quote=seen)
        notes.append(
            f"Fewer than 10 records each: {names}. The table says little about these "
            "people, and no promise about them can hold for a population at small cost."
        )
    if assessment.unreadable:
        names = listed(assessment.unreadable, quote=seen)
        notes.append(f"Not looked at (lists, structures or bytes): {names}.")
    return notes


def _shaded_row(column: ColumnAssessment) -> tuple[blocks.Cell, ...]:
    """A row of the page's table: the more a column tells, the darker is that cell."""
    row = list(blocks.cells(*_column_row(column, short)))
    tells = HEADER.index("tells")
    strength = column.disclosure.information
    row[tells] = blocks.Cell(row[tells].text, strength=strength)
    return tuple(row)


def _column_row(column: ColumnAssessment, shown: _Shown) -> tuple[str, ...]:
    """The cells of a column, in the order of `HEADER`."""
    notes: list[str] = []
    if column.identifier:
        # Nearly all of its values are rare, which needs no saying beside this.
        notes.append("identifies records")
    elif column.rare_values:
        notes.append(f"{count(column.rare_values, 'value')} of fewer than 10 records")
    return (*_figures(column.disclosure, shown), ", ".join(notes))


def _figures(disclosure: Disclosure, shown: _Shown) -> tuple[str, ...]:
    """The cells of a column or pair, in the order of `PAIR_HEADER`."""
    return (
        " x ".join(shown(name) for name in disclosure.columns),
        f"{disclosure.values:,}",
        percent(disclosure.information),
        _lift(disclosure.largest_lift),
        _lift(disclosure.smallest_lift),
        percent(disclosure.pinned),
    )


def _lift(lift: float | None) -> str:
    """A lift, or a dash where no value has two records or more."""
    return "-" if lift is None else f"{lift:.3g}"


# --------------------------------------------------------------------------------- plan

TRIALS_HEADER = ("trial", "unchanged", "gain", "worst column", "a rule finds at most")

LEFT_IN_TRIALS = (0, 3, 4)


def trial_rows(plan: Plan) -> list[tuple[str, ...]]:
    """A line for each trial, below `TRIALS_HEADER`."""
    rows: list[tuple[str, ...]] = []
    for trial in plan.trials:
        name = f"factor {trial.factor:g}"
        if trial.left_out:
            name += f", without {', '.join(map(label, trial.left_out))}"
        if trial.given:
            name += f"; {', '.join(map(label, trial.given))} given"
        if trial.bins:
            name += f"; {', '.join(map(label, trial.bins))} in bins"
        if trial.cells is None:
            why = "not tried" if trial.refusal == NOT_TRIED else "refused"
            rows.append((name, "-", "", why, ""))
            continue
        rows.append(
            (
                name,
                percent(trial.cells),
                "" if trial.gain is None else f"{100 * trial.gain:+.1f}",
                f"{label(trial.worst)} {percent(trial.worst_cells)}",
                _finds(trial),
            )
        )
    return rows


def _finds(trial: Trial) -> str:
    """What a rule finds, beside what all have."""
    most = percent(trial.finds)
    return f"{most} {label(trial.value)} (of all {percent(trial.share)})"


def plan_sentences(plan: Plan) -> list[str]:
    """What the trials are, and what they advise."""
    texts = [
        f"Tried on {plan.sampled:,} of {plan.records:,} records. It is no promise: a design of the "
        "whole table keeps more or less, and 'unchanged' is the expected share of cells that stay. "
        "With factor 2 no value of the secret becomes more than twice, or less than half, as "
        "likely. 'Gain' is what the columns of a trial gain over the same columns in the release "
        "of all, in points of unchanged cells. Of a column in bins, a cell in its own bin is "
        "unchanged."
    ]
    if plan.identifiers:
        texts.append(f"Leave out, since they name records: {listed(plan.identifiers)}.")
    slowest = max(trial.seconds for trial in plan.trials)
    texts.append(
        f"A trial took up to {slowest:.0f} s of processor time. A design of the whole table takes "
        "up to the 30 s of --time-limit, and more than that finds more."
    )
    if any(trial.refusal == NOT_TRIED for trial in plan.trials):
        texts.append(
            f"No further trial was begun after {PLAN_SECONDS:.0f} s: 'not tried' are those that "
            "were left."
        )
    chosen = _chosen(plan)
    if chosen is None or chosen.cells is None:
        why = "" if chosen is None or not chosen.refusal else f" ({chosen.refusal})"
        texts.append(
            f"No trial gave a channel{why}. Release other columns or fewer, or put numbers into "
            "bins."
        )
        return texts
    stay = people_in(chosen.cells).replace("about ", "")
    advice = f"Advice: a factor of {plan.factor:g}, where about {stay} cells stay as they are"
    if plan.left_out:
        advice += f", without {listed(plan.left_out)}"
    if plan.bins:
        advice += f", with {listed(plan.bins)} in bins"
    if plan.given:
        verb = "is" if len(plan.given) == 1 else "are"
        advice += f". {listed(plan.given)} {verb} released as given, without any change"
    if not plan.is_enough:
        advice += ". That is little: give fewer columns, or a larger factor"
    texts.append(f"{advice}.")
    return texts


def _chosen(plan: Plan) -> Trial | None:
    """The trial that is advised."""
    for trial in plan.trials:
        wanted = (plan.factor, plan.left_out, plan.bins, plan.given)
        if (trial.factor, trial.left_out, trial.bins, trial.given) == wanted:
            return trial
    return None


def plan_command(
    plan: Plan, table: str, sensitive: tuple[str, ...], reading: Sequence[str] = ()
) -> str:
    """The design that is advised, as a line for the shell; `reading` are the options by which the
    table was read.
    """
    words = ["mechdesign", "design", table, *reading]
    words += ["--sensitive", names_text(sensitive), "--release", "all"]
    left_out = (*plan.identifiers, *plan.left_out, *plan.not_assessed)
    if left_out:
        words += ["--leave-out", names_text(left_out)]
    if plan.given:
        words += ["--given", names_text(plan.given)]
    for name in plan.bins:
        words += ["--bin", f"{name}={BINS}"]
    if plan.has_gaps:
        words += ["--missing", plan.missing]
    least = least_factor(plan.factor)
    words += ["--at-most-times", f"{plan.factor:g}", "--at-least-times", f"{least:g}"]
    return shlex.join([*words, "--output", "channel.json"])


def plan_text(plan: Plan, command: str) -> str:
    """The plan as `assess --plan` prints it."""
    lines = ["Plan", *[paragraph(text) for text in plan_sentences(plan)], ""]
    lines += aligned([TRIALS_HEADER, *trial_rows(plan)], left=LEFT_IN_TRIALS)
    chosen = _chosen(plan)
    if chosen is not None and chosen.cells is not None:
        lines += ["", f"Next:  {command}"]
    return "\n".join(lines)


def plan_section(plan: Plan, command: str) -> blocks.Section:
    """The plan as a part of a page."""
    rows = [blocks.cells(*row) for row in trial_rows(plan)]
    return blocks.Section(
        "plan",
        "Plan",
        (
            *blocks.paragraphs(plan_sentences(plan)),
            *blocks.grid("Trials", TRIALS_HEADER, rows, "trials", LEFT_IN_TRIALS),
            blocks.Lines((("The release that is advised:", command),)),
        ),
    )
