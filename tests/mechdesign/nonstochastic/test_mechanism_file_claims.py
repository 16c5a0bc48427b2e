"""Nothing that a mechanism file says of itself is believed: edited claims are found, even with a
hash that fits.
"""

from __future__ import annotations

import csv
import math
from dataclasses import replace

import pytest

from mechdesign.core.errors import InputError
from mechdesign.nonstochastic import (
    certify,
    count_query,
    identity_query,
    interval,
    uniform_quantizer,
)
from mechdesign.nonstochastic.claims import (
    guarantee_record,
    read_verified,
    verify_file,
)
from mechdesign.nonstochastic.mechanism_file import MechanismFile, SizedQuantizer
from mechdesign.nonstochastic.mechanism_jobs import apply_mechanism
from mechdesign.nonstochastic.quantize_table import QuantizeOptions, quantise_table
from mechdesign.nonstochastic.sizes import sized_quantizer
from tests.cases.documents import rewrite

ROWS = "house,day,kwh\n" + "".join(
    f"{h},{d},{h * d / 3}\n" for h in range(1, 5) for d in range(1, 4)
)


@pytest.fixture(params=["identity", "mean", "sum", "count"])
def file(request, tmp_path):
    (tmp_path / "in.csv").write_text(ROWS, encoding="utf-8")
    counted = request.param == "count"
    options = QuantizeOptions(
        column="kwh",
        epsilon="2",
        query=request.param,
        group_by=() if request.param == "identity" else ("day",),
        range_text=None if counted else "0,10",
        equals="1.0" if counted else None,
        individual="house",
    )
    quantise_table(
        tmp_path / "in.csv",
        tmp_path / "out.csv",
        options,
        mechanism_path=tmp_path / "m.json",
    )
    return tmp_path / "m.json"


def test_what_quantize_writes_is_so(file):
    found = read_verified(file)
    assert found.satisfied
    assert (found.answers_each, found.disagreements) == (3, ())
    assert found.total_epsilon == found.mechanism.guarantee["total_epsilon"]
    assert found.outputs <= found.allowed == 4


EDITS = [
    (
        lambda d: d["guarantee"].update(total_epsilon=0.1),
        "says total_epsilon '0.1', but it is",
    ),
    (
        lambda d: d["guarantee"].update(answers_each=1),
        "says total_epsilon .*, but it is",
    ),
    (
        lambda d: d["guarantee"].update(answers_each=0),
        "answers_each .* must be a number of answers",
    ),
    (
        lambda d: d["guarantee"].update(answers_each="3"),
        "answers_each .* must be a number of answers",
    ),
    (
        lambda d: d["guarantee"]["promises"][0].update(bound=0.001),
        "promise 'leakage' says '0.001' bits",
    ),
    (lambda d: d["guarantee"]["promises"].pop(), "promise .* is missing"),
    (
        lambda d: d["guarantee"]["promises"].append({"name": "immunity"}),
        "others than those that follow",
    ),
    (lambda d: d["guarantee"].update(assumptions=[]), "says assumptions"),
    (lambda d: d.update(guarantee={}), "does not state outputs"),
    (
        lambda d: d["guarantee"].update(certified_by="us"),
        "'certified_by', which is no part of it",
    ),
    (
        lambda d: d["mechanisms"][0].update(witness="nobody"),
        "the witness of the mechanism",
    ),
    (
        lambda d: d["mechanisms"].append(d["mechanisms"][0]),
        "2 mechanisms for groups of",
    ),
]


@pytest.mark.parametrize(("change", "message"), EDITS)
def test_edited_claims_are_found(file, change, message):
    """Each was accepted by a reader that counts the outputs alone."""
    rewrite(file, change)
    MechanismFile.load(file)
    found = verify_file(file)
    assert not found.satisfied
    with pytest.raises(InputError, match=message):
        read_verified(file)


def test_an_identity_of_a_crowd_and_a_count_of_anything(tmp_path):
    quantizer = uniform_quantizer(0, 2, 4)
    sized = SizedQuantizer(
        3, quantizer, certify(identity_query(interval(0, 2)), quantizer)
    )
    made = MechanismFile(
        query="identity",
        column="v",
        group_by=(),
        domain=interval(0, 2),
        epsilon=2.0,
        mechanisms=(sized,),
    )
    made.save(tmp_path / "m.json")
    with pytest.raises(InputError, match="identity is released record by record"):
        read_verified(tmp_path / "m.json")
    quantizer = uniform_quantizer(0, 3, 3)
    sized = SizedQuantizer(3, quantizer, certify(count_query(3), quantizer))
    made = MechanismFile(
        query="count",
        column="v",
        group_by=(),
        domain=interval(0, 2),
        epsilon=2.0,
        mechanisms=(sized,),
    )
    made.save(tmp_path / "c.json")
    with pytest.raises(InputError, match="a record counts as 0 or 1"):
        read_verified(tmp_path / "c.json")


def test_a_range_that_ends_between_doubles(tmp_path):
    """The double nearest to 1/10 is above it: taken as inside, it brought about a third output."""
    plan = MechanismFile(
        query="sum",
        column="v",
        group_by=("dataset",),
        domain=interval(0, "0.1"),
        epsilon=1.0,
        mechanisms=(),
        provenance={"layout": "widest"},
    )
    mechanism = replace(plan, mechanisms=(sized_quantizer(plan, 2),))
    guarantee, _, _ = guarantee_record(mechanism, None)
    replace(mechanism, guarantee=guarantee).save(tmp_path / "m.json")
    assert verify_file(tmp_path / "m.json").outputs == 2
    # One individual varies, and the other has the largest double below a threshold.
    other = math.nextafter(0.05, 0.0)
    lines = ["dataset,v"]
    for dataset, value in enumerate((0.0, 0.05, 0.1)):
        lines += [f"{dataset},{other!r}", f"{dataset},{value!r}"]
    (tmp_path / "in.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    with pytest.raises(InputError, match="lies outside the range"):
        apply_mechanism(tmp_path / "m.json", tmp_path / "in.csv", tmp_path / "out.csv")
    apply_mechanism(
        tmp_path / "m.json", tmp_path / "in.csv", tmp_path / "out.csv", outside="clip"
    )
    with open(tmp_path / "out.csv", encoding="utf-8", newline="") as stream:
        answers = {row["sum_v"] for row in csv.DictReader(stream)}
    assert len(answers) == 2
