"""The public form of every kind of channel, written and read again."""

from __future__ import annotations

import random

import pandas as pd
import pytest

import mechdesign as md

BUDGET = md.ALIP(1.0, 1.0)

RECORDS = 1200


def survey() -> pd.DataFrame:
    """Three records of each person, who has one value of the secret."""
    chance = random.Random(3)
    secrets = chance.choices(["ill", "well"], weights=[1, 3], k=RECORDS // 3)
    return pd.DataFrame(
        {
            "id": [k // 3 for k in range(RECORDS)],
            "s": [secrets[k // 3] for k in range(RECORDS)],
            "u": chance.choices("abc", k=RECORDS),
            "v": chance.choices("xyz", k=RECORDS),
            "g": chance.choices("mf", k=RECORDS),
            "n": chance.choices(["1", "2", "5"], k=RECORDS),
        }
    )


RECORD = {"unit": "record"}
ROWS = {"release": ["u", "v"]}
KINDS = {
    "column": {"useful": "u", **RECORD},
    "least cost": {"useful": "n", "objective": "distance", **RECORD},
    "population": {"useful": "u", "confidence": 0.95, **RECORD},
    "rows": {**ROWS, **RECORD},
    "strata": {**ROWS, "given": ["g"], **RECORD},
    "people": {**ROWS, "person": "id"},
    "boxes": {**ROWS, "confidence": 0.95, **RECORD},
    "boxes by strata": {
        **ROWS,
        "given": ["g"],
        "promise": "relative",
        "confidence": 0.95,
        **RECORD,
    },
    "boxes for people": {
        **ROWS,
        "promise": "relative",
        "confidence": 0.95,
        "person": "id",
    },
}


@pytest.mark.parametrize("kind", KINDS)
def test_public_forms_are_read_as_they_were_written(kind: str, tmp_path) -> None:
    result = md.design(survey(), BUDGET, sensitive="s", time_limit=5, **KINDS[kind])
    public = result.channel.public()
    public.save(tmp_path / "public.json")
    back = md.load(tmp_path / "public.json")
    assert back == public
    assert back.public() == public
    # Nothing that is counted is left, nor what a file would be filled with.
    assert back.joint is None
    assert not back.fills


def test_the_public_form_after_an_earlier_release_is_read_again(tmp_path) -> None:
    frame = survey()
    options = {"sensitive": "s", **RECORD}
    one = md.design(frame, md.ALIP(0.4, 0.4), useful="u", **options).channel
    two = md.design(frame, BUDGET, release=["v"], after=[one], **options).channel
    two.public().save(tmp_path / "public.json")
    assert md.load(tmp_path / "public.json") == two.public()


def test_budgets_on_averages_have_no_public_file() -> None:
    """They are functions of the table."""
    result = md.design(
        survey(), BUDGET, sensitive="s", useful="u", average={"mi": 0.02}, **RECORD
    )
    with pytest.raises(md.InputError, match="its budgets are functions of the table"):
        result.channel.public()
