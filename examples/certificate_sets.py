"""Promises after earlier releases, and for sets of populations: for `check_certificate.py`.

Earlier releases leave a table for each u(x) that their outputs are in proportion to. Of a set of
populations the intervals are taken from the file, and where a posterior is outside, the rows of the
worst populations in them are added.
"""

import math
import sys
from itertools import product

import numpy as np
from check_certificate import Allowed, OneTable, budgets, dense, numbers

BROKEN = 3e-9  # by which a row of a worst population is negative


def sets_of(file, counts, earlier):
    """The promise of a file on more than its own table, in the place of `OneTable`."""
    if file.get("confidence"):
        return Populations(file, counts)
    if file.get("budgets"):
        sys.exit("this program does not know budgets of single symbols there")
    return AfterOthers(file, earlier)


class AfterOthers(OneTable):
    """The tables that earlier releases leave; `left` are u(x), each up to a factor once."""

    def __init__(self, file, earlier):
        useful = file["useful"]
        found = [(1.0,) * len(useful["symbols"])]
        for channel in earlier:
            columns = channel["useful"]["columns"]
            if not set(columns) <= set(useful["columns"]):
                sys.exit(
                    "earlier releases of other columns need the table of all columns"
                )
            places = [useful["columns"].index(column) for column in columns]
            symbols = list(map(tuple, channel["useful"]["symbols"]))
            order = [
                symbols.index(tuple(symbol[p] for p in places))
                for symbol in useful["symbols"]
            ]
            rows = dense(
                channel.get("rows"), channel.get("sparse_rows"), len(channel["outputs"])
            )
            shares = (rows / rows.sum(1, keepdims=True))[order]
            further = {}
            for left, output in product(found, shares.T):
                both = np.array(left) * output
                if any(both):
                    # Equal up to rounding.
                    further.setdefault(tuple((both / both.sum()).round(14)), both)
            found = [tuple(both / both.sum()) for both in further.values()]
        self.left = [np.array(left) for left in found]


class Populations:
    """The populations whose intervals a file has."""

    left = (1,)

    def __init__(self, file, counts):
        confidence = file["confidence"]
        if confidence["unseen"] or file.get("budgets"):
            sys.exit("this program does not know this set of populations")
        self.promise = budgets(file["notion"])
        self.p_x = counts.sum(0) / counts.sum()
        intervals = confidence["intervals"]
        self.cells = numbers(intervals["cells"])
        self.shares = numbers(intervals["shares"]).T
        self.known = confidence["shares"] == "known"

    def allowed(self, rows):
        """The posteriors that are allowed for all populations."""
        # What is private for the whole set is private for the table, if that is in the set.
        return Allowed(rows[:0] if self.known else rows, self.worst)

    def worst(self, v):
        """The rows of the populations that a posterior v breaks most.

        With w = v / P(x), P(y|s) is largest and smallest where P(x|s) fills its intervals from the
        largest w on, and from the smallest; the shares P(s) fill theirs in the same way.
        """
        least, most, ratio = self.promise
        w, found, secrets = v / self.p_x, [], range(len(self.cells))
        low = [fill(w, *one.T) for one in self.cells]
        high = [fill(-w, *one.T) for one in self.cells]
        for s in secrets:
            if ratio:
                found += [ratio * low[t] - high[s] for t in secrets if t != s]
            if most < math.inf:
                others = np.array([high[t] if t == s else low[t] for t in secrets])
                found.append(most * fill(others @ w, *self.shares) @ others - high[s])
            if least:
                others = np.array([low[t] if t == s else high[t] for t in secrets])
                found.append(low[s] - least * fill(-others @ w, *self.shares) @ others)
        rows = np.array(found) / self.p_x
        return rows[rows @ v < -BROKEN]


def fill(values, low, high):
    """The distribution between `low` and `high` with the least mean of the values."""
    filled, left = low.copy(), 1.0 - math.fsum(low)
    for k in np.argsort(values):
        more = min(high[k] - low[k], max(left, 0.0))
        filled[k] += more
        left -= more
    return filled
