"""How a first draft of the check was broken, and what a collision costs: each attack on a variant without one detail.

The variant (tests/oracle/check.py) accepts; the protocol, in the oracle and in the library, refuses.
"""

from collections import Counter

import numpy as np
import pytest

from fss.proof import RAND_BYTES, check_hashes
from tests.fss.forge import SEEDS, Forger, Uploads
from tests.fss.helpers import BINDER
from tests.oracle.check import CheckOracle
from tests.oracle.fss import LEAVES, Key, Node, Oracle, P, control, hash_block, with_control, words, xor

A_BILLION = 10**9


def test_words_that_both_keys_share_must_be_compared() -> None:
    """Leaf words of server 1 are smaller by a: every node where both control bits are set adds a to the curve."""
    forger = Forger("dpf")
    oracle = forger.oracle
    pair = forger.keys(24)
    node = forger.special(pair)[0]
    pair[1].leaf_cw[0] = (pair[1].leaf_cw[0] - A_BILLION) % P
    g = control(oracle.state(pair[0], node)) - control(oracle.state(pair[1], node))
    total = [sum(column) % P for column in zip(*(oracle.in_total(key) for key in pair), strict=True)]
    for key in pair:  # at the special node, take away again what the others add
        key.leaf_cw[0] = (key.leaf_cw[0] - g * total[0]) % P
    spread = [sum(column) % P for column in zip(*(oracle.shares(key) for key in pair), strict=True)]
    assert A_BILLION in spread
    proofs = forger.best(pair, node)
    for number in range(5):
        drawn = oracle.challenge(number.to_bytes(32, "big"), *SEEDS)
        assert CheckOracle("dpf", 6, BINDER, common_words=False).accepts(pair, proofs, drawn)
        assert not oracle.accepts(pair, proofs, drawn)
    uploads = Uploads("dpf")
    uploads.add(pair, proofs)
    assert not uploads.accepted()[0]


def test_the_control_bit_must_be_hashed() -> None:
    """Equal seeds everywhere, control bits that differ everywhere, corrections of 0: leaf words count at every node."""
    draft = CheckOracle("dpf", 6, BINDER, control_in_hash=False)
    for attempt in range(100):
        seed = np.random.default_rng(attempt).bytes(16)
        keys = [Key("dpf", 6, b, with_control(seed, b), [bytes(16)] * 2, [1, 1], [1, 1], [], [0] * 16) for b in (0, 1)]
        pair = keys[0], keys[1]
        signs = [control(draft.state(pair[0], k)) - control(draft.state(pair[1], k)) for k in range(4)]
        if sum(signs):
            break
    assert all(signs)
    for key in pair:
        key.leaf_cw = [pow(sum(signs), -1, P), *[0] * 15]
    shared = [sum(column) % P for column in zip(*(draft.shares(key) for key in pair), strict=True)]
    assert sum(x != 0 for x in shared) == 4
    drawn = draft.challenge(bytes(32), *SEEDS)
    proofs = draft.prove(pair, 0, np.random.default_rng(1).bytes(RAND_BYTES))
    assert proofs[0][:4] == [0, 0, 0, 0]
    assert draft.accepts(pair, proofs, drawn)
    oracle = CheckOracle("dpf", 6, BINDER)
    assert not oracle.accepts(pair, proofs, drawn)
    uploads = Uploads("dpf")
    uploads.add(pair, proofs)
    assert not uploads.accepted()[0]


TOY_BYTES = 2


class ToyTree(Oracle):
    """A tree whose seeds have 16 bits, so that a collision of 128 bits can be had."""

    def node(self, seed: bytes) -> Node:
        left, right, v_left, v_right = super().node(seed)
        return Node(self.short(left), self.short(right), v_left, v_right)

    @staticmethod
    def short(seed: bytes) -> bytes:
        return with_control(seed[:TOY_BYTES].ljust(16, b"\0"), control(seed))


def swapped_states(tree: ToyTree) -> tuple[Key, Key]:
    """A root above two nodes whose states are the same, the other way round: H_left xor H_right collides."""
    seen: list[dict[bytes, bytes]] = [{}, {}]
    for number in range(1 << 16):
        for b in (0, 1):
            root = with_control(number.to_bytes(2, "little").ljust(16, b"\0"), b)
            left, right, *_ = tree.node(root)
            if control(left) == control(right):
                continue
            seen[b][with_control(xor(left, right), 0)] = root
        common = seen[0].keys() & seen[1].keys()
        if common:
            roots = [seen[b][next(iter(common))] for b in (0, 1)]
            (l0, r0, *_), (l1, r1, *_) = (tree.node(root) for root in roots)
            cw = with_control(xor(r0, l1), 0)
            t_left, t_right = control(r0) ^ control(l1), control(l0) ^ control(r1)
            keys = [Key("dpf", 5, b, roots[b], [cw], [t_left], [t_right], [], [7] * 16) for b in (0, 1)]
            return keys[0], keys[1]
    raise AssertionError("no collision")


@pytest.mark.parametrize(
    ("numbered", "totals", "accepted"),
    [(False, False, True), (False, True, False), (True, False, False), (True, True, False)],
)
def test_nodes_must_be_numbered(numbered: bool, totals: bool, accepted: bool) -> None:
    """Two nodes with swapped states satisfy the same corrections. Without z only the total refuses them."""
    oracle = CheckOracle("dpf", 5, BINDER, numbered=numbered, totals=totals)
    oracle.tree = ToyTree("dpf", 5, BINDER)
    pair = swapped_states(oracle.tree)
    states = [[oracle.state(key, k) for key in pair] for k in (0, 1)]
    assert states[0] == states[1][::-1]
    assert control(states[0][0]) != control(states[0][1])
    shared = [sum(column) % P for column in zip(*(oracle.shares(key) for key in pair), strict=True)]
    assert any(shared)
    assert oracle.in_total(pair[0]) == [-x % P for x in oracle.in_total(pair[1])]
    proofs = oracle.prove(pair, 0, np.random.default_rng(1).bytes(RAND_BYTES))
    assert oracle.accepts(pair, proofs, oracle.challenge(bytes(32), *SEEDS)) is accepted


def cost_of_a_collision(bits: int, seed: int) -> int:
    """Hashes until two states of equal control bits agree in this many bits of h_1, h_2, h_3."""
    rng = np.random.default_rng([bits, seed])
    n = 1 << (bits // 2 + 3)
    lo, hi = (rng.integers(0, 1 << 63, n, dtype=np.uint64) for _ in (0, 1))
    _, *h = check_hashes(BINDER, lo, hi)
    each = [bits // 3 + (i < bits % 3) for i in range(3)]
    short = np.zeros(n, np.uint64)
    for plane, b in zip(h, each, strict=True):
        short = (short << np.uint64(b)) | (plane & np.uint64((1 << b) - 1))
    seen: set[int] = set()
    for number, value in enumerate(short.tolist()):
        if value in seen:
            return number
        seen.add(value)
    raise AssertionError("no collision")


def test_the_cost_of_a_collision_is_that_of_a_birthday() -> None:
    """The only way left: one child special, the other of equal control bits but different seeds. At 15 to 30 bits.

    The mean over 64 searches is 1.2533 2^(b/2) with a relative standard error of 0.065; 5 of them, for four sizes: the
    chance of a false alarm is 2.3e-6. Every size was seen to grow; 183 bits make 2^91.8.
    """
    for bits in (15, 20, 25, 30):
        mean = np.mean([cost_of_a_collision(bits, seed) for seed in range(64)])
        assert abs(mean / (1.2533 * 2 ** (bits / 2)) - 1) < 5 * 0.5227 / 8


def test_the_hashes_of_a_check_are_not_those_of_the_tree() -> None:
    lo, hi = np.arange(100, dtype=np.uint64), np.zeros(100, np.uint64)
    tree = Oracle("dcf", 5, BINDER)
    elements = Counter(int(x) for plane in check_hashes(BINDER, lo, hi) for x in plane)
    for x in range(100):
        seed = x.to_bytes(16, "little")
        elements.update(v & P for use in LEAVES for v in tree_words(tree, use, seed))
    assert max(elements.values()) == 1


def tree_words(tree: Oracle, use: str, seed: bytes) -> list[int]:
    return words(hash_block(tree.keys[use], seed))
