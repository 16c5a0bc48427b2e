"""Columns whose names look like that of a protected column, and so are likely copies of it.

Two names look alike if they have the same stem (`_stem`): lower case, without accents, signs and
spaces, in Latin letters, without words such as ``code`` at the end, and without a plural s. ::

    Job_Codes       job         the words are job and codes, and codes is appended
    Première Job    premierejob
    JOB 2           job         so is a number
    id              id          a single word stays, for it is all of the name

`lookalikes` compares the names of columns, and `refuse_inner` those of the fields within columns of
a file or frame. It is a help against oversight, and no proof: a copy may have any name.
"""

# pyarrow tells too little of its types for the strict mode.
# pyright: basic
from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from mechdesign.core.errors import InputError
from mechdesign.core.wording import quoted

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
    exempt: Collection[Any],
    *,
    endings: bool = True,
) -> list[tuple[Any, Any]]:
    """Pairs of a column in `header`, but for the `exempt` ones, and the protected column that it
    looks like.

    With `endings`, names that differ by a plural s or by appended words such as _code look alike
    too. So it is asked for sensitive columns. For useful ones it would refuse too much: job_code
    and job are often two columns of their own.
    """
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
    import pyarrow as pa

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
