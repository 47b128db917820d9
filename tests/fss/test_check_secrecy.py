"""What one server sees of an honest party's check says nothing about the value.

As in test_secrecy.py, thresholds are normal quantiles at which the chance of any false alarm in a test, by the union
bound over all its bits, is below 1e-6; seeds are fixed.
"""

from types import ModuleType

import numpy as np
import pytest
from numpy.typing import NDArray

from fss.check import DIGEST, F, Q, sum_and_messages
from fss.field import Words
from tests.fss.helpers import NAMES, SCHEMES
from tests.fss.test_check import challenge, proved
from tests.fss.test_secrecy import biases, correlations, threshold

BITS = 6
KEYS = 20_000

both_schemes = pytest.mark.parametrize("scheme", SCHEMES, ids=lambda s: NAMES[s])


def bits_of(elements: Words) -> NDArray[np.uint8]:
    """The 61 bits of elements, one row for each key."""
    rows = np.ascontiguousarray(elements.T).view(np.uint8)
    bits = np.unpackbits(rows, axis=1, bitorder="little").reshape(*elements.T.shape, 64)
    return bits[..., :61].reshape(elements.shape[1], -1)


def largest_bias(elements: Words) -> float:
    """The largest z-score of any bit."""
    return float(np.abs(biases(bits_of(elements))).max())


def largest_correlation(elements: Words, alphas: NDArray[np.int64]) -> float:
    """The largest z-score of the agreement of any bit with any bit of alpha."""
    return float(np.abs(correlations(bits_of(elements), alphas, BITS)).max())


@both_schemes
@pytest.mark.parametrize("alpha", [0, 16, 37, 63])
def test_proofs_and_messages_are_uniform_for_a_fixed_value(scheme: ModuleType, alpha: int) -> None:
    keys, proofs = proved(scheme, np.full(KEYS, alpha), BITS, seed=alpha)
    for mine, proof in zip(keys, proofs, strict=True):
        told = sum_and_messages(mine, proof, challenge(scheme, BITS))[1].words
        seen = np.concatenate([proof.words, told])
        assert largest_bias(seen) < threshold(61 * len(seen))


@both_schemes
def test_no_bit_of_them_correlates_with_a_bit_of_the_value(scheme: ModuleType) -> None:
    alphas = np.random.default_rng(5).integers(0, 1 << BITS, KEYS)
    keys, proofs = proved(scheme, alphas, BITS, seed=6)
    c = challenge(scheme, BITS)
    told = [sum_and_messages(k, p, c)[1].words for k, p in zip(keys, proofs, strict=True)]
    assert np.array_equal(told[0][DIGEST], told[1][DIGEST])
    # What the other server sends, alone and with what this one has: their sums are f and q themselves.
    together = np.stack([(told[0][row] + told[1][row]) % np.uint64(2**61 - 1) for row in (F, Q)])
    for party in (0, 1):
        seen = np.concatenate([proofs[party].words, told[1 - party], together])
        assert largest_correlation(seen, alphas) < threshold(61 * BITS * len(seen))


def test_these_tests_can_fail() -> None:
    """Two challenges for one key show its place in a terminal node; so would a proof without w."""
    scheme = SCHEMES[0]
    alphas = np.random.default_rng(5).integers(0, 1 << BITS, KEYS)
    keys, proofs = proved(scheme, alphas, BITS, seed=6)
    f, lagrange = [], []
    for number in (0, 1):
        c = challenge(scheme, BITS, number)
        both = [sum_and_messages(keys[b], proofs[b], c)[1].words[F] for b in (0, 1)]
        f.append([int(a) + int(b) for a, b in zip(*both, strict=True)])
        lagrange.append([int(x) for x in c.lagrange])
    # f = w L_0 + L_(leaf + 1) at two points: w drops out.
    p = 2**61 - 1
    places = [(lagrange[0][i + 1] * lagrange[1][0] - lagrange[1][i + 1] * lagrange[0][0]) % p for i in range(16)]
    leaves = [places.index((a * lagrange[1][0] - b * lagrange[0][0]) % p) for a, b in zip(*f, strict=True)]
    assert leaves == (alphas % 16).tolist()
    leaked = np.array([[lagrange[0][i + 1] for i in leaves]], np.uint64)
    assert largest_correlation(leaked, alphas) > threshold(61 * BITS)
