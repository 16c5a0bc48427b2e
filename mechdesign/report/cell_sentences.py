"""Sentences on how the cells of a table were read, as the channel records it.

A reader who prepares a file for a channel has to know what counts as an empty cell there, which
texts are one symbol, and what is released for a cell without a symbol. Nothing is said of a channel
that takes every cell as it is and refuses the others.
"""

from __future__ import annotations

from mechdesign.core.wording import listed
from mechdesign.tables.cell_rules import (
    DROP,
    MARGINAL,
    NEAREST,
    OUTPUT,
    REFUSE,
    SYMBOL,
    CellRules,
)

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
