"""Texts that look alike: escaped where they are shown, noted, and made one symbol on request."""

from __future__ import annotations

import unicodedata

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mechdesign as md
from mechdesign.core.errors import InputError
from mechdesign.core.wording import escaped, look, quoted
from mechdesign.formats.cells import CellForm
from mechdesign.formats.spellings import alike_groups, alike_notice
from mechdesign.report.wording import label

E_ACUTE = "caf\u00e9"
E_AND_ACUTE = "cafe\u0301"

PAIRS = [
    ("clerk", "clerk "),
    ("clerk", " clerk"),
    ("old clerk", "old  clerk"),
    (E_ACUTE, E_AND_ACUTE),
    ("clerk", "clerk\u200b"),
    ("clerk", "cl\u00aderk"),
    ("old clerk", "old\u00a0clerk"),
]


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_what_looks_alike_is_shown_differently_and_noted(one, other):
    assert look(one) == look(other)
    assert alike_groups([one, "nurse", other]) == [tuple(sorted((one, other)))]
    assert alike_groups([one, "nurse"]) == []
    shown = [label(one), label(other)]
    assert look(shown[0]) != look(shown[1])
    # Blanks in quotes can be seen, but for those of which there are several.
    if " " not in (one + other):
        assert look(quoted(one)) != look(quoted(other))
    assert "symbols that look alike" in (alike_notice("job", [one, other]) or "")


@pytest.mark.parametrize(
    ("typed", "printed"),
    [
        ("O'Brien", "O\u2019Brien"),
        ("O'Brien", "O\u00b4Brien"),
        ("Smith-Jones", "Smith\u2013Jones"),
        ("Smith-Jones", "Smith\u2011Jones"),
        ('a "b"', "a \u201cb\u201d"),
        ("0.0", "-0.0"),
        ("0", "-0"),
    ],
)
def test_signs_of_programs_look_like_those_of_a_keyboard(typed, printed):
    notice = alike_notice("name", [typed, printed, "Lee"])
    assert notice is not None
    assert notice.endswith("correct them in the file")
    assert alike_groups([typed, "Lee", "-1", "1", "-0.5", "0.5"]) == []


TEXTS = st.text(alphabet=["a", " ", "e", "\u0301", "\u00e9", "\u200b", "\u00a0", "\t"])


@given(TEXTS, TEXTS)
def test_different_texts_are_never_shown_alike(one, other):
    """escaped(a) and escaped(b) look the same only if a = b."""
    if one != other:
        assert look(escaped(one)) != look(escaped(other))


@given(TEXTS)
def test_a_form_is_reached_in_one_step(text):
    """f(f(x)) = f(x), so a released file can be read by the same rules again."""
    for form in (
        CellForm(trim=True),
        CellForm(normalise="NFC"),
        CellForm(normalise="NFKD", trim=True),
    ):
        assert form.text(form.text(text)) == form.text(text)
    assert CellForm(normalise="NFC").text(text) == unicodedata.normalize("NFC", text)


@pytest.mark.parametrize(
    ("texts", "options"),
    [
        (["a", "a "], "--trim,"),
        ([E_ACUTE, E_AND_ACUTE], "--normalise NFC,"),
        ([E_ACUTE, E_AND_ACUTE + " "], "--normalise NFC --trim,"),
        (["a", "a\u00a0"], "--trim,"),
        (["a b", "a\u00a0b"], "--normalise NFKC --trim,"),
        (["a", "a\u200b"], "correct them in the file"),
    ],
)
def test_the_notice_names_what_helps(texts, options):
    assert options in (alike_notice("job", texts) or "")


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"objective": "truth"},
        {"confidence": 0.9},
        {"mechanism": "subset-merging"},
        {"bins": "0,10,60"},
        {"objective": "prefix"},
        {"average": {"mi": 0.05}},
    ],
)
def test_every_design_records_the_rules_and_reads_them_back(tmp_path, options):
    numbers = ["1", "2 ", "3", "40", "55 ", None, "2"] * 20
    secrets = ["x", "y", "y", "x"] * 35
    table = pa.table({"age": numbers, "pain": secrets})
    joint = md.Joint.from_table(
        table, sensitive="pain", useful="age", trim=True, missing="marginal"
    )
    channel = md.design(joint, md.LIP(1.0), **options).channel
    rules = channel.record.rules
    assert (rules.trim, rules.missing, rules.counted) == (True, "marginal", "drop")
    channel.save(tmp_path / "channel.json")
    again = md.Channel.load(tmp_path / "channel.json")
    assert again.record.rules == again.joint.rules == rules


def test_design_takes_the_form_with_a_frame():
    table = pa.table(FRAME)
    channel = md.design(
        table,
        md.LIP(1.0),
        sensitive="pain",
        useful="job",
        trim=True,
        missing="drop",
        missing_codes=["?"],
        mechanism="complete-merging",
    ).channel
    assert channel.record.rules.missing_codes == ("?",)


def test_an_unknown_form():
    with pytest.raises(
        InputError, match=r"normalise \('NFX'\) must be one of 'none', "
    ):
        CellForm(normalise="NFX")


FRAME = {
    "job": ["clerk", "clerk ", "nurse", "nurse", "clerk", "  "] * 4,
    "pain": ["no", "yes", "no", "yes", "yes", "no"] * 4,
}


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_frames_are_counted_in_the_form_and_the_channel_applies_it(kind):
    library = pytest.importorskip(kind)
    table = library.table if kind == "pyarrow" else library.DataFrame
    frame = table(FRAME)
    plain = md.Joint.from_table(frame, sensitive="pain", useful="job")
    assert any("'clerk' and 'clerk\\x20'" in notice for notice in plain.notices)
    joint = md.Joint.from_table(
        frame, sensitive="pain", useful="job", trim=True, missing="marginal"
    )
    assert joint.useful.names == ("clerk", "nurse")
    assert not any("look alike" in notice for notice in joint.notices)
    assert joint.useful_counts == (12, 8)
    design = md.design(joint, md.ALIP(eps_l=0.5, eps_u=0.5))
    rules = design.channel.record.rules
    assert (rules.trim, rules.missing) == (True, "marginal")
    released = design.channel.apply(frame["job"], insecure_seed=1)
    assert len(released) == 24


def test_a_wide_table_has_no_form(tmp_path):
    from mechdesign.tables.reading import read_joint

    path = tmp_path / "wide.csv"
    path.write_text("s,a,b\nx,1,2\ny,2,1\n")
    with pytest.raises(
        InputError,
        match=r"normalise, trim and missing_codes are for records",
    ):
        read_joint(path, contingency=True, form=CellForm(trim=True))


def test_the_file_carries_the_rules(tmp_path):
    joint = md.Joint.from_table(
        pa.table(FRAME),
        sensitive="pain",
        useful="job",
        trim=True,
        missing="drop",
    )
    channel = md.design(joint, md.ALIP(eps_l=0.5, eps_u=0.5)).channel
    channel.save(tmp_path / "channel.json")
    assert md.Channel.load(tmp_path / "channel.json").record.rules == joint.rules
    channel.save(tmp_path / "public.json", public=True)
    public = joint.rules.model_copy(update={"left_out": 0})
    assert md.Channel.load(tmp_path / "public.json").record.rules == public


@pytest.mark.parametrize("rule", ["maybe", "output:", ""])
def test_missing_must_be_one_of_the_words(rule):
    with pytest.raises(
        InputError, match=r"must be refuse, symbol, drop, marginal or output:LABEL"
    ):
        md.Joint.from_table(
            pa.table(FRAME),
            sensitive="pain",
            useful="job",
            missing=rule,
        )
