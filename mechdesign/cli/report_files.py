"""Where reports are written: options of `design` and `report`, and what is refused before any work."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mechdesign.core.errors import InputError

if TYPE_CHECKING:
    from mechdesign.report.record import Report


@dataclass(frozen=True)
class ReportPaths:
    """The reports asked for."""

    internal: str | None
    public: str | None
    force: bool

    @property
    def asked(self) -> bool:
        """Whether there is any."""
        return self.internal is not None or self.public is not None

    def check(self, sources: tuple[str, ...], others: Mapping[str, str | None]) -> None:
        """Refuse what cannot be written."""
        if not self.asked:
            return
        from mechdesign.report.writing import check_report

        targets = {"--report": self.internal, "--public-report": self.public}
        seen: dict[str, str] = {}
        for option, path in {**others, **targets}.items():
            if path is None:
                continue
            place = os.path.realpath(path)
            if place in seen:
                raise InputError(f"{seen[place]} and {option} both name {path}: give each a file of its own")
            seen[place] = option
        for option, path in targets.items():
            if path is not None:
                check_report(path, force=self.force, sources=sources, pictures=option == "--report")
                check_writable(path)

    def save(self, internal: Report | None, public: Report | None) -> None:
        """Write them."""
        from mechdesign.report.writing import save_report

        for path, report in ((self.internal, internal), (self.public, public)):
            if path is not None and report is not None:
                save_report(report, path, overwrite=self.force)

    def record(self) -> dict[str, str | None]:
        """As the JSON of a command has them."""
        return {"report": self.internal, "public_report": self.public}

    def text(self) -> str:
        """One line for people."""
        parts: list[str] = []
        if self.internal is not None:
            parts.append(f"Internal report: {self.internal}.")
        if self.public is not None:
            parts.append(f"Public report: {self.public}.")
        return " ".join(parts)


def check_writable(path: str) -> None:
    """Find out before the work, not after it, that nothing can be written there."""
    folder = os.path.dirname(path) or "."
    if not os.access(folder, os.W_OK):
        raise InputError(f"{path} cannot be written: the folder {folder!r} is not writable")
