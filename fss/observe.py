"""What the check of a key needs of its evaluation over the whole domain: a few elements a key, besides the sum.

    row HASHED     sum over nodes k and i of weight_i(k) h_i(s); a DCF's h_0 has the step into the node added
    row CONTROLS   sum over the nodes whose control bit is set of weight(k)
    row STEPS + i  sum over the nodes of the step at their leaf i

A step is what a DCF's share gains from one point to the next, and a DPF's share at a point; shares are not negated for
server 1. All canonical. This is numpy's part, for blocks of nodes in any order; the native kernel goes from left to
right.
"""

import numpy as np

from fss import field
from fss.challenge import Weights
from fss.field import Weighed, Words
from fss.keys import KeyType, Scheme
from fss.plan import Index

HASHED, CONTROLS, STEPS = range(3)


def observed_rows(type: KeyType) -> int:
    return STEPS + type.leaves


class Observer:
    """Sees the terminal nodes of one chunk of keys, block by block."""

    def __init__(self, type: KeyType, weights: Weights, keys: int) -> None:
        self._type, self._keys = type, keys
        self._has_steps = type.scheme is Scheme.DCF
        # The step into node k is F(first leaf of k) - F(last leaf of k - 1): a last leaf counts against the next node.
        next_weight = np.append(weights.hashes[0, 1:], np.uint64(0))
        self._hash_limbs = [field.limbs_of(w) for w in weights.hashes]
        self._last_limbs = field.limbs_of(field.neg(next_weight))
        self._control_limbs = field.limbs_of(weights.control)
        self._hashed, self._controls = Weighed(keys), Weighed(keys)
        self._leaves = [Weighed(keys, limbs=1) for _ in range(type.leaves)]
        self._last = np.zeros(keys, np.uint64)

    def see(self, nodes: Index, mask: Words, hashes: Words, leaves: Words) -> None:
        """Some nodes: their control bits as masks, h_0..h_3, and the shares at their leaves; planes (nodes, keys)."""
        for start in range(0, len(nodes), field.ROWS):
            part = slice(start, start + field.ROWS)
            self._see(nodes[part], mask[part], hashes[:, part], leaves[:, part])

    def _see(self, nodes: Index, mask: Words, hashes: Words, leaves: Words) -> None:
        self._controls.add(self._control_limbs[:, nodes], field.halves_of(mask >> np.uint64(63)))
        for limbs, plane in zip(self._hash_limbs, hashes, strict=True):
            self._hashed.add(limbs[:, nodes], field.halves_of(plane))
        ones = np.ones((1, len(nodes)))
        for leaf, plane in enumerate(leaves):
            halves = field.halves_of(plane)
            self._leaves[leaf].add(ones, halves)
            if self._has_steps and leaf == 0:
                self._hashed.add(self._hash_limbs[0][:, nodes], halves)
            if self._has_steps and leaf == len(leaves) - 1:
                self._hashed.add(self._last_limbs[:, nodes], halves)
        if self._has_steps:
            at = np.flatnonzero(nodes == (1 << self._type.depth) - 1)
            self._last += leaves[-1, at].sum(axis=0, dtype=np.uint64)

    def write(self, out: Words) -> None:
        out[HASHED], out[CONTROLS] = self._hashed.total(), self._controls.total()
        at = np.stack([leaf.total() for leaf in self._leaves])
        if self._has_steps:
            # The step into a node is from the last leaf of the one before; the first node's is from 0.
            at = field.sub(at, np.concatenate([field.sub(at[-1:], field.canonical(self._last[np.newaxis])), at[:-1]]))
        out[STEPS:] = at
