"""Dishonest parties against the check: every forgery is refused, and honest keys beside it are accepted.

A forged key comes with a proof that is as good as its maker can make it (tests/fss/forge.py) and goes through the
servers' own decoders. A single refusal is wrong with probability 2^-56 (docs/security.md); seeds are fixed.
"""

import numpy as np
import pytest

from fss import field
from fss.check import F, Messages, Q, accept, sum_and_messages
from fss.keys import KeyType, Scheme
from tests.fss.forge import BITS, Forger, Uploads, challenge, changed
from tests.fss.helpers import BINDER
from tests.oracle.check import divided, through, times, zeros_at
from tests.oracle.check import value as value_at
from tests.oracle.fss import P

both_schemes = pytest.mark.parametrize("scheme", ["dcf", "dpf"])
ALPHAS = [0, 7, 8, 13, 31]


def refused(uploads: Uploads, forger: Forger) -> None:
    """All of these are refused, and an honest key at either end is not."""
    honest = [forger.keys(alpha) for alpha in (3, 30)]
    mixed = Uploads(uploads.scheme, uploads.bits)
    mixed.add(honest[0], forger.best(honest[0]))
    for pair, proofs in zip(uploads.keys, uploads.proofs, strict=True):
        mixed.add(pair, proofs)
    mixed.add(honest[1], forger.best(honest[1]))
    assert len(uploads.keys) > 0
    assert mixed.accepted().tolist() == [True] + [False] * len(uploads.keys) + [True]


@both_schemes
@pytest.mark.parametrize("beta", [0, 2, 500, -1, 10**9, P // 2 + 1])
def test_payloads(scheme: str, beta: int) -> None:
    forger, uploads = Forger(scheme), Uploads(scheme)
    for alpha in ALPHAS:
        pair = forger.keys(alpha, beta)
        uploads.add(pair, forger.best(pair))
    refused(uploads, forger)


@both_schemes
def test_values_inside_a_terminal_node(scheme: str) -> None:
    """Steps (or values) that add up to 1 but are not one 1: only the proof's polynomial notices."""
    forger, uploads = Forger(scheme), Uploads(scheme)
    for alpha in ALPHAS:
        for delta in ([5, -5], [2, -2], [0, 0, 3, -3], [P // 2 + 1, P // 2]):
            pair = forger.keys(alpha)
            for key in pair:
                for leaf, d in enumerate(delta):
                    key.leaf_cw[leaf] = (key.leaf_cw[leaf] + d) % P
            uploads.add(pair, forger.best(pair))
    refused(uploads, forger)


@both_schemes
def test_two_bumps(scheme: str) -> None:
    forger, uploads = Forger(scheme), Uploads(scheme)
    for delta in ([1, 1], [1, -1, 1], [1, 0, 0, -1]):
        pair = forger.keys(12)
        for key in pair:
            for leaf, d in enumerate(delta):
                key.leaf_cw[leaf] = (key.leaf_cw[leaf] + d) % P
        uploads.add(pair, forger.best(pair))
    # Two nodes whose control bits differ: corrections fit at one of them only.
    for level in (0, 1):
        for node in range(4):
            pair = forger.keys(12)
            for key in pair:
                key.t_left_cw[level] ^= 1
            if len(forger.special(pair)) > 1:
                uploads.add(pair, forger.best(pair, node))
    refused(uploads, forger)


def change_of(type: KeyType, word: int, rng: np.random.Generator) -> int:
    """What to xor to this word so that it stays well-formed."""
    if word == 0:
        return int(rng.integers(1, 1 << 63))
    if word == 2:
        return int(rng.integers(1, 1 << type.depth))
    return int(rng.integers(1, 1 << 16 if word in type.value_words() else 1 << 63))


@both_schemes
@pytest.mark.parametrize("where", ["both", "server 0", "server 1"])
def test_every_word_changed_in_turn(scheme: str, where: str) -> None:
    """With a proof for the keys as they are, at whichever node, and with the proof of the unchanged keys."""
    forger, uploads = Forger(scheme), Uploads(scheme)
    type = KeyType(Scheme[scheme.upper()], BITS, 0, BINDER)
    for word in range(type.words):
        by = change_of(type, word, forger.rng)
        pair = forger.keys(int(forger.rng.integers(32)))
        at = {"both": (0, 1), "server 0": (0,), "server 1": (1,)}[where]
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
    refused(uploads, forger)


@both_schemes
def test_every_word_of_a_proof_changed_in_turn(scheme: str) -> None:
    forger, uploads = Forger(scheme), Uploads(scheme)
    for word in range(14):
        for at in ((0,), (1,), (0, 1)):
            pair = forger.keys(11)
            proofs = forger.best(pair)
            for b in at:
                proofs[b][word] = (proofs[b][word] + 12345) % P
            uploads.add(pair, proofs)
    # w changed at both servers in opposite directions is the same proof: left out, since it is honest.
    refused(uploads, forger)


@both_schemes
def test_a_change_at_one_server_compensated_elsewhere(scheme: str) -> None:
    """Two value words of one server changed by opposite amounts, its corrections moved so that one node fits."""
    forger, uploads = Forger(scheme), Uploads(scheme)
    type = KeyType(Scheme[scheme.upper()], BITS, 0, BINDER)
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
    refused(uploads, forger)


@both_schemes
def test_random_words(scheme: str) -> None:
    forger, uploads = Forger(scheme), Uploads(scheme)
    for _ in range(40):
        pair = forger.keys(5), forger.keys(6)
        uploads.add((pair[0][0], pair[1][1]), forger.best((pair[0][0], pair[1][1])))
        words = [int(forger.rng.integers(1, 1 << 60)) for _ in forger.words(pair[0][0])]
        words[2] &= 3
        keys = forger.key(0, words), forger.key(1, changed(words, 0, lambda w: w | 1 << 63))
        uploads.add(keys, forger.best(keys))
    refused(uploads, forger)


@both_schemes
def test_proofs_of_others(scheme: str) -> None:
    forger, uploads = Forger(scheme), Uploads(scheme)
    mine, same, other = forger.keys(12), forger.keys(12), forger.keys(13)
    proof = forger.best(mine)
    uploads.add(same, proof)  # replayed for another key of the same value
    uploads.add(other, proof)  # for another value
    uploads.add(mine, (proof[1], proof[0]))  # the wrong way round: corrections agree, shares do not
    for order in ((1, 0, 2, 3), (0, 2, 1, 3), (3, 1, 2, 0)):
        swapped = [proof[b][:0] + [proof[b][i] for i in order] + proof[b][4:] for b in (0, 1)]
        uploads.add(mine, (swapped[0], swapped[1]))
    again = forger.best(mine)
    uploads.add(mine, (proof[0], again[1]))  # shares of two proofs
    # The proof the wrong way round is the same polynomial: what a server adds to f is then its own steps all the same.
    accepted = uploads.accepted()
    assert accepted.tolist() == [False, False, True, False, False, False, False]


@both_schemes
def test_whoever_knows_the_challenge_passes(scheme: str) -> None:
    """So these tests can fail, and so the challenge is secret until nothing can be uploaded."""
    forger, c = Forger(scheme), challenge(scheme)
    pair = forger.keys(12)
    for key in pair:
        key.leaf_cw[0], key.leaf_cw[1] = (key.leaf_cw[0] + 500) % P, (key.leaf_cw[1] - 500) % P
    uploads = Uploads(scheme)
    uploads.add(pair, forger.best(pair))
    assert not uploads.accepted()[0]
    told = [sum_and_messages(*uploads.of_server(b), c)[1].words[:, 0].tolist() for b in (0, 1)]
    f, q = (told[0][F] + told[1][F]) % P, (told[0][Q] + told[1][Q]) % P
    missing = (f * f - f) * pow(value_at(zeros_at(8), c.tau), -1, P) - q
    uploads.proofs[0][0][5] = (uploads.proofs[0][0][5] + missing * pow(int(c.lagrange[0]), -1, P)) % P
    assert uploads.accepted()[0]
    assert not uploads.accepted(number=1)[0]


@both_schemes
def test_a_server_that_shifts_its_share_learns_nothing_from_the_answer(scheme: str) -> None:
    """Server 1 claims to hold what it has, plus a 1 at leaf u, minus a 1 at leaf v, having seen server 0's message.

    Without w, accept would mean that the value is at v. With it, the answer is a refusal whatever the value is.
    """
    forger, c, u, v = Forger(scheme), challenge(scheme), 2, 5
    m = forger.oracle.m
    for masked in (True, False):
        uploads, leaves = Uploads(scheme), list(range(m))
        for leaf in leaves:
            pair = forger.keys(8 + leaf)
            rand = forger.rng.bytes(88) if masked else bytes(8) + forger.rng.bytes(80)
            uploads.add(pair, forger.oracle.prove(pair, 1, rand))
        told = [sum_and_messages(*uploads.of_server(b), c)[1] for b in (0, 1)]
        assert accept(told[0], told[1], c).all()
        shifted = told[1].words.copy()
        shift = (int(c.lagrange[u + 1]) - int(c.lagrange[v + 1])) % P
        shifted[F] = field.add(shifted[F], np.full(m, shift, np.uint64))
        # What q would be at u, for w = 0: server 1 knows server 0's message and completes it.
        goal = value_at(forger_quotient(forger, u), c.tau)
        shifted[Q] = field.sub(np.full(m, goal, np.uint64), told[0].words[Q])
        answer = accept(told[0], Messages(shifted), c)
        assert answer.tolist() == ([False] * m if masked else [leaf == v for leaf in leaves])


def forger_quotient(forger: Forger, leaf: int) -> list[int]:
    """The coefficients of q for w = 0 and a 1 at this leaf."""
    f = through([0, *(int(i == leaf) for i in range(forger.oracle.m))])
    square = times(f, f)
    top = [(a - b) % P for a, b in zip(square, f + [0] * len(f), strict=False)]
    return divided(top, zeros_at(forger.oracle.m))
