"""Release a column: every record gets one draw, and the guarantee shows in the released data."""

from __future__ import annotations

import adult
import numpy as np

import mechdesign as md

joint = adult.load()
channel = md.design(joint, md.LIP(0.5)).channel

# The records behind the counts, one by one.
cells = [(s, x, n) for s, row in enumerate(joint.counts) for x, n in enumerate(row)]
relationship = np.repeat([s for s, _, _ in cells], [n for _, _, n in cells])
occupation = [joint.useful.names[x] for _, x, n in cells for _ in range(n)]

released = channel.apply(
    occupation
)  # cryptographic randomness; the same kind of column back

prior = joint.p_s
print(
    "output                                                       records  largest change of a probability"
)
for output in sorted(set(released)):
    at = np.array([y == output for y in released])
    posterior = np.bincount(relationship[at], minlength=len(prior)) / at.sum()
    print(
        f"{output[:60]:60} {at.sum():8,}  x {max(posterior / prior):.3f}, x {min(posterior / prior):.3f}"
    )
print(
    "promised: at most x 1.649, at least x 0.606 (the draws of one release scatter around the exact values)"
)
