"""Open the file of either kind of channel, or of one column alone."""

from __future__ import annotations

import os

from mechdesign.channel import file, row_file
from mechdesign.channel.channel import Channel
from mechdesign.channel.row_channel import RowChannel
from mechdesign.core.errors import InputError
from mechdesign.core.files import read_errors, text_of

HEAD = 4096
"""Bytes at the beginning of a file in which its format stands; keys before it would be shorter."""


def load(path: str | os.PathLike[str]) -> Channel | RowChannel:
    """Open the file of a channel, of one variable or of rows.

    Raises
    ------
    InputError
        If the file is neither, or was edited or damaged.
    """
    if is_row_channel(path):
        return row_file.read(path)
    return file.read(path)


def is_row_channel(path: str | os.PathLike[str]) -> bool:
    """Whether the head of a file names the format of row channels."""
    with read_errors(text_of(path)), open(path, "rb") as source:
        head = source.read(HEAD)
    # Only the kind is guessed here; the reader of the kind checks the format itself.
    kind = f'"{row_file.RowChannelDocument.FORMAT}"'.encode()
    return kind in head


def load_single(path: str | os.PathLike[str]) -> Channel:
    """Open the file of a channel of one column, for work that row channels do not have.

    Raises
    ------
    InputError
        If the file is a row channel, or no channel, or was edited or damaged.
    """
    channel = load(path)
    if isinstance(channel, RowChannel):
        raise InputError(
            f"{text_of(path)} is a channel of whole rows, and this needs a channel of one column: "
            "design one with --useful"
        )
    return channel
