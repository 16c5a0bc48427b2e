"""Appliances found in one household's released consumption (Figure 4 of Farokhi's 'Noiseless privacy').

The household reports its power every three seconds through a local quantiser: epsilon bits a reading, at most
floor(2^epsilon) different reports whatever it does. The adversary has learned the states of its appliances and
looks, for every report, for the states whose powers add up best (combinatorial optimisation, after Hart 1992).
Its success is the f-score of 'the appliance is on'. A second, stronger adversary has seen reports together with the
appliances, and says 'on' where it was on more often than not (learned).

Set MECHDESIGN_DATA to the folder that holds redd/. Quick by default (every fifth reading); ``--full`` uses all.
"""

from __future__ import annotations

import csv
import itertools
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from experiment import Table, data_folder, options, pyplot, show, write_csv

from mechdesign.nonstochastic.noiseless import design_quantizer
from mechdesign.nonstochastic.queries import identity_query, interval

APPLIANCES = ("fridge", "microwave", "dish washer")
"""The three that are ever on in these segments; the paper's socket and lights are not in the file."""

EPSILONS = tuple(range(1, 13))
LARGEST_POWER = 8_000
"""Watts; the largest reading of the file is 5,867."""

ON = 50.0
"""Watts above which an appliance counts as on; standing by they take up to 40."""

STATES = 3
"""States of an appliance, off included."""

REST_STATES = 4
"""States of everything else in the house, which the attack treats as one more appliance."""

BLOCK_SECONDS = 300
"""Blocks of five minutes are learned from and tested on in turn."""

NOTE = """\
Differences from the paper: three appliances instead of five (its socket and lights are not in the file); segments
without dates, so blocks of five minutes take turns (the dish washer runs once); and the attack is written out here
instead of NILMTK's, with everything else in the house as one more appliance. Without protection it is misled by
small loads, so that coarse reports can even help it; what a budget hides shows in 'learned'. Where nothing but the
three appliances is metered ('alone'), its success falls with the budget as the paper's does."""

ROUNDS = 50
"""Of Lloyd's algorithm; it stops by itself long before."""


def load(folder: Path, step: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """For each segment the appliances (readings, 3) and the whole house (readings,), in watts."""
    segments = []
    for k in range(3):
        path = folder / "redd" / f"redd_house1_{k}.csv"
        with path.open(newline="", encoding="utf-8") as stream:
            rows = list(csv.DictReader(stream))[::step]
        columns = []
        for name in APPLIANCES:
            columns.append([float(row[name]) for row in rows])
        house = np.array([float(row["main"]) for row in rows])
        segments.append((np.array(columns).T, house))
    return segments


def clusters(power: np.ndarray, number: int) -> np.ndarray:
    """Means of the clusters of these readings (Lloyd's algorithm, from quantiles)."""
    centres = np.quantile(power, (np.arange(number) + 0.5) / number)
    for _ in range(ROUNDS):
        nearest = np.abs(power[:, None] - centres).argmin(axis=1)
        moved = centres.copy()
        for k in range(number):
            members = power[nearest == k]
            # A cluster without readings stays where it is.
            if members.size:
                moved[k] = members.mean()
        if np.array_equal(moved, centres):
            break
        centres = moved
    return centres


def learn_states(power: np.ndarray) -> np.ndarray:
    """Off, and the clusters of the readings when it is on."""
    return np.array([0.0, *clusters(power[power > ON], STATES - 1)])


def disaggregate(released: np.ndarray, states: list[np.ndarray]) -> np.ndarray:
    """Power of each appliance: the combination of states whose sum is nearest to the report."""
    combinations = np.array(list(itertools.product(*states)))
    sums = combinations.sum(axis=1)
    order = np.argsort(sums, kind="stable")
    # Between two neighbouring sums the middle decides which one is nearer.
    middles = (sums[order][1:] + sums[order][:-1]) / 2
    nearest = order[np.searchsorted(middles, released)]
    # The last state is that of everything else in the house.
    return combinations[nearest, : len(APPLIANCES)]


def learn_and_guess(reports: np.ndarray, on: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Power (on: 2 ON) of each appliance, by most of the readings with the nearest report."""
    distinct, place = np.unique(reports, return_inverse=True)
    counts = np.bincount(place)
    times_on = [np.bincount(place, weights=column) for column in on.T]
    mostly_on = 2 * np.stack(times_on, axis=1) > counts[:, None]
    middles = (distinct[1:] + distinct[:-1]) / 2
    return np.where(mostly_on[np.searchsorted(middles, new)], 2 * ON, 0.0)


def f_scores(truth: np.ndarray, guess: np.ndarray) -> np.ndarray:
    """2 TP / (2 TP + FP + FN) of 'on' for each appliance; 0 where it is never found on rightly."""
    on = truth > ON
    guessed_on = guess > ON
    hits = (on & guessed_on).sum(axis=0)
    # TP + FN readings are on, and TP + FP are guessed to be.
    total = on.sum(axis=0) + guessed_on.sum(axis=0)
    return np.divide(2 * hits, total, out=np.zeros(truth.shape[1]), where=total > 0)


def blocks(
    segments: list[tuple[np.ndarray, np.ndarray]], step: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Every other block of five minutes to learn from, the ones between to test on."""
    parts = np.concatenate([parts for parts, _ in segments])
    main = np.concatenate([main for _, main in segments])
    place = np.concatenate([np.arange(len(main)) for _, main in segments])
    # A reading every three seconds, of which every `step`-th is used.
    learn = place * 3 * step // BLOCK_SECONDS % 2 == 0
    return parts[learn], main[learn], parts[~learn], main[~learn]


def attack(
    learned: np.ndarray,
    known: np.ndarray,
    truth: np.ndarray,
    reports: np.ndarray,
    states: list[np.ndarray],
) -> dict[str, float]:
    """Mean f-score of both adversaries, then the combinatorial one's for each appliance.

    Parameters
    ----------
    learned, known
        Power of the appliances in the readings to learn from, and the reports of these readings.
    truth, reports
        The same of the readings that are attacked.
    states
        The states of each appliance, in watts.
    """
    combined = f_scores(truth, disaggregate(reports, states))
    trained = f_scores(truth, learn_and_guess(known, learned > ON, reports))
    of_appliances = dict(zip(APPLIANCES, combined.tolist(), strict=True))
    return {
        "combinatorial": float(combined.mean()),
        "learned": float(trained.mean()),
        **of_appliances,
    }


def play(
    learned: np.ndarray,
    known: np.ndarray,
    truth: np.ndarray,
    power: np.ndarray,
    states: list[np.ndarray],
) -> Table:
    """One row for the plain readings and one for each budget."""
    plain = attack(learned, np.rint(known), truth, np.rint(power), states)
    rows: Table = [{"epsilon": "none", "outputs": "all", **plain}]
    for epsilon in EPSILONS:
        design = design_quantizer(identity_query(interval(0, LARGEST_POWER)), epsilon)
        known_reports = design.quantizer.release(known)
        reports = design.quantizer.release(power)
        scores = attack(learned, known_reports, truth, reports, states)
        outputs = design.certificate.outputs
        rows.append({"epsilon": epsilon, "outputs": outputs, **scores})
    return rows


def picture(folder: Path, rows: Table) -> None:
    """Figure 4: f-score against epsilon; dashed without protection."""
    plt = pyplot()
    if plt is None:
        return
    figure, axis = plt.subplots(figsize=(6, 4))
    for k, name in enumerate(("combinatorial", "learned", *APPLIANCES)):
        line = [row[name] for row in rows]
        axis.plot(
            EPSILONS,
            line[1:],
            marker="osv^D"[k],
            color=f"C{k}",
            label=name,
            linewidth=3 if k < 2 else 1,
        )
        axis.axhline(line[0], color=f"C{k}", linestyle="--", linewidth=0.8)
    axis.set(xlabel="epsilon (bits a reading)", ylabel="f-score", ylim=(0, 1))
    axis.legend()
    figure.tight_layout()
    figure.savefig(folder / "disaggregation.png", dpi=120)
    plt.close(figure)


def main(argv: Sequence[str] | None = None) -> Table:
    """Learn, release, attack, print, write."""
    arguments = options(__doc__, argv)
    step = 1 if arguments.full else 5
    learned, learned_main, truth, main_power = blocks(load(data_folder(), step), step)
    states = [learn_states(learned[:, k]) for k in range(len(APPLIANCES))]
    states.append(clusters(learned_main - learned.sum(axis=1), REST_STATES))
    print(
        f"{len(learned):,} readings to learn from, {len(truth):,} to test (the paper: 23 April to 21 May 2011)"
    )
    names = (*APPLIANCES, "everything else")
    for name, watts in zip(names, states, strict=True):
        listed = ", ".join(f"{power:.0f} W" for power in watts)
        print(f"{name}: {listed}")
    rows = play(learned, learned_main, truth, main_power, states)
    alone = play(
        learned,
        learned.sum(axis=1),
        truth,
        truth.sum(axis=1),
        [*states[:-1], np.zeros(1)],
    )
    for row, without in zip(rows, alone, strict=True):
        row["alone"] = without["combinatorial"]
    always = f_scores(truth, np.full_like(truth, 2 * ON))
    show(rows)
    print(f"Without any data: 'always on' scores {always.mean():.4g} on average.")
    print(NOTE)
    if arguments.out is not None:
        write_csv(arguments.out, "disaggregation", rows)
        picture(arguments.out, rows)
        print(f"table and picture are in {arguments.out}")
    return rows


if __name__ == "__main__":
    main()
