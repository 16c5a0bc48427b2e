"""The key of a release without a job, from the options, and the keys of its channels.

A draw is a function of key, channel, column and record. `key_in_options` takes the key itself, that
of a key file, the one that a seed gives, or a new one that nobody keeps. One channel may be applied
to two columns of a table with one key; they must not get the same random numbers. So where a column
has another name in the table than in the channel, `key_for_columns` derives a key from the names.
A channel for ``job``, for example, is applied to ``job`` with the key itself, and to ``old_job``
with the key that is derived from it by that name.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from mechdesign.jobs.keys import key_at
from mechdesign.jobs.options import ReleaseOptions
from mechdesign.release.drawing import key_of
from mechdesign.release.draws import Key


def key_in_options(options: ReleaseOptions) -> tuple[Key, bool]:
    """The key of a release without a job, and whether nothing fixes it: nobody keeps it then."""
    key = options.key
    if isinstance(key, (str, os.PathLike)):
        key = key_at(key)
    keyless = key is None and options.insecure_seed is None and options.ledger is None
    return key_of(key, options.insecure_seed), keyless


def key_for_columns(key: Key, columns: Sequence[str], options: ReleaseOptions) -> Key:
    """The key of a channel whose columns may have other names in the table."""
    named: list[Any] = [options.renamed.get(name, name) for name in columns]
    # Under the channel's own names the column is in the channel.
    if named == list(columns):
        return key
    # In a ledger a job has a key, and one column for each channel. Seeds draw for tests, where
    # names do not matter.
    if options.ledger is not None or options.insecure_seed is not None:
        return key
    labels: list[str] = []
    for name in named:
        # The number 1 and the text "1" can name two columns of a frame.
        labels += ["text" if isinstance(name, str) else "other", str(name)]
    return key.derived("columns", *labels)
