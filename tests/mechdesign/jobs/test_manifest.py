from __future__ import annotations

import json
import math
import sys
from dataclasses import replace

import numpy as np
import pytest

import mechdesign
from mechdesign.auditing.population_promise import population_promise
from mechdesign.channel.channel import Channel
from mechdesign.channel.record import ChannelRecord
from mechdesign.core import documents as versions
from mechdesign.core.errors import InputError
from mechdesign.core.wording import factor_at_least, factor_at_most
from mechdesign.formats.cells import Encoded
from mechdesign.jobs.ledger import Drawn, Entry, Use
from mechdesign.jobs.manifest import Manifest, released_channel
from mechdesign.jobs.side_files import read_manifest
from mechdesign.release.drawing import Release, channel_digest
from mechdesign.release.draws import Key, RowNumbers
from mechdesign.release.samplers import Policy
from mechdesign.tables.joint import Joint
from mechdesign.tables.variable import Variable

D = 2**53
KEY = Key(bytes(range(32)))

# Numbers that occur nowhere else, so that a public manifest can be searched for them.
COUNTS = ((1013, 2027, 0), (0, 4051, 809))
SYMBOLS = (("a", 5), ("b", 7), ("c", 11))
MISSING, UNKNOWN = 2, 3
ACHIEVED = {
    "eps_l": 0.31337,
    "eps_u": 0.27182,
    "eps_ldp": math.inf,
    "worst": {"lift": math.inf},
}
DATASET, CHANNEL_FILE, OUTPUT = "d" * 64, "f" * 64, "0" * 64


@pytest.fixture
def channel() -> Channel:
    useful = Variable(("job",), (("a",), ("b",), ("c",)))
    joint = Joint(Variable(("rel",), (("w",), ("h",))), useful, COUNTS)
    return Channel(
        useful,
        ("c", "{a, b}"),
        ((0, D), (0, D), (D, 0)),
        joint=joint,
        record=ChannelRecord(
            notion={"name": "alip", "eps_l": 0.5, "eps_u": math.inf},
            achieved=ACHIEVED,
            provenance={"source": "hr.csv"},
        ),
    )


def column(
    channel, *, form="label", unknown="marginal", missing="output:c", names=("job",)
):
    """The column after 5, 7 and 11 records of a, b and c, two empty cells and three symbols that nobody knows."""
    release = Release(
        channel, KEY, policy=Policy(unknown=unknown, missing=missing), form=form
    )
    texts = ("a", "b", "c", "?")
    codes = (
        [i for i, (_, count) in enumerate(SYMBOLS) for _ in range(count)]
        + [-1] * MISSING
        + [3] * UNKNOWN
    )
    release.draw(
        [Encoded(np.array(codes, dtype=np.int64), texts, False)],
        RowNumbers(0, len(codes)),
    )
    use = Use(
        channel=release.digest,
        columns=("job",),
        form=form,
        unknown=unknown,
        missing=missing,
    )
    return released_channel(
        channel,
        release,
        use,
        names,
        given=(),
        sensitive=("rel",),
        channel_file=CHANNEL_FILE,
    )


@pytest.fixture
def manifest(channel) -> Manifest:
    return Manifest(
        output=OUTPUT,
        records=28,
        columns_before=("id", "rel", "job"),
        columns=("id", "job"),
        released=(column(channel),),
        dataset=DATASET,
    )


def words(manifest: Manifest, which: str, audience: str = "public") -> str:
    return " ".join(json.loads(manifest.text(audience))[which])


def test_both_can_be_read_again(manifest, tmp_path):
    for audience in ("public", "internal"):
        path = tmp_path / f"{audience}.json"
        path.write_text(manifest.text(audience), encoding="utf-8")
        found = read_manifest(path, audience)
        assert (found.output, found.records, found.columns) == (
            OUTPUT,
            28,
            ("id", "job"),
        )
        assert found.columns_before == ("id", "rel", "job")
        path.write_text(manifest.text(audience).replace("28", "29"), encoding="utf-8")
        with pytest.raises(InputError, match="the sha256 does not match the content"):
            read_manifest(path, audience)
    (tmp_path / "internal.json").write_text(manifest.text("internal"), encoding="utf-8")
    with pytest.raises(
        InputError,
        match=r"is not a manifest: its format is 'mechdesign\.internal-manifest'",
    ):
        read_manifest(tmp_path / "internal.json", "public")


def test_what_was_done(manifest, channel):
    found = json.loads(manifest.text("public"))
    assert found["released"] == [
        {
            "channel": channel_digest(channel),
            "columns": ["job"],
            "names": ["job"],
            "form": "label",
            "unknown": "marginal",
            "missing": "output:c",
            "normalise": "none",
            "trim": False,
            "missing_codes": [],
            "changed": "refuse",
            "draws": "independent",
            "given": [],
            "earlier_count": 0,
            "law_kept": False,
            "promise": "total",
            "sensitive": ["rel"],
            "notion": {"name": "alip", "eps_l": 0.5, "eps_u": "inf"},
        }
    ]
    assert (found["identity"], found["draw"], found["insecure_seed"]) == ([], 0, False)
    assert {"mechdesign", "pyarrow", "python"} <= set(found["versions"])


def test_the_internal_one_counts(manifest, channel):
    found = json.loads(manifest.text("internal"))
    assert (found["dataset"], found["earlier"]) == (DATASET, [])
    (released,) = found["released"]
    (counts,) = released["counts"]
    assert counts["symbols"] == [{"symbol": [s], "records": n} for s, n in SYMBOLS]
    assert (counts["empty_cells"], counts["unknown_symbols"]) == (MISSING, UNKNOWN)
    outputs = {entry["value"][0]: entry["records"] for entry in counts["outputs"]}
    assert sum(outputs.values()) == 28
    # c is released as it is, the empty cells as c, and the unknown ones as either
    assert 11 + MISSING <= outputs["c"] <= 11 + MISSING + UNKNOWN
    assert released["channel_file"] == CHANNEL_FILE
    assert released["achieved"] == {
        **ACHIEVED,
        "eps_ldp": "inf",
        "worst": {"lift": "inf"},
    }
    assert (released["table_records"], released["zero_cells"]) == (
        1013 + 2027 + 4051 + 809,
        2,
    )
    covers = " ".join(found["covers"])
    assert "7,900 records (2 cells zero)" in covers
    promise = population_promise(channel, channel.joint).achieved
    wanted = f"at most {factor_at_most(promise.eps_u)} times as likely as before, and at least "
    assert f"{wanted}{factor_at_least(promise.eps_l)} times." in covers
    assert "these 7,900 records are a sample of, with 95 % confidence" in covers


def test_the_public_one_tells_nothing_of_the_table_or_of_the_data(manifest, channel):
    found = json.loads(manifest.text("public"))
    text = manifest.text("public")
    for secret in (
        DATASET,
        CHANNEL_FILE,
        "0.31337",
        "0.27182",
        "hr.csv",
        *map(str, COUNTS[0][:2] + COUNTS[1][1:]),
    ):
        assert secret not in text
    assert not {"dataset", "earlier", "counts", "symbols"} & set(found)
    assert not {
        "counts",
        "achieved",
        "channel_file",
        "zero_cells",
    } & set(found["released"][0])
    # Any other table, and any other data with as many records, give the same public manifest.
    other = replace(
        channel, joint=replace(channel.joint, counts=((1, 1, 1), (1, 1, 1)))
    )
    other = replace(other, record=replace(channel.record, achieved=None))
    twin = replace(manifest, released=(column(other),), dataset="e" * 64)
    assert twin.text("public") == text
    assert twin.text("internal") != manifest.text("internal")


def test_no_key_and_no_time(manifest):
    for audience in ("public", "internal"):
        text = manifest.text(audience)
        assert KEY.secret.hex() not in text
        assert text == manifest.text(audience)
        assert not {"started", "finished", "time"} & set(json.loads(text))


def test_versions_of_a_bare_folder_of_sources(monkeypatch):
    monkeypatch.setattr(versions, "PACKAGES", ("pyarrow", "no such package"))
    found = versions.versions()
    assert found["no such package"] == "unknown"
    assert found["mechdesign"] == mechdesign.__version__
    assert found["python"] == ".".join(map(str, sys.version_info[:3]))


def test_what_it_covers(manifest, channel):
    covered = words(manifest, "covers")
    assert (
        "The column 'job' is released through a channel with the promise alip (eps_l 0.5, eps_u inf) for 'rel'."
        in (covered)
    )
    assert (
        "against an observer who knows the channel and the table that it was designed for, and nothing else"
        in (covered)
    )
    assert "on the population that its records come from, or on other data" in covered
    assert (
        "A record with a symbol that the channel does not know gets a value drawn as for a record of which"
        in covered
    )
    assert "empty cell" not in covered
    drawn = replace(manifest, released=(column(channel, form="posterior-draw"),))
    assert "The values are drawn from the symbols of 'job'" in words(drawn, "covers")
    told = manifest.released[0].description.model_copy(
        update={"notion": None, "sensitive": None}
    )
    silent = replace(manifest.released[0], description=told)
    assert "through a channel with no promise on record." in words(
        replace(manifest, released=(silent,)), "covers"
    )


def test_what_always_voids_it(manifest):
    voided = words(manifest, "voids")
    assert (
        "The column 'id' is kept as in the original data (--keep): whatever it tells of a record voids the promise."
        in voided
    )
    assert (
        "A record with an empty cell in 'job' gets 'c': what that tells of it, the promise does not cover."
        in voided
    )
    assert (
        "Other knowledge of 'job' voids it; so does a second independent release of the same records"
        in voided
    )


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            {"insecure_seed": True},
            "whoever guesses it undoes the release. This is for tests only.",
        ),
        (
            {"kept_private": ("rel",), "columns": ("rel", "job")},
            "The column 'rel' is left in the data, though sensitive",
        ),
        (
            {"columns": ("job", "id", "age")},
            "The columns 'id', 'age' are kept as in the original data (--keep): whatever they tell",
        ),
        (
            {"draw": 1},
            "released before, with 1 other draw: independent releases of a record can tell far more",
        ),
        ({"draw": 2}, "released before, with 2 other draws"),
        (
            {"other_channels": True},
            "Several channels have been applied to the same records",
        ),
        (
            {"identity": ("id",)},
            "A record is known by 'id': records that share it share random numbers",
        ),
    ],
)
def test_what_voids_it_here(manifest, change, sentence):
    assert sentence not in words(manifest, "voids")
    assert sentence in words(replace(manifest, **change), "voids")


def test_a_column_that_stays_beside_its_release(manifest, channel):
    added = replace(
        manifest,
        columns=("job", "safe job"),
        released=(column(channel, names=("safe job",)),),
    )
    said = "The column 'job' is left in the data beside the released values, which protect nothing then."
    assert said in words(added, "voids")
    two = replace(manifest, released=(column(channel), column(channel)))
    assert "Several channels have been applied" in words(two, "voids")


def test_earlier_releases_are_listed_inside(manifest):
    run = Entry(
        id="1",
        target="out.csv",
        drawn=(
            Drawn(
                use=Use(channel="c" * 64, columns=("job",), form="label"),
                job="rows 1",
                draw=0,
            ),
        ),
        state="done",
        started="",
        output=OUTPUT,
        records=1,
    )
    told = replace(manifest, draw=1, earlier=(run,))
    assert json.loads(told.text("internal"))["earlier"] == [
        {"draw": 0, "target": "out.csv", "output": OUTPUT}
    ]
    assert "out.csv" not in told.text("public")


def test_a_sentence_is_one_entry_whatever_columns_are_called(manifest):
    """Of the template, lines that go on are joined; what a name holds stays as it is."""
    odd = replace(manifest, columns=("job", "a  b\n  c {{ x }}"), identity=("{% y %}",))
    found = json.loads(odd.text("internal"))
    assert (
        "The column 'a  b\\n  c {{ x }}' is kept as in the original data (--keep): whatever it tells"
        in found["voids"][0]
    )
    assert (
        "A record is known by '{% y %}': records that share it share random numbers."
        in found["voids"]
    )
    for sentence in (*found["covers"], *found["voids"]):
        assert sentence == sentence.strip()
        assert sentence.endswith(".")
