"""`mechdesign audit CHANNEL`: the exact verdict on a channel file or on any outside matrix.

`audit` looks at what it was given and hands over to one of three ways: `_audit_matrix` (--matrix),
`mechanism.audit_mechanism` (a file of `quantize`), and `_audit_channel`. Each finds the table and
the notion, in this order: the one on the command line, else the one in the channel file. Then
`auditing` decides in rational arithmetic. The exit code is the verdict: 0 if the notion is kept, 1
if it is violated, and 3 if a proof that was asked for did not end in its time.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import mechdesign as md
from mechdesign.cli import options, table_options
from mechdesign.cli.console import Reporter
from mechdesign.cli.failures import GAVE_UP, NO
from mechdesign.cli.line import argument, flag, option
from mechdesign.cli.mechanism import audit_mechanism, is_mechanism
from mechdesign.cli.parsing import number
from mechdesign.cli.show import AllMeasures
from mechdesign.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mechdesign.auditing.breaches import BreachVerdict
    from mechdesign.auditing.matrix import MatrixAudit
    from mechdesign.auditing.measures import ChannelMeasures
    from mechdesign.auditing.population_promise import PopulationPromise
    from mechdesign.auditing.stated import Statement

AUDIT_EXAMPLE = (
    "Example:  mechdesign audit channel.json        Or any matrix:  mechdesign audit --matrix "
    "W.csv --table counts.csv --contingency --notion ldp --epsilon 1"
)


NO_CERTIFICATE = (
    "--certificate is for the file of a channel that has its table, or counts of boxes"
)

OWN_COUNTS = (
    "a channel for boxes of rows is audited on the counts that it carries: leave --table and "
    "--after out"
)


@dataclass(frozen=True, kw_only=True)
class AuditOptions:
    """What is audited."""

    channel: str | None = argument(
        "CHANNEL", "A channel file written by `design`.", default=None
    )
    breach: str | None = option(
        "RHO1,RHO2",
        "Check, too, that no property of the sensitive column whose probability is at most RHO1 "
        "becomes as likely as RHO2 by a released value, nor the reverse (a privacy breach).",
    )
    certificate: bool = flag(
        "Prove the bounds on all other channels again from the proof in the file, and fail where "
        "it does not prove them (exit 3: not within --time-limit).",
    )
    matrix: str | None = option(
        "W.csv",
        "Audit any matrix instead: useful symbols down the first column, outputs along the header, "
        "rows sum to 1.",
    )


class Verdict(NamedTuple):
    """The verdict on a matrix or on a channel.

    Attributes
    ----------
    joint
        The table that decided it; None where these were the counts of a channel of boxes.
    population
        What holds for the population behind the table; None where nothing was computed.
    secret
        What is protected, in words.
    subject
        What a release of a record is called where its effect is said.
    plain
        What is printed below the verdict, for everybody: earlier releases, guesses, what analysts
        read, the population.
    details
        Sentences for specialists.
    measures
        Every measure of the channel, with --all-measures.
    statement
        What the file states, held against its own table; None where another table was given, or
        there is no file.
    breaches
        Whether there is a privacy breach, for each protected column, with --breach.
    law
        What an analyst reads: for JSON. Its sentences are among `plain`.
    """

    joint: md.Joint | None
    audit: md.Audit
    population: PopulationPromise | None
    secret: str
    subject: str
    plain: list[str]
    details: list[str]
    measures: ChannelMeasures | None = None
    statement: Statement | None = None
    breaches: tuple[BreachVerdict, ...] = ()
    law: Mapping[str, Any] | None = None

    @property
    def satisfied(self) -> bool:
        """Whether all that was asked for holds, and the file states nothing that does not."""
        # A file whose figures are wrong keeps its promise by luck at best.
        statement = self.statement
        is_wrong = statement is not None and bool(statement.wrong or statement.unproven)
        is_breached = not all(one.excluded for one in self.breaches)
        return self.audit.satisfied and not is_wrong and not is_breached

    @property
    def lacks_time(self) -> bool:
        """Whether all would hold, were it not for proofs that the time did not suffice for."""
        statement = self.statement
        if self.satisfied or statement is None:
            return False
        others = tuple(one for one in statement.unproven if not one.out_of_time)
        return self._replace(statement=replace(statement, unproven=others)).satisfied


def audit(
    reporter: Reporter,
    what: AuditOptions,
    table: table_options.OtherTable,
    budget: options.MaybeBudget,
    after: options.AfterOptions,
    proof_time: options.ProofTime,
    measures: AllMeasures,
    common: options.CommonOptions,
) -> int:
    """Check exactly whether a channel keeps a privacy notion: exit 0 if it does, 1 if not.

    A channel file is checked against its own table and notion unless others are given.
    """
    channel = what.channel
    matrix = what.matrix
    if (channel is None) == (matrix is None):
        raise InputError("give either a CHANNEL file or --matrix W.csv")
    if after.after and channel is None:
        raise InputError("--after belongs to a CHANNEL file, not to --matrix")
    measures.refuse_alone()
    end = proof_time.end(certificate=what.certificate)
    levels = None if what.breach is None else _breach_levels(what.breach)
    if what.certificate:
        _check_certificate(channel, table, budget, after)
    if channel is None:
        _refuse_breach(levels, "--matrix")
        _refuse_measures(measures, "--matrix")
        # Without a channel there is a matrix: "" only satisfies the type checker.
        verdict = _audit_matrix(reporter, matrix or "", table, budget)
    elif is_mechanism(channel):
        _refuse_breach(levels, "a mechanism file, which has no probabilities")
        return audit_mechanism(
            channel, reporter, common, with_sizes=measures.all_measures
        )
    else:
        from mechdesign.auditing.stated import has_table

        loaded = md.load(channel)
        if table.table is not None or after.after:
            loaded.on_tables(OWN_COUNTS)
        if what.certificate and not has_table(loaded):
            raise InputError(NO_CERTIFICATE)
        if after.after:
            _refuse_breach(levels, "several releases together (--after)")
            _refuse_measures(measures, "several releases together (--after)")
        verdict = _audit_channel(reporter, loaded, channel, table, budget, after)
        if what.certificate:
            verdict = _with_certificate(reporter, loaded, verdict, after, end)
        if verdict.joint is None:
            _refuse_breach(levels, "a channel for boxes of rows")
            _refuse_measures(measures, "a channel for boxes of rows")
        elif measures.all_measures:
            # On the table of the verdict, so that both speak of the same records.
            all_of_them = measures.of(loaded, verdict.joint)
            verdict = verdict._replace(measures=all_of_them)
        if levels is not None and verdict.joint is not None:
            from mechdesign.auditing.breaches import breaches

            found = breaches(loaded, verdict.joint, *levels)
            verdict = verdict._replace(breaches=found)
    return _answer(reporter, verdict, matrix or str(channel), table, measures, common)


def _check_certificate(
    channel: str | None,
    table: table_options.OtherTable,
    budget: options.MaybeBudget,
    after: options.AfterOptions,
) -> None:
    """Raise InputError where there is no bound of the file itself to prove."""
    if channel is None or is_mechanism(channel):
        raise InputError(NO_CERTIFICATE)
    # Earlier releases may have columns that the table of the file lacks.
    has_other_table = table.table is not None and not after.after
    if has_other_table or budget != options.MaybeBudget():
        raise InputError(
            "--certificate proves the bounds of a file on its own table and for its own promise: "
            "leave --table (but with --after) and budgets out"
        )


def _with_certificate(
    reporter: Reporter,
    channel: md.Channel,
    verdict: Verdict,
    after: options.AfterOptions,
    end: float,
) -> Verdict:
    """The verdict with the bounds of the file proven again, those that are by the moment `end`."""
    from mechdesign.auditing.stated import statement_of
    from mechdesign.mechanisms.proving import (
        ALONE,
        Beside,
        boxes_with_certificate,
        with_certificate,
    )

    if channel.joint is None:
        with reporter.work("proving the bounds"):
            boxes = boxes_with_certificate(channel, end=end)
            return verdict._replace(statement=boxes)
    statement = verdict.statement or statement_of(channel)
    beside = ALONE
    if after.after:
        beside = Beside(after.channels(), verdict.joint)
    with reporter.work("proving the bounds"):
        proven = with_certificate(statement, channel, beside, end=end)
        return verdict._replace(statement=proven)


def _breach_levels(text: str) -> tuple[float, float]:
    """The two probabilities of --breach RHO1,RHO2."""
    first, comma, second = text.partition(",")
    if not comma:
        raise InputError(f"--breach ({text!r}) must be RHO1,RHO2, as in 0.1,0.5")
    return number("--breach", first), number("--breach", second)


def _refuse_breach(levels: tuple[float, float] | None, subject: str) -> None:
    """Raise InputError if breaches are asked of a subject that they are not computed for."""
    if levels is not None:
        raise InputError(
            f"--breach is for the file of a channel of one column, not for {subject}: leave it out"
        )


def _refuse_measures(measures: AllMeasures, subject: str) -> None:
    """Raise InputError if all measures are asked of a subject that has none."""
    if measures.all_measures:
        raise InputError(
            "--all-measures is for the file of a channel of columns or rows, not for "
            f"{subject}: "
            "leave it out"
        )


def _answer(
    reporter: Reporter,
    verdict: Verdict,
    name: str,
    table: table_options.OtherTable,
    measures: AllMeasures,
    common: options.CommonOptions,
) -> int:
    """Print the verdict, with measures where they are asked for."""
    from mechdesign.report.command_records import (
        audit_record,
        breach_sentences,
        figures_record,
        figures_texts,
    )
    from mechdesign.report.sentences import audit_average_texts
    from mechdesign.report.terminal import audit_text, measures_text

    # Notices on a channel's own table were printed when it was designed.
    if table.table is not None and verdict.joint is not None:
        reporter.notices(verdict.joint.notices)
    statement = verdict.statement
    # A breach that was asked about is a question of its own: the promise is judged without it.
    is_wrong = statement is not None and bool(statement.wrong)
    _report_verdict(reporter, name, verdict.audit.satisfied and not is_wrong)
    channel_measures = verdict.measures

    def record() -> dict[str, Any]:
        answer = dict(audit_record(verdict.audit, verdict.population))
        answer |= verdict.law or {}
        if channel_measures is not None:
            answer["measures"] = asdict(channel_measures)
        if verdict.breaches:
            answer["breaches"] = [
                {**asdict(one), "excluded": one.excluded} for one in verdict.breaches
            ]
        if statement is not None:
            answer["figures"] = figures_record(statement)
        return answer

    def text() -> str:
        averages = audit_average_texts(verdict.audit.averages)
        plain = [*verdict.plain, *averages, *breach_sentences(verdict.breaches)]
        details = list(verdict.details)
        if statement is not None:
            figures = figures_texts(statement)
            # Whoever reads only the first lines must see that a figure of the file is wrong.
            if statement.wrong or statement.unproven:
                plain = [*figures, *plain]
            else:
                details += figures
        answer = audit_text(
            verdict.audit,
            plain,
            details,
            secret=verdict.secret,
            subject=verdict.subject,
        )
        if channel_measures is not None:
            answer += "\n\n" + measures_text(channel_measures, measures.per_output)
        return answer

    common.answer(record, text)
    if verdict.lacks_time:
        return GAVE_UP
    return 0 if verdict.satisfied else NO


def _report_verdict(reporter: Reporter, name: str, satisfied: bool) -> None:
    """The line of a log on an audit."""
    verb = "violates"
    if satisfied:
        verb = "keeps"
    reporter.done("audited", f"{name} {verb} the notion", satisfied=satisfied)


def _audit_matrix(
    reporter: Reporter,
    matrix: str,
    table: table_options.OtherTable,
    budget: options.MaybeBudget,
) -> Verdict:
    """The verdict on an outside matrix."""
    from mechdesign.auditing.matrix import audit_file
    from mechdesign.channel.output_cells import absent_law
    from mechdesign.report.command_records import law_record
    from mechdesign.report.promises import population_line, protected_name
    from mechdesign.report.sentences import population_sentences

    if table.table is None:
        raise InputError(
            "--matrix needs --table TABLE: privacy depends on the table that the matrix is used on"
        )
    notion = budget.notion_or("alip")
    with reporter.work("auditing"):
        joint = table.joint(table.table)
        result = audit_file(matrix, joint, notion, text=table.text())
    plain = _matrix_law_sentences(result, joint)
    details: list[str] = []
    if result.population is not None:
        plain.append(population_line(result.population, None, notion))
        details = population_sentences(result.population, None, joint.total)
    law = law_record(result.law, absent_law(result.outputs, joint.useful.columns))
    return Verdict(
        joint,
        result.audit,
        result.population,
        protected_name(joint.sensitive),
        "a released value",
        plain,
        details,
        law=law,
    )


def _matrix_law_sentences(result: MatrixAudit, joint: md.Joint) -> list[str]:
    """What an analyst reads of the outputs of an outside matrix."""
    from mechdesign.channel.output_cells import absent_law
    from mechdesign.report.law_section import TITLE, law_lines

    if result.law is not None:
        return law_lines(result.law)
    return [f"{TITLE}: {absent_law(result.outputs, joint.useful.columns)}."]


def _audit_channel(
    reporter: Reporter,
    channel: md.Channel,
    path: str,
    table: table_options.OtherTable,
    budget: options.MaybeBudget,
    after: options.AfterOptions,
) -> Verdict:
    """The verdict on a channel file, alone or together with earlier releases."""
    from mechdesign.auditing.composition import common_table
    from mechdesign.auditing.population import set_behind
    from mechdesign.auditing.population_promise import population_promise
    from mechdesign.auditing.stated import has_table, statement_of
    from mechdesign.report.first_screen import no_population_of_rows
    from mechdesign.report.law_section import channel_law_lines
    from mechdesign.report.promises import (
        POPULATION_TOTAL,
        guess_sentence,
        population_line,
        protected_name,
        relative_sentences,
        subject_of,
    )
    from mechdesign.report.sentences import (
        other_table_sentences,
        population_sentences,
    )

    notion = _notion(channel, path, budget)
    earlier = after.channels()
    relative = relative_sentences(channel)
    plain = [*relative, *_earlier_sentences(channel, earlier)]
    details: list[str] = []
    with reporter.work("auditing"):
        if earlier:
            # All releases are judged on one table that has the useful columns of each.
            given = table.read(path, channel, *earlier)
            joint = common_table([channel, *earlier], given)
            result = md.audit(channel, joint, notion, after=earlier)
            secret = protected_name(joint.sensitive)
            subject = "all releases together"
            return Verdict(joint, result, None, secret, subject, plain, details)
        if channel.joint is None and has_table(channel):
            # Boxes carry counts in the place of a table: there is none to read, and options that
            # would read one are refused.
            joint = table.read(path, channel)
        else:
            joint = table.read_for(channel, path)
        if table.table is not None and joint is not None:
            plain += other_table_sentences(channel, joint, table.table)
        sensitive = channel.boxed.sensitive if joint is None else joint.sensitive
        secret = protected_name(sensitive)
        # Another table decides nothing of the figures of the file.
        statement: Statement | None = None
        if table.table is None and channel.joint is not None:
            statement = statement_of(channel)
            guesses = guess_sentence(channel, secret)
            if guesses is not None:
                plain.insert(0, guesses)
        # A design with --confidence is judged on the confidence set that it was made for.
        confidence = None if joint is None else set_behind(channel, joint)
        result = md.audit(channel, joint, notion, population=confidence)
        law = _law_of(channel, joint)
        lines = [] if law is None else channel_law_lines(channel, joint)
        # A promise for the population needs counts of records, and one secret for all columns.
        promise: PopulationPromise | None = None
        if joint is not None and joint.is_sample:
            promise = population_promise(channel, joint, notion, chosen=confidence)
            details = population_sentences(promise, confidence, joint.total)
    plain += lines
    if promise is not None and notion is not None:
        # Rows promise nothing there without a confidence level: the figures are for specialists.
        if confidence is None and channel.published is not None:
            plain.append(no_population_of_rows(channel))
        else:
            plain.append(population_line(promise, confidence, notion))
        if relative:
            details.append(POPULATION_TOTAL)
    subject = subject_of(channel)
    verdict = Verdict(joint, result, promise, secret, subject, plain, details)
    return verdict._replace(statement=statement, law=law)


def _law_of(channel: md.Channel, joint: md.Joint | None) -> Mapping[str, Any] | None:
    """What an analyst reads, for JSON; None on a table with other symbols than the channel's."""
    from mechdesign.auditing.law import channel_law
    from mechdesign.report.command_records import law_record

    if joint is not None:
        there, own = joint.useful, channel.useful
        if there.columns != own.columns or there.symbols != own.symbols:
            return None
    return law_record(channel_law(channel, joint), channel.law_absent)


def _notion(
    channel: md.Channel, path: str, budget: options.MaybeBudget
) -> md.Notion | None:
    """The notion of the options, or the one that the channel was designed for.

    None for one that releases nothing, and promises nothing.
    """
    recorded = channel.promise
    if budget != options.MaybeBudget():
        # A budget without a notion is one of the recorded kind.
        default = "alip"
        if recorded is not None:
            default = recorded.name
        return budget.notion_or(default)
    if recorded is None and channel.channels:
        raise InputError(
            f"{path} does not say which notion it was designed for: give --notion and a budget"
        )
    return recorded


def _earlier_sentences(channel: md.Channel, earlier: list[md.Channel]) -> list[str]:
    """Sentences on earlier releases: those that the file names, and those given on the
    command line.

    Both are compared by digest, because channel files are renamed and moved. Neither set need
    contain the other: what was named and not given was not checked, and what was given without
    being named is checked all the same, and said.
    """
    from mechdesign.channel.file import file_digest

    # What the channel file says it was designed after, beside what the user gave.
    named = set(channel.record.after)
    if not earlier:
        if not named:
            return []
        return [
            f"It was designed after {len(named)} other release(s) of the same records. Whether "
            "all together keep the promise was not checked here; give each of them with --after."
        ]
    given = {file_digest(release) for release in earlier}
    sentences = [
        f"Judged together with {len(earlier)} earlier release(s) of the same record."
    ]
    missing = len(named - given)
    if missing:
        sentences.append(
            f"{missing} of the {len(named)} releases that the channel was designed after were "
            "not given, and not checked."
        )
    unnamed = len(given - named)
    if unnamed and not named:
        sentences.append("It was designed without regard to earlier releases.")
    elif unnamed:
        verb = "are"
        if unnamed == 1:
            verb = "is"
        sentences.append(
            f"{unnamed} of these {verb} not among the {len(named)} that the channel was designed "
            "after."
        )
    return sentences
