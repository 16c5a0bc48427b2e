"""Design the optimal channel for the Adult table, check it, save it and load it again."""

from __future__ import annotations

import tempfile
from pathlib import Path

import adult

import mechdesign as md

joint = adult.load()
notion = md.ALIP(eps_l=0.5, eps_u=0.5)
result = md.design(joint, notion)

print(
    f"kept: {result.nmi:.4f} of H(occupation) = {result.entropy:.4f} nats, in {result.outputs} outputs"
)
print(
    f"no private channel keeps more than {result.certificate.upper_bound_nmi:.4f} ({result.certificate.scope})"
)
print(f"achieved: eps_l {result.achieved.eps_l:.6f}, eps_u {result.achieved.eps_u:.6f}")

report = md.audit(result.channel, joint, notion)
print(f"exact audit: {report.satisfied}; worst: {report.worst.output} makes {report.worst.sensitive} "
      f"{report.worst.lift:.4f} times as likely")  # fmt: skip

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "channel.json"
    result.channel.save(path)
    assert md.Channel.load(path).rows == result.channel.rows
    print(f"saved and loaded: {path.name}, {path.stat().st_size:,} bytes")
