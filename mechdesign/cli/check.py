"""`mechdesign check OUT --channel CHANNEL`: is a released file a plausible draw of a channel?"""

from __future__ import annotations

from typing import Annotated

import typer

from mechdesign.cli import options as o
from mechdesign.cli import released as r

EXAMPLE = "Example:  mechdesign check released.csv --channel channel.json --original people.csv"

NO = 1
"""Exit code when the answer is no."""

Original = Annotated[
    str | None,
    typer.Option(
        "--original",
        metavar="IN",
        help="The file that was sanitised: then every record and every other column is compared, too.",
    ),
]
FalseAlarm = Annotated[
    str,
    typer.Option(
        "--false-alarm",
        metavar="P",
        help="Chance that the frequencies of a faithful release are called implausible.",
    ),
]
AnyData = Annotated[
    bool,
    typer.Option(
        "--any-data",
        metavar="",
        help="Without --original: do not expect the frequencies of the channel's own table.",
    ),
]
KeepSensitive = Annotated[
    bool,
    typer.Option("--keep-sensitive", metavar="", help="The sensitive column may be in the released file."),
]
Ignore = Annotated[
    list[str] | None,
    typer.Option(
        "--ignore",
        metavar="COL[,COL..]",
        help="Columns not to compare: removed, or released by another channel; may be repeated.",
    ),
]
Identity = Annotated[
    list[str] | None,
    typer.Option(
        "--identity",
        metavar="COL[,COL..]",
        help="The job drew by this identifier: as given to `apply`. The same identifier must have the same label.",
    ),
]
Correlated = Annotated[
    list[str] | None,
    typer.Option(
        "--correlated",
        metavar="COL[,COL..]",
        help="Further columns that must not be in the released file; may be repeated.",
    ),
]
Unknown = Annotated[
    str,
    typer.Option(
        "--unknown", metavar="RULE", help="What the job published for unknown symbols: as given to `apply`."
    ),
]
Null = Annotated[
    str,
    typer.Option(
        "--null", metavar="RULE", help="What the job published for empty cells: as given to `apply`."
    ),
]
Normalise = Annotated[
    str, typer.Option("--normalise", metavar="FORM", help="Unicode form of the job: as given to `apply`.")
]


def check(
    context: typer.Context,
    released: r.Released,
    channel: r.ChannelOption,
    original: Original = None,
    rename: r.Rename = None,
    released_column: r.ReleasedColumn = None,
    form: r.Form = "label",
    unknown: Unknown = "refuse",
    null: Null = "refuse",
    normalise: Normalise = "none",
    false_alarm: FalseAlarm = "0.001",
    any_data: AnyData = False,
    keep_sensitive: KeepSensitive = False,
    correlated: Correlated = None,
    ignore: Ignore = None,
    identity: Identity = None,
    delimiter: r.Delimiter = ",",
    quote: r.Quote = '"',
    encoding: r.Encoding = "utf-8",
    as_json: o.AsJson = False,
    quiet: o.Quiet = False,
    log_json: o.LogJson = False,
    debug: o.Debug = False,
) -> int:
    """Check a released file against its channel: exit 0 if it is a plausible draw, 1 if not.

    Labels, and with the original also rows, pairs of symbol and label and all other columns, must be possible; the
    frequencies must be plausible (exact tests with the original, conservative ones without).
    """
    from mechdesign.analysis.check_file import check_release
    from mechdesign.channel.channel import Channel
    from mechdesign.cli.numbers import number
    from mechdesign.cli.reporting import reporter_of
    from mechdesign.release.policies import Policy
    from mechdesign.report.check_text import check_record, check_text
    from mechdesign.report.records import to_json

    level = number("--false-alarm", false_alarm)
    policy = Policy(unknown=unknown, null=null, normalise=normalise)
    text = r.text_options(delimiter, quote, encoding)
    loaded = Channel.load(channel)
    reporter = reporter_of(context)
    with reporter.work("checking", unit="records") as advance:
        result = check_release(
            released,
            loaded,
            original=original,
            columns=r.renamed(rename),
            released_columns=r.names("--released-column", released_column) or None,
            form=form,
            policy=policy,
            level=level,
            any_data=any_data,
            keep_sensitive=keep_sensitive,
            ignored=r.names("--ignore", ignore),
            identity=r.names("--identity", identity),
            correlated=r.names("--correlated", correlated),
            text=text,
            advance=advance,
        )
    reporter.done("checked", f"{released} is checked", plausible=result.plausible, records=result.records)
    typer.echo(to_json(check_record(result)) if as_json else check_text(result, released))
    return 0 if result.plausible else NO
