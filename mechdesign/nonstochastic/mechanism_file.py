"""The mechanism file, version 1: a quantiser with its query, budget and certificate (JSON).

Thresholds are exact fractions; evenly spaced ones are written as a first one, a step and a number.

A hash shows that a file was damaged, not that it was written honestly: whoever edits a number can hash
again. So the certificates are counted from the thresholds whenever a file is loaded; `claims` compares the rest.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import (
    Discriminator,
    Field,
    PlainSerializer,
    PlainValidator,
    Tag,
    WithJsonSchema,
)

from mechdesign.core import documents
from mechdesign.core.documents import FileDocument
from mechdesign.core.errors import InputError
from mechdesign.core.files import PathLike
from mechdesign.core.records import Matching, Record
from mechdesign.core.wording import quoted
from mechdesign.nonstochastic import queries
from mechdesign.nonstochastic.domains import (
    MOST_INTEGERS,
    Domain,
    FiniteDomain,
    IntervalDomain,
)
from mechdesign.nonstochastic.levels import outputs_allowed
from mechdesign.nonstochastic.noiseless import FibreCertificate, certify
from mechdesign.nonstochastic.quantizers import EvenThresholds, Quantizer

if TYPE_CHECKING:
    from mechdesign.jobs.options import ReleaseOptions
    from mechdesign.nonstochastic.number_cells import NumbersRecipe

FORMAT = "mechdesign.quantizer"
VERSION = 1

QUERY = Matching(
    r"identity|mean|sum|count|median|min|max|quantile:0?\.0{0,15}[1-9][0-9]{0,15}",
    "identity, mean, sum, count, median, min, max or quantile:P with 0 < P < 1 (such as quantile:0.9)",
)
"""What `mechdesign quantize` answers."""

Outside: TypeAlias = Literal["refuse", "clip", "mark", "drop"]

OUTSIDE: tuple[Outside, ...] = ("refuse", "clip", "mark", "drop")
"""What becomes of a value outside the range: an error, the end of the range, an empty answer, or no record."""

TOLD: tuple[Outside, ...] = ("mark", "drop")
"""Here that a value lies outside is one more output. Whatever the others are, one individual brings it about by one
answer: an empty one, or the one of the others alone."""

DIVIDED = ("error", "lifted")
"""Ways to split a total budget that give every size of group a number of outputs of its own."""

SHORTEST_RUN = 4
"""Thresholds from which on even spacing is written as a rule."""

LARGEST_RULE = 1_000_000
"""Thresholds of a rule: ten times what a design makes; more would fill the memory of a reader."""

LARGEST_GROUP = 10**12
"""Individuals: more than any file of records has."""

LARGEST_COUNT = 2**62
"""Outputs: more than any design has."""

_FRACTION = r"-?[0-9]{1,2000}(/0*[1-9][0-9]{0,2000})?"
"""Doubles and their multiples have at most some hundred digits."""


def _fraction(value: Any) -> Fraction:
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


class _Spacing(Record):
    first: Exact
    step: Exact
    number: Annotated[int, Field(ge=1, le=LARGEST_RULE)]


class _Mechanism(Record):
    individuals: Annotated[int, Field(ge=1, le=LARGEST_GROUP)]
    range: _Ends
    thresholds: Annotated[
        Annotated[tuple[Exact, ...], Tag("@list")] | Annotated[_Spacing, Tag("@rule")],
        Discriminator(
            lambda value: "@rule" if isinstance(value, (dict, _Spacing)) else "@list"
        ),
    ]
    released: tuple[Exact, ...] = ()
    outputs: Annotated[int, Field(ge=1, le=LARGEST_COUNT)]
    witness: str


class MechanismDocument(FileDocument):
    """A mechanism file: the quantisers of a query with what they promise, which a reader counts again."""

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
    mechanisms: Annotated[tuple[_Mechanism, ...], Field(min_length=1)]
    guarantee: dict[str, Any]
    provenance: dict[str, Any]


@dataclass(frozen=True)
class SizedQuantizer:
    """The quantiser for groups of `individuals` records, and its certificate."""

    individuals: int
    quantizer: Quantizer
    certificate: FibreCertificate


@dataclass(frozen=True, kw_only=True)
class MechanismFile:
    """What a mechanism file holds.

    Parameters
    ----------
    query
        As `QUERY` says.
    column, group_by
        Names of the columns it was made for.
    domain
        What one individual's value can be; (0, 1) for counts.
    epsilon
        The budget of one answer, in bits.
    mechanisms
        One for each size of group.
    guarantee, provenance
        Records for readers, of JSON values; nothing is computed from them.
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
    def outputs(self) -> int:
        """The most outputs of an answer. Where records are dropped, a group may be of any size: as many as allowed."""
        if self.outside == "drop" and self.query != "identity":
            return outputs_allowed(self.epsilon)
        return max(m.certificate.outputs for m in self.mechanisms)

    @property
    def divided(self) -> bool:
        """Whether groups of other sizes have other numbers of outputs, which a total budget was divided into."""
        return self.provenance.get("split") in DIVIDED

    @property
    def answer(self) -> str:
        """The header of the answers."""
        if self.query == "identity":
            return self.column
        return f"{self.query.replace(':', '_')}_{self.column}"

    def certified(self, individuals: int, quantizer: Quantizer) -> SizedQuantizer:
        """The quantiser for groups of `individuals` records, with all outputs counted."""
        found = certify(build_query(self.query, individuals, self.domain), quantizer)
        if self.outside in TOLD:
            witness = f"{found.witness}; and one output outside the range"
            found = FibreCertificate(found.outputs + 1, found.attained + 1, witness)
        return SizedQuantizer(individuals, quantizer, found)

    def meeting(self, outside: Outside) -> MechanismFile:
        """The same thresholds with another treatment of values outside the range, counted again."""
        if outside not in OUTSIDE:
            raise InputError(
                f"outside ({quoted(outside)}) must be one of {', '.join(OUTSIDE)}"
            )
        if outside in TOLD and self.query == "count":
            raise InputError(
                f"a record counts as 0 or 1: there is nothing outside to {outside}"
            )
        made = replace(self, outside=outside)
        again = tuple(
            made.certified(m.individuals, m.quantizer) for m in self.mechanisms
        )
        if any(
            m.certificate.outputs > outputs_allowed(self.epsilon) for m in again
        ) or (self.divided and outside in TOLD and outside != self.outside):
            raise InputError(
                f"to {outside} what lies outside the range is one more output than this mechanism has room for; "
                f"design one with --outside {outside}"
            )
        return replace(made, mechanisms=again)

    @property
    def document(self) -> MechanismDocument:
        """What the file holds."""
        return MechanismDocument.model_construct(
            **{name: getattr(self, name) for name in AS_IT_IS},
            range=(self.domain.lo, self.domain.hi),
            values=self.domain.values if isinstance(self.domain, FiniteDomain) else (),
            outputs_allowed=outputs_allowed(self.epsilon),
            mechanisms=tuple(map(_entry, self.mechanisms)),
        )

    def save(self, path: PathLike, *, overwrite: bool = False) -> None:
        """Write the file, whole or not at all.

        Raises
        ------
        InputError
            If the path exists (without `overwrite`), is a folder or cannot be written.
        """
        documents.write_document(path, self.document, overwrite=overwrite)

    def recipe(self, options: ReleaseOptions) -> NumbersRecipe:
        """How a table of single records is released through the mechanism (for `sanitise` and `sanitise_file`)."""
        # Only releases need the packages of jobs, and those need this module.
        from mechdesign.nonstochastic.number_cells import NumbersRecipe

        return NumbersRecipe.of(self, options)

    @classmethod
    def load(cls, path: PathLike) -> MechanismFile:
        """Read a file and certify every quantiser again.

        Raises
        ------
        InputError
            If the file is missing, damaged, edited, of another format or version, or its certificate
            is not what the count gives.
        """
        found, _, wrong = loaded(path)
        if wrong:
            raise InputError(f"{path}: {wrong[0]}")
        return found


AS_IT_IS = (
    "query",
    "column",
    "group_by",
    "outside",
    "epsilon",
    "guarantee",
    "provenance",
)
"""What a document says in the words of a `MechanismFile`."""


def loaded(path: PathLike) -> tuple[MechanismFile, tuple[_Mechanism, ...], list[str]]:
    """The file, counted again, the mechanisms as they were written, and the numbers that are not what is counted."""
    return documents.read_built(
        path, MechanismDocument, lambda _, found: _counted_again(found)
    )


def build_query(query: str, individuals: int, domain: Domain) -> queries.Query:
    """The query of a mechanism file for a group of `individuals` records."""
    if query == "identity":
        return queries.identity_query(domain)
    if query == "count":
        return queries.count_query(individuals)
    linear = {
        "mean": queries.mean_query,
        "sum": queries.sum_query,
        "median": queries.median_query,
    }
    if query in linear:
        return linear[query](individuals, domain)
    return queries.OrderStatistic(ranks_of(query, individuals)[0], individuals, domain)


def ranks_of(query: str, individuals: int) -> tuple[int, int]:
    """The places, from 1, in a sorted group, of the two values whose mean is the answer; none (0, 0) for other queries.

    The P-quantile of n values is the smallest one that a share P of them does not exceed: of rank ceil(P n).
    """
    if query == "median":
        return (individuals + 1) // 2, individuals // 2 + 1
    share = {"min": Fraction(0), "max": Fraction(1)}.get(query)
    if query.startswith("quantile:"):
        share = Fraction(query.partition(":")[2])
    rank = 0 if share is None else max(1, math.ceil(share * individuals))
    return rank, rank


def _entry(sized: SizedQuantizer) -> _Mechanism:
    cuts = sized.quantizer.thresholds
    short = isinstance(cuts, EvenThresholds) and len(cuts) >= SHORTEST_RUN
    return _Mechanism.model_construct(
        individuals=sized.individuals,
        range=(sized.quantizer.lo, sized.quantizer.hi),
        thresholds=_Spacing.model_construct(**vars(cuts)) if short else tuple(cuts),
        released=sized.quantizer.released,
        outputs=sized.certificate.outputs,
        witness=sized.certificate.witness,
    )


def _counted_again(
    found: MechanismDocument,
) -> tuple[MechanismFile, tuple[_Mechanism, ...], list[str]]:
    domain: Domain = (
        FiniteDomain(found.values) if found.values else IntervalDomain(*found.range)
    )
    if isinstance(domain, FiniteDomain) and (
        found.values != tuple(Fraction(float(v)) for v in domain.values)
        or found.range != (domain.lo, domain.hi)
    ):
        raise InputError(
            "values must be doubles that increase, from the lower end of the range to the upper one"
        )
    allowed, wrong = outputs_allowed(found.epsilon), list[str]()
    if found.outputs_allowed != allowed:
        wrong.append(
            f"outputs_allowed ('{found.outputs_allowed}') is not floor(2^epsilon) = {allowed}"
        )
    held = MechanismFile(
        domain=domain,
        mechanisms=(),
        **{name: getattr(found, name) for name in AS_IT_IS},
    )
    sized = list[SizedQuantizer]()
    for entry in found.mechanisms:
        cuts = entry.thresholds
        cuts = (
            EvenThresholds(cuts.first, cuts.step, cuts.number)
            if isinstance(cuts, _Spacing)
            else cuts
        )
        sized.append(
            held.certified(
                entry.individuals, Quantizer(*entry.range, cuts, entry.released)
            )
        )
        outputs = sized[-1].certificate.outputs
        if outputs != entry.outputs or outputs > allowed:
            wrong.append(
                f"the mechanism for {entry.individuals} individuals has {outputs} outputs where the file says "
                f"'{entry.outputs}' and {allowed} are allowed"
            )
    held = replace(held, mechanisms=tuple(sized))
    if found.guarantee.get("outputs", held.outputs) != held.outputs:
        said = quoted(found.guarantee["outputs"])
        wrong.append(
            f"the guarantee speaks of {said} outputs, but there are {held.outputs}"
        )
    return held, found.mechanisms, wrong
