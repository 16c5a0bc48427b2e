"""Reports of every mechanism, notion and size: what they say is right, and all formats say it."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mechdesign as md
from mechdesign import mechanisms
from mechdesign.auditing.leakages import lift_range
from mechdesign.auditing.measures import measure
from mechdesign.auditing.verdict import audit_on_table
from mechdesign.channel.channel import Channel
from mechdesign.channel.record import ChannelRecord
from mechdesign.comparison import curve
from mechdesign.core.errors import SolverFailure
from mechdesign.mechanisms import by_rules
from mechdesign.notions import to_record
from mechdesign.report import (
    blocks,
    collect,
    law_section,
    writing,
)
from mechdesign.report.collect import design_behind
from mechdesign.report.content import public_report
from mechdesign.report.document import document_of
from mechdesign.report.record import LeastKept
from mechdesign.tables.joint import Joint
from mechdesign.tables.variable import Variable
from tests.cases.designs import uniform_table
from tests.mechdesign.report import report_cases as cases
from tests.profiles import slow


def tiny() -> Joint:
    return Joint.from_counts([[30, 10], [10, 30]])


def one_output(joint: Joint) -> tuple[Channel, md.Notion]:
    rows = [[2**53]] * len(joint.useful)
    notion = md.ALIP(0.5, 0.5)
    record = ChannelRecord(notion=to_record(notion))
    return Channel(joint.useful, ("all",), rows, joint=joint, record=record), notion


def documented_texts(document: blocks.Document) -> list[str]:
    """Every text that a renderer has to show."""
    found = [document.title, document.banner, document.lead, document.footer]
    found += [text for pair in document.highlights for text in pair]
    for section in document.sections:
        found.append(section.title)
        for block in section.blocks:
            match block:
                case blocks.Text(text) | blocks.Remark(text):
                    found.append(text)
                case blocks.Bullets(items):
                    found += items
                case blocks.Facts(items) | blocks.Lines(items):
                    found += [text for pair in items for text in pair]
                case blocks.Grid():
                    found += [block.caption, *block.header]
                    found += [cell.text for row in block.rows for cell in row]
                case _:
                    pass
    return found


def assert_document(report, joint, channel, notion):
    """All formats hold the whole document, the page is valid, and the numbers are those of the channel."""
    texts = cases.texts(report)
    page = cases.parsed(texts[".html"])
    assert page.faults == []
    assert len(page.ids) == len(set(page.ids))
    plain = (
        texts[".md"]
        .replace("\\", "")
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&")
    )
    for text in documented_texts(document_of(report)):
        assert text in page.text
        assert text.replace("\\", "") in plain
    record = cases.record(report)
    verdict = audit_on_table(channel, joint, notion)
    assert record["promise"]["satisfied"] is verdict.satisfied
    for side in ("eps_l", "eps_u", "eps_ldp"):
        wanted = getattr(verdict.achieved, side)
        assert record["promise"]["achieved"][side] == (
            wanted if math.isfinite(wanted) else "inf"
        )
    lifts = np.array(record["after"]["values"])
    expected = (joint.p @ channel.matrix) / np.outer(
        joint.p_s, joint.p_x @ channel.matrix
    )
    assert lifts == pytest.approx(expected, rel=1e-9, abs=1e-12)
    assert np.array(record["before"]["values"]) == pytest.approx(joint.lift)
    rebuilt = [[0] * len(channel.outputs) for _ in channel.rows]
    for row, entries in zip(rebuilt, record["channel"]["rows"], strict=True):
        for entry in entries:
            row[entry["output"]] = entry["weight"]
    assert rebuilt == [list(row) for row in channel.rows]
    for meaning, posterior in zip(record["codebook"], channel.posteriors, strict=True):
        shares = dict(map(tuple, meaning["posterior"]))
        names = channel.useful.names
        assert [shares.get(name, 0.0) for name in names] == pytest.approx(posterior)
    return record


@pytest.mark.parametrize("mechanism", mechanisms.MECHANISMS)
def test_every_mechanism(mechanism):
    joint = uniform_table(6, m=3)
    design = md.design(joint, md.ALIP(0.3, 0.4), mechanism=mechanism)
    record = assert_document(
        cases.both(design, joint)[0], joint, design.channel, design.notion
    )
    assert record["kept"]["nmi"] == design.nmi
    assert record["kept"]["upper_bound_nmi"] == design.certificate.upper_bound_nmi
    assert {row["mechanism"] for row in record["curve"]["rows"]} == {
        mechanism,
        "optimal",
    }
    chosen = record["curve"]["chosen"]
    assert chosen in record["curve"]["rows"]
    assert (chosen["nmi"], chosen["epsilon"]) == (design.nmi, pytest.approx(0.7))
    assert chosen["upper_bound_nmi"] >= chosen["nmi"]


@pytest.mark.parametrize(
    ("notion", "words"),
    [
        (md.ALIP(0.3, 0.5), "0.74081 to 1.6488 times as probable"),
        (md.ALIP(math.inf, 0.4), "at most 1.4919 times as probable"),
        (md.ALIP(0.4, math.inf), "at least 0.67032 times as probable"),
        (md.LIP(0.4), "0.67032 to 1.4919 times as probable"),
        (md.LDP(0.8), "no released value is more than 2.2256 times as likely"),
        (md.MaxLift(0.4), "at most 1.4919 times as probable"),
        (md.MinLift(0.4), "at least 0.67032 times as probable"),
        slow(
            md.L1Lift(0.3, 0.3),
            "A single value of sensitive can become much more or less likely",
        ),
        (
            md.L1Lift(math.inf, 0.3),
            "A single value of sensitive can become much more or less likely",
        ),
        (
            md.Chi2Lift(0.3, 0.3),
            "A single value of sensitive can become much more or less likely",
        ),
        (md.AlphaLift(0.3, 0.3, 3.0), "the mean of l^3 is at most exp(3 * 0.3)"),
    ],
)
def test_every_notion(notion, words):
    joint = uniform_table(5, m=3, seed=2)
    polytope = not isinstance(
        notion, (md.Chi2Lift, md.AlphaLift)
    ) and notion != md.L1Lift(0.3, 0.3)
    design = md.design(
        joint, notion, mechanism="optimal" if polytope else "subset-merging"
    )
    inside, outside = cases.both(design, joint)
    record = assert_document(inside, joint, design.channel, notion)
    assert words in record["promise"]["statement"]
    assert words.lower() in cases.parsed(cases.texts(outside)[".html"]).text.lower()
    followed = notion not in (md.L1Lift(math.inf, 0.3),)
    assert (record["curve"] is not None) is followed
    if not followed:
        assert "there is no axis" in cases.texts(inside)[".html"]
    single = isinstance(notion, (md.ALIP, md.LIP, md.LDP, md.MaxLift, md.MinLift))
    assert record["promise"]["bounds"]
    assert bool(outside.promise.bounds) is single


def test_one_sided_promises_say_what_they_leave_open():
    joint = uniform_table(5, m=3)
    limits = " ".join(cases.reports(joint, md.MaxLift(0.4))[1].holds_for)
    assert "much less likely, or rule it out" in limits
    assert "give it away" not in limits
    limits = " ".join(cases.reports(joint, md.MinLift(0.4))[1].holds_for)
    assert "much more likely, or give it away" in limits
    limits = " ".join(cases.reports(joint, md.LDP(0.4))[1].holds_for)
    assert "One side is free" not in limits


def test_bounds_without_the_table_are_those_of_the_promise_and_cover_the_attained():
    joint = uniform_table(6, m=3)
    for notion in (
        md.ALIP(0.3, 0.6),
        md.LIP(0.4),
        md.MaxLift(0.4),
        md.MinLift(0.4),
        md.LDP(0.7),
    ):
        inside, outside = cases.reports(joint, notion)
        promised = {bound.measure: bound.promised for bound in outside.promise.bounds}
        for bound in inside.promise.bounds:
            if bound.attained is not None:
                assert bound.promised is None or bound.attained <= bound.promised * (
                    1 + 1e-12
                )
            assert bound.promised == promised.get(bound.measure)
    # Those of the last one.
    assert promised["local differential privacy"] == 0.7


@given(st.floats(1e-300, 700.0), st.floats(1e-300, 700.0))
def test_two_budgets_make_one_of_local_differential_privacy_never_rounded_down(
    first, second
):
    report = public_report(
        md.design(tiny(), md.LIP(5.0)).channel, md.ALIP(first, second), satisfied=None
    )
    bound = next(
        b.promised
        for b in report.promise.bounds
        if b.measure.startswith("local differential")
    )
    exact = Fraction(first) + Fraction(second)
    assert exact <= Fraction(bound) <= exact * (1 + Fraction(1, 2**51))


def test_beliefs_are_those_of_the_channel():
    joint = uniform_table(6, m=3)
    design = md.design(joint, md.ALIP(0.3, 0.4))
    posterior = (joint.p @ design.channel.matrix) / (joint.p_x @ design.channel.matrix)
    for s, belief in enumerate(cases.both(design, joint)[0].promise.beliefs):
        assert belief.before == pytest.approx(joint.p_s[s])
        assert belief.lowest == pytest.approx(posterior[s].min())
        assert belief.highest == pytest.approx(posterior[s].max())


def test_two_by_two_and_one_output():
    joint = tiny()
    design = md.design(joint, md.ALIP(0.2, 0.2))
    assert_document(cases.both(design, joint)[0], joint, design.channel, design.notion)
    channel, notion = one_output(joint)
    report = cases.internal(design_behind(channel, joint, notion), joint)
    record = assert_document(report, joint, channel, notion)
    assert record["kept"]["nmi"] == 0.0
    assert record["promise"]["achieved"] == {"eps_l": 0.0, "eps_u": 0.0, "eps_ldp": 0.0}


def test_adult(adult):
    design = md.design(adult, md.ALIP(0.5, 0.5))
    report = cases.both(design, adult)[0]
    record = assert_document(report, adult, design.channel, design.notion)
    assert record["asked"]["records"] == 31580
    assert (record["asked"]["zero_cells"], record["asked"]["cells"]) == (3, 75)
    assert len(record["curve"]["rows"]) == 10
    text = cases.parsed(cases.texts(report)[".html"]).text
    assert "31,580 records, 3 of 75 cells zero" in text
    assert "not that they cannot" in text
    assert "not about the population" in text


@pytest.mark.slow
def test_two_hundred_symbols(monkeypatch):
    monkeypatch.setattr(curve, "LONGEST", 0.0)
    counts = cases.counts(200, 200)
    # Probabilities, for the confidence set of forty thousand counts takes a minute.
    joint = Joint.from_probabilities(counts / counts.sum())
    design = md.design(joint, md.ALIP(1.0, 1.0), mechanism="complete-merging")
    report = cases.both(replace(design, seconds=0.0), joint)[0]
    record = assert_document(report, joint, design.channel, design.notion)
    text = cases.parsed(cases.texts(report)[".html"]).text
    assert (
        "There is no room for 200 x 200 lifts: up to 4 neighbours of useful and 13 neighbours"
        in text
    )
    assert record["curve"] is None
    assert "No curve: it was not asked for." in text
    assert len(cases.texts(report)[".html"]) < 400_000


def test_more_symbols_than_a_page_has_rows():
    joint = Joint.from_counts(cases.counts(230, 2))
    design = md.design(joint, md.ALIP(3.0, 3.0), mechanism="complete-merging")
    report = cases.both(design, joint)[0]
    text = cases.parsed(cases.texts(report)[".html"]).text
    assert (
        "The first 200 of 230 (useful) are shown. A report that ends in .json has all of it."
        in text
    )
    assert len(cases.record(report)["channel"]["rows"]) == 230


def test_a_repaired_channel_says_so():
    for seed in range(100):
        joint = uniform_table(12, seed=seed)
        design = md.design(joint, md.ALIP.from_epsilon(4.0), mechanism="subset-merging")
        if design.repaired:
            break
    assert design.repaired
    report = cases.both(design, joint)[0]
    assert "Repaired: merging the risky symbols" in " ".join(
        assert_document(report, joint, design.channel, design.notion)["kept"]["remarks"]
    )


def test_a_fallback_says_so(monkeypatch):
    def failing(*_, **__):
        raise SolverFailure("no vertex was found")

    joint = uniform_table(6, m=3)
    with monkeypatch.context() as patch:
        patch.setattr(by_rules, "optimal", failing)
        design = md.design(joint, md.ALIP(0.3, 0.4))
    assert design.fallback_from == "optimal"
    report = cases.both(design, joint)[0]
    remarks = " ".join(
        assert_document(report, joint, design.channel, design.notion)["kept"]["remarks"]
    )
    assert "Fallback: optimal gave no better verified channel." in remarks
    assert "no vertex was found" in remarks
    assert "was not computed" in cases.texts(report)[".html"]


def test_a_violation_is_said_first_and_marked():
    joint = tiny()
    design = md.design(joint, md.ALIP(1.0, 1.0))
    broken = replace(design, notion=md.ALIP(0.1, 0.1), verified=False)
    inside, outside = cases.both(broken, joint)
    for report in (inside, outside):
        document = document_of(report)
        assert ("Verified", "VIOLATED") in document.highlights
        assert "VIOLATED, decided in exact arithmetic" in cases.texts(report)[".md"]
    after = next(
        b
        for s in document_of(inside).sections
        for b in s.blocks
        if isinstance(b, blocks.Maps)
    ).maps[1]
    assert {cell.text[-1] for row in after.rows for cell in row} >= {"▲", "▼"}
    assert "of 4 cells outside what is allowed" in after.caption


def test_probabilities_have_no_number_of_records():
    report = cases.reports(uniform_table(5, m=3), md.ALIP(0.3, 0.3))[0]
    assert report.asked.records is None
    assert "table of probabilities or weights as given" in report.holds_for[0]
    assert "Records in the table" not in cases.texts(report)[".html"]


def test_a_report_is_the_same_twice_but_for_the_time():
    joint = uniform_table(5, m=3)
    first, second = (
        replace(
            cases.reports(joint, md.ALIP(0.3, 0.3))[1], written="now", provenance=()
        )
        for _ in range(2)
    )
    assert cases.texts(first) == cases.texts(second)


def test_hostile_labels_are_letters_in_every_format():
    joint = cases.hostile()
    design = md.design(joint, md.ALIP(0.3, 0.3))
    inside, outside = cases.both(design, joint)
    record = assert_document(inside, joint, design.channel, design.notion)
    assert record["asked"]["useful_symbols"] == cases.HOSTILE
    for report in (inside, outside):
        texts = cases.texts(report)
        page = cases.parsed(texts[".html"])
        assert page.faults == []
        assert "script" not in page.tags
        images = [
            value
            for tag, name, value in page.attributes
            if (tag, name) == ("img", "src")
        ]
        assert all(image.startswith("data:image/svg+xml;base64,") for image in images)
        assert "b" not in page.tags
        assert "<script>alert(1)</script>" in page.text
        assert "<script" not in texts[".md"]
        assert "\x1b" not in texts[".html"] + texts[".md"] + texts[".json"]
        assert "x" * 100 not in texts[".html"] + texts[".md"]
        assert (
            "Labels longer than 60 characters are shown without their middle"
            in page.text
        )
        assert "\u2068שלום עולם\u2069" in page.text
        rows = [line for line in texts[".md"].splitlines() if line.startswith("|")]
        assert all("pipe" not in row or "\\| pipe" in row for row in rows)


def test_markdown_tables_are_rectangular():
    joint = cases.hostile()
    for report in cases.reports(joint, md.ALIP(0.3, 0.3)):
        width = None
        for line in cases.texts(report)[".md"].splitlines():
            if not line.startswith("| "):
                width = None
                continue
            cells = line.replace("\\|", "").count("|")
            assert width in (None, cells)
            width = cells


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("eps_l (0.5), a-b + c", "eps_l (0.5), a-b + c"),
        ("_u_ *star* `tick` a_", r"\_u\_ \*star\* \`tick\` a\_"),
        ("# no heading", r"\# no heading"),
        ("- no item", r"\- no item"),
        ("12. no item", r"12\. no item"),
        ("---", r"\---"),
        ("-0.5", "-0.5"),
        (" no code", "&#32;no code"),
        ("[x](http://y) www.z", r"\[x\](http\://y) www\.z"),
        ("<b>&amp;", "&lt;b&gt;&amp;amp;"),
        ("a|b\\", r"a\|b\\"),
    ],
)
def test_markdown_takes_letters_for_letters(text, written):
    assert writing._letters(text) == written


def test_a_command_with_backticks_stays_in_its_block():
    report = cases.reports(tiny(), md.ALIP(0.2, 0.2))[1]
    line = "mechdesign design 'a```b.csv'"
    text = cases.texts(
        replace(report, commands=(replace(report.commands[0], line=line),))
    )[".md"]
    assert f"````sh\n{line}\n````" in text


def test_maps_mark_what_the_budget_of_a_single_symbol_forbids():
    joint = tiny()
    design = md.design(joint, md.ALIP(0.1, 0.1).with_budgets({"s0": (2.0, 2.0)}))
    maps = next(
        b
        for s in document_of(cases.both(design, joint)[0]).sections
        for b in s.blocks
        if isinstance(b, blocks.Maps)
    ).maps
    assert "2 of 4 cells outside what is allowed" in maps[0].caption
    assert all(
        row[1].text[-1] not in "▲▼" and row[2].text[-1] in "▲▼" for row in maps[0].rows
    )
    assert "0 of 4 cells outside what is allowed" in maps[1].caption


def test_a_public_report_does_not_promise_shares_beyond_the_rounding():
    joint = uniform_table(5, m=3)
    design = md.design(
        joint, md.ALIP(0.3, 0.3), objective="truth", keep_frequencies=True
    )
    text = cases.texts(cases.both(design, joint)[1])[".md"]
    assert "is that of the table, up to the rounding to integers." in text


def test_what_no_channel_keeps_true_is_rounded_up():
    """1 - bound lies above one half, though not as a double that is rounded to the nearest."""
    bound = math.nextafter(0.5, 0.0)
    assert 1.0 - bound == 0.5
    asked = {"name": "truth", "distance": None, "keep_frequencies": False, "forbid": ()}
    least = LeastKept(
        asked=asked,
        by_symbol=(("a", 0.5),),
        cost=0.5,
        cost_lower_bound=bound,
        truth=0.5,
    )
    assert "keeps more than 50.1 %." in law_section.least_blocks(least, "x")[0].text


def test_many_outputs_are_not_measured(monkeypatch):
    """The lifts of outputs are there all the same, and the page says where the measures are."""
    joint = Joint.from_counts(cases.counts(5, 3))
    design = md.design(joint, md.ALIP(0.5, 0.5))
    every = cases.internal(design, joint)
    monkeypatch.setattr(collect, "MANY_OUTPUTS", design.outputs - 1)
    few = cases.internal(design, joint)
    assert tuple(few.codebook) == tuple(every.codebook)
    known = [
        sum(b.attained is not None for b in r.promise.bounds) for r in (few, every)
    ]
    assert known[0] < known[1]
    assert "audit CHANNEL --all-measures" in " ".join(
        documented_texts(document_of(few))
    )
    assert "audit CHANNEL --all-measures" not in " ".join(
        documented_texts(document_of(every))
    )


@pytest.mark.parametrize("protect_each", [False, True])
def test_lifts_of_the_codebook_are_those_of_the_measures(protect_each):
    columns = ("a", "b") if protect_each else ("s",)
    symbols = [(f"{k % 2}", f"{k // 2}")[: len(columns)] for k in range(4)]
    if not protect_each:
        symbols = [(f"{k}",) for k in range(4)]
    sensitive = Variable(columns, tuple(symbols), protects_columns=protect_each)
    useful = Variable(("x",), tuple((f"{k}",) for k in range(5)))
    table = tuple(map(tuple, cases.counts(5, 4).tolist()))
    joint = Joint(sensitive, useful, table)
    channel = md.design(joint, md.ALIP(0.5, 0.5)).channel
    outputs = measure(channel, joint).outputs
    for column, output in zip(channel.columns, outputs, strict=True):
        low, high = lift_range(column, joint)
        assert low == pytest.approx(output.min_lift, rel=1e-15)
        assert high == pytest.approx(output.max_lift, rel=1e-15)
