"""Slow, obvious answers about channels of rows: everything by listing, in fractions, from
`distribution` alone.
"""

from __future__ import annotations

import math
from collections import defaultdict
from decimal import Context, Decimal
from fractions import Fraction


def joint_law(channel, joint=None):
    """P(s, true texts, released texts) as fractions; s is the position of a sensitive symbol."""
    joint = joint or channel.joint
    places = [joint.useful.columns.index(name) for name in channel.useful.columns]
    law = defaultdict(Fraction)
    for x, symbol in enumerate(joint.useful.symbols):
        texts = tuple(symbol[place] for place in places)
        for released, share in channel.distribution(texts).items():
            for s, row in enumerate(joint.counts):
                law[s, texts, released] += share * Fraction(row[x], joint.total)
    return dict(law)


def summed(law, key):
    """Masses added up by a function of the entries."""
    sums = defaultdict(Fraction)
    for entry, mass in law.items():
        sums[key(entry)] += mass
    return sums


def lifts(law, given=lambda released: ()):
    """P(s | released) / P(s | given(released)) of all secrets that occur there, and all rows."""
    both = summed(law, lambda e: (e[0], e[2]))
    seen = summed(law, lambda e: e[2])
    own = summed(law, lambda e: (e[0], given(e[2])))
    whole = summed(law, lambda e: given(e[2]))
    found = {}
    for s in {entry[0] for entry in law}:
        for y in seen:
            k = given(y)
            if own[s, k]:
                found[s, y] = both[s, y] / seen[y] / (own[s, k] / whole[k])
    return found


def power(budget):
    """e^budget to fifty digits."""
    if math.isinf(budget):
        return None
    return Fraction(Decimal(budget).exp(Context(prec=50)))


def assert_within(found, lower, upper):
    """Every lift is within its budgets, compared as fractions."""
    most = power(upper)
    least = power(lower)
    for lift in found.values():
        assert most is None or lift <= most
        assert least is None or lift * least >= 1


def largest_ratio(found):
    """The largest quotient of the lifts of two secrets at one row."""
    by_row = defaultdict(list)
    for (_, y), lift in found.items():
        by_row[y].append(lift)
    return max(max(values) / min(values) for values in by_row.values())
