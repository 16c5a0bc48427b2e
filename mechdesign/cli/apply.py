"""`mechdesign apply CHANNEL IN OUT`: sanitise a data file.

`apply` refuses what only the command line knows to be wrong, and puts its groups of options into
one `ApplyArguments`, which makes a release of them: through channels, or through a mechanism file
of `quantize`. `_released` runs it under a bar of progress, and within `stoppable`, so that a signal
leaves OUT complete or absent. Then `_answer_channel` or `_answer_mechanism` logs and prints the
result, such as "1,000 records written to out.csv; the column job is released."

*Arguments*: files and options, and the release that they ask for. `ApplyArguments.channel_release`
is a release through channel files (`jobs.release_path.sanitise_path`), and
`ApplyArguments.mechanism_release` one through a mechanism file of `quantize`
(`mechanism.mechanism_release`). Both read the files of channels and mechanisms, and draw nothing:
each gives a function of `progress` and `warn` that reads IN, draws and writes. Both put together
what the groups of `released` make of their texts, the ledger, and the files beside OUT. Example:
``apply channel.json in.csv out.csv`` writes out.csv and out.csv.manifest.json, with the ledger of
the user.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from mechdesign.cli import options
from mechdesign.cli.console import Reporter
from mechdesign.cli.mechanism import (
    MechanismOptions,
    answer_mechanism_release,
    is_mechanism,
    mechanism_release,
)
from mechdesign.cli.parsing import names
from mechdesign.cli.released import (
    ColumnOptions,
    Files,
    JobOptions,
    OutputFormat,
    PolicyOptions,
    SideOptions,
)
from mechdesign.core.errors import InputError

if TYPE_CHECKING:
    from mechdesign.jobs.options import Applied
    from mechdesign.nonstochastic.release_answers import RangeRelease


# ---------------------------------------------------------------------------- arguments


@dataclass(frozen=True, kw_only=True)
class ApplyArguments:
    """The files and options of one `apply`, and the releases that they ask for.

    `apply` makes it and calls one of `channel_release` and `mechanism_release`, by the kind of file
    in the place of the channel.
    """

    channel: str
    source: str
    target: str
    columns: ColumnOptions
    published: PolicyOptions
    draws: JobOptions
    text: OutputFormat
    sides: SideOptions
    force: bool

    @property
    def manifest(self) -> str | None:
        """The path of the manifest: beside a file by default, and nowhere else."""
        from mechdesign.core.files import STANDARD, is_url
        from mechdesign.formats.opening import is_folder

        if self.sides.manifest is not None or self.target == STANDARD:
            return self.sides.manifest
        # A folder has its manifests inside, and beside a URL nothing is written unasked.
        if is_url(self.target) or is_folder(self.source):
            return None
        return f"{self.target}.manifest.json"

    @property
    def ledger(self) -> str | None:
        """The ledger, by default that of the user; none for draws from a seed."""
        from mechdesign.jobs.ledger_file import default_path

        # Draws from a seed are for tests, and have no place among the releases of the user.
        if self.draws.ledger is None and self.draws.insecure_seed is None:
            return os.fspath(default_path())
        return self.draws.ledger

    def channel_release(self) -> Callable[..., Any]:
        """The release through channels; it takes `progress` and `warn`."""
        identity = self._identity()
        arguments = {
            **self._common_arguments(),
            **self.columns.release_arguments(),
            **self._format_arguments(),
            "identity": identity or None,
            "ledger": self.ledger,
            "changed": self.draws.changed,
            "fresh_draw": self.draws.fresh_draw,
            "draws": self.draws.draws,
            "unit": self.draws.unit,
            "nights": self.draws.nights,
            "insecure_seed": self.draws.insecure_seed,
            "manifest": self.manifest,
            "internal_manifest": self.sides.internal_manifest,
            "codebook": self.sides.codebook,
        }
        paths = [self.channel, *(self.columns.also or [])]
        return _release_of(
            paths, self.source, self.target, self.columns, self.published, arguments
        )

    def mechanism_release(self, numbers: MechanismOptions) -> Callable[..., Any]:
        """The release through a mechanism file of `quantize`; it takes `progress` and `warn`."""
        identity = self._identity()
        arguments = self._common_arguments()
        self._refuse_options_of_channels()
        arguments |= {
            "ledger": self.ledger,
            # The mechanism file of the release stands where one through channels has its manifest.
            "mechanism_path": self.sides.manifest,
            "records": {**self.columns.release_arguments(), **self._format_arguments()},
        }
        return mechanism_release(
            self.channel, self.source, self.target, numbers, arguments, identity
        )

    def _identity(self) -> tuple[str, ...]:
        """The columns that identify a record; none where its row number does."""
        if self.draws.identity is None:
            return ()
        return tuple(names("--identity", [self.draws.identity]))

    def _common_arguments(self) -> dict[str, Any]:
        """What releases through channels and through mechanisms both take."""
        return {
            "text": self.text.text(),
            "compression": self.text.compress,
            "force": self.force,
            "key_from": self.draws.key,
            "dry_run": self.draws.dry_run,
            "strict": self.sides.strict,
        }

    def _format_arguments(self) -> dict[str, Any]:
        """How the cells of OUT are written."""
        return {
            "escape_formulas": self.text.escape_formulas,
            "format": self.text.format,
        }

    def _refuse_options_of_channels(self) -> None:
        """Raise InputError if there is an option that only a random draw can have."""
        # These would be ignored silently, and the user would believe in what they promise.
        is_asked = (
            bool(self.columns.also)
            or bool(self.sides.internal_manifest)
            or bool(self.sides.codebook)
            or self.draws.fresh_draw
            or self.draws.changed != "refuse"
            or self.draws.draws is not None
            or self.draws.unit is not None
            or self.columns.person is not None
            or self.draws.nights != 1
            or self.published != PolicyOptions()
        )
        if is_asked:
            raise InputError(
                "a mechanism draws nothing: --also, --as, --missing, --unknown, --normalise, "
                "--trim, --changed, --fresh-draw, --draws, --unit, --person, --nights, "
                "--internal-manifest and --codebook are for channels"
            )


def _release_of(
    paths: list[str],
    source: str,
    target: str,
    columns: ColumnOptions,
    published: PolicyOptions,
    arguments: dict[str, Any],
) -> Callable[..., Any]:
    """The release through the channels of these files; it takes `progress` and `warn`."""
    from mechdesign.channel.file import load
    from mechdesign.jobs.release_path import sanitise_path
    from mechdesign.jobs.target import keep_apart

    channels = [load(path) for path in paths]
    columns.check_people(channels)
    # A channel file that an output replaces would be lost, and with it every later release.
    written = (
        target,
        arguments["manifest"],
        arguments["internal_manifest"],
        arguments["codebook"],
    )
    keep_apart(
        [path for path in written if path is not None],
        [("the channel file", path) for path in paths],
    )
    return partial(
        sanitise_path,
        channels,
        source,
        target,
        channel_files=paths,
        **published.arguments(channels),
        **arguments,
    )


# ------------------------------------------------------------------------------ command

MOST_KEPT = 20
"""Columns, kept or released ones, that a message names."""

APPLY_EXAMPLE = (
    "Example:  mechdesign apply channel.json people.csv released.csv --identity id"
)


def apply(
    reporter: Reporter,
    channel: options.ChannelPath,
    files: Files,
    columns: ColumnOptions,
    published: PolicyOptions,
    draws: JobOptions,
    text: OutputFormat,
    sides: SideOptions,
    numbers: MechanismOptions,
    common: options.CommonOptions,
    force: options.Force = False,
) -> int:
    """Replace the useful column of a data file by draws of a channel, one draw for each record.

    OUT has the released columns and no others, unless --keep names them. Rows keep their order;
    where it discloses the column, the file is refused. The same record gets the same draw whenever
    the job runs: it is a function of the job's secret key and of the record's row number or
    identifier, and of all records where the counts of outputs are fixed. A job that was killed is
    run again, and writes the same bytes. OUT is complete or not there at all.
    """
    from mechdesign.core.files import STANDARD, local
    from mechdesign.jobs.stopping import stoppable

    # A file:// URL is a path: beside a file there is a manifest, and beside other URLs none.
    target = os.fspath(local(files.target))
    if common.as_json and target == STANDARD:
        raise InputError(
            "--json and an output to standard output (-) would mix; name a file for one of them"
        )
    if text.compress not in (None, "gzip", "zstd"):
        raise InputError(f"--compress {text.compress!r} must be gzip or zstd")
    arguments = ApplyArguments(
        channel=channel,
        source=files.source,
        target=target,
        columns=columns,
        published=published,
        draws=draws,
        text=text,
        sides=sides,
        force=force,
    )
    # The kind of the file is seen in the file itself, so that both take one command. `stoppable`
    # lasts to the last line: when OUT has its name, a signal stops nothing, and must not say that
    # it did.
    if is_mechanism(channel):
        release = arguments.mechanism_release(numbers)
        with stoppable():
            quantised = _released(reporter, "quantising", release)
            _answer_mechanism(reporter, quantised, arguments, common)
    else:
        release = arguments.channel_release()
        with stoppable():
            sanitised = _released(reporter, "sanitising", release)
            _answer_channel(reporter, sanitised, arguments, common)
    return 0


def _released(reporter: Reporter, activity: str, release: Callable[..., Any]) -> Any:
    """The result of a release, whose notices are printed: each once, a warning at once."""
    warnings: list[str] = []

    def warn(note: str) -> None:
        # At once, because the release may take hours.
        warnings.append(note)
        reporter.notices((note,))

    with reporter.work(activity, unit="B") as work:
        result = release(progress=work.at, warn=warn)
    # OUT is complete: a Ctrl-C while the answer is printed is no failure.
    reporter.finished = True
    reporter.notices(note for note in result.notices if note not in warnings)
    return result


def _answer_mechanism(
    reporter: Reporter,
    result: RangeRelease,
    arguments: ApplyArguments,
    common: options.CommonOptions,
) -> None:
    """Log a release through a mechanism, and print it unless the data went there."""
    from mechdesign.core.files import STANDARD

    reporter.done(
        "applied",
        f"written to {arguments.target}",
        output=arguments.target,
        records=result.records,
    )
    if arguments.target != STANDARD:
        answer_mechanism_release(
            result, arguments.target, common, dry_run=arguments.draws.dry_run
        )


def _answer_channel(
    reporter: Reporter,
    result: Applied,
    arguments: ApplyArguments,
    common: options.CommonOptions,
) -> None:
    """Log a release through channels, and print it unless the data went there."""
    from mechdesign.core.files import STANDARD

    details = asdict(result)
    dry_run = arguments.draws.dry_run
    if result.kept and not dry_run:
        details |= _kept_guess(reporter, result, arguments)
    reporter.done(
        "applied", f"written to {arguments.target}", output=arguments.target, **details
    )
    if arguments.target != STANDARD:
        record = {"output": arguments.target, "manifest": arguments.manifest, **details}
        common.answer(
            lambda: record, lambda: _written(result, arguments, dry_run=dry_run)
        )


def _kept_guess(
    reporter: Reporter, result: Applied, arguments: ApplyArguments
) -> dict[str, Any]:
    """How well the kept columns together guess the sensitive ones: printed, and an entry of the
    record.

    It is measured with --keep all on a file that has the sensitive columns. Columns kept by name
    are kept knowingly.
    """
    from mechdesign.core.files import STANDARD, is_url
    from mechdesign.formats.opening import is_folder
    from mechdesign.jobs.options import ALL
    from mechdesign.leaks.inspection import guess_from_kept, kept_note

    if ALL not in names("--keep", arguments.columns.keep):
        return {}
    source = arguments.source
    # It reads the data a second time: standard input is gone, a URL or a folder may be large.
    if source == STANDARD or is_url(source) or is_folder(source):
        return {}
    sensitive = result.sensitive
    others = [name for name in result.kept if name not in sensitive]
    text = arguments.text.text()
    guess = guess_from_kept(source, sensitive=sensitive, kept=others, text=text)
    if guess is None:
        return {}
    reporter.notices((kept_note(guess, sensitive=sensitive),))
    return {"kept_guess": asdict(guess)}


def _written(result: Applied, arguments: ApplyArguments, *, dry_run: bool) -> str:
    """What was written where, and which columns the promise does not cover, for people."""
    from mechdesign.report.wording import count, first_labels

    released = first_labels(result.columns, MOST_KEPT)
    subject = f"the columns {released} are"
    if len(result.columns) == 1:
        subject = f"the column {released} is"
    verb = "written to"
    if result.already:
        verb = "are complete already in"
    elif dry_run:
        verb = "would be written to"
    size = count(result.records, "record")
    if result.people is not None:
        size += f" of {count(result.people, 'person', 'people')}"
    text = f"{size} {verb} {arguments.target}; {subject} released."
    if result.kept:
        kept = first_labels(result.kept, MOST_KEPT)
        text += f" Kept as they are, and not covered by the promise (--keep): {kept}."
    return " ".join([text, *_law_sentences(result, arguments)])


def _law_sentences(result: Applied, arguments: ApplyArguments) -> list[str]:
    """What an analyst reads in a file of released rows; nothing is said of labels."""
    from mechdesign.release.drawing import FIXED, INDEPENDENT

    sentences: list[str] = []
    if result.draws == FIXED and result.law_kept:
        sentences.append(
            "Counts are fixed: every row is released exactly as often as the table has it, so "
            "tables, means and regressions of the released columns are the table's."
        )
    elif result.draws == FIXED:
        sentences.append(
            "Counts are fixed: every row is released exactly as often as expected."
        )
    elif result.law_kept:
        weighted = ""
        if _is_weighted(arguments.channel):
            weighted = " where each record counts with its weight there"
        errors = ""
        if not weighted and _is_estimated(arguments):
            errors = "; `mechdesign estimate` gives their errors"
        sentences.append(
            "For records of the channel's own table, tables and means of the released columns are "
            f"the table's in expectation{weighted}{errors}."
        )
    if result.law_kept is False:
        sentence = (
            "Frequencies are not those of the channel's table: `mechdesign audit` says how far "
            "they move"
        )
        if _is_estimated(arguments):
            sentence += ", and `mechdesign estimate` corrects them"
        sentences.append(f"{sentence}.")
        if arguments.columns.also is None:
            sentences += _changes(arguments.channel)
    if result.draws == INDEPENDENT and _has_groups(arguments):
        sentences.append(
            "Counts are not fixed, so that a released row may occur less often than expected, "
            "even once."
        )
    if result.whole_file:
        sentences.append("The promise holds for readers of the whole file, too.")
    return sentences


def _has_groups(arguments: ApplyArguments) -> bool:
    """Whether every released row is expected more than once, which a design may have promised."""
    from mechdesign.channel.file import load
    from mechdesign.mechanisms.plan_costs import groups_of

    if arguments.columns.also is not None:
        return False
    channel = load(arguments.channel)
    is_of_rows = channel.releases_symbols and len(channel.useful.columns) > 1
    if channel.joint is None or not is_of_rows:
        return False
    return groups_of(channel, channel.joint)[0] > 1


def _is_weighted(path: str) -> bool:
    """Whether the table of a channel has weights or probabilities in place of records."""
    from mechdesign.channel.file import load

    return not load(path).has_counts


def _is_estimated(arguments: ApplyArguments) -> bool:
    """Whether `estimate` takes the release: not with draws in the place of cells of rows."""
    from mechdesign.analysis.estimating import estimator_of
    from mechdesign.channel.file import load
    from mechdesign.release.samplers import Policy

    channel = load(arguments.channel)
    policy = arguments.published.policy([channel])
    if policy is None:
        policy = Policy.recorded(channel.record.rules)
    try:
        estimator_of(
            channel,
            has_others=not policy.lets_nothing_through,
            is_statistic=False,
        )
    except InputError:
        return False
    return True


def _changes(path: str) -> list[str]:
    """What a channel changes most in the frequencies of its table, if it has the table."""
    from mechdesign.auditing.law import channel_law
    from mechdesign.channel.file import load
    from mechdesign.report.law_section import law_lines

    channel = load(path)
    law = channel_law(channel, channel.joint)
    if law is None:
        return []
    # The first line says that they change at all.
    return law_lines(law)[1:]
