"""What a channel really does, recomputed from its integers in exact arithmetic.

The trusted core of the project. Start with `verdict.audit` (a channel of one column on its table),
`rows.audit_rows` (a channel of rows), `population` (every table in a confidence set) and
`joint_leakage.compose` (several releases of one record). Nothing here imports `mechanisms` or
`solvers`, so that a mistake of the search cannot hide in its own verdict.
"""
