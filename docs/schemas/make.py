"""Write the JSON Schema of every file format, and of jobs, beside this file: `python
docs/schemas/make.py`.

The models are what reads and writes the files; a test compares the schemas with them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mechdesign.channel.file import ChannelDocument
from mechdesign.cli.job_file import job_model
from mechdesign.comparison.rows import ComparisonManifest
from mechdesign.core.documents import FileDocument
from mechdesign.jobs.folder_stage import ReleasedFolder
from mechdesign.jobs.side_files import InternalManifest, PublicManifest
from mechdesign.nonstochastic.mechanism_file import MechanismDocument

FOLDER = Path(__file__).parent

DRAFT = "https://json-schema.org/draft/2020-12/schema"
"""The version of JSON Schema, which editors would guess otherwise."""

KINDS: tuple[type[FileDocument], ...] = (
    ChannelDocument,
    MechanismDocument,
    PublicManifest,
    InternalManifest,
    ComparisonManifest,
    ReleasedFolder,
)


def json_schema(kind: type[FileDocument]) -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of the files of a kind."""
    schema = kind.model_json_schema()
    ends = {
        "format": {"const": kind.FORMAT},
        "version": {"enum": list(kind.VERSIONS)},
        "sha256": {
            "type": "string",
            "pattern": "^[0-9a-f]{64}$",
            "description": "SHA-256 of the canonical JSON of everything else: keys sorted, no "
            "blanks, UTF-8.",
        },
    }
    schema["$schema"] = DRAFT
    schema["title"] = f"{kind.FORMAT}, version {' or '.join(map(str, kind.VERSIONS))}"
    schema["properties"] = {**ends, **schema["properties"]}
    schema["required"] = [*ends, *schema.get("required", [])]
    return schema


def schemas() -> dict[str, str]:
    """The text of each schema, by file name."""
    texts = {
        f"{kind.FORMAT.removeprefix('mechdesign.')}.json": json.dumps(
            json_schema(kind), indent=2
        )
        + "\n"
        for kind in KINDS
    }
    job = {**job_model().model_json_schema(), "$schema": DRAFT}
    return texts | {"run.json": json.dumps(job, indent=2) + "\n"}


if __name__ == "__main__":
    for name, text in schemas().items():
        (FOLDER / name).write_text(text, encoding="utf-8", newline="\n")
