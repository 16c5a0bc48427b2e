"""From the table options of a command to a joint."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mechdesign.cli.options import columns
from mechdesign.errors import InputError

if TYPE_CHECKING:
    from mechdesign.joint import Joint

MISSING = ("refuse", "symbol", "drop")


def joint_of(
    path: str,
    *,
    sensitive: str | None,
    useful: str | None,
    weight: str | None = None,
    contingency: bool = False,
    probabilities: bool = False,
    missing: str = "refuse",
    names: tuple[tuple[str, ...], tuple[str, ...]] | None = None,
) -> Joint:
    """Read the table at `path` as the options say.

    Parameters
    ----------
    names : (sensitive columns, useful columns), optional
        What to look for where `sensitive` or `useful` is not given: the columns of a channel.

    Raises
    ------
    InputError
        On options that contradict each other, or a table that cannot be used.
    """
    sensitive_columns = columns("--sensitive", sensitive) or (names[0] if names else None)
    useful_columns = columns("--useful", useful) or (names[1] if names else None)
    wide = contingency or probabilities
    if contingency and probabilities:
        raise InputError("--contingency reads counts and --probabilities probabilities: give one of them")
    if wide and weight is not None:
        raise InputError("--weight belongs to a long table; a wide one (--contingency, --probabilities) has none")
    if missing not in MISSING:
        raise InputError(f"--missing {missing!r} must be one of {', '.join(MISSING)}")
    if not wide and (sensitive_columns is None or useful_columns is None):
        absent = "--sensitive" if sensitive_columns is None else "--useful"
        raise InputError(
            f"{absent} COL is missing: which column? (a wide count table needs --contingency instead)"
        )
    from mechdesign.tables import read_joint

    return read_joint(
        path,
        sensitive=sensitive_columns,
        useful=useful_columns,
        weight=weight,
        contingency=contingency,
        probabilities=probabilities,
        missing=missing,
    )
