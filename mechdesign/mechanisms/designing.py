"""From a request to a verified design: bins, rules, mechanism, fallback, further results.

`design_requested` is the one way from a `DesignRequest` to a `Design`. It decides in this order

1. the table: sorted into bins first, of one or several secrets, with the columns that are released.
   The shape of the request says who designs it (`DESIGNERS`): boxes, rows and columns beside given
   ones have modules of their own (`design_boxes`, `plan_design`, `by_strata`);
2. the rules of the promise: about the table (`rules`) or about its population (`population`);
3. the mechanism, or the objective, that works by these rules (`by_rules`), and merging where the
   optimum fails or ends early;
4. what the result has besides: the earlier releases, or the population.

`design` is the same for users, with the fields of the request as keywords and data frames in place
of a table:

    design(joint, notion, gap=1e-3)  =  design_requested(DesignRequest(joint, notion, gap=1e-3))
"""

from __future__ import annotations

import inspect
import math
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, ParamSpec, Protocol, cast, overload

from mechdesign.auditing.population import lift_limits
from mechdesign.channel.file import require_without_boxes
from mechdesign.channel.record import TOTAL
from mechdesign.core.above import above
from mechdesign.core.errors import InputError
from mechdesign.formats.cells import CellForm
from mechdesign.mechanisms import combinations
from mechdesign.mechanisms.average_budgets import NO_PROMISE
from mechdesign.mechanisms.box_request import BoxRequest
from mechdesign.mechanisms.by_rules import (
    binned_for,
    by_rules,
    check_room,
    for_population,
    spending,
)
from mechdesign.mechanisms.classes import refuse_identifier
from mechdesign.mechanisms.people_request import bins_of_people
from mechdesign.mechanisms.purposes import check_not_released
from mechdesign.mechanisms.request import DesignRequest
from mechdesign.mechanisms.result import Design
from mechdesign.mechanisms.rules import table_rules
from mechdesign.notions import Notion
from mechdesign.tables.cell_values import REFUSE
from mechdesign.tables.joint import Joint, Missing, names_of_columns
from mechdesign.tables.people import PERSON, RECORD
from mechdesign.tables.people_tables import PeopleRoles, people_of_table
from mechdesign.tables.records import Records
from solvers.pace import one_thread

Arguments = ParamSpec("Arguments")

LEAST_LEFT = 0.25
"""Share of the time limit that the figure for the population may take when the search has used all
of it: most figures take milliseconds.
"""


@one_thread()
def design_requested(request: DesignRequest) -> Design:
    """The design of a request (`_requested`), with the time that is left of its limit."""
    before = time.process_time()
    result = _requested(request)
    if request.time_limit is None:
        return result
    spent = time.process_time() - before
    left = max(request.time_limit - spent, LEAST_LEFT * request.time_limit)
    return replace(result, time_left=left)


def _requested(request: DesignRequest) -> Design:
    """Compute the channel of a request, proven private in exact arithmetic.

    Raises
    ------
    InputError
        If an option does not fit the table.
    NotPrivate
        If the earlier releases in `after` break the promise already, or leave no budget.
    SolverFailure
        If no channel was verified and no fallback is allowed.
    """
    started = time.process_time()
    if request.bins is not None:
        return _in_bins(request, started)
    # In bins a column may be no identifier any more, so this comes after them.
    if not request.allow_identifier:
        _refuse_identifiers(request)
    if request.notion.limits.mean is not None:
        combinations.check(combinations.MEANS, request.named)
    whole = request.joint
    if request.protect_each:
        whole = whole.protecting_each()
    notion = request.notion
    if request.budgets:
        notion = notion.with_budgets(request.budgets)
    notion.check_least()
    joint = whole
    if request.released_columns != whole.useful.columns:
        joint = whole.releasing(request.released_columns)
    return DESIGNERS[request.shape](Asked(request, whole, joint, notion, started))


class Asked(NamedTuple):
    """What a designer gets.

    `whole` is the table with the columns of earlier releases, `joint` that of the released ones,
    `notion` the promise with the budgets of single symbols, and `started` the beginning on the
    clock of `time.process_time`.
    """

    request: DesignRequest
    whole: Joint
    joint: Joint
    notion: Notion
    started: float


# Modules of other kinds of releases are imported where they are asked for: all of them take longer
# to load than a small table takes to design.


def _columns_for_table(asked: Asked) -> Design:
    """The release of columns with a promise about their table."""
    request, whole, joint, notion, started = asked
    # Earlier releases are of columns that this one may not have, so they are judged on the whole
    # table.
    rules = table_rules(joint, notion, whole=whole, after=request.after)
    if not request.after:
        return by_rules(rules, request, started)
    check_room(rules, request.after)
    result = by_rules(rules, request, started)
    return spending(result, rules, whole, request.after, request.time_limit)


def _columns_for_population(asked: Asked) -> Design:
    """The release of columns with a promise for the population."""
    request, whole, joint, notion, started = asked
    level = request.confidence
    # A request of this shape has one.
    assert level is not None
    return for_population(request, level, whole, joint, notion, started)


def _columns_by_strata(asked: Asked) -> Design:
    """The release of columns beside given ones."""
    # Loaded here, because few designs need it.
    from mechdesign.mechanisms.strata_design import by_strata

    return by_strata(
        asked.request, asked.joint, asked.notion, design_requested, asked.started
    )


def _rows_in_boxes(asked: Asked) -> Design:
    """The release of boxes of rows, or of the symbols of a column."""
    # Loaded here, because few designs need it.
    from mechdesign.mechanisms.box_design import design_boxes

    records = Records.from_joint(asked.joint, _groups(asked.request))
    return design_boxes(records, _boxes(asked.request, asked.notion))


def _refuse_identifiers(request: DesignRequest) -> None:
    """Refuse a useful column that nearly identifies its records."""
    joint = request.joint
    if request.merge_rare is not None:
        # Its rare symbols are released as one.
        return
    if not request.publishes_rows:
        refuse_identifier(joint.useful.columns, len(joint.useful), joint.records)
        return
    # Nearly every row of many columns is that of one record, which is what plans and boxes are for;
    # a single column that is so says something of nobody else.
    coded = joint.useful.coded
    for name, texts in zip(coded.columns, coded.texts, strict=True):
        if name in request.released_columns and name not in request.given:
            refuse_identifier((name,), len(texts), joint.records)


def _rows_of_table(asked: Asked) -> Design:
    """The release of rows as rows of the table."""
    request, whole, joint, notion, _ = asked
    # Loaded here, because few designs need it.
    from mechdesign.mechanisms.plan_design import plan_design
    from mechdesign.mechanisms.plan_request import PlanRequest

    combinations.check(combinations.ROWS, request.named)
    plan = PlanRequest(
        joint=joint,
        notion=notion,
        given=tuple(request.given),
        promise=request.promise,
        objective=request.objective,
        distance=request.distance,
        column_weights=request.column_weights,
        keep_law=bool(request.keep_frequencies),
        stay=request.stay,
        forbid=request.forbid,
        never=request.never,
        smallest_group=request.smallest_group,
        known=tuple(request.known),
        average=request.average,
        # `design` puts this notion where the user gave none.
        is_average_alone=request.average is not None and request.notion == NO_PROMISE,
        whole=whole,
        after=request.after,
        time_limit=request.time_limit,
        gap=request.gap,
        progress=request.progress,
    )
    if not request.after:
        return plan_design(plan)
    rules = table_rules(joint, notion, whole=whole, after=request.after)
    check_room(rules, request.after)
    result = plan_design(plan)
    return spending(result, rules, whole, request.after, request.time_limit)


def _groups(request: DesignRequest) -> list[tuple[str, ...]]:
    """Every released column as a group of its own, given ones first; symbols that are merged are
    those of all columns.
    """
    if request.merge_rare is not None:
        return [request.released_columns]
    return [(name,) for name in request.released_columns]


def _boxes(request: DesignRequest, notion: Notion) -> BoxRequest:
    """The request for boxes of rows, or of the symbols of a column."""
    people = request.joint.useful.people
    if request.given and request.promise == TOTAL:
        remedy = ", or release them in place of giving them"
        if people is not None:
            remedy = ", among which is the number of records of a person"
        raise InputError(
            "with a confidence level the promise is relative to the given columns: say so "
            f"(--promise relative){remedy}"
        )
    combinations.check(combinations.BOXES, request.named)
    lift_limits(notion)
    limit = request.time_limit
    merge_rare = request.merge_rare
    return BoxRequest(
        notion=notion,
        level=request.confidence or 0.0,
        given=len(request.given),
        objective=request.objective,
        keep_law=bool(request.keep_frequencies),
        cells=request.cells,
        # `BoxRequest` refuses another text than auto.
        rare=cast("Any", request.rare or 0),
        # A label of a box has no records.
        fill=request.fill or people is not None,
        people=people,
        # Otherwise the slice chooses what is merged.
        merge_below=merge_rare if isinstance(merge_rare, int) else None,
        time_limit=math.inf if limit is None else limit,
        seed=request.slice_seed,
        progress=request.progress,
    )


DESIGNERS: Mapping[str, Callable[[Asked], Design]] = {
    combinations.TABLE: _columns_for_table,
    combinations.POPULATION: _columns_for_population,
    combinations.STRATA: _columns_by_strata,
    combinations.ROWS: _rows_of_table,
    combinations.BOXES: _rows_in_boxes,
}
"""Who designs a request of each shape."""


class DesignCall(Protocol[Arguments]):
    """`design`, called with a joint table, or with a data frame and the names of its columns."""

    @overload
    def __call__(self, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Design: ...

    @overload
    def __call__(
        self,
        data: Any,
        notion: Notion | None = None,
        *,
        sensitive: str | Sequence[str],
        weight: str | None = None,
        missing: Missing = "refuse",
        **options: Any,
    ) -> Design: ...


COLUMN_ARGUMENTS = (
    "sensitive",
    "weight",
    "missing",
    "normalise",
    "trim",
    "missing_codes",
)
"""Arguments of `Joint.from_table` that `design` takes with a data frame in place of a joint."""

PEOPLE_ARGUMENTS = ("person", "wave", "sensitive_of")
"""Arguments with which `design` folds the records of a data frame into people."""


def _columns_to_read(options: Mapping[str, Any]) -> tuple[str, ...] | None:
    """The useful columns of a data frame that a design needs: those that it releases or gives, and
    those of earlier releases; None where none is named.
    """
    columns = _released_columns(options)
    if not columns:
        return None
    for channel in options.get("after") or ():
        earlier = require_without_boxes("each of after", channel)
        columns.update(dict.fromkeys(earlier.useful.columns))
    return tuple(columns)


def _released_columns(options: Mapping[str, Any]) -> dict[str, None]:
    """The useful columns of a data frame that a design releases or gives, in this order."""
    columns: dict[str, None] = {}
    for name in ("given", "useful", "release"):
        if options.get(name) is not None:
            columns.update(dict.fromkeys(names_of_columns(options[name])))
    return columns


def _with_fields_as_keywords(
    request: Callable[Arguments, DesignRequest],
) -> DesignCall[Arguments]:
    """`design` with the fields of `DesignRequest` as parameters, in types, signature and `help`.

    So a new option is declared and described once. `request` is the class itself: type checkers
    read the parameters of `design` off its constructor, `inspect` off the signature that is set
    here.
    """

    def design(data: Any, notion: Notion | None = None, **kwargs: Any) -> Design:
        joint = data
        unit = kwargs.pop("unit", None)
        if unit not in (None, RECORD):
            raise InputError(
                f"unit ({unit!r}) must be {RECORD!r}; people with several records are named with "
                "person"
            )
        frame: Any = None
        columns: dict[str, Any] = {}
        for name in (*COLUMN_ARGUMENTS, *PEOPLE_ARGUMENTS):
            if name in kwargs:
                columns[name] = kwargs.pop(name)
        names_columns = any(name in kwargs for name in ("useful", "release", "given"))
        if columns or (names_columns and not isinstance(data, Joint)):
            frame = data
            if any(name in columns for name in PEOPLE_ARGUMENTS):
                joint = _joint_of_people(frame, columns, kwargs)
            else:
                columns["useful"] = _columns_to_read(kwargs)
                joint = _joint_of_frame(frame, columns)
            # A task column of the frame is named; its table with the useful one is made here.
            if isinstance(kwargs.get("task"), str):
                if joint.useful.people is not None:
                    named = {"free outputs": "a task"}
                    combinations.check(combinations.PEOPLE, named)
                of_task = {**columns, "sensitive": kwargs["task"]}
                of_task["useful"] = tuple(_released_columns(kwargs))
                check_not_released((kwargs["task"],), of_task["useful"])
                kwargs["task"] = Joint.from_table(frame, **of_task)
        # With a bound on an average alone, the promise on single lifts is none.
        if notion is None:
            if kwargs.get("average") is None:
                raise InputError(
                    "design needs a notion, as in md.ALIP(eps_l=0.5, eps_u=0.5); "
                    "md.compare(joint) shows what budgets keep"
                )
            notion = NO_PROMISE
        make: Any = request
        made = make(joint, notion, **kwargs)
        result = design_requested(made)
        if frame is None:
            return result
        # Who hands a frame over never sees the joint table, which has them.
        result = replace(result, messages=(*made.joint.notices, *result.messages))
        if unit == RECORD or columns.get("weight") is not None:
            return result
        return _with_people_found(result, made, frame)

    vars(design)["__signature__"] = _signature()
    _, _, parameters = (DesignRequest.__doc__ or "").partition("\n\n")
    parameters = parameters.replace(
        "joint : Joint", "data : Joint, data frame or path", 1
    )
    parameters = parameters.replace("notion : Notion", "notion : Notion, optional", 1)
    design.__doc__ = (
        "Compute a release channel P(Y|X) for the table, proven private in exact arithmetic.\n\n"
        "    The parameters are the fields of `DesignRequest`. The table may also be a data "
        "frame;\n"
        "    then `sensitive` and `useful` name its columns, as in `Joint.from_table`. Where a "
        "column of\n"
        "    the frame names people with several records, a warning and a message of the "
        "result say what\n"
        "    these reach together, unless `person` names it or ``unit='record'`` says what is "
        "meant.\n\n"
        f"{parameters}"
    )
    return cast("DesignCall[Arguments]", design)


def _signature() -> inspect.Signature:
    """The parameters of `DesignRequest`, and those that name the columns of a data frame.

    The table may be a data frame, so that it has another name here, and a bound on an average needs
    no notion.
    """
    signature = inspect.signature(DesignRequest)
    joint, notion, *others = signature.parameters.values()
    parameters = [
        joint.replace(name="data", annotation="Any"),
        notion.replace(default=None, annotation="Notion | None"),
        *others,
    ]
    for name in (*COLUMN_ARGUMENTS, *PEOPLE_ARGUMENTS, "unit"):
        if name not in signature.parameters:
            parameters.append(
                inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None)
            )
    return signature.replace(parameters=parameters, return_annotation=Design)


def _with_people_found(result: Design, request: DesignRequest, frame: Any) -> Design:
    """The result with a message, and a warning, of people with several records in its frame."""
    joint = request.joint
    if joint.useful.people is not None:
        return result
    sensitive = joint.sensitive.columns
    columns = request.released_columns
    message = above("people").people_message(frame, sensitive, columns, result.channel)
    if message is None:
        return result
    warnings.warn(message, stacklevel=3)
    return replace(result, messages=(message, *result.messages))


def _joint_of_frame(frame: Any, columns: Mapping[str, Any]) -> Joint:
    """The joint table of two columns of a data frame."""
    if isinstance(frame, Joint):
        raise InputError(
            f"{next(iter(columns))} belongs to a data frame; a Joint has its columns: leave it out"
        )
    for name in ("sensitive", "useful"):
        if columns.get(name) is None:
            raise InputError(
                "a data frame needs sensitive, and useful or release, the names of its columns: "
                f"give {name}"
            )
    return Joint.from_table(frame, **columns)


def _joint_of_people(
    frame: Any, columns: dict[str, Any], options: dict[str, Any]
) -> Joint:
    """The joint table of the people of a data frame, in the bins of the options."""
    if columns.get("person") is None:
        raise InputError(
            "wave and sensitive_of belong to people with several records: give person, the column "
            "that names a person"
        )
    _require_frame(frame, columns)
    if options.get("release") is None:
        raise InputError(
            "people with several records are released as rows: name the columns of a record with "
            "release"
        )
    if columns.get("weight") is not None:
        combinations.check(combinations.PEOPLE, {"weight": "weight"})
    form = CellForm(
        normalise=columns.get("normalise", "none"),
        trim=columns.get("trim", False),
        missing_codes=tuple(columns.get("missing_codes", ())),
    )
    given = names_of_columns(options.get("given", ()))
    released = names_of_columns(options["release"])
    roles = PeopleRoles(
        person=names_of_columns(columns["person"]),
        wave=columns.get("wave"),
        sensitive=names_of_columns(columns["sensitive"]),
        released=released,
        given=given,
        sensitive_of=columns.get("sensitive_of", PERSON),
        bins=bins_of_people(options.pop("bins", None), (*given, *released)),
    )
    earlier = [channel.useful for channel in options.get("after") or ()]
    roles = roles.widened(earlier)
    return people_of_table(frame, roles, columns.get("missing", REFUSE), form)


def _require_frame(frame: Any, columns: Mapping[str, Any]) -> None:
    """Refuse a joint table beside columns, and a data frame without a sensitive one."""
    if isinstance(frame, Joint):
        raise InputError(
            f"{next(iter(columns))} belongs to a data frame; a Joint has its columns: leave it out"
        )
    if columns.get("sensitive") is None:
        raise InputError(
            "a data frame needs sensitive, and useful or release, the names of its columns: "
            "give sensitive"
        )


design = _with_fields_as_keywords(DesignRequest)


def _in_bins(request: DesignRequest, started: float) -> Design:
    """The design of the table in bins, whose number may have to be found first."""
    binned, messages = binned_for(request, design_requested)
    time_limit = request.time_limit
    if time_limit is not None:
        # At least half of the time is for the channel itself, whatever the search for bins took.
        remaining = request.search.end(started) - time.process_time()
        time_limit = max(time_limit / 2, remaining)
    result = design_requested(
        replace(request, joint=binned, bins=None, time_limit=time_limit)
    )
    return replace(
        result,
        messages=(*messages, *result.messages),
        seconds=time.process_time() - started,
    )
