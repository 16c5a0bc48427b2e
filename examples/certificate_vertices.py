"""Bounds from prices, by all vertices of the allowed posteriors: for `check_certificate.py`.

Every posterior v of an output has the vertex with the least cost below it, because the costs are
concave: the entropy of v or of the task, or the variance of queries, less prices . v. Average
leakages add t_j at a price, where t_j is the largest of some linear functions of v. Those of the
leakages tv, guess, gain and maximal-leakage are few. Below mi and chi2, which are curved, there are
tangents, and more are added where a vertex costs less than its leakage. So are the rows of a set of
populations: its intervals are taken from the file, and where a vertex is outside, the rows of the
worst populations in them are added.
"""

import math
import sys
from fractions import Fraction
from itertools import combinations

import numpy as np
from certificate_file import budgets, limits_of

MOST_SYSTEMS = (
    20_000_000  # of equations, each of which may have a vertex as its solution
)
AT_ONCE = 20_000
TINY = 1e-9
CLOSE = 1e-8  # of tangents to curved leakages, in nats
MOST_ROUNDS = 60
MOST_NEW = 12  # tangents of a round
CURVED = ("mi", "chi2")


def vertices(rows, leakages):
    """Vertices of {(v, t): v >= 0, sum v = 1, rows v <= 0, f v <= t_j for each f of leakage j}.

    They come in blocks: v (m, n), and t (m, leakages).
    """
    n, more = rows.shape[1], len(leakages)
    functions = np.vstack([rows, *leakages])
    minus_t = np.zeros((len(functions), more))
    first = len(rows)
    for j, part in enumerate(leakages):
        minus_t[first : first + len(part), j] = -1.0
        first += len(part)
    # A vertex has at most as many symbols as there are independent rows of v, sum v = 1 included.
    rank = np.linalg.matrix_rank(np.vstack([np.ones(n), functions]))
    sizes = range(1, min(rank, n) + 1)
    systems = 0
    for r in sizes:
        systems += math.comb(n, r) * math.comb(len(functions), r + more - 1)
    if systems > MOST_SYSTEMS:
        sys.exit(f"{systems} systems for vertices are too many for this program")
    for r in sizes:
        chosen = list(combinations(range(len(functions)), r + more - 1))
        tight = np.array(chosen, dtype=int).reshape(len(chosen), r + more - 1)
        right = np.zeros((r + more, 1))
        right[0] = 1.0
        for support in map(list, combinations(range(n), r)):
            here = np.hstack([functions[:, support], minus_t])
            for part in range(0, len(tight), AT_ONCE):
                left = np.zeros((len(tight[part : part + AT_ONCE]), r + more, r + more))
                left[:, 0, :r] = 1.0
                left[:, 1:] = here[tight[part : part + AT_ONCE]]
                left = left[np.abs(np.linalg.det(left)) > 1e-12]
                solved = np.linalg.solve(left, right[None])[..., 0]
                inside = (solved[:, :r] >= -TINY).all(1)
                inside &= (solved @ here.T <= TINY).all(1)
                v = np.zeros((inside.sum(), n))
                v[:, support] = np.maximum(solved[inside, :r], 0.0)
                if len(v):
                    yield v, solved[inside, r:]


def promise_rows(limits, alone):
    """The promise as rows v <= 0; no rows where averages stand alone."""
    rows = []
    for one in [] if alone else limits:
        lifts, mass = np.array(one.lifts, float), np.array(one.mass, float)
        for row, least, most in zip(lifts, one.least, one.most, strict=True):
            rows += [row - float(most) * mass, float(least) * mass - row]
        if one.ratio is not None:
            for s, row in enumerate(lifts):
                rows += [*(row - float(one.ratio) * np.delete(lifts, s, 0))]
    # Rows without a positive entry hold for every v.
    rows = np.array(rows).reshape(-1, len(limits[0].mass))
    return rows[(rows > 0.0).any(1)]


def entropy(v):
    """Of every row, in nats."""
    return -(v * np.log(np.maximum(v, 1e-300))).sum(1)


def gains_of(average, p_s):
    """What guesses gain from lifts, a row for each guess."""
    if average["measure"] == "guess":
        return np.diag(p_s)
    table = [[float(Fraction(text)) for text in row] for row in average["gains"]]
    return np.array(table) * p_s


def leakage(average, p_s, w):
    """The leakage of outputs with the lifts w, a row for each."""
    name = average["measure"]
    if name == "mi":
        return (w * np.log(np.maximum(w, 1e-300))) @ p_s
    if name == "chi2":
        return np.square(w - 1) @ p_s
    slopes, heights = planes(average, p_s, w)
    return (w @ slopes.T + heights).max(1)


def planes(average, p_s, points):
    """Slopes and heights of linear functions of lifts whose largest is the leakage, or below it."""
    name, k = average["measure"], len(p_s)
    if name in CURVED:
        w = np.maximum(points, 1e-12)
        slopes = (np.log(w) + 1 if name == "mi" else 2 * (w - 1)) * p_s
        return slopes, leakage(average, p_s, w) - (slopes * w).sum(1)
    if name == "tv":
        # The largest P(A|y) - P(A) of all sets A of secrets.
        sets = np.array([[a >> s & 1 for s in range(k)] for a in range(2**k - 1)])
        return sets * p_s, -(sets @ p_s)
    if name == "maximal-leakage":
        return np.eye(k), -np.ones(k)
    gains = gains_of(average, p_s)
    return gains, np.full(len(gains), -gains.sum(1).max())


def known_before(average, p_s):
    """What guesses gain without any release; else 0."""
    if average["measure"] not in ("guess", "gain"):
        return 0.0
    return gains_of(average, p_s).sum(1).max()


def in_unit(average, value, p_s):
    """A leakage as what the outputs leak on average beyond a constant."""
    if average["measure"] == "maximal-leakage":
        return math.expm1(value)
    return value - known_before(average, p_s)


def least_of(cost, rows, charges, lift, p_s, cuts=None):
    """The least cost of all allowed posteriors, with each average leakage at its price.

    `cuts` are the further rows that a posterior breaks, as a function.
    """
    charges = [(average, price) for average, price in charges if price]
    cuts = cuts or (lambda v: np.zeros((0, rows.shape[1])))
    prices = np.array([price for _, price in charges])
    points = np.vstack([np.ones(len(p_s)), lift.T, 0.5 + 0.5 * lift.T])
    for _ in range(MOST_ROUNDS):
        leakages = []
        for average, _ in charges:
            slopes, heights = planes(average, p_s, points)
            leakages.append(slopes @ lift + heights[:, None])
        blocks = [(v, cost(v) + t @ prices) for v, t in vertices(rows, leakages)]
        v, charged = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
        w = v @ lift.T
        true = cost(v) + sum(price * leakage(a, p_s, w) for a, price in charges)
        short = np.argsort(charged)[:MOST_NEW]
        broken = [cuts(v[k]) for k in short]
        outside = [len(new) > 0 for new in broken]
        rows = np.unique(np.vstack([rows, *broken]), axis=0)
        short = short[charged[short] < true.min() - CLOSE]
        more = np.unique(np.vstack([points, w[short]]), axis=0)
        if len(more) == len(points) and not outside[0]:
            break
        points = more
    return charged.min()


def worst_populations(file, p_x):
    """The rows a v <= 0 of the populations that a posterior v breaks most, as a function of it.

    With w = v / P(x), P(y|s) is largest and smallest where P(x|s) fills its intervals from the
    largest w on, and from the smallest; the shares P(s) fill theirs in the same way.
    """
    confidence = file["confidence"]
    if confidence["unseen"] or file.get("budgets"):
        sys.exit("this program does not know this set of populations")
    ends = np.array(confidence["intervals"]["cells"])
    cells = np.vectorize(lambda text: float(Fraction(text)))(ends)
    shares = [
        [float(Fraction(t)) for t in pair] for pair in confidence["intervals"]["shares"]
    ]
    (low_s, high_s), secrets = np.array(shares).T, range(len(shares))
    least, most, ratio = (float(b) if b else None for b in budgets(file["notion"]))

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
        return found[found @ v > TINY]

    return rows


def fill(values, low, high):
    """The distribution between `low` and `high` with the least mean of the values."""
    filled, left = low.copy(), 1.0 - low.sum()
    for k in np.argsort(values):
        more = min(high[k] - low[k], max(left, 0.0))
        filled[k] += more
        left -= more
    return filled


def rows_and_cuts(file, limits, p_x, alone=False):
    """The promise as rows, and further ones where it is about a set of populations."""
    if not file.get("confidence"):
        return promise_rows(limits, alone), None
    # What is private for the whole set is private for the table, if that is in the set.
    is_known = file["confidence"]["shares"] == "known"
    return promise_rows(limits, is_known), worst_populations(file, p_x)


def least_of_sides(file, proof, counts):
    """For every output y the least sum_x t_xy v_x over the posteriors that the set allows."""
    everything = range(len(counts[0]))
    limits = limits_of(file, counts, [], everything, everything)
    joint = np.array(counts, float) / sum(map(sum, counts))
    p_s, p_x = joint.sum(1), joint.sum(0)
    rows, cuts = rows_and_cuts(file, limits, p_x)
    lift = joint / np.outer(p_s, p_x)
    found = []
    for side in np.array(proof["sides"]).T:
        least = least_of(lambda v, side=side: v @ side, rows, [], lift, p_s, cuts)
        found.append(least - TINY)
    return found


def from_prices(file, proof, counts, limits):
    """What the prices prove of every figure in the file: pairs of its name and the bound."""
    joint = np.array(counts, float) / sum(map(sum, counts))
    p_s, p_x, prices = joint.sum(1), joint.sum(0), np.array(proof["prices"])
    lift = joint / np.outer(p_s, p_x)
    rows, cuts = rows_and_cuts(file, limits, p_x, proof.get("alone"))
    averages = file.get("averages", [])
    charges = list(zip(averages, proof.get("leakages") or [], strict=True))
    spent = sum(price * in_unit(a, a["budget"], p_s) for a, price in charges)
    if proof["kind"] == "queries":
        queries, inverse = queries_of(file, proof), np.array(proof["inverse"])

        def missed(v):
            return v @ prices - np.square((v / p_x) @ inverse @ queries.T).sum(1)

        least = least_of(missed, rows, charges, lift, p_s, cuts)
        paid = prices @ p_x + spent - least
        return [("variance_lower_bound", variance(queries, inverse, paid, p_x))]
    task = np.eye(len(p_x))
    if proof["kind"] == "task":
        task = np.array(proof["task"], float)
        task /= task.sum(0)

    def cost(v):
        return entropy(v @ task.T) - v @ prices

    least = prices @ p_x + least_of(cost, rows, charges, lift, p_s, cuts)
    whole = float(entropy((task @ p_x)[None])[0])
    if proof["kind"] == "task":
        told = whole - p_x @ entropy(task.T)
        return [("task_upper_bound", min(1.0, (whole - least + spent) / told))]
    found = [("upper_bound_nmi", min(1.0, 1 - (least - spent) / whole))]
    if averages and averages[0].get("keep") is not None:
        ((average, price),) = charges
        leaked = max(0.0, least - (1 - average["keep"]) * whole) / (price or math.inf)
        if average["measure"] == "maximal-leakage":
            leaked = math.log1p(leaked)
        found.append(("lower_bound", leaked + known_before(average, p_s)))
    return found


def variance(queries, inverse, paid, p_x):
    """The least variance of estimates of the queries, from tr(S M) <= paid."""
    offset = np.square(queries @ p_x).sum()
    found = np.sum((queries @ inverse) * queries) ** 2 / paid
    noise_free = (np.square(queries) @ p_x).sum() - offset
    return max(found - offset, noise_free)


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
