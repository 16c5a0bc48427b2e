"""Check the bounds of channel files by their certificates, without mechdesign.

    python examples/check_certificate.py CHANNEL.json ..

docs/reference/certificates.md has the mathematics. The least cost is computed in fractions; the most
information from all vertices of the posteriors that the promise allows, in doubles, so it is good
to 1e-8. It is for one sensitive column (or crossed ones) and budgets that all symbols share.
"""

import json
import math
import sys
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import numpy as np

MOST_SYSTEMS = (
    3_000_000  # of equations, each of which may have a vertex as its solution
)
TINY = 1e-9


def promise(notion):
    """The least lift, the largest lift, and the largest quotient of two (None for no limit)."""
    name, eps = notion["name"], notion.get("epsilon")
    if name == "ldp":
        return Fraction(0), None, power(eps, 1)
    if name not in ("alip", "lip", "max-lift", "min-lift"):
        sys.exit(f"this program does not know the promise {name}")
    lower = notion.get("eps_l", eps if name == "lip" else "inf")
    upper = notion.get("eps_u", eps if name == "lip" else "inf")
    least = Fraction(0) if lower == "inf" else power(-lower, -1)
    return least, None if upper == "inf" else power(upper, 1), None


def power(exponent, side):
    """e^exponent, rounded up or down by more than the error of `exp`."""
    return Fraction(math.exp(exponent)) * (1 + side * Fraction(1, 2**50))


def costs_of(objective, proof, symbols):
    """d(x, y), exactly."""
    n = len(symbols)
    if objective["name"] == "costs":
        return [[Fraction(text) for text in row] for row in proof["costs"]]
    if objective["name"] == "truth":
        return [[Fraction(int(x != y)) for y in range(n)] for x in range(n)]
    numbers = [Fraction(text) for (text,) in symbols]
    squared = 2 if objective["distance"] == "squared" else 1
    return [[abs(a - b) ** squared for b in numbers] for a in numbers]


def least_cost(file, proof, lift, p_s, p_x):
    """sum_x P(x) (stay E(x, x) + (1 - stay) min_y E(x, y)) + sum_y f_y P(y), in fractions."""
    low, high, ratio = promise(file["notion"])
    n, secrets = len(p_x), range(len(p_s))
    least, most = [], []
    for (
        s
    ) in secrets:  # lifts average to 1, so the limits of the others limit this one, too
        a, b = max(low, min(lift[s])), max(lift[s])
        b = min(b, (1 - (1 - p_s[s]) * low) / p_s[s], b if high is None else high)
        if high is not None:
            a = max(a, (1 - (1 - p_s[s]) * high) / p_s[s])
        if ratio is not None:
            a = max(a, 1 / (p_s[s] + ratio * (1 - p_s[s])))
            b = min(b, ratio / (ratio * p_s[s] + 1 - p_s[s]))
        least.append(a)
        most.append(b)
    lam = [[Fraction(value) for value in row] for row in proof["lifts"]]
    rho = [[Fraction(value) for value in row] for row in proof["ratios"]]
    for column in zip(*rho, strict=True):
        gained = -sum(value for value in column if value < 0)
        if (
            gained
            and sum(value for value in column if value > 0) < (ratio or 0) * gained
        ):
            sys.exit("multipliers of quotients that prove nothing")
    objective, names = file["objective"], [row[0] for row in file["useful"]["symbols"]]
    cost = costs_of(objective, proof, file["useful"]["symbols"])
    forbidden = {tuple(pair) for pair in objective["forbid"]}
    prices = [Fraction(value) for value in proof["prices"]]
    if any(prices) and not objective["keep_frequencies"]:
        sys.exit("prices of frequencies, which are free")

    def reduced(x, y):
        value = cost[x][y] - prices[y]
        for s in secrets:
            end = least[s] if lam[s][y] > 0 else most[s]
            value -= lam[s][y] * (lift[s][x] - end)
            value -= rho[s][y] * lift[s][x] if rho else 0
        return value

    bound = sum(price * mass for price, mass in zip(prices, p_x, strict=True))
    for x in range(n):
        open_to_x = [y for y in range(n) if (names[x], names[y]) not in forbidden]
        stay = Fraction(objective["stay"].get(names[x], "0"))
        rest = (1 - stay) * min(reduced(x, y) for y in open_to_x)
        bound += p_x[x] * (rest + (stay * reduced(x, x) if stay else 0))
    return bound


def most_kept(file, proof, lift, p_x):
    """1 - (prices . P(x) + the least H(v) - prices . v over all vertices v) / H(X)."""
    low, high, ratio = promise(file["notion"])
    lift, prices, p_x = (np.array(a, float) for a in (lift, proof["prices"], p_x))
    k, n = lift.shape
    rows, ends = [lift, -lift], [np.full(k, float(high or lift.max()))]
    ends.append(np.full(k, -float(low)))  # rows v <= ends
    if ratio is not None:
        rows += [lift[[s]] - float(ratio) * np.delete(lift, s, 0) for s in range(k)]
        ends.append(np.zeros(k * (k - 1)))
    rows, ends = np.vstack(rows), np.concatenate(ends)
    # A vertex has at most as many symbols as there are independent rows, sum v = 1 included.
    sizes = range(1, min(k, n) + 1)
    systems = sum(math.comb(n, r) * math.comb(len(rows), r - 1) for r in sizes)
    if systems > MOST_SYSTEMS:
        sys.exit(f"{systems} systems for vertices are too many for this program")
    best = math.inf
    for r in sizes:
        supports = np.array(list(combinations(range(n), r)))
        for tight in map(list, combinations(range(len(rows)), r - 1)):
            left = np.ones((len(supports), r, r))
            left[:, 1:] = rows[tight][:, supports].transpose(1, 0, 2)
            solved = np.abs(np.linalg.det(left)) > 1e-12
            right = np.concatenate([[1.0], ends[tight]])[:, None]
            v = np.linalg.solve(left[solved], right[None])[..., 0]
            there = supports[solved]
            inside = (v >= -TINY).all(1)
            image = np.einsum("msr,sr->sm", rows[:, there], v)
            inside &= (image <= ends + TINY).all(1)
            v, there = v[inside], there[inside]
            if len(v):
                v = np.maximum(v, 1e-300)
                value = (-v * np.log(v) - prices[there] * v).sum(1)
                best = min(best, value.min())
    return 1 - (prices @ p_x + best) / -(p_x @ np.log(p_x))


def check(path):
    """Print what is proven of a file; whether it is what the file states."""
    file = json.loads(Path(path).read_text(encoding="utf-8"))
    proof = (file["certificate"] or {}).get("proof")
    if proof is None or "joint" not in file or file.get("budgets"):
        sys.exit(f"{path}: no proof that this program can check")
    counts = file["joint"]
    total = sum(map(sum, counts))
    p_s = [Fraction(sum(row), total) for row in counts]
    p_x = [Fraction(sum(column), total) for column in zip(*counts, strict=True)]
    lift = [
        [Fraction(c, total) / (a * b) for c, b in zip(row, p_x, strict=True)]
        for row, a in zip(counts, p_s, strict=True)
    ]
    if proof["kind"] == "costs":
        stated, name = file["utility"]["cost_lower_bound"], "costs less than"
        proven = float(least_cost(file, proof, lift, p_s, p_x))
        good = proven >= stated - TINY * max(1.0, stated)
    else:
        stated, name = file["certificate"]["upper_bound_nmi"], "keeps more than"
        proven = min(1.0, most_kept(file, proof, lift, p_x))
        good = proven <= stated + 1e-8
    print(
        f"{path}: no private channel {name} {proven:.9f}; {stated:.9f} is {'' if good else 'NOT '}proven"
    )
    return good


if __name__ == "__main__":
    answers = [check(path) for path in sys.argv[1:]]
    sys.exit(0 if all(answers) else 1)
