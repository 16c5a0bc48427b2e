"""Which columns of a table the channels replace, decided from its header alone.

Sensitive columns must not stay, nor columns, or fields inside of columns, whose names hardly differ from theirs.
"""

# pyarrow tells too little of its types for the strict mode.
# pyright: basic
from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from mechdesign.channel.channel import Channel as Releasable
from mechdesign.core.errors import InputError
from mechdesign.core.numbers import listed, quoted
from mechdesign.formats.cells import require_column
from mechdesign.jobs.options import ReleaseOptions
from mechdesign.release.drawing import LABEL


def lookalikes(
    header: Sequence[Any],
    secret: Iterable[Any],
    known: Collection[Any],
    *,
    endings: bool = True,
) -> list[tuple[Any, Any]]:
    """Columns that are called like a sensitive one, at first sight or but for `ENDINGS`; which one."""
    plain = {_plain(name, endings): name for name in secret}
    plain.pop("", None)
    names = ((name, _plain(name, endings)) for name in header if name not in known)
    return [(name, plain[short]) for name, short in names if short in plain]


def refuse_inner(
    schema: Any, kept: Collection[Any], secret: Collection[Any], useful: Collection[Any]
) -> None:
    """Refuse columns that hold a field with the name of a sensitive column, or of one that is released."""
    for field in schema:
        names = [*_inner_names(field.type)] if field.name in kept else []
        for inner, like in [
            *lookalikes(names, secret, ()),
            *lookalikes(names, useful, (), endings=False),
        ]:
            what = "sensitive" if like in secret else "useful"
            raise InputError(
                f"the column {quoted(field.name)} holds the field {quoted(inner)}, which looks like the {what} "
                f"column {quoted(like)} and would stay in the output; leave it out (--drop), or keep it knowingly "
                "(--keep)"
            )


def _inner_names(kind: Any) -> Iterator[str]:
    """Names of the fields of structures, however deep; those of lists and maps have names that nobody chose."""
    import pyarrow as pa

    if isinstance(kind, pa.BaseExtensionType):
        yield from _inner_names(kind.storage_type)
    elif pa.types.is_map(kind):
        yield from _inner_names(kind.key_type)
        yield from _inner_names(kind.item_type)
    elif pa.types.is_nested(kind):
        for i in range(kind.num_fields):
            if pa.types.is_struct(kind):
                yield kind.field(i).name
            yield from _inner_names(kind.field(i).type)


ALIKE = str.maketrans(
    "аеіјорсухѕԁһԛԝαικνορτυχγвмтнкʙ", "aeijopcyxsdhqwaiknoptuxybmthkb"
)
"""Letters of other alphabets that look like those of the Latin one, and these."""

ENDINGS = re.compile(
    r"[0-9]+|codes?|id|nr|no|num|number|label|name|text|value|copy|orig|original|raw|old|new|x|y"
)
"""What is written behind the name of a column for another copy of it."""


def _plain(name: Any, endings: bool) -> str:
    """What is left of a name without what people overlook, its letters and digits, and without what they append."""
    text = unicodedata.normalize("NFKD", str(name)).casefold().translate(ALIKE)
    words = re.findall(r"[^\W_]+", text)
    while endings and len(words) > 1 and ENDINGS.fullmatch(words[-1]):
        words.pop()
    return "".join(words).removesuffix("s" * endings) or "".join(words)


@dataclass(frozen=True)
class OutputColumn:
    """A column of the output."""

    name: str
    source: int | None
    release: tuple[int, int] | None = None


@dataclass(frozen=True)
class Plan:
    """Where X stands in the input and where Y goes in the output."""

    inputs: tuple[tuple[int, ...], ...]
    identity: tuple[int, ...]
    columns: tuple[OutputColumn, ...]
    kept_private: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()

    @property
    def header(self) -> tuple[str, ...]:
        """Column names of the output."""
        return tuple(column.name for column in self.columns)

    @property
    def others(self) -> tuple[str, ...]:
        """Names of the columns that stay as they are."""
        return tuple(column.name for column in self.columns if column.release is None)

    @property
    def released(self) -> tuple[str, ...]:
        """Names of the released columns, in the order of the output."""
        return tuple(
            column.name for column in self.columns if column.release is not None
        )


def make_plan(
    channels: Sequence[Releasable], header: Sequence[str], options: ReleaseOptions
) -> Plan:
    """Decide what happens to each column of a table."""
    inside, secret = (
        _useful(channels, header, options),
        secret_columns(channels, options),
    )
    useful = [name for names in inside for name in names]
    for name in useful:
        if name in secret:
            raise InputError(
                f"the column {quoted(name)} cannot be sensitive and useful at once"
            )
    renamed = [name for name in secret if name in options.renamed.values()]
    for name in (
        *options.correlated,
        *renamed,
        *options.identifiers,
        *options.drop,
        *options.kept,
    ):
        require_column(name, header)
        if name in options.identifiers and (name in useful or name in secret):
            raise InputError(
                f"the column {quoted(name)} is useful or sensitive and cannot identify records"
            )
    gone = [name for name in options.drop if name in useful]
    if gone and options.into is None:
        raise InputError(
            f"the column {quoted(gone[0])} is released and cannot be left out (--drop)"
        )
    replaced = [*(useful if options.into is None else []), *options.drop]
    for kind, names in (("sensitive", secret), ("correlated", options.correlated)):
        left = [name for name in names if name in header and name not in replaced]
        if left and not options.keep_sensitive:
            raise InputError(
                f"the {kind} column {listed(left)} would stay in the output; remove it from the input, or keep it "
                "knowingly (--keep-sensitive)"
            )
    known = [*useful, *secret, *options.correlated, *options.drop, *options.kept]
    looks = () if options.keep_sensitive else lookalikes(header, secret, known)
    other = (
        ()
        if options.into is not None
        else lookalikes(header, useful, known, endings=False)
    )
    for name, like in (*looks, *other):
        what = "sensitive" if like in secret else "useful"
        raise InputError(
            f"the column {quoted(name)} looks like the {what} column {quoted(like)} and would stay in the output; "
            "leave it out (--drop), or keep it knowingly (--keep)"
        )
    notices = (
        [_CANNOT_TELL] if any(channel.sensitive is None for channel in channels) else []
    )
    if options.into is not None:
        notices.append(
            f"{listed(useful)} stays beside the released column: no release yet, remove it first"
        )
    notices += [_SEVERAL] if len(channels) > 1 else []
    private = {*secret, *options.correlated} - {*replaced}
    return Plan(
        tuple(tuple(header.index(name) for name in names) for names in inside),
        tuple(header.index(name) for name in options.identifiers),
        _layout(header, inside, options),
        tuple(name for name in header if name in private),
        tuple(notices),
    )


def _useful(
    channels: Sequence[Releasable], header: Sequence[str], options: ReleaseOptions
) -> list[tuple[str, ...]]:
    variables = [
        each for channel in channels for each in (channel.useful, channel.sensitive)
    ]
    known = list(
        dict.fromkeys(
            name for each in variables if each is not None for name in each.columns
        )
    )
    unknown = [name for name in options.renamed if name not in known]
    if unknown:
        whose, theirs = (
            ("the channel has", "its")
            if len(channels) == 1
            else ("the channels have", "their")
        )
        raise InputError(
            f"{whose} no column {listed(unknown)} to rename ({theirs} columns: {listed(known)})"
        )
    inside = [
        tuple(options.renamed.get(name, name) for name in each.useful.columns)
        for each in channels
    ]
    useful = [name for names in inside for name in names]
    for name in useful:
        require_column(name, header)
    for names in inside:
        if len(set(names)) < len(names):
            raise InputError(
                f"one column of the file cannot stand for two of the channel ({listed(names)})"
            )
    twice = [name for name in dict.fromkeys(useful) if useful.count(name) > 1]
    if twice:
        raise InputError(
            f"two channels release the column {quoted(twice[0])}: together they would tell more of a record than "
            "either promises; use one of them"
        )
    return inside


def secret_columns(
    channels: Sequence[Releasable], options: ReleaseOptions
) -> list[str]:
    """The sensitive columns of the channels, by their names in the table."""
    return list(
        dict.fromkeys(
            name for each in channels for name in sensitive_of(each, options) or ()
        )
    )


def sensitive_of(
    channel: Releasable, options: ReleaseOptions
) -> tuple[str, ...] | None:
    """The sensitive columns of a channel, by their names in the table; None where it does not say."""
    if channel.sensitive is None:
        return None
    return tuple(options.renamed.get(name, name) for name in channel.sensitive.columns)


def _layout(
    header: Sequence[str], inside: Sequence[tuple[str, ...]], options: ReleaseOptions
) -> tuple[OutputColumn, ...]:
    """The released columns at the end, or each in the place of the column of X that it stands for."""
    names = [(",".join(names),) if options.form == LABEL else names for names in inside]
    added = options.added(len(names))
    if added is None:
        filled = {
            inside[k][part]: OutputColumn(
                name, header.index(inside[k][part]), (k, part)
            )
            for k, released in enumerate(names)
            for part, name in enumerate(released)
        }
        gone = {name for each in inside for name in each} - {*filled}
        columns = [
            filled.get(name, OutputColumn(name, i))
            for i, name in enumerate(header)
            if name not in gone
        ]
    else:
        if [len(new) for new in added] != [len(old) for old in names]:
            raise InputError(
                "give a name for every column that is added: "
                + ", ".join(f"one for {quoted(name)}" for old in names for name in old)
            )
        columns = [OutputColumn(name, i) for i, name in enumerate(header)]
        for k, new in enumerate(added):
            columns += [
                OutputColumn(name, None, (k, part)) for part, name in enumerate(new)
            ]
    columns = [
        column
        for column in columns
        if column.release or column.name not in options.drop
    ]
    output = [column.name for column in columns]
    for column in columns:
        if column.release is not None and output.count(column.name) > 1:
            raise InputError(
                f"the file has another column {quoted(column.name)}, the name of the released one; rename it"
            )
    return tuple(columns)


_CANNOT_TELL = "the channel does not say which columns are sensitive: see that none is in the output"

_SEVERAL = (
    "several columns of a record are released: each keeps its own promise, "
    "but together they can tell more than either"
)
