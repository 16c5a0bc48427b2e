"""Every utility and leakage measure of a channel on a table (nats)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mechdesign.channel import Channel
from mechdesign.errors import InputError
from mechdesign.exact import listed
from mechdesign.exact_utility import utility
from mechdesign.joint import Joint
from mechdesign.measures import leakage, maximal_leakage


@dataclass(frozen=True)
class ChannelMeasures:
    """What Y keeps of X (`utility`) and what it says about S (`leakage`), by name, in nats."""

    utility: dict[str, float]
    leakage: dict[str, float]


def measure(channel: Channel, joint: Joint, alphas: Sequence[float] = (2.0,)) -> ChannelMeasures:
    """Measure `channel` on `joint`.

    Parameters
    ----------
    channel : Channel
    joint : Joint
        With the same useful symbols as the channel, in any order.
    alphas : sequence of float
        Orders (above 1) of the alpha-lift, of Sibson's and of Arimoto's information.

    Raises
    ------
    InputError
        If the symbols differ, or an order is not above 1.
    """
    joint = _in_order_of(channel, joint)
    worth = utility(channel, joint)
    kept = {
        "entropy": worth.entropy,
        "mutual_information": worth.mutual_information,
        "conditional_entropy": worth.entropy - worth.mutual_information,
        "nmi": worth.nmi,
        "maximal_leakage_of_useful": maximal_leakage(joint.p_x[:, None] * channel.matrix),
    }
    return ChannelMeasures(kept, leakage(joint.p @ channel.matrix, alphas))


def _in_order_of(channel: Channel, joint: Joint) -> Joint:
    """The joint with its columns in the order of the channel's rows."""
    symbols = channel.useful.symbols
    if symbols == joint.useful.symbols:
        return joint
    differing = [", ".join(symbol) for symbol in sorted(set(symbols) ^ set(joint.useful.symbols))]
    if differing:
        raise InputError(f"the useful symbols of the channel and of the table differ: {listed(differing)}")
    order = [joint.useful.index[symbol] for symbol in symbols]
    counts = tuple(tuple(row[x] for x in order) for row in joint.counts)
    return Joint(joint.sensitive, joint.useful.select(order), counts, joint.is_counts, joint.notices)
