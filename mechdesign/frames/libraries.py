"""The adapter of a data frame in memory, chosen once by the library that the frame is of.

The adapters are asked in turn, and each knows the frames of its library (`FrameAdapter.adapt`).
"""

# Frames of three libraries have no type in common.
from __future__ import annotations

from typing import Any

from mechdesign.core.errors import InputError
from mechdesign.frames.adapter import FrameAdapter
from mechdesign.frames.arrow_frames import ArrowFrame
from mechdesign.frames.pandas_frames import PandasFrame
from mechdesign.frames.polars_frames import PolarsFrame

ADAPTERS: tuple[type[FrameAdapter], ...] = (ArrowFrame, PolarsFrame, PandasFrame)
"""A library more is an adapter more here."""


def find_adapter(frame: Any) -> FrameAdapter | None:
    """The adapter of a frame in memory; None for anything else."""
    for kind in ADAPTERS:
        adapter = kind.adapt(frame)
        if adapter is not None:
            return adapter
    return None


def adapter_of(frame: Any) -> FrameAdapter:
    """The adapter of a frame in memory.

    Raises
    ------
    InputError
        If it is no such frame.
    """
    adapter = find_adapter(frame)
    if adapter is None:
        kind = type(frame).__name__
        raise InputError(
            f"the table must be a pandas, polars or pyarrow table; not {kind}"
        )
    return adapter
