"""The channel of whole rows: its search, and the result in words and files.

A row is released column after column, each by a channel that knows what is released already (a
level). The promise is about the whole row, for this table alone. `designed_rows` does it for the
page:

1. It counts the table and searches (`searched_rows`, by `md.design_rows`).
2. `_row_facts` writes the sentences at the top, from the exact audit.
3. `_row_beliefs` are bounds on P(s|row) that follow from the factors which the channel achieves:
   P(s) times exp(-eps_l) and times exp(eps_u).
4. `_meanings` reads the joint P(x_j, y_j) of each level: the true values behind a released one.
   `_row_moves` takes the worst rows of the report.
5. `_row_files` writes the channel and its reports, each for insiders and for everybody.

`trade_off` calls `searched_rows` alone, once for each budget.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

import mechdesign as md
from mechdesign.app.choice import RELATIVE, Choice
from mechdesign.app.memory_table import MemoryTable
from mechdesign.app.recipes import CHANNEL, command_of, script_of
from mechdesign.app.results import (
    JSON,
    TEXT,
    BeliefRow,
    Designed,
    Download,
    Meaning,
    Move,
    Say,
)
from mechdesign.app.searching import (
    BEYOND_GIVEN,
    MOST_MEANINGS,
    TENTHS,
    behind_text,
    belief_rows,
    channel_files,
    distance,
    factors,
    joint_of,
    progress_to,
    recipe_files,
    verdict_text,
)

if TYPE_CHECKING:
    from mechdesign.report.row_content import RowReport


def designed_rows(table: MemoryTable, choice: Choice, say: Say) -> Designed:
    """Search for the channel of whole rows, and describe it."""
    from mechdesign.report import wording as w
    from mechdesign.report.row_content import row_report
    from mechdesign.report.rows import row_design_text

    say("Reading the table")
    joint = joint_of(table, choice)
    result = searched_rows(table, joint, choice, say)
    unchanged: list[tuple[str, str]] = []
    for name, share in (result.truth or {}).items():
        unchanged.append((name, w.percent_at_least(share, step=TENTHS)))
    text = row_design_text(result)
    say("Writing the reports")
    report = row_report(result.channel)
    return Designed(
        title=f"A channel for rows of {w.title(choice.released)}",
        unit="row",
        facts=_row_facts(result, choice),
        unchanged=tuple(unchanged),
        beliefs=_row_beliefs(result, choice, joint),
        beliefs_note="Bounds that follow from the promise as it is achieved, for any released row.",
        meanings=_meanings(result.channel),
        worst=_row_moves(report),
        text=text,
        messages=(*joint.notices, *result.messages),
        files=(*_row_files(result, report, text), *recipe_files(choice, table)),
        command=command_of(choice, table),
        script=script_of(choice, table),
    )


def searched_rows(
    table: MemoryTable, joint: md.Joint, choice: Choice, say: Say
) -> md.RowDesign:
    """The design of whole rows; a refusal speaks of what the page has."""
    try:
        result = md.design_rows(
            table.frame,
            sensitive=list(choice.sensitive),
            release=list(choice.released),
            given=list(choice.given),
            notion=choice.notion(joint),
            promise=choice.promise,
            objective=choice.objective,
            bins=choice.used_bins or None,
            missing=choice.missing,
            time_limit=choice.seconds,
            progress=progress_to(say),
        )
    except md.NotPrivate as error:
        # Its advice is about options, which the page does not have; the reason before it stays.
        reason, _, _ = str(error).partition(" release them as levels")
        raise md.InputError(
            f"{reason[:1].upper()}{reason[1:].rstrip(';:')}. Give them the role 'release', or "
            "choose in step 3 that the given columns are known."
        ) from None
    # Without a confidence `md.design_rows` returns whole rows; the type says either.
    if not isinstance(result, md.RowDesign):
        raise TypeError("only a design with a level has boxes")
    return result


def _row_files(
    result: md.RowDesign, report: RowReport, text: str
) -> tuple[Download, ...]:
    """The channel file and its reports."""
    from mechdesign.channel.row_file import text_of
    from mechdesign.report.pages import html_page
    from mechdesign.report.plain_values import to_json
    from mechdesign.report.public_rows import public_row_page
    from mechdesign.report.rows import row_design_record
    from mechdesign.report.rows_page import report_page, report_record
    from mechdesign.report.writing import document_text

    record = to_json(row_design_record(result, CHANNEL)) + "\n"
    html = document_text(report_record(report), lambda: report_page(report), ".html")
    public = public_row_page(result.channel, satisfied=result.audit.satisfied)
    files = channel_files(
        channel=text_of(result.channel),
        report=html,
        public_report=html_page(public),
        public_channel=text_of(result.channel.public()),
    )
    return (
        *files,
        Download("report.txt", "Report as text", TEXT, text + "\n"),
        Download("report.json", "The same figures for programs", JSON, record),
    )


def _row_facts(result: md.RowDesign, choice: Choice) -> tuple[tuple[str, str], ...]:
    """The promise for the table, that there is none for the population, kept, and the worst row."""
    from mechdesign.report import wording as w

    secret = w.title(choice.sensitive)
    achieved = result.achieved
    span = factors(achieved.eps_l, achieved.eps_u)
    promise = f"A released row makes any value of {secret} {span} as probable"
    if choice.promise == RELATIVE:
        promise += BEYOND_GIVEN
    worst = result.audit.worst
    row = ", ".join(w.label(text) for text in worst.row) or "any row"
    return (
        (
            "Promise for the table",
            f"{promise} ({verdict_text(result.audit.satisfied)}).",
        ),
        (
            "Promise for the population",
            "None, and the leakage there is larger: choose a population in step 3 to promise it.",
        ),
        (
            "Kept",
            f"{w.percent_at_least(result.nmi)} of the information of all released columns; no "
            f"mechanism with this promise keeps more than "
            f"{w.percent_at_most(result.upper_bound_nmi)} (proven).",
        ),
        (
            "Worst released row",
            f"{row}: makes {secret} = {w.label(worst.sensitive)} {worst.lift:.6g} times as "
            "probable.",
        ),
    )


def _row_beliefs(
    result: md.RowDesign, choice: Choice, joint: md.Joint
) -> tuple[BeliefRow, ...]:
    """Before and after for every protected value, from the exact factors of the whole channel."""
    # Relative lifts start from P(s|given), of which there is one for each stratum.
    if choice.promise == RELATIVE:
        return ()
    return belief_rows(joint.sensitive.names, joint.p_s.tolist(), result.achieved)


def _meanings(channel: md.RowChannel) -> tuple[Meaning, ...]:
    """The released values of every column with the true values behind them."""
    from mechdesign.report import wording as w
    from mechdesign.report.row_content import level_joints

    rows: list[Meaning] = []
    # P(x_j, y_j) of each level: its columns are P(y_j) P(x_j|y_j).
    for level, joint in enumerate(level_joints(channel)):
        variable = channel.levels[level]
        shares = joint.sum(axis=0)
        order = np.argsort(-shares, kind="stable")
        for output in order[:MOST_MEANINGS].tolist():
            # What is never released has no posterior.
            if shares[output] <= 0.0:
                continue
            posterior = (joint[:, output] / shares[output]).tolist()
            named = zip(variable.names, posterior, strict=True)
            rows.append(
                Meaning(
                    group=w.title(variable.columns),
                    released=w.label(channel.labels[level][output]),
                    # A sum of rounded probabilities may exceed 1 by the rounding.
                    share=w.percent(min(1.0, float(shares[output])), step=TENTHS),
                    behind=behind_text([entry for entry in named if entry[1] > 0.0]),
                )
            )
    return tuple(rows)


def _row_moves(report: RowReport) -> tuple[Move, ...]:
    """The released rows that move a probability most, worst first."""
    from mechdesign.report import wording as w

    moves: list[Move] = []
    for worst in report.worst:
        distances: list[float] = []
        for before, after in zip(worst.prior, worst.posterior, strict=True):
            # A secret that nobody of the stratum has stays impossible, and moves by nothing.
            moved = 0.0
            if before > 0.0:
                moved = distance(after / before)
            distances.append(moved)
        most = distances.index(max(distances))
        moves.append(
            Move(
                released=", ".join(w.label(text) for text in worst.row),
                symbol=w.label(report.channel.sensitive.names[most]),
                before=w.percent(worst.prior[most], step=TENTHS),
                after=w.percent(worst.posterior[most], step=TENTHS),
            )
        )
    return tuple(moves)
