"""What would be sent, as bars of text: a party looks before it agrees. Nothing of it leaves the machine."""

import numpy as np

from fss_ecdf.campaign.campaign import Campaign, Positions

BINS = 20
WIDTH = 50


def histogram(campaign: Campaign, placed: Positions) -> str:
    """One for each stratum that has values."""
    strata, index = campaign.strata_and_indices(placed.positions)
    parts = []
    for number, name in enumerate(campaign.strata):
        if (mine := index[strata == number]).size:
            title = [f"{name}: {mine.size} values"] if len(campaign.strata) > 1 else []
            parts.append("\n".join([*title, *_bars(campaign, mine)]))
    return "\n\n".join(parts)


def _bars(campaign: Campaign, index: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> list[str]:
    variable = campaign.variable
    if variable.is_categorical:
        ends, labels = np.arange(variable.size), list(variable.cells)
    else:
        grid = variable.grid
        ends = np.unique(np.linspace(-1, grid.size - 1, min(BINS, grid.size) + 1).round().astype(np.int64))[1:]
        labels = [*(f"up to {grid.label(int(end))}" for end in ends), *variable.cells]
        ends = np.append(ends, np.arange(grid.size, variable.size))
    counts = np.bincount(np.searchsorted(ends, index), minlength=ends.size)
    room = max(map(len, labels))
    most = counts.max()
    lines = []
    for label, count in zip(labels, counts, strict=True):
        bar = "#" * max(int(count > 0), round(WIDTH * count / most))
        lines.append(f"{label:>{room}}  {bar:<{WIDTH}}  {count}".rstrip())
    return [f"{variable.label:>{room}}", *lines]
