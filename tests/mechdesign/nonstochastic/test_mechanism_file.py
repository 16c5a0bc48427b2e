"""Mechanism files: what is written is read back, and everything else is refused."""

from __future__ import annotations

import pickle
from fractions import Fraction

import pytest

from mechdesign.core.errors import InputError
from mechdesign.nonstochastic.mechanism_file import MechanismFile, SizedQuantizer
from mechdesign.nonstochastic.noiseless import certify, lay_out
from mechdesign.nonstochastic.queries import build_query, interval
from tests.cases.documents import rewrite


def sized(query, people, domain, outputs, layout="widest"):
    asked = build_query(query, people, domain)
    quantizer = lay_out(*asked.range, asked.sensitivity, outputs, layout)
    return SizedQuantizer(people, quantizer, certify(asked, quantizer))


@pytest.fixture
def mechanism():
    domain = interval(0, 0.1)
    return MechanismFile(
        query="mean",
        column="kwh",
        group_by=("day", "region"),
        domain=domain,
        epsilon=2.5,
        mechanisms=tuple(
            sized("mean", n, domain, 5, layout)
            for n, layout in ((1, "uniform"), (7, "widest"), (7, "levels"))
        ),
        guarantee={"outputs": 5, "note": "größer"},
        provenance={"tool": "mechdesign"},
    )


def test_round_trip(mechanism, tmp_path):
    path = tmp_path / "m.json"
    mechanism.save(path)
    assert MechanismFile.load(path) == mechanism
    with pytest.raises(InputError, match="exists"):
        mechanism.save(path)
    mechanism.save(path, overwrite=True)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("query", ["identity", "sum", "count"])
def test_other_queries(query, tmp_path):
    domain = interval(0, 1)
    held = MechanismFile(
        query=query,
        column="x",
        group_by=(),
        domain=domain,
        epsilon=1.0,
        mechanisms=(sized(query, 1 if query == "identity" else 9, domain, 2),),
    )
    held.save(tmp_path / "m.json")
    assert MechanismFile.load(tmp_path / "m.json") == held


def first(document):
    return document["mechanisms"][0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda d: d.update(query="mode"),
            r"query \('mode'\) must be identity, mean, sum, count, median, min, max or quantile:P",
        ),
        (
            lambda d: d.update(epsilon=1.0, outputs_allowed=2),
            "has 5 outputs where the file says '5' and 2 are allowed",
        ),
        (lambda d: d.update(epsilon="2.5"), r"epsilon \('2\.5'\) must be a number"),
        (lambda d: d.update(epsilon=-1), "fewer than one output"),
        (lambda d: d.update(outputs_allowed=9), "is not floor"),
        (
            lambda d: d.update(mechanisms=[]),
            "mechanisms .* must have at least 1 entries",
        ),
        (lambda d: d.update(mechanisms=7), "mechanisms .* must be a list"),
        (
            lambda d: d.update(mechanisms=[7]),
            r"mechanisms\[0\] \('7'\) must be an object",
        ),
        (lambda d: d.update(column=7), "column .* must be text"),
        (lambda d: d.update(range=["1", "0"]), "reversed"),
        (lambda d: d.update(range=["0"]), "range has too few entries"),
        (
            lambda d: d.update(range=["0", "1e999999999"]),
            r"range\[[01]\] .* must be (an exact fraction|text)",
        ),
        (
            lambda d: d.update(range=["0", "1/0"]),
            r"range\[[01]\] .* must be (an exact fraction|text)",
        ),
        (
            lambda d: d.update(range=[0, 1]),
            r"range\[[01]\] .* must be (an exact fraction|text)",
        ),
        (lambda d: d.update(range=["0", "1"]), "beyond the quantiser"),
        (lambda d: first(d).update(outputs=4), "has 5 outputs where the file says '4'"),
        (lambda d: first(d).pop("witness"), r"mechanisms\[0\] has no 'witness'"),
        (lambda d: first(d).update(individuals=0), "individuals"),
        (lambda d: first(d).update(individuals=True), "individuals"),
        (lambda d: first(d).update(thresholds=["1/20", "1/20"]), "increase strictly"),
        (
            lambda d: first(d).update(thresholds={"first": "1/50", "step": "1/50"}),
            r"mechanisms\[0\]\.thresholds has no 'number'",
        ),
        (
            lambda d: first(d).update(
                thresholds={"first": "1/50", "step": "1/50", "number": 10**9}
            ),
            "number .* must be at most 1,000,000",
        ),
        (lambda d: d.update(more=1), "unknown key 'more'"),
        (lambda d: d.pop("guarantee"), "has no 'guarantee'"),
    ],
)
def test_contents_that_are_refused(mechanism, tmp_path, change, message):
    """Even with a hash that fits."""
    path = tmp_path / "m.json"
    mechanism.save(path)
    rewrite(path, change)
    with pytest.raises(InputError, match=message) as refusal:
        MechanismFile.load(path)
    assert str(path) in str(refusal.value)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda text: text[: len(text) // 2], "truncated"),
        (lambda text: "", "is empty, not a mechanism file"),
        (lambda text: "a,b\n1,2\n", "not JSON"),
        (lambda text: "[]", "is not a mechanism file: it has no format"),
        (lambda text: text.replace('"kwh"', '"kw"'), "sha256 does not match"),
        (lambda text: text.replace('"version": 1', '"version": 2'), "version '2'"),
        (lambda text: text.replace('"version": 1', '"version": true'), "version"),
        (
            lambda text: text.replace("mechdesign.quantizer", "mechdesign.channel"),
            "its format is",
        ),
        (lambda text: text.replace('"column"', '"query"'), "occurs twice"),
        (
            lambda text: text.replace('"epsilon": 2.5', '"epsilon": 1e999'),
            "that no mechanism file can hold",
        ),
        (
            lambda text: text.replace('"epsilon": 2.5', f'"epsilon": {"9" * 5000}'),
            "thousands of digits",
        ),
        (lambda text: "[" * 100_000, "nested too deeply"),
    ],
)
def test_files_that_are_refused(mechanism, tmp_path, damage, message):
    path = tmp_path / "m.json"
    mechanism.save(path)
    path.write_text(damage(path.read_text(encoding="utf-8")), encoding="utf-8")
    with pytest.raises(InputError, match=message):
        MechanismFile.load(path)


def test_no_file(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        MechanismFile.load(tmp_path / "none.json")
    with pytest.raises(InputError, match="is a folder"):
        MechanismFile.load(tmp_path)
    (tmp_path / "p.json").write_bytes(pickle.dumps(Fraction(1, 2)))
    with pytest.raises(InputError, match="pickle, which is never opened"):
        MechanismFile.load(tmp_path / "p.json")
    (tmp_path / "l.json").write_bytes(b"\xff\xfe{}")
    with pytest.raises(InputError, match="no UTF-8"):
        MechanismFile.load(tmp_path / "l.json")
