"""A release as a step of a scikit-learn pipeline, which hands on data frames or arrays."""

# pandas, polars and numpy tell too little of their types for the strict mode.
# pyright: basic
from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any, cast

import numpy as np

if find_spec("sklearn") is None:
    raise ImportError(
        "ReleaseTransformer needs scikit-learn: pip install 'mechdesign[sklearn]'"
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
from mechdesign.channel.loading import load_single
from mechdesign.core.errors import InputError, require_type
from mechdesign.core.files import PathLike
from mechdesign.formats.cells import encode
from mechdesign.formats.column_names import require_column
from mechdesign.frames.eager import arrow_columns, header_of, look_at, sanitised
from mechdesign.frames.frame_jobs import checked, released_table
from mechdesign.jobs.channel_recipe import ChannelRecipe
from mechdesign.jobs.options import ColumnNames, ReleaseOptions
from mechdesign.jobs.recipe import Drawer, DrawnColumn
from mechdesign.mechanisms.designing import design
from mechdesign.mechanisms.optimal import OPTIMAL
from mechdesign.notions import Notion
from mechdesign.release.draws import Key
from mechdesign.release.policies import REFUSE, Policy
from mechdesign.release.released_values import LABEL
from mechdesign.tables.columns import positions_of
from mechdesign.tables.joint import Joint
from mechdesign.tables.rebuilding import rebuild
from mechdesign.tables.tally import Missing, Roles, Tally


@dataclass(frozen=True)
class LearningTable:
    """Named columns: a data frame, or an array whose columns have names here."""

    names: tuple[Any, ...]
    data: Any

    @property
    def is_array(self) -> bool:
        """Whether it is no data frame."""
        return isinstance(self.data, np.ndarray)

    def column(self, name: Any) -> Any:
        """The cells of a column."""
        require_column(name, self.names)
        return (
            self.data[:, self.names.index(name)] if self.is_array else self.data[name]
        )

    def without(self, names: Sequence[str]) -> LearningTable:
        """The table without these columns, as far as it has them."""
        kept = [name for name in self.names if name not in names]
        if self.is_array:
            data: Any = self.data[:, [self.names.index(name) for name in kept]]
        else:
            data = (
                self.data.select(kept)
                if hasattr(self.data, "select")
                else self.data[kept]
            )
        return LearningTable(tuple(kept), data)


def _names(columns: ColumnNames | None) -> tuple[str, ...]:
    if columns is None:
        return ()
    return (columns,) if isinstance(columns, str) else tuple(columns)


def released_array(table: LearningTable, drawer: Drawer) -> Any:
    """The released array: of the type of the input where all its values are of that type, else of objects."""
    array = table.data
    drawn = drawer.draw(lambda at: array[:, at], len(array))
    as_numbers = drawer.recipe.options.form != LABEL and array.dtype.kind in "iufb"
    columns = [
        array[:, column.source]
        if column.release is None
        else _numbers(drawn[column.release], array.dtype)
        if as_numbers
        else rebuild(
            array[:, 0],
            drawn[column.release].codes,
            drawn[column.release].labels,
            column.name,
        )
        for column in drawer.plan.columns
    ]
    if len({column.dtype.kind for column in columns}) == 1:
        return np.column_stack(columns)
    return np.column_stack([column.astype(object) for column in columns])


def _numbers(drawn: DrawnColumn, dtype: Any) -> Any:
    """Symbols that were written from numbers of this type, as numbers again; the empty symbol is NaN."""
    read: dict[str, Any] = {
        "b": "True".__eq__,
        "f": lambda label: float(label or "nan"),
    }
    return np.array(
        [read.get(dtype.kind, int)(label) for label in drawn.labels], dtype=dtype
    )[drawn.codes]


OTHER_DATA = (
    "these are other data than those of fit, and nothing identifies their records: each call draws them anew, and a "
    "record that is released twice tells more than the budget; name what identifies a record with the parameter "
    "identity or row_numbers"
)


class ReleaseTransformer(TransformerMixin, BaseEstimator):
    """Releases a column: `fit` designs a channel from a table, `transform` draws from it.

    A record is known by `identity` or `row_numbers`, and gets the same draw whenever it comes. Without them it is known
    by its place in the data of `fit`: those get the same draws again, and other data get new ones at every call, with
    a warning, for a record that comes again is then released several times, which tells more than the budget. Give
    `identity` and `key` where data overlap (train and test folds of the same people, nightly runs), or where single
    records are served.

    A kept column that gives the useful one away in what is transformed is refused (unless in `keep`), and an order that
    does warned of (unless `keep_order`), as `sanitise` does.

    A pickle of a fitted transformer has the key in it (only the path, if `key` is a path), and the joint table: keep it
    as a key file is kept.

    Parameters
    ----------
    notion : Notion or Channel, optional
        What the channel promises, as for `design`; needed unless `channel` is given, which may also stand here.
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
    form, policy, key, ledger, identity, row_numbers, keep_sensitive, drop, keep, keep_order,
    insecure_seed, changed, fresh_draw
        As for `sanitise`, explained in ``help(mechdesign.jobs.options.ReleaseOptions)``. Without a key `fit` makes a
        new one. A posterior draw in an array of numbers is a number again. `keep_sensitive` keeps the columns of S.

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
        From `fit` and `transform`, as `design` and `sanitise`.
    """

    n_features_in_: int

    def __init__(
        self,
        notion: Notion | Channel | None = None,
        *,
        sensitive: ColumnNames | None = None,
        useful: ColumnNames | None = None,
        channel: Channel | PathLike | None = None,
        mechanism: str = OPTIMAL,
        gap: float = 1e-4,
        time_limit: float | None = None,
        missing: Missing = "refuse",
        form: str = LABEL,
        policy: Policy | None = None,
        key: Key | PathLike | None = None,
        ledger: PathLike | None = None,
        identity: ColumnNames | None = None,
        row_numbers: str | None = None,
        keep_sensitive: bool = False,
        drop: ColumnNames = (),
        keep: ColumnNames = (),
        keep_order: bool = False,
        insecure_seed: int | None = None,
        changed: str = REFUSE,
        fresh_draw: bool = False,
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
        self.ledger = ledger
        self.identity = identity
        self.row_numbers = row_numbers
        self.keep_sensitive = keep_sensitive
        self.drop = drop
        self.keep = keep
        self.keep_order = keep_order
        self.insecure_seed = insecure_seed
        self.changed = changed
        self.fresh_draw = fresh_draw

    def fit(self, X: Any, y: Any = None) -> ReleaseTransformer:
        """Count the table X (n_samples, n_features) and design the channel, or take the one given.

        y (n_samples,) are the sensitive symbols, where no columns of X are sensitive.
        """
        table = self._table(X, reset=True)
        given = self._released_by()
        if isinstance(given, (str, os.PathLike)):
            given = load_single(given)
        self.channel_ = (
            self._designed(table, y)
            if given is None
            else require_type("channel", given, Channel)
        )
        options = self._options()
        self._made = (
            Key.fresh() if ChannelRecipe.of(self.channel_, options).keyless else None
        )
        self._left = [] if options.keep_sensitive else self._sensitive_columns()
        released = table.without(self._left)
        self._names_out = list(self._recipe().plan(released.names).header)
        self._fitted = self._digest(released)
        return self

    def transform(self, X: Any) -> Any:
        """The table (n_samples, n_features) with X replaced by draws: a frame of the same kind, or an array."""
        check_is_fitted(self, "channel_")
        table = self._table(X, reset=False).without(self._left)
        recipe = self._recipe()
        ledger, numbered = recipe.options.ledger, recipe.options.row_numbers is not None
        identified = (
            recipe.options.identifiers or numbered or ledger is not None
        )  # which finds out for itself
        if not identified and self._digest(table) != self._fitted:
            warnings.warn(OTHER_DATA, stacklevel=2)
            recipe = replace(recipe, keys=(Key.fresh(),))

        def release(drawer: Drawer) -> tuple[Any, list[str]]:
            if table.is_array:
                released = released_array(table, drawer)
                drawer.checks.add(
                    len(table.data),
                    lambda step: lambda name: table.column(name)[::step],
                )
            else:
                released = sanitised(table.data, drawer)
                look_at(table.data, drawer)
            return released, checked(drawer)

        columns: list[Any] = []
        if ledger is not None:
            columns = table.data.T if table.is_array else arrow_columns(table.data)
        released, notices = released_table(
            recipe, table.names, columns, len(table.data), release
        )
        for notice in notices:
            warnings.warn(notice, stacklevel=3)
        return released

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Names of the columns of the output; those of the input, if given, must be right."""
        check_is_fitted(self, "channel_")
        known = getattr(self, "feature_names_in_", None)
        if input_features is not None:
            names = list(input_features)
            if known is not None and names != list(known):
                raise InputError("input_features is not equal to feature_names_in_")
            if len(names) != self.n_features_in_:
                raise InputError(
                    f"input_features should have length equal to {self.n_features_in_}"
                )
        return np.array(self._names_out, dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.input_tags.allow_nan = self._allows_gaps()
        tags.target_tags.required = (
            self.sensitive is None and self._released_by() is None
        )
        tags.non_deterministic = self.key is None and self.insecure_seed is None
        return tags

    def _table(self, X: Any, *, reset: bool) -> LearningTable:
        # What has no named columns is for scikit-learn to make an array of.
        if hasattr(X, "columns") and (hasattr(X, "iloc") or hasattr(X, "schema")):
            table = LearningTable(tuple(header_of(X)), X)
            known: Any = getattr(self, "feature_names_in_", ())
            left = [] if reset else self._sensitive_columns()
            if not left or list(table.names) != [
                name for name in known if name not in left
            ]:
                validate_data(self, X, skip_check_array=True, reset=reset)
            return table
        finite: Any = "allow-nan" if self._allows_gaps() else True
        least = 2 if reset else 1  # one record makes no table of S and X
        checks: Any = {
            "dtype": None,
            "ensure_all_finite": finite,
            "ensure_min_samples": least,
        }
        array: Any = validate_data(self, X, reset=reset, **checks)
        return LearningTable(tuple(f"x{i}" for i in range(array.shape[1])), array)

    def _allows_gaps(self) -> bool:
        return self.missing != "refuse" or (
            self.policy is not None and self.policy.null != REFUSE
        )

    def _released_by(self) -> Channel | PathLike | None:
        return (
            self.notion
            if self.channel is None and isinstance(self.notion, Channel)
            else self.channel
        )

    def _designed(self, table: LearningTable, y: Any) -> Channel:
        if not isinstance(self.notion, Notion):
            raise InputError(
                "give a notion, such as ALIP(eps_l=1, eps_u=1), or a channel"
            )
        options = self._options()
        sensitive = _names(self.sensitive)
        others = (*sensitive, *options.identifiers, *_names(options.row_numbers))
        useful = _names(self.useful) or tuple(
            name for name in table.names if name not in others
        )
        columns = [encode(table.column(name), name) for name in (*sensitive, *useful)]
        if not sensitive:
            name = "y"
            while name in table.names:
                name += "_"
            sensitive = (name,)
            columns.insert(0, encode(self._target(table, y), name))
        tally = Tally(Roles(sensitive, useful), cast("Missing", self.missing))
        tally.add_columns(columns)
        result = design(
            Joint.from_tally(tally),
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
        finite = "allow-nan" if self.missing != "refuse" else True
        checks: Any = {
            "ensure_2d": False,
            "dtype": None,
            "ensure_all_finite": finite,
            "input_name": "y",
        }
        target = check_array(column_or_1d(y, warn=True), **checks)
        check_consistent_length(table.column(table.names[0]), target)
        return target

    def _sensitive_columns(self) -> list[str]:
        if self.sensitive is not None:
            return list(_names(self.sensitive))
        variable = self.channel_.sensitive if self._released_by() is not None else None
        return [] if variable is None else list(variable.columns)

    def _options(self) -> ReleaseOptions:
        """As they are set now; a key file is read each time, so that no pickle has its key."""
        return ReleaseOptions(
            form=self.form,
            policy=self.policy,
            key=self.key,
            ledger=self.ledger,
            identity=self.identity,
            row_numbers=self.row_numbers,
            keep_sensitive=self.keep_sensitive,
            drop=self.drop,
            keep=self.keep,
            keep_order=self.keep_order,
            insecure_seed=self.insecure_seed,
            changed=self.changed,
            fresh_draw=self.fresh_draw,
        )

    def _recipe(self) -> ChannelRecipe:
        options = self._options()
        return ChannelRecipe.of(
            self.channel_,
            options if self._made is None else replace(options, key=self._made),
        )

    def _digest(self, table: LearningTable) -> str:
        """What tells the data of `fit` from others: the symbols in their order."""
        useful = self.channel_.useful
        codes = positions_of(
            [encode(table.column(name), name) for name in useful.columns], useful
        )
        return hashlib.sha256(codes.astype("<i8").tobytes()).hexdigest()
