"""What a channel really does, recomputed from its integers in exact arithmetic.

The trusted core of the project. `either.audit` is the public one. For a channel of a column or of
rows it calls `population.audit_with_confidence`, which calls `verdict.audit_on_table` for one
table; for boxes it calls `audit_boxes` beside it. `joint_leakage.compose` judges several releases
of one record. Nothing here imports `mechanisms` or `solvers`, so that a mistake of the search
cannot hide in its own verdict.

All rest on the same few files:

    columns     a channel as columns of integers over a table, and means of lifts over S
    demands     the limits that a notion sets, table by table
    extremes    the largest quotient of each limit, compared in integers
    proofs      the bound of a least cost from its multipliers, with `averages`

Measures that are only reported are in `measures` and `leakages`.
"""
