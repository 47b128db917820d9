"""The area under a part of the ROC curve, and its slopes."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def partial_area(negative: Floats, positive: Floats, most: float) -> tuple[float, Floats, Floats]:
    """The area up to a false positive rate, from cells, and its derivatives by each negative and positive cell.

    Cells run from the highest score down. A cell is a straight piece of the curve, from the rates above it to those
    with it; the piece that crosses the limit counts up to there.
    """
    q, p = negative[::-1] / negative.sum(), positive[::-1] / positive.sum()
    false, true = np.cumsum(q) - q, np.cumsum(p) - p
    part = np.where(q > 0, np.clip((most - false) / np.where(q > 0, q, 1.0), 0.0, 1.0), (false < most).astype(float))
    width = part * q
    area = float(width @ (true + part * p / 2))
    # One more positive raises the curve over all cells below it; one more negative moves these to the right.
    below = width.sum() - np.cumsum(width)
    by_positive = below + width * part / 2 - area
    rise = part * p
    moved = rise.sum() - np.cumsum(rise) + rise * part / 2
    by_negative = float(p @ (part * false + part**2 * q / 2)) - moved
    return area, (by_negative / negative.sum())[::-1], (by_positive / positive.sum())[::-1]
