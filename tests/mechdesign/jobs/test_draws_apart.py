"""How releases in a ledger are grouped, so that only those that share a record are compared."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mechdesign.formats.census import ALL, Census, Content
from mechdesign.jobs.past_releases import _groups

HASHES = st.lists(st.sets(st.integers(0, 12), max_size=4), max_size=7)


def components(sets):
    """Sets of places that share a member, merged until none of them share one."""
    merged = [({place}, set(members)) for place, members in enumerate(sets)]
    while True:
        for i, (places, members) in enumerate(merged):
            for j in range(i):
                if members & merged[j][1]:
                    merged[j] = (merged[j][0] | places, merged[j][1] | members)
                    del merged[i]
                    break
            else:
                continue
            break
        else:
            return {frozenset(places) for places, _ in merged}


@given(HASHES)
def test_groups_are_the_components_of_shared_hashes(sets):
    hashes = {
        str(place): np.array(sorted(members), np.uint64)
        for place, members in enumerate(sets)
    }
    groups = _groups(hashes)
    assert list(groups) == list(hashes)
    found = {}
    for name, group in groups.items():
        found.setdefault(group, set()).add(int(name))
    assert {frozenset(places) for places in found.values()} == components(sets)


def content_of(hashes):
    census = Census()
    census.add(hashes)
    return census.content()


def test_a_share_in_its_own_sample_may_be_below_one():
    """Why an equal sample is looked for before the share is estimated."""
    rng = np.random.default_rng(1)
    # Pairs and triples of records: no record is unique, and no number of copies divides both.
    repeated = np.repeat(rng.integers(1, ALL, 20, np.uint64), [2, 3] * 10)
    content = content_of(repeated)
    sample = content.sample()
    read = Content.of_sample(sample, records=len(repeated), unordered="")
    assert read.share_in([sample]) == 0.0
    # Beside a sample with a far lower limit, too few of the records are left to count.
    some = content_of(rng.integers(1, ALL, 5_000, np.uint64))
    low = content_of(rng.integers(1, ALL >> 11, 5_000, np.uint64))
    read = Content.of_sample(some.sample(), records=5_000, unordered="")
    assert read.share_in([some.sample()]) == 1.0
    assert read.share_in([some.sample(), low.sample()]) == 0.0
