"""Columns that should not be used as they are: identifiers, on both sides, and many numbers.

`refuse_identifier` looks at the ratio of symbols to records. 950 different names in 1,000 records
are an identifier: a channel has a row for each symbol, so its file would list the people. As a
sensitive column it is refused by `refuse_secret_identifier`. `many_numbers` looks at the texts of
the symbols. 60 different ages are 60 symbols, which bins would make fewer; that is advice and no
refusal.
"""

from __future__ import annotations

from collections.abc import Sequence

from mechdesign.core.errors import InputError
from mechdesign.core.wording import quoted
from mechdesign.tables.cell_values import kind_of
from mechdesign.tables.joint import Joint
from mechdesign.tables.variable import Variable

FEWEST_RECORDS = 100
"""Records from which a column can be refused as an identifier."""

IDENTIFYING = 0.9
"""Ratio of symbols to records above which a column identifies the records."""

MANY_NUMBERS = 40
"""Different numbers of a column from which bins are advised."""


def all_but_identifies(symbols: int, records: int) -> bool:
    """Whether a column of so many symbols is refused as one that identifies the records."""
    # In a small table nearly every record may be different whatever the column means.
    return records >= FEWEST_RECORDS and symbols > IDENTIFYING * records


def refuse_identifier(
    columns: Sequence[str], symbols: int, records: int | None
) -> None:
    """Raise InputError for useful columns with nearly as many symbols as records.

    `records` is None for tables without records, of weights or probabilities.
    """
    if records is None or not all_but_identifies(symbols, records):
        return
    name = quoted(",".join(columns))
    raise InputError(
        f"the useful column {name} has {symbols:,} symbols in {records:,} records, so "
        "it all but identifies them and the channel would list them; group its values "
        "(--bin for numbers, dates and times), choose another column "
        "(--leave-out, where all are released), or insist (--allow-identifier)"
    )


def refuse_secret_identifier(sensitive: Variable, records: int | None) -> None:
    """Raise InputError for a sensitive column with nearly as many symbols as records.

    A promise about such a column bounds what is told about each single record, so that nearly
    nothing can be kept, and its table has a row for every record. `records` is None for tables
    without records.
    """
    if records is None:
        return
    for secret in sensitive.secrets:
        if not all_but_identifies(len(secret), records):
            continue
        name = quoted(",".join(secret.columns))
        raise InputError(
            f"the sensitive column {name} has {len(secret):,} symbols in {records:,} records, so "
            "it names them and is no category to protect; name the column whose values are to be "
            "protected, or put its numbers into classes first"
        )


def many_numbers(joint: Joint) -> tuple[str, ...]:
    """The advice to use bins, where a column of many numbers is released number by number."""
    columns = joint.useful.columns
    symbols = joint.useful.symbols
    if len(columns) > 1 or any(joint.useful.bins) or len(symbols) <= MANY_NUMBERS:
        return ()
    # Numbers, dates or times; an empty text is a missing value among them.
    texts = [text for (text,) in symbols if text]
    kind = kind_of(texts)
    if kind is None:
        return ()
    advice = (
        f"the column {quoted(','.join(columns))} has {len(symbols):,} different "
        f"{kind}s, each a symbol of its own: --bin releases them in bins, --objective "
        "distance moves them as little as possible"
    )
    return (advice,)
