"""Data at URLs: what is read and written there, when it can be seen, and every refusal."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mechdesign.core.errors import InputError
from mechdesign.core.files import is_url, local
from mechdesign.formats import urls
from mechdesign.formats.urls import Remote, place_of
from mechdesign.jobs.stopping import CutOff, stoppable
from mechdesign.jobs.target import Target

fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed")

SEED = ("--insecure-seed", "1")
PEOPLE = b"id,job,town,note\n1,clerk,N,a\n2,smith,S,\n3,baker,N,c\n4,weaver,S,d\n"


@pytest.fixture
def store(folder):
    """An empty memory store with people.csv, which is in the folder, too."""
    memory = fsspec.filesystem("memory")
    memory.store.clear()
    memory.pseudo_dirs[:] = [""]
    memory.pipe("/in/people.csv", PEOPLE)
    (folder / "people.csv").write_bytes(PEOPLE)
    yield memory
    memory.store.clear()


@pytest.mark.parametrize(
    "how",
    [SEED, ("--ledger", "l.db"), ("--ledger", "l.db", "--identity", "id", "--shuffle")],
)
def test_the_bytes_are_those_of_files(store, channel, folder, run, how):
    source = "memory://in/people.csv"
    assert (
        run(
            "apply", channel, source, "memory://out/r.csv", *how, "--manifest", "m.json"
        ).code
        == 0
    )
    done = run("apply", channel, "people.csv", "r.csv", *how)
    assert done.code == 0, done.err
    assert store.cat("/out/r.csv") == (folder / "r.csv").read_bytes()
    assert (folder / "m.json").read_bytes() == (
        folder / "r.csv.manifest.json"
    ).read_bytes()
    # Nothing else is published or left: manifest, ledger and key are local.
    assert store.find("/") == ["/in/people.csv", "/out/r.csv"]
    assert not [name for name in os.listdir() if name.startswith(("memory", "."))]


def test_what_is_packed_or_converted_is_so_at_a_url(store, channel, folder, run):
    assert run("apply", channel, "people.csv", "memory://o/r.csv.gz", *SEED).code == 0
    assert (
        run(
            "apply",
            channel,
            "memory://in/people.csv",
            "memory://o/r.parquet",
            "--format",
            "parquet",
            *SEED,
        ).code
        == 0
    )
    assert run("apply", channel, "memory://o/r.parquet", "x.xlsx", *SEED).code == 2
    assert store.cat("/o/r.csv.gz")[:2] == b"\x1f\x8b"
    assert store.cat("/o/r.parquet")[:4] == b"PAR1"
    refused = run("apply", channel, "people.csv", "memory://o/r.xlsx", *SEED)
    assert refused.code == 2
    assert "memory://o/r.xlsx: the output is a CSV file" in refused.err


def test_the_other_commands_read_urls(store, channel, run):
    out = "memory://o/r.csv"
    assert (
        run(
            "apply", channel, "memory://in/people.csv", out, *SEED, "--keep", "all"
        ).code
        == 0
    )
    checked = run(
        "check", out, "--channel", channel, "--original", "memory://in/people.csv"
    )
    assert checked.code == 0, checked.err
    assert checked.out.startswith(f"{out} looks like")
    assert run("estimate", out, "--channel", channel).code == 0
    assert run("inspect", "memory://in/people.csv", "--channel", channel).code == 0
    store.pipe("/in/records.csv", Path("records.csv").read_bytes())
    how = ("--sensitive", "group", "--useful", "job", "--epsilon", "2", "--json")
    there, here = (
        run("design", at, *how).record
        for at in ("memory://in/records.csv", "records.csv")
    )
    assert there["nmi"] == here["nmi"]


def test_a_job_at_urls_is_repeated(store, channel, folder, run):
    job = (
        "apply",
        channel,
        "memory://in/people.csv",
        "memory://o/r.csv",
        "--ledger",
        "l.db",
        "--manifest",
        "m.json",
    )
    assert run(*job).code == 0
    first = store.cat("/o/r.csv")
    again = run(*job)
    assert again.code == 0
    assert "complete already" in again.out
    # Killed after the object was there and before its manifest: done again, the same bytes for the same bytes.
    (folder / "m.json").unlink()
    assert run(*job).code == 0
    assert (folder / "m.json").exists()
    # Another content is never replaced unasked.
    store.pipe("/o/r.csv", b"other")
    refused = run(*job)
    assert refused.code == 2
    assert "memory://o/r.csv exists; choose another name" in refused.err
    assert store.cat("/o/r.csv") == b"other"
    assert run(*job, "--force").code == 0
    assert store.cat("/o/r.csv") == first
    # The ledger knows the data, wherever they are: a sorted copy is not drawn a second time.
    head, *rows = PEOPLE.splitlines(keepends=True)
    store.pipe("/in/sorted.csv", head + b"".join(reversed(rows)))
    refused = run(
        "apply",
        channel,
        "memory://in/sorted.csv",
        "memory://o/s.csv",
        "--ledger",
        "l.db",
    )
    assert refused.code == 2
    assert (
        "have been released through this channel before (to memory:///o/r.csv"
        in refused.err
    )


def test_a_job_file_names_urls(store, channel, folder, run):
    job = f'channel = "{channel}"\nledger = "l.db"\n[[apply]]\nin = "memory://in/people.csv"\nout = "memory://o/r.csv"\n'
    (folder / "job.toml").write_text(job)
    for told in ("written to", "complete already"):
        done = run("run", "job.toml")
        assert done.code == 0, done.err
        assert told in done.out
    assert store.exists("/o/r.csv")


def broken(error):
    def copy(source, sink, size):
        sink.write(source.read(10))
        raise error

    return copy


@pytest.mark.parametrize(
    "error",
    [OSError("the line is cut"), RuntimeError("the line is cut"), KeyboardInterrupt()],
)
def test_an_upload_that_breaks_off_leaves_nothing_and_is_no_success(
    store, channel, folder, run, monkeypatch, error
):
    job = (
        "apply",
        channel,
        "people.csv",
        "memory://o/r.csv",
        "--ledger",
        "l.db",
        "--manifest",
        "m.json",
    )
    with monkeypatch.context() as patch:
        patch.setattr(urls.shutil, "copyfileobj", broken(error))
        done = run(*job)
    if isinstance(error, KeyboardInterrupt):
        assert done.code == 130
        assert (
            "interrupted; memory://o/r.csv is there whole or not at all: start again"
            in done.err
        )
    else:
        assert done.code == 2
        assert "memory://o/r.csv cannot be written: the line is cut" in done.err
    assert store.find("/") == ["/in/people.csv"]
    assert not (folder / "m.json").exists()
    assert run(*job).code == 0
    twin = run("apply", channel, "people.csv", "r.csv", "--ledger", "l.db")
    assert twin.code == 0, twin.err
    assert store.cat("/o/r.csv") == (folder / "r.csv").read_bytes()


def test_a_store_that_keeps_less_than_it_was_given_is_no_success(
    store, channel, run, monkeypatch
):
    def short(source, sink, size):
        sink.write(source.read()[:-1])

    monkeypatch.setattr(urls.shutil, "copyfileobj", short)
    done = run("apply", channel, "people.csv", "memory://o/r.csv", *SEED)
    assert done.code == 2
    assert "memory://o/r.csv cannot be written: the store has" in done.err


def test_an_object_that_comes_meanwhile_is_not_replaced(store, tmp_path):
    with Target("memory://o/x") as target:
        target.part.write_bytes(b"ours")
        store.pipe("/o/x", b"theirs")
        with pytest.raises(InputError, match="memory://o/x exists"):
            target.commit()
    content = tmp_path / "content"
    content.write_bytes(b"ours")
    with pytest.raises(InputError, match="memory://o/x exists"):
        Remote("memory://o/x").publish(content, force=False)
    assert store.cat("/o/x") == b"theirs"


def test_a_file_that_changes_while_it_is_read_is_refused(store):
    blocks = Remote("memory://in/people.csv").blocks()
    next(blocks)
    store.pipe("/in/people.csv", PEOPLE * 2)
    with pytest.raises(InputError, match=r"people\.csv changed while it was read"):
        list(blocks)


def test_plain_paths_may_be_written_as_urls(store, channel, folder, run):
    out = f"file://{folder}/r.csv"
    assert (
        run(
            "apply", channel, f"file://{folder}/people.csv", out, *SEED, "--keep", "all"
        ).code
        == 0
    )
    assert (folder / "r.csv").exists()
    assert (folder / "r.csv.manifest.json").exists()
    assert (
        run(
            "check",
            out,
            "--channel",
            channel,
            "--original",
            f"local://{folder}/people.csv",
        ).code
        == 0
    )
    (folder / "parts").mkdir()
    (folder / "people.csv").rename(folder / "parts" / "p.csv")
    assert (
        run(
            "apply",
            channel,
            f"file://{folder}/parts",
            f"file://{folder}/outs",
            "--keep",
            "all",
        ).code
        == 0
    )
    assert (folder / "outs" / "p.csv").exists()
    assert place_of(f"file://{folder}/r.csv") == str(folder / "r.csv")
    assert local("file:///a%20b") == "/a%20b"
    assert not is_url("file:///a")


@pytest.mark.parametrize(
    ("source", "target", "said"),
    [
        ("memory://in/no.csv", "o.csv", "memory://in/no.csv: there is no such file"),
        (
            "memory://in/*.csv",
            "o.csv",
            "there is no such file; folders and globs at URLs are not looked into",
        ),
        (
            "memory://in",
            "o.csv",
            "memory://in is a folder; of URLs, single files are read and written: name one",
        ),
        ("people.csv", "memory://in", "memory://in is a folder"),
        (
            "people.csv",
            "memory://o/",
            "memory://o/ is a folder; give the name of a file",
        ),
        (
            "nowhere://a/b.csv",
            "o.csv",
            "nowhere://a/b.csv is not a URL that can be reached: Protocol not known",
        ),
        (
            "people.csv",
            "nowhere://a/b.csv",
            "nowhere://a/b.csv is not a URL that can be reached",
        ),
        (
            "people.csv",
            "data://a/b.csv",
            "data:// is read only, for half a file could be seen there; write to",
        ),
        (
            "ftp://me:secret@a/b.csv",
            "o.csv",
            "the URL holds a password, which would be kept where the URL is",
        ),
        (
            "https://a/b.csv?X-Amz-Expires=9&X-Amz-Signature=secret",
            "o.csv",
            "the URL holds a signature, token or key, which would be kept",
        ),
        (
            "people.csv",
            "https://a/b.csv?sp=w&sig=secret",
            "the URL holds a signature, token or key, which would be kept",
        ),
        ("memory://in/people.csv", "memory:///in//people.csv", "exists"),
        (
            "memory://in/people.csv",
            "memory:///in/people.csv",
            "memory:///in/people.csv is the input file itself",
        ),
        ("parts", "memory://o", "memory://o: of URLs, single files are written"),
    ],
)
def test_refusals(store, channel, folder, run, source, target, said):
    (folder / "parts").mkdir()
    (folder / "parts" / "p.csv").write_bytes(PEOPLE)
    if said == "exists":
        store.pipe("/in//people.csv", b"x")
    done = run("apply", channel, source, target)
    assert done.code == 2
    assert said in done.err
    assert "secret" not in done.err
    assert done.err.count("\n") == 1
    assert not (folder / "o.csv").exists()


def test_files_beside_the_data_stay_local(store, channel, run):
    done = run(
        "apply",
        channel,
        "people.csv",
        "memory://o/r.csv",
        *SEED,
        "--manifest",
        "memory://o/m.json",
    )
    assert done.code == 2
    assert (
        "memory://o/m.json: only data are written to a URL; name a local file"
        in done.err
    )
    assert store.find("/o") == []


def test_a_rehearsal_publishes_nothing(store, channel, run):
    assert (
        run("apply", channel, "people.csv", "memory://o/r.csv", "--dry-run").code == 0
    )
    assert store.find("/o") == []


def test_without_fsspec_or_a_client_the_extra_is_named(channel, run, monkeypatch):
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    done = run("apply", channel, "memory://in/people.csv", "o.csv")
    assert done.code == 2
    assert "URLs need more: pip install 'mechdesign[urls]'" in done.err


def test_a_mechanism_file_releases_to_a_url(store, folder, run):
    (folder / "n.csv").write_text(
        "v\n" + "\n".join(str(k % 100) for k in range(200)) + "\n"
    )
    how = ("--column", "v", "--range", "0,100", "--epsilon", "2")
    done = run("quantize", "n.csv", "memory://o/q.csv", *how, "--mechanism", "q.json")
    assert done.code == 0, done.err
    assert run("apply", "q.json", "n.csv", "memory://o/again.csv").code == 0
    assert store.cat("/o/q.csv") == store.cat("/o/again.csv")


def test_a_signal_while_a_url_is_written_says_so(store, tmp_path, monkeypatch):
    def stopped(source, sink, size):
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(urls.shutil, "copyfileobj", stopped)
    side = tmp_path / "side"
    with stoppable(), Target("memory://o/x", sides=[side]) as target:
        target.part.write_bytes(b"all")
        target.part_of_side(side).write_bytes(b"side")
        with pytest.raises(
            CutOff,
            match="stopped by SIGTERM; memory://o/x is there whole or not at all",
        ):
            target.commit()
    assert not store.exists("/o/x")
    assert not [name for name in os.listdir(tmp_path) if "side" in name]


SERVERS = {
    "s3": """
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
server.start()
os.environ["AWS_ENDPOINT_URL"] = "http://%s:%s" % server.get_host_and_port()
""",
    "gs": """
import socket
from gcp_storage_emulator.server import create_server
with socket.create_server(("127.0.0.1", 0)) as free:
    port = free.getsockname()[1]
create_server("127.0.0.1", port, in_memory=True).start()
os.environ["STORAGE_EMULATOR_HOST"] = f"http://127.0.0.1:{port}"
import asyncio
sleep = asyncio.sleep
asyncio.sleep = lambda seconds, *rest: sleep(0, *rest)  # what the emulator does not know is tried six times
""",
}

SERVED = """
scheme = sys.argv[2]
store = fsspec.filesystem(scheme)
store.mkdir("bucket")
from mechdesign.cli import main
from mechdesign.formats import urls
store.put_file("people.csv", "bucket/in/people.csv")
bucket = f"{scheme}://bucket"
job = ["apply", sys.argv[1], f"{bucket}/in/people.csv", f"{bucket}/out/r.csv", "--ledger", "l.db"]
assert main(job) == 0
assert main([*job[:2], "people.csv", "r.csv", *job[4:]]) == 0
assert store.cat("bucket/out/r.csv") == Path("r.csv").read_bytes()
assert main(job) == 0
assert main(["check", job[3], "--channel", job[1], "--original", job[2]]) == 0
assert main([*job[:3], f"{scheme}://nobucket/r.csv"]) == 2
# Written in parts, and broken off in the last one: what was there stays, and no part is left.
big, old = Path("big"), store.cat("bucket/out/r.csv")
big.write_bytes(bytes(120_000_000))
remote = urls.Remote(f"{bucket}/out/r.csv")

def broken(source, sink, size):
    for _ in range(110):
        sink.write(source.read(size))
    raise OSError("cut")

copy, urls.shutil.copyfileobj = urls.shutil.copyfileobj, broken
for force in (True, False):
    try:
        (remote if force else urls.Remote(f"{bucket}/new")).publish(big, force=force)
    except urls.InputError as error:
        # The emulator of gs:// knows no way to give an upload up.
        assert "cannot be written: " + ("cut" if scheme == "s3" else ", 501") in str(error), error
    else:
        raise AssertionError
urls.shutil.copyfileobj = copy
assert store.cat("bucket/out/r.csv") == old and not store.exists("bucket/new")
if scheme == "s3":  # the emulator of gs:// leaves conditions out of account
    assert not store.call_s3("list_multipart_uploads", Bucket="bucket").get("Uploads")
    try:
        remote.publish(big, force=False)  # as by one who looked before the object came
    except urls.InputError as error:
        assert "exists; choose another name" in str(error), error
    else:
        raise AssertionError
remote.publish(big, force=True)
assert remote.holds(hashlib.sha256(big.read_bytes()).hexdigest())
print("all is well", flush=True)
os._exit(0)
"""


@pytest.mark.slow
@pytest.mark.parametrize("scheme", SERVERS)
def test_a_server_of_a_store(channel, folder, scheme):
    for name in {
        "s3": ("moto.server", "s3fs"),
        "gs": ("gcp_storage_emulator.server", "gcsfs"),
    }[scheme]:
        pytest.importorskip(name, reason=f"{name} is not installed")
    (folder / "people.csv").write_bytes(PEOPLE)
    keys = {
        "AWS_ACCESS_KEY_ID": "x",
        "AWS_SECRET_ACCESS_KEY": "y",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    # The emulator speaks no gRPC, by which the client would ask for the kind of the bucket.
    keys |= {"FSSPEC_GS_TOKEN": "anon", "GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT": "false"}
    begin = "import hashlib, os, sys\nfrom pathlib import Path\nimport fsspec\n"
    command = [
        sys.executable,
        "-c",
        begin + SERVERS[scheme] + SERVED,
        str(channel),
        scheme,
    ]
    done = subprocess.run(
        command, env=os.environ | keys, capture_output=True, text=True, check=False
    )
    assert done.stdout.endswith("all is well\n"), done.stderr
    released = json.loads((folder / "r.csv.manifest.json").read_text())
    assert released["records"] == 4
