"""Figures of a released file by loops over records: groups, nearest rows, variations."""

from __future__ import annotations

from collections import Counter, defaultdict


def groups(rows, secrets):
    """k, l, t and beta of rows that are grouped by equality."""
    members = defaultdict(list)
    for row, secret in zip(rows, secrets, strict=True):
        members[row].append(secret)
    overall = Counter(secrets)
    total = len(secrets)
    closeness = likeness = 0.0
    for group in members.values():
        counts = Counter(group)
        distance = 0.0
        for secret, count in overall.items():
            share = counts[secret] / len(group)
            distance += abs(share - count / total) / 2
            likeness = max(likeness, share * total / count - 1)
        closeness = max(closeness, distance)
    k = min(map(len, members.values()))
    diversity = min(len(set(group)) for group in members.values())
    return k, diversity, closeness, likeness


def guesses(released, true_row, place):
    """The votes for a cell by the released rows with fewest other cells in the rest."""

    def apart(row):
        return sum(
            a != b
            for j, (a, b) in enumerate(zip(row, true_row, strict=True))
            if j != place
        )

    least = min(map(apart, released))
    return Counter(row[place] for row in released if apart(row) == least)


def variation(before, after):
    """The total variation distance of two columns."""
    first = Counter(before)
    second = Counter(after)
    return (
        sum(
            abs(first[v] / len(before) - second[v] / len(after))
            for v in {*first, *second}
        )
        / 2
    )
