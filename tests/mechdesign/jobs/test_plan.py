from __future__ import annotations

import pytest

from mechdesign.channel.channel import Channel
from mechdesign.core.errors import InputError
from mechdesign.jobs.channel_recipe import ChannelRecipe
from mechdesign.jobs.column_plan import Plan
from mechdesign.jobs.options import ReleaseOptions
from mechdesign.jobs.output_columns import OutputColumn
from mechdesign.release.released_values import POSTERIOR_DRAW
from mechdesign.tables.variable import Variable


def channel_of(useful, sensitive=()):
    x = Variable(tuple(useful), (("a",) * len(useful), ("b",) * len(useful)))
    s = (
        Variable(tuple(sensitive), (("u",) * len(sensitive), ("v",) * len(sensitive)))
        if sensitive
        else None
    )
    return Channel(x, ("y", "z"), ((1, 0), (0, 1)), 1, sensitive=s)


JOB = channel_of(["job"], ["income"])
PLACE = channel_of(["city", "street"], ["income"])
HEADER = ["id", "street", "job", "note", "city"]


def plan(channels, header=HEADER, rename=None, keep="all", **options):
    asked = ReleaseOptions(columns=rename, keep=keep, **options)
    return ChannelRecipe.of(channels, asked).plan(header)


def test_only_released_columns_are_in_the_output_unless_others_are_asked_for():
    assert plan([JOB], keep=()).columns == (OutputColumn("job", 2, (0, 0)),)
    assert plan([JOB], keep=()).others == ()
    assert plan([JOB], [*HEADER, "income"], keep=()).header == ("job",)
    assert plan([JOB], keep=["note", "id"]).header == ("id", "job", "note")
    assert plan([JOB], keep="all", drop=["note", "city"]).header == (
        "id",
        "street",
        "job",
    )
    # Beside an added column everything stays: the output is no release.
    assert plan([JOB], keep=(), into="y").header == (*HEADER, "y")


def test_a_named_column_stays_whatever_it_is_called_and_of_all_it_is_refused():
    header = ["job", "Job "]
    assert plan([JOB], header, keep=["Job "]).header == ("job", "Job ")
    assert plan([JOB], header, keep=["all", "Job "]).header == ("job", "Job ")
    with pytest.raises(InputError, match="looks like the useful column 'job'"):
        plan([JOB], header, keep="all")
    with pytest.raises(InputError, match=r"sensitive column 'income' would stay"):
        plan([JOB], ["job", "income"], keep="income")


def test_columns_to_keep_that_cannot_be():
    with pytest.raises(InputError, match="there is no column 'salary'"):
        plan([JOB], keep="salary")
    # It was left out without a word, because a column of another name is released in its place.
    with pytest.raises(InputError, match=r"'city' cannot be kept .* part of another"):
        plan([PLACE], keep="city")
    assert "job" in plan([JOB], keep="job").header
    with pytest.raises(InputError, match=r"'note' cannot be kept .* and left out"):
        plan([JOB], keep="note", drop="note")
    with pytest.raises(InputError, match=r"called 'all', which asks for every column"):
        plan([JOB], ["job", "all"], keep="all")
    with pytest.raises(InputError, match=r"keep \('3'\) must be the name of a column"):
        plan([JOB], keep=3)


def test_a_label_takes_the_place_of_x():
    assert plan([JOB]) == Plan(
        ((2,),),
        (),
        (
            OutputColumn("id", 0),
            OutputColumn("street", 1),
            OutputColumn("job", 2, (0, 0)),
            OutputColumn("note", 3),
            OutputColumn("city", 4),
        ),
        sensitive=("income",),
    )


def test_a_label_of_crossed_columns_takes_the_place_of_the_first_of_the_channel():
    found = plan([PLACE])
    assert found.inputs == ((4, 1),)
    assert found.header == ("id", "job", "note", "city,street")
    assert found.columns[-1] == OutputColumn("city,street", 4, (0, 0))
    assert found.released == ("city,street",)


def test_a_posterior_draw_gives_every_column_its_own():
    found = plan([PLACE], form=POSTERIOR_DRAW)
    assert found.header == tuple(HEADER)
    assert found.columns[1] == OutputColumn("street", 1, (0, 1))
    assert found.columns[4] == OutputColumn("city", 4, (0, 0))


def test_several_channels():
    found = plan([PLACE, JOB])
    assert found.inputs == ((4, 1), (2,))
    assert found.columns == (
        OutputColumn("id", 0),
        OutputColumn("job", 2, (1, 0)),
        OutputColumn("note", 3),
        OutputColumn("city,street", 4, (0, 0)),
    )
    assert "several columns of a record are released" in found.notices[0]


def test_added_columns_come_last():
    found = plan([PLACE, JOB], into=[["place"], ["work"]])
    assert found.header == (*HEADER, "place", "work")
    assert found.columns[-2:] == (
        OutputColumn("place", None, (0, 0)),
        OutputColumn("work", None, (1, 0)),
    )
    assert "'city', 'street', 'job' stays beside" in found.notices[0]
    drawn = plan([PLACE], into=[["town", "road"]], form=POSTERIOR_DRAW)
    assert drawn.columns[-2:] == (
        OutputColumn("town", None, (0, 0)),
        OutputColumn("road", None, (0, 1)),
    )


def test_identifiers_and_renamed_columns():
    found = plan([JOB], rename={"job": "note"}, identity=["id", "city"])
    assert found.identity == (0, 4)
    assert found.released == ("note",)


def test_private_columns_stay_only_on_demand():
    header = ["income", "job", "wealth"]
    with pytest.raises(
        InputError, match="the sensitive column 'income' would stay in the output"
    ):
        plan([JOB], header)
    with pytest.raises(
        InputError, match=r"the correlated column 'wealth' would stay .*keep_sensitive="
    ):
        plan([JOB], ["job", "wealth"], correlated=["wealth"])
    assert plan(
        [JOB], header, correlated=["wealth"], keep_sensitive=True
    ).kept_private == (
        "income",
        "wealth",
    )
    assert plan([JOB], ["job"]).kept_private == ()


@pytest.mark.parametrize(
    "name",
    [
        "Income",
        " income",
        "income ",
        "in_come",
        "income\u200b",
        "\ufeffincome",
        "ｉncome",
    ],
)
def test_names_that_hardly_differ_from_the_sensitive_one(name):
    with pytest.raises(
        InputError,
        match=r"looks like the sensitive column 'income' and would stay .*\(drop=\).*\(keep=\)",
    ):
        plan([JOB], ["job", name])
    assert plan([JOB], ["job", name], keep_sensitive=True).header == ("job", name)
    assert plan([JOB], ["job", name], rename={"job": name}, into=[["y"]]).released == (
        "y",
    )
    with pytest.raises(InputError, match=r"the sensitive column .* would stay"):
        plan([JOB], ["job", name], rename={"income": name})


def test_names_without_letters_are_like_no_other():
    assert plan([channel_of(["job"], ["?"])], ["job", "!", ""]).header == (
        "job",
        "!",
        "",
    )


def test_a_released_column_may_be_called_correlated_but_not_kept_so():
    assert plan([JOB, PLACE], correlated=["job"]).kept_private == ()
    with pytest.raises(InputError, match="the correlated column 'job' would stay"):
        plan([JOB], into=[["work"]], correlated=["job"])


def test_a_public_channel_cannot_tell():
    assert (
        "does not say which columns are sensitive"
        in plan([channel_of(["job"])]).notices[0]
    )


@pytest.mark.parametrize(
    ("channels", "options", "message"),
    [
        (
            [JOB],
            {"rename": {"work": "job"}},
            r"the channel has no column 'work' to rename \(its columns: 'job', 'inc",
        ),
        (
            [JOB, PLACE],
            {"rename": {"work": "x"}},
            r"the channels have no column 'work' to rename \(their columns: ",
        ),
        (
            [JOB],
            {"rename": {"job": "jbo"}},
            "there is no column 'jbo'; did you mean 'job'",
        ),
        ([JOB], {"rename": {"income": "earnings"}}, "there is no column 'earnings'"),
        (
            [PLACE],
            {"rename": {"city": "street"}},
            "one column of the file cannot stand for two of the channel",
        ),
        (
            [JOB, JOB],
            {},
            "two channels release the column 'job': together they would tell more of a record",
        ),
        (
            [JOB, channel_of(["note"], ["job"])],
            {},
            "'job' cannot be sensitive and useful at once",
        ),
        ([JOB], {"correlated": ["wealth"]}, "there is no column 'wealth'"),
        ([JOB], {"identity": ["idd"]}, "there is no column 'idd'; did you mean 'id'"),
        (
            [JOB],
            {"identity": ["job"]},
            "the column 'job' is useful or sensitive and cannot identify records",
        ),
        (
            [JOB],
            {"into": [["note"]]},
            "the file has another column 'note', the name of the released one; rename it",
        ),
        (
            [JOB],
            {"into": [["a", "b"]]},
            "give a name for every column that is added: one for 'job'",
        ),
        (
            [PLACE, JOB],
            {"into": [["a"]]},
            "column that is added: one for 'city,street', one for 'job'",
        ),
        (
            [PLACE],
            {"header": ["city", "street", "city,street"]},
            "the file has another column 'city,street'",
        ),
    ],
)
def test_refusals(channels, options, message):
    with pytest.raises(InputError, match=message):
        plan(channels, **options)


@pytest.mark.parametrize("name", ["veno", "VĚNO", "věno_2"])
def test_an_accent_before_an_ending_hides_no_lookalike(name):
    """The "no" behind the accent is a part of the word, and no appended one."""
    secret = channel_of(["job"], ["věno"])
    with pytest.raises(InputError, match="looks like the sensitive column 'věno'"):
        plan([secret], ["job", name])
