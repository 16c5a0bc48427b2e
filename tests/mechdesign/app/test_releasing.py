"""From a file to a released file on the page: what is released, and what is refused."""

from __future__ import annotations

import csv
import dataclasses
import hashlib
import io
import json
import random
import urllib.request
import zipfile
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import mechdesign as md
from mechdesign.app.choice import Choice, choice_of_form
from mechdesign.app.memory_table import read_path
from mechdesign.app.pictures import _Rows, readings
from mechdesign.app.releasing import (
    ORDERS,
    _checked,
    _csv,
    channel_in,
    judge_file,
    release_file,
)
from mechdesign.app.server import rendered
from mechdesign.app.session import Session, design_channel
from mechdesign.cli import main
from mechdesign.cli.design_options import OutputOptions, RowOptions
from mechdesign.cli.options import ConfidenceOptions, SearchOptions
from mechdesign.cli.released import KeptOptions
from mechdesign.cli.table_options import InputTable
from mechdesign.core.errors import InputError
from mechdesign.jobs.side_files import read_manifest
from mechdesign.mechanisms.request import DesignRequest
from tests.mechdesign.app.test_server import FORM, act, get, wait
from tests.profiles import slow

pytestmark = pytest.mark.usefixtures("quick_work")


def silent(text):
    pass


def designed(people, **choices):
    table = read_path(str(people))
    roles = {name: choices.pop(name, "leave out") for name in table.columns[1:]} | {
        "illness": "protect"
    }
    choice = Choice(roles=roles, **{"factor": "1.5", **choices})
    return table, choice, design_channel(table, choice, silent)


def released(people, order="order", **choices):
    table, choice, design = designed(people, **choices)
    return release_file(design.channel_text, order, table, choice, silent)


def released_table(release):
    return pd.read_csv(io.StringIO(release.file("released.csv").text), dtype=str)


ROW = {"job": "release", "town": "release"}


def test_rows_are_released_through_the_channel_of_the_page(people):
    table, choice, design = designed(people, **ROW)
    release = release_file(design.channel_text, "order", table, choice, silent)
    found = released_table(release)
    original = pd.read_csv(people, dtype=str)
    assert list(found.columns) == ["job", "town"]
    assert len(found) == len(original)
    # Fixed counts: every row as often as the channel expects, here as the table has it.
    channel = channel_in(design.channel_text)
    assert channel.keeps_law
    assert sorted(map(tuple, found.to_numpy())) == sorted(
        map(tuple, original[["job", "town"]].to_numpy())
    )
    assert not found.equals(original[["job", "town"]])
    assert {file.name for file in release.files if file.is_public} == {
        "released.csv",
        "released.csv.manifest.json",
        "released.txt",
    }
    assert {file.name for file in release.files if not file.is_public} == {
        "board.html",
        "check.txt",
    }


@pytest.mark.parametrize("order", ORDERS)
def test_boxes_for_the_population_are_released_and_checked(people, order):
    """Rows drawn within their box; and labels, with a codebook that says what they mean."""
    choices = {**ROW, "level": "0.9", "time_limit": "3"}
    release = released(people, order, **choices)
    assert release.is_plausible
    found = released_table(release)
    assert list(found.columns) == ["job", "town"]
    assert len(found) == 600
    manifest = json.loads(release.file("released.csv.manifest.json").text)
    assert manifest["shuffled"] == (order == "shuffled")
    names = {file.name for file in release.files}
    assert not names & {"codebook.csv", "board.html"}
    labels = released(people, order, **choices, objective="information")
    assert labels.is_plausible
    codebook = labels.file("codebook.csv")
    assert set(released_table(labels)["box"]) <= set(
        pd.read_csv(io.StringIO(codebook.text), dtype=str)["box"]
    )
    assert not codebook.is_public


def test_the_promise_for_the_whole_file_needs_a_random_order(people):
    """In the order of the table a reader who knows it sees whose row is where."""
    in_order = released(people, **ROW)
    assert "may learn a little more" in dict(in_order.facts)["Readers"]
    shuffled = released(people, order="shuffled", **ROW)
    assert "and of the whole file" in dict(shuffled.facts)["Readers"]
    for release, is_shuffled in ((in_order, False), (shuffled, True)):
        manifest = json.loads(release.file("released.csv.manifest.json").text)
        assert manifest["shuffled"] == is_shuffled
        covers = " ".join(manifest["covers"])
        assert ("sees the whole file, too" in covers) == is_shuffled


def test_the_manifest_is_that_of_the_file(people, tmp_path):
    release = released(people, **ROW)
    text = release.file("released.csv.manifest.json").text
    (tmp_path / "m.json").write_text(text)
    manifest = read_manifest(tmp_path / "m.json", "public")
    content = release.file("released.csv").text.encode()
    assert manifest.output == hashlib.sha256(content).hexdigest()
    assert manifest.columns_before == ("illness", "job", "town", "age", "note")
    # What it states is what the channel proves.
    (tmp_path / "released.csv").write_bytes(content)
    (tmp_path / "released.csv.manifest.json").write_text(text)
    channel = channel_in(designed(people, **ROW)[2].channel_text)
    found = md.check(channel, tmp_path / "released.csv")
    assert found.plausible
    assert not any("manifest" in notice for notice in found.notices)
    # Nothing of the data set itself goes out.
    assert hashlib.sha256(people.read_bytes()).hexdigest() not in text


@pytest.mark.parametrize("order", ["order", "shuffled"])
def test_the_check_is_that_of_the_command_line(people, tmp_path, order, capsys):
    table, choice, design = designed(people, **ROW)
    release = release_file(design.channel_text, order, table, choice, silent)
    assert release.is_plausible
    for file in release.files:
        (tmp_path / file.name).write_text(file.text)
    (tmp_path / "channel.json").write_text(design.channel_text)
    line = ["check", str(tmp_path / "released.csv"), "--channel"]
    line.append(str(tmp_path / "channel.json"))
    if order == "order":
        line += ["--original", str(people)]
    assert main(line) == 0
    said = capsys.readouterr().out.replace(str(tmp_path) + "/", "")
    assert said.split()[:6] == release.check.split()[:6]


def test_a_file_that_is_no_draw_fails_the_check(people):
    """The untouched rows are possible, and far too true."""
    table, _, design = designed(people, **ROW)
    channel = channel_in(design.channel_text)
    untouched = table.frame.select(["job", "town"])
    content = _csv(untouched, table).replace("clerk", "cook")
    check, words = _checked(channel, content, table, is_alone=False)
    assert not check.plausible
    assert "no plausible draw" in words or "not plausible" in words


def test_cells_of_a_parquet_file_have_types(people, tmp_path):
    frame = pd.read_csv(people)
    frame["old"] = frame["age"] > 40
    path = tmp_path / "people.parquet"
    frame.to_parquet(path)
    release = released(path, job="release", old="release", age="release")
    assert release.is_plausible
    assert set(released_table(release)["old"]) == {"True", "False"}


def test_an_order_that_tells_is_refused(people):
    lines = people.read_text().splitlines()
    people.write_text("\n".join([lines[0], *sorted(lines[1:])]) + "\n")
    with pytest.raises(
        InputError, match=r"stand in an order that tells .* random order"
    ):
        released(people, **ROW)
    assert released(people, order="shuffled", **ROW).is_plausible


@pytest.fixture
def panel(tmp_path):
    """Four records of each of 200 people, in random order."""
    path = tmp_path / "panel.csv"
    rng = random.Random(3)
    lines: list[str] = []
    for person in range(200):
        ill = rng.choice(("yes", "no"))
        lines += [f"p{person},{ill},{rng.choice('abc')}" for _ in range(4)]
    rng.shuffle(lines)
    path.write_text("\n".join(["person,ill,job", *lines]) + "\n")
    return path


def test_all_records_of_a_person_are_released_together(panel):
    table = read_path(str(panel))
    roles = {"person": "person", "ill": "protect", "job": "release"}
    choice = Choice(roles=roles, time_limit="5")
    choice.check()
    design = design_channel(table, choice, silent)
    screen = " ".join(design.text.split())
    assert "Table: all released records of a person together make any" in screen
    assert "before and after a released sequence is seen" in design.sections
    assert "--person person" in design.command
    release = release_file(design.channel_text, "order", table, choice, silent)
    assert release.is_plausible
    found = released_table(release)
    assert list(found.columns) == ["person", "job"]
    # New numbers, which say which records belong together, and nothing of the names.
    assert set(found["person"]) == {str(number) for number in range(1, 201)}
    assert (found.groupby("person").size() == 4).all()
    manifest = json.loads(release.file("released.csv.manifest.json").text)
    assert manifest["columns"] == ["person", "job"]
    assert "all records of a person" in dict(release.facts)["Readers"]
    with pytest.raises(InputError, match="choose the order of the file"):
        release_file(design.channel_text, "shuffled", table, choice, silent)
    judged = judge_file(
        design.channel_text,
        release.file("released.csv").text,
        table.with_columns(choice.used),
        choice,
        silent,
    )
    assert judged.short


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"unit": "record"}, "one record each"),
        ({"level": "0.9"}, "for this table alone"),
    ],
)
def test_what_the_page_does_not_design_for_people_is_refused(change, words):
    roles = {"person": "person", "ill": "protect", "job": "release"}
    with pytest.raises(InputError, match=words):
        Choice(roles=roles, **change).check()


def test_advice_on_people_is_refused(panel):
    session = Session()
    session.open_path(str(panel))
    form = {"role-0": "person", "role-1": "protect", "role-2": "release"}
    session.act("plan", form)
    assert "is made for records" in session.error
    assert session.choice.person == ("person",)


def test_a_form_of_another_file_changes_nothing(people, panel):
    """Its fields are numbered, and would be those of other columns."""
    session = Session()
    session.open_path(str(people))
    stale = {"role-0": "protect", "role-1": "release", "file": session.table.sha256}
    session.act("others", stale)
    assert session.choice.sensitive == ("illness",)
    session.open_path(str(panel))
    session.act("others", stale)
    assert "opened in another window" in session.error
    assert session.choice.sensitive == ()


def test_people_with_several_records_are_refused(panel):
    table = read_path(str(panel))
    roles = {"person": "leave out", "ill": "protect", "job": "release"}
    with pytest.raises(
        InputError, match="'person' names 200 people with up to 4 records"
    ):
        design_channel(table, Choice(roles=roles), silent)
    knowingly = Choice(roles=roles, unit="record")
    assert design_channel(table, knowingly, silent).channel_text


def test_what_an_analyst_reads_is_counted_in_the_file(people):
    release = released(people, **ROW)
    readings = {reading.columns: reading for reading in release.readings}
    assert set(readings) == {("job",), ("town",), ("job", "town")}
    found = released_table(release)
    (bar,) = [bar for bar in readings[("job",)].bars if bar.label == "clerk"]
    share = (found["job"] == "clerk").mean()
    assert bar.after == f"{100 * share:.1f} %"


def test_distances_of_columns_and_pairs():
    """By hand: half of the mass moves from a to b, whatever the other column is."""
    before = _Rows([np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])], np.ones(4))
    after = _Rows([np.array([0, 1, 1, 1]), np.array([0, 1, 0, 1])], np.ones(4))
    column, other, pair = readings(("x", "y"), [["a", "b"], ["c", "d"]], before, after)
    assert (column.distance, other.distance) == ("25.0 %", "0 %")
    assert pair.columns == ("x", "y")
    assert pair.distance == "25.0 %"
    assert {bar.label: (bar.before, bar.after) for bar in pair.bars} == {
        "a, d": ("25.0 %", "0 %"),
        "b, d": ("25.0 %", "50.0 %"),
        "a, c": ("25.0 %", "25.0 %"),
        "b, c": ("25.0 %", "25.0 %"),
    }


@pytest.mark.slow
def test_the_file_is_attacked(people):
    table, choice, design = designed(people, **ROW)
    release = release_file(design.channel_text, "order", table, choice, silent)
    text = release.file("released.csv").text
    used = table.with_columns(choice.used)
    judged = judge_file(design.channel_text, text, used, choice, silent)
    attack = judged.short[0]
    assert "points at the 5 % of the people who look most like" in attack
    assert "which is proven" in attack
    assert not judged.file.is_public
    assert "Attack" not in release.file("released.txt").text


def test_labels_come_with_their_codebook(people):
    release = released(people, job="release", objective="information", factor="2")
    book = release.file("codebook.csv")
    assert not book.is_public
    labels = {row["output"] for row in csv.DictReader(io.StringIO(book.text))}
    assert set(released_table(release)["job"]) <= labels
    assert release.readings == ()


def test_an_edited_channel_releases_nothing(people):
    table, choice, design = designed(people, **ROW)
    channel = channel_in(design.channel_text)
    joint = channel.joint
    identity = [[0] * len(joint.useful) for _ in joint.useful.names]
    for place, row in enumerate(identity):
        row[place] = 1
    broken = md.Channel(
        useful=joint.useful,
        outputs=channel.useful.names,
        rows=identity,
        denominator=1,
        joint=joint,
        record=channel.record,
        published=channel.published,
    )
    from mechdesign.channel.file import text_of

    with pytest.raises(md.MechdesignError):
        release_file(text_of(broken), "order", table, choice, silent)


def test_the_page_goes_from_a_file_to_a_released_file(served, people):
    session, address = served
    session.open_upload("people.csv", people.read_bytes())
    form = {f"role-{k}": "leave out" for k in range(5)} | {"role-0": "protect"}
    act(address, "others", **form, objective="truth")
    assert session.choice.released == ("job", "town", "age", "note")
    form |= {"role-1": "release", "role-2": "release"}
    act(address, "design", **form, objective="truth")
    assert wait(address)["place"] == "result"
    assert "Release and check the file" in get(address)
    post = urllib.request.urlopen(address + "act", data=b"action=release")
    post.close()
    assert wait(address)["place"] == "released"
    page = get(address)
    assert "5. The released file" in page
    assert "Checked: it looks like a faithful release of its channel" in page
    assert "Release and check" not in page
    text = get(address + "files/released.csv")
    assert text.splitlines()[0].replace('"', "") == "job,town"
    assert len(text.splitlines()) == 601
    # Another release of the same people is not made by a second click.
    urllib.request.urlopen(address + "act", data=b"action=release").close()
    assert "The file is released already" in get(address)
    with urllib.request.urlopen(address + "files/release.zip") as answer:
        archive = zipfile.ZipFile(io.BytesIO(answer.read()))
    assert archive.read("give away/released.csv").decode() == text
    kept = {name for name in archive.namelist() if name.startswith("keep/")}
    assert {"keep/board.html", "keep/channel.json", "keep/report.html"} <= kept
    # Another choice drops what was released under the old one, and releases nothing.
    act(address, "design", **form, objective="truth", factor="1.5")
    assert session.released is None
    assert wait(address)["place"] == "result"
    assert "5. The released file" not in get(address)
    urllib.request.urlopen(address + "act", data=b"action=release").close()
    assert "These records were released already" in get(address)
    # Nor does the same file, opened again.
    session.open_upload("again.csv", people.read_bytes())
    act(address, "design", **form, objective="truth")
    assert wait(address)["place"] == "result"
    urllib.request.urlopen(address + "act", data=b"action=release").close()
    assert "These records were released already" in get(address)


def test_nothing_is_released_without_a_design(people):
    session = Session()
    session.open_upload("people.csv", people.read_bytes())
    session.act("release", {})
    assert session.error.startswith("Design a channel first")


def test_nothing_is_released_by_a_choice_that_was_changed_after_the_design(people):
    """Else what was typed would be lost, and the release be another one than the page says."""
    session = Session()
    session.open_upload("people.csv", people.read_bytes())
    session.act("design", FORM)
    session.work.wait(60)
    assert not session.running
    design, before = session.designed, session.choice
    for changes in ({"factor": "4"}, {"role-2": "release"}, {"time_limit": "7"}):
        typed = {**FORM, **changes}
        for action in ("accept", "release"):
            session.act(action, typed)
            assert "nothing was released: design the channel again" in session.error
            assert session.work is None
            assert session.designed is None
            choice, _ = choice_of_form(session.table.columns, typed, before)
            assert session.choice == choice
            session.designed, session.choice = design, before
            session.is_accepted = True
    session.act("release", FORM)
    session.work.wait(60)
    assert not session.running
    assert session.released is not None
    # It cannot be released again, so no button but those of another choice drops it.
    session.act("release", {**FORM, "factor": "4"})
    assert session.released is not None
    assert "released already" in session.error


def test_a_refused_number_keeps_what_was_typed(people):
    """Also the wrong one, so that it can be mended; the factor alone is as it was."""
    session = Session()
    session.open_upload("people.csv", people.read_bytes())
    typed = {**FORM, "role-3": "release", "bins-3": "10", "time_limit": "-1"}
    session.act("design", typed)
    assert "seconds from 1 to 86400" in session.error
    assert session.choice.roles["illness"] == "protect"
    assert session.choice.bins["age"] == "10"
    assert session.choice.time_limit == "-1"
    assert 'value="-1"' in rendered(session)
    session.act("design", {**typed, "factor": "x", "time_limit": "30"})
    assert "The factor must be" in session.error
    assert session.choice.factor == "2"
    rendered(session)


def test_refusals_have_no_arguments_of_python():
    """The page has fields for some of them, and none for the others."""
    session = Session()
    lines = [f"p{k},{k % 2}" for k in range(100)]
    session.open_upload("a.csv", "\n".join(["id,ill", *lines]).encode())
    session.act("design", {"role-0": "release", "role-1": "protect"})
    session.work.wait(60)
    assert not session.running
    assert session.error == (
        "the useful column 'id' has 100 symbols in 100 records, so it all but identifies them and "
        "the channel would list them; group its values, choose another column"
    )


def test_a_role_that_is_refused_keeps_the_others(people):
    session = Session()
    session.open_upload("people.csv", people.read_bytes())
    session.act("design", {**FORM, "role-1": "publish", "bins-3": "10"})
    assert session.error.startswith("Role of job: 'publish' is none of")
    assert session.choice.roles["illness"] == "protect"
    assert session.choice.bins["age"] == "10"


@pytest.mark.parametrize("objective", [slow("truth"), "information"])
def test_a_useless_channel_keeps_its_files_until_they_are_asked_for(objective):
    session = Session()
    lines = [f"{k % 20},{k % 20}" for k in range(600)]
    session.open_upload("copies.csv", "\n".join(["secret,copy", *lines]).encode())
    roles = {"role-0": "protect", "role-1": "release"}
    session.act("design", {**roles, "objective": objective, "factor": "1.05"})
    session.work.wait(60)
    assert not session.running
    assert session.designed.useless.startswith("Of little use: only ")
    assert session.download("channel.json") is None
    assert "Release and check" not in rendered(session)
    session.act("release", {})
    assert session.error.startswith("Of little use")
    assert session.work is None
    session.act("accept", {})
    assert session.download("channel.json") is not None
    assert "Release and check" in rendered(session)


@pytest.mark.slow
def test_the_advice_is_that_of_the_command_line(people, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    session = Session()
    session.open_path("people.csv")
    session.act("advice", {"role-0": "protect"})
    assert session.error == "There is no advice yet: ask for it first."
    session.act("plan", {"role-0": "protect"})
    session.work.wait(120)
    assert not session.running
    plan = session.assessed.plan
    assert main(["assess", "people.csv", "--sensitive", "illness", "--plan"]) == 0
    said = capsys.readouterr().out
    assert plan.command in said
    assert all(" ".join(row[0].split()) in said for row in plan.rows)
    assert plan.sentences[0] in rendered(session).replace("&#39;", "'")
    session.act("advice", {"role-0": "protect"})
    assert {*session.choice.released, *session.choice.given} == set(plan.released)
    assert set(session.choice.given) == set(plan.given)
    assert session.choice.factor == plan.factor
    assert session.choice.missing == "symbol"


@pytest.mark.slow
def test_advice_with_bins_gaps_and_given_columns_can_be_taken(tmp_path):
    """A number of nearly every record's own, with empty cells, and a column that tells nothing."""
    rng = random.Random(5)
    lines = ["id,wage,job,hand,eyes,town,illness"]
    wages = rng.sample(range(1_000, 9_000), 2_000)
    for k in range(2_000):
        wage = wages[k] if rng.random() > 0.08 else ""
        job = rng.choice("abcd")
        ill = "yes" if rng.random() < (0.7 if job < "c" else 0.1) else "no"
        others = ",".join(rng.choice(values) for values in ("lr", "bg", "nsw"))
        lines.append(f"p{k},{wage},{job},{others},{ill}")
    path = tmp_path / "wages.csv"
    path.write_text("\n".join(lines) + "\n")
    session = Session()
    session.open_path(str(path))
    protect = {"role-6": "protect"}
    session.act("plan", protect)
    session.work.wait(240)
    assert not session.running
    plan = session.assessed.plan
    assert plan.bins == {"wage": "quantiles:8"}
    assert plan.given
    session.act("advice", protect)
    assert set(session.choice.given) == set(plan.given)
    choice = replace(session.choice, time_limit="3")
    table = read_path(str(path))
    design = design_channel(table, choice, silent)
    release = release_file(design.channel_text, "order", table, choice, silent)
    found = released_table(release)
    original = pd.read_csv(path, dtype=str)
    assert set(found.columns) == set(plan.released)
    for name in plan.given:
        assert found[name].equals(original[name])


def test_defaults_are_those_of_the_command_line(people):
    """The budget alone has none there: it is recommended, and the page begins with a factor of 2."""
    choice = choice_of_form(("a", "b"), {}, Choice())[0]
    assert replace(choice, roles={}, bins={}) == Choice()
    usual = {}
    for group in (
        InputTable,
        SearchOptions,
        OutputOptions,
        RowOptions,
        ConfidenceOptions,
        KeptOptions,
    ):
        usual |= {field.name: field.default for field in dataclasses.fields(group)}
    assert choice.missing == usual["missing"]
    assert choice.time_limit == usual["time_limit"]
    assert choice.promise == usual["promise"]
    assert choice.unit == (usual["unit"] or "")
    assert choice.level == (usual["confidence"] or "")
    assert choice.merge_rare == (usual["merge_rare"] or "")
    assert next(iter(ORDERS)) == "order"
    assert usual["shuffle"] is False
    joint = md.Joint.from_table(pd.read_csv(people), sensitive="illness", useful="job")
    request = DesignRequest(joint, md.LIP(1.0), release=("job",))
    assert choice.objective == request.least_cost.name


def test_identifiers_stay_out_of_all_others(tmp_path):
    path = tmp_path / "people.csv"
    lines = [f"p{k},{k % 3},{k % 2}" for k in range(60)]
    path.write_text("id,job,ill\n" + "\n".join(lines) + "\n")
    session = Session()
    session.open_upload("people.csv", path.read_bytes())
    session.act(
        "others",
        {**FORM, "role-0": "leave out", "role-2": "protect", "role-1": "leave out"},
    )
    assert session.choice.released == ("job",)
