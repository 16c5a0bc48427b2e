"""The last step of every mechanism: a verified channel becomes a Design with its plain record."""

from __future__ import annotations

from dataclasses import asdict

from mechdesign.auditing import Audit
from mechdesign.channel import Channel, ChannelRecord
from mechdesign.exact_utility import utility
from mechdesign.joint import Joint
from mechdesign.mechanisms.result import Certificate, Design
from mechdesign.notions import to_record


def finish(
    channel: Channel,
    joint: Joint,
    verdict: Audit,
    *,
    mechanism: str,
    method: str,
    certificate: Certificate | None = None,
    repaired: bool = False,
    borrowed: tuple[str, ...] = (),
    messages: tuple[str, ...] = (),
    seconds: float = 0.0,
) -> Design:
    """The design of a channel that passed the exact audit; utility is that of its integers."""
    from mechdesign import __version__

    worth = utility(channel, joint)
    proof = certificate or Certificate()
    record = ChannelRecord(
        notion=to_record(verdict.notion),
        achieved=asdict(verdict.achieved),
        utility={"nmi": worth.nmi, "mutual_information": worth.mutual_information, "entropy": worth.entropy},
        certificate={
            "upper_bound_nmi": proof.upper_bound_nmi,
            "gap_nmi": proof.gap_nmi,
            "scope": proof.scope,
        },
        provenance={"tool": "mechdesign", "version": __version__, "mechanism": mechanism, "method": method},
    )
    return Design(
        channel=channel.with_record(record),
        notion=verdict.notion,
        mechanism=mechanism,
        method=method,
        nmi=worth.nmi,
        mutual_information=worth.mutual_information,
        entropy=worth.entropy,
        achieved=verdict.achieved,
        used=verdict.used,
        certificate=proof,
        repaired=repaired,
        borrowed=borrowed,
        messages=messages,
        seconds=seconds,
    )
