"""The options of a release of whole rows: `RowColumns` of `compare`, `RowOptions` of `design`.

``--release A,B*C --given D`` gives the levels (A,) and (B, C), which are drawn one after the other,
each given those before it, and the column D, which is released as it is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from mechdesign.cli.line import flag, option
from mechdesign.core.errors import InputError
from mechdesign.core.wording import quoted

TRUTH = "truth"
"""The objective of a release of rows where none is named."""

TOTAL = "total"
"""The promise that compares with knowing nothing."""


@dataclass(frozen=True, kw_only=True)
class RowColumns:
    """Release whole rows"""

    release: list[str] | None = option(
        "COL[*COL][,..]",
        "Release whole rows of these columns under one promise; "
        "levels in this order, A*B crosses two columns in one level.",
    )
    given: list[str] | None = option(
        "COL[,COL..]", "Columns released as they are, with --release."
    )
    promise: str = option(
        "WHICH",
        "With --given: total (compared with knowing nothing) or relative (compared "
        "with knowing the given columns).",
        "total",
    )
    order: str = option(
        "WHICH",
        "Order of the levels: given, or best (tries all for up to five).",
        "given",
    )
    least_mass: str | None = option(
        "SHARE",
        "Rows whose beginning is rarer than this release the rest as a constant.",
    )

    @property
    def asked(self) -> bool:
        """Whether rows are to be released."""
        return self.release is not None

    def levels(self) -> list[tuple[str, ...]]:
        """The columns of each level."""
        # Repeating the option is the same as commas, as for every option that names columns.
        levels: list[tuple[str, ...]] = []
        for text in self.release or ():
            for level in text.split(","):
                # "A*B" is one level of two columns, which are drawn together.
                columns = tuple(level.split("*"))
                if "" in columns:
                    raise InputError(
                        f"--release {text!r} has an empty column name; write A,B*C,D"
                    )
                levels.append(columns)
        return levels

    def given_columns(self) -> tuple[str, ...]:
        """The columns that are released as they are."""
        columns: list[str] = []
        for text in self.given or ():
            columns += text.split(",")
        if "" in columns:
            raise InputError("--given has an empty column name; write A,B")
        return tuple(columns)

    def mass(self) -> float | None:
        """The share of the records that the beginning of a row needs (`least_mass`)."""
        if self.least_mass is None:
            return None
        try:
            return float(self.least_mass)
        except ValueError:
            raise InputError(
                f"--least-mass ({quoted(self.least_mass)}) must be a share of the records in [0, 1)"
            ) from None


@dataclass(frozen=True, kw_only=True)
class RowOptions(RowColumns):
    """Release whole rows"""

    cells: str | None = option(
        "N",
        "With --release and --confidence: number of boxes of rows; by default a slice "
        "of the records chooses.",
    )
    rare: str | None = option(
        "auto|N",
        "With --confidence, and --release or --merge-rare: sensitive values of fewer records are "
        "promised together; auto (--merge-rare) takes the fewest with which half is kept.",
    )
    fill: bool = flag(
        "With --release and --confidence: release symbols drawn inside the released box."
    )

    slice_seed: str | None = option(
        "N",
        "With --confidence, and --release or --merge-rare: repeat the draw of the slice of an "
        "earlier design. Do not choose it by its result.",
    )

    merge_rare: str | None = option(
        "auto|N",
        "With --useful and --confidence: merge useful symbols on a tenth of the "
        "records, and prove the promise on the others; auto chooses the sets, N "
        "merges symbols of fewer than N records.",
    )

    @property
    def merging(self) -> bool:
        """Whether symbols of one column are to be merged."""
        return self.merge_rare is not None

    def merge_below(self) -> int | None:
        """The number of records below which symbols are merged; None where the slice chooses."""
        if self.merge_rare in (None, "auto"):
            return None
        return self.count("--merge-rare", self.merge_rare)

    def rare_records(self) -> int | Literal["auto"]:
        """Records below which a release of one column promises sensitive values together."""
        if self.rare == "auto":
            return "auto"
        return self.count("--rare", self.rare) or 0

    def refuse_alone(self) -> None:
        """Refuse options of rows without --release."""
        if self.merging and self.asked:
            raise InputError(
                "--merge-rare is for one column (--useful); --release learns boxes of "
                "rows anyway: leave it out"
            )
        if self.rare == "auto" and self.asked:
            raise InputError(
                "--rare auto is for one column (--merge-rare): with --release give a number of "
                "records"
            )
        # --merge-rare has two of these options in common with --release.
        only_of_rows = self
        if self.merging:
            only_of_rows = replace(self, merge_rare=None, rare=None, slice_seed=None)
        if only_of_rows != type(self)() and not self.asked:
            raise InputError(
                "--given, --promise, --order, --least-mass, --cells, --rare, --slice-seed and "
                "--fill belong to a release of rows: give --release COL,.. too"
            )

    def count(self, name: str, text: str | None) -> int | None:
        """A whole number among the options."""
        if text is None:
            return None
        try:
            return int(text)
        except ValueError:
            raise InputError(
                f"{name} ({quoted(text)}) must be a whole number"
            ) from None
