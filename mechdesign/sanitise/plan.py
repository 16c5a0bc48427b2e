"""Which columns of a file a channel replaces, decided from its header alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from mechdesign.cells import require_column
from mechdesign.errors import InputError
from mechdesign.exact import listed, quoted
from mechdesign.sampling import ChannelLike
from mechdesign.variable import Variable


class FileChannel(ChannelLike, Protocol):
    """A channel that may also say which columns are sensitive."""

    @property
    def sensitive(self) -> Variable | None:
        """The sensitive variable, None in a public channel."""
        ...


@dataclass(frozen=True)
class Plan:
    """Where X stands in the input and where Y goes in the output.

    Parameters
    ----------
    inputs : tuple of int
        Position of every column of X, in the order of the channel.
    place : int
        Position in the input whose cell takes the label of Y: that of the first of the channel's columns.
    removed : tuple of int
        Positions that the output leaves out (the other columns of a crossed X), descending.
    column : str
        Name of the output's column of Y: that of X, or the names of the crossed columns joined with commas.
    header : tuple of str
        Column names of the output.
    notices : tuple of str
    """

    inputs: tuple[int, ...]
    place: int
    removed: tuple[int, ...]
    column: str
    header: tuple[str, ...]
    notices: tuple[str, ...] = ()


def make_plan(
    channel: FileChannel,
    header: Sequence[str],
    columns: Mapping[str, str] | None,
    *,
    keep_sensitive: bool,
) -> Plan:
    """Decide what happens to each column of a file.

    Parameters
    ----------
    channel : FileChannel
    header : sequence of str
        The file's columns, all different.
    columns : mapping, optional
        The file's name of a column of the channel where it has another one there.
    keep_sensitive : bool
        Whether a sensitive column may stay in the output.

    Raises
    ------
    InputError
        If X is not in the file, a sensitive column would stay, or names clash.
    """
    names = dict(columns or {})
    sensitive = channel.sensitive.columns if channel.sensitive is not None else ()
    unknown = [name for name in names if name not in channel.useful.columns and name not in sensitive]
    if unknown:
        raise InputError(
            f"the channel has no column {listed(unknown)} to rename (its columns: {_known(channel)})"
        )
    inside = [names.get(name, name) for name in channel.useful.columns]
    for name in inside:
        require_column(name, header)
    if len(set(inside)) < len(inside):
        raise InputError(f"one column of the file cannot stand for two of the channel ({listed(inside)})")
    secret = [names.get(name, name) for name in sensitive]
    for name in secret:
        if name in inside:
            raise InputError(
                f"the column {quoted(name)} cannot stand for a sensitive and a useful column at once"
            )
    left = [name for name in secret if name in header]
    if left and not keep_sensitive:
        raise InputError(
            f"the sensitive column {listed(left)} would stay in the output; remove it from the input, or keep it "
            "knowingly (--keep-sensitive)"
        )
    inputs = tuple(header.index(name) for name in inside)
    place, removed = inputs[0], tuple(sorted(inputs[1:], reverse=True))
    column = ",".join(inside)
    output = [column if i == place else name for i, name in enumerate(header) if i not in removed]
    if output.count(column) > 1:
        raise InputError(
            f"the file has another column {quoted(column)}, the name of the released one; rename it"
        )
    notices = () if channel.sensitive is not None else (_CANNOT_TELL,)
    return Plan(inputs, place, removed, column, tuple(output), notices)


_CANNOT_TELL = (
    "the channel does not say which columns are sensitive: see for yourself that none is in the output"
)


def _known(channel: FileChannel) -> str:
    sensitive = channel.sensitive.columns if channel.sensitive is not None else ()
    return listed([*channel.useful.columns, *sensitive])
