"""Promises about a table and promises about its population: draw samples of a known truth and look at the truth.

``python examples/population.py [PICTURE.png] [DRAWS]`` draws the picture (a minute or two for 20 draws).
"""

from __future__ import annotations

import math
import sys
from typing import Any

import adult
import numpy as np
from numpy.typing import NDArray

import mechdesign as md

Array = NDArray[np.float64]

SIZES = (1_000, 3_000, 10_000, 30_000, 100_000, 1_000_000)
EPSILON = 1.0


def sample(truth: Array, records: int, rng: np.random.Generator) -> tuple[md.Joint, list[int], int]:
    """Counts of so many records, the symbols of X that occur in them, and how many do not."""
    counts = rng.multinomial(records, truth.ravel()).reshape(truth.shape)
    seen = np.flatnonzero(counts.sum(axis=0)).tolist()
    joint = md.Joint.from_counts(counts[:, seen].tolist(), useful_labels=[str(x) for x in seen])
    return joint, seen, truth.shape[1] - len(seen)


def realised(channel: md.Channel, joint: md.Joint, seen: list[int], truth: Array) -> float:
    """The quotient of two lifts on the truth, as a budget; unseen symbols are released like unknown ones."""
    w = channel.matrix
    rows = np.tile(joint.p_x @ w, (truth.shape[1], 1))
    rows[seen] = w
    given_s = truth / truth.sum(axis=1, keepdims=True) @ rows
    return float(np.log(given_s.max(axis=0) / given_s.min(axis=0)).max())


def study(draws: int) -> list[dict[str, Any]]:
    """Realised budgets and kept information of plain and of confident designs for every size."""
    truth = adult.load().p
    rows: list[dict[str, Any]] = []
    for records in SIZES:
        rng = np.random.default_rng(records)
        for confidence in (None, 0.95):
            budgets: list[float] = []
            kept: list[float] = []
            for _ in range(draws):
                joint, seen, unseen = sample(truth, records, rng)
                more: dict[str, Any] = (
                    {} if confidence is None else {"confidence": confidence, "unseen": unseen}
                )
                result = md.design(joint, md.LDP(EPSILON), gap=5e-2, time_limit=2.0, **more)
                budgets.append(realised(result.channel, joint, seen, truth))
                kept.append(result.nmi)
            rows.append({"records": records, "confidence": confidence, "budgets": budgets, "kept": kept})
            held = np.mean(np.array(budgets) <= EPSILON)
            print(
                f"{records:9,d} records, {'plain' if confidence is None else '95 %':>5}: realised "
                f"{np.median(budgets):5.2f}, promise held in {held:4.0%}, kept {np.median(kept):.3f}"
            )
    return rows


def picture(rows: list[dict[str, Any]], path: str) -> None:
    """Realised budgets and kept information against the number of records."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, (above, below) = plt.subplots(2, 1, sharex=True, figsize=(7, 7))
    for confidence, name, colour in ((None, "plain design", "C1"), (0.95, "with 95 % confidence", "C0")):
        own = [row for row in rows if row["confidence"] == confidence]
        sizes = [row["records"] for row in own]
        ends = np.array([np.quantile(row["budgets"], (0.0, 0.5, 1.0)) for row in own])
        ends = np.minimum(ends, 10.0)
        above.fill_between(sizes, ends[:, 0], ends[:, 2], color=colour, alpha=0.2)
        above.plot(sizes, ends[:, 1], color=colour, label=name)
        below.plot(sizes, [np.median(row["kept"]) for row in own], color=colour, label=name)
    above.axhline(EPSILON, color="black", linestyle="--", label="promised")
    above.set(xscale="log", ylabel="budget on the truth (nats)", title="LDP 1 designed on samples of Adult")
    below.set(xlabel="records", ylabel="kept of H(X)", ylim=(0.0, 1.0))
    above.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    found = study(int(sys.argv[2]) if len(sys.argv) > 2 else 20)
    plain = [row for row in found if row["confidence"] is None]
    assert all(math.isfinite(b) for row in found for b in row["budgets"] if row not in plain)
    if len(sys.argv) > 1:
        picture(found, sys.argv[1])
        print(f"written to {sys.argv[1]}")
