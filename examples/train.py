"""Train models on a released file: ``python train.py [--records N]``.

The income of the Adult data is protected, seven columns are released, and a model predicts from six
of them who is married. It learns from a file in one of three forms and is tested on people of
another file who were not released:

- untouched: the true cells;
- released: the released cells, as if they were true;
- posterior: the released cells as probabilities of the true ones (`mechdesign.analysis.row_posteriors`).

The last column is an attack: the AUC of a model that learns the income from this form of the file,
cross-validated on its own people. Set MECHDESIGN_DATA to the folder that holds adult/.
"""

from __future__ import annotations

import argparse
import math
from typing import Any

import adult_rows
import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_predict

import mechdesign as md
from mechdesign import analysis

TARGET = "married"
SENSITIVE = "income"
FEATURES = ("education", "occupation", "hours", "sex", "age", "race")
TIMES = (1.5, 2.0)
"""How many times as probable a row may make an income."""

SEED = 1
"""Of the draws: a real release takes its draws from a secret key."""


def cells(table: Any, symbols: dict[str, tuple[str, ...]]) -> dict[str, Any]:
    """One column of zeros and ones for each symbol of each column."""
    return {
        name: np.array(table[name].to_pylist())[:, None] == np.array(known)
        for name, known in symbols.items()
    }


def features(columns: dict[str, Any], names: tuple[str, ...] = FEATURES) -> Any:
    return np.hstack([columns[name].astype(float) for name in names])


def useful_auc(train: dict[str, Any], test: dict[str, Any], yes: int) -> float:
    """AUC of the target among untouched people; every record counts once as married and once as
    not, with the probabilities of both.
    """
    x, married = features(train), train[TARGET][:, yes].astype(float)
    model = LogisticRegression(max_iter=2_000)
    model.fit(
        np.vstack([x, x]),
        np.repeat([True, False], len(x)),
        sample_weight=np.concatenate([married, 1.0 - married]),
    )
    scores = model.predict_proba(features(test))[:, 1]
    return float(roc_auc_score(test[TARGET][:, yes], scores))


def attack_auc(columns: dict[str, Any], income: Any) -> float:
    """AUC of a guess of the income from everything in this form of the file."""
    model = HistGradientBoostingClassifier(random_state=0)
    x = features(columns, (TARGET, *FEATURES))
    guess = cross_val_predict(model, x, income, cv=5, method="predict_proba")
    return float(roc_auc_score(income, np.asarray(guess)[:, 1]))


def forms_of(table: Any, times: float) -> dict[str, dict[str, Any]]:
    """The file in its three forms, where every income is at most `times` as probable after a row is
    seen, and at least 1 / `times` as probable.
    """
    budget = math.log(times)
    design = md.design(
        table,
        md.ALIP(eps_l=budget, eps_u=budget),
        sensitive=SENSITIVE,
        release=(*FEATURES, TARGET),
        smallest_group=1,
        time_limit=30,
    )
    print(
        f"{table.num_rows:,} people; every income 1/{times:g} to {times:g} times as "
        f"probable: {'verified' if design.verified else 'NOT KEPT'}"
    )
    print(f"kept: {design.nmi:.1%} of the information in {1 + len(FEATURES)} columns")
    channel = design.channel
    released = channel.apply(table, insecure_seed=SEED)
    posterior = analysis.row_posteriors(channel, released)
    symbols = {name: posterior[name].symbols for name in (TARGET, *FEATURES)}
    return {
        "untouched": cells(table, symbols),
        "released": cells(released, symbols),
        "posterior": {name: posterior[name].matrix for name in symbols},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int)
    asked = parser.parse_args()
    table = adult_rows.read("adult.data", asked.records)
    others = adult_rows.read("adult.test", asked.records)
    income = np.array(table[SENSITIVE].to_pylist()) == ">50K"
    for times in TIMES:
        forms = forms_of(table, times)
        print("form        AUC of married  AUC of income")
        symbols = {name: _symbols(table, name) for name in (TARGET, *FEATURES)}
        test = cells(others, symbols)
        yes = symbols[TARGET].index("yes")
        for form, columns in forms.items():
            useful = useful_auc(columns, test, yes)
            attack = attack_auc(columns, income)
            print(f"{form:<10}  {useful:>14.3f}  {attack:>13.3f}")


def _symbols(table: Any, name: str) -> tuple[str, ...]:
    """The texts of a column, in the order of the channel."""
    return tuple(sorted(set(table[name].to_pylist())))


if __name__ == "__main__":
    main()
