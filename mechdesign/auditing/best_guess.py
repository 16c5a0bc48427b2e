"""The success of the best guess of a sensitive value, with and without a released one, exactly.

Whoever knows the table and the channel guesses the likeliest s given the released y. That is right
with the probability sum_y max_s P(s, y), the Bayes vulnerability of S after the release (Smith
2009), and no other guess is right more often. Without the release it is max_s P(s). For example,
the masses (3, 1) and (2, 4) of two outputs, of 10 in all, give 7/10, and 5/10 without: both secrets
have the mass 5.

Unlike a lift this is an average over all records: single values may tell far more.
"""

from __future__ import annotations

from fractions import Fraction

from mechdesign.auditing.columns import columns_on, released_part
from mechdesign.auditing.output_masses import masses_by_output
from mechdesign.channel.channel import Channel
from mechdesign.tables.joint import Joint


def best_guess(channel: Channel, joint: Joint) -> tuple[Fraction, Fraction]:
    """The share of records whose sensitive value the best guess from the release tells, and the
    share without a release.

    Several sensitive columns are guessed together.
    """
    released = released_part(channel, joint)
    outputs = list(masses_by_output(columns_on(channel, released), released))
    scale = sum(output.output for output in outputs)
    right = sum(max(output.masses) for output in outputs)
    return Fraction(right, scale), guess_without(joint)


def guess_without(joint: Joint) -> Fraction:
    """The share of the likeliest sensitive value, whose guess is best without a release."""
    return Fraction(max(joint.sensitive_counts), joint.total)
