"""What somebody who knows a table and sees a whole released file believes, by listing.

The table has slots with a row and a secret each. Who sits in which slot is a uniform bijection, of
which the observer knows nothing. He sees the output of every person.
"""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from itertools import permutations, product


def arrangements(outputs):
    """Every different order of a multiset, each as likely as the others."""
    return sorted(set(permutations(outputs)))


def fixed_sigmas(slot_rows, flows):
    """(probability, the output of each slot): the outputs of each row in uniform order.

    `flows` has (probability, {row: outputs of its records}).
    """
    places = defaultdict(list)
    for slot, row in enumerate(slot_rows):
        places[row].append(slot)
    sigmas = defaultdict(Fraction)
    for chance, outputs in flows:
        orders = [arrangements(outputs[row]) for row in places]
        share = chance
        for ways in orders:
            share /= len(ways)
        for order in product(*orders):
            sigma = [None] * len(slot_rows)
            for slots, row_outputs in zip(places.values(), order, strict=True):
                for slot, output in zip(slots, row_outputs, strict=True):
                    sigma[slot] = output
            sigmas[tuple(sigma)] += share
    return [(chance, sigma) for sigma, chance in sigmas.items()]


def independent_sigmas(slot_rows, law):
    """(probability, the output of each slot) where every slot draws for itself from law[row]."""
    for draws in product(*(law[row].items() for row in slot_rows)):
        chance = Fraction(1)
        for _, probability in draws:
            chance *= probability
        if chance:
            yield chance, tuple(output for output, _ in draws)


def posteriors(secrets, sigmas):
    """P(the secret of person 0 is 1 | all released), for every released file that can occur.

    The persons are alike, so person 0 speaks for all.
    """
    total = defaultdict(Fraction)
    ones = defaultdict(Fraction)
    size = len(secrets)
    # Every bijection is as likely; where persons sit is a list of slots.
    for seats in permutations(range(size)):
        for chance, sigma in sigmas:
            file = tuple(sigma[seat] for seat in seats)
            total[file] += chance
            if secrets[seats[0]] == 1:
                ones[file] += chance
    return {file: ones[file] / total[file] for file in total}


def posteriors_of_people(secrets, lengths, sigmas):
    """P(the secret of person 0 is 1 | what an observer knows) of people with several records.

    He knows how many records everybody has: person i as many as slot i. The file has a new number
    for each person, in uniform order. Two mappings: from the file and the number of person 0, and
    from the file alone.
    """
    size = len(secrets)
    total = (defaultdict(Fraction), defaultdict(Fraction))
    ones = (defaultdict(Fraction), defaultdict(Fraction))
    for seats in permutations(range(size)):
        if any(lengths[seat] != lengths[k] for k, seat in enumerate(seats)):
            continue
        for chance, sigma in sigmas:
            for people in permutations(range(size)):
                file = tuple(sigma[seats[person]] for person in people)
                for known, key in enumerate(((file, people.index(0)), file)):
                    total[known][key] += chance
                    if secrets[seats[0]] == 1:
                        ones[known][key] += chance
    return tuple(
        {key: ones[known][key] / mass for key, mass in total[known].items()}
        for known in range(2)
    )


def mean_flows(law, released):
    """E[records of each row with each output | the counts of the file], every row one record.

    `law` has a dictionary of probabilities for each row. Adds up every way in which they can fall.
    """
    total = Fraction(0)
    flows = defaultdict(Fraction)
    for draws in product(*(row.items() for row in law)):
        outputs = [output for output, _ in draws]
        if any(outputs.count(y) != count for y, count in enumerate(released)):
            continue
        chance = Fraction(1)
        for _, probability in draws:
            chance *= probability
        total += chance
        for row, output in enumerate(outputs):
            flows[row, output] += chance
    return {pair: flow / total for pair, flow in flows.items()}
