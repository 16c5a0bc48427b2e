"""The guess of a secret from whole rows."""

from __future__ import annotations

import numpy as np
import pytest

from mechdesign.leaks.coded_table import CodedColumn
from mechdesign.leaks.row_guess import guess_from_rows


def test_boosting_uses_one_thread(monkeypatch):
    """Several wait for each other by spinning: on a busy machine that took ten times as long."""
    ensemble = pytest.importorskip("sklearn.ensemble")
    threadpoolctl = pytest.importorskip("threadpoolctl")
    seen = []

    class Watched(ensemble.HistGradientBoostingClassifier):
        def fit(self, *arguments):
            pools = threadpoolctl.threadpool_info()
            seen.extend(p["num_threads"] for p in pools if p["user_api"] == "openmp")
            return super().fit(*arguments)

    monkeypatch.setattr(ensemble, "HistGradientBoostingClassifier", Watched)
    codes = np.tile(np.array([0, 1], np.int32), 20)
    with threadpoolctl.threadpool_limits(limits=2, user_api="openmp"):
        guess = guess_from_rows(
            [CodedColumn("x", codes, ("a", "b"))], codes, ["a", "b"]
        )
    assert guess.model == "gradient boosting"
    assert set(seen) == {1}
