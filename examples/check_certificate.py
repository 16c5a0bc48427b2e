"""Check the bounds of channel files by their certificates, without mechdesign.

    python examples/check_certificate.py CHANNEL.json .. [--after EARLIER.json ..]

docs/reference/certificates.md has the mathematics. The least cost is computed here, in fractions and
with Python alone; only for a set of populations (--confidence) NumPy is needed, too. Bounds of other
kinds follow from the vertices of the posteriors that the promise allows: `certificate_vertices.py`
beside this file lists them with NumPy, in doubles, so they are good to 1e-8. Earlier releases that a
channel was designed after are given behind --after, in their order.
"""

import json
import math
import sys
from fractions import Fraction
from pathlib import Path

from certificate_file import dense_row, limits_of, power, table_of

CLOSE = 1e-9  # of 1 or of the bound, by which a stated one may differ
CLOSE_IN_DOUBLES = 1e-8


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
    added, spent = averages_of(file, proof, counts)
    bound -= spent
    places = [file["useful"]["columns"].index(name) for name in file.get("given", [])]
    strata = {}
    for x, symbol in enumerate(symbols):
        strata.setdefault(tuple(symbol[place] for place in places), []).append(x)
    for members in strata.values():
        relative = file.get("promise") == "relative"
        prior = members if relative else range(len(p_x))
        if "sides" in proof:
            taken = taken_by_sides(file, proof, counts)
        else:
            limits = limits_of(file, counts, earlier, members, prior)
            taken = taken_off(limits, proof, members, added)
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


def taken_by_sides(file, proof, counts):
    """The same for a set of populations: t_xy - m_y, with the least t_y v over the set as m_y."""
    from certificate_vertices import least_of_sides

    sides = [[Fraction(value) for value in row] for row in proof["sides"]]
    least = [Fraction(value) for value in least_of_sides(file, proof, counts)]
    return lambda x, y: sides[x][y] - least[y]


def averages_of(file, proof, counts):
    """What average budgets add to d(x, y), as a function, and what they cost at most.

    The function is sum_g u_gy F_g(x) - c_y of every average: at most its leakage at the price.
    """
    parts, spent = [], Fraction(0)
    charges = proof.get("averages", [])
    for average, charge in zip(file.get("averages", []), charges, strict=True):
        price = Fraction(charge["price"])
        slopes = [[Fraction(value) for value in row] for row in charge["slopes"]]
        functions, known = functions_of(average, counts)
        constants = [
            largest_excess(average["measure"], column, price, counts)
            for column in zip(*slopes, strict=True)
        ]
        parts.append((functions, slopes, constants))
        budget = Fraction(average["budget"])
        if average["measure"] == "maximal-leakage":
            budget = power(average["budget"], 1) - 1
        spent += price * (budget - known)

    def added(x, y):
        value = Fraction(0)
        for functions, slopes, constants in parts:
            for row, slope in zip(functions, slopes, strict=True):
                value += row[x] * slope[y]
            value -= constants[y]
        return value

    return added, spent


def functions_of(average, counts):
    """F_g(x), a row for each secret or guess, and what guesses gain without a release."""
    masses = [sum(column) for column in zip(*counts, strict=True)]
    sums, total = [sum(row) for row in counts], sum(masses)
    given_x = [
        [Fraction(count, mass) for count, mass in zip(row, masses, strict=True)]
        for row in counts
    ]
    if average["measure"] == "maximal-leakage":
        lifts = [
            [value * Fraction(total, part) for value in row]
            for row, part in zip(given_x, sums, strict=True)
        ]
        return lifts, 0
    if average["measure"] not in ("guess", "gain"):
        return given_x, 0
    m = range(len(counts))
    gains = [[Fraction(s == g) for s in m] for g in m]
    if average["measure"] == "gain":
        gains = [[Fraction(text) for text in row] for row in average["gains"]]
    best = max(
        gains, key=lambda row: sum(a * b for a, b in zip(row, sums, strict=True))
    )
    more = [[a - b for a, b in zip(row, best, strict=True)] for row in gains]
    known = sum(a * b for a, b in zip(best, sums, strict=True)) / total
    columns = list(zip(*given_x, strict=True))
    return [
        [sum(a * b for a, b in zip(row, column, strict=True)) for column in columns]
        for row in more
    ], known


def largest_excess(measure, u, price, counts):
    """c: the largest sum_g u_g F_g - price L over all outputs, or more."""
    total = sum(map(sum, counts))
    shares = [Fraction(sum(row), total) for row in counts]
    if measure in ("maximal-leakage", "guess", "gain"):
        if min(u) < 0 or sum(u) > price:
            sys.exit("slopes of an average that prove nothing")
        return sum(u) if measure == "maximal-leakage" else Fraction(0)
    mean, most = sum(p * a for p, a in zip(shares, u, strict=True)), max(u)
    if measure == "tv":
        beyond = [max(Fraction(0), most - price - a) for a in u]
        return mean + sum(p * b for p, b in zip(shares, beyond, strict=True))
    if min(u) == most:
        return most
    if not price:
        sys.exit("slopes of an average that prove nothing")
    if measure == "chi2":
        spread = sum(p * (a - mean) ** 2 for p, a in zip(shares, u, strict=True))
        return mean + spread / (4 * price)
    # price log(sum p e^(u / price)); a logarithm of z <= 1 is below log(z) + 2^-50 + 2^-50 |log z|.
    inside = sum(
        p * power(float((a - most) / price), 1) for p, a in zip(shares, u, strict=True)
    )
    logarithm = Fraction(math.log(inside))
    return most + price * (logarithm + Fraction(1, 2**48) * (1 + abs(logarithm)))


def taken_off(limits, proof, members, added):
    """What the multipliers take off d(x, y), which is never negative in an output, as a function."""
    lam = [[Fraction(value) for value in row] for row in proof["lifts"]]
    rho = [[Fraction(value) for value in row] for row in proof["ratios"]]
    rows = [(one, s) for one in limits for s in range(len(one.lifts))]
    if not lam:
        # Without a promise beside averages there are none.
        lam = [[Fraction(0)] * len(proof["prices"]) for _ in rows]
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
        value = -added(members[i], y)
        for number, (one, s) in enumerate(rows):
            multiplier, lift = lam[number][y], one.lifts[s][i]
            if multiplier:
                end = one.least[s] if multiplier > 0 else one.most[s]
                value += multiplier * (lift - end * one.mass[i])
            if rho and rho[number][y]:
                value += rho[number][y] * lift
        return value

    return taken


def check(path, earlier):
    """Print what is proven of a file; whether it is what the file states."""
    file = json.loads(Path(path).read_text(encoding="utf-8"))
    proof, counts = (file["certificate"] or {}).get("proof"), table_of(file)
    if proof is None or counts is None:
        sys.exit(f"{path}: no proof in this file")
    if [one["sha256"] for one in earlier] != file.get("after", []):
        sys.exit(f"{path}: give the releases it was designed after (--after)")
    close = CLOSE
    if proof["kind"] == "costs":
        bound = least_cost(file, proof, counts, earlier)
        found = [("cost_lower_bound", float(bound))]
        if "sides" in proof:
            close = CLOSE_IN_DOUBLES
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
