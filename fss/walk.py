"""Walking a chunk of keys down the tree: the inner loop of every evaluation, for both schemes.

The state of a block is planes of shape (nodes, keys): `hi` and `lo`, the halves of the seeds, the top bit of `lo` being
the control bit t, and for a DCF the value collected so far. `Walker._expand` takes one level, `Walker._finish` the
terminal nodes; they are all that touches secrets, and neither branches on one: control bits act as masks.

H(s) = AES(sigma(s)) xor sigma(s), and sigma's two words are `hi` and `hi xor lo`. Both functions overwrite `lo` with
the latter, so that the first two planes of a block are sigma.
"""

import math
from abc import ABC, abstractmethod

import numpy as np

from fss import field
from fss.field import Words
from fss.keys import CONTROL, ROOT_HI, ROOT_LO, TOP_BIT, KeyBatch, Scheme
from fss.observe import Observer
from fss.plan import Block, Chosen, Index, Plan
from fss.prg import as_bytes, tree_prg

HI, LO, COLLECTED = 0, 1, 2

_63 = np.int64(63)

# What was collected, at most p + 7, takes three additions of at most 2p before it must be folded: 7p + 7 < 2^64.
_FOLD_EVERY = 3


class Sink(ABC):
    """Receives the answers of one chunk of keys: `shares[..., key]`, any uint64, for each place in `out`.

    A place of -1 is not wanted.
    """

    @abstractmethod
    def put(self, out: Index, shares: Words) -> None: ...


class _Frame:
    """Views of the walker's buffers for blocks of one size; making them anew at every step would be felt."""

    def __init__(self, buffers: list[Words], nodes: int, keys: int) -> None:
        def view(buffer: Words, *shape: int) -> Words:
            return buffer[: math.prod(shape)].reshape(shape)

        mask, fix, rows, hashed, values, leaves = buffers
        self.mask = view(mask, nodes, keys)
        self.signed_mask = self.mask.view(np.int64)
        self.fix = view(fix, 4, nodes, keys)
        self.rows, self.hashed, self.values = (view(b, nodes, keys, 2) for b in (rows, hashed, values))
        self.row_bytes, self.hashed_bytes, self.value_bytes = map(as_bytes, (self.rows, self.hashed, self.values))
        self.row_halves = _halves(self.rows)
        self.hashed_halves = _halves(self.hashed)
        self.value_halves = _halves(self.values)
        self.v = view(leaves, leaves.size // mask.size, nodes, keys)
        self.picked = view(leaves, nodes, keys, 2)
        self.scratch = view(hashed, 2, nodes, keys)


def _halves(rows: Words) -> tuple[Words, Words]:
    return rows[..., 0], rows[..., 1]


class Walker:
    """Buffers for walking chunks of at most `keys` keys down one plan. One per thread."""

    def __init__(self, plan: Plan, keys: int) -> None:
        self.plan = plan
        self._size = plan.width * keys
        self._prg = tree_prg(plan.type.binder)
        self._has_values = plan.type.scheme is Scheme.DCF
        self._planes = 3 if self._has_values else 2
        self._buffers = [np.empty(words * self._size, np.uint64) for words in (1, 4, 2, 2, 2, plan.type.leaves)]
        self._observer: Observer | None = None
        self._frames: dict[tuple[int, int], _Frame] = {}
        self._free = [self._empty() for _ in (0, 1)]

    def _empty(self) -> Words:
        return np.empty((self._planes, 2 * self._size), np.uint64)

    def walk(self, batch: KeyBatch, sink: Sink, observer: Observer | None = None) -> None:
        """Evaluate one chunk of keys on the whole plan; an observer sees every terminal node."""
        self._observer = observer
        buffer = self._take()
        state = buffer[:, np.newaxis, : len(batch)]
        state[LO] = batch.words[ROOT_LO]
        state[HI] = batch.words[ROOT_HI]
        state[COLLECTED:] = 0
        self._visit(batch, self.plan.root, state, sink, buffer)

    def _visit(self, batch: KeyBatch, block: Block, state: Words, sink: Sink, spent: Words | None) -> None:
        """Walk one block to the bottom. `spent` is the buffer that nobody else needs once this state is expanded."""
        if block.level == batch.type.depth:
            self._finish(batch, block, state, sink)
            self._give(spent)
            return
        buffer = self._take()
        below = self._expand(batch, block, state, buffer)
        self._give(spent)
        parts = block.parts()
        for part, child in parts:
            self._visit(batch, child, below[:, part], sink, buffer if child is parts[-1][1] else None)

    def _give(self, buffer: Words | None) -> None:
        if buffer is not None:
            self._free.append(buffer)

    def _take(self) -> Words:
        return self._free.pop() if self._free else self._empty()

    def _expand(self, batch: KeyBatch, block: Block, state: Words, buffer: Words) -> Words:
        """One level, from a block's nodes to those of their children that the plan wants.

        BCG+21 Fig. 3, Eval lines 3 to 9, for all keys at once.
        """
        sides = block.sides()
        count = sides[0].count + sides[1].count
        below = buffer[:, : count * len(batch)].reshape(self._planes, count, len(batch))
        f = self._sigma(state)
        # The feed-forward of H and the correction of the seeds are xored together, once for both children.
        word = batch.type.level(block.level)
        np.bitwise_and(f.mask, batch.words[word : word + self._planes, np.newaxis], out=f.fix[: self._planes])
        np.bitwise_xor(f.fix[:2], state[:2], out=f.fix[:2])
        if self._has_values:
            self._collect(f, block.level, sides, state, below)
        start = 0
        for side, chosen in enumerate(sides):
            if chosen.count:
                if side:
                    turn = np.bitwise_and(f.mask, _turn(batch, block.level), out=f.fix[3])
                    np.bitwise_xor(f.fix[0], turn, out=f.fix[0])
                self._child(f, side, chosen, below[:, start : start + chosen.count])
                start += chosen.count
        return below

    def _collect(self, f: _Frame, level: int, sides: tuple[Chosen, Chosen], state: Words, below: Words) -> None:
        """V = V + v + t V_CW, towards the wanted sides."""
        self._prg.value.encrypt(f.row_bytes, f.value_bytes)
        np.add(f.fix[2], state[COLLECTED], out=f.fix[2])
        wanted = [side for side in (0, 1) if sides[side].count]
        whole = all(sides[side].rows is None for side in wanted)
        v = below[COLLECTED].reshape(len(wanted), *f.mask.shape) if whole else f.v[: len(wanted)]
        for plane, side in zip(v, wanted, strict=True):
            np.bitwise_xor(f.value_halves[side], state[side], out=plane)
        np.bitwise_and(v, field.MASK, out=v)
        np.add(v, f.fix[2], out=v)
        if level % _FOLD_EVERY == _FOLD_EVERY - 1:
            field.fold_into(v, f.scratch[: len(wanted)])
        if not whole:
            parts = [p if sides[s].rows is None else p[sides[s].rows] for p, s in zip(v, wanted, strict=True)]
            np.concatenate(parts, out=below[COLLECTED])

    def _child(self, f: _Frame, side: int, chosen: Chosen, child: Words) -> None:
        """The corrected seeds of one side's children."""
        (first, second), fix_lo, fix_hi = f.hashed_halves, f.fix[0], f.fix[1]
        if chosen.rows is None:
            self._prg.sides[side].encrypt(f.row_bytes, f.hashed_bytes)
        else:
            picked, hashed = f.picked[: chosen.count], f.hashed[: chosen.count]
            np.take(f.rows, chosen.rows, axis=0, out=picked, mode="clip")
            self._prg.sides[side].encrypt(as_bytes(picked), as_bytes(hashed))
            first, second = _halves(hashed)
            fix_lo, fix_hi = fix_lo[chosen.rows], fix_hi[chosen.rows]
        np.bitwise_xor(first, fix_lo, out=child[LO])
        np.bitwise_xor(second, fix_hi, out=child[HI])

    def _finish(self, batch: KeyBatch, block: Block, state: Words, sink: Sink) -> None:
        """The terminal nodes: each of up to eight hashes gives the values of two leaves."""
        f, terminal = self._sigma(state), block.terminal()
        v, fix = f.v[: len(terminal.leaves)], f.fix[0]
        first, hashed = batch.type.level(batch.type.depth), -1
        for plane, leaf in zip(v, terminal.leaves, strict=True):
            pair, half = divmod(leaf, 2)
            if pair != hashed:
                self._prg.leaves[pair].encrypt(f.row_bytes, f.hashed_bytes)
                hashed = pair
            np.bitwise_xor(f.hashed_halves[half], state[half], out=plane)
            np.bitwise_and(plane, field.MASK, out=plane)
            np.bitwise_and(f.mask, batch.words[first + leaf], out=fix)
            np.add(plane, fix, out=plane)
        if self._has_values:
            np.add(v, state[COLLECTED], out=v)
        sink.put(terminal.out, v)
        if self._observer is not None:
            nodes = terminal.out[0] >> batch.type.leaf_bits
            self._observer.see(nodes, f.mask, self._check_hashes(f, state), v)

    def _check_hashes(self, f: _Frame, state: Words) -> Words:
        """h_0..h_3 of terminal nodes whose sigma is in the state."""
        for number, aes in enumerate(self._prg.check):
            aes.encrypt(f.row_bytes, f.hashed_bytes)
            for half in (0, 1):
                np.bitwise_xor(f.hashed_halves[half], state[half], out=f.fix[2 * number + half])
        return np.bitwise_and(f.fix, field.MASK, out=f.fix)

    def _sigma(self, state: Words) -> _Frame:
        """The control bits as masks, and sigma of the seeds, which also replaces `lo` in the state."""
        f = self._frame(*state.shape[1:])
        np.right_shift(state[LO].view(np.int64), _63, out=f.signed_mask)
        np.bitwise_xor(state[LO], state[HI], out=state[LO])
        f.row_halves[0][...] = state[HI]
        f.row_halves[1][...] = state[LO]
        return f

    def _frame(self, nodes: int, keys: int) -> _Frame:
        frame = self._frames.get((nodes, keys))
        if frame is None:
            frame = self._frames[nodes, keys] = _Frame(self._buffers, nodes, keys)
        return frame


def _turn(batch: KeyBatch, level: int) -> Words:
    """Where the right child's control correction differs from the left one's, which is in the seed correction."""
    turn: Words = (batch.words[CONTROL] << np.uint64(63 - level)) & TOP_BIT
    return turn
