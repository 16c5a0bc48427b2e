"""The schemas in docs/ are those of the models, and files that are written keep to them."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd
import pytest
from jsonschema import Draft202012Validator, ValidationError

import mechdesign as md
from mechdesign.core import documents
from mechdesign.core.documents import (
    Digest,
    FileDocument,
    Record,
    canonical,
    hashed_text,
    read_document,
    with_infinities,
    without_infinities,
    write_document,
)
from mechdesign.core.errors import InputError

FOLDER = Path(__file__).parents[3] / "docs" / "schemas"


def made() -> Any:
    spec = importlib.util.spec_from_file_location(
        "schemas_of_the_formats", FOLDER / "make.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_schemas_in_the_documentation_are_those_of_the_models():
    """If this fails, run `python docs/schemas/make.py`."""
    assert {
        path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.json")
    } == made().schemas()


def test_every_schema_names_its_format_and_refuses_other_keys():
    for name, text in made().schemas().items():
        schema = json.loads(text)
        assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
        if name == "run.json":  # written by people: no hash, no format
            continue
        assert schema["properties"]["format"]["const"].startswith("mechdesign.")
        assert {"format", "version", "sha256"} <= set(schema["required"])
        assert schema["additionalProperties"] is False


def test_other_programs_read_the_schemas(tmp_path):
    for text in made().schemas().values():
        Draft202012Validator.check_schema(json.loads(text))
    schema = json.loads(made().schemas()["channel.json"])
    table = pd.DataFrame({"s": list("0011"), "x": list("abab")})
    asked = {"sensitive": "s", "useful": "x", "missing": "output:a"}
    channel = md.design(table, md.LIP(0.5), objective="truth", **asked).channel
    channel.save(tmp_path / "channel.json")
    document = json.loads((tmp_path / "channel.json").read_text())
    validator = Draft202012Validator(schema)
    validator.validate(document)
    for wrong in ("refused", "output:", "an output:a", "marginally"):
        document["rules"]["missing"] = wrong
        with pytest.raises(ValidationError, match="does not match"):
            validator.validate(document)


class Entry(Record):
    digest: Digest
    size: int = 0


class Sample(FileDocument):
    FORMAT: ClassVar[str] = "mechdesign.sample"
    WHAT: ClassVar[str] = "sample file"

    name: str
    share: float
    entries: tuple[Entry, ...] = ()


def test_a_document_comes_back(tmp_path):
    sample = Sample(
        name="größe",
        share=0.5,
        entries=(Entry(digest="a" * 64), Entry(digest="b" * 64, size=2**80)),
    )
    write_document(tmp_path / "s.json", sample, overwrite=False)
    assert read_document(tmp_path / "s.json", Sample) == sample
    with pytest.raises(InputError, match="exists"):
        write_document(tmp_path / "s.json", sample, overwrite=False)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"name": 7, "share": 0.5}, r"s\.json: name \('7'\) must be text"),
        ({"name": "a", "share": "0.5"}, r"share \('0\.5'\) must be a number"),
        ({"name": "a", "share": True}, r"share \('True'\) must be a number"),
        ({"name": "a"}, r"the sample file has no 'share'"),
        (
            {"name": "a", "share": 1, "shape": 1, "sharp": 2},
            r"the sample file has an unknown key 'shape', 'sharp'",
        ),
        (
            {"name": "a", "share": 1, "entries": [{"digest": "x"}]},
            r"entries\[0\]\.digest \('x'\) must be a hash",
        ),
        ({"name": "a", "share": 1, "entries": [{}]}, r"entries\[0\] has no 'digest'"),
        (
            {"name": "a", "share": 1, "entries": {"digest": "a"}},
            r"entries \(an object\) must be a list",
        ),
        (
            {"name": "a", "share": 1, "entries": [{"digest": "a" * 64, "x": 1}]},
            r"entries\[0\] has an unknown key 'x'",
        ),
        (
            {"name": "a", "share": 1, "entries": [{"digest": "a" * 64, "size": 1.0}]},
            r"entries\[0\]\.size \('1\.0'\) must be a whole number",
        ),
    ],
)
def test_a_message_names_file_place_and_fault(tmp_path, content, message):
    (tmp_path / "s.json").write_text(
        hashed_text("mechdesign.sample", 1, content), encoding="utf-8"
    )
    with pytest.raises(InputError, match=message) as caught:
        read_document(tmp_path / "s.json", Sample)
    assert "\n" not in str(caught.value)


def test_text_with_a_lone_surrogate_is_named_by_its_place(tmp_path):
    document = {
        "format": "mechdesign.sample",
        "version": 1,
        "name": "\ud800",
        "share": 1,
        "sha256": "",
    }
    (tmp_path / "s.json").write_text(json.dumps(document))
    with pytest.raises(
        InputError, match=r"name .* is not valid Unicode text \(lone surrogate\)"
    ):
        read_document(tmp_path / "s.json", Sample)


def test_infinities_are_texts_in_files():
    values = {"a": [float("inf"), 1.5, {"b": float("-inf")}], "c": "inferior"}
    plain = without_infinities(values)
    assert json.loads(canonical(plain)) == {
        "a": ["inf", 1.5, {"b": "-inf"}],
        "c": "inferior",
    }
    assert with_infinities(plain) == values


def test_a_schema_says_what_the_model_says():
    schema = made().json_schema(Sample)
    assert schema["properties"]["share"]["type"] == "number"
    assert (
        schema["$defs"]["Entry"]["properties"]["digest"]["pattern"]
        == "^(?:[0-9a-f]{64})$"
    )
    assert schema["required"] == ["format", "version", "sha256", "name", "share"]


def test_versions_of_packages_are_read_once(monkeypatch):
    """A release of a folder states them for every file."""
    read = []

    def version(package):
        read.append(package)
        return "1.0"

    monkeypatch.setattr(documents, "version", version)
    documents.package_version.cache_clear()
    try:
        found = documents.versions(), documents.versions()
    finally:
        documents.package_version.cache_clear()
    assert found[0] == found[1]
    assert found[0]["numpy"] == "1.0"
    assert read == [*documents.PACKAGES]
