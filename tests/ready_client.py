"""A command in the process of the server of ready_commands.py, and the program that takes the place of `mechdesign`.

The program starts for every command of a page, so this file imports as little as it can: with `json` and `socket` it
would take twice as long.
"""

from __future__ import annotations

import marshal
import os
import sys
from _socket import AF_UNIX, SCM_RIGHTS, SHUT_WR, SOL_SOCKET, socket

PROGRAM = "import sys; from mechdesign.cli import program; sys.exit(program())"
"""What the process `mechdesign` does."""

STANDARD_FILES = (0, 1, 2)

ONE_BYTE = b"."
"""File descriptors travel beside at least one byte."""

DESCRIPTOR_BYTES = 4
"""A descriptor is a C int."""


class Command:
    """A running command: its process, which leads a session of its own."""

    def __init__(
        self,
        address: str,
        code: str,
        arguments: list[str],
        *,
        folder: str,
        environment: dict[str, str],
        files: tuple[int, ...] = STANDARD_FILES,
    ) -> None:
        self._told = b""
        self._connection = socket(AF_UNIX)
        self._connection.connect(address)
        descriptors = b"".join(
            file.to_bytes(DESCRIPTOR_BYTES, sys.byteorder) for file in files
        )
        self._connection.sendmsg([ONE_BYTE], [(SOL_SOCKET, SCM_RIGHTS, descriptors)])
        self._connection.sendall(marshal.dumps([code, arguments, folder, environment]))
        self._connection.shutdown(SHUT_WR)
        self.pid = self._number()

    def wait(self) -> int:
        """The exit code; 128 and the number of the signal that ended the process."""
        code = self._number()
        self._connection.close()
        return code

    def _number(self) -> int:
        """The next line that the server says."""
        while b"\n" not in self._told:
            more = self._connection.recv(64)
            if not more:
                raise EOFError("the server of commands has ended")
            self._told += more
        line, _, self._told = self._told.partition(b"\n")
        return int(line)


if __name__ == "__main__":
    _, address, *words = sys.argv
    command = Command(
        address, PROGRAM, words, folder=os.getcwd(), environment=dict(os.environ)
    )
    sys.exit(command.wait())
