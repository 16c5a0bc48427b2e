"""The theta number of a graph (Lovász 1979) by semidefinite programming.

Take the symmetric matrices that are one on the diagonal and wherever two vertices are not adjacent,
with free entries where they are: theta(G) is the least of their largest eigenvalues. So every such
matrix proves an upper bound of theta(G), whatever its origin. `theta_matrix` lets Clarabel minimise
t over t I - M >= 0 (no negative eigenvalue), with one variable for each edge, and callers bound the
largest eigenvalue of the M that it proposes anew.

For example, the pentagon has theta = sqrt(5), from a matrix with (sqrt(5) - 3) / 2 at its edges.
"""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

from solvers.errors import BackendFailure
from solvers.points import Array


def theta_matrix(vertices: int, edges: NDArray[np.int64]) -> Array:
    """A matrix whose largest eigenvalue is about theta(G), never less.

    Parameters
    ----------
    vertices : int
        They are numbered from 0.
    edges : (m, 2) array
        The two vertices of every edge.

    Raises
    ------
    BackendFailure
        If Clarabel gives no matrix.
    """
    matrix = np.ones((vertices, vertices))
    # Without edges nothing is free, and the matrix of ones has the largest eigenvalue n.
    if not len(edges):
        return matrix
    # Slow to import, and only used here.
    import cvxpy
    from scipy.sparse import csr_array

    # Variable e is the entry of edge e, on both sides of the diagonal.
    columns = np.tile(np.arange(len(edges)), 2)
    above = edges[:, 0] * vertices + edges[:, 1]
    below = edges[:, 1] * vertices + edges[:, 0]
    rows = np.concatenate((above, below))
    places = csr_array(
        (np.ones(rows.size), (rows, columns)), shape=(vertices**2, len(edges))
    )

    # The least t for which t I - M has no negative eigenvalue is the largest eigenvalue of M.
    free = cvxpy.Variable(len(edges))
    largest = cvxpy.Variable()
    entries = cvxpy.reshape(places @ free, (vertices, vertices), order="C")
    identity = np.eye(vertices)
    problem = cvxpy.Problem(
        cvxpy.Minimize(largest), [largest * identity - matrix - entries >> 0]
    )
    try:
        with warnings.catch_warnings():
            # An inaccurate solution is no worse: callers bound the eigenvalue of any matrix.
            warnings.simplefilter("ignore")
            problem.solve(solver="CLARABEL")
    except cvxpy.SolverError as error:
        raise BackendFailure(f"Clarabel failed on the theta number: {error}") from None
    if free.value is None or not np.isfinite(free.value).all():
        raise BackendFailure(
            f"Clarabel ended with '{problem.status}' and no matrix for the theta number"
        )
    # Symmetric to the last digit, whatever Clarabel's own matrix is.
    matrix[edges[:, 0], edges[:, 1]] += free.value
    matrix[edges[:, 1], edges[:, 0]] += free.value
    return matrix
