"""A release as a step of a scikit-learn pipeline.

What scikit-learn hands to a transformer, a data frame or an array, as named columns.
"""

# pandas, polars and numpy tell too little of their types for the strict mode.
# pyright: basic
from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, cast

import numpy as np

if find_spec("sklearn") is None:
    raise ImportError(
        "ReleaseTransformer needs scikit-learn, which is not installed: pip install 'mechdesign[sklearn]'"
    )

from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import (
    check_array,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from mechdesign.channel.channel import Channel
from mechdesign.core.errors import InputError
from mechdesign.core.files import PathLike
from mechdesign.formats.cells import encode, require_column
from mechdesign.mechanisms import OPTIMAL, design
from mechdesign.notions import Notion
from mechdesign.release.drawing import LABEL, key_of
from mechdesign.release.draws import Key
from mechdesign.release.policies import REFUSE, Policy
from mechdesign.sanitise.frames import header_of, sanitised
from mechdesign.sanitise.job_store import key_at
from mechdesign.sanitise.recipe import Drawer, Drawn, Names, Recipe, names_of, recipe_of
from mechdesign.tables.columns import positions_of, rebuild
from mechdesign.tables.joint import Joint
from mechdesign.tables.tally import Missing, Roles, Tally


@dataclass(frozen=True)
class LearningTable:
    """Named columns.

    Parameters
    ----------
    names : tuple of str
        Those of the frame; x0, x1, .. for an array.
    frame : pandas or polars DataFrame or pyarrow Table, or None
    array : (count, columns) array, or None
    """

    names: tuple[Any, ...]
    frame: Any = None
    array: Any = None

    @staticmethod
    def is_frame(table: Any) -> bool:
        """Whether it has named columns (else it is for scikit-learn to make an array of it)."""
        return hasattr(table, "columns") and (hasattr(table, "iloc") or hasattr(table, "schema"))

    @classmethod
    def of_frame(cls, frame: Any) -> LearningTable:
        """Raises InputError as `frame.header_of`."""
        return cls(tuple(header_of(frame)), frame=frame)

    @classmethod
    def of_array(cls, array: Any) -> LearningTable:
        """Of an array with two dimensions."""
        return cls(tuple(f"x{i}" for i in range(array.shape[1])), array=array)

    @property
    def count(self) -> int:
        """Number of records."""
        return len(self.array if self.frame is None else self.frame)

    def column(self, name: Any) -> Any:
        """The cells of a column.

        Raises
        ------
        InputError
            If there is none of this name.
        """
        require_column(name, self.names)
        return self.array[:, self.names.index(name)] if self.frame is None else self.frame[name]

    def counted(
        self, sensitive: Sequence[str], useful: Sequence[str], target: Any, missing: Missing
    ) -> Joint:
        """The joint table of the columns, or of `target` (called y) and the useful ones.

        Raises
        ------
        InputError
            If a column is not there, or the records make no table.
        """
        columns = [encode(self.column(name), name) for name in (*sensitive, *useful)]
        if target is not None:
            sensitive = (_free_name("y", self.names),)
            columns.insert(0, encode(target, sensitive[0]))
        tally = Tally(Roles(tuple(sensitive), tuple(useful)), missing)
        tally.add_columns(columns)
        return Joint.from_tally(tally)

    def without(self, names: Sequence[str]) -> LearningTable:
        """The table without these columns, as far as it has them."""
        gone = [name for name in names if name in self.names]
        if not gone:
            return self
        kept = [name for name in self.names if name not in gone]
        if self.frame is None:
            return LearningTable(tuple(kept), array=self.array[:, [self.names.index(name) for name in kept]])
        frame = self.frame.select(kept) if hasattr(self.frame, "select") else self.frame[kept]
        return LearningTable(tuple(kept), frame=frame)


def _free_name(name: str, taken: Sequence[str]) -> str:
    while name in taken:
        name += "_"
    return name


def released_array(table: LearningTable, drawer: Drawer) -> Any:
    """The released array: of the type of the input where all its values are of that type, else of objects."""
    array = table.array
    drawn = drawer.draw(lambda at: array[:, at], table.count)
    as_numbers = drawer.recipe.wishes.form != LABEL and array.dtype.kind in "iufb"
    columns = [
        array[:, column.source]
        if column.release is None
        else _numbers(drawn[column.release], array.dtype)
        if as_numbers
        else rebuild(array[:, 0], drawn[column.release].codes, drawn[column.release].labels, column.name)
        for column in drawer.plan.columns
    ]
    if len({column.dtype.kind for column in columns}) == 1:
        return np.column_stack(columns)
    result = np.empty((table.count, len(columns)), dtype=object)
    for i, column in enumerate(columns):
        result[:, i] = column
    return result


def _numbers(drawn: Drawn, dtype: Any) -> Any:
    """Symbols that were written from numbers of this type, as numbers again; the empty symbol is NaN."""
    if dtype.kind == "b":
        values = [label == "True" for label in drawn.labels]
    elif dtype.kind == "f":
        values = [float(label) if label else np.nan for label in drawn.labels]
    else:
        values = [int(label) for label in drawn.labels]
    return np.array(values, dtype=dtype)[drawn.codes]


SAME_BY_CHANCE = 40
"""Bits of surprise in the symbols of a data set, in their order, from which on no other one is taken for it: the chance
that independent records have the same symbols is below 2**-40."""


class ReleaseTransformer(TransformerMixin, BaseEstimator):
    """Releases a column: `fit` designs a channel from a table, `transform` draws from it.

    A record is known by `identity` or `row_numbers`; without them by its place in its data set, and a data set by its
    symbols in their order: transforming the same data again gives the same draws, other data get draws of their own.
    A record that occurs in several data sets is then released several times, which tells more than the budget: give
    `identity` and `key` where data overlap (train and test folds of the same people, nightly runs), or where single
    records are served.

    A pickle of a fitted transformer has the key in it (only the path, if `key` is a path), and the joint table: keep it
    as a key file is kept.

    Parameters
    ----------
    notion : Notion, optional
        What the channel promises, as for `design`; needed unless `channel` is given.
    sensitive : str or sequence of str, optional
        Columns of S, crossed if several. They are not in the output (unless `keep_sensitive`), and may be missing from
        what is transformed. By default y is S.
    useful : str or sequence of str, optional
        Columns of X, crossed if several; by default all others. The columns of arrays are called x0, x1, ..
    channel : Channel or path of a channel file, optional
        Release through this channel; nothing is designed.
    mechanism, gap, time_limit
        As for `design`.
    missing : {"refuse", "symbol", "drop"}
        What a missing cell does when the table is counted, as for `Joint.from_table`.
    form : {"label", "posterior-draw"}
        The label of Y as text, or a value of X drawn from P(X|Y), which in an array of numbers is a number again.
    policy : Policy, optional
        What `transform` does with unknown symbols and missing cells; both are refused by default.
    key : Key, or path of a key file or job file, optional
        By default `fit` makes a new one.
    identity : str or sequence of str, optional
        Columns that identify a record.
    row_numbers : str, optional
        Column with the row number of each record; one key, one data set.
    keep_sensitive : bool
        Whether the columns of S stay in the output.
    insecure_seed : int, optional
        Reproducible draws, for tests only: whoever knows the seed can undo the release.

    Attributes
    ----------
    channel_ : Channel
        With its record of what is guaranteed.
    n_features_in_ : int
    feature_names_in_ : array of str
        Where the table has names.

    Raises
    ------
    InputError
        From `fit` and `transform`, as `design` and `sanitise`; also where other data than those of `fit` are too few
        to be told from a third data set and nothing identifies the records.
    """

    n_features_in_: int

    def __init__(
        self,
        notion: Notion | None = None,
        *,
        sensitive: Names | None = None,
        useful: Names | None = None,
        channel: Channel | PathLike | None = None,
        mechanism: str = OPTIMAL,
        gap: float = 1e-4,
        time_limit: float | None = None,
        missing: Missing = "refuse",
        form: str = LABEL,
        policy: Policy | None = None,
        key: Key | PathLike | None = None,
        identity: Names | None = None,
        row_numbers: str | None = None,
        keep_sensitive: bool = False,
        insecure_seed: int | None = None,
    ) -> None:
        self.notion = notion
        self.sensitive = sensitive
        self.useful = useful
        self.channel = channel
        self.mechanism = mechanism
        self.gap = gap
        self.time_limit = time_limit
        self.missing = missing
        self.form = form
        self.policy = policy
        self.key = key
        self.identity = identity
        self.row_numbers = row_numbers
        self.keep_sensitive = keep_sensitive
        self.insecure_seed = insecure_seed

    def fit(self, X: Any, y: Any = None) -> ReleaseTransformer:
        """Count the table and design the channel (or take the one given).

        Parameters
        ----------
        X : data frame or array (n_samples, n_features)
        y : (n_samples,) array, optional
            The sensitive symbols, where no columns of X are sensitive.
        """
        table = self._table(X, reset=True)
        self.channel_ = self._designed(table, y) if self.channel is None else self._given()
        self._made = Key.fresh() if self.key is None and self.insecure_seed is None else None
        self._left = [] if self.keep_sensitive else self._sensitive_columns()
        released = table.without(self._left)
        self._names_out = list(self._recipe(self._key()).plan(released.names).header)
        self._fitted = self._digest(released)[0]
        return self

    def transform(self, X: Any) -> Any:
        """The table with X replaced by draws: a frame of the same kind, or an array.

        Parameters
        ----------
        X : data frame or array (n_samples, n_features)
        """
        check_is_fitted(self, "channel_")
        table = self._table(X, reset=False).without(self._left)
        drawer = Drawer(self._recipe(self._key_for(table)), table.names)
        if table.frame is not None:
            return sanitised(table.frame, drawer)
        return released_array(table, drawer)

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Names of the columns of the output.

        Parameters
        ----------
        input_features : sequence of str, optional
            Those of the input, if given.
        """
        check_is_fitted(self, "channel_")
        known = getattr(self, "feature_names_in_", None)
        if input_features is not None:
            names = list(input_features)
            if known is not None and names != list(known):
                raise InputError("input_features is not equal to feature_names_in_")
            if len(names) != self.n_features_in_:
                raise InputError(f"input_features should have length equal to {self.n_features_in_}")
        return np.array(self._names_out, dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.input_tags.allow_nan = self._allows_gaps()
        tags.target_tags.required = self.sensitive is None and self.channel is None
        tags.non_deterministic = self.key is None and self.insecure_seed is None
        return tags

    def _table(self, X: Any, *, reset: bool) -> LearningTable:
        """The columns of X, its shape and names checked as scikit-learn does."""
        if LearningTable.is_frame(X):
            table = LearningTable.of_frame(X)
            known: Any = getattr(self, "feature_names_in_", ())
            left = [] if reset else self._sensitive_columns()
            if not left or list(table.names) != [name for name in known if name not in left]:
                validate_data(self, X, skip_check_array=True, reset=reset)
            return table
        finite: Any = "allow-nan" if self._allows_gaps() else True
        least = 2 if reset else 1  # one record makes no table of S and X
        checks: Any = {"dtype": None, "ensure_all_finite": finite, "ensure_min_samples": least}
        return LearningTable.of_array(validate_data(self, X, reset=reset, **checks))

    def _allows_gaps(self) -> bool:
        return self.missing != "refuse" or (self.policy is not None and self.policy.null != REFUSE)

    def _given(self) -> Channel:
        return Channel.load(self.channel) if isinstance(self.channel, (str, os.PathLike)) else self.channel  # type: ignore[return-value]

    def _designed(self, table: LearningTable, y: Any) -> Channel:
        if self.notion is None:
            raise InputError("give a notion, such as ALIP(eps_l=1, eps_u=1), or a channel")
        others = [*names_of(self.identity), *([] if self.row_numbers is None else [self.row_numbers])]
        sensitive = names_of(self.sensitive)
        useful = names_of(self.useful) or tuple(n for n in table.names if n not in (*sensitive, *others))
        target = None if sensitive else self._target(table, y)
        joint = table.counted(sensitive, useful, target, cast("Missing", self.missing))
        result = design(
            joint,
            self.notion,
            mechanism=self.mechanism,
            gap=self.gap,
            time_limit=self.time_limit,
        )
        return result.channel

    def _target(self, table: LearningTable, y: Any) -> Any:
        if y is None:
            raise InputError(
                "ReleaseTransformer requires y to be passed, but the target y is None: y is the sensitive variable, "
                "unless the parameter sensitive names columns"
            )
        finite: Any = "allow-nan" if self.missing != "refuse" else True
        kept: Any = None
        target = check_array(
            column_or_1d(y, warn=True), ensure_2d=False, dtype=kept, ensure_all_finite=finite, input_name="y"
        )
        check_consistent_length(table.column(table.names[0]), target)
        return target

    def _sensitive_columns(self) -> list[str]:
        """The columns of X that hold S."""
        if self.sensitive is not None:
            return list(names_of(self.sensitive))
        variable = self.channel_.sensitive if self.channel is not None else None
        return [] if variable is None else list(variable.columns)

    def _key(self) -> Key:
        """That of the job; a key file is read each time, so that no pickle has its key."""
        key = (
            key_at(self.key, names_of(self.identity))
            if isinstance(self.key, (str, os.PathLike))
            else self.key
        )
        return self._made or key_of(key, self.insecure_seed)

    def _recipe(self, key: Key) -> Recipe:
        return recipe_of(
            self.channel_,
            key=key,
            identity=self.identity,
            row_numbers=self.row_numbers,
            form=self.form,
            policy=self.policy,
            keep_sensitive=self.keep_sensitive,
        )

    def _key_for(self, table: LearningTable) -> Key:
        """The key of the job, or of this data set where the records have only their places in it."""
        if self.identity is not None or self.row_numbers is not None:
            return self._key()
        digest, surprise = self._digest(table)
        if digest != self._fitted and surprise < SAME_BY_CHANCE:
            raise InputError(
                f"{table.count} record(s) are too few to be told from other ones with the same symbols, whose draws "
                "would be the same: name what identifies a record with the parameter identity"
            )
        return self._key().derived("data set", digest)

    def _digest(self, table: LearningTable) -> tuple[str, float]:
        """What tells this data set from others, and how surprising its symbols are, in bits."""
        useful, joint = self.channel_.useful, self.channel_.joint
        codes = positions_of([encode(table.column(name), name) for name in useful.columns], useful)
        p = np.full(len(useful), 1 / len(useful)) if joint is None else joint.p_x
        surprise = -np.log2(p[codes[codes >= 0]]).sum()
        return hashlib.sha256(codes.astype("<i8").tobytes()).hexdigest(), float(surprise)
