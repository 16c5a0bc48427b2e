"""Bounds after earlier releases, and for sets of populations: for `check_certificate.py`.

Earlier releases leave a table for each u(x) that their outputs are in proportion to. Of a set of
populations the intervals are taken from the file, and where a posterior is outside, the rows of the
worst populations in them are added.
"""

import math
import sys
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np


@dataclass
class Sets:
    """The promise of a file on more than its own table, for the program `main`."""

    main: Any
    earlier: list

    def limits_of(self, file, counts, members, prior):
        """As in the program, for each u(x) that the earlier releases leave."""
        if not self.earlier:
            return self.main.limits_of(file, counts, members, prior)
        low, high, ratio = self.main.budgets(file["notion"])
        masses, total, found = counts.sum(0), counts.sum(), []
        for left in self.outputs_before(file):
            mass = left * total / (left @ masses)
            for _, _, rows in self.main.secrets_of(file, counts):
                shares = rows.sum(1) / rows.sum()
                lifts = (
                    rows[:, members] / masses[members] * mass[members] / shares[:, None]
                )
                # No lift is above 1 / P(s).
                most = 1 / shares if high is None else np.full(len(shares), high)
                least = np.full(len(shares), low)
                found.append((lifts, mass[members], least, most, ratio))
        if file.get("budgets"):
            sys.exit("this program does not know budgets of single symbols there")
        return found

    def outputs_before(self, file):
        """u(x), the chance of the outputs of the earlier releases, each up to a factor once."""
        useful = file["useful"]
        found = [(Fraction(1),) * len(useful["symbols"])]
        for channel in self.earlier:
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
            further = {}
            for left, output in product(found, self.main.chances(channel)[order].T):
                both = [a * b for a, b in zip(left, output, strict=True)]
                if any(both):
                    further[tuple(part / sum(both) for part in both)] = True
            found = list(further)
        return [np.array(left) for left in found]

    def worst_populations(self, file, p_x):
        """The rows a v <= 0 of the populations that a posterior v breaks most, as a function of it.

        With w = v / P(x), P(y|s) is largest and smallest where P(x|s) fills its intervals from the
        largest w on, and from the smallest; the shares P(s) fill theirs in the same way.
        """
        confidence = file["confidence"]
        if confidence["unseen"] or file.get("budgets"):
            sys.exit("this program does not know this set of populations")
        cells = self.main.exact(confidence["intervals"]["cells"]).astype(float)
        low_s, high_s = (
            self.main.exact(confidence["intervals"]["shares"]).astype(float).T
        )
        secrets = range(len(low_s))
        least, most, ratio = (
            float(b) if b else None for b in self.main.budgets(file["notion"])
        )

        def rows(v):
            w, found = v / p_x, []
            low = [fill(w, one[:, 0], one[:, 1]) for one in cells]
            high = [fill(-w, one[:, 0], one[:, 1]) for one in cells]
            for s in secrets:
                if ratio:
                    found += [high[s] - ratio * low[t] for t in secrets if t != s]
                if most:
                    others = [high[t] if t == s else low[t] for t in secrets]
                    mean = fill(np.array(others) @ w, low_s, high_s) @ others
                    found.append(high[s] - most * mean)
                if least:
                    others = [low[t] if t == s else high[t] for t in secrets]
                    mean = fill(-(np.array(others) @ w), low_s, high_s) @ others
                    found.append(least * mean - low[s])
            found = np.array(found) / p_x
            return found[found @ v > self.main.TINY]

        return rows

    def rows_and_cuts(self, file, rows, p_x):
        """Rows of the promise to begin with, and further ones."""
        # What is private for the whole set is private for the table, if that is in the set.
        if file["confidence"]["shares"] == "known":
            rows = rows[:0]
        return rows, self.worst_populations(file, p_x)

    def taken_by_sides(self, file, proof, counts):
        """t_xy - m_y, with the least t_y v over the set as m_y."""
        everything = list(range(counts.shape[1]))
        p_x = (counts.sum(0) / counts.sum()).astype(float)
        rows = self.main.promise_rows(
            self.limits_of(file, counts, everything, everything)
        )
        rows, cuts = self.rows_and_cuts(file, rows, p_x)
        least = []
        for side in np.array(proof["sides"]).T:
            found = self.main.least_of(
                lambda v, side=side: v @ side, rows, [], counts, cuts
            )
            least.append(found - self.main.TINY)
        return self.main.exact(proof["sides"]) - self.main.exact(least)


def fill(values, low, high):
    """The distribution between `low` and `high` with the least mean of the values."""
    filled, left = low.copy(), 1.0 - math.fsum(low)
    for k in np.argsort(values):
        more = min(high[k] - low[k], max(left, 0.0))
        filled[k] += more
        left -= more
    return filled
