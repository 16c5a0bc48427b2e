"""A command in the process of the server of ready_commands.py, and the program that takes the place of `mechdesign`.

The program starts for every command of a page, so this file imports as little as it can.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Mapping, Sequence

PROGRAM = "import sys; from mechdesign.cli import program; sys.exit(program())"
"""What the process `mechdesign` does."""

STANDARD_FILES = (0, 1, 2)

ONE_BYTE = b"."
"""File descriptors travel beside at least one byte."""


class Command:
    """A running command: its process, which leads a session of its own."""

    def __init__(
        self,
        address: str,
        code: str,
        arguments: Sequence[str],
        *,
        folder: str,
        environment: Mapping[str, str],
        files: Sequence[int] = STANDARD_FILES,
    ) -> None:
        self._connection = socket.socket(socket.AF_UNIX)
        self._connection.connect(address)
        socket.send_fds(self._connection, [ONE_BYTE], list(files))
        asked = [code, list(arguments), folder, dict(environment)]
        self._connection.sendall(json.dumps(asked).encode())
        self._connection.shutdown(socket.SHUT_WR)
        self._answers = self._connection.makefile("r")
        self.pid = int(self._answers.readline())

    def wait(self) -> int:
        """The exit code; 128 and the number of the signal that ended the process."""
        code = int(self._answers.readline())
        self._answers.close()
        self._connection.close()
        return code


if __name__ == "__main__":
    _, address, *words = sys.argv
    command = Command(
        address, PROGRAM, words, folder=os.getcwd(), environment=os.environ
    )
    sys.exit(command.wait())
