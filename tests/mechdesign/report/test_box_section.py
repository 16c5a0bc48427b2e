"""The report on a channel for boxes against sums over its records."""

from __future__ import annotations

import json
import math
from collections import defaultdict

import pandas as pd
import pytest

import mechdesign as md
from mechdesign.cli import main
from mechdesign.core.errors import InputError
from mechdesign.mechanisms.box_design import _slice_of
from mechdesign.report.boxes import (
    box_facts,
    box_texts,
    boxes_of,
    columns_of,
    told_lines,
)
from mechdesign.report.collect import internal_report
from mechdesign.report.record import Boxes
from mechdesign.report.writing import report_text
from mechdesign.tables.records import Records
from tests.cases.people import people

SEED = 3


def designed(given=(), **options):
    frame = pd.concat([people()] * 3, ignore_index=True)
    settings = {"cells": 6, "time_limit": 600.0, "notion": md.LIP(0.4), **options}
    design = md.design(
        frame,
        sensitive="secret",
        release=["a", "b"],
        given=given,
        promise="relative" if given else "total",
        confidence=0.9,
        slice_seed=SEED,
        **settings,
    )
    return frame, design


@pytest.fixture(scope="module", params=[(), ("k",)])
def both(request):
    return designed(request.param)


def proving(frame, given):
    """The records of the proof, as rows of texts with counts."""
    columns = [*given, "a", "b"]
    groups = [(name,) for name in columns]
    joint = md.Joint.from_table(frame, sensitive="secret", useful=columns)
    records = Records.from_joint(joint, groups)
    counts = pd.Series(records.counts).to_numpy(dtype="int64")
    left = counts - _slice_of(counts, SEED)
    for row, count in zip(records.codes.tolist(), left.tolist(), strict=True):
        names = [group.names[x] for group, x in zip(records.groups, row, strict=True)]
        yield dict(zip(columns, names, strict=True)), count


def test_what_a_column_keeps_is_its_information_given_the_given_columns(both):
    frame, design = both
    channel = design.channel
    given = list(channel.given)
    for own in channel.claims.utility.columns:
        (column,) = own.columns
        joint = defaultdict(float)
        for row, count in proving(frame, given):
            stratum = tuple(row[name] for name in given)
            for label, share in channel.distribution(row).items():
                joint[stratum, row[column], label] += count * float(share)
        total = sum(joint.values())
        kept = entropy = 0.0
        for (stratum, x, y), mass in joint.items():
            inside = {key: m for key, m in joint.items() if key[0] == stratum}
            all_of = sum(inside.values())
            symbol = sum(m for key, m in inside.items() if key[1] == x)
            label = sum(m for key, m in inside.items() if key[2] == y)
            if mass:
                kept += mass / total * math.log(mass * all_of / (symbol * label))
                entropy -= mass / total * math.log(symbol / all_of)
        assert own.kept == pytest.approx(kept, abs=1e-9)
        assert own.entropy == pytest.approx(entropy, abs=1e-9)


def test_the_page_has_the_promise_for_population_and_table_first(both):
    _, design = both
    report = internal_report(design, None)
    audit = design.audit
    assert vars(audit.achieved) == report.promise.achieved
    assert report.population.eps_u == audit.achieved.eps_u
    assert report.boxes.on_table == audit.on_table
    assert audit.on_table.eps_u < audit.achieved.eps_u
    # The worst outputs are those of the audit on the records of the proof.
    largest = max(row.highest_lift for row in report.codebook)
    smallest = min(row.lowest_lift for row in report.codebook)
    assert math.log(largest) == pytest.approx(audit.on_table.eps_u)
    assert -math.log(smallest) == pytest.approx(audit.on_table.eps_l)
    # The beliefs are those of the population, which any output leaves; a stratum has its own.
    beliefs = report.boxes.beliefs
    assert bool(beliefs) is not bool(design.channel.given)
    for belief in beliefs:
        assert belief.lowest <= belief.before * math.exp(-audit.achieved.eps_l)
        most = min(1.0, belief.before * math.exp(audit.achieved.eps_u))
        assert belief.highest >= most
    assert sum(belief.before for belief in beliefs) in (0, pytest.approx(1.0))
    record = json.loads(report_text(report, ".json"))
    assert record["population"]["eps_u"] == design.achieved.eps_u
    boxes = record["boxes"]
    assert sum(row["records"] for row in boxes["rows"]) == design.audit.records
    strata = {row["stratum"] for row in boxes["rows"]}
    shares = [row["probability"] for row in record["codebook"]]
    assert sum(shares) == pytest.approx(len(strata))


def test_python_writes_all_endings_and_refuses_what_there_is_not(tmp_path):
    _, design = designed()
    for ending in ("html", "md", "json"):
        md.report(design, tmp_path / f"report.{ending}")
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line]
    assert lines[3].startswith(
        "- Times as likely as before, in the population (90 % confidence): **0."
    )
    assert lines[4].startswith("- Of this channel: **0.")
    assert "- Not covered: a population that the records were not drawn from" in text
    assert "Table (the records of the proof): a released row makes any value" in text
    assert "no channel for these boxes keeps more than" in text
    assert "box 6: " in text
    assert "> No curve: at every budget other boxes would be learned." in text
    html = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Own box: " in html
    with pytest.raises(InputError, match="exists"):
        md.report(design.channel, tmp_path / "report.md")
    md.report(design, tmp_path / "public.md", public=True)
    everybody = (tmp_path / "public.md").read_text(encoding="utf-8")
    assert "# Release of a x b in boxes, protecting secret" in everybody
    with pytest.raises(InputError, match="leave curve out"):
        md.report(design, tmp_path / "other.md", curve=1)
    with pytest.raises(InputError, match="the channel is public"):
        md.report(design.channel.public(), tmp_path / "other.md")


def test_a_file_of_boxes_states_its_bounds_and_a_design_has_proven_them(tmp_path):
    _, design = designed()
    stated = "(stated by the file, not proven again here)"
    md.report(design, tmp_path / "design.md")
    text = (tmp_path / "design.md").read_text(encoding="utf-8")
    assert (
        "of the best possible with these boxes (proven): no channel for these" in text
    )
    assert stated not in text
    design.channel.save(tmp_path / "boxes.json")
    md.report(md.load(tmp_path / "boxes.json"), tmp_path / "file.md")
    text = (tmp_path / "file.md").read_text(encoding="utf-8")
    assert f"with these boxes {stated}: no channel" in text
    assert "(proven)" not in text
    # The same from the command line.
    arguments = [str(tmp_path / "boxes.json"), "--report", str(tmp_path / "line.md")]
    assert main(["report", *arguments]) == 0
    text = (tmp_path / "line.md").read_text(encoding="utf-8")
    assert f"with these boxes {stated}: no channel" in text
    assert "(proven)" not in text


def test_a_row_design_has_its_report_in_python_too(tmp_path):
    design = md.design(people(), sensitive="secret", release=["a"], notion=md.LIP(0.4))
    md.report(design, tmp_path / "rows.json")
    record = json.loads((tmp_path / "rows.json").read_text(encoding="utf-8"))
    assert record["format"] == "mechdesign.report"


def test_a_column_has_no_section_on_boxes():
    frame = pd.concat([people()] * 3, ignore_index=True)
    joint = md.Joint.from_table(frame, sensitive="secret", useful="a")
    design = md.design(joint, md.LIP(0.4))
    channel = design.channel
    assert channel.box_utility is None
    assert channel.filling is None
    assert channel.form_of("representative") == "representative"
    assert boxes_of(design, "proven") == Boxes()
    assert box_facts(design) == {}
    assert columns_of(channel) == ()
    assert told_lines(channel) == box_texts(channel) == []
