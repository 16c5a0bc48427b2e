from __future__ import annotations

import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

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
from tests.cases.released_records import KEY, mixing_channel, people
from tests.mechdesign.mechanisms.test_box_design import sample, truth

pytest.importorskip("sklearn", reason="scikit-learn is not installed")

from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils.estimator_checks import parametrize_with_checks

from mechdesign import ReleaseTransformer

ROOT = Path(__file__).parents[3]

PLACES = "a draw belongs to the place of a record: one that hangs on values alone would be a fixed function of X"
ANEW = "other data than those of fit get new draws at every call"
TEXT = "the released labels are text, and the check compares numbers"

EXPECTED_FAILURES = {
    "label": {
        "check_estimators_pickle": TEXT,
        "check_pipeline_consistency": TEXT,
        "check_transformer_data_not_an_array": TEXT,
        "check_transformer_general": TEXT,
        "check_transformer_preserve_dtypes": TEXT,
        "check_fit_idempotent": "the check transforms symbols that fit has not seen, which are refused by default",
        "check_methods_sample_order_invariance": PLACES,
        "check_methods_subset_invariance": PLACES,
    },
    "posterior-draw": {
        "check_methods_sample_order_invariance": PLACES,
        "check_methods_subset_invariance": PLACES,
    },
}


# What the checks of scikit-learn say of themselves, and of the data that they make.
@pytest.mark.filterwarnings("ignore:these are other data than those of fit:UserWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.slow
@parametrize_with_checks(
    [
        ReleaseTransformer(md.LIP(1.0), insecure_seed=1),
        ReleaseTransformer(
            md.LIP(1.0),
            form="posterior-draw",
            policy=Policy(unknown="marginal"),
            insecure_seed=1,
        ),
    ],
    expected_failed_checks=lambda estimator: EXPECTED_FAILURES[estimator.form],
)
def test_scikit_learns_own_checks(estimator, check):
    if estimator.form == "posterior-draw" and "fit_idempotent" in str(check):
        # Its few records get the same values by chance now and then, so it neither fails nor passes.
        pytest.xfail(ANEW)
    check(estimator)


@pytest.fixture
def frame():
    """Records of a sensitive column rel, which the job tells something of."""
    frame = people(400)
    chance = np.random.default_rng(2)
    likely = frame["job"].map({"a": 0.7, "b": 0.4, "c": 0.2})
    return frame.assign(rel=np.where(chance.random(400) < likely, "w", "h"))


@pytest.fixture
def release():
    return ReleaseTransformer(
        md.LIP(0.5), sensitive="rel", useful="job", key=KEY, keep="all"
    )


def test_fit_designs_the_channel_of_the_table_and_transform_draws(release, frame):
    released = release.fit_transform(frame)
    joint = md.Joint.from_table(frame, sensitive="rel", useful="job")
    assert release.channel_.joint == joint
    assert md.audit(release.channel_, joint, md.LIP(0.5)).satisfied
    assert list(released.columns) == ["id", "n", "job", "pay"]
    assert set(released["job"]) <= set(release.channel_.outputs)
    pd.testing.assert_frame_equal(
        released.drop(columns="job"), frame[["id", "n", "pay"]]
    )
    assert release.get_feature_names_out().tolist() == ["id", "n", "job", "pay"]


@pytest.mark.filterwarnings(
    "ignore:these records were released through this channel before in this"
)
def test_identified_records_get_the_draws_of_sanitise(frame):
    for identity in ({"identity": "id"}, {"row_numbers": "n"}):
        release = ReleaseTransformer(
            md.LIP(0.5), sensitive="rel", useful="job", key=KEY, **identity
        )
        released = release.fit(frame).transform(frame[:7])
        expected = sanitise(
            frame[:7].drop(columns="rel"), release.channel_, key=KEY, **identity
        )
        pd.testing.assert_frame_equal(released, expected)


def test_the_same_data_get_the_same_draws_and_other_data_others(release, frame):
    first = release.fit(frame).transform(frame)["job"].tolist()
    assert release.transform(frame)["job"].tolist() == first
    assert clone(release).fit(frame).transform(frame)["job"].tolist() == first
    with pytest.warns(
        UserWarning,
        match="other data than those of fit, and nothing identifies .* identity",
    ):
        other = release.transform(frame[:300])["job"].tolist()
    assert other != first[:300]
    with pytest.warns(UserWarning, match="each call draws them anew"):
        assert release.transform(frame[:300])["job"].tolist() != other
    other = ReleaseTransformer(
        md.LIP(0.5), sensitive="rel", useful="job", key=Key.insecure(8)
    ).fit(frame)
    assert other.transform(frame)["job"].tolist() != first


def test_without_a_key_each_fit_makes_one(frame):
    release = ReleaseTransformer(md.LIP(0.5), sensitive="rel", useful="job")
    first = release.fit_transform(frame)["job"].tolist()
    assert release.transform(frame)["job"].tolist() == first
    assert release.fit_transform(frame)["job"].tolist() != first


def test_identified_records_are_no_other_data(release, frame):
    release.set_params(identity="id").fit(frame)
    assert (
        release.transform(frame[3:4])["job"].tolist()
        == release.transform(frame)["job"][3:4].tolist()
    )


def test_a_given_channel_is_used_as_it_is(frame, tmp_path):
    channel = mixing_channel()
    channel.save(tmp_path / "channel.json")
    for given in (channel, tmp_path / "channel.json", str(tmp_path / "channel.json")):
        release = ReleaseTransformer(channel=given, key=KEY, identity="id").fit(frame)
        assert release.channel_ == channel
        expected = sanitise(frame.drop(columns="rel"), channel, key=KEY, identity="id")
        pd.testing.assert_frame_equal(release.transform(frame), expected)


@pytest.mark.parametrize(
    "kind", [pl.from_pandas, pa.Table.from_pandas], ids=["polars", "arrow"]
)
def test_other_kinds_of_frames_come_back_as_they_are(release, frame, kind):
    expected = release.fit(frame).transform(frame)["job"].tolist()
    released = clone(release).fit(kind(frame)).transform(kind(frame))
    assert type(released) is type(kind(frame))
    column = released["job"]
    assert (
        column.to_pylist() if isinstance(released, pa.Table) else column.to_list()
    ) == expected


def test_arrays_with_the_sensitive_symbols_in_y(frame):
    X, y = frame[["job", "n"]].to_numpy(dtype=object), frame["rel"].to_numpy()
    release = ReleaseTransformer(md.LIP(0.5), useful="x0", key=KEY, keep="all")
    released = release.fit(X, y).transform(X)
    assert released.dtype == object
    assert release.get_feature_names_out().tolist() == ["x0", "x1"]
    assert released[:, 1].tolist() == frame["n"].tolist()
    assert set(released[:, 0]) <= set(release.channel_.outputs)
    assert release.channel_.sensitive.columns == ("y",)
    numbered = ReleaseTransformer(
        md.LIP(0.5), useful="x0", key=KEY, row_numbers="x1", keep="all"
    ).fit(X, y)
    named = frame[["job"]].rename(columns={"job": "x0"})
    expected = sanitise(named, numbered.channel_, key=KEY, keep="all")
    assert numbered.transform(X)[:, 0].tolist() == expected["x0"].tolist()


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16, bool])
def test_posterior_draws_of_numbers_are_numbers(dtype):
    chance = np.random.default_rng(4)
    X = np.array([[0], [1]], dtype=dtype)[chance.integers(0, 2, 200)]
    y = np.where(chance.random(200) < 0.3 + 0.4 * X[:, 0], "w", "h")
    release = ReleaseTransformer(md.LIP(0.2), form="posterior-draw", key=KEY).fit(X, y)
    released = release.transform(X)
    assert released.dtype == dtype
    assert np.unique(released).tolist() == np.unique(X).tolist()
    assert (released != X).any()


def test_a_missing_cell_can_be_a_symbol():
    chance = np.random.default_rng(4)
    X = np.array([[0.0], [1.0], [np.nan]])[chance.integers(0, 3, 300)]
    y = np.where(chance.random(300) < np.where(np.isnan(X[:, 0]), 0.7, 0.3), "w", "h")
    release = ReleaseTransformer(
        md.LIP(0.2), missing="symbol", form="posterior-draw", key=KEY
    ).fit(X, y)
    assert ("",) in release.channel_.useful.symbols
    assert np.isnan(release.transform(X)).any()
    with pytest.raises(ValueError, match="Input X contains NaN"):
        ReleaseTransformer(md.LIP(0.2)).fit(X, y)


def test_set_output_names_the_columns(frame):
    X, y = frame[["job"]].to_numpy(dtype=object), frame["rel"]
    release = ReleaseTransformer(md.LIP(0.5), key=KEY).set_output(transform="pandas")
    released = release.fit(X, y).transform(X)
    assert isinstance(released, pd.DataFrame)
    assert released.columns.tolist() == ["x0"]


def test_a_pipeline_learns_from_what_is_released(release, frame):
    step = ColumnTransformer(
        [("release", release, ["rel", "job"])], verbose_feature_names_out=False
    )
    model = make_pipeline(step, OneHotEncoder(), LogisticRegression())
    model.fit(frame, frame["pay"] > 0)
    assert model.predict(frame).shape == (400,)
    assert step.fit(frame).get_feature_names_out().tolist() == ["job"]


def test_what_is_transformed_need_not_have_the_sensitive_column(release, frame):
    release.set_params(identity="id").fit(frame)
    pd.testing.assert_frame_equal(
        release.transform(frame.drop(columns="rel")), release.transform(frame)
    )
    with pytest.raises(ValueError, match="feature names"):
        release.transform(frame.drop(columns="pay"))
    kept = clone(release).set_params(keep_sensitive=True).fit(frame)
    assert kept.transform(frame)["rel"].tolist() == frame["rel"].tolist()
    assert kept.get_feature_names_out().tolist() == list(frame.columns)


def test_unknown_symbols_follow_the_policy(release, frame):
    release.set_params(identity="id").fit(frame)
    strange = frame.replace({"job": {"c": "z"}})
    with pytest.raises(InputError, match="does not know the symbol of 'job'"):
        release.transform(strange)
    release.set_params(policy=Policy(unknown="marginal"))
    assert set(release.transform(strange)["job"]) <= set(release.channel_.outputs)


def test_a_pickle_keeps_the_draws_and_has_the_key_only_if_it_must(frame, tmp_path):
    create_key(tmp_path / "job.key", KEY)
    for key, inside in ((KEY, True), (tmp_path / "job.key", False)):
        release = ReleaseTransformer(
            md.LIP(0.5), sensitive="rel", useful="job", key=key
        ).fit(frame)
        stored = pickle.dumps(release)
        assert (KEY.secret in stored) == inside
        again = pickle.loads(stored)  # noqa: S301 - our own
        assert (
            again.transform(frame)["job"].tolist()
            == release.transform(frame)["job"].tolist()
        )
        shown = repr(release) + release._repr_html_()
        assert KEY.secret.hex() not in shown
        assert repr(KEY.secret)[2:-1] not in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, r"give a notion, such as ALIP\(eps_l=1, eps_u=1\), or a channel"),
        (
            {"notion": md.LIP(1), "useful": "job"},
            "requires y to be passed, but the target y is None",
        ),
        (
            {"notion": md.LIP(1), "sensitive": "rell", "useful": "job"},
            "no column 'rell'; did you mean 'rel'",
        ),
        (
            {"notion": md.LIP(1), "sensitive": "rel", "useful": "jobs"},
            "no column 'jobs'; did you mean 'job'",
        ),
        (
            {
                "notion": md.LIP(1),
                "sensitive": "rel",
                "useful": "job",
                "mechanism": "best",
            },
            "best",
        ),
        (
            {
                "notion": md.LIP(1),
                "sensitive": "rel",
                "useful": "job",
                "identity": "who",
            },
            "there is no column 'who'",
        ),
        (
            {
                "notion": md.LIP(1),
                "sensitive": "rel",
                "useful": "job",
                "key": "nowhere.key",
            },
            "the key file nowhere.key: there is no such file",
        ),
        (
            {
                "notion": md.LIP(1),
                "sensitive": "rel",
                "useful": "job",
                "key": KEY,
                "insecure_seed": 1,
            },
            "give a key or an insecure seed, not both",
        ),
    ],
)
def test_what_does_not_fit_is_refused_by_fit(frame, arguments, message):
    with pytest.raises(InputError, match=message):
        ReleaseTransformer(**arguments).fit(frame)


def test_other_feature_names_are_refused(release, frame):
    with pytest.raises(NotFittedError):
        release.transform(frame)
    release.fit(frame)
    with pytest.raises(
        InputError, match="input_features is not equal to feature_names_in_"
    ):
        release.get_feature_names_out(["a", "b", "c", "d", "e"])
    numbers = ReleaseTransformer(md.LIP(0.5)).fit(
        frame[["job"]].to_numpy(dtype=object), frame["rel"]
    )
    with pytest.raises(
        InputError, match="input_features should have length equal to 1"
    ):
        numbers.get_feature_names_out(["a", "b"])


def test_without_scikit_learn_the_import_says_what_to_install():
    code = "import sys; sys.modules['sklearn'] = None; from mechdesign import ReleaseTransformer"
    run = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 1
    assert "ImportError: ReleaseTransformer needs scikit-learn" in run.stderr
    assert "pip install 'mechdesign[sklearn]'" in run.stderr


def test_with_a_ledger_other_rows_are_an_error(tmp_path):
    frame = people(200)
    step = ReleaseTransformer(
        channel=mixing_channel(), ledger=str(tmp_path / "ledger.db")
    ).fit(frame)
    first = step.transform(frame)["job"].tolist()
    assert step.transform(frame)["job"].tolist() == first
    assert (
        ReleaseTransformer(channel=mixing_channel(), ledger=str(tmp_path / "ledger.db"))
        .fit(frame)
        .transform(frame)["job"]
        .tolist()
        == first
    )
    for other in (frame[50:], frame.sample(frac=1, random_state=1)):
        with pytest.raises(
            InputError, match="have been released through this channel before"
        ):
            step.transform(other)


@pytest.mark.parametrize("kind", ["pandas", "polars", "array"])
def test_what_else_tells_is_looked_at_as_in_a_frame(kind):
    def given(frame):
        return {
            "pandas": frame,
            "polars": pl.from_pandas(frame),
            "array": frame.to_numpy(),
        }[kind]

    frame = people(3000)[["job"]].assign(work=lambda all: all["job"], pay=1)
    channel, twin = mixing_channel(), "x1" if kind == "array" else "work"
    if kind == "array":
        channel = md.Channel(
            replace(channel.useful, columns=("x0",)), channel.outputs, channel.rows
        )
    step = ReleaseTransformer(channel=channel, insecure_seed=1, keep="all").fit(
        given(frame)
    )
    with pytest.raises(
        InputError, match=f"'{twin}' stands for the useful column .*drop=.*keep="
    ):
        step.transform(given(frame))
    assert step.set_params(keep=["all", twin]).transform(given(frame)).shape == (
        3000,
        3,
    )
    step = ReleaseTransformer(
        channel=channel, insecure_seed=1, drop=twin, keep="all"
    ).fit(given(frame))
    assert step.transform(given(frame)).shape == (3000, 2)
    ordered = given(frame.sort_values("job"))
    with pytest.warns(
        UserWarning, match="tells of .* put the records in random order first"
    ):
        step.fit(ordered).transform(ordered)
    assert step.set_params(keep_order=True).transform(ordered).shape == (3000, 2)


@pytest.mark.parametrize("output", ["default", "pandas"])
def test_rows_get_new_labels_after_a_shuffled_split(release, frame, output):
    """Sorting by the old labels restored the order before the split."""
    shuffled = frame.sample(frac=1.0, random_state=3)
    fitted = release.set_output(transform=output).fit(shuffled)
    released = fitted.transform(shuffled)
    assert released.index.equals(pd.RangeIndex(len(frame)))
    kept = release.set_params(keep_index=True).fit(shuffled).transform(shuffled)
    pd.testing.assert_index_equal(kept.index, shuffled.index)


def test_boxes_have_no_transformer():
    frame = sample(truth([0.55, 0.3, 0.15]), 2000, 3)
    channel = md.design(
        frame,
        sensitive="s",
        release=["a", "b"],
        notion=md.LIP(0.7),
        confidence=0.9,
        slice_seed=5,
        cells=4,
    ).channel
    with pytest.raises(InputError, match="boxes have no transformer: use sanitise"):
        ReleaseTransformer(channel).fit(frame)
