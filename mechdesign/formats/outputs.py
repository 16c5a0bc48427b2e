"""What a job says that its output holds: columns of the source as they are, and columns written anew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from mechdesign.core.errors import InputError


@dataclass(frozen=True)
class KeptColumn:
    """A column of the output that is the source's column at `position`, as it is."""

    position: int


@dataclass(frozen=True)
class WrittenColumn:
    """A column of text that the job writes; `replaces` is the source's column it stands for, if there is one.

    A Parquet file takes the compression of the replaced column over, and pandas' notes on it. With a `kind`, an arrow
    type, the column is of this type there, and so are the arrays written.
    """

    name: str
    replaces: int | None = None
    kind: Any = None


Output: TypeAlias = KeptColumn | WrittenColumn


def check_outputs(outputs: Sequence[Output], width: int) -> None:
    """Refuse outputs that are no columns of a source with `width` columns, or kept out of order."""
    kept = [output.position for output in outputs if isinstance(output, KeptColumn)]
    if not outputs or kept != sorted(set(kept)) or (kept and not 0 <= kept[0] <= kept[-1] < width):
        raise InputError(f"the outputs must be columns of the source in their order, not {kept} of {width}")
