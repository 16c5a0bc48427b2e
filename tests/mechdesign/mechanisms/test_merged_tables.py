"""What `--merge-rare auto` and `--rare auto` keep on survey tables, beside the plain design.

The tables are `adult.test` and, where statsmodels is installed, four of its data sets.
"""

from __future__ import annotations

import math
from importlib.util import find_spec
from pathlib import Path

import pandas as pd
import pytest

import mechdesign as md
from mechdesign.mechanisms.box_design import design_boxes
from mechdesign.mechanisms.box_request import AUTO, BoxRequest
from mechdesign.tables.records import Records
from tests.cases.people import ADULT

NOTION = md.LIP(math.log(2))
"""At most twice, at least half as likely."""

CASES = [
    ("adult.test", "income", "occupation"),
    ("adult.test", "race", "education"),
    ("adult.test", "relationship", "occupation"),
    ("anes96/anes96.csv", "vote", "income"),
    ("anes96/anes96.csv", "PID", "educ"),
    ("fair/fair.csv", "rate_marriage", "occupation"),
    ("fair/fair.csv", "occupation", "educ"),
    ("fair/fair_pt.csv", "religious", "education"),
    ("randhie/randhie.csv", "hlthg", "mdvis"),
    ("randhie/randhie.csv", "hlthp", "mdvis"),
]

SECONDS = 60.0
"""Far more than the searches need, but for the proofs of gaps, which are not read here."""

SLICES = (1, 2, 3)
"""Seeds of the slices that `--rare auto` chooses on."""


def table_of(name, data):
    if name == "adult.test":
        return pd.read_csv(
            data / "adult" / name,
            names=ADULT,
            skiprows=1,
            header=None,
            skipinitialspace=True,
            dtype=str,
        )
    found = find_spec("statsmodels")
    if found is None or not found.submodule_search_locations:
        pytest.skip("statsmodels is not installed")
    folder = Path(next(iter(found.submodule_search_locations))) / "datasets"
    separator = "\t" if name.startswith("anes96") else ","
    quote = "'" if name.startswith("anes96") else '"'
    return pd.read_csv(folder / name, sep=separator, quotechar=quote, dtype=str)


def merged(joint, seed=1, rare=0):
    """The channel of --merge-rare auto [--rare auto], with the slice of a fixed seed."""
    request = BoxRequest(
        notion=NOTION,
        level=0.95,
        seed=seed,
        gap=0.01,
        time_limit=SECONDS,
        rare=rare,
    )
    return design_boxes(Records.from_joint(joint, [joint.useful.columns]), request)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "sensitive", "useful"), CASES)
def test_half_of_the_plain_share_is_kept_with_few_values_promised_together(
    data, name, sensitive, useful
):
    frame = table_of(name, data)
    joint = md.Joint.from_table(frame, sensitive=sensitive, useful=useful)
    plain = md.design(joint, NOTION, gap=0.01, time_limit=8.0)
    confident = md.design(joint, NOTION, confidence=0.95, gap=0.01, time_limit=8.0)
    auto = merged(joint)
    chosen = [merged(joint, seed, AUTO) for seed in SLICES]
    shares = ", ".join(f"{design.nmi:.2f}" for design in chosen)
    names = [design.channel.boxed.together_texts[0] for design in chosen]
    assert auto.channel.claims.utility.limit is not None
    print(
        f"{name} {sensitive} {useful} {joint.records}: plain {plain.nmi:.2f}, confidence "
        f"{confident.nmi:.2f}, auto {auto.nmi:.2f}, rare auto {shares} {names}; limit "
        f"{auto.channel.claims.utility.limit.information:.2f} of {auto.entropy:.2f} nats"
    )
    for design in (auto, *chosen):
        assert design.achieved.eps_u <= math.log(2)
        assert md.audit(design.channel).satisfied
    for design in chosen:
        assert design.nmi >= plain.nmi / 2
