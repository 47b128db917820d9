"""One key says nothing about alpha: every bit of it is a fair coin, whatever alpha is.

Each test looks at thousands of bits or bit pairs at once. Its threshold is the normal quantile at which the chance of
any false alarm in the whole test, by the union bound, is below 1e-6; seeds are fixed, so a pass stays a pass.
"""

from types import ModuleType

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import norm

from fss import dcf
from fss.keys import HEADER_BYTES, KeyBatch
from tests.fss.helpers import NAMES, SCHEMES, make

FALSE_ALARM = 1e-6
BITS = 12
KEYS = 40_000
PART = 1000  # keys whose bits fit the cache as numbers

# Both back ends make the same bytes, which other tests compare: here the second of them can wait for `make slow`.
pytestmark = [
    pytest.mark.usefixtures("each_backend"),
    pytest.mark.parametrize(
        "each_backend", ["native", pytest.param("numpy", marks=pytest.mark.slow)], indirect=True, scope="module"
    ),
]

both_schemes = pytest.mark.parametrize("scheme", SCHEMES, ids=lambda s: NAMES[s])


def key_bits(keys: KeyBatch) -> NDArray[np.uint8]:
    """Every secret bit of every serialised key: shape (keys, bits).

    Left out are the bits that are the same in every key by the format: the header, the root's control bit (the
    party), the unused part of the control word, and the three bits above each field element.
    """
    t = keys.type
    rows = np.frombuffer(keys.to_bytes(), np.uint8).reshape(len(keys), t.key_bytes)[:, HEADER_BYTES:]
    bits = np.unpackbits(rows, axis=1, bitorder="little").reshape(len(keys), t.words, 64)
    secret = np.ones((t.words, 64), bool)
    secret[0, 63] = False
    secret[2, t.depth :] = False
    secret[t.value_words(), 61:] = False
    fixed = bits[:, ~secret]
    assert (fixed == fixed[0]).all()
    return bits.reshape(len(keys), -1).compress(secret.ravel(), axis=1)


def threshold(tests: int) -> float:
    return float(norm.isf(FALSE_ALARM / tests / 2))


@both_schemes
@pytest.mark.parametrize("alpha", [0, 1365, (1 << BITS) - 1])
def test_every_bit_is_uniform_for_a_fixed_alpha(scheme: ModuleType, alpha: int) -> None:
    for keys in make(scheme, np.full(KEYS, alpha), BITS, seed=alpha):
        z = biases(key_bits(keys))
        assert np.abs(z).max() < threshold(z.size)


def biases(bits: NDArray[np.uint8]) -> NDArray[np.float64]:
    """z-scores of the number of ones of every key bit."""
    return np.asarray((bits.sum(axis=0) - len(bits) / 2) / np.sqrt(len(bits) / 4))


def correlations(bits: NDArray[np.uint8], alphas: NDArray[np.int64], width: int = BITS) -> NDArray[np.float64]:
    """z-scores of the agreement of every key bit with every bit of alpha."""
    of_alpha = 2 * ((alphas[:, np.newaxis] >> np.arange(width)) & 1).astype(np.float32) - 1
    total = np.zeros((bits.shape[1], width))
    for start in range(0, len(alphas), PART):
        coins = 2 * bits[start : start + PART].astype(np.float32) - 1
        total += coins.T @ of_alpha[start : start + PART]
    return np.asarray(total / np.sqrt(len(alphas)))


@both_schemes
def test_no_bit_correlates_with_a_bit_of_alpha(scheme: ModuleType) -> None:
    alphas = np.random.default_rng(8).integers(0, 1 << BITS, KEYS)
    for keys in make(scheme, alphas, BITS, seed=9):
        z = correlations(key_bits(keys), alphas)
        assert np.abs(z).max() < threshold(z.size)


@both_schemes
def test_shares_of_one_party_are_uniform_on_both_sides_of_alpha(scheme: ModuleType) -> None:
    keys = make(scheme, np.full(KEYS, 2000), BITS, seed=10)[0]
    shares = scheme.at_points(keys, [0, 1999, 2000, 2001, 4095])
    bits = (shares[..., np.newaxis] >> np.arange(61, dtype=np.uint64)) & np.uint64(1)
    z = (bits.sum(axis=1) - KEYS / 2) / np.sqrt(KEYS / 4)
    assert np.abs(z).max() < threshold(z.size)


def test_these_tests_can_fail() -> None:
    """A key that leaks one bit of alpha in one control bit, or has one bit stuck, is caught."""
    alphas = np.random.default_rng(8).integers(0, 1 << BITS, KEYS)
    bits = key_bits(make(dcf, alphas, BITS, seed=9)[0]).copy()
    leak = np.random.default_rng(1).random(KEYS) < 0.1
    bits[leak, 300] = (alphas[leak] >> 5) & 1
    z = correlations(bits, alphas)
    assert np.abs(z).max() > threshold(z.size)
    bits[: KEYS // 10, 7] = 1
    stuck = biases(bits)
    assert np.abs(stuck).max() > threshold(stuck.size)
