"""Joint leakage of releases of rows by listing: every tuple of released rows, in fractions."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from itertools import product


def law(table, laws):
    """P(s, released tuples) for a table of (s, columns, symbol, count) and a law of each release.

    A law takes a mapping of columns to texts, and gives the released texts with their
    probabilities.
    """
    total = sum(table.sensitive_counts)
    found = defaultdict(Fraction)
    for x, symbol in enumerate(table.useful.symbols):
        row = dict(zip(table.useful.columns, symbol, strict=True))
        each = [law_of(row) for law_of in laws]
        for outputs in product(*(one.items() for one in each)):
            share = Fraction(1)
            for _, probability in outputs:
                share *= probability
            released = tuple(texts for texts, _ in outputs)
            for s, counts in enumerate(table.counts):
                found[s, released] += share * Fraction(counts[x], total)
    return found


def row_law(channel):
    """The law of a row channel."""
    columns = channel.released_columns
    return lambda row: channel.distribution({name: row[name] for name in columns})


def single_law(channel):
    """The law of a channel of one variable."""

    def law_of(row):
        symbol = tuple(row[name] for name in channel.useful.columns)
        entries = channel.rows[channel.useful.index[symbol]]
        pairs = zip(channel.outputs, entries, strict=True)
        return {
            (y,): Fraction(int(value), channel.denominator)
            for y, value in pairs
            if value
        }

    return law_of


def extremes(masses, key=lambda released: ()):
    """Largest lift, smallest lift and largest quotient (None for infinity), against P(s | key)."""
    seen = defaultdict(Fraction)
    prior = defaultdict(Fraction)
    whole = defaultdict(Fraction)
    for (s, released), mass in masses.items():
        seen[released] += mass
        prior[s, key(released)] += mass
        whole[key(released)] += mass
    high = Fraction(0)
    low = None
    ratio = Fraction(1)
    secrets = {s for s, _ in masses}
    for released, share in seen.items():
        if not share:
            continue
        k = key(released)
        lifts = [
            (masses.get((s, released), 0) / share) / (prior[s, k] / whole[k])
            for s in secrets
            if prior[s, k]
        ]
        high = max(high, *lifts, 0)
        low = min(lifts) if low is None else min(low, *lifts)
        if min(lifts) == 0:
            ratio = None
        elif ratio is not None:
            ratio = max(ratio, max(lifts) / min(lifts))
    return high, low, ratio
