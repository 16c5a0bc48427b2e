"""What a mechanism file says of its own guarantee, of which nothing is believed: it follows exactly from the counts.

How many answers one individual takes part in, of groups of which sizes, is known from the data alone.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from mechdesign.core.errors import InputError
from mechdesign.core.files import PathLike
from mechdesign.core.json_values import without_infinities
from mechdesign.core.wording import quoted
from mechdesign.nonstochastic.domains import IntervalDomain, check_whole, interval
from mechdesign.nonstochastic.levels import (
    ASSUMPTIONS,
    RangePromise,
    outputs_allowed,
    promises,
)
from mechdesign.nonstochastic.mechanism_file import TOLD, MechanismFile, loaded
from mechdesign.nonstochastic.noiseless import composed_epsilon

LARGEST_SHARE = 10**9
"""Answers of one individual: more than any file has records."""


@dataclass(frozen=True, kw_only=True)
class VerifiedMechanism:
    """A mechanism file and what follows from it."""

    mechanism: MechanismFile
    outputs: int
    allowed: int
    answers_each: int | None
    total_epsilon: float
    promises: tuple[RangePromise, ...]
    disagreements: tuple[str, ...]

    @property
    def satisfied(self) -> bool:
        """Whether the budget is kept and all that the file says is so."""
        return self.outputs <= self.allowed and not self.disagreements


def verify_file(path: PathLike) -> VerifiedMechanism:
    """Load a mechanism file and compare every claim with what is counted."""
    mechanism, entries, wrong = loaded(path)
    claimed = mechanism.guarantee
    each, strange = _answers_each(claimed)
    largest, others = _largest(mechanism, claimed, each)
    record, total, promised = guarantee_record(mechanism, each, largest)
    wrong += strange + others
    wrong += _shape(mechanism)
    wrong += [
        f"the witness of the mechanism for {sized.individuals} individuals is "
        f"{quoted(sized.certificate.witness)}, not {quoted(entry.witness)}"
        for sized, entry in zip(mechanism.mechanisms, entries, strict=True)
        if sized.certificate.witness != entry.witness
    ]
    for key, value in record.items():
        if key not in claimed:
            wrong.append(f"the guarantee does not state {key}")
        elif key not in ("answers_each", "outputs") and claimed[key] != value:
            wrong += _differences(key, claimed[key], value)
    more = claimed.keys() - record
    wrong += [
        f"the guarantee states {quoted(key)}, which is no part of it" for key in more
    ]
    known = {
        "total_epsilon": total,
        "promises": promised,
        "disagreements": tuple(wrong),
    }
    known |= {
        "outputs": record["outputs"],
        "allowed": outputs_allowed(mechanism.epsilon),
    }
    return VerifiedMechanism(mechanism=mechanism, answers_each=each, **known)


def read_verified(path: PathLike) -> VerifiedMechanism:
    """As `verify_file`, for whoever uses the mechanism."""
    found = verify_file(path)
    if found.disagreements:
        raise InputError(
            f"{path}: {found.disagreements[0]}; the file was edited, and `mechdesign audit` tells all"
        )
    return found


def guarantee_record(
    mechanism: MechanismFile,
    answers_each: int | None,
    largest: Mapping[int, int] | None = None,
) -> tuple[dict[str, Any], float, tuple[RangePromise, ...]]:
    """The guarantee that a mechanism file has to state, with its total budget and its promises.

    `largest` are the answers, by size of group, of the individual whose outputs have the largest product.
    """
    outputs = mechanism.outputs
    # The error of an estimate is bounded for values that fill the range.
    whole = isinstance(mechanism.domain, IntervalDomain) and mechanism.query != "count"
    promised = promises(
        outputs, mechanism.domain.hi - mechanism.domain.lo if whole else None
    )
    each = {m.individuals: m.certificate.outputs for m in mechanism.mechanisms}
    spent = [(each[size], times) for size, times in (largest or {}).items()]
    total = composed_epsilon(spent or [(outputs, answers_each or 1)])
    record = {
        "outputs": outputs,
        "answers_each": answers_each,
        "total_epsilon": total,
        "promises": without_infinities([asdict(g) for g in promised]),
        "assumptions": list(ASSUMPTIONS),
    }
    if largest:
        record["answers_by_size"] = [
            [size, times] for size, times in sorted(largest.items())
        ]
    return record, total, promised


def _answers_each(claimed: Mapping[str, Any]) -> tuple[int | None, list[str]]:
    each = claimed.get("answers_each")
    if each is None or (type(each) is int and 1 <= each <= LARGEST_SHARE):
        return each, []
    return None, [
        f"answers_each ({quoted(each)}) must be a number of answers, at least 1, or null"
    ]


def _largest(
    mechanism: MechanismFile, claimed: Mapping[str, Any], each: int | None
) -> tuple[dict[int, int] | None, list[str]]:
    """The answers by size of whoever spends most; without them all answers are taken as those of most outputs."""
    if not mechanism.divided or each is None:
        return None, []
    said, sizes = (
        claimed.get("answers_by_size", []),
        {m.individuals for m in mechanism.mechanisms},
    )
    try:
        found = {
            size: check_whole("answers", times) for size, times in said if size in sizes
        }
    except (InputError, TypeError, ValueError):
        said, found = [], {}
    if not found or len(found) < len(said) or sum(found.values()) > each:
        return None, [
            f"answers_by_size must list sizes of groups, each with a number of answers, at most {each} in all"
        ]
    return found, []


def _shape(mechanism: MechanismFile) -> list[str]:
    """What a file cannot hold, whatever its numbers are."""
    wrong: list[str] = []
    sizes = Counter(m.individuals for m in mechanism.mechanisms)
    if twice := [size for size, times in sizes.items() if times > 1]:
        wrong.append(
            f"there are {sizes[twice[0]]} mechanisms for groups of {twice[0]}: which of them released an "
            "answer is not told, and both together tell more"
        )
    if mechanism.query == "identity" and set(sizes) != {1}:
        wrong.append(
            "the identity is released record by record, and has one mechanism for 1 individual"
        )
    if mechanism.query == "count" and mechanism.outside in TOLD:
        wrong.append("a record counts as 0 or 1, and none of them is outside the range")
    if mechanism.query == "count" and mechanism.domain != interval(0, 1):
        wrong.append("a record counts as 0 or 1, and the range of a count must say so")
    return wrong


def _differences(key: str, claimed: Any, value: Any) -> list[str]:
    """One sentence for a number, and one for each promise that is not the one counted."""
    if key != "promises":
        said, known = (
            quoted(textwrap.shorten(str(each), 40)) for each in (claimed, value)
        )
        return [f"the guarantee says {key} {said}, but it is {known}"]
    said = claimed if isinstance(claimed, list) else []
    found = {p.get("name"): p for p in said if isinstance(p, dict)}
    wrong = [
        f"the promise {quoted(promise['name'])} says {quoted(other.get('bound'))} {other.get('unit')}, but it is "
        f"{quoted(promise['bound'])} {promise['unit']}"
        if (other := found.get(promise["name"])) is not None
        else f"the promise {quoted(promise['name'])} is missing"
        for promise in value
        if found.get(promise["name"]) != promise
    ]
    return wrong or ["the promises are others than those that follow from the count"]
