"""`md.design` with a data frame in the place of a joint table, as people type it first."""

from __future__ import annotations

import pandas as pd
import polars as pl
import pytest

import mechdesign as md

RECORDS = {"group": list("aabbabab") * 6, "job": list("xyzxyzzx") * 6}
FRAMES = [pd.DataFrame(RECORDS), pl.DataFrame(RECORDS)]


@pytest.mark.parametrize("frame", FRAMES, ids=["pandas", "polars"])
def test_a_frame_is_designed_as_its_joint(frame):
    joint = md.Joint.from_table(frame, sensitive="group", useful="job")
    direct = md.design(frame, md.LIP(0.4), sensitive="group", useful="job", gap=1e-3)
    by_joint = md.design(joint, md.LIP(0.4), gap=1e-3)
    assert direct.channel.rows == by_joint.channel.rows
    assert direct.channel.joint == joint
    assert md.audit(direct.channel, joint, md.LIP(0.4)).satisfied


def test_weights_and_missing_cells_are_those_of_the_joint():
    frame = FRAMES[0].groupby(["group", "job"]).size().reset_index(name="n")
    frame.loc[0, "job"] = None
    columns = {"sensitive": "group", "useful": "job", "weight": "n", "missing": "drop"}
    made = md.design(frame, md.LIP(0.4), **columns)
    assert made.channel.joint == md.Joint.from_table(frame, **columns)


@pytest.mark.parametrize(
    ("arguments", "options", "words"),
    [
        (
            (FRAMES[0],),
            {"sensitive": "group", "useful": "job"},
            "design needs a notion",
        ),
        ((FRAMES[0], md.LIP(1)), {}, "takes a data frame with sensitive= and useful="),
        ((FRAMES[0], md.LIP(1)), {"sensitive": "group"}, "give useful"),
        ((FRAMES[0], md.LIP(1)), {"useful": "job"}, "give sensitive"),
        (
            (md.Joint.from_counts([[3, 1], [1, 3]]), md.LIP(1)),
            {"useful": "job"},
            "the table has no useful column 'job'",
        ),
        (
            (FRAMES[0], md.LIP(1)),
            {"sensitive": "group", "useful": "town"},
            "no column 'town'",
        ),
    ],
)
def test_what_is_missing_is_named(arguments, options, words):
    with pytest.raises(md.InputError, match=words):
        md.design(*arguments, **options)
