"""People with several records: design, apply, check and estimate with --person."""

from __future__ import annotations

import io
import json
import math
import re
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

import mechdesign as md
from tests.oracles import people as oracle

EPSILON = 0.5
DESIGN = ("design", "panel.csv", "--sensitive", "ill", "--release", "health,job")
PEOPLE = ("--person", "id", "--wave", "year")
PROMISE = ("--notion", "lip", "--epsilon", str(EPSILON))


def panel(people=120, longest=4, seed=0):
    """Waves of people whose health follows from an illness; unequal numbers of them."""
    chance = np.random.default_rng(seed)
    rows = []
    for person in range(people):
        ill = chance.random() < 0.4
        health, job = chance.integers(0, 3), chance.integers(0, 3)
        for wave in range(int(chance.integers(1, longest + 1))):
            if chance.random() < 0.4:
                health = min(3, chance.integers(0, 3) + (ill and chance.random() < 0.5))
            if chance.random() < 0.2:
                job = chance.integers(0, 3)
            rows.append(
                (
                    f"p{person}",
                    2020 + wave,
                    "yes" if ill else "no",
                    f"h{health}",
                    f"j{job}",
                )
            )
    frame = pd.DataFrame(rows, columns=["id", "year", "ill", "health", "job"])
    # Not in the order of people, and not in that of waves.
    return frame.sample(frac=1.0, random_state=seed).reset_index(drop=True)


def sequences(frame):
    """The people of a frame, gone through one by one."""
    rows = frame.itertuples(index=False)
    return oracle.sequences((r.id, r.year, r.ill, (r.health, r.job)) for r in rows)


@pytest.fixture
def table(folder):
    frame = panel()
    frame.to_csv("panel.csv", index=False)
    return frame


def designed(run, *more):
    asked = (*DESIGN, *PEOPLE, *PROMISE, "--output", "channel.json", "--json", *more)
    return run(*asked).record


def within(lifts):
    """Whether all lifts keep the promise, decided on the side of the doubles that is safe."""
    low = Fraction(math.nextafter(math.exp(-EPSILON), 0.0))
    high = Fraction(math.nextafter(math.exp(EPSILON), 2.0))
    return all(low <= lift <= high for lift in lifts)


def test_the_promise_holds_for_all_records_of_a_person_together(table, run):
    """The lift of every secret at every sequence is within the promise, in fractions, and every
    sequence is released as often as the table has it."""
    record = designed(run)
    assert record["records"] == 120
    assert record["given"] == ["number of records"]
    assert record["people"]["person"] == ["id"]
    assert record["people"]["wave"] == "year"
    assert record["people"]["columns"] == ["health", "job"]
    assert record["people"]["longest"] == 4
    channel = md.load("channel.json")
    people = sequences(table)
    lifts = oracle.lifts(people, channel.distribution)
    assert within(lifts.values())
    # The promise is used: a channel that changed everything would keep it, too.
    assert max(lifts.values()) > 1.5
    shares = oracle.output_shares(people, channel.distribution)
    found: dict[object, int] = {}
    for _, sequence in people.values():
        found[sequence] = found.get(sequence, 0) + 1
    assert shares == {key: Fraction(n, 120) for key, n in found.items()}
    truth = oracle.unchanged_cells(people, channel.distribution)
    stated = record["truth"]
    assert set(stated) == {"health", "job"}
    assert sum(stated.values()) / 2 == pytest.approx(float(truth), abs=1e-9)
    assert sum(stated.values()) / 2 <= truth


def test_a_secret_that_names_people_is_noted(table, run):
    asked = ("design", "panel.csv", "--sensitive", "id", "--useful", "job", *PROMISE)
    note = "'id' has 120 values of at most 4 records each: if it names people"
    assert note in " ".join(run(*asked).err.split())
    assert "names people" not in run(*asked, "--unit", "record").err


def test_as_many_records_come_out_as_came_in_their_places(table, run):
    designed(run)
    result = run("apply", "channel.json", "panel.csv", "out.csv", "--json").record
    assert result["records"] == len(table)
    assert result["people"] == 120
    assert result["columns"] == ["health", "job"]
    assert result["draws"] == "fixed"
    released = pd.read_csv("out.csv")
    assert list(released.columns) == ["id", "year", "health", "job"]
    assert len(released) == len(table)
    # New numbers in the order of the file, and places in the order of the waves.
    numbers = {name: k + 1 for k, name in enumerate(dict.fromkeys(table["id"]))}
    assert released["id"].tolist() == [numbers[name] for name in table["id"]]
    places = table.groupby("id")["year"].rank().astype(int)
    assert released["year"].tolist() == places.tolist()
    # With fixed counts the sequences are those of the table, each as often.
    after = released.assign(ill="").itertuples(index=False)
    rows = [(r.id, r.year, r.ill, (r.health, r.job)) for r in after]
    ones = sorted(sequence for _, sequence in sequences(table).values())
    others = sorted(sequence for _, sequence in oracle.sequences(rows).values())
    assert ones == others
    assert "2,400" not in run("check", "out.csv", "--channel", "channel.json").out
    checked = run(
        "check",
        "out.csv",
        "--channel",
        "channel.json",
        "--original",
        "panel.csv",
        "--json",
    ).record
    assert checked["plausible"] is True
    assert checked["unit"] == "person"
    assert checked["records"] == 120
    again = run("apply", "channel.json", "panel.csv", "out.csv", "--json").record
    assert again["already"] is True
    with open("out.csv.manifest.json", encoding="utf-8") as file:
        manifest = json.load(file)
    covers = " ".join(manifest["covers"])
    assert "It is about all records of a person together" in covers
    assert "each record alone" not in covers


def test_a_file_of_other_people_gets_independent_draws(table, run):
    designed(run)
    known = table["id"].isin([f"p{k}" for k in range(60)])
    table[known].to_csv("half.csv", index=False)
    result = run("apply", "channel.json", "half.csv", "half_out.csv", "--json").record
    assert result["people"] == 60
    assert result["draws"] == "independent"
    check = ("check", "half_out.csv", "--channel", "channel.json", "--json")
    assert run(*check, "--original", "half.csv").code == 0


def test_a_file_that_is_no_draw_is_found_out(table, run):
    designed(run)
    run("apply", "channel.json", "panel.csv", "out.csv")
    released = pd.read_csv("out.csv")
    other = released.copy()
    first = other["id"] == 1
    other.loc[first, "health"] = "h9"
    other.to_csv("other.csv", index=False)
    verdict = run("check", "other.csv", "--channel", "channel.json")
    assert verdict.code == 1
    assert "(120 people)" in verdict.out
    released.iloc[1:].to_csv("short.csv", index=False)
    beside = ("--channel", "channel.json", "--original", "panel.csv")
    assert run("check", "short.csv", *beside).code == 1


def test_a_true_record_of_a_person_that_the_table_lacks_is_refused(table, run):
    designed(run)
    other = table.copy()
    other.loc[0, "health"] = "never seen"
    other.to_csv("other.csv", index=False)
    refused = run("apply", "channel.json", "other.csv", "out.csv")
    assert refused.code == 2
    assert "other.csv, line 2" in refused.err
    assert "never seen" not in refused.err
    longer = pd.concat([table, table.assign(year=table["year"] + 10)])
    longer.to_csv("longer.csv", index=False)
    refused = run("apply", "channel.json", "longer.csv", "out.csv")
    assert refused.code == 2
    assert "more than the 4 records that the channel knows" in refused.err


def test_people_whom_the_table_lacks_may_be_released_as_the_nearest(table, run):
    """Of the same number of records, which is given."""
    designed(run)
    other = table.copy()
    other.loc[0, "health"] = "never seen"
    other.to_csv("other.csv", index=False)
    apply = ("apply", "channel.json", "other.csv", "out.csv", "--unknown", "nearest")
    assert run(*apply).code == 0
    released = pd.read_csv("out.csv")
    assert len(released) == len(table)
    assert "never seen" not in set(released["health"])
    check = ("check", "out.csv", "--channel", "channel.json", "--original", "other.csv")
    assert run(*check).code == 0


def test_shuffled_records_keep_their_person_and_place(table, run):
    designed(run)
    run("apply", "channel.json", "panel.csv", "out.csv", "--shuffle")
    released = pd.read_csv("out.csv")
    after = released.assign(ill="").itertuples(index=False)
    rows = [(r.id, r.year, r.ill, (r.health, r.job)) for r in after]
    ones = sorted(sequence for _, sequence in sequences(table).values())
    assert ones == sorted(s for _, s in oracle.sequences(rows).values())
    # New numbers in random order: those of the file would tell its order.
    assert released["id"].tolist() != sorted(released["id"])
    assert run("check", "out.csv", "--channel", "channel.json").code == 0


def test_columns_stay_by_name_alone(table, run):
    designed(run)
    apply = ("apply", "channel.json", "panel.csv", "out.csv", "--force")
    run(*apply, "--keep", "id,year", "--insecure-seed", "1")
    released = pd.read_csv("out.csv")
    assert released["id"].tolist() == table["id"].tolist()
    assert released["year"].tolist() == table["year"].tolist()
    refused = run(*apply, "--keep", "all")
    assert refused.code == 2
    assert "name the columns that stay" in refused.err
    refused = run(*apply, "--keep", "ill")
    assert refused.code == 2
    assert "the sensitive column 'ill' must not stay" in refused.err
    refused = run(*apply, "--keep", "nobody")
    assert "there is no column 'nobody' to keep" in refused.err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--identity", "year"), "people are identified by the columns that name them"),
        (("--unknown", "marginal"), "another rule (--unknown, --missing) is not built"),
        (("--also", "channel.json"), "is applied alone"),
        (
            ("--identity", "id", "--changed", "keep"),
            "--changed keep is for single records",
        ),
    ],
)
def test_options_of_single_records_are_refused(table, run, options, words):
    designed(run)
    refused = run("apply", "channel.json", "panel.csv", "out.csv", *options)
    assert refused.code == 2
    assert words in refused.err


CLAIM = "holds for readers of the whole file"


@pytest.mark.parametrize(
    ("options", "claimed"),
    [
        (("--shuffle",), True),
        ((), False),
        (("--shuffle", "--keep", "note"), False),
        (("--shuffle", "--keep", "year"), False),
        (("--shuffle", "--draws", "independent"), False),
        (("--shuffle", "--insecure-seed", "1"), False),
        (("--identity", "id", "--shuffle"), False),
    ],
)
def test_the_whole_file_is_claimed_where_it_is_proven(table, run, options, claimed):
    """docs/explanation/whole-file.md, proposition 6: of shuffled records with renewed numbers and
    nothing beside them."""
    designed(run)
    noted = table.assign(note=[f"n{k % 7}" for k in range(len(table))])
    noted.to_csv("noted.csv", index=False)
    written = run("apply", "channel.json", "noted.csv", "out.csv", *options)
    assert written.code == 0, written.err
    manifest = Path("out.csv.manifest.json").read_text(encoding="utf-8")
    assert (CLAIM in written.out) is claimed
    assert ("With them the promise holds" in manifest) is claimed
    assert ("note" in pd.read_csv("out.csv").columns) is ("note" in options)


def test_the_whole_file_of_people_is_not_claimed_after_another_release(table, run):
    asked = ("design", "panel.csv", "--sensitive", "ill", *PEOPLE, "--notion", "lip")
    run(*asked, "--release", "job", "--epsilon", "0.5", "--output", "channel.json")
    after = ("--epsilon", "0.8", "--after", "channel.json", "--output", "second.json")
    run(*asked, "--release", "health", *after)
    written = run("apply", "second.json", "panel.csv", "out.csv", "--shuffle")
    assert written.code == 0, written.err
    assert CLAIM not in written.out


def test_the_whole_file_of_people_is_not_claimed_of_a_second_night(table, run):
    designed(run)
    later = table.assign(year=table["year"] + 10).iloc[::-1]
    # Of the very same people these would be the same records, with other waves.
    later = later.assign(id=later["id"].replace("p1", "new"))
    later.to_csv("later.csv", index=False)
    apply = ("--shuffle", "--ledger", "ledger.db", "--nights", "2")
    first = run("apply", "channel.json", "panel.csv", "out.csv", *apply)
    second = run("apply", "channel.json", "later.csv", "second.csv", *apply)
    assert CLAIM in first.out
    assert second.code == 0, second.err
    assert "Counts are fixed" in second.out
    assert CLAIM not in second.out


def test_an_order_by_the_number_of_records_tells_nothing_more(folder, run):
    """In a file in random order people with more records come first, more or less."""
    frame = panel(people=900)
    number = frame.groupby("id")["id"].transform("size")
    frame = frame.loc[number.sort_values(kind="stable").index]
    frame.to_csv("panel.csv", index=False)
    designed(run)
    written = run("apply", "channel.json", "panel.csv", "out.csv")
    assert written.code == 0, written.err


def test_people_who_are_identified_keep_their_draw(table, run):
    designed(run)
    apply = ("--identity", "id", "--keep", "id,year", "--force")
    run("apply", "channel.json", "panel.csv", "out.csv", *apply)
    first = pd.read_csv("out.csv").sort_values(["id", "year"], ignore_index=True)
    table.iloc[::-1].to_csv("turned.csv", index=False)
    run("apply", "channel.json", "turned.csv", "turned_out.csv", *apply)
    second = pd.read_csv("turned_out.csv").sort_values(
        ["id", "year"], ignore_index=True
    )
    pd.testing.assert_frame_equal(first, second)


def test_a_parquet_file_keeps_its_types(table, run):
    frame = table.assign(health=table["health"].str[1:].astype(int))
    frame.to_parquet("panel.parquet", index=False)
    asked = ("design", "panel.parquet", *DESIGN[2:], *PEOPLE, *PROMISE)
    run(*asked, "--output", "channel.json")
    run("apply", "channel.json", "panel.parquet", "out.parquet")
    released = pd.read_parquet("out.parquet")
    assert released["health"].dtype == np.int64
    assert len(released) == len(table)
    beside = ("--channel", "channel.json", "--original", "panel.parquet")
    assert run("check", "out.parquet", *beside).code == 0


def test_an_audit_on_another_table_folds_it(table, run):
    designed(run)
    own = run("audit", "channel.json", "--json").record
    same = run("audit", "channel.json", "--table", "panel.csv", "--json").record
    assert same["achieved"] == own["achieved"]
    refused = run("audit", "channel.json", "--table", "panel.csv", "--sensitive", "ill")
    assert "the channel says which columns make people" in refused.err
    # Its size is a number of people.
    twin = table[table["id"] == table["id"].iloc[0]].assign(id="twin")
    pd.concat([table, twin]).to_csv("more.csv", index=False)
    said = " ".join(run("audit", "channel.json", "--table", "more.csv").out.split())
    assert "This is the verdict on more.csv (121 people)" in said
    assert "which is another one (120 people)" in said


def test_estimates_are_shares_among_records(table, run):
    designed(run)
    run("apply", "channel.json", "panel.csv", "out.csv")
    record = run("estimate", "out.csv", "--channel", "channel.json", "--json").record
    assert record["records"] == len(table)
    health = record["frequencies"][0]
    shares = table["health"].value_counts(normalize=True)
    assert health["columns"] == ["health"]
    for row in health["rows"]:
        # Fixed counts: the file has the very shares of the table.
        assert row["estimate"] == pytest.approx(shares[row["health"]], abs=1e-12)
    crossed = run(
        "estimate", "out.csv", "--channel", "channel.json", "--of", "health,job"
    )
    assert crossed.code == 0
    refused = run("estimate", "out.csv", "--channel", "channel.json", "--of", "pay")
    assert "the channel releases no column 'pay'" in refused.err
    refused = run("estimate", "out.csv", "--channel", "channel.json", "--by", "job")
    assert "not built for people" in refused.err
    refused = run("estimate", "out.csv", "--channel", "channel.json", "--mean", "job")
    assert "clustered by person" in refused.err
    with pytest.raises(md.InputError, match="clustered by person"):
        md.estimate(md.load("channel.json"), "out.csv", mean="job")


def test_a_public_channel_still_knows_its_people(table, run):
    designed(run, "--public")
    channel = md.load("channel.json")
    assert channel.joint is None
    assert channel.useful.people.person == ("id",)
    run("apply", "channel.json", "panel.csv", "out.csv")
    assert len(pd.read_csv("out.csv")) == len(table)


def test_the_first_screen_speaks_of_people(table, run):
    text = run(*DESIGN, *PEOPLE, *PROMISE).out
    assert "health x job of all records of a person are released together" in text
    assert "120 people with at most 4 records" in text
    assert (
        "all released records of a person together make any value of ill"
        in " ".join(text.split())
    )
    assert "Other records of these people" in text
    lines = text.splitlines()
    assert len(lines) <= 27


def test_all_sections_speak_of_people(table, run):
    """None takes a person for a record."""
    relative = ("--promise", "relative")
    said = " ".join(run(*DESIGN, *PROMISE, *PEOPLE, *relative, "--full").out.split())
    assert "of all records of a person is released as one of" in said
    assert "The promise is about the table given (120 people," in said
    assert "not about the population behind the people" in said
    assert "The same person is released twice" in said
    assert "sequences of the table belong to a single person" in said
    assert "A released sequence makes" in said


def test_an_audit_speaks_of_people(folder, run):
    frame = panel(people=1500)
    # All have two records, whose number tells nothing; some illnesses change.
    frame = frame[frame.groupby("id")["id"].transform("size") == 2]
    frame.loc[frame.index[::3], "ill"] = "yes"
    frame.to_csv("panel.csv", index=False)
    columns = ("--sensitive", "ill", "--sensitive-of", "sequence", "--release", "job")
    asked = ("design", "panel.csv", *columns, *PEOPLE, "--epsilon", "2")
    screen = " ".join(run(*asked, "--output", "channel.json").out.split())
    hint = (
        "Population: not promised, may be far worse; --promise relative --confidence 0.95 protects "
        "it."
    )
    assert hint in screen
    said = " ".join(run("audit", "channel.json").out.split())
    assert hint in said
    assert "design with --promise relative --confidence." in said
    assert "together make any value of sequence of ill 0.3" in said
    people = frame["id"].nunique()
    assert f"For the population behind these {people} people (95 % confidence)" in said
    assert "Assumes independent people and categories" in said
    assert "applies to a new person." in said
    assert re.search(r"Largest decrease: .* \(\d+ (person|people) of ", said)
    shown = " ".join(run("show", "channel.json").out.split())
    assert "For the population behind the people (95 % confidence)" in shown
    assert "any value of sequence of ill 0.3" in shown
    # What is advised is an option that `design` takes.
    advised = (*asked, "--promise", "relative", "--confidence", "0.5")
    boxes = run(*advised, "--output", "boxes.json", "--slice-seed", "1")
    assert boxes.code == 0, boxes.err
    for text in (boxes.out, run("audit", "boxes.json").out):
        said = " ".join(text.split())
        assert "Table (the people of the proof): all released records of a" in said
        assert "any value of sequence of ill" in said
        assert "ill 1" not in said


def test_a_number_of_records_that_tells_the_secret_is_refused(folder, run):
    rows = []
    for person in range(40):
        ill = person % 2
        for wave in range(1 + 2 * ill):
            rows.append((person, wave, f"s{ill}", f"h{(person + wave) % 3}", "j"))
    frame = pd.DataFrame(rows, columns=["id", "year", "ill", "health", "job"])
    frame.to_csv("panel.csv", index=False)
    refused = run(*DESIGN, *PEOPLE, *PROMISE)
    assert refused.code == 1
    assert "number of records" in refused.err
    relative = run(*DESIGN, *PEOPLE, *PROMISE, "--promise", "relative")
    assert relative.code == 0
    # Nobody is left alone with it without a word.
    said = " ".join(relative.out.split())
    assert "By number of records alone a value of ill is at most" in said
    assert "times as probable, certain for 40 people" in said


def test_secrets_that_change_are_refused_or_are_sequences(folder, run):
    chance = np.random.default_rng(2)
    rows = []
    for person in range(200):
        for wave in range(2):
            ill = chance.random() < 0.5
            health = chance.integers(0, 3)
            rows.append((person, wave, f"s{int(ill)}", f"h{health}", f"j{int(ill)}"))
    frame = pd.DataFrame(rows, columns=["id", "year", "ill", "health", "job"])
    frame.to_csv("panel.csv", index=False)
    refused = run(*DESIGN, *PEOPLE, *PROMISE)
    assert refused.code == 2
    assert "--sensitive-of sequence" in refused.err
    asked = (*DESIGN, *PEOPLE, *PROMISE, "--sensitive-of", "sequence")
    run(*asked, "--output", "channel.json")
    channel = md.load("channel.json")
    # The secret of a person is the pair of values; each wave's value is bounded with it.
    people = {}
    for person, rows_of in frame.groupby("id"):
        pairs = list(zip(rows_of["health"], rows_of["job"], strict=True))
        people[person] = ",".join(rows_of["ill"]), tuple(pairs)
    assert within(oracle.lifts(people, channel.distribution).values())
    of_first = {
        key: (secret.split(",")[0], seq) for key, (secret, seq) in people.items()
    }
    assert within(oracle.lifts(of_first, channel.distribution).values())
    run("apply", "channel.json", "panel.csv", "out.csv")
    assert run("check", "out.csv", "--channel", "channel.json").code == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--wave", "year"), "give --person"),
        (("--person", "nobody"), "nobody"),
        (
            ("--person", "id", "--confidence", "0.95"),
            "the number of records of a person",
        ),
        (("--person", "id", "--objective", "information"), "is not built for people"),
        (("--person", "id", "--never", "job=j9"), "no record has 'job=j9'"),
        (("--person", "id", "--forbid", "j1:j9"), "no record has 'j9'"),
        (("--person", "id", "--bin", "year=2"), "--bin names the column 'year'"),
        (("--person", "id", "--bin", "job=auto"), "is searched for one column"),
        (("--person", "id", "--sensitive-of", "wave"), "must be one of"),
        (("--person", "job"), "'job' has two roles"),
    ],
)
def test_what_is_not_built_for_people_is_refused(table, run, options, words):
    refused = run(*DESIGN, *PROMISE, *options)
    assert refused.code == 2
    assert words in refused.err


def test_the_channel_file_names_the_columns_of_people(table, run):
    designed(run)
    with open("channel.json", encoding="utf-8") as file:
        document = json.load(file)
    assert document["version"] == 2
    assert document["people"]["person"] == ["id"]
    document["people"]["longest"] = 3
    del document["sha256"]
    with open("other.json", "w", encoding="utf-8") as file:
        json.dump(document, file)
    refused = run("audit", "other.json")
    assert refused.code == 2


def test_weights_of_columns_and_smallest_groups_count_for_people(table, run):
    light = designed(run, "--column-weight", "health=10")
    heavy = designed(run, "--column-weight", "job=10", "--force")
    assert light["truth"]["health"] > heavy["truth"]["health"]
    grouped = designed(run, "--smallest-group", "2", "--force")
    assert grouped["smallest_group"] == 2


def test_a_release_after_another_one_of_the_same_people(table, run):
    """The second one is of another column, in bins, and both together keep the promise."""
    frame = table.assign(age=np.arange(len(table)) % 40 + 20)
    frame.to_csv("panel.csv", index=False)
    asked = ("design", "panel.csv", "--sensitive", "ill", *PEOPLE, "--notion", "lip")
    first = ("--release", "age", "--bin", "age=20", "--epsilon", "0.5")
    run(*asked, *first, "--output", "first.json")
    after = ("--after", "first.json", "--epsilon", "0.8")
    full = run(*asked, "--release", "health", *after, "--full")
    assert "together they come to" in " ".join(full.out.split())
    run(*asked, "--release", "health", *after, "--output", "second.json")
    table_of = ("--table", "panel.csv", "--json")
    both = run("audit", "second.json", "--after", "first.json", *table_of).record
    assert both["satisfied"] is True
    together = run("compose", "first.json", "second.json", *table_of).record
    assert 0.5 < together["eps_l"] <= 0.8
    assert together["eps_u"] <= 0.8
    by_record(run)
    refused = run("compose", "first.json", "records.json", *table_of)
    assert "are not judged together" in refused.err


def test_the_command_line_designs_and_applies_boxes_of_people(folder, run):
    frame = panel(people=900, longest=3)
    frame.to_csv("panel.csv", index=False)
    asked = (*DESIGN, *PEOPLE, "--notion", "lip", "--epsilon", "0.8")
    boxes = ("--confidence", "0.9", "--promise", "relative", "--slice-seed", "1")
    screen = run(*asked, *boxes, "--output", "channel.json", "--report", "page.html")
    assert screen.code == 0, screen.err
    said = " ".join(screen.out.split())
    assert "all released records of a person together make any value of ill" in said
    assert "the people were not drawn from independently" in said
    assert "health " in screen.out
    for page in ("public.md", "public.json"):
        reported = run("report", "channel.json", "--public-report", page)
        assert reported.code == 0, reported.err
    with open("public.md", encoding="utf-8") as file:
        public = " ".join(file.read().split())
    assert "of all records of a person are released together" in public
    assert "A released sequence makes any value of ill" in public
    assert "the people were not drawn from independently" in public
    named = ("--person", "id", "--wave", "year", "--ledger", "l.db")
    written = run("apply", "channel.json", "panel.csv", "out.csv", *named)
    assert written.code == 0, written.err
    assert f"{len(frame):,} records of 900 people" in written.out
    with open("out.csv.manifest.json", encoding="utf-8") as file:
        covers = " ".join(json.load(file)["covers"])
    assert "It is about all records of a person together" in covers
    assert "each record alone" not in covers
    assert "applies to a new person" in covers
    # The ledger knows the people.
    later = frame.assign(year=frame["year"] + 10).iloc[::-1]
    later.to_csv("later.csv", index=False)
    apply = ("apply", "channel.json", "later.csv", "later_out.csv", "--ledger", "l.db")
    second = run(*apply)
    assert second.code == 2
    assert "900 people were released before" in second.err
    refused = run(*apply, "--nights", "2")
    assert refused.code == 2
    assert "release each person once" in refused.err
    refused = run(*asked, *boxes, "--public", "--output", "public-channel.json")
    assert "cannot be public" in refused.err
    md.load("channel.json").public().save("bare.json")
    bare = md.load("bare.json")
    assert bare == md.load("channel.json").public()
    refused = run("apply", "bare.json", "later.csv", "bare_out.csv")
    assert refused.code == 2
    assert "boxes must be filled with sequences" in refused.err
    assert "release by the channel itself" in refused.err
    verdict = run("check", "out.csv", "--channel", "channel.json")
    assert "looks like a faithful release of its channel (900 people)" in verdict.out
    estimated = run("estimate", "out.csv", "--channel", "channel.json")
    assert "Frequencies of job from" in estimated.out


def test_exports_refuse_people(table, run):
    designed(run)
    refused = run("export", "channel.json", "--output", "channel.sql")
    assert refused.code == 2
    assert "release it with apply" in refused.err


def by_record(run, *more):
    """A channel about records, knowingly."""
    asked = (*DESIGN, *PROMISE, "--unit", "record", "--output", "records.json", *more)
    return run(*asked, "--json")


def test_a_table_from_standard_input_is_said_to_be_unseen(table, run, monkeypatch):
    """It is read once, so that nobody looks for people; a user who decides hears nothing."""
    asked = (
        "design",
        "-",
        *DESIGN[2:],
        *PROMISE,
        "--force",
        "--output",
        "records.json",
    )
    for more, said in (((), True), (("--unit", "record"), False)):
        with open("panel.csv", "rb") as file:
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(file))
            written = run(*asked, *more)
        assert written.code == 0
        assert ("nobody looked whether people have several" in written.err) == said


def test_a_design_about_records_names_the_people_and_writes_nothing(table, run):
    """The sentence has the very figures of the channel, and --unit record lets it pass."""
    said = run(*DESIGN, *PROMISE, "--json")
    assert said.code == 0
    assert "the column 'id' names 120 people with up to 4 records each" in said.err
    assert "all records of a person together, each drawn by itself, reach" in said.err
    refused = run(*DESIGN, *PROMISE, "--output", "records.json")
    assert refused.code == 2
    assert "nothing was written: the column 'id' names 120 people" in refused.err
    assert "--person, here id" in refused.err
    assert "--unit record" in refused.err
    assert by_record(run).code == 0
    assert md.load("records.json").useful.people is None
    wrong = run(*DESIGN, *PROMISE, "--unit", "person")
    assert wrong.code == 2
    assert "--unit ('person') must be record" in wrong.err


@pytest.mark.parametrize(
    "shape",
    [
        ("--useful", "health"),
        ("--release", "health,job", "--confidence", "0.9", "--slice-seed", "1"),
        ("--release", "all", "--leave-out", "year"),
    ],
)
def test_designs_of_every_shape_name_the_people(table, run, shape):
    asked = ("design", "panel.csv", "--sensitive", "ill", *shape, *PROMISE)
    refused = run(*asked, "--output", "records.json")
    assert refused.code == 2
    assert "names 120 people" in refused.err


@pytest.mark.parametrize("kept", [("--keep", "id"), ("--identity", "id,year")])
@pytest.mark.parametrize("left_out", [(), ("ill",)])
def test_a_release_of_records_whose_columns_name_people_is_refused(
    folder, run, kept, left_out
):
    """With the secret in the file, and without it."""
    frame = panel(people=300)
    frame.to_csv("panel.csv", index=False)
    by_record(run)
    frame.drop(columns=list(left_out)).to_csv("in.csv", index=False)
    apply = ("apply", "records.json", "in.csv", "out.csv", *kept)
    refused = run(*apply)
    assert refused.code == 2
    assert "nothing was released: the column 'id' names 300 people" in refused.err
    assert "reach" in refused.err
    assert run(*apply, "--unit", "record").code == 0
    # Neither kept nor an identity, the column stays inside.
    plain = ("apply", "records.json", "in.csv", "other.csv", "--insecure-seed", "1")
    assert run(*plain, "--shuffle").code == 0
    wrong = run(*apply, "--unit", "person")
    assert "must be record" in wrong.err


@pytest.mark.parametrize("by", [["id", "year"], ["year", "id"]])
def test_an_order_that_tells_who_is_who_is_refused(folder, run, by):
    """Nothing names a person in the output, but the records of one stand together, or come again
    after as many others in every wave."""
    frame = panel(people=300).groupby("id").filter(lambda own: len(own) == 4)
    frame.drop(columns=["id", "year"]).to_csv("panel.csv", index=False)
    by_record(run)
    frame.sort_values(by).to_csv("in.csv", index=False)
    apply = ("apply", "records.json", "in.csv", "out.csv", "--insecure-seed", "1")
    for order in ((), ("--keep-order",)):
        refused = run(*apply, *order)
        assert refused.code == 2
        assert "the order of the records tells which of them are of one" in refused.err
        assert "the column 'id' names" in refused.err
    assert run(*apply, "--shuffle").code == 0
    assert run(*apply, "--unit", "record", "--keep-order", "--force").code == 0
    # In random order nobody finds them.
    frame.sample(frac=1.0, random_state=1).to_csv("in.csv", index=False)
    assert run(*apply, "--force").code == 0
    channel = md.load("records.json")
    with pytest.raises(md.InputError, match="the order of the records tells"):
        md.sanitise(frame.sort_values(by), channel, insecure_seed=1)


def test_people_whose_secret_changes_are_found(folder, run):
    """A tenth of the records have another secret than the others of their person."""
    frame = panel(people=300)
    other = np.random.default_rng(1).random(len(frame)) < 0.1
    swapped = frame["ill"].map({"yes": "no", "no": "yes"})
    frame["ill"] = frame["ill"].where(~other, swapped)
    frame.to_csv("panel.csv", index=False)
    refused = run(*DESIGN, *PROMISE, "--output", "records.json")
    assert refused.code == 2
    assert "the column 'id' names 300 people" in refused.err


def test_a_frame_of_records_whose_columns_name_people_is_refused(folder, run):
    frame = panel(people=300)
    frame.to_csv("panel.csv", index=False)
    by_record(run)
    channel = md.load("records.json")
    with pytest.raises(md.InputError, match="'id' names 300 people"):
        md.sanitise(frame, channel, keep="id", insecure_seed=1)
    released = md.sanitise(frame, channel, keep="id", unit="record", insecure_seed=1)
    assert len(released) == len(frame)


def test_a_lazy_table_of_records_whose_columns_name_people_is_refused(folder, run):
    """The engine counts the values of the column that stays."""
    frame = panel(people=300)
    frame.to_csv("panel.csv", index=False)
    by_record(run)
    channel = md.load("records.json")
    lazy = pl.from_pandas(frame).lazy()
    key = md.Key.fresh()
    with pytest.raises(md.InputError, match="'id' names 300 people"):
        md.sanitise(lazy, channel, keep="id", key=key)
    kept = md.sanitise(
        lazy, channel, keep="id", unit="record", key=key, keep_order=True
    )
    assert len(kept.collect()) == len(frame)
    # Years have too many records each to name people.
    years = md.sanitise(lazy, channel, keep="year", key=key, keep_order=True)
    assert len(years.collect()) == len(frame)


def test_assess_finds_the_people_and_measures_them(folder, run):
    frame = panel(people=300)
    frame.to_csv("panel.csv", index=False)
    record = run("assess", "panel.csv", "--sensitive", "ill", "--json").record
    (symptom,) = [s for s in record["symptoms"] if s["kind"] == "people"]
    assert symptom["column"] == "id"
    assert symptom["option"] == "--person id"
    assert "By 'health' alone, as it is, one record makes" in symptom["text"]
    assert record["unit"] == "record"
    asked = ("assess", "panel.csv", "--sensitive", "ill", *PEOPLE)
    of_people = run(*asked, "--json").record
    assert of_people["unit"] == "person"
    assert of_people["records"] == 300
    assert not [s for s in of_people["symptoms"] if s["kind"] == "people"]
    columns = {
        c["disclosure"]["columns"][0]: c["disclosure"] for c in of_people["columns"]
    }
    assert set(columns) == {"health", "job"}
    ordered = frame.sort_values("year").groupby("id")
    assert columns["job"]["values"] == ordered["job"].agg(",".join).nunique()
    assert "300 people. Sensitive: ill" in run(*asked).out
    page = run(*asked, "--report", "page.html")
    assert page.code == 0
    refused = run("assess", "panel.csv", "--sensitive", "ill", "--wave", "year")
    assert "give person" in refused.err or "give --person" in refused.err
