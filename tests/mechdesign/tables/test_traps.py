"""Tables that are other ones than their owners mean: each is refused or noted with what to do."""

from __future__ import annotations

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mechdesign as md
from mechdesign.core.errors import NAMES_OPTIONS, InputError
from mechdesign.tables import tally
from mechdesign.tables.reading import read_joint

WIDE = {"contingency": True}


@pytest.fixture(autouse=True)
def _options():
    """Messages as the command line says them."""
    token = NAMES_OPTIONS.set(True)
    yield
    NAMES_OPTIONS.reset(token)


@pytest.fixture
def write(tmp_path):
    def writer(text, name="t.csv"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return writer


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (
            "g,x,y\na,1,2\nb,3,9\nTotal,4,11\n",
            WIDE,
            "the row 'Total' is the sum of the other rows, a margin",
        ),
        (
            "g,x,y, all \na,1,2,3\nb,3,9,12\n",
            WIDE,
            "the column ' all ' is the sum of the other columns",
        ),
        (
            "g,x,y\na,101,299\nb,300,900\nSUM,400,1200\n",
            WIDE,
            "the row 'SUM' .* needs another",
        ),
        (
            "g,x,y\na,1,2\nb,3,9\nboth,4,11\n",
            WIDE,
            r"the row 'both' .* long form, --weight",
        ),
        (
            "g,x,y,z\na,1,2,3\nb,3,9,12\n",
            WIDE,
            "the column 'z' is the sum of the other columns",
        ),
        (
            "g,x,n\na,u,1\na,v,2\nb,u,3\nb,v,9\nAll,u,4\nAll,v,11\n",
            {"sensitive": "g", "useful": "x", "weight": "n"},
            "the row 'All' is the sum of the other rows",
        ),
        (
            # Subtotals of x within y, and of both within g, as ROLLUP writes them.
            "g,y,x,n\na,p,u,1\na,p,v,2\na,p,All,3\nb,p,u,5\nb,p,v,1\nb,p,All,6\n"
            "a,q,u,2\na,q,v,4\na,q,All,6\na,All,All,9\nb,All,All,6\n",
            {"sensitive": "g", "useful": ["y", "x"], "weight": "n"},
            "'All' in the column 'x' is the sum of its other values, a margin that would",
        ),
        (
            "g,y,x,n\na,p,u,1\na,q,u,2\na,sum,u,3\nb,p,v,5\nb,q,v,1\nb,sum,v,6\n",
            {"sensitive": ["g", "y"], "useful": "x", "weight": "n"},
            "'sum' in the column 'y' is the sum of its other values",
        ),
        (
            "g,x,Total\na,.1,.1\nb,.9,.9\n",
            {"probabilities": True},
            "the column 'Total' is the sum of the other columns",
        ),
        (
            'g,x,y\na,"1,000",2\nb,3,4\n',
            WIDE,
            "'1,000' is not a number; write numbers as 1800.5, without a decimal comma, sep",
        ),
        ("g,x,y\na,,2\nb,3,4\n", WIDE, "column 'x' is not .*; write 0 for none"),
        (
            "g,x,y\na,1,2\nb,3,4.5\n",
            WIDE,
            r"say so if these are survey weights \(--weighted\) or probabilities",
        ),
        ("g,x,y\na,1,2\na,3,4\n", WIDE, "occurs twice.*leave --contingency out"),
        (
            "id,g,x\n1,a,u\n2,b,v\n",
            WIDE,
            "'a' is not a number; for one record a row leave --contingency out",
        ),
        (
            "g,x,y\na,1,2\nb,3,4\n",
            {"sensitive": "g", "useful": "decile"},
            r"no column 'decile'.*say so \(--contingency\)",
        ),
        (
            "39,State,Male\n50,Self,Male\n",
            {"sensitive": "sex", "useful": "job"},
            "no column 'sex'.*if the first row is data, put a line with the names",
        ),
        (
            b"PK\x03\x04....",
            WIDE,
            r"its zip data are damaged, or were not copied whole",
        ),
        (
            b"\xd0\xcf\x11\xe0....",
            WIDE,
            r"is a spreadsheet or another file of Microsoft Office; .*ssconvert",
        ),
        (
            "g,income,y\na,1,2\n",
            {"sensitive": "g", "useful": "nope"},
            r"no column 'nope' \(columns",
        ),
    ],
)
def test_refused(write, text, options, message):
    with pytest.raises(md.InputError, match=message):
        read_joint(write(text), **options)


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (
            "g,x,n\na,u,3\na,v,5\nb,u,9\n",
            {"sensitive": "g", "useful": "x"},
            "no two rows have the same symbols: if a column says how many records each row stands for, name it",
        ),
        (
            "g, x\na, u\nb, v\n",
            {"sensitive": "g", "useful": " x"},
            "' x': every symbol begins with a blank",
        ),
        (
            "a,u\na,u\nb,v\n",
            {"sensitive": "a", "useful": "u"},
            "'a', 'u': the name of the column is one of its sy",
        ),
        (
            "g,x\na,u\nb,v\ng,x\na,v\n",
            {"sensitive": "g", "useful": "x"},
            "if files were joined, take out the headers between their records",
        ),
        (
            "g,id\n" + "".join(f"{chr(97 + k % 2)},{k}\n" for k in range(20)),
            {"sensitive": "g", "useful": "id"},
            "'id': every record has another symbol",
        ),
        (
            "3,1,2\n4,5,6\n",
            WIDE,
            "the first cell of the header is a number: if the first row is data",
        ),
    ],
)
def test_noted(write, text, options, message):
    (notice,) = read_joint(write(text), **options).notices
    assert message in notice


@pytest.mark.parametrize(
    "text",
    [
        "g,x,y\na,1,2\nb,1,2\n",  # of two rows each is 'the sum of the others'
        "g,x,y\nall,1,2\nnone,3,9\npart,2,2\n",  # called so, but no sum
        "decile,1,2\na,1,2\nb,3,9\n",
    ],
)
def test_what_only_looks_like_a_trap_is_read(write, text):
    assert read_joint(write(text), contingency=True).notices == ()


@pytest.mark.parametrize(
    "text",
    [
        # No sum for q.
        "g,y,x,n\na,p,u,1\na,p,v,2\na,p,All,3\na,q,u,2\na,q,v,4\na,q,All,5\nb,q,u,9\n",
        # None at all for q, as where few records have a value called 'all'.
        "g,y,x,n\na,p,u,1\na,p,all,1\na,q,u,2\na,q,v,4\nb,q,u,9\n",
        # A single sum may be an accident.
        "g,y,x,n\na,p,u,1\na,p,all,1\nb,q,all,3\n",
    ],
)
def test_a_value_called_all_that_is_no_subtotal_is_read(write, text):
    joint = read_joint(write(text), sensitive="g", useful=["y", "x"], weight="n")
    assert joint.notices == ()


def test_a_crosstab_with_margins_is_refused():
    frame = pd.DataFrame({"g": list("aabbc"), "x": list("uvuvu")})
    with pytest.raises(
        md.InputError, match="the row 'All' is the sum of the other rows"
    ):
        md.Joint.from_counts(pd.crosstab(frame.g, frame.x, margins=True))


@given(
    st.lists(
        st.lists(st.integers(1, 9), min_size=3, max_size=3), min_size=3, max_size=3
    )
)
def test_margins_of_every_table_are_found_and_no_table_is_refused_for_its_numbers_in_python(
    counts,
):
    """A row that sums the others is refused under the name of a margin, in from_counts under no
    other.
    """
    sums = [sum(column) for column in zip(*counts, strict=True)]
    md.Joint.from_counts([*counts, sums])
    with pytest.raises(md.InputError, match="'Total' is the sum"):
        md.Joint.from_counts([*counts, sums], sensitive_labels=["a", "b", "c", "Total"])


def test_fractional_weights_have_a_way_in(write):
    """The weights are exact, and nobody takes them for numbers of records."""
    path = write("g,x,y\na,1.25,2.5\nb,3.75,0.5\n")
    joint = read_joint(path, contingency=True, weighted=True)
    assert joint.counts == ((5, 10), (15, 2))
    assert joint.records is None
    again = md.Joint.from_counts([[1.25, 2.5], [3.75, 0.5]], weights=True)
    assert (again.counts, again.is_counts) == (joint.counts, False)


def test_a_table_of_more_cells_than_memory_holds_is_refused_before_it_is_made(
    monkeypatch,
):
    """Two columns of many values have the product of their numbers as cells."""
    monkeypatch.setattr(tally, "MOST_CELLS", 30 * 40 - 1)
    frame = pd.DataFrame({"s": [f"{k % 30}" for k in range(120)], "x": range(120)})
    frame["x"] %= 40
    said = (
        r"the sensitive column 's' has 30 different values, and 'x' has 40: a table of both has "
        r"1,200 cells, more than memory is planned for; name columns with fewer values"
    )
    with pytest.raises(InputError, match=said):
        md.Joint.from_table(frame, sensitive="s", useful="x")
    monkeypatch.setattr(tally, "MOST_CELLS", 30 * 40)
    assert len(md.Joint.from_table(frame, sensitive="s", useful="x").useful) == 40
