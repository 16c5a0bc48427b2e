"""The options that the short help of each command shows, and the groups of commands.

Somebody who reads `--help` for the first time needs some twenty options, those in words before
those in nats: FIRST_OPTIONS has their names, by command and in the order of the help. The others
are in `--help-all`, so an option that is added elsewhere appears there by itself. COMMANDS has the
group of each command, as ``"audit": VERIFY``. `plain_help` writes both helps, and `application` the
groups of commands. The names are here, apart from the options, because the help of the program must
load no command.
"""

from __future__ import annotations

CHOOSE = "Choose: what to release, and how much privacy it costs"
RELEASE = "Release"
VERIFY = "Verify"
STUDY = "Study"

COMMANDS = {
    "app": CHOOSE,
    "assess": CHOOSE,
    "compare": CHOOSE,
    "design": CHOOSE,
    "inspect": CHOOSE,
    "apply": RELEASE,
    "export": RELEASE,
    "quantize": RELEASE,
    "report": RELEASE,
    "releases": RELEASE,
    "run": RELEASE,
    "audit": VERIFY,
    "check": VERIFY,
    "compose": VERIFY,
    "judge": VERIFY,
    "show": VERIFY,
    "estimate": STUDY,
    "nonstochastic": STUDY,
}
"""Every command with its group, in the order of the help."""

EARLIER_NAMES = ("measure",)
"""Commands that are part of others now; scripts may call them, and the help does not list them."""

OF_THE_PROGRAM = ("--quiet", "--log-json", "--debug")
"""Options of every command that the help of the program has once."""

TABLE = ("--sensitive", "--useful", "--contingency", "--weight")
"""The columns of a table, and its two other forms."""

END = ("--json", "--force", "--help-all", "--help")
"""The last options of every command; those that a command does not have are left out."""

FIRST_OPTIONS = {
    "design": (
        *TABLE,
        "--missing",
        "--bin",
        "--at-most-times",
        "--at-least-times",
        "--max-posterior",
        "--keep",
        "--epsilon",
        "--confidence",
        "--after",
        "--release",
        "--objective",
        "--time-limit",
        "--output",
        "--public",
        "--full",
        "--report",
        "--public-report",
        *END,
    ),
    "compare": (
        *TABLE,
        "--missing",
        "--bin",
        "--recommend",
        "--epsilons",
        "--mechanisms",
        "--release",
        "--given",
        "--epsilon",
        "--confidence",
        "--time-limit",
        "--workers",
        "--output",
        "--plot",
        *END,
    ),
    "apply": (
        "--drop",
        "--keep",
        "--column",
        "--keep-sensitive",
        "--shuffle",
        "--as",
        "--unknown",
        "--ledger",
        "--key-from",
        "--identity",
        "--changed",
        "--manifest",
        "--codebook",
        "--dry-run",
        *END,
    ),
    "quantize": (
        "--column",
        "--query",
        "--group-by",
        "--epsilon",
        "--total-epsilon",
        "--individual",
        "--range",
        "--outside",
        "--drop",
        "--keep",
        "--ledger",
        "--mechanism",
        "--compare",
        *END,
    ),
    "releases": ("--ledger", "--key-from", "--channel", "--table", *TABLE, *END),
    "audit": (
        "--table",
        *TABLE,
        "--matrix",
        "--at-most-times",
        "--at-least-times",
        "--notion",
        "--epsilon",
        "--lam",
        "--after",
        "--breach",
        "--certificate",
        "--all-measures",
        *END,
    ),
    "check": (
        "--channel",
        "--original",
        "--column",
        "--released-column",
        "--keep-sensitive",
        "--as",
        "--unknown",
        "--identity",
        "--ignore",
        "--false-alarm",
        "--any-data",
        *END,
    ),
    "compose": ("--table", *TABLE, "--protect-each", *END),
    "estimate": (
        "--channel",
        "--column",
        "--released-column",
        "--as",
        "--by",
        "--of",
        "--level",
        "--method",
        "--target",
        "--identity",
        "--csv",
        *END,
    ),
    "measure": ("--table", *TABLE, "--alpha", "--order", "--per-output", *END),
}
"""For each command with a long help: the options that its short help shows, in order."""
