"""Sanitised data frames: the same kind of frame back, with everything else in it as it was."""

# pandas, polars, pyarrow and narwhals tell too little of their types for the strict mode.
# pyright: basic
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mechdesign.draws import Key
from mechdesign.errors import InputError
from mechdesign.exact import quoted
from mechdesign.files import PathLike
from mechdesign.frames import rebuild
from mechdesign.policies import Policy
from mechdesign.release import LABEL
from mechdesign.sanitise.hidden import refuse_hidden
from mechdesign.sanitise.plan import FileChannel
from mechdesign.sanitise.recipe import Drawer, Into, Names, recipe_of, stands_for

_WAYS_OUT = {
    "LazyFrame": "a polars LazyFrame has no records yet; collect() it first, or sanitise its file",
    "pyspark": "a Spark DataFrame takes mechdesign.sanitise.sanitise_spark",
    "dask": "a Dask DataFrame takes mechdesign.sanitise.sanitise_dask",
    "dask_expr": "a Dask DataFrame takes mechdesign.sanitise.sanitise_dask",
}
"""What to do with what looks like a frame and is none, by its class or package."""


def sanitise(
    frame: Any,
    channel: FileChannel | Sequence[FileChannel],
    *,
    columns: Mapping[str, str] | None = None,
    key: Key | PathLike | None = None,
    identity: Names | None = None,
    row_numbers: str | None = None,
    first_row: int = 0,
    form: str = LABEL,
    into: Into | None = None,
    policy: Policy | None = None,
    keep_sensitive: bool = False,
    correlated: Names = (),
    insecure_seed: int | None = None,
) -> Any:
    """The frame with each channel's X replaced by draws of Y; a new frame, and the old one stays as it is.

    Rows, their order, the index, and the other columns stay; a released column of categories is one of
    categories, with all labels. The draw of a record depends on nothing but the key, the channel, and the record's
    identity: its place in the frame, a number in a column, or the text of identifiers. So the same record gets the
    same draw here, in a file, on Spark and on Dask, if key and identity are the same.

    A key belongs to one data set: records of two data sets with the same row numbers under the same key would have
    draws that depend on each other. The guarantee covers the released column alone: other columns that stay in the
    frame and tell of S or X void it.

    Parameters
    ----------
    frame : pandas or polars DataFrame, pyarrow Table or RecordBatch
    channel : Channel or sequence of Channel
        Each with columns of its own.
    columns : mapping, optional
        The frame's name of a column of a channel where it has another one there.
    key : draws.Key, or path of a key file or job file, optional
        That of the job; a job file (.json) gives the draws that it has released. Without one a new key is used and
        forgotten: another call would be a second, independent release of the same records, which tells more than the
        budget.
    identity : str or sequence of str, optional
        Columns that identify a record; integers or text.
    row_numbers : str, optional
        Column with the row number of each record, counted from 0, in any order.
    first_row : int
        Row number of the first record where the frame is a part of a table, and neither `identity` nor `row_numbers`
        is given.
    form : {"label", "posterior-draw"}
        The label of Y, or a value of X drawn from P(X|Y) under the table.
    into : str, or sequence of str, optional
        Names of columns to add at the end, and X stays (then the frame is no release). For several channels one
        name, or sequence of names, each.
    policy : release.Policy, optional
        What to do with unknown symbols and missing cells; by default both are refused.
    keep_sensitive : bool
        Whether sensitive and correlated columns may stay in the frame.
    correlated : str or sequence of str
        Columns that must not stay either.
    insecure_seed : int, optional
        Reproducible draws, for tests only: whoever knows the seed can undo the release.

    Raises
    ------
    InputError
        If this is no such frame, a column is not there or would stay and must not, a record has a symbol that the
        policy refuses, or no identity. The message names the column or the record.
    """
    recipe = recipe_of(
        channel,
        columns=columns,
        key=key,
        identity=identity,
        row_numbers=row_numbers,
        form=form,
        into=into,
        policy=policy,
        keep_sensitive=keep_sensitive,
        correlated=correlated,
        insecure_seed=insecure_seed,
    )
    if first_row and (identity is not None or row_numbers is not None):
        raise InputError(
            "first_row numbers records by their place, but identity or row_numbers say what identifies them"
        )
    return sanitised(frame, Drawer(recipe, header_of(frame)), first_row=first_row)


sanitise_frame = sanitise
"""The name of `sanitise` in `mechdesign`, where ``mechdesign.sanitise`` is the package."""


def header_of(frame: Any) -> list[Any]:
    """The column names of a frame.

    Raises
    ------
    InputError
        If it is no frame that can be sanitised, or two columns have the same name.
    """
    import narwhals as nw
    import pyarrow as pa

    if isinstance(frame, (pa.Table, pa.RecordBatch)):
        names = list(frame.schema.names)
    else:
        try:
            nw.from_native(frame, eager_only=True)
        except nw.exceptions.DuplicateError:
            pass
        except TypeError:
            kind = type(frame)
            found = (kind.__name__, kind.__module__.split(".")[0])
            hint = next((way for name, way in _WAYS_OUT.items() if name in found), f"not {kind.__name__}")
            raise InputError(f"the table must be a pandas, polars or pyarrow table; {hint}") from None
        names = list(frame.columns)
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"two columns have the same name {quoted(twice)}; rename one")
    return names


def sanitised(frame: Any, drawer: Drawer, *, first_row: int = 0, numbers: Any = None) -> Any:
    """The released frame, by a drawer that was made for its header; parameters as those of `Drawer.draw`."""
    import narwhals as nw
    import pyarrow as pa

    refuse_hidden(frame, drawer.recipe, drawer.plan)
    if isinstance(frame, (pa.Table, pa.RecordBatch)):
        from mechdesign.sanitise.arrow_table import sanitised_arrow

        return sanitised_arrow(frame, drawer, first_row=first_row, numbers=numbers)
    is_polars = nw.get_native_namespace(frame).__name__ == "polars"

    def column(at: int) -> Any:
        return frame.to_series(at) if is_polars else frame.iloc[:, at]

    drawn = drawer.draw(column, len(frame), first_row=first_row, numbers=numbers)
    plan, header = drawer.plan, drawer.header
    released: dict[Any, Any] = {}
    for part in plan.columns:
        if part.release is not None:
            codes, labels = drawn[part.release].codes, drawn[part.release].labels
            place = part.name if part.source is None else header[part.source]
            released[place] = rebuild(
                column(stands_for(plan, part)), codes, labels, part.name, own=drawer.own
            )
    stay = {part.source for part in plan.columns}
    gone = [name for i, name in enumerate(header) if i not in stay]
    new = {header[part.source]: part.name for part in plan.columns if part.source is not None}
    new = {old: name for old, name in new.items() if old != name}
    if is_polars:
        return (
            frame.with_columns(*(series.alias(name) for name, series in released.items()))
            .drop(gone)
            .rename(new)
        )
    result = frame.copy(deep=False)
    for name, series in released.items():
        result[name] = series
    result = result.drop(columns=gone) if gone else result
    return result.rename(columns=new) if new else result
