"""The buttons that advise: what each column discloses about the protected one, and trial releases.

`md.assess` measures every column by the share of H(S) that its values tell about a record left out,
and by its largest lift (`leaks.disclosure`). `_disclosure_text` makes of both a sentence beside the
column on the page: "Alone gives away 2.1 % of the protected information; its worst value makes a
protected value 3.1 times as likely." A column that identifies records gets the advice to leave it
out instead.

`plan_table` also tries releases of a sample, as `mechdesign assess --plan` does.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import mechdesign as md
from mechdesign.app.choice import Choice
from mechdesign.app.memory_table import MemoryTable
from mechdesign.app.recipes import text_options
from mechdesign.app.results import Assessed, ColumnSays, Planned, Say

if TYPE_CHECKING:
    from mechdesign.leaks.assessment import Assessment, Disclosure


def assess_table(table: MemoryTable, choice: Choice, say: Say) -> Assessed:
    """What every column discloses about the protected ones."""
    return _assessed(_assessment(table, choice, say))


def plan_table(table: MemoryTable, choice: Choice, say: Say) -> Assessed:
    """The same, and what trial releases of a sample advise."""
    from mechdesign.comparison.planning import BINS, plan_release
    from mechdesign.report.assessment import (
        TRIALS_HEADER,
        plan_command,
        plan_sentences,
        trial_rows,
    )

    assessment = _assessment(table, choice, say)
    plan = plan_release(
        table.frame,
        assessment,
        progress=lambda trial: say(f"Trying a release of a sample: {trial}"),
    )
    planned = Planned(
        sentences=tuple(plan_sentences(plan)),
        header=TRIALS_HEADER,
        rows=tuple(trial_rows(plan)),
        released=plan.released,
        given=plan.given,
        bins=dict.fromkeys(plan.bins, BINS),
        factor=f"{plan.factor:g}",
        has_gaps=plan.has_gaps,
        command=plan_command(
            plan,
            table.path,
            choice.sensitive,
            [f"--{name}={value}" for name, value in text_options(table).items()],
        ),
    )
    return replace(_assessed(assessment), plan=planned)


def _assessment(table: MemoryTable, choice: Choice, say: Say) -> Assessment:
    """The assessment of all columns."""
    choice.check_secret()
    say("Measuring every column, then guessing from whole rows")
    return md.assess(table.frame, sensitive=list(choice.sensitive))


def _assessed(assessment: Assessment) -> Assessed:
    """The assessment in words."""
    from mechdesign.report import wording as w

    columns: list[ColumnSays] = []
    for column in assessment.columns:
        text = "Identifies records: leave it out."
        brief = "names records"
        if not column.identifier:
            text = _disclosure_text(column.disclosure)
            brief = f"tells {w.percent(column.disclosure.information)}"
        columns.append(ColumnSays(column.name, text, brief))
    return Assessed(tuple(columns), assessment.summary())


def _disclosure_text(disclosure: Disclosure) -> str:
    """What a column discloses: its information, its largest lift, and who is pinned down."""
    from mechdesign.report import wording as w

    share = w.percent(disclosure.information)
    text = f"Alone gives away {share} of the protected information"
    # No lift is reported where no value has two records or more.
    if disclosure.largest_lift is not None:
        lift = disclosure.largest_lift
        text += f"; its worst value makes a protected value {lift:.3g} times as likely"
    if disclosure.pinned:
        pinned = w.percent(disclosure.pinned)
        text += (
            f"; {pinned} of the records have a value that occurs with a single "
            "protected value only"
        )
    return f"{text}."
