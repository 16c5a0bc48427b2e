"""Write the JSON Schema of every file format, and of jobs, beside this file: `python docs/schemas/make.py`.

The models are what reads and writes the files; a test compares the schemas with them.
"""

from __future__ import annotations

import json
from pathlib import Path

from mechdesign.channel.file import ChannelDocument
from mechdesign.cli.run import job_model
from mechdesign.comparison.rows import ComparisonManifest
from mechdesign.core.documents import FileDocument, json_schema
from mechdesign.nonstochastic.mechanism_file import MechanismDocument
from mechdesign.sanitise.entries import OldJob
from mechdesign.sanitise.folders import ReleasedFolder
from mechdesign.sanitise.manifest import InternalManifest, PublicManifest

FOLDER = Path(__file__).parent

KINDS: tuple[type[FileDocument], ...] = (
    ChannelDocument,
    MechanismDocument,
    OldJob,
    PublicManifest,
    InternalManifest,
    ComparisonManifest,
    ReleasedFolder,
)


def schemas() -> dict[str, str]:
    """The text of each schema, by file name."""
    texts = {
        f"{kind.FORMAT.removeprefix('mechdesign.')}.json": json.dumps(json_schema(kind), indent=2) + "\n"
        for kind in KINDS
    }
    return texts | {"run.json": json.dumps(job_model().model_json_schema(), indent=2) + "\n"}


if __name__ == "__main__":
    for name, text in schemas().items():
        (FOLDER / name).write_text(text, encoding="utf-8", newline="\n")
