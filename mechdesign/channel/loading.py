"""Open a channel file of any kind: a channel, or one for boxes of rows.

The name of a format stands near the beginning of each file. `load` looks for it there and calls the
reader of that format, which checks everything; what names no other format goes to the reader of
channels of one column, whose refusal fits any file.

`load_without_boxes` opens a file in the same way, and then refuses boxes. `require_channel` is for
functions that take a channel of any kind.
"""

from __future__ import annotations

import os
from typing import cast

from mechdesign.channel import box_file, file
from mechdesign.channel.box_channel import BoxChannel
from mechdesign.channel.channel import Channel
from mechdesign.channel.saving import Saved
from mechdesign.core.errors import InputError
from mechdesign.core.files import read_errors, text_of

HEAD = 4096
"""Bytes at the beginning of a file that hold its key `format`.

A label there could hold the name of a format, too, so the reader of the format checks the key.
"""


def load(path: str | os.PathLike[str]) -> Channel | BoxChannel:
    """Open the file of a channel, or of one for boxes of rows.

    Raises
    ------
    InputError
        If it is no channel file, or was edited or damaged.
    """
    if _has_boxes(path):
        return box_file.read(path)
    return file.read(path)


def load_without_boxes(path: str | os.PathLike[str]) -> Channel:
    """Open a channel for work that channels for boxes of rows do not have: exports, compositions.

    Raises
    ------
    InputError
        If the file is a channel for boxes of rows, or no channel, or was edited or damaged.
    """
    return load(path).on_tables(
        f"{text_of(path)} is a channel for boxes of rows, and this command does not take one: "
        "`apply`, `run`, `check`, `estimate`, `show`, `audit` and `report` do"
    )


def require_channel(name: str, value: object, hint: str = "") -> Channel | BoxChannel:
    """Return the argument `value` if it is a channel of any kind; raise `InputError` otherwise.

    `hint` is added to the message as it is.
    """
    if isinstance(value, Saved):
        return cast("Channel | BoxChannel", value)
    raise InputError(f"{name} must be a Channel, not {type(value).__name__}{hint}")


def _head(path: str | os.PathLike[str]) -> bytes:
    """The first bytes of a file, which name its format."""
    if not os.path.isfile(path):
        # A pipe would wait for its writer. The reader of channel files refuses what is no file.
        return b""
    with read_errors(text_of(path)), open(path, "rb") as source:
        return source.read(HEAD)


def _has_boxes(path: str | os.PathLike[str]) -> bool:
    """Whether the head of a file has the name of the format of boxes."""
    # Parsing a large file only to learn its format would take seconds.
    return f'"{box_file.BoxChannelDocument.FORMAT}"'.encode() in _head(path)
