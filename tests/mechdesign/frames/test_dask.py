from __future__ import annotations

import logging
import os
import pickle
import time

import numpy as np
import pandas as pd
import pytest

from mechdesign import create_key, sanitise
from mechdesign.core.errors import InputError
from mechdesign.release.samplers import Policy
from tests.cases.released_records import (
    KEY,
    NAMED,
    adult_by_relationship,
    adult_channel,
    crossed_channel,
    drawn_by_hand,
    mixing_channel,
    pay_mechanism,
    people,
)
from tests.profiles import slow

dask = pytest.importorskip("dask", reason="dask is not installed")
dd = pytest.importorskip("dask.dataframe", reason="dask is not installed")

IDENTITIES = [{}, *NAMED]


@pytest.fixture
def channel():
    return mixing_channel()


@pytest.fixture(autouse=True)
def in_one_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.mark.parametrize(
    "identity", IDENTITIES, ids=lambda identity: "-".join(identity) or "place"
)
@pytest.mark.parametrize("partitions", [slow(1), slow(2), 7])
def test_the_draws_are_those_of_one_machine(channel, identity, partitions):
    frame = people(200)
    expected = sanitise(frame, channel, key=KEY, **identity)
    released = sanitise(
        dd.from_pandas(frame, npartitions=partitions), channel, key=KEY, **identity
    )
    assert released.npartitions == partitions
    pd.testing.assert_frame_equal(released.compute().astype(expected.dtypes), expected)


def test_the_draws_are_those_by_hand(channel):
    frame = people(60)
    released = sanitise(dd.from_pandas(frame, npartitions=3), channel, key=KEY)
    assert released.compute()["job"].tolist() == drawn_by_hand(channel, frame["job"])


def test_repartitioning_before_or_after_changes_nothing(channel):
    source = dd.from_pandas(people(100), npartitions=5)
    expected = sanitise(source, channel, key=KEY).compute()
    before = sanitise(source.repartition(npartitions=2), channel, key=KEY).compute()
    after = sanitise(source, channel, key=KEY).repartition(npartitions=2).compute()
    pd.testing.assert_frame_equal(before, expected)
    pd.testing.assert_frame_equal(after, expected)


def test_what_is_asked_for_later_changes_no_draw(channel):
    released = sanitise(
        dd.from_pandas(people(100), npartitions=5), channel, key=KEY, keep="all"
    )
    whole = released.compute()
    pd.testing.assert_frame_equal(released.partitions[3].compute(), whole.iloc[60:80])
    pd.testing.assert_frame_equal(
        released[released["pay"] > 0].compute(), whole[whole["pay"] > 0]
    )
    pd.testing.assert_series_equal(released["job"].compute(), whole["job"])
    pd.testing.assert_frame_equal(released.tail(3), whole.tail(3))


def test_records_are_numbered_across_empty_partitions_and_any_index(channel):
    frame = people(100).set_index(np.arange(100)[::-1] // 3)
    kept = frame[frame["n"] >= 45]
    source = dd.from_pandas(frame, npartitions=6, sort=False)
    part = source[source["n"] >= 45]
    released = sanitise(part, channel, key=KEY, keep_index=True).compute()
    assert released["job"].tolist() == drawn_by_hand(channel, kept["job"])
    assert released.index.tolist() == kept.index.tolist()
    # By default each partition numbers its own records.
    numbered = sanitise(part, channel, key=KEY)
    assert not numbered.known_divisions
    for partition in numbered.partitions:
        labels = partition.compute().index
        assert labels.tolist() == list(range(len(labels)))


def test_divisions_index_types_and_other_columns_stay(channel):
    frame = people(40).astype({"job": "category"}).set_index("id")
    source = dd.from_pandas(frame, npartitions=4)
    released = sanitise(source, channel, key=KEY, keep="all")
    assert released.divisions == source.divisions
    assert released._meta["job"].cat.categories.tolist() == list(channel.outputs)
    computed = released.compute()
    assert computed.dtypes.to_dict() == released.dtypes.to_dict()
    assert computed["job"].tolist() == drawn_by_hand(channel, frame["job"])
    pd.testing.assert_frame_equal(
        computed.drop(columns="job"), source.compute().drop(columns="job")
    )


def test_forms_policies_and_several_channels_are_those_of_frames(channels):
    frame = people(40).assign(city=np.random.default_rng(1).choice([*"stt?"], 40))
    source = dd.from_pandas(frame, npartitions=3)
    arguments = {"key": KEY, "policy": Policy(unknown="marginal")}
    for wishes in ({}, {"into": ["y", "z"]}, {"form": "posterior-draw"}):
        expected = sanitise(frame, channels, **arguments, **wishes)
        released = sanitise(source, channels, **arguments, **wishes)
        assert list(released.columns) == list(expected.columns)
        pd.testing.assert_frame_equal(
            released.compute().astype(expected.dtypes), expected
        )
    crossed = pd.DataFrame({"city": [*"sst"] * 4, "k": range(12), "job": [*"aba"] * 4})
    released = sanitise(
        dd.from_pandas(crossed, npartitions=2), crossed_channel(), key=KEY
    ).compute()
    assert (
        released["city,job"].tolist()
        == sanitise(crossed, crossed_channel(), key=KEY)["city,job"].tolist()
    )


def test_two_readings_come_first(channel):
    """What cannot be read is an error at once, and not in the middle of a release."""

    def fail(part):
        raise RuntimeError("computed")

    source = dd.from_pandas(people(10), npartitions=2)
    lazy = source.map_partitions(fail, meta=source._meta)
    for identity in IDENTITIES:
        with pytest.raises(RuntimeError, match="computed"):
            sanitise(lazy, channel, key=KEY, keep_order=True, **identity)


def shuffled_anew(part):
    return part.sample(frac=1)


def with_other_symbols(part):
    chance = np.random.default_rng()
    return part.assign(job=chance.choice([*"abc"], len(part)))


def with_exchanged_symbols(part):
    """The same symbols as often as before, of other records."""
    return part.assign(job=np.random.default_rng().permutation(part["job"]))


@pytest.mark.parametrize("keep_order", [slow(False), True])
def test_a_random_function_is_refused_by_what_it_does(channel, keep_order):
    """Both releases of the same key would have drawn the records twice."""
    source = dd.from_pandas(people(400), npartitions=2)
    moved = source.map_partitions(shuffled_anew, meta=source._meta)
    first, second = moved.compute(), moved.compute()
    # The leak: at the same place stands another record, which would get the same random number.
    assert first["id"].tolist() != second["id"].tolist()
    options = {"key": KEY, "keep": "all", "keep_order": keep_order}
    with pytest.raises(InputError, match=r"^two readings .* if only the order differs"):
        sanitise(moved, channel, **options)
    released = sanitise(moved, channel, identity="id", **options).compute()
    by_name = dict(zip(released["id"], released["job"], strict=True))
    frame = people(400)
    names = frame["id"].tolist()
    assert [by_name[name] for name in names] == drawn_by_hand(
        channel, frame["job"], names
    )
    # Symbols that differ in every reading are no data of these identifiers.
    for change in (with_other_symbols, with_exchanged_symbols):
        drawn = source.map_partitions(change, meta=source._meta)
        for identity in ({"identity": "id"}, {"row_numbers": "n"}, {}):
            with pytest.raises(InputError, match=r"^two readings of this table differ"):
                sanitise(drawn, channel, **options, **identity)


def test_row_numbers_that_partitions_share_are_refused(channel):
    """Records of two partitions had one random number, without a word."""
    frame = people(60).assign(n=[*range(30), *range(30)])
    source = dd.from_pandas(frame, npartitions=2)
    # The leak: within each partition the numbers are different.
    for part in source.partitions:
        assert part.compute()["n"].is_unique
    with pytest.raises(
        InputError, match="'n' gives the row number 0 to two records, whose draws"
    ):
        sanitise(source, channel, key=KEY, row_numbers="n")


def test_an_index_that_copies_the_column_is_refused(channel):
    frame = people(3000)
    source = dd.from_pandas(
        frame.set_index(frame["job"].map({"a": 3, "b": 5, "c": 7}).rename("k")),
        npartitions=2,
        sort=False,
    )
    options = {"key": KEY, "keep_order": True}
    released = sanitise(source, channel, keep="all", **options)
    with pytest.raises(InputError, match=r"take the index off .*stands for the useful"):
        released.compute()
    # Without a wish to keep it, an index with a name is left out like any column.
    alone = sanitise(source, channel, **options)
    assert not alone.known_divisions
    computed = alone.compute()
    assert computed.index.name is None
    assert computed["job"].tolist() == drawn_by_hand(channel, frame["job"])


def test_numbers_with_a_name_are_an_index_too(channel):
    """Its divisions would have been those of an index that is gone."""
    frame = people(40)
    frame.index.name = "who"
    source = dd.from_pandas(frame, npartitions=2)
    assert sanitise(source, channel, key=KEY, keep="all").known_divisions
    alone = sanitise(source, channel, key=KEY)
    assert not alone.known_divisions
    assert alone.compute().index.name is None


def test_categories_of_partitions_are_those_of_their_records(channel):
    frame = people(400)
    frame["kind"] = pd.Categorical(["u", "v"] * 200, categories=["secret", "u", "v"])
    source = dd.from_pandas(frame, npartitions=2)
    released = sanitise(source, channel, key=KEY, keep="kind")
    assert "secret" not in repr(released._meta["kind"].cat.categories)
    assert released.compute()["kind"].cat.categories.tolist() == ["u", "v"]


def test_partitions_that_tell_of_the_sensitive_column_are_refused(adult):
    """On Adult grouped by relationship, nearly all of them could be told from the number of the partition."""
    frame, secret = adult_by_relationship(adult)
    parts, channel = 16, adult_channel(adult)
    source = dd.from_pandas(frame, npartitions=parts)
    released = sanitise(
        source, channel, key=KEY, row_numbers="n", keep_order=True, keep="all"
    )
    places = np.repeat(np.arange(parts), released.map_partitions(len).compute())
    table = pd.crosstab(places, np.array(secret))
    assert (
        table.max(axis=1).sum() / len(frame) > 0.9 > 2 * table.sum().max() / len(frame)
    )
    with pytest.raises(
        InputError,
        match=r"the partitions tell of 'occupation' .*orderBy.*\(keep_order=\)",
    ):
        sanitise(source, channel, key=KEY, row_numbers="n", keep="all")
    mixed = dd.from_pandas(
        frame.sample(frac=1, random_state=3), npartitions=parts, sort=False
    )
    released = sanitise(mixed, channel, key=KEY, row_numbers="n", keep="all").compute()
    expected = sanitise(frame, channel, key=KEY, keep_order=True, keep="all")[
        "occupation"
    ].tolist()
    assert released.sort_values("n")["occupation"].tolist() == expected


def test_what_gives_the_column_away_in_no_partition_alone_is_an_error(channel):
    source = dd.from_pandas(
        people(120).assign(work=lambda all: all["job"]), npartitions=12
    )
    with pytest.raises(InputError, match=r"^the column 'work' stands for the useful"):
        sanitise(source, channel, key=KEY, keep="all")
    assert len(sanitise(source, channel, key=KEY, keep="work").compute()) == 120


def test_unknown_symbols_that_crowd_in_a_partition_are_seen(channel):
    frame = people(400).assign(job=["a", "b"] * 100 + [None, "?"] * 100)
    policy = Policy(unknown="output:p", missing="output:q")
    with pytest.raises(InputError, match="the partitions tell of 'job'"):
        sanitise(dd.from_pandas(frame, npartitions=4), channel, key=KEY, policy=policy)


def test_partitions_that_change_after_they_were_counted_are_refused(
    channel, monkeypatch
):
    """Dask reads a few columns of several files as one partition."""
    frame = people(900).sort_values("job", ignore_index=True)
    source = dd.from_pandas(frame, npartitions=9)
    with monkeypatch.context() as patch:
        patch.setattr(
            type(source), "to_delayed", lambda self: [dask.delayed(self.compute())]
        )
        released = sanitise(source, channel, key=KEY)
    with pytest.raises(InputError, match=r"^the partitions tell of 'job'"):
        released.partitions[1].compute()


def test_a_mechanism_for_single_records():
    """The answers, and the records that are left out, are those of a frame."""
    frame, mechanism = people(300), pay_mechanism()
    expected = sanitise(frame, mechanism)
    assert 100 < len(expected) < 300
    released = sanitise(dd.from_pandas(frame, npartitions=3), mechanism).compute()
    # Where records are left out, each partition numbers its own.
    numbered = released.reset_index(drop=True)
    pd.testing.assert_frame_equal(numbered.astype(expected.dtypes), expected)
    apart = pd.concat(
        [frame[frame["pay"] < 0], frame[frame["pay"] >= 0]], ignore_index=True
    )
    with pytest.raises(InputError, match="the partitions tell of 'pay'"):
        sanitise(dd.from_pandas(apart, npartitions=2), mechanism)


def test_a_key_file_is_read_where_the_job_is_made(channel, tmp_path):
    frame = people(20)
    create_key(tmp_path / "job.key", KEY)
    released = sanitise(
        dd.from_pandas(frame, npartitions=2), channel, key=tmp_path / "job.key"
    )
    (tmp_path / "job.key").unlink()
    assert released.compute()["job"].tolist() == drawn_by_hand(channel, frame["job"])


def test_no_graph_shows_the_key(channel):
    released = sanitise(dd.from_pandas(people(20), npartitions=2), channel, key=KEY)
    graph = released.optimize().__dask_graph__()
    shown = [
        repr(released),
        str(released),
        str(released.expr),
        repr(dict(graph)),
        released.expr.tree_repr(),
    ]
    for text in shown:
        for secret in (KEY.secret.hex(), repr(KEY.secret), str(list(KEY.secret))):
            assert secret not in text
    assert any("sanitise_partition" in text for text in shown)
    assert KEY.secret in pickle.dumps(
        released.expr
    )  # it travels, in the function alone


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "must draw the same: give a key"),
        ({"key": KEY, "identity": "who"}, "there is no column 'who'"),
        ({"key": KEY, "columns": {"job": "work"}}, "there is no column 'work'"),
        ({"key": KEY, "correlated": "pay"}, "the correlated column 'pay' would stay"),
        (
            {"key": KEY, "row_numbers": "pay"},
            "'pay' must hold an integer for every record",
        ),
    ],
)
def test_what_the_header_tells_is_refused_at_once(channel, arguments, message):
    with pytest.raises(InputError, match=message):
        sanitise(
            dd.from_pandas(people(10), npartitions=2),
            channel,
            **{"keep": "all"} | arguments,
        )


def test_sanitise_takes_dask_frames_and_parts_of_tables(channel):
    frame = people(50)
    part = sanitise(
        dd.from_pandas(frame.iloc[20:], npartitions=3), channel, key=KEY, first_row=20
    )
    assert part.compute()["job"].tolist() == drawn_by_hand(channel, frame["job"])[20:]


@pytest.mark.parametrize(
    ("identity", "message"),
    [
        (
            {},
            "row number 17 \\(counted from 0\\): the channel does not know the symbol of",
        ),
        (
            {"row_numbers": "n"},
            "row number 17: the channel does not know the symbol of",
        ),
        (
            {"identity": "id"},
            "the record at place \\d+ .counted from 0. of its part: the channel does not know the symbol of",
        ),
    ],
)
def test_a_bad_record_is_named(channel, identity, message):
    frame = people(30)
    frame.loc[17, "job"] = "z"
    released = sanitise(
        dd.from_pandas(frame, npartitions=4), channel, key=KEY, **identity
    )
    with pytest.raises(InputError, match=message):
        released.compute()


class DiesOnce:
    """The task that meets the third partition first takes its worker process with it."""

    def __init__(self, mark):
        self.mark = mark

    def __call__(self, part):
        if len(part) and part["n"].iloc[0] == 20 and not self.mark.exists():
            self.mark.touch()
            time.sleep(0.1)
            os._exit(1)
        return part


def test_a_fresh_draw_by_the_ledger(channel, tmp_path):
    """It was not asked of the ledger, and the frame got the old draws again."""
    options = {"identity": "id", "ledger": tmp_path / "ledger.db"}
    frame = dd.from_pandas(people(200), npartitions=2)
    first, again, fresh = (
        sanitise(frame, channel, **options, **more).compute()["job"].tolist()
        for more in ({}, {}, {"fresh_draw": True})
    )
    assert first == again != fresh
    with pytest.raises(InputError, match="without a ledger every draw is fresh"):
        sanitise(frame, channel, key=KEY, fresh_draw=True)


@pytest.fixture(scope="module")
def cluster():
    """Two worker processes; the log of a killed worker is none of our business."""
    distributed = pytest.importorskip(
        "distributed", reason="distributed is not installed"
    )
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address=None,
            silence_logs=logging.CRITICAL,
        ) as local,
        distributed.Client(local, set_as_default=False) as client,
    ):
        yield client


@pytest.mark.filterwarnings(
    "ignore:these records were released"
)  # other identities draw anew
@pytest.mark.slow
def test_a_cluster_of_processes_draws_as_one_machine(cluster, channel):
    frame = people(200)
    source = dd.from_pandas(frame, npartitions=7)
    for identity in IDENTITIES:
        expected = sanitise(frame, channel, key=KEY, **identity)
        released = cluster.compute(
            sanitise(source, channel, key=KEY, **identity)
        ).result()
        assert released["job"].tolist() == expected["job"].tolist()


@pytest.mark.slow
def test_an_error_of_a_worker_is_the_same_clear_line(cluster, channel):
    frame = people(30)
    frame.loc[17, "job"] = "z"
    released = sanitise(
        dd.from_pandas(frame, npartitions=4), channel, key=KEY, identity="id"
    )
    with pytest.raises(
        InputError,
        match=r"^the record at place \d+ .counted from 0. of its part: the channel does not know the symbol",
    ):
        cluster.compute(released).result()


@pytest.mark.slow
def test_a_worker_that_dies_changes_no_draw(cluster, channel, tmp_path):
    frame = people(50)
    source = dd.from_pandas(frame, npartitions=5)
    mark = tmp_path / "died"
    fragile = source.map_partitions(DiesOnce(mark), meta=source._meta)
    # This process reads the table before it is released, and must not die of it.
    mark.touch()
    released = sanitise(fragile, channel, key=KEY)
    mark.unlink()
    assert cluster.compute(released).result()["job"].tolist() == drawn_by_hand(
        channel, frame["job"]
    )
    assert (tmp_path / "died").exists()


@pytest.mark.parametrize(
    "options",
    [{}, {"policy": Policy(unknown="marginal")}, {"form": "posterior-draw"}],
    ids=["label", "marginal", "posterior"],
)
def test_no_joint_table_travels_to_the_workers(channel, options):
    """What a task needs of the table, if anything, are the frequencies of X."""
    frame = people(40)
    released = sanitise(
        dd.from_pandas(frame, npartitions=2), channel, key=KEY, **options
    )
    operands = [each for part in released.expr.walk() for each in part.operands]
    work = next(each for each in operands if hasattr(each, "_recipe"))
    (sent,) = pickle.loads(pickle.dumps(work))._recipe.channels  # noqa: S301 - as a worker gets it
    assert (
        sent.joint is None
        if not options
        else sent.joint.counts == (channel.joint.useful_counts,)
    )
    assert sent.record.achieved is None
    expected = sanitise(frame, channel, key=KEY, **options)
    assert released.compute()["job"].tolist() == expected["job"].tolist()
