"""Keys that dishonest parties may send, with proofs as good as they can be made: all of them must be refused.

`tests/fss` gives them to the check itself, `tests/servers` to two live servers.
"""

from collections.abc import Callable

import numpy as np

from fss.keys import KeyType, Scheme
from tests.fss.forge import Forger, Uploads, changed
from tests.oracle.fss import P

ALPHAS = [0, 15, 16, 29, 63]


def payloads(forger: Forger) -> Uploads:
    """A function with another step than 1."""
    uploads = forger.uploads()
    for beta in (0, 2, 500, -1, 10**9, P // 2 + 1):
        for alpha in ALPHAS:
            pair = forger.keys(alpha, beta)
            uploads.add(pair, forger.best(pair))
    return uploads


def inside(forger: Forger) -> Uploads:
    """Steps (or values) that add up to 1 but are not one 1: only the proof's polynomial notices."""
    uploads = forger.uploads()
    for alpha in ALPHAS:
        for delta in ([5, -5], [2, -2], [0, 0, 3, -3], [P // 2 + 1, P // 2]):
            pair = forger.keys(alpha)
            for key in pair:
                for leaf, d in enumerate(delta):
                    key.leaf_cw[leaf] = (key.leaf_cw[leaf] + d) % P
            uploads.add(pair, forger.best(pair))
    return uploads


def bumps(forger: Forger) -> Uploads:
    """Two steps, in one node or in two."""
    uploads = forger.uploads()
    for delta in ([1, 1], [1, -1, 1], [1, 0, 0, -1]):
        pair = forger.keys(24)
        for key in pair:
            for leaf, d in enumerate(delta):
                key.leaf_cw[leaf] = (key.leaf_cw[leaf] + d) % P
        uploads.add(pair, forger.best(pair))
    # Two nodes whose control bits differ: corrections fit at one of them only.
    for level in (0, 1):
        for node in range(4):
            pair = forger.keys(24)
            for key in pair:
                key.t_left_cw[level] ^= 1
            if len(forger.special(pair)) > 1:
                uploads.add(pair, forger.best(pair, node))
    return uploads


def _change_of(type: KeyType, word: int, rng: np.random.Generator) -> int:
    """What to xor to this word so that it stays well-formed."""
    if word == 0:
        return int(rng.integers(1, 1 << 63))
    if word == 2:
        return int(rng.integers(1, 1 << type.depth))
    return int(rng.integers(1, 1 << 16 if word in type.value_words() else 1 << 63))


def words(forger: Forger) -> Uploads:
    """With a proof for the keys as they are, at whichever node, and with the proof of the unchanged keys."""
    uploads = forger.uploads()
    type = KeyType(Scheme[forger.scheme.upper()], forger.bits, 0, forger.binder)
    for word, at in ((word, at) for at in ((0, 1), (0,), (1,)) for word in range(type.words)):
        by = _change_of(type, word, forger.rng)
        pair = forger.keys(int(forger.rng.integers(64)))
        words = [
            changed(forger.words(key), word, lambda w, by=by: (w ^ by) % P if by < 1 << 16 else w ^ by)  # type: ignore[misc]
            if b in at
            else forger.words(key)
            for b, key in enumerate(pair)
        ]
        other = forger.key(0, words[0]), forger.key(1, words[1])
        uploads.add(other, forger.best(pair))
        for node in range(4):
            uploads.add(other, forger.best(other, node))
    return uploads


def proofs(forger: Forger) -> Uploads:
    """Every word of a proof changed in turn, at either server and at both."""
    uploads = forger.uploads()
    for word in range(22):
        for at in ((0,), (1,), (0, 1)):
            pair = forger.keys(11)
            proofs = forger.best(pair)
            for b in at:
                proofs[b][word] = (proofs[b][word] + 12345) % P
            uploads.add(pair, proofs)
    # w changed at both servers in opposite directions is the same proof: left out, since it is honest.
    return uploads


def compensated(forger: Forger) -> Uploads:
    """Two value words of one server changed by opposite amounts, its corrections moved so that one node fits."""
    uploads = forger.uploads()
    type = KeyType(Scheme[forger.scheme.upper()], forger.bits, 0, forger.binder)
    for first in type.value_words():
        for second in forger.rng.choice([w for w in type.value_words() if w != first], 3, replace=False):
            pair = forger.keys(9)
            words = forger.words(pair[1])
            words = changed(changed(words, first, lambda w: (w + 77) % P), second, lambda w: (w - 77) % P)
            other = pair[0], forger.key(1, words)
            fitting = forger.best(other)
            uploads.add(other, fitting)
            old = forger.best(pair)
            uploads.add(other, (old[0][:4] + fitting[0][4:], fitting[1]))
    return uploads


def noise(forger: Forger) -> Uploads:
    """Keys that fit nothing."""
    uploads = forger.uploads()
    for _ in range(40):
        pair = forger.keys(5), forger.keys(6)
        uploads.add((pair[0][0], pair[1][1]), forger.best((pair[0][0], pair[1][1])))
        words = [int(forger.rng.integers(1, 1 << 60)) for _ in forger.words(pair[0][0])]
        words[2] &= 3
        keys = forger.key(0, words), forger.key(1, changed(words, 0, lambda w: w | 1 << 63))
        uploads.add(keys, forger.best(keys))
    return uploads


def others(forger: Forger) -> Uploads:
    """Proofs that were made for another key, or for other corrections."""
    uploads = forger.uploads()
    mine, same, other = forger.keys(24), forger.keys(24), forger.keys(13)
    proof = forger.best(mine)
    uploads.add(same, proof)  # replayed for another key of the same value
    uploads.add(other, proof)  # for another value
    for order in ((1, 0, 2, 3), (0, 2, 1, 3), (3, 1, 2, 0)):
        swapped = [[proof[b][i] for i in order] + proof[b][4:] for b in (0, 1)]
        uploads.add(mine, (swapped[0], swapped[1]))
    again = forger.best(mine)
    uploads.add(mine, (proof[0], again[1]))  # shares of two proofs
    return uploads


ATTACKS: dict[str, Callable[[Forger], Uploads]] = {
    "another payload": payloads,
    "values inside a terminal node": inside,
    "two bumps": bumps,
    "every word changed in turn": words,
    "every word of a proof changed in turn": proofs,
    "a change compensated elsewhere": compensated,
    "random words": noise,
    "proofs of others": others,
}
