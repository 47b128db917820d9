"""DCF and DPF compute their function: exhaustively on small domains, against a scalar oracle, and at the edges."""

from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fss import dcf, dpf, field, numpy_backend
from fss.keys import KeyBatch
from tests.fss.helpers import BINDER, NAMES, SCHEMES, expected, make, reconstruct
from tests.oracle.fss import Oracle

P = field.P

pytestmark = pytest.mark.usefixtures("each_backend")

both_schemes = pytest.mark.parametrize("scheme", SCHEMES, ids=lambda s: NAMES[s])


@both_schemes
@pytest.mark.parametrize("bits", range(1, 9))
def test_every_alpha_at_every_point(scheme: ModuleType, bits: int) -> None:
    everything = np.arange(1 << bits)
    beta = np.random.default_rng(bits).integers(0, P, everything.size, dtype=np.uint64)
    k0, k1 = make(scheme, everything, bits, beta=beta)
    want = expected(scheme, everything, everything, beta)
    assert np.array_equal(reconstruct((scheme.over_domain(k0), scheme.over_domain(k1))), want)
    assert np.array_equal(reconstruct((scheme.at_points(k0, everything), scheme.at_points(k1, everything))), want)
    for t in everything:
        assert np.array_equal(reconstruct((scheme.at_point(k0, t), scheme.at_point(k1, t))), want[t])


@both_schemes
@pytest.mark.parametrize("bits", [9, 15, 16, 20, 31, 32])
def test_large_domains(scheme: ModuleType, bits: int) -> None:
    rng = np.random.default_rng(bits)
    top = (1 << bits) - 1
    alphas = np.concatenate([rng.integers(0, top, 60, endpoint=True), [0, 1, top - 1, top]])
    near = np.clip(np.concatenate([alphas - 1, alphas, alphas + 1, rng.integers(0, top, 50)]), 0, top)
    k0, k1 = make(scheme, alphas, bits)
    assert np.array_equal(
        reconstruct((scheme.at_points(k0, near), scheme.at_points(k1, near))), expected(scheme, alphas, near)
    )


@both_schemes
@pytest.mark.parametrize("beta", [0, 1, 2**60, P - 1])
def test_edge_payloads_at_edge_positions(scheme: ModuleType, beta: int) -> None:
    alphas = np.array([0, 255, 128, 127])
    points = np.array([0, 1, 126, 127, 128, 254, 255])
    k0, k1 = make(scheme, alphas, 8, beta=beta)
    got = reconstruct((scheme.at_points(k0, points), scheme.at_points(k1, points)))
    assert np.array_equal(got, expected(scheme, alphas, points, beta))


@both_schemes
@pytest.mark.parametrize("bits", [1, 2, 3, 4, 7, 16, 32])
def test_keys_and_shares_equal_the_scalar_oracle(scheme: ModuleType, bits: int) -> None:
    rng = np.random.default_rng(bits)
    n, oracle = 12, Oracle(NAMES[scheme], bits, BINDER)
    alphas, betas = rng.integers(0, 1 << bits, n), rng.integers(0, P, n)
    rand = rng.bytes(32 * n)
    points = rng.integers(0, 1 << bits, 9)
    batches = scheme.gen(alphas, bits=bits, binder=BINDER, rand=rand, beta=betas)
    shares = [scheme.at_points(batch, points) for batch in batches]
    for i in range(n):
        pair = oracle.gen(int(alphas[i]), int(betas[i]), rand[32 * i : 32 * i + 32])
        for b in (0, 1):
            assert batches[b][i : i + 1].to_bytes() == pair[b].serialise(BINDER)
            assert shares[b][:, i].tolist() == [oracle.evaluate(pair[b], int(x)) for x in points]


@both_schemes
def test_a_batch_equals_its_keys_one_by_one(scheme: ModuleType) -> None:
    alphas = np.arange(0, 64, 3)
    batch = make(scheme, alphas, 6)
    for b, keys in enumerate(batch):
        whole = scheme.over_domain(keys)
        for i in range(len(keys)):
            assert np.array_equal(scheme.over_domain(keys[i : i + 1])[:, 0], whole[:, i]), (b, i)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_all_ways_of_evaluating_agree(data: st.DataObject) -> None:
    """Points in any order and number, repeated, any chunking, any number of threads: always the same shares."""
    scheme = data.draw(st.sampled_from(SCHEMES))
    bits = data.draw(st.integers(1, 12))
    position = st.integers(0, (1 << bits) - 1)
    alphas = np.array(data.draw(st.lists(position, min_size=1, max_size=40)))
    points = np.array(data.draw(st.lists(position, min_size=1, max_size=60)))
    keys = make(scheme, alphas, bits, seed=bits)[data.draw(st.integers(0, 1))]
    reference = scheme.over_domain(keys)
    rows, width = data.draw(st.sampled_from([(8, 2), (64, 4), (16, 1), (4096, 32)]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(numpy_backend, "ROWS", rows)
        patch.setattr(numpy_backend, "WIDTH", width)
        each = scheme.at_points(keys, points)
        sums = scheme.sum_at_points(keys, points, threads=data.draw(st.integers(1, 3)))
        whole = scheme.sum_over_domain(keys, threads=data.draw(st.integers(1, 3)))
    assert np.array_equal(each, reference[points])
    assert np.array_equal(sums, field.total(each))
    assert np.array_equal(whole, field.total(reference))


def test_running_sum_of_the_point_function_is_the_comparison() -> None:
    alphas = np.random.default_rng(5).integers(0, 1 << 11, 3000)
    curves = []
    for scheme in SCHEMES:
        k0, k1 = make(scheme, alphas, 11)
        curves.append(field.add(scheme.sum_over_domain(k0, threads=2), scheme.sum_over_domain(k1)))
    assert np.array_equal(curves[0], field.prefix_sum(curves[1]))
    assert np.array_equal(curves[0], np.cumsum(np.bincount(alphas, minlength=1 << 11)))


def test_keys_depend_on_nothing_but_their_input() -> None:
    first, second = make(dcf, [5, 6], 8, seed=3), make(dcf, [5, 6], 8, seed=3)
    assert [b.to_bytes() for b in first] == [b.to_bytes() for b in second]
    assert make(dcf, [5, 6], 8, seed=4)[0].to_bytes() != first[0].to_bytes()


def test_no_keys_sum_to_zero() -> None:
    empty = make(dpf, [], 5)[1]
    assert isinstance(empty, KeyBatch)
    assert dpf.sum_over_domain(empty).tolist() == [0] * 32
    assert dpf.at_points(empty, [1, 2]).shape == (2, 0)
