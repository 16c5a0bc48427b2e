"""Sentences on average budgets; each says that an average is no promise for a record.

`average_texts` are for a design, a channel or a report: the budget, what the channel uses of it
(rounded up), and behind them the worst single lifts. `audit_average_texts` are the verdicts of an
audit. Example: "Average: the mutual information (nats) is at most 0.05; it is 0.0499."
"""

from __future__ import annotations

from collections.abc import Sequence

from mechdesign.auditing.averages import AverageVerdict
from mechdesign.auditing.verdict import Achieved
from mechdesign.channel.record import AverageBudget
from mechdesign.core.wording import at_least, at_most, percent_of
from mechdesign.report import wording

NAMES = {
    "mi": "mutual information (nats)",
    "tv": "total variation",
    "chi2": "chi2 information",
    "maximal-leakage": "maximal leakage (nats)",
    "guess": "success of the best guess",
    "gain": "expected gain of the best guess",
}
"""What is averaged over released values, by the name of the measure."""

NO_PROMISE_FOR_ONE = "An average promises nothing about one record"


def average_texts(
    averages: Sequence[AverageBudget],
    achieved: Achieved,
    sensitive: str,
    scope: str = "proven",
) -> tuple[str, ...]:
    """Budget and leakage of every average; the last text has the worst lifts, too.

    `scope` is that of the certificate of the design.
    """
    texts: list[str] = []
    for average in averages:
        text = f"Average: the {NAMES[average.measure]} is at most {_budget(average.budget)}"
        if average.achieved is not None:
            text += f"; it is {at_most(average.achieved)}"
        if average.keep is not None and average.lower_bound is not None:
            kept = percent_of(average.keep)
            text += f", and no such channel that keeps {kept} has less than "
            proof = wording.proof_text(scope)
            text += f"{at_least(average.lower_bound)} ({proof})"
        texts.append(f"{text}.")
    if not texts:
        return ()
    # An average may hide single values that give a secret away, so the worst ones are named.
    low = wording.short_factor(achieved.eps_l, upper=False)
    high = wording.short_factor(achieved.eps_u, upper=True)
    texts[-1] += (
        f" {NO_PROMISE_FOR_ONE}: the worst released values make a value of {sensitive} {low} to "
        f"{high} times as probable."
    )
    return tuple(texts)


def audit_average_texts(averages: Sequence[AverageVerdict]) -> list[str]:
    """The verdict of the audit on every average."""
    texts: list[str] = []
    for average in averages:
        verdict = "kept" if average.kept else "VIOLATED"
        texts.append(
            f"Average {NAMES[average.measure]}: {at_most(average.leakage)}, budget "
            f"{_budget(average.budget)}: {verdict}. {NO_PROMISE_FOR_ONE}."
        )
    return texts


def _budget(budget: float) -> str:
    """A budget as it was typed, if six digits have it; else rounded up."""
    short = f"{budget:.6g}"
    return short if float(short) == budget else at_most(budget)
