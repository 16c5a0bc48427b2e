"""Options of a release: declared once, and the same for files, frames, clusters and pipelines."""

from __future__ import annotations

from dataclasses import fields

import pandas as pd
import pytest

import mechdesign as md
from mechdesign import sanitise, sanitise_file
from mechdesign.core.errors import InputError
from mechdesign.jobs.options import (
    FileKeywords,
    ReleaseKeywords,
    ReleaseOptions,
)
from tests.cases.released_records import KEY, mixing_channel

ALL = [each.name for each in fields(ReleaseOptions)]
JOBS = pd.DataFrame({"job": ["a", "b", "c"]})


def test_type_checkers_know_the_same_as_the_dataclass():
    assert set(ReleaseKeywords.__annotations__) == set(ALL)
    assert set(FileKeywords.__annotations__) == set(ALL) - {
        "key",
        "keep_index",
        "ledger",
        "row_numbers",
    }
    for keywords in (ReleaseKeywords, FileKeywords):
        for name, hint in keywords.__annotations__.items():
            assert (
                getattr(hint, "__forward_arg__", hint)
                == ReleaseOptions.__annotations__[name]
            )


@pytest.mark.parametrize(
    ("function", "keywords"),
    [
        (sanitise, ReleaseKeywords),
        (md.sanitise, ReleaseKeywords),
        (sanitise_file, FileKeywords),
    ],
)
def test_help_names_every_option_and_says_where_it_is_explained(function, keywords):
    _, _, rest = function.__doc__.partition(
        "    **options : fields of `ReleaseOptions`"
    )
    names, _, place = " ".join(rest.split()).partition("; explained in")
    listed = {name.strip() for name in names.split(",")}
    assert listed == set(keywords.__annotations__)
    assert "mechdesign.jobs.options.ReleaseOptions" in place
    for name in listed:
        assert ReleaseOptions.__doc__.count(f"\n    {name} : ") == 1


def test_an_option_that_there_is_not_is_named():
    name = "sanitise[(][)] got an unexpected keyword argument 'identiy'; did you mean 'identity'"
    with pytest.raises(TypeError, match=name):
        sanitise(JOBS, mixing_channel(), identiy="job")


def test_a_file_has_no_key_of_its_own(tmp_path):
    with pytest.raises(TypeError, match="unexpected keyword argument 'key'"):
        sanitise_file(mixing_channel(), tmp_path / "a.csv", tmp_path / "b.csv", key=KEY)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"columns": "job"},
            "columns [(]'job'[)] must be a mapping from the channel's names",
        ),
        (
            {"identity": 3},
            "identity .* must be the name of a column, or a sequence of them",
        ),
        ({"row_numbers": ["n"]}, r"row_numbers .* must be the name of a column"),
        ({"form": "code"}, r"^form [(]'code'[)] must be one of"),
        ({"policy": "refuse"}, "policy [(]'refuse'[)] must be a Policy"),
        ({"keep_sensitive": "no"}, "keep_sensitive [(]'no'[)] must be True or False"),
        ({"fresh_draw": "no"}, "fresh_draw [(]'no'[)] must be True or False"),
        ({"insecure_seed": True}, "insecure_seed .* must be a whole number"),
        ({"insecure_seed": "1"}, "insecure_seed [(]'1'[)] must be a whole number"),
        (
            {"identity": "id", "row_numbers": "n"},
            "identity and row_numbers both identify records",
        ),
    ],
)
def test_values_of_the_wrong_kind_are_refused_before_anything_is_read(options, message):
    with pytest.raises(InputError, match=message):
        ReleaseOptions(**options)
    with pytest.raises(InputError, match=message):
        sanitise(JOBS, mixing_channel(), **options)


def test_no_text_shows_the_key():
    assert KEY.secret.hex() not in repr(ReleaseOptions(key=KEY))


def test_a_pipeline_step_has_its_options_as_parameters():
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    from mechdesign import ReleaseTransformer

    step = ReleaseTransformer(md.LIP(1.0), identity="id")
    # A step keeps its rows, and the names of its columns.
    # Fixed counts are for files of the records of the design, and nights for people.
    of_files = {"columns", "into", "correlated", "shuffle", "draws", "nights"}
    assert set(ALL) - of_files < set(step.get_params())
    for name in set(ALL) - of_files:
        assert step.get_params()[name] in ("id", getattr(ReleaseOptions, name))
    assert step.get_params()["identity"] == "id"
    assert step.get_params()["form"] == "label"
    with pytest.raises(TypeError, match="unexpected keyword argument 'into'"):
        ReleaseTransformer(md.LIP(1.0), into="new")
