"""What no rule that picks people by their released rows exceeds, in a sentence.

A rule picks released rows by anything but the draws. Among the people of the table whom it picks,
the expected number of those with a sensitive value is at most the highest probability of the value
at a released row times the expected number of all (docs/explanation/rows-theory.md, proposition 6).
For example, of an income that 24.1 % of all people have, and at most 39.7 % at any released row: ::

    Of the people whom any rule picks by their released rows, at most about 4 in 10 (39.7 %) are
    expected to have income >50K; about 1 in 4 of all people do (24.1 %).
"""

from __future__ import annotations

from collections.abc import Sequence

from mechdesign.report import wording
from mechdesign.report.asked import names_of
from mechdesign.report.record import Belief, Promise, Request


def rule_sentences(promise: Promise, request: Request) -> list[str]:
    """The sentence for the value that can change most.

    Nothing is said of single columns, of a relative promise, where other people have other shares
    before, and where the probabilities are not known.
    """
    belief = _most_raised(promise.beliefs)
    if belief is None or not request.of_rows or request.relative_to:
        return []
    most = wording.percent_at_most(belief.highest)
    share = wording.percent(belief.before)
    value = wording.label(belief.symbol)
    column = _column_of(promise, request, belief)
    of_all = wording.people_in(belief.before)
    if belief.highest >= 1:
        return [
            f"Some rule may pick people by their released rows who all have {column} {value}; "
            f"{of_all} of all people do ({share})."
        ]
    people = wording.people_in(belief.highest)
    limit = "" if people.startswith("fewer") else "at most "
    return [
        f"Of the people whom any rule picks by their released rows, {limit}{people} ({most}) are "
        f"expected to have {column} {value}; {of_all} of all people do ({share})."
    ]


def _column_of(promise: Promise, request: Request, belief: Belief) -> str:
    """The sensitive column of a value, where each of several is protected; else all together."""
    if not request.each:
        return names_of(request)[0]
    place = promise.beliefs.index(belief)
    return wording.label(request.symbol_columns[place])


def _most_raised(beliefs: Sequence[Belief]) -> Belief | None:
    """The belief that a released row can raise most."""
    if not beliefs:
        return None
    return max(beliefs, key=lambda belief: belief.highest - belief.before)
