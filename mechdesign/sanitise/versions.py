"""Which versions of what made a file."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

import mechdesign

PACKAGES = ("pyarrow", "numpy", "cryptography")
"""Whose versions can change bytes of the output (never a draw)."""


def versions() -> dict[str, str]:
    """Names and versions, without importing what is heavy."""
    found = {"mechdesign": mechdesign.__version__, "python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:  # run from a bare folder of sources, say
            found[package] = "unknown"
    return found
