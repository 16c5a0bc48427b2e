"""Check the bounds of channel files by their certificates, without mechdesign.

    python examples/check_certificate.py CHANNEL.json .. [--after EARLIER.json ..]

docs/reference/certificates.md has the mathematics. The least cost is computed here, in fractions and
with Python alone. Bounds of other kinds follow from the vertices of the posteriors that the promise
allows: `certificate_vertices.py` beside this file lists them with NumPy, in doubles, so they are good
to 1e-8. Earlier releases that a channel was designed after are given behind --after, in their order.
"""

import json
import math
import sys
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from pathlib import Path

CLOSE = 1e-9  # of 1 or of the bound, by which a stated one may differ
CLOSE_IN_DOUBLES = 1e-8


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


def costs_of(file, proof):
    """d(x, y) as a function, exactly; of rows as the proof says what their cells cost."""
    symbols, objective = file["useful"]["symbols"], file["objective"]
    if objective["name"] == "costs":
        return lambda x, y: Fraction(proof["costs"][x][y])
    if "published" in file:
        columns = file["useful"]["columns"]
        parts = [(columns.index(part["column"]), part) for part in proof["cells"]]

        def cells(x, y):
            cost = Fraction(0)
            for k, part in parts:
                a, b, places = symbols[x][k], symbols[y][k], part.get("places")
                if places:
                    cost += abs(Fraction(places[a]) - Fraction(places[b]))
                else:
                    cost += Fraction(part["weight"]) * (a != b)
            return cost

        return cells
    if objective["name"] == "truth":
        return lambda x, y: Fraction(int(x != y))
    if objective["name"] != "distance" or any(file["useful"].get("bins") or []):
        sys.exit("this program does not know the costs of this file")
    numbers = [Fraction(text) for (text,) in symbols]
    power_of = 2 if objective["distance"] == "squared" else 1
    return lambda x, y: abs(numbers[x] - numbers[y]) ** power_of


def frequencies(file, p_x):
    """q_y: those of the table, of rows those of the channel's own outputs."""
    if "published" not in file:
        return p_x
    names = [", ".join(symbol) for symbol in file["useful"]["symbols"]]
    place = {name: y for y, name in enumerate(names)}
    found = [Fraction(0)] * len(p_x)
    for x, share in enumerate(p_x):
        for output, chance in enumerate(dense_row(file, x)):
            if chance:
                found[place[file["outputs"][output]]] += share * chance
    return found


def least_cost(file, proof, counts, earlier):
    """sum_x P(x) (stay E(x, x) + (1 - stay) min_y E(x, y)) + sum_y f_y q_y, in fractions."""
    objective, symbols = file["objective"], file["useful"]["symbols"]
    names = [", ".join(symbol) for symbol in symbols]
    # Pairs of rows are forbidden by cells; without them the bound holds as well.
    forbidden = set()
    if "published" not in file:
        forbidden = {tuple(pair) for pair in objective["forbid"]}
    cost = costs_of(file, proof)
    prices = [Fraction(value) for value in proof["prices"]]
    total = sum(map(sum, counts))
    p_x = [Fraction(sum(column), total) for column in zip(*counts, strict=True)]
    shares, released = p_x, set(range(len(p_x)))
    if objective["keep_frequencies"]:
        shares = frequencies(file, p_x)
        released = {y for y in released if shares[y]}
    elif any(prices):
        sys.exit("prices of frequencies, which are free")
    bound = sum(price * share for price, share in zip(prices, shares, strict=True))
    places = [file["useful"]["columns"].index(name) for name in file.get("given", [])]
    strata = {}
    for x, symbol in enumerate(symbols):
        strata.setdefault(tuple(symbol[place] for place in places), []).append(x)
    for members in strata.values():
        relative = file.get("promise") == "relative"
        prior = members if relative else range(len(p_x))
        limits = limits_of(file, counts, earlier, members, prior)
        taken = taken_off(limits, proof)
        outputs = [(k, y) for k, y in enumerate(members) if y in released]
        for i, x in enumerate(members):

            def reduced(k, y, i=i, x=x, taken=taken):
                return cost(x, y) - prices[y] - taken(i, y)

            least = min(
                reduced(k, y)
                for k, y in outputs
                if (names[x], names[y]) not in forbidden
            )
            stay = Fraction(objective["stay"].get(names[x], "0"))
            own = stay * reduced(i, x) if stay else 0
            bound += p_x[x] * ((1 - stay) * least + own)
    return bound


def taken_off(limits, proof):
    """What the multipliers take off d(x, y), which is never negative in an output, as a function."""
    lam = [[Fraction(value) for value in row] for row in proof["lifts"]]
    rho = [[Fraction(value) for value in row] for row in proof["ratios"]]
    rows = [(one, s) for one in limits for s in range(len(one.lifts))]
    if len(rows) != len(lam) or (rho and len(rho) != len(rows)):
        sys.exit("multipliers of another table")
    first = 0
    for one in limits:
        of_one = rho[first : first + len(one.lifts)]
        first += len(one.lifts)
        for column in zip(*of_one, strict=True):
            gained = -sum(value for value in column if value < 0)
            paid = sum(value for value in column if value > 0)
            if gained and (one.ratio is None or paid < one.ratio * gained):
                sys.exit("multipliers of quotients that prove nothing")

    def taken(i, y):
        value = Fraction(0)
        for number, (one, s) in enumerate(rows):
            multiplier, lift = lam[number][y], one.lifts[s][i]
            if multiplier:
                end = one.least[s] if multiplier > 0 else one.most[s]
                value += multiplier * (lift - end * one.mass[i])
            if rho and rho[number][y]:
                value += rho[number][y] * lift
        return value

    return taken


def table_of(file):
    """The counts, a row for each sensitive symbol; None in a public file."""
    if "sparse_joint" not in file:
        return file.get("joint")
    counts = [[0] * len(file["useful"]["symbols"]) for _ in file["sparse_joint"]]
    for row, pairs in zip(counts, file["sparse_joint"], strict=True):
        for x, count in zip(pairs[::2], pairs[1::2], strict=True):
            row[x] = count
    return counts


def check(path, earlier):
    """Print what is proven of a file; whether it is what the file states."""
    file = json.loads(Path(path).read_text(encoding="utf-8"))
    proof, counts = (file["certificate"] or {}).get("proof"), table_of(file)
    if proof is None or counts is None:
        sys.exit(f"{path}: no proof in this file")
    if file.get("confidence"):
        sys.exit(
            f"{path}: a bound for a set of populations: mechdesign audit --certificate"
        )
    if [one["sha256"] for one in earlier] != file.get("after", []):
        sys.exit(f"{path}: give the releases it was designed after (--after)")
    close = CLOSE
    if proof["kind"] == "costs":
        bound = least_cost(file, proof, counts, earlier)
        found = [("cost_lower_bound", float(bound))]
    else:
        from certificate_vertices import from_prices

        everything = range(len(counts[0]))
        limits = limits_of(file, counts, earlier, everything, everything)
        found, close = from_prices(file, proof, counts, limits), CLOSE_IN_DOUBLES
    figures = {**file["certificate"], **file["utility"]}
    if file.get("averages"):
        figures |= file["averages"][0]
    answers = []
    for name, proven in found:
        stated = figures[name]
        sign, word = 1, "at least"
        if name in ("upper_bound_nmi", "task_upper_bound"):
            sign, word = -1, "at most"
        answers.append(sign * (proven - stated) >= -close * max(1.0, abs(stated)))
        print(
            f"{path}: {name} of every private channel is {word} {proven:.9f}; "
            f"{stated:.9f} is {'' if answers[-1] else 'NOT '}proven"
        )
    return all(answers)


if __name__ == "__main__":
    paths, after = sys.argv[1:], []
    if "--after" in paths:
        split = paths.index("--after")
        paths, after = paths[:split], paths[split + 1 :]
    earlier = [json.loads(Path(path).read_text(encoding="utf-8")) for path in after]
    answers = [check(path, earlier) for path in paths]
    sys.exit(0 if all(answers) else 1)
