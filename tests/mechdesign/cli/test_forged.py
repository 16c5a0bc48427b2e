"""A channel file that was edited, with a hash that fits: nothing goes out, and nothing repeats it."""

from __future__ import annotations

import json

import pandas as pd
import pytest

import mechdesign as md
from mechdesign.core.errors import NotPrivate
from tests.cases.documents import rewrite
from tests.mechdesign.auditing.test_stated import to_identity

BROKEN = "breaks its promise alip"


@pytest.fixture
def forged(channel):
    """The channel publishes the column itself, and its hash is renewed."""
    rewrite(channel, to_identity)
    return channel


@pytest.mark.parametrize(
    "command",
    [
        ("apply", "channel.json", "records.csv", "out.csv"),
        ("apply", "channel.json", "records.csv", "out.csv", "--dry-run"),
        ("export", "channel.json", "--output", "out.sql"),
        ("check", "records.csv", "--channel", "channel.json", "--any-data"),
    ],
)
def test_nothing_goes_out(folder, run, forged, command):
    result = run(*command)
    assert result.code == 1
    assert BROKEN in result.err
    assert result.err.count("\n") == 1
    assert not (folder / "out.csv").exists()
    assert not (folder / "out.sql").exists()


def test_python_refuses_too(folder, forged):
    channel = md.load(forged)
    frame = pd.read_csv(folder / "records.csv")
    with pytest.raises(NotPrivate, match=BROKEN):
        md.sanitise(frame, channel)
    with pytest.raises(NotPrivate, match=BROKEN):
        md.export(channel)
    with pytest.raises(NotPrivate, match=BROKEN):
        md.check(channel, folder / "records.csv")


def test_show_says_that_the_table_disproves_it(run, forged):
    result = run("show", forged)
    assert result.code == 1
    assert "but its own table disproves it" in " ".join(result.out.split())
    assert "Stated, and false: a released value" in result.out
    assert "Promised" not in result.out
    assert run("show", forged, "--json").record["satisfied"] is False
    assert run("show", forged, "--csv").code == 1


def test_show_of_a_good_file_and_of_a_public_one(folder, run, channel):
    result = run("show", channel)
    assert result.code == 0
    assert "(verified on its own table)" in result.out
    assert "Promised: a released value" in result.out
    record = run("show", channel, "--json").record
    assert record["satisfied"] is True
    assert record["certificate"]["scope"] == "stated"
    md.load(channel).save(folder / "public.json", public=True)
    result = run("show", folder / "public.json")
    assert result.code == 0
    assert "The file states the promise" in result.out
    assert "Stated, not checked: a released value" in result.out
    assert run("show", folder / "public.json", "--json").record["satisfied"] is None


def test_a_manifest_calls_an_unchecked_promise_a_statement(folder, run, channel):
    md.load(channel).save(folder / "public.json", public=True)
    common = ("records.csv", "--ledger", "l.db", "--keep-order")
    assert run("apply", "public.json", common[0], "a.csv", *common[1:]).code == 0
    manifest = json.loads((folder / "a.csv.manifest.json").read_text())
    covers = " ".join(manifest["covers"])
    assert "through a channel that states the promise alip" in covers
    assert "was not checked before this release" in covers
    assert (
        run("apply", channel, common[0], "b.csv", *common[1:], "--fresh-draw").code == 0
    )
    covers = " ".join(
        json.loads((folder / "b.csv.manifest.json").read_text())["covers"]
    )
    assert "through a channel with the promise alip" in covers
    assert "was not checked" not in covers


def test_audit_compares_the_figures_of_the_file(run, channel):
    good = run("audit", channel)
    assert good.code == 0
    text = " ".join(good.out.split())
    assert "Computed again and right: eps_l, eps_ldp, eps_u," in text
    assert "Stated by the file, not proven again here: upper_bound_nmi." in text
    nmi = run("audit", channel, "--json").record
    assert nmi["figures"]["wrong"] == []

    rewrite(channel, lambda document: document["utility"].update(nmi=0.999))
    bad = run("audit", channel)
    assert bad.code == 1
    assert "The file states nmi 0.999, but its integers" in " ".join(bad.out.split())
    wrong = run("audit", channel, "--json").record["figures"]["wrong"]
    assert wrong[0]["name"] == "nmi"
    # On another table the figures of the file are about nothing.
    assert (
        "figures"
        not in run("audit", channel, "--table", "records.csv", "--json").record
    )


@pytest.mark.parametrize("bound", [0.001, 0.9999])
def test_a_forged_certificate(folder, run, channel, bound):
    def forge(document):
        nmi = document["utility"]["nmi"]
        gap = max(0.0, bound - nmi)
        document["certificate"].update(upper_bound_nmi=bound, gap_nmi=gap)

    rewrite(channel, forge)
    result = run("report", channel, "--report", "r.md", "--curve", "0")
    if bound < 0.5:
        assert result.code == 1
        assert "states upper_bound_nmi 0.001 for all channels" in result.err
        assert run("audit", channel).code == 1
        return
    assert result.code == 0
    text = " ".join((folder / "r.md").read_text().split())
    assert "of the best possible (stated by the file, not proven again here)" in text
    # The first figures of the page are read alone.
    assert (
        "No channel with this promise keeps more than (stated by the file): **&lt;100 %"
        in text
    )
    assert "(proven)" not in text


def test_a_design_of_the_same_run_is_proven(folder, run):
    asked = ("--sensitive", "group", "--useful", "job", "--epsilon", "1")
    result = run(
        "design",
        "records.csv",
        *asked,
        "--output",
        "d.json",
        "--report",
        "d.md",
        "--curve",
        "0",
    )
    assert result.code == 0, result.err
    assert "(proven)" in (folder / "d.md").read_text()
    assert "not proven again" not in (folder / "d.md").read_text()


def test_audit_proves_the_bounds_again(folder, run, channel):
    good = run("audit", channel, "--certificate")
    assert good.code == 0
    text = " ".join(good.out.split())
    assert "Proven again from the certificate in the file: upper_bound_nmi 0." in text
    assert "Stated by the file" not in text
    figures = run("audit", channel, "--certificate", "--json").record["figures"]
    assert figures["stated"] == []
    bound = md.load(channel).record.certificate["upper_bound_nmi"]
    assert figures["proven"]["upper_bound_nmi"] == pytest.approx(bound, abs=1e-9)

    report = ("report", channel, "--report", "r.md", "--curve", "0", "--force")
    assert run(*report).code == 0
    stated = (folder / "r.md").read_text()
    assert "stated by the file, not proven again here" in stated
    assert run(*report, "--certificate").code == 0
    again = (folder / "r.md").read_text()
    assert "not proven again" not in again
    assert "stated by the file" not in again
    assert "proven" in again


def test_a_bound_without_its_proof_fails(folder, run, channel):
    nmi = md.load(channel).record.utility["nmi"]

    def forge(document):
        certificate = document["certificate"]
        certificate |= {"upper_bound_nmi": nmi + 1e-12, "gap_nmi": 1e-12}
        prices = certificate["proof"]["prices"]
        certificate["proof"]["prices"] = [price - 0.1 for price in prices]
        certificate["proof"]["prices"][0] += 0.5

    rewrite(channel, forge)
    assert run("audit", channel).code == 0
    bad = run("audit", channel, "--certificate")
    assert bad.code == 1
    text = " ".join(bad.out.split())
    assert "The bound upper_bound_nmi 0." in text
    assert "is not proven, for the proof gives" in text
    figures = run("audit", channel, "--certificate", "--json").record["figures"]
    assert figures["unproven"][0]["name"] == "upper_bound_nmi"
    report = run("report", channel, "--report", "r.md", "--certificate")
    assert report.code == 1
    assert "is not proven, for the proof gives" in report.err
    assert not (folder / "r.md").exists()


NO_TIME = ("--certificate", "--time-limit", "1e-9")


def test_a_proof_that_takes_too_long_is_no_proof(folder, run, channel):
    late = run("audit", channel, *NO_TIME)
    # 1 would say that the promise or the bound does not hold, which nobody knows.
    assert late.code == 3
    text = " ".join(late.out.split())
    assert "The bound upper_bound_nmi 0." in text
    assert "is not proven: the time was over before the proof was" in text
    assert "allow more (--time-limit)" in text
    assert "Proven again" not in text
    figures = run("audit", channel, *NO_TIME, "--json").record["figures"]
    assert figures["proven"] == {}
    assert figures["unproven"][0]["out_of_time"] is True
    report = run("report", channel, "--report", "r.md", *NO_TIME)
    assert report.code == 3
    assert "is not proven: the time was over before the proof was" in report.err
    assert not (folder / "r.md").exists()
    in_time = run("audit", channel, "--certificate", "--time-limit", "none")
    assert in_time.code == 0


def test_what_is_wrong_is_wrong_without_time(run, channel):
    def forge(document):
        document["utility"]["nmi"] += 0.01

    rewrite(channel, forge)
    assert run("audit", channel, *NO_TIME).code == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--time-limit", "5"), "--time-limit belongs to --certificate"),
        (("--certificate", "--time-limit", "0"), "--time-limit ('0') must be a pos"),
    ],
)
def test_a_limit_is_for_a_proof(run, channel, words, message):
    for verb in (("audit", channel), ("report", channel, "--report", "r.md")):
        result = run(*verb, *words)
        assert result.code == 2
        assert message in result.err


@pytest.mark.parametrize(
    "words",
    [
        ("audit", "--matrix", "w.csv", "--table", "records.csv", "--certificate"),
        ("audit", "public.json", "--certificate"),
        ("report", "public.json", "--public-report", "p.md", "--certificate"),
    ],
)
def test_a_certificate_needs_a_file_with_its_table(folder, run, channel, words):
    md.load(channel).save(folder / "public.json", public=True)
    result = run(*words)
    assert result.code == 2
    assert "--certificate is for the file of a channel that has its table" in result.err


def test_a_certificate_is_about_the_table_of_the_file(run, channel):
    result = run("audit", channel, "--certificate", "--epsilon", "1")
    assert result.code == 2
    assert "on its own table and for its own promise" in result.err


def test_a_certificate_after_an_earlier_release(folder, run, channel):
    table = md.Joint.from_counts([[30, 10, 20], [10, 25, 15]])
    first = md.design(table, md.LIP(0.1)).channel
    first.save(folder / "first.json")
    second = md.design(table, md.LIP(0.3), after=[first]).channel
    second.save(folder / "second.json")
    alone = run("audit", "second.json", "--certificate")
    assert alone.code == 1
    assert "which its file does not have" in " ".join(alone.out.split())
    both = run("audit", "second.json", "--certificate", "--after", "first.json")
    assert both.code == 0
    text = " ".join(both.out.split())
    assert "Proven again from the certificate in the file: upper_bound_nmi 0." in text
    # Another table is one of other bounds.
    refused = run("audit", channel, "--certificate", "--table", "records.csv")
    assert refused.code == 2
    assert "leave --table (but with --after) and budgets out" in refused.err
