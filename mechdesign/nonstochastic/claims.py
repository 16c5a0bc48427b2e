"""The guarantee in a mechanism file, compared with the one that follows from its thresholds.

`verify_file` makes the guarantee anew and compares:

1. The outputs of one answer are counted again (`mechanism_file.loaded`).
2. The number of answers that one individual takes part in, and the sizes of their groups, depend on
   the data and cannot be recomputed from the file: they are checked for shape (`_answers_each`,
   `_largest`).
3. `guarantee_record` is what a file with these numbers has to state; a release writes it. Every
   statement of the file is compared with it, key by key (`_record_differences`).

All that differs is a sentence in `VerifiedMechanism.disagreements`. For example, a file with 4
outputs of an answer and 3 answers of an individual must state a total of log2(4^3) = 6 bits.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

from mechdesign.core.documents import without_infinities
from mechdesign.core.errors import InputError
from mechdesign.core.files import PathLike
from mechdesign.core.wording import quoted
from mechdesign.nonstochastic.mechanism_file import (
    DISCLOSED_OUTSIDE,
    MechanismFile,
    loaded,
)
from mechdesign.nonstochastic.noiseless import (
    ASSUMPTIONS,
    RangePromise,
    composed_epsilon,
    outputs_allowed,
    promises,
)
from mechdesign.nonstochastic.queries import IntervalDomain, check_whole, interval

LARGEST_SHARE = 10**9
"""Most answers of one individual. No file has more records."""


@dataclass(frozen=True, kw_only=True)
class VerifiedMechanism:
    """A mechanism file, its recomputed guarantee, and the claims of the file that disagree.

    Parameters
    ----------
    outputs, allowed
        The most outputs of one answer, counted, and floor(2^epsilon).
    answers_each
        Answers of one individual, as the file states; None if unknown.
    total_epsilon
        Bits of all these answers together (of one answer, if their number is unknown).
    disagreements
        A sentence for every statement of the file that does not follow.
    """

    mechanism: MechanismFile
    outputs: int
    allowed: int
    answers_each: int | None
    total_epsilon: float
    promises: tuple[RangePromise, ...]
    disagreements: tuple[str, ...]

    @property
    def satisfied(self) -> bool:
        """Whether the budget is kept and the file states nothing wrong."""
        return self.outputs <= self.allowed and not self.disagreements


def verify_file(path: PathLike) -> VerifiedMechanism:
    """Load a mechanism file and compare every claim with the count."""
    mechanism, entries, disagreements = loaded(path)
    claimed = mechanism.guarantee
    answers_each, faults = _answers_each(claimed)
    disagreements += faults
    largest, faults = _largest(mechanism, claimed, answers_each)
    disagreements += faults
    disagreements += _shape(mechanism)
    # A witness is part of the claim: it names a fibre that a reader can count by hand.
    for sized, entry in zip(mechanism.mechanisms, entries, strict=True):
        if sized.certificate.witness != entry.witness:
            disagreements.append(
                f"the witness of the mechanism for {sized.individuals} individuals is "
                f"{quoted(sized.certificate.witness)}, not {quoted(entry.witness)}"
            )
    record, total_epsilon, promised = guarantee_record(mechanism, answers_each, largest)
    disagreements += _record_differences(claimed, record)
    return VerifiedMechanism(
        mechanism=mechanism,
        outputs=record["outputs"],
        allowed=outputs_allowed(mechanism.epsilon),
        answers_each=answers_each,
        total_epsilon=total_epsilon,
        promises=promised,
        disagreements=tuple(disagreements),
    )


def read_verified(path: PathLike) -> VerifiedMechanism:
    """As `verify_file`, for use of the mechanism.

    Raises
    ------
    InputError
        If any claim of the file is wrong.
    """
    verified = verify_file(path)
    if verified.disagreements:
        raise InputError(
            f"{path}: {verified.disagreements[0]}; the file was edited, and `mechdesign audit` "
            "lists every such claim"
        )
    return verified


def guarantee_record(
    mechanism: MechanismFile,
    answers_each: int | None,
    largest: Mapping[int, int] | None = None,
) -> tuple[dict[str, Any], float, tuple[RangePromise, ...]]:
    """The guarantee that a mechanism file has to state, its total budget (bits) and its promises.

    Parameters
    ----------
    answers_each
        Answers of one individual; None if unknown.
    largest
        The answers, by size of group, of the individual whose outputs have the largest product.
        Without it, every answer counts as one with the most outputs.
    """
    outputs = mechanism.outputs
    width: Fraction | None = None
    if isinstance(mechanism.domain, IntervalDomain) and mechanism.query != "count":
        # The bound on the error of an estimate holds for values that fill the range.
        width = mechanism.domain.hi - mechanism.domain.lo
    promised = promises(outputs, width)
    total_epsilon = _total_epsilon(mechanism, answers_each, largest)
    record = {
        "outputs": outputs,
        "answers_each": answers_each,
        "total_epsilon": total_epsilon,
        "promises": without_infinities([asdict(p) for p in promised]),
        "assumptions": list(ASSUMPTIONS),
    }
    if largest:
        record["answers_by_size"] = [[size, largest[size]] for size in sorted(largest)]
    return record, total_epsilon, promised


def _total_epsilon(
    mechanism: MechanismFile,
    answers_each: int | None,
    largest: Mapping[int, int] | None,
) -> float:
    """Bits of all answers of one individual, or of one answer if their number is unknown.

    The outputs of several answers on one fibre are at most their product (Farokhi 2019, Theorem 6).
    """
    if not largest:
        return composed_epsilon([(mechanism.outputs, answers_each or 1)])
    outputs_of: dict[int, int] = {}
    for sized in mechanism.mechanisms:
        outputs_of[sized.individuals] = sized.certificate.outputs
    return composed_epsilon(
        (outputs_of[size], times) for size, times in largest.items()
    )


def _answers_each(claimed: Mapping[str, Any]) -> tuple[int | None, list[str]]:
    """The answers of one individual that a guarantee states, and what is wrong with them."""
    answers = claimed.get("answers_each")
    # The exact type, because True is an int.
    if answers is None or (type(answers) is int and 1 <= answers <= LARGEST_SHARE):
        return answers, []
    return None, [
        f"answers_each ({quoted(answers)}) must be a number of answers, at least 1, or null"
    ]


def _largest(
    mechanism: MechanismFile, claimed: Mapping[str, Any], answers_each: int | None
) -> tuple[dict[int, int] | None, list[str]]:
    """The answers by size of group of the individual that spends most, and what is wrong with them.

    Where groups of all sizes have the same outputs, nothing is stated and None is right.
    """
    if not mechanism.divided or answers_each is None:
        return None, []
    stated = claimed.get("answers_by_size", [])
    sizes = {m.individuals for m in mechanism.mechanisms}
    largest: dict[int, int] = {}
    usable = True
    # The entries come from a file: they may be no pairs, or have sizes that cannot be hashed.
    try:
        for size, times in stated:
            if size in sizes:
                largest[size] = check_whole("answers", times)
        # A size that is unknown, or stated twice, leaves fewer entries than there are.
        usable = len(largest) == len(stated)
    except (InputError, TypeError, ValueError):
        usable = False
    if not usable or not largest or sum(largest.values()) > answers_each:
        return None, [
            "answers_by_size must list sizes of groups, each with a number of answers, at most "
            f"{answers_each} in all"
        ]
    return largest, []


def _shape(mechanism: MechanismFile) -> list[str]:
    """Faults of the combination of query, sizes and range, whatever the numbers are."""
    faults: list[str] = []
    counts = Counter(m.individuals for m in mechanism.mechanisms)
    repeated = [size for size, times in counts.items() if times > 1]
    if repeated:
        size = repeated[0]
        faults.append(
            f"there are {counts[size]} mechanisms for groups of {size}: the file does not say "
            "which of them released an answer, and both together disclose more"
        )
    if mechanism.query == "identity" and set(counts) != {1}:
        faults.append(
            "the identity is released record by record, and has one mechanism for 1 individual"
        )
    if mechanism.query == "count" and mechanism.outside in DISCLOSED_OUTSIDE:
        faults.append(
            "a record counts as 0 or 1, and none of them is outside the range"
        )
    if mechanism.query == "count" and mechanism.domain != interval(0, 1):
        faults.append("a record counts as 0 or 1, and the range of a count must say so")
    return faults


def _record_differences(
    claimed: Mapping[str, Any], record: Mapping[str, Any]
) -> list[str]:
    """A sentence for each statement that is missing, wrong, or no part of a guarantee."""
    faults: list[str] = []
    for key, value in record.items():
        if key not in claimed:
            faults.append(f"the guarantee does not state {key}")
        elif key in ("answers_each", "outputs"):
            # Checked before: the answers by their shape, the outputs when the file was read.
            continue
        elif claimed[key] != value:
            faults += _differences(key, claimed[key], value)
    # A statement that nothing checks would be believed like the others.
    for key in claimed.keys() - record:
        faults.append(f"the guarantee states {quoted(key)}, which is no part of it")
    return faults


def _differences(key: str, claimed: Any, value: Any) -> list[str]:
    """One sentence for a number, and one for each promise that differs from the recomputed one."""
    if key != "promises":
        stated = quoted(textwrap.shorten(str(claimed), 40))
        counted = quoted(textwrap.shorten(str(value), 40))
        return [f"the guarantee says {key} {stated}, but it is {counted}"]
    faults: list[str] = []
    for promise in value:
        name = quoted(promise["name"])
        stated_promise = _stated_promise(claimed, promise["name"])
        if stated_promise is None:
            faults.append(f"the promise {name} is missing")
        elif stated_promise != promise:
            bound = quoted(stated_promise.get("bound"))
            faults.append(
                f"the promise {name} says {bound} {stated_promise.get('unit')}, but it is "
                f"{quoted(promise['bound'])} {promise['unit']}"
            )
    return faults or ["the promises are others than those that follow from the count"]


def _stated_promise(claimed: Any, name: str) -> dict[str, Any] | None:
    """The promise of this name in a guarantee; the last, if there are several."""
    stated: dict[str, Any] | None = None
    if isinstance(claimed, list):
        for entry in claimed:
            if isinstance(entry, dict) and entry.get("name") == name:
                stated = entry
    return stated
