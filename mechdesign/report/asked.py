"""What was asked for, as a report repeats it: columns, symbols, notion and mechanism.

`request_of` reads these from a channel, and the size of the table from the table if it may be
shown. `names_of` and `protected` turn the columns of a request into the names that every section
uses, such as ``race x sex`` for two crossed columns.
"""

from __future__ import annotations

from mechdesign.channel.channel import Channel
from mechdesign.channel.record import RELATIVE
from mechdesign.notions import Notion, to_record
from mechdesign.report.record import Request
from mechdesign.report.wording import title
from mechdesign.tables.joint import Joint
from mechdesign.tables.people import SEQUENCE
from mechdesign.tables.variable import column_names

NAMELESS = "the sensitive column"
"""What a report calls the sensitive column of a channel that does not name it."""


def request_of(
    channel: Channel,
    notion: Notion,
    joint: Joint | None = None,
    table: str | None = None,
) -> Request:
    """The request: columns, symbols, notion and mechanism, and the size of the table if known."""
    size: dict[str, int | None] = {}
    if joint is not None:
        size["records"] = joint.records
        size["cells"] = joint.p.size
        size["zero_cells"] = sum(row.count(0) for row in joint.counts)
    sensitive = channel.sensitive
    columns: tuple[str, ...] = ()
    symbols: list[str] = []
    if sensitive is not None:
        columns = sensitive.columns
        for names in sensitive.secret_names:
            symbols.extend(names)
    useful_columns = column_names(channel.hidden)
    people = channel.people
    if people is not None:
        # The columns of a record, not those at every place of the sequence.
        useful_columns = people.columns
        if people.sensitive_of == SEQUENCE:
            columns = (f"sequence of {title(people.sensitive)}",)
    symbol_columns: list[str] = []
    if sensitive is not None and sensitive.protects_columns:
        for name, of_column in zip(columns, sensitive.secret_names, strict=True):
            symbol_columns += [name] * len(of_column)
    relative_to: tuple[str, ...] = ()
    if channel.record.promise_kind == RELATIVE:
        relative_to = tuple(channel.given)
    return Request(
        sensitive_columns=columns,
        each=sensitive is not None and sensitive.protects_columns,
        useful_columns=useful_columns,
        sensitive_symbols=tuple(symbols),
        useful_symbols=channel.useful.names,
        outputs=len(channel.outputs),
        notion=to_record(notion),
        notion_text=notion.text,
        mechanism=origin_of(channel, "mechanism"),
        method=origin_of(channel, "method"),
        table=table,
        of_rows=channel.published is not None,
        of_people=people is not None,
        given=tuple(channel.given),
        relative_to=relative_to,
        symbol_columns=tuple(symbol_columns),
        level=None if channel.claims is None else channel.claims.level,
        fills=channel.fills,
        **size,
    )


def names_of(request: Request) -> tuple[str, str]:
    """The sensitive and the useful columns, as one name each."""
    # Protected each by itself, the secret is a value of one column or the other; crossed, of both.
    between = " x "
    if request.each:
        between = " or "
    sensitive = title(request.sensitive_columns, between)
    return sensitive or NAMELESS, title(request.useful_columns)


def protected(request: Request) -> str:
    """The protected columns: ``race``, ``race x sex``, ``each of race and sex``."""
    if request.each:
        return f"each of {title(request.sensitive_columns, ' and ')}"
    return names_of(request)[0]


def origin_of(channel: Channel, key: str) -> str | None:
    """A text about its origin that the channel's record keeps."""
    value = channel.record.provenance.get(key)
    # The file may come from anybody: an entry that is no text is left out.
    if isinstance(value, str):
        return value
    return None
