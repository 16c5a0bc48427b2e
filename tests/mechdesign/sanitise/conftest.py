from __future__ import annotations

from dataclasses import dataclass

import pytest

from mechdesign.tables.variable import Variable
from tests.mechdesign.sanitise.records import city_channel, mixing_channel

D = 2**53


@dataclass(frozen=True)
class StandIn:
    """A channel as far as applying it goes."""

    useful: Variable
    outputs: tuple[str, ...]
    rows: tuple[tuple[int, ...], ...]
    sensitive: Variable | None = None
    denominator: int = D
    unseen: int = 0


@pytest.fixture
def channel():
    """Publishes c as it is and merges a and b; nothing is random, so outputs can be foretold."""
    return StandIn(
        Variable(("job",), (("a",), ("b",), ("c",))),
        ("c", "{a, b}"),
        ((0, D), (0, D), (D, 0)),
        Variable(("rel",), (("w",), ("h",))),
    )


@pytest.fixture
def coin():
    """A fair coin for every record."""
    return StandIn(
        Variable(("job",), (("a",), ("b",))), ("head", "tail"), ((D // 2, D // 2), (D // 2, D // 2))
    )


@pytest.fixture
def crossed():
    """X crossed from city and job, in this order."""
    return StandIn(
        Variable(("city", "job"), (("p", "a"), ("p", "b"), ("q", "a"))),
        ("p, a", "rest"),
        ((D, 0), (0, D), (0, D)),
        Variable(("rel",), (("w",), ("h",))),
    )


@pytest.fixture
def channels():
    """Random ones, of job and of city."""
    return [mixing_channel(), city_channel()]
