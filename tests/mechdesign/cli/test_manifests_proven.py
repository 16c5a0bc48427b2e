"""`check` proves what the manifest beside a file states: an untouched one is never false, and an edited one
always."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

import mechdesign as md
from mechdesign.analysis.release_facts import manifest_of_either_kind
from mechdesign.core.documents import hashed_text
from mechdesign.jobs.manifest import ManifestVerdict, judge_manifest

RELEASE = "out.csv"
INCOME = {"north": [6, 3, 1], "south": [1, 3, 6]}


@pytest.fixture
def survey(folder):
    """survey.csv has 240 records: id, region, sex, job, age and the secret income; waves.csv has two records of 240
    people: person, wave, region, sex, and the income of the person."""
    rng = random.Random(7)
    records = ["id,region,sex,job,age,income"]
    waves = ["person,wave,region,sex,income"]
    for k in range(240):
        region = rng.choice(["north", "south"])
        income = rng.choices(["low", "middle", "high"], INCOME[region])[0]
        job = rng.choice(["clerk", "nurse", "smith"])
        sex = rng.choice("fm")
        records.append(f"{k},{region},{sex},{job},{rng.randint(20, 49)},{income}")
        for wave in (1, 2):
            seen = region if wave == 1 else rng.choice([region, "south"])
            waves.append(f"{k},{wave},{seen},{sex},{income}")
    (folder / "survey.csv").write_text("\n".join(records) + "\n")
    (folder / "waves.csv").write_text("\n".join(waves) + "\n")
    return folder


ONE = ("--useful", "region")
ROWS = ("--release", "region,job")
PEOPLE = ("--person", "person", "--wave", "wave", "--release", "region")
RELATIVE = ("--promise", "relative")
BOXES = (*ROWS, "--confidence", "0.9")
ALONE = ("--identity", "id")

NOT_CHECKED = ("boxes of strata",)
"""Shapes whose files `check` does not take."""

NOT_PUBLIC = ("an average", "filled boxes", "boxes of people")
"""Shapes without a public form."""

SHAPES = {
    "a column": (ONE, ALONE),
    "own symbols": ((*ONE, "--objective", "truth"), ALONE),
    "labels of another name": (
        ONE,
        ("--add", "area", "--keep", "all", "--drop", "income"),
    ),
    "a drawn symbol": (ONE, ("--as", "posterior-draw", *ALONE)),
    "bins within": (("--useful", "age", "--bin", "10"), ("--as", "within")),
    "bins, a median": (("--useful", "age", "--bin", "10"), ("--as", "representative")),
    "the population": ((*ONE, "--confidence", "0.9"), ALONE),
    "a secret of its own": (("--sensitive", "region", "--useful", "region"), ALONE),
    "weights": ((*ONE, "--weight", "age"), ALONE),
    "one side": ((*ONE, "--at-most-times", "2"), ALONE),
    "alpha-lift": ((*ONE, "--notion", "alpha", "--alpha", "inf"), ALONE),
    "a budget of one secret": ((*ONE, "--budget", "high=0.3,0.3"), ALONE),
    "an average": ((*ONE, "--average", "mi=0.01"), ALONE),
    "rows": (ROWS, ("--draws", "fixed")),
    "rows in random order": (ROWS, ("--shuffle",)),
    "independent rows": (ROWS, ("--draws", "independent")),
    "rows of another law": ((*ROWS, "--free-frequencies"), ()),
    "rows of information": ((*ROWS, "--objective", "information"), ()),
    "given columns": ((*ROWS, "--given", "sex"), ()),
    "kept columns": (ROWS, ("--keep", "sex,age")),
    "a kept secret": (ROWS, ("--keep", "income", "--keep-sensitive", "--keep-order")),
    "a correlated column": (
        ROWS,
        (
            "--keep",
            "sex,income",
            "--keep-sensitive",
            "--correlated",
            "sex",
            "--keep-order",
        ),
    ),
    "unknown rows": ((*ROWS, "--unknown", "nearest"), ALONE),
    "unknown cells": (
        ONE,
        ("--unknown", "marginal", "--missing", "output:mix-1", *ALONE),
    ),
    "a seed": (ROWS, ("--insecure-seed", "1")),
    "boxes": (BOXES, ()),
    "filled boxes": ((*BOXES, "--fill"), ()),
    "boxes of strata": ((*BOXES, "--given", "sex", *RELATIVE), ()),
    "merged symbols": (
        ("--useful", "age", "--confidence", "0.9", "--merge-rare", "20"),
        (),
    ),
    "people": (PEOPLE, ()),
    "people with a given column": ((*PEOPLE, "--given", "sex", *RELATIVE), ()),
    "boxes of people": (
        (*PEOPLE[:-1], "region,sex", "--confidence", "0.9", *RELATIVE),
        (),
    ),
    "packed": (ROWS, ("--compress", "gzip")),
    "formulas": (ROWS, ("--escape-formulas",)),
    "changed symbols": (ONE, ("--changed", "redraw", *ALONE)),
}


QUICK = (
    "a column",
    "bins, a median",
    "the population",
    "an average",
    "rows",
    "given columns",
    "a correlated column",
    "unknown cells",
    "filled boxes",
    "boxes of strata",
    "merged symbols",
    "people",
    "boxes of people",
)
"""Shapes that have little in common; the others are tried with the slow tests."""


def all_shapes():
    for shape in SHAPES:
        yield pytest.param(shape, marks=[] if shape in QUICK else [pytest.mark.slow])


def released(run, design, apply):
    """Design a channel, and release its table through it with both manifests."""
    secret = () if "--sensitive" in design else ("--sensitive", "income")
    has_budget = "--average" in design or "--at-most-times" in design
    budget = () if has_budget else ("--epsilon", "1")
    table = "waves.csv" if "--person" in design else "survey.csv"
    made = run("design", table, *secret, *design, *budget, "--output", "c.json")
    assert made.code == 0, made.err
    ledger = () if "--insecure-seed" in apply else ("--ledger", "l.db")
    line = ("apply", "c.json", table, RELEASE, "--manifest", f"{RELEASE}.manifest.json")
    done = run(*line, *apply, *ledger, "--internal-manifest", "inside.json", "--force")
    assert done.code == 0, done.err


def faults(run, *options):
    """The findings of `check` on the manifest beside the release, and the notices on it."""
    result = run("check", RELEASE, *options, "--json")
    assert result.out, result.err
    found = [f["text"] for f in result.record["findings"] if f["kind"] == "manifest"]
    assert not found or result.code == 1
    return found, [n for n in result.record["notices"] if "beside it" in n]


def rewrite(path, edit):
    """Edit a manifest and renew its hash."""
    content = json.loads(Path(path).read_text())
    del content["sha256"]
    edit(content)
    kind, version = content.pop("format"), content.pop("version")
    Path(path).write_text(hashed_text(kind, version, content))


def edits(content):
    """Functions that make a manifest false, one by one."""
    for kind in ("covers", "voids"):
        for place in range(len(content[kind])):
            yield lambda c, k=kind, p=place: c[k].pop(p)
        yield lambda c, k=kind: c[k].append("All is safe.")
        if len(content[kind]) > 1:
            yield lambda c, k=kind: c[k].append(c[k].pop(0))
    yield lambda c: c["released"][0].update(notion={"name": "lip", "epsilon": 0.1})
    yield lambda c: c["released"][0].update(promise="none")
    yield lambda c: c.update(whole_file=not c["whole_file"])


def options_of_check(apply):
    """The options of `apply` that `check` takes, too."""
    options = []
    for place, word in enumerate(apply):
        if word in ("--as", "--correlated"):
            options += [word, apply[place + 1]]
        if word == "--add":
            options += ["--released-column", apply[place + 1]]
        if word in ("--escape-formulas", "--keep-sensitive"):
            options.append(word)
    return options


@pytest.mark.parametrize("shape", [*all_shapes()])
def test_an_untouched_manifest_is_never_false_and_an_edited_one_always(
    survey, run, shape
):
    design, apply = SHAPES[shape]
    released(run, design, apply)
    options = ["--channel", "c.json", *options_of_check(apply)]
    beside = survey / f"{RELEASE}.manifest.json"
    channel = md.load("c.json")
    for text in (beside.read_text(), (survey / "inside.json").read_text()):
        beside.write_text(text)
        manifest = manifest_of_either_kind(beside)
        assert judge_manifest(manifest, channel) == ManifestVerdict()
        if shape not in NOT_CHECKED:
            assert faults(run, *options) == ([], [])
        for edit in edits(json.loads(text)):
            beside.write_text(text)
            rewrite(beside, edit)
            verdict = judge_manifest(manifest_of_either_kind(beside), channel)
            assert verdict.fault is not None
        if shape not in NOT_CHECKED:
            found, _ = faults(run, *options)
            assert len(found) == 1
            assert found[0].startswith("the manifest beside it (FILE.manifest.json) is")
        # A reader has the public form, which proves no figures of the table.
        if shape not in NOT_PUBLIC:
            verdict = judge_manifest(manifest, channel.public())
            assert verdict.fault is None
            # The records that decide boxes are drawn at random: rarely no stratum releases anything.
            assert len(verdict.stated) == bool(channel.channels)


def test_boxes_of_too_few_people_are_refused_with_the_remedy(survey, run):
    whole = (survey / "waves.csv").read_text().splitlines()
    (survey / "few.csv").write_text("\n".join(whole[:121]) + "\n")
    line = ("design", "few.csv", "--sensitive", "income", *PEOPLE, *RELATIVE)
    refused = run(*line, "--confidence", "0.9", "--epsilon", "0.1", "--output", "c")
    assert refused.code == 1
    assert (
        "no part of the table has enough people for boxes of sequences" in refused.err
    )


def test_a_manifest_of_several_channels_is_proven_by_each(survey, run):
    secret = ("--sensitive", "income", "--epsilon", "1")
    for name in ("region", "job"):
        line = ("design", "survey.csv", *secret, "--useful", name)
        assert run(*line, "--output", f"{name}.json").code == 0
    line = ("apply", "region.json", "survey.csv", RELEASE, "--also", "job.json")
    assert run(*line, "--ledger", "l.db").code == 0
    beside = f"{RELEASE}.manifest.json"
    text = Path(beside).read_text()
    for name, other in (("region", "job"), ("job", "region")):
        options = ("--channel", f"{name}.json", "--ignore", other)
        Path(beside).write_text(text)
        found, stated = faults(run, *options)
        assert found == []
        assert [note for note in stated if "of other channels is a statement" in note]
        rewrite(beside, lambda c: c["covers"].reverse())
        found, _ = faults(run, *options)
        assert len(found) == 1


def test_the_manifest_in_a_released_folder_is_proven(survey, run):
    (survey / "in" / "dt=1").mkdir(parents=True)
    (survey / "in" / "dt=1" / "a.csv").write_text((survey / "survey.csv").read_text())
    line = ("design", "survey.csv", "--sensitive", "income", *ROWS, "--epsilon", "1")
    assert run(*line, "--output", "c.json").code == 0
    done = run("apply", "c.json", "in", "out", "--ledger", "l.db", "--shuffle")
    assert done.code == 0, done.err
    check = ("check", "out/dt=1/a.csv", "--channel", "c.json")
    assert run(*check).code == 0
    rewrite("out/_manifests/dt=1/a.csv.json", lambda c: c["voids"].clear())
    result = run(*check)
    assert result.code == 1
    assert "is false: it leaves out" in result.out


def test_sentences_of_another_version_are_called_a_statement(survey, run):
    released(run, *SHAPES["rows"])
    beside = f"{RELEASE}.manifest.json"

    def older(content):
        content["versions"]["mechdesign"] = "0.0.1"
        content["covers"] = ["In other words."]

    rewrite(beside, older)
    found, stated = faults(run, "--channel", "c.json")
    assert found == []
    assert any("mechdesign '0.0.1' wrote them" in note for note in stated)
    rewrite(beside, lambda c: c["released"][0].update(notion={"name": "lip"}))
    found, _ = faults(run, "--channel", "c.json")
    assert len(found) == 1


@pytest.mark.parametrize(
    ("edit", "told"),
    [
        (lambda c: c.update(kept_private=[]), "among the sensitive columns"),
        (lambda c: c.update(draw=3), "it leaves out"),
        (lambda c: c["columns"].remove("income"), "other columns than it has"),
    ],
)
def test_what_a_job_cannot_have_done_is_false(survey, run, edit, told):
    released(run, *SHAPES["a kept secret"])
    rewrite(f"{RELEASE}.manifest.json", edit)
    found, _ = faults(run, "--channel", "c.json", "--keep-sensitive")
    assert told in found[0]


def test_a_promise_for_readers_of_the_whole_file_needs_a_release_that_keeps_it(
    survey, run
):
    """All sentences are those of such a release, and the entry that no sentence shows is not."""
    released(run, *SHAPES["rows in random order"])
    rewrite(f"{RELEASE}.manifest.json", lambda c: c.update(draw=1))
    content = json.loads(Path(f"{RELEASE}.manifest.json").read_text())
    assert content["whole_file"]
    found, _ = faults(run, "--channel", "c.json")
    assert "for readers of the whole file that nothing proves" in found[0]


def test_estimates_use_no_false_manifest(survey, run):
    released(run, *SHAPES["unknown cells"])
    beside = f"{RELEASE}.manifest.json"
    line = ("estimate", RELEASE, "--channel", "c.json")
    unknown = "no valid manifest of it says whether draws"
    assert unknown not in " ".join(run(*line).out.split())
    rewrite(beside, lambda c: c["covers"].append("All is safe."))
    assert unknown in " ".join(run(*line).out.split())
    refused = run(*line, "--manifest", beside)
    assert refused.code == 2
    assert "out.csv.manifest.json is false: it says 'All is safe.'" in refused.err


JUDGE = ("judge", RELEASE, "--original", "survey.csv", "--sensitive", "income")


def test_figures_need_the_channel_that_released_the_file(survey, run):
    """Another channel has the same outputs, so that only the manifest tells them apart."""
    released(run, *SHAPES["own symbols"])
    design = ("design", "survey.csv", "--sensitive", "income", "--force")
    other = (*design, *ONE, "--objective", "truth", "--epsilon", "0.01")
    assert run(*other, "--output", "other.json").code == 0
    for line in (("estimate", RELEASE), JUDGE):
        assert run(*line, "--channel", "c.json").code == 0
        refused = run(*line, "--channel", "other.json")
        assert refused.code == 2
        assert "out.csv.manifest.json has no release through this channel" in (
            refused.err
        )


def test_what_a_channel_never_gives_is_not_bounded_by_it(survey, run):
    """Values of another form are believed to come from its outputs where the manifest says so."""
    released(run, *SHAPES["a drawn symbol"])
    bounded = "Of the people whom any rule picks"
    said = "no manifest beside the file says that it released them"
    stated = " ".join(run(*JUDGE, "--channel", "c.json").out.split())
    assert bounded in stated
    assert said not in stated
    Path(f"{RELEASE}.manifest.json").unlink()
    alone = " ".join(run(*JUDGE, "--channel", "c.json").out.split())
    assert bounded not in alone
    assert said in alone


def test_the_manifest_of_a_channel_after_another_is_proven(survey, run):
    released(run, *SHAPES["a column"])
    after = ("--after", "first.json", "--release", "job", "--epsilon", "1")
    (survey / "c.json").rename(survey / "first.json")
    line = ("design", "survey.csv", "--sensitive", "income", *after)
    assert run(*line, "--output", "c.json").code == 0
    apply = ("apply", "c.json", "survey.csv", RELEASE, "--force", "--ledger", "l.db")
    assert run(*apply, "--shuffle").code == 0
    assert faults(run, "--channel", "c.json") == ([], [])
    rewrite(f"{RELEASE}.manifest.json", lambda c: c.update(whole_file=True))
    found, _ = faults(run, "--channel", "c.json")
    assert len(found) == 1


def test_estimates_take_no_fixed_counts_from_a_false_manifest(survey, run):
    line = ("estimate", RELEASE, "--channel", "c.json", "--of", "region")
    released(run, *SHAPES["rows"])
    said = " ".join(run(*line).out.split())
    assert "the errors are those of the sample alone" in said
    said = " ".join(run(*line, "--target", "records").out.split())
    assert "so that nothing but rounding separates these shares" in said
    (survey / "c.json").unlink()
    released(run, SHAPES["rows"][0], ("--draws", "independent", "--fresh-draw"))
    assert "Its counts were fixed" not in " ".join(run(*line).out.split())
    edit = f"{RELEASE}.manifest.json"
    rewrite(edit, lambda c: c["released"][0].update(draws="fixed"))
    assert "Its counts were fixed" not in " ".join(run(*line).out.split())
