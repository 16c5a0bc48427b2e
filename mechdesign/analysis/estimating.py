"""Frequencies behind a release of any channel: `estimate` chooses the estimator by the channel.

    rows, also in filled boxes      the shares of the file, corrected         `law_estimates`
                                    means and least squares                   `law_statistics`
    any other channel               the draws undone, of boxes box by box     `frequencies`

`estimator_of` is the choice, for the command line, too.

For example, ``estimate(channel, "released.csv", of=["job", "sex"])`` gives the table of jobs by sex
where the release keeps it, ``estimate(channel, "released.csv", mean="hours", by="job")`` the mean
hours of every job, and ``regress="hours", on=["age", "sex"]`` a regression.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from enum import Enum
from typing import Any

from mechdesign.analysis.file_frequencies import estimate_file
from mechdesign.analysis.frequencies import Frequencies, estimate_frequencies
from mechdesign.analysis.joint_frequencies import JointFrequencies
from mechdesign.analysis.law_estimates import (
    POPULATION,
    ColumnFrequencies,
    counts_of_frame,
    estimate_shares,
)
from mechdesign.analysis.law_statistics import (
    Statistics,
    check_question,
    estimate_means,
    estimate_regression,
)
from mechdesign.analysis.release_facts import (
    NOT_CORRECTED,
    has_fixed_counts,
    other_records,
)
from mechdesign.channel.channel import Channel
from mechdesign.channel.file import require_channel
from mechdesign.core.errors import InputError
from mechdesign.mechanisms import combinations
from mechdesign.release.released_values import LABEL
from mechdesign.tables.columns import is_frame
from mechdesign.tables.joint import names_of_columns

NO_NUMBERS = (
    "the table of the channel has weights or probabilities and no numbers of records, and its "
    "released rows keep the frequencies with these: what an unweighted file of them says is not "
    "what its records were. Keep the weights beside the rows (apply --keep) and weight what you "
    "compute; where the records were drawn with these probabilities, no correction is needed"
)
"""Why rows of such a table are not estimated: here every released record counts once."""

NOT_OF_LABELS = (
    "means (mean, --mean) and regressions (regress, --regress) are for a release of rows, and this "
    "channel releases labels in their place; `corrected_regression` of mechdesign.analysis takes "
    "the labels of one column"
)


class Estimator(Enum):
    """What is estimated of a release."""

    STATISTICS = "a mean or a regression of columns of rows"
    SHARES = "frequencies of columns of rows"
    COLUMN = "frequencies of the useful column, or of boxes"


def estimator_of(
    channel: Channel, *, has_others: bool, is_statistic: bool
) -> Estimator:
    """What is estimated of a release of this channel.

    Parameters
    ----------
    channel : Channel
    has_others : bool
        Whether there are draws in place of empty or unknown cells in the release.
    is_statistic : bool
        Whether a mean or a regression is asked for.

    Raises
    ------
    InputError
        If the channel has no such estimates, or they cannot be corrected.
    """
    has_shares = channel.keeps_law or channel.tells_shares
    if has_shares and not channel.has_counts:
        # Each record of a file counts once, whatever its weight in the table was.
        if is_statistic or len(channel.released_columns) > 1:
            raise InputError(NO_NUMBERS)
        return Estimator.COLUMN
    if is_statistic:
        if not has_shares:
            raise InputError(NOT_OF_LABELS)
        if channel.people is not None:
            named = {"means": "a mean or a regression (mean, regress)"}
            combinations.check(combinations.PEOPLE, named)
    if not has_shares:
        return Estimator.COLUMN
    if has_others:
        is_row = len(channel.released_columns) > 1 or channel.fills
        if is_statistic or is_row:
            raise InputError(NOT_CORRECTED.format("columns"))
        # The shares of a file with other records are not those of its column, so they are
        # estimated like those of any channel, and corrected.
        return Estimator.COLUMN
    return Estimator.STATISTICS if is_statistic else Estimator.SHARES


def estimate(
    channel: Channel,
    released: Any,
    of: str | Sequence[str] | None = None,
    *,
    mean: str | None = None,
    by: str | Sequence[str] = (),
    regress: str | None = None,
    on: str | Sequence[str] = (),
    level: float = 0.95,
    target: str = POPULATION,
    fixed: bool | None = None,
    **options: Any,
) -> list[ColumnFrequencies] | Frequencies | JointFrequencies | Statistics:
    """Estimate frequencies of the true values from what was released, and of rows means and
    regressions.

    Parameters
    ----------
    channel : Channel
    released : path, data frame or column
        As it was released. A column or its frame, for a channel that releases one.
    of : str or sequence of str, optional
        Released columns whose values are crossed, for a channel of rows; by default each released
        column by itself.
    mean : str, optional
        A released column of numbers, for a channel of rows: its mean, with `by` in every group.
    by : str or sequence of str
        Released columns of the groups; with `mean` alone.
    regress : str, optional
        A released column of numbers, for a channel of rows: its least-squares regression `on`
        others.
    on : str or sequence of str
        Released columns; one of texts has a coefficient for each value but the most frequent.
    level : float
        Confidence level of each interval, in (0, 1).
    target : {"population", "records"}
        What the intervals are for.
    fixed : bool, optional
        Whether the counts of the draws were fixed. By default what the manifest beside the file
        says; without one, and for frames, they were not, which gives wider intervals.
    options
        Those of `estimate_frequencies` or `estimate_file` for a channel of labels.

    Returns
    -------
    list of ColumnFrequencies
        For a channel of rows.
    Statistics
        With `mean` or `regress`.
    Frequencies or JointFrequencies
        For any other channel.

    Raises
    ------
    InputError
        If the release does not fit the channel, or an argument the kind of channel.
    """
    require_channel("channel", channel)
    is_path = isinstance(released, str | os.PathLike)
    groups = names_of_columns(by) if by else ()
    terms = names_of_columns(on) if on else ()
    check_question(of=of, mean=mean, by=groups, regress=regress, on=terms)
    has_others = False
    if is_path:
        policy, manifest = options.get("policy"), options.get("manifest")
        has_others = other_records(released, channel, policy, manifest).are_there
    estimator = estimator_of(
        channel,
        has_others=has_others,
        is_statistic=mean is not None or regress is not None,
    )
    if estimator is not Estimator.COLUMN:
        if options:
            raise InputError(
                f"{next(iter(options))} is for a channel of labels; this one releases rows as "
                "rows: leave it out"
            )
        if fixed is None:
            fixed = is_path and has_fixed_counts(released, channel)
        asked: dict[str, Any] = {"level": level, "target": target, "fixed": fixed}
        if mean is not None:
            return estimate_means(channel, released, mean, groups, **asked)
        if regress is not None:
            return estimate_regression(channel, released, regress, terms, **asked)
        columns = None if of is None else names_of_columns(of)
        return estimate_shares(channel, released, columns, **asked)
    if of is not None or fixed is not None:
        raise InputError(
            "of and fixed are for a release of rows, and this channel releases labels: leave them "
            "out; estimates are of its useful column"
        )
    if is_path:
        return estimate_file(released, channel, level=level, target=target, **options)
    labels = channel.single()
    if is_frame(released) and options.get("form", LABEL) == LABEL:
        # Beside given columns a label is one cell among several.
        counts = counts_of_frame(labels, released)
        released = dict(zip(labels.outputs, counts.tolist(), strict=True))
    return estimate_frequencies(
        labels,
        released,
        level=level,
        target=target,  # pyright: ignore[reportArgumentType]
        **options,
    )
