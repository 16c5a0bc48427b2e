"""Channels of columns and of boxes answer the same questions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import mechdesign as md
from mechdesign.auditing import verdict
from mechdesign.auditing.stated import has_table, keeps_promise, refuse_broken
from mechdesign.channel.record import ChannelRecord
from mechdesign.core.wording import in_population
from mechdesign.exporting.lookup import lookup_of
from mechdesign.release.drawing import channel_digest
from tests.cases.boxes import with_parts

NOTION = md.LIP(0.3)


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(7)
    a = rng.integers(0, 5, 3000)
    s = rng.random(3000) < 0.2 + 0.1 * a
    return pd.DataFrame(
        {
            "s": np.where(s, "yes", "no"),
            "k": np.array(list("uv"))[rng.integers(0, 2, 3000)],
            "a": np.array(list("vwxyz"))[a],
            "b": np.array(list("lmn"))[rng.integers(0, 3, 3000)],
        }
    )


@pytest.fixture(scope="module")
def column(frame):
    return md.design(frame, NOTION, sensitive="s", useful="a").channel


@pytest.fixture(scope="module")
def boxes(frame):
    return md.design(
        frame,
        NOTION,
        sensitive="s",
        release=["a", "b"],
        given=["k"],
        promise="relative",
        confidence=0.9,
        cells=4,
        slice_seed=3,
        time_limit=600.0,
    ).channel


def broken(channel):
    """The channel that releases every input as it is."""
    size = len(channel.useful)
    rows = tuple(tuple(int(x == y) for y in range(size)) for x in range(size))
    names = channel.useful.names
    return replace(channel, outputs=names, rows=rows, denominator=1, totals=None)


def with_part(boxes, place, channel):
    parts = list(boxes.parts)
    parts[place] = replace(parts[place], channel=channel)
    return with_parts(boxes, parts)


def test_a_channel_of_a_column_is_its_only_channel(column):
    assert column.channels == (column,)
    assert column.single() is column
    assert column.hidden == (column.useful,)
    assert column.digest == channel_digest(column)
    assert column.provenance is column.record.provenance
    assert (column.given_columns, column.randomised_columns) == ((), ("a",))


def test_given_columns_of_rows_are_not_randomised(frame):
    options = {"given": ["k"], "promise": "relative"}
    rows = md.design(frame, NOTION, sensitive="s", release=["b"], **options)
    channel = rows.channel
    assert (channel.given_columns, channel.randomised_columns) == (("k",), ("b",))


def test_a_channel_of_boxes_has_one_for_each_stratum(boxes):
    assert boxes.channels == tuple(part.channel for part in boxes.parts)
    assert len(boxes.channels) == 2
    assert boxes.hidden == boxes.coder.columns
    assert boxes.digest == channel_digest(boxes)
    assert (boxes.given_columns, boxes.randomised_columns) == (("k",), ("a", "b"))


def test_all_parts_of_boxes_promise_what_was_asked(column, boxes):
    assert column.promise == boxes.promise == NOTION
    silent = tuple(replace(part, channel=None) for part in boxes.parts)
    assert with_parts(boxes, silent).promise is None
    assert keeps_promise(with_parts(boxes, silent)) is True


def test_every_channel_says_where_its_promise_holds(column, boxes):
    assert (column.level_of_claims, boxes.level_of_claims) == (None, 0.9)
    assert boxes.public().level_of_claims == 0.9
    assert in_population(column.level_of_claims) == ""
    assert (
        in_population(boxes.level_of_claims) == " in the population (90 % confidence)"
    )


def test_every_channel_counts_the_records_behind_it(column, boxes):
    assert column.records == column.records_of_proof == boxes.records == 3000
    assert boxes.records_of_proof == 3000 - boxes.claims.slice_records < 3000
    for channel in (column, boxes):
        public = channel.public()
        assert (public.records, public.records_of_proof) == (None, None)


def test_every_channel_describes_its_symbols(column, boxes):
    assert column.described_symbols == (("a",), column.useful.symbols)
    columns, symbols = boxes.described_symbols
    assert columns == ("k", "box", "rows")
    assert tuple(symbol[:2] for symbol in symbols) == boxes.useful.symbols
    rows = dict(zip(boxes.coder.symbols, boxes.coder.row_sets, strict=True))
    assert all(rows[given, box] == words for given, box, words in symbols)


def test_every_channel_says_why_its_values_have_no_law(column, boxes):
    assert column.releases_labels
    assert column.law_absent.endswith("are released in the place of values of a")
    assert boxes.releases_labels
    assert boxes.law_absent == "labels of boxes are released in the place of rows"
    own = broken(column)
    assert not own.releases_labels


@pytest.mark.parametrize("place", [0, 1])
def test_a_part_without_a_promise_is_refused(boxes, place):
    channel = boxes.channels[place]
    record = ChannelRecord(confidence=channel.record.confidence)
    with pytest.raises(md.InputError, match="the channel of a part promises nothing"):
        with_part(boxes, place, channel.with_record(record))


@pytest.mark.parametrize("kind", ["column", "boxes"])
def test_the_table_of_a_channel_proves_its_promise(kind, request):
    channel = request.getfixturevalue(kind)
    assert has_table(channel)
    assert keeps_promise(channel) is True
    assert refuse_broken(channel)
    assert not has_table(channel.public())
    assert keeps_promise(channel.public()) is None
    assert not refuse_broken(channel.public())


@pytest.mark.parametrize("place", [0, 1])
def test_one_broken_part_breaks_the_promise_of_boxes(boxes, place):
    forged = with_part(boxes, place, broken(boxes.channels[place]))
    assert keeps_promise(forged) is False
    assert keeps_promise(forged) is md.audit(forged).satisfied
    with pytest.raises(md.NotPrivate, match=r"the channel breaks its promise lip"):
        refuse_broken(forged)


@pytest.mark.parametrize("place", [0, 1])
def test_parts_have_the_promise_of_the_whole(boxes, place):
    """A weaker promise of one part alone would prove nothing of the others."""
    weak = boxes.channels[place].with_record(
        replace(boxes.channels[place].record, notion={"name": "lip", "epsilon": 40.0})
    )
    with pytest.raises(md.InputError, match="promise of a stratum is not that of the"):
        with_part(boxes, place, broken(weak))


@pytest.mark.parametrize("kind", ["column", "boxes"])
def test_a_broken_promise_has_no_report(kind, request, tmp_path):
    channel = request.getfixturevalue(kind)
    if kind == "column":
        forged = broken(channel)
    else:
        forged = with_part(channel, 0, broken(channel.channels[0]))
    for public in (False, True):
        with pytest.raises(md.InputError, match="breaks its promise has no report"):
            md.report(forged, tmp_path / "report.json", public=public)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", ["column", "boxes"])
def test_a_channel_is_judged_on_tables_or_says_why_not(kind, request):
    channel = request.getfixturevalue(kind)
    if kind == "column":
        assert channel.on_tables("a reason") is channel
        return
    with pytest.raises(md.InputError, match="a reason"):
        channel.on_tables("a reason")


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda one, _: md.compose([one]), "each of the channels must be a Channel"),
        (lambda one, _: lookup_of(one), "boxes have no script: use apply"),
        (
            lambda one, _: md.estimate_frequencies(one, ["box 1"]),
            "must be a Channel without boxes of rows",
        ),
        (
            lambda one, frame: md.design(
                frame, NOTION, sensitive="s", useful="a", after=[one]
            ),
            "each of after must be a Channel without boxes of rows",
        ),
        (lambda one, frame: one.apply(frame, draws="fixed"), "cannot be fixed"),
        (lambda one, frame: md.audit(one, frame), "audited on the counts"),
        (
            lambda one, _: verdict.audit_on_table(
                one, one.parts[0].channel.joint, NOTION
            ),
            "must be a Channel without boxes of rows",
        ),
        (lambda one, _: one.distribution({"k": "u"}), "the row has no column 'a'"),
        (
            lambda one, _: one.distribution(("u", "v")),
            r"as a mapping of its columns \('k', 'a'",
        ),
    ],
)
def test_what_is_not_for_boxes_refuses_them(boxes, frame, use, message):
    with pytest.raises(md.InputError, match=message):
        use(boxes, frame)
