"""Check the bounds of channel files by their proofs, without mechdesign.

    python examples/check_certificate.py CHANNEL.json .. [--after EARLIER.json ..]

docs/reference/certificates.md has the mathematics and the format. Every proof asks whether a cost
of the posteriors v that the promise allows falls below a number, and `Allowed` answers. All is
computed in doubles, so bounds are good to 1e-8. What averages, earlier releases and sets of
populations add is in `certificate_averages.py` and `certificate_sets.py` beside this file.
"""

import json
import math
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
from scipy.optimize import linprog

CLOSE = 1e-8  # of 1 or of the bound, by which a stated one may differ
TINY = 1e-11
SHARP = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}

# --------------------------------------------------------------- the one question of all proofs


class Allowed:
    """The v >= 0 with sum v = 1 and rows v >= 0, where `more(v)` are further rows that v breaks.

    The last `leaks` entries of v are average leakages: they are not in the sum, and below `most`.
    """

    def __init__(self, rows, more=None, leaks=0, most=0.0):
        self.rows, self.more, self.most = rows, more, most
        self.shares = np.ones(rows.shape[1])
        self.shares[rows.shape[1] - leaks :] = 0.0

    def lowest(self, cost, box=()):
        """A lower bound of cost v, and the v that HiGHS found; `box` are rows for this time.

        Duals that are not negative prove it, whatever they are: cost v >= (cost - duals rows) v.
        """
        while True:
            rows = np.vstack([self.rows, *box])
            none = np.zeros(len(rows))
            found = linprog(cost, -rows, none, self.shares[None], [1.0], options=SHARP)
            if found.status == 2:
                return math.inf, None
            if found.status != 0:
                sys.exit(f"HiGHS gave no answer: {found.message}")
            reduced = cost - np.maximum(-found.ineqlin.marginals, 0.0) @ rows
            of_leaks = np.minimum(reduced[self.shares == 0], 0.0).sum()
            bound = reduced[self.shares == 1].min() + self.most * of_leaks
            broken = [] if self.more is None else self.more(found.x)
            if not len(broken):
                return bound, found.x
            self.rows = np.vstack([self.rows, broken])

    def falls_below(self, wanted, cost, matrix, bend):
        """Whether cost v + sum_k bend(z_k), with z = matrix v, may be below `wanted`.

        `bend` is concave, so on a box of z it lies above its chord. Boxes are split where it lies
        farthest above, until every chord proves the bound (branch and bound).
        """
        boxes = [(matrix.min(1), matrix.max(1))]
        while boxes:
            low, high = boxes.pop()
            slope = (bend(high) - bend(low)) / np.maximum(high - low, 1e-300)
            # As sum v = 1, a constant is one on every share.
            constant = (bend(low) - slope * low).sum()
            box = [matrix - np.outer(low, self.shares)]
            box += [np.outer(high, self.shares) - matrix]
            chords = cost + slope @ matrix + constant * self.shares
            bound, v = self.lowest(chords, box)
            if bound >= wanted - CLOSE / 2:
                continue
            z = matrix @ v
            above = bend(z) - bend(low) - slope * (z - low)
            k = np.argmax(above)
            if cost @ v + bend(z).sum() < wanted - CLOSE or above[k] < TINY:
                return True
            left, right = high.copy(), low.copy()
            left[k] = right[k] = z[k]
            boxes += [(low, left), (right, high)]
        return False


# ------------------------------------------------------------------------ table and promise


def numbers(values):
    """Numbers or texts of fractions as an array."""
    exact = np.array(values, dtype=object)
    return np.vectorize(lambda value: float(Fraction(value)), otypes=[float])(exact)


def dense(rows, pairs, width):
    """A matrix from its rows, or from pairs of a place and an entry."""
    if rows is None:
        rows = np.zeros((len(pairs), width))
        for row, of_row in zip(rows, pairs, strict=True):
            row[of_row[::2]] = of_row[1::2]
    return np.array(rows, float)


def range_of(eps_l, eps_u):
    """The least and the largest lift."""
    return math.exp(-float(eps_l)), math.exp(float(eps_u))


def budgets(notion):
    """The least lift, the largest one, and the largest quotient of two or None."""
    name, eps = notion["name"], notion.get("epsilon")
    if name == "ldp":
        return 0.0, math.inf, math.exp(eps)
    if name not in ("alip", "lip", "max-lift", "min-lift"):
        sys.exit(f"this program does not know the promise {name}")
    same = eps if name == "lip" else "inf"
    return *range_of(notion.get("eps_l", same), notion.get("eps_u", same)), None


def secrets_of(file, counts):
    """The column, the values and the counts of each secret: of all columns together, or of each."""
    columns, symbols = file["sensitive"]["columns"], file["sensitive"]["symbols"]
    if not file["sensitive"].get("each"):
        return [(None, symbols, counts)]
    secrets = []
    for k, column in enumerate(columns):
        added = {}
        for symbol, row in zip(symbols, counts, strict=True):
            added[symbol[k]] = added.get(symbol[k], 0) + row
        values = [[value] for value in added]
        secrets.append((column, values, np.array(list(added.values()))))
    return secrets


def strata_of(file):
    """The places of the symbols with the same given cells; without given columns all of them."""
    places = [file["useful"]["columns"].index(name) for name in file.get("given", [])]
    strata = {}
    for x, symbol in enumerate(file["useful"]["symbols"]):
        strata.setdefault(tuple(symbol[place] for place in places), []).append(x)
    return list(strata.values())


def limits_of(file, counts, members, left):
    """(lifts, mass, least, most, ratio) of each secret: least <= lifts v / mass v <= most.

    `members` are the symbols of a stratum, which v is over, and `left` the u(x) that the outputs of
    earlier releases are in proportion to.
    """
    prior = members if file.get("promise") == "relative" else slice(None)
    low, high, ratio = budgets(file["notion"])
    own = {(one.get("column"), *one["symbol"]): one for one in file.get("budgets", [])}
    masses, found = counts.sum(0), []
    for u in left:
        mass = (u * np.ones(len(masses)) * masses.sum() / (u * masses).sum())[members]
        for column, values, rows in secrets_of(file, counts):
            shares = rows[:, prior].sum(1) / rows[:, prior].sum()
            here = np.maximum(shares, 1e-300)
            lifts = rows[:, members] / masses[members] * mass / here[:, None]
            ranges = []
            for value in values:
                one = own.get((column, *value))
                ranges.append(
                    range_of(one["eps_l"], one["eps_u"]) if one else (low, high)
                )
            least, most = np.array(ranges).T * (shares > 0)
            # No lift is above 1 / P(s).
            found.append((lifts, mass, least, np.minimum(most, 1 / here), ratio))
    return found


def rows_of(limits):
    """The promise as rows v >= 0, without those that hold for every v."""
    rows = []
    for lifts, mass, least, most, ratio in limits:
        rows += [*(np.outer(most, mass) - lifts), *(lifts - np.outer(least, mass))]
        for lift in lifts if ratio else []:
            rows += [*(ratio * lifts - lift)]
    rows = np.array(rows).reshape(-1, len(mass))
    return rows[(rows < 0).any(1)]


# ---------------------------------------------------------------------------- the least cost


def costs_of(file, proof):
    """d(x, y); of rows as the proof says what their cells cost."""
    symbols, objective = file["useful"]["symbols"], file["objective"]
    if objective["name"] == "costs":
        return numbers(proof["costs"])
    texts = np.array(symbols, dtype=object)
    if "published" in file:
        cost = np.zeros((len(symbols), len(symbols)))
        for part in proof["cells"]:
            cells = texts[:, file["useful"]["columns"].index(part["column"])]
            if part.get("places"):
                places = np.array([part["places"][cell] for cell in cells])
                cost += abs(places[:, None] - places)
            else:
                cost += part["weight"] * (cells[:, None] != cells)
        return cost
    if objective["name"] == "truth":
        return 1 - np.eye(len(symbols))
    if objective["name"] != "distance" or any(file["useful"].get("bins") or []):
        sys.exit("this program does not know the costs of this file")
    places = numbers(texts[:, 0])
    exponent = 2 if objective["distance"] == "squared" else 1
    return abs(places[:, None] - places) ** exponent


def frequencies(file, names, p_x):
    """q_y: those of the table, of rows those of the channel's own outputs."""
    if "published" not in file:
        return p_x
    rows = dense(file.get("rows"), file.get("sparse_rows"), len(file["outputs"]))
    shares = rows / rows.sum(1, keepdims=True)
    found = np.zeros(len(p_x))
    for output, share in zip(file["outputs"], p_x @ shares, strict=True):
        found[names.index(output)] += share
    return found


def sides_of(proof, limits, members):
    """What the proof takes off d(x, y), but for a constant of every output y."""
    if "sides" in proof:
        return np.array(proof["sides"])
    sides, first = np.zeros((len(members), len(members))), 0
    for lifts, mass, least, most, _ in limits:
        of_one = slice(first, first + len(lifts))
        first += len(lifts)
        if proof["lifts"]:
            lam = np.array(proof["lifts"])[of_one][:, members]
            ends = np.where(lam > 0, least[:, None], most[:, None])
            sides += lifts.T @ lam - np.outer(mass, (lam * ends).sum(0))
        if proof["ratios"]:
            sides += lifts.T @ np.array(proof["ratios"])[of_one][:, members]
    return sides


def least_cost(file, proof, counts, sets):
    """sum_x P(x) (stay E(x, x) + (1 - stay) min_y E(x, y)) + sum_y f_y q_y."""
    objective = file["objective"]
    names = [", ".join(symbol) for symbol in file["useful"]["symbols"]]
    p_x, prices = counts.sum(0) / counts.sum(), np.array(proof["prices"])
    q = frequencies(file, names, p_x) if objective["keep_frequencies"] else p_x
    if not objective["keep_frequencies"] and any(prices):
        sys.exit("prices of frequencies, which are free")
    costs, bound = costs_of(file, proof) - prices, prices @ q
    if "averages" in proof:
        import certificate_averages

        added, spent = certificate_averages.added_to_costs(file, proof, counts)
        costs, bound = costs + added, bound - spent
    closed = np.zeros(costs.shape, bool)
    closed[:, q == 0] = True
    # Pairs of rows are forbidden by cells; without them the bound holds as well.
    for x, y in [] if "published" in file else objective["forbid"]:
        closed[names.index(x), names.index(y)] = True
    stay = numbers([objective["stay"].get(name, "0") for name in names])
    for members in strata_of(file):
        limits = limits_of(file, counts, members, sets.left)
        sides = sides_of(proof, limits, members)
        # No output may have more taken off than its lifts allow.
        rows = rows_of(limits)
        for side in sides.T:
            side -= sets.allowed(rows).lowest(side)[0]
        here = np.ix_(members, members)
        left = costs[here] - sides
        least = np.where(closed[here], math.inf, left).min(1)
        paid = stay[members] * left.diagonal() + (1 - stay[members]) * least
        bound += p_x[members] @ paid
    return bound


# ------------------------------------------------------------- information, tasks and queries


def entropy(z):
    """The terms of the entropy, in nats."""
    return -z * np.log(np.maximum(z, 1e-300))


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
    matrix = []
    for i in range(first):
        for j in range(i, n):
            matrix.append(np.isin(np.arange(n), order[i : j + 1]))
    return np.array(matrix, float)


def of_posteriors(file, proof, counts, sets, name, stated):
    """Whether the prices of a file prove one of its figures."""
    p_x, prices = counts.sum(0) / counts.sum(), np.array(proof["prices"])
    n = len(p_x)
    if file.get("given"):
        return beside_given(file, prices, counts, sets, stated)
    rows = np.zeros((0, n))
    if not proof.get("alone"):
        rows = rows_of(limits_of(file, counts, np.arange(n), sets.left))
    allowed, charges, spent = sets.allowed(rows), np.zeros(0), 0.0
    if file.get("averages"):
        import certificate_averages

        found = certificate_averages.charged(file, proof, counts, rows)
        allowed, charges, spent = found
    # z = matrix v, without the leakages at the end of v.
    matrix = np.eye(n, n + len(charges))
    if proof["kind"] == "queries":
        queries, inverse = queries_of(file, proof), np.array(proof["inverse"])
        inverse = (inverse + inverse.T) / 2
        least = stated + np.square(queries @ p_x).sum()
        if least <= np.square(queries).sum(0) @ p_x:
            # It is the variance of X itself.
            return True
        most = np.sum((queries @ inverse) * queries) ** 2 / least
        matrix = (queries @ inverse / p_x) @ matrix
        cost, wanted = np.append(prices, charges), prices @ p_x + spent - most
        return not allowed.falls_below(wanted, cost, matrix, lambda z: -z * z)
    whole, left = entropy(p_x).sum(), 1 - stated
    if proof["kind"] == "task":
        task = np.array(proof["task"], float)
        task /= task.sum(0)
        whole = entropy(task @ p_x).sum()
        left = 1 - stated * (1 - p_x @ entropy(task).sum(0) / whole)
        matrix = task @ matrix
    wanted = left * whole - prices @ p_x + spent
    if name == "lower_bound":
        wanted = certificate_averages.least_leakage(file, proof, counts, stated)
        wanted += (1 - file["averages"][0]["keep"]) * whole - prices @ p_x
    return not allowed.falls_below(wanted, np.append(-prices, charges), matrix, entropy)


def beside_given(file, prices, counts, sets, stated):
    """The same of information beside given columns: no posterior of any stratum costs less than
    nothing, and the prices sum to the bound.
    """
    if BOUNDS["entropy"] not in file["certificate"]:
        sys.exit("this program does not know tasks and queries beside given columns")
    p_x, known = counts.sum(0) / counts.sum(), 0.0
    for members in strata_of(file):
        known += entropy(p_x[members].sum())
        rows = rows_of(limits_of(file, counts, members, sets.left))
        identity = np.eye(len(members))
        if sets.allowed(rows).falls_below(0.0, -prices[members], identity, entropy):
            return False
    return prices @ p_x >= (1 - stated) * (entropy(p_x).sum() - known) - CLOSE


# ----------------------------------------------------------------------------------- files


class OneTable:
    """The promise of a file about its own table."""

    left = (1,)

    def allowed(self, rows):
        """The posteriors that keep the rows of the promise."""
        return Allowed(rows)


def check(path, earlier):
    """Print what is proven of a file; whether it is what the file states."""
    file = json.loads(Path(path).read_text(encoding="utf-8"))
    proof = (file.get("certificate") or {}).get("proof")
    if proof is None or not {"joint", "sparse_joint"} & file.keys():
        sys.exit(f"{path}: no proof in this file")
    if [one["sha256"] for one in earlier] != file.get("after", []):
        sys.exit(f"{path}: give the releases it was designed after (--after)")
    width = len(file["useful"]["symbols"])
    counts = dense(file.get("joint"), file.get("sparse_joint"), width)
    sets = OneTable()
    if earlier or file.get("confidence"):
        import certificate_sets

        sets = certificate_sets.sets_of(file, counts, earlier)
    figures, names = {**file["certificate"], **file["utility"]}, [BOUNDS[proof["kind"]]]
    if file.get("averages") and file["averages"][0].get("keep") is not None:
        figures, names = figures | file["averages"][0], [*names, "lower_bound"]
    answers = []
    for name in names:
        stated = figures[name]
        if proof["kind"] == "costs":
            least = least_cost(file, proof, counts, sets)
            answers.append(least >= stated - CLOSE * max(1.0, stated))
        else:
            answers.append(of_posteriors(file, proof, counts, sets, name, stated))
        is_not = "is" if answers[-1] else "is NOT"
        print(f"{path}: {name} {stated:.9f} {is_not} proven for every private channel")
    return all(answers)


BOUNDS = {
    "costs": "cost_lower_bound",
    "entropy": "upper_bound_nmi",
    "task": "task_upper_bound",
    "queries": "variance_lower_bound",
}


if __name__ == "__main__":
    paths, after = sys.argv[1:], []
    if "--after" in paths:
        split = paths.index("--after")
        paths, after = paths[:split], paths[split + 1 :]
    earlier = [json.loads(Path(path).read_text(encoding="utf-8")) for path in after]
    answers = [check(path, earlier) for path in paths]
    sys.exit(0 if all(answers) else 1)
