"""The reference back end: keys made by the scheme's own `fill`, evaluation by walking a plan, all in numpy.

Sums never hold more than one chunk of keys times one block of points, so their memory does not grow with keys times
points.
"""

from collections.abc import Callable

import numpy as np

from fss import field
from fss.challenge import Weights
from fss.field import Words
from fss.keys import KeyBatch, KeyType
from fss.observe import Observer
from fss.path import Ends, Fill, Path
from fss.plan import Index, Plan, Points, points_plan, whole_domain
from fss.prg import stream
from fss.proof import Prover
from fss.walk import Sink, Walker

# Rows (nodes x keys) that are expanded together, and in how many nodes. With fewer rows numpy's calls are felt, and
# threads wait for each other between calls; with more the buffers leave the cache.
ROWS = 65536
WIDTH = 32


class _Each(Sink):
    """Keep every key's share: out[point, key]."""

    def __init__(self, shares: Words) -> None:
        self._shares = shares

    def put(self, out: Index, shares: Words) -> None:
        wanted = out >= 0
        self._shares[out[wanted]] = field.canonical(shares[wanted])


class _Sum(Sink):
    """Keep only the sum over the keys: out[point]."""

    def __init__(self, answers: int, rows: int) -> None:
        self._halves = np.zeros((2, answers), np.uint64)
        self._scratch = np.empty(rows, np.uint64)

    def put(self, out: Index, shares: Words) -> None:
        wanted = out >= 0
        # Large temporaries would be mapped and unmapped by every call, and that stops the other threads.
        part = self._scratch[: shares.size].reshape(shares.shape)
        for half, (cut, by) in zip(self._halves, field.HALVES, strict=True):
            half[out[wanted]] += np.add.reduce(cut(shares, by, out=part), axis=-1)[wanted]

    def sums(self) -> Words:
        return field.join(*self._halves)


class NumpyEvaluation:
    def __init__(self, plan: Plan, chunk: int) -> None:
        self._walker = Walker(plan, chunk)
        self._sum = _Sum(plan.answers, plan.width * chunk * plan.type.leaves)

    def each(self, keys: KeyBatch, shares: Words) -> None:
        self._walker.walk(keys, _Each(shares))

    def add(self, keys: KeyBatch) -> None:
        self._walker.walk(keys, self._sum)

    def observe(self, keys: KeyBatch, weights: Weights, seen: Words) -> None:
        observer = Observer(keys.type, weights, len(keys))
        self._walker.walk(keys, self._sum, observer)
        observer.write(seen)

    def sums(self) -> Words:
        return self._sum.sums()


class NumpyBackend:
    name = "numpy"

    def gen(
        self, type: KeyType, fill: Fill, alphas: Words, rand: Words, beta: Words, words: tuple[Words, Words]
    ) -> Ends:
        path = Path(type, alphas, rand, words)
        fill(path, beta)
        return path.ends()

    def prove(self, type: KeyType, alphas: Words, ends: Ends, rand: Words, words: tuple[Words, Words]) -> None:
        Prover(type).prove(alphas, ends, rand, words)

    def evaluation(self, type: KeyType, points: Points | None, keys: int) -> tuple[int, Callable[[], NumpyEvaluation]]:
        chunk, width = _shape(keys, 1 << type.bits if points is None else points.size)
        plan = whole_domain(type, width) if points is None else points_plan(type, points, width)
        return chunk, lambda: NumpyEvaluation(plan, chunk)

    def table_expand(self, key: bytes, seed: bytes, first: int, out: Words) -> None:
        out[...] = field.canonical(np.frombuffer(stream(key, seed, 8 * out.size, first), np.uint64) & field.MASK)

    def table_dot(self, words: Words, weights: Words) -> tuple[int, int]:
        return int(field.total(field.mul(words, weights))), int(field.total(words))

    def table_add(self, words: Words, factor: int, sums: Words) -> None:
        sums[...] = field.add(sums, field.mul(words, np.array(factor, np.uint64)))


def _shape(keys: int, answers: int) -> tuple[int, int]:
    """(keys in a chunk, nodes in a block) for this many keys and answers."""
    nodes = min(WIDTH, 1 << (answers - 1).bit_length())
    chunk = max(1, min(keys, ROWS // nodes))
    width = max(nodes, 1 << (ROWS // chunk).bit_length() - 1)
    return chunk, width
