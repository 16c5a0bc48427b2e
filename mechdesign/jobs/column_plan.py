"""Which columns of a table a release replaces, keeps and leaves out, decided from the header alone.

An output is closed by default: it holds the released columns and nothing else, for every other
column may undo the promise. Others stay if they are asked for, by name or all at once
(`kept_columns`, the one place of this decision). Sensitive columns must not stay, nor columns that
nobody named and whose names look like theirs.

`make_plan` translates the columns of each releasable to their names in the table
(`ColumnGroup`), refuses names and roles that do not fit the header (the refusals below), settles
what stays, and lays the output out (`output_columns`). For a channel that replaces ``job`` and
protects ``sex``, and the header ``id, job, sex, age``, the option ``--keep age`` gives the columns
``job`` (source 1, release (0, 0): the first column of the first releasable) and ``age`` (source 3,
no release); ``--keep sex`` is refused.

*Refusals.* `make_plan` asks these functions in this order, so that each later message is about
columns that exist and have one role:

1. `refuse_unknown_names`: what the user renames is a column of the channel.
2. `useful_columns`: every released column is in the table, and is released once.
3. `refuse_two_roles`: none of them is sensitive, too.
4. `require_named_columns`: every column that an option names is there, in a role that it can have.
5. `refuse_private`: no sensitive or correlated column stays.
6. `refuse_lookalikes`: nor does one that is called like a sensitive or a useful column. With the
   sensitive column ``income``, ``income_2020`` is refused, unless ``--keep income_2020`` names it.

`useful` are the columns that are replaced, `private` the sensitive ones, and `kept` those that stay
as they are, all by their names in the table.

*Names that look like that of a protected column*, and so are likely copies of it. Two names look
alike if they have the same stem (`_stem`): lower case, without accents, signs and spaces, in Latin
letters, without words such as ``code`` at the end, and without a plural s. ::

    Job_Codes       job         the words are job and codes, and codes is appended
    Première Job    premierejob
    JOB 2           job         so is a number
    id              id          a single word stays, for it is all of the name

`lookalikes` compares the names of columns, and `refuse_inner` those of the fields within columns of
a file or frame. It is a help against oversight, and no proof: a copy may have any name.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from mechdesign.core.errors import InputError
from mechdesign.core.wording import listed, quoted
from mechdesign.formats.column_names import require_column, require_columns
from mechdesign.jobs.options import ALL, ReleaseOptions
from mechdesign.jobs.output_columns import (
    ColumnGroup,
    OutputColumn,
    in_table,
    output_columns,
    own_columns,
    private_columns,
)

# ---------------------------------------------------------------- names that look alike

HOMOGLYPHS = str.maketrans(
    "аеіјорсухѕԁһԛԝαικνορτυχγвмтнкʙ", "aeijopcyxsdhqwaiknoptuxybmthkb"
)
"""Letters of other alphabets, and the Latin letters that they look like."""

ENDINGS = re.compile(
    r"[0-9]+|codes?|id|nr|no|num|number|label|name|text|value|copy|orig|original|raw|old|new|x|y"
)
"""Words that people append to the name of a column for another copy of it."""


def lookalikes(
    header: Sequence[Any],
    protected: Iterable[Any],
    exempt: Iterable[Any],
    *,
    endings: bool = True,
) -> list[tuple[Any, Any]]:
    """Pairs of a column in `header`, but for the `exempt` ones, and the protected column that it
    looks like.

    With `endings`, names that differ by a plural s or by appended words such as _code look alike
    too. So it is asked for sensitive columns. For useful ones it would refuse too much: job_code
    and job are often two columns of their own.
    """
    exempt = {*exempt}
    by_stem: dict[str, Any] = {}
    for name in protected:
        by_stem[_stem(name, endings)] = name
    # A name of signs alone has no stem, and looks like none.
    by_stem.pop("", None)
    pairs: list[tuple[Any, Any]] = []
    for name in header:
        if name in exempt:
            continue
        stem = _stem(name, endings)
        if stem in by_stem:
            pairs.append((name, by_stem[stem]))
    return pairs


def _stem(name: Any, endings: bool) -> str:
    """The letters and digits of a name, in one case and alphabet, without appended words."""
    # NFKD splits letters from their accents. These go first, or they would divide words, and a part
    # such as the "no" of "věno" would count as an appended word.
    split = unicodedata.normalize("NFKD", str(name)).casefold().translate(HOMOGLYPHS)
    text = "".join(sign for sign in split if not unicodedata.combining(sign))
    words = re.findall(r"[^\W_]+", text)
    if not endings:
        return "".join(words)
    while len(words) > 1 and ENDINGS.fullmatch(words[-1]):
        words.pop()
    stem = "".join(words)
    # The column "s" keeps its only letter.
    return stem.removesuffix("s") or stem


def refuse_inner(
    schema: Any,
    kept: Collection[Any],
    private: Collection[Any],
    useful: Collection[Any],
) -> None:
    """Refuse kept columns that hold a field named like a private column, or like a released one."""
    for field in schema:
        if field.name not in kept:
            continue
        inner_names = list(_inner_names(field.type))
        pairs = lookalikes(inner_names, private, ())
        pairs += lookalikes(inner_names, useful, (), endings=False)
        for inner, protected in pairs:
            kind = "sensitive" if protected in private else "useful"
            raise InputError(
                f"the column {quoted(field.name)} holds the field {quoted(inner)}, which looks "
                f"like the {kind} column {quoted(protected)} and would stay in the output; leave "
                "it out (--drop), or keep it knowingly (--keep)"
            )


def _inner_names(kind: Any) -> Iterator[str]:
    """Names of the fields of structures, however deep; the items of lists and maps have no names
    of their own.
    """
    pa: Any = import_module("pyarrow")  # It tells too little of its types.

    if isinstance(kind, pa.BaseExtensionType):
        yield from _inner_names(kind.storage_type)
    elif pa.types.is_map(kind):
        # Not as nested: its entries are a structure whose names, key and value, are Arrow's own.
        yield from _inner_names(kind.key_type)
        yield from _inner_names(kind.item_type)
    elif pa.types.is_nested(kind):
        for i in range(kind.num_fields):
            if pa.types.is_struct(kind):
                yield kind.field(i).name
            yield from _inner_names(kind.field(i).type)


# --------------------------------------------------------------------------------- plan


@dataclass(frozen=True)
class Plan:
    """Where the released columns stand in the input, and what the output holds.

    `inputs` has the numbers of the columns of each releasable, `identity` those that identify a
    record. `columns` are those of the output. `sensitive` has the sensitive columns by their names
    in the table, which need not have them; `kept_private` those of them, and correlated ones, that
    stay because the user insisted. `notices` are sentences for the user.
    """

    inputs: tuple[tuple[int, ...], ...]
    identity: tuple[int, ...]
    columns: tuple[OutputColumn, ...]
    kept_private: tuple[str, ...] = ()
    sensitive: tuple[str, ...] = ()
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

    def origin(self, column: OutputColumn) -> int:
        """The number of the input column that a column of the output was, or is drawn for."""
        if column.source is not None:
            return column.source
        releasable, part = column.release or (0, 0)
        return self.inputs[releasable][part]


def make_plan(
    groups: Sequence[ColumnGroup],
    header: Sequence[Any],
    options: ReleaseOptions,
    *,
    together: bool = False,
) -> Plan:
    """Decide what becomes of each column of a table.

    `together` is whether one promise is about all groups, and not one about each.

    Raises
    ------
    InputError
        If a column is missing or named twice, is protected and would stay, or cannot get its name.
    """
    # Names first, so that each later refusal is about a column that exists.
    refuse_unknown_names(groups, options)
    inputs = [in_table(group.columns, options) for group in groups]
    useful = useful_columns(inputs, header)
    private = private_columns(groups, options)
    refuse_two_roles(useful, private, own_columns(groups, options))
    require_named_columns(useful, private, header, options)

    kept = kept_columns(header, useful, options)
    if not options.keep_sensitive:
        refuse_private(kept, private, options)
    given: list[str] = []
    for group in groups:
        given += in_table(group.given, options)
    # A copy of a given column tells what is released in any case.
    hidden = [name for name in useful if name not in given]
    refuse_lookalikes(kept, hidden, private, [*given, *options.kept], options)

    # After all refusals that are about names of the input: these messages are about the output.
    columns = output_columns(header, kept, groups, inputs, options)
    protected = {*private, *options.correlated}
    return Plan(
        inputs=tuple(_places(names, header) for names in inputs),
        identity=_places(options.identifiers, header),
        columns=columns,
        kept_private=tuple(name for name in kept if name in protected),
        sensitive=tuple(private),
        notices=tuple(_notices(groups, useful, options, together=together)),
    )


def kept_columns(
    header: Sequence[Any], useful: Sequence[Any], options: ReleaseOptions
) -> list[Any]:
    """The columns that stay as they are: those that were asked for, unless they are released or
    dropped.
    """
    gone = {*options.drop}
    # Beside added columns the useful ones stay: the user compares both, and makes no release.
    if options.into is None:
        gone.update(useful)
    named = {*options.kept}
    kept: list[Any] = []
    for name in header:
        if name in gone:
            continue
        if options.keeps_all or name in named:
            kept.append(name)
    return kept


def _places(names: Sequence[Any], header: Sequence[Any]) -> tuple[int, ...]:
    """The numbers of columns in the table."""
    return tuple(header.index(name) for name in names)


def _notices(
    groups: Sequence[ColumnGroup],
    useful: Sequence[str],
    options: ReleaseOptions,
    *,
    together: bool,
) -> list[str]:
    """What the user should know of the plan."""
    notices: list[str] = []
    if any(group.sensitive is None for group in groups):
        notices.append(
            "the channel does not say which columns are sensitive: see that none is in the output"
        )
    if options.into is not None:
        notices.append(
            f"{listed(useful)} stays beside the released column: no release yet, remove it first"
        )
    if len(groups) > 1 and not together:
        notices.append(
            "several columns of a record are released: each keeps its own promise, "
            "but together they can tell more than either"
        )
    return notices


def refuse_unknown_names(
    groups: Sequence[ColumnGroup], options: ReleaseOptions
) -> None:
    """Refuse to rename columns that no group has."""
    names: dict[str, None] = {}
    for group in groups:
        names.update(dict.fromkeys(group.columns))
        names.update(dict.fromkeys(group.sensitive or ()))
    unknown = [name for name in options.renamed if name not in names]
    if not unknown:
        return
    if len(groups) == 1:
        raise InputError(
            f"the channel has no column {listed(unknown)} to rename (its columns: "
            f"{listed(list(names))})"
        )
    raise InputError(
        f"the channels have no column {listed(unknown)} to rename (their columns: "
        f"{listed(list(names))})"
    )


def useful_columns(
    inputs: Sequence[tuple[str, ...]], header: Sequence[Any]
) -> list[str]:
    """The columns that are released, all of which must be there, and be different ones."""
    useful: list[str] = []
    for names in inputs:
        useful += names
    require_columns(useful, header)
    # Two columns of one channel under one name come from renaming; of two channels, from a choice
    # of the user, so these have another message.
    for names in inputs:
        if len(set(names)) < len(names):
            raise InputError(
                f"one column of the file cannot stand for two of the channel ({listed(names)})"
            )
    for name in useful:
        if useful.count(name) > 1:
            raise InputError(
                f"two channels release the column {quoted(name)}: together they would tell more of "
                "a record than either promises; use one of them"
            )
    return useful


def refuse_two_roles(
    useful: Sequence[str], private: Sequence[str], own: Sequence[str]
) -> None:
    """Refuse a column that would be released and must not be disclosed.

    The `own` columns are those of channels that protect what they release: its place in the output
    is taken by the release, so nothing of it is left.
    """
    for name in useful:
        if name in private and name not in own:
            raise InputError(
                f"the column {quoted(name)} cannot be sensitive and useful at once"
            )


def require_named_columns(
    useful: Sequence[str],
    private: Sequence[str],
    header: Sequence[Any],
    options: ReleaseOptions,
) -> None:
    """Refuse options that name a column which is not there, or which cannot have that role."""
    # A sensitive column of the channel need not be in the table, unless the user says what it is
    # called there.
    renamed = [name for name in private if name in options.renamed.values()]
    require_columns((*options.correlated, *renamed), header)
    for name in options.identifiers:
        require_column(name, header)
        if name in useful or name in private:
            raise InputError(
                f"the column {quoted(name)} is useful or sensitive and cannot identify records"
            )
    require_columns((*options.drop, *options.kept), header)
    if ALL in options.keep and ALL in header:
        raise InputError(
            f"a column of the table is called {quoted(ALL)}, which asks for every column here; "
            "rename it, or name the columns to keep"
        )
    dropped = {*options.drop}
    for name in options.kept:
        if name in dropped:
            raise InputError(
                f"the column {quoted(name)} cannot be kept (--keep) and left out (--drop) at once"
            )
    if options.into is None:
        for name in options.drop:
            if name in useful:
                raise InputError(
                    f"the column {quoted(name)} is released and cannot be left out (--drop)"
                )


def refuse_private(
    kept: Sequence[Any], private: Sequence[str], options: ReleaseOptions
) -> None:
    """Refuse that a sensitive or correlated column stays."""
    for kind, names in (("sensitive", private), ("correlated", options.correlated)):
        left = [name for name in names if name in kept]
        if left:
            raise InputError(
                f"the {kind} column {listed(left)} would stay in the output; leave it out "
                "(--drop), or keep it knowingly (--keep-sensitive)"
            )


def refuse_lookalikes(
    kept: Sequence[Any],
    useful: Sequence[str],
    private: Sequence[str],
    open_columns: Sequence[str],
    options: ReleaseOptions,
) -> None:
    """Refuse kept columns whose names look like that of a private or a useful one.

    Columns that the user named are exempt, and so are the `open_columns`, whose values are in the
    output in any case.
    """
    exempt = [*useful, *private, *options.correlated, *open_columns]
    pairs: list[tuple[Any, Any]] = []
    if not options.keep_sensitive:
        pairs += lookalikes(kept, private, exempt)
    if options.into is None:
        # Appended words count as a difference here: job_code need not be a copy of job.
        pairs += lookalikes(kept, useful, exempt, endings=False)
    for name, protected in pairs:
        kind = "sensitive" if protected in private else "useful"
        raise InputError(
            f"the column {quoted(name)} looks like the {kind} column {quoted(protected)} and would "
            "stay in the output; leave it out (--drop), or keep it knowingly by its name (--keep)"
        )
