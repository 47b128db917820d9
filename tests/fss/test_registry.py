"""The registry of schemes: every scheme is in it, and each entry makes and sums keys of its own scheme."""

import numpy as np
import pytest

from fss import SCHEMES, Scheme, field, scheme_of
from fss.generate import PROVED_RAND_BYTES, RAND_BYTES


def test_every_scheme_is_registered_once() -> None:
    assert {functions.scheme for functions in SCHEMES.values()} == set(Scheme)
    assert len(SCHEMES) == len(Scheme)


@pytest.mark.parametrize("name", sorted(SCHEMES))
def test_a_curve_counts_what_lies_at_or_below_each_point(name: str) -> None:
    functions, alphas, rng = SCHEMES[name], np.array([3, 9, 9]), np.random.default_rng(1)
    plain = functions.gen(alphas, bits=4, binder=b"x", rand=rng.bytes(3 * RAND_BYTES))
    proved, _ = functions.gen_proved(alphas, bits=4, binder=b"x", rand=rng.bytes(3 * PROVED_RAND_BYTES))
    expected = np.searchsorted(alphas, np.arange(16), side="right")
    for keys in (plain, proved):
        assert all(scheme_of(batch.type) is functions for batch in keys)
        first, second = (functions.curve(functions.sum_over_domain(batch)) for batch in keys)
        assert field.decode(field.add(first, second)).tolist() == expected.tolist()
        if functions.is_cumulative:
            points = np.array([2, 3, 9])
            first, second = (functions.sum_at_points(batch, points) for batch in keys)
            assert field.decode(field.add(first, second)).tolist() == expected[points].tolist()
