"""Which bound to prove next, where exact pricing takes long.

Branch and bound at the master's prices y asks whether any posterior gains more than the gap. Where
many posteriors are almost tied that takes millions of nodes, and a tree that is stopped before has
proven far less than it could have: nodes are tightened and dropped by the cut-off, and one near the
gap drops none of them for a long time.

A tree with the cut-off L - y.p proves the *level* L when it is finished, and the number of its
nodes grows with L, about exponentially. So L rises from what is proven in steps that make each tree
`GROWTH` times as large as the last one, and the last step is as large as the time that is left
allows. Any level is valid: what a tree proves is its own bound (docs/explanation/optimum-theory.md,
'Levels').

For example, the levels 1.00 and 1.05 took 20,000 and 40,000 nodes. So nodes double every 0.05, and
1.13 is expected to take 120,000.
"""

from __future__ import annotations

import math

from solvers.pricing.concave import SearchResult, SearchStatus

GROWTH = 3.0
"""Nodes of a tree against those of the last one: all before the last take half as many as it."""

ALLOWANCE = 3.0
"""A tree of so many times the nodes that were expected is given up."""

FIRST_NODES = 75_000
"""Nodes that the first tree is expected to take: fewer than the tree that was too large."""

FEWEST_NODES = 5_000
"""Smaller trees say nothing about the growth."""

FIRST_GROWTH = 2.0
"""Factor of the step while nothing is known about the growth."""

FIRST_STEP = 0.1
"""The first step, as a share of what is not proven."""

LARGEST_STEP = 0.5
"""No step is a larger share of what is not proven, while nothing is known about the growth."""

SHORTER = 0.5
LARGER = 2.0
"""Factors of the step and of the nodes that are expected after a tree that was not finished."""

LAST_SHARE = 0.7
"""Share of the time left that the last tree is expected to take; the rest is for the error of that
expectation."""

MOST_UNFINISHED = 20
"""Unfinished trees in a row after which there is no hope: each of them had a lower level."""


class Levels:
    """The next level, and how many nodes it may take; `learn` takes the result of each tree.

    Parameters
    ----------
    open_gap : float
        What is not proven at first.
    """

    def __init__(self, open_gap: float) -> None:
        self._step = FIRST_STEP * open_gap
        self._expected = float(FIRST_NODES)
        # Level and nodes of the last tree that was finished, and nodes a second.
        self._finished: tuple[float, int] | None = None
        self._speed = 0.0
        # Growth of the logarithm of the nodes with the level.
        self._rate = 0.0
        self._unfinished = 0

    @property
    def most_nodes(self) -> int:
        """Nodes that the tree of the next level may have."""
        return int(ALLOWANCE * self._expected)

    @property
    def is_stuck(self) -> bool:
        """Whether trees end unfinished again and again, for ever lower levels with more nodes."""
        return self._unfinished > MOST_UNFINISHED

    def next(self, bound: float, value: float, seconds: float) -> float:
        """The level to prove next, with what is proven and the seconds that are left."""
        if self._rate > 0.0 and self._finished is not None:
            last = self._finished[1]
            in_time = LAST_SHARE * self._speed * seconds
            # A step of the usual size would leave too little for another one.
            if last < in_time < GROWTH * (1.0 + GROWTH) * last:
                self._expected = in_time
                self._step = math.log(in_time / last) / self._rate
        share = 1.0 if self._rate > 0.0 else LARGEST_STEP
        return bound + min(self._step, share * (value - bound))

    def learn(self, result: SearchResult, level: float, seconds: float) -> None:
        """Set the next step and its nodes by how the tree of a level ended."""
        nodes = result.counts.nodes
        if seconds > 0.0:
            self._speed = nodes / seconds
        if result.status is not SearchStatus.DONE:
            self._unfinished += 1
            self._step *= SHORTER
            self._expected *= LARGER
            return
        self._unfinished = 0
        if nodes < FEWEST_NODES:
            self._step *= FIRST_GROWTH
            return
        if self._finished is None:
            self._step *= FIRST_GROWTH
        else:
            last_level, last = self._finished
            if nodes > last and level > last_level:
                self._rate = math.log(nodes / last) / (level - last_level)
                self._step = math.log(GROWTH) / self._rate
        self._finished = (level, nodes)
        self._expected = GROWTH * nodes
