"""One function that opens the file of either kind of channel."""

from __future__ import annotations

import os

from mechdesign.channel import file, row_file
from mechdesign.channel.channel import Channel
from mechdesign.channel.row_channel import RowChannel
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
    with read_errors(text_of(path)), open(path, "rb") as source:
        head = source.read(HEAD)
    # Only the kind is guessed here; the reader of the kind checks the format itself.
    kind = f'"{row_file.RowChannelDocument.FORMAT}"'.encode()
    if kind in head:
        return row_file.read(path)
    return file.read(path)
