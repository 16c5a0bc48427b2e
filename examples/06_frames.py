"""Sanitise whole frames: the same record gets the same draw in pandas, polars and arrow, whole or in parts."""

from __future__ import annotations

import adult
import pandas as pd
import polars as pl
import pyarrow as pa

import mechdesign as md
from mechdesign import sanitise

joint = adult.load()
channel = md.design(joint, md.LIP(0.5)).channel

# The records behind the counts, one by one, with what identifies them and what is not touched. They are mixed: where
# they are grouped by what is protected, their places tell it, and `sanitise` warns.
cells = [(s, x, n) for s, row in enumerate(joint.counts) for x, n in enumerate(row)]
frame = pd.DataFrame(
    {
        "relationship": [
            joint.sensitive.names[s] for s, _, n in cells for _ in range(n)
        ],
        "occupation": [joint.useful.names[x] for _, x, n in cells for _ in range(n)],
    }
).astype({"occupation": "category"})
frame = frame.sample(frac=1, random_state=0, ignore_index=True)
frame["person"] = [f"p{i}" for i in range(len(frame))]

try:
    sanitise(frame, channel, keep="all")
except md.InputError as error:
    print(f"refused: {error}")
frame = frame.drop(columns="relationship")

# Who has the key can undo the release: keep it in a key file (mechdesign.create_key).
key = md.Key.fresh()
released = sanitise(frame, channel, key=key, identity="person", keep="person")
print(released.head(3))
print(
    "still categories:", isinstance(released["occupation"].dtype, pd.CategoricalDtype)
)

shuffled = frame.sample(frac=1, random_state=1)
again = sanitise(shuffled, channel, key=key, identity="person", keep="person")
# The order of the rows is the shuffled one, and the index a new one.
by_person = again.set_index("person").loc[released["person"]]
same = (by_person["occupation"].to_numpy() == released["occupation"].to_numpy()).all()
print("same draws in another order:", bool(same))
for kind in (pl.from_pandas, pa.Table.from_pandas):
    other = sanitise(kind(frame), channel, key=key, identity="person")
    same = [str(label) for label in other["occupation"]] == released[
        "occupation"
    ].tolist()
    print(f"same draws in {type(other).__module__.split('.')[0]}:", same)

values = sanitise(frame, channel, key=key, identity="person", form="posterior-draw")[
    "occupation"
]
print("posterior draws keep the alphabet:", set(values) <= set(joint.useful.names))
