"""The button that assesses the columns: what each one discloses about the protected one."""

from __future__ import annotations

import mechdesign as md
from mechdesign.app.choice import Choice
from mechdesign.app.memory_table import MemoryTable
from mechdesign.app.results import Assessed, ColumnSays, Say
from mechdesign.app.searching import TENTHS


def assess_table(table: MemoryTable, choice: Choice, say: Say) -> Assessed:
    """What every column discloses about the protected ones."""
    from mechdesign.report import wording as w

    choice.check_secret()
    say("Measuring every column, then guessing from whole rows")
    assessment = md.assess(table.frame, sensitive=list(choice.sensitive))
    columns: list[ColumnSays] = []
    for column in assessment.columns:
        disclosure = column.disclosure
        if column.identifier:
            text = "Identifies records: leave it out."
        else:
            share = w.percent(disclosure.information, step=TENTHS)
            text = f"Holds {share} of the protected information"
            if disclosure.largest_lift is not None:
                lift = disclosure.largest_lift
                text += (
                    f"; one value makes a protected value {lift:.3g} times as probable"
                )
            if disclosure.pinned:
                pinned = w.percent(disclosure.pinned, step=TENTHS)
                text += (
                    f"; {pinned} of the records have a value that occurs with a single "
                    "protected value only"
                )
            text += "."
        columns.append(ColumnSays(column.name, text))
    return Assessed(tuple(columns), assessment.summary())
