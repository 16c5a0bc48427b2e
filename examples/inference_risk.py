"""The inference attack of anonymeter (Giomi et al. 2023) on a released column, and its bounds.

``python examples/inference_risk.py ORIGINAL.csv RELEASED.csv CHANNEL.json``, the two files with
their records in the same order. The attacker has half of the records with their sensitive values,
guesses those of the other half from the released column, and names the most frequent value for each
label, which no attack on one column can beat but for what the halves differ. The last lines have
what is proven of every attack.

Anonymeter (``pip install anonymeter``) needs an older numpy than mechdesign: give it an environment
of its own; this script needs nothing else. Without it the same attack is made, and counted, here.
"""

from __future__ import annotations

import json
import math
import sys
from typing import Any

import pandas as pd

try:
    from anonymeter.evaluators import InferenceEvaluator
except ImportError:
    InferenceEvaluator = None

Z = 1.959963984540054
"""The normal quantile of 95 %."""


class MostFrequent:
    """Guesses the most frequent secret beside each label."""

    def __init__(self, known: pd.DataFrame, label: str, secret: str) -> None:
        self.label = label
        self.best = known.groupby(label)[secret].agg(lambda values: values.mode()[0])
        self.otherwise = known[secret].mode()[0]

    def predict(self, records: pd.DataFrame) -> pd.Series:
        """The guess for every record."""
        return records[self.label].map(self.best).fillna(self.otherwise)


def attack(labels: pd.Series, secrets: pd.Series) -> tuple[float, float]:
    """How often an attacker with half of the records guesses a secret of the other half.

    Returns the rate and the error of it, both by Wilson's interval.
    """
    table = pd.DataFrame({"label": labels.to_numpy(), "secret": secrets.to_numpy()})
    table = table.sample(frac=1, random_state=1).reset_index(drop=True)
    half = len(table) // 2
    known = table.iloc[:half]
    targets = table.iloc[half:]
    model = MostFrequent(known, "label", "secret")
    if InferenceEvaluator is not None:
        evaluator = InferenceEvaluator(
            ori=targets,
            syn=known,
            aux_cols=["label"],
            secret="secret",
            n_attacks=len(targets),
            inference_model=model,
        )
        rate = evaluator.evaluate(n_jobs=1).results().attack_rate
        return rate.value, rate.error
    hits = model.predict(targets) == targets["secret"]
    return wilson(float(hits.mean()), len(targets))


def wilson(share: float, n: int) -> tuple[float, float]:
    """The middle and half the width of Wilson's 95 % interval for a share of n attacks."""
    middle = (share + Z**2 / (2 * n)) / (1 + Z**2 / n)
    spread = math.sqrt(share * (1 - share) / n + Z**2 / (4 * n**2))
    return middle, Z / (1 + Z**2 / n) * spread


def best_guess(channel: dict[str, Any]) -> float:
    """The share of secrets that the best guess from a label of the channel names.

    It is sum_y max_s P(s, y), with P(s, y) = sum_x P(s, x) P(y|x) in integers.
    """
    hits = 0
    for y in range(len(channel["outputs"])):
        most = 0
        for counts in channel["joint"]:
            mass = 0
            for n, row in zip(counts, channel["rows"], strict=True):
                mass += n * row[y]
            most = max(most, mass)
        hits += most
    total = sum(map(sum, channel["joint"]))
    return hits / (total * channel["denominator"])


def main(original: str, released: str, file: str) -> None:
    """Print the success of the attack on the column as it was and as it is released, and bounds."""
    if InferenceEvaluator is not None:
        print("measured by anonymeter")
    else:
        print("measured here, without anonymeter")
    with open(file, encoding="utf-8") as stream:
        channel = json.load(stream)
    (useful,) = channel["useful"]["columns"]
    (secret,) = channel["sensitive"]["columns"]
    before = pd.read_csv(original, dtype=str, keep_default_na=False)
    after = pd.read_csv(released, dtype=str, keep_default_na=False)
    for form, labels in (("as it was", before[useful]), ("released", after[useful])):
        rate, error = attack(labels, before[secret])
        print(
            f"{useful} {form}: {secret} is guessed for {rate:.1%} +- {error:.1%} of the records"
        )
    sizes = [sum(counts) for counts in channel["joint"]]
    prior = max(sizes) / sum(sizes)
    print(f"without any release, naming the most frequent one: {prior:.1%}")
    print(f"the best guess from a label of this channel: {best_guess(channel):.1%}")
    # A promised upper bound on every lift bounds every posterior, and so every guess.
    most = min(1.0, prior * math.exp(float(channel["notion"]["eps_u"])))
    # Rounded up, because it is an upper bound.
    print(
        f"the most that any channel with this promise allows: {math.ceil(1000 * most) / 1000:.1%}"
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
