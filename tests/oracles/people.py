"""People with several records, gone through one by one: sequences, and what they reach in fractions.

A record is a tuple (person, wave, secret, cells). Nothing here is shared with the package.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

Record = tuple[Any, Any, str, tuple[str, ...]]
Sequences = dict[Any, tuple[str, tuple[tuple[str, ...], ...]]]


def sequences(records: Iterable[Record]) -> Sequences:
    """The secret and the records of each person in the order of the waves."""
    by_person: dict[Any, list[tuple[Any, str, tuple[str, ...]]]] = defaultdict(list)
    for person, wave, secret, cells in records:
        by_person[person].append((wave, secret, cells))
    people: Sequences = {}
    for person, rows in by_person.items():
        rows.sort(key=lambda row: row[0])
        (secret,) = {row[1] for row in rows}
        people[person] = secret, tuple(row[2] for row in rows)
    return people


def lifts(
    people: Sequences,
    law: Callable[[Sequence[tuple[str, ...]]], Mapping[Any, Fraction]],
) -> dict[tuple[str, Any], Fraction]:
    """P(s | y) / P(s) of every secret and every released sequence."""
    size = len(people)
    prior: dict[str, Fraction] = defaultdict(Fraction)
    joint: dict[tuple[str, Any], Fraction] = defaultdict(Fraction)
    output: dict[Any, Fraction] = defaultdict(Fraction)
    for secret, sequence in people.values():
        prior[secret] += Fraction(1, size)
        for released, share in law(list(sequence)).items():
            joint[secret, released] += share / size
            output[released] += share / size
    return {
        (secret, released): joint[secret, released] / (output[released] * prior[secret])
        for released in output
        for secret in prior
    }


def output_shares(
    people: Sequences,
    law: Callable[[Sequence[tuple[str, ...]]], Mapping[Any, Fraction]],
) -> dict[Any, Fraction]:
    """P(y) of every released sequence."""
    shares: dict[Any, Fraction] = defaultdict(Fraction)
    for _, sequence in people.values():
        for released, share in law(list(sequence)).items():
            shares[released] += share / len(people)
    return dict(shares)


def unchanged_cells(
    people: Sequences,
    law: Callable[[Sequence[tuple[str, ...]]], Mapping[Any, Fraction]],
) -> Fraction:
    """The expected share of cells that stay as they are."""
    same = Fraction(0)
    cells = 0
    for _, sequence in people.values():
        cells += sum(len(record) for record in sequence)
        for released, share in law(list(sequence)).items():
            equal = sum(
                a == b
                for old, new in zip(sequence, released, strict=True)
                for a, b in zip(old, new, strict=True)
            )
            same += share * equal
    return same / cells
