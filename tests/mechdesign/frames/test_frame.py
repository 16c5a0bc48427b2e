from __future__ import annotations

import datetime as dt
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import mechdesign as md
from mechdesign import create_key, sanitise
from mechdesign.core.errors import InputError
from mechdesign.release.draws import Key
from mechdesign.release.samplers import Policy
from tests.cases.released_records import (
    KEY,
    crossed_channel,
    drawn_by_hand,
    mixing_channel,
    people,
)

KINDS = {
    "pandas": lambda frame: frame,
    "polars": pl.from_pandas,
    "arrow table": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
    "arrow batch": lambda frame: pa.RecordBatch.from_pandas(
        frame, preserve_index=False
    ),
}


@pytest.fixture(params=KINDS)
def kind(request):
    return KINDS[request.param]


@pytest.fixture
def channel():
    return mixing_channel()


def cells(frame, name) -> list:
    if isinstance(frame, (pa.Table, pa.RecordBatch)):
        return frame.column(name).to_pylist()
    return frame[name].to_list()


def names(frame) -> list[str]:
    return (
        list(frame.schema.names)
        if isinstance(frame, (pa.Table, pa.RecordBatch))
        else list(frame.columns)
    )


def test_every_kind_of_frame_gets_the_draws_of_its_row_numbers(kind, channel):
    frame = people(300)
    expected = drawn_by_hand(channel, frame["job"])
    assert set(expected) == set(channel.outputs)
    released = sanitise(kind(frame), channel, key=KEY, keep="all")
    assert type(released) is type(kind(frame))
    assert cells(released, "job") == expected
    assert names(released) == ["id", "n", "job", "pay"]
    for name in ("id", "n", "pay"):
        assert cells(released, name) == frame[name].to_list()


def test_every_kind_of_frame_gets_the_draws_of_its_identifiers(kind, channel):
    frame = people(300).sample(frac=1, random_state=3).reset_index(drop=True)
    expected = drawn_by_hand(channel, frame["job"], frame["id"])
    assert (
        cells(sanitise(kind(frame), channel, key=KEY, identity="id"), "job") == expected
    )


def test_row_numbers_in_a_column_give_the_draws_of_those_rows_in_any_order(
    kind, channel
):
    frame = people(300)
    expected = dict(zip(frame["n"], drawn_by_hand(channel, frame["job"]), strict=True))
    mixed = frame.sample(frac=1, random_state=3)
    released = sanitise(kind(mixed), channel, key=KEY, row_numbers="n")
    assert cells(released, "job") == [expected[n] for n in mixed["n"]]


def test_parts_of_a_table_get_the_draws_of_the_whole(kind, channel):
    frame = people(100)
    whole = cells(sanitise(kind(frame), channel, key=KEY), "job")
    parts = [
        cells(sanitise(kind(frame[a:b]), channel, key=KEY, first_row=a), "job")
        for a, b in ((0, 33), (33, 34), (34, 34), (34, 100))
    ]
    assert [label for part in parts for label in part] == whole


@pytest.mark.filterwarnings(
    "ignore:these records were released through this channel before in this"
)
def test_integer_and_text_identifiers_are_the_same_in_every_kind_of_frame(
    kind, channel
):
    frame = people(50)
    as_text = cells(
        sanitise(
            kind(frame.assign(n=frame["n"].astype(str))), channel, key=KEY, identity="n"
        ),
        "job",
    )
    assert (
        cells(sanitise(kind(frame), channel, key=KEY, identity="n"), "job") == as_text
    )
    two = cells(sanitise(kind(frame), channel, key=KEY, identity=["n", "id"]), "job")
    assert two != as_text


@pytest.mark.filterwarnings(
    "ignore:these records were released through this channel before in this"
)
def test_without_a_key_every_call_draws_anew(channel):
    frame = people(300)
    first, second = (sanitise(frame, channel)["job"].tolist() for _ in range(2))
    assert first != second
    assert (
        sanitise(frame, channel, insecure_seed=7)["job"].tolist()
        == sanitise(frame, channel, key=KEY)["job"].tolist()
    )


def test_a_key_file_is_read(channel, tmp_path):
    create_key(tmp_path / "job.key", KEY)
    frame = people(50)
    pd.testing.assert_frame_equal(
        sanitise(frame, channel, key=tmp_path / "job.key"),
        sanitise(frame, channel, key=KEY),
    )


def test_a_pandas_frame_keeps_index_columns_and_memory(channel):
    frame = people(6).set_index(pd.Index([5, 5, 1, 0, 2, 2], name="who"))
    frame[3] = 1.5
    frame.columns.name = "columns"
    frame.attrs["source"] = "register"
    before = frame.copy()
    released = sanitise(frame, channel, key=KEY, keep="all")
    pd.testing.assert_index_equal(released.index, frame.index)
    pd.testing.assert_index_equal(released.columns, frame.columns)
    # What a user noted may say anything of the records.
    assert released.attrs == {}
    assert frame.attrs == {"source": "register"}
    pd.testing.assert_frame_equal(
        released.drop(columns="job"), frame.drop(columns="job")
    )
    assert np.shares_memory(released["pay"].to_numpy(), frame["pay"].to_numpy())
    pd.testing.assert_frame_equal(frame, before)


def test_a_pandas_multi_index_stays(channel):
    frame = people(6).set_index(["id", "n"])
    released = sanitise(frame, channel, key=KEY, keep="all")
    pd.testing.assert_index_equal(released.index, frame.index)
    assert released["job"].tolist() == drawn_by_hand(channel, frame["job"])


@pytest.mark.parametrize("form", ["label", "posterior-draw"])
def test_categories_stay_categories_with_all_labels(channel, form):
    frame = people(40).astype({"job": "category"})
    labels = list(channel.outputs) if form == "label" else [*"abc"]
    released = sanitise(frame, channel, key=KEY, form=form)
    assert released["job"].cat.categories.tolist() == labels
    text = sanitise(frame.astype({"job": str}), channel, key=KEY, form=form)
    assert released["job"].tolist() == text["job"].tolist()
    in_polars = sanitise(pl.from_pandas(frame), channel, key=KEY, form=form)
    assert in_polars.schema["job"] == pl.Categorical
    assert in_polars["job"].to_list() == text["job"].tolist()
    as_enum = pl.from_pandas(frame).cast({"job": pl.Enum([*"abc"])})
    assert sanitise(as_enum, channel, key=KEY, form=form).schema["job"] == pl.Enum(
        labels
    )
    table = sanitise(pa.Table.from_pandas(frame), channel, key=KEY, form=form)
    assert pa.types.is_dictionary(table.schema.field("job").type)
    assert table.column("job").chunk(0).dictionary.to_pylist() == labels


def test_an_arrow_table_of_pandas_comes_back_to_pandas_as_it_should(channel):
    frame = people(40).set_index("id")
    for column in ("str", "category"):
        table = pa.Table.from_pandas(frame.astype({"job": column}))
        released = sanitise(table, channel, key=KEY, keep="all").to_pandas()
        pd.testing.assert_frame_equal(
            released,
            sanitise(frame.astype({"job": column}), channel, key=KEY, keep="all"),
        )
    renumbered = Key.insecure(1)
    numbers = crossed_channel()
    frame = pd.DataFrame(
        {"job": ["a", "b", "a"], "k": [1, 2, 3], "city": ["s", "s", "t"]}
    ).set_index("city")
    table = pa.Table.from_pandas(frame)
    released = sanitise(table, numbers, key=renumbered, keep="all")
    assert released.schema.names == ["k", "city,job"]
    back = released.to_pandas()
    assert back.index.name == "city,job"
    assert set(back.index) <= {"1", "2", "3"}


def test_an_arrow_table_keeps_the_other_columns_their_types_and_nulls(channel):
    table = pa.table(
        {
            "when": pa.array([dt.date(2024, 1, 1), None]),
            "job": pa.chunked_array([["a"], ["b"]]),
            "tags": pa.array([["x"], None]),
        }
    )
    fields = [
        table.schema.field(0),
        pa.field("job", pa.string(), nullable=False),
        table.schema.field(2),
    ]
    table = table.cast(pa.schema(fields)).replace_schema_metadata({"who": "register"})
    released = sanitise(table, channel, key=KEY, keep="all")
    # Notes on the table may say anything of its records.
    assert released.schema.metadata is None
    assert released.schema.equals(table.schema)
    assert released.drop(["job"]).equals(table.drop(["job"]))
    added = sanitise(table, channel, key=KEY, into="y")
    assert added.schema.names == ["when", "job", "tags", "y"]
    assert added.column("job").equals(table.column("job"))
    assert added.column("y").to_pylist() == released.column("job").to_pylist()


def test_crossed_columns_become_one_in_the_place_of_the_first(kind):
    channel = crossed_channel()
    frame = pd.DataFrame(
        {"k": [1, 2, 3], "job": [*"aba"], "z": [*"xyz"], "city": [*"sst"]}
    )
    released = sanitise(kind(frame), channel, key=KEY, keep="all")
    assert names(released) == ["k", "z", "city,job"]
    assert cells(released, "city,job") == drawn_by_hand(
        channel, ["s, a", "s, b", "t, a"]
    )
    assert cells(released, "z") == [*"xyz"]


def test_a_posterior_draw_of_crossed_columns_fills_them_all(kind):
    channel = crossed_channel()
    frame = pd.DataFrame(
        {"k": [1, 2, 3] * 30, "job": [*"aba"] * 30, "city": [*"sst"] * 30}
    )
    with pytest.raises(
        InputError, match="the column 'k' stands for the useful column 'city'"
    ):
        sanitise(kind(frame), channel, key=KEY, keep="all")
    frame = frame.assign(k=range(90)).sample(frac=1, random_state=1, ignore_index=True)
    released = sanitise(
        kind(frame.astype({"city": "category"})),
        channel,
        key=KEY,
        form="posterior-draw",
        keep="all",
    )
    assert names(released) == ["k", "job", "city"]
    pairs = set(zip(cells(released, "city"), cells(released, "job"), strict=True))
    assert pairs == set(channel.useful.symbols)


def test_columns_may_have_another_name_in_the_frame(kind, channel):
    frame = people(50)
    renamed = frame.rename(columns={"job": "occupation"})
    released = sanitise(
        kind(renamed), channel, key=KEY, columns={"job": "occupation"}, keep="all"
    )
    assert names(released) == list(renamed.columns)
    key = KEY.derived("columns", "text", "occupation")
    assert cells(released, "occupation") == drawn_by_hand(
        channel, frame["job"], key=key
    )


def test_several_channels_at_once_draw_as_each_alone(kind, channels):
    job, city = channels
    frame = people(60).assign(city=[*"stt"] * 20)
    both = sanitise(kind(frame), [job, city], key=KEY)
    assert cells(both, "job") == drawn_by_hand(job, frame["job"])
    assert cells(both, "city") == drawn_by_hand(city, frame["city"])
    added = sanitise(kind(frame), [job, city], key=KEY, into=["y", "z"])
    assert names(added) == [*frame.columns, "y", "z"]
    assert cells(added, "y") == cells(both, "job")
    assert cells(added, "z") == cells(both, "city")
    assert cells(added, "job") == frame["job"].to_list()


@pytest.mark.parametrize("into", [["c", "j"], [["c", "j"]]])
def test_posterior_draws_can_be_added(kind, into):
    channel = crossed_channel()
    frame = pd.DataFrame({"city": [*"sst"], "job": [*"aba"]})
    added = sanitise(kind(frame), channel, key=KEY, form="posterior-draw", into=into)
    replaced = sanitise(kind(frame), channel, key=KEY, form="posterior-draw")
    assert names(added) == ["city", "job", "c", "j"]
    assert [cells(added, "c"), cells(added, "j")] == [
        cells(replaced, "city"),
        cells(replaced, "job"),
    ]


def test_an_empty_frame_stays_empty(kind, channel):
    released = sanitise(kind(people(1)[:0]), channel, key=KEY, keep="all")
    assert names(released) == ["id", "n", "job", "pay"]
    assert cells(released, "job") == []
    for identity in ({"identity": "id"}, {"row_numbers": "n"}):
        assert (
            cells(
                sanitise(
                    kind(people(1)[:0]), channel, key=KEY, **{"keep": "all"} | identity
                ),
                "job",
            )
            == []
        )


def test_an_empty_part_has_the_types_of_a_full_one(channel):
    for dtype in ("str", object, "category", "string"):
        frame = people(20).astype({"job": dtype})
        full, empty = (
            sanitise(frame, channel, key=KEY),
            sanitise(frame[:0], channel, key=KEY),
        )
        assert empty.dtypes.to_dict() == full.dtypes.to_dict()


def test_the_policy_says_what_becomes_of_unknown_symbols_and_gaps(kind, channel):
    frame = pd.DataFrame({"job": ["a", "z", None]})
    released = sanitise(
        kind(frame),
        channel,
        key=KEY,
        policy=Policy(unknown="output:q", missing="marginal"),
        first_row=0,
    )
    assert cells(released, "job")[1] == "q"
    assert cells(released, "job")[2] in channel.outputs


def test_the_sensitive_column_may_not_stay(kind, channel):
    frame = people(5).assign(rel="w")
    with pytest.raises(
        InputError, match="the sensitive column 'rel' would stay in the output"
    ):
        sanitise(kind(frame), channel, key=KEY, keep="all")
    kept = sanitise(kind(frame), channel, key=KEY, keep_sensitive=True, keep="all")
    assert cells(kept, "rel") == ["w"] * 5
    with pytest.raises(
        InputError, match="the correlated column 'pay' would stay in the output"
    ):
        sanitise(kind(people(5)), channel, key=KEY, correlated="pay", keep="all")


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        ([1, 2], "the table must be a pandas, polars or pyarrow table; not list"),
        (pd.Series([*"ab"]), "the table must be .*; not Series"),
        (
            pd.DataFrame([["a", "b"]], columns=["job", "job"]),
            "two columns have the same name 'job'; rename one",
        ),
        (
            pa.table([["a"], ["b"]], names=["job", "job"]),
            "two columns have the same name 'job'",
        ),
        (
            pd.DataFrame({"jobs": ["a"]}),
            "there is no column 'job'; did you mean 'jobs'",
        ),
        (
            pd.DataFrame({"job": [b"a"]}),
            "the column 'job' holds .*, which is no symbol",
        ),
    ],
)
def test_what_is_no_frame_of_the_channel_is_refused(channel, frame, message):
    with pytest.raises(InputError, match=message):
        sanitise(frame, channel, key=KEY)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"identity": "id", "row_numbers": "n"},
            "identity and row_numbers both identify records",
        ),
        (
            {"identity": "id", "first_row": 5},
            "first_row numbers records by their place, but identity",
        ),
        (
            {"identity": "job"},
            "the column 'job' is useful or sensitive and cannot identify records",
        ),
        (
            {"identity": "pay"},
            "the column 'pay' holds floats, which have more than one text",
        ),
        ({"identity": "who"}, "there is no column 'who'"),
        (
            {"row_numbers": "job"},
            "the column 'job' is useful and cannot number the records",
        ),
        (
            {"row_numbers": "pay"},
            "'pay' must hold an integer for every record, .* it holds Float64",
        ),
        ({"row_numbers": "who"}, "there is no column 'who'"),
        ({"insecure_seed": 1}, "give a key or an insecure seed, not both"),
        ({"into": "pay"}, "another column 'pay', the name of the released one"),
        ({"into": ["y", "z"]}, "give a name for every column that is added"),
        ({"form": "code"}, r"^form \('code'\) must be one of"),
        ({"columns": {"jobs": "job"}}, "the channel has no column 'jobs' to rename"),
        ({"key": "nowhere.key"}, "the key file nowhere.key: there is no such file"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(channel, arguments, message):
    with pytest.raises(InputError, match=message):
        sanitise(people(5), channel, **({"key": KEY} | arguments))


@pytest.mark.parametrize(
    ("change", "identity", "message"),
    [
        (
            {"job": ["a", "z"]},
            {},
            r"row number 1 \(counted from 0\): the channel does not know the symbol of",
        ),
        (
            {"job": ["a", "z"]},
            {"first_row": 9},
            "row number 10 .*: the channel does not know the symbol of",
        ),
        (
            {"job": ["a", None]},
            {"row_numbers": "n"},
            "row number 4: the column 'job' has an empty cell",
        ),
        (
            {"job": ["a", "z"]},
            {"identity": "id"},
            "the record at place \\d+ .counted from 0. of its part: the channel does not know the symbol of",
        ),
        (
            {"job": ["a", "z"]},
            {"identity": ["id", "n"]},
            "the record at place \\d+ .counted from 0. of its part: the channel does not know",
        ),
        (
            {"id": ["u", None]},
            {"identity": "id"},
            "entry 1: the column 'id' is empty, and the record cannot",
        ),
        ({"id": ["u", ""]}, {"identity": "id"}, "entry 1: the column 'id' is empty"),
        (
            {"id": ["u", "u"]},
            {"identity": "id"},
            "the record at place \\d+ .counted from 0. of its part: the identifier belongs to records with different symbols",
        ),
        (
            {"n": [4, 4]},
            {"row_numbers": "n"},
            "'n' gives the row number 4 to two records, whose draws",
        ),
        ({"n": [4, -1]}, {"row_numbers": "n"}, r"row numbers must lie in \[0, 2\^63\)"),
        (
            {"n": pd.array([1, None], dtype="Int64")},
            {"row_numbers": "n"},
            "'n' must hold an integer for every record, its row number, and it holds gaps",
        ),
    ],
)
def test_a_record_without_symbol_or_identity_is_named(
    channel, change, identity, message
):
    frame = pd.DataFrame({"id": ["u", "v"], "n": [3, 4], "job": ["a", "b"]}).assign(
        **change
    )
    with pytest.raises(InputError, match=message) as caught:
        sanitise(frame, channel, key=KEY, **identity)
    back = pickle.loads(pickle.dumps(caught.value))  # noqa: S301 - as a cluster brings it back
    assert str(back) == str(caught.value)


def test_the_same_record_twice_has_one_draw(channel):
    frame = pd.DataFrame({"id": ["u", "v", "u"], "job": ["a", "b", "a"]})
    released = sanitise(frame, channel, key=KEY, identity="id")["job"].tolist()
    assert released[0] == released[2]


@pytest.mark.parametrize(
    ("channel", "message"),
    [([], "give at least one channel"), ("c.json", "'c.json' is no channel")],
)
def test_what_is_no_channel_is_refused(channel, message):
    with pytest.raises(InputError, match=message):
        sanitise(people(2), channel)


def test_two_channels_for_one_column_are_refused(channel):
    with pytest.raises(InputError, match="two channels release the column 'job'"):
        sanitise(people(2), [channel, channel])


def test_a_second_draw_in_one_process_is_told(channel):
    """The hole: two calls without a key draw twice, one key on a slice gives records the numbers of others."""
    frame = people(300)
    again = "these records were released through this channel before in this process, .*ledger=.."
    sanitise(frame, channel)
    for second in (
        frame,
        frame.sample(frac=1, random_state=1),
        frame[50:],
        frame[frame.columns[::-1]],
    ):
        with pytest.warns(UserWarning, match=again):
            sanitise(second, channel)
    sanitise(
        people(300).assign(id=[f"other {i}" for i in range(300)], pay=0.5), channel
    )


def test_a_key_by_row_number_on_other_rows_is_told(channel):
    frame = people(300)
    sanitise(frame, channel, key=KEY)
    sanitise(frame, channel, key=KEY)
    sanitise(frame[:100], channel, key=KEY)
    sanitise(frame[["job", "n"]], channel, key=KEY)
    sanitise(frame[100:], channel, key=KEY, first_row=100)
    for other in (frame[100:], frame.sample(frac=1, random_state=1)):
        with pytest.warns(
            UserWarning,
            match=r"this key was used on other rows, .*identity=.*first_row=..",
        ):
            sanitise(other, channel, key=KEY)
    with pytest.warns(UserWarning, match="have now been drawn a second time"):
        sanitise(frame, channel, key=KEY, identity="id")


def test_with_the_ledger_it_is_an_error(channel, tmp_path):
    frame = people(300)
    options = {"ledger": tmp_path / "ledger.db"}
    first = sanitise(frame, channel, **options)["job"].tolist()
    assert sanitise(frame, channel, **options)["job"].tolist() == first
    for other in (frame[50:], frame.sample(frac=1, random_state=1)):
        with pytest.raises(
            InputError,
            match=r"have been released .*[(]to a data frame on .*[(]identity='COL'[)]",
        ):
            sanitise(other, channel, **options)
    with pytest.warns(
        UserWarning,
        match="all 2 draws of a record together make any value of|released before with 1",
    ):
        assert (
            sanitise(frame, channel, fresh_draw=True, **options)["job"].tolist()
            != first
        )
    with pytest.raises(InputError, match="without a ledger every draw is fresh"):
        sanitise(frame, channel, fresh_draw=True)
    with pytest.raises(InputError, match="a ledger knows whole tables; give identity"):
        sanitise(frame, channel, first_row=3, **options)
    with pytest.raises(InputError, match="a ledger has its own key; give it alone"):
        sanitise(frame, channel, key=KEY, **options)
    with pytest.raises(
        InputError, match="an insecure seed is for tests and has no ledger"
    ):
        sanitise(frame, channel, insecure_seed=1, **options)
    with pytest.raises(
        InputError, match="give the column as identity, in place of row_numbers"
    ):
        sanitise(frame, channel, row_numbers="n", **options)


@pytest.mark.parametrize(
    ("cell", "policy", "said"),
    [
        (None, Policy(missing="marginal"), r"\(policy=Policy\(missing='marginal'\)\)"),
        ("nowhere", Policy(unknown="marginal"), r"\(policy=Policy\(unknown=..\)\)"),
    ],
)
def test_a_refusal_in_python_names_the_policy(cell, policy, said):
    frame = pd.DataFrame({"s": list("ab") * 20, "x": list("uuvv") * 10})
    joint = md.Joint.from_table(frame, sensitive="s", useful="x")
    release = md.design(joint, md.LIP(0.5)).channel
    frame["x"] = frame["x"].astype(object)
    frame.loc[3, "x"] = cell
    with pytest.raises(InputError, match=said):
        sanitise(frame, release, insecure_seed=1, keep_order=True)
    out = sanitise(frame, release, insecure_seed=1, keep_order=True, policy=policy)
    assert len(out) == 40
