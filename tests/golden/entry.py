"""The only place where golden tests import from the project: a module that moves is renamed here and nowhere else.

What the names do must stay as it is. A change of theirs that alters a golden value forgets every release made so far.
"""

from __future__ import annotations

from mechdesign.channel.channel import Channel
from mechdesign.cli import main
from mechdesign.formats import _rowhash
from mechdesign.formats.cells import encode
from mechdesign.formats.csv_blocks import Splitter
from mechdesign.formats.csv_text import TextOptions
from mechdesign.formats.digests import Census, RowHasher
from mechdesign.formats.opening import open_source
from mechdesign.frames.sanitising import sanitise
from mechdesign.jobs.keys import check_of, key_of_draw, read_key
from mechdesign.jobs.writing import random_words, shuffle_file
from mechdesign.release.drawing import Release, channel_digest
from mechdesign.release.draws import Identifiers, Key, NumberedRecords, RowNumbers
from mechdesign.release.fixed_counts import assigned_outputs, integer_flows
from mechdesign.tables.variable import Variable

sip_hash = _rowhash.mix
blake_words = _rowhash.words

__all__ = [
    "Census",
    "Channel",
    "Identifiers",
    "Key",
    "NumberedRecords",
    "Release",
    "RowHasher",
    "RowNumbers",
    "Splitter",
    "TextOptions",
    "Variable",
    "assigned_outputs",
    "blake_words",
    "channel_digest",
    "check_of",
    "encode",
    "integer_flows",
    "key_of_draw",
    "main",
    "open_source",
    "random_words",
    "read_key",
    "sanitise",
    "shuffle_file",
    "sip_hash",
]
