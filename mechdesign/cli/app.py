"""`mechdesign app [TABLE]`: a local page to choose a release by looking.

The command makes a session, opens the table in it, prints the address of the page, and serves it
until Ctrl-C. All else is in `mechdesign.app`.
"""

from __future__ import annotations

from dataclasses import dataclass

import typer

from mechdesign.cli import options
from mechdesign.cli.console import Reporter
from mechdesign.cli.line import argument, flag, option

APP_EXAMPLE = "Example:  mechdesign app people.csv"


@dataclass(frozen=True, kw_only=True)
class AppOptions:
    """The page"""

    table: str | None = argument(
        "TABLE",
        "Data file, one record a row; or choose one on the page.",
        default=None,
        public=options.PUBLIC_TABLE,
    )
    port: int = option("NUMBER", "Port of 127.0.0.1; 0 takes a free one.", 0)
    open: bool = flag(
        "Open the page in the default browser. Its command line then shows the address, with the "
        "token, to everybody who is logged in to this computer."
    )


def app(reporter: Reporter, page: AppOptions) -> int:
    """Choose a release by looking, on a local page.

    The page is for your browser, on this computer alone. Choose a file, give every column a role,
    choose the promise, see what an analyst reads, release and check the file, and download it with
    its manifest, reports, and the script, command and job file that do the same. Only its whole
    address is answered, and the table stays in memory. Ctrl-C ends it.
    """
    import webbrowser

    from mechdesign.app.server import LocalServer, check_installed
    from mechdesign.app.session import Session

    # Before the table is read: the packages of the server are an extra of the installation.
    check_installed()
    session = Session()
    if page.table is not None:
        session.open_path(page.table)
    server = LocalServer(session, port=page.port)
    typer.echo(f"Open {server.address}")
    reporter.notice("Ctrl-C ends the page and forgets the table.")
    # The address is printed before: a machine may have no browser to open.
    if page.open:
        webbrowser.open(server.address)
    server.run()
    return 0
