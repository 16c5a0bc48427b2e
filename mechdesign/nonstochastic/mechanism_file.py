"""The mechanism file, version 1: a quantiser with its query, budget and certificate (JSON).

A reader does not believe the certificate: it counts again. Thresholds are exact fractions; evenly
spaced ones are written as a first one, a step and a number.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from mechdesign.core.documents import read_hashed, write_hashed
from mechdesign.core.errors import InputError
from mechdesign.core.files import PathLike
from mechdesign.core.numbers import quoted
from mechdesign.nonstochastic.domains import IntervalDomain
from mechdesign.nonstochastic.levels import outputs_allowed
from mechdesign.nonstochastic.noiseless import Certificate, certify
from mechdesign.nonstochastic.quantizers import Quantizer, common_integers
from mechdesign.nonstochastic.queries import LinearQuery, count_query, identity_query, mean_query, sum_query

FORMAT = "mechdesign.quantizer"
VERSION = 1
WHAT = "mechanism file"
KEYS = (
    "query",
    "column",
    "group_by",
    "range",
    "epsilon",
    "outputs_allowed",
    "mechanisms",
    "guarantee",
    "provenance",
)

QUERIES = ("identity", "mean", "sum", "count")
"""What `mechdesign quantize` answers."""

SHORTEST_RUN = 4
"""Thresholds from which on even spacing is written as a rule."""

LARGEST_RULE = 1_000_000
"""Thresholds of a rule: ten times what a design makes; more would fill the memory of a reader."""

LARGEST_GROUP = 10**12
"""Individuals: more than any file of records has."""

_FRACTION = re.compile(r"-?[0-9]{1,2000}(/0*[1-9][0-9]{0,2000})?", re.ASCII)
"""Doubles and their multiples have at most some hundred digits."""


@dataclass(frozen=True)
class SizedQuantizer:
    """The quantiser for groups of `individuals` records, and its certificate."""

    individuals: int
    quantizer: Quantizer
    certificate: Certificate


@dataclass(frozen=True, kw_only=True)
class MechanismFile:
    """What a mechanism file holds.

    Parameters
    ----------
    query
        One of `QUERIES`.
    column, group_by
        Names of the columns it was made for.
    domain
        The range of one individual's value; (0, 1) for counts.
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
    domain: IntervalDomain
    epsilon: float
    mechanisms: tuple[SizedQuantizer, ...]
    guarantee: Mapping[str, Any] = field(default_factory=dict[str, Any])
    provenance: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def save(self, path: PathLike, *, overwrite: bool = False) -> None:
        """Write the file, whole or not at all.

        Raises
        ------
        InputError
            If the path exists (without `overwrite`), is a folder or cannot be written.
        """
        content = {
            "query": self.query,
            "column": self.column,
            "group_by": list(self.group_by),
            "range": [str(self.domain.lo), str(self.domain.hi)],
            "epsilon": self.epsilon,
            "outputs_allowed": outputs_allowed(self.epsilon),
            "mechanisms": [_sized_record(m) for m in self.mechanisms],
            "guarantee": dict(self.guarantee),
            "provenance": dict(self.provenance),
        }
        write_hashed(path, FORMAT, VERSION, content, overwrite=overwrite)

    @classmethod
    def load(cls, path: PathLike) -> MechanismFile:
        """Read a file and certify every quantiser again.

        Raises
        ------
        InputError
            If the file is missing, damaged, edited, of another format or version, or its certificate
            is not what the count gives.
        """
        document = read_hashed(path, FORMAT, VERSION, KEYS, WHAT)
        try:
            return _contents(document)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None


def build_query(query: str, individuals: int, domain: IntervalDomain) -> LinearQuery:
    """The query of a mechanism file for a group of `individuals` records."""
    if query == "identity":
        return identity_query(domain)
    if query == "count":
        return count_query(individuals)
    return mean_query(individuals, domain) if query == "mean" else sum_query(individuals, domain)


def _sized_record(sized: SizedQuantizer) -> dict[str, Any]:
    quantizer = sized.quantizer
    return {
        "individuals": sized.individuals,
        "range": [str(quantizer.lo), str(quantizer.hi)],
        "thresholds": _thresholds_record(quantizer.thresholds),
        "outputs": sized.certificate.outputs,
        "witness": sized.certificate.witness,
    }


def _thresholds_record(thresholds: Sequence[Fraction]) -> Any:
    if len(thresholds) >= SHORTEST_RUN:
        numbers, scale = common_integers(thresholds)
        steps = {b - a for a, b in itertools.pairwise(numbers)}
        if len(steps) == 1:
            return {
                "first": str(thresholds[0]),
                "step": str(Fraction(steps.pop(), scale)),
                "number": len(numbers),
            }
    return [str(t) for t in thresholds]


def _contents(document: dict[str, Any]) -> MechanismFile:
    query = document["query"]
    if query not in QUERIES:
        raise InputError(f"the query {quoted(query)} is not known; it must be one of {', '.join(QUERIES)}")
    lo, hi = _pair(document["range"])
    domain = IntervalDomain(lo, hi)
    epsilon = document["epsilon"]
    if isinstance(epsilon, str):
        raise InputError(f"epsilon ({quoted(epsilon)}) must be a number")
    allowed = outputs_allowed(epsilon)
    if type(document["outputs_allowed"]) is not int or document["outputs_allowed"] != allowed:
        raise InputError(
            f"outputs_allowed ({quoted(document['outputs_allowed'])}) is not floor(2^epsilon) = {allowed}"
        )
    mechanisms = _list("mechanisms", document["mechanisms"])
    if not mechanisms:
        raise InputError("it holds no mechanism")
    sized = tuple(_sized(record, query, domain, allowed) for record in mechanisms)
    guarantee = _record("guarantee", document["guarantee"])
    counted = max(m.certificate.outputs for m in sized)
    if "outputs" in guarantee and guarantee["outputs"] != counted:
        raise InputError(
            f"the guarantee speaks of {quoted(guarantee['outputs'])} outputs, but there are {counted}"
        )
    return MechanismFile(
        query=query,
        column=_text("column", document["column"]),
        group_by=tuple(_text("group_by", name) for name in _list("group_by", document["group_by"])),
        domain=domain,
        epsilon=float(epsilon),
        mechanisms=sized,
        guarantee=guarantee,
        provenance=_record("provenance", document["provenance"]),
    )


def _sized(value: Any, query: str, domain: IntervalDomain, allowed: int) -> SizedQuantizer:
    record = _record("mechanisms", value)
    if missing := {"individuals", "range", "thresholds", "outputs", "witness"} - record.keys():
        raise InputError(f"a mechanism has no {', '.join(sorted(missing))}")
    individuals = _integer("individuals", record["individuals"], LARGEST_GROUP)
    lo, hi = _pair(record["range"])
    quantizer = Quantizer(lo, hi, _thresholds(record["thresholds"]))
    found = certify(build_query(query, individuals, domain), quantizer)
    claimed = record["outputs"]
    if type(claimed) is not int or found.outputs != claimed or found.outputs > allowed:
        raise InputError(
            f"the mechanism for {individuals} individuals has {found.outputs} outputs where the file says "
            f"{quoted(claimed)} and {allowed} are allowed"
        )
    return SizedQuantizer(individuals, quantizer, found)


def _thresholds(value: Any) -> tuple[Fraction, ...]:
    if isinstance(value, list):
        return tuple(_fraction(item) for item in value)  # pyright: ignore[reportUnknownVariableType]
    record = _record("thresholds", value)
    if record.keys() != {"first", "step", "number"}:
        raise InputError("thresholds must be a list, or have first, step and number")
    first, step = _fraction(record["first"]), _fraction(record["step"])
    return tuple(first + k * step for k in range(_integer("number", record["number"], LARGEST_RULE)))


def _fraction(value: Any) -> Fraction:
    if not isinstance(value, str) or not _FRACTION.fullmatch(value):
        raise InputError(f"{quoted(value)} is no exact fraction such as 7 or -3/8")
    return Fraction(value)


def _pair(value: Any) -> tuple[Fraction, Fraction]:
    ends = _list("range", value)
    if len(ends) != 2:
        raise InputError("a range must have two ends")
    return _fraction(ends[0]), _fraction(ends[1])


def _integer(name: str, value: Any, most: int) -> int:
    if type(value) is not int or not 0 < value <= most:
        raise InputError(f"{name} ({quoted(value)}) must be an integer from 1 to {most:,}")
    return value


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise InputError(f"{name} ({quoted(value)}) must be text")
    return value


def _list(name: str, value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise InputError(f"{name} must be a list")
    return value  # pyright: ignore[reportUnknownVariableType]


def _record(name: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InputError(f"{name} must be a record")
    return value  # pyright: ignore[reportUnknownVariableType]
