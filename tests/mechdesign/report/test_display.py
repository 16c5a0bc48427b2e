"""Results at a prompt and in notebooks, and what wrong arguments are told."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import mechdesign as md
from mechdesign.analysis import estimate_joint
from mechdesign.cli import main
from mechdesign.core.errors import NAMES_OPTIONS
from mechdesign.core.wording import about
from mechdesign.report.comparing import comparison_text
from mechdesign.report.terminal import (
    audit_text,
    channel_text,
    design_text,
)
from mechdesign.report.wording import percent_at_least
from tests.cases.designs import uniform_table

NOTION = md.ALIP(0.5, 0.5)
JOINT = uniform_table(5, m=3)
COUNTED = md.Joint.from_counts([[3, 1], [1, 3]])
DESIGN = md.design(JOINT, NOTION)
CHANNEL = DESIGN.channel
AUDIT = md.audit(CHANNEL, JOINT, NOTION)
CURVES = md.compare(
    JOINT, epsilons=[0.5, 1.0], mechanisms=["optimal", "subset-merging"]
)
RELEASED = CHANNEL.apply(pd.Series(list(JOINT.useful.names) * 40, name="useful"))
SHARES = md.estimate_frequencies(CHANNEL, RELEASED)
CROSSED = estimate_joint(CHANNEL, RELEASED, ["p", "q"] * 100)
TOGETHER = md.compose([CHANNEL, CHANNEL])
SHOWN = [JOINT, CHANNEL, DESIGN, AUDIT, CURVES, SHARES, CROSSED, TOGETHER]


@pytest.fixture(autouse=True)
def _no_window():
    with mpl.rc_context({"backend": "Agg"}):
        yield
    plt.close("all")


@pytest.mark.parametrize("shown", SHOWN, ids=lambda shown: type(shown).__name__)
def test_everything_is_shown_briefly_in_words_as_a_table_and_as_a_picture(shown):
    assert repr(shown).startswith(f"{type(shown).__name__}(")
    assert len(repr(shown)) < 160
    assert "\n" not in repr(shown)
    assert shown.summary() == shown.summary().rstrip()
    page = shown._repr_html_()
    assert page.count("<table>") == page.count("</table>") == 1
    frame = shown.to_frame()
    assert isinstance(frame, pd.DataFrame)
    assert len(frame) > 0
    axes = plt.figure().subplots()
    assert shown.plot(axes) is axes
    assert axes.has_data()
    assert shown.plot().has_data()


def test_the_picture_of_a_design_says_what_it_is():
    text = DESIGN.plot().get_title()
    assert DESIGN.notion.text in text
    assert text.startswith(f"{','.join(JOINT.useful.columns)} released, ")


def test_the_words_are_those_of_the_command_line():
    assert DESIGN.summary() == design_text(DESIGN)
    assert CHANNEL.summary() == channel_text(CHANNEL)
    assert AUDIT.summary() == audit_text(AUDIT)
    assert CURVES.summary() == comparison_text(CURVES, None)


def test_a_public_design_has_no_summary():
    design = replace(DESIGN, channel=CHANNEL.public())
    with pytest.raises(md.InputError, match="the channel is public"):
        design.summary()


def test_frames_hold_what_is_meant():
    counts = JOINT.to_frame()
    assert list(counts.iloc[:, 0]) == list(JOINT.sensitive.names)
    assert counts.iloc[:, 1:].to_numpy().tolist() == [list(row) for row in JOINT.counts]
    assert np.array_equal(CHANNEL.to_frame().iloc[:, 1:], CHANNEL.matrix)
    beliefs = DESIGN.to_frame()
    assert (beliefs["lowest after"] <= beliefs["before"]).all()
    assert (beliefs["highest after"] >= beliefs["before"]).all()
    assert list(CURVES.to_frame()["nmi"]) == [row.nmi for row in CURVES.rows]
    assert list(SHARES.to_frame()["estimate"]) == SHARES.estimates.tolist()


def test_a_share_that_is_not_all_is_not_shown_as_all():
    nearly = replace(DESIGN, nmi=0.999999)
    assert "99.99 % of the information kept" in repr(nearly)


def test_labels_are_escaped_and_large_tables_cut():
    joint = md.Joint.from_counts(np.ones((30, 20), dtype=int), useful="<b>")
    page = joint._repr_html_()
    assert "<b>" not in page
    assert "and 18 more rows and 5 more columns" in page


def test_a_public_channel_has_no_table_of_beliefs():
    public = CHANNEL.public()
    assert "protects" in repr(public)
    with pytest.raises(md.InputError, match="the channel is public"):
        replace(DESIGN, channel=public).summary()


def test_reports_from_python(tmp_path):
    md.report(DESIGN, tmp_path / "a.html")
    md.report(CHANNEL, tmp_path / "b.md")
    md.report(CHANNEL.public(), tmp_path / "c.md", public=True)
    assert "Internal report" in (tmp_path / "a.html").read_text(encoding="utf-8")
    assert "Do it again" not in (tmp_path / "a.html").read_text(encoding="utf-8")
    assert "not proven again here" in (tmp_path / "b.md").read_text(encoding="utf-8")
    assert "Not checked here" in (tmp_path / "c.md").read_text(encoding="utf-8")
    with pytest.raises(md.InputError, match=r"a\.html exists"):
        md.report(DESIGN, tmp_path / "a.html")
    with pytest.raises(md.InputError, match="give public=True"):
        md.report(CHANNEL.public(), tmp_path / "d.md")
    with pytest.raises(md.InputError, match="design must be a Channel, not int"):
        md.report(3, tmp_path / "d.md")
    with pytest.raises(md.InputError, match="does not say which notion"):
        md.report(
            md.Channel(CHANNEL.useful, CHANNEL.outputs, CHANNEL.rows, joint=JOINT),
            tmp_path / "d.md",
        )
    weaker = CHANNEL.with_record(md.design(JOINT, md.LIP(0.01)).channel.record)
    with pytest.raises(md.InputError, match="breaks its promise has no report"):
        md.report(weaker, tmp_path / "d.md")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: md.design(pd.DataFrame(), NOTION),
            "joint must be a Joint, not DataFrame; Joint.from_table",
        ),
        (
            lambda: md.design(JOINT, 1),
            "notion must be a Notion, not int; write one, as in ALIP",
        ),
        (
            lambda: md.compare(JOINT, epsilons=1),
            r"epsilons \(1\) must be a list of numbers",
        ),
        (
            lambda: md.compare(JOINT, epsilons=[1], lams=0.5),
            r"lams \(0.5\) must be a list of numbers",
        ),
        (lambda: md.compare(1, epsilons=[1]), "joint must be a Joint, not int"),
        (
            lambda: md.audit(JOINT, CHANNEL, NOTION),
            "channel must be a Channel, not Joint",
        ),
        (lambda: md.audit(CHANNEL, JOINT, 1), "notion must be a Notion, not int"),
        (
            lambda: md.estimate_frequencies(RELEASED, CHANNEL),
            "channel must be a Channel, not Series; the ch",
        ),
        (
            lambda: md.check(CHANNEL, 3),
            "released must be the path of a CSV or Parquet f",
        ),
        (
            lambda: md.check("a.csv", "b.json"),
            "channel must be a Channel, not str",
        ),
        (
            lambda: md.design(JOINT, NOTION, gap="x"),
            r"gap \('x'\) must be a number of at least 0",
        ),
        (
            lambda: md.design(JOINT, NOTION, gap="0.1"),
            r"gap \('0.1'\) must be a number of at least 0",
        ),
        (
            lambda: md.design(JOINT, NOTION, time_limit="1"),
            r"time_limit \('1'\) must be a number of sec",
        ),
        (
            lambda: md.design(JOINT, NOTION, workers="2"),
            r"workers \('2'\) must be a number of threads",
        ),
        (lambda: md.LIP("0.5"), r"epsilon \('0.5'\) must be a number of nats"),
        (
            lambda: md.design(JOINT, NOTION, after=5),
            r"after \(5\) must be a list of channels",
        ),
        (
            lambda: md.design(JOINT, NOTION, after=[5]),
            "each of after must be a Channel, not int",
        ),
        (
            lambda: md.design(JOINT, NOTION, forbid=5),
            r"forbid \(5\) must be a list of pairs",
        ),
        (
            lambda: md.design(COUNTED, NOTION, confidence=0.9, known_shares=5),
            "known_shares must be a Mapping, not int; write one, as in",
        ),
        (
            lambda: md.compare(JOINT, epsilons=[1], notions=3),
            r"notions \(3\) must be a list of names",
        ),
        (
            lambda: md.compare(JOINT, epsilons=[1], notions=[md.LIP]),
            "notion .* is not known; use one of",
        ),
        (lambda: md.compare(JOINT, epsilons=[1], notions=[]), "no notion is given"),
        (
            lambda: md.estimate_frequencies(CHANNEL, RELEASED, level="a"),
            r"level \('a'\) must be a number",
        ),
        (
            lambda: md.estimate_frequencies(CHANNEL, RELEASED, level="0.9"),
            r"level \('0.9'\) must be a num",
        ),
        (
            lambda: md.check(CHANNEL, "a.csv", level="0.1"),
            r"level \('0.1'\) must be a number above 0",
        ),
        (
            lambda: md.report(CHANNEL, "a.html", curve="0"),
            r"curve \('0'\) must be a number of seconds",
        ),
        (lambda: md.compose(CHANNEL), "channels .* must be a list of channels"),
        (
            lambda: md.Channel.load(5),
            "the path of a file must be a text or a path, not int",
        ),
        (
            lambda: CHANNEL.save(None),
            "the path of a file must be a text or a path, not NoneType",
        ),
        (
            lambda: md.sanitise_file(CHANNEL, pd.DataFrame(), "x.csv"),
            "the path of a file must be a text or",
        ),
        (
            lambda: md.Joint.from_table(
                pd.DataFrame({"a": ["b"]}), sensitive=1, useful="a"
            ),
            r"columns \(1\) must be a list of names, or one name",
        ),
        (
            lambda: md.Policy(unknown=3),
            r"unknown \('3'\) must be refuse, marginal, nearest or output:LABEL",
        ),
        (
            lambda: md.ALIP(1),
            r"ALIP has two budgets: write ALIP\(eps_l=.., eps_u=..\), or ALIP.from_epsilon",
        ),
    ],
)
def test_wrong_types_are_told_in_one_line(call, message):
    with pytest.raises(md.InputError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("keep it (--keep-sensitive)", "keep it (keep_sensitive=)"),
        ("say so (--missing symbol), or not", "say so (missing='symbol'), or not"),
        ("say so (--delimiter ';')", "say so (delimiter=';')"),
        ("line 2; --force starts over", "line 2; force starts over"),
        (
            "weights (--weighted), or (--probabilities)",
            "weights (weights=), or (Joint.from_probabilities)",
        ),
        ("leave the form (--as) out", "leave the form (form=) out"),
        ("give the table (--table)", "give the table (joint=)"),
        ("a -- b, x--y and ---", "a -- b, x--y and ---"),
    ],
)
def test_messages_name_parameters_in_python_and_options_on_the_command_line(
    text, shown
):
    error = md.InputError(text)
    assert str(error) == shown
    token = NAMES_OPTIONS.set(True)
    assert str(error) == text
    NAMES_OPTIONS.reset(token)
    assert str(error) == shown


def test_a_command_leaves_the_messages_of_python_as_they_were(capsys):
    assert (
        main(["design", "there-is-no-such-file.csv", "--contingency", "--epsilon", "1"])
        == 2
    )
    assert "there-is-no-such-file.csv" in capsys.readouterr().err
    assert (
        str(md.InputError("say so (--missing symbol)")) == "say so (missing='symbol')"
    )


def test_a_transformer_of_a_channel():
    sklearn = pytest.importorskip("mechdesign.frames.transformer")
    frame = pd.DataFrame({"useful": list(JOINT.useful.names) * 4})
    step = sklearn.ReleaseTransformer(CHANNEL, insecure_seed=1)
    assert set(step.fit(frame).transform(frame)["useful"]) <= set(CHANNEL.outputs)
    assert re.search("ALIP", repr(sklearn.ReleaseTransformer(NOTION)))


@pytest.mark.parametrize("curve", [-1, math.inf, math.nan, "long"])
def test_seconds_of_a_curve_that_make_no_sense_are_refused(tmp_path, curve):
    design = md.design(COUNTED, md.LIP(0.5))
    with pytest.raises(
        md.InputError, match=r"curve \(.*\) must be a number of seconds"
    ):
        md.report(design, tmp_path / "r.md", curve=curve)
    md.report(design, tmp_path / "r.md", curve=0)
    assert "No curve: it was not asked for." in (tmp_path / "r.md").read_text(
        encoding="utf-8"
    )


def test_a_notebook_rounds_beliefs_outwards():
    """Printed lowest <= exact lowest, and exact highest <= printed highest."""
    page = DESIGN._repr_html_()
    beliefs = DESIGN.to_frame()
    for _, row in beliefs.iterrows():
        name = row.iloc[0]
        cells = re.search(rf"<td>{re.escape(name)}</td>(.*?)</tr>", page)
        texts = re.findall(r"<td>([\d.]+) %</td>", cells.group(1))
        assert len(texts) == 3
        assert float(texts[1]) <= 100 * row["lowest after"]
        assert float(texts[2]) >= 100 * row["highest after"]


def test_a_notebook_shows_shares_in_per_cent():
    """As the command line prints them; lifts and budgets stay numbers."""
    kept = CURVES.rows[0].nmi
    page = CURVES._repr_html_()
    assert f"<td>{percent_at_least(kept)}</td>" in page
    assert f"<td>{about(kept)}</td>" not in page


def test_a_secret_with_the_name_of_a_heading_keeps_its_values():
    table = md.Joint.from_counts([[4, 2], [1, 3]], sensitive="before")
    beliefs = md.design(table, md.LIP(0.5)).to_frame()
    assert list(beliefs["before_"]) == list(table.sensitive.names)
    assert list(beliefs["before"]) == list(table.p_s)
