"""SQL that draws from a lookup table, in the database that has the records.

One statement creates a temporary table of intervals. The query numbers every record by a hash of
the key and its identifier, looks up the interval that has the number, and refuses records without
one. The key is a parameter, so that it is in no file and in no text of a query. In short: ::

    WITH mechdesign_key AS (..),      -- the key, and whether it is one
      mechdesign_records AS (..),     -- the columns as text, and whether an identifier is unique
      mechdesign_draws AS (..),       -- a number below 2^53 for each record
      mechdesign_matched AS (..),     -- the interval that has the number: an output
      mechdesign_checked AS (..)      -- the problem of each record, or NULL
    SELECT .. FROM mechdesign_checked ORDER BY place

*Dialects* are the parts of SQL that differ between three databases. They are literals, hashes of
text, integers from hexadecimal digits, refusals, and temporary tables. `Dialect` is that of DuckDB,
and `Postgres` and `Spark` override what differs; `Statements` puts the parts together. The same
draw of a text t is: ::

    duckdb     CAST('0x' || substr(sha256(t), 1, 14) AS BIGINT) >> 3
    postgres   CAST(CAST('x' || lpad(substr(.., 1, 14), 16, '0') AS bit(64)) AS bigint) >> 3
    spark      shiftright(CAST(conv(substr(sha2(t, 256), 1, 14), 16, 10) AS BIGINT), 3)

All must give the same integer: the first 53 bits of the SHA-256 of t, read from 14 hexadecimal
digits (56 bits) and shifted right by 3. The hash of 'abc' begins with ba7816bf8f01cf, so its draw
is 6560798095827001, which is 0.728 * 2^53.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from typing import ClassVar

from mechdesign.core.errors import InputError
from mechdesign.core.wording import listed, quoted
from mechdesign.exporting.lookup import Entry, Lookup
from mechdesign.release.draws import KEY_BYTES
from mechdesign.tables.bins import Bins

# ----------------------------------------------------------------------------- dialects

DIGITS = 14
"""Hexadecimal digits of a hash that are read: 56 bits, which a signed 64-bit integer holds."""

SURPLUS = 3
"""Bits of these digits that a draw does not use: a draw has 53 (`lookup.BITS`)."""


PART = re.compile(r"""\"(?:[^"]|"")+"|`(?:[^`]|``)+`|[^.]+""")
"""A part of the name of a table, in the quotes of SQL, in those of Spark, or without any."""

QUOTED_PART = re.compile(r"""(?:^|\.)(?:"(?:[^"]|"")+"|`(?:[^`]|``)+`)(?=\.|$)""")
"""A whole part in quotes. Others are letters of the name."""


def _without_quotes(part: str) -> str:
    """A part of a name as the database spells it."""
    sign = part[0]
    is_quoted = sign in '"`' and len(part) > 2 and part.endswith(sign)
    return part[1:-1].replace(2 * sign, sign) if is_quoted else part


class Dialect:
    """The SQL of DuckDB; a database that differs overrides methods.

    Attributes
    ----------
    name, title : str
        Its names as an option and in a sentence.
    usage : str
        One sentence: the way to run the query in the file.
    text, double : str
        Its types of texts and of floating-point numbers.
    key : str
        The parameter that takes the key.
    ignores_case : bool
        Whether names of columns that differ in case alone are one, even within quotes.
    """

    name: ClassVar[str] = "duckdb"
    title: ClassVar[str] = "DuckDB"
    usage: ClassVar[str] = (
        "Run: EXECUTE mechdesign_release(key := getenv('MECHDESIGN_KEY'))."
    )
    text: ClassVar[str] = "VARCHAR"
    double: ClassVar[str] = "DOUBLE"
    key: ClassVar[str] = "$key"
    ignores_case: ClassVar[bool] = True

    def identifier(self, name: str) -> str:
        """The name of a column or a table."""
        return '"' + name.replace('"', '""') + '"'

    def table(self, name: str) -> str:
        """The name of a table, with that of its schema before a dot.

        A part may stand in quotes, as in ``"My Schema".people``; then a dot in it is one of its
        letters.
        """
        if QUOTED_PART.search(name) is None:
            parts = name.split(".")
        else:
            parts = [_without_quotes(part) for part in PART.findall(name)]
        return ".".join(map(self.identifier, parts))

    def literal(self, text: str) -> str:
        """A constant text."""
        # In standard SQL a quote is the only sign that could end the text.
        return "'" + text.replace("'", "''") + "'"

    def sha256(self, text: str) -> str:
        """64 lower-case hexadecimal digits: SHA-256 of a text in UTF-8."""
        return f"sha256({text})"

    def as_bytes(self, text: str) -> str:
        """A text as bytes: a collation may take 'a' for 'A', and never takes bytes for others."""
        return f"encode({text})"

    def draw(self, text: str) -> str:
        """The first 53 bits of SHA-256 of a text, as an integer."""
        # DuckDB reads a text that begins with 0x as hexadecimal.
        digits = f"substr({self.sha256(text)}, 1, {DIGITS})"
        return f"CAST('0x' || {digits} AS BIGINT) >> {SURPLUS}"

    def refusal(self, problem: str) -> str:
        """An expression of type text that fails with the text `problem` when it is computed."""
        return f"error({problem})"

    def values(self, name: str, columns: Sequence[str], rows: Sequence[str]) -> str:
        """The statement that creates a temporary table of constants.

        `rows` are texts such as ``(0, 0, 1024, 1, 'a', 'b')``, with cells for the `columns`.
        """
        lines = ",\n  ".join(rows)
        names = ", ".join(columns)
        return (
            f"CREATE OR REPLACE TEMPORARY TABLE {name} AS\n"
            f"SELECT * FROM (VALUES\n  {lines}\n) AS entries({names})"
        )

    def prepared(self, name: str, query: str) -> str:
        """The statement that stores the query with its parameter, for scripts."""
        return f"PREPARE {name} AS\n{query}"


class Postgres(Dialect):
    """PostgreSQL 11 and later; no extension is needed."""

    name = "postgres"
    title = "PostgreSQL"
    usage = r"Run in psql: \getenv key MECHDESIGN_KEY, then EXECUTE mechdesign_release(:'key')."
    text = "text"
    double = "double precision"
    key = "CAST($1 AS text)"
    ignores_case = False

    def sha256(self, text: str) -> str:
        """The function takes and gives bytes."""
        return f"encode(sha256({self.as_bytes(text)}), 'hex')"

    def as_bytes(self, text: str) -> str:
        """The function takes the encoding."""
        return f"convert_to({text}, 'UTF8')"

    def draw(self, text: str) -> str:
        """Digits become an integer by way of a bit string of 64 bits."""
        digits = f"substr({self.sha256(text)}, 1, {DIGITS})"
        # Eight leading zero bits, so that the sign bit of the integer is 0.
        bits = f"CAST('x' || lpad({digits}, 16, '0') AS bit(64))"
        return f"CAST({bits} AS bigint) >> {SURPLUS}"

    def refusal(self, problem: str) -> str:
        """PostgreSQL has no function that raises, but its error about a text as an integer quotes
        it.
        """
        # The outer cast makes the type that of a cell; it is never reached.
        return f"CAST(CAST({problem} AS integer) AS text)"

    def values(self, name: str, columns: Sequence[str], rows: Sequence[str]) -> str:
        """PostgreSQL does not replace tables: a second run in one session is an error."""
        # Once, at the head of the statement: the constants below may hold the same words.
        statement = super().values(name, columns, rows)
        return statement.replace("OR REPLACE ", "", 1)

    def prepared(self, name: str, query: str) -> str:
        """The type of the parameter is part of the statement."""
        return f"PREPARE {name}(text) AS\n{query}"


class Spark(Dialect):
    """Spark SQL 3.4 and later, which has named parameters."""

    name = "spark"
    title = "Spark SQL"
    usage = "Run: spark.sql(query, args={'key': key})."
    text = "STRING"
    key = ":key"

    def identifier(self, name: str) -> str:
        """Names stand in backticks."""
        return "`" + name.replace("`", "``") + "`"

    def literal(self, text: str) -> str:
        r"""Spark has escapes that begin with a backslash, and replaces ${..} by a setting."""
        # Two quotes would end one text and begin another, so a quote is escaped by a backslash.
        escaped = text.replace("\\", "\\\\").replace("'", "\\'")
        return "'" + escaped.replace("$", "\\u0024") + "'"

    def sha256(self, text: str) -> str:
        """The function takes the number of bits."""
        return f"sha2({text}, 256)"

    def as_bytes(self, text: str) -> str:
        """By a cast."""
        return f"CAST({text} AS BINARY)"

    def draw(self, text: str) -> str:
        """Digits become an integer through their decimal digits."""
        digits = f"substr({self.sha256(text)}, 1, {DIGITS})"
        return f"shiftright(CAST(conv({digits}, 16, 10) AS BIGINT), {SURPLUS})"

    def refusal(self, problem: str) -> str:
        """The function has a type of its own, so a cast makes it that of a cell."""
        return f"CAST(raise_error({problem}) AS STRING)"

    def values(self, name: str, columns: Sequence[str], rows: Sequence[str]) -> str:
        """A temporary view: tables need a warehouse."""
        # Once, for the same reason as in `Postgres.values`.
        statement = super().values(name, columns, rows)
        return statement.replace("TEMPORARY TABLE", "TEMPORARY VIEW", 1)

    def prepared(self, name: str, query: str) -> str:
        """Spark stores no statements, so this is the query itself."""
        return query


DIALECTS = (Dialect(), Postgres(), Spark())
"""Every dialect, the default first."""


def dialect_named(name: str) -> Dialect:
    """The dialect of this name.

    Raises
    ------
    InputError
        If there is none.
    """
    for dialect in DIALECTS:
        if dialect.name == name:
            return dialect
    names = [dialect.name for dialect in DIALECTS]
    raise InputError(f"--dialect ({quoted(name)}) must be one of {listed(names)}")


# --------------------------------------------------------------------------- statements

KEY_DIGITS = 2 * KEY_BYTES
"""Characters of a key: all its bytes in hexadecimal digits."""

HEXADECIMAL = "0123456789abcdef"
"""Characters of a key."""

DRAW = "draw"
"""Purpose of the hash whose first bits are the number of a record."""

ORDER = "order"
"""Purpose of the hash by which released records are sorted."""

INTERVALS = "mechdesign_intervals"
"""Name of the temporary table."""

PREPARED = "mechdesign_release"
"""Name of the stored query."""


def purpose_of(digest: str, purpose: str) -> str:
    """The part of a hashed text between key and identifier.

    Key and digest have fixed lengths, and no purpose continues another one with a blank. So
    different purposes and identifiers never give the same text.
    """
    return f"{digest} {purpose} "


class Statements:
    """The statements of one lookup table in one dialect: first run `table_statement`, then `query`.

    Parameters
    ----------
    lookup : Lookup
    dialect : Dialect
    table : str
        The table or view with the records, perhaps with a schema before a dot.
    identity : str
        Its column that identifies a record.
    """

    def __init__(
        self, lookup: Lookup, dialect: Dialect, table: str, identity: str
    ) -> None:
        self.lookup = lookup
        self.dialect = dialect
        self.table = table
        self.identity = identity
        self._inputs = _numbered("input", len(lookup.columns))
        self._outputs = _numbered("output", len(lookup.outputs))

    def table_statement(self) -> str:
        """The statement that creates the table of intervals."""
        columns = ["low", "high", *self._inputs, *self._outputs]
        rows = [self._row(entry) for entry in self.lookup.entries]
        return self.dialect.values(INTERVALS, columns, rows)

    def query(self) -> str:
        """The query that draws; its only parameter is the key."""
        steps = [
            ("mechdesign_key", self._key()),
            ("mechdesign_records", self._records()),
            ("mechdesign_draws", self._draws()),
            ("mechdesign_matched", self._matched()),
            ("mechdesign_checked", self._checked()),
        ]
        names = (self.table, self.identity, *self.lookup.columns)
        if not any("\n" in name for name in names):
            # The blanks would become part of a name with a line break.
            steps = [(name, _indented(body)) for name, body in steps]
        parts = [f"{name} AS (\n{body}\n)" for name, body in steps]
        return "WITH\n" + ",\n".join(parts) + "\n" + self._released()

    def _row(self, entry: Entry) -> str:
        """One interval as a row of constants, in the order of the columns of the table."""
        numbers = [entry.low, entry.high]
        texts = [self.dialect.literal(text) for text in entry.inputs + entry.outputs]
        return "(" + ", ".join([*map(str, numbers), *texts]) + ")"

    def _key(self) -> str:
        """The key, and whether it is one: a NULL or a short text could be guessed."""
        key = self.dialect.key
        return (
            f"SELECT {key} AS digits,\n"
            f"  length({key}) = {KEY_DIGITS} AND translate({key}, '{HEXADECIMAL}', '') = '' "
            "AS is_key"
        )

    def _records(self) -> str:
        """The columns as text, with the number of records of each identifier."""
        identity = self._as_text(self.identity)
        same = self.dialect.as_bytes(identity)
        lines = [
            f"{identity} AS id",
            f"count(*) OVER (PARTITION BY {same}) AS times",
        ]
        names = zip(self.lookup.columns, self._inputs, strict=True)
        for part, (column, name) in enumerate(names):
            cell = self._cell(column, self.lookup.inputs.bins_of(part))
            lines.append(f"{cell} AS {name}")
        columns = ",\n  ".join(lines)
        return f"SELECT\n  {columns}\nFROM {self.dialect.table(self.table)}"

    def _as_text(self, column: str) -> str:
        """A column of any type as text, in which symbols are compared."""
        return f"CAST({self.dialect.identifier(column)} AS {self.dialect.text})"

    def _cell(self, column: str, bins: Bins | None) -> str:
        """The symbol of a record; a missing cell is the empty text, as in `apply`."""
        if bins is None:
            return f"coalesce({self._as_text(column)}, '')"
        if bins.kind != "number":
            raise InputError(
                f"{quoted(column)} is released in bins of dates or times, which export does not "
                "write; release it with apply"
            )
        # Numbers are compared as numbers of the database; a cell in no bin is NULL, and refused.
        value = self.dialect.identifier(column)
        lines = ["CASE"]
        for k, label in enumerate(bins.labels):
            condition = self._is_in_bin(value, bins, k)
            lines.append(f"    WHEN {condition} THEN {self.dialect.literal(label)}")
        # An empty cell is a symbol where the design made it one, and refused elsewhere.
        lines.append(f"    WHEN {value} IS NULL THEN ''")
        return "\n".join([*lines, "  END"])

    def _is_in_bin(self, value: str, bins: Bins, k: int) -> str:
        """Whether a number is in bin k: [low, high), and the last one with its upper end."""
        low = bins.cuts[k]
        high = bins.cuts[k + 1]
        if isinstance(low, Fraction):
            above = f"{value} >= {_decimal(low)}"
        else:
            above = f"{value} > {self._infinity('-')}"
        if not isinstance(high, Fraction):
            # Infinity has no bin. Databases order NaN after it, so NaN has none either.
            below = f"{value} < {self._infinity('')}"
        elif k == len(bins.labels) - 1:
            below = f"{value} <= {_decimal(high)}"
        else:
            below = f"{value} < {_decimal(high)}"
        return f"{above} AND {below}"

    def _infinity(self, sign: str) -> str:
        return f"CAST('{sign}Infinity' AS {self.dialect.double})"

    def _draws(self) -> str:
        """A number below 2^53 for every record, and the place in the released order."""
        lines = ["r.*", "k.is_key"]
        lines.append(f"{self.dialect.draw(self._hashed(DRAW))} AS draw")
        # The order of the table may tell of the records, so they leave in that of another hash.
        lines.append(f"{self.dialect.sha256(self._hashed(ORDER))} AS place")
        columns = ",\n  ".join(lines)
        return (
            f"SELECT\n  {columns}\nFROM mechdesign_records AS r\n"
            "CROSS JOIN mechdesign_key AS k"
        )

    def _hashed(self, purpose: str) -> str:
        """The text that is hashed: the key, the purpose, and the identifier of a record."""
        between = self.dialect.literal(purpose_of(self.lookup.digest, purpose))
        return f"k.digits || {between} || r.id"

    def _matched(self) -> str:
        """The interval of each record's number; NULL where there is none."""
        columns = ["r.*", "t.low", *(f"t.{name}" for name in self._outputs)]
        as_bytes = self.dialect.as_bytes
        conditions = [
            f"{as_bytes(f't.{name}')} = {as_bytes(f'r.{name}')}"
            for name in self._inputs
        ]
        conditions += ["t.low <= r.draw", "r.draw < t.high"]
        condition = "\n  AND ".join(conditions)
        # LEFT: an inner join would drop records without an interval silently, instead of refusing
        # them in `_checked`.
        return (
            f"SELECT {', '.join(columns)}\nFROM mechdesign_draws AS r\n"
            f"LEFT JOIN {INTERVALS} AS t\n  ON {condition}"
        )

    def _checked(self) -> str:
        """The problem of each record, or NULL, in words without any of its cells."""
        # The first that applies is named. A missing key comes first, for then all draws are wrong.
        literal = self.dialect.literal
        no_key = f"the key must be {KEY_DIGITS} lower-case hexadecimal digits"
        names = ",".join(self.lookup.columns)
        unknown = f"the channel does not know a symbol of {names}"
        lines = [
            f"WHEN NOT coalesce(is_key, FALSE) THEN {literal(no_key)}",
            f"WHEN coalesce(id, '') = '' THEN {literal('a record has no identifier')}",
            f"WHEN times > 1 THEN {literal('two records have the same identifier')}",
            f"WHEN low IS NULL THEN {literal(unknown)}",
        ]
        cases = "\n  ".join(lines)
        return f"SELECT *, CASE\n  {cases}\nEND AS problem\nFROM mechdesign_matched"

    def _released(self) -> str:
        """The released columns; one record with a problem fails the whole query."""
        refusal = self.dialect.refusal("problem")
        lines: list[str] = []
        for name, column in zip(self._outputs, self.lookup.outputs, strict=True):
            lines.append(
                f"CASE WHEN problem IS NULL THEN {name} ELSE {refusal} END "
                f"AS {self.dialect.identifier(column)}"
            )
        columns = ",\n  ".join(lines)
        return f"SELECT\n  {columns}\nFROM mechdesign_checked\nORDER BY place"


def _numbered(word: str, count: int) -> list[str]:
    """Names of columns that need no quotes in any database: ``input_1``, ``input_2``, .."""
    return [f"{word}_{k + 1}" for k in range(count)]


def _indented(body: str) -> str:
    return "\n".join(f"  {line}" for line in body.split("\n"))


def _decimal(number: Fraction) -> str:
    """A number with finitely many decimals, written exactly."""
    # Edges of bins are decimals as they were typed, so this ends.
    digits = 0
    while (number * 10**digits).denominator != 1:
        digits += 1
    whole = abs(number.numerator) * 10**digits // number.denominator
    text = str(whole).rjust(digits + 1, "0")
    sign = "-" if number < 0 else ""
    if digits == 0:
        return sign + text
    return f"{sign}{text[:-digits]}.{text[-digits:]}"


def commented(lines: Sequence[str]) -> str:
    """Lines as comments of SQL."""
    return "".join(f"-- {line}".rstrip() + "\n" for line in lines)
