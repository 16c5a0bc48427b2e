"""The fixtures of releases."""

from __future__ import annotations

from tests.cases.release_fixtures import *  # noqa: F403
