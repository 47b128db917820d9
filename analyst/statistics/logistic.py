"""Regressions over cells of scores: logistic on logit(score), and local linear for a smooth calibration curve."""

import numpy as np
from numpy.typing import NDArray

from fss_ecdf.campaign.errors import TooNoisy

Floats = NDArray[np.float64]
Slopes = tuple[Floats, Floats]

_STEPS = 50


def logit(scores: Floats) -> Floats:
    """Scores of 0 and 1 are taken half a step inside."""
    step = float(np.diff(scores).min()) / 2
    inside = np.clip(scores, step, 1 - step)
    return np.asarray(np.log(inside / (1 - inside)))


def fit(scores: Floats, negative: Floats, positive: Floats, *, slope: bool) -> tuple[Floats, Slopes]:
    """Coefficients of a logistic regression of the outcome, and their slopes by negative and positive cells.

    With `slope`, an intercept and a slope of logit(score); without, an intercept alone beside logit(score) itself.
    Cells may be raw and negative: the equations that are solved are linear in them, so noise does not flatten the
    slope. Where it leaves no solution, the problem is `too-noisy`.
    """
    x, offset = _design(scores, slope)
    first, second = negative, positive
    beta = np.array([0.0, 1.0]) if slope else np.zeros(1)
    for _ in range(_STEPS):
        mean = 1 / (1 + np.exp(-np.clip(x @ beta + offset, -30, 30)))
        gradient = x.T @ (second * (1 - mean) - first * mean)
        information = (x.T * ((first + second) * mean * (1 - mean))) @ x
        if np.linalg.eigvalsh(information)[0] <= 1e-9 * max(float(np.abs(information).max()), 1e-300):
            raise TooNoisy("the scores are too much alike, or the noise too large, for a calibration slope")
        step = np.linalg.solve(information, gradient)
        beta = beta + np.clip(step, -1, 1)
        if np.abs(step).max() < 1e-10:
            break
    else:
        raise TooNoisy("the noise is too large for a calibration slope: the regression has no solution")
    inverse = np.linalg.inv(information)
    return beta, (inverse @ (x * -mean[:, np.newaxis]).T, inverse @ (x * (1 - mean)[:, np.newaxis]).T)


def _design(scores: Floats, slope: bool) -> tuple[Floats, Floats]:
    z = logit(scores)
    if slope:
        return np.column_stack([np.ones_like(z), z]), np.zeros_like(z)
    return np.ones((z.size, 1)), z


def local_rates(scores: Floats, negative: Floats, positive: Floats, at: Floats, width: float) -> tuple[Floats, Slopes]:
    """The share of positives near each score by a local line with a Gaussian kernel, and its slopes: (at, cells)."""
    first, second = np.maximum(negative, 0.0), np.maximum(positive, 0.0)
    values, by_first, by_second = [], [], []
    for score in at:
        z = np.column_stack([np.ones_like(scores), scores - score])
        kernel = np.exp(-0.5 * ((scores - score) / width) ** 2)
        matrix = (z.T * (kernel * (first + second))) @ z
        beta = np.linalg.solve(matrix, z.T @ (kernel * second))
        lead = np.linalg.solve(matrix, np.array([1.0, 0.0])) @ z.T * kernel
        values.append(beta[0])
        by_first.append(-lead * (z @ beta))
        by_second.append(lead * (1 - z @ beta))
    return np.array(values), (np.array(by_first), np.array(by_second))
