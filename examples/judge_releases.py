"""Six releases of the same six columns of UCI Adult, judged alike: ``python examples/judge_releases.py``.

The income is protected. Each release is written to a table, and `md.judge` attacks it, groups its
rows, and reads and learns from it. MECHDESIGN_DATA names the folder that holds adult/adult.data.

- *untouched*: the columns as they are;
- *channel*: no released row changes the probability of an income by more than a factor of
  exp(0.5), proven;
- *PRAM*: every cell stays with probability 0.3, and is drawn from its column's frequencies
  otherwise, which keeps these frequencies in the mean;
- *randomised response*: every cell is local-differentially private, together with budget 0.5, which
  implies the promise of the channel;
- *k-anonymity*: groups of at least five equal rows, by cutting the table at medians (Mondrian,
  LeFevre et al. 2006);
- *k and beta*: the same, and no group may make an income more than 1.6487 times as frequent.
"""

from __future__ import annotations

import sys
import time

import adult_rows
import numpy as np
import pandas as pd

import mechdesign as md

COLUMNS = ["education", "marital", "occupation", "hours", "age", "sex"]
SECRET = "income"
EPSILON = 0.5
K = 5
BETA = 0.6487
SEED = 1


def by_channel(table: pd.DataFrame) -> tuple[pd.DataFrame, md.Channel]:
    """The release of mechdesign, and its channel."""
    design = md.design(
        table, md.LIP(EPSILON), sensitive=SECRET, release=COLUMNS, time_limit=30
    )
    return design.channel.apply(table), design.channel


def by_pram(table: pd.DataFrame, stay: float) -> pd.DataFrame:
    """Cells that stay with this probability, else drawn from the frequencies of their column."""
    chance = np.random.default_rng(SEED)
    released = {}
    for name in COLUMNS:
        cells = table[name].to_numpy()
        drawn = chance.choice(cells, len(cells))
        released[name] = np.where(chance.random(len(cells)) < stay, cells, drawn)
    return pd.DataFrame(released)


def by_randomised_response(table: pd.DataFrame) -> pd.DataFrame:
    """Every cell stays, or becomes any other value of its column, with ratio exp(budget)."""
    chance = np.random.default_rng(SEED)
    ratio = np.exp(EPSILON / len(COLUMNS))
    released = {}
    for name in COLUMNS:
        codes, values = pd.factorize(table[name])
        others = len(values) - 1
        moved = (codes + chance.integers(1, others + 1, len(codes))) % len(values)
        stays = chance.random(len(codes)) < ratio / (ratio + others)
        released[name] = np.asarray(values)[np.where(stays, codes, moved)]
    return pd.DataFrame(released)


def by_groups(table: pd.DataFrame, beta: float | None) -> pd.DataFrame:
    """Groups of at least K records; each cell becomes the values of its group, as ``{a, b}``."""
    codes = {}
    names = {}
    for name in COLUMNS:
        codes[name], names[name] = pd.factorize(table[name], sort=True)
    secret, _ = pd.factorize(table[SECRET])
    overall = np.bincount(secret) / len(secret)

    def allowed(part: np.ndarray) -> bool:
        if len(part) < K:
            return False
        shares = np.bincount(secret[part], minlength=len(overall)) / len(part)
        return beta is None or bool((shares <= (1 + beta) * overall).all())

    def halves(part: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        # The column with most values first, as Mondrian does.
        width = {name: len(np.unique(codes[name][part])) for name in COLUMNS}
        for name in sorted(COLUMNS, key=lambda name: -width[name]):
            middle = np.median(codes[name][part])
            for low in (codes[name][part] <= middle, codes[name][part] < middle):
                if allowed(part[low]) and allowed(part[~low]):
                    return part[low], part[~low]
        return None

    released = {name: np.empty(len(table), object) for name in COLUMNS}
    waiting = [np.arange(len(table))]
    while waiting:
        part = waiting.pop()
        cut = halves(part)
        if cut is not None:
            waiting += cut
            continue
        for name in COLUMNS:
            values = names[name][np.unique(codes[name][part])]
            text = values[0] if len(values) == 1 else "{" + ", ".join(values) + "}"
            released[name][part] = text
    return pd.DataFrame(released)


def line(name: str, judgement: md.Judgement) -> str:
    """The main figures of a judgement."""
    secret = rarer(judgement)

    def figure(part: str, key: str) -> float:
        value = judgement.figure(part, key).released
        return np.nan if value is None else value

    learnt = [
        figure("models", f"area_{column}") for column in ("marital", "sex", "hours")
    ]
    return (
        f"{name:20} {figure('own_row', 'other_data_area'):.3f}"
        f"  {figure('own_row', f'other_data_surest_1_{secret}'):6.1%}"
        f"  {figure('own_row', f'other_data_least_5_{secret}'):6.1%}"
        f"  {judgement.agreement:6.1%}"
        f"  {figure('singling_out', 'own'):6.1%}"
        f"  {figure('groups', 'k'):5.0f}"
        f"  {figure('groups', 'beta'):6.2f}"
        f"  {figure('analysts', 'pair_variation'):6.3f}"
        f"  {' '.join(f'{area:.3f}' for area in learnt)}"
    )


def regulators_line(name: str, judgement: md.Judgement) -> str:
    """Singling out, linkability and inference, by our attacks and by anonymeter if it is there."""
    shown = [f"{name:20}"]
    for part, key in (
        ("singling_out", "own"),
        ("singling_out", "anonymeter"),
        ("linkability", "linked"),
        ("linkability", "anonymeter"),
        ("known_cells", "anonymeter"),
        ("own_row", f"other_data_surest_5_{rarer(judgement)}"),
    ):
        figures = [f for f in judgement.part(part).figures if f.key == key]
        shares = [f.released for f in figures if f.released is not None]
        shown.append(f"{shares[0]:8.1%}" if shares else "       -")
    return "  ".join(shown)


def rarer(judgement: md.Judgement) -> str:
    """The secret that fewer people have."""
    return min(judgement.shares, key=lambda name: judgement.shares[name])


def main(records: int | None = None) -> None:
    """Judge the six releases, of the first records or all."""
    table = adult_rows.read("adult.data", records).to_pandas()[[*COLUMNS, SECRET]]
    channel_release, channel = by_channel(table)
    releases = {
        "untouched": table[COLUMNS],
        "channel": channel_release,
        "PRAM": by_pram(table, 0.3),
        "randomised response": by_randomised_response(table),
        "k-anonymity": by_groups(table, None),
        "k and beta": by_groups(table, BETA),
    }
    # Of cells that are hardly ever true, the order alone would not tell whose they are.
    names = [f"record {number}" for number in range(len(table))]
    print(
        "                      own row -> income       cells  own    groups        pair   learnt on the release"
    )
    print(
        "file                  AUC   surest   least   as in  row   k      beta   varia-  marital / sex / hours"
    )
    print(
        "                               1 %     5 %   truth  alone                tion"
    )
    judgements: dict[str, md.Judgement] = {}
    for name, released in releases.items():
        start = time.process_time()
        judgement = md.judge(
            released.assign(id=names),
            original=table.assign(id=names),
            identity="id",
            sensitive=SECRET,
            channel=channel if name == "channel" else None,
            learn=["marital", "sex", "hours"],
        )
        judgements[name] = judgement
        print(line(name, judgement), flush=True)
        spent = time.process_time() - start
        print(f"{name}: judged in {spent:.0f} s of processor time", file=sys.stderr)
    print()
    print(
        "                      singling out        linkability         inference of the income"
    )
    print(
        "file                  own row anonymeter  joined  anonymeter  anonymeter  5 % surest"
    )
    for name, judgement in judgements.items():
        print(regulators_line(name, judgement))
    print(judgement.instruments)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
