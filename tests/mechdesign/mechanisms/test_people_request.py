"""What is asked of the records of a person, against sequences gone through one by one."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import mechdesign as md
from mechdesign.tables.people import ABSENT
from tests.mechdesign.cli.test_people import panel, sequences
from tests.oracles import people as oracle

EPSILON = 0.5
ROLES = {"sensitive": "ill", "person": "id", "wave": "year"}
LOW = Fraction(math.nextafter(math.exp(-EPSILON), 0.0))
HIGH = Fraction(math.nextafter(math.exp(EPSILON), 2.0))


@pytest.fixture(scope="module")
def frame():
    return panel()


def designed(frame, **asked):
    asked = {"release": ["health", "job"], **ROLES, **asked}
    return md.design(frame, md.LIP(EPSILON), **asked)


def within_promise(people, channel):
    lifts = oracle.lifts(people, channel.distribution)
    return all(LOW <= lift <= HIGH for lift in lifts.values())


def moves(people, channel):
    """Every true sequence with every one that may be released for it."""
    for _, sequence in people.values():
        for released in channel.distribution(list(sequence)):
            yield sequence, released


def test_a_forbidden_change_is_made_at_no_place(frame):
    people = sequences(frame)

    def changes(channel):
        found = set()
        for before, after in moves(people, channel):
            found |= {(b[1], a[1]) for b, a in zip(before, after, strict=True)}
        return found

    free = designed(frame).channel
    assert ("j1", "j2") in changes(free)
    for pair in (("j1", "j2"), ("job=j1", "job=j2")):
        channel = designed(frame, forbid=[pair]).channel
        assert ("j1", "j2") not in changes(channel)
        assert ("j2", "j1") in changes(channel)
        assert within_promise(people, channel)


def test_a_cell_that_must_change_does_so_at_every_place(frame):
    people = sequences(frame)
    channel = designed(frame, forbid=[("job=j2", "job=j2")]).channel
    for before, after in moves(people, channel):
        for b, a in zip(before, after, strict=True):
            assert (b[1], a[1]) != ("j2", "j2")


def test_a_combination_is_released_at_no_place(frame):
    people = sequences(frame)
    never = ("h3", "j1")
    assert any(never in sequence for _, sequence in people.values())
    channel = designed(
        frame, never=[{"health": "h3", "job": "j1"}], keep_frequencies=False
    ).channel
    assert not any(never in after for _, after in moves(people, channel))
    assert within_promise(people, channel)
    # A combination that nobody has is no error; with the law kept, one that somebody has is.
    designed(frame, never=[{"health 4": "h3", "job 4": "j1"}], keep_frequencies=False)
    with pytest.raises(md.NotPrivate, match="the law of the table is kept"):
        designed(frame, never=[{"health": "h3", "job": "j1"}])


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"never": [{"pay": "1"}]}, "never: 'pay' is no column of a record"),
        ({"never": [{"job": "j9"}]}, "no record has 'job=j9'"),
        ({"forbid": [("j1", "j9")]}, "forbid: no record has 'j9'"),
        ({"forbid": ["ab"]}, "must be a pair"),
        ({"objective": "task", "task": "job"}, "a free label stands for a whole"),
        ({"weight": "year"}, "people are counted"),
        ({"forbid": [("x", "job=j1")]}, "is a cell of several columns"),
        ({"known": ["pay"]}, "known: 'pay' is not released"),
        ({"column_weights": {"pay": 2}}, "column weight: 'pay' is not released"),
        ({"bins": {"job": "auto"}}, "is searched for one column by itself"),
        ({"bins": {"job": 10}}, "job"),
    ],
)
def test_what_no_record_has_is_refused(frame, asked, words):
    frame = frame.replace({"health": {"h0": "x"}, "job": {"j0": "x"}})
    with pytest.raises(md.InputError, match=words):
        designed(frame, keep_frequencies=False, **asked)


@pytest.mark.parametrize(
    ("measure", "budget"), [("tv", 0.1), ("guess", 0.68), ("maximal-leakage", 0.22)]
)
def test_averages_are_those_of_the_sequences(frame, measure, budget):
    """And they bind: without them the plan of the same promise leaks more."""
    people = sequences(frame)

    def leaked(channel):
        joint = defaultdict(Fraction)
        prior = defaultdict(Fraction)
        for secret, sequence in people.values():
            prior[secret] += Fraction(1, len(people))
            for released, share in channel.distribution(list(sequence)).items():
                joint[released, secret] += share / len(people)
        outputs = {released for released, _ in joint}
        if measure == "guess":
            return sum(max(joint[y, s] for s in prior) for y in outputs)
        if measure == "tv":
            total = Fraction(0)
            for y in outputs:
                mass = sum(joint[y, s] for s in prior)
                total += sum(abs(joint[y, s] - mass * prior[s]) for s in prior)
            return total / 2
        largest = sum(max(joint[y, s] / prior[s] for s in prior) for y in outputs)
        return math.log(largest)

    assert leaked(designed(frame).channel) > budget
    channel = designed(frame, average={measure: budget}).channel
    assert leaked(channel) <= budget
    assert leaked(channel) > 0.98 * budget
    assert within_promise(people, channel)


def test_after_an_earlier_release_all_outputs_together_keep_the_promise(frame):
    """The first release is of one column, the second of another one, or the same again."""
    first = md.design(frame, md.LIP(0.45), release="health", **ROLES).channel
    people = sequences(frame)
    low = Fraction(math.nextafter(math.exp(-0.8), 0.0))
    high = Fraction(math.nextafter(math.exp(0.8), 3.0))
    for release in ("job", "health"):
        result = md.design(frame, md.LIP(0.8), release=release, after=[first], **ROLES)
        place = ("health", "job").index(release)

        def law(sequence, second=result.channel, place=place):
            one = first.distribution([record[:1] for record in sequence])
            other = second.distribution(
                [record[place : place + 1] for record in sequence]
            )
            return {(a, b): one[a] * other[b] for a, b in itertools.product(one, other)}

        lifts = oracle.lifts(people, law).values()
        assert low <= min(lifts)
        assert max(lifts) <= high
        # The second release uses what the first one left.
        assert max(max(lifts), 1 / min(lifts)) > 2.2
        assert result.channel.record.after
        assert len(result.channel.apply(frame)) == len(frame)


def test_earlier_releases_of_other_people_or_of_records_are_refused(frame):
    asked = {"sensitive": "ill", "useful": "health", "unit": "record"}
    records = md.design(frame, md.LIP(0.1), **asked).channel
    with pytest.raises(md.InputError, match="after a release of single records"):
        designed(frame, after=[records])
    others = md.design(
        frame, md.LIP(1.0), sensitive="ill", release="job", person="id"
    ).channel
    with pytest.raises(md.InputError, match="other columns of people or waves"):
        designed(frame, after=[others])


@pytest.fixture(scope="module")
def ages(frame):
    chance = np.random.default_rng(4)
    old = chance.integers(20, 60, len(frame)) + 8 * (frame["ill"] == "yes")
    return frame.assign(age=old)


def test_bins_are_the_same_at_every_place(ages):
    """A design in bins is that of a table with the labels written out, and it takes numbers."""
    labels = [f"[{age // 10 * 10}, {age // 10 * 10 + 10})" for age in ages["age"]]
    written = ages.assign(age=labels)
    channel = designed(
        ages, release=["age", "job"], bins={"age": "20,30,40,50,60,70"}
    ).channel
    people = oracle.sequences(
        (r.id, r.year, r.ill, (str(r.age), r.job)) for r in ages.itertuples()
    )
    in_bins = oracle.sequences(
        (r.id, r.year, r.ill, (r.age, r.job)) for r in written.itertuples()
    )
    # The last bin has its upper edge, too.
    last = {"[60, 70)": "[60, 70]"}
    named = {
        person: (s, tuple((last.get(a, a), j) for a, j in sequence))
        for person, (s, sequence) in in_bins.items()
    }
    assert within_promise(people, channel)
    for person, (_, sequence) in people.items():
        law = channel.distribution(list(sequence))
        assert law == channel.distribution(list(named[person][1]))
    # The law of the sequences in bins is kept.
    shares = oracle.output_shares(people, channel.distribution)
    found = defaultdict(Fraction)
    for _, sequence in named.values():
        found[sequence] += Fraction(1, len(named))
    assert shares == found


def test_bins_go_through_files_releases_and_audits(ages, tmp_path):
    channel = designed(ages, release=["age", "job"], bins={"age": 10}).channel
    channel.save(tmp_path / "channel.json")
    read = md.load(tmp_path / "channel.json")
    assert md.audit(read, ages).satisfied
    assert md.audit(read, ages).achieved == md.audit(read).achieved
    released = read.apply(ages)
    assert set(released["age"]) <= set(read.useful.bins[1].labels)
    assert not set(released["age"]) & {ABSENT}
    outside = ages.assign(age=ages["age"] + 100)
    with pytest.raises(md.InputError, match="value outside the channel's bins"):
        read.apply(outside)


def test_numbers_of_people_of_unequal_lengths_have_distances(ages):
    """Cells of absent records are no categories among the numbers."""
    channel = designed(ages, release="age", objective="distance").channel
    people = oracle.sequences(
        (r.id, r.year, r.ill, (str(r.age),)) for r in ages.itertuples()
    )
    moved = total = Fraction(0)
    for _, sequence in people.values():
        for released, share in channel.distribution(list(sequence)).items():
            for (before,), (after,) in zip(sequence, released, strict=True):
                moved += share * abs(int(before) - int(after))
                total += share
    # Numbers drawn blindly within the records are 15 apart.
    assert moved / total < 4


def test_a_given_number_of_records_that_tells_is_named():
    rows = [
        (p, w, f"s{p % 2}", f"h{p % 3}") for p in range(40) for w in range(1 + p % 2)
    ]
    frame = pd.DataFrame(rows, columns=["id", "year", "ill", "health"])
    with pytest.raises(md.NotPrivate, match="'number of records=1': promise relative"):
        md.design(frame, md.LIP(0.5), release="health", **ROLES)


def test_a_file_of_people_is_designed_and_audited_as_its_frame_is(frame, tmp_path):
    path = tmp_path / "people.csv"
    frame.to_csv(path, index=False)
    of_frame = designed(frame)
    for place in (path, str(path)):
        of_file = designed(place)
        assert of_file.channel.joint == of_frame.channel.joint
        assert of_file.achieved == of_frame.achieved
        assert md.audit(of_file.channel, place).satisfied
