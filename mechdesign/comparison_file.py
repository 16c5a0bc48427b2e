"""A comparison on disk: a plain CSV, and beside it a manifest that says which table it belongs to.

The manifest makes a run resumable: rows are kept only if they come from the same table and settings.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mechdesign.channel_file import canonical
from mechdesign.comparison_rows import ComparisonRow, read_rows, rows_csv
from mechdesign.errors import InputError
from mechdesign.files import PathLike, check_target, replacing
from mechdesign.hashed_json import read_hashed, write_hashed
from mechdesign.joint import Joint

FORMAT = "mechdesign.comparison"
VERSION = 1
MANIFEST = "manifest of a comparison"

Setting = str | float | bool | None


def table_hash(joint: Joint) -> str:
    """sha256 of the table: labels of both variables and every entry."""
    table = {
        "sensitive": {"columns": joint.sensitive.columns, "symbols": joint.sensitive.symbols},
        "useful": {"columns": joint.useful.columns, "symbols": joint.useful.symbols},
        "counts": joint.counts,
        "is_counts": joint.is_counts,
    }
    return hashlib.sha256(canonical(table).encode()).hexdigest()


def manifest_path(path: PathLike) -> Path:
    """Where the manifest of the CSV at `path` lies."""
    return Path(f"{os.fspath(path)}.json")


class ComparisonFile:
    """The CSV of a run: what it holds already, and how rows are added to it.

    Parameters
    ----------
    path : path
        The CSV; its manifest is `path`.json.
    joint : Joint
    settings : mapping
        Whatever changes results beside the table and the columns of a row.
    force : bool
        Start over, whatever is there.

    Raises
    ------
    InputError
        If the file is there and belongs to another table or to other settings, is no comparison, or was damaged;
        or if nothing can be written there.
    """

    def __init__(
        self, path: PathLike, joint: Joint, settings: Mapping[str, Setting], *, force: bool = False
    ) -> None:
        self.path = Path(path)
        self._name = os.fspath(path)
        check_target(self.path, force=True)
        manifest = manifest_path(path)
        check_target(manifest, force=True)
        table = table_hash(joint)
        self.kept: tuple[ComparisonRow, ...] = ()
        if manifest.exists() and not force:
            self._check(
                read_hashed(manifest, FORMAT, VERSION, ("table", "settings"), MANIFEST), table, settings
            )
        elif self.path.exists() and not force:
            raise InputError(
                f"{self._name} exists and is no comparison to go on with (there is no {manifest.name}); "
                "choose another name, or overwrite it with force (--force)"
            )
        if self.path.exists() and not force:
            self.kept = read_rows(self.path)
        else:
            # A crash between the two steps leaves a manifest without rows, never rows of another table.
            self.path.unlink(missing_ok=True)
            content = {"table": table, "settings": dict(settings)}
            write_hashed(manifest, FORMAT, VERSION, content, overwrite=True)

    def _check(self, found: Mapping[str, Any], table: str, settings: Mapping[str, Setting]) -> None:
        if not self.path.exists():
            return
        if found["table"] != table:
            raise InputError(
                f"{self._name} belongs to another table; choose another name, or start over with force (--force)"
            )
        if found["settings"] != settings:
            raise InputError(
                f"{self._name} was made with other settings ({_difference(found['settings'], settings)}); "
                "choose another name, or start over with force (--force)"
            )

    def write(self, rows: Sequence[ComparisonRow]) -> None:
        """Replace the CSV by these rows, followed by the kept ones that they do not repeat."""
        cases = {row.case for row in rows}
        write_csv(self.path, [*rows, *(row for row in self.kept if row.case not in cases)], overwrite=True)


def write_csv(path: PathLike, rows: Iterable[ComparisonRow], *, overwrite: bool) -> None:
    """Write the rows as CSV, whole or not at all.

    Raises
    ------
    InputError
        If the file exists (without `overwrite`) or cannot be written.
    """
    check_target(path, force=overwrite)
    with replacing(path, force=overwrite) as temporary:
        temporary.write_text(rows_csv(rows), encoding="utf-8", newline="")


def _difference(found: Mapping[str, Setting], wanted: Mapping[str, Setting]) -> str:
    """``gap 0.0001, not 0.001``: the first setting that is not the same."""
    key = next(key for key in sorted({*found, *wanted}) if found.get(key) != wanted.get(key))
    return f"{key} {found.get(key)}, not {wanted.get(key)}"
