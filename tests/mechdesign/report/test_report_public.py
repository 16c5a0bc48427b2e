"""The public report discloses no count and nothing that is computed from one, except the channel itself."""

from __future__ import annotations

import itertools
import math
import re
from dataclasses import replace

import numpy as np
import pytest

import mechdesign as md
from mechdesign.auditing.measures import measure
from mechdesign.channel.channel import Channel
from mechdesign.core.wording import about, at_least, at_most
from mechdesign.report.content import public_report
from mechdesign.report.wording import percent, percent_at_most
from mechdesign.tables.joint import Joint
from tests.mechdesign.report import report_cases as cases
from tests.oracles.measures import lift

NUMBER = re.compile(r"(?<![\w.])\d[\d,]*\.?\d*(?:[eE][-+]?\d+)?")

TABLE = Joint.from_counts(
    [
        [7919, 6841, 3571, 2749, 641],
        [5413, 1009, 4337, 983, 6101],
        [2003, 7103, 769, 5749, 4507],
    ],
    sensitive_labels=["first", "second", "third"],
    useful_labels=["a", "b", "c", "d", "e"],
    sensitive="kind",
    useful="job",
)
"""Counts that are primes, so that none of them comes about by chance."""


def shown_numbers(text: str) -> set[str]:
    return {token.replace(",", "") for token in NUMBER.findall(text)}


def spellings(value: float) -> set[str]:
    """Every way in which a report writes a number, and the ways of Python."""
    found = {repr(value), f"{value:g}", f"{value:.3g}", f"{value:.4f}", f"{value:.17g}"}
    found |= {about(value), at_most(value), at_least(value)}
    if 0.0 <= value <= 1.0:
        share = {
            percent(value),
            percent(value, "ROUND_FLOOR"),
            percent_at_most(value),
            f"{100 * value:.1f}",
        }
        found |= {text.removesuffix(" %") for text in share}
    return {text.lstrip("-") for text in found}


def secrets(joint: Joint, design) -> dict[str, set[str]]:
    """All counts, sums, probabilities, lifts, posteriors, budgets used, utilities and bounds, as texts by name."""
    counts = np.array(joint.counts)
    whole = [*counts.ravel(), *counts.sum(axis=0), *counts.sum(axis=1), counts.sum()]
    whole += [
        counts[:, list(pair)].sum()
        for pair in itertools.combinations(range(counts.shape[1]), 2)
    ]
    p_sy = joint.p @ design.channel.matrix
    found = measure(design.channel, joint)
    achieved = design.achieved
    derived = {
        "P(s,x)": joint.p,
        "P(x)": joint.p_x,
        "P(s)": joint.p_s,
        "P(s|x)": joint.p / joint.p_x,
        "P(x|s)": joint.p / joint.p_s[:, None],
        "lift": joint.lift,
        "lift after": lift(p_sy),
        "P(y)": p_sy.sum(axis=0),
        "P(s|y)": p_sy / p_sy.sum(axis=0),
        "P(x|y)": design.channel.posteriors,
        "achieved": [achieved.eps_l, achieved.eps_u, achieved.eps_ldp],
        "utility": [design.nmi, design.mutual_information, design.entropy],
        "measures": [*found.utility.values(), *found.leakage.values()],
        "guarantees": [line.bound for line in found.guarantees],
    }
    if design.certificate.upper_bound_nmi is not None:
        derived["certificate"] = [
            design.certificate.upper_bound_nmi,
            design.certificate.gap_nmi,
        ]
    texts = {"counts": {str(count) for count in whole}}
    for name, values in derived.items():
        plain = [float(v) for v in np.ravel(values) if math.isfinite(v)]
        texts[name] = set().union(*(spellings(value) for value in plain))
    return texts


def innocent(joint: Joint, notion: md.Notion, channel: Channel) -> set[str]:
    """Numbers that belong to the channel or the promise: their spelling cannot give a count away."""
    bare = replace(channel, joint=None)
    empty = public_report(bare, notion, satisfied=True)
    values = [bound.promised for bound in empty.promise.bounds]
    values += [v for v in (empty.promise.low, empty.promise.high) if v is not None]
    values += [v for v in empty.asked.notion.values() if isinstance(v, float)]
    values += [entry.share for row in empty.channel.rows for entry in row]
    texts = set().union(*(spellings(value) for value in values))
    return texts | {str(k) for k in range(10)} | {"100", "0.5", "100.0"}


@pytest.mark.parametrize(
    ("mechanism", "notion"),
    [
        ("optimal", md.ALIP(0.211, 0.173)),
        ("optimal", md.LDP(0.317)),
        ("optimal", md.MaxLift(0.193)),
        ("subset-response", md.ALIP(0.211, 0.173)),
        ("subset-merging", md.ALIP(0.211, 0.173)),
        ("complete-merging", md.ALIP(0.211, 0.173)),
        *(
            pytest.param(mechanism, notion, marks=pytest.mark.slow)
            for mechanism in ("subset-response", "subset-merging", "complete-merging")
            for notion in (md.LDP(0.317), md.MaxLift(0.193))
        ),
    ],
)
def test_no_count_and_no_number_derived_from_one_is_in_it(mechanism, notion):
    design = md.design(TABLE, notion, mechanism=mechanism)
    _, public = cases.both(design, TABLE)
    public = replace(
        public,
        written="",
        provenance=tuple(f for f in public.provenance if "SHA" not in f.name),
    )
    public = replace(
        public, provenance=tuple(replace(f, text="") for f in public.provenance)
    )
    allowed = innocent(TABLE, notion, design.channel)
    for ending, text in cases.texts(public).items():
        if ending == ".html":
            text = cases.parsed(text).text
        numbers = shown_numbers(text)
        for name, secret in secrets(TABLE, design).items():
            assert numbers & (secret - allowed) == set(), (ending, name)


def test_the_search_would_find_them():
    """The internal report holds every kind of number that the public one must not hold."""
    design = md.design(TABLE, md.ALIP(0.211, 0.173))
    internal = cases.both(design, TABLE)[0]
    numbers = shown_numbers(cases.texts(internal)[".json"])
    found = secrets(TABLE, design)
    for name in (
        "P(s)",
        "lift",
        "lift after",
        "P(y)",
        "P(x|y)",
        "achieved",
        "utility",
        "certificate",
    ):
        assert numbers & found[name], name
    assert str(TABLE.total) in numbers


def test_it_is_the_same_whatever_the_table_is(tmp_path):
    """The strongest form: same channel and promise, another table or none, same public report."""
    design = md.design(TABLE, md.ALIP(0.211, 0.173))
    other = Joint(
        TABLE.sensitive, TABLE.useful, tuple(row[::-1] for row in TABLE.counts[::-1])
    )
    design.channel.save(tmp_path / "public.json", public=True)
    channels = [
        design.channel,
        replace(design.channel, joint=other),
        Channel.load(tmp_path / "public.json"),
    ]
    made = [
        cases.texts(public_report(c, design.notion, satisfied=True)) for c in channels
    ]
    assert made[0] == made[1] == made[2]


def test_it_says_what_it_leaves_out_and_what_holds():
    public = cases.reports(TABLE, md.ALIP(0.211, 0.173))[1]
    record = cases.record(public)
    for part in ("kept", "curve", "before", "after", "codebook"):
        assert record[part] is None
    for key in ("records", "cells", "zero_cells", "table"):
        assert record["asked"][key] is None
    for key in ("achieved", "used", "worst"):
        assert record["promise"][key] is None
    assert record["promise"]["beliefs"] == []
    said = " ".join([*record["holds_for"], *record["voided_by"]])
    assert "not about the population" in said
    assert "covers the released column alone" in said
    assert "The same record is released twice" in said
    assert "Not shown in this version, because it is computed from the table" in said


@pytest.mark.parametrize(
    ("satisfied", "words"),
    [
        (True, "Verified in exact"),
        (False, "VIOLATED, decided in exact"),
        (None, "Not checked here, because the table is missing"),
    ],
)
def test_the_verdict_is_what_is_known(satisfied, words):
    design = md.design(TABLE, md.ALIP(0.2, 0.2))
    report = public_report(design.channel, design.notion, satisfied=satisfied)
    assert words in report.promise.verdict
    assert report.promise.satisfied is satisfied


def test_a_channel_that_does_not_say_what_it_protects():
    design = md.design(TABLE, md.ALIP(0.2, 0.2))
    bare = Channel(design.channel.useful, design.channel.outputs, design.channel.rows)
    report = public_report(bare, design.notion, satisfied=None)
    text = cases.parsed(cases.texts(report)[".html"]).text
    assert "protecting the sensitive column" in text
    assert "symbols not recorded" in text


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {},
            "are released in the place of values of job. `mechdesign estimate` computes",
        ),
        ({"objective": "truth"}, "has the probability that the table gives it"),
        (
            {"objective": "truth", "keep_frequencies": False},
            "need not have the frequencies",
        ),
    ],
)
def test_it_says_what_an_analyst_reads(options, said):
    """The law is what the channel states: no figure of the table is in it."""
    design = md.design(TABLE, md.ALIP(0.5, 0.5), **options)
    report = public_report(design.channel, md.ALIP(0.5, 0.5), satisfied=True)
    (sentence,) = report.law
    assert sentence.startswith("What an analyst reads: ")
    assert said in sentence
