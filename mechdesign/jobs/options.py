"""What a user asks of a release: of a file, a frame, a cluster or a pipeline; declared, explained and checked here.

The public functions take the fields of `ReleaseOptions` (`takes`); the `TypedDict`s tell type checkers the same.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import wraps
from typing import Any, ParamSpec, TypeAlias, TypedDict, TypeVar, cast

from mechdesign.core.errors import InputError
from mechdesign.core.files import PathLike
from mechdesign.core.wording import listed, quoted
from mechdesign.release.binned import FORMS, LABEL
from mechdesign.release.drawing import CHANGES
from mechdesign.release.draws import Key
from mechdesign.release.policies import REFUSE, Policy

P = ParamSpec("P")
R = TypeVar("R")

ColumnNames: TypeAlias = str | Sequence[str]
"""One column, or several."""

AddedNames: TypeAlias = str | Sequence[str] | Sequence[Sequence[str]]
"""Names of added columns: one; those of one channel; or those of every channel."""


class _Shared(TypedDict, total=False):
    form: str
    policy: Policy | None
    identity: ColumnNames | None
    keep_sensitive: bool
    drop: ColumnNames
    keep: ColumnNames
    keep_order: bool
    insecure_seed: int | None
    changed: str
    fresh_draw: bool


class _Keyed(TypedDict, total=False):
    key: Key | PathLike | None
    ledger: PathLike | None
    row_numbers: str | None


class FileKeywords(_Shared, total=False):
    """Options of a release of a file, whose key and row numbers are matters of its job."""

    columns: Mapping[str, str] | None
    into: AddedNames | None
    correlated: ColumnNames
    shuffle: bool


class StepKeywords(_Shared, _Keyed, total=False):
    """Options of a step of a pipeline, which knows its columns from the table it was fitted to."""


class ReleaseKeywords(FileKeywords, _Keyed, total=False):
    """All options of a release."""


@dataclass(frozen=True, kw_only=True)
class ReleaseOptions:
    """What a user asks of a release.

    Parameters
    ----------
    columns : mapping, optional
        The table's name of a column of a channel where it has another one there.
    key : draws.Key, or path of a key file, optional
        From which the draws follow. Without key and ledger a new key is used and forgotten: another call would be a
        second, independent release of the same records, which tells more than the budget.
    ledger : path, optional
        The ledger of releases, made if there is none: it has a key, gives the same records the draws that `apply`
        gives them, and refuses to draw them a second time.
    identity : str or sequence of str, optional
        Columns that identify a record; integers or text. Its row number does otherwise.
    row_numbers : str, optional
        Column with the row number of each record, counted from 0, in any order.
    form : {"label", "posterior-draw", "representative", "within"}
        The label of Y, or a value of X drawn from P(X|Y) under the table. For a column in bins also the median of
        what Y stands for, or one of the table's numbers in the bin drawn (of Y itself where Y is a bin).
    into : str, or sequence of str, optional
        Names of columns to add at the end, and X stays (then the table is no release). For several channels one
        name, or sequence of names, each.
    policy : Policy, optional
        What to do with unknown symbols and missing cells; by default both are refused.
    keep_sensitive : bool
        Whether sensitive and correlated columns may stay in the output.
    correlated : str or sequence of str
        Columns that must not stay either.
    drop : str or sequence of str
        Columns that are left out of the output.
    keep : str or sequence of str
        Columns that stay although they are called like the useful or a sensitive column, or stand for it in the data.
    shuffle : bool
        Whether the records are put in random order, which follows from the key and the data.
    keep_order : bool
        Whether records that stand in an order which tells of the useful column may stay in it.
    changed : {"refuse", "keep", "redraw"}
        With a ledger and an identity: what becomes of a record whose symbol is another one than when it was released
        before. It is an error; or its old output is released again; or it is drawn anew, independently, which adds
        to what is known of it (a warning says at most how much).
    fresh_draw : bool
        With a ledger: whether to draw anew what was released before.
    insecure_seed : int, optional
        Reproducible draws, for tests only: whoever knows the seed can undo the release.

    Raises
    ------
    InputError
        On a value of another type or out of range, or where both kinds of identity are given.
    """

    columns: Mapping[str, str] | None = None
    key: Key | PathLike | None = field(default=None, repr=False)
    ledger: PathLike | None = None
    identity: ColumnNames | None = None
    row_numbers: str | None = None
    form: str = LABEL
    into: AddedNames | None = None
    policy: Policy | None = None
    keep_sensitive: bool = False
    correlated: ColumnNames = ()
    drop: ColumnNames = ()
    keep: ColumnNames = ()
    shuffle: bool = False
    keep_order: bool = False
    insecure_seed: int | None = None
    changed: str = REFUSE
    fresh_draw: bool = False

    def __post_init__(self) -> None:
        self._require(
            "columns",
            Mapping,
            "a mapping from the channel's names of columns to the table's",
        )
        self._require("row_numbers", str, "the name of a column")
        self._require("policy", Policy, "a Policy")
        self._require("insecure_seed", int, "a whole number")
        if self.form not in FORMS:
            raise InputError(
                f"the form ({quoted(self.form)}) must be one of {listed(FORMS)}"
            )
        if self.changed not in CHANGES:
            raise InputError(
                f"changed ({quoted(self.changed)}) must be one of {listed(CHANGES)}"
            )
        for name in ("keep_sensitive", "shuffle", "keep_order", "fresh_draw"):
            if not isinstance(getattr(self, name), bool):
                raise InputError(
                    f"{name} ({quoted(getattr(self, name))}) must be True or False"
                )
        object.__setattr__(self, "columns", dict(self.columns or {}))
        for name in ("identity", "correlated", "drop", "keep"):
            object.__setattr__(self, name, self._names(name))
        if self.shuffle and self.keep_order:
            raise InputError(
                "the order of the records is shuffled or kept: give --shuffle or --keep-order"
            )
        if self.identity and self.row_numbers is not None:
            raise InputError(
                "identity and row_numbers both say what identifies a record; give one of them (a job keeps to one)"
            )
        if self.ledger is not None and self.key is not None:
            raise InputError("a ledger has its own key; give it alone, or a key")
        if self.ledger is not None and self.insecure_seed is not None:
            raise InputError(
                "an insecure seed is for tests and has no ledger; give one of the two"
            )
        if self.fresh_draw and self.ledger is None:
            raise InputError(
                "without a ledger every draw is fresh; give the ledger, or leave fresh_draw out"
            )
        if self.changed != REFUSE and not self.identity:
            raise InputError(
                f"changed={self.changed} is about records known by identity; name their column"
            )
        if self.ledger is not None and self.row_numbers is not None:
            raise InputError(
                "a ledger knows the same data by their order or by identity; give the column as identity, in place of "
                "row_numbers"
            )

    def _require(self, name: str, kinds: Any, what: str) -> None:
        value = getattr(self, name)
        if value is not None and (
            not isinstance(value, kinds) or isinstance(value, bool)
        ):
            raise InputError(f"{name} ({quoted(value)}) must be {what}")

    def _names(self, name: str) -> tuple[str, ...]:
        value = getattr(self, name)
        if value is None or isinstance(value, str):
            return () if value is None else (value,)
        if not isinstance(value, Sequence):
            raise InputError(
                f"{name} ({quoted(value)}) must be the name of a column, or a sequence of them"
            )
        return tuple(cast("Sequence[str]", value))

    @property
    def renamed(self) -> Mapping[str, str]:
        """The table's name of each column that the channel calls otherwise."""
        return self.columns or {}

    @property
    def identifiers(self) -> tuple[str, ...]:
        """Columns that identify a record; none where its row number does."""
        return cast("tuple[str, ...]", self.identity)

    @property
    def kept(self) -> tuple[str, ...]:
        """Columns that stay whatever they tell."""
        return cast("tuple[str, ...]", self.keep)

    @property
    def rules(self) -> Policy:
        """What to do with unknown symbols and missing cells."""
        return self.policy or Policy()

    def added(self, channels: int) -> tuple[tuple[str, ...], ...] | None:
        """For each of so many channels the names of the columns to add; None where X is replaced."""
        into = self.into
        if into is None:
            return None
        if isinstance(into, str):
            return ((into,),)
        if channels == 1 and all(isinstance(name, str) for name in into):
            return (tuple(cast("Sequence[str]", into)),)
        return tuple(
            (names,) if isinstance(names, str) else tuple(names) for names in into
        )


def takes(keywords: type[Any]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Let a function take some fields of `ReleaseOptions` as keyword arguments, and say so in its help.

    It takes those of the TypedDict `keywords` as ``**options: Unpack[..]``, and raises TypeError on any other.
    """
    options = inspect.signature(ReleaseOptions).parameters.values()
    wanted = [each for each in options if each.name in keywords.__annotations__]

    def documented(function: Callable[P, R]) -> Callable[P, R]:
        given = inspect.signature(function).parameters.values()
        own = [each for each in given if each.kind is not inspect.Parameter.VAR_KEYWORD]
        known = [each.name for each in (*own, *wanted)]

        @wraps(function)
        def run(*args: P.args, **kwargs: P.kwargs) -> R:
            for name in kwargs:
                if name not in known:
                    near = get_close_matches(name, known, 1)
                    hint = f"; did you mean {near[0]!r}?" if near else ""
                    what = (
                        f"{function.__qualname__}() got an unexpected keyword argument"
                    )
                    raise TypeError(f"{what} {name!r}{hint}")
            return function(*args, **kwargs)

        vars(run)["__signature__"] = inspect.signature(function).replace(
            parameters=[*own, *wanted]
        )
        run.__doc__ = _with_parameters(
            function.__doc__ or "", [each.name for each in wanted]
        )
        return run

    return documented


def _with_parameters(doc: str, names: Sequence[str]) -> str:
    text = inspect.cleandoc(doc)
    at = next(
        (
            text.index(end)
            for end in ("\n\nAttributes\n", "\n\nRaises\n")
            if end in text
        ),
        len(text),
    )
    own = (
        inspect.cleandoc(ReleaseOptions.__doc__ or "")
        .partition("\n----------")[2]
        .partition("\n\nRaises")[0]
    )
    more = {block.split(" ")[0]: f"\n{block}" for block in re.split(r"\n(?! )", own)}
    return text[:at] + "".join(more[name] for name in names) + text[at:]
