"""Open a channel file, and take what is given as a channel."""

from __future__ import annotations

import os

from mechdesign.channel import file
from mechdesign.channel.channel import Channel
from mechdesign.core import files
from mechdesign.core.errors import require_type


def load(path: str | os.PathLike[str]) -> Channel:
    """Open the file of a channel.

    Raises
    ------
    InputError
        If it is no channel file, or was edited or damaged.
    """
    return file.read(path)


def load_without_boxes(path: str | os.PathLike[str]) -> Channel:
    """Open a channel for work that channels for boxes of rows do not have: exports, compositions.

    Raises
    ------
    InputError
        If the file is a channel for boxes of rows, or no channel, or was edited or damaged.
    """
    return load(path).on_tables(
        f"{files.text_of(path)} is a channel for boxes of rows, and this command does not take one: "
        "`apply`, `run`, `check`, `estimate`, `show`, `audit` and `report` do"
    )


def require_without_boxes(name: str, value: object, hint: str = "") -> Channel:
    """Return the argument `value` if it is a channel that a table decides; raise `InputError` for
    one of boxes, and for anything else.

    `hint` is added to the message as it is.
    """
    return require_channel(name, value, hint).on_tables(
        f"{name} must be a Channel without boxes of rows{hint}"
    )


def require_channel(name: str, value: object, hint: str = "") -> Channel:
    """Return the argument `value` if it is a channel; raise `InputError` otherwise.

    `hint` is added to the message as it is.
    """
    return require_type(name, value, Channel, hint)
