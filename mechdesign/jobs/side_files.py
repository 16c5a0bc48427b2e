"""The files that go with an output: a public and an internal manifest, and a codebook.

`Sides` has their places only; a job writes them with its output (`Target.part_of_side`). When a job
runs again and finds its output complete, `hold` decides whether the side files are still those of
the output: manifests name its hash, and a codebook is compared with its text. If one is not, the
job writes all of it again.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mechdesign.core.errors import InputError
from mechdesign.core.files import PathLike, sha256_of
from mechdesign.jobs.manifest_records import Audience, read_manifest


@dataclass(frozen=True)
class Sides:
    """Where the files that go with an output are written; None for those that are not asked for.

    `channel_files` are the files that the channels were read from.
    """

    manifest: PathLike | None = None
    internal: PathLike | None = None
    codebook: PathLike | None = None
    channel_files: tuple[PathLike, ...] = ()

    @property
    def paths(self) -> tuple[PathLike, ...]:
        """The places of all files that are asked for."""
        places = (self.manifest, self.internal, self.codebook)
        return tuple(place for place in places if place is not None)

    @property
    def manifests(self) -> list[tuple[PathLike, Audience]]:
        """The places of the manifests that are asked for, and who reads them."""
        manifests: list[tuple[PathLike, Audience]] = []
        if self.manifest is not None:
            manifests.append((self.manifest, "public"))
        if self.internal is not None:
            manifests.append((self.internal, "internal"))
        return manifests

    def channel_digests(self) -> list[str]:
        """The hashes of the channel files."""
        return [sha256_of(path) for path in self.channel_files]

    def _codebook_bytes(self) -> bytes:
        """What the codebook holds, none if it is not asked for."""
        if self.codebook is None:
            return b""
        return Path(self.codebook).read_bytes()

    def hold(self, output: str, codebook: str | None) -> bool:
        """Whether all are there and belong to the output with this hash.

        `codebook` is the text that a codebook must have.
        """
        try:
            if codebook is not None and self._codebook_bytes() != codebook.encode():
                return False
            for path, audience in self.manifests:
                if read_manifest(path, audience).output != output:
                    return False
            return True
        except (InputError, OSError):
            # Another file has the name, or none has.
            return False
