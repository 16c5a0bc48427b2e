"""A good channel file as a document, and what becomes of it when one value is changed."""

from __future__ import annotations

import hashlib
import json

import pytest

from mechdesign.channel.channel import Channel
from mechdesign.core.errors import InputError

D = 2**53

GOOD = {
    "format": "mechdesign.channel",
    "version": 1,
    "useful": {"columns": ["job"], "symbols": [["Sales"], ["Tech"]]},
    "sensitive": {"columns": ["sex"], "symbols": [["f"], ["m"]]},
    "outputs": ["Sales", "mix-1"],
    "denominator": D,
    "rows": [[D, 0], [D // 4, 3 * D // 4]],
    "joint": [[1, 2], [3, 4]],
    "notion": {"name": "alip", "eps_l": 1.0, "eps_u": "inf"},
    "achieved": None,
    "utility": {"nmi": 0.5},
    "certificate": None,
    "provenance": {"tool": "mechdesign"},
}


def hashed(document: dict) -> dict:
    canonical = json.dumps(
        {k: v for k, v in document.items() if k != "sha256"},
        sort_keys=True,
        separators=(",", ":"),
        ensure_ascii=False,
    )
    return {
        **document,
        "sha256": hashlib.sha256(
            canonical.encode("utf-8", "surrogatepass")
        ).hexdigest(),
    }


def changed(path: str, value, good: dict = GOOD) -> dict:
    """The good document with the value at `path` (keys and positions with dots) replaced, hashed anew."""
    document = json.loads(json.dumps(good))
    *parents, last = [int(key) if key.isdigit() else key for key in path.split(".")]
    place = document
    for key in parents:
        place = place[key]
    if value is None:
        del place[last]
    else:
        place[last] = value
    return hashed(document)


def assert_refused(tmp_path, content: bytes | str, message: str) -> None:
    path = tmp_path / "bad.json"
    path.write_bytes(
        content
        if isinstance(content, bytes)
        else content.encode("utf-8", "surrogatepass")
    )
    with pytest.raises(InputError, match=message) as caught:
        Channel.load(path)
    text = str(caught.value)
    assert text.startswith(str(path))
    assert "\n" not in text
    assert len(text) < 400 + len(str(path))
