"""One channel of boxes is made of its strata, and gives them back; its coder finds the box of every row."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mechdesign as md
from mechdesign.channel.boxes import channel_of_boxes
from mechdesign.channel.channel import BoxPart, Channel
from mechdesign.channel.record import ChannelRecord, SymbolBudgets
from mechdesign.release.samplers import box_laws
from mechdesign.tables.box_coder import BoxCoder, Stratum
from mechdesign.tables.confidence import confidence_set
from mechdesign.tables.joint import Joint
from mechdesign.tables.row_boxes import BOX, NOTHING, Boxes, BoxSplit, box_name
from mechdesign.tables.variable import Variable
from tests.cases.boxes import with_parts

SENSITIVE = Variable(("s",), (("yes",), ("no",)))
GIVEN = Variable(("k",), (("u",), ("v",), ("w",)))
COLUMNS = (
    Variable(("a",), tuple((text,) for text in "pqrst")),
    Variable(("b",), (("0",), ("1",))),
)
LEVEL = 0.99


def variable_of_boxes(count):
    return Variable((BOX,), tuple((box_name(box),) for box in range(count)))


@st.composite
def boxes(draw):
    """A chain of splits: each takes some symbols of a column out, as a box of their own."""
    splits = []
    count = draw(st.integers(0, 3))
    for place in range(count):
        column = draw(st.integers(0, 1))
        size = len(COLUMNS[column])
        inside = draw(st.sets(st.integers(0, size - 1), min_size=1, max_size=size))
        after = place + 1 if place + 1 < count else -count - 1
        splits.append(BoxSplit(column, tuple(sorted(inside)), -place - 1, after))
    return Boxes(tuple(splits))


@st.composite
def parts(draw, stratum):
    """A stratum that releases nothing, or its boxes through a channel with totals of any size."""
    own = draw(boxes())
    size = len(own)
    if size < 2 or draw(st.booleans()):
        return BoxPart(stratum, Boxes(()))
    outputs = draw(st.integers(1, 3))
    entries = st.lists(st.integers(1, 9), min_size=outputs, max_size=outputs)
    rows = [draw(entries) for _ in range(size)]
    counts = [
        [draw(st.integers(1, 50)) for _ in range(size)] for _ in range(len(SENSITIVE))
    ]
    useful = variable_of_boxes(size)
    joint = Joint(SENSITIVE, useful, tuple(map(tuple, counts)))
    confidence = {"level": LEVEL, "set": "clopper-pearson", "shares": "estimated"}
    channel = Channel(
        useful=useful,
        outputs=tuple(f"y{k}" for k in range(outputs)),
        rows=rows,
        totals=tuple(map(sum, rows)),
        joint=joint,
        record=ChannelRecord(
            notion={"name": "lip", "epsilon": 0.5}, confidence=confidence
        ),
    )
    return BoxPart(stratum, own, ((0,), (1,)), channel)


@st.composite
def channels(draw):
    made = [draw(parts((code,))) for code in range(len(GIVEN))]
    channel = channel_of_boxes(
        sensitive=SENSITIVE,
        given=(GIVEN,),
        columns=COLUMNS,
        parts=made,
        level=0.9,
        slice_records=7,
        provenance={},
    )
    return made, channel


@given(channels())
def test_the_strata_come_back(made_and_channel):
    made, channel = made_and_channel
    assert list(channel.parts) == made
    assert with_parts(channel, channel.parts) == channel
    for part, block in zip(made, channel._blocks, strict=True):
        if part.channel is None:
            (x,) = block
            assert channel.distribution(row_of(part, 0)) == {
                (*GIVEN.symbols[part.stratum[0]], NOTHING): 1
            }
            continue
        total_of = dict(
            zip(part.channel.useful.names, part.channel.row_totals, strict=True)
        )
        for x in block:
            assert channel.row_totals[x] == total_of[channel.useful.symbols[x][-1]]


def row_of(part, place):
    """Some row of the columns, with the given symbol of a part."""
    a, b = divmod(place, 2)
    return {
        "k": GIVEN.names[part.stratum[0]],
        "a": COLUMNS[0].names[a],
        "b": COLUMNS[1].names[b],
    }


@given(channels(), st.integers(0, 9))
def test_the_law_of_a_row_is_that_of_its_box(made_and_channel, place):
    made, channel = made_and_channel
    codes = divmod(place, 2)
    for part in made:
        law = channel.distribution(row_of(part, place))
        assert sum(law.values()) == 1
        if part.channel is None:
            continue
        box = walked(part.boxes, codes)
        own = part.channel.distribution(box_name(box))
        assert {key[-1]: share for key, share in law.items()} == {
            key[-1]: share for key, share in own.items()
        }


def walked(own, codes):
    """The box of a row, split by split."""
    place = 0
    while own.splits:
        split = own.splits[place]
        is_inside = codes[split.column] in split.inside
        place = split.first if is_inside else split.second
        if place < 0:
            return -1 - place
    return 0


@given(st.lists(boxes(), min_size=3, max_size=3), st.integers(0, 2**32 - 1))
def test_the_coder_numbers_the_boxes_of_all_strata(of_strata, seed):
    strata = tuple(Stratum((code,), own) for code, own in enumerate(of_strata))
    coder = BoxCoder((GIVEN,), COLUMNS, strata)
    rng = np.random.default_rng(seed)
    given_codes = rng.integers(0, 3, (20, 1))
    # -1 is any symbol that the table does not have.
    codes = np.column_stack([rng.integers(-1, 5, 20), rng.integers(-1, 2, 20)])
    numbers = coder.numbers_of(coder.strata_of(given_codes), codes)
    for (stratum,), row, number in zip(
        given_codes.tolist(), codes.tolist(), numbers.tolist(), strict=True
    ):
        first = sum(len(own) for own in of_strata[:stratum])
        assert number == first + walked(of_strata[stratum], row)
        assert coder.symbols[number] == (
            GIVEN.names[stratum],
            box_name(number - first),
        )


def test_levels_of_strata_are_added_in_fractions():
    """Three strata at .9667 miss .9 by less than a double tells."""
    useful = variable_of_boxes(2)
    joint = Joint(SENSITIVE, useful, ((3, 4), (5, 6)))
    splits = Boxes((BoxSplit(0, (0,), -1, -2),))

    def made(level):
        record = ChannelRecord(
            notion={"name": "lip", "epsilon": 0.5},
            confidence={"level": level, "set": "clopper-pearson", "shares": "free"},
        )
        channel = Channel(useful, ("y",), ((1,), (1,)), 1, joint, record=record)
        own = [BoxPart((k,), splits, ((0,), (1,)), channel) for k in range(3)]
        return channel_of_boxes(
            sensitive=SENSITIVE,
            given=(GIVEN,),
            columns=COLUMNS,
            parts=own,
            level=0.9,
            slice_records=0,
            provenance={},
        )

    assert made(0.9666666666666667).claims.level == 0.9
    with pytest.raises(md.InputError, match="levels of the parts do not add up"):
        made(0.9666666666666666)


def test_a_given_column_called_box_is_refused():
    with pytest.raises(md.InputError, match="has the name of the column of boxes"):
        channel_of_boxes(
            sensitive=SENSITIVE,
            given=(replace(GIVEN, columns=(BOX,)),),
            columns=COLUMNS,
            parts=[BoxPart((0,), Boxes(()))],
            level=0.9,
            slice_records=0,
            provenance={},
        )


def test_claims_need_a_coder():
    _, useful = SENSITIVE, variable_of_boxes(2)
    plain = Channel(useful, ("y",), ((1,), (1,)), 1)
    with pytest.raises(md.InputError, match="this is for a channel of boxes"):
        _ = plain.boxed
    assert plain.parts == ()


def lacking(counts=((30, 10), (20, 40))):
    """Two strata of three boxes; nobody of the proof is in the third box of either."""
    useful = variable_of_boxes(2)
    own = Boxes((BoxSplit(0, (0,), -1, 1), BoxSplit(0, (1,), -2, -3)))
    joint = Joint(SENSITIVE, useful, counts)
    record = ChannelRecord(
        notion={"name": "lip", "epsilon": 9.0},
        confidence=confidence_set(joint, LEVEL, unseen=1).to_record(),
    )
    made = []
    for stratum, rows in ((0, ((3, 1), (1, 3))), (1, ((2, 1), (1, 2)))):
        channel = Channel(
            useful=useful,
            outputs=(f"x{stratum}", f"y{stratum}"),
            rows=rows,
            denominator=sum(rows[0]),
            joint=joint,
            record=record,
        )
        made.append(BoxPart((stratum,), own, ((0,), (1,)), channel))
    return channel_of_boxes(
        sensitive=SENSITIVE,
        given=(GIVEN,),
        columns=COLUMNS,
        parts=made,
        level=0.9,
        slice_records=0,
        provenance={},
    )


def test_a_box_without_records_is_drawn_by_the_marginal_of_its_stratum():
    channel = lacking()
    laws = box_laws(channel, channel.coder)
    assert len(laws) == 6
    # Each stratum has two outputs, and of the 100 records 50 are in either box.
    for stratum, law in ((0, laws[2]), (1, laws[5])):
        assert set(law) == {2 * stratum, 2 * stratum + 1}
        assert law[2 * stratum] == law[2 * stratum + 1]
    frame = pd.DataFrame({"k": ["u", "v"] * 50, "a": "t", "b": "0"})
    released = channel.apply(frame, insecure_seed=1)
    assert released["k"].tolist() == frame["k"].tolist()
    assert set(released["box"][::2]) == {"x0", "y0"}
    assert set(released["box"][1::2]) == {"x1", "y1"}
    with pytest.raises(md.InputError, match="no record of the table was in the box"):
        channel.public().apply(frame, insecure_seed=1)
    # Two channels with another marginal draw otherwise.
    other = lacking(((31, 10), (20, 40)))
    assert other.useful == channel.useful
    assert list(other.rows) == list(channel.rows)
    assert other.digest != channel.digest


def test_given_symbols_that_have_no_stratum_are_refused():
    channel = lacking()
    for symbol, message in (
        ("w", "does not know this combination of the given columns 'k'"),
        (
            "never seen",
            # An option cannot make up a stratum.
            "the channel does not know the symbol of 'k', which is none of its 3; correct it, or "
            "leave the record out of the file$",
        ),
        (None, "the column 'k' has an empty cell, which no box covers"),
    ):
        frame = pd.DataFrame({"k": [symbol], "a": ["p"], "b": ["0"]})
        with pytest.raises(md.InputError, match=message):
            channel.apply(frame)


def test_a_stratum_has_the_promise_of_the_channel():
    """A file that states a stronger promise than that of its strata is refused."""
    channel = lacking()
    stronger = replace(channel.record, notion={"name": "lip", "epsilon": 0.25})
    assert channel.record.notion != stronger.notion
    with pytest.raises(md.InputError, match="the promise of a stratum is not that of"):
        replace(channel, record=stronger)


@pytest.mark.parametrize("place", ["channel", "stratum"])
def test_boxes_have_no_budgets_of_single_symbols(place):
    """They would weaken the promise of some symbols, and no audit of boxes reads them."""
    channel = lacking()
    budgets = (SymbolBudgets(symbol=("yes",), eps_l=2.0, eps_u=2.0),)
    if place == "channel":
        changed = {"record": replace(channel.record, budgets=budgets)}
    else:
        first, *others = channel.claims.strata
        weaker = replace(first, record=replace(first.record, budgets=budgets))
        changed = {"claims": replace(channel.claims, strata=(weaker, *others))}
    with pytest.raises(md.InputError, match="no budgets of single symbols"):
        replace(channel, **changed)
