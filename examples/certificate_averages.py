"""Budgets on average leakages: for `check_certificate.py`.

An average leaks the largest of some linear functions of a posterior, or above all of its tangents.
"""

import math
import sys

import numpy as np
from check_certificate import Allowed, numbers

BROKEN = 3e-9  # by which a leakage is below one of its tangents


def in_unit(average, value):
    """A budget, or a leakage, in the unit of the functions."""
    if average["measure"] == "maximal-leakage":
        return math.expm1(value)
    return value


def not_negative(price):
    """The price of a leakage; a negative one would pay for leaking."""
    if price < 0:
        sys.exit("a negative price of an average, which proves nothing")
    return price


def given(average, counts):
    """P(s|x), F_g(x) with a row for each secret or guess, and what guesses gain without a release."""
    given_x, p_s = counts / counts.sum(0), counts.sum(1) / counts.sum()
    if average["measure"] == "maximal-leakage":
        return given_x / p_s[:, None], 0.0
    if average["measure"] not in ("guess", "gain"):
        return given_x, 0.0
    gains = numbers(average.get("gains") or np.eye(len(counts)))
    best = gains[np.argmax(gains @ p_s)]
    return (gains - best) @ given_x, best @ p_s


# ------------------------------------------------------------------------------------- costs


def added_to_costs(file, proof, counts):
    """What budgets add to d(x, y), sum_g u_gy F_g(x) - c_y, and what they cost at most."""
    added, spent = 0.0, 0.0
    for average, charge in zip(file["averages"], proof["averages"], strict=True):
        price, slopes = not_negative(charge["price"]), np.array(charge["slopes"])
        functions, known = given(average, counts)
        excess = [
            largest_excess(average["measure"], u, price, counts) for u in slopes.T
        ]
        added = added + functions.T @ slopes - np.array(excess)
        spent += price * (in_unit(average, average["budget"]) - known)
    return added, spent


def largest_excess(measure, u, price, counts):
    """c: the largest sum_g u_g F_g - price L over all outputs, or more."""
    if measure in ("maximal-leakage", "guess", "gain"):
        if min(u) < 0 or sum(u) > price:
            sys.exit("slopes of an average that prove nothing")
        return sum(u) if measure == "maximal-leakage" else 0.0
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
    return most + price * math.log(p_s @ np.exp((u - most) / price))


# -------------------------------------------------------------------------------- posteriors


def leakage_functions(average, counts, posteriors):
    """Linear functions of v whose largest is what the average leaks; of mi and chi2, which are
    curved, tangents at posteriors of the secrets (k, m), which lie below.
    """
    name, p_s = average["measure"], counts.sum(1) / counts.sum()
    functions = given(average, counts)[0]
    if name == "mi":
        return np.log(posteriors / p_s) @ functions
    if name == "chi2":
        at = (posteriors**2 / p_s).sum(1)
        return (2 * posteriors / p_s) @ functions - at[:, None] - 1
    if name == "tv":
        # The largest P(A|y) - P(A) of all sets A of secrets.
        sets = [[a >> s & 1 for s in range(len(p_s))] for a in range(2 ** len(p_s) - 1)]
        return np.array(sets) @ (functions - p_s[:, None])
    return functions - (name == "maximal-leakage")


def charged(file, proof, counts, rows):
    """The allowed v with the leakages t behind them, t >= f v; their prices; and what all budgets
    cost at these.
    """
    averages, prices = file["averages"], np.array(proof["leakages"])
    not_negative(prices.min())
    given_x, p_s = counts / counts.sum(0), counts.sum(1) / counts.sum()
    known = [given(average, counts)[1] for average in averages]
    budgets = [in_unit(average, average["budget"]) for average in averages]
    spent = prices @ (np.array(budgets) - known)
    n, leaks = rows.shape[1], len(averages)

    def rows_above(posteriors):
        above = []
        for j, average in enumerate(averages):
            functions = leakage_functions(average, counts, posteriors)
            above += [np.append(-f, np.eye(leaks)[j]) for f in functions]
        return np.array(above)

    def more(v):
        """The tangents at a posterior that leaks more than its t."""
        found = rows_above(np.maximum(given_x @ v[:n], 1e-12)[None])
        return found[found @ v < -BROKEN]

    first = np.vstack([p_s, np.maximum(given_x.T, 1e-12)])
    rows = np.vstack(
        [np.hstack([rows, np.zeros((len(rows), leaks))]), rows_above(first)]
    )
    # No leakage is above the largest gain, or 1 / P(s).
    most = 1 / p_s.min() + max(abs(given(one, counts)[0]).max() for one in averages)
    return Allowed(rows, more, leaks, most), prices, spent


def least_leakage(file, proof, counts, stated):
    """What the stated leakage costs at its price."""
    average, (price,) = file["averages"][0], proof["leakages"]
    if stated > given(average, counts)[1] and not price:
        sys.exit("a leakage without a price, which proves nothing")
    return price * (in_unit(average, stated) - given(average, counts)[1])
