"""The parts of SQL that differ between three databases.

They are literals, hashes of text, integers from hexadecimal digits, refusals, and temporary tables.
`Dialect` is that of DuckDB, and `Postgres` and `Spark` override what differs; `statements` puts the
parts together. The same draw of a text t is: ::

    duckdb     CAST('0x' || substr(sha256(t), 1, 14) AS BIGINT) >> 3
    postgres   CAST(CAST('x' || lpad(substr(.., 1, 14), 16, '0') AS bit(64)) AS bigint) >> 3
    spark      shiftright(CAST(conv(substr(sha2(t, 256), 1, 14), 16, 10) AS BIGINT), 3)

All must give the same integer: the first 53 bits of the SHA-256 of t, read from 14 hexadecimal
digits (56 bits) and shifted right by 3. The hash of 'abc' begins with ba7816bf8f01cf, so its draw
is 6560798095827001, which is 0.728 * 2^53.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from mechdesign.core.errors import InputError
from mechdesign.core.wording import listed, quoted

DIGITS = 14
"""Hexadecimal digits of a hash that are read: 56 bits, which a signed 64-bit integer holds."""

SURPLUS = 3
"""Bits of these digits that a draw does not use: a draw has 53 (`lookup.BITS`)."""


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
        """The name of a table, with that of its schema before a dot."""
        return ".".join(self.identifier(part) for part in name.split("."))

    def literal(self, text: str) -> str:
        """A constant text."""
        # In standard SQL a quote is the only sign that could end the text.
        return "'" + text.replace("'", "''") + "'"

    def sha256(self, text: str) -> str:
        """64 lower-case hexadecimal digits: SHA-256 of a text in UTF-8."""
        return f"sha256({text})"

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
        return f"encode(sha256(convert_to({text}, 'UTF8')), 'hex')"

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
    raise InputError(f"dialect ({quoted(name)}) must be one of {listed(names)}")
