"""The noise of several independent releases, added up: its second moments are the sums of theirs, exactly.

Of a slice-tree the deviations of inner nodes are uncorrelated in each release, hence in the sum, with the sum of their
variances; of a paper-tree the nodes' variables are. Nothing is drawn from it but by simulation, part by part.
"""

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from fss_ecdf.campaign.noise.flat import Cells, Flat
from fss_ecdf.campaign.noise.mechanism import Mechanism
from fss_ecdf.campaign.noise.paper_tree import PaperTree
from fss_ecdf.campaign.noise.slice_tree import SliceTree
from fss_ecdf.campaign.noise.tables import Floats

Parts = Sequence[tuple[Mechanism, int]]


class SummedSliceTree(SliceTree):
    def __init__(self, parts: Parts) -> None:
        super().__init__(parts[0][0].depth, max(part.epsilon for part, _ in parts), parts[0][0].instances)
        self._parts = tuple(parts)

    @property
    def parts(self) -> tuple[tuple[Mechanism, int], ...]:
        return self._parts

    @cached_property
    def level_variances(self) -> Floats:
        each = [(part.level_variances, times) for part, times in self._parts if isinstance(part, SliceTree)]
        return np.asarray(sum(times * variances for variances, times in each))

    @cached_property
    def node_variances(self) -> Floats:
        each = [(part.node_variances, times) for part, times in self._parts if isinstance(part, SliceTree)]
        return np.asarray(sum(times * variances for variances, times in each))


class SummedPaperTree(PaperTree):
    def __init__(self, parts: Parts) -> None:
        super().__init__(parts[0][0].depth, max(part.epsilon for part, _ in parts), parts[0][0].instances)
        self._parts = tuple(parts)
        self.name = parts[0][0].name

    @property
    def parts(self) -> tuple[tuple[Mechanism, int], ...]:
        return self._parts

    @property
    def node_variance(self) -> float:
        return sum(times * part.node_variance for part, times in self._parts if isinstance(part, PaperTree))


class SummedFlat(Flat):
    def __init__(self, parts: Parts, cells: Cells) -> None:
        about = parts[0][0].depth, max(part.epsilon for part, _ in parts), parts[0][0].instances
        super().__init__(*about, size=cells.size, strata=cells.strata)
        self._parts = tuple(parts)

    @property
    def parts(self) -> tuple[tuple[Mechanism, int], ...]:
        return self._parts

    @cached_property
    def cell_variance(self) -> float:
        return sum(times * part.cell_variance for part, times in self._parts if isinstance(part, Flat))
