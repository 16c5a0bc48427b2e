"""Reports on designs: record, document, renderers. The package is also the function
`mechdesign.report`.

A report is made in three steps: `collect` measures and audits, `content` chooses the figures and
words of a `record`, and `document` lays it out for `writing` and `terminal`. What a release of
boxes has besides is a part of the record, with sections of its own (`boxes`). Users write
``mechdesign.report(design, path)``, so the class of this module has a `__call__`.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


class _Report(ModuleType):
    def __call__(
        self,
        design: Any,
        path: Any,
        *,
        public: bool = False,
        curve: float | None = None,
        overwrite: bool = False,
    ) -> None:
        """Write a report on a design, or on a designed channel, as `design --report` does.

        Parameters
        ----------
        design : Design or Channel
        path : path
            Its ending says the format: .html, .md or .json.
        public : bool
            Without the table and whatever is computed from it, except the channel.
        curve : float, optional
            Processor seconds for the trade-off curve of an internal report, 0 for none; 6 by
            default. A release of boxes has no curve.
        overwrite : bool

        Raises
        ------
        InputError
            If the file exists (without `overwrite`) or cannot be written, or the table that an
            internal report is about is not in the channel.
        """
        # Every module of the package loads this file first, and few need what a report collects.
        from mechdesign.report.collect import write_report

        write_report(design, path, public=public, curve=curve, overwrite=overwrite)


sys.modules[__name__].__class__ = _Report
