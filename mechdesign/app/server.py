"""The server of the page: addresses, the token, and headers that keep data on this machine.

Three walls stand around the data. The server listens on 127.0.0.1 alone. Every address begins with
a random token, without which nothing is answered. And the headers forbid the browser to load from,
or send to, any other place, and to keep anything on disk.

`LocalServer` makes a token and serves `application`, whose addresses are methods of `_Pages`:

- ``/`` is the page (`rendered`, below); ``/assets/app.css`` and ``/assets/app.js`` are its style
  and its script.
- ``/upload`` takes the bytes of a table, and ``/act`` the form of a button. Both change the
  session, and lead the browser back to the page.
- ``/progress`` is asked again and again while a task runs: ``{"running": true, "place":
  "progress", "text": "Writing the reports", "done": ["Reading the table"], "seconds": 12}``.
  ``/cancel`` ends the task.
- ``/files/report.html`` is a download of the last design, ``/files/release.zip`` all of them.
  ``/forget`` drops the table.

*The page.* `rendered` draws the whole page from the state of the session, by the template
``app.html.jinja``, which escapes every text.
The template gets the state, the lists of options (`choice`) and the places of the curve
(`pictures`), and computes nothing but formats and heights. The page is drawn anew after every
action; only its progress is fetched by script.

A form may send a level or a limit of rare values that is in no list. `_levels` and `_merges` add it
to its list, so that the page shows what is chosen.
"""

from __future__ import annotations

import secrets
import socket
import threading
from collections.abc import Awaitable, Callable
from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from mechdesign.app import choice as c
from mechdesign.app.memory_table import ENDINGS
from mechdesign.app.releasing import ORDERS
from mechdesign.app.results import ColumnSays
from mechdesign.app.session import ARCHIVE, Session
from mechdesign.core.errors import InputError

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response


HOST = "127.0.0.1"
"""The only address that the page is served on."""

TOKEN_BYTES = 24
"""192 random bits: nobody guesses them."""

LARGEST_UPLOAD = 2**30
"""Bytes of a file that a browser may send."""

TOO_LARGE = (
    "is larger than 1 GiB, and the page holds files in memory: mechdesign design and the other "
    "commands read files of any size"
)
"""What is said of a larger file, after its name.

The page says it before it sends the file: a server that does not read a request to its end is often
not heard.
"""

LARGEST_FORM = 2**24
"""Bytes of a form: the fields of very many columns."""

NEEDED = ("starlette", "uvicorn")
"""The packages of the extra `app`."""

HEADERS = {
    # Nothing is loaded from, or sent to, another place.
    "Content-Security-Policy": (
        "default-src 'none'; img-src data:; style-src 'self'; script-src 'self'; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    # The address has the token: no other page may see it.
    "Referrer-Policy": "no-referrer",
    # What browsers keep on disk would outlive the program.
    "Cache-Control": "no-store",
    # Pages of other places can neither embed what is answered here nor hold this window.
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}

ASSETS = {
    "app.css": "text/css; charset=utf-8",
    "app.js": "text/javascript; charset=utf-8",
}


def check_installed() -> None:
    """Refuse to start without the packages of the extra."""
    for package in NEEDED:
        if find_spec(package) is None:
            raise InputError(
                f"mechdesign app needs {package}, which is not installed: "
                "pip install 'mechdesign[app]'"
            )


def new_token() -> str:
    """A token for an address."""
    return secrets.token_urlsafe(TOKEN_BYTES)


def application(session: Session, token: str) -> Starlette:
    """The pages below ``/TOKEN/``; every other address is refused."""
    from starlette.applications import Starlette
    from starlette.middleware.base import BaseHTTPMiddleware
    from starlette.responses import PlainTextResponse
    from starlette.routing import Mount, Route

    pages = _Pages(session)
    routes = [
        Route("/", pages.page),
        Route("/upload", pages.upload, methods=["POST"]),
        Route("/act", pages.act, methods=["POST"]),
        Route("/cancel", pages.cancel, methods=["POST"]),
        Route("/forget", pages.forget, methods=["POST"]),
        Route("/progress", pages.progress),
        Route("/files/{name}", pages.file),
        Route("/assets/{name}", pages.asset),
    ]

    async def guarded(
        request: Request, answer: Callable[[Request], Awaitable[Response]]
    ) -> Response:
        """Refuse whoever lacks the token, and pages of others that name this server their own."""
        part = request.url.path.split("/")[1]
        # In constant time, so that nobody learns from it how many characters were right.
        has_token = secrets.compare_digest(part.encode(), token.encode())
        # A foreign name that leads to 127.0.0.1 is how a page elsewhere would read this one.
        is_own = request.url.hostname in (HOST, "localhost") and _is_from_here(request)
        if has_token and is_own:
            response = await answer(request)
        else:
            text = "The address is not complete: use the one that mechdesign app printed.\n"
            response = PlainTextResponse(text, status_code=403)
        response.headers.update(HEADERS)
        return response

    server = Starlette(routes=[Mount(f"/{token}", routes=routes)])
    server.add_middleware(BaseHTTPMiddleware, dispatch=guarded)
    return server


def _is_from_here(request: Request) -> bool:
    """Whether a request that changes something comes from this page, as far as browsers say.

    Other pages do not know the token. This is a second wall, should it become known.
    """
    # "none" is an address that the user typed. Programs such as curl do not say it. The header of
    # the origin is no help: the page sends no referrer, and so no origin either.
    site = request.headers.get("sec-fetch-site", "none")
    return request.method == "GET" or site in ("none", "same-origin")


class _Pages:
    """The answers to each address; a lock keeps two requests from changing the state at once."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._lock = threading.Lock()

    def page(self, request: Request) -> Response:
        """The whole page."""
        from starlette.responses import HTMLResponse

        with self._lock:
            return HTMLResponse(rendered(self._session))

    async def upload(self, request: Request) -> Response:
        """Take a file; the answer is the part of the page that it leads to."""
        from starlette.concurrency import run_in_threadpool
        from starlette.requests import ClientDisconnect
        from starlette.responses import PlainTextResponse

        name = request.query_params.get("name") or "table.csv"
        # The bytes as they are: the parser of multipart forms would write them to a temporary file.
        try:
            content = await _body(request, LARGEST_UPLOAD)
        except ClientDisconnect:
            return _gone()
        if content is None:
            return PlainTextResponse(f"{name} {TOO_LARGE}.", status_code=413)
        # Reading a table takes seconds, in which the server must go on answering.
        await run_in_threadpool(self._open, name, content)
        return PlainTextResponse(self._session.place)

    def _open(self, name: str, content: bytes | bytearray) -> None:
        """Open an upload, in a thread."""
        with self._lock:
            self._session.open_upload(name, content)

    async def act(self, request: Request) -> Response:
        """Do what the button of a form says."""
        from starlette.concurrency import run_in_threadpool
        from starlette.requests import ClientDisconnect
        from starlette.responses import PlainTextResponse

        try:
            content = await _body(request, LARGEST_FORM)
        except ClientDisconnect:
            return _gone()
        if content is None:
            return PlainTextResponse("The form is too large.", status_code=413)
        try:
            fields = parse_qsl(
                content.decode(), keep_blank_values=True, errors="strict"
            )
        except ValueError:
            # UnicodeDecodeError is one, too.
            return PlainTextResponse("The form is not UTF-8.\n", status_code=400)
        form = dict(fields)
        await run_in_threadpool(self._act, form)
        return self._back()

    def _act(self, form: dict[str, str]) -> None:
        """Act on a form, in a thread."""
        with self._lock:
            self._session.act(form.get("action", ""), form)

    def cancel(self, request: Request) -> Response:
        """End the task that runs."""
        with self._lock:
            self._session.cancel()
        return self._back()

    def forget(self, request: Request) -> Response:
        """Drop the table and everything computed from it."""
        with self._lock:
            self._session.forget()
            self._session.error = ""
        return self._back()

    def progress(self, request: Request) -> Response:
        """Whether a task runs, and the last line that it reported."""
        from starlette.responses import JSONResponse

        with self._lock:
            running = self._session.running
            state: dict[str, Any] = {"running": running, "place": self._session.place}
            work = self._session.work
            if work is not None:
                state |= {
                    "text": work.text,
                    "done": list(work.done),
                    "seconds": work.seconds,
                }
        return JSONResponse(state)

    def file(self, request: Request) -> Response:
        """A download of the last design."""
        from starlette.responses import PlainTextResponse, Response

        name = request.path_params["name"]
        with self._lock:
            file = self._session.download(name)
            if name == ARCHIVE and self._session.files:
                content, media_type = self._session.archive(), "application/zip"
            elif file is not None:
                content, media_type = file.text.encode(), file.media_type
            else:
                return PlainTextResponse("There is no such file.\n", status_code=404)
        disposition = f'attachment; filename="{name}"'
        return Response(
            content,
            media_type=media_type,
            headers={"Content-Disposition": disposition},
        )

    def asset(self, request: Request) -> Response:
        """The style or the script of the page."""
        from starlette.responses import PlainTextResponse, Response

        name = request.path_params["name"]
        if name not in ASSETS:
            return PlainTextResponse("There is no such file.\n", status_code=404)
        return Response(resource(name), media_type=ASSETS[name])

    def _back(self) -> Response:
        """To the part of the page that the action leads to."""
        from starlette.responses import RedirectResponse

        # 303 makes a GET of it, so that reloading the page does not press the button again.
        return RedirectResponse(f"./#{self._session.place}", status_code=303)


def _gone() -> Response:
    """The answer to a browser that has hung up, which nobody reads."""
    from starlette.responses import Response

    return Response(status_code=400)


async def _body(request: Request, largest: int) -> bytes | bytearray | None:
    """The bytes of a request, or None if they are too many."""
    # Counted as they come, because the length that a header states may be wrong.
    content = bytearray()
    async for part in request.stream():
        content += part
        if len(content) > largest:
            return None
    # As it is: a copy would be a second table in memory.
    return content


class LocalServer:
    """The page on a free port of 127.0.0.1, to be entered and left."""

    def __init__(self, session: Session, *, port: int = 0) -> None:
        import uvicorn

        self._session = session
        token = new_token()
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind((HOST, port))
            # From now on a browser waits, even if the server is not yet there.
            self._socket.listen()
        except OSError as error:
            self._socket.close()
            raise InputError(
                f"port {port} of {HOST} cannot be used ({error.strerror}): leave --port out"
            ) from None
        self.address = f"http://{HOST}:{self._socket.getsockname()[1]}/{token}/"
        # No log: addresses hold the token.
        config = uvicorn.Config(
            application(session, token),
            log_config=None,
            access_log=False,
            server_header=False,
            lifespan="off",
        )
        self._server: Any = uvicorn.Server(config)

    def run(self) -> None:
        """Serve until the user stops the program, then forget everything."""
        try:
            self._server.run(sockets=[self._socket])
        except KeyboardInterrupt:
            # The usual way to end it.
            pass
        finally:
            self._session.forget()
            self._socket.close()

    def stop(self) -> None:
        """Let `run` return, from another thread."""
        self._server.should_exit = True


def rendered(session: Session) -> str:
    """The whole page for the state of the session."""
    # First, because asking whether a task runs takes its answer into the state.
    running = session.running
    assessed: dict[str, ColumnSays] = {}
    if session.assessed is not None:
        assessed = {entry.column: entry for entry in session.assessed.columns}
    return _template().render(
        session=session,
        running=running,
        choice=session.choice,
        assessed=assessed,
        levels=_levels(session.choice.level),
        roles=c.ROLES,
        objectives=c.OBJECTIVES,
        promises=c.PROMISES,
        missing=c.MISSING,
        units=c.UNITS,
        orders=ORDERS,
        endings=",".join(ENDINGS),
        largest_upload=LARGEST_UPLOAD,
        too_large=TOO_LARGE,
        archive=ARCHIVE,
        merges=_merges(session.choice.merge_rare),
        smallest_factor=c.SMALLEST_FACTOR,
        largest_factor=c.LARGEST_FACTOR,
        factor_step=c.FACTOR_STEP,
    )


def _levels(chosen: str) -> dict[str, str]:
    """The levels of the list, and the chosen one if it is another."""
    levels = dict(c.LEVELS)
    if chosen not in levels:
        levels[chosen] = f"the population, at the level {chosen}"
    return levels


def _merges(chosen: str) -> dict[str, str]:
    """What may become of rare values, and the chosen number if it is another."""
    merges = dict(c.MERGES)
    if chosen not in merges:
        merges[chosen] = f"in fewer than {chosen} records are merged"
    return merges


# Read and compiled once, when the first page is drawn.
@cache
def _template() -> Any:
    """The template of the page."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("mechdesign.app", "."),
        # A name that is misspelt in the template is an error, and not an empty place on the page.
        undefined=StrictUndefined,
        # Names and cells of the table may hold HTML.
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("app.html.jinja")


@cache
def resource(name: str) -> bytes:
    """A file of this package that the page needs; the server checks the name."""
    return (files("mechdesign.app") / name).read_bytes()
