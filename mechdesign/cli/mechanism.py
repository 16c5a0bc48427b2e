"""The verbs of channels on mechanism files: audit, show, measure, apply and check tell them by their first bytes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from mechdesign.cli.line import option
from mechdesign.core.errors import InputError

FORMAT = b'"mechdesign.quantizer"'
"""The format of a mechanism file, which its first line says."""

HEAD = 4096
"""Bytes that are looked at."""


@dataclass(frozen=True, kw_only=True)
class MechanismOptions:
    """With a mechanism file of `quantize` in place of a channel"""

    equals: str | None = option(
        "VALUE", "For a count: count the records with this value."
    )
    outside: str | None = option(
        "WHAT",
        "A value outside the range: refuse, clip, mark or drop it (default: as the mechanism was made).",
    )


def is_mechanism(path: str | None) -> bool:
    """Whether a file says that it is a mechanism file; what cannot be read is none."""
    try:
        with open(path or "", "rb") as stream:
            return FORMAT in stream.read(HEAD)
    except OSError:
        return False


def release_of(
    path: str,
    source: str,
    target: str,
    numbers: MechanismOptions,
    how: dict[str, Any],
    who: tuple[str, ...],
) -> Callable[..., Any]:
    """The release of the numbers of a table through the mechanism; it takes a `progress`."""
    from mechdesign.nonstochastic.mechanism_jobs import apply_mechanism

    renamed = how["records"].pop("columns")
    if len(who) > 1 or len(renamed) > 1:
        raise InputError(
            "a mechanism has one column, and one column that identifies individuals"
        )
    asked = {
        "column": next(iter(renamed.values()), None),
        "individual": next(iter(who), None),
    }
    return partial(
        apply_mechanism, path, source, target, **how, **vars(numbers), **asked
    )
