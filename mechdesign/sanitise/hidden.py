"""Sensitive values that a frame holds beside its columns: in its index, or inside of structures."""

# pandas, polars and pyarrow tell too little of their types for the strict mode.
# pyright: basic
from __future__ import annotations

from typing import Any

from mechdesign.errors import InputError
from mechdesign.exact import quoted
from mechdesign.sanitise.lookalikes import lookalikes, refuse_inner
from mechdesign.sanitise.plan import Plan, secret_columns
from mechdesign.sanitise.recipe import Recipe


def refuse_hidden(frame: Any, recipe: Recipe, plan: Plan) -> None:
    """Refuse an index, or a field inside of a column, that is called like a sensitive column.

    Parameters
    ----------
    frame : pandas or polars DataFrame, pyarrow Table or RecordBatch
    recipe : Recipe
    plan : Plan
        Made for the columns of the frame.

    Raises
    ------
    InputError
        Unless the user wants sensitive columns to stay.
    """
    wishes = recipe.wishes
    if wishes.keep_sensitive:
        return
    secret = [*secret_columns(recipe.channels, wishes), *wishes.correlated]
    for name, like in lookalikes(_index_names(frame), secret, ()):
        raise InputError(
            f"the index {quoted(name)} looks like the sensitive column {quoted(like)} and would stay in the output; "
            "take it off (reset_index), or keep it knowingly (keep_sensitive)"
        )
    schema = _arrow_schema(frame)
    if schema is not None:
        kept = [column.name for column in plan.columns if column.release is None]
        refuse_inner(schema, kept, secret)


def _index_names(frame: Any) -> list[Any]:
    """Names of a pandas index."""
    return [name for name in getattr(getattr(frame, "index", None), "names", ()) if name is not None]


def _arrow_schema(frame: Any) -> Any:
    """The types as arrow has them; None for pandas, whose columns hold no structures but Python's own."""
    import pyarrow as pa

    if isinstance(frame, (pa.Table, pa.RecordBatch)):
        return frame.schema
    return frame.head(0).to_arrow().schema if hasattr(frame, "to_arrow") else None
