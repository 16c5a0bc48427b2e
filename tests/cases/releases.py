"""Channels and released data for the tests of estimators and checks."""

from __future__ import annotations

import numpy as np

from mechdesign.channel.channel import DENOMINATOR as D
from mechdesign.channel.channel import Channel
from mechdesign.tables.joint import Joint
from mechdesign.tables.variable import Variable

NAMES = ("a", "b", "c")


def channel_of(rows, counts=None, names=NAMES, outputs=None) -> Channel:
    """A channel from rows of parts of a whole (each row is scaled to the denominator), with a table if asked for."""
    integers = []
    for row in rows:
        whole = sum(row)
        scaled = [D * part // whole for part in row]
        scaled[max(range(len(row)), key=row.__getitem__)] += D - sum(scaled)
        integers.append(scaled)
    labels = (
        tuple(f"y{j}" for j in range(len(rows[0])))
        if outputs is None
        else tuple(outputs)
    )
    joint = None
    if counts is not None:
        joint = Joint.from_counts(
            counts, useful_labels=list(names), sensitive="s", useful="x"
        )
    useful = (
        joint.useful
        if joint is not None
        else Variable(("x",), tuple((name,) for name in names))
    )
    return Channel(useful, labels, integers, joint=joint)


def draw(matrix, symbols, rng):
    """Codes of labels for codes of symbols, by a plain loop over symbols."""
    codes = np.empty(len(symbols), dtype=np.int64)
    for x in np.unique(symbols):
        at = np.flatnonzero(symbols == x)
        codes[at] = rng.choice(matrix.shape[1], len(at), p=matrix[x] / matrix[x].sum())
    return codes


def labels_of(channel, codes):
    """Texts of codes."""
    return [channel.outputs[y] for y in codes]
