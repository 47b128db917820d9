"""Dishonest parties against the check: every forgery is refused, and honest keys beside it are accepted.

A forged key comes with a proof that is as good as its maker can make it (tests/fss/forge.py) and goes through the
servers' own decoders. A single refusal is wrong with probability 2^-55 (docs/security.md); seeds are fixed.
"""

import numpy as np
import pytest

from fss import field
from fss.check import F, Messages, Q, accept, sum_and_messages
from fss.proof import RAND_BYTES
from tests.fss.attacks import ATTACKS
from tests.fss.forge import Forger, Uploads, challenge
from tests.oracle.check import divided, through, times, zeros_at
from tests.oracle.check import value as value_at
from tests.oracle.fss import P

both_schemes = pytest.mark.parametrize("scheme", ["dcf", "dpf"])


def refused(uploads: Uploads, forger: Forger) -> None:
    """All of these are refused, and an honest key at either end is not."""
    honest = [forger.keys(alpha) for alpha in (3, 60)]
    mixed = forger.uploads()
    mixed.add(honest[0], forger.best(honest[0]))
    for pair, proofs in zip(uploads.keys, uploads.proofs, strict=True):
        mixed.add(pair, proofs)
    mixed.add(honest[1], forger.best(honest[1]))
    assert len(uploads.keys) > 0
    assert mixed.accepted().tolist() == [True] + [False] * len(uploads.keys) + [True]


@both_schemes
@pytest.mark.parametrize("attack", ATTACKS)
def test_attacks(scheme: str, attack: str) -> None:
    forger = Forger(scheme)
    refused(ATTACKS[attack](forger), forger)


@both_schemes
def test_a_proof_the_wrong_way_round_is_the_same_proof(scheme: str) -> None:
    """What a server adds to f is its own steps all the same."""
    forger, uploads = Forger(scheme), Uploads(scheme)
    pair = forger.keys(24)
    proof = forger.best(pair)
    uploads.add(pair, (proof[1], proof[0]))
    assert uploads.accepted().all()


@both_schemes
def test_whoever_knows_the_challenge_passes(scheme: str) -> None:
    """So these tests can fail, and so the challenge is secret until nothing can be uploaded."""
    forger, c = Forger(scheme), challenge(scheme)
    pair = forger.keys(24)
    for key in pair:
        key.leaf_cw[0], key.leaf_cw[1] = (key.leaf_cw[0] + 500) % P, (key.leaf_cw[1] - 500) % P
    uploads = Uploads(scheme)
    uploads.add(pair, forger.best(pair))
    assert not uploads.accepted()[0]
    told = [sum_and_messages(*uploads.of_server(b), c)[1].words[:, 0].tolist() for b in (0, 1)]
    f, q = (told[0][F] + told[1][F]) % P, (told[0][Q] + told[1][Q]) % P
    missing = (f * f - f) * pow(value_at(zeros_at(16), c.tau), -1, P) - q
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
            pair = forger.keys(m + leaf)
            w = forger.rng.bytes(8) if masked else bytes(8)
            rand = w + forger.rng.bytes(RAND_BYTES - 8)
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
