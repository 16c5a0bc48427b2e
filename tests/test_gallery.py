"""The gallery shows what its script draws, and names every example."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
GALLERY = ROOT / "docs" / "gallery"


def texts(path):
    """What is written in a picture; where the strokes are depends on matplotlib."""
    return re.findall(r"<text[^>]*>([^<]*)</text>", path.read_text(encoding="utf-8"))


def test_the_pictures_are_those_that_the_script_draws(tmp_path):
    """If this fails, run `python docs/gallery/make.py`."""
    pytest.importorskip("matplotlib")
    spec = importlib.util.spec_from_file_location("gallery", GALLERY / "make.py")
    gallery = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(gallery)
    gallery.draw(tmp_path)
    drawn = {path.name: texts(path) for path in tmp_path.glob("*.svg")}
    assert drawn == {path.name: texts(path) for path in GALLERY.glob("*.svg")}
    assert all(drawn.values())


def test_every_example_and_every_picture_is_on_the_page():
    page = (ROOT / "docs" / "how-to" / "gallery.md").read_text(encoding="utf-8")
    examples = ROOT / "examples"
    shared = {"adult.py", "adult_rows.py", "experiment.py", "common.py", "kinds.py"}
    for folder in (examples, examples / "nonstochastic"):
        for path in [*folder.glob("*.py"), *folder.glob("*.ipynb")]:
            assert path.name in shared or f"`{path.name}`" in page, path.name
    for picture in GALLERY.glob("*.svg"):
        assert f"../gallery/{picture.name}" in page
