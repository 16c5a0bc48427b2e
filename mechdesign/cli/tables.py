"""From the table options of a command to a joint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mechdesign.cli.options import columns
from mechdesign.core.errors import InputError

if TYPE_CHECKING:
    from mechdesign.channel.channel import Channel
    from mechdesign.tables.joint import Joint

MISSING = ("refuse", "symbol", "drop")


@dataclass(frozen=True)
class TableOptions:
    """The options of panel 'The table', as typed."""

    sensitive: str | None = None
    useful: str | None = None
    weight: str | None = None
    contingency: bool = False
    probabilities: bool = False
    missing: str = "refuse"

    @property
    def wide(self) -> bool:
        """Whether the file is a wide table."""
        return self.contingency or self.probabilities

    @property
    def given(self) -> bool:
        """Whether anything was said about a table."""
        return self != TableOptions()


def joint_of(
    path: str, options: TableOptions, names: tuple[tuple[str, ...] | None, tuple[str, ...]] | None = None
) -> Joint:
    """Read the table at `path` as the options say.

    Parameters
    ----------
    names : (sensitive columns, useful columns), optional
        What to look for where the options name no column.

    Raises
    ------
    InputError
        On options that contradict each other, or a table that cannot be used.
    """
    sensitive = columns("--sensitive", options.sensitive)
    useful = columns("--useful", options.useful)
    if names is not None and not options.wide:
        sensitive = names[0] if sensitive is None else sensitive
        useful = names[1] if useful is None else useful
    if options.contingency and options.probabilities:
        raise InputError("--contingency reads counts and --probabilities probabilities: give one of them")
    if options.wide and options.weight is not None:
        raise InputError(
            "--weight belongs to a long table; a wide one (--contingency, --probabilities) has none"
        )
    if options.missing not in MISSING:
        raise InputError(f"--missing {options.missing!r} must be one of {', '.join(MISSING)}")
    if not options.wide and (sensitive is None or useful is None):
        absent = "--sensitive" if sensitive is None else "--useful"
        raise InputError(
            f"{absent} COL is missing: which column? (a wide count table needs --contingency instead)"
        )
    from mechdesign.tables.reading import read_joint

    return read_joint(
        path,
        sensitive=sensitive,
        useful=useful,
        weight=options.weight,
        contingency=options.contingency,
        probabilities=options.probabilities,
        missing=options.missing,  # type: ignore[arg-type]
    )


def joint_for(channel: Channel, path: str, table: str | None, options: TableOptions) -> Joint:
    """The table to hold against `channel` (read from `path`): the one given, or its own.

    Where `table` is given without column names, those of the channel are looked for.

    Raises
    ------
    InputError
        If there is no table, or options describe a table that is not given.
    """
    if table is not None:
        own = channel.sensitive.columns if channel.sensitive is not None else None
        return joint_of(table, options, (own, channel.useful.columns))
    if options.given:
        raise InputError(
            "--sensitive, --useful, --weight and the like describe a table: give --table TABLE too"
        )
    if channel.joint is None:
        raise InputError(f"{path} is a public channel without its table: give --table TABLE")
    return channel.joint
