"""A release channel W(y|x) in exact integers, with its labels, its draws and its file.

A `Channel` is made by `design` or read by `load`, and never changes; `public` and `with_record`
return others. Everything is computed from two tables of integers: its rows, and the counts of the
joint table, if it has one. With the rows (3, 1) and (1, 3) over 4 for x = clerk, nurse, and with 10
clerks and 20 nurses in the table, the output y = clerk has the masses 30 and 20 behind it
(`behind`), so P(clerk | y) = 3/5 and P(y) = 50/120.

The class checks that its rows are probabilities. Whether they keep a promise is decided by
`auditing`, never here.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from mechdesign.channel.record import ChannelRecord, check_symbol_budgets
from mechdesign.core.arguments import repeated, valid_text
from mechdesign.core.display import Displayed
from mechdesign.core.errors import InputError
from mechdesign.core.integers import LARGEST_INTEGER, IntegerRows
from mechdesign.core.wording import quoted
from mechdesign.notions import from_record
from mechdesign.release.drawing import Release, key_of
from mechdesign.release.draws import Identifiers, Key, Records, RowNumbers
from mechdesign.release.policies import Policy
from mechdesign.tables.columns import values_of
from mechdesign.tables.joint import Array, Joint
from mechdesign.tables.rebuilding import rebuild
from mechdesign.tables.variable import Variable

DENOMINATOR = 2**53
"""Common denominator of every designed channel: its probabilities are doubles without rounding."""


@dataclass(frozen=True, repr=False)
class Channel(Displayed):
    """W(y|x) = rows[x][y] / denominator, exactly; rows are inputs x, columns outputs y.

    A `Channel` has rows of probabilities. Its privacy is a matter of `auditing.audit`.

    Parameters
    ----------
    useful : Variable
        The |X| inputs, one per row.
    outputs : tuple of str
        One label per output, all different.
    rows : |X| sequences of integers
        Non-negative, each summing to `denominator`; every output is reached by some row.
    denominator : int
        In [1, 2**62].
    joint : Joint, optional
        The table that the channel was designed for; None in a public channel.
    sensitive : Variable, optional
        That of the joint when there is one.
    record : ChannelRecord

    Raises
    ------
    InputError
        If any of this does not hold; the message names the row or the output.
    """

    useful: Variable
    outputs: tuple[str, ...]
    rows: Sequence[Sequence[int]]
    denominator: int = DENOMINATOR
    joint: Joint | None = None
    sensitive: Variable | None = None
    record: ChannelRecord = field(default_factory=ChannelRecord)

    def __repr__(self) -> str:
        text = f"Channel({self.useful.brief} to {len(self.outputs):,} outputs"
        if self.sensitive is not None:
            text += f", protects {self.sensitive.brief}"
        if self.record.notion is not None:
            text += f", {from_record(self.record.notion).text}"
        return text + ")"

    def __post_init__(self) -> None:
        outputs = tuple(valid_text(label, "an output label") for label in self.outputs)
        # The class is frozen, so normalised fields are set past its own `__setattr__`.
        object.__setattr__(self, "outputs", outputs)
        object.__setattr__(self, "rows", IntegerRows.of(self.rows, self.useful.names))
        if not outputs:
            raise InputError("a channel needs at least one output")
        twice = repeated(outputs)
        if twice is not None:
            raise InputError(
                f"the output label {quoted(twice)} occurs twice; labels must be different"
            )
        self._check_rows()
        if self.joint is not None:
            self._check_joint(self.joint)
            object.__setattr__(self, "sensitive", self.joint.sensitive)
        # After `sensitive` is set: budgets belong to its symbols.
        self._check_record()

    def _check_joint(self, joint: Joint) -> None:
        """Raise InputError unless the joint table is over the channel's own variables."""
        if joint.useful != self.useful:
            raise InputError(
                "the useful variable of the joint table is not the one of the channel"
            )
        if self.sensitive not in (None, joint.sensitive):
            raise InputError(
                "the sensitive variable of the joint table is not the one of the channel"
            )

    def _check_rows(self) -> None:
        """Raise InputError unless rows have their shape and sum, and every output has mass."""
        denominator = self.denominator
        names = self.useful.names
        integers = self.integers
        # bool is a kind of int, and no denominator.
        if type(denominator) is not int or not 1 <= denominator <= LARGEST_INTEGER:
            raise InputError(
                f"the denominator ({quoted(denominator)}) must be an integer in [1, 2^62]"
            )
        if integers.shape != (len(self.useful), len(self.outputs)):
            raise InputError(
                f"the rows form a {integers.shape[0]} x {integers.shape[1]} table, but there are "
                f"{len(self.useful)} useful symbols and {len(self.outputs)} outputs"
            )
        # Before the sums: the message about one wrong entry is more precise than one about its row.
        excess = np.flatnonzero(integers.values > denominator)
        if excess.size:
            k = excess[0]
            row = names[integers.row_of[k]]
            output = self.outputs[integers.indices[k]]
            raise InputError(
                f"row {quoted(row)}, output {quoted(output)}: the entry {integers.values[k]} "
                f"is larger than the denominator {denominator}"
            )
        for name, total in zip(names, integers.row_sums(), strict=True):
            if total != denominator:
                raise InputError(
                    f"row {quoted(name)} sums to {total}, not to the denominator {denominator}"
                )
        # An output without mass has no posterior, so it could not be audited.
        reached = np.bincount(integers.indices, minlength=len(self.outputs))
        if not reached.all():
            label = self.outputs[int(np.argmin(reached))]
            raise InputError(
                f"the output {quoted(label)} has no mass: no row ever gives it"
            )

    def _check_record(self) -> None:
        """Raise InputError unless the record's budgets and intervals fit the channel's symbols."""
        record = self.record
        if self.sensitive is None:
            if record.budgets or record.confidence:
                raise InputError(
                    "budgets of symbols and a confidence set need sensitive symbols, and there "
                    "are none"
                )
            return
        check_symbol_budgets(record.budgets, self.sensitive)
        intervals = (record.confidence or {}).get("intervals")
        if intervals is not None:
            size = len(self.sensitive)
            width = len(self.useful)
            widths = [len(row) for row in intervals["cells"]]
            if len(intervals["shares"]) != size or widths != [width] * size:
                raise InputError(
                    f"confidence: there must be intervals for {size} shares, and for {size} rows "
                    f"of {width} cells"
                )

    @property
    def integers(self) -> IntegerRows:
        """`rows` with their sparse structure."""
        return IntegerRows.of(self.rows)

    # A Protocol's property accepts a property only, therefore the caches lie behind properties.
    @property
    def matrix(self) -> Array:
        """(|X|, outputs) array of W(y|x), correctly rounded (exact for denominator 2**53)."""
        return self._cached_matrix

    @cached_property
    def _cached_matrix(self) -> Array:
        values = self.integers.dense / float(self.denominator)
        values.setflags(write=False)
        return values

    @cached_property
    def output_masses(self) -> Array:
        """(outputs,) array of P(y) under the joint table.

        Raises
        ------
        InputError
            If the channel has no joint table, as a public one.
        """
        # Sums of integers, and one division at the end: each mass is rounded once.
        totals = [sum(masses) for _, masses in self.behind]
        scale = sum(totals)
        return np.array([total / scale for total in totals])

    @property
    def posteriors(self) -> Array:
        """(outputs, |X|) array of P(x|y) under the joint; raises as `output_masses` does."""
        return self._cached_posteriors

    @cached_property
    def _cached_posteriors(self) -> Array:
        """As `posteriors`; inputs that are not behind an output have 0."""
        values = np.zeros((len(self.outputs), len(self.useful)))
        for row, (inputs, masses) in zip(values, self.behind, strict=True):
            total = sum(masses)
            # Of integers, so that each quotient is rounded once.
            row[list(inputs)] = [mass / total for mass in masses]
        values.setflags(write=False)
        return values

    @property
    def behind(self) -> list[tuple[tuple[int, ...], list[int]]]:
        """For every output the inputs that can have caused it, and their P(x, y) as integers.

        They are N(x) rows[x][y] = P(x, y) total denominator, with the counts N(x) of the table.
        """
        if self.joint is None:
            raise InputError(
                "this channel carries no joint table (a public one): posteriors need the table"
            )
        # Python integers, because counts times entries may exceed 64 bits.
        weights = self.joint.useful_counts
        behind: list[tuple[tuple[int, ...], list[int]]] = []
        for inputs, values in self.integers.columns:
            masses = [weights[x] * w for x, w in zip(inputs, values, strict=True)]
            behind.append((inputs, masses))
        return behind

    @property
    def own_entries(self) -> list[int]:
        """The entry of each row on the output that has the name of its symbol; 0 without one."""
        output_of = dict(zip(self.outputs, range(len(self.outputs)), strict=True))
        entries: list[int] = []
        for name, row in zip(self.useful.names, self.integers.entries(), strict=True):
            y = output_of.get(name, -1)
            entries.append(dict(row).get(y, 0))
        return entries

    def codebook(self) -> dict[str, dict[str, float]]:
        """For every output label, the posterior P(x|y) of each input that can have caused it."""
        names = self.useful.names
        codebook: dict[str, dict[str, float]] = {}
        for label, (inputs, masses) in zip(self.outputs, self.behind, strict=True):
            total = sum(masses)
            posterior: dict[str, float] = {}
            for x, mass in zip(inputs, masses, strict=True):
                posterior[names[x]] = mass / total
            codebook[label] = posterior
        return codebook

    @property
    def unseen(self) -> int:
        """Number of symbols without a record in the table, which the promise covers, too.

        It covers them if they are released as the marginal.
        """
        return (self.record.confidence or {}).get("unseen", 0)

    @property
    def distance(self) -> Literal["absolute", "squared"] | None:
        """The distance between numbers that the design minimised; None for other objectives."""
        objective = self.record.objective
        if objective is None:
            return None
        return objective.distance

    def with_record(self, record: ChannelRecord) -> Channel:
        """The same channel with another record."""
        return replace(self, record=record)

    def apply(
        self,
        column: Any,
        *,
        key: Key | None = None,
        identity: Sequence[str] | None = None,
        first_row: int = 0,
        policy: Policy | None = None,
        insecure_seed: int | None = None,
    ) -> Any:
        """Draw an output for every entry of a column; the same kind of column back.

        The draw of a record depends on the key, the channel and the record's row number or
        identifier only. With the key of a job (`read_key`) it is the draw of that job. Without a
        key a new one is used and forgotten, so another call gives other draws, and two releases of
        a record disclose more than the budget.

        Parameters
        ----------
        column : pandas, polars or pyarrow column, or sequence of text
            Symbols of X as text; for crossed columns a frame that has them, or a sequence of
            tuples.
        key : draws.Key, optional
        identity : sequence of str, optional
            What identifies each record; its row number otherwise.
        first_row : int
            Row number of the first entry.
        policy : release.Policy, optional
            The rules for unknown symbols and missing cells; by default those with which the
            channel was designed, where both are refused if nothing was said.
        insecure_seed : int, optional
            Reproducible draws, for tests only: with the seed the channel can be undone.

        Raises
        ------
        InputError
            On a symbol that the channel does not know or a null, unless the policy has a rule for
            it.
        """
        cells = values_of(column, self.useful)
        count = len(cells[0])
        records: Records
        if identity is None:
            records = RowNumbers(first_row, count)
        else:
            records = Identifiers([list(identity)])
        if len(records) != count:
            raise InputError(
                f"the identity has {len(records)} entries and the column {count}"
            )
        if policy is None:
            policy = Policy.recorded(self.record.rules)
        release = Release(self, key_of(key, insecure_seed), policy=policy)
        (drawn,) = release.draw(cells, records)
        return rebuild(
            column,
            drawn.astype(np.int64),
            self.outputs,
            release.names[0],
            own=self.releases_own_symbols,
        )

    @property
    def releases_own_symbols(self) -> bool:
        """Whether the outputs are symbols of the one useful column, made to stand in its place."""
        return self.record.objective is not None and len(self.useful.columns) == 1

    def public(self) -> Channel:
        """The channel without the joint table and whatever is computed from it.

        It keeps the rows with their labels, the notion with its budgets, and the columns and
        symbols of S, which name what is protected and must not be left in a release.
        """
        return replace(
            self, useful=self.useful.public(), joint=None, record=self.record.public()
        )

    def save(
        self,
        path: str | os.PathLike[str],
        overwrite: bool = False,
        public: bool = False,
    ) -> None:
        """Write the channel file.

        Parameters
        ----------
        path : path of the file
        overwrite : bool
            Whether an existing file may be replaced.
        public : bool
            Leave out the joint table and whatever else discloses it (achieved budgets, utility,
            certificate and source); such a channel can be applied, but audited only with the table
            at hand.

        Raises
        ------
        InputError
            If the file exists (without `overwrite`), is a folder or cannot be written, or the
            channel may not be (`ChannelRecord.unwritable`).
        """
        # The module of the file imports this one.
        from mechdesign.channel import file

        channel = self
        if public:
            channel = self.public()
        file.write(channel, path, overwrite=overwrite)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Any:
        """Read a channel file of any kind; InputError if it is none, or was edited or damaged.

        Returns
        -------
        Channel, RowChannel or BoxChannel
            The type of `mechdesign.load` names them.
        """
        # A file of any kind is accepted, and the modules of all kinds import this one.
        from mechdesign.channel import loading

        return loading.load(path)
