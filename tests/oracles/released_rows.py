"""Slow, obvious answers about channels of rows: everything by listing, in fractions, from
`distribution` alone.
"""

from __future__ import annotations

import math
from collections import defaultdict
from fractions import Fraction
from itertools import combinations


def true_texts(records, row):
    """The texts of a distinct row, in the order of the groups."""
    texts = ()
    for variable, code in zip(records.groups, records.codes[row].tolist(), strict=True):
        texts += variable.symbols[code]
    return texts


def joint_law(channel, records):
    """P(s, true texts, released texts) as fractions."""
    law = {}
    for row, (secret, count) in enumerate(
        zip(records.secrets.tolist(), records.counts, strict=True)
    ):
        texts = true_texts(records, row)
        for released, share in channel.distribution(texts).items():
            law[secret, texts, released] = share * Fraction(count, records.total)
    return law


def summed(law, key):
    """Masses added up by a function of the entries."""
    sums = defaultdict(Fraction)
    for entry, mass in law.items():
        sums[key(entry)] += mass
    return sums


def lifts(law, view=lambda released: released, given=None):
    """P(s | view) / P(s), or P(s | view) / P(s | given(view)), of all secrets and all views."""
    secrets = {entry[0] for entry in law}
    both = summed(law, lambda e: (e[0], view(e[2])))
    seen = summed(law, lambda e: view(e[2]))
    if given is None:
        prior = summed(law, lambda e: e[0])
        return {(s, y): both[s, y] / seen[y] / prior[s] for s in secrets for y in seen}
    own = summed(law, lambda e: (e[0], given(e[2])))
    whole = summed(law, lambda e: given(e[2]))
    found = {}
    for s in secrets:
        for y in seen:
            k = given(y)
            if own[s, k]:
                found[s, y] = both[s, y] / seen[y] / (own[s, k] / whole[k])
    return found


def views(width):
    """Every non-empty set of places of a tuple."""
    return [
        places
        for size in range(1, width + 1)
        for places in combinations(range(width), size)
    ]


def information(law):
    """I(X; Y) in nats."""
    x = summed(law, lambda e: e[1])
    y = summed(law, lambda e: e[2])
    both = summed(law, lambda e: (e[1], e[2]))
    return math.fsum(
        float(mass) * math.log(mass / (x[a] * y[b]))
        for (a, b), mass in both.items()
        if mass
    )


def entropy(law):
    """H(X) in nats."""
    x = summed(law, lambda e: e[1])
    return -math.fsum(float(mass) * math.log(mass) for mass in x.values())
