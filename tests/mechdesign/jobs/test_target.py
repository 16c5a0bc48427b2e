from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import mechdesign as md
from mechdesign.core import files as locks
from mechdesign.core.errors import InputError, errors_noting
from mechdesign.core.files import part_file, replacing
from mechdesign.jobs.stopping import CutOff, Stopped, stoppable
from mechdesign.jobs.target import Target

posix = pytest.mark.skipif(
    sys.platform == "win32", reason="POSIX file modes, links and signals"
)


def files(folder: Path) -> dict[str, str]:
    return {p.name: p.read_text() for p in folder.iterdir()}


def write(path: Path, text: str, **options) -> None:
    with Target(path, **options) as target:
        target.part.write_text(text)
        target.commit()


def attempt(path, *steps, **options) -> None:
    """Write "new" to the target and "facts" to its sides, then take the steps."""
    with Target(path, **options) as target:
        target.part.write_text("new")
        for side in options.get("sides", ()):
            target.part_of_side(side).write_text("facts")
        for step in steps:
            step(target)


def fail_with(error: BaseException):
    def step(_target):
        raise error

    return step


def assert_refused(message: str, path, **options) -> None:
    with pytest.raises(InputError, match=message) as caught, Target(path, **options):
        pass
    assert "\n" not in str(caught.value)


def test_a_file_and_what_belongs_to_it(tmp_path):
    out, side, unused = (
        tmp_path / "out.csv",
        tmp_path / "out.json",
        tmp_path / "codes.csv",
    )
    seen = []
    with Target(out, sides=(side, unused)) as target:
        target.part.write_text("data")
        target.part_of_side(side).write_text("facts")
        assert target.seal() == hashlib.sha256(b"data").hexdigest()
        target.commit(
            before=lambda: seen.append(
                sorted(p.name for p in (out, side) if p.exists())
            ),
            after=lambda: seen.append(
                sorted(p.name for p in (out, side) if p.exists())
            ),
        )
    assert seen == [[], ["out.csv", "out.json"]]
    assert files(tmp_path) == {"out.csv": "data", "out.json": "facts"}


def test_the_output_gets_its_name_last_and_all_is_on_disk(tmp_path, monkeypatch):
    steps = []
    fsync, rename = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda fd: (steps.append("fsync"), fsync(fd))[1])
    monkeypatch.setattr(
        os, "replace", lambda a, b: (steps.append(Path(b).name), rename(a, b))[1]
    )
    with Target(tmp_path / "out.csv", sides=(tmp_path / "side",)) as target:
        target.part.write_text("data")
        target.part_of_side(tmp_path / "side").write_text("facts")
        target.commit(
            before=lambda: steps.append("before"), after=lambda: steps.append("after")
        )
    assert steps == [
        "fsync",
        "fsync",
        "before",
        "side",
        "fsync",
        "out.csv",
        "fsync",
        "after",
    ]


@pytest.mark.parametrize(
    "failure", [ValueError("no"), KeyboardInterrupt(), SystemExit(3)]
)
def test_a_failure_leaves_what_was_there(tmp_path, failure):
    (tmp_path / "out.csv").write_text("old")
    with pytest.raises(type(failure)):
        attempt(
            tmp_path / "out.csv",
            fail_with(failure),
            force=True,
            sides=(tmp_path / "s",),
        )
    assert files(tmp_path) == {"out.csv": "old"}


def test_leaving_without_commit_writes_nothing(tmp_path):
    with Target(tmp_path / "out.csv") as target:
        target.part.write_text("new")
    assert files(tmp_path) == {}


def test_a_failing_announcement_gives_no_names(tmp_path):
    def refuses():
        raise InputError("the job cannot be written")

    with pytest.raises(InputError, match="the job cannot be written"):
        attempt(tmp_path / "out.csv", lambda target: target.commit(before=refuses))
    assert files(tmp_path) == {}


def test_a_failure_after_the_end_says_that_the_output_is_complete(tmp_path):
    def refuses():
        raise InputError("the job cannot be written: no space left on device")

    with pytest.raises(
        InputError, match=r"out\.csv is complete, but then: the job cannot be written"
    ):
        attempt(tmp_path / "out.csv", lambda target: target.commit(after=refuses))
    assert files(tmp_path) == {"out.csv": "new"}


def test_what_is_there_is_replaced_only_with_force(tmp_path):
    out, side = tmp_path / "out.csv", tmp_path / "side"
    out.write_text("old")
    assert_refused(r"out\.csv exists; .*force", out)
    write(out, "new", force=True)
    side.write_text("old side")
    assert_refused(
        r"side exists, though .*other\.csv does not: .*force",
        tmp_path / "other.csv",
        sides=(side,),
    )
    assert files(tmp_path) == {"out.csv": "new", "side": "old side"}


def test_sides_that_a_killed_job_left_are_replaced(tmp_path):
    side = tmp_path / "side"
    side.write_text("left over")
    with Target(tmp_path / "out.csv", sides=(side,), leftover=True) as target:
        target.part.write_text("new")
        target.part_of_side(side).write_text("facts")
        target.commit()
    assert files(tmp_path) == {"out.csv": "new", "side": "facts"}


def test_a_target_that_appears_meanwhile_is_not_replaced(tmp_path):
    out = tmp_path / "out.csv"
    with pytest.raises(InputError, match=r"out\.csv exists"):
        attempt(
            out,
            lambda _target: out.write_text("from somebody else"),
            lambda target: target.commit(),
            sides=(tmp_path / "side",),
        )
    assert files(tmp_path) == {"out.csv": "from somebody else"}


def test_inputs_and_sides_that_are_the_output(tmp_path):
    (tmp_path / "in.csv").write_text("in")
    assert_refused(
        "is the input file itself",
        tmp_path / "in.csv",
        force=True,
        sources=(tmp_path / "in.csv",),
    )
    assert_refused(
        "is the input file itself",
        tmp_path / "o",
        force=True,
        sources=(tmp_path / "in.csv",),
        sides=(tmp_path / "in.csv",),
    )
    assert_refused("would be written twice", tmp_path / "o", sides=(tmp_path / "o",))
    (tmp_path / "x").mkdir()
    assert_refused(
        "would be written twice",
        tmp_path / "o",
        sides=(tmp_path / "s", tmp_path / "x" / ".." / "s"),
    )
    (tmp_path / "x").rmdir()
    assert files(tmp_path) == {"in.csv": "in"}


def test_two_jobs_on_one_target(tmp_path):
    out = tmp_path / "out.csv"
    with Target(out) as first:
        first.part.write_text("first")
        assert_refused(r"another job is writing .*out\.csv; wait", out, force=True)
        (tmp_path / "link.csv").symlink_to(out)
        assert_refused("another job is writing", tmp_path / "link.csv", force=True)
        assert first.part.read_text() == "first"
        first.commit()
    assert out.read_text() == "first"
    assert_refused("exists", out)
    write(out, "second", force=True)
    assert out.read_text() == "second"


def test_another_process_has_the_target(tmp_path):
    program = (
        "import sys; from mechdesign.jobs.target import Target\n"
        "with Target(sys.argv[1]) as t:\n"
        "    t.part.write_text('half'); print('has it', flush=True); sys.stdin.read()\n"
    )
    out = tmp_path / "out.csv"
    with subprocess.Popen(
        [sys.executable, "-c", program, out],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdout.readline() == "has it\n"
        assert_refused("another job is writing", out)
        other.kill()
        other.wait()
    assert part_file(out).read_text() == "half"
    with Target(out) as target:
        assert target.part.read_text() == ""
        target.part.write_text("whole")
        target.commit()
    assert files(tmp_path) == {"out.csv": "whole"}


def test_a_lock_on_a_file_that_has_been_renamed_is_no_lock(tmp_path, monkeypatch):
    """Between opening and locking, the first job may have given the temporary file its final name."""
    out = tmp_path / "out.csv"
    real, raced = locks._lock, []

    def late(descriptor):
        if not raced:
            raced.append(True)
            os.replace(part_file(out), out)
        real(descriptor)

    part_file(out).write_text("the first job's")
    monkeypatch.setattr(locks, "_lock", late)
    # force: else it is refused, as it must be, because the target exists by now
    with Target(out, force=True) as target:
        assert out.read_text() == "the first job's"
        target.part.write_text("the second job's")
        assert out.read_text() == "the first job's"
    assert files(tmp_path) == {"out.csv": "the first job's"}


def test_the_target_that_came_while_waiting_for_the_lock_is_refused(
    tmp_path, monkeypatch
):
    out = tmp_path / "out.csv"
    real = locks._lock

    def late(descriptor):
        out.write_text("of another job")
        real(descriptor)

    monkeypatch.setattr(locks, "_lock", late)
    assert_refused(r"out\.csv exists", out)
    assert files(tmp_path) == {"out.csv": "of another job"}


def test_a_folder_that_refuses(tmp_path, monkeypatch):
    def refuses(*_arguments):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("mechdesign.core.files.os.open", refuses)
    assert_refused(
        r"out\.csv cannot be written: permission denied", tmp_path / "out.csv"
    )


def test_a_file_system_without_locks(tmp_path, monkeypatch):
    def unknown(_descriptor):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(locks, "_lock", unknown)
    assert_refused(
        r"cannot be locked \(operation not supported\); choose a folder on a local disk",
        tmp_path / "out.csv",
    )


@posix
def test_permissions(tmp_path):
    before = os.umask(0o027)
    try:
        write(tmp_path / "new.csv", "new", sides=())
    finally:
        os.umask(before)
    assert (tmp_path / "new.csv").stat().st_mode & 0o777 == 0o640
    (tmp_path / "new.csv").chmod(0o604)
    write(tmp_path / "new.csv", "newer", force=True)
    assert (tmp_path / "new.csv").stat().st_mode & 0o777 == 0o604


@posix
def test_who_cannot_read_the_input_cannot_read_the_output(tmp_path):
    """A new file is never more readable than the source; one for the owner alone is 0600 from its first byte on."""
    source, secret = tmp_path / "in.csv", tmp_path / "facts"
    source.write_text("old")
    for mode in (0o600, 0o640, 0o400, 0o644):
        source.chmod(mode)
        out = tmp_path / f"{mode:o}.csv"
        secret.write_text("older")
        secret.chmod(0o644)
        with Target(
            out, sources=[source], sides=[secret], private=[secret], leftover=True
        ) as target:
            assert target.part.stat().st_mode & ~mode & 0o077 == 0
            assert target.part_of_side(secret).stat().st_mode & 0o777 == 0o600
            target.part.write_text("new")
            target.part_of_side(secret).write_text("new")
            target.commit()
        assert out.stat().st_mode & ~mode & 0o077 == 0
        assert secret.stat().st_mode & 0o777 == 0o600


@posix
def test_a_file_system_without_permissions(tmp_path, monkeypatch):
    """FAT and mounted disks of Windows refuse to set them."""

    def refuses(*_arguments):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "chmod", refuses)
    monkeypatch.setattr(os, "fchmod", refuses)
    write(tmp_path / "out.csv", "new")
    write(tmp_path / "out.csv", "newer", force=True)
    with replacing(tmp_path / "c.json", force=False) as temporary:
        temporary.write_text("channel")
    assert files(tmp_path) == {"out.csv": "newer", "c.json": "channel"}
    # What is for its owner alone is not written where others could read it.
    private = tmp_path / "private"
    assert_refused(
        r"2\.csv cannot be written: operation not permitted",
        tmp_path / "2.csv",
        sides=[private],
        private=[private],
    )
    with pytest.raises(InputError, match="key cannot be written: operation not"):
        md.create_key(tmp_path / "key", md.Key.fresh())
    assert len(files(tmp_path)) == 2


@posix
def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "out.csv").symlink_to(tmp_path / "disk" / "real.csv")
    write(tmp_path / "out.csv", "new")
    assert (tmp_path / "out.csv").is_symlink()
    assert files(tmp_path / "disk") == {"real.csv": "new"}


@posix
def test_what_must_not_be_taken_over(tmp_path):
    out = tmp_path / "out.csv"
    precious = tmp_path / "precious"
    precious.write_text("precious")
    part_file(out).symlink_to(precious)
    assert_refused("is not an ordinary file; remove it", out)
    part_file(out).unlink()
    os.link(precious, part_file(out))
    assert_refused("is not an ordinary file; remove it", out)
    part_file(out).unlink()
    os.mkfifo(part_file(out))
    assert_refused("is not an ordinary file; remove it", out)
    part_file(out).unlink()
    part_file(out).mkdir()
    assert_refused("is not an ordinary file; remove it", out)
    part_file(out).rmdir()
    assert files(tmp_path) == {"precious": "precious"}


@posix
def test_the_temporary_file_of_another_user(tmp_path, monkeypatch):
    out = tmp_path / "out.csv"
    part_file(out).write_text("theirs")
    monkeypatch.setattr(os, "geteuid", lambda: out.parent.stat().st_uid + 1)
    assert_refused("belongs to another user; remove it", out)
    assert part_file(out).read_text() == "theirs"


def test_long_names(tmp_path):
    for length in (240, 249, 250, 255):
        write(tmp_path / ("n" * length), "text")
        write(tmp_path / ("é" * (length // 2)), "text", force=True)
    assert part_file(tmp_path / ("n" * 255)) != part_file(tmp_path / ("n" * 254))
    assert all(
        len(name.encode()) <= 255 and not name.startswith(".")
        for name in files(tmp_path)
    )


def test_a_full_disk_may_be_that_of_a_side(tmp_path):
    (tmp_path / "other").mkdir()
    beside, side = tmp_path / "m.json", tmp_path / "other" / "m.json"
    for sides, named in (
        ([beside], r"out\.csv"),
        ([beside, side], r"out\.csv or .*other.m\.json"),
    ):
        with (
            pytest.raises(
                InputError, match=rf"^[^ ]*{named} cannot be written: no space"
            ),
            Target(tmp_path / "out.csv", sides=sides),
        ):
            raise OSError(28, "No space left on device")
    with (
        pytest.raises(
            InputError, match=r"^[^ ]*other.m\.json cannot be written: no space"
        ),
        Target(tmp_path / "out.csv", sides=[beside, side]) as target,
    ):
        raise OSError(28, "No space left on device", str(target.part_of_side(side)))


def test_errors_of_writing_and_others(tmp_path):
    out = tmp_path / "out.csv"
    with (
        pytest.raises(
            InputError, match=r"out\.csv cannot be written: no space left on device"
        ),
        Target(out),
    ):
        raise OSError(28, "No space left on device")
    with (
        pytest.raises(
            InputError, match=r"out\.csv cannot be written: input/output error"
        ),
        Target(out) as target,
    ):
        raise OSError(5, "Input/output error", os.fspath(target.part))
    # An error of reading the input must not be blamed on the output.
    with pytest.raises(OSError, match="Input/output error"), Target(out):
        raise OSError(5, "Input/output error", "in.csv")
    assert_refused("there is no folder", tmp_path / "none" / "out.csv")
    assert files(tmp_path) == {}


def test_a_stop_after_a_first_file_names_it():
    with pytest.raises(Stopped) as caught, errors_noting("c.json is written"):
        raise Stopped(signal.SIGTERM)
    assert str(caught.value) == "stopped by SIGTERM; c.json is written"


@posix
@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_while_writing(tmp_path, signum):
    name = signal.Signals(signum).name
    with (
        pytest.raises(
            Stopped, match=f"^stopped by {name}; nothing was written$"
        ) as caught,
        stoppable(),
    ):
        attempt(tmp_path / "o", lambda _target: signal.raise_signal(signum))
    assert caught.value.exit_code == 128 + signum
    assert files(tmp_path) == {}


@posix
def test_ctrl_c_while_writing(tmp_path):
    with pytest.raises(KeyboardInterrupt), stoppable():
        attempt(tmp_path / "o", lambda _target: signal.raise_signal(signal.SIGINT))
    assert files(tmp_path) == {}


@posix
@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_between_the_names_waits_until_all_have_them(tmp_path, signum):
    out, side = tmp_path / "out", tmp_path / "side"
    with stoppable(), Target(out, sides=(side,)) as target:
        target.part.write_text("data")
        target.part_of_side(side).write_text("facts")
        target.commit(before=lambda: signal.raise_signal(signum))
    assert files(tmp_path) == {"out": "data", "side": "facts"}


@posix
def test_a_signal_after_the_last_name_has_nothing_to_stop(tmp_path):
    with stoppable():
        attempt(tmp_path / "out", lambda target: target.commit())
        signal.raise_signal(signal.SIGTERM)
    assert files(tmp_path) == {"out": "new"}


@posix
def test_a_host_program_gets_its_signal_afterwards(tmp_path):
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            attempt(
                tmp_path / "out",
                lambda target: target.commit(
                    before=lambda: signal.raise_signal(signal.SIGINT)
                ),
            )
    finally:
        signal.signal(signal.SIGINT, previous)
    assert files(tmp_path) == {"out": "new"}


@posix
def test_a_host_program_without_a_handler_ends_afterwards(tmp_path):
    program = (
        "import signal, sys; from mechdesign.jobs.target import Target\n"
        "with Target(sys.argv[1]) as t:\n"
        "    t.part.write_text('data')\n"
        "    t.commit(before=lambda: signal.raise_signal(signal.SIGTERM))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, tmp_path / "out"],
        capture_output=True,
        check=False,
    )
    assert done.returncode == -signal.SIGTERM
    assert files(tmp_path) == {"out": "data"}


@posix
def test_ignored_signals_stay_ignored():
    previous = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with stoppable():
            signal.raise_signal(signal.SIGHUP)
            assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, previous)


def deliver(
    reader: list[str], tmp_path: Path, text: str = "x" * (1 << 20)
) -> subprocess.CompletedProcess:
    program = (
        "import sys; from pathlib import Path\n"
        "from mechdesign.core.errors import InputError\n"
        "from mechdesign.jobs.target import Target\n"
        f"text = {text[:1]!r} * {len(text)}\n"
        "try:\n"
        "    with Target('-', sides=['side']) as t:\n"
        "        t.part.write_text(text); t.part_of_side('side').write_text('facts')\n"
        "        t.commit(after=lambda: Path('after').write_text(''))\n"
        "except InputError as e:\n"
        "    print(e, file=sys.stderr); sys.exit(2)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as writer:
        got = subprocess.run(
            reader, stdin=writer.stdout, capture_output=True, check=False
        )
        writer.stdout.close()
        error = writer.stderr.read().decode()
        writer.wait()
    return subprocess.CompletedProcess(
        writer.args, writer.returncode, got.stdout, error
    )


@posix
def test_standard_output_gets_all_of_it(tmp_path):
    done = deliver(["cat"], tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == b"x" * (1 << 20)
    assert files(tmp_path) == {"side": "facts", "after": ""}


@posix
def test_a_reader_who_leaves_early(tmp_path):
    done = deliver(["head", "-c", "10"], tmp_path)
    assert (done.returncode, done.stdout) == (2, b"x" * 10)
    assert (
        done.stderr
        == "standard output was closed by its reader, who has not got all of the release\n"
    )
    assert not (tmp_path / "after").exists()


@posix
@pytest.mark.parametrize(
    ("signum", "what"),
    [(signal.SIGTERM, "stopped by SIGTERM"), (signal.SIGINT, "interrupted")],
)
def test_a_signal_while_standard_output_is_written(monkeypatch, capfd, signum, what):
    real = os.write

    def slow(descriptor, data):
        signal.raise_signal(signum)
        return real(descriptor, data)

    # Not for the rest of the test: it is what reports a failure.
    with monkeypatch.context() as patch, stoppable(), capfd.disabled():
        patch.setattr(os, "write", slow)
        with pytest.raises(
            CutOff,
            match=f"^{what}; the reader of standard output has got only a part of the release$",
        ) as caught:
            attempt("-", lambda target: target.commit())
    assert caught.value.exit_code == 128 + signum


def test_standard_output_gets_nothing_of_a_failed_job(tmp_path, capfd):
    with pytest.raises(ValueError, match="no"):
        attempt("-", fail_with(ValueError("no")))
    assert capfd.readouterr().out == ""


def test_a_standard_output_that_is_closed(monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    with (
        pytest.raises(
            InputError, match="standard output is closed; open it, or name a file"
        ),
        Target("-"),
    ):
        pass
