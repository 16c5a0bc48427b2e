"""From a file to a released file on the page: what is released, and what is refused."""

from __future__ import annotations

import csv
import io
import urllib.request

import pandas as pd
import pytest

import mechdesign as md
from mechdesign.app.choice import Choice
from mechdesign.app.designing import design_channel
from mechdesign.app.memory_table import read_path
from mechdesign.app.releasing import channel_in, release_file
from mechdesign.app.session import Session
from tests.mechdesign.app.test_server import FORM, act, get, wait


def silent(text):
    pass


def designed(people, **roles):
    table = read_path(str(people))
    names = dict.fromkeys(table.columns, "leave out")
    choice = Choice(
        roles={**names, "illness": "protect", **roles}, objective="truth", factor="1.5"
    )
    used = table.with_columns(choice.used)
    return used, choice, design_channel(used, choice, silent)


def released_table(released):
    (file,) = [file for file in released.files if file.name == "released.csv"]
    return pd.read_csv(io.StringIO(file.text), dtype=str)


def test_rows_are_released_through_the_channel_of_the_page(people):
    table, choice, design = designed(people, job="release", town="release")
    released = release_file(design.channel_text, table, choice, silent)
    found = released_table(released)
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
    facts = dict(released.facts)
    assert "readers of the whole file, too" in facts["Draws"]
    (attack,) = [text for name, text in facts.items() if name.startswith("Attack on")]
    assert "Promised: at most" in attack
    names = {file.name for file in released.files}
    assert names == {"released.csv", "released.txt", "board.html", "judged.html"}


def test_the_text_that_goes_with_the_file_has_no_figure_of_an_attack(people):
    table, choice, design = designed(people, job="release", town="release")
    released = release_file(design.channel_text, table, choice, silent)
    (text,) = [file.text for file in released.files if file.name == "released.txt"]
    assert "Once only" in text
    assert "Attack" not in text
    assert "600 records of 'job', 'town'" in text


def test_labels_come_with_their_codebook(people):
    table = read_path(str(people))
    roles = dict.fromkeys(table.columns, "leave out")
    choice = Choice(roles={**roles, "illness": "protect", "job": "release"})
    used = table.with_columns(choice.used)
    design = design_channel(used, choice, silent)
    released = release_file(design.channel_text, used, choice, silent)
    (book,) = [file.text for file in released.files if file.name == "codebook.csv"]
    labels = {row["output"] for row in csv.DictReader(io.StringIO(book))}
    assert set(released_table(released)["job"]) <= labels


def test_an_edited_channel_releases_nothing(people):
    table, choice, design = designed(people, job="release", town="release")
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
        release_file(text_of(broken), table, choice, silent)


def test_the_page_goes_from_a_file_to_a_released_file(served, people):
    session, address = served
    session.open_upload("people.csv", people.read_bytes())
    form = {f"role-{k}": "leave out" for k in range(5)} | {"role-0": "protect"}
    act(address, "others", **form, objective="truth")
    assert session.choice.released == ("job", "town", "age", "note")
    form |= {"role-1": "release", "role-2": "release"}
    act(address, "design", **form, objective="truth")
    assert wait(address)["place"] == "result"
    assert "Release the file" in get(address)
    post = urllib.request.urlopen(address + "act", data=b"action=release")
    post.close()
    assert wait(address)["place"] == "released"
    page = get(address)
    assert "5. The released file" in page
    assert "Release the file" not in page
    text = get(address + "files/released.csv")
    assert text.splitlines()[0].replace('"', "") == "job,town"
    assert len(text.splitlines()) == 601
    # Another release of the same people is not made by a second click.
    urllib.request.urlopen(address + "act", data=b"action=release").close()
    assert "The file is released already" in get(address)
    # Another choice drops what was released under the old one.
    act(address, "bins", **form, objective="truth", factor="1.5")
    assert session.released is None
    assert "5. The released file" not in get(address)


def test_nothing_is_released_without_a_design(people):
    session = Session()
    session.open_upload("people.csv", people.read_bytes())
    session.act("release", {})
    assert session.error.startswith("Design a channel first")


def test_a_refused_number_keeps_roles_and_bins(people):
    """The wrong field is as it was before, and everything else is what was typed."""
    session = Session()
    session.open_upload("people.csv", people.read_bytes())
    typed = {**FORM, "role-3": "release", "bins-3": "10", "time_limit": "-1"}
    session.act("design", typed)
    assert "seconds from 1 to 86400" in session.error
    assert session.choice.roles["illness"] == "protect"
    assert session.choice.bins["age"] == "10"
    assert session.choice.time_limit == "30"


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
