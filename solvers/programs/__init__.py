"""Programs that are handed to a solver: linear, integer (HiGHS) and semidefinite ones (Clarabel).

`highs` solves programs once, `master` is the linear program that grows by columns, and `theta` the
semidefinite program of a graph. Callers bound or verify what they get anew.
"""
