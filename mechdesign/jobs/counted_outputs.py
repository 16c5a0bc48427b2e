"""Releases of which nothing is drawn: the ledger counts their possible outputs.

Whatever the value of one individual, several such releases together have at most as many possible
outputs as the product of their numbers (Farokhi 2019, Theorem 6); the logarithm of the product to
base 2 is what they tell in bits. An individual that takes part in k answers of one release counts
with its k-th power. For example, salaries in 16 cells and, later, in 10 other cells tell at most
log2(160) = 7.33 bits of one salary. The same release of the same records tells nothing new.

`enter_counted` enters such a release, and finds those of the same records before it;
`column_totals` adds them up, column by column. Releases that draw are left to the joint budget
(`drawn_uses`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from secrets import token_hex
from typing import Any

from mechdesign.core.balls import log2_of_powers_above
from mechdesign.core.documents import versions
from mechdesign.core.json_values import canonical
from mechdesign.core.wording import at_most, quoted
from mechdesign.formats.census import Content
from mechdesign.jobs.entries import DONE, Drawn, Entry, Use
from mechdesign.jobs.ledger import Ledger
from mechdesign.jobs.same_records import releases_of

QUANTISED = "quantised"
"""The form of a use of which nothing is drawn."""

SPENT = "spent"
"""The setting of an entry with the outputs of one answer, and in how many answers one individual
takes part.
"""


@dataclass(frozen=True)
class ColumnTotal:
    """What all releases of a column of some records tell together, in bits of one individual."""

    releases: int
    bits: float

    def sentence(self, column: str) -> str:
        """The total in words."""
        ways = "way" if self.releases == 1 else "ways"
        return (
            f"{quoted(column)} was released in {self.releases} {ways} in cells: at most "
            f"{at_most(self.bits)} bits of one individual"
        )


def drawn_uses(entries: Sequence[Entry]) -> list[Drawn]:
    """The draws in some entries, without the releases whose outputs are counted."""
    draws: list[Drawn] = []
    for entry in entries:
        draws += [drawn for drawn in entry.drawn if drawn.use.form != QUANTISED]
    return draws


def column_totals(entries: Sequence[Entry]) -> dict[str, ColumnTotal]:
    """What the releases without draws in some entries tell together of each column.

    Releases of data sets that share records count in full, since their outputs may differ.
    """
    outputs: dict[str, dict[tuple[str, str], tuple[int, int]]] = {}
    for entry in entries:
        for drawn in entry.drawn:
            if drawn.use.form != QUANTISED:
                continue
            column = outputs.setdefault(drawn.use.columns[0], {})
            # The way of releasing and the data set, by their hashes. (A job is named by its data
            # here: no key is involved.)
            release = (drawn.use.channel, drawn.job)
            number, answers = entry.settings[SPENT]
            # The same release once more tells nothing new, so it counts once.
            column[release] = max(column.get(release, (1, 1)), (number, answers))
    totals: dict[str, ColumnTotal] = {}
    for column, releases in outputs.items():
        bits = log2_of_powers_above(releases.values())
        totals[column] = ColumnTotal(len(releases), bits)
    return totals


def enter_counted(
    ledger: Ledger,
    content: Content,
    *,
    column: str,
    way: dict[str, Any],
    outputs: int,
    answers: int,
    output: str | None,
    source: str,
    target: str,
) -> ColumnTotal:
    """Enter a release without draws, and add up what all such releases of the column of these
    records tell.

    Parameters
    ----------
    ledger : Ledger
    content : Content
        The hashes of the records.
    column : str
        The column that is released.
    way : dict of JSON values
        What tells one way of releasing the column from another.
    outputs, answers : int
        The possible outputs of one answer, and in how many answers one individual takes part.
    output : str or None
        The hash of the bytes that were written.
    source, target : str
        The places of both.
    """
    # The reading of earlier versions, whose entries have such names.
    data_name = content.readings[-1].unordered
    time = datetime.now(UTC).isoformat(timespec="seconds")
    use = Use(
        channel=sha256(canonical(way).encode()).hexdigest(),
        columns=(column,),
        form=QUANTISED,
    )
    entry = Entry(
        id=token_hex(8),
        drawn=(Drawn(use=use, job=f"data {data_name}", draw=0),),
        source=source,
        target=target,
        state=DONE,
        started=time,
        finished=time,
        output=output,
        records=content.records,
        ordered=content.ordered,
        unordered=content.unordered,
        settings={SPENT: (outputs, answers)},
        versions=versions(),
    )
    # In one transaction, so that two processes at once each count the other or come after it.
    with ledger.changing() as db:
        earlier = releases_of(db, ledger.releases(db), content, None).entries
        ledger.enter(db, entry, content)
    return column_totals([*earlier, entry])[column]
