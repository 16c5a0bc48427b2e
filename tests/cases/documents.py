"""Files with a hash of their content, changed behind its back."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mechdesign.core.documents import hashed_text


def rewrite(
    path: Path, change: Callable[[dict[str, Any]], Any], target: Path | None = None
) -> None:
    """Write the document, with a change to its content and a hash that fits it, in its place or to another one."""
    document = json.loads(path.read_text(encoding="utf-8"))
    kind, version = document["format"], document["version"]
    for key in ("format", "version", "sha256"):
        del document[key]
    change(document)
    target = path if target is None else target
    target.unlink(missing_ok=True)
    target.write_text(hashed_text(kind, version, document), encoding="utf-8")
