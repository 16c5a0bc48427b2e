"""The server: token, headers, upload, the whole walk over HTTP, cancel, and what it leaves behind."""

from __future__ import annotations

import json
import os
import re
import socket
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

import pytest

import mechdesign as md
from mechdesign.app import server as server_module
from mechdesign.app.server import HOST, LocalServer
from mechdesign.app.session import TASKS, Session
from mechdesign.core.errors import InputError
from tests.mechdesign.app.tasks import broken, endless

FORM = {
    "role-0": "protect",
    "role-1": "release",
    "factor": "2",
    "missing": "refuse",
    "objective": "information",
    "promise": "total",
    "level": "",
    "time_limit": "30",
}


def get(address):
    with urllib.request.urlopen(address) as answer:
        return answer.read().decode()


def post(address, content=b""):
    with urllib.request.urlopen(address, data=content) as answer:
        return answer.read().decode()


def act(address, action, **changes):
    form = {**FORM, "action": action, **changes}
    return post(address + "act", urllib.parse.urlencode(form).encode())


def wait(address, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        state = json.loads(get(address + "progress"))
        if not state["running"]:
            return state
        time.sleep(0.05)
    raise AssertionError("the task did not end")


def refusal_of(request):
    with pytest.raises(urllib.error.HTTPError) as refusal:
        urllib.request.urlopen(request)
    with refusal.value as answer:
        return answer.code, answer.read().decode()


def test_every_address_without_the_token_is_refused(served):
    _, address = served
    base = address.split("/")
    paths = ("", "/wrong/", "/assets/app.css", "/files/channel.json", "/%C3%A9/")
    for path in (*paths, address[:-2].partition(base[2])[2] + "/"):
        for content in (None, b"x"):
            request = urllib.request.Request(f"http://{base[2]}{path}", data=content)
            code, text = refusal_of(request)
            assert code == 403
            assert base[3] not in text


def test_another_host_name_is_refused(served):
    """A page of another site may give its own name this address; the browser then tells that name."""
    _, address = served
    request = urllib.request.Request(address, headers={"Host": "evil.example"})
    assert refusal_of(request)[0] == 403


def test_tokens_differ():
    first = LocalServer(Session())
    second = LocalServer(Session())
    tokens = {server.address.split("/")[3] for server in (first, second)}
    for server in (first, second):
        server._socket.close()
    assert len(tokens) == 2
    assert min(map(len, tokens)) >= 32


def test_it_listens_on_the_loopback_alone(served):
    _, address = served
    parts = urllib.parse.urlsplit(address)
    assert parts.hostname == HOST == "127.0.0.1"
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.2", parts.port), timeout=2)


def test_a_used_port_is_refused(served):
    _, address = served
    port = urllib.parse.urlsplit(address).port
    with pytest.raises(InputError, match=f"port {port} of 127.0.0.1 cannot be used"):
        LocalServer(Session(), port=port)


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_forms_of_other_pages_are_refused(served, people, site):
    """Even with the token; a link is no form."""
    session, address = served
    headers = {"Sec-Fetch-Site": site}
    request = urllib.request.Request(
        address + "upload?name=a.csv", data=people.read_bytes(), headers=headers
    )
    assert refusal_of(request)[0] == 403
    assert session.table is None
    urllib.request.urlopen(urllib.request.Request(address, headers=headers)).close()


def test_headers_keep_the_page_to_itself(served):
    _, address = served
    with urllib.request.urlopen(address) as answer:
        headers = answer.headers
    assert headers["Cache-Control"] == "no-store"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert "http" not in headers["Content-Security-Policy"]


def test_the_walk(served, people, tmp_path, monkeypatch, capfd):
    """Upload, bins, design, download; nothing is written or logged."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    monkeypatch.setenv("TMPDIR", str(temporary))
    before = sorted(os.listdir(tmp_path))
    _, address = served
    assert post(address + "upload?name=people.csv", people.read_bytes()) == "roles"
    page = get(address)
    assert "600 records, 5 columns" in page
    act(address, "bins", **{"bins-3": "quantiles:4"})
    assert "Records in each bin of age" in get(address)
    act(address, "design")
    assert wait(address)["place"] == "result"
    page = get(address)
    for words in (
        "What is promised",
        "For the population behind the records",
        "no channel with this promise",
    ):
        assert words in page
    assert "Verified in exact arithmetic" in page
    path = tmp_path / "downloaded.json"
    path.write_text(get(address + "files/channel.json"))
    channel = md.Channel.load(path)
    assert md.audit(channel, channel.joint, md.LIP(0.6931471805599454)).satisfied
    assert "<html" in get(address + "files/report.html")
    public = get(address + "files/public-report.html")
    assert "<html" in public
    path.write_text(get(address + "files/public-channel.json"))
    assert md.Channel.load(path).joint is None
    path.unlink()
    assert refusal_of(address + "files/other.json")[0] == 404
    post(address + "forget")
    assert "people.csv" not in get(address)
    assert refusal_of(address + "files/channel.json")[0] == 404
    assert sorted(os.listdir(tmp_path)) == before
    assert list(temporary.iterdir()) == []
    assert capfd.readouterr() == ("", "")


@pytest.mark.slow
def test_assess(served, people):
    _, address = served
    post(address + "upload?name=people.csv", people.read_bytes())
    act(address, "assess")
    assert wait(address)["place"] == "roles"
    assert "of the protected information" in get(address)


@pytest.mark.slow
def test_rows(served, people):
    _, address = served
    post(address + "upload?name=people.csv", people.read_bytes())
    act(address, "design", **{"role-2": "release", "objective": "truth"})
    assert wait(address)["place"] == "result"
    page = get(address)
    assert "Expected share of unchanged cells of each column" in page
    assert "What is promised" in page
    assert "What an analyst reads" in page
    assert "smallest lift" in page
    assert "<html" in get(address + "files/report.html")
    public = get(address + "files/public-report.html")
    assert "Not shown in this version" in public
    assert "Do not publish" not in public


@pytest.mark.slow
def test_another_choice_drops_the_design(served, people):
    """No promise stands beside a choice that it does not belong to."""
    _, address = served
    post(address + "upload?name=people.csv", people.read_bytes())
    act(address, "design")
    wait(address)
    assert "Verified in exact arithmetic" in get(address)
    act(address, "assess", factor="3")
    wait(address)
    assert "Verified in exact arithmetic" not in get(address)


def alert_of(address):
    """The message of the page."""
    _, _, alert = get(address).partition('role="alert" tabindex="-1">')
    return alert.partition("</p>")[0]


def test_a_mistake_is_one_sentence_on_the_page(served, people, quick_work):
    _, address = served
    post(address + "upload?name=people.csv", people.read_bytes())
    mistakes = (
        ("design", {"role-0": "leave out"}, "No column is protected"),
        ("design", {"role-1": "leave out"}, "No column is released"),
        ("design", {"role-1": "publish"}, "none of leave out"),
        ("design", {"factor": "x"}, "The factor must be"),
        ("delete", {}, "This button is not known"),
        ("bins", {"bins-1": "3"}, "job"),
        # Only the search itself notices this one.
        (
            "design",
            {"role-1": "leave out", "role-4": "release"},
            "has 12 empty cells: choose in step 2",
        ),
        (
            "design",
            {"role-0": "leave out", "role-4": "protect", "missing": "drop"},
            "the sensitive column &#39;note&#39; has a single symbol",
        ),
    )
    for action, changes, message in mistakes:
        act(address, action, **changes)
        assert wait(address)["place"] == "error"
        alert = alert_of(address)
        assert message in alert
        assert "Internal error" not in alert


def test_an_unreadable_upload_keeps_the_table(served, people):
    session, address = served
    post(address + "upload?name=people.csv", people.read_bytes())
    assert post(address + "upload?name=b.csv", b"a,b\n1\n") == "error"
    assert session.table.path == "people.csv"
    assert "b.csv, line 2: the row has 1 cell(s) where the header has 2" in get(address)


def test_cells_are_escaped(served):
    _, address = served
    content = "<b>x</b>,job\n" + "<script>1</script>,a\nill,b\n" * 30
    post(address + "upload?name=%3Ci%3E.csv", content.encode())
    page = get(address)
    assert "<script>1" not in page
    assert "<b>x" not in page
    assert "<i>" not in page
    assert "&lt;script&gt;1" in page


def test_cancel_ends_the_process(served, people, monkeypatch):
    from mechdesign.app import session as s

    session, address = served
    post(address + "upload?name=people.csv", people.read_bytes())
    monkeypatch.setitem(s.TASKS, "design", ("Searching", endless))
    act(address, "design")
    process = session.work._process
    state = json.loads(get(address + "progress"))
    assert state["running"]
    assert "Cancel</button>" in get(address)
    act(address, "assess")
    assert session.work is not None
    post(address + "cancel")
    process.join(10)
    assert not process.is_alive()
    assert "Cancelled." in alert_of(address)
    assert session.work is None


def test_the_end_of_the_page_ends_its_search(people):
    from mechdesign.app.choice import Choice
    from mechdesign.app.memory_table import Work, read_path

    session = Session()
    session.open_path(str(people))
    session.work = Work("Searching", endless, read_path(str(people)), Choice())
    process = session.work._process
    session.forget()
    process.join(10)
    assert not process.is_alive()
    assert session.table is None


def test_an_error_in_a_search_is_not_printed(people, capfd):
    from mechdesign.app.choice import Choice
    from mechdesign.app.memory_table import Work, read_path

    work = Work("Searching", broken, read_path(str(people)), Choice())
    work.wait(60)
    assert work.refusal == (
        "Internal error (KeyError in tasks.py, line 17). Please report it."
    )
    assert capfd.readouterr() == ("", "")


@pytest.mark.slow
def test_a_column_shows_what_is_released_and_what_changes_most(served, people):
    session, address = served
    post(address + "upload?name=people.csv", people.read_bytes())
    act(address, "design")
    wait(address)
    page = get(address)
    # The sections of the report, word for word.
    report = get(address + "files/report.html")
    for title in ("What is promised", "What is kept", "Codebook"):
        assert f"<summary>{title}</summary>" in page
        assert f">{title}</h2>" in report
    for job in ("clerk", "cook", "nurse"):
        assert f'<th scope="row">{job}</th>' in page
    caption = "Probability of every value of illness, before and after a released value is seen"
    assert caption in page
    assert caption in report
    assert session.designed.sections in page
    # The page has the very curve of the report.
    (curve,) = re.findall(r'<svg class="chart".*?</svg>', page, re.DOTALL)
    assert curve in report
    assert "Trade-off over alip" in page


@pytest.mark.slow
def test_a_refusal_of_rows_speaks_of_roles(served, people):
    """Options of the command line and arguments of Python are not on the page."""
    content = people.read_text().replace("ill,clerk,north", "ill,clerk,far")
    _, address = served
    post(address + "upload?name=people.csv", content.encode())
    act(address, "design", **{"role-2": "give"})
    assert wait(address)["place"] == "error"
    alert = alert_of(address)
    assert "The given columns alone break the promise" in alert
    assert "Give them the role" in alert
    assert "--" not in alert
    assert "=" not in alert.partition("town=far")[2]


BOXES = {"role-2": "release", "level": "0.9", "factor": "5", "time_limit": "7"}


def test_rare_values_have_a_picture(served, people):
    _, address = served
    post(address + "upload?name=people.csv", people.read_bytes())
    act(address, "bins", level="0.9", merge_rare="150")
    page = get(address)
    assert "Values of job as they are merged" in page
    assert "clerk (in fewer than 150 records)" in page
    assert 'class="rare"' in page
    act(address, "bins", merge_rare="150")
    assert "choose a population" in alert_of(address)


@pytest.mark.slow
def test_rows_for_the_population(served, people, tmp_path):
    _, address = served
    post(address + "upload?name=people.csv", people.read_bytes())
    act(address, "design", **BOXES)
    assert wait(address)["place"] == "result"
    page = get(address)
    assert "with 90 % confidence. Verified in exact arithmetic" in page
    assert "The boxes, and the records of the proof in each of them" in page
    path = tmp_path / "channel.json"
    path.write_text(get(address + "files/channel.json"))
    channel = md.load(path)
    assert md.audit(channel).satisfied
    assert channel.claims.level == 0.9
    assert "No curve: at every budget other boxes would be learned." in page
    boxes = re.findall(r'<th scope="row">box \d+:', page)
    assert len(boxes) == channel.coder.size


def place_and_error(session):
    return session.place, session.error


def test_a_damaged_parquet_file_is_one_sentence(served, people):
    import pandas as pd

    session, address = served
    pd.read_csv(people).to_parquet(people.with_suffix(".parquet"))
    whole = people.with_suffix(".parquet").read_bytes()
    for content in (
        whole[: len(whole) // 2],
        whole[:-20] + b"\0" * 20,
        b"PAR1" + b"x" * 99,
    ):
        assert post(address + "upload?name=a.parquet", content) == "error"
        assert "a.parquet cannot be read as Parquet" in session.error


def test_a_form_that_is_not_utf_8(served, people):
    _, address = served
    post(address + "upload?name=people.csv", people.read_bytes())
    for content in (b"factor=\xff", b"factor=%ff"):
        request = urllib.request.Request(address + "act", data=content)
        assert refusal_of(request) == (400, "The form is not UTF-8.\n")


@pytest.mark.parametrize(
    ("field", "title"),
    [
        ("factor", "Factor"),
        ("level", "Holds for"),
        ("merge_rare", "Rare values"),
        ("time_limit", "Seconds"),
        ("bins-3", "Bins of age"),
    ],
)
@pytest.mark.parametrize(
    "number", ["1" * 6_000, "1." + "0" * 6_000, "0." + "1" * 6_000]
)
def test_a_number_of_thousands_of_digits(served, people, field, title, number):
    session, address = served
    post(address + "upload?name=people.csv", people.read_bytes())
    act(address, "design", **{field: number})
    assert place_and_error(session) == (
        "error",
        f"{title}: a number has more than 60 digits: write a shorter one",
    )
    # The field is as it was, and everything else is what was sent.
    assert session.choice.roles["illness"] == "protect"
    assert session.choice.factor == "2"


def test_an_upload_of_another_window_does_not_end_a_search(served, people, monkeypatch):
    session, address = served
    post(address + "upload?name=people.csv", people.read_bytes())
    monkeypatch.setitem(TASKS, "design", ("Designing", endless))
    act(address, "design")
    work = session.work
    assert post(address + "upload?name=other.csv", people.read_bytes()) == "error"
    assert session.error == "Something is running: wait for it, or cancel it."
    assert session.work is work
    assert session.running
    post(address + "cancel")
    assert post(address + "upload?name=other.csv", people.read_bytes()) == "roles"


def test_browsers_that_hang_up_print_nothing(served, capfd):
    _, address = served
    _, _, place, token, _ = address.split("/")
    host, port = place.split(":")
    for path in ("upload?name=a.csv", "act"):
        for _ in range(5):
            with socket.create_connection((host, int(port))) as browser:
                head = f"POST /{token}/{path} HTTP/1.1\r\nHost: {place}\r\n"
                browser.sendall(f"{head}Content-Length: 100000\r\n\r\nabc".encode())
    time.sleep(0.5)
    assert get(address)
    captured = capfd.readouterr()
    assert captured.err == ""


def test_a_file_that_is_too_large_is_named_with_what_reads_it(served, monkeypatch):
    _, address = served
    monkeypatch.setattr(server_module, "LARGEST_UPLOAD", 1000)
    code, text = refusal_of(
        urllib.request.Request(address + "upload?name=big.csv", data=b"a,b\n" * 1000)
    )
    assert code == 413
    assert text.startswith("big.csv is larger than 1 GiB")
    assert "mechdesign design" in text
    # A browser is told beforehand: it does not hear a server that stops reading.
    assert 'data-largest="1000" data-too-large="is larger than 1 GiB' in get(address)


def test_a_double_click_leaves_no_remark_behind(served, people, quick_work):
    session, address = served
    post(address + "upload?name=people.csv", people.read_bytes())
    act(address, "design")
    act(address, "design")
    assert alert_of(address) == "Something is running: wait for it, or cancel it."
    assert wait(address) == {"running": False, "place": "result"}
    assert session.designed is not None
    assert 'role="alert"' not in get(address)
