"""`judge`: figures against plain counting, releases whose truth is known, refusals, the command."""

from __future__ import annotations

import json
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mechdesign as md
from mechdesign.core.errors import InputError
from mechdesign.formats.cells import CellForm
from mechdesign.judging import known_cells
from mechdesign.judging import own_row as nearest_rows
from mechdesign.judging.analysts import column_variation, impossible_share, regression
from mechdesign.judging.groups import groups_of, groups_part
from mechdesign.judging.judge import untouched_files
from mechdesign.judging.known_cells import guess_scores, inferences
from mechdesign.judging.observers import drawn_by
from mechdesign.judging.own_row import DistinctRows, Halves, distances, nearest, votes
from mechdesign.judging.together import read_files
from mechdesign.leaks import learners
from tests.oracles import judged_files as oracle

ROWS = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from("xyz"), st.sampled_from("st")),
    min_size=4,
    max_size=30,
).filter(lambda rows: len({row[2] for row in rows}) > 1)


@pytest.fixture(autouse=True)
def _naive_bayes(monkeypatch):
    """Boosting takes long, and its strength is not the matter here."""
    monkeypatch.setattr(learners, "find_spec", lambda name: None)


def people(records=600, seed=1):
    """A condition that the job tells much about, and the sex nothing."""
    chance = np.random.default_rng(seed)
    job = chance.choice(list("abcdef"), records)
    ill = chance.random(records) < np.where(job < "c", 0.6, 0.15)
    return pd.DataFrame(
        {
            "job": job,
            "sex": chance.choice(["f", "m"], records),
            "age": chance.integers(18, 80, records).astype(str),
            "ill": np.where(ill, "yes", "no"),
        }
    )


def blind(table, seed=2):
    """Each column shuffled by itself: nothing is left of any row."""
    chance = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            name: chance.permutation(table[name].to_numpy())
            for name in table.columns
            if name != "ill"
        }
    )


def files_of(released, original, **options):
    arguments = {
        "sensitive": "ill",
        "identity": None,
        "shuffled": False,
        "text": None,
        "form": CellForm(),
    }
    return read_files(released, original, **(arguments | options))


def test_the_untouched_file_is_as_bad_as_itself():
    """Every figure of the original as a release is the figure of the untouched file."""
    table = people()
    judgement = md.judge(table.drop(columns="ill"), original=table, sensitive="ill")
    assert judgement.linked == "position"
    assert judgement.agreement == 1.0
    for part in judgement.parts:
        for figure in part.figures:
            if figure.untouched is not None and not figure.key.startswith("half"):
                assert figure.released == pytest.approx(figure.untouched), figure.key
    assert judgement.figure("own_row", "other_data_surest_5_yes").released > 0.5
    assert judgement.figure("groups", "own").released == 1.0


def test_a_blind_file_tells_nothing_and_spoils_everything():
    table = people(2_000)
    judgement = md.judge(blind(table), original=table, sensitive="ill", identity=None)
    assert judgement.linked == "no"
    own = judgement.part("own_row")
    assert all(figure.released is None for figure in own.figures)
    assert "--identity COL links them" in own.notes[0]
    assert judgement.figure("analysts", "column_variation").released == pytest.approx(0)
    area = judgement.figure("models", "area_job")
    assert abs(area.released - 0.5) < 0.06


def test_a_linked_blind_file_is_as_good_as_no_file():
    table = people(3_000).assign(id=lambda t: [f"p{k}" for k in range(len(t))])
    released = blind(table.drop(columns="id")).assign(id=table["id"])
    judgement = md.judge(released, original=table, sensitive="ill", identity="id")
    assert judgement.linked == "identity"
    assert "id" not in judgement.columns
    figure = judgement.figure("own_row", "other_data_area")
    assert abs(figure.released - 0.5) < 0.05
    assert figure.untouched > 0.65
    surest = judgement.figure("own_row", "other_data_surest_5_yes")
    assert abs(surest.released - surest.without) < 0.15


def test_rows_are_linked_by_their_identifier_in_any_order():
    table = people().assign(id=lambda t: [f"p{k}" for k in range(len(t))])
    released = table.drop(columns="ill").sample(frac=1, random_state=3)
    judgement = md.judge(released, original=table, sensitive="ill", identity="id")
    assert judgement.agreement == 1.0
    assert judgement.figure("groups", "own").released == 1.0


def test_shuffled_files_are_not_linked():
    table = people()
    released = table.drop(columns="ill")
    files = files_of(released.sample(frac=1, random_state=1), table)
    assert files.linked == "no"
    assert files_of(released, table).linked == "position"
    assert files_of(released, table, shuffled=True).linked == "no"


def test_the_promise_is_about_the_observer_who_is_measured():
    table = people(2_000)[["job", "sex", "ill"]]
    design = md.design(
        table, md.LIP(0.4), sensitive="ill", release=["job", "sex"], time_limit=10
    )
    released = design.channel.apply(table)
    judgement = md.judge(
        released, original=table, sensitive="ill", channel=design.channel
    )
    assert "verified in exact arithmetic" in judgement.promise[0]
    assert (
        judgement.promise[1]
        == "For specialists: the promise is lip (eps_l 0.4, eps_u 0.4)."
    )
    low, high = judgement.bounds["yes"]
    text = " ".join(judgement.summary().split())
    assert f"{math.ceil(1000 * high) / 10:.1f} %) are expected to have ill yes" in text
    assert f"({math.floor(1000 * low) / 10:.1f} %) to" in text
    surest = judgement.figure("own_row", "other_data_surest_5_yes")
    share = judgement.shares["yes"]
    assert share < surest.promised <= share * np.exp(0.4) + 1e-9
    assert surest.released < surest.promised + 0.15
    whole = judgement.figure("whole_file", "file_5_yes")
    assert whole.promised == surest.promised
    assert "no more than one row does" in judgement.part("whole_file").notes[0]
    assert judgement.figure("analysts", "impossible").released == 0.0


def test_independent_draws_have_no_bound_for_readers_of_the_whole_file():
    table = people(2_000)[["job", "sex", "ill"]]
    design = md.design(
        table, md.LIP(0.4), sensitive="ill", release=["job", "sex"], time_limit=10
    )
    released = design.channel.apply(table, draws="independent")
    files = files_of(released, table)
    drawn = drawn_by(design.channel, files)
    assert not drawn.fixed
    judgement = md.judge(
        released, original=table, sensitive="ill", channel=design.channel
    )
    whole = judgement.part("whole_file")
    assert whole.figure("file_5_yes").promised is None
    assert whole.figure("row_5_yes").promised is not None
    assert "each row was drawn by itself" in whole.notes[0]


def test_another_table_bounds_nothing():
    table = people(400)[["job", "ill"]]
    design = md.design(table, md.LIP(0.5), sensitive="ill", release="job")
    other = people(400, seed=7)[["job", "ill"]]
    judgement = md.judge(
        design.channel.apply(other[["job"]]),
        original=other,
        sensitive="ill",
        channel=design.channel,
    )
    assert "The original is another one" in judgement.promise[0]
    assert judgement.bounds == {}
    assert judgement.figure("own_row", "other_data_surest_5_yes").promised is None


@given(ROWS)
def test_groups_are_those_of_plain_counting(rows):
    table = pd.DataFrame(rows, columns=["a", "b", "ill"])
    files = files_of(table[["a", "b"]], table)
    found = groups_of(untouched_files(files), [0, 1])
    k, diversity, closeness, likeness = oracle.groups(
        [row[:2] for row in rows], [row[2] for row in rows]
    )
    assert (found.k, found.diversity) == (k, diversity)
    assert found.closeness == pytest.approx(closeness)
    assert found.likeness == pytest.approx(likeness)


@pytest.mark.parametrize("mark", ["*", "NA", ""])
def test_rows_that_are_suppressed_are_no_group(mark):
    """Their cells fit everybody; a row with one true cell is singled out all the same."""
    table = pd.DataFrame(
        {"a": list("xxyyzz"), "b": list("uuvvuv"), "ill": list("ststss")}
    )
    released = table.copy()
    released.loc[4, ["a", "b"]] = mark
    released.loc[5, "b"] = mark
    found = groups_of(files_of(released, table), [0, 1])
    assert (found.suppressed, found.k, found.diversity) == (1, 1, 1)
    assert found.alone == pytest.approx(1 / 6)
    released.loc[5, "a"] = mark
    part = groups_part(*[files_of(released, table)] * 2, [0, 1])
    assert {each.key: each.released for each in part.figures}["k"] == 2
    assert (
        "suppressed in all of these columns, which belong to no group: 2."
        in part.notes[1]
    )
    released[["a", "b"]] = mark
    assert groups_of(files_of(released, table), [0, 1]).k == 6


def test_a_group_of_one_may_be_somebody_else():
    """Two unique rows are exchanged: each is alone, and neither is its person's."""
    table = pd.DataFrame({"a": ["x", "x", "y", "z"], "ill": ["s", "t", "s", "t"]})
    released = pd.DataFrame({"id": list("1234"), "a": ["x", "x", "z", "y"]})
    table = table.assign(id=list("1234"))
    found = groups_of(files_of(released, table, identity="id"), [0])
    assert found.k == 1
    assert found.alone == 0.5
    assert found.own_alone == 0.0
    assert found.own == 0.5


@given(ROWS, st.integers(0, 2**32 - 1))
@settings(deadline=None)
def test_nearest_rows_vote_as_by_plain_counting(rows, seed):
    """Of names: the votes for a cell are those of the rows with fewest other cells."""
    table = pd.DataFrame(rows, columns=["a", "b", "ill"])
    shuffled = table[["a", "b"]].sample(frac=1, random_state=seed % 1000)
    files = files_of(shuffled, table, shuffled=True)
    distinct = DistinctRows.of(files.columns)
    targets = np.arange(len(rows))
    released = list(shuffled.itertuples(index=False, name=None))
    for place in (0, 1):
        other = files.columns[1 - place]
        far = distances(other, targets, distinct.codes[1 - place])
        column = files.columns[place]
        found = votes(
            nearest(far),
            distinct.counts,
            distinct.codes[place],
            len(column.released.values),
        )
        for record in targets:
            wanted = oracle.guesses(released, rows[record][:2], place)
            got = dict(zip(column.released.values, found[record], strict=True))
            assert {v: n for v, n in got.items() if n} == dict(wanted)


def test_inference_without_the_own_row_is_what_others_tell():
    """Two people share `a` and `b`, and differ in `c`: the other one misleads."""
    table = pd.DataFrame(
        {
            "a": [f"v{k // 2}" for k in range(40)],
            "b": ["x"] * 20 + ["y"] * 20,
            "c": ["u", "w"] * 20,
            "ill": ["s", "t"] * 20,
        }
    )
    files = files_of(table.drop(columns="ill"), table)
    found = inferences(files, DistinctRows.of(files.columns), np.arange(40))
    assert found[0].with_row < 0.2
    assert found[1].with_row == 1.0
    # With both rows the guess is a tie, and right for one of two.
    assert found[2].with_row == 0.5
    assert found[2].without_own == 0.0


def test_a_close_number_is_right_and_a_range_is_shared():
    table = pd.DataFrame({"age": ["20", "21", "40"] * 5, "ill": ["s", "t", "s"] * 5})
    released = pd.DataFrame({"age": ["20-39", "21", "40"] * 5})
    files = files_of(released, table)
    column = files.columns[0]
    guess = np.array([column.released.values.index("20-39")] * 2)
    # Half of the range is right for 20; its middle is 20.5, within 5 % of both.
    assert guess_scores(column, guess, np.array([0, 2])).tolist() == [1.0, 0.0]
    exact = np.array([column.released.values.index("21")])
    assert guess_scores(column, exact, np.array([0])).tolist() == [1.0]


@given(ROWS, ROWS)
def test_column_variation_is_that_of_plain_counting(rows, others):
    table = pd.DataFrame(rows, columns=["a", "b", "ill"])
    released = pd.DataFrame(others, columns=["a", "b", "ill"])[["a", "b"]]
    files = files_of(released, table, shuffled=True)
    for place, name in enumerate(["a", "b"]):
        wanted = oracle.variation(list(table[name]), list(released[name]))
        assert column_variation(files, files.columns[place]) == pytest.approx(wanted)
    seen = {row[:2] for row in rows}
    missing = np.mean([row[:2] not in seen for row in others])
    assert impossible_share(files) == pytest.approx(missing)


def test_a_regression_is_off_by_standard_errors():
    """Of two halves of one population the coefficients differ by about sqrt(2) errors."""
    chance = np.random.default_rng(5)
    size = 4_000
    job = chance.choice(["a", "b", "c"], size)
    age = chance.integers(20, 60, size)
    hours = np.round(30 + 0.2 * age + 3 * (job == "b") + chance.normal(0, 5, size), 1)
    table = pd.DataFrame(
        {
            "job": job,
            "age": age.astype(str),
            "hours": hours.astype(str),
            "ill": chance.choice(["s", "t"], size),
        }
    )
    half = table.iloc[: size // 2]
    rest = table.iloc[size // 2 :].drop(columns="ill")
    found = regression(files_of(rest, half))
    assert found.outcome == "hours"
    assert found.coefficients == 3
    assert 0.1 < found.rms < 4
    spoiled = rest.assign(job=chance.permutation(rest["job"].to_numpy()))
    assert regression(files_of(spoiled, half)).worst > 8


def test_ranges_are_read_as_ranges():
    table = people(1_000)
    decade = table["age"].astype(int) // 10 * 10
    released = table.drop(columns="ill").assign(
        age=[f"{low}-{low + 9}" for low in decade]
    )
    judgement = md.judge(released, original=table, sensitive="ill")
    assert judgement.linked == "position"
    assert judgement.figure("groups", "own").released == 1.0
    assert judgement.figure("analysts", "impossible").released == 0.0
    # Spread evenly, ten ages keep about the frequencies of the table.
    assert judgement.figure("analysts", "column_variation").released < 0.15
    inference = judgement.figure("inference", "right_age")
    assert inference.released < inference.untouched


def test_several_secrets_are_to_be_protected():
    table = people(200)
    judgement = md.judge(table[["age"]], original=table, sensitive=["ill", "sex"])
    assert "ill, sex are to be protected" in judgement.summary()


def test_names_that_the_original_lacks_are_said_first():
    table = people(400)
    released = table.drop(columns="ill")
    upper = released.assign(job=released["job"].str.upper())
    judgement = md.judge(upper, original=table, sensitive="ill", shuffled=True)
    assert judgement.strange == ("job",)
    assert "No released value of 'job' is one of the original's" in judgement.summary()
    # Rows of known people tell what a value stands for.
    assert md.judge(upper, original=table, sensitive="ill").strange == ()
    # Noise makes other numbers, and suppressed cells stand for all values.
    noisy = released.assign(
        age=released["age"].astype(int) + 0.25, job=["*"] * len(table)
    )
    noise = md.judge(noisy, original=table, sensitive="ill", shuffled=True)
    assert noise.strange == ()


def test_names_that_look_like_those_of_the_original_are_said():
    released = people(400).replace({"job": {"a": "caf\u00e9"}}).drop(columns="ill")
    table = people(400).replace({"job": {"a": "caf\u00e9"}})
    # Half of the records have the accent as a character of its own.
    decomposed = table["job"].str.replace("\u00e9", "e\u0301")
    table["job"] = table["job"].where(table.index % 2 == 0, decomposed)
    judgement = md.judge(released, original=table, sensitive="ill")
    [notice] = judgement.alike
    assert "'job' has symbols that look alike" in notice
    summary = " ".join(judgement.summary().split())
    assert f"Risks may be understated: {notice}" in summary
    assert judgement.agreement < 1.0
    form = CellForm(normalise="NFC")
    as_one = md.judge(released, original=table, sensitive="ill", form=form)
    assert as_one.alike == ()
    assert as_one.agreement == 1.0


def test_a_secret_in_the_file_is_read_there():
    table = people(1_000)
    judgement = md.judge(table, original=table, sensitive="ill")
    assert judgement.secret_released
    assert judgement.figure("own_row", "beside").released == 1.0
    # In short it was guessed right for half of the people.
    summary = " ".join(judgement.summary().split())
    said = "has ill itself: whoever finds a person's row reads it there, and it is true of all"
    assert said in summary[summary.index("In short") :]
    hidden = md.judge(table.drop(columns="ill"), original=table, sensitive="ill")
    assert "has ill itself" not in hidden.summary()
    cells = judgement.part("known_cells")
    assert "'job', 'sex', 'age'" in cells.means
    assert cells.figure("cells_surest_5_yes").released > 0.8


def test_the_same_seed_gives_the_same_figures():
    table = people(500)
    released = table.drop(columns="ill").assign(job=blind(table)["job"])
    first = md.judge(released, original=table, sensitive="ill", seed=4)
    again = md.judge(released, original=table, sensitive="ill", seed=4)
    other = md.judge(released, original=table, sensitive="ill", seed=5)
    assert first == again
    assert first.parts != other.parts


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (lambda t: t[["job"]].rename(columns={"job": "work"}), {}, "share no column"),
        (lambda t: t, {"sensitive": "illness"}, "illness"),
        (lambda t: t.head(0), {}, "released file has no records"),
        (lambda t: t.head(20), {}, "at least 40 records in both files"),
        (lambda t: t, {"known": "height"}, "no column 'height'"),
        (lambda t: t, {"identity": "job"}, "repeats in the original"),
        (lambda t: t, {"identity": "job", "shuffled": True}, "give one of them"),
        (lambda t: t, {"channel": 3}, "not int"),
    ],
)
def test_what_cannot_be_judged_is_refused(change, options, message):
    table = people(100)
    arguments = {"original": table, "sensitive": "ill"} | options
    with pytest.raises(InputError, match=message):
        md.judge(change(table.drop(columns="ill")), **arguments)


def test_cells_are_compared_in_the_form_of_the_channel():
    """A job with a blank behind it was another one than that of its own release."""
    table = people(400)[["job", "sex", "ill"]]
    table.loc[::3, "job"] += " "
    channel = md.design(
        table, md.LIP(3.0), sensitive="ill", release=["job", "sex"], trim=True
    ).channel
    released = table.assign(job=table["job"].str.strip()).drop(columns="ill")
    asked = {"original": table, "sensitive": "ill"}
    assert md.judge(released, **asked).agreement < 0.9
    form = CellForm(trim=True)
    for judged in (
        md.judge(released, channel=channel, **asked),
        md.judge(released, form=form, **asked),
    ):
        assert judged.agreement == 1.0
        moved = judged.figure("analysts", "column_variation").released
        assert moved == pytest.approx(0, abs=1e-12)
    # The original is the table of the channel, so that its bounds hold here.
    assert md.judge(released, channel=channel, **asked).bounds


def test_a_channel_of_another_release_is_refused():
    table = people(200)[["job", "sex", "ill"]]
    channel = md.design(table, md.LIP(0.5), sensitive="ill", release="job").channel
    with pytest.raises(InputError, match="no column 'job', which the channel releases"):
        md.judge(table[["sex"]], original=table, sensitive="ill", channel=channel)
    with pytest.raises(InputError, match="the channel protects 'ill'"):
        md.judge(table[["job"]], original=table, sensitive="sex", channel=channel)


def test_a_constant_secret_and_foreign_identifiers_are_refused():
    table = people(100).assign(one="same", id=lambda t: [f"p{k}" for k in range(100)])
    with pytest.raises(InputError, match="has a single value"):
        md.judge(table[["job"]], original=table, sensitive="one")
    foreign = table[["job"]].assign(id=[f"q{k}" for k in range(100)])
    with pytest.raises(InputError, match=r"an identifier that the original lacks$"):
        md.judge(foreign, original=table, sensitive="ill", identity="id")
    numbered = table.assign(id=[str(10**6 + k) for k in range(100)])
    written = numbered[["job"]].assign(id=numbered.id + ".0")
    with pytest.raises(
        InputError,
        match="the original lacks; one of them differs in nothing but blanks",
    ):
        md.judge(written, original=numbered, sensitive="ill", identity="id")
    with pytest.raises(InputError, match="the released file has no column 'id'"):
        md.judge(table[["job"]], original=table, sensitive="ill", identity="id")


def test_the_command_prints_text_json_and_reports(tmp_path, monkeypatch, capsys):
    from mechdesign.cli import main

    monkeypatch.chdir(tmp_path)
    table = people(300)[["job", "sex", "ill"]]
    table.to_csv("people.csv", index=False)
    table[["job", "sex"]].to_csv("released.csv", index=False)
    arguments = ["judge", "released.csv", "--original", "people.csv"]
    asked = [*arguments, "--sensitive", "ill"]
    assert main([*asked, "--report", "page.html"]) == 0
    text = capsys.readouterr().out
    assert "300 released rows of 300 records; ill is to be protected" in text
    assert "No channel was given, so nothing bounds these figures" in text
    page = (tmp_path / "page.html").read_text()
    assert "A released file, judged" in page
    assert "What models learn" in page
    assert main([*asked, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["format"] == "mechdesign.judgement"
    assert record["parts"][0]["key"] == "own_row"
    assert main(arguments) == 2
    assert "--sensitive COL is missing" in capsys.readouterr().err
    assert main(["judge", "released.csv", "--sensitive", "ill"]) == 2
    assert "--original TABLE is missing" in capsys.readouterr().err


def test_a_judgement_is_shown_as_words_and_as_a_table():
    table = people(200)[["job", "sex", "ill"]]
    judgement = md.judge(table[["job", "sex"]], original=table, sensitive="ill")
    assert repr(judgement).startswith("Judgement(200 released records about ill")
    frame = judgement.to_frame()
    assert list(frame.columns[:2]) == ["part", "figure"]
    assert len(frame) == sum(len(part.figures) for part in judgement.parts)
    assert "What analysts read" in judgement.summary()
    with pytest.raises(KeyError):
        judgement.figure("own_row", "nothing")


def test_one_number_in_two_spellings_is_one_number():
    """A column of integers with a gap is one of floats to pandas, and its text is 40.0."""
    table = people(300)
    released = table.drop(columns="ill").assign(age=table["age"].astype(float))
    judgement = md.judge(released, original=table, sensitive="ill")
    assert judgement.agreement == 1.0
    assert judgement.figure("groups", "own").released == 1.0
    assert judgement.figure("analysts", "impossible").released == 0.0


def test_noise_on_numbers_is_no_code_of_them():
    """Every noisy number occurs once; read beside its record it would name the true number."""
    table = people(2_000)
    chance = np.random.default_rng(1)
    noisy = table["age"].astype(float) + chance.normal(0, 20, len(table))
    released = table.drop(columns="ill").assign(age=noisy)
    files = files_of(released, table)
    assert files.linked == "position"
    column = files.columns[files.places(["age"])[0]]
    assert not any(len(cover) for cover in column.covers)
    # Classes of numbers: values that nobody has would all count as changed.
    assert 0 < column_variation(files, column) < 0.4
    judgement = md.judge(released, original=table, sensitive="ill")
    inference = judgement.figure("inference", "right_age")
    assert inference.released < inference.untouched


def test_guesses_of_cells_take_time_in_proportion_to_the_columns(monkeypatch):
    """Guesses of all columns at 10, 20 and 40 columns, where parts of the people are small."""
    monkeypatch.setattr(nearest_rows, "CHUNK", 10_000)
    calls = []
    guessed = known_cells._guessed

    def counted(*arguments):
        calls.append(1)
        return guessed(*arguments)

    monkeypatch.setattr(known_cells, "_guessed", counted)
    chance = np.random.default_rng(3)
    made = []
    for width in (10, 20, 40):
        table = pd.DataFrame(
            {f"c{at}": chance.choice(list("abc"), 100) for at in range(width)}
        )
        table["ill"] = chance.choice(["no", "yes"], 100)
        files = files_of(table.drop(columns="ill"), table)
        calls.clear()
        inferences(files, DistinctRows.of(files.columns), np.arange(100))
        made.append(len(calls))
    assert made[1] == 2 * made[0]
    assert made[2] == 4 * made[0]


def test_files_that_are_sorted_alike_are_not_linked():
    """Sorted by one column, two unrelated files agree in it at every place."""
    table = people(2_000).sort_values("job", kind="stable")
    other = people(2_000, seed=9).sort_values("job", kind="stable")
    assert files_of(other.drop(columns="ill"), table).linked == "no"
    assert files_of(table.drop(columns="ill"), table).linked == "position"


def test_a_person_with_two_released_rows_is_refused():
    table = people(100).assign(id=lambda t: [f"p{k}" for k in range(100)])
    twice = pd.concat([table, table.head(3)]).drop(columns="ill")
    with pytest.raises(InputError, match="repeats in the released file"):
        md.judge(twice, original=table, sensitive="ill", identity="id")


def test_few_released_people_of_many_are_halved_themselves():
    table = people(3_000).assign(id=lambda t: [f"p{k}" for k in range(len(t))])
    released = table.drop(columns="ill").sample(45, random_state=1)
    files = files_of(released, table, identity="id")
    halves = Halves.of(files, 0)
    assert len(halves.targets) == 23
    assert set(halves.targets) <= set(files.owner)
    assert len(halves.known) == 3_000 - 23
    assert not set(halves.known) & set(halves.targets)
    judgement = md.judge(released, original=table, sensitive="ill", identity="id")
    assert judgement.figure("own_row", "half_area").released is not None


def test_a_table_with_the_same_secrets_and_other_rows_has_no_bounds():
    table = people(400)[["job", "ill"]]
    design = md.design(table, md.LIP(0.5), sensitive="ill", release="job")
    other = table.assign(job=blind(table)["job"])
    released = design.channel.apply(other[["job"]]).assign(id=range(400))
    judgement = md.judge(
        released,
        original=other.assign(id=range(400)),
        sensitive="ill",
        channel=design.channel,
        identity="id",
    )
    assert "The original is another one" in judgement.promise[0]
    assert judgement.bounds == {}
    assert judgement.figure("own_row", "other_data_surest_5_yes").promised is None


def test_a_regression_says_which_coefficients_are_lost():
    table = people(500).assign(income=lambda t: t["age"].astype(int) * 3 % 101)
    table["income"] = table["income"].astype(str)
    released = table.drop(columns="ill").assign(sex="f")
    found = regression(files_of(released, table))
    assert found.lost == 1
    judgement = md.judge(released, original=table, sensitive="ill")
    notes = judgement.part("analysts").notes
    assert any("1 more coefficients of this regression cannot" in n for n in notes)
    exact = table.assign(income=(2 * table["age"].astype(int)).astype(str))
    assert regression(files_of(exact.drop(columns="ill"), exact)) is None


def test_models_of_unlinked_rows_have_no_more_rows_than_those_beside_them():
    table = people(400)
    released = table.drop(columns="ill").sample(frac=1, random_state=1)
    judgement = md.judge(released, original=table, sensitive="ill")
    assert judgement.linked == "no"
    assert "may be among them" in judgement.part("models").notes[0]


def test_the_main_figures_are_told_in_sentences():
    table = people(800)
    judgement = md.judge(table.drop(columns="ill"), original=table, sensitive="ill")
    text = " ".join(judgement.summary().split())
    attack = judgement.figure("own_row", "other_data_surest_5_yes")
    share = judgement.shares["yes"]
    assert "who look most like ill yes: " in text
    assert (
        f"({100 * attack.released:.1f} %) have it. In the untouched file it is" in text
    )
    assert f"({100 * share:.1f} %)." in text
    assert "all (100 %) are claims that only the row's own person meets" in text
    assert "at most 0 % of the records would have to be others" in text
    assert (
        "The smallest number of equal rows (k) is 1, in the untouched file 1." in text
    )
    shuffled = md.judge(blind(table), original=table, sensitive="ill", shuffled=True)
    text = " ".join(shuffled.summary().split())
    assert "Nobody's own row was attacked for ill" in text
    assert "claims that exactly one person meets" in text


def test_a_share_of_claims_says_of_how_many_and_of_none_there_is_none():
    table = people(800)
    released = table.drop(columns="ill")
    judgement = md.judge(released, original=table, sensitive="ill")
    made = judgement.figure("singling_out", "claims")
    assert made.released == made.untouched > 0
    text = " ".join(judgement.summary().split())
    assert f"Of {made.released:,} claims on rows that are alone in a few" in text
    assert f"of {made.untouched:,} on the untouched file all (100 %)" in text
    equal = released.assign(**dict.fromkeys(released.columns, "x"))
    judgement = md.judge(equal, original=table, sensitive="ill")
    assert judgement.figure("singling_out", "claims").released == 0
    text = " ".join(judgement.summary().split())
    assert "No released row is alone in the sets of columns that were tried" in text
    assert f"of {made.untouched:,} claims on the untouched file all (100 %)" in text


def test_few_rows_that_are_all_untouched_are_linked():
    """Of few values chance alone makes many rows equal: no count of them is clear."""
    table = people(60)[["sex", "ill"]]
    judgement = md.judge(table.copy(), original=table, sensitive="ill")
    assert judgement.linked == "position"
    own = [
        figure
        for figure in judgement.part("own_row").figures
        if figure.untouched is not None and figure.key.startswith("other_data")
    ]
    assert own
    for figure in own:
        assert figure.released == figure.untouched
    changed = table.assign(sex=table["sex"].to_numpy()[::-1])
    text = " ".join(
        md.judge(changed, original=table, sensitive="ill").summary().split()
    )
    assert "or do not clearly agree with those at the same places" in text


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.assign(job="same"),
        lambda t: t[["job"]],
        lambda t: t.assign(job="*", sex="*", age="*"),
        lambda t: t.assign(age=""),
        lambda t: t.head(45),
        lambda t: pd.concat([t, t]),
        lambda t: t.assign(ill="unknown"),
        lambda t: t.assign(age=[f"n{age}" for age in t["age"]]),
    ],
)
def test_odd_files_are_judged_without_a_warning(change):
    """Constant, suppressed, empty and recoded columns, other numbers of rows, a secret with no known value."""
    table = people(120)
    judgement = md.judge(
        change(table.drop(columns="ill")), original=table, sensitive="ill"
    )
    assert len(judgement.parts) == 9
    assert "In short" in judgement.summary()
    for part in judgement.parts:
        assert part.figures or part.notes
        for figure in part.figures:
            assert figure.released is None or np.isfinite(figure.released), figure.key


def test_a_secret_that_one_person_has_is_judged():
    table = people(120).assign(ill=["yes", *["no"] * 119])
    judgement = md.judge(table, original=table, sensitive="ill")
    assert judgement.figure("own_row", "beside").released == 1.0


def test_an_empty_secret_is_said_to_count_as_a_value():
    table = people(400)
    table.loc[:99, "ill"] = ""
    judgement = md.judge(table.drop(columns="ill"), original=table, sensitive="ill")
    text = " ".join(judgement.summary().split())
    assert "25.0 % of the records have an empty cell in ill, which counts as" in text
    assert 'other data: "" among the 5 % that look most like it' in text
    full = md.judge(
        people(400).drop(columns="ill"), original=people(400), sensitive="ill"
    )
    assert "empty cell" not in full.summary()


def test_an_empty_cell_makes_groups_of_its_own_and_that_is_said():
    table = people(400)
    table.loc[:9, "job"] = ""
    released = table.drop(columns="ill")
    asked = {"original": table, "sensitive": "ill", "known": "job"}
    groups = md.judge(released, **asked).part("groups")
    assert "An empty cell counts as a value of its own in them." in groups.notes
    asked = {"original": people(400), "sensitive": "ill", "known": "job"}
    full = md.judge(people(400).drop(columns="ill"), **asked).part("groups")
    assert not any("empty cell" in note for note in full.notes)
