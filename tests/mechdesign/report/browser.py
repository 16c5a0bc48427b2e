"""Debian's chromium without a window, spoken to over a pipe (Chrome DevTools Protocol, one JSON text and a NUL)."""

from __future__ import annotations

import base64
import contextlib
import fcntl
import itertools
import json
import os
import select
import shutil
import signal
import subprocess
import time
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")

PATIENCE = 60.0
"""Seconds for one answer; a browser that starts on a busy machine takes several."""

FIRST_FREE = 10
"""File descriptors from here on are in nobody's way."""

OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--remote-debugging-pipe",
)


def chromium() -> str | None:
    """The browser on the path, if there is one."""
    return next(filter(None, map(shutil.which, NAMES)), None)


def _pipe() -> tuple[int, int]:
    """A pipe whose ends are neither 3 nor 4."""
    ends = os.pipe()
    moved = tuple(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, FIRST_FREE) for end in ends)
    for end in ends:
        os.close(end)
    return moved


class Browser:
    """``with Browser(folder) as browser: page = browser.open(path, 400)``."""

    def __init__(self, profile: Path) -> None:
        to_read, self._to = _pipe()
        self._from, to_write = _pipe()
        # The protocol wants the descriptors 3 and 4.
        script = f'exec "$@" 3<&{to_read} 4>&{to_write} {to_read}<&- {to_write}>&-'
        self._process = subprocess.Popen(
            [
                "bash",
                "-c",
                script,
                "bash",
                chromium() or "",
                *OPTIONS,
                f"--user-data-dir={profile}",
                "about:blank",
            ],
            pass_fds=(to_read, to_write),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(to_read)
        os.close(to_write)
        self._numbers = itertools.count(1)
        self._buffer = b""
        self.events: list[dict] = []

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._to)
        os.close(self._from)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def call(
        self, method: str, session: str | None = None, **parameters: object
    ) -> dict:
        """The result of one command; events that come before it are kept in `events`."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + PATIENCE
        while True:
            answer = self._message(deadline)
            if answer.get("id") == number:
                assert "error" not in answer, answer
                return answer["result"]
            self.events.append(answer)

    def wait(self, method: str, session: str) -> None:
        """Until this event has come."""
        deadline = time.monotonic() + PATIENCE
        while not any(
            e.get("method") == method and e.get("sessionId") == session
            for e in self.events
        ):
            self.events.append(self._message(deadline))

    def _message(self, deadline: float) -> dict:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select(
                [self._from], [], [], max(0.0, deadline - time.monotonic())
            )
            assert ready, "the browser does not answer"
            piece = os.read(self._from, 1 << 16)
            assert piece, "the browser has gone"
            self._buffer += piece
        text, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(text)

    def open(self, path: Path, width: int) -> Page:
        """The file in a window that is really `width` pixels wide."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        self.events.clear()
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable", session)
        self.call(
            "Emulation.setDeviceMetricsOverride",
            session,
            width=width,
            height=900,
            deviceScaleFactor=1,
            mobile=False,
        )
        self.call("Page.navigate", session, url=path.resolve().as_uri())
        self.wait("Page.loadEventFired", session)
        return Page(self, session)


class Page:
    """A loaded page."""

    def __init__(self, browser: Browser, session: str) -> None:
        self._browser, self._session = browser, session

    def value(self, script: str) -> object:
        """What an expression is worth."""
        found = self._browser.call(
            "Runtime.evaluate", self._session, expression=script, returnByValue=True
        )
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def complaints(self) -> list[str]:
        """Everything on the console, exceptions, and violations of the page's own policy."""
        self.value("0")  # whatever was said before has arrived before this answer
        bad = ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")
        return [
            json.dumps(e["params"])
            for e in self._browser.events
            if e.get("method") in bad and e.get("sessionId") == self._session
        ]

    def requests(self) -> list[str]:
        """The addresses that the page asked for."""
        self.value("0")
        return [
            e["params"]["request"]["url"]
            for e in self._browser.events
            if e.get("method") == "Network.requestWillBeSent"
            and e.get("sessionId") == self._session
        ]

    def screenshot(self, path: Path) -> None:
        """The whole page as PNG."""
        shot = self._browser.call(
            "Page.captureScreenshot",
            self._session,
            format="png",
            captureBeyondViewport=True,
        )
        path.write_bytes(base64.b64decode(shot["data"]))

    def print_media(self) -> None:
        """From now on the page looks as on paper."""
        self._browser.call("Emulation.setEmulatedMedia", self._session, media="print")

    def pdf(self) -> bytes:
        """The page as it is printed on A4."""
        made = self._browser.call(
            "Page.printToPDF",
            self._session,
            paperWidth=8.27,
            paperHeight=11.69,
            printBackground=False,
        )
        return base64.b64decode(made["data"])
