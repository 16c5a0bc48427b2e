"""Guessing without probabilities: what a rounded height and weight tell, and what several releases add up to.

X is a height (cm) and a weight (kg), Y both rounded down to a grid; the adversary tries values until one is
right. All numbers are bits. Nothing but the standard ranges is needed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from mechdesign import nonstochastic as ns
from mechdesign.core.errors import InputError
from mechdesign.nonstochastic.hypothesis import finite_problem

HEIGHTS, WEIGHTS = range(150, 200), range(45, 125)


def release(step: int) -> ns.JointRange:
    """Height and weight, each rounded down to a multiple of `step`."""
    people = [(h, w) for h in HEIGHTS for w in WEIGHTS]
    return ns.JointRange.from_pairs(
        ((h, w), (h // step * step, w // step * step)) for h, w in people
    )


def bmi_class(person: tuple[int, int]) -> int:
    """0 below 18.5, 1 below 25, 2 below 30, 3 from 30 on (kg/m^2)."""
    height, weight = person
    return sum(weight * 10_000 >= limit * height**2 for limit in (18.5, 25, 30))


def obese(person: tuple[int, int]) -> bool:
    """Whether the body mass index is at least 30."""
    return bmi_class(person) == 3


def rounding_table() -> list[tuple[float, ...]]:
    """Leakages against the rounding step."""
    rows = []
    for step in (1, 2, 5, 10, 25):
        joint = release(step)
        rows.append(
            (
                step,
                joint.shape[1],
                ns.brute_force_leakage(joint, bmi_class),
                ns.brute_force_leakage(joint),
                ns.maximal_leakage(joint),
                ns.identifiable_epsilon(joint),
                float(finite_problem(joint, obese).epsilon or 0),
            )
        )
    return rows


def composed_maximal_leakage(parts: Iterable[ns.JointRange]) -> float:
    """L* of unrelated pairs (X_i, Y_i) taken together: log2(prod |X_i| - prod m_i + 1) (bits).

    m_i is the smallest conditional range of part i. This is Proposition 4 on the product; it is at
    least the sum of the parts' leakages, and often more, so the sum of Proposition 3(e) is no
    upper bound.

    Raises
    ------
    InputError
        If there is no part.
    """
    given = list(parts)
    if not given:
        raise InputError("a composition needs at least one joint range")
    return math.log2(
        math.prod(p.x_total for p in given) - math.prod(p.smallest_x for p in given) + 1
    )


def main() -> None:
    print(
        "  step  outputs  L(BMI class)    L(X)      L*  identifiable from  epsilon against 'obese'"
    )
    for step, outputs, told, whole, worst, identifiable, epsilon in rounding_table():
        print(
            f"{step:6g}{outputs:9g}{told:14.3f}{whole:8.3f}{worst:8.3f}{identifiable:19.3f}{epsilon:25.4f}"
        )

    part = ns.JointRange.from_pairs([(1, "a"), (2, "a"), (2, "b"), (3, "b")])
    both = composed_maximal_leakage([part, part])
    print(
        f"\ntwo unrelated releases, each with L* = {ns.maximal_leakage(part):g}: together L* = {both:.4f},"
    )
    print("more than the sum that Proposition 3(e) of the guessing paper claims")

    pentagon = ns.JointRange.from_pairs(
        (x, y % 5) for x in range(5) for y in (x, x + 1)
    )
    once, twice = ns.one_shot_code(pentagon), ns.one_shot_code(pentagon, uses=2)
    bounds = ns.capacity_bounds(pentagon)
    print(
        f"\nthe pentagon: {once.size} inputs are never confused in one use, {twice.size} pairs in two;"
    )
    print(
        f"zero-error capacity between {bounds.lower:.6f} and {bounds.upper:.6f} bits "
        f"(a code of {bounds.uses} uses, theta {bounds.theta:.6f}, cover {bounds.cover})"
    )
    hub = ns.JointRange.from_pairs((x, y) for y in range(1, 10) for x in (0, y))
    print(f"a hub and 9 leaves: L0s of the full range {ns.symmetric_leakage(hub):.4f}, yet the leaves carry "
          f"{ns.capacity_bounds(hub).lower:.4f}")  # fmt: skip


if __name__ == "__main__":
    main()
