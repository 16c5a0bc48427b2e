"""The files and options of one `mechdesign apply`, and the release that they ask for.

`ApplyArguments.channel_release` is a release through channel files (`jobs.folders.sanitise_path`),
and `ApplyArguments.mechanism_release` one through a mechanism file of `quantize`
(`mechanism.mechanism_release`). Neither runs anything: each gives a function of `progress` and
`warn` that reads, draws and writes. Both put together what the groups of `apply_options` make of
their texts, the ledger, and the files beside OUT. Example: ``apply channel.json in.csv out.csv``
writes out.csv and out.csv.manifest.json, with the ledger of the user.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from mechdesign.cli.apply_options import (
    ColumnOptions,
    JobOptions,
    OutputFormat,
    SideOptions,
)
from mechdesign.cli.mechanism import MechanismOptions, mechanism_release
from mechdesign.cli.parsing import names
from mechdesign.cli.released import PolicyOptions
from mechdesign.core.errors import InputError


@dataclass(frozen=True, kw_only=True)
class ApplyArguments:
    """The files and options of one `apply`, and the releases that they ask for.

    `apply` makes it and calls one of `channel_release` and `mechanism_release`, by the kind of file
    in the place of the channel.
    """

    channel: str
    source: str
    target: str
    columns: ColumnOptions
    published: PolicyOptions
    draws: JobOptions
    text: OutputFormat
    sides: SideOptions
    force: bool

    @property
    def manifest(self) -> str | None:
        """The path of the manifest: beside a file by default, and nowhere else."""
        from mechdesign.formats.folders import is_folder
        from mechdesign.formats.urls import STANDARD, is_url

        if self.sides.manifest is not None or self.target == STANDARD:
            return self.sides.manifest
        # A folder has its manifests inside, and beside a URL nothing is written unasked.
        if is_url(self.target) or is_folder(self.source):
            return None
        return f"{self.target}.manifest.json"

    @property
    def ledger(self) -> str | None:
        """The ledger, by default that of the user; none for draws from a seed."""
        from mechdesign.jobs.ledger_file import default_path

        # Draws from a seed are for tests, and have no place among the releases of the user.
        if self.draws.ledger is None and self.draws.insecure_seed is None:
            return os.fspath(default_path())
        return self.draws.ledger

    def channel_release(self) -> Callable[..., Any]:
        """The release through channels; it takes `progress` and `warn`."""
        identity = self._identity()
        arguments = {
            **self._common_arguments(),
            **self.columns.release_arguments(),
            **self._format_arguments(),
            "identity": identity or None,
            "ledger": self.ledger,
            "changed": self.draws.changed,
            "fresh_draw": self.draws.fresh_draw,
            "draws": self.draws.draws,
            "unit": self.draws.unit,
            "nights": self.draws.nights,
            "insecure_seed": self.draws.insecure_seed,
            "manifest": self.manifest,
            "internal_manifest": self.sides.internal_manifest,
            "codebook": self.sides.codebook,
        }
        paths = [self.channel, *(self.columns.also or [])]
        return _release_of(
            paths, self.source, self.target, self.columns, self.published, arguments
        )

    def mechanism_release(self, numbers: MechanismOptions) -> Callable[..., Any]:
        """The release through a mechanism file of `quantize`; it takes `progress` and `warn`."""
        identity = self._identity()
        arguments = self._common_arguments()
        self._refuse_options_of_channels()
        arguments |= {
            "ledger": self.ledger,
            # The mechanism file of the release stands where one through channels has its manifest.
            "mechanism_path": self.sides.manifest,
            "records": {**self.columns.release_arguments(), **self._format_arguments()},
        }
        return mechanism_release(
            self.channel, self.source, self.target, numbers, arguments, identity
        )

    def _identity(self) -> tuple[str, ...]:
        """The columns that identify a record; none where its row number does."""
        if self.draws.identity is None:
            return ()
        return tuple(names("--identity", [self.draws.identity]))

    def _common_arguments(self) -> dict[str, Any]:
        """What releases through channels and through mechanisms both take."""
        return {
            "text": self.text.text(),
            "compression": self.text.compress,
            "force": self.force,
            "key_from": self.draws.key,
            "dry_run": self.draws.dry_run,
            "strict": self.sides.strict,
        }

    def _format_arguments(self) -> dict[str, Any]:
        """How the cells of OUT are written."""
        return {
            "escape_formulas": self.text.escape_formulas,
            "format": self.text.format,
        }

    def _refuse_options_of_channels(self) -> None:
        """Raise InputError if there is an option that only a random draw can have."""
        # These would be ignored silently, and the user would believe in what they promise.
        is_asked = (
            bool(self.columns.also)
            or bool(self.sides.internal_manifest)
            or bool(self.sides.codebook)
            or self.draws.fresh_draw
            or self.draws.changed != "refuse"
            or self.draws.draws is not None
            or self.draws.unit is not None
            or self.columns.person is not None
            or self.draws.nights != 1
            or self.published != PolicyOptions()
        )
        if is_asked:
            raise InputError(
                "a mechanism draws nothing: --also, --as, --missing, --unknown, --normalise, "
                "--trim, --changed, --fresh-draw, --draws, --unit, --person, --nights, "
                "--internal-manifest and --codebook are for channels"
            )


def _release_of(
    paths: list[str],
    source: str,
    target: str,
    columns: ColumnOptions,
    published: PolicyOptions,
    arguments: dict[str, Any],
) -> Callable[..., Any]:
    """The release through the channels of these files; it takes `progress` and `warn`."""
    from mechdesign.channel.loading import load
    from mechdesign.jobs.folders import sanitise_path
    from mechdesign.jobs.vital_files import keep_apart

    channels = [load(path) for path in paths]
    columns.check_people(channels)
    # A channel file that an output replaces would be lost, and with it every later release.
    written = (
        target,
        arguments["manifest"],
        arguments["internal_manifest"],
        arguments["codebook"],
    )
    keep_apart(
        [path for path in written if path is not None],
        [("the channel file", path) for path in paths],
    )
    return partial(
        sanitise_path,
        channels,
        source,
        target,
        channel_files=paths,
        **published.arguments(channels),
        **arguments,
    )
