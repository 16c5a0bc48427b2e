"""What goes with what: the one list of options that are not built together, each with the reason.

`REFUSALS` is data. The checks of a request read it (`refused`), the command line for boxes too, and
`table_text` prints it for `mechdesign design --help-options`, whose text docs/reference/options.md
carries. What is not listed goes together.

A *shape* is what a promise or a release is: an average budget, boxes of rows, and so on; the
entries of a shape are the options that it does not have. For example, the shape `AVERAGE` has an
entry for confidence, and so `design(.., average=.., confidence=..)` is refused with its reason.

To add a combination that is not built: a line here, and its option in `DesignRequest.named` if it
is not there. To build one: its line goes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from textwrap import wrap

from mechdesign.core.errors import InputError

AVERAGE = "average"
BOXES = "boxes"
POPULATION = "population"
STRATA = "strata"
ROWS = "rows"
MEANS = "means"
PEOPLE = "people"
TABLE = "table"
"""A release of columns with a promise about their table, of which no entry speaks."""

SHAPES = {
    AVERAGE: "an average budget (--average)",
    BOXES: "boxes (--release with --confidence, --merge-rare)",
    POPULATION: "a promise for the population (--useful with --confidence)",
    STRATA: "given columns with free outputs (--given, --objective information, queries, task)",
    ROWS: "rows as rows of the table (--release with --objective truth, distance)",
    MEANS: "a notion on averages of lifts (--notion l1, chi2, alpha, kl)",
    PEOPLE: "people with several records (--person)",
}
"""Every shape that lacks options, in words."""

MESSAGES = {
    AVERAGE: "an average budget is not built with {name}: leave one of them out ({reason})",
    BOXES: (
        "{name} is not built for boxes (--release with --confidence, --merge-rare): leave it out "
        "({reason})"
    ),
    POPULATION: "confidence is not built with {name}: leave one of them out ({reason})",
    STRATA: (
        "{name} is not built with given columns and free outputs: leave one of them out ({reason})"
    ),
    ROWS: "{name} ({reason})",
    MEANS: "{name} ({reason})",
    PEOPLE: (
        "{name} is not built for people with several records (person): leave one of them out "
        "({reason})"
    ),
}
"""How a request is refused; for rows and means the words of an option are the sentence."""

TABLE_WIDTH = 96
"""Columns of the printed table."""

OWN_SEARCH = "the search has no such choice"
OF_TABLE = "it speaks of rows of the table, and boxes are released"


@dataclass(frozen=True)
class Refusal:
    """An option that a shape does not have.

    Parameters
    ----------
    shape : str
    name : str
        The option in messages, as `DesignRequest.named` has it.
    option : str
        The option as the command line has it; empty where only Python does.
    reason : str
    """

    shape: str
    name: str
    option: str
    reason: str

    def message(self, name: str) -> str:
        """The sentence for a request; `name` may say more than that of the entry."""
        option = "--" + name.replace("_", "-").replace(" ", "-")
        if option == self.option:
            # Errors give it to users of Python as the parameter.
            name = option
        return MESSAGES[self.shape].format(name=name, reason=self.reason)


REFUSALS = (
    Refusal(
        AVERAGE,
        "confidence",
        "--confidence",
        "an average is decided on the table, and there is no verdict on it for a set of "
        "populations",
    ),
    Refusal(
        AVERAGE,
        "after",
        "--after",
        "the average of several releases together is not that of one of them",
    ),
    Refusal(
        AVERAGE,
        "protect_each",
        "--protect-each",
        "an average is one about a single sensitive column, or about combinations",
    ),
    Refusal(
        AVERAGE,
        "budgets of single symbols",
        "--budget",
        "an average has no part for a single symbol",
    ),
    Refusal(
        AVERAGE,
        "constraints or a convex cost",
        "",
        "their program in cvxpy has no total over all outputs",
    ),
    Refusal(
        AVERAGE,
        "keep and an objective",
        "--keep with --objective other than information",
        "the share to keep is one of the information",
    ),
    Refusal(
        AVERAGE,
        "a relative promise without a notion",
        "--promise relative without --notion",
        "an average is one over whole rows, given columns included; what is relative to them is a "
        "notion on single lifts beside it",
    ),
    Refusal(
        AVERAGE,
        "mechanism",
        "--mechanism",
        "heuristics keep promises on single outputs",
    ),
    Refusal(
        AVERAGE,
        "bins",
        "--bin auto",
        "the number of bins is chosen by a budget on single lifts",
    ),
    Refusal(AVERAGE, "method", "--method", OWN_SEARCH),
    Refusal(AVERAGE, "start", "", OWN_SEARCH),
    Refusal(
        BOXES,
        "after",
        "--after",
        "earlier releases have symbols where boxes have sets of rows; `mechdesign compose` says "
        "what releases tell together",
    ),
    Refusal(
        BOXES,
        "budgets of single symbols",
        "--budget",
        "rare sensitive values may be promised together, as one that has no budget of its own",
    ),
    Refusal(
        BOXES,
        "protect_each",
        "--protect-each",
        "a confidence set is one about a single sensitive column",
    ),
    Refusal(
        BOXES,
        "average",
        "--average",
        "an average is decided on the table, and boxes promise for the population",
    ),
    Refusal(
        BOXES,
        "objective",
        "--objective distance, costs, queries; information and truth go",
        "boxes have no distance and no queries of their own before they are learned",
    ),
    Refusal(
        BOXES, "task", "--task", "boxes are learned without the column of the task"
    ),
    Refusal(BOXES, "distance", "--distance", "boxes have no distance"),
    Refusal(BOXES, "stay", "--stay", OF_TABLE),
    Refusal(BOXES, "forbid", "--forbid", OF_TABLE),
    Refusal(BOXES, "never", "--never", OF_TABLE),
    Refusal(BOXES, "column weights", "--column-weight", OF_TABLE),
    Refusal(BOXES, "smallest_group", "--smallest-group", OF_TABLE),
    Refusal(BOXES, "known", "--known", OF_TABLE),
    Refusal(
        BOXES,
        "known shares",
        "--known-shares",
        "rare sensitive values may be promised together, whose share is then not known",
    ),
    Refusal(
        BOXES,
        "unseen symbols",
        "--symbols",
        "boxes have a place for every symbol that no record has",
    ),
    Refusal(
        BOXES,
        "unknown",
        "--unknown nearest",
        "every row has a box, also one that the table does not have",
    ),
    Refusal(
        BOXES,
        "missing",
        "--missing marginal, output:LABEL",
        "no box covers an empty cell, so that none is released for it; as a symbol (symbol) it has "
        "boxes",
    ),
    Refusal(
        BOXES, "constraints", "", "they are functions of symbols, and boxes are learned"
    ),
    Refusal(BOXES, "mechanism", "--mechanism", "the optimum of the boxes is one"),
    Refusal(
        BOXES,
        "bins",
        "--bin auto",
        "the number of bins is chosen by designs for the whole table, and boxes are learned on a "
        "slice of it; edges, a width and quantiles:N go",
    ),
    Refusal(BOXES, "method", "--method", OWN_SEARCH),
    Refusal(BOXES, "enumerate", "--enumerate", OWN_SEARCH),
    Refusal(BOXES, "gap", "--gap", OWN_SEARCH),
    Refusal(BOXES, "start", "", OWN_SEARCH),
    Refusal(
        BOXES,
        "keep",
        "--keep, --max-posterior",
        "both turn the table into a budget, and the promise is for the population",
    ),
    Refusal(
        BOXES,
        "keep frequencies",
        "--keep-frequencies, --free-frequencies with --objective information",
        "free labels have no frequencies to keep",
    ),
    Refusal(BOXES, "curve", "--curve", "a curve is one over budgets of one table"),
    Refusal(
        POPULATION,
        "protect_each",
        "--protect-each",
        "a confidence set is one about a single sensitive column",
    ),
    Refusal(
        POPULATION,
        "after",
        "--after",
        "what releases tell together is decided on the table",
    ),
    Refusal(
        STRATA,
        "after",
        "--after",
        "every stratum would need what the earlier releases tell of it; objectives on rows of "
        "the table go",
    ),
    Refusal(
        STRATA,
        "protect_each",
        "--protect-each",
        "given columns leave other budgets for every sensitive column; objectives on rows of the "
        "table go",
    ),
    Refusal(
        STRATA,
        "an average",
        "--average",
        "an average is one over all given cells together",
    ),
    Refusal(
        STRATA,
        "an objective of queries of one's own",
        "--objective FILE of queries",
        "its coefficients are for symbols of all columns together",
    ),
    Refusal(
        STRATA,
        "strata: ldp",
        "--notion ldp without --promise relative",
        "given columns leave another budget for every pair of sensitive values",
    ),
    Refusal(STRATA, "start", "", OWN_SEARCH),
    Refusal(
        ROWS,
        "rows: means",
        "--notion l1, chi2, alpha, kl",
        "the search for plans has limits of single lifts alone; the objective information goes",
    ),
    Refusal(
        ROWS,
        "rows: convex",
        "",
        "convex costs and constraints are functions of a dense matrix; they are for one column",
    ),
    Refusal(
        ROWS,
        "rows: relative after",
        "--promise relative with --after",
        "earlier releases are judged on the whole table",
    ),
    Refusal(
        MEANS,
        "means: confidence",
        "--confidence",
        "the audit of a confidence set has the extremes of single lifts",
    ),
    Refusal(
        MEANS,
        "means: several tables",
        "--protect-each, --budget, --after",
        "they are limits of single lifts on several tables",
    ),
    Refusal(
        MEANS,
        "means: given",
        "--given without --promise relative",
        "given columns leave other budgets for every sensitive value, and a mean has one",
    ),
    Refusal(
        MEANS,
        "means: average",
        "--average",
        "it stands beside a notion on single lifts",
    ),
    Refusal(
        MEANS,
        "means: convex",
        "",
        "convex costs and constraints need rows that are listed (l1 with eps_l inf has them)",
    ),
    Refusal(
        PEOPLE,
        "free outputs",
        "--objective information, queries, task",
        "a free label stands for a whole sequence, so that no record would come out; truth, "
        "distance and costs release sequences of records",
    ),
    Refusal(
        PEOPLE,
        "bins",
        "--bin auto",
        "the number of bins is searched for one column by itself; edges, a width, quantiles:N and "
        "auto:N are the same at every place of a sequence",
    ),
    Refusal(
        PEOPLE,
        "after releases of records",
        "--after a channel for single records",
        "what it tells of a person is that of all records together, and these have as many outputs "
        "as there are sequences of them; a channel for the same people goes",
    ),
    Refusal(
        PEOPLE,
        "weight",
        "--weight",
        "a weight counts records, and people are counted",
    ),
    Refusal(
        PEOPLE,
        "means",
        "estimate --mean, --regress",
        "records of one person depend on each other; where the law is kept, means and regressions "
        "of the released file are the table's, and errors clustered by person, as other programs "
        "have them, are theirs for a sample of people",
    ),
)
"""Every combination that is not built, in the order in which a request is checked."""


def entries_of(shape: str) -> tuple[Refusal, ...]:
    """What a shape does not have."""
    return tuple(entry for entry in REFUSALS if entry.shape == shape)


def check(shape: str, named: Mapping[str, str]) -> None:
    """Raise InputError for the first option that a shape does not have.

    `named` has the options that are given, by the names of the entries, with their words.
    """
    for entry in entries_of(shape):
        if entry.name in named:
            raise InputError(entry.message(named[entry.name]))


def table_text() -> str:
    """The table as `design --help-options` prints it."""
    lines = [
        "What goes with what",
        "",
        *wrap(
            "Every objective goes with every notion and every release, with --confidence, "
            "--after, --protect-each and --budget. What is not built together is refused with "
            "the reason, which stands here.",
            TABLE_WIDTH,
            break_on_hyphens=False,
        ),
    ]
    for shape, words in SHAPES.items():
        lines += ["", f"Not with {words}:"]
        for entry in entries_of(shape):
            if entry.option:
                lines += _entry_lines(entry)
    return "\n".join(lines)


def _entry_lines(entry: Refusal) -> Iterable[str]:
    """An entry: its option, and the reason behind it or below."""
    text = f"{entry.option}: {entry.reason}"
    return wrap(
        text,
        TABLE_WIDTH,
        initial_indent="  ",
        subsequent_indent="      ",
        break_on_hyphens=False,
    )
