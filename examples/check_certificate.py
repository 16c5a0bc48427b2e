"""Check the bounds of channel files by their certificates, without mechdesign.

    python examples/check_certificate.py CHANNEL.json .. [--after EARLIER.json ..]

docs/reference/certificates.md has the mathematics. The least cost is computed in fractions. Other
bounds follow from the vertices of the posteriors that the promise allows, which are listed in
doubles, so they are good to 1e-8. A file of a design after others, or for a set of populations, needs
`certificate_sets.py` beside this file.
"""

import json
import math
import sys
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import numpy as np

CLOSE = 1e-9  # of 1 or of the bound, by which a stated one may differ
CLOSE_IN_DOUBLES = 1e-8
TINY = 1e-9  # of rounding in a vertex
MOST_SYSTEMS = (
    20_000_000  # of equations, each of which may have a vertex as its solution
)
AT_ONCE = 20_000
MOST_ROUNDS = 60
MOST_NEW = 12  # tangents of a round


def exact(values):
    """Numbers or texts as an array of fractions."""
    return np.vectorize(Fraction, otypes=[object])(np.array(values, dtype=object))


def power(exponent, side):
    """e^exponent, rounded up (side 1) or down (-1) by more than the error of `exp`."""
    return Fraction(math.exp(exponent)) * (1 + side * Fraction(1, 2**50))


# ------------------------------------------------------------------------ table and promise


def dense(rows, pairs, width):
    """A matrix of integers from its rows, or from pairs of a place and an entry."""
    if rows is None:
        rows = [[0] * width for _ in pairs]
        for row, of_row in zip(rows, pairs, strict=True):
            for place, entry in zip(of_row[::2], of_row[1::2], strict=True):
                row[place] = entry
    return exact(rows)


def chances(channel):
    """W(y|x), a row for each symbol."""
    outputs = len(channel["outputs"])
    rows = dense(channel.get("rows"), channel.get("sparse_rows"), outputs)
    totals = channel.get("totals") or [channel["denominator"]] * len(rows)
    return rows / exact(totals)[:, None]


def budgets(notion):
    """The least lift, the largest one, and the largest quotient of two; None is no limit."""
    name, eps = notion["name"], notion.get("epsilon")
    if name == "ldp":
        return Fraction(0), None, power(eps, 1)
    if name not in ("alip", "lip", "max-lift", "min-lift"):
        sys.exit(f"this program does not know the promise {name}")
    same = eps if name == "lip" else "inf"
    return *lift_range(notion.get("eps_l", same), notion.get("eps_u", same)), None


def lift_range(eps_l, eps_u):
    """The least and the largest lift, rounded outwards."""
    least = Fraction(0) if eps_l == "inf" else power(-eps_l, -1)
    return least, None if eps_u == "inf" else power(eps_u, 1)


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
        rows = np.array(list(added.values()))
        secrets.append((column, [[value] for value in added], rows))
    return secrets


def strata_of(file):
    """The symbols of each combination of given cells; all together without given columns."""
    places = [file["useful"]["columns"].index(name) for name in file.get("given", [])]
    strata = {}
    for x, symbol in enumerate(file["useful"]["symbols"]):
        strata.setdefault(tuple(symbol[place] for place in places), []).append(x)
    return list(strata.values())


def prior_of(file, members):
    """The symbols whose records the lifts in a stratum are measured against: its own, or all."""
    if file.get("promise") == "relative":
        return members
    return list(range(len(file["useful"]["symbols"])))


def limits_of(file, counts, members, prior):
    """(lifts, mass, least, most, ratio) of each secret: least <= lifts v / mass v <= most.

    `members` are the symbols that v is over, and `prior` those that lifts are measured against.
    """
    low, high, ratio = budgets(file["notion"])
    found = []
    for column, values, rows in secrets_of(file, counts):
        shares = rows[:, prior].sum(1) / rows[:, prior].sum()
        here = shares > 0
        lifts = rows[:, members] / rows[:, members].sum(0)
        lifts /= np.where(here, shares, 1)[:, None]
        own = {
            (one.get("column"), *one["symbol"]): one for one in file.get("budgets", [])
        }
        least, most = [], []
        for value, share in zip(values, shares, strict=True):
            a, b = low, high
            if one := own.get((column, *value)):
                a, b = lift_range(one["eps_l"], one["eps_u"])
            # No lift is above 1 / P(s).
            least.append(a if share else Fraction(0))
            most.append(0 if not share else 1 / share if b is None else b)
        mass = exact([1] * len(members))
        found.append((lifts, mass, np.array(least), np.array(most), ratio))
        sharpen(found[-1], shares)
    return found


def sharpen(limits, shares):
    """Limit the lifts of every value by those of the inputs, and of the others: their mean over
    P(s) is 1.
    """
    lifts, _, least, most, ratio = limits
    here = shares > 0
    p, lifts, a, b = shares[here], lifts[here], least[here], most[here]
    a, b = np.maximum(a, lifts.min(1)), np.minimum(b, lifts.max(1))
    if ratio is not None:
        a = np.maximum(a, 1 / (p + ratio * (1 - p)))
        b = np.minimum(b, ratio / (ratio * p + 1 - p))
    least[here] = np.maximum(a, (1 - p @ b) / p + b)
    most[here] = np.minimum(b, (1 - p @ a) / p + a)


# ---------------------------------------------------------------------------- the least cost


def costs_of(file, proof):
    """d(x, y), exactly; of rows as the proof says what their cells cost."""
    symbols, objective = file["useful"]["symbols"], file["objective"]
    if objective["name"] == "costs":
        return exact(proof["costs"])
    texts = np.array(symbols, dtype=object)
    if "published" in file:
        cost = exact(np.zeros((len(symbols), len(symbols)), int))
        for part in proof["cells"]:
            cells = texts[:, file["useful"]["columns"].index(part["column"])]
            if part.get("places"):
                places = exact([part["places"][cell] for cell in cells])
                cost += abs(places[:, None] - places)
            else:
                cost += Fraction(part["weight"]) * (cells[:, None] != cells)
        return cost
    if objective["name"] == "truth":
        return exact(1 - np.eye(len(symbols), dtype=int))
    if objective["name"] != "distance" or any(file["useful"].get("bins") or []):
        sys.exit("this program does not know the costs of this file")
    numbers = exact(texts[:, 0])
    return abs(numbers[:, None] - numbers) ** (
        2 if objective["distance"] == "squared" else 1
    )


def frequencies(file, p_x):
    """q_y: those of the table, of rows those of the channel's own outputs."""
    if "published" not in file:
        return p_x
    names = [", ".join(symbol) for symbol in file["useful"]["symbols"]]
    found = exact([0] * len(p_x))
    for output, share in zip(file["outputs"], p_x @ chances(file), strict=True):
        found[names.index(output)] += share
    return found


def named(file, text):
    """Which rows a text means: a whole one, COLUMN=CELL, or a cell of any column."""
    symbols, columns = file["useful"]["symbols"], file["useful"]["columns"]
    column, _, cell = text.partition("=")
    rows = [", ".join(symbol) == text for symbol in symbols]
    if not any(rows) and column in columns:
        rows = [symbol[columns.index(column)] == cell for symbol in symbols]
    if not any(rows):
        rows = [text in symbol for symbol in symbols]
    return np.array(rows)


def allowed_pairs(file):
    """Which y may be released for x, by the conditions of the design."""
    symbols, objective = file["useful"]["symbols"], file["objective"]
    allowed = np.full((len(symbols), len(symbols)), True)
    for x, y in objective["forbid"]:
        pairs = np.outer(named(file, x), named(file, y))
        if x != y:
            # A row with both cells may stay.
            np.fill_diagonal(pairs, False)
        allowed &= ~pairs
    for cells in objective.get("never", []):
        parts = [named(file, f"{column}={cell}") for column, cell in cells.items()]
        allowed[:, np.all(parts, axis=0)] = False
    return allowed


def least_cost(file, proof, counts, sets):
    """sum_x P(x) (stay E(x, x) + (1 - stay) min_y E(x, y)) + sum_y f_y q_y, in fractions."""
    objective, symbols = file["objective"], file["useful"]["symbols"]
    names = [", ".join(symbol) for symbol in symbols]
    p_x, prices = counts.sum(0) / counts.sum(), exact(proof["prices"])
    q = frequencies(file, p_x) if objective["keep_frequencies"] else p_x
    if not objective["keep_frequencies"] and any(prices):
        sys.exit("prices of frequencies, which are free")
    added, spent = averages_of(file, proof, counts)
    reduced = costs_of(file, proof) - prices + added
    allowed = allowed_pairs(file)
    allowed[:, q == 0] = False
    stay = exact([objective["stay"].get(name, "0") for name in names])
    bound = prices @ q - spent
    for members in strata_of(file):
        here = np.ix_(members, members)
        prior = prior_of(file, members)
        if "sides" in proof:
            left = reduced[here] - sets.taken_by_sides(file, proof, counts)
        else:
            limits = (sets or sys.modules[__name__]).limits_of(
                file, counts, members, prior
            )
            left = reduced[here] - taken_off(limits, proof, members)
        least = np.where(allowed[here], left, math.inf).min(1)
        bound += p_x[members] @ (
            stay[members] * left.diagonal() + (1 - stay[members]) * least
        )
    return bound


def taken_off(limits, proof, members):
    """What the multipliers take off d(x, y); its mean over the inputs of an output is not negative."""
    rows = sum(len(one[0]) for one in limits)
    none = exact(np.zeros((rows, len(proof["prices"])), int))
    lam = (
        exact(proof["lifts"]) if proof["lifts"] else none
    )  # none where averages stand alone
    rho = exact(proof["ratios"]) if proof["ratios"] else none
    if not lam.shape == rho.shape == none.shape:
        sys.exit("multipliers of another table")
    taken, first = 0, 0
    for lifts, mass, least, most, ratio in limits:
        of_one = slice(first, first + len(lifts))
        first += len(lifts)
        here, compared = lam[of_one, members], rho[of_one, members]
        paid, gained = np.maximum(compared, 0).sum(0), -np.minimum(compared, 0).sum(0)
        if (gained > (paid / ratio if ratio else 0)).any():
            sys.exit("multipliers of quotients that prove nothing")
        ends = np.where(here > 0, least[:, None], most[:, None])
        taken = (
            taken + lifts.T @ (here + compared) - np.outer(mass, (here * ends).sum(0))
        )
    return taken


def averages_of(file, proof, counts):
    """What average budgets add to d(x, y), sum_g u_gy F_g(x) - c_y, and what they cost at most."""
    added, spent = 0, Fraction(0)
    for average, charge in zip(
        file.get("averages", []), proof.get("averages", []), strict=True
    ):
        price, slopes = Fraction(charge["price"]), exact(charge["slopes"])
        functions, known = functions_of(average, counts)
        excess = [
            largest_excess(average["measure"], u, price, counts) for u in slopes.T
        ]
        added = added + functions.T @ slopes - np.array(excess)
        spent += price * (budget_of(average) - known)
    return added, spent


def budget_of(average):
    """The budget in the unit of the functions."""
    if average["measure"] == "maximal-leakage":
        return power(average["budget"], 1) - 1
    return Fraction(average["budget"])


def functions_of(average, counts):
    """F_g(x), a row for each secret or guess, and what guesses gain without a release."""
    given_x, p_s = counts / counts.sum(0), counts.sum(1) / counts.sum()
    if average["measure"] == "maximal-leakage":
        return given_x / p_s[:, None], 0
    if average["measure"] not in ("guess", "gain"):
        return given_x, 0
    gains = exact(average.get("gains") or np.eye(len(counts), dtype=int))
    best = gains[np.argmax(gains @ p_s)]
    return (gains - best) @ given_x, best @ p_s


def largest_excess(measure, u, price, counts):
    """c: the largest sum_g u_g F_g - price L over all outputs, or more."""
    if measure in ("maximal-leakage", "guess", "gain"):
        if min(u) < 0 or sum(u) > price:
            sys.exit("slopes of an average that prove nothing")
        return sum(u) if measure == "maximal-leakage" else Fraction(0)
    p_s, most = counts.sum(1) / counts.sum(), max(u)
    mean = p_s @ u
    if measure == "tv":
        return mean + p_s @ np.maximum(0, most - price - u)
    if min(u) == most:
        return most
    if not price:
        sys.exit("slopes of an average that prove nothing")
    if measure == "chi2":
        return mean + p_s @ (u - mean) ** 2 / (4 * price)
    # price log(sum p e^(u / price)); a logarithm of z <= 1 is below log(z) + 2^-50 + 2^-50 |log z|.
    inside = sum(
        p * power(float((a - most) / price), 1) for p, a in zip(p_s, u, strict=True)
    )
    logarithm = Fraction(math.log(inside))
    return most + price * (logarithm + Fraction(1, 2**48) * (1 + abs(logarithm)))


# ------------------------------------------------------------------- one pricing by vertices


def promise_rows(limits):
    """The promise as rows v <= 0; those without a positive entry hold for every v."""
    rows = []
    for lifts, mass, least, most, ratio in limits:
        rows += [*(lifts - np.outer(most, mass)), *(np.outer(least, mass) - lifts)]
        for s, row in enumerate(lifts if ratio is not None else []):
            rows += [*(row - ratio * np.delete(lifts, s, 0))]
    rows = np.array(rows, float)
    return rows[(rows > 0.0).any(1)]


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
    systems = sum(
        math.comb(n, r) * math.comb(len(functions), r + more - 1) for r in sizes
    )
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
                inside = (solved[:, :r] >= -TINY).all(1) & (
                    solved @ here.T <= TINY
                ).all(1)
                v = np.zeros((inside.sum(), n))
                v[:, support] = np.maximum(solved[inside, :r], 0.0)
                if len(v):
                    yield v, solved[inside, r:]


def leakage_functions(average, counts, points):
    """Linear functions of v whose largest is what the average leaks; of mi and chi2, which are
    curved, tangents at posteriors of the secrets (k, m), which lie below.
    """
    name, p_s = average["measure"], (counts.sum(1) / counts.sum()).astype(float)
    functions = functions_of(average, counts)[0].astype(float)
    if name == "mi":
        return np.log(points / p_s) @ functions
    if name == "chi2":
        return (2 * points / p_s) @ functions - (points**2 / p_s).sum(1)[:, None] - 1
    if name == "tv":
        # The largest P(A|y) - P(A) of all sets A of secrets.
        sets = np.array(
            [[a >> s & 1 for s in range(len(p_s))] for a in range(2 ** len(p_s) - 1)]
        )
        return sets @ (functions - p_s[:, None])
    return functions - (name == "maximal-leakage")


def least_of(cost, rows, charges, counts, cuts=None):
    """The least cost of all allowed posteriors, with each average leakage at its price.

    `cuts` are the further rows that a posterior breaks, as a function.
    """
    charges = [(average, price) for average, price in charges if price]
    prices = np.array([price for _, price in charges])
    given_x = (counts / counts.sum(0)).astype(float)
    prior = (counts.sum(1) / counts.sum()).astype(float)
    points = np.vstack([prior, np.maximum(given_x.T, 1e-12), 0.5 * (given_x.T + prior)])
    for _ in range(MOST_ROUNDS):
        leakages = [
            leakage_functions(average, counts, points) for average, _ in charges
        ]
        blocks = [(v, cost(v) + t @ prices) for v, t in vertices(rows, leakages)]
        v, charged = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
        cheapest = np.argsort(charged)[:MOST_NEW]
        v, low = v[cheapest], charged[cheapest]
        touched = np.maximum(v @ given_x.T, 1e-12)
        true = cost(v)
        for average, price in charges:
            tangents = leakage_functions(average, counts, touched)
            true = true + price * (tangents @ v.T).max(0)
        broken = [cuts(one) for one in v] if cuts else []
        short = touched[low < true.min() - CLOSE_IN_DOUBLES]
        more = np.unique(np.vstack([points, short]), axis=0)
        if len(more) == len(points) and not (broken and len(broken[0])):
            break
        points, rows = more, np.unique(np.vstack([rows, *broken]), axis=0)
    return low[0]


def entropy(v):
    """Of every row, in nats."""
    return -(v * np.log(np.maximum(v, 1e-300))).sum(1)


def from_prices(file, proof, counts, sets):
    """What the prices prove of every figure in the file: pairs of its name and the bound."""
    averages = file.get("averages", [])
    charges = list(zip(averages, proof.get("leakages") or [], strict=True))
    known = [float(functions_of(average, counts)[1]) for average in averages]
    spent = sum(
        price * (float(budget_of(a)) - before)
        for (a, price), before in zip(charges, known, strict=True)
    )
    total = counts.sum()
    bounds, told, entropies = [], [], []
    # The strata of given columns have posteriors of their own; without them there is one.
    for members in strata_of(file):
        part = counts[:, members]
        p_x = (part.sum(0) / part.sum()).astype(float)
        prices = np.array(proof["prices"])[members]
        rows, cuts = np.zeros((0, len(members))), None
        if not proof.get("alone"):
            prior = prior_of(file, members)
            limits = (sets or sys.modules[__name__]).limits_of(
                file, counts, members, prior
            )
            rows = promise_rows(limits)
        if file.get("confidence"):
            rows, cuts = sets.rows_and_cuts(file, rows, p_x)
        pricing = rows, charges, part, cuts
        share = float(part.sum() / total)
        if proof["kind"] == "queries":
            queries = queries_of(file, proof, members)
            own = own_variance(queries, p_x)
            # Without a matrix no more is proven than the variance of the column itself.
            if proof["inverse"]:
                inverse = np.array(proof["inverse"])[np.ix_(members, members)]
                found = least_variance(queries, inverse, prices, p_x, spent, pricing)
                own = max(own, found)
            bounds.append(share * own)
            continue
        task = np.eye(len(p_x))
        if proof["kind"] == "task":
            task = np.array(proof["task"], float)[:, members]
            task /= task.sum(0)
        least = least_entropy(task, prices, p_x, pricing)
        whole = float(entropy((task @ p_x)[None])[0])
        entropies.append((least, whole))
        # What X itself tells, and any channel at most.
        told.append(share * (whole - p_x @ entropy(task.T)))
        bounds.append(min(share * (whole - least + spent), told[-1]))
    if proof["kind"] == "queries":
        return [("variance_lower_bound", sum(bounds))]
    if proof["kind"] == "task":
        return [("task_upper_bound", sum(bounds) / sum(told))]
    found = [("upper_bound_nmi", sum(bounds) / sum(told))]
    if averages and averages[0].get("keep") is not None:
        ((average, price),) = charges
        # Averages are over all strata, and stand beside none.
        ((least, whole),) = entropies
        leaked = max(0.0, least - (1 - average["keep"]) * whole) / (price or math.inf)
        if average["measure"] == "maximal-leakage":
            leaked = math.log1p(leaked)
        found.append(("lower_bound", leaked + known[0]))
    return found


def least_entropy(task, prices, p_x, pricing):
    """Of the task, with each average leakage at its price: the prices and their least reduced cost."""

    def cost(v):
        return entropy(v @ task.T) - v @ prices

    return prices @ p_x + least_of(cost, *pricing)


def least_variance(queries, inverse, prices, p_x, spent, pricing):
    """N times the variance of the queries, of which that of X itself is the least of all."""

    def missed(v):
        return v @ prices - np.square((v / p_x) @ inverse @ queries.T).sum(1)

    paid = prices @ p_x + spent - least_of(missed, *pricing)
    found = np.sum((queries @ inverse) * queries) ** 2 / paid if paid > 0 else 0.0
    return found - np.square(queries @ p_x).sum()


def own_variance(queries, p_x):
    """N times the total variance of the answers where every record is released as it is."""
    return (np.square(queries) @ p_x).sum() - np.square(queries @ p_x).sum()


def queries_of(file, proof, members):
    """The queries Q of some symbols, a row each: those of the proof, or named ones."""
    if "queries" in proof:
        return np.array(proof["queries"])
    symbols, name = file["useful"]["symbols"], file["provenance"]["mechanism"]
    n = len(members)
    if name == "frequencies":
        return np.eye(n)
    # Numbers are of one column; beside it there are given ones alone.
    given, columns = file.get("given", []), file["useful"]["columns"]
    (place,) = (i for i, column in enumerate(columns) if column not in given)
    try:
        numbers = [Fraction(symbols[x][place]) for x in members]
    except ValueError:
        # Texts, and bins, stand in the order of the table.
        numbers = range(n)
    order = sorted(range(n), key=lambda x: numbers[x])
    first = {"prefix": 1, "ranges": n}[name]
    spans = [(i, j) for i in range(first) for j in range(i, n)]
    matrix = np.zeros((len(spans), n))
    for row, (i, j) in zip(matrix, spans, strict=True):
        row[order[i : j + 1]] = 1.0
    return matrix


# ----------------------------------------------------------------------------------- files


def check(path, earlier):
    """Print what is proven of a file; whether it is what the file states."""
    file = json.loads(Path(path).read_text(encoding="utf-8"))
    proof = (file.get("certificate") or {}).get("proof")
    if proof is None or not {"joint", "sparse_joint"} & file.keys():
        sys.exit(f"{path}: no proof in this file")
    if "sides" in proof and not (earlier or file.get("confidence")):
        sys.exit(
            f"{path}: a promise on averages over secrets: `audit` checks the proof"
        )
    if [one["sha256"] for one in earlier] != file.get("after", []):
        sys.exit(f"{path}: give the releases it was designed after (--after)")
    width = len(file["useful"]["symbols"])
    counts = dense(file.get("joint"), file.get("sparse_joint"), width)
    sets = None
    if earlier or file.get("confidence"):
        from certificate_sets import Sets

        sets = Sets(sys.modules[__name__], earlier)
    close = CLOSE_IN_DOUBLES
    if proof["kind"] == "costs":
        found = [("cost_lower_bound", float(least_cost(file, proof, counts, sets)))]
        close = CLOSE if "sides" not in proof else close
    else:
        found = from_prices(file, proof, counts, sets)
    figures = {**file["certificate"], **file["utility"]}
    if file.get("averages"):
        figures |= file["averages"][0]
    answers = []
    for name, proven in found:
        stated, sign, word = figures[name], 1, "at least"
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
