"""Write a channel for a database, for R, or as a plain lookup table.

`export` has two steps:

1. `lookup_of` makes the lookup table: for every input the intervals of integers below 2^53 that
   lead to each output. With W(a|x) = 3/4 and W(b|x) = 1/4 the input x has [0, 3 * 2^51) for a and
   [3 * 2^51, 2^53) for b. As CSV this is all.
2. SQL (`_sql`, with `statements`) and R (`r_script`) add a script around it. The
   script hashes a secret key and the identifier of a record to an integer below 2^53, and looks up
   the interval that has it: 6560798095827001 is in the first one, so the record gets a.

A uniform integer is in the interval of an output with exactly its probability W(y|x). Where the
rows of a channel have sums of their own, W is rounded to the sum 2^53 first (`with_one_sum` of
`lookup`).

The R script is the template ``draw.r.jinja``, which `r_script` fills with the names of columns and
the texts that are hashed between key and identifier, each as a constant of R (`r_text`). It draws
as the SQL does.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mechdesign.auditing.stated import refuse_broken
from mechdesign.channel.channel import Channel
from mechdesign.core.display import Described
from mechdesign.core.errors import InputError
from mechdesign.core.files import EXISTS_OVERWRITE, PathLike, check_target, replacing
from mechdesign.core.wording import listed, quoted
from mechdesign.exporting.lookup import Lookup, lookup_of
from mechdesign.exporting.statements import (
    DIALECTS,
    DRAW,
    KEY_DIGITS,
    ORDER,
    PREPARED,
    Statements,
    commented,
    dialect_named,
    purpose_of,
)

SQL = "sql"
R = "r"
CSV = "csv"
TARGETS = (SQL, R, CSV)
"""Forms in which a channel can be written."""

EXACT = "Kept of `mechdesign apply`: each draw has exactly the probability of the channel; the same"
ROUNDED = (
    "The probabilities are those of the channel, rounded to multiples of 2^-53; the promise was",
    "decided again for the rounded ones, exactly.",
    "Kept of `mechdesign apply`: each draw has exactly the rounded probability; the same",
)
KEPT = (
    "key and identifier give the same draw again; unknown symbols, and identifiers that are empty",
    "or occur twice, are an error; only released columns leave; their order is that of a hash.",
)
NOT_KEPT = (
    "Not kept: there is no ledger, so nothing stops a second release with another key or channel,",
    "or notices that a record has changed since its first release; other columns are not",
    "inspected; there is no manifest. The draws are others than those of `apply`: to release a",
    "record through both is to release it twice.",
)
"""The properties of the exported draws, as comments in every script."""


@dataclass(frozen=True, repr=False)
class Export(Described):
    """A channel in another form.

    Attributes
    ----------
    text : str
        The whole file.
    lookup : Lookup
        The intervals of integers from which it draws.
    statements : tuple of str
        With `sql`: the statements before the query, which make the temporary table of intervals.
    query : str or None
        With `sql`: the query that draws. Its one parameter is the key: ``$key`` in DuckDB, ``$1``
        in PostgreSQL, ``:key`` in Spark.
    """

    text: str
    lookup: Lookup
    statements: tuple[str, ...] = ()
    query: str | None = None

    def __repr__(self) -> str:
        return f"Export({self.summary()})"

    def summary(self) -> str:
        """The size of the lookup table, and the columns that it needs of a record."""
        columns = listed(self.lookup.columns)
        return f"{self.lookup.size:,} intervals, for records with {columns}"

    def save(self, path: PathLike, overwrite: bool = False) -> None:
        """Write the file.

        Raises
        ------
        InputError
            If it exists (without `overwrite`) or cannot be written.
        """
        check_target(path, force=overwrite, exists=EXISTS_OVERWRITE)
        with replacing(path, force=overwrite, exists=EXISTS_OVERWRITE) as temporary:
            temporary.write_text(self.text, encoding="utf-8", newline="\n")


def export(
    channel: Channel,
    to: str = SQL,
    *,
    dialect: str = DIALECTS[0].name,
    table: str = "records",
    identity: str = "id",
) -> Export:
    """Write a channel as SQL, as an R script, or as CSV, for tools that cannot run Python.

    A draw is the first 53 bits of SHA-256 over the key, the channel and the record's identifier,
    compared with the cumulative integers of the channel. The key is 64 secret hexadecimal digits;
    it is a parameter of the query and in no file.

    As with `apply`, the probabilities are exact, the same key and identifier give the same draw
    again, and unknown symbols are refused. There is no ledger, no inspection of other columns, and
    no manifest.

    Parameters
    ----------
    channel : Channel
        Rows with other sums than 2^53, such as those that keep the law of a table, are rounded to
        it and judged again. The file holds the probabilities P(y|x) and nothing else of
        the table.
    to : {'sql', 'r', 'csv'}
        'csv' is the lookup table alone, which the R script reads.
    dialect : {'duckdb', 'postgres', 'spark'}
        Of the SQL.
    table : str
        The table or view with the records, as the database spells it, perhaps with a schema before
        a dot.
    identity : str
        Its column that identifies a record; no two records share a value.

    Returns
    -------
    Export

    Raises
    ------
    InputError
        If its rows are rounded and cannot be judged again; for SQL and R if the channel has bins
        that cannot be written there; if a name is unknown; or if the database takes two columns
        for one.
    NotPrivate
        If the table of the channel disproves its promise, or that of its rounded rows.
    """
    if to not in TARGETS:
        raise InputError(f"--to ({quoted(to)}) must be one of {listed(TARGETS)}")
    if not table or not identity:
        raise InputError("the table and its identifying column need names")
    lookup = lookup_of(channel)
    refuse_broken(channel)
    if to == CSV:
        return Export(lookup.csv_text(), lookup)
    if to == R:
        _refuse_bins(lookup)
        return Export(r_script(lookup, identity, _properties(lookup)), lookup)
    return _sql(lookup, dialect, table, identity)


def _sql(lookup: Lookup, dialect_name: str, table: str, identity: str) -> Export:
    """The script of one dialect: comments, tables of intervals, and the stored query."""
    dialect = dialect_named(dialect_name)
    if dialect.ignores_case:
        _refuse_names_of_one_column((identity, *lookup.columns), dialect.title)
    statements = Statements(lookup, dialect, table, identity)
    table_statement = statements.table_statement()
    query = statements.query()
    # Whoever finds the file must learn from it what it does, and what it does not guard against.
    head = [
        f"Draws releases through a channel of mechdesign, in {dialect.title}.",
        f"Channel: SHA-256 {lookup.digest}.",
        *_properties(lookup),
        f"The key is the parameter {dialect.key}: {KEY_DIGITS} lower-case hexadecimal digits.",
        "It is secret, and belongs into no file.",
        dialect.usage,
    ]
    parts = [table_statement, dialect.prepared(PREPARED, query)]
    text = commented(head) + "".join(f"\n{part};\n" for part in parts)
    return Export(text, lookup, (table_statement,), query)


def _refuse_names_of_one_column(names: Sequence[str], database: str) -> None:
    """Raise InputError for names that differ in case alone: both would read the same column."""
    spellings: dict[str, str] = {}
    for name in names:
        other = spellings.setdefault(name.lower(), name)
        if other != name:
            raise InputError(
                f"{database} takes the columns {quoted(other)} and {quoted(name)} for one; rename "
                "one in the table before the channel is designed"
            )


def _properties(lookup: Lookup) -> tuple[str, ...]:
    """What the draws keep and what they do not keep, as comments."""
    first = ROUNDED if lookup.is_rounded else (EXACT,)
    return (*first, *KEPT, *NOT_KEPT)


def _refuse_bins(lookup: Lookup) -> None:
    """Raise InputError for bins: the script compares texts, and computes no labels of numbers."""
    for part, column in enumerate(lookup.columns):
        if lookup.inputs.bins_of(part) is not None:
            raise InputError(
                f"{quoted(column)} is released in bins, which the R script does not compute; "
                "export to SQL, or release it with apply"
            )


def r_text(text: str) -> str:
    r"""A constant text of R, in ASCII, with the escapes of JSON, which R has, too.

    Characters beyond 16 bits are written as \U..., for R has no surrogates.
    """
    parts: list[str] = []
    for character in text:
        if ord(character) > 0xFFFF:
            parts.append(f"\\U{ord(character):08x}")
        else:
            # Without the quotes that JSON puts around it.
            parts.append(json.dumps(character)[1:-1])
    return '"' + "".join(parts) + '"'


def r_script(lookup: Lookup, identity: str, notes: Sequence[str]) -> str:
    """The script for a lookup table and the column that identifies a record."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment: Any = Environment(
        loader=PackageLoader("mechdesign.exporting", ""),
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["text"] = r_text
    return environment.get_template("draw.r.jinja").render(
        identity=identity,
        key_digits=KEY_DIGITS,
        lookup=lookup,
        notes=notes,
        draw=purpose_of(lookup.digest, DRAW),
        order=purpose_of(lookup.digest, ORDER),
        text=r_text,
    )
