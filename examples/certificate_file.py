"""What a channel file promises, for the programs that check certificates.

The table, the secrets, and the `Limits` on the lifts of every output, in fractions. After earlier
releases there are limits for each u(x) that they leave (docs/reference/certificates.md).
"""

import math
import sys
from dataclasses import dataclass
from fractions import Fraction
from itertools import product


@dataclass
class Limits:
    """What the promise limits in every output: the lifts (L v) / (C v) of one secret.

    Without earlier releases C is 1. None is no limit.
    """

    lifts: list  # L, a row for each value of the secret, an entry for each symbol
    mass: list  # C, an entry for each symbol
    least: list  # of the lift of each value
    most: list
    ratio: Fraction | None  # the largest quotient of two lifts


def table_of(file):
    """The counts, a row for each sensitive symbol; None in a public file."""
    if "sparse_joint" not in file:
        return file.get("joint")
    counts = [[0] * len(file["useful"]["symbols"]) for _ in file["sparse_joint"]]
    for row, pairs in zip(counts, file["sparse_joint"], strict=True):
        for x, count in zip(pairs[::2], pairs[1::2], strict=True):
            row[x] = count
    return counts


def budgets(notion):
    """The least lift, the largest one, and the largest quotient of two."""
    name, eps = notion["name"], notion.get("epsilon")
    if name == "ldp":
        return Fraction(0), None, power(eps, 1)
    if name not in ("alip", "lip", "max-lift", "min-lift"):
        sys.exit(f"this program does not know the promise {name}")
    lower = notion.get("eps_l", eps if name == "lip" else "inf")
    upper = notion.get("eps_u", eps if name == "lip" else "inf")
    return *lift_range(lower, upper), None


def lift_range(eps_l, eps_u):
    """The least and the largest lift, rounded outwards."""
    least = Fraction(0) if eps_l == "inf" else power(-eps_l, -1)
    return least, None if eps_u == "inf" else power(eps_u, 1)


def power(exponent, side):
    """e^exponent, rounded up or down by more than the error of `exp`."""
    return Fraction(math.exp(exponent)) * (1 + side * Fraction(1, 2**50))


def limits_of(file, counts, earlier, members, prior):
    """The `Limits` on the outputs of the symbols `members`, measured against those of `prior`.

    There is one for each secret, and after earlier releases for each u(x) that they leave.
    """
    low, high, ratio = budgets(file["notion"])
    masses = [sum(column) for column in zip(*counts, strict=True)]
    total = sum(masses)
    found = []
    for left in outputs_before(file, earlier):
        whole = sum(part * mass for part, mass in zip(left, masses, strict=True))
        for column, values, rows in secrets_of(file, counts):
            sums = [sum(row[x] for x in prior) for row in rows]
            shares = [Fraction(part, sum(sums)) for part in sums]
            lifts = []
            for row, share in zip(rows, shares, strict=True):
                lifts.append(
                    [
                        Fraction(row[x] * left[x] * total, whole * masses[x])
                        / (share or 1)
                        for x in members
                    ]
                )
            mass = [Fraction(left[x] * total, whole) for x in members]
            own = [own_range(file, column, value, (low, high)) for value in values]
            least, most = [one[0] for one in own], [one[1] for one in own]
            found.append(Limits(lifts, mass, least, most, ratio))
            if earlier:
                # No lift is above 1 / P(s).
                for s, share in enumerate(shares):
                    most[s] = 1 / (share or 1) if most[s] is None else most[s]
            else:
                sharpen(found[-1], shares)
    return found


def secrets_of(file, counts):
    """The column, the values and the counts of each secret: of all columns together, or of each."""
    columns, symbols = file["sensitive"]["columns"], file["sensitive"]["symbols"]
    if not file["sensitive"].get("each"):
        return [(None, symbols, counts)]
    secrets = []
    for k, column in enumerate(columns):
        added = {}
        for symbol, row in zip(symbols, counts, strict=True):
            before = added.get(symbol[k], [0] * len(row))
            added[symbol[k]] = [a + b for a, b in zip(before, row, strict=True)]
        secrets.append((column, [[value] for value in added], list(added.values())))
    return secrets


def own_range(file, column, value, common):
    """The least and the largest lift of a value that has budgets of its own; else the common ones."""
    for own in file.get("budgets", []):
        if own["symbol"] == value and own.get("column") == column:
            return lift_range(own["eps_l"], own["eps_u"])
    return common


def outputs_before(file, earlier):
    """u(x), the chance of the outputs of the earlier releases, each up to a factor once."""
    useful = file["useful"]
    found = [(1,) * len(useful["symbols"])]
    for channel in earlier:
        columns = channel["useful"]["columns"]
        if not set(columns) <= set(useful["columns"]):
            sys.exit("earlier releases of other columns need the table of all columns")
        places = [useful["columns"].index(column) for column in columns]
        rows = {
            tuple(symbol): dense_row(channel, x)
            for x, symbol in enumerate(channel["useful"]["symbols"])
        }
        chosen = [
            rows[tuple(symbol[p] for p in places)] for symbol in useful["symbols"]
        ]
        further = {}
        for left, output in product(found, zip(*chosen, strict=True)):
            chances = [a * b for a, b in zip(left, output, strict=True)]
            if any(chances):
                common = math.lcm(*(Fraction(c).denominator for c in chances))
                whole = [int(c * common) for c in chances]
                divisor = math.gcd(*whole)
                further[tuple(part // divisor for part in whole)] = True
        found = list(further)
    return found


def dense_row(channel, x):
    """The chances of all outputs for a symbol."""
    total = (channel.get("totals") or {x: channel["denominator"]})[x]
    if "rows" in channel:
        return [Fraction(entry, total) for entry in channel["rows"][x]]
    row = [Fraction(0)] * len(channel["outputs"])
    pairs = channel["sparse_rows"][x]
    for output, entry in zip(pairs[::2], pairs[1::2], strict=True):
        row[output] = Fraction(entry, total)
    return row


def sharpen(limits, shares):
    """Limit the lifts of every value by those of the others: they average to 1 over P(s)."""
    low, high, ratio = list(limits.least), list(limits.most), limits.ratio
    for s, share in enumerate(shares):
        others = [t for t in range(len(shares)) if t != s]
        a, b = max(low[s], min(limits.lifts[s])), max(limits.lifts[s])
        if share:
            rest = 1 - sum(shares[t] * low[t] for t in others)
            b = min(b, rest / share, b if high[s] is None else high[s])
            if all(high[t] is not None for t in others):
                a = max(a, (1 - sum(shares[t] * high[t] for t in others)) / share)
        if share and ratio is not None:
            a = max(a, 1 / (share + ratio * (1 - share)))
            b = min(b, ratio / (ratio * share + 1 - share))
        limits.least[s], limits.most[s] = a, b
