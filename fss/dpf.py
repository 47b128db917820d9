"""Distributed point function: f(t) = beta * 1[alpha == t] over 1 to 32 bits, payload in Z_p.

Boyle, Gilboa, Ishai: "Function Secret Sharing: Improvements and Extensions", CCS 2016, Figure 1, with early
termination: the last four levels are one terminal node whose eight hashes give sixteen leaf values.

The running sum of its evaluation over the whole domain is the comparison function, with a smaller key and less work
than `dcf` when every point is wanted.

>>> import os, numpy as np
>>> from fss import dpf, field
>>> ages = np.array([41, 67, 67])
>>> k0, k1 = dpf.gen(ages, bits=7, binder=os.urandom(32), rand=os.urandom(3 * dpf.RAND_BYTES))
>>> curve = field.prefix_sum(field.add(dpf.sum_over_domain(k0), dpf.sum_over_domain(k1)))
>>> field.decode(curve)[[40, 41, 66, 67]]
array([0, 1, 1, 3])
"""

from numpy.typing import ArrayLike

from fss import field
from fss.evaluate import Evaluator
from fss.field import Words
from fss.generate import PROVED_RAND_BYTES, RAND_BYTES, make_keys, make_proved_keys
from fss.keys import KeyBatch, Scheme
from fss.path import Path
from fss.proof import Proofs

__all__ = [
    "PROVED_RAND_BYTES",
    "RAND_BYTES",
    "at_point",
    "at_points",
    "gen",
    "gen_proved",
    "over_domain",
    "sum_at_points",
    "sum_over_domain",
]


_of_scheme = Evaluator(Scheme.DPF)
at_point, at_points, over_domain = _of_scheme.at_point, _of_scheme.at_points, _of_scheme.over_domain
sum_at_points, sum_over_domain = _of_scheme.sum_at_points, _of_scheme.sum_over_domain


def gen(alphas: ArrayLike, *, bits: int, binder: bytes, rand: bytes, beta: ArrayLike = 1) -> tuple[KeyBatch, KeyBatch]:
    """Keys for many alphas at once, the first batch for party 0 and the second for party 1.

    `rand` is `RAND_BYTES` uniform bytes for each alpha and determines the keys; never use it twice.
    """
    return make_keys(_fill, Scheme.DPF, alphas, bits, binder, rand, beta)


def gen_proved(
    alphas: ArrayLike, *, bits: int, binder: bytes, rand: bytes
) -> tuple[tuple[KeyBatch, KeyBatch], tuple[Proofs, Proofs]]:
    """Keys with payload 1, and for each a proof of that, which `fss/check.py` checks; up to 20 bits.

    `rand` is `PROVED_RAND_BYTES` uniform bytes for each alpha: what `gen` takes for all of them, then the proofs'.
    """
    return make_proved_keys(_fill, Scheme.DPF, alphas, bits, binder, rand)


def _fill(path: Path, beta: Words) -> None:
    """Figure 1, Gen: seed and control corrections on every level, the payload at the terminal node."""
    type = path.type
    for level in range(type.depth):
        path.descend(level)
    # CW^(n+1) = (-1)^t1 (beta - Convert(s_0) + Convert(s_1)), beta at alpha's own leaf only
    sign, end = path.sign(), path.leaf()
    for leaf, (l0, l1) in enumerate(zip(path.leaf_values(0), path.leaf_values(1), strict=True)):
        v_cw = field.canonical(l1 + (l0 ^ field.MASK) + beta * (end == leaf))
        path.put(type.level(type.depth) + leaf, v_cw ^ sign)
