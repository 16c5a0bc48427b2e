"""What noiseless privacy promises, with the corrections of theory.md (sections 6 and 9).

All of it follows from one number: K, the most outputs on a fibre, with log2 K <= epsilon. It holds
for product ranges: the data of one individual do not limit what the others' can be.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from mechdesign.core.errors import InputError
from mechdesign.nonstochastic.domains import exact_number
from mechdesign.nonstochastic.levels import epsilon_for


@dataclass(frozen=True)
class Guarantee:
    """One promise: `bound` in `unit`, with the theorem of Farokhi 2020 that it rests on."""

    name: str
    theorem: str
    bound: float
    unit: str
    meaning: str


def estimation_error(outputs: int, width: object, density: object = None, power: int = 2) -> Fraction:
    """Least mean |x_i - estimate|^p of anyone who knows all the others (Theorem 4, corrected).

    E >= rho_c mu^(p+1) / (2^p (p+1) K^p): in each of the K cells the best guess is the middle, and
    equal cells make the sum smallest. Reached by K equal cells under the uniform density.

    Parameters
    ----------
    outputs
        K.
    width
        mu, the length of the domain of x_i.
    density
        rho_c, the least value of the density of x_i given all the others (not of the joint density,
        as the paper has it); uniform, 1 / mu, by default.
    power
        p >= 1. The absolute moment: the signed one of odd order is zero for a symmetric error.

    Raises
    ------
    InputError
        If a value is not positive, or the density cannot be one (rho_c mu > 1).
    """
    mu = exact_number("width", width)
    if mu <= 0:
        raise InputError(f"width ({float(mu):g}) must be positive")
    rho = 1 / mu if density is None else exact_number("density", density)
    if not 0 < rho * mu <= 1:
        raise InputError(f"density ({float(rho):g}) must be positive and at most 1/width = {float(1 / mu):g}")
    if isinstance(outputs, bool) or not isinstance(outputs, int) or outputs < 1:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError(f"outputs ({outputs!r}) must be an integer of at least 1")
    if isinstance(power, bool) or not isinstance(power, int) or power < 1:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError(f"power ({power!r}) must be an integer of at least 1")
    return rho * mu ** (power + 1) / ((2 * outputs) ** power * (power + 1))


def guarantees(outputs: int, width: object = None) -> tuple[Guarantee, ...]:
    """The promises of a mechanism with at most `outputs` outputs on every fibre.

    Parameters
    ----------
    outputs
        K, from a certificate.
    width
        Length of the interval domain of one individual; adds the bound on the estimation error.
    """
    bits = epsilon_for(outputs)
    pair = 1.0 if outputs > 1 else -math.inf
    found = [
        Guarantee("leakage", "Theorem 1", bits, "bits", "non-stochastic leakage L0(Y;X_i), and so I* and L0s"),
        Guarantee("capacity", "Theorem 2", bits, "bits", "zero-error capacity of repeated releases, per release"),
        Guarantee("hypothesis test", "Theorem 3", bits, "bits", "performance of any test on x_i, the others known"),
        Guarantee(
            "test of two values", "sharper than Theorem 3", min(bits, pair), "bits",
            "performance of a test between two values of x_i: two outputs at most can tell",
        ),
        Guarantee("maximal leakage", "Theorem 5", bits, "bits", "stochastic maximal leakage under any prior"),
    ]  # fmt: skip
    if width is not None and exact_number("width", width) > 0:
        least = float(estimation_error(outputs, width, power=1))
        found.append(
            Guarantee(
                "estimation error", "Theorem 4, corrected", math.nextafter(least, 0.0), "units of the column",
                "least mean absolute error of any estimate of x_i, if x_i is uniform given the others",
            )
        )  # fmt: skip
    return tuple(found)


ASSUMPTIONS = (
    "each individual contributes one value to each answer; with more, budgets add (composition)",
    "the range was not taken from the data, and who is in the data and in which group is public",
    "any value of one individual is possible together with any values of the others",
)
"""Without these the guarantees do not hold; files and reports repeat them."""
