"""A mechanism: the quantisers of a query with its budget and certificates, written and read.

A quantiser cuts the answers of a query at its thresholds, and the cell is released. Its certificate
says how many different outputs one individual can bring about, at most floor(2^epsilon). The means
of groups of 12 and of 30 records need different thresholds, so there is a `SizedQuantizer` for each
size. For example, the mean of two values in [0, 60], with one bit: ::

    query "mean", domain [0, 60], epsilon 1.0          floor(2^1) = 2 outputs are allowed
    individuals 2, thresholds 15, 45, outputs 2        one value moves the mean by 30 at most
    provenance {"layout": .., "missing": "refuse"}     the rule for groups of other sizes (`sizes`)

`MechanismFile.save` writes all of it as a `MechanismDocument`, with exact numbers.

`MechanismFile.load` builds the quantisers from the thresholds in the document and counts their
outputs again (`certify`); where a number of the file differs from the count, it refuses the file.
A hash shows that a file was damaged, not that it was written honestly: the editor of a number can
hash the file again. Thus the count. `claims` compares what the file says beside it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from mechdesign.core import documents
from mechdesign.core.above import above
from mechdesign.core.errors import InputError
from mechdesign.core.files import PathLike
from mechdesign.core.wording import quoted
from mechdesign.nonstochastic.domains import (
    Domain,
    FiniteDomain,
    IntervalDomain,
)
from mechdesign.nonstochastic.mechanism_document import (
    OUTSIDE,
    SHORTEST_RUN,
    MechanismDocument,
    MechanismEntry,
    Outside,
    Spacing,
)
from mechdesign.nonstochastic.named_queries import build_query
from mechdesign.nonstochastic.noiseless import FibreCertificate, certify
from mechdesign.nonstochastic.output_budgets import outputs_allowed
from mechdesign.nonstochastic.quantizers import EvenThresholds, Quantizer

if TYPE_CHECKING:
    from mechdesign.jobs.file_recipe import FileRecipe
    from mechdesign.jobs.options import ReleaseOptions

DISCLOSED_OUTSIDE: tuple[Outside, ...] = ("mark", "drop")
"""Treatments that disclose that a value lies outside. That is one more output on every fibre:
whatever the others are, one individual can bring about one further answer, an empty one or that of
the others alone."""

DIVIDED = ("error", "lifted")
"""Splits of a total budget in which every size of group has a number of outputs of its own."""


@dataclass(frozen=True)
class SizedQuantizer:
    """The quantiser for groups of `individuals` records, and its certificate."""

    individuals: int
    quantizer: Quantizer
    certificate: FibreCertificate


@dataclass(frozen=True, kw_only=True)
class MechanismFile:
    """The quantisers of a query with their budget and guarantee.

    Parameters
    ----------
    query
        One of `QUERY`.
    column, group_by
        Names of the columns that it was designed for.
    domain
        The possible values of one individual; the interval (0, 1) for counts.
    epsilon
        The budget of one answer, in bits.
    mechanisms
        One for each size of group; none until `sizes` has placed thresholds for those of a table.
    outside
        The treatment of a value outside the domain, one of `OUTSIDE`.
    guarantee
        A record for readers, of JSON values: the outputs, the budgets in all, and so on.
    provenance
        Another one, of how the mechanism was made. Its layout, thresholds, points, weights and
        split also place the thresholds of new sizes of groups (`sizes`); these are certified like
        all others.
    """

    query: str
    column: str
    group_by: tuple[str, ...]
    domain: Domain
    epsilon: float
    mechanisms: tuple[SizedQuantizer, ...]
    outside: Outside = "refuse"
    guarantee: dict[str, Any] = field(default_factory=dict[str, Any])
    provenance: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def is_designed(self) -> bool:
        """Whether it has quantisers; before the sizes of groups are known it has none."""
        return bool(self.mechanisms)

    @property
    def outputs(self) -> int:
        """The most outputs of an answer.

        Where records are dropped, the size of a group depends on values, so every size may occur:
        then it is the number of outputs that the budget allows.
        """
        if self.outside == "drop" and self.query != "identity":
            return outputs_allowed(self.epsilon)
        return max(m.certificate.outputs for m in self.mechanisms)

    @property
    def divided(self) -> bool:
        """Whether a total budget was divided: then the outputs depend on the size of the group."""
        return self.provenance.get("split") in DIVIDED

    @property
    def answer(self) -> str:
        """The header of the answers, such as ``quantile_0.9_kwh``."""
        if self.query == "identity":
            return self.column
        return f"{self.query.replace(':', '_')}_{self.column}"

    def certified(self, individuals: int, quantizer: Quantizer) -> SizedQuantizer:
        """The quantiser for groups of `individuals` records, with all outputs counted."""
        query = build_query(self.query, individuals, self.domain)
        certificate = certify(query, quantizer)
        if self.outside in DISCLOSED_OUTSIDE:
            # Attained as well: the witness's individual may have a value outside.
            certificate = FibreCertificate(
                certificate.outputs + 1,
                certificate.attained + 1,
                f"{certificate.witness}; and one output outside the range",
            )
        return SizedQuantizer(individuals, quantizer, certificate)

    def meeting(self, outside: Outside) -> MechanismFile:
        """The same thresholds with another treatment of values outside the range, counted again.

        Raises
        ------
        InputError
            If the treatment is unknown, is not for this query, or is one more output than the
            budget allows.
        """
        if outside not in OUTSIDE:
            raise InputError(
                f"outside ({quoted(outside)}) must be one of {', '.join(OUTSIDE)}"
            )
        if outside in DISCLOSED_OUTSIDE and self.query == "count":
            raise InputError(
                f"a record counts as 0 or 1: there is nothing outside to {outside}"
            )
        changed = replace(self, outside=outside)
        certified: list[SizedQuantizer] = []
        for sized in self.mechanisms:
            certified.append(changed.certified(sized.individuals, sized.quantizer))
        allowed = outputs_allowed(self.epsilon)
        too_many = any(m.certificate.outputs > allowed for m in certified)
        # A divided budget is spent to the last output, by the product over all answers of an
        # individual.
        newly_disclosed = outside in DISCLOSED_OUTSIDE and outside != self.outside
        if too_many or (self.divided and newly_disclosed):
            raise InputError(
                f"to {outside} what lies outside the range is one more output than this mechanism "
                f"has room for; design one with --outside {outside}"
            )
        return replace(changed, mechanisms=tuple(certified))

    @property
    def document(self) -> MechanismDocument:
        """The file as a document."""
        values: tuple[Fraction, ...] = ()
        if isinstance(self.domain, FiniteDomain):
            values = self.domain.values
        # Without validation: the numbers are exact already, and validation wants texts.
        return MechanismDocument.model_construct(
            query=self.query,
            column=self.column,
            group_by=self.group_by,
            range=(self.domain.lo, self.domain.hi),
            values=values,
            outside=self.outside,
            epsilon=self.epsilon,
            outputs_allowed=outputs_allowed(self.epsilon),
            mechanisms=tuple(_entry(sized) for sized in self.mechanisms),
            guarantee=self.guarantee,
            provenance=self.provenance,
        )

    def save(self, path: PathLike, *, overwrite: bool = False) -> None:
        """Write the file, whole or not at all.

        Raises
        ------
        InputError
            If the path exists (without `overwrite`), is a folder or cannot be written.
        """
        documents.write_document(path, self.document, overwrite=overwrite)

    def recipe(self, options: ReleaseOptions) -> FileRecipe:
        """The recipe of a release of single records (for `sanitise` and `sanitise_file`)."""
        return above("numbers").NumbersRecipe.of(self, options)

    @classmethod
    def load(cls, path: PathLike) -> MechanismFile:
        """Read a file and certify every quantiser again.

        Raises
        ------
        InputError
            If the file is missing, damaged, edited, of another format or version, or its
            certificate is not what the count gives.
        """
        mechanism, _, disagreements = loaded(path)
        if disagreements:
            raise InputError(f"{path}: {disagreements[0]}")
        return mechanism


def loaded(
    path: PathLike,
) -> tuple[MechanismFile, tuple[MechanismEntry, ...], list[str]]:
    """Read a file and count its outputs again.

    Returns
    -------
    mechanism, entries, disagreements
        The mechanism with counted certificates, the entries of its quantisers as written, and a
        sentence for each number of the file that differs from the count.
    """

    def recount(
        _: Any, document: MechanismDocument
    ) -> tuple[MechanismFile, tuple[MechanismEntry, ...], list[str]]:
        mechanism, disagreements = _recounted(document)
        return mechanism, document.mechanisms, disagreements

    return documents.read_built(path, MechanismDocument, recount)


def _entry(sized: SizedQuantizer) -> MechanismEntry:
    """A quantiser as it is written."""
    cuts = sized.quantizer.thresholds
    if isinstance(cuts, EvenThresholds) and len(cuts) >= SHORTEST_RUN:
        thresholds = Spacing.model_construct(
            first=cuts.first, step=cuts.step, number=cuts.number
        )
    else:
        thresholds = tuple(cuts)
    return MechanismEntry.model_construct(
        individuals=sized.individuals,
        range=(sized.quantizer.lo, sized.quantizer.hi),
        thresholds=thresholds,
        released=sized.quantizer.released,
        outputs=sized.certificate.outputs,
        witness=sized.certificate.witness,
    )


def _domain(document: MechanismDocument) -> Domain:
    """The domain of a document, whose values must be as a writer has them."""
    if not document.values:
        return IntervalDomain(*document.range)
    domain = FiniteDomain(document.values)
    # Values of a table are doubles, and another value would never occur.
    as_doubles = tuple(Fraction(float(value)) for value in domain.values)
    if document.values != as_doubles or document.range != (domain.lo, domain.hi):
        raise InputError(
            "values must be doubles that increase, from the lower end of the range to the upper one"
        )
    return domain


def _quantizer(entry: MechanismEntry) -> Quantizer:
    """The quantiser of an entry; its constructor checks the thresholds."""
    lo, hi = entry.range
    cuts = entry.thresholds
    if isinstance(cuts, Spacing):
        cuts = EvenThresholds(cuts.first, cuts.step, cuts.number)
    return Quantizer(lo, hi, cuts, entry.released)


def _recounted(document: MechanismDocument) -> tuple[MechanismFile, list[str]]:
    """The mechanism of a document, and a sentence for each number that differs from the count.

    Three numbers follow from the rest: the outputs that the budget allows, those of every
    quantiser, and those that the guarantee speaks of.
    """
    domain = _domain(document)
    allowed = outputs_allowed(document.epsilon)
    disagreements: list[str] = []
    if document.outputs_allowed != allowed:
        disagreements.append(
            f"outputs_allowed ('{document.outputs_allowed}') is not floor(2^epsilon) = {allowed}"
        )

    # Without quantisers at first: `certified` needs the query, the domain and the treatment.
    mechanism = MechanismFile(
        query=document.query,
        column=document.column,
        group_by=document.group_by,
        domain=domain,
        epsilon=document.epsilon,
        mechanisms=(),
        outside=document.outside,
        guarantee=document.guarantee,
        provenance=document.provenance,
    )
    certified: list[SizedQuantizer] = []
    for entry in document.mechanisms:
        sized = mechanism.certified(entry.individuals, _quantizer(entry))
        certified.append(sized)
        outputs = sized.certificate.outputs
        if outputs != entry.outputs or outputs > allowed:
            disagreements.append(
                f"the mechanism for {entry.individuals} individuals has {outputs} outputs where "
                f"the file says '{entry.outputs}' and {allowed} are allowed"
            )
    mechanism = replace(mechanism, mechanisms=tuple(certified))

    stated = document.guarantee.get("outputs", mechanism.outputs)
    if stated != mechanism.outputs:
        disagreements.append(
            f"the guarantee speaks of {quoted(stated)} outputs, but there are {mechanism.outputs}"
        )
    return mechanism, disagreements
