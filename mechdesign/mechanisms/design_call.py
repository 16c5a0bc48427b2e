"""`design` for users: the fields of a request as keywords, and data frames in place of a table.

    design(joint, notion, gap=1e-3)  =  design_requested(DesignRequest(joint, notion, gap=1e-3))

With a data frame `sensitive`, `useful` and other arguments name its columns, and the table is made
here: that of its records, or with `person` that of people with several of them.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ParamSpec, Protocol, cast, overload

from mechdesign.channel.file import require_without_boxes
from mechdesign.core.above import above
from mechdesign.core.errors import InputError
from mechdesign.formats.cells import CellForm
from mechdesign.mechanisms import combinations
from mechdesign.mechanisms.average_budgets import NO_PROMISE
from mechdesign.mechanisms.designing import design_requested
from mechdesign.mechanisms.people_request import bins_of_people
from mechdesign.mechanisms.purposes import check_not_released
from mechdesign.mechanisms.request import DesignRequest
from mechdesign.mechanisms.result import Design
from mechdesign.notions import Notion
from mechdesign.tables.cell_values import REFUSE
from mechdesign.tables.joint import Joint, Missing, names_of_columns
from mechdesign.tables.people import PERSON, RECORD
from mechdesign.tables.people_tables import PeopleRoles, people_of_table

Arguments = ParamSpec("Arguments")


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
