"""Check the bounds of channel files by their certificates, without mechdesign.

    python examples/check_certificate.py CHANNEL.json ..

docs/reference/certificates.md has the mathematics. The least cost is computed in fractions; all
other bounds from all vertices of the posteriors that the promise allows, in doubles, so they are
good to 1e-8. It is for one sensitive column (or crossed ones) and budgets that all symbols share.
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
CLOSE = 1e-10  # of tangents to curved leakages, in nats
MOST_ROUNDS = 60
CURVED = ("mi", "chi2")


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
    for x, row in enumerate(file.get("rows") or file["sparse_rows"]):
        pairs = enumerate(row)
        if "rows" not in file:
            pairs = zip(row[::2], row[1::2], strict=True)
        total = file["totals"][x] if file.get("totals") else file["denominator"]
        for output, entry in pairs:
            found[place[file["outputs"][output]]] += p_x[x] * Fraction(entry, total)
    return found


def limits(promised, p_s, lift):
    """The least and the largest lift of every secret that an output may have.

    Lifts average to 1, so the limits of the other secrets limit each one, too.
    """
    low, high, ratio = promised
    least, most = [], []
    for share, row in zip(p_s, lift, strict=True):
        a, b = max(low, min(row)), max(row)
        if share:
            b = min(b, (1 - (1 - share) * low) / share, b if high is None else high)
            a = max(a, a if high is None else (1 - (1 - share) * high) / share)
        if share and ratio is not None:
            a = max(a, 1 / (share + ratio * (1 - share)))
            b = min(b, ratio / (ratio * share + 1 - share))
        least.append(a)
        most.append(b)
    return least, most


def least_cost(file, proof, counts):
    """sum_x P(x) (stay E(x, x) + (1 - stay) min_y E(x, y)) + sum_y f_y q_y, in fractions."""
    promised = promise(file["notion"])
    lam = [[Fraction(value) for value in row] for row in proof["lifts"]]
    rho = [[Fraction(value) for value in row] for row in proof["ratios"]]
    for column in zip(*rho, strict=True):
        gained = -sum(value for value in column if value < 0)
        paid = sum(value for value in column if value > 0)
        if gained and (promised[2] is None or paid < promised[2] * gained):
            sys.exit("multipliers of quotients that prove nothing")
    objective, symbols = file["objective"], file["useful"]["symbols"]
    names = [", ".join(symbol) for symbol in symbols]
    cost, forbidden = costs_of(file, proof), {tuple(p) for p in objective["forbid"]}
    prices = [Fraction(value) for value in proof["prices"]]
    total = sum(map(sum, counts))
    p_x = [Fraction(sum(column), total) for column in zip(*counts, strict=True)]
    shares, released = p_x, range(len(p_x))
    if objective["keep_frequencies"]:
        shares = frequencies(file, p_x)
        released = [y for y in released if shares[y]]
    elif any(prices):
        sys.exit("prices of frequencies, which are free")
    bound = sum(price * share for price, share in zip(prices, shares, strict=True))
    places = [file["useful"]["columns"].index(name) for name in file.get("given", [])]
    strata = {}
    for x, symbol in enumerate(symbols):
        strata.setdefault(tuple(symbol[place] for place in places), []).append(x)
    for members in strata.values():
        prior = members if file.get("promise") == "relative" else range(len(p_x))
        sums = [sum(row[x] for x in prior) for row in counts]
        p_s = [Fraction(part, sum(sums)) for part in sums]
        lift = []  # L_s(x) = P(s|x) / P(s), of the members
        for row, share in zip(counts, p_s, strict=True):
            lift.append(
                [Fraction(row[x], total) / p_x[x] / (share or 1) for x in members]
            )
        least, most = limits(promised, p_s, lift)

        def reduced(i, y, members=members, lift=lift, least=least, most=most):
            value = cost(members[i], y) - prices[y]
            for s, row in enumerate(lift):
                end = least[s] if lam[s][y] > 0 else most[s]
                value -= lam[s][y] * (row[i] - end)
                value -= rho[s][y] * row[i] if rho else 0
            return value

        open_outputs = [y for y in members if y in set(released)]
        for i, x in enumerate(members):
            to = [y for y in open_outputs if (names[x], names[y]) not in forbidden]
            stay = Fraction(objective["stay"].get(names[x], "0"))
            rest = (1 - stay) * min(reduced(i, y) for y in to)
            bound += p_x[x] * (rest + (stay * reduced(i, x) if stay else 0))
    return bound


def vertices(notion, lift, kinks):
    """Vertices of the posteriors that the promise allows (None: of all), cut along the kinks.

    They come as blocks (m, n). A kink (row, end) is a plane row . v = end.
    """
    k, n = lift.shape
    rows, ends = [np.zeros((0, n))], [np.zeros(0)]  # rows v <= ends
    if notion is not None:
        low, high, ratio = promise(notion)
        rows += [lift, -lift]
        ends += [np.full(k, float(high or lift.max())), np.full(k, -float(low))]
        if ratio is not None:
            rows += [lift[[s]] - float(ratio) * np.delete(lift, s, 0) for s in range(k)]
            ends.append(np.zeros(k * (k - 1)))
    limited = sum(map(len, rows))
    rows, ends = np.vstack([*rows, *kinks[0]]), np.concatenate([*ends, kinks[1]])
    # A vertex has at most as many symbols as there are independent rows, sum v = 1 included.
    sizes = range(1, min(k, n) + 1)
    systems = sum(math.comb(n, r) * math.comb(len(rows), r - 1) for r in sizes)
    if systems > MOST_SYSTEMS:
        sys.exit(f"{systems} systems for vertices are too many for this program")
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
            image = np.einsum("msr,sr->sm", rows[:limited, there], v)
            inside &= (image <= ends[:limited] + TINY).all(1)
            block = np.zeros((inside.sum(), n))
            np.put_along_axis(block, there[inside], v[inside], 1)
            if len(block):
                yield np.maximum(block, 0.0)


def entropy(v):
    """Of every row, in nats."""
    return -(v * np.log(np.maximum(v, 1e-300))).sum(1)


def leakage(average, p_s):
    """What gains of guesses are in lifts (a row for each), and the L(w) of an average leakage."""
    name, k = average["measure"], len(p_s)
    if name == "tv":
        return np.eye(k), lambda w: 0.5 * np.abs(w - 1) @ p_s
    if name == "mi":
        return np.eye(k), lambda w: (w * np.log(np.maximum(w, 1e-300))) @ p_s
    if name == "chi2":
        return np.eye(k), lambda w: np.square(w - 1) @ p_s
    if name == "maximal-leakage":
        return np.eye(k), lambda w: w.max(1) - 1
    gains = np.diag(p_s)
    if name == "gain":
        gains = np.array([[float(Fraction(t)) for t in r] for r in average["gains"]])
        gains = gains * p_s
    return gains, lambda w: (w @ gains.T).max(1) - gains.sum(1).max()


def tangents(average, p_s, points):
    """Slopes and heights of planes below a curved leakage that touch it at lifts of two secrets."""
    w = np.maximum(points, 1e-12)
    slopes = np.log(w) + 1 if average["measure"] == "mi" else 2 * (w - 1)
    slopes = slopes * p_s
    return slopes, leakage(average, p_s)[1](w) - (slopes * w).sum(1)


def kinks_of(average, p_s, lift, points):
    """The planes between which an average leakage, or its largest tangent, is linear."""
    if average["measure"] in CURVED:
        slopes, heights = tangents(average, p_s, points)
        # Lifts of two secrets lie on a line, so neighbouring tangents meet in one point of it.
        return [np.diff(slopes, axis=0) @ lift], -np.diff(heights)
    gained = leakage(average, p_s)[0] @ lift
    if average["measure"] == "tv":
        return [gained], np.ones(len(gained))
    pairs = list(combinations(range(len(gained)), 2))
    apart = [gained[[g]] - gained[[h]] for g, h in pairs]
    return apart, np.zeros(len(pairs))


def in_unit(average, value, p_s):
    """A leakage as what the outputs leak on average beyond a constant."""
    if average["measure"] == "maximal-leakage":
        return math.expm1(value)
    if average["measure"] in ("guess", "gain"):
        return value - leakage(average, p_s)[0].sum(1).max()
    return value


def from_prices(file, proof, lift, p_s, p_x):
    """What the prices prove of every figure in the file: pairs of its name and the bound."""
    lift, prices, p_s, p_x = (
        np.array(a, float) for a in (lift, proof["prices"], p_s, p_x)
    )
    averages = file.get("averages", [])
    charges = list(zip(averages, proof.get("leakages") or [], strict=True))
    is_curved = any(average["measure"] in CURVED for average in averages)
    if is_curved and len(p_s) > 2:
        sys.exit("this program knows curved leakages of two secrets only")
    task, queries, inverse = None, None, None
    if proof["kind"] == "task":
        task = np.array(proof["task"], float)
        task /= task.sum(0)
    if proof["kind"] == "queries":
        queries, inverse = queries_of(file, proof), np.array(proof["inverse"])

    def cost(v, points=None):
        value = -v @ prices
        if queries is not None:
            return -value - np.square((v / p_x) @ inverse @ queries.T).sum(1)
        value += entropy(v) if task is None else entropy(v @ task.T)
        for average, price in charges:
            if points is not None and average["measure"] in CURVED:
                slopes, heights = tangents(average, p_s, points)
                value += price * (v @ lift.T @ slopes.T + heights).max(1)
            else:
                value += price * leakage(average, p_s)[1](v @ lift.T)
        return value

    notion = None if proof.get("alone") else file["notion"]
    # Tangents below curved leakages; more where a posterior costs less with them than it does.
    first = np.linspace(lift[0].min(), lift[0].max(), 9)
    points = np.column_stack([first, (1 - p_s[0] * first) / (1 - p_s[0])])
    for _ in range(MOST_ROUNDS):
        parts = [kinks_of(average, p_s, lift, points) for average in averages]
        rows = [m for part in parts for m in part[0]]
        ends = np.concatenate([np.zeros(0), *(part[1] for part in parts)])
        blocks = vertices(notion, lift, (rows, ends))
        if not is_curved:
            least = min(cost(block).min() for block in blocks)
            break
        corners = np.vstack([*blocks])
        costs = cost(corners, points)
        least = costs.min()
        cheap = corners[costs < cost(corners).min() - CLOSE]
        if not len(cheap):
            break
        points = np.unique(np.vstack([points, cheap @ lift.T]), axis=0)
    if queries is not None:
        offset = np.square(queries @ p_x).sum()
        found = np.sum((queries @ inverse) * queries) ** 2 / (prices @ p_x - least)
        noise_free = (np.square(queries) @ p_x).sum() - offset
        return [("variance_lower_bound", max(found - offset, noise_free))]
    least += prices @ p_x
    whole = float(entropy(p_x[None])[0])
    if task is not None:
        prior = float(entropy((task @ p_x)[None])[0])
        told = prior - p_x @ entropy(task.T)
        return [("task_upper_bound", min(1.0, (prior - least) / told))]
    budgets = [price * in_unit(a, a["budget"], p_s) for a, price in charges]
    found = [("upper_bound_nmi", min(1.0, 1 - (least - sum(budgets)) / whole))]
    if averages and averages[0].get("keep") is not None:
        ((average, price),) = charges
        leaked = max(0.0, least - (1 - average["keep"]) * whole) / (price or math.inf)
        unit = leaked + leaked_by_nothing(average, p_s)
        if average["measure"] == "maximal-leakage":
            unit = math.log1p(leaked)
        found.append(("lower_bound", unit))
    return found


def leaked_by_nothing(average, p_s):
    """What guesses gain without any release; else 0."""
    if average["measure"] not in ("guess", "gain"):
        return 0.0
    return leakage(average, p_s)[0].sum(1).max()


def queries_of(file, proof):
    """The queries Q, a row each: those of the proof, or named ones."""
    if "queries" in proof:
        return np.array(proof["queries"])
    symbols, name = file["useful"]["symbols"], file["provenance"]["mechanism"]
    n = len(symbols)
    if name == "frequencies":
        return np.eye(n)
    order = sorted(range(n), key=lambda x: Fraction(symbols[x][0]))
    first = {"prefix": 1, "ranges": n}[name]
    spans = [(i, j) for i in range(first) for j in range(i, n)]
    matrix = np.zeros((len(spans), n))
    for row, (i, j) in zip(matrix, spans, strict=True):
        row[order[i : j + 1]] = 1.0
    return matrix


def check(path):
    """Print what is proven of a file; whether it is what the file states."""
    file = json.loads(Path(path).read_text(encoding="utf-8"))
    proof = (file["certificate"] or {}).get("proof")
    counts = file.get("joint")
    if "sparse_joint" in file:
        counts = [[0] * len(file["useful"]["symbols"]) for _ in file["sparse_joint"]]
        for row, pairs in zip(counts, file["sparse_joint"], strict=True):
            for x, count in zip(pairs[::2], pairs[1::2], strict=True):
                row[x] = count
    needs_more = [file.get(key) for key in ("budgets", "after", "confidence")]
    if proof is None or counts is None or any(needs_more):
        sys.exit(f"{path}: no proof that this program can check")
    total = sum(map(sum, counts))
    p_s = [Fraction(sum(row), total) for row in counts]
    p_x = [Fraction(sum(column), total) for column in zip(*counts, strict=True)]
    lift = [
        [Fraction(c, total) / (a * b) for c, b in zip(row, p_x, strict=True)]
        for row, a in zip(counts, p_s, strict=True)
    ]
    if proof["kind"] == "costs":
        found = [("cost_lower_bound", float(least_cost(file, proof, counts)))]
    else:
        found = from_prices(file, proof, lift, p_s, p_x)
    figures = {**file["certificate"], **file["utility"]}
    if file.get("averages"):
        figures |= file["averages"][0]
    answers = []
    for name, proven in found:
        stated = figures[name]
        slack = (TINY if proof["kind"] == "costs" else 1e-8) * max(1.0, abs(stated))
        sign, word = 1, "at least"
        if name in ("upper_bound_nmi", "task_upper_bound"):
            sign, word = -1, "at most"
        answers.append(sign * (proven - stated) >= -slack)
        print(
            f"{path}: {name} of every private channel is {word} {proven:.9f}; "
            f"{stated:.9f} is {'' if answers[-1] else 'NOT '}proven"
        )
    return all(answers)


if __name__ == "__main__":
    answers = [check(path) for path in sys.argv[1:]]
    sys.exit(0 if all(answers) else 1)
