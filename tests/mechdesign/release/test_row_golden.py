"""Draws of released rows and hashes of row channels that must never change silently.

A release that is drawn again must be the same, so a change here breaks every job in progress.
"""

from __future__ import annotations

import hashlib

import numpy as np
import pandas as pd

import mechdesign as md
from mechdesign.channel.row_file import text_of
from mechdesign.channel.row_record import RowRecord
from mechdesign.core.integers import IntegerRows
from mechdesign.core.row_tree import DENOMINATOR, LevelTable, RowTree
from mechdesign.notions import to_record
from mechdesign.release.row_drawing import row_channel_digest
from mechdesign.tables.variable import Variable

HALF = DENOMINATOR // 2
QUARTER = DENOMINATOR // 4

GOLDEN_ONE = "bbaaaaababababbbabab"
GOLDEN_TWO = "ddcdcdddddcdcddddddd"
GOLDEN_NAMED = "abababaaabbbbbabbbab"
GOLDEN_DIGEST = "5d7d06b9cc7da84f0330fee3cc8c76f680862e8ace45e049c12c460a46c527e7"
GOLDEN_FILE = "7d4e1ea73cfce0ecfa247c471d396b9d4adc74c205c33dafbbb813f9a6982c35"


def level(nodes, pairs, slots, rows, size):
    """A level from (node, input) pairs, (node, output, child) slots, and dense rows."""
    pair_nodes, pair_inputs = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    slot_nodes, outputs, children = np.array(slots, dtype=np.int64).T
    table = np.array(rows, dtype=np.int64).reshape(len(pairs), len(slots))
    return LevelTable(
        size=size,
        nodes=nodes,
        pair_nodes=pair_nodes,
        pair_inputs=pair_inputs,
        slot_nodes=slot_nodes,
        slot_outputs=outputs,
        slot_children=children,
        rows=IntegerRows.from_array(table),
    )


def by_hand():
    """Two levels of two symbols: after "a" the second is drawn, after "b" it is the constant "d"."""
    first = level(
        nodes=1,
        pairs=[(0, 0), (0, 1)],
        slots=[(0, 0, 0), (0, 1, 1)],
        rows=[[HALF + QUARTER, QUARTER], [QUARTER, HALF + QUARTER]],
        size=2,
    )
    second = level(
        nodes=2,
        pairs=[(0, 0), (0, 1)],
        slots=[(0, 0, -1), (0, 1, -1), (1, 1, -1)],
        rows=[[HALF, HALF, 0], [QUARTER, HALF + QUARTER, 0]],
        size=2,
    )
    levels = (
        Variable(("one",), (("a",), ("b",))),
        Variable(("two",), (("c",), ("d",))),
    )
    return md.RowChannel(
        sensitive=Variable(("s",), (("0",), ("1",))),
        given=(),
        strata=((),),
        levels=levels,
        labels=tuple(variable.names for variable in levels),
        tree=RowTree(np.array([0]), (first, second)),
        record=RowRecord(notion=to_record(md.LIP(1.0))),
    )


def test_the_law_by_hand():
    law = by_hand().distribution(("a", "d"))
    assert {texts: float(share) for texts, share in law.items()} == {
        ("a", "c"): 0.1875,
        ("a", "d"): 0.5625,
        ("b", "d"): 0.25,
    }


def test_draws():
    frame = pd.DataFrame({"one": list("ab" * 10), "two": list("ccdd" * 5)})
    released = by_hand().apply(frame, insecure_seed=2026)
    assert "".join(released["one"]) == GOLDEN_ONE
    assert "".join(released["two"]) == GOLDEN_TWO
    named = by_hand().apply(
        frame, insecure_seed=2026, identity=[f"id {k}" for k in range(20)]
    )
    assert "".join(named["one"]) == GOLDEN_NAMED


def test_hashes():
    channel = by_hand()
    assert row_channel_digest(channel) == GOLDEN_DIGEST
    assert hashlib.sha256(text_of(channel).encode()).hexdigest() == GOLDEN_FILE
