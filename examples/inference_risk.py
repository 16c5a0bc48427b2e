"""The inference attack of the package anonymeter on a released column, next to what is proven of every attack.

``python examples/inference_risk.py ORIGINAL.csv RELEASED.csv CHANNEL.json``, the two files with their records in the
same order. The attacker has half of the records with their sensitive values, guesses those of the other half from
the released column, and names the most frequent value for each label, which no attack on one column can beat but
for what the halves differ. Anonymeter (``pip install anonymeter``) needs an older numpy than mechdesign: give it an
environment of its own; this script needs nothing else.
"""

from __future__ import annotations

import json
import math
import sys

import pandas as pd
from anonymeter.evaluators import InferenceEvaluator


class MostFrequent:
    """Guesses the most frequent secret beside each label."""

    def __init__(self, known: pd.DataFrame, label: str, secret: str) -> None:
        self.label = label
        self.best = known.groupby(label)[secret].agg(lambda values: values.mode()[0])
        self.otherwise = known[secret].mode()[0]

    def predict(self, records: pd.DataFrame) -> pd.Series:
        """The guess for every record."""
        return records[self.label].map(self.best).fillna(self.otherwise)


def attack(labels: pd.Series, secrets: pd.Series) -> InferenceEvaluator:
    """Anonymeter's attack of one half on the other."""
    table = pd.DataFrame({"label": labels.to_numpy(), "secret": secrets.to_numpy()})
    table = table.sample(frac=1, random_state=1).reset_index(drop=True)
    known, targets = table.iloc[: len(table) // 2], table.iloc[len(table) // 2 :]
    return InferenceEvaluator(
        ori=targets,
        syn=known,
        aux_cols=["label"],
        secret="secret",
        n_attacks=len(targets),
        inference_model=MostFrequent(known, "label", "secret"),
    ).evaluate(n_jobs=1)


def main(original: str, released: str, file: str) -> None:
    """Print the success of the attack on the column as it was and as it is released, and the bounds."""
    with open(file, encoding="utf-8") as stream:
        channel = json.load(stream)
    (useful,), (secret,) = channel["useful"]["columns"], channel["sensitive"]["columns"]
    before, after = (pd.read_csv(path, dtype=str, keep_default_na=False) for path in (original, released))
    for what, labels in (("as it was", before[useful]), ("released", after[useful])):
        rate = attack(labels, before[secret]).results().attack_rate
        print(f"{useful} {what}: {secret} is guessed for {rate.value:.1%} +- {rate.error:.1%} of the records")
    joint, rows = channel["joint"], channel["rows"]
    total = sum(map(sum, joint))
    prior = max(map(sum, joint)) / total
    hits = sum(
        max(sum(n * row[y] for n, row in zip(counts, rows, strict=True)) for counts in joint)
        for y in range(len(channel["outputs"]))
    )
    print(f"without any release, naming the most frequent one: {prior:.1%}")
    print(f"the best guess from a label of this channel: {hits / (total * channel['denominator']):.1%}")
    most = prior * math.exp(channel["achieved"]["eps_u"])
    print(
        f"the most that any channel with this promise allows: {min(1.0, math.ceil(1000 * most) / 1000):.1%}"
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
