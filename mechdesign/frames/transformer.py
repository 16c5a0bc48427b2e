"""A release as a step of a scikit-learn pipeline, which hands on data frames or arrays. ::

    release = ReleaseTransformer(ALIP(eps_l=1, eps_u=1), sensitive="sex", useful="job")
    make_pipeline(release, OneHotEncoder(), LogisticRegression()).fit(people, income)

`fit` counts the table and designs a channel, or takes the one given. It settles the key of the
release, and which columns the output has. `transform` draws, and its key decides which draws a
record gets::

    the data of `fit`                       the key of `fit`: the draws of `fit_transform` again
    other data, with identifiers            the key of `fit`: each identifier has its draw
    any data, with a ledger                 that of the ledger, which knows records again
    other data, with nothing of the kind    a new one at every call, and a warning

The data of `fit` are recognised by a hash of their useful symbols in order (`_digest`).

Both methods take frames and arrays as a `LearningTable`, and leave the release to `sanitising`.
What `fit` finds is in `channel_` and in private attributes: the key of the release (`_own_key`, if
none was given), the sensitive columns that are left out (`_left_out`), the names of the output
(`_names_out`) and the digest of the data (`_fitted_digest`). As scikit-learn requires, `__init__`
stores its arguments and checks nothing.
"""

# pandas, polars and numpy have no complete types.
# pyright: basic
from __future__ import annotations

import hashlib
import os
import warnings
from dataclasses import replace
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
from mechdesign.channel.file import load_without_boxes, require_without_boxes
from mechdesign.core.errors import InputError
from mechdesign.core.files import PathLike
from mechdesign.formats.cells import encode
from mechdesign.frames.eager import find_adapter, require_different_names
from mechdesign.frames.people_guard import LearningTable
from mechdesign.frames.sanitising import disclosure_warnings, released_table
from mechdesign.jobs.channel_recipe import ChannelRecipe
from mechdesign.jobs.options import ColumnNames, ReleaseOptions
from mechdesign.jobs.recipe import Drawer
from mechdesign.mechanisms.design_call import design
from mechdesign.mechanisms.optimal import OPTIMAL
from mechdesign.notions import Notion
from mechdesign.release.draws import Key
from mechdesign.release.released_values import LABEL
from mechdesign.release.samplers import REFUSE, Policy
from mechdesign.tables.columns import positions_of
from mechdesign.tables.joint import Joint
from mechdesign.tables.tally import Missing, Roles, Tally

OTHER_DATA = (
    "these are other data than those of fit, and nothing identifies their records: each call draws "
    "them anew, and a record that is released twice tells more than the budget; name what "
    "identifies a record with the parameter identity or row_numbers"
)


class ReleaseTransformer(TransformerMixin, BaseEstimator):
    """Releases a column: `fit` designs a channel from a table, `transform` draws from it.

    A record is known by `identity` or `row_numbers`, and gets the same draw whenever it comes.
    Without them it is known by its place in the data of `fit`: those get the same draws again, and
    other data get new ones at every call, with a warning, for a record that comes again is then
    released several times, which discloses more than the budget. Give `identity` and `key` where
    data overlap (train and test folds of the same people, nightly runs), or where single records
    are served.

    A kept column that gives the useful one away in what is transformed is refused (unless in
    `keep`), and an order that does warned of (unless `keep_order`), as `sanitise` does.

    Its parameters are of four groups, in the order of the signature:

    - what `design` gets, or a finished channel: `notion` to `time_limit`;
    - how the table is counted: `missing`;
    - how a draw is made and a record is known: `form` to `row_numbers`, with `insecure_seed`,
      `changed` and `fresh_draw` at the end;
    - which other columns the output has: `keep_sensitive` to `keep_order`.

    A pickle of a fitted transformer has the key in it (only the path, if `key` is a path), and the
    joint table: keep it as a key file is kept.

    Parameters
    ----------
    notion : Notion or Channel, optional
        What the channel promises, as for `design`; needed unless `channel` is given, which may also
        stand here.
    sensitive : str or sequence of str, optional
        Columns of S, crossed if several. They are not in the output (unless `keep_sensitive`), and
        may be missing from what is transformed. By default y is S.
    useful : str or sequence of str, optional
        Columns of X, crossed if several; by default all others. The columns of arrays are called
        x0, x1, ..
    channel : Channel or path of a channel file, optional
        Release through this channel; nothing is designed.
    mechanism, gap, time_limit
        As for `design`.
    missing : {"refuse", "symbol", "drop"}
        What a missing cell does when the table is counted, as for `Joint.from_table`.
    form, policy, key, ledger, identity, row_numbers, keep_sensitive, drop, keep, keep_index,
    keep_order, insecure_seed, changed, fresh_draw, unit
        As for `sanitise`, explained in ``help(mechdesign.jobs.options.ReleaseOptions)``. Without a
        key `fit` makes a new one. Rows are numbered anew: in a `ColumnTransformer` with frames of
        pandas beside others, `keep_index` keeps the labels by which they are joined. A posterior
        draw in an array of numbers is a number again. `keep_sensitive` keeps the columns of S.

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
        keep_index: bool = False,
        keep_order: bool = False,
        insecure_seed: int | None = None,
        changed: str = REFUSE,
        fresh_draw: bool = False,
        unit: str | None = None,
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
        self.keep_index = keep_index
        self.keep_order = keep_order
        self.insecure_seed = insecure_seed
        self.changed = changed
        self.fresh_draw = fresh_draw
        self.unit = unit

    def fit(self, X: Any, y: Any = None) -> ReleaseTransformer:
        """Count the table X (n_samples, n_features) and design the channel, or take the one given.

        y (n_samples,) are the sensitive symbols, where no columns of X are sensitive.
        """
        table = self._table(X, reset=True)
        channel = self._given_channel()
        if isinstance(channel, (str, os.PathLike)):
            channel = load_without_boxes(channel)
        if channel is None:
            self.channel_ = self._designed(table, y)
        else:
            hint = "; boxes have no transformer: use sanitise"
            self.channel_ = require_without_boxes("channel", channel, hint)

        options = self._options()
        # One key for all calls of `transform`, or the data of `fit` would be drawn anew in each.
        self._own_key: Key | None = None
        if ChannelRecipe.of(self.channel_, options).keyless:
            self._own_key = Key.fresh()
        self._left_out: list[str] = []
        if not options.keep_sensitive:
            released_columns = self.channel_.useful.columns
            for name in self._sensitive_columns():
                # A sensitive column that is released itself is replaced, and not left out.
                if name not in released_columns:
                    self._left_out.append(name)
        # What `transform` gets may lack the sensitive columns, and must have the same digest.
        released = table.without(self._left_out)
        self._names_out = list(self._recipe().plan(released.names).header)
        self._fitted_digest = self._digest(released)
        return self

    def transform(self, X: Any) -> Any:
        """The table (n_samples, n_features) with X replaced by draws: a frame of the same kind, or
        an array.
        """
        check_is_fitted(self, "channel_")
        table = self._table(X, reset=False).without(self._left_out)
        recipe = self._recipe()
        if self._needs_new_key(table, recipe.options):
            warnings.warn(OTHER_DATA, stacklevel=2)
            recipe = replace(recipe, keys=(Key.fresh(),))

        table.refuse_people(recipe)

        def release(drawer: Drawer) -> tuple[Any, list[str]]:
            released, checks = table.released(drawer)
            warned = disclosure_warnings(drawer, checks, can_shuffle=False)
            return released, warned

        # Only a ledger hashes the records.
        columns: Any = []
        if recipe.options.ledger is not None:
            columns = table.columns()
        released, notices = released_table(
            recipe, table.names, columns, len(table.data), release
        )
        for notice in notices:
            warnings.warn(notice, stacklevel=3)
        return released

    def _needs_new_key(self, table: LearningTable, options: ReleaseOptions) -> bool:
        """Whether these are other data than those of `fit`, and nothing identifies their records.

        A record is then known by its place. Under the key of `fit`, the records of both data at one
        place would share their random numbers.
        """
        if options.identifiers or options.row_numbers is not None:
            return False
        # A ledger finds out by itself which records it knows.
        if options.ledger is not None:
            return False
        return self._digest(table) != self._fitted_digest

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Names of the columns of the output; those of the input, if given, must be right."""
        check_is_fitted(self, "channel_")
        # scikit-learn sets the names of `fit` only where it had some.
        fitted_names = getattr(self, "feature_names_in_", None)
        if input_features is not None:
            names = list(input_features)
            if fitted_names is not None and names != list(fitted_names):
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
            self.sensitive is None and self._given_channel() is None
        )
        tags.non_deterministic = self.key is None and self.insecure_seed is None
        return tags

    def _table(self, X: Any, *, reset: bool) -> LearningTable:
        """The columns of a frame or array; `reset` in `fit`, where scikit-learn notes the names."""
        # What has no named columns is for scikit-learn to make an array of.
        adapter = find_adapter(X)
        if adapter is not None:
            table = LearningTable(tuple(require_different_names(adapter.names)), X)
            if reset or not self._lacks_sensitive_columns_alone(table):
                validate_data(self, X, skip_check_array=True, reset=reset)
            return table
        checks: dict[str, Any] = {"dtype": None, "ensure_all_finite": True}
        if self._allows_gaps():
            checks["ensure_all_finite"] = "allow-nan"
        # One record makes no table of S and X.
        checks["ensure_min_samples"] = 2 if reset else 1
        array: Any = validate_data(self, X, reset=reset, **checks)
        return LearningTable(tuple(f"x{i}" for i in range(array.shape[1])), array)

    def _lacks_sensitive_columns_alone(self, table: LearningTable) -> bool:
        """Whether a table has the columns of `fit` but for the sensitive ones."""
        sensitive = self._sensitive_columns()
        # scikit-learn sets the names of `fit` only where it had some.
        fitted: Any = getattr(self, "feature_names_in_", ())
        others = [name for name in fitted if name not in sensitive]
        return bool(sensitive) and list(table.names) == others

    def _allows_gaps(self) -> bool:
        """Whether missing cells may be there: in the table that is counted, or in a release."""
        return self.missing != "refuse" or (
            self.policy is not None and self.policy.missing != REFUSE
        )

    def _given_channel(self) -> Channel | PathLike | None:
        """The channel that was given, if any."""
        if self.channel is None and isinstance(self.notion, Channel):
            return self.notion
        return self.channel

    def _designed(self, table: LearningTable, y: Any) -> Channel:
        """The channel that is designed from the counts of a table; y is S without S columns."""
        if not isinstance(self.notion, Notion):
            raise InputError(
                "give a notion, such as ALIP(eps_l=1, eps_u=1), or a channel"
            )
        sensitive = _names(self.sensitive)
        useful = _names(self.useful) or self._other_columns(table)
        named = (*sensitive, *useful)
        if sensitive == useful:
            # The released columns themselves are protected: a tally has each column once.
            named = sensitive
        columns = [encode(table.column(name), name) for name in named]
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

    def _other_columns(self, table: LearningTable) -> tuple[str, ...]:
        """All columns but the sensitive ones and those that identify records."""
        options = self._options()
        excluded = {
            *_names(self.sensitive),
            *options.identifiers,
            *_names(options.row_numbers),
        }
        return tuple(name for name in table.names if name not in excluded)

    def _target(self, table: LearningTable, y: Any) -> Any:
        """y as a column of sensitive symbols, as many as the table has records."""
        if y is None:
            raise InputError(
                "ReleaseTransformer requires y to be passed, but the target y is None: y is the "
                "sensitive variable, unless the parameter sensitive names columns"
            )
        finite: Any = True
        if self.missing != "refuse":
            finite = "allow-nan"
        # scikit-learn declares a type of numbers only, and takes None for any type.
        any_type: Any = None
        target = check_array(
            column_or_1d(y, warn=True),
            ensure_2d=False,
            dtype=any_type,
            ensure_all_finite=finite,
            input_name="y",
        )
        check_consistent_length(table.column(table.names[0]), target)
        return target

    def _sensitive_columns(self) -> list[str]:
        """The columns of S: as named, or those of the channel that was given."""
        if self.sensitive is not None:
            return list(_names(self.sensitive))
        if self._given_channel() is None:
            return []
        variable = self.channel_.sensitive
        if variable is None:
            return []
        return list(variable.columns)

    def _options(self) -> ReleaseOptions:
        """The parameters that are about the release; a key file is read each time, so that no
        pickle has its key.
        """
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
            keep_index=self.keep_index,
            keep_order=self.keep_order,
            insecure_seed=self.insecure_seed,
            changed=self.changed,
            fresh_draw=self.fresh_draw,
            unit=self.unit,
        )

    def _recipe(self) -> ChannelRecipe:
        """The recipe of the release, under the key given or that of `fit`."""
        options = self._options()
        if self._own_key is not None:
            options = replace(options, key=self._own_key)
        recipe = ChannelRecipe.of(self.channel_, options)
        if recipe.people is not None:
            raise InputError(
                "a transformer releases record by record, and this channel is for people with "
                "several records: use sanitise or channel.apply"
            )
        return recipe

    def _digest(self, table: LearningTable) -> str:
        """A hash of the useful symbols in order, by which the data of `fit` are recognised."""
        useful = self.channel_.useful
        columns = [encode(table.column(name), name) for name in useful.columns]
        codes = positions_of(columns, useful)
        return hashlib.sha256(codes.astype("<i8").tobytes()).hexdigest()


def _names(columns: ColumnNames | None) -> tuple[str, ...]:
    """One name, several or none, as a tuple."""
    if columns is None:
        return ()
    if isinstance(columns, str):
        return (columns,)
    return tuple(columns)
