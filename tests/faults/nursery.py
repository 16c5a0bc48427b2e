"""Starts command lines as processes of their own, with everything imported already, so that they can be killed often.

Reads one request a line on standard input, a JSON object, and answers in lines of JSON on standard output:

``argv``       arguments of the command line
``folder``     its working folder
``stdin``      file for its standard input (default: nothing to read)
``stdout``, ``stderr``  files that get what it prints
``crash_at``   kill -9 the process right before its n-th call to the system that changes a name or opens a file to
               write (1 is the first); null: never
``signal``, ``after``  send the process this signal after so many seconds; null: never
``when``       count these seconds from the moment when this file has content (and not from the start)
``limit``      largest size in bytes of a file that the process may write
``look``       a folder whose files to list in the answer, when the process has ended

It answers ``{"status": .., "calls": .., "seconds": .., "files": ..}`` when the process has ended: the exit code, or
minus the signal that ended it.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import pkgutil
import resource
import signal
import sqlite3
import sys
import time

CHANGES = frozenset(
    {
        "os.rename",
        "os.remove",
        "os.link",
        "os.mkdir",
        "os.rmdir",
        "os.truncate",
        "os.chmod",
        "fcntl.flock",
    }
)
POLL = 0.0005
"""Seconds."""

WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC


PRELOADED = (
    "cryptography.hazmat.primitives.ciphers",
    "typer._adapters",
    "pyarrow.csv",
    "pyarrow.parquet",
    "mechdesign.channel.channel",
    "mechdesign.channel.file",
    "mechdesign.cli.apply",
    "mechdesign.cli.console",
    "mechdesign.cli.mechanism",
    "mechdesign.cli.released",
    "mechdesign.cli.first_options",
    "mechdesign.report.wording",
    "mechdesign.report.plain_values",
)


def preload() -> None:
    """Import what a command imports, and run nothing of it, because threads do not survive a fork."""
    import mechdesign.cli.application
    import mechdesign.formats
    import mechdesign.frames
    import mechdesign.jobs
    import mechdesign.jobs.side_files
    import mechdesign.leaks
    from tests.ready_commands import finish_options

    inside = [
        f"{package.__name__}.{module.name}"
        for package in (
            mechdesign.formats,
            mechdesign.frames,
            mechdesign.jobs,
            mechdesign.leaks,
        )
        for module in pkgutil.iter_modules(package.__path__)
    ]
    for name in (*PRELOADED, *inside):
        with contextlib.suppress(ModuleNotFoundError):  # of extras
            importlib.import_module(name)
    # What a process makes once, and forked ones need not make again.
    for command in ("apply", "run"):
        finish_options(mechdesign.cli.application.application(command))
    mechdesign.jobs.side_files.template()


def main() -> None:
    sys.dont_write_bytecode = True  # it would count as a change of files
    preload()
    gc.freeze()  # else every process copies what the collector of garbage touches
    for line in sys.stdin:
        request = json.loads(line)
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(reading)
            child(request, writing)
        os.close(writing)
        start = time.monotonic()
        if request.get("signal") is not None:
            if request.get("when") is not None:
                wait_for(request["when"], pid)
            time.sleep(request["after"])
            os.kill(
                pid, request["signal"]
            )  # still ours if it has ended: nobody has waited for it
        _, status = os.waitpid(pid, 0)
        seconds = time.monotonic() - start
        with open(reading, "rb") as stream:
            calls = len(stream.read())
        answer = {
            "status": os.waitstatus_to_exitcode(status),
            "calls": calls,
            "seconds": seconds,
        }
        answer["files"] = (
            sorted(os.listdir(request["look"])) if request.get("look") else []
        )
        print(json.dumps(answer), flush=True)


def wait_for(path: str, pid: int) -> None:
    """Return when the file has content, or the process has ended (it can still be waited for then)."""
    while not os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
        with contextlib.suppress(FileNotFoundError):
            if os.stat(path).st_size:
                return
        time.sleep(POLL)


def child(request: dict, told: int) -> None:
    code = 70
    try:
        os.chdir(request["folder"])
        # Each folder has a ledger of its own, whose place must not be relative.
        os.environ["XDG_DATA_HOME"] = os.path.abspath(os.environ["XDG_DATA_HOME"])
        for number, name, flags in (
            (0, request.get("stdin") or os.devnull, os.O_RDONLY),
            (1, request["stdout"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
            (2, request["stderr"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
        ):
            os.dup2(os.open(name, flags, 0o600), number)
        sys.stdin = open(0, closefd=False)  # noqa: SIM115 (for the life of the process)
        if request.get("limit") is not None:
            resource.setrlimit(
                resource.RLIMIT_FSIZE, (request["limit"], request["limit"])
            )
        count(request.get("crash_at"), told)
        code = mechdesign_main(request["argv"])
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


def mechdesign_main(argv: list[str]) -> int:
    from mechdesign.cli import main as command_line

    return command_line(argv)


def count(crash_at: int | None, told: int) -> None:
    """Count what changes files, one byte in the pipe `told` for each, and end with a bang at number `crash_at`."""
    calls = 0

    def step() -> None:
        nonlocal calls
        calls += 1
        os.write(told, b".")
        if calls == crash_at:
            os.kill(os.getpid(), signal.SIGKILL)

    def hook(event: str, arguments: tuple) -> None:
        if event in CHANGES or (event == "open" and (arguments[2] or 0) & WRITES):
            step()

    class Connection(sqlite3.Connection):
        def execute(self, statement: str, *values: object) -> sqlite3.Cursor:
            if not statement.startswith("SELECT"):
                step()
            return super().execute(statement, *values)

    sys.addaudithook(hook)
    connect = sqlite3.connect
    sqlite3.connect = lambda *given, **named: connect(
        *given, factory=Connection, **named
    )


if __name__ == "__main__":
    main()
