"""`quantize` clears away when it is asked to stop."""

from __future__ import annotations

import os
import signal
import sys

import pytest

from mechdesign.jobs.target import Target

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no such signals")

QUERIES = {
    "records": (),
    "groups": ("--query", "mean"),
}


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_leaves_nothing(run, folder, monkeypatch, query, signum):
    data = "n,kwh\n" + "".join(f"{i},{7 * i % 50}\n" for i in range(200))
    (folder / "meters.csv").write_text(data)
    command = ("quantize", "meters.csv", "q.csv", "--column", "kwh", "--epsilon", "2")
    command += ("--range", "0,50", *QUERIES[query])
    seal = Target.seal

    def stopped(target):
        os.kill(os.getpid(), signum)
        return seal(target)

    before = sorted(path.name for path in folder.iterdir())
    with monkeypatch.context() as patch:
        patch.setattr(Target, "seal", stopped)
        ended = run(*command)
    assert ended.code == 128 + signum
    assert f"stopped by {signum.name}; nothing was written" in ended.err
    assert sorted(path.name for path in folder.iterdir()) == before
    assert run(*command).code == 0
