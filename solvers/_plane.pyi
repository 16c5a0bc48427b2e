"""Compiled loops of `solvers.pricing.plane`; arrays are contiguous float64 or int32, see
`_plane.h`.
"""

from typing import Any

def pairs(
    lines: Any,
    y: Any,
    best: Any,
    support: Any,
    line: int,
    blur: float,
    outside: float,
    size: float,
    level: float,
    keep: float,
    lowest: float,
    floor: float,
    first: int,
    seconds: float,
    /,
) -> tuple[int, float, float, int]: ...
def triples(
    f: Any,
    g: Any,
    s: Any,
    candidates: Any,
    best: Any,
    support: Any,
    offset: float,
    size: float,
    reach: float,
    blur: float,
    level: float,
    keep: float,
    lowest: float,
    floor: float,
    first: int,
    seconds: float,
    /,
) -> tuple[int, float, float, int]: ...
