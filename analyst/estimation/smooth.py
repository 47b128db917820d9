"""Making a noisy curve non-decreasing and at home in [0, n]. Post-processing: it costs no privacy.

`isotonic` is the Euclidean projection onto such curves. The true curve is one of them, so it never increases the
squared error. analyst/estimation/limited.py starts from it. `tree` is the paper's Eq. 2: the smallest correction of the
noise tree's nodes, in the 2-norm or the 1-norm, that makes the curve non-decreasing on a set B of positions, at least 0
at its first and at most n at its last.

The correction of two neighbouring positions differs in a few nodes only, so each constraint has a handful of
non-zeros, and an interior-point solver takes well under a second for 2^15 positions.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

import clarabel
import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import isotonic_regression

from fss_ecdf.campaign.errors import InvalidQuery, SmoothingFailed

Floats = NDArray[np.float64]
Index = NDArray[np.int64]


def isotonic(counts: ArrayLike, n: float) -> Floats:
    """The nearest non-decreasing curve within [0, n]."""
    curve = _check_counts(counts, n)
    return np.asarray(np.clip(isotonic_regression(curve).x, 0.0, float(n)))


def rates_with_noise(cells: Floats, noise: Floats) -> Floats:
    """F of these cells as it would be shown with this noise in its counts: smoothed, up to its noisy total."""
    noisy = np.cumsum(cells) + noise
    total = max(float(noisy[-1]), 1.0)
    return isotonic(noisy, total) / total


@dataclass(frozen=True)
class Program:
    """minimise the norm of x, subject to G x >= h and E x = 0; but for the last, G's rows move the curve's steps."""

    inequality: sp.csr_array
    bound: Floats
    equality: sp.csr_array

    @property
    def variables(self) -> int:
        return int(self.inequality.shape[1])

    def moved(self, curve: Floats, x: Floats) -> Floats:
        """The curve after the correction x."""
        return np.asarray(curve + np.cumsum((self.inequality @ x)[: curve.size]))


Solver = Literal["clarabel", "cvxopt"]


def tree(
    counts: ArrayLike,
    n: float,
    *,
    norm: int = 2,
    mechanism: str = "slice-tree",
    at: ArrayLike | None = None,
    depth: int | None = None,
    total_is_public: bool = True,
    solver: Solver = "clarabel",
) -> Floats:
    """Eq. 2 of the paper: the smoothed curve at the positions `at` (all, if left out) that `counts` belong to.

    `total_is_public` says that the last position of a slice-tree has no noise, as in a campaign of one stratum.
    """
    curve = _check_counts(counts, n)
    positions = np.arange(curve.size) if at is None else np.asarray(at, np.int64)
    if norm not in (1, 2):
        raise InvalidQuery(f"the norm is 1 or 2, got {norm!r}")
    if solver not in get_args(Solver):
        raise InvalidQuery(f"the solver is one of {', '.join(get_args(Solver))}, got {solver!r}")
    if positions.shape != curve.shape or (np.diff(positions) <= 0).any() or positions[0] < 0:
        raise InvalidQuery("positions must increase, one for each count")
    levels = max(1, int(positions[-1]).bit_length()) if depth is None else depth
    if positions[-1] >= 1 << levels:
        raise InvalidQuery(f"positions must be below 2^{levels}")
    program = make_program(curve, float(n), positions, levels, mechanism, total_is_public)
    smoothed = program.moved(curve, _SOLVERS[solver](program, norm))
    # The solver keeps constraints to its tolerance; make them exact.
    return np.clip(np.maximum.accumulate(smoothed), 0.0, float(n))


def make_program(
    curve: Floats, n: float, positions: Index, depth: int, mechanism: str, total_is_public: bool
) -> Program:
    """The program for a curve at increasing positions of a tree of this depth."""
    if mechanism == "slice-tree":
        rows, equality = _slice_rows(positions, depth, total_is_public)
    else:
        rows, equality = _paper_rows(positions, depth)
    # The last row moves the curve's end, which may be at most n.
    signs = np.ones(rows.shape[0])
    signs[-1] = -1.0
    inequality = sp.csr_array(sp.diags_array(signs) @ rows)
    return Program(inequality, np.concatenate([-np.diff(curve, prepend=0.0), [curve[-1] - n]]), equality)


class _Rows:
    """Sparse rows over the nodes of a tree, collected level by level; nodes become columns in the order of levels."""

    def __init__(self, depth: int) -> None:
        self._parts: list[list[tuple[Index, Index, float]]] = [[] for _ in range(depth + 1)]

    def add(self, level: int, row: Index, node: Index, value: float) -> None:
        if row.size:
            self._parts[level].append((row, node, value))

    def nodes(self, level: int) -> Index:
        return np.unique(np.concatenate([np.zeros(0, np.int64), *(node for _, node, _ in self._parts[level])]))

    def matrix(self, rows: int, columns: list[Index]) -> sp.csr_array:
        start, entries = 0, []
        for level, nodes in enumerate(columns):
            for row, node, value in self._parts[level]:
                entries.append((row, start + np.searchsorted(nodes, node), np.full(row.size, value)))
            start += nodes.size
        at, column, data = (np.concatenate(part) for part in zip(*entries, strict=True))
        return sp.csr_array((data, (at, column)), shape=(rows, start))


def _paper_rows(positions: Index, depth: int) -> tuple[sp.csr_array, sp.csr_array]:
    """The correction at a position is the sum over its ancestors; neighbours share all but a few."""
    rows, count = _Rows(depth), positions.size
    number = np.arange(1, count)
    for level in range(depth + 1):
        node = positions >> level
        rows.add(level, np.zeros(1, np.int64), node[:1], 1.0)
        rows.add(level, np.full(1, count), node[-1:], 1.0)
        apart = node[1:] != node[:-1]
        rows.add(level, number[apart], node[1:][apart], 1.0)
        rows.add(level, number[apart], node[:-1][apart], -1.0)
    columns = [rows.nodes(level) for level in range(depth + 1)]
    matrix = rows.matrix(count + 1, columns)
    return matrix, sp.csr_array((0, matrix.shape[1]))


def _slice_rows(positions: Index, depth: int, total_is_public: bool) -> tuple[sp.csr_array, sp.csr_array]:
    """The correction of a step is that of the leaves in it, as few nodes as cover them; a node is its two children."""
    rows, count = _Rows(depth), positions.size
    low = np.concatenate([[0], positions[:-1] + 1, [0]])
    high = np.concatenate([positions + 1, positions[-1:] + 1])
    number = np.arange(count + 1)
    for level in range(depth + 1):
        odd = (low < high) & (low & 1 == 1)
        rows.add(level, number[odd], low[odd], 1.0)
        low = low + odd
        odd = (low < high) & (high & 1 == 1)
        high = high - odd
        rows.add(level, number[odd], high[odd], 1.0)
        low, high = low >> 1, high >> 1
    columns, below = [], np.zeros(0, np.int64)
    for level in range(depth + 1):
        # every node in use has its sibling and its parent in use
        used = np.union1d(rows.nodes(level), below >> 1)
        below = used if level == depth else np.union1d(used, used ^ 1)
        columns.append(below)
    matrix = rows.matrix(count + 1, columns)
    return matrix, _sums(columns, total_is_public)


def _sums(columns: list[Index], total_is_public: bool) -> sp.csr_array:
    """parent - left - right = 0 for every parent with children in use; and the root is 0 where n is public."""
    starts = np.concatenate([[0], np.cumsum([c.size for c in columns])])
    entries, row = [], 0
    for level in range(len(columns) - 1):
        children, parents = columns[level], columns[level + 1]
        having, back = np.unique(children >> 1, return_inverse=True)
        at = row + np.arange(having.size)
        entries.append((at, starts[level + 1] + np.searchsorted(parents, having), np.ones(having.size)))
        entries.append((row + back, starts[level] + np.arange(children.size), -np.ones(children.size)))
        row += having.size
    if total_is_public:
        entries.append((np.full(1, row), np.full(1, starts[-1] - 1), np.ones(1)))
        row += 1
    rows, column, value = (np.concatenate(part) for part in zip(*entries, strict=True))
    return sp.csr_array((value, (rows, column)), shape=(row, starts[-1]))


def solve(program: Program, norm: int) -> Floats:
    """By Clarabel's interior-point method. For the 1-norm, x = u - v with u, v >= 0 and u + v minimal."""
    k = program.variables
    rows = sp.vstack([program.equality, -program.inequality])
    right = np.concatenate([np.zeros(program.equality.shape[0]), -program.bound])
    cones = [clarabel.ZeroConeT(program.equality.shape[0]), clarabel.NonnegativeConeT(program.bound.size)]
    if norm == 2:
        quadratic, linear = sp.identity(k, format="csc"), np.zeros(k)
    else:
        quadratic, linear = sp.csc_matrix((2 * k, 2 * k)), np.ones(2 * k)
        rows = sp.vstack([sp.hstack([rows, -rows]), -sp.identity(2 * k)])
        right = np.concatenate([right, np.zeros(2 * k)])
        cones.append(clarabel.NonnegativeConeT(2 * k))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    solver = clarabel.DefaultSolver(quadratic, linear, sp.csc_matrix(rows), right, cones, settings)
    solution = solver.solve()
    if solution.status != clarabel.SolverStatus.Solved:
        raise SmoothingFailed(f"the {norm}-norm problem was not solved: {solution.status}")
    x = np.array(solution.x)
    return x if norm == 2 else x[:k] - x[k:]


def solve_with_cvxopt(program: Program, norm: int) -> Floats:
    """The paper's solver: `solver="cvxopt"`, and the benchmark's reference."""
    import cvxopt

    def matrix(a: sp.csr_array) -> "cvxopt.spmatrix":
        coo = sp.coo_array(a)
        row, column = coo.coords
        return cvxopt.spmatrix(coo.data.tolist(), row.tolist(), column.tolist(), coo.shape)

    k = program.variables
    rows, right = -program.inequality, -program.bound
    equality = program.equality
    options = {"show_progress": False}
    if norm == 2:
        quadratic = cvxopt.spmatrix(1.0, range(k), range(k))
        arguments = [quadratic, cvxopt.matrix(0.0, (k, 1)), matrix(rows), cvxopt.matrix(right)]
        run = cvxopt.solvers.qp
    else:
        both = sp.hstack([rows, -rows])
        rows, equality = sp.vstack([both, -sp.identity(2 * k)]), sp.csr_array(sp.hstack([equality, -equality]))
        right = np.concatenate([right, np.zeros(2 * k)])
        arguments = [cvxopt.matrix(1.0, (2 * k, 1)), matrix(rows), cvxopt.matrix(right)]
        run = cvxopt.solvers.lp
    if equality.shape[0]:
        arguments += [matrix(equality), cvxopt.matrix(0.0, (equality.shape[0], 1))]
    solution = run(*arguments, options=options)
    if solution["status"] != "optimal":
        raise SmoothingFailed(f"cvxopt did not solve the {norm}-norm problem: {solution['status']}")
    x = np.array(solution["x"]).ravel()
    return x if norm == 2 else x[:k] - x[k:]


_SOLVERS: dict[Solver, Callable[[Program, int], Floats]] = {"clarabel": solve, "cvxopt": solve_with_cvxopt}


def _check_counts(counts: ArrayLike, n: float) -> Floats:
    curve = np.asarray(counts, np.float64)
    if curve.ndim != 1 or not curve.size or not np.isfinite(curve).all():
        raise InvalidQuery("a curve is a list of finite counts")
    if not n >= 0:
        raise InvalidQuery(f"n must be at least 0, got {n}")
    return curve
