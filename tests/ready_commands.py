"""`mechdesign` in processes that have imported it already: a server forks one for each command.

The pages have 150 commands, and half a second of each would be the same imports. The server imports the package
once. In a shell, a small client (ready_client.py) takes the place of `mechdesign`: it hands its arguments, folder,
environment and its three standard files to the server, and ends with the exit code of the forked process. So pipes,
redirections and exit codes of the shell work as always.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import marshal
import os
import pkgutil
import select
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

from tests.ready_client import ONE_BYTE, STANDARD_FILES, Command

ROOT = Path(__file__).parents[1]

STRICTLY = "import warnings; warnings.simplefilter('error')"

AS_SCRIPT = """
import runpy, sys
from pathlib import Path
sys.argv = sys.argv[1:]
sys.path.insert(0, str(Path(sys.argv[0]).parent))
runpy.run_path(sys.argv[0], run_name="__main__")
"""
"""What `python SCRIPT ..` does."""

LATER = (
    "cryptography.hazmat.primitives.ciphers",
    "matplotlib.backends.backend_svg",
    "matplotlib.figure",
    "pandas",
    "pyarrow.parquet",
    "sklearn.ensemble",
    "typer._adapters",
)
"""Modules that commands and scripts import when they run; some are of extras."""

READ_AT_ONCE = 4096
"""Bytes; each signal that a process has ended is one."""

CLIENT = Path(__file__).with_name("ready_client.py")


class ReadyCommands:
    """The server, as those see it who start commands."""

    def __init__(self, address: str) -> None:
        self.address = address

    @property
    def program(self) -> list[str]:
        """The words that stand for `mechdesign` before its arguments."""
        # Without site packages Python starts in some milliseconds.
        return [sys.executable, "-I", "-S", str(CLIENT), self.address]

    @property
    def launcher(self) -> str:
        """The same for a shell."""
        return shlex.join(self.program)

    def run(
        self,
        code: str,
        *arguments: str,
        folder: Path,
        environment: Mapping[str, str],
    ) -> subprocess.CompletedProcess[str]:
        """Run code to its end; every warning is an error for it."""
        with (
            open(os.devnull, "rb") as nothing,
            tempfile.TemporaryFile() as printed,
            tempfile.TemporaryFile() as errors,
        ):
            command = Command(
                self.address,
                f"{STRICTLY}\n{code}",
                [*arguments],
                folder=str(folder),
                environment={**environment},
                files=(nothing.fileno(), printed.fileno(), errors.fileno()),
            )
            status = command.wait()
            texts = []
            for file in (printed, errors):
                file.seek(0)
                texts.append(file.read().decode("utf-8"))
        return subprocess.CompletedProcess([*arguments], status, *texts)

    def run_script(
        self,
        script: Path,
        *arguments: str,
        folder: Path,
        environment: Mapping[str, str],
    ) -> subprocess.CompletedProcess[str]:
        """Run a file with arguments, likewise."""
        return self.run(
            AS_SCRIPT,
            str(script),
            *arguments,
            folder=folder,
            environment=environment,
        )


@contextmanager
def ready_commands() -> Iterator[ReadyCommands]:
    """Start a server; it ends with the block."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        # As `program` sets it before Arrow is imported.
        "ARROW_DEFAULT_MEMORY_POOL": "system",
    }
    with tempfile.TemporaryDirectory() as folder:
        address = str(Path(folder) / "socket")
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(address)
        listening.listen()
        # The socket is open before the server has imported anything: the first client waits.
        server = subprocess.Popen(
            [sys.executable, __file__, str(listening.fileno())],
            env=environment,
            pass_fds=[listening.fileno()],
        )
        listening.close()
        try:
            yield ReadyCommands(address)
        finally:
            server.terminate()
            server.wait()


def serve(listening: socket.socket) -> None:
    """Fork a process for each command, without end."""
    import mechdesign.cli.application
    import mechdesign.jobs.side_files
    import mechdesign.report.sentences
    import solvers.pace

    for module in pkgutil.walk_packages(mechdesign.__path__, "mechdesign."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    for name in LATER:
        with suppress(ModuleNotFoundError):
            importlib.import_module(name)
    # What a process makes once.
    for name in mechdesign.cli.application.NAMES:
        finish_options(mechdesign.cli.application.application(name))
    with solvers.pace.one_thread():
        pass
    mechdesign.jobs.side_files.template()
    mechdesign.report.sentences._macros()
    # What is shared with the forked processes is never searched for garbage, and so never copied.
    gc.freeze()
    answer_clients(listening)


def answer_clients(listening: socket.socket) -> NoReturn:
    """Start a command for each client; tell its number at once, and its exit code when it has ended.

    A fork copies the tables of all memory, which takes longer than most commands: no further process waits for them.
    """
    ended, wake = socket.socketpair()
    wake.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    signal.set_wakeup_fd(wake.fileno())
    running: dict[int, socket.socket] = {}
    while True:
        readable, _, _ = select.select([listening, ended], [], [])
        if ended in readable:
            ended.recv(READ_AT_ONCE)
            tell_exit_codes(running)
        if listening in readable:
            connection, _ = listening.accept()
            running[start_command(connection)] = connection


def tell_exit_codes(running: dict[int, socket.socket]) -> None:
    """Of all processes that have ended."""
    while running:
        process, status = os.waitpid(-1, os.WNOHANG)
        if not process:
            return
        code = os.waitstatus_to_exitcode(status)
        # A client may have been killed.
        with running.pop(process) as connection, suppress(OSError):
            connection.sendall(f"{code if code >= 0 else 128 - code}\n".encode())


def finish_options(command: Any) -> None:
    """What typer makes of every option when it is first parsed."""
    for parameter in command.params:
        parameter.get_runtime_param()
    for sub in getattr(command, "commands", {}).values():
        finish_options(sub)


def start_command(connection: socket.socket) -> int:
    """Run what the client asks for in a process of its own; tell its number."""
    _, files, _, _ = socket.recv_fds(connection, len(ONE_BYTE), len(STANDARD_FILES))
    with connection.makefile("rb") as sent:
        code, arguments, folder, environment = marshal.loads(sent.read())
    process = os.fork()
    if not process:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        connection.close()
        become(files, folder, environment)
        sys.argv = ["mechdesign", *arguments]
        run_and_end(code)
    # A reader of a pipe sees its end when nobody holds the other side any more.
    for file in files:
        os.close(file)
    # A client may have been killed.
    with suppress(OSError):
        connection.sendall(f"{process}\n".encode())
    return process


def run_and_end(code: str) -> NoReturn:
    """Run code as a process does; then end the process without a search through all that it shares with the server.

    The interpreter takes every module apart at its end. The system would first copy the memory of all of them, which
    took twice the time of most commands.
    """
    status = 0
    try:
        exec(code, {"__name__": "__main__"})
    except SystemExit as end:
        status = exit_code(end)
    except BaseException:
        traceback.print_exc()
        status = 1
    # What the interpreter does first at its end: it waits for threads, and calls what asked to be called.
    threading._shutdown()  # pyright: ignore[reportAttributeAccessIssue]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def exit_code(end: SystemExit) -> int:
    """The exit code of a process that ends so; words go to standard error, and mean 1."""
    if end.code is None:
        return 0
    if isinstance(end.code, int):
        return end.code
    print(end.code, file=sys.stderr)
    return 1


def become(files: Sequence[int], folder: str, environment: Mapping[str, str]) -> None:
    """Take the client's standard files, folder and environment."""
    os.setsid()
    for file, place in zip(files, STANDARD_FILES, strict=True):
        os.dup2(file, place)
        os.close(file)
    # Those of the server know whether its own files can be rewound.
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", encoding="utf-8", buffering=1, closefd=False)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
