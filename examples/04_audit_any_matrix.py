"""Audit a matrix that was made elsewhere: does randomised response protect relationship?"""

from __future__ import annotations

import adult

import mechdesign as md
from mechdesign.auditing.matrix import audit_matrix

joint = adult.load()
n = len(joint.useful)

for truth in (0.9, 0.5, 0.2):
    # Tell the truth with this probability, else name any occupation at random.
    matrix = [[(1 - truth) / n + truth * (x == y) for y in range(n)] for x in range(n)]
    verdict = audit_matrix(matrix, joint, md.LIP(0.5), outputs=joint.useful.names)
    print(
        f"truth {truth:.1f}: {'private' if verdict.satisfied else 'not private'} at LIP(0.5); achieved "
        f"eps_l {verdict.achieved.eps_l:.3f}, eps_u {verdict.achieved.eps_u:.3f}; worst: "
        f"{verdict.worst.output} makes {verdict.worst.sensitive} {verdict.worst.lift:.3f} times as likely"
    )
