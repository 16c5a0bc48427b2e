"""The inference attack of anonymeter (Giomi et al. 2023) on a released column, next to what is proven of every attack.

``python examples/inference_risk.py ORIGINAL.csv RELEASED.csv CHANNEL.json``, the two files with their records in the
same order. The attacker has half of the records with their sensitive values, guesses those of the other half from
the released column, and names the most frequent value for each label, which no attack on one column can beat but
for what the halves differ. Anonymeter (``pip install anonymeter``) needs an older numpy than mechdesign: give it an
environment of its own; this script needs nothing else. Without it the same attack is made, and counted, here.
"""

from __future__ import annotations

import json
import math
import sys

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
    """How often one half of the records tells the secret of one of the other, and the error of that (Wilson)."""
    table = pd.DataFrame({"label": labels.to_numpy(), "secret": secrets.to_numpy()})
    table = table.sample(frac=1, random_state=1).reset_index(drop=True)
    known, targets = table.iloc[: len(table) // 2], table.iloc[len(table) // 2 :]
    model, n = MostFrequent(known, "label", "secret"), len(targets)
    if InferenceEvaluator is not None:
        how = {
            "aux_cols": ["label"],
            "secret": "secret",
            "n_attacks": n,
            "inference_model": model,
        }
        rate = (
            InferenceEvaluator(ori=targets, syn=known, **how)
            .evaluate(n_jobs=1)
            .results()
            .attack_rate
        )
        return rate.value, rate.error
    share = float((model.predict(targets) == targets["secret"]).mean())
    value = (share + Z**2 / (2 * n)) / (1 + Z**2 / n)
    return value, Z / (1 + Z**2 / n) * math.sqrt(
        share * (1 - share) / n + Z**2 / (4 * n**2)
    )


def main(original: str, released: str, file: str) -> None:
    """Print the success of the attack on the column as it was and as it is released, and the bounds."""
    print(
        "measured by anonymeter"
        if InferenceEvaluator is not None
        else "measured here, without anonymeter"
    )
    with open(file, encoding="utf-8") as stream:
        channel = json.load(stream)
    (useful,), (secret,) = channel["useful"]["columns"], channel["sensitive"]["columns"]
    before, after = (
        pd.read_csv(path, dtype=str, keep_default_na=False)
        for path in (original, released)
    )
    for what, labels in (("as it was", before[useful]), ("released", after[useful])):
        rate, error = attack(labels, before[secret])
        print(
            f"{useful} {what}: {secret} is guessed for {rate:.1%} +- {error:.1%} of the records"
        )
    joint, rows = channel["joint"], channel["rows"]
    total = sum(map(sum, joint))
    prior = max(map(sum, joint)) / total
    hits = sum(
        max(
            sum(n * row[y] for n, row in zip(counts, rows, strict=True))
            for counts in joint
        )
        for y in range(len(channel["outputs"]))
    )
    print(f"without any release, naming the most frequent one: {prior:.1%}")
    print(
        f"the best guess from a label of this channel: {hits / (total * channel['denominator']):.1%}"
    )
    most = min(1.0, prior * math.exp(float(channel["notion"]["eps_u"])))
    print(
        f"the most that any channel with this promise allows: {math.ceil(1000 * most) / 1000:.1%}"
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
