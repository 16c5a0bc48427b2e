from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechdesign.channel.channel import Channel
from mechdesign.core.errors import InputError
from mechdesign.formats.cells import encode
from mechdesign.release.drawing import Release, channel_digest
from mechdesign.release.draws import Identifiers, Key, NumberedRecords, RowNumbers
from mechdesign.release.samplers import Policy, apportioned
from mechdesign.tables.columns import UnknownSymbol
from mechdesign.tables.joint import Joint
from mechdesign.tables.variable import Variable

D = 2**53
KEY = Key.insecure(1)


def channel_of(rows, denominator=D, counts=((3, 1, 4), (1, 5, 2)), symbols="abc"):
    joint = Joint.from_counts(
        np.array(counts), useful_labels=list(symbols), useful="x", sensitive="s"
    )
    outputs = tuple(f"y{j}" for j in range(len(rows[0])))
    return Channel(joint.useful, outputs, rows, denominator, joint=joint)


THIRD = D // 3
SPREAD = channel_of(((THIRD, THIRD, D - 2 * THIRD), (0, D // 2, D // 2), (D, 0, 0)))
IDENTITY = channel_of(((D, 0, 0), (0, D, 0), (0, 0, D)))


def drawn(channel, texts, records=None, **options):
    release = Release(channel, KEY, **options)
    codes, *_ = release.draw([encode(texts, "x")], records or RowNumbers(0, len(texts)))
    return [release.texts[0][code] for code in codes], release


def test_every_engine_draws_the_same_for_the_same_rows():
    texts = list("abc" * 40)
    whole, release = drawn(SPREAD, texts)
    assert SPREAD.apply(texts, insecure_seed=1) == whole
    order = np.random.default_rng(0).permutation(120)
    shuffled, _ = drawn(SPREAD, [texts[i] for i in order], NumberedRecords(order))
    assert shuffled == [whole[i] for i in order]
    halves = SPREAD.apply(texts[:50], key=KEY) + SPREAD.apply(
        texts[50:], key=KEY, first_row=50
    )
    assert halves == whole
    assert release.symbol_counts[0].tolist() == [40, 40, 40, 0, 0]
    assert release.output_counts.tolist() == [whole.count(y) for y in SPREAD.outputs]


def test_identifiers_keep_their_draw_wherever_they_stand():
    texts = list("abc" * 40)
    names = [f"id{i}" for i in range(120)]
    whole = SPREAD.apply(texts, key=KEY, identity=names)
    assert SPREAD.apply(texts[::-1], key=KEY, identity=names[::-1]) == whole[::-1]
    assert whole != SPREAD.apply(texts, key=KEY)


def test_channels_and_purposes_draw_independently():
    """Two channels on the same record would be correlated if they shared their numbers."""
    coin = channel_of(((D // 2, D // 2),) * 3)
    other = channel_of(((D // 2, D // 2),) * 3, symbols="abd")
    one, _ = drawn(coin, ["a"] * 4000)
    two, _ = drawn(other, ["a"] * 4000)
    assert 1800 < sum(a == b for a, b in zip(one, two, strict=True)) < 2200


def test_the_digest_is_of_what_the_channel_does(tmp_path):
    SPREAD.save(tmp_path / "internal.json")
    SPREAD.save(tmp_path / "public.json", public=True)
    digests = {
        channel_digest(Channel.load(tmp_path / name))
        for name in ("internal.json", "public.json")
    }
    assert digests == {channel_digest(SPREAD)}
    assert channel_digest(IDENTITY) not in digests
    assert (
        channel_digest(replace(SPREAD, outputs=("z", *SPREAD.outputs[1:])))
        not in digests
    )


@pytest.mark.parametrize(
    ("rule", "what"), [("missing", None), ("missing", ""), ("unknown", "zebra")]
)
def test_policies(rule, what):
    texts = ["a", what, "b", what] * 5000
    with pytest.raises(UnknownSymbol, match=r"entry 1: .*(empty cell|symbol of 'x')"):
        drawn(IDENTITY, texts)
    given_, release = drawn(IDENTITY, texts, policy=Policy(**{rule: "output:y2"}))
    assert given_ == ["y0", "y2", "y1", "y2"] * 5000
    assert release.symbol_counts[0].tolist() == [
        5000,
        5000,
        0,
        *((10000, 0) if rule == "missing" else (0, 10000)),
    ]
    marginal, _ = drawn(IDENTITY, texts, policy=Policy(**{rule: "marginal"}))
    assert marginal[::2] == ["y0", "y1"] * 5000
    for y, share in zip(IDENTITY.outputs, (4 / 16, 6 / 16, 6 / 16), strict=True):
        assert marginal[1::2].count(y) / 10000 == pytest.approx(share, abs=0.03)


@pytest.mark.parametrize("denominator", [3, 10, D, 2**60])
def test_a_policy_changes_no_draw_of_a_known_record(denominator):
    third = denominator // 3
    channel = channel_of(((third, third, denominator - 2 * third),) * 3, denominator)
    plain, _ = drawn(channel, list("abc") * 200)
    for policy in (
        Policy(missing="marginal"),
        Policy(unknown="output:y1"),
        Policy(normalise="NFC"),
    ):
        assert drawn(channel, list("abc") * 200, policy=policy)[0] == plain


def test_the_marginal_of_a_coarse_channel_is_exact_all_the_same():
    """Its own denominator, 1, has no room for probabilities but 0 and 1."""
    channel = channel_of(((1, 0, 0), (0, 1, 0), (0, 0, 1)), 1)
    given_, _ = drawn(channel, [None] * 20_000, policy=Policy(missing="marginal"))
    for y, share in zip(channel.outputs, (4 / 16, 6 / 16, 6 / 16), strict=True):
        assert given_.count(y) / 20_000 == pytest.approx(share, abs=0.02)


def test_purposes_and_kinds_of_identity_have_keys_of_their_own():
    """The first draw by hand: the key of the channel, then that of the kind and purpose."""
    key = KEY.derived("channel", channel_digest(SPREAD)).derived("rows", "output")
    numbers = RowNumbers(0, 30).source(key).below(D, 30)
    cumulated = np.cumsum(SPREAD.rows[0])
    assert drawn(SPREAD, ["a"] * 30)[0] == [
        SPREAD.outputs[np.argmax(cumulated > u)] for u in numbers
    ]


def test_the_empty_symbol_is_no_null():
    channel = channel_of(((D, 0), (0, D), (0, D)), symbols=("a", "b", ""))
    assert drawn(channel, ["a", "", None], policy=Policy(missing="marginal"))[0] == [
        "y0",
        "y1",
        "y1",
    ]


def test_normalisation():
    composed = "caf\u00e9"
    decomposed = "cafe\u0301"
    channel = channel_of(((D, 0), (0, D), (0, D)), symbols=("a", composed, "c"))
    with pytest.raises(UnknownSymbol, match="does not know the symbol"):
        drawn(channel, [decomposed])
    for form in ("NFC", "NFD"):
        assert drawn(
            channel, [decomposed, composed, "a"], policy=Policy(normalise=form)
        )[0] == [
            "y1",
            "y1",
            "y0",
        ]
    both = channel_of(((D, 0), (0, D), (0, D)), symbols=("a", composed, decomposed))
    with pytest.raises(InputError, match="which NFC makes equal; choose another form"):
        Release(both, KEY, policy=Policy(normalise="NFC"))


def test_posterior_draws_keep_the_distribution_and_are_possible():
    n = 60_000
    texts = list(np.repeat(list("abc"), [n // 4, n * 3 // 8, n * 3 // 8]))
    given_, release = drawn(SPREAD, texts, form="posterior-draw")
    assert release.names == ("x",)
    for symbol, share in zip("abc", (4 / 16, 6 / 16, 6 / 16), strict=True):
        assert given_.count(symbol) / n == pytest.approx(share, abs=0.02)
    y, _ = drawn(SPREAD, texts)
    possible = {(s, x) for s in SPREAD.outputs for x in SPREAD.codebook()[s]}
    assert set(zip(y, given_, strict=True)) == possible


def test_posterior_draws_of_crossed_columns_give_each_column_its_part():
    joint = Joint.from_table(
        pd.DataFrame({"s": list("0011"), "p": list("abab"), "q": list("xyyx")}),
        sensitive="s",
        useful=("p", "q"),
    )
    rows = tuple(tuple(D if i == j else 0 for j in range(4)) for i in range(4))
    channel = Channel(joint.useful, tuple("ABCD"), rows, D, joint=joint)
    release = Release(channel, KEY, form="posterior-draw")
    codes, *_ = release.draw(
        [encode(list("abba"), "p"), encode(list("yxyx"), "q")], RowNumbers(0, 4)
    )
    assert release.names == ("p", "q")
    assert ["".join(texts[code] for code in codes) for texts in release.texts] == [
        "abba",
        "yxyx",
    ]


def test_an_identifier_of_two_different_records_is_refused():
    assert len(drawn(SPREAD, list("aab"), Identifiers([["1", "1", "2"]]))[0]) == 3
    with pytest.raises(
        InputError,
        match="entry 1: the identifier belongs to records with different symbols of 'x'; name",
    ):
        drawn(SPREAD, list("abb"), Identifiers([["1", "1", "2"]]))


@given(
    st.lists(st.integers(0, 50), min_size=1, max_size=8).filter(any),
    st.sampled_from([1, 7, 100, D]),
)
def test_apportioned(weights, denominator):
    shares = [Fraction(w) for w in weights]
    integers = apportioned(shares, denominator)
    assert integers.sum() == denominator
    for share, value in zip(shares, integers.tolist(), strict=True):
        assert abs(value - share * denominator / sum(shares)) < 1
        assert share or not value


PUBLIC = Channel(Variable(("x",), (("a",), ("b",))), ("u", "v"), ((1, 0), (0, 1)), 1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Policy(unknown="ignore"),
            r"unknown \('ignore'\) must be refuse, marginal, nearest or output:LABEL",
        ),
        (
            lambda: Policy(missing="output:"),
            r"missing \('output:'\) must be refuse, marginal or output:LABEL",
        ),
        (
            lambda: Policy(normalise="nfc"),
            r"normalise \('nfc'\) must be one of 'none', 'NFC'",
        ),
        (
            lambda: Release(PUBLIC, KEY, form="draw"),
            r"form \('draw'\) must be one of 'label', 'posterior-draw'",
        ),
        (
            lambda: Release(PUBLIC, KEY, policy=Policy(missing="output:w")),
            r"missing output:w: 'w' is no output of the channel, and another label would give the record away",
        ),
        (
            lambda: Release(PUBLIC, KEY, policy=Policy(unknown="marginal")),
            "unknown marginal needs the table that the channel was designed for, and this channel carries none",
        ),
        (
            lambda: Release(PUBLIC, KEY, form="posterior-draw"),
            "posterior-draw needs the table that the channel",
        ),
        (
            lambda: PUBLIC.apply(["a"], key=KEY, insecure_seed=1),
            "give a key or an insecure seed, not both",
        ),
        (
            lambda: PUBLIC.apply(["a"], identity=["1", "2"]),
            r"the identity needs one entry for each record \(1\), and has 2",
        ),
        (
            lambda: PUBLIC.apply(["a", "d"]),
            "entry 1: the channel does not know the symbol of 'x'",
        ),
    ],
)
def test_refusals(make, message):
    with pytest.raises(InputError, match=message):
        make()


@given(
    st.lists(st.sampled_from(["a", "b", "c", "?", None]), max_size=40),
    st.booleans(),
    st.data(),
)
def test_what_is_counted_is_what_would_be_drawn_for(texts, crossed, data):
    """Each record so many times, the missing and the unknown too."""
    times = data.draw(
        st.lists(st.integers(1, 3), min_size=len(texts), max_size=len(texts))
    )
    symbols = [(x, y) for x in "abc" for y in "uv"] if crossed else [*"abc"]
    rows = ((D, 0), (0, D), (D // 2, D // 2)) * (2 if crossed else 1)
    counts = np.ones((2, len(symbols)), int)
    joint = Joint.from_counts(
        counts,
        useful_labels=symbols,
        useful=["x", "y"] if crossed else "x",
        sensitive="s",
    )
    policy = Policy(unknown="marginal", missing="marginal")
    columns = [texts, ["u" if k % 2 else "v" for k in range(len(texts))]][: 1 + crossed]
    one, other = (
        Release(
            Channel(joint.useful, ("0", "1"), rows, D, joint=joint), KEY, policy=policy
        )
        for _ in "ab"
    )
    one.count([encode(column, "x") for column in columns], np.array(times, np.int64))
    every = [np.repeat(np.array(column, object), times).tolist() for column in columns]
    other.draw([encode(column, "x") for column in every], RowNumbers(0, sum(times)))
    assert one.symbol_counts[0].tolist() == other.symbol_counts[0].tolist()
    assert one.symbol_counts[0].sum() == sum(times)


def test_a_dictionary_that_fills_its_type_is_counted():
    cells = pa.DictionaryArray.from_arrays(
        pa.array(range(128), pa.int8()), [*"abc", *(f"other {k}" for k in range(125))]
    )
    release = Release(IDENTITY, KEY, policy=Policy(unknown="marginal"))
    release.count([encode(cells, "x")], np.ones(128, np.int64))
    assert release.symbol_counts[0].tolist() == [1, 1, 1, 0, 125]
