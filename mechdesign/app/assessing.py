"""The button that assesses the columns: what each one discloses about the protected one.

`md.assess` measures every column by the share of H(S) that its values tell about a record left out,
and by its largest lift (`leaks.disclosure`). `_disclosure_text` makes of both a sentence beside the
column on the page: "Alone gives away 2.1 % of the protected information; its worst value makes a
protected value 3.1 times as likely." A column that identifies records gets the advice to leave it
out instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import mechdesign as md
from mechdesign.app.choice import Choice
from mechdesign.app.memory_table import MemoryTable
from mechdesign.app.results import Assessed, ColumnSays, Say
from mechdesign.app.searching import TENTHS

if TYPE_CHECKING:
    from mechdesign.leaks.assessment import Disclosure


def assess_table(table: MemoryTable, choice: Choice, say: Say) -> Assessed:
    """What every column discloses about the protected ones."""
    choice.check_secret()
    say("Measuring every column, then guessing from whole rows")
    assessment = md.assess(table.frame, sensitive=list(choice.sensitive))
    columns: list[ColumnSays] = []
    for column in assessment.columns:
        text = "Identifies records: leave it out."
        if not column.identifier:
            text = _disclosure_text(column.disclosure)
        columns.append(ColumnSays(column.name, text))
    return Assessed(tuple(columns), assessment.summary())


def _disclosure_text(disclosure: Disclosure) -> str:
    """What a column discloses: its information, its largest lift, and who is pinned down."""
    from mechdesign.report import wording as w

    share = w.percent(disclosure.information, step=TENTHS)
    text = f"Alone gives away {share} of the protected information"
    # No lift is reported where no value has two records or more.
    if disclosure.largest_lift is not None:
        lift = disclosure.largest_lift
        text += f"; its worst value makes a protected value {lift:.3g} times as likely"
    if disclosure.pinned:
        pinned = w.percent(disclosure.pinned, step=TENTHS)
        text += (
            f"; {pinned} of the records have a value that occurs with a single "
            "protected value only"
        )
    return f"{text}."
