"""The request for a design: one frozen `DesignRequest` behind Python, command line, jobs,
comparisons.

Its fields are all options of a design. The keywords of `mechdesign.design` are these fields;
`cli/design.py` fills them in from the options of the command line. When it is made it checks every
option by itself, and then those that exclude each other; what remains is refused where the table
decides (`designing`). So a request that exists can be run, stored, and changed with `replace`:

    request = DesignRequest(joint, LIP(0.5), objective="truth", stay=0.5)
    design_requested(replace(request, notion=LIP(1.0)))

Properties hand groups of options on in the form that their users take: `search` for the search of
the optimum, `least_cost` for channels on the column's own symbols.

A new option is a field here with its line in the docstring, and its use in `designing`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

from mechdesign.channel.channel import Channel
from mechdesign.channel.file import require_without_boxes
from mechdesign.channel.record import RELATIVE, TOTAL
from mechdesign.core.arguments import list_argument, repeated, share_of
from mechdesign.core.errors import InputError, require_type
from mechdesign.core.progress import Steps
from mechdesign.core.wording import listed, quoted
from mechdesign.mechanisms import combinations
from mechdesign.mechanisms.average_budgets import NO_PROMISE, averages_of, kept_measure
from mechdesign.mechanisms.box_request import AUTO
from mechdesign.mechanisms.heuristics import HEURISTICS
from mechdesign.mechanisms.least_cost_objective import (
    DISTANCE,
    INFORMATION,
    TRUTH,
    LeastCostObjective,
)
from mechdesign.mechanisms.optimal import OPTIMAL
from mechdesign.mechanisms.people_request import of_people
from mechdesign.mechanisms.queries import PURPOSES, TASK, Queries
from mechdesign.mechanisms.result import Design
from mechdesign.mechanisms.rules import check_sensitive
from mechdesign.mechanisms.search_options import Search
from mechdesign.notions import Notion
from mechdesign.release.samplers import NEAREST, REFUSE, Policy, check_nearest
from mechdesign.tables.confidence import check_level, unprotected
from mechdesign.tables.joint import Joint, names_of_columns
from solvers import Envelope

MECHANISMS = (OPTIMAL, *HEURISTICS)

OBJECTIVES = (TRUTH, DISTANCE)
"""Objectives of least cost; the objective of mechanisms is information."""

GAP = 1e-4
"""The gap at which a search ends by default."""


@dataclass(frozen=True, eq=False)
class DesignRequest:
    """A table, a promise, and all options of a design.

    Parameters
    ----------
    joint : Joint
        The table P_SX; without `confidence` the guarantee is about this table, not about a
        population it was drawn from.
    notion : Notion
    mechanism : {"optimal", "subset-response", "subset-merging", "complete-merging"}
    method : {"auto", "vertices", "columns"}
        The method of the search for the optimum, of the whole table or of the sets of
        subset-response.
    enumerate : {"auto", "pivot", "pycddlib", "pycddlib-exact"}
        The vertex enumeration back end, where the method is "vertices"; "auto" is the fastest. The
        exact one needs the full pycddlib, with GMP.
    gap : float
        Stop when the proven upper bound minus the NMI of the emitted integers is at most this.
    time_limit : float, optional
        Seconds; the best verified channel so far is returned with its proven gap.
    fallback : bool
        Emit subset merging where the optimum fails, or is worse when its time is over; the result
        then has `fallback_from`. Without it SolverFailure is raised.
    workers : int
        Threads of the branch and bound.
    start : Design, optional
        The design of a neighbouring budget on the same table, for a warm start.
    progress : callable, optional
        Called with each `mechdesign.core.progress.Step` of the search: its `str` is a line to show,
        its `figures` are the utility so far, the proven bound and their gap.
    confidence : float, optional
        Level in [0.5, 1) at which the promise holds for the population of which the counts are a
        sample: for every population in the Clopper-Pearson set of the counts
        (`tables.confidence`). It assumes independent records of one population and symbols fixed in
        advance; for ALIP, LIP, LDP, max-lift and min-lift.
    known_shares : mapping, optional
        P(s) of every sensitive symbol where it is known (from a register, a census) and need not be
        estimated.
    unseen : int
        With `confidence`: number of symbols of X that were listed in advance but have no record.
        They are protected, too, if their records are released with the policy
        ``unknown="marginal"``.
    unknown : str
        What a release through the channel does with a symbol that the table does not have, unless
        it is told otherwise: "refuse", "marginal", "output:LABEL", or "nearest" for rows of several
        columns, as `Policy` has it. The channel records it.
    bins : optional
        As in `Joint.binned`; or "auto" for a column: the number of bins that moves the released
        medians least at this budget.
    allow_identifier : bool
        Whether the useful column may have nearly as many symbols as there are records.
    protect_each : bool
        Whether each of several sensitive columns is protected by itself, instead of their
        combinations.
    budgets : mapping, optional
        For some sensitive symbols (eps_l, eps_u) in place of those of the notion. Where each of
        several columns is protected and two have a symbol of one name, it is written
        ``column=symbol``.
    after : sequence of Channel
        Earlier releases of the same records, drawn independently; all together keep the promise.
    useful : str or sequence of str, optional
        The useful columns of the table that this channel releases as labels, by default all. With
        `after` the table also has those of the earlier channels.
    release : str or sequence of str, optional
        The useful columns that this channel releases as rows: each column is written by itself, and
        the default objective is "truth". The law of the table is kept: every row is released as
        often as the table has it.
    given : str or sequence of str
        Columns that are released as they are, beside the others.
    promise : {"total", "relative"}
        With given columns k: P(s|k, y) is compared with P(s), or with P(s|k).
    objective : {"information", "truth", "distance", "frequencies", "prefix", "ranges", "task"}, \
            Queries, matrix or callable
        Most information, with free outputs (the default without `release`). Or least expected cost
        on the column's own symbols: most records unchanged ("truth"), numbers moved least
        ("distance"), or costs d(x, y) as an array in the order of the symbols, or as a pandas frame
        or a mapping of mappings with the
        symbols as labels. A callable takes the cvxpy variable W (|X|, |X|) and the joint and
        returns a convex cost to minimise. Or, with free outputs, the purpose of the released
        records: least total variance of the estimated shares of all symbols ("frequencies"), of
        their cumulative sums ("prefix"), of all intervals ("ranges") or of other linear queries
        (`Queries`); or most information about another column ("task").
    task : Joint, optional
        With objective "task": the table of that column and the useful one, as
        ``Joint.from_table(frame, sensitive=TASK, useful=..)``; its name where the table is a data
        frame.
    distance : {"absolute", "squared", "ranks"}, optional
        The distance between numbers, with objective "distance": "absolute" by default; with
        `release` that of their ranks ("ranks") by default, or "absolute".
    keep_frequencies : bool, optional
        Whether the expected share of every symbol, or row, is preserved (invariant PRAM): by
        default with own symbols, but not with convex costs or constraints. Of rows it is
        preserved exactly, of one column to within 1e-12.
    stay : number or mapping of symbol to number, optional
        Least probability that a symbol is released unchanged.
    forbid : pairs (from, to)
        Symbols of which the first is never released as the second; with `release` also cells of
        columns, as text or ``column=text``.
    never : sequence of mappings of column to text
        With `release`: combinations of cells that are never released.
    column_weights : mapping of column to number, optional
        With `release`: what a changed cell of a column costs, in proportion (1 by default).
    smallest_group : int, optional
        With `release`: only rows that at least so many records have are released, each at least so
        many times. By default 5 where such rows hold half of the records, else 1.
    known : str or sequence of str
        The columns that count for the smallest group; all released ones by default.
    merge_rare : int or "auto", optional
        With `confidence` and without `release`: merge useful symbols into boxes on a tenth of the
        records, and prove the promise on the others; "auto" chooses the sets, a number merges
        symbols of fewer records.
    cells, rare, fill, slice_seed
        With `release` and `confidence`: the number of boxes of rows, the number of records below
        which sensitive values are promised together, whether rows are drawn inside the released
        box, and a number that repeats the draw of the slice (`mechanisms.box_request`). `rare` and
        `slice_seed` go with `merge_rare`, too, where rare="auto" takes the fewest values with which
        half is kept.
    constraints : callable, optional
        Takes the cvxpy variable W and the joint and returns further convex constraints.
    average : mapping, optional
        Budgets on average leakages over the outputs, besides the notion: ``{"mi": 0.05}`` in nats,
        ``{"mi": "25%"}`` of the leakage of the column itself; or "tv", "chi2", "maximal-leakage"
        (nats); ``{"guess": "42%"}`` for right guesses; ``{"gains.csv": 0.4}`` or ``{"gain": (G,
        0.4)}`` for what the best guess gains, with gains by guess and sensitive symbol; or several
        of them, ``{"mi": 0.02, "tv": 0.1}``. An average promises nothing about one record. With it
        `mechdesign.design` needs no notion: then the extreme lifts of the channel are the notion of
        the result.
    keep : number, optional
        With ``average={"mi": None}``: the channel that leaks least on average among those that keep
        this share of the information, strictly between 0 and 1. (For the smallest epsilon of a
        notion that keeps a share see `budget_for`.)

    Raises
    ------
    InputError
        If an argument is out of range, the mechanism is not known, options contradict each other,
        or there is a single sensitive symbol.
    """

    joint: Joint
    notion: Notion
    _: KW_ONLY
    mechanism: str = OPTIMAL
    method: str = "auto"
    enumerate: str = "auto"
    gap: float = GAP
    time_limit: float | None = None
    fallback: bool = True
    workers: int = 1
    start: Design | None = None
    progress: Steps | None = None
    confidence: float | None = None
    known_shares: Mapping[Any, Any] | None = None
    unseen: int = 0
    unknown: str = REFUSE
    bins: Any = None
    allow_identifier: bool = False
    protect_each: bool = False
    budgets: Mapping[str, tuple[float, float]] | None = None
    after: Sequence[Channel] = ()
    useful: str | Sequence[str] | None = None
    release: str | Sequence[str] | None = None
    given: str | Sequence[str] = ()
    promise: str = TOTAL
    objective: Any = None
    task: Joint | None = None
    distance: str | None = None
    keep_frequencies: bool | None = None
    stay: Any = None
    forbid: Iterable[tuple[str, str]] = ()
    never: Sequence[Mapping[str, str]] = ()
    column_weights: Mapping[str, Any] | None = None
    smallest_group: int | None = None
    known: str | Sequence[str] = ()
    merge_rare: int | str | None = None
    cells: int | None = None
    rare: int | str | None = None
    fill: bool = False
    slice_seed: int | None = None
    constraints: Callable[..., Any] | None = None
    average: Mapping[str, Any] | None = None
    keep: Any = None

    def __post_init__(self) -> None:
        require_type(
            "joint",
            self.joint,
            Joint,
            "; Joint.from_table and Joint.from_counts make one, and design takes a data frame with "
            "sensitive= and useful=",
        )
        require_type(
            "notion",
            self.notion,
            Notion,
            "; write one, as in ALIP(eps_l=0.5, eps_u=0.5)",
        )
        if self.protect_each and len(self.joint.sensitive.columns) > 1:
            # Each column by itself: their combinations may be as many as the records.
            check_sensitive(self.joint.protecting_each())
        else:
            check_sensitive(self.joint)
        # Iterables are read once, here: a generator would be empty for the second reader.
        after = list_argument("after", self.after, "channels")
        for channel in after:
            require_without_boxes("each of after", channel)
        object.__setattr__(self, "after", after)
        forbid = list_argument(
            "forbid", self.forbid, "pairs, as in [('Sales', 'Tech')]"
        )
        object.__setattr__(self, "forbid", forbid)
        self._set_columns()
        self._set_objective()
        # `Search` checks its own fields, and converts them.
        search = self.search
        object.__setattr__(self, "gap", search.gap)
        object.__setattr__(self, "time_limit", search.time_limit)
        if self.mechanism not in MECHANISMS:
            raise InputError(
                f"--mechanism ({self.mechanism!r}) must be one of {', '.join(MECHANISMS)}"
            )
        # From here on options are compared with each other.
        if self.joint.useful.people is not None:
            combinations.check(combinations.PEOPLE, self.named)
        self._check_rows()
        self._check_objective()
        self._check_population()
        self._record_unknown()
        if self.average is not None:
            self._check_average()
        elif self.keep is not None:
            raise InputError(
                'keep is for an average: give average={"mi": None} too; budget_for(joint, keep=..) '
                "finds the smallest epsilon"
            )

    @property
    def search(self) -> Search:
        """The options of the search for the optimum."""
        start: Envelope | None = None
        if self.start is not None:
            start = self.start.envelope
        return Search(
            method=self.method,
            enumeration=self.enumerate,
            gap=self.gap,
            time_limit=self.time_limit,
            workers=self.workers,
            start=start,
            progress=self.progress,
        )

    @property
    def least_cost(self) -> LeastCostObjective:
        """The objective with the restrictions on the column's own symbols."""
        return LeastCostObjective(
            objective=self.objective,
            distance=self.distance,
            keep_frequencies=bool(self.keep_frequencies),
            stay=self.stay,
            forbid=self.forbid,
            constraints=self.constraints,
        )

    def _set_columns(self) -> None:
        """The released and given columns as tuples of names."""
        for name in ("given", "known"):
            object.__setattr__(self, name, names_of_columns(getattr(self, name)))
        for name in ("useful", "release"):
            columns = getattr(self, name)
            if columns is not None:
                object.__setattr__(self, name, names_of_columns(columns))
        if self.useful is not None and self.release is not None:
            raise InputError(
                "useful releases columns as one label, release as rows: give one of them"
            )
        useful = self.joint.useful
        if useful.people is not None:
            for name, value in of_people(useful, useful.people, self).items():
                object.__setattr__(self, name, value)

    def _set_objective(self) -> None:
        """The objective and the law where they are not named."""
        if self.objective is None:
            default = TRUTH if self.publishes_rows else INFORMATION
            object.__setattr__(self, "objective", default)
        if self.keep_frequencies is None:
            # Convex costs and constraints are the user's own program, which may contradict it.
            is_convex = self.constraints is not None or callable(self.objective)
            keeps = not self.has_free_outputs and not is_convex
            object.__setattr__(self, "keep_frequencies", keeps)

    @property
    def publishes_rows(self) -> bool:
        """True if the released columns are written each by itself."""
        return self.release is not None

    @property
    def shape(self) -> str:
        """What is released with which promise, as `combinations` and the designers know it.

        With a promise for the population, rows are released as boxes of rows, and rare symbols as
        merged ones.
        """
        merges = self.publishes_rows or self.merge_rare is not None
        if merges and self.confidence is not None:
            return combinations.BOXES
        if self.publishes_rows and not self.has_free_outputs:
            return combinations.ROWS
        if self.given:
            return combinations.STRATA
        if self.confidence is not None:
            return combinations.POPULATION
        return combinations.TABLE

    @property
    def may_merge(self) -> bool:
        """True if merging symbols may keep more of a promise for the population."""
        return self.shape == combinations.POPULATION

    @property
    def released_columns(self) -> tuple[str, ...]:
        """The useful columns of the table that are released or given, given ones first."""
        named = self.release if self.release is not None else self.useful
        if named is None:
            named = self.joint.useful.columns
        given = tuple(self.given)
        return (*given, *(name for name in named if name not in given))

    def _check_rows(self) -> None:
        """Raise InputError for options of rows that no row has, and columns with two roles."""
        if self.promise not in (TOTAL, RELATIVE):
            raise InputError(
                f"--promise ({quoted(self.promise)}) must be total or relative"
            )
        if self.release is not None:
            both = [name for name in self.release if name in self.given]
            if both:
                raise InputError(
                    f"the column {quoted(both[0])} is released and given: name it once"
                )
            twice = repeated(self.release)
            if twice is not None:
                raise InputError(f"the column {quoted(twice)} is released twice")
        # By name what belongs to rows, and whether it is given.
        of_rows = {
            "given": bool(self.given),
            "promise relative": self.promise == RELATIVE,
            "never": bool(self.never),
            "column weights": bool(self.column_weights),
            "smallest_group": self.smallest_group is not None,
            "known": bool(self.known),
            "cells": self.cells is not None,
            "fill": self.fill,
            "rare": self.rare is not None and self.merge_rare is None,
            "slice_seed": self.slice_seed is not None and self.merge_rare is None,
        }
        if not self.publishes_rows:
            for name, is_given in of_rows.items():
                if is_given:
                    raise InputError(
                        f"{name} belongs to a release of rows: name the columns with release "
                        "(--release COL,..)"
                    )
        if self.promise == RELATIVE and not self.given:
            raise InputError(
                "promise relative compares with the given columns, and there are none: name them "
                "with given (--given COL)"
            )
        size = self.smallest_group
        if size is not None and (type(size) is not int or size < 1):
            raise InputError(
                f"--smallest-group ({quoted(size)}) must be a whole number of records, at least 1"
            )
        # By default the known columns decide how small groups may be.
        if (
            not self.has_free_outputs
            and self.known
            and (size == 1 or self.keep_frequencies is False)
        ):
            raise InputError(
                "known names the columns that count for the smallest group, and there is none: "
                "leave known out (--known), or give a smallest group of at least 2 without free "
                "frequencies"
            )
        if self.asks_boxes and self.confidence is None:
            raise InputError(
                "--merge-rare, --cells, --rare, --fill and --slice-seed belong to the promise "
                "about the population: give a confidence level too (--confidence 0.95)"
            )
        self._check_merging()

    def _check_merging(self) -> None:
        """Raise InputError for what is merged in vain, or by no number of records."""
        if self.merge_rare is None:
            if self.rare == AUTO:
                raise InputError(
                    "rare auto is for one column (--merge-rare): with release (--release) give a "
                    "number of records"
                )
            return
        if self.publishes_rows:
            raise InputError(
                "--merge-rare is for one column (--useful); a release of rows learns "
                "boxes of rows anyway: leave it out"
            )
        is_number = type(self.merge_rare) is int and self.merge_rare >= 0
        if self.merge_rare != AUTO and not is_number:
            raise InputError(
                f"--merge-rare ({quoted(self.merge_rare)}) must be auto, or a number of records"
            )

    @property
    def asks_boxes(self) -> bool:
        """True if an option speaks of boxes of rows."""
        numbers = (self.merge_rare, self.cells, self.rare, self.slice_seed)
        return self.fill or any(number is not None for number in numbers)

    @property
    def has_free_outputs(self) -> bool:
        """Whether outputs may be other than the column's symbols: for information or a purpose."""
        if isinstance(self.objective, str) and self.objective == INFORMATION:
            return True
        return self.has_purpose

    @property
    def has_purpose(self) -> bool:
        """Whether the objective is a purpose: queries or a task."""
        if isinstance(self.objective, Queries):
            return True
        return isinstance(self.objective, str) and self.objective in PURPOSES

    def _check_objective(self) -> None:
        """Raise InputError unless objective, mechanism and restrictions fit together."""
        if self.shape == combinations.BOXES:
            # What else boxes have is decided where they are designed.
            self._check_boxes()
            return
        if self.publishes_rows:
            self._check_search_of_rows()
        # An objective may be an array, which has no truth value when it is compared with a text.
        for_task = isinstance(self.objective, str) and self.objective == TASK
        has_task = self.task is not None
        if for_task != has_task:
            raise InputError(
                "objective task and the task column belong together (--objective task --task "
                "COL; task=)"
            )
        if self.has_purpose:
            self._check_purpose()
        objective = self.least_cost
        if not self.has_free_outputs:
            if self.mechanism != OPTIMAL:
                raise InputError(
                    f"objective {objective.name} is a mechanism of its own: leave "
                    f"{self.mechanism} out"
                )
            return
        if self.publishes_rows:
            self._refuse_of_own_rows(objective)
        # All other fields must be as they are by default.
        if replace(objective, objective=INFORMATION) != LeastCostObjective():
            raise InputError(
                "--distance, --keep-frequencies, --stay, --forbid and constraints are for "
                "channels on the column's own symbols: say what these should cost "
                "with objective (--objective truth, distance or COSTS.csv)"
            )

    def _check_boxes(self) -> None:
        """Raise InputError for objectives that boxes do not have."""
        named = isinstance(self.objective, str)
        if not named or self.objective not in (TRUTH, INFORMATION):
            raise InputError(
                "a release of rows with a confidence level, or of merged symbols (--merge-rare), "
                "releases boxes, with the objective truth (most records in their own box) or "
                "information: another objective (--objective) or a task (--task) is not built for "
                "it"
            )
        if self.keep_frequencies and self.objective == INFORMATION:
            raise InputError(
                "--keep-frequencies is about boxes that are released as boxes: with objective "
                "information the outputs are free labels; take objective truth"
            )

    def _check_search_of_rows(self) -> None:
        """Raise InputError for searches that a release of rows as rows of the table does not
        have.
        """
        if self.has_free_outputs:
            return
        for name, value in (("method", self.method), ("enumerate", self.enumerate)):
            if value != "auto":
                raise InputError(
                    f"rows released as rows of the table have a search of their own: leave "
                    f"{name} (--{name}) out"
                )
        if self.start is not None:
            raise InputError(
                "rows released as rows of the table have a search of their own: leave "
                "start out"
            )

    def _refuse_of_own_rows(self, objective: LeastCostObjective) -> None:
        """Refuse what speaks of rows of the table where outputs are free labels."""
        of_own_rows = {
            "never": bool(self.never),
            "column weights": bool(self.column_weights),
            "smallest_group": self.smallest_group is not None,
            "known": bool(self.known),
        }
        for name, is_given in of_own_rows.items():
            if is_given:
                raise InputError(
                    f"{name} is about rows that are released as rows of the table, and with "
                    f"objective {objective.name} outputs are free labels: take objective truth"
                )

    def _check_purpose(self) -> None:
        """Raise InputError for options that queries and tasks do not have."""
        if self.mechanism != OPTIMAL:
            raise InputError(
                f"queries and tasks have a mechanism of their own: leave {self.mechanism} out"
            )
        if self.task is None:
            return
        if self.bins is not None:
            raise InputError(
                "with a task, sort the numbers into bins in both tables first (Joint.binned; on "
                "the command line --bins other than auto)"
            )
        # The table may have columns of earlier releases, too.
        released = self.joint
        if self.released_columns != released.useful.columns:
            released = released.releasing(self.released_columns)
        # Imported here, because few requests have a task.
        from mechdesign.mechanisms.purposes import task_joint

        task_joint(self.task, released)

    def _check_population(self) -> None:
        """Raise InputError unless the options about the population have a confidence level."""
        if self.confidence is not None:
            # A plain float: the exact level is read from its digits.
            object.__setattr__(self, "confidence", check_level(self.confidence))
            if self.joint.empty_sensitive:
                raise unprotected(self.joint.empty_sensitive)
            # Symbols that the table lists without records are unseen ones, whether or not the
            # caller counts them. A negative number stays, for the set to refuse.
            # Only a promise about symbols takes them: boxes have a place for everything.
            is_number = type(self.unseen) is int and self.unseen >= 0
            if is_number and self.shape == combinations.POPULATION:
                unseen = max(self.unseen, len(self.joint.empty_useful))
                object.__setattr__(self, "unseen", unseen)
            return
        if self.unseen:
            option = "unseen symbols"
        elif self.known_shares is not None:
            option = "known shares"
        else:
            return
        raise InputError(
            f"{option} need a confidence level: without one the table itself is the population"
        )

    def _record_unknown(self) -> None:
        """Give the table the rule for unknown symbols, which its channel records."""
        missing = self.joint.rules.missing
        if self.given and missing != REFUSE:
            raise InputError(
                f"--missing {missing}: the channel releases {listed(self.given)} as it is, and "
                "an output for records with an empty cell would change it: give such cells a "
                "symbol (--missing symbol), or leave these records out (--missing drop)"
            )
        if self.unknown == REFUSE:
            return
        policy = Policy(unknown=self.unknown)
        if policy.unknown == NEAREST:
            check_nearest(self.released_columns, self.unseen)
        elif self.given:
            raise InputError(
                f"--unknown {self.unknown}: the channel releases {listed(self.given)} as it is, "
                "and an output for other rows would change it: say nearest, or refuse"
            )
        rules = self.joint.rules.model_copy(update={"unknown": policy.unknown})
        if rules != self.joint.rules:
            object.__setattr__(self, "joint", replace(self.joint, rules=rules))

    @property
    def named(self) -> dict[str, str]:
        """The options that are given, by their names in `combinations`, with their words."""
        convex = self.constraints is not None or callable(self.objective)
        own_rows = self.publishes_rows and not self.has_free_outputs
        given = {
            "confidence": self.confidence is not None,
            "after": bool(self.after),
            "protect_each": (
                self.protect_each or self.joint.sensitive.protects_columns
            ),
            "budgets of single symbols": bool(
                self.budgets or self.notion.symbol_budgets
            ),
            "average": self.average is not None,
            "an average": self.average is not None,
            "an objective of queries of one's own": isinstance(self.objective, Queries),
            "constraints": self.constraints is not None,
            "constraints or a convex cost": convex,
            "keep and an objective": (
                self.keep is not None
                and (self.has_purpose or not self.has_free_outputs)
            ),
            "a relative promise without a notion": (
                own_rows and self.promise == RELATIVE and self.notion == NO_PROMISE
            ),
            "bins": self.bins is not None,
            "method": self.method != "auto",
            "enumerate": self.enumerate != "auto",
            "gap": self.gap != GAP,
            "start": self.start is not None,
            "stay": self.stay is not None,
            "forbid": bool(self.forbid),
            "never": bool(self.never),
            "distance": self.distance is not None,
            "task": self.task is not None,
            "column weights": bool(self.column_weights),
            "smallest_group": self.smallest_group is not None,
            "known": bool(self.known),
            "known shares": self.known_shares is not None,
            "unseen symbols": bool(self.unseen),
        }
        named = {name: name for name, is_given in given.items() if is_given}
        if self.mechanism != OPTIMAL:
            named["mechanism"] = f"mechanism {self.mechanism}"
        if self.unknown != REFUSE:
            named["unknown"] = f"--unknown {self.unknown}"
        if self.joint.rules.missing != REFUSE:
            named["missing"] = f"--missing {self.joint.rules.missing}"
        if self.has_free_outputs:
            purpose = self.objective
            if isinstance(purpose, Queries):
                purpose = "queries of one's own"
            named["free outputs"] = f"objective {purpose}"
        if any(channel.useful.people is None for channel in self.after):
            named["after releases of records"] = "after a release of single records"
        if self.promise == RELATIVE and self.after:
            named["rows: relative after"] = (
                "a promise relative to given columns is not built after earlier releases, which "
                "are judged on the whole table: leave after (--after) out, or use --promise total"
            )
        if convex:
            named["rows: convex"] = (
                "convex costs and constraints are functions of a dense matrix: they are for one "
                "column (useful), not for released rows"
            )
        if self.notion.limits.mean is not None:
            named |= self._named_of_means(own_rows)
        elif self.promise == TOTAL and math.isfinite(self.notion.limits.ratio):
            named["strata: ldp"] = f"{self.notion.name} with a total promise"
        return named

    def _named_of_means(self, own_rows: bool) -> dict[str, str]:
        """The sentences on what a notion on averages of lifts is not combined with."""
        notion = f"{self.notion.name} bounds averages"
        others = "use alip, lip, ldp, max-lift or min-lift"
        sentences: dict[str, str] = {}
        if own_rows:
            sentences["rows: means"] = (
                f"{notion}: a release of rows as rows of the table bounds single lifts; {others}, "
                "or free outputs (--objective information)"
            )
        if self.confidence is not None:
            sentences["means: confidence"] = (
                f"{notion} over the sensitive symbols, for which confidence is not built; {others}"
            )
        is_each = self.protect_each or self.joint.sensitive.protects_columns
        if is_each or self.after or self.budgets or self.notion.symbol_budgets:
            sentences["means: several tables"] = (
                f"{notion}: with protect-each, budgets of symbols, or after other releases {others}"
            )
        if self.given and self.promise == TOTAL:
            sentences["means: given"] = (
                f"{notion}: with given columns {others}, or a relative promise"
            )
        if self.average is not None:
            sentences["means: average"] = (
                f"an average budget stands beside a notion on single lifts, and {self.notion.name} "
                f"has none: {others}"
            )
        return sentences

    def _check_average(self) -> None:
        """Raise InputError for options that average budgets do not have."""
        # The functions are called for the errors that they raise.
        if self.keep is None:
            averages_of(self.average, self.joint)
        else:
            kept_measure(self.average, self.joint)
            share_of("--keep", self.keep)
        combinations.check(combinations.AVERAGE, self.named)
