"""Distributed comparison function: f(t) = beta * 1[alpha <= t] over 1 to 32 bits, payload in Z_p.

Boyle, Chandran, Gilboa, Gupta, Ishai, Kumar, Rathee: "Function Secret Sharing for Mixed-Mode and Fixed-Point Secure
Computation", Eurocrypt 2021, Figure 3, with two changes (docs/paper.md):

- The figure is for f(x) = beta * 1[x < alpha]. Ours is its mirror image: beta is gained where an evaluation leaves the
  path to the *right*, and on the path's end.
- The last four levels are one terminal node whose eight hashes give sixteen leaf values directly, as the point function
  of Boyle, Gilboa, Ishai (CCS 2016) terminates early. A key has 24 D + 64 bytes, header included, and a whole
  domain of N points costs 0.6875 N AES blocks instead of 3 N.

>>> import os, numpy as np
>>> from fss import dcf, field
>>> ages = np.array([41, 67, 67])
>>> k0, k1 = dcf.gen(ages, bits=7, binder=os.urandom(32), rand=os.urandom(3 * dcf.RAND_BYTES))
>>> field.decode(field.add(dcf.sum_at_points(k0, [40, 41, 66, 67]), dcf.sum_at_points(k1, [40, 41, 66, 67])))
array([0, 1, 1, 3])
"""

import numpy as np
from numpy.typing import ArrayLike

from fss import field
from fss.evaluate import Evaluator
from fss.field import Words
from fss.generate import PROVED_RAND_BYTES, RAND_BYTES, make_keys, make_proved_keys
from fss.keys import KeyBatch, Scheme
from fss.path import Path, select
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


_of_scheme = Evaluator(Scheme.DCF)
at_point, at_points, over_domain = _of_scheme.at_point, _of_scheme.at_points, _of_scheme.over_domain
sum_at_points, sum_over_domain = _of_scheme.sum_at_points, _of_scheme.sum_over_domain


def gen(alphas: ArrayLike, *, bits: int, binder: bytes, rand: bytes, beta: ArrayLike = 1) -> tuple[KeyBatch, KeyBatch]:
    """Keys for many alphas at once, the first batch for party 0 and the second for party 1.

    `rand` is `RAND_BYTES` uniform bytes for each alpha and determines the keys; never use it twice.
    """
    return make_keys(_fill, Scheme.DCF, alphas, bits, binder, rand, beta)


def gen_proved(
    alphas: ArrayLike, *, bits: int, binder: bytes, rand: bytes
) -> tuple[tuple[KeyBatch, KeyBatch], tuple[Proofs, Proofs]]:
    """Keys with payload 1, and for each a proof of that, which `fss/check.py` checks; up to 20 bits.

    `rand` is `PROVED_RAND_BYTES` uniform bytes for each alpha: what `gen` takes for all of them, then the proofs'.
    """
    return make_proved_keys(_fill, Scheme.DCF, alphas, bits, binder, rand)


def _fill(path: Path, beta: Words) -> None:
    """Figure 3, Gen. Elements are at most p; `x ^ P` is -x, so no intermediate sum exceeds 4p."""
    type = path.type
    v_alpha = np.zeros_like(beta)
    for level in range(type.depth):
        right, sign = path.bit(level), path.sign()
        v0, v1 = path.values(0), path.values(1)
        # line 10, 11: V_CW = (-1)^t1 (v_1^Lose - v_0^Lose - V_alpha), and beta if the lost child is the right one
        lose0, lose1 = select(right, v0[0], v0[1]), select(right, v1[0], v1[1])
        v_cw = lose1 + (lose0 ^ field.MASK) + (v_alpha ^ field.MASK) + (beta & ~right)
        v_cw = field.canonical(v_cw) ^ sign
        # line 12: V_alpha = V_alpha - v_1^Keep + v_0^Keep + (-1)^t1 V_CW
        keep0, keep1 = v0[0] ^ v0[1] ^ lose0, v1[0] ^ v1[1] ^ lose1
        v_alpha = field.canonical(v_alpha + (keep1 ^ field.MASK) + keep0 + (v_cw ^ sign))
        path.put(type.level(level) + 2, v_cw)
        path.descend(level)
    # line 17, once for each leaf: beta from alpha's own leaf on
    sign, end = path.sign(), path.leaf()
    for leaf, (l0, l1) in enumerate(zip(path.leaf_values(0), path.leaf_values(1), strict=True)):
        gained = beta * (end <= leaf)
        v_cw = field.canonical(l1 + (l0 ^ field.MASK) + (v_alpha ^ field.MASK) + gained)
        path.put(type.level(type.depth) + leaf, v_cw ^ sign)
