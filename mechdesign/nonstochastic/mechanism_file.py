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

*The document* is JSON, version 1. For the mean of kWh by town with one bit, a file says, among
other things:

    "query": "mean", "column": "kwh", "group_by": ["town"], "range": ["0", "60"],
    "epsilon": 1.0, "outputs_allowed": 2,
    "mechanisms": [{"individuals": 2, "range": ["0", "60"], "thresholds": ["15", "45"],
                    "outputs": 2, "witness": "an individual of weight 1/2, the others .."}, ..],
    "guarantee": {"outputs": 2, "answers_each": null, "total_epsilon": 1.0, ..}

There is an entry of `mechanisms` for each size of group (`individuals`), so a mean of two values is
released as one of the cells [0, 15), [15, 45) and [45, 60]. Exact numbers are texts such as "-3/8"
(`Exact`). Evenly spaced thresholds are written as {"first": .., "step": .., "number": ..}
(`Spacing`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeAlias, get_args

from pydantic import (
    Discriminator,
    Field,
    PlainSerializer,
    PlainValidator,
    Tag,
    WithJsonSchema,
)

from mechdesign.core import documents
from mechdesign.core.above import above
from mechdesign.core.documents import FileDocument, Record
from mechdesign.core.errors import InputError
from mechdesign.core.files import PathLike
from mechdesign.core.wording import quoted
from mechdesign.nonstochastic.noiseless import (
    FibreCertificate,
    certify,
    outputs_allowed,
)
from mechdesign.nonstochastic.quantizers import EvenThresholds, Quantizer
from mechdesign.nonstochastic.queries import (
    MOST_INTEGERS,
    QUERY,
    Domain,
    FiniteDomain,
    IntervalDomain,
    build_query,
)

if TYPE_CHECKING:
    from mechdesign.jobs.file_run import FileRecipe
    from mechdesign.jobs.options import ReleaseOptions


# ----------------------------------------------------------------------------- document

FORMAT = "mechdesign.quantizer"
VERSION = 1

Outside: TypeAlias = Literal["refuse", "clip", "mark", "drop"]

OUTSIDE: tuple[Outside, ...] = get_args(Outside)
"""Treatments of a value outside the range.

In order: an error, the end of the range, an empty answer, and no record.
"""

SHORTEST_RUN = 4
"""Fewer thresholds are written one by one, even if they are evenly spaced."""

LARGEST_RULE = 1_000_000
"""Most thresholds of a rule, ten times those of the largest design. More would fill the memory of a
reader."""

LARGEST_GROUP = 10**12
"""Most individuals of a group. No file has as many records."""

LARGEST_COUNT = 2**62
"""Most outputs. No design has as many."""

_FRACTION = r"-?[0-9]{1,2000}(/0*[1-9][0-9]{0,2000})?"
"""Pattern of an exact number. Doubles and their multiples have at most some hundred digits."""


def _fraction(value: Any) -> Fraction:
    """The exact number of a text in a file."""
    # `Fraction` itself would accept 1e999999999, and write it out.
    if not isinstance(value, str) or not re.fullmatch(_FRACTION, value, re.ASCII):
        raise InputError("must be an exact fraction as text, such as 7 or -3/8")
    return Fraction(value)


Exact = Annotated[
    Fraction,
    PlainValidator(_fraction),
    PlainSerializer(str),
    WithJsonSchema({"type": "string", "pattern": f"^{_FRACTION}$"}),
]

_Ends = Annotated[
    tuple[Exact, Exact], Field(description="the two ends, the lower one first")
]


class Spacing(Record):
    """Evenly spaced thresholds, as a rule."""

    first: Exact
    step: Exact
    number: Annotated[int, Field(ge=1, le=LARGEST_RULE)]


def _thresholds_tag(value: Any) -> str:
    """The kind of thresholds in a file: a rule, or a list."""
    # The tags begin with "@", which messages leave out (`core.documents`).
    if isinstance(value, dict | Spacing):
        return "@rule"
    return "@list"


class MechanismEntry(Record):
    """The quantiser for one size of group, and its certificate."""

    individuals: Annotated[int, Field(ge=1, le=LARGEST_GROUP)]
    range: _Ends
    thresholds: Annotated[
        Annotated[tuple[Exact, ...], Tag("@list")] | Annotated[Spacing, Tag("@rule")],
        Discriminator(_thresholds_tag),
    ]
    released: tuple[Exact, ...] = ()
    outputs: Annotated[int, Field(ge=1, le=LARGEST_COUNT)]
    witness: str


class MechanismDocument(FileDocument):
    """A mechanism file: quantisers and their guarantee, which every reader recomputes."""

    FORMAT: ClassVar[str] = FORMAT
    WHAT: ClassVar[str] = "mechanism file"
    VERSIONS: ClassVar[tuple[int, ...]] = (VERSION,)

    query: Annotated[str, QUERY]
    column: str
    group_by: tuple[str, ...]
    range: _Ends
    values: Annotated[
        tuple[Exact, ...],
        Field(
            max_length=MOST_INTEGERS,
            description="all values, if they are finitely many",
        ),
    ] = ()
    outside: Outside = "refuse"
    epsilon: Annotated[float, Field(allow_inf_nan=False)]
    outputs_allowed: int
    mechanisms: Annotated[tuple[MechanismEntry, ...], Field(min_length=1)]
    guarantee: dict[str, Any]
    provenance: dict[str, Any]


# ---------------------------------------------------------------------------- mechanism

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
                f"--outside ({quoted(outside)}) must be one of {', '.join(OUTSIDE)}"
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
